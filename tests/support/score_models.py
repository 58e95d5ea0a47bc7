"""Real tables and plain programs for models that compare scores.

The oracles know coefficients, means and precisions as the library has fitted them, and nothing of
how this package reads a model.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from scipy.optimize import linprog
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

import counterlvq as clvq

Array = np.ndarray[Any, Any]
LOADERS = {"wine": load_wine, "cancer": load_breast_cancer, "digits": load_digits}


def table(name: str) -> tuple[Array, Array]:
    """A real table with labels that are text."""
    bunch = LOADERS[name]()
    return bunch.data, np.array([f"class {label}" for label in bunch.target])


def wide_table(name: str) -> tuple[Array, Array]:
    """The same with a column of time stamps and one near 1e8."""
    X, y = table(name)
    rng = np.random.default_rng(1)
    late = (y == y[0]).astype(float)
    stamps = 1.7e9 + 4e5 * rng.normal(size=len(X)) + 3e5 * late
    large = 1e8 + 50.0 * rng.normal(size=len(X)) + 40.0 * late
    return np.column_stack([X, stamps, large]), y


def random_rows(X: Array, count: int, seed: int = 0) -> Array:
    """Rows with each column drawn on its own, some of them beyond what was seen."""
    rng = np.random.default_rng(seed)
    low, high = X.min(axis=0), X.max(axis=0)
    return np.asarray(
        rng.uniform(low - 0.2 * (high - low), high + 0.2 * (high - low), (count, X.shape[1]))
    )


def least_manhattan(W: Array, b: Array, x: Array, target: int) -> float:
    """Least L1 change for which the linear score of `target` is the largest."""
    others = [k for k in range(len(W)) if k != target]
    A = W[others] - W[target]
    r = -(b[others] - b[target]) - A @ x
    # One unit for each column and row, as HiGHS wants its numbers.
    units = np.where(np.abs(A).max(axis=0) > 0, np.abs(A).max(axis=0), 1.0)
    A = A / units
    sizes = np.abs(A).max(axis=1)
    A, r = A / sizes[:, None], r / sizes
    found = linprog(np.concatenate([1 / units, 1 / units]), np.hstack([A, -A]), r, bounds=(0, None))
    return float(found.fun) if found.success else np.inf


def saved_and_loaded(model: Any) -> Any:
    file = io.BytesIO()
    clvq.save(model, file)
    return clvq.load(io.BytesIO(file.getvalue()))


def confirm(fitted: Any, rows: Any, **told: Any) -> clvq.CounterfactualBatch:
    """Explain rows for every class as the target; the model's own `predict` confirms each."""
    explainer = clvq.Explainer(fitted, **told)
    for label in np.unique(explainer.model.labels).tolist():
        batch = explainer.explain_batch(rows, target=label)
        assert set(batch.status.tolist()) <= {"optimal", "feasible"}, label
        assert np.asarray(fitted.predict(batch.X) == label).all(), label
        for i in range(len(batch.X)):  # alone as well as in company
            alone = batch.X[i : i + 1] if not hasattr(batch.X, "iloc") else batch.X.iloc[[i]]
            assert fitted.predict(alone)[0] == label
        assert (batch.lower_bound <= batch.cost).all()
    return explainer.explain_batch(rows)


def least_squared(gaussians: list[tuple[Array, Array, float]], x: Array, target: int) -> float:
    """Least squared change for which one of two Gaussian log densities is the larger.

    One quadratic condition: by the S-lemma the best Lagrangian bound is the least cost. Each
    Gaussian is a mean, a precision and the log of all that its density is multiplied with.
    """
    (m, P, c), (n, Q, e) = gaussians[target], gaussians[1 - target]
    # q(x) = x'Ax + 2b'x + r <= 0 where the target is at least as likely.
    A, b = P - Q, Q @ n - P @ m
    r = float(m @ P @ m - n @ Q @ n - 2 * c + 2 * e)
    values, vectors = np.linalg.eigh(A)
    at, slope = vectors.T @ x, vectors.T @ b
    top = 1.0 / -values.min() if values.min() < 0 else np.inf

    def derivative(price: float) -> float:
        y = (at - price * slope) / (1.0 + price * values)
        return float(values @ y**2 + 2 * slope @ y + r)

    assert derivative(0.0) > 0, "the input has the target already"
    low, high = 0.0, 1.0 if np.isinf(top) else top * (1 - 1e-13)
    while np.isinf(top) and derivative(high) > 0:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if derivative(middle) > 0 else (low, middle)
    y = (at - low * slope) / (1.0 + low * values)
    return float((y - at) @ (y - at) + low * derivative(low))

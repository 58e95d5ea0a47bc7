"""Angles under one metric, against cosines computed as their definition says."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import counterlvq as clvq
from counterlvq.adapters import as_prototype_model
from tests.support.quick import some
from tests.support.score_models import Array, confirm, saved_and_loaded, table


def by_cosines(W: Array, labels: Array, omega: Array, rows: Array) -> Array:
    images, protos = rows @ omega.T, W @ omega.T
    products = images @ protos.T
    lengths = np.linalg.norm(images, axis=1)[:, None] * np.linalg.norm(protos, axis=1)
    return labels[(products / lengths).argmax(axis=1)]


@pytest.mark.parametrize("seed", range(4))
def test_the_largest_cosine_is_the_nearest_of_the_normalised(seed: int) -> None:
    rng = np.random.default_rng(seed)
    W, omega = (
        rng.normal(size=(6, 4)) * 10.0 ** rng.integers(-3, 4, (6, 1)),
        rng.normal(size=(3, 4)),
    )
    labels = np.array(list("aabbcc"))
    model = clvq.angle_model(W, labels, omega)
    rows = rng.normal(size=(5000, 4)) * 10.0 ** rng.integers(-3, 4, (5000, 1))
    assert np.array_equal(model.predict(rows), by_cosines(W, labels, omega, rows))


def test_costs_are_those_of_a_linear_program() -> None:
    rng = np.random.default_rng(0)
    W, omega = rng.normal(size=(4, 5)), rng.normal(size=(5, 5))
    labels = np.array(list("abcd"))
    explainer = clvq.Explainer(clvq.angle_model(W, labels, omega))
    units = W / np.linalg.norm(W @ omega.T, axis=1)[:, None]
    slopes = units @ omega.T @ omega
    for x in rng.normal(size=(5, 5)):
        t = (int((slopes @ x).argmax()) + 1) % 4
        cf = explainer.explain(x, target="abcd"[t])
        A = np.array([slopes[k] - slopes[t] for k in range(4) if k != t])
        best = linprog(np.ones(10), np.hstack([A, -A]), -A @ x, bounds=(0, None)).fun
        assert cf.cost == pytest.approx(best, rel=1e-5)
        assert cf.lower_bound <= best * (1 + 1e-9)


@pytest.mark.parametrize("scale", some([1e-6, 1.0, 1e8], quick=1))
def test_nearest_neighbour_by_cosine(scale: float) -> None:
    X, y = table("wine")
    X = X[::3] * scale
    fitted = KNeighborsClassifier(1, metric="cosine").fit(X, y[::3])
    rng = np.random.default_rng(0)
    probe = rng.uniform(X.min(axis=0), X.max(axis=0), (1000, X.shape[1]))
    read = as_prototype_model(fitted, probe=probe)
    assert np.array_equal(read.predict(probe), fitted.predict(probe))
    assert read.meaning.part == "training row"
    batch = confirm(fitted, table("wine")[0][1:150:50] * scale)
    assert (batch.cost > 0).all()


def test_behind_a_scaler_saved_and_loaded() -> None:
    X, y = table("wine")
    frame = pd.DataFrame(X[::4, :6], columns=list("abcdef"))
    fitted = make_pipeline(MaxAbsScaler(), KNeighborsClassifier(1, metric="cosine"))
    fitted.fit(frame, y[::4])
    confirm(fitted, frame.iloc[[0, 20]])
    loaded = saved_and_loaded(fitted)
    assert loaded.model.meaning.scores == "angle"
    assert np.array_equal(loaded.predict(frame), fitted.predict(frame))


def test_zero_has_no_angle() -> None:
    model = clvq.angle_model([[1.0, 0.0], [0.0, 1.0]], ["a", "b"])
    with pytest.raises(clvq.InvalidInputError, match="x is 0 to the model, which compares angles"):
        clvq.Explainer(model).explain([0.0, 0.0])
    with pytest.raises(clvq.InvalidInputError, match="row 1 of X is 0"):
        clvq.Explainer(model).explain_batch([[1.0, 0.0], [0.0, 0.0]])
    rows = [[0.0, 0.0], [1.0, 0.0]]
    batch = clvq.Explainer(model).explain_batch(rows, on_bad_rows="report")
    assert batch.status.tolist() == ["invalid", "optimal"]
    assert batch[0].reason.startswith("the row is 0 to the model, which compares angles")
    assert batch.cost[1] == clvq.Explainer(model).explain(rows[1]).cost
    with pytest.raises(clvq.InvalidInputError, match=r"prototypes\[1\] is 0"):
        clvq.angle_model([[1.0, 0.0], [0.0, 0.0]], ["a", "b"])
    with pytest.raises(clvq.NotSupportedError, match="row 1 of this KNeighborsClassifier is 0"):
        as_prototype_model(
            KNeighborsClassifier(1, metric="cosine").fit([[1.0, 0.0], [0.0, 0.0]], ["a", "b"])
        )
    # Zero in a metric that does not see a column is zero as well.
    flat = clvq.angle_model([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0]], ["a", "b"], [1.0, 1.0, 0.0])
    with pytest.raises(clvq.InvalidInputError, match="x is 0 to the model"):
        clvq.Explainer(flat).explain([0.0, 0.0, 5.0])


def test_local_metrics_are_refused() -> None:
    with pytest.raises(clvq.NotSupportedError, match="a metric for each prototype"):
        clvq.angle_model([[1.0, 0.0], [0.0, 1.0]], ["a", "b"], [np.eye(2), 2 * np.eye(2)])


def test_what_needs_distances_is_refused() -> None:
    model = clvq.angle_model([[1.0, 0.0], [0.0, 1.0]], ["a", "b"])
    with pytest.raises(clvq.NotSupportedError, match="compares angles"):
        model.require_distances("Drift")

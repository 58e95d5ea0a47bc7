"""Questions about models with local metrics: known optima, digits, and random models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import counterlvq as clvq
from benchmarks.problems import COSTS, SEED, Array, digits, other_labels

HERE = Path(__file__).resolve().parent
OPTIMA = HERE.parent / "tests" / "data" / "local_optima.json"
MODELS = HERE.parent / "tests" / "data" / "models"
SET_NAMES = {
    "iris_lgmlvq": "iris",
    "cancer_lgmlvq": "cancer",
    "cancer_lgmlvq_classwise": "cancer, per class",
}
DIGITS = "digits"


@dataclass(frozen=True, eq=False)
class LocalProblem:
    """A model, rows to explain under one cost, and the label that each should get instead."""

    name: str
    cost: str
    model: clvq.PrototypeModel
    rows: Array  # (n, d)
    targets: NDArray[Any]  # (n,)
    best: Array | None = None  # (n,) costs that are known to be possible
    bound: Array | None = None  # (n,) costs that are known not to be undercut

    def head(self, n: int) -> LocalProblem:
        """The same problem with the first n rows only."""
        best = None if self.best is None else self.best[:n]
        bound = None if self.bound is None else self.bound[:n]
        rows, targets = self.rows[:n], self.targets[:n]
        return LocalProblem(self.name, self.cost, self.model, rows, targets, best, bound)

    def explainer(
        self, method: str, time_limit: float | None = None, gap: float = 1e-4
    ) -> clvq.Explainer:
        return clvq.Explainer(
            self.model, COSTS[self.cost], method=method, time_limit=time_limit, gap=gap
        )

    def valid(self, answers: Array) -> NDArray[np.bool_]:
        """Which answers have their target, by `predict`."""
        found = np.isfinite(answers).all(axis=1)
        safe = np.where(found[:, None], answers, self.rows)
        return np.asarray(found & (self.model.predict(safe) == self.targets))


def known_sets() -> Iterator[LocalProblem]:
    """The sets of `tests/data/local_optima.json`."""
    for key, entries in json.loads(OPTIMA.read_text("utf-8")).items():
        name, cost = key.rsplit("_", 1)
        model, rows = _stored(name)
        columns = {field: [entry[field] for entry in entries] for field in entries[0]}
        yield LocalProblem(
            SET_NAMES[name],
            cost.upper(),
            model,
            rows[columns["test_row"]],
            np.array(columns["target"]),
            np.array(columns["best"]),
            np.array(columns["proved_lower_bound"]),
        )


def digit_rows(n: int) -> Iterator[LocalProblem]:
    """LGMLVQ on the digits: test rows of the first fold, each with a random other target."""
    model, rows = _trained_on_digits()
    targets = other_labels(model.predict(rows[:n]), model.classes)
    for cost in COSTS:
        yield LocalProblem(DIGITS, cost, model, rows[:n], targets)


def random_problem(d: int, rivals: int, cost: str, n: int, targets: int = 3) -> LocalProblem:
    """Prototypes drawn from a standard normal distribution, each with a metric of its own.

    An omega is the identity plus noise of the same size, scaled to ``trace(omega' omega) = 1``
    as in LGMLVQ.
    """
    rng = np.random.default_rng(SEED)
    p = targets + rivals
    prototypes = rng.standard_normal((p, d))
    omegas = np.eye(d) + rng.standard_normal((p, d, d)) / np.sqrt(d)
    omegas /= np.sqrt((omegas**2).sum(axis=(1, 2), keepdims=True))
    labels = ["target"] * targets + ["rival"] * rivals
    model = clvq.PrototypeModel(prototypes, labels, list(omegas))
    rows = _rival_rows(model, n)
    return LocalProblem(f"random, d = {d}", cost, model, rows, np.repeat("target", n))


def _rival_rows(model: clvq.PrototypeModel, n: int) -> Array:
    """Draw rows that the model does not give the target already."""
    rng = np.random.default_rng(SEED + 1)
    rows = np.empty((0, model.n_features))
    while len(rows) < n:
        drawn = rng.standard_normal((4 * n, model.n_features))
        rows = np.concatenate([rows, drawn[model.predict(drawn) == "rival"]])
    return rows[:n]


@cache
def _stored(name: str) -> tuple[clvq.PrototypeModel, Array]:
    """A model of sklearn-lvq, as arrays, and its test rows."""
    with np.load(MODELS / f"{name}.npz", allow_pickle=False) as arrays:
        labels, omegas = arrays["c_w_"], arrays["omegas_"]
        if len(omegas) < len(labels):  # one per class
            omegas = omegas[np.searchsorted(arrays["classes_"], labels)]
        model = clvq.PrototypeModel(arrays["w_"], labels, list(omegas))
        return model, arrays["X_test"]


@cache
def _trained_on_digits() -> tuple[clvq.PrototypeModel, Array]:
    split = digits()
    fitted = clvq.LGMLVQ(prototypes_per_class=3, random_state=0)
    return clvq.as_prototype_model(fitted.fit(split.train, split.train_labels)), split.test

"""Models fitted by another library: as arrays, with what that library predicted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import counterlvq as clvq
from tests.support import oracles
from tests.support.oracles import Absolute, Array, Question, Squared

MODELS = Path(__file__).parents[1] / "data" / "models"
NAMES = [f"{data}_{kind}" for data, kind in product(["iris", "cancer"], ["glvq", "gmlvq"])]
NAMES += [f"{data}_{kind}" for data, kind in product(["iris", "cancer"], ["rslvq", "mrslvq"])]
ROWS = 30


@dataclass(frozen=True, eq=False)
class Foreign:
    prototypes: Array
    labels: list[int]
    omega: Array | None
    X_test: Array
    predict_test: Array

    def explainer(self, cost: object) -> clvq.Explainer:
        model = clvq.PrototypeModel(self.prototypes, self.labels, omegas=self.omega)
        return clvq.Explainer(model, cost=cost)

    def question(self, x: Array, target: int, cost: oracles.Cost) -> Question:
        return Question(self.prototypes, self.labels, self.omega, x, [target], cost)


@cache
def load(name: str) -> Foreign:
    with np.load(MODELS / f"{name}.npz") as stored:
        return Foreign(
            prototypes=stored["w_"],
            labels=stored["c_w_"].tolist(),
            omega=stored.get("omega_"),
            X_test=stored["X_test"],
            predict_test=stored["predict_test"],
        )


def wishes(foreign: Foreign) -> list[tuple[Array, int]]:
    """The first test rows, each with every class that it does not have."""
    rows = zip(foreign.X_test[:ROWS], foreign.predict_test[:ROWS], strict=True)
    return [(x, target) for x, own in rows for target in sorted(set(foreign.labels) - {own})]


@pytest.mark.parametrize("name", NAMES)
def test_predictions_are_those_recorded(name: str) -> None:
    foreign = load(name)
    ours = clvq.PrototypeModel(foreign.prototypes, foreign.labels, omegas=foreign.omega)
    rule = oracles.predict(foreign.prototypes, foreign.labels, foreign.omega, foreign.X_test)
    assert np.array_equal(rule, foreign.predict_test)
    assert np.array_equal(ours.predict(foreign.X_test), foreign.predict_test)


@pytest.mark.covering
@pytest.mark.parametrize("cost", ["manhattan", "euclidean"])
@pytest.mark.parametrize("name", NAMES)
def test_every_wish_is_answered_optimally(name: str, cost: str) -> None:
    foreign = load(name)
    d = foreign.X_test.shape[1]
    plain = Absolute(np.ones(d)) if cost == "manhattan" else Squared(np.eye(d))
    explainer = foreign.explainer(clvq.Manhattan() if cost == "manhattan" else clvq.Euclidean())
    asked = wishes(foreign)
    assert len(asked) == ROWS * (len(set(foreign.labels)) - 1)
    for x, target in asked:
        assert_optimal(explainer.explain(x, target=target), foreign.question(x, target, plain))


def assert_optimal(cf: clvq.Counterfactual, question: Question) -> None:
    optimum = oracles.optimal_cost(question)
    assert cf.status == "optimal", f"x = {question.x.tolist()}, targets = {question.targets}"
    assert oracles.reaches_target(question, cf.x)[0]
    assert cf.prediction in question.targets
    assert cf.cost == pytest.approx(optimum, rel=1e-6, abs=question.floor)
    assert cf.cost == pytest.approx(float(question.cost.value(cf.x - question.x)), rel=1e-9)
    assert cf.lower_bound <= optimum * (1 + 1e-9) + question.floor
    assert cf.cost - cf.lower_bound <= 1e-6 * cf.cost + question.floor

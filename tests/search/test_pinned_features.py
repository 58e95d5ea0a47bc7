"""Equalities that hold anyway, or that leave a column no choice, change nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq.programs.pinned import without_pinned
from counterlvq.programs.program import Program
from tests.support.quick import some

D = 12


def drawn(seed: int) -> tuple[clvq.PrototypeModel, np.ndarray, int]:
    rng = np.random.default_rng(seed)
    P = rng.normal(size=(2, D))
    A = [rng.normal(size=(2, 2)) for _ in range(5)]
    W = rng.normal(size=(5, D)) * 1.5
    model = clvq.PrototypeModel(W, [0, 1, 0, 1, 0], omegas=[a @ P for a in A])
    x = W[0] + 0.5 * rng.normal(size=D)
    return model, x, 1 - int(model.predict([x])[0])


def ways_to_freeze(x: np.ndarray) -> list[list[clvq.Constraint]]:
    """Say in several ways that columns 0 and 1 stay as they are."""
    return [
        [clvq.Freeze(1), clvq.Linear({0: 1.0, 1: 1.0}, "==", x[0] + x[1])],
        [clvq.Freeze(0, 1), clvq.Linear({0: 0.7, 1: 1.3}, "==", float(0.7 * x[0] + 1.3 * x[1]))],
        [
            clvq.Linear({0: 1.0, 1: 1.0}, "==", x[0] + x[1]),
            clvq.Linear({0: 1.0, 1: -1.0}, "==", x[0] - x[1]),
        ],
        [clvq.Freeze(0, 1), clvq.Linear({0: 1.0, 1: 2.0}, "<=", float(x[0] + 2.0 * x[1]))],
    ]


@pytest.mark.parametrize("cost", [clvq.Manhattan(), clvq.Euclidean()], ids=["absolute", "squared"])
@pytest.mark.parametrize("seed", some(range(4), quick={0, 3}))
def test_columns_that_cannot_move_may_be_held_in_any_words(seed: int, cost: clvq.Cost) -> None:
    """The question with two columns frozen has the same answers, and has been proved."""
    model, x, target = drawn(seed)
    frozen = clvq.Explainer(model, cost, [clvq.Freeze(0, 1)]).explain(x, target)
    assert frozen.status == "optimal"
    for constraints in ways_to_freeze(x):
        explainer = clvq.Explainer(model, cost, constraints)
        cf = explainer.explain(x, target)
        assert cf.status == "optimal"
        assert cf.cost == pytest.approx(frozen.cost, rel=3e-4)
        assert cf.lower_bound <= frozen.cost
        assert explainer.verify(cf) == cf.lower_bound


def plain(E: list[list[float]], e: list[float], lower: list[float], upper: list[float]) -> Program:
    d = len(lower)
    return Program(
        w=np.ones(d), L=np.zeros((0, d)), A=np.zeros((0, d)), b=np.zeros(0),
        E=np.array(E).reshape(-1, d), e=np.array(e), lower=np.array(lower), upper=np.array(upper),
        quadrics=(), reach=np.ones(d), blur=np.zeros(len(e)),
    )  # fmt: skip


def test_what_equalities_pin_is_held() -> None:
    inf = float("inf")
    pinned = without_pinned(
        plain([[1, 1, 0], [1, -1, 0], [2, 0, 0]], [3, 1, 4], [-inf] * 3, [inf] * 3)
    )
    assert pinned.E.size == 0
    np.testing.assert_allclose(pinned.lower, [2, 1, -inf])
    np.testing.assert_allclose(pinned.upper, [2, 1, inf])
    repeated = without_pinned(plain([[1, 1, 0], [2, 2, 0]], [3, 6], [-inf] * 3, [inf] * 3))
    assert repeated.E.tolist() == [[1, 1, 0]]
    assert (repeated.lower == -inf).all()


def test_what_clashes_is_left_as_it_is() -> None:
    asked = plain([[1.0, 1.0]], [3.0], [0.0, 0.0], [0.0, 1.0])
    assert without_pinned(asked) is asked


@pytest.mark.parametrize(
    ("rule", "value"),
    [("x0 == -0.7", -0.7), ("3 * x0 == -2", -2 / 3), (clvq.Bounds(0, -0.7, -0.7), -0.7)],
    ids=str,
)
def test_a_value_whose_change_is_no_double_is_one_value(rule: Any, value: float) -> None:
    """Against a scan of the one column that is left: the change to the value is -4 + 3.3 or so."""
    u = np.array([[-1.0, 0.5]])
    model = clvq.PrototypeModel([[-3, 3], [-4, 2], [2, -4]], [0, 1, 0], [3 * u, 0.5 * u, 2 * u])
    x = np.array([-4.0, 1.86])
    explainer = clvq.Explainer(model, clvq.Manhattan([1, 0.1]), [rule])
    cf = explainer.explain(x, target=0)
    others = np.linspace(-20.0, 20.0, 400_001)
    wins = model.predict(np.column_stack([np.full(others.size, value), others])) == 0
    least = abs(value - x[0]) + 0.1 * np.abs(others[wins] - x[1]).min()
    assert cf.status == "optimal"
    assert cf.cost == pytest.approx(least, abs=2e-5)
    assert cf.lower_bound <= least
    assert explainer.verify(cf) == cf.lower_bound

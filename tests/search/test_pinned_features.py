"""Equalities that hold anyway, or that leave a column no choice, change nothing."""

from __future__ import annotations

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

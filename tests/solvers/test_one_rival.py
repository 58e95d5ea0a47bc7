"""Multipliers in closed form: true bounds, which are exact where one rival and no curve decide."""

from __future__ import annotations

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq.problem.targets import wished_prototypes
from counterlvq.solvers.one_rival import charged_for_one


def bounded(cost: clvq.Cost, W: np.ndarray, omegas: list[np.ndarray], x: np.ndarray) -> float:
    """Bound the only cell of label 1 by a cost that is known to be enough."""
    model = clvq.PrototypeModel(W, [0] * (len(W) - 1) + [1], omegas=omegas)
    explainer = clvq.Explainer(model, cost)
    question = explainer.prepared_for().answers.question(x, wished_prototypes(model, 1, -1))
    cap = explainer.cost.value(W[-1] - x)
    box = question.root(cap)
    prices = charged_for_one(question.problem(len(W) - 1, box), box, cap)
    assert prices is not None
    return question.bound(len(W) - 1, prices, box, cap)


def test_flat_border_under_absolute_costs_is_bounded_exactly() -> None:
    """With equal metrics the border between (0, 0) and (4, 2) is at 2 a + b = 5."""
    W, omegas = np.array([[0.0, 0.0], [4.0, 2.0]]), [np.eye(2), np.diag([1.0, -1.0])]
    assert bounded(clvq.Manhattan(), W, omegas, np.zeros(2)) == pytest.approx(2.5)


def test_flat_border_under_squared_costs_is_bounded_nearly_exactly() -> None:
    W, omegas = np.array([[0.0, 0.0], [4.0, 2.0]]), [np.eye(2), np.diag([1.0, -1.0])]
    assert bounded(clvq.Euclidean(), W, omegas, np.zeros(2)) == pytest.approx(5.0, rel=0.02)


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 5, 6])
@pytest.mark.parametrize("squared", [False, True])
def test_no_point_of_a_grid_undercuts_the_bound(seed: int, squared: bool) -> None:
    rng = np.random.default_rng(seed)
    W, omegas = rng.normal(size=(4, 2)), list(rng.normal(size=(4, 2, 2)))
    x = W[0] + 0.1 * rng.normal(size=2)
    cost = clvq.Mahalanobis(np.diag([1.0, 3.0])) if squared else clvq.Manhattan([1.0, 3.0])
    bound = bounded(cost, W, omegas, x)
    side = np.linspace(-4.0, 4.0, 801)
    D = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    far = np.array([((x + D - w) @ F.T) ** 2 for w, F in zip(W, omegas, strict=True)]).sum(axis=2)
    D = D[far.argmin(axis=0) == 3]
    dear = (D**2 if squared else np.abs(D)) @ np.array([1.0, 3.0])
    assert bound >= 0.0
    assert dear.min(initial=np.inf) >= bound

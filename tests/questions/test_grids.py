"""Every confidence and plausibility in the plane, against all points of a grid.

Whether a point of the grid is an answer is told by the definition alone: noise by its corners,
drift and similarity by distances, probabilities by `predict_proba`, plausibility by ellipsoids.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale as scaled

import counterlvq as clvq
from tests.support.quick import some

LABELS = np.array(["granted", "refused", "unsure"])
STEP = 0.04
PLACES = np.stack(np.meshgrid(*[np.arange(-150, 151) * STEP] * 2), axis=-1).reshape(-1, 2)
COSTS: dict[str, tuple[Callable[..., clvq.Cost], Callable[..., np.ndarray]]] = {
    "sum": (lambda s: clvq.Manhattan(1.0 / s), lambda D: np.abs(D).sum(axis=1)),
    "square": (lambda s: clvq.Mahalanobis(np.diag(s**-2.0)), lambda D: (D**2).sum(axis=1)),
    "largest": (lambda s: clvq.Chebyshev(1.0 / s), lambda D: np.abs(D).max(axis=1)),
}
RULES: dict[str, Callable[[np.ndarray], object]] = {
    "similar": lambda s: clvq.RelativeSimilarity(0.4),
    "drift": lambda s: clvq.Drift(0.25),
    "l1": lambda s: clvq.Noise(0.3, "l1", weights=1.0 / s),
    "l2": lambda s: clvq.Noise(0.3, "l2", weights=1.0 / s),
    "linf": lambda s: clvq.Noise(0.3, "linf", weights=1.0 / s),
}
SCALES = [np.ones(2), np.array([1e-4, 3e5])]


def drawn(seed: int, scale: np.ndarray) -> tuple[clvq.PrototypeModel, np.ndarray]:
    """Prototypes of three labels under a full metric, and an input."""
    rng = np.random.default_rng(seed)
    omega = (np.eye(2) + 0.4 * rng.normal(size=(2, 2))) / scale
    points = rng.uniform(-3.0, 3.0, size=(6, 2)) * scale
    return clvq.PrototypeModel(points, np.repeat(LABELS, 2), omega), rng.normal(size=2)


def corners(norm: str) -> np.ndarray:
    """Moves of length 1 of which one is the worst; many directions where all are corners."""
    if norm == "l1":
        return np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    if norm == "linf":
        return np.array([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    turns = np.linspace(0.0, 2.0 * np.pi, 720, endpoint=False)
    return np.stack([np.cos(turns), np.sin(turns)], axis=1)


def answers(
    rule: str,
    model: clvq.PrototypeModel,
    rows: np.ndarray,
    scale: np.ndarray,
    target: str,
    ease: float = 1.0,
) -> np.ndarray:
    """Whether rows have a label with a share of the confidence, by the definition."""
    far, mine = model.distances(rows), np.flatnonzero(model.labels == target)
    others = np.flatnonzero(model.labels != target)
    own, rival = far[:, mine].min(axis=1), far[:, others].min(axis=1)
    if rule == "similar":
        return (rival - own) >= 0.4 * ease * (rival + own)
    if rule == "drift":
        return np.sqrt(own) + 2 * 0.25 * ease <= np.sqrt(rival)
    # The whole ball lies in the cell of one prototype: a lead is linear, so that its corners do.
    M = model.omegas.T @ model.omegas
    found = np.zeros(len(rows), dtype=bool)
    for i in mine:
        normals = 2.0 * (model.prototypes[others] - model.prototypes[i]) @ M
        worst = (0.3 * ease * corners(rule) * scale @ normals.T).max(axis=0)
        found |= (far[:, others] - far[:, [i]] >= worst).all(axis=1)
    return found


def compared(
    explainer: clvq.Explainer,
    x: np.ndarray,
    scale: np.ndarray,
    target: object,
    spent: Callable[..., np.ndarray],
    good: np.ndarray,
) -> clvq.Counterfactual:
    """Ask, and compare with all points of the grid; costs are in its units."""
    cf = explainer.explain(x * scale, target=target)
    assert explainer.verify(cf) == cf.lower_bound or cf.cost == 0.0
    if not good.any():
        return cf
    least = spent(PLACES[good] - x).min()
    # No point of the grid that is an answer undercuts the bound, and one is not far.
    assert cf.status == "optimal"
    assert cf.lower_bound <= least * (1 + 1e-9)
    assert cf.cost == pytest.approx(spent((cf.x / scale - x)[None, :])[0], rel=1e-6, abs=1e-12)
    if np.abs(cf.x / scale).max() > PLACES.max() - 6 * STEP:
        return cf  # it lies where the grid ends
    root = np.sqrt if spent is COSTS["square"][1] else lambda v: v
    assert root(least) - 6 * STEP <= root(cf.cost) <= root(least) * (1 + 1e-6)
    return cf


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("cost", some(list(COSTS), quick=1))
@pytest.mark.parametrize("scale", SCALES, ids=["even", "ugly"])
@pytest.mark.parametrize("seed", some([0, 1, 2], quick=1))
def test_sure_answers_are_those_of_a_grid(
    rule: str, cost: str, scale: np.ndarray, seed: int
) -> None:
    model, x = drawn(seed, scale)
    price, spent = COSTS[cost]
    sure = RULES[rule](scale)
    explainer = clvq.Explainer(model, price(scale), confidence=sure)
    for target in LABELS:
        good = answers(rule, model, PLACES * scale, scale, target)
        cf = compared(explainer, x, scale, target, spent, good)
        if cf.status.has_answer:
            assert model.predict([cf.x])[0] == target
            assert answers(rule, model, cf.x[None, :], scale, target, 1 - 1e-6)[0]


@pytest.mark.parametrize("rule", RULES)
def test_where_no_point_is_sure_enough_that_is_proved(rule: str) -> None:
    model, x = drawn(3, np.ones(2))
    for target in LABELS:
        good = answers(rule, model, PLACES, np.ones(2), target)
        near = np.abs(PLACES - x).max(axis=1)
        reach = near[good].min(initial=np.inf) - 8 * STEP
        if not 0.05 < reach < 5.0:
            continue  # the input is sure itself, or nothing is
        rules = [clvq.Bounds(j, x[j] - reach, x[j] + reach) for j in range(2)]
        explainer = clvq.Explainer(model, constraints=rules, confidence=RULES[rule](np.ones(2)))
        cf = explainer.explain(x, target=target)
        assert (cf.status, cf.cost) == ("infeasible", np.inf)
        assert explainer.verify(cf) == np.inf
        wider = [clvq.Bounds(j, x[j] - reach - 1, x[j] + reach + 1) for j in range(2)]
        again = clvq.Explainer(model, constraints=wider, confidence=RULES[rule](np.ones(2)))
        assert again.explain(x, target=target).status == "optimal"


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("p", [0.51, 0.9, 0.9999])
def test_probable_answers_are_those_of_a_grid(cost: str, p: float) -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(80, 2)) * 2.0
    y = np.where(X @ [1.0, -0.5] + rng.normal(size=80) > 0.3, "yes", "no")
    model = LogisticRegression().fit(X, y)
    price, spent = COSTS[cost]
    explainer = clvq.Explainer(model, price(np.ones(2)), confidence=clvq.Probability(p))
    chances = model.predict_proba(PLACES)
    for x in X[:3]:
        for at, target in enumerate(model.classes_):
            cf = compared(explainer, x, np.ones(2), target, spent, chances[:, at] >= p)
            if cf.status.has_answer:
                assert model.predict_proba([cf.x])[0, at] >= p


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("scale", SCALES, ids=["even", "ugly"])
@pytest.mark.parametrize("share", [0.3, 0.9])
def test_plausible_answers_are_those_of_a_grid(cost: str, scale: np.ndarray, share: float) -> None:
    rng = np.random.default_rng(8)
    model, x = drawn(4, scale)
    centers = model.prototypes / scale
    table = np.concatenate([c + 0.5 * rng.normal(size=(40, 2)) for c in centers]) * scale
    likely = clvq.Plausible.fit(table, model=model, share=share)
    price, spent = COSTS[cost]
    explainer = clvq.Explainer(model, price(scale), [likely])
    labels = model.predict(PLACES * scale)
    for target in LABELS:
        inside = np.zeros(len(PLACES), dtype=bool)
        for item in likely.ellipsoids:
            if item.label == target:
                away = (PLACES * scale - item.center) @ item.factor.T
                inside |= (away**2).sum(axis=1) <= item.value
        cf = compared(explainer, x, scale, target, spent, inside & (labels == target))
        assert model.predict([cf.x])[0] == target
        assert (
            min(
                ((item.factor @ (cf.x - item.center)) ** 2).sum() / item.value
                for item in likely.ellipsoids
                if item.label == target
            )
            <= 1 + 1e-9
        )


def test_thin_ellipsoids_are_proved() -> None:
    """Thirty columns that nearly follow from each other: these rows stayed open once."""
    X, y = load_breast_cancer(return_X_y=True)
    X = scaled(X)
    model = clvq.PrototypeModel([X[y == label].mean(axis=0) for label in (0, 1)], [0, 1])
    likely = clvq.Plausible.fit(X, model=model)
    explainer = clvq.Explainer(model, constraints=[likely, *clvq.within_data(X)])
    for x in X[[0, 4, 212, 300]]:
        cf = explainer.explain(x)
        assert cf.status == "optimal"
        assert explainer.verify(cf) == cf.lower_bound


@pytest.mark.parametrize("theta", [-0.1, 1.0, 2, np.nan, np.inf])
def test_a_similarity_that_none_has_is_refused(theta: float) -> None:
    with pytest.raises(clvq.InvalidInputError, match="RelativeSimilarity: theta is"):
        clvq.RelativeSimilarity(theta)


@pytest.mark.parametrize("p", [0.5, 0.1, 0.0, 1.0, 1.5, np.nan])
def test_a_probability_that_decides_nothing_is_refused(p: float) -> None:
    with pytest.raises(clvq.InvalidInputError, match="Probability: p is"):
        clvq.Probability(p)


@pytest.mark.parametrize("radius", [0.0, -1.0, np.nan, np.inf])
def test_a_radius_of_nothing_is_refused(radius: float) -> None:
    with pytest.raises(clvq.InvalidInputError, match="Drift: radius is"):
        clvq.Drift(radius)
    with pytest.raises(clvq.InvalidInputError, match="Noise: radius is"):
        clvq.Noise(radius)

"""Claims under shared metrics, drawn where a convenience of floating point used to make them false.

The judges are exact fractions, linear programs and the model's own `predict`.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

import counterlvq as clvq
from counterlvq.certificates.cellwise import CellCertificate, Exclusion, Singles
from counterlvq.certificates.duality import Proof
from counterlvq.programs.program import Multipliers
from tests.support.oracles import exact_distance
from tests.support.quick import seeds

COSTS = {"l1": clvq.Manhattan(), "l2": clvq.Euclidean()}
each_cost = pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS)


def models(seed: int, far: float | None = None) -> clvq.PrototypeModel:
    """A few prototypes of two classes in ugly units, and one far away of the first class."""
    rng = np.random.default_rng(seed)
    d, p = int(rng.integers(1, 5)), int(rng.integers(2, 7))
    W = np.round(rng.normal(size=(p, d)), 2) * 10.0 ** rng.integers(-3, 4)
    omegas = None if seed % 2 else np.round(rng.normal(size=(d, d)), 1) + 2 * np.eye(d)
    labels = ["no", "yes", *rng.choice(["no", "yes"], size=p - 2)]
    if far is not None:
        W, labels = np.vstack([W, np.full(d, far)]), [*labels, "no"]
    return clvq.PrototypeModel(W, labels, omegas=omegas)


# --- which prototype is nearest -----------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
def test_predict_decides_ties_and_close_calls_exactly(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d, p, r = (int(k) for k in rng.integers(1, 5, size=3))
    scale = 10.0 ** rng.integers(-8, 9, size=d)
    W = rng.integers(-3, 4, size=(p + 1, d)) * scale
    if seed % 3 == 0:
        W[0] = 10.0 ** rng.integers(5, 20)
    omega = None if seed % 2 else rng.integers(-2, 3, size=(r, d)) / scale
    model = clvq.PrototypeModel(W, np.arange(p + 1) % 2, omegas=omega)
    X = np.concatenate([W, (W[:1] + W[1:]) / 2, W[1:] * (1 + 2.0**-50)])
    for x, nearest in zip(X, model.nearest(X), strict=True):
        exact = [exact_distance(w, omega, x) for w in W]
        assert nearest == exact.index(min(exact))


# --- what lies far away -------------------------------------------------------------------------


@each_cost
@pytest.mark.parametrize("far", [9999.0, 1e9, 1e14, 1e20])
@pytest.mark.parametrize("seed", seeds(8, quick=3))
def test_a_prototype_far_away_changes_nothing(cost: clvq.Cost, far: float, seed: int) -> None:
    clean, filled = models(seed), models(seed, far)
    rng = np.random.default_rng(seed)
    X = clean.prototypes[:1] + rng.normal(size=(4, clean.n_features)) * np.ptp(clean.prototypes)
    near = clvq.Explainer(clean, cost).explain_batch(X, target="yes")
    with_far = clvq.Explainer(filled, cost).explain_batch(X, target="yes")
    for i in range(len(X)):
        if not np.isfinite(near.cost[i]):
            continue
        # A rival more can only make an answer dearer, and here it has no say at all.
        assert with_far.status[i] != "infeasible"
        assert with_far.lower_bound[i] <= near.cost[i] * (1 + 1e-9)
        if with_far.status[i] == "optimal":
            assert with_far.cost[i] == pytest.approx(near.cost[i], rel=1e-5)


# --- gap, status and batches --------------------------------------------------------------------


@each_cost
@pytest.mark.parametrize("seed", range(20))
def test_gap_is_what_it_says_and_batches_say_the_same(cost: clvq.Cost, seed: int) -> None:
    model = models(seed)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(5, model.n_features)) * np.abs(model.prototypes).max()
    rules = [clvq.MaxChange(0, float(rng.uniform(0.1, 3)) * np.abs(model.prototypes).max())]
    explainer = clvq.Explainer(model, cost, rules if seed % 2 else [])
    batch = explainer.explain_batch(X, target="yes")
    for i, x in enumerate(X):
        cf = explainer.explain(x, target="yes")
        assert np.array_equal(cf.x, batch.X[i], equal_nan=True)
        said = cf.cost, cf.lower_bound, cf.gap, cf.resolution, cf.status
        assert said == (
            batch.cost[i], batch.lower_bound[i], batch.gap[i], batch.resolution[i], batch.status[i]
        )  # fmt: skip
        if not cf.status.has_answer:
            continue
        open_part = cf.cost - cf.lower_bound
        assert cf.gap == (open_part / cf.cost if cf.cost else 0.0)
        if cf.status == "optimal":
            assert cf.gap <= 1e-6 or open_part <= cf.resolution


# --- rows that are nearly parallel --------------------------------------------------------------


@each_cost
@pytest.mark.parametrize("seed", seeds(40, quick=12))
def test_room_between_nearly_parallel_rows_is_not_denied(cost: clvq.Cost, seed: int) -> None:
    """A row that is almost the boundary of the cell, turned by next to nothing."""
    rng = np.random.default_rng(seed)
    W = rng.integers(-4, 5, size=(2, 2)).astype(float)
    if (W[0] == W[1]).all():
        W[1, 0] += 1.0
    normal = W[1] - W[0]
    turned = normal * (1 + rng.integers(-8, 9, size=2) * 10.0 ** -float(rng.integers(9, 15)))
    right = float(turned @ W.mean(axis=0))
    explainer = clvq.Explainer(
        clvq.PrototypeModel(W, ["no", "yes"]), cost, [clvq.Linear(turned, "<=", right)]
    )
    cf = explainer.explain(W[0], target="yes")
    # Along the boundary, far enough out, the two half-planes part unless they are parallel.
    parallel = Fraction(turned[0]) * Fraction(normal[1]) == Fraction(turned[1]) * Fraction(
        normal[0]
    )
    if not parallel:
        assert cf.status != "infeasible"
    assert cf.lower_bound <= cf.cost


# --- certificates that lie ----------------------------------------------------------------------


def truth(
    model: clvq.PrototypeModel, x: np.ndarray, rules: list[tuple[np.ndarray, float]]
) -> float:
    """The least Manhattan cost of the closed cell of prototype 1, by linear programming."""
    w0, w1 = model.prototypes
    rows = [2 * (w0 - w1), *(a for a, _ in rules)]
    rights = [w0 @ w0 - w1 @ w1, *(v for _, v in rules)]
    A, b = np.array(rows), np.array(rights) - np.array(rows) @ x
    result = linprog(np.ones(2 * x.size), A_ub=np.hstack([A, -A]), b_ub=b, bounds=(0, None))
    return float(result.fun) if result.status == 0 else np.inf


def mutated(rng: np.random.Generator, proof: Proof) -> Proof:
    wild = np.array([0.0, -1.0, 1e-300, 1e30, 1e160, np.inf, np.nan, 1.0])

    def spoiled(values: np.ndarray) -> np.ndarray:
        out = values * rng.choice([0.5, 1.0, 2.0, 1e3], size=values.shape)
        hit = rng.random(values.shape) < 0.4
        out[hit] = rng.choice(wild, size=int(hit.sum()))
        return out

    prices = proof.constraint_prices
    prototype, rivals = proof.prototype, proof.rivals
    if rng.random() < 0.2:
        prototype = int(rng.integers(-2, 3))
    if rng.random() < 0.2:
        rivals = rng.integers(-2, 3, size=rivals.shape)
    return Proof(
        prototype, rivals, spoiled(proof.rival_prices),
        Multipliers(spoiled(prices.y), spoiled(prices.z), spoiled(prices.nu)),
        spoiled(proof.point + 1.0),
    )  # fmt: skip


@pytest.mark.parametrize("seed", seeds(25, quick=4))
def test_verify_cannot_be_talked_into_more_than_the_truth(seed: int) -> None:
    rng = np.random.default_rng(seed)
    W = rng.integers(-5, 6, size=(2, 3)).astype(float)
    W[1] += 6.0
    model = clvq.PrototypeModel(W, ["no", "yes"])
    a = rng.integers(-2, 3, size=3).astype(float)
    rules = [(a, float(a @ W[1]) + 1.0)] if a.any() else []
    constraints = [clvq.Linear(row, "<=", value) for row, value in rules]
    explainer = clvq.Explainer(model, constraints=constraints)
    cf = explainer.explain(W[0], target="yes")
    most = truth(model, W[0], rules)
    assert explainer.verify(cf) == cf.lower_bound <= most * (1 + 1e-12)
    honest = cf.certificate
    assert isinstance(honest, CellCertificate)
    for _ in range(40):
        proofs = tuple(mutated(rng, proof) for proof in honest.proofs)
        lies = [
            CellCertificate(proofs),
            CellCertificate((), tuple(Exclusion(proof, 1e60) for proof in proofs)),
            CellCertificate(proofs, tuple(Exclusion(proof, np.nan) for proof in proofs)),
            CellCertificate((), (), Singles(np.array([1]), rng.integers(-2, 3, size=1))),
            CellCertificate(list(proofs), None, "no singles"),  # type: ignore[arg-type]
        ]
        for lie in lies:
            for cost in (cf.cost, np.inf, np.nan, 1e300):
                assert explainer.verify(replace(cf, cost=cost, certificate=lie)) <= most * (
                    1 + 1e-9
                )


def test_an_object_that_looks_like_a_certificate_proves_nothing() -> None:
    class Talks:
        def lower_bound(self, *_: object) -> float:
            return 1e9

    explainer = clvq.Explainer(clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"]))
    cf = explainer.explain([0.0])
    assert explainer.verify(replace(cf, certificate=Talks())) == 0.0  # type: ignore[arg-type]


# --- margins ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_a_margin_that_cannot_be_had_is_told_from_a_class_that_cannot(seed: int) -> None:
    rng = np.random.default_rng(seed)
    at = np.sort(rng.choice(np.arange(20), size=3, replace=False)).astype(float)
    model = clvq.PrototypeModel(at[:, None], ["a", "b", "c"])
    # Between two rivals the lead is largest where they are equally near.
    most = float((at[2] - at[0]) / 2) ** 2 - ((at[2] + at[0]) / 2 - at[1]) ** 2
    cf = clvq.Explainer(model, margin=most + 0.5).explain([at[0]], target="b")
    assert cf.status == "infeasible"
    assert cf.lower_bound <= (at[1] - at[0]) / 2
    assert "never says so" not in cf.text()
    assert "margin" in cf.text()


# --- quadratic constraints around a distant centre ----------------------------------------------


@pytest.mark.parametrize("seed", seeds(12, quick={3, 10, 11}))  # near, far, and in a plane
def test_a_quadratic_is_never_exceeded_however_far_its_centre_is(seed: int) -> None:
    """Rounding of its terms may be worth more than its value: nothing gives way for that."""
    rng = np.random.default_rng(seed)
    d, far = int(rng.integers(2, 5)), 10.0 ** rng.integers(6, 15)
    W = np.round(rng.normal(size=(4, d)), 2)
    W[0, : d - 1] = far
    centre = W[0] + np.round(rng.normal(size=d), 1)
    ball = clvq.Quadratic(np.eye(d), 4.0, center=centre)
    explainer = clvq.Explainer(clvq.PrototypeModel(W, [1, 0, 1, 0]), constraints=[ball])
    for target in (0, 1):
        for cf in (explainer.explain(row, target) for row in np.round(rng.normal(size=(3, d)), 2)):
            if cf.status.has_answer:
                away = [
                    Fraction(float(a)) - Fraction(float(b))
                    for a, b in zip(cf.x, centre, strict=True)
                ]
                assert sum(part * part for part in away) <= 4


# --- numbers whose squares no float can hold ----------------------------------------------------


@each_cost
@pytest.mark.parametrize("size", [1e130, 1e155, 1e160, 1e300])
@pytest.mark.parametrize("constraints", [[], ["x0 - x1 >= 1e170"]], ids=["free", "far"])
def test_numbers_that_overflow_end_in_a_status(
    size: float, cost: clvq.Cost, constraints: list[str]
) -> None:
    try:
        model = clvq.PrototypeModel([[0.0, 0.0], [size, 0.0]], ["no", "yes"])
    except clvq.InvalidInputError:
        return
    cf = clvq.Explainer(model, cost, constraints).explain([0.0, 0.0], "yes")
    assert cf.status != "infeasible"
    assert cf.lower_bound <= cf.cost


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
def test_a_metric_that_does_not_see_the_difference_has_no_answer(scale: float) -> None:
    """Ties go to the first; the lead that is asked for may be as small as floats go."""
    model = clvq.PrototypeModel([[0.0, 0.0], [0.0, scale]], ["a", "b"], omegas=[[1.0, 0.0]])
    for cost in COSTS.values():
        assert clvq.Explainer(model, cost).explain([0.0, 0.0], "b").status == "infeasible"
        assert clvq.Explainer(model, cost).explain([0.0, scale], "a").status == "optimal"

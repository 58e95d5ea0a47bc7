"""The blur of a foreign `predict`: never less than what it really rounds, and not far more."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid

from counterlvq.adapters import Arithmetic, arithmetic_of, as_prototype_model
from counterlvq.adapters.arithmetic import tangent_arithmetic
from counterlvq.model import PrototypeModel
from counterlvq.numeric.tolerances import EPSILON, SINGLE_EPSILON
from tests.support.fakes import Array, Tensor, fake, torch_model

OFFSETS = [0.0, 1.0, 100.0, 1e4, 1e7]


def exact_scores(prototypes: Array, omega: Array | None, x: Array) -> list[Fraction]:
    """Squared distances in rational arithmetic."""
    factor = np.eye(len(x)) if omega is None else omega
    F = [[Fraction(float(value)) for value in row] for row in factor]
    out = []
    for w in prototypes:
        away = [Fraction(float(a)) - Fraction(float(b)) for a, b in zip(x, w, strict=True)]
        parts = [sum(f * z for f, z in zip(row, away, strict=True)) for row in F]
        out.append(sum(part * part for part in parts))
    return out


def by_differences(x: Array, w: Array, omega: Array | None) -> Array:
    away = x[:, None, :] - w[None, :, :]
    moved = away if omega is None else away @ omega.T
    return (moved * moved).sum(axis=2)


def by_products(x: Array, w: Array, omega: Array | None) -> Array:
    if omega is not None:
        x, w = x @ omega.T, w @ omega.T
    return (x * x).sum(axis=1)[:, None] - 2 * (x @ w.T) + (w * w).sum(axis=1)


def drawn(seed: int, offset: float) -> tuple[Array, Array, Array]:
    """Prototypes, rows near the boundary between the first two of them, and a factor."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 7))
    w = rng.normal(size=(4, d)) * 10.0 ** rng.integers(-2, 3) + offset
    along = rng.normal(size=(5, d)) * np.abs(w[0] - w[1]).max()
    rows = w[:2].mean(axis=0) + 0.3 * along
    return w, rows, rng.normal(size=(int(rng.integers(1, d + 1)), d))


# Roundings besides those of sums where no root is taken, as adapters state them.
NO_ROOT = 4


@pytest.mark.covering
@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("unit", [SINGLE_EPSILON, EPSILON])
@pytest.mark.parametrize("form", [by_differences, by_products])
@pytest.mark.parametrize("with_omega", [False, True])
def test_no_computed_difference_is_off_by_more(
    form: Any, unit: float, offset: float, with_omega: bool
) -> None:
    kind = np.float32 if unit == SINGLE_EPSILON else np.float64
    for seed in range(8):
        w, rows, omega = drawn(seed, offset)
        w = w.astype(kind).astype(np.float64)
        factor = omega.astype(kind).astype(np.float64) if with_omega else None
        model = PrototypeModel(w, ["a", "b", "a", "b"], omegas=factor)
        arithmetic = Arithmetic(
            model,
            unit,
            form is by_products,
            casts=unit == SINGLE_EPSILON,
            other_roundings=NO_ROOT,
        )
        errors, blur = arithmetic.errors(rows), arithmetic.blur(rows)
        used = None if factor is None else factor.astype(kind)
        for size in (1, len(rows)):
            for start in range(0, len(rows), size):
                part = rows[start : start + size]
                scores = form(part.astype(kind), w.astype(kind), used)
                for i, row in enumerate(part, start=start):
                    exact = exact_scores(w, factor, row)
                    k = int(np.argmin([float(score) for score in exact]))
                    for m in range(len(w)):
                        told = Fraction(float(scores[i - start, m])) - Fraction(
                            float(scores[i - start, k])
                        )
                        off = abs(float(told - (exact[m] - exact[k])))
                        assert off <= errors[i, m] + errors[i, k]
                        if exact[m] - exact[k] <= errors[i, m] + errors[i, k]:
                            assert off <= blur[i] or model.labels[m] == model.labels[k]


@pytest.mark.parametrize("unit", [SINGLE_EPSILON, EPSILON])
@pytest.mark.parametrize("form", [by_differences, by_products])
@pytest.mark.parametrize("with_omega", [False, True])
def test_no_winner_within_reach_is_farther_behind(form: Any, unit: float, with_omega: bool) -> None:
    """Whoever wins by computed scores, anywhere around a row, is behind by no more than is said."""
    kind = np.float32 if unit == SINGLE_EPSILON else np.float64
    behind = 0
    for seed in range(12):
        w, rows, omega = drawn(seed, float(OFFSETS[seed % 3]))
        w = w.astype(kind).astype(np.float64)
        factor = omega.astype(kind).astype(np.float64) if with_omega else None
        model = PrototypeModel(np.vstack([w, np.full(w.shape[1], 1e12)]), list("ababa"), factor)
        arithmetic = Arithmetic(model, unit, form is by_products, casts=unit == SINGLE_EPSILON)
        draw = np.random.default_rng(seed)
        reach = np.abs(draw.normal(size=rows.shape)) * 10.0 ** draw.integers(0, 7)
        limits = arithmetic.blur_within(rows, reach, np.zeros(rows.shape))
        assert np.isfinite(limits).all()
        for row, far, limit in zip(rows, reach, limits, strict=True):
            near = row + far * draw.choice([-1.0, 1.0, 0.3], size=(4, len(row)))
            used = None if factor is None else factor.astype(kind)
            told = form(near.astype(kind), model.prototypes.astype(kind), used).argmin(axis=1)
            for z, k in zip(near, told, strict=True):
                exact = exact_scores(model.prototypes, factor, z)
                behind += exact[k] > min(exact)
                assert exact[k] - min(exact) <= Fraction(float(limit))
    assert behind or unit == EPSILON  # which such draws rarely confuse


def test_without_limits_nothing_is_known() -> None:
    arithmetic = Arithmetic(PrototypeModel([[0.0, 0.0], [2.0, 1.0]], [0, 1]))
    rows, none = np.zeros((2, 2)), np.zeros((2, 2))
    reach = np.array([[1.0, 1.0], [1.0, np.inf]])
    assert np.isfinite(arithmetic.blur_within(rows, reach, none)).tolist() == [True, False]


@pytest.mark.parametrize("offset", OFFSETS)
def test_blur_of_products_is_not_far_more(offset: float) -> None:
    """Of many rows, some come within a factor of a few hundred of what is allowed for."""
    worst = 0.0
    for seed in range(40):
        w, rows, _ = drawn(seed, offset)
        model = PrototypeModel(w, ["a", "b", "a", "b"])
        blur = Arithmetic(model).blur(rows)
        scores = euclidean_distances(rows, w, squared=True)
        for i, row in enumerate(rows):
            exact = exact_scores(w, None, row)
            off = float(Fraction(float(scores[i, 0] - scores[i, 1])) - (exact[0] - exact[1]))
            worst = max(worst, abs(off) / blur[i])
    assert 1e-3 < worst <= 1.0


def test_far_prototypes_do_not_count() -> None:
    near = np.array([[0.0, 0.0], [2.0, 1.0]])
    rows = np.random.default_rng(0).normal(size=(50, 2))
    for far in (1e6, 1e14, 1e20):
        with_far = np.vstack([near, [[far, far]]])
        for unit in (EPSILON, SINGLE_EPSILON):
            alone = Arithmetic(PrototypeModel(near, [0, 1]), unit).blur(rows)
            among = Arithmetic(PrototypeModel(with_far, [0, 1, 1]), unit).blur(rows)
            assert np.array_equal(alone, among)


def test_numbers_too_large_for_their_type_leave_everything_open() -> None:
    model = PrototypeModel([[0.0], [1e30]], [0, 1])
    assert np.isfinite(Arithmetic(model, SINGLE_EPSILON).blur(np.array([[1.0]]))).all()
    assert np.isinf(Arithmetic(model, SINGLE_EPSILON).blur(np.array([[5e29]]))).all()
    assert np.isfinite(Arithmetic(model, EPSILON).blur(np.array([[5e29]]))).all()


@pytest.mark.parametrize("algorithm", ["brute", "kd_tree", "ball_tree"])
def test_neighbours_compute_by_their_algorithm(algorithm: str) -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(200, 3)) + 1e4, np.arange(200) % 2
    fitted = KNeighborsClassifier(1, algorithm=algorithm).fit(X, y)
    found = arithmetic_of(fitted, as_prototype_model(fitted))
    assert found is not None
    assert found.by_products == (algorithm == "brute")
    assert (found.radii is not None) == (algorithm == "ball_tree")
    if found.radii is not None:
        # No ball but the outermost one is as large as the whole set.
        assert 0 < found.radii.min() <= found.radii.max() < np.ptp(X, axis=0).sum()


def test_a_far_row_blurs_its_ball_alone() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 2))
    X[7] = 1e14
    fitted = KNeighborsClassifier(1, algorithm="ball_tree").fit(X, np.arange(400) % 2)
    found = arithmetic_of(fitted, as_prototype_model(fitted))
    assert found is not None
    assert found.radii is not None
    assert (found.radii > 1e13).any()
    assert (found.radii < 100).any()


def test_priors_count_with_what_the_shift_leaves_open() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 4)) + 100
    y = (X[:, 0] > 100.3).astype(int)
    for shrink in (None, 0.1):
        fitted = NearestCentroid(priors="empirical", shrink_threshold=shrink).fit(X, y)
        model = as_prototype_model(fitted)
        found = arithmetic_of(fitted, model)
        assert found is not None
        blur = found.blur(X)
        score = model.distances(X)
        assert ((fitted.predict(X) == model.predict(X)) | (np.ptp(score, axis=1) <= blur)).all()
        theirs = fitted.decision_function(X)  # the second less the first
        assert (np.abs(theirs - (score[:, 0] - score[:, 1])) <= blur).all()


def test_tensors_are_products_in_their_own_precision() -> None:
    omega = Tensor(np.array([[1.0], [0.5]], dtype=np.float32))
    for kind, distance in (("GLVQ", "euclidean_distance"), ("GMLVQ", "omega_distance")):
        fitted = torch_model(kind, [[0.0, 1.0], [2.0, 3.0]], [0, 1], distance, _omega=omega)
        found = arithmetic_of(fitted, as_prototype_model(fitted))
        assert found is not None
        assert (found.unit, found.by_products, found.casts) == (SINGLE_EPSILON, True, True)


@pytest.mark.parametrize("count", [1, 9])
@pytest.mark.parametrize("offset", OFFSETS)
def test_no_tangent_distance_is_off_by_more(offset: float, count: int) -> None:
    draw = np.random.default_rng(count)
    bases = np.linalg.qr(draw.normal(size=(3, 10, count)))[0].astype(np.float32)
    w = (draw.normal(size=(3, 10)) + offset).astype(np.float32)
    rows = (draw.normal(size=(20, 10)) + offset).astype(np.float32)
    exact = [[[Fraction(float(v)) for v in line] for line in basis] for basis in bases]
    omegas = [np.eye(10) - basis @ basis.T for basis in bases.astype(np.float64)]
    model = PrototypeModel(w.astype(np.float64), [0, 1, 2], omegas)
    errors = tangent_arithmetic(model, SINGLE_EPSILON, bases, by_products=False).errors(
        rows.astype(np.float64)
    )
    away = rows[:, None, :] - w
    seen = np.einsum("npd,pds->nps", away, bases)
    told = ((away - np.einsum("nps,pds->npd", seen, bases)) ** 2).sum(axis=2)
    for i, row in enumerate(rows):
        for k in range(3):
            gap = [Fraction(float(a)) - Fraction(float(b)) for a, b in zip(row, w[k], strict=True)]
            along = [sum(g * exact[k][j][s] for j, g in enumerate(gap)) for s in range(count)]
            left = [
                g - sum(a * exact[k][j][s] for s, a in enumerate(along)) for j, g in enumerate(gap)
            ]
            off = abs(Fraction(float(told[i, k])) - sum(v * v for v in left))
            assert off <= errors[i, k]


def test_models_of_double_arrays_are_double() -> None:
    for kind, unit in ((np.float64, EPSILON), (np.float32, SINGLE_EPSILON)):
        fitted = fake(
            "sklearn_lvq.glvq",
            "GlvqModel",
            w_=np.array([[0.0], [1.0]], dtype=kind),
            c_w_=np.array([0, 1]),
        )
        found = arithmetic_of(fitted, as_prototype_model(fitted))
        assert found is not None
        assert (found.unit, found.by_products) == (unit, False)


def test_of_a_predict_of_the_users_own_the_worst_is_assumed() -> None:
    class Mine(NearestCentroid):
        def predict(self, X: Any) -> Any:
            return super().predict(X)

    fitted = Mine().fit([[0.0], [0.5], [1.0], [2.0]], [0, 0, 1, 1])
    found = arithmetic_of(fitted, as_prototype_model(fitted))
    assert found is not None
    assert (found.unit, found.by_products, found.casts) == (SINGLE_EPSILON, True, True)


def test_exact_models_have_no_arithmetic_of_their_own() -> None:
    model = PrototypeModel([[0.0], [1.0]], [0, 1])
    assert arithmetic_of(model, model) is None

"""Quadratic forms: used as given or refused, valued exactly, factored from below.

Judged by rational arithmetic that is written here a second time.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq.numeric.definiteness import metric_factor
from counterlvq.numeric.error_free import gram_residual, rounded_dot, split_product, split_sum
from counterlvq.numeric.quadratic_forms import QuadraticForm
from counterlvq.programs.conditions import QuadraticCondition
from tests.support.quick import seeds, some

UNITS = 10.0 ** np.arange(-8, 9)


def exactly(values: Any) -> list[list[Fraction]]:
    return [[Fraction(float(value)) for value in row] for row in values]


def exact_value(matrix: np.ndarray, delta: Any) -> Fraction:
    M, change = exactly(matrix), [Fraction(value) for value in delta]
    lifted = [sum((a * b for a, b in zip(row, change, strict=True)), Fraction(0)) for row in M]
    return sum((a * b for a, b in zip(lifted, change, strict=True)), Fraction(0))


def is_semidefinite(M: list[list[Fraction]]) -> bool:
    """By elimination of one variable after the other, largest diagonal entry first."""
    M = [[(a + b) / 2 for a, b in zip(row, column, strict=True)]
         for row, column in zip(M, zip(*M, strict=True), strict=True)]  # fmt: skip
    while M:
        k = max(range(len(M)), key=lambda i: M[i][i])
        pivot = M[k][k]
        if pivot <= 0:
            return not any(any(row) for row in M)
        rest = [i for i in range(len(M)) if i != k]
        M = [[M[i][j] - M[i][k] * M[k][j] / pivot for j in rest] for i in rest]
    return True


def is_from_below(matrix: np.ndarray, root: np.ndarray, share: float) -> bool:
    """Whether ``matrix - share root'root`` is positive semidefinite."""
    columns = list(zip(*exactly(root), strict=True)) or [()] * matrix.shape[0]
    gap = [
        [
            m - Fraction(share) * sum((a * b for a, b in zip(one, other, strict=True)), Fraction(0))
            for m, other in zip(row, columns, strict=True)
        ]
        for row, one in zip(exactly(matrix), columns, strict=True)
    ]
    return is_semidefinite(gap)


def drawn(seed: int) -> np.ndarray:
    """Draw a matrix: of any condition, singular, of copied columns, of odd units, or none of it."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 8))
    kind = ["condition", "whole", "copied", "inches", "product", "indefinite"][seed % 6]
    if kind == "condition":
        Q = np.linalg.qr(rng.normal(size=(d, d)))[0]
        matrix = (Q * np.logspace(0, -rng.uniform(0, 16.5), d)) @ Q.T
    elif kind == "whole":
        L = rng.integers(-5, 6, size=(int(rng.integers(1, d + 1)), d)).astype(float)
        return L.T @ L * 2.0 ** rng.integers(-30, 30)
    elif kind == "copied":
        L = rng.normal(size=(d, d)) + 2 * np.eye(d)
        at = rng.integers(0, d, size=d + 2)
        half = np.tril(L @ L.T)
        return (half + np.tril(half, -1).T)[np.ix_(at, at)]
    elif kind == "inches":
        inch = rng.normal(68, 4, 50)
        noise = 10.0 ** rng.uniform(-6, -1)
        matrix = np.linalg.inv(np.cov([inch, 2.54 * inch + noise * rng.normal(size=50)]))
        d = 2
    elif kind == "product":
        L = rng.normal(size=(int(rng.integers(1, d + 1)), d))
        matrix = L.T @ L
    else:
        matrix = rng.normal(size=(d, d))
    unit = rng.choice(UNITS, size=d)
    matrix = matrix * np.outer(unit, unit)
    return (matrix + matrix.T) / 2


@pytest.mark.parametrize("block", seeds(8, quick=3))
def test_matrix_is_accepted_if_and_only_if_it_is_semidefinite(block: int) -> None:
    accepted = refused = 0
    for seed in range(60 * block, 60 * block + 60):
        matrix = drawn(seed)
        semidefinite = is_semidefinite(exactly(matrix))
        if not semidefinite:
            with pytest.raises(clvq.InvalidInputError, match="matrix is indefinite"):
                QuadraticForm.of_matrix("matrix", matrix)
            refused += 1
            continue
        form = QuadraticForm.of_matrix("matrix", matrix)
        assert is_from_below(matrix, form.root, form.share), f"seed {seed}: no factor from below"
        assert form.share > 1 - 1e-6, f"seed {seed}: share {form.share}"
        accepted += 1
    assert accepted > 20
    assert refused > 5


@pytest.mark.parametrize("block", seeds(4, quick=2))
def test_values_are_exact_and_rounded_once_alone_and_among_others(block: int) -> None:
    """Also where the matrix nearly cancels: along its smallest eigenvector."""
    rng = np.random.default_rng(block)
    seen = 0
    for seed in range(60 * block, 60 * block + 60):
        matrix = drawn(seed)
        try:
            form = QuadraticForm.of_matrix("matrix", matrix)
        except clvq.InvalidInputError:
            continue
        d = form.width
        unit = np.sqrt(np.where(np.diag(matrix) > 0, np.diag(matrix), 1.0))
        vectors = np.linalg.eigh(matrix / np.outer(unit, unit))[1]
        near = vectors[:, 0] + 10.0 ** rng.uniform(-18, 0, size=(4, 1)) * rng.normal(size=(4, d))
        deltas = np.concatenate([rng.normal(size=(2, d)), near, np.zeros((1, d))]) / unit
        for stated in (form, QuadraticForm.of_factor("factor", form.root, d)):
            truth = matrix if stated is form else None
            values = stated.values(deltas)
            for delta, value in zip(deltas, values, strict=True):
                if truth is not None:
                    exact = exact_value(truth, delta)
                else:
                    rows, change = exactly(form.root), exactly([delta])[0]
                    exact = sum(
                        (
                            sum((a * b for a, b in zip(row, change, strict=True)), Fraction(0)) ** 2
                            for row in rows
                        ),
                        Fraction(0),
                    )
                assert value == float(exact)
                assert stated.value(delta) == value
                assert stated.values(delta[None, :])[0] == value
                assert abs(Fraction(value) - exact) <= Fraction(float(stated.value_error(value)))
                seen += 1
    assert seen > 300


def test_diagonals_need_the_memory_of_a_vector_and_are_factored_from_below() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        diagonal = rng.uniform(0, 1, 6) * rng.choice([0.0, 1e-8, 1.0, 1e8], size=6)
        form = QuadraticForm.of_diagonal("diagonal", diagonal)
        assert form.share == 1.0
        assert form.matrix is None
        assert is_from_below(np.diag(diagonal), form.root, 1.0)
        delta = rng.normal(size=6)
        exact = exact_value(np.diag(diagonal), delta)
        assert form.value(delta) == form.values(delta[None, :])[0] == float(exact)
    assert QuadraticForm.of_diagonal("wide", np.ones(100_000)).value(np.ones(100_000)) == 1e5


EXACT: dict[str, tuple[Any, Any]] = {
    "diagonal": (np.diag([4.0, 9.0, 0.0]), [[2, 0, 0], [0, 3, 0]]),
    "copied": ([[1.0, 1.0], [1.0, 1.0]], [[1, 1]]),
    "opposite": ([[1.0, -1.0], [-1.0, 1.0]], [[1, -1]]),
    "triangle": ([[4.0, 2.0], [2.0, 5.0]], [[2, 1], [0, 2]]),
    "nothing": (np.zeros((2, 2)), np.zeros((0, 2))),
}


@pytest.mark.parametrize("kind", EXACT)
def test_factor_is_exact_where_it_can_be(kind: str) -> None:
    matrix, root = EXACT[kind]
    form = QuadraticForm.of_matrix("matrix", matrix)
    assert form.share == 1.0
    assert form.root.tolist() == np.asarray(root, dtype=float).tolist()


@pytest.mark.parametrize("width", some([60, 200], quick=1))
@pytest.mark.parametrize("digits", [0, 6, 12, 15])
def test_wide_matrices_are_decided_in_floats(width: int, digits: int) -> None:
    """Wider than what is eliminated in whole numbers; judged along many directions."""
    rng = np.random.default_rng(width + digits)
    Q = np.linalg.qr(rng.normal(size=(width, width)))[0]
    matrix = (Q * np.logspace(0, -digits, width)) @ Q.T
    form = QuadraticForm.of_matrix("matrix", (matrix + matrix.T) / 2)
    assert 1 - 1e-6 < form.share <= 1
    factor = QuadraticForm.of_factor("factor", form.root, width)
    for delta in (rng.normal(size=width), Q[:, -1]):
        assert Fraction(form.share) * factor.exact_value(delta) <= form.exact_value(delta)
        assert form.value(delta) == pytest.approx(factor.value(delta), rel=1e-6)


@pytest.mark.parametrize("columns", [6, 60])
def test_ridge_that_a_refusal_names_is_enough(columns: int) -> None:
    """The pseudo-inverse of a table with a constant, a copied and a summed column."""
    refused = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(200, columns))
        X[:, 3], X[:, 4], X[:, 5] = X[:, 0], 7.1, X[:, 0] + X[:, 1] / 3
        M = np.linalg.pinv(np.cov(X.T), hermitian=True)
        M = (M + M.T) / 2
        try:
            cost = clvq.Mahalanobis(M)
        except clvq.InvalidInputError as error:
            refused += 1
            text = str(error)
            assert "add a ridge yourself (M + " in text
            code = text.split("yourself (")[1].split(" is definite)", 1)[0]
            mended = eval(code, {"M": M, "np": np})
            assert np.abs(mended - M).max() <= 1e-11 * np.abs(M).max()
            cost = clvq.Mahalanobis(mended)
            assert cost.matrix.tolist() == mended.tolist()
        assert cost.value(rng.normal(size=columns)) >= 0
    assert refused > 2


def test_factor_given_is_the_truth_and_never_refused() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        L = rng.normal(size=(2, 5)) * rng.choice(UNITS, size=5)
        cost = clvq.Mahalanobis.from_factor(L)
        delta = rng.normal(size=5) / np.abs(L).max(axis=0)
        lifted = [sum((Fraction(a) * Fraction(b) for a, b in zip(row, delta, strict=True)),
                      Fraction(0)) for row in L]  # fmt: skip
        assert cost.value(delta) == float(lifted[0] ** 2 + lifted[1] ** 2)
        again = eval(repr(cost), {"Mahalanobis": clvq.Mahalanobis})
        assert again.value(delta) == cost.value(delta)
    with pytest.raises(clvq.InvalidInputError, match=r"factor of shape \(2, 5\); expected 3 col"):
        clvq.Explainer(clvq.PrototypeModel(np.eye(3), [0, 1, 2]), cost)


def test_metric_of_a_model_is_mended_only_by_rounding() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        L = rng.normal(size=(2, 5))
        root = metric_factor("VI", L.T @ L)
        # L'L is itself rounded, by some units of its largest terms.
        rounding = 2.0**-46 * (L * L).sum(axis=0).max()
        np.testing.assert_allclose(root.T @ root, L.T @ L, rtol=0, atol=rounding)
    with pytest.raises(clvq.InvalidInputError, match="VI is indefinite"):
        metric_factor("VI", [[1.0, 2.0], [2.0, 1.0]])


# --- questions that are asked with them ---------------------------------------------------------


def test_reported_cost_is_that_of_the_matrix_given() -> None:
    """Nearly collinear columns: inches and centimetres of the same people."""
    model = clvq.PrototypeModel([[60, 152.4], [76, 193.04]], ["short", "tall"])
    for seed in range(12):
        rng = np.random.default_rng(seed)
        inch = rng.normal(68, 4, 300)
        noise = 10.0 ** rng.uniform(-6, -1)
        M = np.linalg.inv(np.cov([inch, 2.54 * inch + noise * rng.normal(size=300)]))
        M = (M + M.T) / 2
        explainer = clvq.Explainer(model, clvq.Mahalanobis(M))
        X = np.array([[60, 152.4], [61, 155.0], [64.5, 163.0]])
        batch = explainer.explain_batch(X, target="tall")
        for delta, cost in zip(batch.X - X, batch.cost, strict=True):
            assert cost == float(exact_value(M, delta))
        cf = explainer.explain(X[0], target="tall")
        assert cf.cost == float(exact_value(M, cf.delta))
        assert cf.lower_bound <= cf.cost


def stated_value(M: np.ndarray, y: Any, center: Any, linear: Any) -> Fraction:
    away = [Fraction(float(a)) - Fraction(float(b)) for a, b in zip(y, center, strict=True)]
    slope = sum((Fraction(float(a)) * Fraction(float(b)) for a, b in zip(linear, y, strict=True)),
                Fraction(0))  # fmt: skip
    return exact_value(M, away) + slope


def test_quadratic_constraints_hold_exactly_as_stated() -> None:
    answered = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        Q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        M = (Q * np.logspace(0, -rng.uniform(0, 12), 3)) @ Q.T
        M = (M + M.T) / 2
        center, linear = rng.normal(size=3), 0.1 * rng.normal(size=3)
        model = clvq.PrototypeModel(rng.normal(size=(4, 3)), [0, 1, 2, 3])
        rule = clvq.Quadratic(M, 1.0, center=center, linear=linear)
        cf = clvq.Explainer(model, clvq.Euclidean(), [rule]).explain(rng.normal(size=3))
        if cf.status.has_answer:
            answered += 1
            assert stated_value(M, cf.x, center, linear) <= 1
    assert answered > 15


def test_what_meets_a_quadratic_meets_the_condition_of_its_proofs() -> None:
    """Points on the border of what is stated, also far from the origin."""
    features, checked = clvq.Features(["a", "b", "c"]), 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        Q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        M = (Q * np.logspace(0, -rng.uniform(0, 15), 3)) @ Q.T
        M = (M + M.T) / 2
        try:
            rule = clvq.Quadratic(M, 1.0, center=rng.choice([0.0, 1.0, 1e6]) * rng.normal(size=3))
        except clvq.InvalidInputError:
            continue
        (quadric,) = rule.conditions(features)
        x = rule.center + rng.choice([0.0, 1.0, 1e3]) * rng.normal(size=3)
        moved = quadric.moved(x)
        for _ in range(5):
            direction = rng.normal(size=3)
            y = rule.center + direction / np.sqrt(float(exact_value(M, direction)))
            y = rule.center + (y - rule.center) * (1 - 1e-9)
            if stated_value(M, y, rule.center, np.zeros(3)) > 1:
                continue
            assert quadric.holds(y)
            change = [Fraction(a) - Fraction(b) for a, b in zip(y, x, strict=True)]
            assert relaxed_excess(quadric, exactly([y])[0]) <= 0
            assert relaxed_excess(moved, change) <= 0
            checked += 1
    assert checked > 100


def relaxed_excess(quadric: QuadraticCondition, y: list[Fraction]) -> Fraction:
    """Exact excess of ``|G y - g|^2 + h'y <= c`` at an exact point."""
    total = -Fraction(quadric.c)
    for row, value in zip(exactly(quadric.G), quadric.g, strict=True):
        total += (sum((a * b for a, b in zip(row, y, strict=True)), Fraction(0))
                  - Fraction(float(value))) ** 2  # fmt: skip
    return total + sum((Fraction(float(a)) * b for a, b in zip(quadric.h, y, strict=True)),
                       Fraction(0))  # fmt: skip


# --- sums and products that keep their rounding ---------------------------------------------------


def test_error_free_sums_and_products_lose_nothing() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 500)) * 10.0 ** rng.integers(-30, 30, size=(2, 500))
    for split, exact in ((split_sum, Fraction.__add__), (split_product, Fraction.__mul__)):
        high, low = split(a, b)
        for k in range(a.size):
            assert Fraction(high[k]) + Fraction(low[k]) == exact(Fraction(a[k]), Fraction(b[k]))
    for width in (0, 1, 5, 40):
        a, b = rng.normal(size=(2, width)) * 10.0 ** rng.integers(-200, 100, size=(2, width))
        exact_dot = sum((Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True)), Fraction(0))
        assert rounded_dot(a, b) == float(exact_dot)


def test_residual_of_a_factor_is_known_to_twice_the_digits() -> None:
    rng = np.random.default_rng(1)
    for n in (1, 4, 12):
        R = np.linalg.qr(rng.normal(size=(n, n)))[1]
        R = R / np.sqrt((R**2).sum(axis=0))
        high = R.T @ R
        residual, bound = gram_residual(high, np.zeros_like(high), R)
        columns = list(zip(*exactly(R), strict=True))
        for i in range(n):
            for j in range(n):
                product = sum((a * b for a, b in zip(columns[i], columns[j], strict=True)),
                              Fraction(0))  # fmt: skip
                miss = abs(Fraction(high[i, j]) - product - Fraction(residual[i, j]))
                assert miss <= Fraction(bound[i, j]) <= Fraction(1, 2**80)


@pytest.mark.parametrize("kind", ["matrix", "diagonal", "factor"])
def test_no_change_costs_nothing_among_others(kind: str) -> None:
    rng = np.random.default_rng(3)
    F, diagonal = rng.normal(size=(4, 4)), rng.uniform(size=4)
    form = {
        "matrix": QuadraticForm.of_matrix("matrix", F.T @ F),
        "diagonal": QuadraticForm(None, diagonal, None, 1.0),
        "factor": QuadraticForm(None, None, F, 1.0),
    }[kind]
    changes = np.vstack([np.zeros(4), rng.normal(size=4), -np.zeros(4), np.full(4, np.inf)])
    found = form.values(changes)
    assert found[[0, 2]].tolist() == [0.0, 0.0]
    assert found[1] == form.value(changes[1])
    assert found[1] > 0.0
    assert found[3] == np.inf

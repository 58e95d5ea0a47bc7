"""Costs that a file states in other numbers than floats work with: its claims are exact ones."""

from __future__ import annotations

import itertools
import json
import warnings
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq.certificate_files import lines
from counterlvq.certificate_files.exact_points import least_point, two_doubles
from counterlvq.certificate_files.lines import exact
from counterlvq.certificates import check_certificate as checker
from counterlvq.results import Counterfactual
from counterlvq.types import Status

Rows = list[list[float]]


def filed(explainer: clvq.Explainer, cf: Counterfactual, folder: Path) -> list[dict[str, Any]]:
    path = folder / "answer.jsonl"
    clvq.save_certificate(cf, path, explainer)
    return [json.loads(line) for line in path.read_text().splitlines()]


def verdict(header: dict[str, Any], line: dict[str, Any]) -> checker.Verdict:
    return checker.Certificate(exact(header)).check(exact(line))


def least_height(prototypes: Rows, x: list[float]) -> Fraction:
    """Largest change on the way from the cell of one of two prototypes to the other's.

    With the slope n of the difference of their squared distances b it is ``b / sum |n_j|``.
    """
    a, b = ([Fraction(v) for v in row] for row in prototypes)
    start = [Fraction(v) for v in x]
    behind = sum(((s - q) ** 2 - (s - p) ** 2 for s, p, q in zip(start, a, b, strict=True)), 0)
    return abs(behind) / sum((2 * abs(q - p) for p, q in zip(a, b, strict=True)), Fraction(0))


# --- the largest change --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prototypes", "x"),
    [
        ([[-30000.0, -3e-08], [20000.0, 0.0]], [-10000.0, 1e-08]),
        ([[-30000.0, -3e-08], [20000.0, 0.0]], [10000.0, 1e-08]),
        ([[-300.0, 1e-07], [-100.0, 1e-07]], [-200.0, -3e-07]),
        ([[1e-8, 2e8, -3.0], [2e-8, -1e8, -3.0]], [-1e-8, 1e8, 1.0]),
        ([[0.0, 0.0], [4.0, 2.0]], [0.5, 0.0]),
    ],
)
def test_largest_changes_at_scales_far_apart_are_verified(
    prototypes: Rows, x: list[float], tmp_path: Path
) -> None:
    explainer = clvq.Explainer(clvq.PrototypeModel(prototypes, ["a", "b"]), clvq.Chebyshev())
    cf = explainer.explain(x)
    assert cf.status is Status.OPTIMAL
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        header, line = filed(explainer, cf, tmp_path)
    assert line["answer"]["status"] == "optimal"
    found, least = verdict(header, line), least_height(prototypes, x)
    assert line["answer"]["lower_bound"] <= found.bound <= least <= found.cost
    (quick,) = clvq.verify_certificates(tmp_path / "answer.jsonl")
    assert quick.verified


def test_largest_changes_drawn_at_random_are_verified(tmp_path: Path) -> None:
    for seed in range(60):
        rng = np.random.default_rng(seed)
        d = 2 + seed % 3
        scales = 10.0 ** rng.integers(-8, 9, size=d)
        prototypes, x = (scales * rng.integers(-3, 4, size=size) for size in ((2, d), (1, d)))
        model = clvq.PrototypeModel(prototypes, [0, 1])
        explainer = clvq.Explainer(model, clvq.Chebyshev(rng.choice([0.5, 1.0, 3.0], d)))
        cf = explainer.explain(x[0])
        header, line = filed(explainer, cf, tmp_path)
        assert line["answer"]["status"] == str(cf.status)
        verdict(header, line)


def stated(rows: list[dict[str, Any]], weights: list[float]) -> checker.Asked:
    """What a file asks about (0, 0, 0), where the model sees the first two of three columns."""
    columns = [{"name": n, "kind": "real", "lower": None, "upper": None} for n in "abt"]
    model = {
        "classes": ["no", "yes"], "labels": [0, 1],
        "prototypes": [[0.0, 0.0, 0.0], [4.0, 0.0, 0.0]],
        "metric": {"kind": "diagonal", "factor": [1.0, 1.0, 0.0]}, "offsets": None, "map": None,
    }  # fmt: skip
    question = {
        "columns": columns,
        "cost": {"weights": weights, "switches": [], "quadratic": None},
        "constraints": rows, "margin": 0.0, "tolerance": 1e-6,
    }  # fmt: skip
    header = {"format": checker.FORMAT, "version": 1, "model": model, "question": question}
    certificate = checker.Certificate(exact(header))
    zero = [Fraction(0)] * 3
    return checker.Asked(certificate.question, zero, {1}, False, checker.Clock(60.0))


def row(new: dict[int, float], value: float = 0.0, sense: str = "<=") -> dict[str, Any]:
    table = [[c, a] for c, a in new.items()]
    return {"kind": "linear", "new": table, "old": [], "sense": sense, "value": value}


FREE = (-float("inf"), float("inf"))


@pytest.mark.parametrize(
    ("rows", "weights", "ends"),
    [
        ([row({0: 2.0, 2: -1.0}), row({0: -4.0, 2: -1.0})], [0.0, 0.0, 1.0], (-0.75, 1.5)),
        ([row({2: -1.0, 0: 2.0})], [0.0, 0.0, 3.0], (-float("inf"), 0.5)),
        ([row({0: 2.0, 2: 1.0})], [0.0, 0.0, 1.0], (-float("inf"), 1.5)),
        # Neither what leaves room, nor what ties t as well, nor what both have a price for.
        ([row({0: 2.0, 2: -1.0}, 5.0)], [0.0, 0.0, 1.0], FREE),
        ([row({0: 2.0, 2: -1.0}, sense="==")], [0.0, 0.0, 1.0], FREE),
        ([row({0: 2.0, 1: 1.0, 2: -1.0})], [0.0, 0.0, 1.0], FREE),
        ([row({0: 2.0, 2: -1.0})], [1.0, 0.0, 1.0], (-3.0, 3.0)),
        ([row({0: 2.0, 1: -1.0})], [0.0, 0.0, 1.0], FREE),
    ],
)
def test_what_costs_nothing_is_limited_by_what_is_never_less(
    rows: list[dict[str, Any]], weights: list[float], ends: tuple[float, float]
) -> None:
    box = stated(rows, weights).root_box(Fraction(3))
    assert box is not None
    assert (float(box[0][0]), float(box[1][0])) == ends


def test_any_cost_limits_nothing() -> None:
    asked = stated([row({0: 2.0, 2: -1.0}), row({0: -2.0, 2: -1.0})], [0.0, 0.0, 1.0])
    assert asked.root_box(float("inf")) == ([-float("inf")] * 3, [float("inf")] * 3)


def test_last_digits_of_what_costs_nothing_count_by_what_they_raise() -> None:
    rows = [row({0: 2.0, 2: -1.0}), row({0: -4.0, 2: -1.0}), row({1: -8.0, 2: -1.0})]
    seen, unit = stated(rows, [0.0, 0.0, 3.0]).seen, Fraction(1, 2**50)
    # Up, the first column raises the last by 2 a unit; down, by 4; the second one not upwards.
    assert seen.resolution([Fraction(5), Fraction(5), Fraction(10)]) == 3 * 10 * unit
    assert seen.resolution([Fraction(-5), Fraction(5), Fraction(20)]) == 3 * 20 * unit
    assert seen.resolution([Fraction(7), Fraction(0), Fraction(1)]) == 3 * 14 * unit


@pytest.mark.parametrize("part", ["lower_bound", "row"])
def test_more_than_is_proved_of_a_largest_change_is_refuted(part: str, tmp_path: Path) -> None:
    model = clvq.PrototypeModel([[-30000.0, -3e-08], [20000.0, 0.0]], ["a", "b"])
    explainer = clvq.Explainer(model, clvq.Chebyshev())
    header, line = filed(explainer, explainer.explain([-10000.0, 1e-08]), tmp_path)
    answer = line["answer"]
    if part == "lower_bound":
        answer["lower_bound"] = answer["cost"] * (1 + 1e-9)
    else:
        answer["row"], answer["cost"] = [-4000.0, answer["row"][1], 6000.0], 6000.0
    with pytest.raises(checker.Refused, match=r"does not follow|not shown to be optimal"):
        verdict(header, line)


# --- claims beyond what exact arithmetic shows ----------------------------------------------------

MODEL = clvq.PrototypeModel([[0.0, 0.0], [4.0, 2.0], [1.0, 5.0]], ["no", "yes", "no"])
MATRIX = [[2.0, 0.3], [0.3, 0.7]]
RESTATED = {
    "largest": (clvq.Chebyshev([1.0, 0.3]), ()),
    "matrix": (clvq.Mahalanobis(MATRIX), ()),
    "matrix of a rule": (clvq.Manhattan(), [clvq.Quadratic(MATRIX, value=11.0)]),
}


@pytest.mark.parametrize("kind", RESTATED)
@pytest.mark.parametrize("more", [1e-12, 1e-3])
def test_no_claim_is_filed_that_exact_arithmetic_does_not_show(
    kind: str, more: float, tmp_path: Path
) -> None:
    explainer = clvq.Explainer(MODEL, *RESTATED[kind])
    found = explainer.explain([0.1, 0.2], "yes")
    claimed = found.cost * (1.0 + more)
    cf = replace(found, status=Status.FEASIBLE, lower_bound=claimed)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        header, line = filed(explainer, cf, tmp_path)
    shown = verdict(header, line).bound
    # No cheaper answer than the one found was claimed before, and most of that is left.
    assert found.lower_bound * (1 - 1e-9) <= line["answer"]["lower_bound"] <= shown
    assert line["answer"]["lower_bound"] < claimed
    said = [str(each.message) for each in warned if "claim more than" in str(each.message)]
    # What the last digits take away is no news; what an answer was said to be is.
    assert len(said) == (more > 1e-7)


@pytest.mark.parametrize("spread", [1.0, 1e-9])
def test_wide_matrices_are_not_inverted_to_claim_what_is_exact(
    spread: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "QUICK_TO_INVERT", 0)
    taken = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(2, 6))
        scales = 10.0 ** rng.uniform(-6, 6, size=d)
        factor = rng.normal(size=(d - 1, d)) / scales
        matrix = factor.T @ factor + np.diag(spread / scales**2)
        shift = rng.normal(size=d) * rng.choice([1.0, 1e6])
        prototypes = scales * (rng.normal(size=(5, d)) + shift)
        model = clvq.PrototypeModel(prototypes, [0, 1, 0, 1, 1])
        rules = [clvq.Freeze("x0")] if seed % 2 else []
        explainer = clvq.Explainer(model, clvq.Mahalanobis(matrix), rules)
        cf = explainer.explain(scales * (rng.normal(size=d) + shift))
        writer = lines.Writer.of(explainer)
        line = writer.line(cf)
        taken.append("checker" not in writer.__dict__)
        assert line["answer"]["status"] == str(cf.status)
        assert line["answer"]["lower_bound"] <= verdict(writer.header(apart=False), line).bound
    # With a feature that stays as it is, and without one.
    assert (any(taken[::2]) and any(taken[1::2])) or spread < 1.0


# --- costs that hardly price some direction -------------------------------------------------------


def nearly_singular(seed: int) -> tuple[clvq.Explainer, np.ndarray] | None:
    """A matrix of which some direction costs next to nothing; None if it is not semidefinite."""
    rng = np.random.default_rng([7, seed])
    d, p = int(rng.integers(2, 6)), int(rng.integers(3, 7))
    model = clvq.PrototypeModel(rng.normal(size=(p, d)), np.arange(p) % 2, rng.normal(size=(d, d)))
    factor = rng.normal(size=(d, d))
    factor[-1] = factor[0] + 10.0 ** rng.uniform(-8, -4) * factor[-1]
    rules = [[], [clvq.Freeze("x0")], [clvq.Bounds("x1", -1.0, 1.0)]][seed % 3]
    try:
        cost = clvq.Mahalanobis(factor.T @ factor)
    except clvq.InvalidInputError:
        return None
    return clvq.Explainer(model, cost, rules), rng.normal(size=d)


def test_optimal_answers_at_nearly_singular_costs_are_filed_as_optimal(tmp_path: Path) -> None:
    """A point of doubles is not where their tangents serve: what is left of it is filed too."""
    rests = 0
    for seed in range(24):
        drawn = nearly_singular(seed)
        cf = drawn[0].explain(drawn[1]) if drawn else None
        if drawn is None or cf is None or cf.status is not Status.OPTIMAL:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            header, line = filed(drawn[0], cf, tmp_path)
        assert line["answer"]["status"] == "optimal"
        found = verdict(header, line)
        assert found.cost - found.bound <= Fraction(1e-6) * found.cost
        (quick,) = clvq.verify_certificates(tmp_path / "answer.jsonl")
        assert quick.verified
        rests += any("rest" in cell for cell in line["proof"]["cells"])
    assert rests


def least_by_faces(rows: Rows, h: list[float], low: list[float], high: list[float]) -> Fraction:
    """Least ``p'H p + h'p`` over a box, by the stationary points of all its faces."""
    d, best = len(h), None
    for face in itertools.product((-1, 0, 1), repeat=d):
        free = [j for j in range(d) if face[j] == 0]
        p = [Fraction(low[j] if face[j] < 0 else high[j]) for j in range(d)]
        A = [[2 * Fraction(rows[i][j]) for j in free] for i in free]
        b = [-Fraction(h[i]) - sum(2 * Fraction(rows[i][j]) * p[j] for j in range(d)
                                   if j not in free) for i in free]  # fmt: skip
        for n in range(len(free)):  # definite: no pivot is zero
            for m in range(len(free)):
                if m != n:
                    share = A[m][n] / A[n][n]
                    A[m] = [s - share * t for s, t in zip(A[m], A[n], strict=True)]
                    b[m] -= share * b[n]
        for n, j in enumerate(free):
            p[j] = b[n] / A[n][n]
        if all(low[j] <= p[j] <= high[j] for j in range(d)):
            value = sum(Fraction(rows[i][j]) * p[i] * p[j] for i in range(d) for j in range(d))
            value += sum(Fraction(a) * v for a, v in zip(h, p, strict=True))
            best = value if best is None else min(best, value)
    assert best is not None
    return best


@pytest.mark.parametrize("seed", range(12))
def test_the_point_at_which_a_sum_is_least_is_found_exactly(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 4))
    A = rng.normal(size=(d + 1, d)) * 10.0 ** rng.uniform(-4, 4, size=d)
    H, h = (A.T @ A).tolist(), (rng.normal(size=d) * 10.0 ** rng.uniform(-4, 4, size=d)).tolist()
    low, high = (-rng.exponential(size=d)).tolist(), rng.exponential(size=d).tolist()
    total = checker.Sum(d)
    total.h = [Fraction(v) for v in h]
    for i in range(d):
        for j in range(i, d):
            total.H[i, j] = Fraction(H[i][j]) * (1 if i == j else 2)
    box: checker.Box = ([Fraction(v) for v in low], [Fraction(v) for v in high])
    start = [Fraction(v) for v in (2 * rng.normal(size=d)).tolist()]
    p = least_point(total, box, start, checker.Clock(60.0))
    assert p is not None
    least = least_by_faces(H, h, low, high)
    assert checker.quadratic(total.H, p) + checker.dot(total.h, p) == least
    # And the tangent there shows all of it.
    assert total.least(box, p, checker.Clock(60.0)) == least
    told = two_doubles(p)
    pairs = zip(told["point"], told.get("rest", [0.0] * d), strict=True)
    near = [Fraction(a) + Fraction(b) for a, b in pairs]
    assert all(abs(a - b) <= abs(b) / 2**100 for a, b in zip(near, p, strict=True))


def test_a_sum_that_falls_without_end_has_no_such_point() -> None:
    total = checker.Sum(2)
    total.H, total.h = {(0, 0): Fraction(1)}, [Fraction(1), Fraction(0)]
    box: checker.Box = ([-float("inf")] * 2, [float("inf")] * 2)
    start = [Fraction(0)] * 2
    assert least_point(total, box, start, checker.Clock(60.0)) == [Fraction(-1, 2), 0]
    total.H = {(0, 0): Fraction(1), (0, 1): Fraction(2), (1, 1): Fraction(1)}
    assert least_point(total, box, start, checker.Clock(60.0)) is None

"""Sums over whole numbers whose common divisor forbids some of what conditions leave."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq.certificates.check_certificate import Clock, has_whole_solution
from counterlvq.certificates.divisibility import _clash, _Sum
from tests.support.certificate_corpus import told
from tests.support.quick import some
from tests.support.vipr_reader import proved

PLACES = [[1.0, 1.0], [9.0, 9.0], [3.0, 7.0], [8.0, 2.0]]
LABELS = ["no", "yes", "no", "yes"]
OMEGAS = {
    "shared": None,
    "local": [
        [[1.0, 0.2], [0.0, 0.9]],
        [[1.2, 0.0], [0.3, 1.0]],
        [[0.8, 0.1], [0.1, 1.1]],
        [[1.0, -0.2], [0.1, 0.9]],
    ],
}
COSTS = {"absolute": clvq.Manhattan(), "squared": clvq.Euclidean()}
CLASHES = [
    ["6 * a + 10 * b == 15"],
    ["6 * a - 10 * b >= 15", "6 * a - 10 * b <= 15.5"],
    ["10 * b - 6 * a <= -15", "6 * a - 10 * b <= 15.9"],
    ["0.5 * a + 1.5 * b == 0.75"],
    ["a + b == 3", "a - b == 2"],
]


def pair(step: int = 1) -> clvq.Features:
    return clvq.Features([clvq.Feature("a", "whole", step=step), clvq.Feature("b", "whole")])


def model(metrics: str) -> clvq.PrototypeModel:
    return clvq.PrototypeModel(PLACES, LABELS, omegas=OMEGAS[metrics], feature_names=["a", "b"])


@pytest.mark.parametrize("metrics", OMEGAS)
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("rules", CLASHES)
def test_a_common_divisor_is_a_reason(
    metrics: str, cost: str, rules: list[str], tmp_path: Path
) -> None:
    """Without bounds, without a time limit, and to the satisfaction of the exact checker."""
    explainer = clvq.Explainer(
        model(metrics), cost=COSTS[cost], constraints=rules, features=pair(), method="global"
    )
    for start, target in (([1, 1], "yes"), ([9, 9], "no")):
        cf = explainer.explain(start, target)
        assert cf.status == "infeasible"
        assert len(cf.conflict) == len(rules)
        path = tmp_path / "certificate.jsonl"
        clvq.save_certificate(cf, path, explainer)
        assert all(verdict.verified for verdict in clvq.verify_certificates(path))
        assert [line.split()[0] for line in told(path)] == ["VERIFIED"]


def meets(rules: tuple[float, float, float, float], a: int, b: int) -> bool:
    first, second, low, high = rules
    return bool(low <= first * a + second * b <= high)


@pytest.mark.parametrize("width", [3, 6, 10])
def test_equalities_that_clash_together_are_a_reason_at_any_width(width: int) -> None:
    rng = np.random.default_rng(width)
    places = rng.normal(size=(4, width)).round() * 3.0
    omegas = [rng.normal(size=(2, width)) for _ in range(4)]
    names = [f"x{j}" for j in range(width)]
    asked = clvq.Explainer(
        clvq.PrototypeModel(places, LABELS, omegas=omegas, feature_names=names),
        constraints=["x0 + x1 + x2 == 3", "x0 - x1 + x2 == 2"],
        features=clvq.Features([clvq.Feature(name, "whole") for name in names]),
        method="global",
    )
    cf = asked.explain(places[0] + 1.0, "yes")
    assert cf.status == "infeasible"
    assert len(cf.conflict) == 2


@pytest.mark.parametrize("seed", some(range(8), quick={0, 5}))
def test_systems_have_whole_solutions_or_none(seed: int) -> None:
    """By enumeration: of small numbers a solution is near if there is one at all."""
    rng, found = np.random.default_rng(seed), {True: 0, False: 0}
    near = np.array([*product(range(-30, 31), repeat=3)])
    for _ in range(20):
        A = rng.integers(-3, 4, size=(2, 3))
        right = rng.integers(-6, 7, size=2)
        is_there = bool((near @ A.T == right).all(axis=1).any())
        sums = [
            ({j: int(v) for j, v in enumerate(row) if v}, int(value))
            for row, value in zip(A, right, strict=True)
        ]
        assert has_whole_solution(sums, Clock(60.0)) == is_there
        told = [
            _Sum(
                {j: Fraction(v, 7) for j, v in row.items()}, Fraction(value, 7), Fraction(value, 7)
            )
            for row, value in sums
            if row
        ]
        alone = any(each.has_no_value for each in told) or any(not r and v for r, v in sums)
        assert (alone or _clash(told)) != is_there
        found[is_there] += 1
    assert min(found.values()) > 0


@pytest.mark.parametrize("metrics", OMEGAS)
@pytest.mark.parametrize("seed", some(range(6), quick={3}))
def test_what_some_whole_numbers_meet_is_never_excluded(metrics: str, seed: int) -> None:
    """By enumeration: narrow bands of sums, of which some hold values and others none."""
    rng = np.random.default_rng(seed)
    for _ in range(3):
        step = int(rng.integers(1, 4))
        first, second = (int(k) * int(rng.choice([2, 3])) for k in rng.integers(1, 7, 2))
        low = float(rng.integers(-20, 20)) + float(rng.choice([0.0, 0.25, 0.5]))
        rules = (float(first), float(second), low, low + float(rng.choice([0.0, 0.5, 1.0])))
        ends = [clvq.Bounds("a", lower=-12, upper=12), clvq.Bounds("b", lower=-12, upper=12)]
        total = f"{first} * a + {second} * b"
        said = [f"{total} >= {rules[2]}", f"{total} <= {rules[3]}"]
        asked = clvq.Explainer(model(metrics), constraints=[*ends, *said], features=pair(step))
        cf = asked.explain([0, 1], "yes")
        room = [
            (a, b)
            for a, b in product(range(-12 + 12 % step, 13, step), range(-12, 13))
            if meets(rules, a, b) and model(metrics).predict([[a, b]])[0] == "yes"
        ]
        assert (cf.status == "infeasible") == (not room)


def test_a_step_counts_where_doubles_hold_it() -> None:
    """Multiples of 5 beside whole numbers: ``a + 10 b == 3`` has no value, ``a + 3 b == 3`` has."""
    ends = clvq.Bounds("a", -100, 100)
    never = clvq.Explainer(model("local"), constraints=["a + 10 * b == 3", ends], features=pair(5))
    assert never.explain([0, 1], "yes").status == "infeasible"
    there = clvq.Explainer(model("local"), constraints=["a + 3 * b == 33"], features=pair(5))
    assert there.explain([0, 1], "yes").status == "optimal"


def test_real_numbers_and_inputs_off_the_grid_are_left_alone() -> None:
    real = clvq.Features([clvq.Feature("a", "whole"), clvq.Feature("b")])
    explainer = clvq.Explainer(model("local"), constraints=["6 * a + 10 * b == 135"], features=real)
    assert explainer.explain([1, 1.0], "yes").status == "optimal"
    off = clvq.Features([clvq.Feature("a", "whole", step=2), clvq.Feature("b", "whole", step=2)])
    explainer = clvq.Explainer(model("local"), constraints=["a + b == 17"], features=off)
    assert explainer.explain([1, 1], "yes").x.sum() == 17


def sums(n: int, most: float, cost: clvq.Manhattan | clvq.Euclidean) -> clvq.Explainer:
    """Twice a sum of n whole numbers is limited, and has to be below half of that of "yes"."""
    names = list("abcd")[:n]
    prototypes = [[0.0] * n, [-20000.0] * n]
    return clvq.Explainer(
        clvq.PrototypeModel(prototypes, ["no", "yes"], feature_names=names),
        cost,
        [clvq.Linear(dict.fromkeys(names, 2), "<=", 2 * most + 1)],
        features=clvq.Features([clvq.Feature(name, "whole") for name in names]),
    )


def least_of_sum(total: int, n: int, cost: str) -> int:
    """Cost of n whole numbers of a sum: as even as they can be, for squares."""
    if cost == "absolute":
        return abs(total)
    each, rest = divmod(abs(total), n)
    return rest * (each + 1) ** 2 + (n - rest) * each**2


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize(("n", "most"), [(2, -30001), (2, -11), (3, -30000), (4, -30000)])
def test_long_lines_of_fractions_and_of_lost_ties_take_no_boxes(
    n: int, most: int, cost: str, tmp_path: Path
) -> None:
    """``2 a + 2 b <= -60001`` holds up to -60002; of equal scores the first prototype wins."""
    explainer = sums(n, most, COSTS[cost])
    cf = explainer.explain([0.0] * n, "yes")
    assert cf.status == "optimal"
    assert cf.cost == least_of_sum(min(most, -10000 * n - 1), n, cost)
    assert sum(len(tree.prices) for tree in cf.certificate.trees) < 20
    assert explainer.verify(cf) == cf.lower_bound
    path = tmp_path / "certificate.jsonl"
    clvq.save_certificate(cf, path, explainer)
    assert all(verdict.verified for verdict in clvq.verify_certificates(path))
    assert [line.split()[0] for line in told(path)] == ["VERIFIED"]


def test_files_for_vipr_divide_rows_by_their_common_divisor(tmp_path: Path) -> None:
    sums(3, -30001, COSTS["absolute"]).explain_batch([[0.0] * 3], "yes").save_vipr(tmp_path / "p")
    (path,) = (tmp_path / "p").glob("*.vipr")
    assert 30000.999 < proved(path.read_text()).lower <= 30001


def test_inputs_off_the_grid_may_lie_between_values_of_a_sum() -> None:
    """What stays where it lies is odd: ``a + b <= 5`` holds at 5, and not at 4 only."""
    whole = clvq.Features([clvq.Feature("a", "whole", step=2), clvq.Feature("b", "whole", step=2)])
    explainer = clvq.Explainer(
        clvq.PrototypeModel([[3, 8], [3, 0]], ["no", "yes"], feature_names=["a", "b"]),
        constraints=["a + b <= 5"],
        features=whole,
    )
    rows = [[3, 8], [2, 8], [3, 8]]
    batch = explainer.explain_batch(rows, "yes")
    assert batch.X.tolist() == [[3, 2], [2, 2], [3, 2]]
    assert batch.cost.tolist() == [6, 6, 6]
    singles = [explainer.explain(row, "yes").lower_bound for row in rows]
    assert batch.lower_bound.tolist() == singles


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("seed", some(range(40), quick=8))
def test_answers_under_common_divisors_against_enumeration(
    cost: str, seed: int, tmp_path: Path
) -> None:
    """Whole prototypes and rows with common factors, ties lost and won, inputs off the grid."""
    rng = np.random.default_rng(seed)
    places, labels = rng.integers(-9, 10, (4, 2)) * rng.choice([1, 2]), ["no", "yes", "yes", "no"]
    steps = rng.choice([1, 1, 2, 3], 2)
    start = rng.integers(-6, 7, 2) * steps + (rng.random(2) < 0.2)
    factors = rng.integers(1, 4, (2, 2)) * rng.choice([-2, 2, 3, 0.5], 2)[:, None]
    most = np.rint(factors @ start + rng.integers(-9, 10, 2)) + rng.choice([0, 0.25, 0.5], 2)
    ends = [clvq.Bounds(name, -15, 15) for name in "ab"]
    rows = [
        clvq.Linear(dict(zip("ab", row, strict=True)), "<=", value)
        for row, value in zip(factors.tolist(), most.tolist(), strict=True)
    ]
    features = [clvq.Feature(n, "whole", step=int(s)) for n, s in zip("ab", steps, strict=True)]
    explainer = clvq.Explainer(
        clvq.PrototypeModel(places, labels, feature_names=["a", "b"]),
        COSTS[cost],
        [*ends, *rows],
        features=clvq.Features(features),
    )
    # An input keeps its own value where that is off the grid, but not where it is out of bounds.
    values = [
        [v for v in range(-15, 16) if v % s == 0] + ([x] if abs(x) <= 15 else [])
        for s, x in zip(steps, start, strict=True)
    ]
    for target in ("yes", "no"):
        found = []
        for point in product(*values):
            scores = ((places - np.array(point)) ** 2).sum(axis=1)  # exact: multiples of a quarter
            if labels[int(scores.argmin())] == target and (factors @ point <= most).all():
                away = np.abs(np.array(point) - start)
                found.append(away.sum() if cost == "absolute" else (away**2).sum())
        cf = explainer.explain(start, target)
        assert cf.status == ("optimal" if found else "infeasible")
        assert not found or cf.cost == min(found)
        assert cf.lower_bound <= min(found, default=np.inf)
        path = tmp_path / f"{target}.jsonl"
        clvq.save_certificate(cf, path, explainer)
        assert [line.split()[0] for line in told(path)] == ["VERIFIED"]
        batch = explainer.explain_batch([start, start], target, n_jobs=2)
        assert batch.lower_bound.tolist() == [cf.lower_bound] * 2

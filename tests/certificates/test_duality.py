"""Bounds from multipliers: never above the truth, and equal to it where the prices are exact."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from counterlvq.cells import Halfspaces
from counterlvq.certificates.duality import Grounds, Proof
from counterlvq.problem.expressions import as_constraint
from counterlvq.programs.conditions import LinearConditions, QuadraticCondition
from counterlvq.programs.grids import Grid
from counterlvq.programs.program import Multipliers, Program
from counterlvq.programs.proof_data import constraints_alone
from counterlvq.programs.template import ProgramTemplate
from counterlvq.tables.features import Features
from tests.support.quick import examples

NAN, INF = float("nan"), float("inf")
bounded = settings(max_examples=examples(100))
SPREAD = 8.0


def program(
    *,
    w: Any = (0, 0),
    L: Any = (),
    A: Any = (),
    b: Any = (),
    E: Any = (),
    e: Any = (),
    lower: Any = (-INF, -INF),
    upper: Any = (INF, INF),
    quadrics: tuple[QuadraticCondition, ...] = (),
) -> Program:
    """A program in two variables, with the reach of data that spreads over `SPREAD`."""
    return Program(
        w=np.array(w, dtype=float),
        L=np.array(L, dtype=float).reshape(-1, 2),
        A=np.array(A, dtype=float).reshape(-1, 2),
        b=np.array(b, dtype=float),
        E=np.array(E, dtype=float).reshape(-1, 2),
        e=np.array(e, dtype=float),
        lower=np.array(lower, dtype=float),
        upper=np.array(upper, dtype=float),
        quadrics=quadrics,
        reach=np.full(2, 2.0**16 * SPREAD),
        blur=np.zeros(len(b) + len(e)),
    )


def grounds(case: Program) -> Grounds:
    """The same conditions, as an explainer would hand them to whoever checks a proof."""

    def rows(A: np.ndarray, v: np.ndarray, *, equality: bool = False) -> LinearConditions:
        return LinearConditions(A, np.zeros_like(A), v, equality)

    above, below = np.isfinite(case.upper), np.isfinite(case.lower)
    sides = np.concatenate([np.eye(2)[above], -np.eye(2)[below]])
    ends = np.concatenate([case.upper[above], -case.lower[below]])
    template = ProgramTemplate(
        case.w,
        case.L,
        rows(case.A, case.b),
        rows(case.E, case.e, equality=True),
        rows(sides, ends),
        rows(np.zeros((0, 2)), np.zeros(0), equality=True),
        case.quadrics,
        (),
        Grid.none(2),
    )
    return Grounds(constraints_alone(template), None, case.quadrics, np.zeros(2))


@dataclass(frozen=True)
class Evidence:
    program: Program
    multipliers: Multipliers
    point: np.ndarray

    @property
    def proof(self) -> Proof:
        return Proof.without_rivals(self.multipliers, self.point)


def lower_bound(evidence: Evidence, cap: float) -> float:
    """The better of the two: in floats, and in fractions."""
    held = grounds(evidence.program)
    bound = held.lower_bound(evidence.proof, cap)
    return max(bound, held.exact_lower_bound(evidence.proof, cap))


def contradicts(evidence: Evidence) -> bool:
    held = grounds(evidence.program)
    least = held.exact_least(evidence.proof, 0.0, INF, with_cost=False)
    return held.contradicts(evidence.proof) or (least is not None and least.value > 0)


def prices(y: Any = (), z: Any = (), nu: Any = ()) -> Multipliers:
    return Multipliers(*(np.array(values, dtype=float) for values in (y, z, nu)))


def ball(center: Any, square: float) -> QuadraticCondition:
    return QuadraticCondition(np.eye(2), np.array(center, dtype=float), np.zeros(2), square)


# --- drawn programs, small and whole-numbered ---------------------------------------------------

whole = st.integers(-3, 3)
pairs = st.tuples(whole, whole)


@st.composite
def programs(draw: st.DrawFn, curved: bool = True) -> Program:
    rows = draw(st.lists(pairs, max_size=4))
    equal = draw(st.lists(pairs, max_size=1))
    low, high = (
        draw(st.tuples(*[st.sampled_from([-INF, -4, -1, 0, 1])] * 2)),
        draw(st.tuples(*[st.sampled_from([INF, 4, 1, 2])] * 2)),
    )
    square = draw(st.lists(pairs, max_size=2)) if curved else []
    quadrics = ()
    if curved and draw(st.booleans()):
        h = np.array(draw(pairs), dtype=float)
        G = np.array(draw(st.lists(pairs, min_size=1, max_size=2)), dtype=float)
        g = np.array(draw(st.tuples(*[whole] * len(G))), dtype=float)
        quadrics = (QuadraticCondition(G, g, h, float(draw(st.integers(-2, 9)))),)
    return program(
        w=draw(st.tuples(*[st.integers(0, 3)] * 2)),
        L=square,
        A=rows,
        b=draw(st.tuples(*[st.integers(-6, 6)] * len(rows))),
        E=equal,
        e=draw(st.tuples(*[st.integers(-6, 6)] * len(equal))),
        lower=low,
        upper=high,
        quadrics=quadrics,
    )


sane = st.floats(-8, 8)
wild = sane | st.sampled_from([NAN, INF, -INF, -1.0, 1e-300, 1e9, 1e30, 1e160, 1e308, -1e308])


def some_prices(case: Program, values: st.SearchStrategy[float]) -> st.SearchStrategy[Multipliers]:
    sizes = (case.b.size, case.e.size, len(case.quadrics))
    parts = [st.lists(values, min_size=size, max_size=size) for size in sizes]
    return st.builds(prices, *parts)


GRID = np.array(list(product(np.arange(-24, 25) / 4, repeat=2)))


def cheapest_on_grid(case: Program) -> float:
    """An upper bound of the optimum; quarters are exact, so feasibility is decided exactly."""
    kept = (case.lower <= GRID).all(axis=1) & (case.upper >= GRID).all(axis=1)
    kept &= (case.b >= GRID @ case.A.T).all(axis=1) & (case.e == GRID @ case.E.T).all(axis=1)
    for quadric in case.quadrics:
        lifted = GRID @ quadric.G.T - quadric.g
        kept &= (lifted**2).sum(axis=1) + GRID @ quadric.h <= quadric.c
    costs = np.abs(GRID) @ case.w + ((GRID @ case.L.T) ** 2).sum(axis=1)
    return float(costs[kept].min(initial=INF))


def optimum_by_linprog(case: Program) -> float:
    """The exact optimum of a program without squares; inf if nothing is feasible."""
    rows = np.vstack([case.A, np.eye(2), -np.eye(2)])
    right = np.concatenate([case.b, case.upper, -case.lower])
    rows, right = rows[right < INF], right[right < INF]
    split = {
        "A_ub": np.hstack([rows, -rows]) if right.size else None,
        "b_ub": right if right.size else None,
        "A_eq": np.hstack([case.E, -case.E]) if case.e.size else None,
        "b_eq": case.e if case.e.size else None,
    }
    result = linprog(np.tile(case.w, 2), **split, bounds=(0, None), method="highs")
    assert result.status in (0, 2), result.message
    return float(result.fun) if result.status == 0 else INF


# --- never too high -----------------------------------------------------------------------------


@bounded
@given(programs(), st.data())
def test_bound_is_below_every_feasible_point(case: Program, data: st.DataObject) -> None:
    best = cheapest_on_grid(case)
    assume(best < INF)
    evidence = Evidence(case, data.draw(some_prices(case, sane)), np.array(data.draw(pairs)) / 2)
    cap = data.draw(st.sampled_from([INF, best, 1.5 * best + 1, 1e6]))

    assert lower_bound(evidence, cap) <= best


@bounded
@given(programs(), st.data())
def test_bound_is_below_every_feasible_point_for_mad_multipliers(
    case: Program, data: st.DataObject
) -> None:
    best = cheapest_on_grid(case)
    assume(best < INF)
    point = np.array(data.draw(st.tuples(wild, wild)))
    evidence = Evidence(case, data.draw(some_prices(case, wild)), point)
    cap = data.draw(st.sampled_from([INF, best, 1.5 * best + 1]))

    bound = lower_bound(evidence, cap)

    assert 0 <= bound <= best


@bounded
@given(programs(curved=False), st.data())
def test_bound_is_below_the_linear_program(case: Program, data: st.DataObject) -> None:
    optimum = optimum_by_linprog(case)
    assume(optimum < INF)
    evidence = Evidence(case, data.draw(some_prices(case, wild)), np.zeros(2))
    assert lower_bound(evidence, INF) <= optimum * (1 + 1e-9) + 1e-9


@bounded
@given(programs(), st.data())
def test_bound_never_exceeds_its_cap(case: Program, data: st.DataObject) -> None:
    evidence = Evidence(case, data.draw(some_prices(case, wild)), np.zeros(2))
    cap = data.draw(st.sampled_from([0.0, 0.5, 3.0]))
    assert 0 <= lower_bound(evidence, cap) <= cap


@bounded
@given(programs(), st.data())
def test_negative_prices_count_as_none(case: Program, data: st.DataObject) -> None:
    drawn = data.draw(some_prices(case, sane))
    cleaned = Multipliers(np.maximum(drawn.y, 0), drawn.z, np.maximum(drawn.nu, 0))
    point = np.array(data.draw(pairs), dtype=float)
    bounds = [lower_bound(Evidence(case, each, point), 50.0) for each in (drawn, cleaned)]
    assert bounds[0] == bounds[1]


def far_away(text: str) -> Program:
    """A program whose only solutions lie far outside the data, as an explainer would state it."""
    features = Features(["u", "v"])
    conditions = as_constraint(text).conditions(features)
    template = ProgramTemplate.of(np.ones(2), np.zeros((0, 2)), conditions)
    return template.at(np.zeros(2), Halfspaces.none(2), np.full(2, SPREAD))


@pytest.mark.parametrize("price", [1e-9, 1.0, 2.0, 1e3, 1e9])
@pytest.mark.parametrize("distance", [1e3, 1e6, 1e9, 1e15])
def test_what_lies_far_outside_the_data_is_still_not_denied(distance: float, price: float) -> None:
    case = far_away(f"u + v >= {distance:.0f}")
    evidence = Evidence(case, prices([price]), np.zeros(2))
    assert not contradicts(evidence)
    assert lower_bound(evidence, INF) <= distance


# --- exact prices, exact bound ------------------------------------------------------------------

# 4u + 2v >= 10, as in the catalogue of problems.
BEYOND = {"A": [[-4, -2]], "b": [-10]}
L1, L2 = {"w": (1, 1)}, {"L": np.eye(2)}
HAND: dict[str, tuple[Program, Multipliers, tuple[float, float], float]] = {
    # 1 = 4y for the cheaper feature.
    "l1": (program(**L1, **BEYOND), prices([1 / 4]), (0, 0), 2.5),
    # 2 (2, 1) = y (4, 2).
    "l2": (program(**L2, **BEYOND), prices([1]), (2, 1), 5.0),
    # u stops at 1, v pays 1 = 2y.
    "l1, u <= 1": (program(**L1, **BEYOND, upper=(1, INF)), prices([1 / 2]), (0, 0), 4.0),
    "l2, u <= 1": (program(**L2, **BEYOND, upper=(1, INF)), prices([3]), (1, 3), 10.0),
    # u = v: (1, 1) = y (4, 2) - z (1, -1).
    "l1, u == v": (
        program(**L1, **BEYOND, E=[[1, -1]], e=[0]),
        prices([1 / 3], [1 / 3]),
        (0, 0),
        10 / 3,
    ),
    # (10/3, 10/3) = y (4, 2) - z (1, -1).
    "l2, u == v": (
        program(**L2, **BEYOND, E=[[1, -1]], e=[0]),
        prices([10 / 9], [10 / 9]),
        (5 / 3, 5 / 3),
        50 / 9,
    ),
    # Answer (1.6, 1.8): (1, 1) = 0.35 (4, 2) - 0.125 (3.2, -2.4).
    "l1 in a ball": (
        program(**L1, **BEYOND, quadrics=(ball((0, 3), 4),)),
        prices([0.35], nu=[0.125]),
        (1.6, 1.8),
        3.4,
    ),
    # (3.2, 3.6) = 1.2 (4, 2) - 0.5 (3.2, -2.4).
    "l2 in a ball": (
        program(**L2, **BEYOND, quadrics=(ball((0, 3), 4),)),
        prices([1.2], nu=[0.5]),
        (1.6, 1.8),
        5.8,
    ),
    # (u + v)^2 with v >= -1: at (3, -1), 2 (u + v) = 4 = 4y.
    "flat cost": (program(L=[[1, 1]], **BEYOND, lower=(-INF, -1)), prices([1]), (3, -1), 4.0),
    # Weights and squares at once: |u| + |v| + u^2 + v^2 at (2, 1) costs 8; the gradient (5, 3)
    # is no multiple of (4, 2). At (11/5, 3/5) it is (27/5, 11/5); solve 1 + 2u = 4y, 1 + 2v = 2y
    # with 4u + 2v = 10: y = 1.3, u = 2.1, v = 0.8.
    "both": (program(**L1, **L2, **BEYOND), prices([1.3]), (2.1, 0.8), 2.9 + 4.41 + 0.64),
    "nothing to do": (program(**L1, A=[[-4, -2]], b=[3]), prices([0]), (0, 0), 0.0),
}


@pytest.mark.parametrize("kind", HAND)
def test_exact_prices_give_the_exact_optimum(kind: str) -> None:
    case, multipliers, point, optimum = HAND[kind]
    evidence = Evidence(case, multipliers, np.array(point, dtype=float))
    for cap in (optimum, 2 * optimum + 1):
        bound = lower_bound(evidence, cap)
        assert bound <= optimum
        assert bound == pytest.approx(optimum, rel=1e-12, abs=1e-12)
    # Without a known answer nothing limits a change, and the prices have to be exact.
    assert lower_bound(evidence, INF) == pytest.approx(optimum, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("kind", [kind for kind in HAND if kind != "nothing to do"])
@pytest.mark.parametrize("factor", [0.0, 0.5, 0.99, 1.01, 2.0, 100.0])
def test_other_prices_give_a_weaker_bound(kind: str, factor: float) -> None:
    case, exact, point, optimum = HAND[kind]
    off = Multipliers(factor * exact.y, factor * exact.z, factor * exact.nu)
    bound = lower_bound(Evidence(case, off, np.array(point)), 2 * optimum)
    assert 0 <= bound < optimum


@pytest.mark.parametrize("kind", HAND)
def test_conditions_that_can_be_met_are_no_contradiction(kind: str) -> None:
    case, exact, point, _ = HAND[kind]
    for factor in (1e-3, 1.0, 1e3):
        scaled = Multipliers(factor * exact.y, factor * exact.z, factor * exact.nu)
        assert not contradicts(Evidence(case, scaled, np.array(point, dtype=float)))


# --- contradictions -----------------------------------------------------------------------------

CLASHES: dict[str, tuple[Program, Multipliers, tuple[float, float]]] = {
    "two rows": (program(A=[[1, 0], [-1, 0]], b=[1, -2]), prices([1, 1]), (0, 0)),
    "three rows": (
        program(A=[[1, 0], [0, 1], [-1, -1]], b=[1, 1, -3]),
        prices([1, 1, 1]),
        (0, 0),
    ),
    "two equalities": (program(E=[[1, 1], [1, 1]], e=[1, 2]), prices(z=[1, -1]), (0, 0)),
    "a row and a box": (program(A=[[-1, -1]], b=[-3], upper=(1, 1)), prices([1]), (0, 0)),
    "a zero row": (program(A=[[0, 0]], b=[-1]), prices([1]), (0, 0)),
    "a ball and a wall": (
        program(A=[[-1, 0]], b=[-2], quadrics=(ball((0, 0), 1),)),
        prices([2], nu=[1]),
        (1, 0),
    ),
    "a ball and a wall across, roughly": (
        program(A=[[-1, -1]], b=[-3], quadrics=(ball((0, 0), 1),)),
        prices([1.4], nu=[1]),
        (0.7, 0.71),
    ),
    "an empty ball": (program(quadrics=(ball((0, 0), -1),)), prices(nu=[1]), (0, 0)),
    "a box that is empty": (program(lower=(2, 0), upper=(1, 0)), prices(), (0, 0)),
}


@pytest.mark.parametrize("kind", CLASHES)
def test_prices_show_a_contradiction(kind: str) -> None:
    case, multipliers, point = CLASHES[kind]
    assert contradicts(Evidence(case, multipliers, np.array(point, dtype=float)))


@pytest.mark.parametrize("kind", [kind for kind in CLASHES if kind != "a box that is empty"])
def test_no_prices_show_nothing(kind: str) -> None:
    case, _, point = CLASHES[kind]
    none = Evidence(case, Multipliers.none(case), np.array(point, dtype=float))
    assert not contradicts(none)


@bounded
@given(programs(), st.data())
def test_contradiction_never_speaks_against_a_feasible_point(
    case: Program, data: st.DataObject
) -> None:
    assume(cheapest_on_grid(case) < INF)
    point = np.array(data.draw(st.tuples(wild, wild)))
    evidence = Evidence(case, data.draw(some_prices(case, wild)), point)
    assert not contradicts(evidence)


@bounded
@given(programs(curved=False), st.data())
def test_contradiction_only_where_a_linear_program_finds_none(
    case: Program, data: st.DataObject
) -> None:
    evidence = Evidence(case, data.draw(some_prices(case, wild)), np.zeros(2))
    if contradicts(evidence):
        assert optimum_by_linprog(case) == INF


@bounded
@given(programs(curved=False))
def test_contradiction_is_found_by_the_prices_of_least_violation(case: Program) -> None:
    """Prices from an independent solver suffice wherever nothing is feasible."""
    assume(not case.has_empty_box() and optimum_by_linprog(case) == INF)
    evidence = Evidence(case, least_violation_prices(case), np.zeros(2))
    assert contradicts(evidence)


def least_violation_prices(case: Program) -> Multipliers:
    m, k = case.b.size, case.e.size
    slack_A = np.hstack([-np.eye(m), np.zeros((m, 2 * k))])
    slack_E = np.hstack([np.zeros((k, m)), np.eye(k), -np.eye(k)])
    box = list(zip(case.lower, case.upper, strict=True)) + [(0, None)] * (m + 2 * k)
    result = linprog(
        np.concatenate([np.zeros(2), np.ones(m + 2 * k)]),
        A_ub=np.hstack([case.A, slack_A]) if m else None,
        b_ub=case.b if m else None,
        A_eq=np.hstack([case.E, slack_E]) if k else None,
        b_eq=case.e if k else None,
        bounds=box,
        method="highs",
    )
    return prices(-result.ineqlin.marginals, -result.eqlin.marginals)


# --- small parts --------------------------------------------------------------------------------


@bounded
@given(programs(), st.sampled_from([0.0, 0.5, 4.0, 30.0]))
def test_box_of_a_cost_holds_every_change_that_is_no_dearer(case: Program, cap: float) -> None:
    lower, upper = grounds(case).box(cap)
    costs = np.array([case.cost(delta) for delta in GRID[::7]])
    inside = (GRID[::7] >= case.lower).all(axis=1) & (GRID[::7] <= case.upper).all(axis=1)
    cheap = GRID[::7][inside & (costs <= cap)]
    assert (cheap >= lower).all()
    assert (cheap <= upper).all()


def test_box_of_a_cost_limits_what_costs() -> None:
    lower, upper = grounds(program(w=(2, 0), lower=(-1, -7))).box(10.0)
    np.testing.assert_allclose(lower, [-1, -7])
    np.testing.assert_allclose(upper, [5, INF], rtol=1e-8)
    square = grounds(program(L=np.diag([2.0, 0.5]))).box(16.0)[1]
    np.testing.assert_allclose(square, [2, 8], rtol=1e-8)
    correlated = grounds(program(L=[[1.0, 1.0], [0.0, 1.0]])).box(9.0)[1]
    np.testing.assert_allclose(correlated, [3 * np.sqrt(2), 3], rtol=1e-8)
    assert np.array_equal(grounds(program(w=(1, 1))).box(INF)[1], [INF, INF])


def test_multipliers_of_the_wrong_number_are_an_error() -> None:
    case = program(w=(1, 1), quadrics=(ball((0, 0), 1),))
    with pytest.raises(ValueError, match="zip"):
        lower_bound(Evidence(case, prices(), np.zeros(2)), 1.0)


def test_evidence_about_another_program_is_weak_and_not_wrong() -> None:
    """Prices found for one right-hand side, used for another, still bound from below."""
    case, multipliers, point, optimum = HAND["l2 in a ball"]
    for shift in np.linspace(-4, 4, 9):
        other = replace(case, b=case.b + shift)
        best = cheapest_on_grid(other)
        assert lower_bound(Evidence(other, multipliers, np.array(point)), INF) <= best
    assert optimum == 5.8

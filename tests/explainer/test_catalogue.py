"""Every problem of the catalogue, answered by the package and judged by the oracles."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.support import oracles
from tests.support.catalogue import ALPHABETS, FEASIBLE, INFEASIBLE, PROBLEMS, Problem
from tests.support.oracles import Absolute, Ellipsoid, Row, Squared
from tests.support.quick import some

RELATIVE = 1e-6


def named(problems):
    return pytest.mark.parametrize("problem", problems, ids=lambda problem: problem.name)


def has_ellipsoid(problem: Problem) -> bool:
    return any(isinstance(c, Ellipsoid) for rule in problem.rules for c in rule.plain)


@cache
def truth(problem: Problem) -> float:
    """The least cost by the oracles, looked for once."""
    return oracles.optimal_cost(problem.question())


# What both linear oracles can answer, for comparisons with the slower ones.
STRAIGHT = [problem for problem in FEASIBLE if not has_ellipsoid(problem)]


def one_alphabet_each() -> list[Problem]:
    """One problem of those that differ in the type of their labels alone; all others."""
    alike: dict[str, list[Problem]] = {}
    for problem in FEASIBLE:
        kind, _, rest = problem.name.partition("-")
        alike.setdefault(rest if kind in ALPHABETS else problem.name, []).append(problem)
    return [same[k % len(same)] for k, same in enumerate(alike.values())]


def a_few(problems: list[Problem]) -> list[Any]:
    """Every fourth of them by default, where oracles are compared with each other."""
    return some(problems, quick=problems[::4])


# --- the package --------------------------------------------------------------------------------


@named(some(FEASIBLE, quick=one_alphabet_each()))
def test_answer_is_valid_and_the_cheapest_and_agrees_with_itself(problem: Problem) -> None:
    question = problem.question()
    optimum, floor = truth(problem), question.floor

    cf = problem.explainer().explain(problem.x, target=problem.target)
    point = np.asarray(cf.x, dtype=float)
    moved = point - problem.x

    # It is the cheapest.
    assert cf.status == "optimal"
    assert cf.cost == pytest.approx(optimum, rel=RELATIVE, abs=floor)
    assert cf.lower_bound <= optimum * (1 + 1e-9) + floor
    assert cf.cost - cf.lower_bound <= RELATIVE * cf.cost + floor
    # It is valid by the rule itself.
    assert oracles.reaches_target(question, point)[0]
    assert cf.prediction in problem.targets
    assert question.is_target[cf.prototype]
    assert oracles.violated(question.constraints, point) == []
    # It agrees with itself.
    assert np.array_equal(np.asarray(cf.delta, dtype=float), moved)
    assert cf.cost == pytest.approx(float(question.cost.value(moved)), rel=1e-9, abs=1e-3 * floor)
    assert cf.lower_bound <= cf.cost * (1 + 1e-9) + 1e-3 * floor


@named(INFEASIBLE)
def test_conflict_is_irreducible_and_the_users_own(problem: Problem) -> None:
    cf = problem.explainer().explain(problem.x, target=problem.target)

    assert cf.status == "infeasible"
    blamed = [_position(problem, item) for item in cf.conflict]
    assert len(set(blamed)) == len(blamed)
    if problem.conflict:
        assert sorted(blamed) == list(problem.conflict)
    assert_irreducible(problem, blamed)


def _position(problem: Problem, item: object) -> int:
    """Where the very object that was passed in stands among the rules."""
    found = [k for k, rule in enumerate(problem.rules) if rule.public is item]
    assert found, f"{item!r} is not one of the constraints that were given"
    return found[0]


def assert_irreducible(problem: Problem, blamed: list[int]) -> None:
    assert oracles.optimal_cost(problem.question(blamed)) == np.inf
    for k in blamed:
        rest = [other for other in blamed if other != k]
        assert oracles.optimal_cost(problem.question(rest)) < np.inf


# --- the oracles among themselves ---------------------------------------------------------------


def test_names_are_unique() -> None:
    assert len({problem.name for problem in PROBLEMS}) == len(PROBLEMS)


@named([problem for problem in FEASIBLE if problem.optimum is not None])
def test_oracle_finds_what_was_solved_by_hand(problem: Problem) -> None:
    floor = problem.question().floor
    assert truth(problem) == pytest.approx(problem.optimum, rel=1e-8, abs=1e-3 * floor)


@named([problem for problem in INFEASIBLE if problem.conflict])
def test_oracle_finds_the_conflict_solved_by_hand(problem: Problem) -> None:
    assert truth(problem) == np.inf
    assert_irreducible(problem, list(problem.conflict))


def _has_a_grid(problem: Problem) -> bool:
    question = problem.question()
    flat = any(isinstance(c, Row) and c.sense == "==" for c in question.constraints)
    thin = problem.name.startswith("sliver")
    free = isinstance(question.cost, Squared) and not question.cost.definite
    return problem.x.size <= 2 and not (flat or thin or free)


@named(a_few([problem for problem in FEASIBLE if _has_a_grid(problem)]))
def test_grid_comes_close_to_the_oracle_and_never_below(problem: Problem) -> None:
    question, optimum = problem.question(), truth(problem)
    found = oracles.grid_bound(question, budget=1.2 * optimum + 1e3 * question.floor)
    assert optimum <= found * (1 + 1e-9) + question.floor
    assert found <= optimum * (1 + 1e-3) + question.floor


@named(a_few([problem for problem in STRAIGHT if problem.name.startswith(("int-", "three-"))]))
def test_conic_oracle_agrees_with_the_others(problem: Problem) -> None:
    question = problem.question()
    for i, cost in oracles.cell_costs(question).items():
        other = oracles.conic_program(question, i)
        assert other == pytest.approx(cost, rel=1e-7, abs=question.floor)


@named(
    a_few(
        [
            problem
            for problem in STRAIGHT
            if problem.name.startswith(("plane-l", "both-", "huge-l", "tiny-l"))
        ]
    )
)
def test_fast_oracles_agree_with_exact_arithmetic(problem: Problem) -> None:
    question = problem.question()
    for i in np.flatnonzero(question.is_target):
        fast = oracles.fast_oracle(question)(question, i)
        exact = oracles.enumeration(question, i)
        assert fast == pytest.approx(exact, rel=1e-8, abs=1e-3 * question.floor)


@named(
    a_few([problem for problem in FEASIBLE if problem.name.startswith(("str-", "ten-", "omega-"))])
)
def test_no_random_point_beats_the_oracle(problem: Problem) -> None:
    question = problem.question()
    found = oracles.sampled_bound(question, seed=1)
    assert found >= truth(problem) * (1 - 1e-8) - question.floor


def test_an_oracle_without_a_matching_dual_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = next(problem for problem in FEASIBLE if problem.name == "plane-l1-free")
    assert isinstance(problem.price.plain, Absolute)
    honest = oracles.linprog

    def overpriced(*args, **kwargs):
        result = honest(*args, **kwargs)
        result.fun *= 1.01
        return result

    monkeypatch.setattr(oracles, "linprog", overpriced)
    with pytest.raises(oracles.OracleError, match="disagree"):
        oracles.optimal_cost(problem.question())

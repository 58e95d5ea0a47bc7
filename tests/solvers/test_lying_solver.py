"""Solvers that lie: what they claim is checked, so the user never sees it as a fact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq import solvers
from counterlvq.programs.kernel_data import KernelData
from counterlvq.programs.program import Multipliers, Program
from counterlvq.programs.proof_data import ProofData
from counterlvq.solvers import Outcome, Solution, Solver, compiled
from tests.support import catalogue, oracles
from tests.support.catalogue import Problem

honest_select, honest_run = solvers.select, compiled.run

# --- how the lies get in ------------------------------------------------------------------------


class Liar:
    """A solver that counts how often it was believed enough to be asked."""

    def __init__(self, solver: Solver) -> None:
        self.solver, self.calls = solver, 0

    def __call__(self, program: Program) -> Solution:
        self.calls += 1
        return self.solver(program)


def lying(monkeypatch: pytest.MonkeyPatch, solver: Solver) -> Liar:
    """Put `solver` in the place of every engine."""
    liar = Liar(solver)
    monkeypatch.setattr(solvers, "select", lambda program: solvers.Choice(liar, "a liar"))
    monkeypatch.setattr(compiled, "run", gives_up)
    not_at_once(monkeypatch)
    return liar


def not_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rows be searched for: those answered at once need no engine but the kernel."""
    monkeypatch.setattr(clvq.Explainer, "answered_at_once", lambda *given: None)


def gives_up(family: KernelData, stated: ProofData, X: np.ndarray, *_: object) -> compiled.Answers:
    """Leave every row to the other engines."""
    n = X.shape[0]
    failed = np.full(n, int(compiled.Code.FAILED))
    return compiled.Answers(np.full(X.shape, np.nan), np.full(n, np.nan), np.zeros(n), failed)


Lie = Callable[[compiled.Answers, compiled.Scratch], None]


def lying_kernel(monkeypatch: pytest.MonkeyPatch, lie: Lie) -> None:
    """Let the compiled kernel run, then change what it wrote down."""

    def run(
        family: KernelData,
        stated: ProofData,
        X: np.ndarray,
        margin: float | None,
        scratch: compiled.Scratch,
        *rest: object,
    ) -> compiled.Answers:
        answers = honest_run(family, stated, X, margin, scratch, *rest)
        lie(answers, scratch)
        return answers

    monkeypatch.setattr(compiled, "run", run)
    not_at_once(monkeypatch)


def kernel_lying_at_once(monkeypatch: pytest.MonkeyPatch, lie: Lie) -> list[int]:
    """Let the kernel lie where a row is answered at once, and only there; return its calls."""
    honest, calls = compiled.kernel_for, []

    def kernel_for(family: KernelData) -> Callable[..., None]:
        def answer_rows(*given: Any) -> None:
            honest(family)(*given)
            *_, scratch, Y, cost, bound, code = given
            lie(compiled.Answers(Y, cost, bound, code), scratch)
            calls.append(1)

        return answer_rows

    monkeypatch.setattr(compiled, "kernel_for", kernel_for)
    monkeypatch.setattr(compiled, "run", partial(_honestly_run, honest))
    return calls


def _honestly_run(kernel_for: Callable[..., Any], *given: Any, **named: Any) -> compiled.Answers:
    lying, compiled.kernel_for = compiled.kernel_for, kernel_for
    try:
        return honest_run(*given, **named)
    finally:
        compiled.kernel_for = lying


# --- requests, with their truth from the oracles ------------------------------------------------


def requests() -> list[Problem]:
    W, labels, x = np.array([[0.0, 0.0], [4.0, 2.0]]), ["a", "b"], np.zeros(2)
    rng = np.random.default_rng(7)
    many, classes = rng.normal(size=(9, 3)), [0, 1, 2] * 3
    rules = {
        "free": (),
        "bounds": (catalogue.bounds(0, -7, 1),),
        "frozen": (catalogue.freeze(x, 0),),
        "row": (catalogue.linear(2, {0: 1, 1: 1}, "<=", 2),),
        "equality": (catalogue.linear(2, {0: 1, 1: -1}, "==", 0),),
        "ball": (catalogue.ellipsoid(2, np.eye(2), 4.0, [0, 3]),),
        "box": (catalogue.bounds(0, -1, 1), catalogue.bounds(1, upper=2.5)),
        "all frozen": (catalogue.freeze(x, 0, 1),),
        "small sum": (
            catalogue.increase(x, 1),
            catalogue.linear(2, {0: 1, 1: 1}, "<=", 1),
        ),
        "small ball": (catalogue.ellipsoid(2, np.eye(2), 1.0, [0, 0]),),
        "far": (catalogue.linear(2, {0: 1, 1: 1}, ">=", 1e9),),
    }
    out = []
    for cost, price in (catalogue.L1, catalogue.L2):
        for name, rule in rules.items():
            out.append(Problem(f"{name}-{cost}", W, labels, x, "b", price(2), rule))
        frozen = (catalogue.freeze(many[0], 2),)
        out.append(Problem(f"many-{cost}", many, classes, many[0], 2, price(3)))
        out.append(Problem(f"many-frozen-{cost}", many, classes, many[0], None, price(3), frozen))
    return out


REQUESTS = requests()
each_part = pytest.mark.parametrize("part", range(8))  # of the requests
each_request = pytest.mark.parametrize("problem", REQUESTS, ids=lambda problem: problem.name)


# An empty box needs no solver to be seen.
NO_SOLVER_NEEDED = ("all frozen-l1", "all frozen-l2")


@cache
def explainer(problem: Problem) -> clvq.Explainer:
    return problem.explainer()


def answered(problem: Problem) -> clvq.Counterfactual:
    return explainer(problem).explain(problem.x, target=problem.target)


@cache
def truth(problem: Problem) -> float:
    return oracles.optimal_cost(problem.question())


def assert_no_lie_reached_the_user(problem: Problem, cf: clvq.Counterfactual) -> None:
    question, optimum = problem.question(), truth(problem)
    room = 1e-9 * optimum + question.floor if optimum < np.inf else 0.0
    if cf.status.has_answer:
        assert oracles.reaches_target(question, cf.x)[0]
        assert oracles.violated(question.constraints, cf.x) == []
        assert cf.prediction in problem.targets
        paid = float(question.cost.value(cf.x - problem.x))
        assert cf.cost == pytest.approx(paid, rel=1e-9, abs=1e-3 * question.floor)
        assert cf.lower_bound <= optimum + room
        assert cf.gap >= 0
    if cf.status == "optimal":
        assert cf.cost == pytest.approx(optimum, rel=1e-6, abs=question.floor)
    if cf.status == "infeasible":
        assert optimum == np.inf
    if cf.status == "unknown":
        assert np.isnan(cf.x).all()
        assert cf.lower_bound <= optimum + room


# --- lies ---------------------------------------------------------------------------------------


def honestly(program: Program) -> Solution:
    return honest_select(program).solver(program)


def with_point(change: Callable[[np.ndarray], np.ndarray]) -> Solver:
    """Right prices, another point, and always "solved"."""

    def solve(program: Program) -> Solution:
        true = honestly(program)
        return replace(true, outcome=Outcome.SOLVED, delta=change(true.delta))

    return solve


def with_prices(change: Callable[[np.ndarray], np.ndarray]) -> Solver:
    """Right point, other prices."""

    def solve(program: Program) -> Solution:
        true = honestly(program)
        told = true.multipliers
        prices = Multipliers(change(told.y), change(told.z), change(told.nu))
        return replace(true, multipliers=prices)

    return solve


def with_outcome(outcome: Outcome) -> Solver:
    """Neither point nor prices."""
    return lambda program: Solution.without_point(program, outcome, "liar")


def infeasible_with_prices(size: float) -> Solver:
    """Denies that anything is feasible, and backs it by the same price on every condition."""

    def solve(program: Program) -> Solution:
        slacks = np.isinf(program.reach).any()  # asked for the least violation
        none = Multipliers.none(program)
        prices = Multipliers(none.y + size, none.z + size, none.nu + size)
        outcome = Outcome.SOLVED if slacks else Outcome.INFEASIBLE
        return Solution(outcome, np.zeros(program.width), prices, "liar")

    return solve


def infeasible_until_asked_why(program: Program) -> Solution:
    """Denies the program, but is honest about the least violation."""
    if np.isinf(program.reach).any():
        return honestly(program)
    return Solution.without_point(program, Outcome.INFEASIBLE, "liar")


def random_claims(seed: int) -> Solver:
    rng = np.random.default_rng(seed)

    def solve(program: Program) -> Solution:
        none = Multipliers.none(program)
        prices = Multipliers(*(rng.exponential(3, v.shape) for v in (none.y, none.z, none.nu)))
        outcome = list(Outcome)[rng.integers(3)]
        return Solution(outcome, 3 * rng.normal(size=program.width), prices, "liar")

    return solve


LIES: dict[str, Solver] = {
    "stays in the rival's cell": with_point(np.zeros_like),
    "goes half the way": with_point(lambda delta: 0.5 * delta),
    "stops just short": with_point(lambda delta: (1 - 1e-6) * delta),
    "goes the other way": with_point(lambda delta: -delta),
    "breaks the constraints": with_point(lambda delta: delta + 7.0),
    "goes too far": with_point(lambda delta: 1.5 * delta),
    "goes a little too far": with_point(lambda delta: (1 + 1e-5) * delta),
    "goes much too far": with_point(lambda delta: 1e6 * delta),
    "says NaN": with_point(lambda delta: np.full_like(delta, np.nan)),
    "says NaN once": with_point(lambda delta: np.where(np.arange(delta.size) == 0, np.nan, delta)),
    "says infinity": with_point(lambda delta: np.full_like(delta, np.inf)),
    "says the largest number": with_point(lambda delta: np.full_like(delta, 1e308)),
    "charges nothing": with_prices(np.zeros_like),
    "charges half": with_prices(lambda price: 0.5 * price),
    "charges double": with_prices(lambda price: 2 * price),
    "charges a little more": with_prices(lambda price: (1 + 1e-5) * price),
    "charges far too much": with_prices(lambda price: 1e12 * (1 + np.abs(price))),
    "charges the largest number": with_prices(lambda price: np.full_like(price, 1e308)),
    "pays instead": with_prices(lambda price: -price),
    "charges NaN": with_prices(lambda price: np.full_like(price, np.nan)),
    "charges infinity": with_prices(lambda price: np.full_like(price, np.inf)),
    "charges for another row": with_prices(lambda price: np.roll(price, 1)),
    "charges all alike": with_prices(np.ones_like),
    "always fails": with_outcome(Outcome.FAILED),
    "always infeasible": with_outcome(Outcome.INFEASIBLE),
    "always solved": with_outcome(Outcome.SOLVED),
    "infeasible until asked why": infeasible_until_asked_why,
    "infeasible, at a small price": infeasible_with_prices(1e-6),
    "infeasible, at a price": infeasible_with_prices(1.0),
    "infeasible, at a high price": infeasible_with_prices(1e9),
    **{f"random {seed}": random_claims(seed) for seed in range(6)},
}


@pytest.mark.covering
@each_part
@pytest.mark.parametrize("lie", LIES)
def test_lie_is_caught(lie: str, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    liar = lying(monkeypatch, LIES[lie])
    for problem in REQUESTS[part::8]:
        before = liar.calls
        assert_no_lie_reached_the_user(problem, answered(problem))
        assert liar.calls > before or problem.name in NO_SOLVER_NEEDED


@each_request
def test_honest_solver_is_believed(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else catching lies would be easy."""
    liar = lying(monkeypatch, honestly)
    cf = answered(problem)
    assert cf.status == ("infeasible" if truth(problem) == np.inf else "optimal")
    assert_no_lie_reached_the_user(problem, cf)
    assert liar.calls > 0 or problem.name in NO_SOLVER_NEEDED


def test_solver_that_always_fails_leaves_the_question_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = REQUESTS[0]
    liar = lying(monkeypatch, with_outcome(Outcome.FAILED))
    cf = answered(problem)
    assert cf.status == "unknown"
    assert liar.calls > 0
    assert cf.reason == "a liar"
    # The price of overtaking the one rival needs no solver.
    assert cf.lower_bound == pytest.approx(2.5)


def test_expensive_point_is_told_as_feasible_with_its_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = REQUESTS[0]
    lying(monkeypatch, LIES["goes too far"])
    cf = answered(problem)
    assert cf.status == "feasible"
    assert cf.cost == pytest.approx(1.5 * 2.5)
    assert cf.lower_bound == pytest.approx(2.5)
    assert cf.gap == pytest.approx(1 / 3)
    assert "a closer one is not ruled out" in str(cf)


# --- lies of the compiled kernel ----------------------------------------------------------------


def kernel_point(change: Callable[[np.ndarray], np.ndarray]) -> Lie:
    def lie(answers: compiled.Answers, scratch: compiled.Scratch) -> None:
        answers.Y[:] = change(answers.Y)

    return lie


def kernel_cost(change: Callable[[np.ndarray], np.ndarray]) -> Lie:
    def lie(answers: compiled.Answers, scratch: compiled.Scratch) -> None:
        answers.cost[:] = change(answers.cost)

    return lie


def kernel_prices(change: Callable[[np.ndarray], np.ndarray]) -> Lie:
    def lie(answers: compiled.Answers, scratch: compiled.Scratch) -> None:
        scratch.prices[:] = change(scratch.prices)

    return lie


def kernel_code(code: compiled.Code) -> Lie:
    def lie(answers: compiled.Answers, scratch: compiled.Scratch) -> None:
        answers.code[:] = code

    return lie


def kernel_skips(answers: compiled.Answers, scratch: compiled.Scratch) -> None:
    """Every cell is called beaten without a look."""
    scratch.used[:] = -1


def kernel_empties(answers: compiled.Answers, scratch: compiled.Scratch) -> None:
    """Every cell is called empty, by the prices that were to bound it."""
    answers.code[:] = compiled.Code.INFEASIBLE
    scratch.used[:] = -2 - np.maximum(scratch.used, 0)


KERNEL_LIES: dict[str, Lie] = {
    "another cell": kernel_point(np.zeros_like),
    "another point": kernel_point(lambda Y: Y + 0.01),
    "far away": kernel_point(lambda Y: 1e6 * Y),
    "a little further": kernel_point(lambda Y: (1 + 1e-5) * Y),
    "NaN": kernel_point(lambda Y: np.full_like(Y, np.nan)),
    "infinity": kernel_point(lambda Y: np.full_like(Y, np.inf)),
    "cheaper than it is": kernel_cost(lambda cost: 0.5 * cost),
    "for free": kernel_cost(np.zeros_like),
    "dearer than it is": kernel_cost(lambda cost: 2 * cost),
    "at a negative cost": kernel_cost(lambda cost: -cost),
    "at no known cost": kernel_cost(lambda cost: np.full_like(cost, np.nan)),
    "at an infinite cost": kernel_cost(lambda cost: np.full_like(cost, np.inf)),
    "no prices": kernel_prices(np.zeros_like),
    "half prices": kernel_prices(lambda prices: 0.5 * prices),
    "high prices": kernel_prices(lambda prices: 1e12 * (1 + prices)),
    "negative prices": kernel_prices(lambda prices: -prices),
    "NaN prices": kernel_prices(lambda prices: np.full_like(prices, np.nan)),
    "infinite prices": kernel_prices(lambda prices: np.full_like(prices, np.inf)),
    "prices of other rows": kernel_prices(lambda prices: np.roll(prices, 1, axis=1)),
    "always infeasible": kernel_code(compiled.Code.INFEASIBLE),
    "always solved": kernel_code(compiled.Code.SOLVED),
    "always failed": kernel_code(compiled.Code.FAILED),
    "cells skipped": kernel_skips,
    "cells emptied": kernel_empties,
}


@pytest.mark.covering
@each_part
@pytest.mark.parametrize("lie", KERNEL_LIES)
def test_lie_of_the_kernel_is_caught(lie: str, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lying_kernel(monkeypatch, KERNEL_LIES[lie])
    for problem in REQUESTS[part::8]:
        cf = answered(problem)
        assert_no_lie_reached_the_user(problem, cf)
        # The other engines are honest, and are asked where the kernel is caught.
        assert cf.status == ("infeasible" if truth(problem) == np.inf else "optimal")


# What a row that is answered at once believes of the kernel is the bound, which the trusted code
# in it computes from the multipliers before they could be changed here.
AT_ONCE_LIES = [name for name in KERNEL_LIES if "prices" not in name and "cells" not in name]


@pytest.mark.covering
@each_part
@pytest.mark.parametrize("lie", AT_ONCE_LIES)
def test_lie_of_the_kernel_is_caught_at_once(
    lie: str, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = kernel_lying_at_once(monkeypatch, KERNEL_LIES[lie])
    for problem in REQUESTS[part::8]:
        cf = answered(problem)
        assert_no_lie_reached_the_user(problem, cf)
        assert cf.status == ("infeasible" if truth(problem) == np.inf else "optimal")
    assert calls

"""The engine beside its peers: the same models, the same rows, one run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from benchmarks.baselines import blackbox, paper
from benchmarks.baselines.warm import Warm, WarmDaqp, WarmHighs, WarmSolvers
from benchmarks.problems import COSTS, Array, Problem, problems
from benchmarks.sizes import Sizes
from benchmarks.timing import best_of, in_the_long_run, interleaved, timed

ENGINE, TWO_JOBS, SINGLE = "engine, 1 job", "engine, 2 jobs", "engine, row by row"
WARM_HIGHS, WARM_DAQP = "warm HiGHS", "warm DAQP"
PAPER, NELDER_MEAD, CMA_ES = "cvxpy per prototype", "Nelder-Mead", "CMA-ES"
EXACT = (WARM_HIGHS, WARM_DAQP, PAPER)
OPTIMISERS = {NELDER_MEAD: blackbox.nelder_mead, CMA_ES: blackbox.cma_es}

# How far an exact peer may be from the engine, as a share of the cost.
AGREEMENT = 1e-6


@dataclass(frozen=True)
class Measured:
    """One method on one problem."""

    data: str
    model: str
    cost: str
    method: str
    rows: int
    seconds: float  # per counterfactual
    ratio: float  # to the engine with one job
    mean_cost: float  # over the rows that every method solved
    excess: float  # that mean over the engine's
    common: int  # how many rows that is
    valid: float  # share of answers with the target's label that obey the constraints
    difference: float | None  # largest relative difference from the engine, of exact methods

    @property
    def agrees(self) -> bool:
        return self.difference is None or self.difference <= AGREEMENT


@dataclass(frozen=True, eq=False)
class _Run:
    """Time per row and answers of one method on the first rows of a problem."""

    seconds: float
    answers: Array


def compare(sizes: Sizes) -> Iterator[Measured]:
    """All methods on all problems, as they are measured."""
    for problem in problems(sizes.rows):
        for cost in COSTS:
            yield from measured(problem, cost, runs_of(problem, cost, sizes))


def runs_of(problem: Problem, cost: str, sizes: Sizes) -> dict[str, _Run]:
    """Run every method that is there, the slow ones on fewer rows."""
    runs = _engine_runs(problem, cost, sizes)
    name, kind = (WARM_HIGHS, WarmHighs) if cost == "L1" else (WARM_DAQP, WarmDaqp)
    if name != WARM_DAQP or find_spec("daqp"):
        runs[name] = _warm_run(problem.head(sizes.warm), kind, sizes.repeats)
    ask = partial(_paper_answers, problem.head(sizes.paper), cost)
    _paper_answers(problem.head(1), cost)  # the first program loads what cvxpy needs
    runs[PAPER] = _run(*best_of(sizes.repeats, ask))
    for name, optimiser in OPTIMISERS.items():
        search = partial(_searched_answers, problem.head(sizes.blackbox), cost, optimiser)
        runs[name] = _run(*timed(search))
    return runs


def _engine_runs(problem: Problem, cost: str, sizes: Sizes) -> dict[str, _Run]:
    explainer = problem.explainer(cost)
    start = problem.head(min(1000, sizes.rows))
    in_the_long_run()
    explainer.explain_batch(start.rows, start.wish, n_jobs=2)  # compiles, or loads from disk
    few = problem.head(sizes.single)

    def batch(jobs: int) -> object:
        return explainer.explain_batch(problem.rows, problem.wish, n_jobs=jobs)

    def one_by_one() -> object:
        return [explainer.explain(x, t) for x, t in zip(few.rows, few.targets, strict=True)]

    # Batches are short, and a neighbour on the second core shows: more repeats than elsewhere.
    best = interleaved(3 * sizes.repeats, {1: partial(batch, 1), 2: partial(batch, 2)})
    answers = explainer.explain_batch(problem.rows, problem.wish).X
    single = best_of(sizes.repeats, one_by_one)[0]
    return {
        ENGINE: _Run(best[1] / len(problem.rows), answers),
        TWO_JOBS: _Run(best[2] / len(problem.rows), answers),
        SINGLE: _Run(single / len(few.rows), answers[: len(few.rows)]),
    }


def _warm_run(problem: Problem, kind: type[Warm], repeats: int) -> _Run:
    solvers = WarmSolvers(problem.model, problem.free, kind)
    ask = partial(solvers.answers, problem.rows, problem.targets)
    ask()  # a first pass, so that every model has a basis to start from
    return _run(*best_of(repeats, ask))


def _paper_answers(problem: Problem, cost: str) -> Array:
    return _row_by_row(problem, lambda x, t: paper.closest(problem.model, x, t, problem.free, cost))


def _searched_answers(problem: Problem, cost: str, optimiser: blackbox.Optimiser) -> Array:
    return _row_by_row(
        problem, lambda x, t: blackbox.search(problem.model, x, t, problem.free, cost, optimiser)
    )


def _row_by_row(problem: Problem, answer: Callable[..., Array]) -> Array:
    return np.array([answer(x, t) for x, t in zip(problem.rows, problem.targets, strict=True)])


def _run(seconds: float, answers: Array) -> _Run:
    return _Run(seconds / len(answers), answers)


def measured(problem: Problem, cost: str, runs: dict[str, _Run]) -> Iterator[Measured]:
    valid = {name: problem.valid(run.answers) for name, run in runs.items()}
    costs = {name: problem.costs(run.answers, cost) for name, run in runs.items()}
    fewest = min(len(run.answers) for run in runs.values())
    common = np.logical_and.reduce([mask[:fewest] for mask in valid.values()])
    means = {name: _mean(values[:fewest][common]) for name, values in costs.items()}
    for name, run in runs.items():
        yield Measured(
            data=problem.name,
            model=problem.kind,
            cost=cost,
            method=name,
            rows=len(run.answers),
            seconds=run.seconds,
            ratio=run.seconds / runs[ENGINE].seconds,
            mean_cost=means[name],
            excess=means[name] / means[ENGINE],
            common=int(common.sum()),
            valid=float(valid[name].mean()),
            difference=largest_difference(costs[name], costs[ENGINE]) if name in EXACT else None,
        )


def largest_difference(costs: Array, reference: Array) -> float:
    """Largest relative difference; inf if only one of the two found an answer."""
    mine, theirs = costs, reference[: len(costs)]
    if (np.isfinite(mine) != np.isfinite(theirs)).any():
        return float("inf")
    found: NDArray[np.bool_] = np.isfinite(mine)
    return float(np.max(np.abs(mine - theirs)[found] / theirs[found], initial=0.0))


def _mean(values: Array) -> float:
    return float(values.mean()) if values.size else float("nan")

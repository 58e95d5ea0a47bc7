"""`ccp`, `auto` and `global` on the same rows, and `ccp` beside a plain convex-concave loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.baselines import concave
from benchmarks.local_problems import LocalProblem
from benchmarks.problems import COSTS, SEED, Array
from benchmarks.timing import interleaved, timed
from counterlvq.search.progress import Progress

METHODS = ("ccp", "auto", "global")
GAP = 1e-4
CLOSE = 1e-4  # a cost within this share of that of `global` counts as optimal
NUDGE = 1e-12  # relative change of an input, to see whether the answer is the same
PLAIN, EXPLAIN, BATCH = "plain loop", "`explain`", "`explain_batch`"


@dataclass(frozen=True)
class Run:
    """One method on the rows of one problem, row by row."""

    problem: str
    cost: str
    method: str
    seconds: list[float]
    costs: list[float]
    bounds: list[float]
    valid: list[bool]
    proved: list[bool]  # OPTIMAL at the gap
    boxes: list[int]  # relaxations solved
    best: list[float] | None  # known to be possible
    known_bound: list[float] | None  # known not to be undercut


@dataclass(frozen=True)
class Loop:
    """`ccp` beside the plain loop on one problem."""

    cost: str
    rows: int
    seconds: dict[str, float]  # per row
    mean_costs: dict[str, float]  # over the rows that both solved
    valid: dict[str, float]
    better: int  # rows on which `ccp` is cheaper
    worse: int
    unsteady: dict[str, int]  # rows on which a nudge of the input leads elsewhere

    @property
    def ratio(self) -> float:
        return self.seconds[PLAIN] / self.seconds[BATCH]

    @property
    def single_ratio(self) -> float:
        return self.seconds[PLAIN] / self.seconds[EXPLAIN]


def run(
    problem: LocalProblem, method: str, time_limit: float | None = None, *, warm: bool = True
) -> Run:
    """Ask about each row by itself; first about one row in vain, which loads what is needed."""
    explainer = problem.explainer(method, time_limit, GAP)
    if warm:
        explainer.explain(problem.rows[0], problem.targets[0])
    seconds, answers, boxes = [], [], []
    for x, target in zip(problem.rows, problem.targets, strict=True):
        seen = [0]
        took, answer = timed(partial(explainer.explain, x, target, progress=_keep_boxes(seen)))
        seconds.append(took)
        answers.append(answer)
        boxes.append(seen[-1])
    return Run(
        problem=problem.name,
        cost=problem.cost,
        method=method,
        seconds=seconds,
        costs=[float(answer.cost) for answer in answers],
        bounds=[float(answer.lower_bound) for answer in answers],
        valid=problem.valid(np.array([answer.x for answer in answers])).tolist(),
        proved=[bool(answer.status == "optimal") for answer in answers],
        boxes=boxes,
        best=None if problem.best is None else problem.best.tolist(),
        known_bound=None if problem.bound is None else problem.bound.tolist(),
    )


def _keep_boxes(seen: list[int]) -> Callable[[Progress], None]:
    return lambda now: seen.append(now.nodes)


def beside_plain_loop(problem: LocalProblem, repeats: int) -> Loop:
    """Time both in turns, and compare what their answers cost."""
    explainer, targets = problem.explainer("ccp"), problem.targets

    def single(rows: Array) -> Array:
        return np.array([explainer.explain(x, t).x for x, t in zip(rows, targets, strict=True)])

    def batch(rows: Array) -> Array:
        return explainer.explain_batch(rows, targets).X

    def plain(rows: Array) -> Array:
        pairs = zip(rows, targets, strict=True)
        return np.array([concave.closest(problem.model, x, t, problem.cost) for x, t in pairs])

    def costs_of(found: Array) -> Array:
        return np.array([COSTS[problem.cost].value(delta) for delta in found - problem.rows])

    works = {PLAIN: plain, EXPLAIN: single, BATCH: batch}
    answers = {name: work(problem.rows) for name, work in works.items()}  # compiles, or loads
    times = interleaved(repeats, {name: partial(works[name], problem.rows) for name in works})
    costs = {name: costs_of(found) for name, found in answers.items()}
    noise = np.random.default_rng(SEED).standard_normal(problem.rows.shape)
    nudged = {name: costs_of(works[name](problem.rows * (1 + NUDGE * noise))) for name in works}
    valid = {name: problem.valid(found) for name, found in answers.items()}
    common = valid[PLAIN] & valid[EXPLAIN] & valid[BATCH]
    excess = (costs[BATCH] / costs[PLAIN])[common] - 1.0
    return Loop(
        cost=problem.cost,
        rows=len(problem.rows),
        seconds={name: took / len(problem.rows) for name, took in times.items()},
        mean_costs={name: float(values[common].mean()) for name, values in costs.items()},
        valid={name: float(mask.mean()) for name, mask in valid.items()},
        better=int((excess < -CLOSE).sum()),
        worse=int((excess > CLOSE).sum()),
        unsteady={
            name: int((np.abs(nudged[name] / costs[name] - 1.0)[common] > CLOSE).sum())
            for name in works
        },
    )

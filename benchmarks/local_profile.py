"""Where the time of one box goes: clocks around the functions that the search calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any
from unittest.mock import patch

from benchmarks.local_methods import run
from benchmarks.local_problems import LocalProblem
from counterlvq.certificates import box_questions
from counterlvq.certificates.boxes import BoxCertificate
from counterlvq.search import branch_and_bound
from counterlvq.solvers import semidefinite

SOLVER, ASSEMBLY, BOUND, SEARCH = "Clarabel", "assembly", "bound", "local search"
STARTS, CHECK, REST = "cheap starts", "certificate", "rest"
# What belongs to which part. A part that calls another one does not count its time.
CLOCKS: tuple[tuple[str, Any, str], ...] = (
    (SOLVER, semidefinite, "run_guarded"),
    (ASSEMBLY, branch_and_bound, "relax"),
    (BOUND, box_questions, "lifted_bound"),
    (BOUND, box_questions, "lifted_contradiction"),
    (SEARCH, branch_and_bound.Branching, "_search_from"),
    (STARTS, branch_and_bound.Branching, "_start"),
    (CHECK, BoxCertificate, "lower_bound"),
)
PARTS = (SOLVER, ASSEMBLY, BOUND, SEARCH, STARTS, CHECK, REST)
MEANINGS = {
    SOLVER: "the semidefinite relaxation, solved",
    ASSEMBLY: "the relaxation put together, and its multipliers read as prices",
    BOUND: "the bound recomputed from the prices, for a box and for the parts it is cut into",
    SEARCH: "convex-concave descent from the relaxed point, settled and judged",
    STARTS: "the same from the target prototypes, once per row",
    CHECK: "the whole tree evaluated once more for the answer's bound, once per row",
    REST: "cutting, the queue, the conditions of the cells, the result",
}


@dataclass(frozen=True)
class Profile:
    """The time of some answers by `auto`, in parts."""

    problem: str
    cost: str
    features: int
    rows: int
    boxes: int
    seconds: float
    parts: dict[str, float]  # seconds; they add up

    def share(self, part: str) -> float:
        return self.parts[part] / self.seconds


@dataclass
class Clocks:
    """Seconds spent in each part, without those spent in a part inside it."""

    seconds: dict[str, float] = field(default_factory=dict)
    _inside: list[float] = field(default_factory=list)  # seconds of inner parts, by depth

    def around(self, part: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """The same function with a clock around it."""

        def clocked(*arguments: Any, **options: Any) -> Any:
            self._inside.append(0.0)
            start = perf_counter()
            try:
                return work(*arguments, **options)
            finally:
                took = perf_counter() - start
                own = took - self._inside.pop()
                self.seconds[part] = self.seconds.get(part, 0.0) + own
                if self._inside:
                    self._inside[-1] += took

        return clocked


@contextmanager
def clocks() -> Iterator[Clocks]:
    """Put the clocks in place, and take them away again."""
    kept = Clocks()
    with ExitStack() as stack:
        for part, owner, name in CLOCKS:
            clocked = kept.around(part, getattr(owner, name))
            stack.enter_context(patch.object(owner, name, clocked))
        yield kept


def measure(problem: LocalProblem) -> Profile:
    """Ask about each row with the clocks running."""
    run(problem.head(1), "auto")  # compiles, or loads from disk
    with clocks() as kept:
        found = run(problem, "auto", warm=False)
    seconds = sum(found.seconds)
    parts = {part: kept.seconds.get(part, 0.0) for part in PARTS[:-1]}
    parts[REST] = seconds - sum(parts.values())
    return Profile(
        problem.name, problem.cost, problem.model.n_features, len(problem.rows),
        sum(found.boxes), seconds, parts,
    )  # fmt: skip

"""Rows one by one, here or in processes of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import final

from counterlvq.numeric.worker_processes import ask_in_processes
from counterlvq.presentation.progress import Counts, progress_bar
from counterlvq.results import Counterfactual

__all__ = ["answer_left", "answer_rows"]

# Seconds that processes take to start, to import what a pipeline needs and to prepare the question.
_START = 2.0


def answer_rows(
    ask: Callable[[int], Counterfactual],
    which: Sequence[int],
    jobs: int,
    progress: Counts,
    patience: float = 0.0,
) -> dict[int, Counterfactual]:
    """Ask about the listed rows, in `jobs` processes: the cone solver keeps threads waiting.

    Rows are asked here until `patience` (seconds) is over, which saves processes where they are
    few. Where a row is asked changes nothing about its answer. An interrupt stops the run;
    nothing outside it has changed.
    """
    found: dict[int, Counterfactual] = {}
    if not which:
        return found
    end = perf_counter() + patience
    with progress_bar(len(which), progress) as done:

        def take(i: int, answer: Counterfactual) -> None:
            found[i] = answer
            done(1)

        here = 0
        while here < len(which) and (min(jobs, len(which) - here) == 1 or perf_counter() < end):
            take(which[here], ask(which[here]))
            here += 1
        rest = which[here:]
        if rest:
            ask_in_processes(_Listed(ask, rest), len(rest), jobs, lambda k, cf: take(rest[k], cf))
    return {i: found[i] for i in which}


def answer_left(
    ask: Callable[[int], Counterfactual], which: Sequence[int], jobs: int, progress: Counts
) -> dict[int, Counterfactual]:
    """Ask about rows that kernels have left: mostly few, which processes are not worth their start.

    Whoever waits as long as a start takes, and starts then, takes twice as long as was needed at
    the most, and one row more.
    """
    return answer_rows(ask, which, jobs, progress, _START)


@final
@dataclass(frozen=True, eq=False)
class _Listed:
    """Asks by place in a list, as a value that processes can hand to each other."""

    ask: Callable[[int], Counterfactual]
    which: Sequence[int]

    def __call__(self, k: int) -> Counterfactual:
        return self.ask(self.which[k])

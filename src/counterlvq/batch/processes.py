"""Rows one by one, in processes of their own."""

from __future__ import annotations

from collections.abc import Callable

from counterlvq.numeric.worker_processes import ask_in_processes
from counterlvq.presentation.progress import progress_bar
from counterlvq.results import Counterfactual

__all__ = ["answer_rows"]


def answer_rows(
    ask: Callable[[int], Counterfactual], count: int, jobs: int, progress: bool
) -> list[Counterfactual]:
    """Ask about each row, in `jobs` processes: the cone solver keeps threads waiting.

    An interrupt stops the run; nothing outside it has changed.
    """
    found: dict[int, Counterfactual] = {}
    with progress_bar(count, progress) as done:

        def take(i: int, answer: Counterfactual) -> None:
            found[i] = answer
            done(1)

        if min(jobs, count) == 1:
            for i in range(count):
                take(i, ask(i))
        else:
            ask_in_processes(ask, count, jobs, take)
    return [found[i] for i in range(count)]

"""Long work, seen by the person who waits for it: rows one by one, and a search as it closes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from counterlvq.batch.threads import progress_bar
from counterlvq.numeric.worker_processes import ask_in_processes
from counterlvq.presentation.numbers import bound_text
from counterlvq.results import Counterfactual
from counterlvq.search.branch_and_bound import Progress

__all__ = ["answer_rows", "reporter"]


def answer_rows(
    ask: Callable[[int], Counterfactual], count: int, jobs: int, progress: bool
) -> list[Counterfactual]:
    """Ask about each row, in `jobs` processes: the cone solver keeps threads waiting.

    An interrupt stops the run; nothing outside it has changed.
    """
    found: dict[int, Counterfactual] = {}
    with progress_bar(count, progress) as bar:

        def take(i: int, answer: Counterfactual) -> None:
            found[i] = answer
            bar.update(1)

        if min(jobs, count) == 1:
            for i in range(count):
                take(i, ask(i))
        else:
            ask_in_processes(ask, count, jobs, take)
    return [found[i] for i in range(count)]


@contextmanager
def reporter(
    progress: bool | Callable[[Progress], None],
) -> Iterator[Callable[[Progress], None] | None]:
    """Give a search something to report to: nothing, the terminal, or the caller's function."""
    if callable(progress):
        yield progress
        return
    if not progress:
        yield None
        return
    shown = False

    def show(now: Progress) -> None:
        nonlocal shown
        shown = True
        cost = f"{now.cost:.6g}" if np.isfinite(now.cost) else "none yet"
        bound = bound_text(now.lower_bound)
        line = f"cost {cost}  bound {bound}  gap {now.gap:.2%}  {now.nodes} boxes"
        sys.stderr.write(f"\r{line:<72}")
        sys.stderr.flush()

    try:
        yield show
    finally:
        if shown:
            sys.stderr.write("\n")

"""Rows one by one, in processes of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

from counterlvq.numeric.worker_processes import ask_in_processes
from counterlvq.presentation.progress import Counts, progress_bar
from counterlvq.results import Counterfactual

__all__ = ["answer_rows"]


def answer_rows(
    ask: Callable[[int], Counterfactual], which: Sequence[int], jobs: int, progress: Counts
) -> dict[int, Counterfactual]:
    """Ask about the listed rows, in `jobs` processes: the cone solver keeps threads waiting.

    An interrupt stops the run; nothing outside it has changed.
    """
    found: dict[int, Counterfactual] = {}
    if not which:
        return found
    with progress_bar(len(which), progress) as done:

        def take(k: int, answer: Counterfactual) -> None:
            found[which[k]] = answer
            done(1)

        if min(jobs, len(which)) == 1:
            for k, i in enumerate(which):
                take(k, ask(i))
        else:
            ask_in_processes(_Listed(ask, which), len(which), jobs, take)
    return {i: found[i] for i in which}


@final
@dataclass(frozen=True, eq=False)
class _Listed:
    """Asks by place in a list, as a value that processes can hand to each other."""

    ask: Callable[[int], Counterfactual]
    which: Sequence[int]

    def __call__(self, k: int) -> Counterfactual:
        return self.ask(self.which[k])

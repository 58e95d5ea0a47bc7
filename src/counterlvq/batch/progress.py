"""Progress, shown to the person who waits: rows as they are answered, a search as it closes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

import numpy as np

from counterlvq.errors import NotSupportedError
from counterlvq.presentation.numbers import bound_text
from counterlvq.search.branch_and_bound import Progress

__all__ = ["Bar", "progress_bar", "reporter"]


class Bar(Protocol):
    """What counts rows."""

    def update(self, n: int) -> object:
        """Count `n` more rows."""


class _Silent:
    def update(self, n: int) -> object:
        return n


def progress_bar(total: int, progress: bool) -> AbstractContextManager[Any]:
    """Show how many rows are done, or nothing at all."""
    if not progress:
        return nullcontext(_Silent())
    try:
        from tqdm.auto import tqdm
    except ImportError:
        raise NotSupportedError(
            "progress=True needs tqdm, which is not installed; install it with "
            "pip install tqdm, or leave progress out."
        ) from None
    bar: AbstractContextManager[Any] = tqdm(total=total, unit="row", unit_scale=True)
    return bar


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

"""How far work is, on standard error: rows, pieces, a search as it closes, seconds gone by."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, final

import numpy as np

from counterlvq.errors import NotSupportedError
from counterlvq.presentation.bounds import proved
from counterlvq.presentation.numbers import bound_text

if TYPE_CHECKING:
    from counterlvq.search.progress import Progress

__all__ = ["Counts", "PieceCount", "ProgressLines", "progress_bar", "reporter", "working"]

# Seconds before a person is told what takes so long, and between two looks at the clock.
_WAIT, _EVERY = 1.0, 0.5
# Seconds between two lines about a dataset in a log.
_LOGGED = 60.0
# Seconds between two counts of pieces, on a terminal and elsewhere.
_OFTEN, _SELDOM = 0.2, 15.0


# Whether to show how many rows are done; or a function that is told of rows as they are.
Counts = bool | Callable[[int], object]


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


@contextmanager
def progress_bar(
    total: int, progress: Counts, before: int = 0
) -> Iterator[Callable[[int], object]]:
    """Give something that counts rows: it shows how many are done, or nothing at all.

    `before` of them were done in an earlier run, and count for no speed.
    """
    if callable(progress):
        yield progress
        return
    if not progress:
        yield lambda _: None
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        raise NotSupportedError(
            "progress=True needs tqdm, which is not installed; install it with "
            "pip install tqdm, or leave progress out."
        ) from None
    with tqdm(
        total=total,
        initial=before,
        unit="row",
        unit_scale=True,
        miniters=1,
        smoothing=0,  # rows of whole blocks come at once: the average of the run is steadier
        **_room(),
    ) as bar:
        yield bar.update


def _room() -> dict[str, int]:
    """Take a terminal that has no size, as in containers, for one of the usual size."""
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError, AttributeError):  # no terminal, or no file at all
        return {}
    return {} if columns else {"ncols": 80, "nrows": 24}


@contextmanager
def reporter(
    progress: bool | Callable[[Progress], None],
) -> Iterator[Callable[[Progress], None] | None]:
    """Give a search something to report to: nothing, the terminal, or the caller's function."""
    if callable(progress) or not progress:
        yield progress or None
        return
    shown = False

    def show(now: Progress) -> None:
        nonlocal shown
        shown = True
        line = f"cost none yet  bound {bound_text(now.lower_bound)}  {now.nodes} boxes"
        if np.isfinite(now.cost):
            cost, bound, gap, *_ = proved(now.cost, now.lower_bound)
            line = f"cost {cost}  bound {bound}  gap {gap}  {now.nodes} boxes"
        _write(f"\r{line:<72}")

    try:
        yield show
    finally:
        if shown:
            _write("\n")


@contextmanager
def working(what: str) -> Iterator[None]:
    """Say on a terminal what takes so long, and for how long it has, after the first second."""
    if not sys.stderr.isatty():
        yield
        return
    done = Event()
    teller = Thread(target=_tell, args=(what, done), daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()


def _tell(what: str, done: Event) -> None:
    start = monotonic()
    if done.wait(_WAIT):
        return
    while not done.wait(_EVERY):
        _write(f"\r{what} ... {monotonic() - start:.0f} s")
    _write("\r\x1b[K")


@final
@dataclass
class PieceCount:
    """Pieces of a run that are done: in place on a terminal, else now and then a line."""

    weights: Sequence[float]
    what: str
    _start: float = field(init=False, default_factory=monotonic)
    _told: float = field(init=False, default_factory=monotonic)
    _done: float = field(init=False, default=0.0)
    _count: int = field(init=False, default=0)

    def step(self, weight: float, name: str) -> None:
        """One more piece is done."""
        self._done += weight
        self._count += 1
        now, last = monotonic(), self._count == len(self.weights)
        here = sys.stderr.isatty()
        if not last and now - self._told < (_OFTEN if here else _SELDOM):
            return
        self._told = now
        elapsed, total = now - self._start, sum(self.weights)
        left = elapsed * (total - self._done) / self._done
        line = (
            f"{self._count:>4} of {len(self.weights)} {self.what}  {self._done / total:>4.0%}  "
            f"{_clock(elapsed)} gone, about {_clock(left)} left  {name}"
        )
        ending = "\n" if last or not here else ""
        _write(f"\r{line[:100]:<100}{ending}" if here else f"{line}{ending}")


@final
@dataclass
class ProgressLines:
    """How far a dataset is, in lines for a log: at most one a minute, and by the run's average."""

    _start: float = field(init=False, default_factory=monotonic)
    _told: float = field(init=False, default_factory=monotonic)
    _before: int | None = field(init=False, default=None)  # rows of earlier runs

    def tell(self, parts: int, all_parts: int, rows: int, all_rows: int) -> None:
        """Say how many parts and rows are finished, if it was not said within the last minute."""
        now = monotonic()
        if self._before is None:
            self._before = rows
        if now - self._told < _LOGGED:
            return
        self._told = now
        line = f"{parts:,} of {all_parts:,} parts, {rows:,} of {all_rows:,} rows"
        elapsed, done = now - self._start, rows - self._before
        if done:
            left = elapsed * max(0, all_rows - rows) / done
            line += f", {done / elapsed:,.0f} rows a second, about {_clock(left)} left"
        _write(f"{line}\n")


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"

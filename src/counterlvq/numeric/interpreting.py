"""How the interpreter runs what is written for the compiler, and how long it may take."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, final

import numpy as np

__all__ = [
    "Budget",
    "Compilations",
    "TakesLongError",
    "borrowed",
    "compile_from_now_on",
    "interpreted",
    "is_interpreting",
    "keep",
    "spend",
    "steps_left",
]

# Steps that the interpreter may take in all before kernels are compiled. A step is a multiplication
# in a loop: about a microsecond.
_STEPS = 1_000_000.0


class TakesLongError(Exception):
    """The interpreter has taken as many steps as it was given."""


@final
class Budget:
    """Steps that are left to the interpreter in this process; a lost update does no harm."""

    left = _STEPS


@final
class Compilations:
    """How often a kernel has been compiled in this process, or looked for on disk; how long."""

    count = 0
    seconds = 0.0

    @classmethod
    @contextmanager
    def timed(cls) -> Iterator[None]:
        """Count the seconds of what is done inside; a lost update does no harm."""
        begun = time.monotonic()
        try:
            yield
        finally:
            cls.seconds += time.monotonic() - begun


def compile_from_now_on() -> None:
    """Have every kernel compiled by its next call: for processes that answer for a long time."""
    Budget.left = 0.0


@final
class _Run(threading.local):
    """Steps that are left to the kernel that the interpreter runs in a thread, if it runs one."""

    left: float | None = None


_run = _Run()


def interpreted(function: Callable[..., Any], left: float, *given: Any) -> tuple[Any, float]:
    """Run a kernel as Python, with so many steps left; return the answer and what is left then.

    Compiled code divides by zero and overflows without a word; so does this.
    """
    outer, _run.left = _run.left, left
    try:
        with np.errstate(all="ignore"):
            answer = function(*given)
        return answer, _run.left
    finally:
        _run.left = outer


def is_interpreting() -> bool:
    """Whether the interpreter runs a kernel in this thread."""
    return _run.left is not None


def steps_left() -> float:
    """Count what is left to the kernel that is run in this thread, or to the next one."""
    return Budget.left if _run.left is None else _run.left


def keep(left: float) -> None:
    """Say how many steps are left behind a run."""
    if _run.left is None:
        Budget.left = left
    else:
        _run.left = left


def spend(steps: float) -> None:
    """Take steps off those that are left to the kernel in this thread."""
    assert _run.left is not None
    _run.left -= steps
    if _run.left < 0.0:
        raise TakesLongError


def borrowed(array: Any) -> Any:
    """Give the same array; in compiled code without an owner, see `numeric.compiler`."""
    return array

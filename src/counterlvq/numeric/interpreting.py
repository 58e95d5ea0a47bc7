"""How the interpreter runs what is written for the compiler, and how long it may take."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, final

import numpy as np

__all__ = ["TakesLongError", "borrowed", "interpreted", "is_interpreting", "spend"]


class TakesLongError(Exception):
    """The interpreter has taken as many steps as it was given."""


@final
class _Run(threading.local):
    """Steps that are left to the kernel that the interpreter runs in a thread, if it runs one."""

    left: float | None = None


_run = _Run()


def interpreted(function: Callable[..., Any], left: float, *given: Any) -> tuple[Any, float]:
    """Run a kernel as Python, with so many steps left; return the answer and what is left then.

    Compiled code divides by zero and overflows without a word; so does this.
    """
    _run.left = left
    try:
        with np.errstate(all="ignore"):
            answer = function(*given)
        return answer, _run.left
    finally:
        _run.left = None


def is_interpreting() -> bool:
    """Whether the interpreter runs a kernel in this thread."""
    return _run.left is not None


def spend(steps: float) -> None:
    """Take steps off those that are left to the kernel in this thread."""
    assert _run.left is not None
    _run.left -= steps
    if _run.left < 0.0:
        raise TakesLongError


def borrowed(array: Any) -> Any:
    """Give the same array; in compiled code without an owner, see `numeric.compiler`."""
    return array

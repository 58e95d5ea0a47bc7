"""Clarabel, without what it should not do to its caller."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import clarabel
import numpy as np

from counterlvq.arrays import Floats
from counterlvq.solvers.patience import run_clarabel
from counterlvq.solvers.solution import Outcome

__all__ = ["Raw", "run_guarded"]

_SOLVED = ("Solved", "AlmostSolved")
_EMPTY = ("PrimalInfeasible", "AlmostPrimalInfeasible")


class Raw(NamedTuple):
    """A solver's word, to be checked."""

    outcome: Outcome
    x: Floats
    duals: Floats
    out_of_time: bool = False


@contextmanager
def _muted() -> Iterator[None]:
    """Keep a panic's own words off the user's terminal; they are written past Python.

    Clarabel holds the interpreter's lock while it runs, so no other thread is silenced.
    """
    try:
        kept = os.dup(2)
    except OSError:  # there is no such stream
        yield
        return
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def run_guarded(
    P: Any, q: Floats, left: Any, right: Floats, cones: list[object], *, tolerance: float,
    seconds: float, refined: bool = True,
) -> Raw | None:  # fmt: skip
    """Solve one cone program; None if that fails, in whichever way.

    An ill-conditioned program can make Clarabel panic, which is no `Exception` in Python.
    Without `refined` it does not correct its steps for rounding, which is faster by a third.
    """
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.iterative_refinement_enable = refined
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    if np.isfinite(seconds):
        settings.time_limit = max(seconds, 1e-3)
    try:
        with _muted():
            solution = run_clarabel(P, q, left, right, cones, settings)
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        return None
    status = str(solution.status)
    x, duals = np.array(solution.x), np.array(solution.z)
    if status in _SOLVED:
        return Raw(Outcome.SOLVED, x, duals)
    if status in _EMPTY:
        return Raw(Outcome.INFEASIBLE, x, duals)
    return Raw(Outcome.FAILED, x, duals, status == "MaxTime")

"""Clarabel, without what it should not do to its caller: a panic is a program not solved."""

from __future__ import annotations

from typing import Any, NamedTuple

import clarabel
import numpy as np

from counterlvq.numeric.arrays import Floats
from counterlvq.solvers.interruptible_runs import is_panic, run_clarabel
from counterlvq.solvers.solution import Outcome

__all__ = ["Raw", "run_guarded", "solved"]

_SOLVED = ("Solved", "AlmostSolved")
_EMPTY = ("PrimalInfeasible", "AlmostPrimalInfeasible")


class Raw(NamedTuple):
    """A solver's word, to be checked."""

    outcome: Outcome
    x: Floats
    duals: Floats
    out_of_time: bool = False


def solved(
    P: Any, q: Floats, left: Any, right: Floats, cones: list[object], settings: Any
) -> Any | None:
    """Run Clarabel; None if it panics, which is no `Exception` in Python.

    A panic also writes some lines to file descriptor 2, past Python, and has no setting that
    keeps it from that. They are left alone: the descriptor belongs to the whole process, and
    whoever moves it, even for a moment and under a lock, takes away what other threads and
    processes forked meanwhile have to say. What makes a panic certain, data that are no
    numbers, is not handed over.
    """
    if not all(np.isfinite(part).all() for part in (P.data, q, left.data, right)):
        return None
    try:
        return run_clarabel(P, q, left, right, cones, settings)
    except BaseException as error:
        if not is_panic(error):
            raise
        return None


def run_guarded(
    P: Any, q: Floats, left: Any, right: Floats, cones: list[object], *, tolerance: float,
    seconds: float, refined: bool = True,
) -> Raw | None:  # fmt: skip
    """Solve one cone program; None if that fails, in whichever way.

    Without `refined` it does not correct its steps for rounding, which is faster by a third.
    """
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.iterative_refinement_enable = refined
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    if np.isfinite(seconds):
        settings.time_limit = max(seconds, 1e-3)
    solution = solved(P, q, left, right, cones, settings)
    if solution is None:
        return None
    status = str(solution.status)
    x, duals = np.array(solution.x), np.array(solution.z)
    if status in _SOLVED:
        return Raw(Outcome.SOLVED, x, duals)
    if status in _EMPTY:
        return Raw(Outcome.INFEASIBLE, x, duals)
    return Raw(Outcome.FAILED, x, duals, status == "MaxTime")

"""Solvers that may take long, run so that Ctrl-C ends the wait for them."""

from __future__ import annotations

from typing import Any

import clarabel
import highspy

from counterlvq.arrays import Floats
from counterlvq.interrupts import interruptible

__all__ = ["run_clarabel", "run_highs"]

# Rows and columns from which on a program may take longer than a blink, if all of it is dense.
# Smaller ones are done before another thread would be worth its start.
_LARGE = 500


def run_clarabel(
    P: Any, q: Floats, left: Any, right: Floats, cones: list[object], settings: Any
) -> Any:
    """Solve one cone program; when interrupted, Clarabel stops at its next iteration."""
    stopped: list[bool] = []

    def work() -> Any:
        solver = clarabel.DefaultSolver(P, q, left, right, cones, settings)
        if is_large:
            solver.set_termination_callback(lambda _: bool(stopped))
        return solver.solve()

    is_large = sum(left.shape) >= _LARGE
    return interruptible(work, lambda: stopped.append(True)) if is_large else work()


def run_highs(solver: highspy.Highs) -> None:
    """Solve the program that was passed to HiGHS; when interrupted, it stops at its next look."""
    if solver.getNumCol() + solver.getNumRow() < _LARGE:
        solver.run()
        return
    solver.HandleUserInterrupt = True
    interruptible(solver.run, solver.cancelSolve)

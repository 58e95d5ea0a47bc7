"""Solvers that may take long, run so that Ctrl-C ends the wait for them."""

from __future__ import annotations

import time
from contextlib import suppress
from functools import partial
from math import inf
from typing import Any, NamedTuple

import clarabel
import highspy

from counterlvq.errors import NotSupportedError, WorkerLostError
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.interrupts import interruptible
from counterlvq.numeric.worker_processes import ask_in_processes

__all__ = ["is_over", "is_panic", "run_clarabel", "run_highs", "seconds_until"]

# Rows and columns from which on a program may take longer than a blink, if all of it is dense.
# Smaller ones are done before another thread would be worth its start.
_LARGE = 500
# Those from which on Clarabel takes the better part of a second to get ready, in which no other
# thread of the process can run, and seconds for each iteration, in which nothing stops it.
_HUGE = 8000


# Solvers take no limit of 0 seconds or less.
_SHORTEST = 1e-3


def seconds_until(deadline: float) -> float:
    """Seconds that a solver may take; inf without a deadline."""
    return max(deadline - time.monotonic(), _SHORTEST)


def is_over(deadline: float) -> bool:
    """Whether there is no time left: a small program may be solved before a solver looks."""
    return time.monotonic() >= deadline


# A status, a point and its duals; None for a panic.
_Sent = tuple[str, list[float], list[float], float, float, float, float] | None


class _Solution(NamedTuple):
    """What is used of a solution of Clarabel, which cannot be sent from one process to another."""

    status: Any
    x: list[float]
    z: list[float]
    obj_val: float
    obj_val_dual: float
    r_prim: float
    r_dual: float


def run_clarabel(
    P: Any, q: Floats, left: Any, right: Floats, cones: list[Any], settings: Any
) -> Any:
    """Solve one cone program; an interrupt ends that at the next iteration, or at once if huge.

    None if a process that had a huge one in hand was ended from outside, or panicked.
    """
    size = sum(left.shape)
    if size < _LARGE:
        return clarabel.DefaultSolver(P, q, left, right, cones, settings).solve()
    if size >= _HUGE:
        # Where no other process can be started, this one finds the same, but for how soon it ends.
        with suppress(NotSupportedError):
            return _run_apart(P, q, left, right, cones, settings)
    stopped: list[bool] = []

    def work() -> Any:
        solver = clarabel.DefaultSolver(P, q, left, right, cones, settings)
        solver.set_termination_callback(lambda _: bool(stopped))
        return solver.solve()

    return interruptible(work, lambda: stopped.append(True))


def run_highs(solver: highspy.Highs, deadline: float = inf) -> None:
    """Solve the program that was passed to HiGHS; when interrupted, it stops at its next look."""
    solver.setOptionValue("time_limit", seconds_until(deadline))
    if solver.getNumCol() + solver.getNumRow() < _LARGE:
        solver.run()
        return
    solver.HandleUserInterrupt = True
    interruptible(solver.run, solver.cancelSolve)


def _run_apart(
    P: Any, q: Floats, left: Any, right: Floats, cones: list[Any], settings: Any
) -> _Solution | None:
    """Solve a program in another process, which an interrupt ends."""
    usual = clarabel.DefaultSettings()
    names = [name for name in dir(usual) if not name.startswith("_") and name != "default"]
    chosen = {name: getattr(settings, name) for name in names}
    changed = {name: value for name, value in chosen.items() if value != getattr(usual, name)}
    kinds = [(type(cone).__name__, cone.dim) for cone in cones]
    found: list[_Sent] = []
    ask = partial(_solve_here, P, q, left, right, kinds, changed)
    try:
        ask_in_processes(ask, 1, 1, lambda _, answer: found.append(answer))
    except WorkerLostError:
        return None
    sent = found[0]
    if sent is None:
        return None
    return _Solution(getattr(clarabel.SolverStatus, sent[0]), *sent[1:])


def _solve_here(
    P: Any, q: Floats, left: Any, right: Floats, kinds: list[tuple[str, int]],
    changed: dict[str, Any], _: int,
) -> _Sent:  # fmt: skip
    """Solve a program as another process has sent it."""
    settings = clarabel.DefaultSettings()
    for name, value in changed.items():
        setattr(settings, name, value)
    cones = [getattr(clarabel, kind)(size) for kind, size in kinds]
    try:
        solution = clarabel.DefaultSolver(P, q, left, right, cones, settings).solve()
    except BaseException as error:
        if not is_panic(error):
            raise
        return None
    return (
        str(solution.status), list(solution.x), list(solution.z), solution.obj_val,
        solution.obj_val_dual, solution.r_prim, solution.r_dual,
    )  # fmt: skip


def is_panic(error: BaseException) -> bool:
    """Whether Clarabel gave up on an ill-conditioned program, by what is no `Exception`."""
    return type(error).__name__ == "PanicException"

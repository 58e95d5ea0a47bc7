"""From a solver's change to a finished point that holds in floating point.

A solver's answer lies on the boundary of what it was asked for, and adding it to `x` rounds.
A point just on the wrong side of that rounding is pulled inside by the smallest step that
helps; it is never returned wrong.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from counterlvq.certificates.judged import Accepted
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.finite_algebra import least_squares
from counterlvq.numeric.quadratic_forms import column_lengths
from counterlvq.numeric.tolerances import REPAIR_RANK, UNIT
from counterlvq.programs.program import Program

__all__ = ["settle"]

# Every inequality of the user has to hold to the last digit as long as there is room for that.
# Conditions that leave no room between them may each give way by rounding, in the end.
_STRICT_TRIES = 10
_TRIES = 5
_FIRST_STEP = 2.0 * UNIT
_GROWTH = 4.0


def settle(
    x: Floats,
    delta: Floats,
    program: Callable[[], Program],
    rounding: Floats,
    limits: tuple[Floats, Floats],
    accepted: Callable[[Floats, bool], Accepted | None],
) -> Accepted | None:
    """Return an answer at or next to ``x + delta``, or None if there is none so near.

    `program` states what was asked for; it is called only if the point has to be moved.
    `limits` are the smallest and largest allowed value of each feature. `rounding` holds, for
    the leading rows of the program (those of the cell), the size of the numbers that meet when
    they are judged.
    """
    start = np.clip(x + delta, *limits)
    found = accepted(start, True)
    if found is not None:
        return found
    asked = program()
    for strict, tries in ((True, _STRICT_TRIES), (False, _TRIES)):
        step, y = _FIRST_STEP, start
        for _ in range(tries):
            y = np.clip(x + _pulled_inside(asked, y, x, rounding, step), *limits)
            found = accepted(y, strict)
            if found is not None:
                return found
            step *= _GROWTH
    return None


def _pulled_inside(program: Program, y: Floats, x: Floats, rounding: Floats, step: float) -> Floats:
    """Correct the change by the least that gives every tight row `step` of room."""
    delta = y - x
    magnitude = np.abs(program.A) @ (np.abs(y) + np.abs(x)) + np.abs(program.b)
    magnitude[: rounding.size] = np.maximum(rounding, magnitude[: rounding.size])
    wanted = step * magnitude
    slack = program.b - program.A @ delta
    tight = slack < wanted
    raised, lifted = _raised(program)
    tight &= ~lifted  # met in the end, by raising that column
    rows, gains = [program.A[tight], program.E], [slack[tight] - wanted[tight],
                                                  program.e - program.E @ delta]  # fmt: skip
    for quadric in program.quadrics:
        room = -quadric.true_excess(delta)
        need = step * quadric.magnitude(np.abs(y) + np.abs(x))
        if room < need:
            rows.append(quadric.gradient(delta)[None, :])
            gains.append(np.array([room - need]))
    system, gain = np.concatenate(rows), np.concatenate(gains)
    for movable in _movable(program, delta):
        correction = _least_correction(program, system, gain, movable)
        miss = np.abs(system @ correction - gain)
        if (miss <= 0.25 * np.abs(gain)).all():
            break
    moved = np.asarray(delta + correction)
    if raised >= 0:
        held = program.A[lifted]
        needed = (held @ moved - program.b[lifted] + wanted[lifted]) / -held[:, raised]
        moved[raised] += max(float(needed.max(initial=0.0)), 0.0)
    return moved


def _raised(program: Program) -> tuple[int, NDArray[np.bool_]]:
    """Find the column of the largest change: it alone has a price, and raised it only gives room.

    With the rows that it gives room, (m,); -1 where the cost is another one.
    """
    A, priced = program.A, np.flatnonzero(program.w > 0)
    if priced.size == 1 and not program.L.shape[0] and not program.quadrics:
        at = int(priced[0])
        if program.upper[at] == np.inf and (A[:, at] <= 0).all() and not program.E[:, at].any():
            return at, A[:, at] < 0
    return -1, np.zeros(A.shape[0], dtype=bool)


def _movable(program: Program, delta: Floats) -> list[NDArray[np.bool_]]:
    """Features that may take the correction: those that change anyway, else any that can."""
    free = program.lower < program.upper
    inside = (delta > program.lower) & (delta < program.upper)
    return [free & inside & (delta != 0), free & inside, free]


def _least_correction(
    program: Program, system: Floats, gain: Floats, movable: NDArray[np.bool_]
) -> Floats:
    correction = np.zeros(program.width)
    if not movable.any() or not gain.size:
        return correction
    price = program.w + column_lengths(program.L)
    unit = 1.0 / np.where(price > 0, price, 1.0)[movable]
    part = system[:, movable] * unit
    size = np.sqrt(np.einsum("ij,ij->i", part, part))
    size = np.where(size > 0, size, 1.0)
    # Directions that are dropped make a poor correction, which is judged like any other point.
    solved = least_squares(part / size[:, None], gain / size, REPAIR_RANK)
    if solved is not None:
        correction[movable] = unit * solved
    return correction

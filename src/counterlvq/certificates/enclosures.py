"""Boxes of changes, with sides that nothing allowed lies beyond.

A claim about all changes within a box is a claim about all changes only if nothing that the
user allows lies outside. So every side here is rounded outwards, and where neither bounds nor
cost set one it is infinite: how far a search looks is no side.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.finite_algebra import least_squares
from counterlvq.numeric.tolerances import INEQUALITY_ROUNDING, UNIT
from counterlvq.programs.conditions import LinearConditions, QuadraticCondition
from counterlvq.programs.nonconvex import Box
from counterlvq.programs.program import Program
from counterlvq.programs.proof_data import limits_within

__all__ = [
    "around",
    "limits_of",
    "moved",
    "right_sides",
    "rounded_up",
    "within_rows",
    "within_rows_in_turn",
]

# How often linear conditions narrow a box, all at once and one after the other; the latter as
# often as in `check_certificate`, whose boxes the multipliers of a file have to serve.
_SWEEPS, _SWEEPS_IN_TURN = 3, 12
# Up to so many products, right-hand sides are summed exactly and rounded once.
_EXACT_TERMS = 4096


def right_sides(rows: LinearConditions, x: Floats) -> tuple[Floats, Floats]:
    """Right-hand sides of ``A delta <= v - (A + R) x`` and bounds on their rounding, (k,) each."""
    if int(np.count_nonzero(rows.A) + np.count_nonzero(rows.R)) <= _EXACT_TERMS:
        exact = [_right_side(rows, k, x) for k in range(rows.v.size)]
        # Rounded up by one number; what that adds is left open.
        above = [rounded_up(value) for value in exact]
        ends = np.isfinite(above)
        miss = [
            rounded_up(Fraction(near) - value) if is_end else np.inf
            for value, near, is_end in zip(exact, above, ends, strict=True)
        ]
        return np.where(ends, above, 0.0), np.array(miss, dtype=np.float64)
    both = rows.A + rows.R
    size = np.abs(both) @ np.abs(x) + np.abs(rows.v)
    # A + R is one more rounding of each product.
    return rows.v - both @ x, (x.size + 4) * UNIT * size


def limits_of(bounds: LinearConditions, fixed: LinearConditions, x: Floats) -> Box:
    """Box of the changes that rows on one feature each allow, rounded outwards."""
    box = Box.whole(x.size)
    for rows in (bounds, fixed):
        for k in range(rows.v.size):
            j = int(np.abs(rows.A[k]).argmax())
            slope = float(rows.A[k, j])
            end = _right_side(rows, k, x) / Fraction(slope)
            if slope > 0 or rows.equality:
                box.upper[j] = min(box.upper[j], rounded_up(end))
            if slope < 0 or rows.equality:
                box.lower[j] = max(box.lower[j], -rounded_up(-end))
    size = np.maximum(np.abs(box.lower + x), np.abs(box.upper + x)) + np.abs(x)
    with np.errstate(invalid="ignore"):
        # An answer may break either bound by rounding; this only ever makes a box larger.
        touching = (box.lower > box.upper) & (box.lower - box.upper <= INEQUALITY_ROUNDING * size)
    return Box(np.where(touching, box.upper, box.lower), np.where(touching, box.lower, box.upper))


def moved(quadric: QuadraticCondition, x: Floats) -> QuadraticCondition:
    """Write a condition for the change ``y - x``, with bounds on the rounding of its numbers."""
    out = quadric.moved(x)
    n = (x.size + 3) * UNIT
    lifted = np.abs(quadric.G) @ np.abs(x)
    sloped = float(np.abs(quadric.h) @ np.abs(x))
    return QuadraticCondition(
        out.G,
        out.g,
        out.h,
        out.c,
        # A number that nothing is taken off is not rounded.
        g_blur=np.where(lifted > 0, n * (lifted + np.abs(quadric.g)), 0.0),
        c_blur=n * (sloped + abs(quadric.c)) if sloped > 0 else 0.0,
    )


def around(quadric: QuadraticCondition) -> Box:
    """Box around an ellipsoid, rounded outwards; everything where it has no end, or slopes."""
    everything = Box.whole(quadric.h.size)
    if quadric.h.any():
        return everything
    n = (quadric.h.size + quadric.g.size + 8) * UNIT
    center = least_squares(quadric.G, quadric.g, None)
    if center is None:
        return everything
    # |G (y - center)| <= |G y - g| + |G center - g|, wherever rounding has put the centre.
    rest = np.abs(quadric.G @ center - quadric.g) + quadric.g_open
    rest += n * (np.abs(quadric.G) @ np.abs(center) + np.abs(quadric.g))
    length = np.sqrt(max(quadric.c + quadric.c_blur, 0.0)) + np.sqrt(float(rest @ rest))
    room = length * length * (1.0 + n)
    if not np.isfinite(room) or not np.isfinite(center).all():
        return everything
    limits = limits_within(np.zeros(center.size), quadric.G, room)
    slack = 2.0 * UNIT * (np.abs(center) + np.where(np.isfinite(limits), limits, 0.0))
    return Box(center - limits - slack, center + limits + slack)


def within_rows(program: Program, box: Box) -> Box:
    """Keep of a box what the linear conditions leave of each side, given the other sides.

    A side that only follows from an infinite one is none.
    """
    A = np.concatenate([program.A, program.E, -program.E])
    b = np.concatenate([program.b, program.e, -program.e])
    blur = np.concatenate([program.blur, program.blur[program.b.size :]])
    n = (A.shape[1] + 4) * UNIT
    for _ in range(_SWEEPS if b.size else 0):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            least = np.where(A > 0, A * box.lower, np.where(A < 0, A * box.upper, 0.0))
            is_open = ~np.isfinite(least)
            known = np.where(is_open, 0.0, least)
            others = is_open.sum(axis=1, keepdims=True) - is_open
            rest = known.sum(axis=1, keepdims=True) - known
            size = np.abs(known).sum(axis=1) + np.abs(b)
            ends = (b[:, None] - rest + (n * size + blur)[:, None]) / A
            ends = np.where((others == 0) & np.isfinite(ends), ends, np.sign(A) * np.inf)
        slack = 4.0 * UNIT * np.where(np.isfinite(ends), np.abs(ends), 0.0)
        new = Box(
            np.where(A < 0, ends - slack, -np.inf).max(axis=0),
            np.where(A > 0, ends + slack, np.inf).min(axis=0),
        )
        if (new.lower <= box.lower).all() and (new.upper >= box.upper).all():
            break
        box = box.within(new)
    return box


def within_rows_in_turn(program: Program, box: Box) -> Box:
    """As `within_rows`, one condition after the other, so that each sees what others have left."""
    A = np.concatenate([program.A, np.repeat(program.E, 2, axis=0)])
    b = np.concatenate([program.b, np.repeat(program.e, 2)])
    blur = np.concatenate(
        [program.blur[: program.b.size], np.repeat(program.blur[program.b.size :], 2)]
    )
    A[program.b.size + 1 :: 2] *= -1.0
    b[program.b.size + 1 :: 2] *= -1.0
    lower, upper, n = box.lower.copy(), box.upper.copy(), (A.shape[1] + 4) * UNIT
    for _ in range(_SWEEPS_IN_TURN if b.size else 0):
        before = lower.copy(), upper.copy()
        for row, right, open_by in zip(A, b.tolist(), blur.tolist(), strict=True):
            _narrow(row, right, open_by, n, lower, upper)
        if np.array_equal(lower, before[0]) and np.array_equal(upper, before[1]):
            break
    return Box(lower, upper)


def _narrow(
    row: Floats, right: float, open_by: float, n: float, lower: Floats, upper: Floats
) -> None:
    """Narrow each side by ``row'delta <= right``, given the others, in place."""
    at = np.flatnonzero(row)
    slopes = row[at]
    with np.errstate(invalid="ignore", over="ignore"):
        least = slopes * np.where(slopes > 0, lower[at], upper[at])
        is_open = ~np.isfinite(least)
        if is_open.sum() > 1:
            return
        known = np.where(is_open, 0.0, least)
        size = float(np.abs(known).sum()) + abs(right)
        ends = (right - (known.sum() - known) + n * size + open_by) / slopes
        ends += np.sign(slopes) * 4.0 * UNIT * np.abs(ends)
        usable = np.isfinite(ends) & (is_open if is_open.any() else True)
    rising, falling = usable & (slopes > 0), usable & (slopes < 0)
    upper[at[rising]] = np.minimum(upper[at[rising]], ends[rising])
    lower[at[falling]] = np.maximum(lower[at[falling]], ends[falling])


def _right_side(rows: LinearConditions, k: int, x: Floats) -> Fraction:
    """``v - (A + R) x`` of one row, exactly."""
    total = Fraction(float(rows.v[k]))
    for j in np.flatnonzero((rows.A[k] != 0) | (rows.R[k] != 0)):
        both = Fraction(float(rows.A[k, j])) + Fraction(float(rows.R[k, j]))
        total -= both * Fraction(float(x[j]))
    return total


def rounded_up(value: Fraction) -> float:
    """Least float that is not below a number; inf where there is none."""
    try:
        near = float(value)
    except OverflowError:
        return np.inf if value > 0 else -float(np.finfo(np.float64).max)
    return near if Fraction(near) >= value else float(np.nextafter(near, np.inf))

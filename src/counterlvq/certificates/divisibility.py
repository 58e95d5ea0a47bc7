"""Whether whole numbers can meet linear conditions at all: a greatest common divisor may forbid it.

``6 a + 10 b`` is even for whole a and b, so that it is never 15. Boxes show that only once they are
cut to single points, of which there are infinitely many without bounds. The sums are exact, and
what a condition gives way by counts for it.
"""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from math import floor, gcd, inf

import numpy as np

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import WHOLE_DOUBLES
from counterlvq.programs.grids import Grid
from counterlvq.programs.nonconvex import Box
from counterlvq.programs.program import Program

__all__ = ["no_whole_numbers_meet"]


def no_whole_numbers_meet(program: Program, grid: Grid, x: Floats, box: Box) -> bool:
    """Whether some sum over whole numbers in a box has no value that the conditions allow it.

    Conditions on the same sum, from below and from above, count together.
    """
    step = np.where(grid.step > 0, grid.step, 1.0)
    is_whole = (grid.step > 0) & (grid.parts == 1.0) & (np.fmod(x, step) == 0.0)
    if grid.from_input is not None:
        is_whole &= ~grid.from_input
    far = np.maximum(np.abs(x + box.lower), np.abs(x + box.upper))
    step = np.where(far < WHOLE_DOUBLES, step, 1.0)
    limits: dict[bytes, tuple[Floats, float, float]] = {}
    for row, low, high in _limited(program):
        if not np.isfinite(row).all() or not row.any() or not is_whole[row != 0].all():
            continue
        # The sum with the sign that its first factor is positive.
        sign = float(np.sign(row[np.flatnonzero(row)[0]]))
        ends = (low, high) if sign > 0 else (-high, -low)
        key = (sign * row + 0.0).tobytes()
        _, least, most = limits.get(key, (row, -inf, inf))
        limits[key] = sign * row, max(least, ends[0]), min(most, ends[1])
    return any(
        _lies_between_values(row, least, most, step, grid.most_near, box)
        for row, least, most in limits.values()
        if np.isfinite(least) and np.isfinite(most)
    )


def _limited(program: Program) -> list[tuple[Floats, float, float]]:
    """All sums of changes with what they are at least and at most, loosened outwards."""
    out = []
    for row, right, blur in zip(program.A, program.b, program.blur, strict=False):
        out.append((row, -inf, float(np.nextafter(right + blur, inf))))
    for row, right, blur in zip(program.E, program.e, program.blur[program.b.size :], strict=True):
        low, high = np.nextafter(right - blur, -inf), np.nextafter(right + blur, inf)
        out.append((row, float(low), float(high)))
    return out


def _lies_between_values(
    row: Floats, least: float, most: float, step: Floats, most_near: Floats, box: Box
) -> bool:
    """Whether no value of a sum of whole changes lies in an interval."""
    at, is_open = np.flatnonzero(row), box.lower < box.upper
    # A value may be off the grid by rounding and still count as on it.
    off = _sum_of_products(np.abs(row[at]), most_near[at])
    low, high = Fraction(least) - off, Fraction(most) + off
    fixed = at[~is_open[at]]
    start = _sum_of_products(row[fixed], box.lower[fixed])
    apart = [abs(Fraction(float(row[j]))) * int(step[j]) for j in at[is_open[at]]]
    if not apart:
        return not low <= start <= high
    divisor = reduce(_common_divisor, apart)
    return start + divisor * floor((high - start) / divisor) < low


def _sum_of_products(one: Floats, other: Floats) -> Fraction:
    """Add up, exactly."""
    pairs = zip(one.tolist(), other.tolist(), strict=True)
    return sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0))


def _common_divisor(one: Fraction, other: Fraction) -> Fraction:
    of = one.denominator * other.denominator
    return Fraction(gcd(one.numerator * other.denominator, other.numerator * one.denominator), of)

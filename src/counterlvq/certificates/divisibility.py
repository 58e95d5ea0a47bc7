"""Whether whole numbers can meet linear conditions at all: a greatest common divisor may forbid it.

``6 a + 10 b`` is even for whole a and b, so that it is never 15. Boxes show that only once they are
cut to single points, of which there are infinitely many without bounds. Nor are there whole a and b
with ``a + b == 3`` and ``a - b == 2``, though either has some: sums that have one value left are
solved together in whole numbers. All is exact, and what a condition gives way by counts for it.
"""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from math import ceil, floor, gcd, inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import WHOLE_DOUBLES
from counterlvq.programs.grids import Grid
from counterlvq.programs.nonconvex import Box
from counterlvq.programs.program import Program

__all__ = ["common_divisor", "has_whole_steps", "no_whole_numbers_meet"]

# Sums are solved together as long as whole numbers have no more bits than this.
_MOST_BITS = 4096


def no_whole_numbers_meet(program: Program, grid: Grid, x: Floats, box: Box) -> bool:
    """Whether some sum over whole numbers in a box has no value that the conditions allow it.

    Conditions on the same sum, from below and from above, count together.
    """
    step = np.where(grid.step > 0, grid.step, 1.0)
    is_whole = has_whole_steps(grid) & (np.fmod(x, step) == 0.0)
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
    sums = [
        _Sum.of(row, least, most, step, grid.most_near, box)
        for row, least, most in limits.values()
        if np.isfinite(least) and np.isfinite(most)
    ]
    return any(each.has_no_value for each in sums) or _clash(sums)


def has_whole_steps(grid: Grid) -> NDArray[np.bool_]:
    """Which columns have values that are multiples of whole steps, (d,)."""
    is_whole = (grid.step > 0) & (grid.parts == 1.0)
    if grid.from_input is not None:
        is_whole &= ~grid.from_input
    return np.asarray(is_whole)


def _limited(program: Program) -> list[tuple[Floats, float, float]]:
    """All sums of changes with what they are at least and at most, loosened outwards."""
    out = []
    for row, right, blur in zip(program.A, program.b, program.blur, strict=False):
        out.append((row, -inf, float(np.nextafter(right + blur, inf))))
    for row, right, blur in zip(program.E, program.e, program.blur[program.b.size :], strict=True):
        low, high = np.nextafter(right - blur, -inf), np.nextafter(right + blur, inf)
        out.append((row, float(low), float(high)))
    return out


class _Sum(NamedTuple):
    """Values ``sum_c apart_c n_c`` for whole n, between two ends."""

    apart: dict[int, Fraction]  # by columns that the box leaves open
    low: Fraction
    high: Fraction

    @classmethod
    def of(
        cls, row: Floats, least: float, most: float, step: Floats, most_near: Floats, box: Box
    ) -> _Sum:
        """Put in what the box holds in place."""
        at, is_open = np.flatnonzero(row), box.lower < box.upper
        # A value may be off the grid by rounding and still count as on it.
        off = _sum_of_products(np.abs(row[at]), most_near[at])
        fixed = at[~is_open[at]]
        start = _sum_of_products(row[fixed], box.lower[fixed])
        apart = {int(j): Fraction(float(row[j])) * int(step[j]) for j in at[is_open[at]]}
        return cls(apart, Fraction(least) - off - start, Fraction(most) + off - start)

    @property
    def divisor(self) -> Fraction:
        """What all values are multiples of."""
        return reduce(common_divisor, map(abs, self.apart.values()))

    @property
    def has_no_value(self) -> bool:
        """Whether no value lies between the ends."""
        if not self.apart:
            return not self.low <= 0 <= self.high
        return self.divisor * floor(self.high / self.divisor) < self.low

    @property
    def only(self) -> tuple[dict[int, int], int] | None:
        """The sum in whole numbers, where one value of it lies between the ends."""
        if not self.apart:
            return None
        divisor = self.divisor
        value = floor(self.high / divisor)
        if ceil(self.low / divisor) != value:
            return None
        return {j: int(part / divisor) for j, part in self.apart.items()}, value


def _clash(sums: list[_Sum]) -> bool:
    """Whether no whole numbers give all sums of one value theirs.

    Columns are added to each other until each sum depends on one more of them than those before.
    """
    known = [only for only in (each.only for each in sums) if only is not None]
    at = sorted({j for row, _ in known for j in row})
    # One column of coefficients for each unknown, and what is left of the right-hand sides.
    columns = [[row.get(j, 0) for row, _ in known] for j in at]
    left = [value for _, value in known]
    for n in range(len(known) if len(known) > 1 else 0):
        while True:
            used = sorted((c for c in columns if c[n]), key=lambda c: abs(c[n]))
            if len(used) < 2:
                break
            first = used[0]
            for other in used[1:]:
                share = other[n] // first[n]
                other[:] = [a - share * b for a, b in zip(other, first, strict=True)]
                if max(map(abs, other)).bit_length() > _MOST_BITS:
                    return False
        if not used:
            if left[n]:
                return True
            continue
        pivot = used[0]
        if left[n] % pivot[n]:
            return True
        share = left[n] // pivot[n]
        left = [a - share * b for a, b in zip(left, pivot, strict=True)]
        columns = [c for c in columns if c is not pivot]
    return False


def _sum_of_products(one: Floats, other: Floats) -> Fraction:
    """Add up, exactly."""
    pairs = zip(one.tolist(), other.tolist(), strict=True)
    return sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0))


def common_divisor(one: Fraction, other: Fraction) -> Fraction:
    """Return the largest number that both are whole multiples of."""
    of = one.denominator * other.denominator
    return Fraction(gcd(one.numerator * other.denominator, other.numerator * one.denominator), of)

"""What multipliers prove about one cell, in exact arithmetic: where rounding hides the answer.

The same sums as in `duality_kernel`, in fractions. Two things need them: a bound whose rounding
is larger than what is left to prove, and a proof along directions in which nothing limits a
change. There the charged conditions have to cancel exactly, which multipliers of a solver never
do; they are corrected first, by as little as possible.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

import numpy as np

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.exact import scaled

__all__ = ["Charged", "ExactLeast", "ExactSum", "fractions_of", "rounded_down"]

# Unlimited directions up to which the corrected multipliers are solved for: the work grows with
# the third power, on numbers that grow as well.
_MOST_FREE = 40
# How often directions are added that a correction has set loose.
_ROUNDS = 4


@final
@dataclass(frozen=True)
class Charged:
    """One condition ``row' delta <= right`` (or ``==``) and its multiplier.

    A square ``q ((row' delta - right) / 2)^2``, of the cost or of a quadratic condition that is
    charged for, is replaced by its tangent, ``v (row' delta - right) - v^2 / q``, which is nowhere
    above it: v is its multiplier, of either sign, and may be corrected like any other.
    """

    row: list[Fraction]  # (d,)
    right: Fraction
    multiplier: Fraction
    is_free: bool  # an equality or a tangent: its multiplier may have either sign
    rival: int = -1  # the prototype that the condition is about, if it is one
    curvature: Fraction | None = None  # q of a square that is replaced by its tangent


@final
@dataclass(frozen=True)
class ExactLeast:
    """Least value of a sum, and the rivals that it charges for."""

    value: Fraction
    rivals: tuple[int, ...]


@final
@dataclass
class ExactSum:
    """Cost, charged conditions and a box; `least` is what no change in it undercuts."""

    up: list[Fraction]  # (d,) price of one unit upwards
    down: list[Fraction]  # (d,) and downwards
    low: list[Fraction | None]  # None without an end
    high: list[Fraction | None]
    slope: list[Fraction]  # of what is not to be corrected
    constant: Fraction
    charged: list[Charged] = field(default_factory=list)

    def least(self) -> ExactLeast | None:
        """Least value over the box; None if it has none."""
        multipliers = [item.multiplier for item in self.charged]
        first, constant = self._summed(multipliers)
        slope, loose = first, set(self._running_off(first))
        running_off = loose
        for _ in range(_ROUNDS):
            if not running_off:
                value = constant + sum(self._least(j, slope[j]) for j in range(len(slope)))
                pairs = zip(self.charged, multipliers, strict=True)
                return ExactLeast(value, tuple(i.rival for i, y in pairs if y and i.rival >= 0))
            corrected = self._corrected(first, sorted(loose))
            if corrected is None:
                return None
            multipliers = corrected
            slope, constant = self._summed(multipliers)
            running_off = set(self._running_off(slope))
            loose = loose | running_off
        return None

    def _summed(self, multipliers: list[Fraction]) -> tuple[list[Fraction], Fraction]:
        slope, constant = list(self.slope), self.constant
        for item, y in zip(self.charged, multipliers, strict=True):
            if y:
                slope = [s + y * a for s, a in zip(slope, item.row, strict=True)]
                constant -= y * item.right
                if item.curvature is not None:
                    constant -= y * y / item.curvature
        return slope, constant

    def _running_off(self, slope: list[Fraction]) -> list[int]:
        """Features along which the sum falls without end."""
        return [
            j
            for j, s in enumerate(slope)
            if (self.low[j] is None and s > self.down[j])
            or (self.high[j] is None and -s > self.up[j])
        ]

    def _least(self, j: int, slope: Fraction) -> Fraction:
        low, high = self.low[j], self.high[j]
        ends = [end for end in (low, high) if end is not None]
        nearest = Fraction(0)
        if low is not None:
            nearest = max(nearest, low)
        if high is not None:
            nearest = min(nearest, high)
        price = {True: self.up[j], False: -self.down[j]}
        return min((price[end > 0] + slope) * end for end in [*ends, nearest])

    def _corrected(self, slope: list[Fraction], loose: list[int]) -> list[Fraction] | None:
        """Correct the multipliers so that nothing falls along the loose features.

        Multipliers that are large take the correction, because they can bear it. None if they
        cannot cancel what falls, or would change sign.
        """
        if len(loose) > _MOST_FREE:
            return None
        order = sorted(
            range(len(self.charged)),
            key=lambda k: (not self.charged[k].is_free, -abs(self.charged[k].multiplier)),
        )
        # The slope goes to the nearest value that does not fall.
        wanted = [(self.down[j] if slope[j] > 0 else -self.up[j]) - slope[j] for j in loose]
        rows = [[self.charged[k].row[j] for k in order] + [wanted[n]] for n, j in enumerate(loose)]
        step = _solved(rows)
        if step is None:
            return None
        out = [item.multiplier for item in self.charged]
        for place, k in enumerate(order):
            out[k] += step[place]
            if out[k] < 0 and not self.charged[k].is_free:
                return None
        return out


def _solved(rows: list[list[Fraction]]) -> list[Fraction] | None:
    """Solve linear equations, right-hand sides last, in the first unknowns that will do."""
    count = len(rows[0]) - 1
    pivots: list[tuple[int, int]] = []
    for column in range(count):
        if len(pivots) == len(rows):
            break
        at = next((n for n in range(len(pivots), len(rows)) if rows[n][column]), None)
        if at is None:
            continue
        here = len(pivots)
        rows[here], rows[at] = rows[at], rows[here]
        pivot = rows[here][column]
        rows[here] = [value / pivot for value in rows[here]]
        for n, row in enumerate(rows):
            if n != here and row[column]:
                share = row[column]
                rows[n] = [a - share * b for a, b in zip(row, rows[here], strict=True)]
        pivots.append((here, column))
    if any(row[-1] for row in rows[len(pivots) :]):
        return None
    out = [Fraction(0)] * count
    for here, column in pivots:
        out[column] = rows[here][-1]
    return out


def fractions_of(values: Floats) -> list[Fraction]:
    """Turn finite floats into fractions."""
    units, exponent = scaled(np.asarray(values, dtype=np.float64).reshape(-1))
    power = Fraction(2) ** exponent
    return [Fraction(int(unit)) * power for unit in units]


def rounded_down(value: Fraction) -> float:
    """Return the largest float that is not above a fraction."""
    try:
        near = float(value)
    except OverflowError:
        return -np.inf if value < 0 else float(np.finfo(np.float64).max)
    return near if Fraction(near) <= value else float(np.nextafter(near, -np.inf))

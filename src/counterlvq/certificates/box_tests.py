"""Conditions on numbers, seen from boxes: where a box lies on one side of a threshold."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite
from typing import NamedTuple, final

import numpy as np

from counterlvq.numeric.arrays import Floats
from counterlvq.programs.grids import Ticks
from counterlvq.programs.intervals import ValueRule, near
from counterlvq.programs.nonconvex import Box

__all__ = ["BoxTest", "Cut"]


class Cut(NamedTuple):
    """A change that parts the values of a column: those for which a test holds from others."""

    at: float
    below: float  # largest value below that a search may use
    above: float  # least value above


@final
@dataclass(frozen=True, eq=False)
class BoxTest:
    """Changes of a column for which a test holds, as intervals between cuts."""

    column: int = -1  # none for a test of levels
    parts: tuple[tuple[float, float], ...] = ()
    cuts: tuple[Cut, ...] = ()

    @classmethod
    def of(cls, rule: ValueRule | None, ticks: Ticks, x: Floats) -> BoxTest:
        """State a test of numbers for the changes of `x`."""
        if rule is None:
            return cls()
        parts, cuts = [], []
        for part in rule.at(x):
            low, high = -inf, inf
            if isfinite(part.lower):
                cuts.append(_cut(rule.column, part.lower, part.is_above, ticks, x))
                low = cuts[-1].at
            if isfinite(part.upper):
                cuts.append(_cut(rule.column, part.upper, not part.is_below, ticks, x))
                high = cuts[-1].at
            parts.append((low, high))
        return cls(rule.column, tuple(parts), tuple(cuts))

    def covers(self, box: Box) -> bool:
        """Whether all points of a box that are answers keep what is asked where the test holds.

        Next to a threshold answers keep it on either side of the cut (`ValueRule.applies`); on
        the other side a bound forgoes what follows from it.
        """
        j = self.column
        return any(low <= box.lower[j] and box.upper[j] <= high for low, high in self.parts)


def _cut(j: int, end: float, is_above: bool, ticks: Ticks, x: Floats) -> Cut:
    """Part the values that are below an end from it, or those above it.

    Half of what is near the end lies on either side of the cut: farther from where answers begin
    to keep a condition, and from where they cease to, than the rounding of a change can reach.
    Between two values of a grid it lies in the middle.
    """
    here = float(x[j])
    room = near(end, here, float(ticks.grid.most_near[j]))
    at = end + (0.5 * room if is_above else -0.5 * room) - here
    below, above = (end, end + 2.0 * room) if is_above else (end - 2.0 * room, end)

    def is_beyond(change: Floats) -> bool:
        value = float(ticks.values(change)[j])
        return value > end + 0.5 * room if is_above else value >= end - 0.5 * room

    if j in ticks.columns:
        there = np.zeros(x.size)
        there[j] = at
        high = ticks.above(there)
        while isfinite(high[j]) and not is_beyond(high) and ticks.next_above(high)[j] > high[j]:
            high = ticks.next_above(high)
        low = ticks.next_below(high)
        while isfinite(low[j]) and is_beyond(low) and low[j] < high[j]:
            low, high = ticks.next_below(low), low
        if isfinite(low[j]) and isfinite(high[j]) and low[j] < high[j]:
            at = 0.5 * (float(low[j]) + float(high[j]))
    return Cut(at, below, above)

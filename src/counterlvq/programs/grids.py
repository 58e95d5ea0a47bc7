"""Values that lie on a grid: whole numbers, decimals, and the indicators of levels.

A `Grid` says which columns have one and how fine it is; seen from an input it becomes `Ticks`,
which speak of changes, as programs and boxes do.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import GRID_ROUNDING

__all__ = ["Grid", "Ticks"]


@final
@dataclass(frozen=True, eq=False)
class Grid:
    """Columns whose values are ``k * step / parts`` for whole k; `step` is 0 for all others."""

    step: Floats  # (d,) whole numbers
    parts: Floats  # (d,) powers of ten
    groups: tuple[slice, ...] = ()  # coordinates of which one is 1 at most: levels of a feature

    @classmethod
    def none(cls, width: int) -> Grid:
        """No column has a grid."""
        return cls(np.zeros(width), np.ones(width))

    @cached_property
    def columns(self) -> NDArray[np.intp]:
        """The columns that have one."""
        return np.flatnonzero(self.step > 0)

    @cached_property
    def together(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Pairs of coordinates of one group, of which one is 0."""
        pairs = [
            (i, j)
            for group in self.groups
            for i in range(group.start, group.stop)
            for j in range(i + 1, group.stop)
        ]
        listed = np.array(pairs, dtype=np.intp).reshape(-1, 2)
        return listed[:, 0], listed[:, 1]

    @property
    def is_trivial(self) -> bool:
        """Whether no column has one."""
        return not self.columns.size

    def seen_from(self, x: Floats) -> Ticks:
        """State the grid for changes of `x`."""
        return Ticks(self, x)

    def holds(self, y: Floats) -> bool:
        """Whether a point is on the grid wherever there is one."""
        values = y[self.columns]
        near = self._value(np.rint(self._number(values)))
        return bool((np.abs(values - near) <= self._slack(values)).all())

    def _number(self, values: Floats) -> Floats:
        """Divide values of the columns by the distance of neighbours."""
        return np.asarray(values * self.parts[self.columns] / self.step[self.columns])

    def _value(self, number: Floats) -> Floats:
        """Nearest doubles to the values of these numbers: one division, rounded once."""
        return np.asarray(number * self.step[self.columns] / self.parts[self.columns])

    def _slack(self, values: Floats) -> Floats:
        sizes = np.maximum(np.abs(values), self._value(np.ones(values.size)))
        return np.asarray(GRID_ROUNDING * sizes)


@final
@dataclass(frozen=True, eq=False)
class Ticks:
    """The changes of one input that end on the grid."""

    grid: Grid
    x: Floats  # (d,)

    @property
    def columns(self) -> NDArray[np.intp]:
        """The columns that have a grid."""
        return self.grid.columns

    @cached_property
    def _here(self) -> Floats:
        return self.x[self.columns]

    def below(self, delta: Floats) -> Floats:
        """Largest changes of at most `delta` that end on the grid; others as they are, (d,)."""
        return self._rounded(delta, -1.0)

    def above(self, delta: Floats) -> Floats:
        """Smallest changes of at least `delta` that end on the grid; others as they are, (d,)."""
        return self._rounded(delta, 1.0)

    def nearest(self, delta: Floats) -> Floats:
        """Nearest changes that end on the grid; others as they are, (d,)."""
        return self._rounded(delta, 0.0)

    def next_above(self, delta: Floats) -> Floats:
        """Return the changes one tick above changes that end on the grid, (d,)."""
        return self.above(delta + 0.5 * self.grid.step / self.grid.parts)

    def next_below(self, delta: Floats) -> Floats:
        """Return the changes one tick below changes that end on the grid, (d,)."""
        return self.below(delta - 0.5 * self.grid.step / self.grid.parts)

    def decided(self, delta: Floats) -> Floats:
        """Nearest point on the grid to ``x + delta``, one level per feature, (d,).

        Features without a grid are left where the input has them.
        """
        out = self.x.copy()
        out[self.columns] = self.values(self.nearest(delta))[self.columns]
        for group in self.grid.groups:
            taken = (self.x + delta)[group]
            out[group] = 0.0
            if taken.max() > 1.0 - taken.sum():
                out[group.start + int(taken.argmax())] = 1.0
        return out

    def values(self, delta: Floats) -> Floats:
        """End points of changes that end on the grid, to the last digit, (d,)."""
        out = self.x + delta
        there = out[self.columns]
        exact = self.grid._value(np.rint(self.grid._number(there)))
        out[self.columns] = np.where(delta[self.columns] == 0.0, self._here, exact)
        return out

    @cached_property
    def own(self) -> Floats:
        """The values of the grid that the input is nearest to, (columns,)."""
        return self.grid._value(np.rint(self.grid._number(self._here)))

    @cached_property
    def off(self) -> Floats:
        """By how much the input is off the grid, where it counts as on it, (columns,)."""
        off = np.abs(self._here - self.own)
        return np.where(off <= self.grid._slack(self._here), off, 0.0)

    def rounding(self, delta: Floats) -> Floats:
        """How far changes that end on the grid can be from what they stand for, (columns,).

        A change is the difference of a value and the input, rounded; no change stands for the
        value next to the input as well.
        """
        ends = np.isfinite(delta[self.columns])
        change = np.where(ends, delta[self.columns], 0.0)
        value = self.grid._value(np.rint(self.grid._number(self._here + change)))
        back = change - value
        error = np.abs((value - (change - back)) - (self._here + back))
        error = np.where(error > 0, error + np.spacing(np.abs(change)), 0.0)
        return np.where(ends & (change == 0.0), self.off, np.where(ends, error, 0.0))

    def miss(self, delta: Floats) -> Floats:
        """How far changes are from ending on the grid, in steps, at most half, (columns,)."""
        number = self.grid._number(self._here + delta[self.columns])
        return np.asarray(np.abs(number - np.rint(number)))

    def _rounded(self, delta: Floats, way: float) -> Floats:
        out = delta.copy()
        there = delta[self.columns]
        ends = np.isfinite(there)
        values = self._here + np.where(ends, there, 0.0)
        number, nearest = self.grid._number(values), np.rint(self.grid._number(values))
        slack = self.grid._slack(np.maximum(np.abs(values), np.abs(self._here)))
        is_on = np.abs(self.grid._value(nearest) - values) <= slack
        rounded = nearest
        if way:
            rounded = np.where(is_on, nearest, np.floor(number) if way < 0 else np.ceil(number))
        change = self.grid._value(rounded) - self._here
        # An input that is on the grid but for its last digit stays as it is.
        change = np.where(np.abs(change) <= self.grid._slack(self._here), 0.0, change)
        out[self.columns] = np.where(ends, change, there)
        return out

"""Values that a number may have: a union of intervals, with ends that rounding cannot blur.

Between a threshold and the next float there is nothing, but a change is a difference of two floats
and is rounded itself. So a value next to a threshold counts as the threshold: `near` says what is
next to it. An interval that excludes its end excludes all that counts as the end. A condition is
asked for more readily: where it is left open on which side of its threshold a value lies, on both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple, final

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import (
    GRID_ROUNDING,
    LEAST_THRESHOLD,
    LEFT_OUT,
    POINT_ROUNDING,
)

__all__ = ["Interval", "LeastChange", "ValueRule", "complement", "near", "next_to", "points"]


def near(value: float, x: float, most: float = inf) -> float:
    """How far from `value` another value still counts as the same, seen from the input `x`.

    At most `most`, which keeps neighbours on a grid apart.

    Examples
    --------
    >>> near(16.0, 3.0) == 2.0**-40
    True
    """
    return min(max(GRID_ROUNDING * max(abs(value), abs(x)), LEAST_THRESHOLD), most)


def next_to(value: float, x: float, most: float = inf) -> float:
    """As `near`, of a value that stands by itself: its last digits alone.

    Examples
    --------
    >>> abs(0.1 + 0.2 - 0.3) <= next_to(0.3, 0.1) < 1e-15
    True
    """
    return min(max(POINT_ROUNDING * max(abs(value), abs(x)), LEAST_THRESHOLD), most)


class Interval(NamedTuple):
    """All values from `lower` to `upper`, with or without these two."""

    lower: float
    upper: float
    is_above: bool = False  # and not equal to the lower end
    is_below: bool = False  # and not equal to the upper end

    def moved(self, by: float) -> Interval:
        """Shift both ends."""
        return self._replace(lower=self.lower + by, upper=self.upper + by)

    @property
    def is_point(self) -> bool:
        """Whether it is a single value."""
        return self.lower == self.upper

    def holds(self, y: float, x: float, most: float = inf) -> bool:
        """Whether a value lies inside, or counts as an end that does."""
        return self._takes(y, x, 1.0, most, next_to if self.is_point else near)

    def concerns(self, y: float, x: float, most: float = inf) -> bool:
        """Whether a condition on values inside is asked of a value: also of what is near an end."""
        return self._takes(y, x, LEFT_OUT, most, near)

    def _takes(
        self,
        y: float,
        x: float,
        left_out: float,
        most: float,
        room_of: Callable[[float, float, float], float],
    ) -> bool:
        """With an end that is excluded goes a share `left_out` of what counts as it."""
        low, high = self.lower, self.upper
        if low > -inf:
            room = room_of(low, x, most)
            if y <= low + left_out * room if self.is_above else y < low - room:
                return False
        if high == inf:
            return True
        room = room_of(high, x, most)
        return y < high - left_out * room if self.is_below else y <= high + room


def points(values: Iterable[float]) -> tuple[Interval, ...]:
    """List single values as intervals.

    Examples
    --------
    >>> points([24.0, 12.0, 24.0])[0]
    Interval(lower=12.0, upper=12.0, is_above=False, is_below=False)
    """
    return tuple(Interval(value, value) for value in sorted(set(values)))


def complement(parts: Sequence[Interval]) -> tuple[Interval, ...]:
    """List the intervals between sorted ones, and beyond the first and the last.

    Examples
    --------
    >>> complement(points([3.0]))
    (Interval(lower=-inf, upper=3.0, is_above=False, is_below=True), \
Interval(lower=3.0, upper=inf, is_above=True, is_below=False))
    """
    found, low, is_above = [], -inf, False
    for part in parts:
        if part.lower > low:
            found.append(Interval(low, part.lower, is_above, not part.is_above))
        low, is_above = part.upper, not part.is_below
    if low < inf:
        found.append(Interval(low, inf, is_above, is_below=False))
    return tuple(found)


@final
@dataclass(frozen=True, eq=False)
class ValueRule:
    """A column of numbers has a value in one of some intervals, sorted and apart."""

    column: int
    parts: tuple[Interval, ...]
    old: Floats | None = None  # (d,): ends are counted from ``old'x``; None for 0
    most: float = inf  # how far from an end a value may count as it

    def at(self, x: Floats) -> tuple[Interval, ...]:
        """Return the intervals for an input."""
        if self.old is None:
            return self.parts
        by = float(self.old @ x)
        return tuple(part.moved(by) for part in self.parts)

    def holds(self, y: Floats, x: Floats) -> bool:
        """Whether a point has such a value."""
        return any(part.holds(*self._pair(y, x), self.most) for part in self.at(x))

    def applies(self, y: Floats, x: Floats) -> bool:
        """Whether a point has to keep what is asked of such values."""
        return any(part.concerns(*self._pair(y, x), self.most) for part in self.at(x))

    def _pair(self, y: Floats, x: Floats) -> tuple[float, float]:
        return float(y[self.column]), float(x[self.column])


@final
@dataclass(frozen=True)
class LeastChange:
    """A column of numbers changes by at least so much, or not at all."""

    column: int
    by: float

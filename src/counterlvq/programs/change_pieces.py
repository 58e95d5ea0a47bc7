"""Which changes of one column are left where it has a least change, or listed values only."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, isfinite
from typing import NamedTuple

import numpy as np

from counterlvq.numeric.arrays import Floats
from counterlvq.programs.intervals import Interval, ValueRule, near, next_to

__all__ = ["Span", "nearest_piece", "pieces"]


class Span(NamedTuple):
    """Changes from `low` to `high`: of the claim, and the values that a search may use."""

    low: float
    high: float
    low_value: float
    high_value: float
    is_above: bool = False  # what the low end leaves out is next to it
    is_below: bool = False

    def rooms(self, x: float, most: float) -> tuple[float, float]:
        """How far beyond its ends a change still counts as one: not as what they leave out."""
        low = self._room(self.low, x, most) * (0.5 if self.is_above else 1.0)
        return low, self._room(self.high, x, most) * (0.5 if self.is_below else 1.0)

    def _room(self, end: float, x: float, most: float) -> float:
        """Say what rounding may do to a change that ends at a value next to this one."""
        if not isfinite(end):
            return 0.0
        return (next_to if self.low == self.high else near)(x + end, x, most)


def pieces(
    at: Floats, column: int, least: float | None, rules: Iterable[ValueRule], most: float
) -> tuple[Span, ...]:
    """State the allowed changes of a column of the input `at` (d,), piece by piece.

    `least` is the least change but none, `most` how far from a value another may count as it.

    Examples
    --------
    >>> [(span.low, span.high) for span in pieces(np.array([3.0]), 0, 0.5, [], inf)]
    [(-inf, -0.5), (0.0, 0.0), (0.5, inf)]
    """
    x = float(at[column])
    spans = [Span(-inf, inf, -inf, inf)]
    if least is not None:
        spans = [
            Span(-inf, -least, -inf, _differing(x, -least)),
            Span(0.0, 0.0, x, x),
            Span(least, inf, _differing(x, least), inf),
        ]
    for rule in rules:
        if rule.column == column:
            parts = [_span_of(part, x, most) for part in rule.at(at)]
            found = (_common(a, b, x, most) for a in spans for b in parts)
            spans = [both for both in found if both is not None]
    return tuple(sorted(spans))


def nearest_piece(spans: Iterable[Span], delta: float) -> Span:
    """Return the piece that a change lies in, or is nearest to."""
    return min(spans, key=lambda span: max(span.low - delta, delta - span.high))


def _differing(x: float, by: float) -> float:
    """Value next to ``x + by`` whose difference from `x`, as floats have it, is large enough."""
    value = x + by
    while abs(value - x) < abs(by):
        value = float(np.nextafter(value, inf if by > 0 else -inf))
    return value


def _span_of(part: Interval, x: float, most: float) -> Span:
    """State an interval of values for changes of `x`; open ends are left by what is near them."""
    low, high = part.lower, part.upper
    low_room = near(low, x, most) if part.is_above else 0.0
    high_room = near(high, x, most) if part.is_below else 0.0
    # An input that counts as the only value stays as it is.
    if part.is_point and abs(low - x) <= next_to(low, x, most):
        return Span(0.0, 0.0, x, x)
    return Span(
        low + low_room - x,
        high - high_room - x,
        low + 2.0 * low_room,
        high - 2.0 * high_room,
        part.is_above,
        part.is_below,
    )


def _common(one: Span, other: Span, x: float, most: float) -> Span | None:
    """Keep what two pieces have in common; ends that cross by rounding touch."""
    first = max(one, other, key=lambda span: (span.low, span.is_above))
    last = min(one, other, key=lambda span: (span.high, not span.is_below))
    if first.low > last.high + min(first.rooms(x, most)[0], last.rooms(x, most)[1]):
        return None
    if first.low > last.high:
        tight = one if one.low == one.high else other
        return tight if tight.low == tight.high else None
    return Span(
        first.low,
        last.high,
        max(one.low_value, other.low_value),
        min(one.high_value, other.high_value),
        first.is_above,
        last.is_below,
    )

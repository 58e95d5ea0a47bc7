"""Which changes of each column are allowed where not every number will do.

A `Grid` says which columns have whole numbers, decimals or indicators of levels, which may change
by so much at least, and which have listed values only; seen from an input it becomes `Ticks`,
which speak of changes, as programs and boxes do. What stays as it is may lie off a grid: no change
is always on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf, isfinite
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.tolerances import (
    GRID_ROUNDING,
    INEQUALITY_ROUNDING,
    SHARE_OF_STEP,
    SHARE_OF_SUM,
    UNIT,
)
from counterlvq.programs.change_pieces import Span, nearest_piece, pieces
from counterlvq.programs.intervals import LeastChange, ValueRule, next_to

__all__ = ["Choice", "Grid", "Slacks", "Ticks"]

# Rounded changes that an input remembers, about a megabyte of them.
_MOST_KNOWN = 10_000


@final
@dataclass(frozen=True, eq=False)
class Grid:
    """Columns whose values are ``k * step / parts`` for whole k; `step` is 0 for all others."""

    step: Floats  # (d,) whole numbers
    parts: Floats  # (d,) powers of ten
    groups: tuple[slice, ...] = ()  # coordinates of which one is 1 at most: levels of a feature
    from_input: NDArray[np.bool_] | None = None  # (d,) where changes, not values, are multiples
    least: Mapping[int, float] = field(default_factory=dict)  # by column: least change but none
    rules: tuple[ValueRule, ...] = ()  # values that columns are restricted to

    @classmethod
    def none(cls, width: int) -> Grid:
        """Any number will do for each column."""
        return cls(np.zeros(width), np.ones(width))

    def ruled(self, least: Iterable[LeastChange], rules: Iterable[ValueRule]) -> Grid:
        """Allow less: least changes, and values."""
        most: dict[int, float] = {}
        for item in least:
            most[item.column] = max(item.by, most.get(item.column, 0.0))
        kept = {column: by for column, by in most.items() if by > 0}
        return replace(self, least=kept, rules=tuple(rules))

    def apart(self, rule: ValueRule) -> ValueRule:
        """Keep neighbours on the grid apart in a rule."""
        return replace(rule, most=float(self.most_near[rule.column]))

    @cached_property
    def lattice(self) -> NDArray[np.intp]:
        """The columns with whole numbers, decimals or indicators."""
        return np.flatnonzero(self.step > 0)

    @cached_property
    def columns(self) -> NDArray[np.intp]:
        """The columns in which not every change is allowed."""
        special = {*self.least, *(rule.column for rule in self.rules)}
        return np.union1d(self.lattice, np.array(sorted(special), dtype=np.intp)).astype(np.intp)

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
        """Whether any number will do for each column."""
        return not self.columns.size

    def seen_from(self, x: Floats) -> Ticks:
        """State the grid for changes of `x`."""
        return Ticks(self, x)

    def holds(self, y: Floats, x: Floats | None = None) -> bool:
        """Whether a point is allowed, as a change of `x`: what is kept lies where it lies."""
        return bool(self._lies_on(y, x)) and (x is None or self.keeps_rules(y, x))

    def keeps_rules(self, y: Floats, x: Floats) -> bool:
        """Whether a point has values that rules allow, and changes by enough."""
        return all(rule.holds(y, x) for rule in self.rules) and all(
            self._is_ample(j, float(y[j]), float(x[j])) for j in self.least
        )

    def _is_ample(self, j: int, y: float, x: float) -> bool:
        """Whether a value is kept or changes by enough; the difference of two floats is rounded."""
        return y == x or abs(y - x) >= self.least[j] - next_to(y, x, float(self.most_near[j]))

    def on_lattice(self, Y: Floats, X: Floats) -> NDArray[np.bool_]:
        """Which rows of Y lie on the lattice, as changes of those of X, (n,)."""
        return self._lies_on(Y, X)

    def _lies_on(self, y: Floats, x: Floats | None) -> NDArray[np.bool_]:
        """Whether points (..., d) lie on the lattice, (...)."""
        values = y[..., self.lattice]
        kept, origin = np.zeros(values.shape, dtype=bool), np.zeros(values.shape)
        if x is not None:
            kept = values == x[..., self.lattice]
            origin = np.where(self._is_from_input, x[..., self.lattice], 0.0)
        values = values - origin
        off = np.abs(values - self._value(np.rint(self._number(values))))
        near_by = off <= self._slack(np.maximum(np.abs(values), np.abs(origin)))
        return np.asarray((kept | near_by).all(axis=-1))

    @cached_property
    def _is_from_input(self) -> NDArray[np.bool_]:
        if self.from_input is None:
            return np.zeros(self.lattice.size, dtype=bool)
        return np.asarray(self.from_input[self.lattice])

    def _number(self, values: Floats) -> Floats:
        """Divide values of the lattice by the distance of neighbours."""
        return np.asarray(values * self.parts[self.lattice] / self.step[self.lattice])

    def _value(self, number: Floats) -> Floats:
        """Nearest doubles to the values of these numbers: one division, rounded once."""
        return np.asarray(number * self.step[self.lattice] / self.parts[self.lattice])

    @cached_property
    def _apart(self) -> Floats:
        """Distances of neighbours on the lattice, (lattice,)."""
        return self._value(np.ones(self.lattice.size))

    def _slack(self, values: Floats) -> Floats:
        sizes = np.maximum(np.abs(values), self._apart)
        return np.asarray(np.minimum(GRID_ROUNDING * sizes, self.most_near[self.lattice]))

    @cached_property
    def most_near(self) -> Floats:
        """How far from a value another may count as it: neighbours stay apart, (d,)."""
        share = np.full(self.step.size, SHARE_OF_STEP)
        if self.from_input is not None:
            # The sum of an input and a step is rounded.
            share[self.from_input] = SHARE_OF_SUM
        return np.where(self.step > 0, share * self.step / self.parts, inf)

    def slacks(self, A: Floats) -> Slacks:
        """Say how much of their rounding conditions with these factors (k, d) may give way by."""
        used, apart = A != 0, self.step / self.parts
        on = ~(used & (self.step == 0)).any(axis=1) & used.any(axis=1)
        least = np.min(np.abs(A) * apart, axis=1, where=used, initial=inf)
        is_rounded = (used & (self.parts > 1)).any(axis=1)
        if self.from_input is not None:
            is_rounded |= (used & self.from_input).any(axis=1)
        return Slacks(
            np.where(on, SHARE_OF_STEP * least, inf), np.where(is_rounded, INEQUALITY_ROUNDING, 0.0)
        )

    def slacks_alone(self, columns: Sequence[int]) -> Slacks:
        """As `slacks`, of conditions on one of these columns each, with a factor of 1."""
        step, is_rounded = self.step[columns], self.parts[columns] > 1
        if self.from_input is not None:
            is_rounded |= self.from_input[columns]
        is_rounded &= step > 0
        most = np.where(step > 0, SHARE_OF_STEP * step / self.parts[columns], inf)
        return Slacks(most, np.where(is_rounded, INEQUALITY_ROUNDING, 0.0))


class Slacks(NamedTuple):
    """Limits on what conditions give way by: on a grid their sides have a least difference.

    A condition may miss by a share of the numbers that meet in it, but on a grid by no more than
    `most`, or than the rounding of decimals, the share `least` of these numbers.
    """

    most: Floats  # (k,) infinite where a real number takes part
    least: Floats  # (k,)

    def within(self, share: float, sizes: Floats) -> Floats:
        """How much conditions of these sizes may miss by, at a share of them, (k,)."""
        return np.asarray(np.minimum(share * sizes, np.maximum(self.most, self.least * sizes)))


class Choice(NamedTuple):
    """One of the allowed changes of each column, or one piece of them where they are real."""

    y: Floats  # (d,) a point of it
    lower: Floats  # (d,) least value; minus infinity where any will do
    upper: Floats  # (d,) largest value


@final
@dataclass(frozen=True, eq=False)
class Ticks:
    """The changes of one input that are allowed."""

    grid: Grid
    x: Floats  # (d,)

    @property
    def columns(self) -> NDArray[np.intp]:
        """The columns in which not every change is allowed."""
        return self.grid.columns

    @cached_property
    def _here(self) -> Floats:
        return self.x[self.grid.lattice]

    @cached_property
    def _shift(self) -> Floats:
        """Where no change lies on the lattice: at the value, or at 0 where changes count."""
        return np.where(self.grid._is_from_input, 0.0, self._here)

    @cached_property
    def _strays(self) -> NDArray[np.bool_]:
        """Whether the input is off the lattice by more than a last digit, (lattice,)."""
        own = self.grid._value(np.rint(self.grid._number(self._shift)))
        return np.abs(self._shift - own) > self.grid._slack(self._shift)

    def below(self, delta: Floats) -> Floats:
        """Largest allowed changes of at most `delta`, (d,)."""
        return self._rounded(delta, -1.0)

    def above(self, delta: Floats) -> Floats:
        """Smallest allowed changes of at least `delta`, (d,)."""
        return self._rounded(delta, 1.0)

    def nearest(self, delta: Floats) -> Floats:
        """Nearest allowed changes, (d,)."""
        return self._rounded(delta, 0.0)

    def next_above(self, delta: Floats) -> Floats:
        """Return the next allowed changes above allowed ones, (d,).

        Within a piece of real numbers there is none: such a change is returned itself.
        """
        out = self._next(delta, 1.0)
        for j, spans in self._spans.items():
            inside = j not in self._row and any(
                span.low <= delta[j] < span.high for span in spans if span.low < span.high
            )
            later = [span for span in spans if span.high > delta[j]]
            start = float(out[j]) if j in self._row else min([s.low for s in later], default=inf)
            out[j] = delta[j] if inside else self._among(j, later, start, 1.0)
        return out

    def next_below(self, delta: Floats) -> Floats:
        """Return the next allowed changes below allowed ones, (d,), as `next_above` does."""
        out = self._next(delta, -1.0)
        for j, spans in self._spans.items():
            inside = j not in self._row and any(
                span.low < delta[j] <= span.high for span in spans if span.low < span.high
            )
            later = [span for span in spans if span.low < delta[j]]
            start = float(out[j]) if j in self._row else max([s.high for s in later], default=-inf)
            out[j] = delta[j] if inside else self._among(j, later, start, -1.0)
        return out

    def _next(self, delta: Floats, way: float) -> Floats:
        """Next changes on the lattice, (d,); no change counts as one where the input strays."""
        out, at = delta.copy(), self.grid.lattice
        half = 0.5 * self.grid.step[at] / self.grid.parts[at]
        there = delta[at]
        leaves = self._strays & (there == 0.0)
        out[at] = self._on_lattice(np.where(leaves, there, there + way * half), way, keep=False)
        passes = self._strays & (way * there < 0.0) & (way * out[at] > 0.0)
        out[at] = np.where(passes, 0.0, out[at])
        return out

    def choice(self, delta: Floats) -> Choice:
        """Choose what is nearest to a change: one level per feature, one piece of real numbers.

        Features for which any number will do are left where the input has them.
        """
        out, near_by = self.x.copy(), self.nearest(delta)
        lower, upper = np.full(out.size, -inf), np.full(out.size, inf)
        values, at = self.values(near_by), self.grid.lattice
        out[at] = values[at]
        for group in self.grid.groups:
            taken = (self.x + delta)[group]
            out[group] = 0.0
            if taken.max() > 1.0 - taken.sum():
                out[group.start + int(taken.argmax())] = 1.0
        lower[at] = upper[at] = out[at]
        for j, spans in self._spans.items():
            if j in self._row or not isfinite(near_by[j]):
                continue
            span = nearest_piece(spans, float(near_by[j]))
            lower[j], upper[j] = span.low_value, span.high_value
            out[j] = min(max(values[j], lower[j]), upper[j])
        return Choice(out, lower, upper)

    def values(self, delta: Floats) -> Floats:
        """End points of allowed changes, to the last digit, (d,)."""
        out, at = self.x + delta, self.grid.lattice
        number = np.rint(self.grid._number(self._shift + _finite(delta[at])))
        exact = self.grid._value(number)
        exact = np.where(self.grid._is_from_input, self._here + exact, exact)
        out[at] = np.where(delta[at] == 0.0, self._here, exact)
        for j, spans in self._spans.items():
            for span in spans:
                if j not in self._row and span.low == span.high == delta[j] != 0.0:
                    out[j] = span.low_value
        return out

    @cached_property
    def own(self) -> Floats:
        """The values of the lattice that the input is nearest to, (d,)."""
        out = self.x.copy()
        on = self.grid._value(np.rint(self.grid._number(self._shift)))
        out[self.grid.lattice] = np.where(self.grid._is_from_input, self._here, on)
        return out

    @cached_property
    def off(self) -> Floats:
        """By how much the input is off the lattice, where it counts as on it, (d,)."""
        out = np.abs(self.x - self.own)
        out[self.grid.lattice[self._strays]] = 0.0
        return out

    @cached_property
    def blur(self) -> Floats:
        """What the last digits of the input leave open of the ends of allowed changes, (d,).

        Those of a value that is known to the last digit are rounded once, which is not in it.
        """
        is_rounded = self.grid.step == 0
        is_rounded[self.grid.lattice] = self.grid._is_from_input
        return self.off + np.where(is_rounded, 4.0 * UNIT * np.abs(self.x), 0.0)

    def rounding(self, delta: Floats) -> Floats:
        """How far allowed changes can be from what they stand for, (d,).

        A change is the difference of a value and the input, rounded; no change stands for the
        value next to the input as well.
        """
        out = np.zeros(delta.size)
        for j in self._spans:
            if isfinite(delta[j]) and delta[j] != 0.0:
                out[j] = 4.0 * UNIT * (abs(delta[j]) + abs(self.x[j]))
        at = self.grid.lattice
        ends = np.isfinite(delta[at])
        change = np.where(ends, delta[at], 0.0)
        value = self.grid._value(np.rint(self.grid._number(self._shift + change)))
        back = change - value
        error = np.abs((value - (change - back)) - (self._shift + back))
        error = np.where(error > 0, error + np.spacing(np.abs(change)), 0.0)
        # A value that counts from the input is rounded once more.
        farthest = np.abs(self._here) + np.abs(change)
        error += np.where(self.grid._is_from_input, np.spacing(farthest), 0.0)
        error = np.where(change == 0.0, self.off[at], error)
        out[at] = np.where(ends, error, 0.0)
        return out

    def miss(self, delta: Floats) -> Floats:
        """How far changes are from allowed ones, in steps, (d,)."""
        low, high = self.below(delta), self.above(delta)
        with np.errstate(invalid="ignore"):
            off = np.minimum(np.abs(delta - low), np.abs(high - delta))
        return np.where(np.isfinite(off), off, 0.0) / self.unit

    @cached_property
    def unit(self) -> Floats:
        """The distance of neighbours, or the least width of a gap; 1 where there is none, (d,)."""
        out, at = np.ones(self.x.size), self.grid.lattice
        out[at] = self.grid.step[at] / self.grid.parts[at]
        for j, spans in self._spans.items():
            gaps = [b.low - a.high for a, b in pairwise(spans)]
            gaps = [gap for gap in gaps if 0.0 < gap < inf]
            if j not in self._row and gaps:
                out[j] = min(gaps)
        return out

    def is_point(self, j: int, delta: float) -> bool:
        """Whether a change of a column stands for one value, known to the last digit."""
        spans = self._spans.get(j)
        if j in self._row or spans is None or delta == 0.0:
            return True
        return any(span.low == span.high == delta for span in spans)

    def piece(self, j: int, delta: float) -> tuple[float, float]:
        """Return the ends of the piece of real numbers around a change, or the change twice."""
        if j in self._row or j not in self._spans:
            return delta, delta
        span = nearest_piece(self._spans[j], delta)
        return span.low, span.high

    @property
    def ends(self) -> dict[int, list[float]]:
        """Ends of pieces, by columns of real numbers that have any."""
        pieces = {j: spans for j, spans in self._spans.items() if j not in self._row}
        return {j: [end for s in spans for end in s[:2]] for j, spans in pieces.items()}

    def spans_of(self, j: int) -> tuple[Span, ...]:
        """Return the pieces of allowed changes of a column; on a lattice these are single ones.

        Of a lattice only where all of its values are listed.
        """
        spans = self._spans.get(j, (Span(-inf, inf, -inf, inf),))
        if j not in self._row:
            return spans
        found = []
        for span in spans:
            there = np.zeros(self.x.size)
            there[j] = self._among(j, (span,), span.low, 1.0)
            if isfinite(there[j]):
                value = float(self.values(there)[j])
                found.append(Span(float(there[j]), float(there[j]), value, value))
        return tuple(found)

    def gap(self, j: int, low: float, high: float) -> float | None:
        """Return a change in a gap of a column between two changes; None if there is none."""
        if j in self._row:
            return 0.5 * (low + high) if low < high and isfinite(low + high) else None
        held = [s for s in self._spans.get(j, ()) if s.high >= low and s.low <= high]
        return 0.5 * (held[0].high + held[1].low) if len(held) > 1 else None

    # --- on the lattice -------------------------------------------------------------------------

    def _rounded(self, delta: Floats, way: float) -> Floats:
        out = delta.copy()
        out[self.grid.lattice] = self._on_lattice(delta[self.grid.lattice], way)
        for j, spans in self._spans.items():
            out[j] = self._in_piece(j, spans, float(delta[j]), way)
        return out

    def _in_piece(self, j: int, spans: tuple[Span, ...], delta: float, way: float) -> float:
        """Round one change as `_among` does, once: the boxes of a search share most of their sides.

        Both zeros are one key, and so one change.
        """
        key, known = (j, delta + 0.0, way), self._known
        found = known.get(key)
        if found is None:
            if len(known) >= _MOST_KNOWN:
                known.clear()
            found = known[key] = self._among(j, spans, delta + 0.0, way)
        return found

    @cached_property
    def _known(self) -> dict[tuple[int, float, float], float]:
        return {}

    def _on_lattice(self, there: Floats, way: float, *, keep: bool = True) -> Floats:
        """Round changes of the lattice columns down, up or to the nearest, (lattice,).

        No change is on it, unless `keep` says otherwise.
        """
        grid, ends = self.grid, np.isfinite(there)
        wanted = np.where(ends, there, 0.0)
        values = self._shift + wanted
        number = np.rint(grid._number(values))
        change = grid._value(number) - self._shift
        if way:
            # Changes are compared, and not values: large numbers have few digits left.
            sizes = np.maximum(np.abs(values), np.abs(self._shift))
            slack = np.minimum(grid._slack(sizes), SHARE_OF_STEP * grid._apart)
            number = np.where(way * (change - wanted) < -slack, number + way, number)
            closer = grid._value(number - way) - self._shift
            is_closer = way * (closer - wanted) >= -slack
            change = np.where(is_closer, closer, grid._value(number) - self._shift)
        # An input that is on the grid but for its last digit stays as it is.
        change = np.where(np.abs(change) <= grid._slack(self._shift), 0.0, change)
        if keep and self._strays.any():
            change = np.where(self._strays & self._stays(there, change, way), 0.0, change)
        return np.where(ends, change, there)

    def _stays(self, there: Floats, change: Floats, way: float) -> NDArray[np.bool_]:
        """Whether no change is a better choice than the one on the lattice, (lattice,)."""
        slack = self.grid._slack(self._here)
        if way < 0:
            return np.asarray((there >= -slack) & (change < 0.0))
        if way > 0:
            return np.asarray((there <= slack) & (change > 0.0))
        return np.asarray(np.abs(there) <= np.abs(change - there))

    # --- in pieces ------------------------------------------------------------------------------

    @cached_property
    def _row(self) -> Mapping[int, int]:
        """Where each column stands among those of the lattice."""
        return {int(j): k for k, j in enumerate(self.grid.lattice)}

    @cached_property
    def _spans(self) -> Mapping[int, tuple[Span, ...]]:
        """Pieces of the allowed changes, by column: those with a least change or listed values."""
        columns = {*self.grid.least, *(rule.column for rule in self.grid.rules)}
        return {
            j: pieces(
                self.x, j, self.grid.least.get(j), self.grid.rules, float(self.grid.most_near[j])
            )
            for j in sorted(columns)
        }

    def _among(self, j: int, spans: Iterable[Span], delta: float, way: float) -> float:
        """Round one change down, up or to the nearest that lies in a piece."""
        listed = tuple(spans)
        if way == 0.0:
            ends = [self._among(j, listed, delta, side) for side in (-1.0, 1.0)]
            return min(ends, key=lambda end: abs(end - delta))
        for span in reversed(listed) if way < 0 else listed:
            near_end, far_end = (span.high, span.low) if way < 0 else (span.low, span.high)
            rooms = span.rooms(float(self.x[j]), float(self.grid.most_near[j]))
            near_room, room = reversed(rooms) if way < 0 else rooms
            if way * (delta - far_end) > room:
                continue
            start = min(delta, near_end) if way < 0 else max(delta, near_end)
            change = self._tick(j, start, way)
            if (span.is_below if way < 0 else span.is_above) and (
                way * (near_end - change) > near_room
            ):
                # On the lattice the end counts as what it leaves out.
                change = self._tick_after(j, change, way)
            if way * (change - far_end) <= room:
                is_real = j not in self._row
                return min(max(change, span.low), span.high) if is_real else change
        return -inf if way < 0 else inf

    def _tick(self, j: int, delta: float, way: float) -> float:
        """Round a change of one column to the lattice, if it has one."""
        k = self._row.get(j)
        if k is None:
            return delta
        there = np.zeros(self.grid.lattice.size)
        there[k] = delta
        return float(self._on_lattice(there, way)[k])

    def _tick_after(self, j: int, delta: float, way: float) -> float:
        """Find the next change on the lattice of one column."""
        there = np.zeros(self.x.size)
        there[j] = delta
        return float(self._next(there, way)[j])


def _finite(values: Floats) -> Floats:
    return np.where(np.isfinite(values), values, 0.0)

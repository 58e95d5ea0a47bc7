"""The coordinates that programs work in: a number is one, a level is one for each level.

A row of the user's table, once it is read, holds numbers and positions of levels. Between two
levels there is nothing to go through, but the indicators of the levels, one of which is 1, can
be relaxed, and what a model makes of a row is affine in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from counterlvq.arrays import Floats, read_only
from counterlvq.costs import Cost
from counterlvq.errors import InvalidInputError
from counterlvq.features import Feature, Features
from counterlvq.grids import Grid
from counterlvq.rows import Conditional, Implication, LevelRule, Quadric, Rows
from counterlvq.types import Kind

__all__ = ["Coordinates", "Prices"]


@final
@dataclass(frozen=True, eq=False)
class Coordinates:
    """Where the features of a table stand among the coordinates.

    Examples
    --------
    >>> from counterlvq.features import Feature, Features
    >>> spread = Coordinates(Features(["age", Feature("job", levels=["clerk", "nurse"])]))
    >>> spread.inner([[31.0, 1.0]])
    array([[31.,  0.,  1.]])
    >>> spread.names
    ('age', "job == 'clerk'", "job == 'nurse'")
    """

    features: Features

    @cached_property
    def spans(self) -> tuple[slice, ...]:
        """The coordinates of each feature."""
        sizes = [1 if feature.is_number else len(feature.levels) for feature in self.features]
        ends = np.cumsum(sizes, dtype=int).tolist()
        return tuple(slice(end - size, end) for end, size in zip(ends, sizes, strict=True))

    @property
    def width(self) -> int:
        """How many coordinates there are."""
        return self.spans[-1].stop if self.spans else 0

    @cached_property
    def names(self) -> tuple[str, ...]:
        """A name for each coordinate."""
        return tuple(
            name
            for feature in self.features
            for name in (
                [feature.name]
                if feature.is_number
                else [f"{feature.name} == {level!r}" for level in feature.levels]
            )
        )

    @cached_property
    def is_plain(self) -> bool:
        """Whether coordinates are the features, and any number will do for each."""
        return not self.has_levels and self.grid.is_trivial

    @cached_property
    def has_levels(self) -> bool:
        """Whether some feature has levels."""
        return self.width > len(self.features) or any(not f.is_number for f in self.features)

    @cached_property
    def numbers(self) -> NDArray[np.intp]:
        """Coordinates of the features that are numbers."""
        return np.array(
            [span.start for feature, span in self._each if feature.is_number], dtype=np.intp
        )

    @cached_property
    def grid(self) -> Grid:
        """Which coordinates lie on a grid."""
        step, parts = np.zeros(self.width), np.ones(self.width)
        for feature, span in self._each:
            if not feature.is_number:
                step[span] = 1.0
            elif feature.kind is Kind.WHOLE:
                step[span] = feature.step
            elif feature.decimals is not None:
                step[span], parts[span] = 1.0, 10.0**feature.decimals
        groups = tuple(span for feature, span in self._each if not feature.is_number)
        return Grid(step, parts, groups)

    @property
    def _each(self) -> Iterable[tuple[Feature, slice]]:
        return zip(self.features, self.spans, strict=True)

    def inner(self, rows: Sequence[Sequence[float]] | Floats) -> Floats:
        """Take rows of numbers and positions of levels to coordinates, (n, width)."""
        given = np.asarray(rows, dtype=np.float64)
        if not self.has_levels:
            return given
        out = np.zeros((given.shape[0], self.width))
        for j, (feature, span) in enumerate(self._each):
            if feature.is_number:
                out[:, span.start] = given[:, j]
            else:
                out[np.arange(len(given)), span.start + given[:, j].astype(np.intp)] = 1.0
        return read_only(out)

    def outer(self, points: Floats) -> Floats:
        """Take coordinates back to numbers and positions of levels, (n, d)."""
        if not self.has_levels:
            return points
        out = np.empty((points.shape[0], len(self.features)))
        for j, (feature, span) in enumerate(self._each):
            part = points[:, span]
            out[:, j] = part[:, 0] if feature.is_number else part.argmax(axis=1)
            if not feature.is_number:
                out[np.isnan(part).any(axis=1), j] = np.nan
        return out

    @cached_property
    def own_conditions(self) -> tuple[Rows, ...]:
        """What holds of every row of the table: one level at a time, and allowed ranges."""
        found = []
        for feature, span in self._each:
            at = list(range(span.start, span.stop))
            if not feature.is_number:
                found.append(Rows.on_features(at, self.width, new=-1, old=0, value=0))
                found.append(Rows.on_features(at, self.width, new=1, old=0, value=1))
                one = np.zeros((1, self.width))
                one[0, span] = 1.0
                nothing = read_only(np.zeros_like(one))
                found.append(Rows(read_only(one), nothing, read_only(np.ones(1)), equality=True))
            if feature.lower > -np.inf:
                found.append(Rows.on_features(at, self.width, new=-1, old=0, value=-feature.lower))
            if feature.upper < np.inf:
                found.append(Rows.on_features(at, self.width, new=1, old=0, value=feature.upper))
        return tuple(found)

    def spread(
        self, condition: Rows | Quadric | LevelRule | Implication
    ) -> tuple[Rows | Quadric | Conditional, ...]:
        """State a condition on features for the coordinates."""
        if isinstance(condition, Implication):
            absent = self._others(condition.when)
            if isinstance(condition.then, LevelRule):
                out = self._others(condition.then).tolist()
                rows = [Rows.on_features(out, self.width, new=1, old=0, value=0)]
            else:
                rows = self._as_inequalities(self._rows(condition.then))
            return tuple(Conditional(part, absent) for part in rows)
        if isinstance(condition, LevelRule):
            out = self._others(condition).tolist()
            return (Rows.on_features(out, self.width, new=1, old=0, value=0, equality=True),)
        if isinstance(condition, Rows):
            return (self._rows(condition),)
        G, h = np.zeros((condition.G.shape[0], self.width)), np.zeros(self.width)
        G[:, self.numbers] = condition.G[:, self._is_number]
        h[self.numbers] = condition.h[self._is_number]
        return (Quadric(G, condition.g, h, condition.c),)

    @cached_property
    def _is_number(self) -> NDArray[np.bool_]:
        return np.array([feature.is_number for feature in self.features], dtype=bool)

    def _others(self, rule: LevelRule) -> NDArray[np.intp]:
        """Coordinates of the levels that a rule leaves out."""
        span = self.spans[rule.column]
        codes = np.arange(span.stop - span.start)
        out = codes[[code not in rule.codes for code in codes.tolist()]]
        return np.asarray(span.start + out, dtype=np.intp)

    def _rows(self, rows: Rows) -> Rows:
        """Spread linear conditions; on a feature of levels they can only say that it stays."""
        if not self.has_levels:
            return rows
        new_parts, old_parts, values = [], [], []
        for new, old, value in zip(rows.A, rows.R, rows.v, strict=True):
            about_levels = np.flatnonzero((new != 0) & ~self._is_number)
            if about_levels.size:
                span = self.spans[int(about_levels[0])]
                stay = np.eye(self.width)[span]
                new_parts.append(stay)
                old_parts.append(-stay)
                values.append(np.zeros(len(stay)))
                continue
            wide, before = np.zeros((2, 1, self.width))
            wide[0, self.numbers] = new[self._is_number]
            before[0, self.numbers] = old[self._is_number]
            new_parts.append(wide)
            old_parts.append(before)
            values.append(np.array([value]))
        A, R, v = (read_only(np.concatenate(part)) for part in (new_parts, old_parts, values))
        return Rows(A, R, v, rows.equality)

    @staticmethod
    def _as_inequalities(rows: Rows) -> list[Rows]:
        below = Rows(rows.A, rows.R, rows.v)
        if not rows.equality:
            return [below]
        return [below, Rows(read_only(-rows.A), read_only(-rows.R), read_only(-rows.v))]


@final
@dataclass(frozen=True, eq=False)
class Prices:
    """A cost over coordinates: the weights depend on the level that is left."""

    coordinates: Coordinates
    weights: Floats  # (width,) of numbers; 0 for levels
    factor: Floats  # (s, width)
    switches: tuple[tuple[slice, Floats], ...]  # prices from level to level, (levels, levels)

    @classmethod
    def of(cls, cost: Cost, coordinates: Coordinates, columns: Sequence[str]) -> Prices:
        """State a cost; its weights may be for all columns of the table, seen or not."""
        features = coordinates.features
        flat = _per_feature(cost, features, columns)
        weights = np.zeros(coordinates.width)
        weights[coordinates.numbers] = flat[coordinates._is_number]
        factor = cost.l2_factor(coordinates.numbers.size)
        wide = np.zeros((factor.shape[0], coordinates.width))
        wide[:, coordinates.numbers] = factor
        _refuse_strangers(cost, features, columns)
        switches = tuple(
            (span, _switch_prices(cost, feature, float(flat[j]) or 1.0))
            for j, (feature, span) in enumerate(coordinates._each)
            if not feature.is_number
        )
        return cls(coordinates, weights, wide, switches)

    def seen_from(self, x: Floats) -> Floats:
        """Weights of absolute changes of the coordinates of an input, (width,).

        Part of a price is charged for leaving a level and the rest for taking up another, so
        that no coordinate is free: a bound on the cost then bounds each of them.
        """
        w = self.weights.copy()
        for span, table in self.switches:
            level = int(x[span].argmax())
            prices = table[level].copy()
            if prices.size > 1:
                leaving = 0.5 * np.delete(prices, level).min()
                prices -= leaving
                prices[level] = leaving
            else:
                prices[level] = 1.0
            w[span] = prices
        return w


def _per_feature(cost: Cost, features: Features, columns: Sequence[str]) -> Floats:
    if len(columns) > len(features):
        try:
            every = cost.l1_weights(len(columns))
        except InvalidInputError:
            return cost.l1_weights(len(features))
        return np.asarray(every[[list(columns).index(name) for name in features.names]])
    return cost.l1_weights(len(features))


def _refuse_strangers(cost: Cost, features: Features, columns: Sequence[str]) -> None:
    for name in cost.switches:
        if name in columns and name not in features.names:
            continue
        if features[name].is_number:
            raise InvalidInputError(
                f"switches names {name!r}, which is a number; expected features with levels. "
                f"Numbers have weights."
            )


def _switch_prices(cost: Cost, feature: Feature, usual: float) -> Floats:
    """Price of each switch, from the level of the row to that of the column."""
    count = len(feature.levels)
    stated = cost.switches.get(feature.name, usual)
    if not isinstance(stated, Mapping):
        return np.full((count, count), float(stated))
    pairs = {}
    for (before, after), price in stated.items():
        codes = feature.code(before), feature.code(after)
        if min(codes) < 0:
            bad = before if codes[0] < 0 else after
            shown = ", ".join(map(repr, feature.levels[:8]))
            raise InvalidInputError(
                f"switches[{feature.name!r}] names {bad!r}, which is no level; expected one of: "
                f"{shown}."
            )
        pairs[codes] = float(price)
    table = np.full((count, count), usual)
    for (before, after), price in pairs.items():
        table[before, after] = price
        if (after, before) not in pairs:
            table[after, before] = price
    return table

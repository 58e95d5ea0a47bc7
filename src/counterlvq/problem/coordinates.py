"""The coordinates that programs work in: numbers, and for each level whether it is taken up.

A row of the user's table, once it is read, holds numbers and positions of levels. Between two
levels there is nothing to go through, but whether a feature takes up another level than its own
is a 0 or 1 for each other level, of which one is 1 at most. These can be relaxed, and what a
model makes of a row is affine in them. Rows with the same levels share their coordinates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import Floats, read_only
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.tolerances import LIMIT_ROUNDING
from counterlvq.programs.conditions import (
    Conditional,
    Implication,
    LargestChange,
    LevelRule,
    LevelWay,
    LinearConditions,
    QuadraticCondition,
)
from counterlvq.programs.grids import Grid
from counterlvq.programs.intervals import LeastChange, ValueRule
from counterlvq.programs.template import Stated
from counterlvq.safe_text import shown_repr
from counterlvq.tables.feature import Feature
from counterlvq.tables.feature_checks import STEPS
from counterlvq.tables.features import Features
from counterlvq.tables.monotone import Link
from counterlvq.types import Kind

__all__ = ["Coordinates"]

# What coordinates have in common whatever their levels, computed once for all.
_WHATEVER_LEVELS = (
    "_counted_from_own", "_named", "grid", "has_levels", "is_number", "numbers", "own_conditions",
    "spans",
)  # fmt: skip


@final
@dataclass(frozen=True, eq=False)
class Coordinates:
    """Where the features of a table stand among the coordinates, seen from rows with some levels.

    Examples
    --------
    >>> from counterlvq.tables.feature import Feature
    >>> from counterlvq.tables.features import Features
    >>> features = Features(["age", Feature("job", levels=["clerk", "nurse", "smith"])])
    >>> seen = Coordinates(features, (0.0, 1.0))
    >>> seen.names
    ('age', "job == 'clerk'", "job == 'smith'")
    >>> seen.inner([[31.0, 1.0]]), seen.outer([[31.0, 0.0, 1.0]])
    (array([[31.,  0.,  0.]]), array([[31.,  2.]]))
    """

    features: Features
    levels: tuple[
        float, ...
    ] = ()  # positions, as in a row of the table; only those of levels count
    links: tuple[Link | None, ...] = ()  # functions through which numbers are seen
    between: tuple[int, ...] = ()  # whole features whose own value is none, see `seen_from`

    def __post_init__(self) -> None:
        if not any(link is not None for link in self.links):
            object.__setattr__(self, "links", ())
        for feature, link in zip(self.features, self.links, strict=bool(self.links)):
            if link is not None and not feature.is_real:
                raise InvalidInputError(
                    f"feature {feature.name!r} is {feature.kind} with steps of its own, and the "
                    f"pipeline sees {link.words(feature.name)}; expected any real number there. "
                    f"Describe the column as real; Features.from_frame(..., decimals=None) leaves "
                    f"decimals open."
                )
            if link is not None:
                _refuse_outside(link, feature.name, *feature.range)
        own = self.levels or (0.0,) * len(self.features)
        kept = (0.0 if f.is_number else at for f, at in zip(self.features, own, strict=True))
        object.__setattr__(self, "levels", tuple(kept))

    def seen_from(self, row: Floats) -> Coordinates:
        """Coordinates of rows that have the levels of this one.

        What stands in for a missing value may lie between two whole numbers. Counted from there,
        steps would lead to values that nobody can write down: they count from 0 then.
        """
        between = tuple(j for j in self._counted_from_own if not float(row[j]).is_integer())
        if not self.has_levels and between == self.between:
            return self
        if between != self.between:
            levels = tuple(float(value) for value in row)
            return Coordinates(self.features, levels, self.links, between)
        out = object.__new__(Coordinates)  # tables have many, of which nothing else is new
        kept = np.where(self.is_number, 0.0, row).tolist()
        out.__dict__.update(
            features=self.features, levels=tuple(kept), links=self.links, between=between
        )
        for name in _WHATEVER_LEVELS:
            out.__dict__[name] = getattr(self, name)
        return out

    @property
    def key(self) -> tuple[tuple[float, ...], tuple[int, ...]]:
        """What rows share that are seen in these coordinates."""
        return self.levels, self.between

    def keys_of(self, rows: Floats) -> Floats:
        """Tell rows apart as `key` does, (n, k)."""
        levels = [j for j, feature in enumerate(self.features) if not feature.is_number]
        counted = rows[:, self._counted_from_own]
        return np.hstack([rows[:, levels], 1.0 * (counted != np.rint(counted))])

    @cached_property
    def _counted_from_own(self) -> list[int]:
        """Features with whole values whose steps count from the value itself."""
        return [
            j
            for j, feature in enumerate(self.features)
            if feature.kind in (Kind.WHOLE, Kind.DATE) and feature.steps == STEPS[1]
        ]

    def holds(self, row: object) -> bool:
        """Whether something is a row of the table: finite numbers and positions of levels."""
        if not isinstance(row, np.ndarray) or row.shape != (len(self.features),):
            return False
        if row.dtype != np.float64 or not np.isfinite(row).all():
            return False
        pairs = zip(self.features, row.tolist(), strict=True)
        return all(f.is_number or at in range(len(f.levels)) for f, at in pairs)

    def others(self, column: int) -> list[int]:
        """Positions of the levels that a feature could take up."""
        own = int(self.levels[column])
        return [code for code in range(len(self.features.columns[column].levels)) if code != own]

    @cached_property
    def spans(self) -> tuple[slice, ...]:
        """The coordinates of each feature."""
        sizes = [1 if feature.is_number else len(feature.levels) - 1 for feature in self.features]
        ends = np.cumsum(sizes, dtype=int).tolist()
        return tuple(slice(end - size, end) for end, size in zip(ends, sizes, strict=True))

    @property
    def width(self) -> int:
        """How many coordinates there are."""
        return self.spans[-1].stop if self.spans else 0

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each coordinate."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def columns(self) -> tuple[Feature, ...]:
        """The coordinates as features of a model that is stated in them."""
        return tuple(
            column
            for j, (feature, named) in enumerate(zip(self.features, self._named, strict=True))
            for column in (named if feature.is_number else [named[k] for k in self.others(j)])
        )

    @property
    def seen_features(self) -> Features:
        """The same as `Features`."""
        return Features(self.columns)

    @cached_property
    def _named(self) -> tuple[tuple[Feature, ...], ...]:
        """Each feature as it is called here, or each of its levels."""
        return tuple(
            (Feature(feature.name),)
            if feature.is_number
            else tuple(Feature(f"{feature.name} == {level!r}") for level in feature.levels)
            for feature in self.features
        )

    @cached_property
    def is_plain(self) -> bool:
        """Whether coordinates are the features, and any number will do for each."""
        return not self.has_levels and not self.links and self.grid.is_trivial

    def other_columns(self, *, with_steps: bool) -> list[str]:
        """List the features that are not plain numbers, each with what it is instead.

        With features whose values are steps, such as whole numbers, or without them.
        """
        links = self.links or (None,) * len(self.features)
        out = []
        for feature, link in zip(self.features, links, strict=True):
            is_stepped = with_steps and feature.is_number and feature.grid is not None
            kinds = ((not feature.is_number, "levels"), (link is not None, "transformed"))
            said = [words for holds, words in (*kinds, (is_stepped, "steps")) if holds]
            if said:
                out.append(f"{shown_repr(feature.name)} ({' and '.join(said)})")
        return out

    @cached_property
    def has_levels(self) -> bool:
        """Whether some feature has levels."""
        return any(not feature.is_number for feature in self.features)

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
            elif feature.lattice is not None:
                step[span], parts[span] = feature.lattice
        groups = tuple(span for f, span in self._each if not f.is_number and len(f.levels) > 1)
        from_input = np.zeros(self.width, dtype=bool)
        for j, (feature, span) in enumerate(self._each):
            is_own = feature.steps == STEPS[1] and j not in self.between
            from_input[span] = feature.is_number and is_own
        return Grid(step, parts, groups, from_input if from_input.any() else None)

    @cached_property
    def stepped(self) -> tuple[int, ...]:
        """Features with steps that could be smaller: multiples of more than 1, and decimals."""
        return tuple(
            j
            for j, feature in enumerate(self.features)
            if feature.lattice is not None and feature.is_number and feature.lattice != (1, 1)
        )

    def grid_without(self, stepped: frozenset[int]) -> Grid:
        """Return the grid without the steps of some features; whole numbers and days stay whole."""
        if not stepped:
            return self.grid
        step, parts = self.grid.step.copy(), self.grid.parts.copy()
        for j, (feature, span) in enumerate(self._each):
            if j in stepped:
                step[span], parts[span] = float(feature.kind is not Kind.REAL), 1.0
        return replace(self.grid, step=step, parts=parts)

    @property
    def _each(self) -> Iterable[tuple[Feature, slice]]:
        return zip(self.features, self.spans, strict=True)

    def inner(self, rows: Sequence[Sequence[float]] | Floats) -> Floats:
        """Take rows of numbers and positions of levels to coordinates, (n, width)."""
        given = self._through(np.asarray(rows, dtype=np.float64))
        if not self.has_levels:
            return given
        out = np.zeros((given.shape[0], self.width))
        for j, (feature, span) in enumerate(self._each):
            if feature.is_number:
                out[:, span.start] = given[:, j]
            else:
                out[:, span] = given[:, j, None] == np.array(self.others(j))
        return read_only(out)

    def of_own(self, rows: Floats) -> Floats:
        """Take rows to coordinates, each seen from its own levels: none takes up another.

        Examples
        --------
        >>> from counterlvq.tables.feature import Feature
        >>> from counterlvq.tables.features import Features
        >>> features = Features(["age", Feature("job", levels=["clerk", "nurse", "smith"])])
        >>> Coordinates(features).of_own(np.array([[31.0, 1.0], [64.0, 2.0]]))
        array([[31.,  0.,  0.],
               [64.,  0.,  0.]])
        """
        given = self._through(rows)
        if not self.has_levels:
            return given
        out = np.zeros((given.shape[0], self.width))
        out[:, self.numbers] = given[:, self.is_number]
        return out

    def _through(self, rows: Floats) -> Floats:
        """Take numbers through their functions."""
        if not self.links:
            return rows
        out = np.array(rows)
        for j, link in enumerate(self.links):
            if link is not None:
                out[:, j] = link.of(out[:, j])
        return read_only(out)

    def outer(self, points: Sequence[Sequence[float]] | Floats) -> Floats:
        """Take coordinates back to numbers and positions of levels, (n, d)."""
        return self._back(self._leveled(points))

    def _back(self, out: Floats) -> Floats:
        """Take numbers back through their functions."""
        if not self.links:
            return out
        out = np.array(out)
        for j, link in enumerate(self.links):
            if link is not None:
                out[:, j] = link.back(out[:, j])
        return out

    def _leveled(self, points: Sequence[Sequence[float]] | Floats) -> Floats:
        """Take coordinates back, numbers as they are seen."""
        if not self.has_levels:
            return np.asarray(points)
        given = np.asarray(points, dtype=np.float64)
        return self._switched(given, np.array(self.levels)[None, :])

    def outer_of_own(self, points: Floats, rows: Floats) -> Floats:
        """As `outer`, for points that are each seen from the levels of its row of the table.

        Examples
        --------
        >>> from counterlvq.tables.feature import Feature
        >>> from counterlvq.tables.features import Features
        >>> features = Features(["age", Feature("job", levels=["clerk", "nurse", "smith"])])
        >>> points = np.array([[30.0, 1.0, 0.0], [60.0, 0.0, 1.0]])
        >>> Coordinates(features).outer_of_own(points, np.array([[31.0, 1.0], [64.0, 2.0]]))
        array([[30.,  0.],
               [60.,  1.]])
        """
        return self._back(self._switched(points, rows) if self.has_levels else points)

    def _switched(self, points: Floats, own: Floats) -> Floats:
        """Take coordinates back that are seen from the levels in `own`, (n, d) or (1, d)."""
        out = np.empty((points.shape[0], len(self.features)))
        out[:, self.is_number] = points[:, self.numbers]
        for j in np.flatnonzero(~self.is_number).tolist():
            part, level = points[:, self.spans[j]], own[:, j]
            at = part.argmax(axis=1) if part.shape[1] else np.zeros(len(part), dtype=np.intp)
            other = at + (at >= level)  # one's own level is not among the others
            out[:, j] = np.where((part > 0.5).any(axis=1), other, level)
        return out

    def carried(self, there: Coordinates, points: Floats) -> Floats:
        """Take points between levels from coordinates of the same features to these, (n, width).

        What a row has of all levels of a feature sums up to 1.

        Examples
        --------
        >>> from counterlvq.tables.feature import Feature
        >>> from counterlvq.tables.features import Features
        >>> features = Features([Feature("job", levels=["clerk", "nurse", "smith"])])
        >>> first, second = Coordinates(features, (0.0,)), Coordinates(features, (1.0,))
        >>> second.carried(first, np.array([[0.25, 0.5]]))
        array([[0.25, 0.5 ]])
        >>> second.carried(first, np.array([[0.0, 0.75]]))
        array([[0.25, 0.75]])
        """
        out = np.array(points)  # numbers stand at the same places
        for j in np.flatnonzero(~self.is_number).tolist():
            out[:, self.spans[j]] = self._carried_column(j, there, points)
        return out

    def carried_each(
        self, seen: Sequence[Coordinates], there: Coordinates, points: Floats
    ) -> Floats:
        """As `carried` to each of some coordinates, (coordinates, n, width)."""
        out = np.tile(points, (len(seen), 1, 1))
        levels = np.array([each.levels for each in seen]).astype(np.intp)
        for j in np.flatnonzero(~self.is_number).tolist():
            span = self.spans[j]
            for own in np.unique(levels[:, j]).tolist():
                at = np.flatnonzero(levels[:, j] == own)
                out[at, :, span] = seen[at[0]]._carried_column(j, there, points)
        return out

    def _carried_column(self, j: int, there: Coordinates, points: Floats) -> Floats:
        """Carry the coordinates of one column of levels, (n, levels - 1)."""
        part, before = points[:, self.spans[j]], int(there.levels[j])
        if int(self.levels[j]) == before:
            return part
        left = 1.0 - part.sum(axis=1, keepdims=True)
        whole = np.concatenate([part[:, :before], left, part[:, before:]], axis=1)
        return whole[:, self.others(j)]

    def outer_reach(self, reach: Floats) -> Floats:
        """Take limits on the changes of coordinates to limits on those of features, (n, d).

        A level may change to any other where the limit of its feature is above 0.
        """
        if not self.has_levels:
            return reach
        return np.stack([reach[:, span].max(axis=1, initial=0.0) for span in self.spans], axis=1)

    @cached_property
    def own_conditions(self) -> tuple[LinearConditions, ...]:
        """What holds of every row of the table: one level at a time, and allowed ranges."""
        return self.own_conditions_without(frozenset())

    @cached_property
    def ranged(self) -> tuple[int, ...]:
        """Features that have an allowed range, by position."""
        features = enumerate(self.features)
        return tuple(j for j, f in features if f.is_number and f.range != f.widest_range)

    def own_conditions_without(self, ranged: frozenset[int]) -> tuple[LinearConditions, ...]:
        """As `own_conditions`, without the allowed ranges of some features."""
        found = []
        for j, (feature, span) in enumerate(self._each):
            at = list(range(span.start, span.stop))
            if not feature.is_number and at:
                found.append(LinearConditions.on_features(at, self.width, new=-1, old=0, value=0))
                found.append(LinearConditions.on_features(at, self.width, new=1, old=0, value=1))
            if len(at) > 1:
                found.append(self._total(span, equality=False))
            lower, upper = self._seen_range(feature, at, is_lifted=j in ranged)
            if lower > -np.inf:
                found.append(
                    LinearConditions.on_features(at, self.width, new=-1, old=0, value=-lower)
                )
            if upper < np.inf:
                found.append(
                    LinearConditions.on_features(at, self.width, new=1, old=0, value=upper)
                )
        return tuple(found)

    def _seen_range(
        self, feature: Feature, at: list[int], *, is_lifted: bool
    ) -> tuple[float, float]:
        """Range of a feature as it is seen: all that its function can yield if it has one."""
        link = self._link_at(at[0]) if at else None
        if link is None:
            return feature.widest_range if is_lifted else feature.range
        if is_lifted:
            return link.image
        low, high = link.image
        return max(low, _seen(link, feature.lower, -1)), min(high, _seen(link, feature.upper, 1))

    def _link_at(self, coordinate: int) -> Link | None:
        for j, span in enumerate(self.spans if self.links else ()):
            if span.start == coordinate:
                return self.links[j]
        return None

    def _refuse_linked(self, column: int, what: str) -> None:
        row = np.zeros((1, len(self.features)))
        row[0, column] = 1.0
        self._refuse_mixed(row, row, what)

    def _refuse_mixed(self, A: Floats, R: Floats, what: str) -> None:
        used = np.flatnonzero(A.any(axis=0) | R.any(axis=0)).tolist()
        for j, link in enumerate(self.links):
            if link is not None and j in used:
                name = self.features.columns[j].name
                raise InvalidInputError(
                    f"{what} of {name!r}, and the pipeline sees {link.words(name)}: that is no "
                    f"linear rule there. Expected bounds, Freeze, Increase or Decrease of that "
                    f"column alone."
                )

    def _linked(self, rows: LinearConditions) -> LinearConditions:
        """State rows about single columns that are seen through a function; refuse others."""
        if not self.links:
            return rows
        A, R, v = rows.A.copy(), rows.R.copy(), rows.v.copy()
        for i in range(len(v)):
            at = [j for j in np.flatnonzero((A[i] != 0) | (R[i] != 0)) if self.links[j] is not None]
            if not at:
                continue
            j = int(at[0])
            link = self.links[j]
            assert link is not None
            alone = np.count_nonzero((A[i] != 0) | (R[i] != 0)) == 1
            if alone and R[i, j] == 0:
                sign = np.sign(A[i, j])
                limit = float(v[i] / A[i, j])
                side = 0 if rows.equality else int(sign)
                low, high = (-np.inf, limit) if sign > 0 else (limit, np.inf)
                ends = (limit, limit) if rows.equality else (low, high)
                _refuse_outside(link, self.features.columns[j].name, *ends)
                A[i, j], v[i] = sign, sign * _seen(link, limit, side)
            elif alone and A[i, j] == -R[i, j] and v[i] == 0:
                A[i, j], R[i, j] = np.sign(A[i, j]), -np.sign(A[i, j])
            else:
                self._refuse_mixed(A[i : i + 1], R[i : i + 1], "a rule mixes or limits changes")
        return LinearConditions(read_only(A), read_only(R), read_only(v), rows.equality)

    def spread(
        self,
        condition: LinearConditions
        | QuadraticCondition
        | LevelRule
        | LevelWay
        | Implication
        | LeastChange
        | LargestChange
        | ValueRule,
    ) -> tuple[Stated, ...]:
        """State a condition on features for the coordinates."""
        if isinstance(condition, Implication):
            return self._implied(condition)
        if isinstance(condition, LargestChange):
            return (self._largest(condition),)
        return (self._spread_one(condition),)

    def _spread_one(
        self,
        condition: LinearConditions
        | QuadraticCondition
        | LevelRule
        | LevelWay
        | LeastChange
        | ValueRule,
    ) -> Stated:
        if isinstance(condition, LeastChange):
            self._refuse_linked(condition.column, "a least change")
            return replace(condition, column=self.spans[condition.column].start)
        if isinstance(condition, ValueRule):
            return self._value_rule(condition)
        if isinstance(condition, LevelWay):
            condition = condition.seen_from(int(self.levels[condition.column]))
        if isinstance(condition, LevelRule):
            return self._rule(condition)
        if isinstance(condition, LinearConditions):
            return self._rows(condition)
        if self.links:
            self._refuse_mixed(condition.G, condition.h[None, :], "a quadratic rule speaks")
        if not self.has_levels:
            return condition
        # A quadratic condition says nothing of levels: their columns are zero in it.
        starts = np.array([span.start for span in self.spans], dtype=np.intp)
        return condition.over(starts, self.width)

    @cached_property
    def is_number(self) -> NDArray[np.bool_]:
        """Which features are numbers, (features,)."""
        return np.array([feature.is_number for feature in self.features], dtype=bool)

    def _total(self, span: slice, *, equality: bool) -> LinearConditions:
        """At most one other level is taken up, or exactly one."""
        one = np.zeros((1, self.width))
        one[0, span] = 1.0
        return LinearConditions(
            read_only(one), read_only(np.zeros_like(one)), read_only(np.ones(1)), equality
        )

    def _taking_up(self, rule: LevelRule, *, allowed: bool) -> NDArray[np.intp]:
        """Coordinates of the other levels that a rule allows, or of those that it does not."""
        start = self.spans[rule.column].start
        each = enumerate(self.others(rule.column))
        kept = [start + k for k, code in each if (code in rule.codes) == allowed]
        return np.array(kept, dtype=np.intp)

    def _rule(self, rule: LevelRule) -> LinearConditions:
        """One of some levels: no other, and not the present one if that is not among them."""
        out = self._taking_up(rule, allowed=False).tolist()
        rows = LinearConditions.on_features(out, self.width, new=1, old=0, value=0, equality=True)
        if int(self.levels[rule.column]) in rule.codes:
            return rows
        total = self._total(self.spans[rule.column], equality=True)
        return LinearConditions(
            read_only(np.concatenate([rows.A, total.A])),
            read_only(np.concatenate([rows.R, total.R])),
            read_only(np.concatenate([rows.v, total.v])),
            equality=True,
        )

    def _largest(self, condition: LargestChange) -> LinearConditions:
        """State that no weighted change of coordinates is above the value of a column.

        What is seen through a function changes on the scale of that, as costs have it.
        """
        ways = np.zeros((2, self.width))
        for j, (feature, span) in enumerate(self._each):
            if j == condition.column:
                continue
            if feature.is_number:
                ways[:, span.start] = condition.weights[:, j]
            else:
                ways[:, span] = condition.switches[j][int(self.levels[j])][self.others(j)]
        at = self.spans[condition.column].start
        inner = LargestChange(at, ways, {})
        return inner.as_rows(self.width, (c for c in range(self.width) if c != at))

    def _value_rule(self, rule: ValueRule) -> ValueRule:
        """State which values a number has; what it counts from are numbers too."""
        self._refuse_linked(rule.column, "a rule lists or compares values")
        old = None
        if rule.old is not None:
            old = np.zeros(self.width)
            old[self.numbers] = rule.old[self.is_number]
        return ValueRule(self.spans[rule.column].start, rule.parts, old)

    def _implied(self, condition: Implication) -> tuple[Conditional, ...]:
        """State what has to hold where a feature has one of some levels, or some value."""
        rule, then = condition.when, condition.then
        stated = self._rule(then) if isinstance(then, LevelRule) else self._rows(then)
        parts, nothing = self._as_inequalities(stated), np.zeros(0, dtype=np.intp)
        if isinstance(rule, ValueRule):
            test = self._value_rule(rule)
            return tuple(Conditional(part, None, nothing, test) for part in parts)
        stays = int(self.levels[rule.column]) in rule.codes
        absent = self._taking_up(rule, allowed=False) if stays else None
        present = self._taking_up(rule, allowed=True)
        return tuple(Conditional(part, absent, present) for part in parts)

    def _rows(self, rows: LinearConditions) -> LinearConditions:
        """Spread linear conditions; on a feature of levels they can only say that it stays."""
        rows = self._linked(rows)
        if not self.has_levels:
            return rows
        new_parts, old_parts, values = [], [], []
        for new, old, value in zip(rows.A, rows.R, rows.v, strict=True):
            about_levels = np.flatnonzero((new != 0) & ~self.is_number)
            if about_levels.size:
                stay = np.eye(self.width)[self.spans[int(about_levels[0])]]
                new_parts.append(stay)
                old_parts.append(np.zeros_like(stay))
                values.append(np.zeros(len(stay)))
                continue
            wide, before = np.zeros((2, 1, self.width))
            wide[0, self.numbers] = new[self.is_number]
            before[0, self.numbers] = old[self.is_number]
            new_parts.append(wide)
            old_parts.append(before)
            values.append(np.array([value]))
        A, R, v = (read_only(np.concatenate(part)) for part in (new_parts, old_parts, values))
        return LinearConditions(A, R, v, rows.equality)

    @staticmethod
    def _as_inequalities(rows: LinearConditions) -> list[LinearConditions]:
        below = LinearConditions(rows.A, rows.R, rows.v)
        if not rows.equality:
            return [below]
        return [below, LinearConditions(read_only(-rows.A), read_only(-rows.R), read_only(-rows.v))]


def _refuse_outside(link: Link, name: str, lower: float, upper: float) -> None:
    """Refuse a range of a column in which the function that it is seen through has no values."""
    low, high = link.domain
    if upper < low or lower > high:
        kept = f"at most {float(upper)!r}" if upper < low else f"at least {float(lower)!r}"
        raise InvalidInputError(
            f"column {name!r} is kept {kept}, and {link.domain_words(name)}: nothing of "
            f"that is left. Expected bounds that leave some of these values."
        )


def _seen(link: Link, limit: float, side: int) -> float:
    """Take a limit through a function, rounded to the side that leaves more room."""
    if not np.isfinite(limit):
        return limit
    found = float(link.of(np.array([limit]))[0])
    return found + side * LIMIT_ROUNDING * abs(found)

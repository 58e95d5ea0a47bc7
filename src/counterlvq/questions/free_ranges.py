"""What features that a reason leaves free may do: a range each, and what limits them beyond that.

Everything is read from the constraints as they were stated, for the input that is asked about: a
range as seen in data reaches as far as the input, and no farther.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, copysign, floor, inf, isfinite, nextafter
from sys import float_info
from typing import Any, final

import numpy as np

from counterlvq.numeric.arrays import Floats
from counterlvq.prepared import Prepared
from counterlvq.presentation.values import value_of
from counterlvq.problem.constraints import Condition, Constraint
from counterlvq.programs.conditions import (
    Implication,
    LargestChange,
    LevelRule,
    LevelWay,
    LinearConditions,
    QuadraticCondition,
)
from counterlvq.programs.intervals import LeastChange, ValueRule
from counterlvq.tables.feature import Feature
from counterlvq.tables.feature_checks import STEPS
from counterlvq.types import Kind

__all__ = ["FreeRanges", "is_about_change", "limits_further", "listed_columns"]


def is_about_change(condition: Condition) -> bool:
    """Whether a condition is about changes of an input, rather than about inputs as such."""
    if isinstance(condition, Implication):
        return is_about_change(condition.when) or is_about_change(condition.then)
    if isinstance(condition, LinearConditions):
        return bool(condition.R.any())
    if isinstance(condition, ValueRule):
        return condition.old is not None
    return isinstance(condition, LeastChange | LevelWay | LargestChange)


def limits_further(conditions: Sequence[Condition], free: Sequence[int]) -> bool:
    """Whether conditions limit free features, by position, beyond what their ranges say."""
    return any(_says_more(part, free) for part in conditions)


def listed_columns(view: Prepared, row: Floats) -> frozenset[int]:
    """Positions of the numbers that are kept to listed values."""
    return frozenset(_Read.of(view, row).values)


@final
@dataclass(frozen=True, eq=False)
class FreeRanges:
    """For each free feature the values that it may have, and constraints that say more."""

    ranges: dict[str, Any]
    constraints: tuple[Constraint | str, ...]

    @classmethod
    def of(cls, view: Prepared, row: Floats, settled: Collection[str]) -> FreeRanges:
        """Read them for the features outside of a reason."""
        features, read = view.asked.features, _Read.of(view, row)
        most = view.template.box(view.inner(row))[1]
        coordinates = view.source.coordinates
        found: dict[str, Any] = {}
        free = [j for j, feature in enumerate(features) if feature.name not in settled]
        for j in free:
            feature = features.columns[j]
            if not feature.is_number:
                points = zip(coordinates.others(j), most[coordinates.spans[j]], strict=True)
                codes = [int(row[j]), *(code for code, end in points if end > 0)]
                found[feature.name] = frozenset(feature.levels[code] for code in codes)
            elif j in read.values:
                found[feature.name] = read.listed(feature, j, float(row[j]))
            else:
                found[feature.name] = _ends(feature, float(read.low[j]), float(read.high[j]))
        more = [
            item
            for k, item in enumerate(view.asked.constraints)
            if limits_further(view.read(k), free)
        ]
        return cls(found, tuple(more))


@dataclass(frozen=True, eq=False)
class _Read:
    """Ends and listed values of single numbers, in the units of the user."""

    low: Floats  # (d,)
    high: Floats  # (d,)
    values: dict[int, set[float]]  # by position: the values that all lists allow

    @classmethod
    def of(cls, view: Prepared, row: Floats) -> _Read:
        features = view.asked.features
        low = np.array([feature.lower for feature in features])
        high = np.array([feature.upper for feature in features])
        values: dict[int, set[float]] = {}
        for k in range(len(view.asked.constraints)):
            for part in view.read(k):
                if isinstance(part, LinearConditions):
                    _narrow(part, row, low, high)
                elif isinstance(part, ValueRule) and _is_list(part):
                    here = {interval.lower for interval in part.parts}
                    values[part.column] = here & values.get(part.column, here)
        return cls(low, high, values)

    def listed(self, feature: Feature, j: int, own: float) -> frozenset[Any]:
        """Those of the listed values that lie in the range, and on the grid of the feature."""
        kept = {value for value in self.values[j] if self.low[j] <= value <= self.high[j]}
        kept = {value for value in kept if _is_on_grid(feature, value, own)}
        return frozenset(value_of(value, feature) for value in kept)


def _narrow(rows: LinearConditions, x: Floats, low: Floats, high: Floats) -> None:
    """Take over the ends that conditions on one feature state, rounded inwards."""
    own = [Fraction(float(value)) for value in x]
    for a, r, v in zip(rows.A.tolist(), rows.R.tolist(), rows.v.tolist(), strict=True):
        at = [j for j, factor in enumerate(a) if factor]
        if len(at) != 1 or not isfinite(v):
            continue
        j = at[0]
        given = sum((Fraction(f) * own[i] for i, f in enumerate(r) if f), Fraction(0))
        end = (Fraction(v) - given) / Fraction(a[j])
        if a[j] > 0 or rows.equality:
            high[j] = min(high[j], _rounded(end, -1))
        if a[j] < 0 or rows.equality:
            low[j] = max(low[j], _rounded(end, 1))


def _rounded(end: Fraction, way: int) -> float:
    """Round an end up (1) or down (-1) to a double that is not past it."""
    try:
        nearest = float(end)
    except OverflowError:
        return copysign(float_info.max, end)
    is_inside = way * (Fraction(nearest) - end) >= 0
    return nearest if is_inside else nextafter(nearest, way * inf)


def _is_list(rule: ValueRule) -> bool:
    return rule.old is None and all(part.is_point for part in rule.parts)


def _is_on_grid(feature: Feature, value: float, own: float) -> bool:
    """Whether a feature can have a value: a multiple of its step, or that far from the input's."""
    counts_from_input = feature.steps != STEPS[0]
    lattice = feature.lattice
    if lattice is None or value == own:
        return True
    step, start = Fraction(*lattice), Fraction(own) if counts_from_input else Fraction(0)
    return float(start + round((Fraction(value) - start) / step) * step) == value


def _says_more(condition: Condition, free: Sequence[int]) -> bool:
    """Whether one condition does."""
    if isinstance(condition, Implication):
        return _concerns(condition.when, free) or _concerns(condition.then, free)
    if isinstance(condition, LinearConditions):
        several = np.count_nonzero(condition.A, axis=1) > 1
        return bool((condition.A[several][:, free] != 0).any())
    if isinstance(condition, ValueRule):
        return condition.column in free and not _is_list(condition)
    return _concerns(condition, free) and not isinstance(condition, LevelRule)


def _concerns(condition: Condition, free: Sequence[int]) -> bool:
    """Whether a condition is about any of the free features."""
    if isinstance(condition, LinearConditions):
        return bool((condition.A[:, free] != 0).any())
    if isinstance(condition, QuadraticCondition):
        return bool((condition.G[:, free] != 0).any() or (condition.h[free] != 0).any())
    return isinstance(condition, LevelRule | ValueRule) and condition.column in free


def _ends(feature: Feature, low: float, high: float) -> tuple[Any, Any]:
    """State two ends in the type of a column, on the grid of its values, or as infinite."""
    is_whole = feature.kind is not Kind.REAL
    counts_from_input = feature.steps != STEPS[0]
    lattice = (1, 1) if counts_from_input and is_whole else feature.lattice
    if lattice is None or (counts_from_input and not is_whole):
        return low, high
    ends = _within(low, lattice, ceil), _within(high, lattice, floor)
    first, last = (value_of(end, feature) if np.isfinite(end) else end for end in ends)
    return first, last


def _within(end: float, lattice: tuple[int, int], inwards: Callable[[Fraction], int]) -> float:
    """Move an end of a range inwards to a multiple of a step, unless it is the double of one."""
    if not np.isfinite(end):
        return end
    step = Fraction(*lattice)
    count = Fraction(end) / step
    nearest = float(round(count) * step)
    return nearest if nearest == end else float(inwards(count) * step)

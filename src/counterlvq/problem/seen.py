"""What the columns themselves ask for: ways to change, and ranges as seen in the data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import final

import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats, plain
from counterlvq.problem.constraints import (
    Bounds,
    Constraint,
    Decrease,
    Freeze,
    Increase,
    shown_call,
)
from counterlvq.programs.conditions import LinearConditions
from counterlvq.tables.dates import date_of
from counterlvq.tables.features import Features
from counterlvq.types import Kind

__all__ = ["AsSeen", "Outside", "constraints_of", "outside_of", "rows_outside", "stated"]

# Which values of a row lie outside the range that was seen, by position of the constraint, and
# whether they lie above it.
Outside = tuple[tuple[int, bool], ...]

_WAYS: Mapping[str, Callable[[str], Constraint]] = {
    "increase": Increase,
    "decrease": Decrease,
    "freeze": Freeze,
}


@final
@dataclass(frozen=True)
class AsSeen(Constraint):
    """Change a number to values in the range that was seen in the data, and to no others.

    Where the value of a row lies outside, it may stay, and so may all between it and the range.

    Examples
    --------
    >>> str(AsSeen("income", 120.0, 8000.0))
    'income from 120 to 8,000 as seen in the data'
    """

    feature: str
    lower: float = -inf
    upper: float = inf
    label: str = field(default="", compare=False)  # what people read instead of the name
    kept: str = field(default="", compare=False)  # "below" or "above", for rows that lie there
    is_date: bool = field(default=False, compare=False)

    def __repr__(self) -> str:
        return shown_call("AsSeen", self.feature, lower=self.lower, upper=self.upper)

    def __str__(self) -> str:
        low, high = map(self._shown, (self.lower, self.upper))
        if self.lower == -inf:
            words = f"up to {high}"
        elif self.upper == inf:
            words = f"of at least {low}"
        else:
            words = f"from {low} to {high}" if low != high else f"of {low} only"
        return f"{self.label or self.feature} {words} as seen in the data"

    def _shown(self, end: float) -> str:
        if self.is_date and abs(end) < inf:
            return date_of(end).isoformat()
        return f"{plain(end):,}".removesuffix(".0")

    def conditions(self, features: Features) -> tuple[LinearConditions, ...]:
        """``lower <= y_j <= upper``; for a row outside, its own value is that end."""
        lower = -inf if self.kept == "below" else self.lower
        upper = inf if self.kept == "above" else self.upper
        stated = Bounds(self.feature, lower, upper).conditions(features)
        if not self.kept:
            return stated
        sign = 1 if self.kept == "above" else -1
        at, width = [features.number(self.feature, "AsSeen")], len(features)
        own = LinearConditions.on_features(at, width, new=sign, old=-sign, value=0)
        return (*stated, own)


def constraints_of(features: Features) -> tuple[Constraint, ...]:
    """List what features ask for by themselves."""
    found: list[Constraint] = [
        _WAYS[feature.change](feature.name) for feature in features if feature.change in _WAYS
    ]
    for feature in features:
        if feature.seen is None:
            continue
        lower = feature.seen[0] if feature.lower == -inf else -inf
        upper = feature.seen[1] if feature.upper == inf else inf
        if (lower, upper) != (-inf, inf):
            is_date = feature.kind is Kind.DATE
            found.append(AsSeen(feature.name, lower, upper, feature.label, is_date=is_date))
    return tuple(found)


def _ranges(
    constraints: Sequence[Constraint | str], features: Features
) -> Iterable[tuple[int, int, AsSeen]]:
    for k, item in enumerate(constraints):
        if isinstance(item, AsSeen):
            yield k, features.position(item.feature), item


def outside_of(constraints: Sequence[Constraint | str], features: Features, row: Floats) -> Outside:
    """List the values of a row that lie outside the ranges that were seen."""
    return tuple(
        (k, bool(row[j] > item.upper))
        for k, j, item in _ranges(constraints, features)
        if row[j] < item.lower or row[j] > item.upper
    )


def rows_outside(
    constraints: Sequence[Constraint | str], features: Features, rows: Floats
) -> NDArray[np.intp]:
    """Positions of the rows of which some value lies outside."""
    out = np.zeros(len(rows), dtype=bool)
    for _, j, item in _ranges(constraints, features):
        out |= (rows[:, j] < item.lower) | (rows[:, j] > item.upper)
    return np.flatnonzero(out)


def sides_outside(
    constraints: Sequence[Constraint | str], features: Features, rows: Floats
) -> Floats:
    """Say for each range whether rows lie above it (1), below (-1) or in it, (n, ranges)."""
    found = [
        1.0 * (rows[:, j] > item.upper) - 1.0 * (rows[:, j] < item.lower)
        for _, j, item in _ranges(constraints, features)
    ]
    return np.stack(found, axis=1) if found else np.zeros((len(rows), 0))


def stated(constraint: Constraint, above: bool | None) -> Constraint:
    """Return a constraint as it is for rows that lie above it, or below; None for all others."""
    if above is None or not isinstance(constraint, AsSeen):
        return constraint
    return replace(constraint, kept="above" if above else "below")

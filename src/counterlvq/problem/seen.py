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
from counterlvq.tables.features import Features

__all__ = ["AsSeen", "KeptValues", "constraints_of", "kept_values", "rows_outside", "stated"]

# Values of a row outside the range that was seen, by position of the constraint.
KeptValues = tuple[tuple[int, float], ...]

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
    >>> AsSeen("income", 120.0, 8000.0).keeping(9000.0).upper
    9000.0
    """

    feature: str
    lower: float = -inf
    upper: float = inf
    label: str = field(default="", compare=False)  # what people read instead of the name

    def __repr__(self) -> str:
        return shown_call("AsSeen", self.feature, lower=self.lower, upper=self.upper)

    def __str__(self) -> str:
        low, high = (f"{plain(end):,}".removesuffix(".0") for end in (self.lower, self.upper))
        if self.lower == -inf:
            words = f"up to {high}"
        elif self.upper == inf:
            words = f"of at least {low}"
        else:
            words = f"from {low} to {high}" if low != high else f"of {low} only"
        return f"{self.label or self.feature} {words} as seen in the data"

    def conditions(self, features: Features) -> tuple[LinearConditions, ...]:
        """``y_j <= upper`` and ``-y_j <= -lower``."""
        return Bounds(self.feature, self.lower, self.upper).conditions(features)

    def keeping(self, value: float) -> AsSeen:
        """Widen the range, so that a value of one's own may stay."""
        return replace(self, lower=min(self.lower, value), upper=max(self.upper, value))


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
            found.append(AsSeen(feature.name, lower, upper, feature.label))
    return tuple(found)


def _ranges(
    constraints: Sequence[Constraint | str], features: Features
) -> Iterable[tuple[int, int, AsSeen]]:
    for k, item in enumerate(constraints):
        if isinstance(item, AsSeen):
            yield k, features.position(item.feature), item


def kept_values(
    constraints: Sequence[Constraint | str], features: Features, row: Floats
) -> KeptValues:
    """List the values of a row that lie outside the ranges that were seen."""
    return tuple(
        (k, float(row[j]))
        for k, j, item in _ranges(constraints, features)
        if not item.lower <= row[j] <= item.upper
    )


def rows_outside(
    constraints: Sequence[Constraint | str], features: Features, rows: Floats
) -> NDArray[np.intp]:
    """Positions of the rows of which some value lies outside."""
    out = np.zeros(len(rows), dtype=bool)
    for _, j, item in _ranges(constraints, features):
        out |= (rows[:, j] < item.lower) | (rows[:, j] > item.upper)
    return np.flatnonzero(out)


def stated(constraint: Constraint, kept: float | None) -> Constraint:
    """Return a constraint as it is for rows that keep a value outside; None for all others."""
    return (
        constraint.keeping(kept)
        if kept is not None and isinstance(constraint, AsSeen)
        else constraint
    )

"""What the columns themselves ask for: ways to change, and ranges as usual in the data."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from math import inf
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import Floats, plain, real_number, told
from counterlvq.problem.constraints import (
    Bounds,
    Constraint,
    Decrease,
    Freeze,
    Increase,
    MinChange,
    shown_call,
)
from counterlvq.programs.conditions import LinearConditions
from counterlvq.tables.dates import date_of
from counterlvq.tables.features import FeatureKey, Features
from counterlvq.tables.frames import as_frame, numbers_or_days, settled
from counterlvq.tables.reference import LEAST_SHARE, Reference
from counterlvq.tables.values import matrix_with_gaps, warn_of_gaps
from counterlvq.tables.views import FrameView
from counterlvq.types import Kind

__all__ = [
    "AsSeen",
    "Outside",
    "constraints_of",
    "least_changes",
    "outside_of",
    "rows_outside",
    "stated",
    "within_data",
]

# Which values of a row lie outside the range that was seen, by position of the constraint, and
# whether they lie above it.
Outside = tuple[tuple[int, bool], ...]

# Ends of up to so many digits are said as they are, others to so many digits of the range.
_TYPED_DIGITS, _END_DIGITS = 9, 4

_WAYS: Mapping[str, Callable[[str], Constraint]] = {
    "increase": Increase,
    "decrease": Decrease,
    "freeze": Freeze,
}


def _said(end: float, width: float, inwards: str) -> float:
    """Round an end of a range that nobody typed; its own size counts where the width has none."""
    number = Decimal(repr(float(end)))
    if abs(end) == inf or len(number.normalize().as_tuple().digits) <= _TYPED_DIGITS:
        return end
    size = Decimal(repr(float(min(width, abs(end))))).adjusted()
    last = Decimal(1).scaleb(size - _END_DIGITS)
    return float((number / last).to_integral_value(rounding=inwards) * last)


@final
@dataclass(frozen=True)
class AsSeen(Constraint):
    """Change a number to values in the usual range of the data, and to no others.

    The features of a table have what ten rows reach at either end, which is less than all of it:
    so texts call the range usual.
    Where the value of a row lies outside, it may stay, and so may all between it and the range.
    Of a column that the model does not see, and of one that has levels, it says nothing.

    Examples
    --------
    >>> str(AsSeen("income", 120.0, 8000.0))
    'income from 120 to 8,000 as usual in the data'
    """

    feature: FeatureKey
    lower: float = -inf
    upper: float = inf
    label: str = field(default="", compare=False)  # what people read instead of the name
    kept: str = field(default="", compare=False)  # "below" or "above", for rows that lie there
    is_date: bool = field(default=False, compare=False)
    where: str = field(default="as usual in the data", compare=False)  # what people read of it

    def __repr__(self) -> str:
        ends: dict[str, Any] = {"lower": self.lower, "upper": self.upper}
        if self.is_date:
            ends = {name: date_of(end) for name, end in ends.items() if abs(end) < inf}
        return shown_call("AsSeen", self.feature, **ends)

    def __str__(self) -> str:
        low, high = map(self._shown, self.said_ends)
        if self.lower == -inf:
            words = f"up to {high}"
        elif self.upper == inf:
            words = f"of at least {low}"
        else:
            words = f"from {low} to {high}" if low != high else f"of {low} only"
        is_named = self.label or isinstance(self.feature, str)
        name = self.label or (self.feature if is_named else f"feature {self.feature}")
        return f"{name} {words} {self.where}"

    @property
    def said_ends(self) -> tuple[float, float]:
        """Ends as people read them: inwards, so that what breaks these breaks the range, too."""
        if self.is_date or not self.lower < self.upper:
            return self.lower, self.upper
        width = self.upper - self.lower
        return _said(self.lower, width, ROUND_CEILING), _said(self.upper, width, ROUND_FLOOR)

    def _shown(self, end: float) -> str:
        if self.is_date and abs(end) < inf:
            return date_of(end).isoformat()
        return f"{plain(end):,}".removesuffix(".0")

    def is_about(self, features: Features) -> bool:
        """Whether it is the range of a number that the model sees."""
        if not features.sees(self.feature):
            return False
        return features.columns[features.position(self.feature)].is_number

    def conditions(self, features: Features) -> tuple[LinearConditions, ...]:
        """``lower <= y_j <= upper``; for a row outside, its own value is that end."""
        if not self.is_about(features):
            return ()
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
        if isinstance(item, AsSeen) and item.is_about(features):
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


def within_data(X: Any, quantiles: tuple[float, float] = (0, 1)) -> list[Constraint]:
    """Keep numbers to the range that they have in a table: one constraint for each column.

    A number changes to values in its range and to no others. Where the value of an input lies
    outside, it may stay, and so may all between it and the range.

    Parameters
    ----------
    X : array-like of shape (n, d), DataFrame or Arrow table
        Typically the training table. Columns of a frame are known by name, and those of levels or
        booleans are passed over: these have their levels. Columns of an array are known by
        position. Missing values are passed over with a warning.
    quantiles : pair of float, default (0, 1)
        The ends of each range, as shares of the rows: (0.01, 0.99) leaves out the lowest and the
        highest hundredth. An end is a value of the table, the next one outwards.

    Returns
    -------
    list of Constraint

    Examples
    --------
    >>> import counterlvq as clvq
    >>> model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 4.0]], ["no", "yes"])
    >>> table = [[0.0, 0.0], [1.0, 1.0], [2.5, 2.0], [3.0, 8.0]]
    >>> seen = clvq.within_data(table)
    >>> [str(item) for item in seen]
    ['feature 0 from 0 to 3 as in the table', 'feature 1 from 0 to 8 as in the table']
    >>> explainer = clvq.Explainer(model, clvq.Manhattan([1, 2]), constraints=seen)
    >>> explainer.explain([0.0, 0.0]).x.round(3)
    array([3., 1.])
    """
    low, high = _checked_shares(quantiles)
    columns = _columns(X)
    for key, (values, _) in columns.items():
        if not np.isfinite(values).any():
            raise InvalidInputError(
                f"X has no number in column {key!r}; expected at least one. Leave the column out."
            )
    gaps = {f"column {key!r}": int(np.isnan(values).sum()) for key, (values, _) in columns.items()}
    warn_of_gaps("within_data", gaps, max(len(values) for values, _ in columns.values()))
    found: list[Constraint] = []
    for key, (values, is_date) in columns.items():
        there = values[np.isfinite(values)]
        lower = float(np.quantile(there, low, method="lower"))
        upper = float(np.quantile(there, high, method="higher"))
        found.append(AsSeen(key, lower, upper, is_date=is_date, where="as in the table"))
    return found


def least_changes(X: Any, share: float = LEAST_SHARE) -> list[Constraint]:
    """Leave out trifles: a number changes by a share of its typical deviation, or not at all.

    Parameters
    ----------
    X : array-like of shape (n, d), DataFrame or Arrow table
        Typically the training table. Typical deviations are those of `mad_weights`.
    share : float, default 0.1
        Each least change is this share, rounded down to a 1, 2 or 5 with zeros. Whole numbers and
        decimals whose steps are as large as that need none, unless values may lie between them.

    Returns
    -------
    list of MinChange

    Examples
    --------
    >>> import pandas as pd
    >>> least_changes(pd.DataFrame({"income": [900.0, 2100.0, 4000.0], "cards": [1, 2, 4]}))
    [MinChange('income', by=100)]
    """
    number = real_number("share", share)
    if not 0 <= number < inf:
        raise InvalidInputError(f"share is {number:g}; expected a number of at least 0.")
    frame = as_frame(settled(X))
    if frame is None:
        rows = matrix_with_gaps("X", X)
        features = Features.numbered(rows.shape[1])
        found = Reference.of(rows).least_changes(features, number)
        return [MinChange(features.position(name), _short(by)) for name, by in found.items()]
    features = Features.from_frame(X, ranges=None, decimals="seen")
    found = Reference.of(X, features).least_changes(features, number)
    return [MinChange(name, _short(by)) for name, by in found.items()]


def _short(value: float) -> float:
    return int(value) if value.is_integer() else value


def _checked_shares(quantiles: tuple[float, float]) -> tuple[float, float]:
    given: Any = quantiles
    wrong = f"quantiles is {told(quantiles)}; expected a pair such as (0.01, 0.99)"
    if isinstance(given, str | bytes) or not np.iterable(given):
        raise InvalidInputError(f"{wrong}.")
    ends = [real_number("quantiles", end) for end in given]
    if len(ends) != 2 or not 0 <= ends[0] <= ends[1] <= 1:
        raise InvalidInputError(f"{wrong}, both from 0 to 1 and in order.")
    return ends[0], ends[1]


def _columns(X: Any) -> dict[FeatureKey, tuple[Floats, bool]]:
    """Read the columns of numbers, and whether they are dates."""
    if isinstance(X, str | os.PathLike):
        raise InvalidInputError(
            f"X is {told(X)}, the name of a file; expected a table. Read it first, with "
            f"pandas.read_csv for example."
        )
    frame = as_frame(settled(X))
    if frame is None:
        rows = matrix_with_gaps("X", X)
        found: dict[FeatureKey, tuple[Floats, bool]] = {
            j: (rows[:, j], False) for j in range(rows.shape[1])
        }
    else:
        found = {
            name: (_numbers(frame, name), frame.kind(name) is Kind.DATE)
            for name in frame.names
            if frame.kind(name) in (Kind.REAL, Kind.WHOLE, Kind.DATE)
        }
    if not found:
        raise InvalidInputError("X has no column of numbers; expected at least one.")
    return found


def _numbers(frame: FrameView, name: str) -> Floats:
    values = numbers_or_days(frame, name, frame.kind(name))
    if np.isinf(values).any():
        raise InvalidInputError(
            f"X has an infinite value in column {name!r}; expected finite numbers. Leave the row "
            f"or the column out."
        )
    return values

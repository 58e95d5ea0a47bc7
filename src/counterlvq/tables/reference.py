"""A summary of a training table: what is typical and what was seen, column by column, and no rows.

It is what sensible defaults are taken from once the table itself is gone: what a change is
measured by, and in which range numbers stay. It does not tell the extremes of single rows: the
lowest and the highest quantile are values that at least ten rows lie at or beyond.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import floor, inf, isfinite, log10
from typing import Any, final

import numpy as np

from counterlvq.errors import InvalidInputError, NotSupportedError
from counterlvq.numeric.arrays import Floats, read_only, told
from counterlvq.numeric.lazy import cached_property
from counterlvq.tables.declarations import OPEN
from counterlvq.tables.feature import Feature
from counterlvq.tables.feature_checks import MOST_DECIMALS
from counterlvq.tables.features import Features
from counterlvq.tables.frames import as_frame, numbers_or_days, settled
from counterlvq.tables.quantiles import PROBABILITIES, inner_quantiles
from counterlvq.tables.values import is_missing, matrix_with_gaps
from counterlvq.tables.views import FrameView
from counterlvq.types import Kind

__all__ = [
    "LEAST_SHARE",
    "LEVEL_WEIGHT",
    "PROBABILITIES",
    "ColumnSummary",
    "Reference",
    "typical_deviation",
]

# What another level costs, in typical deviations: as much as a number that goes from the lower
# quarter of its column to the upper one, which is two of them where both halves spread alike.
LEVEL_WEIGHT = 2.0
# The least change that people are told of, as a share of the typical deviation.
LEAST_SHARE = 0.1
# How often the last decimal of a number goes into the same, at the least.
_FINEST = 10_000


@final
@dataclass(frozen=True)
class ColumnSummary:
    """What is known of one column.

    Attributes
    ----------
    name : str
    kind : Kind
    count, missing : int
        Rows with a value, and without one.
    median, mad, deviation : float
        Of a column of numbers: median, median absolute deviation and standard deviation; None
        without values, and for levels.
    quantiles : tuple of float
        At `PROBABILITIES`, each with at least ten rows at or beyond it; empty where there are
        fewer than twenty rows, and for levels.
    shares : tuple of (level, float)
        Of a column of levels: the share of rows that have each.
    """

    name: str
    kind: Kind
    count: int
    missing: int
    median: float | None = None
    mad: float | None = None
    deviation: float | None = None
    quantiles: tuple[float, ...] = ()
    shares: tuple[tuple[Any, float], ...] = ()

    @property
    def is_number(self) -> bool:
        """Whether the column holds numbers, or dates as numbers of days."""
        return self.kind in (Kind.REAL, Kind.WHOLE, Kind.DATE)

    @property
    def seen(self) -> tuple[float, float] | None:
        """The range that was seen by at least ten rows at either end; None for want of rows."""
        return (self.quantiles[0], self.quantiles[-1]) if self.quantiles else None

    @property
    def unit(self) -> float:
        """A typical deviation: the MAD, else the standard deviation, else the range, else 0."""
        ends = self.seen or (0.0, 0.0)
        return _first_above_zero(self.mad, self.deviation, ends[1] - ends[0])


@final
@dataclass(frozen=True)
class Reference:
    """A summary of a table, column by column.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"age": range(20, 60), "job": ["clerk", "nurse"] * 20})
    >>> reference = Reference.of(table)
    >>> reference["age"].median, reference["age"].seen, reference["job"].shares
    (39.5, (29.0, 50.0), (('clerk', 0.5), ('nurse', 0.5)))
    """

    columns: tuple[ColumnSummary, ...]

    @classmethod
    def of(cls, table: Any, features: Features | None = None) -> Reference:
        """Summarise a table.

        Parameters
        ----------
        table : DataFrame, Arrow table, or array-like of shape (n, d)
            Missing values are passed over; `missing` of each column says how many.
        features : Features, optional
            What the columns are; the table may have more. By default, what the dtypes say, and
            for arrays numbers called x0, x1, ...
        """
        frame = as_frame(settled(table))
        if frame is None:
            rows = matrix_with_gaps("reference", table)
            known = Features.numbered(rows.shape[1]) if features is None else features
            if len(known) != rows.shape[1]:
                raise InvalidInputError(
                    f"reference has {rows.shape[1]} columns; expected {len(known)}, one for each "
                    f"feature."
                )
            return cls(tuple(_of_numbers(f, rows[:, j]) for j, f in enumerate(known)))
        if features is None:
            features = Features.from_frame(frame.frame, ranges=None)
        if features == Features.numbered(len(frame.names)):
            # A model that knows no names takes columns by their order.
            taken = (frame.numbers(name) for name in frame.names)
            return cls(tuple(_of_numbers(f, row) for f, row in zip(features, taken, strict=True)))
        absent = [name for name in features.names if name not in frame.names]
        if absent:
            raise InvalidInputError(
                f"reference lacks the column {absent[0]!r}; expected one for each feature of the "
                f"model."
            )
        return cls(tuple(_of_column(frame, feature) for feature in features))

    @cached_property
    def _places(self) -> Mapping[str, ColumnSummary]:
        return {column.name: column for column in self.columns}

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __getitem__(self, name: str) -> ColumnSummary:
        return self._places[name]

    def weights(self, features: Features) -> Floats:
        """Weight of each feature: one over its typical deviation, and 2 for levels.

        Another level costs as much as a number that goes from its lower to its upper quarter.
        Levels that are numbers have a typical deviation. A number that never varies, or that the
        summary does not know, weighs 1.

        Examples
        --------
        >>> Reference.of([[1.0], [2.0], [4.0]]).weights(Features(["x0"]))
        array([1.])
        """
        return read_only(np.array([self._weight(feature) for feature in features]))

    def _weight(self, feature: Feature) -> float:
        column = self._places.get(feature.name)
        if not feature.is_number and not feature.has_numbers:
            return LEVEL_WEIGHT
        if column is None or column.is_number != feature.is_number:
            return 1.0
        unit = column.unit if column.is_number else _deviation_of_levels(column.shares)
        return 1.0 / unit if unit > 0 else 1.0

    def least_changes(self, features: Features, share: float = LEAST_SHARE) -> dict[str, float]:
        """By how much numbers change at the least, if they are not to change by trifles.

        A share of the typical deviation, rounded down to a 1, 2 or 5 with zeros. Numbers whose
        steps are as large as that are left out, unless a value between two of them is a step away
        from neither.

        Examples
        --------
        >>> reference = Reference.of([[0.0], [1234.0], [3000.0]])
        >>> reference.least_changes(Features(["x0"]))
        {'x0': 100.0}
        """
        found = {
            f.name: _round_number(share * self[f.name].unit)
            for f in features
            if f.is_number and f.name in self and self[f.name].is_number
        }
        return {
            name: by
            for name, by in found.items()
            if by > (features[name].grid or 0.0) or (by > 0 and features[name].may_stray)
        }

    def with_digits(self, features: Features) -> Features:
        """Give numbers that may be any as many decimals as a change of theirs is looked at by.

        The last of them is worth a ten-thousandth of the typical deviation at most.

        Examples
        --------
        >>> reference = Reference.of([[0.0], [1234.0], [3000.0]])
        >>> reference.with_digits(Features(["x0"]))["x0"]
        Feature('x0', decimals=1, zeros=False)
        """
        units = {
            f.name: self[f.name].unit
            for f in features
            if f.is_real and f.name in self and self[f.name].is_number
        }
        found = {
            name: max(0, -floor(log10(unit / _FINEST))) for name, unit in units.items() if unit > 0
        }
        decimals = {name: count for name, count in found.items() if count <= MOST_DECIMALS}
        return features.refined(decimals=decimals, zeros=dict.fromkeys(decimals, False))

    def described(self, features: Features) -> Features:
        """Return the same features with the ranges that were seen, but for those said to be open.

        Examples
        --------
        >>> reference = Reference.of([[float(k), -k] for k in range(40)])
        >>> features = Features(["x0", Feature("x1", upper=0, seen=OPEN)])
        >>> [feature.seen for feature in reference.described(features)]
        [(9.0, 30.0), None]
        """
        seen = {
            f.name: None if f.seen == OPEN else self[f.name].seen or f.seen
            for f in features
            if f.is_number and f.name in self and self[f.name].is_number
        }
        return features.refined(seen=seen)


def _of_column(frame: FrameView, feature: Feature) -> ColumnSummary:
    if feature.is_number:
        return _of_numbers(feature, numbers_or_days(frame, feature.name, feature.kind))
    values = frame.values(feature.name)
    there = [value for value in values if not is_missing(value)]
    counts = Counter(map(feature.code, there))
    if counts.pop(-1, 0):
        strange = next(value for value in there if feature.code(value) < 0)
        raise InvalidInputError(
            f"reference: column {feature.name!r} holds {told(strange)}, which is no level of it; "
            f"expected one of: {', '.join(map(told, feature.levels[:8]))}."
        )
    most = len(there) or 1
    shares = tuple((level, counts[code] / most) for code, level in enumerate(feature.levels))
    missing = len(values) - len(there)
    return ColumnSummary(feature.name, feature.kind, len(there), missing, shares=shares)


def _of_numbers(feature: Feature, values: Floats) -> ColumnSummary:
    name, kind = feature.name, feature.kind
    there = np.sort(values[np.isfinite(values)])
    count = len(there)
    if not count:
        return ColumnSummary(name, kind, 0, len(values))
    median, mad, deviation = _figures(there)
    if not (isfinite(median) and isfinite(mad) and isfinite(deviation)):
        raise NotSupportedError(
            f"reference: the values of column {name!r} are too large for a standard deviation; "
            f"expected numbers below 1e150. Scale the column."
        )
    return ColumnSummary(
        name, kind, count, len(values) - count, median, mad, deviation, inner_quantiles(there)
    )


def _figures(values: Floats) -> tuple[float, float, float]:
    """Median, median absolute deviation and standard deviation."""
    with np.errstate(over="ignore", invalid="ignore"):
        median = float(np.median(values))
        return median, float(np.median(np.abs(values - median))), float(values.std())


def _deviation_of_levels(shares: tuple[tuple[Any, float], ...]) -> float:
    """By how much levels that are numbers usually vary, from the share of rows that have each."""
    values = np.array([float(level) for level, _ in shares])
    counts = np.array([share for _, share in shares])
    if not counts.sum() > 0:
        return 0.0
    median = _weighted_median(values, counts)
    mad = _weighted_median(np.abs(values - median), counts)
    mean = float(np.average(values, weights=counts))
    deviation = float(np.average((values - mean) ** 2, weights=counts)) ** 0.5
    return _first_above_zero(mad, deviation, float(values.max() - values.min()))


def _weighted_median(values: Floats, counts: Floats) -> float:
    order = np.argsort(values)
    reached = np.cumsum(counts[order])
    return float(values[order][np.searchsorted(reached, reached[-1] / 2)])


def _round_number(value: float) -> float:
    """Round down to 1, 2 or 5 times a power of ten; 0 where there is none.

    Examples
    --------
    >>> [_round_number(value) for value in (1234.0, 0.0499, 5.0, 0.0)]
    [1000.0, 0.02, 5.0, 0.0]
    """
    if not 0 < value < inf:
        return 0.0
    power = floor(log10(value))
    sizes = (float(f"{digit}e{power + up}") for up in (1, 0, -1) for digit in (5, 2, 1))
    return next((size for size in sizes if size <= value), 0.0)


def _first_above_zero(*units: float | None) -> float:
    return next((unit for unit in units if unit is not None and 0 < unit < inf), 0.0)


def typical_deviation(values: Floats) -> float:
    """By how much numbers usually vary: MAD, else standard deviation, else range, else 0.

    It is what `mad_weights` and the defaults at the shell weigh changes by.

    Examples
    --------
    >>> typical_deviation(np.array([1.0, 2.0, 4.0])), typical_deviation(np.array([0.0, 0, 0, 4]))
    (1.0, 1.7320508075688772)
    """
    if not values.size:
        return 0.0
    # In order, so that sums do not depend on that of the rows.
    _, mad, deviation = _figures(np.sort(values))
    return _first_above_zero(mad, deviation, float(values.max()) - float(values.min()))

"""Cells of a table as numbers: which can be read, which are missing, and what is wrong with others.

A missing value is read as what stands in for it, where something does, and is marked. Any other
cell that is no value of its feature is an error, or, if asked for, something to tell of its row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import Floats, plain, read_only, told
from counterlvq.safe_text import shown_repr, shown_text
from counterlvq.tables.dates import are_days, is_date
from counterlvq.tables.feature import Feature
from counterlvq.tables.feature_checks import STEPS
from counterlvq.tables.features import Features
from counterlvq.tables.frames import numbers_or_days
from counterlvq.tables.missing import Fills
from counterlvq.tables.values import closest, is_missing
from counterlvq.tables.views import TableView
from counterlvq.types import Kind

__all__ = ["Reading", "read_rows", "refuse_missing_columns", "shortened"]

# Whole numbers beyond this have neighbours that a float cannot tell apart.
_MOST_EXACT = 2.0**53
# Decimals are rounded: there have to be some floats between two neighbours of a grid.
_MOST_STEPS = _MOST_EXACT / 4
# Columns that are named in a sentence about a row.
_MOST_NAMED = 5


@final
@dataclass(frozen=True, eq=False)
class Reading:
    """Rows as numbers, and what there is to say of them.

    Attributes
    ----------
    values : ndarray of shape (n, d)
        Levels and booleans as positions; where a value is missing, what stands in for it. NaN
        where a row has a problem.
    missing : ndarray of bool, shape (n, d), or None
        Where something stands in for a missing value; None if that is nowhere.
    problems : mapping from int to str
        Rows that cannot be read, and why.
    """

    values: Floats
    missing: NDArray[np.bool_] | None = None
    problems: Mapping[int, str] = field(default_factory=dict)

    @property
    def good(self) -> NDArray[np.int64]:
        """Positions of the rows that can be read."""
        if not self.problems:
            return np.arange(len(self.values))
        is_good = np.ones(len(self.values), dtype=bool)
        is_good[list(self.problems)] = False
        return np.flatnonzero(is_good)

    def with_problems(self, more: Mapping[int, str]) -> Reading:
        """Add rows that cannot be taken."""
        return Reading(self.values, self.missing, {**self.problems, **more}) if more else self


class _Gaps(NamedTuple):
    """What stands in for missing values of a column, or why nothing does."""

    fill: float  # NaN for nothing
    reason: str
    advice: str  # what to do about the reason
    # Whether the table is refused as a whole and it is said how many there are; of a row by itself,
    # no others are known.
    counts: bool

    def words(self, count: int) -> str:
        counted = f" ({count} missing value(s) in that column)" if self.counts else ""
        because = f": {self.reason}" if self.reason else ""
        advice = self.advice or (
            "have the model take gaps: by an imputer that comes first in the pipeline, or by "
            "`counterlvq train --impute-all`"
        )
        return (
            f"is missing{counted}{because}; expected a value in each row. Fill it in, or leave the "
            f"row out, or {advice}."
        )


class _Column(NamedTuple):
    values: Floats  # (n,)
    missing: Sequence[int] | NDArray[np.intp]  # where something stands in
    wrong: Mapping[int, str]  # what is wrong with other cells, to be read behind "column x"


def read_rows(
    table: TableView, features: Features, fills: Fills | None = None, *, report: bool = False
) -> Reading:
    """Read a table as numbers, one column per feature.

    With `report`, rows that cannot be read are told of instead of raised.

    Raises
    ------
    InvalidInputError
        If the table lacks a column; without `report`, naming column and row, for missing values
        that nothing stands in for, unknown levels, text among numbers and infinite ones.
    """
    refuse_missing_columns(table.names, features)
    known = Fills() if fills is None else fills
    codes = known.codes(features)
    out = np.empty((len(table), len(features)))
    missing: NDArray[np.bool_] | None = None
    problems: dict[int, dict[str, tuple[str, ...]]] = {}  # columns by what is wrong with them
    for j, feature in enumerate(features):
        read = _numbers if feature.is_number else _codes
        why, advice = known.reason(feature)
        column = read(table, feature, _Gaps(float(codes[j]), why, advice, not report))
        out[:, j] = column.values
        if len(column.missing):
            missing = np.zeros(out.shape, dtype=bool) if missing is None else missing
            missing[column.missing, j] = True
        if column.wrong and not report:
            i, words = next(iter(column.wrong.items()))
            raise InvalidInputError(f"column {told(feature.name)}, {table.row(i)} {words}")
        for i, words in column.wrong.items():
            known_of = problems.setdefault(i, {})
            known_of[words] = (*known_of.get(words, ()), feature.name)
    # Once for all rows that lack the same: there may be as many as rows.
    sentences = cache(_sentences)
    listed = {i: sentences(tuple(problems[i].items())) for i in sorted(problems)}
    return Reading(read_only(out), missing, listed)


def _sentences(wrong: tuple[tuple[str, tuple[str, ...]], ...]) -> str:
    """Say what is wrong with a row, in one sentence for all columns of which the same is said."""
    return " ".join(f"{_subject(columns)} {words}" for words, columns in wrong)


def _subject(columns: tuple[str, ...]) -> str:
    names = [told(name) for name in columns[:_MOST_NAMED]]
    if len(columns) == 1:
        return f"column {names[0]}"
    more = len(columns) - len(names)
    last = f"{more} more" if more else names.pop()
    return f"each of the columns {', '.join(names)} and {last}"


def _numbers(table: TableView, feature: Feature, stand_in: _Gaps) -> _Column:
    fill = stand_in.fill
    numbers = numbers_or_days(table, feature.name, feature.kind)
    bad = np.flatnonzero(~np.isfinite(numbers))
    is_off = np.zeros(0, dtype=np.intp)
    if feature.kind is Kind.DATE:
        is_off = np.flatnonzero(np.isfinite(numbers) & ~are_days(numbers))
    elif feature.kind is Kind.WHOLE:
        is_off = np.flatnonzero(_is_not_whole(numbers, table, feature))
    step, parts = feature.lattice or (1, 1)
    if parts > 1:
        with np.errstate(over="ignore", invalid="ignore"):
            steps = np.abs(numbers) * float(parts) / step
        most = _MOST_STEPS if feature.steps == STEPS[0] else _MOST_STEPS / 4  # sums are rounded
        is_off = np.flatnonzero(np.isfinite(numbers) & (steps > most))
    if not bad.size and not is_off.size:
        return _Column(numbers, (), {})
    cells = table.values(feature.name)
    is_gap = np.fromiter((is_missing(cells[i]) for i in bad), dtype=bool, count=bad.size)
    gaps, strange = bad[is_gap], bad[~is_gap]
    # A table that is refused as a whole is refused for one cell.
    told_of = slice(1) if stand_in.counts else slice(None)
    wrong: dict[int, str] = {}
    if gaps.size and np.isnan(fill):
        wrong = dict.fromkeys(gaps[told_of].tolist(), stand_in.words(gaps.size))
    for i in strange[told_of].tolist():
        wrong[i] = _strange_words(feature, cells[i])
    wrong = dict(sorted(wrong.items()))
    for i in map(int, is_off):
        is_date = feature.kind is Kind.DATE
        wrong[i] = (
            _strange_words(feature, cells[i])
            if is_date
            else _off_words(feature, float(numbers[i]), cells[i])
        )
    out = numbers.copy()
    out[gaps] = fill
    out[list(wrong)] = np.nan
    return _Column(out, () if np.isnan(fill) else gaps, wrong)


def _is_not_whole(numbers: Floats, table: TableView, feature: Feature) -> NDArray[np.bool_]:
    """Where numbers stand that are not whole, or beyond those that floats hold exactly."""
    with np.errstate(invalid="ignore"):
        sizes = np.abs(numbers)
        off = np.isfinite(numbers) & ((sizes > _MOST_EXACT) | (numbers != np.rint(numbers)))
    edge = np.flatnonzero(sizes == _MOST_EXACT)
    if edge.size:  # the next number is rounded to this one
        cells = table.values(feature.name)
        off[edge] = [plain(cells[i]) != float(numbers[i]) for i in edge]
    return np.asarray(off)


def _strange_words(feature: Feature, cell: object) -> str:
    came = str(cell) if is_date(cell) else told(cell)
    if feature.kind is Kind.DATE:
        is_count = isinstance(cell, int | float | np.number)
        since = " (of the years 1 to 9999; seconds and milliseconds are none)" if is_count else ""
        return (
            f"is {came}; expected a date without a time of day, such as 2024-05-31, or whole days "
            f"since 1970-01-01{since}."
        )
    if is_date(cell):
        return (
            f"is the date {came}; expected a finite number, because the feature is {feature.kind}. "
            f"Say which columns are dates, with features=frame or Feature({feature.name!r}, "
            f"'date'), or kind = \"date\" in a file for --columns: the model is then asked about "
            f"days since 1970-01-01."
        )
    return f"is {told(cell)}; expected a finite number, because the feature is {feature.kind}."


def _off_words(feature: Feature, number: float, cell: object) -> str:
    if feature.decimals or feature.step < 1:
        fewer = f"fewer decimals than {feature.decimals}, or none"
        return (
            f"is {cell!r}; expected a number of fewer steps of its grid, which floats can "
            f"tell apart. Declare {fewer if feature.decimals else 'longer steps'}."
        )
    if abs(number) >= _MOST_EXACT:
        return f"is {cell!r}; expected whole numbers of at most 2**53, which floats hold exactly."
    return (
        f"is {cell!r}; expected a whole number. To allow others, say that the column is real, by "
        f"its kind: Feature({feature.name!r}, 'real'), or kind = \"real\" in a file for --columns."
    )


def _codes(table: TableView, feature: Feature, stand_in: _Gaps) -> _Column:
    fill = stand_in.fill
    cells = table.values(feature.name)
    codes = np.array([feature.code(cell) for cell in cells], dtype=np.float64)
    bad = np.flatnonzero(codes < 0)
    if not bad.size:
        return _Column(codes, (), {})
    gaps = [int(i) for i in bad if is_missing(cells[i])]
    wrong: dict[int, str] = {}
    for i in map(int, bad):
        if not is_missing(cells[i]):
            wrong[i] = _level_words(feature, cells[i])
        elif np.isnan(fill):
            wrong[i] = stand_in.words(len(gaps))
    codes[gaps] = fill
    codes[list(wrong)] = np.nan
    return _Column(codes, () if np.isnan(fill) else gaps, wrong)


def _level_words(feature: Feature, cell: object) -> str:
    texts = [level for level in feature.levels if isinstance(level, str)]
    close = closest(cell, texts) if isinstance(cell, str) else None
    hint = " Put one of these in its place, or leave the row out."
    hint = hint if close is None else f" Did you mean {close!r}?"
    pairs = ((shown_repr(level), feature.words(level), str(level)) for level in feature.levels)
    known = (
        name if words == text else f"{name} ({shown_text(words)})" for name, words, text in pairs
    )
    return (
        f"is {shown_repr(cell)}, which is none of its levels; expected one of: "
        f"{shortened(known)}.{hint}"
    )


def refuse_missing_columns(names: Sequence[str], features: Features) -> None:
    """Say which features have no column."""
    there = set(names)
    missing = [name for name in features.names if name not in there]
    if not missing:
        return
    # A column that is taken as another feature already is none that was meant.
    close = closest(missing[0], [name for name in names if name not in features])
    hint = f" Did you mean {close!r} by {missing[0]!r}?" if close is not None else ""
    raise InvalidInputError(
        f"the table lacks the column(s) {', '.join(map(shown_repr, missing))}; expected one for "
        f"each of the {len(features)} features.{hint}"
    )


def shortened(names: Iterable[str]) -> str:
    """List the first few."""
    listed = list(names)
    return ", ".join(listed[:8]) + (", ..." if len(listed) > 8 else "")

"""What the values of a column and the names of columns stand for, one by one."""

from __future__ import annotations

import difflib
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date
from itertools import islice
from typing import Any

import numpy as np

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import (
    Floats,
    finite_matrix,
    once,
    plain,
    read_only,
    refuse_masked,
)
from counterlvq.types import Kind

__all__ = [
    "are_numbers",
    "as_texts",
    "checked_names",
    "closest",
    "distinct",
    "is_missing",
    "kind_of_values",
    "matrix_with_gaps",
    "numbers_among",
    "warn_of_gaps",
]


def is_missing(value: Any) -> bool:
    """Whether a value stands for none: None, NaN, NaT or NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def distinct(values: Iterable[Any]) -> list[Any]:
    """List values once each, sorted where they can be, without missing ones."""
    seen = [plain(value) for value in once(values) if not is_missing(value)]
    try:
        return sorted(seen)
    except TypeError:
        return seen


def are_numbers(values: Iterable[Any]) -> bool:
    """Whether all values are numbers or missing.

    A column without a value may have got a type of numbers from whoever read it, and cannot keep
    it where its values are levels or dates.

    Examples
    --------
    >>> are_numbers([1, None, 2.5]), are_numbers([None, "nurse"])
    (True, False)
    """
    return all(is_missing(v) or isinstance(v, int | float | np.number | np.bool_) for v in values)


def as_texts(values: Iterable[Any]) -> list[Any]:
    """Write dates as text, for columns that hold text; leave the rest alone.

    Examples
    --------
    >>> as_texts([date(2024, 5, 31), None, "nurse"])
    ['2024-05-31', None, 'nurse']
    """
    return [v.isoformat() if isinstance(v, date) and not is_missing(v) else v for v in values]


# Longer names take long to compare, and whoever mistypes one of so many looks at the list.
_LONGEST_COMPARED = 100
_MOST_COMPARED = 2000


def closest(name: str, names: Iterable[str]) -> str | None:
    """Find the name that was meant by one that does not exist; None if none is like it.

    Examples
    --------
    >>> closest("incom", ["age", "income"])
    'income'
    >>> closest("INCOM", ["age", "income"])
    'income'
    """
    if len(name) > _LONGEST_COMPARED:
        return None
    short = (known for known in names if len(known) <= _LONGEST_COMPARED)
    alike = {known.casefold(): known for known in reversed([*islice(short, _MOST_COMPARED)])}
    found = difflib.get_close_matches(name.casefold(), alike, n=1)
    return alike[found[0]] if found else None


def numbers_among(values: Iterable[Any]) -> Floats:
    """Read numbers off a list; NaN where something else stands."""
    return np.array([_number(value) for value in values], dtype=float)


def _number(value: Any) -> float:
    kinds = (int, float, bool, np.number, np.bool_)
    # A duration of NumPy is one of its numbers, and means nothing without its unit.
    if isinstance(value, np.timedelta64) or not isinstance(value, kinds):
        return np.nan
    try:
        return float(value)
    except (OverflowError, TypeError):  # beyond all floats, or complex
        return np.nan


def matrix_with_gaps(name: str, value: Any) -> Floats:
    """As `finite_matrix`, with NaN where values are missing.

    Examples
    --------
    >>> matrix_with_gaps("X", [[1.0, None], [2, 3]])
    array([[ 1., nan],
           [ 2.,  3.]])
    """
    try:
        return finite_matrix(name, value)
    except InvalidInputError:
        refuse_masked(name, value)
        cells = np.array(value, dtype=object)
        if cells.ndim != 2:
            raise
        gaps = np.array([[is_missing(cell) for cell in row] for row in cells], dtype=bool)
        if not gaps.any():
            raise
    cells[gaps] = 0.0
    out = np.array(finite_matrix(name, cells))
    out[gaps] = np.nan
    return read_only(out)


def warn_of_gaps(who: str, counts: Mapping[str, int], rows: int) -> None:
    """Say how many values were passed over, if any were."""
    found = {name: count for name, count in counts.items() if count}
    if not found:
        return
    shown = ", ".join(f"{count:,} of {name}" for name, count in islice(found.items(), 5))
    more = f" and of {len(found) - 5} more columns" if len(found) > 5 else ""
    words = f"{who} passes over missing values: {shown}{more}, of {rows:,} rows."
    warnings.warn(words, stacklevel=_callers_level())


def _callers_level() -> int:
    """Count how far above whoever warns the first line stands that is none of this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("counterlvq."):
        frame, level = frame.f_back, level + 1
    return level


def kind_of_values(values: list[Any]) -> Kind | None:
    """Say what a column of objects holds; None for a mixture, or for nothing at all."""
    # Looking at each type once, and at values only to tell NaN from other floats.
    types = {_plain_type(kind) for kind in set(map(type, values))} - {None}
    if float in types and all(map(is_missing, (v for v in values if isinstance(v, float)))):
        types.discard(float)
    if not types:
        return None
    if types == {bool}:
        return Kind.BOOLEAN
    if types == {int}:
        return Kind.WHOLE
    if types <= {int, float}:
        return Kind.REAL
    if types == {date}:
        return Kind.DATE
    return Kind.CATEGORICAL if types <= {str, int, bool} else None


def _plain_type(kind: type) -> type | None:
    """Name the Python type behind a type of values; None for what stands for no value."""
    if kind is type(None) or kind.__name__ in ("NAType", "NaTType"):
        return None
    known = {bool: np.bool_, int: np.integer, float: np.floating, str: np.str_}
    return next((base for base, twin in known.items() if issubclass(kind, (base, twin))), kind)


def checked_names(columns: Iterable[Any]) -> tuple[str, ...]:
    """Return the names of columns: strings, each of them once."""
    names = tuple(columns)
    for name in names:
        if not isinstance(name, str):
            raise InvalidInputError(
                f"the table has a column named {name!r} of type {type(name).__name__}; expected "
                f"names that are strings. Rename the columns first."
            )
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise InvalidInputError(
            f"the table has two columns named {repeated[0]!r}; expected one of each name."
        )
    return names

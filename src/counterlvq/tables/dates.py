"""Dates as days since the first of January 1970, and back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from math import isnan, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats
from counterlvq.tables.values import is_missing

__all__ = [
    "FIRST_DAY",
    "LAST_DAY",
    "are_days",
    "date_of",
    "dates_like",
    "days_between",
    "days_of",
    "days_of_times",
    "is_date",
    "moment_of",
]

_FIRST = date(1970, 1, 1)
# What counts nanoseconds since 1970 in 64 bits, as many tables do, holds the years between these.
FIRST_DAY = float((date(1678, 1, 1) - _FIRST).days)
LAST_DAY = float((date(2261, 12, 31) - _FIRST).days)
# Days that are dates at all: of the years 1 to 9999.
_DAYS = float((date.min - _FIRST).days), float((date.max - _FIRST).days)
# A date, which may be written as its midnight.
_TEXT = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[T ]00:00(?::00(?:\.0+)?)?Z?)?")


def is_date(value: object) -> bool:
    """Whether a value is a date of Python, NumPy or pandas; text is none."""
    return isinstance(value, date | np.datetime64)


def days_of(value: Any) -> float:
    """Days since 1970 of a date, or of its text; NaN for anything else, a time of day included.

    Examples
    --------
    >>> days_of(date(1970, 2, 1)), days_of("1970-02-01"), days_of("soon")
    (31.0, 31.0, nan)
    >>> days_of("1970-02-01T00:00:00.000"), days_of("1970-02-01T09:30")
    (31.0, nan)
    """
    if isinstance(value, str):
        text = _TEXT.fullmatch(value)
        try:
            value = None if text is None else date.fromisoformat(text[1])
        except ValueError:
            value = None
    if isinstance(value, np.datetime64):
        days = value.astype("datetime64[D]")
        return nan if np.isnat(value) or days != value else float(days.astype(np.int64))
    if is_missing(value):  # NaT is a datetime that has neither date nor time
        return nan
    if isinstance(value, datetime):
        value = None if value.time() != time() or value.tzinfo is not None else value.date()
    return float((value - _FIRST).days) if isinstance(value, date) else nan


def days_of_times(times: NDArray[np.datetime64]) -> Floats:
    """Days since 1970 of an array of times; NaN for gaps and for times within a day.

    Examples
    --------
    >>> days_of_times(np.array(["1970-02-01", "NaT", "1970-02-01T09:30"], dtype="datetime64[m]"))
    array([31., nan, nan])
    """
    whole = times.astype("datetime64[D]")
    days = whole.astype(np.int64).astype(np.float64)
    days[np.isnat(times) | (whole != times)] = np.nan
    return days


def are_days(days: Floats) -> NDArray[np.bool_]:
    """Whether numbers of days are dates: whole, and of the years 1 to 9999.

    Examples
    --------
    >>> are_days(np.array([31.0, 0.5, 1.7e12]))
    array([ True, False, False])
    """
    return np.asarray((days >= _DAYS[0]) & (days <= _DAYS[1]) & (days == np.rint(days)))


def date_of(days: float) -> date:
    """Return the date that is so many days after the first of January 1970.

    Examples
    --------
    >>> date_of(31.0)
    datetime.date(1970, 2, 1)
    """
    return _FIRST + timedelta(days=round(days))


def moment_of(days: float) -> date:
    """Return the date of a whole number of days, and a date with a time of day for any other.

    Rows have whole days; what stands in for a missing date, such as a median, need not be one.

    Examples
    --------
    >>> moment_of(31.0), moment_of(31.5)
    (datetime.date(1970, 2, 1), datetime.datetime(1970, 2, 1, 12, 0))
    """
    if days == round(days):
        return date_of(days)
    return datetime.combine(_FIRST, time()) + timedelta(days=days)


def days_between(before: date, after: date) -> float:
    """Days from one date to another; a whole number unless one of them has a time of day.

    Examples
    --------
    >>> days_between(date(1970, 2, 1), date(1970, 2, 9))
    8
    >>> days_between(datetime(1970, 2, 1, 12), date(1970, 2, 9))
    7.5
    """
    first, last = (d if isinstance(d, datetime) else datetime.combine(d, time())
                   for d in (before, after))  # fmt: skip
    days = (last - first) / timedelta(days=1)
    return int(days) if days.is_integer() else days


def dates_like(days: Floats, before: Sequence[Any]) -> NDArray[Any]:
    """Write days as what stood there before: dates, midnights or text; NaN leaves a gap.

    Where a value was missing, they are written as what stands in the first row that has one.

    Examples
    --------
    >>> dates_like(np.array([31.0, 32.0]), [None, "2024-05-31"]).tolist()
    ['1970-02-01', '1970-02-02']
    """
    first = next((old for old in before if not is_missing(old)), None)
    before = [first if is_missing(old) else old for old in before]
    out = np.empty(len(days), dtype=object)
    out[:] = [
        None if isnan(day) else _typed(moment_of(day), old)
        for day, old in zip(days.tolist(), before, strict=True)
    ]
    return out


def _typed(new: date, old: Any) -> Any:
    if isinstance(old, str):
        return new.isoformat() + old[len("1970-01-01") :]
    if isinstance(old, np.datetime64):
        return np.datetime64(new).astype(old.dtype)
    return datetime.combine(new, time()) if isinstance(old, datetime) else new

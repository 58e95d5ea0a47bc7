"""What a user may say of a feature, and the errors for all else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from datetime import date
from fractions import Fraction
from math import isnan
from typing import Any

import numpy as np

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import key_of, plain, real_number, told
from counterlvq.tables.dates import days_of, is_date
from counterlvq.tables.values import is_missing
from counterlvq.types import Kind

__all__ = [
    "MOST_DECIMALS",
    "STEPS",
    "checked_decimals",
    "checked_end",
    "checked_kind",
    "checked_levels",
    "checked_list",
    "checked_mapping",
    "checked_order",
    "checked_pair",
    "checked_step",
    "checked_steps",
    "checked_unit",
    "is_part",
    "parts_of",
]

# What the multiples of a grid are: the first by default.
STEPS = ("of value", "of change")
# A double has no more digits than this after the point that anyone could mean.
MOST_DECIMALS = 12


def checked_kind(name: str, kind: Kind | str) -> Kind:
    """Read the kind of a feature."""
    try:
        return Kind(kind)
    except ValueError:
        known = ", ".join(repr(str(item)) for item in Kind)
        raise InvalidInputError(
            f"feature {name!r} has the kind {kind!r}; expected one of: {known}."
        ) from None


def checked_levels(name: str, kind: Kind, levels: Iterable[Any] | None) -> tuple[Any, ...]:
    """Read the levels of a feature; only categories have any but True and False."""
    if kind is Kind.BOOLEAN and levels is None:
        return (False, True)
    if kind is not Kind.CATEGORICAL:
        if levels is not None:
            raise InvalidInputError(
                f"feature {name!r} is {kind} and has levels; expected them for the kind "
                f"'categorical' only."
            )
        return ()
    if levels is None or isinstance(levels, str):
        raise InvalidInputError(
            f"feature {name!r} is categorical and its levels are {levels!r}; expected a list of "
            f"them, such as levels=['no', 'yes']."
        )
    listed = tuple(plain(level) for level in levels)
    if not listed:
        raise InvalidInputError(f"feature {name!r} has no levels; expected at least one.")
    for level in listed:
        if is_missing(level) or not isinstance(level, Hashable):
            raise InvalidInputError(
                f"feature {name!r} has the level {told(level)}; expected strings, numbers or other "
                f"values that hash, and no missing ones."
            )
    keys = [key_of(level) for level in listed]
    if len(set(keys)) < len(keys):
        counts = Counter(keys)
        twice = next(level for key, level in zip(keys, listed, strict=True) if counts[key] > 1)
        raise InvalidInputError(
            f"feature {name!r} has the level {told(twice)} twice; expected each level once."
        )
    return listed


def checked_step(name: str, kind: Kind, step: float | None) -> int | float:
    """Read the step of numbers; a whole one as such, whatever its type."""
    if step is None:
        return 1
    if kind not in (Kind.WHOLE, Kind.REAL, Kind.DATE):
        raise InvalidInputError(
            f"feature {name!r} is {kind} and has a step; expected one for numbers and dates only."
        )
    number = real_number(f"feature {name!r}: step", step)
    if number >= 1 and number == int(number):
        return int(number)
    if kind is not Kind.REAL:
        raise InvalidInputError(
            f"feature {name!r} is {kind} and has the step {told(step)}; expected a whole number of "
            f"at least 1. Steps that are parts of 1 are for the kind 'real'."
        )
    if number <= 0 or parts_of(number)[1] > 10**MOST_DECIMALS:
        raise InvalidInputError(
            f"feature {name!r} has the step {told(step)}; expected a positive number of at most "
            f"{MOST_DECIMALS} decimals, such as 0.5."
        )
    return number


def is_part(step: Any) -> bool:
    """Whether a step is a number with decimals, which only real numbers have."""
    return isinstance(step, float | np.floating) and not float(step).is_integer()


def parts_of(step: float) -> tuple[int, int]:
    """Return whole numbers s and p, without a common divisor, of a step that is written as s / p.

    Examples
    --------
    >>> parts_of(0.5), parts_of(50), parts_of(0.15)
    ((1, 2), (50, 1), (3, 20))
    """
    if isinstance(step, int):
        return step, 1
    # By its decimals: the float next to 0.1 is another number.
    return Fraction(repr(float(step))).as_integer_ratio()


def checked_unit(name: str, unit: str) -> str:
    """Read a unit of measurement."""
    if not isinstance(unit, str):
        raise InvalidInputError(f"feature {name!r} has the unit {unit!r}; expected a string.")
    return unit


def checked_decimals(
    name: str, kind: Kind, decimals: int | None, step: float | None = None
) -> int | None:
    """Read how many decimals a real number has, None for any; a step of 1 leaves it none."""
    if decimals is None:
        return 0 if kind is Kind.REAL and step == 1 else None
    if step is not None:
        raise InvalidInputError(
            f"feature {name!r} has the step {told(step)} and decimals={told(decimals)}; expected "
            f"one of them."
        )
    if kind is not Kind.REAL:
        raise InvalidInputError(
            f"feature {name!r} is {kind} and has decimals; expected them for the kind 'real' only."
        )
    number = real_number(f"feature {name!r}: decimals", decimals)
    if not 0 <= number <= MOST_DECIMALS or number != int(number):
        raise InvalidInputError(
            f"feature {name!r} has decimals={told(decimals)}; expected a whole number from 0 to "
            f"{MOST_DECIMALS}."
        )
    return int(number)


def checked_steps(name: str, kind: Kind, grid: float | None, steps: str) -> str:
    """Read what the multiples of a grid are."""
    if steps not in STEPS:
        raise InvalidInputError(
            f"feature {name!r} has steps={steps!r}; expected 'of value' or 'of change'. How long a "
            f"step is, step=... or decimals=... say."
        )
    if steps != STEPS[0] and grid is None:
        raise InvalidInputError(
            f"feature {name!r} is {kind} and has steps={steps!r}; expected a number with step=... "
            f"or decimals=..."
        )
    return steps


def checked_order(name: str, kind: Kind, ordered: bool) -> bool:
    """Read whether levels are in order."""
    if not isinstance(ordered, bool | np.bool_):
        raise InvalidInputError(
            f"feature {name!r} has ordered={ordered!r}; expected True or False. The order is that "
            f"of its levels."
        )
    if ordered and kind is not Kind.CATEGORICAL:
        raise InvalidInputError(
            f"feature {name!r} is {kind} and ordered; expected levels=[...] in their order."
        )
    return bool(ordered)


def checked_end(
    name: str, kind: Kind, end: str, value: float | date | str | None, open_end: float
) -> float:
    """Read one end of a range."""
    if value is None:
        return open_end
    if kind is Kind.DATE and (is_date(value) or isinstance(value, str)):
        days = days_of(value)
        if isnan(days):
            raise InvalidInputError(
                f"feature {name!r}: {end} is {told(value)}; expected a date without a time of day."
            )
        return days
    number: Any = value
    real_number(f"feature {name!r}: {end}", number)
    # Arrays of longer whole numbers than a word of the machine hold Python's own objects.
    return number if abs(number) < 2.0**53 else float(number)


def checked_list(argument: str, names: Iterable[str]) -> Iterable[str]:
    """Read names, of which a single text is none."""
    if isinstance(names, str):
        raise InvalidInputError(f"{argument} is {names!r}; expected a list of names.")
    return names


def checked_pair(name: str, pair: tuple[Any, Any]) -> tuple[Any, Any]:
    """Read the least and the largest value of a feature."""
    try:
        lower, upper = pair
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"the range of {name!r} is {pair!r}; expected a pair (lower, upper), with None for an "
            f"open end."
        ) from None
    return lower, upper


def checked_mapping(argument: str, given: Any, what: str) -> Mapping[str, Any]:
    """Read what is said of columns by name; None says nothing."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidInputError(
            f"{argument} is {told(given)}; expected a mapping from the name of a column to {what}. "
            f"Write {argument}={{'name': ...}}, with an entry for each column that it is about."
        )
    return given

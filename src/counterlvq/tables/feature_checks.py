"""What a user may say of a feature, and the errors for all else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import key_of, plain, real_number, told
from counterlvq.tables.values import is_missing
from counterlvq.types import Kind

__all__ = [
    "checked_decimals",
    "checked_kind",
    "checked_levels",
    "checked_pair",
    "checked_step",
    "checked_unit",
]

# A double has no more digits than this after the point that anyone could mean.
_MOST_DECIMALS = 12


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


def checked_step(name: str, kind: Kind, step: int | None) -> int:
    """Read the step of whole numbers."""
    if step is None:
        return 1
    if kind is not Kind.WHOLE:
        raise InvalidInputError(
            f"feature {name!r} is {kind} and has a step; expected one for the kind 'whole' only. "
            f"Real numbers are put on a grid with decimals=..."
        )
    number = real_number(f"feature {name!r}: step", step)
    if number < 1 or number != int(number):
        raise InvalidInputError(
            f"feature {name!r} has the step {told(step)}; expected a whole number of at least 1."
        )
    return int(number)


def checked_unit(name: str, unit: str) -> str:
    """Read a unit of measurement."""
    if not isinstance(unit, str):
        raise InvalidInputError(f"feature {name!r} has the unit {unit!r}; expected a string.")
    return unit


def checked_decimals(name: str, kind: Kind, decimals: int | None) -> int | None:
    """Read how many decimals a real number has, None for any."""
    if decimals is None:
        return None
    if kind is not Kind.REAL:
        raise InvalidInputError(
            f"feature {name!r} is {kind} and has decimals; expected them for the kind 'real' only."
        )
    number = real_number(f"feature {name!r}: decimals", decimals)
    if not 0 <= number <= _MOST_DECIMALS or number != int(number):
        raise InvalidInputError(
            f"feature {name!r} has decimals={told(decimals)}; expected a whole number from 0 to "
            f"{_MOST_DECIMALS}."
        )
    return int(number)


def checked_pair(name: str, pair: tuple[float, float]) -> tuple[float, float]:
    """Read the least and the largest value of a feature."""
    try:
        lower, upper = pair
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"the range of {name!r} is {pair!r}; expected a pair (lower, upper), with -inf or inf "
            f"for an open end."
        ) from None
    return lower, upper

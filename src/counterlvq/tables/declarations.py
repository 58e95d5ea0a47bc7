"""Checks of what is said about a feature beyond its kind: words, ways to change, prices, ranges."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import inf, isfinite, isnan, nan
from typing import Any

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import plain, real_number, told
from counterlvq.tables.dates import days_of, is_date
from counterlvq.types import Kind

__all__ = [
    "CHANGES",
    "OPEN",
    "Pairs",
    "checked_change",
    "checked_label",
    "checked_level_labels",
    "checked_phrases",
    "checked_price",
    "checked_seen",
    "checked_thousands",
    "checked_zeros",
    "speaks_of_year",
]

# Which way a feature may change.
CHANGES = ("any", "increase", "decrease", "freeze")

# Prices of switches: from a level, to a level, the price.
Pairs = tuple[tuple[Any, Any, float], ...]

Code = Callable[[Any], int]

# Words of a name, be they parted by signs or by capitals.
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


def checked_label(name: str, what: str, label: str) -> str:
    """Take a text that people read instead of a name."""
    if not isinstance(label, str):
        raise InvalidInputError(f"feature {name!r} has {what} {told(label)}; expected a string.")
    return label


def checked_level_labels(
    name: str,
    kind: Kind,
    levels: tuple[Any, ...],
    code: Code,
    given: Mapping[Any, str] | None,
    boolean: tuple[str, str],
) -> tuple[str, ...]:
    """One text for each level, empty where none is given; () where no level has one."""
    if any(boolean) and kind is not Kind.BOOLEAN:
        raise InvalidInputError(
            f"feature {name!r} is {kind} and has words for true or false; expected them for the "
            f"kind 'boolean' only. Levels have level_labels={{level: text}}."
        )
    texts = [checked_label(name, "the words", text) for text in boolean] if any(boolean) else []
    if given is None:
        return tuple(texts)
    is_mapping = isinstance(given, Mapping)
    if not is_mapping or kind not in (Kind.CATEGORICAL, Kind.BOOLEAN):
        raise InvalidInputError(
            f"feature {name!r} is {kind} and has level_labels={told(given)}; expected a mapping "
            f"from level to text, for features with levels."
        )
    texts = texts or [""] * len(levels)
    for level, text in given.items():
        at = code(level)
        if at < 0:
            raise InvalidInputError(
                f"feature {name!r} has a label for {told(level)}, which is no level of it; "
                f"expected one of: {', '.join(map(told, levels[:8]))}."
            )
        texts[at] = checked_label(name, f"for the level {told(level)} the label", text)
    return tuple(texts) if any(texts) else ()


def checked_change(name: str, has_order: bool, change: str) -> str:
    """Take a way to change; up and down are for numbers, and for levels in order."""
    known = CHANGES if has_order else ("any", "freeze")
    if change not in known:
        hint = " Levels go up and down if they are ordered=True." if change in CHANGES else ""
        raise InvalidInputError(
            f"feature {name!r} has change={told(change)}; expected one of: "
            f"{', '.join(map(repr, known))}.{hint}"
        )
    return change


def checked_price(name: str, is_number: bool, code: Code, price: Any) -> float | Pairs | None:
    """Take what another level costs: one positive price, or one for each pair of levels."""
    if price is None:
        return None
    if is_number:
        raise InvalidInputError(
            f"feature {name!r} is a number and has a price of switches; expected one for levels. "
            f"Numbers have weights in the cost; to price changes between a few values, list them "
            f"as levels."
        )
    if not isinstance(price, Mapping | tuple | list):
        return _positive(f"feature {name!r}: price", price)
    listed = (
        price.items() if isinstance(price, Mapping) else [(part[:2], part[2]) for part in price]
    )
    found = []
    for pair, one in listed:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InvalidInputError(
                f"feature {name!r}: the price of {told(pair)}; expected a pair of levels."
            )
        for level in pair:
            if code(level) < 0:
                raise InvalidInputError(
                    f"feature {name!r}: a price names {told(level)}, which is no level of it."
                )
        found.append((plain(pair[0]), plain(pair[1]), _positive(f"the price of {pair!r}", one)))
    return tuple(found)


def _positive(what: str, value: Any) -> float:
    number = real_number(what, value)
    if not (number > 0 and isfinite(number)):
        raise InvalidInputError(f"{what} is {number:g}; expected a positive number.")
    return number


# Said to be seen where somebody has stated a range without an end, which what was seen must not
# give it back.
OPEN = (-inf, inf)


def checked_seen(
    name: str, is_number: bool, seen: tuple[Any, Any] | None
) -> tuple[float, float] | None:
    """Take the range that was seen in data."""
    if seen is None:
        return None
    try:
        lower, upper = (_seen_end(name, end) for end in seen)
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(
            f"feature {name!r} has seen={told(seen)}; expected a pair (lowest, highest)."
        ) from None
    if not is_number or lower > upper or lower == inf or upper == -inf:
        raise InvalidInputError(
            f"feature {name!r} has seen=({lower:g}, {upper:g}); expected the lower end first, for "
            f"a feature that is a number."
        )
    return lower, upper


def _seen_end(name: str, end: Any) -> float:
    is_day = is_date(end) or isinstance(end, str)
    days = days_of(end) if is_day else nan
    return real_number(f"feature {name!r}: seen", end if isnan(days) else days)


def checked_thousands(name: str, thousands: bool | None) -> bool | None:
    """Take whether thousands are set off; None for what is usual."""
    if thousands is not None and not isinstance(thousands, bool):
        raise InvalidInputError(
            f"feature {name!r} has thousands={told(thousands)}; expected True, False or None."
        )
    return thousands


def checked_phrases(name: str, kind: Kind, labels: Sequence[str], phrases: bool) -> bool:
    """Take whether the labels of levels are whole phrases; each level has one then."""
    if not isinstance(phrases, bool):
        raise InvalidInputError(
            f"feature {name!r} has phrases={told(phrases)}; expected True or False."
        )
    is_whole = kind is Kind.BOOLEAN or (kind is Kind.CATEGORICAL and labels and all(labels))
    if phrases and not is_whole:
        raise InvalidInputError(
            f"feature {name!r} is to speak in phrases and lacks some; expected level_labels with "
            f"one for each level, such as 'with a guarantor' and 'without a guarantor'."
        )
    return phrases


def checked_zeros(name: str, zeros: bool) -> bool:
    """Take whether decimals that are zeros are written out."""
    if not isinstance(zeros, bool):
        raise InvalidInputError(
            f"feature {name!r} has zeros={told(zeros)}; expected True or False."
        )
    return zeros


def speaks_of_year(text: str) -> bool:
    """Whether a name or a label has a word for a year.

    Examples
    --------
    >>> [speaks_of_year(text) for text in ("year_built", "YrSold", "yearly income")]
    [True, True, False]
    """
    return any(word.lower() in ("year", "yr") for word in _WORD.findall(text))

"""`columns.toml`: what the columns of a table are, in a file that people edit."""

from __future__ import annotations

import re
import tomllib
import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from itertools import combinations
from math import gcd, inf, isfinite, isinf
from typing import TYPE_CHECKING, Any, NamedTuple

import counterlvq as clvq
from counterlvq.files import read_within
from counterlvq.safe_text import shown_repr, shown_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MOST_LEVELS", "Said", "columns_text", "read_columns", "text_dates"]

# A column of text with more levels than this holds names or remarks.
MOST_LEVELS = 64
# Larger files are no list of columns that somebody has edited.
_MOST_BYTES = 16 << 20
# Pairs of levels that an error lists.
_LISTED = 8
# What reads a date, or text that is one.
_DATE = clvq.Feature("", "date")
# A column of numbers with no more different values may have levels instead.
_FEW_VALUES = 6
# Common divisors up to this come by chance.
_OWN_STEP = 4
# Parts of a key, between dots; a column and what is said of it are two.
_MOST_PARTS = 8
# Text between quotes and words between dots; whatever else there is ends a key. Comments and text
# of several lines are no keys, but may look like many.
_TOKENS = re.compile(
    r"""
    (?P<part>[A-Za-z0-9_-]++ | "(?!"")(?:[^"\\\n]|\\.)*+" | '(?!'')[^'\n]*+')
    | (?P<between>[ \t.]++)
    | (?P<other>\#[^\n]*+ | \"{3}(?:[^"\\]|\\.|"(?!""))*+(?:\"{3,5})?+
        | '{3}(?:[^']|'(?!''))*+(?:'{3,5})?+ | .)
    """,
    re.DOTALL | re.VERBOSE,
)
# The line above what is said of a column, without quotes.
_SECTION = re.compile(r"""\[([^]['"]+)\]""")
# The day that dates are counted from, as Python counts days.
_EPOCH = date(1970, 1, 1).toordinal()

_HEAD = """\
# What the columns are. Edit this file, and hand it to `counterlvq train` with --columns; the model
# file then knows it, and `counterlvq explain` and `report` need it no more. Either of them takes
# --columns too. Lines that begin with # say nothing yet: take the # away to say it.
#
#   kind     "real", "whole", "categorical", "boolean" or "date"
#   label    what people read instead of the name
#   unit     what is read behind a number; thousands = false for years and the like
#   decimals of a real number; zeros = false to show 20.5 and not 20.50
#   step     instead of decimals: 50 for changes to multiples of 50, or of so many days; 0.5 for
#            halves
#   steps    "of change": from the value of a row, and not from 0
#   range    the allowed values, [0, inf] for no upper end; without it, from the lowest to the
#            highest value that ten rows of the training table reach
#   change   "increase", "decrease" or "freeze", where it may not change in any way; of levels too,
#            if they are ordered or numbers
#   levels   in order; ordered = true if each step along the list counts
#   labels   of levels; phrases = true if they are whole phrases, such as "with a guarantor"
#   price    of another level, or of each step where they are ordered, in typical deviations of
#            numbers; 2 without it; prices = [["rent", "own", 3]] for some pairs, in both
#            directions, and default = 5 for the others
"""


class Said(NamedTuple):
    """What a file says of columns, each argument of `Features.refined` by name."""

    path: str
    names: tuple[str, ...]
    arguments: Mapping[str, Mapping[str, Any]]

    def checked(self, known: Sequence[str]) -> Said:
        """Refuse names that a table does not have."""
        for name in self.names:
            try:
                clvq.Features(known).position(name)
            except clvq.UnknownFeatureError as error:
                raise clvq.UnknownFeatureError(f"{self.path}: {error}") from None
        return self

    def of(self, features: clvq.Features) -> clvq.Features:
        """Say it of those of some features that the file names."""
        some = {
            argument: {name: value for name, value in said.items() if name in features}
            for argument, said in self.arguments.items()
        }
        others = some.pop("other_prices", {})
        prices = {**others, **some.pop("prices", {})}
        try:
            found = features.refined(**some, seen=_open_ends(some.get("ranges", {})))
            for name in sorted(prices):
                if isinstance(prices[name], tuple):
                    _refuse_many_pairs(found[name])
            for name in sorted(prices.keys() - others.keys()):
                _refuse_unpriced(found[name], prices[name])
            full = {
                name: _for_all_pairs(found[name].levels, price, others[name])
                for name, price in prices.items()
                if name in others and isinstance(price, tuple)
            }
            return found.refined(prices={**prices, **full})
        except clvq.InvalidInputError as error:
            raise clvq.InvalidInputError(f"{self.path}: {error}") from None


def _open_ends(ranges: Mapping[str, tuple[Any, Any]]) -> dict[str, tuple[float, float]]:
    """Find the ranges that have an open end, which is not to be that of the data."""
    ends = {name: [e for e in pair if isinstance(e, float)] for name, pair in ranges.items()}
    return {name: (-inf, inf) for name, found in ends.items() if any(map(isinf, found))}


def _refuse_many_pairs(feature: clvq.Feature) -> None:
    """Refuse prices of pairs before all pairs of many levels are made."""
    if len(feature.levels) > MOST_LEVELS:
        raise clvq.InvalidInputError(
            f"[{shown_text(feature.name)}] prices are given to pairs of {len(feature.levels):,} "
            f"levels; expected at most {MOST_LEVELS} of them. Give all pairs the same with "
            f"price = ..., or leave the column out."
        )


def _refuse_unpriced(feature: clvq.Feature, listed: tuple[tuple[Any, Any, float], ...]) -> None:
    """Refuse a list that leaves out pairs of levels which may come up."""
    known = {frozenset((str(before), str(after))) for before, after, _ in listed}
    left = [
        pair for pair in combinations(feature.levels, 2) if frozenset(map(str, pair)) not in known
    ]
    if left and feature.change != "freeze":
        shown = ", ".join(shown_repr(list(pair)) for pair in left[:_LISTED])
        more = f" and {len(left) - _LISTED} more" if len(left) > _LISTED else ""
        raise clvq.InvalidInputError(
            f"[{shown_text(feature.name)}] prices has no price for {shown}{more}; "
            f"expected one for each pair of levels. Add them, or give the others one with "
            f"default = ..."
        )


def _for_all_pairs(
    levels: tuple[Any, ...], listed: tuple[tuple[Any, Any, float], ...], other: float
) -> tuple[tuple[Any, Any, float], ...]:
    """Give a price to the pairs that are not listed, in either direction."""
    known = {frozenset((str(before), str(after))) for before, after, _ in listed}
    more = [
        (before, after, other)
        for before, after in combinations(levels, 2)
        if frozenset((str(before), str(after))) not in known
    ]
    return (*listed, *more)


def read_columns(path: str) -> Said:
    """Read a file of columns, and say what is wrong with it."""
    with open(path, "rb") as file:
        whole = read_within(file, _MOST_BYTES, path, "Name what `counterlvq columns TABLE` writes")
    try:
        text = whole.decode("utf-8-sig")
        _refuse_long_keys(text)
        document = tomllib.loads(text)
    except (ValueError, RecursionError, MemoryError) as error:
        raise clvq.InvalidInputError(
            f"{path} is no TOML ({error}); expected what `counterlvq columns TABLE` writes."
            f"{_unquoted_hint(whole)}"
        ) from None
    found: dict[str, dict[str, Any]] = {}
    for name, entry in document.items():
        if not isinstance(entry, dict):
            raise clvq.InvalidInputError(
                f"{path}: {shown_text(name)} stands outside of any column; expected a line such as "
                f"[{shown_text(name)}] before what is said of it."
            )
        for argument, value in _arguments(f"{path}: [{shown_text(name)}]", entry).items():
            found.setdefault(argument, {})[name] = value
    return Said(path, tuple(document), found)


def _unquoted_hint(whole: bytes) -> str:
    """Say how the first name is written that stands without quotes and needs some."""
    for line in whole.decode("utf-8", "replace").splitlines():
        found = _SECTION.fullmatch(line.strip())
        if found is not None and found[1] != _key(found[1]):
            return f" Names with such signs stand between quotes: [{shown_text(_key(found[1]))}]."
    return ""


def _refuse_long_keys(text: str) -> None:
    """Refuse keys of many parts, which take time and memory in the square of their length."""
    parts = 0
    for found in _TOKENS.finditer(text):
        kind = found.lastgroup
        if kind == "part":
            parts += 1
        elif kind == "other":
            parts = 0
        if parts > _MOST_PARTS:
            line = text.count("\n", 0, found.start()) + 1
            raise ValueError(f"a key of more than {_MOST_PARTS} parts, at line {line}")


def _arguments(where: str, entry: dict[str, Any]) -> dict[str, Any]:
    """Turn the lines about one column into arguments."""
    out: dict[str, Any] = {}
    words: dict[Any, str] = {}
    for key, value in entry.items():
        if key in ("true", "false"):
            words[key == "true"] = value
        elif key in _KEYS:
            argument, read = _KEYS[key]
            found = read(f"{where} {key}", value)
            if found is not None:
                out[argument] = found
        else:
            raise clvq.InvalidInputError(
                f"{where} has {shown_text(key)}; expected one of: {', '.join(_KEYS)}, true, false."
            )
    if words:
        out["level_labels"] = words
    if "default" in entry and "prices" not in entry:
        raise clvq.InvalidInputError(
            f"{where} has a default and no prices; expected both, or price = ... for all pairs."
        )
    if "ordered" in out and "levels" not in out:
        raise clvq.InvalidInputError(
            f"{where} is ordered and lists no levels; expected levels = [...], from the first to "
            f"the last: a table does not say which comes first."
        )
    if "level_labels" in out and "levels" in out:
        # Keys of TOML are text, and levels may be numbers.
        by_text = {str(level): level for level in out["levels"]}
        out["level_labels"] = {by_text.get(k, k): v for k, v in out["level_labels"].items()}
    return out


def _of(kind: type | tuple[type, ...], words: str) -> Callable[[str, Any], Any]:
    def read(where: str, value: Any) -> Any:
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise clvq.InvalidInputError(f"{where} is {shown_repr(value)}; expected {words}.")
        return value

    return read


def _range(where: str, value: Any) -> tuple[Any, Any]:
    ends: list[Any] = value if isinstance(value, list) else []
    is_bool = any(isinstance(end, bool) for end in ends)
    known = [end for end in ends if isinstance(end, int | float | date)]
    if len(ends) != 2 or len(known) != 2 or is_bool:
        raise clvq.InvalidInputError(
            f"{where} is {shown_repr(value)}; expected two numbers or dates, such as [0, 5000], "
            f"[0, inf] or [2024-01-01, inf]."
        )
    return known[0], known[1]


def _steps(where: str, value: Any) -> bool | None:
    """Read what steps are of; None for what is usual."""
    if value not in ("of value", "of change"):
        raise clvq.InvalidInputError(
            f'{where} is {shown_repr(value)}; expected "of value" or "of change".'
        )
    return True if value == "of change" else None


def _ordered(where: str, value: Any) -> bool | None:
    return _of(bool, "true or false")(where, value) or None


def _prices(where: str, value: Any) -> tuple[tuple[Any, Any, float], ...]:
    if not isinstance(value, list) or any(
        not isinstance(part, list) or len(part) != 3 for part in value
    ):
        raise clvq.InvalidInputError(
            f'{where} is {shown_repr(value)}; expected a list such as [["rent", "own", 3]].'
        )
    return tuple((part[0], part[1], part[2]) for part in value)


_TEXT = _of(str, "text")
_KEYS: Mapping[str, tuple[str, Callable[[str, Any], Any]]] = {
    "kind": ("kinds", _TEXT),
    "label": ("labels", _TEXT),
    "unit": ("units", _TEXT),
    "decimals": ("decimals", _of(int, "a whole number")),
    "step": ("steps", _of((int, float), "a number such as 50 or 0.5")),
    "range": ("ranges", _range),
    "change": ("changes", _TEXT),
    "levels": ("levels", _of(list, "a list")),
    "labels": ("level_labels", _of(dict, "a table from level to text")),
    "steps": ("of_change", _steps),
    "ordered": ("ordered", _ordered),
    "thousands": ("thousands", _of(bool, "true or false")),
    "zeros": ("zeros", _of(bool, "true or false")),
    "phrases": ("phrases", _of(bool, "true or false")),
    "price": ("other_prices", _of((int, float), "a number")),
    "default": ("other_prices", _of((int, float), "a number")),
    "prices": ("prices", _prices),
}


# --- writing --------------------------------------------------------------------------------------


def columns_text(frame: pd.DataFrame) -> str:
    """Describe the columns of a table, for people to edit."""
    names = [str(name) for name in frame.columns]
    parts = ["\n".join([f"[{_key(name)}]", *_lines(frame, name)]) + "\n" for name in names]
    return "\n".join([_HEAD, *parts])


def _lines(frame: pd.DataFrame, name: str) -> list[str]:
    kinds = dict.fromkeys(text_dates(frame[[name]]), "date")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of missing values, which are counted below
            feature = clvq.Features.from_frame(frame, only=[name], kinds=kinds, decimals="seen")[
                name
            ]
    except clvq.NotSupportedError:
        return ["# neither numbers nor levels: leave it out of training with --drop"]
    missing = int(frame[name].isna().sum())
    counted = [f"# missing in {missing:,} of {len(frame):,} rows"] if missing else []
    return [*counted, *_lines_of(frame, name, feature)]


def text_dates(frame: pd.DataFrame) -> list[str]:
    """List the columns of text that hold dates such as 2024-05-31, and nothing else."""

    def is_date(column: pd.Series[Any]) -> bool:
        there = column.dropna().unique().tolist()
        return bool(there) and all(
            isinstance(value, str) and _DATE.number(value) is not None for value in there
        )

    return [str(name) for name in frame.columns if is_date(frame[name])]


def _lines_of(frame: pd.DataFrame, name: str, feature: clvq.Feature) -> list[str]:
    if feature.kind == "date":
        return _date_lines(frame, feature)
    if feature.is_number:
        return _number_lines(frame, feature)
    if len(feature.levels) > MOST_LEVELS:
        count = f"{len(feature.levels):,}"
        return [
            f"# text with {count} different values: leave it out of training with --drop, or if it",
            "# holds dates, write all of them as 2024-05-31",
        ]
    lines = [f'kind = "{feature.kind}"', '#label = ""']
    price = 2  # what it is in typical deviations if nobody says so
    if feature.kind == "boolean":
        return [
            *lines,
            '#true = "with"',
            '#false = "without"',
            f"#price = {price}",
            '#change = "freeze"',
        ]
    shares = frame[name].value_counts(normalize=True)
    lines += [
        f"levels = [{', '.join(map(_value, feature.levels))}]",
        "# share of rows: "
        + ", ".join(f"{shares.get(level, 0.0):.0%} {_value(level)}" for level in feature.levels),
        f"#price = {price}",
    ]
    if len(feature.levels) > 1:
        before, after = (_value(level) for level in feature.levels[:2])
        others = f"  # and default = {price} for other pairs"
        others = "  # in both directions" if len(feature.levels) == 2 else others
        lines.append(f"#prices = [[{before}, {after}, 1]]{others}")
    if len(feature.levels) > 2:
        lines.append("#ordered = true  # once the levels stand from the first to the last")
    level = feature.levels[0]
    return [*lines, f'#labels = {{ {_key(str(level))} = "" }}', '#change = "freeze"']


def _date_lines(frame: pd.DataFrame, feature: clvq.Feature) -> list[str]:
    lines = ['kind = "date"', '#label = ""', "#step = 7", '#steps = "of change"']
    there = frame[feature.name].dropna()
    if any(_DATE.number(value) is None for value in there.unique()):
        lines.insert(0, "# holds times of day: cut them to days, or leave it out with --drop")
    if feature.seen is not None:
        low, high = (date.fromordinal(_EPOCH + round(end)) for end in feature.seen)
        lines.append(f"#range = [{low}, {high}]  # as usual in the table")
    return [*lines, '#change = "increase"']


def _number_lines(frame: pd.DataFrame, feature: clvq.Feature) -> list[str]:
    lines = [f'kind = "{feature.kind}"']
    values = frame[feature.name].dropna()
    there = [float(value) for value in values if isfinite(value)]
    is_whole = bool(there) and all(value.is_integer() for value in there)
    if feature.kind == "real" and is_whole and feature.decimals is None:
        lines[0] += '  # all values are whole numbers: "whole" would keep answers so'
    lines += ['#label = ""', '#unit = ""']
    if feature.decimals is not None:
        seen = "as in the table" if feature.decimals else "all values are whole numbers"
        lines.append(f"decimals = {feature.decimals}  # {seen}")
        if feature.decimals:
            lines.append("zeros = false  # true to show all of these decimals")
    step = _common_step(there, feature.decimals or 0) if is_whole or feature.decimals else None
    if step is not None:
        instead = ", instead of decimals" if feature.decimals is not None else ""
        lines.append(f"#step = {step}  # all values are multiples of {step}{instead}")
    elif feature.kind == "whole":
        lines.append("#step = 1")
    elif feature.decimals is None:
        lines.append("#decimals = 2")
    found = sorted(set(there))
    if 1 < len(found) <= _FEW_VALUES < len(there) and not _are_counted(found):
        lines.append(f"# {len(found)} different values; to keep answers to them, without a kind:")
        lines.append(f"#levels = [{', '.join(map(_value, found))}]")
    low, high = feature.seen or (found[0], found[-1]) if found else (-inf, inf)
    lines.append(f"#range = [{_value(low)}, {_value(high)}]  # as usual in the table")
    return [*lines, '#change = "increase"']


def _common_step(values: list[float], decimals: int) -> int | float | None:
    """Find a number that all values are multiples of; None for the smallest one there is."""
    step = gcd(*(round(value * 10**decimals) for value in values))
    if step <= (_OWN_STEP if not decimals else 1):
        return None
    return step if not decimals else step / 10**decimals


def _are_counted(values: list[float]) -> bool:
    """Whether values are whole numbers without a gap between them, such as counts of something."""
    return values[0].is_integer() and values[-1] - values[0] == len(values) - 1


def _value(value: Any) -> str:
    """Write a value as TOML does."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        whole = isinstance(value, float) and isfinite(value) and value.is_integer()
        return str(int(value)) if whole and abs(value) < 1e15 else repr(value)
    return _quoted(str(value))


def _key(name: str) -> str:
    is_bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if is_bare else _quoted(name)


def _quoted(text: str) -> str:
    """Put text between quotes; what TOML takes in no other way is written as its number."""
    out = []
    for letter in text:
        if 0xD800 <= ord(letter) <= 0xDFFF:
            raise clvq.InvalidInputError(
                f"{shown_repr(text)} holds half a surrogate pair, which TOML cannot; rename it."
            )
        if letter in '"\\':
            out.append(f"\\{letter}")
        elif letter.isprintable():
            out.append(letter)
        else:
            out.append(f"\\U{ord(letter):08x}")
    return f'"{"".join(out)}"'

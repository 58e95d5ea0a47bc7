"""JSON from strangers: one value per key, every value of the type that is expected."""

from __future__ import annotations

import json
from collections import Counter
from math import isfinite
from typing import Any, NoReturn

from counterlvq.files import MOST_WIDE, is_wide
from counterlvq.persistence.refusals import Refusal

__all__ = ["Fields", "Scalar", "digits", "parse"]

Scalar = str | int | float | bool | None

_NAMES = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
    type(None): "null",
}


def parse(text: bytes | str, where: str) -> Any:
    """Parse strictly: no key twice, no NaN, no infinity, no endless nesting."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")  # by itself, json would try other encodings as well
        return json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
    except RecursionError:
        raise Refusal(f"{where} is nested too deeply; expected a flat object.") from None
    except ValueError as error:
        raise Refusal(f"{where} is no JSON ({error}).") from None


def digits(number: int) -> str:
    """Write a whole number of a file, shortened if it is a long one."""
    text = str(number)
    return text if len(text) <= 30 else f"{text[:20]}... ({len(text)} digits)"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise Refusal(f"an object has the key {twice[:80]!r} twice; expected it once.")
    return out


def _refuse_constant(name: str) -> NoReturn:
    raise Refusal(f"a value is {name}; expected finite numbers.")


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise Refusal(f"a value is {text[:80]}; expected finite numbers.")
    return number


class Fields:
    """An object of a document, read key by key; whatever is left over in the end is an error."""

    def __init__(self, value: Any, where: str) -> None:
        self.where = where
        self._left: dict[str, Any] = dict(_typed(value, (dict,), where))

    def take(self, key: str, *kinds: type) -> Any:
        """Read a value that has to be there."""
        if key not in self._left:
            raise Refusal(f"{self.where} lacks {key!r}.")
        return _typed(self._left.pop(key), kinds, f"{self.where}.{key}")

    def take_if_there(self, key: str, *kinds: type) -> Any:
        """Read a value that may be left out; None then."""
        return self.take(key, *kinds) if key in self._left else None

    def __contains__(self, key: str) -> bool:
        return key in self._left

    def take_list_if_there(self, key: str, *kinds: type) -> list[Any] | None:
        """Read a list that may be left out; None then."""
        return self.items(key, *kinds) if key in self._left else None

    def is_null(self, key: str) -> bool:
        """Whether a value that has to be there is null; it is then read."""
        if key in self._left and self._left[key] is not None:
            return False
        return self.take(key, type(None)) is None

    def levels(self) -> list[Any] | None:
        """Read the levels of a column, of which there may be none."""
        return self.scalars("levels", str, int, float, bool) if "levels" in self._left else None

    def scalars(self, key: str, *kinds: type) -> list[Any]:
        """Read a list of values that are to be told apart: labels, or levels."""
        values = self.items(key, *kinds)
        count = sum(map(is_wide, values))
        if count > MOST_WIDE:
            raise Refusal(
                f"{self.where}.{key} holds {count} whole numbers beyond 64 bits; expected at most "
                f"{MOST_WIDE}."
            )
        return values

    def items(self, key: str, *kinds: type) -> list[Any]:
        """Read a list, each item of one of the given types."""
        values: list[Any] = self.take(key, list)
        return [_typed(item, kinds, f"{self.where}.{key}[{k}]") for k, item in enumerate(values)]

    def done(self) -> None:
        """Refuse keys that nobody asked for: they may have changed the meaning of the rest."""
        if self._left:
            names = ", ".join(repr(key[:80]) for key in sorted(self._left)[:5])
            raise Refusal(f"{self.where} holds {names}, which this format does not have.")


def _typed(value: Any, kinds: tuple[type, ...], where: str) -> Any:
    # By exact type: in Python true is a whole number, in a file it is a mistake.
    if type(value) not in kinds:
        wanted = " or ".join(_NAMES[kind] for kind in kinds)
        raise Refusal(f"{where} is {_NAMES[type(value)]}; expected {wanted}.")
    return value

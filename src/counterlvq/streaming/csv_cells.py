"""Cells of large CSV, each read as what its column is; a text that is none spoils its own row only.

What a cell stands for does not depend on the other rows: a column of whole numbers may be written
1, 2.0 and 3e0, whatever the reader of a whole table would have made of it.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple, final

import numpy as np

from counterlvq.errors import InvalidInputError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import key_of, plain, told
from counterlvq.numeric.lazy import cached_property
from counterlvq.streaming.arrow import arrow, arrow_part
from counterlvq.streaming.columns import label_array
from counterlvq.tables.feature import Feature
from counterlvq.types import Kind

__all__ = ["Cells", "CsvStyle", "FeatureCells", "LabelCells", "type_of"]

# What stands for a missing value, as pandas has it, unless a level is called so.
_GAPS = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip
_NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"
_ONE_NUMBER = re.compile(_NUMBER, re.ASCII)
_ASCII, _LETTERS = bytes(range(128)), "éяあ中한"
_TRUTH = {"true": True, "false": False}
_MOST_DIGITS = 100
# Whole numbers beyond this have neighbours that a float cannot tell apart.
_MOST_EXACT = 1 << 53


class CsvStyle(NamedTuple):
    """How CSV is written."""

    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"

    @property
    def is_utf8(self) -> bool:
        """Whether Arrow can take the bytes as they are."""
        return codecs.lookup(self.encoding).name == "utf-8"

    def checked(self) -> CsvStyle:
        """Refuse signs that cannot be told apart, and text whose lines cannot be."""
        for name, sign in (("delimiter", self.delimiter), ("decimal", self.decimal)):
            is_text = isinstance(sign, str)
            if not is_text or len(sign) != 1 or not sign.isascii() or sign in '"\r\n':
                raise InvalidInputError(f"{name} is {told(sign)}; expected one sign of ASCII.")
        if self.delimiter == self.decimal:
            raise InvalidInputError(
                f"delimiter and decimal are both {told(self.decimal)}; expected different signs."
            )
        try:
            # Letters of several bytes begin beyond ASCII; elsewhere they might hold quotes.
            others = [letter.encode(self.encoding, "ignore")[:1] for letter in _LETTERS]
            is_plain = _ASCII.decode(self.encoding) == _ASCII.decode("ascii") and all(
                first >= b"\x80" for first in others if first
            )
        except (LookupError, ValueError, TypeError):
            is_plain = False
        if not is_plain:
            raise InvalidInputError(
                f"encoding is {told(self.encoding)}; expected one in which line ends and commas "
                f"are those of ASCII, such as utf-8, cp1252 or latin-1. Convert the file first."
            )
        return self

    def number(self, text: str) -> float | int | None:
        """Read a number as this style writes it; None for any other text."""
        if self.decimal != ".":
            text = "" if "." in text else text.replace(self.decimal, ".")
        if _ONE_NUMBER.match(text) is None:
            return None
        # Numbers of customers may have more digits than floats hold.
        has_digits_alone = text.strip().lstrip("+-").isdigit() and len(text) <= _MOST_DIGITS
        return int(text) if has_digits_alone else float(text)


class Cells(NamedTuple):
    """A column, and what is wrong with its rows."""

    column: Any  # pyarrow.Array
    wrong: Mapping[int, str]


def type_of(feature: Feature) -> Any:
    """Type of the column that a feature is read as."""
    pa = arrow()
    if feature.kind is Kind.CATEGORICAL:
        return label_array(list(feature.levels)).type
    known = {Kind.WHOLE: pa.int64(), Kind.DATE: pa.string(), Kind.BOOLEAN: pa.bool_()}
    return known.get(feature.kind, pa.float64())


@final
@dataclass(frozen=True)
class FeatureCells:
    """Reads the cells of a feature.

    Examples
    --------
    >>> import pyarrow as pa
    >>> cells = FeatureCells(Feature("cards", "whole"))(pa.array(["3", "NA", "x"]), CsvStyle())
    >>> cells.column.to_pylist(), cells.wrong
    ([3, None, None], {2: "is 'x'; expected a whole number of at most 2**53."})
    """

    feature: Feature

    def __call__(self, cells: Any, style: CsvStyle) -> Cells:
        """Read cells."""
        if not self.feature.is_number:
            return self._levels(cells, style)
        pa, compute = arrow(), arrow_part("compute")
        gaps = compute.is_in(cells, value_set=pa.array(_GAPS))
        cells = compute.if_else(gaps, pa.scalar(None, pa.string()), cells)
        return Cells(cells, {}) if self.feature.kind is Kind.DATE else self._numbers(cells, style)

    def _numbers(self, cells: Any, style: CsvStyle) -> Cells:
        pa, compute = arrow(), arrow_part("compute")
        texts = cells
        if style.decimal != ".":
            # A point would be the sign of thousands, if anything: 1.234 is not 1,234.
            has_point = compute.match_substring(cells, ".")
            texts = compute.replace_substring(cells, style.decimal, ".")
            texts = compute.if_else(has_point, "", texts)
        is_number = compute.match_substring_regex(texts, _NUMBER)
        texts = compute.if_else(is_number, compute.utf8_trim_whitespace(texts), None)
        numbers = compute.cast(compute.utf8_ltrim(texts, "+"), pa.float64())
        bad = ~compute.fill_null(is_number, True).to_numpy(zero_copy_only=False)
        words = f"expected a finite number, because the feature is {self.feature.kind}."
        if self.feature.kind is Kind.WHOLE:
            found = numbers.to_numpy(zero_copy_only=False)
            with np.errstate(invalid="ignore"):
                off = (found != np.rint(found)) | (np.abs(found) > _MOST_EXACT)
            for i in np.flatnonzero(np.abs(found) == _MOST_EXACT):  # the next is rounded to it
                off[i] = Decimal(texts[int(i)].as_py()) != Decimal(found[i])
            bad |= off & ~np.isnan(found)
            words = "expected a whole number of at most 2**53."
            numbers = compute.if_else(pa.array(bad), None, numbers).cast(pa.int64())
        wrong = {i: f"is {told(cells[i].as_py())}; {words}" for i in np.flatnonzero(bad).tolist()}
        return Cells(numbers, wrong)

    def _levels(self, cells: Any, style: CsvStyle) -> Cells:
        """Read levels by their names, by their labels, or as the numbers that they are."""
        kind = type_of(self.feature)
        is_text = arrow().types.is_string(kind)
        found: dict[str, Any] = {}
        for text in cells.drop_null().unique().to_pylist():
            at = self._position(text, style)
            if at >= 0:
                level = plain(self.feature.levels[at])
                found[text] = str(level) if is_text else level
            elif text in _GAPS:
                found[text] = None
            elif is_text:
                found[text] = text  # what is no level is told of where rows are read
        levels = ", ".join(map(told, self.feature.levels[:8]))
        return _looked_up(cells, found, kind, f"one of: {levels}")

    def _position(self, text: str, style: CsvStyle) -> int:
        at = self.feature.meant(text)
        if at < 0:
            at = self._by_name.get(text.strip(), -1)
        number = style.number(text) if at < 0 else None
        return at if number is None else self.feature.code(number)

    @cached_property
    def _by_name(self) -> dict[str, int]:
        names = [str(plain(level)) for level in self.feature.levels]
        return {name: names.index(name) for name in names}


@final
@dataclass(frozen=True)
class LabelCells:
    """Reads the cells of a column that holds a label per row; an empty one wishes for any other."""

    model: PrototypeModel

    def __call__(self, cells: Any, style: CsvStyle) -> Cells:
        """Read cells."""
        pa, compute = arrow(), arrow_part("compute")
        labels = [plain(label) for label in self.model.classes]
        kind = label_array(labels).type
        if pa.types.is_string(kind):
            empty = compute.equal(cells, "")
            return Cells(compute.if_else(empty, pa.scalar(None, pa.string()), cells), {})
        by_name = {str(label): label for label in labels}
        by_key = {key_of(label): label for label in labels}
        found: dict[str, Any] = {"": None}
        for text in cells.drop_null().unique().to_pylist():
            value = by_name.get(text.strip())
            if value is None:
                key = _TRUTH.get(text.strip().casefold(), style.number(text))
                value = None if key is None else by_key.get(key_of(key))
            if value is not None:
                found[text] = value
        shown = ", ".join(map(told, labels[:8]))
        return _looked_up(cells, found, kind, f"one of the labels {shown}")


def _looked_up(cells: Any, found: Mapping[str, Any], kind: Any, expected: str) -> Cells:
    """Read cells as what their texts stand for; a text that is not listed is wrong."""
    pa = arrow()
    encoded = cells.dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    column = pa.array([found.get(text) for text in texts], kind).take(encoded.indices)
    strange = {k for k, text in enumerate(texts) if text not in found}
    wrong = {
        i: f"is {told(texts[code])}; expected {expected}."
        for i, code in enumerate(encoded.indices.to_pylist() if strange else ())
        if code in strange
    }
    return Cells(column, wrong)

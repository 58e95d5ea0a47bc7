"""Large CSV: cut at the ends of records, and each cell read as what its column is.

Cells are read one by one, so that a word among numbers spoils its own row only. Columns that the
model does not see are given back as text, to the letter.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from counterlvq.errors import InvalidInputError
from counterlvq.files.csv_lines import first_lines
from counterlvq.files.kinds import PARQUET, is_json, other_kind
from counterlvq.files.parquet_room import refuse_large_table, table_room
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import plain, told
from counterlvq.streaming.arrow import arrow, arrow_part, foreign_errors
from counterlvq.streaming.columns import label_array
from counterlvq.streaming.csv_cuts import Cut, cuts_of, header_of
from counterlvq.streaming.sources import BATCH_ROWS, RAISED_BY, Part, Source, SourceFile, named
from counterlvq.tables.feature import Feature
from counterlvq.tables.features import Features
from counterlvq.tables.values import checked_names
from counterlvq.types import Kind

__all__ = ["CsvSource", "CsvStyle"]

# What stands for a missing value, as pandas has it.
_GAPS = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip
_NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"
_ASCII, _LETTERS = bytes(range(128)), "éяあ中한"
_TRUTH = {"true": True, "false": False, "1": True, "0": False}


class CsvStyle(NamedTuple):
    """How CSV is written."""

    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"

    def checked(self) -> CsvStyle:
        """Refuse signs that cannot be told apart, and text whose lines cannot be."""
        for name, sign in (("delimiter", self.delimiter), ("decimal", self.decimal)):
            if len(sign) != 1 or not sign.isascii() or sign in '"\r\n':
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


class _Cells(NamedTuple):
    column: Any  # pyarrow.Array
    wrong: Mapping[int, str]


Reader = Callable[[Any, CsvStyle], _Cells]


@final
@dataclass(frozen=True, eq=False)
class CsvSource(Source):
    """Files of CSV with the same names in the first line of each."""

    kind = "csv"
    root: Path
    files: tuple[SourceFile, ...]
    schema: Any
    style: CsvStyle
    features: Features
    model: PrototypeModel
    wish: str | None  # the column that holds a label per row
    cuts: tuple[tuple[Cut, ...], ...]  # per file

    @classmethod
    def of(
        cls,
        root: Path,
        paths: Sequence[str],
        style: CsvStyle,
        features: Features,
        model: PrototypeModel,
        wish: str | None,
        max_bytes: int | None = None,
    ) -> CsvSource:
        """Read the first lines; nothing is cut yet."""
        names = [_names(root, path, style, max_bytes) for path in paths]
        for path, found in zip(paths, names, strict=True):
            if found != names[0]:
                raise InvalidInputError(
                    f"{told(path)} has other names of columns than {told(paths[0])}; expected the "
                    f"same in each file."
                )
        pa = arrow()
        labels = label_array(model.classes.tolist())
        types = {feature.name: _type(feature) for feature in features}
        types |= {} if wish is None or wish in types else {wish: labels.type}
        schema = pa.schema([(name, types.get(name, pa.string())) for name in names[0]])
        files = tuple(SourceFile.of(root, path, "") for path in paths)
        return cls(root, files, schema, style, features, model, wish, ())

    def cut(self, part_rows: int) -> CsvSource:
        """Read all files once, to find the ends of records and to hash the contents."""
        sign = self.style.delimiter
        found = [cuts_of(self.root / file.path, sign, part_rows) for file in self.files]
        files = tuple(
            file._replace(hash=known) for file, (_, known) in zip(self.files, found, strict=True)
        )
        return replace(self, files=files, cuts=tuple(cuts for cuts, _ in found))

    def document(self) -> dict[str, Any]:
        """Describe the files, for the manifest."""
        return {**super().document(), "style": self.style._asdict()}

    def parts(self, part_rows: int) -> tuple[Part, ...]:
        """Cut files as they were found to be divided."""
        return tuple(
            Part(named(k, i), k, *cut)
            for k, cuts in enumerate(self.cuts)
            for i, cut in enumerate(cuts)
        )

    def batches(self, part: Part) -> Iterator[tuple[Any, Mapping[int, str]]]:
        """Read the records of a part."""
        path = self.files[part.file].path
        with open(self.root / path, "rb") as file:
            file.seek(part.begin)
            content = file.read(part.end - part.begin)
        if not content.strip(b"\r\n"):  # what else is blank may be cells: tabs in TSV
            return
        place = f"{told(path)}, bytes {part.begin:,} to {part.end:,},"
        expected = f"a value for each of the {len(self.schema)} columns in every line"
        with foreign_errors(place, "CSV", expected):
            if codecs.lookup(self.style.encoding).name != "utf-8":
                content = _decoded(content, self.style, told(path), part.begin).encode()
            try:
                table = self._parsed(content)
            except arrow().ArrowInvalid:
                _decoded(content, CsvStyle(), told(path), part.begin)  # knows the place
                raise
            for batch in table.to_batches(BATCH_ROWS):
                yield self._typed(batch)

    def _parsed(self, content: bytes) -> Any:
        pa, reader = arrow(), arrow_part("csv")
        names = self.schema.names
        return reader.read_csv(
            pa.BufferReader(content),
            reader.ReadOptions(use_threads=False, block_size=len(content) + 1, column_names=names),
            reader.ParseOptions(delimiter=self.style.delimiter, newlines_in_values=True),
            reader.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        ).combine_chunks()

    def _typed(self, batch: Any) -> tuple[Any, Mapping[int, str]]:
        """Read cells as what their columns are, and say what is wrong with others."""
        arrays, problems = [], dict[int, str]()
        for field, cells in zip(self.schema, batch.columns, strict=True):
            read = self._reader(field.name)
            column, wrong = (cells, {}) if read is None else read(cells, self.style)
            arrays.append(column)
            for i, words in wrong.items():
                told_so = f"column {told(field.name)} {words}"
                problems[i] = f"{problems[i]} {told_so}" if i in problems else told_so
        return arrow().RecordBatch.from_arrays(arrays, schema=self.schema), problems

    def _reader(self, name: str) -> Reader | None:
        if name in self.features:
            return _Feature(self.features[name])
        if name == self.wish:
            return _Labels(self.model)
        return None


def _type(feature: Feature) -> Any:
    pa = arrow()
    if feature.kind is Kind.CATEGORICAL:
        return label_array(list(feature.levels)).type
    known = {Kind.WHOLE: pa.int64(), Kind.DATE: pa.string(), Kind.BOOLEAN: pa.bool_()}
    return known.get(feature.kind, pa.float64())


@final
@dataclass(frozen=True)
class _Feature:
    """Reads the cells of a feature."""

    feature: Feature

    def __call__(self, cells: Any, style: CsvStyle) -> _Cells:
        pa, compute = arrow(), arrow_part("compute")
        gaps = compute.is_in(cells, value_set=pa.array(_GAPS))
        cells = compute.if_else(gaps, pa.scalar(None, pa.string()), cells)
        if self.feature.kind in (Kind.REAL, Kind.WHOLE):
            return self._numbers(cells, style)
        if self.feature.kind is Kind.DATE:
            return _Cells(cells, {})
        words: Mapping[str, Any] = {str(plain(level)): level for level in self.feature.levels}
        if self.feature.kind is Kind.BOOLEAN:
            words, cells = _TRUTH, compute.utf8_lower(compute.utf8_trim_whitespace(cells))
        if all(isinstance(level, str) for level in self.feature.levels):
            return _Cells(cells, {})  # what is no level is told of where rows are read
        levels = ", ".join(map(told, self.feature.levels[:8]))
        return _looked_up(cells, words, _type(self.feature), f"one of: {levels}")

    def _numbers(self, cells: Any, style: CsvStyle) -> _Cells:
        pa, compute = arrow(), arrow_part("compute")
        texts = cells
        if style.decimal != ".":
            texts = compute.replace_substring(cells, style.decimal, ".")
        is_number = compute.match_substring_regex(texts, _NUMBER)
        texts = compute.if_else(is_number, compute.utf8_trim_whitespace(texts), None)
        numbers = compute.cast(compute.utf8_ltrim(texts, "+"), pa.float64())
        bad = ~compute.fill_null(is_number, True).to_numpy(zero_copy_only=False)
        words = f"expected a finite number, because the feature is {self.feature.kind}."
        if self.feature.kind is Kind.WHOLE:
            found = numbers.to_numpy(zero_copy_only=False)
            with np.errstate(invalid="ignore"):
                off = (found != np.rint(found)) | (np.abs(found) > 1 << 53)
            bad |= off & ~np.isnan(found)
            words = "expected a whole number of at most 2**53."
            numbers = compute.if_else(pa.array(bad), None, numbers).cast(pa.int64())
        wrong = {i: f"is {told(cells[i].as_py())}; {words}" for i in np.flatnonzero(bad).tolist()}
        return _Cells(numbers, wrong)


@final
@dataclass(frozen=True)
class _Labels:
    """Reads the cells of a column that holds a label per row."""

    model: PrototypeModel

    def __call__(self, cells: Any, _: CsvStyle) -> _Cells:
        pa, compute = arrow(), arrow_part("compute")
        cells = compute.if_else(compute.equal(cells, ""), pa.scalar(None, pa.string()), cells)
        kind = label_array(self.model.classes.tolist()).type
        if pa.types.is_string(kind):
            return _Cells(cells, {})
        words = {str(plain(label)): plain(label) for label in self.model.classes}
        shown = ", ".join(map(told, self.model.classes[:8].tolist()))
        return _looked_up(cells, words, kind, f"one of the labels {shown}")


def _looked_up(cells: Any, words: Mapping[str, Any], kind: Any, expected: str) -> _Cells:
    """Read cells as what their words stand for."""
    pa = arrow()
    encoded = cells.dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    found = pa.array([words.get(text) for text in texts], kind).take(encoded.indices)
    strange = {k for k, text in enumerate(texts) if text not in words}
    wrong = {
        i: f"is {told(texts[code])}; expected {expected}."
        for i, code in enumerate(encoded.indices.to_pylist() if strange else ())
        if code in strange
    }
    return _Cells(found, wrong)


# --- the first line -------------------------------------------------------------------------------


def _names(root: Path, path: str, style: CsvStyle, max_bytes: int | None) -> tuple[str, ...]:
    """Read the names of columns from the first record."""
    record, first, rows_begin = header_of(root / path, style.delimiter)
    _refuse_other_kind(first, path)
    text = _decoded(record, style, told(path), rows_begin - len(record))
    lines = first_lines(text, style.delimiter, count=1)
    if not lines:
        raise InvalidInputError(
            f"{told(path)} has no first line; expected the names of the columns there."
        )
    size = (root / path).stat().st_size
    room = table_room(size, max_bytes)
    refuse_large_table(len(lines[0]), 1, told(path), size, room, RAISED_BY)
    try:
        return checked_names(lines[0])
    except InvalidInputError as error:
        raise InvalidInputError(f"{told(path)}: {error}") from None


def _refuse_other_kind(first: bytes, path: str) -> None:
    """Say what a file is that is neither CSV nor Parquet."""
    other = other_kind(first)
    if first.startswith(PARQUET):
        other = "Parquet by its first bytes, and is listed as CSV; name it .parquet"
    elif is_json(first):
        other = "JSON; write it as Parquet or CSV, or explain it as one table, into a file"
    if other is not None:
        raise InvalidInputError(f"{told(path)} is {other}; expected CSV or Parquet.")


def _decoded(content: bytes, style: CsvStyle, name: str, begin: int) -> str:
    """Read text, or say which byte is none; `begin` is where it stands in its file."""
    try:
        return content.decode(style.encoding)
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"{name} is no text in {style.encoding} (byte {begin + error.start:,} is "
            f"{content[error.start]:#04x}); expected the encoding of the file, such as "
            f"encoding='cp1252' (--encoding cp1252)."
        ) from None

"""Large CSV: cut at the ends of records, and each cell read as what its column is.

Cells are read one by one, so that a word among numbers spoils its own row only. Columns that the
model does not see are given back as text, to the letter.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from counterlvq.errors import InvalidInputError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import plain, told
from counterlvq.streaming.arrow import arrow, arrow_part
from counterlvq.streaming.columns import label_array
from counterlvq.streaming.sources import BATCH_ROWS, Part, Source, SourceFile, named
from counterlvq.tables.features import Feature, Features
from counterlvq.tables.values import checked_names
from counterlvq.types import Kind

__all__ = ["CsvSource", "CsvStyle"]

_CHUNK = 8 << 20
# A part of fewer rows than asked for ends here.
_MOST_BYTES = 64 << 20
# What stands for a missing value, as pandas has it.
_GAPS = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip
_NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"
_TRUTH = {"true": True, "false": False, "1": True, "0": False}


class CsvStyle(NamedTuple):
    """How CSV is written."""

    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"

    def checked(self) -> CsvStyle:
        """Refuse signs that cannot be told apart, and text whose lines cannot be."""
        for name, sign in (("delimiter", self.delimiter), ("decimal", self.decimal)):
            if len(str(sign).encode()) != 1 or sign in '"\r\n':
                raise InvalidInputError(f"{name} is {told(sign)}; expected one sign of ASCII.")
        if self.delimiter == self.decimal:
            raise InvalidInputError(
                f"delimiter and decimal are both {told(self.decimal)}; expected different signs."
            )
        try:
            is_plain = '\n",;a0'.encode(self.encoding) == b'\n",;a0'
        except (LookupError, UnicodeError):
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
    cuts: tuple[tuple[tuple[int, int, int], ...], ...]  # per file: begin, end and rows

    @classmethod
    def of(
        cls,
        root: Path,
        paths: Sequence[str],
        style: CsvStyle,
        features: Features,
        model: PrototypeModel,
        wish: str | None,
    ) -> CsvSource:
        """Read the first lines; nothing is cut yet."""
        names = [_names(root / path, style) for path in paths]
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
        found = [_cuts(self.root / file.path, part_rows) for file in self.files]
        files = tuple(
            file._replace(hash=known) for file, (_, known) in zip(self.files, found, strict=True)
        )
        return replace(self, files=files, cuts=tuple(cuts for cuts, _ in found))

    def known(self, document: Mapping[str, Any], parts: Sequence[Part]) -> CsvSource | None:
        """Take over what another run has found; None if the files are others."""
        old = [SourceFile(**file) for file in document["files"]]
        if [file._replace(hash="") for file in old] != list(self.files):
            return None
        cuts = tuple(
            tuple((p.begin, p.end, p.rows) for p in parts if p.file == k) for k in range(len(old))
        )
        return replace(self, files=tuple(old), cuts=cuts)

    def document(self) -> dict[str, Any]:
        """Describe the files, for the manifest."""
        return {**super().document(), "style": self.style._asdict()}

    def parts(self, part_rows: int) -> tuple[Part, ...]:
        """Cut files as they were found to be divided."""
        return tuple(
            Part(named(k, i), k, begin, end, rows)
            for k, cuts in enumerate(self.cuts)
            for i, (begin, end, rows) in enumerate(cuts)
        )

    def batches(self, part: Part) -> Iterator[tuple[Any, Mapping[int, str]]]:
        """Read the records of a part."""
        path = self.files[part.file].path
        with open(self.root / path, "rb") as file:
            file.seek(part.begin)
            content = file.read(part.end - part.begin)
        if not content.strip():
            return
        table = self._parsed(content, path)
        for batch in table.to_batches(BATCH_ROWS):
            yield self._typed(batch)

    def _parsed(self, content: bytes, path: str) -> Any:
        pa, reader = arrow(), arrow_part("csv")
        if self.style.encoding.lower().replace("_", "-") not in ("utf-8", "utf8"):
            content = content.decode(self.style.encoding).encode()
        names = self.schema.names
        try:
            return reader.read_csv(
                pa.BufferReader(content),
                reader.ReadOptions(
                    use_threads=False, block_size=len(content) + 1, column_names=names
                ),
                reader.ParseOptions(delimiter=self.style.delimiter, newlines_in_values=True),
                reader.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
                ),
            ).combine_chunks()
        except (pa.ArrowException, UnicodeError) as error:
            raise InvalidInputError(
                f"{told(path)} cannot be read as CSV ({error}); expected a value for each of the "
                f"{len(names)} columns in every line."
            ) from None

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
            bad |= off & np.isfinite(found)
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


# --- cutting --------------------------------------------------------------------------------------


def _names(path: Path, style: CsvStyle) -> tuple[str, ...]:
    """Read the names of columns from the first record."""
    with open(path, "rb") as file:
        first = file.read(_CHUNK)
    begin, end = _header(first)
    try:
        text = first[begin:end].decode(style.encoding)
    except UnicodeError as error:
        raise InvalidInputError(
            f"{told(path.name)} is no text in {style.encoding} ({error}); expected the encoding "
            f"of the file, such as encoding='cp1252'."
        ) from None
    names = next(csv.reader(text.splitlines(), delimiter=style.delimiter), [])
    if not names:
        raise InvalidInputError(
            f"{told(path.name)} has no first line; expected the names of the columns there."
        )
    return checked_names(names)


def _header(first: bytes) -> tuple[int, int]:
    """Where the first record begins and ends, line end included."""
    begin = 3 if first.startswith(b"\xef\xbb\xbf") else 0
    ends, _ = _record_ends(first, 0)
    for end in ends.tolist():
        if first[begin : end + 1].strip():
            return begin, end + 1
        begin = end + 1
    return begin, len(first)


def _record_ends(chunk: bytes, quotes: int) -> tuple[Any, int]:
    """Line ends that are not between quotes, and how many quotes there were in all."""
    signs = np.frombuffer(chunk, dtype=np.uint8)
    ends, marks = np.flatnonzero(signs == ord("\n")), np.flatnonzero(signs == ord('"'))
    if marks.size or quotes % 2:
        ends = ends[(np.searchsorted(marks, ends) + quotes) % 2 == 0]
    return ends, quotes + int(marks.size)


def _cuts(path: Path, part_rows: int) -> tuple[tuple[tuple[int, int, int], ...], str]:
    """Cut a file at ends of records; with the hash of all of it."""
    known, cuts = sha256(), list[tuple[int, int, int]]()
    with open(path, "rb") as file:
        first = file.read(_CHUNK)
        begin = _header(first)[1]
        file.seek(0)
        at, rows, quotes, last = 0, 0, 0, begin
        while chunk := file.read(_CHUNK):
            known.update(chunk)
            ends, quotes = _record_ends(chunk, quotes)
            for end in (ends + at + 1)[ends + at + 1 > begin].tolist():
                rows, last = rows + 1, end
                if rows >= part_rows or end - begin >= _MOST_BYTES:
                    cuts.append((begin, end, rows))
                    begin, rows = end, 0
            at += len(chunk)
    if at > begin or not cuts:
        cuts.append((begin, max(at, begin), rows + (at > last)))
    return tuple(cuts), known.hexdigest()

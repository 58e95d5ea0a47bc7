"""Large CSV: cut at the ends of records, and each cell read as what its column is.

Cells are read one by one, so that a word among numbers spoils its own row only, and so does a line
of more or fewer cells than there are columns. Columns that the model does not see are given back
as text, to the letter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.errors import InvalidInputError
from counterlvq.files.csv_lines import first_lines
from counterlvq.files.kinds import PARQUET, is_json, other_kind
from counterlvq.files.parquet_room import refuse_large_table, table_room
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import told
from counterlvq.streaming.arrow import arrow, arrow_part, foreign_errors
from counterlvq.streaming.columns import label_array
from counterlvq.streaming.csv_cells import CsvStyle, FeatureCells, LabelCells, type_of
from counterlvq.streaming.csv_cuts import Cut, blocks_of, cuts_of, decoded, header_of
from counterlvq.streaming.sources import BATCH_ROWS, RAISED_BY, Part, Source, SourceFile, named
from counterlvq.tables.features import Features
from counterlvq.tables.values import checked_names

__all__ = ["CsvSource", "CsvStyle"]

_BLANKS = " \t"
# Bytes in which the end of the first row is looked for.
_FIRST_ROW = 1 << 20
# What else stands between values; a comma where another sign was stated.
_OTHER_SIGNS = (";", "\t", "|", ",")


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
        types = {feature.name: type_of(feature) for feature in features}
        types |= {} if wish is None or wish in types else {wish: labels.type}
        schema = pa.schema([(name, types.get(name, pa.string())) for name in names[0]])
        files = tuple(SourceFile.of(root, path, "") for path in paths)
        return cls(root, files, schema, style, features, model, wish, ())

    def cut(self, part_rows: int) -> CsvSource:
        """Read all files once: to find the ends of records, and bytes that are no text; to hash."""
        sign, encoding = self.style.delimiter, self.style.encoding
        found = [cuts_of(self.root / file.path, sign, part_rows, encoding) for file in self.files]
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
        place = f"{told(path)}, bytes {part.begin:,} to {part.end:,},"
        expected = f"a value for each of the {len(self.schema)} columns in every line"
        cut = (part.begin, part.end, self.style.delimiter, BATCH_ROWS)
        with foreign_errors(place, "CSV", expected), open(self.root / path, "rb") as file:
            for begin, block in blocks_of(file, *cut):
                if not block.strip(b"\r\n"):  # what else is blank may be cells: tabs in TSV
                    continue
                table, problems = self._parsed(self._as_utf8(block, path, begin))
                for batch in table.to_batches():  # one, or none if all lines are blank
                    yield self._typed(batch, problems)

    def rows_before(self, part: Part) -> int:
        """Count the rows of the same file that come before a part.

        They are read again: lines may be blank, which are no rows.
        """
        before = (cut for cut in self.cuts[part.file] if cut.begin < part.begin)
        parts = (Part("", part.file, *cut) for cut in before)
        return sum(len(batch) for earlier in parts for batch, _ in self.batches(earlier))

    def _as_utf8(self, content: bytes, path: str, begin: int) -> bytes:
        if self.style.is_utf8:
            return content
        return decoded(content, self.style.encoding, path, begin).encode()

    def _parsed(self, content: bytes) -> tuple[Any, dict[int, str]]:
        """Cut lines into cells; a line that has not one for each column becomes a row of gaps."""
        pa, reader = arrow(), arrow_part("csv")
        names, lines = self.schema.names, _OddLines(self.style.delimiter)
        table = reader.read_csv(
            pa.BufferReader(content),
            reader.ReadOptions(use_threads=False, block_size=len(content) + 1, column_names=names),
            reader.ParseOptions(
                delimiter=self.style.delimiter,
                newlines_in_values=True,
                invalid_row_handler=lines.note,
            ),
            reader.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )
        order, problems = lines.among(table.num_rows)
        table = table.take(pa.array(order, mask=order < 0)) if problems else table
        return table.combine_chunks(), problems

    def _typed(self, batch: Any, problems: dict[int, str]) -> tuple[Any, Mapping[int, str]]:
        """Read cells as what their columns are, and say what is wrong with others."""
        arrays = []
        for field, cells in zip(self.schema, batch.columns, strict=True):
            read = self._reader(field.name)
            column, wrong = (cells, {}) if read is None else read(cells, self.style)
            arrays.append(column)
            for i, words in wrong.items():
                told_so = f"column {told(field.name)} {words}"
                problems[i] = f"{problems[i]} {told_so}" if i in problems else told_so
        return arrow().RecordBatch.from_arrays(arrays, schema=self.schema), problems

    def _reader(self, name: str) -> FeatureCells | LabelCells | None:
        if name in self.features:
            return FeatureCells(self.features[name])
        return LabelCells(self.model) if name == self.wish else None


@final
class _OddLines:
    """Lines that have not one cell for each column; those that are blank are no rows."""

    def __init__(self, delimiter: str) -> None:
        self._blanks = _BLANKS.replace(delimiter, "")
        self._blank = list[int]()  # their numbers among all lines that are not empty
        self._odd = dict[int, str]()

    def note(self, line: Any) -> str:
        """Keep in mind what Arrow says of a line, and leave it out for now."""
        if line.text.strip(self._blanks):
            self._odd[line.number - 1] = (
                f"the line {told(line.text)} has {line.actual_columns:,} cells; expected "
                f"{line.expected_columns:,}, one for each column."
            )
        else:
            self._blank.append(line.number - 1)
        return "skip"

    def among(self, rows: int) -> tuple[NDArray[np.int64], dict[int, str]]:
        """Return where rows come from, -1 for odd lines, and what is wrong with these."""
        order = np.full(rows + len(self._odd) + len(self._blank), -1)
        others = np.delete(np.arange(len(order)), [*self._odd, *self._blank])
        order[others] = np.arange(rows)
        order = np.delete(order, self._blank)
        at = np.flatnonzero(order < 0).tolist()
        return order, {i: self._odd[k] for i, k in zip(at, sorted(self._odd), strict=True)}


# --- the first line -------------------------------------------------------------------------------


def _names(root: Path, path: str, style: CsvStyle, max_bytes: int | None) -> tuple[str, ...]:
    """Read the names of columns from the first record."""
    record, first, rows_begin = header_of(root / path, style.delimiter)
    _refuse_other_kind(first, path)
    text = decoded(record, style.encoding, path, rows_begin - len(record))
    lines = first_lines(text, style.delimiter, count=1)
    if not lines:
        raise InvalidInputError(
            f"{told(path)} has no first line; expected the names of the columns there."
        )
    size = (root / path).stat().st_size
    room = table_room(size, max_bytes)
    refuse_large_table(len(lines[0]), 1, told(path), size, room, RAISED_BY)
    rows = first[rows_begin : rows_begin + _FIRST_ROW].decode(style.encoding, "replace")
    _refuse_wide(rows, len(lines[0]), path, style)
    _refuse_other_sign(text, rows, len(lines[0]), path, style)
    try:
        return checked_names(lines[0])
    except InvalidInputError as error:
        raise InvalidInputError(f"{told(path)}: {error}") from None


def _refuse_wide(rows: str, columns: int, path: str, style: CsvStyle) -> None:
    """Refuse a table whose first row is wider than its names: all others will be."""
    for cells in first_lines(rows, style.delimiter, count=1):
        if len(cells) > columns:
            raise InvalidInputError(
                f"{told(path)} has {columns:,} names of columns and {len(cells):,} values in its "
                f"first row; expected a name for each. Name all columns in the first line, or "
                f"remove the signs behind the last value of each row."
            )


def _refuse_other_sign(names: str, rows: str, columns: int, path: str, style: CsvStyle) -> None:
    """Refuse one column that another sign parts into as many names as values."""
    for sign in _OTHER_SIGNS:
        widths = [len(cells) for text in (names, rows) for cells in first_lines(text, sign, 1)]
        if columns == 1 and len(set(widths)) == 1 and widths[0] > 1:
            raise InvalidInputError(
                f"{told(path)} has one column if {told(style.delimiter)} stands between values, "
                f"and {widths[0]:,} if {told(sign)} does; expected the columns of the model. State "
                f"delimiter={sign!r}, at the shell --delimiter."
            )


def _refuse_other_kind(first: bytes, path: str) -> None:
    """Say what a file is that is neither CSV nor Parquet."""
    other = other_kind(first)
    if first.startswith(PARQUET):
        other = "Parquet by its first bytes, and is listed as CSV; name it .parquet"
    elif is_json(first):
        other = "JSON; write it as Parquet or CSV, or explain it as one table, into a file"
    if other is not None:
        raise InvalidInputError(f"{told(path)} is {other}; expected CSV or Parquet.")

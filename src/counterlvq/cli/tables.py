"""Tables of strangers: bytes in, a DataFrame out, or one error of ours.

CSV, JSON and Parquet are told apart by how they begin. What a file announces is compared with its
size before it is read, and whatever the libraries raise that read it becomes an error in words,
here and nowhere else.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import counterlvq as clvq
from counterlvq.cli.csv_cells import DECIMAL, WRITTEN
from counterlvq.cli.parquet_frames import frame_from
from counterlvq.cli.spreadsheet_formulas import restored
from counterlvq.files.csv_lines import first_lines
from counterlvq.files.kinds import PARQUET, is_json, other_kind
from counterlvq.files.parquet_room import refuse_large_parquet, refuse_large_table, table_room
from counterlvq.files.parquet_sizes import sizes_of

__all__ = ["Reading", "needed", "table_from"]

# Blank lines, and the one behind them.
_FIRST = re.compile(r"(?:[ \t]*+[\r\n])*+([^\r\n]*+)")
_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
# As many cells as a value takes while it is none of a column yet.
_OBJECTS = 4
_MOST_NAMELESS = 1000
_FEW_LINES = 16
_MOST_WHOLE = 1 << 63
_SHOWN = 60
# The option by which people allow more.
RAISED_BY = "--max-memory"


@dataclass(frozen=True)
class Reading:
    """How a table is to be read, where it does not say so itself."""

    delimiter: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    memory: int | None = None  # bytes

    def room(self, size: int) -> int:
        """How much memory the cells of a file of so many bytes may take."""
        return table_room(size, self.memory)


def needed(library: str) -> Any:
    """Import what only the command line needs, or say how to get it."""
    try:
        return import_module(library)
    except ModuleNotFoundError:
        raise clvq.NotSupportedError(
            f"tables at the command line need {library}, which is not installed; install it with "
            f"pip install {library}."
        ) from None
    except ImportError as error:
        raise clvq.NotSupportedError(
            f"tables at the command line need {library}, which cannot be imported here ({error}); "
            f"look whether there is enough memory, or install it again."
        ) from error


def table_from(whole: bytes, name: str, how: Reading) -> Any:
    """Read a table in CSV, JSON or Parquet; `name` is what errors call it."""
    if other := other_kind(whole):
        raise clvq.InvalidInputError(
            f"{name} is {other}; expected a table in CSV, JSON or Parquet."
        )
    if whole.startswith(PARQUET):
        return _read(_parquet, "Parquet", "a whole file. Write it again", whole, name, how)
    if how.encoding == "utf-8" and is_json(whole):
        expected = 'a list of rows such as [{"age": 44, "job": "clerk"}]'
        return _read(_json, "JSON", expected, whole, name, how)
    expected = "text with commas between columns and their names in the first line"
    return _read(_csv, "CSV", expected, whole, name, how)


def _read(
    reader: Callable[[bytes, str, Reading], Any],
    kind: str,
    expected: str,
    whole: bytes,
    name: str,
    how: Reading,
) -> Any:
    """Read a table; all errors that are not ours become one that is."""
    needed("pandas")
    try:
        return reader(whole, name, how)
    except clvq.CounterlvqError:
        raise
    except MemoryError:
        raise clvq.InvalidInputError(
            f"{name} needs more memory than there is; expected a smaller table. Read it in parts."
        ) from None
    except Exception as error:  # noqa: BLE001 - readers of tables do not say what they raise
        words = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise clvq.InvalidInputError(
            f"{name} cannot be read as {kind} ({words}); expected {expected}."
        ) from None


def _check_room(columns: int, rows: int, name: str, whole: bytes, how: Reading) -> None:
    size = len(whole)
    refuse_large_table(columns, rows, name, size, how.room(size), RAISED_BY)


# --- CSV ------------------------------------------------------------------------------------------


def _csv(whole: bytes, name: str, how: Reading) -> Any:
    text = _decoded(whole, name, how)
    if not text.strip():
        raise clvq.InvalidInputError(
            f"{name} cannot be read as CSV: it is empty; expected a line with the names of the "
            f"columns, and rows below it."
        )
    delimiter = _delimiter(text, name) if how.delimiter is None else how.delimiter
    if delimiter == how.decimal:
        raise clvq.InvalidInputError(
            f"--delimiter and --decimal are both {delimiter!r}; expected two different signs."
        )
    lines = text.count("\n") + text.count("\r") + 1
    names, row = (*first_lines(text, delimiter), [], [])[:2]
    _check_room(max(len(names), len(row)), lines, name, whole, how)
    _check_names(names, name)
    _check_row(row, names, name)
    pandas = needed("pandas")
    read = partial(pandas.read_csv, sep=delimiter, decimal=how.decimal, **_exact_floats(pandas))
    encoded = text.encode("utf-8")
    if lines > _FEW_LINES:  # have pandas, too, say how wide the table is, before it makes room
        _check_width(pandas, read(io.BytesIO(encoded), nrows=1, dtype=object), names)
    table = read(io.BytesIO(encoded))
    _check_width(pandas, table, names)
    table = restored(table) if "'" in text else table
    table.attrs[DECIMAL] = how.decimal
    table.attrs[WRITTEN] = (delimiter, how.encoding)
    return table


def _exact_floats(pandas: Any) -> dict[str, str]:
    """Ask for floats to the last digit, which pandas reads by itself from 3.1 on."""
    major, minor = map(int, pandas.__version__.split(".")[:2])
    return {"float_precision": "round_trip"} if (major, minor) < (3, 1) else {}


def _check_width(pandas: Any, table: Any, names: list[str]) -> None:
    if table.shape[1] != len(names) or not isinstance(table.index, pandas.RangeIndex):
        raise ValueError(f"{len(names)} names of columns, and {table.shape[1]} columns")


def _check_row(row: list[str], names: list[str], name: str) -> None:
    """Refuse values beyond the names: pandas would take the first ones of each row for an index."""
    if len(row) > len(names):
        raise clvq.InvalidInputError(
            f"{name} has {len(names):,} names of columns and {len(row):,} values in its first row; "
            f"expected a name for each. Name all columns in the first line, or remove the signs "
            f"behind the last value of each row."
        )


def _check_names(names: list[str], name: str) -> None:
    """Refuse columns of the same name: pandas would rename them, and be slow about many."""
    counts = Counter(known.partition("\0")[0] for known in names)  # where pandas ends a name
    counts[""] = max(0, counts[""] - _MOST_NAMELESS)  # spreadsheets write some
    twice = [known for known, count in counts.items() if count > 1]
    if twice:
        raise clvq.InvalidInputError(
            f"{name} has {counts[twice[0]]} columns named {twice[0][:_SHOWN]!r}; expected "
            f"one of each name. Rename or remove the others."
        )


def _decoded(whole: bytes, name: str, how: Reading) -> str:
    for mark, encoding in _MARKS.items():
        if whole.startswith(mark) and how.encoding == "utf-8":
            raise clvq.InvalidInputError(
                f"{name} is text in UTF-16; expected UTF-8. Read it with --encoding {encoding}."
            )
    try:
        return whole.decode(how.encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise clvq.InvalidInputError(
            f"{name} cannot be read as CSV in {how.encoding} (byte {error.start} is "
            f"{whole[error.start]:#04x}); expected UTF-8. Other text, as Excel writes it, is read "
            f"with --encoding cp1252 or --encoding latin-1."
        ) from None


def cells_of(whole: bytes, name: str, how: Reading) -> list[list[str]]:
    """Read the cells of CSV as text, line by line; blank lines are left out."""
    text = _decoded(whole, name, how)
    sign = how.delimiter or (_delimiter(text, name) if text.strip() else ",")
    try:
        rows = list(csv.reader(text.splitlines(), delimiter=sign))
    except csv.Error as error:
        raise clvq.InvalidInputError(
            f"{name} cannot be read as CSV ({error}); expected rows of numbers."
        ) from None
    return [[cell.strip() for cell in row] for row in rows if any(map(str.strip, row))]


def _delimiter(text: str, name: str) -> str:
    """Commas, unless the names of the columns have other signs between them."""
    first = _FIRST.match(text)[1]  # type: ignore[index]
    others = {";": "';'", "\t": "tab", "|": "'|'"}
    found = [sign for sign in others if sign in first]
    if "," not in first and found:
        shown = first[:_SHOWN] + ("..." if len(first) > _SHOWN else "")
        sign = max(found, key=first.count)
        more = " (and --decimal , if numbers are written 1,5)" if sign == ";" else ""
        raise clvq.InvalidInputError(
            f"{name} has no comma in its first line, {shown!r}; expected commas between columns. "
            f"Read it with --delimiter {others[sign]}{more}."
        )
    return ","


# --- JSON -----------------------------------------------------------------------------------------


def _json(whole: bytes, name: str, how: Reading) -> Any:
    rows = json.loads(whole.decode("utf-8-sig"), object_pairs_hook=_row)
    names: dict[str, None] = {}
    for i, row in enumerate(rows):
        if not isinstance(row, dict):
            raise ValueError(f"row {i} is no object")
        names.update(dict.fromkeys(row))
        for key, value in row.items():
            _check_value(i, key, value)
    _check_room(len(names), _OBJECTS * len(rows), name, whole, how)
    pandas = needed("pandas")
    columns = [_series(pandas, [row.get(key) for row in rows]) for key in names]
    table = pandas.DataFrame(dict(enumerate(columns)))
    table.columns = _series(pandas, list(names), pandas.Index)
    return table


def _series(pandas: Any, values: list[Any], of: Any = None) -> Any:
    """Make a column, or names; text with halves of surrogate pairs, which Arrow has not, too."""
    try:
        return (of or pandas.Series)(values)
    except UnicodeEncodeError:
        return (of or pandas.Series)(values, dtype=object)


def _row(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        raise ValueError("a row has the same name twice")
    return row


def _check_value(i: int, key: str, value: Any) -> None:
    if isinstance(value, list | dict):
        kind = "a list" if isinstance(value, list) else "an object"
        raise ValueError(f"row {i}, {key[:_SHOWN]!r} is {kind}; expected text, numbers, true, "
                         f"false or null")  # fmt: skip
    # Larger ones are no numbers to any table, and can be chosen to be slow to tell apart.
    if isinstance(value, int) and not -_MOST_WHOLE <= value < _MOST_WHOLE:
        raise ValueError(f"row {i}, {key[:_SHOWN]!r} is a whole number beyond 64 bits")


# --- Parquet --------------------------------------------------------------------------------------


def _parquet(whole: bytes, name: str, how: Reading) -> Any:
    needed("pyarrow")
    told = sizes_of(whole)
    if told.nested is not None:
        raise clvq.InvalidInputError(
            f"{name} has lists or other columns in the cells of column {told.nested[:_SHOWN]!r}; "
            f"expected text, numbers, dates or truth values. Write them into columns of their own, "
            f"or leave the column out."
        )
    refuse_large_parquet(told, whole, name, how.room(len(whole)), RAISED_BY)
    return frame_from(whole)

"""Results to files or standard output: whole, or not at all."""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from errno import EACCES, EISDIR, ENOENT
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import click
import numpy as np

from counterlvq.cli.csv_cells import DECIMAL, WRITTEN
from counterlvq.cli.signals import ENDING
from counterlvq.cli.spreadsheet_formulas import harmless, holdable
from counterlvq.cli.tables import needed
from counterlvq.cli.terminal import say
from counterlvq.files import whole_file
from counterlvq.safe_text import shown_text

__all__ = [
    "STDOUT", "CsvSigns", "bytes_of_table", "check_writable", "is_terminal", "kind_by_ending",
    "standard_output", "write_whole",
]  # fmt: skip

STDOUT = "-"
# Endings of file names that promise something else than text for people.
_NOT_TEXT = (
    ".csv", ".parquet", ".pq", ".json",
    ".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", ".numbers", ".tsv", ".jsonl", ".ndjson", ".feather",
    ".arrow", ".orc", ".h5", ".hdf5", ".db", ".sqlite", ".dta", ".sav", ".pkl", ".pickle", ".npy",
    ".npz", ".html", ".htm", ".pdf", ".xml", ".yaml", ".yml", ".zip", ".gz", ".clvq",
)  # fmt: skip


def check_writable(path: str) -> None:
    """Refuse a place that cannot be written to before hours are spent on what goes there."""
    place = Path(path)
    if place.is_dir():
        raise IsADirectoryError(EISDIR, "is a folder; expected the name of a file", path)
    if path == STDOUT or (place.exists() and not place.is_file()):
        return  # a pipe or a device, which tells by itself
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise FileNotFoundError(ENOENT, "there is no such folder; make it first", str(folder))
    if not os.access(folder, os.W_OK):
        raise PermissionError(EACCES, "the folder cannot be written to", str(folder))


def kind_by_ending(output: str, endings: Mapping[str, str], otherwise: str) -> str:
    """Say what a file of that name holds: text for people, if the name promises nothing else."""
    ending = Path(output).suffix.lower()
    if ending in _NOT_TEXT and ending not in endings:
        *first, last = (name for name in endings if name != ".pq")
        told = f"{', '.join(first)} or {last}" if first else last
        raise click.UsageError(
            f"--output ends in {ending}, which is not written; expected {told}, or say what the "
            f"file is to hold with --format"
        )
    return endings.get(ending, otherwise)


def write_whole(path: str, content: bytes) -> None:
    """Write bytes to a file that appears whole, or to standard output."""
    if path == STDOUT:
        with standard_output() as stream:
            stream.write(content)
        return
    with whole_file(path) as file:
        file.write(content)


@contextmanager
def standard_output() -> Iterator[BinaryIO]:
    """Write to standard output, and have it known how much of it there is if that is ended."""
    ENDING.stdout_begun = True
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()
    ENDING.stdout_done = True


class CsvSigns(NamedTuple):
    """How a table in CSV is written."""

    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"

    @classmethod
    def of(cls, table: Any, *, for_eyes: bool = False) -> CsvSigns:
        """Return how a table was written that has been read; as is usual if it was no CSV.

        A terminal shows UTF-8, whatever the encoding of the table.
        """
        if DECIMAL not in table.attrs:
            return cls()
        delimiter, encoding = table.attrs[WRITTEN]
        return cls(delimiter, table.attrs[DECIMAL], "utf-8" if for_eyes else encoding)


def bytes_of_table(
    table: Any, kind: str, escape: bool = True, signs: CsvSigns | None = None
) -> bytes:
    """Turn a DataFrame into the bytes of a CSV or Parquet file.

    In CSV, text that a spreadsheet would run is escaped, unless it is to stay as it is. What no
    file can hold is written out.
    """
    table = holdable(table)
    if kind == "csv":
        return _csv(harmless(table) if escape else table, signs or CsvSigns())
    needed("pyarrow")
    out = io.BytesIO()
    table.to_parquet(out, index=False)
    return out.getvalue()


def _csv(table: Any, signs: CsvSigns) -> bytes:
    if signs.decimal != ".":
        table = _with_decimals(table, signs.decimal)
    write = partial(table.to_csv, index=False, lineterminator="\n", sep=signs.delimiter)
    text = str(write())
    # A line may end in a carriage return as well, for which Python before 3.13 sets no quotes.
    if "\r" in text:
        text = str(write(quoting=csv.QUOTE_NONNUMERIC))
    try:
        return text.encode(signs.encoding)
    except UnicodeEncodeError as error:
        sign = shown_text(text[error.start])
        say(
            f"counterlvq: {signs.encoding} has no {sign!r}; the result is written in UTF-8.",
            aside=True,
        )
        return text.encode()


def _with_decimals(table: Any, sign: str) -> Any:
    """Write numbers with another sign before their decimals, wherever they stand."""

    def written(cell: Any) -> Any:
        is_float = isinstance(cell, float) and isfinite(cell)
        return repr(float(cell)).replace(".", sign) if is_float else cell

    columns = [name for name, dtype in table.dtypes.items() if dtype.kind in "fO"]
    cells = {name: [written(cell) for cell in table[name].tolist()] for name in columns}
    new = {name: np.array([*found, None], dtype=object)[:-1] for name, found in cells.items()}
    return table.assign(**new) if new else table


def is_terminal(path: str) -> bool:
    """Whether what is written to `path` ends up before somebody's eyes."""
    return path == STDOUT and sys.stdout.isatty()

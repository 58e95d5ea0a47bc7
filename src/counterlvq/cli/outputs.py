"""Results to files or standard output: whole, or not at all."""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EACCES, EISDIR, ENOENT
from pathlib import Path
from typing import Any, BinaryIO

from counterlvq.cli.signals import ENDING
from counterlvq.cli.spreadsheet_formulas import harmless, holdable
from counterlvq.cli.tables import needed
from counterlvq.files import whole_file

__all__ = [
    "STDOUT", "bytes_of_table", "check_writable", "is_terminal", "standard_output", "write_whole",
]  # fmt: skip

STDOUT = "-"


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


def bytes_of_table(table: Any, kind: str, escape: bool = True) -> bytes:
    """Turn a DataFrame into the bytes of a CSV or Parquet file.

    In CSV, text that a spreadsheet would run is escaped, unless it is to stay as it is. What no
    file can hold is written out.
    """
    table = holdable(table)
    if kind == "csv":
        return _csv(harmless(table) if escape else table)
    needed("pyarrow")
    out = io.BytesIO()
    table.to_parquet(out, index=False)
    return out.getvalue()


def _csv(table: Any) -> bytes:
    # A line may end in a carriage return as well, for which Python before 3.13 sets no quotes.
    text = table.to_csv(index=False, lineterminator="\n")
    if "\r" in text:
        text = table.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    return str(text).encode()


def is_terminal(path: str) -> bool:
    """Whether what is written to `path` ends up before somebody's eyes."""
    return path == STDOUT and sys.stdout.isatty()

"""Whether there is room for the rows of a Parquet file, before a library reads any."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from counterlvq.errors import InvalidInputError
from counterlvq.files.parquet_sizes import COPIES, Bytes, Sizes, Text
from counterlvq.files.random_access import FileBytes

__all__ = ["opened_parquet", "refuse_large_parquet", "refuse_large_table", "table_room"]

_SHOWN = 60
# Memory that the smallest table may take, and what each byte of a larger one adds.
_BASE = 128 << 20
_TIMES = 64
_CELL = 8
# As many cells as a column of a table takes by itself.
_COLUMN = 256
# Bytes of text that may be in hand while text is measured, and in how many parts at most.
_IN_HAND = 32 << 20
_MOST_PARTS = 20_000


def table_room(size: int, memory: int | None = None) -> int:
    """How much memory the cells of a file of so many bytes may take; `memory` is the user's word.

    Examples
    --------
    >>> table_room(1000)
    134281728
    >>> table_room(1000, memory=5000)
    5000
    """
    return _BASE + _TIMES * size if memory is None else memory


def refuse_large_table(
    columns: int, rows: int, name: str, size: int, room: int, raised_by: str, least: int = 0
) -> None:
    """Refuse a table whose cells need more than there is room for, `least` bytes of it at least."""
    needed = max(least, columns * max(rows, _COLUMN) * _CELL)
    if needed > room:
        raise InvalidInputError(
            f"{name} has {size:,} bytes and announces {columns:,} columns and {rows:,} rows, "
            f"which need {needed:,} bytes of memory; expected at most {room:,}. Allow more with "
            f"{raised_by} if you trust the file."
        )


def refuse_large_parquet(told: Sizes, whole: Bytes, name: str, room: int, raised_by: str) -> None:
    """Refuse a file that unpacks to more than there is room for."""
    refuse_large_table(
        told.columns, told.rows, name, len(whole), room, raised_by, least=told.memory
    )
    if told.memory + COPIES * sum(text.most for text in told.texts) > room:
        size = COPIES * sum(_text_size(whole, text, raised_by) for text in told.texts)
        if told.memory + size > room:
            path = max(told.texts, key=lambda text: text.most).path
            raise InvalidInputError(
                f"{name} has {len(whole):,} bytes and would need {told.memory + size:,} bytes of "
                f"memory with the text in {path[:_SHOWN]!r} and other columns; expected at most "
                f"{room:,}. Allow more with {raised_by} if you trust the file."
            )


def opened_parquet(whole: Bytes, **options: Any) -> Any:
    """Hand bytes to Arrow as memory of its own kind.

    Arrow's threads would need Python's lock to let go of a file object of Python's. Those that ask
    for it while the interpreter closes down abort the process, after the error has been told.
    """
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    place = whole.path if isinstance(whole, FileBytes) else arrow.BufferReader(whole)
    return parquet.ParquetFile(place, pre_buffer=False, **options)


def _text_size(whole: Bytes, text: Text, raised_by: str) -> int:
    """How long all values of a column are together."""
    return _chained(whole, text, raised_by) if text.is_chained else _numbered(whole, text)


def _numbered(whole: Bytes, text: Text) -> int:
    """Read each distinct value only once."""
    compute, size = import_module("pyarrow.compute"), 0
    with opened_parquet(whole, read_dictionary=[text.path]) as file:
        for k in range(file.num_row_groups):
            found = file.read_row_group(k, [text.path], use_threads=False).column(0)
            for chunk in map(_innermost, found.chunks):
                if hasattr(chunk, "dictionary"):
                    lengths = compute.binary_length(chunk.dictionary.cast("large_binary"))
                    size += compute.sum(compute.take(lengths, chunk.indices)).as_py() or 0
                else:
                    size += chunk.nbytes
    return size


def _innermost(cells: Any) -> Any:
    """Take the values out of lists and columns within columns, of which one was read."""
    while inner := getattr(cells, "flatten", None):
        cells = inner()
        if isinstance(cells, list):  # the columns of a struct
            cells = cells[0]
    return cells


def _chained(whole: Bytes, text: Text, raised_by: str) -> int:
    """Read a few values at a time: as many as have room, however long they turn out to be."""
    rows = max(1, _IN_HAND // text.longest)
    if text.rows > rows * _MOST_PARTS:
        raise InvalidInputError(
            f"column {text.path[:_SHOWN]!r} has {text.rows:,} values that are written as "
            f"differences, of up to {text.longest:,} bytes each, which take long to measure. Write "
            f"the file again with use_dictionary=True, or allow more with {raised_by} if you "
            f"trust the file."
        )
    with opened_parquet(whole) as file:
        parts = file.iter_batches(rows, columns=[text.path], use_threads=False)
        return sum(part.nbytes for part in parts)

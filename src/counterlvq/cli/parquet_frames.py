"""Parquet files of strangers to DataFrames, column by column.

What pandas has written into a file about itself is not obeyed: it names types of any width, and
others that make an object of each cell. Columns are taken as the types that Arrow reads; only which
columns are the index, and which range it is, is taken from there, after a check.
"""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import counterlvq as clvq
from counterlvq.files.parquet_room import opened_parquet

__all__ = ["frame_from"]

_SHOWN = 60
_MOST_WHOLE = 1 << 63
# An index with more levels than this stays what it is, columns.
_MOST_LEVELS = 16
# Types of Arrow beyond the usual ones that are text, bytes or truth values in another dress.
_DRESSED = {"arrow.json", "arrow.uuid", "arrow.bool8"}


def frame_from(whole: bytes) -> Any:
    """Read a file whose sizes have been checked."""
    pandas = import_module("pandas")
    with opened_parquet(whole) as file:
        # One thread: each would have buffers of its own for each column.
        table = file.read(use_threads=False)
    about = json.loads((table.schema.metadata or {}).get(b"pandas", b"null"))
    columns = [_plain(column, name) for column, name in zip(table, table.column_names, strict=True)]
    names = table.column_names
    del table
    bare = import_module("pyarrow").table(columns, names=[str(k) for k in range(len(names))])
    del columns
    frame = bare.to_pandas(use_threads=False, split_blocks=True, self_destruct=True)
    del bare
    frame.columns = names
    return _indexed(pandas, frame, about)


def _plain(column: Any, name: str) -> Any:
    """Take a column as what it is made of; refuse what is made of something else than it means."""
    kind = column.type
    storage = getattr(kind, "storage_type", None)
    if storage is None:
        return column
    known = str(getattr(kind, "extension_name", kind))
    if known not in _DRESSED:
        raise clvq.InvalidInputError(
            f"column {name[:_SHOWN]!r} has the type {known[:_SHOWN]!r}; expected text, numbers, "
            f"dates or truth values. Write it as one of these, or leave the column out."
        )
    return column.cast(storage).cast("bool") if known == "arrow.bool8" else column.cast(storage)


def _indexed(pandas: Any, frame: Any, about: Any) -> Any:
    """Set the index that pandas has written beside the columns, or as a range."""
    told = about.get("index_columns") if isinstance(about, dict) else None
    if not isinstance(told, list) or not told:
        return frame
    if len(told) == 1 and isinstance(told[0], dict):
        index = _range(pandas, told[0], len(frame))
        return frame if index is None else frame.set_axis(index)
    counts = frame.columns.value_counts()
    names = {name: 0 for name in told if isinstance(name, str) and counts.get(name, 0) == 1}
    # pandas takes them out one by one, which is slow for many.
    return frame.set_index([*names]) if 0 < len(names) <= _MOST_LEVELS else frame


def _range(pandas: Any, told: dict[Any, Any], rows: int) -> Any:
    start, step = told.get("start"), told.get("step")
    if told.get("kind") != "range" or type(start) is not int or type(step) is not int or not step:
        return None
    stop = start + rows * step
    if max(abs(start), abs(stop), abs(step)) >= _MOST_WHOLE:
        return None
    return pandas.RangeIndex(start, stop, step)

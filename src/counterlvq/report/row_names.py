"""What rows are called: as in their table, which people know, rather than by a position."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from counterlvq.batch.result import CounterfactualBatch
from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import plain
from counterlvq.tables.features import Features
from counterlvq.tables.views import FrameView, TableView

__all__ = ["row_names"]

# Columns that tell rows apart, by how they are called. The last is what pandas makes of an index
# that was written to a file.
_TELLS_APART = re.compile(
    r"(?i:(.*[\W_])?(id|uid|uuid|key|name|nr|no|number|code|index))|.*[a-z](Id|ID|Name|Key|Nr)"
    r"|Unnamed: 0"
)
_NO_NAME = "Unnamed: 0"


def row_names(batch: CounterfactualBatch, column: str | None = None) -> list[str]:
    """Name the rows of a batch.

    By the named column; else by the index of the table, if it has a name or is no number; else by
    the first column that the model does not see, whose name says that it tells rows apart and
    whose values do; else by the index or the position.
    """
    table = batch.given.named
    at = batch.rows.tolist()
    if column is not None:
        return _of_column(table, _checked(table, column), at)
    index = _index_of(table)
    if index is not None and (set(index.names) != {None} or not _is_counted(index)):
        title = ", ".join(str(name) for name in index.names if name is not None)
        return _called(title, [index[k] for k in at])
    if table is not None:
        known = (name for name in table.names if name not in batch.feature_names)
        for name in known:
            if _TELLS_APART.fullmatch(name) and _are_distinct(table.values(name)):
                return _of_column(table, name, at)
    return [f"Row {k if index is None else plain(index[k])}" for k in at]


def _checked(table: TableView | None, column: str) -> str:
    if table is None:
        raise InvalidInputError(
            f"names is {column!r}, and the rows came without names of columns; expected a name for "
            f"each row, or rows from a table."
        )
    return table.names[Features(table.names).position(column)]  # says which names there are


def _of_column(table: TableView | None, name: str, at: Sequence[int]) -> list[str]:
    values = table.values(name) if table is not None else []
    return _called("Row" if name == _NO_NAME else name, [values[k] for k in at])


def _called(title: str, values: Sequence[Any]) -> list[str]:
    """Call rows by text alone, and by numbers with what they count."""
    out = []
    for value in values:
        parts = value if isinstance(value, tuple) else (value,)
        text = ", ".join(str(plain(part)) for part in parts)
        out.append(text if isinstance(value, str) or not title else f"{title} {text}")
    return out


def _index_of(table: TableView | None) -> Any:
    """Find the index of a frame of pandas that tells its rows apart; None without one."""
    index = getattr(table.frame, "index", None) if isinstance(table, FrameView) else None
    return index if hasattr(index, "names") and getattr(index, "is_unique", False) else None


def _is_counted(index: Any) -> bool:
    return getattr(index.dtype, "kind", "O") in "iu"


def _are_distinct(values: Sequence[Any]) -> bool:
    whole = (str, int, np.integer)
    if any(isinstance(value, bool) or not isinstance(value, whole) for value in values):
        return False
    return len(set(values)) == len(values)

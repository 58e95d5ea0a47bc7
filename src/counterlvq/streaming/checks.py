"""What is asked of answers beside their question: which columns, and what they are called."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import told
from counterlvq.safe_text import encodable
from counterlvq.tables.values import checked_names

__all__ = ["checked_prefix", "kept_columns", "named_kind", "refuse_no_list"]


def named_kind(given: Any) -> str:
    """Say what stands where something else is expected, without the cells of a table.

    Examples
    --------
    >>> import pyarrow as pa
    >>> named_kind(5), named_kind([1, 2]), named_kind(pa.table({"a": [1, 2]}))
    ('5', 'a list of 2', 'a Table of pyarrow with 2 rows')
    """
    kind = type(given)
    library = kind.__module__.partition(".")[0]
    if isinstance(given, list | tuple | dict | set | frozenset):
        return f"a {kind.__name__} of {len(given):,}"
    if library == "builtins":
        return told(given)
    rows = getattr(given, "shape", None)
    count = rows[0] if isinstance(rows, tuple) and rows else None
    words = f" with {count:,} rows" if isinstance(count, int) else ""
    return f"a {kind.__name__} of {library}{words}"


def kept_columns(columns: Sequence[str] | None, names: tuple[str, ...]) -> tuple[str, ...]:
    """Name the columns that are given back: those that are asked for, or all."""
    if columns is None:
        return names
    refuse_no_list(columns)
    kept = checked_names(columns)
    strange = [name for name in kept if name not in names]
    if strange:
        raise InvalidInputError(
            f"columns (--keep) lists {told(strange[0])}, which the table has not; expected some "
            f"of: {', '.join(map(told, names[:8]))}{', ...' if len(names) > 8 else ''}."
        )
    return kept


def refuse_no_list(columns: Any) -> None:
    """Refuse what is no list of names, be it a single one."""
    if isinstance(columns, str):
        raise InvalidInputError(
            f"columns is {told(columns)}; expected a list of names. Write [{columns!r}]."
        )
    if columns is not None and not isinstance(columns, Collection):
        raise InvalidInputError(f"columns is {told(columns)}; expected a list of names.")


def checked_prefix(prefix: Any) -> str:
    """Refuse what can stand before no name of a column."""
    if not isinstance(prefix, str):
        raise InvalidInputError(f"prefix is {told(prefix)}; expected text, such as 'cf_'.")
    if encodable(prefix) != prefix:
        raise InvalidInputError(
            f"prefix is {told(prefix)}, which no name of a column can hold; expected text in "
            f"UTF-8, such as 'cf_'."
        )
    return prefix

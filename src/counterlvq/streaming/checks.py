"""What is asked of answers beside their question: which columns, and what they are called."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import told
from counterlvq.safe_text import encodable
from counterlvq.tables.values import checked_names

__all__ = ["checked_prefix", "kept_columns", "refuse_no_list"]


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

"""Text that a spreadsheet would run, written so that it does not, and read back as it was.

A cell that begins with ``=``, ``+``, ``-`` or ``@`` is a formula to a spreadsheet, wherever its
text came from, and formulas can start programs and send what stands in other cells. An apostrophe
before it makes it text. Reading takes that apostrophe away again; a cell that began with an
apostrophe and a formula before gets a second one, so that nothing is lost on the way. Numbers
are no text, and stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import counterlvq as clvq
from counterlvq.safe_text import encodable, visible

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["as_it_was", "as_text", "harmless", "holdable", "restored"]

_SHOWN = 60

# What begins a formula; some programs take letters of full width for the usual ones.
_SIGNS = frozenset("=+-@＝＋－＠")


def as_text(cell: str) -> str:
    """Write a cell so that no spreadsheet runs it.

    Examples
    --------
    >>> as_text("=1+1"), as_text(" @SUM(A1)"), as_text("a=b"), as_text("'=1+1")
    ("'=1+1", "' @SUM(A1)", 'a=b', "''=1+1")
    """
    return f"'{cell}" if _runs(cell) else cell


def as_it_was(cell: str) -> str:
    """Read a cell that `as_text` has written.

    Examples
    --------
    >>> as_it_was("'=1+1"), as_it_was("'quoted'")
    ('=1+1', "'quoted'")
    """
    return cell[1:] if cell.startswith("'") and _runs(cell) else cell


def _runs(cell: str) -> bool:
    """Whether a cell is a formula behind apostrophes, and what a spreadsheet may skip or trim."""
    begin = cell.lstrip("'")
    if begin[:1] in ("\t", "\r", "\n"):
        return True
    for letter in begin:
        if letter in _SIGNS:
            return True
        if letter != " " and letter.isprintable():  # spaces of other widths are not
            return False
    return False


def harmless(table: pd.DataFrame) -> pd.DataFrame:
    """Write the text of a table, and the names of its columns, so that no spreadsheet runs it."""
    return _each_text(table, as_text)


def restored(table: pd.DataFrame) -> pd.DataFrame:
    """Undo what `harmless` has done to a table that was written and read."""
    return _each_text(table, as_it_was)


def holdable(table: pd.DataFrame) -> pd.DataFrame:
    """Write out halves of surrogate pairs, which no file can hold, in cells and in names."""
    out = _each_text(table, lambda text: text if _is_encodable(text) else encodable(text))
    if out is not table and not out.columns.is_unique:
        twice = out.columns[out.columns.duplicated()][0]
        raise clvq.InvalidInputError(
            f"two columns are named {visible(twice, _SHOWN)!r} once halves of surrogate pairs are "
            f"written out; expected one of each name. Rename one of them."
        )
    return out


def _is_encodable(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _each_text(table: pd.DataFrame, change: Callable[[str], str]) -> pd.DataFrame:
    """Change what is text in columns that may hold some; a table without any stays as it is."""
    columns = {at: column for at, (_, column) in enumerate(table.items())}
    is_new = False
    for at, column in columns.items():
        if column.dtype.kind not in "OU":
            continue
        cells = column.to_numpy(dtype=object)
        new = [change(cell) if isinstance(cell, str) else cell for cell in cells]
        if any(a is not b for a, b in zip(cells, new, strict=True)):
            columns[at], is_new = _column(new, column), True
    names = [change(name) if isinstance(name, str) else name for name in table.columns]
    # Setting columns one by one takes time in the square of their number.
    out = _table(columns, table) if is_new else table
    return out if names == list(table.columns) else out.set_axis(names, axis=1)


def _table(columns: dict[int, Any], like: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(columns, index=like.index, copy=False).set_axis(like.columns, axis=1)


def _column(cells: list[Any], like: Any) -> Any:
    """Make a column of the same kind; levels of a dtype would not know the new cells."""
    import pandas as pd

    is_plain = like.dtype == object or isinstance(like.dtype, pd.StringDtype)
    return pd.array(cells, dtype=like.dtype if is_plain else object)

"""Cells of CSV, one by one: a text among numbers does not make text of the others.

Whoever reads CSV gives each column one type, so that a single word in a column of numbers leaves
digits where all other numbers were. Here each cell is taken for what it reads like, where the
model expects numbers, booleans or levels that are no text. Levels may be called by their labels, in
any table: what was printed is taken when it is typed in.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

import counterlvq as clvq

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DECIMAL", "WRITTEN", "with_point", "with_typed_cells"]

# Where a table from CSV has the sign before its decimals.
DECIMAL = "counterlvq.decimal"
# And how its text is written: the sign between columns, and the encoding.
WRITTEN = "counterlvq.written"
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)


def with_typed_cells(table: pd.DataFrame, features: clvq.Features) -> pd.DataFrame:
    """Read text where it stands for something else: numbers in CSV, and levels by their labels."""
    decimal = table.attrs.get(DECIMAL)
    known = [
        feature
        for feature in features
        if feature.name in table.columns
        and table[feature.name].dtype.kind == "O"
        and (not feature.is_number or decimal is not None)
    ]
    changed = {}
    for feature in known:
        cells = table[feature.name].tolist()
        read = [_typed(cell, feature, decimal) for cell in cells]
        if any(new is not old for new, old in zip(read, cells, strict=True)):
            changed[feature.name] = np.array(read, dtype=object)
    return table.assign(**changed) if changed else table


def with_point(text: str, decimal: str) -> str:
    """Write a number with a point before its decimals; nothing if it has one under another sign.

    A point would be the sign of thousands there, if anything.

    Examples
    --------
    >>> with_point("1,5", ","), with_point("1.234", ","), with_point("1.5", ".")
    ('1.5', '', '1.5')
    """
    return "" if decimal != "." and "." in text else text.replace(decimal, ".")


def _typed(cell: Any, feature: clvq.Feature, decimal: str | None) -> Any:
    """Read a cell; what it stands for already stays the same object."""
    if not isinstance(cell, str):
        return cell
    if feature.is_number:
        text = with_point(cell, decimal or ".")
        return float(text) if _NUMBER.fullmatch(text) else cell
    if feature.code(cell) >= 0:
        return cell
    at = feature.meant(cell)
    if at >= 0:
        return feature.levels[at]
    if decimal is None:
        return cell  # a number in quotes is none, but in CSV all is text
    return next((level for level in feature.levels if str(level) == cell.strip()), cell)

"""Cells of CSV, one by one: a text among numbers does not make text of the others.

Whoever reads CSV gives each column one type, so that a single word in a column of numbers leaves
digits where all other numbers were. Here each cell is taken for what it reads like, where the
model expects numbers, booleans or levels that are no text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import counterlvq as clvq

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DECIMAL", "with_typed_cells"]

# Where a table from CSV has the sign before its decimals.
DECIMAL = "counterlvq.decimal"
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)


def with_typed_cells(table: pd.DataFrame, features: clvq.Features) -> pd.DataFrame:
    """Read the cells of columns that hold text and should not; tables that are no CSV stay."""
    if DECIMAL not in table.attrs:
        return table
    changed = {
        feature.name: _typed(table[feature.name], feature, table.attrs[DECIMAL])
        for feature in features
        if feature.name in table.columns
        and table[feature.name].dtype.kind == "O"
        and not any(isinstance(level, str) for level in feature.levels)
    }
    return table.assign(**changed) if changed else table


def _typed(column: pd.Series[Any], feature: clvq.Feature, decimal: str) -> pd.Series[Any]:
    levels = {str(level): level for level in feature.levels}

    def read(cell: Any) -> Any:
        if not isinstance(cell, str):
            return cell
        if not feature.is_number:
            return levels.get(cell.strip(), cell)
        text = cell.replace(decimal, ".")
        return float(text) if _NUMBER.fullmatch(text) else cell

    return column.map(read).astype(object)

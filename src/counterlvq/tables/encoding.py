"""From the user's table to numbers and back: the same kind of table, the same types.

Inside, a row is a vector of floats: numbers as they are, levels and booleans as their position
among the levels of the feature. Outside it is whatever the user came with: a DataFrame of
pandas or polars, a table of Arrow, records, an array. What has names is read by name; only plain
arrays and lists of lists are read by position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterlvq.errors import InvalidInputError, NotSupportedError
from counterlvq.numeric.arrays import (
    Floats,
    finite_matrix,
    has_names,
    plain,
    refuse_masked,
)
from counterlvq.safe_text import shown_text
from counterlvq.tables.dates import dates_like
from counterlvq.tables.feature import Feature
from counterlvq.tables.features import Features
from counterlvq.tables.frames import as_frame, settled
from counterlvq.tables.missing import Fills
from counterlvq.tables.reading import read_rows, refuse_missing_columns, shortened
from counterlvq.tables.records import as_records, typed_like
from counterlvq.tables.values import is_missing, numbers_among
from counterlvq.tables.views import TableView
from counterlvq.types import Kind

__all__ = ["as_table", "like", "plain_rows", "rows_of", "written"]


def rows_of(
    table: Any,
    features: Features,
    columns: Sequence[str] | None = None,
    fills: Fills | None = None,
) -> Floats:
    """Read a table as numbers, one column per feature.

    Columns that have names are found by name, in any order; others are left alone.

    Parameters
    ----------
    table : DataFrame, Arrow table, records, or array-like of shape (n, c) or (c,)
        Records: a mapping, a named tuple or another row with names, a list of these, a
        structured array, a mapping from name to column.
    features : Features
        What to read, c columns or fewer.
    columns : sequence of str, optional
        The names of the c columns of an array; those of `features` by default.
    fills : Fills, optional
        What stands in for missing values; by default nothing does.

    Returns
    -------
    ndarray of shape (n, d)
        Read-only; levels and booleans as positions among the levels.

    Raises
    ------
    InvalidInputError
        Naming column and row, for missing values, unknown levels and text among numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> from counterlvq.tables.feature import Feature
    >>> from counterlvq.tables.features import Features
    >>> features = Features(["age", Feature("job", levels=["clerk", "nurse"])])
    >>> rows_of(pd.DataFrame({"job": ["nurse", "clerk"], "age": [31, 44]}), features)
    array([[31.,  1.],
           [44.,  0.]])
    """
    source = as_table(table, features.names if columns is None else tuple(columns))
    return read_rows(source, features, fills).values


def plain_rows(name: str, X: Any, features: Features) -> Floats:
    """Read rows of real features, by name where columns have names and by position otherwise."""
    return rows_of(X, features) if has_names(X) else finite_matrix(name, X, len(features))


def like(
    table: Any, rows: ArrayLike, features: Features, columns: Sequence[str] | None = None
) -> Any:
    """Write numbers back into a table like the one they came from.

    Names, order, index and dtypes are those of `table`, and columns that are no features keep
    their values. There are exceptions: a column of integers that `features` calls real
    becomes one of floats, floats of fewer digits become doubles, because rounding could undo
    what was proved, and where a row of NaN says that there is no answer, a dtype without room for
    gaps becomes its twin that has it. Integers that a narrow dtype cannot hold widen it likewise.

    Parameters
    ----------
    table : as for `rows_of`
    rows : array-like of shape (n, d)
        One row per row of `table`, as `rows_of` returns them.
    features : Features
    columns : sequence of str, optional
        As for `rows_of`.

    Returns
    -------
    The same type as `table`: an Arrow table for tables of other libraries that Arrow can read, a
    dict for mappings and for rows of SQLite, which cannot be made.

    Examples
    --------
    >>> import pandas as pd
    >>> from counterlvq.tables.feature import Feature
    >>> from counterlvq.tables.features import Features
    >>> table = pd.DataFrame({"age": [31], "job": ["nurse"], "id": ["a7"]})
    >>> features = Features([Feature("age", "whole"), Feature("job", levels=["clerk", "nurse"])])
    >>> like(table, [[30.0, 0.0]], features)
       age    job  id
    0   30  clerk  a7
    """
    matrix = np.asarray(rows, dtype=np.float64)
    source = as_table(table, features.names if columns is None else tuple(columns))
    if matrix.shape != (len(source), len(features)):
        raise InvalidInputError(
            f"rows has shape {matrix.shape}; expected ({len(source)}, {len(features)}), one row "
            f"per row of the table and one column per feature."
        )
    refuse_missing_columns(source.names, features)
    return source.with_columns(
        {
            feature.name: _written_like(source, matrix[:, j], feature)
            for j, feature in enumerate(features)
        }
    )


def _written_like(source: TableView, column: Floats, feature: Feature) -> NDArray[Any]:
    """Write a column in the values of its feature; dates as they stand in the table."""
    if feature.kind is not Kind.DATE:
        return written(column, feature)
    before = source.values(feature.name)
    known = [value for value in before if not is_missing(value)] or before
    if before and all(isinstance(value, int | float) for value in known):
        return written(column, Feature(feature.name, Kind.WHOLE))
    return dates_like(column, before)


def as_table(given: Any, names: tuple[str, ...]) -> TableView:
    """See rows as a table, unless they are seen so already; `names` are those of an array."""
    if isinstance(given, TableView):
        return given
    refuse_masked("the table", given)  # a structured array may be masked too
    known = settled(given)
    table: TableView | None = as_frame(known)
    if table is None:
        table = as_records(known)
    if table is None and has_names(known):
        raise NotSupportedError(
            f"the table is a {type(known).__name__}, whose columns have names that cannot be read; "
            f"expected a DataFrame of pandas or polars, an Arrow table, a structured array, a "
            f"mapping, or a plain array in the order of the columns."
        )
    return _Cells(given, names) if table is None else table


@final
class _Cells(TableView):
    """An array of rows, or a single one, with names for its columns."""

    is_named = False

    def __init__(self, given: Any, names: tuple[str, ...]) -> None:
        cells = _as_cells(given)
        self.is_single = cells.ndim == 1
        self.cells = cells[None, :] if self.is_single else cells
        self.names = names
        if self.cells.ndim != 2 or self.cells.shape[1] != len(names):
            raise InvalidInputError(
                f"the table has shape {cells.shape}; expected {len(names)} columns: "
                f"{shortened(map(shown_text, names))}."
            )

    def __len__(self) -> int:
        return int(self.cells.shape[0])

    def _column(self, name: str) -> NDArray[Any]:
        found: NDArray[Any] = self.cells[:, self.names.index(name)]
        return found

    def numbers(self, name: str) -> Floats:
        column = self._column(name)
        return column.astype(np.float64) if column.dtype.kind in "fiub" else numbers_among(column)

    def values(self, name: str) -> list[Any]:
        column = self._column(name)
        return [plain(day) for day in column] if column.dtype.kind == "M" else column.tolist()

    def taking(self, rows: NDArray[np.int64]) -> Self:
        return self._changed(cells=self.cells[rows], is_single=False)

    def with_columns(self, columns: Mapping[str, NDArray[Any]]) -> Any:
        at = {name: self.names.index(name) for name in columns}
        old = self.cells.dtype
        out = self.cells.astype(np.float64 if old.kind in "fiub" else object)
        for name, column in columns.items():
            j = at[name]
            out[:, j] = typed_like(column, out[:, j]) if out.dtype == object else column
        if old.kind in "iub" and all(column.dtype.kind != "f" for column in columns.values()):
            out = out if np.isnan(out).any() else _as_integers(out, old)
        if old.kind == "U":
            out = out.astype(np.str_)
        return out[0] if self.is_single else out


def _as_cells(given: Any) -> NDArray[Any]:
    """Make an array of nested lists; of objects where their types differ."""
    if isinstance(given, np.ndarray):
        return given
    plain_array = np.asarray(given)
    return np.asarray(given, dtype=object) if plain_array.dtype.kind == "U" else plain_array


def _as_integers(cells: Floats, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Write whole numbers in a dtype of integers or booleans, or in one with room for them."""
    if dtype.kind == "b":
        return cells.astype(dtype if np.isin(cells, (0.0, 1.0)).all() else np.int64)
    ends = np.iinfo(dtype)
    has_room = ends.min <= cells.min() and cells.max() <= ends.max
    return cells.astype(dtype if has_room else np.int64)


def written(column: Floats, feature: Feature) -> NDArray[Any]:
    """Write one column of numbers in the values of its feature; NaN leaves a gap.

    Examples
    --------
    >>> from counterlvq.tables.feature import Feature
    >>> written(np.array([1.0, 0.0]), Feature("job", levels=["clerk", "nurse"])).tolist()
    ['nurse', 'clerk']
    """
    gaps = np.isnan(column)
    if feature.kind is Kind.DATE:
        return dates_like(column, [None] * len(column))
    if feature.is_number:
        if feature.kind is Kind.REAL or (column[~gaps] != np.rint(column[~gaps])).any():
            return np.ascontiguousarray(column)
        if not gaps.any():
            return column.astype(np.int64)
        out = np.full(len(column), None, dtype=object)
        out[~gaps] = column[~gaps].astype(np.int64).tolist()
        return out
    levels = np.empty(len(feature.levels) + 1, dtype=object)
    levels[:] = [*feature.levels, None]
    return levels[np.where(gaps, len(feature.levels), column).astype(np.intp)]

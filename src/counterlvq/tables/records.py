"""Tables and rows with names that are no DataFrames: read by name, and written back alike.

Records are mappings from name to value, named tuples, rows of pandas and of SQLite and rows of
structured arrays; a table is a list of records, a structured array or a mapping from name to
column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import Floats, has_names, plain, refuse_masked
from counterlvq.tables.values import checked_names, is_missing, numbers_among
from counterlvq.tables.views import TableView

__all__ = ["as_records", "typed_like"]


def as_records(given: Any) -> TableView | None:
    """See records, or columns by name, as a table; None for what has no names."""
    if isinstance(given, np.ndarray) and given.dtype.names is not None:
        return _Structured(given)
    if isinstance(given, Mapping) and any(_is_column(column) for column in given.values()):
        return _Columns(given)
    if isinstance(given, list | tuple) and not hasattr(given, "_fields") and has_names(given):
        return _Records(given, is_single=False)
    return _Records([given], is_single=True) if _entries(given) is not None else None


def typed_like(column: NDArray[Any], old: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
    """Write whole numbers as floats where floats stood, and gaps as they were."""
    out = np.empty(len(column), dtype=object)
    out[:] = [_like(new, before) for new, before in zip(column.tolist(), old, strict=True)]
    return out


def _like(new: Any, before: Any) -> Any:
    if isinstance(new, int) and isinstance(before, float):
        return float(new)
    return before if is_missing(new) and is_missing(before) else new


def _is_column(value: Any) -> bool:
    return not isinstance(value, str | bytes) and hasattr(value, "__len__")


def _entries(record: Any) -> dict[str, Any] | None:
    """Read a record by name; None for what is none."""
    if isinstance(record, Mapping):
        found = dict(record)
    elif hasattr(record, "_fields"):
        found = dict(zip(record._fields, record, strict=True))
    elif isinstance(record, np.void) and record.dtype.names is not None:
        found = {name: record[name] for name in record.dtype.names}
    elif hasattr(type(record), "iloc") and has_names(record) and np.ndim(record) == 1:
        found = dict(zip(record.index, record, strict=True))
    elif hasattr(type(record), "keys") and hasattr(type(record), "__getitem__"):  # SQLite
        found = {name: record[name] for name in record.keys()}  # noqa: SIM118 - no mapping
    else:
        return None
    return {name: plain(value) for name, value in found.items()}


def _rebuild(record: Any) -> Callable[[dict[str, Any]], Any]:
    """Say how a record like this one is made of its entries; a dict where it cannot be."""
    if hasattr(record, "_fields"):
        return partial(_replaced, record)
    if isinstance(record, np.void):
        return partial(_structured_row, record)
    if hasattr(type(record), "iloc"):
        series: Callable[..., Any] = type(record)
        return partial(series, name=record.name)
    return dict


def _replaced(record: Any, entries: dict[str, Any]) -> Any:
    return record._replace(**entries)


def _structured_row(record: np.void, entries: dict[str, Any]) -> Any:
    table = _Structured(np.array([record], dtype=record.dtype))
    columns = {name: np.array([value]) for name, value in entries.items()}
    return table.with_columns(columns)[0]


@final
class _Records(TableView):
    """A list of records, or a single one."""

    def __init__(self, given: Sequence[Any], *, is_single: bool) -> None:
        self.given, self.is_single = given, is_single
        read = [_entries(record) for record in given]
        for i, entries in enumerate(read):
            if entries is None:
                raise InvalidInputError(
                    f"row {i} of the table is {given[i]!r}, which has no names, but other rows "
                    "have; expected a mapping from name to value in each."
                )
        self.entries = [entries for entries in read if entries is not None]
        self.names = checked_names(self.entries[0])
        known = self.entries[0].keys()
        for i, entries in enumerate(self.entries):
            if entries.keys() != known:
                raise InvalidInputError(
                    f"row {i} of the table is {given[i]!r}; expected the names of row 0: "
                    f"{', '.join(map(repr, self.names))}."
                )

    def __len__(self) -> int:
        return len(self.given)

    def numbers(self, name: str) -> Floats:
        return numbers_among(self.values(name))

    def values(self, name: str) -> list[Any]:
        return [entries[name] for entries in self.entries]

    def taking(self, rows: NDArray[np.int64]) -> Self:
        given, entries = ([part[i] for i in rows] for part in (self.given, self.entries))
        return self._changed(given=given, entries=entries, is_single=False)

    def with_columns(self, columns: Mapping[str, NDArray[Any]]) -> Any:
        new = {name: typed_like(column, self.values(name)) for name, column in columns.items()}
        out = [
            _rebuild(record)({**entries, **{name: plain(new[name][i]) for name in new}})
            for i, (record, entries) in enumerate(zip(self.given, self.entries, strict=True))
        ]
        return out[0] if self.is_single else out


@final
class _Columns(TableView):
    """A mapping from name to column; it comes back as a dict of arrays and lists."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.names = checked_names(given)
        for name, column in given.items():
            refuse_masked(f"column {name!r}", column)
        self.columns = {
            name: column if isinstance(column, np.ndarray) else [plain(v) for v in column]
            for name, column in given.items()
            if _is_column(column) or _refuse_scalar(name, column)
        }
        lengths = {name: len(column) for name, column in self.columns.items()}
        first = self.names[0]
        for name, length in lengths.items():
            if length != lengths[first] or np.ndim(self.columns[name]) != 1:
                raise InvalidInputError(
                    f"column {name!r} has the shape {np.shape(self.columns[name])}, but {first!r} "
                    f"has {lengths[first]} values; expected one value per row."
                )

    def __len__(self) -> int:
        return len(self.columns[self.names[0]])

    def numbers(self, name: str) -> Floats:
        return _numbers(self.columns[name])

    def values(self, name: str) -> list[Any]:
        return [plain(value) for value in self.columns[name]]

    def taking(self, rows: NDArray[np.int64]) -> Self:
        columns = {
            name: column[rows] if isinstance(column, np.ndarray) else [column[i] for i in rows]
            for name, column in self.columns.items()
        }
        return self._changed(columns=columns)

    def with_columns(self, columns: Mapping[str, NDArray[Any]]) -> Any:
        out = dict(self.columns)
        for name, column in columns.items():
            old = self.columns[name]
            if isinstance(old, np.ndarray):
                out[name] = column.astype(_dtype_for(column, old.dtype))
            else:
                out[name] = [plain(value) for value in typed_like(column, old)]
        return out


@final
class _Structured(TableView):
    """A structured array, or one row of one."""

    def __init__(self, given: NDArray[Any]) -> None:
        self.is_single = given.ndim == 0
        self.given = given.reshape(-1)
        self.names = checked_names(given.dtype.names or ())
        if given.ndim > 1:
            raise InvalidInputError(
                f"the table is a structured array of shape {given.shape}; expected one dimension."
            )
        for name in self.names:
            if self.given[name].ndim != 1 or self.given[name].dtype.names is not None:
                raise InvalidInputError(
                    f"column {name!r} of the structured array has the dtype "
                    f"{given.dtype[name]}; expected one value per row."
                )

    def __len__(self) -> int:
        return len(self.given)

    def numbers(self, name: str) -> Floats:
        return _numbers(self.given[name])

    def values(self, name: str) -> list[Any]:
        column = self.given[name]
        return [plain(day) for day in column] if column.dtype.kind == "M" else column.tolist()

    def taking(self, rows: NDArray[np.int64]) -> Self:
        return self._changed(given=self.given[rows], is_single=False)

    def with_columns(self, columns: Mapping[str, NDArray[Any]]) -> Any:
        old = {name: self.given.dtype[name] for name in self.names}
        new = {name: _dtype_for(column, old[name]) for name, column in columns.items()}
        out = np.empty(len(self), dtype=[*{**old, **new}.items()])
        for name in self.names:
            out[name] = columns.get(name, self.given[name])
        kept = out.view(type(self.given))
        return kept[0] if self.is_single else kept


def _numbers(column: Any) -> Floats:
    if isinstance(column, np.ndarray) and column.dtype.kind in "fiub":
        return column.astype(np.float64)
    return numbers_among(plain(value) for value in column)


def _dtype_for(column: NDArray[Any], old: np.dtype[Any]) -> np.dtype[Any]:
    """Keep a dtype where it holds the new values; otherwise take one that does."""
    if column.dtype.kind == "f":
        return np.dtype(np.float64) if old.kind in "fiub" else np.dtype(object)
    values = column.tolist()
    numeric = all(value is None or isinstance(value, int | float) for value in values)
    if old.kind == "f" and numeric:
        return np.dtype(np.float64)
    if any(value is None for value in values):
        return np.dtype(object)
    natural = np.array(values)
    return old if natural.astype(old).tolist() == values else natural.dtype


def _refuse_scalar(name: str, value: Any) -> bool:
    raise InvalidInputError(
        f"{name!r} is {value!r}, but other columns are lists; expected one value per row in each."
    )

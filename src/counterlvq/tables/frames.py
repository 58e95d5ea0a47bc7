"""One way to look at a DataFrame of pandas or polars, and at a table of Arrow.

No library is imported before a frame of its own comes in. What is read here is described
by `features` and turned into numbers by `encoding`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date
from types import ModuleType
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.errors import NotSupportedError
from counterlvq.numeric.arrays import Floats, once, plain, told
from counterlvq.tables.arrow_types import usual_columns
from counterlvq.tables.dates import days_of, days_of_times
from counterlvq.tables.decimals import nearest_floats
from counterlvq.tables.values import (
    are_numbers,
    as_texts,
    checked_names,
    is_missing,
    kind_of_values,
    numbers_among,
)
from counterlvq.tables.views import FrameView, TableView
from counterlvq.types import Kind

__all__ = [
    "as_frame",
    "new_frame",
    "numbers_or_days",
    "settled",
]


@final
class _Pandas(FrameView):
    @staticmethod
    def _library() -> ModuleType:
        import pandas as pd

        return pd  # type: ignore[no-any-return, unused-ignore]

    def kind(self, name: str) -> Kind | None:
        pd = self._library()
        dtype, types = self.frame[name].dtype, pd.api.types
        if isinstance(dtype, pd.CategoricalDtype):
            return Kind.CATEGORICAL
        if types.is_bool_dtype(dtype):
            return Kind.BOOLEAN
        if types.is_integer_dtype(dtype):
            return Kind.WHOLE
        if types.is_float_dtype(dtype) or types.is_datetime64_dtype(dtype):
            return Kind.REAL if types.is_float_dtype(dtype) else Kind.DATE
        if types.is_object_dtype(dtype) or types.is_string_dtype(dtype):
            return kind_of_values(self.values(name))
        return None

    def dtype(self, name: str) -> str:
        return str(self.frame[name].dtype)

    def taking(self, rows: NDArray[np.int64]) -> Self:
        return self._changed(frame=self.frame.iloc[rows])

    def beside(self, columns: Mapping[str, Any]) -> Any:
        return self._library().DataFrame(columns, index=self.frame.index).infer_objects()

    def declared_levels(self, name: str) -> list[Any] | None:
        dtype = self.frame[name].dtype
        if isinstance(dtype, self._library().CategoricalDtype):
            return [plain(level) for level in dtype.categories]
        return None

    def numbers(self, name: str) -> Floats:
        column = self.frame[name]
        if isinstance(column.dtype, np.dtype) and column.dtype.kind in "fiub":
            return np.asarray(column.to_numpy(), dtype=np.float64)
        if self._library().api.types.is_numeric_dtype(column.dtype):
            return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
        return numbers_among(self.values(name))

    def values(self, name: str) -> list[Any]:
        column = self.frame[name]
        return list(column.astype(object).where(column.notna(), None))

    def times(self, name: str) -> NDArray[np.datetime64] | None:
        column = self.frame[name]
        is_time = isinstance(column.dtype, np.dtype) and column.dtype.kind == "M"
        return column.to_numpy() if is_time else None

    def row(self, i: int) -> str:
        label = plain(self.frame.index[i])
        return f"row {i}" if label == i else f"row {i} (index {told(label)})"

    def with_columns(self, columns: Mapping[str, NDArray[Any]]) -> Any:
        out = self.frame.copy(deep=False)  # columns are replaced, never written into
        for name, column in columns.items():
            old = self.frame[name]
            out[name] = self._series(column, old.dtype)
            if old.dtype == object and old.isna().any():
                # What stands for a missing value there, None or NaN or NA, is kept.
                out[name] = out[name].where(out[name].notna() | old.notna(), old)
        return out

    def _series(self, column: NDArray[Any], dtype: Any) -> Any:
        pd, index = self._library(), self.frame.index
        if column.dtype.kind == "f" and dtype.kind in "iubf":
            # A real number where whole ones stood, or with more digits than there was room for.
            keeps = dtype.kind == "f" and dtype.itemsize >= column.itemsize
            return pd.Series(column, index=index, dtype=dtype if keeps else None)
        gaps = pd.isna(column)
        if gaps.any():
            column = column.astype(object)
            column[gaps] = None
            if isinstance(dtype, np.dtype) and dtype.kind in "iub":
                dtype = pd.array(np.zeros(1, dtype)).dtype  # its twin with room for gaps
        is_number = are_numbers(column)
        plain_type = getattr(dtype, "numpy_dtype", dtype)
        if dtype.kind in "iu" and is_number and not _fits(column[~gaps], plain_type):
            dtype = np.dtype(np.int64) if isinstance(dtype, np.dtype) else pd.Int64Dtype()
        if isinstance(dtype, pd.CategoricalDtype):
            new = [v for v in once(column[~gaps]) if v not in dtype.categories]
            levels = dtype.categories.append(pd.Index(new)) if new else dtype.categories
            dtype = pd.CategoricalDtype(levels, dtype.ordered)
        if isinstance(dtype, pd.StringDtype):
            column = np.array(as_texts(column), dtype=object)
        elif pd.api.types.is_numeric_dtype(dtype) and not is_number:
            dtype = np.dtype(object)
        return pd.Series(column, index=index, dtype=dtype)


@final
class _Polars(FrameView):
    @staticmethod
    def _library() -> ModuleType:
        import polars as pl

        return pl

    def kind(self, name: str) -> Kind | None:
        pl = self._library()
        dtype = self.frame.schema[name]
        if dtype in (pl.Categorical, pl.Enum):
            return Kind.CATEGORICAL
        if dtype == pl.Boolean:
            return Kind.BOOLEAN
        if dtype.is_integer():
            return Kind.WHOLE
        is_date = dtype == pl.Date or (dtype == pl.Datetime and dtype.time_zone is None)
        if dtype.is_float() or is_date:
            return Kind.DATE if is_date else Kind.REAL
        if dtype in (pl.String, pl.Object):
            return kind_of_values(self.values(name))
        return None

    def dtype(self, name: str) -> str:
        return str(self.frame.schema[name])

    def taking(self, rows: NDArray[np.int64]) -> Self:
        return self._changed(frame=self.frame[rows])

    def beside(self, columns: Mapping[str, Any]) -> Any:
        # polars takes no arrays of objects, but lists of what is in them.
        return self._library().DataFrame(
            {
                name: list(column) if np.asarray(column).dtype.kind == "O" else column
                for name, column in columns.items()
            }
        )

    def declared_levels(self, name: str) -> list[Any] | None:
        # The levels of a polars Categorical are those of the whole process: only an Enum has
        # its own.
        dtype = self.frame.schema[name]
        return list(dtype.categories) if dtype == self._library().Enum else None

    def numbers(self, name: str) -> Floats:
        column = self.frame[name]
        if column.dtype.is_numeric() or column.dtype == self._library().Boolean:
            return np.asarray(column.cast(self._library().Float64).to_numpy())
        return numbers_among(self.values(name))

    def values(self, name: str) -> list[Any]:
        return list(self.frame[name].to_list())

    def times(self, name: str) -> NDArray[np.datetime64] | None:
        dtype, pl = self.frame.schema[name], self._library()
        is_time = dtype == pl.Date or (dtype == pl.Datetime and dtype.time_zone is None)
        return self.frame[name].to_numpy() if is_time else None

    def with_columns(self, columns: Mapping[str, NDArray[Any]]) -> Any:
        return self.frame.with_columns(
            self._series(name, column, self.frame.schema[name]) for name, column in columns.items()
        )

    def _series(self, name: str, column: NDArray[Any], dtype: Any) -> Any:
        pl = self._library()
        if column.dtype.kind == "f" and dtype.is_numeric():
            # Real numbers stay real where whole ones stood, and keep all their digits.
            return pl.Series(name, column, dtype=pl.Float64, nan_to_null=True)
        values = column.tolist()
        if dtype == pl.Enum:
            known = set(dtype.categories)
            new = [v for v in once(values) if v is not None and v not in known]
            dtype = pl.Enum([*dtype.categories, *new]) if new else dtype
        if (dtype.is_numeric() and not are_numbers(values)) or dtype == pl.Null:
            return pl.Series(name, values)
        if dtype.is_numeric():
            numbers = pl.Series(name, [None if v is None else plain(v) + 0 for v in values])
            narrow = numbers.cast(dtype, strict=False)
            return numbers if narrow.null_count() > numbers.null_count() else narrow
        return pl.Series(name, as_texts(values) if dtype == pl.String else values, dtype=dtype)


@final
class _Arrow(FrameView):
    """A table of Arrow, or a record batch, which comes back as one."""

    def __init__(self, frame: Any) -> None:
        self.is_batch = type(frame).__name__ == "RecordBatch"
        self.frame = self._library().Table.from_batches([frame]) if self.is_batch else frame
        self.names = checked_names(frame.schema.names)

    @staticmethod
    def _library() -> ModuleType:
        import pyarrow as pa

        return pa  # type: ignore[no-any-return, unused-ignore]

    def _type(self, name: str) -> Any:
        return self.frame.schema.field(name).type

    def kind(self, name: str) -> Kind | None:
        dtype, types = self._type(name), self._library().types
        if types.is_dictionary(dtype):
            return Kind.CATEGORICAL
        if types.is_boolean(dtype):
            return Kind.BOOLEAN
        if types.is_integer(dtype):
            return Kind.WHOLE
        if types.is_floating(dtype) or types.is_decimal(dtype):
            return Kind.REAL
        if types.is_date(dtype) or (types.is_timestamp(dtype) and dtype.tz is None):
            return Kind.DATE
        return kind_of_values(self.values(name)) if str(dtype) in _ARROW_TEXT else None

    def dtype(self, name: str) -> str:
        return str(self._type(name))

    def taking(self, rows: NDArray[np.int64]) -> Self:
        return self._changed(frame=usual_columns(self.frame).take(self._library().array(rows)))

    def beside(self, columns: Mapping[str, Any]) -> Any:
        arrays = {name: np.asarray(column) for name, column in columns.items()}
        return self._library().table(
            {name: a if a.dtype.kind in "fiub" else a.tolist() for name, a in arrays.items()}
        )

    def declared_decimals(self, name: str) -> int | None:
        dtype = self._type(name)
        return int(dtype.scale) if self._library().types.is_decimal(dtype) else None

    def declared_levels(self, name: str) -> list[Any] | None:
        if not self._library().types.is_dictionary(self._type(name)):
            return None
        chunks = self.frame.column(name).unify_dictionaries().chunks
        return list(chunks[0].dictionary.to_pylist()) if chunks else []

    def numbers(self, name: str) -> Floats:
        pa, dtype = self._library(), self._type(name)
        if pa.types.is_integer(dtype) or pa.types.is_floating(dtype) or pa.types.is_boolean(dtype):
            column = self.frame.column(name).cast(pa.float64(), safe=False)
            return np.asarray(column.to_numpy(), dtype=np.float64)
        if pa.types.is_decimal(dtype):
            return nearest_floats(self.frame.column(name))
        return numbers_among(self.values(name))

    def values(self, name: str) -> list[Any]:
        return list(self.frame.column(name).to_pylist())

    def times(self, name: str) -> NDArray[np.datetime64] | None:
        dtype, types = self._type(name), self._library().types
        is_time = types.is_date(dtype) or (types.is_timestamp(dtype) and dtype.tz is None)
        return np.asarray(self.frame.column(name).to_numpy()) if is_time else None

    def with_columns(self, columns: Mapping[str, NDArray[Any]]) -> Any:
        out = self.frame
        for name, column in columns.items():
            j, array = self.names.index(name), self._array(name, column)
            field = out.schema.field(j).with_type(array.type)
            out = out.set_column(j, field.with_nullable(field.nullable or array.null_count), array)
        if out.schema.types != self.frame.schema.types:
            # What pandas noted about the old types would narrow the new ones on the way back.
            noted = dict(out.schema.metadata or {})
            noted.pop(b"pandas", None)
            out = out.replace_schema_metadata(noted or None)
        return self._as_given(out)

    def _array(self, name: str, column: NDArray[Any]) -> Any:
        pa, dtype = self._library(), self._type(name)
        is_whole = pa.types.is_integer(dtype)
        if column.dtype.kind == "f" and (
            is_whole or pa.types.is_floating(dtype) or pa.types.is_decimal(dtype)
        ):
            # Real numbers stay real where whole ones stood, and keep all their digits.
            return pa.array(column, pa.float64(), from_pandas=True)
        values = [None if is_missing(value) else plain(value) for value in column.tolist()]
        if pa.types.is_dictionary(dtype):
            levels = self.declared_levels(name) or []
            levels += [v for v in once(values) if v is not None and v not in levels]
            places = [None if value is None else levels.index(value) for value in values]
            return pa.DictionaryArray.from_arrays(
                pa.array(places, dtype.index_type),
                pa.array(levels, dtype.value_type),
                ordered=dtype.ordered,
            )
        is_number = is_whole or pa.types.is_floating(dtype) or pa.types.is_decimal(dtype)
        if (is_number and not are_numbers(values)) or pa.types.is_null(dtype):
            return pa.array(values)
        if not is_whole:
            return pa.array(as_texts(values) if str(dtype) in _ARROW_TEXT else values, dtype)
        numbers = [None if value is None else value + 0 for value in values]
        try:
            return pa.array(numbers, dtype)
        except (pa.ArrowInvalid, OverflowError):  # no room for these numbers
            return pa.array(numbers, pa.int64())

    def _as_given(self, table: Any) -> Any:
        if not self.is_batch:
            return table
        columns = [column.combine_chunks() for column in table.columns]
        return self._library().RecordBatch.from_arrays(columns, schema=table.schema)


_ARROW_TEXT = ("string", "large_string", "string_view")
_KNOWN: Mapping[tuple[str, str], type[FrameView]] = {
    ("pandas", "DataFrame"): _Pandas,
    ("polars", "DataFrame"): _Polars,
    ("pyarrow", "Table"): _Arrow,
    ("pyarrow", "RecordBatch"): _Arrow,
}
# Tables that are not in memory yet, and how to get there.
_UNREAD: Mapping[tuple[str, str], tuple[str, str]] = {
    ("polars", "LazyFrame"): ("DataFrame", "collect"),
    ("pyarrow", "RecordBatchReader"): ("Table", "read_all"),
    ("pyarrow", "Dataset"): ("Table", "to_table"),
    ("pyarrow", "Scanner"): ("Table", "to_table"),
}


def numbers_or_days(table: TableView, name: str, kind: Kind | None) -> Floats:
    """Read a column of numbers, or the days of one of dates; NaN where neither stands."""
    if kind is not Kind.DATE:
        return table.numbers(name)
    times = table.times(name)
    if times is not None:
        return days_of_times(times)
    values = table.values(name)
    numbers = numbers_among(values)
    known: dict[Any, float] = {}  # a column has few dates, and reading one takes a while
    for i in np.flatnonzero(~np.isfinite(numbers)).tolist():
        value = values[i]
        if not isinstance(value, str | date):
            numbers[i] = days_of(value)
            continue
        if value not in known:
            known[value] = days_of(value)
        numbers[i] = known[value]
    return numbers


def as_frame(frame: Any) -> FrameView | None:
    """See a DataFrame or an Arrow table as a table with dtypes; None for what is neither."""
    if isinstance(frame, FrameView):
        return frame
    for cls in type(frame).__mro__:
        known = (cls.__module__.partition(".")[0], cls.__name__)
        if known in _KNOWN:
            return _KNOWN[known](frame)
        if known in _UNREAD:
            raise NotSupportedError(
                f"the table is a {known[0]} {known[1]}; expected a {_UNREAD[known][0]}. Call its "
                f"`{_UNREAD[known][1]}()` first."
            )
    return None


def settled(table: Any) -> Any:
    """Turn a table of another library into one of Arrow, by a protocol that it speaks.

    Whatever is known already, or no table, is returned as it is.
    """
    kind = type(table)
    library = kind.__module__.partition(".")[0]
    is_struct = library == "pyarrow" and str(getattr(table, "type", "")).startswith("struct<")
    is_struct = is_struct and not isinstance(table, Mapping)  # one row is a mapping
    if library == "polars" and str(getattr(table, "dtype", "")).startswith("Struct"):
        return table.struct.unnest()
    speaks = any(hasattr(kind, way) for way in ("__arrow_c_stream__", "__dataframe__"))
    if not is_struct and (not speaks or library in ("numpy", "pandas", "polars", "pyarrow")):
        return table
    try:
        import pyarrow as pa
        from pyarrow.interchange import from_dataframe
    except ImportError:
        raise NotSupportedError(
            f"the table is a {kind.__name__} of {library}; expected a DataFrame of pandas or "
            f"polars. Other tables are read with pyarrow, which is not installed; install it with "
            f"pip install pyarrow."
        ) from None
    if is_struct:
        return pa.Table.from_struct_array(table)
    try:
        return pa.table(table) if hasattr(kind, "__arrow_c_stream__") else from_dataframe(table)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise NotSupportedError(
            f"the table is a {kind.__name__} of {library}, which Arrow cannot read ({error}); "
            f"expected a DataFrame of pandas or polars, or an Arrow table."
        ) from None


def new_frame(columns: Mapping[str, Any], objects: Collection[str] = ()) -> Any:
    """Make a DataFrame with the library that is there; listed columns hold objects in pandas."""
    try:
        import pandas as pd
    except ImportError:
        pass
    else:
        frame = pd.DataFrame(columns).infer_objects()
        return frame.astype(dict.fromkeys(objects, object)) if objects else frame
    try:
        import polars as pl
    except ImportError:
        raise NotSupportedError(
            "columns with names need pandas or polars, and neither is installed; install one of "
            "them with pip install pandas."
        ) from None
    return pl.DataFrame(columns)


def _fits(values: NDArray[Any], dtype: Any) -> bool:
    """Whether a dtype of integers has room for whole numbers."""
    ends = np.iinfo(dtype)
    return all(ends.min <= value <= ends.max for value in values.tolist())

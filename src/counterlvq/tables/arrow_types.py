"""Newer types of Arrow, of which its functions take no rows, in the usual ones."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["usual_column", "usual_columns", "usual_type"]

# With long offsets, so that there is room for whatever a view can hold.
_USUAL = {"string_view": "large_string", "binary_view": "large_binary"}


def usual_type(dtype: Any) -> Any:
    """Type of the values of a column, however runs of them and their letters are stored.

    Examples
    --------
    >>> import pyarrow as pa
    >>> usual_type(pa.run_end_encoded(pa.int32(), pa.string_view()))
    DataType(large_string)
    """
    if str(dtype).startswith("run_end_encoded<"):
        dtype = dtype.value_type
    name = _USUAL.get(str(dtype))
    return dtype if name is None else import_module("pyarrow").type_for_alias(name)


def usual_column(column: Any) -> Any:
    """See an array, chunked or not, in its usual type."""
    wanted = usual_type(column.type)
    if column.type == wanted:
        return column
    if not str(column.type).startswith("run_end_encoded<"):
        return column.cast(wanted)
    if column.type.value_type == wanted and not hasattr(wanted, "index_type"):
        return import_module("pyarrow.compute").run_end_decode(column)
    # Runs of views and of dictionaries Arrow does not decode.
    return import_module("pyarrow").array(column.to_pylist(), wanted)


def usual_columns(table: Any) -> Any:
    """See all columns of a table, or of a record batch, in their usual types."""
    for k, field in enumerate(table.schema):
        if usual_type(field.type) != field.type:
            table = table.set_column(k, field.name, usual_column(table.column(k)))
    return table

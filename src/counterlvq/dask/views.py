"""Views of Arrow in the usual types: Dask takes rows out of frames, which views do not allow."""

from __future__ import annotations

from typing import Any

from counterlvq.streaming.arrow import arrow
from counterlvq.tables.arrow_types import usual_type

__all__ = ["without_views"]


def without_views(table: Any) -> Any:
    """See the columns of a table without views of text or bytes, also inside of lists and structs.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"names": pa.array([["Ada"]], pa.list_(pa.string_view()))})
    >>> without_views(table).schema.field("names").type
    ListType(list<item: large_string>)
    """
    pa = arrow()
    schema = pa.schema([_field(field) for field in table.schema])
    return table if schema.equals(table.schema) else table.cast(schema)


def _field(field: Any) -> Any:
    return field.with_type(_type(field.type))


def _type(dtype: Any) -> Any:
    pa = arrow()
    kinds = pa.types
    if kinds.is_list(dtype):
        return pa.list_(_field(dtype.value_field))
    if kinds.is_large_list(dtype):
        return pa.large_list(_field(dtype.value_field))
    if kinds.is_fixed_size_list(dtype):
        return pa.list_(_field(dtype.value_field), dtype.list_size)
    if kinds.is_map(dtype):
        return pa.map_(_field(dtype.key_field), _field(dtype.item_field), dtype.keys_sorted)
    if kinds.is_struct(dtype):
        return pa.struct([_field(field) for field in dtype])
    is_view = kinds.is_string_view(dtype) or kinds.is_binary_view(dtype)
    return usual_type(dtype) if is_view else dtype

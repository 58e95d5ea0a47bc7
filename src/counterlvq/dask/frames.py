"""Frames of pandas as record batches: columns that the question reads, and nothing of the others.

What passes through stays in the frame, whatever it is: lists, bytes, objects. Types are settled by
what Dask knows beforehand, and where it knows none by what the feature is.
"""

from __future__ import annotations

from typing import Any

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import told
from counterlvq.streaming.answers import Explains
from counterlvq.streaming.arrow import arrow
from counterlvq.streaming.columns import AnswerColumn, label_array
from counterlvq.streaming.targets import ColumnTarget
from counterlvq.tables.values import checked_names

__all__ = ["frame_batch", "frame_schema"]

_MOST_WORDS = 200


def frame_schema(source: Any, explainer: Explains, target: Any) -> Any:
    """Types of the columns of a Dask DataFrame that are read; those that are not have type null."""
    pa = arrow()
    names = checked_names(source.columns)
    natural = {f.name: AnswerColumn.of(f, None).type for f in explainer.features}
    wish = target.name if isinstance(target, ColumnTarget) else target
    if isinstance(wish, str):
        natural.setdefault(wish, label_array(explainer.model.classes.tolist()).type)
    return pa.schema(
        [
            (name, _type(source, name, natural[name]) if name in natural else pa.null())
            for name in names
        ]
    )


def _type(source: Any, name: str, natural: Any) -> Any:
    """Type of a column; the one that is natural for it where its dtype does not say."""
    pa, dtype = arrow(), source._meta[name].dtype
    if hasattr(dtype, "pyarrow_dtype"):
        return dtype.pyarrow_dtype
    if hasattr(dtype, "categories"):
        # Of categories that differ from partition to partition, or of a file, nothing is known.
        is_known = source[name].cat.known and len(dtype.categories) > 0
        value = pa.array(dtype.categories, from_pandas=True).type if is_known else natural
        return pa.dictionary(pa.int32(), value, bool(dtype.ordered))
    if dtype.kind == "O":
        return natural
    schema = pa.Schema.from_pandas(source._meta[[name]], preserve_index=False)
    return schema.field(name).type


def frame_batch(frame: Any, schema: Any) -> Any:
    """See a partition as a record batch."""
    pa = arrow()
    arrays = []
    for field in schema:
        try:
            arrays.append(_array(frame, field))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            words = " ".join(str(error).split())[:_MOST_WORDS]
            raise InvalidInputError(
                f"column {told(field.name)} of a partition, of dtype {frame[field.name].dtype}, "
                f"cannot be read as {field.type} ({words}); expected what its feature holds, or "
                f"labels. Give the column a dtype first, with astype."
            ) from None
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(frame: Any, field: Any) -> Any:
    pa = arrow()
    if pa.types.is_null(field.type):
        return pa.nulls(len(frame))
    column = frame[field.name]
    if not pa.types.is_dictionary(field.type) or not hasattr(column, "cat"):
        found = pa.array(column, field.type, from_pandas=True)
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    codes = column.cat.codes.to_numpy()
    levels = pa.array(column.cat.categories, field.type.value_type, from_pandas=True)
    return pa.DictionaryArray.from_arrays(
        pa.array(codes.astype("int32"), mask=codes < 0), levels, ordered=field.type.ordered
    )

"""One schema for all files of a source: what may differ, and what is refused before rows are read.

Columns are given the types of the first file. A type may be another one only if each of its values
is one of the first file's type too: what is rounded or cut would be another row.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import told
from counterlvq.streaming.arrow import arrow

__all__ = ["as_type", "is_kept", "refuse_other_columns", "refuse_values_twice"]

# Bits of the whole numbers that a float of so many bits holds, all of them.
_WHOLE_BITS = {16: 11, 32: 24, 64: 53}
_TEXTS = ("string", "large_string", "string_view")
_BYTES = ("binary", "large_binary", "binary_view")


def refuse_other_columns(
    found: Any, path: str, schema: Any, first: str, in_path: Collection[str]
) -> None:
    """Refuse a file whose columns are not those of the first one.

    Parameters
    ----------
    found, schema : pyarrow.Schema
        Of the file, and of the source.
    path, first : str
        The file, and the first one.
    in_path : collection of str
        Columns whose values stand in the path of the file.
    """
    types = dict(zip(found.names, found.types, strict=True))
    for field in schema:
        if field.name in in_path:
            continue
        if field.name not in types:
            raise InvalidInputError(
                f"{told(path)} lacks the column {told(field.name)}; expected the columns of the "
                f"first file in each."
            )
        if not is_kept(types[field.name], field.type):
            raise InvalidInputError(
                f"column {told(field.name)} of {told(path)} is of type {types[field.name]}, but of "
                f"type {field.type} in the first file, {told(first)}; expected one type in all "
                f"files. Cast the column and write the file again."
            )
    others = [name for name in types if name not in schema.names]
    if others:
        raise InvalidInputError(
            f"{told(path)} has the column {told(others[0])}, which the first file, {told(first)}, "
            f"has not; expected the columns of the first file in each. Write the files with the "
            f"same columns, or explain them one by one."
        )


def refuse_values_twice(names: Collection[str], path: str) -> None:
    """Refuse a column that has values in the path of a file and in the file, or twice in the path.

    Programs differ in which of them they believe.
    """
    seen = set[str]()
    for folder in PurePosixPath(path).parent.parts:
        key, sign, _ = folder.partition("=")
        name = unquote(key)
        if not sign:
            continue
        if name in seen or name in names:
            where = "twice in its path" if name in seen else "in its path and in the file"
            raise InvalidInputError(
                f"{told(path)} has values of the column {told(name)} {where}; expected them once. "
                f"Rename the folder, or write the file without the column."
            )
        seen.add(name)


def is_kept(came: Any, wanted: Any) -> bool:
    """Whether every value of one type is a value of the other, judged by the types alone.

    Examples
    --------
    >>> import pyarrow as pa
    >>> is_kept(pa.int8(), pa.int16()), is_kept(pa.int64(), pa.float64())
    (True, False)
    >>> is_kept(pa.float32(), pa.float64()), is_kept(pa.float64(), pa.float32())
    (True, False)
    """
    types = arrow().types
    came, wanted = (t.value_type if types.is_dictionary(t) else t for t in (came, wanted))
    if came == wanted or types.is_null(came):
        return True
    if types.is_decimal(came) and types.is_decimal(wanted):
        digits = came.precision - came.scale <= wanted.precision - wanted.scale
        return bool(digits and came.scale <= wanted.scale)
    if types.is_floating(came) and types.is_floating(wanted):
        return bool(came.bit_width <= wanted.bit_width)
    if types.is_integer(came):
        return _bits_of(came) <= _room_for(came, wanted)
    return any(str(came) in kinds and str(wanted) in kinds for kinds in (_TEXTS, _BYTES))


def as_type(column: Any, wanted: Any) -> Any:
    """Give a column a type that keeps its values."""
    if column.type == wanted:
        return column
    is_dictionary = arrow().types.is_dictionary
    if is_dictionary(column.type) and not is_dictionary(wanted):
        column = column.dictionary_decode()
    return column.cast(wanted)


def _bits_of(whole: Any) -> int:
    """Bits of the absolute value of a whole number."""
    return int(whole.bit_width) - int(arrow().types.is_signed_integer(whole))


def _room_for(came: Any, wanted: Any) -> int:
    """Bits of whole numbers that a type holds; -1 if it does not hold those below 0."""
    types = arrow().types
    if types.is_floating(wanted):
        return _WHOLE_BITS[wanted.bit_width]
    if not types.is_integer(wanted):
        return -1
    is_unsigned = not types.is_signed_integer(wanted)
    return -1 if is_unsigned and types.is_signed_integer(came) else _bits_of(wanted)

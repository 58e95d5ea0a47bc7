"""Bytes in, arrays and a document out; no byte is trusted.

A safetensors file is eight bytes with the length of its header, the header in JSON, and the
numbers. The header says type, shape and place of each array, and carries one entry of free text,
in which the document of the model stands.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, BinaryIO, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.errors import InvalidInputError
from counterlvq.files import MOST_BYTES, read_at_most
from counterlvq.persistence.json_reading import Fields, digits, parse
from counterlvq.persistence.refusals import Refusal

__all__ = ["Contents", "pack", "unpack"]

# The one entry of free text in the header; a file without it is some other safetensors file.
_ENTRY = "counterlvq"
_METADATA = "__metadata__"
# Names of columns and classes; numbers are not in the header.
_MOST_HEADER = 1 << 24
_TYPES = {"F64": np.dtype("<f8"), "I64": np.dtype("<i8")}


@final
@dataclass(frozen=True, eq=False)
class Contents:
    """What stands in a file: a document, and arrays of doubles and of whole numbers."""

    document: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]
    size: int = 0  # bytes of the file that it was read from


def pack(contents: Contents) -> bytes:
    """Write contents as the bytes of a safetensors file; the same contents, the same bytes."""
    from safetensors.numpy import save

    text = json.dumps(contents.document, ensure_ascii=True, allow_nan=False, sort_keys=True)
    arrays = {name: np.ascontiguousarray(array) for name, array in contents.arrays.items()}
    packed = save(arrays, {_ENTRY: text})
    if _header_size(packed[:8]) > _MOST_HEADER:
        raise InvalidInputError(
            f"the names of columns, levels and classes take {_header_size(packed[:8])} bytes; "
            f"expected at most {_MOST_HEADER}. Give classes and levels shorter names."
        )
    return packed


def unpack(file: BinaryIO, max_bytes: int | None) -> Contents:
    """Read the contents of a file, or say in a `Refusal` why there are none."""
    most = MOST_BYTES if max_bytes is None else max_bytes
    prefix = read_at_most(file, 8)
    size = _header_size(prefix)
    if len(prefix) < 8 or not 2 <= size <= _MOST_HEADER:
        raise Refusal("this is no safetensors file.")
    _check_size(file, 8 + size, most)
    header = read_at_most(file, size)
    if len(header) < size:
        raise Refusal(f"the file ends after {8 + len(header)} bytes, within its header.")
    table = parse(header, "the header")
    if not isinstance(table, dict):
        raise Refusal("the header is no object, so this is no safetensors file.")
    document = _document(table)
    entries = [_entry(name, told) for name, told in table.items() if name != _METADATA]
    expected = _extent(entries)
    whole = 8 + size + expected
    _check_size(file, whole, most)
    numbers = read_at_most(file, expected + 1)
    if len(numbers) != expected:
        more = "more" if len(numbers) > expected else f"{len(numbers)}"
        raise Refusal(
            f"the header announces {expected} bytes of numbers and {more} follow; the file is cut "
            f"off or has been added to."
        )
    return Contents(document, {entry.name: entry.array(numbers) for entry in entries}, whole)


def _header_size(prefix: bytes) -> int:
    return int.from_bytes(prefix, "little")


def _document(table: dict[str, Any]) -> Mapping[str, Any]:
    if _METADATA not in table:
        raise Refusal("this is a safetensors file of another program: it holds no model.")
    metadata = Fields(table[_METADATA], _METADATA)
    text = metadata.take(_ENTRY, str)
    metadata.done()
    document = parse(text, "the document")
    if not isinstance(document, dict):
        raise Refusal("the document is no object.")
    return document


class _Entry(NamedTuple):
    """Where an array stands; its shape takes exactly the bytes between start and end."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    end: int

    def array(self, numbers: bytes) -> NDArray[Any]:
        """See the array in the numbers of the file, without a copy."""
        count = (self.end - self.start) // self.dtype.itemsize
        return np.frombuffer(numbers, self.dtype, count, self.start).reshape(self.shape)


def _entry(name: str, told: Any) -> _Entry:
    shown = repr(name[:80])
    entry = Fields(told, f"the entry of {shown}")
    kind = entry.take("dtype", str)
    if kind not in _TYPES:
        raise Refusal(f"{shown} has the type {kind[:80]!r}; expected one of {', '.join(_TYPES)}.")
    shape: list[int] = entry.items("shape", int)
    offsets: list[int] = entry.items("data_offsets", int)
    entry.done()
    if len(offsets) != 2 or not 0 <= offsets[0] <= offsets[1] < 1 << 63:
        raise Refusal(f"{shown} has no place in the file.")
    if not 1 <= len(shape) <= 2 or not all(1 <= length < 1 << 60 for length in shape):
        raise Refusal(
            f"{shown} has {len(shape)} dimension(s), of {', '.join(map(digits, shape[:4]))}; "
            f"expected one or two, each of at least 1."
        )
    if prod(shape) * 8 != offsets[1] - offsets[0]:
        raise Refusal(
            f"{shown} has the shape {tuple(shape)} and {offsets[1] - offsets[0]} bytes from "
            f"{offsets[0]} on; expected {prod(shape) * 8}."
        )
    return _Entry(name, _TYPES[kind], tuple(shape), offsets[0], offsets[1])


def _extent(entries: list[_Entry]) -> int:
    """How many bytes of numbers there are: arrays follow each other, with nothing between them."""
    end = 0
    for entry in sorted(entries, key=lambda one: one.start):
        if entry.start != end:
            raise Refusal(
                f"{entry.name[:80]!r} begins at byte {entry.start} of the numbers; expected "
                f"{end}, where the array before it ends."
            )
        end = entry.end
    return end


def _check_size(file: BinaryIO, needed: int, max_bytes: int) -> None:
    if needed > max_bytes:
        raise Refusal.too_large("the header announces a file of", needed, max_bytes)
    try:
        told = os.fstat(file.fileno())
    except (AttributeError, OSError):
        return  # a stream without a size; it is read piece by piece
    if stat.S_ISREG(told.st_mode) and told.st_size < needed:
        raise Refusal(
            f"the header announces a file of {needed} bytes and there are {told.st_size}; the file "
            f"is cut off."
        )

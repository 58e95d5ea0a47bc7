"""Records that compiled code reads by name, through one pointer each."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.lazy import cached_property

__all__ = ["Layout", "Record", "slots_of"]

# Name, type of the entries, and dimensions of each field; -1 dimensions are a plain number.
Layout = tuple[tuple[str, str, int], ...]

_NUMBERS = {bool: "bool", int: "int64", float: "float64"}


class Record:
    """Base of frozen dataclasses of arrays and numbers that are handed to compiled code.

    A function that takes a hundred arrays one by one takes long to compile, and to call. Compiled
    code gets the address of one table instead, with the address and shape of each array and the
    numbers themselves; `numeric.jit` says how it is read. The arrays are C-contiguous, and a
    caller keeps the record for as long as compiled code runs.
    """

    @cached_property
    def layout(self) -> Layout:
        """What the fields are, in the order of the table."""
        return tuple((field.name, *_kind(getattr(self, field.name))) for field in fields(self))  # type: ignore[arg-type]

    @cached_property
    def address(self) -> int:
        """Where the table of this record starts, in bytes."""
        return self._table.ctypes.data

    @cached_property
    def _table(self) -> NDArray[np.int64]:
        table = np.empty(slots_of(self.layout)[1], dtype=np.int64)
        at = 0
        for name, dtype, dimensions in self.layout:
            value = getattr(self, name)
            if dimensions < 0:
                table[at : at + 1].view(np.float64 if dtype == "float64" else np.int64)[0] = value
            else:
                if not value.flags.c_contiguous:
                    raise ValueError(f"{type(self).__name__}.{name} is not C-contiguous")
                table[at : at + 1 + dimensions] = value.ctypes.data, *value.shape
            at += 1 + max(dimensions, 0)
        return table

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return sum(getattr(getattr(self, name), "nbytes", 0) for name, _, _ in self.layout)

    def __getstate__(self) -> dict[str, Any]:
        # An address means nothing to a copy, which has arrays of its own.
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


def _kind(value: Any) -> tuple[str, int]:
    if isinstance(value, np.ndarray):
        return value.dtype.name, value.ndim
    return _NUMBERS[type(value)], -1


def slots_of(layout: Layout) -> tuple[dict[str, int], int]:
    """Say where in the table the entries of each field start, and how many there are in all."""
    starts, at = dict[str, int](), 0
    for name, _, dimensions in layout:
        starts[name] = at
        at += 1 + max(dimensions, 0)
    return starts, at

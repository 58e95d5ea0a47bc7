"""Records that compiled code reads by name, through one pointer each."""

from __future__ import annotations

import struct
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.lazy import cached_property

__all__ = ["Layout", "Record", "slots_of"]

# Name, type of the entries, and dimensions of each field; -1 dimensions are a plain number.
Layout = tuple[tuple[str, str, int], ...]

_NUMBERS = {bool: "bool", int: "int64", float: "float64"}
# Layouts by class, then by the kinds of the values: one object for all records that share it.
_LAYOUTS: dict[type, dict[tuple[Any, ...], Layout]] = {}
_AS_INTEGER = struct.Struct("=q")
_AS_FLOAT = struct.Struct("=d")


class Record:
    """Base of frozen dataclasses of arrays and numbers that are handed to compiled code.

    A function that takes a hundred arrays one by one takes long to compile, and to call. Compiled
    code gets the address of one table instead, with the address and shape of each array and the
    numbers themselves; `numeric.jit` says how it is read. The arrays are C-contiguous, and a
    caller keeps the record for as long as compiled code runs.
    """

    @cached_property
    def layout(self) -> Layout:
        """What the fields are, in the order of the table; the same object for equal ones."""
        values = self._values
        key = tuple(
            (value.dtype, value.ndim) if isinstance(value, np.ndarray) else type(value)
            for value in values
        )
        known = _LAYOUTS.setdefault(type(self), {})
        if key not in known:
            names = [field.name for field in fields(self)]  # type: ignore[arg-type]
            kinds = map(_kind, values)
            layout = tuple((name, *kind) for name, kind in zip(names, kinds, strict=True))
            known.setdefault(key, layout)
        return known[key]

    @property
    def _values(self) -> list[Any]:
        own = self.__dict__
        return [own[name] for name in self.__dataclass_fields__]  # type: ignore[attr-defined]

    @cached_property
    def address(self) -> int:
        """Where the table of this record starts, in bytes."""
        return self._table.ctypes.data

    @cached_property
    def _table(self) -> NDArray[np.int64]:
        slots = list[int]()
        for value, (name, dtype, dimensions) in zip(self._values, self.layout, strict=True):
            if dimensions >= 0:
                if not value.flags.c_contiguous:
                    raise ValueError(f"{type(self).__name__}.{name} is not C-contiguous")
                slots.append(value.__array_interface__["data"][0])
                slots += value.shape
            elif dtype == "float64":
                slots += _AS_INTEGER.unpack(_AS_FLOAT.pack(value))
            else:
                slots.append(int(value))
        return np.array(slots, dtype=np.int64)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return sum(value.nbytes for value in self._values if isinstance(value, np.ndarray))

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

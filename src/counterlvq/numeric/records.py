"""Records that compiled code reads by name, through one pointer each."""

from __future__ import annotations

import ctypes
import struct
from array import array
from dataclasses import fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.lazy import cached_property

__all__ = ["Layout", "Record", "slots_of"]

# Name, type of the entries, and dimensions of each field; -1 dimensions are a plain number.
Layout = tuple[tuple[str, str, int], ...]

_NUMBERS = {bool: "bool", int: "int64", float: "float64"}
_NAMES = {np.dtype(kind): name for kind, name in _NUMBERS.items()}
# Layouts by class, then by the kinds of the values: one object for all records that share it.
_LAYOUTS: dict[type, dict[tuple[Any, ...], Layout]] = {}
# By the id of a layout: position of each field, and where its entries start.
_POSITIONS: dict[int, dict[str, tuple[int, int]]] = {}
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
        return self._table.buffer_info()[0]

    @cached_property
    def _table(self) -> array[int]:
        table = array("q")
        for value, (name, dtype, dimensions) in zip(self._values, self.layout, strict=True):
            table.extend(self._slots(value, name, dtype, dimensions))
        return table

    def _slots(self, value: Any, name: str, dtype: str, dimensions: int) -> tuple[int, ...]:
        """Entries of the table for one field."""
        if dimensions >= 0:
            if not value.flags.c_contiguous:
                raise ValueError(f"{type(self).__name__}.{name} is not C-contiguous")
            return _address_of(value), *value.shape
        if dtype == "float64":
            return _AS_INTEGER.unpack(_AS_FLOAT.pack(value))
        return (int(value),)

    def replaced(self, **changes: Any) -> Self:
        """As `dataclasses.replace`, for records of which many are made of one.

        The table is taken over but for the fields that change, so that few addresses are asked for.
        """
        out = object.__new__(type(self))
        own, at = out.__dict__, self._positions
        own.update(zip(at, self._values, strict=True))
        own.update(changes)
        table, layout = self._table[:], self.layout
        for name, value in changes.items():
            place, start = at[name]
            _, dtype, dimensions = layout[place]
            if _kind(value) != (dtype, dimensions):
                return out  # which has a layout of its own
            for k, slot in enumerate(self._slots(value, name, dtype, dimensions), start):
                table[k] = slot
        own["layout"], own["_table"] = layout, table
        return out

    def replaced_each(self, **changes: NDArray[Any]) -> list[Self]:
        """As `replaced` for many records: `changes` have an axis more in front, for these.

        Each record has a part of the arrays, whose addresses follow from the first one.
        """
        parts = {name: np.ascontiguousarray(values) for name, values in changes.items()}
        count = len(next(iter(parts.values())))
        if not count:
            return []
        first = self.replaced(**{name: values[0] for name, values in parts.items()})
        tables = np.tile(np.array(first._table, dtype=np.int64), (count, 1))
        for name, values in parts.items():
            if values[0].size:
                _, start = first._positions[name]
                tables[:, start] += values.strides[0] * np.arange(count)
        listed = list[Self]()
        known, layout = dict(zip(self._positions, first._values, strict=True)), first.layout
        for k, table in enumerate(tables):
            out = object.__new__(type(self))
            own = out.__dict__
            own.update(known)
            for name, values in parts.items():
                own[name] = values[k]
            own["layout"], own["_table"] = layout, array("q", table.tobytes())
            listed.append(out)
        return listed

    @property
    def _positions(self) -> dict[str, tuple[int, int]]:
        """Position of each field, and where its entries start in the table."""
        layout = self.layout
        known = _POSITIONS.get(id(layout))  # which is kept for ever
        if known is None:
            starts, _ = slots_of(layout)
            known = {name: (k, starts[name]) for k, (name, *_) in enumerate(layout)}
            _POSITIONS[id(layout)] = known
        return known

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return sum(value.nbytes for value in self._values if isinstance(value, np.ndarray))

    def __getstate__(self) -> dict[str, Any]:
        # An address means nothing to a copy, which has arrays of its own.
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


def _address_of(entries: NDArray[Any]) -> int:
    """Where the entries of an array start; 0 where there are none to be read."""
    if not entries.size:
        return 0
    if not entries.flags.writeable:
        return int(entries.__array_interface__["data"][0])
    # A fifth of the time: batches of many levels make tens of thousands of these.
    return ctypes.addressof(ctypes.c_char.from_buffer(entries.data))


def _kind(value: Any) -> tuple[str, int]:
    if isinstance(value, np.ndarray):
        return _NAMES[value.dtype], value.ndim
    return _NUMBERS[type(value)], -1


def slots_of(layout: Layout) -> tuple[dict[str, int], int]:
    """Say where in the table the entries of each field start, and how many there are in all."""
    starts, at = dict[str, int](), 0
    for name, _, dimensions in layout:
        starts[name] = at
        at += 1 + max(dimensions, 0)
    return starts, at

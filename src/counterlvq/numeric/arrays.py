"""Checked, read-only arrays: every number from outside passes through here once."""

from __future__ import annotations

import operator
from collections.abc import Hashable, Iterable, Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterlvq.errors import InvalidInputError

__all__ = [
    "Floats",
    "finite_matrix",
    "finite_scalar",
    "finite_vector",
    "has_names",
    "key_of",
    "once",
    "plain",
    "read_only",
    "real_number",
    "refuse_masked",
    "told",
]

Floats = NDArray[np.float64]


class _Number:
    """Marks keys that stand for numbers; nothing else is equal to it.

    The class itself is the mark: copies and pickles of keys keep it, as they keep no bare object.
    """


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array itself, made immutable."""
    array.setflags(write=False)
    return array


def plain(value: Any) -> Any:
    """Turn a scalar of NumPy or Arrow into the value it stands for; leave the rest alone."""
    if isinstance(value, np.generic):
        found = value.item()
        # Of dates and durations to the nanosecond NumPy makes a count, which is no date.
        is_count = isinstance(found, int) and isinstance(value, np.datetime64 | np.timedelta64)
        return value if is_count else found
    return value.as_py() if hasattr(value, "as_py") else value


def key_of(value: Any) -> Hashable:
    """Return what stands for a value in a dict or a set: equal for equal values, and for no others.

    Whoever chooses numbers can choose them so that they get into each other's way in a dict, which
    then takes time in the square of their count: Python hashes numbers by a rule that is known. It
    hashes text with a secret of each process, so numbers are written out.

    Examples
    --------
    >>> key_of(1) == key_of(1.0) == key_of(True), key_of(1) == key_of("1"), key_of("1")
    (True, False, '1')
    """
    if type(value) is str:
        return value
    if type(value) is int:  # as most numbers are that name something
        return _Number, f"{value:x}"
    found: Hashable = plain(value)
    if not isinstance(found, Number) or isinstance(found, np.timedelta64):
        return found
    number: Any = found
    if isinstance(number, complex) and number.imag == 0:
        number = number.real
    try:
        whole = int(number)
        if whole == number:
            return _Number, f"{whole:x}"
        near = float(number)
        return (_Number, near.hex()) if near == number else found
    except (TypeError, ValueError, ArithmeticError):  # NaN, an infinity, or no real number
        return found


def once(values: Iterable[Any]) -> list[Any]:
    """List values once each, in the order in which they first appear.

    Examples
    --------
    >>> once(["b", 1, "a", 1.0, "b"])
    ['b', 1, 'a']
    """
    seen: dict[Hashable, Any] = {}
    for value in values:
        seen.setdefault(key_of(value), value)
    return list(seen.values())


def told(value: Any, most: int = 80) -> str:
    """Show a value in an error: never longer than a line, whatever it is.

    Python refuses to write whole numbers of thousands of digits, and a name may have a million
    letters.

    Examples
    --------
    >>> told("yes"), told("ab" * 500, most=12), told(10**5000)
    ("'yes'", "'abababab...", 'a whole number of 16,610 bits')
    """
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 4 * most:
        return f"a whole number of {value.bit_length():,} bits"
    try:
        shown = repr(value[:most] if isinstance(value, str | bytes) else value)
    except ValueError:  # a container of such numbers
        return f"a {type(value).__name__} that is too long to show"
    is_whole = len(shown) <= most and not (isinstance(value, str | bytes) and len(value) > most)
    return shown if is_whole else f"{shown[: most - 3]}..."


def refuse_masked(name: str, value: Any) -> None:
    """Refuse values that are masked out: an array made of them would hold what they hide."""
    if isinstance(value, list | tuple) and np.ma.MaskedArray in set(map(type, value)):
        for k, part in enumerate(value):
            refuse_masked(f"{name}[{k}]", part)
    if not isinstance(value, np.ma.MaskedArray):
        return
    mask: NDArray[Any] = np.ma.getmaskarray(value)
    masks = [mask] if mask.dtype.names is None else [mask[name] for name in mask.dtype.names]
    count = sum(int(part.sum()) for part in masks)
    if count:
        raise InvalidInputError(
            f"{name} is a masked array with {count} masked value(s); expected a value everywhere. "
            f"Fill them in with `.filled(...)`, or remove them first."
        )


def has_names(value: Any) -> bool:
    """Whether columns, or the entries of a row, carry names: these are never read by position.

    No library is imported to find out.
    """
    kind = type(value)
    if kind is np.ndarray:
        return value.dtype.names is not None
    if isinstance(value, list | tuple) and not hasattr(kind, "_fields"):
        samples = {type(part): part for part in value}
        return any(has_names(part) for part in samples.values() if type(part) not in _SCALARS)
    if hasattr(kind, "iloc") and not hasattr(kind, "columns"):  # a row, or one column
        return any(not isinstance(label, int | np.integer) for label in value.index)
    library = kind.__module__.partition(".")[0]
    return (
        isinstance(value, Mapping)
        or any(hasattr(kind, mark) for mark in _MARKS)
        or getattr(getattr(value, "dtype", None), "names", None) is not None  # structured
        or str(getattr(value, "type", "")).startswith("struct<")  # rows as an Arrow array
        or (library == "polars" and str(getattr(value, "dtype", "")).startswith("Struct"))
        # Single columns stream too, but in other libraries nothing here tells them apart.
        or (hasattr(kind, "__arrow_c_stream__") and library not in _LIBRARIES)
    )


# What rows and tables have, and arrays do not: named tuples, frames, Arrow, SQLite, xarray.
_MARKS = (
    "_fields", "columns", "column_names", "schema", "projected_schema", "__dataframe__", "keys",
    "coords",
)  # fmt: skip
_LIBRARIES = ("pandas", "polars", "pyarrow")
_SCALARS = (int, float, bool, str)


def finite_matrix(name: str, value: ArrayLike, columns: int | None = None) -> Floats:
    """Copy `value` into a read-only float matrix, or say what is wrong with it."""
    matrix = _floats(name, value)
    if matrix.ndim != 2:
        raise InvalidInputError(
            f"{name} has {matrix.ndim} dimension(s) and shape {matrix.shape}; expected a "
            f"two-dimensional array, one row per item. Reshape a single row with "
            f"`.reshape(1, -1)`."
        )
    if matrix.shape[0] == 0 or matrix.shape[1] == 0:
        raise InvalidInputError(
            f"{name} is empty (shape {matrix.shape}); expected at least one row and one column."
        )
    if columns is not None and matrix.shape[1] != columns:
        raise InvalidInputError(
            f"{name} has {matrix.shape[1]} columns; expected {columns}, one per feature."
        )
    _refuse_non_finite(name, matrix)
    return matrix


def finite_vector(name: str, value: ArrayLike, length: int | None = None) -> Floats:
    """Copy `value` into a read-only float vector, or say what is wrong with it."""
    vector = _floats(name, value)
    if vector.ndim != 1:
        raise InvalidInputError(
            f"{name} has {vector.ndim} dimension(s) and shape {vector.shape}; expected a "
            f"one-dimensional array."
        )
    if length is not None and vector.shape[0] != length:
        raise InvalidInputError(
            f"{name} has {vector.shape[0]} values; expected {length}, one per feature."
        )
    _refuse_non_finite(name, vector)
    return vector


def finite_scalar(name: str, value: float) -> float:
    """Return `value` as a finite float, or say what is wrong with it."""
    number = real_number(name, value)
    if not np.isfinite(number):
        raise InvalidInputError(f"{name} is {number}; expected a finite number.")
    return number


def real_number(name: str, value: float) -> float:
    """Return `value` as a float that may be infinite but not NaN."""
    try:
        given: Any = value
        if isinstance(given, np.timedelta64 | np.datetime64):
            raise TypeError("a duration is no number before its unit is said")
        number = float(operator.pos(value))  # text has no sign, so "5" is refused
    except OverflowError:
        raise InvalidInputError(
            f"{name} is {told(value)}; expected a number of at most 1.8e308, which floats hold."
        ) from None
    except (TypeError, ValueError):
        raise InvalidInputError(f"{name} is {told(value)}; expected a number.") from None
    if np.isnan(number):
        raise InvalidInputError(f"{name} is NaN; expected a number.")
    return number


def _floats(name: str, value: ArrayLike) -> Floats:
    if type(value) is np.ndarray and value.dtype == np.float64:
        return read_only(np.array(value, order="C"))  # nothing can be wrong but the values
    if has_names(value):
        raise InvalidInputError(
            f"{name} is a {type(value).__name__} whose entries have names, but is read by "
            f"position; expected a plain array. Bring the entries into the order of the features "
            f"and pass their values alone, as `.to_numpy()` gives them."
        )
    refuse_masked(name, value)
    try:
        found = np.array(value, order="C", subok=False)
        _refuse_other_kinds(found)
        with np.errstate(over="ignore"):  # then it is infinite, and said to be
            array = found.astype(np.float64, copy=False)
    except OverflowError:
        raise InvalidInputError(
            f"{name} holds a whole number above 1.8e308, which no float can hold; expected smaller "
            f"numbers."
        ) from None
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{name} cannot be read as an array of numbers ({error}); expected real numbers "
            f"only. Encode text and categories first."
        ) from None
    return read_only(array)


# Kinds of NumPy types that would pass for numbers, and mean something else.
_OTHER_KINDS = {
    "c": "complex numbers",
    "U": "text",
    "S": "bytes",
    "M": "dates",
    "m": "durations",
}
_OTHER_TYPES = {str: "U", bytes: "S", np.datetime64: "M", np.timedelta64: "m", complex: "c"}


def _refuse_other_kinds(array: NDArray[Any]) -> None:
    """Text that reads like a number is no number, and a date is none since some day."""
    kind: str = array.dtype.kind
    if kind == "O":
        types = set(map(type, array.flat))
        told_by = (_OTHER_TYPES[t] for t in _OTHER_TYPES if any(issubclass(u, t) for u in types))
        kind = next(told_by, "O")
    if kind in _OTHER_KINDS:
        raise TypeError(f"it holds {_OTHER_KINDS[kind]}")


def _refuse_non_finite(name: str, array: Floats) -> None:
    finite = np.isfinite(array)
    if finite.all():
        return
    bad = ~finite
    where: Sequence[int] = [int(i) for i in np.argwhere(bad)[0]]
    place = ", ".join(str(i) for i in where)
    raise InvalidInputError(
        f"{name}[{place}] is {array[tuple(where)]} ({int(bad.sum())} such value(s) in all); "
        f"expected finite numbers. Fill in or remove missing values first."
    )

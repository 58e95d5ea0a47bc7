"""Decimals: of Arrow as floats, each as the float next to it, and those that floats have."""

from __future__ import annotations

from typing import Any

import numpy as np

from counterlvq.numeric.arrays import Floats

__all__ = ["found_decimals", "nearest_floats"]

# Powers of ten, and whole numbers, that floats hold exactly: their quotient is rounded once.
_MOST_SCALE, _MOST_EXACT = 22, 1 << 53
# Decimals that are told of a column of floats, and the rows with a value that it takes.
_MOST_FOUND, _FEWEST = 6, 20
_BYTES = 16  # of a decimal of 128 bits, in two words


def nearest_floats(column: Any) -> Floats:
    """Read a column of decimals, NaN where nothing stands.

    Casts of Arrow round more than once, so that what is written as decimals would not be read as
    the numbers that were proved.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Of decimals of any width.

    Examples
    --------
    >>> import decimal, pyarrow as pa
    >>> cells = [decimal.Decimal("0.10"), None, decimal.Decimal("-12.34")]
    >>> nearest_floats(pa.chunked_array([pa.array(cells, pa.decimal128(9, 2))]))
    array([  0.1 ,    nan, -12.34])
    """
    return np.concatenate([np.empty(0), *map(_floats, column.chunks)])


def found_decimals(values: Floats) -> int | None:
    """Count the decimals that suffice for every value of a column; None for many, or few rows.

    Examples
    --------
    >>> cents = np.arange(30.0) / 100
    >>> found_decimals(cents), found_decimals(np.sqrt(cents)), found_decimals(cents[:3])
    (2, None, None)
    """
    there = values[np.isfinite(values)]
    if len(there) < _FEWEST or np.abs(there).max() * 10**_MOST_FOUND >= _MOST_EXACT:
        return None
    for decimals in range(_MOST_FOUND + 1):
        # A whole number over a power of ten, rounded once: the float that is written so.
        if (np.rint(there * 10**decimals) / 10**decimals == there).all():
            return decimals
    return None


def _floats(chunk: Any) -> Floats:
    out = np.full(len(chunk), np.nan)
    is_there = np.asarray(chunk.is_valid().to_numpy(zero_copy_only=False), dtype=bool)
    slow = is_there
    if chunk.type.byte_width == _BYTES and 0 <= chunk.type.scale <= _MOST_SCALE and is_there.any():
        words = np.frombuffer(chunk.buffers()[1], dtype="<i8").reshape(-1, 2)
        low, high = words[chunk.offset : chunk.offset + len(chunk)].T
        is_exact = (high == low >> 63) & (low >= -_MOST_EXACT) & (low <= _MOST_EXACT) & is_there
        out[is_exact] = low[is_exact] / 10.0**chunk.type.scale
        slow = is_there & ~is_exact
    for i in np.flatnonzero(slow).tolist():
        out[i] = float(chunk[i].as_py())
    return out

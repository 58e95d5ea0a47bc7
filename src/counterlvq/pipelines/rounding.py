"""How far floating-point results are from the numbers that they stand for.

Every function here returns values together with bounds that hold for any order of summation, with
or without fused multiplication. A bound is itself computed in floating point; the places that
use one widen it by `SAFE`, which covers the rounding of the bound as well.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.error_free import split_product, split_sum
from counterlvq.numeric.tolerances import EPSILON, SAFE, SUM_UNDERFLOW

__all__ = [
    "Doubled",
    "difference",
    "product_blur",
    "product_plus",
    "scaled_blur",
    "summed",
    "summed_along",
]

# Products that are held at once.
_PRODUCTS_AT_ONCE = 1 << 16


class Doubled(NamedTuple):
    """Numbers as unevaluated sums of two floats, the second of which is rounding of the first."""

    high: Floats
    low: Floats


def difference(a: Floats, b: Floats) -> Doubled:
    """Take ``a - b`` without any error."""
    return Doubled(*split_sum(a, -b))


def product_plus(a: Floats, b: Floats, c: Floats) -> tuple[Floats, Floats]:
    """Return ``a * b + c``, rounded about once, and a bound on its error."""
    product, error = split_product(a, b)
    total, carried = split_sum(product, c)
    found = total + (carried + error)
    rest = EPSILON * (np.abs(carried) + np.abs(error))
    return found, SAFE * (EPSILON * np.abs(found) + rest + SUM_UNDERFLOW)


def scaled_blur(values: Floats, blur: Floats, factor: Floats) -> Floats:
    """Bound on the error of ``values * factor`` where `factor` is exact.

    One product is rounded once; products with 0, 1 and -1 are not rounded at all.
    """
    exact = (np.abs(factor) == 1) | (np.abs(values) == 1) | (values == 0) | (factor == 0)
    rounding = np.where(exact, 0.0, EPSILON * np.abs(values * factor) + SUM_UNDERFLOW)
    return np.asarray(SAFE * (blur * np.abs(factor) + rounding))


def product_blur(A: Floats, A_blur: Floats | None, B: Floats, B_blur: Floats | None) -> Floats:
    """Bound on the error of the matrix product ``A @ B``, entry by entry; or of many of them.

    A sum of n products is off by ``n u / (1 - n u)`` of the sum of their sizes at most; products
    with 0 do not count, and one product with 1 or -1 is exact.
    """
    sizes, others = np.abs(A), np.abs(B)
    counts = (A != 0).astype(np.float64) @ (B != 0)
    plain = (counts <= 1) & ((sizes <= 1) & (sizes == np.round(sizes))).all(axis=-1)[..., None]
    plain |= (counts <= 1) & ((others <= 1) & (others == np.round(others))).all(axis=-2)[
        ..., None, :
    ]
    blur = np.where(plain, 0.0, 2.0 * EPSILON * counts * (sizes @ others) + SUM_UNDERFLOW)
    if B_blur is not None:
        blur += sizes @ B_blur
    if A_blur is not None:
        blur += A_blur @ others
    if A_blur is not None and B_blur is not None:
        blur += A_blur @ B_blur
    return np.asarray(SAFE * blur)


def summed(A: Floats, rows: Doubled, start: Doubled) -> tuple[Doubled, Floats]:
    """Sum up ``start + rows @ A.T`` in about twice the precision; also a bound on its error.

    Products and sums are split into a float and its exact error (Dekker, Knuth), and the errors
    are summed up beside (Ogita, Rump and Oishi). What is lost is rounding of those errors: with
    n terms they come to ``3 n u`` of the sum of sizes at most and are summed with a relative error
    of ``3 n u``; ``(4 (n + 2) u)^2`` covers both and the low parts. With one axis more in front,
    many sums are taken, each as if it were alone.
    """
    A = A.reshape((*(1,) * (rows.high.ndim - A.ndim), *A.shape))  # one for all, if it is one
    shape = (*rows.high.shape[:-1], A.shape[-2])
    high, low = (np.broadcast_to(part, shape).copy() for part in start)
    size = max(1, _PRODUCTS_AT_ONCE // max(1, high.size))
    reached = _rows_reached(A) if size == 1 else [slice(None)] * A.shape[-1]
    for first in range(0, A.shape[-1], size):
        # All products at first, (columns, ..., n, k): then few steps are left to take in turn.
        part, at = slice(first, first + size), reached[first]
        columns = np.moveaxis(A[..., at, part], -1, 0)[..., None, :]
        ahead, behind = (np.moveaxis(half[..., part], -1, 0)[..., None] for half in rows)
        products, errors = split_product(ahead, columns)
        errors += behind * columns
        if not columns.all():  # where infinity times 0 would be no number
            products, errors = (np.where(columns != 0, part, 0.0) for part in (products, errors))
        for product, error in zip(products, errors, strict=True):
            high[..., at], carried = split_sum(high[..., at], product)
            low[..., at] += carried + error
    sizes = np.abs(rows.high) @ np.abs(A).swapaxes(-1, -2) + np.abs(start.high)
    terms = A.shape[-1] + 2
    error = SAFE * ((4.0 * terms * EPSILON) ** 2 * sizes + SUM_UNDERFLOW)
    return Doubled(*split_sum(high, low)), error


def _rows_reached(A: Floats) -> list[slice]:
    """Say from which row to which each column of matrices has entries: others add nothing."""
    used = (A != 0).reshape(-1, *A.shape[-2:]).any(axis=0)
    first, behind = used.argmax(axis=0), len(used) - used[::-1].argmax(axis=0)
    ends = np.where(used.any(axis=0), behind, first)
    return [slice(a, b) for a, b in zip(first.tolist(), ends.tolist(), strict=True)]


def summed_along(slopes: Floats, rows: Doubled, start: Doubled) -> tuple[Doubled, Floats]:
    """As `summed` for a matrix with `slopes` (d,) on its diagonal: one product in each sum."""
    product, error = split_product(rows.high, slopes)
    high, carried = split_sum(start.high, product)
    low = start.low + (carried + (error + rows.low * slopes))
    sizes = np.abs(rows.high) * np.abs(slopes) + np.abs(start.high)
    return Doubled(*split_sum(high, low)), SAFE * ((4.0 * 3 * EPSILON) ** 2 * sizes + SUM_UNDERFLOW)

"""Sums and products whose rounding is kept: what a float cannot hold stands in a second one.

The classical error-free transformations (Dekker, Knuth) hold as long as nothing overflows and no
remainder falls below the smallest float. Callers scale by powers of two, which is exact.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import EPSILON, LEAST_SPLIT, SPLITTER

__all__ = [
    "exact_sum",
    "gram_residual",
    "power_of_two",
    "rounded_dot",
    "split_product",
    "split_sum",
    "whole_numbers",
]

# Slices of a matrix whose columns have length 1 or so: see `gram_residual`.
_SLICES = 4


def split_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return ``a + b`` rounded, and what rounding left out."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def split_product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return ``a * b`` rounded, and what rounding left out."""
    product = a * b
    high_a, high_b = _high(a), _high(b)
    low_a, low_b = a - high_a, b - high_b
    return product, ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b


def _high(a: Floats) -> Floats:
    """Upper half of the digits of each number."""
    spread = SPLITTER * a
    return spread - (spread - a)


def power_of_two(values: Floats) -> int:
    """Exponent e for which all ``|values| < 2^e``; 0 if all are zero."""
    return int(np.frexp(np.abs(values).max(initial=0.0))[1])


def exact_sum(*factors: Floats) -> float | None:
    """Sum up products of two or three arrays, rounded once; None where some are too small.

    Numbers are at most 1 or so.
    """
    first, second, *third = np.broadcast_arrays(*factors)
    terms = list(split_product(first, second))
    size = np.abs(terms[0])
    for more in third:
        terms = [part for term in terms for part in split_product(term, more)]
        size = np.abs(terms[0])
    whole = np.all([factor != 0 for factor in (first, second, *third)], axis=0)
    if (size[whole] < LEAST_SPLIT).any():
        return None
    return math.fsum(np.concatenate([term.ravel() for term in terms]).tolist())


def rounded_dot(a: Floats, b: Floats) -> float:
    """Return ``a @ b`` of exact arithmetic, rounded once."""
    first, second = power_of_two(a), power_of_two(b)
    found = exact_sum(np.ldexp(a, -first), np.ldexp(b, -second))
    if found is not None:
        with np.errstate(over="ignore"):
            return float(np.ldexp(found, first + second))
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    return float(sum((Fraction(x) * Fraction(y) for x, y in pairs if x and y), Fraction(0)))


def whole_numbers(*matrices: Floats) -> tuple[list[NDArray[np.object_]], int]:
    """Write matrices of floats as matrices of Python's integers, all times the same 2^shift."""
    shift = 0
    for matrix in matrices:
        exponents = np.frexp(matrix[matrix != 0])[1]
        shift = max(shift, 53 - int(exponents.min(initial=53)))
    out = []
    for matrix in matrices:
        parts, exponents = np.frexp(matrix)
        whole = np.ldexp(parts, 53).astype(np.int64).astype(object)
        powers = (exponents.astype(np.int64) - 53 + shift).astype(object)
        out.append(_shifted(whole, np.where(matrix == 0, 0, powers)))
    return out, shift


def _shifted(whole: NDArray[np.object_], powers: NDArray[np.object_]) -> NDArray[np.object_]:
    pairs = zip(whole.ravel(), powers.ravel(), strict=True)
    flat = np.empty(whole.size, dtype=object)
    # Below 0 only where the digits end in as many zeros: `shift` makes every number whole.
    flat[:] = [n << p if p >= 0 else n >> -p for n, p in pairs]
    return flat.reshape(whole.shape)


def gram_residual(high: Floats, low: Floats, R: Floats) -> tuple[Floats, Floats]:
    """Compute ``high + low - R'R`` to about twice the digits of a float, and a bound on its error.

    Columns of `R` have length 2 at most. R is cut into slices of so few digits that BLAS adds
    up their products without rounding, in whatever order it likes.
    """
    n = max(R.shape)
    # A slice k holds multiples of 2^(-bits k) below 2^(-bits (k - 1)), the first up to 2.
    bits = (51 - math.ceil(math.log2(n))) // 2
    slices, rest = [], R
    for k in range(1, _SLICES + 1):
        grid = 2.0 ** (-bits * k)
        part = np.rint(rest / grid) * grid
        slices.append(part)
        rest = rest - part
    error = np.abs(R).T @ np.abs(rest)
    error = 2.0 * (error + error.T + np.abs(rest).T @ np.abs(rest))
    total, kept = split_sum(high, low)
    for i, first in enumerate(slices):
        for j, second in enumerate(slices[i:], start=i):
            product = first.T @ second
            for term in (product,) if i == j else (product, product.T):
                total, left = split_sum(total, -term)
                exact = (left == 0) | (kept == 0)
                kept = kept + left
                error += np.where(exact, 0.0, EPSILON * np.abs(kept))
    out = total + kept
    return out, 1.01 * (error + np.where(kept == 0, 0.0, EPSILON * np.abs(out)))

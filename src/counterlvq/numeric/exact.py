"""Exact arithmetic on floats: what decides where rounding could decide otherwise.

A float is a whole number times a power of two, so sums and products of floats are whole numbers
times powers of two as well. Python's integers hold them to the last bit.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats

__all__ = ["Scaled", "dot", "fraction", "scaled", "squared_distance"]

_MANTISSA = 53


@final
class Scaled(NamedTuple):
    """Whole numbers `units` times ``2 ** exponent``."""

    units: NDArray[np.object_]
    exponent: int


def scaled(values: Floats) -> Scaled:
    """Write finite floats as whole multiples of one power of two."""
    mantissa, exponent = np.frexp(values)
    whole = np.ldexp(mantissa, _MANTISSA).astype(np.int64).astype(object)
    used = exponent[values != 0]
    least = int(used.min()) if used.size else 0
    shift = np.where(values != 0, exponent - least, 0).astype(object)
    units = np.asarray(whole * 2**shift, dtype=object)
    return Scaled(units, least - _MANTISSA)


def fraction(units: int, exponent: int) -> Fraction:
    """Return ``units * 2 ** exponent``."""
    return Fraction(units << exponent) if exponent >= 0 else Fraction(units, 1 << -exponent)


def dot(a: Floats, b: Floats) -> Fraction:
    """Sum of products, exactly.

    Examples
    --------
    >>> import numpy as np
    >>> dot(np.array([1e16, 1.0, -1e16]), np.array([1.0, 1.0, 1.0]))
    Fraction(1, 1)
    """
    left, right = scaled(a), scaled(b)
    total = int((left.units * right.units).sum()) if a.size else 0
    return fraction(total, left.exponent + right.exponent)


def squared_distance(x: Floats, prototype: Floats, factor: Floats | None) -> Fraction:
    """``|factor (x - prototype)|^2``, exactly; the plain distance without a factor.

    A factor (d,) is one number per feature.
    """
    both = scaled(np.stack([x, prototype]))
    away, exponent = both.units[0] - both.units[1], both.exponent
    if factor is not None:
        rows = scaled(factor)
        away = rows.units * away if factor.ndim == 1 else rows.units @ away
        exponent += rows.exponent
    return fraction(int((away * away).sum()) if away.size else 0, 2 * exponent)

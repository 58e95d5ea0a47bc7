"""Small whole numbers as multipliers: where a box has no end, slopes have to cancel."""

from __future__ import annotations

from fractions import Fraction
from math import lcm

import numpy as np

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import HUGE

__all__ = ["in_whole_numbers"]

# How small they are. No claim rests on it.
_DENOMINATOR, _MOST_WHOLE = 1000, 2**40


def in_whole_numbers(values: Floats) -> Floats:
    """Small whole numbers in about the same proportions; the same numbers if there are none."""
    largest = float(np.abs(values).max(initial=0.0))
    if not 0.0 < largest < HUGE:
        return values
    shares = [Fraction(value / largest).limit_denominator(_DENOMINATOR) for value in values]
    common = lcm(*(share.denominator for share in shares))
    return np.array([float(share * common) for share in shares]) if common < _MOST_WHOLE else values

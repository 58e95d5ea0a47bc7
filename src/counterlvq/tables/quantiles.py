"""Quantiles that tell of no single row: at least ten rows lie at or beyond each of them."""

from __future__ import annotations

from math import ceil, floor

import numpy as np

from counterlvq.numeric.arrays import Floats

__all__ = ["FEWEST", "PROBABILITIES", "inner_quantiles", "seen_range"]

# Of the quantiles that are kept; the ends stand for the lowest and the highest that may be told.
PROBABILITIES = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
# Rows that lie at or beyond each quantile, at the least.
FEWEST = 10


def inner_quantiles(ordered: Floats) -> tuple[float, ...]:
    """Values of rows: of the lower half rounded up, of the upper half down, ten rows inwards.

    Empty where there are fewer than twenty.
    """
    last = len(ordered) - 1
    if last + 1 < 2 * FEWEST:
        return ()
    places = [ceil(p * last) if p <= 0.5 else floor(p * last) for p in PROBABILITIES]
    kept = [min(max(place, FEWEST - 1), last + 1 - FEWEST) for place in places]
    return tuple(float(ordered[place]) for place in kept)


def seen_range(values: Floats) -> tuple[float, float] | None:
    """Return the range that is seen in a column: what ten rows reach at either end.

    In a table of fewer than twenty rows it goes from the least to the largest value. None if all
    values are the same, as in a table of one row.

    Examples
    --------
    >>> seen_range(np.array([19.0, 64.0, 33.0])), seen_range(np.arange(100.0))
    ((19.0, 64.0), (9.0, 90.0))
    """
    there = np.sort(values[np.isfinite(values)])
    if not there.size or there[0] == there[-1]:
        return None
    found = inner_quantiles(there)
    return (found[0], found[-1]) if found else (float(there[0]), float(there[-1]))

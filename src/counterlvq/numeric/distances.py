"""Distances of rows to points, pair by pair, each summed as if it were alone.

SciPy's `cdist` is what does that well. To import it takes longer than the first answer itself, so
that the few pairs of a small model are summed by NumPy: one feature after another, as SciPy does,
and to the same last bit.
"""

from __future__ import annotations

import numpy as np

from counterlvq.numeric.arrays import Floats

__all__ = ["distances", "squared_distances"]

# Differences up to which NumPy is as quick, in a few steps and a little memory.
_FEW = 1 << 12


def squared_distances(rows: Floats, points: Floats) -> Floats:
    """Squared distance of each row to each point, (n, p).

    Examples
    --------
    >>> squared_distances(np.array([[0.0, 1.0]]), np.array([[0.0, 0.0], [3.0, 5.0]]))
    array([[ 1., 25.]])
    """
    if rows.shape[0] * points.size > _FEW:
        from scipy.spatial.distance import cdist

        return np.asarray(cdist(rows, points, "sqeuclidean"))
    away = rows[:, None, :] - points
    away *= away
    # A running sum adds up in order, where a sum would not.
    return away.cumsum(axis=2)[:, :, -1].copy()


def distances(rows: Floats, points: Floats, *, largest: bool = False) -> Floats:
    """Distance of each row to each point, (n, p); by the `largest` difference, if that is said."""
    if rows.shape[0] * points.size > _FEW:
        from scipy.spatial.distance import cdist

        return np.asarray(cdist(rows, points, "chebyshev" if largest else "euclidean"))
    if largest:
        return np.asarray(np.abs(rows[:, None, :] - points).max(axis=2))
    return np.asarray(np.sqrt(squared_distances(rows, points)))

"""Points that a metric cannot tell apart: each as far from everything as an earlier one.

Under a metric that does not see all directions two points may differ, and all distances to them
be the same. Rounding leaves few pairs that could be such; these are compared exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.exact import dot
from counterlvq.numeric.tolerances import CLOSED_GAP, UNIT

__all__ = ["Alike", "alike"]

# Exact products that one metric may take, and what a look at a pair counts as. Pairs beyond count
# as different: then a search has more to do, and nothing else.
_MOST_PRODUCTS, _LOOK = 1 << 20, 64


class Alike(NamedTuple):
    """Which points are the same to a metric, and which but for rounding."""

    first: NDArray[np.intp]  # (p,) for each point the first that is as far from everything
    # Pairs whose difference is known to such a share of itself only that proofs would stay open.
    nearly: tuple[tuple[int, int], ...]


def alike(points: Floats, factor: Floats, images: Floats, errors: Floats) -> Alike:
    """Compare points (p, d) by where a metric sees them.

    `factor` is (r, d), or (d,) for a diagonal metric. `images` (p, s) are where it takes the
    points, up to a shift for all and off by at most `errors` (p,).

    Examples
    --------
    >>> points, factor = np.array([[0.0, 1.0], [3.0, 0.0], [1.0, 0.0]]), np.array([[1.0, 1.0]])
    >>> alike(points, factor, points @ factor.T, np.full(3, 1e-15)).first
    array([0, 1, 0])
    """
    first = np.arange(len(points))
    # Along a line in no particular direction few come close to each other by chance.
    line = np.cos(np.arange(1.0, images.shape[1] + 1.0))
    with np.errstate(over="ignore", invalid="ignore"):  # NaN is near nothing
        sizes = np.abs(images).sum(axis=1)
        reach = 2.0 * np.abs(line).sum() * errors + 2.0 * (line.size + 4) * UNIT * sizes
        low, high = images @ line - reach, images @ line + reach
    near, left, nearly = list[int](), _MOST_PRODUCTS, list[tuple[int, int]]()
    for k in np.argsort(low, kind="stable").tolist():
        near = [i for i in near if high[i] >= low[k]]
        for i in near if left > 0 else ():
            found = _compared(points[i], points[k], factor, left)
            left -= found.cost + _LOOK
            if found.is_near:
                nearly += [(i, k), (k, i)]
            if found.is_same:
                first[k] = i
                break
        else:
            near.append(k)
    # So far groups are named by whoever comes first along the line.
    least = np.full(len(points), len(points))
    np.minimum.at(least, first, np.arange(len(points)))
    first = least[first]
    return Alike(first, tuple((int(first[i]), int(first[k])) for i, k in nearly))


class _Compared(NamedTuple):
    is_same: bool
    is_near: bool  # and not the same
    cost: int  # exact products


def _compared(a: Floats, b: Floats, factor: Floats, most: int) -> _Compared:
    """Compare ``factor a`` with ``factor b``, exactly where rounding could decide."""
    differ = a != b
    if factor.ndim == 1:
        return _Compared(not factor[differ].any(), False, 0)
    rows = factor[:, differ]
    rows = rows[rows.any(axis=1)]
    if not rows.size:
        return _Compared(True, False, 0)
    with np.errstate(over="ignore", invalid="ignore"):
        away = a[differ] - b[differ]
        error = (away.size + 4) * UNIT * (np.abs(rows) @ np.abs(away))
        size = np.abs(rows @ away)
        if (size > error).any() or 2 * rows.size > most:
            return _Compared(False, bool((CLOSED_GAP * size <= error).all()), 0)
    ends = np.concatenate([a[differ], -b[differ]])
    same = all(not dot(np.concatenate([row, row]), ends) for row in rows)
    return _Compared(same, not same, 2 * rows.size)

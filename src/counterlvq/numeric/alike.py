"""Points that a metric cannot tell apart: each as far from everything as an earlier one.

Under a metric that does not see all directions two points may differ, and all distances to them
be the same. Rounding leaves few pairs that could be such; these are compared exactly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.exact import dot
from counterlvq.numeric.tolerances import UNIT

__all__ = ["first_alike"]

# Exact products that one metric may take, and what a look at a pair counts as. Pairs beyond count
# as different: then a search has more to do, and nothing else.
_MOST_PRODUCTS, _LOOK = 1 << 20, 64


def first_alike(points: Floats, factor: Floats, images: Floats, errors: Floats) -> NDArray[np.intp]:
    """For each point (p, d) the first to which all distances under `factor` are the same, (p,).

    `factor` is (r, d), or (d,) for a diagonal metric. `images` (p, s) are where it takes the
    points, up to a shift for all and off by at most `errors` (p,).

    Examples
    --------
    >>> points, factor = np.array([[0.0, 1.0], [3.0, 0.0], [1.0, 0.0]]), np.array([[1.0, 1.0]])
    >>> first_alike(points, factor, points @ factor.T, np.full(3, 1e-15))
    array([0, 1, 0])
    """
    first = np.arange(len(points))
    # Along a line in no particular direction few come close to each other by chance.
    line = np.cos(np.arange(1.0, images.shape[1] + 1.0))
    with np.errstate(over="ignore", invalid="ignore"):  # NaN is near nothing
        sizes = np.abs(images).sum(axis=1)
        reach = 2.0 * np.abs(line).sum() * errors + 2.0 * (line.size + 4) * UNIT * sizes
        low, high = images @ line - reach, images @ line + reach
    near, left = list[int](), _MOST_PRODUCTS
    for k in np.argsort(low, kind="stable").tolist():
        near = [i for i in near if high[i] >= low[k]]
        for i in near if left > 0 else ():
            same, cost = _is_alike(points[i], points[k], factor, left)
            left -= cost + _LOOK
            if same:
                first[k] = i
                break
        else:
            near.append(k)
    # So far groups are named by whoever comes first along the line.
    least = np.full(len(points), len(points))
    np.minimum.at(least, first, np.arange(len(points)))
    return least[first]


def _is_alike(a: Floats, b: Floats, factor: Floats, most: int) -> tuple[bool, int]:
    """Whether ``factor a`` is ``factor b`` exactly, and how many exact products that took."""
    differ = a != b
    if factor.ndim == 1:
        return not factor[differ].any(), 0
    rows = factor[:, differ]
    rows = rows[rows.any(axis=1)]
    if not rows.size:
        return True, 0
    with np.errstate(over="ignore", invalid="ignore"):
        away = a[differ] - b[differ]
        error = (away.size + 4) * UNIT * (np.abs(rows) @ np.abs(away))
        if (np.abs(rows @ away) > error).any() or 2 * rows.size > most:
            return False, 0
    ends = np.concatenate([a[differ], -b[differ]])
    return all(not dot(np.concatenate([row, row]), ends) for row in rows), 2 * rows.size

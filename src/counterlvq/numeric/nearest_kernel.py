"""The nearest prototype of each of many rows, compiled, and whether rounding may have decided."""

from __future__ import annotations

import numpy as np

from counterlvq.numeric.jit import borrowed, jit_unless_small
from counterlvq.numeric.tolerances import TINY_ROOT, TINY_SQUARE, UNIT

__all__ = ["nearest_rows"]

_INF = np.inf


def _steps(X, center, across_factor, diagonal, lengths, across, *others):
    return X.shape[0] * (across_factor.size + across.size)


@jit_unless_small(_steps)
def nearest_rows(
    X, center, across_factor, diagonal, lengths, across, share, anchor_error, nearest, clear
):
    """Find the nearest anchor of each row, and say where no rounding can have decided that.

    Into the last two. `across_factor` (d, r) is the transposed factor, without rows for a
    `diagonal` one or for plain distances, which have neither; `across` (r, p) has the anchors as
    columns. Both are filled up to a multiple of columns that processors compute side by side, by
    zeros in the factor, and by anchors at infinity. `lengths` are those of the columns of the
    factor. A distance is off by the `share` of itself, and an anchor by `anchor_error` at most. The
    rule is that of `PrototypeModel`.
    """
    X = borrowed(X)
    (r, p), width = across.shape, across_factor.shape[1]
    z, away = np.zeros(max(r, width)), np.empty(p)
    for n in range(X.shape[0]):
        x = X[n]
        size, square = 0.0, 0.0
        if width:
            z[:] = 0.0
            for j in range(x.size):
                t = x[j] - center[j]
                size += lengths[j] * abs(t)
                for c in range(width):
                    z[c] += across_factor[j, c] * t
            error = (x.size + 4) * UNIT * size + anchor_error
        elif diagonal.size:
            for j in range(x.size):
                z[j] = diagonal[j] * (x[j] - center[j])
                square += z[j] * z[j]
            error = 2.0 * (1.0 + (x.size + 8) * UNIT) * UNIT * np.sqrt(square) + TINY_ROOT
            error += anchor_error
        else:
            for j in range(x.size):
                z[j] = x[j]
            error = 0.0
        away[:] = 0.0
        for c in range(r):
            here = z[c]
            for k in range(p):
                gap = here - across[c, k]
                away[k] += gap * gap
        first, second, at, is_number = _INF, _INF, 0, True
        for k in range(p):
            far = away[k]
            if far < first:
                first, second, at = far, first, k
            elif far < second:
                second = far
            is_number = is_number and not np.isnan(far)
        # With an error before squaring, what is farther away than the second is clear if that is.
        root = np.sqrt(second)
        off = 2.0 * root * error + error * error + share * second + TINY_SQUARE
        nearest[n] = at
        clear[n] = is_number and second < _INF and root > 2.0 * error and second - first > 2.0 * off

"""The nearest prototype of each of many rows, compiled, and whether rounding may have decided."""

from __future__ import annotations

import numpy as np

from counterlvq.numeric.jit import borrowed, jit_unless_small, part
from counterlvq.numeric.tolerances import TINY_ROOT, TINY_SQUARE, UNIT

__all__ = ["nearest_rows"]

_INF = np.inf
# Rows that are taken side by side. A processor computes with several numbers at a time, and rows
# are many where features and prototypes are few.
_LANES = 16


def _steps(X, center, factor, diagonal, lengths, anchors, *others):
    return X.shape[0] * (factor.size + anchors.size)


@part
def _to_anchors(x, center, factor, diagonal, lengths, anchor_error, z, error):
    """Take rows to where the anchors are: `x` and `z` hold one in each column.

    `x` has the center taken off, and `error` is the length of the rounding, that of anchors too.
    """
    error[:] = 0.0
    for j in range(center.size):
        for n in range(_LANES):
            x[j, n] -= center[j]
    if diagonal.size:
        for j in range(diagonal.size):
            for n in range(_LANES):
                z[j, n] = diagonal[j] * x[j, n]
                error[n] += z[j, n] * z[j, n]
        share = 2.0 * (1.0 + (diagonal.size + 8) * UNIT) * UNIT
        for n in range(_LANES):
            error[n] = share * np.sqrt(error[n]) + TINY_ROOT + anchor_error
        return
    for j in range(center.size):
        for n in range(_LANES):
            error[n] += lengths[j] * abs(x[j, n])
    for n in range(_LANES):
        error[n] = (center.size + 4) * UNIT * error[n] + anchor_error
    for c in range(factor.shape[0]):
        for n in range(_LANES):
            z[c, n] = 0.0
        for j in range(factor.shape[1]):
            weight = factor[c, j]
            for n in range(_LANES):
                z[c, n] += weight * x[j, n]


@part
def _two_nearest(z, anchors, error, share, away, total, first, second, at, clear):
    """Find the nearest anchor of each column of `z`, and whether no rounding can decide that.

    With an error before squaring, what is farther away than the second is clear if that is.
    """
    total[:] = 0.0
    first[:] = _INF
    second[:] = _INF
    at[:] = 0
    for k in range(anchors.shape[0]):
        away[:] = 0.0
        for c in range(anchors.shape[1]):
            here = anchors[k, c]
            for n in range(_LANES):
                gap = z[c, n] - here
                away[n] += gap * gap
        for n in range(_LANES):
            is_first = away[n] < first[n]
            at[n] = k if is_first else at[n]
            second[n] = min(second[n], first[n] if is_first else away[n])
            first[n] = away[n] if is_first else first[n]
            total[n] += away[n]
    for n in range(_LANES):
        root = np.sqrt(second[n])
        off = 2.0 * root * error[n] + error[n] * error[n] + share * second[n] + TINY_SQUARE
        is_far = root > 2.0 * error[n] and second[n] - first[n] > 2.0 * off
        # No distance may be infinite or no number, nor may their sum.
        clear[n] = is_far and total[n] < _INF


@jit_unless_small(_steps)
def nearest_rows(
    X, center, factor, diagonal, lengths, anchors, share, anchor_error, nearest, clear
):
    """Find the nearest anchor of each row, and say where no rounding can have decided that.

    Into the last two. `factor` (r, d) has no rows for a `diagonal` one or for plain distances, and
    these have no center either. `lengths` are those of the columns of the factor. A distance is off
    by the `share` of itself, and an anchor by `anchor_error` at most. The rule is that of
    `PrototypeModel`.
    """
    X = borrowed(X)
    rows, d = X.shape
    # Anchors may have a coordinate more, for offsets, that every row has 0 in.
    x, z = np.empty((d, _LANES)), np.zeros((anchors.shape[1], _LANES))
    error, away, total = np.zeros(_LANES), np.empty(_LANES), np.empty(_LANES)
    first, second = np.empty(_LANES), np.empty(_LANES)
    at, is_clear = np.empty(_LANES, dtype=np.int64), np.empty(_LANES, dtype=np.bool_)
    for begin in range(0, rows, _LANES):
        for n in range(_LANES):
            row = X[min(begin + n, rows - 1)]
            for j in range(d):
                x[j, n] = row[j]
        if center.size:
            _to_anchors(x, center, factor, diagonal, lengths, anchor_error, z, error)
            _two_nearest(z, anchors, error, share, away, total, first, second, at, is_clear)
        else:
            _two_nearest(x, anchors, error, share, away, total, first, second, at, is_clear)
        for n in range(min(_LANES, rows - begin)):
            nearest[begin + n], clear[begin + n] = at[n], is_clear[n]

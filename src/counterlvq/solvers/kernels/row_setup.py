"""What a row needs before it is solved, and after: bounds, right-hand sides, scores, the point."""

from __future__ import annotations

import numpy as np

from counterlvq.numeric.jit import part
from counterlvq.numeric.tolerances import CROSSING, MOST_BLURS, SHARE_OF_LEAD, UNIT
from counterlvq.solvers.kernels.conditions import INF

__all__ = [
    "default_margin",
    "delta_of",
    "fill_box",
    "fill_right_sides",
    "own_space",
    "place_point",
    "scores_of",
]


@part
def own_space(x, center, plain, z, z0):
    """Write where an input lies among the anchors into `z0`; no claim rests on its digits.

    Proofs about plain distances take the input as it is; the anchors have the center taken off.
    Other metrics take it off in either, so that `z` is what is sought.
    """
    for c in range(z0.size):
        z0[c] = x[c] - center[c] if plain else z[c]


@part
def fill_box(x, columns, column, slope, old, value, fixes, unit, least, most,
              lower, upper, lo, hi, spread):  # fmt: skip
    """Bounds of each feature, absolute and in units of u; False if some leave no room."""
    for j in range(columns.size):
        lower[j], upper[j] = -INF, INF
    for b in range(column.size):
        given = 0.0
        for j in range(x.size):
            if old[b, j] != 0.0:
                given += old[b, j] * x[j]
        end = (value[b] - given) / slope[b]
        if not fixes[b] and slope[b] * end + given - value[b] > 0:
            # The end is itself rounded; step inside where the row would show it.
            end = np.nextafter(end, -INF if slope[b] > 0 else INF)
        j = column[b]
        if slope[b] > 0 or fixes[b]:
            upper[j] = min(upper[j], end)
        if slope[b] < 0 or fixes[b]:
            lower[j] = max(lower[j], end)
    for j in range(columns.size):
        here = x[columns[j]]
        if lower[j] > upper[j]:
            if lower[j] - upper[j] > CROSSING * max(abs(lower[j]), abs(upper[j])):
                return False
            lower[j] = upper[j]
        lo[j], hi[j] = (lower[j] - here) * unit[j], (upper[j] - here) * unit[j]
        far = max(abs(least[j] - here), abs(most[j] - here))
        if lower[j] > -INF:
            far = max(far, abs(lower[j] - here))
        if upper[j] < INF:
            far = max(far, abs(upper[j] - here))
        spread[j] = far
    return True


@part
def fill_right_sides(x, columns, spread, A, R, v, equality, h, tight, far):
    """Right-hand sides of the linear constraints, tightened by what rounding can blur.

    `far` becomes how far the data, or a constraint on its own, could make a feature go.
    """
    for j in range(columns.size):
        far[j] = spread[j]
    for c in range(v.size):
        right, size = v[c], abs(v[c])
        for j in range(x.size):
            right -= (A[c, j] + R[c, j]) * x[j]
            size += (abs(A[c, j]) + abs(R[c, j])) * abs(x[j])
        for j in range(columns.size):
            weight = abs(A[c, columns[j]])
            size += weight * spread[j]
            if weight > 0.0:
                far[j] = max(far[j], abs(right) / weight)
        tight[c] = CROSSING * size
        h[c] = right if equality[c] else right - tight[c]


@part
def scores_of(z0, anchors, out):
    """Squared distances to anchors, into `out`; four at a time, which do not wait for each other.

    Each is summed up in the order of its coordinates.
    """
    count = anchors.shape[0]
    for k in range(0, count - 3, 4):
        first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
        for c in range(z0.size):
            a, b = z0[c] - anchors[k, c], z0[c] - anchors[k + 1, c]
            first += a * a
            second += b * b
            a, b = z0[c] - anchors[k + 2, c], z0[c] - anchors[k + 3, c]
            third += a * a
            fourth += b * b
        out[k], out[k + 1], out[k + 2], out[k + 3] = first, second, third, fourth
    for k in range(count - count % 4, count):
        total = 0.0
        for c in range(z0.size):
            gap = z0[c] - anchors[k, c]
            total += gap * gap
        out[k] = total


@part
def place_point(delta, x, columns, lower, upper, y, change):
    """Turn a change into a point within the bounds exactly, and say what has changed."""
    for j in range(x.size):
        y[j] = x[j]
        change[j] = 0.0
    for j in range(columns.size):
        at = columns[j]
        y[at] = min(max(x[at] + delta[at], lower[j]), upper[j])
        change[at] = y[at] - x[at]


@part
def default_margin(behind, score, error, terms):
    """Least lead that rounding in `predict` respects and a proof does not notice.

    `error` is the length of the rounding of what is squared in the score of the prototype that
    is to win; its rival is as far away where the two meet.
    """
    least = 4.0 * (2.0 * np.sqrt(score) * error + error * error + terms * UNIT * score)
    return min(max(SHARE_OF_LEAD * behind, least), MOST_BLURS * least)


@part
def delta_of(is_quadratic, u, columns, prices, B_diagonal, B, delta):
    """Write a change in the user's units, for all features."""
    delta[:] = 0.0
    for j in range(columns.size):
        move = 0.0
        if is_quadratic and B_diagonal.size:
            move = B_diagonal[j] * u[j]
        elif is_quadratic:
            for c in range(columns.size):
                move += B[j, c] * u[c]
        else:
            move = u[j] / prices[j]
        delta[columns[j]] = move

"""Answers that one rival alone holds back, written down without a method.

Most answers on plain numbers are of this kind. A change that overtakes one rival as cheaply as can
be is the answer of its cell if it breaks nothing else: there is no cheaper one for that rival.
Whatever is broken, the methods take over from the start. The tests are those of `conditions`, so
that both say the same of what rounding leaves open.
"""

from __future__ import annotations

from counterlvq.numeric.jit import part
from counterlvq.solvers.kernels.conditions import lead_of

__all__ = ["move_all", "move_one"]


@part
def _breaks_nothing(u, scores, score, TNi, RN, C, equality, h, margin):
    """Whether no rival is as near as the target prototype, and no linear constraint is broken."""
    for c in range(h.size):
        value = 0.0
        for j in range(u.size):
            value += C[c, j] * u[j]
        if equality[c] or value > h[c]:
            return False
    own = score + 0.5 * margin
    for j in range(u.size):
        own -= TNi[j] * u[j]
    for k in range(scores.size):
        over = own - scores[k]
        for j in range(u.size):
            over += RN[k, j] * u[j]
        if over > 0.0:
            return False
    return True


@part
def move_one(
    rival, TAi, TNi, score, RA, RN, scores, C, equality, z0, lo, hi, ways, h, margin, u, rows,
    prices,
):  # fmt: skip
    """Overtake a rival by the one change that gains most on it per cost, into u.

    Returns whether that is the least of a cell, what it costs, and how many rows it charges for.
    """
    value = lead_of(rival, TAi, RA, z0, h) - margin
    fastest, at, pull, way = 0.0, -1, 1.0, 0.0
    for j in range(u.size):
        u[j] = 0.0
        if not lo[j] <= 0.0 <= hi[j]:
            return False, 0.0, 0
        slope = RN[rival, j] - TNi[j]
        price = ways[1, j] if slope > 0.0 else ways[0, j]
        if abs(slope) > fastest * price and lo[j] < hi[j]:
            fastest, at, pull, way = abs(slope) / price, j, slope, price
    if at < 0 or not value < 0.0:
        return False, 0.0, 0
    move = value / pull
    if not lo[at] <= move <= hi[at]:
        return False, 0.0, 0
    for c in range(h.size):
        if equality[c] or C[c, at] * move > h[c]:
            return False, 0.0, 0
    own = score + 0.5 * margin - TNi[at] * move
    for k in range(scores.size):
        if own - scores[k] + RN[k, at] * move > 0.0:
            return False, 0.0, 0
    u[at] = move
    rows[0], prices[0] = rival, way / abs(pull)
    return True, way * abs(move), 1


@part
def move_all(
    rival, TAi, TNi, score, RA, RN, scores, C, equality, B_diagonal, B, z0, lo, hi, h, margin,
    u, normal, rows, prices, signs,
):  # fmt: skip
    """Overtake a rival along the steepest way, into u; returns as `move_one`."""
    value = lead_of(rival, TAi, RA, z0, h) - margin
    square = 0.0
    for j in range(u.size):
        normal[j] = RN[rival, j] - TNi[j]
        square += normal[j] * normal[j]
    if not (square > 0.0 and value < 0.0):
        return False, 0.0, 0
    price = -value / square
    for j in range(u.size):
        u[j] = -price * normal[j]
    for j in range(lo.size):
        if lo[j] == hi[j]:
            return False, 0.0, 0
        move = 0.0
        if B_diagonal.size:
            move = B_diagonal[j] * u[j]
        else:
            for c in range(u.size):
                move += B[j, c] * u[c]
        if not lo[j] <= move <= hi[j]:
            return False, 0.0, 0
    if not _breaks_nothing(u, scores, score, TNi, RN, C, equality, h, margin):
        return False, 0.0, 0
    rows[0], prices[0], signs[0] = rival, price, 1.0
    return True, price * price * square, 1

"""The conditions of a cell: rivals first (row k), then linear constraints (row m + c)."""

from __future__ import annotations

import numpy as np

from counterlvq.numeric.jit import part
from counterlvq.numeric.tolerances import UNIT

__all__ = ["FAILED", "INFEASIBLE", "SOLVED"]

SOLVED, INFEASIBLE, FAILED, ABANDONED = 0, 1, 2, 3
INF = np.inf
# With more rivals than this, those that are broken at least by this share of the worst are
# remembered.
_WORTH_LISTING = 64
_LISTED_SHARE = 0.25


@part
def normal_of(row, TNi, RN, C, out):
    """Left-hand side of a condition, ``out @ u``."""
    m = RN.shape[0]
    if row >= m:
        for j in range(out.size):
            out[j] = C[row - m, j]
    else:
        for j in range(out.size):
            out[j] = RN[row, j] - TNi[j]


@part
def lead_of(row, TAi, RA, z0, h):
    """Right-hand side of a condition; for a rival, by how much it trails at the input."""
    m = RA.shape[0]
    if row >= m:
        return h[row - m]
    lead = 0.0
    for c in range(z0.size):
        a, b = TAi[c], RA[row, c]
        lead += (b - a) * ((a - z0[c]) + (b - z0[c]))
    return lead


@part
def most_violated(
    u, scores, score, TNi, RN, RNT, scale, C, lengths, equality, h, tight, margin, g, listed
):
    """Find the condition that is broken most, or -1 if none is.

    A rival counts as overtaken at half the margin and a constraint at half its tightening:
    the other half is there to be lost to rounding. A constraint goes before a rival, and
    rivals are compared by ``scale``, one over the length of their row (or none, if empty).
    `listed` remembers the rivals that were broken when all were last looked at; it is asked
    first, and all of them only when it has nothing to say.
    """
    d, m = RNT.shape
    chosen, share = -1, 0.0
    for c in range(h.size):
        value = -h[c]
        for j in range(d):
            value += C[c, j] * u[j]
        if equality[c]:
            value = abs(value)
        if value <= 0.5 * tight[c] or value <= share * lengths[c]:
            continue
        # Less than the rounding of the products themselves cannot be told from nothing. A
        # condition that is passed over may be broken by the point, which is judged afterwards.
        size = 0.0
        for j in range(d):
            size += abs(C[c, j] * u[j])
        if value > 4.0 * UNIT * size:
            share, chosen = value / lengths[c], c
    if chosen >= 0:
        return m + chosen
    if m == 0:
        return -1
    own = score + 0.5 * margin
    for j in range(d):
        own -= TNi[j] * u[j]
    worst, at = 0.0, -1
    for n in range(listed[0]):
        k = listed[n + 1]
        over = own - scores[k]
        for j in range(d):
            over += RN[k, j] * u[j]
        if scale.size:
            over *= scale[k]
        if over > worst:
            worst, at = over, k
    if at >= 0:
        return at
    for k in range(m):
        g[k] = own - scores[k]
    for j in range(d):
        change = u[j]
        if change != 0.0:
            for k in range(m):
                g[k] += RNT[j, k] * change
    if scale.size:
        for k in range(m):
            g[k] *= scale[k]
    for k in range(m):
        if g[k] > worst:
            worst, at = g[k], k
    listed[0] = 0
    if m > _WORTH_LISTING and at >= 0:
        for k in range(m):
            if g[k] > _LISTED_SHARE * worst and listed[0] < listed.size - 1:
                listed[0] += 1
                listed[listed[0]] = k
    return at

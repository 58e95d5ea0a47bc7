"""Least ``|u|^2`` in a cell: a dual active-set method (Goldfarb and Idnani).

Take in the row that is broken most and let go of rows whose multiplier would turn negative on the
way. Only the Gram matrix of the binding rows is factored. The bounds of single features,
``lower <= B u <= upper``, are rows as well: m + c + 2 j (upper) and m + c + 2 j + 1 (lower).
"""

from __future__ import annotations

import numpy as np

from counterlvq.numeric.jit import part
from counterlvq.numeric.tolerances import BROKEN_BOUND, DEPENDENT
from counterlvq.solvers.kernels.conditions import (
    ABANDONED,
    FAILED,
    INF,
    INFEASIBLE,
    SOLVED,
    lead_of,
    most_violated,
    normal_of,
)

__all__ = ["resume"]


@part
def _broken_bound(u, B_diagonal, B, B_lengths, lo, hi, base):
    """Find the bound of a feature that is broken most: its row, and how far in length."""
    d = lo.size
    # A bound holds up to the rounding of the products that it is compared with; the point that
    # comes out is put inside and judged.
    at, worst = -1, BROKEN_BOUND * np.sqrt(_square(u))
    for j in range(d):
        if lo[j] == -INF and hi[j] == INF:
            continue
        value = 0.0
        if B_diagonal.size:
            value = B_diagonal[j] * u[j]
        else:
            for c in range(d):
                value += B[j, c] * u[c]
        over, under = (value - hi[j]) / B_lengths[j], (lo[j] - value) / B_lengths[j]
        if over > worst:
            at, worst = base + 2 * j, over
        if under > worst:
            at, worst = base + 2 * j + 1, under
    return at, worst


@part
def _row_of(row, base, TAi, TNi, RA, RN, C, B_diagonal, B, z0, lo, hi, h, margin, out):
    """Left-hand side of any row into `out`; returns its right-hand side."""
    if row < base:
        normal_of(row, TNi, RN, C, out)
        right = lead_of(row, TAi, RA, z0, h)
        return right - margin if row < RN.shape[0] else right
    j = (row - base) // 2
    sign = 1.0 if (row - base) % 2 == 0 else -1.0
    for c in range(out.size):
        out[c] = sign * (0.0 if B_diagonal.size else B[j, c])
    if B_diagonal.size:
        out[j] = sign * B_diagonal[j]
    return hi[j] if sign > 0.0 else -lo[j]


@part
def _factor(N, count, K):
    """Cholesky factor of the Gram matrix of the first rows of N."""
    d = N.shape[1]
    for a in range(count):
        for b in range(a + 1):
            total = 0.0
            for j in range(d):
                total += N[a, j] * N[b, j]
            for c in range(b):
                total -= K[a, c] * K[b, c]
            if a == b:
                if total <= 0.0:
                    return False
                K[a, a] = np.sqrt(total)
            else:
                K[a, b] = total / K[b, b]
    return True


@part
def _forward(K, count, right):
    for a in range(count):
        for c in range(a):
            right[a] -= K[a, c] * right[c]
        right[a] /= K[a, a]


@part
def _backward(K, count, right):
    for a in range(count - 1, -1, -1):
        for c in range(a + 1, count):
            right[a] -= K[c, a] * right[c]
        right[a] /= K[a, a]


@part
def _point(N, count, prices, u):
    """Compute the point that the prices belong to, ``u = -N' prices``."""
    for j in range(u.size):
        u[j] = 0.0
    for a in range(count):
        price = prices[a]
        for j in range(u.size):
            u[j] -= price * N[a, j]


@part
def _refine(N, count, rights, K, miss, prices, u):
    """Solve once more for what the binding rows are missed by."""
    _point(N, count, prices, u)
    for _ in range(2):
        for a in range(count):
            miss[a] = -rights[a]
            for j in range(u.size):
                miss[a] += N[a, j] * u[j]
        _forward(K, count, miss)
        _backward(K, count, miss)
        # The point is corrected by itself: made anew from multipliers that are large and nearly
        # cancel, it would miss by the rounding of these.
        for a in range(count):
            prices[a] += miss[a]
            for j in range(u.size):
                u[j] -= miss[a] * N[a, j]


@part
def _square(u):
    total = 0.0
    for j in range(u.size):
        total += u[j] * u[j]
    return total


@part
def resume(
    TAi, TNi, score, RA, RN, RNT, scores, scale, C, lengths, equality, B_diagonal, B, B_lengths, z0,
    lo, hi, h, tight, margin, cap, u, g, listed, normal, right, pull, N, K, rights, rows, prices,
    signs, count,
):  # fmt: skip
    """Go on from a point at which `count` rows bind, after conditions were added.

    Returns a code, the cost and the number of charged rows. A row of N is the row itself times
    its sign: -1 for an equality met from above.
    """
    d, m = lo.size, RN.shape[0]
    base = m + equality.size
    fresh = False
    listed[0] = 0
    for _ in range(200 + 20 * (d + m)):
        cost = _square(u)
        if cost > cap:
            return ABANDONED, cost, count
        # 1. The row that is broken most, by length in the space of u.
        row = most_violated(
            u, scores, score, TNi, RN, RNT, scale, C, lengths, equality, h, tight, margin, g, listed
        )
        over, right_side = 0.0, 0.0
        if row >= 0:
            right_side = _row_of(
                row, base, TAi, TNi, RA, RN, C, B_diagonal, B, z0, lo, hi, h, margin, normal
            )
            over = -right_side
            for j in range(d):
                over += normal[j] * u[j]
        box, far = _broken_bound(u, B_diagonal, B, B_lengths, lo, hi, base)
        if box >= 0 and (row < 0 or far * far * _square(normal) >= over * over):
            row = box
            right_side = _row_of(
                row, base, TAi, TNi, RA, RN, C, B_diagonal, B, z0, lo, hi, h, margin, normal
            )
            over = -right_side
            for j in range(d):
                over += normal[j] * u[j]
        binds = False
        for a in range(count):
            # A bound that was moved inwards does not bind where it was.
            binds = binds or (rows[a] == row and rights[a] == signs[a] * right_side)
        if binds and not fresh:
            # A point that has drifted off a row that binds is put right, and looked at again.
            _refine(N, count, rights, K, right, prices, u)
            fresh = True
            continue
        # A rival that leads nowhere, or a row that binds, is broken by rounding only.
        if row < 0 or binds or (row < m and over <= 0.0):
            _refine(N, count, rights, K, right, prices, u)
            return SOLVED, _square(u), count
        fresh = False
        sign = 1.0
        if over < 0.0:
            sign, over = -1.0, -over
            for j in range(d):
                normal[j] = -normal[j]
        square, price = _square(normal), 0.0
        # 2. Raise its multiplier until it holds, dropping rows that would be overpaid.
        while True:
            for a in range(count):
                total = 0.0
                for j in range(d):
                    total += N[a, j] * normal[j]
                pull[a] = total
            _forward(K, count, pull)
            rest = square
            for a in range(count):
                right[a] = pull[a]
                rest -= pull[a] * pull[a]
            _backward(K, count, right)
            drop, limit = -1, INF
            for a in range(count):
                c = rows[a] - m
                if right[a] > BROKEN_BOUND and not (0 <= c < equality.size and equality[c]):
                    ratio = max(prices[a], 0.0) / right[a]
                    if ratio < limit:
                        drop, limit = a, ratio
            dependent = rest <= DEPENDENT * square or count == d
            if dependent and drop < 0:
                for a in range(count):
                    prices[a] = -right[a]
                rows[count], prices[count], signs[count] = row, 1.0, sign
                return INFEASIBLE, cost, count + 1
            full = INF if dependent else over / rest
            step = min(full, limit)
            price += step
            for a in range(count):
                prices[a] -= step * right[a]
            if not dependent:
                for j in range(d):
                    move = normal[j]
                    for a in range(count):
                        move -= right[a] * N[a, j]
                    u[j] -= step * move
                over -= step * rest
            if full <= limit:
                for j in range(d):
                    N[count, j] = normal[j]
                for a in range(count):
                    K[count, a] = pull[a]
                K[count, count] = np.sqrt(rest)
                rows[count], prices[count], signs[count] = row, price, sign
                rights[count] = sign * right_side
                count += 1
                break
            count -= 1
            for a in range(drop, count):
                rows[a], prices[a], signs[a] = rows[a + 1], prices[a + 1], signs[a + 1]
                rights[a] = rights[a + 1]
                for j in range(d):
                    N[a, j] = N[a + 1, j]
            if not _factor(N, count, K):
                return FAILED, 0.0, 0
    return FAILED, 0.0, 0

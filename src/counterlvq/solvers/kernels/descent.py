"""Descent inside a nonconvex cell: the convex-concave procedure by cutting planes.

From a point of the cell, each rival's distance is replaced by its tangent there, which
leaves a convex part of the cell around the point. The least cost in that part is found by
the kernels for linear rows: the target's own distance enters by tangents, at the point and
wherever the last solution was too far out. The way from the point to that solution is then
followed as long as it stays in the cell, and the tangents are taken anew.

Everything is in the units ``u`` of the kernels, in which the cost is plain.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from counterlvq.compiling import jit
from counterlvq.solvers.kernels import absolute, quadratic
from counterlvq.solvers.kernels.conditions import INF, SOLVED

__all__ = ["descend_absolute", "descend_quadratic"]

# Tangent points that are remembered.
_MOST_CUTS = 24
# New tangent points between two looks at the whole cell.
_CUTS_PER_ROUND = 8


@jit
def _cost(u, is_quadratic):
    total = 0.0
    for j in range(u.size):
        total += u[j] * u[j] if is_quadratic else abs(u[j])
    return total


@jit
def _value(M, g, s, u):
    """Distance ``u'Mu + g'u + s``."""
    total = s
    for i in range(u.size):
        inner = g[i]
        for j in range(u.size):
            inner += M[i, j] * u[j]
        total += inner * u[i]
    return total


@jit
def _tangent(M, g, s, u, slope):
    """Slope into `slope`, and the constant, of the tangent of a distance at u."""
    constant = s
    for i in range(u.size):
        inner = 0.0
        for j in range(u.size):
            inner += M[i, j] * u[j]
        slope[i] = 2.0 * inner + g[i]
        constant -= inner * u[i]
    return constant


@jit
def _first_exit(Mi, gi, si, MK, gK, sK, margin, c, step):
    """How much of a step from c, at most 1, stays in the cell."""
    most = 1.0
    d = c.size
    for k in range(sK.size):
        a, b, level = 0.0, 0.0, si - sK[k] + margin
        for i in range(d):
            along, across = 0.0, 0.0
            for j in range(d):
                difference = Mi[i, j] - MK[k, i, j]
                along += difference * step[j]
                across += difference * c[j]
            pull = gi[i] - gK[k, i]
            a += along * step[i]
            b += (2.0 * across + pull) * step[i]
            level += (across + pull) * c[i]
        # a t^2 + b t + level <= 0, and level <= 0 up to rounding
        level = min(level, 0.0)
        root = b * b - 4.0 * a * level
        if root < 0.0:
            continue
        q = -0.5 * (b + np.sqrt(root)) if b >= 0.0 else -0.5 * (b - np.sqrt(root))
        for t in (q / a if a != 0.0 else INF, level / q if q != 0.0 else INF):
            # Leaving, not entering: the slope is upward there.
            if 0.0 <= t < most and 2.0 * a * t + b > 0.0:
                most = t
    return most


def _kernel(is_quadratic: bool) -> Callable[..., tuple[float, int]]:
    """Make the kernel for one kind of cost; the code of the other kind is left out of it."""

    @jit
    def descend(
        Mi, gi, si, MK, gK, sK, A, a, equal, B, B_lengths, lo, hi, margin, tolerance, rounds, c,
    ):  # fmt: skip
        """Walk downhill from c, in place; returns the cost and the number of rounds."""
        d, m, fixed = c.size, sK.size, a.size
        most = fixed + m + _MOST_CUTS + 1
        C, h, lengths = np.zeros((most, d)), np.zeros(most), np.ones(most)
        equality, tight = np.zeros(most, dtype=np.bool_), np.zeros(most)
        slopes, constants = np.zeros((m, d)), np.zeros(m)
        points, charged = np.zeros((_MOST_CUTS, d)), np.zeros(_MOST_CUTS, dtype=np.int64)
        own, u, step = np.zeros(d), np.zeros(d), np.zeros(d)
        none, nowhere = np.zeros((0, d)), np.zeros((d, 0))
        empty, scores = np.zeros(0), np.zeros(0)
        listed, g = np.zeros(65, dtype=np.int64), np.zeros(0)
        normal, row, D = np.zeros(d), np.zeros(d + 1), np.zeros(d + 1)
        T, K, rights = np.zeros((d + 1, d)), np.zeros((d + 1, d + 1)), np.zeros(d + 1)
        nonbasic, at = np.zeros(d, dtype=np.int64), np.zeros(d)
        basic, bend = np.zeros(d + 1, dtype=np.int64), np.zeros(d + 1)
        rows, prices, signs = np.zeros(d + 2, dtype=np.int64), np.zeros(d + 2), np.zeros(d + 2)
        for n in range(fixed):
            h[n], equality[n] = a[n], equal[n]
            for j in range(d):
                C[n, j] = A[n, j]
        cost, cuts = _cost(c, is_quadratic), 0
        for turn in range(rounds):
            constant = _tangent(Mi, gi, si, c, own)
            for k in range(m):
                constants[k] = _tangent(MK[k], gK[k], sK[k], c, slopes[k])
                for j in range(d):
                    C[fixed + k, j] = own[j] - slopes[k, j]
                h[fixed + k] = constants[k] - constant - margin
            for n in range(cuts):
                constant = _tangent(Mi, gi, si, points[n], own)
                k = charged[n]
                for j in range(d):
                    C[fixed + m + n, j] = own[j] - slopes[k, j]
                h[fixed + m + n] = constants[k] - constant - margin
            used = fixed + m + cuts
            lower, code = 0.0, SOLVED
            for cut in range(_CUTS_PER_ROUND + 1):
                for n in range(used):
                    length = 0.0
                    for j in range(d):
                        length += C[n, j] * C[n, j]
                    lengths[n] = max(np.sqrt(length), 1e-300)
                    # Half of this may be lost to rounding; see `most_violated`.
                    tight[n] = 1e-13 * (abs(h[n]) + lengths[n])
                if is_quadratic:
                    code, lower, _ = quadratic.solve(
                        empty, own, 0.0, none, none, nowhere, scores, empty, C[:used],
                        lengths[:used], equality[:used], B, B_lengths, empty, lo, hi, h[:used],
                        tight[:used], 0.0, INF, u, g, listed, normal, row, D, T, K, rights, rows,
                        prices, signs,
                    )  # fmt: skip
                else:
                    code, lower, _ = absolute.solve(
                        empty, own, 0.0, none, none, nowhere, scores, empty, C[:used],
                        lengths[:used], equality[:used], empty, lo, hi, h[:used], tight[:used],
                        0.0, INF, u, g, listed, normal, row, D, T, nonbasic, at, basic, bend, rows,
                        prices,
                    )  # fmt: skip
                if code != SOLVED or cost - lower <= tolerance * cost or cut == _CUTS_PER_ROUND:
                    break
                distance = _value(Mi, gi, si, u)
                worst, k = 1e-12 * (distance + abs(margin)), -1
                for n in range(m):
                    over = distance - constants[n] + margin
                    for j in range(d):
                        over -= slopes[n, j] * u[j]
                    if over > worst:
                        worst, k = over, n
                if k < 0:
                    break
                spot = cuts
                if cuts == _MOST_CUTS:  # the oldest makes room
                    for n in range(cuts - 1):
                        charged[n] = charged[n + 1]
                        h[fixed + m + n] = h[fixed + m + n + 1]
                        for j in range(d):
                            points[n, j] = points[n + 1, j]
                            C[fixed + m + n, j] = C[fixed + m + n + 1, j]
                    spot = cuts - 1
                else:
                    cuts += 1
                constant = _tangent(Mi, gi, si, u, own)
                charged[spot] = k
                for j in range(d):
                    points[spot, j] = u[j]
                    C[fixed + m + spot, j] = own[j] - slopes[k, j]
                h[fixed + m + spot] = constants[k] - constant - margin
                used = fixed + m + cuts
            if code != SOLVED or cost - lower <= tolerance * cost:
                return cost, turn
            for j in range(d):
                step[j] = u[j] - c[j]
            share = _first_exit(Mi, gi, si, MK, gK, sK, margin, c, step)
            for j in range(d):
                u[j] = c[j] + share * step[j]
            found = _cost(u, is_quadratic)
            if not found < cost:
                return cost, turn
            for j in range(d):
                c[j] = u[j]
            if cost - found <= tolerance * cost:
                return found, turn
            cost = found
        return cost, rounds

    return descend


descend_absolute, descend_quadratic = _kernel(False), _kernel(True)

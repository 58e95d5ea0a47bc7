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

# Tangents of the target's own distance: most in one round, and most that the next one keeps.
_CUTS_PER_ROUND = 24
_KEPT_CUTS = 12
# Share of the way to a round's solution that may stay open for lack of more tangents.
_OPEN_WAY = 1e-3


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
def _exit(a, b, level):
    """Where ``a t^2 + b t + level``, not positive at 0, turns positive; inf if it never does."""
    level = min(level, 0.0)
    root = b * b - 4.0 * a * level
    if root < 0.0:
        return INF
    q = -0.5 * (b + np.sqrt(root)) if b >= 0.0 else -0.5 * (b - np.sqrt(root))
    first = INF
    for t in (q / a if a != 0.0 else INF, level / q if q != 0.0 else INF):
        # Leaving, not entering: the slope is upward there.
        if 0.0 <= t < first and 2.0 * a * t + b > 0.0:
            first = t
    return first


@jit
def _curve(M, step):
    """Compute ``step' M step``."""
    total = 0.0
    for i in range(step.size):
        inner = 0.0
        for j in range(step.size):
            inner += M[i, j] * step[j]
        total += inner * step[i]
    return total


@jit
def _leaving(Mi, MK, own, constant, slopes, constants, margin, c, step, convex, most):
    """How much of a step from c, at most `most`, stays in the cell; and the rival that ends it.

    With `convex`, in the part of it that the rivals' tangents at c leave.
    """
    d, last = c.size, -1
    mine = _curve(Mi, step)
    for k in range(constants.size):
        level, b = constant - constants[k] + margin, 0.0
        for j in range(d):
            slope = own[j] - slopes[k, j]
            level += slope * c[j]
            b += slope * step[j]
        a = mine if convex else mine - _curve(MK[k], step)
        t = _exit(a, b, level)
        if t < most:
            most, last = t, k
    return most, last


@jit
def _set_row(C, h, lengths, tight, n, own, slope, right):
    """Write the condition that a tangent of the own distance is below that of a rival."""
    square = 0.0
    for j in range(own.size):
        C[n, j] = own[j] - slope[j]
        square += C[n, j] * C[n, j]
    h[n] = right
    lengths[n] = max(np.sqrt(square), 1e-300)
    # Half of this may be lost to rounding; see `most_violated`.
    tight[n] = 1e-13 * (abs(right) + lengths[n])


def _kernel(is_quadratic: bool) -> Callable[..., tuple[float, int]]:
    """Make the kernel for one kind of cost; the code of the other kind is left out of it."""

    @jit
    def descend(
        Mi, gi, si, MK, gK, sK, A, a, equal, B, B_lengths, lo, hi, margin, tolerance, rounds, c,
    ):  # fmt: skip
        """Walk downhill from c, in place; returns the cost and the number of rounds."""
        d, m, fixed = c.size, sK.size, a.size
        most = fixed + m + _KEPT_CUTS + _CUTS_PER_ROUND
        C, h, lengths = np.zeros((most, d)), np.zeros(most), np.ones(most)
        equality, tight = np.zeros(most, dtype=np.bool_), np.zeros(most)
        slopes, constants = np.zeros((m, d)), np.zeros(m)
        points, charged = np.zeros((most, d)), np.zeros(most, dtype=np.int64)
        own, here, u, step, zero = np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(d)
        none, nowhere = np.zeros((0, d)), np.zeros((d, 0))
        empty, scores = np.zeros(0), np.zeros(0)
        listed, g = np.zeros(65, dtype=np.int64), np.zeros(0)
        normal, row, D = np.zeros(d), np.zeros(d + 1), np.zeros(d + 1)
        T, K, rights = np.zeros((d + 1, d)), np.zeros((d + 1, d + 1)), np.zeros(d + 1)
        nonbasic, at = np.zeros(d, dtype=np.int64), np.zeros(d)
        basic, bend = np.zeros(d + 1, dtype=np.int64), np.zeros(d + 1)
        rows, prices, signs = np.zeros(d + 2, dtype=np.int64), np.zeros(d + 2), np.zeros(d + 2)
        for n in range(fixed):
            _set_row(C, h, lengths, tight, n, A[n], zero, a[n])
            equality[n] = equal[n]
        cost, cuts = _cost(c, is_quadratic), 0
        for turn in range(rounds):
            constant = _tangent(Mi, gi, si, c, here)
            for k in range(m):
                constants[k] = _tangent(MK[k], gK[k], sK[k], c, slopes[k])
                right = constants[k] - constant - margin
                _set_row(C, h, lengths, tight, fixed + k, here, slopes[k], right)
            spare = max(0, cuts - _KEPT_CUTS)
            cuts -= spare
            for n in range(cuts):
                charged[n] = charged[n + spare]
                for j in range(d):
                    points[n, j] = points[n + spare, j]
                k, level = charged[n], _tangent(Mi, gi, si, points[n], own)
                right = constants[k] - level - margin
                _set_row(C, h, lengths, tight, fixed + m + n, own, slopes[k], right)
            count = 0
            if is_quadratic:
                for j in range(d):
                    u[j] = 0.0
            else:
                absolute.begin(lo, hi, u, nonbasic, at, D)
            for cut in range(_CUTS_PER_ROUND + 1):
                used = fixed + m + cuts
                if is_quadratic:
                    code, lower, count = quadratic.resume(
                        empty, own, 0.0, none, none, nowhere, scores, empty, C[:used],
                        lengths[:used], equality[:used], B, B_lengths, empty, lo, hi, h[:used],
                        tight[:used], 0.0, INF, u, g, listed, normal, row, D, T, K, rights, rows,
                        prices, signs, count,
                    )  # fmt: skip
                else:
                    code, lower, _, count = absolute.resume(
                        empty, own, 0.0, none, none, nowhere, scores, empty, C[:used],
                        lengths[:used], equality[:used], empty, lo, hi, h[:used], tight[:used],
                        0.0, INF, u, g, listed, normal, row, D, T, nonbasic, at, basic, bend, rows,
                        prices, count,
                    )  # fmt: skip
                if code != SOLVED or cost - lower <= tolerance * cost:
                    return cost, turn
                for j in range(d):
                    step[j] = u[j] - c[j]
                share, k = _leaving(
                    Mi, MK, here, constant, slopes, constants, margin, c, step, True, 1.0
                )
                enough = _OPEN_WAY if cost - lower > 1e-4 * cost else 0.2
                if k < 0 or 1.0 - share <= enough or cut == _CUTS_PER_ROUND:
                    break
                charged[cuts] = k
                for j in range(d):
                    points[cuts, j] = u[j]
                level = _tangent(Mi, gi, si, points[cuts], own)
                right = constants[k] - level - margin
                _set_row(C, h, lengths, tight, used, own, slopes[k], right)
                cuts += 1
                if is_quadratic:
                    for n in range(count):  # rows of bounds come after those of cuts
                        if rows[n] >= used:
                            rows[n] += 1
            share, _ = _leaving(
                Mi, MK, here, constant, slopes, constants, margin, c, step, False, 1.0
            )
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

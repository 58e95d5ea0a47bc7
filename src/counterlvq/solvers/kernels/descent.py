"""Descent inside a nonconvex cell: the convex-concave procedure by cutting planes.

From a point of the cell, each rival's distance is replaced by its tangent there, which
leaves a convex part of the cell around the point. The least cost in that part is found by
the kernels for linear rows: the target's own distance enters by tangents, at the point and
wherever the last solution was too far out, and each solution starts from the one before.
Which valley the search ends in is decided by the first rounds, so these are solved to the
end; a round cut short is another search, and a less steady one. The way from the point to
the solution is then followed as long as it stays in the cell, and the tangents are taken anew.

Everything is in the units ``u`` of the kernels, in which the cost is plain.
"""

from __future__ import annotations

import numpy as np

from counterlvq.numeric.jit import jit, part
from counterlvq.numeric.tolerances import LEAST_LENGTH, OPEN_WAY, SETTLED, TANGENT_ROUNDING
from counterlvq.solvers.kernels import absolute, quadratic
from counterlvq.solvers.kernels.conditions import INF, SOLVED

__all__ = ["descend"]

# Tangents of the target's own distance: most in one round, and most that the next one keeps.
_CUTS_PER_ROUND = 24
_KEPT_CUTS = 12
# Share of the way to a round's solution that may stay open for lack of more tangents; and
# where so small a share of the cost is at stake that the valley is not in question any more.
# They decide how long a descent goes on and where it ends; it claims nothing.
_LAST_OPEN_WAY = 0.2


@part
def _cost(u, ways, is_quadratic):
    total = 0.0
    for j in range(u.size):
        if is_quadratic:
            total += u[j] * u[j]
        else:
            total += (ways[0, j] if u[j] > 0.0 else ways[1, j]) * abs(u[j])
    return total


@part
def _times(M, u, out):
    """Compute ``M u`` for a symmetric M, into `out`."""
    for j in range(u.size):
        out[j] = 0.0
    for i in range(u.size):
        factor = u[i]
        for j in range(u.size):
            out[j] += M[i, j] * factor


@part
def _tangent(M, g, s, u, slope):
    """Slope into `slope`, and the constant, of the tangent of a distance at u."""
    _times(M, u, slope)
    constant = s
    for i in range(u.size):
        constant -= slope[i] * u[i]
        slope[i] = 2.0 * slope[i] + g[i]
    return constant


@part
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


@part
def _curve(M, step, turned):
    """Compute ``step' M step`` for a symmetric M."""
    _times(M, step, turned)
    total = 0.0
    for i in range(step.size):
        total += turned[i] * step[i]
    return total


@part
def _leaving(Mi, MK, own, constant, slopes, constants, margin, c, step, convex, turned):
    """How much of a step from c, at most 1, stays in the cell; and the rival that ends it.

    With `convex`, in the part of it that the rivals' tangents at c leave.
    """
    most, last = 1.0, -1
    mine = _curve(Mi, step, turned)
    for k in range(constants.size):
        level, b = constant - constants[k] + margin, 0.0
        for j in range(c.size):
            slope = own[j] - slopes[k, j]
            level += slope * c[j]
            b += slope * step[j]
        a = mine if convex else mine - _curve(MK[k], step, turned)
        t = _exit(a, b, level)
        if t < most:
            most, last = t, k
    return most, last


@part
def _set_row(C, h, lengths, tight, n, own, slope, right):
    """Write the condition that a tangent of the own distance is below that of a rival."""
    square = 0.0
    for j in range(own.size):
        C[n, j] = own[j] - slope[j]
        square += C[n, j] * C[n, j]
    h[n] = right
    lengths[n] = max(np.sqrt(square), LEAST_LENGTH)
    # Half of this may be lost to rounding; see `most_violated`. It moves an answer inside.
    tight[n] = TANGENT_ROUNDING * (abs(right) + lengths[n])


@part
def _round_from(
    is_quadratic, c, cost, cuts, Mi, gi, si, MK, margin, tolerance, fixed, here, constant, slopes,
    constants, C, h, lengths, tight, equality, points, charged, B, B_lengths, lo, hi, ways, u, step,
    turned, own, space,
):  # fmt: skip
    """Least cost with tangents at c, into `step` from there.

    Returns whether that is worth a step, and the number of cuts.
    """
    # A plain 0 would have the kernels below compiled once for 0 and once for other counts.
    m, count = constants.size, np.int64(0)
    (listed, normal, row, D, T, K, rights, nonbasic, at, basic, bend, rows, prices, signs,
     none, nowhere, empty) = space  # fmt: skip
    if is_quadratic:
        for j in range(u.size):
            u[j] = 0.0
    else:
        absolute.begin(lo, hi, u, nonbasic, at, D)
    for cut in range(_CUTS_PER_ROUND + 1):
        used = fixed + m + cuts
        if is_quadratic:
            code, lower, count = quadratic.resume(
                empty, own, 0.0, none, none, nowhere, empty, empty, C[:used], lengths[:used],
                equality[:used], empty, B, B_lengths, empty, lo, hi, h[:used], tight[:used], 0.0,
                INF, u, empty, listed, normal, row, D, T, K, rights, rows, prices, signs, count,
            )  # fmt: skip
        else:
            code, lower, _, count = absolute.resume(
                empty, own, 0.0, none, none, nowhere, empty, empty, C[:used], lengths[:used],
                equality[:used], empty, lo, hi, ways, h[:used], tight[:used], 0.0, INF, u, empty,
                listed, normal, row, D, T, nonbasic, at, basic, bend, rows, prices, count,
            )  # fmt: skip
        if code != SOLVED or cost - lower <= tolerance * cost:
            return False, cuts
        for j in range(u.size):
            step[j] = u[j] - c[j]
        share, k = _leaving(
            Mi, MK, here, constant, slopes, constants, margin, c, step, True, turned
        )
        enough = OPEN_WAY if cost - lower > SETTLED * cost else _LAST_OPEN_WAY
        if k < 0 or 1.0 - share <= enough or cut == _CUTS_PER_ROUND:
            break
        charged[cuts] = k
        for j in range(u.size):
            points[cuts, j] = u[j]
        right = constants[k] - _tangent(Mi, gi, si, u, own) - margin
        _set_row(C, h, lengths, tight, used, own, slopes[k], right)
        cuts += 1
        if is_quadratic:
            for n in range(count):  # rows of bounds come after those of cuts
                if rows[n] >= used:
                    rows[n] += 1
    return True, cuts


@part
def _walk(
    is_quadratic, Mi, gi, si, MK, gK, sK, A, a, equal, B, B_lengths, lo, hi, ways, margin,
    tolerance, rounds, c, C, h, lengths, tight, equality, slopes, constants, points, charged, space,
):  # fmt: skip
    """As `descend`, in arrays of the caller."""
    d, m, fixed = c.size, sK.size, a.size
    own, here, u, step, turned = np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(d)
    for n in range(fixed):
        _set_row(C, h, lengths, tight, n, A[n], turned, a[n])
        equality[n] = equal[n]
    cost, cuts = _cost(c, ways, is_quadratic), 0
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
        gains, cuts = _round_from(
            is_quadratic, c, cost, cuts, Mi, gi, si, MK, margin, tolerance, fixed, here, constant,
            slopes, constants, C, h, lengths, tight, equality, points, charged, B, B_lengths,
            lo, hi, ways, u, step, turned, own, space,
        )  # fmt: skip
        if not gains:
            return cost, turn
        share, _ = _leaving(
            Mi, MK, here, constant, slopes, constants, margin, c, step, False, turned
        )
        for j in range(d):
            u[j] = c[j] + share * step[j]
        found = _cost(u, ways, is_quadratic)
        if not found < cost:
            return cost, turn
        for j in range(d):
            c[j] = u[j]
        if cost - found <= tolerance * cost:
            return found, turn
        cost = found
    return cost, rounds


@jit
def descend(
    is_quadratic, Mi, gi, si, MK, gK, sK, A, a, equal, B, B_lengths, lo, hi, ways, margin,
    tolerance, rounds, c,
):  # fmt: skip
    """Walk downhill from c, in place; returns the cost and the number of rounds."""
    d, m = c.size, sK.size
    most = a.size + m + _KEPT_CUTS + _CUTS_PER_ROUND
    space = (
        np.zeros(65, dtype=np.int64), np.zeros(d), np.zeros(d + 1), np.zeros(d + 1),
        np.zeros((d + 1, d)), np.zeros((d + 1, d + 1)), np.zeros(d + 1),
        np.zeros(d, dtype=np.int64), np.zeros(d), np.zeros(d + 1, dtype=np.int64),
        np.zeros(d + 1), np.zeros(d + 2, dtype=np.int64), np.zeros(d + 2), np.zeros(d + 2),
        np.zeros((0, d)), np.zeros((d, 0)), np.zeros(0),
    )  # fmt: skip
    return _walk(
        is_quadratic, Mi, gi, si, MK, gK, sK, A, a, equal, B, B_lengths, lo, hi, ways, margin,
        tolerance, rounds, c, np.zeros((most, d)), np.zeros(most), np.ones(most), np.zeros(most),
        np.zeros(most, dtype=np.bool_), np.zeros((m, d)), np.zeros(m), np.zeros((most, d)),
        np.zeros(most, dtype=np.int64), space,
    )  # fmt: skip

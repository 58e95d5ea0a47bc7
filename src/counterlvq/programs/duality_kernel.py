"""What multipliers prove about one cell under a shared metric, compiled, errors accounted for.

Non-negative multipliers on the conditions of a cell, and a vector ``v`` at which the quadratic
part of the cost is replaced by ``2 v'L delta - |v|^2``, give a function that lies below the cost
of every change of the cell. It is separable, so its minimum over a box can be written down.

Everything is computed from the numbers that the user gave: prototypes, factor, constraints and
input. Differences of prototypes are taken before anything else, so that a prototype far away
costs the others no digits. Each sum carries a bound on its own rounding, and the bounds are taken
off at the end: wrong multipliers, and wrong digits, give a weak bound, never a wrong one.

The same code judges a single answer and each row of a batch, so that both say the same to the
last bit. It sees no solver.
"""

from __future__ import annotations

from math import frexp, ldexp

import numpy as np

from counterlvq.numeric.jit import jit_unless_small, part
from counterlvq.numeric.tolerances import FAINT, HUGE, TINY_ROOT, TINY_SQUARE, UNIT

__all__ = [
    "cell_value",
    "cost_of",
    "fastest_gain",
    "flat_cost_of",
    "lead_over",
    "limits_of",
    "narrow_to_cost",
    "overtaking_cost",
    "overtaking_costs",
    "project_row",
]

_INF = np.inf


@part
def flat_cost_of(change, ways):
    """Sum of what each change costs by its unit, up or down; ways is (2, d)."""
    cost = 0.0
    for j in range(change.size):
        cost += (ways[0, j] if change[j] > 0.0 else ways[1, j]) * abs(change[j])
    return cost


@part
def cost_of(change, ways, start, feature, factor):
    """Cost by the unit, and ``|L change|^2``; row c of L has the entries from start_c on."""
    cost = flat_cost_of(change, ways)
    for c in range(start.size - 1):
        lifted = 0.0
        for n in range(start[c], start[c + 1]):
            lifted += factor[n] * change[feature[n]]
        cost += lifted * lifted
    return cost


@part
def _right_side(x, A, R, v):
    """Right-hand side of ``A delta <= v - (A + R) x`` and a bound on its rounding."""
    right, size, terms = v, abs(v), 0
    if v != 0.0:
        terms += 1
    for j in range(x.size):
        total = A[j] + R[j]
        if total != 0.0 and x[j] != 0.0:
            part = total * x[j]
            right -= part
            size += abs(part)
            terms += 1
    # One number that was never touched is exact.
    if terms == 0 or (terms == 1 and v != 0.0):
        return right, 0.0
    return right, (terms + 3) * UNIT * size + TINY_SQUARE


def _steps_to_limits(x, A, R, *others):
    return A.size


@jit_unless_small(_steps_to_limits)
def limits_of(x, A, R, v, equality, column, low, high):
    """Fill in how far each feature may change by the bounds on single features, rounded outwards.

    Row b of A and R has its one slope at ``column[b]``.
    """
    low[:] = -_INF
    high[:] = _INF
    for b in range(v.size):
        j = column[b]
        slope = A[b, j]
        right, error = _right_side(x, A[b], R[b], v[b])
        end = right / slope
        room = error / abs(slope)
        if abs(slope) != 1.0:
            room += UNIT * abs(end)
        room *= 1.0 + 4.0 * UNIT
        outside = end + room
        inside = end - room
        if room > 0.0:
            outside = np.nextafter(outside, _INF)
            inside = np.nextafter(inside, -_INF)
        if slope > 0.0 or equality[b]:
            high[j] = min(high[j], outside)
        if slope < 0.0 or equality[b]:
            low[j] = max(low[j], inside)


@part
def narrow_to_cost(ways, stretch, low, high, cap, inner_low, inner_high):
    """Limit each change to what a cost of `cap` allows; the same as `Grounds.box`."""
    if cap < _INF:
        mantissa, exponent = frexp(cap)
        cap = ldexp(np.ceil(mantissa * 65536.0) / 65536.0, exponent)  # as `stated.coarse`
    root = np.sqrt(cap)
    for j in range(stretch.size):
        if low[j] == 0.0 and high[j] == 0.0:  # no cost holds it any better
            inner_low[j], inner_high[j] = 0.0, 0.0
            continue
        up, down = _INF, _INF
        if ways[0, j] > 0.0:
            up = cap / ways[0, j]
        if ways[1, j] == ways[0, j]:  # a division takes longer than all else here
            down = up
        elif ways[1, j] > 0.0:
            down = cap / ways[1, j]
        if stretch[j] < _INF:
            up, down = min(up, root * stretch[j]), min(down, root * stretch[j])
        up, down = up * (1.0 + 8.0 * UNIT), down * (1.0 + 8.0 * UNIT)
        inner_low[j], inner_high[j] = max(low[j], -down), min(high[j], up)


@part
def _paid(up, down, slope, error, at):
    return (up if at > 0.0 else down) * abs(at) + slope * at - error * abs(at)


@part
def _least(up, down, slope, error, low, high):
    """Minimum of price and ``slope t`` for t in a range, for any slope within its error.

    One unit upwards costs `up`, one downwards `down`. Returns -inf where the range has no end
    and the slope could lead down.
    """
    if low == -_INF and not down - slope - error >= 0.0:
        return -_INF
    if high == _INF and not up + slope - error >= 0.0:
        return -_INF
    least = _paid(up, down, slope, error, min(max(0.0, low), high))
    if low > -_INF:
        least = min(least, _paid(up, down, slope, error, low))
    if high < _INF:
        least = min(least, _paid(up, down, slope, error, high))
    return least


@part
def lead_over(anchors, anchor_errors, z, z_error, prototype, rival):
    """Score of a rival less that of a prototype at the input, and what it rests on.

    Returns the lead, a bound on its rounding, the distance of the two anchors, rounded up, and
    the length of its error. An error of the difference D by e and of the way a from the
    prototype to the input by f changes ``D'D - 2 D'a`` by as much as is summed here.
    """
    r = anchors.shape[1]
    lead, square, away = 0.0, 0.0, 0.0
    for c in range(r):
        D = anchors[rival, c] - anchors[prototype, c]
        a = z[c] - anchors[prototype, c]
        square += D * D
        away += a * a
        lead += D * (D - 2.0 * a)
    length = np.sqrt(square) * (1.0 + (r + 4) * UNIT)
    away = np.sqrt(away) * (1.0 + (r + 4) * UNIT)
    e = anchor_errors[rival] + anchor_errors[prototype] + UNIT * length
    f = z_error + anchor_errors[prototype] + UNIT * away
    error = 2.0 * length * e + e * e + 2.0 * (length * f + (away + f) * e)
    error += (r + 6) * UNIT * length * (length + 2.0 * away)
    return lead, 1.001 * error + TINY_SQUARE, length + TINY_SQUARE, e


def _steps_to_value(F_diagonal, F, column_lengths, anchors, *others):
    return F.size + 8 * column_lengths.size


@jit_unless_small(_steps_to_value)
def cell_value(
    F_diagonal, F, column_lengths, anchors, anchor_errors, z, z_error, x,
    A, R, v, equality, ways, L_diagonal, L,
    prototype, rivals, rival_multipliers, multipliers, point,
    extra_slope, extra_error, extra_constant, extra_constant_error,
    low, high, margin, g, g_size, slope, slope_error,
):  # fmt: skip
    """Least of cost plus charged conditions over the box: what no change of the cell undercuts.

    The conditions are ``score_prototype + margin <= score_rival`` for the listed rivals and
    ``A delta <= v - (A + R) x`` (or ``==``), with multipliers; those of the wrong sign are left
    out. `z` is the input in the space of the metric with `z_error` the length of its rounding
    (the input itself, without rounding, for a plain metric). A unit of change costs ``ways[0]``
    upwards and ``ways[1]`` downwards. The quadratic cost, whose factor is
    ``diag(L_diagonal)`` or L, is replaced by its tangent at `point`. The `extra` terms are added
    as they are, with their errors. `low` and `high` limit each change; they may be infinite. With
    no cost at all, a positive value is a contradiction: no change meets the conditions.

    Returns the value, less all that rounding can be worth, and what that is.
    """
    d, r = x.size, anchors.shape[1]
    # 1. The rivals: sum of multiplier times (score of the prototype - score of the rival).
    for c in range(r):
        g[c] = 0.0
        g_size[c] = 0.0
    constant, size, error = 0.0, 0.0, 0.0
    total, total_error = 0.0, 0.0
    # How often a slope, or the value, is added to at the most.
    adds = rivals.size + v.size + L.shape[0] + 8
    for n in range(rivals.size):
        y = rival_multipliers[n]
        if not FAINT < y < HUGE:
            continue
        k = rivals[n]
        lead, lead_error, length, _ = lead_over(anchors, anchor_errors, z, z_error, prototype, k)
        for c in range(r):
            D = anchors[k, c] - anchors[prototype, c]
            g[c] += y * D
            g_size[c] += y * abs(D) + (TINY_SQUARE if D != 0.0 else 0.0)
        constant -= y * (lead - margin)
        size += y * (abs(lead) + abs(margin))
        error += y * lead_error
        total += y * length
        total_error += y * (anchor_errors[k] + anchor_errors[prototype])
    for j in range(d):
        if low[j] == 0.0 and high[j] == 0.0:  # a feature that stays pays for no slope
            slope[j], slope_error[j] = 0.0, 0.0
            continue
        if F.shape[0]:
            part = 0.0
            for c in range(r):
                part += F[c, j] * g[c]
            slope[j] = 2.0 * part
            blur = total_error + (adds + r) * UNIT * total
        else:
            slope[j] = 2.0 * F_diagonal[j] * g[j]
            blur = total_error + (adds + 2) * UNIT * g_size[j]
        slope_error[j] = 2.0 * column_lengths[j] * blur
    # 2. The user's linear conditions.
    for c in range(v.size):
        p = multipliers[c]
        if not FAINT < abs(p) < HUGE or (p < 0.0 and not equality[c]):
            continue
        right, right_error = _right_side(x, A[c], R[c], v[c])
        constant -= p * right
        size += abs(p * right)
        error += abs(p) * right_error + TINY_SQUARE
        for j in range(d):
            if A[c, j] != 0.0:
                part = p * A[c, j]
                slope[j] += part
                slope_error[j] += adds * UNIT * abs(part) + TINY_SQUARE
    # 3. The quadratic cost: any v will do, so that only products with L round.
    if L_diagonal.size:
        for j in range(d):
            t = L_diagonal[j] * point[j]
            if t == 0.0:
                continue
            part = 2.0 * L_diagonal[j] * t
            slope[j] += part
            slope_error[j] += adds * UNIT * abs(part) + TINY_SQUARE
            error += TINY_SQUARE
            constant -= t * t
            size += t * t
    elif L.shape[0]:
        for c in range(L.shape[0]):
            t = 0.0
            for j in range(d):
                t += L[c, j] * point[j]
            if t == 0.0:
                continue
            constant -= t * t
            size += t * t
            error += TINY_SQUARE
            for j in range(d):
                part = 2.0 * L[c, j] * t
                slope[j] += part
                if L[c, j] != 0.0:
                    slope_error[j] += adds * UNIT * abs(part) + TINY_SQUARE
    # 4. What is left is separable: its least over the box, less all that rounding can be worth.
    constant += extra_constant
    size += abs(extra_constant)
    error += extra_constant_error
    value, blurred = constant, 0.0
    for j in range(d):
        s = slope[j] + extra_slope[j]
        blur = slope_error[j] + extra_error[j]
        if extra_slope[j] != 0.0:
            blur += 2.0 * UNIT * (abs(slope[j]) + abs(extra_slope[j]))
        if low[j] > high[j]:
            return _INF, 0.0
        part = _least(ways[0, j], ways[1, j], s, blur, low[j], high[j])
        if part == -_INF:
            return -_INF, _INF
        value += part
        far = 0.0
        if low[j] > -_INF:
            far = abs(low[j])
        if high[j] < _INF:
            far = max(far, abs(high[j]))
        size += abs(part) + 4.0 * (max(ways[0, j], ways[1, j]) + abs(s) + blur) * far
        blurred += blur * far
    count = adds + L_diagonal.size + d
    error = 1.001 * error + count * UNIT * size
    value -= error
    return (value, error + blurred) if value < _INF else (-_INF, _INF)


def _steps_to_project(x, center, F_diagonal, F, *others):
    return F.size + 2 * x.size


@jit_unless_small(_steps_to_project)
def project_row(x, center, F_diagonal, F, column_lengths, is_plain, z):
    """Take an input to the space of the metric, into `z`; returns the length of its rounding."""
    for c in range(z.size):
        z[c] = 0.0
    if is_plain:
        for j in range(x.size):
            z[j] = x[j]
        return 0.0
    if F.shape[0] == 0:
        # Each coordinate is off by two roundings of itself.
        square = 0.0
        for j in range(x.size):
            z[j] = F_diagonal[j] * (x[j] - center[j])
            square += z[j] * z[j]
        return 2.0 * (1.0 + (x.size + 8) * UNIT) * UNIT * np.sqrt(square) + TINY_ROOT
    size = 0.0
    for j in range(x.size):
        size += column_lengths[j] * abs(x[j] - center[j])
    # Four at a time, which do not wait for each other; each is summed up in the order of its terms.
    rows = F.shape[0]
    for c in range(0, rows - 3, 4):
        first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
        for j in range(x.size):
            away = x[j] - center[j]
            first += F[c, j] * away
            second += F[c + 1, j] * away
            third += F[c + 2, j] * away
            fourth += F[c + 3, j] * away
        z[c], z[c + 1], z[c + 2], z[c + 3] = first, second, third, fourth
    for c in range(rows - rows % 4, rows):
        total = 0.0
        for j in range(x.size):
            total += F[c, j] * (x[j] - center[j])
        z[c] = total
    return (x.size + 4) * UNIT * size


@part
def fastest_gain(
    F_diagonal, F, column_lengths, anchors, anchor_errors, ways, L_diagonal, inverse, inverse_blur,
    stretch, movable, prototype, rival, length, e, n,
):  # fmt: skip
    """How much a prototype can gain on a rival at most, per cost or per root of it.

    A change gains ``-n'delta``. With absolute costs that is at most the largest of ``-n_j / up_j``
    and ``n_j / down_j`` per cost. By a quadratic cost it is at most ``|C'n|`` per root of it, with
    an `inverse` C of L up to E: ``n'delta = n'C (L delta) + n'E delta``, and `inverse_blur` bounds
    the share of ``sum_j |n_j| stretch_j`` that the second term and the rounding of the first can
    be.
    """
    r, d = anchors.shape[1], column_lengths.size
    fastest, total, spread = 0.0, 0.0, 0.0
    for j in range(d):
        n[j] = 0.0
        if not movable[j]:
            continue
        if F.shape[0]:
            for c in range(r):
                n[j] += 2.0 * F[c, j] * (anchors[rival, c] - anchors[prototype, c])
            part = 2.0 * column_lengths[j] * (e + (r + 6) * UNIT * length)
            is_blank = column_lengths[j] == 0.0
        else:
            D = anchors[rival, j] - anchors[prototype, j]
            n[j] = 2.0 * F_diagonal[j] * D
            own = anchor_errors[rival] + anchor_errors[prototype]
            part = 2.0 * column_lengths[j] * (own + 4.0 * UNIT * abs(D))
            is_blank = D == 0.0 and own == 0.0
        size = abs(n[j]) + part
        if not is_blank:
            size += TINY_SQUARE
            total += TINY_SQUARE
        if L_diagonal.size:
            speed = size / L_diagonal[j]
            total += speed * speed
        elif inverse.shape[0]:
            spread += part * stretch[j] + inverse_blur * size * stretch[j]
        else:
            # Where n_j is above 0, it is a change downwards that gains.
            against = part if is_blank else part + TINY_SQUARE
            if n[j] > 0.0:
                fastest = max(fastest, size / ways[1, j], (against - n[j]) / ways[0, j])
            else:
                fastest = max(fastest, size / ways[0, j], (against + n[j]) / ways[1, j])
    rounding = 1.0 + (d + 16) * UNIT
    if L_diagonal.size:
        return np.sqrt(total) * rounding
    if inverse.shape[0]:
        for c in range(inverse.shape[1]):
            part = 0.0
            for j in range(d):
                part += n[j] * inverse[j, c]
            total += part * part
        return (np.sqrt(total) + spread) * rounding
    return fastest * rounding


@part
def overtaking_cost(lead, error, gain, is_quadratic, margin):
    """Cost that no change undercuts that gains on a rival what is missing; 0 if nothing is."""
    behind = -lead - error + margin
    if not behind > 0.0:
        return 0.0
    if not gain > 0.0:
        return _INF if gain == 0.0 else 0.0
    share = behind / gain
    return (share * share if is_quadratic else share) * (1.0 - 16.0 * UNIT)


def _steps_to_overtake(F_diagonal, F, column_lengths, anchors, *others):
    *_, prototypes, _, _, _ = others
    return prototypes.size * (F.size + 4 * column_lengths.size)


@jit_unless_small(_steps_to_overtake)
def overtaking_costs(
    F_diagonal, F, column_lengths, anchors, anchor_errors, z, z_error, ways, L_diagonal, inverse,
    inverse_blur, stretch, movable, prototypes, rivals, margin, out,
):  # fmt: skip
    """Cost of overtaking one rival, for each pair of a prototype and a rival."""
    n = np.empty(column_lengths.size)
    is_quadratic = L_diagonal.size > 0 or inverse.shape[0] > 0
    for a in range(prototypes.size):
        i, k = prototypes[a], rivals[a]
        lead, error, length, e = lead_over(anchors, anchor_errors, z, z_error, i, k)
        gain = fastest_gain(
            F_diagonal, F, column_lengths, anchors, anchor_errors, ways, L_diagonal, inverse,
            inverse_blur, stretch, movable, i, k, length, e, n,
        )  # fmt: skip
        out[a] = overtaking_cost(lead, error, gain, is_quadratic, margin)

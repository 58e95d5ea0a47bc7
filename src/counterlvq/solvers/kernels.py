"""Compiled kernels: the closest point of a cell, a few microseconds each.

Both kernels are dual methods. They start at the best point without any condition, which is
dual feasible, and take in violated conditions one at a time; the cost only rises, so a cell
is abandoned as soon as it passes the best answer so far. Conditions are priced afresh at
each step and kept only while they bind, so that thousands of rivals need no more memory than
a few.

Changes are measured in the units of `Family`, in which the cost is ``sum |u|`` or ``|u|^2``.
Every answer leaves with prices on the conditions that bind, and a bound computed from these
prices alone; see `_l1_bound` and `_l2_bound`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["EMPTY", "FAILED", "INFEASIBLE", "SKIPPED", "SOLVED", "answer_rows"]

SOLVED, INFEASIBLE, FAILED, ABANDONED = 0, 1, 2, 3

_SHARE_OF_LEAD = 2.0**-24
_ROUNDING_MARGIN = 2.0**-48
_AMPLE_MARGIN = 2.0**-40
_ROUNDING = 2.0**-49
_PIVOT = 1e-11
_CROSSING = 2.0**-48
_REACH = 2.0**16
_INF = np.inf
# In `work.used`: a target prototype that was skipped, and one whose cell is empty; the
# latter is lowered further by how many rows the contradiction charges for.
SKIPPED, EMPTY = -1, -2

_jit = njit(nogil=True, cache=True, error_model="numpy")


@_jit
def _normal(family, i, row, out):
    """Left-hand side of a condition, ``out @ u``: a rival's, or a linear constraint's."""
    m = family.rivals.size
    if row >= m:
        out[:] = family.C[row - m]
        return
    k = family.rivals[row]
    d, r = family.Ft.shape
    if family.diagonal:
        for j in range(d):
            c = family.source[j]
            out[j] = 2.0 * (family.anchors[k, c] - family.anchors[i, c]) * family.Ft[j, c]
        return
    for j in range(d):
        out[j] = 0.0
    for c in range(r):
        gap = 2.0 * (family.anchors[k, c] - family.anchors[i, c])
        for j in range(d):
            out[j] += gap * family.Ft[j, c]


@_jit
def _lead(family, i, row, z, h):
    """Right-hand side at the point with projection `z`, for ``u = 0`` there."""
    m = family.rivals.size
    if row >= m:
        return h[row - m]
    k = family.rivals[row]
    lead = 0.0
    for c in range(z.size):
        a, b = family.anchors[i, c], family.anchors[k, c]
        lead += (b - a) * ((a - z[c]) + (b - z[c]))
    return lead


@_jit
def _project(family, z0, u, z):
    d, r = family.Ft.shape
    z[:] = z0
    for j in range(d):
        if u[j] != 0.0:
            if family.diagonal:
                c = family.source[j]
                z[c] += family.Ft[j, c] * u[j]
            else:
                for c in range(r):
                    z[c] += family.Ft[j, c] * u[j]


@_jit
def _nearest_rival(family, z):
    """Position and score of the rival nearest to a projected point."""
    best, at = _INF, -1
    for k in range(family.rivals.size):
        row = family.rivals[k]
        score = 0.0
        for c in range(z.size):
            gap = z[c] - family.anchors[row, c]
            score += gap * gap
        if score < best:
            best, at = score, k
    return at, best


@_jit
def _score(family, i, z):
    score = 0.0
    for c in range(z.size):
        gap = z[c] - family.anchors[i, c]
        score += gap * gap
    return score


@_jit
def _most_violated(family, i, z, u, h, slackness, margin):
    """Find the condition that is broken most: its row and by how much, or -1 if none is.

    A rival counts as overtaken at half the margin and a constraint at half its tightening:
    the other half is there to be lost to rounding.
    """
    at, worst = -1, 0.0
    k, nearest = _nearest_rival(family, z)
    if k >= 0:
        behind = _score(family, i, z) + margin - nearest
        if behind > 0.5 * margin:
            at, worst = k, behind
    chosen, share = -1, 0.0
    for c in range(h.size):
        value = -h[c]
        for j in range(u.size):
            value += family.C[c, j] * u[j]
        if family.equality[c]:
            value = abs(value)
        if value > 0.5 * slackness[c] and value > share * family.lengths[c]:
            share = value / family.lengths[c]
            chosen = c
    if chosen >= 0:
        # A constraint before a rival: nothing is lost, since each is priced again.
        return family.rivals.size + chosen, share * family.lengths[chosen]
    return at, worst


# --- sum |u|: dual simplex with one breakpoint at 0 and one at each end of the box ---------


@_jit
def _left_slope(value, lo):
    return -_INF if value <= lo else (-1.0 if value <= 0.0 else 1.0)


@_jit
def _right_slope(value, hi):
    return _INF if value >= hi else (1.0 if value >= 0.0 else -1.0)


@_jit
def _next_break(value, lo, hi, rightwards):
    if rightwards:
        return min(0.0, hi) if value < 0.0 else hi
    return max(0.0, lo) if value > 0.0 else lo


@_jit
def _l1_slopes(var, value, lo, hi, equality_slack):
    """Left and right slope of the cost of a nonbasic variable; slacks have index >= d."""
    if var >= lo.size:
        return -_INF, (_INF if equality_slack else 0.0)
    return _left_slope(value, lo[var]), _right_slope(value, hi[var])


@_jit
def _is_equality(family, var, d):
    row = var - d - family.rivals.size
    return row >= 0 and family.equality[row]


@_jit
def l1_cell(family, i, z0, lo, hi, h, slackness, margin, cap, work, rows, prices):
    """Least ``sum |u|`` in a cell; returns code, cost and the number of priced rows.

    A dictionary expresses the basic changes in the nonbasic variables. Slacks that become
    basic are forgotten; the row comes back when it is broken again.
    """
    d, m = lo.size, family.rivals.size
    u, z, normal, row, D, T = work.u, work.z, work.normal, work.row, work.D, work.T
    nonbasic, at, basic, slope = work.nonbasic, work.at, work.basic, work.slope
    for j in range(d):
        nonbasic[j] = j
        u[j] = min(max(0.0, lo[j]), hi[j])
        at[j] = u[j]
        D[j] = 0.0
    count = 0  # basic changes
    for _ in range(200 + 20 * (d + m)):
        cost = 0.0
        for j in range(d):
            cost += abs(u[j])
        # A basic change outside its piece counts by the slope of that piece: this is the
        # dual objective, which only rises.
        dual = cost
        for b in range(count):
            dual += slope[b] * u[basic[b]] - abs(u[basic[b]])
        if dual > cap:
            return ABANDONED, dual, _l1_prices(d, nonbasic, D, rows, prices)
        # 1. What is broken: a basic change outside its piece first, then the conditions.
        leave, worst, aim = -1, 1e-14 * (cost + 1e-300), 0.0
        for b in range(count):
            v = basic[b]
            low = max(lo[v], 0.0) if slope[b] > 0 else lo[v]
            high = hi[v] if slope[b] > 0 else min(hi[v], 0.0)
            if low - u[v] > worst:
                leave, worst, aim = b, low - u[v], low
            if u[v] - high > worst:
                leave, worst, aim = b, u[v] - high, high
        broken = -1
        if leave >= 0:
            value = u[basic[leave]]
            for j in range(d):
                row[j] = T[leave, j]
        else:
            _project(family, z0, u, z)
            broken, _size = _most_violated(family, i, z, u, h, slackness, margin)
            if broken < 0:
                return SOLVED, cost, _l1_prices(d, nonbasic, D, rows, prices)
            _normal(family, i, broken, normal)
            if broken < m:
                value = _lead(family, i, broken, z, h) - margin
                if value >= 0.0:  # broken by the rounding of scores only
                    return SOLVED, cost, _l1_prices(d, nonbasic, D, rows, prices)
            else:
                value = h[broken - m]
                for j in range(d):
                    value -= normal[j] * u[j]
            aim = 0.0
            for j in range(d):
                row[j] = -normal[nonbasic[j]] if nonbasic[j] < d else 0.0
            for b in range(count):
                weight = normal[basic[b]]
                if weight != 0.0:
                    for j in range(d):
                        row[j] -= weight * T[b, j]
        # 2. Ratio test with long steps: pass breakpoints while the violation lasts.
        up = 1.0 if value < aim else -1.0
        need = abs(aim - value)
        room = _INF
        if leave >= 0:
            v = basic[leave]
            if up > 0:
                room = slope[leave] - _left_slope(aim, lo[v])
            else:
                room = _right_slope(aim, hi[v]) - slope[leave]
        size = 0.0
        for j in range(d):
            size = max(size, abs(row[j]))
        enter = -1
        while True:
            enter, step, pivot = -1, _INF, 0.0
            for j in range(d):
                pull = up * row[j]
                if abs(pull) <= _PIVOT * size:
                    continue
                left, right = _l1_slopes(
                    nonbasic[j], at[j], lo, hi, _is_equality(family, nonbasic[j], d)
                )
                end = right if pull > 0 else left
                if abs(end) == _INF:
                    continue
                ratio = max((end + D[j]) / pull, 0.0)
                tie = 1e-12 * (1.0 + abs(step)) if step < _INF else 0.0
                if ratio < step - tie or (ratio <= step + tie and abs(pull) > pivot):
                    step, enter, pivot = min(ratio, step) if enter >= 0 else ratio, j, abs(pull)
            if enter < 0 or step >= room:
                break
            v = nonbasic[enter]
            if v >= d:
                break
            ahead = _next_break(at[enter], lo[v], hi[v], up * row[enter] > 0)
            gap = abs(ahead - at[enter])
            if gap == _INF or gap * pivot >= need:
                break
            # The whole stretch to the next breakpoint is needed: jump there.
            jump = ahead - at[enter]
            need -= gap * pivot
            at[enter] = ahead
            u[v] = ahead
            for b in range(count):
                u[basic[b]] += T[b, enter] * jump
        if enter < 0 and room == _INF:
            return INFEASIBLE, cost, _l1_ray(d, nonbasic, row, up, broken, rows, prices)
        if enter < 0 or (leave >= 0 and step >= room):
            # The leaving change may as well pass its breakpoint: it changes its piece.
            slope[leave] -= up * room
            _l1_reduced(d, count, slope, T, D)
            continue
        # 3. Pivot.
        entering = nonbasic[enter]
        pull = row[enter]
        value = u[basic[leave]] if leave >= 0 else aim - up * need
        move = (aim - value) / pull
        rightwards = move > 0 or (move == 0 and up * pull > 0)
        for b in range(count):
            u[basic[b]] += T[b, enter] * move
        if entering < d:
            u[entering] = at[enter] + move
        new_slope = 0.0
        if entering < d:
            left, right = _l1_slopes(entering, at[enter], lo, hi, False)
            new_slope = right if rightwards else left
        leaving = d + broken
        if leave >= 0:
            leaving = basic[leave]
            u[leaving] = aim
        for b in range(count):
            if b != leave:
                weight = T[b, enter] / pull
                if weight != 0.0:
                    for j in range(d):
                        T[b, j] -= weight * row[j]
                T[b, enter] = weight
        spot = leave if leave >= 0 else count
        if entering < d:
            for j in range(d):
                T[spot, j] = -row[j] / pull
            T[spot, enter] = 1.0 / pull
            basic[spot], slope[spot] = entering, new_slope
            if leave < 0:
                count += 1
        elif leave >= 0:
            count -= 1
            basic[leave], slope[leave] = basic[count], slope[count]
            for j in range(d):
                T[leave, j] = T[count, j]
        nonbasic[enter] = leaving
        at[enter] = aim
        _l1_reduced(d, count, slope, T, D)
    return FAILED, 0.0, 0


@_jit
def _l1_reduced(d, count, slope, T, D):
    for j in range(d):
        total = 0.0
        for b in range(count):
            total += slope[b] * T[b, j]
        D[j] = total


@_jit
def _l1_prices(d, nonbasic, D, rows, prices):
    """Prices of the conditions whose slack is nonbasic: its reduced cost."""
    count = 0
    for j in range(d):
        if nonbasic[j] >= d and D[j] != 0.0:
            rows[count], prices[count] = nonbasic[j] - d, D[j]
            count += 1
    return count


@_jit
def _l1_ray(d, nonbasic, row, up, broken, rows, prices):
    """Prices of a contradiction: the broken row plus what would have to give way."""
    count = 0
    for j in range(d):
        if nonbasic[j] >= d and row[j] != 0.0:
            rows[count], prices[count] = nonbasic[j] - d, -up * row[j]
            count += 1
    if broken >= 0:
        rows[count], prices[count] = broken, up
        count += 1
    return count


@_jit
def _combined(family, i, z0, h, shift, tight, rows, prices, count, work):
    """Sum of priced conditions: its slope in work.row; returns constant and size of terms.

    `shift` is asked of rivals and `tight` of constraints beyond their bare condition.
    """
    m = family.rivals.size
    slope, normal = work.row, work.normal
    slope[:] = 0.0
    constant, size = 0.0, 0.0
    for n in range(count):
        price, row = prices[n], rows[n]
        if price < 0.0 and not (row >= m and family.equality[row - m]):
            continue
        _normal(family, i, row, normal)
        right = _lead(family, i, row, z0, h)
        if row < m:
            right -= shift
        elif not family.equality[row - m]:
            right += tight[row - m]
        for j in range(slope.size):
            slope[j] += price * normal[j]
        constant -= price * right
        size += abs(price * right)
    return constant, size


@_jit
def _l1_bound(family, i, z0, lo, hi, h, tight, rows, prices, count, cap, work):
    """Cost that no point of the cell undercuts, from prices alone, margin 0; at most cap."""
    constant, size = _combined(family, i, z0, h, 0.0, tight, rows, prices, count, work)
    value = constant
    for j in range(lo.size):
        low, high = max(lo[j], -cap), min(hi[j], cap)
        if low > high:
            return cap
        g = work.row[j]
        middle = min(max(0.0, low), high)
        least = min(abs(low) + g * low, abs(high) + g * high, abs(middle) + g * middle)
        value += least
        size += abs(least)
    return min(cap, max(0.0, value - _ROUNDING * size))


@_jit
def _contradicts(family, i, z0, lo, hi, h, margin, tight, rows, prices, count, reach, work):
    """Whether prices show that no point within reach meets the conditions."""
    constant, size = _combined(family, i, z0, h, margin, tight, rows, prices, count, work)
    value = constant
    for j in range(lo.size):
        low, high = max(lo[j], -reach[j]), min(hi[j], reach[j])
        if low > high:
            return True
        g = work.row[j]
        least = min(g * low, g * high)
        value += least
        size += abs(least)
    return value > _ROUNDING * size


# --- |u|^2: dual active set on the Gram matrix of the binding conditions -------------------


@_jit
def _box_violation(family, u, lo, hi):
    """Find the bound of a feature that is broken most: its row, and how far in length."""
    d = lo.size
    base = family.rivals.size + family.equality.size
    at, worst = -1, 0.0
    for j in range(d):
        if lo[j] == -_INF and hi[j] == _INF:
            continue
        value = 0.0
        for c in range(d):
            value += family.B[j, c] * u[c]
        tolerance = 1e-14 * abs(value)
        over, under = value - hi[j], lo[j] - value
        if over > tolerance and over / family.B_lengths[j] > worst:
            at, worst = base + 2 * j, over / family.B_lengths[j]
        if under > tolerance and under / family.B_lengths[j] > worst:
            at, worst = base + 2 * j + 1, under / family.B_lengths[j]
    return at, worst


@_jit
def _l2_row(family, i, row, z0, lo, hi, h, margin, out):
    """Left-hand side of any row of the quadratic kernel, and its right-hand side at u = 0."""
    base = family.rivals.size + family.equality.size
    if row < base:
        _normal(family, i, row, out)
        right = _lead(family, i, row, z0, h)
        return right - margin if row < family.rivals.size else right
    j = (row - base) // 2
    if (row - base) % 2 == 0:
        out[:] = family.B[j]
        return hi[j]
    out[:] = -family.B[j]
    return -lo[j]


@_jit
def _is_free(family, row):
    """Whether the price of a row may have any sign."""
    c = row - family.rivals.size
    return c >= 0 and c < family.equality.size and family.equality[c]


@_jit
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


@_jit
def _forward(K, count, right):
    for a in range(count):
        for c in range(a):
            right[a] -= K[a, c] * right[c]
        right[a] /= K[a, a]


@_jit
def _backward(K, count, right):
    for a in range(count - 1, -1, -1):
        for c in range(a + 1, count):
            right[a] -= K[c, a] * right[c]
        right[a] /= K[a, a]


@_jit
def l2_cell(family, i, z0, lo, hi, h, slackness, margin, cap, work, rows, prices):
    """Least ``|u|^2`` in a cell; returns code, cost and the number of priced rows.

    Goldfarb and Idnani: take in the most violated row, let go of rows whose price would
    turn negative on the way.
    """
    d, m = lo.size, family.rivals.size
    u, z, normal, N, K = work.u, work.z, work.normal, work.T, work.K
    pull, right = work.D, work.row
    u[:] = 0.0
    count = 0
    for _ in range(200 + 20 * (d + m)):
        cost = 0.0
        for j in range(d):
            cost += u[j] * u[j]
        if cost > cap:
            return ABANDONED, cost, count
        # 1. The row that is broken most, by length in the space of u.
        _project(family, z0, u, z)
        row, size = _most_violated(family, i, z, u, h, slackness, margin)
        if row >= 0:
            _normal(family, i, row, normal)
            length = 0.0
            for j in range(d):
                length += normal[j] * normal[j]
            if length == 0.0:
                rows[0], prices[0], work.sign[0] = row, 1.0, 1.0
                return INFEASIBLE, cost, 1
            size /= np.sqrt(length)
        box, far = _box_violation(family, u, lo, hi)
        if box >= 0 and (row < 0 or far >= size):
            row = box
        if row < 0:
            _l2_refine(family, i, z0, lo, hi, h, margin, count, rows, prices, work)
            cost = 0.0
            for j in range(d):
                cost += u[j] * u[j]
            return SOLVED, cost, count
        rhs = _l2_row(family, i, row, z0, lo, hi, h, margin, normal)
        square, over = 0.0, -rhs
        for j in range(d):
            square += normal[j] * normal[j]
            over += normal[j] * u[j]
        if row < m:
            # Against the current point, where little is lost to cancellation.
            over = margin - _lead(family, i, row, z, h)
            over = max(over, 0.0)  # below 0 it was broken by the rounding of scores only
        sign = 1.0
        if over < 0.0:  # an equality that is undershot
            sign, over = -1.0, -over
            for j in range(d):
                normal[j] = -normal[j]
        price = 0.0
        # 2. Raise its price until it holds, dropping rows that would be overpaid.
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
            drop, limit = -1, _INF
            for a in range(count):
                if right[a] > 1e-14 and not _is_free(family, rows[a]):
                    ratio = prices[a] / right[a]
                    if ratio < limit:
                        drop, limit = a, ratio
            dependent = rest <= 1e-13 * square or count == d
            if dependent and drop < 0:
                for a in range(count):
                    prices[a] = -right[a]
                rows[count], prices[count], work.sign[count] = row, 1.0, sign
                return INFEASIBLE, cost, count + 1
            full = _INF if dependent else over / rest
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
                # An equality entered from below keeps its own orientation in `prices`.
                rows[count], prices[count] = row, price
                work.sign[count] = sign
                count += 1
                break
            count -= 1
            for a in range(drop, count):
                rows[a], prices[a], work.sign[a] = rows[a + 1], prices[a + 1], work.sign[a + 1]
                for j in range(d):
                    N[a, j] = N[a + 1, j]
            if not _factor(N, count, K):
                return FAILED, 0.0, 0
    return FAILED, 0.0, 0


@_jit
def _l2_refine(family, i, z0, lo, hi, h, margin, count, rows, prices, work):
    """One round of iterative refinement of prices and point on the binding rows."""
    u, N, K, right = work.u, work.T, work.K, work.row
    d = u.size
    for _ in range(2):
        for j in range(d):
            total = 0.0
            for a in range(count):
                total -= prices[a] * N[a, j]
            u[j] = total
        for a in range(count):
            rhs = _l2_row(family, i, rows[a], z0, lo, hi, h, margin, work.normal)
            miss = -work.sign[a] * rhs
            for j in range(d):
                miss += N[a, j] * u[j]
            right[a] = miss
        _forward(K, count, right)
        _backward(K, count, right)
        for a in range(count):
            prices[a] += right[a]
    for j in range(d):
        total = 0.0
        for a in range(count):
            total -= prices[a] * N[a, j]
        u[j] = total


@_jit
def _l2_combined(family, i, z0, lo, hi, h, shift, tight, rows, prices, signs, count, work):
    base = family.rivals.size
    constraints = family.equality.size
    slope, normal = work.row, work.normal
    slope[:] = 0.0
    constant, size = 0.0, 0.0
    for n in range(count):
        row, price = rows[n], prices[n]
        if price < 0.0 and not _is_free(family, row):
            continue
        price *= signs[n]
        right = _l2_row(family, i, row, z0, lo, hi, h, shift, normal)
        if base <= row < base + constraints and not family.equality[row - base]:
            right += tight[row - base]
        for j in range(slope.size):
            slope[j] += price * normal[j]
        constant -= price * right
        size += abs(price * right)
    return constant, size


@_jit
def _l2_bound(family, i, z0, lo, hi, h, tight, rows, prices, signs, count, cap, work):
    """Cost that no point of the cell undercuts, from prices alone, margin 0; at most cap.

    ``|u|^2 + 2 (slope'u + constant)`` is least at ``u = -slope``.
    """
    constant, size = _l2_combined(
        family, i, z0, lo, hi, h, 0.0, tight, rows, prices, signs, count, work
    )
    square = 0.0
    for j in range(lo.size):
        square += work.row[j] * work.row[j]
    value = 2.0 * constant - square
    return min(cap, max(0.0, value - _ROUNDING * (2.0 * size + square)))


@_jit
def _l2_contradicts(
    family, i, z0, lo, hi, h, margin, tight, rows, prices, signs, count, reach, work
):
    constant, size = _l2_combined(
        family, i, z0, lo, hi, h, margin, tight, rows, prices, signs, count, work
    )
    value = constant
    for j in range(lo.size):
        loss = abs(work.row[j]) * reach[j]
        value -= loss
        size += loss
    return value > _ROUNDING * size


# --- rows of a batch -----------------------------------------------------------------------


@_jit
def _quick_bounds(family, z, score, work, quick):
    """Cost of overtaking the nearest rival alone, for each target prototype."""
    k, nearest = _nearest_rival(family, z)
    normal = work.normal
    for t in range(family.targets.size):
        i = family.targets[t]
        behind = score[t] - nearest
        quick[t] = 0.0
        if k < 0 or behind <= 0.0:
            continue
        _normal(family, i, k, normal)
        largest, square = 0.0, 0.0
        for j in range(normal.size):
            largest = max(largest, abs(normal[j]))
            square += normal[j] * normal[j]
        if square == 0.0:
            continue
        exact = -_lead(family, i, k, z, normal)
        if family.quadratic:
            quick[t] = exact * exact / square * (1.0 - 1e-12)
        else:
            quick[t] = exact / largest * (1.0 - 1e-12)
    return nearest


@_jit
def _prepare(family, x, work):
    """Fill in what depends on the input: projection, box, right-hand sides, reach.

    Returns whether the bounds of each feature leave room.
    """
    d = family.columns.size
    for c in range(work.z0.size):
        if family.diagonal:
            work.z0[c] = x[c] - family.center[c]
        else:
            total = 0.0
            for j in range(x.size):
                total += family.F[c, j] * (x[j] - family.center[j])
            work.z0[c] = total
    for j in range(d):
        work.lower[j], work.upper[j] = -_INF, _INF
    for b in range(family.bound_column.size):
        end = family.bound_value[b]
        for j in range(x.size):
            if family.bound_old[b, j] != 0.0:
                end -= family.bound_old[b, j] * x[j]
        end /= family.bound_slope[b]
        j = family.bound_column[b]
        if family.bound_slope[b] > 0 or family.bound_fixes[b]:
            work.upper[j] = min(work.upper[j], end)
        if family.bound_slope[b] < 0 or family.bound_fixes[b]:
            work.lower[j] = max(work.lower[j], end)
    for j in range(d):
        value = x[family.columns[j]]
        low, high = work.lower[j], work.upper[j]
        if low > high:
            if low - high > _CROSSING * max(abs(low), abs(high)):
                return False
            work.lower[j] = high
        unit = 1.0 if family.quadratic else family.prices[j]
        work.lo[j] = (work.lower[j] - value) * unit
        work.hi[j] = (work.upper[j] - value) * unit
        far = max(abs(family.least[j] - value), abs(family.most[j] - value))
        if work.lower[j] > -_INF:
            far = max(far, abs(work.lower[j] - value))
        if work.upper[j] < _INF:
            far = max(far, abs(work.upper[j] - value))
        work.spread[j] = far
    for c in range(family.equality.size):
        right, size = family.v[c], abs(family.v[c])
        for j in range(x.size):
            right -= (family.A[c, j] + family.R[c, j]) * x[j]
            size += (abs(family.A[c, j]) + abs(family.R[c, j])) * abs(x[j])
        for j in range(d):
            size += abs(family.A[c, family.columns[j]]) * work.spread[j]
        work.tight[c] = _CROSSING * size
        work.h[c] = right if family.equality[c] else right - work.tight[c]
    for j in range(d):
        if family.quadratic:
            total = 0.0
            for c in range(d):
                total += abs(family.root[j, c]) * work.spread[c]
            work.reach[j] = _REACH * total
        else:
            work.reach[j] = _REACH * work.spread[j] * family.prices[j]
    return True


@_jit
def _place(family, x, u, work, y):
    """Turn u into a point of the user's space, within the bounds exactly; return its cost."""
    d = family.columns.size
    y[:] = x
    for j in range(d):
        if family.quadratic:
            change = 0.0
            for c in range(d):
                change += family.B[j, c] * u[c]
        else:
            change = u[j] / family.prices[j]
        column = family.columns[j]
        y[column] = min(max(x[column] + change, work.lower[j]), work.upper[j])
        work.change[j] = y[column] - x[column]
    cost = 0.0
    for j in range(d):
        if family.quadratic:
            part = 0.0
            for c in range(d):
                part += family.root[j, c] * work.change[c]
            cost += part * part
        else:
            cost += family.prices[j] * abs(work.change[j])
    return cost


@_jit
def _explore(family, margin, work):
    """Try the target prototypes in turn; returns the winner (or -1), its cost, and a code."""
    m, pt = family.rivals.size, family.targets.size
    z0 = work.z0
    scale = family.span
    for c in range(z0.size):
        scale += z0[c] * z0[c]
    for t in range(pt):
        work.score[t] = _score(family, family.targets[t], z0)
    nearest = _quick_bounds(family, z0, work.score, work, work.quick)
    order = np.argsort(work.quick, kind="mergesort")
    best, winner, empty = _INF, -1, 0
    for visit in range(pt):
        t = order[visit]
        work.used[t] = SKIPPED
        if work.quick[t] >= best:
            continue
        i = family.targets[t]
        ask = margin
        if np.isnan(margin):
            behind = max(work.score[t] - nearest, 0.0) if m else 0.0
            ask = min(max(_SHARE_OF_LEAD * behind, _ROUNDING_MARGIN * scale), _AMPLE_MARGIN * scale)
        rows, prices = work.rows[t], work.prices[t]
        cell = (work.lo, work.hi, work.h, work.tight)
        if family.quadratic:
            code, cost, count = l2_cell(family, i, z0, *cell, ask, best, work, rows, prices)
        else:
            code, cost, count = l1_cell(family, i, z0, *cell, ask, best, work, rows, prices)
        work.used[t] = count
        work.points[t] = work.u
        work.signs[t] = work.sign
        if code == FAILED:
            return -1, _INF, FAILED
        if code == INFEASIBLE:
            if not _is_empty(family, i, t, count, work):
                return -1, _INF, FAILED
            work.used[t] = EMPTY - count
            empty += 1
        elif code == SOLVED and cost < best:
            best, winner = cost, t
    if winner < 0:
        return -1, _INF, INFEASIBLE if empty == pt else FAILED
    return winner, best, SOLVED


@_jit
def _is_empty(family, i, t, count, work):
    """Whether the prices of a contradiction hold up, without margin or tightening."""
    rows, prices = work.rows[t], work.prices[t]
    if family.quadratic:
        return _l2_contradicts(
            family, i, work.z0, work.lo, work.hi, work.h, 0.0, work.tight, rows, prices,
            work.signs[t], count, work.reach, work,
        )  # fmt: skip
    return _contradicts(
        family, i, work.z0, work.lo, work.hi, work.h, 0.0, work.tight, rows, prices, count,
        work.reach, work,
    )  # fmt: skip


@_jit
def _certified(family, cap, work):
    """Cost that no counterfactual undercuts: the least over all cells, from prices alone."""
    bound = cap
    for t in range(family.targets.size):
        count = work.used[t]
        if count < 0:
            continue
        i, rows, prices = family.targets[t], work.rows[t], work.prices[t]
        if family.quadratic:
            shown = _l2_bound(
                family, i, work.z0, work.lo, work.hi, work.h, work.tight, rows, prices,
                work.signs[t], count, cap, work,
            )  # fmt: skip
        else:
            shown = _l1_bound(
                family, i, work.z0, work.lo, work.hi, work.h, work.tight, rows, prices,
                count, cap, work,
            )  # fmt: skip
        bound = min(bound, shown)
    return bound


@_jit
def answer_rows(family, X, margin, work, Y, cost, bound, code):
    """Answer each row of X: point, cost, certified bound and code, into the last four.

    `margin` is NaN for the default one. What remains in `work` belongs to the last row.
    """
    for n in range(X.shape[0]):
        Y[n] = np.nan
        cost[n], bound[n] = _INF, 0.0
        if not _prepare(family, X[n], work):
            code[n], bound[n] = INFEASIBLE, _INF
            work.used[:] = EMPTY
            continue
        winner, _best, code[n] = _explore(family, margin, work)
        if code[n] == SOLVED:
            cost[n] = _place(family, X[n], work.points[winner], work, Y[n])
            bound[n] = _certified(family, cost[n], work)
        elif code[n] == INFEASIBLE:
            bound[n] = _INF

"""Least cost of absolute changes u in a cell: a dual simplex method with breakpoints.

The cost of each change is piecewise linear, with breakpoints at 0 and at the ends of its
box; `ways` (2, d) holds what one unit of it costs upwards and downwards. A dictionary
expresses the basic changes in the nonbasic variables, which rest at breakpoints (changes) or
at 0 (slacks of conditions). Slacks that become basic are forgotten: their row comes back when
it is broken again.
"""

from __future__ import annotations

from counterlvq.numeric.jit import part
from counterlvq.numeric.tolerances import LEFT_COST, PIVOT, TIE
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

__all__ = ["begin", "resume"]


@part
def _left_slope(value, lo, ways, v):
    return -INF if value <= lo else (-ways[1, v] if value <= 0.0 else ways[0, v])


@part
def _right_slope(value, hi, ways, v):
    return INF if value >= hi else (ways[0, v] if value >= 0.0 else -ways[1, v])


@part
def _cost(value, ways, v):
    return ways[0, v] * value if value > 0.0 else -ways[1, v] * value


@part
def _outside_piece(count, basic, slope, u, lo, hi, tolerance):
    """Find the basic change that is farthest outside its piece, and the end it should be at."""
    leave, worst, aim = -1, tolerance, 0.0
    for b in range(count):
        v = basic[b]
        low = max(lo[v], 0.0) if slope[b] > 0 else lo[v]
        high = hi[v] if slope[b] > 0 else min(hi[v], 0.0)
        if low - u[v] > worst:
            leave, worst, aim = b, low - u[v], low
        if u[v] - high > worst:
            leave, worst, aim = b, u[v] - high, high
    return leave, aim


@part
def _entering(row, up, size, nonbasic, at, D, lo, hi, ways, m, equality):
    """Ratio test: the nonbasic variable whose cost first stops the multiplier from rising.

    Among those that tie, the one with the largest pivot.
    """
    d = lo.size
    enter, step, pivot = -1, INF, 0.0
    for j in range(d):
        pull = up * row[j]
        if abs(pull) <= PIVOT * size:
            continue
        v = nonbasic[j]
        if v < d:
            end = _left_slope(at[j], lo[v], ways, v)
            if pull > 0:
                end = _right_slope(at[j], hi[v], ways, v)
        else:
            c = v - d - m
            end = 0.0 if pull > 0 and not (c >= 0 and equality[c]) else INF
        if abs(end) == INF:
            continue
        ratio = max((end + D[j]) / pull, 0.0)
        tie = TIE * (1.0 + step) if step < INF else 0.0
        if ratio < step - tie:
            enter, step, pivot = j, ratio, abs(pull)
        elif ratio <= step + tie and abs(pull) > pivot:
            enter, step, pivot = j, min(ratio, step), abs(pull)
    return enter, step


@part
def _reduced_costs(d, count, slope, T, D):
    for j in range(d):
        D[j] = 0.0
    for b in range(count):
        s = slope[b]
        for j in range(d):
            D[j] += s * T[b, j]


@part
def _prices(d, nonbasic, D, rows, prices):
    """Multipliers of the conditions whose slack is nonbasic: its reduced cost."""
    count = 0
    for j in range(d):
        if nonbasic[j] >= d and D[j] != 0.0:
            rows[count], prices[count] = nonbasic[j] - d, D[j]
            count += 1
    return count


@part
def _ray(d, nonbasic, row, up, broken, rows, prices):
    """Multipliers of a contradiction: the broken row plus what would have to give way."""
    count = 0
    for j in range(d):
        if nonbasic[j] >= d and row[j] != 0.0:
            rows[count], prices[count] = nonbasic[j] - d, -up * row[j]
            count += 1
    if broken >= 0:
        rows[count], prices[count] = broken, up
        count += 1
    return count


@part
def begin(lo, hi, u, nonbasic, at, D):
    """Start where nothing is asked for: every change at its cheapest, none of them basic."""
    for j in range(lo.size):
        nonbasic[j] = j
        u[j] = min(max(0.0, lo[j]), hi[j])
        at[j] = u[j]
        D[j] = 0.0


@part
def resume(
    TAi, TNi, score, RA, RN, RNT, scores, scale, C, lengths, equality, z0, lo, hi, ways, h, tight,
    margin, cap, u, g, listed, normal, row, D, T, nonbasic, at, basic, slope, rows, prices, count,
):  # fmt: skip
    """Go on from a dictionary with `count` basic changes, after conditions were added.

    Returns a code, the cost, the number of charged rows and the number of basic changes.
    """
    d, m = lo.size, RN.shape[0]
    listed[0] = 0
    for _ in range(200 + 20 * (d + m)):
        cost = 0.0
        for j in range(d):
            cost += _cost(u[j], ways, j)
        # A basic change outside its piece counts by the slope of that piece: this is the
        # dual objective, which only rises.
        dual = cost
        for b in range(count):
            dual += slope[b] * u[basic[b]] - _cost(u[basic[b]], ways, basic[b])
        if dual > cap:
            return ABANDONED, dual, _prices(d, nonbasic, D, rows, prices), count
        # 1. What is broken: a basic change outside its piece first, then the conditions.
        # Less than 1e-14 of the cost is left as it is: that moves the point, never a bound.
        leave, aim = _outside_piece(count, basic, slope, u, lo, hi, LEFT_COST * cost)
        broken = -1
        if leave >= 0:
            value = u[basic[leave]]
            for j in range(d):
                row[j] = T[leave, j]
        else:
            broken = most_violated(
                u,
                scores,
                score,
                TNi,
                RN,
                RNT,
                scale,
                C,
                lengths,
                equality,
                h,
                tight,
                margin,
                g,
                listed,
            )
            if broken < 0:
                return SOLVED, cost, _prices(d, nonbasic, D, rows, prices), count
            normal_of(broken, TNi, RN, C, normal)
            value = lead_of(broken, TAi, RA, z0, h)
            if broken < m:
                value -= margin
            for j in range(d):
                value -= normal[j] * u[j]
            if broken < m and value >= 0.0:  # broken by the rounding of scores only
                return SOLVED, cost, _prices(d, nonbasic, D, rows, prices), count
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
        room = INF  # how far the multiplier may rise before the leaving change passes `aim`
        if leave >= 0:
            v = basic[leave]
            if up > 0:
                room = slope[leave] - _left_slope(aim, lo[v], ways, v)
            else:
                room = _right_slope(aim, hi[v], ways, v) - slope[leave]
        size = 0.0
        for j in range(d):
            size = max(size, abs(row[j]))
        while True:
            enter, step = _entering(row, up, size, nonbasic, at, D, lo, hi, ways, m, equality)
            if enter < 0 or step >= room or nonbasic[enter] >= d:
                break
            v = nonbasic[enter]
            if up * row[enter] > 0:
                ahead = min(0.0, hi[v]) if at[enter] < 0.0 else hi[v]
            else:
                ahead = max(0.0, lo[v]) if at[enter] > 0.0 else lo[v]
            jump = ahead - at[enter]
            gain = abs(jump * row[enter])
            if gain >= need:
                break
            # The whole stretch to the next breakpoint is needed: jump there.
            need -= gain
            at[enter] = ahead
            u[v] = ahead
            for b in range(count):
                u[basic[b]] += T[b, enter] * jump
        if enter < 0 and room == INF:
            return INFEASIBLE, cost, _ray(d, nonbasic, row, up, broken, rows, prices), count
        if enter < 0 or step >= room:
            # The leaving change may as well pass its breakpoint: it changes its piece.
            slope[leave] -= up * room
            _reduced_costs(d, count, slope, T, D)
            continue
        # 3. Pivot.
        entering, pull = nonbasic[enter], row[enter]
        value = u[basic[leave]] if leave >= 0 else aim - up * need
        move = (aim - value) / pull
        for b in range(count):
            u[basic[b]] += T[b, enter] * move
        entered = 0.0
        if entering < d:
            u[entering] = at[enter] + move
            if up * pull > 0:
                entered = _right_slope(at[enter], hi[entering], ways, entering)
            else:
                entered = _left_slope(at[enter], lo[entering], ways, entering)
        for b in range(count):
            if b != leave:
                weight = T[b, enter] / pull
                if weight != 0.0:
                    for j in range(d):
                        T[b, j] -= weight * row[j]
                T[b, enter] = weight
        leaving = d + broken
        if leave >= 0:
            leaving = basic[leave]
            u[leaving] = aim
        spot = leave if leave >= 0 else count
        if entering < d:
            for j in range(d):
                T[spot, j] = -row[j] / pull
            T[spot, enter] = 1.0 / pull
            basic[spot], slope[spot] = entering, entered
            if leave < 0:
                count += 1
        elif leave >= 0:
            count -= 1
            basic[leave], slope[leave] = basic[count], slope[count]
            for j in range(d):
                T[leave, j] = T[count, j]
        nonbasic[enter], at[enter] = leaving, aim
        _reduced_costs(d, count, slope, T, D)
    return FAILED, 0.0, 0, count

"""What is checked of every finished point, compiled: constraints, cost and gap in one pass.

It sees numbers alone, and nothing of how a point was found. A row is summed by itself, term by
term, so that it is judged the same alone and among others.

Importing this module imports Numba; `judging` does so when the first point is judged.
"""

from __future__ import annotations

import numpy as np

from counterlvq.compiling import borrowed, jit

__all__ = ["judge_rows", "relative_gap"]

_INF = np.inf
# How far an equality may be off, relative to the numbers that meet in it: it rarely holds to
# the last digit.
_EQUALITY_ROUNDING = 2.0**-40
# Costs below this share of the cost of crossing the whole model cannot be told from zero to
# six digits: half of float64's digits go to where the boundary lies.
_RESOLUTION = 2.0**-25


@jit
def _is_finite(y):
    finite = True
    for j in range(y.size):
        finite = finite and abs(y[j]) < _INF
    return finite


@jit
def _meets(x, y, start, feature, new, old, value, equality, give):
    """Whether ``new @ y + old @ x <= value`` holds for each condition, or ``==``.

    An inequality may be off by the share `give` of the numbers that meet in it.
    """
    for k in range(value.size):
        given, taken, size = 0.0, 0.0, 0.0
        for n in range(start[k], start[k + 1]):
            j = feature[n]
            here, before = new[n] * y[j], old[n] * x[j]
            taken += here
            given += before
            size += abs(here) + abs(before)
        surplus, share = taken + given - value[k], give
        if equality[k]:
            surplus, share = abs(surplus), _EQUALITY_ROUNDING
        allowed = share * (size + abs(value[k])) if share > 0.0 else 0.0
        # Numbers too large to be told apart are not believed: inf <= inf proves nothing.
        if not surplus <= allowed or not surplus < _INF:
            return False
    return True


@jit
def _price(change, w, L_start, L_feature, L_factor):
    """Compute ``sum w |change|`` and ``|L change|^2``."""
    flat, square = 0.0, 0.0
    for j in range(change.size):
        flat += w[j] * abs(change[j])
    for c in range(L_start.size - 1):
        lifted = 0.0
        for n in range(L_start[c], L_start[c + 1]):
            lifted += L_factor[n] * change[L_feature[n]]
        square += lifted * lifted
    return flat, square


@jit
def relative_gap(cost, bound, floor):
    """Share of a cost that is not proved, ``(cost - bound) / cost``.

    Where a cost is below `floor`, the least that floating point can tell from zero at this
    input, the share is taken of `floor`.
    """
    unproved = cost - bound
    if unproved <= 0.0:
        return 0.0
    share = unproved / max(cost, floor)
    return share if share >= 0.0 else _INF


@jit
def judge_rows(checks, X, Y, bounds, give, squares, good, costs, gaps):
    """Judge the counterfactual Y of each row of X, and what its bound proves.

    Into the last three: whether a row is finite and meets the linear constraints, what it
    costs, and the share of its cost that is not proved. `squares` holds the quadratic part of
    each cost where the factor only comes near it, and NaN where it is the factor's own.
    """
    start, feature, value = borrowed(checks.start), borrowed(checks.feature), borrowed(checks.value)
    new, old, equality = borrowed(checks.new), borrowed(checks.old), borrowed(checks.equality)
    w, low, high = borrowed(checks.w), borrowed(checks.low), borrowed(checks.high)
    L_start, L_feature = borrowed(checks.L_start), borrowed(checks.L_feature)
    L_factor = borrowed(checks.L_factor)
    X, Y = borrowed(X), borrowed(Y)
    change = np.empty(w.size)
    for n in range(Y.shape[0]):
        x, y = X[n], Y[n]
        good[n], costs[n], gaps[n] = False, _INF, _INF
        if not _is_finite(y):
            continue
        good[n] = _meets(x, y, start, feature, new, old, value, equality, give)
        for j in range(w.size):
            change[j] = y[j] - x[j]
        flat, square = _price(change, w, L_start, L_feature, L_factor)
        costs[n] = flat + (square if np.isnan(squares[n]) else squares[n])
        for j in range(w.size):
            change[j] = max(abs(low[j] - x[j]), abs(high[j] - x[j]))
        flat, square = _price(change, w, L_start, L_feature, L_factor)
        gaps[n] = relative_gap(costs[n], bounds[n], _RESOLUTION * flat + _RESOLUTION**2 * square)

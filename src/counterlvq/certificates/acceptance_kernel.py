"""What is checked of every finished point, compiled: constraints, cost and gap in one pass.

It sees numbers alone, and nothing of how a point was found. A row is summed by itself, term by
term, so that it is judged the same alone and among others.
"""

from __future__ import annotations

import numpy as np

from counterlvq.numeric.jit import borrowed, jit, jit_unless_small, part
from counterlvq.numeric.quadratic_sums import split_product, split_sum
from counterlvq.numeric.tolerances import EQUALITY_ROUNDING, UNIT
from counterlvq.programs.duality_kernel import cost_of, flat_cost_of

__all__ = ["judge_rows", "relative_gap"]

_INF = np.inf


@part
def _exact_surplus(x, y, first, last, feature, new, old, value):
    """Left-hand side less right-hand side, to twice the digits: its sign can be trusted."""
    total, rest = -value, 0.0
    for n in range(first, last):
        j = feature[n]
        for factor, at in ((new[n], y[j]), (old[n], x[j])):
            product, low = split_product(factor, at)
            total, high = split_sum(total, product)
            rest += low + high
    return total + rest


@part
def _is_of_two(first, last, new, old, value):
    """Whether a condition on one feature adds up two numbers as they are: the sign is true then."""
    if last - first != 1 or abs(new[first]) != 1.0:
        return False
    return old[first] == 0.0 or (value == 0.0 and abs(old[first]) == 1.0)


@part
def _is_finite(y):
    finite = True
    for j in range(y.size):
        finite = finite and abs(y[j]) < _INF
    return finite


@part
def _meets(x, y, start, feature, new, old, value, equality, most, least, give, reach):
    """Whether ``new @ y + old @ x <= value`` holds for each condition, or ``==``.

    An inequality may be off by the share `give` of the numbers that meet in it, where no value
    counts for more than its `reach`; on a grid by `most`, or the share `least`, if that is less.
    """
    for k in range(value.size):
        given, taken, size, rounded = 0.0, 0.0, 0.0, abs(value[k])
        for n in range(start[k], start[k + 1]):
            j = feature[n]
            here, before = new[n] * y[j], old[n] * x[j]
            taken += here
            given += before
            rounded += abs(here) + abs(before)
            counted = min(abs(y[j]), reach[j]) if reach.size else abs(y[j])
            size += abs(new[n]) * counted + abs(before)
        surplus, share, size = taken + given - value[k], give, size + abs(value[k])
        if abs(surplus) <= (start[k + 1] - start[k] + 3) * UNIT * rounded and not _is_of_two(
            start[k], start[k + 1], new, old, value[k]
        ):
            surplus = _exact_surplus(
                x, y, start[k], start[k + 1], feature, new, old, value[k]
            )  # fmt: skip
        if equality[k]:
            surplus, share = abs(surplus), EQUALITY_ROUNDING
        allowed = min(share * size, max(most[k], least[k] * size)) if share > 0.0 else 0.0
        # Numbers too large to be told apart are not believed: inf <= inf proves nothing.
        if not surplus <= allowed or not surplus < _INF:
            return False
    return True


@part
def _resolution(x, y, change, is_exact, ways, start, feature, factor):
    """Charge for the last digits of the features that change: eight units of rounding each.

    Values of a grid have none to spare.
    """
    worth = 0.0
    for j in range(change.size):
        if change[j] != 0.0 and not is_exact[j]:
            price = ways[0, j] if change[j] > 0.0 else ways[1, j]
            worth += price * (abs(x[j]) + abs(y[j]))
    total = 4.0 * UNIT * worth
    for c in range(start.size - 1):
        lifted, blur = 0.0, 0.0
        for n in range(start[c], start[c + 1]):
            j = feature[n]
            if change[j] != 0.0:
                lifted += factor[n] * change[j]
            if change[j] != 0.0 and not is_exact[j]:
                blur += abs(factor[n]) * 4.0 * UNIT * (abs(x[j]) + abs(y[j]))
        total += (2.0 * abs(lifted) + blur) * blur
    return total


@jit
def relative_gap(cost, bound):
    """Share of a cost that is not proved, ``(cost - bound) / cost``; 0 of a cost of 0."""
    unproved = cost - bound
    if unproved <= 0.0:
        return 0.0
    share = unproved / cost
    return share if share >= 0.0 else _INF


def _steps(checks, X, *others):
    return X.shape[0] * (2 * X.shape[1] + checks.new.size + 2 * checks.L_factor.size)


@jit_unless_small(_steps)
def judge_rows(checks, X, Y, bounds, give, reach, squares, good, costs, gaps, resolutions):
    """Judge the counterfactual Y of each row of X, and what its bound proves.

    Into the last four: whether a row is finite and meets the linear constraints, what it
    costs, the share of its cost that is not proved, and the cost that cannot be told from
    nothing at the point itself. `squares` holds the quadratic part of each cost where the
    factor only comes near it, and NaN where it is the factor's own. `reach` (n, d) says how
    large a value may count in what gives way, or has no columns where that is not limited.
    """
    start, feature, value = checks.start, checks.feature, checks.value
    new, old, equality = checks.new, checks.old, checks.equality
    most, least = checks.most, checks.least
    is_exact, ways = checks.is_exact, checks.ways
    L_start, L_feature = checks.L_start, checks.L_feature
    L_factor = checks.L_factor
    X, Y, reach = borrowed(X), borrowed(Y), borrowed(reach)
    change = np.empty(ways.shape[1])
    for n in range(Y.shape[0]):
        x, y = X[n], Y[n]
        good[n], costs[n], gaps[n], resolutions[n] = False, _INF, _INF, 0.0
        if not _is_finite(y):
            continue
        good[n] = _meets(
            x, y, start, feature, new, old, value, equality, most, least, give, reach[n]
        )  # fmt: skip
        for j in range(change.size):
            change[j] = y[j] - x[j]
        costs[n] = cost_of(change, ways, L_start, L_feature, L_factor)
        if not np.isnan(squares[n]):
            costs[n] = flat_cost_of(change, ways) + squares[n]
        gaps[n] = relative_gap(costs[n], bounds[n])
        resolutions[n] = _resolution(x, y, change, is_exact, ways, L_start, L_feature, L_factor)

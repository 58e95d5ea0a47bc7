"""Answer the rows of a batch, one after another, with memory set aside once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from counterlvq.numeric.jit import borrowed, jit_unless_small, part
from counterlvq.numeric.tolerances import CLEARLY, CLOSED_GAP, TINY_SQUARE, UNIT
from counterlvq.programs.duality_kernel import (
    cell_value,
    cost_of,
    fastest_gain,
    lead_over,
    limits_of,
    narrow_to_cost,
    overtaking_cost,
    project_row,
)
from counterlvq.solvers.kernels import absolute, quadratic, single_steps
from counterlvq.solvers.kernels.conditions import FAILED, INF, INFEASIBLE, SOLVED
from counterlvq.solvers.kernels.row_setup import (
    default_margin,
    delta_of,
    fill_box,
    fill_right_sides,
    own_space,
    place_point,
    scores_of,
)

__all__ = ["answer_absolute", "answer_quadratic"]

# In `used`: a target prototype that was skipped, and one whose cell is empty; the latter is
# lowered further by how many rows the contradiction charges for.
_SKIPPED, _EMPTY = -1, -2


@part
def _worst_rival(scale, t, score, scores, nearest):
    """Find the rival that is dearest to overtake; the nearest where lengths are not at hand."""
    if not scale.size:
        return nearest
    worst, at = 0.0, nearest
    for k in range(scores.size):
        far = (score - scores[k]) * scale[t, k]
        if far > worst:
            worst, at = far, k
    return at


@part
def _next_target(quick, used):
    """Find the target prototype with the least quick bound among those not visited, or -1."""
    at, low = -1, INF
    for t in range(quick.size):
        if used[t] == _SKIPPED and (quick[t] < low or at < 0):
            at, low = t, quick[t]
    return at, low


@part
def _multipliers_of(rows, prices, count, m, c, unit, rivals, listed, charged, on_constraints):
    """Sort the multipliers of a cell by what they are on; return how many rivals are charged."""
    for n in range(c):
        on_constraints[n] = 0.0
    found = 0
    for n in range(count):
        if rows[n] < m:
            listed[found], charged[found] = rivals[rows[n]], unit * prices[n]
            found += 1
        elif rows[n] < m + c:
            on_constraints[rows[n] - m] = unit * prices[n]
    return found


@part
def _overtaking(is_quadratic, family, stated, scratch, t, rival, z_error, asked):
    """Bound the cost of a cell by what it takes to overtake one rival.

    What a target can gain on a rival does not depend on the row: it is kept where there is room.
    """
    i, other = family.targets[t], family.rivals[rival]
    lead, error, length, e = lead_over(
        stated.anchors, stated.anchor_errors, scratch.z, z_error, i, other
    )
    gain = np.nan
    if family.gains.size:
        gain = family.gains[t, rival]
    if np.isnan(gain):
        gain = fastest_gain(
            stated.F_diagonal, stated.F, stated.column_lengths, stated.anchors,
            stated.anchor_errors, stated.ways, stated.L_diagonal, stated.inverse,
            stated.inverse_blur, stated.stretch, stated.movable, i, other, length, e,
            scratch.c_slope,
        )  # fmt: skip
        if family.gains.size:
            family.gains[t, rival] = gain
    return overtaking_cost(lead, error, gain, is_quadratic, asked)


@part
def _roughly_overtaking(is_quadratic, family, stated, scratch, t, rival, size, z_error, asked):
    """As `_overtaking`, from scores and a gain that are known, and never more; NaN without a gain.

    Both ways of computing a lead are off by less than a few times ``2 S q + q^2 + r u S^2``, where
    no two of the three points are farther apart than S, and each way is off by q at most. Seven
    times that is what this one may be off, and twice what the other may.
    """
    gain = family.gains[t, rival]
    if np.isnan(gain):
        return gain
    score, other = scratch.score[t], scratch.scores[rival]
    reach = np.sqrt(score) + np.sqrt(other)
    off = 2.0 * z_error + stated.anchor_errors[family.targets[t]]
    # The centre may have been taken off the row and off anchors, which rounds them.
    off += stated.anchor_errors[family.rivals[rival]] + 8.0 * UNIT * (size + reach)
    reach += off
    off += UNIT * reach
    lead, terms = other - score, scratch.z0.size + 8.0
    error = 7.01 * (2.0 * reach * off + off * off + terms * UNIT * reach * reach)
    error += 2.0 * UNIT * abs(lead) + 4.0 * TINY_SQUARE
    return overtaking_cost(lead, error, gain, is_quadratic, asked)


@part
def _quick_bounds(is_quadratic, family, stated, scratch, nearest, z_error, asked):
    """Bound the cost of each cell by what it takes to overtake one rival, into `quick`.

    Pairs of which the gain is known are bounded by their scores, and marked as `rough`: most cells
    are passed over by that, and the others are refined when their turn comes.
    """
    score, scores, quick = scratch.score, scratch.scores, scratch.quick
    has_gains = family.gains.size > 0
    size = 0.0
    for c in range(scratch.z0.size):
        size += scratch.z0[c] * scratch.z0[c]
    size = np.sqrt(size)
    for t in range(score.size):
        quick[t], scratch.rival[t], scratch.rough[t] = 0.0, nearest, 0
        if scratch.stop[0] != 0 or nearest < 0 or score[t] <= scores[nearest]:
            continue
        worst = _worst_rival(family.scale, t, score[t], scores, nearest)
        scratch.rival[t] = worst
        if has_gains:
            quick[t] = _roughly_overtaking(
                is_quadratic, family, stated, scratch, t, worst, size, z_error, asked
            )
            if not np.isnan(quick[t]):
                scratch.rough[t] = 1
                continue
        quick[t] = _overtaking(is_quadratic, family, stated, scratch, t, worst, z_error, asked)


@part
def _margin_of(stated, score, nearest_score, z_error, target):
    """Least lead to ask of a cell where the user has not said."""
    return default_margin(
        score - nearest_score,
        score,
        2.0 * (z_error + stated.anchor_errors[target]),
        stated.anchors.shape[1] + 8.0,
    )


@part
def _proved(is_quadratic, family, stated, scratch, x, z_error, asked, cost):
    """Find what the multipliers of all visited cells prove, and whether rounding spoils it.

    Most answers on plain numbers are held back by one rival. What that proves is known in a step,
    without a look at the box: the rule is that of `Grounds.lower_bound`. Whoever judges the point
    limits the bound to its cost.
    """
    proved, failed, is_narrowed = INF, False, False
    unit = 2.0 if is_quadratic else 1.0
    used, m = scratch.used, family.RA.shape[0]
    for t in range(used.size):
        if used[t] == _SKIPPED:
            continue
        is_empty = used[t] <= _EMPTY
        count = _EMPTY - used[t] if is_empty else used[t]
        found = _multipliers_of(
            scratch.rows[t], scratch.prices[t], count, m, family.equality.size, unit,
            family.rivals, scratch.charged_rivals, scratch.charged, scratch.on_constraints,
        )  # fmt: skip
        if not is_empty and found == 1 and not scratch.on_constraints.any():
            value = scratch.quick[t]
            rival = scratch.rows[t, 0]
            for a in range(1, count):  # rows of bounds may come before it
                rival = min(rival, scratch.rows[t, a])
            if scratch.rough[t] != 0 or scratch.rival[t] != rival:
                value = _overtaking(is_quadratic, family, stated, scratch, t, rival, z_error, asked)
            if value * CLEARLY >= cost:
                proved = min(proved, value)
                continue
        if not is_narrowed:
            is_narrowed = True
            narrow_to_cost(
                stated.ways, stated.stretch, scratch.low, scratch.high, cost, scratch.inner_low,
                scratch.inner_high,
            )  # fmt: skip
        # A contradiction takes no cost into account.
        ways, L_diagonal, L = stated.ways, stated.L_diagonal, stated.L
        if is_empty:
            ways, L_diagonal, L = scratch.no_price, scratch.no_diagonal, scratch.no_factor
        value, rounding = cell_value(
            stated.F_diagonal, stated.F, stated.column_lengths, stated.anchors,
            stated.anchor_errors, scratch.z, z_error, x, stated.A, stated.R, stated.v,
            stated.equality, ways, L_diagonal, L, family.targets[t],
            scratch.charged_rivals[:found], scratch.charged[:found], scratch.on_constraints,
            scratch.deltas[t], scratch.nothing, scratch.nothing, 0.0, 0.0, scratch.inner_low,
            scratch.inner_high, asked, scratch.g1, scratch.g2, scratch.c_slope, scratch.c_error,
        )  # fmt: skip
        if is_empty:
            # A contradiction that rounding leaves open is somebody else's to look into.
            failed = failed or not value > 0.0
        else:
            proved = min(proved, max(0.0, value))
            # So is a bound that rounding, not the multipliers, keeps away from the cost.
            failed = failed or (value < (1.0 - CLOSED_GAP) * cost and rounding > CLOSED_GAP * cost)
    return proved, failed


def _steps(family, stated, X, *others):
    """Count what each row is taken through once: a projection, and the scores."""
    (pt, r), m = family.TA.shape, family.RA.shape[0]
    return X.shape[0] * (r * family.center.size + (pt + m) * r)


def _kernel(is_quadratic: bool) -> Callable[..., None]:
    """Make the kernel for one kind of cost; the code of the other kind is left out of it."""

    @jit_unless_small(_steps)
    def answer_rows(family, stated, X, margin, least, blur, scratch, Y, costs, bounds, codes):
        """Answer each row of X: point, cost, certified bound and code, into the last four.

        `margin` is NaN for the default one, which is at least `least`, (n,). The bound is for
        all points where no rival leads by more than `blur` (n,), and for those that keep
        `margin` if there is one. What remains in `scratch` belongs to the last row.
        """
        least, X, Y = borrowed(least), borrowed(X), borrowed(Y)
        costs, bounds, codes = borrowed(costs), borrowed(bounds), borrowed(codes)
        TA, TN, RA, RN, RNT = family.TA, family.TN, family.RA, family.RN, family.RNT
        C, lengths, equality = family.C, family.lengths, family.equality
        B_diagonal, B, scale = family.B_diagonal, family.B, family.scale
        columns, unit_of = family.columns, family.prices
        z0, lo, hi, h, tight = scratch.z0, scratch.lo, scratch.hi, scratch.h, scratch.tight
        low, high, score, scores = scratch.low, scratch.high, scratch.score, scratch.scores
        u, g, listed, normal = scratch.u, scratch.g, scratch.listed, scratch.normal
        row, D, T = scratch.row, scratch.D, scratch.T
        rows, prices, signs = scratch.rows, scratch.prices, scratch.signs
        used, points, stop, deltas = scratch.used, scratch.points, scratch.stop, scratch.deltas
        pt, m, d = TA.shape[0], RA.shape[0], lo.size
        # A plain 0 would have the methods compiled once for 0 and once for other counts.
        none = np.int64(0)
        for n in range(X.shape[0]):
            x = X[n]
            Y[n] = np.nan
            costs[n], bounds[n], codes[n] = INF, INF, INFEASIBLE
            limits_of(
                x, stated.single_new, stated.single_old, stated.single_value,
                stated.single_equality, stated.single_column, low, high,
            )  # fmt: skip
            if not fill_box(
                x, columns, family.bound_column, family.bound_slope, family.bound_old,
                family.bound_value, family.bound_fixes, unit_of, family.least, family.most,
                scratch.lower, scratch.upper, lo, hi, scratch.spread,
            ):  # fmt: skip
                used[:] = _EMPTY
                # Bounds that cross by rounding alone contradict nothing.
                if not (low > high).any():
                    codes[n], bounds[n] = FAILED, 0.0
                continue
            fill_right_sides(
                x, columns, scratch.spread, family.A, family.R, family.v, equality, h, tight,
                scratch.far,
            )  # fmt: skip
            z_error = project_row(
                x, stated.center, stated.F_diagonal, stated.F, stated.column_lengths,
                stated.is_plain, scratch.z,
            )  # fmt: skip
            own_space(x, family.center, family.plain, scratch.z, z0)
            scores_of(z0, TA, score)
            scores_of(z0, RA, scores)
            k = -1 if m == 0 else np.argmin(scores)
            asked = -blur[n] if np.isnan(margin) else margin - blur[n]
            _quick_bounds(is_quadratic, family, stated, scratch, k, z_error, asked)
            # 1. Target prototypes in the order of their quick bounds, until these pass the best.
            used[:] = _SKIPPED
            best, winner, empty, failed, stopped = INF, -1, 0, False, 0
            while True:
                stopped = stop[0]
                if stopped != 0:
                    break
                t, first = _next_target(scratch.quick, used)
                if t < 0 or (best < INF and first >= best * CLEARLY):
                    break
                # What is rough is never more, so that it passes over no cell that matters. The
                # first cell is visited whatever its bound is.
                if scratch.rough[t] != 0 and best < INF:
                    scratch.rough[t] = 0
                    scratch.quick[t] = _overtaking(
                        is_quadratic, family, stated, scratch, t, scratch.rival[t], z_error, asked
                    )
                    continue
                scales = scale[t] if scale.size else scale[0]
                ask = margin
                if np.isnan(margin):
                    ask = _margin_of(
                        stated, score[t], scores[k] if m else score[t], z_error, family.targets[t]
                    )
                ask = max(ask, least[n])
                is_done, code = False, SOLVED
                if is_quadratic:
                    if k >= 0:
                        is_done, cost, count = single_steps.move_all(
                            scratch.rival[t], TA[t], TN[t], score[t], RA, RN, scores, C, equality,
                            B_diagonal, B, z0, lo, hi, h, ask, u, normal, rows[t], prices[t],
                            signs[t],
                        )  # fmt: skip
                    if not is_done:
                        u[:] = 0.0
                        code, cost, count = quadratic.resume(
                            TA[t], TN[t], score[t], RA, RN, RNT, scores, scales, C, lengths,
                            equality, B_diagonal, B, family.B_lengths, z0, lo, hi, h, tight, ask,
                            best, u, g, listed, normal, row, D, T, scratch.K, scratch.rights,
                            rows[t], prices[t], signs[t], none,
                        )  # fmt: skip
                        # From here on a multiplier belongs to the row itself, whatever its sign.
                        for a in range(count):
                            prices[t, a] *= signs[t, a]
                else:
                    if k >= 0:
                        is_done, cost, count = single_steps.move_one(
                            scratch.rival[t], TA[t], TN[t], score[t], RA, RN, scores, C, equality,
                            z0, lo, hi, family.slopes, h, ask, u, rows[t], prices[t],
                        )  # fmt: skip
                    if not is_done:
                        absolute.begin(lo, hi, u, scratch.nonbasic, scratch.at, D)
                        code, cost, count, _ = absolute.resume(
                            TA[t], TN[t], score[t], RA, RN, RNT, scores, scales, C, lengths,
                            equality, z0, lo, hi, family.slopes, h, tight, ask, best, u, g, listed,
                            normal, row, D, T, scratch.nonbasic, scratch.at, scratch.basic,
                            scratch.slope, rows[t], prices[t], none,
                        )  # fmt: skip
                used[t] = count
                for j in range(d):
                    points[t, j] = u[j]
                if code == SOLVED and cost < best:
                    best, winner = cost, t
                if code == INFEASIBLE:
                    used[t] = _EMPTY - count
                    empty += 1
                if code == FAILED:
                    failed = True
                    break
            if failed or (winner < 0 and empty < pt):
                codes[n], bounds[n] = FAILED, 0.0
                continue
            # 2. The point in the user's space, and what the multipliers of all cells prove.
            for t in range(pt):
                if used[t] != _SKIPPED:
                    delta_of(is_quadratic, points[t], columns, unit_of, B_diagonal, B, deltas[t])
            if winner >= 0:
                codes[n] = SOLVED
                place_point(
                    deltas[winner], x, columns, scratch.lower, scratch.upper, Y[n], scratch.change
                )
                costs[n] = cost_of(
                    scratch.change, stated.ways, stated.cost_start, stated.cost_feature,
                    stated.cost_factor,
                )  # fmt: skip
            bounds[n] = 0.0
            if stopped != 0:
                continue
            proved, failed = _proved(
                is_quadratic, family, stated, scratch, x, z_error, asked, costs[n]
            )
            if failed:
                codes[n] = FAILED
                continue
            bounds[n] = proved

    return answer_rows


answer_absolute = _kernel(False)
answer_quadratic = _kernel(True)

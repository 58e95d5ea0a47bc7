"""Answer the rows of a batch, one after another, with memory set aside once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from counterlvq.numeric.jit import borrowed, jit
from counterlvq.numeric.tolerances import CLEARLY, CLOSED_GAP
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
from counterlvq.solvers.kernels import absolute, quadratic
from counterlvq.solvers.kernels.conditions import FAILED, INF, INFEASIBLE, SOLVED
from counterlvq.solvers.kernels.row_setup import (
    default_margin,
    delta_of,
    fill_box,
    fill_right_sides,
    place_point,
    project,
    scores_of,
)

__all__ = ["answer_absolute", "answer_quadratic"]

# In `used`: a target prototype that was skipped, and one whose cell is empty; the latter is
# lowered further by how many rows the contradiction charges for.
_SKIPPED, _EMPTY = -1, -2


@jit
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


@jit
def _next_target(quick, used):
    """Find the target prototype with the least quick bound among those not visited, or -1."""
    at, low = -1, INF
    for t in range(quick.size):
        if used[t] == _SKIPPED and (quick[t] < low or at < 0):
            at, low = t, quick[t]
    return at, low


@jit
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


def _kernel(is_quadratic: bool) -> Callable[..., None]:
    """Make the kernel for one kind of cost; the code of the other kind is left out of it."""

    # The two records are taken apart here, once per block, and their arrays handed on one by one:
    # handing on whole records made each row four times as slow, for the counting of references.
    @jit
    def answer_rows(family, stated, X, margin, least, blur, scratch, Y, costs, bounds, codes):
        """Answer each row of X: point, cost, certified bound and code, into the last four.

        `margin` is NaN for the default one, which is at least `least`, (n,). The bound is for
        all points where no rival leads by more than `blur` (n,), and for those that keep
        `margin` if there is one. What remains in `scratch` belongs to the last row.
        """
        F_diagonal, F, lengths_F = (
            borrowed(stated.F_diagonal),
            borrowed(stated.F),
            borrowed(stated.column_lengths),
        )
        anchors, anchor_errors = borrowed(stated.anchors), borrowed(stated.anchor_errors)
        ways, L_diagonal, L = borrowed(stated.ways), borrowed(stated.L_diagonal), borrowed(stated.L)
        slopes, no_price = borrowed(family.slopes), borrowed(scratch.no_price)
        stretch, inverse, movable = (
            borrowed(stated.stretch),
            borrowed(stated.inverse),
            borrowed(stated.movable),
        )
        center, A, R, v = (
            borrowed(stated.center),
            borrowed(stated.A),
            borrowed(stated.R),
            borrowed(stated.v),
        )
        single_new, single_old, single_value = (
            borrowed(stated.single_new),
            borrowed(stated.single_old),
            borrowed(stated.single_value),
        )
        single_equality, single_column = (
            borrowed(stated.single_equality),
            borrowed(stated.single_column),
        )
        targets, rivals = borrowed(family.targets), borrowed(family.rivals)
        stop = borrowed(scratch.stop)
        gains = borrowed(family.gains)
        z, low, high, inner_low, inner_high = (
            borrowed(scratch.z),
            borrowed(scratch.low),
            borrowed(scratch.high),
            borrowed(scratch.inner_low),
            borrowed(scratch.inner_high),
        )
        g1, g2, c_slope, c_error, nothing = (
            borrowed(scratch.g1),
            borrowed(scratch.g2),
            borrowed(scratch.c_slope),
            borrowed(scratch.c_error),
            borrowed(scratch.nothing),
        )
        charged_rivals, charged, on_constraints, deltas = (
            borrowed(scratch.charged_rivals),
            borrowed(scratch.charged),
            borrowed(scratch.on_constraints),
            borrowed(scratch.deltas),
        )
        no_factor, no_diagonal = borrowed(scratch.no_factor), borrowed(scratch.no_diagonal)
        cost_start, cost_feature, cost_factor = (
            borrowed(stated.cost_start),
            borrowed(stated.cost_feature),
            borrowed(stated.cost_factor),
        )
        unit = 2.0 if is_quadratic else 1.0
        TA, TN, RA, RN, RNT = (
            borrowed(family.TA),
            borrowed(family.TN),
            borrowed(family.RA),
            borrowed(family.RN),
            borrowed(family.RNT),
        )
        C, lengths, equality = (
            borrowed(family.C),
            borrowed(family.lengths),
            borrowed(family.equality),
        )
        B, B_lengths, prices_of = (
            borrowed(family.B),
            borrowed(family.B_lengths),
            borrowed(family.prices),
        )
        z0, lo, hi, h, tight = (
            borrowed(scratch.z0),
            borrowed(scratch.lo),
            borrowed(scratch.hi),
            borrowed(scratch.h),
            borrowed(scratch.tight),
        )
        lower, upper, spread, far = (
            borrowed(scratch.lower),
            borrowed(scratch.upper),
            borrowed(scratch.spread),
            borrowed(scratch.far),
        )
        score, scores, quick = (
            borrowed(scratch.score),
            borrowed(scratch.scores),
            borrowed(scratch.quick),
        )
        u, g, listed, normal = (
            borrowed(scratch.u),
            borrowed(scratch.g),
            borrowed(scratch.listed),
            borrowed(scratch.normal),
        )
        row, D, T, K, rights = (
            borrowed(scratch.row),
            borrowed(scratch.D),
            borrowed(scratch.T),
            borrowed(scratch.K),
            borrowed(scratch.rights),
        )
        nonbasic, at, basic, slope = (
            borrowed(scratch.nonbasic),
            borrowed(scratch.at),
            borrowed(scratch.basic),
            borrowed(scratch.slope),
        )
        rows, prices, signs = (
            borrowed(scratch.rows),
            borrowed(scratch.prices),
            borrowed(scratch.signs),
        )
        used, points = borrowed(scratch.used), borrowed(scratch.points)
        family_columns = borrowed(family.columns)
        family_bound_column = borrowed(family.bound_column)
        family_bound_slope = borrowed(family.bound_slope)
        family_bound_old = borrowed(family.bound_old)
        family_bound_value = borrowed(family.bound_value)
        family_bound_fixes = borrowed(family.bound_fixes)
        family_least = borrowed(family.least)
        family_most = borrowed(family.most)
        family_A = borrowed(family.A)
        family_R = borrowed(family.R)
        family_v = borrowed(family.v)
        family_center = borrowed(family.center)
        family_diagonal = borrowed(family.F_diagonal)
        family_F = borrowed(family.F)
        family_scale = borrowed(family.scale)
        scratch_rival = borrowed(scratch.rival)
        scratch_change = borrowed(scratch.change)
        least, X, Y, costs, bounds, codes = (
            borrowed(least),
            borrowed(X),
            borrowed(Y),
            borrowed(costs),
            borrowed(bounds),
            borrowed(codes),
        )
        pt, m, d = TA.shape[0], RA.shape[0], lo.size
        for n in range(X.shape[0]):
            x = X[n]
            Y[n] = np.nan
            costs[n], bounds[n], codes[n] = INF, INF, INFEASIBLE
            limits_of(
                x, single_new, single_old, single_value, single_equality, single_column, low, high
            )
            if not fill_box(
                x, family_columns, family_bound_column, family_bound_slope, family_bound_old,
                family_bound_value, family_bound_fixes, prices_of, family_least, family_most,
                lower, upper, lo, hi, spread,
            ):  # fmt: skip
                used[:] = _EMPTY
                # Bounds that cross by rounding alone contradict nothing.
                if not (low > high).any():
                    codes[n], bounds[n] = FAILED, 0.0
                continue
            fill_right_sides(
                x, family_columns, spread, family_A, family_R, family_v, equality, h, tight, far
            )
            project(x, family_center, family_diagonal, family_F, family.plain, z0)
            scores_of(z0, TA, score)
            scores_of(z0, RA, scores)
            k = -1 if m == 0 else np.argmin(scores)
            z_error = project_row(x, center, F_diagonal, F, lengths_F, stated.is_plain, z)
            asked = -blur[n] if np.isnan(margin) else margin - blur[n]
            for t in range(pt):
                quick[t], scratch_rival[t] = 0.0, k
                if stop[0] != 0 or k < 0 or score[t] <= scores[k]:
                    continue
                worst = _worst_rival(family_scale, t, score[t], scores, k)
                scratch_rival[t] = worst
                i, other = targets[t], rivals[worst]
                lead, error, length, e = lead_over(anchors, anchor_errors, z, z_error, i, other)
                if gains.size:
                    gain = gains[t, worst]
                else:
                    gain = fastest_gain(
                        F_diagonal, F, lengths_F, anchors, anchor_errors, ways, L_diagonal, inverse,
                        stated.inverse_blur, stretch, movable, i, other, length, e, c_slope,
                    )  # fmt: skip
                quick[t] = overtaking_cost(lead, error, gain, is_quadratic, asked)
            # 1. Target prototypes in the order of their quick bounds, until these pass the best.
            used[:] = _SKIPPED
            best, winner, empty, failed, stopped = INF, -1, 0, False, 0
            while True:
                stopped = stop[0]
                if stopped != 0:
                    break
                t, first = _next_target(quick, used)
                if t < 0 or (best < INF and first >= best * CLEARLY):
                    break
                scales = family_scale[t] if family_scale.size else family_scale[0]
                ask = margin
                if np.isnan(margin):
                    behind = score[t] - scores[k] if m else 0.0
                    ask = default_margin(
                        behind, score[t], 2.0 * (z_error + anchor_errors[targets[t]]),
                        anchors.shape[1] + 8.0,
                    )  # fmt: skip
                ask = max(ask, least[n])
                if is_quadratic:
                    code, cost, count = quadratic.solve(
                        TA[t], TN[t], score[t], RA, RN, RNT, scores, scales, C, lengths, equality,
                        B, B_lengths, z0, lo, hi, h, tight, ask, best, u, g, listed, normal, row, D,
                        T, K, rights, rows[t], prices[t], signs[t],
                    )  # fmt: skip
                    # From here on a multiplier belongs to the row itself, whatever its sign was.
                    for a in range(count):
                        prices[t, a] *= signs[t, a]
                else:
                    code, cost, count = absolute.solve(
                        TA[t], TN[t], score[t], RA, RN, RNT, scores, scales, C, lengths, equality,
                        z0, lo, hi, slopes, h, tight, ask, best, u, g, listed, normal, row, D, T,
                        nonbasic, at, basic, slope, rows[t], prices[t],
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
            # Limited to the cost of the point by whoever judges it.
            proved = INF if stopped == 0 else 0.0
            if winner >= 0:
                codes[n] = SOLVED
                delta_of(
                    is_quadratic, points[winner], family_columns, prices_of, B, deltas[winner]
                )  # fmt: skip
                place_point(deltas[winner], x, family_columns, lower, upper, Y[n], scratch_change)
                costs[n] = cost_of(scratch_change, ways, cost_start, cost_feature, cost_factor)
            narrow_to_cost(ways, stretch, low, high, costs[n], inner_low, inner_high)
            for t in range(pt):
                if used[t] == _SKIPPED:
                    continue
                delta_of(is_quadratic, points[t], family_columns, prices_of, B, deltas[t])
                if stopped != 0:
                    continue
                is_empty = used[t] <= _EMPTY
                count = _EMPTY - used[t] if is_empty else used[t]
                found = _multipliers_of(
                    rows[t], prices[t], count, m, equality.size, unit, rivals, charged_rivals,
                    charged, on_constraints,
                )  # fmt: skip
                # A contradiction takes no cost into account.
                cost_ways, cost_diagonal, cost_L = ways, L_diagonal, L
                if is_empty:
                    cost_ways, cost_diagonal, cost_L = no_price, no_diagonal, no_factor
                value, rounding = cell_value(
                    F_diagonal, F, lengths_F, anchors, anchor_errors, z, z_error, x,
                    A, R, v, equality, cost_ways, cost_diagonal, cost_L,
                    targets[t], charged_rivals[:found], charged[:found], on_constraints, deltas[t],
                    nothing, nothing, 0.0, 0.0, inner_low, inner_high, asked,
                    g1, g2, c_slope, c_error,
                )  # fmt: skip
                if is_empty:
                    # A contradiction that rounding leaves open is somebody else's to look into.
                    failed = failed or not value > 0.0
                else:
                    proved = min(proved, max(0.0, value))
                    # So is a bound that rounding, not the multipliers, keeps away from the cost.
                    failed = failed or (
                        value < (1.0 - CLOSED_GAP) * costs[n] and rounding > CLOSED_GAP * costs[n]
                    )
            if failed:
                codes[n], bounds[n] = FAILED, 0.0
                continue
            bounds[n] = proved

    return answer_rows


answer_absolute = _kernel(False)
answer_quadratic = _kernel(True)

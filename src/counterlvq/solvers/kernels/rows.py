"""Answer the rows of a batch, one after another, with memory set aside once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from counterlvq.compiling import borrowed, jit
from counterlvq.solvers.kernels import absolute, quadratic
from counterlvq.solvers.kernels.conditions import (
    FAILED,
    INF,
    INFEASIBLE,
    SOLVED,
    combined,
    lead_of,
    normal_of,
)

__all__ = ["answer_absolute", "answer_quadratic"]

# The default margin: a share of the lead to be gained, within shares of the scores that meet.
_SHARE_OF_LEAD = 2.0**-24
_ROUNDING_MARGIN = 2.0**-48
_AMPLE_MARGIN = 2.0**-40
# Rounding of linear constraints and of bounds that cross, as a share of their terms.
_CROSSING = 2.0**-48
# How far a change may go where nothing limits it, in units of what data and constraints
# suggest.
_REACH = 2.0**16
# In `used`: a target prototype that was skipped, and one whose cell is empty; the latter is
# lowered further by how many rows the contradiction charges for.
_SKIPPED, _EMPTY = -1, -2


@jit
def _project(x, center, F, plain, z0):
    for c in range(z0.size):
        if plain:
            z0[c] = x[c] - center[c]
        else:
            total = 0.0
            for j in range(x.size):
                total += F[c, j] * (x[j] - center[j])
            z0[c] = total


@jit
def _fill_box(x, columns, column, slope, old, value, fixes, unit, least, most,
              lower, upper, lo, hi, spread):  # fmt: skip
    """Bounds of each feature, absolute and in units of u; False if some leave no room."""
    for j in range(columns.size):
        lower[j], upper[j] = -INF, INF
    for b in range(column.size):
        given = 0.0
        for j in range(x.size):
            if old[b, j] != 0.0:
                given += old[b, j] * x[j]
        end = (value[b] - given) / slope[b]
        if not fixes[b] and slope[b] * end + given - value[b] > 0:
            # The end is itself rounded; step inside where the row would show it.
            end = np.nextafter(end, -INF if slope[b] > 0 else INF)
        j = column[b]
        if slope[b] > 0 or fixes[b]:
            upper[j] = min(upper[j], end)
        if slope[b] < 0 or fixes[b]:
            lower[j] = max(lower[j], end)
    for j in range(columns.size):
        here = x[columns[j]]
        if lower[j] > upper[j]:
            if lower[j] - upper[j] > _CROSSING * max(abs(lower[j]), abs(upper[j])):
                return False
            lower[j] = upper[j]
        lo[j], hi[j] = (lower[j] - here) * unit[j], (upper[j] - here) * unit[j]
        far = max(abs(least[j] - here), abs(most[j] - here))
        if lower[j] > -INF:
            far = max(far, abs(lower[j] - here))
        if upper[j] < INF:
            far = max(far, abs(upper[j] - here))
        spread[j] = far
    return True


@jit
def _fill_right_sides(x, columns, spread, A, R, v, equality, h, tight, far):
    """Right-hand sides of the linear constraints, tightened by what rounding can blur.

    `far` becomes how far the data, or a constraint on its own, could make a feature go.
    """
    for j in range(columns.size):
        far[j] = spread[j]
    for c in range(v.size):
        right, size = v[c], abs(v[c])
        for j in range(x.size):
            right -= (A[c, j] + R[c, j]) * x[j]
            size += (abs(A[c, j]) + abs(R[c, j])) * abs(x[j])
        for j in range(columns.size):
            weight = abs(A[c, columns[j]])
            size += weight * spread[j]
            if weight > 0.0:
                far[j] = max(far[j], abs(right) / weight)
        tight[c] = _CROSSING * size
        h[c] = right if equality[c] else right - tight[c]


@jit
def _scores(z0, anchors, out):
    for k in range(anchors.shape[0]):
        total = 0.0
        for c in range(z0.size):
            gap = z0[c] - anchors[k, c]
            total += gap * gap
        out[k] = total


@jit
def _quick_bounds(
    is_quadratic, TA, TN, RA, RN, C, scale, z0, h, score, scores, nearest, normal, quick, rival
):
    """Cost of overtaking the one rival that is dearest to overtake, for each target prototype.

    Where the lengths of all rows are not at hand, the nearest rival stands for all.
    """
    for t in range(TA.shape[0]):
        quick[t], rival[t] = 0.0, nearest
        if nearest < 0 or score[t] <= scores[nearest]:
            continue
        if scale.size:
            worst = 0.0
            for k in range(RA.shape[0]):
                far = (score[t] - scores[k]) * scale[t, k]
                if far > worst:
                    worst, rival[t] = far, k
        k = rival[t]
        normal_of(k, TN[t], RN, C, normal)
        behind = -lead_of(k, TA[t], RA, z0, h)
        largest, square = 0.0, 0.0
        for j in range(normal.size):
            largest = max(largest, abs(normal[j]))
            square += normal[j] * normal[j]
        if square > 0.0 and behind > 0.0:
            speed = square if is_quadratic else largest
            gain = behind * behind if is_quadratic else behind
            quick[t] = gain / speed * (1.0 - 1e-12)


@jit
def _place(is_quadratic, x, u, columns, prices, root, B, lower, upper, change, y):
    """Turn u into a point of the user's space, within the bounds exactly; return its cost."""
    d = columns.size
    for j in range(x.size):
        y[j] = x[j]
    for j in range(d):
        move = 0.0
        if is_quadratic:
            for c in range(d):
                move += B[j, c] * u[c]
        else:
            move = u[j] / prices[j]
        here = x[columns[j]]
        there = min(max(here + move, lower[j]), upper[j])
        y[columns[j]] = there
        change[j] = there - here
    cost = 0.0
    for j in range(d):
        if is_quadratic:
            part = 0.0
            for c in range(d):
                part += root[j, c] * change[c]
            cost += part * part
        else:
            cost += prices[j] * abs(change[j])
    return cost


@jit
def _default_margin(behind, size):
    """Least lead that rounding in `predict` respects and a proof does not notice."""
    return min(max(_SHARE_OF_LEAD * behind, _ROUNDING_MARGIN * size), _AMPLE_MARGIN * size)


@jit
def _next_target(quick, used):
    """Find the target prototype with the least quick bound among those not visited, or -1."""
    at, low = -1, INF
    for t in range(quick.size):
        if used[t] == _SKIPPED and quick[t] < low:
            at, low = t, quick[t]
    return at, low


@jit
def _priced(
    is_quadratic, TAt, TNt, RA, RN, C, equality, B, z0, lo, hi, h, tight, rows, prices, count,
    slope, normal,
):  # fmt: skip
    """Sum the priced conditions of a cell into `slope`; returns the constant and its size."""
    constant, size = combined(
        rows, prices, count, TAt, TNt, RA, RN, C, equality, z0, h, tight, slope, normal
    )
    if is_quadratic:
        base = RN.shape[0] + equality.size
        return quadratic.add_bounds(rows, prices, count, base, B, lo, hi, slope, constant, size)
    return constant, size


@jit
def _is_empty(is_quadratic, constant, size, slope, lo, hi, far, prices, root, reach):
    """Whether a sum of priced conditions cannot be met by any change within reach."""
    for j in range(far.size):
        reach[j] = _REACH * far[j] * prices[j]
        if is_quadratic:
            reach[j] = 0.0
            for c in range(far.size):
                reach[j] += _REACH * abs(root[j, c]) * far[c]
    if is_quadratic:
        return quadratic.contradicts(constant, size, slope, reach)
    return absolute.contradicts(constant, size, slope, lo, hi, reach)


def _kernel(is_quadratic: bool) -> Callable[..., None]:
    """Make the kernel for one kind of cost; the code of the other kind is left out of it."""

    # The two records are taken apart here, once per block, and their arrays handed on one by one:
    # handing on whole records made each row four times as slow, for the counting of references.
    @jit
    def answer_rows(family, X, margin, least, scratch, Y, costs, bounds, codes):
        """Answer each row of X: point, cost, certified bound and code, into the last four.

        `margin` is NaN for the default one, and `least` one that each row asks for. What
        remains in `scratch` belongs to the last row.
        """
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
        B, B_lengths, root, prices_of = (
            borrowed(family.B),
            borrowed(family.B_lengths),
            borrowed(family.root),
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
        family_F = borrowed(family.F)
        family_scale = borrowed(family.scale)
        scratch_rival = borrowed(scratch.rival)
        scratch_reach = borrowed(scratch.reach)
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
            if not _fill_box(
                x, family_columns, family_bound_column, family_bound_slope, family_bound_old,
                family_bound_value, family_bound_fixes, prices_of, family_least, family_most,
                lower, upper, lo, hi, spread,
            ):  # fmt: skip
                used[:] = _EMPTY
                continue
            _fill_right_sides(
                x, family_columns, spread, family_A, family_R, family_v, equality, h, tight, far
            )
            _project(x, family_center, family_F, family.plain, z0)
            _scores(z0, TA, score)
            _scores(z0, RA, scores)
            k = -1 if m == 0 else np.argmin(scores)
            _quick_bounds(
                is_quadratic, TA, TN, RA, RN, C, family_scale, z0, h, score, scores, k, normal,
                quick, scratch_rival,
            )  # fmt: skip
            size_of_scores = family.span
            for c in range(z0.size):
                size_of_scores += z0[c] * z0[c]
            # 1. Target prototypes in the order of their quick bounds, until these pass the best.
            used[:] = _SKIPPED
            best, winner, empty, failed = INF, -1, 0, False
            while True:
                t, low = _next_target(quick, used)
                if t < 0 or low >= best:
                    break
                scales = family_scale[t] if family_scale.size else family_scale[0]
                ask = margin
                if np.isnan(margin):
                    behind = score[t] - scores[k] if m else 0.0
                    ask = _default_margin(behind, size_of_scores)
                ask = max(ask, least[n])
                if is_quadratic:
                    code, cost, count = quadratic.solve(
                        TA[t], TN[t], score[t], RA, RN, RNT, scores, scales, C, lengths, equality,
                        B, B_lengths, z0, lo, hi, h, tight, ask, best, u, g, listed, normal, row, D,
                        T, K, rights, rows[t], prices[t], signs[t],
                    )  # fmt: skip
                    # From here on a price belongs to the row itself, whatever its sign was.
                    for a in range(count):
                        prices[t, a] *= signs[t, a]
                else:
                    code, cost, count = absolute.solve(
                        TA[t], TN[t], score[t], RA, RN, RNT, scores, scales, C, lengths, equality,
                        z0, lo, hi, h, tight, ask, best, u, g, listed, normal, row, D, T, nonbasic,
                        at, basic, slope, rows[t], prices[t],
                    )  # fmt: skip
                used[t] = count
                for j in range(d):
                    points[t, j] = u[j]
                if code == SOLVED and cost < best:
                    best, winner = cost, t
                if code == INFEASIBLE:
                    constant, size = _priced(
                        is_quadratic, TA[t], TN[t], RA, RN, C, equality, B, z0, lo, hi, h, tight,
                        rows[t], prices[t], count, row, normal,
                    )  # fmt: skip
                    used[t] = _EMPTY - count
                    empty += 1
                    failed = not _is_empty(
                        is_quadratic,
                        constant,
                        size,
                        row,
                        lo,
                        hi,
                        far,
                        prices_of,
                        root,
                        scratch_reach,
                    )
                if failed or code == FAILED:
                    failed = True
                    break
            if failed or winner < 0:
                if failed or empty < pt:
                    codes[n], bounds[n] = FAILED, 0.0
                continue
            # 2. The point in the user's space, and what the prices of all visited cells prove.
            codes[n] = SOLVED
            costs[n] = _place(
                is_quadratic, x, points[winner], family_columns, prices_of, root, B, lower, upper,
                scratch_change, Y[n],
            )  # fmt: skip
            proved = costs[n]
            for t in range(pt):
                if used[t] < 0:
                    continue
                constant, size = _priced(
                    is_quadratic, TA[t], TN[t], RA, RN, C, equality, B, z0, lo, hi, h, tight,
                    rows[t], prices[t], used[t], row, normal,
                )  # fmt: skip
                if is_quadratic:
                    shown = quadratic.bound(constant, size, row, d, costs[n])
                else:
                    shown = absolute.bound(constant, size, row, lo, hi, costs[n])
                proved = min(proved, shown)
            bounds[n] = proved

    return answer_rows


answer_absolute = _kernel(False)
answer_quadratic = _kernel(True)

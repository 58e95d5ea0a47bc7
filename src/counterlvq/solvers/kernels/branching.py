"""Branch and bound over the values of a lattice, one row after another, in memory set aside once.

Depth first, the nearer part of a cut first. Below a node the method of its cost goes on from where
it stands: a cut leaves a dual feasible point dual feasible. Each node writes the multipliers of its
relaxation into packed trees, from which others prove what is claimed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from counterlvq.numeric.jit import borrowed, jit_unless_small, part
from counterlvq.numeric.tolerances import AS_GOOD, HELD, ON_GRID
from counterlvq.programs.duality_kernel import project_row
from counterlvq.programs.lattice_kernel import own_ticks, tick_below, tick_value
from counterlvq.solvers.kernels import absolute, quadratic
from counterlvq.solvers.kernels.conditions import FAILED, INF, INFEASIBLE, SOLVED
from counterlvq.solvers.kernels.level_tests import apply_tests, broken_test
from counterlvq.solvers.kernels.piece_columns import (
    apply_all_tests,
    broken_of_all_tests,
    hold_pieces,
    nearest_piece,
    piece_ends,
)
from counterlvq.solvers.kernels.row_setup import (
    default_margin,
    delta_of,
    fill_box,
    fill_right_sides,
    own_space,
    place_point,
    scores_of,
)

__all__ = [
    "branch_absolute",
    "branch_absolute_in_pieces",
    "branch_quadratic",
    "branch_quadratic_in_pieces",
]


@part
def _lattice_ends(x, lower, upper, step, parts, is_from_input, down, up):
    """First and last position of a lattice between two values."""
    low, high = -INF, INF
    size = step / parts
    if lower > -INF:
        low = tick_below(x, lower - x - HELD * size, step, parts, is_from_input, down, up) + 1.0
    if upper < INF:
        high = tick_below(x, upper - x + HELD * size, step, parts, is_from_input, down, up)
    return low, high


@part
def _hold(q, position_low, position_high, x, at, columns, step, parts, is_from_input, down, up,
          unit, lo, hi):  # fmt: skip
    """Limit one column to positions of its lattice."""
    j = at[q]
    here = x[columns[j]]
    low = tick_value(here, position_low, step[q], parts[q], is_from_input[q], down[q], up[q])
    high = tick_value(here, position_high, step[q], parts[q], is_from_input[q], down[q], up[q])
    lo[j], hi[j] = (low - here) * unit[j], (high - here) * unit[j]


@part
def _nearest_target(score, visited):
    """Find the nearest target prototype that has not been visited, or -1."""
    found, least = -1, INF
    for t in range(score.size):
        if visited[t] == 0 and (found < 0 or score[t] < least):
            found, least = t, score[t]
    return found


@part
def _move_along(j, lo, hi, count, nonbasic, at, basic, T, u):
    """Take a nonbasic change into its narrower box, and the basic ones with it."""
    for n in range(nonbasic.size):
        if nonbasic[n] == j:
            there = min(max(at[n], lo[j]), hi[j])
            jump = there - at[n]
            if jump != 0.0:
                at[n] = there
                u[j] = there
                for b in range(count):
                    u[basic[b]] += T[b, n] * jump


@part
def _keep(node, unit, rows, prices, signs, count, is_quadratic, m, c, rivals, used, start, counts,
          index, value):  # fmt: skip
    """Write the multipliers of a node; returns False where they do not fit."""
    begun = used[1]
    start[node] = begun
    for a in range(count):
        row = rows[a]
        if row >= m + c:
            continue  # a side of the box, which every bound reckons with
        if used[1] >= index.size:
            return False
        price = unit * prices[a]
        if is_quadratic:
            price *= signs[a]
        index[used[1]] = rivals[row] if row < m else -1 - (row - m)
        value[used[1]] = price
        used[1] += 1
    counts[node] = used[1] - begun
    return True


def _steps(family, stated, lattice, pieces, X, first, *others):
    """Count what each row is taken through once: a projection, and the scores."""
    (pt, r), m = family.TA.shape, family.RA.shape[0]
    return (X.shape[0] - first) * (r * family.center.size + (pt + m) * r)


def _state(*given):
    *_, trees, _, _ = given
    return (trees.used,)


def _kernel(is_quadratic: bool, in_pieces: bool) -> Callable[..., int]:
    """Make the kernel for one kind of cost; the code of the other kind is left out of it.

    Values that lie in pieces, and conditions on numbers, have kernels of their own: whoever has
    neither does not wait for them.
    """

    @jit_unless_small(_steps, _state)
    def branch_rows(family, stated, lattice, pieces, X, first, margin, least, most_nodes, scratch,
                    room, trees, Y, codes):  # fmt: skip
        """Answer the rows of X from `first` on, as far as the trees have room; returns how far.

        `margin` is NaN for the default one, which is at least `least`, (n,). `pieces` are those of
        the rows, counted from `pieces.first`, and otherwise unused.
        """
        X, Y, codes, least = borrowed(X), borrowed(Y), borrowed(codes), borrowed(least)
        stop, used = scratch.stop, trees.used
        TA, TN, RA, RN = (
            family.TA,
            family.TN,
            family.RA,
            family.RN,
        )
        RNT, C, lengths = family.RNT, family.C, family.lengths
        equality, columns = family.equality, family.columns
        unit_of, B_lengths = family.prices, family.B_lengths
        B_diagonal, B = family.B_diagonal, family.B
        rivals, scale = family.rivals, family.scale
        slopes = family.slopes
        z0, z, lo, hi = (
            scratch.z0,
            scratch.z,
            scratch.lo,
            scratch.hi,
        )
        h, tight, lower, upper = (
            scratch.h,
            scratch.tight,
            scratch.lower,
            scratch.upper,
        )
        score, scores, visited = (
            scratch.score,
            scratch.scores,
            scratch.used,
        )
        u, g, listed, normal = (
            scratch.u,
            scratch.g,
            scratch.listed,
            scratch.normal,
        )
        row, D, T, K, rights = (
            scratch.row,
            scratch.D,
            scratch.T,
            scratch.K,
            scratch.rights,
        )
        nonbasic, at_end, basic, slope = (
            scratch.nonbasic,
            scratch.at,
            scratch.basic,
            scratch.slope,
        )
        rows, prices, signs = (
            scratch.rows[0],
            scratch.prices[0],
            scratch.signs[0],
        )
        delta, change = scratch.deltas[0], scratch.change
        step, parts, is_from_input = (
            lattice.step,
            lattice.parts,
            lattice.is_from_input,
        )
        at, is_pure, right = room.at, room.is_pure, room.right
        row_test, place, has_absent = (
            lattice.row_test,
            lattice.place,
            lattice.has_absent,
        )
        present_start, present, absent_start, absent = (
            lattice.present_start,
            lattice.present,
            lattice.absent_start,
            lattice.absent,
        )
        down, up, low_now, high_now = (
            room.down,
            room.up,
            room.low,
            room.high,
        )
        root_low, root_high = room.root_low, room.root_high
        spot, best_spot, best_delta = (
            room.spot,
            room.best_spot,
            room.best_delta,
        )
        stack_node, stack_low, stack_high = (
            room.stack_node,
            room.stack_low,
            room.stack_high,
        )
        feature, cut_at, low_node, high_node = (
            trees.feature,
            trees.at,
            trees.low,
            trees.high,
        )
        start, counts, index, value = (
            trees.start,
            trees.counts,
            trees.indices,
            trees.value,
        )
        point = trees.point
        pt, m, c = TA.shape[0], RA.shape[0], equality.size
        unit = 2.0 if is_quadratic else 1.0
        for n in range(first, X.shape[0]):
            if used[0] + most_nodes + 2 > feature.size or used[2] + pt > trees.root.size:
                return n
            nodes_before, entries_before, trees_before = used[0], used[1], used[2]
            x = X[n]
            Y[n] = np.nan
            codes[n] = FAILED
            trees.row_first[n], trees.row_count[n] = trees_before, 0
            if stop[0] != 0 or not fill_box(
                x, columns, family.bound_column, family.bound_slope, family.bound_old,
                family.bound_value, family.bound_fixes, unit_of, family.least, family.most,
                lower, upper, lo, hi, scratch.spread,
            ):  # fmt: skip
                continue
            fill_right_sides(
                x, columns, scratch.spread, family.A, family.R, family.v, equality, h, tight,
                scratch.far,
            )  # fmt: skip
            for k in range(c):
                # Values of a lattice meet a condition exactly or not at all.
                if is_pure[k] and not equality[k]:
                    h[k] += tight[k]
                right[k] = h[k]
            z_error = project_row(
                x, stated.center, stated.F_diagonal, stated.F, stated.column_lengths,
                stated.is_plain, z,
            )  # fmt: skip
            own_space(x, family.center, family.plain, z, z0)
            scores_of(z0, TA, score)
            scores_of(z0, RA, scores)
            nearest = scores.min() if m else 0.0
            row_at = 0
            if in_pieces:
                row_at = n - pieces.first[0]
            for q in range(at.size):
                j = at[q]
                here = x[columns[j]]
                if in_pieces and pieces.is_piece[q]:
                    down[q], up[q] = 0.0, 0.0
                    root_low[q], root_high[q] = piece_ends(
                        pieces.low[row_at, q], pieces.high[row_at, q], pieces.counts[row_at, q],
                        lower[j], upper[j], pieces.size[row_at, q],
                    )  # fmt: skip
                    continue
                down[q], up[q] = own_ticks(
                    here, step[q], parts[q], is_from_input[q], lattice.least[q]
                )
                root_low[q], root_high[q] = _lattice_ends(
                    here, lower[j], upper[j], step[q], parts[q], is_from_input[q], down[q], up[q]
                )
            best, failed, fixing, warm, count = INF, False, False, -1, 0
            visited[:] = 0
            for _ in range(pt):
                t = _nearest_target(score, visited)
                visited[t] = 1
                scales = scale[t] if scale.size else scale[0]
                ask = margin
                if np.isnan(margin):
                    ask = default_margin(
                        score[t] - nearest if m else 0.0, score[t],
                        2.0 * (z_error + stated.anchor_errors[family.targets[t]]),
                        stated.anchors.shape[1] + 8.0,
                    )  # fmt: skip
                ask = max(ask, least[n])
                root = used[0]
                used[0] += 1
                trees.prototype[used[2]], trees.root[used[2]] = family.targets[t], root
                depth, warm, node = 1, -1, root
                stack_node[0] = root
                for q in range(at.size):
                    stack_low[0, q], stack_high[0, q] = root_low[q], root_high[q]
                while (depth > 0 or fixing) and not failed:
                    if stop[0] != 0:
                        failed = True
                        break
                    if not fixing:
                        depth -= 1
                        node = stack_node[depth]
                        feature[node], low_node[node], high_node[node] = -1, -1, -1
                        start[node], counts[node], is_empty = used[1], 0, False
                        for q in range(at.size):
                            low_now[q], high_now[q] = stack_low[depth, q], stack_high[depth, q]
                            is_empty = is_empty or low_now[q] > high_now[q]
                            if in_pieces and pieces.is_piece[q]:
                                j = at[q]
                                if low_now[q] <= high_now[q]:
                                    lo[j], hi[j] = hold_pieces(
                                        pieces.low[row_at, q], pieces.high[row_at, q],
                                        low_now[q], high_now[q], x[columns[j]], lower[j],
                                        upper[j], unit_of[j],
                                    )  # fmt: skip
                                    is_empty = is_empty or lo[j] > hi[j]
                                continue
                            _hold(q, low_now[q], high_now[q], x, at, columns, step, parts,
                                  is_from_input, down, up, unit_of, lo, hi)  # fmt: skip
                        if in_pieces:
                            if not is_empty:
                                apply_all_tests(
                                    row_at, x, low_now, high_now, pieces, lattice, step, parts,
                                    is_from_input, down, up, right, h,
                                )  # fmt: skip
                        else:
                            apply_tests(
                                low_now, high_now, row_test, place, present_start, present,
                                has_absent, absent_start, absent, right, h,
                            )  # fmt: skip
                        if is_quadratic:
                            point[node] = 0.0
                        if is_empty:
                            warm = -1
                            continue
                    cap = best * AS_GOOD
                    if is_quadratic:
                        if warm < 0:
                            count = 0
                            u[:] = 0.0
                        code, cost, count = quadratic.resume(
                            TA[t], TN[t], score[t], RA, RN, RNT, scores, scales, C, lengths,
                            equality, B_diagonal, B, B_lengths, z0, lo, hi, h, tight, ask, cap, u,
                            g, listed, normal, row, D, T, K, rights, rows, prices, signs, count,
                        )  # fmt: skip
                        charged = count
                    else:
                        if warm < 0:
                            count = 0
                            absolute.begin(lo, hi, u, nonbasic, at_end, D)
                        else:
                            _move_along(warm, lo, hi, count, nonbasic, at_end, basic, T, u)
                        code, cost, charged, count = absolute.resume(
                            TA[t], TN[t], score[t], RA, RN, RNT, scores, scales, C, lengths,
                            equality, z0, lo, hi, slopes, h, tight, ask, cap, u, g, listed, normal,
                            row, D, T, nonbasic, at_end, basic, slope, rows, prices, count,
                        )  # fmt: skip
                    warm = -1
                    if code == FAILED:
                        failed = True
                        break
                    if code == SOLVED:
                        delta_of(is_quadratic, u, columns, unit_of, B_diagonal, B, delta)
                    was_fixing, fixing = fixing, False
                    worst, cut, most, farthest = 0.0, -1, 0.0, -1
                    if was_fixing:
                        if code == SOLVED:
                            best = cost
                            for q in range(at.size):
                                best_spot[q] = spot[q]
                            for j in range(delta.size):
                                best_delta[j] = delta[j]
                            continue
                        # The relaxed point was on the lattice but for its last digits.
                        for q in range(at.size):
                            if low_now[q] < high_now[q] and room.miss[q] > most:
                                most, farthest = room.miss[q], q
                        cut = farthest
                        if cut < 0:
                            continue
                    else:
                        if not _keep(
                            node, unit, rows, prices, signs, charged, is_quadratic, m, c, rivals,
                            used, start, counts, index, value,
                        ):  # fmt: skip
                            failed = True
                            break
                        if code != SOLVED:
                            if is_quadratic and code != INFEASIBLE:
                                delta_of(is_quadratic, u, columns, unit_of, B_diagonal, B, delta)
                                point[node] = delta
                            continue
                        if is_quadratic:
                            point[node] = delta
                        for q in range(at.size):
                            j = at[q]
                            here, there = x[columns[j]], delta[columns[j]]
                            size = step[q] / parts[q]
                            if in_pieces and pieces.is_piece[q]:
                                size = pieces.size[row_at, q]
                                lower_piece, spot_piece, off = nearest_piece(
                                    pieces.low[row_at, q], pieces.high[row_at, q], low_now[q],
                                    high_now[q], here + there,
                                )  # fmt: skip
                                spot[q] = spot_piece
                                room.below[q] = min(1.0 * lower_piece, high_now[q] - 1.0)
                                miss = off / size
                                room.miss[q] = miss
                                most = max(most, miss)
                                worth = off * unit_of[j] * (off if is_quadratic else 1.0)
                                if is_quadratic:
                                    worth /= B_lengths[j] * B_lengths[j]
                                if low_now[q] < high_now[q] and miss > ON_GRID and worth > worst:
                                    worst, cut = worth, q
                                continue
                            below = tick_below(
                                here, there, step[q], parts[q], is_from_input[q], down[q], up[q]
                            )
                            below = min(max(below, low_now[q]), high_now[q])
                            above = min(below + 1.0, high_now[q])
                            short = there - (tick_value(
                                here, below, step[q], parts[q], is_from_input[q], down[q], up[q]
                            ) - here)  # fmt: skip
                            over = (tick_value(
                                here, above, step[q], parts[q], is_from_input[q], down[q], up[q]
                            ) - here) - there  # fmt: skip
                            spot[q] = below if abs(short) <= abs(over) else above
                            room.below[q] = min(below, high_now[q] - 1.0)
                            miss = min(abs(short), abs(over)) / size
                            room.miss[q] = miss
                            most = max(most, miss)
                            worth = miss * size * unit_of[j] * (size if is_quadratic else 1.0)
                            if is_quadratic:
                                worth /= B_lengths[j] * B_lengths[j]
                            if low_now[q] < high_now[q] and miss > ON_GRID and worth > worst:
                                worst, cut = worth, q
                        # Conditions before values: a fine lattice would be cut again in each
                        # part of theirs, and for as long as nothing is known of them in vain.
                        if in_pieces:
                            broken = broken_of_all_tests(
                                row_at, x, u, spot, low_now, high_now, pieces, lattice, step,
                                parts, is_from_input, down, up, room.below, C, right, tight, h,
                            )  # fmt: skip
                        else:
                            broken = broken_test(
                                u, spot, low_now, high_now, row_test, place, present_start,
                                present, has_absent, absent_start, absent, C, right, tight, h,
                            )  # fmt: skip
                        if broken == -2 and cut < 0:
                            failed = True
                            break
                        if broken >= 0:
                            cut = broken
                        if cut < 0 and most <= HELD:
                            best = cost
                            for q in range(at.size):
                                best_spot[q] = spot[q]
                            for j in range(delta.size):
                                best_delta[j] = delta[j]
                            continue
                        if cut < 0:
                            fixing = True
                            for q in range(at.size):
                                if in_pieces and pieces.is_piece[q]:
                                    j = at[q]
                                    lo[j], hi[j] = hold_pieces(
                                        pieces.low[row_at, q], pieces.high[row_at, q], spot[q],
                                        spot[q], x[columns[j]], lower[j], upper[j], unit_of[j],
                                    )  # fmt: skip
                                    continue
                                _hold(q, spot[q], spot[q], x, at, columns, step, parts,
                                      is_from_input, down, up, unit_of, lo, hi)  # fmt: skip
                            if in_pieces:
                                apply_all_tests(
                                    row_at, x, spot, spot, pieces, lattice, step, parts,
                                    is_from_input, down, up, right, h,
                                )  # fmt: skip
                            else:
                                apply_tests(
                                    spot, spot, row_test, place, present_start, present,
                                    has_absent, absent_start, absent, right, h,
                                )  # fmt: skip
                            continue
                    # Cut between two values, and go on with the nearer part.
                    if used[0] + 2 > nodes_before + most_nodes or depth + 2 > stack_node.size:
                        failed = True
                        break
                    j, below = at[cut], room.below[cut]
                    here = x[columns[j]]
                    edge_low = tick_value(
                        here, below, step[cut], parts[cut], is_from_input[cut], down[cut], up[cut]
                    )
                    edge_high = tick_value(
                        here, below + 1.0, step[cut], parts[cut], is_from_input[cut], down[cut],
                        up[cut],
                    )  # fmt: skip
                    feature[node] = columns[j]
                    cut_at[node] = 0.5 * ((edge_low - here) + (edge_high - here))
                    if in_pieces and pieces.is_piece[cut]:
                        cut_at[node] = pieces.between[row_at, cut, int(below)]
                    low_node[node], high_node[node] = used[0] - root, used[0] + 1 - root
                    near_low = delta[columns[j]] <= cut_at[node]
                    for side in range(2):
                        is_low = (side == 1) == near_low
                        stack_node[depth] = used[0] if is_low else used[0] + 1
                        for q in range(at.size):
                            stack_low[depth, q], stack_high[depth, q] = low_now[q], high_now[q]
                        if is_low:
                            stack_high[depth, cut] = below
                        else:
                            stack_low[depth, cut] = below + 1.0
                        depth += 1
                    used[0] += 2
                    warm = -1 if was_fixing else j
                trees.size[used[2]] = used[0] - root
                used[2] += 1
                if failed:
                    break
            if failed:
                used[0], used[1], used[2] = nodes_before, entries_before, trees_before
                continue
            trees.row_count[n] = used[2] - trees_before
            codes[n] = INFEASIBLE
            if best < INF:
                codes[n] = SOLVED
                place_point(best_delta, x, columns, lower, upper, Y[n], change)
                for q in range(at.size):
                    here = columns[at[q]]
                    if in_pieces and pieces.is_piece[q]:
                        p = int(best_spot[q])
                        Y[n, here] = min(
                            max(Y[n, here], pieces.low[row_at, q, p]), pieces.high[row_at, q, p]
                        )
                        continue
                    Y[n, here] = tick_value(
                        x[here], best_spot[q], step[q], parts[q], is_from_input[q], down[q], up[q]
                    )
        return X.shape[0]

    return branch_rows


branch_absolute = _kernel(is_quadratic=False, in_pieces=False)
branch_quadratic = _kernel(is_quadratic=True, in_pieces=False)
branch_absolute_in_pieces = _kernel(is_quadratic=False, in_pieces=True)
branch_quadratic_in_pieces = _kernel(is_quadratic=True, in_pieces=True)

"""What packed trees of boxes prove under a shared metric, compiled.

Walks down the cuts from the box of all changes up to a cost, so that nothing can be left out, and
evaluates the multipliers of each part that is left whole by `duality_kernel`. Sides on a lattice
are rounded outwards. It sees no solver.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from counterlvq.numeric.jit import borrowed, jit_unless_small, part
from counterlvq.numeric.tolerances import (
    CLOSED_GAP,
    EQUALITY_ROUNDING,
    HUGE,
    INEQUALITY_ROUNDING,
    UNIT,
)
from counterlvq.programs.duality_kernel import (
    cell_value,
    limits_of,
    narrow_to_cost,
    project_row,
)
from counterlvq.programs.lattice_kernel import own_ticks, tick_below, tick_span

__all__ = ["prove_rows", "prove_rows_in_pieces"]

_INF = np.inf
# Positions next to an end that are looked at: the end is off by rounding only.
_NEXT = 4


@part
def _first_inside(x, low, step, parts, is_from_input, down, up):
    """First position that is not below an end for sure."""
    position = tick_below(x, low, step, parts, is_from_input, down, up) - 1.0
    for _ in range(_NEXT):
        if not tick_span(x, position, step, parts, is_from_input, down, up)[1] < low:
            break
        position += 1.0
    return position


@part
def _last_inside(x, high, step, parts, is_from_input, down, up):
    """Last position that is not above an end for sure."""
    position = tick_below(x, high, step, parts, is_from_input, down, up) + 2.0
    for _ in range(_NEXT):
        if not tick_span(x, position, step, parts, is_from_input, down, up)[0] > high:
            break
        position -= 1.0
    return position


@part
def _sort_entries(index, value, count):
    """Sort multipliers by what they are on: sums do not depend on who found them."""
    for a in range(1, count):
        key, price = index[a], value[a]
        b = a - 1
        while b >= 0 and index[b] > key:
            index[b + 1], value[b + 1] = index[b], value[b]
            b -= 1
        index[b + 1], value[b + 1] = key, price


@part
def _open_share(x, extent, slacks, A, R, v, equality, multipliers, low, high):
    """Sum what charged conditions are worth that answers may break by rounding.

    Where a side is open, values count as far as the data reaches: no answer takes more.
    """
    total = 0.0
    for c in range(v.size):
        if multipliers[c] == 0.0:
            continue
        size = abs(v[c])
        for j in range(x.size):
            far = abs(x[j])
            if abs(low[j]) < _INF and abs(high[j]) < _INF:
                far += max(abs(low[j]), abs(high[j]))
            else:
                far += max(abs(extent[0, j] - x[j]), abs(extent[1, j] - x[j]))
            size += abs(A[c, j]) * far + abs(R[c, j]) * abs(x[j])
        share = EQUALITY_ROUNDING if equality[c] else INEQUALITY_ROUNDING
        missed = min(share * size, max(slacks.most[c], slacks.least[c] * size))
        total += abs(multipliers[c]) * missed
    return total * (1.0 + (x.size + v.size + 8) * UNIT)


@part
def _applies(test, x, low, high, present_start, present, has_absent, absent_start, absent):
    """Whether a level is there at all changes between two corners of a box."""
    for a in range(present_start[test], present_start[test + 1]):
        if x[present[a]] + low[present[a]] > 0.5:
            return True
    if not has_absent[test]:
        return False
    for a in range(absent_start[test], absent_start[test + 1]):
        if not x[absent[a]] + high[absent[a]] < 0.5:
            return False
    return True


@part
def _within_spans(low, high, span_low, span_high, count):
    """Keep what spans of allowed changes leave of a range; it is empty where they leave nothing."""
    least, most = _INF, -_INF
    for k in range(count):
        if span_high[k] >= low and span_low[k] <= high:
            least = min(least, max(low, span_low[k]))
            most = max(most, min(high, span_high[k]))
    return least, most


@part
def _covers(part_low, part_high, count, low, high):
    """Whether a condition on a number applies to all changes of a range."""
    found = False
    for k in range(count):
        found = found or (part_low[k] <= low and high <= part_high[k])
    return found


def _steps(stated, extent, slacks, lattice, pieces, X, *others):
    return X.shape[0] * (stated.F.size + 2 * X.shape[1])


def _prover(in_pieces: bool) -> Callable[..., None]:
    """Make the proof; code about values in pieces and conditions on numbers only where asked."""

    @jit_unless_small(_steps)
    def prove_rows(
        stated, extent, slacks, lattice, pieces, X, caps, margins, targets, is_rival, trees, work,
        bounds,
    ):  # fmt: skip
        """Cost that no change into the cells of `targets` undercuts, at most caps (n,), per row.

        The trees of a row have to be about all of the targets; otherwise nothing is proved. With an
        infinite cap the bound is infinite where no change at all is possible, and else 0. `margins`
        (n,) is the lead over every rival that the bound is about, and `is_rival` (p,) says which
        prototypes are rivals: of others nothing may be charged. `extent` (2, d) holds the least and
        the largest value of the prototypes in each feature, and `slacks` what conditions give way
        by. `pieces` are those of the rows, counted from `pieces.first`, and otherwise unused.
        """
        F_diagonal, F, lengths_F = (
            stated.F_diagonal,
            stated.F,
            stated.column_lengths,
        )
        anchors, anchor_errors = stated.anchors, stated.anchor_errors
        ways, L_diagonal, L = stated.ways, stated.L_diagonal, stated.L
        A, R, v, equality = (
            stated.A,
            stated.R,
            stated.v,
            stated.equality,
        )
        step, parts, is_from_input, place, column = (
            lattice.step,
            lattice.parts,
            lattice.is_from_input,
            lattice.place,
            lattice.column,
        )
        row_test = lattice.row_test
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
        point, X, extent = trees.point, borrowed(X), borrowed(extent)
        low, high, root_low, root_high = (
            work.low,
            work.high,
            work.root_low,
            work.root_high,
        )
        stack_node, stack_low, stack_high = (
            work.stack_node,
            work.stack_low,
            work.stack_high,
        )
        z, down, up = work.z, work.down, work.up
        listed, charged, multipliers = (
            work.listed,
            work.charged,
            work.multipliers,
        )
        nothing, tangent = work.nothing, work.tangent
        no_price = work.no_price
        no_diagonal, no_factor = work.no_diagonal, work.no_factor
        g1, g2, slope, slope_error = (
            work.g1,
            work.g2,
            work.slope,
            work.slope_error,
        )
        d = X.shape[1]
        for n in range(X.shape[0]):
            x, cap = X[n], caps[n]
            first, last = trees.row_first[n], trees.row_first[n] + trees.row_count[n]
            bounds[n] = 0.0
            # 1. Every target has a tree.
            is_covered = True
            for t in range(targets.size):
                has_tree = False
                for tree in range(first, last):
                    has_tree = has_tree or trees.prototype[tree] == targets[t]
                is_covered = is_covered and has_tree
            if not is_covered or not cap >= 0.0 or not abs(margins[n]) < _INF:
                continue
            # 2. The box of all changes up to the cost, with whole positions on the lattice.
            z_error = project_row(
                x, stated.center, F_diagonal, F, lengths_F, stated.is_plain, z
            )  # fmt: skip
            limits_of(
                x, stated.single_new, stated.single_old, stated.single_value,
                stated.single_equality, stated.single_column, low, high,
            )  # fmt: skip
            narrow_to_cost(ways, stated.stretch, low, high, cap, root_low, root_high)
            for q in range(column.size):
                j = column[q]
                down[q], up[q] = own_ticks(
                    x[j], step[q], parts[q], is_from_input[q], lattice.least[q]
                )
                if root_low[j] > -_INF:
                    root_low[j] = _first_inside(
                        x[j], root_low[j], step[q], parts[q], is_from_input[q], down[q], up[q]
                    )
                if root_high[j] < _INF:
                    root_high[j] = _last_inside(
                        x[j], root_high[j], step[q], parts[q], is_from_input[q], down[q], up[q]
                    )
            # 3. The least bound of the parts that are left whole.
            least = cap
            for tree in range(first, last):
                root, size, prototype = trees.root[tree], trees.size[tree], trees.prototype[tree]
                depth = 1
                stack_node[0] = 0
                for j in range(d):
                    stack_low[0, j], stack_high[0, j] = root_low[j], root_high[j]
                while depth > 0 and least > 0.0:
                    depth -= 1
                    node = root + stack_node[depth]
                    if feature[node] >= 0:
                        j, q = feature[node], place[feature[node]]
                        below, above = cut_at[node], cut_at[node]
                        if q >= 0:
                            below = tick_below(
                                x[j],
                                cut_at[node],
                                step[q],
                                parts[q],
                                is_from_input[q],
                                down[q],
                                up[q],
                            )
                            above = below + 1.0
                        children = low_node[node], high_node[node]
                        # Children stand behind their parents, so that the walk comes to an end.
                        is_sound = depth + 2 <= stack_node.size and not np.isnan(cut_at[node])
                        for child in children:
                            is_sound = is_sound and node - root < child < size
                        if not is_sound:
                            least = 0.0
                            break
                        for k in range(d):
                            stack_low[depth + 1, k] = stack_low[depth, k]
                            stack_high[depth + 1, k] = stack_high[depth, k]
                        stack_node[depth], stack_node[depth + 1] = children
                        stack_high[depth, j] = min(stack_high[depth, j], below)
                        stack_low[depth + 1, j] = max(stack_low[depth + 1, j], above)
                        depth += 2
                        continue
                    is_empty = False
                    for j in range(d):
                        low[j], high[j] = stack_low[depth, j], stack_high[depth, j]
                        is_empty = is_empty or low[j] > high[j]
                    if is_empty:
                        continue
                    for q in range(column.size):
                        j = column[q]
                        low[j] = tick_span(
                            x[j], low[j], step[q], parts[q], is_from_input[q], down[q], up[q]
                        )[0]
                        high[j] = tick_span(
                            x[j], high[j], step[q], parts[q], is_from_input[q], down[q], up[q]
                        )[1]
                    if in_pieces:
                        at = n - pieces.first[0]
                        for s in range(pieces.column.size):
                            j = pieces.column[s]
                            low[j], high[j] = _within_spans(
                                low[j], high[j], pieces.span_low[at, s], pieces.span_high[at, s],
                                pieces.span_count[at, s],
                            )  # fmt: skip
                            is_empty = is_empty or low[j] > high[j]
                        if is_empty:
                            continue
                    found, entries = 0, min(counts[node], listed.size)
                    for c in range(v.size):
                        multipliers[c] = 0.0
                    for a in range(entries):
                        on, price = index[start[node] + a], value[start[node] + a]
                        if on < 0:
                            # A condition says nothing of a box where it need not hold.
                            c = -1 - on
                            if in_pieces:
                                test = row_test[c] if c < v.size else -1
                                if test >= 0 and pieces.is_number_test[test]:
                                    j = pieces.test_column[test]
                                    if _covers(
                                        pieces.part_low[at, test], pieces.part_high[at, test],
                                        pieces.part_count[at, test], low[j], high[j],
                                    ):  # fmt: skip
                                        multipliers[c] = price
                                    continue
                            if c < v.size and (row_test[c] < 0 or _applies(
                                row_test[c], x, low, high, lattice.present_start, lattice.present,
                                lattice.has_absent, lattice.absent_start, lattice.absent,
                            )):  # fmt: skip
                                multipliers[c] = price
                        elif on < is_rival.size and is_rival[on]:
                            listed[found], charged[found] = on, price
                            found += 1
                    _sort_entries(listed, charged, found)
                    for j in range(d):
                        tangent[j] = 0.0
                        if point.shape[0] and abs(point[node, j]) < HUGE:
                            tangent[j] = point[node, j]
                    spared = _open_share(
                        x, extent, slacks, A, R, v, equality, multipliers, low, high
                    )  # fmt: skip
                    bound = 0.0
                    for with_cost in (True, False):
                        if not with_cost and bound >= (1.0 - CLOSED_GAP) * cap and cap < _INF:
                            break
                        cost_ways, cost_diagonal, cost_L = ways, L_diagonal, L
                        if not with_cost:
                            cost_ways, cost_diagonal, cost_L = no_price, no_diagonal, no_factor
                        total = cell_value(
                            F_diagonal, F, lengths_F, anchors, anchor_errors, z, z_error, x,
                            A, R, v, equality, cost_ways, cost_diagonal, cost_L,
                            prototype, listed[:found], charged[:found], multipliers, tangent,
                            nothing, nothing, 0.0, spared, low, high, margins[n],
                            g1, g2, slope, slope_error,
                        )[0]  # fmt: skip
                        if not with_cost:
                            bound = cap if total > 0.0 else bound
                        elif total > 0.0:
                            bound = min(total, cap)
                    least = min(least, bound)
            bounds[n] = least if cap < _INF or least == _INF else 0.0

    return prove_rows


prove_rows = _prover(in_pieces=False)
prove_rows_in_pieces = _prover(in_pieces=True)

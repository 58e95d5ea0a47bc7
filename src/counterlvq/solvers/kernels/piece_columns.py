"""Columns whose values lie in pieces, and conditions on numbers, seen from boxes of positions.

A position stands for one piece: for all values from its least to its largest. A column of a lattice
has positions too, and of each only the one value.
"""

from __future__ import annotations

from counterlvq.numeric.jit import part
from counterlvq.numeric.tolerances import HELD
from counterlvq.programs.lattice_kernel import tick_below, tick_value
from counterlvq.solvers.kernels.conditions import INF
from counterlvq.solvers.kernels.level_tests import level_applies, undecided_level

__all__ = [
    "apply_all_tests",
    "broken_of_all_tests",
    "hold_pieces",
    "nearest_piece",
    "piece_ends",
]


@part
def piece_ends(low, high, count, lower, upper, size):
    """First and last piece that has values between two ends."""
    first, last = 0, count - 1
    while first <= last and high[first] < lower - HELD * size:
        first += 1
    while last >= first and low[last] > upper + HELD * size:
        last -= 1
    return 1.0 * first, 1.0 * last


@part
def hold_pieces(low, high, first, last, here, lower, upper, unit):
    """Limit the change of a column to some of its pieces; returns its ends in units of cost."""
    least, most = max(low[int(first)], lower), min(high[int(last)], upper)
    return (least - here) * unit, (most - here) * unit


@part
def nearest_piece(low, high, first, last, value):
    """Find the piece below a value or around it, the nearest one, and how far that is off."""
    below = int(first)
    while below < int(last) and low[below + 1] <= value:
        below += 1
    short = value - high[below]
    if value < low[below]:
        return below, below, low[below] - value
    if short <= 0.0 or below == int(last):
        return below, below, max(short, 0.0)
    over = low[below + 1] - value
    return (below, below, short) if short <= over else (below, below + 1, over)


@part
def _number_applies(test, n, low, high, pieces, here, step, parts, is_from_input, down, up):
    """Whether a condition on a number holds at all positions of a box."""
    q = pieces.test_place[test]
    if q >= 0 and pieces.is_piece[q]:
        everywhere = True
        for p in range(int(low[q]), int(high[q]) + 1):
            everywhere = everywhere and pieces.applies[n, test, p]
        return everywhere
    least, most = 0.0, 0.0
    if q >= 0:
        least = tick_value(here, low[q], step[q], parts[q], is_from_input[q], down[q], up[q]) - here
        most = tick_value(here, high[q], step[q], parts[q], is_from_input[q], down[q], up[q]) - here
    found = False
    for a in range(pieces.part_count[n, test]):
        found = found or (
            pieces.part_low[n, test, a] <= least and most <= pieces.part_high[n, test, a]
        )
    return found


@part
def _applies(test, n, x, low, high, pieces, lattice, step, parts, is_from_input, down, up):
    if pieces.is_number_test[test]:
        here = x[pieces.test_column[test]]
        return _number_applies(
            test, n, low, high, pieces, here, step, parts, is_from_input, down, up
        )
    return level_applies(
        test, low, high, lattice.place, lattice.present_start, lattice.present, lattice.has_absent,
        lattice.absent_start, lattice.absent,
    )  # fmt: skip


@part
def apply_all_tests(n, x, low, high, pieces, lattice, step, parts, is_from_input, down, up,
                    right, h):  # fmt: skip
    """Let conditions hold that apply throughout a box, and the others say nothing."""
    for c in range(lattice.row_test.size):
        if lattice.row_test[c] >= 0:
            applies = _applies(
                lattice.row_test[c], n, x, low, high, pieces, lattice, step, parts, is_from_input,
                down, up,
            )  # fmt: skip
            h[c] = right[c] if applies else INF


@part
def _undecided_number(test, n, spot, low, high, pieces, here, step, parts, is_from_input, down, up,
                      below):  # fmt: skip
    """Find where to cut the column of a condition on a number; returns it, or -1."""
    q = pieces.test_place[test]
    if q < 0 or low[q] >= high[q]:
        return -1
    if pieces.is_piece[q]:
        below[q] = min(spot[q], high[q] - 1.0)
        return q
    found, least = -1, INF
    for a in range(pieces.cut_count[n, test]):
        at = tick_below(
            here, pieces.cut[n, test, a], step[q], parts[q], is_from_input[q], down[q], up[q]
        )
        away = abs(at + 0.5 - spot[q])
        if low[q] <= at < high[q] and away < least:
            found, least = q, away
            below[q] = at
    return found


@part
def broken_of_all_tests(n, x, u, spot, low, high, pieces, lattice, step, parts, is_from_input, down,
                        up, below, C, right, tight, h):  # fmt: skip
    """Find a column to decide on, where a condition that need not hold in the box is broken.

    Returns -1 where there is none, and -2 where there is nothing to decide on.
    """
    for c in range(lattice.row_test.size):
        test = lattice.row_test[c]
        if test < 0 or h[c] < INF:
            continue
        if not _applies(
            test, n, x, spot, spot, pieces, lattice, step, parts, is_from_input, down, up
        ):
            continue
        over = -right[c]
        for j in range(u.size):
            over += C[c, j] * u[j]
        if over > 0.5 * tight[c]:
            if pieces.is_number_test[test]:
                here = x[pieces.test_column[test]]
                q = _undecided_number(
                    test, n, spot, low, high, pieces, here, step, parts, is_from_input, down, up,
                    below,
                )  # fmt: skip
            else:
                q = undecided_level(
                    test, low, high, lattice.place, lattice.present_start, lattice.present,
                    lattice.absent_start, lattice.absent,
                )  # fmt: skip
            return q if q >= 0 else -2
    return -1

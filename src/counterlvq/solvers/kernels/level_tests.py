"""Conditions that hold only where a level is taken up, seen from boxes of positions."""

from __future__ import annotations

from counterlvq.numeric.jit import part
from counterlvq.solvers.kernels.conditions import INF

__all__ = ["apply_tests", "broken_test", "level_applies", "undecided_level"]


@part
def level_applies(test, low, high, place, present_start, present, has_absent, absent_start, absent):
    """Whether a level is there at all positions between two corners."""
    for a in range(present_start[test], present_start[test + 1]):
        q = place[present[a]]
        if q >= 0 and low[q] > 0.5:
            return True
    if not has_absent[test]:
        return False
    for a in range(absent_start[test], absent_start[test + 1]):
        q = place[absent[a]]
        if q >= 0 and high[q] > 0.5:
            return False
    return True


@part
def apply_tests(
    low, high, row_test, place, present_start, present, has_absent, absent_start, absent, right, h
):
    """Let conditions hold that apply throughout a box, and the others say nothing."""
    for c in range(row_test.size):
        if row_test[c] >= 0:
            applies = level_applies(
                row_test[c], low, high, place, present_start, present, has_absent, absent_start,
                absent,
            )  # fmt: skip
            h[c] = right[c] if applies else INF


@part
def undecided_level(test, low, high, place, present_start, present, absent_start, absent):
    """Find a level that a box leaves open and a test asks about, or -1."""
    for a in range(present_start[test], present_start[test + 1]):
        q = place[present[a]]
        if q >= 0 and low[q] < high[q]:
            return q
    for a in range(absent_start[test], absent_start[test + 1]):
        q = place[absent[a]]
        if q >= 0 and low[q] < high[q]:
            return q
    return -1


@part
def broken_test(u, spot, low, high, row_test, place, present_start, present, has_absent,
                 absent_start, absent, C, right, tight, h):  # fmt: skip
    """Find a level to decide on, where a condition that need not hold in the box is broken.

    Returns -1 where there is none, and -2 where there is nothing to decide on.
    """
    for c in range(row_test.size):
        if row_test[c] < 0 or h[c] < INF:
            continue
        if not level_applies(
            row_test[c], spot, spot, place, present_start, present, has_absent, absent_start,
            absent,
        ):  # fmt: skip
            continue
        over = -right[c]
        for j in range(u.size):
            over += C[c, j] * u[j]
        if over > 0.5 * tight[c]:
            q = undecided_level(
                row_test[c], low, high, place, present_start, present, absent_start, absent
            )
            return q if q >= 0 else -2
    return -1

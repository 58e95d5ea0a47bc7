"""Where a convex sum is least over a box, in exact arithmetic.

A tangent elsewhere gives away its slope times the width of the box. Under a cost that hardly
prices some direction that is wide, and the digits of a double are too few to say where to touch.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from counterlvq.certificates import check_certificate as exactly

__all__ = ["least_point", "two_doubles"]

Vector = list[Fraction]


def least_point(
    total: exactly.Sum, box: exactly.Box, start: Vector, clock: exactly.Clock
) -> Vector | None:
    """Return the point of a box at which a sum is least; None where that is not found.

    Active sets, from the point of a solver: the sum is solved for along coordinates that are free,
    up to the first end that is met; one that leans inwards at an end is set free. Any point gives
    a true bound, so that nothing hangs on where this stops.
    """
    (low, high), width = box, range(len(start))
    if not total.is_convex or any(total.w):
        return None
    rows = [[Fraction(0)] * len(start) for _ in width]
    for (i, j), a in total.H.items():
        rows[i][j] += a
        rows[j][i] += a
    p = [Fraction(max(low[j], min(high[j], start[j]))) for j in width]
    free = {j for j in width if low[j] < p[j] < high[j] and any(rows[j])}
    for _ in range(4 * len(start) + 4):
        at = sorted(free)
        lines = [[*(rows[i][j] for j in at), -_lean(total.h, rows, p, i)] for i in at]
        step = exactly.solved(lines, clock) if lines else []
        if step is None:
            return None
        share, met = _room(p, dict(zip(at, step, strict=True)), box)
        for j, by in zip(at, step, strict=True):
            p[j] += share * by
        if met is not None:
            free.remove(met)
            continue
        leans = {j: _lean(total.h, rows, p, j) for j in width if j not in free and any(rows[j])}
        inwards = [
            (abs(s), j) for j, s in leans.items()
            if (s > 0 and p[j] > low[j]) or (s < 0 and p[j] < high[j])
        ]  # fmt: skip
        if not inwards:
            return p
        free.add(max(inwards)[1])
    return p


def _lean(h: Vector, rows: list[Vector], p: Vector, i: int) -> Fraction:
    """Slope of the sum along one coordinate."""
    return h[i] + exactly.dot(rows[i], p)


def _room(p: Vector, step: dict[int, Fraction], box: exactly.Box) -> tuple[Fraction, int | None]:
    """Share of a step that stays in the box, and the coordinate that ends it."""
    share, met = Fraction(1), None
    for j, by in step.items():
        end = box[1][j] if by > 0 else box[0][j]
        if by and isinstance(end, Fraction) and (end - p[j]) / by < share:
            share, met = (end - p[j]) / by, j
    return share, met


def two_doubles(point: Vector) -> dict[str, Any]:
    """Write a point as a file does: what doubles hold of it, and the rest, if there is any."""
    near = [float(v) for v in point]
    rest = [float(v - Fraction(a)) for v, a in zip(point, near, strict=True)]
    return {"point": near, "rest": rest} if any(rest) else {"point": near}

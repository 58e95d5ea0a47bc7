"""Whether conditions leave nothing of a cell in a box without end, in exact arithmetic.

There what is charged for has to cancel without a rest, which multipliers of a solver never do:
under a shared metric they are corrected first. Under local metrics what is charged for is a
quadratic function, which may be flat in directions that no metric sees. No solver is imported here.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from counterlvq.cells import LocalCells
from counterlvq.certificates.exact_duality import Charged, ExactSum, fractions_of
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.finite_algebra import least_squares
from counterlvq.numeric.tolerances import HUGE, NEARLY_FLAT
from counterlvq.programs.nonconvex import Box, LiftedMultipliers, NonconvexProgram
from counterlvq.programs.program import Multipliers, Program

__all__ = ["contradicts_by_curves", "contradicts_exactly"]

# Products of fractions that one look may take.
_MOST_PRODUCTS = 1 << 18


def contradicts_exactly(
    charged: list[Charged], program: Program, prices: LiftedMultipliers, box: Box
) -> bool:
    """Whether no change in the box meets what is charged for of a cell and of the rows."""
    rows = _charged_rows(program, prices.linear)
    if (len(charged) + len(rows)) * program.width**2 > _MOST_PRODUCTS:
        return False
    low, high = (
        [Fraction(end) if np.isfinite(end) else None for end in ends.tolist()]
        for ends in (box.lower, box.upper)
    )
    nothing = [Fraction(0)] * program.width
    least = ExactSum(nothing, nothing, low, high, nothing, Fraction(0), charged + rows).least()
    return least is not None and least.value > 0


def contradicts_by_curves(
    cells: LocalCells, x: Floats, prototype: int, problem: NonconvexProgram,
    prices: LiftedMultipliers, led_by: Fraction,
) -> bool:  # fmt: skip
    """Whether rivals and rows alone leave nothing of a local cell, however far away.

    What is charged for has to be positive semidefinite and positive, without rounding.
    """
    charged = [
        (int(k), y)
        for k, y in zip(cells.rivals, prices.forms.tolist(), strict=False)
        if 0.0 < y < HUGE
    ]
    program = problem.convex
    d, rows = program.width, _charged_rows(program, prices.linear)
    rank = max((len(cells.model.factors[k]) for k in (prototype, *dict(charged))), default=0)
    if not charged or (len(charged) * (rank + 1) + d) * d * d > _MOST_PRODUCTS:
        return False
    if not _seems_positive(problem, prices):
        return False
    h, constant = [Fraction(0)] * d, Fraction(0)
    for row in rows:
        h = [s + row.multiplier * a for s, a in zip(h, row.row, strict=True)]
        constant -= row.multiplier * row.right
    H = [[Fraction(0)] * d for _ in range(d)]
    start = fractions_of(x)
    for k, y in charged:
        lead = cells.model.exact_distance(x, k) - cells.model.exact_distance(x, prototype)
        constant += Fraction(y) * (led_by - lead)
        for n, share in ((prototype, Fraction(y)), (k, -Fraction(y))):
            own = fractions_of(cells.model.prototypes[n])
            away = [a - b for a, b in zip(start, own, strict=True)]
            for factor in map(fractions_of, cells.model.factors[n]):
                image = sum((a * b for a, b in zip(factor, away, strict=True)), Fraction(0))
                for i, a in enumerate(factor):
                    h[i] += 2 * share * image * a
                    H[i] = [b + share * a * c for b, c in zip(H[i], factor, strict=True)]
    return _least_everywhere(H, h, constant) > 0


def _seems_positive(problem: NonconvexProgram, prices: LiftedMultipliers) -> bool:
    """Whether floats say so, about: what they deny is not worth the fractions."""
    forms, linear = problem.forms, prices.linear
    H = np.tensordot(prices.forms, forms.Q, axes=1)
    h = prices.forms @ forms.q + linear.y @ problem.convex.A + linear.z @ problem.convex.E
    sides = (prices.forms @ forms.r, linear.y @ problem.convex.b, linear.z @ problem.convex.e)
    lowest = least_squares(H, -0.5 * h, NEARLY_FLAT)
    if lowest is None or float(np.linalg.eigvalsh(H)[0]) < -NEARLY_FLAT * float(np.abs(H).max()):
        return False
    return bool(0.5 * h @ lowest - sum(sides) > 0)


def _least_everywhere(H: list[list[Fraction]], h: list[Fraction], constant: Fraction) -> Fraction:
    """Least value of ``v'Hv + h'v + constant``, by completing squares; 0 if that is not above."""
    left = list(range(len(h)))
    while left:
        p = max(left, key=lambda i: H[i][i])
        pivot = H[p][p]
        if pivot <= 0:
            is_flat = not any(h[i] or any(H[i][j] for j in left) for i in left)
            return constant if is_flat else Fraction(0)
        left.remove(p)
        constant -= h[p] * h[p] / (4 * pivot)
        if constant <= 0:
            return Fraction(0)
        for i in left:
            share = H[i][p] / pivot
            if share:
                h[i] -= share * h[p]
                for j in left:
                    H[i][j] -= share * H[p][j]
    return constant


def _charged_rows(program: Program, prices: Multipliers) -> list[Charged]:
    """Charge for linear conditions, each loosened by what is left open of it."""
    A, sides = np.concatenate([program.A, program.E]), np.concatenate([program.b, program.e])
    out = []
    for c, y in enumerate(np.concatenate([prices.y, prices.z]).tolist()):
        if not 0.0 < abs(y) < HUGE or (y < 0.0 and c < program.b.size):
            continue
        sign = 1 if y > 0.0 else -1  # one side of an equality
        if not np.isfinite(sides[c]) or not np.isfinite(program.blur[c]):
            continue
        right = sign * Fraction(float(sides[c])) + Fraction(float(program.blur[c]))
        row = [sign * a for a in fractions_of(A[c])]
        out.append(Charged(row, right, Fraction(abs(y)), is_free=False))
    return out

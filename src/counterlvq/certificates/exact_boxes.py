"""Whether linear conditions leave nothing of a cell in a box without end, in exact arithmetic.

There what is charged for has to cancel without a rest, which multipliers of a solver never do:
they are corrected first. No solver is imported here.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from counterlvq.certificates.exact_duality import Charged, ExactSum, fractions_of
from counterlvq.numeric.tolerances import HUGE
from counterlvq.programs.nonconvex import Box, LiftedMultipliers
from counterlvq.programs.program import Multipliers, Program

__all__ = ["contradicts_exactly"]

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

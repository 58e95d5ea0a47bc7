"""Searches under local metrics where the largest change counts: the last column is its height.

Walks along a height are long, and end where they begin more often than others. Those of sums of
absolute or squared changes are short, and what they find has a height as well: from there it is not
far. Nothing here is a claim.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from counterlvq.numeric.arrays import Floats
from counterlvq.programs.program import Program

__all__ = ["Heightened"]


@final
@dataclass(frozen=True, eq=False)
class Heightened:
    """A program whose cost is the height of the largest weighted change."""

    program: Program
    column: int
    slopes: Floats  # (2, d) height of a unit up, and of one down; 0 for the height itself

    @classmethod
    def of(cls, program: Program) -> Heightened | None:
        """Find the height; None where the cost is another one."""
        priced = np.flatnonzero(program.w > 0)
        if program.least_ways is None or priced.size != 1 or program.L.shape[0]:
            return None
        column = int(priced[0])
        slopes = program.least_ways / program.w[column]
        slopes[:, column] = 0.0
        return cls(program, column, slopes)

    def raised(self, delta: Floats) -> Floats:
        """Take the height that a change needs, and no more."""
        out = delta.copy()
        up, down = self.slopes
        out[self.column] = max(np.max(up * delta), np.max(-down * delta), 0.0)
        return out

    def simpler(self) -> list[Program]:
        """State the question with sums of absolute and of squared changes as its cost."""
        program, c = self.program, self.column
        w = self.slopes.max(axis=0)
        w[c] = 1.0
        if not (w > 0).all():
            return []
        kept = program.A[:, c] == 0
        lower, upper = program.lower.copy(), program.upper.copy()
        lower[c] = upper[c] = 0.0
        m = program.b.size
        bare = replace(
            program, A=program.A[kept], b=program.b[kept], lower=lower, upper=upper,
            blur=np.concatenate([program.blur[:m][kept], program.blur[m:]]),
            ways=None, least_ways=None,
        )  # fmt: skip
        nothing = np.zeros((0, w.size))
        return [replace(bare, w=w, L=nothing), replace(bare, w=np.zeros_like(w), L=np.diag(w))]

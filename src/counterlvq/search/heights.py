"""Bounds on cells where the largest change counts: one rival charged for, and what limits changes.

Of the columns only the height has a price, so that a rival alone bounds nothing. Together with the
rows that hold each change below the height it does: to overtake a rival by ``normal @ delta``, with
``slope_j |delta_j| <= height``, takes a height of the lead to be gained, divided by the sum of
``|normal_j| / slope_j``. These are multipliers like any others, and are checked like any others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.certificates.duality import Proof
from counterlvq.certificates.questions import Question
from counterlvq.numeric.arrays import Floats
from counterlvq.programs.program import Multipliers
from counterlvq.programs.template import ProgramTemplate

__all__ = ["Heights", "Overtaken", "heights_of"]

# Rivals that are tried for each cell, the nearest first: more of them seldom give a better bound.
_RIVALS = 32


class Overtaken(NamedTuple):
    """For each target prototype the rival that is costliest to overtake, and what that costs."""

    rivals: NDArray[np.int64]  # (k,)
    costs: Floats  # (k,)
    is_held: NDArray[np.bool_]  # (d,) columns that cannot change, which no row has to hold


@final
@dataclass(frozen=True, eq=False)
class Heights:
    """The rows that hold each change below the height, by direction and column."""

    column: int  # the height
    price: float  # of the height
    rows: NDArray[np.int64]  # (2, d) for changes upwards and downwards; -1 without any
    slopes: Floats  # (2, d) 0 without any row

    def overtaken(self, question: Question, margin: float) -> Overtaken:
        """Estimate what the targets of a question cost at the least; no claim rests on it."""
        cells, x = question.cells, question.x
        scores = cells.model.distances(x[None, :])[0][cells.rivals]
        near = cells.rivals[np.argsort(scores, kind="stable")[:_RIVALS]]
        lower, upper = question.template.box(x)
        is_held = np.asarray(lower >= upper)
        found = np.zeros(cells.targets.size, dtype=np.int64)
        costs = np.zeros(cells.targets.size)
        for at, i in enumerate(cells.targets.tolist()):
            normals, leads = cells.halfspaces(i, x, near)
            per_height = self._speeds(np.where(is_held, 0.0, normals)).sum(axis=1)
            gained = np.maximum(margin - leads, 0.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                needed = np.where(per_height > 0, self.price * gained / per_height, 0.0)
            best = int(needed.argmax())
            found[at], costs[at] = near[best], needed[best]
        return Overtaken(found, costs, is_held)

    def proof(self, question: Question, over: Overtaken, at: int) -> Proof:
        """Charge for the rival of a target, and for the rows that its normal pushes against."""
        prototype, one = int(question.cells.targets[at]), over.rivals[at : at + 1]
        normal = question.cells.halfspaces(prototype, question.x, one).normals[0]
        normal = np.where(over.is_held, 0.0, normal)
        speeds = self._speeds(normal[None, :])[0]
        price = self.price / speeds.sum()
        y = np.zeros(question.template.inequalities.v.size)
        for way, moves in enumerate((normal < 0, normal > 0)):  # up where that gains on the rival
            y[self.rows[way, moves]] = price * speeds[moves]
        template = question.template
        on_rows = Multipliers(
            y, np.zeros(template.equalities.v.size), np.zeros(len(template.quadrics))
        )
        return Proof(prototype, one, np.array([price]), on_rows, np.zeros(question.x.size))

    def _speeds(self, normals: Floats) -> Floats:
        """By how much a unit of height moves each normal's product, by columns, (m, d)."""
        slopes = np.where(normals < 0, self.slopes[0], self.slopes[1])
        sizes = np.abs(normals)
        with np.errstate(divide="ignore"):
            speeds: Floats = np.divide(sizes, slopes, out=np.zeros_like(sizes), where=sizes > 0)
        return speeds


def heights_of(template: ProgramTemplate) -> Heights | None:
    """Find the rows that hold changes below a height; None where the cost is another one."""
    priced = np.flatnonzero(template.w > 0)
    if template.least_ways is None or priced.size != 1 or template.L.shape[0]:
        return None
    column, A = int(priced[0]), template.inequalities.A
    rows = np.full((2, template.w.size), -1, dtype=np.int64)
    slopes = np.zeros((2, template.w.size))
    for r in np.flatnonzero((np.count_nonzero(A, axis=1) == 2) & (A[:, column] < 0)):
        j = next(j for j in np.flatnonzero(A[r]).tolist() if j != column)
        way = 0 if A[r, j] > 0 else 1
        slope = abs(A[r, j] / A[r, column])
        if slope > slopes[way, j]:
            rows[way, j], slopes[way, j] = r, slope
    # A change that no row holds down makes every bound of a rival that sees it 0.
    return Heights(column, float(template.w[column]), rows, slopes)

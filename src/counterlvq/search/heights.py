"""Bounds on cells where the largest change counts: one rival charged for, and what limits changes.

Of the columns only the height has a price, so that a rival alone bounds nothing. Together with the
rows that hold each change below the height it does: to overtake a rival by ``normal @ delta``, with
``slope_j |delta_j| <= height``, takes a height of the lead to be gained, divided by the sum of
``|normal_j| / slope_j``. These are multipliers like any others, and are checked like any others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.cells import Halfspaces
from counterlvq.certificates.duality import Proof
from counterlvq.certificates.questions import Question
from counterlvq.numeric.arrays import Floats
from counterlvq.programs.program import Multipliers
from counterlvq.programs.template import ProgramTemplate

__all__ = ["Heights", "Overtaken", "heights_of"]

# Rivals that are tried for each cell, the nearest first: more of them seldom give a better bound.
_RIVALS = 32
# Numbers that are worked on at once.
_AT_ONCE = 1 << 20


class Overtaken(NamedTuple):
    """For each target prototype a rival that is costly to overtake, and what that costs."""

    rivals: NDArray[np.int64]  # (k,) the nearest, or one that is costlier; written to
    costs: Floats  # (k,) written to
    near: NDArray[np.intp]  # rivals that are worth a look, the nearest first
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
        """Estimate what overtaking the nearest rival costs; no claim rests on it."""
        cells, x = question.cells, question.x
        scores = cells.model.distances(x[None, :])[0][cells.rivals]
        near = cells.rivals[np.argsort(scores, kind="stable")[:_RIVALS]]
        lower, upper = question.template.box(x)
        is_held = np.asarray(lower >= upper)
        rivals = np.full(cells.targets.size, near[0], dtype=np.int64)
        costs = np.empty(cells.targets.size)
        for part in _parts(cells.targets.size, x.size):
            seen = cells.halfspaces_between(cells.targets[part], x, rivals[part])
            costs[part] = self._costs(seen, is_held, margin)
        return Overtaken(rivals, costs, near, is_held)

    def improve(self, question: Question, over: Overtaken, at: int, margin: float) -> float:
        """Look for a rival of one target that is costlier to overtake; what that costs."""
        prototype = int(question.cells.targets[at])
        seen = question.cells.halfspaces(prototype, question.x, over.near)
        costs = self._costs(seen, over.is_held, margin)
        best = int(costs.argmax())
        if costs[best] > over.costs[at]:
            over.rivals[at], over.costs[at] = over.near[best], costs[best]
        return float(over.costs[at])

    def _costs(self, seen: Halfspaces, is_held: NDArray[np.bool_], margin: float) -> Floats:
        per_height = self._speeds(np.where(is_held, 0.0, seen.normals)).sum(axis=1)
        gained = np.maximum(margin - seen.leads, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(per_height > 0, self.price * gained / per_height, 0.0)

    def proofs(
        self, question: Question, over: Overtaken, which: NDArray[np.intp]
    ) -> Iterator[Proof]:
        """Charge for the rival of each target, and for the rows that its normal pushes against."""
        cells, template = question.cells, question.template
        no_equality = np.zeros(template.equalities.v.size)
        on_quadrics = np.zeros(len(template.quadrics))
        nowhere = np.zeros(question.x.size)
        for part in _parts(which.size, question.x.size):
            at = which[part]
            seen = cells.halfspaces_between(cells.targets[at], question.x, over.rivals[at])
            normals = np.where(over.is_held, 0.0, seen.normals)
            speeds = self._speeds(normals)
            prices = self.price / speeds.sum(axis=1)
            for n, t in enumerate(at.tolist()):
                y = np.zeros(template.inequalities.v.size)
                # Up where that gains on the rival.
                for way, moves in enumerate((normals[n] < 0, normals[n] > 0)):
                    y[self.rows[way, moves]] = prices[n] * speeds[n, moves]
                yield Proof(
                    int(cells.targets[t]),
                    over.rivals[t : t + 1],
                    prices[n : n + 1],
                    Multipliers(y, no_equality, on_quadrics),
                    nowhere,
                )

    def _speeds(self, normals: Floats) -> Floats:
        """By how much a unit of height moves each normal's product, by columns, (m, d)."""
        slopes = np.where(normals < 0, self.slopes[0], self.slopes[1])
        sizes = np.abs(normals)
        with np.errstate(divide="ignore"):
            speeds: Floats = np.divide(sizes, slopes, out=np.zeros_like(sizes), where=sizes > 0)
        return speeds


def _parts(count: int, width: int) -> Iterator[slice]:
    """Cut so many rows into parts that fit into memory."""
    size = max(_AT_ONCE // width, 1)
    return (slice(start, start + size) for start in range(0, count, size))


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

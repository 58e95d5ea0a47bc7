"""Branch and bound where metrics see little of the features, or their number is large.

Relaxations lift the space that the metrics see (`low_rank`), whatever the number of features, and
boxes are cut across coordinates of it: linear forms of the change. Where the metrics see all and
the cost is quadratic, its coordinates are the features. Without a known answer nothing limits a
form, and the search goes on over features as ever.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import final

import numpy as np

from counterlvq.cells import LocalCells
from counterlvq.certificates.box_questions import BoxQuestion
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.tolerances import BROKEN_RIVAL, LEAST_LENGTH, NARROW, UNCHARGED
from counterlvq.programs.nonconvex import Box, FormSides, NonconvexProgram
from counterlvq.search.branch_and_bound import Branching, Node
from counterlvq.solvers.low_rank import Asked, relax_seen
from counterlvq.solvers.metric_space import MetricSpace, Question, SeenRelaxed
from counterlvq.solvers.semidefinite import Relaxed
from counterlvq.solvers.solution import Outcome

__all__ = ["SeenBranching", "space_of"]

# No claim rests on the numbers below.
# Features from which what the metrics see is lifted. With 5 features lifting all of them was the
# faster way; between 6 and 29 features nothing was measured.
_LEAST_WIDTH = 12
# Features from which absolute costs are relaxed so under metrics that see them all. Lifting all of
# them by Clarabel took 0.6 times as long with 30 features, and 4 times as long with 61; between
# these nothing was measured.
_LEAST_PLAIN = 45
# Products of numbers in a second, a third of what was measured; the share of a time limit, and the
# seconds, that one step may take; and the steps without which a relaxation is not worth starting.
_SPEED, _SHARE, _SECONDS, _STEPS = 3e9, 0.05, 0.05, 4
# A relaxation is solved until it closes its box but for this share of the gap, and in a box that
# will be cut until its bound is known to this share of what is missing.
_OF_GAP, _LOOSE = 0.1, 0.05
# A rival that comes as near as this share of the distances matters to a relaxation; where there
# are no more than these, all of them do.
_NEAR, _FEW_RIVALS = 0.05, 40
# How near to a side, as a share of the width, a box may be cut; and how near to 0, as a share of
# what the cost allows, a relaxed point is when a form is cut at 0 first.
_EDGE, _AT_ZERO = 0.1, 0.2


def space_of(question: BoxQuestion) -> MetricSpace | None:
    """Find what the metrics of a question see; None where features are lifted one and all.

    So they are for absolute costs under metrics that see them all, unless there are many.
    """
    cells = question.cells
    if not isinstance(cells, LocalCells) or question.x.size < _LEAST_WIDTH:
        return None
    space = MetricSpace.of(cells.model.factors, question.convex)
    is_absolute = not question.convex.L.shape[0]
    few = question.x.size < _LEAST_PLAIN
    return None if space is not None and space.is_plain and is_absolute and few else space


@final
@dataclass(eq=False)
class SeenBranching(Branching):
    """One run for one question, over the space that the metrics see."""

    space: MetricSpace = field(kw_only=True)
    _last: SeenRelaxed | None = field(init=False, default=None)
    _cells: dict[int, Question] = field(init=False, default_factory=dict)

    @cached_property
    def _forms(self) -> Floats:
        return np.zeros((0, 0)) if self.space.is_plain else self.space.V

    def _cell(self, prototype: int, problem: NonconvexProgram) -> Question:
        known = self._cells.get(prototype)
        if known is None:
            known = self._cells[prototype] = Question.of(problem, self.space)
        return known

    def _takes_too_long(self) -> bool:
        """Whether time is up, or a step would take too much of it: they end between two steps."""
        if not np.isfinite(self._cost):
            return super()._takes_too_long()
        step = self._step_work / _SPEED
        if step > _SHARE * self._allowed + _SECONDS:
            return True
        return self.context.seconds_left() <= _STEPS * step

    @cached_property
    def _step_work(self) -> float:
        """About the numbers that are multiplied in one step of a relaxation."""
        k, n, m = self.space.size, self.question.x.size, self.question.cells.rivals.size
        if self.question.convex.L.shape[0]:
            return float((m + k) ** 3 / 3 + (m + k) ** 2 * k * k + 2.0 * (m + k) * k**3)
        q = 0.5 * (k + 1) * (k + 2)
        pairs = 0.0 if self.space.is_plain else 0.5 * n * n
        return float((q + m + n) ** 3 / 3.0 + q * q * (8 + m + pairs))

    def _relaxed(self, node: Node, problem: NonconvexProgram, box: Box, cap: float) -> Relaxed:
        self._last = None
        if not 0.0 < cap < np.inf or not box.is_finite:
            return super()._relaxed(node, problem, box, cap)
        question = self._cell(node.prototype, problem)
        forms, sides = problem.forms, self._form_sides(node.within, box, cap)
        if forms.r.size <= _FEW_RIVALS:
            node.rivals = np.ones(forms.r.size, dtype=bool)
        deadline = time.monotonic() + self.context.seconds_left()
        asked = Asked(1.0 - _OF_GAP * self.gap, self._tolerance, _LOOSE, deadline)
        while True:
            found = relax_seen(question, node.rivals, box, sides, cap, asked)
            if found is None:
                return Relaxed.failed(problem, box)
            self._work += found.work
            blank = np.zeros((0, 0))
            relaxed = Relaxed(Outcome.SOLVED, found.prices, blank)
            if not relaxed.is_usable or not np.isfinite(found.miss).all():
                return Relaxed.failed(problem, box)
            over = question.excess(found.u, found.miss)
            broken = ~node.rivals & (over > BROKEN_RIVAL * forms.size)
            if found.value >= asked.goal or not broken.any() or self.context.out_of_time():
                charged = found.prices.forms
                paid = charged > UNCHARGED * charged.max(initial=0.0)
                node.rivals = paid | (over > -_NEAR * forms.size)
                self._last = found
                return relaxed
            node.rivals = node.rivals | broken

    def _form_sides(self, within: Box, box: Box, cap: float) -> FormSides:
        """Sides of all coordinates; where these are features, of the box."""
        free = within if within.lower.size else Box.whole(self.space.size)
        return self.question.form_sides(self.space.V, free, box, cap)

    def _where_to_cut(self, node: Node, box: Box, relaxed: Relaxed) -> tuple[int, float] | None:
        """Choose the coordinate that the relaxation gains most from missing."""
        found = self._last
        if found is None:
            if relaxed.miss.size:
                return super()._where_to_cut(node, box, relaxed)
            return None
        question, cap = self._cells[node.prototype], node.cap
        whole = self._form_sides(Box.whole(self.space.size), self.question.root(cap), cap)
        sides = self._form_sides(node.within, box, cap)
        root, width = 0.5 * (whole.upper - whole.lower), sides.upper - sides.lower
        wide = width > 2.0 * NARROW * root
        prices = np.maximum(found.prices.forms, 0.0)
        drawn = np.einsum("k,kij->ij", prices, question.Q)
        size = np.maximum(np.diag(found.miss), 0.0) / np.maximum(root, LEAST_LENGTH) ** 2
        worth = np.where(wide, np.abs(drawn * found.miss).sum(axis=1) * size, -1.0)
        if worth.max() <= 0:
            worth = np.where(wide, width / np.maximum(root, LEAST_LENGTH), -1.0)
        i = int(worth.argmax())
        if worth[i] <= 0:
            return None
        low, high, here = float(sides.lower[i]), float(sides.upper[i]), float(found.u[i])
        edge = _EDGE * (high - low)
        at = float(np.clip(here, low + edge, high - edge))
        # The sign of a feature is what an absolute cost hides; a form has no such place.
        near_zero = self.space.is_plain or abs(here) < _AT_ZERO * root[i]
        if low < 0.0 < high and near_zero:
            at = 0.0
        if not self.space.is_plain:
            return self.question.x.size + i, at
        j = int(np.abs(self.space.V[i]).argmax())
        return j, at / float(self.space.V[i, j])

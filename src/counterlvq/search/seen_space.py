"""Branch and bound where metrics see little of the features, or their number is large.

Relaxations lift the space that the metrics see (`low_rank`), whatever the number of features, and
boxes are cut across coordinates of it: linear forms of the change. Where the metrics see all and
the cost is quadratic, its coordinates are the features. Without a known answer nothing limits a
form, and the search goes on over features as ever.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import NDArray

from counterlvq.cells import LocalCells
from counterlvq.certificates.box_questions import BoxQuestion
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.memory import FLOAT, refuse_too_large
from counterlvq.numeric.single_thread import one_blas_thread
from counterlvq.numeric.tolerances import AT_CURVE, BROKEN_RIVAL, NARROW, UNCHARGED, UNPAID_PRODUCT
from counterlvq.programs.nonconvex import Box, FormSides, NonconvexProgram
from counterlvq.search.branch_and_bound import Branching, Node
from counterlvq.search.result import SearchResult
from counterlvq.solvers.low_rank import LEAST_WIDTH, Asked, relax_seen
from counterlvq.solvers.metric_space import Cuts, MetricSpace, Question, SeenRelaxed
from counterlvq.solvers.semidefinite import Relaxed
from counterlvq.solvers.solution import Outcome

__all__ = ["SeenBranching", "space_of"]

# No claim rests on the numbers below.
# Features from which what the metrics see is lifted. With 4 and 5 features lifting all of them by
# Clarabel took 0.5 to 0.9 times as long, with 8 it took 1.5 times as long under squared costs.
_LEAST_WIDTH = 8
# Features from which absolute costs are relaxed so under metrics that see them all. Lifting all of
# them by Clarabel took 0.6 times as long with 8 features, as long with 10 (and proved less), and 3
# times as long with 22.
_LEAST_PLAIN = 10
# Products of numbers in a second, a third of what was measured; the share of a time limit, and the
# seconds, that one step may take; and the steps without which a relaxation is not worth starting.
_SPEED, _SHARE, _SECONDS, _STEPS = 3e9, 0.05, 0.05, 4
# Products of numbers in a step, below which threads for them cost more than they give.
_SHORT = 3e8
# A relaxation is solved until it closes its box but for this share of the gap, and in a box that
# will be cut until its bound is known to this share of what is missing.
_OF_GAP, _LOOSE = 0.1, 0.05
# A rival that comes as near as this share of the distances matters to a relaxation; where there
# are no more than these, all of them do.
_NEAR, _FEW_RIVALS = 0.05, 10
# A relaxed change of less than this share of the largest one is none.
_CHANGED = 1e-3
# Matrices of the size of the equations that one step holds.
_COPIES = 4.0
# How near to a side, as a share of the width, a box may be cut.
_EDGE = 0.1
# How many directions are tried before a box is left as it is, and the cosine from which a direction
# counts as one that has been cut before.
_DIRECTIONS, _ALIKE = 5, 0.95


def space_of(question: BoxQuestion) -> MetricSpace | None:
    """Find what the metrics of a question see; None where features are lifted one and all.

    So they are for absolute costs under metrics that see them all, unless there are many.
    """
    cells = question.cells
    if not isinstance(cells, LocalCells) or question.x.size < _LEAST_WIDTH:
        return None
    with one_blas_thread():
        space = MetricSpace.of(cells.model.factors, question.convex)
    is_absolute = not question.convex.L.shape[0]
    few = question.x.size < _LEAST_PLAIN
    return None if space is not None and space.is_plain and is_absolute and few else space


@final
@dataclass(eq=False)
class SeenBranching(Branching):
    """One run for one question, over the space that the metrics see."""

    space: MetricSpace = field(kw_only=True)
    whole_work: float = field(default=0.0, kw_only=True)  # what one counts that lifts all features
    _last: SeenRelaxed | None = field(init=False, default=None)
    _cells: dict[int, Question] = field(init=False, default_factory=dict)
    _cut_across: dict[int, Floats] = field(init=False, default_factory=dict)  # forms by cells

    def run(self) -> SearchResult:
        """Search; where steps are short, without threads for the products of one."""
        if self._begins_with_few or self._step_work < _SHORT:
            with one_blas_thread():
                return super().run()
        return super().run()

    def _forms(self, prototype: int) -> Floats:
        return self._cut_across.get(prototype, np.zeros((0, 0)))

    def _cell(self, prototype: int, problem: NonconvexProgram) -> Question:
        known = self._cells.get(prototype)
        if known is None:
            self._refuse_too_large()
            known = self._cells[prototype] = Question.of(problem, self.space)
        return known

    def _refuse_too_large(self) -> None:
        """Refuse relaxations of absolute costs whose equations memory cannot hold."""
        if self.question.convex.L.shape[0]:
            return
        k, n, m = self.space.size, self.question.x.size, self.question.cells.rivals.size
        equations = 0.5 * (k + 1) * (k + 2) + n + m
        refuse_too_large(
            f"a proof over {n:,} features under local metrics, with a number for each pair of "
            f"the {k:,} directions that they see,",
            _COPIES * FLOAT * equations**2,
            'freeze features, or ask with method="ccp", which proves nothing',
        )

    def _takes_too_long(self) -> bool:
        """Whether time is up, or a step would take too much of it: they end between two steps."""
        if not np.isfinite(self._cost):
            return super()._takes_too_long()
        if self._begins_with_few:
            return self.context.out_of_time()
        return self._step_work / _SPEED > self._most_seconds

    @property
    def _most_seconds(self) -> float:
        """Seconds that one step may take."""
        return min(_SHARE * self._allowed + _SECONDS, self.context.seconds_left() / _STEPS)

    @cached_property
    def _begins_with_few(self) -> bool:
        """Whether relaxations begin with a few features, and steps are short."""
        is_absolute = not self.question.convex.L.shape[0]
        return is_absolute and self.space.is_plain and self.space.size >= LEAST_WIDTH

    @cached_property
    def _step_work(self) -> float:
        """About the numbers that are multiplied in one step of a relaxation."""
        k, n, m = self.space.size, self.question.x.size, self.question.cells.rivals.size
        program = self.question.convex
        if program.L.shape[0]:
            sides = np.isfinite(program.lower).sum() + np.isfinite(program.upper).sum()
            x = 1.0 + m + sides + program.b.size + program.e.size
            return float(x**3 / 3 + x * x * k * k + 2.0 * x * k**3)
        q = 0.5 * (k + 1) * (k + 2)
        # Where prices differ by direction, boxes may take features out of their common units.
        is_plain = self.space.is_plain and program.ways is None
        pairs = 0.0 if is_plain else 0.5 * n * n
        return float((q + m + n) ** 3 / 3.0 + q * q * (8 + m + pairs))

    def _relaxed(self, node: Node, problem: NonconvexProgram, box: Box, cap: float) -> Relaxed:
        if not 0.0 < cap < np.inf or not box.is_finite:
            self._last = None
            return super()._relaxed(node, problem, box, cap)
        if self._is_at_curves:
            return self._relaxed_whole(node, problem, box, cap)
        relaxed = self._relaxed_seen(node, problem, box, cap)
        point, found = relaxed.prices.point, self._last
        if found is None or found.value >= 1.0 - self.gap or not self._breaks_curves(point):
            return relaxed
        return self._relaxed_whole(node, problem, box, cap)

    @property
    def _is_at_curves(self) -> bool:
        """Whether convex quadratic conditions, which are no part of u, limit the best answer."""
        return self._best is not None and self._breaks_curves(self._best.y - self.question.x)

    def _breaks_curves(self, delta: Floats) -> bool:
        """Whether a change breaks convex quadratic conditions, or nearly."""
        return any(
            quadric.true_excess(delta) > -AT_CURVE * quadric.magnitude(np.abs(delta))
            for quadric in self.question.convex.quadrics
        )

    def _relaxed_whole(
        self, node: Node, problem: NonconvexProgram, box: Box, cap: float
    ) -> Relaxed:
        """Lift all features."""
        self._last = None
        self._work += self.whole_work
        if super()._takes_too_long():
            return Relaxed.failed(problem, box)
        return super()._relaxed(node, problem, box, cap)

    def _relaxed_seen(self, node: Node, problem: NonconvexProgram, box: Box, cap: float) -> Relaxed:
        """Lift what the metrics see."""
        self._last = None
        question = self._cell(node.prototype, problem)
        forms, cuts = problem.forms, self._cuts(node, box, cap)
        if forms.r.size <= _FEW_RIVALS:
            node.rivals = np.ones(forms.r.size, dtype=bool)
        deadline = time.monotonic() + self._seconds_for_one()
        asked = Asked(
            1.0 - _OF_GAP * self.gap, self._tolerance, _LOOSE, deadline, self._hint(node),
            _SPEED * self._most_seconds,
        )  # fmt: skip
        while True:
            found = relax_seen(question, node.rivals, box, cuts, cap, asked)
            if found is None:
                return Relaxed.failed(problem, box)
            self._work += found.work
            blank = np.zeros((0, 0))
            relaxed = Relaxed(Outcome.SOLVED, found.prices, blank)
            if not relaxed.is_usable or not np.isfinite(found.miss).all():
                return Relaxed.failed(problem, box)
            over = question.excess(found.u, found.miss)
            broken = ~node.rivals & (over > BROKEN_RIVAL * forms.size)
            late = time.monotonic() > deadline
            if found.value >= asked.goal or not broken.any() or late:
                charged = found.prices.forms
                paid = charged > UNCHARGED * charged.max(initial=0.0)
                node.rivals = paid | (over > -_NEAR * forms.size)
                self._last = found
                return relaxed
            node.rivals = node.rivals | broken

    def _hint(self, node: Node) -> NDArray[np.bool_]:
        """Features that the box before changed, or that the best answer does."""
        changes = np.abs(node.prices.point)
        matter = np.asarray(changes > _CHANGED * changes.max(initial=0.0))
        return matter if self._best is None else matter | (self._best.y != self.question.x)

    def _cuts(self, node: Node, box: Box, cap: float) -> Cuts:
        """Sides of the forms that the tree of a cell cuts and, where they are all, of features."""
        sides = self._sides(node.prototype, node.within, box, cap)
        if sides is None:
            blank = np.zeros(0)
            sides = FormSides(np.zeros((0, box.lower.size)), blank, blank)
        features = self._coordinates(box, cap) if self.space.is_plain else None
        return Cuts.of(self.space, sides, self._products_that_matter(node, len(sides.V)), features)

    def _products_that_matter(self, node: Node, count: int) -> NDArray[np.bool_]:
        """Pairs of forms whose products the box before was charged for, or that are new."""
        prices = node.prices
        charged = np.maximum(np.maximum(prices.form_low, prices.form_high), prices.form_cross)
        out = np.zeros((count, count), dtype=bool)
        k, largest = len(charged), float(charged.max(initial=0.0))
        out[:k, :k] = np.maximum(charged, charged.T) > UNPAID_PRODUCT * largest
        new = node.came_by - self.question.x.size
        if 0 <= new < count:
            out[new], out[:, new] = True, True
        return out

    def _coordinates(self, box: Box, cap: float) -> FormSides:
        """Sides of the coordinates of u."""
        return self.question.form_sides(self.space.V, Box.whole(self.space.size), box, cap)

    def _where_to_cut(self, node: Node, box: Box, relaxed: Relaxed) -> tuple[int, float] | None:
        """Choose the direction in which the relaxed point is most of a mixture."""
        found = self._last
        if found is None:
            if relaxed.miss.size:
                return super()._where_to_cut(node, box, relaxed)
            return None
        for axis in found.axes[:_DIRECTIONS]:
            where = self._across(node, box, axis, found.u)
            if where is not None:
                return where
        return None

    def _starts(self, relaxed: Relaxed) -> Iterator[Floats]:
        """Search from the relaxed point, and from the two points that it mixes most of."""
        yield from super()._starts(relaxed)
        if self._last is not None:
            way = self.space.back @ (self._last.spread[0] * self._last.axes[0])
            yield relaxed.prices.point + way
            yield relaxed.prices.point - way

    def _across(self, node: Node, box: Box, axis: Floats, u: Floats) -> tuple[int, float] | None:
        """Cut across a direction of u, if the box is wide enough there."""
        forms, cap = self._forms(node.prototype), node.cap
        known = forms @ self.space.back if len(forms) else np.zeros((0, axis.size))
        alike = np.abs(known @ axis)
        if alike.max(initial=0.0) > _ALIKE:
            i = int(alike.argmax())
        else:
            i, row = len(forms), axis @ self.space.V
            forms = np.concatenate([forms.reshape(-1, row.size), row[None]])
            known = np.concatenate([known, axis[None]])
        V = forms[i : i + 1]
        within = _side(node.within, i)
        root = self.question.form_sides(V, Box.whole(1), self.question.root(cap), cap)
        sides = self.question.form_sides(V, within, box, cap)
        low, high = float(sides.lower[0]), float(sides.upper[0])
        if high - low <= NARROW * float(root.upper[0] - root.lower[0]):
            return None
        self._cut_across[node.prototype] = forms
        edge = _EDGE * (high - low)
        at = float(np.clip(known[i] @ u, low + edge, high - edge))
        return self.question.x.size + i, at


def _side(within: Box, i: int) -> Box:
    """Sides of one form; none where it has not been cut."""
    if i >= within.lower.size:
        return Box.whole(1)
    return Box(within.lower[i : i + 1], within.upper[i : i + 1])

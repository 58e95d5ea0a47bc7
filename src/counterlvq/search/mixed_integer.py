"""Search for one answer where some features lie on a grid: whole numbers, decimals, levels.

The same branch and bound, with cuts between values of a grid. A relaxed point is taken to the
nearest point of the grid, and what is left to choose there is a question without a grid, which
is answered as any other. Under a shared metric the relaxation of a box is a convex program.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from counterlvq.cells import LocalCells, SharedCells
from counterlvq.certificates.box_tests import Cut
from counterlvq.certificates.judged import Accepted
from counterlvq.certificates.questions import Question
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.quadratic_forms import column_lengths
from counterlvq.numeric.tolerances import (
    AT_THRESHOLD,
    BROKEN_SHARE,
    CLEAR_OF_TIES,
    DIVING,
    ON_GRID,
)
from counterlvq.programs.conditions import Conditional
from counterlvq.programs.grids import Choice
from counterlvq.programs.nonconvex import Box, FormSides, LiftedMultipliers, NonconvexProgram
from counterlvq.search.branch_and_bound import Branching, Node
from counterlvq.search.exact import Search
from counterlvq.solvers.ccp import Descent, Frames
from counterlvq.solvers.ccp_round import Scores
from counterlvq.solvers.linear_relaxation import relax_flat
from counterlvq.solvers.semidefinite import Relaxed
from counterlvq.solvers.solution import Outcome

__all__ = ["MixedBranching"]

_GRID = "branch and bound over whole numbers, decimals and levels"
# A way to the grid that costs less than this share of the gap can wait. No claim rests on it.
_LITTLE = 0.1
# Third power of products of two features at which a relaxation takes twice as long as a small one:
# 5 ms, and 160 ms with 30 features.
_PAIRS = 3e6
# Entries of a convex program for which its solver takes as long again as for a small one: 5 ms.
_ENTRIES = 500.0
# What bounding a box, and checking that afterwards, counts beside its program.
_BOX = 2.0
# Sides of thresholds that are tried from one point.
_MOST_CHOICES = 8


@final
@dataclass(eq=False)
class MixedBranching(Branching):
    """One run for one question with a grid."""

    _tried: set[tuple[int, bytes]] = field(init=False, default_factory=set)

    @property
    def _is_shared(self) -> bool:
        return isinstance(self.question.cells, SharedCells)

    @property
    def _engines(self) -> tuple[str, ...]:
        return (_GRID,) if self._is_shared else (_GRID, *super()._engines)

    def _start(self, *, from_input: bool) -> None:
        """Begin where nothing on the grid changes, and with what the target prototypes have."""
        x, model = self.question.x, self.question.cells.model
        for prototype in self.question.cells.targets.tolist():
            if self.context.out_of_time():
                return
            if from_input:
                self._complete(prototype, np.zeros_like(x))
            self._complete(prototype, model.prototypes[prototype] - x)
            if not self._is_shared:
                self._dive(prototype)
            elif self._cost == np.inf:
                self._dive_straight(prototype)

    def _relax_flat(self, problem: NonconvexProgram, box: Box) -> Relaxed:
        return relax_flat(problem, self._loosened(problem, box), self.context.deadline.at)

    def _dive_straight(self, prototype: int) -> None:
        """Solve the convex program without a grid, then hold one feature after another on it.

        A margin keeps off ties, which on a grid have no neighbour that wins.
        """
        question, ticks = self.question, self.question.ticks
        box = question.root(np.inf)
        problem = question.problem(prototype, box)
        problem = problem.tightened(
            self.margin or CLEAR_OF_TIES * float(problem.forms.size.max(initial=0))
        )
        relaxed = self._relax_flat(problem, box)
        for _ in range(ticks.columns.size):
            if relaxed.outcome is not Outcome.SOLVED or self.context.out_of_time():
                return
            point = relaxed.prices.point
            miss = ticks.miss(point)
            if not (miss > ON_GRID).any():
                break
            j = int(np.where(miss > ON_GRID, miss, np.inf).argmin())
            for low, high in self._neighbours(j, point):
                part = Box(box.lower.copy(), box.upper.copy())
                part.lower[j], part.upper[j] = max(low, box.lower[j]), min(high, box.upper[j])
                relaxed = self._relax_flat(problem, part)
                if relaxed.outcome is Outcome.SOLVED:
                    box = part
                    break
        self._complete(prototype, relaxed.prices.point)

    def _dive(self, prototype: int) -> None:
        """Leave the grid alone at first, then hold one feature after another on it.

        Of the features that are off the grid the nearest to it comes first. What is lost by
        that the others may make up for; if they cannot, the neighbour on the grid is tried.
        """
        question, ticks = self.question, self.question.ticks
        held: dict[int, tuple[float, float]] = {}
        start = question.cells.model.prototypes[prototype] - question.x
        delta = self._loosely(prototype, held, start)
        for _ in range(ticks.columns.size):
            if delta is None or question.convex.cost(delta) >= self._cost:
                return
            miss = ticks.miss(delta)
            off = np.flatnonzero(miss > ON_GRID)
            if not off.size:
                break
            j = int(off[miss[off].argmin()])
            choices = self._neighbours(j, delta)
            start, delta = delta, None
            for sides in choices:
                held[j] = sides
                delta = self._loosely(prototype, held, start)
                if delta is not None:
                    break
        if delta is not None:
            self._complete(prototype, delta)

    def _neighbours(self, j: int, delta: Floats) -> list[tuple[float, float]]:
        """List allowed changes next to one that is not, or pieces of them, nearest first."""
        ticks = self.question.ticks
        below = ticks.below(delta)
        above = ticks.next_above(below) if np.isfinite(below[j]) else ticks.above(delta)
        ends = [float(end) for end in (below[j], above[j]) if np.isfinite(end)]
        ends.sort(key=lambda end: abs(end - delta[j]))
        return [ticks.piece(j, end) for end in ends]

    def _loosely(
        self, prototype: int, held: dict[int, tuple[float, float]], start: Floats
    ) -> Floats | None:
        """Search a cell without a grid but for the changes that are held; None if that fails."""
        question, cells = self.question, self.question.cells
        assert isinstance(cells, LocalCells)  # the relaxation of a shared cell says more
        program = replace(question.convex, lower=question.convex.lower.copy())
        program = replace(program, upper=program.upper.copy())
        for j, (low, high) in held.items():
            program.lower[j] = max(low, program.lower[j])
            program.upper[j] = min(high, program.upper[j])
        if program.has_empty_box() or self.context.out_of_time():
            return None
        scores = Scores(*question.view.distances(prototype))
        descent = Descent.of(program, scores, question.spread, self._grid_frames)
        margin, seconds = self._margin(prototype), self.context.seconds_left()
        inside = descent.into_cell(start, margin, DIVING, seconds)
        if inside is None:
            return None
        return descent.downhill(inside, margin, DIVING, seconds)

    @cached_property
    def _grid_frames(self) -> Frames:
        """Kept for the searches on the way to the grid."""
        cells = self.question.cells
        assert isinstance(cells, LocalCells)
        return Frames(cells.rival_metrics)

    def _search_from(self, prototype: int, point: Floats) -> None:
        before = self._cost
        self._complete(prototype, point)
        if self._cost < before or self.question.template.grid.lattice.size < point.size:
            return
        # Nothing is left that could make up for rounding: the nearest point of the grid may lie
        # outside of the border that the relaxed point lies on, and one next to it inside.
        for other in self._rounded_otherwise(point):
            self._complete(prototype, other)

    def _rounded_otherwise(self, point: Floats) -> Iterator[Floats]:
        """Take one feature after another to its neighbour on the grid that is not the nearest."""
        for j in np.flatnonzero(self.question.ticks.miss(point) > ON_GRID).tolist():
            for low, _ in self._neighbours(j, point)[1:]:
                other = point.copy()
                other[j] = low
                yield other

    def _complete(self, prototype: int, point: Floats) -> None:
        """Hold the grid at its nearest point, and look for the best of the rest."""
        for choice in self._choices(point):
            # The rest of a nonconvex cell is searched from the point, and again from another one.
            sides = choice.lower.tobytes() + choice.upper.tobytes()
            key = prototype, sides if self._is_shared else sides + point.tobytes()
            if key in self._tried or self._costs_too_much(choice):
                continue
            self._tried.add(key)
            if self._breaks_a_condition(choice):
                continue
            found = self._rest(prototype, choice, point)
            if self._is_shared:
                self._work += self._work_of_program
            if found is not None and found.cost < self._cost:
                self._best = found

    @cached_property
    def _work_of_program(self) -> float:
        """What one convex program counts: its solver takes longer with what it has to read."""
        cells, program = self.question.cells, self.question.convex
        return 1.0 + (cells.rivals.size + program.b.size) * program.width / _ENTRIES

    def _choices(self, point: Floats) -> list[Choice]:
        """Choose what is nearest to a point: on the grid, and on one side of each threshold.

        Both sides of a threshold that the point lies at.
        """
        x, is_real = self.question.x, self.question.template.grid.step == 0
        found = [self.question.ticks.choice(point)]
        for j in {j for j, _ in self._cuts} - set(self.question.ticks.columns.tolist()):
            found[0].y[j] = x[j] + point[j]
        for j, cut in self._cuts:
            if not is_real[j]:
                continue
            here = [(choice, float((choice.y - x)[j])) for choice in found]
            room = AT_THRESHOLD * (abs(cut.at) + abs(x[j]))
            low = [_within(choice, j, -np.inf, cut.below) for choice, change in here
                   if change <= cut.at + room]  # fmt: skip
            high = [_within(choice, j, cut.above, np.inf) for choice, change in here
                    if change >= cut.at - room]  # fmt: skip
            found = [choice for choice in (*low, *high) if choice is not None][:_MOST_CHOICES]
        return found

    @cached_property
    def _cuts(self) -> list[tuple[int, Cut]]:
        """Thresholds of all conditions on numbers, with their columns."""
        return [(test.column, cut) for test in self.question.tests for cut in test.cuts]

    def _costs_too_much(self, choice: Choice) -> bool:
        """Whether a choice on the grid alone costs as much as the best answer so far."""
        program, x = self.question.convex, self.question.x
        least = np.maximum(np.maximum(choice.lower - x, x - choice.upper), 0.0)
        return float(program.w @ least) >= self._cost

    def _breaks_a_condition(self, choice: Choice) -> bool:
        """Whether some condition is broken wherever the features without a grid are.

        No bound rests on it: it spares programs that have no solution.
        """
        program, x = self.question.convex, self.question.x
        lower = np.maximum(choice.lower - x, program.lower)
        upper = np.minimum(choice.upper - x, program.upper)
        rows = np.concatenate([program.A, program.E, -program.E])
        right = np.concatenate([program.b, program.e, -program.e])
        ends = np.where(rows > 0, lower, upper)
        terms = np.multiply(rows, ends, out=np.zeros_like(rows), where=rows != 0)
        size = np.abs(terms).sum(axis=1) + np.abs(right)
        # Where little changes, what is left of a condition that just holds is rounding alone.
        open_ = np.concatenate([program.blur, program.blur[program.b.size :]])
        return bool((terms.sum(axis=1) > right + open_ + BROKEN_SHARE * size).any())

    def _rest(self, prototype: int, choice: Choice, point: Floats) -> Accepted | None:
        """Answer the question that a choice on the grid leaves, in one cell."""
        question, cells = self.question, self.question.cells
        if question.template.grid.lattice.size == choice.y.size:
            return self.context.accepted(choice.y, False)
        template = question.template.decided(choice, question.x)
        if isinstance(cells, SharedCells):
            one = replace(cells, targets=np.array([prototype]))
            return Search(Question(template, one, question.x), self.context).answer()
        only = LocalCells(cells.model, np.array([prototype]), cells.rivals)
        rest = replace(question, template=template, cells=only)
        return Branching(rest, self.context, self.gap, 0).look_around(point)

    def _relaxed(self, node: Node, problem: NonconvexProgram, box: Box, cap: float) -> Relaxed:
        if box.equals(Box(box.lower, box.lower)) and self._is_answer(box.lower):
            # One point is left, and it is an answer: its cost is its own bound.
            nothing = replace(LiftedMultipliers.none(problem), point=box.lower)
            return Relaxed(Outcome.SOLVED, nothing, np.zeros((box.lower.size,) * 2))
        if self._is_shared:
            self._work += _BOX + self._work_of_program
            relaxed = self._relax_flat(problem, box)
            return relaxed if relaxed.is_usable else Relaxed.failed(problem, box)
        pairs = 0.0 if self.is_separable else 0.5 * float((box.lower < box.upper).sum() + 1) ** 2
        self._work += 1.0 + pairs**3 / _PAIRS
        return super()._relaxed(node, problem, box, cap)

    def _near(self, box: Box) -> Box:
        """Part of a box that is relaxed and cut: a convex program needs no end."""
        return box if self._is_shared else super()._near(box)

    def _is_answer(self, delta: Floats) -> bool:
        return self.context.accepted(self.question.ticks.values(delta), False) is not None

    def _loosened(self, problem: NonconvexProgram, box: Box) -> Box:
        """Keep the sides across the grid; all others follow from the conditions or the cost.

        A side that the cost of the best answer sets runs through that answer, where a solver
        could not tell which of the two to charge for.
        """
        has_lattice, program = self.question.template.grid.step > 0, problem.convex
        lower = np.where(has_lattice, box.lower, program.lower)
        upper = np.where(has_lattice, box.upper, program.upper)
        for j, ends in self._ends.items():
            lower[j] = max((end for end in ends if end <= box.lower[j]), default=lower[j])
            upper[j] = min((end for end in ends if end >= box.upper[j]), default=upper[j])
            lower[j], upper[j] = max(lower[j], program.lower[j]), min(upper[j], program.upper[j])
        return Box(lower, upper)

    @cached_property
    def _ends(self) -> dict[int, list[float]]:
        """Ends of pieces and thresholds, by columns of real numbers that have any."""
        ends = self.question.ticks.ends
        for j, cut in self._cuts:
            if self.question.template.grid.step[j] == 0:
                ends.setdefault(j, []).append(cut.at)
        return ends

    def _only_ties(self, node: Node, box: Box) -> bool:
        """Whether a box holds nothing of its cell but ties that are lost."""
        if self.margin or not self.question.loses_ties(node.prototype, box):
            return False
        node.bound, node.cap = np.inf, self._cost
        return True

    def _is_settled_by_cost(
        self, node: Node, box: Box, cap: float, sides: FormSides | None
    ) -> bool:
        """Where one point of the grid is left, look at its cost before anything else.

        There a relaxation charges for rivals that are met or not by rounding alone.
        """
        at = self.question.ticks.columns
        if (box.lower[at] < box.upper[at]).any():
            return False
        free = node.prices.charging(np.zeros_like)
        bound = self._bound(node.prototype, free, box, cap, sides)
        if bound > node.bound:
            node.prices, node.bound, node.cap = free, bound, cap
        return self._closes(node.bound)

    def _where_to_cut(self, node: Node, box: Box, relaxed: Relaxed) -> tuple[int, float] | None:
        """Choose the feature whose way to the grid costs most; where that is little, as ever."""
        ticks = self.question.ticks
        point = np.clip(relaxed.prices.point, box.lower, box.upper)
        condition = self._undecided_condition(box, point)
        if condition is not None:
            return condition
        miss = np.where(box.lower < box.upper, ticks.miss(point), 0.0)
        worth = np.where(miss > ON_GRID, miss * self._step_prices, 0.0)
        j, most = int(worth.argmax()), float(worth.max())
        is_local = not self._is_shared
        if most > 0.0 and not (is_local and most < _LITTLE * (self._cost - node.bound)):
            return j, float(point[j])
        if is_local:
            return super()._where_to_cut(node, box, relaxed)
        near = self.question.searched(box)
        for j in ticks.columns.tolist():
            gap = ticks.gap(j, float(near.lower[j]), float(near.upper[j]))
            if gap is not None:
                return j, gap
        spanned = [(j, cut.at) for j, cut in self._cuts if box.lower[j] < cut.at < box.upper[j]]
        return spanned[0] if spanned else None

    def _undecided_condition(self, box: Box, point: Floats) -> tuple[int, float] | None:
        """Find where to cut a box so that a condition holds in one part that the point breaks.

        Before any grid: a fine one would be cut again in each part, and while nothing is known of
        the condition in vain.
        """
        question = self.question
        x, y = question.x, question.x + point
        for item, test in zip(question.template.conditionals, question.tests, strict=True):
            rows = item.rows
            if not (rows.A @ y + rows.R @ x - rows.v > BROKEN_SHARE * rows.magnitude(y, x)).any():
                continue
            if item.test is None:
                where = self._undecided_level(item, box, y)
            else:
                j = test.column
                inside = any(low <= point[j] <= high for low, high in test.parts)
                cuts = [cut.at for cut in test.cuts if box.lower[j] < cut.at < box.upper[j]]
                near = np.abs(np.array(cuts) - point[j])
                where = (j, cuts[int(near.argmin())]) if inside and cuts else None
            if where is not None:
                return where
        return None

    def _undecided_level(self, item: Conditional, box: Box, y: Floats) -> tuple[int, float] | None:
        """Find a level that a box leaves open, where a condition on levels is met at a point."""
        nearest = np.rint(y)
        if not item.applies(nearest, nearest):
            return None
        absent = () if item.absent is None else item.absent.tolist()
        for j in (*item.present.tolist(), *absent):
            gap = self.question.ticks.gap(j, float(box.lower[j]), float(box.upper[j]))
            if gap is not None:
                return j, gap
        return None

    @cached_property
    def _step_prices(self) -> Floats:
        """What one step on the grid costs, (d,)."""
        program, step = self.question.convex, self.question.ticks.unit
        return np.asarray(program.w * step + column_lengths(program.L) ** 2 * step**2)


def _within(choice: Choice, j: int, low: float, high: float) -> Choice | None:
    """Keep the values of a column that lie between two ends; None if there are none."""
    lower, upper, y = choice.lower.copy(), choice.upper.copy(), choice.y.copy()
    lower[j], upper[j] = max(low, lower[j]), min(high, upper[j])
    if lower[j] > upper[j]:
        return None
    y[j] = min(max(y[j], lower[j]), upper[j])
    return Choice(y, lower, upper)

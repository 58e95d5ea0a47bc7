"""Search for one answer where some features lie on a grid: whole numbers, decimals, levels.

The same branch and bound, with cuts between values of a grid. A relaxed point is taken to the
nearest point of the grid, and what is left to choose there is a question without a grid, which
is answered as any other. Under a shared metric the relaxation of a box is a convex program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import final

import numpy as np

from counterlvq.cells import LocalCells, SharedCells
from counterlvq.certificates.acceptance import Accepted
from counterlvq.certificates.questions import Question
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import CLEAR_OF_TIES, DIVING, ON_GRID
from counterlvq.programs.nonconvex import Box, LiftedMultipliers, NonconvexProgram
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
            elif self._best is None:
                self._dive_straight(prototype)

    def _relax_flat(self, problem: NonconvexProgram, box: Box) -> Relaxed:
        return relax_flat(problem, self._loosened(problem, box), self.context.deadline)

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
            j = int(ticks.columns[np.where(miss > ON_GRID, miss, np.inf).argmin()])
            below = ticks.below(point)
            choices = [below[j], ticks.next_above(below)[j]]
            for change in sorted(choices, key=self._away(point[j])):
                part = Box(box.lower.copy(), box.upper.copy())
                part.lower[j] = part.upper[j] = change
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
        held: dict[int, float] = {}
        start = question.cells.model.prototypes[prototype] - question.x
        delta = self._loosely(prototype, held, start)
        for _ in range(ticks.columns.size):
            if delta is None or question.convex.cost(delta) >= self._cost:
                return
            miss = ticks.miss(delta)
            off = np.flatnonzero(miss > ON_GRID)
            if not off.size:
                break
            j = int(ticks.columns[off[miss[off].argmin()]])
            below = ticks.below(delta)
            choices = sorted((below[j], ticks.next_above(below)[j]), key=self._away(delta[j]))
            start, delta = delta, None
            for change in choices:
                held[j] = float(change)
                delta = self._loosely(prototype, held, start)
                if delta is not None:
                    break
        if delta is not None:
            self._complete(prototype, delta)

    @staticmethod
    def _away(value: float) -> Callable[[float], float]:
        return lambda other: abs(other - value)

    def _loosely(self, prototype: int, held: dict[int, float], start: Floats) -> Floats | None:
        """Search a cell without a grid but for the changes that are held; None if that fails."""
        question, cells = self.question, self.question.cells
        assert isinstance(cells, LocalCells)  # the relaxation of a shared cell says more
        program = replace(question.convex, lower=question.convex.lower.copy())
        program = replace(program, upper=program.upper.copy())
        for j, change in held.items():
            program.lower[j] = program.upper[j] = change
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
        self._complete(prototype, point)

    def _complete(self, prototype: int, point: Floats) -> None:
        """Hold the grid at its nearest point, and look for the best of the rest."""
        decided = self.question.ticks.decided(point)
        # The rest of a nonconvex cell is searched from the point, and again from another one.
        seen = decided[self.question.ticks.columns] if self._is_shared else point
        key = prototype, seen.tobytes()
        if key in self._tried or self._costs_too_much(decided):
            return
        self._tried.add(key)
        found = self._rest(prototype, decided, point)
        if found is not None and found.cost < self._cost:
            self._best = found

    def _costs_too_much(self, decided: Floats) -> bool:
        """Whether a choice on the grid alone costs as much as the best answer so far."""
        program = self.question.convex
        at = self.question.ticks.columns
        return float(program.w[at] @ np.abs((decided - self.question.x)[at])) >= self._cost

    def _rest(self, prototype: int, decided: Floats, point: Floats) -> Accepted | None:
        """Answer the question that a choice on the grid leaves, in one cell."""
        question, cells = self.question, self.question.cells
        if question.ticks.columns.size == decided.size:
            return self.context.accepted(decided, False)
        template = question.template.decided(decided)
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
            relaxed = self._relax_flat(problem, box)
            return relaxed if relaxed.is_usable else Relaxed.failed(problem, box)
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
        has_grid, program = self.question.template.grid.step > 0, problem.convex
        return Box(
            np.where(has_grid, box.lower, program.lower),
            np.where(has_grid, box.upper, program.upper),
        )

    def _only_ties(self, node: Node, box: Box) -> bool:
        """Whether a box holds nothing of its cell but ties that are lost."""
        if self.margin or not self.question.loses_ties(node.prototype, box):
            return False
        node.bound, node.cap = np.inf, self._cost
        return True

    def _where_to_cut(self, node: Node, box: Box, relaxed: Relaxed) -> tuple[int, float] | None:
        """Choose the feature whose way to the grid costs most; where that is little, as ever."""
        ticks, point = self.question.ticks, relaxed.prices.point
        at = ticks.columns
        is_open = box.lower[at] < box.upper[at]
        miss = np.where(is_open, ticks.miss(np.clip(point, box.lower, box.upper)), 0.0)
        worth = np.where(miss > ON_GRID, miss * self._step_prices, 0.0)
        j, most = int(at[worth.argmax()]), float(worth.max())
        is_local = not self._is_shared
        if most > 0.0 and not (is_local and most < _LITTLE * (self._cost - node.bound)):
            return j, float(point[j])
        if is_local:
            return super()._where_to_cut(node, box, relaxed)
        if not is_open.any():
            return None
        j = int(at[np.flatnonzero(is_open)[0]])
        middle = float(self.question.searched(box).center[j])
        return j, middle

    @cached_property
    def _step_prices(self) -> Floats:
        """What one step on the grid costs, (columns,)."""
        program, grid = self.question.convex, self.question.template.grid
        at = self.question.ticks.columns
        step = grid.step[at] / grid.parts[at]
        return np.asarray(program.w[at] * step + (program.L[:, at] ** 2).sum(axis=0) * step**2)

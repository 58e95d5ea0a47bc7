"""Convex-concave searches for answers under local metrics, from points that others suggest.

They start at the target prototypes, where the way of the input enters a cell, at relaxed points of
branch and bound and, where nothing limits an answer, far away. What they find is judged by
`context`; it proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from counterlvq.cells import Halfspaces, LocalCells
from counterlvq.certificates.box_questions import BoxQuestion
from counterlvq.certificates.judged import Accepted
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.finite_algebra import eigenvectors, least_squares
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.tolerances import DIVING, FLAT, HUGE, PULL_RANK, START_SLACK
from counterlvq.programs.nonconvex import Box, NonconvexProgram
from counterlvq.programs.pinned import without_pinned
from counterlvq.programs.program import Program
from counterlvq.search.exact import default_margin
from counterlvq.search.largest_changes import Heightened
from counterlvq.search.repair import settle
from counterlvq.search.result import SearchContext
from counterlvq.solvers.ccp import Descent, Frames
from counterlvq.solvers.ccp_round import Scores

__all__ = ["CellSearch"]

# All numbers below steer the search: which points it tries and how far it goes for them. No claim
# rests on any.

# A margin that rounding still defeats is multiplied by this, a few times.
_MARGIN_GROWTH, _MARGIN_TRIES = 16.0, 8
# Points looked at on the way from a relaxed point into the cell.
_STATIONS = 33
# Corrections of a relaxed point before another way is taken.
_PULLS = 6
# Target prototypes that are looked at as they are.
_MOST_TRIED = 8
# Columns from which walks along a height begin with simpler ones: short ones are no shorter so.
_LEAST_SIMPLE = 12
# How often the length of a line is doubled in the search for what lies far away.
_DOUBLINGS = 48


@dataclass(eq=False)
class CellSearch:
    """Searches for one question; the best answer so far is kept."""

    question: BoxQuestion
    context: SearchContext
    # Of the question's cost and constraints, if they are kept.
    frames: Frames | None = field(default=None, kw_only=True)

    _best: Accepted | None = field(init=False, default=None)
    _descents: dict[int, Descent] = field(init=False, default_factory=dict)
    _inside: dict[int, Floats] = field(init=False, default_factory=dict)

    @property
    def margin(self) -> float | None:
        """The user's margin, if any."""
        return self.context.margin

    @property
    def _cost(self) -> float:
        """Cost of the best answer so far, or of one known from elsewhere."""
        return self.context.below if self._best is None else self._best.cost

    @property
    def _is_hurried(self) -> bool:
        """Whether time is short for more than the searches."""
        return False

    @cached_property
    def _walked(self) -> Program:
        """Cost and constraints as walks meet them: without what leaves them no room."""
        return without_pinned(self.question.convex)

    @property
    def _searched(self) -> Box:
        """How far the search looks: as far as an answer may lie, or as the data suggest."""
        return self.question.searched(self.question.root(self._cost))

    def look_around(self, point: Floats) -> Accepted | None:
        """Search from the usual starts and from one point more."""
        self._start(from_input=True)
        for prototype in self.question.cells.targets.tolist():
            if not self.context.out_of_time():
                self._search_from(prototype, point)
        return self._best

    def _try_prototypes(self) -> None:
        """Take the cheapest target prototype that is an answer, for which no search is needed."""
        x, cells = self.question.x, self.question.cells
        if not isinstance(cells, LocalCells) or not self.context.deadline.seconds > 0.0:
            return
        Y = x + np.array([self._way_to(prototype) for prototype in cells.targets.tolist()])
        costs = np.array([self.question.convex.cost(y - x) for y in Y])
        for y in Y[np.argsort(costs, kind="stable")][:_MOST_TRIED]:
            found = self.context.accepted(y) if self._obeys(y) else None
            if found is not None and found.cost < self._cost:
                self._best = found
                return

    def _take_back(self) -> None:
        """Undo changes one by one, the dearest first, where nothing beats a prototype as it is.

        Points that win by a tie alone have no neighbours that a search could walk over.
        """
        x, cells = self.question.x, self.question.cells
        if self._best is None or not isinstance(cells, LocalCells):
            return
        if not (self._best.y == cells.model.prototypes[cells.targets]).all(axis=1).any():
            return
        costs = np.array([self.question.convex.cost(part) for part in np.diag(self._best.y - x)])
        for j in np.argsort(-costs, kind="stable")[: np.count_nonzero(costs)].tolist():
            if self.context.out_of_time():
                return
            y = self._best.y.copy()
            y[j] = x[j]
            found = self.context.accepted(y) if self._obeys(y) else None
            if found is not None and found.cost < self._cost:
                self._best = found

    def _start(self, *, from_input: bool) -> None:
        """Search from each target prototype, and from where the input's way enters its cell."""
        x = self.question.x
        for prototype in self.question.cells.targets.tolist():
            if self.context.out_of_time() or self._is_hurried:
                return
            there = self._way_to(prototype)
            if self._obeys(x + there) and self._leads(prototype, there):
                self._inside[prototype] = there
                self._descend_simply(prototype, there)
                self._descend(prototype, there)
            else:
                self._enter(prototype, there)
            if from_input and prototype in self._inside and not self._is_hurried:
                self._search_from(prototype, np.zeros_like(x))

    def _way_to(self, prototype: int) -> Floats:
        """Change to a prototype, with the height that it needs."""
        there: Floats = self.question.cells.model.prototypes[prototype] - self.question.x
        return there if self._heightened is None else self._heightened.raised(there)

    def _descend_simply(self, prototype: int, start: Floats) -> None:
        """Where the largest change counts: search with simpler costs, and on from what is found."""
        heightened, width = self._heightened, self.question.x.size
        if heightened is None or self.question.convex.quadrics or width < _LEAST_SIMPLE:
            return
        scores, margin = self._descent(prototype).scores, self._margin(prototype)
        low, best = start.copy(), start
        low[heightened.column] = 0.0
        for program, frames in zip(heightened.simpler(), self._simple_frames, strict=False):
            if self.context.out_of_time():
                break
            descent = Descent.of(program, scores, self.question.spread, frames)
            found = descent.downhill(low, margin, FLAT, self.context.seconds_left())
            delta = heightened.raised(found)
            if _is_usable(delta) and self.question.convex.cost(delta) < self._cost:
                self._keep(prototype, delta, margin)
                best = delta
        if best is not start:
            self._descend(prototype, best)

    @cached_property
    def _heightened(self) -> Heightened | None:
        return Heightened.of(self.question.convex)

    @cached_property
    def _simple_frames(self) -> tuple[Frames, Frames]:
        cells = self.question.cells
        assert isinstance(cells, LocalCells)
        return Frames(cells.rival_metrics), Frames(cells.rival_metrics)

    def _keep(self, prototype: int, delta: Floats, margin: float) -> bool:
        """Judge the end of a walk; whether it is an answer."""
        found = self._settled(prototype, delta, margin)
        if found is None:
            return False
        if found.cost < self._cost:
            self._best = found
            self._inside[prototype] = found.y - self.question.x
        return True

    def _look_far(self) -> None:
        """Go out along straight lines, further than data and constraints suggest.

        Where nothing limits an answer it may lie anywhere: metrics that hardly differ meet far
        away. Each axis is tried, and the way on which each rival falls behind fastest.
        """
        question, model = self.question, self.question.cells.model
        root, x = question.root(np.inf), question.x
        free = ~(np.isfinite(root.lower) & np.isfinite(root.upper))
        if not free.any() or root.is_empty:
            return
        size = float(question.spread.max()) or 1.0
        lengths = size * 2.0 ** np.arange(_DOUBLINGS)
        for way in self._ways(free):
            if self._best is not None or self.context.out_of_time():
                return
            lines = np.clip(lengths[:, None] * way, root.lower, root.upper)
            nearest = model.nearest(x + lines)
            won = np.flatnonzero(np.isin(nearest, question.cells.targets))
            if won.size:
                self._search_from(int(nearest[won[0]]), lines[won[0]])

    def _ways(self, free: NDArray[np.bool_]) -> Iterator[Floats]:
        """Directions of length one in the features that nothing limits, both ways."""
        at, cells = np.flatnonzero(free), self.question.cells
        ways = [np.eye(free.size)[at]]
        if isinstance(cells, LocalCells):
            for prototype in cells.targets.tolist():
                for Q in cells.differences(prototype)[0]:
                    axes = eigenvectors(Q[np.ix_(at, at)])
                    if axes is not None:
                        ways.append(np.zeros((at.size, free.size)))
                        ways[-1][:, at] = axes.T
        for way in np.concatenate(ways):
            yield way
            yield -way

    def _leads(self, prototype: int, delta: Floats) -> bool:
        """Whether a change keeps the margin; even a prototype may be too near to a rival for it."""
        return self._descent(prototype).scores.lead(delta) >= self._margin(prototype)

    def _obeys(self, y: Floats) -> bool:
        """Whether a point meets the constraints, whatever its label."""
        program = self._walked
        delta = y - self.question.x
        if not ((delta >= program.lower).all() and (delta <= program.upper).all()):
            return False
        inside = bool((program.A @ delta <= program.b).all())
        if program.e.size or not inside:
            return False
        return all(quadric.true_excess(delta) <= 0 for quadric in program.quadrics)

    def _enter(self, prototype: int, start: Floats) -> None:
        """Look for a point of a cell that meets the constraints."""
        delta = self._descent(prototype).into_cell(
            start, self._margin(prototype), DIVING, self.context.seconds_left()
        )
        if delta is not None:
            self._inside.setdefault(prototype, delta)
            self._descend(prototype, delta)

    def _search_from(self, prototype: int, point: Floats) -> None:
        """Descend from a relaxed point, once it has been brought into the cell."""
        near = self._pulled_in(prototype, point)
        if near is not None:
            self._descend(prototype, near)
            return
        known = self._inside.get(prototype)
        if known is None:
            self._enter(prototype, point)
            return
        scores, margin = self._descent(prototype).scores, self._margin(prototype)
        for share in np.linspace(0.0, 1.0, _STATIONS):
            station = (1.0 - share) * point + share * known
            if scores.lead(station) >= margin:
                self._descend(prototype, station)
                return

    def _pulled_in(self, prototype: int, point: Floats) -> Floats | None:
        """Take the shortest way to where the tangents of the broken conditions hold.

        Features stay within their bounds: one that has reached a bound does not move on.
        """
        problem = self.question.problem(prototype).tightened(2.0 * self._margin(prototype))
        program = self._walked
        unit, delta = self._searched.half, point
        for _ in range(_PULLS):
            delta = np.clip(delta, program.lower, program.upper)
            excess, slopes, rounding = self._conditions(problem, delta)
            broken = excess > rounding
            off = program.e - program.E @ delta
            if not broken.any() and (np.abs(off) <= START_SLACK * np.abs(program.E) @ unit).all():
                return delta
            movable = unit * ((delta > program.lower) & (delta < program.upper))
            system = np.concatenate([slopes[broken], program.E]) * movable
            wanted = np.concatenate([-excess[broken], off])
            size = np.sqrt(np.einsum("ij,ij->i", system, system))
            size = np.where(size > 0, size, 1.0)
            step = least_squares(system / size[:, None], wanted / size, PULL_RANK)
            if step is None:
                return None
            delta = delta + movable * step
        return None

    def _conditions(
        self, problem: NonconvexProgram, delta: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Excess, slope and rounding of all inequalities: cell, rows and quadrics."""
        program, quadrics = self._walked, self._walked.quadrics
        excess = [problem.excess(delta), program.A @ delta - program.b]
        slopes = [2.0 * problem.forms.Q @ delta + problem.forms.q, program.A]
        unit = self._searched.half
        rounding = [np.zeros(problem.forms.r.size), START_SLACK * np.abs(program.A) @ unit]
        for quadric in quadrics:
            excess.append(np.array([quadric.true_excess(delta)]))
            slopes.append(quadric.gradient(delta)[None, :])
            rounding.append(np.array([START_SLACK * quadric.magnitude(delta)]))
        return np.concatenate(excess), np.concatenate(slopes), np.concatenate(rounding)

    def _descend(self, prototype: int, start: Floats) -> None:
        margin = self._margin(prototype)
        descent = self._descent(prototype)
        for _ in range(_MARGIN_TRIES):
            delta = descent.downhill(start, margin, FLAT, self.context.seconds_left())
            if not _is_usable(delta):
                return
            if self.question.convex.cost(delta) >= self._cost:
                return
            if self._keep(prototype, delta, margin):
                return
            if self.margin is not None:
                return
            margin *= _MARGIN_GROWTH

    def _settled(self, prototype: int, delta: Floats, margin: float) -> Accepted | None:
        """Make a point hold in floating point; the cell is replaced by its tangents there."""
        question = self.question

        def asked() -> Program:
            problem = question.problem(prototype).tightened(margin)
            slopes = 2.0 * problem.forms.Q @ delta + problem.forms.q
            leads = slopes @ delta - problem.excess(delta)
            return question.template.at(question.x, Halfspaces(slopes, leads), question.spread)

        scores = question.view.scores
        rounding = scores[question.cells.rivals] + scores[prototype]
        return settle(question.x, delta, asked, rounding, question.limits, self.context.accepted)

    def _margin(self, prototype: int) -> float:
        if self.margin is not None:
            return max(self.margin, self.context.least)
        view = self.question.view
        usual = default_margin(view.behind(prototype), view.rounding_margin)
        return max(usual, self.context.least)

    def _descent(self, prototype: int) -> Descent:
        known = self._descents.get(prototype)
        if known is None:
            question, cells = self.question, self.question.cells
            assert isinstance(cells, LocalCells)  # shared cells are convex: nothing to descend
            scores = Scores(*question.view.distances(prototype))
            frames = self.frames or Frames(cells.rival_metrics)
            known = Descent.of(self._walked, scores, question.spread, frames)
            self._descents[prototype] = known
        return known


def _is_usable(*claims: Floats) -> bool:
    """Whether what a solver says consists of numbers that can be worked with."""
    return all(bool((np.abs(values) < HUGE).all()) for values in claims)

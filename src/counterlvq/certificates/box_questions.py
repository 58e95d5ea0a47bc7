"""Questions that are answered by cutting boxes: under local metrics, or on a grid.

A `BoxQuestion` states conditions and boxes for searches and for proofs. The box of a claim
has only sides that follow from the constraints, from the cost of a known answer, or from a
cut; where there are none it is infinite, however far a search has looked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import final

import numpy as np
from numpy.typing import NDArray

from counterlvq.cells import Halfspaces, LocalCells, LocalView, SharedCells
from counterlvq.certificates.box_tests import BoxTest
from counterlvq.certificates.divisibility import no_whole_numbers_meet
from counterlvq.certificates.duality import exact_rivals
from counterlvq.certificates.enclosures import (
    around,
    limits_of,
    moved,
    right_sides,
    within_rows,
    within_rows_in_turn,
)
from counterlvq.certificates.exact_boxes import contradicts_by_curves, contradicts_exactly
from counterlvq.certificates.lifted import lifted_bound, lifted_contradiction, lifted_tangency
from counterlvq.certificates.packed_boxes import FlatGrounds, Targets, leads_asked, reach_at
from counterlvq.certificates.solved_equalities import (
    SolvedEquality,
    solved_equalities,
    within_solved,
)
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.memory import FLOAT, refuse_too_large
from counterlvq.numeric.quadratic_forms import Factor
from counterlvq.numeric.tolerances import CLOSE_SCORES, EQUALITY_ROUNDING, INEQUALITY_ROUNDING, UNIT
from counterlvq.programs.box_trees import PackedTrees
from counterlvq.programs.grids import Ticks
from counterlvq.programs.nonconvex import Box, FormSides, LiftedMultipliers, NonconvexProgram
from counterlvq.programs.program import Program
from counterlvq.programs.proof_data import CostReach, cost_limits, form_limits, reach_of
from counterlvq.programs.template import ProgramTemplate

__all__ = ["BoxQuestion"]

# How often rows and grid narrow a box in turn.
_GRID_SWEEPS = 4
# Values that are on the grid but for their last digit, of which all choices are asked about.
_MOST_OFF = 4


@final
@dataclass(frozen=True, eq=False)
class BoxQuestion:
    """What is asked, in numbers: from `x` into one of the cells, under the constraints."""

    template: ProgramTemplate
    cells: LocalCells | SharedCells
    x: Floats  # (d,)
    # Whether the user's own `predict` gives a point a wished-for label; None: the model's own.
    says: Callable[[Floats], bool] | None = None
    # By how much that `predict` can differ from the model's distances around `x`, through rounding.
    blur: float = 0.0
    # The same at any change within limits (d,).
    blur_within: Callable[[Floats], float] | None = None
    # What compiled proofs rest on, of the same template; None where there are none.
    flat: FlatGrounds | None = None
    # Lead over every rival that steps of whole numbers bring about; none where there is a margin.
    lead: float = 0.0
    _programs: dict[tuple[bool, ...], Program] = field(init=False, default_factory=dict, repr=False)
    _problems: dict[tuple[int, tuple[bool, ...]], NonconvexProgram] = field(
        init=False, default_factory=dict, repr=False
    )
    _roots: dict[float, Box] = field(init=False, default_factory=dict, repr=False)
    _blurs: dict[float, float] = field(init=False, default_factory=dict, repr=False)

    @cached_property
    def spread(self) -> Floats:
        """How far the prototypes lie from `x` in each feature, (d,)."""
        return np.asarray(np.abs(self.cells.model.prototypes - self.x).max(axis=0))

    @cached_property
    def view(self) -> LocalView:
        """The cells seen from `x`."""
        assert isinstance(self.cells, LocalCells)  # shared cells have half-spaces
        return self.cells.seen_from(self.x)

    @cached_property
    def limits(self) -> tuple[Floats, Floats]:
        """Smallest and largest allowed value of each feature, (d,) each."""
        return self.template.box(self.x)

    @cached_property
    def ticks(self) -> Ticks:
        """The changes that end on the grid, where there is one."""
        return self.template.grid.seen_from(self.x)

    @property
    def convex(self) -> Program:
        """Cost and constraints, without any cell, as far as they hold everywhere."""
        return self._program((False,) * len(self.template.conditionals))

    def _program(self, applying: tuple[bool, ...]) -> Program:
        known = self._programs.get(applying)
        if known is None:
            known = self._programs[applying] = self._stated(applying)
        return known

    def _stated(self, applying: tuple[bool, ...]) -> Program:
        """State the program with right-hand sides and sides that a claim can rest on."""
        template, x = self.template, self.x
        program = template.at(x, Halfspaces.none(x.size), self.spread, applying)
        sides = limits_of(template.bounds, template.fixed, x)
        rows, equalities = template.rows_holding(applying), template.equalities
        (b, b_blur), (e, e_blur) = right_sides(rows, x), right_sides(equalities, x)
        # Points that are off by rounding count as answers: what excludes the others spares them.
        far = np.abs(x) + np.where(np.isfinite(sides.most), sides.most, self.spread)
        spared = 1.0 + (x.size + 8) * UNIT  # and the rounding of these very sums
        grid, sizes = template.grid, (rows.magnitude(far, x), equalities.magnitude(far, x))
        b_blur += spared * grid.slacks(rows.A).within(INEQUALITY_ROUNDING, sizes[0])
        e_blur += spared * grid.slacks(equalities.A).within(EQUALITY_ROUNDING, sizes[1])
        return replace(
            program,
            L=self._whole(program.L),
            b=b,
            e=e,
            blur=np.concatenate([b_blur, e_blur]),
            lower=sides.lower,
            upper=sides.upper,
            quadrics=tuple(moved(quadric, x) for quadric in template.quadrics),
        )

    def _whole(self, L: Factor) -> Factor:
        """Write the factor of the cost with its blanks where metrics are local: they fill these."""
        if isinstance(L, np.ndarray) or isinstance(self.cells, SharedCells):
            return L
        refuse_too_large(
            f"a quadratic cost of {L.shape[1]:,} features under local metrics",
            FLOAT * L.shape[0] * L.shape[1],
            "leave out features, or ask with Manhattan()",
        )
        return L.toarray()

    def problem(self, prototype: int, box: Box | None = None) -> NonconvexProgram:
        """Conditions of one cell, with all that hold throughout the box."""
        applying = self._applying(box)
        known = self._problems.get((prototype, applying))
        if known is None:
            if isinstance(self.cells, SharedCells):
                forms = self.cells.forms(prototype, self.x)
            else:
                forms = self.view.forms(prototype)
            known = NonconvexProgram(
                self._program(applying), forms.loosened(self.blur), forms.r.size
            ).tightened(self.lead)
            self._problems[prototype, applying] = known
        if box is None or self.template.is_continuous or isinstance(self.cells, SharedCells):
            return known
        # Sides of a box that was tampered with may overflow; such multipliers are worth nothing.
        with np.errstate(over="ignore", invalid="ignore"):
            return replace(known, forms=known.forms.and_also(*self._grid_forms(box)))

    def _grid_forms(self, box: Box) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Products that a grid makes positive: ``(delta - a) (delta - b)`` for neighbours a, b.

        Two pairs of neighbours per feature, around no change or at the ends of the box, and
        the product of two levels of one feature, which is zero. An infinite end has none.
        """
        at, d, ticks = self.ticks.columns, self.x.size, self.ticks
        is_inside = (box.lower < 0.0) & (box.upper > 0.0)
        first = np.where(is_inside, ticks.below(np.zeros(d)), box.lower)
        last = np.where(is_inside, ticks.above(np.zeros(d)), box.upper)
        pairs = [
            (first[at], ticks.next_above(first)[at]),
            (ticks.next_below(last)[at], last[at]),
        ]
        a, b = (np.concatenate(part) for part in zip(*pairs, strict=True))
        ends = np.isfinite(a) & np.isfinite(b)
        a, b = np.where(ends, a, 0.0), np.where(ends, b, 0.0)
        # Changes that end on the grid are rounded, and an input may be off it by a last digit.
        off = np.concatenate([ticks.blur[at]] * 2)
        size = np.abs(a) + np.abs(b) + off
        slack = np.where(ends, 4.0 * UNIT * size + 2.0 * off, 0.0)
        twice = np.concatenate([at, at])
        one, other = self.template.grid.together
        count = twice.size + one.size
        Q, q, q_blur = np.zeros((count, d, d)), np.zeros((count, d)), np.zeros((count, d))
        rows, rest = np.arange(twice.size), twice.size + np.arange(one.size)
        Q[rows, twice, twice], q[rows, twice] = np.where(ends, -1.0, 0.0), a + b
        q_blur[rows, twice] = slack
        Q[rest, one, other] = Q[rest, other, one] = 0.5
        nothing = np.zeros(one.size)
        r, r_blur = np.concatenate([a * b, nothing]), np.concatenate([slack * size, nothing])
        return Q, q, r, q_blur, r_blur

    def _applying(self, box: Box | None) -> tuple[bool, ...]:
        """Which conditional rows hold throughout a box."""
        conditionals = self.template.conditionals
        if box is None or not conditionals:
            return (False,) * len(conditionals)
        low, high = self.x + box.lower, self.x + box.upper
        return tuple(
            item.applies(low, high) if item.test is None else test.covers(box)
            for item, test in zip(conditionals, self.tests, strict=True)
        )

    @cached_property
    def tests(self) -> tuple[BoxTest, ...]:
        """Where conditions on numbers apply, for each conditional; nowhere for one on levels."""
        return tuple(
            BoxTest.of(item.test, self.ticks, self.x) for item in self.template.conditionals
        )

    # --- boxes ----------------------------------------------------------------------------------

    def root(self, cap: float) -> Box:
        """Box of all changes that cost at most `cap`; infinite where that sets no limit."""
        known = self._roots.get(cap)
        if known is None:
            known = self._roots[cap] = self._root(cap)
        return known

    def _root(self, cap: float) -> Box:
        program = self.convex
        up, down = cost_limits(program.limiting_ways, program.L, cap)
        box = Box(np.maximum(program.lower, -down), np.minimum(program.upper, up))
        for quadric in program.quadrics:
            box = box.within(around(quadric))
        if isinstance(self.cells, LocalCells):
            box = within_solved(self._solved, box)
        return self._narrowed(box)

    @cached_property
    def _solved(self) -> list[SolvedEquality]:
        return solved_equalities(self.convex)

    def searched(self, box: Box) -> Box:
        """Finite part of a box that a search looks at; what it finds out is no claim."""
        if box.is_finite:
            return box.without_slivers()
        reach = self.convex.reach
        has_low, has_high = np.isfinite(box.lower), np.isfinite(box.upper)
        low, high = np.where(has_low, box.lower, 0.0), np.where(has_high, box.upper, 0.0)
        near = Box(
            np.where(has_low, low, np.minimum(-reach, high - reach)),
            np.where(has_high, high, np.maximum(reach, low + reach)),
        )
        return near if self.template.is_continuous else self._on_grid(near)

    def inside(self, box: Box, cap: float) -> Box:
        """Keep of a box what changes of cost at most `cap` can reach."""
        inner = box.within(self.root(cap))
        return inner if self.template.is_continuous or inner.is_empty else self._narrowed(inner)

    def _narrowed(self, box: Box) -> Box:
        """Keep what the linear conditions leave, and end sides on the grid."""
        if self.template.is_continuous:
            return within_rows_in_turn(self.convex, box)
        for _ in range(_GRID_SWEEPS):
            before = box
            box = self._on_grid(box)
            program = self._program(self._applying(box))
            box = self._on_grid(within_rows(program, box))
            if box.is_empty or box.equals(before):
                break
        if not box.is_empty and no_whole_numbers_meet(program, self.template.grid, self.x, box):
            return Box(np.full(self.x.size, np.inf), np.full(self.x.size, -np.inf))
        return box

    def _on_grid(self, box: Box) -> Box:
        return Box(self.ticks.above(box.lower), self.ticks.below(box.upper))

    def split(self, box: Box, feature: int, at: float) -> tuple[Box, Box]:
        """Cut across one feature; between two values of a grid there is nothing."""
        if feature not in self.ticks.columns:
            return box.split(feature, at)
        below = self.ticks.below(np.full(self.x.size, at))
        low = box.split(feature, float(below[feature]))[0]
        return low, box.split(feature, float(self.ticks.next_above(below)[feature]))[1]

    def form_sides(self, V: Floats, within: Box, box: Box, cap: float) -> FormSides:
        """Sides of linear forms ``V delta``, (k, d), at changes in a box of cost at most `cap`.

        `within` are the sides that cuts left, (k,); others follow from box and cost.
        """
        program, size, covering = self.convex, np.abs(V), self._covering(box)
        low, high = form_limits(V, program.both_ways, program.L, cap, self._reach)
        for sign, out in ((-1.0, low), (1.0, high)):
            with np.errstate(invalid="ignore"):
                ends = np.where(sign * V > 0, covering.upper, covering.lower)
                parts = np.where(size > 0, V * ends, 0.0)
            reached = parts.sum(axis=1) + sign * (len(box.lower) + 4) * UNIT * np.abs(parts).sum(1)
            out[:] = np.maximum(out, reached) if sign < 0 else np.minimum(out, reached)
        return FormSides(V, np.maximum(within.lower, low), np.minimum(within.upper, high))

    @cached_property
    def _reach(self) -> CostReach:
        return reach_of(self.convex.L)

    # --- claims ---------------------------------------------------------------------------------

    def bound(
        self, prototype: int, prices: LiftedMultipliers, box: Box, cap: float, margin: float = 0.0,
        *, as_told: bool = False, sides: FormSides | None = None,
    ) -> float:  # fmt: skip
        """Cost that no change of a cell undercuts within a box, at most `cap`.

        `as_told`: with tangents at the point of the multipliers, and not at a better one. `sides`:
        of linear forms that have been cut.
        """
        if box.is_empty:
            return cap
        farther = self._farther(cap)
        if np.isinf(farther):
            return 0.0
        problem = self.problem(prototype, box).tightened(margin - farther)
        covering = self._covering(box)
        return lifted_bound(problem, prices, covering, cap, as_told=as_told, sides=sides)

    def contradicts(
        self, prototype: int, prices: LiftedMultipliers, box: Box, cap: float, margin: float = 0.0,
        *, as_told: bool = False, sides: FormSides | None = None,
    ) -> bool:  # fmt: skip
        """Whether no change of a cell of cost at most `cap` lies within a box.

        `as_told`: by these very multipliers and their point, without a correction.
        """
        if box.is_empty:
            return True
        farther = self._farther(cap)
        if np.isinf(farther):
            return False
        problem, covering = self.problem(prototype, box), self._covering(box)
        asked = problem.tightened(margin - farther)
        if lifted_contradiction(asked, prices, covering, cap, as_told=as_told, sides=sides):
            return True
        if as_told or covering.is_finite or not np.isfinite([margin, farther, self.blur]).all():
            return False
        # As in the forms: what `predict` may overlook is taken off, here and farther away.
        led_by = Fraction(margin) + Fraction(self.lead) - Fraction(farther) - Fraction(self.blur)
        if isinstance(self.cells, LocalCells):
            told = (self.x, prototype, problem, prices, led_by)
            return prices.charges_conditions_alone and contradicts_by_curves(self.cells, *told)
        pairs = zip(self.cells.rivals.tolist(), prices.forms.tolist(), strict=False)
        charged = exact_rivals(self.cells.model, self.x, prototype, pairs, led_by)
        return contradicts_exactly(charged, problem.convex, prices, covering)

    def tangency(
        self, prototype: int, prices: LiftedMultipliers, box: Box, cap: float, margin: float = 0.0,
        *, with_cost: bool = True, sides: FormSides | None = None,
    ) -> Floats | None:  # fmt: skip
        """Where the tangents of `bound` are, or of `contradicts`; None if they need none."""
        farther = self._farther(cap)
        problem = self.problem(prototype, box)
        if np.isfinite(farther):
            problem = problem.tightened(margin - farther)
        covering = self._covering(box)
        return lifted_tangency(problem, prices, covering, cap, with_cost=with_cost, sides=sides)

    def _farther(self, cap: float) -> float:
        """Say what more `predict` may overlook at changes of cost at most `cap` than around x.

        Where nothing limits the changes, and no cost is known, what it is around x has to do.
        """
        if self.blur_within is None:
            return 0.0
        known = self._blurs.get(cap)
        if known is None:
            root = self.root(cap)
            found = 0.0 if root.is_empty else self.blur_within(root.most) - self.blur
            known = self._blurs[cap] = 0.0 if np.isinf(found) and np.isinf(cap) else found
        return known

    def packed_bound(self, trees: PackedTrees, cap: float, margin: float = 0.0) -> float:
        """Cost that no counterfactual undercuts by packed trees, at most `cap`; 0 if not proved.

        With an infinite `cap`, infinite where they show that there is none.
        """
        flat, cells = self.flat, self.cells
        if flat is None or not isinstance(cells, SharedCells):
            return 0.0
        X, caps, within = self.x[None, :], np.array([cap]), np.array([self.blur])
        if self.blur_within is not None:
            within = np.array([self.blur_within(reach_at(flat.stated, X, caps)[0])])
        leads = leads_asked(margin + self.lead, np.array([self.blur]), within, caps)
        targets = Targets.of(cells.targets, cells.rivals, cells.model.n_prototypes)
        return float(flat.bounds(X, caps, leads, targets, trees)[0])

    def _covering(self, box: Box) -> Box:
        """Cover the changes that a box on the grid stands for: their sides are rounded."""
        if not self.ticks.columns.size or box.is_empty:
            return box
        rounding = self.ticks.rounding
        return Box(box.lower - rounding(box.lower), box.upper + rounding(box.upper))

    def is_ruled_out(self, box: Box) -> bool:
        """Whether a box has shrunk to one point of the grid, which the model calls otherwise.

        Only the user's model can tell: on a grid a tie that is lost has no neighbour that wins.
        What no model sees, the largest change, may be anything.
        """
        is_open = (box.lower < box.upper) & ~self._is_unseen
        if self.template.is_continuous or box.is_empty or is_open.any():
            return False
        points = self._points(box)
        return bool(points) and not any(self._wins(point) for point in points)

    @cached_property
    def _is_unseen(self) -> NDArray[np.bool_]:
        """Which columns are beside the table that the model sees: one for the largest change."""
        height, out = self.template.height, np.zeros(self.x.size, dtype=bool)
        if height is not None:
            out[height] = True
        return out

    def _points(self, box: Box) -> list[Floats]:
        """All points that a single change on the grid stands for; none if they are too many.

        An input that is on the grid but for its last digit may stay there, or end on the grid.
        """
        point, ticks = self.ticks.values(np.where(self._is_unseen, 0.0, box.lower)), self.ticks
        off = np.flatnonzero((ticks.off > 0) & (box.lower == 0.0))
        known = (ticks.is_point(int(j), float(box.lower[j])) for j in ticks.columns)
        if off.size > _MOST_OFF or not all(known):
            return []
        points = []
        for choice in product((False, True), repeat=off.size):
            chosen = off[np.array(choice, dtype=bool)]
            points.append(point.copy())
            points[-1][chosen] = ticks.own[chosen]
        return points

    def _wins(self, point: Floats) -> bool:
        """Whether the user's own model gives a point a wished-for label."""
        if self.says is not None:
            return self.says(point)
        return int(self.cells.model.nearest(point[None, :])[0]) not in self.cells.rivals

    def loses_ties(self, prototype: int, box: Box) -> bool:
        """Whether all that a box on the grid holds of a cell are ties with an earlier rival.

        Elsewhere points that win lie next to a tie, and there is nothing to exclude. Whose order
        decides is known of the model's own `predict` only, and only exact arithmetic tells a
        tie: there has to be one rival that is as near at every point of the box.
        """
        at, is_open = self.template.grid.lattice, box.lower < box.upper
        if not at.size or is_open[at].any() or not is_open.any() or self.ticks.off.any():
            return False
        if self.says is not None or self.blur or not isinstance(self.cells, SharedCells):
            return False
        point = self.ticks.values(np.where(is_open, 0.0, box.lower))
        forms = self.problem(prototype).forms
        delta = np.where(is_open, 0.0, box.lower)
        near = np.abs(forms.r - forms.q @ delta) <= CLOSE_SCORES * forms.size
        near &= (np.abs(forms.q[:, is_open]) <= forms.q_blur[:, is_open]).all(axis=1)
        earlier = self.cells.rivals < prototype
        return any(
            self.cells.never_nearer(prototype, int(k), point, is_open)
            for k in self.cells.rivals[near & earlier]
        )

"""Proofs for nonconvex cells: boxes that cover all cheaper changes, each with its prices.

A `Tree` cuts the box of changes that could be cheaper than the answer, and carries prices
for every part. Whoever checks it builds the conditions anew from model, cost, constraints
and input, walks down the cuts, so that nothing can be left out, and evaluates the prices
with `lifting`. No solver is imported here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.arrays import Floats
from counterlvq.cells import Halfspaces, LocalCells, LocalView, SharedCells
from counterlvq.stated import cost_limits
from counterlvq.grids import Ticks
from counterlvq.lifting import (
    Box,
    LiftedPrices,
    Nonconvex,
    lifted_bound,
    lifted_contradiction,
    lifted_tie,
)
from counterlvq.programs import Blueprint, Program
from counterlvq.rows import Quadric

__all__ = ["Forest", "LocalQuestion", "Tree"]

# How often the linear conditions narrow the box of a question, and their rounding.
_ROW_SWEEPS = 3
# How often rows and grid narrow it in turn.
_GRID_SWEEPS = 4
_ROW_ROUNDING = 2.0**-44


@final
@dataclass(frozen=True, eq=False)
class LocalQuestion:
    """What is asked, in numbers: from `x` into one of the cells, under the constraints."""

    blueprint: Blueprint
    cells: LocalCells | SharedCells
    x: Floats  # (d,)
    _programs: dict[tuple[bool, ...], Program] = field(init=False, default_factory=dict, repr=False)
    _problems: dict[tuple[int, tuple[bool, ...]], Nonconvex] = field(
        init=False, default_factory=dict, repr=False
    )
    _roots: dict[float, Box] = field(init=False, default_factory=dict, repr=False)

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
        return self.blueprint.box(self.x)

    @cached_property
    def ticks(self) -> Ticks:
        """The changes that end on the grid, where there is one."""
        return self.blueprint.grid.seen_from(self.x)

    @property
    def convex(self) -> Program:
        """Cost and constraints, without any cell, as far as they hold everywhere."""
        return self._program((False,) * len(self.blueprint.conditionals))

    def _program(self, applying: tuple[bool, ...]) -> Program:
        known = self._programs.get(applying)
        if known is None:
            nothing = Halfspaces.none(self.x.size)
            known = self.blueprint.at(self.x, nothing, self.spread, applying)
            self._programs[applying] = known
        return known

    def problem(self, prototype: int, box: Box | None = None) -> Nonconvex:
        """Conditions of one cell, with all that hold throughout the box."""
        applying = self._applying(box)
        known = self._problems.get((prototype, applying))
        if known is None:
            if isinstance(self.cells, SharedCells):
                forms = self.cells.forms(prototype, self.x)
            else:
                forms = self.view.forms(prototype)
            known = Nonconvex(self._program(applying), forms, forms.r.size)
            self._problems[prototype, applying] = known
        if box is None or self.blueprint.is_continuous or isinstance(self.cells, SharedCells):
            return known
        return replace(known, forms=known.forms.and_also(*self._grid_forms(box)))

    def _grid_forms(self, box: Box) -> tuple[Floats, Floats, Floats]:
        """Products that a grid makes positive: ``(delta - a) (delta - b)`` for neighbours a, b.

        Two pairs of neighbours per feature, around no change or at the ends of the box, and
        the product of two levels of one feature, which is zero.
        """
        at, d = self.ticks.columns, self.x.size
        low, high = box.lower, box.upper
        is_inside = (low < 0.0) & (high > 0.0)
        up = self.ticks.next_above(np.where(is_inside, self.ticks.below(0.0 * low), low))
        down = self.ticks.next_below(np.where(is_inside, self.ticks.above(0.0 * high), high))
        pairs = [
            (np.where(is_inside, self.ticks.below(0.0 * low), low)[at], up[at]),
            (down[at], np.where(is_inside, self.ticks.above(0.0 * high), high)[at]),
        ]
        a, b = (np.concatenate(part) for part in zip(*pairs, strict=True))
        twice = np.concatenate([at, at])
        first, second = self.blueprint.grid.together
        Q, q = np.zeros((twice.size + first.size, d, d)), np.zeros((twice.size + first.size, d))
        rows, rest = np.arange(twice.size), twice.size + np.arange(first.size)
        Q[rows, twice, twice], q[rows, twice] = -1.0, a + b
        Q[rest, first, second] = Q[rest, second, first] = 0.5
        return Q, q, np.concatenate([a * b, np.zeros(first.size)])

    def _applying(self, box: Box | None) -> tuple[bool, ...]:
        """Which conditional rows hold throughout a box."""
        conditionals = self.blueprint.conditionals
        if box is None or not conditionals:
            return (False,) * len(conditionals)
        low, high = self.x + box.lower, self.x + box.upper
        return tuple(item.applies(low, high) for item in conditionals)

    def root(self, cap: float) -> Box:
        """Box of all changes that cost at most `cap`; where that is no limit, within reach."""
        known = self._roots.get(cap)
        if known is None:
            known = self._roots[cap] = self._root(cap)
        return known

    def _root(self, cap: float) -> Box:
        program = self.convex
        limits = cost_limits(program.w, program.L, cap)
        reach = np.where(np.isfinite(limits), limits, program.reach)
        box = Box(np.maximum(program.lower, -reach), np.minimum(program.upper, reach))
        for quadric in program.quadrics:
            box = box.within(_around(quadric))
        return self._narrowed(box)

    def inside(self, box: Box, cap: float) -> Box:
        """Keep of a box what changes of cost at most `cap` can reach."""
        inner = box.within(self.root(cap))
        return inner if self.blueprint.is_continuous or inner.is_empty else self._narrowed(inner)

    def _narrowed(self, box: Box) -> Box:
        """Keep what the linear conditions leave, and end sides on the grid."""
        if self.blueprint.is_continuous:
            return _within_rows(self.convex, box)
        for _ in range(_GRID_SWEEPS):
            before = box
            box = self._on_grid(box)
            box = self._on_grid(_within_rows(self._program(self._applying(box)), box))
            if box.is_empty or box.equals(before):
                break
        return box

    def _on_grid(self, box: Box) -> Box:
        return Box(self.ticks.above(box.lower), self.ticks.below(box.upper))

    def is_ruled_out(self, box: Box) -> bool:
        """Whether a box has shrunk to one point of the grid, where a rival is nearest.

        Only the model can tell: on a grid a tie that is lost has no neighbour that wins.
        """
        if self.blueprint.is_continuous or box.is_empty or (box.lower < box.upper).any():
            return False
        point = self.ticks.values(box.lower)
        return bool(self.cells.model.nearest(point[None, :])[0] in self.cells.rivals)

    def loses_ties(self, prototype: int, prices: LiftedPrices, box: Box, cap: float) -> bool:
        """Whether all that a box on the grid holds of a cell are ties with earlier rivals.

        Elsewhere points that win lie next to a tie, and there is nothing to exclude; and of a
        single point the model says itself who wins.
        """
        at, is_open = self.ticks.columns, box.lower < box.upper
        if not at.size or is_open[at].any() or not is_open.any():
            return False
        charged = self.cells.rivals[prices.forms[: self.cells.rivals.size] > 0]
        if not (charged < prototype).all():
            return False
        return lifted_tie(self.problem(prototype, box), prices, box, cap)

    def split(self, box: Box, feature: int, at: float) -> tuple[Box, Box]:
        """Cut across one feature; between two values of a grid there is nothing."""
        if self.blueprint.grid.step[feature] == 0:
            return box.split(feature, at)
        below = self.ticks.below(np.full(self.x.size, at))
        low = box.split(feature, float(below[feature]))[0]
        return low, box.split(feature, float(self.ticks.next_above(below)[feature]))[1]


def _around(quadric: Quadric) -> Box:
    """Box around an ellipsoid; everything where it has no end, or slopes."""
    everywhere = np.full(quadric.h.size, np.inf)
    if quadric.h.any():
        return Box(-everywhere, everywhere)
    center: Floats = np.linalg.lstsq(quadric.G, quadric.g, rcond=None)[0].astype(np.float64)
    # |G (y - center)| <= |G y - g| + |G center - g|, wherever rounding has put the centre.
    rest = float(np.linalg.norm(quadric.G @ center - quadric.g))
    rounding = _ROW_ROUNDING * np.sqrt(quadric.magnitude(center))
    room = (np.sqrt(max(quadric.c, 0.0)) + rest + rounding) ** 2
    limits = cost_limits(np.zeros(center.size), quadric.G, room)
    slack = _ROW_ROUNDING * np.abs(center)
    return Box(center - limits - slack, center + limits + slack)


def _within_rows(program: Program, box: Box) -> Box:
    """Keep of a box what the linear conditions leave of each side, given the other sides."""
    A = np.concatenate([program.A, program.E, -program.E])
    blur = np.concatenate([program.blur, program.blur[program.b.size :]])
    b = np.concatenate([program.b, program.e, -program.e]) + blur
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(_ROW_SWEEPS if b.size else 0):
            least = np.where(A > 0, A * box.lower, A * box.upper)
            size = np.abs(least).sum(axis=1) + np.abs(b)
            rest = least.sum(axis=1, keepdims=True) - least
            ends = (b[:, None] - rest + _ROW_ROUNDING * size[:, None]) / A
            box = box.within(
                Box(
                    np.where(A < 0, ends, -np.inf).max(axis=0),
                    np.where(A > 0, ends, np.inf).min(axis=0),
                )
            )
    return box


class _Part(NamedTuple):
    box: Box
    prices: LiftedPrices
    cap: float
    is_whole: bool  # or cut, in which case its parts say more


@final
@dataclass(frozen=True, eq=False)
class Tree:
    """Cuts through the box of one prototype; node 0 is the whole box."""

    prototype: int
    margin: float  # over every rival, that the search asked for
    feature: NDArray[np.int64]  # (nodes,) across which a node is cut; -1 for a part left whole
    at: Floats  # (nodes,) where it is cut
    low: NDArray[np.int64]  # (nodes,) the part below the cut
    high: NDArray[np.int64]  # (nodes,) the part above
    prices: tuple[LiftedPrices, ...]  # of each node
    caps: Floats  # (nodes,) costs that the prices reckon with; inf for any

    def fits(self, question: LocalQuestion) -> bool:
        """Whether it is a tree at all, with prices for as many conditions as the question has."""
        count = len(self.prices)
        if any(
            len(part) != count for part in (self.feature, self.at, self.low, self.high, self.caps)
        ):
            return False
        cut = self.feature >= 0
        # Children stand behind their parents, so that whoever walks down comes to an end.
        here = np.arange(count)[cut]
        for child in (self.low[cut], self.high[cut]):
            if not ((child > here) & (child < count)).all():
                return False
        if not count or (self.feature >= question.x.size).any():
            return False
        whole = question.root(np.inf)
        nothing = _shapes(LiftedPrices.none(question.problem(self.prototype, whole)))
        return all(_shapes(prices) == nothing for prices in self.prices)

    def lower_bound(self, question: LocalQuestion, cap: float, margin: float = 0.0) -> float:
        """Cost that no change of the cell undercuts, at most `cap`."""

        def bound(part: _Part) -> float:
            if question.is_ruled_out(part.box):
                return cap
            problem = question.problem(self.prototype, part.box).tightened(margin)
            value = lifted_bound(problem, part.prices, part.box, part.cap)
            if (
                value < cap
                and part.is_whole
                and (
                    lifted_contradiction(problem, part.prices, part.box, part.cap)
                    or question.loses_ties(self.prototype, part.prices, part.box, part.cap)
                )
            ):
                return cap
            return value

        return self._least(question, cap, bound)

    def is_empty(self, question: LocalQuestion) -> bool:
        """Whether the prices show that no change within reach is in the cell by the margin."""

        def bound(part: _Part) -> float:
            if question.is_ruled_out(part.box):
                return np.inf
            problem = question.problem(self.prototype, part.box).tightened(self.margin)
            empty = lifted_contradiction(problem, part.prices, part.box, np.inf)
            empty = empty or question.loses_ties(self.prototype, part.prices, part.box, np.inf)
            return np.inf if empty else 0.0

        return self._least(question, np.inf, bound) == np.inf

    def _least(self, question: LocalQuestion, cap: float, bound: Callable[[_Part], float]) -> float:
        """Least bound over the parts that are left whole, at most `cap`.

        Together they hold all changes of cost up to `cap`. What holds for a box holds for
        its parts. Prices are worth most with the cost that they were found for, which may be
        more than `cap`, never less.
        """
        least, whole = cap, np.full(question.x.size, np.inf)
        waiting = [(0, Box(-whole, whole), 0.0)]
        while waiting:
            node, box, floor = waiting.pop()
            own = max(float(self.caps[node]), cap)
            is_whole = bool(self.feature[node] < 0)
            part = _Part(question.inside(box, own), self.prices[node], own, is_whole)
            floor = max(floor, bound(part))
            if floor >= least:
                continue
            if is_whole:
                least = floor
                continue
            cut = int(self.feature[node]), float(self.at[node])
            below, above = question.split(part.box, *cut)
            waiting += [
                (int(self.low[node]), below, floor),
                (int(self.high[node]), above, floor),
            ]
        return least


def _shapes(prices: LiftedPrices) -> list[tuple[int, ...]]:
    linear = prices.linear
    parts = (
        linear.y, linear.z, linear.nu, prices.forms, prices.low, prices.high, prices.cross,
        prices.share, prices.signs, prices.from_low, prices.from_high, prices.point,
    )  # fmt: skip
    return [part.shape for part in parts]


@final
@dataclass(frozen=True, eq=False)
class Forest:
    """One tree per target prototype."""

    trees: tuple[Tree, ...]

    def lower_bound(self, question: object, cap: float, margin: float = 0.0) -> float:
        """Cost that no counterfactual undercuts: the least over all trees, recomputed.

        With `margin`, only points that beat every rival by that much count. Of questions
        about shared metrics nothing is proved.
        """
        trees = self._covering(question)
        if not isinstance(question, LocalQuestion) or not trees:
            return 0.0
        return min(tree.lower_bound(question, cap, margin) for tree in trees)

    def excludes_all(self, question: object, margin: float = 0.0) -> bool:
        """Whether no cell holds an answer."""
        if not isinstance(question, LocalQuestion):
            return False
        if not question.cells.targets.size:
            return True  # each of them lies on an earlier rival
        trees = self._covering(question)
        return bool(trees) and all(tree.is_empty(question) for tree in trees)

    def _covering(self, question: object) -> tuple[Tree, ...]:
        """Trees that speak of the question, if there is one for every target; else none."""
        if not isinstance(question, LocalQuestion):
            return ()
        targets = set(question.cells.targets.tolist())
        trees = tuple(
            tree for tree in self.trees if tree.prototype in targets and tree.fits(question)
        )
        return trees if targets.issubset(tree.prototype for tree in trees) else ()

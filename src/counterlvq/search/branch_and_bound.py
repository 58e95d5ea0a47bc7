"""Search for one answer under local metrics: branch and bound over all cells at once.

Lower bounds come from semidefinite relaxations over boxes, upper bounds from convex-concave
searches started at the relaxed points. The target prototypes are roots of one common queue,
so that a good point found in one cell rules the others out.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from counterlvq.cells import LocalCells
from counterlvq.certificates.boxes import BoxCertificate, BoxTree
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.tolerances import (
    BROKEN_RIVAL,
    DIVING,
    FINEST_GAP,
    NARROW,
    SHARE_OF_GAP,
    SLIGHTLY_LESS,
    UNCHARGED,
)
from counterlvq.programs.nonconvex import Box, FormSides, LiftedMultipliers, NonconvexProgram
from counterlvq.safe_text import shown_text
from counterlvq.search.contradictions import refutation
from counterlvq.search.descents import CellSearch
from counterlvq.search.progress import Progress
from counterlvq.search.result import DualPoint, SearchResult
from counterlvq.search.whole_multipliers import in_whole_numbers
from counterlvq.solvers.one_rival import charged_for_one, nearer_throughout
from counterlvq.solvers.semidefinite import Relaxed, relax
from counterlvq.solvers.separable import is_separable, relax_separable
from counterlvq.solvers.solution import Outcome

__all__ = ["Branching", "Node"]

_CCP = "convex-concave search"
_TREE = "branch and bound over semidefinite relaxations"

# All numbers below, and the tolerances above, steer the search: which points it tries, which boxes
# it cuts and when it ends. They decide how good an answer and its multipliers are. `certificates`
# recomputes what is claimed from the multipliers alone: a weak bound, never a wrong one.

# The share of `gap` at which a box counts as closed, so that the sum of roundings stays within.
_CLOSED = 0.999
# A rival that comes as near as this share of the distances matters to a relaxation.
_NEAR = 0.05
# The share of a time limit that checking the proof may take on top: less than until it is too late.
_GRACE = 0.04
# How many features without a limit are named.
_NAMED = 3
# Relaxations spent where nothing limits an answer: boxes without end could be cut for ever.
_OPEN_NODES = 500
# Relaxations spent without any answer where no time limit ends the search either.
_VAIN_NODES = 5000
# Seconds that a relaxation takes at the least, per third power of the products of two features.
_SECONDS = 3e-9
# Shares of multipliers that were to contradict a box and did not, one after the other.
_SHARES = (1e-3, 1e-2, 1e-4, 1e-1, 1.0)
# How near to a side, as a share of the width, a box may be cut.
_EDGE = 0.1


@final
@dataclass(eq=False)
class Node:
    """A box of the tree, with the best that is known of it."""

    prototype: int
    box: Box  # of the claim: infinite where only the search has an end
    prices: LiftedMultipliers
    bound: float
    cap: float  # cost that box and multipliers reckon with
    rivals: NDArray[np.bool_]  # (m,) that a relaxation starts with
    within: Box  # what cuts have left of linear forms; of no size without any
    came_by: int = -1  # the cut that it is a part of: a feature, or a form behind all features
    feature: int = -1
    at: float = 0.0
    low: int = -1
    high: int = -1


@dataclass(eq=False)
class Branching(CellSearch):
    """One run for one question, in which any number will do for each feature."""

    gap: float
    most_nodes: int | None
    report: Callable[[Progress], None] | None = None
    most_work: float = field(default=np.inf, kw_only=True)  # of relaxations that count theirs

    _nodes: list[Node] = field(init=False, default_factory=list)
    _roots: dict[int, int] = field(init=False, default_factory=dict)
    _solved: int = field(init=False, default=0)
    _work: float = field(init=False, default=0.0)
    _looked_at: float = field(init=False, default=np.inf)  # cost that the last box reckons with
    _closed: float = field(init=False, default=np.inf)  # least bound of boxes that are done
    _unseen: int = field(init=False, default=0)  # cells of which nothing is known yet
    _checking: float = field(init=False, default=0.0)  # seconds that the proof will take to check
    _allowed: float = field(init=False, default=np.inf)  # seconds that the search has in all

    def run_local(self) -> SearchResult:
        """Search from the target prototypes only, the paper's procedure.

        It proves nothing, unless the constraints contradict each other.
        """
        if not self.context.out_of_time():
            self._start(from_input=False)
        evidence = self._contradiction()
        if evidence is None:
            return SearchResult(self._best, BoxCertificate(()), (_CCP,))
        self._plant(evidence)
        return SearchResult(None, self._forest(), (_CCP,))

    def run(self) -> SearchResult:
        """Search until the gap is closed, the budget is spent or time is up."""
        self._allowed = max(self.context.seconds_left(), 0.0)
        self._try_prototypes()
        if not self.context.out_of_time() and not self.question.root(np.inf).is_empty:
            self._start(from_input=True)
            self._take_back()
        evidence = self._contradiction()
        queue = [] if evidence is None else self._plant(evidence)
        if evidence is not None and not self._shows_it():
            # What a row misses by rounding alone it keeps: there may be answers after all.
            self._nodes.clear()
            self._roots.clear()
            self._unseen, evidence = 0, None
        if evidence is None:
            if self._cost == np.inf:
                self._look_far()
            queue = self._plant(None)
        while evidence is None and queue and not self._is_over(queue[0][0]):
            self._look(queue, self._next(queue))
            self._tell(queue)
        return SearchResult(self._best, self._forest(), (*self._engines, *self._limits))

    @property
    def _limits(self) -> tuple[str, ...]:
        """Say what time was too short for, and how far the search has looked without limits."""
        root, cells = self.question.root(self._cost), self.question.cells.targets.size
        unseen = cells - len(self._roots) + self._unseen
        late = unseen and self._best is not None and self.context.out_of_time()
        short = (
            (f"time for a coarse bound at most on {unseen} of {cells} prototypes",) if late else ()
        )
        if root.is_finite or root.is_empty:
            return short
        near, names = self._near(root), self.question.cells.model.features.names
        is_open = ~(np.isfinite(root.lower) & np.isfinite(root.upper))
        if self._heightened is not None:
            is_open[self._heightened.column] = False  # no feature of the user's
        open_ones = np.flatnonzero(is_open)
        if not open_ones.size:
            return short
        named = ", ".join(shown_text(names[j]) for j in open_ones[:_NAMED])
        more = f" and {open_ones.size - _NAMED} more" if open_ones.size > _NAMED else ""
        far = float(near.most[open_ones].max())
        where = f"changes up to {far:.4g}" if np.isfinite(far) else f"{self._solved} boxes"
        return (*short, f"nothing limits {named}{more}: searched within {where} only")

    @property
    def _engines(self) -> tuple[str, ...]:
        """Name the engines that this search has used."""
        return _CCP, _TREE

    def _contradiction(self) -> DualPoint | None:
        """Show, where nothing was found, that the constraints contradict each other."""
        if self._best is not None or self.context.out_of_time():
            return None
        question = self.question
        return refutation(question.template, question.x, question.convex)

    def _shows_it(self) -> bool:
        """Whether what is planted shows by itself that no cell holds an answer."""
        return self._forest().excludes_all(self.question, self.margin or 0.0)

    def _plant(self, evidence: DualPoint | None) -> list[tuple[float, int]]:
        """Queue the whole box of each cell, with multipliers that need no relaxation."""
        queue: list[tuple[float, int]] = []
        box, cap = self.question.root(self._cost), self._cost
        # Without multipliers a box costs nothing where it holds no change.
        is_free = evidence is None and bool(((box.lower <= 0) & (box.upper >= 0)).all())
        for prototype in self.question.cells.targets.tolist():
            if self.context.out_of_time():
                break  # nothing is proved where cells are left out
            problem = self._problem(prototype, box)
            prices = replace(LiftedMultipliers.none(problem), point=np.clip(0.0, *box))
            everyone = np.ones(prices.forms.size, dtype=bool)
            if evidence is not None:
                prices = replace(prices, linear=evidence.multipliers, point=evidence.point)
            self._roots[prototype] = len(self._nodes)
            empty = (
                None if evidence is not None else self._shown_empty(prototype, problem, box, cap)
            )
            if empty is not None:
                told = (prototype, box, empty, np.inf, cap, everyone, Box.whole(0))
                self._nodes.append(Node(*told))
                continue
            bound = 0.0 if is_free else self._bound(prototype, prices, box, cap)
            # Relaxations say far more, if there is time for one in each cell. No limit of time is
            # the longest one: no less is said then.
            is_worth = self._allowed < np.inf or isinstance(self.question.cells, LocalCells)
            coarse = charged_for_one(problem, box, cap) if is_worth else None
            if coarse is not None and (least := self._bound(prototype, coarse, box, cap)) > bound:
                prices, bound = coarse, least
            self._unseen += 1
            self._push(queue, Node(prototype, box, prices, bound, cap, everyone, Box.whole(0)))
        return queue

    def _shown_empty(
        self, prototype: int, problem: NonconvexProgram, box: Box, cap: float
    ) -> LiftedMultipliers | None:
        """Multipliers for one rival that show a cell to have nothing in a box, if some do.

        Once an answer is known, boxes have ends and relaxations show as much.
        """
        if cap < np.inf or not isinstance(self.question.cells, LocalCells):
            return None
        for prices in nearer_throughout(problem, box):
            if self.question.contradicts(prototype, prices, box, cap, self.margin or 0.0):
                return prices
        return None

    def _forms(self, prototype: int) -> Floats:
        """Linear forms that the tree of a cell cuts beside features, (k, d); none here."""
        return np.zeros((0, 0))

    def _sides(self, prototype: int, within: Box, box: Box, cap: float) -> FormSides | None:
        """Sides of the linear forms in a box; None without any."""
        forms = self._forms(prototype)
        if not len(forms) or box.is_empty:
            return None
        return self.question.form_sides(forms, _with_more_sides(within, len(forms)), box, cap)

    def _bound(
        self, prototype: int, prices: LiftedMultipliers, box: Box, cap: float,
        sides: FormSides | None = None,
    ) -> float:  # fmt: skip
        """Bound a cell in a box by multipliers, with the margin that the user asks for."""
        prices = prices.with_forms(0 if sides is None else len(sides.V))
        return self.question.bound(prototype, prices, box, cap, self.margin or 0.0, sides=sides)

    @property
    def _tolerance(self) -> float:
        """How exactly relaxations are worth solving."""
        return float(np.clip(SHARE_OF_GAP * self.gap, FINEST_GAP, DIVING))

    def _problem(self, prototype: int, box: Box) -> NonconvexProgram:
        """Conditions of a cell in a box, with the margin that the user asks for."""
        problem = self.question.problem(prototype, box)
        return problem.tightened(self.margin or 0.0)

    def _next(self, queue: list[tuple[float, int]]) -> int:
        """Take the box with the least bound; once the budget is spent, of cells not looked at.

        With a bound of its own such a cell could wait behind the parts of another one for ever.
        """
        if not self._is_spent:
            return heapq.heappop(queue)[1]
        first = min(item for item in queue if self._nodes[item[1]].came_by < 0)
        queue.remove(first)
        heapq.heapify(queue)
        return first[1]

    @property
    def _is_spent(self) -> bool:
        """Whether the budget is spent."""
        most = np.inf if self.most_nodes is None else self.most_nodes
        if not self.question.root(self._cost).is_finite:
            most = min(most, _OPEN_NODES)
        if not np.isfinite(self._cost) and not np.isfinite(self._allowed):
            most = min(most, _VAIN_NODES)
        return self._solved >= most or self._work >= self.most_work

    def _is_over(self, bound: float) -> bool:
        # One cell that is not looked at leaves nothing proved of any.
        spent = not self._unseen and self._is_spent
        return spent or self._closes(bound) or self._takes_too_long() or self._has_to_check()

    def _takes_too_long(self) -> bool:
        """Whether time is up, or will be long before another relaxation could be stated."""
        if not isinstance(self.question.cells, LocalCells):
            return self.context.out_of_time()
        seconds = 0.0 if self.is_separable else _SECONDS * self._pairs**3
        return self.context.seconds_left() <= seconds

    @property
    def _pairs(self) -> float:
        """Products of two features, with which the time that a relaxation takes grows."""
        return 0.5 * self.question.x.size * (self.question.x.size + 1)

    @cached_property
    def is_separable(self) -> bool:
        """Whether relaxations need no products of two features, in any cell."""
        problems = (self.question.problem(int(i)) for i in self.question.cells.targets)
        return all(is_separable(problem) for problem in problems)

    def _seconds_for_one(self) -> float:
        """Seconds that one relaxation may take.

        One cell of which nothing is known leaves nothing proved of any, so that they share, with
        room for all else that is done for each.
        """
        return self.context.seconds_left() / (1 + 2 * self._unseen)

    @property
    def _is_hurried(self) -> bool:
        """Whether what is left of a time limit is needed for bounds on cells that have none."""
        left, allowed = self.context.seconds_left(), self._allowed
        return self._best is not None and left < 0.5 * allowed < np.inf

    def _has_to_check(self) -> bool:
        """Whether checking the proof would take longer than a limit may be exceeded by."""
        return self.context.seconds_left() + _GRACE * self._allowed < self._checking

    def _closes(self, bound: float) -> bool:
        """Whether nothing above `bound` is worth looking for."""
        wanted = max(_CLOSED * self.gap, FINEST_GAP)
        return bool(np.isfinite(self._cost) and bound >= (1.0 - wanted) * self._cost)

    def _push(self, queue: list[tuple[float, int]], node: Node) -> int:
        self._nodes.append(node)
        heapq.heappush(queue, (node.bound, len(self._nodes) - 1))
        return len(self._nodes) - 1

    def _tell(self, queue: list[tuple[float, int]]) -> None:
        if self.report is None:
            return
        bound = min(queue[0][0] if queue else np.inf, self._closed, self._cost)
        gap = 1.0 - bound / self._cost if 0 < self._cost < np.inf else float(self._cost > bound)
        self.report(Progress(self._cost, bound, gap, self._solved))

    def _look(self, queue: list[tuple[float, int]], number: int) -> None:
        """Bound one box by its relaxation, search from the relaxed point, cut if need be."""
        node = self._nodes[number]
        self._unseen -= node.came_by < 0
        cap = self._looked_at = self._cost
        box = self.question.inside(node.box, cap)
        sides = self._sides(node.prototype, node.within, box, cap)
        if self._holds_nothing(node, box, cap, sides):
            return
        if self._is_settled_by_cost(node, box, cap, sides):
            self._closed = min(self._closed, node.bound)
            return
        near = self._near(box)
        relaxed = self._relaxed(node, self._problem(node.prototype, box), near, cap)
        self._solved += 1
        told_prices = relaxed.prices.with_forms(0 if sides is None else len(sides.V))
        if relaxed.outcome is Outcome.INFEASIBLE:
            if self._is_contradicted(node, told_prices, box, cap, sides):
                return
        else:
            for prices in self._worth_trying(told_prices, box):
                self._try(node, prices, box, cap, sides)
            if cap == np.inf and self._is_contradicted(node, told_prices, box, cap, sides):
                return
        if relaxed.outcome is Outcome.SOLVED:
            for point in self._starts(relaxed):
                if not self._closes(node.bound) and not (self._unseen and self._is_hurried):
                    self._search_from(node.prototype, point)
        if not self._closes(node.bound) and not self._only_ties(node, box):
            self._cut(queue, node, box, near, relaxed)
        if node.feature < 0:
            self._closed = min(self._closed, node.bound)

    def _holds_nothing(self, node: Node, box: Box, cap: float, sides: FormSides | None) -> bool:
        """Whether a box is known to hold no answer without a relaxation.

        Of a box without end a relaxation sees a part only; one rival may be nearer in all of it.
        """
        is_empty = box.is_empty or (sides is not None and sides.is_empty)
        if is_empty or self.question.is_ruled_out(box):
            node.bound, node.cap = np.inf, cap
            return True
        if box.is_finite:
            return False
        problem = self._problem(node.prototype, box)
        shown = self._shown_empty(node.prototype, problem, box, cap)
        if shown is not None:
            node.prices, node.bound, node.cap = shown, np.inf, cap
        return shown is not None

    def _is_contradicted(
        self, node: Node, ray: LiftedMultipliers, box: Box, cap: float, sides: FormSides | None
    ) -> bool:
        """Whether a box is shown to hold no cheaper answer where its relaxation has no solution.

        Multipliers that are rounded may contradict nothing by themselves. A little of them added
        to what changes cost often does.
        """
        for prices in self._worth_trying(ray, box):
            told = (node.prototype, prices, box, cap, self.margin or 0.0)
            if self.question.contradicts(*told, sides=sides):
                node.prices, node.bound, node.cap = prices, np.inf, cap
                return True
        if np.isfinite(cap):
            for share in _SHARES:
                self._try(node, ray.times(share), box, cap, sides)
                if self._closes(node.bound):
                    break
        return False

    def _try(
        self, node: Node, prices: LiftedMultipliers, box: Box, cap: float, sides: FormSides | None
    ) -> None:
        """Bound a box by multipliers, and keep them if none were better."""
        begun = time.monotonic()
        bound = self._bound(node.prototype, prices, box, cap, sides)
        # The box will be bounded once more by whoever checks the tree, and a part of it twice.
        self._checking += 3.0 * (time.monotonic() - begun)
        if bound >= node.bound:
            node.prices, node.bound, node.cap = prices, bound, cap

    def _starts(self, relaxed: Relaxed) -> Iterator[Floats]:
        """Points to search from once a box has been relaxed."""
        yield relaxed.prices.point

    def _is_settled_by_cost(
        self, node: Node, box: Box, cap: float, sides: FormSides | None
    ) -> bool:
        """Whether all changes in a box cost too much, whatever the model says of them."""
        return False

    def _near(self, box: Box) -> Box:
        """Part of a box that is relaxed and cut: a relaxation needs an end."""
        return self.question.searched(box)

    @staticmethod
    def _worth_trying(prices: LiftedMultipliers, box: Box) -> Iterator[LiftedMultipliers]:
        """Multipliers as they are and, where a box has no end, some that leave no slope behind.

        There a slope of rounding proves nothing. Small whole numbers may cancel exactly, and
        charging a little less leaves less than what a change costs.
        """
        yield prices
        if not box.is_finite:
            yield prices.charging(np.copy)
            yield prices.charging(in_whole_numbers)
            yield prices.charging(lambda charged: SLIGHTLY_LESS * charged)

    def _only_ties(self, node: Node, box: Box) -> bool:
        """Whether a box holds nothing but ties that are lost; without a grid none does."""
        return False

    def _relaxed(self, node: Node, problem: NonconvexProgram, box: Box, cap: float) -> Relaxed:
        """Solve the relaxation with the rivals that matter: others are taken in once broken.

        Those that matter here, or nearly, are kept for the parts of the box. What is left out
        is not charged for, so that a bound holds with any choice.
        """
        while True:
            some = problem.only(node.rivals)
            solve = relax_separable if is_separable(some) else relax
            relaxed = solve(some, box, cap, self._tolerance, self._seconds_for_one())
            prices, miss = relaxed.prices, relaxed.miss
            if not relaxed.is_usable:
                return Relaxed.failed(problem, box)
            charged = np.zeros(node.rivals.size)
            charged[node.rivals] = prices.forms
            relaxed = replace(relaxed, prices=replace(prices, forms=charged))
            if relaxed.outcome is not Outcome.SOLVED:
                return relaxed
            forms = problem.forms
            over = problem.excess(prices.point) + np.einsum("kij,ij->k", forms.Q, miss)
            broken = ~node.rivals & (over > BROKEN_RIVAL * forms.size)
            if not broken.any() or self.context.out_of_time():
                paid = charged > UNCHARGED * charged.max(initial=0.0)
                node.rivals = paid | (over > -_NEAR * forms.size)
                node.rivals[problem.rivals :] = True
                return relaxed
            node.rivals = node.rivals | broken

    def _cut(
        self, queue: list[tuple[float, int]], node: Node, box: Box, near: Box, relaxed: Relaxed
    ) -> None:
        """Cut a box in two, within what was searched of it, unless that is too narrow."""
        where = self._where_to_cut(node, near, relaxed)
        if where is None:
            return
        node.feature, node.at = where
        if node.cap > self._looked_at:
            # Multipliers that were found for a dearer answer: whoever checks them has its box.
            box = self.question.inside(node.box, node.cap)
        children = []
        for part, within in self._parts(box, node.within, *where):
            inner = self.question.inside(part, node.cap)
            sides = self._sides(node.prototype, within, inner, node.cap)
            told = (node.prototype, node.prices, inner, node.cap, sides)
            bound = max(node.bound, self._bound(*told))
            told_child = (node.prices, bound, node.cap, node.rivals, within, node.feature)
            child = Node(node.prototype, part, *told_child)
            children.append(self._push(queue, child))
        node.low, node.high = children

    def _parts(self, box: Box, within: Box, feature: int, at: float) -> list[tuple[Box, Box]]:
        """Cut across a feature, or across a linear form, which count behind them."""
        width = self.question.x.size
        if feature < width:
            return [(part, within) for part in self.question.split(box, feature, at)]
        at_form = feature - width
        within = _with_more_sides(within, at_form + 1)
        return [(box, part) for part in within.split(at_form, at)]

    def _where_to_cut(self, node: Node, box: Box, relaxed: Relaxed) -> tuple[int, float] | None:
        """Choose the feature that the relaxation gains most from missing, at 0 first."""
        point = relaxed.prices.point
        root = self._searched.half
        share = np.divide(box.half, root, out=np.zeros_like(root), where=root > 0)
        wide = share > NARROW
        forms = self.question.problem(node.prototype).forms
        prices = np.maximum(relaxed.prices.forms[: forms.r.size], 0.0)
        gain = np.abs(np.einsum("k,kij->ij", prices, forms.Q) * relaxed.miss).sum(axis=1)
        size = np.divide(
            np.maximum(np.diag(relaxed.miss), 0.0), root**2, out=np.zeros_like(root), where=root > 0
        )
        worth = np.where(wide, gain * size, -1.0)
        if worth.max() <= 0:
            worth = np.where(wide, share, -1.0)
        j = int(worth.argmax())
        if worth[j] <= 0:
            return None
        low, high = float(box.lower[j]), float(box.upper[j])
        edge = _EDGE * (high - low)
        return j, 0.0 if low < 0.0 < high else float(np.clip(point[j], low + edge, high - edge))

    def _forest(self) -> BoxCertificate:
        return BoxCertificate(
            tuple(self._tree(prototype, at) for prototype, at in self._roots.items())
        )

    def _tree(self, prototype: int, root: int) -> BoxTree:
        order, where = [root], {root: 0}
        for number in order:
            node = self._nodes[number]
            if node.feature >= 0:
                for child in (node.low, node.high):
                    where[child] = len(order)
                    order.append(child)
        nodes, forms = [self._nodes[number] for number in order], self._forms(prototype)
        return BoxTree(
            prototype,
            self.margin or 0.0,
            np.array([node.feature for node in nodes]),
            np.array([node.at for node in nodes]),
            np.array([where.get(node.low, -1) for node in nodes]),
            np.array([where.get(node.high, -1) for node in nodes]),
            tuple(node.prices.with_forms(len(forms)) for node in nodes),
            np.array([node.cap for node in nodes]),
            forms,
        )


def _with_more_sides(within: Box, count: int) -> Box:
    """Add forms that nothing has cut yet, up to so many."""
    rest = Box.whole(max(count - within.lower.size, 0))
    return Box(
        np.concatenate([within.lower, rest.lower]), np.concatenate([within.upper, rest.upper])
    )

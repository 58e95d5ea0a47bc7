"""Certificates for nonconvex cells: boxes that cover all cheaper changes, with multipliers.

A `BoxTree` cuts the box of changes that could be cheaper than the answer, and carries prices
for every part. Whoever checks it builds the conditions anew from model, cost, constraints
and input, walks down the cuts, so that nothing can be left out, and evaluates the multipliers
with `lifted`. No solver is imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.cells import SharedCells
from counterlvq.certificates.box_questions import BoxQuestion
from counterlvq.certificates.cellwise import CellCertificate, Exclusion, Singles
from counterlvq.certificates.certificate import Stop, never
from counterlvq.certificates.duality import Proof
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import CLOSED_GAP
from counterlvq.programs.box_trees import PackedTrees, blank_trees
from counterlvq.programs.nonconvex import Box, FormSides, LiftedMultipliers
from counterlvq.programs.program import Multipliers

__all__ = ["BoxCertificate", "BoxTree", "plain_copy"]


class _Part(NamedTuple):
    box: Box
    prices: LiftedMultipliers
    cap: float
    is_whole: bool  # or cut, in which case its parts say more
    sides: FormSides | None  # of linear forms, if the tree cuts any


def _no_forms() -> Floats:
    return np.zeros((0, 0))


@final
@dataclass(frozen=True, eq=False)
class BoxTree:
    """Cuts through the box of one prototype; node 0 is the whole box."""

    prototype: int
    margin: float  # over every rival, that the search asked for
    # (nodes,) across which a node is cut; -1 for a part left whole. Linear forms count behind the
    # features.
    feature: NDArray[np.int64]
    at: Floats  # (nodes,) where it is cut
    low: NDArray[np.int64]  # (nodes,) the part below the cut
    high: NDArray[np.int64]  # (nodes,) the part above
    prices: tuple[LiftedMultipliers, ...]  # of each node
    caps: Floats  # (nodes,) costs that the multipliers reckon with; inf for any
    forms: Floats = field(default_factory=_no_forms)  # (k, d) of the change, that may be cut

    def fits(self, question: BoxQuestion) -> bool:
        """Whether it is a tree of plain numbers, with multipliers for what the question charges."""
        if not self._is_plain() or not 0 < len(self.prices) == len(self.feature):
            return False
        count, cut = len(self.prices), self.feature >= 0
        # Children stand behind their parents, so that whoever walks down comes to an end.
        here = np.arange(count)[cut]
        for child in (self.low[cut], self.high[cut]):
            if not ((child > here) & (child < count)).all():
                return False
        if not np.isfinite(self.at[cut]).all() or not (self.caps >= 0.0).all():
            return False
        d, k = question.x.size, len(self.forms)
        if self.forms.shape != ((k, d) if k else (0, 0)) or not np.isfinite(self.forms).all():
            return False
        if not ((self.feature >= -1) & (self.feature < d + k)).all():
            return False
        problem = question.problem(self.prototype, question.root(np.inf))
        nothing = _numbers(LiftedMultipliers.none(problem, k))
        shapes = [part.shape for part in nothing]
        return all(_is_of_shapes(prices, shapes) for prices in self.prices)

    def _is_plain(self) -> bool:
        """Whether it consists of arrays of numbers, one per node, and of nothing else."""
        if type(self.prices) is not tuple:
            return False
        count = len(self.prices)
        whole = (self.feature, self.low, self.high)
        real = (self.at, self.caps)
        if type(self.forms) is not np.ndarray or not _is_array(self.forms, self.forms.shape, "f"):
            return False
        return all(_is_array(part, (count,), "i") for part in whole) and all(
            _is_array(part, (count,), "f") for part in real
        )

    def lower_bound(
        self, question: BoxQuestion, cap: float, margin: float = 0.0, stop: Stop = never
    ) -> float:
        """Cost that no change of the cell undercuts, at most `cap`."""
        prototype = self.prototype

        def bound(part: _Part) -> float:
            if question.is_ruled_out(part.box):
                return cap
            told = (prototype, part.prices, part.box, part.cap, margin)
            value = question.bound(*told, sides=part.sides)
            # Without a cost to stay below, only a contradiction excludes a box, at any node.
            if value >= cap or not (part.is_whole or cap == np.inf):
                return value
            empty = question.contradicts(*told, sides=part.sides)
            return cap if empty or question.loses_ties(prototype, part.box) else value

        return self._least(question, cap, bound, stop)

    def is_empty(self, question: BoxQuestion, margin: float = 0.0, stop: Stop = never) -> bool:
        """Whether the multipliers show that no change at all is in the cell by the margin."""
        prototype = self.prototype

        def bound(part: _Part) -> float:
            told = (prototype, part.prices, part.box, np.inf, margin)
            empty = (
                question.is_ruled_out(part.box)
                or question.contradicts(*told, sides=part.sides)
                or question.loses_ties(prototype, part.box)
            )
            return np.inf if empty else 0.0

        return self._least(question, np.inf, bound, stop) == np.inf

    def _least(
        self, question: BoxQuestion, cap: float, bound: Callable[[_Part], float], stop: Stop
    ) -> float:
        """Least bound over the parts that are left whole, at most `cap`.

        Where time runs out, parts that were not looked at have the bound of what they are parts of.

        Together they hold all changes of cost up to `cap`. What holds for a box holds for
        its parts. Multipliers are worth most with the cost that they were found for, which may be
        more than `cap`, never less.
        """
        least = cap
        waiting = [(0, Box.whole(question.x.size), Box.whole(len(self.forms)), 0.0)]
        while waiting:
            if stop():
                return min(least, *(floor for *_, floor in waiting))
            node, box, within, floor = waiting.pop()
            own = max(float(self.caps[node]), cap)
            is_whole = bool(self.feature[node] < 0)
            inner = question.inside(box, own)
            sides = self.sides(question, within, inner, own)
            if sides is not None and sides.is_empty:
                continue
            part = _Part(inner, self.prices[node], own, is_whole, sides)
            floor = max(floor, bound(part))
            if floor >= least:
                continue
            if is_whole:
                least = floor
                continue
            for child, part_box, left in self.parts(question, node, inner, within):
                waiting.append((child, part_box, left, floor))
        return least

    def sides(self, question: BoxQuestion, within: Box, box: Box, cap: float) -> FormSides | None:
        """Sides of the linear forms where cuts have left `within`; None without any."""
        if not len(self.forms) or box.is_empty:
            return None
        return question.form_sides(self.forms, within, box, cap)

    def parts(
        self, question: BoxQuestion, node: int, box: Box, within: Box
    ) -> list[tuple[int, Box, Box]]:
        """Both parts of a node that is cut: their number, their box, and the sides of forms."""
        feature, at = int(self.feature[node]), float(self.at[node])
        low, high = int(self.low[node]), int(self.high[node])
        if feature < question.x.size:
            below, above = question.split(box, feature, at)
            return [(low, below, within), (high, above, within)]
        below, above = within.split(feature - question.x.size, at)
        return [(low, box, below), (high, box, above)]


def _numbers(prices: LiftedMultipliers) -> list[Any]:
    """All parts of multipliers, in one order."""
    names = [part.name for part in fields(LiftedMultipliers) if part.name != "linear"]
    linear = [getattr(prices.linear, part.name) for part in fields(Multipliers)]
    return [*linear, *(getattr(prices, name) for name in names)]


def _is_of_shapes(prices: object, shapes: list[tuple[int, ...]]) -> bool:
    """Whether multipliers are arrays of floats of these shapes; using them judges their values."""
    if type(prices) is not LiftedMultipliers or type(prices.linear) is not Multipliers:
        return False
    return all(
        _is_array(part, shape, "f") for part, shape in zip(_numbers(prices), shapes, strict=True)
    )


def _is_array(part: object, shape: tuple[int, ...], kind: str) -> bool:
    """Whether something is an array proper of 64-bit numbers of a kind."""
    if type(part) is not np.ndarray:
        return False
    return bool(part.shape == shape and part.dtype == np.dtype(f"{kind}8"))


@final
@dataclass(frozen=True, eq=False)
class BoxCertificate:
    """One tree per target prototype."""

    trees: tuple[BoxTree, ...]

    def lower_bound(
        self, question: object, cap: float, margin: float = 0.0, *, stop: Stop = never
    ) -> float:
        """Cost that no counterfactual undercuts: the least over all trees, recomputed.

        With `margin`, only points that beat every rival by that much count. Of questions
        about shared metrics nothing is proved, nor below a cost that is no number, nor by boxes
        that are not looked at before `stop` says so, beyond what holds for the box around them.
        """
        if not isinstance(question, BoxQuestion) or not cap >= 0.0 or not 0.0 <= margin < np.inf:
            return 0.0
        if not question.cells.targets.size:
            return cap if self.excludes_all(question) else 0.0
        trees = self._covering(question, stop)
        # Compiled first: what that leaves open, the code below may know more about.
        quick = _compiled_bound(question, trees, cap, margin)
        if quick >= (1.0 - CLOSED_GAP) * cap:
            return quick
        found = min((tree.lower_bound(question, cap, margin, stop) for tree in trees), default=0.0)
        if question.blur_within is not None and cap == np.inf and 0.0 < found < np.inf:
            # What `predict` overlooks far away is known only below some cost: any will do.
            return self.lower_bound(question, found, margin, stop=stop)
        return max(found, quick)

    def excludes_all(self, question: object, margin: float = 0.0, *, stop: Stop = never) -> bool:
        """Whether no cell holds an answer, by the margin; not known once `stop` says so."""
        if not isinstance(question, BoxQuestion) or not 0.0 <= margin < np.inf:
            return False
        if not question.cells.targets.size:
            # Each of them lies on an earlier rival; whether that wins, only our model can tell.
            return question.says is None
        trees = self._covering(question, stop)
        if _compiled_bound(question, trees, np.inf, margin) == np.inf:
            return True
        return bool(trees) and all(tree.is_empty(question, margin, stop) for tree in trees)

    def _covering(self, question: BoxQuestion, stop: Stop) -> tuple[BoxTree, ...]:
        """Trees that speak of the question, if there is one for every target; else none.

        None as well if that is not known before `stop` says so.
        """
        targets = set(question.cells.targets.tolist())
        trees = tuple(tree for tree in self._plain() if tree.prototype in targets)
        if not targets.issubset(tree.prototype for tree in trees):
            return ()
        return trees if all(not stop() and tree.fits(question) for tree in trees) else ()

    def _plain(self) -> list[BoxTree]:
        """Trees proper: what only looks like one proves nothing."""
        trees: Any = self.trees
        if type(trees) is not tuple:
            return []
        return [tree for tree in trees if type(tree) is BoxTree and type(tree.prototype) is int]


def _compiled_bound(
    question: BoxQuestion, trees: tuple[BoxTree, ...], cap: float, margin: float
) -> float:
    """Bound by compiled code; 0 where it has nothing to say."""
    if question.flat is None or not trees or not isinstance(question.cells, SharedCells):
        return 0.0
    if any(len(tree.forms) for tree in trees):
        return 0.0
    has_tangents = bool(question.convex.L.shape[0])
    return question.packed_bound(_packed(trees, question.cells.rivals, has_tangents), cap, margin)


def _packed(trees: Sequence[BoxTree], rivals: NDArray[np.intp], has_tangents: bool) -> PackedTrees:
    """Write trees as compiled code takes them; those of one row."""
    nodes = sum(tree.feature.size for tree in trees)
    width = trees[0].prices[0].point.size
    found: list[tuple[NDArray[np.int64], Floats]] = []
    for tree in trees:
        for prices in tree.prices:
            on_rows = np.concatenate([prices.linear.y, prices.linear.z])
            k, c = np.flatnonzero(prices.forms), np.flatnonzero(on_rows)
            index = np.concatenate([rivals[k].astype(np.int64), -1 - c.astype(np.int64)])
            found.append((index, np.concatenate([prices.forms[k], on_rows[c]])))
    counts = np.array([part[0].size for part in found], dtype=np.int64)
    out = blank_trees(1, nodes, int(counts.sum()), len(trees), width, has_tangents)
    out.counts[:] = counts
    out.start[1:] = np.cumsum(counts)[:-1]
    out.indices[:] = np.concatenate([part[0] for part in found])
    out.value[:] = np.concatenate([part[1] for part in found])
    at = 0
    for number, tree in enumerate(trees):
        part = slice(at, at + tree.feature.size)
        out.feature[part], out.at[part] = tree.feature, tree.at
        out.low[part], out.high[part] = tree.low, tree.high
        if has_tangents:
            out.point[part] = np.stack([prices.point for prices in tree.prices])
        out.prototype[number], out.root[number] = tree.prototype, at
        out.size[number] = tree.feature.size
        at = part.stop
    out.row_count[0] = len(trees)
    return out


def plain_copy(part: Any) -> Any:
    """Copy the data of a certificate: what else hangs on its parts, methods too, is left behind.

    Examples
    --------
    >>> forest = BoxCertificate(())
    >>> object.__setattr__(forest, "lower_bound", lambda *_: 99.0)
    >>> plain_copy(forest).lower_bound(None, 1.0)
    0.0
    """
    if type(part) is tuple:
        return tuple(map(plain_copy, part))
    if type(part) not in _PARTS:
        return part
    return type(part)(**{each.name: plain_copy(vars(part).get(each.name)) for each in fields(part)})


_PARTS = (
    CellCertificate,
    Exclusion,
    BoxCertificate,
    LiftedMultipliers,
    Multipliers,
    Proof,
    Singles,
    BoxTree,
)

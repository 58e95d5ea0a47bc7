"""Answers on a lattice by the compiled branch and bound: one row, with its certificate."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterlvq.certificates.box_questions import BoxQuestion
from counterlvq.certificates.boxes import BoxCertificate, BoxTree
from counterlvq.certificates.packed_boxes import FlatGrounds, Targets
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import CLOSED_GAP
from counterlvq.programs.box_trees import PackedTrees, Pieces
from counterlvq.programs.kernel_data import KernelData
from counterlvq.programs.nonconvex import LiftedMultipliers
from counterlvq.programs.program import Multipliers
from counterlvq.search.exact import KERNEL_SHARE, stopping
from counterlvq.search.result import SearchContext, SearchResult
from counterlvq.solvers import branching
from counterlvq.solvers.compiled import Code

__all__ = ["ENGINE", "CompiledBoxes", "compiled_boxes_find", "takes_strictly"]

ENGINE = "compiled branch and bound over whole numbers, decimals and levels"


class CompiledBoxes(NamedTuple):
    """What the kernel takes, for one target."""

    family: KernelData
    flat: FlatGrounds
    targets: Targets
    lead: float  # over every rival that steps of whole numbers bring about

    @classmethod
    def of(cls, family: KernelData, flat: FlatGrounds, lead: float) -> CompiledBoxes:
        """Put the programs of a target and what proofs rest on together."""
        count = flat.stated.anchors.shape[0]
        return cls(family, flat, Targets.of(family.targets, family.rivals, count), lead)

    @property
    def nbytes(self) -> int:
        """Bytes that are kept."""
        return self.family.nbytes

    def room(self, rows: int, spare: branching.Room | None = None) -> branching.Room:
        """Set memory aside for so many rows at a time, or use some that is spare."""
        pieces = self.flat.pieces
        columns = None if pieces is None else pieces.columns
        return branching.room_for(self.family, self.flat.lattice, rows, spare, columns)

    def pieces_at(self, X: Floats, room: branching.Room, first: int = 0) -> Pieces | None:
        """State where values of rows lie in pieces; None where a lattice says it all."""
        pieces = self.flat.pieces
        return None if pieces is None else pieces.at(X, room.branched, first)


def takes_strictly(flat: FlatGrounds) -> bool:
    """Whether conditions have to hold to the last digit: some column can give way."""
    return bool(flat.lattice.column.size < flat.stated.w.size)


def compiled_boxes_find(
    question: BoxQuestion, kernel: CompiledBoxes, context: SearchContext
) -> SearchResult | None:
    """Ask the compiled branch and bound; None where its answer or its proof does not stand up."""
    room = kernel.room(1)
    x, least = question.x[None, :], np.array([max(context.least, kernel.lead)])
    pieces = kernel.pieces_at(x, room)
    with stopping(room.scratch, KERNEL_SHARE * context.seconds_left()):
        (found,) = branching.branched(room, kernel.flat.stated, x, context.margin, least, pieces)
    margin, trees = context.margin or 0.0, found.trees
    if found.code[0] == Code.INFEASIBLE:
        if question.packed_bound(trees, np.inf, margin) < np.inf:
            return None
        return SearchResult(
            None, _certificate(question, kernel, trees, np.inf), (ENGINE,), is_excluded=True
        )
    if found.code[0] != Code.SOLVED:
        return None
    answer = context.accepted(found.Y[0], takes_strictly(kernel.flat))
    if answer is None or not context.rules.is_assured(answer.y[None, :], context.target_mask)[0]:
        return None
    bound = question.packed_bound(trees, answer.cost, margin)
    if answer.gap(bound) > max(CLOSED_GAP, context.open_share):
        return None
    certificate = _certificate(question, kernel, trees, answer.cost)
    return SearchResult(answer, certificate, (ENGINE,), bound=min(bound, answer.cost))


def _certificate(
    question: BoxQuestion, kernel: CompiledBoxes, trees: PackedTrees, cost: float
) -> BoxCertificate:
    """Write the trees of the only row in the form in which they are kept."""
    nothing = _nothing(question, kernel)
    place = np.zeros(question.cells.model.n_prototypes, dtype=np.intp)
    place[question.cells.rivals] = np.arange(question.cells.rivals.size)
    found = []
    for number in range(int(trees.row_count[0])):
        root, size = int(trees.root[number]), int(trees.size[number])
        part = slice(root, root + size)
        prices = tuple(_prices(nothing, place, trees, node) for node in range(root, root + size))
        prototype = int(trees.prototype[number])
        found.append(
            BoxTree(
                prototype,
                0.0,
                trees.feature[part].copy(),
                trees.at[part].copy(),
                trees.low[part].copy(),
                trees.high[part].copy(),
                prices,
                np.full(size, cost),
            )
        )
    return BoxCertificate(tuple(found))


def _nothing(question: BoxQuestion, kernel: CompiledBoxes) -> LiftedMultipliers:
    """Charge for nothing; the parts that the kernel has no use for are shared by all boxes."""
    d, equality = question.x.size, kernel.flat.stated.equality
    count = int(equality.sum())
    linear = Multipliers(np.zeros(equality.size - count), np.zeros(count), np.zeros(0))
    square, flat = np.zeros((d, d)), np.zeros((d, question.template.L.shape[0]))
    rivals = question.cells.rivals.size
    return LiftedMultipliers(
        np.zeros(rivals), linear, square, square, square, np.zeros(d), square, flat, flat,
        np.zeros(d),
    )  # fmt: skip


def _prices(
    nothing: LiftedMultipliers, place: NDArray[np.intp], trees: PackedTrees, node: int
) -> LiftedMultipliers:
    at = slice(int(trees.start[node]), int(trees.start[node] + trees.counts[node]))
    index, value = trees.indices[at], trees.value[at]
    forms = np.zeros(nothing.forms.size)
    forms[place[index[index >= 0]]] = value[index >= 0]
    rows = np.zeros(nothing.linear.y.size + nothing.linear.z.size)
    rows[-1 - index[index < 0]] = value[index < 0]
    count = nothing.linear.y.size
    linear = Multipliers(rows[:count], rows[count:], nothing.linear.nu)
    point = trees.point[node].copy() if trees.point.shape[0] else nothing.point
    return LiftedMultipliers(
        forms, linear, nothing.low, nothing.high, nothing.cross, nothing.share, nothing.signs,
        nothing.from_low, nothing.from_high, point,
    )  # fmt: skip

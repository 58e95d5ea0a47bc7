"""Trees of boxes in plain arrays, as compiled searches write them and compiled proofs read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.records import Record
from counterlvq.programs.template import ProgramTemplate

__all__ = [
    "Lattice",
    "PackedTrees",
    "Pieces",
    "blank_trees",
    "lattice_of",
    "piece_columns",
    "with_squared_prices",
]


@final
@dataclass(frozen=True, eq=False)
class Lattice(Record):
    """Columns that have values on a lattice only, as `lattice_kernel` takes them.

    Linear conditions may hold only where a level is taken up, one of those in `present`, or where
    none of those in `absent` is: condition c by test ``row_test[c]``, unless that is -1.
    """

    column: NDArray[np.int64]  # (q,) position among all features
    step: Floats  # (q,)
    parts: Floats  # (q,)
    is_from_input: NDArray[np.bool_]  # (q,)
    least: Floats  # (q,) how much a value changes if it does; 0 for any
    place: NDArray[np.int64]  # (all features,) position among these columns; -1 for others
    row_test: NDArray[np.int64]  # (c,)
    present_start: NDArray[np.int64]  # (tests + 1,)
    present: NDArray[np.int64]  # columns
    has_absent: NDArray[np.bool_]  # (tests,) whether the second way is open
    absent_start: NDArray[np.int64]  # (tests + 1,)
    absent: NDArray[np.int64]  # columns

    def only(self, kept: NDArray[np.bool_]) -> Lattice:
        """Leave out some of the columns, (q,)."""
        at = self.column[kept]
        return replace(
            self,
            column=at, step=self.step[kept], parts=self.parts[kept],
            is_from_input=self.is_from_input[kept], least=self.least[kept],
            place=_places(at, self.place.size),
        )  # fmt: skip

    def beside(self, columns: NDArray[np.int64]) -> Lattice:
        """Put columns behind the others that have no lattice of their own: `place` leaves them out.

        What they have instead is said elsewhere.
        """
        one, nothing = np.ones(columns.size), np.zeros(columns.size)
        return replace(
            self,
            column=np.concatenate([self.column, columns]),
            step=np.concatenate([self.step, one]),
            parts=np.concatenate([self.parts, one]),
            is_from_input=np.concatenate([self.is_from_input, nothing > 0]),
            least=np.concatenate([self.least, nothing]),
        )


@final
@dataclass(frozen=True, eq=False)
class Pieces(Record):
    """Values that lie in pieces, and where conditions on numbers apply, for some rows.

    First for searches: q counts the columns that these branch on, and k their pieces, from the
    least to the largest. A condition applies within parts of the changes of its column, which cuts
    part from the others. Then for proofs: s counts the columns of pieces, and spans hold every
    change that is allowed, rounded outwards.
    """

    first: NDArray[np.int64]  # (1,) the row that these begin with
    is_piece: NDArray[np.bool_]  # (q,) or else a column of the lattice
    low: Floats  # (n, q, k) least value of each piece
    high: Floats  # (n, q, k)
    between: Floats  # (n, q, k) the change where a piece ends for the next one to begin
    counts: NDArray[np.int64]  # (n, q)
    size: Floats  # (n, q) least width of a gap
    is_number_test: NDArray[np.bool_]  # (t,) or else one of levels
    test_column: NDArray[np.int64]  # (t,) among all features; -1 for one of levels
    test_place: NDArray[np.int64]  # (t,) the same among q; -1 where nothing is branched on
    applies: NDArray[np.bool_]  # (n, t, k) throughout a piece of that column
    part_low: Floats  # (n, t, parts)
    part_high: Floats
    part_count: NDArray[np.int64]  # (n, t)
    cut: Floats  # (n, t, cuts)
    cut_count: NDArray[np.int64]  # (n, t)
    column: NDArray[np.int64]  # (s,) among all features
    span_low: Floats  # (n, s, k)
    span_high: Floats
    span_count: NDArray[np.int64]  # (n, s)


def piece_columns(template: ProgramTemplate) -> NDArray[np.int64] | None:
    """Columns whose values lie in pieces, as compiled code takes them; None for more than that.

    Of whole numbers and decimals single values may be listed. A column of reals has pieces where
    values are listed, where it has a least change, and on either side of a threshold.
    """
    grid, found = template.grid, set[int]()
    for rule in grid.rules:
        if grid.step[rule.column] > 0 and not all(part.is_point for part in rule.parts):
            return None
        found.add(rule.column)
    found |= {j for j in grid.least if grid.step[j] == 0}
    tested = {item.test.column for item in template.conditionals if item.test is not None}
    found |= {j for j in tested if grid.step[j] == 0}
    return np.array(sorted(found), dtype=np.int64)


def lattice_of(template: ProgramTemplate) -> Lattice | None:
    """State the grid for compiled code, without columns of pieces; None where it says more.

    Linear conditions are counted as in `ProgramTemplate.unconditional`.
    """
    grid, tests, apart = template.grid, template.conditionals, piece_columns(template)
    if template.quadrics or apart is None:
        return None
    at = np.setdiff1d(grid.lattice, apart).astype(np.int64)
    nothing = np.zeros(0, dtype=np.int64)
    from_input = np.zeros(at.size, dtype=bool) if grid.from_input is None else grid.from_input[at]
    sizes = [template.inequalities.v.size, *(item.rows.v.size for item in tests),
             template.equalities.v.size]  # fmt: skip
    present = [item.present.astype(np.int64) for item in tests]
    absent = [nothing if item.absent is None else item.absent.astype(np.int64) for item in tests]
    return Lattice(
        column=at,
        step=grid.step[at],
        parts=grid.parts[at],
        is_from_input=np.array(from_input),
        least=np.array([grid.least.get(j, 0.0) for j in at.tolist()]),
        place=_places(at, template.w.size),
        row_test=np.repeat([-1, *range(len(tests)), -1], sizes).astype(np.int64),
        present_start=_starts(present),
        present=np.concatenate([nothing, *present]),
        has_absent=np.array([item.absent is not None for item in tests], dtype=bool),
        absent_start=_starts(absent),
        absent=np.concatenate([nothing, *absent]),
    )


def _places(at: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    place = np.full(width, -1, dtype=np.int64)
    place[at] = np.arange(at.size)
    return place


def _starts(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.cumsum([0, *(part.size for part in parts)]).astype(np.int64)


def with_squared_prices(template: ProgramTemplate) -> ProgramTemplate:
    """Charge the square of each change of level beside a quadratic cost, instead of its size.

    Both are the same where a level is taken up or not, and the square is less in between: what is
    found for it is an answer, and multipliers for it are worth at least as much for the true cost.
    """
    L, w = template.L, template.w
    if not w.any() or not L.shape[0] or not isinstance(L, np.ndarray):
        return template
    at = np.flatnonzero(w)
    levels = np.zeros(w.size, dtype=bool)
    for group in template.grid.groups:
        levels[group] = True
    if not levels[at].all():
        return template
    more = np.zeros((at.size, w.size))
    more[np.arange(at.size), at] = np.sqrt(w[at])
    return replace(template, w=np.zeros(w.size), L=np.concatenate([L, more]), form=None, ways=None)


@final
@dataclass(frozen=True, eq=False)
class PackedTrees(Record):
    """Trees of many rows; a node without a cut is a leaf, and only leaves need multipliers.

    The entries of a node are multipliers: on a rival, by the index of its prototype, or on linear
    condition c, by ``-1 - c``.
    """

    feature: NDArray[np.int64]  # (nodes,) across which a node is cut; -1 for a leaf
    at: Floats  # (nodes,) the change where it is cut
    low: NDArray[np.int64]  # (nodes,) the part below the cut, counted from the root
    high: NDArray[np.int64]  # (nodes,)
    start: NDArray[np.int64]  # (nodes,) first entry
    counts: NDArray[np.int64]  # (nodes,) entries
    indices: NDArray[np.int64]  # (entries,)
    value: Floats  # (entries,)
    point: Floats  # (nodes, d) where a quadratic cost is replaced by its tangent; (0, d) if none
    prototype: NDArray[np.int64]  # (trees,)
    root: NDArray[np.int64]  # (trees,) node
    size: NDArray[np.int64]  # (trees,) nodes
    row_first: NDArray[np.int64]  # (rows,) tree
    row_count: NDArray[np.int64]  # (rows,)
    used: NDArray[np.int64]  # (3,) nodes, entries and trees so far


def blank_trees(
    rows: int, nodes: int, entries: int, trees: int, width: int, is_quadratic: bool
) -> PackedTrees:
    """Set memory aside."""

    def whole(count: int) -> NDArray[np.int64]:
        return np.zeros(count, dtype=np.int64)

    return PackedTrees(
        feature=whole(nodes),
        at=np.zeros(nodes),
        low=whole(nodes),
        high=whole(nodes),
        start=whole(nodes),
        counts=whole(nodes),
        indices=whole(entries),
        value=np.zeros(entries),
        point=np.zeros((nodes if is_quadratic else 0, width)),
        prototype=whole(trees),
        root=whole(trees),
        size=whole(trees),
        row_first=whole(rows),
        row_count=whole(rows),
        used=whole(3),
    )

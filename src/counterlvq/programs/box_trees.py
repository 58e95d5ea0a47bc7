"""Trees of boxes in plain arrays, as compiled searches write them and compiled proofs read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats
from counterlvq.programs.template import ProgramTemplate

__all__ = ["Lattice", "PackedTrees", "blank_trees", "lattice_of", "with_squared_prices"]


class Lattice(NamedTuple):
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
        return self._replace(
            column=at, step=self.step[kept], parts=self.parts[kept],
            is_from_input=self.is_from_input[kept], least=self.least[kept],
            place=_places(at, self.place.size),
        )  # fmt: skip


def lattice_of(template: ProgramTemplate) -> Lattice | None:
    """State the grid for compiled code; None where it says more than a lattice does.

    Linear conditions are counted as in `ProgramTemplate.unconditional`.
    """
    grid, tests = template.grid, template.conditionals
    if template.quadrics or grid.rules or any(grid.step[j] == 0 for j in grid.least):
        return None
    if any(item.test is not None for item in tests):
        return None
    at, nothing = grid.lattice.astype(np.int64), np.zeros(0, dtype=np.int64)
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


class PackedTrees(NamedTuple):
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

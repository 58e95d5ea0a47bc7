"""Run the compiled branch and bound over rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.records import Record
from counterlvq.programs.box_trees import Lattice, PackedTrees, Pieces, blank_trees
from counterlvq.programs.kernel_data import KernelData
from counterlvq.programs.proof_data import ProofData
from counterlvq.solvers.compiled import Scratch, scratch_for
from counterlvq.solvers.kernels import branching as kernels

__all__ = ["Branched", "Room", "branch_rows", "branched", "room_for"]

# Boxes that one row may take before it is left to the search that has no such limit, and how deep
# they may lie in each other.
_MOST_NODES = 4096
_MOST_DEPTH = 256
# Boxes of many rows that are kept at once, and multipliers for each.
_KEPT_NODES = 1 << 14
_PER_NODE = 8


@final
@dataclass(frozen=True, eq=False)
class _Places(Record):
    """Memory for the lattice columns that may change, and for boxes that wait."""

    at: NDArray[np.int64]  # (q,) position in `KernelData.columns`
    is_pure: NDArray[np.bool_]  # (c,) linear conditions on lattice columns alone
    right: Floats  # (c,) their right-hand sides, whether they apply or not
    down: Floats  # (q,)
    up: Floats
    low: Floats
    high: Floats
    root_low: Floats
    root_high: Floats
    spot: Floats
    best_spot: Floats
    miss: Floats
    below: Floats
    best_delta: Floats  # (all features,)
    stack_node: NDArray[np.int64]  # (depth,)
    stack_low: Floats  # (depth, q)
    stack_high: Floats


@final
@dataclass(frozen=True, eq=False)
class Room:
    """Memory of one thread, for one target."""

    family: KernelData
    lattice: Lattice  # of the columns that may change
    lattice_given: Lattice  # of all columns
    branched: NDArray[np.int64]  # (q,) columns that are branched on, among all features
    scratch: Scratch
    places: _Places
    trees: PackedTrees


def room_for(
    family: KernelData,
    lattice: Lattice,
    rows: int,
    spare: Room | None = None,
    in_pieces: NDArray[np.int64] | None = None,
) -> Room:
    """Set memory aside for one thread that answers up to `rows` rows at a time.

    `in_pieces` are columns whose values lie in pieces. `spare` is memory that may be used for
    another target from now on; trees stay where they are.
    """
    if spare is not None and spare.lattice_given is lattice and _same_shapes(spare, family):
        return replace(spare, family=family)
    position = np.full(family.center.size, -1, dtype=np.int64)
    position[family.columns] = np.arange(family.columns.size)
    kept = position[lattice.column] >= 0
    own = lattice.only(kept)
    if in_pieces is not None:
        own = own.beside(in_pieces[position[in_pieces] >= 0])
    q, width = own.column.size, family.center.size
    is_real = np.ones(width, dtype=bool)
    is_real[lattice.column] = False
    moved = family.A[:, family.columns] != 0

    def reals(*shape: int) -> Floats:
        return np.zeros(shape)

    places = _Places(
        at=position[own.column], is_pure=~moved[:, is_real[family.columns]].any(axis=1),
        right=reals(family.v.size), down=reals(q), up=reals(q), low=reals(q), high=reals(q),
        root_low=reals(q),
        root_high=reals(q), spot=reals(q), best_spot=reals(q), miss=reals(q), below=reals(q),
        best_delta=reals(width), stack_node=np.zeros(_MOST_DEPTH, dtype=np.int64),
        stack_low=reals(_MOST_DEPTH, q), stack_high=reals(_MOST_DEPTH, q),
    )  # fmt: skip
    if spare is not None and spare.family.is_quadratic == family.is_quadratic:
        return Room(family, own, lattice, own.column, scratch_for(family), places, spare.trees)
    pt = family.targets.size
    nodes = max(_KEPT_NODES, 2 * _MOST_NODES) if rows > 1 else _MOST_NODES + 2
    trees = blank_trees(rows, nodes, _PER_NODE * nodes, max(pt, nodes), width, family.is_quadratic)
    return Room(family, own, lattice, own.column, scratch_for(family), places, trees)


def _same_shapes(room: Room, family: KernelData) -> bool:
    """Whether memory for one family fits another one with the same conditions."""
    there = room.family
    return (
        there.A is family.A
        and there.TA.shape == family.TA.shape
        and there.RA.shape == family.RA.shape
        and there.is_quadratic == family.is_quadratic
    )


class Branched(NamedTuple):
    """What the kernel says of some rows: not judged yet, and nothing is proved."""

    rows: slice
    Y: Floats  # (n, all features)
    code: NDArray[np.int64]  # (n,) as in `compiled.Code`
    trees: PackedTrees  # of these rows, until the next ones are asked for


def branched(
    room: Room,
    stated: ProofData,
    X: Floats,
    margin: float | None,
    least: Floats,
    pieces: Pieces | None = None,
) -> Iterator[Branched]:
    """Answer the rows of X, as many at a time as the trees have room for."""
    at, most = 0, room.trees.row_first.size
    while at < len(X):
        # Compiled code tells read-only arrays apart and would be compiled twice.
        part = np.require(X[at : at + most], requirements=["C", "W"])
        Y, code = np.empty(part.shape), np.empty(len(part), dtype=np.int64)
        lead = np.array(least[at : at + most], dtype=np.float64)
        room.trees.used[:] = 0
        here = None if pieces is None else replace(pieces, first=pieces.first - at)
        done = branch_rows(room, stated, part, slice(0, len(part)), margin, lead, Y, code, here)
        yield Branched(slice(at, at + done), Y[:done], code[:done], room.trees)
        at += done


def branch_rows(
    room: Room,
    stated: ProofData,
    X: Floats,
    part: slice,
    margin: float | None,
    least: Floats,
    Y: Floats,
    code: NDArray[np.int64],
    pieces: Pieces | None = None,
) -> int:
    """Answer a part of the rows of X, behind what the trees hold; returns how far they had room."""
    branch = kernels.branch_quadratic if room.family.is_quadratic else kernels.branch_absolute
    if pieces is not None:
        branch = kernels.branch_absolute_in_pieces
        if room.family.is_quadratic:
            branch = kernels.branch_quadratic_in_pieces
    asked = np.nan if margin is None else float(margin)
    # Compiled code tells read-only arrays apart and would be compiled twice.
    rows = np.require(X[: part.stop], requirements=["C", "W"])
    done = branch(
        room.family, stated, room.lattice, () if pieces is None else pieces, rows, part.start,
        asked, least[: part.stop], _MOST_NODES, room.scratch, room.places, room.trees,
        Y[: part.stop], code[: part.stop],
    )  # fmt: skip
    return int(done)

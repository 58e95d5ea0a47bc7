"""Packed trees of boxes as evidence: what they prove of one question, or of many rows at once.

The same compiled code judges a single answer and each row of a batch, so that both say the same to
the last bit. No solver is imported here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.certificates.box_kernel import prove_rows, prove_rows_in_pieces
from counterlvq.certificates.pieces import PieceGrounds, piece_grounds
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.records import Record
from counterlvq.programs.box_trees import Lattice, PackedTrees, Pieces, lattice_of
from counterlvq.programs.grids import Slacks
from counterlvq.programs.proof_data import (
    ProofData,
    coarse,
    limits_at,
    proof_data_of,
    proof_data_of_each,
    sides_at,
)
from counterlvq.programs.template import ProgramTemplate

__all__ = [
    "FlatGrounds",
    "ProofWork",
    "Targets",
    "flat_grounds",
    "flat_grounds_of_each",
    "leads_asked",
    "reach_at",
]

# How deep boxes may lie in each other.
_MOST_DEPTH = 512


@final
@dataclass(frozen=True, eq=False)
class ProofWork(Record):
    """Memory of the compiled proof."""

    low: Floats
    high: Floats
    root_low: Floats
    root_high: Floats
    nothing: Floats
    no_price: Floats  # (2, d) zeros
    tangent: Floats
    slope: Floats
    slope_error: Floats
    z: Floats
    g1: Floats
    g2: Floats
    down: Floats
    up: Floats
    listed: NDArray[np.int64]
    charged: Floats
    multipliers: Floats
    no_diagonal: Floats
    no_factor: Floats
    stack_node: NDArray[np.int64]
    stack_low: Floats
    stack_high: Floats

    def fits(self, d: int, r: int, entries: int, q: int, c: int) -> bool:
        """Whether this is memory for so many columns, multipliers and conditions."""
        sizes = self.low.size, self.z.size, self.down.size, self.multipliers.size
        return sizes == (d, r, q, c) and entries <= self.listed.size


class Targets(NamedTuple):
    """Which prototypes the cells are of, and which they compete with."""

    prototypes: NDArray[np.int64]
    is_rival: NDArray[np.bool_]  # (p,)

    @classmethod
    def of(cls, targets: NDArray[np.intp], rivals: NDArray[np.intp], count: int) -> Targets:
        """State cells of a model with so many prototypes."""
        is_rival = np.zeros(count, dtype=bool)
        is_rival[rivals] = True
        return cls(targets.astype(np.int64), is_rival)


@final
@dataclass(frozen=True, eq=False)
class FlatGrounds:
    """What bounds over boxes rest on where every condition is linear, for any input."""

    stated: ProofData
    extent: Floats  # (2, d) of the prototypes, from the least value to the largest
    slacks: Slacks  # of the linear conditions
    lattice: Lattice
    pieces: PieceGrounds | None  # None where a lattice says it all

    def bounds(
        self,
        X: Floats,
        caps: Floats,
        margins: Floats,
        targets: Targets,
        trees: PackedTrees,
        pieces: Pieces | None = None,
        work: ProofWork | None = None,
    ) -> Floats:
        """Cost that no counterfactual of each row undercuts, at most `caps`; 0 if not proved.

        `pieces` are those of the rows, if they are known already, and `work` is memory for them.
        """
        if self.pieces is not None and pieces is None:
            pieces = self.pieces.at(X)
        out, prove = np.zeros(len(X)), prove_rows if pieces is None else prove_rows_in_pieces
        work = self.work(trees) if work is None else work
        prove(
            self.stated, self.extent, self.slacks, self.lattice, () if pieces is None else pieces,
            np.require(X, requirements=["C", "W"]),
            np.array(caps, dtype=np.float64), np.array(margins, dtype=np.float64),
            targets.prototypes, targets.is_rival, trees, work, out,
        )  # fmt: skip
        return out

    def work(self, trees: PackedTrees, spare: ProofWork | None = None) -> ProofWork:
        """Set memory aside for a proof by some trees, or use some that is spare."""
        d, r = self.stated.w.size, self.stated.anchors.shape[1]
        entries = int(trees.counts.max(initial=0))
        q, c = self.lattice.column.size, self.stated.v.size
        if spare is not None and spare.fits(d, r, entries, q, c):
            return spare

        def reals(*shape: int) -> Floats:
            return np.zeros(shape)

        return ProofWork(
            low=reals(d), high=reals(d), root_low=reals(d), root_high=reals(d), nothing=reals(d),
            no_price=reals(2, d), tangent=reals(d), slope=reals(d), slope_error=reals(d),
            z=reals(r), g1=reals(r), g2=reals(r), down=reals(q), up=reals(q),
            listed=np.zeros(entries, dtype=np.int64),
            charged=reals(entries), multipliers=reals(c), no_diagonal=reals(0),
            no_factor=reals(0, d), stack_node=np.zeros(_MOST_DEPTH, dtype=np.int64),
            stack_low=reals(_MOST_DEPTH, d), stack_high=reals(_MOST_DEPTH, d),
        )  # fmt: skip


def flat_grounds(template: ProgramTemplate, model: PrototypeModel) -> FlatGrounds | None:
    """State what compiled proofs over boxes rest on; None where they cannot tell enough."""
    lattice = template.derived(lattice_of)
    if lattice is None:
        return None
    extent = np.array([model.prototypes.min(axis=0), model.prototypes.max(axis=0)])
    stated = proof_data_of(template.unconditional, model)
    pieces = template.derived(piece_grounds)
    return FlatGrounds(stated, extent, template.derived(_slacks_of), lattice, pieces)


def flat_grounds_of_each(
    template: ProgramTemplate, models: Sequence[PrototypeModel]
) -> list[FlatGrounds | None]:
    """As `flat_grounds` for models that differ in prototypes and factor, of one shape."""
    lattice = template.derived(lattice_of)
    if lattice is None:
        return [None] * len(models)
    points = np.stack([model.prototypes for model in models])
    extents = np.stack([points.min(axis=1), points.max(axis=1)], axis=1)
    each = proof_data_of_each(template.unconditional, models)
    more = template.derived(_slacks_of), lattice, template.derived(piece_grounds)
    pairs = zip(each, extents, strict=True)
    return [FlatGrounds(stated, extent, *more) for stated, extent in pairs]


def _slacks_of(template: ProgramTemplate) -> Slacks:
    """Say what the linear conditions of a template give way by, as `ProofData` lists them."""
    whole = template.unconditional
    return template.grid.slacks(np.concatenate([whole.inequalities.A, whole.equalities.A]))


def reach_at(stated: ProofData, X: Floats, caps: Floats) -> Floats:
    """How far rows may change, by bounds on single features and a cost of at most `caps`, (n, d).

    Infinite where neither limits a change.
    """
    return np.asarray(np.minimum(limits_at(stated, caps), sides_at(stated, X)))


def leads_asked(margin: float, around: Floats, within: Floats, caps: Floats) -> Floats:
    """Lead over rivals that bounds are about, (n,), where `predict` may overlook some.

    That is `within` at all changes that matter. Where nothing limits these, and no cost is known,
    what is overlooked around the input has to do. Rounded up to few digits, so that a row is
    judged the same alone and among others.
    """
    blur = np.where(np.isinf(within) & np.isinf(caps), around, within)
    return margin - coarse(blur)

"""One row through the compiled kernel again and again, with other columns held each time.

Whoever branches over which columns change asks tens of questions about one row that differ in
nothing but that. Each column has two more bounds here, by which it stays where it is, and which
are lifted unless it is held: no program is stated twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.certificates.cellwise import CellCertificate
from counterlvq.numeric.arrays import Floats
from counterlvq.programs.kernel_data import KernelData
from counterlvq.programs.proof_data import ProofData
from counterlvq.search.exact import certificate_of
from counterlvq.solvers import compiled
from counterlvq.solvers.compiled import Code

__all__ = ["HeldFound", "HeldKernel", "HeldRow"]


class HeldFound(NamedTuple):
    """What the kernel says of a row of which some columns are held."""

    is_solved: bool
    is_empty: bool  # proved to be
    y: Floats  # (d,)
    cost: float
    bound: float  # proved
    trace: compiled.Trace


@final
@dataclass(frozen=True, eq=False)
class HeldKernel:
    """What the kernel is asked with, for one wish. Threads may share it."""

    stated: ProofData
    family: KernelData
    _spare: list[HeldRow] = field(init=False, default_factory=list)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the memory behind: it holds nothing."""
        return {**self.__dict__, "_spare": []}

    def borrowed(self, x: Floats, least: float, blur: float) -> HeldRow:
        """Return memory for one row, to be handed back to `hand_back`."""
        try:
            row = self._spare.pop()
        except IndexError:
            row = HeldRow.of(self.family, self.stated)
        row.begin(x, least, blur)
        return row

    def hand_back(self, row: HeldRow) -> None:
        """Take memory back."""
        self._spare.append(row)


@final
@dataclass(frozen=True, eq=False)
class HeldRow:
    """A row, and which of its columns and bounds are held; all of it is written to."""

    family: KernelData
    stated: ProofData
    movable: NDArray[np.bool_]  # (d,) of columns that none holds
    user_bounds: tuple[Floats, Floats]  # values of the bounds as they were stated
    scratch: compiled.Scratch
    X: Floats  # (1, d)
    least: Floats  # (1,)
    blur: Floats  # (1,)
    answers: compiled.Answers  # of one row

    @classmethod
    def of(cls, family: KernelData, stated: ProofData) -> HeldRow:
        """Set memory aside."""
        d, columns = stated.movable.size, family.columns
        count = columns.size
        places = np.arange(count)
        signs = np.repeat([1.0, -1.0], count)
        old = np.zeros((2 * count, d))
        old[np.arange(2 * count), np.tile(columns, 2)] = -signs
        lifted = np.full(2 * count, np.inf)
        own_family = replace(
            family,
            gains=np.zeros((1, 0)),  # other columns gain otherwise
            bound_column=np.concatenate([family.bound_column, places, places]),
            bound_slope=np.concatenate([family.bound_slope, signs]),
            bound_old=np.concatenate([family.bound_old, old]),
            bound_value=np.concatenate([family.bound_value, lifted]),
            bound_fixes=np.concatenate([family.bound_fixes, np.zeros(2 * count, dtype=bool)]),
        )
        own_stated = replace(
            stated,
            movable=stated.movable.copy(),
            single_new=np.concatenate([stated.single_new, -old]),
            single_old=np.concatenate([stated.single_old, old]),
            single_value=np.concatenate([stated.single_value, lifted]),
            single_equality=np.concatenate(
                [stated.single_equality, np.zeros(2 * count, dtype=bool)]
            ),
            single_column=np.concatenate([stated.single_column, np.tile(columns, 2)]),
        )
        return cls(
            own_family, own_stated, stated.movable,
            (own_family.bound_value.copy(), own_stated.single_value.copy()),
            compiled.scratch_for(family), np.zeros((1, d)), np.zeros(1), np.zeros(1),
            compiled.Answers(np.zeros((1, d)), np.zeros(1), np.zeros(1), np.zeros(1, np.int64)),
        )  # fmt: skip

    def begin(self, x: Floats, least: float, blur: float) -> None:
        """Start with a row of which nothing is held."""
        self.X[0], self.least[0], self.blur[0] = x, least, blur
        self.family.bound_value[:], self.stated.single_value[:] = self.user_bounds

    def ask(self, held: Iterable[int]) -> HeldFound:
        """Answer the row with some columns held."""
        family, stated, out = self.family, self.stated, self.answers
        count = family.columns.size
        stays = np.zeros(stated.movable.size, dtype=bool)
        stays[list(held)] = True
        np.logical_and(self.movable, ~stays, out=stated.movable)
        ends = np.where(stays[family.columns], 0.0, np.inf)
        for values in (family.bound_value, stated.single_value):
            values[-2 * count : -count] = values[-count:] = ends
        compiled.kernel_for(family)(
            family, stated, self.X, np.nan, self.least, self.blur, self.scratch, out.Y, out.cost,
            out.bound, out.code,
        )  # fmt: skip
        is_empty = bool(out.code[0] == Code.INFEASIBLE)
        return HeldFound(
            bool(out.code[0] == Code.SOLVED),
            is_empty,
            out.Y[0].copy(),
            float(out.cost[0]),
            np.inf if is_empty else float(out.bound[0]),
            compiled.trace_of(self.scratch),
        )

    def stated_bounds(self) -> list[tuple[int, float, float] | None]:
        """State each bound of the user's as column, slope and value; None for any other kind."""
        family, count = self.family, self.user_bounds[0].size - 2 * self.family.columns.size
        if count != self.user_bounds[1].size - 2 * family.columns.size:
            return [None]  # some are about columns that stay anyway
        return [
            None
            if family.bound_fixes[b] or family.bound_old[b].any()
            else (
                int(family.columns[family.bound_column[b]]),
                float(family.bound_slope[b]),
                float(self.user_bounds[0][b]),
            )
            for b in range(count)
        ]

    def columns_of(self, bounds: Sequence[int]) -> list[int]:
        """Columns that bounds are about, each once."""
        found = self.family.columns[self.family.bound_column[list(bounds)]]
        return list(dict.fromkeys(found.tolist()))

    def lift(self, bounds: Sequence[int]) -> None:
        """Leave bounds out, until they are restored or another row is begun."""
        self.family.bound_value[list(bounds)] = np.inf
        self.stated.single_value[list(bounds)] = np.inf

    def restore(self, bounds: Sequence[int]) -> None:
        """Put bounds back that were left out."""
        at = list(bounds)
        self.family.bound_value[at] = self.user_bounds[0][at]
        self.stated.single_value[at] = self.user_bounds[1][at]

    def certificate(self, found: HeldFound, inequalities: int) -> CellCertificate:
        """State multipliers so that they can be checked."""
        return certificate_of(found.trace, self.family, inequalities)

"""The question that a certificate under a shared metric answers, in numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from counterlvq.cells import Halfspaces, SharedCells
from counterlvq.certificates.duality import Grounds, exact_rivals
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.lazy import cached_property
from counterlvq.programs.program import Program
from counterlvq.programs.proof_data import ProofData, limits_at, proof_data_of, sides_at
from counterlvq.programs.template import ProgramTemplate

__all__ = ["Question"]

# Pairs of prototypes that are looked at in fractions; with more, searches would take too long.
_MOST_NEAR = 100


@final
@dataclass(frozen=True, eq=False)
class Question:
    """What is asked, in numbers: from `x` into one of the cells, under the constraints."""

    template: ProgramTemplate
    cells: SharedCells
    x: Floats  # (d,)
    known: ProofData | None = None  # what proofs rest on, if it has been gathered
    # How far the arithmetic of the user's own `predict` may be off around `x`: where a rival leads
    # by less, the model may say that the target wins.
    blur: float = 0.0
    # The same at any change within limits (d,).
    blur_within: Callable[[Floats], float] | None = None
    is_exact: bool = True  # whether the model itself decides, ties too, rather than a foreign one

    @cached_property
    def spread(self) -> Floats:
        """How far the prototypes lie from `x` in each feature, (d,)."""
        return np.asarray(np.abs(self.cells.model.prototypes - self.x).max(axis=0))

    @cached_property
    def grounds(self) -> Grounds:
        """What bounds are computed from."""
        model = self.cells.model
        stated = proof_data_of(self.template, model) if self.known is None else self.known
        return Grounds(stated, model, self.template.quadrics, self.x)

    @cached_property
    def is_target(self) -> NDArray[np.bool_]:
        """Which prototypes may win, (p,)."""
        return _mask(self.cells.targets, self.cells.model.n_prototypes)

    @cached_property
    def is_rival(self) -> NDArray[np.bool_]:
        """Which prototypes have to be beaten, (p,)."""
        return _mask(self.cells.rivals, self.cells.model.n_prototypes)

    @property
    def ties_are_lost(self) -> bool:
        """Whether a tie with an earlier rival is lost for sure: the model decides it exactly."""
        return self.is_exact and self.blur == 0.0 and not self.cells.model.is_refereed

    def overlooked(self, cap: float) -> float:
        """Lead of a rival that the user's own `predict` may overlook at changes that cost `cap`.

        Without any limit on changes, and without a cost, what it is around `x` has to do.
        """
        if self.blur_within is None:
            return self.blur
        stated = self.grounds.stated
        limits = limits_at(stated, np.array([cap]))[0]
        found = self.blur_within(limits)
        if np.isinf(found):
            found = self.blur_within(np.minimum(limits, sides_at(stated, self.x[None, :])[0]))
        return self.blur if np.isinf(found) and np.isinf(cap) else found

    def holding(self, columns: frozenset[int]) -> Question:
        """State the same with some columns held, for whoever checks a proof of that.

        A bound on one feature has no multiplier, so that proofs look the same.
        """
        if not columns:
            return self
        return replace(self, known=self.grounds.stated.holding(columns))

    def program(self, prototype: int, rivals: NDArray[np.intp] | None = None) -> Program:
        """Program of one cell, with all rivals or the listed ones."""
        cell = self.cells.halfspaces(prototype, self.x, rivals)
        if self._near and rivals is None:
            cell = self._exactly(prototype, cell)
        return self.template.at(self.x, cell, self.spread)

    @cached_property
    def _near(self) -> dict[int, list[int]]:
        """Rivals of target prototypes, by position, that the metric tells apart by rounding alone.

        Where the model decides exactly, so do their half-spaces, and rounding would hide them.
        """
        found: dict[int, list[int]] = {}
        pairs = self.cells.model.nearly_alike if self.ties_are_lost else ()
        if len(pairs) <= _MOST_NEAR:
            for i, k in pairs:
                if self.is_target[i] and self.is_rival[k]:
                    found.setdefault(i, []).append(int(np.searchsorted(self.cells.rivals, k)))
        return found

    def units(self, prototype: int) -> Floats:
        """Return what each row of a cell is multiplied by in its program, (m,)."""
        units, near = np.ones(self.cells.rivals.size), self._near.get(prototype, [])
        if near:
            others = np.delete(self.cells.halfspaces(prototype, self.x).normals, near, axis=0)
            metric = np.abs(self.cells.model.shared_factor).max(initial=0.0) ** 2
            usual = np.abs(others).max(initial=0.0) or metric * self.spread.max()
            for n in near:
                size = float(max(map(abs, self._exact_row(prototype, n)[0])))
                units[n] = 2.0 ** (np.frexp(usual)[1] - np.frexp(size)[1]) if size else 1.0
        return units

    def _exact_row(self, prototype: int, at: int) -> tuple[list[Fraction], Fraction]:
        rival = int(self.cells.rivals[at])
        told = exact_rivals(self.cells.model, self.x, prototype, [(rival, 1.0)], Fraction(0))
        return told[0].row, told[0].right

    def _exactly(self, prototype: int, cell: Halfspaces) -> Halfspaces:
        """State the half-spaces that rounding would hide by their exact numbers, in their units."""
        normals, leads, units = cell.normals.copy(), cell.leads.copy(), self.units(prototype)
        for n in self._near.get(prototype, ()):
            row, lead = self._exact_row(prototype, n)
            unit = Fraction(units[n])
            normals[n], leads[n] = [float(a * unit) for a in row], float(lead * unit)
        return Halfspaces(normals, leads)


def _mask(at: NDArray[np.intp], count: int) -> NDArray[np.bool_]:
    mask = np.zeros(count, dtype=bool)
    mask[at] = True
    return mask

"""Whether a finished point is what was asked for, by `predict` and by every constraint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.arrays import Floats
from counterlvq.certificates import relative_gaps
from counterlvq.model import PrototypeModel
from counterlvq.programs import Blueprint

__all__ = ["EXACT_GAP", "Rules"]

# What OPTIMAL means for shared metrics.
EXACT_GAP = 1e-6
# Costs below this share of the cost of crossing the whole model cannot be told from zero to
# six digits: half of float64's digits go to where the boundary lies.
_RESOLUTION = 2.0**-25

# How far an inequality of the user may be off, relative to the numbers that meet in it, when
# it leaves no room at all; and an equality, which rarely holds to the last digit.
_INEQUALITY_ROUNDING = 2.0**-46
_EQUALITY_ROUNDING = 2.0**-40


@final
@dataclass(frozen=True, eq=False)
class Rules:
    """What a counterfactual has to satisfy; it knows nothing of how one is found."""

    model: PrototypeModel
    blueprint: Blueprint
    margin: float | None
    says: Callable[[Floats], NDArray[Any]] | None = None  # the user's own `predict`, if another

    def accepts(
        self, y: Floats, x: Floats, wished: NDArray[np.bool_], *, strict: bool = True
    ) -> bool:
        """Whether `y` has a wished-for label and meets every constraint.

        Inequalities have to hold to the last digit if `strict`.
        """
        Y, X = y[None, :], x[None, :]
        if not self.meets_constraints(Y, X, strict=strict)[0]:
            return False
        return bool(self.wins(Y, X, self.model.nearest(Y), wished)[0])

    def costs(self, Y: Floats, X: Floats) -> Floats:
        """Cost of each change, (n,)."""
        delta = Y - X
        # Sums row by row, so that a row costs the same alone and among others.
        flat = np.sum(np.abs(delta) * self.blueprint.w, axis=1)
        if not self.blueprint.L.shape[0]:
            return np.asarray(flat)
        lifted = np.einsum("nd,rd->nr", delta, self.blueprint.L)
        return np.asarray(flat + np.sum(lifted**2, axis=1))

    def gaps(self, cost: Floats, bound: Floats, X: Floats) -> Floats:
        """Share of each cost that its bound does not prove, (n,)."""
        prototypes, blueprint = self.model.prototypes, self.blueprint
        low, high = prototypes.min(axis=0), prototypes.max(axis=0)
        spread = np.maximum(np.abs(low - X), np.abs(high - X))
        floor: Floats = _RESOLUTION * (spread @ blueprint.w)
        if blueprint.L.shape[0]:
            lifted = spread @ blueprint.L.T
            floor = floor + _RESOLUTION**2 * np.einsum("ij,ij->i", lifted, lifted)
        return relative_gaps(cost, bound, floor)

    def meets_constraints(self, Y: Floats, X: Floats, *, strict: bool) -> NDArray[np.bool_]:
        """Which rows are finite and meet every constraint, (n,)."""
        good = np.asarray(np.isfinite(Y).all(axis=1))
        if not good.all():
            Y = np.where(good[:, None], Y, 0.0)
        blueprint = self.blueprint
        for rows in (blueprint.inequalities, blueprint.bounds):
            if rows.v.size:
                allowed = 0.0 if strict else _INEQUALITY_ROUNDING * rows.magnitude(Y, X)
                good &= (rows.excess(Y, X) <= allowed).all(axis=1)
        for rows in (blueprint.equalities, blueprint.fixed):
            if rows.v.size:
                allowed = _EQUALITY_ROUNDING * rows.magnitude(Y, X)
                good &= (rows.excess(Y, X) <= allowed).all(axis=1)
        for quadric in blueprint.quadrics:
            for n in np.flatnonzero(good):
                slack = 0.0 if strict else _INEQUALITY_ROUNDING * quadric.magnitude(Y[n])
                good[n] = quadric.excess(Y[n]) <= slack
        return good

    def wins(
        self, Y: Floats, X: Floats, nearest: NDArray[np.intp], wished: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Which rows have a wished-for label, by the margin unless they are unchanged, (n,)."""
        won = np.array(wished[nearest])
        if self.margin and won.any():
            scores = self.model.distances(Y)
            lead = scores[:, ~wished].min(axis=1, initial=np.inf) - scores[:, wished].min(axis=1)
            kept = lead >= self.margin - _EQUALITY_ROUNDING * scores.max(axis=1)
            won = won & (kept | (Y == X).all(axis=1))
        if self.says is not None and won.any():
            won[won] = np.isin(self.says(Y[won]), self.model.labels[wished])
        return won

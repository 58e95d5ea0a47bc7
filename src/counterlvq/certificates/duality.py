"""Proof from multipliers alone: what no counterfactual can undercut, and what cannot be.

This module imports no solver and believes none. Any non-negative multipliers on the conditions
of a cell, and any point at which convex terms are replaced by their tangents, give a function
that lies below the cost of every change of the cell; `duality_kernel` computes its least value
over a box with its rounding accounted for. Wrong multipliers give a weak bound, never a wrong one.

The box: the user's own bounds on single features, and the cost of the best known answer
(``|delta_j| <= cost / w_j`` for absolute costs and for the largest change, a multiple of its root
for definite quadratic ones). Nothing else limits a change. Where neither does, the charged
conditions have to cancel exactly, and `exact_duality` makes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.certificates.exact_duality import (
    Charged,
    ExactLeast,
    ExactSum,
    fractions_of,
    rounded_down,
)
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.exact import dot
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.tolerances import CLEARLY, HUGE, UNIT
from counterlvq.programs.conditions import QuadraticCondition
from counterlvq.programs.duality_kernel import (
    cell_value,
    limits_of,
    overtaking_costs,
    project_row,
)
from counterlvq.programs.program import Multipliers
from counterlvq.programs.proof_data import CostReach, ProofData, cost_limits

__all__ = ["Grounds", "Proof", "Value", "exact_rivals"]


@final
@dataclass(frozen=True, eq=False)
class Proof:
    """Multipliers that bound the cost of every point of one cell from below; nothing is trusted."""

    prototype: int  # without any rivals it does not matter: the constraints speak alone
    rivals: NDArray[np.intp]  # those that are charged for
    rival_prices: Floats
    constraint_prices: Multipliers  # on the user's constraints
    point: Floats  # (d,) where convex terms are replaced by tangents

    @classmethod
    def without_rivals(cls, multipliers: Multipliers, point: Floats) -> Proof:
        """Charge for constraints alone."""
        return cls(0, np.zeros(0, dtype=np.intp), np.zeros(0), multipliers, point)


class Value(NamedTuple):
    """A true lower bound of a sum, and what its rounding was reckoned at."""

    least: float
    rounding: float


@final
@dataclass(frozen=True, eq=False)
class Grounds:
    """What bounds at one input rest on: the user's numbers and nothing else."""

    stated: ProofData
    model: PrototypeModel | None  # None where the constraints speak alone
    quadrics: tuple[QuadraticCondition, ...]  # of the counterfactual itself
    x: Floats  # (d,)
    _boxes: dict[float, tuple[Floats, Floats]] = field(init=False, default_factory=dict)

    @cached_property
    def projected(self) -> tuple[Floats, float]:
        """The input in the space of the metric, and the length of its rounding."""
        data = self.stated
        z = np.zeros(data.anchors.shape[1])
        error = project_row(
            self._x, data.center, data.F_diagonal, data.F, data.column_lengths, data.is_plain, z
        )  # fmt: skip
        return z, float(error)

    @cached_property
    def limits(self) -> tuple[Floats, Floats]:
        """Smallest and largest change of each feature by the user's bounds, rounded outwards."""
        data, low, high = self.stated, np.empty(self.x.size), np.empty(self.x.size)
        limits_of(
            self._x, data.single_new, data.single_old, data.single_value, data.single_equality,
            data.single_column, low, high,
        )  # fmt: skip
        return low, high

    @cached_property
    def _x(self) -> Floats:
        """A copy that can be written to: compiled code tells read-only arrays apart."""
        return np.array(self.x)

    def box(self, cap: float) -> tuple[Floats, Floats]:
        """Limits of changes that cost at most `cap`, by bounds and cost."""
        known = self._boxes.get(cap)
        if known is not None:
            return known
        low, high = self.limits
        data = self.stated
        reach = CostReach(data.stretch, data.inverse, data.inverse_blur)
        up, down = cost_limits(data.least_ways, data.L, cap, reach)
        found = np.maximum(low, -down), np.minimum(high, up)
        self._boxes.clear()  # the last one is asked for again and again
        self._boxes[cap] = found
        return found

    def lower_bound(self, proof: Proof, cap: float, margin: float = 0.0) -> float:
        """Cost that no change of the cell undercuts, at most `cap`.

        `cap` is the cost of a known answer (or inf): only cheaper changes are of interest. One
        rival alone that is dear enough says it in one step, as in the kernels.
        """
        if proof.rivals.size == 1 and not _charges_constraints(proof):
            single = self.overtaking(np.array([proof.prototype]), proof.rivals, margin)[0]
            if single * CLEARLY >= cap:
                return min(cap, float(single))
        least = self.value(proof, margin, cap, with_cost=True).least
        # Costs are never negative, so 0 is the bound of last resort.
        return min(cap, max(0.0, least))

    def overtaking(
        self, prototypes: NDArray[np.intp], rivals: NDArray[np.intp], margin: float
    ) -> Floats:
        """Cost that no change undercuts by which each prototype overtakes one rival, (k,)."""
        data, (z, z_error) = self.stated, self.projected
        out = np.zeros(prototypes.size)
        if out.size and data.has_gains:
            overtaking_costs(
                data.F_diagonal, data.F, data.column_lengths, data.anchors, data.anchor_errors,
                z, z_error, data.ways, data.L_diagonal, data.inverse, data.inverse_blur,
                data.stretch, data.movable, np.array(prototypes, dtype=np.int64),
                np.array(rivals, dtype=np.int64), float(margin), out,
            )  # fmt: skip
        return out

    def contradicts(self, proof: Proof, margin: float = 0.0, cap: float = np.inf) -> bool:
        """Whether no change (of cost at most `cap`) meets the charged conditions."""
        return self.value(proof, margin, cap, with_cost=False).least > 0.0

    def value(self, proof: Proof, margin: float, cap: float, *, with_cost: bool) -> Value:
        """Least of the charged conditions, and the cost, over the box of changes up to `cap`."""
        data, (z, z_error), d = self.stated, self.projected, self.x.size
        low, high = self.box(cap)
        nothing = np.zeros(0)
        extra = self._tangents(proof)
        least, rounding = cell_value(
            data.F_diagonal, data.F, data.column_lengths, data.anchors, data.anchor_errors,
            z, z_error, self._x, data.A, data.R, data.v, data.equality,
            data.ways if with_cost else np.zeros((2, d)),
            data.L_diagonal if with_cost else nothing,
            data.L if with_cost else np.zeros((0, d)),
            max(proof.prototype, 0), np.array(proof.rivals, dtype=np.int64),
            np.array(proof.rival_prices, dtype=np.float64), _linear(proof),
            np.where(np.abs(proof.point) < HUGE, proof.point, 0.0), *extra,
            low, high, float(margin), *(np.empty(z.size) for _ in range(2)),
            *(np.empty(d) for _ in range(2)),
        )  # fmt: skip
        return Value(float(least), float(rounding))

    def _tangents(self, proof: Proof) -> tuple[Floats, Floats, float, float]:
        """Sum the charged quadrics, by their tangents: slope, its error, constant, its error."""
        d = self.x.size
        slope, error, constant, constant_error = np.zeros(d), np.zeros(d), 0.0, 0.0
        for multiplier, quadric in zip(proof.constraint_prices.nu, self.quadrics, strict=True):
            if not 0.0 < multiplier < HUGE:
                continue
            G, h = quadric.G, quadric.h
            n = G.shape[0] + d + 8
            v = self._touching(quadric, proof.point)
            # |G y - g|^2 >= 2 v'(G y - g) - |v|^2 for any v, and y = x + delta.
            slope += multiplier * (2.0 * v @ G + h)
            error += n * UNIT * multiplier * (2.0 * np.abs(v) @ np.abs(G) + np.abs(h))
            there = G @ self.x - quadric.g
            sizes = np.abs(G) @ np.abs(self.x) + np.abs(quadric.g)
            constant += multiplier * float(2.0 * v @ there - v @ v + h @ self.x - quadric.c)
            size = 2.0 * np.abs(v) @ sizes + v @ v + np.abs(h) @ np.abs(self.x) + abs(quadric.c)
            constant_error += 2.0 * n * UNIT * multiplier * float(size)
        return slope, error, constant, constant_error

    def _touching(self, quadric: QuadraticCondition, point: Floats) -> Floats:
        usable = np.where(np.abs(point) < HUGE, point, 0.0)
        return np.asarray(quadric.G @ (self.x + usable) - quadric.g)

    def exact_least(
        self, proof: Proof, margin: float, cap: float, *, with_cost: bool
    ) -> ExactLeast | None:
        """As `value`, without any rounding; None where the sum has no least value."""
        data, d = self.stated, self.x.size
        if not np.isfinite(margin):
            return None
        low, high = (
            [None if not np.isfinite(end) else Fraction(float(end)) for end in ends]
            for ends in self.box(cap)
        )
        if any(a is not None and b is not None and a > b for a, b in zip(low, high, strict=True)):
            return None
        up, down = (fractions_of(way) if with_cost else [Fraction(0)] * d for way in data.ways)
        total = ExactSum(
            up,
            down,
            low,
            high,
            [Fraction(0)] * d,
            Fraction(0),
        )
        if with_cost:
            self._add_exact_tangent(total, proof.point)
        for multiplier, quadric in zip(proof.constraint_prices.nu, self.quadrics, strict=True):
            if multiplier > 0.0 and quadric.stated is not None and quadric.h.any():
                return None  # its slopes stand for what was stated up to rounding only
            if 0.0 < multiplier < HUGE:
                self._add_exact_quadric(total, quadric, float(multiplier), proof.point)
        if self.model is not None:
            charged = zip(proof.rivals.tolist(), proof.rival_prices.tolist(), strict=True)
            asked = Fraction(float(margin))
            total.charged += exact_rivals(self.model, self.x, proof.prototype, charged, asked)
        total.charged += self._exact_rows(proof)
        return total.least()

    def exact_lower_bound(self, proof: Proof, cap: float, margin: float = 0.0) -> float:
        """As `lower_bound`, in exact arithmetic."""
        least = self.exact_least(proof, margin, cap, with_cost=True)
        return 0.0 if least is None else min(cap, max(0.0, rounded_down(least.value)))

    def _add_exact_tangent(self, total: ExactSum, point: Floats) -> None:
        data = self.stated
        L = np.diag(data.L_diagonal) if data.L_diagonal.size else data.L
        v = L @ np.where(np.abs(point) < HUGE, point, 0.0)
        for c in range(v.size):
            row = [2 * a for a in fractions_of(L[c])]
            t = Fraction(float(v[c]))
            total.charged.append(Charged(row, Fraction(0), t, is_free=True, curvature=Fraction(1)))

    def _add_exact_quadric(
        self, total: ExactSum, quadric: QuadraticCondition, multiplier: float, point: Floats
    ) -> None:
        y = Fraction(multiplier)
        v = self._touching(quadric, point)
        for c in range(v.size):
            t = Fraction(float(v[c]))
            there = dot(quadric.G[c], self.x) - Fraction(float(quadric.g[c]))
            row = [2 * a for a in fractions_of(quadric.G[c])]
            total.charged.append(Charged(row, -2 * there, y * t, is_free=True, curvature=y))
        total.slope = [s + y * a for s, a in zip(total.slope, fractions_of(quadric.h), strict=True)]
        total.constant += y * (dot(quadric.h, self.x) - Fraction(float(quadric.c)))

    def _exact_rows(self, proof: Proof) -> list[Charged]:
        data, multipliers, out = self.stated, _linear(proof), []
        for c in np.flatnonzero(multipliers):
            row, free = fractions_of(data.A[c]), bool(data.equality[c])
            if not abs(multipliers[c]) < HUGE or (multipliers[c] < 0 and not free):
                continue
            right = Fraction(float(data.v[c])) - dot(data.A[c], self.x) - dot(data.R[c], self.x)
            out.append(Charged(row, right, Fraction(float(multipliers[c])), free))
        return out


def exact_rivals(
    model: PrototypeModel,
    x: Floats,
    prototype: int,
    charged: Iterable[tuple[int, float]],
    margin: Fraction,
) -> list[Charged]:
    """Charge for being nearer than rivals under a shared metric, by `margin`."""
    out: list[Charged] = []
    factor = model.omegas
    assert not isinstance(factor, tuple)  # shared metrics alone have half-spaces
    for k, y in charged:
        if not 0.0 < y < HUGE:
            continue
        own, other = (fractions_of(model.prototypes[n]) for n in (prototype, k))
        ahead = [b - a for a, b in zip(own, other, strict=True)]
        if factor is not None and factor.ndim == 1:
            ahead = [f * f * t for f, t in zip(fractions_of(factor), ahead, strict=True)]
        elif factor is not None:
            rows = [fractions_of(row) for row in factor]
            image = [sum((f * t for f, t in zip(row, ahead, strict=True)), Fraction(0))
                     for row in rows]  # fmt: skip
            ahead = [
                sum((row[j] * image[c] for c, row in enumerate(rows)), Fraction(0))
                for j in range(x.size)
            ]
        lead = model.exact_distance(x, k) - model.exact_distance(x, prototype)
        out.append(Charged([2 * a for a in ahead], lead - margin, Fraction(y), False, k))
    return out


def _linear(proof: Proof) -> Floats:
    """Multipliers on inequalities and equalities, one after the other."""
    return np.concatenate([proof.constraint_prices.y, proof.constraint_prices.z]).astype(np.float64)


def _charges_constraints(proof: Proof) -> bool:
    prices = proof.constraint_prices
    return bool(prices.y.any() or prices.z.any() or prices.nu.any())

"""Proof from multipliers alone: what no counterfactual can undercut, and what cannot be.

This module imports no solver and believes none. Any non-negative prices `y`, `nu` and any
prices `z` on the conditions of a program, and any point at which its convex terms are
replaced by their tangents, give a function that lies below the cost of every feasible
change. That function is separable, so its minimum over a box is a sum of one-dimensional
minima that can be written down. Wrong multipliers give a weak bound, never a wrong one.

The box: a change that costs no more than the best known answer is limited by its own cost
(``|delta_j| <= cap / w_j`` for absolute costs, ``delta_j^2 <= cap (P^-1)_jj`` for definite
quadratic ones). Only along directions where the cost is flat, and for proofs that nothing
is feasible, the program's own `reach` stands in: about 65,000 times the spread of the
data. It is there to absorb the last digits of the multipliers and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from counterlvq.arrays import Floats
from counterlvq.programs import Multipliers, Program

__all__ = ["Evidence", "contradiction", "lower_bound", "relative_gap", "within_cost"]

# Rounding of the sums below, as a share of the largest terms; taken off every bound.
_ROUNDING = 2.0**-49
# Wherever `reach` limits a change it also covers this multiple of the point at hand.
_BEYOND_POINT = 1024.0


@final
@dataclass(frozen=True, eq=False)
class Evidence:
    """Multipliers and a point of tangency that speak for one program."""

    program: Program
    multipliers: Multipliers
    point: Floats  # (d,)


def lower_bound(evidence: Evidence, cap: float) -> float:
    """Cost that no feasible change of the program undercuts, at most `cap`.

    `cap` is the cost of a known answer (or inf): only cheaper changes are of interest, and
    their cost limits how far they can lie.
    """
    program, point = evidence.program, _usable(evidence.point)
    reach = _cost_reach(program, cap)
    flat = ~np.isfinite(reach)
    reach[flat] = np.maximum(program.reach, _BEYOND_POINT * np.abs(point))[flat]
    slope, constant, size = _tangents(program, evidence.multipliers, point)
    lifted = program.L @ point
    slope += 2.0 * program.L.T @ lifted
    constant -= float(lifted @ lifted)
    size += float(lifted @ lifted)
    least, terms = _least_over_box(program, program.w, slope, reach)
    value = constant + least
    if np.isnan(value):
        return 0.0
    # Costs are never negative, so 0 is the bound of last resort.
    return float(min(cap, max(0.0, value - _ROUNDING * (size + terms))))


def contradiction(evidence: Evidence) -> float:
    """How far the priced conditions exceed what any change can meet; 0 proves nothing.

    A positive value shows that no change meets the conditions of the program.
    """
    program, point = evidence.program, _usable(evidence.point)
    if program.has_empty_box():
        return np.inf
    reach = np.maximum(program.reach, _BEYOND_POINT * np.abs(point))
    slope, constant, size = _tangents(program, evidence.multipliers, point)
    least, terms = _least_over_box(program, np.zeros(program.width), slope, reach)
    value = constant + least - _ROUNDING * (size + terms)
    return float(value) if np.isfinite(value) and value > 0 else 0.0


def within_cost(program: Program, cap: float) -> Program:
    """Limit each feature to what a change of cost at most `cap` can move it by."""
    reach = _cost_reach(program, cap)
    return replace(
        program,
        lower=np.maximum(program.lower, -reach),
        upper=np.minimum(program.upper, reach),
    )


def relative_gap(cost: float, bound: float, floor: float) -> float:
    """Share of the cost that is not proved, ``(cost - bound) / cost``.

    Where the cost is below `floor`, the least that floating point can tell from zero at
    this input, the share is taken of `floor`.
    """
    if cost == bound:
        return 0.0
    return float((cost - bound) / max(cost, floor))


def _usable(point: Floats) -> Floats:
    return np.where(np.isfinite(point), point, 0.0)


def _tangents(
    program: Program, multipliers: Multipliers, point: Floats
) -> tuple[Floats, float, float]:
    """Slope, constant and size of terms of the priced conditions, convex ones by tangents."""
    y = _prices(multipliers.y)
    z = _usable(multipliers.z)
    nu = _prices(multipliers.nu)
    slope = program.A.T @ y + program.E.T @ z
    constant = -float(y @ program.b) - float(z @ program.e)
    size = float(y @ np.abs(program.b)) + float(np.abs(z) @ np.abs(program.e))
    for price, quadric in zip(nu, program.quadrics, strict=True):
        tangent = quadric.gradient(point)
        height = quadric.excess(point) - float(tangent @ point)
        slope += price * tangent
        constant += price * height
        size += price * quadric.magnitude(point)
    return slope, constant, size


def _prices(values: Floats) -> Floats:
    return np.where(np.isfinite(values), np.maximum(values, 0.0), 0.0)


def _cost_reach(program: Program, cap: float) -> Floats:
    """How far a change of cost at most `cap` can go along each feature; inf where unlimited."""
    if not np.isfinite(cap):
        return np.full(program.width, np.inf)
    reach = np.full(program.width, np.inf)
    np.divide(cap, program.w, out=reach, where=program.w > 0)
    rows, width = program.L.shape
    if rows >= width:
        triangle = np.linalg.qr(program.L, mode="r")
        diagonal = np.abs(np.diag(triangle))
        if diagonal.min() > 1e-12 * diagonal.max():
            inverse = np.linalg.inv(triangle)
            stretch = np.sqrt(np.einsum("ij,ij->i", inverse, inverse))
            reach = np.minimum(reach, np.sqrt(cap) * stretch)
    return reach * (1.0 + 1e-9)


def _least_over_box(
    program: Program, w: Floats, slope: Floats, reach: Floats
) -> tuple[float, float]:
    """Minimum of ``w |delta| + slope delta`` over the box, and the size of its terms."""
    low = np.maximum(program.lower, -reach)
    high = np.minimum(program.upper, reach)
    if (low > high).any():
        return np.inf, 0.0
    corners = np.stack([low, high, np.clip(0.0, low, high)])
    # 0 * inf stands for a variable that nothing charges for: it contributes nothing.
    with np.errstate(invalid="ignore"):
        values = np.where((w == 0) & (slope == 0), 0.0, w * np.abs(corners) + slope * corners)
    least = values.min(axis=0)
    return float(least.sum()), float(np.abs(least).sum())

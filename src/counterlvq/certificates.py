"""Proof from multipliers alone: what no counterfactual can undercut, and what cannot be.

This module imports no solver and believes none. Any non-negative prices `y`, `nu` and any
prices `z` on the conditions of a program, and any point at which its convex terms are
replaced by their tangents, give a function that lies below the cost of every feasible
change. That function is separable, so its minimum over a box is a sum of one-dimensional
minima that can be written down. Wrong multipliers give a weak bound, never a wrong one.

The box: a change that costs no more than the best known answer is limited by its own cost
(``|delta_j| <= cap / w_j`` for absolute costs, ``delta_j^2 <= cap (P^-1)_jj`` for definite
quadratic ones). Only along directions where the cost is flat, and for proofs that nothing
is feasible, the program's own `reach` stands in: 65,536 times as far as prototypes, bounds
and right-hand sides lie. It is there to absorb the last digits of the multipliers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from counterlvq.arrays import Floats
from counterlvq.programs import Multipliers, Program

__all__ = [
    "Evidence",
    "contradiction",
    "cost_limits",
    "is_touching",
    "lower_bound",
    "single_lower_bounds",
    "within_cost",
]

# Rounding of the sums below, as a share of the largest terms; taken off every bound.
_ROUNDING = 2.0**-49
# Conditions that exceed each other by less than this share of their terms touch.
_TOUCHING = 2.0**-40
# Larger numbers, and those that are none, are not worked with.
_HUGE = 1e120
# Wherever `reach` limits a change it also covers this multiple of the point at hand.
_BEYOND_POINT = 1024.0


@final
@dataclass(frozen=True, eq=False)
class Evidence:
    """Multipliers and a point of tangency that speak for one program."""

    program: Program
    multipliers: Multipliers
    point: Floats  # (d,)


def lower_bound(evidence: Evidence, cap: float, limits: Floats | None = None) -> float:
    """Cost that no feasible change of the program undercuts, at most `cap`.

    `cap` is the cost of a known answer (or inf): only cheaper changes are of interest, and
    their cost limits how far they can lie. `limits` are `cost_limits` for that cap, if known.
    """
    program, point = evidence.program, _usable(evidence.point)
    limits = cost_limits(program.w, program.L, cap) if limits is None else limits
    own = np.maximum(program.reach, _BEYOND_POINT * np.abs(point))
    reach = np.where(np.isfinite(limits), limits, own)
    slope, constant, size = _tangents(program, evidence.multipliers, point)
    lifted = program.L @ point
    slope += 2.0 * program.L.T @ lifted
    square = float(lifted @ lifted)
    least, terms = _least_over_box(program, program.w, slope, reach)
    value = constant - square + least
    if np.isnan(value):
        return 0.0
    # Costs are never negative, so 0 is the bound of last resort.
    return float(min(cap, max(0.0, value - _ROUNDING * (size + square + terms))))


def single_lower_bounds(
    bare: Program, normals: Floats, leads: Floats, prices: Floats, cap: float
) -> Floats:
    """As `lower_bound`, for many programs that charge for one half-space each, (k,).

    `bare` is the program without half-spaces; program k adds ``normals_k delta <= leads_k``
    at the price ``prices_k``. Quadratic costs are replaced by their tangent where the price
    is best paid.
    """
    prices = _prices(prices)
    slope = prices[:, None] * normals
    constant = -prices * leads
    size = np.abs(constant)
    reach = cost_limits(bare.w, bare.L, cap)
    if bare.L.shape[0]:
        # A feature that cannot move has no share in the tangent but where it is held.
        free = bare.lower < bare.upper
        held = np.where(free, 0.0, bare.lower)
        points = np.tile(held, (slope.shape[0], 1))
        pull = 0.5 * slope[:, free] + (held @ bare.L.T) @ bare.L[:, free]
        square_of_free = bare.L[:, free].T @ bare.L[:, free]
        points[:, free] = -pull @ np.linalg.pinv(square_of_free, hermitian=True)
        lifted = points @ bare.L.T
        slope = slope + 2.0 * lifted @ bare.L
        square = np.einsum("ij,ij->i", lifted, lifted)
        constant, size = constant - square, size + square
    reach = np.where(np.isfinite(reach), reach, bare.reach)
    least, terms = _least_over_box(bare, bare.w, slope, reach)
    value = constant + least - _ROUNDING * (size + terms)
    return np.asarray(np.minimum(cap, np.maximum(0.0, np.nan_to_num(value, nan=0.0, posinf=cap))))


def contradiction(evidence: Evidence) -> float:
    """How far the priced conditions exceed what any change can meet; 0 proves nothing.

    A positive value shows that no change meets the conditions of the program.
    """
    if evidence.program.has_empty_box():
        return np.inf
    value, size = _excess(evidence)
    value -= _ROUNDING * size
    return value if np.isfinite(value) and value > 0 else 0.0


def is_touching(evidence: Evidence) -> bool:
    """Whether the priced conditions can be met with equality at most, to rounding."""
    if evidence.program.has_empty_box():
        return True
    value, size = _excess(evidence)
    return bool(value >= -_TOUCHING * size)


def _excess(evidence: Evidence) -> tuple[float, float]:
    """Compute what the priced conditions amount to at the least, and the size of their terms."""
    program, point = evidence.program, _usable(evidence.point)
    reach = np.maximum(program.reach, _BEYOND_POINT * np.abs(point))
    slope, constant, size = _tangents(program, evidence.multipliers, point)
    least, terms = _least_over_box(program, np.zeros(program.width), slope, reach)
    return float(constant + least), float(size + terms)


def within_cost(program: Program, cap: float) -> Program:
    """Limit each feature to what a change of cost at most `cap` can move it by."""
    reach = cost_limits(program.w, program.L, cap)
    return replace(
        program,
        lower=np.maximum(program.lower, -reach),
        upper=np.minimum(program.upper, reach),
    )


def _usable(values: Floats) -> Floats:
    """Numbers that can be squared; anything else charges for nothing and lies nowhere."""
    return np.where(np.abs(values) < _HUGE, values, 0.0)


def _tangents(
    program: Program, multipliers: Multipliers, point: Floats
) -> tuple[Floats, float, float]:
    """Slope, constant and size of terms of the priced conditions, convex ones by tangents."""
    y = _prices(multipliers.y)
    z = _usable(multipliers.z)
    nu = _prices(multipliers.nu)
    slope = program.A.T @ y + program.E.T @ z
    constant = -float(y @ program.b) - float(z @ program.e)
    # Right-hand sides are rounded themselves; each gives way by that much.
    constant -= float(np.concatenate([y, np.abs(z)]) @ program.blur)
    size = float(y @ np.abs(program.b)) + float(np.abs(z) @ np.abs(program.e))
    for price, quadric in zip(nu, program.quadrics, strict=True):
        tangent = quadric.gradient(point)
        height = quadric.excess(point) - float(tangent @ point)
        slope += price * tangent
        constant += price * height
        size += price * quadric.magnitude(point)
    return slope, constant, size


def _prices(values: Floats) -> Floats:
    return np.maximum(_usable(values), 0.0)


def cost_limits(w: Floats, L: Floats, cap: float) -> Floats:
    """How far a change of cost at most `cap` can go along each feature; inf where unlimited."""
    limits = np.full(w.size, np.inf)
    if not np.isfinite(cap):
        return limits
    np.divide(cap, w, out=limits, where=w > 0)
    seen = np.flatnonzero(L.any(axis=0))  # the rest the quadratic part says nothing about
    if seen.size and L.shape[0] >= seen.size:
        triangle = np.linalg.qr(L[:, seen], mode="r")
        lengths = np.sqrt(np.einsum("ij,ij->j", L[:, seen], L[:, seen]))
        if (np.abs(np.diag(triangle)) > 1e-12 * lengths).all():
            inverse = np.linalg.inv(triangle)
            stretch = np.sqrt(np.einsum("ij,ij->i", inverse, inverse))
            # What rounding in the inverse can hide: more, the nearer the cost is to flat.
            blurred = 1.0 + _ROUNDING * (np.abs(inverse) @ np.abs(triangle)).sum(axis=1)
            limits[seen] = np.minimum(limits[seen], np.sqrt(cap) * stretch * blurred)
    return limits * (1.0 + 1e-9)


def _least_over_box(program: Program, w: Floats, slope: Floats, reach: Floats) -> tuple[Any, Any]:
    """Minimum of ``w |delta| + slope delta`` over the box, and the size of its terms.

    `slope` may hold several rows; then so do the results.
    """
    low = np.maximum(program.lower, -reach)
    high = np.minimum(program.upper, reach)
    if (low > high).any():
        none = np.zeros(slope.shape[:-1])
        return none + np.inf, none
    # 0 * inf stands for a variable that nothing charges for: it contributes nothing.
    with np.errstate(invalid="ignore"):
        ends = [w * np.abs(end) + slope * end for end in (low, high, np.clip(0.0, low, high))]
    least = np.where((w == 0) & (slope == 0), 0.0, np.minimum(np.minimum(*ends[:2]), ends[2]))
    return least.sum(axis=-1), np.abs(least).sum(axis=-1)

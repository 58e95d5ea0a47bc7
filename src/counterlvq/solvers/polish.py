"""Sharpen the answer of an interior-point method.

Such a method stops with every number slightly off. Which conditions are active can be read
from its answer; the optimality conditions on the active ones are then equations, and a few
Newton steps solve them to the last digits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.finite_algebra import least_squares
from counterlvq.numeric.lazy import imported_later
from counterlvq.numeric.tolerances import AT_END, POLISH_RANK, POLISHED
from counterlvq.programs.program import Multipliers, Program

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = imported_later("scipy.sparse")

__all__ = ["polished"]

_STEPS = 8
# Rounds of evening out the sizes of equations.
_EVENED = 4


def polished(
    program: Program, delta: Floats, multipliers: Multipliers
) -> tuple[Floats, Multipliers] | None:
    """Sharpen a solution of a scaled program; None if that fails."""
    pinned, start = _pinned(program, delta)
    free = np.flatnonzero(~pinned)
    if sparse.issparse(program.L):  # the equations would have a blank for every pair of features
        return None
    active = np.flatnonzero(multipliers.y > program.b - program.A @ delta)
    curved = [
        k
        for k, quadric in enumerate(program.quadrics)
        if multipliers.nu[k] > -quadric.excess(delta)
    ]
    sharpened = _newton(program, start, multipliers, free, active, curved)
    return sharpened if sharpened is not None and _is_solution(program, *sharpened) else None


def _pinned(program: Program, delta: Floats) -> tuple[NDArray[np.bool_], Floats]:
    near = AT_END * np.minimum(1.0, program.upper - program.lower)
    low = np.abs(delta - program.lower) <= near
    high = np.abs(delta - program.upper) <= near
    still = (program.w > 0) & (np.abs(delta) <= AT_END)
    start = np.where(still, 0.0, delta)
    start = np.where(high, program.upper, start)
    start = np.where(low, program.lower, start)
    return low | high | still, start


def _newton(
    program: Program,
    start: Floats,
    multipliers: Multipliers,
    free: NDArray[np.intp],
    active: NDArray[np.intp],
    curved: list[int],
) -> tuple[Floats, Multipliers] | None:
    delta, nu = start.copy(), np.zeros(len(program.quadrics))
    nu[curved] = multipliers.nu[curved]
    sign = np.sign(delta)
    P = 2.0 * program.L.T @ program.L
    rows = np.concatenate([program.A[active], program.E])
    right = np.concatenate([program.b[active], program.e])
    duals = np.concatenate([multipliers.y[active], multipliers.z])
    for _ in range(_STEPS):
        tangents = np.array([program.quadrics[k].gradient(delta) for k in curved])
        tangents = tangents.reshape(len(curved), program.width)
        bend = P + sum(2.0 * nu[k] * program.quadrics[k].G.T @ program.quadrics[k].G
                       for k in curved)  # fmt: skip
        J = np.concatenate([rows, tangents])[:, free]
        slope = (
            program.prices_for(sign) * sign + P @ delta + rows.T @ duals + tangents.T @ nu[curved]
        )
        miss = np.concatenate(
            [rows @ delta - right, [program.quadrics[k].excess(delta) for k in curved]]
        )
        system = np.block([[bend[np.ix_(free, free)], J.T], [J, np.zeros((J.shape[0],) * 2)]])
        step = _solved(system, -np.concatenate([slope[free], miss]))
        if step is None:
            return None
        delta[free] += step[: free.size]
        duals = duals + step[free.size : free.size + rows.shape[0]]
        nu[curved] += step[free.size + rows.shape[0] :]
    y = np.zeros(program.b.shape[0])
    y[active] = duals[: active.size]
    return delta, Multipliers(y, duals[active.size :], nu)


def _solved(system: Floats, right: Floats) -> Floats | None:
    """Solve symmetric equations, in units in which no row is larger than another."""
    unit = np.ones(len(system))
    for _ in range(_EVENED):
        sizes = np.abs(system * unit * unit[:, None]).max(axis=1, initial=0.0)
        unit = unit / np.sqrt(np.where(sizes > 0, sizes, 1.0))
    found = least_squares(system * unit * unit[:, None], right * unit, POLISH_RANK)
    return None if found is None else found * unit


def _is_solution(program: Program, delta: Floats, multipliers: Multipliers) -> bool:
    slope = program.prices_for(delta) * np.sign(delta) + 2.0 * program.L.T @ (program.L @ delta)
    slope = slope + program.A.T @ multipliers.y + program.E.T @ multipliers.z
    for multiplier, quadric in zip(multipliers.nu, program.quadrics, strict=True):
        slope = slope + multiplier * quadric.gradient(delta)
    # At an end, or at the kink of its cost, a feature may be pushed on, never back.
    up, down = np.where(delta == 0, program.both_ways, 0.0)
    falls = np.where(delta >= program.upper, 0.0, -slope - up)
    rises = np.where(delta <= program.lower, 0.0, slope - down)
    worst = [
        falls.max(initial=0.0),
        rises.max(initial=0.0),
        (program.A @ delta - program.b).max(initial=0.0),
        np.abs(program.E @ delta - program.e).max(initial=0.0),
        (program.lower - delta).max(initial=0.0),
        (delta - program.upper).max(initial=0.0),
        -multipliers.y.min(initial=0.0),
        -multipliers.nu.min(initial=0.0),
        *(quadric.excess(delta) for quadric in program.quadrics),
    ]
    return bool(np.isfinite(worst).all() and max(worst) <= POLISHED)

"""Quadratic and cone programs through Clarabel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import clarabel
import numpy as np

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.lazy import imported_later
from counterlvq.numeric.tolerances import CONIC_TOLERANCES
from counterlvq.programs.conditions import QuadraticCondition
from counterlvq.programs.program import Multipliers, Program
from counterlvq.solvers.clarabel_guard import solved
from counterlvq.solvers.interruptible_runs import seconds_until
from counterlvq.solvers.polish import polish
from counterlvq.solvers.scaling import scaled
from counterlvq.solvers.solution import Outcome, Solution

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = imported_later("scipy.sparse")

__all__ = ["solve"]

ENGINE = "Clarabel"
# Tolerance, and whether Clarabel scales as well. The program is scaled already, and doing so
# again has been seen to stall a harmless program; `polish` makes up for loose tolerances. Points
# and multipliers that are off are judged and evaluated by others: no claim rests on a tolerance.
_ATTEMPTS = tuple(zip(CONIC_TOLERANCES, (False, True, False), strict=True))


def solve(program: Program) -> Solution:
    """Solve any program of the canonical form by an interior-point method, then sharpen it."""
    units = scaled(program)
    if units is None:
        return Solution.without_point(program, Outcome.FAILED, ENGINE)
    unit, way_back = units
    form = _standard_form(unit)
    for tolerance, rescale in _ATTEMPTS:
        solution = solved(*form, _settings(tolerance, rescale, program.deadline))
        if solution is None:
            continue
        if solution.status == clarabel.SolverStatus.MaxTime:
            break
        if solution.status == clarabel.SolverStatus.PrimalInfeasible:
            return Solution.without_point(program, Outcome.INFEASIBLE, ENGINE)
        if solution.status == clarabel.SolverStatus.Solved:
            u = np.array(solution.x)[: unit.width]
            u, multipliers = polish(unit, u, _multipliers(unit, np.array(solution.z)))
            multipliers = way_back.multipliers(multipliers)
            return Solution(Outcome.SOLVED, way_back.delta(u), multipliers, ENGINE)
    return Solution.without_point(program, Outcome.FAILED, ENGINE)


def _settings(tolerance: float, rescale: bool, deadline: float) -> clarabel.DefaultSettings:
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.equilibrate_enable = rescale
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    settings.time_limit = seconds_until(deadline)
    return settings


def _standard_form(
    unit: Program,
) -> tuple[sparse.csc_matrix, Floats, sparse.csc_matrix, Floats, list[object]]:
    """``min 1/2 v'Pv + q'v`` with ``right - left v`` in a product of cones.

    v is the change, followed by one upper bound of ``|delta_j|`` for each weighted feature;
    where up and down have other prices, what they differ by is a slope along the change.
    """
    d, priced = unit.width, np.flatnonzero(unit.w > 0)
    count = priced.size

    def over(matrix: Any) -> Any:
        blank = sparse.csr_array((matrix.shape[0], count))
        return sparse.hstack([sparse.csr_array(matrix), blank])

    each, tops = sparse.eye_array(d, format="csr"), sparse.eye_array(count, format="csr")
    low, high = np.flatnonzero(np.isfinite(unit.lower)), np.flatnonzero(np.isfinite(unit.upper))
    blocks = [
        over(unit.E),
        over(unit.A),
        sparse.hstack([each[priced], -tops]),
        sparse.hstack([-each[priced], -tops]),
        over(-each[low]),
        over(each[high]),
    ]
    right = [unit.e, unit.b, np.zeros(2 * count), -unit.lower[low], unit.upper[high]]
    plain = sum(block.shape[0] for block in blocks[1:])
    cones: list[object] = [clarabel.ZeroConeT(unit.e.size), clarabel.NonnegativeConeT(plain)]
    for quadric in unit.quadrics:
        rows, values = _cone_rows(quadric)
        blocks.append(over(rows))
        right.append(values)
        cones.append(clarabel.SecondOrderConeT(values.size))
    square = sparse.csc_array(2.0 * unit.L.T @ unit.L)
    P = sparse.block_diag([square, sparse.csc_array((count, count))])
    weights, tilt = unit.tilted
    q = np.concatenate([tilt, weights[priced]])
    left = sparse.csc_matrix(sparse.vstack(blocks))
    return sparse.csc_matrix(sparse.triu(P)), q, left, np.concatenate(right), cones


def _cone_rows(quadric: QuadraticCondition) -> tuple[Floats, Floats]:
    """``|G u - g|^2 <= t`` with ``t = c - h'u`` as ``|(1 - t, 2 (G u - g))| <= 1 + t``."""
    rows = np.concatenate([quadric.h[None, :], -quadric.h[None, :], -2.0 * quadric.G])
    right = np.concatenate([[1.0 + quadric.c, 1.0 - quadric.c], -2.0 * quadric.g])
    return rows, right


def _multipliers(unit: Program, duals: Floats) -> Multipliers:
    k, m = unit.e.size, unit.b.size
    at = duals.size - sum(2 + quadric.g.size for quadric in unit.quadrics)
    nu = []
    for quadric in unit.quadrics:
        # t enters the first two rows of its cone with +1 and -1.
        nu.append(duals[at] - duals[at + 1])
        at += 2 + quadric.g.size
    return Multipliers(duals[k : k + m], duals[:k], np.array(nu))

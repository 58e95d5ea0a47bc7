"""The paper's way: for each row and each target prototype build a cvxpy program and solve it.

The programs are correct, which those of the paper's public code are not.
"""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

import counterlvq as clvq
from benchmarks.baselines.cells import Array, Cell, cells_of

OPTIONS: dict[str, dict[str, Any]] = {
    "L1": {
        "solver": cp.HIGHS,
        "primal_feasibility_tolerance": 1e-10,
        "dual_feasibility_tolerance": 1e-10,
    },
    "L2": {
        "solver": cp.CLARABEL,
        "tol_gap_abs": 1e-12,
        "tol_gap_rel": 1e-10,
        "tol_feas": 1e-10,
    },
}


def closest(
    model: clvq.PrototypeModel, x: Array, target: Any, free: NDArray[np.bool_], cost: str
) -> Array:
    """The closest counterfactual of one row, (d,); NaN if there is none."""
    best, least = np.full(x.shape, np.nan), np.inf
    for cell in cells_of(model, target):
        y, value = solve_cell(cell, x, free, cost)
        if value < least:
            best, least = y, value
    return best


def solve_cell(cell: Cell, x: Array, free: NDArray[np.bool_], cost: str) -> tuple[Array, float]:
    """The closest point of one cell and what it costs; inf if the cell is out of reach."""
    delta = cp.Variable(x.size)
    price = cp.norm1(delta) if cost == "L1" else cp.sum_squares(delta)
    conditions = [cell.left @ delta <= cell.tightened(x[None, :])[0]]
    if not free.all():
        conditions.append(delta[np.flatnonzero(~free)] == 0)
    program = cp.Problem(cp.Minimize(price), conditions)
    program.solve(**OPTIONS[cost])
    if program.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        return np.full(x.shape, np.nan), np.inf
    change = np.where(free, delta.value, 0.0)  # an equality holds to a tolerance only
    return x + change, float(program.value)

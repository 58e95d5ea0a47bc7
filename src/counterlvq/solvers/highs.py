"""Linear programs through HiGHS."""

from __future__ import annotations

import highspy
import numpy as np

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import HIGHS_LEAST_ENTRY, HIGHS_TOLERANCE
from counterlvq.programs.program import Multipliers, Program
from counterlvq.solvers.interruptible_runs import is_over, run_highs
from counterlvq.solvers.scaling import scaled
from counterlvq.solvers.solution import Outcome, Solution

__all__ = ["solve"]

ENGINE = "HiGHS"


def solve(program: Program) -> Solution:
    """Minimise absolute costs under linear conditions by the simplex method.

    The change is split into its two directions, ``delta = up - down``, both at least 0.
    """
    units = None if is_over(program.deadline) else scaled(program)
    if units is None:
        return Solution.without_point(program, Outcome.FAILED, ENGINE)
    unit, way_back = units
    solver = highspy.Highs()
    for name, value in (
        ("output_flag", False),
        ("threads", 1),
        ("primal_feasibility_tolerance", HIGHS_TOLERANCE),
        ("dual_feasibility_tolerance", HIGHS_TOLERANCE),
        # Entries below this are left out of the program that is solved, not of what is judged.
        ("small_matrix_value", HIGHS_LEAST_ENTRY),
    ):
        solver.setOptionValue(name, value)
    solver.passModel(_linear_program(unit))
    run_highs(solver, program.deadline)
    status = solver.getModelStatus()
    if status == highspy.HighsModelStatus.kInfeasible:
        return Solution.without_point(program, Outcome.INFEASIBLE, ENGINE)
    if status != highspy.HighsModelStatus.kOptimal:
        return Solution.without_point(program, Outcome.FAILED, ENGINE)
    found = solver.getSolution()
    split = np.array(found.col_value)
    duals = -np.array(found.row_dual)
    m = unit.b.shape[0]
    multipliers = Multipliers(duals[:m], duals[m:], np.zeros(0))
    delta = way_back.delta(split[: unit.width] - split[unit.width :])
    return Solution(Outcome.SOLVED, delta, way_back.multipliers(multipliers), ENGINE)


def _linear_program(unit: Program) -> highspy.HighsLp:
    rows = np.concatenate([unit.A, unit.E])
    # The entries column by column, written down here: for programs as small as most are, the
    # sparse matrices of SciPy take longer than HiGHS.
    column, row = np.nonzero(rows.T)
    entries = rows[row, column]
    ends = np.cumsum(np.bincount(column, minlength=unit.width))
    lp = highspy.HighsLp()
    lp.num_col_ = 2 * unit.width
    lp.num_row_ = rows.shape[0]
    lp.col_cost_ = unit.both_ways.reshape(-1)
    lp.col_lower_, lp.col_upper_ = _split_box(unit.lower, unit.upper)
    lp.row_lower_ = np.concatenate([np.full(unit.b.shape[0], -np.inf), unit.e])
    lp.row_upper_ = np.concatenate([unit.b, unit.e])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = np.concatenate([[0], ends, entries.size + ends])
    lp.a_matrix_.index_ = np.concatenate([row, row])
    lp.a_matrix_.value_ = np.concatenate([entries, -entries])
    return lp


def _split_box(lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """Bounds of the upward and downward parts of a change within ``[lower, upper]``."""
    least = np.concatenate([np.maximum(lower, 0.0), np.maximum(-upper, 0.0)])
    most = np.concatenate([np.maximum(upper, 0.0), np.maximum(-lower, 0.0)])
    return least, most

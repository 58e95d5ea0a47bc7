"""Quadratic and cone programs through Clarabel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import clarabel
import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.lazy import imported_later
from counterlvq.numeric.quadratic_forms import Factor
from counterlvq.numeric.tolerances import CONIC_TOLERANCES, MET_SHARE
from counterlvq.programs.conditions import QuadraticCondition
from counterlvq.programs.program import Multipliers, Program
from counterlvq.solvers.clarabel_guard import solved
from counterlvq.solvers.interruptible_runs import is_over, seconds_until
from counterlvq.solvers.polish import polished
from counterlvq.solvers.scaling import is_uneven, scaled
from counterlvq.solvers.solution import Outcome, Solution

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = imported_later("scipy.sparse")

__all__ = ["solve"]

ENGINE = "Clarabel"
# Tolerance, and whether Clarabel scales as well. The program is scaled already, and doing so
# again has been seen to stall a harmless program; `polished` makes up for loose tolerances. Points
# and multipliers that are off are judged and evaluated by others: no claim rests on a tolerance.
_NEAR = (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved)
# A solution of this length is about as long as scaling would have it.
_SHORT, _LONG = 0.1, 10.0
_ATTEMPTS = tuple(zip(CONIC_TOLERANCES, (False, True, False), strict=True))


def solve(program: Program) -> Solution:
    """Solve any program of the canonical form by an interior-point method, then sharpen it."""
    found = _solved_in(program, 1.0)
    if not (found.is_sharp or program.quadrics) and is_uneven(program):
        # Rows that differ in such a feature alone look parallel, or contradictory.
        evenly = _solved_in(program, 1.0, evenly=True)
        if evenly.solution.outcome is Outcome.SOLVED and _is_better(program, evenly, found):
            return evenly.solution
    if found.is_sharp or found.solution.outcome is not Outcome.SOLVED:
        return found.solution
    if _SHORT < found.length < _LONG or not program.quadrics:
        return found.solution
    # The program was scaled by a guess, and its solution shows a better one.
    again = _solved_in(program, found.length)
    return again.solution if again.is_sharp else found.solution


class _Found(NamedTuple):
    solution: Solution
    is_sharp: bool = False
    length: float = 0.0  # of the change, in the units that it was scaled to


def _is_better(program: Program, one: _Found, other: _Found) -> bool:
    """Whether a solution is nearer to the optimum than another, or to meeting the conditions."""
    if one.is_sharp or other.solution.outcome is not Outcome.SOLVED:
        return True
    missed = [_missed(program, each.solution.delta) for each in (one, other)]
    if max(missed) > MET_SHARE:
        return missed[0] < missed[1]
    return program.cost(one.solution.delta) < program.cost(other.solution.delta)


def _missed(program: Program, delta: Floats) -> float:
    """By which share of the numbers that meet in it a condition is missed at a point, at most."""
    rows = np.concatenate([program.A, program.E, -program.E])
    right = np.concatenate([program.b, program.e, -program.e])
    size = np.abs(rows) @ np.abs(delta) + np.abs(right)
    return float(((rows @ delta - right) / np.where(size > 0, size, 1.0)).max(initial=0.0))


def _solved_in(program: Program, times: float, *, evenly: bool = False) -> _Found:
    """Solve a program in units of so many times those that scaling suggests."""
    units = scaled(program, times, evenly=evenly)
    if units is None:
        return _Found(Solution.without_point(program, Outcome.FAILED, ENGINE))
    unit, way_back = units
    form = _standard_form(unit)
    nearest, least, is_sharp = None, np.inf, False
    for tolerance, rescale in _ATTEMPTS:
        if is_over(program.deadline):
            break
        solution = solved(*form, _settings(tolerance, rescale, program.deadline))
        if solution is None:
            continue
        if solution.status == clarabel.SolverStatus.MaxTime:
            break
        if solution.status == clarabel.SolverStatus.PrimalInfeasible:
            return _Found(Solution.without_point(program, Outcome.INFEASIBLE, ENGINE))
        if solution.status not in _NEAR:
            continue
        # What stopped short of a tight tolerance is often nearer than what met a loose one.
        found = np.array(solution.x)[: unit.width], _multipliers(unit, np.array(solution.z))
        sharp = polished(unit, *found)
        if sharp is not None:
            nearest, is_sharp = sharp, True
            break
        if _miss(solution) < least:
            nearest, least = found, _miss(solution)
        is_solved = solution.status == clarabel.SolverStatus.Solved
        if least <= CONIC_TOLERANCES[0] or (is_solved and not program.quadrics):
            break
    if nearest is None:
        return _Found(Solution.without_point(program, Outcome.FAILED, ENGINE))
    u, multipliers = nearest
    delta, multipliers = way_back.delta(u), way_back.multipliers(multipliers)
    length = float(np.linalg.norm(u))
    return _Found(Solution(Outcome.SOLVED, delta, multipliers, ENGINE), is_sharp, length)


def _miss(solution: Any) -> float:
    """By how much a point and its multipliers miss what was asked for, as Clarabel sees it."""
    gap = abs(solution.obj_val - solution.obj_val_dual) / max(1.0, abs(solution.obj_val))
    return float(max(gap, solution.r_prim, solution.r_dual))


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
    low, high = np.flatnonzero(np.isfinite(unit.lower)), np.flatnonzero(np.isfinite(unit.upper))
    left = _Rows()
    left.add_matrix(unit.E)
    left.add_matrix(unit.A)
    for sign in (1.0, -1.0):
        left.add_units((priced, sign), (d + np.arange(count), -1.0))
    left.add_units((low, -1.0))
    left.add_units((high, 1.0))
    right = [unit.e, unit.b, np.zeros(2 * count), -unit.lower[low], unit.upper[high]]
    plain = left.count - unit.e.size
    cones: list[object] = [clarabel.ZeroConeT(unit.e.size), clarabel.NonnegativeConeT(plain)]
    for quadric in unit.quadrics:
        rows, values = _cone_rows(quadric)
        left.add_matrix(rows)
        right.append(values)
        cones.append(clarabel.SecondOrderConeT(values.size))
    weights, tilt = unit.tilted
    q = np.concatenate([tilt, weights[priced]])
    return _square(unit.L, d + count), q, left.matrix(d + count), np.concatenate(right), cones


class _Rows:
    """Rows of a sparse matrix, collected as entries.

    Stacking matrices of SciPy for each kind of row takes longer than most programs to solve.
    """

    def __init__(self) -> None:
        self.count = 0
        self._entries: list[tuple[NDArray[np.intp], NDArray[np.intp], Floats]] = []

    def add_matrix(self, matrix: Floats) -> None:
        """Add the rows of a matrix over the first columns."""
        row, column = np.nonzero(matrix)
        self._entries.append((self.count + row, column, matrix[row, column]))
        self.count += matrix.shape[0]

    def add_units(self, *parts: tuple[NDArray[np.intp], float]) -> None:
        """Add a row for each index of the parts, with their values there."""
        for columns, value in parts:
            row = self.count + np.arange(columns.size)
            self._entries.append((row, columns, np.full(columns.size, value)))
        self.count += parts[0][0].size

    def matrix(self, width: int) -> sparse.csc_matrix:
        row, column, value = (np.concatenate(part) for part in zip(*self._entries, strict=True))
        return sparse.csc_matrix((value, (row, column)), shape=(self.count, width))


def _square(L: Factor, width: int) -> sparse.csc_matrix:
    """Multiply ``2 L'L`` out: its upper triangle, with columns of zeros up to a width."""
    if isinstance(L, np.ndarray):
        square = np.triu(2.0 * L.T @ L)
        row, column = np.nonzero(square)
        return sparse.csc_matrix((square[row, column], (row, column)), shape=(width, width))
    upper = sparse.coo_array(sparse.triu(2.0 * L.T @ L))
    return sparse.csc_matrix((upper.data, (upper.row, upper.col)), shape=(width, width))


def _cone_rows(quadric: QuadraticCondition) -> tuple[Floats, Floats]:
    """``|G u - g|^2 <= t`` with ``t = c - h'u`` as ``|(1 - t, 2 (G u - g))| <= 1 + t``.

    An ellipsoid is stated as ``|G u - g| / r <= 1`` with its radius r: thin ones, whose t is
    next to nothing beside 1, would lose their last digits.
    """
    if _is_ellipsoid(quadric):
        radius = np.sqrt(quadric.c)
        rows = np.concatenate([np.zeros_like(quadric.h)[None, :], -quadric.G / radius])
        return rows, np.concatenate([[1.0], -quadric.g / radius])
    rows = np.concatenate([quadric.h[None, :], -quadric.h[None, :], -2.0 * quadric.G])
    right = np.concatenate([[1.0 + quadric.c, 1.0 - quadric.c], -2.0 * quadric.g])
    return rows, right


def _is_ellipsoid(quadric: QuadraticCondition) -> bool:
    return quadric.c > 0.0 and not quadric.h.any()


def _multipliers(unit: Program, duals: Floats) -> Multipliers:
    k, m = unit.e.size, unit.b.size
    sizes = [quadric.g.size + (1 if _is_ellipsoid(quadric) else 2) for quadric in unit.quadrics]
    at = duals.size - sum(sizes)
    nu = []
    for quadric, size in zip(unit.quadrics, sizes, strict=True):
        if _is_ellipsoid(quadric):
            # The slope of |G u - g| / r at the border is that of its square, over 2 r^2.
            nu.append(duals[at] / (2.0 * quadric.c))
        else:
            # t enters the first two rows of its cone with +1 and -1.
            nu.append(duals[at] - duals[at + 1])
        at += size
    return Multipliers(duals[k : k + m], duals[:k], np.array(nu))

"""Warm solvers: one model per target prototype, built once; rows change right-hand sides only.

All right-hand sides of a class are computed in one product, each model is updated in one call,
and a solver starts from where it left off. What is left is the solver's own work.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import counterlvq as clvq
from benchmarks.baselines.cells import Array, Cell, cells_of

HIGHS_OPTIONS = {
    "output_flag": False,
    "threads": 1,
    "presolve": "off",  # would throw the basis away
    "solver": "simplex",
    "simplex_strategy": 1,  # dual: what a change of right-hand sides leaves feasible
    "simplex_scale_strategy": 0,
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
}
DAQP_TOLERANCE = 1e-10


class Warm(ABC):
    """A solver that holds the program of one cell in the change of the free features."""

    @abstractmethod
    def solve(self, right: Array) -> float:
        """Least cost for these right-hand sides; inf if there is none."""

    @abstractmethod
    def change(self) -> Array:
        """The change of the free features that was found last."""


class WarmHighs(Warm):
    """Least sum of absolute changes, split into upward and downward parts."""

    def __init__(self, left: Array) -> None:
        m, d = left.shape
        columns = sparse.csc_array(np.hstack([left, -left]))
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = 2 * d, m
        lp.col_cost_ = np.ones(2 * d)
        lp.col_lower_, lp.col_upper_ = np.zeros(2 * d), np.full(2 * d, np.inf)
        lp.row_lower_, lp.row_upper_ = np.full(m, -np.inf), np.zeros(m)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = columns.indptr
        lp.a_matrix_.index_ = columns.indices
        lp.a_matrix_.value_ = columns.data
        self._highs = highspy.Highs()
        for name, value in HIGHS_OPTIONS.items():
            self._highs.setOptionValue(name, value)
        self._highs.passModel(lp)
        self._at, self._open = np.arange(m, dtype=np.int32), np.full(m, -np.inf)

    def solve(self, right: Array) -> float:
        highs = self._highs
        highs.changeRowsBounds(self._at.size, self._at, self._open, right)
        highs.run()
        if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return np.inf
        return highs.getObjectiveValue()

    def change(self) -> Array:
        split = np.array(self._highs.getSolution().col_value)
        return split[: split.size // 2] - split[split.size // 2 :]


class WarmDaqp(Warm):
    """Least sum of squared changes by DAQP, a dual active-set solver for small programs."""

    def __init__(self, left: Array) -> None:
        import daqp

        m, d = left.shape
        self._model = daqp.Model()
        self._model.setup(2.0 * np.eye(d), np.zeros(d), left, np.zeros(m), np.full(m, -1e30))
        self._model.settings = {"primal_tol": DAQP_TOLERANCE}
        self._delta = np.zeros(d)

    def solve(self, right: Array) -> float:
        self._model.update(bupper=right)
        self._delta, value, flag, _ = self._model.solve()
        return value if flag == 1 else np.inf

    def change(self) -> Array:
        return self._delta


class WarmSolvers:
    """All cells of all targets of a model, each with a solver that is ready."""

    def __init__(self, model: clvq.PrototypeModel, free: NDArray[np.bool_], kind: type[Warm]):
        self._free = free
        self._cells: dict[Any, list[tuple[Cell, Warm]]] = {
            label: [(cell, kind(cell.left[:, free])) for cell in cells_of(model, label)]
            for label in model.classes
        }

    def answers(self, X: Array, targets: NDArray[Any]) -> Array:
        """The closest counterfactual of each row, (n, d); NaN where there is none."""
        found = np.full(X.shape, np.nan)
        for label in np.unique(targets):
            at = np.flatnonzero(targets == label)
            pairs = self._cells[label]
            rights = [cell.tightened(X[at]) for cell, _ in pairs]
            for n, i in enumerate(at):
                costs = [
                    solver.solve(right[n]) for (_, solver), right in zip(pairs, rights, strict=True)
                ]
                best = int(np.argmin(costs))
                if costs[best] < np.inf:
                    found[i] = X[i]
                    found[i, self._free] += pairs[best][1].change()
        return found

"""One mixed-integer program per target prototype, straight from the definition of the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

if TYPE_CHECKING:
    from benchmarks.mixed_problems import MixedProblem


# What a solution may break its conditions by; SciPy's MILP allows itself 1e-6.
_TOLERANCE = 1e-10


@dataclass(frozen=True, eq=False)
class SolvedCell:
    """The program of one target prototype, and where the MILP solver ended."""

    price: Any
    is_integer: Any
    bounds: Bounds
    constraints: tuple[LinearConstraint, ...]
    solution: Any  # None if there is none

    def cost(self) -> float:
        """Least cost for the integers that were found, to ten digits.

        The solver may leave integers and rows off by 1e-6 each, which shows: an optimum came
        out 4e-6 below that of exact arithmetic. So integers are rounded and the rest solved
        again.
        """
        if self.solution is None:
            return float("inf")
        whole = np.rint(self.solution)
        lower = np.where(self.is_integer, whole, self.bounds.lb)
        upper = np.where(self.is_integer, whole, self.bounds.ub)
        rows, tops, one = self.constraints
        found = linprog(
            self.price,
            np.vstack([rows.A, tops.A]),
            np.concatenate([rows.ub, tops.ub]),
            one.A,
            np.ones(len(one.A)),
            np.column_stack([lower, upper]),
            options={
                "primal_feasibility_tolerance": _TOLERANCE,
                "dual_feasibility_tolerance": _TOLERANCE,
            },
        )
        return float(found.fun) if found.success else float("inf")


def cheapest_by_milp(problem: MixedProblem, x: Any, target: Any) -> float:
    """Least Manhattan cost of a row of the drawn problem that has the target's label."""
    return min(cell.cost() for cell in solved_cells(problem, x, target))


def solved_cells(problem: MixedProblem, x: Any, target: Any) -> list[SolvedCell]:
    """Solve one program per prototype of the target."""
    own = np.flatnonzero(problem.model.labels == target)
    return [_cell(problem, np.asarray(x, dtype=float), int(i), target) for i in own]


def _cell(problem: MixedProblem, x: Any, i: int, target: Any) -> SolvedCell:
    """Variables: the new value of each number, its absolute change, one 0 or 1 per level."""
    model, features = problem.model, problem.features
    numbers = [j for j, feature in enumerate(features) if feature.is_number]
    levels = [(j, value) for j, f in enumerate(features) for value in f.levels]
    n, k = len(numbers), len(levels)
    value = np.zeros((problem.width, 2 * n + k))  # row of the table from the variables
    value[numbers, np.arange(n)] = 1.0
    for at, (j, level) in enumerate(levels):
        value[j, 2 * n + at] = level
    metric = model.shared_factor.T @ model.shared_factor
    w, others = model.prototypes[i], model.prototypes[model.labels != target]
    rows = 2.0 * (others - w) @ metric @ value
    right = np.einsum("ij,jk,ik->i", others, metric, others) - w @ metric @ w
    tops = np.zeros((2 * n, 2 * n + k))
    tops[:n, :n], tops[:n, n : 2 * n] = np.eye(n), -np.eye(n)
    tops[n:, :n], tops[n:, n : 2 * n] = -np.eye(n), -np.eye(n)
    one = np.zeros((problem.width, 2 * n + k))
    for at, (j, _) in enumerate(levels):
        one[j, 2 * n + at] = 1.0
    one = one[[j for j, feature in enumerate(features) if not feature.is_number]]
    switched = np.array([abs(level - x[j]) for j, level in levels])
    price = np.concatenate([np.zeros(n), np.ones(n), switched])
    whole = [features.columns[j].kind == "whole" for j in numbers]
    integer = np.concatenate([np.array(whole, dtype=float), np.zeros(n), np.ones(k)])
    ends = [(features.columns[j].lower, features.columns[j].upper) for j in numbers]
    lower = [low for low, _ in ends] + [0.0] * n + [0.0] * k
    upper = [high for _, high in ends] + [np.inf] * n + [1.0] * k
    bounds = Bounds(lower, upper)
    constraints = (
        LinearConstraint(rows, ub=right),
        LinearConstraint(tops, ub=np.concatenate([x[numbers], -x[numbers]])),
        LinearConstraint(one, lb=1.0, ub=1.0),
    )
    found = milp(
        price,
        integrality=integer,
        bounds=bounds,
        constraints=constraints,
        options={"mip_rel_gap": 1e-9},
    )
    return SolvedCell(price, integer > 0, bounds, constraints, found.x)

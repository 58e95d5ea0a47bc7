"""One mixed-integer program per target prototype, straight from the definition of the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

if TYPE_CHECKING:
    from benchmarks.mixed_problems import LevelLimit, MixedProblem


# What a solution may break its conditions by; SciPy's MILP allows itself 1e-6.
_TOLERANCE = 1e-10
# What SciPy calls how a program ended.
_OPTIMAL, _INFEASIBLE = 0, 2


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
    """Least Manhattan cost of a row that has the target's label."""
    return min(cell.cost() for cell in solved_cells(problem, x, target))


def solved_cells(problem: MixedProblem, x: Any, target: Any) -> list[SolvedCell]:
    """Solve one program per prototype of the target."""
    return solve_stated(stated_row(problem, x), target)


def solve_stated(stated: StatedRow, target: Any) -> list[SolvedCell]:
    """Solve one program per prototype of the target, of a row that is written down already."""
    own = np.flatnonzero(stated.labels == target)
    return [_cell(stated, int(i), target) for i in own]


@dataclass(frozen=True, eq=False)
class StatedRow:
    """A row and its model: variables are new numbers, absolute changes, a 0 or 1 per level."""

    W: Any
    labels: Any
    metric: Any
    value: Any  # images from the variables: constant + value @ variables
    constant: Any
    price: Any
    is_integer: Any
    bounds: Bounds
    tops: LinearConstraint
    one: LinearConstraint


def stated_row(problem: MixedProblem, x: Any) -> StatedRow:
    """Write a row down from what the pipeline's own steps make of it."""
    explainer = problem.explainer()
    features, last = explainer.features, problem.model[-1] if problem.is_pipeline else problem.model
    row = dict(zip(features.names, np.asarray(x, dtype=object), strict=True))
    if problem.is_pipeline:
        row = {name: x[name] for name in features.names}
        W, labels, omega = last.prototypes_, last.prototype_labels_, last.omegas_
    else:
        W, labels, omega = last.prototypes, last.labels, last.shared_factor
    numbers = [feature for feature in features if feature.is_number]
    levels = [(f, level) for f in features if not f.is_number for level in f.levels]
    n, k = len(numbers), len(levels)
    steps = [{**row, f.name: row[f.name] + 1} for f in numbers]
    steps += [{**row, f.name: level} for f, level in levels]
    images = problem.image([row, *steps])
    value = np.zeros((images.shape[1], 2 * n + k))
    value[:, :n], value[:, 2 * n :] = (images[1 : n + 1] - images[0]).T, (images[n + 1 :]).T
    value[:, 2 * n :] -= images[0][:, None]
    here = np.array([float(row[f.name]) for f in numbers])
    # Each feature of levels adds what its own level differs by, which is nothing for the present.
    constant = images[0] - value[:, :n] @ here
    one = np.zeros((len(features), 2 * n + k))
    for at, (feature, _) in enumerate(levels):
        one[features.names.index(feature.name), 2 * n + at] = 1.0
    one = one[[not feature.is_number for feature in features]]
    each = explainer.cost.l1_weights(len(features))
    weights = dict(zip(features.names, each.tolist(), strict=True))
    switched = [weights[f.name] * _apart(level, row[f.name]) for f, level in levels]
    price = np.concatenate([np.zeros(n), [weights[f.name] for f in numbers], switched])
    tied = [f"{f.name} == original({f.name})" in problem.constraints for f in numbers]
    ends = [_range(f, h, t) for f, h, t in zip(numbers, here, tied, strict=True)]
    whole = [feature.kind == "whole" for feature in numbers]
    tops = np.hstack([np.vstack([np.eye(n), -np.eye(n)]), np.vstack([-np.eye(n)] * 2),
                      np.zeros((2 * n, k))])  # fmt: skip
    top = np.concatenate([here, -here])
    if problem.rule is not None:
        ruled, most = _ruled(problem.rule, numbers, ends, levels)
        tops, top = np.vstack([tops, ruled]), np.append(top, most)
    return StatedRow(
        W, labels, omega.T @ omega, value, constant, price,
        np.concatenate([np.array(whole, dtype=float), np.zeros(n), np.ones(k)]),
        Bounds([low for low, _ in ends] + [0.0] * (n + k),
               [high for _, high in ends] + [np.inf] * n + [1.0] * k),
        LinearConstraint(tops, ub=top),
        LinearConstraint(one, lb=1.0, ub=1.0),
    )  # fmt: skip


def _apart(level: Any, own: Any) -> float:
    if isinstance(level, int | float) and not isinstance(level, bool):
        return abs(level - float(own))
    return float(level != own)


def _range(feature: Any, here: float, tied: bool) -> tuple[float, float]:
    if tied:
        return here, here
    low, high = feature.seen or (-np.inf, np.inf)
    return max(low, feature.lower), min(high, feature.upper)


def _ruled(
    rule: LevelLimit, numbers: list[Any], ends: list[tuple[float, float]], levels: list[Any]
) -> tuple[Any, float]:
    """State a limit that a level brings about: without it, the number has its range."""
    j = [feature.name for feature in numbers].index(rule.number)
    at = [(f.name, level) for f, level in levels].index((rule.category, rule.level))
    row, beyond = np.zeros(2 * len(numbers) + len(levels)), ends[j][1] - rule.limit
    row[j], row[2 * len(numbers) + at] = 1.0, beyond
    return row, rule.limit + beyond


def _cell(stated: StatedRow, i: int, target: Any) -> SolvedCell:
    w, others = stated.W[i], stated.W[stated.labels != target]
    rows = 2.0 * (others - w) @ stated.metric
    right = np.einsum("ij,jk,ik->i", others, stated.metric, others) - w @ stated.metric @ w
    cell = LinearConstraint(rows @ stated.value, ub=right - rows @ stated.constant)
    constraints = (cell, stated.tops, stated.one)
    # HiGHS ends in an error of its own now and then; without presolve it does not.
    for presolve in (True, False):
        found = milp(
            stated.price,
            integrality=stated.is_integer,
            bounds=stated.bounds,
            constraints=constraints,
            options={"mip_rel_gap": 1e-9, "presolve": presolve},
        )
        if found.status in (_OPTIMAL, _INFEASIBLE):
            break
    else:
        raise RuntimeError(f"HiGHS has no answer for prototype {i}: {found.message}")
    return SolvedCell(stated.price, stated.is_integer > 0, stated.bounds, constraints, found.x)

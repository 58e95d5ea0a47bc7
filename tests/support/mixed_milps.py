"""Questions about mixed tables as plain mixed-integer programs, for SciPy's HiGHS.

One program for each wished-for prototype, written down from the definition of `predict`: a 0 or 1
for each value of a column on a grid and for each level, a number and its absolute change for each
real column. Conditions that hold here and not there are branches, each a program of its own, so
that no large constants are needed. Nothing of the package is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from tests.support.mixed_questions import Array, Mixed, Prices, Row

# What a solution may break its conditions by; SciPy's MILP allows itself 1e-6.
TOLERANCE = 1e-10
# What SciPy calls how a program ended.
SOLVED, INFEASIBLE = 0, 2

# One side of a condition that holds here and not there.
Side = Callable[["PlainMilp"], None]


class PlainMilp:
    """One row and its absolute costs, before anything is asked of the answer."""

    def __init__(self, mixed: Mixed, prices: Prices, x: Row) -> None:
        assert prices.matrix is None
        self.mixed, self.n = mixed, len(mixed.real)
        self.choices = [(c.name, value) for c in mixed.discrete for value in mixed.values_of(c)]
        size = 2 * self.n + len(self.choices)
        self.lower, self.upper = np.zeros(size), np.ones(size)
        self.upper[: 2 * self.n], self.price = np.inf, np.zeros(size)
        self.rows, self.ends = list[Array](), list[float]()
        self.one = np.zeros((len(mixed.discrete), size))
        for j, column in enumerate(mixed.real):
            self.lower[j], self.upper[j] = column.lower, column.upper
            self.price[self.n + j] = prices.weights.get(column.name, 1.0)
            for sign in (1.0, -1.0):  # the absolute change is at least the change, either way
                row = np.zeros(size)
                row[j], row[self.n + j] = sign, -1.0
                self._keep(row, sign * x[column.name])
        names = [column.name for column in mixed.discrete]
        for k, (name, value) in enumerate(self.choices, start=2 * self.n):
            self.one[names.index(name), k] = 1.0
            column = mixed.discrete[names.index(name)]
            self.price[k] = (
                prices.weights.get(name, 1.0) * abs(value - x[name])
                if column.is_number
                else prices.switch(name, x[name], value)
            )

    def _keep(self, row: Array, end: float) -> None:
        self.rows.append(row)
        self.ends.append(end)

    def value(self, name: str) -> Array:
        """The value of a column, by the variables."""
        out = np.zeros(self.price.size)
        for j, column in enumerate(self.mixed.real):
            out[j] = float(column.name == name)
        for k, (own, value) in enumerate(self.choices, start=2 * self.n):
            out[k] = float(value) if own == name else 0.0
        return out

    def only(self, name: str, test: Callable[[Any], bool]) -> None:
        """A column has a value for which the test holds."""
        for k, (own, value) in enumerate(self.choices, start=2 * self.n):
            if own == name and not test(value):
                self.upper[k] = 0.0

    def below(self, factors: Mapping[str, float], end: float) -> None:
        """A weighted sum of columns is at most `end`."""
        self._keep(sum(f * self.value(name) for name, f in factors.items()), end)

    def least(self, i: int, rivals: list[int], unit: float) -> float:
        """Least cost in the cell of prototype i, in a unit."""
        W, omega = self.mixed.W, np.asarray(self.mixed.omegas)
        M = omega.T @ omega
        V = np.array([self.value(column.name) for column in self.mixed.columns])
        cell = 2.0 * (W[rivals] - W[i]) @ M
        ends = np.einsum("ij,jk,ik->i", W[rivals], M, W[rivals]) - W[i] @ M @ W[i]
        A, b = np.vstack([cell @ V, *self.rows]), np.concatenate([ends, self.ends])
        solution = self._solved(A, b, unit)
        if solution is None:
            return np.inf
        # Integers are rounded and the rest is solved again, to more digits.
        lower, upper = self.lower.copy(), self.upper.copy()
        lower[2 * self.n :] = upper[2 * self.n :] = np.rint(solution[2 * self.n :])
        found = linprog(
            self.price / unit, A, b, self.one if len(self.one) else None,
            np.ones(len(self.one)) if len(self.one) else None, np.column_stack([lower, upper]),
            options={"primal_feasibility_tolerance": TOLERANCE,
                     "dual_feasibility_tolerance": TOLERANCE},
        )  # fmt: skip
        return unit * float(found.fun) if found.status == SOLVED else np.inf

    def _solved(self, A: Array, b: Array, unit: float) -> Array | None:
        whole = np.r_[np.zeros(2 * self.n), np.ones(len(self.choices))]
        conditions = [LinearConstraint(A, ub=b)]
        if len(self.one):
            conditions.append(LinearConstraint(self.one, lb=1.0, ub=1.0))
        # HiGHS ends in an error of its own now and then; without presolve it does not.
        for presolve in (True, False):
            found = milp(
                self.price / unit, integrality=whole, bounds=Bounds(self.lower, self.upper),
                constraints=conditions, options={"mip_rel_gap": 1e-9, "presolve": presolve},
            )  # fmt: skip
            if found.status in (SOLVED, INFEASIBLE):
                return found.x
        raise RuntimeError(f"HiGHS has no answer: {found.message}")


def unit_of(cost: float, mixed: Mixed, prices: Prices, x: Row) -> float:
    """What costs are counted in: HiGHS is content with optima that are 1e-6 too dear."""
    if 0.0 < cost < np.inf:
        return cost
    price = PlainMilp(mixed, prices, x).price
    return float(price[price > 0.0].min(initial=1.0))


def least_by_milp(
    mixed: Mixed,
    prices: Prices,
    x: Row,
    target: Any,
    unit: float,
    branches: list[list[Side]],
) -> float:
    """Least cost over all wished-for prototypes and all branches of the conditions."""
    labels = mixed.labels.tolist()
    wished = [i for i, label in enumerate(labels) if label == target]
    rivals = [i for i in range(len(labels)) if i not in wished]
    best = np.inf
    for sides in product(*branches):
        program = PlainMilp(mixed, prices, x)
        for side in sides:
            side(program)
        best = min(best, *(program.least(i, rivals, unit) for i in wished), np.inf)
    return best

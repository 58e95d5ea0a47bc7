"""Answers that one rival alone holds back, against linear programs and projections of SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from counterlvq.numeric.interpreting import interpreted
from counterlvq.solvers.kernels.single_steps import move_all, move_one
from tests.support.quick import seeds


class Cell:
    """The cell of one target prototype among rivals by plain distances, with bounds and rows."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.d = int(rng.integers(1, 5))
        self.x = rng.normal(size=self.d)
        self.target = rng.normal(size=self.d)
        self.rivals = rng.normal(size=(int(rng.integers(1, 5)), self.d))
        # A cell that holds the input, or a broken bound, is not for these kernels alone.
        self.lo = -rng.exponential(4.0, size=self.d) * rng.choice([1.0, np.inf], size=self.d)
        self.hi = rng.exponential(4.0, size=self.d) * rng.choice([1.0, np.inf], size=self.d)
        if seed % 5 == 0:  # some are fixed, and some have to change
            self.lo[0], self.hi[0] = [(0.0, 0.0), (0.5, 3.0)][seed % 2]
        rows = int(rng.integers(0, 3))
        self.C = rng.normal(size=(rows, self.d))
        self.h = rng.exponential(size=rows)
        self.equality = np.zeros(rows, dtype=bool)
        if rows and seed % 7 == 0:
            self.equality[0] = True
        self.ways = rng.exponential(size=(2, self.d)) + 0.1
        self.scores = ((self.rivals - self.x) ** 2).sum(axis=1)
        self.score = float(((self.target - self.x) ** 2).sum())
        self.dearest = int(self.scores.argmin())

    def move(self, *, is_quadratic: bool) -> tuple[bool, float, int, np.ndarray, np.ndarray]:
        """Ask the kernel; says also where it goes and what it charges."""
        u, normal, signs = np.zeros(self.d), np.zeros(self.d), np.zeros(self.d + 2)
        rows, prices = np.zeros(self.d + 2, dtype=np.int64), np.zeros(self.d + 2)
        shared = (
            self.dearest, self.target, 2.0 * self.target, self.score, self.rivals,
            2.0 * self.rivals, self.scores, self.C, self.equality,
        )  # fmt: skip
        if is_quadratic:
            given = (
                *shared, np.ones(self.d), np.zeros((0, 0)), self.x, self.lo, self.hi, self.h, 0.0,
                u, normal, rows, prices, signs,
            )  # fmt: skip
        else:
            given = (
                *shared, self.x, self.lo, self.hi, self.ways, self.h, 0.0, u, rows, prices,
            )  # fmt: skip
        function = move_all if is_quadratic else move_one
        (is_done, cost, count), _ = interpreted(function.py_func, math.inf, *given)
        return is_done, cost, count, u, prices

    def conditions(self) -> tuple[np.ndarray, np.ndarray]:
        """All inequalities ``A u <= b`` but the bounds; equalities hold both ways."""
        A = np.vstack([2.0 * (self.rivals - self.target), self.C, -self.C[self.equality]])
        b = np.concatenate([self.scores - self.score, self.h, -self.h[self.equality]])
        return A, b


@pytest.mark.parametrize("seed", seeds(300, quick=60))
def test_one_change_is_the_optimum_of_the_linear_program(seed: int) -> None:
    cell = Cell(seed)
    is_done, cost, count, u, prices = cell.move(is_quadratic=False)
    if not is_done:
        return
    A, b = cell.conditions()
    ways = np.concatenate(cell.ways)
    up = np.stack([np.maximum(cell.lo, 0.0), np.maximum(cell.hi, 0.0)], axis=1)
    down = np.stack([np.maximum(-cell.hi, 0.0), np.maximum(-cell.lo, 0.0)], axis=1)
    found = linprog(ways, np.hstack([A, -A]), b, bounds=np.concatenate([up, down]))
    assert found.status == 0
    assert cost == pytest.approx(found.fun, rel=1e-7)
    assert count == 1
    assert (u != 0.0).sum() == 1
    # What is charged for the rival pays for the whole cost.
    assert prices[0] * (cell.score - cell.scores[cell.dearest]) == pytest.approx(cost)


@pytest.mark.parametrize("seed", seeds(300, quick=60))
def test_the_steepest_way_ends_at_the_projection(seed: int) -> None:
    cell = Cell(seed)
    is_done, cost, count, u, _ = cell.move(is_quadratic=True)
    if not is_done:
        return
    A, b = cell.conditions()
    assert (A @ u <= b + 1e-9).all()
    found = minimize(
        lambda v: v @ v, u + 0.1, jac=lambda v: 2.0 * v, method="SLSQP",
        bounds=list(zip(cell.lo, cell.hi, strict=True)),
        constraints={"type": "ineq", "fun": lambda v: b - A @ v, "jac": lambda _: -A},
        options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    assert (A @ found.x <= b + 1e-6).all()
    assert cost == pytest.approx(found.fun, rel=1e-5)
    assert count == 1


def test_what_one_rival_does_not_settle_is_left_to_the_methods() -> None:
    """Of many cells both happen; equalities, and changes that are asked for, never pass."""
    cells = [Cell(seed) for seed in range(300)]
    for is_quadratic in (False, True):
        done = [cell.move(is_quadratic=is_quadratic)[0] for cell in cells]
        assert any(done)
        assert not all(done)
        for cell, is_done in zip(cells, done, strict=True):
            if cell.equality.any() or not ((cell.lo <= 0.0) & (cell.hi >= 0.0)).all():
                assert not is_done

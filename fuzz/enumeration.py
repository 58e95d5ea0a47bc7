"""Grids that are small enough to ask the model's own `predict` about every point."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from fuzz.cases import Case
from fuzz.plain import Column, Floats, Plain
from fuzz.rational import ZERO

_MOST_POINTS = 6000
_MOST_TRIED = 40


@dataclass(frozen=True, eq=False)
class Grid:
    """Points of the table with their labels, by one call of `predict`.

    At most one column is real; its values are then those at which a point of the grid may win,
    found in doubles, and a little beyond.
    """

    points: Floats  # (n, d)
    labels: Any  # (n,) or None where one column is real
    real: int | None
    says: Callable[[Floats], list[Any]]

    @property
    def is_complete(self) -> bool:
        """Whether every point that may be an answer is listed."""
        return self.real is None

    def cheapest(self, x: Floats, wished: set[Any], plain: Plain) -> Iterator[Floats]:
        """Points with a wished-for label that keep the constraints, cheapest first."""
        points, labels = self.points, self.labels
        if self.real is not None:
            points = _with_real(self.points, self.real, x, wished, plain)
            if not len(points):
                return
            labels = np.array(self.says(points), dtype=object)
        chosen = points[np.isin(labels, list(wished)) & _kept(plain, points, x)]
        order = np.argsort(plain.price.of_rows(chosen, x), kind="stable")
        yield from chosen[order[:_MOST_TRIED]]


def grid_of(case: Case, plain: Plain, says: Callable[[Floats], list[Any]]) -> Grid | None:
    """List the grid of a case; None if it is too large or has more than one real column."""
    sides: list[list[float]] = []
    real = None
    for j, column in enumerate(plain.columns):
        side = _side(column, j, plain, case.X[:, j])
        if side is None:
            if real is not None or column.decimals is not None:
                return None
            real, side = j, [0.0]
        sides.append(side)
    if np.prod([float(len(side)) for side in sides]) > _MOST_POINTS:
        return None
    points = np.array(list(product(*sides)), dtype=float).reshape(-1, len(sides))
    labels = None
    if real is None:
        labels = np.array(says(points) if len(points) else [], dtype=object)
    return Grid(points, labels, real, says)


def _side(column: Column, j: int, plain: Plain, own: Floats) -> list[float] | None:
    """The values of a column on a grid between its fixed bounds, and those of rows; None without.

    `own` are the values of the rows, which may stay, and from which steps of change count.
    """
    if column.levels:
        return [float(k) for k in range(len(column.levels))]
    if column.decimals is None:
        return None
    lower, upper = -np.inf, np.inf
    for row in plain.rows:
        used = [k for k, a in enumerate(row.new) if a]
        if used != [j] or any(row.old) or row.equality:
            continue
        end = float(row.value / row.new[j])
        lower, upper = (lower, min(upper, end)) if row.new[j] > 0 else (max(lower, end), upper)
    if not np.isfinite([lower, upper]).all():
        return None
    scale = 10**column.decimals
    numbers = range(int(np.floor(lower * scale)), int(np.ceil(upper * scale)) + 1)
    values = {float(f"{k / scale:.{column.decimals}f}") for k in numbers if k % column.step == 0}
    values |= set(own.tolist())
    if column.of_change:
        shifts = column.step * np.arange(-len(numbers), len(numbers) + 1)
        values |= set((own[:, None] + shifts).ravel().tolist())
    return sorted(v for v in values if lower <= v <= upper)


def _kept(plain: Plain, Y: Floats, x: Floats) -> np.ndarray:
    """Which points keep the linear rows, but for rounding: what is used is confirmed later."""
    keep = np.ones(len(Y), dtype=bool)
    for row in plain.rows:
        a, r = (np.array([float(v) for v in part]) for part in (row.new, row.old))
        excess = Y @ a + r @ x - float(row.value)
        slack = 1e-12 * (np.abs(Y) @ np.abs(a) + np.abs(r) @ np.abs(x) + abs(float(row.value)))
        keep &= (np.abs(excess) if row.equality else excess) <= slack
    has_own = plain.rules or any(column.decimals is not None for column in plain.columns)
    for k in np.flatnonzero(keep).tolist() if has_own else []:
        cells = zip(plain.columns, Y[k].tolist(), x.tolist(), strict=True)
        on_grid = all(column.holds(new, old) for column, new, old in cells)
        keep[k] = on_grid and all(rule(Y[k], x) for rule in plain.rules)
    return keep


def _with_real(points: Floats, j: int, x: Floats, wished: set[Any], plain: Plain) -> Floats:
    """Put into column j, for each point, the values nearest to x_j at which a target may win."""
    is_target = [label in wished for label in plain.scores.labels]
    found = []
    for i, own in enumerate(is_target):
        if not own:
            continue
        low, high = np.full(len(points), -np.inf), np.full(len(points), np.inf)
        rivals = [k for k, other in enumerate(is_target) if not other]
        lines = [plain.scores.half_space(i, k, ZERO) for k in rivals]
        lines += [(row.new, row.value) for row in plain.rows if not any(row.old)]
        for normal, value in lines:
            a = np.array([float(v) for v in normal])
            rest = float(value) - points @ a + points[:, j] * a[j]
            with np.errstate(all="ignore"):
                end = rest / a[j]
            if a[j] > 0:
                high = np.minimum(high, end)
            elif a[j] < 0:
                low = np.maximum(low, end)
            else:
                high = np.where(rest < 0, -np.inf, high)
        possible = low <= high
        for share in (0.0, 1e-12, 1e-9, 1e-6, 1e-3):
            width = np.where(np.isfinite(high - low), high - low, np.abs(x[j]) + 1.0)
            nearest = np.clip(x[j], low + share * width, high - share * width)
            made = points.copy()
            made[:, j] = nearest
            found.append(made[possible & np.isfinite(nearest)])
    return np.concatenate(found) if found else np.zeros((0, points.shape[1]))

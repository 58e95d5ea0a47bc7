"""Points of a grid without ends, near and far along the cells of the question without the grid."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import ceil, floor

import numpy as np

from fuzz.plain import Column, Floats, Plain
from fuzz.rational import Vector
from fuzz.regions import cells

_SHARES = (0, Fraction(1, 10**6), Fraction(1, 1000), Fraction(1, 10), 1, 10, 10**3, 10**6)
_MOST_SIDES = 4


def cheapest(plain: Plain, x: Vector, wished: list[bool]) -> Iterator[Floats]:
    """Points on the grid that may be counterfactuals, cheapest first."""
    found: list[list[float]] = []
    for cell in cells(plain, x, wished):
        optimum, inside = cell.cheapest(plain), cell.inside
        if inside is None:
            continue
        start = optimum.point if optimum is not None else inside.point
        for share in _SHARES:
            steps = zip(x, start, inside.point, strict=True)
            found += _rounded(plain.columns, [a + p + share * (q - p) for a, p, q in steps])
    points = np.array(found).reshape(len(found), len(x))
    points = points[np.isfinite(points).all(axis=1)]
    costs = plain.price.of_rows(points, np.array([float(v) for v in x]))
    yield from points[np.argsort(costs, kind="stable")]


def _rounded(columns: tuple[Column, ...], y: Vector) -> list[list[float]]:
    """Up and down to the grid, in the first few of its columns; to the nearest in the others."""
    sides, split = [], 0
    for column, value in zip(columns, y, strict=True):
        if column.decimals is None:
            sides.append([float(value)])
            continue
        scale = Fraction(10**column.decimals, column.step)
        ends = {floor(value * scale), ceil(value * scale)}
        if split >= _MOST_SIDES:
            ends = {round(value * scale)}
        split += len(ends) > 1
        sides.append([float(Fraction(k) / scale) for k in sorted(ends)])
    return [list(point) for point in product(*sides)]

"""Programs whose numbers are of very different sizes, against rational arithmetic."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import counterlvq as clvq
from tests.support.quick import seeds


def least_square(rows: list[tuple[list[Fraction], Fraction]]) -> Fraction | None:
    """The least ``|d|^2`` in two dimensions with ``a'd <= b`` for all rows, in rational numbers.

    It lies at no change, at the foot of a row, or where two rows cross.
    """
    points = [[Fraction(0), Fraction(0)]]
    for a, b in rows:
        size = a[0] ** 2 + a[1] ** 2
        if size:
            points.append([b * a[0] / size, b * a[1] / size])
    for (a, b), (c, e) in combinations(rows, 2):
        turn = a[0] * c[1] - a[1] * c[0]
        if turn:
            points.append([(b * c[1] - e * a[1]) / turn, (a[0] * e - c[0] * b) / turn])
    inside = [p for p in points if all(a[0] * p[0] + a[1] * p[1] <= b for a, b in rows)]
    return min((p[0] ** 2 + p[1] ** 2 for p in inside), default=None)


@pytest.mark.parametrize("seed", seeds(60, quick=12))
def test_squared_costs_in_plain_units_of_ugly_columns(seed: int) -> None:
    """A column that rows hardly see beside another one, which may go one way only."""
    rng = np.random.default_rng(seed)
    scales = np.array([1e-4, 1.0, 1e5])
    prototypes = rng.normal(size=(6, 3)) * 3 * scales
    omega = rng.normal(size=(2, 3)) / scales
    row = rng.normal(size=3) * scales
    model = clvq.PrototypeModel(prototypes, ["a", "b", "c", "a", "c", "b"], omega)
    explainer = clvq.Explainer(model, clvq.Euclidean(), [clvq.Decrease(0), clvq.Freeze(1)])

    def exact(values: Any) -> list[Fraction]:
        return [Fraction(float(value)) for value in values]

    def image(values: list[Fraction]) -> list[Fraction]:
        return [sum(a * b for a, b in zip(exact(line), values, strict=True)) for line in omega]

    def score(k: int) -> Fraction:
        away = [a - b for a, b in zip(exact(row), exact(prototypes[k]), strict=True)]
        return sum(v * v for v in image(away))

    for target in "abc":
        costs = []
        for i in np.flatnonzero(model.labels == target).tolist():
            rows = [([Fraction(1), Fraction(0)], Fraction(0))]  # only downwards
            for k in np.flatnonzero(model.labels != target).tolist():
                pairs = zip(exact(prototypes[k]), exact(prototypes[i]), strict=True)
                lifted = image([a - b for a, b in pairs])
                slope = [
                    2
                    * sum(
                        v * Fraction(float(line[j])) for v, line in zip(lifted, omega, strict=True)
                    )
                    for j in (0, 2)
                ]
                rows.append((slope, score(k) - score(i)))
            costs.append(least_square(rows))
        best = min((cost for cost in costs if cost is not None), default=None)
        cf = explainer.explain(row, target=target)
        assert cf.status == ("infeasible" if best is None else "optimal")
        if best is not None:
            assert cf.lower_bound <= best * (1 + Fraction(1, 10**12))
            assert cf.cost == pytest.approx(float(best), rel=1e-5)

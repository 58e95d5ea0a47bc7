"""The interior-point method and what it multiplies, against plain matrices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from counterlvq.numeric.arrays import Floats
from counterlvq.solvers.interior_point import kronecker, matrix_of, solved, vector_of


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_products_of_symmetric_matrices_as_vectors(n: int) -> None:
    rng = np.random.default_rng(n)
    X, W, N = (part + part.T for part in rng.normal(size=(3, n, n)))
    turned = matrix_of(kronecker(X, W) @ vector_of(N), n)
    np.testing.assert_allclose(turned, 0.5 * (X @ N @ W + W @ N @ X), atol=1e-12)


@dataclass(eq=False)
class LeastEigenvalue:
    """Maximise x so that ``M - x I`` is semidefinite and ``x <= most``."""

    M: Floats
    most: float

    @property
    def size(self) -> int:
        return len(self.M)

    def value(self, x: Floats) -> float:
        return float(x[0])

    def slope(self, x: Floats) -> Floats:
        return np.ones(1)

    def rows(self, x: Floats) -> Floats:
        return self.most - x

    def matrix(self, x: Floats) -> Floats:
        return np.asarray(self.M - x[0] * np.eye(self.size))

    def adjoint(self, multipliers: Floats, X: Floats) -> Floats:
        return np.array([-multipliers[0] - np.trace(X)])

    def normal(self, weights: Floats, X: Floats, W: Floats) -> Floats:
        return np.array([[weights[0] + float((X * W.T).sum())]])


@pytest.mark.parametrize("seed", range(5))
def test_it_finds_the_least_eigenvalue(seed: int) -> None:
    part = np.random.default_rng(seed).normal(size=(6, 6))
    M = part @ part.T / 6
    truth = float(np.linalg.eigvalsh(M)[0])
    for most, best in ((10.0, truth), (0.5 * truth, 0.5 * truth)):
        program = LeastEigenvalue(M, most)
        found = solved(program, np.array([-1.0]), np.inf, 1e-8, 0.0, np.inf)
        assert found is not None
        assert found.value == pytest.approx(best, abs=1e-7)
        assert found.value <= best  # each iterate is feasible


def test_it_stops_at_its_goal_and_refuses_a_start_that_is_none() -> None:
    program = LeastEigenvalue(np.eye(3), 10.0)
    found = solved(program, np.array([-5.0]), 0.0, 1e-8, 0.0, np.inf)
    assert found is not None
    assert 0.0 <= found.value < 1.0
    assert solved(program, np.array([2.0]), np.inf, 1e-8, 0.0, np.inf) is None

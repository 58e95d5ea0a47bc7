"""The dual of the relaxation for quadratic costs, as `interior_point` asks for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import numpy as np

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.tolerances import NO_SIZE
from counterlvq.solvers.interior_point import Iterate
from counterlvq.solvers.metric_space import Part, SeenRelaxed

__all__ = ["QuadraticDual"]

# What a step of the method takes beside products of numbers, in products of numbers.
_STEP = 2e6


@final
@dataclass(eq=False)
class QuadraticDual:
    """The dual for a quadratic cost, in shares of that of the answer.

    Variables: the corner of the matrix, charges, and multipliers of linear conditions.
    """

    part: Part
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = self.part.question.space.size + 1

    @property
    def work(self) -> float:
        """About the numbers that are multiplied in one step."""
        x, k = float(self._c.size), float(self.size)
        return _STEP + x**3 / 3.0 + x * x * k * k + 2.0 * x * k**3

    @cached_property
    def _costs(self) -> tuple[Floats, Floats, Floats]:
        """Matrix of what u costs; how linear conditions lean on u, and what they cost besides."""
        part, V = self.part, self.part.question.space.V[:, self.part.free]
        L = np.asarray(part.program.L)[:, part.free]
        A = part.rows[0] * np.sqrt(part.left)
        C = L.T @ L
        drawn = np.linalg.solve(C, np.concatenate([V, A]).T)
        k = len(V)
        G, lean = V @ drawn[:, :k], V @ drawn[:, k:]
        inner = np.linalg.inv(G)
        inner = 0.5 * (inner + inner.T)
        lean = inner @ lean
        rest = A @ drawn[:, k:] - (V @ drawn[:, k:]).T @ lean
        return inner, lean, 0.25 * (rest + rest.T)

    @cached_property
    def _charged(self) -> Floats:
        """What each variable adds to the matrix, (variables, k + 1, k + 1)."""
        charges, lean = self.part.charges[0], self._costs[1]
        F = np.zeros((1 + len(charges) + lean.shape[1], self.size, self.size))
        F[0, 0, 0] = 1.0
        F[1 : 1 + len(charges)] = charges
        F[1 + len(charges) :, 0, 1:] = F[1 + len(charges) :, 1:, 0] = 0.5 * lean.T
        return F

    @cached_property
    def _flat(self) -> Floats:
        return self._charged.reshape(len(self._charged), -1)

    @cached_property
    def _c(self) -> Floats:
        return np.concatenate([[-1.0], self.part.charges[1], -self.part.rows[1]])

    @cached_property
    def _first(self) -> int:
        """Where multipliers of linear conditions begin."""
        return 1 + len(self.part.charges[1])

    @cached_property
    def _bounded(self) -> slice:
        """Variables that are not negative."""
        return slice(1, len(self._c) - self.part.rows[2])

    def start(self) -> Floats:
        """Charge a little for everything."""
        x = np.zeros(len(self._c))
        x[0] = 0.5
        least = float(np.linalg.eigvalsh(self._costs[0])[0])
        x[self._bounded] = min(
            0.1, 0.25 * min(least, 1.0) / max(float(np.abs(self._charged).sum()), NO_SIZE)
        )
        return x

    def value(self, x: Floats) -> float:
        """Objective."""
        y = x[self._first :]
        return float(self._c @ x - 0.5 * y @ self._costs[2] @ y)

    def slope(self, x: Floats) -> Floats:
        """Slope of the objective."""
        out = self._c.copy()
        out[self._first :] -= self._costs[2] @ x[self._first :]
        return out

    def rows(self, x: Floats) -> Floats:
        """Slacks."""
        return x[self._bounded].copy()

    def matrix(self, x: Floats) -> Floats:
        """Matrix of the sum in ``(1, u)``."""
        N = (x @ self._flat).reshape(self.size, self.size)
        N[1:, 1:] += self._costs[0]
        return N

    def adjoint(self, multipliers: Floats, X: Floats) -> Floats:
        """Multiply by the transpose."""
        out = self._flat @ X.ravel()
        out[self._bounded] += multipliers
        return np.asarray(out)

    def normal(self, weights: Floats, X: Floats, W: Floats) -> Floats:
        """Matrix of the normal equations."""
        turned = (X @ self._charged @ W).reshape(len(self._charged), -1)
        H = turned @ self._flat.T
        H = 0.5 * (H + H.T)
        at = np.arange(len(H))[self._bounded]
        H[at, at] += weights
        H[self._first :, self._first :] += self._costs[2]
        return np.asarray(H)

    def read(self, found: Iterate) -> SeenRelaxed:
        """Read multipliers in the units of changes, and the relaxed point."""
        part, x, space = self.part, found.x, self.part.question.space
        X = found.X / found.X[0, 0]
        u, y = X[0, 1:], x[self._first :]
        prices = part.multipliers(x[1 : self._first], 1.0, y, self._point(x, y))
        return SeenRelaxed(
            prices, found.value, part.unit * u + space.V @ part.held,
            part.unit**2 * (X[1:, 1:] - np.outer(u, u)), found.steps * self.work,
        )  # fmt: skip

    def _point(self, x: Floats, y: Floats) -> Floats:
        """Where the sum is least: there its tangents are worth most."""
        part, N = self.part, self.matrix(x)
        L = np.asarray(part.program.L)[:, part.free]
        V = part.question.space.V[:, part.free]
        u = -np.linalg.solve(N[1:, 1:], N[1:, 0])
        A = part.rows[0] * np.sqrt(part.left)
        # The cheapest change with this u, and with the slopes of linear conditions.
        drawn = np.linalg.solve(L.T @ L, np.column_stack([V.T, A.T @ y]))
        k = len(V)
        s = drawn[:, :k] @ (self._costs[0] @ (u + 0.5 * V @ drawn[:, k])) - 0.5 * drawn[:, k]
        point = part.held.copy()
        point[part.free] += part.unit * s
        return point

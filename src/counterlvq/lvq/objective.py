"""The whole training problem as one smooth-enough function of one vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from counterlvq.lvq.geometry import Metrics, loss_and_gradient
from counterlvq.lvq.losses import Loss
from counterlvq.numeric.arrays import Floats

__all__ = ["Minimum", "Objective"]

# Numbers held at once while the samples are passed through; bounds memory, not the result.
_BLOCK_ENTRIES = 1 << 23


class Minimum(NamedTuple):
    """Where a run of L-BFGS-B ended."""

    prototypes: Floats  # (p, d)
    omegas: Floats | None  # (m, r, d), each of Frobenius norm 1
    value: float
    n_iter: int
    hit_limit: bool


@final
@dataclass(frozen=True, eq=False)
class Objective:
    """Weighted mean loss plus regularisation, of all prototypes and metrics together.

    The factors are free variables; the metric is built from ``omega / |omega|_F``, so that the
    trace of ``omega' omega`` is 1 without a constraint. Regularisation subtracts
    ``regularization / 2`` times the mean of ``log det(omega omega')``.
    """

    X: Floats  # (n, d)
    y: NDArray[np.intp]  # (n,), class of each sample
    weight: Floats  # (n,), sums to 1
    prototype_class: NDArray[np.intp]  # (p,)
    which: NDArray[np.intp] | None  # (p,), the metric of each prototype; None: Euclidean
    loss: Loss
    regularization: float = 0.0

    def pack(self, prototypes: Floats, omegas: Floats | None) -> Floats:
        """Write prototypes and factors into one vector."""
        parts = [prototypes.ravel()] if omegas is None else [prototypes.ravel(), omegas.ravel()]
        return np.concatenate(parts)

    def unpack(self, theta: Floats) -> tuple[Floats, Floats | None]:
        """Read prototypes and factors back, the factors as they stand in the vector."""
        p, d = len(self.prototype_class), self.X.shape[1]
        prototypes = theta[: p * d].reshape(p, d)
        if self.which is None:
            return prototypes, None
        count = int(self.which.max()) + 1
        return prototypes, theta[p * d :].reshape(count, -1, d)

    def __call__(self, theta: Floats) -> tuple[float, Floats]:
        """Value and gradient."""
        prototypes, free = self.unpack(theta)
        if free is None:
            value, by_prototype, _ = self._data_term(prototypes, None)
            return value, by_prototype.ravel()
        assert self.which is not None
        norms = np.sqrt(np.einsum("crd,crd->c", free, free))[:, None, None]
        omegas = free / norms
        value, by_prototype, by_omega = self._data_term(prototypes, Metrics(omegas, self.which))
        if self.regularization:
            penalty, by_penalty = _log_determinant(omegas)
            value -= self.regularization * penalty
            by_omega = by_omega - self.regularization * by_penalty
        # What the division by the norm leaves of a gradient: its part along omega is lost.
        along = np.einsum("crd,crd->c", omegas, by_omega)[:, None, None]
        return value, self.pack(by_prototype, (by_omega - along * omegas) / norms)

    def _data_term(
        self, prototypes: Floats, metrics: Metrics | None
    ) -> tuple[float, Floats, Floats]:
        n, d = self.X.shape
        factors = np.zeros((0, 0, d)) if metrics is None else metrics.omegas
        per_row = 4 * len(prototypes) + 2 * d + factors.shape[0] * factors.shape[1]
        size = max(1, _BLOCK_ENTRIES // per_row)
        value, by_prototype, by_omega = 0.0, np.zeros_like(prototypes), np.zeros_like(factors)
        for start in range(0, n, size):
            rows = slice(start, start + size)
            own = self.y[rows, None] == self.prototype_class
            part = loss_and_gradient(
                self.X[rows], own, self.weight[rows], prototypes, metrics, self.loss
            )
            value += part.value
            by_prototype += part.prototypes
            if part.omegas is not None:
                by_omega += part.omegas
        return value, by_prototype, by_omega

    def minimize(
        self, prototypes: Floats, omegas: Floats | None, max_iter: int, tol: float
    ) -> Minimum:
        """Descend from a start by L-BFGS-B until the value falls by less than `tol`."""
        found = minimize(
            self,
            self.pack(prototypes, omegas),
            jac=True,
            method="L-BFGS-B",
            options={
                "maxiter": max_iter,
                "maxfun": 20 * max_iter,
                "ftol": tol,
                "gtol": 1e-3 * tol,
                "maxcor": 20,
            },
        )
        best, free = self.unpack(np.asarray(found.x, dtype=np.float64))
        if free is not None:
            free = free / np.sqrt(np.einsum("crd,crd->c", free, free))[:, None, None]
        return Minimum(best, free, float(found.fun), int(found.nit), found.status == 1)


def _log_determinant(omegas: Floats) -> tuple[float, Floats]:
    """Mean of log det(omega omega') / 2 over the factors, and its gradient, (m, r, d)."""
    left, sizes, right = np.linalg.svd(omegas, full_matrices=False)
    sizes = np.maximum(sizes, np.finfo(np.float64).tiny)
    value = float(np.log(sizes).sum() / len(omegas))
    gradient: Floats = (left / sizes[:, None, :]) @ right / len(omegas)
    return value, gradient

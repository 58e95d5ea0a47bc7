"""Squared distances to prototypes, and how a slope in distances becomes a gradient.

With d_ik = |omega (x_i - w_k)|^2 and slopes C_ik = dE/dd_ik, the sums over samples in

    dE/dw_k   = -2 omega' omega sum_i C_ik (x_i - w_k)
    dE/domega =  2 omega sum_ik C_ik (x_i - w_k)(x_i - w_k)'

are matrix products, so no array of size n p d is ever needed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from counterlvq.lvq.losses import Loss
from counterlvq.numeric.arrays import Floats

__all__ = ["Gradient", "Metrics", "loss_and_gradient"]


class Metrics(NamedTuple):
    """The factors of the metrics, and which of them each prototype uses."""

    omegas: Floats  # (m, r, d)
    which: NDArray[np.intp]  # (p,), positions in omegas


class Gradient(NamedTuple):
    """Derivatives of the weighted loss."""

    value: float
    prototypes: Floats  # (p, d)
    omegas: Floats | None  # (m, r, d)


def loss_and_gradient(
    X: Floats,
    own: NDArray[np.bool_],
    weight: Floats,
    prototypes: Floats,
    metrics: Metrics | None,
    loss: Loss,
) -> Gradient:
    """Weighted sum of a loss over some rows, with its gradient.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    own : ndarray of shape (n, p)
        Whether the prototype carries the label of the row.
    weight : ndarray of shape (n,)
    prototypes : ndarray of shape (p, d)
    metrics : Metrics or None
        None for plain Euclidean distances.
    loss : Loss
    """
    if metrics is None:
        values, slopes = loss.values_and_slopes(cdist(X, prototypes, "sqeuclidean"), own)
        slopes *= weight[:, None]
        pull = slopes.T @ X - slopes.sum(axis=0)[:, None] * prototypes
        return Gradient(float(weight @ values), -2.0 * pull, None)
    groups = [np.flatnonzero(metrics.which == c) for c in range(len(metrics.omegas))]
    projected = [X @ omega.T for omega in metrics.omegas]
    distances = np.empty((X.shape[0], prototypes.shape[0]))
    for omega, group, Z in zip(metrics.omegas, groups, projected, strict=True):
        distances[:, group] = cdist(Z, prototypes[group] @ omega.T, "sqeuclidean")
    values, slopes = loss.values_and_slopes(distances, own)
    slopes *= weight[:, None]
    by_prototype, by_omega = np.empty_like(prototypes), np.empty_like(metrics.omegas)
    for c, group in enumerate(groups):
        by_prototype[group], by_omega[c] = _pull_back(
            X, projected[c], slopes[:, group], prototypes[group], metrics.omegas[c]
        )
    return Gradient(float(weight @ values), by_prototype, by_omega)


def _pull_back(
    X: Floats, Z: Floats, slopes: Floats, prototypes: Floats, omega: Floats
) -> tuple[Floats, Floats]:
    """Gradient in the prototypes that share one metric, and in that metric's factor."""
    row_sums = slopes.sum(axis=1)
    touched = np.flatnonzero(slopes.any(axis=1))
    if 2 * len(touched) < len(X):
        # GLVQ moves two prototypes per sample: a local metric sees few of the rows.
        X, Z, slopes, row_sums = X[touched], Z[touched], slopes[touched], row_sums[touched]
    moments = slopes.T @ X
    pull = moments - slopes.sum(axis=0)[:, None] * prototypes
    anchors = prototypes @ omega.T
    spread = Z.T @ (row_sums[:, None] * X) - (moments @ omega.T).T @ prototypes - anchors.T @ pull
    return -2.0 * (pull @ omega.T) @ omega, 2.0 * spread

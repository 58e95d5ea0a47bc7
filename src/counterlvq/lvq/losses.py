"""What training minimises: one number per sample, and its slope in every distance.

A loss sees squared distances and which of them belong to the sample's own class, nothing
else; how distances depend on prototypes and metrics is the business of `geometry`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from counterlvq.numeric.arrays import Floats

__all__ = ["LikelihoodRatio", "Loss", "RelativeDistance"]


class Loss(ABC):
    """A cost of one sample that depends on its distances only."""

    @abstractmethod
    def values_and_slopes(self, distances: Floats, own: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """Cost of each sample, (n,), and its derivative in each distance, (n, p).

        Parameters
        ----------
        distances : ndarray of shape (n, p)
            Squared distances to the prototypes.
        own : ndarray of shape (n, p)
            Whether the prototype carries the label of the sample.
        """


@final
@dataclass(frozen=True)
class RelativeDistance(Loss):
    """f((d+ - d-) / (d+ + d-)): the cost of GLVQ and its matrix versions.

    d+ is the distance to the nearest prototype of the own class, d- to the nearest of another.
    f is the logistic function of slope `beta`, or the identity if `beta` is None.
    """

    beta: float | None

    def values_and_slopes(self, distances: Floats, own: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """See `Loss.values_and_slopes`."""
        rows = np.arange(distances.shape[0])
        nearest = np.where(own, distances, np.inf).argmin(axis=1)
        rival = np.where(own, np.inf, distances).argmin(axis=1)
        plus, minus = distances[rows, nearest], distances[rows, rival]
        # A sample on top of both prototypes has no relative distance; 0 says undecided.
        total = np.maximum(plus + minus, np.finfo(np.float64).tiny)
        values, slope = self._transfer((plus - minus) / total)
        slopes = np.zeros_like(distances)
        slopes[rows, nearest] = slope * 2.0 * (minus / total) / total
        slopes[rows, rival] = slope * -2.0 * (plus / total) / total
        return values, slopes

    def _transfer(self, mu: Floats) -> tuple[Floats, Floats]:
        if self.beta is None:
            return mu, np.ones_like(mu)
        values = expit(self.beta * mu)
        return values, self.beta * values * (1.0 - values)


@final
@dataclass(frozen=True)
class LikelihoodRatio(Loss):
    """-log(p(x, y) / p(x)): the cost of RSLVQ and its matrix versions.

    The density is a mixture of one component exp(-d_k / (2 sigma^2)) per prototype, all of the
    same weight, so that the most likely component is always the nearest prototype.
    """

    sigma: float

    def values_and_slopes(self, distances: Floats, own: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """See `Loss.values_and_slopes`."""
        rate = 0.5 / self.sigma**2
        scores = -rate * distances
        any_log, any_share = _softmax(scores)
        own_log, own_share = _softmax(np.where(own, scores, -np.inf))
        return any_log - own_log, rate * (own_share - any_share)

    def log_shares(self, distances: Floats) -> Floats:
        """Log of each component's share in the sum of those at the given distances, (n, c)."""
        # Shares depend on differences alone; taken first, they keep the digits of far rows.
        scores = (-0.5 / self.sigma**2) * (distances - distances.min(axis=1, keepdims=True))
        out: Floats = scores - _softmax(scores)[0][:, None]
        return out


def _softmax(scores: Floats) -> tuple[Floats, Floats]:
    """Log of the sum of exponentials of each row, and each term's share in it."""
    peak = scores.max(axis=1, keepdims=True)
    terms = np.exp(scores - peak)
    total = terms.sum(axis=1, keepdims=True)
    logs: Floats = (peak + np.log(total))[:, 0]
    return logs, terms / total

"""What a change costs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Real
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from counterlvq.arrays import Floats, finite_matrix, finite_vector, psd_factor, read_only
from counterlvq.errors import InvalidInputError

__all__ = ["Cost", "Euclidean", "Mahalanobis", "Manhattan", "mad_weights"]

# Median over mean absolute deviation for normal data: 0.674490 / 0.797885.
_MEDIAN_TO_MEAN_DEVIATION = 0.845348


class Cost(ABC):
    """A convex cost ``sum_j weights_j |delta_j| + |L delta|^2`` of a change `delta`.

    A cost states its two parts; what is computed with them is the same for all costs.
    """

    @abstractmethod
    def l1_weights(self, width: int) -> Floats:
        """Weights of the absolute changes, (d,); zeros where the cost has no such part."""

    @abstractmethod
    def l2_factor(self, width: int) -> Floats:
        """Factor L (r, d) of the quadratic part; no rows where the cost has no such part."""

    def value(self, delta: ArrayLike) -> float:
        """Cost of the change `delta`.

        Parameters
        ----------
        delta : array-like of shape (d,)
        """
        change = finite_vector("delta", delta)
        lifted = self.l2_factor(change.shape[0]) @ change
        return float(self.l1_weights(change.shape[0]) @ np.abs(change) + lifted @ lifted)


@final
@dataclass(frozen=True, eq=False)
class Manhattan(Cost):
    """Weighted Manhattan distance, ``sum_j weights_j |delta_j|``; favours few changes.

    Parameters
    ----------
    weights : array-like of shape (d,), optional
        Positive price of one unit of change per feature; 1 for all by default.
        See `mad_weights` for weights that make features comparable.

    Examples
    --------
    >>> Manhattan(weights=[1.0, 10.0]).value([3.0, -0.5])
    8.0
    """

    weights: Floats | None  # (d,)

    def __init__(self, weights: ArrayLike | None = None) -> None:
        prices = None if weights is None else finite_vector("weights", weights)
        if prices is not None and not (prices > 0).all():
            j = int((prices <= 0).argmax())
            raise InvalidInputError(
                f"weights[{j}] is {prices[j]:g}; expected a positive weight for each feature. "
                f"Use Freeze to keep a feature as it is; a free feature would make any "
                f"change of it cost nothing."
            )
        object.__setattr__(self, "weights", prices)

    def __repr__(self) -> str:
        return "Manhattan()" if self.weights is None else f"Manhattan({self.weights.tolist()})"

    def l1_weights(self, width: int) -> Floats:
        """Weights of the absolute changes, (d,)."""
        if self.weights is None:
            return np.ones(width)
        if self.weights.shape[0] != width:
            raise InvalidInputError(
                f"Manhattan has {self.weights.shape[0]} weights; expected {width}, one per feature."
            )
        return self.weights

    def l2_factor(self, width: int) -> Floats:
        """No quadratic part, (0, d)."""
        return np.zeros((0, width))


@final
@dataclass(frozen=True)
class Euclidean(Cost):
    """Squared Euclidean distance, ``|delta|^2``; spreads a change over many features.

    Examples
    --------
    >>> Euclidean().value([3.0, 4.0])
    25.0
    """

    def l1_weights(self, width: int) -> Floats:
        """No absolute part, (d,)."""
        return np.zeros(width)

    def l2_factor(self, width: int) -> Floats:
        """Factor of the quadratic part: the identity."""
        return np.eye(width)


@final
@dataclass(frozen=True, eq=False)
class Mahalanobis(Cost):
    """Squared generalised distance, ``delta' matrix delta``.

    Parameters
    ----------
    matrix : array-like of shape (d, d)
        Symmetric positive semidefinite. Along directions it does not see, changes are free.

    Examples
    --------
    >>> Mahalanobis([[2.0, 0.0], [0.0, 1.0]]).value([1.0, 3.0])
    11.0
    """

    matrix: Floats  # (d, d)
    root: Floats  # (rank, d), root' root = matrix

    def __init__(self, matrix: ArrayLike) -> None:
        object.__setattr__(self, "root", psd_factor("matrix", matrix))
        object.__setattr__(self, "matrix", finite_matrix("matrix", matrix))

    def __repr__(self) -> str:
        return f"Mahalanobis({self.matrix.tolist()})"

    def l1_weights(self, width: int) -> Floats:
        """No absolute part, (d,)."""
        return np.zeros(width)

    def l2_factor(self, width: int) -> Floats:
        """Factor of the quadratic part, (rank, d)."""
        if self.matrix.shape[0] != width:
            raise InvalidInputError(
                f"Mahalanobis has a matrix of shape {self.matrix.shape}; expected "
                f"({width}, {width}), for {width} features."
            )
        return self.root


def mad_weights(X: ArrayLike, constant: float | None = None) -> Floats:
    """Weights for `Manhattan`: one over the median absolute deviation of each feature.

    A change then counts in units of how much the feature usually varies, so that euros and
    years can be compared.

    Where more than half of the values are equal (a pool area that is mostly 0), the median
    absolute deviation is 0 and its inverse is of no use. Such a feature takes the mean
    absolute deviation from the median instead, times 0.8453, which is what the median
    absolute deviation would be for normal data of that mean deviation. A feature that never
    varies has no natural unit: it gets the weight `constant` if that is given, else an error.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Typically the training rows.
    constant : float, optional
        Positive weight of features that never vary.

    Returns
    -------
    ndarray of shape (d,)

    Examples
    --------
    >>> mad_weights([[1.0, 0.0], [2.0, 10.0], [3.0, 40.0]])
    array([1. , 0.1])
    """
    rows = finite_matrix("X", X)
    if constant is not None and not _is_positive(constant):
        raise InvalidInputError(f"constant is {constant!r}; expected a positive weight or None.")
    deviations = np.abs(rows - np.median(rows, axis=0))
    unit = np.median(deviations, axis=0)
    unit = np.where(unit > 0, unit, _MEDIAN_TO_MEAN_DEVIATION * deviations.mean(axis=0))
    still = np.flatnonzero(unit == 0)
    if still.size and constant is None:
        raise InvalidInputError(
            f"column {still[0]} of X is {rows[0, still[0]]:g} in every row ({still.size} such "
            f"column(s) in all), so it has no deviation to weigh by; expected features that "
            f"vary. Freeze or drop it, or pass constant=1.0 to give it a weight of its own."
        )
    weights = np.full(unit.shape, 1.0 if constant is None else float(constant))
    np.divide(1.0, unit, out=weights, where=unit > 0)
    return read_only(weights)


def _is_positive(value: object) -> bool:
    return isinstance(value, Real) and 0 < float(value) < np.inf

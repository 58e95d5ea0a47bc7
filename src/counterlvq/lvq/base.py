"""What the six estimators share: training in one run, and winner-takes-all prediction."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from counterlvq.lvq import parameters
from counterlvq.lvq.losses import Loss
from counterlvq.lvq.objective import Minimum, Objective
from counterlvq.lvq.starts import Samples, Units, kmeans_prototypes, merged, start_factor
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.single_thread import one_blas_thread

__all__ = ["LocalMatrixLVQ", "MatrixLVQ", "PrototypeLVQ"]


class PrototypeLVQ(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Labelled prototypes under the Euclidean distance; a loss makes it an estimator."""

    prototypes_per_class: Any
    init: Any
    max_iter: int
    tol: float
    random_state: Any

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on samples.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,)
            Labels of any kind scikit-learn accepts, of at least two classes.
        sample_weight : array-like of shape (n,), optional
            Weight of each sample in the cost. A sample of weight 0 counts as absent, one of
            weight 2 as written twice.

        Returns
        -------
        self
        """
        samples = self._checked_samples(X, y, sample_weight)
        # Products this small lose time to threads, and their sums would depend on the cores.
        with one_blas_thread():
            self._train(samples)
        return self

    def _train(self, samples: Samples) -> None:
        counts = parameters.prototype_counts(self.prototypes_per_class, self.classes_)
        prototype_class = np.repeat(np.arange(len(counts)), counts)
        start = parameters.given_prototypes(self.init, len(prototype_class), samples.X.shape[1])
        units = Units.of(samples)
        inner = Samples(units.enter(samples.X), samples.y, samples.weight / samples.weight.sum())
        if start is None:
            parameters.refuse_too_few_samples(samples, counts, self.classes_)
            points = kmeans_prototypes(inner, counts, check_random_state(self.random_state))
        else:
            points = units.enter(start)
        self._keep(self._descend(inner, points, prototype_class, units), prototype_class, units)

    def _checked_samples(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> Samples:
        rows, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        weight = parameters.weights(sample_weight, len(rows))
        present = weight > 0
        self.classes_, positions = np.unique(labels[present], return_inverse=True)
        parameters.refuse_too_few_classes(self.classes_)
        return merged(rows[present], positions, weight[present])

    def _descend(
        self, inner: Samples, points: Floats, prototype_class: NDArray[np.intp], units: Units
    ) -> Minimum:
        """Train in inner coordinates, from a start given in them."""
        max_iter = parameters.at_least_one("max_iter", self.max_iter)
        tol = parameters.non_negative("tol", self.tol)
        which = self._which(prototype_class)
        factor = None
        if which is not None:
            rank = min(self._rank(len(units.varying)), inner.X.shape[1])
            factor = start_factor(inner, rank)
        objective = Objective(
            inner.X,
            inner.y,
            inner.weight,
            prototype_class,
            which,
            self._loss(_spread(inner, points, prototype_class, factor), units.scale),
            self._regularization(),
        )
        if factor is not None and which is not None:
            factor = np.repeat(factor[None], which.max() + 1, axis=0)
        found = objective.minimize(points, factor, max_iter, tol)
        if found.hit_limit:
            warnings.warn(
                f"{type(self).__name__} stopped after max_iter={max_iter} iterations, before the "
                f"cost settled within tol={tol:g}. Raise max_iter, raise tol, or standardise "
                f"the features.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return found

    def _keep(self, found: Minimum, prototype_class: NDArray[np.intp], units: Units) -> None:
        self.prototypes_ = units.leave_points(found.prototypes)
        self.prototype_labels_ = self.classes_[prototype_class]
        self.omegas_: Floats | None = None
        which = self._which(prototype_class)
        if found.omegas is not None and which is not None:
            omegas = units.leave_factors(found.omegas, self._rank(len(units.varying)))
            self.omegas_ = self._shaped(omegas[which])
        self.objective_ = found.value
        # A start that is already settled was still looked at once, as scikit-learn counts.
        self.n_iter_ = max(found.n_iter, 1)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Label of the nearest prototype of each row.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n,)
        """
        rows = self._rows(X)
        return self._model().predict(rows)

    def _rows(self, X: ArrayLike) -> Floats:
        check_is_fitted(self)
        rows: Floats = validate_data(self, X, dtype=np.float64, reset=False)
        return rows

    def _model(self) -> PrototypeModel:
        # Built from the public attributes each time, so that the two can never disagree.
        return PrototypeModel(self.prototypes_, self.prototype_labels_, self.omegas_)

    @abstractmethod
    def _loss(self, spread: float, scale: float) -> Loss:
        """Loss in inner coordinates.

        `spread` is the mean squared distance of the samples to the nearest start of their own
        class, under the start metric; `scale` is the length of one inner unit.
        """

    def _which(self, prototype_class: NDArray[np.intp]) -> NDArray[np.intp] | None:
        """Metric of each prototype, or None for Euclidean distances."""
        return None

    def _rank(self, width: int) -> int:
        return width

    def _regularization(self) -> float:
        return 0.0

    def _shaped(self, omegas: Floats) -> Floats:
        """Turn the factors of all prototypes, (p, r, d), into the attribute `omegas_`."""
        return omegas


class MatrixLVQ(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrototypeLVQ):  # type: ignore[misc]
    """One metric, learnt with the prototypes."""

    n_components: int | None
    regularization: float

    @property
    def relevances_(self) -> Floats:
        """Diagonal of the metric, (d,): what each feature contributes; the sum is 1."""
        check_is_fitted(self)
        assert self.omegas_ is not None
        diagonal: Floats = np.einsum("...rd,...rd->...d", self.omegas_, self.omegas_)
        return diagonal

    def transform(self, X: ArrayLike) -> Floats:
        """Project rows on the two leading directions of the metric, for a picture.

        Squared distances in the picture are the metric's own, less what the other directions
        add. One column remains where the metric has a single row.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n, 2)
        """
        rows = self._rows(X)
        picture: Floats = rows @ self._directions().T
        return picture

    def _directions(self) -> Floats:
        """Eigenvectors of the mean metric, (2, d), as long as the roots of their eigenvalues."""
        assert self.omegas_ is not None
        omegas = self.omegas_.reshape(-1, self.omegas_.shape[-2], self.n_features_in_)
        stacked = omegas.reshape(-1, self.n_features_in_) / np.sqrt(len(omegas))
        _, sizes, directions = np.linalg.svd(stacked, full_matrices=False)
        leading = sizes[:2, None] * directions[:2]
        # The sign of a direction is free: its largest entry is made positive.
        largest = np.abs(leading).argmax(axis=1)
        signs = np.where(leading[np.arange(len(leading)), largest] < 0, -1.0, 1.0)
        out: Floats = signs[:, None] * leading
        return out

    @property
    def _n_features_out(self) -> int:
        return int(self._directions().shape[0])

    def _which(self, prototype_class: NDArray[np.intp]) -> NDArray[np.intp] | None:
        return np.zeros_like(prototype_class)

    def _rank(self, width: int) -> int:
        return parameters.rank(self.n_components, width)

    def _regularization(self) -> float:
        return parameters.non_negative("regularization", self.regularization)

    def _shaped(self, omegas: Floats) -> Floats:
        shared: Floats = omegas[0]
        return shared


class LocalMatrixLVQ(MatrixLVQ):
    """A metric for each prototype, or for each class, learnt with the prototypes."""

    localization: str

    @property
    def relevances_(self) -> Floats:
        """Diagonal of each prototype's metric, (p, d): each row has sum 1."""
        return super().relevances_

    def transform(self, X: ArrayLike) -> Floats:
        """Project rows on the two leading directions of the mean of the prototypes' metrics.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n, 2)
        """
        return super().transform(X)

    def _which(self, prototype_class: NDArray[np.intp]) -> NDArray[np.intp] | None:
        allowed = ("prototype", "class")
        if parameters.one_of("localization", self.localization, allowed) == "class":
            return prototype_class
        return np.arange(len(prototype_class))

    def _shaped(self, omegas: Floats) -> Floats:
        return omegas


def _spread(
    inner: Samples, points: Floats, prototype_class: NDArray[np.intp], factor: Floats | None
) -> float:
    if factor is None:
        distances = cdist(inner.X, points, "sqeuclidean")
    else:
        unit = factor / np.linalg.norm(factor)
        distances = cdist(inner.X @ unit.T, points @ unit.T, "sqeuclidean")
    own = inner.y[:, None] == prototype_class
    return float(inner.weight @ np.where(own, distances, np.inf).min(axis=1))

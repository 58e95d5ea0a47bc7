"""Robust soft learning vector quantisation: the likelihood of the labels, made large."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterlvq.lvq import parameters
from counterlvq.lvq.base import LocalMatrixLVQ, MatrixLVQ, PrototypeLVQ
from counterlvq.lvq.losses import LikelihoodRatio
from counterlvq.numeric.arrays import Floats

__all__ = ["LMRSLVQ", "MRSLVQ", "RSLVQ"]

# "auto", as a share of the root mean square distance to the nearest start of the own class.
# Wide components make far samples pull at every prototype, and several of them overfit.
_AUTO_SIGMA = 0.25


class _SoftLVQ(PrototypeLVQ):
    sigma: float | str

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Probability of each class, by the component of its nearest prototype.

        The largest is always that of the class that `predict` names.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n, c)
            Columns in the order of `classes_`.
        """
        logs, winner = self._log_shares(X)
        return _leading(np.exp(logs), winner)

    def predict_log_proba(self, X: ArrayLike) -> Floats:
        """Logarithm of `predict_proba`, exact where that rounds to 0.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n, c)
        """
        return _leading(*self._log_shares(X))

    def _log_shares(self, X: ArrayLike) -> tuple[Floats, NDArray[np.intp]]:
        """Log probabilities, (n, c), and the class that `predict` names, (n,)."""
        rows, model = self._rows(X), self._model()
        distances = model.distances(rows)
        members = [self.prototype_labels_ == label for label in self.classes_]
        nearest = np.stack([distances[:, own].min(axis=1) for own in members], axis=1)
        winner = np.searchsorted(self.classes_, model.predict(rows))
        # `predict` is exact, distances are rounded: the class that it names is the nearest.
        nearest[np.arange(len(rows)), winner] = nearest.min(axis=1)
        return LikelihoodRatio(self.sigma_).log_shares(nearest), winner

    def _loss(self, spread: float, scale: float) -> LikelihoodRatio:
        if isinstance(self.sigma, str):
            parameters.one_of("sigma", self.sigma, ("auto",))
            # Samples that all sit on a start have no spread; any width serves them.
            self.sigma_ = _AUTO_SIGMA * scale * float(np.sqrt(spread) or 1.0)
        else:
            self.sigma_ = parameters.positive("sigma", self.sigma, "'auto'")
        return LikelihoodRatio(self.sigma_ / scale)


def _leading(values: Floats, winner: NDArray[np.intp]) -> Floats:
    """Lift the winner by one digit where it ties with a class that is listed before it."""
    tied = np.flatnonzero(values.argmax(axis=1) != winner)
    values[tied, winner[tied]] = np.nextafter(values[tied, winner[tied]], np.inf)
    return values


@final
class RSLVQ(_SoftLVQ):
    """Robust soft learning vector quantisation.

    Maximises the mean log-likelihood ratio ``log p(x, y) / p(x)`` of a mixture with one
    component ``exp(-distance / (2 sigma^2))`` per prototype, all of the same weight.

    Parameters
    ----------
    prototypes_per_class : int or mapping from label to int, default=1
        How many prototypes each class has. Where a class has fewer distinct samples than that,
        some of its prototypes coincide.
    sigma : float or "auto", default="auto"
        Width of the Gaussian components, in units of the distance. "auto" is a quarter of the
        root mean square distance between samples and the nearest start of their own class.
    init : "k-means" or array-like of shape (p, d), default="k-means"
        Where the prototypes start: the best of up to twenty k-means runs in each class, or
        the rows given, class by class in the order of `classes_`.
    max_iter : int, default=1000
        Most iterations of L-BFGS-B. Reaching it raises a `ConvergenceWarning`.
    tol : float, default=1e-3
        Training ends when one iteration lowers the cost by less than this (relative to the
        cost where it is above 1). It is loose on purpose: where classes can be separated
        the likelihood ratio has no best value, and late iterations only overfit.
    random_state : int, RandomState instance or None, default=None
        Seeds k-means++. An int makes `fit` repeatable, on one machine to the last digit.

    Attributes
    ----------
    classes_ : ndarray of shape (c,)
        The labels, sorted.
    prototypes_ : ndarray of shape (p, d)
        Class by class, in the order of `classes_`.
    prototype_labels_ : ndarray of shape (p,)
        The label of each prototype.
    omegas_ : None
        The metric is Euclidean.
    objective_ : float
        The cost at the end: the mean of ``-log(p(x, y) / p(x))`` over the samples.
    n_iter_ : int
        Iterations of L-BFGS-B.
    sigma_ : float
        The width that was used.
    n_features_in_ : int
        Features seen in `fit`.
    feature_names_in_ : ndarray of shape (d,)
        Their names, where X has names that are all strings.

    Notes
    -----
    `predict` takes the label of the nearest prototype, and `predict_proba` compares the nearest
    prototypes of the classes, so that the two agree. Training goes by the sums over all
    prototypes of a class, as published; with one prototype per class they are the same.

    Examples
    --------
    >>> from counterlvq.lvq import RSLVQ
    >>> X = [[0.0, 1.0], [1.0, 0.0], [4.0, 5.0], [5.0, 4.0]]
    >>> model = RSLVQ(sigma=2.0, random_state=0).fit(X, ["low", "low", "high", "high"])
    >>> model.predict([[1.0, 1.0], [3.0, 5.0]])
    array(['low', 'high'], dtype='<U4')
    >>> model.predict_proba([[2.5, 2.5]]).round(3)
    array([[0.5, 0.5]])
    """

    def __init__(
        self,
        prototypes_per_class: int | Mapping[Any, int] = 1,
        *,
        sigma: float | str = "auto",
        init: str | ArrayLike = "k-means",
        max_iter: int = 1000,
        tol: float = 1e-3,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.prototypes_per_class = prototypes_per_class
        self.sigma = sigma
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state


@final
class MRSLVQ(_SoftLVQ, MatrixLVQ):
    """Matrix robust soft learning vector quantisation: one metric is learnt as well.

    The cost is that of `RSLVQ` with the distance ``|omega (x - prototype)|^2``. The trace of
    ``omega' omega`` is held at 1.

    Parameters
    ----------
    prototypes_per_class : int or mapping from label to int, default=1
        How many prototypes each class has. Where a class has fewer distinct samples than that,
        some of its prototypes coincide.
    n_components : int, optional
        Rows of the factor of the metric, and so its largest rank; one per feature by default.
    regularization : float, default=0.0
        Strength r of a penalty ``-r / 2 log det(omega omega')`` that keeps the metric from
        collapsing to few directions.
    sigma : float or "auto", default="auto"
        Width of the Gaussian components, in units of the distance. "auto" is a quarter of the
        root mean square distance between samples and the nearest start of their own class.
    init : "k-means" or array-like of shape (p, d), default="k-means"
        Where the prototypes start: the best of up to twenty k-means runs in each class, or
        the rows given, class by class in the order of `classes_`.
    max_iter : int, default=1000
        Most iterations of L-BFGS-B. Reaching it raises a `ConvergenceWarning`.
    tol : float, default=1e-3
        Training ends when one iteration lowers the cost by less than this (relative to the
        cost where it is above 1). It is loose on purpose: where classes can be separated
        the likelihood ratio has no best value, and late iterations only overfit.
    random_state : int, RandomState instance or None, default=None
        Seeds k-means++. An int makes `fit` repeatable, on one machine to the last digit.

    Attributes
    ----------
    classes_ : ndarray of shape (c,)
        The labels, sorted.
    prototypes_ : ndarray of shape (p, d)
        Class by class, in the order of `classes_`.
    prototype_labels_ : ndarray of shape (p,)
        The label of each prototype.
    omegas_ : ndarray of shape (r, d)
        Factor of the metric; the trace of ``omegas_.T @ omegas_`` is 1.
    relevances_ : ndarray of shape (d,)
        Diagonal of the metric; the sum is 1.
    objective_ : float
        The cost at the end: its mean over the samples, plus the penalty.
    n_iter_ : int
        Iterations of L-BFGS-B.
    sigma_ : float
        The width that was used.
    n_features_in_ : int
        Features seen in `fit`.
    feature_names_in_ : ndarray of shape (d,)
        Their names, where X has names that are all strings.

    Notes
    -----
    `predict` takes the label of the nearest prototype, and `predict_proba` compares the nearest
    prototypes of the classes, so that the two agree. Training goes by the sums over all
    prototypes of a class, as published; with one prototype per class they are the same.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from counterlvq.lvq import MRSLVQ
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MRSLVQ(random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    >>> model.omegas_.shape, model.transform(X).shape
    ((4, 4), (150, 2))
    """

    def __init__(
        self,
        prototypes_per_class: int | Mapping[Any, int] = 1,
        *,
        n_components: int | None = None,
        regularization: float = 0.0,
        sigma: float | str = "auto",
        init: str | ArrayLike = "k-means",
        max_iter: int = 1000,
        tol: float = 1e-3,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.prototypes_per_class = prototypes_per_class
        self.n_components = n_components
        self.regularization = regularization
        self.sigma = sigma
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state


@final
class LMRSLVQ(_SoftLVQ, LocalMatrixLVQ):
    """Local matrix robust soft learning vector quantisation: a metric per prototype.

    The cost is that of `RSLVQ` with the distance ``|omega_k (x - prototype_k)|^2``. The trace
    of each ``omega_k' omega_k`` is held at 1. As in the other two models all components have
    the same weight and height, so that the nearest prototype is the most likely one.

    Parameters
    ----------
    prototypes_per_class : int or mapping from label to int, default=1
        How many prototypes each class has. Where a class has fewer distinct samples than that,
        some of its prototypes coincide.
    localization : {"prototype", "class"}, default="prototype"
        Whether each prototype has a metric of its own, or all prototypes of a class share one.
    n_components : int, optional
        Rows of the factor of a metric, and so its largest rank; one per feature by default.
    regularization : float, default=0.0
        Strength r of a penalty ``-r / 2 log det(omega omega')`` that keeps a metric from
        collapsing to few directions; its mean over the metrics counts.
    sigma : float or "auto", default="auto"
        Width of the Gaussian components, in units of the distance. "auto" is a quarter of the
        root mean square distance between samples and the nearest start of their own class.
    init : "k-means" or array-like of shape (p, d), default="k-means"
        Where the prototypes start: the best of up to twenty k-means runs in each class, or
        the rows given, class by class in the order of `classes_`.
    max_iter : int, default=1000
        Most iterations of L-BFGS-B. Reaching it raises a `ConvergenceWarning`.
    tol : float, default=1e-3
        Training ends when one iteration lowers the cost by less than this (relative to the
        cost where it is above 1). It is loose on purpose: where classes can be separated
        the likelihood ratio has no best value, and late iterations only overfit.
    random_state : int, RandomState instance or None, default=None
        Seeds k-means++. An int makes `fit` repeatable, on one machine to the last digit.

    Attributes
    ----------
    classes_ : ndarray of shape (c,)
        The labels, sorted.
    prototypes_ : ndarray of shape (p, d)
        Class by class, in the order of `classes_`.
    prototype_labels_ : ndarray of shape (p,)
        The label of each prototype.
    omegas_ : ndarray of shape (p, r, d)
        Factor of each prototype's metric, of trace 1; equal within a class if
        ``localization="class"``.
    relevances_ : ndarray of shape (p, d)
        Diagonal of each metric; rows have sum 1.
    objective_ : float
        The cost at the end: its mean over the samples, plus the penalty.
    n_iter_ : int
        Iterations of L-BFGS-B.
    sigma_ : float
        The width that was used.
    n_features_in_ : int
        Features seen in `fit`.
    feature_names_in_ : ndarray of shape (d,)
        Their names, where X has names that are all strings.

    Notes
    -----
    `predict` takes the label of the nearest prototype, and `predict_proba` compares the nearest
    prototypes of the classes, so that the two agree. Training goes by the sums over all
    prototypes of a class, as published; with one prototype per class they are the same.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from counterlvq.lvq import LMRSLVQ
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LMRSLVQ(localization="class", random_state=0).fit(X, y)
    >>> model.relevances_.shape
    (3, 4)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    def __init__(
        self,
        prototypes_per_class: int | Mapping[Any, int] = 1,
        *,
        localization: str = "prototype",
        n_components: int | None = None,
        regularization: float = 0.0,
        sigma: float | str = "auto",
        init: str | ArrayLike = "k-means",
        max_iter: int = 1000,
        tol: float = 1e-3,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.prototypes_per_class = prototypes_per_class
        self.localization = localization
        self.n_components = n_components
        self.regularization = regularization
        self.sigma = sigma
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

"""Generalised learning vector quantisation: relative distances, made small."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from counterlvq.lvq import parameters
from counterlvq.lvq.base import LocalMatrixLVQ, MatrixLVQ, PrototypeLVQ
from counterlvq.lvq.losses import RelativeDistance
from counterlvq.numeric.arrays import Floats

__all__ = ["GLVQ", "GMLVQ", "LGMLVQ"]


class _RelativeLVQ(PrototypeLVQ):
    beta: float | None

    def decision_function(self, X: ArrayLike) -> Floats:
        """Relative distance difference of each class.

        For class c it is ``(d_other - d_c) / (d_other + d_c)``, between -1 and 1, with d_c the
        squared distance to the nearest prototype of c and d_other to the nearest of any other
        class. It is positive for the predicted class only.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n,) or (n, c)
            With two classes, the value of ``classes_[1]``; else one column per class.
        """
        rows = self._rows(X)
        model = self._model()
        distances = model.distances(rows)
        inside = np.stack(
            [distances[:, self.prototype_labels_ == label].min(axis=1) for label in self.classes_],
            axis=1,
        )
        first, second = np.partition(inside, 1, axis=1)[:, :2].T
        nearest = inside.argmin(axis=1)[:, None] == np.arange(len(self.classes_))
        outside = np.where(nearest, second[:, None], first[:, None])
        total = np.maximum(outside + inside, np.finfo(np.float64).tiny)
        scores: Floats = (outside - inside) / total
        return scores[:, 1] if len(self.classes_) == 2 else scores

    def _loss(self, spread: float, scale: float) -> RelativeDistance:
        if self.beta is None:
            return RelativeDistance(None)
        return RelativeDistance(parameters.positive("beta", self.beta, "None for the identity"))


@final
class GLVQ(_RelativeLVQ):
    """Generalised learning vector quantisation.

    Minimises the mean of ``f((d+ - d-) / (d+ + d-))``, where d+ is the squared distance of a
    sample to the nearest prototype of its own class and d- to the nearest of another one.

    Parameters
    ----------
    prototypes_per_class : int or mapping from label to int, default=1
        How many prototypes each class has. Where a class has fewer distinct samples than that,
        some of its prototypes coincide.
    beta : float or None, default=4.0
        Slope of the logistic transfer function f; None for the identity. A steeper one looks
        more at samples near the boundary.
    init : "k-means" or array-like of shape (p, d), default="k-means"
        Where the prototypes start: the best of up to twenty k-means runs in each class, or
        the rows given, class by class in the order of `classes_`.
    max_iter : int, default=1000
        Most iterations of L-BFGS-B. Reaching it raises a `ConvergenceWarning`.
    tol : float, default=1e-4
        Training ends when one iteration lowers the cost by less than this (relative to the
        cost where it is above 1).
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
        The cost at the end: its mean over the samples.
    n_iter_ : int
        Iterations of L-BFGS-B.
    n_features_in_ : int
        Features seen in `fit`.
    feature_names_in_ : ndarray of shape (d,)
        Their names, where X has names that are all strings.

    Examples
    --------
    >>> from counterlvq.lvq import GLVQ
    >>> X = [[0.0, 1.0], [1.0, 0.0], [4.0, 5.0], [5.0, 4.0]]
    >>> model = GLVQ(random_state=0).fit(X, ["low", "low", "high", "high"])
    >>> model.predict([[1.0, 1.0], [3.0, 5.0]])
    array(['low', 'high'], dtype='<U4')
    """

    def __init__(
        self,
        prototypes_per_class: int | Mapping[Any, int] = 1,
        *,
        beta: float | None = 4.0,
        init: str | ArrayLike = "k-means",
        max_iter: int = 1000,
        tol: float = 1e-4,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.prototypes_per_class = prototypes_per_class
        self.beta = beta
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state


@final
class GMLVQ(_RelativeLVQ, MatrixLVQ):
    """Generalised matrix learning vector quantisation: one metric is learnt as well.

    The cost is that of `GLVQ` with the distance ``|omega (x - prototype)|^2``. The trace of
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
    beta : float or None, default=4.0
        Slope of the logistic transfer function f; None for the identity. A steeper one looks
        more at samples near the boundary.
    init : "k-means" or array-like of shape (p, d), default="k-means"
        Where the prototypes start: the best of up to twenty k-means runs in each class, or
        the rows given, class by class in the order of `classes_`.
    max_iter : int, default=1000
        Most iterations of L-BFGS-B. Reaching it raises a `ConvergenceWarning`.
    tol : float, default=1e-4
        Training ends when one iteration lowers the cost by less than this (relative to the
        cost where it is above 1).
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
    n_features_in_ : int
        Features seen in `fit`.
    feature_names_in_ : ndarray of shape (d,)
        Their names, where X has names that are all strings.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from counterlvq.lvq import GMLVQ
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GMLVQ(random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    >>> int(model.relevances_.argmax()), model.transform(X).shape
    (3, (150, 2))
    """

    def __init__(
        self,
        prototypes_per_class: int | Mapping[Any, int] = 1,
        *,
        n_components: int | None = None,
        regularization: float = 0.0,
        beta: float | None = 4.0,
        init: str | ArrayLike = "k-means",
        max_iter: int = 1000,
        tol: float = 1e-4,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.prototypes_per_class = prototypes_per_class
        self.n_components = n_components
        self.regularization = regularization
        self.beta = beta
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state


@final
class LGMLVQ(_RelativeLVQ, LocalMatrixLVQ):
    """Localised generalised matrix learning vector quantisation: a metric per prototype.

    The cost is that of `GLVQ` with the distance ``|omega_k (x - prototype_k)|^2``. The trace of
    each ``omega_k' omega_k`` is held at 1.

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
    beta : float or None, default=4.0
        Slope of the logistic transfer function f; None for the identity. A steeper one looks
        more at samples near the boundary.
    init : "k-means" or array-like of shape (p, d), default="k-means"
        Where the prototypes start: the best of up to twenty k-means runs in each class, or
        the rows given, class by class in the order of `classes_`.
    max_iter : int, default=1000
        Most iterations of L-BFGS-B. Reaching it raises a `ConvergenceWarning`.
    tol : float, default=1e-4
        Training ends when one iteration lowers the cost by less than this (relative to the
        cost where it is above 1).
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
    n_features_in_ : int
        Features seen in `fit`.
    feature_names_in_ : ndarray of shape (d,)
        Their names, where X has names that are all strings.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from counterlvq.lvq import LGMLVQ
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LGMLVQ(n_components=2, random_state=0).fit(X, y)
    >>> model.omegas_.shape
    (3, 2, 4)
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
        beta: float | None = 4.0,
        init: str | ArrayLike = "k-means",
        max_iter: int = 1000,
        tol: float = 1e-4,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.prototypes_per_class = prototypes_per_class
        self.localization = localization
        self.n_components = n_components
        self.regularization = regularization
        self.beta = beta
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

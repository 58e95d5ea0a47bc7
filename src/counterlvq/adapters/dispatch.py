"""One function for every supported estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from counterlvq.adapters import (
    clusterings,
    gaussians,
    linear,
    own_estimators,
    prosemble,
    prototorch,
    scikit_learn,
    sklearn_lvq,
    sklvq,
    thresholds,
)
from counterlvq.adapters.arithmetic import Arithmetic, unit_of
from counterlvq.adapters.attributes import thawed
from counterlvq.adapters.probing import compare
from counterlvq.errors import NotSupportedError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.tolerances import EPSILON, SINGLE_EPSILON

__all__ = ["LIBRARIES", "Library", "as_prototype_model", "recognised"]


def _predict(fitted: Any, rows: Any) -> Any:
    return fitted.predict(rows)


def _predict_with_tensors(fitted: Any, rows: Any) -> Any:
    return prototorch.predict_with_tensors(fitted, np.asarray(rows))


def _from_differences(fitted: Any, kind: str, model: PrototypeModel) -> Arithmetic:
    """Describe arithmetic with differences of rows and prototypes, row by row."""
    fields = [value for value in vars(fitted).values() if isinstance(value, np.ndarray)]
    unit = unit_of(*fields)
    return Arithmetic(model, unit, by_products=False, casts=unit != EPSILON)


@final
@dataclass(frozen=True)
class Library:
    """Where the classes of a library are defined, and how a fitted one is read.

    `docs/howto/extending.md` adds one, step by step.
    """

    name: str
    package: str
    kinds: tuple[str, ...]
    read: Callable[[Any, str], PrototypeModel]
    predict: Callable[[Any, Any], Any] = _predict
    epsilon: float = EPSILON
    arithmetic: Callable[[Any, str, PrototypeModel], Arithmetic] = _from_differences

    def owns(self, cls: type) -> bool:
        """Whether a class is one of the library's, by name: nothing is imported."""
        module = f"{cls.__module__}."
        return cls.__name__ in self.kinds and module.startswith(f"{self.package}.")


LIBRARIES = (
    Library(
        "counterlvq", own_estimators.PACKAGE, own_estimators.KINDS, own_estimators.model_from_own
    ),
    Library(
        "scikit-learn",
        scikit_learn.PACKAGE,
        scikit_learn.KINDS,
        scikit_learn.model_from_scikit_learn,
        arithmetic=scikit_learn.arithmetic_of_scikit_learn,
    ),
    Library(
        "scikit-learn",
        linear.PACKAGE,
        linear.KINDS,
        linear.model_from_linear,
        arithmetic=linear.arithmetic_of_linear,
    ),
    Library(
        "scikit-learn",
        gaussians.PACKAGE,
        gaussians.KINDS,
        gaussians.model_from_gaussians,
        arithmetic=gaussians.arithmetic_of_gaussians,
    ),
    Library(
        "scikit-learn",
        clusterings.PACKAGE,
        clusterings.KINDS,
        clusterings.model_from_clusterings,
        clusterings.predict_as_fitted,
        arithmetic=clusterings.arithmetic_of_clusterings,
    ),
    Library(
        "scikit-learn",
        thresholds.PACKAGE,
        thresholds.KINDS,
        thresholds.model_from_thresholds,
        arithmetic=thresholds.arithmetic_of_thresholds,
    ),
    Library(
        "counterlvq",
        thresholds.OWN,
        ("Thresholded",),
        thresholds.model_from_thresholds,
        arithmetic=thresholds.arithmetic_of_thresholds,
    ),
    Library(
        "sklearn-lvq",
        sklearn_lvq.PACKAGE,
        sklearn_lvq.KINDS,
        sklearn_lvq.model_from_sklearn_lvq,
        sklearn_lvq.predict_in_full,
    ),
    Library(
        "prosemble",
        prosemble.PACKAGE,
        prosemble.KINDS,
        prosemble.model_from_prosemble,
        prosemble.predict_with_jax,
        epsilon=SINGLE_EPSILON,
        arithmetic=prosemble.arithmetic_of_prosemble,
    ),
    Library("sklvq", sklvq.PACKAGE, sklvq.KINDS, sklvq.model_from_sklvq),
    Library(
        "prototorch-models",
        prototorch.PACKAGE,
        prototorch.KINDS,
        prototorch.model_from_prototorch,
        _predict_with_tensors,
        epsilon=SINGLE_EPSILON,  # tensors are single precision
        arithmetic=prototorch.arithmetic_of_prototorch,
    ),
)


def as_prototype_model(
    fitted: Any, probe: ArrayLike | None = None, threshold: float | None = None
) -> PrototypeModel:
    """Read a fitted classifier as labelled prototypes with a metric.

    Supported are the estimators of this package, the linear, Gaussian and nearest-neighbour
    classifiers and the clusterings of scikit-learn, and the models of sklearn-lvq, sklvq,
    prosemble and prototorch-models whose nearest prototype decides; docs/adapters.md lists
    them. None of these libraries is imported. A model that cannot be loaded here because it
    needs an older environment can be exported there, see `counterlvq.adapters.load_exported`.

    Parameters
    ----------
    fitted : estimator or PrototypeModel
        A `PrototypeModel` is returned as it is.
    probe : array-like of shape (n, d), optional
        Rows on which the classifier's own `predict` and the result are compared. Where they
        differ, other than by a tie within rounding, the classifier is refused.
    threshold : float, optional
        The probability, score or predicted number from which a binary classifier says its second
        class, or a regressor the upper side: short for ``Thresholded(fitted, threshold)``.

    Returns
    -------
    PrototypeModel

    Raises
    ------
    NotSupportedError
        If the nearest prototype under a quadratic distance is not what decides.
    InvalidInputError
        If the classifier is not fitted, or holds arrays that do not fit together.

    Examples
    --------
    >>> from sklearn.neighbors import NearestCentroid
    >>> X, y = [[0.0, 0.0], [1.0, 2.0], [4.0, 0.0], [5.0, 2.0]], ["no", "no", "yes", "yes"]
    >>> as_prototype_model(NearestCentroid().fit(X, y), probe=X)
    PrototypeModel(2 prototypes, 2 features, 2 classes, shared metric)
    >>> from sklearn.linear_model import LogisticRegression
    >>> as_prototype_model(
    ...     LogisticRegression().fit(X, y), threshold=0.08
    ... ).meaning.response.threshold
    0.08
    """
    fitted = thawed(fitted)
    if threshold is not None:
        fitted = thresholds.Thresholded(fitted, threshold)
    if isinstance(fitted, PrototypeModel):
        return fitted
    library, kind = recognised(fitted)
    model = library.read(fitted, kind)
    if probe is not None:
        name = f"{type(fitted).__name__} of {library.name}"
        arithmetic = library.arithmetic(fitted, kind, model)
        compare(fitted, name, model, probe, library.predict, library.epsilon, arithmetic)
    return model


def recognised(fitted: Any) -> tuple[Library, str]:
    """Find the library of a fitted model, and the name of its class there."""
    # The first known class from the most derived one upwards: a subclass of the user's own is
    # read like the class that it extends.
    for cls in type(fitted).__mro__:
        for library in LIBRARIES:
            if library.owns(cls):
                return library, cls.__name__
    raise NotSupportedError(_unknown(fitted))


def _unknown(fitted: Any) -> str:
    if isinstance(fitted, type):
        return f"{fitted.__name__} is a class; expected a fitted instance of it."
    if hasattr(fitted, "best_estimator_"):
        return (
            f"a {type(fitted).__name__} searches for an estimator and is none that can be read; "
            f"pass its best_estimator_."
        )
    if hasattr(fitted, "named_steps"):
        return (
            f"a {type(fitted).__name__} is a model behind steps, and prototypes lie in the space "
            f"of the model alone; expected its last step. Explainer, save and "
            f"TableModel.from_pipeline take the whole, in the columns of its table."
        )
    if any(cls.__name__ in linear.REGRESSORS for cls in type(fitted).__mro__):
        return (
            f"a {type(fitted).__name__} predicts a number and no class; expected one with a "
            f"threshold. Write Thresholded(model, threshold=...), or give `threshold`, with the "
            f"two sides as classes."
        )
    *most, last = dict.fromkeys(library.name for library in LIBRARIES)
    return (
        f"a {type(fitted).__name__} (from {type(fitted).__module__}) cannot be read as a prototype "
        f"model; expected a PrototypeModel or a model that compares distances, linear scores or "
        f"Gaussians, of {', '.join(most)} or {last}; docs/adapters.md lists them. For any other "
        f"rule in which the nearest prototype decides, build a PrototypeModel yourself."
    )

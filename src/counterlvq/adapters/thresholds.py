"""Decisions that a threshold makes: on a score, a probability or a predicted number.

The score of two classes is a difference, so that a threshold on it is one offset. A probability
that is a logistic function of the score has its threshold at the log odds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterlvq.adapters import gaussians, linear
from counterlvq.adapters.arithmetic import Arithmetic
from counterlvq.adapters.attributes import fitted_attribute, thawed
from counterlvq.adapters.gaussians import GaussianScores
from counterlvq.adapters.linear_scores import LinearScores
from counterlvq.errors import InvalidInputError, NotSupportedError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats, finite_scalar, plain, told
from counterlvq.numeric.tolerances import EPSILON
from counterlvq.types import Response

__all__ = [
    "KINDS",
    "OWN",
    "PACKAGE",
    "Thresholded",
    "arithmetic_of_thresholds",
    "model_from_thresholds",
    "rewrapped",
    "threshold_on",
    "wrapped",
]

PACKAGE, OWN = "sklearn.model_selection", "counterlvq.adapters.thresholds"
KINDS = ("FixedThresholdClassifier", "TunedThresholdClassifierCV")
# Roundings of a probability and of its comparison, in units of what it is compared with.
_ROUNDINGS_OF_PROBABILITY = 16
# Letters of a class in the name of its probability, which model files hold.
_LABEL_LETTERS = 60


@final
@dataclass(frozen=True, eq=False, repr=False, init=False)
class Thresholded:
    """A fitted model and the number from which its decision is another one.

    Parameters
    ----------
    estimator : classifier for two classes, regressor, or Pipeline that ends in one
        Fitted; of those whose score is linear or Gaussian.
    threshold : float
        Rows with at least this value belong to `label`.
    label : label, optional
        Of a classifier, the class that the value speaks for; the second of its classes by
        default.
    response : {"probability", "score", "prediction"}, optional
        What is compared: `predict_proba` of `label`, `decision_function` towards `label`, or what
        a regressor predicts. By default the first of these that the estimator has.
    labels : pair of labels, optional
        What the two sides are called, below the threshold and from it on. The classes of a
        classifier by default, and "< 640" and ">= 640" of a regressor.
    points : pair of float, optional
        Of a scorecard, ``(offset, factor)``: the value is ``offset + factor * score``, and the
        threshold is one on these points. `factor` is above 0.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> import counterlvq as clvq
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], ["paid", "paid", "default", "default"]
    >>> risk = clvq.Thresholded(LogisticRegression().fit(X, y), threshold=0.08, label="default")
    >>> risk.predict([[-2.0], [3.0]]).tolist()
    ['paid', 'default']
    >>> cf = clvq.Explainer(risk).explain([3.0], target="paid")
    >>> bool(risk.values([cf.x])[0] < 0.08)
    True
    """

    estimator: Any
    threshold: float
    response: str
    classes_: NDArray[Any]  # below the threshold, and from it on
    points: tuple[float, float] | None
    _at: int  # of the class that the value speaks for; -1 of a regressor

    def __init__(
        self,
        estimator: Any,
        threshold: float,
        label: Any = None,
        response: str | None = None,
        labels: ArrayLike | None = None,
        points: tuple[float, float] | None = None,
    ) -> None:
        estimator = thawed(estimator)
        object.__setattr__(self, "estimator", estimator)
        object.__setattr__(self, "threshold", finite_scalar("threshold", threshold))
        object.__setattr__(self, "response", _checked_response(estimator, response, points))
        object.__setattr__(self, "points", _checked_points(points))
        if self.response == "probability" and not 0 < self.threshold < 1:
            raise InvalidInputError(
                f"threshold is {self.threshold:g}, of a probability; expected a number between 0 "
                f"and 1. A score is meant by response='score'."
            )
        at, sides = self._sides(label)
        object.__setattr__(self, "_at", at)
        object.__setattr__(self, "classes_", sides if labels is None else _checked_sides(labels))

    def __repr__(self) -> str:
        return (
            f"Thresholded({type(self.estimator).__name__}, threshold={self.threshold:g}, "
            f"response={self.response!r})"
        )

    def _sides(self, label: Any) -> tuple[int, NDArray[Any]]:
        if self.response == "prediction":
            if label is not None:
                raise InvalidInputError(
                    f"label is {told(label)}, and a regressor has no classes; expected `labels`, "
                    f"a pair of names for the two sides."
                )
            shown = f"{self.threshold:g}"
            return -1, np.array([f"< {shown}", f">= {shown}"])
        classes = np.asarray(fitted_attribute(self.estimator, "classes_"))
        if classes.shape != (2,):
            raise NotSupportedError(
                f"this {type(self.estimator).__name__} has classes of shape {classes.shape}; "
                f"expected two classes. With more, no single number decides."
            )
        known = classes.tolist()
        if label is not None and label not in known:
            raise InvalidInputError(
                f"label is {told(label)}; expected one of the classes: "
                f"{', '.join(map(repr, known))}."
            )
        at = 1 if label is None else known.index(label)
        return at, classes[[1 - at, at]]

    @property
    def name(self) -> str:
        """What is compared with the threshold, and of which class a probability is."""
        if self.response != "probability":
            return self.response
        label = plain(np.asarray(self.estimator.classes_)[self._at])
        return f"probability of {str(label)[:_LABEL_LETTERS]}"

    @property
    def n_features_in_(self) -> int:
        """How many columns there are."""
        return int(fitted_attribute(self.estimator, "n_features_in_"))

    def __getattr__(self, name: str) -> Any:
        if name == "feature_names_in_":  # there only where the estimator has it
            return getattr(object.__getattribute__(self, "estimator"), name)
        raise AttributeError(name)

    def values(self, X: Any) -> Floats:
        """Compute what is compared with the threshold, (n,)."""
        if self.response == "probability":
            return np.asarray(self.estimator.predict_proba(X))[:, self._at]
        if self.response == "prediction":
            return np.asarray(self.estimator.predict(X), dtype=np.float64).reshape(-1)
        found = np.asarray(self.estimator.decision_function(X)).reshape(-1)
        found = found if self._at == 1 else -found
        return found if self.points is None else self.points[0] + self.points[1] * found

    def predict(self, X: Any) -> NDArray[Any]:
        """Say on which side of the threshold each row lies, (n,)."""
        sides: NDArray[Any] = self.classes_[(self.values(X) >= self.threshold).astype(np.intp)]
        return sides

    def around(self, estimator: Any) -> Thresholded:
        """Return the same threshold for the last step of the estimator."""
        return _around(self, estimator)


def _around(cut: Thresholded, estimator: Any) -> Thresholded:
    label = None if cut._at < 0 else plain(np.asarray(estimator.classes_)[cut._at])
    return Thresholded(
        estimator, cut.threshold, label, cut.response, cut.classes_, points=cut.points
    )


def _checked_response(estimator: Any, response: str | None, points: Any) -> str:
    there = {name: hasattr(estimator, method) for name, method in _METHODS.items()}
    there["prediction"] = not hasattr(estimator, "classes_") and there["prediction"]
    if response is None:
        wished = [name for name in there if there[name] and (points is None or name == "score")]
        if wished:
            return wished[0]
    elif response in _METHODS and there[response] and (points is None or response == "score"):
        return response
    if response is not None and response not in _METHODS:
        raise InvalidInputError(
            f"response is {response!r}; expected one of: {', '.join(map(repr, _METHODS))}."
        )
    has = [name for name in there if there[name]]
    name = type(estimator).__name__
    raise NotSupportedError(
        f"this {name} has no {'score' if response is None else response} to put a threshold on; "
        f"it has: {', '.join(has) or 'nothing of the kind'}. Expected a fitted classifier for two "
        f"classes, or a regressor; `points` are those of a score."
    )


_METHODS = {
    "probability": "predict_proba",
    "score": "decision_function",
    "prediction": "predict",
}


def _checked_points(points: Any) -> tuple[float, float] | None:
    if points is None:
        return None
    if not isinstance(points, tuple | list) or len(points) != 2:
        raise InvalidInputError(f"points is {told(points)}; expected a pair (offset, factor).")
    offset, factor = (finite_scalar("points", value) for value in points)
    if factor <= 0:
        raise InvalidInputError(
            f"points has the factor {factor:g}; expected a number above 0. For points that fall "
            f"with the score, name the other class as `label`."
        )
    return offset, factor


def _checked_sides(labels: ArrayLike) -> NDArray[Any]:
    sides = np.asarray(labels)
    if sides.shape != (2,) or sides[0] == sides[1]:
        raise InvalidInputError(
            f"labels is {told(labels)}; expected two different names, below the threshold and "
            f"from it on."
        )
    return sides


# --- thresholds of scikit-learn -------------------------------------------------------------------


def wrapped(fitted: Any) -> Any:
    """Return the estimator that a threshold is put on; None of anything else."""
    if isinstance(fitted, Thresholded):
        return fitted.estimator
    for cls in type(fitted).__mro__:
        if cls.__name__ in KINDS and f"{cls.__module__}.".startswith(f"{PACKAGE}."):
            return thawed(getattr(fitted, "estimator_", fitted.estimator))
    return None


def rewrapped(fitted: Any, estimator: Any) -> Thresholded:
    """Put the threshold of `fitted` on another estimator, the last step of the one it is on."""
    return _as_own(fitted).around(estimator)


def threshold_on(fitted: Any) -> Thresholded | None:
    """State a threshold, of scikit-learn or ours, as one of ours; None of anything else.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import FixedThresholdClassifier
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], ["paid", "paid", "default", "default"]
    >>> cut = FixedThresholdClassifier(LogisticRegression(), threshold=0.9, pos_label="paid")
    >>> threshold_on(cut.fit(X, y)).name
    'probability of paid'
    """
    return None if wrapped(fitted) is None else _as_own(fitted)


def _as_own(fitted: Any) -> Thresholded:
    """State a threshold of scikit-learn as one of ours."""
    if isinstance(fitted, Thresholded):
        return fitted
    inner = wrapped(fitted)
    asked = fitted.response_method
    if asked == "auto":
        asked = "predict_proba" if hasattr(inner, "predict_proba") else "decision_function"
    response = "probability" if asked == "predict_proba" else "score"
    if hasattr(fitted, "best_threshold_"):
        threshold, label = fitted.best_threshold_, fitted._curve_scorer._get_pos_label()
    else:
        fitted_attribute(inner, "classes_")
        threshold, label = fitted_attribute(fitted, "threshold"), fitted.pos_label
        if isinstance(threshold, str):
            threshold = 0.5 if response == "probability" else 0.0
    if response == "probability" and not 0 < threshold < 1:
        raise NotSupportedError(
            f"this {type(fitted).__name__} has the threshold {threshold:g} of a probability, so "
            f"that it predicts one class only; expected one between 0 and 1."
        )
    return Thresholded(inner, float(threshold), label, response)


# --- as a model -----------------------------------------------------------------------------------


def model_from_thresholds(fitted: Any, kind: str) -> PrototypeModel:
    """Read a threshold on a linear or Gaussian score."""
    cut = _as_own(fitted)
    return _cut_scores(cut).model(type(cut.estimator).__name__)


def arithmetic_of_thresholds(fitted: Any, kind: str, model: PrototypeModel) -> Arithmetic:
    """Describe how the value and its comparison are computed."""
    cut = _as_own(fitted)
    inner = _cut_scores(cut).arithmetic(model)
    size = abs(cut.threshold)
    if cut.response == "probability":
        # A share of p and of 1 - p, in log odds.
        blur = _ROUNDINGS_OF_PROBABILITY * EPSILON / min(size, 1 - size)
    else:
        offset, factor = cut.points or (0.0, 1.0)
        blur = _ROUNDINGS_OF_PROBABILITY * EPSILON * (size + abs(offset)) / factor
    return replace(inner, offsets=inner.offsets + 2.0 * blur)


def _cut_scores(cut: Thresholded) -> LinearScores | GaussianScores:
    """Scores of the two sides: those of the estimator, shifted to where the threshold lies."""
    estimator, sides = cut.estimator, cut.classes_
    if cut.response == "prediction":
        kind = _known(estimator, linear.REGRESSORS, "sklearn")
        coef, intercept = linear.linear_prediction(estimator, kind)
        response = Response("prediction", 1, cut.threshold)
        scores = LinearScores.of_two(coef, intercept, sides, names=_names(estimator))
        return scores.shifted(np.array([0.5, -0.5]) * cut.threshold, response)
    kind = _known(estimator, tuple(_READERS), "sklearn")
    inner = _READERS[kind](estimator, kind)
    if len(inner.labels) != 2:
        raise NotSupportedError(f"this {kind} has {len(inner.labels)} classes; expected two.")
    if cut.response == "probability":
        if inner.response is None or not inner.response.is_probability:
            raise NotSupportedError(
                f"the probability of this {kind} is no logistic function of its score; expected a "
                f"threshold on its score, by response='score'."
            )
        log_odds = float(np.log(cut.threshold) - np.log1p(-cut.threshold))
        # The scores of Gaussians are twice log densities, and are shifted by these.
        per_score = 1.0 if isinstance(inner, GaussianScores) else inner.response.slope
        needed = log_odds / per_score
        response = replace(inner.response, name=cut.name, threshold=cut.threshold, label=cut._at)
    else:
        offset, factor = cut.points or (0.0, 1.0)
        needed = (cut.threshold - offset) / factor
        slope = factor * (0.5 if isinstance(inner, GaussianScores) else 1.0)
        response = Response("score", cut._at, cut.threshold, slope)
    by = np.zeros(2)
    by[[1 - cut._at, cut._at]] = 0.5 * needed, -0.5 * needed
    order = np.argsort([1 - cut._at, cut._at])
    return inner.shifted(by, response).relabelled(sides[order])


def _names(estimator: Any) -> list[str] | None:
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


_READERS: Mapping[str, Callable[[Any, str], LinearScores | GaussianScores]] = {
    **dict.fromkeys(linear.KINDS, linear.linear_scores),
    **dict.fromkeys(("QuadraticDiscriminantAnalysis", "GaussianNB"), gaussians.gaussian_scores),
}


def _known(estimator: Any, kinds: tuple[str, ...], package: str) -> str:
    for cls in type(estimator).__mro__:
        if cls.__name__ in kinds and cls.__module__.startswith(f"{package}."):
            return cls.__name__
    raise NotSupportedError(
        f"a threshold on a {type(estimator).__name__} cannot be read; expected one of: "
        f"{', '.join(kinds)}."
    )

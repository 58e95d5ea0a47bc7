"""Classifiers of scikit-learn that compare linear scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterlvq.adapters.arithmetic import Arithmetic
from counterlvq.adapters.attributes import feature_names, fitted_array, fitted_attribute
from counterlvq.adapters.linear_scores import LinearScores
from counterlvq.errors import NotSupportedError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats
from counterlvq.types import Response

__all__ = [
    "KINDS",
    "PACKAGE",
    "REGRESSORS",
    "arithmetic_of_linear",
    "dense",
    "linear_prediction",
    "linear_scores",
    "model_from_linear",
]

PACKAGE = "sklearn"


def model_from_linear(fitted: Any, kind: str) -> PrototypeModel:
    """Read a fitted classifier; `kind` is the name of its class in scikit-learn."""
    return linear_scores(fitted, kind).model(kind)


def arithmetic_of_linear(fitted: Any, kind: str, model: PrototypeModel) -> Arithmetic:
    """Describe how `predict` of a fitted classifier computes: sums of products, in double."""
    return linear_scores(fitted, kind).arithmetic(model)


def linear_scores(fitted: Any, kind: str) -> LinearScores:
    """Read the coefficients, one row per class, and what `predict` compares."""
    return _READERS[kind](fitted, kind)


def dense(array: Any) -> Floats:
    """Read coefficients, which may have been made sparse."""
    return np.asarray(array.toarray() if hasattr(array, "toarray") else array, dtype=np.float64)


# --- classifiers ----------------------------------------------------------------------------------


def _scores(
    fitted: Any,
    coef: Floats,
    intercept: Floats,
    *,
    near: Floats | None = None,
    response: Response | None = None,
    odds: float | None = None,
) -> LinearScores:
    """Scores of all classes, or of the second of two where there is one row."""
    labels, names = fitted_array(fitted, "classes_"), feature_names(fitted)
    if len(coef) > 1:
        return LinearScores(coef, intercept, labels, names, near, odds=odds)
    return LinearScores.of_two(
        coef[0], float(intercept[0]), labels, names=names, near=near, response=response
    )


def _linear(fitted: Any, kind: str) -> LinearScores:
    coef = np.atleast_2d(dense(fitted_attribute(fitted, "coef_")))
    intercept = np.broadcast_to(np.atleast_1d(dense(fitted.intercept_)), (len(coef),))
    _refuse_several_labels(fitted, kind, len(coef))
    odds = _odds(fitted, kind, len(coef))
    response = _SCORE if odds is None else replace(_PROBABILITY, slope=odds)
    return _scores(fitted, coef, intercept, response=response, odds=odds)


_PROBABILITY = Response("probability", 1, threshold=0.5, is_probability=True)
_SCORE = Response("score", 1, threshold=0.0)


def _odds(fitted: Any, kind: str, rows: int) -> float | None:
    """How the log odds of `predict_proba` grow with differences of scores; None if they do not.

    One class against the rest gives probabilities that are divided by their sum.
    """
    if kind in ("LogisticRegression", "LogisticRegressionCV"):
        # A parameter of scikit-learn before 1.8. Its two classes have the scores -s and s.
        several = getattr(fitted, "multi_class", None)
        if rows == 1:
            return 2.0 if several == "multinomial" else 1.0
        return None if several == "ovr" or fitted.solver == "liblinear" else 1.0
    is_log_loss = kind == "SGDClassifier" and getattr(fitted, "loss", "") == "log_loss"
    return 1.0 if is_log_loss and rows == 1 else None


def _refuse_several_labels(fitted: Any, kind: str, rows: int) -> None:
    labels = fitted_attribute(fitted, "classes_")
    binarizer = getattr(fitted, "_label_binarizer", None)
    y_type = getattr(binarizer, "y_type_", "")
    if isinstance(labels, list) or np.ndim(labels) != 1 or y_type.startswith("multilabel"):
        raise NotSupportedError(
            f"this {kind} gives several labels to a row; expected one. Fit one classifier per "
            f"label."
        )
    count = len(np.asarray(labels))
    if count < 2 or rows not in (1, count) or (rows == 1 and count != 2):
        raise NotSupportedError(
            f"this {kind} has {rows} row(s) of coefficients for {count} class(es); expected one "
            f"for each of at least two classes, or one for two."
        )


def _discriminant(fitted: Any, kind: str) -> LinearScores:
    coef, intercept = dense(fitted_attribute(fitted, "coef_")), dense(fitted.intercept_)
    means, priors = fitted_array(fitted, "means_"), fitted_array(fitted, "priors_")
    near = np.asarray(priors @ means, dtype=np.float64)
    return _scores(fitted, coef, intercept, near=near, response=_PROBABILITY, odds=1.0)


def _support_vectors(fitted: Any, kind: str) -> LinearScores:
    labels = fitted_array(fitted, "classes_")
    if fitted.kernel != "linear":
        raise NotSupportedError(
            f"{kind} has the kernel {fitted.kernel!r}; expected 'linear'. With any other the "
            f"score is not linear in the input."
        )
    if len(labels) != 2:
        raise NotSupportedError(
            f"{kind} lets pairs of its {len(labels)} classes vote, and no single score decides; "
            f"expected two classes. Use LinearSVC, which compares one score per class."
        )
    coef, intercept = dense(fitted_attribute(fitted, "coef_"))[0], float(fitted.intercept_[0])
    # Its `predict` sums over support vectors, in which much may cancel.
    dual, vectors = (dense(part) for part in (fitted.dual_coef_, fitted.support_vectors_))
    sizes = (np.abs(dual) @ np.abs(vectors))[0] / 2
    return LinearScores.of_two(
        coef,
        intercept,
        labels,
        names=feature_names(fitted),
        near=np.asarray(vectors.mean(axis=0)),
        response=_SCORE,
        sizes=np.stack([sizes, sizes]),
        roundings=dual.shape[1],
    )


def _naive(fitted: Any, kind: str) -> LinearScores:
    """Read log probabilities of counts; the prior is left out where `predict` leaves it out."""
    coef = dense(fitted_attribute(fitted, "feature_log_prob_"))
    prior = dense(fitted_attribute(fitted, "class_log_prior_"))
    labels = fitted_array(fitted, "classes_")
    _refuse_several_labels(fitted, kind, len(coef))
    if kind == "ComplementNB":
        prior = np.zeros(len(coef))
    if kind == "BernoulliNB":
        if fitted.binarize is not None:
            raise NotSupportedError(
                f"BernoulliNB has binarize={fitted.binarize:g}, so that it only sees on which side "
                f"of it a value lies; expected binarize=None. Binarise columns before, as levels."
            )
        never = np.log(-np.expm1(coef))  # log(1 - p)
        coef, prior = coef - never, prior + never.sum(axis=1)
    two = len(coef) == 2
    return LinearScores(
        coef,
        prior,
        labels,
        feature_names(fitted),
        response=_PROBABILITY if two else None,
        odds=None if two else 1.0,
        roundings=coef.shape[1],
    )


def _one_against_rest(fitted: Any, kind: str) -> LinearScores:
    inner = fitted_attribute(fitted, "estimators_")
    y_type = fitted_attribute(fitted, "label_binarizer_").y_type_
    if y_type.startswith("multilabel"):
        raise NotSupportedError(
            "this OneVsRestClassifier gives several labels to a row; expected one. Fit one "
            "classifier per label."
        )
    parts = [_two_sided(estimator) for estimator in inner]
    coef, intercept = (np.array([part[k] for part in parts]) for k in range(2))
    return _scores(fitted, coef, intercept, response=_SCORE)


def _two_sided(estimator: Any) -> tuple[Floats, float]:
    """Coefficients and intercept of one class against the rest."""
    name = type(estimator).__name__
    kind = next((cls.__name__ for cls in type(estimator).__mro__ if cls.__name__ in KINDS), None)
    if kind is None or kind not in _TWO_SIDED:
        raise NotSupportedError(
            f"OneVsRestClassifier compares scores of {name}; expected linear ones, of "
            f"{', '.join(_TWO_SIDED)}."
        )
    if kind == "SVC" and estimator.kernel != "linear":
        raise NotSupportedError(
            f"OneVsRestClassifier compares scores of SVC with the kernel {estimator.kernel!r}; "
            f"expected 'linear'."
        )
    coef = np.atleast_2d(dense(fitted_attribute(estimator, "coef_")))
    return coef[0], float(np.ravel(estimator.intercept_)[0])


_COEFFICIENTS = (
    "LogisticRegression",
    "LogisticRegressionCV",
    "RidgeClassifier",
    "RidgeClassifierCV",
    "LinearSVC",
    "SGDClassifier",
    "Perceptron",
    "PassiveAggressiveClassifier",
)
_TWO_SIDED = (*_COEFFICIENTS, "LinearDiscriminantAnalysis", "SVC")
_READERS: Mapping[str, Callable[[Any, str], LinearScores]] = {
    **dict.fromkeys(_COEFFICIENTS, _linear),
    "LinearDiscriminantAnalysis": _discriminant,
    "SVC": _support_vectors,
    "NuSVC": _support_vectors,
    "MultinomialNB": _naive,
    "ComplementNB": _naive,
    "BernoulliNB": _naive,
    "OneVsRestClassifier": _one_against_rest,
}
KINDS = tuple(_READERS)


# --- regressors -----------------------------------------------------------------------------------

# Those whose prediction is linear in the input; they are read behind a threshold.
REGRESSORS = (
    "ARDRegression",
    "BayesianRidge",
    "ElasticNet",
    "ElasticNetCV",
    "HuberRegressor",
    "Lars",
    "LarsCV",
    "Lasso",
    "LassoCV",
    "LassoLars",
    "LassoLarsCV",
    "LassoLarsIC",
    "LinearRegression",
    "LinearSVR",
    "OrthogonalMatchingPursuit",
    "OrthogonalMatchingPursuitCV",
    "PassiveAggressiveRegressor",
    "QuantileRegressor",
    "Ridge",
    "RidgeCV",
    "SGDRegressor",
    "TheilSenRegressor",
)


def linear_prediction(fitted: Any, kind: str) -> tuple[Floats, float]:
    """Coefficients and intercept of a regressor that predicts one number."""
    coef = dense(fitted_attribute(fitted, "coef_"))
    intercept: NDArray[Any] = np.ravel(dense(fitted.intercept_))
    if coef.ndim > 1 and len(coef) > 1:
        raise NotSupportedError(
            f"this {kind} predicts {len(coef)} numbers for a row; expected one. Fit one regressor "
            f"per number."
        )
    return coef.reshape(-1), float(intercept[0])

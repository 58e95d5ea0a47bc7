"""The two nearest-prototype classifiers of scikit-learn itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterlvq.adapters.angles import AngleArithmetic, angle_model, refuse_without_angle
from counterlvq.adapters.arithmetic import Arithmetic, radii_of
from counterlvq.adapters.attributes import (
    feature_names,
    fitted_array,
    fitted_attribute,
    labels_at,
)
from counterlvq.errors import NotSupportedError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats, finite_matrix, finite_vector, plain
from counterlvq.numeric.definiteness import metric_factor
from counterlvq.numeric.tolerances import EPSILON, PRIOR_TOLERANCE, UNIT

__all__ = ["KINDS", "PACKAGE", "arithmetic_of_scikit_learn", "model_from_scikit_learn"]

PACKAGE = "sklearn.neighbors"
KINDS = ("NearestCentroid", "KNeighborsClassifier")


def model_from_scikit_learn(fitted: Any, kind: str) -> PrototypeModel:
    """Read a fitted classifier of scikit-learn; `kind` is the name of its class."""
    if kind == "NearestCentroid":
        return _from_nearest_centroid(fitted)
    return _from_one_neighbour(fitted)


def arithmetic_of_scikit_learn(fitted: Any, kind: str, model: PrototypeModel) -> Arithmetic:
    """Describe how `predict` of a fitted classifier computes, whatever rows it is given.

    Rows come in double precision. Then everything is computed in it: single precision in the
    training rows of a `KNeighborsClassifier` is widened, and centroids are always double.
    """
    if kind == "NearestCentroid":
        return _with_priors(fitted, model) if _has_priors(fitted) else Arithmetic(model)
    metric, given = fitted.effective_metric_, fitted.effective_metric_params_
    if metric == "cosine":
        return AngleArithmetic(model)
    if fitted._fit_method == "brute" and metric in ("euclidean", "l2", "sqeuclidean"):
        # Products of blocks of rows with blocks of training rows.
        return Arithmetic(model)
    form, condition = None, 1.0
    if model.omegas is not None:
        wanted = _form(metric, given)
        factor = model.shared_factor if model.diagonal is None else model.diagonal
        form = _miss(factor, wanted)
        condition = _condition(wanted)
    tree = getattr(fitted, "_tree", None)
    radii = radii_of(tree, model.n_prototypes) if fitted._fit_method == "ball_tree" else None
    return Arithmetic(model, by_products=False, form=form, radii=radii, condition=condition)


def _with_priors(fitted: Any, model: PrototypeModel) -> Arithmetic:
    """Scores are ``|(x - centroid) / scale|^2 - bonus``, from products of what has been scaled.

    Read were prototypes shifted by v, see `_common_shift`: what v leaves open of the bonus is
    an error of the model read, and so is rounding in 2 a'v, in the bonus and where it is added.
    """
    possible = np.asarray(fitted.class_prior_) > 0
    bonus = 2 * np.log(np.asarray(fitted.class_prior_)[possible])
    scale = _scale(fitted)
    centroids = np.asarray(fitted.centroids_)[possible]
    anchors = centroids / scale
    shift = model.prototypes[0] / scale - anchors[0]
    differences = anchors - anchors[0]
    missed = np.abs(2 * differences @ shift - (bonus[0] - bonus))
    terms = 2 * (np.abs(anchors) + np.abs(anchors[0])) @ np.abs(shift) + 4 * np.abs(bonus).max()
    missed += (len(scale) + 16) * EPSILON * terms
    # The prototypes read are rounded, so that both they and the centroids count.
    sizes = np.abs(centroids) + np.abs(model.prototypes) + np.abs(shift * scale)
    return Arithmetic(model, prototype_sizes=sizes, offsets=missed)


def _from_nearest_centroid(fitted: Any) -> PrototypeModel:
    centroids = finite_matrix("centroids_", fitted_array(fitted, "centroids_"))
    classes = fitted_array(fitted, "classes_")
    if fitted.metric != "euclidean":
        raise NotSupportedError(
            f"NearestCentroid has the metric {fitted.metric!r}; expected 'euclidean'. Only a "
            f"distance that is quadratic in the input can be read."
        )
    priors = getattr(fitted, "class_prior_", None)
    # With equal priors the plain distance decides; `shrink_threshold` has moved the centroids
    # before.
    if not _has_priors(fitted):
        return PrototypeModel(centroids, classes, feature_names=feature_names(fitted))
    possible = np.asarray(priors) > 0
    if possible.sum() < 2:
        raise NotSupportedError(
            f"NearestCentroid has the priors {np.asarray(priors).tolist()}, so that it predicts "
            f"one class only; expected at least two with a prior above 0."
        )
    scale = _scale(fitted)
    anchors = centroids[possible] / scale
    shift = _common_shift(anchors, 2 * np.log(np.asarray(priors)[possible]))
    return PrototypeModel(
        (anchors + shift) * scale,
        classes[possible],
        1 / scale,
        feature_names(fitted),
    )


def _has_priors(fitted: Any) -> bool:
    """Whether priors count: the question that `predict` asks, in its words."""
    priors = getattr(fitted, "class_prior_", None)
    count = len(fitted_array(fitted, "classes_"))
    return priors is not None and not np.isclose(priors, 1 / count).all()


def _scale(fitted: Any) -> Floats:
    spread = finite_vector("within_class_std_dev_", fitted_array(fitted, "within_class_std_dev_"))
    return np.where(spread == 0, 1.0, spread)


def _common_shift(anchors: Floats, bonus: NDArray[Any]) -> Floats:
    """Find the step v that makes priors superfluous.

    With priors the largest ``bonus_k - |x - a_k|^2`` wins. Moving every anchor by the same v adds
    ``-2 a_k'v`` to each score, up to terms that all scores share. So the anchors ``a_k + v``
    without a bonus are the same rule exactly if ``2 (a_k - a_0)'v = bonus_0 - bonus_k`` for
    every k.
    """
    differences = anchors[1:] - anchors[0]
    wanted = (bonus[0] - bonus[1:]) / 2
    shift: Floats = np.linalg.lstsq(differences, wanted, rcond=None)[0]
    size = float(np.abs(wanted).max())
    missed = float(np.abs(differences @ shift - wanted).max())
    # What rounding will do to distances from anchors that were moved this far.
    missed = max(missed, float(UNIT * (shift @ shift)))
    if missed > PRIOR_TOLERANCE * size:
        raise NotSupportedError(
            f"NearestCentroid has unequal priors, and its {len(anchors)} centroids in "
            f"{anchors.shape[1]} dimension(s) cannot be moved so that nearest-centroid alone says "
            f"the same; fit it with priors='uniform'."
        )
    return shift


def _from_one_neighbour(fitted: Any) -> PrototypeModel:
    if fitted.n_neighbors != 1:
        raise NotSupportedError(
            f"KNeighborsClassifier has n_neighbors={fitted.n_neighbors}; expected 1. With more, "
            f"neighbours vote, and the nearest one does not decide."
        )
    stored = fitted_attribute(fitted, "_fit_X")
    if fitted.outputs_2d_:
        raise NotSupportedError(
            "KNeighborsClassifier was fitted on several outputs at once; expected one label per "
            "row. Fit one classifier per output."
        )
    dense = stored.toarray() if hasattr(stored, "toarray") else np.asarray(stored)
    points = finite_matrix("the training rows", dense)
    positions = fitted_array(fitted, "_y").reshape(-1)
    labels = labels_at(fitted, positions, "_y")
    if fitted.effective_metric_ == "cosine":
        refuse_without_angle("this KNeighborsClassifier", points)
        model = angle_model(points, labels, None, feature_names(fitted), "training row")
        _refuse_contradictions(model.prototypes, labels)
        return model
    omega = _neighbour_omega(fitted, points.shape[1])
    _refuse_contradictions(_images(points, omega), labels)
    return PrototypeModel(points, labels, omega, feature_names(fitted))


def _images(points: Floats, omega: Floats | None) -> Floats:
    if omega is None:
        return points
    return np.asarray(points * omega if omega.ndim == 1 else points @ omega.T)


def _neighbour_omega(fitted: Any, width: int) -> Floats | None:
    metric = fitted_attribute(fitted, "effective_metric_")
    given = fitted.effective_metric_params_
    if metric in ("euclidean", "l2", "sqeuclidean"):
        return None
    if metric == "minkowski" and given["p"] == 2:
        weights = finite_vector("metric_params['w']", given["w"], width)
        return np.sqrt(weights)
    if metric == "seuclidean" and given.get("V") is not None:
        variances = finite_vector("metric_params['V']", given["V"], width)
        return np.asarray(1 / np.sqrt(variances))
    if metric == "mahalanobis" and given.get("VI") is not None:
        return metric_factor("metric_params['VI']", given["VI"], width)
    if metric == "mahalanobis" and given.get("V") is not None:
        return metric_factor("the inverse of metric_params['V']", np.linalg.inv(given["V"]), width)
    raise NotSupportedError(
        f"KNeighborsClassifier has the metric {metric!r}"
        f"{_in_words(given)}; expected 'euclidean', 'cosine', 'minkowski' with p=2, 'seuclidean' "
        f"with V or 'mahalanobis' with VI. Only a distance that is quadratic in the input, or "
        f"orders points like one, can be read."
    )


def _form(metric: str, given: dict[str, Any]) -> Floats:
    """Return the matrix of a metric other than the plain one, as `fit` was given it.

    Weights of single features are returned as they are, (d,).
    """
    if metric == "minkowski":
        return np.asarray(given["w"], dtype=np.float64)
    if metric == "seuclidean":
        return np.asarray(1 / np.asarray(given["V"], dtype=np.float64))
    inverse = given.get("VI")
    return np.asarray(np.linalg.inv(given["V"]) if inverse is None else inverse, dtype=np.float64)


def _miss(omega: Floats, wanted: Floats) -> Floats:
    """Bound by how much a score from ``omega' omega`` misses that of a matrix, entry by entry.

    Rounding of sums with the matrix itself is included: they are of products of its entries.
    Both may be diagonals, (d,).
    """
    rounding = 4 * (len(wanted) + 8) * EPSILON
    if wanted.ndim == 1:
        squares = omega * omega
        return np.asarray(np.abs(squares - wanted) + rounding * (squares + np.abs(wanted)))
    sizes = np.abs(omega).T @ np.abs(omega)
    return np.abs(omega.T @ omega - wanted) + rounding * (sizes + np.abs(wanted))


def _condition(matrix: Floats) -> float:
    """How much more than its own rounding a distance can be off: 1 for a diagonal matrix."""
    if matrix.ndim == 1 or not (matrix - np.diag(np.diag(matrix))).any():
        return 1.0
    least = np.linalg.eigvalsh((matrix + matrix.T) / 2)[0]
    size = np.linalg.norm(np.abs(matrix), 2)
    return float(size / least) if least > 0 else np.inf


def _in_words(given: dict[str, Any]) -> str:
    return f" with p={given['p']:g}" if "p" in given else ""


def _refuse_contradictions(points: Floats, labels: NDArray[Any]) -> None:
    """Refuse equal points with different labels: which one wins depends on the query."""
    _, first, group = np.unique(points, axis=0, return_index=True, return_inverse=True)
    leader = first[group.reshape(-1)]
    clashes = np.flatnonzero(labels != labels[leader])
    if len(clashes):
        i, k = int(leader[clashes[0]]), int(clashes[0])
        raise NotSupportedError(
            f"training rows {i} and {k} of this KNeighborsClassifier are equally far from "
            f"everything but carry the labels {plain(labels[i])!r} and {plain(labels[k])!r} "
            f"({len(clashes)} such row(s) in all), so that its answer around them depends on the "
            f"order of its search; expected one label per point. Fit it without the duplicates."
        )

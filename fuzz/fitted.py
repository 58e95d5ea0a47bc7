"""Fitted pipelines of scikit-learn as scores in rational numbers, read from their attributes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from fuzz.plain import Scores, identity, product, times
from fuzz.rational import ZERO, Matrix, Vector, exact, exact_matrix

# What the text of a case with a fitted model begins with.
IMPORTS = """\
from sklearn.decomposition import PCA
from sklearn.feature_selection import VarianceThreshold
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.compose import make_column_transformer
from counterlvq.lvq import GLVQ, GMLVQ
"""


def scores_of(pipeline: Any) -> Scores:
    """Scores over the columns that a pipeline, or a model alone, takes."""
    steps = [step for _, step in pipeline.steps] if hasattr(pipeline, "steps") else [pipeline]
    *before, last = steps
    width = int(steps[0].n_features_in_)
    linear, shift = identity(width), [ZERO] * width
    for step in before:
        A, b = _affine(step)
        shift = [u + v for u, v in zip(times(A, shift), b, strict=True)]
        linear = product(A, linear)
    return _last(last).behind(linear, shift)


def _affine(step: Any) -> tuple[Matrix, Vector]:
    """``z = A y + b`` of one step, from what it multiplies and subtracts."""
    kind = type(step).__name__
    width = int(step.n_features_in_)
    if kind == "StandardScaler":
        scale = [1 / v for v in exact(step.scale_)]
        return _diagonal(scale), [-m * s for m, s in zip(exact(step.mean_), scale, strict=True)]
    if kind == "MinMaxScaler":
        return _diagonal(exact(step.scale_)), exact(step.min_)
    if kind == "VarianceThreshold":
        kept = np.flatnonzero(step.get_support())
        rows = identity(width)
        return [rows[int(j)] for j in kept], [ZERO] * len(kept)
    if kind == "PCA":
        A = exact_matrix(step.components_)
        return A, [-v for v in times(A, exact(step.mean_))]
    raise ValueError(f"the step {kind} cannot be read; expected one that is drawn here.")


def _last(model: Any) -> Scores:
    kind = type(model).__name__
    if kind == "KNeighborsClassifier":
        return Scores.of_prototypes(model._fit_X, model.classes_[model._y].tolist())
    if kind != "NearestCentroid":
        omegas = model.omegas_
        omegas = list(omegas) if isinstance(omegas, list | tuple) else omegas
        return Scores.of_prototypes(model.prototypes_, model.prototype_labels_.tolist(), omegas)
    labels = model.classes_.tolist()
    if np.isclose(model.class_prior_, 1 / len(labels)).all():
        return Scores.of_prototypes(model.centroids_, labels)
    spread = [1 / v if v else Fraction(1) for v in exact(model.within_class_std_dev_)]
    bonus = -2.0 * np.log(model.class_prior_)
    scaled = _diagonal(spread)
    W = exact_matrix(model.centroids_)
    anchors = [times(scaled, w) for w in W]
    return Scores([scaled] * len(W), anchors, exact(bonus), labels, is_local=False)


def _diagonal(values: Vector) -> Matrix:
    return [[v if i == j else ZERO for j in range(len(values))] for i, v in enumerate(values)]

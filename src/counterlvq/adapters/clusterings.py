"""Clusterings of scikit-learn in which the nearest centre decides; clusters are the labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterlvq.adapters.arithmetic import Arithmetic, unit_of
from counterlvq.adapters.attributes import feature_names, fitted_array
from counterlvq.errors import NotSupportedError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.tolerances import EPSILON
from counterlvq.types import Meaning

__all__ = [
    "KINDS",
    "PACKAGE",
    "arithmetic_of_clusterings",
    "model_from_clusterings",
    "predict_as_fitted",
    "refuse_behind_steps",
]

PACKAGE = "sklearn.cluster"
KINDS = ("KMeans", "MiniBatchKMeans", "Birch", "MeanShift", "AffinityPropagation")


def model_from_clusterings(fitted: Any, kind: str) -> PrototypeModel:
    """Read a fitted clustering; `kind` is the name of its class.

    `Birch` has several centres in a cluster, the others one.
    """
    centres = _centres(fitted)
    if not len(centres):
        raise NotSupportedError(
            f"this {kind} has found no clusters; expected at least two. Fit it again, with more "
            f"iterations for example."
        )
    labels = fitted_array(fitted, "subcluster_labels_") if kind == "Birch" else None
    return PrototypeModel(
        centres,
        np.arange(len(centres)) if labels is None else labels,
        feature_names=feature_names(fitted),
        meaning=Meaning("cluster"),
    )


def predict_as_fitted(fitted: Any, rows: Any) -> Any:
    """Ask for clusters in the precision of `fit`: k-means knows how to compare no other."""
    single = _centres(fitted).dtype == np.float32
    return fitted.predict(rows.astype(np.float32) if single else rows)


def refuse_behind_steps(fitted: Any) -> None:
    """Refuse k-means of single precision in a pipeline: its steps hand on doubles."""
    if _is_kmeans(fitted) and _centres(fitted).dtype == np.float32:
        raise NotSupportedError(
            f"this pipeline ends in a {type(fitted).__name__} that was fitted in single precision, "
            f"and whose predict takes nothing else; expected a fit in double precision, because "
            f"answers are doubles. Fit the pipeline to the table as float64."
        )


def _is_kmeans(fitted: Any) -> bool:
    names = [cls.__name__ for cls in type(fitted).__mro__ if cls.__module__.startswith(PACKAGE)]
    return any(name in ("KMeans", "MiniBatchKMeans") for name in names)


def _centres(fitted: Any) -> NDArray[Any]:
    of_birch = hasattr(fitted, "subcluster_centers_")
    return fitted_array(fitted, "subcluster_centers_" if of_birch else "cluster_centers_")


def arithmetic_of_clusterings(fitted: Any, kind: str, model: PrototypeModel) -> Arithmetic:
    """Describe how `predict` finds the nearest centre: by products, in the precision of `fit`."""
    unit = unit_of(_centres(fitted))
    return Arithmetic(model, unit, casts=unit != EPSILON)

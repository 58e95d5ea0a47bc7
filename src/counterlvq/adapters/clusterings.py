"""Clusterings of scikit-learn in which the nearest centre decides; clusters are the labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from counterlvq.adapters.arithmetic import Arithmetic, unit_of
from counterlvq.adapters.attributes import feature_names, fitted_array
from counterlvq.model import PrototypeModel
from counterlvq.numeric.tolerances import EPSILON
from counterlvq.types import Meaning

__all__ = [
    "KINDS",
    "PACKAGE",
    "arithmetic_of_clusterings",
    "model_from_clusterings",
    "predict_as_fitted",
]

PACKAGE = "sklearn.cluster"
KINDS = ("KMeans", "MiniBatchKMeans", "Birch", "MeanShift", "AffinityPropagation")


def model_from_clusterings(fitted: Any, kind: str) -> PrototypeModel:
    """Read a fitted clustering; `kind` is the name of its class.

    `Birch` has several centres in a cluster, the others one.
    """
    centres = fitted_array(fitted, _CENTRES.get(kind, "cluster_centers_"))
    labels = fitted_array(fitted, "subcluster_labels_") if kind == "Birch" else None
    return PrototypeModel(
        centres,
        np.arange(len(centres)) if labels is None else labels,
        feature_names=feature_names(fitted),
        meaning=Meaning("cluster"),
    )


def predict_as_fitted(fitted: Any, rows: Any) -> Any:
    """Ask for clusters in the precision of `fit`: k-means knows how to compare no other."""
    centres = fitted_array(fitted, _CENTRES.get(type(fitted).__name__, "cluster_centers_"))
    single = centres.dtype == np.float32
    return fitted.predict(rows.astype(np.float32) if single else rows)


_CENTRES = {"Birch": "subcluster_centers_"}


def arithmetic_of_clusterings(fitted: Any, kind: str, model: PrototypeModel) -> Arithmetic:
    """Describe how `predict` finds the nearest centre: by products, in the precision of `fit`."""
    unit = unit_of(fitted_array(fitted, _CENTRES.get(kind, "cluster_centers_")))
    return Arithmetic(model, unit, casts=unit != EPSILON)

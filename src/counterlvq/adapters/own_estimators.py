"""The estimators of this package."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterlvq.adapters.attributes import feature_names, fitted_array
from counterlvq.model import PrototypeModel
from counterlvq.types import Meaning, Response

__all__ = ["KINDS", "PACKAGE", "model_from_own"]

PACKAGE = "counterlvq.lvq"
KINDS = ("GLVQ", "GMLVQ", "LGMLVQ", "RSLVQ", "MRSLVQ", "LMRSLVQ")


def model_from_own(fitted: Any, kind: str) -> PrototypeModel:
    """Read a fitted estimator of this package; all of them keep the same attributes."""
    prototypes = fitted_array(fitted, "prototypes_")
    labels = fitted_array(fitted, "prototype_labels_")
    return PrototypeModel(
        prototypes, labels, fitted.omegas_, feature_names(fitted), meaning=_meaning(fitted, labels)
    )


def _meaning(fitted: Any, labels: NDArray[Any]) -> Meaning | None:
    """Say what the probabilities of soft estimators are; of two classes, as lead of the nearest.

    They go with the model into its file, where there is no estimator left to ask.
    """
    sigma = getattr(fitted, "sigma_", None)
    if sigma is None or len(np.unique(labels)) != 2:
        return None
    with np.errstate(all="ignore"):
        slope = float(0.5 / np.float64(sigma) ** 2)
    if not 0 < slope < np.inf:
        return None
    return Meaning(response=Response("probability", 1, 0.5, slope, is_probability=True))

"""The estimators of this package."""

from __future__ import annotations

from typing import Any

from counterlvq.adapters.attributes import feature_names, fitted_array
from counterlvq.model import PrototypeModel

__all__ = ["KINDS", "PACKAGE", "model_from_own"]

PACKAGE = "counterlvq.lvq"
KINDS = ("GLVQ", "GMLVQ", "LGMLVQ", "RSLVQ", "MRSLVQ", "LMRSLVQ")


def model_from_own(fitted: Any, kind: str) -> PrototypeModel:
    """Read a fitted estimator of this package; all of them keep the same attributes."""
    prototypes = fitted_array(fitted, "prototypes_")
    labels = fitted_array(fitted, "prototype_labels_")
    return PrototypeModel(prototypes, labels, fitted.omegas_, feature_names(fitted))

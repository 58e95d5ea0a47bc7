"""Models of sklvq."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterlvq.adapters.attributes import feature_names, fitted_array, labels_at
from counterlvq.errors import InvalidInputError, NotSupportedError
from counterlvq.model import PrototypeModel

__all__ = ["KINDS", "PACKAGE", "model_from_sklvq"]

PACKAGE = "sklvq"
KINDS = ("GLVQ", "GMLVQ", "LGMLVQ")

# What `distance_type` may be, as a string or as the library's own class. A distance that is not
# squared orders prototypes in the same way.
_DISTANCES = {
    "GLVQ": {
        "squared-euclidean": "SquaredEuclidean",
        "euclidean": "Euclidean",
    },
    "GMLVQ": {"adaptive-squared-euclidean": "AdaptiveSquaredEuclidean"},
    "LGMLVQ": {"local-adaptive-squared-euclidean": "LocalAdaptiveSquaredEuclidean"},
}


def model_from_sklvq(fitted: Any, kind: str) -> PrototypeModel:
    """Read a fitted model of sklvq; `kind` is the name of its class."""
    _refuse_other_distances(fitted, kind)
    prototypes = fitted_array(fitted, "prototypes_")
    positions = fitted_array(fitted, "prototypes_labels_")
    # Between equally near prototypes sklvq takes the class that comes first in `classes_`, and
    # a PrototypeModel the prototype that comes first: ordered by class the two are the same.
    order = np.argsort(positions, kind="stable")
    labels = labels_at(fitted, positions[order], "prototypes_labels_")
    omegas = _omegas(fitted, kind, positions)
    if isinstance(omegas, list):
        omegas = [omegas[k] for k in order]
    return PrototypeModel(prototypes[order], labels, omegas, feature_names(fitted))


def _refuse_other_distances(fitted: Any, kind: str) -> None:
    known = _DISTANCES[kind]
    asked = getattr(fitted, "distance_type", next(iter(known)))
    if isinstance(asked, type):
        name = asked.__name__
        accepted = name in known.values() and asked.__module__.split(".")[0] == PACKAGE
    else:
        name, accepted = str(asked), isinstance(asked, str) and asked in known
    if not accepted:
        raise NotSupportedError(
            f"{kind} of sklvq has the distance_type {name!r}; expected "
            f"{' or '.join(map(repr, known))}. Only a distance that is quadratic in the input, or "
            f"orders prototypes like one, can be read."
        )


def _omegas(fitted: Any, kind: str, positions: NDArray[Any]) -> Any:
    if kind == "GLVQ":
        if getattr(fitted, "force_all_finite", True) == "allow-nan":
            # Its distance for data with gaps squares the sum of the differences, and not the
            # differences: a metric with a single row of ones.
            return np.ones((1, fitted_array(fitted, "prototypes_").shape[1]))
        return None
    omega = fitted_array(fitted, "omega_")
    if kind == "GMLVQ":
        return omega
    per_class = getattr(fitted, "relevance_localization", "prototypes") == "class"
    count = len(fitted_array(fitted, "classes_")) if per_class else len(positions)
    if omega.ndim != 3 or len(omega) != count:
        raise InvalidInputError(
            f"`omega_` of this LGMLVQ has shape {omega.shape}; expected {count} matrices, one per "
            f"{'class' if per_class else 'prototype'}. Fit it again."
        )
    return [omega[k] for k in positions] if per_class else list(omega)

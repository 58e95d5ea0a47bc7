"""Models of sklearn-lvq."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterlvq.adapters.attributes import feature_names, fitted_array, fitted_attribute
from counterlvq.errors import InvalidInputError
from counterlvq.model import PrototypeModel

__all__ = ["KINDS", "PACKAGE", "model_from_sklearn_lvq", "predict_in_full"]

PACKAGE = "sklearn_lvq"
KINDS = (
    "GlvqModel",
    "GrlvqModel",
    "GmlvqModel",
    "GrmlvqModel",
    "LgmlvqModel",
    "RslvqModel",
    "MrslvqModel",
    "LmrslvqModel",
)


def model_from_sklearn_lvq(fitted: Any, kind: str) -> PrototypeModel:
    """Read a fitted model of sklearn-lvq; `kind` is the name of its class.

    All eight predict the nearest prototype, the RSLVQ family included: its `predict` takes the
    most probable single prototype, and all prototypes share one variance.
    """
    prototypes = fitted_array(fitted, "w_")
    labels = fitted_array(fitted, "c_w_")
    return PrototypeModel(prototypes, labels, _omegas(fitted, kind), feature_names(fitted))


def predict_in_full(fitted: Any, rows: Any) -> NDArray[Any]:
    """Ask the model for labels, and for all of each label.

    The RSLVQ family returns text that is cut to the length of the first label in the answer; a
    row that is asked alone gets its label whole.
    """
    told = np.asarray(fitted.predict(rows))
    longest = max(len(str(label)) for label in fitted.c_w_)
    if told.dtype.kind != "U" or told.dtype.itemsize >= np.dtype(f"U{longest}").itemsize:
        return told
    table = np.asarray(rows)
    return np.concatenate([fitted.predict(table[i : i + 1]) for i in range(len(table))])


def _omegas(fitted: Any, kind: str) -> Any:
    if kind in ("GmlvqModel", "MrslvqModel"):
        return fitted_array(fitted, "omega_")
    if kind == "GrlvqModel":
        return np.sqrt(_relevances(fitted))  # one per feature
    if kind == "GrmlvqModel":
        # Relevances scale the inputs before the matrix sees them.
        return fitted_array(fitted, "omega_") * fitted_array(fitted, "lambda_")
    if kind in ("LgmlvqModel", "LmrslvqModel"):
        return _local_omegas(fitted, kind)
    return None


def _relevances(fitted: Any) -> NDArray[Any]:
    relevances = fitted_array(fitted, "lambda_")
    if (relevances < 0).any():
        raise InvalidInputError(
            f"`lambda_` of this GrlvqModel holds {relevances.min():g}; expected relevances of at "
            f"least 0. With less, its distance is none. Fit it again."
        )
    return relevances


def _local_omegas(fitted: Any, kind: str) -> list[NDArray[Any]]:
    prototypes, labels = fitted_array(fitted, "w_"), fitted_array(fitted, "c_w_")
    omegas = [np.asarray(omega) for omega in fitted_attribute(fitted, "omegas_")]
    if len(omegas) == len(labels):
        if kind == "LgmlvqModel":
            return omegas
        # `LmrslvqModel.predict` takes the matrix of the first prototype that has any coordinate
        # in common with the one at hand: usually its own.
        return [omegas[int(np.nonzero(prototypes == w)[0][0])] for w in prototypes]
    classes = fitted_array(fitted, "classes_").tolist()
    if len(omegas) != len(classes):
        raise InvalidInputError(
            f"`omegas_` of this {kind} holds {len(omegas)} matrices; expected {len(labels)}, one "
            f"per prototype, or {len(classes)}, one per class. Fit it again."
        )
    return [omegas[classes.index(label)] for label in labels.tolist()]

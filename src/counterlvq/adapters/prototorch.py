"""Models of prototorch-models, whose arrays are tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterlvq.adapters.arithmetic import Arithmetic, tangent_arithmetic, unit_of
from counterlvq.adapters.attributes import fitted_attribute
from counterlvq.errors import InvalidInputError, NotSupportedError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.tolerances import EPSILON

__all__ = [
    "KINDS",
    "PACKAGE",
    "REFUSED",
    "arithmetic_of_prototorch",
    "model_from_prototorch",
    "predict_with_tensors",
]

PACKAGE = "prototorch.models"

_PLAIN = ("GLVQ", "GLVQ1", "GLVQ21", "ImageGLVQ", "LVQ1", "LVQ21", "MedianLVQ", "CELVQ", "KNN")
_SIAMESE = ("SiameseGLVQ", "GRLVQ", "SiameseGMLVQ", "SiameseGTLVQ")
_MATRIX = ("GMLVQ", "ImageGMLVQ")
_LOCAL = ("LGMLVQ", "GTLVQ", "ImageGTLVQ")

_SOFT = "predicts the class with the largest summed posterior and not that of the nearest prototype"
REFUSED = {
    "RSLVQ": _SOFT,
    "SLVQ": _SOFT,
    "PLVQ": _SOFT,
    "ProbabilisticLVQ": _SOFT,
    "CBC": "reasons over components and not over nearest prototypes",
    "ImageCBC": "reasons over components and not over nearest prototypes",
    "LVQMLN": "maps inputs, but not prototypes, through a network, so that its prototypes do not "
    "live among the inputs",
    "NeuralGas": "has prototypes without labels",
    "GrowingNeuralGas": "has prototypes without labels",
    "KohonenSOM": "has prototypes without labels",
}
KINDS = (*_PLAIN, *_SIAMESE, *_MATRIX, *_LOCAL, *REFUSED)

# The distances that each can be read with; a root keeps the order.
_EUCLIDEAN = ("euclidean_distance", "squared_euclidean_distance", "euclidean_distance_v2")
_SQUARES = ("squared_euclidean_distance", "omega_distance", "lomega_distance")
_DISTANCES = (
    dict.fromkeys((*_PLAIN, *_SIAMESE), _EUCLIDEAN)
    | dict.fromkeys(_MATRIX, ("omega_distance",))
    | {
        "LGMLVQ": ("lomega_distance",),
        "GTLVQ": ("ltangent_distance",),
        "ImageGTLVQ": ("ltangent_distance",),
    }
)


# Roundings on the way to any term besides those of sums of d and r terms: a difference that is
# taken and squared; and four more of a root that may be compared in its place.
_OF_SQUARES = 4
_OF_ROOTS = 8


def model_from_prototorch(fitted: Any, kind: str) -> PrototypeModel:
    """Read a model of prototorch-models; `kind` is the name of its class."""
    if kind in REFUSED:
        raise NotSupportedError(
            f"{kind} of prototorch-models {REFUSED[kind]}; only winner-takes-all models with a "
            f"quadratic distance can be read."
        )
    _refuse_other_rules(fitted, kind)
    prototypes = _array(fitted_attribute(fitted, "prototypes"))
    prototypes = prototypes.reshape(len(prototypes), -1)  # images are rows of pixels
    labels = _array(fitted_attribute(fitted, "prototype_labels"))
    return PrototypeModel(prototypes, labels, _omegas(fitted, kind))


def predict_with_tensors(fitted: Any, rows: NDArray[Any]) -> Any:
    """Ask the model for labels; its own tensors make those that it wants to see."""
    return _array(fitted.predict(fitted.proto_layer.components.new_tensor(rows.tolist())))


def arithmetic_of_prototorch(fitted: Any, kind: str, model: PrototypeModel) -> Arithmetic:
    """Describe how tensors compute: in the precision that they have, rows cast to it.

    Some distances are taken from differences and others from products, and which of them a
    version or a device chooses is not known: the worse of the two is assumed.
    """
    unit = unit_of(_array(fitted.proto_layer.components), *_parameters(fitted))
    if kind in ("GTLVQ", "ImageGTLVQ"):
        return tangent_arithmetic(model, unit, _array(fitted_attribute(fitted, "_omega")))
    function = getattr(getattr(fitted, "distance_layer", None), "fn", None)
    is_square = getattr(function, "__name__", "") in _SQUARES
    return Arithmetic(
        model,
        unit,
        casts=unit != EPSILON,
        other_roundings=_OF_SQUARES if is_square else _OF_ROOTS,
    )


def _parameters(fitted: Any) -> list[NDArray[Any]]:
    """Arrays that distances are computed with, besides the prototypes."""
    backbone = getattr(fitted, "backbone", None)
    held = [
        *(getattr(fitted, name, None) for name in ("_omega", "_relevances")),
        *(getattr(backbone, name, None) for name in ("weights", "weight")),
    ]
    return [_array(tensor) for tensor in held if tensor is not None]


def _refuse_other_rules(fitted: Any, kind: str) -> None:
    layer = getattr(fitted, "distance_layer", None)
    function = getattr(layer, "fn", None)
    name = getattr(function, "__name__", _DISTANCES[kind][0] if layer is None else "unknown")
    if name not in _DISTANCES[kind]:
        raise NotSupportedError(
            f"{kind} of prototorch-models has the distance {name!r}; expected "
            f"{' or '.join(map(repr, _DISTANCES[kind]))}. Only a distance that is quadratic in "
            f"the input, or orders prototypes like one, can be read."
        )
    k = getattr(getattr(fitted, "competition_layer", None), "k", 1)
    if k != 1:
        raise NotSupportedError(
            f"KNN of prototorch-models lets {k} neighbours vote; expected k=1, with which the "
            f"nearest one decides."
        )


def _omegas(fitted: Any, kind: str) -> Any:
    if kind in _PLAIN:
        return None
    if kind in _MATRIX:
        # Stored as (d, r), to be multiplied from the right.
        return _array(fitted_attribute(fitted, "_omega")).T
    if kind == "GRLVQ":
        return _array(fitted_attribute(fitted, "_relevances"))  # one per feature
    if kind in _SIAMESE:
        return _backbone(fitted, kind)
    omegas = _array(fitted_attribute(fitted, "_omega"))  # (p, d, r)
    if omegas.ndim != 3:
        raise InvalidInputError(
            f"`_omega` of this {kind} has shape {omegas.shape}; expected (prototypes, features, "
            f"rank)."
        )
    if kind == "LGMLVQ":
        return [omega.T for omega in omegas]
    # Tangent distance: what is left of the difference outside the span of the columns.
    return [np.eye(omega.shape[0]) - omega @ omega.T for omega in omegas]


def _backbone(fitted: Any, kind: str) -> Any:
    """Return the matrix that a siamese model applies to inputs and prototypes alike."""
    backbone = fitted_attribute(fitted, "backbone")
    name = type(backbone).__name__
    if name == "Identity":
        return None
    if name == "LinearTransform":
        return _array(backbone.weights).T
    if name == "Linear":
        return _array(backbone.weight)  # its bias cancels in every difference
    raise NotSupportedError(
        f"{kind} of prototorch-models has a backbone of type {name}; expected a linear one "
        f"(Identity, LinearTransform or Linear). Behind a network the distance is not quadratic "
        f"in the input."
    )


def _array(tensor: Any) -> NDArray[Any]:
    detached = tensor.detach() if hasattr(tensor, "detach") else tensor
    return np.asarray(detached.cpu().numpy() if hasattr(detached, "cpu") else detached)

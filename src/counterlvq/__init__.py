"""Closest counterfactuals of prototype-based classifiers, each with a proof."""

from typing import TYPE_CHECKING, Any

from counterlvq.adapters import as_prototype_model, load_exported
from counterlvq.batch import BatchSummary, CounterfactualBatch
from counterlvq.constraints import (
    Bounds,
    Constraint,
    Decrease,
    Freeze,
    Increase,
    Linear,
    MaxChange,
    Quadratic,
)
from counterlvq.costs import Cost, Euclidean, Mahalanobis, Manhattan, mad_weights
from counterlvq.errors import (
    ConstraintSyntaxError,
    CounterlvqError,
    InvalidInputError,
    ModelFileError,
    NotSupportedError,
    TooLargeError,
    UnknownFeatureError,
    UnknownLabelError,
    WorkerLostError,
)
from counterlvq.explainer import Explainer
from counterlvq.features import Feature, Features
from counterlvq.model import PrototypeModel
from counterlvq.persistence import load, save
from counterlvq.pipelines import TableModel
from counterlvq.results import Change, Counterfactual
from counterlvq.statements import OneOf
from counterlvq.types import Status

if TYPE_CHECKING:
    from counterlvq.lvq import GLVQ, GMLVQ, LGMLVQ, LMRSLVQ, MRSLVQ, RSLVQ

__version__ = "0.1.0"

__all__ = [
    "GLVQ",
    "GMLVQ",
    "LGMLVQ",
    "LMRSLVQ",
    "MRSLVQ",
    "RSLVQ",
    "BatchSummary",
    "Bounds",
    "Change",
    "Constraint",
    "ConstraintSyntaxError",
    "Cost",
    "Counterfactual",
    "CounterfactualBatch",
    "CounterlvqError",
    "Decrease",
    "Euclidean",
    "Explainer",
    "Feature",
    "Features",
    "Freeze",
    "Increase",
    "InvalidInputError",
    "Linear",
    "Mahalanobis",
    "Manhattan",
    "MaxChange",
    "ModelFileError",
    "NotSupportedError",
    "OneOf",
    "PrototypeModel",
    "Quadratic",
    "Status",
    "TableModel",
    "TooLargeError",
    "UnknownFeatureError",
    "UnknownLabelError",
    "WorkerLostError",
    "__version__",
    "as_prototype_model",
    "load",
    "load_exported",
    "mad_weights",
    "save",
]

_ESTIMATORS = {"GLVQ", "GMLVQ", "LGMLVQ", "LMRSLVQ", "MRSLVQ", "RSLVQ"}


def __getattr__(name: str) -> Any:
    # scikit-learn takes a second to import, and explaining does not need it.
    if name in _ESTIMATORS:
        from counterlvq import lvq

        return getattr(lvq, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

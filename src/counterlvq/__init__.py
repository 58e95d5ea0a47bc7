"""Closest counterfactuals of prototype-based classifiers, each with a proof."""

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
    NotSupportedError,
    UnknownFeatureError,
    UnknownLabelError,
)
from counterlvq.explainer import Explainer
from counterlvq.features import Features
from counterlvq.model import PrototypeModel
from counterlvq.results import Change, Counterfactual
from counterlvq.types import Status

__version__ = "0.1.0"

__all__ = [
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
    "Features",
    "Freeze",
    "Increase",
    "InvalidInputError",
    "Linear",
    "Mahalanobis",
    "Manhattan",
    "MaxChange",
    "NotSupportedError",
    "PrototypeModel",
    "Quadratic",
    "Status",
    "UnknownFeatureError",
    "UnknownLabelError",
    "__version__",
    "mad_weights",
]

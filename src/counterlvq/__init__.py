"""Closest counterfactuals of prototype-based classifiers, each with a proof."""

# Read by type checkers, to which it is always true; importing it would take longer than all else.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from counterlvq.adapters import (
        Thresholded,
        angle_model,
        as_prototype_model,
        import_prototypes,
        load_exported,
    )
    from counterlvq.batch.result import BatchSummary, CounterfactualBatch
    from counterlvq.certificate_files.verifying import LineVerdict, verify_certificates
    from counterlvq.certificate_files.writing import save_certificate
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
    from counterlvq.lvq import GLVQ, GMLVQ, LGMLVQ, LMRSLVQ, MRSLVQ, RSLVQ
    from counterlvq.model import PrototypeModel
    from counterlvq.persistence import load, save
    from counterlvq.pipelines import TableModel
    from counterlvq.presentation.changes import Change
    from counterlvq.problem.at_most import AtMost
    from counterlvq.problem.chebyshev import Chebyshev
    from counterlvq.problem.confidence import Confidence, Noise, Probability
    from counterlvq.problem.constraints import (
        Bounds,
        Constraint,
        Decrease,
        Freeze,
        Increase,
        Linear,
        MaxChange,
        MinChange,
        OneOf,
    )
    from counterlvq.problem.costs import Cost, Euclidean, Mahalanobis, Manhattan
    from counterlvq.problem.data_ranges import least_changes, within_data
    from counterlvq.problem.implications import If
    from counterlvq.problem.plausibility import Plausible
    from counterlvq.problem.quadratic import Quadratic
    from counterlvq.problem.similarity import Drift, RelativeSimilarity
    from counterlvq.problem.weights import mad_weights
    from counterlvq.questions.alternatives import Alternatives
    from counterlvq.questions.ranges import Ranges
    from counterlvq.questions.reasons import Reasons
    from counterlvq.questions.robustness import Robustness, robustness
    from counterlvq.results import Counterfactual
    from counterlvq.search.progress import Progress
    from counterlvq.streaming.dataset import DatasetSummary, explain_dataset
    from counterlvq.tables.feature import Feature
    from counterlvq.tables.features import Features
    from counterlvq.tables.reference import Reference
    from counterlvq.types import Status

__version__ = "0.1.0"

__all__ = [
    "GLVQ",
    "GMLVQ",
    "LGMLVQ",
    "LMRSLVQ",
    "MRSLVQ",
    "RSLVQ",
    "Alternatives",
    "AtMost",
    "BatchSummary",
    "Bounds",
    "Change",
    "Chebyshev",
    "Confidence",
    "Constraint",
    "ConstraintSyntaxError",
    "Cost",
    "Counterfactual",
    "CounterfactualBatch",
    "CounterlvqError",
    "DatasetSummary",
    "Decrease",
    "Drift",
    "Euclidean",
    "Explainer",
    "Feature",
    "Features",
    "Freeze",
    "If",
    "Increase",
    "InvalidInputError",
    "LineVerdict",
    "Linear",
    "Mahalanobis",
    "Manhattan",
    "MaxChange",
    "MinChange",
    "ModelFileError",
    "Noise",
    "NotSupportedError",
    "OneOf",
    "Plausible",
    "Probability",
    "Progress",
    "PrototypeModel",
    "Quadratic",
    "Ranges",
    "Reasons",
    "Reference",
    "RelativeSimilarity",
    "Robustness",
    "Status",
    "TableModel",
    "Thresholded",
    "TooLargeError",
    "UnknownFeatureError",
    "UnknownLabelError",
    "WorkerLostError",
    "__version__",
    "angle_model",
    "as_prototype_model",
    "explain_dataset",
    "import_prototypes",
    "least_changes",
    "load",
    "load_exported",
    "mad_weights",
    "robustness",
    "save",
    "save_certificate",
    "verify_certificates",
    "within_data",
]

# Where each name lives. Importing the package takes no time: it is the first thing that the command
# does, before it can answer to Ctrl-C, and much of it is not needed for a single question.
_HOMES = {
    "adapters": (
        "Thresholded",
        "angle_model",
        "as_prototype_model",
        "import_prototypes",
        "load_exported",
    ),
    "batch.result": ("BatchSummary", "CounterfactualBatch"),
    "certificate_files.writing": ("save_certificate",),
    "certificate_files.verifying": ("LineVerdict", "verify_certificates"),
    "errors": (
        "ConstraintSyntaxError", "CounterlvqError", "InvalidInputError", "ModelFileError",
        "NotSupportedError", "TooLargeError", "UnknownFeatureError", "UnknownLabelError",
        "WorkerLostError",
    ),
    "explainer": ("Explainer",),
    "lvq": ("GLVQ", "GMLVQ", "LGMLVQ", "LMRSLVQ", "MRSLVQ", "RSLVQ"),
    "model": ("PrototypeModel",),
    "persistence": ("load", "save"),
    "pipelines": ("TableModel",),
    "presentation.changes": ("Change",),
    "problem.confidence": ("Confidence", "Noise", "Probability"),
    "problem.constraints": (
        "Bounds", "Constraint", "Decrease", "Freeze", "Increase", "Linear", "MaxChange",
        "MinChange", "OneOf",
    ),
    "problem.at_most": ("AtMost",),
    "problem.chebyshev": ("Chebyshev",),
    "problem.implications": ("If",),
    "problem.costs": ("Cost", "Euclidean", "Mahalanobis", "Manhattan"),
    "problem.plausibility": ("Plausible",),
    "problem.quadratic": ("Quadratic",),
    "problem.data_ranges": ("least_changes", "within_data"),
    "problem.similarity": ("Drift", "RelativeSimilarity"),
    "problem.weights": ("mad_weights",),
    "questions.alternatives": ("Alternatives",),
    "questions.ranges": ("Ranges",),
    "questions.reasons": ("Reasons",),
    "questions.robustness": ("Robustness", "robustness"),
    "results": ("Counterfactual",),
    "search.progress": ("Progress",),
    "streaming.dataset": ("DatasetSummary", "explain_dataset"),
    "tables.feature": ("Feature",),
    "tables.features": ("Features",),
    "tables.reference": ("Reference",),
    "types": ("Status",),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = found  # so that it is looked for once
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

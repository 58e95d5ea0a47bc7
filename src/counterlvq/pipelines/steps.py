"""Transformers made of transformers, and which function reads which."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterlvq.adapters.attributes import feature_names, fitted_attribute, thawed
from counterlvq.errors import InvalidInputError, NotSupportedError
from counterlvq.pipelines.affine import AFFINE, select
from counterlvq.pipelines.encoders import ENCODERS
from counterlvq.pipelines.flow import Flow

__all__ = ["is_kind", "passed"]

_BY_OTHERS = "which fills a gap by what other columns say"
_IMPUTE = "use SimpleImputer, or impute before the pipeline"

# What to do instead, for transformers that people reach for.
_INSTEAD = {
    "Binarizer": "use the number itself, or encode it as a category",
    "KBinsDiscretizer": "cut the column into categories before the pipeline and encode those",
    "Normalizer": "scale columns instead of rows, with StandardScaler for example",
    "PolynomialFeatures": "use a model with local metrics, which bends without them",
    "QuantileTransformer": "use RobustScaler, which is as robust and affine",
    "SplineTransformer": "use a model with local metrics, which bends without it",
    "KNNImputer": f"{_BY_OTHERS}, {_IMPUTE}",
    "IterativeImputer": f"{_BY_OTHERS}, {_IMPUTE}",
    "TargetEncoder": "use OneHotEncoder or OrdinalEncoder",
    "KernelPCA": "use PCA",
}


def passed(step: Any, flow: Flow) -> Flow:
    """Follow columns through a fitted transformer, 'passthrough' or 'drop'."""
    step = thawed(step)
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return flow
    if isinstance(step, str) and step == "drop":
        return flow.taking([])
    width = getattr(step, "n_features_in_", flow.width)
    if width != flow.width:
        raise InvalidInputError(
            f"{type(step).__name__} was fitted on {width} column(s) and is handed {flow.width}; "
            f"expected as many. Fit the whole pipeline at once."
        )
    return _reader(step)(step, flow)


def is_kind(step: Any, name: str) -> bool:
    """Whether an object is of a class of scikit-learn, or of one that extends it."""
    return any(cls.__name__ == name and _is_theirs(cls) for cls in type(step).__mro__)


def _is_theirs(cls: type) -> bool:
    return cls.__module__.startswith("sklearn.")


def _reader(step: Any) -> Callable[[Any, Flow], Flow]:
    # A class of the user's own is read like the class that it extends; the probe will tell.
    for cls in type(step).__mro__:
        if _is_theirs(cls) and cls.__name__ in _READERS:
            return _READERS[cls.__name__]
    raise NotSupportedError(_refusal(step))


def _refusal(step: Any) -> str:
    if isinstance(step, type):
        return f"{step.__name__} is a class; expected a fitted instance of it."
    name = type(step).__name__
    advice = _INSTEAD.get(name, "apply it to the table before the pipeline")
    return (
        f"a pipeline with {name} (from {type(step).__module__}) cannot be read; expected steps "
        f"that are affine in numbers or encode categories: {', '.join(_LISTED)}, and feature "
        f"selectors. Instead of {name}, {advice}."
    )


def _pipeline(step: Any, flow: Flow) -> Flow:
    for _, part in step.steps:
        flow = passed(part, flow)
    return flow


def _union(step: Any, flow: Flow) -> Flow:
    weights = step.transformer_weights or {}
    return _beside(
        [_weighted(passed(part, flow), weights.get(name)) for name, part in step.transformer_list],
        flow,
    )


def _column_transformer(step: Any, flow: Flow) -> Flow:
    weights = step.transformer_weights or {}
    names = feature_names(step)
    parts = []
    for name, part, key in fitted_attribute(step, "transformers_"):
        at = _positions(key, names, flow.width)
        if len(at):
            parts.append(_weighted(passed(part, flow.taking(at)), weights.get(name)))
    return _beside(parts, flow)


def _beside(parts: Sequence[Flow], flow: Flow) -> Flow:
    return flow.constant(np.zeros(0)).beside(parts)


def _weighted(flow: Flow, weight: float | None) -> Flow:
    return flow if weight is None else flow.scaled(weight)


def _positions(key: Any, names: list[str] | None, width: int) -> NDArray[np.intp]:
    """Turn what a ColumnTransformer calls columns into positions."""
    if isinstance(key, slice):
        return np.arange(width)[_numbered_slice(key, names)]
    if isinstance(key, str):
        return np.array([_position(key, names)])
    keys = np.asarray(key)
    if keys.dtype.kind in "OU":
        return np.array([_position(name, names) for name in keys.tolist()], dtype=np.intp)
    if keys.size == 0:
        return np.zeros(0, dtype=np.intp)
    return np.atleast_1d(np.arange(width)[keys])


def _numbered_slice(key: slice, names: list[str] | None) -> slice:
    """Turn a slice of names, whose end belongs to it, into one of positions."""
    start, stop = key.start, key.stop
    if isinstance(start, str):
        start = _position(start, names)
    if isinstance(stop, str):
        stop = _position(stop, names) + 1
    return slice(start, stop, key.step)


def _position(name: str, names: list[str] | None) -> int:
    if names is None or name not in names:
        raise InvalidInputError(
            f"a ColumnTransformer names the column {name!r}, which it was not fitted on; expected "
            f"one of its `feature_names_in_`. Fit it again."
        )
    return names.index(name)


_READERS: Mapping[str, Callable[[Any, Flow], Flow]] = {
    **AFFINE,
    **ENCODERS,
    "SelectorMixin": select,
    "Pipeline": _pipeline,
    "FeatureUnion": _union,
    "ColumnTransformer": _column_transformer,
}
_LISTED = [name for name in _READERS if name not in ("SelectorMixin", "IncrementalPCA")]

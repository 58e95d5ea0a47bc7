"""Transformers of numbers: scalers, projections, imputers and selectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from counterlvq.adapters.attributes import fitted_array, fitted_attribute
from counterlvq.errors import NotSupportedError
from counterlvq.pipelines.flow import Flow
from counterlvq.tables.monotone import NAMES, Link
from counterlvq.tables.values import is_missing

__all__ = ["AFFINE", "select"]


def _standard(step: Any, flow: Flow) -> Flow:
    fitted_attribute(step, "n_features_in_")
    if step.with_mean:
        flow = flow.shifted(-fitted_array(step, "mean_"))
    if step.with_std:
        flow = flow.divided(fitted_array(step, "scale_"))
    return flow


def _min_max(step: Any, flow: Flow) -> Flow:
    _refuse_clip(step, "MinMaxScaler")
    return flow.scaled(fitted_array(step, "scale_")).shifted(fitted_array(step, "min_"))


def _max_abs(step: Any, flow: Flow) -> Flow:
    _refuse_clip(step, "MaxAbsScaler")
    return flow.divided(fitted_array(step, "scale_"))


def _refuse_clip(step: Any, kind: str) -> None:
    if getattr(step, "clip", False):
        raise NotSupportedError(
            f"{kind} has clip=True, which cuts values off and is not affine; expected clip=False. "
            f"Fit the pipeline without it, and keep features in range with Bounds."
        )


def _robust(step: Any, flow: Flow) -> Flow:
    fitted_attribute(step, "n_features_in_")
    if step.with_centering:
        flow = flow.shifted(-fitted_array(step, "center_"))
    if step.with_scaling:
        flow = flow.divided(fitted_array(step, "scale_"))
    return flow


def _principal(step: Any, flow: Flow) -> Flow:
    mean, components = fitted_array(step, "mean_"), fitted_array(step, "components_")
    if np.result_type(mean, components) == np.float64:
        flow = flow.shifted(-mean).mixed(components)
    else:
        # `transform` multiplies these two in their own precision, and takes the result off.
        flow = flow.mixed(components).shifted(-(mean[None, :] @ components.T)[0])
    if not step.whiten:
        return flow
    # As `transform` does: a component without variance is not blown up beyond all measure.
    spread = np.sqrt(fitted_array(step, "explained_variance_"))
    return flow.divided(np.maximum(spread, np.finfo(spread.dtype).eps))


def _singular(step: Any, flow: Flow) -> Flow:
    return flow.mixed(fitted_array(step, "components_"))


def _imputer(step: Any, flow: Flow) -> Flow:
    """On complete rows an imputer changes nothing and its indicators are all zero.

    What it puts in the place of missing values is noted, for the proof to look at.
    """
    statistics = fitted_array(step, "statistics_")
    if not is_missing(step.missing_values):
        raise NotSupportedError(
            f"SimpleImputer has missing_values={step.missing_values!r}, so that it replaces a "
            f"value that a row may have; expected NaN or None, which complete rows do not hold."
        )
    empty = np.array([is_missing(value) for value in statistics.tolist()], dtype=bool)
    marked = fitted_array(step.indicator_, "features_").tolist() if step.add_indicator else []
    flow = flow.filled(statistics.tolist(), marked)
    if not step.keep_empty_features:
        flow = flow.taking(np.flatnonzero(~empty))
    if step.add_indicator:
        flow = flow.beside([flow.constant(np.zeros(len(marked)))])
    return flow


def _function(step: Any, flow: Flow) -> Flow:
    if step.func is None:
        return flow
    known = [name for name in NAMES if step.func is getattr(np, name)]
    if known and not step.kw_args:
        return flow.linked([Link(known[0])] * flow.width, "FunctionTransformer")
    name = getattr(step.func, "__name__", type(step.func).__name__)
    raise NotSupportedError(
        f"FunctionTransformer applies {name!r}, and what a function does cannot be read; expected "
        f"func=None, which is the identity, or one of NumPy's {', '.join(NAMES)}. Apply the "
        f"function to the table before the pipeline: counterfactuals are then in its units."
    )


def _power(step: Any, flow: Flow) -> Flow:
    powers = fitted_array(step, "lambdas_").tolist()
    flow = flow.linked([Link(step.method, float(power)) for power in powers], "PowerTransformer")
    return _standard(step._scaler, flow) if step.standardize else flow


def select(step: Any, flow: Flow) -> Flow:
    """Keep the columns that a feature selector kept."""
    return flow.taking(np.flatnonzero(step.get_support()))


AFFINE: Mapping[str, Callable[[Any, Flow], Flow]] = {
    "StandardScaler": _standard,
    "MinMaxScaler": _min_max,
    "MaxAbsScaler": _max_abs,
    "RobustScaler": _robust,
    "PCA": _principal,
    "IncrementalPCA": _principal,
    "TruncatedSVD": _singular,
    "SimpleImputer": _imputer,
    "FunctionTransformer": _function,
    "PowerTransformer": _power,
}

"""What fitted steps of scikit-learn say in exact arithmetic: an oracle without any rounding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

import counterlvq as clvq

Row = list[Fraction]


def exact(values: Any) -> Row:
    """Read floats for the rational numbers that they are."""
    return [Fraction(float(value)) for value in np.asarray(values).reshape(-1)]


def transformed(step: Any, row: Row) -> Row:
    """Take a row through a fitted transformer, in exact arithmetic."""
    return _STEPS[type(step).__name__](step, row)


def scores(model: clvq.PrototypeModel, row: Row) -> Row:
    """Distances of a row to every prototype, in exact arithmetic of the model's floats."""
    offsets = np.zeros(model.n_prototypes) if model.offsets is None else model.offsets
    out = []
    for k, (point, offset) in enumerate(zip(model.prototypes, offsets, strict=True)):
        away = [x - w for x, w in zip(row, exact(point), strict=True)]
        if model.omegas is not None:
            away = _times(model.factors[k], away)
        out.append(sum((part * part for part in away), Fraction(float(offset))))
    return out


def _times(matrix: Any, row: Row) -> Row:
    return [
        sum((a * x for a, x in zip(exact(line), row, strict=True) if a), Fraction(0))
        for line in np.asarray(matrix)
    ]


def _minus(row: Row, values: Any) -> Row:
    return [x - v for x, v in zip(row, exact(values), strict=True)]


def _over(row: Row, values: Any) -> Row:
    return [x / v for x, v in zip(row, exact(values), strict=True)]


def _scaler(step: Any, row: Row, centre: str) -> Row:
    middle = getattr(step, centre, None)
    row = row if middle is None else _minus(row, middle)
    return row if getattr(step, "scale_", None) is None else _over(row, step.scale_)


def _min_max(step: Any, row: Row) -> Row:
    each = zip(row, exact(step.scale_), exact(step.min_), strict=True)
    return [x * factor + shift for x, factor, shift in each]


def _components(step: Any, row: Row) -> Row:
    out = _times(step.components_, _minus(row, step.mean_))
    if step.whiten:
        spread = np.sqrt(step.explained_variance_)
        out = _over(out, np.maximum(spread, np.finfo(spread.dtype).eps))
    return out


def _pipeline(step: Any, row: Row) -> Row:
    for _, part in step.steps:
        row = transformed(part, row)
    return row


def _union(step: Any, row: Row) -> Row:
    return [value for _, part in step.transformer_list for value in transformed(part, row)]


def _columns(step: Any, row: Row) -> Row:
    out: Row = []
    for _, part, at in step.transformers_:
        taken = [row[j] for j in np.arange(len(row))[at]]
        if isinstance(part, str):
            out += taken if part == "passthrough" else []
        else:
            out += transformed(part, taken)
    return out


_STEPS: Mapping[str, Callable[[Any, Row], Row]] = {
    "StandardScaler": lambda step, row: _scaler(step, row, "mean_"),
    "RobustScaler": lambda step, row: _scaler(step, row, "center_"),
    "MaxAbsScaler": lambda step, row: _over(row, step.scale_),
    "MinMaxScaler": _min_max,
    "PCA": _components,
    "TruncatedSVD": lambda step, row: _times(step.components_, row),
    "VarianceThreshold": lambda step, row: [row[j] for j in np.flatnonzero(step.get_support())],
    "FunctionTransformer": lambda step, row: row,
    "Pipeline": _pipeline,
    "FeatureUnion": _union,
    "ColumnTransformer": _columns,
}

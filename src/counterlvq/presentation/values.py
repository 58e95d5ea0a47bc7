"""Values of a row in the types of their features, and as JSON holds them."""

from __future__ import annotations

from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats, plain
from counterlvq.safe_text import encodable, encodable_cells
from counterlvq.tables.encoding import written
from counterlvq.tables.feature import Feature
from counterlvq.tables.features import Features
from counterlvq.types import Kind

__all__ = [
    "answer_columns",
    "by_name",
    "difference",
    "finite_or_none",
    "holdable",
    "in_types",
    "plain_label",
    "value_of",
    "with_gaps",
]


def with_gaps(values: Floats, gaps: NDArray[np.bool_]) -> Floats:
    """Put NaN where values are missing."""
    return np.where(gaps, np.nan, values) if gaps.any() else values


def plain_label(label: Any) -> Any:
    """Turn a label or a value into what JSON can hold; text where it knows no such type."""
    if type(label) is float:  # as most values of rows are
        return None if isnan(label) else label
    value = plain(label)
    if isinstance(value, float) and isnan(value):
        return None
    return value if value is None or isinstance(value, str | int | float) else str(value)


def by_name(features: Features, values: Floats) -> dict[str, Any]:
    """Values that JSON can hold, by the names of their features."""
    pairs = zip(features, values.tolist(), strict=True)
    return {feature.name: plain_label(value_of(value, feature)) for feature, value in pairs}


def value_of(value: float, feature: Feature) -> Any:
    """One value in the type of its feature."""
    if feature.kind is Kind.REAL:
        return float(value)
    return plain(written(np.array([value]), feature)[0])


def in_types(values: Floats, features: Features) -> NDArray[Any]:
    """Values in the types of their features; floats where all of them are numbers."""
    if all(feature.is_number and feature.kind is not Kind.DATE for feature in features):
        return values
    out = np.empty(len(features), dtype=object)
    out[:] = [value_of(value, feature) for value, feature in zip(values, features, strict=True)]
    return out


def difference(after: Floats, before: Floats, features: Features) -> Floats:
    """Subtract rows of values; NaN where a level has changed, which has no distance."""
    delta = np.asarray(after - before)
    levels = [not feature.is_number for feature in features]
    if any(levels):
        switched = np.array(levels) & (delta != 0)
        delta = np.where(switched, np.nan, delta)
    return delta


def finite_or_none(value: float) -> float | None:
    """Replace infinities and NaN, which JSON does not know, by None."""
    return float(value) if np.isfinite(value) else None


def answer_columns(
    features: Features, before: Floats, after: Floats, delta: Floats
) -> dict[str, Any]:
    """Columns f_before, f_after and, for numbers, f_change of each feature f, for a DataFrame.

    Of inputs, their counterfactuals and the changes, (n, d) each.
    """
    columns: dict[str, Any] = {}
    for j, feature in enumerate(features):
        name = encodable(feature.name)
        columns[f"{name}_before"] = holdable(written(before[:, j], feature))
        columns[f"{name}_after"] = holdable(written(after[:, j], feature))
        if feature.is_number:
            columns[f"{name}_change"] = delta[:, j]
    return columns


def holdable(cells: NDArray[Any]) -> NDArray[Any]:
    """Write out halves of surrogate pairs, which no library of tables can hold."""
    if cells.dtype.kind not in "OU":
        return cells
    out = np.empty(len(cells), dtype=object)
    out[:] = encodable_cells(cells.tolist())
    return cells if out.tolist() == cells.tolist() else out

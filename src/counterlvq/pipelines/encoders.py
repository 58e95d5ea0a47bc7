"""Transformers of categories: what each level becomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterlvq.adapters.attributes import fitted_attribute
from counterlvq.errors import NotSupportedError
from counterlvq.numeric.arrays import Floats
from counterlvq.pipelines.flow import Flow
from counterlvq.tables.values import is_missing

__all__ = ["ENCODERS"]


def _one_hot(step: Any, flow: Flow) -> Flow:
    dropped = getattr(step, "drop_idx_", None)
    parts = []
    for i, categories in enumerate(fitted_attribute(step, "categories_")):
        codes = _codes(step, i, categories)
        indicators = np.eye(codes.max() + 1)[codes]
        if dropped is not None and dropped[i] is not None:
            indicators = np.delete(indicators, codes[int(dropped[i])], axis=1)
        parts.append(_encoded(flow, i, categories, indicators, "OneHotEncoder"))
    return parts[0].beside(parts[1:])


def _ordinal(step: Any, flow: Flow) -> Flow:
    parts = []
    for i, categories in enumerate(fitted_attribute(step, "categories_")):
        codes = _codes(step, i, categories).astype(np.float64)[:, None]
        parts.append(_encoded(flow, i, categories, codes, "OrdinalEncoder"))
    return parts[0].beside(parts[1:])


def _codes(step: Any, i: int, categories: NDArray[Any]) -> NDArray[np.intp]:
    """Give each category of column i its number; rare ones share the last one."""
    rare = getattr(step, "infrequent_categories_", None)
    if rare is None or rare[i] is None:
        return np.arange(len(categories))
    shared = set(rare[i].tolist())
    is_rare = np.array([category in shared for category in categories.tolist()])
    codes = np.cumsum(~is_rare) - 1
    codes[is_rare] = (~is_rare).sum()
    return codes


def _encoded(flow: Flow, i: int, categories: NDArray[Any], added: Floats, kind: str) -> Flow:
    column = flow.untouched[i]
    if column < 0:
        raise NotSupportedError(
            f"{kind} encodes a column that an earlier step has changed; expected it to see columns "
            f"of the table as they are. Encode first, in a ColumnTransformer for example."
        )
    # A missing value can be a category of the encoder, but no counterfactual has a gap.
    known = [k for k, level in enumerate(categories.tolist()) if not is_missing(level)]
    levels = tuple(categories[known].tolist())
    return flow.with_levels(column, levels, added[known])


ENCODERS: Mapping[str, Callable[[Any, Flow], Flow]] = {
    "OneHotEncoder": _one_hot,
    "OrdinalEncoder": _ordinal,
}

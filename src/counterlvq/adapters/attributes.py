"""Reading what `fit` left behind on an object of another library."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterlvq.errors import InvalidInputError

__all__ = [
    "feature_names",
    "fitted_array",
    "fitted_attribute",
    "labels_at",
    "named_rows",
    "thawed",
]


def thawed(fitted: Any) -> Any:
    """Return what a `FrozenEstimator` of scikit-learn holds, and anything else as it is.

    Freezing keeps an estimator from being fitted again; what it predicts is the same.
    """
    while any(_is_frozen(cls) for cls in type(fitted).__mro__):
        fitted = fitted.estimator
    return fitted


def _is_frozen(cls: type) -> bool:
    return cls.__name__ == "FrozenEstimator" and cls.__module__.startswith("sklearn.")


def fitted_attribute(fitted: Any, name: str) -> Any:
    """Return an attribute that `fit` sets, or say that `fit` was not called."""
    value = getattr(fitted, name, None)
    if value is None:
        raise InvalidInputError(
            f"this {type(fitted).__name__} has no `{name}`, so it is not fitted yet; call its "
            f"`fit` first."
        )
    return value


def fitted_array(fitted: Any, name: str) -> NDArray[Any]:
    """Return an attribute that `fit` sets, as an array."""
    return np.asarray(fitted_attribute(fitted, name))


def labels_at(fitted: Any, positions: NDArray[Any], name: str) -> NDArray[Any]:
    """Turn positions in `classes_` into the labels that stand there."""
    classes = fitted_array(fitted, "classes_")
    known = positions.dtype.kind in "iu" and positions.size > 0
    if not known or positions.min() < 0 or positions.max() >= len(classes):
        raise InvalidInputError(
            f"`{name}` of this {type(fitted).__name__} does not hold positions in its "
            f"`classes_`, 0 to {len(classes) - 1}; fit it again."
        )
    labels: NDArray[Any] = classes[positions]
    return labels


def feature_names(fitted: Any) -> list[str] | None:
    """Return the names of the columns seen in `fit`, where there were any."""
    names = getattr(fitted, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def named_rows(fitted: Any, rows: Any) -> Any:
    """Give rows the column names that `fit` saw, so that the estimator knows them again.

    A table keeps the names that it has: they are for the estimator to judge.
    """
    names = getattr(fitted, "feature_names_in_", None)
    if names is None or hasattr(rows, "columns"):
        return rows
    import pandas as pd

    return pd.DataFrame(rows, columns=list(names))

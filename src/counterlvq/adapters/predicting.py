"""The user's own `predict`, to have the last word on every counterfactual."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterlvq.adapters import own
from counterlvq.adapters.dispatch import recognised
from counterlvq.arrays import Floats
from counterlvq.model import PrototypeModel

__all__ = ["predictor_of"]


def predictor_of(fitted: Any) -> Callable[[Floats], NDArray[Any]] | None:
    """Return the `predict` of a foreign model as a function of rows.

    None for a `PrototypeModel` and the estimators of this package, which predict through one.
    """
    if isinstance(fitted, PrototypeModel):
        return None
    library, _ = recognised(fitted)
    if library.package == own.PACKAGE:
        return None
    names = getattr(fitted, "feature_names_in_", None)

    def says(rows: Floats) -> NDArray[Any]:
        return np.asarray(library.predict(fitted, _labelled(rows, names))).reshape(-1)

    return says


def _labelled(rows: Floats, names: Any) -> Any:
    """Give rows the column names that an estimator was fitted with, so that it knows them."""
    if names is None:
        return rows
    import pandas as pd

    return pd.DataFrame(rows, columns=list(names))

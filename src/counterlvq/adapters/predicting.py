"""The user's own `predict`, to have the last word on every counterfactual."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterlvq.adapters import own
from counterlvq.adapters.attributes import named_rows
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

    def says(rows: Floats) -> NDArray[Any]:
        return np.asarray(library.predict(fitted, named_rows(fitted, rows))).reshape(-1)

    return says

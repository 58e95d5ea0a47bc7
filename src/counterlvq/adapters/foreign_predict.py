"""The user's own `predict`, to have the last word on every counterfactual, and its rounding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.adapters import own_estimators
from counterlvq.adapters.arithmetic import Arithmetic
from counterlvq.adapters.attributes import named_rows, thawed
from counterlvq.adapters.dispatch import recognised
from counterlvq.adapters.exclusive_calls import in_turn
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import SINGLE_EPSILON

__all__ = ["arithmetic_of", "predictor_of", "with_rounding"]


def predictor_of(fitted: Any) -> Callable[[Floats], NDArray[Any]] | None:
    """Return the `predict` of a foreign model as a function of rows.

    None for a `PrototypeModel` and the estimators of this package, which predict through one,
    unless a class of the user's own has another `predict`, or the model remembers one that rounds
    more coarsely.
    """
    fitted = thawed(fitted)
    if isinstance(fitted, PrototypeModel):
        return None if fitted.meaning.unit is None else fitted.predict
    library, _ = recognised(fitted)
    if library.package == own_estimators.PACKAGE and not _is_overridden(fitted, library.package):
        return None

    return _Says(library.predict, fitted)


@final
@dataclass(frozen=True, eq=False)
class _Says:
    """What a fitted model predicts, as a value that processes can hand to each other."""

    predict: Callable[[Any, Any], Any]
    fitted: Any

    def __call__(self, rows: Floats) -> NDArray[Any]:
        with in_turn():
            told = self.predict(self.fitted, named_rows(self.fitted, rows))
        return np.asarray(told).reshape(-1)


def arithmetic_of(fitted: Any, model: PrototypeModel) -> Arithmetic | None:
    """Describe the arithmetic of a foreign `predict`; None where `predictor_of` is None.

    `model` is what was read from it. Of a `predict` of the user's own nothing is known: the
    worst is assumed, products in single precision.
    """
    fitted = thawed(fitted)
    if isinstance(fitted, PrototypeModel):
        unit = fitted.meaning.unit
        return None if unit is None else Arithmetic(model, unit)
    library, kind = recognised(fitted)
    if _is_overridden(fitted, library.package):
        return Arithmetic(model, SINGLE_EPSILON, casts=True)
    if library.package == own_estimators.PACKAGE:
        return None
    return library.arithmetic(fitted, kind, model)


def with_rounding(fitted: Any, model: PrototypeModel) -> PrototypeModel:
    """Let a model that was read from `fitted` remember how coarsely `predict` rounds there."""
    arithmetic = arithmetic_of(fitted, model)
    if arithmetic is None or model.meaning.unit is not None:
        return model
    return model.rounded_by(arithmetic.unit_of_products())


def _is_overridden(fitted: Any, package: str) -> bool:
    """Whether `predict` is that of a class outside the library."""
    home = package.partition(".")[0]
    for cls in type(fitted).__mro__:
        if "predict" in vars(cls):
            return cls.__module__.partition(".")[0] != home
    return False

"""Missing values: what a model puts in their place, column by column, and why elsewhere nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

import numpy as np

from counterlvq.numeric.arrays import Floats, read_only
from counterlvq.tables.feature import Feature
from counterlvq.tables.features import Features

__all__ = ["Fills", "NoFill"]


class NoFill(NamedTuple):
    """Why a missing value has nothing in its place, and what to do, to stand behind "or"."""

    why: str = ""
    advice: str = ""


@final
@dataclass(frozen=True)
class Fills:
    """What stands in for a missing value.

    Attributes
    ----------
    values : mapping from str to value
        By column: the number or level that the model sees where a value is missing.
    reasons : mapping from str to NoFill
        For columns that an imputer fills and that have no value here: why.
    signs : mapping from str to value
        By column: what the imputer takes for a missing value; NaN where that is not said.

    Examples
    --------
    >>> from counterlvq.tables.feature import Feature
    >>> from counterlvq.tables.features import Features
    >>> features = Features(["age", Feature("job", levels=["clerk", "nurse"])])
    >>> Fills({"job": "nurse"}).codes(features)
    array([nan,  1.])
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    reasons: Mapping[str, NoFill] = field(default_factory=dict)
    signs: Mapping[str, Any] = field(default_factory=dict)

    def codes(self, features: Features) -> Floats:
        """Value of each feature as rows of numbers have it, NaN where there is none, (d,)."""
        return read_only(np.array([self._code(feature) for feature in features]))

    def _code(self, feature: Feature) -> float:
        if feature.name not in self.values:
            return np.nan
        value = self.values[feature.name]
        if feature.is_number:
            return float(value)
        code = feature.code(value)
        return np.nan if code < 0 else float(code)

    def reason(self, feature: Feature) -> NoFill:
        """Say why a missing value of a feature has nothing in its place; empty without a reason."""
        if feature.name in self.values:
            value = self.values[feature.name]
            return NoFill(
                f"the pipeline puts {value!r} there, which is no level of it",
                f"add {value!r} to the levels of the feature",
            )
        return self.reasons.get(feature.name, NoFill())

"""The values of a row before and after, as tables on pages show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from counterlvq.markup.parts import FeatureValue
from counterlvq.presentation.changes import Change
from counterlvq.presentation.wording import PLAIN, Wording
from counterlvq.safe_text import shown_text
from counterlvq.tables.feature import Feature
from counterlvq.tables.features import Features

__all__ = ["ShownAnswer", "feature_values", "signed_weights", "value_words"]


class ShownAnswer(Protocol):
    """What is asked of an answer to show its values."""

    @property
    def features(self) -> Features:
        """What the columns are."""

    @property
    def shown_changes(self) -> tuple[Change, ...]:
        """The changes of the row that is shown."""

    @property
    def original(self) -> NDArray[Any]:
        """The factual input, (d,)."""

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Where the input has no value, (d,)."""


def feature_values(
    cf: ShownAnswer, weights: Mapping[str, float], wording: Wording = PLAIN
) -> tuple[FeatureValue, ...]:
    """Every feature; those that change first, by what the change weighs."""
    most = max(map(abs, weights.values()), default=0.0) or 1.0
    out = []
    for change in sorted(cf.shown_changes, key=lambda change: -abs(weights[change.feature])):
        _, before, after, by = change.cells(wording)
        behind = change.unit_words
        values = (before + behind, after + behind, "")
        if change.is_number:
            values = (before + behind, after + behind, by.replace("-", "−", 1) + behind)
        elif change.is_date:
            values = (before, after, by.replace("-", "−", 1))
        weight = weights[change.feature] / most
        out.append(FeatureValue(change.spoken, *values, weight=weight, changed=True))
    rows = zip(cf.features, cf.original.tolist(), cf.missing, strict=True)
    for feature, value, is_missing in rows:
        if feature.name in weights:
            continue
        same = "missing" if is_missing else value_words(feature, value, wording)
        out.append(FeatureValue(shown_text(feature.spoken), same, same, "", 0.0, changed=False))
    return tuple(out)


def value_words(feature: Feature, value: Any, wording: Wording = PLAIN) -> str:
    """Write a value with its unit, or a level in its words."""
    if not feature.is_number and not (feature.has_numbers and not feature.level_labels):
        return shown_text(feature.words(value))
    unit = "" if isinstance(value, date) else _unit(feature.unit)  # that of steps between dates
    return wording.value(feature, value) + unit


def _unit(unit: str) -> str:
    return f" {shown_text(unit)}" if unit else ""


def signed_weights(changes: Sequence[Change], savings: Mapping[str, float]) -> dict[str, float]:
    """Give what each change weighs the sign of its direction; a new level counts as up."""
    return {
        change.feature: -savings[change.feature]
        if change.is_number and change.difference < 0
        else savings[change.feature]
        for change in changes
    }

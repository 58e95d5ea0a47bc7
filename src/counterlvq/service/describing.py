"""What a model takes and says, as plain values: enough to draw a form from."""

from __future__ import annotations

from math import isfinite
from typing import Any

import counterlvq as clvq
from counterlvq.presentation.values import plain_label, value_of

__all__ = ["Model", "described"]

Model = clvq.PrototypeModel | clvq.TableModel


def described(model: Model, features: clvq.Features) -> dict[str, Any]:
    """Describe a model: its classes, and each feature with kind, unit, levels and ranges."""
    inner = model.model if isinstance(model, clvq.TableModel) else model
    return {
        "classes": [plain_label(label) for label in inner.classes.tolist()],
        "prototypes": inner.n_prototypes,
        "metric": "local" if inner.is_local else "shared",
        "cost": "manhattan" if model.reference is None else "mad",
        "features": [_feature(feature, model.reference) for feature in features],
    }


def _feature(feature: clvq.Feature, reference: clvq.Reference | None) -> dict[str, Any]:
    told: dict[str, Any] = {
        "name": feature.name,
        "label": feature.spoken,
        "kind": str(feature.kind),
        "unit": feature.unit,
        "change": feature.change,
    }
    if not feature.is_number:
        levels = [plain_label(level) for level in feature.levels]
        words = [feature.words(level) for level in feature.levels]
        return told | {"levels": levels, "level_labels": words}
    told |= _ends("range", *feature.range) | _grid(feature)
    if reference is not None and feature.name in reference:
        column = reference[feature.name]
        if column.is_number and column.quantiles:
            told |= _ends("seen", column.quantiles[0], column.quantiles[-1])
            told["typical"] = _plain(feature, column.median)
    return told


def _grid(feature: clvq.Feature) -> dict[str, Any]:
    if feature.kind == "whole" or feature.step != 1:
        return {"step": feature.step}
    return {} if feature.decimals is None else {"decimals": feature.decimals}


def _ends(name: str, lower: float, upper: float) -> dict[str, Any]:
    ends = [float(end) if isfinite(end) else None for end in (lower, upper)]
    return {name: ends} if ends != [None, None] else {}


def _plain(feature: clvq.Feature, value: float | None) -> Any:
    return None if value is None else plain_label(value_of(float(value), feature))

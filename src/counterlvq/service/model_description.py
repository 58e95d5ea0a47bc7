"""What a model takes and says, as plain values: enough to draw a form from."""

from __future__ import annotations

from math import isfinite
from typing import Any

import counterlvq as clvq
from counterlvq.presentation.changes import said_level
from counterlvq.presentation.values import plain_label, value_of

__all__ = ["Model", "described", "fitted_schema"]

Model = clvq.PrototypeModel | clvq.TableModel
_DAY = "2024-01-31"  # of an example, where no day is known to be usual


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


def fitted_schema(asked: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    """Fit the schema of a question to the model that `described` tells of: a form of its own.

    Examples
    --------
    >>> income = {"name": "income", "kind": "real", "label": "income", "unit": "EUR"}
    >>> schema = {"properties": {"rows": {}, "target": {"anyOf": []}, "freeze": {}, "bounds": {}}}
    >>> fitted = fitted_schema(schema, {"features": [income], "classes": ["no", "yes"]})
    >>> fitted["examples"]
    [{'rows': [{'income': 0.0}], 'target': 'no'}]
    """
    features = told["features"]
    names = [feature["name"] for feature in features]
    row = {
        "type": "object",
        "properties": {feature["name"]: _cell(feature) for feature in features},
        "required": names,
        "additionalProperties": False,
    }
    known = asked["properties"]
    label = {"enum": [*told["classes"], None]}
    several = {"type": "array", "items": {"enum": told["classes"]}, "minItems": 1}
    fitted = {
        "rows": {**known["rows"], "items": row},
        "target": {**known["target"], "anyOf": [label, several]},
        "freeze": {**known["freeze"], "items": {"enum": names}},
        "bounds": {**known["bounds"], "propertyNames": {"enum": names}},
    }
    usual = {
        feature["name"]: feature["levels"][0]
        if "levels" in feature
        else feature.get("typical", _DAY if feature["kind"] == "date" else 0.0)
        for feature in features
    }
    return {
        **asked,
        "properties": {**known, **fitted},
        "examples": [{"rows": [usual], "target": told["classes"][0]}],
    }


def _cell(feature: dict[str, Any]) -> dict[str, Any]:
    """State what values of a feature look like."""
    words = " ".join(filter(None, (feature["label"], feature["unit"])))
    if "levels" in feature:
        return {"enum": [*feature["levels"], None], "description": words}
    if feature["kind"] == "date":
        return {"type": ["string", "null"], "format": "date", "description": words}
    return {"type": ["number", "null"], "description": words}


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
        words = [said_level(feature.words(level), level) for level in feature.levels]
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

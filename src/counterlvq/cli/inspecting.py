"""`counterlvq inspect`: what is in a model file."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date, timedelta
from math import isfinite
from typing import Any

import click

import counterlvq as clvq
from counterlvq.cli.conventions import debug_option
from counterlvq.cli.inputs import Model, read_model
from counterlvq.cli.terminal import say
from counterlvq.safe_text import shown_text

__all__ = ["inspect"]

_SHOWN = 8  # levels of a column
_ENDS = ("lower", "upper")
_USUAL = (("probability", 0.5), ("score", 0.0))


@click.command(short_help="Show what is in a model file.")
@click.argument("model")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@debug_option
def inspect(model: str, as_json: bool) -> None:
    """Show classes, prototypes, metric and columns of the file MODEL (- for stdin)."""
    told = _told(read_model(model))
    if as_json:
        say(json.dumps(told, indent=1))
    else:
        say(_text(told))


def _told(loaded: Model) -> dict[str, Any]:
    inner = loaded.model if isinstance(loaded, clvq.TableModel) else loaded
    counts = Counter(str(label) for label in inner.labels.tolist())
    table_map = loaded.table_map if isinstance(loaded, clvq.TableModel) else None
    through = _through(loaded)
    return {
        "kind": type(loaded).__name__,
        "prototypes": inner.n_prototypes,
        "part": inner.meaning.part,
        "scores": str(inner.meaning.scores),
        "dimensions": inner.n_features,
        "metric": _metric(inner),
        "classes": [
            {"label": label if isinstance(label, str | int | float) else str(label),
             "prototypes": counts[str(label)]}
            for label in inner.classes.tolist()
        ],
        **_response(inner),
        "features": [
            _feature(feature, loaded.reference) | through.get(feature.name, {})
            for feature in loaded.features
        ],
        "summary": loaded.reference is not None,
        "unseen": list(table_map.unseen) if table_map is not None else [],
    }  # fmt: skip


def _response(model: clvq.PrototypeModel) -> dict[str, Any]:
    """Say what decides between two classes, and from which number on."""
    response = model.meaning.response
    if response is None:
        return {}
    label = str(model.classes[response.label])
    said = {"name": response.name, "threshold": response.threshold, "label": label}
    return {"response": said}


def _through(loaded: Model) -> dict[str, dict[str, str]]:
    """Say of columns through which function the model sees them."""
    if not isinstance(loaded, clvq.TableModel):
        return {}
    pairs = zip(loaded.table_map.parts, loaded.table_map.links, strict=True)
    linked = {part.column: link for part, link in pairs if link is not None}
    return {column: {"through": link.words(column)} for column, link in linked.items()}


def _metric(model: clvq.PrototypeModel) -> str:
    if model.is_local:
        return "local"
    return "euclidean" if model.omegas is None else "shared"


def _feature(feature: clvq.Feature, reference: clvq.Reference | None) -> dict[str, Any]:
    told: dict[str, Any] = {"name": feature.name, "kind": str(feature.kind)}
    if feature.kind == "categorical":
        told["levels"] = list(feature.levels)
    for name in _ENDS:
        end = float(getattr(feature, name))
        if isfinite(end):
            told[name] = end
    extras = {"unit": feature.unit, "decimals": feature.decimals, "label": feature.label}
    told |= {name: value for name, value in extras.items() if value not in ("", None)}
    if feature.step != 1:
        told["step"] = feature.step
    if feature.steps != "of value":
        told["steps"] = feature.steps
    if feature.ordered:
        told["ordered"] = True
    if feature.change != "any":
        told["change"] = feature.change
    if any(feature.level_labels):
        told["level_labels"] = list(feature.level_labels)
    if feature.phrases:
        told["phrases"] = True
    if feature.price is not None:
        told["price"] = feature.price
    if reference is not None and feature.name in reference:
        told["summary"] = _summary(reference[feature.name])
    return told


def _summary(column: Any) -> dict[str, Any]:
    told: dict[str, Any] = {"count": column.count, "missing": column.missing}
    if not column.is_number:
        return told | {"shares": [share for _, share in column.shares]}
    figures = {name: getattr(column, name) for name in ("median", "mad", "deviation")}
    told |= {name: value for name, value in figures.items() if value is not None}
    return told | {"quantiles": list(column.quantiles)}


def _text(told: dict[str, Any]) -> str:
    labels = [shown_text(one["label"]) for one in told["classes"]]
    if told["part"] not in ("class", "cluster", "component"):  # those have one each
        labels = [
            f"{label} ({one['prototypes']})"
            for label, one in zip(labels, told["classes"], strict=True)
        ]
    parts = "scores" if told["part"] == "class" else f"{shown_text(told['part'])}s"
    metric = f"{told['metric']} metric"
    if told["scores"] == "angle":
        metric = "angles" if told["metric"] == "euclidean" else f"angles in a {metric}"
    lines = [
        f"{parts:<10}  {told['prototypes']} in {told['dimensions']} dimensions, {metric}",
        f"classes     {', '.join(labels)}",
        *_threshold_lines(told),
        f"columns     {len(told['features'])}"
        + (f", and unseen: {', '.join(map(shown_text, told['unseen']))}" if told["unseen"] else ""),
    ]
    if not told["summary"]:
        lines.append("summary     none: costs are plain, and numbers may go anywhere")
    names = [shown_text(feature["name"]) for feature in told["features"]]
    width = max(map(len, names), default=0)
    lines += [
        f"  {name:<{width}}  {feature['kind']}{_details(feature)}"
        for name, feature in zip(names, told["features"], strict=True)
    ]
    return "\n".join(lines)


def _threshold_lines(told: dict[str, Any]) -> list[str]:
    """Say where a decision turns, unless it is at even odds or at a score of 0."""
    said = told.get("response")
    if said is None or (said["name"], said["threshold"]) in _USUAL:
        return []
    name, label = shown_text(said["name"]), shown_text(said["label"])
    return [f"threshold   {name} >= {said['threshold']:.10g}: {label}"]


def _end(feature: dict[str, Any], value: float) -> str:
    if feature["kind"] != "date":
        return f"{value:g}"
    return (date(1970, 1, 1) + timedelta(days=round(value))).isoformat()


def _details(feature: dict[str, Any]) -> str:
    parts = [f'"{shown_text(feature["label"])}"'] if "label" in feature else []
    if "through" in feature:
        parts.append(f"seen as {shown_text(feature['through'])}")
    if "unit" in feature:
        parts.append(f"in {shown_text(feature['unit'])}")
    if "lower" in feature or "upper" in feature:
        ends = [_end(feature, feature[end]) if end in feature else "" for end in _ENDS]
        parts.append(f"range {':'.join(ends)}")
    parts += [
        f"{name} {feature[name]}"
        for name in ("decimals", "step", "steps", "change")
        if name in feature
    ]
    quantiles = feature.get("summary", {}).get("quantiles")
    if quantiles:
        parts.append(f"seen {_end(feature, quantiles[0])}:{_end(feature, quantiles[-1])}")
    if "levels" in feature:
        levels = [shown_text(level) for level in feature["levels"]]
        more = ", ..." if len(levels) > _SHOWN else ""
        order = " in order" if feature.get("ordered") else ""
        parts.append(", ".join(levels[:_SHOWN]) + more + order)
    if "level_labels" in feature:
        words = [f'"{shown_text(words)}"' for words in feature["level_labels"] if words]
        parts.append(f"called {', '.join(words[:_SHOWN])}{', ...' * (len(words) > _SHOWN)}")
    if "price" in feature:
        is_one = isinstance(feature["price"], float)
        parts.append(f"price {feature['price']:g}" if is_one else "prices of pairs")
    return f": {'; '.join(parts)}" if parts else ""

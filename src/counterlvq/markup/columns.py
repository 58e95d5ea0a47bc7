"""What the columns of a table are, and the card of whatever takes them."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from counterlvq.markup.parts import Fact, card, fact_list, table
from counterlvq.markup.tags import tag
from counterlvq.safe_text import shown_text
from counterlvq.tables.dates import date_of
from counterlvq.tables.feature import Feature
from counterlvq.tables.features import Features
from counterlvq.types import Kind

__all__ = ["features_card"]

# Levels that are named, and columns that are listed.
_MOST_LEVELS, _MOST_COLUMNS = 8, 200


def features_card(kind: str, facts: Sequence[Fact], features: Features) -> str:
    """Set what a model or an explainer is, with its columns behind a line to open."""
    shown = features.columns[:_MOST_COLUMNS]
    more = len(features) - len(shown)
    rows = [
        tag(
            "tr",
            tag("th", shown_text(feature.spoken), scope="row"),
            tag("td", str(feature.kind)),
            tag("td", _values(feature)),
        )
        for feature in shown
    ]
    caption = "Columns" + (f"; {more:,} more are not listed" if more else "")
    words = f"{len(features):,} feature{'' if len(features) == 1 else 's'}"
    return card(
        tag("p", tag("strong", kind), class_="top"),
        fact_list(facts, "setting"),
        tag("details", tag("summary", words), table(caption, _HEADS, rows, "columns-table")),
    )


_HEADS = ("feature", "kind", "values")


def _values(feature: Feature) -> str:
    """Say which values a column may have, as far as is known."""
    if not feature.is_number:
        named = [shown_text(feature.words(level)) for level in feature.levels[:_MOST_LEVELS]]
        return ", ".join(named) + (", …" if len(feature.levels) > _MOST_LEVELS else "")
    unit = f"in {shown_text(feature.unit)}" if feature.unit else ""
    parts = [unit, _range("from", feature, feature.lower, feature.upper)]
    if feature.seen is not None:
        parts.append(_range("seen from", feature, *feature.seen))
    if feature.change != "any":
        parts.append({"freeze": "stays"}.get(feature.change, f"may {feature.change}"))
    return "; ".join(part for part in parts if part)


def _range(words: str, feature: Feature, lower: float, upper: float) -> str:
    low, high = _end(feature, lower), _end(feature, upper)
    if isfinite(lower) and isfinite(upper):
        return f"{words} {low} to {high}"
    if isfinite(lower):
        return f"{words} {low}"
    return f"up to {high}" if isfinite(upper) else ""


def _end(feature: Feature, end: float) -> str:
    is_date = feature.kind is Kind.DATE and isfinite(end)
    return str(date_of(end)) if is_date else f"{end:,g}"

"""How often features change over many answers, as a table with bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from counterlvq.markup.parts import bar, table
from counterlvq.markup.tags import Safe, tag

__all__ = ["FeatureCount", "count_table"]

_SHOWN_FEATURES = 12


@final
@dataclass(frozen=True)
class FeatureCount:
    """In how many answers a feature goes up and down."""

    feature: str
    raised: int
    lowered: int
    other: int

    @property
    def changed(self) -> int:
        """In how many answers it changes at all."""
        return self.raised + self.lowered + self.other


def count_table(counts: Sequence[FeatureCount], answers: int, most: int = _SHOWN_FEATURES) -> Safe:
    """Set the features that change most often; `answers` is how many answers were counted."""
    shown = counts[:most]
    rest = len(counts) - len(shown)
    caption = "How often each feature changes" + (f"; {rest} more change less often" * bool(rest))
    lowered = max(use.lowered for use in shown) / answers
    raised = max(use.raised + use.other for use in shown) / answers
    return table(
        caption,
        ("feature", "lowered", "raised or new", "share of answers"),
        [_row(use, answers, (-lowered, raised)) for use in shown],
        "counts",
    )


def _row(use: FeatureCount, answers: int, ends: tuple[float, float]) -> Safe:
    drawn = bar(-use.lowered / answers, (use.raised + use.other) / answers, ends)
    return tag(
        "tr",
        tag("th", use.feature, scope="row"),
        tag("td", f"{use.lowered:,}", class_="num"),
        tag("td", f"{use.raised + use.other:,}", class_="num"),
        tag("td", drawn, class_="bar"),
    )

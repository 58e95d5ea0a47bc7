"""What a page says at its top: how the rows went, and what was asked of which model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from counterlvq.explainer import Explainer
from counterlvq.markup.counts import FeatureCount
from counterlvq.markup.parts import Fact
from counterlvq.presentation.numbers import rough_text
from counterlvq.presentation.question import setting_facts
from counterlvq.presentation.wording import PLAIN, Wording
from counterlvq.results import Counterfactual
from counterlvq.safe_text import shown_text
from counterlvq.types import Status

__all__ = ["Summary", "read_summary"]


@final
@dataclass(frozen=True)
class Summary:
    """All that is said at the top."""

    facts: tuple[Fact, ...]
    setting: tuple[Fact, ...]
    features: tuple[FeatureCount, ...]
    answers: int


def read_summary(
    explainer: Explainer, cfs: Sequence[Counterfactual], wording: Wording = PLAIN
) -> Summary:
    """Say how the rows went, and what was asked of which model."""
    found = [cf for cf in cfs if cf.status.has_answer]
    ends = Counter(cf.status for cf in cfs)
    facts = [Fact("rows", f"{len(cfs):,}"), Fact("proved closest", f"{ends[Status.OPTIMAL]:,}")]
    for status, words in (
        (Status.FEASIBLE, "valid, a closer one not ruled out"),
        (Status.INFEASIBLE, "proved to have none"),
        (Status.UNKNOWN, "no answer found"),
        (Status.INVALID, "cannot be read"),
    ):
        if ends[status]:
            facts.append(Fact(words, f"{ends[status]:,}"))
    for count, words in (
        (sum(cf.has_target for cf in cfs), "have the target already"),
        (sum(cf.has_target and bool(cf.changes) for cf in cfs), "change though they have it"),
        (sum(bool(cf.broken) for cf in cfs), "break the constraints as they are"),
    ):
        if count:
            facts.append(Fact(words, f"{count:,}"))
    # A row that stays as it is says nothing about what the others need.
    found = [cf for cf in found if cf.changes or not cf.has_target]
    if found:
        mean = rough_text(float(np.mean([cf.cost for cf in found])))
        facts.append(Fact("mean cost", wording.number(mean)))
        changed = float(np.mean([len(cf.changes) for cf in found]))
        facts.append(Fact("features changed per answer", wording.number(f"{changed:.2f}")))
    setting = setting_facts(
        explainer.model,
        explainer.features,
        explainer.cost,
        explainer.constraints,
        wording,
        confidence=explainer.confidence,
    )
    return Summary(tuple(facts), setting, _feature_counts(explainer, found), len(found))


def _feature_counts(
    explainer: Explainer, found: Sequence[Counterfactual]
) -> tuple[FeatureCount, ...]:
    counts: dict[str, Counter[str]] = {}
    for cf in found:
        for change in cf.changes:
            kind = "other"
            if change.difference is not None:
                kind = "raised" if change.difference > 0 else "lowered"
            counts.setdefault(change.feature, Counter())[kind] += 1
    listed = [
        FeatureCount(
            shown_text(explainer.features[name].spoken),
            kinds["raised"],
            kinds["lowered"],
            kinds["other"],
        )
        for name, kinds in counts.items()
    ]
    return tuple(sorted(listed, key=lambda use: -use.changed))

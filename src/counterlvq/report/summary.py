"""What a page says at its top: how the rows went, and what was asked of which model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from counterlvq.explainer import Explainer
from counterlvq.presentation.numbers import rough_text
from counterlvq.presentation.wording import plural
from counterlvq.problem.costs import Cost, Euclidean, Mahalanobis, Manhattan
from counterlvq.problem.largest import Chebyshev
from counterlvq.problem.seen import AsSeen
from counterlvq.report.content import LONGEST, Fact, words_of
from counterlvq.results import Counterfactual
from counterlvq.types import Status
from counterlvq.visible import shown_repr, shown_text

__all__ = ["FeatureCount", "Summary", "read_summary"]


@final
@dataclass(frozen=True)
class FeatureCount:
    """In how many answers a feature goes up and down."""

    feature: str
    raised: int
    lowered: int
    other: int


@final
@dataclass(frozen=True)
class Summary:
    """All that is said at the top."""

    facts: tuple[Fact, ...]
    setting: tuple[Fact, ...]
    features: tuple[FeatureCount, ...]
    answers: int


def read_summary(explainer: Explainer, cfs: Sequence[Counterfactual]) -> Summary:
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
        (sum(bool(cf.broken) for cf in cfs), "break the constraints as they are"),
    ):
        if count:
            facts.append(Fact(words, f"{count:,}"))
    # A row that is right already says nothing about what the others need.
    found = [cf for cf in found if not cf.has_target]
    if found:
        facts.append(Fact("mean cost", rough_text(float(np.mean([cf.cost for cf in found])))))
        changed = float(np.mean([len(cf.changes) for cf in found]))
        facts.append(Fact("features changed per answer", f"{changed:.2f}"))
    model = explainer.model
    features = explainer.features
    part = model.meaning.part
    metric = f"a metric for each {part}" if model.is_local else "one metric"
    parts = f"{model.n_prototypes:,} {part}{plural(part, model.n_prototypes)}"
    if part in ("prototype", "training row"):
        parts = f"{parts} of {len(model.classes)} classes"
    setting = (
        Fact("Model", f"{parts}, {len(features)} features, {metric}"),
        Fact("Cost", _cost_words(explainer.cost)),
        Fact("Constraints", _constraints_words(explainer)),
    )
    return Summary(tuple(facts), setting, _feature_counts(explainer, found), len(found))


def _constraints_words(explainer: Explainer) -> str:
    """List the user's constraints; ranges as seen in the data are counted, not listed."""
    listed = [item for item in explainer.constraints if isinstance(item, AsSeen)]
    ranges = [item for item in listed if item.is_about(explainer.features)]
    said = [words_of(item) for item in explainer.constraints if not isinstance(item, AsSeen)]
    if ranges:
        which = "its column" if len(ranges) == 1 else "their columns"
        count = "one number stays" if len(ranges) == 1 else f"{len(ranges):,} numbers stay"
        said.append(f"{count} in the range of {which} as seen in the data")
    return "; ".join(said) or "none"


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
    return tuple(sorted(listed, key=lambda use: -(use.raised + use.lowered + use.other)))


def _cost_words(cost: Cost) -> str:
    """Say which cost it is, and what other levels cost where that was said."""
    switches = [
        f"another {shown_text(name)} costs what was said for each pair of levels"
        if isinstance(price, Mapping)
        else f"another {shown_text(name)} costs {rough_text(float(price))}"
        for name, price in cost.switches.items()
    ]
    return "; ".join([_distance_words(cost), *switches])


def _distance_words(cost: Cost) -> str:
    """Say which distance it is; weights and matrices of many features are too much to read."""
    if isinstance(cost, Manhattan) and cost.unit:
        return f"sum of all changes, in {shown_text(cost.unit)}"
    if isinstance(cost, Manhattan) and cost.has_ways:
        return "Manhattan distance, with prices of their own for what goes up and what goes down"
    if isinstance(cost, Manhattan) and isinstance(cost.weights, np.ndarray):
        low, high = (rough_text(float(end)) for end in (cost.weights.min(), cost.weights.max()))
        return f"Manhattan distance, weighted by feature (from {low} to {high} per unit)"
    if isinstance(cost, Mahalanobis):
        return f"squared generalised distance, by a matrix of {len(cost.matrix)} features"
    if isinstance(cost, Chebyshev):
        return "largest of all changes" + (f", in {shown_text(cost.unit)}" if cost.unit else "")
    known = {Manhattan: "Manhattan distance", Euclidean: "squared Euclidean distance"}
    return known.get(type(cost)) or shown_repr(cost, LONGEST)

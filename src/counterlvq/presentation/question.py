"""What was asked of which model, in words: the model, the cost, the constraints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from counterlvq.markup.parts import Fact
from counterlvq.model import PrototypeModel
from counterlvq.presentation.numbers import exact_text, rough_text
from counterlvq.presentation.wording import PLAIN, Wording, plural
from counterlvq.problem.chebyshev import Chebyshev
from counterlvq.problem.confidence import Confidence
from counterlvq.problem.constraint_text import plain_words, with_unit
from counterlvq.problem.constraints import Constraint, MinChange
from counterlvq.problem.costs import Cost, Euclidean, Mahalanobis, Manhattan
from counterlvq.problem.data_ranges import AsSeen
from counterlvq.safe_text import shown_repr, shown_text, visible
from counterlvq.tables.features import Features

__all__ = ["constraints_words", "setting_facts", "words_of"]

# Letters of one constraint or one cost.
_LONGEST = 1000


def words_of(constraint: Constraint | str, features: Features, wording: Wording = PLAIN) -> str:
    """Say a constraint in words: the user's own, or ours; texts as they were written."""
    words = wording.rule(constraint) or plain_words(constraint, features, wording.value)
    return visible(words, _LONGEST)


def setting_facts(
    model: PrototypeModel,
    features: Features,
    cost: Cost,
    constraints: Sequence[Constraint | str],
    wording: Wording = PLAIN,
    *,
    confidence: Confidence | None = None,
) -> tuple[Fact, ...]:
    """Say model, cost and constraints in a line each, and the confidence where there is one."""
    part = model.meaning.part
    metric = f"a metric for each {part}" if model.is_local else "one metric"
    parts = f"{model.n_prototypes:,} {part}{plural(part, model.n_prototypes)}"
    if part in ("prototype", "training row"):
        parts = f"{parts} of {len(model.classes)} classes"
    return (
        Fact("Model", f"{parts}, {len(features)} features, {metric}"),
        Fact("Cost", _cost_words(cost)),
        Fact("Constraints", constraints_words(constraints, features, wording)),
        *([] if confidence is None else [Fact("Confidence", confidence.words)]),
    )


def constraints_words(
    constraints: Sequence[Constraint | str], features: Features, wording: Wording = PLAIN
) -> str:
    """List the user's constraints; what was taken from the data is told together."""
    seen = [item for item in constraints if isinstance(item, AsSeen)]
    ranges = [item for item in seen if item.is_about(features)]
    least = [item for item in constraints if isinstance(item, MinChange) and item.is_default]
    said = [
        words_of(item, features, wording)
        for item in constraints
        if not isinstance(item, AsSeen) and item not in least
    ]
    if ranges:
        which = "its column" if len(ranges) == 1 else "their columns"
        count = "one number stays" if len(ranges) == 1 else f"{len(ranges):,} numbers stay"
        said.append(f"{count} in the range of {which} as usual in the data")
    if least:
        shown = ", ".join(
            f"{with_unit(feature, wording.number(exact_text(item.by)), 'days')} "
            f"({shown_text(feature.spoken)})"
            for item, feature in ((item, features[item.feature]) for item in least)
        )
        said.append(f"changes of less than {shown} are left out")
    return visible("; ".join(said), _LONGEST) or "none"


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
    return known.get(type(cost)) or shown_repr(cost, _LONGEST)

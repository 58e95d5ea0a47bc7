"""What was asked of which model, in words: the model, the cost, the constraints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from counterlvq.markup.parts import Fact
from counterlvq.model import PrototypeModel
from counterlvq.presentation.numbers import rough_text
from counterlvq.presentation.wording import plural
from counterlvq.problem.constraints import Constraint
from counterlvq.problem.costs import Cost, Euclidean, Mahalanobis, Manhattan
from counterlvq.problem.seen import AsSeen
from counterlvq.tables.features import Features
from counterlvq.visible import shown_repr, shown_text, visible

__all__ = ["setting_facts", "words_of"]

# Letters of one constraint or one cost.
_LONGEST = 1000


def words_of(constraint: Constraint | str) -> str:
    """Say a constraint as the user gave it."""
    return visible(str(constraint), _LONGEST)


def setting_facts(
    model: PrototypeModel,
    features: Features,
    cost: Cost,
    constraints: Sequence[Constraint | str],
) -> tuple[Fact, ...]:
    """Say model, cost and constraints in a line each."""
    part = model.meaning.part
    metric = f"a metric for each {part}" if model.is_local else "one metric"
    parts = f"{model.n_prototypes:,} {part}{plural(part, model.n_prototypes)}"
    if part in ("prototype", "training row"):
        parts = f"{parts} of {len(model.classes)} classes"
    return (
        Fact("Model", f"{parts}, {len(features)} features, {metric}"),
        Fact("Cost", _cost_words(cost)),
        Fact("Constraints", _constraints_words(constraints, features)),
    )


def _constraints_words(constraints: Sequence[Constraint | str], features: Features) -> str:
    """List the user's constraints; ranges as seen in the data are counted, not listed."""
    listed = [item for item in constraints if isinstance(item, AsSeen)]
    ranges = [item for item in listed if item.is_about(features)]
    said = [words_of(item) for item in constraints if not isinstance(item, AsSeen)]
    if ranges:
        which = "its column" if len(ranges) == 1 else "their columns"
        count = "one number stays" if len(ranges) == 1 else f"{len(ranges):,} numbers stay"
        said.append(f"{count} in the range of {which} as seen in the data")
    return "; ".join(said) or "none"


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
    if isinstance(cost, Manhattan) and isinstance(cost.weights, np.ndarray):
        low, high = (rough_text(float(end)) for end in (cost.weights.min(), cost.weights.max()))
        return f"Manhattan distance, weighted by feature (from {low} to {high} per unit)"
    if isinstance(cost, Mahalanobis):
        return f"squared generalised distance, by a matrix of {len(cost.matrix)} features"
    known = {Manhattan: "Manhattan distance", Euclidean: "squared Euclidean distance"}
    return known.get(type(cost)) or shown_repr(cost, _LONGEST)

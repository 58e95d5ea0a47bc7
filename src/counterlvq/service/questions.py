"""From the words of a request to an explainer, with the defaults of the shell.

But for least changes: answers come at once and are checked by the script of the page, and both
take numbers that change by any amount.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, final

import counterlvq as clvq
from counterlvq.presentation.values import plain_label
from counterlvq.service.model_description import Model
from counterlvq.service.problems import Problem, problem_of

__all__ = ["DEVIATIONS", "Question", "explainer_for", "target_for", "with_stated_ranges"]

DEVIATIONS = "typical deviations"
# Fields besides constraints that an explainer may refuse, and what they are where nobody asks.
_REST: tuple[tuple[str, dict[str, Any]], ...] = (
    ("confidence", {"probability": None, "noise": None}),
    ("switches", {"switches": ()}),
    ("method", {"method": "auto"}),
    ("cost", {"cost": None}),
)
_WHOLE = 2**53  # floats below it are whole numbers or have digits behind the point


@final
@dataclass(frozen=True)
class Question:
    """What is asked of a model: everything but the rows and the target."""

    cost: str | None = None  # mad, manhattan, euclidean; None as the model file suggests
    constraints: tuple[str, ...] = ()
    freeze: tuple[str, ...] = ()
    bounds: tuple[tuple[str, float | None, float | None], ...] = ()
    switches: tuple[tuple[str, float], ...] = ()
    anywhere: bool = False
    method: str = "auto"
    time_limit: float | None = None
    probability: float | None = None
    noise: float | None = None
    norm: str = "l2"


def explainer_for(model: Model, features: clvq.Features, asked: Question) -> clvq.Explainer:
    """Make the explainer of a question; a `Problem` names the field that is wrong."""
    bounds = [_bound(*item) for item in asked.bounds]
    known = features
    if model.reference is not None and not asked.anywhere:
        features = with_stated_ranges(model.reference.described(features), bounds)
    cost = _cost(model, features, asked)
    freezes = [_checked(f"freeze[{k}]", clvq.Freeze, name) for k, name in enumerate(asked.freeze)]

    def build(constraints: Sequence[Any]) -> clvq.Explainer:
        return clvq.Explainer(
            model,
            cost=cost,
            constraints=constraints,
            method=asked.method,
            time_limit=asked.time_limit,
            features=features,
            confidence=_confidence(asked, cost),
        )

    try:
        return build([*freezes, *bounds, *asked.constraints])
    except clvq.CounterlvqError as error:
        fields = [f"freeze[{k}]" for k in range(len(freezes))]
        fields += [f"bounds.{name}" for name, _, _ in asked.bounds]
        fields += [f"constraints[{k}]" for k in range(len(asked.constraints))]
        parts = zip(fields, [*freezes, *bounds, *asked.constraints], strict=True)
        culprit = _culprit(build, list(parts), error) or _culprit_besides(
            model, known, asked, error
        )
        raise problem_of(error, culprit) from None


def _culprit_besides(
    model: Model, features: clvq.Features, asked: Question, error: Exception
) -> str:
    """Find the field without which another thing fails, or nothing; "" if there is none."""
    for field, unasked in _REST:
        without = replace(asked, **unasked)
        if without == asked:
            continue
        try:
            explainer_for(model, features, without)
        except Problem as other:
            if other.detail == str(error):
                continue
        return field
    return ""


def _culprit(
    build: Callable[[Sequence[Any]], Any], parts: list[tuple[str, Any]], error: Exception
) -> str:
    """Find the field whose constraint alone fails in the same way; "" if there is none."""

    def fails(constraints: Sequence[Any]) -> bool:
        try:
            build(constraints)
        except clvq.CounterlvqError as other:
            return str(other) == str(error)
        return False

    if fails([]):
        return ""
    return next((field for field, part in parts if fails([part])), "")


def _checked(field: str, make: Callable[..., Any], *given: Any) -> Any:
    try:
        return make(*given)
    except clvq.CounterlvqError as error:
        raise problem_of(error, field) from None


def _bound(name: str, lower: float | None, upper: float | None) -> clvq.Bounds:
    ends = (-inf if lower is None else _written(lower), inf if upper is None else _written(upper))
    bound: clvq.Bounds = _checked(f"bounds.{name}", clvq.Bounds, name, *ends)
    return bound


def _written(value: float) -> float:
    """Return a number as somebody wrote it: JSON does not tell 3 from 3.0, and 3 is shorter."""
    return int(value) if abs(value) < _WHOLE and value == int(value) else value


def _cost(model: Model, features: clvq.Features, asked: Question) -> clvq.Cost:
    prices = dict(asked.switches)
    kind = asked.cost or ("manhattan" if model.reference is None else "mad")
    if kind == "euclidean":
        return clvq.Euclidean(prices)
    if kind == "manhattan":
        return clvq.Manhattan(None, prices)
    if model.reference is None:
        raise Problem(
            422,
            "invalid input",
            "cost is 'mad', and the model file has no summary of its training table to measure "
            "typical deviations by; expected 'manhattan' or 'euclidean'.",
            "cost",
        )
    return clvq.Manhattan(model.reference.weights(features), prices, unit=DEVIATIONS)


def _confidence(asked: Question, cost: clvq.Cost) -> clvq.Confidence | None:
    if asked.probability is not None:
        return clvq.Probability(asked.probability)
    return None if asked.noise is None else as_measured(clvq.Noise(asked.noise, asked.norm), cost)


def as_measured(noise: clvq.Noise, cost: clvq.Cost) -> clvq.Noise:
    """Measure noise as the cost measures changes, where that is by typical deviations."""
    if not isinstance(cost, clvq.Manhattan) or cost.unit != DEVIATIONS:
        return noise
    return clvq.Noise(noise.radius, noise.norm, cost.weights, unit=DEVIATIONS)


def with_stated_ranges(features: clvq.Features, bounds: Sequence[clvq.Bounds]) -> clvq.Features:
    """Let an end that the user states take the place of the one that was seen."""
    for stated in bounds:
        if stated.feature not in features.names:
            continue  # the explainer says so
        seen = features[stated.feature].seen
        if seen is not None:
            lower = seen[0] if stated.lower == -inf else -inf
            upper = seen[1] if stated.upper == inf else inf
            features = features.refined(seen={str(stated.feature): (lower, upper)})
    return features


def target_for(model: Model, target: Any) -> Any:
    """Find the labels that JSON values stand for: None, one label, or a set of them."""
    if target is None:
        return None
    wished = target if isinstance(target, list) else [target]
    labels: Mapping[Any, Any] = {_key(plain_label(x)): x for x in model.classes.tolist()}
    found = []
    for k, label in enumerate(wished):
        if _key(label) not in labels:
            field = f"target[{k}]" if isinstance(target, list) else "target"
            known = ", ".join(str(plain_label(x)) for x in labels.values())
            raise Problem(
                422, "unknown label", f"no class is called {label!r}; expected one of: {known}.",
                field,
            )  # fmt: skip
        found.append(labels[_key(label)])
    return found[0] if not isinstance(target, list) else set(found)


def _key(label: Any) -> tuple[str, Any]:
    """Tell True from 1; a whole number is the same with a decimal point."""
    return ("truth" if isinstance(label, bool) else "value", label)

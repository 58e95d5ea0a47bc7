"""Check what the caller of an `Explainer` sets: cost, constraints, method, limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import finite_scalar, told
from counterlvq.problem.confidence import Confidence
from counterlvq.problem.constraints import Constraint
from counterlvq.problem.costs import Cost, Manhattan
from counterlvq.problem.data_ranges import AsSeen, constraints_of
from counterlvq.problem.expressions import without_overridden
from counterlvq.tables.features import Features
from counterlvq.types import Method

__all__ = [
    "at_least_zero",
    "checked_confidence",
    "checked_constraints",
    "checked_cost",
    "checked_method",
    "with_those_of",
]


def checked_cost(cost: Cost | None) -> Cost:
    """Return the cost, plain Manhattan distance by default."""
    if cost is None:
        return Manhattan()
    if not isinstance(cost, Cost):
        raise InvalidInputError(_no_cost(cost))
    return cost


def _no_cost(given: Any) -> str:
    step = "A cost of your own is a subclass of Cost"
    if isinstance(given, type) and issubclass(given, Cost):
        step = f"Write {given.__name__}(...)"
    return (
        f"cost is {given!r}; expected a cost such as Manhattan(), Euclidean(), "
        f"Chebyshev() or Mahalanobis(matrix). {step}."
    )


def checked_confidence(confidence: Confidence | None, margin: float | None) -> Confidence | None:
    """Return the confidence; it takes the place of a margin."""
    if confidence is None:
        return None
    if not isinstance(confidence, Confidence):
        raise InvalidInputError(
            f"confidence is {confidence!r}; expected one such as Probability(0.9) or Noise(0.1)."
        )
    if margin is not None:
        raise InvalidInputError(
            "margin and confidence are both given, and a confidence is a margin of its own; "
            "expected one of them."
        )
    return confidence


def checked_constraints(
    constraints: Sequence[Constraint | str],
) -> tuple[Constraint | str, ...]:
    """Return the constraints as a tuple; a single one is refused, for a string is a list too."""
    if isinstance(constraints, str | bytes | Constraint):
        raise InvalidInputError(
            f"constraints is a single {type(constraints).__name__}; expected a list. "
            f"Write constraints=[{told(constraints)}]."
        )
    try:
        return tuple(constraints)
    except TypeError:
        raise InvalidInputError(
            f"constraints is {constraints!r}; expected a list of constraints and strings."
        ) from None


def with_those_of(
    features: Features, given: tuple[Constraint | str, ...]
) -> tuple[Constraint | str, ...]:
    """Add what the columns ask for, unless it has been said, and drop defaults that have been.

    A range of a table that was handed over takes the place of the one that the column brings.
    """
    kept = without_overridden(given)
    told = {
        features.position(item.feature)
        for item in kept
        if isinstance(item, AsSeen) and item.is_about(features)
    }
    return kept + tuple(
        item
        for item in constraints_of(features)
        if item not in kept
        and not (isinstance(item, AsSeen) and features.position(item.feature) in told)
    )


def checked_method(method: str) -> Method:
    """Return the method by its name."""
    try:
        return Method(method)
    except ValueError:
        known = ", ".join(repr(str(item)) for item in Method)
        raise InvalidInputError(f"method is {method!r}; expected one of: {known}.") from None


def at_least_zero(name: str, value: float) -> float:
    """Return a finite number that is not negative."""
    number = finite_scalar(name, value)
    if number < 0:
        raise InvalidInputError(f"{name} is {number:g}; expected a number of at least 0.")
    return number

"""Constraints in words: what people read of them, by the labels of features and levels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

from counterlvq.problem.constraints import (
    Bounds,
    Constraint,
    Decrease,
    Freeze,
    Increase,
    MaxChange,
    MinChange,
    OneOf,
)
from counterlvq.problem.expressions import Expression
from counterlvq.problem.grammar import respoken
from counterlvq.problem.implications import If
from counterlvq.problem.seen import AsSeen
from counterlvq.tables.dates import date_of
from counterlvq.tables.features import Feature, FeatureKey, Features
from counterlvq.types import Kind

__all__ = ["rule_words"]

# Writes a number or a date of a feature.
Write = Callable[[Feature, Any], str]

_WAYS = {Freeze: "no change", Increase: "no decrease", Decrease: "no increase"}


def rule_words(constraint: Constraint | str, features: Features, write: Write) -> str:
    """Say what a constraint asks for; as it is written where there are no words for it.

    Parameters
    ----------
    constraint : Constraint or str
    features : Features
    write : callable
        Writes a value of a feature that is a number or a date.

    Examples
    --------
    >>> features = Features([Feature("inc", unit="EUR", label="net monthly income")])
    >>> def write(feature, value):
    ...     return f"{value:,}"
    >>> rule_words(Freeze("inc"), features, write)
    'no change of net monthly income'
    >>> rule_words(Bounds("inc", upper=3500), features, write)
    'net monthly income of at most 3,500 EUR'
    >>> rule_words("inc <= 1.2 * original(inc)", features, write)
    'net monthly income <= 1.2 * original(net monthly income)'
    """
    if isinstance(constraint, str | Expression):
        text = constraint if isinstance(constraint, str) else constraint.text
        return respoken(text, lambda name: _label(name, features))
    if isinstance(constraint, Freeze | Increase | Decrease):
        named = [_spoken(key, features) for key in constraint.features]
        return f"{_WAYS[type(constraint)]} of {_joined(named, 'and')}"
    if isinstance(constraint, If):
        when, then = (
            rule_words(part, features, write) for part in (constraint.when, constraint.then)
        )
        return f"if {when} then {then}"
    if isinstance(constraint, Bounds | AsSeen | MaxChange | MinChange | OneOf):
        return _about_one(constraint, features, write)
    return str(constraint)


def _about_one(
    constraint: Bounds | AsSeen | MaxChange | MinChange | OneOf, features: Features, write: Write
) -> str:
    if not features.sees(constraint.feature):
        return str(constraint)
    feature = features[constraint.feature]
    if isinstance(constraint, OneOf):
        levels = [_level(feature, level, write) for level in constraint.levels]
        return f"{feature.spoken} as {_joined(levels, 'or')}"
    if isinstance(constraint, MaxChange | MinChange):
        by = _with_unit(feature, f"{constraint.by:,}".removesuffix(".0"), "days")
        least = isinstance(constraint, MinChange)
        amount = f"at least {by}, or none" if least else f"at most {by}"
        return f"a change of {feature.spoken} by {amount}"
    if isinstance(constraint, AsSeen):
        return f"{_range(feature, constraint.lower, constraint.upper, write)} as seen in the data"
    return _range(feature, *constraint.ends, write)


def _range(feature: Feature, lower: float, upper: float, write: Write) -> str:
    low, high = (_value(feature, end, write) if abs(end) < inf else "" for end in (lower, upper))
    if not low and not high:
        return feature.spoken
    if low and high:
        words = f"from {low} to {_with_unit(feature, high)}"
        words = words if lower != upper else f"of {_with_unit(feature, low)} only"
    else:
        words = f"of at {'least' if low else 'most'} {_with_unit(feature, low or high)}"
    return f"{feature.spoken} {words}"


def _value(feature: Feature, value: Any, write: Write) -> str:
    is_days = feature.kind is Kind.DATE and isinstance(value, int | float)
    return write(feature, date_of(value) if is_days else value)


def _level(feature: Feature, level: Any, write: Write) -> str:
    return _value(feature, level, write) if feature.is_number else feature.words(level)


def _with_unit(feature: Feature, text: str, of_dates: str = "") -> str:
    unit = of_dates if feature.kind is Kind.DATE else feature.unit
    return f"{text} {unit}" if unit else text


def _spoken(key: FeatureKey, features: Features) -> str:
    return features[key].spoken if features.sees(key) else str(key)


def _label(name: str, features: Features) -> str:
    return features[name].label if name in features else ""


def _joined(parts: Sequence[str], last: str) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {last} {parts[-1]}"

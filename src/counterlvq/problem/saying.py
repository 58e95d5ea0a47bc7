"""Constraints in words: what people read of them, by the labels of features and levels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

from counterlvq.problem import grammar
from counterlvq.problem.constraints import (
    Bounds,
    Constraint,
    Decrease,
    Freeze,
    Increase,
    Linear,
    MaxChange,
    MinChange,
    OneOf,
)
from counterlvq.problem.counting import AtMost
from counterlvq.problem.expressions import Expression
from counterlvq.problem.implications import If
from counterlvq.problem.seen import AsSeen
from counterlvq.tables.dates import date_of
from counterlvq.tables.features import Feature, FeatureKey, Features
from counterlvq.types import Kind

__all__ = ["plain_words", "rule_words", "with_unit"]

# Writes a number or a date of a feature.
Write = Callable[[Feature, Any], str]

_SENSES = {"<=": "of at most", ">=": "of at least", "<": "below", ">": "above", "==": "of"}
_TURNED = {"<=": ">=", ">=": "<=", "<": ">", ">": "<"}
_WAYS = {Freeze: "no change", Increase: "no decrease", Decrease: "no increase"}


def plain_words(constraint: Constraint | str, features: Features, write: Write) -> str:
    """Say what a constraint asks for, to people who have not written it.

    A text stays as it was written unless a feature of it has a label: whoever has written no
    labels knows it best so.

    Examples
    --------
    >>> features = Features(["age", Feature("inc", label="net monthly income")])
    >>> plain_words(Freeze("age"), features, str), plain_words("age <= 3", features, str)
    ('no change of age', 'age <= 3')
    >>> plain_words("inc <= original(inc)", features, str)
    'net monthly income <= original(net monthly income)'
    """
    if not isinstance(constraint, str | Expression):
        return rule_words(constraint, features, write)
    named = [features[name] for name in _names(constraint, features)]
    if any(feature.label or feature.level_labels for feature in named):
        return rule_words(constraint, features, write)
    return constraint if isinstance(constraint, str) else constraint.text


def _names(constraint: Constraint | str, features: Features) -> list[FeatureKey]:
    """List the features that a constraint is about, of those that the model sees."""
    keys: Sequence[FeatureKey] = ()
    if isinstance(constraint, str | Expression):
        text = constraint if isinstance(constraint, str) else constraint.text
        keys = grammar.names_in(text)
    elif isinstance(constraint, If):
        parts = (constraint.when, constraint.then)
        return [name for part in parts for name in _names(part, features)]
    elif isinstance(constraint, Freeze | Increase | Decrease | AtMost):
        keys = constraint.features
    elif isinstance(constraint, Bounds | AsSeen | MaxChange | MinChange | OneOf):
        keys = (constraint.feature,)
    return [key for key in keys if not isinstance(key, str) or key in features]


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
    ...     return f"{value:,g}"
    >>> rule_words(Freeze("inc"), features, write)
    'no change of net monthly income'
    >>> rule_words(Bounds("inc", upper=3500), features, write)
    'net monthly income of at most 3,500 EUR'
    >>> rule_words("inc <= 1.2 * original(inc)", features, write)
    'net monthly income <= 1.2 * original(net monthly income)'
    >>> rule_words("if inc < 900 then inc >= 500", features, write)
    'with net monthly income below 900 EUR, net monthly income of at least 500 EUR'
    """
    if isinstance(constraint, str | Expression):
        return _text(
            constraint if isinstance(constraint, str) else constraint.text, features, write
        )
    if isinstance(constraint, Freeze | Increase | Decrease):
        named = [_spoken(key, features) for key in constraint.features]
        return f"{_WAYS[type(constraint)]} of {_joined(named, 'and')}"
    if isinstance(constraint, AtMost):
        among = [_spoken(key, features) for key in constraint.features]
        behind = f" among {_joined(among, 'and')}" if among else ""
        return f"at most {constraint.count} change{'s' * (constraint.count != 1)}{behind}"
    if isinstance(constraint, If):
        when = _condition(constraint.when, features, write)
        return f"with {when}, {rule_words(constraint.then, features, write)}"
    if isinstance(constraint, Bounds | AsSeen | MaxChange | MinChange | OneOf):
        return _about_one(constraint, features, write)
    return _about_many(constraint, features, write)


def _about_many(constraint: Constraint, features: Features, write: Write) -> str:
    if isinstance(constraint, AtMost):
        named = _joined([_spoken(key, features) for key in constraint.features], "and")
        changes = f"at most {constraint.count} change{'' if constraint.count == 1 else 's'}"
        return f"{changes} of {named}" if named else changes
    if isinstance(constraint, Linear):
        return _sum(constraint, features, write)
    return str(constraint)


def _sum(constraint: Linear, features: Features, write: Write) -> str:
    """Write a linear condition as a comparison of features."""
    given = constraint.coefficients
    pairs = given.items() if isinstance(given, Mapping) else enumerate(given.tolist())
    out = ""
    for key, factor in pairs:
        if factor:
            size = "" if abs(factor) == 1 else f"{_amount(abs(factor), write)} * "
            sign = ("-" if factor < 0 else "") if not out else (" - " if factor < 0 else " + ")
            out += f"{sign}{size}{_spoken(key, features)}"
    return f"{out or 0} {constraint.sense} {_amount(constraint.value, write)}"


def _amount(value: float, write: Write) -> str:
    """Write a number that is no value of a feature."""
    return write(Feature("amount"), value)


def _text(text: str, features: Features, write: Write) -> str:
    """Say what was written: in words if it is about single features, else by their labels."""
    parsed = grammar.parse(text)
    if isinstance(parsed, grammar.Least):
        return rule_words(MinChange(parsed.feature, parsed.by), features, write)
    parts = (parsed.when, parsed.then) if isinstance(parsed, grammar.Promise) else (parsed,)
    said = [_part(part, features, write) for part in parts]
    if not all(said):
        return grammar.respoken(text, lambda name: _label(name, features))
    return f"with {said[0]}, {said[1]}" if len(said) == 2 else said[0]


def _condition(when: Constraint | str, features: Features, write: Write) -> str:
    """Say what stands behind "if", where comparisons may be strict."""
    if not isinstance(when, str):
        return rule_words(when, features, write)
    words = _part(grammar.parse_test(when), features, write)
    return words or grammar.respoken(when, lambda name: _label(name, features))


def _part(parsed: grammar.Comparison | grammar.LevelTest, features: Features, write: Write) -> str:
    """Say a comparison of one feature with a value; empty for others."""
    if isinstance(parsed, grammar.LevelTest):
        return _test(features[parsed.feature], parsed, write)
    form, sense = parsed
    if len(form.new) != 1 or form.old:
        return ""
    ((name, factor),) = form.new.items()
    if not factor:
        return ""
    feature, end = features[name], -form.constant / factor
    if not (feature.is_number or feature.has_numbers):
        return ""
    sense = _TURNED.get(sense, sense) if factor < 0 else sense
    return f"{feature.spoken} {_SENSES[sense]} {with_unit(feature, _value(feature, end, write))}"


def _test(feature: Feature, parsed: grammar.LevelTest, write: Write) -> str:
    listed = parsed.levels
    if feature.kind is Kind.BOOLEAN and len(listed) == 1:
        level = feature.levels[feature.code(listed[0])]
        is_true = bool(level) != parsed.negated
        if feature.words(is_true) != str(is_true):
            return feature.words(is_true)
    levels = _joined([_level(feature, level, write) for level in listed], "or")
    return f"{feature.spoken} {'other than' if parsed.negated else 'as'} {levels}"


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
        by = with_unit(feature, _amount(constraint.by, write), "days")
        if isinstance(constraint, MinChange) and constraint.is_default:
            return f"changes of {feature.spoken} by less than {by} left out"
        least = isinstance(constraint, MinChange)
        amount = f"at least {by}, or none" if least else f"at most {by}"
        return f"a change of {feature.spoken} by {amount}"
    if isinstance(constraint, AsSeen):
        words = _range(feature, constraint.lower, constraint.upper, write)
        return f"{words} {constraint.where}"
    return _range(feature, *constraint.ends, write)


def _range(feature: Feature, lower: float, upper: float, write: Write) -> str:
    low, high = (_value(feature, end, write) if abs(end) < inf else "" for end in (lower, upper))
    if not low and not high:
        return feature.spoken
    if low and high:
        words = f"from {low} to {with_unit(feature, high)}"
        words = words if lower != upper else f"of {with_unit(feature, low)} only"
    else:
        words = f"of at {'least' if low else 'most'} {with_unit(feature, low or high)}"
    return f"{feature.spoken} {words}"


def _value(feature: Feature, value: Any, write: Write) -> str:
    is_days = feature.kind is Kind.DATE and isinstance(value, int | float)
    return write(feature, date_of(value) if is_days else value)


def _level(feature: Feature, level: Any, write: Write) -> str:
    if feature.is_number or (feature.has_numbers and feature.words(level) == str(level)):
        return _value(feature, level, write)
    return feature.words(level)


def with_unit(feature: Feature, text: str, of_dates: str = "") -> str:
    """Put the unit of a feature behind a number; of dates another, for numbers of days."""
    unit = of_dates if feature.kind is Kind.DATE else feature.unit
    return f"{text} {unit}" if unit else text


def _spoken(key: FeatureKey, features: Features) -> str:
    return features[key].spoken if features.sees(key) else str(key)


def _label(name: str, features: Features) -> str:
    return features[name].label if name in features else ""


def _joined(parts: Sequence[str], last: str) -> str:
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {last} {parts[-1]}"

"""Constraints in words: what people read of them, by the labels of features and levels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

from counterlvq.problem import grammar
from counterlvq.problem.at_most import AtMost
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
from counterlvq.problem.data_ranges import AsSeen
from counterlvq.problem.expressions import Expression
from counterlvq.problem.implications import If
from counterlvq.problem.plausibility import Plausible
from counterlvq.tables.dates import date_of
from counterlvq.tables.feature import Feature
from counterlvq.tables.features import FeatureKey, Features
from counterlvq.types import Kind

__all__ = ["plain_words", "rule_words", "with_unit"]

# Writes a number or a date of a feature.
Write = Callable[[Feature, Any], str]
# The level that a feature has in the input.
Now = Callable[[Feature], Any]

_SENSES = {"<=": "of at most", ">=": "of at least", "==": "of"}
_DATE_SENSES = {"<=": "no later than", ">=": "no earlier than", "==": "on"}
# Behind "with" and behind "must", which suit one thing and several.
_CASES = {
    "<=": "at {} or less",
    ">=": "at {} or more",
    "<": "below {}",
    ">": "above {}",
    "==": "at {}",
}
_DATE_CASES = {
    "<=": "until {}",
    ">=": "from {} on",
    "<": "before {}",
    ">": "after {}",
    "==": "on {}",
}
_DEMANDS = {"<=": "at most ", ">=": "at least ", "==": ""}
_TURNED = {"<=": ">=", ">=": "<=", "<": ">", ">": "<"}
_WAYS: dict[type[Constraint], str] = {
    Freeze: "no change",
    Increase: "no decrease",
    Decrease: "no increase",
}
_DATE_WAYS: dict[type[Constraint], str] = {Increase: "not earlier", Decrease: "not later"}
_CHANGED = {
    "<=": "no increase",
    ">=": "no decrease",
    "==": "no change",
    "<": "a decrease",
    ">": "an increase",
}


def plain_words(
    constraint: Constraint | str, features: Features, write: Write, now: Now | None = None
) -> str:
    """Say what a constraint asks for, to people who have not written it.

    A text stays as it was written unless a feature of it has a label: whoever has written no
    labels knows it best so.

    Examples
    --------
    >>> features = Features(["age", Feature("inc", label="net monthly income")])
    >>> plain_words(Freeze("age"), features, str), plain_words("age <= 3", features, str)
    ('no change of age', 'age <= 3')
    >>> plain_words("inc <= original(inc)", features, str)
    'no increase of net monthly income'
    """
    if not isinstance(constraint, str | Expression):
        return rule_words(constraint, features, write, now)
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


def rule_words(
    constraint: Constraint | str, features: Features, write: Write, now: Now | None = None
) -> str:
    """Say what a constraint asks for; as it is written where there are no words for it.

    Parameters
    ----------
    constraint : Constraint or str
    features : Features
    write : callable
        Writes a value of a feature that is a number or a date.
    now : callable, optional
        Says which level a feature has in the input, where there is one.

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
    'net monthly income of at most 1.2 times as much as now'
    >>> rule_words("if inc < 900 then inc >= 500", features, write)
    'with net monthly income below 900 EUR, net monthly income must be at least 500 EUR'
    """
    if isinstance(constraint, str | Expression):
        return _text(
            constraint if isinstance(constraint, str) else constraint.text, features, write
        )
    if isinstance(constraint, Freeze | Increase | Decrease):
        return _way(constraint, features, now)
    if isinstance(constraint, AtMost):
        among = [_spoken(key, features) for key in constraint.features]
        behind = f" among {_joined(among, 'and')}" if among else ""
        return f"at most {constraint.count} change{'s' * (constraint.count != 1)}{behind}"
    if isinstance(constraint, If):
        return _promise(constraint, features, write)
    if isinstance(constraint, Bounds | AsSeen | MaxChange | MinChange | OneOf):
        return _about_one(constraint, features, write)
    return (
        _sum(constraint, features, write)
        if isinstance(constraint, Linear)
        else _whole(constraint, features)
    )


def _whole(constraint: Constraint, features: Features) -> str:
    """Say what is asked of a whole row; as it is written where there are no words for it."""
    if not isinstance(constraint, Plausible):
        return str(constraint)
    said = f"a row like {100 * constraint.share:g} % of those of its label"
    numbers = sum(feature.is_number for feature in features)
    if len(constraint.features) >= numbers:
        return said
    return f"{said} in {_joined([_spoken(key, features) for key in constraint.features], 'and')}"


def _way(constraint: Freeze | Increase | Decrease, features: Features, now: Now | None) -> str:
    """Say which way features may change: numbers together, and what has words of its own."""
    named, apart = [], []
    for key in constraint.features:
        feature = features[key] if features.sees(key) else None
        is_date = feature is not None and feature.kind is Kind.DATE
        if feature is not None and is_date and type(constraint) in _DATE_WAYS:
            apart.append(f"{feature.spoken} {_DATE_WAYS[type(constraint)]}")
        elif feature is not None and feature.has_phrases:
            # Of a boolean, what is true comes first.
            either = " or ".join(map(feature.words, sorted(feature.levels, key=_is_false)))
            apart.append(f"still {feature.words(now(feature))}" if now else f"{either}, as it is")
        else:
            named.append(_spoken(key, features))
    said = [f"{_WAYS[type(constraint)]} of {_joined(named, 'and')}"] if named else []
    return ", ".join(said + apart)


def _is_false(level: Any) -> bool:
    return level is False


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
    if isinstance(parsed, grammar.Promise):
        when, then = _case(parsed.when, features, write), _demand(parsed.then, features, write)
        said = f"{when}, {then}" if when and then else ""
    else:
        said = _part(parsed, features, write)
    return said or grammar.respoken(text, lambda name: _label(name, features))


def _promise(constraint: If, features: Features, write: Write) -> str:
    """Say what has to hold where something else does."""
    when, then = constraint.when, constraint.then
    tested, asked = _stated(when, features, grammar.parse_test), _stated(then, features)
    case = "" if tested is None else _case(tested, features, write)
    demand = "" if asked is None else _demand(asked, features, write)
    case = case or f"with {rule_words(when, features, write)}"
    return f"{case}, {demand or rule_words(then, features, write)}"


def _stated(
    constraint: Constraint | str, features: Features, parse: Callable[[str], Any] = grammar.parse
) -> grammar.Comparison | grammar.LevelTest | None:
    """State a constraint on one feature as if it was written; None for others."""
    if isinstance(constraint, str | Expression):
        parsed = parse(constraint if isinstance(constraint, str) else constraint.text)
        return None if isinstance(parsed, grammar.Promise | grammar.Least) else parsed
    if isinstance(constraint, OneOf):
        return grammar.LevelTest(features[constraint.feature].name, constraint.levels, False)
    if isinstance(constraint, Bounds) and sum(abs(end) < inf for end in constraint.ends) == 1:
        sense, end = next(
            pair for pair in zip((">=", "<="), constraint.ends, strict=True) if abs(pair[1]) < inf
        )
        name = features[constraint.feature].name
        return grammar.Comparison(grammar.LinearForm(new={name: 1.0}, constant=-end), sense)
    return None


class _Compared(NamedTuple):
    """One feature beside a value: ``y sense ratio * x + value``."""

    feature: Feature
    sense: str
    ratio: float
    value: float


def _compared(parsed: grammar.Comparison, features: Features) -> _Compared | None:
    """Read a comparison of one feature with a value, or with its own; None for others."""
    form, sense = parsed
    if len(form.new) != 1 or not set(form.old) <= set(form.new):
        return None
    ((name, factor),) = form.new.items()
    feature = features[name]
    if not factor or not (feature.is_number or feature.has_numbers):
        return None
    ratio, value = (-part / factor + 0.0 for part in (form.old.get(name, 0.0), form.constant))
    return _Compared(feature, _TURNED.get(sense, sense) if factor < 0 else sense, ratio, value)


def _part(parsed: grammar.Comparison | grammar.LevelTest, features: Features, write: Write) -> str:
    """Say a comparison of one feature by a noun; empty where there are no words for it."""
    if isinstance(parsed, grammar.LevelTest):
        return _test(features[parsed.feature], parsed, write)
    found = _compared(parsed, features)
    return "" if found is None or found.sense not in _SENSES else _noun(found, write)


def _noun(found: _Compared, write: Write) -> str:
    feature, sense, ratio, value = found
    if not ratio:
        senses = _DATE_SENSES if feature.kind is Kind.DATE else _SENSES
        return f"{feature.spoken} {senses[sense]} {_with_value(feature, value, write)}"
    if ratio == 1:
        return _moved(feature, sense, value, write)
    if value or ratio < 0 or feature.kind is Kind.DATE:
        return ""
    return f"{feature.spoken} {_SENSES[sense]} {_amount(ratio, write)} times as much as now"


def _moved(feature: Feature, sense: str, by: float, write: Write) -> str:
    """Say by how much a feature has to change, or may; which way where it is not by how much."""
    is_date = feature.kind is Kind.DATE
    if not by and is_date and sense != "==":
        return f"{feature.spoken} not {'later' if sense == '<=' else 'earlier'}"
    if not by:
        return f"{_CHANGED[sense]} of {feature.spoken}"
    sense = sense if by > 0 else _TURNED.get(sense, sense)
    amount = _DEMANDS[sense] + with_unit(feature, _amount(abs(by), write), "days")
    if is_date:
        return f"{feature.spoken} {amount} {'later' if by > 0 else 'earlier'}"
    return f"{'an increase' if by > 0 else 'a decrease'} of {feature.spoken} by {amount}"


def _case(parsed: grammar.Comparison | grammar.LevelTest, features: Features, write: Write) -> str:
    """Say when something is asked for; empty where there are no words for it."""
    if isinstance(parsed, grammar.LevelTest):
        feature = features[parsed.feature]
        state = _state(feature, parsed)
        is_open = state is None
        return f"with {_test(feature, parsed, write)}" if is_open else f"if {_is(feature, state)}"
    found = _compared(parsed, features)
    if found is not None and not found.ratio:
        cases = _DATE_CASES if found.feature.kind is Kind.DATE else _CASES
        case = cases[found.sense].format(_with_value(found.feature, found.value, write))
        return f"with {found.feature.spoken} {case}"
    if found is not None and found.ratio == 1 and not found.value:
        return f"with {_CHANGED[found.sense]} of {found.feature.spoken}"
    return ""


def _demand(
    parsed: grammar.Comparison | grammar.LevelTest, features: Features, write: Write
) -> str:
    """Say what has to hold in a sentence; empty where there are no words for it."""
    if isinstance(parsed, grammar.LevelTest):
        feature = features[parsed.feature]
        state = _state(feature, parsed)
        if state is not None:
            return _is(feature, state, "must be")
        must = "must not be" if parsed.negated else "must be"
        return f"{feature.spoken} {must} {_levels(feature, parsed.levels, write)}"
    found = _compared(parsed, features)
    if found is not None and not found.ratio:
        value = _with_value(found.feature, found.value, write)
        is_date = found.feature.kind is Kind.DATE
        most = f"{_DATE_SENSES[found.sense]} " if is_date else _DEMANDS[found.sense]
        return f"{found.feature.spoken} must be {most}{value}"
    return _part(parsed, features, write)


def _state(feature: Feature, parsed: grammar.LevelTest) -> Any:
    """Which state of a boolean, or level with a phrase, a test asks for; None where not for one."""
    if not (feature.kind is Kind.BOOLEAN or feature.has_phrases) or len(parsed.levels) != 1:
        return None
    at = feature.meant(parsed.levels[0])
    if not parsed.negated:
        return feature.levels[at]
    return feature.levels[1 - at] if len(feature.levels) == 2 else None


def _is(feature: Feature, state: Any, verb: str = "is") -> str:
    """Say which state a boolean, or a feature with phrases, has or must have."""
    words = feature.words(state)
    if words != str(state) or not isinstance(state, bool):
        return f"it {verb} {words}"
    return f"{feature.spoken} {verb} {'yes' if state else 'no'}"


def _test(feature: Feature, parsed: grammar.LevelTest, write: Write) -> str:
    state = _state(feature, parsed)
    if state is not None:
        words = feature.words(state)
        is_said = words != str(state) or not isinstance(state, bool)
        return words if is_said else f"{feature.spoken} as {'yes' if state else 'no'}"
    levels = _levels(feature, parsed.levels, write)
    return f"{feature.spoken} {'other than' if parsed.negated else 'as'} {levels}"


def _about_one(
    constraint: Bounds | AsSeen | MaxChange | MinChange | OneOf, features: Features, write: Write
) -> str:
    if not features.sees(constraint.feature):
        return str(constraint)
    feature = features[constraint.feature]
    if isinstance(constraint, OneOf):
        return _test(
            feature, grammar.LevelTest(feature.name, constraint.levels, negated=False), write
        )
    if isinstance(constraint, MaxChange | MinChange):
        by = with_unit(feature, _amount(constraint.by, write), "days")
        if isinstance(constraint, MinChange) and constraint.is_default:
            return f"changes of {feature.spoken} by less than {by} left out"
        least = isinstance(constraint, MinChange)
        amount = f"at least {by}, or none" if least else f"at most {by}"
        return f"a change of {feature.spoken} by {amount}"
    if isinstance(constraint, AsSeen):
        words = _range(feature, *constraint.said_ends, write)
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
        senses = _DATE_SENSES if feature.kind is Kind.DATE else _SENSES
        words = f"{senses['>=' if low else '<=']} {with_unit(feature, low or high)}"
    return f"{feature.spoken} {words}"


def _value(feature: Feature, value: Any, write: Write) -> str:
    days = feature.number(value) if feature.kind is Kind.DATE else None
    return write(feature, value if days is None else date_of(days))


def _with_value(feature: Feature, value: float, write: Write) -> str:
    return with_unit(feature, _value(feature, value, write))


def _levels(feature: Feature, levels: Sequence[Any], write: Write) -> str:
    """List levels or values, with the unit behind numbers that have no words."""
    listed = _joined([_level(feature, level, write) for level in levels], "or")
    return listed if feature.level_labels else with_unit(feature, listed)


def _level(feature: Feature, level: Any, write: Write) -> str:
    at = -1 if feature.is_number else feature.meant(level)
    level = level if at < 0 else feature.levels[at]
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

"""Constraints that are written as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from operator import ge, gt, le, lt
from typing import Any, final

import numpy as np

from counterlvq.errors import ConstraintSyntaxError, InvalidInputError, UnknownFeatureError
from counterlvq.numeric.arrays import Floats, told
from counterlvq.problem import grammar
from counterlvq.problem.confidence import Confidence
from counterlvq.problem.constraints import (
    Condition,
    Constraint,
    MinChange,
    comparison,
    level_rule,
)
from counterlvq.problem.number_conditions import number_test, value_rule
from counterlvq.programs.conditions import Implication, LevelRule, LinearConditions
from counterlvq.programs.intervals import LeastChange, ValueRule
from counterlvq.safe_text import shown_text
from counterlvq.tables.features import FeatureKey, Features
from counterlvq.types import Kind

__all__ = ["Expression", "as_constraint", "without_overridden"]

# A comma within a number; between numbers of a list there are some, too, which can be read.
_COMMA = re.compile(r"\d,\d", re.ASCII)
_SENSES: Mapping[str, Callable[[Fraction, int], bool]] = {"<=": le, ">=": ge, "<": lt, ">": gt}


@final
@dataclass(frozen=True)
class Expression(Constraint):
    """A condition written as text.

    Parameters
    ----------
    text : str
        Linear, such as ``"second_floor <= first_floor"`` or ``"income <= 1.2 *
        original(income)"``, where ``original(f)`` is the factual value; about levels, such as
        ``"housing != 'rent'"`` or ``"job in ['clerk', 'nurse']"``; about values of a number,
        ``"months in [12, 24]"``; one where the other holds, ``"if student == 'yes' then age <=
        30"`` or ``"if amount > 5000 then guarantor == 'yes'"``; or a least change, ``"if income
        changes then by at least 500"``. Names with spaces go in `backticks`.

    Examples
    --------
    >>> Expression("second_floor <= first_floor")
    'second_floor <= first_floor'
    """

    text: str

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise InvalidInputError(
                f"Expression got {told(self.text)} of type {type(self.text).__name__}; expected a "
                f"string such as 'a <= b'."
            )

    def __repr__(self) -> str:
        return repr(self.text)

    def conditions(self, features: Features) -> tuple[Condition, ...]:
        """Read the text and look its features up."""
        try:
            return self._stated(features)
        except (ConstraintSyntaxError, UnknownFeatureError) as error:
            raise type(error)(f"{error}{self._hint(error, features)}") from None

    def _hint(self, error: Exception, features: Features) -> str:
        """Say what to write where a name was read as a sum, or a comma as an end."""
        if "backticks" in str(error):
            return ""
        bare = grammar.without_quoted(self.text)
        names = [name for name in features.names if not grammar.is_name(name) and name in bare]
        if names:
            longest = max(names, key=len)
            return f" Put a name with signs or spaces between backticks: `{shown_text(longest)}`."
        if _COMMA.search(bare) is None:
            return ""
        return " Write numbers such as 1234.5: a point before decimals, nothing between thousands."

    def _stated(self, features: Features) -> tuple[Condition, ...]:
        parsed = grammar.parse(self.text)
        if isinstance(parsed, grammar.Least):
            self._position(parsed.feature, features)
            return (LeastChange(features.number(parsed.feature, self._asked), parsed.by),)
        if not isinstance(parsed, grammar.Promise):
            return (self._condition(parsed, features),)
        then = self._condition(parsed.then, features)
        if isinstance(then, ValueRule):
            raise ConstraintSyntaxError(
                f"{self._asked}: what stands behind 'then' lists values of a number; expected a "
                f"comparison with <=, >= or ==, or a test of levels."
            )
        return (Implication(self._when(parsed.when, features), then),)

    def test(self, features: Features) -> LevelRule | ValueRule:
        """Read the text as a condition on one feature, such as "amount > 5000"."""
        try:
            return self._when(grammar.parse_test(self.text), features)
        except (ConstraintSyntaxError, UnknownFeatureError) as error:
            raise type(error)(f"{error}{self._hint(error, features)}") from None

    @property
    def _asked(self) -> str:
        return f"constraint {grammar.quoted(self.text)}"

    def _when(
        self, parsed: grammar.Comparison | grammar.LevelTest, features: Features
    ) -> LevelRule | ValueRule:
        """State what stands behind 'if': levels, or values of one number."""
        if isinstance(parsed, grammar.LevelTest):
            return self._test(parsed.feature, parsed.levels, parsed.negated, features)
        form, sense = parsed
        if len([name for name, factor in form.new.items() if factor]) != 1:
            raise ConstraintSyntaxError(
                f"{self._asked}: what stands behind 'if' compares several features; expected one "
                f'feature of the counterfactual, such as "if amount >= 5000 then income >= 2000".'
            )
        levels = self._as_levels(form, sense, features)
        if levels is not None:
            return levels
        ((name, factor),) = ((name, factor) for name, factor in form.new.items() if factor)
        self._refuse_dates(form, features)
        at = features.number(name, self._asked)
        return number_test(at, factor, self._row(form.old, features), form.constant, sense)

    def _condition(
        self, parsed: grammar.Comparison | grammar.LevelTest, features: Features
    ) -> LinearConditions | LevelRule | ValueRule:
        if isinstance(parsed, grammar.LevelTest):
            return self._stated_test(parsed, features)
        form, sense = parsed
        levels = self._as_levels(form, sense, features)
        if levels is not None:
            return levels
        new = self._row(form.new, features)
        old = self._row(form.old, features)
        self._refuse_dates(form, features)
        if not new.any():
            raise ConstraintSyntaxError(
                f"constraint {grammar.quoted(self.text)} names no feature of the "
                f"counterfactual; expected at least one feature outside original(...)."
            )
        return comparison(new, old, -form.constant, sense)

    def _as_levels(
        self, form: grammar.LinearForm, sense: str, features: Features
    ) -> LevelRule | None:
        """Take ``f == 2`` or ``f >= 2`` as a test where f has levels; None where it has none."""
        if len(form.new) != 1 or form.old:
            return None
        ((name, factor),) = form.new.items()
        if not factor or features.columns[self._position(name, features)].is_number:
            return None
        at = self._position(name, features)
        feature = features.columns[at]
        if sense == "==" or not feature.has_numbers:
            return self._equal_level(name, form, features) if sense == "==" else None
        # Exactly: a level next to the threshold is on the side where it lies.
        slope, start = Fraction(factor), Fraction(form.constant)
        kept = [
            level for level in feature.levels if _SENSES[sense](slope * Fraction(level) + start, 0)
        ]
        return level_rule(feature, at, kept, negated=False, asked=self._asked)

    def _equal_level(self, name: str, form: grammar.LinearForm, features: Features) -> LevelRule:
        found = self._test(name, (-form.constant / form.new[name],), False, features)
        assert isinstance(found, LevelRule)  # a feature that is no number has levels
        return found

    def _stated_test(
        self, parsed: grammar.LevelTest, features: Features
    ) -> LinearConditions | LevelRule | ValueRule:
        """State a test; a number that equals one value is a comparison."""
        found = self._test(parsed.feature, parsed.levels, parsed.negated, features)
        if not isinstance(found, ValueRule) or parsed.negated or len(found.parts) > 1:
            return found
        new = np.eye(len(features))[found.column]
        return comparison(new, np.zeros(len(features)), found.parts[0].lower, "==")

    def _test(
        self, name: str, levels: tuple[Any, ...], negated: bool, features: Features
    ) -> LevelRule | ValueRule:
        at = self._position(name, features)
        feature = features.columns[at]
        rule = value_rule if feature.is_number else level_rule
        return rule(feature, at, levels, negated=negated, asked=self._asked)

    def _refuse_dates(self, form: grammar.LinearForm, features: Features) -> None:
        """Refuse to compare a number of something else with a number of days."""
        if not form.has_date:
            return
        for name in (*form.new, *form.old):
            feature = features.columns[self._position(name, features)]
            if feature.kind is not Kind.DATE:
                raise InvalidInputError(
                    f"{self._asked}: {feature.name!r} is {feature.kind}, and is compared with a "
                    f"date; expected a feature of the kind 'date'. To subtract numbers, put spaces "
                    f"around the signs."
                )

    def _row(self, named: Mapping[str, float], features: Features) -> Floats:
        row = np.zeros(len(features))
        for name, coefficient in named.items():
            self._position(name, features)
            row[features.number(name, self._asked)] += coefficient
        return row

    def _position(self, name: str, features: Features) -> int:
        try:
            return features.position(name)
        except UnknownFeatureError as error:
            raise UnknownFeatureError(f"constraint {grammar.quoted(self.text)}: {error}") from None


def as_constraint(item: Constraint | str) -> Constraint:
    """Take a constraint as it is and a string as an `Expression`."""
    if isinstance(item, str):
        return Expression(item)
    if isinstance(item, Constraint):
        return item
    raise InvalidInputError(_no_constraint(item))


def _no_constraint(given: Any) -> str:
    if isinstance(given, type) and issubclass(given, Constraint):
        name = given.__name__
        made = f"{name}.fit(X, model=model)" if hasattr(given, "fit") else f"{name}(...)"
        return f"constraint {name} is a class; expected an object of it. Write {made}."
    if isinstance(given, list | tuple):
        return (
            f"constraint {told(given)} is a {type(given).__name__} within the list; expected its "
            f"members. Put a star before it, as in [*within_data(X), 'a <= b']."
        )
    if isinstance(given, Confidence):
        return (
            f"constraint {told(given)} is a confidence, which is no constraint; expected it as "
            f"Explainer(model, confidence={told(given)})."
        )
    return (
        f"constraint {told(given)} has type {type(given).__name__}; expected a constraint such as "
        f"Freeze('age') or a string such as 'a <= b'."
    )


def without_overridden(given: tuple[Constraint | str, ...]) -> tuple[Constraint | str, ...]:
    """Drop the default for the least change of a feature where the user says another.

    Examples
    --------
    >>> from counterlvq.problem.constraints import MinChange
    >>> usual = MinChange("a", 5, is_default=True), MinChange("b", 7, is_default=True)
    >>> without_overridden((*usual, "if a changes then by at least 1"))
    (MinChange('b', by=7), 'if a changes then by at least 1')
    """
    if not any(isinstance(item, MinChange) and item.is_default for item in given):
        return given
    said = {_least_of(item) for item in given}
    return tuple(
        item
        for item in given
        if not (isinstance(item, MinChange) and item.is_default and item.feature in said)
    )


def _least_of(item: Constraint | str) -> FeatureKey | None:
    """Return the feature that a constraint states a least change of."""
    if isinstance(item, MinChange):
        return None if item.is_default else item.feature
    text = item.text if isinstance(item, Expression) else item
    try:
        parsed = grammar.parse(text) if isinstance(text, str) else None
    except ConstraintSyntaxError:
        return None  # which is refused where its features are known
    return parsed.feature if isinstance(parsed, grammar.Least) else None

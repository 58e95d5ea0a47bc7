"""Constraints that are written as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from counterlvq.errors import ConstraintSyntaxError, InvalidInputError, UnknownFeatureError
from counterlvq.numeric.arrays import Floats, told
from counterlvq.problem import grammar
from counterlvq.problem.constraints import Condition, Constraint, comparison, level_rule
from counterlvq.programs.conditions import Implication, LevelRule, LinearConditions
from counterlvq.tables.features import Features

__all__ = ["Expression", "as_constraint"]


@final
@dataclass(frozen=True)
class Expression(Constraint):
    """A condition written as text.

    Parameters
    ----------
    text : str
        Linear, such as ``"second_floor <= first_floor"`` or ``"income <= 1.2 *
        original(income)"``, where ``original(f)`` is the factual value; about levels, such as
        ``"housing != 'rent'"`` or ``"job in ['clerk', 'nurse']"``; or one where the other
        holds, ``"if student == 'yes' then age <= 30"``. Names with spaces go in `backticks`.

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
        parsed = grammar.parse(self.text)
        if not isinstance(parsed, grammar.Promise):
            return (self._condition(parsed, features),)
        when = self._condition(parsed.when, features)
        if not isinstance(when, LevelRule):
            raise ConstraintSyntaxError(
                f"constraint {grammar.quoted(self.text)}: what stands behind 'if' is about a "
                f"number; expected a test of levels, such as "
                f"\"if student == 'yes' then age <= 30\"."
            )
        return (Implication(when, self._condition(parsed.then, features)),)

    def _condition(
        self, parsed: grammar.Comparison | grammar.LevelTest, features: Features
    ) -> LinearConditions | LevelRule:
        if isinstance(parsed, grammar.LevelTest):
            return self._test(parsed.feature, parsed.levels, parsed.negated, features)
        form, sense = parsed
        if sense == "==" and len(form.new) == 1 and not form.old:
            ((name, factor),) = form.new.items()
            if factor and not features.columns[self._position(name, features)].is_number:
                return self._test(name, (-form.constant / factor,), False, features)
        new = self._row(form.new, features)
        old = self._row(form.old, features)
        if not new.any():
            raise ConstraintSyntaxError(
                f"constraint {grammar.quoted(self.text)} names no feature of the "
                f"counterfactual; expected at least one feature outside original(...)."
            )
        return comparison(new, old, -form.constant, sense)

    def _test(
        self, name: str, levels: tuple[Any, ...], negated: bool, features: Features
    ) -> LevelRule:
        at = self._position(name, features)
        asked = f"constraint {grammar.quoted(self.text)}"
        return level_rule(features.columns[at], at, levels, negated=negated, asked=asked)

    def _row(self, named: Mapping[str, float], features: Features) -> Floats:
        row = np.zeros(len(features))
        for name, coefficient in named.items():
            self._position(name, features)
            row[features.number(name, f"constraint {grammar.quoted(self.text)}")] += coefficient
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
    raise InvalidInputError(
        f"constraint {told(item)} has type {type(item).__name__}; expected a constraint such as "
        f"Freeze('age') or a string such as 'a <= b'."
    )

"""Constraints about levels, and those that are written as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from counterlvq import expressions
from counterlvq.constraints import Condition, Constraint, comparison, shown_call
from counterlvq.errors import ConstraintSyntaxError, InvalidInputError, UnknownFeatureError
from counterlvq.numeric.arrays import Floats, plain, told
from counterlvq.programs.conditions import Implication, LevelRule, Rows
from counterlvq.tables.features import Feature, FeatureKey, Features

__all__ = ["Expression", "OneOf", "as_constraint"]


@final
@dataclass(frozen=True, init=False, repr=False)
class OneOf(Constraint):
    """Keep a feature of levels to some of them.

    Parameters
    ----------
    feature : str or int
        Name or position.
    levels : sequence
        The levels that a counterfactual may have.

    Examples
    --------
    >>> OneOf("job", ["clerk", "nurse"])
    OneOf('job', ['clerk', 'nurse'])
    """

    feature: FeatureKey
    levels: tuple[Any, ...]

    def __init__(self, feature: FeatureKey, levels: Iterable[Any]) -> None:
        given: Any = levels
        listed = [*given] if np.iterable(given) and not isinstance(given, str) else []
        if not listed:
            raise InvalidInputError(
                f"OneOf of {feature!r} got {levels!r}; expected a list of at least one level."
            )
        object.__setattr__(self, "feature", feature)
        object.__setattr__(self, "levels", tuple(plain(level) for level in listed))

    def __repr__(self) -> str:
        return shown_call("OneOf", self.feature, list(self.levels))

    def conditions(self, features: Features) -> tuple[LevelRule, ...]:
        """Name the positions of the levels."""
        at = features.position(self.feature)
        return (
            _level_rule(features.columns[at], at, self.levels, negated=False, asked=repr(self)),
        )


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
        parsed = expressions.parse(self.text)
        if not isinstance(parsed, expressions.Promise):
            return (self._condition(parsed, features),)
        when = self._condition(parsed.when, features)
        if not isinstance(when, LevelRule):
            raise ConstraintSyntaxError(
                f"constraint {expressions.quoted(self.text)}: what stands behind 'if' is about a "
                f"number; expected a test of levels, such as "
                f"\"if student == 'yes' then age <= 30\"."
            )
        return (Implication(when, self._condition(parsed.then, features)),)

    def _condition(
        self, parsed: expressions.Comparison | expressions.LevelTest, features: Features
    ) -> Rows | LevelRule:
        if isinstance(parsed, expressions.LevelTest):
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
                f"constraint {expressions.quoted(self.text)} names no feature of the "
                f"counterfactual; expected at least one feature outside original(...)."
            )
        return comparison(new, old, -form.constant, sense)

    def _test(
        self, name: str, levels: tuple[Any, ...], negated: bool, features: Features
    ) -> LevelRule:
        at = self._position(name, features)
        asked = f"constraint {expressions.quoted(self.text)}"
        return _level_rule(features.columns[at], at, levels, negated=negated, asked=asked)

    def _row(self, named: Mapping[str, float], features: Features) -> Floats:
        row = np.zeros(len(features))
        for name, coefficient in named.items():
            self._position(name, features)
            row[features.number(name, f"constraint {expressions.quoted(self.text)}")] += coefficient
        return row

    def _position(self, name: str, features: Features) -> int:
        try:
            return features.position(name)
        except UnknownFeatureError as error:
            raise UnknownFeatureError(
                f"constraint {expressions.quoted(self.text)}: {error}"
            ) from None


def _level_rule(
    feature: Feature, at: int, levels: Sequence[Any], *, negated: bool, asked: str
) -> LevelRule:
    if feature.is_number:
        raise InvalidInputError(
            f"{asked}: feature {feature.name!r} is a number; expected one with levels. Compare "
            f"numbers with <=, >= or ==."
        )
    codes = set()
    for level in levels:
        code = feature.code(level)
        if code < 0:
            shown = ", ".join(map(repr, feature.levels[:8]))
            raise InvalidInputError(
                f"{asked}: {told(level)} is no level of {feature.name!r}; expected one of: {shown}."
            )
        codes.add(code)
    every = set(range(len(feature.levels)))
    return LevelRule(at, frozenset(every - codes if negated else codes))


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

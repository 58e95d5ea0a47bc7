"""Which rule somebody means: by the constraint itself, as it was written, or as texts say it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any

from counterlvq.errors import InvalidInputError
from counterlvq.presentation.wording import PLAIN, Wording
from counterlvq.problem.constraint_text import plain_words
from counterlvq.problem.constraints import Bounds, Constraint
from counterlvq.safe_text import shown_repr, visible
from counterlvq.tables.features import Features
from counterlvq.tables.values import closest

__all__ = ["called_by", "named_rule"]

# Rules that are listed where one is not known, and letters of each.
_LISTED, _LETTERS = 12, 200


def called_by(
    wording: Wording,
    constraints: Sequence[Constraint | str],
    features: Features,
    argument: str = "rules",
) -> Wording:
    """Find the rules that a wording has words for, among those of a question.

    `argument` is what the words came by.

    Raises
    ------
    InvalidInputError
        For one that the question does not have.
    """
    if not wording.rules:
        return wording
    found: dict[Any, str] = {}
    for key, words in wording.rules.items():
        rule = named_rule(key, constraints, features, wording)
        if rule is None:
            raise InvalidInputError(
                f"{argument} has words for {shown_repr(key)}, which is no rule of this question; "
                f"expected {_listed(key, constraints, features)}"
            )
        found[rule] = words
    return replace(wording, rules=found)


def named_rule(
    key: Any,
    constraints: Sequence[Constraint | str],
    features: Features,
    wording: Wording = PLAIN,
) -> Constraint | str | None:
    """Find a rule of a question: a constraint, or the range of a feature; None if there is none.

    Examples
    --------
    >>> features = Features(["age", "pay"])
    >>> named_rule("pay of at most 3,500", [Bounds("pay", upper=3500)], features)
    Bounds('pay', upper=3500)
    """
    known = _rules(constraints, features)
    exactly = next((rule for rule in known if key == rule), None)
    if exactly is not None or not isinstance(key, str):
        return exactly
    return next((rule for rule in known if key in _names(rule, features, wording)), None)


def _rules(
    constraints: Sequence[Constraint | str], features: Features
) -> tuple[Constraint | str, ...]:
    """List what an input may break: constraints, and the ranges that features declare."""
    limited = (f for f in features if f.is_number and (f.lower, f.upper) != (-inf, inf))
    return (*constraints, *(Bounds(feature.name, *feature.ends) for feature in limited))


def _names(rule: Constraint | str, features: Features, wording: Wording) -> list[str]:
    """List how a rule is written, and said: with the numbers of a wording, and of either state."""
    said = [
        plain_words(rule, features, how.value, now)
        for how in (PLAIN, wording)
        for now in (None, lambda _: False, lambda _: True)
    ]
    return [str(rule), *said]


def _listed(key: Any, constraints: Sequence[Constraint | str], features: Features) -> str:
    """List the rules that there are, for whoever has mistaken one."""
    names = [plain_words(rule, features, PLAIN.value) for rule in _rules(constraints, features)]
    if not names:
        return "none, because it has none."
    shown = "; ".join(visible(name, _LETTERS) for name in names[:_LISTED])
    more = f"; and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    close = closest(key, names) if isinstance(key, str) else None
    hint = f" Did you mean {visible(close, _LETTERS)!r}?" if close is not None else ""
    return f"some of: {shown}{more}.{hint}"

"""One answer as notebooks show it, with the words and parts of pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from counterlvq.markup.parts import Fact, badge, card, class_change, fact_list, value_tables
from counterlvq.markup.tags import Safe, tag
from counterlvq.presentation.bounds import shown_proof
from counterlvq.presentation.numbers import ShownRow, bound_text
from counterlvq.presentation.question import constraints_words, words_of
from counterlvq.presentation.rows import ShownAnswer, feature_values, signed_weights
from counterlvq.problem.constraints import Constraint
from counterlvq.safe_text import shown_repr
from counterlvq.tables.features import Features
from counterlvq.types import Status

__all__ = ["answer_card"]


class CardAnswer(ShownAnswer, Protocol):
    """What is asked of an answer to show it whole."""

    @property
    def status(self) -> Status:
        """How the question was answered."""

    @property
    def cost(self) -> float:
        """What the change costs."""

    @property
    def kept_words(self) -> str:
        """What the bound is about beyond labels and constraints."""

    @property
    def lower_bound(self) -> float:
        """What no counterfactual undercuts."""

    @property
    def shown(self) -> ShownRow:
        """The row that is shown."""

    @property
    def prediction(self) -> Any:
        """What the model says of the counterfactual."""

    @property
    def original_prediction(self) -> Any:
        """What the model says of the input."""

    @property
    def target(self) -> tuple[Any, ...]:
        """What was wished for."""

    @property
    def conflict(self) -> tuple[Constraint | str, ...]:
        """Constraints that clash."""

    @property
    def conflict_ranges(self) -> tuple[Constraint, ...]:
        """Allowed ranges of features that are part of it."""

    @property
    def broken(self) -> tuple[Constraint | str, ...]:
        """Constraints that the input breaks."""

    @property
    def constraints(self) -> tuple[Constraint | str, ...] | None:
        """Constraints of the question; None if they are not known."""

    @property
    def savings(self) -> Mapping[str, float]:
        """What taking each change back would save; empty without a model."""


def answer_card(cf: CardAnswer, sentence: str, proof: str, notes: Sequence[str] = ()) -> str:
    """Set one answer: the change of class, a sentence, figures, values, and the proof in words.

    `notes` are lines of their own, such as a warning.
    """
    if cf.status is Status.INVALID:
        return card(_top(badge(cf.status)), tag("p", sentence, class_="sentence"))
    after = shown_repr(cf.prediction) if cf.status.has_answer else _either(cf.target)
    change = tag("strong", *class_change(shown_repr(cf.original_prediction), after))
    values = None
    if cf.status.has_answer:
        weights = signed_weights(cf.shown_changes, cf.savings) if cf.savings else None
        known = weights or {change.feature: 0.0 for change in cf.shown_changes}
        values = value_tables(feature_values(cf, known), weighed=weights is not None)
    return card(
        _top(change, badge(cf.status)),
        tag("p", sentence, class_="sentence"),
        fact_list(_figures(cf), "figures"),
        values,
        *(tag("p", line.strip().capitalize(), ".") for line in notes),
        _listed("These leave no room together:", (*cf.conflict, *cf.conflict_ranges), cf.features),
        _listed("The input breaks, as it is:", cf.broken, cf.features),
        _kept(cf),
        tag("p", proof[:1].upper() + proof[1:] + ".", class_="note"),
    )


def _top(*parts: str) -> Safe:
    return tag("p", *parts, class_="top")


def _either(labels: Sequence[Any]) -> str:
    return " or ".join(map(shown_repr, labels))


def _figures(cf: CardAnswer) -> list[Fact]:
    if cf.status is Status.INFEASIBLE:
        return []
    below = f"no counterfactual{cf.kept_words} below"
    if not cf.status.has_answer:
        return [Fact(below, bound_text(cf.lower_bound))]
    printed = shown_proof(cf.shown.cost, cf.cost, cf.lower_bound)
    return [Fact("cost", printed.cost), Fact(below, printed.bound), Fact("gap", printed.gap)]


def _kept(cf: CardAnswer) -> Safe | None:
    """Say what every answer to the question keeps; clashes are listed by themselves."""
    if not cf.constraints or len(cf.conflict) == len(cf.constraints):
        return None
    return tag(
        "p", f"Constraints: {constraints_words(cf.constraints, cf.features)}.", class_="note"
    )


def _listed(words: str, constraints: Sequence[Constraint | str], features: Features) -> Safe | None:
    if not constraints:
        return None
    items = (tag("li", tag("code", words_of(item, features))) for item in constraints)
    return tag("div", tag("p", words), tag("ul", *items))

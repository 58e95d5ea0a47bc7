"""How an answer, or the lack of one, reads as a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats
from counterlvq.presentation.bounds import cost_words
from counterlvq.presentation.cards import CardAnswer
from counterlvq.presentation.changes import Change
from counterlvq.presentation.numbers import exact_text
from counterlvq.presentation.responses import Reply
from counterlvq.presentation.values import value_of
from counterlvq.presentation.wording import Spoken, Wording, listed
from counterlvq.problem.constraint_text import plain_words, with_unit
from counterlvq.problem.constraints import Bounds, Constraint, Decrease, Freeze, Increase
from counterlvq.problem.data_ranges import AsSeen
from counterlvq.problem.off_grid import steps_left_out
from counterlvq.safe_text import shown_text, visible
from counterlvq.tables.feature import Feature
from counterlvq.types import Status

__all__ = ["Sentences", "noun_of"]

# Of one constraint, where several are named in a sentence.
_SHOWN_LETTERS = 1000
# What is said in the same words of several features.
_Ways = Freeze | Increase | Decrease
# Ranges of a conflict that a sentence names; more of them nobody reads.
_MOST_RANGES = 5
# Added to a conflict of which not every member was shown to be needed.
_OPEN = " (a set that clashes; fewer of them may clash as well)"


class SpokenAnswer(CardAnswer, Protocol):
    """What is asked of an answer to say it."""

    @property
    def original_values(self) -> Floats:
        """The factual input as numbers, (d,)."""

    @property
    def changes(self) -> tuple[Change, ...]:
        """The features that change."""

    @property
    def has_target(self) -> bool:
        """Whether the model gives the input a wished-for label as it is."""

    @property
    def stays_missing(self) -> NDArray[np.bool_]:
        """Where the input has no value and the answer needs none either, (d,)."""

    @property
    def within_rules(self) -> SpokenAnswer | None:
        """The closest row that breaks no constraint, for an input that breaks some."""

    @property
    def conflict_is_irreducible(self) -> bool:
        """Whether each member of the conflict was shown to be needed."""

    @property
    def conflict_has_confidence(self) -> bool:
        """Whether the confidence is part of the conflict."""

    @property
    def conflict_ranges(self) -> tuple[Bounds, ...]:
        """The allowed ranges of features that leave no room together with the conflict."""

    @property
    def conflict_steps(self) -> tuple[str, ...]:
        """Features whose steps are part of the reason why there is no answer."""

    @property
    def margin(self) -> float:
        """The margin that was asked for."""

    @property
    def confidence(self) -> str:
        """The confidence that was asked for, in words."""

    @property
    def part(self) -> str:
        """What a prototype of the model is."""

    @property
    def reply(self) -> Reply | None:
        """The score or probability before and after."""

    @property
    def reason(self) -> str:
        """How the answer was found, or why there is none."""


def noun_of(part: str) -> str:
    """Name what the model says: the cluster or component, if that is what its parts are."""
    return part if part in ("cluster", "component") else "answer"


@final
@dataclass(frozen=True)
class Sentences:
    """What can be said of one answer, in one wording."""

    cf: SpokenAnswer
    wording: Wording

    def whole(self, ranges: Spoken | None) -> str:
        """Say what there is to say, by the template where it names changes for the outcome."""
        if self.cf.status.has_answer and not self.cf.changes:
            label = self.wording.called(self.cf.prediction)
            sure = f", with {self.cf.confidence}" if self.cf.confidence else ""
            said = f"{self.wording.opening} is {label} already{sure}; nothing needs to change."
            return f"{said}{self._missing_words()}"
        if self.cf.status is Status.INVALID:
            said = f"{self.wording.opening} could not be looked into"
            said = "No counterfactual was looked for" if self._is_unnamed() else said
            return f"{said}: {visible(self.cf.reason)}"
        before = self._demanded_first()
        behind = "" if ranges is None else f" {ranges.sentence(self.wording)}"
        if self.cf.status.has_answer and not self.cf.has_target:
            own = self.wording.template is not None and self.wording.has_place("broken")
            return ("" if own else before) + self._sentence() + behind
        if self.cf.status.has_answer:
            return f"{before}{self._demanded()}{self._missing_words()}{behind}"
        return before + (self._stays_not() if self.cf.has_target else self._none())

    def _none(self) -> str:
        """Say that there is no answer, or that none was found."""
        wished = " or ".join(map(self.wording.called, self.cf.target))
        sure = f" with {self.cf.confidence}" if self.cf.confidence else ""
        if self.cf.status is Status.UNKNOWN:
            said = f"No counterfactual for {wished}{sure} was found"
            return f"{said}; that there is none is not proved."
        sure = sure if self._conflict_said() else ""  # else it is said behind the colon
        none = f"There is no counterfactual for {wished}{sure}"
        if not self._is_unnamed():
            none = f"{self.wording.opening} would not have been {wished}{sure} by any change"
        return f"{none}: {self._clash()}."

    def _stays_not(self) -> str:
        """Say of an input that has the label already why it cannot keep it."""
        now = f"{self._named()} is {self.wording.called(self.cf.original_prediction)} already"
        if self.cf.status is Status.UNKNOWN:
            return f"{now}; no change was found by which it meets what is asked and stays so."
        return f"{now}, but cannot meet what is asked and stay so: {self._clash()}."

    def _named(self) -> str:
        """Name the subject, unless a sentence about what it breaks has done so."""
        is_repeated = self.cf.broken and not self._is_unnamed()
        return "It" if is_repeated else self.wording.opening

    def _is_unnamed(self) -> bool:
        """Whether nobody has said what the decision is about."""
        return self.wording.subject == f"The {noun_of(self.cf.part)}"

    def _demanded(self) -> str:
        """Say what the constraints demand of an input that has the label already."""
        changes = listed([change.text(self.wording) for change in self.cf.shown_changes])
        rules = "the margin" if self.cf.margin else "the steps of its columns"
        rules = f"the wish for {self.cf.confidence}" if self.cf.confidence else rules
        rules = "the constraints" if self.cf.broken else rules
        stays = f"stay {self.wording.called(self.cf.prediction)}"
        if self.cf.prediction != self.cf.original_prediction:
            stays = f"be {self.wording.called(self.cf.prediction)}"
        now = f"{self._named()} is {self.wording.called(self.cf.original_prediction)} already"
        return f"{now}; it would meet {rules} and {stays} if {changes}."

    def _demanded_first(self) -> str:
        """Say what the constraints demand of an input, before anything about its label."""
        if not self.cf.broken:
            return ""
        subject = "This row" if self._is_unnamed() else self.wording.opening
        said = f"{subject} breaks {self.broken_words()} as it is"
        needed = () if self.cf.within_rules is None else self.cf.within_rules.shown_changes
        # By the answer itself: where it has the label already, and where it takes no more for that.
        is_said = self.cf.status.has_answer and (self.cf.has_target or self._mends_alone)
        if self.cf.within_rules is not None and needed and not is_said:
            mended = listed([change.text(self.wording) for change in needed])
            is_least = self.cf.within_rules.status is Status.OPTIMAL
            said += f"; it would not if {mended}{'' if is_least else ', and less may do'}"
        return f"{said}. "

    @property
    def _mends_alone(self) -> bool:
        """Whether what the constraints demand is all that the decision needs."""
        within = self.cf.within_rules
        return within is not None and np.array_equal(within.shown.values, self.cf.shown.values)

    def broken_words(self) -> str:
        """Say which constraints the input breaks."""
        return listed([self._rule(item) for item in self.cf.broken])

    def _rule(self, constraint: Constraint | str) -> str:
        """Say a constraint in words: the user's own, or by the labels of its features."""
        words = self.wording.rule(constraint) or plain_words(
            constraint, self.cf.features, self.wording.value, self._level_now
        )
        return visible(f'"{words}"', _SHOWN_LETTERS)

    def _level_now(self, feature: Feature) -> Any:
        return value_of(self.cf.original_values[self.cf.features.position(feature.name)], feature)

    def _sentence(self) -> str:
        """Say what would have had to be different."""
        named, others = list(self.cf.shown_changes), []
        if (
            self.wording.most is not None
            and len(named) > self.wording.most
            and self.wording.has_place("others")
        ):
            ordered = self._by_weight(named)
            named, others = ordered[: self.wording.most], ordered[self.wording.most :]
        places = {
            "subject": shown_text(self.wording.subject),
            "outcome": self.wording.called(self.cf.prediction),
            "now": self.wording.called(self.cf.original_prediction),
            "changes": listed([change.text(self.wording) for change in named]),
            "list": listed([change.brief(self.wording) for change in named]),
            "others": "",
            "cost": self.wording.number(cost_words(self.cf.shown.cost, self.cf.cost)),
            "missing": self._missing_words().lstrip(),
            "broken": self._demanded_first().rstrip(),
            "response": self._response(),
        }
        if others:
            brief = "; ".join(change.brief(self.wording) for change in others)
            count = "another change" if len(others) == 1 else f"{len(others)} other changes"
            places["others"] = f"It also takes {count}: {brief}."
        if self.wording.template is not None:
            return self.wording.filled(places)
        places["subject"] = self._named()
        sure = f", with {self.cf.confidence}," if self.cf.confidence else ""
        said = f"{{subject}} would have been {{outcome}}{sure} if {{changes}}."
        if self.cf.broken and self._mends_alone:
            row = "It" if self._is_unnamed() else places["subject"]
            and_so = "the {noun} would" if self._is_unnamed() else "would"
            said = (
                f"{row} would not, and {and_so} have been {{outcome}}{sure or ','} if {{changes}}."
            )
        said = said.format_map({**places, "noun": noun_of(self.cf.part)})
        said = f"{said} {places['others']}" if others else said
        is_asked = self.wording.response
        if is_asked is None:
            has_threshold = self.cf.reply is not None and self.cf.reply.threshold is not None
            is_asked = has_threshold or bool(self.cf.confidence)
        response = f" {places['response']}" if is_asked and places["response"] else ""
        return f"{said}{response}{self._missing_words()}"

    def _response(self) -> str:
        """Say the number behind the decision; empty where the model has none."""
        if self.cf.reply is None:
            return ""
        return self.cf.reply.sentence(self.wording.called(self.cf.prediction), self.wording.number)

    def _missing_words(self) -> str:
        """Say which values the input lacks and nobody needs to know."""
        at = np.flatnonzero(self.cf.stays_missing)
        if not at.size:
            return ""
        names = [shown_text(self.cf.features.columns[j].spoken) for j in at]
        entries = "entry" if len(names) == 1 else "entries"
        return f" The {entries} for {listed(names)} may stay missing."

    def _by_weight(self, changes: Sequence[Change]) -> list[Change]:
        """Sort changes by what taking each one back would save; as they are without a model."""
        saved = self.cf.savings
        return sorted(changes, key=lambda change: -saved.get(change.feature, 0.0))

    def _clash(self) -> str:
        """Say what leaves no room for an answer."""
        words = self._conflict_words()
        fewer = "" if self.cf.conflict_is_irreducible else _OPEN
        if np.isfinite(self.cf.lower_bound):  # there is one, but for the margin
            under = f" under {' and '.join(words)}{fewer}" if words else ""
            return f"{visible(self.cf.reason)}{under}"
        if not words and self.cf.confidence:
            return f"the model never says so with {self.cf.confidence}, with or without constraints"
        off = self._steps_words("there would be some" if words else "it would")
        if not words:
            limited = any((f.lower, f.upper) != (-np.inf, np.inf) for f in self.cf.features)
            where = " within the ranges of the features" if limited else ""
            return f"the model never says so{where}, with or without constraints{off}"
        if self.cf.conflict_has_confidence:
            off = f"; without this confidence there would be some{off}"
        if len(words) == 1:
            return f"{words[0]} leaves no room for it{fewer}{off}"
        listed = f"{', '.join(words[:-1])} and {words[-1]}"
        return f"{listed} leave no room for it together{fewer}{off}"

    def _conflict_words(self) -> list[str]:
        """Say each member of a conflict; many ranges are counted, and listed in the answer."""
        said, ends = self._conflict_said(), self.cf.conflict_ranges
        ranges = [
            item
            for item in said
            if self.wording.rule(item) is None and (isinstance(item, AsSeen) or item in ends)
        ]
        if len(ranges) <= _MOST_RANGES:
            return [self._rule(item) for item in said]
        wheres = {item.where if isinstance(item, AsSeen) else "" for item in ranges}
        where = f" {wheres.pop()}" if len(wheres) == 1 else ""
        counted = f"the ranges of {len(ranges):,} features{where}".rstrip()
        return [*(self._rule(item) for item in said if item not in ranges), counted]

    def _conflict_said(self) -> Sequence[Constraint | str]:
        """Join what is said in the same words of several features, such as "no change of"."""
        out: list[Constraint | str] = []
        for item in (*self.cf.conflict, *self.cf.conflict_ranges):
            alike = [
                k
                for k, other in enumerate(out)
                if type(other) is type(item) and self.wording.rule(other) is None
            ]
            if isinstance(item, _Ways) and alike and self.wording.rule(item) is None:
                first = cast("_Ways", out[alike[0]])
                out[alike[0]] = type(item)(*first.features, *item.features)
            else:
                out.append(item)
        return out

    def _steps_words(self, then: str) -> str:
        """Name the steps that are part of a conflict, and say what would be without them."""
        alone = steps_left_out(self.cf.conflict, self.cf.features)
        said = "".join(
            f"; {feature.spoken} changes in steps of {self.wording.value(feature, feature.grid)}, "
            f"and none ends there"
            for feature in alone
        )
        rest = [self.cf.features[name] for name in self.cf.conflict_steps]
        if alone or not rest:
            return said
        steps = [
            f"{with_unit(feature, self.wording.number(exact_text(feature.grid or 0.0)), 'days')} "
            f"({shown_text(feature.spoken)})"
            for feature in rest
        ]
        return f"; without the steps of {listed(steps)} {then}"

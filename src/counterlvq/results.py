"""What the user gets back, and how it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.certificates.cellwise import CellCertificate
from counterlvq.certificates.certificate import Certificate
from counterlvq.numeric.arrays import Floats, plain, read_only
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.tolerances import EXACT_GAP
from counterlvq.presentation.numbers import (
    ShownChange,
    ShownRow,
    bound_text,
    cost_words,
    gap_text,
    shown_change,
    shown_row,
)
from counterlvq.presentation.wording import PLAIN, Wording, listed
from counterlvq.problem.constraints import Constraint
from counterlvq.tables.encoding import written
from counterlvq.tables.features import Feature, Features
from counterlvq.types import Kind, Status
from counterlvq.visible import shown_repr, shown_text, visible

__all__ = ["Change", "Counterfactual", "Reply", "Respond", "RowCheck", "difference"]

# Whether the third is an answer for the first with a label among the second that costs at most
# the fourth, and what it costs.
RowCheck = Callable[[Floats, tuple[Any, ...], Floats, float], tuple[bool, float]]

_SHOWN_CHANGES = 20
# Of one constraint, where several are named in a sentence.
_SHOWN_LETTERS = 1000
# Scales of columns that are named beside a cost.
_SHOWN_SCALES = 3
# Of a score or a probability, unless more are needed to tell its side.
_REPLY_DIGITS = 4
# Added to a conflict of which not every member was shown to be needed.
_OPEN = " (a set that clashes; fewer of them may clash as well)"


@final
@dataclass(frozen=True)
class Change:
    """One feature that differs between the input and its counterfactual.

    Attributes
    ----------
    feature : str
    before, after : float, int or level
    unit : str
        As it is read behind a number; empty without one.
    is_level : bool
        Whether these are levels, even if they look like numbers.
    described : Feature or None
        The feature, with the words that people read instead of its name and its levels.
    was_missing : bool
        Whether the input has no value here, and `before` is what stands in for it.

    The attributes have full precision. `text` and `cells` show the numbers of the row that is
    shown for the answer, see `Counterfactual.shown`; all digits if the change is of no answer.

    Examples
    --------
    >>> change = Change("income", before=2400.0, after=2900.0, unit="EUR")
    >>> change.difference
    500.0
    """

    feature: str
    before: Any
    after: Any
    unit: str = ""
    is_level: bool = field(default=False, repr=False)
    described: Feature | None = field(default=None, repr=False, compare=False)
    find_shown: Callable[[], ShownChange] | None = field(default=None, repr=False, compare=False)
    was_missing: bool = field(default=False, repr=False)

    @property
    def difference(self) -> Any:
        """New value less old value; None between levels, which have no distance."""
        return self.after - self.before if self.is_number else None

    @property
    def is_number(self) -> bool:
        """Whether a number changes, rather than a level."""
        return not self.is_level and all(
            isinstance(value, int | float) and not isinstance(value, bool)
            for value in (self.before, self.after)
        )

    @property
    def spoken(self) -> str:
        """What people read instead of the name of the feature."""
        return shown_text(self.feature if self.described is None else self.described.spoken)

    def _words(self, level: Any) -> str:
        return shown_text(level if self.described is None else self.described.words(level))

    def text(self, wording: Wording = PLAIN) -> str:
        """Say the change in words.

        Examples
        --------
        >>> Change("income", 2400.0, 2900.0, "EUR").text()
        'income were 500 higher (2,900 instead of 2,400 EUR)'
        >>> Change("cards", 2, 1).text()
        'cards were 1 instead of 2'
        >>> Change("cards", 2, 1, was_missing=True).text()
        'cards were 1 instead of 2, which stands in for a missing value'
        """
        if not self.is_number and self._is_phrase:
            said = f"it were {self._words(self.after)}"
            return f"{said} instead of {self._before}" if self.was_missing else said
        unit, shown = f" {shown_text(self.unit)}" if self.unit else "", self._digits(wording)
        whole = not unit and isinstance(self.before, int) and isinstance(self.after, int)
        if not self.is_number or whole:
            return f"{self.spoken} were {shown.after} instead of {shown.before}{self._gap_words}"
        by = f"{shown.by} {'higher' if shown.rises else 'lower'}"
        instead = f"{shown.after} instead of {shown.before}{unit}{self._gap_words}"
        return f"{self.spoken} were {by} ({instead})"

    def brief(self, wording: Wording = PLAIN) -> str:
        """Name the change in the fewest words.

        Examples
        --------
        >>> Change("income", 2400.0, 2900.0, "EUR").brief()
        'income 2,900 instead of 2,400 EUR'
        """
        if not self.is_number and self._is_phrase:
            return self._words(self.after)
        unit, shown = f" {shown_text(self.unit)}" if self.unit else "", self._digits(wording)
        return f"{self.spoken} {shown.after} instead of {shown.before}{unit}{self._gap_words}"

    @property
    def _gap_words(self) -> str:
        return ", which stands in for a missing value" if self.was_missing else ""

    @property
    def _before(self) -> str:
        return f"{self._words(self.before)}{self._gap_words}"

    @property
    def _is_phrase(self) -> bool:
        """Whether a boolean has words for what it becomes, such as "with a guarantor"."""
        feature = self.described
        if feature is None or feature.kind is not Kind.BOOLEAN:
            return False
        return feature.words(self.after) != str(self.after)

    def cells(self, wording: Wording = PLAIN) -> tuple[str, str, str, str]:
        """Name, old value, new value and difference, as a table shows them."""
        shown = self._digits(wording)
        if self.was_missing:
            shown = replace(shown, before=f"missing, as {shown.before}")
        if not self.is_number:
            return self.spoken, shown.before, shown.after, ""
        name = f"{self.spoken} ({shown_text(self.unit)})" if self.unit else self.spoken
        return name, shown.before, shown.after, ("+" if shown.rises else "-") + shown.by

    def _digits(self, wording: Wording) -> ShownChange:
        """Old and new value as they are read, be they numbers or levels."""
        if not self.is_number:
            return ShownChange(self._words(self.before), self._words(self.after), "", True)
        shown = self.shown
        before, after, by = map(wording.number, (shown.before, shown.after, shown.by))
        return ShownChange(before, after, by, shown.rises)

    @property
    def shown(self) -> ShownChange:
        """The digits that are shown of a number."""
        if self.find_shown is None:
            return shown_change(self.before, self.after)
        return self.find_shown()


class Spoken(Protocol):
    """What has a sentence of its own, such as `Ranges`."""

    def sentence(self, wording: Wording) -> str:
        """Say it, worded like an answer."""


# Name and value of the number behind a decision at a row, for a label, and its threshold.
Respond = Callable[[Floats, Any], tuple[str, float, float | None] | None]


@final
@dataclass(frozen=True)
class Reply:
    """The number behind a decision, before and after: a score, a probability, a prediction.

    Attributes
    ----------
    name : str
    before, after : float
        At the input, and at the row that is shown.
    threshold : float or None
        From which the decision is another one, where there is one.

    Examples
    --------
    >>> Reply("score", 612.3, 640.0, threshold=640.0).text()
    'score 612.3 -> 640'
    """

    name: str
    before: float
    after: float
    threshold: float | None = None

    def text(self, number: Callable[[str], str] = str) -> str:
        """Write both values with digits enough to tell on which side of the threshold they are.

        `number` writes a number in another way.
        """
        before, after = (number(self._digits(value)) for value in (self.before, self.after))
        return f"{self.name} {before} -> {after}"

    def _digits(self, value: float) -> str:
        for digits in range(_REPLY_DIGITS, 17):
            text = f"{value:.{digits}g}"
            if self.threshold is None:
                near = abs(float(text) - value) <= abs(self.after - self.before) / 100
            else:
                near = (float(text) >= self.threshold) == (value >= self.threshold)
            if near:
                return text
        return repr(value)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Counterfactual:
    """The answer to one question, with its proof.

    Attributes
    ----------
    x, original : ndarray of shape (d,)
        The counterfactual, NaN where there is none, and the factual input. Of objects, each in
        the type of its feature, where some features have levels. A value that is missing in the
        input and stays as it is, is missing in both.
    missing : ndarray of bool, shape (d,)
        Where the input has no value and something stands in for it: `original_values` has what
        does, and the cost of a change counts from there.
    row : array, mapping, row of a frame or frame of one row
        The counterfactual as the input was given: types and other columns are kept.
    status : Status
        OPTIMAL, FEASIBLE, INFEASIBLE or UNKNOWN; INVALID for a row of a batch that cannot be
        read.
    cost : float
        Cost of the change; inf without an answer.
    lower_bound : float
        Cost that no counterfactual under the same constraints undercuts, among those that keep
        the wished-for margin if there is one; inf if there is none.
    gap : float
        Share of the cost that is not proved, ``(cost - lower_bound) / cost``; 0 at cost 0.
    resolution : float
        What the last digits of the features that change are worth: costs that differ by less
        cannot be told apart at this point.
    prediction, original_prediction : label
        What the model says of `x` (None without an answer) and of `original`.
    target : tuple of labels
        What was wished for.
    prototype : int
        The nearest prototype of `x`; -1 without an answer.
    conflict : tuple
        For INFEASIBLE: a set of the user's constraints, as they were given, that leaves no room
        for the target (empty if it is out of reach without any).
    conflict_is_irreducible : bool
        Whether an answer was found without each one of the members of `conflict`. If not, it is a
        set that clashes, and fewer of its members may clash as well.
    broken : tuple
        The user's constraints that the input itself breaks, and `Bounds` for ranges of features.
    within_rules : Counterfactual or None
        For an input that breaks some: the closest one that breaks none, whatever its label.
    has_target : bool
        Whether the model gives the input a wished-for label as it is.
    bound_with_margin : float
        The same as `lower_bound`.
    reason : str
        How the answer was found, or why there is none.
    shown : ShownRow
        The row that `text` and `print` show, as `values` and `cost`: rounded away from the
        input to the fewest digits for which the model says the target, the constraints hold
        and the cost is at most 1 % above that of `x`. Its numbers can be typed back in.

    Examples
    --------
    >>> import counterlvq as clvq
    >>> model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], feature_names=["income"])
    >>> cf = clvq.Explainer(model).explain([0.5], target="yes")
    >>> cf.text()
    'The answer would have been yes if income were 1.51 higher (2.01 instead of 0.5).'
    """

    values: Floats  # (d,) as `frames.rows_of` reads them: positions for levels
    original_values: Floats  # (d,)
    status: Status
    cost: float
    lower_bound: float
    gap: float
    prediction: Any
    original_prediction: Any
    target: tuple[Any, ...]
    prototype: int
    features: Features
    reason: str
    bound_with_margin: float
    resolution: float = 0.0
    margin: float = 0.0  # that the user asked for, and that the bound is about
    conflict: tuple[Constraint | str, ...] = ()
    conflict_is_irreducible: bool = True
    broken: tuple[Constraint | str, ...] = ()
    within_rules: Counterfactual | None = None
    certificate: Certificate = field(default_factory=lambda: CellCertificate(()))
    as_given: Any = None  # what `row` returns, where the input was no array of the features
    check: RowCheck | None = None  # of rows to show; answers that come without show all digits
    part: str = "prototype"  # what a prototype of the model is
    scales: tuple[str, ...] = ()  # on which changes of some columns are measured
    confidence: str = ""  # that was asked for, in words
    respond: Respond | None = None  # the number behind a decision
    gaps: NDArray[np.bool_] | None = None  # `missing`; None where nothing is

    def __getstate__(self) -> dict[str, Any]:
        """Leave the model behind: what is shown was checked by it and stays as it is."""
        kept = {"shown": self.shown, "reply": self.reply, "check": None, "respond": None}
        return {**self.__dict__, **kept}

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features, d of them."""
        return self.features.names

    @property
    def has_target(self) -> bool:
        """Whether the model gives the input a wished-for label as it is."""
        return self.original_prediction in self.target

    @property
    def x(self) -> NDArray[Any]:
        """The counterfactual, (d,); NaN where there is none."""
        return _in_types(self.values_with_gaps, self.features)

    @property
    def original(self) -> NDArray[Any]:
        """The factual input, (d,)."""
        return _in_types(_with_gaps(self.original_values, self.missing), self.features)

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Where the input has no value and something stands in for it, (d,)."""
        return np.zeros(len(self.features), dtype=bool) if self.gaps is None else self.gaps

    def lacking(self, gaps: NDArray[np.bool_]) -> Counterfactual:
        """Return the same answer to an input of which these values are missing."""
        within = self.within_rules
        return replace(
            self,
            gaps=read_only(gaps),
            within_rules=None if within is None else replace(within, gaps=read_only(gaps)),
        )

    @property
    def stays_missing(self) -> NDArray[np.bool_]:
        """Where the input has no value and the answer needs none either, (d,)."""
        return np.asarray(self.missing & (self.values == self.original_values))

    @property
    def values_with_gaps(self) -> Floats:
        """The counterfactual as numbers, NaN where a value stays missing, (d,)."""
        return _with_gaps(self.values, self.stays_missing)

    @property
    def row(self) -> Any:
        """The counterfactual as the input was given, with types and other columns kept."""
        return self.x if self.as_given is None else self.as_given

    @property
    def delta(self) -> Floats:
        """The change, counterfactual less input, (d,).

        NaN where there is no answer, and for levels that change: they have no distance.
        """
        return difference(self.values, self.original_values, self.features)

    @property
    def changes(self) -> tuple[Change, ...]:
        """The features that change, in the order of the columns."""
        if not self.status.has_answer:
            return ()
        return tuple(
            Change(
                self.features.columns[j].name,
                _value(self.original_values[j], self.features.columns[j]),
                _value(self.values[j], self.features.columns[j]),
                self.features.columns[j].unit,
                is_level=not self.features.columns[j].is_number,
                described=self.features.columns[j],
                find_shown=partial(self._shown_at, int(j)),
                was_missing=bool(self.missing[j]),
            )
            for j in np.flatnonzero(self.values != self.original_values)
        )

    @cached_property
    def shown(self) -> ShownRow:
        """The row that is shown to people: rounded, and checked to be an answer too."""
        check = None
        if self.check is not None and self.status.has_answer:
            check = partial(self.check, self.original_values, self.target)
        return shown_row(self.features, self.original_values, self.values, self.cost, check)

    @cached_property
    def reply(self) -> Reply | None:
        """The score or probability before and after; None where the model has none."""
        if self.respond is None or not self.status.has_answer:
            return None
        before = self.respond(self.original_values, self.prediction)
        after = None if before is None else self.respond(self.shown.values, self.prediction)
        if before is None or after is None:
            return None
        name = before[0]
        if name == "probability" and before[2] is None:
            name = f"probability of {shown_text(self.prediction)}"
        return Reply(name, before[1], after[1], before[2])

    @property
    def shown_changes(self) -> tuple[Change, ...]:
        """The changes of the row that is shown; `changes` but for what rounding has left of 0."""
        names = self.feature_names
        moved = np.flatnonzero(self.shown.values != self.original_values)
        seen = {names[j] for j in moved}
        return tuple(change for change in self.changes if change.feature in seen)

    def _shown_at(self, position: int) -> ShownChange:
        shown = self.shown.changes.get(position)
        if shown is None:
            return shown_change(self.original_values[position], self.values[position])
        return shown

    def text(
        self,
        *,
        subject: str = "The answer",
        outcome: Mapping[Any, str] | None = None,
        most: int | None = None,
        numbers: str = "1,234.5",
        template: str | None = None,
        ranges: Spoken | None = None,
    ) -> str:
        """Say the answer in a sentence, with the numbers of the row that is `shown`.

        Features and levels are called by their labels where they have some.

        Parameters
        ----------
        subject : str
            What the decision is about, such as "Your application".
        outcome : mapping from label to str, optional
            What the model's labels are called, such as ``{"good": "accepted"}``.
        most : int, optional
            Name so many changes first, those that weigh most in the cost, and the others in a
            second sentence.
        numbers : {"1,234.5", "1.234,5", "1 234,5", "1 234.5", "1'234.5", "1234.5", "1234,5"}
            How numbers are written.
        template : str, optional
            A text of your own for answers that change something, with the places ``{subject}``,
            ``{outcome}``, ``{now}`` (the present outcome), ``{changes}``, ``{others}`` (the
            changes beyond `most`; all stand in ``{changes}`` without this place), ``{missing}``
            (which values the input lacks and still may) and ``{cost}``.
        ranges : Ranges, optional
            What `Explainer.ranges` says of the answer, for a sentence of its own behind the first.

        Examples
        --------
        >>> import counterlvq as clvq
        >>> income = clvq.Feature("income", unit="EUR", label="net monthly income", decimals=0)
        >>> model = clvq.PrototypeModel([[1400], [2600]], ["bad", "good"], None, ["income"])
        >>> cf = clvq.Explainer(model, features=clvq.Features([income])).explain([1200])
        >>> print(cf.text(subject="Your application", outcome={"good": "accepted"}))
        Your application would have been accepted if net monthly income were 801 higher (2,001 \
        instead of 1,200 EUR).
        >>> print(cf.text(template="To be {outcome}: {changes}.", numbers="1.234,5"))
        To be good: net monthly income were 801 higher (2.001 instead of 1.200 EUR).
        """
        subject = f"The {self._noun}" if subject == "The answer" else subject
        wording = Wording(subject, outcome or {}, most, numbers, template)
        if self.status.has_answer and not self.changes:
            label = wording.called(self.prediction)
            said = f"{shown_text(subject)} is {label} already; nothing needs to change."
            return f"{said}{self._missing_words()}"
        if self.status is Status.INVALID:
            return f"No counterfactual was looked for: {visible(self.reason)}"
        before = self._demanded_first(wording)
        if self.status.has_answer and not self.has_target:
            behind = "" if ranges is None else f" {ranges.sentence(wording)}"
            return before + self._sentence(wording) + behind
        wished = " or ".join(map(wording.called, self.target))
        if self.status.has_answer:
            return f"{before}{self._demanded(wording)}{self._missing_words()}"
        if self.status is Status.UNKNOWN:
            found = f"No counterfactual for {wished} was found; that there is none is not proved."
            return before + found
        return f"{before}There is no counterfactual for {wished}: {self._clash()}."

    def _demanded(self, wording: Wording) -> str:
        """Say what the constraints demand of an input that has the label already."""
        changes = listed([change.text(wording) for change in self.shown_changes])
        rules = "the margin" if self.margin else "the steps of its columns"
        rules = f"the wish for {self.confidence}" if self.confidence else rules
        rules = "the constraints" if self.broken else rules
        stays = f"stay {wording.called(self.prediction)}"
        if self.prediction != self.original_prediction:
            stays = f"be {wording.called(self.prediction)}"
        now = f"{shown_text(wording.subject)} is {wording.called(self.original_prediction)} already"
        return f"{now}; it would meet {rules} and {stays} if {changes}."

    def _demanded_first(self, wording: Wording) -> str:
        """Say what the constraints demand of an input, before anything about its label."""
        if not self.broken:
            return ""
        said = f"This row breaks {self._broken_words()} as it is"
        needed = () if self.within_rules is None else self.within_rules.shown_changes
        if needed and not self.has_target:
            said += f", which takes {listed([change.brief(wording) for change in needed])} to mend"
        return f"{said}. "

    def _broken_words(self) -> str:
        return listed([visible(_words(item), _SHOWN_LETTERS) for item in self.broken])

    def _sentence(self, wording: Wording) -> str:
        """Say what would have had to be different."""
        named, others = list(self.shown_changes), []
        if wording.most is not None and len(named) > wording.most and wording.parts_others:
            ordered = self._by_weight(named)
            named, others = ordered[: wording.most], ordered[wording.most :]
        places = {
            "subject": shown_text(wording.subject),
            "outcome": wording.called(self.prediction),
            "now": wording.called(self.original_prediction),
            "changes": listed([change.text(wording) for change in named]),
            "others": "",
            "cost": wording.number(cost_words(self.shown.cost, self.cost)),
            "missing": self._missing_words().lstrip(),
        }
        if others:
            brief = "; ".join(change.brief(wording) for change in others)
            count = "another change" if len(others) == 1 else f"{len(others)} other changes"
            places["others"] = f"It also takes {count}: {brief}."
        if wording.template is not None:
            return wording.filled(places)
        reply = "" if self.reply is None else f": {self.reply.text(wording.number)}"
        said = "{subject} would have been {outcome} if {changes}".format_map(places) + f"{reply}."
        said = f"{said} {places['others']}" if others else said
        return f"{said}{self._missing_words()}"

    def _missing_words(self) -> str:
        """Say which values the input lacks and nobody needs to know."""
        at = np.flatnonzero(self.stays_missing)
        if not at.size:
            return ""
        names = [shown_text(self.features.columns[j].spoken) for j in at]
        return (
            f" The {'value' if len(names) == 1 else 'values'} of {listed(names)} may stay missing."
        )

    def _by_weight(self, changes: Sequence[Change]) -> list[Change]:
        """Sort changes by what taking each one back would save; as they are without a model."""
        if self.check is None:
            return list(changes)
        left = {}
        for change in changes:
            j = self.features.position(change.feature)
            row = self.values.copy()
            row[j] = self.original_values[j]
            left[change.feature] = self.check(self.original_values, self.target, row, np.inf)[1]
        return sorted(changes, key=lambda change: left[change.feature])

    @property
    def _noun(self) -> str:
        return self.part if self.part in ("cluster", "component") else "answer"

    def to_dict(self) -> dict[str, Any]:
        """Everything but the proof, as plain values that JSON can hold.

        Infinite and missing numbers become None; labels that JSON does not know, such as
        dates, become text.
        """
        return {
            "status": str(self.status),
            "prediction": _plain_label(self.prediction),
            "original_prediction": _plain_label(self.original_prediction),
            "target": [_plain_label(label) for label in self.target],
            "cost": _jsonable(self.cost),
            "lower_bound": _jsonable(self.lower_bound),
            "gap": _jsonable(self.gap),
            "resolution": _jsonable(self.resolution),
            "prototype": self.prototype,
            "original": _named(self.features, _with_gaps(self.original_values, self.missing)),
            "x": _named(self.features, self.values_with_gaps) if self.status.has_answer else None,
            "missing": [
                name for name, gap in zip(self.feature_names, self.missing, strict=True) if gap
            ],
            "changes": [
                {
                    "feature": change.feature,
                    "before": _plain_label(change.before),
                    "after": _plain_label(change.after),
                    "difference": change.difference,
                    "unit": change.unit,
                    "was_missing": change.was_missing,
                }
                for change in self.changes
            ],
            "conflict": [_words(item) for item in self.conflict],
            "has_target": self.has_target,
            "broken": [_words(item) for item in self.broken],
            "within_rules": None if self.within_rules is None else self.within_rules.to_dict(),
            "reason": self.reason,
            **({} if self.reply is None else {"response": asdict(self.reply)}),
        }

    def __str__(self) -> str:
        if self.status is Status.INVALID:
            return f"Counterfactual ({self.status})\n  {self.text()}"
        proof = visible(self._proof_line())
        if not self.status.has_answer:
            return f"Counterfactual ({self.status})\n  {self.text()}\n  {proof}"
        noun = "class" if self._noun == "answer" else self._noun
        reply = [] if self.reply is None else [f"  {self.reply.text()}"]
        lines = [
            f"Counterfactual ({self.status})",
            f"  {noun:<7} {shown_repr(self.original_prediction)} -> {shown_repr(self.prediction)}",
            *reply,
            *([f"  breaks  {self._broken_words()}, as it is"] if self.broken else []),
            *self._table(),
            f"  cost    {cost_words(self.shown.cost, self.cost)}{self._scale_words()}",
            f"  proof   {proof}",
        ]
        return "\n".join(lines)

    __repr__ = __str__

    def _scale_words(self) -> str:
        shown = [shown_text(scale) for scale in self.scales[:_SHOWN_SCALES]]
        more = ", ..." if len(self.scales) > _SHOWN_SCALES else ""
        return f", of changes in {', '.join(shown)}{more}" if shown else ""

    def _table(self) -> list[str]:
        changes = self.shown_changes
        if not changes:
            return ["  nothing needs to change"]
        shown = changes[:_SHOWN_CHANGES]
        rows = [("feature", "before", "after", "change")]
        rows += [change.cells() for change in shown]
        widths = [max(len(row[k]) for row in rows) for k in range(4)]
        lines = [
            (
                "  "
                + row[0].ljust(widths[0])
                + "".join(f"  {row[k]:>{widths[k]}}" for k in (1, 2, 3))
            ).rstrip()
            for row in rows
        ]
        more = len(changes) - len(shown)
        same = len(self.feature_names) - len(changes)
        rest = [f"  and {more} more changed features, which text() names"] if more else []
        gaps = int(self.stays_missing.sum())
        lacking = f", {gaps} of them missing" if gaps else ""
        rest += [f"  {same} feature{'s' if same != 1 else ''} unchanged{lacking}"] if same else []
        return lines + rest

    def _proof_line(self) -> str:
        if self.status is Status.INFEASIBLE:
            return f"proved: {self.reason}"
        kept = f" that keeps the margin of {self.margin:g}" if self.margin else ""
        kept = f" with {self.confidence}" if self.confidence else kept
        bound = bound_text(self.lower_bound)
        if self.status is Status.UNKNOWN:
            tried = f" ({self.reason})" if self.reason else ""
            return f"a counterfactual{kept}, if any, costs at least {bound}{tried}"
        none = f"no counterfactual{kept} costs less than {bound}"
        if self.status is Status.OPTIMAL:
            return f"{none} (gap {gap_text(self.gap)})"
        if self.gap <= EXACT_GAP and self.lower_bound > 0 and kept:
            return none
        if self.lower_bound == 0:
            return "none: a closer one is not ruled out, at any cost above 0"
        return f"{none} (gap {gap_text(self.gap)}): a closer one is not ruled out"

    def _clash(self) -> str:
        words = [visible(_words(item), _SHOWN_LETTERS) for item in self.conflict]
        fewer = "" if self.conflict_is_irreducible else _OPEN
        if np.isfinite(self.lower_bound):  # there is one, but for the margin
            under = f" under {' and '.join(words)}{fewer}" if words else ""
            return f"{visible(self.reason)}{under}"
        if not words and self.confidence:
            return f"the model never says so with {self.confidence}, with or without constraints"
        if not words:
            limited = any((f.lower, f.upper) != (-np.inf, np.inf) for f in self.features)
            where = " within the ranges of the features" if limited else ""
            return f"the model never says so{where}, with or without constraints"
        if len(words) == 1:
            return f"{words[0]} leaves no room for it{fewer}"
        return f"{', '.join(words[:-1])} and {words[-1]} leave no room for it together{fewer}"


def _words(constraint: Constraint | str) -> str:
    return f'"{constraint}"' if isinstance(constraint, str) else str(constraint)


def _with_gaps(values: Floats, gaps: NDArray[np.bool_]) -> Floats:
    return np.where(gaps, np.nan, values) if gaps.any() else values


def _plain_label(label: Any) -> Any:
    value = plain(label)
    if isinstance(value, float) and np.isnan(value):
        return None
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _named(features: Features, values: Floats) -> dict[str, Any]:
    pairs = zip(features, values, strict=True)
    return {feature.name: _plain_label(_value(value, feature)) for feature, value in pairs}


def _value(value: float, feature: Feature) -> Any:
    """One value in the type of its feature."""
    return plain(written(np.array([value]), feature)[0])


def _in_types(values: Floats, features: Features) -> NDArray[Any]:
    """Values in the types of their features; floats where all of them are numbers."""
    if all(feature.is_number and feature.kind is not Kind.DATE for feature in features):
        return values
    out = np.empty(len(features), dtype=object)
    out[:] = [_value(value, feature) for value, feature in zip(values, features, strict=True)]
    return out


def difference(after: Floats, before: Floats, features: Features) -> Floats:
    """Subtract rows of values; NaN where a level has changed, which has no distance."""
    delta = np.asarray(after - before)
    levels = [not feature.is_number for feature in features]
    if any(levels):
        switched = np.array(levels) & (delta != 0)
        delta = np.where(switched, np.nan, delta)
    return delta


def _jsonable(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None

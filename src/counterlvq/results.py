"""What the user gets back, and how it reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.certificates.cellwise import CellCertificate
from counterlvq.certificates.certificate import Certificate
from counterlvq.numeric.arrays import Floats, plain
from counterlvq.presentation.numbers import (
    ShownChange,
    ShownRow,
    bound_text,
    cost_words,
    gap_text,
    shown_change,
    shown_row,
)
from counterlvq.problem.constraints import Constraint
from counterlvq.tables.encoding import written
from counterlvq.tables.features import Feature, Features
from counterlvq.types import Status
from counterlvq.visible import shown_repr, shown_text, visible

__all__ = ["Change", "Counterfactual", "Reply", "Respond", "RowCheck", "difference"]

# Whether the third is an answer for the first with a label among the second that costs at most
# the fourth, and what it costs.
RowCheck = Callable[[Floats, tuple[Any, ...], Floats, float], tuple[bool, float]]

_SHOWN_CHANGES = 20
# Of one constraint, where several are named in a sentence.
_SHOWN_LETTERS = 1000
# A gap that is as good as closed: what is left open is the margin, not the proof. It chooses words;
# gap and bound are reported as they are.
_CLOSED_GAP = 1e-6
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
    find_shown: Callable[[], ShownChange] | None = field(default=None, repr=False, compare=False)

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

    def text(self) -> str:
        """Say the change in words.

        Examples
        --------
        >>> Change("income", 2400.0, 2900.0, "EUR").text()
        'income were 500 higher (2,900 instead of 2,400 EUR)'
        >>> Change("cards", 2, 1).text()
        'cards were 1 instead of 2'
        """
        name = shown_text(self.feature)
        if not self.is_number:
            return f"{name} were {shown_text(self.after)} instead of {shown_text(self.before)}"
        unit, shown = f" {shown_text(self.unit)}" if self.unit else "", self.shown
        if not unit and isinstance(self.before, int) and isinstance(self.after, int):
            return f"{name} were {shown.after} instead of {shown.before}"
        by = f"{shown.by} {'higher' if shown.rises else 'lower'}"
        return f"{name} were {by} ({shown.after} instead of {shown.before}{unit})"

    def cells(self) -> tuple[str, str, str, str]:
        """Name, old value, new value and difference, as a table shows them."""
        name = shown_text(self.feature)
        if not self.is_number:
            return name, shown_text(self.before), shown_text(self.after), ""
        if self.unit:
            name = f"{name} ({shown_text(self.unit)})"
        shown = self.shown
        return name, shown.before, shown.after, ("+" if shown.rises else "-") + shown.by

    @property
    def shown(self) -> ShownChange:
        """The digits that are shown of a number."""
        if self.find_shown is None:
            return shown_change(self.before, self.after)
        return self.find_shown()


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

    def text(self) -> str:
        """Write both values with digits enough to tell on which side of the threshold they are."""
        return f"{self.name} {self._digits(self.before)} -> {self._digits(self.after)}"

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
        the type of its feature, where some features have levels.
    row : array, mapping, row of a frame or frame of one row
        The counterfactual as the input was given: types and other columns are kept.
    status : Status
        OPTIMAL, FEASIBLE, INFEASIBLE or UNKNOWN.
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
    certificate: Certificate = field(default_factory=lambda: CellCertificate(()))
    as_given: Any = None  # what `row` returns, where the input was no array of the features
    check: RowCheck | None = None  # of rows to show; answers that come without show all digits
    part: str = "prototype"  # what a prototype of the model is
    scales: tuple[str, ...] = ()  # on which changes of some columns are measured
    respond: Respond | None = None  # the number behind a decision

    def __getstate__(self) -> dict[str, Any]:
        """Leave the model behind: what is shown was checked by it and stays as it is."""
        kept = {"shown": self.shown, "reply": self.reply, "check": None, "respond": None}
        return {**self.__dict__, **kept}

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features, d of them."""
        return self.features.names

    @property
    def x(self) -> NDArray[Any]:
        """The counterfactual, (d,); NaN where there is none."""
        return _in_types(self.values, self.features)

    @property
    def original(self) -> NDArray[Any]:
        """The factual input, (d,)."""
        return _in_types(self.original_values, self.features)

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
                find_shown=partial(self._shown_at, int(j)),
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
        after = self.respond(self.shown.values, self.prediction)
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

    def text(self) -> str:
        """Say the answer in one sentence, with the numbers of the row that is `shown`."""
        if self.status.has_answer and not self.changes:
            label = shown_text(self.prediction)
            return f"The {self._noun} is {label} already; nothing needs to change."
        if self.status.has_answer:
            parts = [change.text() for change in self.shown_changes]
            what = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
            said = f"The {self._noun} would have been {shown_text(self.prediction)} if {what}"
            return f"{said}{'' if self.reply is None else f': {self.reply.text()}'}."
        wished = " or ".join(shown_text(label) for label in self.target)
        if self.status is Status.UNKNOWN:
            return f"No counterfactual for {wished} was found; that there is none is not proved."
        return f"There is no counterfactual for {wished}: {self._clash()}."

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
            "original": _named(self.features, self.original_values),
            "x": _named(self.features, self.values) if self.status.has_answer else None,
            "changes": [
                {
                    "feature": change.feature,
                    "before": _plain_label(change.before),
                    "after": _plain_label(change.after),
                    "difference": change.difference,
                    "unit": change.unit,
                }
                for change in self.changes
            ],
            "conflict": [_words(item) for item in self.conflict],
            "reason": self.reason,
            **({} if self.reply is None else {"response": asdict(self.reply)}),
        }

    def __str__(self) -> str:
        proof = visible(self._proof_line())
        if not self.status.has_answer:
            return f"Counterfactual ({self.status})\n  {self.text()}\n  {proof}"
        noun = "class" if self._noun == "answer" else self._noun
        reply = [] if self.reply is None else [f"  {self.reply.text()}"]
        lines = [
            f"Counterfactual ({self.status})",
            f"  {noun:<7} {shown_repr(self.original_prediction)} -> {shown_repr(self.prediction)}",
            *reply,
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
        rest += [f"  {same} feature{'s' if same != 1 else ''} unchanged"] if same else []
        return lines + rest

    def _proof_line(self) -> str:
        if self.status is Status.INFEASIBLE:
            return f"proved: {self.reason}"
        kept = f" that keeps the margin of {self.margin:g}" if self.margin else ""
        bound = bound_text(self.lower_bound)
        if self.status is Status.UNKNOWN:
            tried = f" ({self.reason})" if self.reason else ""
            return f"a counterfactual{kept}, if any, costs at least {bound}{tried}"
        none = f"no counterfactual{kept} costs less than {bound}"
        if self.status is Status.OPTIMAL:
            return f"{none} (gap {gap_text(self.gap)})"
        if self.gap <= _CLOSED_GAP and self.lower_bound > 0 and kept:
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
        if not words:
            return "the model never says so, with or without constraints"
        if len(words) == 1:
            return f"{words[0]} leaves no room for it{fewer}"
        return f"{', '.join(words[:-1])} and {words[-1]} leave no room for it together{fewer}"


def _words(constraint: Constraint | str) -> str:
    return f'"{constraint}"' if isinstance(constraint, str) else repr(constraint)


def _plain_label(label: Any) -> Any:
    value = plain(label)
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _named(features: Features, values: Floats) -> dict[str, Any]:
    pairs = zip(features, values, strict=True)
    return {feature.name: _plain_label(_value(value, feature)) for feature, value in pairs}


def _value(value: float, feature: Feature) -> Any:
    """One value in the type of its feature."""
    return plain(written(np.array([value]), feature)[0])


def _in_types(values: Floats, features: Features) -> NDArray[Any]:
    """Values in the types of their features; floats where all of them are numbers."""
    if all(feature.is_number for feature in features):
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

"""What the user gets back for one row, and how it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.certificates.cellwise import CellCertificate
from counterlvq.certificates.certificate import Certificate, Later, later
from counterlvq.numeric.arrays import Floats, read_only
from counterlvq.numeric.lazy import cached_property
from counterlvq.presentation.bounds import ShownProof, proof_words, scale_words, shown_proof
from counterlvq.presentation.cards import answer_card
from counterlvq.presentation.changes import Change, plain_change, table_lines
from counterlvq.presentation.numbers import (
    ShownChange,
    ShownRow,
    shown_change,
    shown_row,
)
from counterlvq.presentation.responses import (
    Favour,
    Reply,
    Respond,
    favour_lines,
    plain_favour,
    plain_reply,
    reply_at,
)
from counterlvq.presentation.rules import called_by
from counterlvq.presentation.sentences import Sentences, noun_of
from counterlvq.presentation.values import (
    by_name,
    difference,
    finite_or_none,
    in_types,
    plain_label,
    value_of,
    with_gaps,
)
from counterlvq.presentation.wording import PLAIN, Spoken, Wording, refuse_response, refuse_unspoken
from counterlvq.problem.constraints import Bounds, Constraint
from counterlvq.safe_text import shown_repr, shown_text, visible
from counterlvq.tables.features import Features
from counterlvq.types import Status

__all__ = ["Counterfactual", "RowCheck", "answer_like", "later", "replaced"]

# Whether the third is an answer for the first with a label among the second that costs at most
# the fourth, and what it costs.
RowCheck = Callable[[Floats, tuple[Any, ...], Floats, float], tuple[bool, float]]


def replaced(cf: Counterfactual, **changes: Any) -> Counterfactual:
    """Copy an answer with changes; a certificate that nobody has asked for is not made."""
    if "certificate" not in changes and "certificate" not in cf.__dict__:
        changes["certificate"] = later(lambda: cf.certificate)
    return replace(cf, **changes)


def answer_like(outline: Counterfactual, make: Callable[[], Certificate], **found: Any) -> Any:
    """Return an outline that nobody has seen with other fields, and a certificate for later.

    The constructor takes a step for each field, which is a tenth of the time of a single row.
    """
    answer = object.__new__(Counterfactual)
    answer.__dict__.update(outline.__dict__)
    answer.__dict__.update(found, _later=Later(make))
    return answer


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
        The counterfactual as the input was given: types and other columns are kept. A frame of one
        row goes into `predict` as it is; one of a Series or a mapping is
        ``pd.DataFrame([cf.row]).infer_objects()``.
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
        Whether an answer was found without each one of the members of `conflict` and
        `conflict_ranges`. If not, it is a set that clashes, and fewer may clash as well; or, for
        UNKNOWN, whether anything clashes is not known.
    conflict_ranges : tuple of Bounds
        For INFEASIBLE: the allowed ranges of features (their `lower` and `upper`) that leave no
        room together with `conflict`.
    conflict_has_confidence : bool
        For INFEASIBLE: whether the confidence that was asked for is part of the reason: without it
        `conflict` would leave room.
    conflict_steps : tuple of str
        For INFEASIBLE: features whose steps or decimals are part of the reason. Without these
        steps `conflict` would leave room.
    broken : tuple
        The user's constraints that the input itself breaks, and `Bounds` for ranges of features.
    disagreement : tuple or None
        Where the model's `predict_proba` favours another label than its `predict` at the
        answer: that label, its probability, and that of `prediction`.
    within_rules : Counterfactual or None
        For an input that breaks some: the closest one that breaks none, whatever its label. As of
        any answer, its status says whether that is proved.
    has_target : bool
        Whether the model gives the input a wished-for label as it is.
    bound_with_margin : float
        The same as `lower_bound`.
    reason : str
        How the answer was found, or why there is none.
    shown : ShownRow
        The row that `text` and `print` show, as `row` (of the same kind as `row` here, to hand to
        `predict`), `values` and `cost`: rounded away from the input to the fewest digits for
        which the model says the target, the constraints hold and the cost is at most 1 % above
        that of `x`. Its numbers can be typed back in.
    reply, exact_reply : Reply or None
        The score or probability before and after, at the row that is `shown` and at `x`; None
        where the model has none.

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
    conflict_has_confidence: bool = False
    conflict_steps: tuple[str, ...] = ()
    conflict_ranges: tuple[Bounds, ...] = ()
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
    labels: tuple[Any, ...] = ()  # all that the model may say
    find_row: Callable[[], Any] | None = None  # what `row` returns, made when it is asked for
    fill: Callable[[Floats], Any] | None = None  # puts numbers into a row as the input was given
    constraints: tuple[Constraint | str, ...] | None = None  # of the question; None if not known

    def __post_init__(self) -> None:
        given: Any = self.certificate
        if type(given) is Later:
            self.__dict__["_later"] = self.__dict__.pop("certificate")

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # Python comes here only for what an instance lacks.
            if name != "certificate" or "_later" not in self.__dict__:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            # Threads that ask at the same time may both make it; all of them get the same object.
            return self.__dict__.setdefault("certificate", self.__dict__["_later"].make())

    def __getstate__(self) -> dict[str, Any]:
        """Leave the model behind: what is shown was checked by it and stays as it is."""
        names = ("shown", "reply", "exact_reply", "disagreement", "savings", "certificate")
        kept = {name: getattr(self, name) for name in names}
        row = {} if self.find_row is None else {"as_given": self.row, "find_row": None}
        state = {**self.__dict__, **kept, **row, "check": None, "respond": None, "fill": None}
        state.pop("_later", None)
        return state

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
        return in_types(self.values_with_gaps, self.features)

    @property
    def original(self) -> NDArray[Any]:
        """The factual input, (d,)."""
        return in_types(with_gaps(self.original_values, self.missing), self.features)

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
        return with_gaps(self.values, self.stays_missing)

    @property
    def row(self) -> Any:
        """The counterfactual as the input was given, with types and other columns kept."""
        if self.as_given is None and self.find_row is not None:
            return self.find_row()
        return self.x if self.as_given is None else self.as_given

    @property
    def delta(self) -> Floats:
        """The change, counterfactual less input, (d,).

        NaN where there is no answer, and for levels that change: they have no distance.
        """
        return difference(self.values, self.original_values, self.features)

    @property
    def changes(self) -> tuple[Change, ...]:
        """The features that change, in the order of the columns, in full precision."""
        return self._changes_to(self.values)

    def _changes_to(self, values: Floats) -> tuple[Change, ...]:
        if not self.status.has_answer:
            return ()
        return tuple(
            Change(
                self.features.columns[j].name,
                value_of(self.original_values[j], self.features.columns[j]),
                value_of(values[j], self.features.columns[j]),
                self.features.columns[j].unit,
                is_level=not self.features.columns[j].is_number,
                described=self.features.columns[j],
                find_shown=partial(self._shown_at, int(j)),
                was_missing=bool(self.missing[j]),
            )
            for j in np.flatnonzero(values != self.original_values)
        )

    @cached_property
    def shown(self) -> ShownRow:
        """The row that is shown to people: rounded, and checked to be an answer too."""
        check = None
        if self.check is not None and self.status.has_answer:
            check = partial(self.check, self.original_values, self.target)
        row = shown_row(self.features, self.original_values, self.values, self.cost, check)
        return replace(row, find_row=partial(self._row_of, row.values))

    def _row_of(self, values: Floats) -> Any:
        """Put numbers into a row like the input."""
        own = self._gapped(values)
        return in_types(own, self.features) if self.fill is None else self.fill(own)

    def _gapped(self, values: Floats) -> Floats:
        """Leave out what the input lacks and the values do not change."""
        return with_gaps(values, self.missing & (values == self.original_values))

    @cached_property
    def reply(self) -> Reply | None:
        """The score or probability before and after, at the row that is shown."""
        return self._reply_at(lambda: self.shown.values)

    @cached_property
    def exact_reply(self) -> Reply | None:
        """The score or probability before and after, at the answer itself."""
        return self._reply_at(lambda: self.values)

    def _reply_at(self, find: Callable[[], Floats]) -> Reply | None:
        if self.respond is None or not self.status.has_answer:
            return None
        known = f"{self.part} " if self.part == "component" else ""
        return reply_at(self.respond, self.original_values, find, self.prediction, known)

    @cached_property
    def disagreement(self) -> Favour | None:
        """What `predict_proba` favours at the answer, where `predict` says otherwise."""
        if self.respond is None or not self.status.has_answer:
            return None
        return self.respond.favoured(self.values, self.prediction)

    @property
    def shown_changes(self) -> tuple[Change, ...]:
        """The changes of the row that is shown: to its numbers, from those of the input."""
        return self._changes_to(self.shown.values)

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
        dates: str = "2024-05-31",
        rules: Mapping[Constraint | str, str] | None = None,
        ranges: Spoken | None = None,
        response: bool | None = None,
        otherwise: str | None = None,
    ) -> str:
        """Say the answer in a sentence, with the numbers of the row that is `shown`.

        Features and levels are called by their labels where they have some.

        Parameters
        ----------
        subject : str
            What the decision is about, such as "Your application".
        outcome : mapping from label to str, optional
            What the model's labels are called, such as ``{"good": "accepted"}``. Words for what
            the model never says are an error.
        most : int, optional
            Name so many changes first, those that weigh most in the cost, and the others in a
            second sentence.
        numbers : {"1,234.5", "1.234,5", "1 234,5", "1 234.5", "1'234.5", "1234.5", "1234,5"}
            How numbers are written.
        template : str, optional
            A text of your own for answers that change something, with the places ``{subject}``,
            ``{outcome}``, ``{now}`` (the present outcome), ``{changes}`` (to stand behind "if"),
            ``{list}`` (the same in the fewest words, to stand by itself), ``{others}`` (the
            changes beyond `most`; all stand in ``{changes}`` without this place), ``{missing}``
            (which values the input lacks and still may), ``{broken}`` (which constraints it breaks
            as it is; they come first without this place), ``{response}`` and ``{cost}``.
        dates : {"2024-05-31", "31.05.2024", "31/05/2024", "05/31/2024", "31 May 2024", \
"May 31, 2024"}
            How dates are written.
        rules : mapping from constraint to str, optional
            What constraints are called where the input breaks them, or where they clash; by
            default they are said in words, and texts as they were written. A constraint is named by
            itself, or as it is written or said. Words for one that was not asked for are an error.
        ranges : Ranges, optional
            What `Explainer.ranges` says of this answer, for a sentence of its own behind the first.
            Ranges of another answer, or without one of its constraints, are an error.
        response : bool, optional
            Whether to say the number behind the decision, a score or a probability in percent. By
            default where there is a threshold on it, or a confidence was asked for.
        otherwise : str, optional
            A text of your own for inputs that have the outcome already, that have no answer or
            that cannot be read, of which `template` says nothing. Its places are ``{text}`` (what
            is said of it without this one), ``{subject}`` and ``{now}``.

        Examples
        --------
        >>> import counterlvq as clvq
        >>> income = clvq.Feature("income", unit="EUR", label="net monthly income", decimals=0)
        >>> model = clvq.PrototypeModel([[1400], [2600]], ["bad", "good"], None, ["income"])
        >>> cf = clvq.Explainer(model, features=clvq.Features([income])).explain([1200])
        >>> print(cf.text(subject="Your application", outcome={"good": "accepted"}))
        Your application would have been accepted if net monthly income were 801 higher (2,001 \
        instead of 1,200 EUR).
        >>> print(cf.text(template="What it takes to be {outcome}: {list}.", numbers="1.234,5"))
        What it takes to be good: net monthly income 2.001 instead of 1.200 EUR.
        """
        subject = f"The {noun_of(self.part)}" if subject == "The answer" else subject
        wording = Wording(
            subject, outcome or {}, most, numbers, template, dates, rules or {}, response, otherwise
        ).checked(self.labels)
        if self.constraints is not None:
            wording = called_by(wording, self.constraints, self.features)
        if response and self.status.has_answer and self.reply is None:
            refuse_response()
        refuse_unspoken(ranges, self)
        said = Sentences(self, wording).whole(ranges)
        if self.status.has_answer and not self.has_target:
            return said
        now = "" if self.original_prediction is None else wording.called(self.original_prediction)
        return wording.framed({"text": said, "subject": shown_text(subject), "now": now})

    @cached_property
    def savings(self) -> dict[str, float]:
        """What taking back each change of the shown row would save; empty without a model."""
        if self.check is None:
            return {}
        out = {}
        for change in self.shown_changes:
            j = self.features.position(change.feature)
            row = self.values.copy()
            row[j] = self.original_values[j]
            left = self.check(self.original_values, self.target, row, np.inf)[1]
            out[change.feature] = max(self.cost - left, 0.0)
        return out

    def to_dict(self, *, shown: bool = False) -> dict[str, Any]:
        """Everything but the proof, as plain values that JSON can hold, always by the same keys.

        What there is none of is None, or an empty list. Infinite and missing numbers become None;
        labels that JSON does not know, such as dates, become text. `reason` says why there is no
        answer, `found_by` how one was found; the attribute `reason` says either. All of
        it is about `x`, in full precision: `response` is `exact_reply`.

        Parameters
        ----------
        shown : bool
            Whether to add the row that `text` shows under the key `shown`, as `x`, `cost` and
            `response` of its own. The model is asked several times for it.
        """
        has_answer, within = self.status.has_answer, self.within_rules
        return {
            "status": str(self.status),
            "prediction": plain_label(self.prediction),
            "original_prediction": plain_label(self.original_prediction),
            "target": [plain_label(label) for label in self.target],
            "cost": finite_or_none(self.cost),
            "cost_scales": [*self.scales],
            "lower_bound": finite_or_none(self.lower_bound),
            "gap": finite_or_none(self.gap),
            "resolution": finite_or_none(self.resolution),
            "confidence": self.confidence,
            "prototype": self.prototype,
            "original": by_name(self.features, with_gaps(self.original_values, self.missing)),
            "x": by_name(self.features, self.values_with_gaps) if has_answer else None,
            "missing": [
                name for name, gap in zip(self.feature_names, self.missing, strict=True) if gap
            ],
            "changes": [plain_change(change) for change in self.changes],
            "conflict": [str(item) for item in self.conflict],
            "conflict_is_irreducible": self.conflict_is_irreducible,
            "conflict_has_confidence": self.conflict_has_confidence,
            "conflict_ranges": [str(item) for item in self.conflict_ranges],
            "conflict_steps": [*self.conflict_steps],
            "has_target": self.has_target,
            "broken": [str(item) for item in self.broken],
            "within_rules": None if within is None else within.to_dict(shown=shown),
            "reason": "" if has_answer else self.reason,
            "found_by": self.reason if has_answer else "",
            "response": plain_reply(self.exact_reply),
            "predict_proba_favours": plain_favour(self.disagreement),
            "shown": self._plain_shown() if shown else None,
        }

    def _plain_shown(self) -> dict[str, Any]:
        has_answer = self.status.has_answer
        row = self._gapped(self.shown.values)
        return {
            "x": by_name(self.features, row) if has_answer else None,
            "cost": finite_or_none(self.shown.cost),
            "response": plain_reply(self.reply),
        }

    def __str__(self) -> str:
        if self.status is Status.INVALID:
            return f"Counterfactual ({self.status})\n  {self.text()}"
        proof = visible(self._proof_line())
        if not self.status.has_answer:
            return f"Counterfactual ({self.status})\n  {self.text()}\n  {proof}"
        noun = "class" if noun_of(self.part) == "answer" else self.part
        reply = [] if self.reply is None else [f"  {self.reply.text()}"]
        changes = self.shown_changes
        unchanged = len(self.feature_names) - len(changes)
        said = Sentences(self, PLAIN)
        lines = [
            f"Counterfactual ({self.status})",
            f"  {noun:<7} {shown_repr(self.original_prediction)} -> {shown_repr(self.prediction)}",
            *reply,
            *favour_lines(self.prediction, self.disagreement),
            *([f"  breaks  {said.broken_words()}, as it is"] if self.broken else []),
            *table_lines(changes, unchanged, int(self.stays_missing.sum())),
            f"  cost    {self._printed().cost}{scale_words(self.scales)}",
            f"  proof   {proof}",
        ]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Show the answer in a notebook."""
        notes = favour_lines(self.prediction, self.disagreement)
        return answer_card(self, self.text(), visible(self._proof_line()), notes)

    def _printed(self) -> ShownProof:
        return shown_proof(self.shown.cost, self.cost, self.lower_bound)

    @property
    def kept_words(self) -> str:
        """What the bound is about beyond labels and constraints, as in "no counterfactual with"."""
        if self.confidence:
            return f" with {self.confidence}"
        return f" that keeps the margin of {self.margin:g}" if self.margin else ""

    def _proof_line(self) -> str:
        return proof_words(
            self.status, self.reason, self.kept_words, self.lower_bound, self.gap, self._printed
        )

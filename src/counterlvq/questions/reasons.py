"""Why the model says what it says: few features that settle the decision, whatever the others do.

A set of features is a sufficient reason if no input that agrees with the given one in them, and
lies within the ranges, gets another label. It is found as a conflict between "keep this feature"
for each feature and "have another label", and proved as any clash of constraints is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.certificates.judged import Verdict
from counterlvq.errors import InvalidInputError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats, plain, told
from counterlvq.presentation.question_cards import Listing, question_card
from counterlvq.presentation.rows import value_words
from counterlvq.presentation.sentences import noun_of
from counterlvq.presentation.wording import PLAIN, Wording, listed
from counterlvq.problem.at_most import AtMost
from counterlvq.problem.constraint_text import plain_words, with_unit
from counterlvq.problem.constraints import Constraint, Freeze
from counterlvq.problem.data_ranges import AsSeen
from counterlvq.problem.expressions import as_constraint
from counterlvq.problem.plausibility import Plausible
from counterlvq.problem.targets import wished_prototypes
from counterlvq.questions.free_ranges import (
    FreeRanges,
    is_about_change,
    limits_further,
    listed_columns,
)
from counterlvq.questions.protocol import Asks, Terms, read_whole_row, refuse_rows
from counterlvq.questions.range_words import range_words, value_range
from counterlvq.questions.ranges import Ranges
from counterlvq.results import Counterfactual
from counterlvq.safe_text import shown_repr, shown_text
from counterlvq.search.conflicts import smallest_conflict
from counterlvq.search.deadline import Deadline
from counterlvq.search.few_changes import changed_columns
from counterlvq.search.result import SearchContext
from counterlvq.search.strategies import Exact, found_room
from counterlvq.tables.encoding import written
from counterlvq.tables.feature import Feature
from counterlvq.tables.features import FeatureKey, Features
from counterlvq.types import Kind, Method, Status

__all__ = ["Reasons", "reasons_of"]

# What has no part in a reason.
_PLAIN: Mapping[str, Any] = {"margin": None, "confidence": None, "is_sure": False}
# Boxes that branch and bound may take for one set of features: enough for a few features of a
# table, and an end for what cannot be decided.
_BOXES = 2000
# One over the share of the time left that one set of features may take.
_SHARES = 4.0
# Ranges of free features that are printed, and constraints that a sentence names.
_SHOWN_RANGES, _SHOWN_CONSTRAINTS = 20, 10


@final
@dataclass(frozen=True, eq=False, repr=False)
class Reasons:
    """Features that settle a decision, with the proof that they do.

    Attributes
    ----------
    features : tuple of str
        The features of the reason, in the order of preference. As long as they keep their values
        the decision stays the same, whatever the others do within their ranges and under
        `constraints`.
    prediction : label
        The decision.
    witnesses : mapping from str to Counterfactual
        For each of the features the closest input with another label that appears when this one
        is set free, too.
    status : Status
        OPTIMAL: proved, and none of the features can be left out. FEASIBLE: proved, but whether
        some can be left out is not known. UNKNOWN: not proved; `features` are all of them.
    proof : Counterfactual or None
        That there is no input with another label: of status INFEASIBLE, with its certificate.
        ``asked.verify(proof)`` checks it and returns inf. None if it could not be proved.
    asked : Explainer
        The explainer that keeps the features of the reason, the ranges and `constraints`.
    row : tuple
        The input, in the types of its columns.
    ranges : mapping from str to tuple or frozenset
        For each feature that is not in the reason, the lowest and the highest value that it may
        have, or the set of its levels or listed values. Of a value outside of what was seen in data
        the range reaches as far as that value.
    constraints : tuple of Constraint or str
        Constraints that limit these features beyond their ranges, such as ``"a + b <= 1.5"`` or
        ``"if a > 1 then b <= 2"``, as far as the reason needs them: nothing is said of inputs
        that break them.

    Examples
    --------
    >>> import counterlvq as clvq
    >>> model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 1.0]], ["no", "yes"], None, ["a", "b"])
    >>> explainer = clvq.Explainer(model, constraints=["0 <= a", "a <= 5", "0 <= b", "b <= 2"])
    >>> why = explainer.reasons([1.0, 1.0])
    >>> why.features
    ('a',)
    >>> print(why)
    The answer is no because a is 1: it stays so whatever the other features do within their ranges.
      b from 0 to 2
    >>> why.ranges["b"]
    (0.0, 2.0)
    """

    features: tuple[str, ...]
    prediction: Any
    witnesses: Mapping[str, Counterfactual]
    status: Status
    proof: Counterfactual | None
    asked: Asks
    row: tuple[Any, ...]
    ranges: Mapping[str, Any]
    constraints: tuple[Constraint | str, ...] = ()

    def text(
        self,
        *,
        subject: str = "The answer",
        outcome: Mapping[Any, str] | None = None,
        numbers: str = "1,234.5",
        dates: str = "2024-05-31",
        ranges: bool = False,
    ) -> str:
        """Say the reason in a sentence; the arguments are those of `Counterfactual.text`.

        With `ranges` a second sentence says those of the other features.
        """
        subject = f"The {self._noun}" if subject == "The answer" else subject
        wording = Wording(subject, outcome or {}, numbers=numbers, dates=dates)
        wording = wording.checked(self.asked.model.classes.tolist())
        parts = self._range_words(wording) if ranges else []
        behind = f" Ranges: {'; '.join(parts)}." if parts else ""
        return self._sentence(wording) + behind

    @property
    def _noun(self) -> str:
        """What the model says: an answer, or a cluster or component."""
        return noun_of(self.asked.model.meaning.part)

    def _sentence(self, wording: Wording) -> str:
        columns, label = self.asked.features, wording.called(self.prediction)
        said = f"{wording.opening} is {label}"
        if self.status is Status.UNKNOWN:
            return f"{said}; which features settle that was not found out."
        keeping = self._keeping(wording)
        stays = f"it stays so whatever the other features do within their ranges{keeping}"
        if not self.features:
            return f"{said} whatever the features are within their ranges{keeping}."
        if len(self.features) == len(columns):
            stays = "none of them can be left out"
        at = [columns.position(name) for name in self.features]
        parts = [_phrase(columns.columns[j], self.row[j], wording) for j in at]
        fewer = "" if self.status is Status.OPTIMAL else " (fewer of these may do)"
        if len(self.features) == len(columns) and fewer:
            return f"{said} because {listed(parts)}{fewer}."
        return f"{said} because {listed(parts)}{fewer}: {stays}."

    def _keeping(self, wording: Wording) -> str:
        """Name the constraints that the other features were held to."""
        words = [f'"{shown_text(rule)}"' for rule in self._rules(wording)[:_SHOWN_CONSTRAINTS]]
        if more := len(self.constraints) - len(words):
            words.append(f"{more} more constraint{'s' if more > 1 else ''}")
        return f", as long as they keep {listed(words)}" if words else ""

    def _range_words(self, wording: Wording) -> list[str]:
        pairs = self.ranges.items()
        columns = self.asked.features
        return [range_words(columns[name], found, wording, None) for name, found in pairs]

    def _rules(self, wording: Wording = PLAIN) -> list[str]:
        return [plain_words(c, self.asked.features, wording.value) for c in self.constraints]

    def __getstate__(self) -> dict[str, Any]:
        """Travel with the mappings themselves: views of them cannot be pickled."""
        return {
            name: dict(value) if isinstance(value, MappingProxyType) else value
            for name, value in self.__dict__.items()
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        kept = {n: MappingProxyType(v) if isinstance(v, dict) else v for n, v in state.items()}
        self.__dict__.update(kept)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the proof, as plain values that JSON can hold."""
        label = plain(self.prediction)
        pairs = dict(zip(self.asked.features.names, self.row, strict=True))
        kinds = (str, int, float)
        return {
            "status": str(self.status),
            "prediction": label if isinstance(label, kinds) else str(label),
            "features": list(self.features),
            "values": {
                name: pairs[name] if isinstance(pairs[name], kinds) else str(pairs[name])
                for name in self.features
            },
            "ranges": Ranges(self.ranges, self.prediction, self.asked.features).to_dict(),
            "constraints": self._rules(),
            "witnesses": {name: cf.to_dict() for name, cf in self.witnesses.items()},
            "text": self.text(),
        }

    def __str__(self) -> str:
        lines = [f"  {words}" for words in self._range_words(PLAIN)[:_SHOWN_RANGES]]
        if more := len(self.ranges) - len(lines):
            lines.append(f"  and {more} more feature{'s' if more > 1 else ''}, see `ranges`")
        return "\n".join([self.text(), *lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Show the reason in a notebook."""
        columns = self.asked.features
        pairs = dict(zip(columns.names, self.row, strict=True))
        own = [
            (
                shown_text(columns[name].spoken),
                value_words(columns[name], pairs[name]),
                shown_text(self.witnesses[name].prediction) if name in self.witnesses else "–",
            )
            for name in self.features
        ]
        free = [
            (shown_text(columns[name].spoken), value_range(columns[name], found, PLAIN, None))
            for name, found in self.ranges.items()
        ]
        settling = Listing("What settles it", ("feature", "value", "set free, it may be"), own)
        others = Listing("Whatever these are", ("feature", "values"), free)
        return question_card("Reasons", [self.text()], [settling, others])


def _phrase(feature: Feature, value: Any, wording: Wording = PLAIN) -> str:
    if feature.kind is Kind.BOOLEAN and feature.words(value) != str(value):
        return f"it is {shown_text(feature.words(value))}"
    name = shown_text(feature.spoken)
    if feature.kind is Kind.BOOLEAN:
        return f"{name} is {'yes' if value else 'no'}"
    is_plain = feature.has_numbers and feature.words(value) == str(value)
    if not feature.is_number and not is_plain:
        return f"{name} is {shown_text(feature.words(value))}"
    return f"{name} is {shown_text(with_unit(feature, wording.value(feature, value)))}"


def reasons_of(asked: Asks, x: Any, order: Sequence[FeatureKey] | None = None) -> Reasons:
    """Find a subset-minimal sufficient reason; see `Explainer.reasons`."""
    deadline = Deadline.after(asked.time_limit)
    names = _ordered(asked.features, order)
    refuse_rows(x, "reasons", "reasons")
    given = asked._source.seen(x, is_row=True)
    row = read_whole_row(asked, given, "reasons")
    ranges = tuple(item for item in asked.constraints if _is_absolute(item, asked.features))
    held = tuple(map(Freeze, names))
    every = asked.asking_for(constraints=(*ranges, *held), **_PLAIN)
    with np.errstate(all="ignore"):  # what overflows proves nothing, and is not accepted
        _check_ranges(asked.asking_for(constraints=ranges, **_PLAIN), row)
        now = _verdict(every, row)
        kept, members = _settling(every, row, now, names, deadline.shared(2.0))
    label, target = _decision(every, now)
    terms = Terms(False, False, now=now)

    def keeping_only(some: Iterable[int], stated: Iterable[Constraint | str] = ranges) -> Asks:
        return asked.asking_for(constraints=(*stated, *(held[k] for k in some)), **_PLAIN)

    keeping = keeping_only(members, [ranges[k] for k in kept])
    proof = _proof(keeping, row, target, terms, deadline)
    if proof is None and len(members) < len(names):
        # What was shown of a few is not shown again in the time that is left: of all it is.
        members, keeping = range(len(names)), every
        proof = _proof(keeping, row, target, terms, deadline)
    chosen, is_proved = [names[k] for k in members], proof is not None
    witnesses: dict[str, Counterfactual] = {}
    for count, k in enumerate(members if is_proved else ()):
        asking = terms._replace(deadline=deadline.shared(len(members) - count))
        found = keeping_only(j for j in members if j != k).answered(row, target, terms=asking)
        if found.status.has_answer:
            fill = partial(asked._source.like_one, given)
            witnesses[names[k]] = replace(found, as_given=fill(found.values), fill=fill)
    settled = tuple(chosen if is_proved else names)
    free = FreeRanges.of(keeping.prepared_for(row), row, settled)
    shown = len(witnesses) == len(chosen)
    status = Status.OPTIMAL if shown else Status.FEASIBLE
    types = zip(row.tolist(), asked.features, strict=True)
    return Reasons(
        features=settled,
        prediction=label,
        witnesses=MappingProxyType(witnesses),
        status=status if is_proved else Status.UNKNOWN,
        proof=proof if is_proved else None,
        asked=keeping,
        row=tuple(plain(written(np.array([value]), feature)[0]) for value, feature in types),
        ranges=MappingProxyType(free.ranges),
        constraints=free.constraints,
    )


def _ordered(features: Features, order: Sequence[FeatureKey] | None) -> list[str]:
    """All names, those that are to be in a reason rather than others first."""
    if order is None:
        return list(features.names)
    if isinstance(order, str | bytes):
        raise InvalidInputError(
            f"order is {told(order)}; expected a list of features. Write order=[{told(order)}]."
        )
    if not np.iterable(order):
        raise InvalidInputError(
            f"order is {told(order)}; expected a list of features, by name or position."
        )
    first = [features.names[features.position(key)] for key in order]
    repeated = [name for k, name in enumerate(first) if name in first[:k]]
    if repeated:
        raise InvalidInputError(f"order names {repeated[0]!r} twice; expected each feature once.")
    return [*first, *(name for name in features.names if name not in first)]


def _is_absolute(item: Constraint | str, features: Features) -> bool:
    """Whether a constraint is about inputs as such, rather than about changes of one of them."""
    constraint = as_constraint(item)
    if isinstance(constraint, AsSeen | AtMost | Plausible):
        return isinstance(constraint, AsSeen)
    return not any(map(is_about_change, constraint.conditions(features)))


def _check_ranges(ranged: Asks, row: Floats) -> None:
    """Refuse features that matter and have no range, and inputs outside of the ranges."""
    view = ranged.prepared_for(row)
    factual, coordinates = view.inner(row), view.source.coordinates
    broken = view.broken_by(factual)
    if broken:
        words = shown_text(plain_words(broken[0], ranged.features, PLAIN.value))
        raise InvalidInputError(
            f'the input breaks "{words}" as it is, and others are compared with it within the '
            f"ranges; expected one that keeps them. Widen the range, or leave the constraint out."
        )
    matters, box = _matters(view.model), view.template.box(factual)
    listed_here = listed_columns(view, row)
    for j, (feature, span) in enumerate(zip(coordinates.features, coordinates.spans, strict=True)):
        if not feature.is_number or j in listed_here or not matters[span].any():
            continue
        if not all(np.isfinite(end[span]).all() for end in box):
            raise InvalidInputError(
                f"feature {shown_repr(feature.name)} has no range, and the decision depends on it; "
                f"expected a lowest and a highest value. Give it one with Bounds or Features, or "
                f"take all ranges from a table with constraints=within_data(X)."
            )


def _matters(model: PrototypeModel) -> NDArray[np.bool_]:
    """Which coordinates the decision depends on, (d,); some more where rounding hides it."""
    if model.is_local:
        return np.asarray(np.array([(F != 0).any(axis=0) for F in model.factors]).any(axis=0))
    apart = model.prototypes - model.prototypes[:1]
    if model.diagonal is not None:
        return np.asarray((apart * model.diagonal != 0).any(axis=0))
    if model.omegas is None:
        return np.asarray((apart != 0).any(axis=0))
    return np.asarray(((apart @ model.shared_factor.T) @ model.shared_factor != 0).any(axis=0))


def _verdict(asked: Asks, row: Floats) -> Verdict:
    view = asked.prepared_for(row)
    return view.rules.verdict(view.inner(row)[None, :])


def _decision(asked: Asks, now: Verdict) -> tuple[Any, list[Any]]:
    """Label of a row, and all others."""
    label = plain(asked.model.labels[int(now.prototype[0])])
    return label, [other for other in asked.model.classes.tolist() if other != label]


def _proof(
    keeping: Asks, row: Floats, target: Any, terms: Terms, deadline: Deadline
) -> Counterfactual | None:
    """Prove that no input with another label keeps some features; None where that fails."""
    ways = [keeping]
    if not isinstance(keeping.prepared_for(row).answers, Exact):
        ways.append(keeping.asking_for(method=Method.GLOBAL))  # which goes on for longer
    for asked in ways:
        asking = terms._replace(deadline=deadline.shared(2.0))
        proof = asked.answered(row, target, terms=asking)
        if proof.status is Status.INFEASIBLE:
            return proof
    return None


def _settling(
    every: Asks, row: Floats, now: Verdict, names: Sequence[str], deadline: Deadline
) -> tuple[Sequence[int], Sequence[int]]:
    """Which features settle the decision, as few as can be told, if all of them do.

    Their positions in `names`, behind those of the constraints on inputs that are needed for it:
    all ranges, and of what limits free features further as few as can be told. `every` has these
    constraints first, and then one that keeps each feature. That all features settle the decision
    is not asked: it takes a proof for each cell, and fewer need one as well.
    """
    ranges = len(every.constraints) - len(names)
    settles = _Settles(every, row, now, names, deadline)
    stated, held = list(range(ranges)), list(range(ranges, len(every.constraints)))
    settling = smallest_conflict(held, lambda some: settles([*stated, *some]))
    members = [k - ranges for k in settling]
    free = [every.features.position(name) for k, name in enumerate(names) if k not in members]
    view = every.prepared_for(row)
    further = [k for k in stated if limits_further(view.read(k), free)]

    def kept(some: Sequence[int]) -> list[int]:
        return [k for k in stated if k in some or k not in further]

    needed = smallest_conflict(further, lambda some: settles([*kept(some), *settling]))
    return kept(needed), members


@final
@dataclass(eq=False)
class _Settles:
    """Says whether it is proved that constraints and features that are kept settle a decision."""

    every: Asks
    row: Floats
    now: Verdict
    names: Sequence[str]
    deadline: Deadline
    known: dict[tuple[int, ...], bool] = field(init=False, default_factory=dict)
    # Of inputs with another label: the constraints that they meet, and what has not changed.
    others: list[tuple[frozenset[int], frozenset[int]]] = field(init=False, default_factory=list)

    def __call__(self, kept: Sequence[int]) -> bool:
        """Ask about some of the constraints of `every`, by position."""
        ranges = len(self.every.constraints) - len(self.names)
        stated = frozenset(k for k in kept if k < ranges)
        held = frozenset(kept) - stated
        if any(stated <= met and held <= same for met, same in self.others):
            return False
        key = tuple(kept)
        if key not in self.known:
            self.known[key] = not self.deadline.is_over() and self._is_proved(key, stated)
        return self.known[key]

    def _is_proved(self, kept: tuple[int, ...], stated: frozenset[int]) -> bool:
        view, row = self.every.prepared_for(self.row), self.row
        factual, ranges = view.inner(row), len(self.every.constraints) - len(self.names)
        target_mask = wished_prototypes(view.model, None, int(self.now.prototype[0]))
        view.answers.get_ready()
        question = view.answers.question(factual, target_mask)
        rules = replace(view.rules, template=view.template_with(list(kept)))
        context = SearchContext(rules, factual, target_mask, self.deadline.shared(_SHARES))
        found = found_room(view.answers, question, context, _BOXES)
        if found is None or found.answer is None:
            return found is not None
        changed = changed_columns(row, view.outer(found.answer.y, row))
        at = (self.every.features.position(name) for name in self.names)
        same = frozenset(ranges + k for k, j in enumerate(at) if j not in changed)
        self.others.append((stated, same))
        return False

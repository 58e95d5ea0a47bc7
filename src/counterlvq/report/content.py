"""What a page says about an answer, as plain values and sentences: no markup, no drawing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from counterlvq.certificates.boxes import BoxCertificate
from counterlvq.certificates.cellwise import CellCertificate
from counterlvq.errors import InvalidInputError
from counterlvq.explainer import Explainer
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import HELD_WITH_EQUALITY, SHOWN_ALIKE
from counterlvq.plots.plane_geometry import change_weights
from counterlvq.presentation.numbers import (
    bound_text,
    cost_text,
    cost_words,
    exact_text,
    gap_text,
    rough_text,
)
from counterlvq.presentation.wording import PLAIN, Wording
from counterlvq.problem.constraints import Constraint
from counterlvq.problem.costs import Cost, Euclidean, Mahalanobis, Manhattan
from counterlvq.problem.expressions import as_constraint
from counterlvq.problem.seen import AsSeen
from counterlvq.programs.conditions import LinearConditions, QuadraticCondition
from counterlvq.results import Counterfactual
from counterlvq.types import Scores, Status
from counterlvq.visible import shown_repr, shown_text, visible

__all__ = [
    "Answer",
    "Fact",
    "FeatureCount",
    "Pressure",
    "Rival",
    "Summary",
    "Value",
    "read_answer",
    "read_summary",
    "words_of",
]


# Letters of one constraint.
_LONGEST = 1000
# Seconds that asking again without one constraint may take under local metrics.
_PATIENCE = 5.0


@final
@dataclass(frozen=True)
class Fact:
    """One figure with its name."""

    name: str
    value: str


@final
@dataclass(frozen=True)
class Value:
    """One feature before and after; `weight` is the change as a share of the largest one."""

    feature: str
    before: str
    after: str
    change: str
    weight: float
    changed: bool


@final
@dataclass(frozen=True)
class Rival:
    """A prototype that stands against the answer, and what it charges."""

    name: str
    lead: str
    price: str


@final
@dataclass(frozen=True)
class Pressure:
    """A constraint that the answer leans on, and what lifting it would save."""

    constraint: str
    words: str


@final
@dataclass(frozen=True)
class Answer:
    """All that is said about one row."""

    name: str
    status: Status
    before: str  # label
    after: str  # label, or those that were wished for
    sentence: str
    facts: tuple[Fact, ...]
    values: tuple[Value, ...]
    proof: tuple[str, ...]
    rivals: tuple[Rival, ...]
    part: str  # what the rivals are: prototypes, clusters, classes
    pressures: tuple[Pressure, ...]
    check: str
    conflict: tuple[str, ...]
    conflict_is_irreducible: bool


@final
@dataclass(frozen=True)
class FeatureCount:
    """In how many answers a feature goes up and down."""

    feature: str
    raised: int
    lowered: int
    other: int


@final
@dataclass(frozen=True)
class Summary:
    """All that is said at the top."""

    facts: tuple[Fact, ...]
    setting: tuple[Fact, ...]
    features: tuple[FeatureCount, ...]
    answers: int


def words_of(constraint: Constraint | str) -> str:
    """Say a constraint as the user gave it."""
    return visible(str(constraint), _LONGEST)


def read_summary(explainer: Explainer, cfs: Sequence[Counterfactual]) -> Summary:
    """Say how the rows went, and what was asked of which model."""
    found = [cf for cf in cfs if cf.status.has_answer]
    ends = Counter(cf.status for cf in cfs)
    facts = [Fact("rows", f"{len(cfs):,}"), Fact("proved closest", f"{ends[Status.OPTIMAL]:,}")]
    for status, words in (
        (Status.FEASIBLE, "valid, a closer one not ruled out"),
        (Status.INFEASIBLE, "proved to have none"),
        (Status.UNKNOWN, "no answer found"),
        (Status.INVALID, "cannot be read"),
    ):
        if ends[status]:
            facts.append(Fact(words, f"{ends[status]:,}"))
    for count, words in (
        (sum(cf.has_target for cf in cfs), "have the target already"),
        (sum(bool(cf.broken) for cf in cfs), "break the constraints as they are"),
    ):
        if count:
            facts.append(Fact(words, f"{count:,}"))
    # A row that is right already says nothing about what the others need.
    found = [cf for cf in found if not cf.has_target]
    if found:
        facts.append(Fact("mean cost", rough_text(float(np.mean([cf.cost for cf in found])))))
        changed = float(np.mean([len(cf.changes) for cf in found]))
        facts.append(Fact("features changed per answer", f"{changed:.2f}"))
    model = explainer.model
    features = explainer.features
    part = model.meaning.part
    metric = f"a metric for each {part}" if model.is_local else "one metric"
    parts = f"{model.n_prototypes:,} {part}{_plural(part, model.n_prototypes)}"
    if part in ("prototype", "training row"):
        parts = f"{parts} of {len(model.classes)} classes"
    setting = (
        Fact("Model", f"{parts}, {len(features)} features, {metric}"),
        Fact("Cost", _cost_words(explainer.cost)),
        Fact("Constraints", _constraints_words(explainer)),
    )
    return Summary(tuple(facts), setting, _feature_counts(explainer, found), len(found))


def _constraints_words(explainer: Explainer) -> str:
    """List the user's constraints; ranges as seen in the data are counted, not listed."""
    listed = [item for item in explainer.constraints if isinstance(item, AsSeen)]
    ranges = [item for item in listed if item.is_about(explainer.features)]
    said = [words_of(item) for item in explainer.constraints if not isinstance(item, AsSeen)]
    if ranges:
        which = "its column" if len(ranges) == 1 else "their columns"
        count = "one number stays" if len(ranges) == 1 else f"{len(ranges):,} numbers stay"
        said.append(f"{count} in the range of {which} as seen in the data")
    return "; ".join(said) or "none"


def _feature_counts(
    explainer: Explainer, found: Sequence[Counterfactual]
) -> tuple[FeatureCount, ...]:
    counts: dict[str, Counter[str]] = {}
    for cf in found:
        for change in cf.changes:
            kind = "other"
            if change.is_number:
                kind = "raised" if change.difference > 0 else "lowered"
            counts.setdefault(change.feature, Counter())[kind] += 1
    listed = [
        FeatureCount(
            shown_text(explainer.features[name].spoken),
            kinds["raised"],
            kinds["lowered"],
            kinds["other"],
        )
        for name, kinds in counts.items()
    ]
    return tuple(sorted(listed, key=lambda use: -(use.raised + use.lowered + use.other)))


def read_answer(
    explainer: Explainer, cf: Counterfactual, name: str, wording: Wording = PLAIN
) -> Answer:
    """Say everything about one row."""
    if cf.status is Status.INVALID:
        return Answer(
            name=shown_text(name),
            status=cf.status,
            before="",
            after="",
            sentence=cf.text(**vars(wording)),
            facts=(),
            values=(),
            proof=(),
            rivals=(),
            part=cf.part,
            pressures=(),
            check="",
            conflict=(),
            conflict_is_irreducible=True,
        )
    proof, rivals = _proof(explainer, cf, wording)
    wish = " or ".join(map(shown_repr, cf.target))
    to = shown_repr(cf.prediction) if cf.status.has_answer else wish
    return Answer(
        name=shown_text(name),
        status=cf.status,
        before=shown_repr(cf.original_prediction),
        after=to,
        sentence=cf.text(**vars(wording)),
        facts=_facts(explainer, cf, wording),
        values=_values(explainer, cf, wording),
        proof=proof,
        rivals=rivals,
        part=cf.part,
        pressures=_pressures(explainer, cf, wording),
        check=_check(explainer, cf),
        conflict=tuple(words_of(item) for item in cf.conflict),
        conflict_is_irreducible=cf.conflict_is_irreducible,
    )


def _facts(explainer: Explainer, cf: Counterfactual, wording: Wording) -> tuple[Fact, ...]:
    if cf.status is Status.INFEASIBLE:
        return ()
    bound = Fact("no counterfactual below", wording.number(bound_text(cf.lower_bound)))
    if cf.status is Status.UNKNOWN:
        return (bound,)
    unit = _unit(explainer.cost)
    name = f"cost, in {unit}" if unit else "cost"
    cost = Fact(name, wording.number(cost_words(cf.shown.cost, cf.cost)))
    return cost, bound, Fact("gap", wording.number(gap_text(cf.gap)))


def _values(explainer: Explainer, cf: Counterfactual, wording: Wording) -> tuple[Value, ...]:
    """Every feature; those that change first, by what the change weighs."""
    weights = change_weights(explainer, cf)
    most = max(map(abs, weights.values()), default=0.0) or 1.0
    out = []
    for change in sorted(cf.shown_changes, key=lambda change: -abs(weights[change.feature])):
        behind = f" {shown_text(change.unit)}" if change.unit else ""
        _, before, after, by = change.cells(wording)
        values = (before, after, "")
        if change.is_number:
            values = (before + behind, after + behind, by.replace("-", "−", 1) + behind)
        weight = weights[change.feature] / most
        out.append(Value(change.spoken, *values, weight=weight, changed=True))
    rows = zip(cf.features, cf.original.tolist(), cf.missing, strict=True)
    for feature, value, is_missing in rows:
        if feature.name not in weights and is_missing:
            spoken = shown_text(feature.spoken)
            out.append(Value(spoken, "missing", "missing", "", 0.0, changed=False))
        elif feature.name not in weights:
            same = shown_text(feature.words(value))
            if feature.is_number:
                unit = f" {shown_text(feature.unit)}" if feature.unit else ""
                same = wording.number(exact_text(value, feature)) + unit
            out.append(Value(shown_text(feature.spoken), same, same, "", 0.0, changed=False))
    return tuple(out)


def _proof(
    explainer: Explainer, cf: Counterfactual, wording: Wording
) -> tuple[tuple[str, ...], tuple[Rival, ...]]:
    """Say what the certificate shows, and whom it charges."""
    if cf.status.has_answer and not cf.changes:
        return ("The input has a wished-for label already, so that nothing is to be proved.",), ()
    if cf.status is Status.INFEASIBLE:
        return (
            f"That there is none is proved, not given up on: for every {cf.part} with a wished-for "
            "label there are prices at which the constraints and the rivals contradict each "
            "other, and adding them up again takes no solver.",
        ), ()
    bound = wording.number(bound_text(cf.lower_bound))
    if cf.lower_bound <= 0:
        return ("Nothing is proved about closer counterfactuals: the bound is 0.",), ()
    limits = " and keeps the constraints" if explainer.constraints else ""
    label = "still gets another label"
    if cf.margin:
        label = f"gets another label still, or a wished-for one by less than {cf.margin:g}"
    if cf.confidence:
        label = f"gets another label still, or a wished-for one without {cf.confidence}"
    meaning = (
        f"Every input that costs less than {bound} to reach{limits} {label}. "
        f"That is proved for all of them, not sampled."
    )
    rivals, words = _charges(explainer, cf)
    return (meaning, _closing(cf, wording), *words), rivals


def _closing(cf: Counterfactual, wording: Wording) -> str:
    if cf.status is Status.UNKNOWN:
        return "No answer was found within the limits; there may be one above this bound."
    if cf.status is Status.OPTIMAL:
        return f"{_own_cost(cf, wording)}, so that no other can be noticeably closer."
    return (
        f"{_own_cost(cf, wording)}: a closer one, between the two, is not ruled out "
        f"({wording.number(gap_text(cf.gap))} of the cost is open)."
    )


def _own_cost(cf: Counterfactual, wording: Wording) -> str:
    own, shown = (wording.number(cost_text(cost)) for cost in (cf.cost, cf.shown.cost))
    return f"The answer costs {own}" + ("" if own == shown else " before its numbers are rounded")


def _charges(explainer: Explainer, cf: Counterfactual) -> tuple[tuple[Rival, ...], tuple[str, ...]]:
    """Say whom the certificate charges, for the cell that the answer lies in."""
    certificate = cf.certificate
    if isinstance(certificate, BoxCertificate):
        return (), (_boxes(certificate, cf.part),)
    if not isinstance(certificate, CellCertificate):
        return (), ()
    proofs = certificate.proofs
    own = next((proof for proof in proofs if proof.prototype == cf.prototype), None)
    if own is None or not own.rivals.size:
        return (), ()
    is_score = explainer.model.meaning.scores is Scores.SHIFTED
    unit = "score" if is_score else "squared distance"
    view = explainer._view(cf.original_values)
    distance = view.model.distances(view.inner(cf.original_values)[None, :])[0]
    leads = distance[own.prototype] - distance[own.rivals]
    rivals = tuple(
        Rival(_named(explainer, k, ", {}"), rough_text(float(lead)), rough_text(float(price)))
        for k, lead, price in zip(own.rivals.tolist(), leads, own.rival_prices, strict=True)
    )
    words = [
        f"The answer lies in the cell of {explainer.model.meaning.part} "
        f"{_named(explainer, own.prototype, ' ({})')}. "
        f"The rivals below stand in the way; a price says what one unit of {unit} less "
        f"between them would save."
    ]
    total = float(leads @ own.rival_prices)
    if isinstance(explainer.cost, Manhattan) and _close(total, cf.lower_bound):
        words.append("Leads times prices add up to the bound.")
    far = certificate.singles.prototypes.tolist()
    others = len({*far, *(proof.prototype for proof in proofs)} - {own.prototype})
    if others:
        words.append(f"{_count(others, 'other wished-for cell')} proved to be no closer alike.")
    return rivals, tuple(words)


def _named(explainer: Explainer, k: int, more: str) -> str:
    """Name a prototype: by its number and its label, or by the label alone where that is it."""
    label = shown_repr(explainer.model.labels.tolist()[k])
    if explainer.model.meaning.part in ("prototype", "training row"):
        return f"{k}{more.format(label)}"
    return label


def _boxes(forest: BoxCertificate, part: str) -> str:
    parts = sum(int((tree.feature < 0).sum()) for tree in forest.trees)
    return (
        f"The proof cuts all cheaper changes into {parts:,} box{'' if parts == 1 else 'es'} over "
        f"{len(forest.trees)} wished-for {part}{_plural(part, len(forest.trees))}, with "
        f"prices for each."
    )


def _plural(word: str, count: int) -> str:
    return "" if count == 1 else "es" if word.endswith("s") else "s"


def _count(number_of: int, what: str) -> str:
    return f"{number_of} {what} is" if number_of == 1 else f"{number_of:,} {what}s are"


def _close(a: float, b: float) -> bool:
    """Whether two costs agree to the six digits that a page shows."""
    return abs(a - b) <= SHOWN_ALIKE * max(abs(a), abs(b))


def _pressures(explainer: Explainer, cf: Counterfactual, wording: Wording) -> tuple[Pressure, ...]:
    """Say what lifting each constraint that the answer leans on would save, asked anew.

    Those that save nothing by themselves are left out.
    """
    if not cf.status.has_answer or not cf.changes:
        return ()
    out = []
    for k, item in enumerate(explainer.constraints):
        if not _leans(explainer, item, cf):
            continue
        whole = replace(cf, gaps=None).original.tolist()
        row = dict(zip(cf.feature_names, whole, strict=True))
        try:
            other = _without(explainer, k)
        except InvalidInputError:  # it alone keeps answers to changes of level that have a price
            out.append(Pressure(words_of(item), "excludes changes of level that have no price"))
            continue
        freed = other.explain(row, target=set(cf.target))
        # What is saved has to be seen in the digits of a page.
        if not freed.status.has_answer or cost_text(freed.cost) == cost_text(cf.cost):
            continue
        if freed.cost >= cf.cost:
            continue
        least = "" if freed.status is Status.OPTIMAL else "at least "
        saved, now, then = (
            wording.number(cost_text(cost)) for cost in (cf.cost - freed.cost, cf.cost, freed.cost)
        )
        words = f"lifting it would save {least}{saved} of {now}, for a cost of {then}"
        out.append(Pressure(words_of(item), words))
    return tuple(out)


def _without(explainer: Explainer, k: int) -> Explainer:
    limit = explainer.time_limit
    if explainer.model.is_local or not all(feature.is_real for feature in explainer.features):
        limit = _PATIENCE if limit is None else min(limit, _PATIENCE)
    return explainer.without(k, time_limit=limit)


def _leans(explainer: Explainer, item: Constraint | str, cf: Counterfactual) -> bool:
    """Whether an answer may lean on a constraint, as far as is seen without asking again."""
    y, x = cf.values, cf.original_values
    if isinstance(item, AsSeen):
        if not item.is_about(explainer.features):
            return False
        # A range leaves room that nobody can use between its end and the next value of a grid.
        j = explainer.features.position(item.feature)
        step = explainer.features.columns[j].grid or HELD_WITH_EQUALITY * max(abs(y[j]), abs(x[j]))
        return bool(y[j] != x[j] and (y[j] + step > item.upper or y[j] - step < item.lower))
    has_grid = any(feature.grid is not None for feature in explainer.features)
    for condition in as_constraint(item).conditions(explainer.features):
        if isinstance(condition, QuadraticCondition):
            if -condition.excess(y) <= HELD_WITH_EQUALITY * condition.magnitude(y):
                return True
        elif isinstance(condition, LinearConditions):
            room: Floats = condition.v - condition.A @ y - condition.R @ x
            # Between two whole numbers there is room that nobody can use.
            if has_grid or (room <= HELD_WITH_EQUALITY * condition.magnitude(y, x)).any():
                return True
        else:  # about levels, of which a rule leaves some and no others
            return True
    return False


def _check(explainer: Explainer, cf: Counterfactual) -> str:
    if not cf.status.has_answer or not cf.changes:
        return ""
    again = explainer.verify(cf)
    same = again == cf.lower_bound or _close(again, cf.lower_bound)
    return (
        f"Explainer.verify adds the prices up again without any solver; done while this page was "
        f"written, it gave {bound_text(again)}, {'the same' if same else 'not the bound above'}."
    )


def _cost_words(cost: Cost) -> str:
    """Say which cost it is, and what other levels cost where that was said."""
    switches = [
        f"another {shown_text(name)} costs what was said for each pair of levels"
        if isinstance(price, Mapping)
        else f"another {shown_text(name)} costs {rough_text(float(price))}"
        for name, price in cost.switches.items()
    ]
    return "; ".join([_distance_words(cost), *switches])


def _unit(cost: Cost) -> str:
    return cost.unit if isinstance(cost, Manhattan) else ""


def _distance_words(cost: Cost) -> str:
    """Say which distance it is; weights and matrices of many features are too much to read."""
    if isinstance(cost, Manhattan) and cost.unit:
        return f"sum of all changes, in {shown_text(cost.unit)}"
    if isinstance(cost, Manhattan) and isinstance(cost.weights, np.ndarray):
        low, high = (rough_text(float(end)) for end in (cost.weights.min(), cost.weights.max()))
        return f"Manhattan distance, weighted by feature (from {low} to {high} per unit)"
    if isinstance(cost, Mahalanobis):
        return f"squared generalised distance, by a matrix of {len(cost.matrix)} features"
    known = {Manhattan: "Manhattan distance", Euclidean: "squared Euclidean distance"}
    return known.get(type(cost)) or shown_repr(cost, _LONGEST)

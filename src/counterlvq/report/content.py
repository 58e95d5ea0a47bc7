"""What a page says about one answer, as plain values and sentences: no markup, no drawing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from counterlvq.errors import InvalidInputError
from counterlvq.explainer import Explainer
from counterlvq.markup.parts import Fact, FeatureValue
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import HELD_WITH_EQUALITY
from counterlvq.plots.plane_geometry import change_weights
from counterlvq.presentation.bounds import shown_proof
from counterlvq.presentation.numbers import bound_text, cost_text
from counterlvq.presentation.question import words_of
from counterlvq.presentation.rows import feature_values
from counterlvq.presentation.wording import PLAIN, Wording
from counterlvq.problem.at_most import AtMost
from counterlvq.problem.chebyshev import Chebyshev
from counterlvq.problem.constraints import Constraint, MinChange
from counterlvq.problem.costs import Manhattan
from counterlvq.problem.data_ranges import AsSeen
from counterlvq.problem.expressions import as_constraint
from counterlvq.problem.plausibility import Plausible
from counterlvq.programs.conditions import LinearConditions, QuadraticCondition
from counterlvq.report.proof import Rival, check_words, proof_words
from counterlvq.results import Counterfactual
from counterlvq.safe_text import shown_repr, shown_text
from counterlvq.types import Status

__all__ = ["Answer", "Pressure", "read_answer"]

# Seconds that asking again without one constraint may take under local metrics.
_PATIENCE = 5.0


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
    values: tuple[FeatureValue, ...]
    proof: tuple[str, ...]
    rivals: tuple[Rival, ...]
    part: str  # what the rivals are: prototypes, clusters, classes
    pressures: tuple[Pressure, ...]
    check: str
    conflict: tuple[str, ...]
    conflict_is_irreducible: bool


def _called(label: Any, wording: Wording) -> str:
    """Name a class as the user calls it; as it is, between quotes, without a name."""
    return wording.called(label) if label in wording.outcome else shown_repr(label)


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
    proof, rivals = proof_words(explainer, cf, wording)
    wish = " or ".join(_called(label, wording) for label in cf.target)
    to = _called(cf.prediction, wording) if cf.status.has_answer else wish
    return Answer(
        name=shown_text(name),
        status=cf.status,
        before=_called(cf.original_prediction, wording),
        after=to,
        sentence=cf.text(**vars(wording)),
        facts=_facts(explainer, cf, wording),
        values=feature_values(cf, change_weights(explainer, cf), wording),
        proof=proof,
        rivals=rivals,
        part=cf.part,
        pressures=_pressures(explainer, cf, wording),
        check=check_words(explainer, cf, wording),
        conflict=tuple(
            words_of(item, cf.features, wording) for item in (*cf.conflict, *cf.conflict_ranges)
        ),
        conflict_is_irreducible=cf.conflict_is_irreducible,
    )


def _facts(explainer: Explainer, cf: Counterfactual, wording: Wording) -> tuple[Fact, ...]:
    if cf.status is Status.INFEASIBLE:
        return ()
    below = "no counterfactual below"
    if cf.status is Status.UNKNOWN:
        return (Fact(below, wording.number(bound_text(cf.lower_bound))),)
    unit = explainer.cost.unit if isinstance(explainer.cost, Manhattan | Chebyshev) else ""
    name = f"cost, in {unit}" if unit else "cost"
    printed = shown_proof(cf.shown.cost, cf.cost, cf.lower_bound)
    texts = (name, printed.cost), (below, printed.bound), ("gap", printed.gap)
    return tuple(Fact(name, wording.number(text)) for name, text in texts)


def _pressures(explainer: Explainer, cf: Counterfactual, wording: Wording) -> tuple[Pressure, ...]:
    """Say what lifting each constraint that the answer leans on would save, asked anew.

    Those that save nothing by themselves are left out.
    """
    if not cf.status.has_answer or not cf.changes:
        return ()
    out = []
    for k, item in enumerate(explainer.constraints):
        # That trifles are left out is nobody's wish, and saves a trifle each.
        is_usual = isinstance(item, MinChange) and item.is_default
        if is_usual or not _leans(explainer, item, cf):
            continue
        # Missing values stay missing: what stands in for one need not be a value of its column.
        row = dict(zip(cf.feature_names, cf.original.tolist(), strict=True))
        said = words_of(item, cf.features, wording)
        try:
            other = _without(explainer, k)
        except InvalidInputError:  # it alone keeps answers to changes of level that have a price
            out.append(Pressure(said, "excludes changes of level that have no price"))
            continue
        freed = other.explain(row, target=set(cf.target))
        words = _saving(cf, freed, wording)
        if words:
            out.append(Pressure(said, words))
    return tuple(out)


def _saving(cf: Counterfactual, freed: Counterfactual, wording: Wording) -> str:
    """Say what lifting a constraint would save; empty where nothing is proved or seen to be."""
    # Of an answer that is not proved closest, a part may be saved without lifting anything.
    is_sure = cf.status is Status.OPTIMAL
    least = cf.cost if is_sure else cf.lower_bound
    # What is saved has to be seen in the digits of a page.
    if not freed.status.has_answer or cost_text(freed.cost) == cost_text(least):
        return ""
    if freed.cost >= least:
        return ""
    amount = "" if is_sure and freed.status is Status.OPTIMAL else "at least "
    saved, now, then = (
        wording.number(cost_text(cost)) for cost in (least - freed.cost, least, freed.cost)
    )
    whole = "" if is_sure else "the proved "
    return f"lifting it would save {amount}{saved} of {whole}{now}, for a cost of {then}"


def _without(explainer: Explainer, k: int) -> Explainer:
    limit = explainer.time_limit
    if explainer.model.is_local or not all(feature.is_real for feature in explainer.features):
        limit = _PATIENCE if limit is None else min(limit, _PATIENCE)
    return explainer.without(k, time_limit=limit)


def _leans(explainer: Explainer, item: Constraint | str, cf: Counterfactual) -> bool:
    """Whether an answer may lean on a constraint, as far as is seen without asking again."""
    y, x = cf.values, cf.original_values
    if isinstance(item, AsSeen | AtMost):
        return _leans_on_values(explainer, item, y, x)
    if isinstance(item, Plausible):
        return True  # a union, of which some part holds the answer
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


def _leans_on_values(explainer: Explainer, item: AsSeen | AtMost, y: Floats, x: Floats) -> bool:
    """Whether an answer is at the end of a range, or changes as much as may change."""
    if isinstance(item, AtMost):
        limit = item.limit(explainer.features)
        return sum(bool(y[j] != x[j]) for j in limit.columns) >= limit.most
    if not item.is_about(explainer.features):
        return False
    # A range leaves room that nobody can use between its end and the next value of a grid.
    j = explainer.features.position(item.feature)
    step = explainer.features.columns[j].grid or HELD_WITH_EQUALITY * max(abs(y[j]), abs(x[j]))
    # A value that stays may stay because the range ends there.
    is_at_end = not item.lower < y[j] < item.upper
    return bool(is_at_end or y[j] + step > item.upper or y[j] - step < item.lower)

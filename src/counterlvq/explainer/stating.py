"""State what a search found for one row: an answer, that there is none, or that nothing changes.

`asked` is the `OneRow` that was asked.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterlvq.certificates.box_questions import BoxQuestion
from counterlvq.certificates.questions import Question
from counterlvq.explainer.no_answer import WhyNot, everything, why_not
from counterlvq.numeric.arrays import Floats, plain, read_only
from counterlvq.prepared import Prepared, allowed_range
from counterlvq.presentation.numbers import cost_text
from counterlvq.problem.targets import labels_of
from counterlvq.questions.protocol import Terms
from counterlvq.results import Counterfactual
from counterlvq.search.result import SearchContext, SearchResult
from counterlvq.types import Status

__all__ = ["stated", "unchanged"]


def _without_margin(
    asked: Any, row: Floats, reason: str, context: SearchContext
) -> tuple[float, str]:
    """Say what there is without the margin that cannot be had: a bound, and words.

    In the time that is left.
    """
    limit = None if asked.time_limit is None else max(0.0, context.seconds_left())
    other = asked._asking(margin=None, time_limit=limit)
    found = other._answer(row, list(labels_of(asked.model, context.target_mask)))
    if found.status is Status.INFEASIBLE:
        return np.inf, reason
    cost = f"; without it one costs {cost_text(found.cost)}" if found.status.has_answer else ""
    return found.lower_bound, f"none keeps the margin of {asked.margin:g}{cost}"


def _within_rules(asked: Any, row: Floats, context: SearchContext) -> Counterfactual | None:
    """Find the closest row that meets the constraints, whatever the model says of it."""
    if context.target_mask.all():
        return None
    limit = None if asked.time_limit is None else max(0.0, context.seconds_left())
    other = asked._asking(margin=None, confidence=None, is_sure=False, time_limit=limit)
    found: Counterfactual = other._answer(row, asked.model.classes.tolist())
    return replace(found, check=other._check)


def unchanged(
    asked: Any, row: Floats, nearest: int, target_mask: NDArray[np.bool_]
) -> Counterfactual:
    """State that an input has a wished-for label already."""
    label = plain(asked.model.labels[nearest])
    return Counterfactual(
        values=row,
        original_values=row,
        status=Status.OPTIMAL,
        cost=0.0,
        lower_bound=0.0,
        gap=0.0,
        resolution=0.0,
        prediction=label,
        original_prediction=label,
        target=labels_of(asked.model, target_mask),
        prototype=nearest,
        features=asked.features,
        reason="the input has a wished-for label already",
        bound_with_margin=0.0,
        part=asked.model.meaning.part,
        labels=tuple(asked.model.classes.tolist()),
    )


def stated(
    asked: Any,
    row: Floats,
    view: Prepared,
    question: Question | BoxQuestion,
    context: SearchContext,
    find: SearchResult,
    prototype: int,
    nearest: int,
    terms: Terms,
) -> Counterfactual:
    """State what a search found, and what it proves."""
    verdict = view.verdict(question, find, context)
    status = verdict.status
    values = np.full(row.shape, np.nan)
    if find.answer is not None:
        values = view.outer(find.answer.y, row)
    read_only(values)
    steps = list(find.engines)
    if status in (Status.FEASIBLE, Status.UNKNOWN) and context.out_of_time():
        steps.append("the time limit was reached")
    why = WhyNot("; ".join(steps))
    if status is Status.INFEASIBLE and terms.find_clash:
        why = why_not(view, question, context, find)
    elif status is Status.INFEASIBLE:
        why = everything(view, why.words)
    bound, reason = verdict.bound, why.words
    if status is Status.INFEASIBLE and terms.find_clash and asked.margin and not asked.is_sure:
        bound, reason = _without_margin(asked, row, reason, context)
    broken = view.broken_by(question.x)
    return Counterfactual(
        values=values,
        original_values=row,
        status=status,
        cost=find.cost,
        lower_bound=bound,
        gap=verdict.gap,
        resolution=verdict.resolution,
        margin=asked.margin or 0.0,
        broken=broken,
        within_rules=_within_rules(asked, row, context) if broken and terms.meets_rules else None,
        prediction=None if prototype < 0 else plain(asked.model.labels[prototype]),
        original_prediction=plain(asked.model.labels[nearest]),
        target=labels_of(asked.model, context.target_mask),
        prototype=prototype,
        features=asked.features,
        reason=reason,
        bound_with_margin=bound,
        conflict=tuple(asked.constraints[k] for k in why.constraints),
        conflict_is_irreducible=why.is_irreducible,
        conflict_ranges=tuple(allowed_range(asked.features.columns[j]) for j in why.ranges),
        conflict_steps=tuple(asked.features.names[j] for j in why.steps),
        certificate=find.certificate,
        part=asked.model.meaning.part,
        scales=asked._source.scales,
        labels=tuple(asked.model.classes.tolist()),
    )

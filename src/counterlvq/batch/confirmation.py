"""The last word: the user's own `predict` is asked about every answer before it is given.

An answer leads its rivals by what the arithmetic of that `predict` needs, so it is confirmed as a
rule. One that is not is looked for again further in; what stays rejected is not called an answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from counterlvq.batch.engine import Table
from counterlvq.certificates.acceptance import MOST_PUSHES, Acceptance
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import CLOSED_GAP, FINER_CUSHION, HIDDEN_LEAD
from counterlvq.problem.targets import wished_prototypes
from counterlvq.results import Counterfactual
from counterlvq.search.result import SearchContext, SearchResult
from counterlvq.types import Status

__all__ = ["Asking", "confirm_table", "confirmed", "withdrawn"]

# These move answers away from the boundary or back to it, and no bound.
#
# A lead that the user's model rejects is multiplied by this.
_PUSH = 16.0
# Where a lead cannot be had, smaller ones are tried, each this share of the last.
_SHARE = 2.0**-6
# How often less is asked for beyond a confidence, while what an answer has is seen in the gap.
_FINER_TRIES = 3


def confirmed(
    question: object,
    context: SearchContext,
    search: Callable[[SearchContext], SearchResult],
    push: float,
) -> tuple[SearchResult, int]:
    """Search until the user's own `predict` confirms an answer; returns its prototype as well.

    Without one the result has no answer, and the prototype is -1.
    """
    find, prototype = _confirmed(question, context, search, push)
    rules = context.rules
    if prototype < 0 or not rules.is_sure or rules.model.is_local:
        return find, prototype
    return _brought_near(question, context, search, find, prototype)


def _brought_near(
    question: object,
    context: SearchContext,
    search: Callable[[SearchContext], SearchResult],
    find: SearchResult,
    prototype: int,
) -> tuple[SearchResult, int]:
    """Ask for less than the usual lead beyond a confidence, where that is seen in the gap."""
    rules, margin = context.rules, context.margin or 0.0
    for _ in range(_FINER_TRIES if rules.template.is_continuous else 0):
        find = find.checked(question, context)
        answer = find.answer
        if answer is None or find.bound is None or context.out_of_time():
            break
        if answer.gap(find.bound) <= CLOSED_GAP:
            break
        beyond = FINER_CUSHION * (rules.lead_at(answer.y, context.target_mask) - margin)
        closer = search(replace(context, least=margin + max(beyond, 0.0)))
        if closer.answer is None or not closer.cost < find.cost:
            break
        told = rules.confirms(closer.answer, context.target_mask)
        if told is None:
            break
        find, prototype = closer, told
    return find, prototype


def _confirmed(
    question: object,
    context: SearchContext,
    search: Callable[[SearchContext], SearchResult],
    push: float,
) -> tuple[SearchResult, int]:
    """As `confirmed`, with the lead that is usual."""
    rules, target_mask, X = context.rules, context.target_mask, context.x[None, :]
    least = push * rules.least_margin(X)
    smallest = least * _SHARE**2
    doubtful: list[SearchResult] = []
    for _ in range(MOST_PUSHES + 2):
        share = float(rules.open_share(X, target_mask, least)[0])
        asked = replace(context, least=float(least[0]), open_share=share)
        find = search(asked)
        if find.answer is None:
            find, lead = _other_lead(question, asked, find, smallest)
            if lead is None:
                break
            least = np.array([lead])
            continue
        if find.answer.is_confirmed:
            return find, find.answer.prototype
        Y = find.answer.y[None, :]
        assured = rules.is_assured(Y, target_mask)
        if assured[0]:
            prototype = rules.confirms(find.answer, target_mask, assured)
            if prototype is not None:
                return find, prototype
            least = _PUSH * np.maximum(least, rules.least_margin(Y))
        else:
            doubtful.append(find)
            least = _next_lead(rules, target_mask, Y, least)
            least = np.where((least > 0) & (least < smallest), 0.0, least)
        if not least[0] or context.out_of_time():
            break
    for spare in sorted(doubtful, key=lambda found: found.cost):
        assert spare.answer is not None
        prototype = rules.confirms(spare.answer, target_mask, np.array([False]))
        if prototype is not None:
            return spare, prototype
    return (find if find.answer is None else replace(find, answer=None, bound=None)), -1


def _other_lead(
    question: object, asked: SearchContext, find: SearchResult, smallest: Floats
) -> tuple[SearchResult, float | None]:
    """Say which lead to ask for where none was found with another; None where that is all."""
    missing = asked.missing_lead
    if asked.out_of_time():
        return find, None
    if asked.least < missing < np.inf:
        return find, missing
    if not asked.least or asked.below < np.inf:
        return find, None
    find = find.checked(question, asked)
    if find.is_excluded:
        return find, None
    # There may be room for a smaller lead, or for none.
    return find, _SHARE * asked.least if asked.least > smallest[0] else 0.0


def _next_lead(
    rules: Acceptance, target_mask: NDArray[np.bool_], Y: Floats, least: Floats
) -> Floats:
    """Ask for more where there was too little, and for less where it could not be had."""
    scores = rules.model.distances_of_checked(Y)
    lead = scores[:, ~target_mask].min(axis=1, initial=np.inf) - scores[:, target_mask].min(axis=1)
    # A lead that rounding hides counts as had: if it cannot be, asking for more says so.
    had = lead >= 0.5 * least - HIDDEN_LEAD * scores.max(axis=1)
    return np.where(had, rules.pushed(least, Y), _SHARE * least)


class Asking(Protocol):
    """Answers single rows of a batch again, and keeps what it finds."""

    def wish(self, i: int) -> Any:
        """Return what is wished for in a row."""

    def again(self, i: int, push: float) -> Counterfactual:
        """Answer a row further in."""

    def withdraw(self, i: int, why: str = "") -> Counterfactual:
        """Take back the answer of a row, and say why in words of one's own or the usual ones."""


def confirm_table(
    table: Table, says: Callable[[Floats], NDArray[Any]], model: PrototypeModel, asking: Asking
) -> None:
    """Ask the user's own `predict` about all answers of a batch in one call.

    Rows that it rejects are answered again further in and asked about again, all together.
    """
    push = 1.0
    for _ in range(MOST_PUSHES):
        rejected = _rejected(table, says, model, asking)
        push *= _PUSH
        for i in rejected:
            table.put(i, asking.again(i, push))
        if not rejected:
            return
    for i in _rejected(table, says, model, asking):
        table.put(i, asking.withdraw(i))


def _rejected(
    table: Table, says: Callable[[Floats], NDArray[Any]], model: PrototypeModel, asking: Asking
) -> list[int]:
    """Rows whose answer does not get a wished-for label among the others."""
    at = table.answered()
    if not at.size:
        return []
    told = np.asarray(says(table.X[at]))
    rejected = []
    for k in np.flatnonzero(told != model.labels[table.prototype[at]]):
        i = int(at[k])
        target_mask = wished_prototypes(model, asking.wish(i), int(table.nearest[i]))
        same = np.flatnonzero(target_mask & (model.labels == told[k]))
        if same.size:
            table.prototype[i] = same[0]
        else:
            rejected.append(i)
    return rejected


def withdrawn(answer: Counterfactual, why: str = "") -> Counterfactual:
    """State that there is no answer where there was one."""
    if not answer.status.has_answer:
        return answer
    return replace(
        answer,
        values=np.full(answer.values.shape, np.nan),
        status=Status.UNKNOWN,
        cost=np.inf,
        gap=np.inf,
        prediction=None,
        prototype=-1,
        conflict_is_irreducible=False,
        reason=why or "the model's own predict rejects what was found",
    )

"""Unions: the closest answer in any of several parts, each an ordinary question of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from counterlvq.certificates.unions import JoinedCertificate
from counterlvq.numeric.arrays import Floats, plain
from counterlvq.problem.constraints import Bounds
from counterlvq.problem.targets import labels_of, wished_prototypes
from counterlvq.questions.protocol import WHOLE, Asks, Terms
from counterlvq.results import Counterfactual
from counterlvq.types import Status

__all__ = [
    "Part",
    "Wish",
    "bounded",
    "confirmed_by",
    "ranges_of",
    "taken_back",
    "united",
    "verified",
    "wish_of",
]


class Part(NamedTuple):
    """An ordinary question: the closest answer of one label, by one explainer."""

    asked: Asks
    label: Any


class Wish(NamedTuple):
    """The labels of which any will do, and the nearest prototype of the input."""

    labels: tuple[Any, ...]
    nearest: int


def wish_of(asked: Asks, row: Floats, target: Any) -> Wish:
    """Say which labels are wished for, seen from a row."""
    view = asked.prepared_for(row)
    nearest = int(view.rules.verdict(view.inner(row)[None, :]).prototype[0])
    return Wish(labels_of(asked.model, wished_prototypes(asked.model, target, nearest)), nearest)


def united(
    asked: Asks,
    parts: Sequence[Part],
    row: Floats,
    wish: Wish,
    terms: Terms = WHOLE,
    floors: Sequence[float] | None = None,
) -> Counterfactual:
    """Find the closest answer of all parts; its bound is not put together yet, see `bounded`.

    With `floors`, what parts may cost at the least, the cheapest of these comes first, and what
    has been found bounds the search in all others. Each part keeps a certificate of its own, up
    to that cost: whether a floor is one at all decides how long it takes, and nothing else.
    """
    if not parts:
        raise AssertionError("a union has at least one part")
    is_to_clash = terms.find_clash
    terms = Terms(False, terms.meets_rules, deadline=terms.until(asked))
    if floors is None:
        found = [part.asked.answered(row, part.label, terms=terms) for part in parts]
    else:
        found = _cheapest_first(parts, row, terms, floors)
    if is_to_clash and all(cf.status is Status.INFEASIBLE for cf in found):
        terms = terms._replace(find_clash=True)
        again = [part.asked.answered(row, part.label, terms=terms) for part in parts]
        # In the time that was left the same may not have been shown again.
        shown = all(cf.status is Status.INFEASIBLE for cf in again)
        found = again if shown else found
    best = min(found, key=lambda cf: cf.cost)
    out = replace(
        best,
        target=wish.labels,
        original_prediction=plain(asked.model.labels[wish.nearest]),
        certificate=JoinedCertificate(tuple(cf.certificate for cf in found)),
    )
    if best.status.has_answer:
        view = asked.prepared_for(row)
        y = view.inner(best.values)
        return replace(out, prototype=int(view.model.nearest_of_checked(y[None, :])[0]))
    is_shown = all(cf.status is Status.INFEASIBLE for cf in found)
    clashing = {id(item) for cf in found for item in cf.conflict}
    return replace(
        out,
        status=Status.INFEASIBLE if is_shown else Status.UNKNOWN,
        lower_bound=np.inf if is_shown else min(cf.lower_bound for cf in found),
        conflict=tuple(item for item in asked.constraints if id(item) in clashing),
        conflict_ranges=ranges_of(found),
        conflict_is_irreducible=is_shown and len(found) == 1 and best.conflict_is_irreducible,
    )


def ranges_of(found: Iterable[Counterfactual]) -> tuple[Bounds, ...]:
    """List the ranges of features that are part of any of the conflicts, each once."""
    return tuple(dict.fromkeys(item for cf in found for item in cf.conflict_ranges))


def _cheapest_first(
    parts: Sequence[Part], row: Floats, terms: Terms, floors: Sequence[float]
) -> list[Counterfactual]:
    """Ask about the most promising part first, and about the others for something cheaper."""
    found: dict[int, Counterfactual] = {}
    least = np.inf
    for at in np.argsort(floors, kind="stable").tolist():
        asking = terms._replace(meets_rules=False, below=least)
        found[at] = parts[at].asked.answered(row, parts[at].label, terms=asking)
        least = min(least, found[at].cost)
    return [found[at] for at in range(len(parts))]


def taken_back(
    out: Counterfactual, row: Floats, reason: str, bound: Callable[[Counterfactual], float]
) -> Counterfactual:
    """Take an answer back that cannot be shown to be one; `bound` recomputes what is proved."""
    # The bound so far is that of one part, and was capped by the cost of the answer.
    out = replace(
        out,
        values=np.full(row.shape, np.nan),
        status=Status.UNKNOWN,
        cost=np.inf,
        gap=np.inf,
        prediction=None,
        prototype=-1,
        conflict_is_irreducible=False,
        reason=reason,
    )
    proved = bound(out)
    return replace(out, lower_bound=proved, bound_with_margin=proved)


def bounded(
    asked: Asks, out: Counterfactual, bound: float, closing_gap: float | None = None
) -> Counterfactual:
    """Say what a bound over all parts makes of an answer.

    It is closed at the gap of the parts, where these are searched in another way.
    """
    bound = min(bound, out.cost)
    gap = 0.0 if out.cost == 0 else (out.cost - bound) / out.cost
    tolerance = closing_gap or asked.prepared_for(out.original_values).answers.closing_gap
    closed = gap <= tolerance or out.cost - bound <= out.resolution
    is_closest = not asked.margin or asked.is_sure
    return replace(
        out,
        status=Status.OPTIMAL if closed and is_closest else Status.FEASIBLE,
        lower_bound=bound,
        bound_with_margin=bound,
        gap=gap,
    )


def verified(parts: Sequence[Part], cf: Counterfactual) -> float:
    """Recompute the bound of an answer from the certificates of its parts."""
    joined = cf.certificate
    if type(joined) is not JoinedCertificate or len(joined.parts) != len(parts) or not parts:
        return 0.0
    pairs = zip(parts, joined.parts, strict=True)
    return min(
        part.asked.verify(replace(cf, certificate=certificate, target=(part.label,)))
        for part, certificate in pairs
    )


def confirmed_by(
    parts: Sequence[Part], row: Floats, shown: Floats, most: float
) -> tuple[bool, float]:
    """Whether a row is an answer of some part that costs at most `most`; its cost."""
    cost = np.inf
    for part in parts:
        good, cost = part.asked._check(row, (part.label,), shown, most)
        if good:
            return True, cost
    return False, cost

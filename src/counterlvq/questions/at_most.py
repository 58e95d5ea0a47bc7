"""The closest answer in which few features change, by a tree of ordinary questions."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

from counterlvq.certificates.at_most import CountedCertificate, CountedQuestion
from counterlvq.certificates.certificate import Certificate
from counterlvq.certificates.judged import Verdict
from counterlvq.certificates.questions import Question
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.tolerances import EXACT_GAP
from counterlvq.prepared import Prepared, allowed_range
from counterlvq.problem.constraints import MinChange
from counterlvq.problem.targets import wished_prototypes
from counterlvq.programs.at_most import held_for_good, within_limits
from counterlvq.questions.protocol import Asks, Terms
from counterlvq.results import Counterfactual
from counterlvq.search.conflicts import smallest_conflict
from counterlvq.search.few_changes import (
    Columns,
    CountNode,
    CountTree,
    Seen,
    changed_columns,
)
from counterlvq.types import Status

__all__ = ["counted_answer", "counted_question", "counted_verified", "tree_certificate"]

# Ordinary questions that the search for what clashes may take: so many times those that the proof
# took, and at least so many.
_CLASH_EFFORT, _LEAST_EFFORT = 2, 60


def counted_question(asked: Asks, row: Floats, target: Sequence[Any]) -> CountedQuestion:
    """State what is asked, for whoever checks the answer."""

    def holding(held: Columns) -> Any:
        node = asked.holding(held, None)
        mask = wished_prototypes(node.model, target, -1)
        view = node.prepared_for(row)
        return view.answers.question(view.inner(row), mask)

    whole = holding(frozenset())
    coordinates = asked._source.coordinates
    if isinstance(whole, Question) and not (coordinates.has_levels or coordinates.links):
        return CountedQuestion(asked.limits, whole.holding)
    return CountedQuestion(asked.limits, holding)


def counted_verified(asked: Asks, cf: Counterfactual, certificate: CountedCertificate) -> float:
    """Recompute the bound of an answer from the certificates of the parts."""
    question = counted_question(asked, cf.original_values, cf.target)
    with np.errstate(all="ignore"):
        return float(certificate.lower_bound(question, cf.cost, asked.margin or 0.0))


def counted_answer(
    asked: Asks, row: Floats, target: Any, *, find_clash: bool = True
) -> Counterfactual:
    """Find the closest answer in which no more features change than may."""
    view = asked.prepared_for(row)
    now = view.rules.verdict(view.inner(row)[None, :])
    tree = _Tree(asked, row, target, now)
    tree.grow()
    found = tree.result()
    if found.status is Status.INFEASIBLE and find_clash:
        most = max(_LEAST_EFFORT, _CLASH_EFFORT * len(tree.known))
        left = None if asked.time_limit is None else tree.ends - time.monotonic()
        clash = _clash_without_least(asked, row, target, left)
        found = replace(found, **(clash or _clash(asked, row, target, now, most)))
    if found.broken and found.within_rules is not None:
        others = asked.asking_for(margin=None, confidence=None, is_sure=False)
        within = others.answered(row, asked.model.classes.tolist(), find_clash=False)
        found = replace(found, within_rules=within)
    return found


@final
@dataclass(eq=False)
class _Tree:
    """One search by whole answers, each of them proved by itself."""

    asked: Asks
    row: Floats
    target: Any
    now: Verdict  # on the row: each node would ask for the same
    any_will_do: bool = False  # whether the first answer ends the search
    started: float = field(default_factory=time.monotonic)
    tree: CountTree = field(init=False)

    def __post_init__(self) -> None:
        self.tree = CountTree(
            self.asked.limits, self.row, self._ask, self._worth, any_will_do=self.any_will_do
        )

    @property
    def ends(self) -> float:
        """When the time of the user is up, by the monotonic clock."""
        limit = self.asked.time_limit
        return np.inf if limit is None else self.started + limit

    def grow(self) -> None:
        """Branch until no part can hold anything cheaper than the best answer."""
        self.tree.grow()
        if self.asked.model.is_local and not self.any_will_do:
            for node in self.tree.nodes:
                self._look_below(node)

    def _look_below(self, node: CountNode) -> None:
        """Ask again of a part in which nothing was found, now for what the best answer undercuts.

        Where nothing limits changes, boxes have no end until the cost of an answer is known.
        """
        best, seen = self.best, node.seen
        if best is None or node.column >= 0 or seen is None or seen.values is not None:
            return
        held = held_for_good(node.held, node.changed, self.asked.limits)
        left = None if self.asked.time_limit is None else self.ends - time.monotonic()
        if held is None or seen.bound >= best.cost or (left is not None and left <= 0):
            return
        terms = Terms(find_clash=False, now=self.now, below=best.cost)
        found = self.asked.holding(held, left).answered(
            self.row, self.target, find_clash=False, terms=terms
        )
        values = found.values if found.status.has_answer else None
        node.seen = Seen(values, found.cost, found.lower_bound, found)
        if values is not None and found.cost < best.cost:
            changed = changed_columns(self.row, values)
            if within_limits(changed, self.asked.limits):
                self.tree.best = node.seen

    @property
    def known(self) -> dict[Columns, Seen]:
        """Questions that have been asked, by what is held."""
        return self.tree.known

    @property
    def best(self) -> Counterfactual | None:
        """The closest answer so far."""
        return None if self.tree.best is None else self.tree.best.source

    def _ask(self, held: Columns) -> Seen | None:
        left = None if self.asked.time_limit is None else self.ends - time.monotonic()
        if left is not None and left <= 0 and self.known:
            return None
        asked = self.asked.holding(held, left)
        terms = Terms(find_clash=False, now=self.now)
        found = asked.answered(self.row, self.target, find_clash=False, terms=terms)
        values = found.values if found.status.has_answer else None
        return Seen(values, found.cost, found.lower_bound, found)

    @cached_property
    def view(self) -> Prepared:
        """The whole question, seen from the row."""
        return self.asked.prepared_for(self.row)

    def _worth(self, values: Floats) -> Floats:
        view = self.view
        change = view.inner(values) - view.inner(self.row)
        prices = view.template.limiting_ways.max(axis=0)
        found = []
        for span in view.source.coordinates.spans:
            delta = np.zeros_like(change)
            delta[span] = change[span]
            lifted = view.template.L @ delta
            found.append(float(prices @ np.abs(delta)) + float(lifted @ lifted))
        return np.array(found)

    def result(self) -> Counterfactual:
        """Say what was found, and what the tree proves of it."""
        nodes = self.tree.nodes
        answers = [node.seen.source for node in nodes if node.seen is not None]
        known = self.best or min(answers, key=lambda cf: cf.lower_bound, default=None)
        assert known is not None  # the whole question is asked whatever the time
        certificate = tree_certificate(nodes, lambda seen: seen.source.certificate)
        reason = "; ".join(dict.fromkeys(cf.reason for cf in answers if cf.reason))
        if self.tree.open:
            reason = f"{reason}; some choices of features were not looked at"
        out = replace(known, certificate=certificate, reason=reason)
        if self.best is None:
            return self._without_answer(out)
        if out.cost == 0.0:
            return out
        bound = min(counted_verified(self.asked, out, certificate), out.cost)
        gap = (out.cost - bound) / out.cost
        tolerance = self.asked.gap if self.asked.model.is_local else EXACT_GAP
        closed = gap <= tolerance or out.cost - bound <= out.resolution
        is_closest = not self.asked.margin or self.asked.is_sure
        return replace(
            out,
            status=Status.OPTIMAL if closed and is_closest else Status.FEASIBLE,
            lower_bound=bound,
            bound_with_margin=bound,
            gap=gap,
        )

    def _without_answer(self, out: Counterfactual) -> Counterfactual:
        question = counted_question(self.asked, self.row, out.target)
        margin = self.asked.margin or 0.0
        with np.errstate(all="ignore"):
            empty = out.certificate.excludes_all(question, margin)
            bound = np.inf if empty else out.certificate.lower_bound(question, np.inf, margin)
        return replace(
            out,
            values=np.full(self.row.shape, np.nan),
            status=Status.INFEASIBLE if empty else Status.UNKNOWN,
            cost=np.inf,
            gap=0.0 if empty else np.inf,
            resolution=0.0,
            lower_bound=bound if empty or np.isfinite(bound) else 0.0,
            bound_with_margin=bound if empty or np.isfinite(bound) else 0.0,
            prediction=None,
            prototype=-1,
            conflict=tuple(self.asked.constraints),
            conflict_ranges=(),
            conflict_is_irreducible=False,
        )


def tree_certificate(
    nodes: Sequence[CountNode], proof: Callable[[Seen], Certificate]
) -> CountedCertificate:
    """State what a tree proves; `proof` makes what parts left whole carry."""
    return CountedCertificate(
        tuple(node.column for node in nodes),
        tuple(node.children[0] for node in nodes),
        tuple(node.children[1] for node in nodes),
        tuple(
            None if node.column >= 0 or node.seen is None else proof(node.seen) for node in nodes
        ),
    )


def _clash(asked: Asks, row: Floats, target: Any, now: Verdict, most: int) -> dict[str, Any]:
    """Find constraints and ranges that leave no room together, of which none can be left out.

    After `most` ordinary questions those that are left are named, be they too many. Constraints
    are looked for first, as if ranges could not be lifted.
    """
    asking = _Asking(row, target, now, most, asked.time_limit)
    every, ranged = asked.constraints, asked._source.coordinates.ranged

    def fewer_constraints(kept: Sequence[int]) -> Asks:
        return asked.asking_for(constraints=tuple(every[k] for k in kept))

    found, is_irreducible = asking.conflict(len(every), fewer_constraints)
    left = fewer_constraints(found)

    def fewer_ranges(kept: Sequence[int]) -> Asks:
        source = asked._source.without_ranges(j for k, j in enumerate(ranged) if k not in kept)
        return left.asking_for(features=source.features, _source=source)

    ranges, is_least = asking.conflict(len(ranged), fewer_ranges)
    columns = [asked.features.columns[ranged[k]] for k in ranges]
    return {
        "conflict": tuple(every[k] for k in found),
        "conflict_ranges": tuple(map(allowed_range, columns)),
        "conflict_is_irreducible": is_irreducible and is_least,
    }


def _clash_without_least(
    asked: Asks, row: Floats, target: Any, left: float | None
) -> dict[str, Any] | None:
    """Find what clashes without least changes, which seldom do; None where they have a part."""
    kept = tuple(item for item in asked.constraints if not isinstance(item, MinChange))
    if len(kept) == len(asked.constraints) or (left is not None and left <= 0.0):
        return None
    found = asked.asking_for(constraints=kept, time_limit=left).answered(row, target)
    if found.status is not Status.INFEASIBLE:
        return None
    return {
        "conflict": found.conflict,
        "conflict_ranges": found.conflict_ranges,
        "conflict_is_irreducible": found.conflict_is_irreducible,
    }


@final
@dataclass(eq=False)
class _Asking:
    """Asks whether parts of a question leave room, while there are time and effort left."""

    row: Floats
    target: Any
    now: Verdict
    most: int  # ordinary questions
    time_limit: float | None
    started: float = field(default_factory=time.monotonic)

    def conflict(
        self, count: int, fewer: Callable[[Sequence[int]], Asks]
    ) -> tuple[tuple[int, ...], bool]:
        """Find a set that clashes, by position, and whether none of it can be left out."""
        known: dict[tuple[int, ...], bool | None] = {}

        def room(kept: Sequence[int]) -> bool | None:
            key = tuple(kept)
            if key not in known:
                if self._is_over:
                    return None
                known[key] = self._has_room(fewer(key))
            return known[key]

        found = smallest_conflict(range(count), lambda kept: room(kept) is False)
        others = ([k for k in found if k != out] for out in found)
        return found, all(room(kept) for kept in others)

    @property
    def _is_over(self) -> bool:
        limit = np.inf if self.time_limit is None else self.time_limit
        return time.monotonic() - self.started > limit or self.most <= 0

    def _has_room(self, asked: Asks) -> bool | None:
        tree = _Tree(asked, self.row, self.target, self.now, any_will_do=True)
        tree.grow()
        self.most -= len(tree.known)
        if tree.best is not None:
            return True
        return False if tree.result().status is Status.INFEASIBLE else None

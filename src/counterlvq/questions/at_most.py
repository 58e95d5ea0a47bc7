"""The closest answer in which few features change, by a tree of ordinary questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, final

import numpy as np

from counterlvq.certificates.at_most import CountedCertificate, CountedQuestion
from counterlvq.certificates.certificate import Certificate, Stop, never
from counterlvq.certificates.questions import Question
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import EXACT_GAP
from counterlvq.prepared import Prepared, allowed_range
from counterlvq.problem.constraints import MinChange
from counterlvq.problem.targets import wished_prototypes
from counterlvq.programs.at_most import held_for_good, within_limits
from counterlvq.questions.protocol import WHOLE, Asks, Terms
from counterlvq.results import Counterfactual
from counterlvq.search.conflicts import smallest_conflict
from counterlvq.search.deadline import NO_DEADLINE, Deadline
from counterlvq.search.few_changes import (
    Columns,
    CountNode,
    CountTree,
    Seen,
    changed_columns,
)
from counterlvq.search.result import SearchContext
from counterlvq.search.strategies import conflict_budget, found_room
from counterlvq.types import Status

__all__ = ["counted_answer", "counted_question", "counted_verified", "tree_certificate"]

# Ordinary questions that the search for what clashes may take: so many times those that the proof
# took, and at least so many.
_CLASH_EFFORT, _LEAST_EFFORT = 2, 60
# One over the share of the time left that one look for what clashes may take.
_SHARES = 4.0


def counted_question(asked: Asks, row: Floats, target: Sequence[Any]) -> CountedQuestion:
    """State what is asked, for whoever checks the answer."""

    def holding(held: Columns) -> Any:
        node = asked.holding(held)
        mask = wished_prototypes(node.model, target, -1)
        view = node.prepared_for(row)
        return view.answers.question(view.inner(row), mask)

    whole = holding(frozenset())
    coordinates = asked._source.coordinates
    if isinstance(whole, Question) and not (coordinates.has_levels or coordinates.links):
        return CountedQuestion(asked.limits, whole.holding)
    return CountedQuestion(asked.limits, holding)


def counted_verified(
    asked: Asks, cf: Counterfactual, certificate: CountedCertificate, stop: Stop = never
) -> float:
    """Recompute the bound of an answer from the certificates of the parts."""
    question = counted_question(asked, cf.original_values, cf.target)
    with np.errstate(all="ignore"):
        return float(certificate.lower_bound(question, cf.cost, asked.margin or 0.0, stop=stop))


def counted_answer(asked: Asks, row: Floats, target: Any, terms: Terms = WHOLE) -> Counterfactual:
    """Find the closest answer in which no more features change than may."""
    view = asked.prepared_for(row)
    now = view.rules.verdict(view.inner(row)[None, :])
    asking = Terms(False, False, terms.below, now, terms.until(asked))
    tree = _Tree(asked, row, target, asking)
    tree.grow()
    found = tree.result()
    if found.status is Status.INFEASIBLE and terms.find_clash:
        most = max(_LEAST_EFFORT, _CLASH_EFFORT * len(tree.known))
        clash = _clash_of_fewer(asked, row, target, asking, tree.is_whole)
        if clash is None:
            boxes = conflict_budget(seen.source.certificate for seen in tree.leaves)
            clash = _clash(asked, _Asking(row, target, asking, most, boxes))
        found = replace(found, **clash)
    every = asked.model.classes.tolist()
    if found.broken and terms.meets_rules and len(found.target) < len(every):
        others = asked.asking_for(margin=None, confidence=None, is_sure=False)
        within = others.answered(row, every, terms=asking._replace(below=np.inf))
        found = replace(found, within_rules=within)
    return found


@final
@dataclass(eq=False)
class _Tree:
    """One search by whole answers, each of them proved by itself."""

    asked: Asks
    row: Floats
    target: Any
    terms: Terms  # with a deadline, and the verdict on the row: each node would ask for the same
    tree: CountTree = field(init=False)

    def __post_init__(self) -> None:
        self.tree = CountTree(
            self.asked.limits,
            self.row,
            self._ask,
            partial(_worth, self.asked.prepared_for(self.row), self.row),
            below=self.terms.below,
        )

    @property
    def deadline(self) -> Deadline:
        """When the time for all questions together is over."""
        return self.terms.until(self.asked)

    def grow(self) -> None:
        """Branch until no part can hold anything cheaper than the best answer."""
        self.tree.grow()
        if self.asked.model.is_local:
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
        if held is None or seen.bound >= best.cost or self.deadline.is_over():
            return
        terms = self.terms._replace(below=best.cost)
        found = self.asked.holding(held).answered(self.row, self.target, terms=terms)
        values = found.values if found.status.has_answer else None
        node.seen = Seen(values, found.cost, found.lower_bound, found)
        if values is not None and found.cost < best.cost:
            changed = changed_columns(self.row, values)
            if within_limits(changed, self.asked.limits):
                self.tree.best = node.seen

    @property
    def is_whole(self) -> bool:
        """Whether no column had to be held: the limits have no part in it."""
        return len(self.tree.nodes) == 1

    @property
    def leaves(self) -> list[Seen]:
        """Answers about parts left whole."""
        nodes = self.tree.nodes
        return [node.seen for node in nodes if node.column < 0 and node.seen is not None]

    @property
    def known(self) -> dict[Columns, Seen]:
        """Questions that have been asked, by what is held."""
        return self.tree.known

    @property
    def best(self) -> Counterfactual | None:
        """The closest answer so far."""
        return None if self.tree.best is None else self.tree.best.source

    def _ask(self, held: Columns) -> Seen | None:
        if self.known and self.deadline.is_over():
            return None
        found = self.asked.holding(held).answered(self.row, self.target, terms=self.terms)
        values = found.values if found.status.has_answer else None
        return Seen(values, found.cost, found.lower_bound, found)

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
        bound = min(self._verified(out, certificate), out.cost)
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

    def _verified(self, out: Counterfactual, certificate: CountedCertificate) -> float:
        """Check all parts together; too late for that, what was proved of each has to do."""
        stop = self.deadline.is_long_over
        bound = counted_verified(self.asked, out, certificate, stop)
        proved = 0.0 if self.tree.open else min(seen.bound for seen in self.leaves)
        return max(bound, proved) if stop() else bound

    def _without_answer(self, out: Counterfactual) -> Counterfactual:
        question = counted_question(self.asked, self.row, out.target)
        margin, stop = self.asked.margin or 0.0, self.deadline.is_long_over
        empty, bound = False, 0.0
        if self.terms.below == np.inf:  # else nothing is said but that nothing is cheaper
            with np.errstate(all="ignore"):
                empty = out.certificate.excludes_all(question, margin, stop=stop)
                bound = np.inf
                if not empty:
                    bound = out.certificate.lower_bound(question, np.inf, margin, stop=stop)
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


def _worth(view: Prepared, row: Floats, values: Floats) -> Floats:
    """Say what the changes of columns cost by themselves, about."""
    change = view.inner(values) - view.inner(row)
    prices = view.template.limiting_ways.max(axis=0)
    found = []
    for span in view.source.coordinates.spans:
        delta = np.zeros_like(change)
        delta[span] = change[span]
        lifted = view.template.L @ delta
        found.append(float(prices @ np.abs(delta)) + float(lifted @ lifted))
    return np.array(found)


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


def _clash(asked: Asks, asking: _Asking) -> dict[str, Any]:
    """Find constraints and ranges that leave no room together, of which none can be left out.

    Constraints are looked for first, as if ranges could not be lifted.
    """
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


def _clash_of_fewer(
    asked: Asks, row: Floats, target: Any, terms: Terms, is_whole: bool
) -> dict[str, Any] | None:
    """Find what clashes without what seldom does: least changes, and limits if they had no part.

    None where that cannot be shown of the others.
    """
    without_limits = asked.holding(frozenset()) if is_whole else asked
    without_least = _without_least(without_limits)
    for fewer in dict.fromkeys((without_least, without_limits)):
        deadline = terms.until(asked)
        if len(fewer.constraints) == len(asked.constraints) or deadline.is_over():
            continue
        asking = Terms(meets_rules=False, deadline=deadline.shared(_SHARES))
        found = fewer.answered(row, target, terms=asking)
        if found.status is Status.INFEASIBLE:
            return {
                "conflict": found.conflict,
                "conflict_ranges": found.conflict_ranges,
                "conflict_is_irreducible": found.conflict_is_irreducible,
            }
    return None


def _without_least(asked: Asks) -> Asks:
    kept = tuple(item for item in asked.constraints if not isinstance(item, MinChange))
    return asked if len(kept) == len(asked.constraints) else asked.asking_for(constraints=kept)


@final
@dataclass(eq=False)
class _Asking:
    """Asks whether parts of a question leave room, while there are time and effort left."""

    row: Floats
    target: Any
    terms: Terms  # with a deadline, that all questions share
    most: int  # ordinary questions; after so many those that are left are named, be they too many
    boxes: int  # of branch and bound, for a question in which any number of features may change

    def conflict(
        self, count: int, fewer: Callable[[Sequence[int]], Asks]
    ) -> tuple[tuple[int, ...], bool]:
        """Find a set that clashes, by position, and whether none of it can be left out."""
        known: dict[tuple[int, ...], bool | None] = {}
        deadline = self.terms.deadline or NO_DEADLINE

        def room(kept: Sequence[int]) -> bool | None:
            key = tuple(kept)
            if key not in known:
                if self.most <= 0 or deadline.is_over():
                    return None
                known[key] = self._has_room(fewer(key))
            return known[key]

        found = smallest_conflict(range(count), lambda kept: room(kept) is False)
        others = ([k for k in found if k != out] for out in found)
        return found, all(room(kept) for kept in others)

    def _has_room(self, asked: Asks) -> bool | None:
        """Grow a tree of questions of which any answer will do, and not the closest."""
        # What stays open in its share of the time is not to leave the others without any.
        deadline = self.terms.until(asked).shared(_SHARES)
        view = asked.prepared_for(self.row)
        tree = CountTree(
            asked.limits,
            self.row,
            lambda held: self._room_seen(asked.holding(held), deadline),
            partial(_worth, view, self.row),
            any_will_do=True,
        )
        tree.grow()
        if tree.best is not None:
            return True
        return None if tree.open else False

    def _room_seen(self, asked: Asks, deadline: Deadline) -> Seen | None:
        """Find any answer to an ordinary question; None where nothing can be said."""
        if self.most <= 0 or deadline.is_over():
            return None
        self.most -= 1
        view = asked.prepared_for(self.row)
        x = view.inner(self.row)
        now = self.terms.now or view.rules.verdict(x[None, :])
        mask = wished_prototypes(view.model, self.target, int(now.prototype[0]))
        context = SearchContext(view.rules, x, mask, deadline)
        found = found_room(view.answers, view.answers.question(x, mask), context, self.boxes)
        if found is None:
            return None
        answer = found.answer
        values = None if answer is None else view.outer(answer.y, self.row)
        return Seen(values, found.cost, 0.0, found)

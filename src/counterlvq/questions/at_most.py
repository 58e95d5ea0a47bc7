"""The closest answer in which few features change: branch into held, and counted as changed.

Each node of the tree asks an ordinary question, in which the features that are held are frozen.
Its answer bounds all answers below the node; where few enough features change in it, it is one of
them. Counting a feature changes no question until enough are counted: then all others are held.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

from counterlvq.certificates.at_most import CountedCertificate, CountedQuestion
from counterlvq.certificates.certificate import Certificate
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.tolerances import CLOSED_GAP, EXACT_GAP
from counterlvq.prepared import Prepared, allowed_range
from counterlvq.problem.targets import wished_prototypes
from counterlvq.programs.at_most import held_for_good, within_limits
from counterlvq.questions.protocol import Asks
from counterlvq.results import Counterfactual
from counterlvq.search.conflicts import smallest_conflict
from counterlvq.types import Status

__all__ = ["changed_columns", "counted_answer", "counted_question", "counted_verified"]

# Ordinary questions that one answer may take: hundreds of times what real tables need for a few
# changes, and an end for counts that leave too many combinations.
_MOST_ASKED = 20_000

# Ordinary questions that the search for what clashes may take: so many times those that the proof
# took, and at least so many.
_CLASH_EFFORT, _LEAST_EFFORT = 2, 60

Columns = frozenset[int]


def changed_columns(row: Floats, values: Floats) -> Columns:
    """Columns in which an answer differs from its input."""
    return frozenset(np.flatnonzero(values != row).tolist())


def counted_question(asked: Asks, row: Floats, target: Sequence[Any]) -> CountedQuestion:
    """State what is asked, for whoever checks the answer."""

    def holding(held: Columns) -> Any:
        node = asked.holding(held, None)
        mask = wished_prototypes(node.model, target, -1)
        view = node.prepared_for(row)
        return view.answers.question(view.inner(row), mask)

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
    tree = _Tree(asked, row, target)
    tree.grow()
    found = tree.result()
    if found.status is Status.INFEASIBLE and find_clash:
        most = max(_LEAST_EFFORT, _CLASH_EFFORT * len(tree.known))
        found = replace(found, **_clash(asked, row, target, most))
    if found.broken and found.within_rules is not None:
        others = asked.asking_for(margin=None, confidence=None, is_sure=False)
        within = others.answered(row, asked.model.classes.tolist(), find_clash=False)
        found = replace(found, within_rules=within)
    return found


@dataclass(eq=False)
class _Node:
    """Columns that are held, those that count as changed, and the answer to what is left."""

    held: Columns
    changed: Columns
    answer: Counterfactual | None = None  # None until it is asked for
    column: int = -1
    children: tuple[int, int] = (-1, -1)  # held, counted as changed


@final
@dataclass(eq=False)
class _Tree:
    """One search, depth first: counted as changed before held, for a good answer early."""

    asked: Asks
    row: Floats
    target: Any
    nodes: list[_Node] = field(default_factory=lambda: [_Node(frozenset(), frozenset())])
    best: Counterfactual | None = None
    known: dict[Columns, Counterfactual] = field(default_factory=dict)  # by what is held
    any_will_do: bool = False  # whether the first answer ends the search
    open: bool = False  # whether the search ended before it was done
    started: float = field(default_factory=time.monotonic)

    def grow(self) -> None:
        """Branch until no part can hold anything cheaper than the best answer."""
        waiting = [0]
        while waiting and not (self.any_will_do and self.best is not None):
            at = waiting.pop()
            node = self.nodes[at]
            node.answer = self._ask(node)
            if node.answer is None:
                self.open = True
                continue
            j = self._branching_column(node, node.answer)
            if j is None:
                continue
            node.column, node.children = j, (len(self.nodes), len(self.nodes) + 1)
            self.nodes.append(_Node(node.held | {j}, node.changed))
            self.nodes.append(_Node(node.held, node.changed | {j}))
            waiting += node.children

    def _ask(self, node: _Node) -> Counterfactual | None:
        """Answer the question of a node; None where there is no time left for it."""
        held = held_for_good(node.held, node.changed, self.asked.limits)
        assert held is not None  # a column is counted only while there is room
        if held not in self.known:
            limit = self.asked.time_limit
            left = None if limit is None else limit - (time.monotonic() - self.started)
            if len(self.known) >= _MOST_ASKED or (left is not None and left <= 0 and self.known):
                return None
            asked = self.asked.holding(held, left)
            self.known[held] = asked.answered(self.row, self.target, find_clash=False)
        return self.known[held]

    def _branching_column(self, node: _Node, answer: Counterfactual) -> int | None:
        """Choose the column that costs most among those that change too many; None for a leaf."""
        if not answer.status.has_answer:
            return None
        changed = changed_columns(self.row, answer.values)
        if within_limits(changed, self.asked.limits):
            if self.best is None or answer.cost < self.best.cost:
                self.best = answer
            return None
        if self.best is not None and answer.lower_bound >= (1.0 - CLOSED_GAP) * self.best.cost:
            return None
        broken = [
            limit.columns
            for limit in self.asked.limits
            if len(changed & limit.columns) > limit.most
        ]
        among = sorted((changed & frozenset().union(*broken)) - node.changed)
        view = self.view
        x, y = view.inner(self.row), view.inner(answer.values)
        return max(among, key=lambda j: self._worth(j, x, y))

    @cached_property
    def view(self) -> Prepared:
        """The whole question, seen from the row."""
        return self.asked.prepared_for(self.row)

    def _worth(self, j: int, x: Floats, y: Floats) -> float:
        """Say what the change of one column costs by itself, about: an order, no more."""
        view = self.view
        span = view.source.coordinates.spans[j]
        delta = np.zeros_like(x)
        delta[span] = (y - x)[span]
        flat = float(view.template.limiting_ways.max(axis=0) @ np.abs(delta))
        lifted = view.template.L @ delta
        return flat + float(lifted @ lifted)

    def result(self) -> Counterfactual:
        """Say what was found, and what the tree proves of it."""
        answers = [node.answer for node in self.nodes if node.answer is not None]
        known = self.best or min(answers, key=lambda cf: cf.lower_bound, default=None)
        assert known is not None  # the whole question is asked whatever the time
        certificate = CountedCertificate(
            tuple(node.column for node in self.nodes),
            tuple(node.children[0] for node in self.nodes),
            tuple(node.children[1] for node in self.nodes),
            tuple(_certificate(node) for node in self.nodes),
        )
        reason = "; ".join(dict.fromkeys(cf.reason for cf in answers if cf.reason))
        if self.open:
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


def _certificate(node: _Node) -> Certificate | None:
    return None if node.column >= 0 or node.answer is None else node.answer.certificate


def _clash(asked: Asks, row: Floats, target: Any, most: int) -> dict[str, Any]:
    """Find constraints and ranges that leave no room together, of which none can be left out.

    After `most` ordinary questions those that are left are named, be they too many. Constraints
    are looked for first, as if ranges could not be lifted.
    """
    asking = _Asking(row, target, most, asked.time_limit)
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


@final
@dataclass(eq=False)
class _Asking:
    """Asks whether parts of a question leave room, while there are time and effort left."""

    row: Floats
    target: Any
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
        tree = _Tree(asked, self.row, self.target, any_will_do=True)
        tree.grow()
        self.most -= len(tree.known)
        if tree.best is not None:
            return True
        return False if tree.result().status is Status.INFEASIBLE else None

"""Answer one row in which few features may change at once: a tree of runs of the compiled kernel.

For rows of plain numbers under a shared metric, as `at_once`. Each node of the tree is one run of
the kernel, whose bound is proved, and the closest of the points that change few enough columns is
judged by constraints and by the user's own `predict`. Whatever is not settled by that is left to
the tree of whole answers. Where nothing is few enough, what clashes is found by leaving bounds out
one by one: what a bound has kept away changes the column that it is about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

from counterlvq.explainer.at_once import AtOnce, Begun
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import CLOSED_GAP
from counterlvq.problem.at_most import AtMost, limits_of
from counterlvq.programs.at_most import CountLimit
from counterlvq.programs.conditions import LinearConditions
from counterlvq.questions.at_most import counted_question, tree_certificate
from counterlvq.results import Counterfactual, later
from counterlvq.search.few_changes import Columns, CountTree, Seen
from counterlvq.search.held_rows import HeldFound, HeldRow
from counterlvq.search.kernel_row import RowFound

__all__ = ["few_at_once"]


def few_at_once(
    asked: Any, quick: AtOnce, row: Floats, target: Any, *, find_clash: bool
) -> Counterfactual | None:
    """Answer a row of a `OneRow` with limits; None where more has to be looked into.

    `quick` answers without the limits.
    """
    begun = quick.begin(row, target)
    if begun is None or begun.ready.held is None:
        return None
    held = begun.ready.held
    least, blur = (0.0, 0.0) if begun.doubt is None else (begun.doubt.least, begun.doubt.blur)
    memory = held.borrowed(row, least, blur)
    try:
        return _Few(asked, quick, row, begun, memory).answer(find_clash)
    except _UnsettledError:
        return None
    finally:
        held.hand_back(memory)


class _UnsettledError(Exception):
    """The kernel cannot tell."""


@final
@dataclass(eq=False)
class _Few:
    """One row."""

    asked: Any
    quick: AtOnce
    row: Floats
    begun: Begun
    memory: HeldRow
    known: dict[Columns, Seen] = field(default_factory=dict)

    def answer(self, find_clash: bool) -> Counterfactual | None:
        """Answer the row; None where more has to be looked into."""
        tree = self._tree(self.asked.limits, self.known)
        tree.grow()
        if tree.open:
            return None
        if tree.best is None:
            return self._without_answer(tree, find_clash)
        cost = tree.best.cost
        doubt = self.begun.doubt
        if doubt is not None and not doubt.covers(cost, self.quick.exact.stated):
            return None
        leaves = [node.seen for node in tree.nodes if node.column < 0]
        bound = min(seen.bound for seen in leaves if seen is not None)
        found = self._judged(tree.best, bound)
        if found is None or found.gap > CLOSED_GAP:
            return None
        labels = self.quick.labelled(found, self.begun.ready.target_mask, self.begun.doubt)
        if labels is None:
            return None
        certificate = later(lambda: tree_certificate(tree.nodes, self._certified))
        answer = self.quick.stated(self.row, self.begun.ready, found, *labels, None)
        return replace(answer, certificate=certificate)

    def _tree(
        self, limits: tuple[CountLimit, ...], known: dict[Columns, Seen], **settings: Any
    ) -> CountTree:
        return CountTree(limits, self.row, self._ask, self._worth, known, **settings)

    def _ask(self, held: Columns) -> Seen:
        found = self.memory.ask(held)
        if not (found.is_solved or found.is_empty):
            raise _UnsettledError
        values = found.y if found.is_solved else None
        return Seen(values, found.cost, min(found.bound, found.cost), found)

    def _worth(self, values: Floats) -> Floats:
        stated, change = self.quick.exact.stated, values - self.row
        flat = stated.least_ways.max(axis=0) * np.abs(change)
        lifted = stated.L_diagonal if stated.L_diagonal.size else stated.L
        square = (lifted * change) ** 2
        return np.asarray(flat + (square if square.ndim == 1 else square.sum(axis=0)))

    def _judged(self, best: Seen, bound: float) -> RowFound | None:
        assert best.values is not None
        pair, X = np.stack([self.row, best.values]), np.stack([self.row, self.row])
        judged = self.quick.view.rules.judged(pair, X, np.array([0.0, bound]))
        if not judged.good[1]:
            return None
        cost = float(judged.cost[1])
        return RowFound(
            pair, True, cost, min(bound, cost), float(judged.gap[1]), float(judged.resolution[1])
        )

    def _certified(self, seen: Seen) -> Any:
        found: HeldFound = seen.source
        rules = self.quick.view.rules
        return self.memory.certificate(found, rules.template.inequalities.v.size)

    # --- where nothing is few enough --------------------------------------------------------------

    def _without_answer(self, tree: CountTree, find_clash: bool) -> Counterfactual | None:
        certificate = later(lambda: tree_certificate(tree.nodes, self._certified))
        if not self.quick.is_confirmed(self.row, self.begun):
            return None
        if self.begun.doubt is not None:
            # How far `predict` is off is known near the row alone: others look into the rest.
            question = counted_question(self.asked, self.row, self.begun.ready.labels)
            certificate = tree_certificate(tree.nodes, self._certified)
            if not certificate.excludes_all(question):
                return None
        every = tuple(self.asked.constraints)
        conflict, is_irreducible = every, False
        if find_clash:
            kept = self._clash(every)
            if kept is None:
                return None
            conflict, is_irreducible = tuple(every[k] for k in kept), True
        return self.quick.without_answer(
            self.begun, self.row, certificate, conflict, is_irreducible
        )

    def _clash(self, every: Sequence[Any]) -> list[int] | None:
        """Find constraints that leave no room, of which none can be left out.

        None where some are about more than single columns that change.
        """
        owners = self._owners(every)
        if owners is None:
            return None
        kept = list(range(len(every)))
        limiting = [k for k in kept if isinstance(every[k], AtMost)]
        for k in limiting:
            fewer = tuple(every[n] for n in kept if n != k and isinstance(every[n], AtMost))
            if not self._has_room(fewer, frozenset()):
                kept.remove(k)
        limits = tuple(every[k] for k in kept if isinstance(every[k], AtMost))
        for k in [k for k in kept if k not in limiting]:
            rest = [n for n in kept if n != k]
            mine = [b for b, who in enumerate(owners) if k in who]
            self.memory.lift([b for b in mine if not owners[b] & set(rest)])
            columns = self.memory.columns_of(mine)
            if not any(self._has_room(limits, frozenset({j})) for j in columns):
                kept = rest
            else:
                self.memory.restore(mine)
        return kept

    def _has_room(self, limits: Sequence[AtMost], counted: Columns) -> bool:
        """Whether there is an answer, in which some columns count as changed."""
        stated = limits_of(limits, self.asked.features)
        if any(len(counted & limit.columns) > limit.most for limit in stated):
            return False
        tree = self._tree(stated, {}, counted=counted, any_will_do=True)
        tree.grow()
        if tree.open:
            raise _UnsettledError
        if tree.best is None:
            return False
        assert tree.best.values is not None
        nearest = int(self.quick.view.model.nearest_of_checked(tree.best.values[None, :])[0])
        if not self.begun.ready.target_mask[nearest]:
            raise _UnsettledError
        return True

    def _owners(self, every: Sequence[Any]) -> list[set[int]] | None:
        """Say which constraints state each bound of the kernel; None if it does not show that."""
        rows: dict[tuple[int, float, float], list[int]] = {}
        for b, row in enumerate(self.memory.stated_bounds()):
            if row is None:
                return None
            rows.setdefault(row, []).append(b)
        owners: list[set[int]] = [set() for _ in range(sum(map(len, rows.values())))]
        for k, item in enumerate(every):
            if isinstance(item, AtMost):
                continue
            for part in self.quick.view.read(k - sum(isinstance(e, AtMost) for e in every[:k])):
                if not isinstance(part, LinearConditions) or part.equality or part.R.any():
                    return None
                for a, v in zip(part.A, part.v.tolist(), strict=True):
                    at = np.flatnonzero(a)
                    key = (int(at[0]), float(a[at[0]]), v) if at.size == 1 else None
                    if key is None or key not in rows:
                        return None
                    for b in rows[key]:
                        owners[b].add(k)
        return owners if all(owners) else None

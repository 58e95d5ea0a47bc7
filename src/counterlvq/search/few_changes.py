"""Branch into columns that are held, and columns that count as changed.

Each node of the tree asks an ordinary question, in which the columns that are held stay. Its
answer bounds all answers below the node; where few enough columns change in it, it is one of
them. Counting a column changes no question until enough are counted: then all others are held.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

import numpy as np

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import CLOSED_GAP
from counterlvq.programs.at_most import CountLimit, held_for_good, within_limits

__all__ = ["Columns", "CountNode", "CountTree", "Seen", "changed_columns"]

# Ordinary questions that one answer may take: hundreds of times what real tables need for a few
# changes, and an end for counts that leave too many combinations.
_MOST_ASKED = 20_000

Columns = frozenset[int]


def changed_columns(row: Floats, values: Floats) -> Columns:
    """Columns in which an answer differs from its input."""
    return frozenset(np.flatnonzero(values != row).tolist())


class Seen(NamedTuple):
    """What an ordinary question was answered with."""

    values: Floats | None  # (d,), None where there is no answer
    cost: float
    bound: float  # cost that no answer undercuts
    source: Any  # what the answer and its proof are made of


@dataclass(eq=False)
class CountNode:
    """Columns that are held, those that count as changed, and the answer to what is left."""

    held: Columns
    changed: Columns
    seen: Seen | None = None  # None until it is asked for
    column: int = -1
    children: tuple[int, int] = (-1, -1)  # held, counted as changed


@final
@dataclass(eq=False)
class CountTree:
    """One search, depth first: counted as changed before held, for a good answer early."""

    limits: tuple[CountLimit, ...]
    row: Floats
    ask: Callable[[Columns], Seen | None]  # with some columns held; None where time is up
    worth: Callable[[Floats], Floats]  # of the changes of columns, about: an order, no more
    known: dict[Columns, Seen] = field(default_factory=dict)  # by what is held
    counted: Columns = frozenset()  # as changed, to begin with
    any_will_do: bool = False  # whether the first answer ends the search
    below: float = np.inf  # only cheaper answers are wanted
    nodes: list[CountNode] = field(init=False)
    best: Seen | None = None
    open: bool = False  # whether the search ended before it was done

    def __post_init__(self) -> None:
        self.nodes = [CountNode(frozenset(), self.counted)]

    def grow(self) -> None:
        """Branch until no part can hold anything cheaper than the best answer."""
        waiting = [0]
        while waiting and not (self.any_will_do and self.best is not None):
            at = waiting.pop()
            node = self.nodes[at]
            node.seen = self._seen(node)
            if node.seen is None:
                self.open = True
                continue
            j = self._branching_column(node, node.seen)
            if j is None:
                continue
            node.column, node.children = j, (len(self.nodes), len(self.nodes) + 1)
            self.nodes.append(CountNode(node.held | {j}, node.changed))
            self.nodes.append(CountNode(node.held, node.changed | {j}))
            waiting += node.children

    def _seen(self, node: CountNode) -> Seen | None:
        """Answer the question of a node; None where there is no time left for it."""
        held = held_for_good(node.held, node.changed, self.limits)
        assert held is not None  # a column is counted only while there is room
        if held not in self.known:
            found = None if len(self.known) >= _MOST_ASKED else self.ask(held)
            if found is None:
                return None
            self.known[held] = found
        return self.known[held]

    def _branching_column(self, node: CountNode, seen: Seen) -> int | None:
        """Choose the column that costs most among those that change too many; None for a leaf."""
        if seen.values is None:
            return None
        changed = changed_columns(self.row, seen.values)
        if within_limits(changed, self.limits):
            if self.best is None or seen.cost < self.best.cost:
                self.best = seen
            return None
        least = self.below if self.best is None else min(self.best.cost, self.below)
        if least < np.inf and seen.bound >= (1.0 - CLOSED_GAP) * least:
            return None
        broken = [
            limit.columns for limit in self.limits if len(changed & limit.columns) > limit.most
        ]
        among = sorted((changed & frozenset().union(*broken)) - node.changed)
        return max(among, key=self.worth(seen.values).__getitem__)

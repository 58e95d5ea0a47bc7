"""Answer many rows on a lattice: those with the same levels together, by the compiled search.

What rows with the same levels share is prepared once and let go of when they are done, so that a
table with many combinations of levels takes no more memory than one with few. A row's answer does
not depend on the block or thread that it falls into.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.batch.engine import Table
from counterlvq.batch.threads import run_blocks
from counterlvq.certificates.acceptance import Acceptance, Judged
from counterlvq.certificates.packed_boxes import Targets, leads_asked, reach_at
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import CLOSED_GAP, EXACT_GAP
from counterlvq.problem.targets import wished_prototypes
from counterlvq.search.compiled_boxes import CompiledBoxes, takes_strictly
from counterlvq.search.strategies import Strategy
from counterlvq.solvers.branching import Branched, branched, room_for
from counterlvq.solvers.compiled import Code
from counterlvq.types import Status

__all__ = ["MixedRun", "View", "alike"]

# Rows that a thread takes at a time.
_BLOCK = 256


class View(Protocol):
    """A question seen from rows with certain levels, see `counterlvq.prepared`."""

    @property
    def model(self) -> PrototypeModel:
        """The model in these coordinates."""

    @property
    def rules(self) -> Acceptance:
        """What an answer has to meet."""

    @property
    def answers(self) -> Strategy:
        """The way to an answer."""

    def inner_rows(self, rows: Floats) -> Floats:
        """Coordinates of rows."""

    def outer_rows(self, points: Floats, rows: Floats) -> Floats:
        """Features of points."""

    def broken_by(self, factual: Floats) -> tuple[object, ...]:
        """List the constraints that an input breaks as it is."""


def alike(keys: Floats) -> list[NDArray[np.int64]]:
    """Positions of rows that have the same keys (n, k), in the order of their first one."""
    if not keys.shape[1]:
        return [np.arange(len(keys))]
    _, group = np.unique(keys, axis=0, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    cuts = np.flatnonzero(np.diff(group.ravel()[order])) + 1
    return sorted(np.split(order, cuts), key=lambda part: int(part[0]))


@final
@dataclass(frozen=True, eq=False)
class MixedRun:
    """One run over many rows."""

    rows: Floats  # (n, d)
    groups: Sequence[NDArray[np.int64]]  # rows that share a view
    view_of: Callable[[Floats], View]
    wish: Callable[[int], Any]  # of a row
    told: NDArray[Any] | None  # what the user's own `predict` says of the rows, if it is another
    breaks: NDArray[np.bool_]  # (n,) filled in: whether a row breaks a constraint as it is

    def run(self, jobs: int, progress: bool) -> tuple[Table, NDArray[np.int64]]:
        """Answer rows; returns those that are left to other means as well."""
        n, d = self.rows.shape
        table = Table.blank(n, d)
        table.clear(slice(None))
        left: list[NDArray[np.int64]] = []
        run_blocks(self._blocks(), lambda at: left.append(self._fill(table, at)), jobs, n, progress)
        return table, np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *left]))

    def _blocks(self) -> Iterator[NDArray[np.int64]]:
        for group in self.groups:
            for at in range(0, group.size, _BLOCK):
                yield group[at : at + _BLOCK]

    def _fill(self, table: Table, at: NDArray[np.int64]) -> NDArray[np.int64]:
        """Answer rows with the same levels; returns those that are left."""
        with np.errstate(all="ignore"):  # what overflows proves nothing, and is not accepted
            view = self.view_of(self.rows[at[0]])
            x = view.inner_rows(self.rows[at])
            told = None if self.told is None else self.told[at]
            now = view.rules.verdict(x, told=told)
            table.nearest[at] = now.prototype
            holds = view.rules.judged(x, x).good
            for place in np.flatnonzero(~holds):
                self.breaks[at[place]] = bool(view.broken_by(x[place]))
            masks: dict[bytes, tuple[NDArray[np.bool_], list[int]]] = {}
            for k, i in enumerate(at.tolist()):
                mask = wished_prototypes(view.model, self.wish(i), int(now.prototype[k]))
                masks.setdefault(mask.tobytes(), (mask, []))[1].append(k)
            left = []
            for mask, places in masks.values():
                part = np.array(places)
                stays = mask[now.prototype[part]] & now.steady[part] & holds[part]
                self._keep(table, at[part[stays]])
                part = part[~stays]
                left += [at[part[self._answer(table, view, mask, at[part], x[part])]]]
            return np.concatenate(left)

    def _keep(self, table: Table, at: NDArray[np.int64]) -> None:
        """Leave rows as they are that have their wish already."""
        table.X[at] = self.rows[at]
        table.cost[at] = table.gap[at] = 0.0
        table.mark(at, Status.OPTIMAL)
        table.prototype[at] = table.nearest[at]

    def _answer(
        self, table: Table, view: View, mask: NDArray[np.bool_], at: NDArray[np.int64], x: Floats
    ) -> NDArray[np.bool_]:
        """Answer rows with the same wish; says which are left."""
        left = np.ones(at.size, dtype=bool)
        kernel = getattr(view.answers.prepared(mask), "kernel", None)
        if kernel is None or not at.size:
            return left
        room = room_for(kernel.family, kernel.flat.lattice, min(at.size, _BLOCK))
        least = view.rules.least_margin(x)
        for part in branched(room, kernel.flat.stated, x, view.rules.margin, least):
            rows = part.rows
            left[rows] = ~self._accept(
                table, view, mask, kernel, part, at[rows], x[rows], least[rows]
            )
        return left

    def _accept(
        self,
        table: Table,
        view: View,
        mask: NDArray[np.bool_],
        kernel: CompiledBoxes,
        part: Branched,
        at: NDArray[np.int64],
        x: Floats,
        least: Floats,
    ) -> NDArray[np.bool_]:
        """Judge what the search found and what its trees prove; says which rows are done."""
        rules, Y = view.rules, part.Y
        solved = part.code == Code.SOLVED
        Y[~solved] = x[~solved]  # of which `predict` can say something
        judged = rules.judged(Y, x, strict=takes_strictly(kernel.flat))
        caps = np.where(part.code == Code.INFEASIBLE, np.inf, judged.cost)
        bound = self._proved(rules, mask, kernel, part, x, caps)
        empty = (part.code == Code.INFEASIBLE) & (bound == np.inf) & (not rules.margin)
        table.mark(at[empty], Status.INFEASIBLE)
        table.bound[at[empty]], table.gap[at[empty]] = np.inf, 0.0
        gap = _gaps(judged.cost, bound)
        good = solved & judged.good
        good &= (gap <= CLOSED_GAP) | (gap <= rules.open_share(x, mask, least))
        if not good.any():
            return np.asarray(empty)
        nearest = np.full(len(Y), -1)
        if rules.doubt is None:
            nearest[good] = view.model.nearest_of_checked(Y[good])
        else:
            good[good] = rules.is_assured(Y[good], mask)
            nearest[good] = rules.nearest_wished(Y[good], mask)
        good[good] = rules.wins(Y[good], x[good], nearest[good], mask)
        done, cost = at[good], judged.cost[good]
        table.X[done] = view.outer_rows(Y[good], self.rows[done])
        table.cost[done], table.bound[done] = cost, np.minimum(bound[good], cost)
        table.gap[done], table.resolution[done] = gap[good], judged.resolution[good]
        closed = _closed(judged, gap, bound)[good] & (not rules.margin)
        table.mark(done[closed], Status.OPTIMAL)
        table.mark(done[~closed], Status.FEASIBLE)
        table.prototype[done] = nearest[good]
        return np.asarray(good | empty)

    @staticmethod
    def _proved(
        rules: Acceptance,
        mask: NDArray[np.bool_],
        kernel: CompiledBoxes,
        part: Branched,
        x: Floats,
        caps: Floats,
    ) -> Floats:
        """Bounds by the trees of rows; see `BoxQuestion.packed_bound`."""
        flat, family = kernel.flat, kernel.family
        around = within = np.zeros(len(x))
        if rules.says is not None:
            around = rules.blur(x)
            within = rules.blur_within(x, reach_at(flat.stated, x, caps))
        leads = leads_asked(rules.margin or 0.0, around, within, caps)
        targets = Targets.of(family.targets, family.rivals, mask.size)
        return flat.bounds(x, caps, leads, targets, part.trees)


def _gaps(cost: Floats, bound: Floats) -> Floats:
    """Share of each cost that is not proved; as `relative_gap` has it."""
    share = (cost - bound) / cost
    return np.where(cost - bound <= 0.0, 0.0, np.where(share >= 0.0, share, np.inf))


def _closed(judged: Judged, gap: Floats, bound: Floats) -> NDArray[np.bool_]:
    return judged._replace(gap=gap).closed(bound, EXACT_GAP)

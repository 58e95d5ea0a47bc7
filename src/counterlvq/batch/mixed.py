"""Answer many rows on a lattice: rows with the same levels by the compiled search, block by block.

What rows with the same levels share is prepared once and let go of when they are done, so that a
table with many combinations of levels takes no more memory than one with few. What does not depend
on levels is asked of all rows of a block at once. A row's answer does not depend on the block or
thread that it falls into.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, NamedTuple, Protocol, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.batch.engine import Table
from counterlvq.batch.threads import run_blocks
from counterlvq.certificates.acceptance import Acceptance
from counterlvq.certificates.judged import Judged, Verdict
from counterlvq.certificates.leads import Around, blur_around, blur_within
from counterlvq.certificates.packed_boxes import ProofWork, leads_asked, reach_at
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import CLOSED_GAP, EXACT_GAP
from counterlvq.presentation.progress import Counts
from counterlvq.problem.targets import wished_prototypes
from counterlvq.programs.box_trees import PackedTrees, Pieces
from counterlvq.row_models import RowModels
from counterlvq.search.compiled_boxes import CompiledBoxes, takes_strictly
from counterlvq.search.strategies import BranchAndBound, Strategy
from counterlvq.solvers.branching import branch_rows
from counterlvq.solvers.compiled import Code
from counterlvq.types import Status

__all__ = ["MixedRun", "View", "alike"]

# Rows that a thread takes at a time: what is asked of all of them at once should cost each little.
# Towards the end of a short table less, so that threads finish together.
_LARGEST_BLOCK, _LEAST_BLOCK = 1024, 64
# Rows of one call of the kernel, between which an interrupt is heard.
_ROWS_OF_ONE_CALL = 256
# Differences of rows and prototypes that a block may hold.
_BLOCK_ENTRIES = 1 << 22


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
        """Coordinates of rows, each seen from its own levels."""

    def outer_rows(self, points: Floats, rows: Floats) -> Floats:
        """Features of points, each seen from the levels of its row."""

    def outer_reach(self, reach: Floats) -> Floats:
        """Limits on the changes of features, by those on changes of coordinates."""

    def breaks(self, factuals: Floats) -> NDArray[np.bool_]:
        """Say which inputs break constraints as they are."""


def alike(keys: Floats) -> list[NDArray[np.int64]]:
    """Positions of rows that have the same keys (n, k), in the order of their first one."""
    if not keys.shape[1]:
        return [np.arange(len(keys))]
    _, group = np.unique(keys, axis=0, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    cuts = np.flatnonzero(np.diff(group.ravel()[order])) + 1
    return sorted(np.split(order, cuts), key=lambda part: int(part[0]))


class _Block(NamedTuple):
    """Rows of some groups, one group after the other."""

    groups: list[NDArray[np.int64]]

    def __len__(self) -> int:  # in rows, for whoever counts them
        return sum(group.size for group in self.groups)


class _Part(NamedTuple):
    """Rows that share their levels and their wish, and who answers them."""

    view: View
    mask: NDArray[np.bool_]  # (p,) prototypes of a wished-for label
    answers: BranchAndBound | None
    at: NDArray[np.int64]
    x: Floats  # (n, width)
    certain: Floats  # (n,) lead with which a label is certain at these rows

    @property
    def kernel(self) -> CompiledBoxes | None:
        """The compiled search that takes them; None where none does."""
        return None if self.answers is None else self.answers.prepared(self.mask).kernel


class _Unit(NamedTuple):
    """Rows that share their levels and their wish."""

    view: View
    mask: NDArray[np.bool_]  # (p,) prototypes of a wished-for label
    kernel: CompiledBoxes
    at: NDArray[np.int64]
    x: Floats  # (n, width)
    certain: Floats  # (n,) lead with which a label is certain at these rows


@final
@dataclass(frozen=True, eq=False)
class MixedRun:
    """One run over many rows.

    `outer` judges rows of the table themselves, and not their coordinates: what it says does not
    depend on levels. It has no template.
    """

    rows: Floats  # (n, d)
    groups: Sequence[NDArray[np.int64]]  # rows that share a view
    views_of: Callable[[Floats], Sequence[View]]  # of rows, one for each
    outer: Acceptance
    wish: Callable[[int], Any]  # of a row
    told: NDArray[Any] | None  # what the user's own `predict` says of the rows, if it is another
    breaks: NDArray[np.bool_]  # (n,) filled in: whether a row breaks a constraint as it is

    def run(self, jobs: int, progress: Counts) -> tuple[Table, NDArray[np.int64]]:
        """Answer rows; returns those that are left to other means as well."""
        n, d = self.rows.shape
        table = Table.blank(n, d)
        table.clear(slice(None))
        left: list[NDArray[np.int64]] = []
        size = self._block_size(jobs)

        def fill(block: _Block) -> int:
            rest = self._fill(table, block)
            left.append(rest)
            return rest.size

        run_blocks(self._blocks(size), fill, jobs, n, progress)
        return table, np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *left]))

    def _block_size(self, jobs: int) -> int:
        model = self.views_of(self.rows[:1])[0].model
        p, d = model.prototypes.shape
        most = _BLOCK_ENTRIES // ((p + model.anchors.shape[1]) * d)
        share = len(self.rows) if jobs == 1 else max(_LEAST_BLOCK, len(self.rows) // (4 * jobs))
        return max(1, min(_LARGEST_BLOCK, int(most), share))

    def _blocks(self, size: int) -> Iterator[_Block]:
        kept, count = _Block([]), 0
        most = min(size, _ROWS_OF_ONE_CALL)
        for group in self.groups:
            for start in range(0, group.size, most):
                part = group[start : start + most]
                if kept.groups and count + part.size > size:
                    yield kept
                    kept, count = _Block([]), 0
                kept.groups.append(part)
                count += part.size
        if kept.groups:
            yield kept

    def _fill(self, table: Table, block: _Block) -> NDArray[np.int64]:
        """Answer the rows of a block; returns those that are left."""
        with np.errstate(all="ignore"):  # what overflows proves nothing, and is not accepted
            seen = self._seen(block.groups)
            every = np.concatenate([group for _, group in seen])
            x = seen[0][0].inner_rows(self.rows[every])
            told = None if self.told is None else self.told[every]
            now, certain = self._judged_inputs(self.rows[every], told)
            table.nearest[every] = now.prototype
            holds = self._held(seen, every, x)
            parts, left = list[_Part](), [np.zeros(0, dtype=np.int64)]
            start, masks = 0, dict[tuple[int, int], NDArray[np.bool_]]()
            for view, group in seen:
                here = slice(start, start + group.size)
                start += group.size
                nearest, may_stay = now.prototype[here], now.steady[here] & holds[here]
                for mask, part in self._by_wish(view, group, nearest, masks):
                    stays = mask[nearest[part]] & may_stay[part]
                    self._keep(table, group[part[stays]])
                    rest = part[~stays]
                    parts += _asked(view, mask, group[rest], x[here][rest], certain[here][rest])
            units = list[_Unit]()
            for asked in _prepared(parts):
                kernel = asked.kernel
                if kernel is None:
                    left.append(asked.at)
                else:
                    units.append(_Unit(asked.view, asked.mask, kernel, *asked[3:]))
            left += [_Solving.of(self, table, some).run() for some in _stackable(units)]
            return np.concatenate(left)

    def _judged_inputs(self, rows: Floats, told: NDArray[Any] | None) -> tuple[Verdict, Floats]:
        """Ask about rows as they are, and for the leads with which labels are certain there."""
        outer = self.outer
        if outer.doubt is None:
            return outer.verdict(rows, told=told), np.zeros(len(rows))
        at = outer.doubt.at(rows)
        nearest, assured = outer.nearest_at(rows, at), outer.is_assured(rows, at=at)
        return outer.verdict(rows, None, nearest, assured, told), at.least_margin

    def _seen(self, groups: Sequence[NDArray[np.int64]]) -> list[tuple[View, NDArray[np.int64]]]:
        """Find the views of groups; those of one template come one after the other."""
        views = self.views_of(self.rows[[group[0] for group in groups]])
        place: dict[int, int] = {}
        for view in views:
            place.setdefault(id(view.rules.template), len(place))
        pairs = zip(views, groups, strict=True)
        return sorted(pairs, key=lambda pair: place[id(pair[0].rules.template)])

    def _held(
        self,
        seen: Sequence[tuple[View, NDArray[np.int64]]],
        every: NDArray[np.int64],
        x: Floats,
    ) -> NDArray[np.bool_]:
        """Say which inputs meet the constraints as they are: those of one template at once."""
        found, start = np.empty(len(x), dtype=bool), 0
        for _, run in groupby(seen, key=lambda pair: id(pair[0].rules.template)):
            listed = list(run)
            here = slice(start, start + sum(group.size for _, group in listed))
            start, view = here.stop, listed[0][0]
            found[here] = view.rules.keeps(x[here])
            off = ~found[here]
            if off.any():
                self.breaks[every[here][off]] = view.breaks(x[here][off])
        return found

    def _by_wish(
        self,
        view: View,
        group: NDArray[np.int64],
        nearest: NDArray[np.intp],
        masks: dict[tuple[int, int], NDArray[np.bool_]],
    ) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.intp]]]:
        """Divide a group by the prototypes that are wished for; `masks` are those known so far."""
        found: dict[bytes, tuple[NDArray[np.bool_], list[int]]] = {}
        for k, (i, near) in enumerate(zip(group.tolist(), nearest.tolist(), strict=True)):
            wish = self.wish(i)
            key = id(wish), near if wish is None else -1  # wishes live as long as the run
            if key not in masks:
                masks[key] = wished_prototypes(view.model, wish, near)
            found.setdefault(masks[key].tobytes(), (masks[key], []))[1].append(k)
        for mask, places in found.values():
            yield mask, np.array(places)

    def _keep(self, table: Table, at: NDArray[np.int64]) -> None:
        """Leave rows as they are that have their wish already."""
        table.X[at] = self.rows[at]
        table.cost[at] = table.gap[at] = 0.0
        table.mark(at, Status.OPTIMAL)
        table.prototype[at] = table.nearest[at]


def _asked(
    view: View, mask: NDArray[np.bool_], at: NDArray[np.int64], x: Floats, certain: Floats
) -> Iterator[_Part]:
    """Divide rows by who answers them."""
    answers = view.answers
    if not isinstance(answers, BranchAndBound):
        yield _Part(view, mask, None, at, x, certain)
        return
    for part, own in answers.divided(x) if len(x) else ():
        yield _Part(view, mask, part, at[own], x[own], certain[own])


def _prepared(parts: Sequence[_Part]) -> Sequence[_Part]:
    """Prepare those who answer: at once what has one wish."""
    found: dict[bytes, tuple[NDArray[np.bool_], list[BranchAndBound]]] = {}
    for part in parts:
        if part.answers is not None:
            found.setdefault(part.mask.tobytes(), (part.mask, []))[1].append(part.answers)
    for mask, each in found.values():
        BranchAndBound.prepare_each([*dict.fromkeys(each)], mask)
    return parts


def _stackable(units: Sequence[_Unit]) -> Iterator[list[_Unit]]:
    """Put units together whose models have the same shape."""
    found: dict[tuple[int | bool, ...], list[_Unit]] = {}
    for unit in units:
        found.setdefault(RowModels.shape_of(unit.view.model), []).append(unit)
    yield from found.values()


@final
@dataclass(frozen=True, eq=False)
class _Solving:
    """Rows of several units, one unit after the other: solved, judged and proved."""

    run_of: MixedRun
    table: Table
    units: Sequence[_Unit]
    starts: NDArray[np.intp]  # (units + 1,)
    unit_of: NDArray[np.intp]  # (n,)
    at: NDArray[np.int64]  # (n,)
    x: Floats  # (n, width)
    rows: Floats  # (n, d) of the table
    certain: Floats  # (n,) lead with which a label is certain at these rows
    least: Floats  # (n,) lead that is asked for

    @classmethod
    def of(cls, run: MixedRun, table: Table, units: Sequence[_Unit]) -> _Solving:
        """Put rows together."""
        sizes = [unit.at.size for unit in units]
        at = np.concatenate([unit.at for unit in units])
        rows, certain = run.rows[at], np.concatenate([unit.certain for unit in units])
        return cls(
            run, table, units, np.cumsum([0, *sizes]), np.repeat(np.arange(len(units)), sizes), at,
            np.concatenate([unit.x for unit in units]), rows, certain,
            run.outer.least_margin(rows, Around(certain, certain)),
        )  # fmt: skip

    @property
    def rules(self) -> Acceptance:
        """Rules about rows of the table."""
        return self.run_of.outer

    def run(self) -> NDArray[np.int64]:
        """Answer the rows, as many at a time as the trees have room for; returns those left."""
        n = len(self.at)
        Y, code = np.empty(self.x.shape), np.empty(n, dtype=np.int64)
        left, begun, room = np.ones(n, dtype=bool), 0, None
        pieces: dict[int, Pieces | None] = {}
        while begun < n:
            if room is not None:
                room.trees.used[:] = 0
            done = begun
            for number in range(int(self.unit_of[begun]), len(self.units)):
                unit, end = self.units[number], int(self.starts[number + 1])
                room = unit.kernel.room(n, room)
                if number not in pieces:
                    first = int(self.starts[number])
                    pieces[number] = unit.kernel.pieces_at(unit.x, room, first)
                # Steps lead by more than that on their own: no open gap is put down to it.
                least = np.maximum(self.least, unit.kernel.lead) if unit.kernel.lead else self.least
                done = branch_rows(
                    room, unit.kernel.flat.stated, self.x, slice(done, end), self.rules.margin,
                    least, Y, code, pieces[number],
                )  # fmt: skip
                if done < end:
                    break
            assert room is not None  # of the first unit at the latest
            part = slice(begun, done)
            left[part] = ~self._accept(part, Y[part], code[part], room.trees, pieces)
            begun = done
        return self.at[left]

    def _accept(
        self,
        part: slice,
        Y: Floats,
        code: NDArray[np.int64],
        trees: PackedTrees,
        pieces: Mapping[int, Pieces | None],
    ) -> NDArray[np.bool_]:
        """Judge what the search found and what its trees prove; says which rows are done."""
        rules, table, at, x = self.rules, self.table, self.at[part], self.x[part]
        solved = code == Code.SOLVED
        Y[~solved] = x[~solved]  # of which `predict` can say something
        judged = self._judged(part, Y, x)
        caps = np.where(code == Code.INFEASIBLE, np.inf, judged.cost)
        bound = self._proved(part, caps, trees, pieces)
        empty = (code == Code.INFEASIBLE) & (bound == np.inf) & (not rules.margin)
        table.mark(at[empty], Status.INFEASIBLE)
        table.bound[at[empty]], table.gap[at[empty]] = np.inf, 0.0
        gap = _gaps(judged.cost, bound)
        good = solved & judged.good
        good &= self._is_closed_enough(part, gap, good)
        if not good.any():
            return np.asarray(empty)
        found, nearest = np.zeros((len(Y), self.rows.shape[1])), np.full(len(Y), -1)
        for unit, here in self._templates_in(part):
            own = np.flatnonzero(good[here]) + here.start
            found[own] = unit.view.outer_rows(Y[own], self.rows[part][own])
        there = None if rules.doubt is None else rules.doubt.at(found[good])
        nearest[good] = rules.nearest_at(found[good], there)
        count = int(good.sum())
        for mask, own in self._by_mask(part, good):
            at_own = there if own.size == count else None  # with one wish these are all rows
            good[own] = rules.is_assured(found[own], mask, at_own)
            good[own] &= mask[nearest[own]]
        if rules.margin:
            for unit, here in self._units_in(part):
                own = np.flatnonzero(good[here]) + here.start
                good[own] = unit.view.rules.wins(Y[own], x[own], nearest[own], unit.mask)
        done, cost = at[good], judged.cost[good]
        table.X[done] = found[good]
        table.cost[done], table.bound[done] = cost, np.minimum(bound[good], cost)
        table.gap[done], table.resolution[done] = gap[good], judged.resolution[good]
        closed = _closed(judged, gap, bound)[good] & (not rules.margin)
        table.mark(done[closed], Status.OPTIMAL)
        table.mark(done[~closed], Status.FEASIBLE)
        table.prototype[done] = nearest[good]
        return np.asarray(good | empty)

    def _units_in(self, part: slice) -> Iterator[tuple[_Unit, slice]]:
        """List units that have rows in a part, with their rows as counted there."""
        ends = np.clip(self.starts, part.start, part.stop) - part.start
        for unit, start, end in zip(self.units, ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            if start < end:
                yield unit, slice(start, end)

    def _templates_in(self, part: slice) -> Iterator[tuple[_Unit, slice]]:
        """List rows of a part that share a template, with the first unit that has it."""
        kept: tuple[_Unit, slice] | None = None
        for unit, here in self._units_in(part):
            if kept is not None and kept[0].view.rules.template is unit.view.rules.template:
                kept = kept[0], slice(kept[1].start, here.stop)
                continue
            if kept is not None:
                yield kept
            kept = unit, here
        if kept is not None:
            yield kept

    def _by_mask(
        self, part: slice, kept: NDArray[np.bool_]
    ) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.intp]]]:
        """List wishes, with the kept rows of a part that have them."""
        found: dict[bytes, tuple[NDArray[np.bool_], list[NDArray[np.intp]]]] = {}
        for unit, here in self._units_in(part):
            own = np.flatnonzero(kept[here]) + here.start
            found.setdefault(unit.mask.tobytes(), (unit.mask, []))[1].append(own)
        for mask, parts in found.values():
            yield mask, np.concatenate(parts)

    def _judged(self, part: slice, Y: Floats, x: Floats) -> Judged:
        """Judge points by the constraints, those of one template at once.

        How far the prototypes reach in columns without bounds is the same for all levels.
        """
        each: list[Judged] = []
        for unit, here in self._templates_in(part):
            strict = takes_strictly(unit.kernel.flat)
            each.append(unit.view.rules.judged(Y[here], x[here], strict=strict))
        return Judged(*(np.concatenate(parts) for parts in zip(*each, strict=True)))

    def _is_closed_enough(
        self, part: slice, gap: Floats, asked: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Whether no more is open than a lead may leave open."""
        out = gap <= CLOSED_GAP
        if out[asked].all():
            return np.asarray(out)
        for unit, here in self._units_in(part):
            own = np.flatnonzero((asked & ~out)[here]) + here.start
            if own.size:
                x, least = self.x[part][own], self.least[part][own]
                out[own] = gap[own] <= unit.view.rules.open_share(x, unit.mask, least)
        return np.asarray(out)

    def _proved(
        self,
        part: slice,
        caps: Floats,
        trees: PackedTrees,
        pieces: Mapping[int, Pieces | None],
    ) -> Floats:
        """Bounds by the trees of rows; see `BoxQuestion.packed_bound`."""
        out, leads, x = np.zeros(caps.size), self._leads(part, caps), self.x[part]
        work: ProofWork | None = None
        for unit, here in self._units_in(part):
            flat, targets = unit.kernel.flat, unit.kernel.targets
            rows = slice(here.start + part.start, here.stop + part.start)
            first, count = trees.row_first[rows], trees.row_count[rows]
            own = trees.replaced(row_first=first, row_count=count)
            stated = pieces[int(self.unit_of[rows.start])]
            if stated is not None:
                stated = replace(stated, first=stated.first - rows.start)
            work = flat.work(trees, work)
            led_by = leads[here] + unit.kernel.lead
            out[here] = flat.bounds(x[here], caps[here], led_by, targets, own, stated, work)
        return out

    def _leads(self, part: slice, caps: Floats) -> Floats:
        """Lead that bounds are about: what `predict` may overlook is taken off."""
        rules, x, rows = self.rules, self.x[part], self.rows[part]
        around = within = np.zeros(caps.size)
        if rules.says is not None:
            models = RowModels.of([unit.view.model for unit in self.units], self.unit_of[part])
            around = blur_around(models, x, self.certain[part])
            reach = np.concatenate([
                reach_at(unit.kernel.flat.stated, x[here], caps[here])
                for unit, here in self._templates_in(part)
            ])  # fmt: skip
            overlooked = None
            if rules.doubt is not None:
                overlooked = rules.doubt.overlooked(rows, self.units[0].view.outer_reach(reach))
            within = blur_within(models, x, reach, around, overlooked)
        return leads_asked(rules.margin or 0.0, around, within, caps)


def _gaps(cost: Floats, bound: Floats) -> Floats:
    """Share of each cost that is not proved; as `relative_gap` has it."""
    share = (cost - bound) / cost
    return np.where(cost - bound <= 0.0, 0.0, np.where(share >= 0.0, share, np.inf))


def _closed(judged: Judged, gap: Floats, bound: Floats) -> NDArray[np.bool_]:
    return judged._replace(gap=gap).closed(bound, EXACT_GAP)

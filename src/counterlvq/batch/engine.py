"""Answer many rows: group them by target, run the kernels, ask again where need be.

A row's answer does not depend on the block or thread that it falls into.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.batch.nearest import nearest_of_many
from counterlvq.batch.threads import run_blocks
from counterlvq.certificates.acceptance import MOST_PUSHES, Acceptance
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import CLOSED_GAP, EXACT_GAP
from counterlvq.presentation.progress import Counts
from counterlvq.problem.targets import RowTargets, wished_prototypes
from counterlvq.programs.kernel_data import KernelData
from counterlvq.programs.proof_data import ProofData, limits_at, sides_at
from counterlvq.results import Counterfactual
from counterlvq.solvers import compiled
from counterlvq.solvers.compiled import Scratch
from counterlvq.types import Status

__all__ = ["CODES", "STATUSES", "BatchRun", "Table"]

# Multiplications that a block should stand for: a few hundredths of a second.
_BLOCK_WORK = 1 << 24
_LARGEST_BLOCK = 4096
# Blocks shrink to this towards the end, so that threads finish together.
_LAST_BLOCK = 512
STATUSES = np.array([str(status) for status in Status])
CODES = {status: code for code, status in enumerate(Status)}


@final
@dataclass(frozen=True, eq=False)
class Table:
    """Answers while they come in; each row is written once, by one thread."""

    X: Floats
    cost: Floats
    bound: Floats
    gap: Floats
    resolution: Floats
    code: NDArray[np.int8]
    prototype: NDArray[np.int64]
    nearest: NDArray[np.int64]  # prototype of the input
    second: NDArray[np.bool_]

    @classmethod
    def blank(cls, n: int, d: int) -> Table:
        """Set memory aside; every part has to be cleared before it is read."""
        return cls(
            np.empty((n, d)),
            np.empty(n),
            np.empty(n),
            np.empty(n),
            np.empty(n),
            np.empty(n, dtype=np.int8),
            np.empty(n, dtype=np.int64),
            np.empty(n, dtype=np.int64),
            np.empty(n, dtype=bool),
        )

    @classmethod
    def of(
        cls, rows: Floats, answers: Sequence[Counterfactual], nearest: NDArray[np.intp]
    ) -> Table:
        """Gather answers that were found one by one, each by the one way there is."""
        table = cls.blank(*rows.shape)
        table.clear(slice(None))
        table.nearest[:] = nearest
        for i, answer in enumerate(answers):
            table.put(i, answer)
        return table

    def clear(self, part: slice) -> None:
        """Nothing is known yet of these rows."""
        self.X[part], self.cost[part] = np.nan, np.inf
        self.bound[part], self.gap[part], self.resolution[part] = 0.0, np.inf, 0.0
        self.code[part], self.prototype[part] = CODES[Status.UNKNOWN], -1
        self.nearest[part], self.second[part] = -1, False

    def mark(self, rows: NDArray[np.int64], status: Status) -> None:
        """Give rows a status."""
        self.code[rows] = CODES[status]

    @property
    def status(self) -> NDArray[np.str_]:
        """Statuses by name, (n,)."""
        return np.asarray(STATUSES[self.code])

    def put(self, i: int, answer: Counterfactual) -> None:
        """Take over an answer that was found on its own."""
        self.X[i], self.cost[i] = answer.values, answer.cost
        self.bound[i], self.gap[i] = answer.lower_bound, answer.gap
        self.resolution[i] = answer.resolution
        self.code[i], self.prototype[i] = CODES[answer.status], answer.prototype

    def answered(self) -> NDArray[np.intp]:
        """Positions of the rows that this run has answered so far."""
        return np.flatnonzero(self.prototype >= 0)


@final
@dataclass(frozen=True, eq=False)
class _Block:
    """Rows with the same target."""

    at: NDArray[np.int64]
    target_mask: NDArray[np.bool_]  # (p,) prototypes of a wished-for label
    family: KernelData | None
    spare: list[Scratch]  # of the family, and in no thread's hands

    def __len__(self) -> int:
        return int(self.at.size)


@final
@dataclass(frozen=True, eq=False)
class BatchRun:
    """One run over many rows.

    `family_for` prepares a target, given as a mask over the prototypes; it may be None for
    what the kernels cannot take. `ask` answers a single row by any means.
    """

    model: PrototypeModel
    rules: Acceptance
    stated: ProofData
    rows: Floats  # (n, d)
    wish: Callable[[int], Any]  # of a row
    family_for: Callable[[NDArray[np.bool_]], KernelData | None]
    ask: Callable[[int], Counterfactual]

    def run(self, wishes: RowTargets | None, jobs: int, progress: Counts) -> Table:
        """Answer every row. `wishes` holds one per row, or is None if all wish the same."""
        n, d = self.rows.shape
        table = Table.blank(n, d)
        parts = (range(at, min(at + _LARGEST_BLOCK, n)) for at in range(0, n, _LARGEST_BLOCK))

        def begin(part: range) -> None:
            rows = slice(part.start, part.stop)
            table.clear(rows)  # first touched by the threads, which share the cost of the pages
            if self.rules.says is None:
                table.nearest[rows] = nearest_of_many(self.model, self.rows[rows])

        run_blocks(parts, begin, jobs, n, progress=False)
        steady = np.ones(n, dtype=bool)
        if self.rules.says is not None:
            told = self.rules.verdict(self.rows)
            table.nearest[:], steady = told.prototype, told.steady
        blocks = self._blocks(wishes, table.nearest, jobs)
        run_blocks(blocks, lambda block: self._fill(table, block, steady), jobs, n, progress)
        return table

    def _blocks(
        self, wishes: RowTargets | None, nearest: NDArray[np.int64], jobs: int
    ) -> Iterator[_Block]:
        groups: dict[bytes, tuple[NDArray[np.bool_], list[NDArray[np.int64]]]] = {}
        for at in _alike(self.model.class_index[nearest], wishes):
            first = int(at[0])
            target_mask = wished_prototypes(self.model, self.wish(first), int(nearest[first]))
            groups.setdefault(target_mask.tobytes(), (target_mask, []))[1].append(at)
        left = nearest.size
        for target_mask, parts in groups.values():
            family, spare = self.family_for(target_mask), list[Scratch]()
            size = _block_size(family)
            at = np.sort(np.concatenate(parts)) if len(parts) > 1 else parts[0]
            while at.size:
                share = size if jobs == 1 else max(_LAST_BLOCK, left // (2 * jobs))
                block = _Block(at[: min(size, share)], target_mask, family, spare)
                at, left = at[len(block) :], left - len(block)
                yield block

    def _fill(self, table: Table, block: _Block, steady: NDArray[np.bool_]) -> None:
        rest = self._keep_unchanged(table, block, steady)
        if block.family is not None and rest.size:
            rest = self._fill_compiled(table, block, block.family, rest)
        for i in rest:
            table.put(int(i), self.ask(int(i)))
            table.second[i] = True

    def _keep_unchanged(
        self, table: Table, block: _Block, steady: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """Leave rows as they are that have their wish already; returns the others."""
        has_wish = block.target_mask[table.nearest[block.at]] & steady[block.at]
        at = block.at[has_wish]
        if not at.size:
            return block.at
        x = self.rows[at]
        at = at[self.rules.keeps(x)]
        table.X[at] = self.rows[at]
        table.cost[at] = table.gap[at] = 0.0
        table.code[at] = CODES[Status.OPTIMAL]
        table.prototype[at] = table.nearest[at]
        return np.asarray(np.setdiff1d(block.at, at, assume_unique=True))

    def _fill_compiled(
        self, table: Table, block: _Block, family: KernelData, at: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Answer rows by the kernels; returns those whose answer does not stand up."""
        try:
            scratch = block.spare.pop()
        except IndexError:
            scratch = compiled.scratch_for(family)
        x = self.rows[at]
        least, left = self.rules.least_margin(x), []
        for _ in range(MOST_PUSHES):
            answers = self._answers(family, x, least, scratch)
            valid, entered = self._accept(table, block, at, x, least, answers)
            empty = answers.code == compiled.Code.INFEASIBLE
            if self.rules.margin:  # what there is without it is found row by row
                empty[:] = False
            table.code[at[empty]] = CODES[Status.INFEASIBLE]
            table.bound[at[empty]], table.gap[at[empty]] = np.inf, 0.0
            left.append(at[~valid & ~empty])
            # Good but for a lead that the user's own `predict` needs there.
            again = valid & ~entered
            at = at[again]
            if not at.size:
                break
            x, least = x[again], self.rules.pushed(least[again], answers.Y[again])
        block.spare.append(scratch)
        return np.sort(np.concatenate([*left, at]))

    def _answers(
        self, family: KernelData, x: Floats, least: Floats, scratch: Scratch
    ) -> compiled.Answers:
        """Run the kernels, and again where `predict` may overlook more than around x.

        How much that is depends on how far away an answer is, which is not known before.
        """
        rules, around = self.rules, self.rules.blur(x)
        answers = compiled.run(family, self.stated, x, rules.margin, scratch, least, around)
        if rules.says is None:
            return answers
        cost = rules.judged(answers.Y, x).cost
        caps = np.where(answers.code == compiled.Code.SOLVED, cost, np.inf)
        limits = limits_at(self.stated, caps)
        there = rules.blur_within(x, limits)
        unlimited = np.flatnonzero(np.isinf(there))
        if unlimited.size:
            sides = sides_at(self.stated, x[unlimited])
            there[unlimited] = rules.blur_within(x[unlimited], np.minimum(limits[unlimited], sides))
            there = np.where(np.isinf(there) & np.isinf(caps), around, there)
            # A cost that limits nothing proves nothing.
            answers.bound[np.isinf(there)] = 0.0
        more = np.flatnonzero((there > around) & np.isfinite(there))
        if more.size:
            again = compiled.run(
                family, self.stated, x[more], rules.margin, scratch, least[more], there[more]
            )
            answers.Y[more], answers.cost[more] = again.Y, again.cost
            answers.bound[more], answers.code[more] = again.bound, again.code
        return answers

    def _accept(
        self,
        table: Table,
        block: _Block,
        at: NDArray[np.int64],
        x: Floats,
        least: Floats,
        answers: compiled.Answers,
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Judge finished points; say which are valid, and which of these were entered."""
        Y, bound = answers.Y, answers.bound
        judged = self.rules.judged(Y, x, bound)
        good = judged.good & (answers.code == compiled.Code.SOLVED)
        if not good.all():
            Y[~good] = x[~good]  # of which `predict` can say something
        nearest = nearest_of_many(self.model, Y)
        good &= self.rules.wins(Y, x, nearest, block.target_mask)
        # What stays open is asked again, one by one: exact arithmetic may close it.
        good &= (judged.gap <= CLOSED_GAP) | (
            judged.gap <= self.rules.open_share(x, block.target_mask, least)
        )
        valid = good.copy()
        if self.rules.doubt is not None and good.any():
            good[good] = self.rules.is_assured(Y[good], block.target_mask)
        done, keep = (at, slice(None)) if good.all() else (at[good], good)
        table.X[done], table.cost[done] = Y[keep], judged.cost[keep]
        table.gap[done], table.resolution[done] = judged.gap[keep], judged.resolution[keep]
        table.bound[done] = np.minimum(bound[keep], judged.cost[keep])
        closed = judged.closed(bound, EXACT_GAP)[keep] & (not self.rules.margin)
        table.code[done] = np.where(closed, CODES[Status.OPTIMAL], CODES[Status.FEASIBLE])
        table.prototype[done] = nearest[keep]
        return valid, good


def _block_size(family: KernelData | None) -> int:
    if family is None:
        return 1
    d, m = family.RNT.shape
    work = max(1, family.TA.shape[0] * m * d)
    return int(np.clip(_BLOCK_WORK // work, 1, _LARGEST_BLOCK))


def _alike(now: NDArray[np.intp], wishes: RowTargets | None) -> Iterator[NDArray[np.int64]]:
    """Positions of rows that share their class and their wish."""
    key = now.astype(np.int64)
    if wishes is not None:
        key = wishes.codes * (int(now.max()) + 1) + now
    if key.max() <= np.iinfo(np.int16).max:
        key = key.astype(np.int16)  # which NumPy sorts in linear time
    order = np.argsort(key, kind="stable")
    cuts = np.flatnonzero(np.diff(key[order])) + 1
    yield from np.split(order, cuts)

"""Search strategies by problem class: shared metrics, local metrics, grids.

Both turn an input and a wish into a question, and a question into a find with its
certificate. What depends on model and target alone is prepared once and kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.cells import Halfspaces, LocalCells, SharedCells
from counterlvq.certificates.acceptance import Acceptance
from counterlvq.certificates.box_questions import BoxQuestion
from counterlvq.certificates.boxes import BoxCertificate
from counterlvq.certificates.questions import Question
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import CLOSED_GAP, EXACT_GAP
from counterlvq.programs.kernel_data import KernelData, family_of
from counterlvq.programs.proof_data import ProofData, proof_data_of
from counterlvq.programs.template import ProgramTemplate
from counterlvq.search.branch_and_bound import Branching, Progress
from counterlvq.search.conflicts import Reason, conflict_of
from counterlvq.search.exact import Search, compiled_find, refutation
from counterlvq.search.mixed_integer import MixedBranching
from counterlvq.search.result import SearchContext, SearchResult
from counterlvq.solvers.ccp import Frames, warm_up
from counterlvq.types import Method

__all__ = ["BranchAndBound", "Exact", "MixedInteger", "Strategy", "conflict", "judge_by"]

# Bytes that prepared targets may take before the oldest are forgotten.
_MOST_PREPARED = 1 << 28
# Relaxations that "auto" spends on one answer of up to ten features, and on any answer: the
# time of a relaxation grows with the third power of the features.
_BUDGET, _LEAST_BUDGET, _BUDGET_FEATURES = 250, 20, 10
# Convex programs that an answer on a grid may take under a shared metric: hundreds of times what
# real tables need, but conditions that no whole numbers meet could go on for ever.
_GRID_BUDGET = 5000
# What a question about some of the constraints may take: so many times the boxes that the proof
# for all of them took, and at least so many boxes. With others left out, a search that ended by
# itself may go on for ever.
_CONFLICT_EFFORT, _CONFLICT_BOXES = 2, 60
# One over the share of the time left that a question about some of the constraints may take.
_CONFLICT_SHARES = 4.0

# How long after a time limit the proof of an answer may still be checked.
_LATE_SHARE, _LATE = 0.05, 0.1

Reporter = Callable[[Progress], None]
Prepared = Callable[[Sequence[int]], ProgramTemplate]
Predictor = Callable[[Floats], NDArray[Any]]


@final
@dataclass(frozen=True, eq=False)
class _Wins:
    """Whether the user's own `predict` gives a point one of the labels."""

    says: Predictor
    labels: NDArray[Any]

    def __call__(self, y: Floats) -> bool:
        return bool(np.isin(self.says(y[None, :]), self.labels)[0])


def _local_question(
    template: ProgramTemplate,
    cells: LocalCells | SharedCells,
    x: Floats,
    rules: Acceptance,
    target_mask: NDArray[np.bool_],
) -> BoxQuestion:
    """State what is asked, with the user's own `predict` and what it may overlook."""
    if rules.says is None:
        return BoxQuestion(template, cells, x)
    wins = _Wins(rules.says, rules.model.labels[target_mask])
    return BoxQuestion(template, cells, x, wins, *_blurs(rules, x))


def _blurs(rules: Acceptance, x: Floats) -> tuple[float, Callable[[Floats], float]]:
    """Say what the user's own `predict` may overlook around `x`, and within limits."""
    X = x[None, :]
    return float(rules.blur(X)[0]), lambda most: float(rules.blur_within(X, most[None, :])[0])


def judge_by(
    rules: Acceptance, x: Floats, target_mask: NDArray[np.bool_], time_limit: float | None = None
) -> SearchContext:
    """Judge points by the rules; the clock runs from now on."""
    deadline = np.inf if time_limit is None else time.monotonic() + time_limit
    latest = np.inf if time_limit is None else deadline + _LATE_SHARE * time_limit + _LATE
    X = x[None, :]
    return SearchContext(
        is_valid=lambda y, strict: rules.accepts(y, x, target_mask, strict=strict),
        price=lambda y: float(rules.judged(y[None, :], X).cost[0]),
        gap=lambda y, bound: float(rules.judged(y[None, :], X, bound).gap[0]),
        out_of_time=lambda: time.monotonic() > deadline,
        seconds_left=lambda: deadline - time.monotonic(),
        too_late=lambda: time.monotonic() > latest,
    )


def budget_for(width: int) -> int:
    """Say how many relaxations "auto" may spend on one answer."""
    features = max(width, _BUDGET_FEATURES)
    return max(_LEAST_BUDGET, int(_BUDGET * (_BUDGET_FEATURES / features) ** 3))


class Room(NamedTuple):
    """What a search under some of the constraints came to."""

    y: Floats | None  # an answer, if any
    is_excluded: bool  # it is proved that there is none


def conflict(
    answers: Strategy,
    rules: Acceptance,
    x: Floats,
    target_mask: NDArray[np.bool_],
    find: SearchResult,
    count: int,
    prepared: Prepared,
    judge: SearchContext,
) -> Reason:
    """Find a small set of the `count` constraints that leaves no room for a wished-for label.

    `prepared` states listed constraints in numbers, `rules` says what an answer has to satisfy
    under all of them, `find` proves that there is no answer, and `judge` has the clock, of which
    each question gets a share.
    """
    budget = _conflict_budget(find)
    spread = answers.question(x, target_mask).spread
    lead = float(rules.least_margin(x[None, :])[0])

    def contradict(kept: Sequence[int]) -> bool:
        template = prepared(kept)
        bare = template.at(x, Halfspaces.none(x.size), spread)
        return refutation(template, x, bare) is not None

    def room(kept: Sequence[int]) -> bool | None:
        fewer = replace(rules, template=prepared(kept))
        seconds = judge.seconds_left() / _CONFLICT_SHARES
        own = judge_by(fewer, x, target_mask, seconds if np.isfinite(seconds) else None)
        # Where the lead that the user's own `predict` needs cannot be had, a smaller one may do.
        for least in (lead, 0.0) if lead else (0.0,):
            found = answers.room(x, target_mask, replace(own, least=least), fewer.template, budget)
            if found.is_excluded:
                return False
            if found.y is not None and fewer.confirms(found.y, target_mask):
                return True
        return None

    return conflict_of(count, contradict, room, judge.out_of_time)


def _conflict_budget(find: SearchResult) -> int:
    """Say how many boxes a question about some of the constraints may take."""
    trees = find.certificate.trees if isinstance(find.certificate, BoxCertificate) else ()
    return max(_CONFLICT_BOXES, _CONFLICT_EFFORT * sum(len(tree.prices) for tree in trees))


def _room(
    question: Question | BoxQuestion,
    find: SearchResult,
    margin: float | None,
    judge: SearchContext,
) -> Room:
    """Say what a find under some of the constraints shows: a point, or that there is none."""
    if find.y is not None:
        return Room(find.y, is_excluded=False)
    shown = find.certificate.excludes_all(question, margin or 0.0, stop=judge.too_late)
    return Room(None, shown)


def _warm_up_bounds() -> None:
    # Numba takes a second to import and is not needed before this point.
    from counterlvq.certificates.lifted_kernel import warm_up as warm_up_bounds

    warm_up_bounds()


class Strategy(Protocol):
    """What the explainer asks of either way."""

    @property
    def closing_gap(self) -> float:
        """The gap at which an answer counts as OPTIMAL."""

    def question(self, x: Floats, target_mask: NDArray[np.bool_]) -> Question | BoxQuestion:
        """State what is asked."""

    def get_ready(self) -> None:
        """Load what takes long the first time, before a clock runs."""

    def find(
        self,
        x: Floats,
        target_mask: NDArray[np.bool_],
        judge: SearchContext,
        report: Reporter | None,
    ) -> SearchResult:
        """Look for the answer."""

    def room(
        self,
        x: Floats,
        target_mask: NDArray[np.bool_],
        judge: SearchContext,
        template: ProgramTemplate,
        budget: int,
    ) -> Room:
        """Look for any answer under other constraints, by the method of `find`.

        Branch and bound may take `budget` boxes.
        """


@final
@dataclass(frozen=True, eq=False)
class Exact:
    """Exact programs: the compiled kernel first, the other engines where that fails."""

    model: PrototypeModel
    template: ProgramTemplate
    margin: float | None
    rules: Acceptance
    _targets: dict[bytes, tuple[SharedCells, KernelData | None]] = field(
        init=False, default_factory=dict
    )

    @property
    def closing_gap(self) -> float:
        """The gap at which an answer counts as OPTIMAL."""
        return EXACT_GAP

    def question(self, x: Floats, target_mask: NDArray[np.bool_]) -> Question:
        """State what is asked."""
        cells = self.prepared(target_mask)[0]
        if self.rules.says is None:
            return Question(self.template, cells, x, self.stated)
        blurs = _blurs(self.rules, x)
        return Question(self.template, cells, x, self.stated, *blurs, is_exact=False)

    @cached_property
    def stated(self) -> ProofData:
        """What proofs rest on, for any target."""
        return proof_data_of(self.template, self.model)

    def prepared(self, target_mask: NDArray[np.bool_]) -> tuple[SharedCells, KernelData | None]:
        """Prepare once what depends on model and target alone."""
        key = np.packbits(target_mask).tobytes()
        known = self._targets.get(key)
        if known is None:
            ties_count = bool(self.margin) or self.rules.says is not None
            cells = SharedCells.of(self.model, target_mask, ties_count=ties_count)
            known = cells, family_of(self.template, cells, self.stated)
            size = 0 if known[1] is None else sum(np.asarray(part).nbytes for part in known[1])
            # The oldest leave first. A list is made in one go, whatever other threads do.
            for old in list(self._targets):
                if (len(self._targets) + 1) * size > _MOST_PREPARED:
                    self._targets.pop(old, None)
            self._targets[key] = known
        return known

    def get_ready(self) -> None:
        """Do nothing: the kernels of shared metrics answer in one go."""

    def find(
        self,
        x: Floats,
        target_mask: NDArray[np.bool_],
        judge: SearchContext,
        report: Reporter | None,
    ) -> SearchResult:
        """Ask the compiled kernel; where its answer does not stand up, the other engines."""
        question, family = self.question(x, target_mask), self.prepared(target_mask)[1]
        if family is not None and not judge.out_of_time():
            find = compiled_find(question, family, self.margin, judge)
            if find is not None and find.y is None:
                margin, stop = self.margin or 0.0, judge.too_late
                shown = find.certificate.excludes_all(question, margin, stop=stop)
                find = replace(find, is_excluded=shown)
            if find is not None and self._stands(question, find, judge):
                return find
        return Search(question, self.margin, judge).run()

    def _stands(self, question: Question, find: SearchResult, judge: SearchContext) -> bool:
        """Whether a second engine would not do better."""
        if find.y is None:
            return find.is_excluded
        margin, stop = self.margin or 0.0, judge.too_late
        bound = find.certificate.lower_bound(question, find.cost, margin, stop=stop)
        return judge.gap(find.y, bound) <= max(CLOSED_GAP, judge.open_share)

    def room(
        self,
        x: Floats,
        target_mask: NDArray[np.bool_],
        judge: SearchContext,
        template: ProgramTemplate,
        budget: int,
    ) -> Room:
        """Look for any answer under other constraints, by the method of `find`.

        There is nothing here that `budget` could limit.
        """
        question = replace(self.question(x, target_mask), template=template, known=None)
        family = family_of(template, question.cells, question.grounds.stated)
        if family is not None and not judge.out_of_time():
            find = compiled_find(question, family, self.margin, judge)
            room = None if find is None else _room(question, find, self.margin, judge)
            if room is not None and (room.y is not None or room.is_excluded):
                return room
        find = Search(question, self.margin, judge).run()
        return _room(question, find, self.margin, judge)


@final
@dataclass(frozen=True, eq=False)
class MixedInteger:
    """Branch and bound over a grid: whole numbers, decimals and levels, in any metric."""

    model: PrototypeModel
    template: ProgramTemplate
    margin: float | None
    method: Method
    gap: float
    rules: Acceptance
    _targets: dict[bytes, LocalCells | SharedCells] = field(init=False, default_factory=dict)

    @property
    def closing_gap(self) -> float:
        """The gap at which an answer counts as OPTIMAL."""
        return self.gap if self.model.is_local else EXACT_GAP

    def question(self, x: Floats, target_mask: NDArray[np.bool_]) -> BoxQuestion:
        """State what is asked."""
        key = np.packbits(target_mask).tobytes()
        cells = self._targets.get(key)
        if cells is None:
            kind = LocalCells if self.model.is_local else SharedCells
            ties_count = bool(self.margin) or self.rules.says is not None
            cells = kind.of(self.model, target_mask, ties_count=ties_count)
            self._targets[key] = cells
        return _local_question(self.template, cells, x, self.rules, target_mask)

    def get_ready(self) -> None:
        """Load the compiled search: the first time after an installation it is compiled."""
        _warm_up_bounds()
        if self.model.is_local:
            warm_up()

    def find(
        self,
        x: Floats,
        target_mask: NDArray[np.bool_],
        judge: SearchContext,
        report: Reporter | None,
    ) -> SearchResult:
        """Search by the chosen method; under a shared metric there is the exact one only."""
        question = self.question(x, target_mask)
        if not self.model.is_local:
            most = None if self.method is Method.GLOBAL else _GRID_BUDGET
            run = MixedBranching(question, self.margin, judge, 0.5 * EXACT_GAP, most, report)
            return run.run()
        if self.method is Method.CCP:
            return MixedBranching(question, self.margin, judge, self.gap, 0).run_local()
        budget = None if self.method is Method.GLOBAL else budget_for(x.size)
        return MixedBranching(question, self.margin, judge, self.gap, budget, report).run()

    def room(
        self,
        x: Floats,
        target_mask: NDArray[np.bool_],
        judge: SearchContext,
        template: ProgramTemplate,
        budget: int,
    ) -> Room:
        """Look for any answer under other constraints, by the method of `find`.

        Branch and bound may take `budget` boxes.
        """
        question = replace(self.question(x, target_mask), template=template)
        # Any answer closes the search: there is room, whatever it costs.
        find = MixedBranching(question, self.margin, judge, np.inf, budget).run()
        return _room(question, find, self.margin, judge)


@final
@dataclass(frozen=True, eq=False)
class BranchAndBound:
    """Convex-concave search, and branch and bound for the proof."""

    model: PrototypeModel
    template: ProgramTemplate
    margin: float | None
    method: Method
    gap: float
    rules: Acceptance
    _targets: dict[bytes, tuple[LocalCells, Frames]] = field(init=False, default_factory=dict)

    @property
    def closing_gap(self) -> float:
        """The gap at which an answer counts as OPTIMAL."""
        return self.gap

    def question(self, x: Floats, target_mask: NDArray[np.bool_]) -> BoxQuestion:
        """State what is asked."""
        return _local_question(
            self.template, self._prepared(target_mask)[0], x, self.rules, target_mask
        )

    def _prepared(self, target_mask: NDArray[np.bool_]) -> tuple[LocalCells, Frames]:
        """Prepare once what depends on model and target alone."""
        key = np.packbits(target_mask).tobytes()
        known = self._targets.get(key)
        if known is None:
            ties_count = bool(self.margin) or self.rules.says is not None
            cells = LocalCells.of(self.model, target_mask, ties_count=ties_count)
            known = self._targets[key] = cells, Frames(cells.rival_metrics)
        return known

    def get_ready(self) -> None:
        """Load the compiled search: the first time after an installation it is compiled."""
        _warm_up_bounds()
        warm_up()

    def find(
        self,
        x: Floats,
        target_mask: NDArray[np.bool_],
        judge: SearchContext,
        report: Reporter | None,
    ) -> SearchResult:
        """Search by the chosen method."""
        question, frames = self.question(x, target_mask), self._prepared(target_mask)[1]
        if self.method is Method.CCP:
            return Branching(question, self.margin, judge, self.gap, 0, None, frames).run_local()
        budget = None if self.method is Method.GLOBAL else budget_for(x.size)
        return Branching(question, self.margin, judge, self.gap, budget, report, frames).run()

    def room(
        self,
        x: Floats,
        target_mask: NDArray[np.bool_],
        judge: SearchContext,
        template: ProgramTemplate,
        budget: int,
    ) -> Room:
        """Look for any answer under other constraints, by the method of `find`.

        Branch and bound may take `budget` boxes.
        """
        question = replace(self.question(x, target_mask), template=template)
        # Any answer closes the search: there is room, whatever it costs.
        find = Branching(question, self.margin, judge, np.inf, budget).run()
        return _room(question, find, self.margin, judge)

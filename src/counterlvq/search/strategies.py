"""Search strategies by problem class: exact programs, or branch and bound.

Both turn an input and a wish into a question, and a question into a result with its
certificate. What depends on model and target alone is prepared once and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import final

import numpy as np
from numpy.typing import NDArray

from counterlvq.cells import Halfspaces, LocalCells, SharedCells
from counterlvq.certificates.acceptance import Acceptance
from counterlvq.certificates.box_questions import BoxQuestion
from counterlvq.certificates.boxes import BoxCertificate
from counterlvq.certificates.lifted_kernel import warm_up as warm_up_bounds
from counterlvq.certificates.packed_boxes import (
    FlatGrounds,
    flat_grounds,
    flat_grounds_of_each,
)
from counterlvq.certificates.questions import Question
from counterlvq.certificates.sums_in_steps import counts_in_steps, lead_of_steps, tightened
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.memory import Kept
from counterlvq.numeric.tolerances import CLOSED_GAP, EXACT_GAP
from counterlvq.programs.kernel_data import KernelData, family_of
from counterlvq.programs.proof_data import ProofData, proof_data_of
from counterlvq.programs.template import ProgramTemplate
from counterlvq.search.branch_and_bound import Branching
from counterlvq.search.compiled_boxes import compiled_boxes_find
from counterlvq.search.conflicts import Reason, Room, conflict_of
from counterlvq.search.contradictions import refutation
from counterlvq.search.exact import Search, compiled_find
from counterlvq.search.mixed_integer import MixedBranching
from counterlvq.search.prepared_cells import (
    PreparedCells,
    compiled_boxes,
    compiled_boxes_of_each,
    meet_alike,
)
from counterlvq.search.progress import Progress
from counterlvq.search.result import SearchContext, SearchResult
from counterlvq.search.seen_space import SeenBranching, space_of
from counterlvq.solvers.ccp import Frames, warm_up
from counterlvq.solvers.kernels.symmetric import warm_up as warm_up_relaxations
from counterlvq.solvers.metric_space import MetricSpace
from counterlvq.types import Method

__all__ = [
    "BranchAndBound",
    "Exact",
    "Strategy",
    "conflict",
    "conflict_budget",
    "found_room",
    "room_under",
]

# Bytes that prepared targets may take before the oldest are forgotten.
_MOST_PREPARED = 1 << 28
# Relaxations that "auto" spends on one answer of up to ten features, and on any answer: the
# time of a relaxation grows with the third power of the features, unless no two of them meet.
_BUDGET, _LEAST_BUDGET, _BUDGET_FEATURES = 250, 20, 10
# Where relaxations lift what the metrics see: the most boxes, and the products of numbers that
# "auto" spends on one answer.
_SEEN_BUDGET, _WORK = 400, 6e10
# The work that "auto" spends on an answer on a grid under local metrics, in relaxations of a few
# features: most boxes of such a search hold most features in place.
_MIXED_WORK = 1000.0
# The work that "auto" spends on an answer on a grid under a shared metric where the compiled search
# gave up, in small convex programs: tens of times what real tables need, but fine grids beside
# each other, and conditions that no whole numbers meet, could go on for ever.
_GRID_WORK = 1500.0
# What a question about some of the constraints may take: so many times the boxes that the proof
# for all of them took, and at least so many boxes. With others left out, a search that ended by
# itself may go on for ever.
_CONFLICT_EFFORT, _CONFLICT_BOXES = 2, 60
# One over the share of the time left that a question about some of the constraints may take.
_CONFLICT_SHARES = 4.0
# Where a limit of time leaves some, questions that stayed open may take so many times the boxes,
# and again, so often; until this share of it is over, for ranges and steps are looked at next.
_DEEPER, _DEEPENINGS, _DEEPER_SHARE = 4, 5, 0.5

Reporter = Callable[[Progress], None]
Prepared = Callable[[Sequence[int]], ProgramTemplate]
Asked = Question | BoxQuestion


def _blurs(rules: Acceptance, x: Floats) -> tuple[float, Callable[[Floats], float]]:
    """Say what the user's own `predict` may overlook around `x`, and within limits."""
    X = x[None, :]
    return float(rules.blur(X)[0]), lambda most: float(rules.blur_within(X, most[None, :])[0])


def budget_for(width: int) -> int:
    """Say how many relaxations "auto" may spend on one answer."""
    features = max(width, _BUDGET_FEATURES)
    return max(_LEAST_BUDGET, int(_BUDGET * (_BUDGET_FEATURES / features) ** 3))


def conflict(
    answers: Strategy,
    question: Asked,
    context: SearchContext,
    find: SearchResult,
    count: int,
    prepared: Prepared,
) -> Reason:
    """Find a small set of the `count` constraints that leaves no room for a wished-for label.

    `prepared` states listed constraints in numbers, `find` proves that there is no answer under
    all of them, and `context` has the clock, of which each question gets a share.
    """
    x = context.x
    budget = _conflict_budget(find)
    room = room_under(answers, question, context, budget, prepared)

    def deeper() -> Iterator[Room]:
        seconds = context.seconds_left()
        if not (isinstance(answers, BranchAndBound) and np.isfinite(seconds)):
            return  # there is no number of boxes, or it is all that ends a search
        for k in range(1, _DEEPENINGS + 1):
            further = room_under(answers, question, context, budget * _DEEPER**k, prepared)
            yield _until(further, context, seconds * (1.0 - _DEEPER_SHARE))

    def contradict(kept: Sequence[int]) -> bool:
        template = prepared(kept)
        bare = template.at(x, Halfspaces.none(x.size), question.spread)
        return refutation(template, x, bare) is not None

    return conflict_of(count, contradict, room, context.out_of_time, deeper())


def _until(room: Room, context: SearchContext, reserve: float) -> Room:
    """Leave open what is asked when no more than so many seconds are left."""
    return lambda kept: room(kept) if context.seconds_left() > reserve else None


def steps_in_the_way(
    answers: Strategy,
    question: Asked,
    context: SearchContext,
    find: SearchResult,
    stepped: Sequence[int],
    prepared: Callable[[frozenset[int]], ProgramTemplate],
) -> tuple[int, ...]:
    """List features without whose steps there would be room; none if steps are not the reason.

    `prepared` states what clashes in numbers, without the steps of some features. One after the
    other gets its steps back as long as a valid point is found without those of the others.
    """

    def leaves_room(lifted: frozenset[int]) -> bool:
        room = room_under(
            answers, question, context, _conflict_budget(find), lambda _: prepared(lifted)
        )
        return not context.out_of_time() and room(()) is True

    lifted = frozenset(stepped)
    if not lifted or not leaves_room(lifted):
        return ()
    for j in stepped:
        fewer = lifted - {j}
        lifted = fewer if fewer and leaves_room(fewer) else lifted
    return tuple(sorted(lifted))


def room_under(
    answers: Strategy,
    question: Asked,
    context: SearchContext,
    budget: int,
    prepared: Prepared,
) -> Room:
    """Say of listed constraints whether they leave room for a wished-for label.

    `prepared` states them in numbers, branch and bound may take `budget` boxes, and each question
    gets a share of the time that is left.
    """

    def room(kept: Sequence[int]) -> bool | None:
        fewer = replace(context.rules, template=prepared(kept))
        deadline = context.deadline.shared(_CONFLICT_SHARES)
        own = SearchContext(fewer, context.x, context.target_mask, deadline)
        found = found_room(answers, question, own, budget)
        return None if found is None else found.answer is not None

    return room


def found_room(
    answers: Strategy, question: Asked, context: SearchContext, budget: int
) -> SearchResult | None:
    """Find any answer, or prove that there is none; None where neither could be had."""
    rules = context.rules
    lead = float(rules.least_margin(context.x[None, :])[0])
    # Where the lead that the user's own `predict` needs cannot be had, a smaller one may do.
    for least in (lead, 0.0) if lead else (0.0,):
        found = answers.room(question, replace(context, least=least), budget)
        if found.is_excluded:
            return replace(found, answer=None)
        answer = found.answer
        if answer is not None and rules.confirms(answer, context.target_mask) is not None:
            return found
    return None


def _conflict_budget(find: SearchResult) -> int:
    return conflict_budget([find.certificate])


def conflict_budget(proofs: Iterable[object]) -> int:
    """Say how many boxes a question about some of the constraints may take, by proofs for all."""
    trees = [tree for proof in proofs if isinstance(proof, BoxCertificate) for tree in proof.trees]
    return max(_CONFLICT_BOXES, _CONFLICT_EFFORT * sum(len(tree.prices) for tree in trees))


def _room(question: Asked, find: SearchResult, context: SearchContext) -> SearchResult:
    """Check, where there is no answer, whether it is proved that there is none."""
    return find.checked(question, context) if find.answer is None else find


@final
@dataclass(frozen=True, eq=False)
class Exact:
    """Exact programs: the compiled kernel first, the other engines where that fails."""

    rules: Acceptance
    _targets: Kept[bytes, tuple[SharedCells, KernelData | None]] = field(
        init=False, default_factory=lambda: Kept(_MOST_PREPARED)
    )

    @property
    def closing_gap(self) -> float:
        """The gap at which an answer counts as OPTIMAL."""
        return EXACT_GAP

    def question(self, x: Floats, target_mask: NDArray[np.bool_]) -> Question:
        """State what is asked."""
        cells, template = self.prepared(target_mask)[0], self.rules.template
        if self.rules.says is None:
            return Question(template, cells, x, self.stated)
        return Question(template, cells, x, self.stated, *_blurs(self.rules, x), is_exact=False)

    @cached_property
    def stated(self) -> ProofData:
        """What proofs rest on, for any target."""
        return proof_data_of(self.rules.template, self.rules.model)

    def prepared(self, target_mask: NDArray[np.bool_]) -> tuple[SharedCells, KernelData | None]:
        """Prepare once what depends on model and target alone."""

        def made() -> tuple[tuple[SharedCells, KernelData | None], int]:
            rules = self.rules
            cells = SharedCells.of(rules.model, target_mask, ties_count=rules.ties_count)
            family = family_of(rules.template, cells)
            size = 0 if family is None else family.nbytes
            return (cells, family), cells.nbytes + size

        return self._targets.get(target_mask.tobytes(), made)

    def get_ready(self) -> None:
        """Do nothing: the kernels of shared metrics answer in one go."""

    def find(
        self, question: Asked, context: SearchContext, report: Reporter | None
    ) -> SearchResult:
        """Ask the compiled kernel; where its answer does not stand up, the other engines."""
        assert isinstance(question, Question)
        family = self.prepared(context.target_mask)[1]
        if family is not None and not context.out_of_time():
            find = compiled_find(question, family, context)
            find = None if find is None else find.checked(question, context)
            if find is not None and _stands(find, context):
                return find
        return Search(question, context).run()

    def room(self, question: Asked, context: SearchContext, budget: int) -> SearchResult:
        """Look for any answer under the constraints of `context`, by the method of `find`.

        There is nothing here that `budget` could limit.
        """
        assert isinstance(question, Question)
        question = replace(question, template=context.rules.template, known=None)
        family = family_of(question.template, question.cells)
        if family is not None and not context.out_of_time():
            find = compiled_find(question, family, context)
            find = None if find is None else _room(question, find, context)
            if find is not None and (find.answer is not None or find.is_excluded):
                return find
        return _room(question, Search(question, context).run(), context)


def _stands(find: SearchResult, context: SearchContext) -> bool:
    """Whether a second engine would not do better."""
    if find.answer is None or find.bound is None:
        return bool(find.is_excluded)
    return find.answer.gap(find.bound) <= max(CLOSED_GAP, context.open_share)


@final
@dataclass(frozen=True, eq=False)
class BranchAndBound:
    """Branch and bound: for local metrics, and in any metric for grids of whole numbers and levels.

    Under local metrics answers are found by convex-concave search.
    """

    rules: Acceptance
    method: Method
    gap: float
    in_steps: bool = False  # whether all whole numbers of inputs are multiples of their steps
    _targets: Kept[bytes, PreparedCells] = field(
        init=False, default_factory=lambda: Kept(_MOST_PREPARED)
    )
    # What the metrics see at the cost of `rules`, by which features can change.
    _spaces: Kept[bytes, MetricSpace | None] = field(
        init=False, default_factory=lambda: Kept(_MOST_PREPARED)
    )

    @property
    def closing_gap(self) -> float:
        """The gap at which an answer counts as OPTIMAL."""
        return self.gap if self._is_local else EXACT_GAP

    @property
    def _is_local(self) -> bool:
        return self.rules.model.is_local

    def question(self, x: Floats, target_mask: NDArray[np.bool_]) -> BoxQuestion:
        """State what is asked, with the user's own `predict` and what it may overlook."""
        own = self.of_input(x)
        rules, prepared = own.rules, own.prepared(target_mask)
        cells, says, labels = prepared.cells, rules.says, rules.model.labels[target_mask]
        if says is None:
            return BoxQuestion(rules.template, cells, x, flat=own.flat, lead=prepared.lead)
        blurs = _blurs(rules, x)
        return BoxQuestion(
            rules.template,
            cells,
            x,
            lambda y: bool(np.isin(says(y[None, :]), labels)[0]),
            *blurs,
            flat=own.flat,
        )

    def of_input(self, x: Floats) -> BranchAndBound:
        """Return who answers an input: more is known where its whole numbers count in steps."""
        return self.divided(x[None, :])[0][0]

    def divided(self, X: Floats) -> list[tuple[BranchAndBound, NDArray[np.intp]]]:
        """Divide inputs (n, d) by whether they count in steps: who answers, and which rows."""
        everyone = np.arange(len(X))
        if self.stepped is self:
            return [(self, everyone)]
        is_stepped = counts_in_steps(self.rules.template, X)
        parts = (self.stepped, everyone[is_stepped]), (self, everyone[~is_stepped])
        return [(answers, rows) for answers, rows in parts if rows.size]

    @cached_property
    def stepped(self) -> BranchAndBound:
        """The same for inputs that count in steps; itself where nothing more is known of them."""
        rules = self.rules
        template = rules.template.derived(tightened)
        if self.in_steps or (template is rules.template and not self._may_lead):
            return self
        return BranchAndBound(replace(rules, template=template), self.method, self.gap, True)

    @property
    def _may_lead(self) -> bool:
        """Whether steps could bring about a lead: the model alone decides, without a margin."""
        return bool(
            self.rules.says is None
            and not self.rules.margin
            and not self._is_local
            and (self.rules.template.grid.step > 0).all()
        )

    def _lead(self, template: ProgramTemplate, cells: SharedCells) -> float:
        return lead_of_steps(template, cells) if self.in_steps and self._may_lead else 0.0

    @cached_property
    def flat(self) -> FlatGrounds | None:
        """What compiled proofs rest on, for any target; None where there are none."""
        if self._is_local:
            return None
        return flat_grounds(self.rules.template, self.rules.model)

    def prepared(self, target_mask: NDArray[np.bool_]) -> PreparedCells:
        """Prepare once what depends on model and target alone."""

        def made() -> tuple[PreparedCells, int]:
            rules, kind = self.rules, LocalCells if self._is_local else SharedCells
            cells = kind.of(rules.model, target_mask, ties_count=rules.ties_count)
            if isinstance(cells, LocalCells):
                return _with_size(PreparedCells(cells, Frames(cells.rival_metrics), None))
            lead = self._lead(rules.template, cells)
            kernel = compiled_boxes(rules.template, cells, self.flat, lead)
            return _with_size(PreparedCells(cells, None, kernel, lead))

        return self._targets.get(target_mask.tobytes(), made)

    @staticmethod
    def prepare_each(each: Sequence[BranchAndBound], target_mask: NDArray[np.bool_]) -> None:
        """Prepare a target for many at once, as far as their models are alike."""
        key, alike = target_mask.tobytes(), dict[Hashable, list[BranchAndBound]]()
        for own in each:
            model = own.rules.model
            if isinstance(model.omegas, np.ndarray) and key not in own._targets:
                shapes = model.prototypes.shape, model.omegas.shape, own.in_steps
                alike.setdefault((id(own.rules.template), shapes), []).append(own)
        for some in alike.values():
            first = some[0].rules
            models = [own.rules.model for own in some]
            cells = SharedCells.of_each(models, target_mask, ties_count=first.ties_count)
            if len(some) > 1 and meet_alike(cells):
                _prepare_alike(some, first.template, cells, key)

    def get_ready(self) -> None:
        """Load the compiled search of local metrics, for limits of time do not count it.

        The first time after an installation it is compiled. Under a shared metric, kernels are
        compiled once their questions are no longer small.
        """
        if self._is_local:
            warm_up_bounds()
            warm_up()
            warm_up_relaxations()

    def find(
        self, question: Asked, context: SearchContext, report: Reporter | None
    ) -> SearchResult:
        """Search by the chosen method; under a shared metric there is the exact one only."""
        assert isinstance(question, BoxQuestion)
        prepared = self.of_input(question.x).prepared(context.target_mask)
        kernel = prepared.kernel
        if kernel is not None and not context.out_of_time():
            find = compiled_boxes_find(question, kernel, context)
            if find is not None:
                return find
        gap = self.gap if self._is_local else 0.5 * EXACT_GAP
        run = self._run(question, context, gap, None, report, prepared.frames)
        if self.method is not Method.GLOBAL:
            if isinstance(run, SeenBranching):
                run.most_nodes, run.most_work = _SEEN_BUDGET, _WORK
                run.whole_work = _WORK / budget_for(question.x.size)
            elif isinstance(run, MixedBranching):
                run.most_work = _MIXED_WORK if self._is_local else _GRID_WORK
            else:
                run.most_nodes = budget_for(1 if run.is_separable else question.x.size)
        return run.run_local() if self._is_local and self.method is Method.CCP else run.run()

    def _run(
        self, question: BoxQuestion, context: SearchContext, gap: float, most_nodes: int | None,
        report: Reporter | None = None, frames: Frames | None = None,
    ) -> Branching:  # fmt: skip
        """State the search that a question gets."""
        told = (question, context, gap, most_nodes, report)
        if not self.rules.template.is_continuous:
            return MixedBranching(*told, frames=frames)
        space = None if self.method is Method.CCP else self._space(question)
        if space is None:
            return Branching(*told, frames=frames)
        run = SeenBranching(*told, frames=frames, space=space)
        return Branching(*told, frames=frames) if run.is_separable else run

    def _space(self, question: BoxQuestion) -> MetricSpace | None:
        """Find what the metrics see: the same for all inputs of which the same features change."""

        def made() -> tuple[MetricSpace | None, int]:
            space = space_of(question)
            return space, 0 if space is None else space.nbytes

        program = question.convex
        moves = ~((program.lower == 0) & (program.upper == 0))
        return self._spaces.get(np.packbits(moves).tobytes(), made)

    def room(self, question: Asked, context: SearchContext, budget: int) -> SearchResult:
        """Look for any answer under the constraints of `context`, by the method of `find`.

        Branch and bound may take `budget` boxes.
        """
        assert isinstance(question, BoxQuestion)
        own = replace(self, rules=context.rules, in_steps=False).of_input(question.x)
        template, cells, flat = own.rules.template, question.cells, own.flat
        lead = own._lead(template, cells) if isinstance(cells, SharedCells) else 0.0
        question = replace(question, template=template, flat=flat, lead=lead)
        if isinstance(cells, SharedCells) and not context.out_of_time():
            kernel = compiled_boxes(template, cells, flat, lead)
            find = None if kernel is None else compiled_boxes_find(question, kernel, context)
            if find is not None:
                return find
        # Any answer closes the search: there is room, whatever it costs.
        find = self._run(question, context, np.inf, budget).run()
        return _room(question, find, context)


def _prepare_alike(
    each: Sequence[BranchAndBound],
    template: ProgramTemplate,
    cells: Sequence[SharedCells],
    key: bytes,
) -> None:
    """Put in place what each would make for a target once it is asked."""
    unknown = [own for own in each if "flat" not in own.__dict__]
    if unknown:
        models = [own.rules.model for own in unknown]
        for own, flat in zip(unknown, flat_grounds_of_each(template, models), strict=True):
            own.__dict__.setdefault("flat", flat)  # which other threads may have made as well
    leads = [own._lead(template, there) for own, there in zip(each, cells, strict=True)]
    kernels = compiled_boxes_of_each(template, cells, [own.flat for own in each], leads)
    for own, there, kernel, lead in zip(each, cells, kernels, leads, strict=True):
        found = PreparedCells(there, None, kernel, lead)
        own._targets.get(key, partial(_with_size, found))


def _with_size(found: PreparedCells) -> tuple[PreparedCells, int]:
    return found, found.nbytes


Strategy = Exact | BranchAndBound

"""Search for one answer under a shared metric: a program per target prototype.

Prototypes are tried in the order of a bound that costs next to nothing: the multiplier of
overtaking a single rival. Once the best answer so far is cheaper than that bound, nothing
further on can beat it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from typing import final

import numpy as np

from counterlvq import solvers
from counterlvq.certificates.cellwise import CellCertificate, Exclusion, Singles, proof_of
from counterlvq.certificates.duality import Proof
from counterlvq.certificates.judged import Accepted
from counterlvq.certificates.questions import Question
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import (
    CLOSED_GAP,
    FINER_MARGIN,
    MOST_BLURS,
    SHARE_OF_LEAD,
    UNSEEN_SHARE,
)
from counterlvq.programs.kernel_data import KernelData
from counterlvq.programs.program import Multipliers, Program
from counterlvq.search.contradictions import elastic_multipliers
from counterlvq.search.heights import Heights, heights_of
from counterlvq.search.repair import settle
from counterlvq.search.result import SearchContext, SearchResult
from counterlvq.search.row_generation import solved_by_rows
from counterlvq.solvers import Outcome, Solution, compiled

__all__ = [
    "COMPILED",
    "KERNEL_SHARE",
    "Search",
    "certificate_of",
    "compiled_find",
    "default_margin",
    "stopping",
]

COMPILED = "compiled kernel"  # what an answer of the kernel was found by

# All numbers below move answers, or decide how long one is looked for. `certificates` computes
# bounds from multipliers, and uses none of them.
#
# A margin that rounding still defeats is multiplied by this, a few times: a model that
# computes in single precision needs a good deal more than one in double.
_MARGIN_GROWTH = 16.0
# Where a margin is what keeps a gap open, so many times a smaller one is tried.
_FINER_TRIES = 3
_MARGIN_TRIES = 8
# A change beyond this is no answer, whatever a solver says.
_FAR = 1e120
# Share of the time that is left which a kernel may take; the rest is for its proof.
KERNEL_SHARE = 0.75


def compiled_find(
    question: Question, family: KernelData, context: SearchContext
) -> SearchResult | None:
    """Ask the compiled kernel; None if its answer does not stand up."""
    scratch = compiled.scratch_for(family)
    with stopping(scratch, KERNEL_SHARE * context.seconds_left()):
        answers = compiled.run(
            family,
            question.grounds.stated,
            question.x[None, :],
            context.margin,
            scratch,
            np.array([context.least]),
            np.array([question.blur]),
        )
    code = answers.code[0]
    if code == compiled.Code.FAILED:
        return None
    found = context.accepted(answers.Y[0]) if code == compiled.Code.SOLVED else None
    if code == compiled.Code.SOLVED and found is None:
        return None
    inequalities = question.template.inequalities.v.size
    certificate = certificate_of(compiled.trace_of(scratch), family, inequalities)
    return SearchResult(found, certificate, (COMPILED,))


@contextmanager
def stopping(scratch: compiled.Scratch, seconds: float) -> Iterator[None]:
    """Tell a kernel to give what it has after so many seconds: it reads no clock itself."""
    if seconds > threading.TIMEOUT_MAX:  # some centuries, or no limit at all
        yield
        return
    timer = threading.Timer(min(max(seconds, 0.0), threading.TIMEOUT_MAX), scratch.stop.fill, [1])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def certificate_of(trace: compiled.Trace, family: KernelData, inequalities: int) -> CellCertificate:
    """Multipliers of the kernel, in the form in which they can be checked.

    The first so many of the constraints are inequalities.
    """
    proofs, exclusions = [], []
    for cell in compiled.priced_cells(family, trace):
        on_constraints = cell.constraint_prices
        proof = Proof(
            cell.prototype,
            cell.rivals,
            cell.rival_prices,
            Multipliers(on_constraints[:inequalities], on_constraints[inequalities:], np.zeros(0)),
            cell.delta,
        )
        if cell.empty:
            exclusions.append(Exclusion(proof, 0.0))
        else:
            proofs.append(proof)
    far = compiled.skipped_cells(family, trace)
    return CellCertificate(tuple(proofs), tuple(exclusions), Singles(far.prototypes, far.rivals))


@final
@dataclass(eq=False)
class Search:
    """One run over the target prototypes of a question."""

    question: Question
    context: SearchContext

    _best: Accepted | None = field(init=False, default=None)
    _engines: dict[str, None] = field(init=False, default_factory=dict)
    _exclusions: list[Exclusion] = field(init=False, default_factory=list)
    _unsettled: set[int] = field(init=False, default_factory=set)

    def answer(self) -> Accepted | None:
        """Look for the best answer, without a proof."""
        self._tried(self._nearest_rivals())
        return self._best

    def run(self) -> SearchResult:
        """Look for the best answer, and prove it."""
        firsts = self._nearest_rivals()
        proofs = self._tried(firsts)
        certificate = CellCertificate(proofs, tuple(self._exclusions), firsts)
        found = SearchResult(self._best, certificate, tuple(self._engines))
        return found if self._cost == np.inf else self._completed(found, certificate)

    def _tried(self, firsts: Singles) -> tuple[Proof, ...]:
        """Try the target prototypes, cheapest bound first."""
        question = self.question
        bounds = firsts.lower_bounds(question, self._asked) if firsts.rivals.size else None
        targets = question.cells.targets
        if bounds is None:
            bounds = np.zeros(targets.size)
        heights = question.template.derived(heights_of) if firsts.rivals.size else None
        if heights is not None:
            return tuple(self._tried_by_height(heights, bounds))
        proofs = []
        for at in np.argsort(bounds, kind="stable"):
            if self.context.out_of_time():
                break
            if self._is_ruled_out(float(bounds[at])):
                break
            proofs += self._explore(int(targets[at]))
        return tuple(proofs)

    def _is_ruled_out(self, bound: float) -> bool:
        """Whether a cell with this bound holds nothing that is cheaper than the best answer."""
        return self._cost < np.inf and bound >= self._cost * (1.0 + CLOSED_GAP)

    def _tried_by_height(self, heights: Heights, bounds: Floats) -> list[Proof]:
        """Try target prototypes where the largest change counts.

        The bound of one rival orders them. A cell whose turn it is gets a better one, by other
        rivals, and is tried once it comes first with that.
        """
        question, asked = self.question, self._asked
        targets, over = question.cells.targets, heights.overtaken(question, asked)
        waiting = [
            (max(float(b), float(c)), at)
            for at, (b, c) in enumerate(zip(bounds, over.costs, strict=True))
        ]
        heapify(waiting)
        improved, proofs = np.zeros(targets.size, dtype=bool), list[Proof]()
        while waiting and not self._is_ruled_out(waiting[0][0]):
            if self.context.out_of_time():
                return proofs
            bound, at = heappop(waiting)
            if improved[at]:
                proofs += self._explore(int(targets[at]))
                continue
            improved[at] = True
            heappush(waiting, (max(bound, heights.improve(question, over, at, asked)), at))
        far = np.array(sorted(at for _, at in waiting if over.costs[at] > 0), dtype=np.intp)
        return proofs + list(heights.proofs(question, over, far))

    @property
    def _cost(self) -> float:
        """Cost of the best answer so far, or of one known from elsewhere."""
        return self.context.below if self._best is None else self._best.cost

    @property
    def _asked(self) -> float:
        """The lead that the bounds are about."""
        return (self.context.margin or 0.0) - self.question.blur

    def _nearest_rivals(self) -> Singles:
        """For each target prototype the rival that is nearest to the input."""
        cells, x = self.question.cells, self.question.x
        if not cells.rivals.size:
            return Singles.none()
        scores = cells.model.distances(x[None, :])[0]
        nearest = int(cells.rivals[scores[cells.rivals].argmin()])
        targets = cells.targets.astype(np.int64)
        return Singles(targets, np.full(targets.size, nearest, dtype=np.int64))

    def _explore(self, prototype: int) -> list[Proof]:
        """Solve the program of one prototype; return the proofs about it."""
        program = self.question.program(prototype)
        asked = self.context.margin
        if asked is not None:
            proof = self._attempt(prototype, program, max(asked, self.context.least))
            return [] if proof is None else [proof]
        proofs = []
        margin = max(self._default_margin(prototype, program), self.context.least)
        for _ in range(_MARGIN_TRIES):
            proof = self._attempt(prototype, program, margin)
            if proof is not None:
                proofs.append(proof)
            if proof is not None or self.context.out_of_time():
                break
            margin *= _MARGIN_GROWTH
        for _ in range(_FINER_TRIES):
            finest = max(FINER_MARGIN * margin, self.context.least)
            if not proofs or finest >= margin or not self._is_worth_refining(proofs[-1]):
                break
            margin, finer = finest, self._attempt(prototype, program, finest)
            if finer is None:
                break
            proofs.append(finer)
        return proofs

    def _is_worth_refining(self, proof: Proof) -> bool:
        """Whether the margin, rather than the proof, is what keeps the gap open."""
        if self._best is None or self.context.out_of_time():
            return False
        bound = self.question.grounds.lower_bound(proof, self._cost, self._asked)
        return bound < (1.0 - CLOSED_GAP) * self._cost

    def _completed(self, found: SearchResult, certificate: CellCertificate) -> SearchResult:
        """Show that cells left undecided hold nothing cheaper than the best answer."""
        question, enough = self.question, (1.0 - CLOSED_GAP) * self._cost
        stop, margin = self.context.out_of_time, self.context.margin or 0.0
        checked = found
        bound: float | None
        if self._best is None:  # the result has no answer, and its check would bound none
            bound = certificate.lower_bound(question, self._cost, margin, stop=stop)
        else:
            checked = found.checked(question, self.context)
            bound = checked.bound
        if stop() or bound is None or bound >= enough:
            return checked
        more = []
        for i in question.cells.targets.tolist():
            if stop():
                break
            only = replace(question, cells=replace(question.cells, targets=np.array([i])))
            if certificate.lower_bound(only, self._cost, margin, stop=stop) >= enough or stop():
                continue
            program = question.program(i).within(question.grounds.box(enough))
            asked = program.tightened(self._asked, question.cells.rivals.size)
            for dual in elastic_multipliers(replace(asked, deadline=self.context.deadline.at)):
                proof = proof_of(question, i, dual.multipliers, dual.point)
                more.append(Exclusion(proof, self._asked))
        if not more:
            return checked
        exclusions = certificate.exclusions + tuple(more)
        return replace(found, certificate=replace(certificate, exclusions=exclusions))

    def _default_margin(self, prototype: int, program: Program) -> float:
        """Smallest margin that rounding in `predict` respects and a proof does not notice."""
        cells = self.question.cells
        behind = float(np.max(-program.b[: cells.rivals.size], initial=0.0))
        least = cells.rounding_margin(self.question.x, prototype)
        margin = default_margin(behind, least)
        if margin <= UNSEEN_SHARE * behind:
            return margin
        # Distances are large beside their differences: what they share is no reason for a margin.
        finest = max(SHARE_OF_LEAD * behind, cells.lead_rounding(self.question.x, prototype))
        # Without any, a cell that only ties are in would not be empty.
        return min(margin, finest) if finest > 0.0 else margin

    def _attempt(self, prototype: int, program: Program, margin: float) -> Proof | None:
        """Solve with a margin; None if the solution cannot be made to hold."""
        rivals = self.question.cells.rivals.size
        asked = program.tightened(margin, rivals)
        solution = self._solve(asked)
        if solution.outcome is Outcome.FAILED:
            return None
        if solution.outcome is Outcome.INFEASIBLE:
            self._exclude(prototype, asked, margin)
            return None if self.context.margin else self._attempt_touching(prototype, program)
        proof = self._settled(prototype, asked, solution)
        if proof is None and prototype not in self._unsettled:
            # What an engine took for a point may miss by its tolerance: there may be none.
            self._unsettled.add(prototype)
            self._exclude(prototype, asked, margin)
        return proof

    def _attempt_touching(self, prototype: int, program: Program) -> Proof | None:
        """Solve without a margin: a cell may be touched only, and still win by its order."""
        if self.context.out_of_time():
            return None
        solution = self._solve(program)
        if solution.outcome is not Outcome.SOLVED:
            return None
        proof = proof_of(self.question, prototype, solution.multipliers, solution.delta)
        return self._settled(prototype, program, solution) or proof

    def _settled(self, prototype: int, asked: Program, solution: Solution) -> Proof | None:
        question = self.question
        rounding = question.cells.meeting(prototype, question.x)
        found = settle(
            question.x, solution.delta, lambda: asked, rounding, question.template.box(question.x),
            self.context.accepted,
        )  # fmt: skip
        if found is None:
            return None
        if found.cost < self._cost:
            self._best = found
        return proof_of(question, prototype, solution.multipliers, solution.delta)

    def _solve(self, program: Program) -> Solution:
        if program.has_empty_box():
            return Solution.without_point(program, Outcome.INFEASIBLE, "bounds")
        choice = solvers.select(program)
        self._engines[choice.reason] = None
        program = replace(program, deadline=self.context.deadline.at)
        solution = solved_by_rows(choice.solver, program, self.question.cells.rivals.size)
        if not (np.abs(solution.delta) < _FAR).all():
            return Solution.without_point(program, Outcome.FAILED, solution.engine)
        return solution

    def _exclude(self, prototype: int, asked: Program, margin: float) -> None:
        """Keep multipliers that may show the cell to be empty; whoever checks them decides."""
        if self.context.out_of_time():
            return
        for found in elastic_multipliers(replace(asked, deadline=self.context.deadline.at)):
            proof = proof_of(self.question, prototype, found.multipliers, found.point)
            self._exclusions.append(Exclusion(proof, margin))


def default_margin(behind: float, least: float) -> float:
    """Choose a margin: a share of the lead to be gained, within what rounding suggests."""
    return float(np.clip(SHARE_OF_LEAD * behind, least, MOST_BLURS * least))

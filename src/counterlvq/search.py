"""Search for one answer under a shared metric: a program per target prototype.

Prototypes are tried in the order of a bound that costs next to nothing: the price of
overtaking a single rival. Once the best answer so far is cheaper than that bound, nothing
further on can beat it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import final

import numpy as np

from counterlvq import solvers
from counterlvq.arrays import Floats
from counterlvq.cells import Halfspaces
from counterlvq.certificates import Evidence, contradiction, lower_bound, within_cost
from counterlvq.families import Family, family_of
from counterlvq.programs import Blueprint, Multipliers, Program, elastic
from counterlvq.proofs import Certificate, Exclusion, Proof, Question, Singles
from counterlvq.settle import settle
from counterlvq.solvers import Outcome, Solution, compiled
from counterlvq.trees import Forest

__all__ = [
    "Find",
    "Judge",
    "Search",
    "compiled_code",
    "compiled_find",
    "default_margin",
    "refutation",
]

_COMPILED = "compiled kernel"

# The default margin asks for this share of the lead that has to be gained ...
_SHARE_OF_LEAD = 2.0**-24
# ... but at least what rounding in `predict` can blur, and at most so many times that.
_AMPLE = 2.0**8
# A margin that rounding still defeats is multiplied by this, a few times: a model that
# computes in single precision needs a good deal more than one in double.
_MARGIN_GROWTH = 16.0
_MARGIN_TRIES = 8
# A change beyond this is no answer, whatever a solver says.
_FAR = 1e120
# Share of the cost that may stay open before a cell is looked at again.
_UNDECIDED = 1e-7


@final
@dataclass(frozen=True, eq=False)
class Judge:
    """Effects and opinions that the search is given: it has none of its own."""

    is_valid: Callable[[Floats, bool], bool]  # by the user's model and constraints
    price: Callable[[Floats], float]
    gap: Callable[[Floats, float], float]  # of a point, given a bound
    out_of_time: Callable[[], bool]
    seconds_left: Callable[[], float]  # inf without a limit
    least: float = 0.0  # lead over rivals that the user's own `predict` needs
    open_share: float = 0.0  # of the cost, that this lead may leave open


@final
@dataclass(frozen=True, eq=False)
class Find:
    """What the search came back with."""

    y: Floats | None  # the counterfactual, if any
    cost: float  # inf without one
    certificate: Certificate | Forest
    engines: tuple[str, ...]  # who solved, and why they were asked


def compiled_find(
    question: Question, family: Family, margin: float | None, judge: Judge
) -> Find | None:
    """Ask the compiled kernel; None if its answer does not stand up."""
    scratch = compiled.scratch_for(family)
    least = np.array([judge.least])
    answers = compiled.run(family, question.x[None, :], margin, scratch, least)
    code = answers.code[0]
    if code == compiled.Code.FAILED:
        return None
    y, cost = None, np.inf
    if code == compiled.Code.SOLVED:
        y = answers.Y[0]
        if not judge.is_valid(y, True):
            return None
        cost = judge.price(y)
    return Find(y, cost, _certificate(question, family, scratch), (_COMPILED,))


def compiled_code(question: Question, margin: float) -> compiled.Code:
    """Ask the compiled kernel only whether there is an answer; FAILED if it cannot say.

    INFEASIBLE is a contradiction that the kernel has verified.
    """
    family = family_of(question.blueprint, question.cells)
    if family is None:
        return compiled.Code.FAILED
    scratch = compiled.scratch_for(family)
    return compiled.Code(compiled.run(family, question.x[None, :], margin, scratch).code[0])


def _certificate(question: Question, family: Family, scratch: compiled.Scratch) -> Certificate:
    """Prices of the kernel, in the form in which they can be checked."""
    inequalities = question.blueprint.inequalities.v.size
    proofs, exclusions = [], []
    for cell in compiled.priced_cells(family, scratch):
        prices = cell.constraint_prices
        proof = Proof(
            cell.prototype,
            cell.rivals,
            cell.rival_prices,
            Multipliers(prices[:inequalities], prices[inequalities:], np.zeros(0)),
            cell.delta,
        )
        if cell.empty:
            exclusions.append(Exclusion(proof, 0.0))
        else:
            proofs.append(proof)
    far = compiled.skipped_cells(family, scratch)
    singles = Singles(far.prototypes, far.rivals, far.prices)
    return Certificate(tuple(proofs), tuple(exclusions), singles)


def _quick_proof(question: Question, prototype: int) -> Proof:
    """Charge for the one rival that is dearest to overtake on its own."""
    cells, blueprint = question.cells, question.blueprint
    cell = cells.halfspaces(prototype, question.x)
    price, point, rival = _single_rival(blueprint, cell)
    charged = cells.rivals[[] if rival is None else [rival]]
    prices = np.full(charged.size, price)
    return Proof(prototype, charged, prices, _uncharged(blueprint), point)


@final
@dataclass(eq=False)
class Search:
    """One run over the target prototypes of a question."""

    question: Question
    margin: float | None
    judge: Judge

    _best: Floats | None = field(init=False, default=None)
    _cost: float = field(init=False, default=np.inf)
    _engines: dict[str, None] = field(init=False, default_factory=dict)
    _exclusions: list[Exclusion] = field(init=False, default_factory=list)

    def run(self) -> Find:
        """Try the target prototypes, cheapest bound first."""
        firsts = [_quick_proof(self.question, int(i)) for i in self.question.cells.targets]
        bounds = np.array([lower_bound(p.evidence(self.question), np.inf) for p in firsts])
        proofs = []
        for at in np.argsort(bounds, kind="stable"):
            first = firsts[at]
            beaten = self._best is not None and bounds[at] >= self._cost
            proofs.append(first if beaten or self.judge.out_of_time() else self._explore(first))
        if self._best is not None:
            proofs = [self._ruled_out(proof) for proof in proofs]
        certificate = Certificate(tuple(proofs), tuple(self._exclusions))
        return Find(self._best, self._cost, certificate, tuple(self._engines))

    def _explore(self, first: Proof) -> Proof:
        """Solve the program of one prototype; return the best proof about it."""
        program = self.question.program(first.prototype)
        if self.margin is not None:
            return self._attempt(first, program, self.margin, self.judge.least) or first
        margin, least = self._default_margin(program), self.judge.least
        for _ in range(_MARGIN_TRIES):
            proof = self._attempt(first, program, margin, least)
            if proof is not None:
                return proof
            margin, least = margin * _MARGIN_GROWTH, least * _MARGIN_GROWTH
        return first

    def _ruled_out(self, proof: Proof) -> Proof:
        """Show that a cell left undecided holds nothing cheaper than the best answer."""
        enough = (1.0 - _UNDECIDED) * self._cost
        if lower_bound(proof.evidence(self.question), self._cost) >= enough:
            return proof
        evidence = refutation(within_cost(self.question.program(proof.prototype), enough))
        if evidence is None:
            return proof
        # Prices of a contradiction hold at any size; this size makes them worth the cost.
        size = 2.0 * self._cost / contradiction(evidence)
        prices = evidence.multipliers
        prices = Multipliers(size * prices.y, size * prices.z, size * prices.nu)
        return Proof.of(self.question, proof.prototype, prices, np.zeros(self.question.x.size))

    def _default_margin(self, program: Program) -> float:
        """Smallest margin that rounding in `predict` respects and a proof does not notice."""
        cells = self.question.cells
        behind = float(np.max(-program.b[: cells.rivals.size], initial=0.0))
        return default_margin(behind, cells.rounding_margin(self.question.x))

    def _attempt(self, first: Proof, program: Program, margin: float, least: float) -> Proof | None:
        """Solve with the larger of two margins; None if the solution cannot be made to hold."""
        rivals = self.question.cells.rivals.size
        asked = program.tightened(max(margin, least), rivals)
        solution = self._solve(asked)
        if solution.outcome is Outcome.FAILED:
            return first
        if solution.outcome is Outcome.INFEASIBLE:
            # A lead that the user's own `predict` needs is no reason to exclude a cell.
            bare = asked if margin >= least else program.tightened(margin, rivals)
            self._exclude(first.prototype, bare, margin)
            touching = None if self.margin else self._attempt_touching(first, program)
            return touching or first
        return self._settled(first.prototype, asked, solution)

    def _attempt_touching(self, first: Proof, program: Program) -> Proof | None:
        """Solve without a margin: a cell may be touched only, and still win by its order."""
        solution = self._solve(program)
        if solution.outcome is not Outcome.SOLVED:
            return None
        proof = Proof.of(self.question, first.prototype, solution.multipliers, solution.delta)
        return self._settled(first.prototype, program, solution) or proof

    def _settled(self, prototype: int, asked: Program, solution: Solution) -> Proof | None:
        question = self.question
        rounding = np.full(question.cells.rivals.size, question.cells.scale(question.x))
        y = settle(
            question.x, solution.delta, lambda: asked, rounding, question.blueprint.box(question.x),
            self.judge.is_valid,
        )  # fmt: skip
        if y is None:
            return None
        cost = self.judge.price(y)
        if cost < self._cost:
            self._best, self._cost = y, cost
        return Proof.of(question, prototype, solution.multipliers, solution.delta)

    def _solve(self, program: Program) -> Solution:
        if program.has_empty_box():
            return Solution.without_point(program, Outcome.INFEASIBLE, "bounds")
        choice = solvers.select(program)
        self._engines[choice.reason] = None
        solution = choice.solver(program)
        if not (np.abs(solution.delta) < _FAR).all():
            return Solution.without_point(program, Outcome.FAILED, solution.engine)
        return solution

    def _exclude(self, prototype: int, asked: Program, margin: float) -> None:
        evidence = refutation(asked)
        if evidence is not None:
            proof = Proof.of(self.question, prototype, evidence.multipliers, evidence.point)
            self._exclusions.append(Exclusion(proof, margin))


def default_margin(behind: float, least: float) -> float:
    """Choose a margin: a share of the lead to be gained, within what rounding suggests."""
    return float(np.clip(_SHARE_OF_LEAD * behind, least, _AMPLE * least))


def refutation(program: Program) -> Evidence | None:
    """Look for evidence, verified, that a program has no solution."""
    empty = Evidence(program, Multipliers.none(program), np.zeros(program.width))
    if contradiction(empty) > 0:
        return empty
    loosened = elastic(program)
    solution = solvers.select(loosened).solver(loosened)
    if solution.outcome is not Outcome.SOLVED:
        return None
    evidence = Evidence(program, solution.multipliers, solution.delta[: program.width])
    return evidence if contradiction(evidence) > 0 else None


def _uncharged(blueprint: Blueprint) -> Multipliers:
    return Multipliers(
        np.zeros(blueprint.inequalities.v.size),
        np.zeros(blueprint.equalities.v.size),
        np.zeros(len(blueprint.quadrics)),
    )


def _single_rival(blueprint: Blueprint, cell: Halfspaces) -> tuple[float, Floats, int | None]:
    """Price and point of overtaking the rival that is dearest to overtake alone.

    For absolute costs the cheapest way to gain on one rival is the single feature that
    gains most per cost; for definite quadratic costs it is a straight line.
    """
    width = blueprint.w.size
    behind = -cell.leads
    if not (behind > 0).any():
        return 0.0, np.zeros(width), None
    if blueprint.w.all():
        speed = (np.abs(cell.normals) / blueprint.w).max(axis=1)
        bounds = np.divide(behind, speed, out=np.zeros_like(behind), where=speed > 0)
        rival = int(bounds.argmax())
        return (1.0 / speed[rival] if speed[rival] > 0 else 0.0), np.zeros(width), rival
    if blueprint.L.shape[0] < width:
        return 0.0, np.zeros(width), None
    inverse = blueprint.inverse_square
    pull = cell.normals @ inverse
    speed = np.einsum("ij,ij->i", pull, cell.normals)
    ahead = np.maximum(behind, 0.0) ** 2
    bounds = np.divide(ahead, speed, out=np.zeros_like(behind), where=speed > 0)
    rival = int(bounds.argmax())
    if speed[rival] <= 0:
        return 0.0, np.zeros(width), None
    share = behind[rival] / speed[rival]
    return 2.0 * share, -share * pull[rival], rival

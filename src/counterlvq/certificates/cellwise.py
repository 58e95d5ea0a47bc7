"""Certificates under a shared metric: multipliers, to be checked against the model.

A proof carries no rows of numbers taken from a solver's run. Whoever checks it builds the
rows anew from model, cost, constraints and input, and evaluates the multipliers with
`duality`. A certificate is plain data: whatever does not have the types, shapes and ranges
of one proves nothing. No solver is imported here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.certificates.certificate import Stop, never
from counterlvq.certificates.duality import Proof
from counterlvq.certificates.questions import Question
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import CLOSED_GAP
from counterlvq.programs.program import Multipliers

__all__ = ["CellCertificate", "Exclusion", "Singles", "proof_of"]

# Products that exact arithmetic may take for one cell.
_MOST_PRODUCTS = 1 << 18


def proof_of(question: Question, prototype: int, multipliers: Multipliers, point: Floats) -> Proof:
    """Keep what is charged of the multipliers of a cell's program."""
    count = question.cells.rivals.size
    charged = np.flatnonzero(multipliers.y[:count] > 0)
    return Proof(
        prototype,
        question.cells.rivals[charged],
        (multipliers.y[:count] * question.units(prototype))[charged],
        Multipliers(multipliers.y[count:], multipliers.z, multipliers.nu),
        point,
    )


@final
@dataclass(frozen=True, eq=False)
class Exclusion:
    """Multipliers that show a cell, less a margin, to be out of reach of the constraints."""

    proof: Proof
    margin: float

    def holds(self, question: Question, margin: float, cap: float = np.inf) -> bool:
        """Whether no change of the cell keeps `margin` over the rivals (at a cost up to `cap`)."""
        grounds = question.grounds
        if grounds.contradicts(self.proof, margin, cap):
            return True
        if not _is_small(question, self.proof):
            return False
        least = grounds.exact_least(self.proof, margin, cap, with_cost=False)
        if least is None:
            return False
        if least.value > 0:
            return True
        # Where a tie is the best that there is, and lost to each rival that is charged for, the
        # order decides against the prototype.
        return (
            least.value == 0
            and margin == 0.0
            and question.ties_are_lost
            and len(least.rivals) > 0
            and all(rival < self.proof.prototype for rival in least.rivals)
        )


def _is_small(question: Question, proof: Proof) -> bool:
    """Whether a cell can be looked at in exact arithmetic."""
    rank = question.grounds.stated.anchors.shape[1] + 1
    return bool((proof.rivals.size + 1) * rank * question.x.size <= _MOST_PRODUCTS)


@final
@dataclass(frozen=True, eq=False)
class Singles:
    """Proofs that charge for one rival each: enough for cells that lie far away."""

    prototypes: NDArray[np.int64]  # (k,)
    rivals: NDArray[np.int64]  # (k,)

    def lower_bounds(self, question: Question, margin: float) -> Floats:
        """Cost that no point of each cell undercuts, (k,)."""
        return question.grounds.overtaking(self.prototypes, self.rivals, margin)

    @classmethod
    def none(cls) -> Singles:
        """No such proofs."""
        return cls(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


@final
@dataclass(frozen=True, eq=False)
class CellCertificate:
    """One proof per target prototype, or an exclusion for a cell that holds no answer."""

    proofs: tuple[Proof, ...]
    exclusions: tuple[Exclusion, ...] = ()
    singles: Singles = field(default_factory=Singles.none)

    def lower_bound(
        self, question: object, cap: float, margin: float = 0.0, *, stop: Stop = never
    ) -> float:
        """Cost that no counterfactual undercuts: the least over all cells, recomputed.

        At most `cap`, the cost of a known answer. With `margin`, only points that beat every
        rival by that much count. Of questions about local metrics, and by what is no
        certificate, nothing is proved, nor by what is not looked at before `stop` says so.
        """
        if not isinstance(question, Question) or np.isnan(cap) or np.isnan(margin):
            return 0.0
        sound = self._sound(question)
        asked = margin - question.overlooked(cap)
        if asked == -np.inf:
            return 0.0
        best: dict[int, float] = {}
        for proof in sound.proofs:
            if stop():
                break
            bound = question.grounds.lower_bound(proof, cap, asked)
            best[proof.prototype] = max(bound, best.get(proof.prototype, 0.0))
        far = sound.singles
        for i, bound in zip(far.prototypes, far.lower_bounds(question, asked), strict=True):
            best[int(i)] = max(min(float(bound), cap), best.get(int(i), 0.0))
        for i in question.cells.targets.tolist():
            if best.get(i, 0.0) < (1.0 - CLOSED_GAP) * cap and not stop():
                best[i] = sound._looked_at_again(question, i, cap, asked, best.get(i, 0.0))
        found = min((best.get(i, 0.0) for i in question.cells.targets.tolist()), default=cap)
        if question.blur_within is not None and cap == np.inf and 0.0 < found < np.inf:
            # What `predict` overlooks far away is known only below some cost: any will do.
            return self.lower_bound(question, found, margin, stop=stop)
        return found

    def _looked_at_again(
        self, question: Question, prototype: int, cap: float, margin: float, known: float
    ) -> float:
        """Bound a cell by exclusions, and by exact arithmetic where rounding is what is open."""
        for item in self.exclusions:
            if item.proof.prototype == prototype and item.holds(question, margin, cap):
                return cap
        for proof in self.proofs:
            if proof.prototype != prototype or not _is_small(question, proof):
                continue
            value = question.grounds.value(proof, margin, cap, with_cost=True)
            if value.rounding > CLOSED_GAP * cap or value.rounding == np.inf:
                known = max(known, question.grounds.exact_lower_bound(proof, cap, margin))
        return known

    def excludes_all(self, question: object, margin: float = 0.0, *, stop: Stop = never) -> bool:
        """Whether no cell holds an answer, each by an exclusion that holds up.

        Those that are not looked at before `stop` says so do not count.
        """
        if not isinstance(question, Question):
            return False
        asked = margin - question.overlooked(np.inf)
        held = {
            item.proof.prototype
            for item in self._sound(question).exclusions
            if not stop() and item.holds(question, asked)
        }
        return held.issuperset(question.cells.targets.tolist())

    def _sound(self, question: Question) -> CellCertificate:
        """Keep what has the types, shapes and ranges that the question calls for."""
        given: tuple[Any, ...] = (self.proofs, self.exclusions)
        proofs, exclusions = (part if type(part) is tuple else () for part in given)
        return replace(
            self,
            proofs=tuple(item for item in proofs if _fits(item, question)),
            exclusions=tuple(
                item
                for item in exclusions
                if type(item) is Exclusion and _fits(item.proof, question)
            ),
            singles=self.singles if _singles_fit(self.singles, question) else Singles.none(),
        )


def _fits(proof: Any, question: Question) -> bool:
    if type(proof) is not Proof or type(proof.constraint_prices) is not Multipliers:
        return False
    template, multipliers = question.template, proof.constraint_prices
    return (
        type(proof.prototype) is int
        and 0 <= proof.prototype < question.is_target.size
        and bool(question.is_target[proof.prototype])
        and _are_rivals(proof.rivals, question)
        and _are_floats(proof.rival_prices, proof.rivals.shape)
        and _are_floats(multipliers.y, template.inequalities.v.shape)
        and _are_floats(multipliers.z, template.equalities.v.shape)
        and _are_floats(multipliers.nu, (len(template.quadrics),))
        and _are_floats(proof.point, question.x.shape)
    )


def _singles_fit(singles: Any, question: Question) -> bool:
    return (
        type(singles) is Singles
        and _are_rivals(singles.rivals, question)
        and _are_positions(singles.prototypes)
        and singles.prototypes.shape == singles.rivals.shape
        and _are_among(singles.prototypes, question.is_target)
    )


def _are_rivals(values: Any, question: Question) -> bool:
    return _are_positions(values) and _are_among(values, question.is_rival)


def _are_among(values: NDArray[np.int64], mask: NDArray[np.bool_]) -> bool:
    # Looked up rather than searched for: a certificate may have thousands of parts.
    return bool(((values >= 0) & (values < mask.size)).all() and mask[values].all())


def _are_positions(values: Any) -> bool:
    return type(values) is np.ndarray and values.dtype.kind == "i" and values.ndim == 1


def _are_floats(values: Any, shape: tuple[int, ...]) -> bool:
    return type(values) is np.ndarray and values.dtype == np.float64 and values.shape == shape

"""Proofs that travel: prices on rivals and constraints, to be checked against the model.

A proof carries no rows of numbers taken from a solver's run. Whoever checks it builds the
rows anew from model, cost, constraints and input, and evaluates the prices with
`certificates`. No solver is imported here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from counterlvq.arrays import Floats
from counterlvq.cells import SharedCells
from counterlvq.certificates import (
    Evidence,
    contradiction,
    cost_limits,
    is_touching,
    lower_bound,
    single_lower_bounds,
)
from counterlvq.programs import Blueprint, Multipliers, Program

__all__ = ["Certificate", "Exclusion", "Proof", "Question", "Singles"]


@final
@dataclass(frozen=True, eq=False)
class Question:
    """What is asked, in numbers: from `x` into one of the cells, under the constraints."""

    blueprint: Blueprint
    cells: SharedCells
    x: Floats  # (d,)

    @cached_property
    def spread(self) -> Floats:
        """How far the prototypes lie from `x` in each feature, (d,)."""
        return np.asarray(np.abs(self.cells.model.prototypes - self.x).max(axis=0))

    def program(self, prototype: int, rivals: NDArray[np.intp] | None = None) -> Program:
        """Program of one cell, with all rivals or the listed ones."""
        cell = self.cells.halfspaces(prototype, self.x, rivals)
        return self.blueprint.at(self.x, cell, self.spread)


@final
@dataclass(frozen=True, eq=False)
class Proof:
    """Prices that bound the cost of every point of one cell from below."""

    prototype: int
    rivals: NDArray[np.intp]  # those that are charged for
    rival_prices: Floats
    constraint_prices: Multipliers  # on the user's constraints
    point: Floats  # (d,) where convex terms are replaced by tangents

    @classmethod
    def of(cls, question: Question, prototype: int, prices: Multipliers, point: Floats) -> Proof:
        """Keep what is charged of the multipliers of a cell's program."""
        count = question.cells.rivals.size
        charged = np.flatnonzero(prices.y[:count] > 0)
        return cls(
            prototype,
            question.cells.rivals[charged],
            prices.y[charged],
            Multipliers(prices.y[count:], prices.z, prices.nu),
            point,
        )

    def evidence(self, question: Question, margin: float = 0.0) -> Evidence:
        """Build the program that the prices speak about, with the charged rivals alone."""
        program = question.program(self.prototype, self.rivals)
        program = program.tightened(margin, self.rivals.size)
        prices = self.constraint_prices
        y = np.concatenate([self.rival_prices, prices.y])
        return Evidence(program, Multipliers(y, prices.z, prices.nu), self.point)


@final
@dataclass(frozen=True, eq=False)
class Exclusion:
    """Prices that show a cell, less a margin, to be out of reach of the constraints."""

    proof: Proof
    margin: float

    def holds(self, question: Question, margin: float | None = None) -> bool:
        """Whether the exclusion stands, at its own margin or another."""
        asked = self.margin if margin is None else margin
        return contradiction(self.proof.evidence(question, asked)) > 0

    def leaves_ties(self, question: Question) -> bool:
        """Whether the cell holds points at most that tie with a rival and lose.

        Where any margin over certain rivals is a contradiction, and each of them stands
        before the prototype, the order decides against it.
        """
        earlier = bool((self.proof.rivals < self.proof.prototype).all())
        if not earlier or not self.holds(question):
            return False
        return is_touching(self.proof.evidence(question))


@final
@dataclass(frozen=True, eq=False)
class Singles:
    """Proofs that charge for one rival each: enough for cells that lie far away."""

    prototypes: NDArray[np.int64]  # (k,)
    rivals: NDArray[np.int64]  # (k,)
    prices: Floats  # (k,)

    def lower_bounds(self, question: Question, cap: float, margin: float) -> Floats:
        """Cost that no point of each cell undercuts, (k,)."""
        if not self.prototypes.size:
            return np.zeros(0)
        cells = question.cells.pairs(self.prototypes, self.rivals, question.x)
        bare = question.program(int(self.prototypes[0]), np.zeros(0, dtype=np.intp))
        return single_lower_bounds(bare, cells.normals, cells.leads - margin, self.prices, cap)

    @classmethod
    def none(cls) -> Singles:
        """No such proofs."""
        return cls(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))


@final
@dataclass(frozen=True, eq=False)
class Certificate:
    """One proof per target prototype, or an exclusion for a cell that holds no answer."""

    proofs: tuple[Proof, ...]
    exclusions: tuple[Exclusion, ...] = ()
    singles: Singles = field(default_factory=Singles.none)

    def lower_bound(self, question: object, cap: float, margin: float = 0.0) -> float:
        """Cost that no counterfactual undercuts: the least over all cells, recomputed.

        With `margin`, only points that beat every rival by that much count. Of questions
        about local metrics nothing is proved.
        """
        if not isinstance(question, Question):
            return 0.0
        excluded = {
            item.proof.prototype
            for item in self.exclusions
            if item.holds(question, margin) or item.leaves_ties(question)
        }
        open_cells = [proof for proof in self.proofs if proof.prototype not in excluded]
        covered = excluded | {proof.prototype for proof in open_cells}
        covered.update(self.singles.prototypes.tolist())
        if not covered.issuperset(question.cells.targets.tolist()):
            return 0.0
        limits = cost_limits(question.blueprint.w, question.blueprint.L, cap)
        bounds = [
            lower_bound(proof.evidence(question, margin), cap, limits) for proof in open_cells
        ]
        far = self.singles.lower_bounds(question, cap, margin)
        return float(min(min(bounds, default=np.inf), far.min(initial=np.inf)))

    def excludes_all(self, question: object) -> bool:
        """Whether no cell holds an answer, each by an exclusion that holds up."""
        if not isinstance(question, Question):
            return False
        excluded = {item.proof.prototype for item in self.exclusions if item.holds(question)}
        return excluded.issuperset(question.cells.targets.tolist())

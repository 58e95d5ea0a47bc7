"""The one canonical form between modelling and solving.

A `Program` is about the change ``delta``::

    minimise    sum_j w_j |delta_j| + |L delta|^2
                (or up_j for each unit up and down_j for each unit down, w_j the lesser of them)
    subject to  A delta <= b,  E delta == e,  lower <= delta <= upper,
                |G delta - g|^2 + h'delta <= c     for each quadric

A `ProgramTemplate` (see `template`) holds what does not depend on the factual input.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.quadratic_forms import Factor
from counterlvq.programs.conditions import QuadraticCondition

__all__ = ["Multipliers", "Program", "elastic"]


@final
@dataclass(frozen=True, eq=False)
class Program:
    """A convex program in the change `delta`; see the head of the module."""

    w: Floats  # (d,), at least 0: no unit of change costs less
    L: Factor  # (s, d)
    A: Floats  # (m, d)
    b: Floats  # (m,)
    E: Floats  # (k, d)
    e: Floats  # (k,)
    lower: Floats  # (d,), may be -inf
    upper: Floats  # (d,), may be inf
    quadrics: tuple[QuadraticCondition, ...]
    reach: Floats  # (d,), finite
    blur: Floats  # (m + k,), rounding of b and e themselves
    deadline: float = np.inf  # by the monotonic clock; a solver that has nothing by then, fails
    ways: Floats | None = None  # (2, d) prices up and down, where they are not w both ways
    # (2, d) what a unit makes the whole cost at the least, where conditions say more than w
    least_ways: Floats | None = None

    @property
    def limiting_ways(self) -> Floats:
        """What one unit up, and one down, makes the whole cost at the least, (2, d)."""
        return self.both_ways if self.least_ways is None else self.least_ways

    @property
    def both_ways(self) -> Floats:
        """Price of one unit up, and of one unit down, (2, d)."""
        return np.stack([self.w, self.w]) if self.ways is None else self.ways

    @property
    def tilted(self) -> tuple[Floats, Floats]:
        """Split the absolute cost into ``sum_j w_j |delta_j| + t_j delta_j``, (d,) each."""
        if self.ways is None:
            return self.w, np.zeros_like(self.w)
        up, down = self.ways
        return 0.5 * (up + down), 0.5 * (up - down)

    def prices_for(self, sign: Floats) -> Floats:
        """Least price of one unit where the signs of changes are known, or 0 if not, (d,)."""
        if self.ways is None:
            return self.w
        up, down = self.ways
        return np.where(sign > 0, up, np.where(sign < 0, down, self.w))

    @property
    def width(self) -> int:
        """Number of variables."""
        return int(self.w.shape[0])

    def cost(self, delta: Floats) -> float:
        """Value of the objective."""
        lifted = self.L @ delta
        return float(self.prices_for(delta) @ np.abs(delta) + lifted @ lifted)

    def tightened(self, margin: float, rows: int) -> Program:
        """Ask for `margin` more in the first `rows` inequalities."""
        b = self.b.copy()
        b[:rows] -= margin
        return replace(self, b=b)

    def within(self, box: tuple[Floats, Floats]) -> Program:
        """Limit each change to a box as well."""
        low, high = box
        return replace(self, lower=np.maximum(self.lower, low), upper=np.minimum(self.upper, high))

    def has_empty_box(self) -> bool:
        """Whether the bounds of some variable contradict each other."""
        return bool((self.lower > self.upper).any())


@final
@dataclass(frozen=True, eq=False)
class Multipliers:
    """Multipliers on the conditions of a program, from any source: nothing here is trusted."""

    y: Floats  # (m,) for A delta <= b
    z: Floats  # (k,) for E delta == e
    nu: Floats  # one per quadric

    @classmethod
    def none(cls, program: Program) -> Multipliers:
        """No condition is charged for."""
        return cls(
            np.zeros(program.b.shape[0]),
            np.zeros(program.e.shape[0]),
            np.zeros(len(program.quadrics)),
        )


def elastic(program: Program) -> Program:
    """Least total violation of the conditions, as a program that always has a solution.

    One slack is added per inequality and per quadric and two per equality; the bounds of
    single variables stay. A positive optimum means that the conditions contradict each
    other, and its multipliers are the proof.
    """
    m, k, q = program.b.shape[0], program.e.shape[0], len(program.quadrics)
    d, slacks = program.width, m + 2 * k + q

    def widened(matrix: Floats) -> Floats:
        return np.hstack([matrix, np.zeros((matrix.shape[0], slacks))])

    A, E = widened(program.A), widened(program.E)
    # Slacks in units of each row's own length, so that no row is cheap to break.
    A[np.arange(m), d + np.arange(m)] = -_lengths(program.A)
    E[np.arange(k), d + m + np.arange(k)] = -_lengths(program.E)
    E[np.arange(k), d + m + k + np.arange(k)] = _lengths(program.E)
    quadrics = []
    for number, quadric in enumerate(program.quadrics):
        h = np.concatenate([quadric.h, np.zeros(slacks)])
        h[d + m + 2 * k + number] = -1.0
        quadrics.append(QuadraticCondition(widened(quadric.G), quadric.g, h, quadric.c))
    most = np.full(slacks, np.inf)
    return Program(
        w=np.concatenate([np.zeros(d), np.ones(slacks)]),
        L=np.zeros((0, d + slacks)),
        A=A,
        b=program.b,
        E=E,
        e=program.e,
        lower=np.concatenate([program.lower, np.zeros(slacks)]),
        upper=np.concatenate([program.upper, most]),
        quadrics=tuple(quadrics),
        reach=np.concatenate([program.reach, most]),
        blur=program.blur,
        deadline=program.deadline,
    )


def _lengths(matrix: Floats) -> Floats:
    lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
    return np.where(lengths > 0, lengths, 1.0)

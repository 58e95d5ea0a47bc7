"""Solvers see programs only: never a model, a cost or a constraint."""

from __future__ import annotations

from typing import NamedTuple

from counterlvq.programs.program import Program
from counterlvq.solvers import conic, highs
from counterlvq.solvers.solution import Outcome, Solution, Solver

__all__ = ["Choice", "Outcome", "Solution", "Solver", "select"]


class Choice(NamedTuple):
    """A solver, and why it was chosen."""

    solver: Solver
    reason: str


def select(program: Program) -> Choice:
    """Choose a solver by the structure of the program."""
    if program.quadrics:
        return Choice(conic.solve, "cone program (convex quadratic constraints): Clarabel")
    if program.L.shape[0]:
        return Choice(conic.solve, "quadratic program (quadratic cost): Clarabel")
    return Choice(highs.solve, "linear program (absolute cost, linear constraints): HiGHS")

"""Solve a program with many rivals by few of them: those that its solution would lose to are added.

A cell among a thousand prototypes has a handful of walls near an input. A solution that all rows
allow, of a program with some of them, is a solution of the whole, and so are its multipliers: rows
that were left out are not charged for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import HIGHS_TOLERANCE
from counterlvq.programs.program import Multipliers, Program
from counterlvq.solvers import Outcome, Solution

__all__ = ["solved_by_rows"]

# Rivals up to which a program is solved as it is; and rows that are taken up at a time.
_FEW, _MORE = 64, 32
# Programs that are solved before all rows are.
_MOST_ROUNDS = 12


def solved_by_rows(
    solver: Callable[[Program], Solution], program: Program, rivals: int
) -> Solution:
    """Solve a program of which the first rows are those of so many rivals."""
    if rivals <= _FEW:
        return solver(program)
    A, b = program.A[:rivals], program.b[:rivals]
    lengths = np.sqrt(np.einsum("ij,ij->i", A, A))
    lengths = np.where(lengths > 0, lengths, 1.0)
    taken = np.zeros(rivals, dtype=bool)
    taken[np.argsort(b / lengths, kind="stable")[:_MORE]] = True
    for _ in range(_MOST_ROUNDS):
        solution = solver(_with(program, taken))
        if solution.outcome is Outcome.FAILED:
            break
        if solution.outcome is Outcome.SOLVED:
            excess = (A @ solution.delta - b) / lengths
            excess[taken] = 0.0
            size = HIGHS_TOLERANCE * float(np.abs(solution.delta).max(initial=0.0))
            if not (excess > size).any():
                return replace(solution, multipliers=_placed(solution.multipliers, program, taken))
            taken[np.argsort(-excess, kind="stable")[:_MORE]] = True
        else:
            return replace(solution, multipliers=_placed(solution.multipliers, program, taken))
    return solver(program)


def _with(program: Program, taken: NDArray[np.bool_]) -> Program:
    """Leave out rivals."""
    rows = np.ones(program.b.size, dtype=bool)
    rows[: taken.size] = taken
    blur = np.concatenate([program.blur[: rows.size][rows], program.blur[rows.size :]])
    return replace(program, A=program.A[rows], b=program.b[rows], blur=blur)


def _placed(found: Multipliers, program: Program, taken: NDArray[np.bool_]) -> Multipliers:
    """Charge nothing for rivals that were left out."""
    rows = np.ones(program.b.size, dtype=bool)
    rows[: taken.size] = taken
    y: Floats = np.zeros(program.b.size)
    y[rows] = found.y
    return replace(found, y=y)

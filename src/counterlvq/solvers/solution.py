"""What a solver says. It is believed only as far as a certificate confirms it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, final

import numpy as np

from counterlvq.numeric.arrays import Floats
from counterlvq.programs.program import Multipliers, Program

__all__ = ["Outcome", "Solution", "Solver"]


class Outcome(StrEnum):
    """How a solver ended."""

    SOLVED = "solved"
    INFEASIBLE = "infeasible"
    FAILED = "failed"


@final
@dataclass(frozen=True, eq=False)
class Solution:
    """A claimed optimum with its multipliers."""

    outcome: Outcome
    delta: Floats  # (d,)
    multipliers: Multipliers
    engine: str

    @classmethod
    def without_point(cls, program: Program, outcome: Outcome, engine: str) -> Solution:
        """No point came back."""
        return cls(outcome, np.zeros(program.width), Multipliers.none(program), engine)


class Solver(Protocol):
    """Anything that takes a program and comes back with a claim."""

    def __call__(self, program: Program) -> Solution:
        """Solve the program."""

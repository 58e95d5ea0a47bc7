"""Relaxation of a cell without quadratic terms over a box: one convex program.

Its multipliers are multipliers in the sense of `LiftedMultipliers`, as those of `semidefinite` are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from counterlvq import solvers
from counterlvq.numeric.arrays import Floats
from counterlvq.programs.nonconvex import Box, LiftedMultipliers, NonconvexProgram
from counterlvq.programs.program import Multipliers, Program, elastic
from counterlvq.solvers.semidefinite import Relaxed
from counterlvq.solvers.solution import Outcome

__all__ = ["relax_flat"]


def relax_flat(problem: NonconvexProgram, box: Box, deadline: float = np.inf) -> Relaxed:
    """Solve over one box; where there is no room, return the multipliers that show it."""
    program = replace(_over_box(problem, box), deadline=deadline)
    solution = solvers.select(program).solver(program)
    if solution.outcome is Outcome.SOLVED:
        return _relaxed(problem, Outcome.SOLVED, solution.multipliers, solution.delta)
    loosened = elastic(program)
    solution = solvers.select(loosened).solver(loosened)
    if solution.outcome is not Outcome.SOLVED:
        return Relaxed.failed(problem, box)
    point = solution.delta[: program.width]
    return _relaxed(problem, Outcome.INFEASIBLE, solution.multipliers, point)


def _over_box(problem: NonconvexProgram, box: Box) -> Program:
    program, forms = problem.convex, problem.forms
    return replace(
        program,
        A=np.concatenate([forms.q, program.A]),
        b=np.concatenate([forms.r, program.b]),
        blur=np.concatenate([np.zeros(forms.r.size), program.blur]),
        lower=box.lower,
        upper=box.upper,
    )


def _relaxed(
    problem: NonconvexProgram, outcome: Outcome, multipliers: Multipliers, point: Floats
) -> Relaxed:
    rivals, d = problem.forms.r.size, problem.convex.width
    linear = Multipliers(multipliers.y[rivals:], multipliers.z, multipliers.nu)
    charged = replace(
        LiftedMultipliers.none(problem), forms=multipliers.y[:rivals], linear=linear, point=point
    )
    return Relaxed(outcome, charged, np.zeros((d, d)))

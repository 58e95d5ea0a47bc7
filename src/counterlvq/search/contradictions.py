"""Multipliers that may show conditions to contradict each other: whoever checks them decides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from counterlvq import solvers
from counterlvq.certificates.duality import Grounds, Proof
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import AT_END
from counterlvq.programs.program import Multipliers, Program, elastic
from counterlvq.programs.proof_data import constraints_alone
from counterlvq.programs.template import ProgramTemplate
from counterlvq.search.result import DualPoint
from counterlvq.solvers import Outcome

__all__ = ["elastic_multipliers", "refutation"]

# Share of what is shown that curvature may take off, for sums that have a least value everywhere.
_FOR_CURVATURE = 0.25


def elastic_multipliers(program: Program) -> tuple[DualPoint, ...]:
    """Look for multipliers that show a program to have no solution. Nothing is verified here.

    Where there are several, any of them may be the one that shows it.
    """
    if program.has_empty_box():
        return (DualPoint(Multipliers.none(program), np.zeros(program.width)),)
    loosened = elastic(program)
    solution = solvers.select(loosened).solver(loosened)
    if solution.outcome is not Outcome.SOLVED:
        return ()
    found = DualPoint(solution.multipliers, solution.delta[: program.width])
    if not program.quadrics:
        return (found,)
    return found, _bent(program, found, loosened.cost(solution.delta))


def _bent(program: Program, found: DualPoint, violation: float) -> DualPoint:
    """Charge for each ellipsoid a little, and for no row next to nothing.

    Along a feature that nothing limits, what is charged for has to cancel to the last digit. An
    interior point leaves traces on rows that play no part, and rows that ought to cancel miss that
    by their own rounding; ellipsoids bend the sum upwards all around, and make up for both.
    """
    multipliers = found.multipliers
    nu, share = multipliers.nu.copy(), _FOR_CURVATURE * violation / len(program.quadrics)
    for n, quadric in enumerate(program.quadrics):
        if quadric.c > 0.0 and not quadric.h.any():  # it is nowhere below -c
            nu[n] = max(nu[n], min(1.0, share / quadric.c))
    y, z = multipliers.y, multipliers.z
    size = np.sqrt(np.einsum("ij,ij->i", program.A, program.A))
    sizes = np.sqrt(np.einsum("ij,ij->i", program.E, program.E))
    # A unit of each row's own length costs 1 where it is broken: no multiplier is larger.
    y, z = np.where(y * size > AT_END, y, 0.0), np.where(np.abs(z) * sizes > AT_END, z, 0.0)
    return DualPoint(Multipliers(y, z, nu), found.point)


def refutation(template: ProgramTemplate, x: Floats, program: Program) -> DualPoint | None:
    """Look for verified multipliers that show constraints to clash at an input."""
    count = template.inequalities.v.size
    grounds = Grounds(constraints_alone(template), None, template.quadrics, x)
    for found in elastic_multipliers(program):
        linear = replace(found.multipliers, y=found.multipliers.y[:count])
        proof = Proof.without_rivals(linear, found.point)
        if grounds.contradicts(proof):
            return found
        least = grounds.exact_least(proof, 0.0, np.inf, with_cost=False)
        if least is not None and least.value > 0:
            return found
    return None

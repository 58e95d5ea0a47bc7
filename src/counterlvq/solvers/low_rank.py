"""Relaxation of a nonconvex cell over a box that lifts what the metrics see, and no more.

With ``u = V delta`` for rows V that span what all metrics see, the quadratic conditions are
functions of u, and ``[[1, u'], [u, U]]`` is the one semidefinite matrix. For absolute costs the
products of the cost with each absolute change say ``|X_jl| <= Y_jl`` of a plain symmetric matrix X
with ``U = V X V'``; for quadratic costs u costs what the cheapest change with ``V delta = u`` does.

The dual of either is small and is solved as it is (`interior_point`): a multiplier for each rival
and for each product of sides, and for absolute costs one for each feature and a symmetric matrix of
the size of u. They are multipliers in the sense of `LiftedMultipliers`, where they are judged.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterlvq.programs.nonconvex import Box
from counterlvq.solvers.absolute_dual import AbsoluteDual
from counterlvq.solvers.interior_point import solved
from counterlvq.solvers.metric_space import Cuts, Part, Question, SeenRelaxed
from counterlvq.solvers.quadratic_dual import QuadraticDual

__all__ = ["Asked", "relax_seen"]


class Asked(NamedTuple):
    """How far one relaxation is worth solving."""

    goal: float  # share of the cost of the answer that closes the box
    tolerance: float
    loose: float  # share of what is missing to the goal that may stay open
    deadline: float  # by the monotonic clock


def relax_seen(
    question: Question, rivals: NDArray[np.bool_], box: Box, cuts: Cuts, cap: float,
    asked: Asked,
) -> SeenRelaxed | None:  # fmt: skip
    """Solve the relaxation over one box, with some of the rivals; None if that fails."""
    kind = QuadraticDual if question.problem.convex.L.shape[0] else AbsoluteDual
    part = Part.of(question, rivals, box, cuts, cap)
    if part.left <= 0.0 or not part.free.size or (kind is QuadraticDual and part.held.any()):
        return None
    program = kind(part)
    found = solved(program, program.start(), *asked)
    return None if found is None else program.read(found)

"""Relaxation of a nonconvex cell over a box that lifts what the metrics see, and no more.

With ``u = V delta`` for rows V that span what all metrics see, the quadratic conditions are
functions of u, and ``[[1, u'], [u, U]]`` is the one semidefinite matrix. For absolute costs the
products of the cost with each absolute change say ``|X_jl| <= Y_jl`` of a plain symmetric matrix X
with ``U = V X V'``; for quadratic costs u costs what the cheapest change with ``V delta = u`` does.

The dual of either is small and is solved as it is (`interior_point`): a multiplier for each rival
and for each product of sides, and for absolute costs one for each feature and a symmetric matrix of
the size of u; where each feature is a coordinate of u, most of them can be held (`few_features`).
They are multipliers in the sense of `LiftedMultipliers`, where they are judged.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterlvq.programs.nonconvex import Box
from counterlvq.solvers.absolute_dual import AbsoluteDual, Found, Shares, read
from counterlvq.solvers.few_features import over_few
from counterlvq.solvers.interior_point import solved
from counterlvq.solvers.metric_space import Cuts, Part, Question, SeenRelaxed
from counterlvq.solvers.quadratic_dual import QuadraticDual

__all__ = ["LEAST_WIDTH", "Asked", "relax_seen"]


# Features from which a relaxation of an absolute cost begins with a few of them.
LEAST_WIDTH = 16


class Asked(NamedTuple):
    """How far one relaxation is worth solving."""

    goal: float  # share of the cost of the answer that closes the box
    tolerance: float
    loose: float  # share of what is missing to the goal that may stay open
    deadline: float  # by the monotonic clock
    hint: NDArray[np.bool_]  # (d,) features that are known to matter
    most: float = np.inf  # products of numbers in one step, beyond which none is begun


def relax_seen(
    question: Question, rivals: NDArray[np.bool_], box: Box, cuts: Cuts, cap: float,
    asked: Asked,
) -> SeenRelaxed | None:  # fmt: skip
    """Solve the relaxation over one box, with some of the rivals; None if that fails."""
    part = Part.of(question, rivals, box, cuts, cap)
    if part.left <= 0.0 or not part.free.size:
        return None
    if not question.problem.convex.L.shape[0]:
        return _relax_absolute(part, asked)
    if part.held.any():
        return None
    program = QuadraticDual(part)
    if program.work > asked.most:
        return None
    found = solved(program, program.start(), *asked[:4])
    return None if found is None else program.read(found)


def _relax_absolute(part: Part, asked: Asked) -> SeenRelaxed | None:
    """Solve over a few features where there are many, and over all where that fails."""
    program = AbsoluteDual(Shares.of(part))
    if program.is_plain and part.free.size >= LEAST_WIDTH:
        few = over_few(program, asked.hint[part.free], *asked[:4])
        if few is not None:
            return read(part, few)
    if program.work > asked.most:
        return None
    found = solved(program, program.start(), *asked[:4])
    return None if found is None else read(part, Found.of(program, found))

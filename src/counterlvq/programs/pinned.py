"""Features that equalities leave no choice, and conditions that then say nothing.

Searches need room: a walk along equalities that hold anyway, or a method that stays inside of all
conditions, finds none there. What comes out has the same solutions but for rounding; answers and
bounds are judged by what was asked.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.finite_algebra import independent_rows, least_squares, singular_vectors
from counterlvq.numeric.tolerances import PINNED_SHARE, SEEN_RANK, START_SLACK
from counterlvq.programs.program import Program

__all__ = ["without_pinned"]


def without_pinned(program: Program) -> Program:
    """Hold what equalities pin, and leave out conditions on nothing that moves."""
    m, free = program.b.size, program.lower < program.upper
    held = np.where(free, 0.0, program.lower)
    if not program.e.size or not np.isfinite(held).all():
        return program
    right = program.e - program.E @ held
    right[np.abs(right) <= program.blur[m:]] = 0.0
    pinned = _pinned(program.E[:, free])
    values = np.zeros(free.size)
    if pinned.any():
        found = least_squares(program.E[:, free], right, SEEN_RANK)
        if found is None:
            return program
        values[np.flatnonzero(free)[pinned]] = found[pinned]
    at = np.flatnonzero(free)[pinned]
    inside = np.clip(values, program.lower, program.upper)[at]
    if (np.abs(inside - values[at]) > START_SLACK * np.abs(values[at])).any():
        return program  # the conditions clash: others say so
    lower, upper = program.lower.copy(), program.upper.copy()
    lower[at] = upper[at] = inside
    free[at] = False
    says = (program.A[:, free] != 0).any(axis=1)
    kept = independent_rows(program.E[:, free], SEEN_RANK)
    return replace(
        program, A=program.A[says], b=program.b[says], E=program.E[kept], e=program.e[kept],
        lower=lower, upper=upper,
        blur=np.concatenate([program.blur[:m][says], program.blur[m:][kept]]),
    )  # fmt: skip


def _pinned(E: Floats) -> NDArray[np.bool_]:
    """Which columns have one value wherever equalities hold: those that rows add up to."""
    size = np.abs(E).max(axis=1, initial=0.0)
    found = singular_vectors(E[size > 0] / size[size > 0, None])
    if found is None or not found[0].size:
        return np.zeros(E.shape[1], dtype=bool)
    values, directions = found
    basis = directions[values > SEEN_RANK * values.max(initial=0.0)]
    return np.asarray(np.einsum("ij,ij->j", basis, basis) > 1.0 - PINNED_SHARE)

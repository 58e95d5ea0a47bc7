"""Bring a program to unit scale before a solver with absolute tolerances sees it.

Features are measured in units of their cost and rows by their length; the whole is then
divided by the largest violation at ``delta = 0``, so that the optimum is of order one no
matter in which units the user thinks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.finite_algebra import least_squares
from counterlvq.numeric.lazy import imported_later
from counterlvq.numeric.quadratic_forms import Factor, column_lengths
from counterlvq.numeric.tolerances import FAR_CENTER, HARDLY_SEEN
from counterlvq.programs.conditions import QuadraticCondition
from counterlvq.programs.program import Multipliers, Program

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = imported_later("scipy.sparse")

__all__ = ["Scaling", "is_uneven", "scaled"]

# No step is longer than this: its square must not overflow. A program whose numbers lie beyond is
# scaled less well, which may cost an answer, never a bound.
_LONGEST = 1e140
# Entries of an ellipsoid up to which its center is looked for.
_MOST_ENTRIES = 1 << 18
# Rounds in which rows and columns are brought to one size; few are left uneven by more.
_EVEN_ROUNDS = 20


@final
@dataclass(frozen=True, eq=False)
class Scaling:
    """The way back from the scaled program."""

    columns: Floats  # delta = columns * u
    objective: float  # cost = objective * scaled cost
    inequalities: Floats  # scaled row = row / inequalities
    equalities: Floats
    quadrics: Floats

    def delta(self, u: Floats) -> Floats:
        """Change in the units of the program."""
        return self.columns * u

    def multipliers(self, scaled: Multipliers) -> Multipliers:
        """Multipliers of the conditions of the program."""
        return Multipliers(
            self.objective * scaled.y / self.inequalities,
            self.objective * scaled.z / self.equalities,
            self.objective * scaled.nu / self.quadrics,
        )


def scaled(
    program: Program, times: float = 1.0, *, evenly: bool = False
) -> tuple[Program, Scaling] | None:
    """Scale a program; None if its numbers, or those it is scaled by, are beyond all floats.

    `times` is what the step is multiplied by, once a solution has shown how long it is. Features
    are measured by what they cost or, `evenly`, so that all count about as much in the rows.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        unit, way_back = _scaled(program, times, _even_units(program) if evenly else None)
    parts = (unit.w, unit.A, unit.b, unit.E, unit.e, way_back.columns, way_back.inequalities)
    if way_back.objective > 0 and all(np.isfinite(part).all() for part in parts):
        return unit, way_back
    return None


def is_uneven(program: Program) -> bool:
    """Whether rows hardly see some feature beside others, in units of what features cost."""
    rows = np.abs(np.concatenate([program.A, program.E])) * _column_units(program)
    largest = rows.max(axis=1, keepdims=True, initial=0.0)
    seen = (rows / np.where(largest > 0, largest, 1.0)).max(axis=0, initial=0.0)
    return bool(((seen > 0) & (seen < HARDLY_SEEN)).any())


def _even_units(program: Program) -> Floats:
    """Divide rows and columns by the roots of their largest entries, in turn (Ruiz 2001)."""
    rows = np.abs(np.concatenate([program.A, program.E]))
    rows = rows[rows.any(axis=1)]
    unit = np.ones(program.width)
    for _ in range(_EVEN_ROUNDS):
        rows = rows / np.sqrt(rows.max(axis=1, keepdims=True))
        largest = rows.max(axis=0, initial=0.0)
        share = 1.0 / np.sqrt(np.where(largest > 0, largest, 1.0))
        rows, unit = rows * share, unit * share
    return unit


def _scaled(program: Program, times: float, even: Floats | None) -> tuple[Program, Scaling]:
    unit = _column_units(program) if even is None else even
    size_A = _row_sizes(program.A * unit, program.b)
    size_E = _row_sizes(program.E * unit, program.e)
    lower, upper = program.lower / unit, program.upper / unit
    step = _largest_violation(
        -program.b / size_A,
        np.abs(program.e) / size_E,
        lower,
        -upper,
        np.array([_distance_to(quadric, unit) for quadric in program.quadrics]),
    )
    step = min(step * times, _LONGEST)
    columns = step * unit
    objective = step if program.w.any() else step**2
    if even is not None:  # what a unit costs is not 1 there
        price = float((program.w * unit).max(initial=0.0))
        dearest = float((column_lengths(program.L) * unit).max(initial=0.0))
        objective *= max(price, dearest**2) or 1.0
    quadrics, sizes = _scaled_quadrics(program.quadrics, columns)
    way_back = Scaling(columns, objective, step * size_A, step * size_E, sizes)
    return (
        Program(
            w=program.w * columns / objective,
            L=_times(program.L, columns / np.sqrt(objective)),
            A=program.A * unit / size_A[:, None],
            b=program.b / (step * size_A),
            E=program.E * unit / size_E[:, None],
            e=program.e / (step * size_E),
            lower=lower / step,
            upper=upper / step,
            quadrics=quadrics,
            reach=program.reach / columns,
            blur=program.blur / (step * np.concatenate([size_A, size_E])),
            ways=None if program.ways is None else program.ways * columns / objective,
            least_ways=None
            if program.least_ways is None
            else program.least_ways * columns / objective,
        ),
        way_back,
    )


def _times(factor: Factor, columns: Floats) -> Factor:
    if isinstance(factor, np.ndarray):
        return factor * columns
    return factor @ sparse.diags_array(columns)


def _column_units(program: Program) -> Floats:
    """Measure a feature by what it costs; if nothing, by its room or by what it moves."""
    price = program.w + column_lengths(program.L)
    room = program.upper - program.lower
    narrow = np.isfinite(room) & (room > 0)
    rows = np.abs(np.concatenate([program.A, program.E, *(q.G for q in program.quadrics)]))
    largest = rows.max(axis=1, keepdims=True, initial=0.0)
    pull = (rows / np.where(largest > 0, largest, 1.0)).max(axis=0, initial=0.0)
    free = np.where(narrow, 1.0 / np.where(narrow, room, 1.0), pull)
    free = free * _usual_price(program, price)
    price = np.where(price > 0, price, free)
    return np.asarray(1.0 / np.where(price > 0, price, 1.0))


def _usual_price(program: Program, price: Floats) -> float:
    """Say what features without a price of their own cost at the least; 1 if that is usual.

    Where the largest change counts, it is as much larger or smaller than all of them.
    """
    if program.least_ways is None:
        return 1.0
    costs, moves = program.least_ways.max(axis=0), program.lower < program.upper
    known = costs[moves & (price == 0) & (costs > 0)]
    return float(np.clip(1.0, known.min(), known.max())) if known.size else 1.0


def _row_sizes(matrix: Floats, right: Floats) -> Floats:
    lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
    lengths = np.where(lengths > 0, lengths, np.abs(right))
    return np.where(lengths > 0, lengths, 1.0)


def _largest_violation(*gaps: Floats) -> float:
    stacked = np.concatenate(gaps)
    worst = float(stacked[np.isfinite(stacked)].max(initial=0.0))
    return min(worst, _LONGEST) if worst > 0 else 1.0


def _distance_to(quadric: QuadraticCondition, unit: Floats) -> float:
    """Roughly how far the condition is from ``delta = 0``; 0 where it holds there.

    An ellipsoid is left out by its own measure: seen from outside, the way to its center enters it
    after a share of ``1 - radius / |g|``. Thin ones are many times as far as they are steep.
    """
    excess = max(quadric.excess(np.zeros_like(unit)), 0.0)
    if excess == 0.0:
        return 0.0
    G = quadric.G * unit
    if quadric.c > 0.0 and not quadric.h.any() and G.size <= _MOST_ENTRIES:
        center = least_squares(G, quadric.g, FAR_CENTER)
        if center is not None:
            share = 1.0 - np.sqrt(quadric.c) / float(np.linalg.norm(quadric.g))
            return float(share * np.linalg.norm(center))
    curvature = float(np.abs(G).max(initial=0.0))
    return float(np.sqrt(excess)) / curvature if curvature > 0 else 0.0


def _scaled_quadrics(
    quadrics: tuple[QuadraticCondition, ...], columns: Floats
) -> tuple[tuple[QuadraticCondition, ...], Floats]:
    out, sizes = [], []
    for quadric in quadrics:
        G, h = quadric.G * columns, quadric.h * columns
        size = float((G**2).sum() + np.abs(h).sum() + abs(quadric.c)) or 1.0
        root = np.sqrt(size)
        out.append(QuadraticCondition(G / root, quadric.g / root, h / size, quadric.c / size))
        sizes.append(size)
    return tuple(out), np.array(sizes)

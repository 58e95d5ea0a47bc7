"""A primal-dual interior-point method for small cone programs that are stated by their dual.

    maximise   c'x - x'Cx / 2   so that   rows(x) = j + J x >= 0,   N(x) = N0 + F x  semidefinite

Every iterate is strictly feasible: each is as good a set of multipliers as the last one, with a
smaller gap. A search can so stop as soon as a bound passes what it has to pass, or cannot pass it
any more, and a time limit ends it between two steps. Directions are those of Helmberg, Kojima and
Monteiro with Mehrotra's predictor and corrector.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import (
    LEAST_AIM,
    LEAST_CURVE,
    LEAST_STEP,
    LONGEST_STEP,
    MISSED_OBJECTIVE,
)
from counterlvq.solvers.kernels.symmetric import turned_both_ways

__all__ = [
    "Iterate",
    "Stated",
    "Triangle",
    "kronecker",
    "matrix_of",
    "solved",
    "triangle",
    "vector_of",
]

# No claim rests on the numbers below: what is returned is evaluated by others.
# How near to the border a step may go, as a share of the way.
_NEARLY = 0.95
# The products that slacks and multipliers start with, in units of the objective.
_FIRST = 1.0
_MOST_STEPS = 60
# As long as the slope is missed by so much, products of slacks and multipliers are kept up, to this
# share in each step: below the path, steps that close the miss are short.
_FAR_MISSED, _LEAST_SHARE = 0.1, 0.9


class Triangle(NamedTuple):
    """Entries of the upper triangle, row by row."""

    row: NDArray[np.intp]
    column: NDArray[np.intp]
    scale: Floats  # the root of how often an entry counts


@lru_cache(maxsize=256)
def triangle(n: int) -> Triangle:
    """Upper triangle of a symmetric matrix."""
    row, column = np.triu_indices(n)
    return Triangle(row, column, np.where(row == column, 1.0, np.sqrt(2.0)))


def vector_of(matrices: Floats) -> Floats:
    """Write symmetric matrices as vectors with the same products, (..., n (n + 1) / 2)."""
    at = triangle(matrices.shape[-1])
    return np.asarray(matrices[..., at.row, at.column] * at.scale)


def matrix_of(vector: Floats, n: int) -> Floats:
    """Write a vector as the symmetric matrix that it stands for."""
    at, out = triangle(n), np.empty((n, n))
    out[at.row, at.column] = out[at.column, at.row] = vector / at.scale
    return out


def kronecker(X: Floats, W: Floats) -> Floats:
    """Matrix of ``dN -> (X dN W + W dN X) / 2`` on vectors of symmetric matrices."""
    count = triangle(len(W)).row.size
    out = np.empty((count, count))
    turned_both_ways(np.ascontiguousarray(X), np.ascontiguousarray(W), out)
    return out


class Stated(Protocol):
    """A program as the method asks for it."""

    size: int  # of the matrix

    def value(self, x: Floats) -> float:
        """Objective."""

    def slope(self, x: Floats) -> Floats:
        """Slope of the objective."""

    def rows(self, x: Floats) -> Floats:
        """Slacks of the rows."""

    def matrix(self, x: Floats) -> Floats:
        """N(x)."""

    def adjoint(self, multipliers: Floats, X: Floats) -> Floats:
        """``J'multipliers + F'X``."""

    def normal(self, weights: Floats, X: Floats, W: Floats) -> Floats:
        """``J' diag(weights) J + F' (X . W) F + C``."""


@final
@dataclass(frozen=True, eq=False)
class Iterate:
    """Where the method ended."""

    x: Floats
    multipliers: Floats  # of the rows
    X: Floats  # of the matrix
    value: float
    gap: float
    steps: int


class _Point(NamedTuple):
    x: Floats
    s: Floats
    N: Floats
    z: Floats
    X: Floats
    inverse: Floats  # of the root of N
    W: Floats  # inverse of N
    inverse_x: Floats  # of the root of X
    slope: Floats  # of the objective
    missed: float  # by how much multipliers miss that slope


class _Direction(NamedTuple):
    x: Floats
    s: Floats
    N: Floats
    z: Floats
    X: Floats


def solved(
    program: Stated, start: Floats, goal: float, tolerance: float, loose: float, deadline: float
) -> Iterate | None:
    """Improve a strictly feasible start; None if it is none.

    The end is where the objective passes `goal`; where the gap is at most `tolerance`, or a share
    `loose` of what is missing to the goal; after two steps that lead nowhere, the second of
    them to the middle; or where another step would end after `deadline`.
    """
    here = _first(program, start)
    if here is None:
        return None
    value, gap, steps, length = program.value(start), np.inf, 0, 1.0
    now, longest = time.monotonic(), 0.0
    while steps < _MOST_STEPS and now + longest < deadline:
        found, begun = _step(program, here, length < LEAST_STEP), now
        now = time.monotonic()
        longest = max(longest, now - begun)
        if found is None:
            break
        before, (there, length), steps = length, found, steps + 1
        here, value = there, program.value(there.x)
        gap = float(here.s @ here.z + (here.X * here.N).sum())
        if value >= goal:
            break
        if here.missed < MISSED_OBJECTIVE and gap < max(tolerance, loose * (goal - value - gap)):
            break
        if max(before, length) < LEAST_STEP:
            break
    return Iterate(here.x, here.z, here.X, value, gap, steps)


def _first(program: Stated, x: Floats) -> _Point | None:
    s, N = program.rows(x), program.matrix(x)
    inverse = _inverse_root(N)
    if inverse is None or not (s > 0).all():
        return None
    W, inverse_x = inverse.T @ inverse, np.sqrt(1.0 / _FIRST) * np.linalg.cholesky(N).T
    z, X = _FIRST / s, _FIRST * W
    return _Point(x, s, N, z, X, inverse, W, inverse_x, *_missed(program, x, z, X))


def _missed(program: Stated, x: Floats, z: Floats, X: Floats) -> tuple[Floats, float]:
    """Slope of the objective, and by how much multipliers miss it."""
    slope = program.slope(x)
    return slope, float(np.abs(slope + program.adjoint(z, X)).max())


def _step(program: Stated, here: _Point, to_the_middle: bool) -> tuple[_Point, float] | None:
    """Take one step, if there is one: a predictor, and the corrector that it suggests.

    Or `to_the_middle`, away from all borders, with the gap as it is.
    """
    from scipy.linalg import cho_factor, cho_solve

    x, s, N, z, X, _inverse, W, _, slope, missed = here
    normal = program.normal(z / s, X, W)
    at = np.arange(len(normal))
    normal[at, at] *= 1.0 + LEAST_CURVE
    try:
        # Transposed it is stored as the factor is, and need not be copied.
        root = cho_factor(normal.T, lower=True, overwrite_a=True, check_finite=False)
    except (np.linalg.LinAlgError, ValueError):
        return None
    count = s.size + len(N)

    def direction(level: float, second: Floats | float, second_X: Floats | float) -> _Direction:
        row, matrix = (level - second) / s, level * W - second_X
        dx = cho_solve(root, slope + program.adjoint(row, matrix), check_finite=False)
        ds, dN = program.rows(x + dx) - s, program.matrix(x + dx) - N
        turned = X @ dN @ W
        return _Direction(dx, ds, dN, row - z - z * ds / s, matrix - X - 0.5 * (turned + turned.T))

    mean = float(s @ z + (X * N).sum()) / count
    ahead = direction(0.0, 0.0, 0.0)
    dual, primal = (min(1.0, length) for length in _lengths(here, ahead))
    left = float((s + dual * ahead.s) @ (z + primal * ahead.z))
    left += float(((X + primal * ahead.X) * (N + dual * ahead.N)).sum())
    share = max(left / count / mean, 0.0)
    share = float(np.clip(share * share if min(dual, primal) > 0.1 else share, LEAST_AIM, 1.0))
    if missed > _FAR_MISSED:
        share = max(share, _LEAST_SHARE)
    turned = ahead.X @ ahead.N @ W
    if to_the_middle:
        way = direction(mean, 0.0, 0.0)
    else:
        way = direction(share * mean, ahead.s * ahead.z, 0.5 * (turned + turned.T))
    if not np.isfinite(way.x).all():
        return None
    dual, primal = (min(1.0, _NEARLY * length) for length in _lengths(here, way))
    for _ in range(4):
        there = _moved(program, here, way, dual, primal)
        if there is not None:
            return there, max(dual, primal)
        dual, primal = 0.5 * dual, 0.5 * primal
    return None


def _moved(
    program: Stated, here: _Point, way: _Direction, dual: float, primal: float
) -> _Point | None:
    x = here.x + dual * way.x
    s, N = program.rows(x), program.matrix(x)
    z, X = here.z + primal * way.z, here.X + primal * way.X
    inverse, inverse_x = _inverse_root(N), _inverse_root(X)
    if inverse is None or inverse_x is None or not (s > 0).all() or not (z > 0).all():
        return None
    W = inverse.T @ inverse
    return _Point(x, s, N, z, X, inverse, W, inverse_x, *_missed(program, x, z, X))


def _lengths(here: _Point, way: _Direction) -> tuple[float, float]:
    """How far a direction can be followed, for x and for multipliers."""
    dual = max(float((-way.s / here.s).max(initial=LONGEST_STEP)), _steepest(here.inverse, way.N))
    primal = max(
        float((-way.z / here.z).max(initial=LONGEST_STEP)), _steepest(here.inverse_x, way.X)
    )
    return 1.0 / dual, 1.0 / primal


def _steepest(inverse: Floats, change: Floats) -> float:
    try:
        return max(LONGEST_STEP, -float(np.linalg.eigvalsh(inverse @ change @ inverse.T)[0]))
    except np.linalg.LinAlgError:
        return 1.0 / LONGEST_STEP


def _inverse_root(N: Floats) -> Floats | None:
    """Inverse of the lower root; None if the matrix is not definite."""
    from scipy.linalg import solve_triangular

    try:
        root = np.linalg.cholesky(N)
    except np.linalg.LinAlgError:
        return None
    if not np.isfinite(root).all():
        return None
    return np.asarray(solve_triangular(root, np.eye(len(N)), lower=True, check_finite=False))

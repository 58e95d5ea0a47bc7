"""Whether a matrix is positive semidefinite, decided and not guessed, and a factor from below.

For a symmetric matrix ``M`` this module finds a float matrix ``root`` and a number ``share`` with

    delta' M delta  >=  share * |root delta|^2      for every real delta,

and it has verified that. The factor is as near as floats come, so `share` is 1 or a hair below it.
Nothing is dropped: a direction is free only if the matrix says exactly 0 there.

Two ways lead there. In floats: Cholesky, corrected once or twice by its own residual, which is
computed to twice the digits; the rest is a bound on a norm. Where that does not decide, in whole
numbers, by elimination without fractions: semidefinite matrices of lower rank are told from
indefinite ones there, and no tolerance enters. That takes long for wide matrices, which are
then refused in words.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum, auto
from fractions import Fraction
from typing import NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import Floats, finite_matrix, read_only
from counterlvq.numeric.error_free import gram_residual, split_sum, whole_numbers
from counterlvq.numeric.tolerances import (
    EPSILON,
    GOOD_SHARE,
    NEARLY_ALL,
    NEARLY_SEMIDEFINITE,
    SUM_UNDERFLOW,
    SYMMETRY_TOLERANCE,
)

__all__ = ["Factored", "factored", "metric_factor", "roots_from_below", "symmetric_matrix"]

# Below this a factor says too little of its matrix to prove anything with.
_LEAST_SHARE = 0.5
# Wider matrices are not eliminated in whole numbers: about a second on one core.
_MOST_EXACT = 48
# Nor those whose numbers would grow longer than this, in binary digits.
_MOST_DIGITS = 8192
_CORRECTIONS = 2
# Ridges that are tried out for what is said of a refused matrix, each four times the last.
_RIDGES = 12


class Factored(NamedTuple):
    """A factor from below; see the head of the module."""

    root: Floats  # (r, d)
    share: float  # above 0, at most 1


@final
@dataclass(frozen=True, eq=False)
class _Symmetric:
    """A symmetric matrix ``high + low``: the exact mean of a matrix and its mirror image."""

    high: Floats  # (d, d)
    low: Floats

    @classmethod
    def of(cls, matrix: Floats) -> _Symmetric:
        high, low = split_sum(matrix / 2, matrix.T / 2)
        return cls(high, low)

    def part(self, kept: NDArray[np.intp]) -> _Symmetric:
        at = np.ix_(kept, kept)
        return _Symmetric(self.high[at], self.low[at])

    def scaled(self, exponents: NDArray[np.intp]) -> _Symmetric:
        """Multiply entry (i, j) by 2 to the power of ``exponents_i + exponents_j``."""
        powers = exponents[:, None] + exponents
        return _Symmetric(np.ldexp(self.high, powers), np.ldexp(self.low, powers))


def symmetric_matrix(name: str, value: ArrayLike, size: int | None = None) -> Floats:
    """Copy `value` into a square matrix that is symmetric up to rounding, or say what is wrong."""
    matrix = finite_matrix(name, value, size)
    if matrix.shape[0] != matrix.shape[1]:
        raise InvalidInputError(f"{name} has shape {matrix.shape}; expected a square matrix.")
    unit = _units(matrix)
    size_of = np.maximum(np.outer(unit, unit), np.maximum(np.abs(matrix), np.abs(matrix.T)))
    skew = np.abs(matrix - matrix.T) / size_of
    if (skew > SYMMETRY_TOLERANCE).any():
        i, j = (int(k) for k in np.unravel_index(int(skew.argmax()), skew.shape))
        raise InvalidInputError(
            f"{name} is not symmetric: entry ({i}, {j}) is {matrix[i, j]:g} but ({j}, {i}) is "
            f"{matrix[j, i]:g}; expected a symmetric matrix. Use (M + M.T) / 2 if the "
            f"difference is rounding."
        )
    return matrix


def factored(name: str, matrix: Floats) -> Factored:
    """Factor a matrix that `symmetric_matrix` has let through, or refuse it in words."""
    found = _factored(_Symmetric.of(matrix))
    if isinstance(found, Factored):
        return found
    raise InvalidInputError(_refusal(name, matrix, found))


def metric_factor(name: str, value: ArrayLike, size: int | None = None) -> Floats:
    """Factor the matrix of a model's metric, the nearest one if rounding made it indefinite.

    That changes a metric by its own rounding: no more than the model's `predict` does itself,
    which has the last word on every answer.
    """
    matrix = symmetric_matrix(name, value, size)
    found = _factored(_Symmetric.of(matrix))
    if isinstance(found, Factored):
        return found.root
    unit = _units(matrix)
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2 / np.outer(unit, unit))
    if values[0] < -NEARLY_SEMIDEFINITE:
        raise InvalidInputError(_refusal(name, matrix, found))
    kept = values > 0
    factor = np.sqrt(values[kept])[:, None] * vectors[:, kept].T * unit
    return read_only(np.ascontiguousarray(factor))


class _Refused(Enum):
    """Why there is no factor."""

    INDEFINITE = auto()
    UNDECIDED = auto()
    UNHELD = auto()  # semidefinite, but what it leaves free cannot be held free in floats


def _factored(given: _Symmetric, *, exactly: bool = True) -> Factored | _Refused:
    width = given.high.shape[0]
    diagonal = np.diag(given.high)
    # A zero on the diagonal beside anything else in its row makes a negative 2 x 2 minor.
    free = ~(given.high.any(axis=1) | given.low.any(axis=1))
    if (diagonal[~free] <= 0).any():
        return _Refused.INDEFINITE
    kept = np.flatnonzero(~free)
    if not kept.size:
        return Factored(read_only(np.zeros((0, width))), 1.0)
    # Powers of two that bring the diagonal to between 1/2 and 2: exact, and whatever is decided
    # then does not depend on the units of the features.
    exponents = -(np.frexp(diagonal[kept])[1].astype(np.intp) // 2)
    unit = given.part(kept).scaled(exponents)
    if (np.abs(unit.high) > 4.0).any():
        return _Refused.INDEFINITE  # no entry exceeds the geometric mean of its two on the diagonal
    merged = _merged(unit)
    found = _with_unit_diagonal(unit.part(merged.first), exactly=exactly)
    if isinstance(found, _Refused):
        return found
    root = np.zeros((found.root.shape[0], width))
    root[:, kept] = np.ldexp(found.root[:, merged.group] * merged.sign, -exponents)
    return Factored(read_only(root), found.share)


def _with_unit_diagonal(unit: _Symmetric, *, exactly: bool) -> Factored | _Refused:
    if not (unit.high - np.diag(np.diag(unit.high))).any() and not unit.low.any():
        return Factored(np.diag(roots_from_below(np.diag(unit.high))), 1.0)
    found = _factored_in_floats(unit)
    if found is not None and found.share >= GOOD_SHARE:
        return found
    if exactly and unit.high.shape[0] <= _MOST_EXACT:
        return _factored_in_whole_numbers(unit)
    return _Refused.UNDECIDED if found is None else found


# --- columns that say the same ------------------------------------------------------------------


class _Merged(NamedTuple):
    first: NDArray[np.intp]  # (k,) one column of each group
    group: NDArray[np.intp]  # (d,) the group of each column
    sign: Floats  # (d,) -1 where it is the negative of the first


def _merged(unit: _Symmetric) -> _Merged:
    """Find columns that are equal, or negatives of each other: the form sees their sum alone."""
    both = np.concatenate([unit.high, unit.low], axis=1)
    leading = both[np.arange(both.shape[0]), (both != 0).argmax(axis=1)]
    sign = np.where(leading < 0, -1.0, 1.0)
    # Adding 0 turns -0.0 into 0.0, so that equal rows have equal bytes.
    keys = [row.tobytes() for row in both * sign[:, None] + 0.0]
    number: dict[bytes, int] = {}
    group = np.array([number.setdefault(key, len(number)) for key in keys], dtype=np.intp)
    first = np.unique(group, return_index=True)[1].astype(np.intp)
    return _Merged(first, group, sign * sign[first][group])


# --- in floats ----------------------------------------------------------------------------------


def roots_from_below(values: Floats) -> Floats:
    """Square roots rounded down: their exact squares do not exceed the values."""
    roots = np.sqrt(values)
    for k, (root, value) in enumerate(zip(roots.tolist(), values.tolist(), strict=True)):
        if Fraction(root) ** 2 > Fraction(value):
            roots[k] = np.nextafter(root, 0.0)
    return roots


def _factored_in_floats(unit: _Symmetric) -> Factored | None:
    """Cholesky with a verified share; None if the matrix is not definite enough for floats."""
    try:
        R: Floats = np.asarray(np.linalg.cholesky(unit.high).T)
    except np.linalg.LinAlgError:
        return None
    best = _verified(unit, R)
    for _ in range(_CORRECTIONS):
        if best is None or best.factored.share >= NEARLY_ALL:
            break
        # (I + T) R is nearer by the residual W, since T + T' = W.
        T = np.triu(best.residual, 1) + np.diag(0.5 * np.diag(best.residual))
        R = np.asarray(R + T @ R)
        better = _verified(unit, R)
        if better is None or better.factored.share <= best.factored.share:
            break
        best = better
    return None if best is None else best.factored


class _Verified(NamedTuple):
    factored: Factored
    residual: Floats  # inv(R)' (M - R'R) inv(R)


def _verified(unit: _Symmetric, R: Floats) -> _Verified | None:
    """Bound the share of a triangular factor from below, or return None if that shows nothing.

    With ``E = M - R'R`` and any X,  ``X'(M - share R'R) X = X'E X + (1 - share) (RX)'(RX)``.
    This is positive semidefinite where the norm of ``X'E X`` is at most ``(1 - share)`` times
    the least eigenvalue of ``(RX)'(RX)``, and if X is invertible, so is what it stands for.
    """
    n = R.shape[0]
    if not (np.einsum("ij,ij->j", R, R) <= 3.9).all():
        return None  # too long for `gram_residual`, and far from any factor
    E, off = gram_residual(unit.high, unit.low, R)
    if not E.any() and not off.any():
        return _Verified(Factored(R, 1.0), E)
    try:
        X = np.linalg.inv(R)
    except np.linalg.LinAlgError:
        return None
    size, rounding = np.abs(X), 2.0 * (n + 2) * EPSILON
    W = X.T @ E @ X
    # Scaling by powers of two may have cut off what is smaller than any float.
    doubt = size.T @ (off + SUM_UNDERFLOW + 2.0 * rounding * np.abs(E)) @ size
    most = float((np.abs(W) + 1.01 * doubt).sum(axis=1).max())
    near = np.abs(R @ X - np.eye(n)) + 1.01 * rounding * (np.abs(R) @ size)
    apart = 1.01 * math.sqrt(float(near.sum(axis=0).max()) * float(near.sum(axis=1).max()))
    if not apart < 0.25:
        return None
    share = 1.0 - 1.01 * most / (1.0 - apart) ** 2
    # Less than half proves nothing that is worth having; and NaN is none.
    if not share >= _LEAST_SHARE:
        return None
    return _Verified(Factored(R, float(np.nextafter(share, 0.0))), W)


# --- in whole numbers ---------------------------------------------------------------------------

_Whole = NDArray[np.object_]


class _Eliminated(NamedTuple):
    """Steps of symmetric elimination without fractions, with the largest pivot first."""

    order: list[int]  # columns, those with pivots first
    rows: list[_Whole]  # row k as it stood in step k, in the order of `order`
    pivots: list[int]


def _eliminated(matrix: _Whole) -> _Eliminated | None:
    """Eliminate a symmetric matrix of whole numbers; None if it is not positive semidefinite.

    All numbers stay whole: after each step they are minors of the matrix (Bareiss).
    """
    N, n = matrix.copy(), matrix.shape[0]
    order, before = list(range(n)), 1
    rows: list[_Whole] = []
    pivots: list[int] = []
    for k in range(n):
        diagonal = [N[i, i] for i in range(k, n)]
        if min(diagonal) < 0:
            return None
        if max(diagonal) == 0:
            if (N[k:, k:] != 0).any():
                return None
            break
        at = k + diagonal.index(max(diagonal))
        swap = list(range(n))
        swap[k], swap[at] = at, k
        N = N[np.ix_(swap, swap)]
        order = [order[i] for i in swap]
        for done, row in enumerate(rows):
            rows[done] = row[swap]
        pivot = N[k, k]
        N[k, :k] = 0
        rows.append(N[k].copy())
        pivots.append(pivot)
        column = N[k + 1 :, k]
        N[k + 1 :, k + 1 :] = (
            pivot * N[k + 1 :, k + 1 :] - np.multiply.outer(column, column)
        ) // before
        before = pivot
    return _Eliminated(order, rows, pivots)


def _factored_in_whole_numbers(unit: _Symmetric) -> Factored | _Refused:
    (high, low), shift = whole_numbers(unit.high, unit.low)
    if high.shape[0] * shift > _MOST_DIGITS:
        return _Refused.UNDECIDED
    steps = _eliminated(high + low)
    if steps is None:
        return _Refused.INDEFINITE
    rank, width = len(steps.rows), high.shape[0]
    seen = np.array(steps.order[:rank], dtype=np.intp)
    if rank == width:
        found = _verified(unit, _square_root_of(steps, shift))
        return _Refused.UNDECIDED if found is None else found.factored
    # M = B'KB, where K is the part of M at the pivots: K >= share C'C means M >= share (CB)'CB.
    root = _root_over(_basis(high + low, steps), steps, shift)
    found = None if root is None else _verified(unit.part(seen), root[:, seen])
    return (
        _Refused.UNHELD if root is None or found is None else Factored(root, found.factored.share)
    )


def _rows_of(steps: _Eliminated, shift: int) -> list[list[Fraction]]:
    """Rows of the factor of a matrix ``whole / 2^shift``, in the order of `steps`.

    Row k is row k of the elimination over the root of the product of two pivots.
    """
    before = [1, *steps.pivots]
    return [
        [_over_root(entry, pivot * before[k] << shift) for entry in row]
        for k, (row, pivot) in enumerate(zip(steps.rows, steps.pivots, strict=True))
    ]


def _square_root_of(steps: _Eliminated, shift: int) -> Floats:
    """Round the factor of a definite matrix, entry by entry."""
    root = np.zeros((len(steps.order), len(steps.order)))
    root[:, steps.order] = [[float(value) for value in row] for row in _rows_of(steps, shift)]
    return root


def _root_over(basis: _Whole, steps: _Eliminated, shift: int) -> Floats | None:
    """Round the factor of a singular matrix so that what is free stays free.

    The rows have to stay combinations of a basis of what the matrix sees. So their weights in a
    basis of whole numbers are rounded, to a grid so coarse that each entry is still a float;
    None if no float is that long.
    """
    rank, width = basis.shape
    root = np.zeros((rank, width))
    for k, exact in enumerate(_rows_of(steps, shift)):
        grid = Fraction(2) ** (51 - math.frexp(float(max(map(abs, exact))))[1])
        weights = np.zeros(rank, dtype=object)
        weights[k:] = [round(exact[i] * grid / basis[i, i]) for i in range(k, rank)]
        row = [n / grid for n in weights @ basis]
        root[k, steps.order] = [float(value) for value in row]
        if any(Fraction(root[k, j]) != value for j, value in zip(steps.order, row, strict=True)):
            return None
    return root


def _over_root(number: int, square: int) -> Fraction:
    """Return ``number / sqrt(square)`` to a hundred binary digits."""
    extra = max(0, 100 - number.bit_length() + square.bit_length() // 2)
    size = Fraction(math.isqrt((number * number << 2 * extra) // square), 1 << extra)
    return size if number > 0 else -size


def _basis(whole: _Whole, steps: _Eliminated) -> _Whole:
    """Rows of whole numbers that span what a singular matrix sees, one for each pivot.

    With the columns in the order of `steps`, the leading square of the basis is diagonal.
    """
    rank = len(steps.rows)
    N = whole[np.ix_(steps.order[:rank], steps.order)]
    before = 1
    for k in range(rank):
        pivot, others = N[k, k], np.arange(rank) != k
        N[others] = (pivot * N[others] - np.multiply.outer(N[others, k], N[k])) // before
        before = pivot
    shared = [math.gcd(*row) for row in N]
    return np.array([row // n for row, n in zip(N, shared, strict=True)], dtype=object)


# --- refused in words ---------------------------------------------------------------------------


def _units(matrix: Floats) -> Floats:
    """Square roots of the diagonal; where that is zero, of the largest entry."""
    unit = np.sqrt(np.abs(np.diag(matrix)))
    return np.where(unit > 0, unit, np.sqrt(np.abs(matrix).max()) or 1.0)


def _refusal(name: str, matrix: Floats, refused: _Refused) -> str:
    unit = _units(matrix)
    mean = (matrix + matrix.T) / 2
    least = float(np.linalg.eigvalsh(mean / np.outer(unit, unit))[0])
    seen = f"with its diagonal scaled to 1 its smallest eigenvalue is {least:g}"
    wanted = "expected a positive semidefinite matrix, with no eigenvalue below zero"
    if refused is _Refused.INDEFINITE and least < -NEARLY_SEMIDEFINITE:
        return (
            f"{name} is indefinite: {seen}; {wanted}. Along some direction it would be negative "
            f"and have no least value; check its signs and how it was computed."
        )
    if refused is _Refused.INDEFINITE:
        shown = seen if least < 0 else "it is negative by less than eigenvalues in floats show"
        what = f"{name} is indefinite, if only by rounding: {shown}; {wanted}"
    elif refused is _Refused.UNDECIDED:
        what = (
            f"{name} has {matrix.shape[0]} columns and is so nearly singular that rounding hides "
            f"whether it is indefinite ({seen}); {wanted} and none that is nearly zero"
        )
    else:
        what = (
            f"{name} is singular along directions that no factor in floats has; expected a "
            f"definite matrix, or one with simpler dependencies between its columns"
        )
    return (
        f"{what}. A pseudo-inverse, a product L.T @ L, or the inverse for a table with constant "
        f"or copied columns often is like that. A matrix M is used as it is or not at all, so add "
        f"a ridge yourself ({_repair(matrix, max(-least, 0.0))}), or give a factor L of it to "
        f"`from_factor`."
    )


def _repair(matrix: Floats, least: float) -> str:
    """Name a small ridge that has been tried out."""
    size, diagonal = matrix.shape[0], np.diag(matrix)
    code, added, unit = "np.diag(np.diag(M))", np.diag(diagonal), 1.0
    if (diagonal[matrix.any(axis=1)] <= 0).any():
        code, added, unit = f"np.eye({size})", np.eye(size), float(np.abs(matrix).max())
    ridge = max(2.0 * least, 4.0 * size * EPSILON) * unit
    for _ in range(_RIDGES):
        ridge = float(f"{ridge:.0e}")
        found = _factored(_Symmetric.of(matrix + ridge * added), exactly=False)
        if isinstance(found, Factored):
            return f"M + {ridge:g} * {code} is definite"
        ridge *= 4.0
    return f"M + ridge * {code} with as small a ridge as will do"

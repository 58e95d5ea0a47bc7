"""Convex quadratic forms: what is true of a change, and a factor to work with.

A form is stated in one of three ways, and that statement is the truth: a matrix M with the value
``delta' M delta``, a diagonal, or a factor L with the value ``|L delta|^2``. Values are those of
the statement in exact arithmetic, rounded once at the end, however much cancels on the way. So
they are the same alone, in a batch, and on every machine.

Solvers and proofs work with `root`, for which ``value >= share * |root delta|^2`` holds for every
change. That has been verified; see `definiteness`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import Floats, finite_matrix, finite_vector, read_only
from counterlvq.numeric.definiteness import factored, roots_from_below, symmetric_matrix
from counterlvq.numeric.error_free import exact_sum, power_of_two
from counterlvq.numeric.lazy import cached_property, imported_later
from counterlvq.numeric.memory import FLOAT, refuse_too_large
from counterlvq.numeric.quadratic_sums import diagonal_sums, factor_sums, matrix_sums
from counterlvq.numeric.tolerances import DOUBLED_DOUBT, EPSILON, LEAST_FLOAT

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = imported_later("scipy.sparse")

__all__ = ["WIDE", "Factor", "QuadraticForm", "column_lengths"]

# A factor (s, d): an array, or without its blanks where there are many features.
Factor = Any
# More features than this are many: a matrix with a row and a column for each is not made for what
# a vector can say.
WIDE = 1 << 10

# Rows that are evaluated at once: bounds the memory of scaled copies.
_ROWS_AT_ONCE = 4096


@final
@dataclass(frozen=True, eq=False)
class QuadraticForm:
    """A quadratic form that is never negative; see the head of the module.

    Build one with `of_matrix`, `of_diagonal` or `of_factor`.

    Examples
    --------
    >>> form = QuadraticForm.of_matrix("matrix", [[4.0, 2.0], [2.0, 5.0]])
    >>> form.value([1.0, -1.0]), form.share
    (5.0, 1.0)
    >>> form.root
    array([[2., 1.],
           [0., 2.]])
    """

    matrix: Floats | None  # (d, d), as it was given
    diagonal: Floats | None  # (d,)
    factor: Floats | None  # (r, d): a factor that is the truth, or the one of `matrix`
    share: float  # above 0, at most 1

    @classmethod
    def of_matrix(cls, name: str, matrix: ArrayLike, size: int | None = None) -> QuadraticForm:
        """State ``delta' matrix delta``; refuse in words a matrix that is not semidefinite."""
        given = symmetric_matrix(name, matrix, size)
        root, share = factored(name, given)
        return cls(given, None, root, share)

    @classmethod
    def of_diagonal(cls, name: str, diagonal: ArrayLike) -> QuadraticForm:
        """State ``sum_j diagonal_j delta_j^2``, in memory for a vector."""
        given = read_only(np.array(diagonal, dtype=np.float64))
        if given.ndim != 1 or not (np.isfinite(given) & (given >= 0)).all():
            raise InvalidInputError(
                f"{name} is {diagonal!r}; expected a vector of finite numbers of at least 0."
            )
        return cls(None, given, None, 1.0)

    @classmethod
    def of_factor(cls, name: str, factor: ArrayLike, width: int) -> QuadraticForm:
        """State ``|factor delta|^2``; a factor with no rows says that all changes are free."""
        given = np.asarray(factor)
        if given.ndim == 2 and given.shape == (0, width):
            return cls.of_diagonal(name, np.zeros(width))
        return cls(None, None, finite_matrix(name, factor, width), 1.0)

    @property
    def width(self) -> int:
        """How many columns a change has."""
        stated = self.diagonal if self.diagonal is not None else self.factor
        assert stated is not None  # one of them always is there
        return int(stated.shape[-1])

    @cached_property
    def root(self) -> Floats:
        """Factor (r, d) to work with: ``share * |root delta|^2`` never exceeds the value."""
        if self.factor is not None:
            return self.factor
        assert self.diagonal is not None
        seen = np.flatnonzero(self.diagonal)
        refuse_too_large(
            f"a quadratic cost of {self.width:,} features, written as a matrix,",
            FLOAT * seen.size * self.width,
            "leave out features, or ask with Manhattan()",
        )
        root = np.zeros((seen.size, self.width))
        root[np.arange(seen.size), seen] = roots_from_below(self.diagonal[seen])
        return read_only(root)

    @property
    def working_root(self) -> Factor:
        """As `root`, without its blanks where that is a diagonal for many features."""
        if self.diagonal is None or self.width <= WIDE or self.is_flat:
            return self.root
        seen = np.flatnonzero(self.diagonal)
        entries = roots_from_below(self.diagonal[seen]), seen, np.arange(seen.size + 1)
        return sparse.csr_array(entries, shape=(seen.size, self.width))

    def of_single_columns(self) -> Floats:
        """Return its value at a unit of each column alone, (d,)."""
        if self.diagonal is not None:
            return self.diagonal
        if self.matrix is not None:
            return self.matrix.diagonal()
        assert self.factor is not None
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.einsum("ij,ij->j", self.factor, self.factor))

    @property
    def is_flat(self) -> bool:
        """Whether every change has the value 0."""
        stated = self.diagonal if self.diagonal is not None else self.factor
        return stated is None or not stated.any()

    @property
    def ties(self) -> NDArray[np.bool_]:
        """Whether what a column adds depends on other columns too, (d,)."""
        if self.matrix is not None:
            beside = self.matrix - np.diag(self.matrix.diagonal())
            return np.asarray(beside.any(axis=0))
        if self.factor is not None:
            shared = np.count_nonzero(self.factor, axis=1) > 1
            return np.asarray(self.factor[shared].any(axis=0))
        return np.zeros(self.width, dtype=bool)

    def value(self, delta: ArrayLike) -> float:
        """Value of one change, rounded once."""
        change = finite_vector("delta", delta, self.width)
        return self._alone(change)

    def values(self, deltas: Floats) -> Floats:
        """Value of each row (n, d), rounded once, (n,): the same as of the row alone."""
        out = np.empty(deltas.shape[0])
        for start in range(0, out.size, _ROWS_AT_ONCE):
            out[start : start + _ROWS_AT_ONCE] = self._some(deltas[start : start + _ROWS_AT_ONCE])
        return out

    def value_error(self, values: ArrayLike) -> Floats:
        """Bound how far `values` are from the exact ones: half a unit in the last place."""
        # The least positive float covers values that underflow.
        return np.asarray(EPSILON * np.abs(values) + LEAST_FLOAT)

    def most(self, one: Floats, other: Floats) -> float:
        """Bound the bilinear form of two changes, given bounds on the sizes of their numbers."""
        if self.matrix is not None:
            return 1.01 * float(one @ np.abs(self.matrix) @ other)
        if self.diagonal is not None:
            return 1.01 * float((one * self.diagonal) @ other)
        size = np.abs(self.root)
        return 1.01 * float((size @ one) @ (size @ other))

    def exact_value(self, delta: Iterable[float | Fraction]) -> Fraction:
        """Value of one change in rational numbers."""
        change = [Fraction(value) for value in delta]
        if self.matrix is None and self.factor is not None:
            return sum((_exact_dot(row, change) ** 2 for row in self.factor), Fraction(0))
        if self.matrix is None:
            assert self.diagonal is not None
            return _exact_dot(self.diagonal, [value * value for value in change])
        pairs = zip(self.matrix, change, strict=True)
        return sum((_exact_dot(row, change) * c for row, c in pairs if c), Fraction(0))

    def over(self, columns: NDArray[np.intp], width: int) -> QuadraticForm:
        """State the same of some columns of a wider change; the others are free."""
        matrix = factor = diagonal = None
        if self.matrix is not None:
            matrix = np.zeros((width, width))
            matrix[np.ix_(columns, columns)] = self.matrix
        if self.factor is not None:
            factor = np.zeros((self.factor.shape[0], width))
            factor[:, columns] = self.factor
        if self.diagonal is not None:
            diagonal = np.zeros(width)
            diagonal[columns] = self.diagonal
        return QuadraticForm(matrix, diagonal, factor, self.share)

    def among(self, columns: NDArray[np.intp]) -> QuadraticForm:
        """State what is left where only some columns change."""
        return QuadraticForm(
            None if self.matrix is None else self.matrix[np.ix_(columns, columns)],
            None if self.diagonal is None else self.diagonal[columns],
            None if self.factor is None else self.factor[:, columns],
            self.share,
        )

    @cached_property
    def _scaled(self) -> tuple[Floats, int]:
        """What is stated, with entries below 1, and the power of two that was taken out."""
        stated = next(a for a in (self.matrix, self.diagonal, self.factor) if a is not None)
        exponent = power_of_two(stated)
        doubled = self.matrix is None and self.diagonal is None  # a factor is squared
        return np.ldexp(stated, -exponent), exponent * (2 if doubled else 1)

    def _alone(self, change: Floats) -> float:
        """Sum one row exactly: products in floats that hold all their digits, or in rationals."""
        stated, exponent = self._scaled
        own = power_of_two(change)
        unit = np.ldexp(change, -own)
        found = None
        if self.matrix is not None:
            found = exact_sum(stated, unit, unit[:, None])
        elif self.diagonal is not None:
            found = exact_sum(stated, unit, unit)
        if found is None:
            return _as_float(self.exact_value(change))
        return float(_times_power(np.array(found), exponent + 2 * own))

    def _some(self, changes: Floats) -> Floats:
        """Sum in twice the digits; where that does not settle the rounding, row by row."""
        stated, exponent = self._scaled
        out = np.full(changes.shape[0], np.inf)
        finite = np.asarray(np.isfinite(changes).all(axis=1))
        own = np.frexp(np.abs(np.where(finite[:, None], changes, 0.0)).max(axis=1, initial=0.0))[1]
        unit = np.ldexp(np.where(finite[:, None], changes, 0.0), -own[:, None])
        high, low, error = np.zeros((3, out.size))
        if self.diagonal is not None:
            sums = diagonal_sums
        else:
            sums = factor_sums if self.matrix is None else matrix_sums
        # A copy that can be written to: compiled code would be compiled again for the other kind.
        sums(np.array(stated), unit, high, low, error)
        # More doubt than there is sends a row to rational numbers, which give the same value.
        doubt = error + DOUBLED_DOUBT * np.abs(high)
        rounded = high + (low - doubt)
        settled = rounded == high + (low + doubt)
        out[finite] = _times_power(rounded, exponent + 2 * own)[finite]
        moved = changes.any(axis=1)
        out[~moved] = 0.0  # whatever the bound on rounding says of nothing
        for n in np.flatnonzero(finite & moved & ~settled):
            out[n] = self._alone(changes[n])
        return out


def column_lengths(factor: Factor) -> Floats:
    """Length of each column of a factor, (d,)."""
    if isinstance(factor, np.ndarray):
        return np.asarray(np.sqrt(np.einsum("ij,ij->j", factor, factor)))
    return np.asarray(np.sqrt(factor.power(2).sum(axis=0))).ravel()


def _exact_dot(row: Floats, change: list[Fraction]) -> Fraction:
    pairs = zip(row.tolist(), change, strict=True)
    return sum((Fraction(a) * b for a, b in pairs if a and b), Fraction(0))


def _as_float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return np.inf


def _times_power(values: Floats, exponents: NDArray[np.intp] | int) -> Floats:
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.ldexp(values, exponents))

"""Questions in plain numbers: what the judges read, free of any object of the package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuzz.rational import ZERO, Matrix, Vector, dot, exact, exact_matrix

Floats = NDArray[np.float64]


# Whether a point may be an answer for an input; of whole numbers and quarters, so that doubles and
# rational numbers say the same.
Rule = Callable[[Sequence[Any], Sequence[Any]], bool]


@dataclass(frozen=True, eq=False)
class Row:
    """``new . y + old . x  <= or ==  value`` over the user's columns."""

    new: Vector
    old: Vector
    value: Fraction
    equality: bool = False

    @classmethod
    def of(cls, new: Any, old: Any, value: float, equality: bool = False) -> Row:
        return cls(exact(new), exact(old), Fraction(float(value)), equality)

    def excess(self, y: Vector, x: Vector) -> Fraction:
        return dot(self.new, y) + dot(self.old, x) - self.value

    def magnitude(self, y: Vector, x: Vector) -> Fraction:
        parts = [abs(a * v) for a, v in zip(self.new, y, strict=True)]
        parts += [abs(a * v) for a, v in zip(self.old, x, strict=True)]
        return sum(parts, abs(self.value))


@dataclass(frozen=True, eq=False)
class Round:
    """``(y - center)' matrix (y - center) + linear'y <= value``."""

    matrix: Matrix
    center: Vector
    linear: Vector
    value: Fraction

    @classmethod
    def of(cls, matrix: Any, center: Any, linear: Any, value: float) -> Round:
        return cls(exact_matrix(matrix), exact(center), exact(linear), Fraction(float(value)))

    def excess(self, y: Vector) -> Fraction:
        away = [u - v for u, v in zip(y, self.center, strict=True)]
        return form(self.matrix, away) + dot(self.linear, y) - self.value


@dataclass(frozen=True, eq=False)
class Price:
    """``weights . |delta| + delta' matrix delta`` with one of the two parts, and switches."""

    weights: Vector | None = None  # (d,)
    matrix: Matrix | None = None  # (d, d) over the columns in `at`
    at: tuple[int, ...] = ()
    switches: dict[int, Fraction] = field(default_factory=dict)  # by column of levels
    tables: dict[int, Matrix] = field(default_factory=dict)  # from level to level, by column

    def of(self, y: Vector, x: Vector) -> Fraction:
        delta = [v - u for u, v in zip(x, y, strict=True)]
        total = sum((price for j, price in self.switches.items() if delta[j]), ZERO)
        total += sum((table[int(x[j])][int(y[j])] for j, table in self.tables.items()), ZERO)
        if self.weights is not None:
            for j in self.at:
                total += self.weights[j] * abs(delta[j])
        if self.matrix is not None:
            total += form(self.matrix, [delta[j] for j in self.at])
        return total

    def rounding(self, u: Vector, x: Vector) -> Fraction:
        """What the cost of a change u can differ by if every column is off by a few last digits."""
        size = [abs(v) for v in u]
        off = [Fraction(1, 2**50) * max(abs(a), abs(a + v)) for a, v in zip(x, u, strict=True)]
        more = [v + w for v, w in zip(size, off, strict=True)]
        total = ZERO
        if self.weights is not None:
            total += sum((self.weights[j] * off[j] for j in self.at), ZERO)
        if self.matrix is not None:
            M = [[abs(v) for v in row] for row in self.matrix]
            total += form(M, [more[j] for j in self.at]) - form(M, [size[j] for j in self.at])
        return total

    def of_rows(self, Y: Floats, x: Floats) -> Floats:
        """As `of` for many points, in doubles: to sort them by, not to judge by."""
        delta = Y - x
        total = np.zeros(len(Y))
        for j, price in self.switches.items():
            total += float(price) * (delta[:, j] != 0)
        for j, table in self.tables.items():
            prices = np.array([float(price) for price in table[int(x[j])]])
            total += prices[Y[:, j].astype(int)]
        part = delta[:, list(self.at)]
        if self.weights is not None:
            total += np.abs(part) @ np.array([float(self.weights[j]) for j in self.at])
        if self.matrix is not None:
            M = np.array([[float(v) for v in row] for row in self.matrix])
            total += np.einsum("ni,ij,nj->n", part, M, part)
        return total


@dataclass(frozen=True, eq=False)
class Column:
    """What a column may hold: any number, a grid of numbers, or positions of levels."""

    decimals: int | None = None  # 0 for whole numbers
    step: int = 1
    levels: tuple[Any, ...] = ()
    of_change: bool = False  # whether the grid of whole numbers starts at the own value

    def holds(self, value: float, own: float) -> bool:
        """Whether a row that has `own` may have a value; what stays may lie anywhere."""
        if value == own and not self.levels:
            return True
        if self.of_change:
            return (value - own) % self.step == 0
        if self.levels:
            return value == int(value) and 0 <= value < len(self.levels)
        if self.decimals is None:
            return True
        if self.decimals == 0:
            return value == int(value) and int(value) % self.step == 0
        return float(f"{value:.{self.decimals}f}") == value


@dataclass(frozen=True, eq=False)
class Scores:
    """``score_k(y) = |F_k y - f_k|^2 + offset_k``; the smallest wins, the first among equals."""

    factors: list[Matrix]  # one for each prototype; the same object throughout if shared
    anchors: list[Vector]
    offsets: Vector
    labels: list[Any]
    is_local: bool
    known: dict[tuple[int, int], tuple[Vector, Fraction]] = field(default_factory=dict)

    @classmethod
    def of_prototypes(
        cls, prototypes: Any, labels: Any, omegas: Any = None, offsets: Any = None
    ) -> Scores:
        """Scores of a nearest-prototype rule; `omegas` is None, one matrix or a list of them."""
        W = exact_matrix(prototypes)
        is_local = isinstance(omegas, list)
        if omegas is None:
            shared = identity(len(W[0]))
            factors = [shared] * len(W)
        elif is_local:
            factors = [exact_matrix(omega) for omega in omegas]
        else:
            factors = [exact_matrix(omegas)] * len(W)
        anchors = [times(F, w) for F, w in zip(factors, W, strict=True)]
        own = exact(offsets) if offsets is not None else [ZERO] * len(W)
        return cls(factors, anchors, own, list(labels), is_local)

    def behind(self, linear: Matrix, shift: Vector) -> Scores:
        """The same rule for ``z = linear y + shift``."""
        factors: list[Matrix] = []
        known: dict[int, Matrix] = {}
        for F in self.factors:
            if id(F) not in known:
                known[id(F)] = product(F, linear)
            factors.append(known[id(F)])
        anchors = [
            [u - v for u, v in zip(f, times(F, shift), strict=True)]
            for F, f in zip(self.factors, self.anchors, strict=True)
        ]
        return Scores(factors, anchors, self.offsets, self.labels, self.is_local)

    def at(self, y: Vector) -> Vector:
        out = []
        for F, f, offset in zip(self.factors, self.anchors, self.offsets, strict=True):
            away = [u - v for u, v in zip(times(F, y), f, strict=True)]
            out.append(dot(away, away) + offset)
        return out

    def half_space(self, i: int, k: int, margin: Fraction) -> tuple[Vector, Fraction]:
        """``a'y <= c`` where ``score_i + margin <= score_k``, for a shared metric."""
        if (i, k) not in self.known:
            F, fi, fk = self.factors[i], self.anchors[i], self.anchors[k]
            step = [2 * (v - u) for u, v in zip(fi, fk, strict=True)]
            normal = [dot([row[j] for row in F], step) for j in range(len(F[0]))]
            value = dot(fk, fk) + self.offsets[k] - dot(fi, fi) - self.offsets[i]
            self.known[i, k] = normal, value
        normal, value = self.known[i, k]
        return normal, value - margin


@dataclass(frozen=True, eq=False)
class Plain:
    """A question set in numbers: one model, one cost, constraints, and rows to explain."""

    scores: Scores
    price: Price
    rows: tuple[Row, ...]
    rounds: tuple[Round, ...]
    columns: tuple[Column, ...]
    margin: float | None
    gap: float  # what OPTIMAL means
    no_room: bool = False  # whether inequalities were drawn to leave no room at all
    rules: tuple[Rule, ...] = ()  # constraints that are neither rows nor rounds

    @property
    def is_mixed(self) -> bool:
        return any(c.levels or c.decimals is not None for c in self.columns)


def identity(n: int) -> Matrix:
    return [[Fraction(int(i == j)) for j in range(n)] for i in range(n)]


def times(A: Matrix, v: Vector) -> Vector:
    return [dot(row, v) for row in A]


def product(A: Matrix, B: Matrix) -> Matrix:
    columns = [list(column) for column in zip(*B, strict=True)]
    return [[dot(row, column) for column in columns] for row in A]


def form(M: Matrix, v: Vector) -> Fraction:
    return dot(v, times(M, v))

"""The dual of the relaxation for absolute costs, as `interior_point` asks for it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.tolerances import NO_SIZE
from counterlvq.solvers.interior_point import Iterate, kronecker, matrix_of, triangle, vector_of
from counterlvq.solvers.metric_space import Part, SeenRelaxed

__all__ = ["AbsoluteDual", "Found", "Shares", "read"]

_ROOT_TWO = float(np.sqrt(2.0))
# What a step of the method takes beside products of numbers, in products of numbers.
_STEP = 2e6


class Shares(NamedTuple):
    """A box in shares of what may be spent: ``s_j = w_j delta_j / left``."""

    seen: Floats  # (k, n): u = seen s
    sign: Floats  # (n,) where the box tells it, else 0
    least: Floats  # (n,) that each feature takes at the least
    ways: Floats  # (2, n) what a share costs up and down, at least 1
    F: Floats  # (m, k + 1, k + 1) charges in (1, u)
    c: Floats  # (m,) their constants
    slopes: Floats  # (n, rows) of linear conditions, equalities last
    b: Floats  # (rows,)
    equalities: int

    @classmethod
    def of(cls, part: Part) -> Shares:
        """Write a box in shares."""
        free, left = part.free, part.left
        w, (A, b, equalities, _) = part.prices, part.rows
        return cls(
            np.asarray(part.question.space.V[:, free] / w), part.box.sign[free],
            np.asarray(part.box.least[free] * w / left), part.ways, *part.charges,
            (A / w).T.copy() * left, b, equalities,
        )  # fmt: skip

    def only(self, few: NDArray[np.intp], rows: NDArray[np.intp]) -> Shares:
        """Hold all features but a few, where each is a coordinate of u, under some conditions."""
        at = np.concatenate([[0], 1 + few])
        return Shares(
            self.seen[np.ix_(few, few)], self.sign[few], self.least[few], self.ways[:, few],
            np.ascontiguousarray(self.F[:, at[:, None], at]), self.c,
            self.slopes[np.ix_(few, rows)], self.b[rows], self.equalities,
        )  # fmt: skip


class Found(NamedTuple):
    """Where the method ended, in shares."""

    value: float
    charges: Floats  # (m,)
    shares: Floats  # (n,)
    pairs: Floats  # (n (n - 1) / 2,) what is charged for products of two features
    rows: Floats  # (rows,)
    X: Floats  # (k + 1, k + 1) with 1 in its corner
    s: Floats  # (n,)
    work: float

    @classmethod
    def of(cls, program: AbsoluteDual, found: Iterate) -> Found:
        """Read where the method ended."""
        _, charges, shares, rows = program.parts(found.x)
        above, below = program.ways(found.multipliers)
        first = found.X[0, 0]
        return cls(
            found.value, charges, shares, program.pairs(found.x), rows, found.X / first,
            (below - above) / first, found.steps * program.work,
        )  # fmt: skip


@final
@dataclass(eq=False)
class AbsoluteDual:
    """The dual for an absolute cost, in shares of what may be spent.

    Variables: the border and the inner part of the matrix without what is charged for, charges,
    shares of the products with the cost, and multipliers of linear conditions.
    """

    shares: Shares
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = len(self.shares.seen) + 1

    @property
    def work(self) -> float:
        """About the numbers that are multiplied in one step."""
        x, q = float(self._c.size), float(triangle(self.size).row.size)
        pairs = 0.0 if self.is_plain else float(self._pairs[0].size) * q * q
        return float(_STEP + x**3 / 3.0 + q * q * (8.0 + self._charged.shape[1]) + pairs)

    @cached_property
    def _n(self) -> int:
        return int(self.shares.sign.size)

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        return np.triu_indices(self._n, 1)

    @cached_property
    def _known(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Pairs whose product may be positive, and whose product may be negative."""
        sign = self.shares.sign
        product = sign[self._pairs[0]] * sign[self._pairs[1]]
        return np.flatnonzero(product >= 0), np.flatnonzero(product <= 0)

    @cached_property
    def _places(self) -> tuple[slice, ...]:
        """Matrix, charges, shares, linear conditions."""
        shares = self.shares
        sizes = [triangle(self.size).row.size, shares.c.size, self._n, shares.b.size]
        ends = np.cumsum([0, *sizes]).tolist()
        return tuple(slice(a, b) for a, b in itertools.pairwise(ends))

    @cached_property
    def _inner(self) -> tuple[slice, slice]:
        """Border and inner part of the matrix."""
        return slice(1, self.size), slice(self.size, triangle(self.size).row.size)

    @cached_property
    def _charged(self) -> Floats:
        return vector_of(self.shares.F).T.copy()

    @cached_property
    def is_plain(self) -> bool:
        """Whether s and u are the same."""
        return np.array_equal(self.shares.seen, np.eye(self._n))

    @cached_property
    def _paired(self) -> Floats:
        """``2 (P'ZP)_jl`` of each pair from the inner part, (pairs, q)."""
        P, (j, i), at = self.shares.seen, self._pairs, triangle(self.size - 1)
        a, b = P[at.row], P[at.column]
        half = np.where(at.row == at.column, 1.0, _ROOT_TWO)
        return np.ascontiguousarray(((a[:, j] * b[:, i] + b[:, j] * a[:, i]) * half[:, None]).T)

    @cached_property
    def _squared(self) -> Floats:
        """``(P'ZP)_jj``, (n, q)."""
        at = triangle(self.size - 1)
        P = self.shares.seen
        return (P[at.row] * P[at.column] * at.scale[:, None]).T.copy()

    @cached_property
    def _diagonal(self) -> NDArray[np.bool_]:
        at = triangle(self.size - 1)
        return np.asarray(at.row == at.column)

    def _pairwise(self, Z: Floats) -> tuple[Floats, Floats]:
        if self.is_plain:
            return _ROOT_TWO * Z[~self._diagonal], Z[self._diagonal]
        return self._paired @ Z, self._squared @ Z

    @cached_property
    def _taken(self) -> Floats:
        """What shares take off the price of each feature, (n, n)."""
        return np.eye(self._n) + self.shares.least[None, :]

    @cached_property
    def _slopes(self) -> tuple[Floats, Floats]:
        """Slope of each feature from the border (n, k) and from linear conditions (n, rows)."""
        return -_ROOT_TWO * self.shares.seen.T, self.shares.slopes

    @cached_property
    def _c(self) -> Floats:
        _matrix, charges, shares, rows = self._places
        c = np.zeros(rows.stop)
        c[0] = -1.0
        c[charges], c[shares] = self.shares.c, self.shares.least
        c[rows] = -self.shares.b
        return c

    @cached_property
    def _splits(self) -> tuple[slice, ...]:
        """Products up and down, squares, prices up and down, charges, shares, conditions."""
        plus, minus = self._known
        _, charges, _, rows = self._places
        n, free = self._n, self.shares.equalities
        inequalities = rows.stop - rows.start - free
        sizes = [plus.size, minus.size, n, n, n, charges.stop - charges.start, n, inequalities]
        ends = np.cumsum([0, *sizes]).tolist()
        return tuple(slice(a, b) for a, b in itertools.pairwise(ends))

    def start(self) -> Floats:
        """Charge a little for everything."""
        _matrix, charges, shares, rows = self._places
        x, first = np.zeros(rows.stop), 0.2
        x[0] = 0.5
        wide = max(1.0, float((self.shares.seen**2).sum(axis=0).max(initial=0.0)))
        x[self._inner[1]] = vector_of(0.5 * first / wide * np.eye(self.size - 1))
        x[shares] = first
        x[charges] = min(0.1, 0.5 * first / wide / max(float(np.abs(self._charged).sum()), NO_SIZE))
        steep = max(float(np.abs(self._slopes[1]).sum()), 1.0)
        x[rows.start : rows.stop - self.shares.equalities] = 0.1 / steep
        return x

    def value(self, x: Floats) -> float:
        """Objective."""
        return float(self._c @ x)

    def slope(self, x: Floats) -> Floats:
        """Slope of the objective."""
        return self._c

    def rows(self, x: Floats) -> Floats:
        """Slacks."""
        _matrix, charges, shares, rows = self._places
        tau, y, (j, i), (plus, minus) = x[shares], x[rows], self._pairs, self._known
        pairs, own = self._pairwise(x[self._inner[1]])
        both = tau[j] + tau[i]
        slope = self._slopes[0] @ x[self._inner[0]] + self._slopes[1] @ y
        up, down = self.shares.ways - self._taken @ tau
        return np.concatenate([
            (both - pairs)[plus], (both + pairs)[minus], tau - own, down - slope, up + slope,
            x[charges], tau, y[: y.size - self.shares.equalities],
        ])  # fmt: skip

    def matrix(self, x: Floats) -> Floats:
        """Matrix of the sum in ``(1, u)``."""
        matrix, charges, _, _ = self._places
        return matrix_of(x[matrix] + self._charged @ x[charges], self.size)

    def _on_pairs(self, plus: Floats, minus: Floats) -> tuple[Floats, Floats]:
        count = self._pairs[0].size
        up, down = np.zeros(count), np.zeros(count)
        up[self._known[0]], down[self._known[1]] = plus, minus
        return up, down

    def adjoint(self, multipliers: Floats, X: Floats) -> Floats:
        """Multiply by the transpose."""
        matrix, charges, shares, rows = self._places
        plus, minus, own, above, below, d, tau, y = (multipliers[at] for at in self._splits)
        up, down = self._on_pairs(plus, minus)
        vector, out, (j, i), n = vector_of(X), np.zeros(rows.stop), self._pairs, self._n
        out[matrix] = vector
        out[charges] = self._charged.T @ vector + d
        border, inner = self._inner
        if self.is_plain:
            part = np.zeros(self._diagonal.size)
            part[~self._diagonal], part[self._diagonal] = _ROOT_TWO * (down - up), -own
            out[inner] += part
        else:
            out[inner] += (down - up) @ self._paired - own @ self._squared
        out[border] += (below - above) @ self._slopes[0]
        both = up + down
        out[shares] = np.bincount(j, both, n) + np.bincount(i, both, n) + own + tau
        out[shares] -= (above + below) @ self._taken
        out[rows] = (below - above) @ self._slopes[1]
        out[rows.start : rows.start + y.size] += y
        return out

    def normal(self, weights: Floats, X: Floats, W: Floats) -> Floats:
        """Matrix of the normal equations."""
        matrix, charges, shares, rows = self._places
        plus, minus, own, above, below, d, tau, y = (weights[at] for at in self._splits)
        up, down = self._on_pairs(plus, minus)
        both, turn, (j, i), n = up + down, down - up, self._pairs, self._n
        H = np.zeros((rows.stop, rows.stop))
        K = kronecker(X, W)
        KF = K @ self._charged
        H[matrix, matrix], H[matrix, charges], H[charges, matrix] = K, KF, KF.T
        H[charges, charges] = self._charged.T @ KF
        at = np.arange(rows.stop)
        H[at[charges], at[charges]] += d
        border, inner = self._inner
        mixed = self._add_pairs(H, both, turn, own)
        H[inner, shares] += mixed
        H[shares, inner] += mixed.T
        paired = np.zeros((n, n))
        paired[j, i] = paired[i, j] = both
        paired[np.arange(n), np.arange(n)] = paired.sum(axis=1) + own + tau
        H[shares, shares] = paired + self._taken.T @ ((above + below)[:, None] * self._taken)
        S, R = self._slopes
        for one, first in ((border, S), (rows, R)):
            for other, second in ((border, S), (rows, R)):
                H[one, other] += first.T @ ((above + below)[:, None] * second)
            cross = first.T @ ((above - below)[:, None] * self._taken)
            H[one, shares] += cross
            H[shares, one] += cross.T
        H[at[rows][: y.size], at[rows][: y.size]] += y
        return H

    def _add_pairs(self, H: Floats, both: Floats, turn: Floats, own: Floats) -> Floats:
        """Add what pairs say of the inner part; returns what ties that to the shares."""
        inner, n = self._inner[1], self._n
        if self.is_plain:
            diagonal, at = self._diagonal, np.arange(inner.start, inner.stop)
            H[at[~diagonal], at[~diagonal]] += 2.0 * both
            H[at[diagonal], at[diagonal]] += own
            mixed = np.zeros((diagonal.size, n))
            off = np.flatnonzero(~diagonal)
            mixed[off, self._pairs[0]] = mixed[off, self._pairs[1]] = _ROOT_TWO * turn
            mixed[np.flatnonzero(diagonal), np.arange(n)] = -own
            return mixed
        B, D = self._paired, self._squared
        H[inner, inner] += B.T @ (both[:, None] * B) + D.T @ (own[:, None] * D)
        spread = np.zeros((n, n))
        spread[self._pairs] = turn
        spread += spread.T
        (row, column, _), drawn = triangle(self.size - 1), self.shares.seen @ spread
        half = np.where(row == column, 1.0, _ROOT_TWO)
        mixed = self.shares.seen[row] * drawn[column] + self.shares.seen[column] * drawn[row]
        return np.asarray(mixed * half[:, None] - (D * own[:, None]).T)

    def pairs(self, x: Floats) -> Floats:
        """``2 (P'ZP)_jl`` of each pair."""
        return self._pairwise(x[self._inner[1]])[0]

    def parts(self, x: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Matrix as it stands in x, charges, shares, and multipliers of linear conditions."""
        matrix, charges, shares, rows = (x[place] for place in self._places)
        return matrix_of(matrix, self.size), charges, shares, rows

    def together(self, matrix: Floats, charges: Floats, shares: Floats, rows: Floats) -> Floats:
        """Write what `parts` reads."""
        return np.concatenate([vector_of(matrix), charges, shares, rows])

    def ways(self, multipliers: Floats) -> tuple[Floats, Floats]:
        """Multipliers of what each feature may cost up and down."""
        _, _, _, above, below, *_ = self._splits
        return multipliers[above], multipliers[below]


def read(part: Part, found: Found) -> SeenRelaxed:
    """Read multipliers in the units of changes, and the relaxed point."""
    free, left, d = part.free, part.left, part.box.lower.size
    w = part.prices
    j, i = np.triu_indices(free.size, 1)
    share, signs = np.zeros(d), np.zeros((d, d))
    share[free] = found.shares * w / left
    signs[free[j], free[i]] = found.pairs * w[j] * w[i] / left
    point = part.held.copy()
    point[free] += left * found.s / w
    prices = part.multipliers(
        found.charges, 1.0 / left, found.rows, point, share=share, signs=signs,
        **_corners(part, found.shares, found.pairs),
    )  # fmt: skip
    u = found.X[0, 1:]
    spent = part.cap - left
    return SeenRelaxed(
        prices, (spent + left * found.value) / part.cap,
        part.unit * u + part.question.space.V @ part.held,
        part.unit**2 * (found.X[1:, 1:] - np.outer(u, u)), found.work,
    )  # fmt: skip


def _corners(part: Part, tau: Floats, pairs: Floats) -> dict[str, Floats]:
    """Multipliers of corners for products whose sign the box tells: what they leave over."""
    free, w = part.free, part.prices
    j, i = np.triu_indices(free.size, 1)
    sign, d = part.box.sign[free], part.box.lower.size
    known = sign[j] * sign[i]
    out = {name: np.zeros((d, d)) for name in ("low", "high", "cross")}
    if not known.any():
        return out
    scale = w[j] * w[i] / part.left
    rest = np.maximum((tau[j] + tau[i] - known * pairs) * scale, 0.0)
    for name, first, second in (("low", 1, 1), ("high", -1, -1), ("cross", 1, -1)):
        at = (sign[j] == first) & (sign[i] == second)
        out[name][free[j[at]], free[i[at]]] += rest[at]
    at = (sign[j] == -1) & (sign[i] == 1)
    out["cross"][free[i[at]], free[j[at]]] += rest[at]
    return out

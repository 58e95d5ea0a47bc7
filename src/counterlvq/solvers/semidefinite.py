"""Semidefinite relaxation of a nonconvex cell over a box, through Clarabel.

With ``delta = center + half v`` and ``V`` in place of ``v v'`` every quadratic condition is
linear in ``(v, V)``; ``[[1, v'], [v, V]]`` positive semidefinite is what is kept of
``V = v v'``, together with the products of distances to the sides of the box and, for
absolute costs with a known answer, the products of the cost with each absolute change. In
these units nothing depends on those of the features.

Its multipliers are multipliers in the sense of `LiftedMultipliers`, where they are judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, final

import clarabel
import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.lazy import cached_property, imported_later
from counterlvq.numeric.memory import FLOAT, refuse_too_large
from counterlvq.numeric.tolerances import HUGE, LEAST_HALF
from counterlvq.programs.nonconvex import Box, LiftedMultipliers, NonconvexProgram
from counterlvq.programs.program import Multipliers
from counterlvq.programs.proof_data import cost_limits
from counterlvq.solvers.clarabel_guard import run_guarded
from counterlvq.solvers.solution import Outcome

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = imported_later("scipy.sparse")

__all__ = ["Reader", "Relaxed", "Rows", "StandardForm", "relax", "solved"]

# Quadratic and linear terms, rows, their right-hand sides, and cones.
StandardForm: TypeAlias = (
    "tuple[sparse.csc_matrix, Floats, sparse.csc_matrix, Floats, list[object]]"
)

# A side shorter than this share of what the cost allows has been cut.
_CUT = 0.999
# Numbers beyond this, and those that are none, come from iterations that ran away.
_HUGE = 1e60


@final
@dataclass(frozen=True, eq=False)
class Relaxed:
    """Answer of the relaxation: multipliers, and how far ``delta delta'`` is missed."""

    outcome: Outcome
    prices: LiftedMultipliers
    miss: Floats  # (d, d)

    @property
    def is_usable(self) -> bool:
        """Whether it consists of numbers that can be worked with."""
        parts = (self.prices.forms, self.prices.point, self.miss)
        return all(bool((np.abs(values) < HUGE).all()) for values in parts)

    @classmethod
    def failed(cls, problem: NonconvexProgram, box: Box) -> Relaxed:
        """Nothing came back that could be used."""
        return cls(Outcome.FAILED, LiftedMultipliers.none(problem), np.diag(box.half**2))


class _Pairs(NamedTuple):
    """Entries of the upper triangle, by columns, as Clarabel stores matrices."""

    row: NDArray[np.intp]
    column: NDArray[np.intp]
    diagonal: NDArray[np.bool_]
    weight: Floats  # 1 on the diagonal, 2 off it: how often an entry counts


@lru_cache(maxsize=64)
def _pairs(n: int) -> _Pairs:
    column = np.repeat(np.arange(n), np.arange(1, n + 1))
    row = np.concatenate([np.arange(j + 1) for j in range(n)]) if n else np.zeros(0, np.intp)
    diagonal = row == column
    return _Pairs(row, column, diagonal, np.where(diagonal, 1.0, 2.0))


@lru_cache(maxsize=64)
def _cone_rows(n: int) -> tuple[NDArray[np.intp], Floats, Floats]:
    """``[[1, v'], [v, V]]`` as Clarabel's triangle: row and entry of each variable, and sides."""
    pairs, entries = _pairs(n), _pairs(n + 1)
    first, second = entries.row == 0, entries.column > 0
    row = np.empty(n + pairs.row.size, dtype=np.intp)
    row[:n], row[n:] = np.flatnonzero(first & second), np.flatnonzero(~first)
    value = -np.where(entries.diagonal, 1.0, np.sqrt(2.0))[row]
    return row, value, np.where(first & ~second, 1.0, 0.0)


@lru_cache(maxsize=64)
def _no_curvature(width: int) -> sparse.csc_matrix:
    return sparse.csc_matrix((width, width))


def _with_cone(dense: Floats, row: NDArray[np.intp], value: Floats) -> sparse.csc_matrix:
    """Stack rows on those of a cone; stacking by SciPy takes longer than a small solve."""
    (columns, rows), (height, width) = np.nonzero(dense.T), dense.shape
    ends = np.cumsum(np.bincount(columns, minlength=width) + (np.arange(width) < row.size))
    # The entry of the cone is the last one of its column.
    at = np.setdiff1d(np.arange(columns.size + row.size), ends[: row.size] - 1)
    data, indices = np.empty(columns.size + row.size), np.empty(columns.size + row.size, np.int32)
    data[ends[: row.size] - 1], indices[ends[: row.size] - 1] = value, height + row
    data[at], indices[at] = dense[rows, columns], rows
    return sparse.csc_matrix(
        (data, indices, np.concatenate([[0], ends]).astype(np.int32)),
        (height + row.max(initial=0) + 1, width),
    )


@dataclass
class Rows:
    """Rows ``left @ (v, V, tops, products) <= right`` with the price of each in `delta`."""

    left: list[Floats]
    right: list[Floats]
    unit: list[Floats]

    def add(self, left: Floats, right: Floats) -> int:
        """Append rows at unit length; returns how many."""
        length = np.abs(left).max(axis=1, initial=0.0)
        length = np.where(length > 0, length, 1.0)
        self.left.append(left / length[:, None])
        self.right.append(right / length)
        self.unit.append(length)
        return int(right.size)


def relax(
    problem: NonconvexProgram, box: Box, cap: float, tolerance: float, seconds: float
) -> Relaxed:
    """Solve the relaxation over one box; a bound loses about `tolerance`, as a share."""
    layout = _Layout.of(problem, box, cap)
    solution = solved(layout.standard_form(), tolerance, seconds)
    return Relaxed.failed(problem, box) if solution is None else layout.relaxed(*solution)


def solved(
    form: StandardForm, tolerance: float, seconds: float
) -> tuple[Outcome, Floats, Floats] | None:
    """Outcome, point and multipliers of a cone program; None if nothing usable came back."""
    solution = run_guarded(*form, tolerance=tolerance, seconds=seconds, refined=False)
    if solution is None or (solution.outcome is Outcome.FAILED and not solution.out_of_time):
        solution = run_guarded(*form, tolerance=tolerance, seconds=seconds)
    if solution is None:
        return None
    duals, point = solution.duals, solution.x
    if not (np.abs(duals) < _HUGE).all() or not (np.abs(point) < _HUGE).all():
        return None
    return solution.outcome, point, duals


@final
@dataclass(frozen=True, eq=False)
class _Layout:
    """Where everything stands in the standard form of one box."""

    problem: NonconvexProgram
    box: Box
    cap: float
    free: NDArray[np.intp]
    center: Floats  # (d,)
    half: Floats  # (n,)
    sign: Floats  # (n,): of delta where the box tells it, else 0
    w: Floats  # (n,) price of one unit, the lesser of both ways where the sign is open

    @classmethod
    def of(cls, problem: NonconvexProgram, box: Box, cap: float) -> _Layout:
        """Leave out features that the box holds in place."""
        free = np.flatnonzero(box.half > LEAST_HALF)
        return cls(
            problem, box, cap, free, box.center, box.half[free], box.sign[free],
            problem.convex.prices_for(box.sign)[free],
        )  # fmt: skip

    @cached_property
    def n(self) -> int:
        """How many features can move."""
        return int(self.free.size)

    @cached_property
    def _has_products(self) -> bool:
        """Whether products with the cost are worth anything."""
        return bool(np.isfinite(self.cap) and self.cap > 0 and (self.w > 0).all() and self.n)

    @cached_property
    def _spent_for_good(self) -> float:
        """Cost of the features that cannot move."""
        held = np.ones(self.center.size, dtype=bool)
        held[self.free] = False
        prices = self.problem.convex.prices_for(self.center)
        return float(prices[held] @ np.abs(self.center[held]))

    @cached_property
    def _tops(self) -> NDArray[np.intp]:
        """Features whose absolute value needs a variable of its own."""
        return np.flatnonzero((self.sign == 0) & (self.w > 0))

    @cached_property
    def _open(self) -> NDArray[np.intp]:
        """Products of changes whose absolute value needs a variable of its own."""
        if not self._has_products:
            return np.zeros(0, dtype=np.intp)
        pairs = _pairs(self.n)
        product = self.sign[pairs.row] * self.sign[pairs.column]
        return np.flatnonzero((product == 0) & ~pairs.diagonal)

    @cached_property
    def objective(self) -> float:
        """Unit of the cost."""
        if np.isfinite(self.cap) and self.cap > 0:
            return self.cap
        program = self.problem.convex
        spread = program.L[:, self.free] * self.half
        return float(self.w @ self.half + np.einsum("ij,ij->", spread, spread)) or 1.0

    def standard_form(self) -> StandardForm:
        """``min q'v`` with ``right - left v`` in a product of cones."""
        width, pairs = self._width, _pairs(self.n).row.size
        refuse_too_large(
            f"a proof over {self.n:,} features under local metrics, with a number for each pair,",
            4.0 * FLOAT * pairs * width,
            'freeze features, or ask with method="ccp", which proves nothing',
        )
        rows, equal = self._rows, self._equalities()
        row, value, cone_right = _cone_rows(self.n)
        plain, balls = np.concatenate(rows.left), self._balls()
        left = _with_cone(np.concatenate([equal[0], plain, *balls[0]]), row, value)
        right = np.concatenate([equal[1], *rows.right, *balls[1], cone_right])
        cones = [
            clarabel.ZeroConeT(equal[1].size),
            clarabel.NonnegativeConeT(plain.shape[0]),
            *(clarabel.SecondOrderConeT(part.size) for part in balls[1]),
            clarabel.PSDTriangleConeT(self.n + 1),
        ]
        return _no_curvature(width), self._cost(), left, right, cones

    @cached_property
    def _width(self) -> int:
        return self.n + _pairs(self.n).row.size + self._tops.size + self._open.size

    def _quadratic(self, Q: Floats, q: Floats) -> tuple[Floats, Floats]:
        """Rows ``delta' Q delta + q'delta`` in the variables, and their constants."""
        pairs, free, c = _pairs(self.n), self.free, self.center
        out = np.zeros((q.shape[0], self._width))
        pull = Q @ c
        out[:, : self.n] = (q + 2.0 * pull)[:, free] * self.half
        inner = Q[:, free[pairs.row], free[pairs.column]]
        out[:, self.n : self.n + pairs.row.size] = (
            inner * (pairs.weight * self.half[pairs.row] * self.half[pairs.column])
        )  # fmt: skip
        return out, (q + pull) @ c

    def _linear(self, A: Floats) -> Floats:
        out = np.zeros((A.shape[0], self._width))
        out[:, : self.n] = A[:, self.free] * self.half
        return out

    @cached_property
    def _absolute(self) -> tuple[Floats, Floats]:
        """``|delta_j|`` of the free features as rows, (n, width), and their constants."""
        out = np.zeros((self.n, self._width))
        out[:, : self.n] = np.diag(self.sign * self.half)
        constant = self.sign * self.center[self.free]
        tops = self._tops
        # In units of the most that it can be, as every other variable.
        most = self.box.most[self.free]
        out[tops, self.n + _pairs(self.n).row.size + np.arange(tops.size)] = most[tops]
        return out, constant

    @cached_property
    def _products(self) -> tuple[Floats, Floats]:
        """``delta_j delta_k`` of the pairs as rows, (pairs, width), and their constants."""
        pairs, c = _pairs(self.n), self.center[self.free]
        j, k, at = pairs.row, pairs.column, np.arange(pairs.row.size)
        out = np.zeros((at.size, self._width))
        out[at, self.n + at] = self.half[j] * self.half[k]
        np.add.at(out, (at, j), c[k] * self.half[j])
        np.add.at(out, (at, k), c[j] * self.half[k])
        return out, c[j] * c[k]

    @cached_property
    def _has_balls(self) -> bool:
        """Whether the quadratic cost bounds a change; else its products say nothing."""
        return bool(self.n and self.problem.convex.L.shape[0] and 0.0 < self._left < np.inf)

    @cached_property
    def _left(self) -> float:
        """What absolute changes leave of the cost for the quadratic part, at the most."""
        prices = self.problem.convex.prices_for(self.box.sign)
        return float(self.cap - prices @ self.box.least)

    def _balls(self) -> tuple[list[Floats], list[Floats]]:
        """``|L delta| side <= sqrt(cap) side`` for the distance to each side of the box."""
        if not self._has_balls:
            return [], []
        L, n = self.problem.convex.L, self.n
        root = np.sqrt(self._left)
        product, constant = self._products
        move = self._linear(L)
        start = L @ self.center
        held = np.ones(self.center.size, dtype=bool)
        held[self.free] = False
        fixed = L[:, held] @ self.center[held]
        lefts, rights = [], []
        position = np.zeros((n, n), dtype=np.intp)
        pairs = _pairs(n)
        position[pairs.row, pairs.column] = np.arange(pairs.row.size)
        position[pairs.column, pairs.row] = np.arange(pairs.row.size)
        for j in range(n):
            own = self._linear(np.eye(self.center.size)[self.free[j]][None])[0]
            base = self.center[self.free[j]]
            # delta_j L delta, as rows and constants
            rows = L[:, self.free] @ product[position[j]] + np.outer(fixed, own)
            level = L[:, self.free] @ constant[position[j]] + fixed * base
            for sign, side in ((1.0, self.box.lower), (-1.0, self.box.upper)):
                end = side[self.free[j]]
                # sign (delta_j - end) L delta
                block = sign * (rows - end * move)
                lefts.append(
                    np.concatenate([-sign * root * own[None], -block]) / self._ball_unit(j)
                )
                top = sign * root * (base - end)
                values = np.concatenate([[top], sign * (level - end * start)])
                rights.append(values / self._ball_unit(j))
        return lefts, rights

    def _ball_unit(self, j: int) -> float:
        """Size of the terms of a ball's rows."""
        return float(np.sqrt(self._left) * self.half[j])

    def _cost(self) -> Floats:
        program = self.problem.convex
        square = program.L.T @ program.L
        weights, tilt = program.tilted
        quadratic = self._quadratic(square[None], tilt[None])[0][0]
        absolute = self._absolute[0]
        return np.asarray((quadratic + weights[self.free] @ absolute) / self.objective)

    def _equalities(self) -> tuple[Floats, Floats]:
        program = self.problem.convex
        return self._linear(program.E), program.e - program.E @ self.center

    @cached_property
    def _rows(self) -> Rows:
        program, forms = self.problem.convex, self.problem.forms
        rows = Rows([], [], [])
        left, constant = self._quadratic(forms.Q, forms.q)
        rows.add(left, forms.r - constant)
        rows.add(self._linear(program.A), program.b - program.A @ self.center)
        for quadric in program.quadrics:
            slope = quadric.h - 2.0 * quadric.G.T @ quadric.g
            left, constant = self._quadratic((quadric.G.T @ quadric.G)[None], slope[None])
            rows.add(left, quadric.c - quadric.g @ quadric.g - constant)
        self._add_tops(rows)
        if self._has_products:
            self._add_cost_products(rows)
        self._add_box_products(rows)
        return rows

    def _add_tops(self, rows: Rows) -> None:
        tops, absolute = self._tops, self._absolute[0][self._tops]
        moves = self._linear(np.eye(self.box.lower.size)[self.free[tops]])
        start = self.center[self.free[tops]]
        rows.add(moves - absolute, -start)
        rows.add(-moves - absolute, start)

    def _add_cost_products(self, rows: Rows) -> None:
        """``(cap - sum_l w_l |delta_l|) (|delta_j| - least) >= 0``."""
        pairs, unknown = _pairs(self.n), self._open
        product, constant = self._products
        known = np.where(pairs.diagonal, 1.0, self.sign[pairs.row] * self.sign[pairs.column])
        size, offset = product * known[:, None], constant * known
        at = self._width - unknown.size + np.arange(unknown.size)
        size[unknown, :] = 0.0
        most = self.box.most[self.free]
        size[unknown, at] = (most[pairs.row] * most[pairs.column])[unknown]
        rows.add(product[unknown] - size[unknown], -constant[unknown])
        rows.add(-product[unknown] - size[unknown], constant[unknown])
        mixed = np.zeros((self.n, pairs.row.size))
        index = np.arange(pairs.row.size)
        mixed[pairs.row, index] = self.w[pairs.column]
        mixed[pairs.column, index] = self.w[pairs.row]
        absolute, base = self._absolute
        spent, spent_base = self.w @ absolute, self.w @ base + self._spent_for_good
        left, least = self.cap - self._spent_for_good, self.box.least[self.free]
        rows.add(
            mixed @ size - left * absolute - np.outer(least, spent),
            left * base - mixed @ offset - least * (self.cap - spent_base),
        )

    @cached_property
    def _paired(self) -> NDArray[np.intp]:
        """Products of two changes for which the box says more than the cost does."""
        pairs, program = _pairs(self.n), self.problem.convex
        if not self._has_products:
            return np.flatnonzero(~pairs.diagonal)
        limits = cost_limits(program.limiting_ways.min(axis=0), program.L, self.cap)[self.free]
        cut = self.half < _CUT * limits
        return np.flatnonzero(~pairs.diagonal & cut[pairs.row] & cut[pairs.column])

    def _add_box_products(self, rows: Rows) -> None:
        """``V_jj <= 1``, and ``(1 +- v_j) (1 +- v_k) >= 0`` off the diagonal."""
        pairs = _pairs(self.n)
        on, off = np.flatnonzero(pairs.diagonal), self._paired
        left = np.zeros((on.size, self._width))
        left[np.arange(on.size), self.n + on] = 1.0
        rows.add(left, np.ones(on.size))
        at, j, k = np.arange(off.size), pairs.row[off], pairs.column[off]
        for first, second in _CORNERS:
            left = np.zeros((off.size, self._width))
            left[at, self.n + off] = -first * second
            left[at, j], left[at, k] = -first, -second
            rows.add(left, np.ones(off.size))

    def relaxed(self, outcome: Outcome, x: Floats, duals: Floats) -> Relaxed:
        """Read multipliers, in the units of `delta`, and the point."""
        pairs, d, n = _pairs(self.n), self.box.lower.size, self.n
        read = Reader(duals, self._rows.unit, self.objective)
        z = self.objective * duals[: self.problem.convex.e.size]
        read.at = z.size
        forms, y = read.next(), read.next()
        nu = np.array([read.next()[0] for _ in self.problem.convex.quadrics])
        read.next(), read.next()
        share, signs = np.zeros(d), np.zeros((d, d))
        if self._has_products:
            signs = self._read_signs(read)
            share[self.free] = read.next()
        low, high, cross = np.zeros((d, d)), np.zeros((d, d)), np.zeros((d, d))
        scale = 1.0 / self.half**2
        cross[self.free, self.free] = read.next() * scale
        off = self._paired
        pair = self.free[pairs.row[off]], self.free[pairs.column[off]]
        scale = 1.0 / (self.half[pairs.row[off]] * self.half[pairs.column[off]])
        for out, at in ((low, pair), (cross, pair), (cross, pair[::-1]), (high, pair)):
            out[at] += read.next() * scale
        # Without a solution the numbers may be anything; the box is where they belong.
        from_low, from_high = self._read_balls(duals, read.at)
        v, V = np.clip(x[:n], -1.0, 1.0), np.clip(x[n : n + pairs.row.size], -1.0, 1.0)
        point, miss = self.center.copy(), np.zeros((d, d))
        point[self.free] += self.half * v
        i, k = pairs.row, pairs.column
        rest = (V - v[i] * v[k]) * self.half[i] * self.half[k]
        miss[self.free[i], self.free[k]] = miss[self.free[k], self.free[i]] = rest
        linear = Multipliers(y, z, nu)
        prices = LiftedMultipliers(
            forms, linear, low, high, cross, share, signs, from_low, from_high, point
        )
        return Relaxed(outcome, prices, miss)

    def _read_balls(self, duals: Floats, at: int) -> tuple[Floats, Floats]:
        size = self.problem.convex.L.shape[0]
        out = np.zeros((self.box.lower.size, size)), np.zeros((self.box.lower.size, size))
        if self._has_balls:
            for j in range(self.n):
                for side in out:
                    vector = duals[at + 1 : at + 1 + size]
                    side[self.free[j]] = self.objective * vector / self._ball_unit(j)
                    at += 1 + size
        return out

    def _read_signs(self, read: Reader) -> Floats:
        pairs, unknown, d = _pairs(self.n), self._open, self.box.lower.size
        signs = np.zeros((d, d))
        at = self.free[pairs.row[unknown]], self.free[pairs.column[unknown]]
        signs[at] = read.next() - read.next()
        return signs


# Sides of the box that meet in a product: lower with lower, lower with upper, and so on.
_CORNERS = ((1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0))


@dataclass
class Reader:
    """Reads multipliers in the order in which the rows were added."""

    duals: Floats
    units: list[Floats]
    objective: float
    at: int = 0
    block: int = 0

    def next(self) -> Floats:
        """Multipliers of the next rows that were added together."""
        unit = self.units[self.block]
        value = self.objective * self.duals[self.at : self.at + unit.size] / unit
        self.at, self.block = self.at + unit.size, self.block + 1
        return np.asarray(value)

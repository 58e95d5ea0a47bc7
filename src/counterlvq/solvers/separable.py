"""Relaxation of a nonconvex cell over a box where no two features meet in a product.

The quadratic terms of naive Bayes, and of mixtures with diagonal covariances, are sums over
features. Of the matrix V in `semidefinite` the diagonal is then all that counts, and ``V_jj >=
v_j^2`` is a cone of three numbers for each feature: the work grows with the features, and not with
the third power of their pairs. Products of two absolute changes in those with the cost are replaced
by what the box says is the least of them, which costs multipliers for corners of the box.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import clarabel
import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.lazy import cached_property, imported_later
from counterlvq.numeric.tolerances import LEAST_HALF
from counterlvq.programs.nonconvex import Box, LiftedMultipliers, NonconvexProgram
from counterlvq.programs.program import Multipliers
from counterlvq.solvers.semidefinite import Reader, Relaxed, Rows, StandardForm, solved
from counterlvq.solvers.solution import Outcome

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = imported_later("scipy.sparse")

__all__ = ["is_separable", "relax_separable"]

# With fewer features the matrix of `semidefinite` is small, and says more.
_LEAST_WIDTH = 24


def is_separable(problem: NonconvexProgram) -> bool:
    """Whether a wide problem has no product of two features, in its forms or in its cost."""
    program, Q = problem.convex, problem.forms.Q
    if program.width < _LEAST_WIDTH or program.quadrics:
        return False
    if (np.count_nonzero(program.L, axis=1) > 1).any():
        return False
    on = np.einsum("kjj->kj", Q)
    return bool(np.count_nonzero(Q) == np.count_nonzero(on))


def relax_separable(
    problem: NonconvexProgram, box: Box, cap: float, tolerance: float, seconds: float
) -> Relaxed:
    """Solve the relaxation over one box, as `semidefinite.relax` does."""
    layout = _Layout(problem, box, cap)
    solution = solved(layout.standard_form(), tolerance, seconds)
    return Relaxed.failed(problem, box) if solution is None else layout.relaxed(*solution)


@final
@dataclass(frozen=True, eq=False)
class _Layout:
    """Where everything stands: ``(v, V_jj, |delta| where its sign is open)``, all of size one."""

    problem: NonconvexProgram
    box: Box
    cap: float

    @cached_property
    def _w(self) -> Floats:
        """Price of one unit, the lesser of both ways where the sign is open, (d,)."""
        return self.problem.convex.prices_for(self.box.sign)

    @cached_property
    def _half(self) -> Floats:
        """Half widths of the box of a relaxation, (d,); 0 for features that it holds in place."""
        half = self.box.half
        return np.where(half > LEAST_HALF, half, 0.0)

    @cached_property
    def _tops(self) -> NDArray[np.intp]:
        """Features whose absolute value needs a variable of its own."""
        return np.flatnonzero((self.box.sign == 0) & (self._half > 0))

    @property
    def _d(self) -> int:
        return self.problem.convex.width

    @property
    def _width(self) -> int:
        return 2 * self._d + self._tops.size

    @cached_property
    def _has_products(self) -> bool:
        """Whether products with the cost are worth anything."""
        return bool(np.isfinite(self.cap) and self.cap > 0 and (self._w > 0).all())

    @cached_property
    def objective(self) -> float:
        """Unit of the cost."""
        if np.isfinite(self.cap) and self.cap > 0:
            return self.cap
        spread = self.problem.convex.L * self._half
        return float(self._w @ self._half + np.einsum("ij,ij->", spread, spread)) or 1.0

    def _linear(self, A: Floats) -> tuple[Floats, Floats]:
        """Rows ``A delta``, and their constants."""
        out = np.zeros((A.shape[0], self._width))
        out[:, : self._d] = A * self._half
        return out, A @ self.box.center

    def _squares(self, D: Floats) -> tuple[Floats, Floats]:
        """Rows ``sum_j D_j delta_j^2``, and their constants."""
        c, h, d = self.box.center, self._half, self._d
        out = np.zeros((D.shape[0], self._width))
        out[:, :d] = 2.0 * D * (c * h)
        out[:, d : 2 * d] = D * h**2
        return out, D @ c**2

    @cached_property
    def _absolute(self) -> tuple[Floats, Floats]:
        """``|delta_j|`` as rows, (d, width), and their constants."""
        out, constant = self._linear(np.diag(self.box.sign))
        out[self._tops, 2 * self._d + np.arange(self._tops.size)] = self.box.most[self._tops]
        return out, constant

    def standard_form(self) -> StandardForm:
        """``min q'v`` with ``right - left v`` in a product of cones."""
        program, d, width = self.problem.convex, self._d, self._width
        equal, at = self._linear(program.E)
        rows = self._rows
        cone, cone_right = np.zeros((3 * d, width)), np.tile([1.0, 0.0, 1.0], d)
        j = np.arange(d)
        cone[3 * j, d + j], cone[3 * j + 1, j], cone[3 * j + 2, d + j] = -1.0, -2.0, 1.0
        left = sparse.csc_matrix(np.concatenate([equal, *rows.left, cone]))
        right = np.concatenate([program.e - at, *rows.right, cone_right])
        cones = [
            clarabel.ZeroConeT(len(equal)),
            clarabel.NonnegativeConeT(sum(part.size for part in rows.right)),
            *(clarabel.SecondOrderConeT(3) for _ in range(d)),
        ]
        return sparse.csc_matrix((width, width)), self._cost(), left, right, cones

    def _cost(self) -> Floats:
        program = self.problem.convex
        weights, tilt = program.tilted
        squares = self._squares((program.L**2).sum(axis=0)[None])[0][0]
        whole = squares + self._linear(tilt[None])[0][0] + weights @ self._absolute[0]
        return np.asarray(whole / self.objective)

    @cached_property
    def _rows(self) -> Rows:
        program, forms = self.problem.convex, self.problem.forms
        rows = Rows([], [], [])
        squares, constant = self._squares(np.einsum("kjj->kj", forms.Q))
        left, more = self._linear(forms.q)
        rows.add(squares + left, forms.r - constant - more)
        left, constant = self._linear(program.A)
        rows.add(left, program.b - constant)
        moves, start = self._linear(np.eye(self._d)[self._tops])
        tops = self._absolute[0][self._tops]
        rows.add(moves - tops, -start)
        rows.add(-moves - tops, start)
        if self._has_products:
            self._add_cost_products(rows)
        most = np.zeros((self._d, self._width))
        most[:, self._d : 2 * self._d] = np.eye(self._d)
        rows.add(most, np.ones(self._d))
        return rows

    def _add_cost_products(self, rows: Rows) -> None:
        """``(cap - sum_l w_l |delta_l|) (|delta_j| - least) >= 0``.

        A product ``|delta_j delta_l|`` is at least ``least_j |delta_l| + least_l |delta_j| -
        least_j least_l`` where the box tells both signs, and at least 0 elsewhere.
        """
        w, least, cap = self._w, self.box.least, self.cap
        absolute, base = self._absolute
        known = self._known * w  # (d, d): w_l where the product of j and l has a sign
        both = np.outer(least, w) * self._known
        left, constant = self._squares(np.diag(w))
        left = left + both @ absolute + (known @ least - cap)[:, None] * absolute
        constant = constant + both @ base + (known @ least - cap) * base - least * (known @ least)
        left = left - np.outer(least, w @ absolute)
        constant = constant - least * (w @ base) + cap * least
        rows.add(left, -constant)

    @cached_property
    def _known(self) -> Floats:
        """1 where the box tells the sign of the product of two features, (d, d); 0 for squares."""
        known = np.abs(np.outer(self.box.sign, self.box.sign))
        np.fill_diagonal(known, 0.0)
        return known

    def relaxed(self, outcome: Outcome, x: Floats, duals: Floats) -> Relaxed:
        """Read multipliers, in the units of `delta`, and the point."""
        d, program = self._d, self.problem.convex
        read = Reader(duals, self._rows.unit, self.objective)
        z = self.objective * duals[: program.e.size]
        read.at = z.size
        forms, y = read.next(), read.next()
        read.next(), read.next()
        share = read.next() if self._has_products else np.zeros(d)
        low, high, cross = self._corners(share)
        free = self._half > 0
        cross[free, free] += (read.next() / np.where(free, self._half, 1.0) ** 2)[free]
        v, V = np.clip(x[:d], -1.0, 1.0), np.clip(x[d : 2 * d], -1.0, 1.0)
        flat = np.zeros((d, program.L.shape[0]))
        prices = LiftedMultipliers(
            forms, Multipliers(y, z, np.zeros(0)), low, high, cross, share, np.zeros((d, d)),
            flat, flat, self.box.center + self._half * v,
        )  # fmt: skip
        return Relaxed(outcome, prices, np.diag((V - v**2) * self._half**2))

    def _corners(self, share: Floats) -> tuple[Floats, Floats, Floats]:
        """Multipliers of corners that cancel the products of two features, (d, d) each."""
        spread = np.outer(np.maximum(share, 0.0), self._w)
        size = np.triu(spread + spread.T, 1)
        sign = self.box.sign
        up, down = sign > 0, sign < 0
        mixed = np.outer(up, down) * size + (np.outer(down, up) * size).T
        return np.outer(up, up) * size, np.outer(down, down) * size, mixed

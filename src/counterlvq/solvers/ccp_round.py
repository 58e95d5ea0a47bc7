"""One round of the convex-concave procedure: the rivals' distances replaced by tangents.

A rival's distance is convex and stands on the wrong side of ``score_i <= score_k``. With its
tangent in its place the condition is convex, and stricter: a point that meets it is in the
cell. All rivals share the target's own distance, so one second-order cone is enough for all
of them. Where the tangents leave no room, one slack gives way in every one of them, at a
multiplier.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, final

import clarabel
import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.lazy import imported_later
from counterlvq.numeric.tolerances import ROUND_TOLERANCE
from counterlvq.programs.conditions import QuadraticCondition
from counterlvq.programs.program import Program
from counterlvq.solvers.clarabel_guard import run_guarded
from counterlvq.solvers.solution import Outcome

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = imported_later("scipy.sparse")

__all__ = ["Convexified", "Round", "Scores"]

# In units of the search nothing lies beyond this.
_FAR = 1e100


class Scores(NamedTuple):
    """Distances as functions of the change.

    ``|F delta + f|^2`` for the target prototype, ``delta' M delta + pull' delta + base`` for
    each rival.
    """

    F: Floats  # (r, d)
    f: Floats  # (r,)
    M: Floats  # (m, d, d)
    pull: Floats  # (m, d)
    base: Floats  # (m,)

    def own(self, delta: Floats) -> float:
        """Distance to the target prototype."""
        lifted = self.F @ delta + self.f
        return float(lifted @ lifted)

    def tangents(self, delta: Floats) -> tuple[Floats, Floats]:
        """Slopes (m, d) and constants (m,) of the rivals' tangents at `delta`."""
        curve = self.M @ delta
        return 2.0 * curve + self.pull, self.base - curve @ delta

    def lead(self, delta: Floats) -> float:
        """By how much the target prototype is nearer than the nearest rival."""
        if not self.base.size:
            return np.inf
        rivals = (self.M @ delta) @ delta + self.pull @ delta + self.base
        return float(rivals.min()) - self.own(delta)


class Round(NamedTuple):
    """Outcome of one round."""

    delta: Floats
    slack: float  # what had to give way, in units of distance


@final
@dataclass(frozen=True, eq=False)
class Convexified:
    """The rounds of one search, prepared once: only the tangents' rows change."""

    program: Program  # cost and constraints
    scores: Scores
    columns: Floats  # (d,) unit of each change
    distance: float  # unit of distances
    objective: float  # unit of the cost

    def round(self, around: Floats, margin: float, penalty: float, seconds: float) -> Round | None:
        """Solve with tangents at `around`; None if the solver fails."""
        program, scores, unit = self.program, self.scores, self.columns
        d, priced = program.width, np.flatnonzero(program.w > 0)
        width = d + 2 + priced.size  # the change, own distance, slack, absolute changes
        slopes, constants = scores.tangents(around)
        m = constants.size
        rivals = np.zeros((m, width))
        rivals[:, :d] = -slopes * unit / self.distance
        rivals[:, d], rivals[:, d + 1] = 1.0, -1.0
        blocks = [self._over(program.E, width), rivals, *self._fixed_rows(width, priced)]
        right = [
            program.e,
            (constants - margin) / self.distance,
            *self._fixed_rights(priced),
        ]
        cones: list[object] = [clarabel.ZeroConeT(program.e.size)]
        cones.append(clarabel.NonnegativeConeT(sum(len(part) for part in right[1:])))
        own = QuadraticCondition(
            scores.F / np.sqrt(self.distance), -scores.f / np.sqrt(self.distance), np.zeros(d), 0.0
        )
        for number, quadric in enumerate((own, *program.quadrics)):
            rows, values = self._cone(quadric, width)
            if number == 0:
                rows[0, d], rows[1, d] = -1.0, 1.0
            blocks.append(rows)
            right.append(values)
            cones.append(clarabel.SecondOrderConeT(values.size))
        P = np.zeros((width, width))
        P[:d, :d] = 2.0 / self.objective * (program.L * unit).T @ (program.L * unit)
        q = np.zeros(width)
        q[d + 1] = penalty
        weights, tilt = program.tilted
        q[:d] = tilt * unit / self.objective
        q[d + 2 :] = weights[priced] * unit[priced] / self.objective
        # Features that cannot move are put in: two sides without room between them, and sums of
        # such features, leave a solver no interior to work in.
        v = np.zeros(width)
        held = np.flatnonzero(program.lower >= program.upper)
        v[held] = program.lower[held] / unit[held]
        left, ends = np.concatenate(blocks), np.concatenate(right)
        moves = np.setdiff1d(np.arange(width), held)
        says = np.ones(ends.size, dtype=bool)
        linear = ends.size - sum(values.size for values in right[-len(cones) + 2 :])
        says[:linear] = (left[:linear, moves] != 0).any(axis=1)
        cones[0] = clarabel.ZeroConeT(int(says[: program.e.size].sum()))
        cones[1] = clarabel.NonnegativeConeT(int(says[program.e.size : linear].sum()))
        raw = run_guarded(
            sparse.csc_matrix(np.triu(P[np.ix_(moves, moves)])), (q + P @ v)[moves],
            sparse.csc_matrix(left[np.ix_(says, moves)]), (ends - left @ v)[says], cones,
            tolerance=ROUND_TOLERANCE, seconds=seconds,
        )  # fmt: skip
        if raw is None or raw.outcome is not Outcome.SOLVED or not (np.abs(raw.x) < _FAR).all():
            return None
        v[moves] = raw.x
        return Round(unit * v[:d], max(float(v[d + 1]), 0.0) * self.distance)

    def _over(self, matrix: Floats, width: int) -> Floats:
        out = np.zeros((matrix.shape[0], width))
        out[:, : self.program.width] = matrix * self.columns
        return out

    def _fixed_rows(self, width: int, priced: NDArray[np.intp]) -> list[Floats]:
        program, d = self.program, self.program.width
        low, high = np.isfinite(program.lower), np.isfinite(program.upper)
        count = priced.size
        tops = np.zeros((2 * count, width))
        at = np.arange(count)
        tops[at, priced], tops[count + at, priced] = 1.0, -1.0
        tops[at, d + 2 + at] = tops[count + at, d + 2 + at] = -1.0
        slack = np.zeros((1, width))
        slack[0, d + 1] = -1.0
        sides = np.zeros((d, width))
        sides[:, :d] = np.eye(d)
        return [self._over(program.A, width), tops, slack, -sides[low], sides[high]]

    def _fixed_rights(self, priced: NDArray[np.intp]) -> list[Floats]:
        program = self.program
        low, high = np.isfinite(program.lower), np.isfinite(program.upper)
        return [
            program.b,
            np.zeros(2 * priced.size),
            np.zeros(1),
            -(program.lower / self.columns)[low],
            (program.upper / self.columns)[high],
        ]

    def _cone(self, quadric: QuadraticCondition, width: int) -> tuple[Floats, Floats]:
        """``|G u - g|^2 <= t`` with ``t = c - h'u`` as ``|(1 - t, 2 (G u - g))| <= 1 + t``."""
        G, h = self._over(quadric.G, width), self._over(quadric.h[None, :], width)
        rows = np.concatenate([h, -h, -2.0 * G])
        right = np.concatenate([[1.0 + quadric.c, 1.0 - quadric.c], -2.0 * quadric.g])
        return rows, right

"""Local search in a nonconvex cell, from a point of it: the compiled kernel, or cones."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cache
from typing import final

import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import DIVING, LEAST_UNIT, NO_SLACK
from counterlvq.programs.kernel_data import root_of
from counterlvq.programs.program import Program
from counterlvq.solvers.ccp_round import Convexified, Scores
from counterlvq.solvers.kernels.descent import descend

__all__ = ["Descent", "warm_up"]

_ROUNDS = 100
# Costs and distances below this are not measured in units of themselves.
_CONIC_ROUNDS = 30
# Penalty on the slack, in units of cost per unit of distance; and how it grows.
_FIRST_PENALTY, _PENALTY_GROWTH, _LAST_PENALTY = 1.0, 10.0, 1e8


@cache
def warm_up() -> None:
    """Compile the kernel, or load it, by a search on one feature."""
    one, none = np.ones((1, 1)), np.zeros((0, 1))
    program = Program(
        w=np.ones(1), L=none, A=none, b=np.zeros(0), E=none, e=np.zeros(0),
        lower=np.full(1, -np.inf), upper=np.full(1, np.inf), quadrics=(), reach=np.ones(1),
        blur=np.zeros(0),
    )  # fmt: skip
    scores = Scores(one, np.full(1, -2.0), one[None], np.zeros((1, 1)), np.zeros(1))
    descent = Descent.of(program, scores, np.ones(1), Frames(scores.M))
    descent.downhill(np.full(1, 2.0), 0.0, DIVING, np.inf)


@final
@dataclass(frozen=True, eq=False)
class Descent:
    """Searches in one cell, seen from one input."""

    program: Program  # cost and constraints
    scores: Scores
    unit: Floats  # (d,) of changes
    compiled: _Compiled | None

    @classmethod
    def of(cls, program: Program, scores: Scores, unit: Floats, frames: Frames) -> Descent:
        """Prepare; the compiled kernel takes plain costs under linear constraints."""
        return cls(program, scores, unit, _Compiled.of(program, scores, frames))

    def downhill(self, start: Floats, margin: float, tolerance: float, seconds: float) -> Floats:
        """Walk downhill from a point of the cell; the end is in the cell as well.

        All rounds together may take `seconds`.
        """
        if self.compiled is not None:
            return self.compiled.downhill(start, margin, tolerance)
        delta, cost = start, self.program.cost(start)
        rounds, end = self._rounds(start), time.monotonic() + seconds
        for _ in range(_CONIC_ROUNDS):
            left = end - time.monotonic()
            found = rounds.round(delta, margin, _LAST_PENALTY, left) if left > 0 else None
            if found is None or found.slack > NO_SLACK * rounds.distance:
                return delta
            now = self.program.cost(found.delta)
            if not now < cost:
                return delta
            closed = cost - now <= tolerance * cost
            delta, cost = found.delta, now
            if closed:
                break
        return delta

    def into_cell(
        self, start: Floats, margin: float, tolerance: float, seconds: float
    ) -> Floats | None:
        """Search from a point that breaks constraints or lies outside the cell.

        Each round lets the rivals' conditions give way at a penalty that grows until they
        hold; None if they do not in the end, or within `seconds` for all of them.
        """
        rounds, end = self._rounds(start), time.monotonic() + seconds
        delta, penalty, best = start, _FIRST_PENALTY, np.inf
        for _ in range(_CONIC_ROUNDS):
            left = end - time.monotonic()
            found = rounds.round(delta, margin, penalty, left) if left > 0 else None
            if found is None:
                return None
            value = self.program.cost(found.delta) / rounds.objective
            value += penalty * found.slack / rounds.distance
            delta = found.delta
            holds = found.slack <= NO_SLACK * rounds.distance
            if holds and self.compiled is not None:
                return delta
            if best - value <= tolerance * abs(value) and (holds or penalty >= _LAST_PENALTY):
                return delta if holds else None
            best = value
            if not holds and penalty < _LAST_PENALTY:
                penalty, best = penalty * _PENALTY_GROWTH, np.inf
        return None

    def _rounds(self, start: Floats) -> Convexified:
        distance = max(float(self.scores.base.max(initial=0.0)), self.scores.own(0.0 * start))
        objective = self.program.cost(start)
        unit = np.where(self.unit > 0, self.unit, 1.0)  # no prototype differs from the input
        # Next to nothing cannot be a unit: what is divided by it overflows.
        units = [value if value > LEAST_UNIT else 1.0 for value in (distance, objective)]
        return Convexified(self.program, self.scores, unit, *units)


@final
@dataclass(frozen=True, eq=False)
class _Frame:
    """What the kernel needs of a cost and of the rivals' metrics, for features that can move.

    It works in units ``u`` in which the cost is plain; ``delta = B u + base``.
    """

    is_quadratic: bool
    columns: NDArray[np.intp]
    scale: Floats  # (n,) of single features
    slopes: Floats  # (2, n) price up and down in units of u; ones for quadratic costs
    root: Floats  # (n, n), u = root (delta - base)
    B: Floats  # (n, n)
    lengths: Floats  # (n,) of the rows of B
    M: Floats  # (m, n, n)
    A: Floats  # (c, n) linear constraints
    equality: NDArray[np.bool_]  # (c,)

    @classmethod
    def of(cls, program: Program, M: Floats, free: NDArray[np.bool_]) -> _Frame | None:
        columns = np.flatnonzero(free)
        is_quadratic = not program.w.any()
        mixed = not is_quadratic and (program.L.shape[0] > 0 or not program.w.all())
        if program.quadrics or mixed or not columns.size:
            return None
        root = root_of(program.L[:, columns]) if is_quadratic else np.diag(program.w[columns])
        if root is None:
            return None
        B = np.linalg.inv(root) if is_quadratic else np.diag(1.0 / program.w[columns])
        A = np.concatenate([program.A, program.E])
        return cls(
            is_quadratic,
            columns,
            np.ones(columns.size) if is_quadratic else program.w[columns],
            np.ones((2, columns.size))
            if is_quadratic
            else np.ascontiguousarray(program.both_ways[:, columns] / program.w[columns]),
            np.ascontiguousarray(root),
            np.ascontiguousarray(B),
            np.sqrt(np.einsum("ij,ij->i", B, B)),
            np.ascontiguousarray(B.T @ M[:, columns[:, None], columns] @ B),
            np.ascontiguousarray(A[:, columns] @ B),
            np.repeat([False, True], [program.b.size, program.e.size]),
        )


@final
@dataclass(frozen=True, eq=False)
class Frames:
    """Frames of one cost, one set of constraints and one set of rivals, made when asked for."""

    M: Floats  # (m, d, d) metrics of the rivals
    _known: dict[bytes, _Frame | None] = field(init=False, default_factory=dict, repr=False)

    def of(self, program: Program, free: NDArray[np.bool_]) -> _Frame | None:
        """Look up the frame for features that can move; None if the kernel cannot take it."""
        key = np.packbits(free).tobytes()
        if key not in self._known:
            self._known[key] = _Frame.of(program, self.M, free)
        return self._known[key]


@final
@dataclass(frozen=True, eq=False)
class _Compiled:
    """Arrays of the kernel, for one cell seen from one input."""

    frame: _Frame
    base: Floats  # (d,) where features that cannot move are held
    own: tuple[Floats, Floats, float]
    rivals: tuple[Floats, Floats]
    right: Floats  # (c,)
    sides: tuple[Floats, Floats]

    @classmethod
    def of(cls, program: Program, scores: Scores, frames: Frames) -> _Compiled | None:
        free = program.lower < program.upper
        frame = frames.of(program, free)
        if frame is None or program.has_empty_box():
            return None
        columns, B = frame.columns, frame.B
        base = np.where(free, 0.0, program.lower)
        f, pull, level = scores.f, scores.pull, scores.base
        right = np.concatenate([program.b, program.e])
        if base.any():
            if frame.is_quadratic and (program.L @ base).any():
                return None
            curves = scores.M @ base
            f = scores.F @ base + f
            pull, level = 2.0 * curves + pull, curves @ base + pull @ base + level
            right = right - np.concatenate([program.A, program.E]) @ base
        F = scores.F[:, columns] @ B
        lower, upper = program.lower[columns], program.upper[columns]
        return cls(
            frame, base, (F.T @ F, 2.0 * F.T @ f, float(f @ f)),
            (np.ascontiguousarray(pull[:, columns] @ B), np.ascontiguousarray(level)),
            right, (frame.scale * lower, frame.scale * upper),
        )  # fmt: skip

    def downhill(self, start: Floats, margin: float, tolerance: float) -> Floats:
        frame = self.frame
        u = np.ascontiguousarray(frame.root @ (start - self.base)[frame.columns])
        descend(
            frame.is_quadratic, *self.own, frame.M, *self.rivals, frame.A, self.right,
            frame.equality, frame.B, frame.lengths, *self.sides, frame.slopes, margin, tolerance,
            _ROUNDS, u,
        )  # fmt: skip
        delta = self.base.copy()
        delta[frame.columns] += frame.B @ u
        return delta

"""What metrics see of changes, and a nonconvex cell over a box in the coordinates of that.

`absolute_dual` and `quadratic_dual` state the relaxations over it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.finite_algebra import independent_rows, singular_vectors
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.tolerances import HELD_SHARE, LEAST_HALF, SEEN_RANK
from counterlvq.programs.nonconvex import Box, FormSides, LiftedMultipliers, NonconvexProgram
from counterlvq.programs.program import Multipliers, Program
from counterlvq.programs.proof_data import cost_limits, form_limits, reach_of

__all__ = ["Cuts", "MetricSpace", "Part", "Question", "SeenRelaxed", "side_products"]

# Beyond this share of the features the metrics see everything, and features are coordinates.
_NEARLY_ALL = 0.7
# Features with sides of their own up to which each two of them are multiplied: matrices of all
# features for each pair of them take gigabytes for a hundred.
_MOST_PAIRED = 16
# A side shorter than this share of what the cost allows has been cut.
_CUT = 0.999


@final
@dataclass(frozen=True, eq=False)
class MetricSpace:
    """What a list of metrics sees of changes: ``u = V delta``, in units of the cost."""

    V: Floats  # (k, d)
    back: Floats  # (d, k): a change with given u, the cheapest one where the cost is quadratic
    is_plain: bool  # each row of V has one entry: features are coordinates

    @classmethod
    def of(cls, factors: Sequence[Floats], program: Program) -> MetricSpace | None:
        """Find what the metrics see; None where the cost limits nothing, or is of two kinds."""
        d, is_quadratic = program.width, bool(program.L.shape[0])
        moves = ~((program.lower == 0) & (program.upper == 0))
        if not moves.any():
            return None
        if is_quadratic and program.ways is not None:
            return None
        if is_quadratic == bool(program.w[moves].any()):
            return None
        root = _root_of(program, moves) if is_quadratic else np.diag(program.w[moves])
        if root is None or not np.diag(root).all():
            return None
        stacked = np.concatenate(factors)[:, moves]
        seen = stacked.any(axis=0)
        drawn = np.linalg.solve(root.T, stacked.T).T
        length = np.abs(drawn).max(axis=1, initial=0.0)
        found = singular_vectors(drawn[length > 0] / length[length > 0, None])
        if found is None:
            return None
        sizes, axes = found
        P = axes[sizes > SEEN_RANK * sizes.max(initial=0.0)]
        is_plain = len(P) > _NEARLY_ALL * int(seen.sum())
        rows, columns = P @ root, np.linalg.solve(root, P.T)
        if is_plain:
            scale = np.sqrt(np.einsum("ij,ij->j", root, root))
            rows, columns = np.diag(scale)[seen], np.diag(1.0 / scale)[:, seen]
        V, back = np.zeros((len(rows), d)), np.zeros((d, len(rows)))
        V[:, moves], back[moves] = rows, columns
        return cls(V, back, is_plain)

    @property
    def size(self) -> int:
        """How many coordinates it has."""
        return len(self.V)

    @property
    def nbytes(self) -> int:
        """Bytes of its matrices."""
        return self.V.nbytes + self.back.nbytes


def _root_of(program: Program, moves: NDArray[np.bool_]) -> Floats | None:
    """Upper triangular root of the matrix of a quadratic cost; None if it limits not all."""
    L = np.asarray(program.L)[:, moves]
    if L.shape[0] < L.shape[1]:
        return None
    root = np.asarray(np.linalg.qr(L, mode="r"))
    size = np.abs(root).max(initial=0.0)
    return root if (np.abs(np.diag(root)) > SEEN_RANK * size).all() else None


@final
@dataclass(frozen=True, eq=False)
class SeenRelaxed:
    """Answer of the relaxation: multipliers, the point, and how far ``u u'`` is missed."""

    prices: LiftedMultipliers
    value: float  # that the method came to, as a share of the cost of the answer
    u: Floats  # (k,)
    miss: Floats  # (k, k)
    work: float  # numbers that were multiplied, about

    @property
    def axes(self) -> Floats:
        """Directions in which the point is a mixture of others, most of all first, (k, k)."""
        return self._mixture[1]

    @property
    def spread(self) -> Floats:
        """How far the others lie apart along each, about, (k,)."""
        return self._mixture[0]

    @cached_property
    def _mixture(self) -> tuple[Floats, Floats]:
        sizes, axes = np.linalg.eigh(self.miss)
        return np.sqrt(np.maximum(sizes[::-1], 0.0)), np.ascontiguousarray(axes[:, ::-1].T)


class Question(NamedTuple):
    """A cell in the coordinates of a metric space; of its rivals those that matter."""

    problem: NonconvexProgram
    space: MetricSpace
    Q: Floats  # (m, k, k)
    q: Floats  # (m, k)

    @classmethod
    def of(cls, problem: NonconvexProgram, space: MetricSpace) -> Question:
        """Write the conditions of a cell in u."""
        back = space.back
        return cls(problem, space, back.T @ problem.forms.Q @ back, problem.forms.q @ back)

    def excess(self, u: Floats, miss: Floats) -> Floats:
        """By how much the prototype trails each rival at a relaxed point, (m,)."""
        lifted = np.outer(u, u) + miss
        value: Floats = np.einsum("kij,ij->k", self.Q, lifted) + self.q @ u - self.problem.forms.r
        return value


class Cuts(NamedTuple):
    """Linear forms of u that boxes are cut across, with the sides that a box has of each."""

    G: Floats  # (g, k)
    lower: Floats  # (g,) in the units of u
    upper: Floats  # (g,)
    is_feature: NDArray[np.bool_]  # (g,): a feature of the user's, else a form of a tree
    matters: NDArray[np.bool_]  # (g, g): whether products of two forms are worth charging for

    @classmethod
    def of(
        cls, space: MetricSpace, sides: FormSides, matters: NDArray[np.bool_],
        features: FormSides | None,
    ) -> Cuts:  # fmt: skip
        """Gather forms of a tree, and features where these are the coordinates."""
        own = sides.V @ space.back
        if features is None:
            return cls(own, sides.lower, sides.upper, np.zeros(len(own), dtype=bool), matters)
        k, g = space.size, space.size + len(own)
        is_feature = np.arange(g) < k
        both = np.outer(is_feature, is_feature)
        both[k:, k:] = matters
        return cls(
            np.concatenate([np.eye(k), own.reshape(-1, k)]),
            np.concatenate([features.lower, sides.lower]),
            np.concatenate([features.upper, sides.upper]),
            is_feature,
            both,
        )


class SideProducts(NamedTuple):
    """Products of distances to the sides of forms, as charges ``u'Au + a'u + c`` that are <= 0."""

    kind: list[tuple[str, int, int]]
    A: Floats  # (p, k, k)
    a: Floats  # (p, k)
    c: Floats  # (p,)


_PAIRS = (("low", 1.0, 1.0), ("high", -1.0, -1.0), ("cross", 1.0, -1.0), ("crossed", -1.0, 1.0))


def side_products(cuts: Cuts, cut: NDArray[np.intp]) -> SideProducts:
    """State products of each form that has been cut, and of pairs of them."""
    G, lower, upper, _, matters = cuts
    if cuts.is_feature[cut].sum() > _MOST_PAIRED:
        matters = matters & ~np.outer(cuts.is_feature, cuts.is_feature)
    kind: list[tuple[str, int, int]] = [("cross", int(i), int(i)) for i in cut]
    kind += [(name, int(i), int(j)) for name, _, _ in _PAIRS for n, i in enumerate(cut)
             for j in cut[:n] if matters[i, j]]  # fmt: skip
    k, p = G.shape[1], len(kind)
    A, a, c = np.zeros((p, k, k)), np.zeros((p, k)), np.zeros(p)
    signs = {name: (first, second) for name, first, second in _PAIRS}
    for n, (name, i, j) in enumerate(kind):
        first, second = signs[name]
        one = lower[i] if first > 0 else upper[i]
        other = lower[j] if second > 0 else upper[j]
        share = -first * second
        both = np.outer(G[i], G[j])
        A[n] = 0.5 * share * (both + both.T)
        a[n] = -share * (other * G[i] + one * G[j])
        c[n] = share * one * other
    return SideProducts(kind, A, a, c)


@final
@dataclass(frozen=True, eq=False)
class Part:
    """One box, without features that it holds in place, and in units of what may be spent."""

    question: Question
    rivals: NDArray[np.bool_]
    box: Box
    cuts: Cuts
    cap: float
    free: NDArray[np.intp]
    held: Floats  # (d,) changes of the features that cannot move

    @classmethod
    def of(
        cls, question: Question, rivals: NDArray[np.bool_], box: Box, cuts: Cuts, cap: float
    ) -> Part:
        """Leave out features that cannot move, or that nothing sees."""
        program = question.problem.convex
        seen = question.space.V.any(axis=0) | program.A.any(axis=0) | program.E.any(axis=0)
        reach = cost_limits(program.limiting_ways.min(axis=0), program.L, cap)
        moves = box.half > np.maximum(LEAST_HALF, HELD_SHARE * reach)
        # What is held by rounding alone does not change if it need not.
        held = np.clip(0.0, box.lower, box.upper)
        held = np.where(box.half > LEAST_HALF, held, box.center)
        return cls(
            question, rivals, box, cuts, cap, np.flatnonzero(moves & seen),
            np.where(moves, 0.0, held),
        )  # fmt: skip

    @property
    def program(self) -> Program:
        """Cost and constraints."""
        return self.question.problem.convex

    @cached_property
    def left(self) -> float:
        """What features that cannot move leave of the cost."""
        program = self.program
        if program.L.shape[0]:
            return self.cap
        return float(self.cap - program.prices_for(self.held) @ np.abs(self.held))

    @cached_property
    def prices(self) -> Floats:
        """Price of each free feature that no unit of change undercuts in the box, (n,)."""
        return self.program.prices_for(self.box.sign)[self.free]

    @cached_property
    def ways(self) -> Floats:
        """Price up and down as a share of that; where the box has no such way, it is 1, (2, n)."""
        return np.maximum(self.program.both_ways[:, self.free] / self.prices, 1.0)

    @cached_property
    def unit(self) -> float:
        """Unit of u."""
        return float(np.sqrt(self.left)) if self.program.L.shape[0] else self.left

    @cached_property
    def forms(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Conditions on ``u - u0`` in units, each of size one, and the sizes that they had."""
        question, u0 = self.question, self.question.space.V @ self.held
        Q, q = question.Q[self.rivals], question.q[self.rivals]
        r = question.problem.forms.r[self.rivals]
        pull = Q @ u0
        r = r - (pull @ u0 + q @ u0)
        Q, q = Q * self.unit**2, (q + 2.0 * pull) * self.unit
        size = np.abs(Q).max(axis=(1, 2), initial=0.0)
        size = np.maximum(np.maximum(size, np.abs(q).max(axis=1, initial=0.0)), np.abs(r))
        size = np.where(size > 0, size, 1.0)
        return Q / size[:, None, None], q / size[:, None], r / size, size

    @cached_property
    def ends(self) -> Cuts:
        """Sides of forms of ``u - u0`` in units."""
        cuts = self.cuts
        at = cuts.G @ (self.question.space.V @ self.held)
        return cuts._replace(
            lower=(cuts.lower - at) / self.unit, upper=(cuts.upper - at) / self.unit
        )

    @cached_property
    def products(self) -> SideProducts:
        """Products of the sides of forms that have been cut."""
        program, cuts, ends = self.program, self.cuts, self.ends
        V = cuts.G @ self.question.space.V
        low, high = form_limits(V, program.both_ways, program.L, self.cap, reach_of(program.L))
        cut = (cuts.lower > _CUT * low) | (cuts.upper < _CUT * high)
        cut &= ends.lower < ends.upper
        return side_products(ends, np.flatnonzero(cut))

    @cached_property
    def charges(self) -> tuple[Floats, Floats]:
        """Matrices of what is charged for in ``(1, u)``, (m + p, k + 1, k + 1), and constants."""
        (Q, q, r, _), more = self.forms, self.products
        k = self.question.space.size
        F = np.zeros((len(r) + len(more.c), k + 1, k + 1))
        F[:, 1:, 1:] = np.concatenate([Q, more.A])
        F[:, 0, 1:] = F[:, 1:, 0] = 0.5 * np.concatenate([q, more.a])
        return F, np.concatenate([-r, more.c])

    @cached_property
    def rows(self) -> tuple[Floats, Floats, int, Floats]:
        """Linear conditions on free features and sides: ``A delta <= b``, equalities last.

        Each is of size one; how many are equalities, and the sizes that they had.
        """
        A, b, size = self._all_rows
        says, equalities = self._says, int(self._says[b.size - self.program.e.size :].sum())
        return A[says] / size[says, None], b[says] / size[says], equalities, size[says]

    @cached_property
    def _says(self) -> NDArray[np.bool_]:
        """Which conditions say something of what is free: no method finds room in the others."""
        A, _, size = self._all_rows
        first = len(A) - self.program.e.size
        independent = independent_rows(A[first:] * self.reach / size[first:, None], SEEN_RANK)
        return np.concatenate([A[:first].any(axis=1), independent])

    @cached_property
    def _all_rows(self) -> tuple[Floats, Floats, Floats]:
        program, free, d = self.program, self.free, self.box.lower.size
        reach = cost_limits(program.limiting_ways.min(axis=0), program.L, self.cap)
        is_low = self.box.lower > -_CUT * reach
        is_high = self.box.upper < _CUT * reach
        low, high = (free[part[free]] for part in (is_low, is_high))
        eye = np.eye(d)
        A = np.concatenate([program.A, -eye[low], eye[high], program.E])
        b = np.concatenate([program.b, -self.box.lower[low], self.box.upper[high], program.e])
        b = b - A @ self.held
        A = A[:, free]
        size = np.abs(A * self.reach).max(axis=1, initial=0.0)
        return A, b, np.where(size > 0, size, 1.0)

    @cached_property
    def reach(self) -> Floats:
        """How far each free feature can go, (n,)."""
        return np.asarray(self.box.half[self.free])

    def linear(self, y: Floats) -> Multipliers:
        """Multipliers of the linear conditions in their own units."""
        true = np.zeros(self._says.size)
        true[self._says] = self.left * y / self.rows[3]
        m, k = self.program.b.size, self.program.e.size
        # Convex quadratic conditions are left out, and so not charged for.
        nothing = np.zeros(len(self.program.quadrics))
        return Multipliers(true[:m], true[true.size - k :], nothing)

    def sided(self, charged: Floats, unit: float) -> dict[str, Floats]:
        """Multipliers of products of sides, by kind; a product counts `unit` times in u."""
        g = len(self.cuts.G)
        out = {name: np.zeros((g, g)) for name in ("low", "high", "cross")}
        for (name, i, j), value in zip(self.products.kind, charged.tolist(), strict=True):
            if name == "crossed":
                out["cross"][j, i] += value * unit
            else:
                out[name][i, j] += value * unit
        return out

    def multipliers(
        self, charged: Floats, unit: float, y: Floats, point: Floats, **more: Floats
    ) -> LiftedMultipliers:
        """Gather multipliers in the units of changes."""
        problem, space = self.question.problem, self.question.space
        d, m, flat = self.box.lower.size, int(self.rivals.sum()), problem.convex.L.shape[0]
        forms = np.zeros(self.rivals.size)
        forms[self.rivals] = self.left * charged[:m] / self.forms[3]
        products = self.sided(charged[m:], unit)
        none, blank = np.zeros((d, d)), np.zeros((d, flat))
        values: dict[str, Floats] = {
            "low": none, "high": none, "cross": none, "share": np.zeros(d), "signs": none,
            "from_low": blank, "from_high": blank, **more,
        }  # fmt: skip
        features = int(self.cuts.is_feature.sum())
        if features:
            at = np.abs(space.V).argmax(axis=1)
            scale = space.V[np.arange(len(at)), at]
            for name, part in products.items():
                whole = values[name].copy()
                whole[np.ix_(at, at)] += part[:features, :features] * np.outer(scale, scale)
                values[name] = whole
        told = {f"form_{name}": part[features:, features:] for name, part in products.items()}
        return LiftedMultipliers(
            forms, self.linear(y), **values, point=np.clip(point, self.box.lower, self.box.upper),
            **told,
        )  # fmt: skip

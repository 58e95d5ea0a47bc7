"""Cells: where one target prototype beats every rival, as rows of numbers.

For a shared metric ``score_k(y) = |F y - f_k|^2`` the quadratic terms of two prototypes
cancel. With ``z = F x`` and ``delta = y - x``::

    score_i(y) <= score_k(y)
    2 (f_k - f_i)' F delta <= score_k(x) - score_i(x) = (f_i - f_k)'(2 z - f_i - f_k)

The right-hand side is written as a product of differences because the difference of two
squares would lose digits where the input lies close to the boundary.

For local metrics ``M_k`` they do not cancel, and a quadratic form remains per rival::

    delta' (M_i - M_k) delta + 2 (M_i (x - w_i) - M_k (x - w_k))' delta <= score_k(x) - score_i(x)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import mul
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.memory import FLOAT, refuse_too_large
from counterlvq.numeric.tolerances import SCORE_ROUNDING, UNIT

__all__ = ["Forms", "Halfspaces", "LocalCells", "LocalView", "SharedCells"]

# How many times the rounding of a distance a default margin is at least, for shared metrics.
_MARGIN_SHARE = 4.0


class Halfspaces(NamedTuple):
    """``normals delta <= leads``: where a prototype is at least as near as its rivals.

    A lead is by how much the prototype is nearer at `x`; negative where it is behind.
    """

    normals: Floats  # (m, d)
    leads: Floats  # (m,)

    @classmethod
    def none(cls, width: int) -> Halfspaces:
        """No rivals at all."""
        return cls(np.zeros((0, width)), np.zeros(0))


class Forms(NamedTuple):
    """``delta' Q delta + q' delta <= r`` per rival: where a prototype is at least as near.

    The blurs bound how far the numbers are from what the model says: `Q`, `q` and `r` are
    differences of sums. Each is made of the two prototypes that it is about, and of no other.
    """

    Q: Floats  # (m, d, d)
    q: Floats  # (m, d)
    r: Floats  # (m,)
    Q_blur: Floats  # (m, d, d)
    q_blur: Floats  # (m, d)
    r_blur: Floats  # (m,)
    size: Floats  # (m,) of the two distances that meet; no claim rests on it

    def and_also(self, Q: Floats, q: Floats, r: Floats, q_blur: Floats, r_blur: Floats) -> Forms:
        """Add more conditions, with bounds on the rounding of their numbers."""
        more = (Q, q, r, np.zeros_like(Q), q_blur, r_blur, np.abs(r))
        return Forms(*(np.concatenate(pair) for pair in zip(self, more, strict=True)))

    def loosened(self, blur: float) -> Forms:
        """Let every condition give way by `blur`."""
        return self._replace(r_blur=self.r_blur + blur) if blur else self


@final
@dataclass(frozen=True, eq=False)
class SharedCells:
    """The cells of the wished-for labels under a shared metric."""

    model: PrototypeModel
    targets: NDArray[np.intp]  # prototypes of a wished-for label
    rivals: NDArray[np.intp]  # all others

    @classmethod
    def of(
        cls, model: PrototypeModel, target_mask: NDArray[np.bool_], *, ties_count: bool
    ) -> SharedCells:
        """Split the prototypes by whether their label is wished for, (p,).

        A prototype that is exactly as far from everything as an earlier one never wins, because
        the first of two equals does. It bounds nothing, unless a margin is wished for over it as
        well, or a foreign model decides between the two (`ties_count`).
        """
        alive = np.ones(model.n_prototypes, dtype=bool)
        # Two that only look alike in other coordinates are told apart by the model behind them.
        if not ties_count and not model.is_refereed and model.blur is None:
            alive = model.first_alike == np.arange(model.n_prototypes)
        targets = np.flatnonzero(target_mask & alive)
        rivals = np.flatnonzero(~target_mask & alive)
        # Where every label is wished for, all cells are the whole space, and one is enough. Where
        # rivals only never win, whoever checks a proof without knowing that expects all cells.
        return cls(model, targets[:1] if target_mask.all() else targets, rivals)

    @classmethod
    def of_each(
        cls, models: Sequence[PrototypeModel], target_mask: NDArray[np.bool_], *, ties_count: bool
    ) -> list[SharedCells]:
        """As `of` for several models with the same labels."""
        if not ties_count and not all(each.is_refereed or each.blur is not None for each in models):
            return [cls.of(model, target_mask, ties_count=ties_count) for model in models]
        first = cls.of(models[0], target_mask, ties_count=ties_count)
        return [cls(model, first.targets, first.rivals) for model in models]

    @property
    def nbytes(self) -> int:
        """Bytes that it takes."""
        return self.targets.nbytes + self.rivals.nbytes

    def halfspaces(
        self, prototype: int, x: Floats, rivals: NDArray[np.intp] | None = None
    ) -> Halfspaces:
        """Cell of `prototype` seen from `x`, against all rivals or the listed ones.

        Differences of prototypes come first, so that what lies far away costs no digits.
        """
        others = self.rivals if rivals is None else rivals
        return self.halfspaces_between(prototype, x, others)

    def halfspaces_between(
        self, own: int | NDArray[np.intp], x: Floats, others: NDArray[np.intp]
    ) -> Halfspaces:
        """Half-spaces of prototypes seen from `x`, each against one rival; or of one prototype."""
        model = self.model
        mine = model.prototypes[own]
        ahead, back = model.prototypes[others] - mine, mine - x
        if model.diagonal is not None:
            ahead, back = ahead * model.diagonal, back * model.diagonal
        elif model.omegas is not None:
            F = model.shared_factor
            ahead, back = ahead @ F.T, F @ back if back.ndim == 1 else back @ F.T
        leads = np.einsum("ij,ij->i", ahead, ahead + 2.0 * back)
        if model.offsets is not None:
            leads = leads + (model.offsets[others] - model.offsets[own])
        normals = 2.0 * ahead
        if model.diagonal is not None:
            normals = normals * model.diagonal
        elif model.omegas is not None:
            normals = normals @ model.shared_factor
        return Halfspaces(normals, leads)

    def forms(self, prototype: int, x: Floats) -> Forms:
        """Cell of `prototype` seen from `x`, as forms without quadratic terms.

        With ``a = w_k - w_i`` and ``s = (w_i - x) + (w_k - x)`` the normal is ``2 F'F a`` and the
        lead ``(F a)'(F s)``: differences come first, and no other prototype has a say.
        """
        model, d = self.model, x.size
        own, others = model.prototypes[prototype], model.prototypes[self.rivals]
        ahead, both = others - own, (own - x) + (others - x)
        both_size = np.abs(own - x) + np.abs(others - x)
        offsets = np.zeros(model.n_prototypes) if model.offsets is None else model.offsets
        more = offsets[self.rivals] - offsets[prototype]
        more_size = np.where(more != 0, offsets[self.rivals] + offsets[prototype], 0.0)
        if _is_plain(model):
            steps, normals = 1, 2.0 * ahead
            normals_blur = 2.0 * _difference_error(others, own, ahead)
            leads = np.einsum("ij,ij->i", ahead, both)
            leads_size = np.einsum("ij,ij->i", np.abs(ahead), both_size)
        elif model.diagonal is not None:
            F = model.diagonal
            steps, lifted = 4, ahead * F
            normals = 2.0 * lifted * F
            normals_blur = (steps + 4) * UNIT * np.abs(normals)
            leads = np.einsum("ij,ij->i", lifted, both * F)
            leads_size = np.einsum("ij,ij->i", np.abs(lifted), both_size * np.abs(F))
        else:
            F = model.shared_factor
            steps, lifted = d + len(F) + 2, ahead @ F.T
            normals = 2.0 * lifted @ F
            sizes = np.abs(ahead) @ np.abs(F).T
            normals_blur = (steps + 4) * UNIT * 2.0 * sizes @ np.abs(F)
            leads = np.einsum("ij,ij->i", lifted, both @ F.T)
            leads_size = np.einsum("ij,ij->i", sizes, both_size @ np.abs(F).T)
        leads_blur = (2 * (steps + d) + 8) * UNIT * (leads_size + more_size)
        flat = np.broadcast_to(0.0, (leads.size, d, d))
        return Forms(
            flat, normals, leads + more, flat, normals_blur, leads_blur, leads_size + more_size
        )

    def never_nearer(self, prototype: int, rival: int, y: Floats, free: NDArray[np.bool_]) -> bool:
        """Whether a rival is at least as near as `prototype`, wherever free features of `y` go.

        Decided exactly: the difference of the two distances is linear in `y`.
        """
        model = self.model
        own, other, at = (
            [Fraction(value) for value in part.tolist()]
            for part in (model.prototypes[prototype], model.prototypes[rival], y)
        )
        ahead = [b - a for a, b in zip(own, other, strict=True)]
        both = [2 * value - a - b for value, a, b in zip(at, own, other, strict=True)]
        if model.omegas is None:
            if any(ahead[j] for j in np.flatnonzero(free)):
                return False
            lead = sum(map(mul, ahead, both))
        elif model.diagonal is not None:
            seen = [Fraction(value) ** 2 * a
                    for value, a in zip(model.diagonal.tolist(), ahead, strict=True)]  # fmt: skip
            if any(seen[j] for j in np.flatnonzero(free)):
                return False
            lead = sum(map(mul, seen, both))
        else:
            rows = [[Fraction(value) for value in row] for row in model.shared_factor.tolist()]
            lifted = [sum(map(mul, row, ahead)) for row in rows]
            if any(sum(map(mul, lifted, (row[j] for row in rows))) for j in np.flatnonzero(free)):
                return False
            pairs = zip(lifted, rows, strict=True)
            lead = sum(part * sum(map(mul, row, both)) for part, row in pairs)
        if model.offsets is not None:
            lead += Fraction(float(model.offsets[prototype]))
            lead -= Fraction(float(model.offsets[rival]))
        return bool(lead >= 0)

    def rounding_margin(self, x: Floats, prototype: int) -> float:
        """Least lead over a rival that rounding in `predict` cannot undo."""
        scores = self.model.distances(x[None, :])
        return _MARGIN_SHARE * float(self.model.distance_errors(x[None, :], scores)[0, prototype])

    def lead_rounding(self, x: Floats, prototype: int) -> float:
        """As `rounding_margin`, for leads that are computed as differences."""
        return _MARGIN_SHARE * float(self.forms(prototype, x).r_blur.max(initial=0.0))

    def meeting(self, prototype: int, x: Floats) -> Floats:
        """Sizes of the scores that meet when each rival is compared with `prototype`, (m,)."""
        scores = self.model.distances(x[None, :])[0]
        return np.asarray(scores[self.rivals] + scores[prototype])

    def scale(self, x: Floats) -> float:
        """Size of the scores between which the decision falls at `x`."""
        scores = self.model.distances(x[None, :])[0]
        near = scores[self.rivals].min(initial=np.inf), scores[self.targets].min(initial=np.inf)
        return float(sum(score for score in near if np.isfinite(score)))


@final
@dataclass(frozen=True, eq=False)
class LocalCells:
    """The cells of the wished-for labels where prototypes differ in their metric."""

    model: PrototypeModel
    targets: NDArray[np.intp]  # prototypes of a wished-for label
    rivals: NDArray[np.intp]  # all others

    @classmethod
    def of(
        cls, model: PrototypeModel, target_mask: NDArray[np.bool_], *, ties_count: bool
    ) -> LocalCells:
        """Split the prototypes by whether their label is wished for, (p,).

        As for `SharedCells`, what is as far from everything as an earlier prototype, metric and
        offset too, never wins and bounds nothing unless ties count.
        """
        alive = np.ones(model.n_prototypes, dtype=bool)
        # Two that only look alike in other coordinates are told apart by the model behind them.
        if not ties_count and not model.is_refereed:
            alive = model.first_alike == np.arange(model.n_prototypes)
        rivals = np.flatnonzero(~target_mask & alive)
        targets = np.flatnonzero(target_mask & alive)
        cells = cls(model, targets[:1] if target_mask.all() else targets, rivals)
        refuse_too_large(
            f"local metrics of {model.n_prototypes:,} prototypes and {model.n_features:,} features",
            cells.nbytes,
            "leave out features, or take a model with one metric for all",
        )
        return cells

    @property
    def nbytes(self) -> int:
        """Bytes that its matrices take once they have been asked for."""
        matrices = 3 * self.model.n_prototypes + 2 * self.targets.size * self.rivals.size
        return FLOAT * matrices * self.model.n_features**2

    @cached_property
    def _differences(self) -> dict[int, tuple[Floats, Floats]]:
        """Quadratic terms per target prototype, which do not depend on `x`."""
        return {
            int(i): (
                self.metrics[i] - self.metrics[self.rivals],
                self.steps * UNIT * (self.sizes[i] + self.sizes[self.rivals]),
            )
            for i in self.targets
        }

    @cached_property
    def steps(self) -> int:
        """No sum behind the metrics, or their differences, is rounded more often."""
        return max(len(omega) for omega in self.model.factors) + 4

    def seen_from(self, x: Floats) -> LocalView:
        """Prepare the cells for one input."""
        return LocalView(self, x)

    def differences(self, prototype: int) -> tuple[Floats, Floats]:
        """Quadratic terms of the cell of `prototype`, (m, d, d), and what they are off by."""
        return self._differences[prototype]

    @cached_property
    def metrics(self) -> Floats:
        """``omega' omega`` of every prototype, (p, d, d)."""
        return np.array([omega.T @ omega for omega in self.model.factors])

    @cached_property
    def sizes(self) -> Floats:
        """The sums of absolute values behind `metrics`, the measure of their rounding."""
        return np.array([np.abs(omega).T @ np.abs(omega) for omega in self.model.factors])

    @cached_property
    def rival_metrics(self) -> Floats:
        """``omega' omega`` of every rival, (m, d, d)."""
        return np.ascontiguousarray(self.metrics[self.rivals])


@final
@dataclass(frozen=True, eq=False)
class LocalView:
    """Cells of local metrics seen from one input; what they have in common is kept."""

    cells: LocalCells
    x: Floats  # (d,)

    @cached_property
    def scores(self) -> Floats:
        """Distance of every prototype, (p,)."""
        return np.asarray(self.cells.model.distances(self.x[None, :])[0])

    @cached_property
    def scale(self) -> float:
        """Size of the scores that meet when the input is classified, the measure of rounding."""
        return float(self.scores.max())

    @property
    def rounding_margin(self) -> float:
        """Least lead over a rival that rounding in `predict` cannot undo."""
        return SCORE_ROUNDING * self.scale

    @cached_property
    def _pulls(self) -> Floats:
        """``M_k (x - w_k)`` of every prototype, (p, d)."""
        offsets = self.x - self.cells.model.prototypes
        return np.asarray(np.matmul(self.cells.metrics, offsets[..., None])[..., 0])

    @cached_property
    def _pull_sizes(self) -> Floats:
        """The sums of absolute values behind `_pulls`."""
        away = np.abs(self.x - self.cells.model.prototypes)
        return np.asarray(np.einsum("kij,kj->ki", self.cells.sizes, away))

    @cached_property
    def _score_sizes(self) -> Floats:
        """The sums of absolute values behind `scores`, (p,)."""
        model = self.cells.model
        away = np.abs(self.x - model.prototypes)
        lifted = [np.abs(F) @ gap for F, gap in zip(model.factors, away, strict=True)]
        sizes = np.array([float(part @ part) for part in lifted])
        return sizes if model.offsets is None else sizes + model.offsets

    @cached_property
    def rivals(self) -> tuple[Floats, Floats]:
        """Gradient (m, d) and value (m,) of each rival's distance, for the conditions of a cell."""
        return 2.0 * self._pulls[self.cells.rivals], self.scores[self.cells.rivals]

    def behind(self, prototype: int) -> float:
        """By how much `prototype` trails the nearest rival; 0 where it leads."""
        nearest = float(self.rivals[1].min(initial=np.inf))
        return max(float(self.scores[prototype]) - nearest, 0.0)

    def forms(self, prototype: int) -> Forms:
        """Conditions of the cell of `prototype`."""
        (Q, Q_blur), k = self.cells.differences(prototype), self.cells.rivals
        scores, pulls, sizes = self.scores, self._pulls, self._pull_sizes
        # Of a distance: the difference, d products and their sum, twice over, and r squares.
        steps = self.cells.steps + 2 * self.x.size + 8
        met = self._score_sizes[k] + self._score_sizes[prototype]
        return Forms(
            Q,
            2.0 * (pulls[prototype] - pulls[k]),
            scores[k] - scores[prototype],
            Q_blur,
            2.0 * steps * UNIT * (sizes[prototype] + sizes[k]),
            2.0 * steps * UNIT * met,
            scores[k] + scores[prototype],
        )

    def distances(self, prototype: int) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """State the distances after a change; returns F, f, M, pull, base.

        ``|F delta + f|^2`` is that of `prototype`, ``delta' M delta + pull' delta + base`` that
        of each rival. An offset of the prototype's own is taken off the others.
        """
        model = self.cells.model
        F, (pull, base) = model.factors[prototype], self.rivals
        if model.offsets is not None:
            base = base - model.offsets[prototype]
        f = F @ (self.x - model.prototypes[prototype])
        return F, f, self.cells.rival_metrics, pull, base


def _is_plain(model: PrototypeModel) -> bool:
    """Whether a shared metric is the plain one, whichever way it is stated."""
    if model.diagonal is not None:
        return bool((model.diagonal == 1.0).all())
    return model.omegas is None or _is_identity(model.shared_factor)


def _is_identity(factor: Floats) -> bool:
    """Whether a factor is the identity, up to rows of zeros."""
    rows = factor[factor.any(axis=1)]
    return rows.shape == (factor.shape[1],) * 2 and np.array_equal(rows, np.eye(len(rows)))


def _difference_error(a: Floats, b: Floats, difference: Floats) -> Floats:
    """By how much ``a - b`` was rounded, exactly (Knuth): nothing, for most numbers as read."""
    back = difference - a
    return np.abs((a - (difference - back)) - (b + back))

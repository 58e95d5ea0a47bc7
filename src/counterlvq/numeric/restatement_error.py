"""How far a model that was stated in other coordinates may be from the one that is meant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterlvq.numeric.arrays import Floats, read_only
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.tolerances import EPSILON, SAFE, UNIT, VANISHED_ROOT

__all__ = ["Blur"]

# Differences of rows and prototypes that are held at once.
_ENTRIES_AT_ONCE = 1 << 18


class _Sizes(NamedTuple):
    """Sizes of rows of differences, as in `Blur`."""

    H: Floats
    D: Floats
    R: Floats


@final
@dataclass(frozen=True, eq=False)
class Blur:
    """Bounds on the error of a restated model, which hold for every row.

    A model ``|omega (B x + c - w_k)|^2 + o_k`` is restated as ``s_k(x) = |F (x - v_k)|^2 + p_k``.
    Let ``F* = omega B`` in exact arithmetic, ``E = F* - F``, and ``e_k = omega (B v_k + c - w_k)``.
    With ``d = x - v_k`` the score that is meant is::

        s*_k(x) = |F* d + e_k|^2 + o_k
                = s_k(x) + (E d)' (2 F d + E d) + 2 e_k' F d + 2 e_k' E d + |e_k|^2 + o_k - p_k

    so that, with ``H = sum_j wobble_j |d_j| >= |E d|``, ``D = sqrt(sum_j (lengths_j d_j)^2)`` and
    ``R = stretch D >= |F d|``::

        |s*_k - s_k| <= H (2 R + H + 2 residual_k) + 2 min(pull_k D, residual_k R) + constant_k

    Both scores are real numbers: s_k as the floats of the restated model say, without the
    rounding of whoever evaluates it. Every term grows with each ``|x_j - v_kj|``, so that the far
    corner of a box bounds the box; at a single row, R is ``|F d|`` itself where that is less.

    Attributes
    ----------
    prototypes : ndarray of shape (p, d)
        The v_k.
    factors : tuple of ndarray of shape (r, d) or (d,)
        F, or its diagonal; one for all, or one for each prototype.
    lengths, wobble : ndarray of shape (g, d)
        Lengths of the columns of each F, and bounds on those of E.
    stretch : ndarray of shape (g,)
        Bounds on the largest singular value of F with its columns divided by their lengths.
    residual : ndarray of shape (p,)
        Bounds on ``|e_k|``.
    pull : ndarray of shape (p,)
        Bounds on ``|e_k' F d| / D``, and on each entry of ``F' e_k`` over the column's length.
    constant : ndarray of shape (p,)
        Bounds on ``| |e_k|^2 + o_k - p_k |``.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from counterlvq import PrototypeModel
    >>> from counterlvq.pipelines import read_transformer
    >>> table_map = read_transformer(StandardScaler().fit([[10.0], [40.0]]))
    >>> blur = table_map.pulled_back(PrototypeModel([[-1.0], [1.0]], ["no", "yes"])).blur
    >>> bool((blur.of_scores([[20.0]]) < 1e-14).all())
    True
    """

    prototypes: Floats
    factors: tuple[Floats, ...]
    lengths: Floats
    wobble: Floats
    stretch: Floats
    residual: Floats
    pull: Floats
    constant: Floats

    @classmethod
    def of_rows(
        cls, blurs: Sequence[Blur], at: NDArray[np.intp], factors: Floats | None = None
    ) -> Blur:
        """State for rows that have one of some blurs each, by position `at` (n,): all at once.

        Of shared metrics. Arrays have one axis more, for the rows. `factors` (n, r, d) are those
        of the rows, where they are at hand.
        """
        shared = ("prototypes", "residual", "pull", "constant")
        prototypes, residual, pull, constant = (
            np.stack([getattr(blur, name) for blur in blurs])[at] for name in shared
        )
        if factors is None:
            listed = [blur.factors[0] for blur in blurs]
            factors = np.stack([np.diag(F) if F.ndim == 1 else F for F in listed])[at]
        lengths, wobble = (
            np.stack([getattr(blur, name) for blur in blurs])[at] for name in ("lengths", "wobble")
        )
        stretch = np.stack([blur.stretch for blur in blurs])[at]
        return cls(prototypes, (factors,), lengths, wobble, stretch, residual, pull, constant)

    def __post_init__(self) -> None:
        for value in vars(self).values():
            for array in value if isinstance(value, tuple) else (value,):
                read_only(array)

    @cached_property
    def ignored(self) -> NDArray[np.bool_]:
        """Columns on which no score depends, nor the error of one, (d,) or (n, d)."""
        return np.asarray(((self.lengths == 0) & (self.wobble == 0)).all(axis=-2))

    def of_prototypes(self, at: NDArray[np.intp]) -> Blur:
        """State for some of the prototypes, of a shared metric."""
        return replace(
            self,
            prototypes=self.prototypes[at],
            residual=self.residual[at],
            pull=self.pull[at],
            constant=self.constant[at],
        )

    def widened(self) -> Blur:
        """Put a column behind all others that no score depends on."""

        def wider(array: Floats) -> Floats:
            return np.hstack([array, np.zeros((*array.shape[:-1], 1))])

        return replace(
            self,
            prototypes=wider(self.prototypes),
            factors=tuple(map(wider, self.factors)),
            lengths=wider(self.lengths),
            wobble=wider(self.wobble),
        )

    def of_scores(self, rows: ArrayLike) -> Floats:
        """Bound on the error of each score of each row, (n, p)."""
        given = np.asarray(rows, dtype=np.float64)
        if len(self.factors) > 1:
            return np.array([self._of(self._sizes(row - self.prototypes)) for row in given])
        parts = [
            own._of(own._sizes(part[:, None, :] - own.prototypes))
            for own, part in self._in_parts(given)
        ]
        return np.concatenate(parts) if parts else np.zeros((0, self.residual.shape[-1]))

    def over_box(self, low: Floats, high: Floats) -> Floats:
        """Bound on the error of each score of any row between `low` and `high`, (p,)."""
        away = np.maximum(np.abs(low - self.prototypes), np.abs(high - self.prototypes))
        H, D = self._weighed(away)
        return self._of(_Sizes(H, D, self.stretch * D))

    def over_boxes(self, low: Floats, high: Floats) -> Floats:
        """As `over_box` for many boxes (n, d), (n, p)."""
        if len(self.factors) > 1:
            return np.array([self.over_box(*ends) for ends in zip(low, high, strict=True)])
        found = []
        for own, part in self._in_parts(np.stack([low, high], axis=1)):
            ends = np.abs(part[:, :, None, :] - own.prototypes[..., None, :, :])
            H, D = own._weighed(ends.max(axis=1))
            found.append(own._of(_Sizes(H, D, own.stretch * D)))
        return np.concatenate(found) if found else np.zeros((0, self.residual.shape[-1]))

    def _in_parts(self, rows: Floats) -> Iterator[tuple[Blur, Floats]]:
        """Take rows a few at a time, each part with what it is compared with."""
        size = max(1, _ENTRIES_AT_ONCE // max(1, self.prototypes.shape[-2] * rows.shape[-1]))
        for start in range(0, len(rows), size):
            part = slice(start, start + size)
            own = self
            if self.prototypes.ndim > 2:
                own = Blur(
                    self.prototypes[part], (self.factors[0][part],), self.lengths[part],
                    self.wobble[part], self.stretch[part], self.residual[part], self.pull[part],
                    self.constant[part],
                )  # fmt: skip
            yield own, rows[part]

    def of_leads(self, x: Floats, prototype: int, rivals: NDArray[np.intp]) -> Floats:
        """Bound on the error of ``s_rival(x) - s_prototype(x)``, (m,), for a shared metric.

        Much of the error of two scores is the same where prototypes are close to each other
        and the row is far off. With ``a = v_k - v_i`` and ``b = 2 x - v_i - v_k`` the difference
        of the squares is ``(F a)' (F b)``, in which F is off by E.
        """
        mine, theirs = x - self.prototypes[prototype], x - self.prototypes[rivals]
        a = self._sizes(self.prototypes[rivals] - self.prototypes[prototype])
        # A sum of two differences may cancel, so that their own rounding counts.
        rounding = 2.0 * UNIT * (np.abs(mine) + np.abs(theirs))
        b = self._sizes(mine + theirs, rounding)
        own = self._own(self._sizes(theirs), rivals) + self._own(
            self._sizes(mine[None, :]), [prototype]
        )
        return np.asarray(SAFE * (a.H * (b.R + b.H) + a.R * b.H + own))

    def of_normals(self, prototype: int, rivals: NDArray[np.intp]) -> Floats:
        """Bound on the error of each slope of ``s_prototype - s_rival``, (m, d), shared metric.

        The slope is ``2 F' F (v_k - v_i)``; the one that is meant has F* in place of F, and
        ``2 F*' (e_i - e_k)`` beside it.
        """
        a = self._sizes(self.prototypes[rivals] - self.prototypes[prototype])
        residual = self.residual[rivals] + self.residual[prototype]
        by_wobble = a.R + a.H + residual
        by_length = a.H + self.pull[rivals] + self.pull[prototype]
        slopes = by_wobble[:, None] * self.wobble + by_length[:, None] * self.lengths
        return np.asarray(2.0 * SAFE * slopes)

    def _weighed(self, away: Floats) -> tuple[Floats, Floats]:
        """H and D of rows of absolute differences."""
        D = np.sqrt(((away * self.lengths) ** 2).sum(axis=-1)) + VANISHED_ROOT
        return (away * self.wobble).sum(axis=-1), D

    def _sizes(self, d: Floats, rounding: Floats | float = 0.0) -> _Sizes:
        """H, D and R of rows of differences that are off by `rounding` at most."""
        away = np.abs(d) + rounding
        H, D = self._weighed(away)
        factor = self.factors[0]
        if factor.ndim == 1:
            images = np.linalg.norm(d * factor, axis=-1)
        elif len(self.factors) == 1:
            images = np.linalg.norm(d @ np.swapaxes(factor, -1, -2), axis=-1)
        else:  # which may be of different ranks
            pairs = zip(self.factors, d, strict=True)
            images = np.array([np.linalg.norm(F @ row) for F, row in pairs])
        # The product sums up to d terms; `lengths` bound what a column adds to the image.
        share = 2.0 * (d.shape[-1] + 4) * EPSILON
        slack = (self.lengths * (share * away + rounding)).sum(axis=-1)
        R = np.minimum(self.stretch * D, images + slack + VANISHED_ROOT)
        return _Sizes(H, D, R)

    def _own(self, at: _Sizes, which: NDArray[np.intp] | list[int] | slice) -> Floats:
        """Sum up what prototypes add whatever they are compared with."""
        residual, pull = self.residual[which], self.pull[which]
        linear = np.minimum(pull * at.D, residual * at.R) + residual * at.H
        return np.asarray(2.0 * linear + self.constant[which])

    def _of(self, at: _Sizes) -> Floats:
        """Blur of every prototype, each at its own row."""
        squares = at.H * (2.0 * at.R + at.H)
        return np.asarray(SAFE * (squares + self._own(at, slice(None))))

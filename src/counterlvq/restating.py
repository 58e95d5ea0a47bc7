"""How far a model that was stated in other coordinates may be from the one that is meant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterlvq.arrays import Floats, read_only

__all__ = ["Blur"]

# Covers the rounding of the bounds below, which are sums of terms that are not negative.
_SAFE = 1.0 + 2.0**-20
# Squares below 2^-1074 are lost, and with them this much of the root of a sum of 2^20 at most.
_ROOT_TINY = 2.0**-520


@final
@dataclass(frozen=True, eq=False)
class Blur:
    """Bounds on the error of a restated model, which hold for every row.

    A model ``|omega (B x + c - w_k)|^2 + o_k`` is restated as ``s_k(x) = |F (x - v_k)|^2 + p_k``.
    Let ``F* = omega B`` in exact arithmetic, ``E = F* - F``, and ``e_k = omega (B v_k + c - w_k)``.
    With ``d = x - v_k`` the score that is meant is::

        s*_k(x) = |F* d + e_k|^2 + o_k
                = s_k(x) + (E d)' (2 F d + E d) + 2 e_k' F d + 2 e_k' E d + |e_k|^2 + o_k - p_k

    so that, with ``H = sum_j wobble_j |d_j| >= |E d|`` and
    ``D = stretch sqrt(sum_j (lengths_j d_j)^2) >= |F d|``::

        |s*_k(x) - s_k(x)| <= H (2 D + H + 2 residual_k) + 2 pull_k D / stretch + constant_k.

    Both scores are real numbers: s_k as the floats of the restated model say, without the
    rounding of whoever evaluates it. Every term grows with each ``|x_j - v_kj|``, so that the far
    corner of a box bounds the box.

    Attributes
    ----------
    prototypes : ndarray of shape (p, d)
        The v_k.
    lengths, wobble : ndarray of shape (g, d)
        Lengths of the columns of F, and bounds on those of E; g is 1, or p for local metrics.
    stretch : ndarray of shape (g,)
        Bound on ``|F u|`` over ``sqrt(sum_j (lengths_j u_j)^2)``.
    residual : ndarray of shape (p,)
        Bounds on ``|e_k|``.
    pull : ndarray of shape (p,)
        Bounds on ``|e_k' F u|`` over ``sqrt(sum_j (lengths_j u_j)^2)``.
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
    lengths: Floats
    wobble: Floats
    stretch: Floats
    residual: Floats
    pull: Floats
    constant: Floats

    def __post_init__(self) -> None:
        for array in vars(self).values():
            read_only(array)

    def of_scores(self, rows: ArrayLike) -> Floats:
        """Bound on the error of each score of each row, (n, p)."""
        given = np.asarray(rows, dtype=np.float64)
        return np.array([self._of(np.abs(row - self.prototypes)) for row in given])

    def over_box(self, low: Floats, high: Floats) -> Floats:
        """Bound on the error of each score of any row between `low` and `high`, (p,)."""
        return self._of(np.maximum(np.abs(low - self.prototypes), np.abs(high - self.prototypes)))

    def of_leads(self, x: Floats, prototype: int, rivals: NDArray[np.intp]) -> Floats:
        """Bound on the error of ``s_rival(x) - s_prototype(x)``, (m,), for a shared metric.

        Much of the error of two scores is the same where prototypes are close to each other
        and the row is far off. With ``a = v_k - v_i`` and ``b = 2 x - v_i - v_k`` the difference
        of the squares is ``(F a)' (F b)``, in which F is off by E.
        """
        mine, theirs = x - self.prototypes[prototype], x - self.prototypes[rivals]
        a = np.abs(self.prototypes[rivals] - self.prototypes[prototype])
        # A sum of two differences may cancel, so that their own rounding counts.
        b = np.abs(mine + theirs) + 2.0**-51 * (np.abs(mine) + np.abs(theirs))
        (H_a, D_a), (H_b, D_b), stretch = self._parts(a), self._parts(b), self.stretch[0]
        products = H_a * (stretch * D_b + H_b) + stretch * D_a * H_b
        rest = self._own(np.abs(theirs), rivals) + self._own(np.abs(mine[None, :]), [prototype])
        return np.asarray(_SAFE * (products + rest))

    def of_normals(self, prototype: int, rivals: NDArray[np.intp]) -> Floats:
        """Bound on the error of each slope of ``s_prototype - s_rival``, (m, d), shared metric.

        The slope is ``2 F' F (v_k - v_i)``; the one that is meant has F* in place of F, and
        ``2 F*' (e_i - e_k)`` beside it.
        """
        H, D = self._parts(np.abs(self.prototypes[rivals] - self.prototypes[prototype]))
        residual = self.residual[rivals] + self.residual[prototype]
        by_wobble = self.stretch[0] * D + H + residual
        by_length = H + self.pull[rivals] + self.pull[prototype]
        slopes = by_wobble[:, None] * self.wobble + by_length[:, None] * self.lengths
        return np.asarray(2.0 * _SAFE * slopes)

    def _parts(self, away: Floats) -> tuple[Floats, Floats]:
        """H, and D over the stretch, for rows of absolute differences."""
        D = np.sqrt(((away * self.lengths) ** 2).sum(axis=1)) + _ROOT_TINY
        return (away * self.wobble).sum(axis=1), D

    def _own(self, away: Floats, at: NDArray[np.intp] | list[int]) -> Floats:
        """Sum up what prototypes add whatever they are compared with."""
        H, D = self._parts(away)
        linear = self.pull[at] * D + self.residual[at] * H
        return np.asarray(2.0 * linear + self.constant[at])

    def _of(self, away: Floats) -> Floats:
        """Blur of every prototype, each at its row of absolute differences."""
        H, D = self._parts(away)
        squares = H * (2.0 * self.stretch * D + H)
        own = 2.0 * (self.pull * D + self.residual * H) + self.constant
        return np.asarray(_SAFE * (squares + own))

"""Linear scores as prototypes: the largest ``coef_k x + intercept_k`` wins.

Subtracting what all classes share changes no winner. The centred coefficients, a matrix W of one
row per class, are taken apart as ``W = U S V'`` in units in which every column counts alike. With
``F = a S V'`` and ``f_k = U_k / (2 a)`` the score ``|F (x - c) - f_k|^2 + offset_k`` is
``-W_k (x - c) + |f_k|^2 + offset_k`` up to ``|F (x - c)|^2``, which all classes share: with the
right offsets, the differences of scores are those of the model. F has one row less than there
are classes, so that a column with large numbers and small coefficients counts by what it adds to
a score; with the identity as metric its square would swallow every other column.

c is a point where all classes are as equal as they can be, next to the middle of the data where
that is known: two classes then lie on either side of their boundary and need no offsets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.adapters.arithmetic import Arithmetic
from counterlvq.errors import NotSupportedError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import EPSILON, SAFE, SCORE_RANK
from counterlvq.types import Meaning, Response, Scores

__all__ = ["LinearArithmetic", "LinearScores"]

# Products up to which the model is compared with what was read in rational arithmetic.
_MOST_EXACT = 1 << 15
# Roundings beside the sums of d and r terms: centring, scaling, one product, the intercept.
_OTHER_ROUNDINGS = 16


@final
@dataclass(frozen=True, eq=False)
class LinearScores:
    """Scores ``coef x + intercept``, one per label, and what is known of their rounding."""

    coef: Floats  # (k, d)
    intercept: Floats  # (k,)
    labels: NDArray[Any]  # (k,)
    names: Sequence[str] | None = None
    near: Floats | None = None  # (d,) the middle of the data
    response: Response | None = None
    odds: float | None = None  # see `Meaning`
    # Sizes of what `predict` multiplies with rows and adds, where it is more than the above, and
    # how many more roundings than d it takes.
    sizes: Floats | None = None  # (k, d)
    constants: Floats | None = None  # (k,)
    roundings: int = 0

    @classmethod
    def of_two(
        cls, coef: Floats, intercept: float, labels: NDArray[Any], **told: Any
    ) -> LinearScores:
        """Scores of two labels, of which the second wins where ``coef x + intercept`` is above 0.

        Halves with opposite signs, so that their difference is the number itself.
        """
        halves = np.array([-0.5, 0.5])
        return cls(np.outer(halves, coef), halves * intercept, labels, **told)

    def shifted(self, by: Floats, response: Response | None) -> LinearScores:
        """Add a number to the score of each label."""
        return replace(
            self,
            intercept=self.intercept + by,
            constants=self._constants + np.abs(by),
            response=response,
            roundings=self.roundings + 1,
        )

    def relabelled(self, labels: NDArray[Any]) -> LinearScores:
        """Give the classes other names."""
        return replace(self, labels=labels)

    @property
    def _constants(self) -> Floats:
        return np.abs(self.intercept) if self.constants is None else self.constants

    def model(self, what: str) -> PrototypeModel:
        """State linear scores as prototypes; `what` is the class of the estimator, for errors."""
        self._refuse_unusable(what)
        W = self.coef - self.coef.mean(axis=0)
        b = self.intercept - self.intercept.mean()
        units = np.abs(W).max(axis=0)
        seen = units > 0
        if not seen.any():
            raise NotSupportedError(
                f"the coefficients of this {what} are the same for all classes, so that it "
                f"predicts one class only; expected some that tell classes apart. Fit it with "
                f"less regularisation."
            )
        d, place = W.shape[1], np.flatnonzero(seen)
        U, S, V = np.linalg.svd(W[:, place] / units[place], full_matrices=False)
        # Centred scores of k classes span k - 1 directions; the last one is rounding.
        kept = SCORE_RANK * max(W.shape) * S[0] < S
        kept[max(1, len(W) - 1) :] = False
        U, S, V = U[:, kept], S[kept], V[kept]
        middle = np.zeros(d) if self.near is None else self.near
        here = W @ middle + b
        c = middle.copy()
        c[place] -= (V.T @ ((U.T @ here) / S)) / units[place]
        scale = 1.0 / np.sqrt(max(float(np.abs(b).max()), float(units.max())))
        F = np.zeros((len(S), d))
        F[:, place] = scale * S[:, None] * V * units[place]
        points = np.tile(c, (len(W), 1))
        points[:, place] += ((U / S) @ V) / (2.0 * scale**2 * units[place])
        anchors = (points - c) @ F.T
        wanted = -(b + W @ c) - np.einsum("ij,ij->i", anchors, anchors)
        offsets = wanted - wanted.min()
        meaning = Meaning("class", Scores.SHIFTED, odds=self.odds)
        model = PrototypeModel(points, self.labels, F, self.names, offsets, meaning)
        return model.responding(self.response, self.labels)

    def _refuse_unusable(self, what: str) -> None:
        numbers = np.concatenate([self.coef.reshape(-1), self.intercept])
        if not np.isfinite(numbers).all():
            raise NotSupportedError(
                f"this {what} has coefficients that are not finite; expected numbers. Its fit has "
                f"diverged, or gives a class no prior or a column no chance: scale the columns, or "
                f"give each class and column a chance, and fit it again."
            )

    def arithmetic(self, model: PrototypeModel) -> LinearArithmetic:
        """Describe how scores are computed, and how far `model` is from them."""
        missed, constants = self._missed(model)
        return LinearArithmetic(
            model,
            coef=self.coef,
            intercept=self.intercept,
            sizes=np.abs(self.coef) if self.sizes is None else self.sizes,
            constants=self._constants,
            extra=self.roundings,
            missed=missed,
            offsets=constants,
        )

    def _missed(self, model: PrototypeModel) -> tuple[Floats, Floats]:
        """Bound how far slopes (k, d) and constants (k,) of the model are from what was read.

        Both up to what all classes share, for rows measured from the first prototype: there the
        score of the model has the slope ``-2 F'F (w_k - w_0)``, and that of the classifier is
        ``-coef_k``.
        """
        k, d = self.coef.shape
        if 2 * k * d * len(model.shared_factor) <= _MOST_EXACT:
            return self._missed_exactly(model)
        share = 4 * (2 * d + k + _OTHER_ROUNDINGS) * EPSILON
        own, F = model.prototypes[0], model.shared_factor
        away = model.prototypes - own
        images, image_sizes = away @ F.T, np.abs(away) @ np.abs(F).T
        slopes, slope_sizes = 2.0 * images @ F, 2.0 * image_sizes @ np.abs(F)
        missed = np.abs(slopes - (self.coef - self.coef[0]))
        missed += share * (slope_sizes + np.abs(self.coef) + np.abs(self.coef[0]))
        at = -(self.intercept + self.coef @ own)
        at_sizes = np.abs(self.intercept) + np.abs(self.coef) @ np.abs(own)
        offsets = np.zeros(k) if model.offsets is None else model.offsets
        here = np.einsum("ij,ij->i", images, images) + offsets
        here_sizes = np.einsum("ij,ij->i", image_sizes, image_sizes) + offsets
        constants = np.abs((here - here[0]) - (at - at[0]))
        constants += share * (here_sizes + here_sizes[0] + at_sizes + at_sizes[0])
        return missed, constants

    def _missed_exactly(self, model: PrototypeModel) -> tuple[Floats, Floats]:
        """As `_missed`, in rational arithmetic."""
        F, own = _exact(model.shared_factor), _exact(model.prototypes[0])
        coef, intercept = _exact(self.coef), _exact(self.intercept)
        offsets = [Fraction(0)] * len(coef) if model.offsets is None else _exact(model.offsets)
        missed, constants = np.zeros(self.coef.shape), np.zeros(len(coef))
        start = -(intercept[0] + _dot(coef[0], own)) - offsets[0]
        for k, w in enumerate(_exact(model.prototypes)):
            away = [a - b for a, b in zip(w, own, strict=True)]
            image = [_dot(row, away) for row in F]
            for j in range(len(away)):
                slope = 2 * sum(f[j] * value for f, value in zip(F, image, strict=True))
                missed[k, j] = _upwards(abs(slope - (coef[k][j] - coef[0][j])))
            gap = _dot(image, image) + offsets[k] + intercept[k] + _dot(coef[k], own) + start
            constants[k] = _upwards(abs(gap))
        return missed, constants


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class LinearArithmetic(Arithmetic):
    """The arithmetic of a `predict` that compares sums of products.

    Leads are computed in the same way, so that rounding grows with the row and not with its
    square.
    """

    coef: Floats  # (k, d)
    intercept: Floats  # (k,)
    sizes: Floats  # (k, d) of what `predict` multiplies with rows
    constants: Floats  # (k,) of what it adds
    missed: Floats  # (k, d) errors of the slopes of the model read
    extra: int = 0  # roundings beyond those of a sum of d products

    def scores(self, rows: Floats) -> Floats:
        """Scores of each row as the classifier has them, the least of which wins, (n, k)."""
        return -(_each(rows, self.coef) + self.intercept)

    def errors(
        self, rows: Floats, slip: Floats | float = 0.0, reach: Floats | None = None
    ) -> Floats:
        """Bound the rounding of each score, up to what all scores of a row share, (n, k)."""
        farther = np.zeros(rows.shape) if reach is None else reach
        slips = np.broadcast_to(slip, rows.shape)
        count = (rows.shape[1] + self.extra + _OTHER_ROUNDINGS) * EPSILON
        gamma = count / (1.0 - count)
        own = _each(np.abs(rows) + farther, gamma * self.sizes) + gamma * self.constants
        away = np.abs(rows - self.model.prototypes[0]) + farther
        read = _each(away, self.missed) + self.offsets
        tiny = 2 * rows.shape[1] * float(np.finfo(np.float64).tiny)
        return np.asarray(own + _each(slips, self.sizes) + SAFE * read + tiny)

    def _blur_within(self, rows: Floats, reach: Floats, slip: Floats) -> Floats:
        """Bound the same for all classes, whether they compete or not."""
        limited = np.asarray(np.isfinite(reach).all(axis=1))
        reach = np.where(limited[:, None], reach, 0.0)
        errors = self.errors(rows, np.where(limited[:, None], slip, 0.0), reach)
        return np.asarray(np.where(limited, 2.0 * SAFE * errors.max(axis=1), np.inf))


def _each(rows: Floats, factor: Floats) -> Floats:
    """Multiply each row as if it were alone: products of matrices round by their company."""
    return np.asarray(np.einsum("ij,kj->ik", rows, factor))


def _exact(array: Floats) -> Any:
    """Turn floats into fractions, row by row."""
    if array.ndim > 1:
        return [_exact(row) for row in array]
    return [Fraction(value) for value in array.tolist()]


def _dot(a: list[Fraction], b: list[Fraction]) -> Fraction:
    return sum((p * q for p, q in zip(a, b, strict=True) if p and q), Fraction(0))


def _upwards(value: Fraction) -> float:
    return float(value) * SAFE

"""The smallest angle decides: angle LVQ and nearest neighbours by cosine.

Under one metric the cosine of x and w is ``(F x)'(F w) / (|F x| |F w|)``. The length of F x is
the same for all w, so that the largest cosine belongs to the nearest of the prototypes divided
by their lengths: ``|F x - F w / |F w||^2 = |F x|^2 - 2 (F x)'(F w) / |F w| + 1``. With a metric
for each prototype the length of F_k x differs, and the rule is not quadratic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from counterlvq.adapters.arithmetic import Arithmetic
from counterlvq.errors import InvalidInputError, NotSupportedError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats, finite_matrix
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.tolerances import EPSILON
from counterlvq.types import Meaning, Scores

__all__ = ["AngleArithmetic", "angle_model", "refuse_without_angle"]

# Roundings of a cosine beside two sums of d products and two roots.
_OTHER_ROUNDINGS = 32


def angle_model(
    prototypes: ArrayLike,
    labels: ArrayLike,
    omega: ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
    part: str = "prototype",
) -> PrototypeModel:
    """Build a model in which the prototype with the smallest angle to the input decides.

    Parameters
    ----------
    prototypes : array-like of shape (p, d)
        One row per prototype; their lengths do not matter.
    labels : array-like of shape (p,)
    omega : array-like of shape (d,) or (r, d), optional
        Factor of the metric in which angles are measured, the same for all prototypes.
    feature_names : sequence of str, optional
    part : str
        What one prototype is called in results.

    Returns
    -------
    PrototypeModel

    Examples
    --------
    >>> import counterlvq as clvq
    >>> model = clvq.angle_model([[9.0, 1.0], [1.0, 2.0]], ["healthy", "ill"])
    >>> model.predict([[1.0, 0.1], [100.0, 300.0]]).tolist()
    ['healthy', 'ill']
    """
    points = finite_matrix("prototypes", prototypes)
    if omega is not None and np.ndim(omega) > 2:
        raise NotSupportedError(
            f"omega has shape {np.shape(omega)}: angles in a metric for each prototype, which are "
            f"not quadratic in the input; expected one metric for all, of shape (d,) or (r, d)."
        )
    plain = PrototypeModel(points, labels, omega, feature_names)
    images = _images(plain, points)
    lengths = np.linalg.norm(images, axis=1)
    if not (lengths > 0).all():
        k = int(lengths.argmin())
        raise InvalidInputError(
            f"prototypes[{k}] is 0 in the metric of the model, and 0 has no angle to anything; "
            f"expected prototypes with a direction. Leave it out."
        )
    return PrototypeModel(
        points / lengths[:, None],
        labels,
        omega,
        feature_names,
        meaning=Meaning(part, Scores.ANGLE),
    )


def _images(model: PrototypeModel, rows: Floats) -> Floats:
    if model.omegas is None:
        return rows
    if model.diagonal is not None:
        return np.asarray(rows * model.diagonal)
    return np.asarray(rows @ model.shared_factor.T)


@final
@dataclass(frozen=True, eq=False)
class AngleArithmetic(Arithmetic):
    """The arithmetic of a `predict` that compares cosines, in double precision.

    A cosine is off by at most some roundings per feature, and a lead of our scores is twice the
    length of the row times a difference of cosines.
    """

    @cached_property
    def _slopes(self) -> Floats:
        """``2 F'F w`` of each prototype, (p, d)."""
        images = _images(self.model, self.model.prototypes)
        if self.model.omegas is None:
            return 2.0 * images
        if self.model.diagonal is not None:
            return np.asarray(2.0 * images * self.model.diagonal)
        return np.asarray(2.0 * images @ self.model.shared_factor)

    def scores(self, rows: Floats) -> Floats:
        """Twice the cosines times the length of the row, with the sign turned, (n, p)."""
        return np.asarray(-np.einsum("ij,kj->ik", rows, self._slopes))

    def errors(
        self, rows: Floats, slip: Floats | float = 0.0, reach: Floats | None = None
    ) -> Floats:
        """Bound the rounding of each score, up to what all scores of a row share, (n, p)."""
        farther = np.zeros(rows.shape) if reach is None else reach
        d = rows.shape[1]
        share = (4 * d + _OTHER_ROUNDINGS) * EPSILON
        slips = np.broadcast_to(slip, rows.shape)
        sizes = np.abs(rows) + farther
        lengths = self._lengths(sizes)
        # Both the length and the products of the prototypes, which are 1 long but for rounding.
        own = 2.0 * share / (1.0 - share) * lengths
        moved = 2.0 * self._lengths(slips) * 2.0
        # The prototypes of the model are 1 long but for rounding, and its scores see that.
        tiny = 4.0 * share
        return np.asarray(np.repeat((own + moved + tiny)[:, None], self.model.n_prototypes, axis=1))

    def _lengths(self, sizes: Floats) -> Floats:
        """Bound ``|F x|`` of rows whose entries are at most these, (n,)."""
        model = self.model
        if model.omegas is None:
            return np.asarray(np.sqrt(np.einsum("ij,ij->i", sizes, sizes)))
        if model.diagonal is not None:
            scaled = sizes * np.abs(model.diagonal)
            return np.asarray(np.sqrt(np.einsum("ij,ij->i", scaled, scaled)))
        images = np.einsum("ij,kj->ik", sizes, np.abs(model.shared_factor))
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", images, images)))

    def _blur_within(self, rows: Floats, reach: Floats, slip: Floats) -> Floats:
        limited = np.asarray(np.isfinite(reach).all(axis=1))
        reach = np.where(limited[:, None], reach, 0.0)
        errors = self.errors(rows, np.where(limited[:, None], slip, 0.0), reach)
        return np.asarray(np.where(limited, 4.0 * errors.max(axis=1), np.inf))


def refuse_without_angle(name: str, rows: Any) -> None:
    """Refuse training rows of zeros, which have no direction."""
    empty = np.flatnonzero(~np.asarray(rows).any(axis=1))
    if empty.size:
        raise NotSupportedError(
            f"row {int(empty[0])} of {name} is 0, and 0 has no angle to anything; expected rows "
            f"with a direction. Fit it without the row."
        )

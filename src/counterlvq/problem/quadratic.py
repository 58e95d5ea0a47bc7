"""A limit to a quadratic function of the counterfactual."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import (
    Floats,
    finite_matrix,
    finite_scalar,
    finite_vector,
    plain,
    read_only,
)
from counterlvq.numeric.quadratic_forms import QuadraticForm
from counterlvq.problem.constraints import Constraint, shown_call
from counterlvq.programs.conditions import (
    QuadraticCondition,
    StatedQuadratic,
)
from counterlvq.tables.features import FeatureKey, Features

__all__ = ["Quadratic"]


@final
@dataclass(frozen=True, init=False, eq=False)
class Quadratic(Constraint):
    """A convex quadratic condition, ``(y - center)' matrix (y - center) + linear'y <= value``.

    An ellipsoid around `center`, for example; or a ball of radius r with the identity as
    matrix and ``value=r**2``.

    Parameters
    ----------
    matrix : array-like of shape (k, k)
        Symmetric positive semidefinite. It is used as it is, to the last digit; one that is
        indefinite, be it by rounding alone, is refused with the ridge that would mend it.
    value : float
    center : array-like of shape (k,), optional
        The origin by default.
    linear : array-like of shape (k,), optional
        Zero by default.
    features : sequence of str or int, optional
        The k features that the condition is about; all of them by default.

    Examples
    --------
    >>> ball = Quadratic([[1, 0], [0, 1]], value=4, center=[1, 1], features=["a", "b"])
    >>> ball
    Quadratic([[1.0, 0.0], [0.0, 1.0]], 4, center=[1.0, 1.0], features=['a', 'b'])
    """

    form: QuadraticForm
    value: float
    center: Floats
    linear: Floats
    features: tuple[FeatureKey, ...] | None

    def __init__(
        self,
        matrix: ArrayLike,
        value: float,
        center: ArrayLike | None = None,
        linear: ArrayLike | None = None,
        features: Sequence[FeatureKey] | None = None,
    ) -> None:
        form = QuadraticForm.of_matrix("Quadratic: matrix", matrix)
        self._state(form, value, center, linear, features)

    @classmethod
    def from_factor(
        cls,
        factor: ArrayLike,
        value: float,
        center: ArrayLike | None = None,
        linear: ArrayLike | None = None,
        features: Sequence[FeatureKey] | None = None,
    ) -> Quadratic:
        """State ``|factor (y - center)|^2 + linear'y <= value``, convex however it is rounded.

        Parameters
        ----------
        factor : array-like of shape (r, k)
            Any matrix with one column per feature.
        value, center, linear, features
            As for a matrix.

        Examples
        --------
        >>> Quadratic.from_factor([[1, 1]], value=4)
        Quadratic.from_factor([[1.0, 1.0]], 4)
        """
        given = finite_matrix("Quadratic: factor", factor)
        made = cls.__new__(cls)
        form = QuadraticForm.of_factor("Quadratic: factor", given, given.shape[1])
        made._state(form, value, center, linear, features)
        return made

    def _state(
        self,
        form: QuadraticForm,
        value: float,
        center: ArrayLike | None,
        linear: ArrayLike | None,
        features: Sequence[FeatureKey] | None,
    ) -> None:
        width = form.width
        middle = np.zeros(width) if center is None else center
        slope = np.zeros(width) if linear is None else linear
        if features is not None and len(features) != width:
            raise InvalidInputError(
                f"Quadratic: features has {len(features)} entries; expected {width}, one per "
                f"column of {'matrix' if form.matrix is not None else 'factor'}."
            )
        finite_scalar("Quadratic: value", value)
        object.__setattr__(self, "form", form)
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "center", finite_vector("Quadratic: center", middle, width))
        object.__setattr__(self, "linear", finite_vector("Quadratic: linear", slope, width))
        object.__setattr__(self, "features", None if features is None else tuple(features))

    @property
    def matrix(self) -> Floats:
        """The matrix as it was given, (k, k), or the rounded square of the factor."""
        if self.form.matrix is None:
            return read_only(self.form.root.T @ self.form.root)
        return self.form.matrix

    def __repr__(self) -> str:
        extras: dict[str, object] = {}
        if self.center.any():
            extras["center"] = self.center.tolist()
        if self.linear.any():
            extras["linear"] = self.linear.tolist()
        if self.features is not None:
            extras["features"] = [plain(key) for key in self.features]
        if self.form.matrix is None:
            given = self.form.root.tolist()
            return shown_call("Quadratic.from_factor", given, self.value, **extras)
        return shown_call("Quadratic", self.matrix.tolist(), self.value, **extras)

    def conditions(self, features: Features) -> tuple[QuadraticCondition, ...]:
        """State the condition, and ``|G y - g|^2 + h'y <= c`` with ``G'G`` next to the matrix."""
        width = self.form.width
        if self.features is None and width != len(features):
            given = "factor" if self.form.matrix is None else "matrix"
            raise InvalidInputError(
                f"Quadratic: {given} has {width} columns; expected {len(features)}, one per "
                f"feature. Name the features it is about with features=[...]."
            )
        keys = range(width) if self.features is None else self.features
        at = [features.number(key, "Quadratic") for key in keys]
        for j in at:
            if at.count(j) > 1:
                raise InvalidInputError(
                    f"Quadratic: features names {features.names[j]!r} twice; expected each "
                    f"feature once."
                )
        stated = StatedQuadratic(
            self.form, np.array(at, dtype=np.intp), self.center, self.linear, float(self.value)
        )
        return (QuadraticCondition.of(stated, len(features)),)

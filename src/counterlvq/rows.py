"""Conditions on a counterfactual as plain numbers: the common tongue of cells and constraints.

`x` is the factual input and `y` the counterfactual. Nothing here depends on `x`: matrices
are fixed, and only right-hand sides will, once a factual input is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from counterlvq.arrays import Floats, read_only

__all__ = ["Conditional", "Implication", "LevelRule", "Quadric", "Rows"]


@final
@dataclass(frozen=True)
class Rows:
    """Linear conditions ``A y + R x <= v``, or ``== v``."""

    A: Floats  # (k, d)
    R: Floats  # (k, d)
    v: Floats  # (k,)
    equality: bool = False

    @classmethod
    def on_features(
        cls,
        positions: list[int],
        width: int,
        *,
        new: float,
        old: float,
        value: float,
        equality: bool = False,
    ) -> Rows:
        """Build ``new * y_j + old * x_j <= value`` for each listed column j."""
        pick = np.zeros((len(positions), width))
        pick[np.arange(len(positions)), positions] = 1.0
        values = np.full(len(positions), value)
        return cls(read_only(new * pick), read_only(old * pick), read_only(values), equality)

    def times(self, factor: float) -> Rows:
        """Multiply by a factor of at least 0; by 0 nothing is said any more."""
        return Rows(factor * self.A, factor * self.R, factor * self.v, self.equality)

    def holding(self, columns: NDArray[np.intp], y: Floats) -> Rows:
        """Put in the values that some columns have in `y`."""
        A = self.A.copy()
        A[:, columns] = 0.0
        return Rows(A, self.R, self.v - self.A[:, columns] @ y[columns], self.equality)

    def magnitude(self, y: Floats, x: Floats) -> Floats:
        """Size of the numbers that meet in each condition, the measure of its rounding."""
        size: Floats = np.abs(y) @ np.abs(self.A).T + np.abs(x) @ np.abs(self.R).T + np.abs(self.v)
        return size


@final
@dataclass(frozen=True)
class Quadric:
    """One convex quadratic condition ``|G y - g|^2 + h'y <= c``."""

    G: Floats  # (r, d)
    g: Floats  # (r,)
    h: Floats  # (d,)
    c: float
    g_blur: Floats | None = None  # (r,) bound on the rounding of g; None for none
    c_blur: float = 0.0  # and of c

    @property
    def g_open(self) -> Floats:
        """What rounding leaves open of `g`, (r,)."""
        return np.zeros(self.g.size) if self.g_blur is None else self.g_blur

    def excess(self, y: Floats) -> float:
        """How far the condition is exceeded; positive means broken."""
        lifted = self.G @ y - self.g
        return float(lifted @ lifted + self.h @ y - self.c)

    def magnitude(self, y: Floats) -> float:
        """Size of the numbers that meet in the condition: the measure of its rounding."""
        lifted = np.abs(self.G) @ np.abs(y) + np.abs(self.g)
        return float(lifted @ lifted + np.abs(self.h) @ np.abs(y) + abs(self.c))

    def gradient(self, y: Floats) -> Floats:
        """Slope of the left-hand side at `y`, (d,)."""
        slope: Floats = 2.0 * self.G.T @ (self.G @ y - self.g) + self.h
        return slope

    def moved(self, x: Floats) -> Quadric:
        """Write the same condition for the change ``y - x``."""
        return Quadric(self.G, self.g - self.G @ x, self.h, float(self.c - self.h @ x))


@final
@dataclass(frozen=True)
class LevelRule:
    """A column of levels has one of the listed ones, by their positions."""

    column: int
    codes: frozenset[int]


@final
@dataclass(frozen=True)
class Implication:
    """Where a column has one of some levels, a condition holds."""

    when: LevelRule
    then: Rows | LevelRule


@final
@dataclass(frozen=True)
class Conditional:
    """Inequalities that hold where a feature has one of some levels.

    It has, where all of the coordinates in `absent` are 0 or one of those in `present` is 1.
    """

    rows: Rows
    absent: NDArray[np.intp] | None
    present: NDArray[np.intp]

    def applies(self, low: Floats, high: Floats) -> bool:
        """Whether the inequalities have to hold at all points between two corners of a box."""
        if (low[self.present] > 0.5).any():
            return True
        return self.absent is not None and bool((high[self.absent] < 0.5).all())

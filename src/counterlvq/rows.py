"""Conditions on a counterfactual as plain numbers: the common tongue of cells and constraints.

`x` is the factual input and `y` the counterfactual. Nothing here depends on `x`: matrices
are fixed, and only right-hand sides will, once a factual input is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from counterlvq.arrays import Floats, read_only

__all__ = ["Quadric", "Rows"]


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

"""The half-spaces of a cell, straight from the rule of the nearest prototype.

With ``M = omega' omega``, prototype i is at least as near to y as rival k by a margin if

    2 (w_k - w_i)' M y <= w_k' M w_k - w_i' M w_i - margin.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import counterlvq as clvq

Array = NDArray[np.float64]

# An answer on the boundary can go either way in `predict`. All baselines ask for this share of
# the lead that has to be gained, and for a little more than the tolerance of their solvers.
MARGIN_SHARE = 1e-8
LEAST_MARGIN = 1e-11


@dataclass(frozen=True, eq=False)
class Cell:
    """Where one target prototype wins: ``left @ y <= right``."""

    prototype: int
    left: Array  # (m, d)
    right: Array  # (m,)

    def leads(self, X: Array) -> Array:
        """By how much the prototype is nearer than each rival, (n, m)."""
        return self.right - X @ self.left.T

    def tightened(self, X: Array) -> Array:
        """Right-hand sides in the change ``y - x``, less the margin, (n, m)."""
        leads = self.leads(X)
        behind = np.maximum(-leads.min(axis=1, keepdims=True), 0.0)
        return leads - np.maximum(MARGIN_SHARE * behind, LEAST_MARGIN)


def cells_of(model: clvq.PrototypeModel, target: Any) -> Iterator[Cell]:
    """One cell for each prototype with the target's label."""
    W, M = model.prototypes, model.shared_factor.T @ model.shared_factor
    lengths = np.einsum("ij,jk,ik->i", W, M, W)
    rivals = model.labels != target
    for i in np.flatnonzero(~rivals):
        yield Cell(int(i), 2.0 * (W[rivals] - W[i]) @ M, lengths[rivals] - lengths[i])

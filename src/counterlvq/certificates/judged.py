"""What is said of points once they are judged."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats

__all__ = ["Accepted", "Judged", "Verdict", "gap_of"]


class Verdict(NamedTuple):
    """What the user's model says of points, one entry each."""

    prototype: NDArray[np.intp]  # the nearest one of the label that it gives
    # Whether it says so in any company: by its lead, or as far as it was asked.
    assured: NDArray[np.bool_]
    steady: NDArray[np.bool_]


class Judged(NamedTuple):
    """What is to be said of finished points, one entry each."""

    good: NDArray[np.bool_]  # finite, and meets every constraint
    cost: Floats
    gap: Floats  # share of the cost that its bound does not prove
    resolution: Floats  # cost that the last digits of the point itself are worth

    def closed(self, bound: Floats | float, tolerance: float) -> NDArray[np.bool_]:
        """Which are proved to a share of their cost, or to what their digits can tell."""
        with np.errstate(invalid="ignore"):  # of rows without an answer both are infinite
            return np.asarray((self.gap <= tolerance) | (self.cost - bound <= self.resolution))


def gap_of(cost: float, bound: float) -> float:
    """Share of a cost that is not proved; as `acceptance_kernel.relative_gap`.

    Examples
    --------
    >>> gap_of(4.0, 3.0), gap_of(0.0, 0.0), gap_of(4.0, float("nan"))
    (0.25, 0.0, inf)
    """
    unproved = cost - bound
    if unproved <= 0.0:
        return 0.0
    share = unproved / cost if cost else np.inf
    return share if share >= 0.0 else np.inf


class Accepted(NamedTuple):
    """A point that is an answer, and what was found out when it was judged."""

    y: Floats  # (d,)
    cost: float
    resolution: float
    prototype: int  # the nearest one
    is_confirmed: bool  # whether no other `predict` is left to be asked

    def gap(self, bound: float) -> float:
        """Share of the cost that a bound does not prove."""
        return gap_of(self.cost, bound)

    def is_closed(self, bound: float, tolerance: float) -> bool:
        """Whether a bound proves it to a share of its cost, or to what its digits can tell."""
        return self.gap(bound) <= tolerance or self.cost - bound <= self.resolution

"""What the columns have become on the way through a pipeline, in terms of the user's columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.arrays import Floats

__all__ = ["Contributions", "Flow"]


class Contributions(NamedTuple):
    """What each level of one column adds to the columns on the way."""

    levels: tuple[Any, ...]
    added: Floats  # (levels, q)

    def plus(self, other: Contributions) -> Contributions:
        """Add up what two encoders make of one column, for the levels that both know."""
        theirs = {level: k for k, level in enumerate(other.levels)}
        both = [k for k, level in enumerate(self.levels) if level in theirs]
        levels = tuple(self.levels[k] for k in both)
        at = [theirs[level] for level in levels]
        return Contributions(levels, self.added[both] + other.added[at])


@final
@dataclass(frozen=True, eq=False)
class Flow:
    """q columns on the way, each ``linear x + offset`` plus what levels contribute."""

    linear: Floats  # (q, d), on the d columns of the user's table
    offset: Floats  # (q,)
    encoded: Mapping[int, Contributions]  # by column of the user's table
    untouched: tuple[int, ...]  # the column of the user's table that each still equals, or -1

    @classmethod
    def start(cls, width: int) -> Flow:
        """Begin with the user's table itself."""
        return cls(np.eye(width), np.zeros(width), {}, tuple(range(width)))

    @property
    def width(self) -> int:
        """How many columns there are on the way."""
        return len(self.untouched)

    def taking(self, at: NDArray[Any] | Sequence[int]) -> Flow:
        """Keep the listed columns only, in that order."""
        kept = np.asarray(at, dtype=np.intp)
        encoded = {j: Contributions(c.levels, c.added[:, kept]) for j, c in self.encoded.items()}
        untouched = tuple(self.untouched[k] for k in kept)
        return Flow(self.linear[kept], self.offset[kept], encoded, untouched)

    def scaled(self, factor: NDArray[Any] | float) -> Flow:
        """Multiply each column by its factor."""
        factors = np.broadcast_to(np.asarray(factor, dtype=np.float64), (self.width,))
        encoded = {j: Contributions(c.levels, c.added * factors) for j, c in self.encoded.items()}
        return Flow(
            factors[:, None] * self.linear, factors * self.offset, encoded, (-1,) * self.width
        )

    def shifted(self, by: NDArray[Any]) -> Flow:
        """Add a number to each column."""
        return Flow(self.linear, self.offset + by, self.encoded, (-1,) * self.width)

    def mixed(self, matrix: NDArray[Any]) -> Flow:
        """Replace the columns by linear combinations of them, one per row of `matrix`."""
        encoded = {j: Contributions(c.levels, c.added @ matrix.T) for j, c in self.encoded.items()}
        untouched = (-1,) * matrix.shape[0]
        return Flow(matrix @ self.linear, matrix @ self.offset, encoded, untouched)

    def constant(self, values: NDArray[Any]) -> Flow:
        """Make columns that depend on nothing."""
        count = len(values)
        return Flow(np.zeros((count, self.linear.shape[1])), values, {}, (-1,) * count)

    def with_levels(self, column: int, levels: tuple[Any, ...], added: Floats) -> Flow:
        """Make columns that depend on the levels of one column of the user's table alone."""
        blank = self.constant(np.zeros(added.shape[1]))
        return Flow(
            blank.linear, blank.offset, {column: Contributions(levels, added)}, blank.untouched
        )

    def beside(self, others: Sequence[Flow]) -> Flow:
        """Put columns side by side, these first."""
        flows = [self, *others]
        width = sum(flow.width for flow in flows)
        encoded: dict[int, Contributions] = {}
        start = 0
        for flow in flows:
            for j, part in flow.encoded.items():
                added = np.zeros((len(part.levels), width))
                added[:, start : start + flow.width] = part.added
                wide = Contributions(part.levels, added)
                encoded[j] = encoded[j].plus(wide) if j in encoded else wide
            start += flow.width
        return Flow(
            np.vstack([flow.linear for flow in flows]),
            np.concatenate([flow.offset for flow in flows]),
            encoded,
            tuple(column for flow in flows for column in flow.untouched),
        )

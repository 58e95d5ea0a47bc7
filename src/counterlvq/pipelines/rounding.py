"""How far rounding in the steps of a pipeline can move the row that its model sees.

The steps are followed once more, as for the map itself, with all numbers replaced by their
absolute values. What comes out bounds, for every rounding on the way, the size of the number
that was rounded times all that it is multiplied with afterwards; so the row that arrives is off
by at most gamma_N of it, N the number of roundings on the longest way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.arrays import Floats
from counterlvq.pipelines.flow import Contributions, Flow
from counterlvq.pipelines.steps import passed

__all__ = ["Slip", "slip_of"]

_UNIT = 2.0**-53
# Roundings when rows are read, encoded, shifted and scaled, that no step is counted for.
_OTHER_ROUNDINGS = 4


@final
@dataclass(frozen=True, eq=False)
class Slip:
    """``gamma (linear |x| + offset)``: how far each column that a model sees may be off."""

    linear: Floats  # (k, d), on all columns of the user's table
    offset: Floats  # (k,)
    gamma: float

    def of(self, rows: Floats, at: NDArray[np.intp]) -> Floats:
        """Bound the error of the row that the model sees, (n, k).

        `rows` hold the columns of the table at the listed positions, levels by their codes:
        those are accounted for in `offset`.
        """
        return np.asarray(self.gamma * (np.abs(rows) @ self.linear[:, at].T + self.offset))


def slip_of(steps: Sequence[Any], width: int) -> Slip:
    """Follow the sizes of `width` columns through fitted steps."""
    sizes = _Sizes(Flow.start(width), _OTHER_ROUNDINGS)
    for step in steps:
        sizes = cast(_Sizes, passed(step, cast(Flow, sizes)))
    flow = sizes.flow
    most = [part.added.max(axis=0) for part in flow.encoded.values() if len(part.levels)]
    offset = flow.offset + sum(most, start=np.zeros(flow.width))
    roundings = sizes.roundings * _UNIT
    # Some columns of one-hot codes are numbers as well; their slope is in `linear`.
    return Slip(flow.linear, offset, roundings / (1.0 - roundings))


@final
@dataclass(frozen=True, eq=False)
class _Sizes:
    """A `Flow` of absolute values, and how many roundings lie behind it.

    It has the methods by which steps change a flow.
    """

    flow: Flow
    roundings: int

    @property
    def width(self) -> int:
        return self.flow.width

    @property
    def untouched(self) -> tuple[int, ...]:
        return self.flow.untouched

    @property
    def encoded(self) -> Mapping[int, Contributions]:
        return self.flow.encoded

    def taking(self, at: NDArray[Any] | Sequence[int]) -> _Sizes:
        return replace(self, flow=self.flow.taking(at))

    def scaled(self, factor: NDArray[Any] | float) -> _Sizes:
        # One rounding of the product, and one of the factor where it is 1 over something.
        return self._after(lambda flow: flow.scaled(np.abs(factor)), 2)

    def shifted(self, by: NDArray[Any]) -> _Sizes:
        return self._after(lambda flow: flow.shifted(np.abs(by)), 1)

    def mixed(self, matrix: NDArray[Any]) -> _Sizes:
        # The image of a mean may be taken off afterwards: as many roundings, and one more.
        return self._after(lambda flow: flow.mixed(np.abs(matrix)), matrix.shape[1] + 2)

    def constant(self, values: NDArray[Any]) -> _Sizes:
        return replace(self, flow=self.flow.constant(np.abs(values)))

    def with_levels(self, column: int, levels: tuple[Any, ...], added: Floats) -> _Sizes:
        return replace(self, flow=self.flow.with_levels(column, levels, np.abs(added)))

    def beside(self, others: Sequence[_Sizes]) -> _Sizes:
        most = max([self.roundings, *(other.roundings for other in others)])
        return _Sizes(self.flow.beside([other.flow for other in others]), most)

    def _after(self, change: Callable[[Flow], Flow], roundings: int) -> _Sizes:
        return _Sizes(change(self.flow), self.roundings + roundings)

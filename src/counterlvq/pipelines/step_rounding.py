"""How far rounding in the steps of a pipeline can move the row that its model sees.

The steps are followed once more, as for the map itself, with all numbers replaced by their
absolute values. What comes out bounds, for every rounding on the way, the size of the number
that was rounded times all that it is multiplied with afterwards; so the row that arrives is off
by at most gamma_N of it, N the number of roundings on the longest way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import EPSILON
from counterlvq.pipelines.flow import Contributions, Flow
from counterlvq.pipelines.reading import split
from counterlvq.pipelines.steps import passed
from counterlvq.pipelines.table_map import NumericPart, TableMap
from counterlvq.tables.monotone import Link

__all__ = ["Slip", "slip_of", "slip_of_map"]

# Roundings when rows are read, encoded, shifted and scaled, that no step is counted for.
_OTHER_ROUNDINGS = 4


@final
@dataclass(frozen=True, eq=False)
class Slip:
    """``gamma (linear |x| + offset)``: how far each column that a model sees may be off.

    `linear` takes the columns of numbers that the model sees; whatever levels can contribute
    is part of `offset`.
    """

    numbers: NDArray[np.intp]  # (d,) positions among the columns that the model sees
    linear: Floats  # (k, d), or (d,) where each column bears on one alone, in order
    offset: Floats  # (k,)
    gamma: float

    def of(self, rows: Floats) -> Floats:
        """Bound the error of the row that the model sees, (n, k), for rows of the table."""
        given = np.abs(rows[:, self.numbers])
        unlimited = np.isinf(given)
        if self.linear.ndim == 1 and not unlimited.any():
            return np.asarray(self.gamma * (given * self.linear + self.offset))
        if self.linear.ndim == 1:
            sizes = np.where(unlimited, 0.0, given) * self.linear
            sizes = np.where(unlimited & (self.linear > 0), np.inf, sizes)
            return np.asarray(self.gamma * (sizes + self.offset))
        # Not by a product of matrices, which rounds differently for one row and for many.
        sizes = np.einsum("ij,kj->ik", np.where(unlimited, 0.0, given), self.linear)
        # A column that no step looks at may be anything.
        sizes = np.where(unlimited @ (self.linear.T > 0), np.inf, sizes)
        return np.asarray(self.gamma * (sizes + self.offset))


def slip_of(pipeline: Any, table_map: TableMap) -> Slip:
    """Follow the sizes of the columns of a table through the steps of a pipeline.

    `table_map` is the map that was read from it, with what is known of its columns.
    """
    steps, _ = split(pipeline)
    sizes = _Sizes(Flow.start(len(table_map.columns)), _OTHER_ROUNDINGS)
    for step in steps:
        sizes = cast(_Sizes, passed(step, cast(Flow, sizes)))
    gamma = _gamma(sizes.roundings)
    if sizes.flow.is_diagonal and table_map.diagonal is not None:
        flow = sizes.flow
        offset = np.abs(flow.offset) + flow.linear * np.abs(flow.base)
        return Slip(np.arange(flow.width), flow.linear, offset, gamma)
    flow = sizes.flow.expanded()
    # Centring moves the base: what it takes off is as large as the base.
    offset = np.abs(flow.offset) + flow.linear @ np.abs(flow.base)
    for part in flow.encoded.values():
        if len(part.levels):
            offset += part.added.max(axis=0)
    numbers, columns = [], []
    place = {name: at for at, name in enumerate(table_map.columns)}
    for j, seen in enumerate(table_map.parts):
        column = place[seen.column]
        if isinstance(seen, NumericPart):
            numbers.append(j)
            columns.append(column)
        elif flow.linear[:, column].any():
            # Levels that the steps take as numbers.
            offset += flow.linear[:, column] * np.abs(np.array(seen.levels, dtype=float)).max()
    at = np.array(numbers, dtype=np.intp)
    return Slip(at, flow.linear[:, columns], offset, gamma)


def slip_of_map(table_map: TableMap) -> Slip:
    """Bound the error of `TableMap.image` itself: a sum of one term per column."""
    numbers, columns = [], [np.zeros((0, len(table_map.offset)))]
    offset = np.abs(table_map.offset)
    along = table_map.diagonal
    if along is not None:
        # A difference, a product and a sum, whatever the number of columns.
        offset = offset + np.abs(along.slopes * along.base)
        every = np.arange(len(along.slopes))
        more = 8 if any(link is not None for link in table_map.links) else 0
        return Slip(every, np.abs(along.slopes), offset, _gamma(1 + _OTHER_ROUNDINGS + more))
    for j, part in enumerate(table_map.parts):
        if isinstance(part, NumericPart):
            numbers.append(j)
            columns.append(np.abs(part.weights)[None, :])
            offset = offset + np.abs(part.weights * part.base)
        else:
            offset = offset + np.abs(part.weights).max(axis=0)
    at, roundings = np.array(numbers, dtype=np.intp), len(table_map.parts) + _OTHER_ROUNDINGS
    if any(link is not None for link in table_map.links):
        roundings += 8
    return Slip(at, np.concatenate(columns).T, offset, _gamma(roundings))


def _gamma(roundings: int) -> float:
    return roundings * EPSILON / (1.0 - roundings * EPSILON)


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

    def divided(self, by: NDArray[Any]) -> _Sizes:
        return self._after(lambda flow: flow.divided(np.abs(by)), 2)

    def shifted(self, by: NDArray[Any]) -> _Sizes:
        return self._after(lambda flow: flow.shifted(np.abs(by)), 1)

    def linked(self, links: Sequence[Link | None], what: str) -> _Sizes:
        # Rounding of the function and of what undoes it, in units of `Link.pull`.
        return self._after(lambda flow: flow.linked(links, what), 8)

    def mixed(self, matrix: NDArray[Any]) -> _Sizes:
        # The image of a mean may be taken off afterwards: as many roundings, and one more.
        return self._after(lambda flow: flow.mixed(np.abs(matrix)), matrix.shape[1] + 2)

    def constant(self, values: NDArray[Any]) -> _Sizes:
        return replace(self, flow=self.flow.constant(np.abs(values)))

    def filled(self, values: Sequence[Any], marked: Collection[int]) -> _Sizes:
        return replace(self, flow=self.flow.filled(values, marked))

    def with_levels(self, column: int, levels: tuple[Any, ...], added: Floats) -> _Sizes:
        return replace(self, flow=self.flow.with_levels(column, levels, np.abs(added)))

    def beside(self, others: Sequence[_Sizes]) -> _Sizes:
        most = max([self.roundings, *(other.roundings for other in others)])
        return _Sizes(self.flow.beside([other.flow for other in others]), most)

    def _after(self, change: Callable[[Flow], Flow], roundings: int) -> _Sizes:
        return _Sizes(change(self.flow), self.roundings + roundings)

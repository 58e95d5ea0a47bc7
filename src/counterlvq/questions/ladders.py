"""The values that a column may have where not every number will do, one step after the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import floor, inf, isfinite
from typing import final

import numpy as np

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import NEXT_TO_STEP
from counterlvq.programs.template import ProgramTemplate
from counterlvq.questions.exact_rows import listed_values

__all__ = ["Ladder", "ladder_at", "ladders_of"]


@final
@dataclass(frozen=True)
class Ladder:
    """Values of a grid, or of a list, counted from an answer.

    Examples
    --------
    >>> ladder = Ladder(0.7, number=7, step=1, parts=10)
    >>> ladder.value(-4), ladder.steps_to(1.05), ladder.steps_to(0.0)
    (0.3, 3, -7)
    >>> Ladder(3.0, listed=(1.0, 3.0, 7.5)).steps_to(9.0)
    1
    """

    y: float
    number: int = 0
    step: int = 0
    parts: int = 1
    origin: float = 0.0
    listed: tuple[float, ...] = ()  # sorted; all values, where they are listed

    @property
    def apart(self) -> float:
        """Distance of neighbours; 0 where the values are listed."""
        return self.step / self.parts

    @property
    def farthest(self) -> tuple[float, float]:
        """How far up and down the values lie."""
        return (self.listed[-1] - self.y, self.y - self.listed[0]) if self.listed else (inf, inf)

    def value(self, count: int) -> float | None:
        """Return the value so many steps above the answer; None where there is none."""
        if count == 0:
            return self.y
        if not self.listed:
            return float(self.origin + (self.number + count) * self.step / self.parts)
        at = self.listed.index(self.y) + count
        return self.listed[at] if 0 <= at < len(self.listed) else None

    def end(self, count: int) -> float:
        """Return the value so many steps above the answer, or the last one."""
        found = self.value(count)
        return self.listed[-1 if count > 0 else 0] if found is None else found

    def steps_to(self, end: float) -> int:
        """How many steps lead towards an end without passing it; the end is finite."""
        way = 1 if end >= self.y else -1
        if self.listed:
            return way * sum(
                0 < way * (value - self.y) <= way * (end - self.y) for value in self.listed
            )
        count = floor(abs(end - self.y) / self.apart + NEXT_TO_STEP)
        while count and way * (self.end(way * count) - end) > 0:
            count -= 1
        return way * count

    def within(self, low: float, high: float) -> list[float]:
        """Those of the listed values that lie in a range."""
        return [value for value in self.listed if low <= value <= high]


def ladders_of(
    template: ProgramTemplate, columns: Iterable[int], x: Floats, y: Floats
) -> dict[int, Ladder]:
    """Find the columns among some in which not every number will do, with what will."""
    found = ((int(j), ladder_at(template, int(j), x, y)) for j in columns)
    return {j: ladder for j, ladder in found if ladder is not None}


def ladder_at(template: ProgramTemplate, j: int, x: Floats, y: Floats) -> Ladder | None:
    """Say which values one column may have; None where any number will do."""
    grid, here = template.grid, float(y[j])
    listed = listed_values(template, j)
    if listed is not None:
        points = np.tile(y, (len(listed), 1))
        points[:, j] = listed
        allowed = np.array(listed)[grid.on_lattice(points, np.broadcast_to(x, points.shape))]
        # The answer may lie next to a listed value, by a last digit.
        near = min(allowed.tolist(), key=lambda value: abs(value - here), default=here)
        return Ladder(here, listed=tuple(sorted({*allowed.tolist(), here} - ({near} - {here}))))
    if not grid.step[j] > 0:
        return None
    step, parts = int(grid.step[j]), int(grid.parts[j])
    is_own = grid.from_input is not None and bool(grid.from_input[j])
    origin = float(x[j]) if is_own else 0.0
    number = (here - origin) * parts / step
    return Ladder(here, round(number), step, parts, origin) if isfinite(number) else None

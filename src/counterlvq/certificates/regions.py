"""What the user's own `predict` may overlook anywhere in a region, found once for all its rows.

Rounding is bounded row by row, by dozens of small steps. Where the bound for a whole region is
next to nothing beside the lead that decides about a row, it does as well: it holds for every row
of the region, and is looked up. Regions are boxes around the prototypes, each twice as wide as the
one before, and widened by how far changes may go. They depend on a row alone, so that it gets the
same numbers in any company.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.tolerances import NEGLIGIBLE_LEAD, SAFE, UNIT
from counterlvq.programs.proof_data import ProofData, limits_at

__all__ = ["Region", "Regions"]

# Regions up to 2^63 times as wide as the prototypes lie, and as often widened.
_MOST_WIDTHS = 64
# A region is widened by at least so many times itself along the column where that is least, so that
# changes that go less far have it too.
_LEAST_WIDENED = 4.0
# Columns of one row up to which lists are quicker than arrays, and give the same numbers.
_FEW_COLUMNS = 64
# Costs whose reach is compared with regions.
_COSTS = np.exp2(np.arange(-256, 256) / 4.0)


class Region(NamedTuple):
    """What holds at every row of a region; infinite where nothing is known."""

    certain: float  # lead, computed in doubles, with which a label is certain
    blur: float  # lead of a rival that may be overlooked
    key: int = -1

    def is_negligible(self, lead: float) -> bool:
        """Whether all that is next to nothing beside the lead that decides about a row."""
        return max(self.certain, self.blur) <= NEGLIGIBLE_LEAD * lead


_UNKNOWN = Region(math.inf, math.inf)


@final
@dataclass(frozen=True, eq=False)
class Regions:
    """Nested boxes, and what was found out about those in which rows have lain."""

    prototypes: Floats  # (p, d)
    unit: Floats  # (d,) in which proportion changes reach along the columns
    overlooked: Callable[[Floats, Floats], Region]  # around a row (1, d), within a reach (1, d)
    _known: dict[int, Region] = field(init=False, default_factory=dict)
    _covered: dict[int, float] = field(init=False, default_factory=dict)

    def at(self, rows: Floats, reach: Floats | None = None) -> tuple[Floats, Floats]:
        """Certain leads and blurs of the regions that hold rows and what is in reach, (n,) each."""
        if len(rows) == 1:
            found = self.of_row(rows, reach)
            return np.array([found.certain]), np.array([found.blur])
        keys, where = np.unique(self._keys(rows, reach), return_inverse=True)
        each = np.array([self._region(key)[:2] for key in keys.tolist()]).reshape(len(keys), 2)
        return each[where, 0], each[where, 1]

    def of_row(self, row: Floats, reach: Floats | None = None) -> Region:
        """As `at`, for one row (1, d)."""
        return self._region(self._keys(row, reach)[0])

    def covered(self, region: Region, stated: ProofData) -> float:
        """Cost up to which changes of a row stay in the region that it has without any.

        `stated` says how far changes of a cost can go.
        """
        found = self._covered.get(region.key)
        if found is None:
            # Reaches grow with the cost: what the last of these costs reaches, the others do too.
            width = math.ldexp(1.0, region.key // _MOST_WIDTHS)
            is_inside = self._widths(limits_at(stated, _COSTS)) < width
            count = int(np.argmin(np.append(is_inside, False)))
            found = float(_COSTS[count - 1]) if region.key >= 0 and count else 0.0
            self._covered[region.key] = found
        return found

    def _widths(self, reach: Floats) -> Floats:
        """How far to widen a region for a reach, in units of the least step, (n,)."""
        return np.asarray(
            SAFE * (reach / self.unit).max(axis=1) / (self._boxes[2] * _LEAST_WIDENED)
        )

    def _keys(self, rows: Floats, reach: Floats | None) -> list[int] | NDArray[np.int64]:
        """Find the number of the least region that holds each row and its reach; -1 for none."""
        if reach is None and rows.size == rows.shape[1] <= _FEW_COLUMNS:
            farthest = 0.0
            for x, c, h in zip(rows[0].tolist(), *self._listed, strict=True):
                away = abs(x - c) / h
                farthest = max(farthest, away)
            return [_key(SAFE * farthest, 0.0)]
        center, half, _ = self._boxes
        far = SAFE * (np.abs(rows - center) / half).max(axis=1)
        wide = np.zeros(len(rows)) if reach is None else self._widths(reach)
        if len(rows) == 1:
            return [_key(float(far[0]), float(wide[0]))]
        width = np.maximum(np.frexp(far)[1], 0).astype(np.int64)
        more = np.maximum(np.frexp(np.ldexp(wide, -width))[1], 0)
        is_known = (far < np.inf) & (wide < np.inf) & (np.maximum(width, more) < _MOST_WIDTHS)
        return np.where(is_known, width * _MOST_WIDTHS + more, -1)

    def _region(self, key: int) -> Region:
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _UNKNOWN if key < 0 else self._found(key)
        return known

    def _found(self, key: int) -> Region:
        center, half, units = self._boxes
        width, more = divmod(key, _MOST_WIDTHS)
        farther = self.unit * math.ldexp(units * _LEAST_WIDENED, width + more)
        reach = (half * math.ldexp(1.0, width) + farther) * (1.0 + 8.0 * UNIT)
        found = self.overlooked(center[None, :], reach[None, :])
        return found._replace(key=key) if max(found[:2]) < math.inf else _UNKNOWN

    @cached_property
    def _boxes(self) -> tuple[Floats, Floats, float]:
        """Centre and half the width of the innermost box, and how many units fit into that."""
        low, high = self.prototypes.min(axis=0), self.prototypes.max(axis=0)
        center, half = 0.5 * (low + high), 0.5 * (high - low)
        # Where all prototypes have one value, any width will do.
        half = np.where(half > 0, half, np.maximum(np.abs(center), 1.0))
        return center, half, float((half / self.unit).min())

    @cached_property
    def _listed(self) -> tuple[list[float], list[float]]:
        """The first two of `_boxes` as lists."""
        center, half, _ = self._boxes
        return center.tolist(), half.tolist()


def _key(far: float, wide: float) -> int:
    """Find the number of a region, as `Regions._keys` does, for one row."""
    if not (far < math.inf and wide < math.inf):
        return -1
    width = max(math.frexp(far)[1], 0)
    more = max(math.frexp(math.ldexp(wide, -width))[1], 0)
    return width * _MOST_WIDTHS + more if max(width, more) < _MOST_WIDTHS else -1

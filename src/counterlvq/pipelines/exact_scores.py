"""Scores of a model behind a map, in rational numbers: what decides where rounding could."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.lazy import cached_property
from counterlvq.pipelines.table_map import NumericPart, TableMap

__all__ = ["ExactScores"]

Exact = NDArray[np.object_]  # of fractions


@final
@dataclass(frozen=True, eq=False)
class ExactScores:
    """Differences of scores of a model with a shared metric, as numbers and map were read.

    With ``G = F w`` of each prototype, the lead of i over k at the image z of a row is
    ``(G_i - G_k)' (2 F z - G_i - G_k) + o_k - o_i``.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from counterlvq import PrototypeModel
    >>> from counterlvq.pipelines import read_transformer
    >>> table_map = read_transformer(StandardScaler().fit([[12.0], [28.0]]))
    >>> scores = ExactScores(table_map, PrototypeModel([[-1.0], [1.0]], ["no", "yes"]))
    >>> scores.lead(np.array([24.0]), 1, 0), scores.slopes(1, 0)
    (Fraction(2, 1), [Fraction(1, 2)])
    """

    table_map: TableMap
    model: PrototypeModel  # in the space that the map leads to

    def lead(self, row: Floats, i: int, k: int) -> Fraction:
        """By how much prototype i is nearer than k at a row of numbers and positions of levels."""
        z = self._seen(self._image(row))
        own, other = self._anchors[i], self._anchors[k]
        found = ((own - other) * (z + z - own - other)).sum()
        offsets = self.model.offsets
        if offsets is not None:
            found += Fraction(float(offsets[k])) - Fraction(float(offsets[i]))
        return Fraction(found)

    def slopes(self, i: int, k: int) -> list[Fraction]:
        """Slopes of that lead in the columns of numbers, whatever the levels."""
        way = self._anchors[i] - self._anchors[k]
        return [2 * Fraction((way * column).sum()) for column in self._columns]

    def _image(self, row: Floats) -> Exact:
        z = _exact(self.table_map.offset)
        for part, value in zip(self._parts, row.tolist(), strict=True):
            if isinstance(part, NumericPart):
                step = Fraction(value) - Fraction(float(part.base))
                z = z + step * _exact(part.weights)
            else:
                z = z + _exact(part.weights[int(value)])
        return z

    def _seen(self, z: Exact) -> Exact:
        """Take a point through the factor of the metric."""
        factor = self._factor
        if factor is None:
            return z
        return factor * z if factor.ndim == 1 else np.asarray(factor @ z)

    @cached_property
    def _factor(self) -> Exact | None:
        omegas = self.model.omegas
        assert not isinstance(omegas, tuple)  # a shared metric
        return None if omegas is None else _exact(omegas)

    @cached_property
    def _anchors(self) -> list[Exact]:
        return [self._seen(_exact(point)) for point in self.model.prototypes]

    @cached_property
    def _columns(self) -> list[Exact]:
        """What a unit of each column of numbers adds to what the metric sees."""
        numbers = (part for part in self._parts if isinstance(part, NumericPart))
        return [self._seen(_exact(part.weights)) for part in numbers]

    @cached_property
    def _parts(self) -> list[Any]:
        width = len(self.table_map.offset)
        return [
            part.whole(width) if isinstance(part, NumericPart) else part
            for part in self.table_map.parts
        ]


def _exact(values: Floats) -> Exact:
    out = np.empty(values.shape, dtype=object)
    out.ravel()[:] = [Fraction(value) for value in values.ravel().tolist()]
    return out

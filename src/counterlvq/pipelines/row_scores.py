"""Scores of a single row behind a map, in the fewest steps that give the same numbers.

A row that is asked for alone spends its time between steps of NumPy rather than in them. These are
those of `TableMap.image` and `PrototypeMetric.distances_of_checked`, one after the other and
in their order, so that every number is the same to the last bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats
from counterlvq.pipelines.table_map import TableMap

__all__ = ["RowScores", "row_scores"]

# Entries of all prototypes up to which a step of NumPy takes no longer than what is around it.
_FEW_ENTRIES = 1 << 12


class RowScores(NamedTuple):
    """What the scores of a row are computed from, where columns are scaled one by one."""

    base: Floats  # (d,)
    slopes: Floats  # (d,)
    offset: Floats  # (d,)
    center: Floats  # (d,)
    factor: Floats  # (d, r) the shared factor, transposed
    anchors: Floats  # (p, r)

    def of(self, row: Floats) -> list[float]:
        """Scores of a row (1, d) of the user's columns, one for each prototype."""
        base, slopes, offset, center, factor, anchors = self
        with np.errstate(over="ignore", invalid="ignore"):  # then a score is infinite, or NaN
            image = row - base
            image *= slopes
            image += offset
            image -= center
            away = image @ factor - anchors
            away *= away
            # A running sum adds up in order, where a sum would not.
            scores: list[float] = away.cumsum(axis=1)[:, -1].tolist()
        return scores


def row_scores(model: PrototypeModel, table_map: TableMap | None) -> RowScores | None:
    """Prepare that for a shared matrix behind scaled columns; None for anything else."""
    factor = model.omegas
    if table_map is None or table_map.diagonal is None or table_map.has_links:
        return None
    if not isinstance(factor, np.ndarray) or factor.ndim != 2:
        return None
    if model.anchors.size > _FEW_ENTRIES:
        return None
    along = table_map.diagonal
    return RowScores(
        along.base, along.slopes, table_map.offset, model.center, model.shared_factor.T,
        model.anchors,
    )  # fmt: skip

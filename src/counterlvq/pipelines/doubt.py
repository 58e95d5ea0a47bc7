"""What rounding in the user's own `predict` leaves open, at rows of the user's columns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from counterlvq.adapters import Arithmetic
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.row_leads import RowLeads
from counterlvq.pipelines.row_scores import RowScores, row_scores
from counterlvq.pipelines.step_rounding import Slip
from counterlvq.pipelines.table_map import TableMap
from counterlvq.problem.coordinates import Coordinates

__all__ = ["Doubt", "DoubtAt"]

# Scores of one row up to which a list is quicker than an array.
_FEW_SCORES = 64


@final
@dataclass(frozen=True, eq=False)
class Doubt:
    """What rounding in the user's own `predict` leaves open.

    Scores are those of the model behind any map, as its own library has them: restating it in
    other columns has a rounding of its own, which does not enter here.
    """

    arithmetic: Arithmetic
    table_map: TableMap | None = None
    slip: Slip | None = None  # of the steps before the model
    inner: Coordinates | None = None  # where rows are points in coordinates
    columns: int | None = None  # how many columns of rows the model knows; all by default

    @cached_property
    def classes(self) -> list[int]:
        """The class of each prototype, by its position."""
        found: list[int] = self.arithmetic.model.class_index.tolist()
        return found

    @cached_property
    def row_scores(self) -> RowScores | None:
        """How the scores of a single row are computed in few steps; None where that takes more."""
        return row_scores(self.arithmetic.model, self.table_map) if self.is_direct else None

    def at(self, rows: Floats) -> DoubtAt:
        """Ask several things about the same rows."""
        return DoubtAt(self, rows)

    def least_margin(self, rows: Floats) -> Floats:
        """Lead over every prototype of another label with which the label is certain, (n,).

        The lead that it is compared with is a computed one, in doubles.
        """
        at = self.at(rows)
        return self.arithmetic.certain_lead(at.images, at.slip)

    @property
    def is_coarse(self) -> bool:
        """Whether the lead is large enough to be seen in the cost."""
        return self.arithmetic.is_coarse

    @property
    def is_direct(self) -> bool:
        """Whether rows are those of the user's table, and not points in coordinates."""
        return self.inner is None and self.columns is None

    def overlooked(self, rows: Floats, reach: Floats) -> Floats:
        """Lead that `predict` may overlook at any row within `reach` (n, d) of these, (n,)."""
        return self.at(rows).overlooked(reach)

    def images(self, rows: Floats) -> Floats:
        """Take rows to the space of the model, (n, k)."""
        return self.at(rows).images


@final
@dataclass(frozen=True, eq=False)
class DoubtAt:
    """As `Doubt`, at some rows: what several answers need is computed once."""

    doubt: Doubt
    rows: Floats  # (n, d)

    @cached_property
    def outer(self) -> Floats:
        """The rows in the columns of the table that the model knows."""
        doubt = self.doubt
        outer = self.rows if doubt.inner is None else doubt.inner.outer(self.rows)
        return outer if doubt.columns is None else outer[:, : doubt.columns]

    @cached_property
    def images(self) -> Floats:
        """The rows in the space of the model, (n, k)."""
        table_map = self.doubt.table_map
        return self.outer if table_map is None else table_map.image(self.outer)

    @cached_property
    def scores(self) -> Floats:
        """Scores by which the model decides, up to what they share, (n, p)."""
        return self.doubt.arithmetic.scores(self.images)

    @property
    def slip(self) -> Floats | float:
        """How far the rows that the model sees may be from the images, (n, k)."""
        return 0.0 if self.doubt.slip is None else self.doubt.slip.of(self._sizes())

    @cached_property
    def least_margin(self) -> Floats:
        """As `Doubt.least_margin`."""
        return self.doubt.arithmetic.certain_lead(self.images, self.slip, self.scores)

    def overlooked(self, reach: Floats) -> Floats:
        """As `Doubt.overlooked`."""
        doubt, outer = self.doubt, self.outer
        farther = reach if doubt.inner is None else doubt.inner.outer_reach(reach)
        farther = farther[:, : doubt.columns]  # of levels it counts that they may change
        if doubt.table_map is None:
            return doubt.arithmetic.blur_within(outer, farther, np.zeros(outer.shape))
        slip = 0.0 if doubt.slip is None else doubt.slip.of(self._sizes(farther))
        apart = doubt.table_map.image_reach(farther)
        slips = np.broadcast_to(slip, self.images.shape)
        return doubt.arithmetic.blur_within(self.images, apart, slips)

    def leads(self, target_mask: NDArray[np.bool_]) -> Floats:
        """By how much the nearest wished-for prototype is nearer than any other, (n,)."""
        if self.alone is not None:
            return np.array([self.alone.over_rivals(target_mask)])
        rivals = self.scores[:, ~target_mask].min(axis=1, initial=np.inf)
        return np.asarray(rivals - self.scores[:, target_mask].min(axis=1, initial=np.inf))

    @cached_property
    def leads_of_nearest(self) -> Floats:
        """By how much the nearest prototype is nearer than any of another label, (n,)."""
        classes, scores = self.doubt.arithmetic.model.class_index, self.scores
        if self.alone is not None:
            return np.array([self.alone.over_labels])
        nearest = scores.argmin(axis=1)
        other = classes[None, :] != classes[nearest][:, None]
        return np.asarray(np.where(other, scores, np.inf).min(axis=1) - scores.min(axis=1))

    @cached_property
    def alone(self) -> RowLeads | None:
        """Leads at one row where scores are few: quicker than arrays, and the same numbers."""
        doubt = self.doubt
        if len(self.rows) != 1 or len(doubt.classes) > _FEW_SCORES:
            return None
        quick = doubt.row_scores
        found: list[float] = self.scores[0].tolist() if quick is None else quick.of(self.rows)
        if not sum(found) < math.inf:  # what is no number is left to NumPy
            return None
        return RowLeads.of(found, doubt.classes)

    def _sizes(self, farther: Floats | None = None) -> Floats:
        """Sizes of what steps round, at rows of the table and within a reach of them."""
        table_map, outer = self.doubt.table_map, self.outer
        if table_map is None or not table_map.has_links:
            return np.abs(outer) if farther is None else np.abs(outer) + farther
        seen = table_map.seen(outer)
        sizes = np.abs(seen) if farther is None else np.abs(seen) + farther
        for j, link in enumerate(table_map.links):
            if link is not None:
                away = 0.0 if farther is None else farther[:, j]
                ends = [link.pull(seen[:, j] + step) for step in (-away, 0.0, away)]
                sizes[:, j] += np.max(ends, axis=0)
        return np.asarray(sizes)

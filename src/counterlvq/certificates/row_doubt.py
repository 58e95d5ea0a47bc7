"""What the user's own `predict` may overlook at one row and around it, each part computed once."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from counterlvq.certificates.acceptance import Acceptance
from counterlvq.certificates.leads import Around, LeadsAt
from counterlvq.certificates.regions import Region
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.lazy import cached_property
from counterlvq.programs.proof_data import ProofData

__all__ = ["RowDoubt"]


@final
class RowDoubt:
    """As `Acceptance` says of rows, for one of them: the same numbers to the last bit.

    Parameters
    ----------
    rules : Acceptance
        With a `predict` of the user's own.
    X : ndarray of shape (1, d)
    within : Region, optional
        One that holds the row, if it is known.
    """

    def __init__(self, rules: Acceptance, X: Floats, within: Region | None = None) -> None:
        # Every answer needs these: a step each in a row that takes microseconds.
        self.rules, self.X = rules, X
        self._at = at = None if rules.doubt is None else rules.doubt.at(X)
        self._alone = None if at is None else at.alone
        if within is None and rules.regions is not None:
            within = rules.regions.of_row(X)
        self._region = within  # what holds in the region of the row

    @cached_property
    def _enough(self) -> Region | None:
        """What holds in the region, where that is next to nothing to the row."""
        region, at = self._region, self._at
        if region is None or at is None:
            return None
        return region if region.is_negligible(self._lead(at, None)) else None

    @cached_property
    def _around(self) -> Around:
        return self.rules.around(self.X, self._at)

    @property
    def least(self) -> float:
        """Lead to ask for so that the label is certain at the row and around it."""
        enough = self._enough
        if enough is not None:
            return self.rules.ample * enough.certain
        return float(self.rules.least_margin(self.X, self._around)[0])

    @property
    def blur(self) -> float:
        """Lead of a rival that may be overlooked at the row and around it."""
        enough = self._enough
        return float(self._around.blur[0]) if enough is None else enough.blur

    def covers(self, cost: float, stated: ProofData) -> bool:
        """Whether changes of a cost go nowhere where more may be overlooked than around the row."""
        enough, regions = self._enough, self.rules.regions
        if enough is None or regions is None:
            return False
        return cost <= regions.covered(enough, stated)

    def changed(self, answer: Floats, cost: float, stated: ProofData) -> RowDoubt:
        """Ask about an answer (1, d) of that cost: in the region of the row, where that holds it.

        The least region that holds the answer may be another one, whose bounds leave more open.
        """
        return RowDoubt(self.rules, answer, self._enough if self.covers(cost, stated) else None)

    def blur_within(self, reach: Floats) -> float:
        """Lead of a rival that may be overlooked within `reach` (1, d); inf if nothing is known."""
        around = np.array([self.blur])
        return float(self.rules.blur_within(self.X, reach, around, self._at)[0])

    @cached_property
    def nearest(self) -> int:
        """The prototype that is nearest to the row.

        Where the scores of the user's own model leave no doubt, those of the model in the user's
        columns are not computed: a lead differs between the two by less than half of what is
        asked for, by what `predict` may overlook and what restating it got wrong.
        """
        region, alone = self._region, self._alone
        if region is not None and alone is not None and alone.over_any > 2.0 * region.blur:
            return alone.nearest
        return int(self.rules.model.nearest_of_checked(self.X)[0])

    def open_share(self, target_mask: NDArray[np.bool_]) -> float:
        """Share of the cost that asking for the lead may leave open, about."""
        return float(self.rules.open_share(self.X, target_mask, np.array([self.least]))[0])

    def is_assured(self, target_mask: NDArray[np.bool_] | None = None) -> bool:
        """Whether rounding cannot decide the label of the row, or that it is a wished-for one."""
        at, region = self._at, self._region
        if at is not None and region is not None and self._lead(at, target_mask) >= region.certain:
            return True
        return bool(self.rules.is_assured(self.X, target_mask, at)[0])

    def _lead(self, at: LeadsAt, target_mask: NDArray[np.bool_] | None) -> float:
        """Lead of the nearest prototype over other labels, or of wished-for ones over rivals."""
        alone = self._alone
        if alone is not None:
            return alone.over_labels if target_mask is None else alone.over_rivals(target_mask)
        leads = at.leads_of_nearest if target_mask is None else at.leads(target_mask)
        return float(leads[0])

"""What the user's own `predict` may overlook at one row and around it, each part computed once."""

from __future__ import annotations

from dataclasses import dataclass
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
@dataclass(frozen=True, eq=False)
class RowDoubt:
    """As `Acceptance` says of rows, for one of them: the same numbers to the last bit."""

    rules: Acceptance  # with a `predict` of the user's own
    X: Floats  # (1, d)
    within: Region | None = None  # one that holds the row, if it is known

    @cached_property
    def _at(self) -> LeadsAt | None:
        return None if self.rules.doubt is None else self.rules.doubt.at(self.X)

    @cached_property
    def _region(self) -> Region | None:
        """What holds in the region of the row."""
        if self.within is not None:
            return self.within
        return None if self.rules.regions is None else self.rules.regions.of_row(self.X)

    @cached_property
    def _enough(self) -> Region | None:
        """What holds in the region, where that is next to nothing to the row."""
        region, at = self._region, self._at
        if region is None or at is None:
            return None
        return region if region.is_negligible(float(at.leads_of_nearest[0])) else None

    @cached_property
    def _around(self) -> Around:
        return self.rules.around(self.X, self._at)

    @cached_property
    def least(self) -> float:
        """Lead to ask for so that the label is certain at the row and around it."""
        if self._enough is not None:
            return self.rules.ample * self._enough.certain
        return float(self.rules.least_margin(self.X, self._around)[0])

    @cached_property
    def blur(self) -> float:
        """Lead of a rival that may be overlooked at the row and around it."""
        return float(self._around.blur[0]) if self._enough is None else self._enough.blur

    def covers(self, cost: float, stated: ProofData) -> bool:
        """Whether changes of a cost go nowhere where more may be overlooked than around the row."""
        if self._enough is None or self.rules.regions is None:
            return False
        return cost <= self.rules.regions.covered(self._enough, stated)

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
        first = None if self._at is None else self._at.first_of_few
        if self._region is not None and first is not None and first[1] > 2.0 * self._region.blur:
            return first[0]
        return int(self.rules.model.nearest_of_checked(self.X)[0])

    def open_share(self, target_mask: NDArray[np.bool_]) -> float:
        """Share of the cost that asking for the lead may leave open, about."""
        return float(self.rules.open_share(self.X, target_mask, np.array([self.least]))[0])

    def is_assured(self, target_mask: NDArray[np.bool_] | None = None) -> bool:
        """Whether rounding cannot decide the label of the row, or that it is a wished-for one."""
        at, region = self._at, self._region
        if at is not None and region is not None:
            leads = at.leads_of_nearest if target_mask is None else at.leads(target_mask)
            if leads[0] >= region.certain:
                return True
        return bool(self.rules.is_assured(self.X, target_mask, at)[0])

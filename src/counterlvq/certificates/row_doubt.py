"""What the user's own `predict` may overlook at one row and around it, each part computed once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from counterlvq.certificates.acceptance import Acceptance, LeadsAt, blur_within
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.lazy import cached_property

__all__ = ["RowDoubt"]


@final
@dataclass(frozen=True, eq=False)
class RowDoubt:
    """As `Acceptance` says of rows, for one of them: the same numbers to the last bit."""

    rules: Acceptance  # with a `predict` of the user's own
    X: Floats  # (1, d)

    @cached_property
    def _at(self) -> LeadsAt | None:
        return None if self.rules.doubt is None else self.rules.doubt.at(self.X)

    @cached_property
    def _scores(self) -> Floats:
        return self.rules.model.distances_of_checked(self.X)

    @property
    def _certain(self) -> Floats:
        return np.zeros(1) if self._at is None else self._at.least_margin

    @cached_property
    def least(self) -> float:
        """Lead to ask for so that the label is certain at the row and around it."""
        return float(self.rules.least_margin(self.X, self._certain)[0])

    @cached_property
    def blur(self) -> float:
        """Lead of a rival that may be overlooked at the row and around it."""
        return float(self.rules.blur(self.X, self._certain, self._scores)[0])

    def blur_within(self, reach: Floats) -> float:
        """Lead of a rival that may be overlooked within `reach` (1, d); inf if nothing is known."""
        overlooked = None if self._at is None else self._at.overlooked(reach)
        around = np.array([self.blur])
        found = blur_within(self.rules.model, self.X, reach, around, overlooked, self._scores)
        return float(found[0])

    def open_share(self, target_mask: NDArray[np.bool_]) -> float:
        """Share of the cost that asking for the lead may leave open, about."""
        return float(self.rules.open_share(self.X, target_mask, np.array([self.least]))[0])

    @property
    def is_assured(self) -> bool:
        """Whether rounding cannot decide the label of the row."""
        return bool(self.rules.is_assured(self.X, at=self._at)[0])

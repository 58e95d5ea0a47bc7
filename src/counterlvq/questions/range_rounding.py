"""What rounding in a foreign `predict` may hide in a box around an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from counterlvq.certificates.acceptance import Acceptance
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import SAFE

__all__ = ["Doubted"]

# The first shell around an answer ends where a lead has grown by this share, and each further one
# so many times as far away.
_FIRST_SHELL, _GROWTH = 0.125, 4.0
_MOST_SHELLS = 64


@final
@dataclass(frozen=True, eq=False)
class Doubted:
    """Leads that rounding in the model's own `predict` may undo; none where it decides exactly."""

    rules: Acceptance
    margin: float  # that is to be kept besides

    @property
    def is_exact(self) -> bool:
        """Whether rounding hides nothing."""
        return self.rules.says is None

    def lead(self, y: Floats, reach: Floats) -> float:
        """Lead over every rival that keeps the label and the margin within `reach` of a point."""
        return self.margin + self._hidden(y, reach)

    def _hidden(self, y: Floats, reach: Floats) -> float:
        if self.is_exact:
            return 0.0
        return 2.0 * float(self.rules.blur_within(y[None, :], reach[None, :])[0])

    def is_certain(self, y: Floats, slopes: Floats, lead: float, reach: Floats) -> bool:
        """Whether a lead that grows on the way from a point is enough within all of `reach`.

        It grows by at least ``slopes * change``. An answer lies close to a boundary, where no lead
        is left that would do far away; but the farther away, the larger it is. So what rounding
        hides is bounded shell by shell, each of points at which the lead has grown by so much.
        """
        with np.errstate(all="ignore"):
            full = float(np.where(reach > 0, slopes * reach, 0.0).sum()) * SAFE
            grown, end = 0.0, _FIRST_SHELL * lead
            for _ in range(_MOST_SHELLS if lead > 0 else 0):
                farthest = np.where(slopes > 0, SAFE * end / slopes, np.inf)
                hidden = self._hidden(y, np.minimum(reach, farthest))
                if not hidden * SAFE <= lead + grown:
                    return False
                if end >= full:
                    return True
                grown, end = end, _GROWTH * end
        return False

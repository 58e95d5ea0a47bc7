"""By how much one prototype is nearer to a row than others, in numbers of Python.

For the few prototypes of most models lists take a fraction of the time of arrays.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["RowLeads"]


class RowLeads(NamedTuple):
    """Scores of one row, and leads among them.

    Examples
    --------
    >>> leads = RowLeads.of([4.0, 1.0, 2.5], [0, 1, 1])
    >>> leads.nearest, leads.over_any, leads.over_labels
    (1, 1.5, 3.0)
    >>> leads.over_rivals(np.array([True, False, False]))
    -3.0
    """

    scores: list[float]
    nearest: int  # prototype
    over_any: float  # its lead over any other prototype
    over_labels: float  # its lead over any of another label

    @classmethod
    def of(cls, scores: list[float], classes: list[int]) -> RowLeads:
        """Compare the scores (at least one, all finite) of prototypes of those classes."""
        least = second = rival = math.inf
        nearest = 0
        for k, score in enumerate(scores):
            if score < least:
                second, least, nearest = least, score, k
            elif score < second:
                second = score
        own = classes[nearest]
        for score, label in zip(scores, classes, strict=True):
            if label != own and score < rival:
                rival = score
        return cls(scores, nearest, second - least, rival - least)

    def over_rivals(self, target_mask: NDArray[np.bool_]) -> float:
        """By how much the nearest wished-for prototype is nearer than any other."""
        wished = rival = math.inf
        for score, is_wished in zip(self.scores, target_mask.tolist(), strict=True):
            if is_wished:
                wished = min(wished, score)
            else:
                rival = min(rival, score)
        return rival - wished

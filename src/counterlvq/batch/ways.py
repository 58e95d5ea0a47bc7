"""By which way the rows of a batch are answered: told by the question alone, before any row."""

from __future__ import annotations

from enum import Enum, auto
from typing import final

__all__ = ["BatchWay"]


@final
class BatchWay(Enum):
    """Ways to many answers, each some ten times as slow as the one before."""

    KERNEL = auto()  # real numbers under a shared metric: microseconds for a row
    LATTICE = auto()  # whole numbers, levels, steps: compiled branch and bound
    ONE_BY_ONE = auto()  # local metrics, a confidence, limits on how many may change

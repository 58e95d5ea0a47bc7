"""Ask the user's own `predict` about an input together with what is found for it.

A pipeline takes milliseconds for a call, whatever it is asked about. Where the label of an input
is certain before `predict` is asked, a search can begin, and one call hears about both.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.certificates.acceptance import Acceptance
from counterlvq.certificates.judged import Verdict
from counterlvq.numeric.arrays import Floats

__all__ = ["AskedTogether", "foreseen"]


def foreseen(rules: Acceptance, x: Floats) -> AskedTogether | None:
    """Foresee what `predict` says of an input; None where it has to be asked first."""
    X = x[None, :]
    if rules.says is None or rules.doubt is None or not rules.is_assured(X)[0]:
        return None
    return AskedTogether(rules, x, int(rules.model.nearest_of_checked(X)[0]))


@final
class AskedTogether:
    """The rules of a search whose `predict` hears about the input the first time it is asked.

    Parameters
    ----------
    rules : Acceptance
        With a `predict` of the user's own.
    x : ndarray of shape (d,)
        The input.
    nearest : int
        The prototype of the label that is certain there.
    """

    def __init__(self, rules: Acceptance, x: Floats, nearest: int) -> None:
        self.rules = rules.hearing(self._says)
        sure = np.ones(1, dtype=bool)
        self.verdict = Verdict(np.array([nearest]), sure, sure)
        self._asked, self._x, self._nearest = rules, x, nearest
        self._told: list[Any] = []

    def _says(self, rows: Floats) -> NDArray[Any]:
        says = self._asked.says
        assert says is not None
        if self._told:
            return says(rows)
        told = np.asarray(says(np.concatenate([rows, self._x[None, :]])))
        self._told.append(told[-1])
        return told[:-1]

    @property
    def came_true(self) -> bool:
        """Whether `predict` says of the input what was foreseen; it is asked if it was not."""
        if not self._told:
            self._says(self._x[None, :][:0])
        return bool(self._told[0] == self._asked.model.labels[self._nearest])

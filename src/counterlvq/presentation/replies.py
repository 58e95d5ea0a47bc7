"""The number behind a decision, before and after, with digits enough to tell its side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from counterlvq.numeric.arrays import Floats

__all__ = ["Reply", "Respond"]

# Of a score or a probability, unless more are needed to tell its side.
_REPLY_DIGITS = 4

# Name and value of the number behind a decision at a row, for a label, and its threshold.
Respond = Callable[[Floats, Any], tuple[str, float, float | None] | None]


@final
@dataclass(frozen=True)
class Reply:
    """The number behind a decision, before and after: a score, a probability, a prediction.

    Attributes
    ----------
    name : str
    before, after : float
        At the input, and at the row that is shown.
    threshold : float or None
        From which the decision is another one, where there is one.

    Examples
    --------
    >>> Reply("score", 612.3, 640.0, threshold=640.0).text()
    'score 612.3 -> 640'
    """

    name: str
    before: float
    after: float
    threshold: float | None = None

    def text(self, number: Callable[[str], str] = str) -> str:
        """Write both values with digits enough to tell on which side of the threshold they are.

        `number` writes a number in another way.
        """
        before, after = (number(self._digits(value)) for value in (self.before, self.after))
        return f"{self.name} {before} -> {after}"

    def _digits(self, value: float) -> str:
        for digits in range(_REPLY_DIGITS, 17):
            text = f"{value:.{digits}g}"
            if self.threshold is None:
                near = abs(float(text) - value) <= abs(self.after - self.before) / 100
            else:
                near = (float(text) >= self.threshold) == (value >= self.threshold)
            if near:
                return text
        return repr(value)

"""When the time for a question is over, however many searches it takes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Self, final

import numpy as np

from counterlvq.numeric.interpreting import Compilations

__all__ = ["NO_DEADLINE", "Deadline"]

# How long after a time limit the proof of an answer may still be checked.
_LATE_SHARE, _LATE = 0.05, 0.1


@final
@dataclass(frozen=True)
class Deadline:
    """A moment that all parts of an answer share; what is compiled meanwhile puts it off."""

    ends: float = np.inf  # by the monotonic clock, if nothing is compiled
    late: float = np.inf  # seconds after which proofs are not even checked any more
    seconds: float = np.inf  # that there were in all
    compiled: float = 0.0  # seconds that the compiler had taken when the clock was started

    @classmethod
    def after(cls, limit: float | None) -> Self:
        """Start the clock."""
        if limit is None:
            return cls()
        late = _LATE_SHARE * limit + _LATE
        return cls(time.monotonic() + limit, late, limit, Compilations.seconds)

    def shared(self, parts: float) -> Self:
        """Return the end of one of so many equal parts of the time that is left."""
        if self.ends == np.inf or parts == 1:
            return self
        own = self.after(self.seconds_left() / parts)
        # No later than the whole, however little of it is left.
        return own if own.at + own.late <= self.at + self.late else self

    @property
    def at(self) -> float:
        """When the limit is reached, by the monotonic clock."""
        return self.ends + (Compilations.seconds - self.compiled)

    def seconds_left(self) -> float:
        """Seconds until then; inf without a limit."""
        return self.at - time.monotonic()

    def is_over(self) -> bool:
        """Whether the limit has been reached."""
        return time.monotonic() > self.at

    def is_long_over(self) -> bool:
        """Whether not even a proof is checked any more."""
        return time.monotonic() > self.at + self.late


NO_DEADLINE = Deadline()

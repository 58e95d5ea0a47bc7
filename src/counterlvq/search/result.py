"""What a search is given, and what it comes back with."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from counterlvq.certificates.acceptance import Acceptance
from counterlvq.certificates.certificate import Certificate
from counterlvq.certificates.judged import Accepted
from counterlvq.numeric.arrays import Floats
from counterlvq.programs.program import Multipliers
from counterlvq.search.deadline import NO_DEADLINE, Deadline

__all__ = ["DualPoint", "SearchContext", "SearchResult"]

# Bytes of points that are remembered as refused.
_MOST_REFUSED = 1 << 24


@final
@dataclass(frozen=True, eq=False)
class SearchContext:
    """Who judges what a search finds for one input and one wish, and how long it may take."""

    rules: Acceptance
    x: Floats  # (d,)
    target_mask: NDArray[np.bool_]  # (p,) prototypes of a wished-for label
    deadline: Deadline = NO_DEADLINE
    least: float = 0.0  # lead over rivals that the user's own `predict` needs
    open_share: float = 0.0  # of the cost, that this lead may leave open
    below: float = np.inf  # cost of an answer known from elsewhere: only cheaper ones are wanted
    _refused: set[tuple[bytes, bool]] = field(init=False, default_factory=set, repr=False)
    _missing: list[float] = field(init=False, default_factory=list, repr=False)

    @property
    def margin(self) -> float | None:
        """The user's margin, if any."""
        return self.rules.margin

    def accepted(self, y: Floats, strict: bool = True) -> Accepted | None:
        """Judge a point by the user's model and constraints; None if it is no answer.

        Searches come back to the points where nothing gives way: those are judged once.
        """
        key = y.tobytes(), strict
        if key in self._refused:
            return None
        found = self.rules.accepts(y, self.x, self.target_mask, strict=strict)
        if found is None and len(self._refused) * y.nbytes < _MOST_REFUSED:
            self._refused.add(key)
            missing = self.rules.missing_lead(y, self.target_mask)
            if missing < np.inf:
                self._missing.append(missing)
        return found

    @property
    def missing_lead(self) -> float:
        """Least lead that a refused point would have needed; inf where none missed it closely."""
        return min(self._missing, default=np.inf)

    def seconds_left(self) -> float:
        """Seconds until the limit; inf without one."""
        return self.deadline.seconds_left()

    def out_of_time(self) -> bool:
        """Whether the limit has been reached."""
        return self.deadline.is_over()

    def too_late(self) -> bool:
        """Whether not even a proof is checked any more."""
        return self.deadline.is_long_over()


@final
@dataclass(frozen=True, eq=False)
class SearchResult:
    """What the search came back with."""

    answer: Accepted | None
    certificate: Certificate
    engines: tuple[str, ...]  # who solved, and why they were asked
    # What the certificate proves, once it has been checked: a bound of the cost of the answer or,
    # without an answer, that there is none.
    bound: float | None = None
    is_excluded: bool | None = None

    @property
    def cost(self) -> float:
        """Cost of the answer; inf without one."""
        return np.inf if self.answer is None else self.answer.cost

    def checked(self, question: object, context: SearchContext) -> SearchResult:
        """Check the certificate, unless that has been done."""
        margin, stop = context.margin or 0.0, context.too_late
        if self.bound is not None or self.is_excluded is not None:
            return self
        if self.answer is None:
            shown = self.certificate.excludes_all(question, margin, stop=stop)
            return replace(self, is_excluded=shown)
        bound = self.certificate.lower_bound(question, self.cost, margin, stop=stop)
        return replace(self, bound=min(bound, self.cost))


@final
@dataclass(frozen=True, eq=False)
class DualPoint:
    """Multipliers on the constraints of a question, and a point of tangency, that show a clash."""

    multipliers: Multipliers
    point: Floats  # (d,)

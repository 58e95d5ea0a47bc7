"""What a search is given, and what it comes back with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from counterlvq.certificates.certificate import Certificate
from counterlvq.numeric.arrays import Floats
from counterlvq.programs.program import Multipliers

__all__ = ["DualPoint", "SearchContext", "SearchResult"]


@final
@dataclass(frozen=True, eq=False)
class SearchContext:
    """Effects and opinions that the search is given: it has none of its own."""

    is_valid: Callable[[Floats, bool], bool]  # by the user's model and constraints
    price: Callable[[Floats], float]
    gap: Callable[[Floats, float], float]  # of a point, given a bound
    out_of_time: Callable[[], bool]
    seconds_left: Callable[[], float]  # inf without a limit
    too_late: Callable[[], bool]  # a little after the limit: proofs are not even checked any more
    least: float = 0.0  # lead over rivals that the user's own `predict` needs
    open_share: float = 0.0  # of the cost, that this lead may leave open


@final
@dataclass(frozen=True, eq=False)
class SearchResult:
    """What the search came back with."""

    y: Floats | None  # the counterfactual, if any
    cost: float  # inf without one
    certificate: Certificate
    engines: tuple[str, ...]  # who solved, and why they were asked
    is_excluded: bool = False  # the certificate has been checked to leave no room


@final
@dataclass(frozen=True, eq=False)
class DualPoint:
    """Multipliers on the constraints of a question, and a point of tangency, that show a clash."""

    multipliers: Multipliers
    point: Floats  # (d,)

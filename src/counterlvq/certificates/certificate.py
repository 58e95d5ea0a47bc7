"""What every certificate can be asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, cast

__all__ = ["Certificate", "Later", "Stop", "later", "never"]

Stop = Callable[[], bool]


def never() -> bool:
    """Go on for as long as it takes."""
    return False


class Certificate(Protocol):
    """Multipliers that prove a lower bound, recomputed for whoever asks; nothing is trusted."""

    def lower_bound(
        self, question: object, cap: float, margin: float = 0.0, *, stop: Stop = never
    ) -> float:
        """Cost that no counterfactual undercuts, at most `cap`."""

    def excludes_all(self, question: object, margin: float = 0.0, *, stop: Stop = never) -> bool:
        """Whether no cell holds an answer."""


class Later(NamedTuple):
    """What makes a certificate, in its place."""

    make: Callable[[], Certificate]


def later(make: Callable[[], Certificate]) -> Certificate:
    """Stand in for a certificate that is made when it is first asked for."""
    return cast("Certificate", Later(make))

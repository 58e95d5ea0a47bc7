"""What every certificate can be asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

__all__ = ["Certificate", "Stop", "never"]

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

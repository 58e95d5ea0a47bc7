"""What every certificate can be asked."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Stop", "never"]

Stop = Callable[[], bool]


def never() -> bool:
    """Go on for as long as it takes."""
    return False

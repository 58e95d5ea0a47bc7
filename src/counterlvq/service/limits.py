"""How much a request may ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

__all__ = ["Limits"]


@final
@dataclass(frozen=True)
class Limits:
    """What one request, and all of them together, may take.

    Attributes
    ----------
    body : int
        Bytes of a request.
    rows : int
        Rows of a request.
    seconds : float
        For all answers of a request.
    searches : int
        Worker processes, each with one long search at a time.
    waiting : int
        Long searches that wait for a worker; further ones are sent away.
    quick : int
        Plain questions that are answered or wait at the same time.

    Examples
    --------
    >>> Limits(rows=10).rows
    10
    """

    body: int = 1_000_000
    rows: int = 1_000
    seconds: float = 30.0
    searches: int = 2
    waiting: int = 8
    quick: int = 64

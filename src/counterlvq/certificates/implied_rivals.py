"""A certificate about a cell against rivals that a confidence implies, and these rivals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from counterlvq.certificates.certificate import Certificate, Stop, never
from counterlvq.numeric.arrays import Floats

__all__ = ["ImpliedCertificate"]


@final
@dataclass(frozen=True, eq=False)
class ImpliedCertificate:
    """What a certificate proves of one prototype against implied rivals.

    It proves something of a confidence only where each of the points is a rival that the
    confidence implies: whoever checks it, checks that first.
    """

    prototype: int
    rivals: tuple[int, ...]  # the prototype of another label that each point stands for
    points: Floats  # (m, d)
    inner: Certificate

    def lower_bound(
        self, question: object, cap: float, margin: float = 0.0, *, stop: Stop = never
    ) -> float:
        """Nothing by itself: the points have to be checked."""
        return 0.0

    def excludes_all(self, question: object, margin: float = 0.0, *, stop: Stop = never) -> bool:
        """Nothing by itself: the points have to be checked."""
        return False

"""One certificate for a union: an answer that may lie in any of several parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, final

from counterlvq.certificates.certificate import Certificate, Stop, never

__all__ = ["JoinedCertificate", "StatedPart"]


@final
@dataclass(frozen=True, eq=False)
class JoinedCertificate:
    """Certificates of several questions, of which one answer is wanted: the least bound counts."""

    parts: tuple[Certificate, ...]

    def lower_bound(
        self, question: object, cap: float, margin: float = 0.0, *, stop: Stop = never
    ) -> float:
        """Cost that no counterfactual undercuts, at most `cap`; a question for each part."""
        if not isinstance(question, tuple) or len(question) != len(self.parts) or not question:
            return 0.0
        pairs = zip(self.parts, question, strict=True)
        return min(part.lower_bound(asked, cap, margin, stop=stop) for part, asked in pairs)

    def excludes_all(self, question: object, margin: float = 0.0, *, stop: Stop = never) -> bool:
        """Whether no part holds an answer."""
        if not isinstance(question, tuple) or len(question) != len(self.parts) or not question:
            return False
        pairs = zip(self.parts, question, strict=True)
        return all(part.excludes_all(asked, margin, stop=stop) for part, asked in pairs)


class StatedPart(NamedTuple):
    """One part of a union as a file states it: prototypes of one label, and where they are met.

    `restated` turns a cell, or charges, about the model of the part into the same about the whole
    model; into nothing where that has no words for it.
    """

    label: Any
    prototypes: tuple[int, ...]  # of the whole model
    ellipsoid: int | None
    asked: Any  # the explainer of the part
    certificate: Any
    restated: Callable[[dict[str, Any]], dict[str, Any]]

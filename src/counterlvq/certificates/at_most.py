"""Certificates for answers in which few features change: a tree of features held or counted.

No more than so many of some features change. So each of them either stays as it is, or counts as
changed, and once enough are counted all others stay. Parts left whole carry a certificate of the
question in which those features are held, which is an ordinary one. Whoever checks a tree walks
it down from the whole question, so that nothing can be left out, and keeps the count alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from counterlvq.certificates.box_questions import BoxQuestion
from counterlvq.certificates.boxes import BoxCertificate, plain_copy
from counterlvq.certificates.cellwise import CellCertificate
from counterlvq.certificates.certificate import Certificate, Stop, never
from counterlvq.certificates.questions import Question
from counterlvq.programs.at_most import CountLimit, held_for_good

__all__ = ["CountedCertificate", "CountedQuestion", "plain_tree"]


@final
@dataclass(frozen=True, eq=False)
class CountedQuestion:
    """What is asked: the limits, and the ordinary question in which some columns are held."""

    limits: tuple[CountLimit, ...]
    holding: Callable[[frozenset[int]], Question | BoxQuestion]


@final
@dataclass(frozen=True, eq=False)
class CountedCertificate:
    """A tree; node 0 is the whole question."""

    column: tuple[int, ...]  # (nodes,) that is held or counted as changed; -1 for a part left whole
    held: tuple[int, ...]  # (nodes,) the part in which it is held
    changed: tuple[int, ...]  # (nodes,) the part in which it counts
    parts: tuple[Certificate | None, ...]  # (nodes,) of parts left whole

    def lower_bound(
        self, question: object, cap: float, margin: float = 0.0, *, stop: Stop = never
    ) -> float:
        """Cost that no counterfactual undercuts: the least over the parts left whole, at most cap.

        An infinite cap asks for what holds without a known answer.
        """
        if not isinstance(question, CountedQuestion) or not cap >= 0.0 or not self._is_tree():
            return 0.0

        def bound(part: Certificate, asked: Question | BoxQuestion) -> float:
            if cap == np.inf and part.excludes_all(asked, margin, stop=stop):
                return cap
            return part.lower_bound(asked, cap, margin, stop=stop)

        return self._least(question, cap, bound, stop)

    def excludes_all(self, question: object, margin: float = 0.0, *, stop: Stop = never) -> bool:
        """Whether no part holds an answer."""
        if not isinstance(question, CountedQuestion) or not self._is_tree():
            return False

        def bound(part: Certificate, asked: Question | BoxQuestion) -> float:
            return np.inf if part.excludes_all(asked, margin, stop=stop) else 0.0

        return self._least(question, np.inf, bound, stop) == np.inf

    def held_at(self, limits: tuple[CountLimit, ...]) -> list[frozenset[int] | None]:
        """Columns that stay in each part; None where more count as changed than may."""
        nothing: frozenset[int] = frozenset()
        out: list[frozenset[int] | None] = [None] * len(self.column)
        waiting = [(0, nothing, nothing)]
        while waiting:
            node, held, changed = waiting.pop()
            out[node], j = held_for_good(held, changed, limits), self.column[node]
            if j >= 0:
                waiting.append((self.held[node], held | {j}, changed))
                waiting.append((self.changed[node], held, changed | {j}))
        return out

    def _is_tree(self) -> bool:
        """Whether children stand behind their parents, so that whoever walks comes to an end."""
        count = len(self.column)
        if not 0 < count == len(self.held) == len(self.changed) == len(self.parts):
            return False
        return all(
            at < self.held[at] < count and at < self.changed[at] < count
            for at in range(count)
            if self.column[at] >= 0
        )

    def _least(
        self,
        question: CountedQuestion,
        cap: float,
        bound: Callable[[Certificate, Question | BoxQuestion], float],
        stop: Stop,
    ) -> float:
        least = cap
        for j, part, held in zip(
            self.column, self.parts, self.held_at(question.limits), strict=True
        ):
            if stop():
                return 0.0
            if j < 0 and held is not None:
                least = 0.0 if part is None else min(least, bound(part, question.holding(held)))
            if least == 0.0:
                break
        return least


def plain_tree(certificate: Any) -> CountedCertificate | None:
    """Copy the data of a tree; None if it holds anything that this package does not write."""
    if type(certificate) is not CountedCertificate:
        return None
    numbers = certificate.column, certificate.held, certificate.changed
    if not all(type(part) is tuple and all(type(n) is int for n in part) for part in numbers):
        return None
    parts = certificate.parts
    kinds = (CellCertificate, BoxCertificate, type(None))
    if type(parts) is not tuple or not all(type(part) in kinds for part in parts):
        return None
    return CountedCertificate(*numbers, tuple(map(plain_copy, parts)))

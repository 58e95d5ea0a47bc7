"""What became of some rows, counted: how they ended, and the first that could not be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

from counterlvq.safe_text import visible
from counterlvq.streaming.arrow import arrow_part
from counterlvq.types import Status

__all__ = ["Tally"]

# Letters of the reason why a row cannot be read.
_LONGEST = 300


@final
@dataclass(frozen=True)
class Tally:
    """Counts of rows that follow one another.

    Examples
    --------
    >>> first = Tally({"optimal": 2}, has_target=1)
    >>> both = first.then(Tally({"invalid": 1}, first_invalid=(0, "no number.")))
    >>> both.statuses, both.rows, both.has_target, both.first_invalid
    ({'invalid': 1, 'optimal': 2}, 3, 1, (2, 'no number.'))
    """

    statuses: Mapping[str, int] = field(default_factory=dict)
    has_target: int = 0  # rows that have a wished-for label as they are
    first_invalid: tuple[int, str] | None = None  # its place among the rows, and why

    @classmethod
    def of(cls, statuses: Any, reasons: Any, has_target: int) -> Tally:
        """Count the rows of a batch, by its columns of Arrow."""
        counts = {pair["values"]: pair["counts"] for pair in statuses.value_counts().to_pylist()}
        first = None
        if counts.get(Status.INVALID):
            at = arrow_part("compute").index(statuses, str(Status.INVALID)).as_py()
            first = at, visible(reasons[at].as_py() or "", _LONGEST)
        return cls(dict(sorted(counts.items())), has_target, first)

    @classmethod
    def read(cls, found: Any) -> Tally | None:
        """Read what `stated` has written; None if it is something else."""
        if not isinstance(found, dict) or found.keys() != cls().stated().keys():
            return None
        statuses, right, first = found.values()
        are_counts = isinstance(statuses, dict) and all(
            status in [*Status] and _is_count(count) for status, count in statuses.items()
        )
        if not are_counts or not _is_count(right) or not (first is None or _is_place(first)):
            return None
        return cls(statuses, right, None if first is None else (first[0], first[1]))

    def stated(self) -> dict[str, Any]:
        """State it as JSON has it."""
        return {
            "statuses": self.statuses,
            "has_target": self.has_target,
            "first_invalid": self.first_invalid,
        }

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(self.statuses.values())

    def then(self, others: Tally) -> Tally:
        """Count the rows behind these too."""
        both = {*self.statuses, *others.statuses}
        counts = {s: self.statuses.get(s, 0) + others.statuses.get(s, 0) for s in sorted(both)}
        first = self.first_invalid
        if first is None and others.first_invalid is not None:
            first = self.rows + others.first_invalid[0], others.first_invalid[1]
        return Tally(counts, self.has_target + others.has_target, first)


def _is_count(found: Any) -> bool:
    return type(found) is int and found >= 0


def _is_place(found: Any) -> bool:
    is_pair = isinstance(found, list | tuple) and len(found) == 2
    return is_pair and _is_count(found[0]) and isinstance(found[1], str)

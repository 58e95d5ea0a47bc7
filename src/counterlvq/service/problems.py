"""Errors as problem details (RFC 9457): what is wrong, with which field, and what was expected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import counterlvq as clvq

__all__ = ["MEDIA_TYPE", "Problem", "problem_of"]

MEDIA_TYPE = "application/problem+json"
# What an error is called, and its status; the first class that fits counts.
_KINDS: tuple[tuple[type[Exception], str, int], ...] = (
    (clvq.UnknownFeatureError, "unknown feature", 422),
    (clvq.UnknownLabelError, "unknown label", 422),
    (clvq.ConstraintSyntaxError, "unreadable constraint", 422),
    (clvq.InvalidInputError, "invalid input", 422),
    (clvq.NotSupportedError, "not supported", 422),
    (clvq.TooLargeError, "too large", 413),
)


@final
@dataclass(eq=False)
class Problem(Exception):  # noqa: N818 - as the standard calls it
    """What is told instead of an answer."""

    status: int
    title: str
    detail: str
    field: str = ""
    retry_after: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the members of the standard, and the field that is wrong."""
        name = self.title.replace(" ", "-")
        out = {
            "type": f"urn:counterlvq:problem:{name}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
        }
        return out | ({"field": self.field} if self.field else {})

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> Problem:
        """Read what `to_dict` gave."""
        return cls(told["status"], told["title"], told["detail"], told.get("field", ""))


def problem_of(error: clvq.CounterlvqError, field: str = "") -> Problem:
    """Turn an error of the package into a problem."""
    title, status = next(
        ((title, status) for kind, title, status in _KINDS if isinstance(error, kind)),
        ("failed", 500),
    )
    return Problem(status, title, str(error), field)

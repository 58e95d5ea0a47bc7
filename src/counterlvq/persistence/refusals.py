"""Why a file cannot be loaded, in two parts: the reason, and what to do."""

from __future__ import annotations

__all__ = ["Refusal"]


# A reason quotes the file, and names in a file may be long.
_LONGEST = 1000


def _shortened(reason: str) -> str:
    if len(reason) <= _LONGEST:
        return reason
    return f"{reason[: _LONGEST // 2]} ... {reason[-_LONGEST // 2 :]}"


class Refusal(Exception):  # noqa: N818 - it never leaves this package
    """Raised by whatever reads a part of a file; `load` adds the name of the file."""

    def __init__(
        self, reason: str, step: str = "Save the model again with counterlvq.save."
    ) -> None:
        super().__init__(f"{_shortened(reason)} {step}")

    @classmethod
    def too_large(cls, what: str, needed: int, allowed: int) -> Refusal:
        """Refuse to make room for more than the caller allows."""
        return cls(
            f"{what} {needed} bytes; expected at most {allowed}.",
            "Pass a larger `max_bytes` if you trust the file.",
        )

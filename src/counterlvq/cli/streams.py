"""Standard streams that may be closed, as `<&-` and `>&-` leave them at a shell.

Python has None in their place. Whoever writes or reads there is told.
"""

from __future__ import annotations

import io
import os
import sys
from errno import EBADF
from typing import Any, BinaryIO, final

import counterlvq as clvq

__all__ = ["replace_closed", "standard_input"]


@final
class _Closed(io.RawIOBase):
    """In the place of standard output: nothing can be written there."""

    def writable(self) -> bool:
        return True

    def write(self, _: Any) -> int:
        words = "is closed; expected a place to write to. Open it, or name a file with --output"
        raise OSError(EBADF, words, "standard output")


def replace_closed() -> None:
    """Put something in the place of streams that are closed."""
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(_Closed(), "utf-8", write_through=True)
    if sys.stderr is None:  # nobody listens, which is no reason to fail
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def standard_input() -> BinaryIO:
    """Return the stream of bytes, or say that there is none."""
    if sys.stdin is None:
        raise clvq.InvalidInputError(
            "standard input is closed; expected a file there, because of the -. Name the file, or "
            "write it into the command with a pipe."
        )
    return sys.stdin.buffer

"""How much a file may ask for: room is made in proportion to the bytes that are there.

A file from a stranger says how many numbers it holds, how wide its text is, how far it unpacks.
None of that is believed beyond a multiple of its own size.
"""

from __future__ import annotations

from typing import BinaryIO

from counterlvq.errors import InvalidInputError

__all__ = ["MOST_BYTES", "MOST_WIDE", "allowed_bytes", "is_wide", "read_at_most"]

# What the smallest file may ask for, what each of its bytes adds, and what the largest may have.
_BASE = 16 << 20
_TIMES = 64
MOST_BYTES = 1 << 30
# Whole numbers beyond 64 bits can be chosen so that their hashes are all equal. This package tells
# numbers apart by other means (`arrays.key_of`), but whoever puts the labels or levels of a file
# into a set of its own takes time in the square of their count; so a list may hold no more of them.
MOST_WIDE = 64
_CHUNK = 1 << 20


def allowed_bytes(size: int, max_bytes: int | None = None) -> int:
    """How much memory may be taken for a file of so many bytes; `max_bytes` is the caller's word.

    Examples
    --------
    >>> allowed_bytes(1000)
    16841216
    >>> allowed_bytes(1000, max_bytes=5000)
    5000
    """
    return min(MOST_BYTES, _BASE + _TIMES * size) if max_bytes is None else max_bytes


def is_wide(value: object) -> bool:
    """Whether a value is a whole number beyond 64 bits.

    Examples
    --------
    >>> is_wide(2**64), is_wide(2**64 - 1), is_wide("text")
    (True, False, False)
    """
    return type(value) is int and not -(1 << 63) <= value < 1 << 64


def read_at_most(file: BinaryIO, count: int) -> bytes:
    """Read up to `count` bytes, without making room for more than there are.

    Examples
    --------
    >>> import io
    >>> read_at_most(io.BytesIO(b"short"), 10**12)
    b'short'
    """
    parts = []
    while count > 0:
        part = file.read(min(count, _CHUNK))
        if not part:
            break
        if not isinstance(part, bytes):
            raise InvalidInputError(
                'it is open as text; expected bytes. Open it with open(path, "rb").'
            )
        parts.append(part)
        count -= len(part)
    return b"".join(parts)

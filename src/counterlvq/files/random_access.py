"""A file that is looked at here and there, as if all of it were in memory."""

from __future__ import annotations

import os
from typing import BinaryIO, final

from counterlvq.files import read_at_most

__all__ = ["FileBytes"]

_BLOCK = 1 << 16


@final
class FileBytes:
    """The bytes of an open file, of which slices are read when they are asked for.

    Unlike a map of the file into memory, it survives a file that is cut while it is read: a slice
    is then shorter.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryFile() as file:
    ...     _ = file.write(b"all of it")
    ...     whole = FileBytes(file)
    ...     len(whole), whole[-2:], whole[:3]
    (9, b'it', b'all')
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._size = file, file.seek(0, os.SEEK_END)
        self._begin, self._held = 0, b""

    @property
    def path(self) -> str:
        """Where the file is."""
        return str(self._file.name)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, at: slice) -> bytes:
        begin, end, _ = at.indices(self._size)
        if begin < self._begin or end > self._begin + len(self._held):
            self._file.seek(begin)
            self._begin, self._held = begin, read_at_most(self._file, max(end - begin, _BLOCK))
        return self._held[begin - self._begin : end - self._begin]

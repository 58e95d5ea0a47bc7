"""Where rows come from: files of Parquet or CSV, cut into parts before any row is read.

How a source is cut depends on the files and the rows of a part alone, so that every run cuts it in
the same way and a part can be read without those before it.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import told

__all__ = ["BATCH_ROWS", "RAISED_BY", "Part", "PartBatches", "Source", "SourceFile", "named"]

# Rows that are in memory at a time.
BATCH_ROWS = 1 << 16
# What allows a file to take more memory than its size does.
RAISED_BY = "max_bytes (--max-memory)"
# Record batches of a part, and what is wrong with rows of each that cannot be read.
PartBatches = Iterator[tuple[Any, Mapping[int, str]]]


class Part(NamedTuple):
    """A piece of a source: row groups of a file, rows of one of them, or bytes of a file."""

    name: str
    file: int
    begin: int
    end: int  # behind the last row group, or the last byte
    rows: int  # of CSV as far as lines tell
    skipped: int = 0  # rows of a divided row group that belong to earlier parts


class SourceFile(NamedTuple):
    """A file, and by what it is told that it is still the same."""

    path: str  # from the folder of the source
    size: int
    modified: int  # nanoseconds
    hash: str  # of the contents of CSV, of the footer of Parquet

    @classmethod
    def of(cls, root: Path, path: str, content_hash: str) -> SourceFile:
        """Look at a file."""
        found = os.stat(root / path)
        return cls(path, found.st_size, found.st_mtime_ns, content_hash)


class Source(ABC):
    """Rows in files; picklable, so that workers can read parts of it."""

    kind: ClassVar[str]
    root: Path
    files: tuple[SourceFile, ...]
    schema: Any  # pyarrow.Schema of all rows

    @abstractmethod
    def parts(self, part_rows: int) -> tuple[Part, ...]:
        """Cut the source; each file has one part at least."""

    @abstractmethod
    def batches(self, part: Part) -> PartBatches:
        """Read a part, whatever was read before."""

    @contextmanager
    def in_turn(self) -> Iterator[Callable[[Part], PartBatches]]:
        """Read parts one behind the other; the same as `batches`, and quicker where it can be."""
        yield self.batches

    @abstractmethod
    def rows_before(self, part: Part) -> int:
        """Count the rows of the same file that come before a part."""

    def row_name(self, part: Part, before: int, row: int) -> str:
        """Name a row by its place in the file; `before` are those of the part that were read."""
        return f"row {self.rows_before(part) + before + row:,} of the file, counted from 0"

    def document(self) -> dict[str, Any]:
        """Describe the files, for the manifest."""
        return {"kind": self.kind, "files": [file._asdict() for file in self.files]}

    def refuse_changed(self, part: Part) -> None:
        """Refuse a file that was written to while it was read."""
        known = self.files[part.file]
        try:
            found = os.stat(self.root / known.path)
        except FileNotFoundError:
            raise InvalidInputError(
                f"{told(known.path)} is not there any more, and was when the run began; expected a "
                f"source that stays as it is. Put it back, and call it again."
            ) from None
        if (found.st_size, found.st_mtime_ns) != (known.size, known.modified):
            raise InvalidInputError(
                f"{told(known.path)} has changed while it was read; expected a source that stays "
                f"as it is. What is finished is from before; begin again in another folder."
            )


def named(file: int, begin: int, skipped: int | None = None) -> str:
    """Name a part by the file and the row group, or the piece, that it begins with.

    Parts of a divided row group have the number of its rows before them behind that.

    Examples
    --------
    >>> named(0, 3), named(0, 3, skipped=16384)
    ('part-00000-00003.parquet', 'part-00000-00003-0000016384.parquet')
    """
    within = "" if skipped is None else f"-{skipped:010d}"
    return f"part-{file:05d}-{begin:05d}{within}.parquet"

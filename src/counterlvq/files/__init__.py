"""Files: written whole or not at all, and read in proportion to their own size."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from counterlvq.errors import InvalidInputError

__all__ = [
    "MOST_BYTES",
    "MOST_WIDE",
    "abandon",
    "allowed_bytes",
    "is_wide",
    "naming_full_disks",
    "placed",
    "read_at_most",
    "read_within",
    "sync_folder",
    "whole_file",
]

# Hidden files that are being written, and whether they exist yet.
_unfinished: dict[str, bool] = {}
# Set as soon as one has been put in its place.
_placed = threading.Event()
# What writing may end with, of which the system does not say where.
_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write a file that takes its name only when it is complete and on the disk.

    What is written goes into a hidden file beside it, which is renamed at the end and removed if
    anything goes wrong. Whoever opens `path` sees the old content or the new one, whatever
    happens in between. A pipe or a device is written to as it is.

    Parameters
    ----------
    path : str or path

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_file(Path(folder) / "note.txt") as file:
    ...         _ = file.write(b"all of it")
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['note.txt']
    """
    mode = _mode_of(path)
    if mode is not None and not stat.S_ISREG(mode):
        with naming_full_disks(path), open(path, "wb") as file:
            yield file
        return
    target = os.path.realpath(path)  # a link stays one, and what it points to is replaced
    folder, name = os.path.split(target)
    # Systems count the bytes of a name, of which a letter may have several.
    begin = os.fsdecode(os.fsencode(name)[:80])
    part = os.path.join(folder, f".{begin}.{secrets.token_hex(8)}.part")
    _unfinished[part] = False
    try:
        with naming_full_disks(path), open(part, "xb") as file:
            _unfinished[part] = True
            if mode is not None:
                os.chmod(part, stat.S_IMODE(mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
        _placed.set()
    except BaseException:
        _discard(part)
        raise
    finally:
        _unfinished.pop(part, None)
    sync_folder(folder)


@contextmanager
def naming_full_disks(path: str | os.PathLike[str]) -> Iterator[None]:
    """Say of a disk that is full which file was to be written; systems do not.

    Examples
    --------
    >>> with naming_full_disks("answers.csv"):
    ...     raise OSError(errno.ENOSPC, "No space left on device")
    Traceback (most recent call last):
    ...
    OSError: [Errno 28] No space left on device: 'answers.csv'
    """
    try:
        yield
    except OSError as error:
        if error.errno in _FULL and error.filename is None:
            error.filename = os.fspath(path)
        raise


def placed() -> bool:
    """Whether this process has put a file in its place."""
    return _placed.is_set()


def abandon() -> None:
    """Remove what is unfinished; for a process that is about to end, whatever its threads do."""
    for part in list(_unfinished):
        _discard(part)


def _discard(part: str) -> None:
    """Remove a hidden file; one that was there and is gone has just been put in its place."""
    try:
        os.unlink(part)
    except FileNotFoundError:
        if _unfinished.get(part):
            _placed.set()
    except OSError:  # whatever ends this process is told, not this
        return


def _mode_of(path: str | os.PathLike[str]) -> int | None:
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Let the new name survive a loss of power, where folders can be synced at all."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # some file systems refuse; the file itself is safe
            os.fsync(handle)
    finally:
        os.close(handle)


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


def read_within(file: BinaryIO, most: int, name: str, instead: str) -> bytes:
    """Read a file whole if it has no more than `most` bytes; `instead` says what else to do.

    Examples
    --------
    >>> import io
    >>> read_within(io.BytesIO(b"a text"), 10, "a note", "Cut it")
    b'a text'
    """
    try:
        whole = b"" if _size_of(file) > most else read_at_most(file, most + 1)
    except MemoryError:
        raise InvalidInputError(
            f"{name} has more bytes than there is memory for; expected a smaller file. {instead}."
        ) from None
    if len(whole) > most or _size_of(file) > most:
        raise InvalidInputError(
            f"{name} has more than {most:,} bytes; expected at most that. {instead}."
        )
    return whole


def _size_of(file: BinaryIO) -> int:
    """How large a file says it is; 0 for pipes and others that do not."""
    try:
        return os.fstat(file.fileno()).st_size
    except OSError:
        return 0

"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

__all__ = ["whole_file"]


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
        with open(path, "wb") as file:
            yield file
        return
    target = os.path.realpath(path)  # a link stays one, and what it points to is replaced
    folder, name = os.path.split(target)
    # Systems count the bytes of a name, of which a letter may have several.
    begin = os.fsdecode(os.fsencode(name)[:80])
    part = os.path.join(folder, f".{begin}.{secrets.token_hex(8)}.part")
    try:
        with open(part, "xb") as file:
            if mode is not None:
                os.chmod(part, stat.S_IMODE(mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(part)
        raise
    _sync_folder(folder)


def _mode_of(path: str | os.PathLike[str]) -> int | None:
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None


def _sync_folder(folder: str) -> None:
    """Let the new name survive a loss of power, where folders can be synced at all."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # some file systems refuse; the file itself is safe
            os.fsync(handle)
    finally:
        os.close(handle)

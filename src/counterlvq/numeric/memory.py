"""Whether there is memory enough, before it is asked for.

A system that promises more than it has ends the process when the promise is called in. So what
grows with the square of the number of features, or faster, is looked at first.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar, final

from counterlvq.errors import TooLargeError

__all__ = ["FLOAT", "Kept", "free_memory", "refuse_too_large", "told_if_too_large"]

FLOAT = 8  # bytes of a number
Key = TypeVar("Key")
Value = TypeVar("Value")
# Below this nobody looks: reading how much is free takes longer than most answers.
_SMALL = 1 << 28
_MEMINFO = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")


@final
@dataclass(frozen=True, eq=False)
class Kept(Generic[Key, Value]):
    """What was prepared once, up to a size in all: the oldest leave first. Threads may share it.

    Examples
    --------
    >>> kept, made = Kept[str, int](2), []
    >>> for name in ("one", "two", "two", "three", "one"):
    ...     length = kept.get(name, lambda: made.append(name) or (len(name), 1))
    >>> made
    ['one', 'two', 'three', 'one']
    """

    most: int
    _known: dict[Key, tuple[Value, int]] = field(init=False, default_factory=dict)

    def __contains__(self, key: Key) -> bool:
        return key in self._known

    def known(self, key: Key) -> Value | None:
        """Look something up; None if it is not there."""
        found = self._known.get(key)
        return None if found is None else found[0]

    def get(self, key: Key, make: Callable[[], tuple[Value, int]]) -> Value:
        """Look something up, or make it; `make` says how large it is too."""
        known = self._known.get(key)
        if known is None:
            known = make()
            taken = known[1]
            # A list is made in one go, whatever other threads do.
            for old, (_, size) in reversed(list(self._known.items())):
                taken += size
                if taken > self.most:
                    self._known.pop(old, None)
            self._known[key] = known
        return known[0]


def refuse_too_large(what: str, size: float, instead: str) -> None:
    """Raise `TooLargeError` if `size` bytes are more than there are; `instead` says what to do."""
    if size < _SMALL:
        return
    free = free_memory()
    if free is not None and size > free:
        raise TooLargeError(
            f"{what} needs about {_shown(size)} of memory, and {_shown(free)} are free; {instead}."
        )


class told_if_too_large:  # noqa: N801 - it is called like a function
    """Say in words that memory has run out all the same, `what` was done at the time.

    A class, because a generator takes three times as long to enter, beside single rows.
    """

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, MemoryError) and not isinstance(error, TooLargeError):
            reason = f": {error}" if str(error) else ""
            raise TooLargeError(
                f"memory ran out while {self._what}{reason}. Ask about fewer rows at once, with a "
                f"smaller n_jobs, or leave out features."
            ) from error


def free_memory() -> int | None:
    """Bytes that this process can still have, or None where the system does not say."""
    known = [part for part in (_of_system(), _of_group(), _of_process()) if part is not None]
    return min(known) if known else None


def _of_system() -> int | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in _MEMINFO.read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None


def _of_group() -> int | None:
    """Read what a container leaves, by the second version of control groups."""
    with contextlib.suppress(OSError, ValueError):
        most = int((_GROUP / "memory.max").read_text("ascii"))  # "max" is no number
        return max(0, most - int((_GROUP / "memory.current").read_text("ascii")))
    return None


def _of_process() -> int | None:
    """Read what the limit on addresses leaves (ulimit -v)."""
    with contextlib.suppress(ImportError, OSError, ValueError, IndexError):
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if most == resource.RLIM_INFINITY:
            return None
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        return max(0, most - pages * resource.getpagesize())
    return None


def _shown(size: float) -> str:
    if size >= 1e9:
        return f"{size / 1e9:,.1f} GB"
    return f"{size / 1e6:,.0f} MB"

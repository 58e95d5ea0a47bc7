"""Something to look at while work goes on that has no steps to count."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

__all__ = ["working"]

_WAIT, _EVERY = 1.0, 0.5  # seconds


@contextmanager
def working(what: str) -> Iterator[None]:
    """Say on a terminal what takes so long, and for how long it has, after the first second."""
    if not sys.stderr.isatty():
        yield
        return
    done = Event()
    teller = Thread(target=_tell, args=(what, done), daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()


def _tell(what: str, done: Event) -> None:
    start = time.monotonic()
    if done.wait(_WAIT):
        return
    while not done.wait(_EVERY):
        sys.stderr.write(f"\r{what} ... {time.monotonic() - start:.0f} s")
        sys.stderr.flush()
    sys.stderr.write("\r\x1b[K")
    sys.stderr.flush()

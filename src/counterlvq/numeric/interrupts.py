"""Long calls into libraries that Ctrl-C cannot reach, made so that it can.

Python raises `KeyboardInterrupt` in the main thread, between two of its own steps. A library that
computes for a minute keeps the main thread from the next step, and one that calls back into Python
may lose the exception there: Numba does, and then says that it has no compiled object.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import TypeVar

__all__ = ["GivenUpError", "given_up_with", "interruptible"]

Result = TypeVar("Result")

# Seconds between two looks: where a wait without an end cannot be interrupted, as on Windows.
_LOOK = 0.1
# Seconds that a call has to stop when it is told to; then it is left alone.
_STOPPING = 1.0
# Set once nobody waits any more for what this thread does.
_given_up: ContextVar[threading.Event | None] = ContextVar("_given_up", default=None)


class GivenUpError(BaseException):
    """Nobody waits any more for what this thread does: no error that anybody may handle."""


@contextmanager
def given_up_with(event: threading.Event) -> Iterator[None]:
    """End the waits of `interruptible` in this thread, with `GivenUpError`, once `event` is set.

    Signals reach the main thread alone. Where that waits for others, it tells them by the event.
    """
    token = _given_up.set(event)
    try:
        yield
    finally:
        _given_up.reset(token)


def interruptible(work: Callable[[], Result], stop: Callable[[], object] | None = None) -> Result:
    """Return ``work()``, which the main thread has done by another one and waits for.

    An exception that a signal raises meanwhile ends the wait. The other thread is then told to
    `stop` and given a moment for that. Without `stop` it goes on by itself and holds up nobody, not
    even the end of the process: what it does has to be harmless when done to the end, or to a part.

    Other threads than the main one receive no signals and do the work themselves, unless
    `given_up_with` tells them when to end the wait.
    """
    event = _given_up.get()
    if event is None and threading.current_thread() is not threading.main_thread():
        return work()
    found: list[Result] = []
    failed: list[BaseException] = []
    done = threading.Event()
    context = copy_context()

    def serve() -> None:
        try:
            found.append(context.run(work))
        except BaseException as error:  # noqa: BLE001 - it is raised again where it is waited for
            failed.append(error)
        finally:
            done.set()

    server = threading.Thread(target=serve, name="counterlvq", daemon=stop is None)
    try:
        server.start()
        while not done.wait(_LOOK):
            if event is not None and event.is_set():
                raise GivenUpError
    except BaseException:
        if stop is not None:
            stop()
            done.wait(_STOPPING)
        raise
    if failed:
        raise failed.pop()
    return found.pop()

"""How the command ends when it is told to: Ctrl-C and SIGTERM, at any moment.

The first signal raises `KeyboardInterrupt` in the main thread, so that what is half done is cleared
away by those who did it. That needs the main thread to run Python code, the exception to reach its
end, and nobody to keep it waiting, of which none can be relied on. So a thread looks on: it ends
the process a second later, or at once when the signal comes again. While modules are imported, and
after the work, there is nothing to clear away and the process ends at the first signal: libraries
turn exceptions in the midst of their import into errors of their own.

Signals may come at any distance: the handler of a second one runs in the midst of what the main
thread does about the first, while the other thread is about to do the same. So nothing here waits
for a lock. Whoever comes first does it, comes back to it if it was the same thread, and has others
wait for a moment only.

This is the first module that the command imports, so it imports next to nothing itself.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any, NoReturn

__all__ = ["ENDING", "Ending"]

# Seconds for the main thread to end by itself, and for one thread that another is at an end with;
# less than two in all.
_PATIENCE = 1.0
_MOMENT = 0.5
_WORDS = {"SIGINT": "interrupted", "SIGTERM": "ended by SIGTERM"}


class Ending:
    """What is known of the end of this process, and how it is brought about."""

    def __init__(self) -> None:
        self.came: int | None = None  # the first signal
        self.remark: str | None = None  # what to say of the work instead of what was written
        self.stdout_begun = self.stdout_done = False
        self._raised = False
        self._unwinds = False  # whether an exception leads the main thread to its end
        self._first: dict[str, list[int]] = {}  # who does what is done once: a thread, in a list
        self._told = threading.Event()
        self.helpers: list[Any] = []  # processes that end with this one
        self._stderr: int | None = None

    def install(self) -> None:
        """Answer to signals from now on."""
        self._take_places()
        try:
            # A copy: libraries send the usual one elsewhere for a while.
            self._stderr = os.dup(2)
        except OSError:  # there is no such stream
            self._stderr = None
        self._silence_leftovers()
        atexit.register(self._close)
        if os.name == "posix":
            ours, theirs = os.pipe()
            os.set_blocking(theirs, False)
            signal.set_wakeup_fd(theirs, warn_on_full_buffer=False)
            threading.Thread(target=self._look_on, args=(ours,), daemon=True).start()
            os.register_at_fork(after_in_child=self._forget)
        for name in _WORDS:
            signal.signal(getattr(signal, name), self._handle)

    @staticmethod
    def _take_places() -> None:
        """Open streams that are closed, so that no file gets their number and their words."""
        for number in range(3):
            try:
                os.fstat(number)
            except OSError:
                os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free

    def work_begins(self) -> None:
        """From here on there may be something to clear away."""
        self.remark, self.stdout_begun, self.stdout_done = None, False, False
        self._unwinds = True

    def stand_aside(self) -> None:
        """Leave signals to whoever ends by itself, such as a server that finishes its answers."""
        if os.name == "posix":
            signal.set_wakeup_fd(-1)
        for name in _WORDS:
            signal.signal(getattr(signal, name), signal.SIG_DFL)

    def work_is_over(self) -> None:
        """All has been cleared away, and told."""
        self._unwinds = False

    @property
    def code(self) -> int:
        """Exit code of a process that was told to end; without a signal, as by Ctrl-C."""
        return 128 + (self.came or signal.SIGINT)

    def line(self) -> str:
        """Say that the work was ended, and what it leaves behind."""
        word = _WORDS[signal.Signals(self.came or signal.SIGINT).name]
        return f"{word}; {self.remark or self._left()}"

    def tell(self) -> None:
        """Say it once, where people look; come back when it is said."""
        if self._stderr is None:
            return
        if not self._is_first("tell"):
            if not self._is_mine("tell"):
                self._told.wait(_MOMENT)
            return
        # What a progress bar has begun stays as it is.
        begin = "\n" if os.isatty(self._stderr) else ""
        try:
            os.write(self._stderr, f"{begin}counterlvq: {self.line()}\n".encode())
        except OSError:  # nobody listens any more
            return
        finally:
            self._told.set()

    def _left(self) -> str:
        placed = _function("counterlvq.files", "placed")
        if placed is not None and placed():
            return "the output had been written, whole"
        if self.stdout_done:
            return "the output had been written to standard output, whole"
        if self.stdout_begun:
            return "what was written to standard output may not be all"
        return "nothing was written"

    def _handle(self, number: int, _: FrameType | None) -> None:
        self._note(number)
        if self._is_mine("end") or (self._is_mine("tell") and not self._told.is_set()):
            return  # to what this handler has interrupted, which ends the process
        if self._raised or not self._unwinds:
            self._end()
        self._raised = True
        raise KeyboardInterrupt

    def _is_first(self, task: str) -> bool:
        """Whether nobody has been at it before; one step, that no signal divides."""
        me = [threading.get_ident()]
        return self._first.setdefault(task, me) is me

    def _is_mine(self, task: str) -> bool:
        """Whether this thread is or was at it."""
        return self._first.get(task) == [threading.get_ident()]

    def _note(self, number: int) -> None:
        if self.came is None:
            self.came = number

    def _look_on(self, ours: int) -> None:
        """Read the signals as they come, and see to it that the process ends."""
        known = {int(getattr(signal, name)) for name in _WORDS}
        came = 0
        while True:
            for number in os.read(ours, 1):
                if number not in known:
                    continue
                self._note(number)
                came += 1
                if came > 1:
                    self._end()
                timer = threading.Timer(_PATIENCE, self._end)
                timer.daemon = True
                timer.start()

    def _end(self) -> NoReturn:
        """End this process on the spot, with nothing left that was not there before."""
        try:
            if self._is_first("end"):
                self._clear_away()
            else:
                time.sleep(_MOMENT)  # for the thread that is at it
        finally:
            os._exit(self.code)

    def _clear_away(self) -> None:
        abandon = _function("counterlvq.files", "abandon")
        if abandon is not None:
            abandon()
        workers = _function("multiprocessing", "active_children")
        for worker in workers() if workers is not None else ():
            worker.kill()
        for helper in list(self.helpers):
            helper.kill()
        self.tell()

    def _silence_leftovers(self) -> None:
        """Show no traceback of what an interrupt leaves behind in libraries and other threads."""
        hooks: list[tuple[Any, str]] = [
            (sys, "excepthook"), (sys, "unraisablehook"), (threading, "excepthook"),
        ]  # fmt: skip
        for place, name in hooks:
            setattr(place, name, self._unless_ending(getattr(place, name)))

    def _unless_ending(self, show: Any) -> Any:
        def hook(*what: Any) -> None:
            if self.came is None:
                show(*what)

        return hook

    @staticmethod
    def _forget() -> None:
        """Leave signals of a forked process to itself: nobody looks on there."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _close(self) -> None:
        """Let the interpreter close down undisturbed: the last thing it does of ours.

        Told to end, it would end itself by SIGINT instead of an exit code, if the exception has
        passed through code that was made from a string, as that of dataclasses is.
        """
        if self.came is not None:
            os._exit(self.code)
        for name in _WORDS:
            signal.signal(getattr(signal, name), signal.SIG_IGN)


def _function(module: str, name: str) -> Callable[[], Any] | None:
    """Return a function of a module that has been imported, and as far as it has been."""
    return getattr(sys.modules.get(module), name, None)


ENDING = Ending()

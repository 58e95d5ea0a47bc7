"""How the command ends when it is told to: Ctrl-C and SIGTERM, at any moment.

The first signal raises `KeyboardInterrupt` in the main thread, so that what is half done is cleared
away by those who did it. That needs the main thread to run Python code, the exception to reach its
end, and nobody to keep it waiting, of which none can be relied on. So a thread looks on: it ends
the process a second later, or at once when the signal comes again. While modules are imported, and
after the work, there is nothing to clear away and the process ends at the first signal: libraries
turn exceptions in the midst of their import into errors of their own.

This is the first module that the command imports, so it imports next to nothing itself.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, NoReturn

__all__ = ["ENDING", "Ending"]

# Seconds for the main thread to end by itself; with what follows less than two in all.
_PATIENCE = 1.0
_WORDS = {"SIGINT": "interrupted", "SIGTERM": "ended by SIGTERM"}


class Ending:
    """What is known of the end of this process, and how it is brought about."""

    def __init__(self) -> None:
        self.came: int | None = None  # the first signal
        self.remark: str | None = None  # what to say of the work instead of what was written
        self.stdout_begun = self.stdout_done = False
        self._raised = False
        self._unwinds = False  # whether an exception leads the main thread to its end
        self._told = False
        self._once = threading.Lock()
        self._stderr: int | None = None

    def install(self) -> None:
        """Answer to signals from now on."""
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

    def work_begins(self) -> None:
        """From here on there may be something to clear away."""
        self.remark, self.stdout_begun, self.stdout_done = None, False, False
        self._unwinds = True

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
        """Say it once, where people look."""
        if self._told or self._stderr is None:
            return
        self._told = True
        # What a progress bar has begun stays as it is.
        begin = "\n" if os.isatty(self._stderr) else ""
        try:
            os.write(self._stderr, f"{begin}counterlvq: {self.line()}\n".encode())
        except OSError:  # nobody listens any more
            return

    def _left(self) -> str:
        files = sys.modules.get("counterlvq.files")
        if files is not None and files.placed():
            return "the output had been written, whole"
        if self.stdout_done:
            return "the output had been written to standard output, whole"
        if self.stdout_begun:
            return "what was written to standard output may not be all"
        return "nothing was written"

    def _handle(self, number: int, _: FrameType | None) -> None:
        self._note(number)
        if self._raised or not self._unwinds:
            self._end()
        self._raised = True
        raise KeyboardInterrupt

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
        if not self._once.acquire(blocking=False):
            threading.Event().wait()  # another thread is at it
        try:
            files = sys.modules.get("counterlvq.files")
            if files is not None:
                files.abandon()
            self._end_workers()
            self.tell()
        finally:
            os._exit(self.code)

    @staticmethod
    def _end_workers() -> None:
        multiprocessing = sys.modules.get("multiprocessing")
        if multiprocessing is not None:
            for worker in multiprocessing.active_children():
                worker.kill()

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


ENDING = Ending()

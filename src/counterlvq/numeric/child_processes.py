"""Processes that end with the one that started them, however that one ends.

On Linux the system sees to it, also where a process is stopped, or in a library that lets no
Python code look. Everywhere a thread looks at the parent now and then.

Run as a program, `child_processes.py PARENT PROGRAM ...` runs another program of Python so. It
needs the standard library only, as that program may.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import runpy
import signal
import sys
import time
from threading import Thread

__all__ = ["end_with"]

_LOOK = 1.0  # seconds between two looks at the parent
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux


def end_with(parent: int) -> None:
    """Let this process end with its parent, or on Linux with the thread there that started it."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # then the other way has to do
            ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    """Leave when the parent has ended; also if that was before anybody looked."""
    while os.getppid() == parent:
        time.sleep(_LOOK)
    os._exit(1)


if __name__ == "__main__":
    # On Windows a launcher of Python may stand in between.
    end_with(int(sys.argv[1]) if os.name == "posix" else os.getppid())
    del sys.argv[:2]
    runpy.run_path(sys.argv[0], run_name="__main__")

"""Rows asked of other processes, which end with the batch and with the process that asks.

They are started here, as plain interpreters that talk over their standard streams, and not
through joblib or `multiprocessing`, because

- a child of `multiprocessing` that has used joblib's processes does not end: both wait for each
  other at exit;
- `multiprocessing` runs the user's script again in each process, which needs a guard that
  scripts and notebooks often lack, and forbids children of its own pools to have children;
- a forked process inherits locks that nobody opens there.

A worker leaves when its input ends, which the system sees to however this process ends; on Linux
it also asks to be ended then, because a running cone program lets no Python code look.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.spawn import get_executable
from queue import SimpleQueue
from threading import Lock, Thread
from typing import IO, Any, NamedTuple, final

from counterlvq.errors import NotSupportedError, WorkerLostError
from counterlvq.numeric.child_processes import end_with

__all__ = ["ask_in_processes", "serve"]

# The worker finds the package where this process found it, whatever changed `sys.path` since.
_BOOT = (
    "import json, sys; "
    "sys.path[:] = json.loads(open(0, 'rb', buffering=0, closefd=False).readline()); "
    "from counterlvq.numeric.worker_processes import serve; serve()"
)
_SIZE = 8  # bytes that say how long a message is
# Workers share the cores: libraries that start threads in each of them would fight for these.
_THREADS = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "VECLIB")
_GRACE = 5.0  # seconds for a worker to leave by itself, when all is done
_MOMENT = 0.2  # seconds in which whatever ended one worker may end others

_ANSWER, _ERROR, _UNREAD = b"a", b"e", b"u"


def ask_in_processes(
    ask: Callable[[int], Any], count: int, jobs: int, take: Callable[[int, Any], None]
) -> None:
    """Call `ask` for the numbers below `count` in `jobs` processes; `take` gets what comes back.

    An error of `ask` is raised here, and so is an interrupt; no process is left behind.
    """
    team = _Team(_packed(ask), min(jobs, count))
    with team:
        for number, answer in team.answers(count):
            take(number, answer)


# --- in the process that asks ---------------------------------------------------------------------


class _Told(NamedTuple):
    """What a worker sent, or that it will send nothing more."""

    worker: _Worker
    number: int
    kind: bytes = b""
    content: bytes = b""


@final
@dataclass(eq=False)
class _Worker:
    """One process, and the number that it works on."""

    process: subprocess.Popen[bytes]
    number: int = -1

    @classmethod
    def start(cls, jobs: int) -> _Worker:
        """Start an interpreter like this one, out of reach of the terminal's Ctrl-C."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        share = str(max(1, (cores or 1) // jobs))
        limits = {f"{name}_NUM_THREADS": share for name in _THREADS}
        limits["VECLIB_MAXIMUM_THREADS"] = share
        apart: dict[str, Any] = {"process_group": 0}
        if sys.platform == "win32":
            apart = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
        try:
            process = subprocess.Popen(
                [_interpreter(), *_flags(), "-c", _BOOT],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=limits | os.environ,
                **apart,
            )
        except OSError as error:
            raise NotSupportedError(
                f"no worker process could be started ({error}); ask with n_jobs=1."
            ) from error
        return cls(process)

    def converse(self, task: bytes, numbers: Iterator[int], turn: Lock, told: _Told_Queue) -> None:
        """Hand over the task and one number after another; put what comes back into a queue."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        into, out = self.process.stdin, self.process.stdout
        try:
            into.write(_found_here())
            _send(into, task)
            while True:
                with turn:
                    number = next(numbers, None)
                if number is None:
                    return
                self.number = number
                _send(into, str(number).encode())
                reply = _receive(out)
                self.number = -1
                told.put(_Told(self, number, reply[:1], reply[1:]))
        except (OSError, EOFError, ValueError):  # it has ended, or this process ends it
            told.put(_Told(self, self.number))

    def leave(self) -> None:
        """Wait until the worker has left, for a while."""
        with contextlib.suppress(OSError, ValueError):
            assert self.process.stdin is not None
            self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_GRACE)

    def end(self) -> None:
        """End the worker now."""
        if self.process.poll() is None:
            self.process.kill()


_Told_Queue = SimpleQueue[_Told]


@final
class _Team:
    """Workers on one task, for as long as the context is open."""

    def __init__(self, task: bytes, jobs: int) -> None:
        self._task, self._jobs = task, jobs
        self._workers: list[_Worker] = []
        self._threads: list[Thread] = []

    def __enter__(self) -> _Team:
        try:
            # By this thread, which stays until they are done: on Linux they end with it.
            for _ in range(self._jobs):
                self._workers.append(_Worker.start(self._jobs))
        except BaseException:
            self._close(in_order=False)
            raise
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._close(in_order=kind is None)

    def answers(self, count: int) -> Iterator[tuple[int, Any]]:
        """Numbers with their answers, in the order in which they come."""
        numbers, turn, told = iter(range(count)), Lock(), _Told_Queue()
        for worker in self._workers:
            words = (self._task, numbers, turn, told)
            self._threads.append(Thread(target=worker.converse, args=words, daemon=True))
            self._threads[-1].start()
        for done in range(count):
            heard = told.get()
            if heard.kind == _ANSWER:
                yield heard.number, _unpacked(heard.content)
            elif heard.kind == _ERROR:
                raise _unpacked(heard.content)
            elif heard.kind == _UNREAD:
                raise NotSupportedError(
                    f"the model cannot be put together again in a worker process "
                    f"({heard.content.decode()}). Define its class in a module that can be "
                    f"imported, or ask with n_jobs=1."
                )
            else:
                raise self._loss(heard, done, count)

    def _loss(self, first: _Told, done: int, count: int) -> WorkerLostError:
        """Say what is lost with a worker that has ended, and with others that ended with it."""
        time.sleep(_MOMENT)
        gone = [worker for worker in self._workers if worker.process.poll() is not None]
        held = {first.number, *(worker.number for worker in gone)} - {-1}
        rows = tuple(sorted(held))
        with contextlib.suppress(subprocess.TimeoutExpired):
            first.worker.process.wait(_GRACE)
        how = _way_out(first.worker.process.returncode)
        if not rows:
            return WorkerLostError(
                f"a worker process ended ({how}) before it could begin; no row was lost to it, and "
                f"none is returned. Ask again, or with n_jobs=1."
            )
        named = f"row {rows[0]}" if len(rows) == 1 else f"rows {', '.join(map(str, rows))}"
        return WorkerLostError(
            f"a worker process ended ({how}) while it answered; lost: {named}. {done} of {count} "
            f"rows were answered before, and none is returned. If memory ran out, which systems "
            f"answer by ending a process, ask with a smaller n_jobs; to see whether a row is the "
            f"cause, explain row {rows[0]} alone. The next batch starts new processes.",
            rows,
        )

    def _close(self, *, in_order: bool) -> None:
        if in_order:
            for worker in self._workers:
                worker.leave()
        for worker in self._workers:
            worker.end()
        for worker in self._workers:
            worker.process.wait()
        for thread in self._threads:
            thread.join()
        for worker in self._workers:
            for stream in (worker.process.stdin, worker.process.stdout):
                with contextlib.suppress(OSError):
                    if stream is not None:
                        stream.close()


def _interpreter() -> str:
    found = get_executable()
    if not found or getattr(sys, "frozen", False):
        raise NotSupportedError(
            "worker processes need a Python interpreter, and this program does not say which "
            "(sys.executable); ask with n_jobs=1."
        )
    return os.fsdecode(found)


def _flags() -> list[str]:
    """Options of this interpreter that a worker should have as well, and no import from the cwd."""
    flags = sys.flags
    words = ["-P", *(f"-W{option}" for option in sys.warnoptions)]
    words += ["-O"] * flags.optimize
    words += ["-B"] * flags.dont_write_bytecode
    words += ["-E"] * flags.ignore_environment
    words += ["-s"] * flags.no_user_site
    for name, value in sys._xoptions.items():
        words.append(f"-X{name}" if value is True else f"-X{name}={value}")
    return words


def _found_here() -> bytes:
    """Where this process imports from, as one line."""
    return json.dumps([str(place) for place in sys.path]).encode() + b"\n"


def _way_out(code: int | None) -> str:
    if code is None:
        return "it no longer answers"
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"by {signal.Signals(-code).name}"
    except ValueError:
        return f"by signal {-code}"


# --- in a worker ----------------------------------------------------------------------------------


def serve() -> None:
    """Answer one number after another, until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asks ends this process
    # Not only when the input ends: a process forked from the parent may keep that open.
    end_with(os.getppid())
    # What the user's model prints does not get in between: it goes to standard error.
    into, out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # there is no such stream
        os.dup2(nowhere, 1)
    asked = SimpleQueue[bytes]()
    Thread(target=_listen, args=(into, asked), daemon=True).start()
    task = asked.get()
    try:
        ask = _unpacked(task)
    except Exception as error:  # noqa: BLE001 - it is told to the process that asks
        reason = f"{type(error).__name__}: {error}".partition("\n")[0]
        asked.get()
        _send(out, _UNREAD + reason.encode(errors="backslashreplace"))
        return
    while True:
        _send(out, _reply(ask, int(asked.get())))


def _reply(ask: Callable[[int], Any], number: int) -> bytes:
    try:
        return _ANSWER + _packed(ask(number))
    except BaseException as error:  # noqa: BLE001 - raised again by the process that asks
        where = "".join(traceback.format_exception(error))
        error.add_note(f"raised in a worker process, for row {number}:\n{where}")
        try:
            return _ERROR + _packed(error)
        except Exception:  # noqa: BLE001 - an error that cannot be sent is told in words
            return _ERROR + _packed(RuntimeError(f"row {number}: {where}"))


def _listen(into: IO[bytes], asked: SimpleQueue[bytes]) -> None:
    """Read what is asked; when nothing more can come, leave, whatever is under way."""
    try:
        while True:
            asked.put(_receive(into))
    except (EOFError, OSError):
        os._exit(0)


# --- between the two ------------------------------------------------------------------------------


def _send(into: IO[bytes], message: bytes) -> None:
    into.write(len(message).to_bytes(_SIZE, "big"))
    into.write(message)
    into.flush()


def _receive(out: IO[bytes]) -> bytes:
    size = out.read(_SIZE)
    if len(size) < _SIZE:
        raise EOFError
    message = out.read(int.from_bytes(size, "big"))
    if len(message) < int.from_bytes(size, "big"):
        raise EOFError
    return message


def _packed(value: Any) -> bytes:
    """Write a value for another process, with classes of the user's script and notebook."""
    import cloudpickle  # rarely needed

    try:
        return bytes(cloudpickle.dumps(value))
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise NotSupportedError(
            f"the model cannot be sent to a worker process ({reason}); ask with n_jobs=1."
        ) from error


def _unpacked(message: bytes) -> Any:
    """Read what a process of this same batch has written."""
    import cloudpickle

    return cloudpickle.load(io.BytesIO(message))

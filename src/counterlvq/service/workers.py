"""Long searches in processes of their own, one at a time in each.

A worker is a plain interpreter that reads requests from its standard input and writes answers to
its standard output, a line each. It is given the model that the service has, whatever becomes of
its file, and it ends with this process, however that ends. A search that nobody waits for any more
ends with its worker, and another one takes its place.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, BinaryIO, final

import counterlvq as clvq
from counterlvq.numeric.child_processes import end_with
from counterlvq.service.answering import Answering, answered
from counterlvq.service.limits import Limits
from counterlvq.service.model_description import Model
from counterlvq.service.problems import Problem

__all__ = ["Workers", "work"]

_BOOT = (
    "import json, sys; asked = json.loads(sys.stdin.buffer.readline() or sys.exit(1)); "
    "sys.path[:] = asked['path']; from counterlvq.service.workers import work; "
    "work(asked['parent'], asked['bytes'], sys.stdin.buffer, sys.stdout.buffer)"
)
# Bytes of one line of a worker.
_LINE = 1 << 28
# Seconds beyond the limit of a request, for what looks at no clock.
_GRACE = 5.0
# Seconds for a worker to load what it needs, before the time of a request begins.
_START = 120.0
# Libraries that start threads of their own in each worker would fight for the cores.
_THREADS = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "VECLIB")


@final
@dataclass(eq=False)
class Workers:
    """As many workers as `limits` allow: one at once, the others when they are first needed."""

    model: bytes  # as a file holds it
    limits: Limits
    _free: list[asyncio.subprocess.Process] = field(default_factory=list)
    _busy: int = 0
    _waiting: int = 0
    _turn: asyncio.Condition = field(default_factory=asyncio.Condition)

    @classmethod
    def of(cls, model: Model, limits: Limits) -> Workers:
        """Workers for a model."""
        file = BytesIO()
        clvq.save(model, file)
        return cls(file.getvalue(), limits)

    async def prepare(self) -> None:
        """Start a worker, so that the first long search does not wait for that."""
        async with self._place():
            if not self._free:
                self._free.append(await self._started())

    async def ask(self, kind: str, request: dict[str, Any]) -> dict[str, Any]:
        """Let a worker answer, as `answered` does; cancelling this ends the search."""
        async with self._place():
            while True:
                is_new = not self._free
                worker = await self._started() if is_new else self._free.pop()
                try:
                    told = await self._exchanged(worker, kind, request)
                except OSError:  # it has ended, perhaps long ago: a new one is asked, once
                    await _ended(worker)
                    if is_new:
                        raise _lost() from None
                except BaseException:
                    await _ended(worker)
                    raise
                else:
                    self._free.append(worker)
                    return told

    @contextlib.asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        if self._waiting >= self.limits.waiting:
            raise Problem(
                503,
                "busy",
                f"{self.limits.searches} searches are running and {self._waiting} wait already; "
                f"try again later.",
                retry_after=max(1, round(self.limits.seconds / 4)),
            )
        async with self._turn:
            self._waiting += 1
            try:
                await self._turn.wait_for(lambda: self._busy < self.limits.searches)
            finally:
                self._waiting -= 1
            self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1
            async with self._turn:
                self._turn.notify()

    async def _exchanged(
        self, worker: asyncio.subprocess.Process, kind: str, request: dict[str, Any]
    ) -> dict[str, Any]:
        assert worker.stdin is not None
        assert worker.stdout is not None
        asked = {"kind": kind, "request": request, "seconds": self.limits.seconds}
        if worker.returncode is not None or worker.stdin.is_closing():
            raise ConnectionResetError
        worker.stdin.write(json.dumps(asked).encode() + b"\n")
        try:
            async with asyncio.timeout(self.limits.seconds + _GRACE):
                await worker.stdin.drain()
                line = await worker.stdout.readline()
        except TimeoutError:
            raise Problem(
                504, "out of time", f"no answer came within {self.limits.seconds:g} seconds."
            ) from None
        except ValueError:
            raise Problem(
                413, "too large", f"the answer has more than {_LINE:,} bytes; ask about fewer rows."
            ) from None
        if not line:
            raise ConnectionResetError
        told: dict[str, Any] = json.loads(line)
        return told

    async def _started(self) -> asyncio.subprocess.Process:
        single = {f"{name}_NUM_THREADS": "1" for name in _THREADS}
        worker = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            _BOOT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_LINE,
            env={**os.environ, **single},
            start_new_session=True,  # Ctrl-C is for the server, which ends its workers
        )
        assert worker.stdin is not None
        assert worker.stdout is not None
        boot = {"path": sys.path, "parent": os.getpid(), "bytes": len(self.model)}
        worker.stdin.write(json.dumps(boot).encode() + b"\n" + self.model)
        try:
            async with asyncio.timeout(_START):
                await worker.stdin.drain()
                is_ready = bool(await worker.stdout.readline())
        except (TimeoutError, OSError):
            is_ready = False
        except asyncio.CancelledError:
            await _ended(worker)
            raise
        if not is_ready:
            await _ended(worker)
            raise Problem(500, "worker lost", "a process for searches could not be started.")
        return worker

    async def close(self) -> None:
        """End all workers."""
        while self._free:
            await _ended(self._free.pop())


def _lost() -> Problem:
    return Problem(500, "worker lost", "the process that searched was ended from outside.")


async def _ended(worker: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        worker.kill()
    await asyncio.shield(worker.wait())


def work(parent: int, size: int, asked: BinaryIO, told: BinaryIO) -> None:
    """Say that it is ready, then answer requests, a line each: the whole life of a worker."""
    end_with(parent)
    model = asked.read(size)
    if len(model) < size:  # the service has ended meanwhile
        return
    try:
        answering = Answering(clvq.load(BytesIO(model)))
        _tell(told, {})
        for line in asked:
            request = json.loads(line)
            kind, seconds = request["kind"], request["seconds"]
            _tell(told, answered(answering, kind, request["request"], seconds))
    except BrokenPipeError:  # nobody is left to be told
        os._exit(1)


def _tell(told: BinaryIO, answer: dict[str, Any]) -> None:
    told.write(json.dumps(answer, allow_nan=False).encode() + b"\n")
    told.flush()

"""Run the service until it is told to end: requests that were taken are answered first."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any, final

import uvicorn

import counterlvq as clvq
from counterlvq.presentation.progress import working
from counterlvq.service.body_limits import Arrivals
from counterlvq.service.guard import LOG
from counterlvq.service.limits import Limits

__all__ = ["listening", "run_service"]

# Requests that may be on their way at the same time.
_BACKLOG = 2_048
# Seconds in which questions that are on their way are still taken when the service ends.
_LAST_CALL = 0.5


def listening(host: str, port: int) -> list[socket.socket]:
    """Open a socket at each address of a host; nothing but the system can say whether it may."""
    try:
        found = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (OSError, UnicodeError) as error:
        raise clvq.InvalidInputError(
            f"--host is {host!r}, of which no address is known ({_words(error)}); expected a name "
            f"or an address of this machine."
        ) from None
    out: list[socket.socket] = []
    refusal: OSError | None = None
    for family, kind, protocol, _, address in dict.fromkeys(found):
        try:
            # The same port for all addresses of a name, where the first was free to choose.
            free = address if port or not out else (address[0], out[0].getsockname()[1])
            out.append(_bound(family, kind, protocol, free))
        except OSError as error:
            refusal = error
            if error.errno == errno.EADDRINUSE:
                break
    if not out or (port and refusal is not None and refusal.errno == errno.EADDRINUSE):
        for opened in out:
            opened.close()
        raise clvq.InvalidInputError(
            f"nothing can listen at {host}:{port} ({_words(refusal)}); expected a free port of an "
            f"address of this machine. Try --port 0."
        )
    return out


def _bound(family: int, kind: int, protocol: int, address: Any) -> socket.socket:
    made = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
        # Two may be bound to one address; only one can listen.
        made.listen(_BACKLOG)
    except OSError:
        made.close()
        raise
    return made


def _words(error: Exception | None) -> str:
    return str(getattr(error, "strerror", None) or error)


@final
class _Server(uvicorn.Server):
    """A server that ends when it is told to, and says where it is once it listens."""

    told: Callable[[str], None]
    arrivals: Arrivals

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Finish what was taken at the first signal, and end at the second."""
        before = {
            number: signal.signal(number, self.handle_exit)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take no more requests; at the second signal end, and workers end with this process."""
        if self.should_exit:
            os._exit(128 + sig)
        self.should_exit = True

    async def startup(self, sockets: Any = None) -> None:
        """Listen, and tell at which address."""
        with working("getting ready (the first time this takes a minute)"):
            await super().startup(sockets)
        for server in self.servers if self.started else ():
            host, port = server.sockets[0].getsockname()[:2]
            self.told(f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/")

    async def shutdown(self, sockets: Any = None) -> None:
        """Answer what has arrived, and wait no longer for what has not.

        A question that stands in a connection that is kept open has arrived, too, even if nobody
        has read it: connections that look idle are closed a moment later. Until then answers close
        theirs.
        """
        self.arrivals.hurry()
        for server in self.servers:
            server.close()
        clock = asyncio.get_running_loop().time
        until = clock() + _LAST_CALL
        while self.server_state.connections and clock() < until:
            await asyncio.sleep(0.02)
        await super().shutdown(sockets)


def run_service(
    app: Any,
    sockets: Sequence[socket.socket],
    limits: Limits,
    arrivals: Arrivals,
    told: Callable[[str], None],
    *,
    is_logged: bool = True,
) -> None:
    """Serve until a signal comes; `told` is given each address.

    Requests are logged unless `is_logged` is False; failures always are.
    """
    # Names of processes and threads are looked up for each line, and never told.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter('{"time": "%(asctime)s", "log": %(message)s}'))
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO if is_logged else logging.ERROR)
    LOG.propagate = False
    config = uvicorn.Config(
        app,
        access_log=False,
        log_level="error",
        server_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=max(1, round(limits.seconds) + 5),
        limit_concurrency=1_000,
    )
    server = _Server(config)
    server.told, server.arrivals = told, arrivals
    asyncio.run(server.serve(sockets=list(sockets)))

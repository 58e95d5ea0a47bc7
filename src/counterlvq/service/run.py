"""Run the service until it is told to end: requests that were taken are answered first."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any, final

import uvicorn

from counterlvq.service.guard import LOG
from counterlvq.service.limits import Limits

__all__ = ["LOOPBACK", "run_service"]

# Names of this machine for itself.
LOOPBACK = ("localhost", "127.0.0.1", "[::1]", "::1")


@final
class _Server(uvicorn.Server):
    """A server that ends when it is told to, and says where it is once it listens."""

    told: Callable[[str], None]

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

    async def startup(self, sockets: Any = None) -> None:
        """Listen, and tell at which address."""
        await super().startup(sockets)
        for server in self.servers if self.started else ():
            host, port = server.sockets[0].getsockname()[:2]
            self.told(f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/")


def run_service(
    app: Any, host: str, port: int, limits: Limits, told: Callable[[str], None]
) -> bool:
    """Serve until a signal comes; `told` is given the address. Return whether it has listened."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter('{"time": "%(asctime)s", "log": %(message)s}'))
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)
    LOG.propagate = False
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        access_log=False,
        log_level="error",
        server_header=False,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=max(1, round(limits.seconds) + 5),
        limit_concurrency=1_000,
    )
    server = _Server(config)
    server.told = told
    asyncio.run(server.serve())
    return bool(server.started)

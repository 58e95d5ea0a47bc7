"""What every request passes first: host, token, kind and size of the body; and the log."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, final

from counterlvq.service.body_limits import Arrivals, too_large
from counterlvq.service.limits import Limits
from counterlvq.service.problems import MEDIA_TYPE, Problem

__all__ = ["LOG", "Guard", "Receive", "Scope", "Send", "failure_of"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

LOG = logging.getLogger("counterlvq.service")
# What is open without the token: that the service runs, and the page, which holds no data.
_OPEN = ("/health", "/", "/page/")
# What takes bodies; elsewhere there is nothing that a page of another origin could bring about.
_POSTED = ("/explain", "/verify")
# Of the length of a body; more are no length.
_DIGITS = 18
_CLOSE = (b"connection", b"close")
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"x-frame-options", b"DENY"),
)


@final
@dataclass(eq=False)
class Guard:
    """Middleware: refuses what may not come in, and says in one line what went out."""

    app: Callable[[Scope, Receive, Send], Awaitable[None]]
    limits: Limits
    token: str | None = None
    hosts: frozenset[str] = field(default_factory=frozenset)  # empty: any
    arrivals: Arrivals = field(default_factory=Arrivals)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request pass, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = perf_counter(), 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                last = (_CLOSE,) if self.arrivals.is_late else ()
                message["headers"] = [*message.get("headers", ()), *_HEADERS, *last]
            await send(message)

        try:
            self._check(scope)
            has_body = scope["method"] == "POST"
            await self.app(scope, await self._read(receive) if has_body else receive, sending)
        except Problem as problem:
            await refuse(problem, sending)
        except asyncio.CancelledError:
            # The service ends and has waited long enough; whoever asked is told so.
            if status == 0:
                words = "the service ends, and the answer would come too late."
                await refuse(Problem(503, "ending", words, retry_after=1), sending)
        except Exception as error:  # noqa: BLE001 - told without the values that it may name
            LOG.error(json.dumps(failure_of(error)))
            if status == 0:
                await refuse(Problem(500, "failed", "something failed that should not."), sending)
        finally:
            told = {
                "event": "request",
                "method": scope["method"],
                "path": scope["path"],
                "status": status,
                "ms": round(1e3 * (perf_counter() - began), 2),
                **scope.get("state", {}).get("told", {}),
            }
            LOG.info(json.dumps(told))

    def _check(self, scope: Scope) -> None:
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1").rpartition(":")
        name = host[0] if host[1] and host[2].isdigit() else "".join(host)
        if self.hosts and name.lower() not in self.hosts:
            # A page elsewhere may give its own name this address, to read the answers.
            raise Problem(421, "wrong host", "the request names a host that this service is not.")
        is_open = scope["path"] in _OPEN[:2] or scope["path"].startswith(_OPEN[2])
        if self.token is not None and not is_open and scope["method"] != "OPTIONS":
            given = headers.get(b"authorization", b"")
            if not hmac.compare_digest(given, f"Bearer {self.token}".encode()):
                raise Problem(401, "no token", "expected the header 'Authorization: Bearer TOKEN'.")
        if scope["method"] == "POST" and scope["path"] in _POSTED:
            kind = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip()
            if kind.lower() != "application/json":
                raise Problem(415, "no JSON", "expected a body of type application/json.")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > _DIGITS or int(length) > self.limits.body:
            raise too_large(self.limits.body)

    async def _read(self, receive: Receive) -> Receive:
        """Read the body, and hand it on as one part."""
        body: bytes | None = await self.arrivals.body(receive, self.limits)

        async def receiving() -> Message:
            nonlocal body
            if body is None:
                return await receive()
            message = {"type": "http.request", "body": body, "more_body": False}
            body = None
            return message

        return receiving


def failure_of(error: BaseException) -> dict[str, Any]:
    """Say what failed and where, without words that may hold values of a request."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames]
    return {"event": "failed", "error": type(error).__name__, "at": places}


async def refuse(problem: Problem, send: Send) -> None:
    """Send a problem instead of an answer."""
    body = json.dumps(problem.to_dict()).encode()
    headers = [
        (b"content-type", MEDIA_TYPE.encode()),
        (b"content-length", str(len(body)).encode()),
    ]
    if problem.retry_after is not None:
        headers.append((b"retry-after", str(problem.retry_after).encode()))
    if problem.status in (408, 413):
        headers.append(_CLOSE)  # what is left of the body is not read
    if problem.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

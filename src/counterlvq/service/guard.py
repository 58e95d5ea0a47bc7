"""What every request passes first: host, token, kind and size of the body; and the log."""

from __future__ import annotations

import hmac
import json
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, final

from counterlvq.service.limits import Limits
from counterlvq.service.problems import MEDIA_TYPE, Problem

__all__ = ["LOG", "Guard"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

LOG = logging.getLogger("counterlvq.service")
# What is open without the token: that the service runs, and the page, which holds no data.
_OPEN = ("/health", "/", "/page/")
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
                message["headers"] = [*message.get("headers", ()), *_HEADERS]
            await send(message)

        try:
            self._check(scope)
            await self.app(scope, self._counted(receive), sending)
        except Problem as problem:
            await refuse(problem, sending)
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
        if self.hosts and name not in self.hosts:
            # A page elsewhere may give its own name this address, to read the answers.
            raise Problem(421, "wrong host", "the request names a host that this service is not.")
        is_open = scope["path"] in _OPEN[:2] or scope["path"].startswith(_OPEN[2])
        if self.token is not None and not is_open and scope["method"] != "OPTIONS":
            given = headers.get(b"authorization", b"")
            if not hmac.compare_digest(given, f"Bearer {self.token}".encode()):
                raise Problem(401, "no token", "expected the header 'Authorization: Bearer TOKEN'.")
        if scope["method"] == "POST":
            kind = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip()
            if kind.lower() != "application/json":
                raise Problem(415, "no JSON", "expected a body of type application/json.")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self.limits.body:
            raise self._too_large()

    def _counted(self, receive: Receive) -> Receive:
        """Refuse a body as soon as it is too large, whatever its header says."""
        seen = 0

        async def receiving() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self.limits.body:
                raise self._too_large()
            return message

        return receiving

    def _too_large(self) -> Problem:
        return Problem(
            413, "too large", f"the body is larger than {self.limits.body:,} bytes, which is all."
        )


async def refuse(problem: Problem, send: Send) -> None:
    """Send a problem instead of an answer."""
    body = json.dumps(problem.to_dict()).encode()
    headers = [
        (b"content-type", MEDIA_TYPE.encode()),
        (b"content-length", str(len(body)).encode()),
    ]
    if problem.retry_after is not None:
        headers.append((b"retry-after", str(problem.retry_after).encode()))
    if problem.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

"""Bodies on their way: how large they may get, and how long they may take."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, final

from counterlvq.service.limits import Limits
from counterlvq.service.problems import Problem

__all__ = ["Arrivals", "too_large"]

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
# Seconds that are left for a body when the service ends.
_HURRY = 1.0


@final
class Arrivals:
    """Bodies that are awaited, each until a moment that comes sooner when the service ends."""

    def __init__(self) -> None:
        self._awaited: set[asyncio.Timeout] = set()
        self.is_late = False

    def hurry(self) -> None:
        """Wait no longer than a moment from now on: the service ends."""
        self.is_late = True
        until = asyncio.get_running_loop().time() + _HURRY
        for limit in self._awaited:
            limit.reschedule(until)

    async def body(self, receive: Receive, limits: Limits) -> bytes:
        """Read a body to its end, whatever its header says of its length."""
        seconds = _HURRY if self.is_late else limits.seconds
        try:
            async with asyncio.timeout(seconds) as limit:
                self._awaited.add(limit)
                try:
                    return await _collected(receive, limits.body)
                finally:
                    self._awaited.discard(limit)
        except TimeoutError:
            raise Problem(
                408, "too slow", f"the body did not arrive within {limits.seconds:g} seconds."
            ) from None


def too_large(most: int) -> Problem:
    """Say that a body is larger than it may be."""
    return Problem(413, "too large", f"the body is larger than {most:,} bytes, which is all.")


async def _collected(receive: Receive, most: int) -> bytes:
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Problem(499, "gone", "nobody waits for the answer any more.")
        parts.append(message.get("body", b""))
        size, more = size + len(parts[-1]), message.get("more_body", False)
        if size > most:
            raise too_large(most)
    return b"".join(parts)

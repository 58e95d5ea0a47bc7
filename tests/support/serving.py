"""A service that is started for a test, on a port of its own, and ended behind it."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.shell import ENVIRONMENT


class Service:
    """`counterlvq serve` in a process, and requests to it."""

    def __init__(self, model: Path, *options: str, environment: dict[str, str] | None = None):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "counterlvq", "serve", str(model), "--port", "0", *options],
            env={**ENVIRONMENT, **(environment or {})},
            stderr=subprocess.PIPE,
            text=True,
        )
        self.log: list[str] = []
        self._listens = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if not self._listens.wait(120):
            self.process.kill()
            raise AssertionError(f"the service does not listen: {self.log}")

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line)
            if found := re.search(r"open (http://\S+/)", line):
                self.address = found[1]
                self._listens.set()

    def ask(
        self, path: str, body: Any = None, *, headers: dict[str, str] | None = None
    ) -> tuple[int, Any, dict[str, str]]:
        """Status, what came back, and its headers."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        kind = {} if body is None else {"Content-Type": "application/json"}
        request = urllib.request.Request(
            self.address + path.lstrip("/"), data, {**kind, **(headers or {})}
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as came:
                return came.status, _read(came), dict(came.headers)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _read(error), dict(error.headers)

    def close(self) -> None:
        """End it whatever it does, and what listens to it."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(30)
        self._reader.join(30)
        assert self.process.stderr is not None
        self.process.stderr.close()

    def entries(self) -> list[dict[str, Any]]:
        """What was logged about requests."""
        return [json.loads(line)["log"] for line in list(self.log) if line.startswith("{")]

    def end(self) -> int:
        """Tell it to end, as a supervisor does, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def _read(came: Any) -> Any:
    text = came.read().decode()
    return json.loads(text) if "json" in came.headers.get("content-type", "") else text


@contextlib.contextmanager
def serving(model: Path, *options: str, **more: Any) -> Iterator[Service]:
    service = Service(model, *options, **more)
    try:
        yield service
    finally:
        service.close()

"""Chromium without a window, driven over its debugging pipe: no driver and no library beside it."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import axe_core_python

AXE = Path(axe_core_python.__file__).with_name("axe.min.js")
ANSWERED = "document.querySelector('#answer .badge, .error:not(:empty), #problem *')"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)


def _put_at_3_and_4(first: int, second: int) -> None:
    """Give a new process the two ends where the browser looks for them."""
    aside = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (first, second)]
    for number, end in zip((3, 4), aside, strict=True):
        os.dup2(end, number)


class Browser:
    """One page of a browser; what its console and its network say is kept."""

    def __init__(self, width: int = 1200, height: int = 900) -> None:
        assert CHROMIUM is not None
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs_in, self._write = os.pipe()
        self._read, theirs_out = os.pipe()
        options = (
            "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
            "--hide-scrollbars", f"--user-data-dir={self._folder.name}",
            f"--window-size={width},{height}", "about:blank",
        )  # fmt: skip
        self._process = subprocess.Popen(
            [CHROMIUM, *options],
            pass_fds=(3, 4),
            preexec_fn=lambda: _put_at_3_and_4(theirs_in, theirs_out),  # noqa: PLW1509 - two dups
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._left, self._number, self._session = b"", 0, None
        self.requests: list[str] = []
        self.console: list[str] = []
        pages = self.ask("Target.getTargets")["targetInfos"]
        at = next(page["targetId"] for page in pages if page["type"] == "page")
        attached = self.ask("Target.attachToTarget", targetId=at, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(f"{domain}.enable")
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=1, mobile=width < 600)  # fmt: skip

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("id") == self._number:
                assert "error" not in told, told
                return told["result"]
            self._note(told)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            more = os.read(self._read, 1 << 16)
            assert more, "the browser has ended"
            self._left += more
        message, _, self._left = self._left.partition(b"\0")
        return json.loads(message)

    def _note(self, told: dict[str, Any]) -> None:
        given = told.get("params", {})
        if told.get("method") == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])
        elif told.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.console.append(json.dumps(given)[:500])
        elif told.get("method") == "Runtime.consoleAPICalled":
            self.console.append(json.dumps(given["args"])[:500])

    def open(self, address: str, until: str = ANSWERED) -> None:
        # A page that differs behind the # only is not loaded again by itself.
        self.ask("Page.navigate", url="about:blank")
        self.ask("Page.navigate", url=address)
        self.until(until)

    def run(self, script: str) -> Any:
        """Value of an expression on the page."""
        found = self.ask("Runtime.evaluate", expression=script, returnByValue=True,
                         awaitPromise=True)  # fmt: skip
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, script: str, seconds: float = 60.0) -> Any:
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while not (value := self.run(f"Boolean({script})")):
            assert time.monotonic() < end, f"{script} never came: {self.text('body')}"
            time.sleep(0.05)
        return value

    def text(self, selector: str) -> str:
        found = self.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")
        return " ".join(found.split())

    def enter(self, selector: str, value: str) -> None:
        """Give an input a value as a person does: the page is told."""
        self.run(f"""(() => {{ const at = document.querySelector({json.dumps(selector)});
            at.value = {json.dumps(value)};
            at.dispatchEvent(new Event("input", {{bubbles: true}})); }})()""")

    def click(self, selector: str) -> None:
        self.run(f"document.querySelector({json.dumps(selector)}).click()")

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            codes = {"Tab": 9, "ArrowRight": 39, " ": 32, "Enter": 13}
            letter = {" ": " ", "Enter": "\r"}.get(key)
            text = {"text": letter} if letter and kind == "keyDown" else {}
            self.ask("Input.dispatchKeyEvent", type=kind, key=key,
                     windowsVirtualKeyCode=codes[key], **text)  # fmt: skip

    def findings(self) -> list[str]:
        """What axe-core finds of use to nobody who reads by ear or by keyboard."""
        self.run(f"{AXE.read_text(encoding='utf-8')}; 0")
        return self.run("""axe.run().then((told) => told.violations.flatMap((one) => one.nodes.map(
            (node) => `${one.impact} ${one.id}: ${node.html}`)))""")

    def darken(self) -> None:
        dark = {"name": "prefers-color-scheme", "value": "dark"}
        self.ask("Emulation.setEmulatedMedia", features=[dark])

    def picture(self, path: Path) -> None:
        shot = self.ask("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        self._process.kill()
        self._process.wait(30)
        os.close(self._write)
        os.close(self._read)
        self._folder.cleanup()

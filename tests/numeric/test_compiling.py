"""A terminal is told that code is being compiled, once, and nobody else is."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Iterator

import pytest

from counterlvq.numeric import compiler

LONG = 10.0  # seconds after which something does not happen


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        if self.closed:
            raise ValueError("I/O operation on closed file")
        return True


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(compiler, "_PATIENCE", 0.01)
    compiler._announce.cache_clear()
    yield
    compiler._announce.cache_clear()


def waited_for(stream: io.StringIO) -> str:
    with compiler._announced():
        end = time.monotonic() + LONG
        while not stream.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
    return stream.getvalue()


def test_a_terminal_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    told = waited_for(terminal)
    assert told.startswith("counterlvq: compiling its kernels.")
    assert told.count("\n") == 1
    with compiler._announced():
        time.sleep(0.1)
    assert terminal.getvalue() == told


def test_what_is_quick_is_not_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(compiler, "_PATIENCE", 0.2)
    with compiler._announced():
        pass
    time.sleep(0.4)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("stream", [io.StringIO(), None])
def test_nobody_else_is_told(stream: io.StringIO | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    with compiler._announced():
        time.sleep(0.1)
    assert stream is None or stream.getvalue() == ""


def test_a_terminal_that_is_gone_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    terminal.close()
    monkeypatch.setattr(sys, "stderr", terminal)
    with compiler._announced():
        time.sleep(0.1)
    compiler._announce()

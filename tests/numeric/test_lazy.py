"""Lazily computed properties neither block threads nor forked children."""

from __future__ import annotations

import ast
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import counterlvq
from counterlvq.numeric.lazy import cached_property

PATIENCE = 60.0  # seconds after which something waits for ever


class Slow:
    """Something whose property takes as long as the test wants."""

    def __init__(self, *, slow: bool = False) -> None:
        self.asked, self.may_end = threading.Event(), threading.Event()
        self.slow = slow

    @cached_property
    def answer(self) -> list[int]:
        self.asked.set()
        assert not self.slow or self.may_end.wait(PATIENCE)
        return [42]


@pytest.fixture
def computing() -> Iterator[Slow]:
    """Have a thread compute the property of something for as long as the test runs."""
    slow = Slow(slow=True)
    thread = threading.Thread(target=lambda: slow.answer)
    thread.start()
    assert slow.asked.wait(PATIENCE)
    yield slow
    slow.may_end.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_threads_do_not_wait_for_other_instances(computing: Slow) -> None:
    found: list[list[int]] = []
    thread = threading.Thread(target=lambda: found.append(Slow().answer), daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert found == [[42]]
    assert not computing.may_end.is_set()


def test_threads_get_the_same_object() -> None:
    slow, found = Slow(slow=True), []
    threads = [threading.Thread(target=lambda: found.append(slow.answer)) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert slow.asked.wait(PATIENCE)
    slow.may_end.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(found) == 4
    assert all(one is slow.answer for one in found)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_child_does_not_wait_for_the_threads_it_lacks(computing: Slow) -> None:
    child = os.fork()
    if child == 0:
        watch = threading.Timer(PATIENCE, os._exit, [1])
        watch.daemon = True
        watch.start()
        os._exit(0 if Slow().answer == [42] and not computing.may_end.is_set() else 2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_nothing_in_the_package_keeps_the_lock_of_python_3_11() -> None:
    found = []
    for path in sorted(Path(counterlvq.__file__).parent.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "functools" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module == "functools":
                found += [path.name for name in node.names if name.name == "cached_property"]
    assert not found

"""Rows in other processes: each once, errors passed on, and nobody left behind."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest

import counterlvq as clvq
from counterlvq.numeric.worker_processes import ask_in_processes
from tests.support.quick import some
from tests.support.shell import is_running

# Workers cannot import this file, as they cannot import a user's script.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
posix = pytest.mark.skipif(os.name != "posix", reason="signals and /proc")


def asked(ask: Callable[[int], Any], count: int, jobs: int = 2) -> dict[int, Any]:
    """Everything that comes back; no number may come twice."""
    found: dict[int, Any] = {}

    def take(number: int, answer: Any) -> None:
        assert number not in found
        found[number] = answer

    ask_in_processes(ask, count, jobs, take)
    return found


def children() -> set[int]:
    """Processes that this one has started and that have not ended."""
    found = set()
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                told = (place / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(told[1]) == os.getpid() and told[0] != "Z":
                found.add(int(place.name))
    return found


# --- what comes back ----------------------------------------------------------------------------


def square(number: int) -> tuple[int, int]:
    time.sleep(0.02 * (number % 3))
    return number * number, os.getpid()


@posix
@pytest.mark.parametrize(("count", "jobs"), some([(9, 2), (2, 5)], quick=1))
def test_every_number_is_answered_once_by_another_process(count: int, jobs: int) -> None:
    before = children()
    found = asked(square, count, jobs)
    assert {number: value for number, (value, _) in found.items()} == {
        number: number * number for number in range(count)
    }
    others = {pid for _, pid in found.values()}
    assert os.getpid() not in others
    assert len(others) <= jobs
    assert children() <= before


@pytest.mark.slow
def test_large_answers_and_large_tasks_pass() -> None:
    weight = b"x" * 3_000_000
    found = asked(lambda number: weight + bytes([number]), 3)
    assert [found[k][-1] for k in range(3)] == [0, 1, 2]
    assert all(len(answer) == len(weight) + 1 for answer in found.values())


def chatty(number: int) -> int:
    sys.stdout.write("words of the user's model\n")
    sys.stdout.flush()
    os.write(1, b"past Python\n")
    assert sys.stdin.read() == ""
    return number


def test_what_a_model_prints_does_not_get_in_between() -> None:
    assert asked(chatty, 3) == {0: 0, 1: 1, 2: 2}


# --- errors -------------------------------------------------------------------------------------


class Unsendable(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")
        self.lock = threading.Lock()


def failing(number: int) -> int:
    if number == 2:
        raise clvq.InvalidInputError("row of no use")
    if number == 5:
        raise Unsendable(1, 2)
    return number


@posix
def test_error_of_a_row_is_raised_here() -> None:
    before = children()
    with pytest.raises(clvq.InvalidInputError, match="row of no use") as caught:
        asked(failing, 5)
    assert "for row 2" in "".join(caught.value.__notes__)
    assert children() <= before


@pytest.mark.slow
def test_error_that_cannot_be_sent_is_told_in_words() -> None:
    with pytest.raises(RuntimeError, match=r"(?s)row 1.*Unsendable: 1 and 2"):
        asked(lambda number: failing(4 + number), 2)


def test_task_that_cannot_be_sent_is_refused_in_words() -> None:
    lock = threading.Lock()
    with pytest.raises(clvq.NotSupportedError, match=r"cannot be sent .*n_jobs=1"):
        asked(lambda number: (number, lock), 2)


class OnlyHere:
    """Can be written and not be read, like a class of a module that is not installed there."""

    def __reduce__(self) -> tuple[Any, ...]:
        return ctypes.CDLL, ("no such library",)

    def __call__(self, number: int) -> int:
        return number


@pytest.mark.slow
def test_task_that_cannot_be_read_is_refused_in_words() -> None:
    with pytest.raises(clvq.NotSupportedError, match=r"put together again .*OSError.*n_jobs=1"):
        asked(OnlyHere(), 2)


# --- workers that are ended ---------------------------------------------------------------------


class Deadly:
    """Ends its process for some numbers, by a signal or by leaving."""

    def __init__(self, numbers: set[int], how: int) -> None:
        self.numbers, self.how = numbers, how

    def __call__(self, number: int) -> int:
        if number in self.numbers:
            time.sleep(0.3)
            if self.how > 0:
                os.kill(os.getpid(), self.how)
                time.sleep(60)
            os._exit(-self.how)
        time.sleep(0.05)
        return number


@posix
@pytest.mark.parametrize(
    ("how", "words"),
    some([(signal.SIGKILL, "SIGKILL"), (signal.SIGSEGV, "SIGSEGV"), (-7, "exit code 7")], quick=1),
)
def test_worker_that_is_ended_is_an_error_of_ours(how: int, words: str) -> None:
    before = children()
    with pytest.raises(clvq.WorkerLostError) as caught:
        asked(Deadly({3}, how), 20)
    assert caught.value.rows == (3,)
    told = str(caught.value)
    assert words in told
    assert "lost: row 3." in told
    assert "explain row 3 alone" in told
    assert isinstance(caught.value, clvq.CounterlvqError)
    assert children() <= before


@pytest.mark.slow
@posix
def test_all_rows_that_are_lost_are_named() -> None:
    with pytest.raises(clvq.WorkerLostError) as caught:
        asked(Deadly({0, 1}, signal.SIGKILL), 2)
    assert caught.value.rows == (0, 1)
    assert "lost: rows 0, 1." in str(caught.value)


@posix
def test_batch_after_a_killed_worker_works() -> None:
    rng = np.random.default_rng(3)
    omegas = rng.normal(size=(4, 2, 2))
    model = clvq.PrototypeModel(rng.normal(size=(4, 2)), [0, 0, 1, 1], omegas=omegas)
    X = rng.normal(size=(4, 2))
    explainer = clvq.Explainer(model, method="ccp")
    killer = threading.Thread(target=_kill_a_new_child, args=(children(),))
    killer.start()
    with pytest.raises(clvq.WorkerLostError):
        explainer.explain_batch(X, n_jobs=2)
    killer.join()
    alone = explainer.explain_batch(X)
    assert explainer.explain_batch(X, n_jobs=2).cost.tolist() == alone.cost.tolist()


def _kill_a_new_child(known: set[int]) -> None:
    for _ in range(3000):
        new = children() - known
        if new:
            os.kill(new.pop(), signal.SIGKILL)
            return
        time.sleep(0.01)


# --- this process ends --------------------------------------------------------------------------

HOLDING = "ctypes.PyDLL(None).sleep(300)"  # keeps the interpreter to itself, as solvers do
ENDLESS = {
    "Python": "time.sleep(300)",
    "the interpreter held": HOLDING,
}
each_work = pytest.mark.parametrize("work", some(["the interpreter held", "Python"], quick=1))
PARENT = """
import ctypes, os, sys, time
from counterlvq.numeric.worker_processes import ask_in_processes

def work(number):
    os.write(2, f"{{os.getpid()}}\\n".encode())
    {work}

{before}
ask_in_processes(work, 2, 2, print)
"""
FORKED = """
import threading
def fork():  # a process that has everything open that its parent had
    time.sleep(2)
    pid = os.fork()
    if not pid:
        time.sleep(20)
        os._exit(0)
threading.Thread(target=fork).start()
"""


def _parent(work: str, before: str = "") -> tuple[subprocess.Popen[bytes], list[int]]:
    """Start a process whose two workers do not come to an end; their numbers."""
    code = textwrap.dedent(PARENT).format(work=work, before=before)
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE)
    assert process.stderr is not None
    return process, [int(process.stderr.readline()) for _ in range(2)]


def _assert_gone(workers: list[int], seconds: float) -> None:
    end = time.monotonic() + seconds
    while any(map(is_running, workers)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(is_running, workers))


@posix
@each_work
def test_workers_end_when_their_parent_is_killed(work: str) -> None:
    process, workers = _parent(ENDLESS[work])
    assert all(map(is_running, workers))
    process.kill()
    process.wait()
    _assert_gone(workers, 10)
    process.communicate()


@posix
@pytest.mark.slow
def test_workers_end_although_a_forked_process_keeps_their_input_open() -> None:
    process, workers = _parent(ENDLESS["Python"], FORKED)
    time.sleep(4)
    process.kill()
    process.wait()
    _assert_gone(workers, 10)
    assert process.stderr is not None
    process.stderr.close()


@posix
@each_work
def test_interrupt_ends_the_batch_and_its_workers(work: str) -> None:
    process, workers = _parent(ENDLESS[work])
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert said.decode().rstrip().endswith("KeyboardInterrupt")
    _assert_gone(workers, 10)

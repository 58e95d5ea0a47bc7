"""Blocks of work in threads: each once, errors and interrupts passed on, nothing after them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq.batch import threads
from counterlvq.batch.threads import run_blocks, workers
from counterlvq.numeric.interrupts import interruptible

each_number_of_jobs = pytest.mark.parametrize("jobs", [1, 2, 3])
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(work: Callable[[range], None], count: int, jobs: int) -> None:
    """Hand out `count` blocks of three rows each."""
    made = (range(3 * k, 3 * k + 3) for k in range(count))
    run_blocks(made, work, jobs, 3 * count, progress=False)


# --- how many -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "expected"),
    [(None, 1), (1, 1), (2, 2), (7, 7), (np.int64(3), 3), (-1, CORES), (-CORES, 1), (-1000, 1)],
)
def test_number_of_threads(asked: int | None, expected: int) -> None:
    assert workers(asked) == expected


def test_minus_two_leaves_one_core_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert [workers(n) for n in (-1, -2, -8, -9)] == [8, 7, 1, 1]


def test_cores_are_counted_where_affinity_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert workers(-1) == 6
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert workers(-1) == 1


@pytest.mark.parametrize("asked", [0, 1.5, True, False, "2", np.float64(2.0), [2]])
def test_bad_number_of_threads_is_refused_in_words(asked: object) -> None:
    with pytest.raises(clvq.InvalidInputError) as caught:
        workers(asked)  # type: ignore[arg-type]
    assert str(caught.value) == (
        f"n_jobs is {asked!r}; expected a positive number of threads, a negative one to count "
        f"down from all cores (-1: all of them), or None for one."
    )


# --- every block once ---------------------------------------------------------------------------


@each_number_of_jobs
@pytest.mark.parametrize("count", [0, 1, 2, 5, 100])
def test_every_block_runs_once(count: int, jobs: int) -> None:
    done: list[int] = []
    run(done.extend, count, jobs)
    assert sorted(done) == list(range(3 * count))


@pytest.mark.parametrize("jobs", [2, 3])
def test_blocks_run_side_by_side(jobs: int) -> None:
    """All threads meet in the middle of a block, which they could not one after another."""
    meeting = threading.Barrier(jobs)
    run(lambda block: meeting.wait(timeout=60) and None, jobs, jobs)
    assert not meeting.broken


def test_one_job_needs_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "ThreadPoolExecutor", None)
    seen: list[str] = []
    run(lambda block: seen.append(threading.current_thread().name), 3, jobs=1)
    assert seen == [threading.main_thread().name] * 3


# --- errors and interrupts ----------------------------------------------------------------------

ERRORS = [ValueError("block 4"), KeyboardInterrupt("block 4"), SystemExit("block 4")]


@each_number_of_jobs
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_error_in_a_block_is_passed_on_and_stops_the_rest(error: BaseException, jobs: int) -> None:
    started: list[int] = []

    def work(block: range) -> None:
        started.append(block[0] // 3)
        if block[0] // 3 == 4:
            raise error

    with pytest.raises(type(error)) as caught:
        run(work, 1000, jobs)
    assert caught.value is error
    assert len(started) == len(set(started))
    # Blocks are quick here, so some pass before the error is seen; most are never handed out.
    assert set(range(5)) <= set(started)
    assert len(started) < 500
    before = len(started)
    time.sleep(0.05)
    assert len(started) == before, "a thread went on after the run had ended"


@pytest.mark.parametrize("jobs", [2, 3])
def test_blocks_that_wait_are_cancelled(jobs: int) -> None:
    """The first block fails while the others have not begun: two per thread were handed out."""
    started: list[int] = []
    failed = threading.Event()

    def work(block: range) -> None:
        started.append(block[0] // 3)
        if block[0] == 0:
            failed.set()
            raise ValueError("the first")
        failed.wait(timeout=60)
        time.sleep(0.2)

    with pytest.raises(ValueError, match="the first"):
        run(work, 100, jobs)
    assert len(started) <= 2 * jobs


@each_number_of_jobs
def test_blocks_are_made_as_they_are_needed(jobs: int) -> None:
    """At most two per thread lie ahead of the work, and an error in making one is passed on."""
    made: list[int] = []
    done: list[int] = []
    ahead: list[int] = []

    def making() -> Iterator[range]:
        for k in range(50):
            if k == 40:
                raise ValueError("no more")
            made.append(k)
            yield range(k, k + 1)

    def work(block: range) -> None:
        ahead.append(len(made) - len(done))
        done.append(block[0])

    with pytest.raises(ValueError, match="no more"):
        run_blocks(making(), work, jobs, 50, progress=False)
    assert max(ahead) <= 2 * jobs + 1
    assert set(done) <= set(range(40))


# --- interrupts from outside --------------------------------------------------------------------

LONG_RUN = """
import numpy as np
import counterlvq as clvq

rng = np.random.default_rng(0)
model = clvq.PrototypeModel(rng.normal(size=(2000, 40)), rng.integers(2, size=2000))
explainer = clvq.Explainer(model, clvq.{cost}())
X = rng.normal(size=(200_000, 40))
explainer.explain_batch(X[:2])
print("ready", flush=True)
explainer.explain_batch(X, n_jobs={jobs})
print("finished", flush=True)
"""


@pytest.fixture
def long_run(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    code = textwrap.dedent(LONG_RUN).format(**request.param)
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    yield process
    if process.poll() is None:
        process.kill()
    process.communicate()


@pytest.mark.parametrize(
    "long_run", [{"cost": "Euclidean", "jobs": 1}, {"cost": "Manhattan", "jobs": 2}], indirect=True
)
def test_interrupt_ends_a_long_run(long_run: subprocess.Popen[str]) -> None:
    """Hours of work are asked for; an interrupt ends the process within seconds."""
    assert long_run.stdout is not None
    assert long_run.stdout.readline() == "ready\n"
    time.sleep(0.5)
    long_run.send_signal(signal.SIGINT)
    out, err = long_run.communicate(timeout=20)
    assert "finished" not in out
    assert "KeyboardInterrupt" in err
    assert long_run.returncode in (-signal.SIGINT, 130)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs signals of POSIX")
def test_interrupt_gives_up_what_threads_wait_for() -> None:
    """As for a compiler, which takes most of a minute and cannot be stopped."""
    waiting, release, finished = threading.Barrier(3), threading.Event(), list[range]()

    def work(block: range) -> None:
        def compile_long() -> None:
            waiting.wait(timeout=20)
            release.wait(timeout=20)

        interruptible(compile_long)
        finished.append(block)

    def interrupt() -> None:
        waiting.wait(timeout=20)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    asking = threading.Thread(target=interrupt)
    asking.start()
    with pytest.raises(KeyboardInterrupt):
        run(work, 100, jobs=2)
    assert finished == []
    release.set()
    asking.join()


def test_error_is_told_rather_than_that_others_were_given_up() -> None:
    waiting, release = threading.Barrier(2), threading.Event()

    def work(block: range) -> None:
        if block[0] == 0:
            interruptible(lambda: (waiting.wait(timeout=20), release.wait(timeout=20)))
        else:
            waiting.wait(timeout=20)
            raise ValueError("the second")

    with pytest.raises(ValueError, match="the second"):
        run(work, 2, jobs=2)
    release.set()


COMPILING = """
import time
import numpy as np
from numba.core.dispatcher import Dispatcher
import counterlvq as clvq
from counterlvq.numeric.interpreting import compile_from_now_on

def compile_for_long(*args, **kws):
    print("compiling", flush=True)
    time.sleep(600)

Dispatcher._compile_for_args = compile_for_long
draw = np.random.default_rng(0)
explainer = clvq.Explainer(clvq.PrototypeModel(draw.normal(size=(20, 6)), np.arange(20) % 3))
compile_from_now_on()
explainer.explain_batch(draw.normal(size=(20_000, 6)), target=1, n_jobs=2)
"""


@pytest.mark.machine
def test_interrupt_ends_a_process_whose_threads_compile() -> None:
    """Not only the call: neither the threads nor the compiler hold up the end of the process."""
    process = subprocess.Popen(
        [sys.executable, "-c", COMPILING],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("compiling")  # said by two threads
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=20)
        finally:
            process.kill()
    assert err.rstrip().endswith("KeyboardInterrupt")

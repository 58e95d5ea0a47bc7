"""Interrupts on the API: they end every wait, nothing is lost, and the next call works."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import Any

import clarabel
import highspy
import numpy as np
import pytest
from scipy import sparse

import counterlvq as clvq
from counterlvq.numeric.interrupts import interruptible
from counterlvq.solvers import interruptible_runs
from counterlvq.solvers.interruptible_runs import run_clarabel, run_highs

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers of POSIX")
# Nothing below takes this long unless an interrupt is lost; a machine may be busy.
LONG = 60.0


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Raise KeyboardInterrupt in the main thread, as Ctrl-C would."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# --- one call -------------------------------------------------------------------------------------

ASIDE: ContextVar[str] = ContextVar("ASIDE", default="unset")


def test_value_is_that_of_the_work() -> None:
    token = ASIDE.set("as it is here")
    try:
        where, seen = interruptible(lambda: (threading.current_thread(), ASIDE.get()))
    finally:
        ASIDE.reset(token)
    assert where is not threading.main_thread()
    assert seen == "as it is here"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_error_is_that_of_the_work(error: type[BaseException]) -> None:
    def work() -> None:
        raise error("from within")

    with pytest.raises(error, match="from within"):
        interruptible(work)


def test_other_threads_do_the_work_themselves() -> None:
    seen = []

    def ask() -> None:
        seen.append(interruptible(threading.current_thread))

    asker = threading.Thread(target=ask)
    asker.start()
    asker.join()
    assert seen == [asker]


@pytest.mark.parametrize("heeds", [True, False])
def test_interrupt_ends_the_wait_and_stops_the_work(heeds: bool) -> None:
    told, release = threading.Event(), threading.Event()

    def work() -> None:
        (told if heeds else release).wait(LONG)

    begun = time.monotonic()
    with interrupted_after(0.05), pytest.raises(KeyboardInterrupt):
        interruptible(work, told.set)
    assert told.is_set()
    assert time.monotonic() - begun < LONG / 2
    release.set()


def test_work_that_cannot_be_stopped_holds_up_no_exit() -> None:
    code = (
        "import signal, time\n"
        "from counterlvq.numeric.interrupts import interruptible\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.1)\n"
        "def interrupt(*_):\n"
        "    raise KeyboardInterrupt\n"
        "signal.signal(signal.SIGALRM, interrupt)\n"
        f"interruptible(lambda: time.sleep({10 * LONG}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=LONG
    )
    assert done.stderr.rstrip().endswith("KeyboardInterrupt")
    assert done.returncode != 0


# --- compilers and solvers ------------------------------------------------------------------------

# An exception at every tenth of a second, from where compiling begins, wherever the main thread is.
COMPILING = """
import json, signal, sys
from counterlvq.certificates.acceptance_kernel import relative_gap

def interrupt(number, frame):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
ended = 0
for delay in json.loads(sys.argv[1]):
    try:
        signal.setitimer(signal.ITIMER_REAL, delay)
        relative_gap(4.0, 3.0)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        ended += 1
print(json.dumps({"ended": ended, "answer": float(relative_gap(4.0, 3.0))}))
"""


def test_interrupt_while_compiling_is_raised_and_the_next_call_works(tmp_path: Path) -> None:
    delays = [0.001, 0.01, 0.02, 0.05, 0.1, 0.02]
    done = subprocess.run(
        [sys.executable, "-c", COMPILING, json.dumps(delays)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=4 * LONG,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    told = json.loads(done.stdout)
    # By how much a rival at 4 trails a target at 0, seen from 1: 9 - 1.
    assert told["answer"] == 0.25
    assert told["ended"] >= 2  # one processor compiles it in less than the sum of all delays


def drawn_program(draw: np.random.Generator, width: int) -> tuple[Any, ...]:
    """Least squares within a ball, and within a box or, half of the time, nowhere."""
    F = draw.normal(size=(width, width))
    box = np.concatenate([np.eye(width), -np.eye(width)])
    ball = np.concatenate([np.zeros((1, width)), -np.eye(width)])
    ends = np.full(2 * width, draw.choice([1.0, -1.0]))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = 1e-7
    return (
        sparse.csc_matrix(np.triu(F.T @ F)), draw.normal(size=width),
        sparse.csc_matrix(np.concatenate([box, ball])),
        np.concatenate([ends, [2.0], np.zeros(width)]),
        [clarabel.NonnegativeConeT(2 * width), clarabel.SecondOrderConeT(width + 1)], settings,
    )  # fmt: skip


@pytest.mark.parametrize("limit", ["_LARGE", "_HUGE"])
def test_program_has_one_solution_wherever_it_is_solved(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In another thread, and in another process."""
    draw = np.random.default_rng(0)
    programs = [drawn_program(draw, width) for width in (1, 2, 3, 5)]
    expected = [clarabel.DefaultSolver(*program).solve() for program in programs]
    assert len({str(solution.status) for solution in expected}) == 2
    monkeypatch.setattr(interruptible_runs, "_LARGE", 0)
    if limit == "_HUGE":
        monkeypatch.setattr(interruptible_runs, "_HUGE", 0)
    for program, solution in zip(programs, expected, strict=True):
        found = run_clarabel(*program)
        assert found.status == solution.status
        assert found.x == solution.x
        assert found.z == solution.z


def test_lost_process_is_a_program_not_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: object) -> None:
        raise clvq.WorkerLostError("it was killed")

    monkeypatch.setattr(interruptible_runs, "_LARGE", 0)
    monkeypatch.setattr(interruptible_runs, "_HUGE", 0)
    monkeypatch.setattr(interruptible_runs, "ask_in_processes", lost)
    assert run_clarabel(*drawn_program(np.random.default_rng(0), 2)) is None


def test_without_another_process_it_is_solved_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise clvq.NotSupportedError("there is no interpreter")

    monkeypatch.setattr(interruptible_runs, "_LARGE", 0)
    monkeypatch.setattr(interruptible_runs, "_HUGE", 0)
    monkeypatch.setattr(interruptible_runs, "ask_in_processes", refused)
    program = drawn_program(np.random.default_rng(0), 2)
    assert run_clarabel(*program).x == clarabel.DefaultSolver(*program).solve().x


def local_model(width: int) -> clvq.PrototypeModel:
    draw = np.random.default_rng(5)
    return clvq.PrototypeModel(
        draw.normal(size=(4, width)), [0, 0, 1, 1], omegas=draw.normal(size=(4, width, width))
    )


def explain_again_and_again(explainer: clvq.Explainer, x: np.ndarray) -> None:
    """For as long as it takes until an interrupt comes."""
    while True:
        explainer.explain(x)


@pytest.mark.slow
def test_interrupt_ends_a_cone_program() -> None:
    """One that takes several seconds; it is met at moments spread over the whole search."""
    model = local_model(45)
    explainer = clvq.Explainer(model, method="global", gap=1e-7)
    x = model.prototypes[0]
    clvq.Explainer(model, method="ccp").explain(x)  # compiles what is to be compiled
    for delay in np.random.default_rng(0).uniform(0.05, 4.0, size=8):
        begun = time.monotonic()
        with interrupted_after(delay), pytest.raises(KeyboardInterrupt):
            explain_again_and_again(explainer, x)
        assert time.monotonic() - begun - delay < 10.0  # 1 by design, on a machine of its own
    for thread in threading.enumerate():
        if thread.name == "counterlvq":
            thread.join(LONG)
            assert not thread.is_alive()


def test_interrupt_ends_a_linear_program() -> None:
    """A dense one that takes HiGHS most of a minute."""
    rows, columns = 1000, 2000
    draw = np.random.default_rng(0)
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    matrix = draw.normal(size=(rows, columns))
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = columns, rows
    lp.col_cost_ = draw.random(columns)
    lp.col_lower_, lp.col_upper_ = np.zeros(columns), np.full(columns, 1e3)
    lp.row_lower_ = matrix @ draw.random(columns)
    lp.row_upper_ = np.full(rows, np.inf)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.arange(rows + 1) * columns
    lp.a_matrix_.index_ = np.tile(np.arange(columns), rows)
    lp.a_matrix_.value_ = matrix.ravel()
    solver.passModel(lp)
    with interrupted_after(0.3), pytest.raises(KeyboardInterrupt):
        run_highs(solver)
    for thread in threading.enumerate():
        if thread.name == "counterlvq":
            thread.join(LONG)
    assert solver.getModelStatus() != highspy.HighsModelStatus.kOptimal

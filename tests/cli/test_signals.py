"""Ctrl-C and SIGTERM at every stage: the command ends soon, in one line, and leaves nothing behind.

The command runs as it is, but for one function in which it stays: in Python code, in a library that
does not return, or in one that loses exceptions. That function says which stage the signal meets.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import counterlvq as clvq
from tests.support.quick import some
from tests.support.shell import COMMAND, ENVIRONMENT, one_line, started

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks into /proc")

# Seconds. By design 2, on a machine that has time; a signal that is lost is never answered.
SOON = 20.0

STAYING = """
import hashlib, importlib, os, sys, time

def in_python():
    while True:
        pass

def in_a_library():  # which releases the interpreter and does not return
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)

def losing_exceptions():
    while True:
        try:
            time.sleep(0.01)
        except BaseException:
            pass

def in_a_string():  # as dataclasses are made: Python remembers the interrupt until its exit
    exec("while True: time.sleep(0.01)")

def stay(*args, **kws):
    os.write(1, b"here\\n")
    manner()

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "counterlvq.cli.app":
            stay()

where, manner = sys.argv.pop(1), sys.argv.pop(1)
manner = {"python": in_python, "library": in_a_library, "losing": losing_exceptions,
          "string": in_a_string}[manner]
if where == "import":
    sys.meta_path.insert(0, Finder)
else:
    module, _, path = where.partition(":")
    *owners, function = path.split(".")
    owner = importlib.import_module(module)
    for name in owners:
        owner = getattr(owner, name)
    setattr(owner, function, stay)
from counterlvq.cli import main
main()
"""
# Where the command stays, by stage.
STAGES = {
    "import": "import",
    "read": "counterlvq.cli.explain:read_table",
    "compile": "numba.core.dispatcher:Dispatcher.compile",
    "search": "counterlvq.search.branch_and_bound:Branching.run",
    "proof": "counterlvq.certificates.boxes:BoxCertificate.lower_bound",
    "write": "os:fsync",
    "written": "counterlvq.files:sync_folder",
}
MANNERS = ("python", "library", "losing", "string")
SIGNS = {signal.SIGINT: "interrupted", signal.SIGTERM: "ended by SIGTERM"}
CASES = [(stage, manner, sign) for stage in STAGES for manner in MANNERS for sign in SIGNS]
# Of all combinations, a few in which all manners and both signals occur: before there is anything
# to end, while libraries work, and on either side of the moment from which the output is there.
QUICK = {
    ("import", "python", signal.SIGINT),
    ("search", "losing", signal.SIGTERM),
    ("write", "string", signal.SIGTERM),
    ("written", "library", signal.SIGINT),
}

# A cost of one's own, so that nothing is said about a summary that the model file does not have.
EXPLAIN = ("explain", "--cost", "manhattan")


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with local metrics, a table that is answered in a moment, and one that is not."""
    folder = tmp_path_factory.mktemp("local")
    draw = np.random.default_rng(3)
    names = [f"f{j}" for j in range(6)]
    model = clvq.PrototypeModel(
        draw.normal(size=(4, 6)), ["no", "no", "yes", "yes"],
        omegas=draw.normal(size=(4, 6, 6)), feature_names=names,
    )  # fmt: skip
    clvq.save(model, folder / "m.clvq")
    for name, rows in (("few.csv", 2), ("many.csv", 5000)):
        lines = [",".join(f"{value:.3f}" for value in row) for row in draw.normal(size=(rows, 6))]
        (folder / name).write_text("\n".join([",".join(names), *lines]) + "\n", encoding="utf-8")
    return folder


def staying(
    local: Path, out: Path, stage: str, manner: str, code: str = STAYING
) -> subprocess.Popen[bytes]:
    """Start the command, by -m as users do, and wait until it stays in a stage."""
    name = f"staying_{len(os.listdir(local))}"
    (local / f"{name}.py").write_text(code, encoding="utf-8")
    words = [
        "explain",
        "--cost",
        "manhattan",
        str(local / "m.clvq"),
        str(local / "few.csv"),
        "-o",
        str(out / "told.csv"),
    ]
    running = subprocess.Popen(
        [sys.executable, "-m", name, STAGES[stage], manner, *words],
        cwd=local,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    )
    assert running.stdout is not None
    assert running.stderr is not None
    here = running.stdout.readline()
    assert here == b"here\n", running.stderr.read()
    time.sleep(0.1)  # so that it really stays there
    return running


@pytest.mark.parametrize(("stage", "manner", "sign"), some(CASES, QUICK))
def test_signal_ends_every_stage(
    local: Path, tmp_path: Path, stage: str, manner: str, sign: signal.Signals
) -> None:
    with staying(local, tmp_path, stage, manner) as running:
        running.send_signal(sign)
        _, err = running.communicate(timeout=SOON)
    assert running.returncode == 128 + sign
    left = "the output had been written, whole" if stage == "written" else "nothing was written"
    assert one_line(err) == f"counterlvq: {SIGNS[sign]}; {left}"
    assert os.listdir(tmp_path) == (["told.csv"] if stage == "written" else [])


@pytest.mark.parametrize("sign", some(SIGNS, quick={signal.SIGTERM}))
def test_second_signal_ends_at_once(local: Path, tmp_path: Path, sign: signal.Signals) -> None:
    """Patience is without end here, so that nothing but the second signal ends the command."""
    code = "import counterlvq.cli.signals as e\ne._PATIENCE = 1e6\n" + STAYING
    with staying(local, tmp_path, "write", "losing", code) as running:
        running.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(timeout=1.5)
        running.send_signal(sign)
        _, err = running.communicate(timeout=SOON)
    assert running.returncode == 130
    assert one_line(err) == "counterlvq: interrupted; nothing was written"
    assert os.listdir(tmp_path) == []


# Seconds between two signals, and between the moment at which the command answers to them and the
# first one: while modules are imported, and while it works.
GAPS = (0.0, 0.0005, 0.005)
MOMENTS = (0.0, 0.1, 0.3, 0.7, 1.5)


def answers(running: subprocess.Popen[bytes]) -> bool:
    """Whether the command has its own way with SIGTERM; until then, Python answers."""
    for line in Path(f"/proc/{running.pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (signal.SIGTERM - 1) & 1)
    return False


Signals = tuple[float, float, list[int]]


def drawn_signals(draws: int, seed: int) -> list[Signals]:
    """Moments, gaps and signals."""
    draw = np.random.default_rng(seed)
    found = []
    for _ in range(draws):
        moment, gap = draw.choice(MOMENTS) * draw.uniform(0.7, 1.3), draw.choice(GAPS)
        found.append((moment, gap, [int(s) for s in draw.choice([*SIGNS], draw.integers(2, 5))]))
    return found


def assert_signals_end(local: Path, out: Path, cases: list[Signals]) -> None:
    """Of signals that wait at the same time the system chooses which comes first."""
    words = [*EXPLAIN, "m.clvq", "many.csv", "-o", str(out / "told.csv")]
    for moment, gap, signs in cases:
        case = f"{signs} after {moment:.4f} s, {gap} s apart"
        with started(*words, cwd=local) as running:
            assert until(partial(answers, running)), case
            time.sleep(moment)
            assert running.poll() is None, case
            for sign in signs:
                running.send_signal(sign)  # nothing, if it has ended
                time.sleep(gap)
            try:
                _, err = running.communicate(timeout=SOON)
            except subprocess.TimeoutExpired:
                running.kill()
                raise AssertionError(f"it goes on in spite of {case}") from None
        assert running.returncode in {128 + sign for sign in signs}, case
        word = SIGNS[signal.Signals(running.returncode - 128)]
        assert one_line(err) == f"counterlvq: {word}; nothing was written", case
        assert os.listdir(out) == [], case


@pytest.mark.parametrize("part", some(range(3), quick=1))
def test_signals_close_together_end_the_command(local: Path, tmp_path: Path, part: int) -> None:
    assert_signals_end(local, tmp_path, drawn_signals(12, seed=1)[part::3])


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_many_signals_close_together_end_the_command(local: Path, tmp_path: Path) -> None:
    assert_signals_end(local, tmp_path, drawn_signals(300, seed=2))


TOGETHER = """
import os, signal, sys, threading, time
import counterlvq.cli.signals as ending

stage, first, second = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
real = getattr(ending.Ending, stage)

left = [second]

def interrupted(self, *args):
    if left and threading.current_thread() is threading.main_thread():
        left.clear()
        os.kill(os.getpid(), second)  # whose handler runs here, in the midst of the first one's
        for _ in range(100):
            pass
    return real(self, *args)

setattr(ending.Ending, stage, interrupted)
ending.ENDING.install()
if sys.argv[4] == "work":
    ending.ENDING.work_begins()
try:
    os.kill(os.getpid(), first)
    time.sleep(60)
except KeyboardInterrupt:
    ending.ENDING.tell()
    sys.exit(ending.ENDING.code)
"""


@pytest.mark.parametrize("during", ["import", "work"])
@pytest.mark.parametrize("stage", ["_end", "_clear_away", "tell", "line", "_left", "_is_first"])
@pytest.mark.parametrize("second", SIGNS)
def test_a_signal_in_the_midst_of_the_end(stage: str, second: signal.Signals, during: str) -> None:
    """At each step of the end in the main thread, another signal comes."""
    words = [stage, str(int(signal.SIGINT)), str(int(second)), during]
    done = subprocess.run(
        [sys.executable, "-c", TOGETHER, *words], capture_output=True, timeout=SOON, check=False,
        env=ENVIRONMENT,
    )  # fmt: skip
    assert done.returncode == 130, done.stderr
    assert one_line(done.stderr) == "counterlvq: interrupted; nothing was written"


def test_nobody_who_reads_the_line_does_not_keep_the_command() -> None:
    """Its standard error is a pipe that is full: the line cannot be written, ever."""
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    for size in (1 << 16, 1):
        with suppress(BlockingIOError):
            while os.write(theirs, bytes(size)):
                pass
    os.set_blocking(theirs, True)
    words = ["tell", str(int(signal.SIGTERM)), str(int(signal.SIGTERM)), "import"]
    try:
        done = subprocess.run(
            [sys.executable, "-c", TOGETHER, *words], stderr=theirs, timeout=SOON, check=False,
            env=ENVIRONMENT,
        )  # fmt: skip
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == 143


def test_errors_that_an_interrupt_turns_into_are_interrupts(local: Path, tmp_path: Path) -> None:
    """A library may turn the exception into one of its own, and show the one that it caught."""
    code = STAYING.replace(
        "        except BaseException:\n            pass\n",
        "        except BaseException:\n"
        "            sys.excepthook(*sys.exc_info())\n"
        "            raise ImportError('numpy._core.multiarray failed to import') from None\n",
    )
    assert code != STAYING
    with staying(local, tmp_path, "search", "losing", code) as running:
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=SOON)
    assert running.returncode == 130
    assert one_line(err) == "counterlvq: interrupted; nothing was written"


def test_what_went_to_standard_output_is_not_denied(local: Path) -> None:
    """Nobody reads the pipe, so that the command stays in the midst of its output."""
    words = [
        "explain",
        "--cost",
        "manhattan",
        str(local / "m.clvq"),
        str(local / "few.csv"),
        "--format",
        "json",
    ]
    code = "from counterlvq.cli import explain as e\ntold = e._told\n"
    code += (
        "e._told = lambda *a, **k: told(*a, **k) * 5000\nfrom counterlvq.cli import main\nmain()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    ) as running:
        assert running.stdout is not None
        assert running.stdout.read(1) == b"["
        running.send_signal(signal.SIGTERM)
        assert running.wait(timeout=SOON) == 143
        assert running.stderr is not None
        told = one_line(running.stderr.read())
    assert told == (
        "counterlvq: ended by SIGTERM; what was written to standard output may not be all"
    )


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_kills_at_random_moments_leave_nothing_half_done() -> None:
    """Some of what `make kills` does; it may take as long as a busy machine takes."""
    script = Path(__file__).resolve().parents[2] / "scripts" / "kills.py"
    words = ["--count", "24", "--seed", "7", "--patience", str(SOON)]
    done = subprocess.run(
        [sys.executable, str(script), *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "24 runs" in done.stdout


# --- two jobs -------------------------------------------------------------------------------------


def session(number: int) -> list[int]:
    """Processes of a session that are alive."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                state, _, _, of = (place / "stat").read_text().rpartition(") ")[2].split()[:4]
            except OSError:  # it has just ended
                continue
            if int(of) == number and state != "Z":
                found.append(int(place.name))
    return found


def until(is_so: Callable[[], bool], seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if is_so():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize(
    ("sign", "to_all"),
    some([(signal.SIGINT, True), (signal.SIGTERM, False), (signal.SIGINT, False)], quick=2),
)
def test_workers_end_with_the_command(
    local: Path, tmp_path: Path, sign: signal.Signals, to_all: bool
) -> None:
    """Ctrl-C at a terminal goes to the workers, too."""
    words = [
        "explain",
        "--cost",
        "manhattan",
        "m.clvq",
        "many.csv",
        "--jobs",
        "2",
        "-o",
        str(tmp_path / "told.csv"),
    ]
    with subprocess.Popen(
        [*COMMAND, *words],
        cwd=local,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
        start_new_session=True,
    ) as running:
        assert until(lambda: len(session(running.pid)) > 2)
        time.sleep(1.0)
        (os.killpg if to_all else os.kill)(running.pid, sign)
        _, err = running.communicate(timeout=SOON)
    assert running.returncode == 128 + sign
    assert until(lambda: not session(running.pid)), "workers are alive"
    assert one_line(err) == f"counterlvq: {SIGNS[sign]}; nothing was written"
    assert os.listdir(tmp_path) == []

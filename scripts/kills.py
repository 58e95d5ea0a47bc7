"""Kill the command at random moments, and look at what is left.

Each run is a command of its own, ended by SIGINT, SIGTERM or SIGKILL at a moment drawn from its
whole length; some find no compiled code, some have two workers, and to some the signal goes as from
a terminal, to all processes. Afterwards:

- the output is absent, or the old one, or whole;
- after SIGINT and SIGTERM the exit code is 130 or 143, one line tells what was written and there is
  no traceback, no temporary file and, within two seconds, no process, unless the command was done
  before the signal came;
- after SIGKILL no process of the command is alive a few seconds later.

The clock starts when the command answers to signals: what comes before is Python's own start.

    python scripts/kills.py --count 200 --seed 0
"""

from __future__ import annotations

import argparse
import collections
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import counterlvq as clvq

OLD = b"what was there before"
SIGNS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
AFTER_KILL = 5.0  # seconds


class Job(NamedTuple):
    """A command and, once it has been run, what it writes and how long it takes."""

    name: str
    words: tuple[str, ...]
    compiles: bool = False
    content: bytes = b""
    seconds: float = 0.0


# A cost of one's own, so that nothing is said about a summary that the models do not have.
PLAIN = ("--cost", "manhattan")
JOBS = (
    Job("train", ("train", "labelled.csv", "--label", "y")),
    Job("explain", ("explain", *PLAIN, "shared.clvq", "rows.csv", "--format", "csv")),
    Job(
        "explain, compiling",
        ("explain", *PLAIN, "shared.clvq", "rows.csv", "--format", "json"),
        True,
    ),
    Job("explain local", ("explain", *PLAIN, "local.clvq", "rows.csv", "--format", "parquet")),
    Job("explain local, two jobs", ("explain", *PLAIN, "local.clvq", "rows.csv", "--jobs", "2")),
    Job("report", ("report", *PLAIN, "shared.clvq", "rows.csv", "--limit", "2", "--no-pictures")),
)


def prepare(folder: Path) -> None:
    """Write models and tables."""
    draw = np.random.default_rng(0)
    names = [f"f{j}" for j in range(4)]
    points, labels = draw.normal(size=(4, 4)), ["no", "no", "yes", "yes"]
    clvq.save(clvq.PrototypeModel(points, labels, feature_names=names), folder / "shared.clvq")
    metrics = draw.normal(size=(4, 4, 4))
    local = clvq.PrototypeModel(points, labels, omegas=metrics, feature_names=names)
    clvq.save(local, folder / "local.clvq")
    rows = draw.normal(size=(60, 4))
    for name, ends in (("rows.csv", [""] * 60), ("labelled.csv", [",a", ",b"] * 30)):
        head = ",".join(names) + (",y" if ends[0] else "")
        lines = [",".join(map(str, row)) + end for row, end in zip(rows, ends, strict=True)]
        (folder / name).write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")


def start(job: Job, folder: Path, out: Path, cache: Path | None) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own, so that all its processes can be found."""
    environment = os.environ | ({"NUMBA_CACHE_DIR": str(cache)} if cache else {})
    return subprocess.Popen(
        [sys.executable, "-m", "counterlvq", *job.words, "-o", str(out)],
        cwd=folder, env=environment, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip


def answers_to_signals(running: subprocess.Popen[bytes]) -> bool:
    """Wait until the command has its own way with SIGTERM; False if it has ended."""
    while running.poll() is None:
        for line in Path(f"/proc/{running.pid}/status").read_text().splitlines():
            if line.startswith("SigCgt:") and int(line.split()[1], 16) >> (signal.SIGTERM - 1) & 1:
                return True
        time.sleep(0.002)
    return False


def alive(session: int) -> list[int]:
    """Processes of a session."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                words = (place / "stat").read_text().rpartition(") ")[2].split()
            except OSError:  # it has just ended
                continue
            if int(words[3]) == session and words[0] != "Z":
                found.append(int(place.name))
    return found


def kill_once(
    job: Job, folder: Path, draw: random.Random, patience: float
) -> tuple[str, list[str]]:
    """Kill one run; what became of it, and what is wrong with that."""
    sign, to_all, is_new = draw.choice(SIGNS), draw.random() < 0.3, draw.random() < 0.5
    place = Path(tempfile.mkdtemp(dir=folder))
    out, cache = place / "out.txt", (place / "cache" if job.compiles else None)
    if not is_new:
        out.write_bytes(OLD)
    with start(job, folder, out, cache) as running:
        if not answers_to_signals(running):
            return "ended by itself", ["it ended before it could be killed"]
        time.sleep(draw.random() * job.seconds * 0.9)
        done_before = running.poll() is not None
        begun = time.monotonic()
        if not done_before:
            (os.killpg if to_all else os.kill)(running.pid, sign)
        _, told = running.communicate()
        took = time.monotonic() - begun
    wrong = list(faults_of(job, out, sign, is_new, running.returncode, told.decode()))
    if sign is not signal.SIGKILL and took > patience:
        wrong.append(f"it took {took:.1f} s to end")
    end = time.monotonic() + (AFTER_KILL if sign is signal.SIGKILL else patience)
    while (left := alive(running.pid)) and time.monotonic() < end:
        time.sleep(0.05)
    if left:
        wrong.append(f"processes are alive: {left}")
        for number in left:  # of the session that was started here
            os.kill(number, signal.SIGKILL)
    fate = "done" if done_before or running.returncode == 0 else sign.name
    described = f"{sign.name}{' to all' if to_all else ''} after {took:.2f} s, {told!r}"
    shutil.rmtree(place)
    return fate, [f"{job.name}, {described}: {fault}" for fault in wrong]


def faults_of(
    job: Job, out: Path, sign: signal.Signals, is_new: bool, code: int, told: str
) -> Iterator[str]:
    """What is wrong with the state after one kill."""
    content = out.read_bytes() if out.exists() else None
    written = content == job.content
    if not written and content != (None if is_new else OLD):
        yield f"the output is neither whole nor as before: {content!r:.80}"
    hidden = [path.name for path in out.parent.rglob("*") if ".part" in path.name]
    hidden += [path.name for path in out.parent.rglob("*.tmp.*")]
    if code == 0:
        if not written:
            yield "exit code 0, and no output"
        return
    if code != (-sign if sign is signal.SIGKILL else 128 + sign):
        yield f"exit code {code}"
    if sign is signal.SIGKILL:
        return
    if hidden:
        yield f"temporary files are left: {hidden}"
    lines = told.splitlines()
    if len(lines) != 1 or not lines[0].startswith("counterlvq: "):
        yield "it did not say one line"
    elif written == ("nothing was written" in lines[0]):
        yield "the line does not say what was written"


def campaign(count: int, seed: int, patience: float) -> int:
    """Kill so many runs, and tell what was found; 1 if something is wrong."""
    draw = random.Random(seed)
    fates: collections.Counter[str] = collections.Counter()
    faults: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        jobs = [timed(job, folder) for job in JOBS]
        for k in range(count):
            fate, wrong = kill_once(jobs[k % len(jobs)], folder, draw, patience)
            fates[fate] += 1
            faults += wrong
            for fault in wrong:
                print(f"WRONG {fault}", flush=True)
    told = ", ".join(f"{number} {fate}" for fate, number in sorted(fates.items()))
    print(f"{count} runs: {told}; {len(faults)} faults")
    return 1 if faults else 0


def timed(job: Job, folder: Path) -> Job:
    """Run a command to its end, twice so that its usual length is known."""
    for _ in range(2):
        out, cache = folder / "reference", (Path(tempfile.mkdtemp()) if job.compiles else None)
        with start(job, folder, out, cache) as running:
            answers_to_signals(running)
            begun = time.monotonic()
            _, told = running.communicate()
        if cache:
            shutil.rmtree(cache)
        if running.returncode != 0:
            raise SystemExit(f"{job.name} ended with code {running.returncode}: {told!r}")
        job = job._replace(content=out.read_bytes(), seconds=time.monotonic() - begun)
        out.unlink()
    return job


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--count", type=int, default=200)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument(
        "--patience", type=float, default=2.0, help="seconds; more on a machine that is busy"
    )
    told = arguments.parse_args()
    sys.exit(campaign(told.count, told.seed, told.patience))

"""Read files of strangers in a process of its own, with limits that the kernel keeps.

``python -m fuzz.sandbox`` takes a pickled list of (reader, bytes) from standard input and says of
each, in a line of JSON, what came out, how long it took and how much memory it needed. Whoever
asks for gigabytes gets none, and whoever does not come back is ended by the kernel's own timer.
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time

ROOT = Path(__file__).resolve().parents[1]

# What a process may have beyond what it has when all is imported, and when the kernel ends it.
_MOST_MEMORY = 3 << 30
_MOST_SECONDS = 20.0
_LONGEST_WAIT = 600.0


@dataclass(frozen=True)
class File:
    """Bytes for one of the readers of `fuzz.readers`."""

    reader: str
    kind: str  # how it was made
    content: bytes


@dataclass(frozen=True)
class Told:
    """What a reader did with a file."""

    what: str  # "read", "refused", "foreign" or "died"
    words: str
    seconds: float
    memory: int  # bytes beyond what was ever needed before


def read_apart(files: Sequence[File]) -> list[Told]:
    """Read files in a process of its own; after one that ends it, in another one."""
    told: list[Told] = []
    while len(told) < len(files):
        found, end = _asked([(file.reader, file.content) for file in files[len(told) :]])
        told += found
        if len(told) < len(files):
            told.append(Told("died", end, _MOST_SECONDS, 0))
    return told


def _asked(files: list[tuple[str, bytes]]) -> tuple[list[Told], str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "fuzz.sandbox"],
        input=pickle.dumps(files),
        capture_output=True,
        cwd=ROOT,
        env=environment,
        timeout=_LONGEST_WAIT,
        check=False,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode not in (0, -signal.SIGPROF) and not lines and b"ready" not in done.stderr:
        raise RuntimeError(f"the sandbox does not start: {done.stderr.decode()[-2000:]}")
    code = done.returncode
    end = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return [Told(**line) for line in lines], f"{end}: {done.stderr.decode()[-300:]}"


def _serve() -> None:
    from fuzz.readers import READERS, warm_up

    files = pickle.load(sys.stdin.buffer)  # of our own making
    warm_up()
    print("ready", file=sys.stderr, flush=True)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    room = _address_space() + _MOST_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (room, room))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for reader, content in files:
        peak, start = _peak(), process_time()
        signal.setitimer(signal.ITIMER_PROF, _MOST_SECONDS)
        what, words = READERS[reader].outcome(content)
        signal.setitimer(signal.ITIMER_PROF, 0)
        line = {"what": what, "words": words, "seconds": process_time() - start,
                "memory": _peak() - peak}  # fmt: skip
        print(json.dumps(line), flush=True)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _address_space() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return pages * resource.getpagesize()


if __name__ == "__main__":
    _serve()

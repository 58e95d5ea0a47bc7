"""Peak memory of a large batch, in a process of its own: `python -m benchmarks.memory ROWS`."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import resource
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import counterlvq as clvq
from benchmarks.problems import SEED

FEATURES, PROTOTYPES, CLASSES = 10, 30, 10


@dataclass(frozen=True)
class MemoryFigures:
    """Bytes; `extra` is the peak above the state before the call, less the result."""

    rows: int
    features: int
    jobs: int
    input: int
    output: int
    extra: int


def measure(rows: int) -> MemoryFigures:
    """Ask a fresh process, in which nothing else has been measured."""
    command = [sys.executable, "-m", "benchmarks.memory", str(rows)]
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    return MemoryFigures(**json.loads(done.stdout))


def _measure_here(n: int, jobs: int = 2) -> MemoryFigures:
    rng = np.random.default_rng(SEED)
    labels = np.arange(PROTOTYPES) % CLASSES
    model = clvq.PrototypeModel(rng.standard_normal((PROTOTYPES, FEATURES)), labels)
    explainer = clvq.Explainer(model)
    X = rng.standard_normal((n, FEATURES))
    explainer.explain_batch(X[:1000], n_jobs=jobs)
    before = _resident()
    batch = explainer.explain_batch(X, n_jobs=jobs)
    most, output = peak(), _bytes_of(batch, X)
    return MemoryFigures(n, FEATURES, jobs, X.nbytes, output, max(0, most - before - output))


def _bytes_of(batch: clvq.CounterfactualBatch, X: np.ndarray) -> int:
    """Size of the arrays of a result, without those that it shares with the input."""
    arrays = [getattr(batch, field.name) for field in dataclasses.fields(batch)]
    return sum(
        array.nbytes
        for array in arrays
        if isinstance(array, np.ndarray) and not np.shares_memory(array, X)
    )


def _resident() -> int:
    """Memory in use now, and the peak starts anew; elsewhere than on Linux the peak so far."""
    with contextlib.suppress(OSError):  # without it earlier peaks count, which only adds
        Path("/proc/self/clear_refs").write_text("5")
    return _of_status("VmRSS") or peak()


def peak() -> int:
    """Largest memory in use so far. Linux hands `ru_maxrss` on to children, so it comes last."""
    known = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return _of_status("VmHWM") or known * (1 if sys.platform == "darwin" else 1024)


def _of_status(name: str) -> int | None:
    """A figure of this process in bytes, where the system offers it."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(lines[name].split()[0]) * 1024


if __name__ == "__main__":
    print(json.dumps(dataclasses.asdict(_measure_here(int(sys.argv[1])))))

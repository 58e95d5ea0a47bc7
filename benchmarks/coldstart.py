"""What a fresh process waits for: the import, and the first answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass

import numpy as np

_CHILD = """
import json, sys
from time import perf_counter
start = perf_counter()
import numpy
numpy_ready = perf_counter()
import counterlvq as clvq
imported = perf_counter()
heavy = [name for name in ("numba", "pandas", "matplotlib") if name in sys.modules]
model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 1.0], [1.0, 5.0]], ["a", "b", "c"])
clvq.Explainer(model).explain([0.0, 0.0], target="b")
answered = perf_counter()
print(json.dumps([numpy_ready - start, imported - numpy_ready, answered - imported, heavy]))
"""


@dataclass(frozen=True)
class ColdStart:
    """Seconds in a fresh process, medians."""

    processes: int
    numpy: float  # import of NumPy alone, for comparison
    package: float  # import of the package after it
    first_compiled: float | None  # first answer, with an empty cache of compiled code
    first_cached: float  # first answer, compiled code read from disk
    heavy_imports: tuple[str, ...]  # large packages that the import alone brings in


def measure(processes: int, *, compile_afresh: bool) -> ColdStart:
    """Start fresh processes; with `compile_afresh` they get a cache of their own, empty first."""
    with tempfile.TemporaryDirectory() as folder:
        cache = {"NUMBA_CACHE_DIR": folder} if compile_afresh else {}
        first = _child(cache)
        later = [_child(cache) for _ in range(processes)]
    return ColdStart(
        processes=processes,
        numpy=float(np.median([run[0] for run in later])),
        package=float(np.median([run[1] for run in later])),
        first_compiled=first[2] if compile_afresh else None,
        first_cached=float(np.median([run[2] for run in later])),
        heavy_imports=tuple(first[3]),
    )


def _child(environment: dict[str, str]) -> list:
    done = subprocess.run(
        [sys.executable, "-c", _CHILD],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    return json.loads(done.stdout)

"""What a fresh process waits for until its first answer is printed, before and now.

`python -m benchmarks.first_answer` measures that in seconds of the processor, with nothing compiled
and with compiled code on disk, beside the import of NumPy and Numba alone. The same for a first
batch, which is too large for the interpreter, so that it shows what compiling takes. With `--before
FOLDER`, the `src` folder of another checkout, it measures both in turn.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.figures import environment
from benchmarks.report import plain, row, write_atomically

RESULTS = Path(__file__).resolve().parent / "results"
SOURCE = Path(__file__).resolve().parents[1] / "src"
# Seconds above the import of NumPy, and of NumPy and Numba.
IMPORT_GOAL, WARM_GOAL = 0.3, 0.5
# Share of the time before.
COLD_GOAL = 1 / 3
BATCH = 10_000

_TIMED = """
import json, sys
from time import process_time
start = process_time()
import numpy
numpy_ready = process_time()
if sys.argv[1] == "numba":
    import numba
    print(json.dumps([numpy_ready - start, process_time() - numpy_ready]))
    sys.exit()
import counterlvq as clvq
imported = process_time()
model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 1.0], [1.0, 5.0]], ["a", "b", "c"])
cost = clvq.Manhattan() if sys.argv[1] == "L1" else clvq.Euclidean()
explainer, rows = clvq.Explainer(model, cost), int(sys.argv[2])
if rows == 1:
    str(explainer.explain([0.0, 0.0], target="b"))
else:
    str(explainer.explain_batch(numpy.zeros((rows, 2)), target="b"))
print(json.dumps([numpy_ready - start, imported - numpy_ready, process_time() - imported]))
"""


@dataclass(frozen=True)
class Start:
    """Seconds of the processor until the first answer is printed, for one checkout and cost."""

    name: str
    cost: str
    rows: int
    package: float  # import of the package, above that of NumPy
    cold: float  # import and first answer, nothing compiled; above the import of NumPy
    warm: float  # the same from the second process on, median


def started(name: str, source: Path, cost: str, rows: int, processes: int) -> Start:
    """Start processes with a cache of compiled code of their own, empty first."""
    with tempfile.TemporaryDirectory() as folder:
        own = {"NUMBA_CACHE_DIR": folder, "PYTHONPATH": str(source)}
        cold = _timed(own, cost, rows)
        warm = [_timed(own, cost, rows) for _ in range(processes)]
    package = median(run[1] for run in warm)
    later = median(run[1] + run[2] for run in warm)
    return Start(name, cost, rows, package, cold[1] + cold[2], later)


def _timed(variables: dict[str, str], what: str, rows: int = 1) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-c", _TIMED, what, str(rows)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **variables},
    )
    return json.loads(done.stdout)


def markdown(results: dict[str, Any]) -> str:
    """The whole run as a table, with the verdict."""
    where, numba = results["environment"], results["numba"]
    starts = [Start(**item) for item in results["starts"]]
    lines = [
        "# The first answer\n",
        f"`python -m benchmarks.first_answer`, {where['date']}. Python {where['python']} on "
        f"{where['platform']}, {where['cores']} cores, load average before "
        f"{where['load_before'][0]:.1f}. Seconds of the processor above the import of NumPy: from "
        f"a fresh process to a printed counterfactual, or summary of a batch, of a model with "
        f"three prototypes. Cold: nothing is compiled yet. Warm: from the second process on, "
        f"median of {results['processes']}. The import of Numba alone takes {numba:.2f}. Small "
        f"questions are left to the interpreter, so that a first answer compiles nothing; a batch "
        f"shows what compiling takes.\n",
        row(["checkout", "cost", "rows", "import", "cold", "warm", "warm above Numba"]),
        row(["---"] * 2 + ["---:"] * 5),
    ]
    lines += [
        row([s.name, s.cost, f"{s.rows:,}", f"{s.package:.2f}", f"{s.cold:.1f}", f"{s.warm:.2f}",
             f"{s.warm - numba:.2f}"])
        for s in starts
    ]  # fmt: skip
    own = [s for s in starts if s.name == "now" and s.rows == 1]
    lines.append(
        f"\nThe import is to take at most {IMPORT_GOAL} s: "
        f"{_reached(max(s.package for s in own) <= IMPORT_GOAL)}. A warm start is to take at most "
        f"{WARM_GOAL} s above Numba: {_reached(max(s.warm for s in own) - numba <= WARM_GOAL)}."
    )
    before = {s.cost: s for s in starts if s.name == "before" and s.rows == 1}
    if before:
        share = max(s.cold / before[s.cost].cold for s in own)
        lines.append(
            f"A cold start is to take at most a third of the time before: "
            f"{_reached(share <= COLD_GOAL)}, with a share of {share:.2f}."
        )
    return "\n".join(lines) + "\n"


def _reached(is_reached: bool) -> str:
    return "reached" if is_reached else "not reached"


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write `first_answer.json` and `first_answer.md`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_answer", description=__doc__)
    parser.add_argument("--before", type=Path, help="src folder of another checkout")
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for the results")
    chosen = parser.parse_args(arguments)
    where, checkouts = environment(), {"now": SOURCE}
    if chosen.before is not None:
        checkouts = {"before": chosen.before.resolve(), **checkouts}
    numba = median(_timed({}, "numba")[1] for _ in range(chosen.processes))
    starts = [
        asdict(started(name, source, cost, rows, chosen.processes))
        for cost in ("L1", "L2")
        for rows in (1, BATCH)
        for name, source in checkouts.items()
    ]
    results = {
        "environment": where, "processes": chosen.processes, "numba": numba, "starts": starts,
    }  # fmt: skip
    text, out = markdown(results), chosen.output
    content = json.dumps(plain(results), indent=1, allow_nan=False) + "\n"
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / "first_answer.json", lambda path: path.write_text(content, "utf-8"))
    write_atomically(out / "first_answer.md", lambda path: path.write_text(text, "utf-8"))
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Batches of plain numbers beside an earlier state: medians of five runs, taken in turns.

`python -m benchmarks.plain_batches --before FOLDER`, the `src` folder of another checkout, with
`--rows` for another size of batch. Each state answers in a process of its own. The processes live
side by side and are asked in turns, so that what disturbs one disturbs the other. Times are those
of the processor, one thread, kernels compiled before.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.figures import environment
from benchmarks.problems import COSTS, Problem, problems
from benchmarks.report import duration, plain, row, write_atomically
from benchmarks.timing import in_the_long_run

RUNS = 5
_ROOT = Path(__file__).resolve().parents[1]
_REPORT = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Plain:
    """One problem, answered by both states in turns."""

    data: str
    model: str
    cost: str
    rows: int
    before: list[float]  # seconds of each run
    now: list[float]
    apart: float  # largest difference of two costs, as a share

    @property
    def ratio(self) -> float:
        """Median now in units of that before."""
        return median(self.now) / median(self.before)

    @property
    def is_slower(self) -> bool:
        """Whether it is slower beyond noise: the median now than each run before."""
        return median(self.now) > max(self.before)


def answer(problem: Problem, cost: str) -> tuple[float, list[float]]:
    """Answer a batch; returns seconds of the processor, and what the answers cost."""
    explainer = problem.explainer(cost)
    begun = process_time()
    batch = explainer.explain_batch(problem.rows, problem.wish, n_jobs=1)
    return process_time() - begun, batch.cost.tolist()


def serve(rows: int) -> None:
    """Answer what is asked on the standard input, one line each, until it ends."""
    known = list(problems(rows))
    in_the_long_run()
    with threadpool_limits(1):
        for line in sys.stdin:
            number, cost = json.loads(line)
            print(json.dumps(plain(answer(known[number], cost))), flush=True)


@contextmanager
def asking(source: Path, rows: int) -> Iterator[Any]:
    """Start the state of a folder in a process of its own; yields whom to ask."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.plain_batches", "--serve", "--rows", str(rows)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": str(source)},
    )  # fmt: skip
    asked, told = process.stdin, process.stdout
    assert asked is not None
    assert told is not None

    def ask(number: int, cost: str) -> tuple[float, list[float]]:
        print(json.dumps([number, cost]), file=asked, flush=True)
        line = told.readline()
        if not line:
            raise RuntimeError(f"the state in {source} ended early, with code {process.wait()}")
        seconds, costs = json.loads(line)
        return seconds, costs

    try:
        yield ask
    finally:
        asked.close()
        process.wait()
        told.close()


def run(before: Path, now: Path, rows: int) -> list[Plain]:
    """Ask both states about all problems."""
    found = []
    with asking(before, rows) as ask_before, asking(now, rows) as ask_now:
        for number, problem in enumerate(problems(rows)):
            for cost in COSTS:
                old, new = ask_before(number, cost)[1], ask_now(number, cost)[1]  # compiled here
                pairs = zip(old, new, strict=True)
                apart = max(abs(a - b) / max(abs(a), 1e-9) for a, b in pairs)
                turns = [
                    (ask_before(number, cost)[0], ask_now(number, cost)[0]) for _ in range(RUNS)
                ]
                earlier, later = ([*times] for times in zip(*turns, strict=True))
                size = len(problem.rows)
                found.append(Plain(problem.name, problem.kind, cost, size, earlier, later, apart))
                print(f"{problem.name} {problem.kind} {cost}", file=sys.stderr, flush=True)
    return found


def markdown(where: dict[str, Any], found: list[Plain]) -> str:
    """The whole run as a table."""
    ratios = [one.ratio for one in found]
    lines = [
        "# Batches of plain numbers, before and now",
        "",
        f"`python -m benchmarks.plain_batches --before FOLDER`, {where['date']}. Python "
        f"{where['python']} on {where['platform']}, {where['cores']} cores, load average before "
        f"{where['load_before'][0]:.1f}. Both states are asked in turns, each in a process of its "
        f"own: medians of {RUNS} runs in time of the processor, one thread, kernels compiled "
        "before. Under 1: faster now.",
        "",
        row(["data", "model", "cost", "rows", "before, per row", "now, per row", "now / before",
             "single turns", "costs differ by"]),
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    for one in found:
        turns = sorted(new / old for old, new in zip(one.before, one.now, strict=True))
        lines.append(row([
            one.data, one.model, one.cost, str(one.rows),
            duration(median(one.before) / one.rows), duration(median(one.now) / one.rows),
            f"{one.ratio:.2f}", f"{turns[0]:.2f} to {turns[-1]:.2f}", f"{one.apart:.0e}",
        ]))  # fmt: skip
    slower = [f"{one.data} {one.model} {one.cost}" for one in found if one.is_slower]
    lines += [
        "",
        f"Median of all ratios {median(ratios):.2f}, least {min(ratios):.2f}, largest "
        f"{max(ratios):.2f}. Not slower than before, beyond the noise of {RUNS} turns: "
        + (f"not reached by {', '.join(slower)}." if slower else "reached."),
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plain_batches", description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000, help="rows of each batch")
    parser.add_argument("--before", type=Path, help="src folder of another checkout")
    parser.add_argument("--output", type=Path, default=_REPORT, help="folder for the report")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.rows)
        return 0
    if options.before is None:
        parser.error("expected --before with the src folder of another checkout")
    where = environment()
    found = run(options.before.resolve(), _ROOT / "src", options.rows)
    content = {"environment": where, "runs": [{**asdict(one), "ratio": one.ratio} for one in found]}
    text, out = markdown(where, found), options.output
    out.mkdir(parents=True, exist_ok=True)
    data = json.dumps(plain(content), indent=1, allow_nan=False) + "\n"
    write_atomically(out / "plain_batches.json", lambda path: path.write_text(data, "utf-8"))
    write_atomically(out / "plain_batches.md", lambda path: path.write_text(text, "utf-8"))
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

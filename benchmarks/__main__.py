"""Measure everything in one run: `make bench`, or `python -m benchmarks --quick`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from time import perf_counter

from threadpoolctl import threadpool_limits

from benchmarks import coldstart, figures, growth, memory, neighbours
from benchmarks.compare import Measured, compare
from benchmarks.report import duration, markdown, write_all
from benchmarks.sizes import FULL, QUICK, Sizes
from benchmarks.timing import ceiling_of_two_threads


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows, for a first look")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results",
        help="folder for bench.json, bench.md and bench.png",
    )
    options = parser.parse_args()
    with threadpool_limits(1):  # a job is one thread, for every method
        found = measure(QUICK if options.quick else FULL)
    write_all(found, options.output)
    print(markdown(found))
    wrong = figures.complaints(found)
    for complaint in wrong:
        print(f"wrong: {complaint}", file=sys.stderr)
    return 1 if wrong else 0


def measure(sizes: Sizes) -> figures.Results:
    """Run everything, one thing at a time."""
    start = perf_counter()
    environment = figures.environment()
    comparison = list(_told(compare(sizes)))
    ceiling = ceiling_of_two_threads(sizes.repeats)
    _say("1-NN on the digits")
    near = neighbours.measure(sizes)
    _say("growth")
    curves = growth.measure(sizes)
    _say("memory and cold start")
    return figures.Results(
        environment=environment,
        sizes=sizes,
        comparison=comparison,
        ceiling=ceiling,
        neighbours=near,
        growth=curves,
        memory=memory.measure(sizes.memory),
        cold_start=coldstart.measure(sizes.cold, compile_afresh=sizes.compile_afresh),
        seconds=perf_counter() - start,
    )


def _told(measured: Iterable[Measured]) -> Iterable[Measured]:
    for m in measured:
        _say(f"{m.data} {m.model} {m.cost}: {m.method} {duration(m.seconds)}")
        yield m


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""Models with local metrics: proofs, times, growth, and where the time goes.

`python -m benchmarks.local`, with `--quick` on a few rows; with `--columns` pipelines alone, in the
user's own columns, with `--growth` how these grow, with `--before FOLDER` beside an earlier state.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from threadpoolctl import threadpool_limits

from benchmarks import local_columns, local_columns_growth, local_growth, local_profile
from benchmarks.figures import environment
from benchmarks.local_before import beside
from benchmarks.local_columns_report import ColumnResults, write
from benchmarks.local_figures import FULL, QUICK, LocalResults, LocalSizes, complaints
from benchmarks.local_methods import METHODS, Run, beside_plain_loop, run
from benchmarks.local_problems import LocalProblem, digit_rows, known_sets, random_problem
from benchmarks.local_report import markdown, write_all
from benchmarks.problems import COSTS

# Rows of one problem that are put to an earlier state as well.
BESIDE = 8


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.local", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows, for a first look")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results",
        help="folder for local.json, local.md and local.png",
    )
    parser.add_argument("--columns", action="store_true", help="pipelines in the user's columns")
    parser.add_argument("--rows", type=int, default=30, help="of each pipeline")
    parser.add_argument("--problem", action="append", choices=local_columns.NAMES)
    parser.add_argument("--cost", action="append", choices=COSTS)
    parser.add_argument("--growth", action="store_true", help="with columns, and what metrics see")
    parser.add_argument("--before", type=Path, help="checkout of an earlier state to compare with")
    parser.add_argument("--commit", default="an earlier state", help="what that checkout is called")
    options = parser.parse_args()
    if options.columns or options.growth or options.problem or options.before:
        with threadpool_limits(1):
            return _columns(options)
    with threadpool_limits(1):  # a job is one thread, for every method
        found = measure(QUICK if options.quick else FULL)
    write_all(found, options.output)
    print(markdown(found))
    wrong = complaints(found)
    for complaint in wrong:
        print(f"wrong: {complaint}", file=sys.stderr)
    return 1 if wrong else 0


def _columns(options: argparse.Namespace) -> int:
    """Measure problems, and store each as soon as it is measured: others stay as they were."""
    folder = options.output
    chosen = options.problem or ([*local_columns.NAMES] if options.columns else [])
    for found in local_columns.measure(chosen, options.cost or COSTS, options.rows):
        share = sum(found.proved) / len(found.proved)
        _say(
            f"{found.problem} {found.space} {found.cost} {found.method}: {share:.0%} "
            f"in {sum(found.seconds):.1f} s"
        )
        write(ColumnResults.stored(folder).with_run(found), folder)
    if options.before is not None:
        for cost in options.cost or COSTS:
            pair = beside(local_columns.CANCER, cost, BESIDE, options.before, options.commit)
            _say(f"{pair.problem} {cost}: {pair.ratio:.1f} times faster than at {pair.commit}")
            write(ColumnResults.stored(folder).with_pair(pair), folder)
    if options.growth:
        growth = local_columns_growth.measure()
        write(replace(ColumnResults.stored(folder), growth=growth), folder)
    print((folder / "local_columns.md").read_text("utf-8"))
    return 0


def measure(sizes: LocalSizes) -> LocalResults:
    """Run everything, one thing at a time."""
    start, where = perf_counter(), environment()
    known = [problem.head(sizes.known) for problem in known_sets()]
    digits = list(digit_rows(sizes.digits))
    runs = [found for problem in (*known, *digits) for found in measured(problem, sizes)]
    _say("ccp beside the plain loop")
    loops = [beside_plain_loop(problem, sizes.repeats) for problem in digits]
    _say("growth")
    growth = local_growth.measure(sizes.features, sizes.rivals, sizes.growth)
    _say("profile")
    widest = random_problem(max(sizes.features), local_growth.RIVALS, "L1", sizes.profile)
    profiles = [
        local_profile.measure(problem.head(sizes.profile))
        for problem in (known[0], *digits, widest)
    ]
    return LocalResults(where, sizes, runs, loops, growth, profiles, perf_counter() - start)


def measured(problem: LocalProblem, sizes: LocalSizes) -> Iterator[Run]:
    """Every method on one problem, as it is measured."""
    for method in METHODS:
        found = run(problem, method, sizes.time_limit if method == "global" else None)
        _say(f"{problem.name} {problem.cost}: {method} {sum(found.seconds):.1f} s")
        yield found


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

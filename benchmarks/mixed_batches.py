"""Batches of whole numbers and levels: time per row beside plain MILPs, and where rows end.

`python -m benchmarks.mixed_batches`, with `--rows` for another size of batch and `--many` for the
large one. Times are those of the processor, one thread, the model's own `predict` included. With
`--before FOLDER`, the `src` folder of another checkout, that one answers a few of the same rows in
a process of its own, and a profile says where its time goes.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.baselines.milp import solve_stated, stated_row
from benchmarks.figures import environment
from benchmarks.mixed_problems import (
    COSTS,
    MixedProblem,
    ames_problem,
    credit_problem,
    drawn_problem,
    many_levels_problem,
)
from benchmarks.report import duration, plain, row, write_atomically
from benchmarks.timing import in_the_long_run

_MILP_ROWS = 6
_BEFORE_ROWS = 6
_SHOWN_SHARES = 4
_ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Batch:
    """One problem, all rows at once."""

    name: str
    cost: str
    features: int
    rows: int
    seconds: float
    proved: int
    left_over: int  # rows that the compiled search left to the one that is not
    combinations: int  # of levels
    milp_seconds: list[float]
    worse_than_milp: float  # largest relative difference of the two optima
    parts: dict[str, float]  # seconds, by what they were spent on


@dataclass(frozen=True)
class Before:
    """A few rows of one problem, by another checkout."""

    name: str
    cost: str
    features: int
    each: float  # seconds per row
    shares: dict[str, float]  # of the time of a profile, by package or module


@dataclass(frozen=True)
class Large:
    """One large batch on two threads."""

    rows: int
    combinations: int
    wall_seconds: float
    processor_seconds: float
    proved: int
    left_over: int


_MODEL = "counterlvq.pipelines.source.ExplainedModel"
# What the parts of a profile are called, and where they are spent.
_PARTS = {
    "model in the coordinates of levels": f"{_MODEL}.seen_in_each",
    "programs of a target": "counterlvq.search.strategies.BranchAndBound.prepare_each",
    "search": "counterlvq.batch.mixed.branch_rows",
    "proof": "counterlvq.certificates.packed_boxes.FlatGrounds.bounds",
    "the user's transform": "counterlvq.pipelines.probe_rows.PipelineRows.images",
    "the user's predict": "counterlvq.pipelines.probe_rows.PipelineRows.labels",
}


class _Clock:
    """Adds up the processor time of calls."""

    def __init__(self) -> None:
        self.parts = dict.fromkeys(_PARTS, 0.0)

    def around(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*given: Any, **named: Any) -> Any:
            begun = process_time()
            try:
                return call(*given, **named)
            finally:
                self.parts[name] += process_time() - begun

        return timed


def _profile(answer: Callable[[], Any]) -> dict[str, float]:
    """Say where the time of a batch goes; what is left over is Python around it."""
    clock = _Clock()
    with ExitStack() as stack:
        for name, path in _PARTS.items():
            owner, attribute = path.rsplit(".", 1)
            found = getattr(_resolved(owner), attribute)
            stack.enter_context(patch(path, clock.around(name, found)))
        begun = process_time()
        answer()
        whole = process_time() - begun
    return {**clock.parts, "all": whole}


def _resolved(path: str) -> Any:
    import importlib

    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        owner, attribute = path.rsplit(".", 1)
        return getattr(importlib.import_module(owner), attribute)


def run(problem: MixedProblem) -> Batch:
    """Answer all rows in one batch, and a few of them as plain MILPs where that is possible."""
    in_the_long_run()
    targets = list(problem.targets)
    # What is compiled, or loaded from disk, for any of the rows is not counted.
    problem.explainer().explain_batch(problem.table, targets)
    # The median of three: once in a while Python looks through all that it holds, which takes time.
    times = []
    for _ in range(3):
        explainer = problem.explainer()
        begun = process_time()
        batch = explainer.explain_batch(problem.table, targets)
        times.append(process_time() - begun)
    seconds, milp, worst = median(times), [], 0.0
    for i in range(_MILP_ROWS if problem.has_milp else 0):
        stated = stated_row(problem, problem.inputs[i])  # not counted either
        begun = process_time()
        cells = solve_stated(stated, targets[i])
        milp.append(process_time() - begun)
        best = min(cell.cost() for cell in cells)
        worst = max(worst, abs(float(batch.cost[i]) - best) / max(best, 1e-9))
    return Batch(
        problem.name, problem.cost, problem.width, len(batch.cost), seconds,
        int((batch.status == "optimal").sum()), int(batch.second_engine.sum()),
        _combinations(explainer, batch), milp, worst,
        _profile(lambda: problem.explainer().explain_batch(problem.table, targets)),
    )  # fmt: skip


def run_before(problem: MixedProblem) -> Before:
    """Answer a few rows; again under a profile."""
    explainer, targets = problem.explainer(), list(problem.targets)[: _BEFORE_ROWS + 1]
    rows = problem.table[: len(targets)]
    explainer.explain_batch(rows[:1], targets[:1])  # compiled once, and not counted
    begun, asked = process_time(), (rows[1:], targets[1:])
    explainer.explain_batch(*asked)
    each = (process_time() - begun) / len(targets[1:])
    profile = cProfile.Profile()
    profile.runcall(explainer.explain_batch, *asked)
    return Before(problem.name, problem.cost, problem.width, each, _shares(profile))


def _shares(profile: cProfile.Profile) -> dict[str, float]:
    """Share of the time in each package, and of this one in each of its parts."""
    found: dict[str, float] = {}
    for (path, _, name), (_, _, own, *_) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        parts = Path(path).parts
        where = "Python itself"
        if "counterlvq" in parts:
            where = Path(parts[parts.index("counterlvq") + 1]).stem
        elif "site-packages" in parts:
            where = parts[parts.index("site-packages") + 1]
        elif path == "~":
            where = "HiGHS" if "ighs" in name else "Clarabel" if "larabel" in name else "built-in"
        found[where] = found.get(where, 0.0) + own
    whole = sum(found.values())
    return {name: own / whole for name, own in sorted(found.items(), key=lambda item: -item[1])}


def elsewhere(source: Path, rows: int) -> list[dict[str, Any]]:
    """What another checkout needs, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.mixed_batches", "--as-before", "--rows", str(rows)],
        stdout=subprocess.PIPE, text=True, check=True, cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": str(source)},
    )  # fmt: skip
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def _combinations(explainer: Any, batch: Any) -> int:
    levels = [j for j, feature in enumerate(explainer.features) if not feature.is_number]
    return len(np.unique(batch.original_values[:, levels], axis=0)) if levels else 1


def run_large(rows: int) -> Large:
    """Answer many distinct houses on two threads."""
    problem = ames_problem("L1", "shared", 1 << 20)
    explainer, table = problem.explainer(), problem.table
    rng = np.random.default_rng(0)
    many = table.iloc[rng.integers(len(table), size=rows)].reset_index(drop=True)
    for name in many.columns:
        if many[name].dtype.kind == "i":  # values of other houses, so that rows differ
            own = rng.random(rows) < 0.5
            drawn = table[name].to_numpy()[rng.integers(len(table), size=rows)]
            many[name] = np.where(own, many[name].to_numpy(), drawn)
    explainer.explain_batch(table.iloc[:2], "160k or more")
    wall, begun = perf_counter(), process_time()
    batch = explainer.explain_batch(many, "160k or more", n_jobs=2)
    return Large(
        rows, _combinations(explainer, batch), perf_counter() - wall, process_time() - begun,
        int((batch.status == "optimal").sum()), int(batch.second_engine.sum()),
    )  # fmt: skip


def _problems(rows: int) -> Iterator[MixedProblem]:
    for cost in COSTS:
        for width, discrete in ((4, 2), (8, 4), (16, 8), (24, 8)):
            yield drawn_problem(width, discrete, cost, "shared", rows)
        yield credit_problem(cost, rows)
        yield many_levels_problem(cost, rows, is_ruled=False)
        yield many_levels_problem(cost, rows, is_ruled=True)
        yield ames_problem(cost, "shared", rows)


def markdown(results: dict[str, Any]) -> str:
    """The whole run as a table."""
    where = results["environment"]
    lines = [
        "# Batches of whole numbers and levels\n",
        f"`python -m benchmarks.mixed_batches`, {where['date']}. Python {where['python']} on "
        f"{where['platform']}, {where['cores']} cores, load average before "
        f"{where['load_before'][0]:.1f}. Time of the processor, one thread, the model's own "
        f"`predict` included, the median of three batches. Rows with the same levels share what "
        f"is prepared for them, so that the number of combinations counts. Left over: rows that "
        f"the compiled search left to the one that is not. MILP: `scipy.optimize.milp` on the "
        f"first rows, one program per target prototype, without any proof.\n",
        row(["problem", "cost", "features", "rows", "combinations", "per row", "proved",
             "left over", "MILP, median", "times as fast", "optima differ by"]),
        row(["---"] * 2 + ["---:"] * 9),
    ]  # fmt: skip
    for item in results["runs"]:
        milp, each = item["milp_seconds"], item["seconds"] / item["rows"]
        lines.append(row([
            item["name"], item["cost"], str(item["features"]), str(item["rows"]),
            str(item["combinations"]), duration(each), f"{item['proved']}", f"{item['left_over']}",
            duration(median(milp)) if milp else "", f"{median(milp) / each:.0f}" if milp else "",
            f"{item['worse_than_milp']:.0e}" if milp else "",
        ]))  # fmt: skip
    parts = [*lines, *_profiles(results), *_before(results), *_large(results)]
    return "\n".join(parts) + "\n"


def _profiles(results: dict[str, Any]) -> list[str]:
    """Where the time of a row goes, in a second run of each batch."""
    names = list(_PARTS)
    lines = [
        "\n## Where the time goes\n",
        "Processor time per row in a second run, with an explainer made anew. The first two "
        "parts are spent once for each combination of levels. What is left is Python around them, "
        "for tables, judging and bounds on rounding.\n",
        row(["problem", "cost", *names, "the rest"]),
        row(["---"] * 2 + ["---:"] * (len(names) + 1)),
    ]
    for item in results["runs"]:
        parts, count = item.get("parts") or {}, item["rows"]
        if parts:
            rest = parts["all"] - sum(parts[name] for name in names)
            each = [duration(parts[name] / count) for name in names]
            lines.append(row([item["name"], item["cost"], *each, duration(max(rest, 0.0) / count)]))
    return lines if len(lines) > 4 else []


def _before(results: dict[str, Any]) -> list[str]:
    """What the checkout before needs, and where its time goes."""
    before = results.get("before") or []
    if not before:
        return []
    lines = [
        "\n## Before\n",
        f"The checkout of `--before`, on {_BEFORE_ROWS} of the rows: processor time per row, and "
        f"where it goes by a profile, by part of this package or by other package.\n",
        row(["problem", "cost", "features", "before, per row", "now", "times as fast", "where"]),
        row(["---"] * 2 + ["---:"] * 4 + ["---"]),
    ]
    now = {(r["name"], r["cost"], r["features"]): r["seconds"] / r["rows"] for r in results["runs"]}
    for item in before:
        each = now[item["name"], item["cost"], item["features"]]
        shares = list(item["shares"].items())[:_SHOWN_SHARES]
        lines.append(row([
            item["name"], item["cost"], str(item["features"]), duration(item["each"]),
            duration(each), f"{item['each'] / each:.0f}",
            ", ".join(f"{name} {share:.0%}" for name, share in shares),
        ]))  # fmt: skip
    return lines


def _large(results: dict[str, Any]) -> list[str]:
    large = results.get("large")
    if not large:
        return []
    return [
        f"\nA batch of {large['rows']:,} houses (Ames, L1, {large['combinations']} combinations of "
        f"levels) on two threads took {large['wall_seconds']:.0f} s by the clock and "
        f"{large['processor_seconds']:.0f} s of the processor; {large['proved']:,} answers were "
        f"proved, and {large['left_over']} rows were left to the other search."
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mixed_batches", description=__doc__)
    parser.add_argument("--rows", type=int, default=1000, help="rows of each batch")
    parser.add_argument("--many", type=int, default=100_000, help="rows of the large one; 0: none")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results",
        help="folder for mixed_batches.json and mixed_batches.md",
    )
    parser.add_argument("--before", type=Path, help="src folder of another checkout")
    parser.add_argument("--as-before", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.as_before:
        with threadpool_limits(1):
            told = [asdict(run_before(problem)) for problem in _problems(options.rows)]
        print(json.dumps(plain(told)))
        return 0
    before = None
    if options.before is not None:
        before = elsewhere(options.before.resolve(), options.rows)
    with threadpool_limits(1):
        where, found = environment(), []
        for problem in _problems(options.rows):
            found.append(asdict(run(problem)))
            print(f"{problem.name} {problem.cost}", file=sys.stderr, flush=True)
        large = asdict(run_large(options.many)) if options.many else None
    results = {"environment": where, "runs": found, "before": before, "large": large}
    options.output.mkdir(parents=True, exist_ok=True)
    content = json.dumps(plain(results), indent=1, allow_nan=False) + "\n"
    text = markdown(results)
    out = options.output
    write_atomically(out / "mixed_batches.json", lambda path: path.write_text(content, "utf-8"))
    write_atomically(out / "mixed_batches.md", lambda path: path.write_text(text, "utf-8"))
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Batches of whole numbers and levels: time per row beside plain MILPs, and where rows end.

`python -m benchmarks.mixed_batches`, with `--rows` for another size of batch. Times are those of
the processor, one thread, the model's own `predict` included.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

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
)
from benchmarks.report import duration, plain, row, write_atomically

_MILP_ROWS = 6


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


def run(problem: MixedProblem) -> Batch:
    """Answer all rows in one batch, and a few of them as plain MILPs where that is possible."""
    explainer, targets = problem.explainer(), list(problem.targets)
    explainer.explain_batch(problem.table[:2], targets[:2])  # compiled once, and not counted
    begun = process_time()
    batch = explainer.explain_batch(problem.table, targets)
    seconds, milp, worst = process_time() - begun, [], 0.0
    for i in range(_MILP_ROWS if problem.has_milp else 0):
        stated = stated_row(problem, problem.inputs[i])  # not counted either
        begun = process_time()
        cells = solve_stated(stated, targets[i])
        milp.append(process_time() - begun)
        best = min(cell.cost() for cell in cells)
        worst = max(worst, abs(float(batch.cost[i]) - best) / max(best, 1e-9))
    levels = [j for j, feature in enumerate(explainer.features) if not feature.is_number]
    count = len(np.unique(batch.original_values[:, levels], axis=0)) if levels else 1
    return Batch(
        problem.name, problem.cost, problem.width, len(batch.cost), seconds,
        int((batch.status == "optimal").sum()), int(batch.second_engine.sum()), count, milp, worst,
    )  # fmt: skip


def _problems(rows: int) -> Iterator[MixedProblem]:
    for cost in COSTS:
        for width, discrete in ((4, 2), (8, 4), (16, 8), (24, 8)):
            yield drawn_problem(width, discrete, cost, "shared", rows)
        yield credit_problem(cost, rows)
        yield ames_problem(cost, "shared", rows)


def markdown(results: dict[str, Any]) -> str:
    """The whole run as a table."""
    where = results["environment"]
    lines = [
        "# Batches of whole numbers and levels\n",
        f"`python -m benchmarks.mixed_batches`, {where['date']}. Python {where['python']} on "
        f"{where['platform']}, {where['cores']} cores, load average before "
        f"{where['load_before'][0]:.1f}. Time of the processor, one thread, the model's own "
        f"`predict` included. Rows with the same levels share what is prepared for them, so that "
        f"the number of combinations counts. Left over: rows that the compiled search left to the "
        f"one that is not. MILP: `scipy.optimize.milp` on the first rows, one program per target "
        f"prototype, without any proof.\n",
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
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mixed_batches", description=__doc__)
    parser.add_argument("--rows", type=int, default=1000, help="rows of each batch")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results",
        help="folder for mixed_batches.json and mixed_batches.md",
    )
    options = parser.parse_args()
    with threadpool_limits(1):
        where, found = environment(), []
        for problem in _problems(options.rows):
            found.append(asdict(run(problem)))
            print(f"{problem.name} {problem.cost}", file=sys.stderr, flush=True)
    results = {"environment": where, "runs": found}
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

"""Whole numbers and levels: time per row, beside a plain MILP; and what the user's space saves.

`python -m benchmarks.mixed`, with `--quick` on a few rows.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import counterlvq as clvq
from benchmarks.baselines.milp import solved_cells
from benchmarks.figures import environment
from benchmarks.mixed_problems import (
    COSTS,
    MixedProblem,
    ames_problem,
    drawn_problem,
    lifted_from_pca,
)
from benchmarks.report import duration, plain, row, write_atomically
from benchmarks.timing import in_the_long_run, interleaved, timed


@dataclass(frozen=True)
class Sizes:
    """How much of everything."""

    rows: int
    features: tuple[int, ...]
    discrete: tuple[int, ...]
    lifted: int
    frame_rows: int


FULL = Sizes(12, (4, 8, 16, 24), (0, 2, 4, 8), 100, 1_000_000)
QUICK = Sizes(2, (4,), (0, 2), 5, 20_000)


@dataclass(frozen=True)
class Timed:
    """One problem, row by row."""

    name: str
    cost: str
    metric: str
    features: int
    discrete: int
    seconds: list[float]
    proved: int
    boxes: list[int]
    milp_seconds: list[float]  # empty where a MILP cannot state the problem
    worse_than_milp: float  # largest relative difference of the two optima


def run(problem: MixedProblem) -> Timed:
    """Explain each row, and solve it as plain MILPs where that is possible."""
    explainer = problem.explainer()
    explainer.explain(problem.inputs[0], problem.targets[0])  # compiled once, and not counted
    seconds, boxes, milp, proved, worst = [], [], [], 0, 0.0
    for x, target in zip(problem.inputs, problem.targets, strict=True):
        taken, answer = timed(lambda x=x, target=target: explainer.explain(x, target))
        seconds.append(taken)
        proved += answer.status == "optimal"
        trees = getattr(answer.certificate, "trees", ())
        boxes.append(sum(len(tree.feature) for tree in trees))
        if problem.has_milp:
            taken, cells = timed(lambda x=x, target=target: solved_cells(problem, x, target))
            milp.append(taken)
            best = min(cell.cost() for cell in cells)  # not counted: see there
            worst = max(worst, abs(answer.cost - best) / max(best, 1e-9))
    return Timed(
        problem.name, problem.cost, problem.metric, problem.width, problem.discrete, seconds,
        proved, boxes, milp, worst,
    )  # fmt: skip


def measure(sizes: Sizes) -> dict[str, Any]:
    """Run everything, one thing at a time."""
    in_the_long_run()
    start, where = perf_counter(), environment()
    found = []
    for problem in _problems(sizes):
        found.append(run(problem))
        print(f"{problem.name}: {sum(found[-1].seconds):.1f} s", file=sys.stderr, flush=True)
    saved = lifted_from_pca(sizes.lifted)
    return {
        "environment": where,
        "quick": sizes is QUICK,
        "runs": [asdict(item) for item in found],
        "lifted": saved,
        "frame": frame_overhead(sizes.frame_rows),
        "seconds": perf_counter() - start,
    }


def _problems(sizes: Sizes) -> Iterator[MixedProblem]:
    for width in sizes.features:
        for discrete in sizes.discrete:
            if discrete <= width:
                yield drawn_problem(width, discrete, "L1", "shared", sizes.rows)
    for cost in COSTS:
        for metric in ("shared", "local"):
            yield ames_problem(cost, metric, sizes.rows)


def frame_overhead(rows: int) -> dict[str, float]:
    """A frame of real columns beside the bare array, best of three in turns."""
    import pandas as pd
    from sklearn.datasets import load_breast_cancer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    data = load_breast_cancer(as_frame=True)
    table = data.data.iloc[:, :10]
    pipeline = make_pipeline(StandardScaler(), clvq.GMLVQ(random_state=0)).fit(table, data.target)
    explainer = clvq.Explainer(pipeline, clvq.Manhattan(clvq.mad_weights(table)))
    picked = np.random.default_rng(0).integers(len(table), size=rows)
    frame = pd.DataFrame(table.to_numpy()[picked], columns=table.columns)
    array = frame.to_numpy()
    explainer.explain_batch(array[:100])
    best = interleaved(
        3,
        {
            "array": lambda: explainer.explain_batch(array).X,
            "frame": lambda: explainer.explain_batch(frame).X,
        },
    )
    return {"rows": rows, "array": best["array"], "frame": best["frame"]}


def markdown(results: dict[str, Any]) -> str:
    """The whole run as tables."""
    return "\n".join(_lines(results)) + "\n"


def _lines(results: dict[str, Any]) -> Iterator[str]:
    where, quick = results["environment"], " --quick" if results["quick"] else ""
    yield "# Whole numbers and levels\n"
    yield (
        f"`python -m benchmarks.mixed{quick}`, {where['date']}, {results['seconds']:.0f} s in all. "
        f"Python {where['python']} on {where['platform']}, {where['cores']} cores, load average "
        f"before {where['load_before'][0]:.1f}.\n"
    )
    yield (
        "One thread, one row at a time by `explain`. Discrete: half whole numbers, half levels "
        "(three each); Ames has six whole numbers, three qualities and a yes or no, with year and "
        "lot frozen. Boxes: relaxations in the certificate. MILP: one mixed-integer program per "
        "target prototype by `scipy.optimize.milp` (HiGHS) with its own gap closed, written from "
        "the definition of the model; it proves nothing that could be checked.\n"
    )
    yield row(["problem", "cost", "metric", "features", "discrete", "median", "worst", "proved",
               "mean boxes", "MILP, median", "optima differ by"])  # fmt: skip
    yield row(["---"] * 3 + ["---:"] * 8)
    for item in results["runs"]:
        milp = item["milp_seconds"]
        yield row([
            item["name"], item["cost"], item["metric"], str(item["features"]),
            str(item["discrete"]), duration(median(item["seconds"])),
            duration(max(item["seconds"])), f"{item['proved']} of {len(item['seconds'])}",
            f"{fmean(item['boxes']):.0f}", duration(median(milp)) if milp else "",
            f"{item['worse_than_milp']:.0e}" if milp else "",
        ])  # fmt: skip
    saved = results["lifted"]
    yield "\n## The user's space instead of PCA's\n"
    yield (
        f"Cancer, all 30 columns, `StandardScaler -> PCA(5) -> GMLVQ`, {saved['rows']:.0f} rows, "
        f"Manhattan cost in standard deviations. The closest change in the space of the five "
        f"components, lifted back by `inverse_transform` (valid in {saved['valid']:.0%} of rows), "
        f"costs {saved['lifted']:.3f} in the mean; the exact answer in the 30 columns "
        f"{saved['exact']:.3f}: {1 - saved['exact'] / saved['lifted']:.0%} less. It was cheaper in "
        f"{saved['cheaper']:.0%} of the rows and dearer in {saved['dearer']:.0%}."
    )
    frame = results["frame"]
    yield "\n## A frame around the kernel\n"
    yield (
        f"{frame['rows']:,} rows of ten real columns: an array takes "
        f"{duration(frame['array'])}, a pandas frame in and out "
        f"{frame['frame'] / frame['array']:.2f} times that."
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mixed", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows, for a first look")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results",
        help="folder for mixed.json and mixed.md",
    )
    options = parser.parse_args()
    with threadpool_limits(1):
        results = measure(QUICK if options.quick else FULL)
    options.output.mkdir(parents=True, exist_ok=True)
    content = json.dumps(plain(results), indent=1, allow_nan=False) + "\n"
    text = markdown(results)
    write_atomically(options.output / "mixed.json", lambda path: path.write_text(content, "utf-8"))
    write_atomically(options.output / "mixed.md", lambda path: path.write_text(text, "utf-8"))
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

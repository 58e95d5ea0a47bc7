"""One run about local metrics as Markdown and as files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, median

from benchmarks.local_figures import (
    FULL,
    GIVEN,
    LocalResults,
    above_the_best,
    as_dict,
    below_the_bound,
    beside_global,
    complaints,
    goals,
)
from benchmarks.local_methods import BATCH, CLOSE, EXPLAIN, GAP, NUDGE, PLAIN, Run
from benchmarks.local_problems import DIGITS
from benchmarks.local_profile import MEANINGS, PARTS
from benchmarks.report import duration, plain, row, write_atomically


def write_all(results: LocalResults, folder: Path) -> None:
    """Write local.json, local.md and local.png."""
    from benchmarks.local_picture import draw

    folder.mkdir(parents=True, exist_ok=True)
    content = json.dumps(plain(as_dict(results)), indent=1, allow_nan=False) + "\n"
    write_atomically(folder / "local.json", lambda path: path.write_text(content, "utf-8"))
    text = markdown(results)
    write_atomically(folder / "local.md", lambda path: path.write_text(text, "utf-8"))
    write_atomically(folder / "local.png", lambda path: draw(results, path))


def markdown(results: LocalResults) -> str:
    """The whole run as tables."""
    parts = (_head, _goals, _known, _beside, _digits, _loops, _growth, _profile)
    return "\n".join(line for part in parts for line in part(results))


def _head(results: LocalResults) -> Iterator[str]:
    where = results.environment
    shown = ("counterlvq", "numpy", "scipy", "numba", "clarabel", "scikit-learn")
    packages = ", ".join(f"{name} {where['packages'][name]}" for name in shown)
    quick = "" if results.sizes == FULL else " --quick"
    yield "# Local metrics\n"
    yield f"`python -m benchmarks.local{quick}`, {where['date']}, {results.seconds:.0f} s in all."
    yield f"Python {where['python']} on {where['platform']}, {where['cores']} cores. {packages}."
    if where["load_before"]:
        load = where["load_before"][0]
        yield f"Load average before: {load:.1f}; what else ran makes times longer.\n"
    yield (
        "\nOne thread, one row at a time by `explain` unless said otherwise. OPTIMAL and proved "
        f"mean that cost and recomputed lower bound agree to {GAP:g}; a box is one semidefinite "
        "relaxation.\n"
    )
    yield "![The run as a picture](local.png)\n"


def _goals(results: LocalResults) -> Iterator[str]:
    yield "## Figures to reach\n"
    yield row(("figure", "wanted", "this run", ""))
    yield row(["---"] * 4)
    for goal in goals(results):
        verdict = "reached" if goal.reached else "**not reached**"
        yield row((goal.what, goal.wanted, goal.found, verdict))
    yield ""
    for complaint in complaints(results):
        yield f"**Wrong: {complaint}.**\n"


def _known(results: LocalResults) -> Iterator[str]:
    yield "## Known optima\n"
    yield (
        "LGMLVQ models of sklearn-lvq with optima that SCIP proved (`tests/data`). Below: "
        f"costs under the given bound by more than {GIVEN:.0e}, which is how good it is. Above: "
        "costs over the best that is given, beyond its printed digits, and the largest excess; for "
        f"OPTIMAL answers that may be the gap of {GAP:g}.\n"
    )
    heads = ("set", "cost", "method", "rows", "valid", "OPTIMAL", "median", "worst", "mean cost")
    yield row((*heads, "below", "above", "largest excess"))
    yield row(["---"] * 3 + ["---:"] * 9)
    last = None
    for run in results.runs:
        if run.best is None:
            continue
        excess = max(cost / best - 1.0 for cost, best in zip(run.costs, run.best, strict=True))
        yield row(
            (
                *_once(run, last),
                f"`{run.method}`",
                len(run.costs),
                _share(run.valid),
                _share(run.proved),
                duration(median(run.seconds)),
                duration(max(run.seconds)),
                f"{fmean(run.costs):.5g}",
                below_the_bound(run),
                above_the_best(run),
                f"{excess:.0e}" if above_the_best(run) else "",
            )
        )
        last = run
    yield ""


def _beside(results: LocalResults) -> Iterator[str]:
    yield "## Three methods side by side\n"
    yield (
        f"Optimal: within {CLOSE:g} of the cost of `global`, which each row had "
        f"{results.sizes.time_limit:g} s for. Mean costs are over the rows that both solved.\n"
    )
    heads = ("problem", "cost", "method", "mean cost", "x `global`", "optimal", "proved", "valid")
    yield row((*heads, "mean time", "median", "worst"))
    yield row(["---"] * 3 + ["---:"] * 8)
    last = None
    for run in results.runs:
        found = beside_global(results, run)
        times = (fmean(run.seconds), median(run.seconds), max(run.seconds))
        yield row(
            (
                *_once(run, last),
                f"`{run.method}`",
                f"{found.mean_cost:.5g}",
                f"{found.excess:.4f}",
                f"{found.optimal:.0%}",
                f"{found.proved:.0%}",
                f"{found.valid:.0%}",
                *map(duration, times),
            )
        )
        last = run
    yield ""


def _digits(results: LocalResults) -> Iterator[str]:
    found = [run for run in results.runs if run.problem == DIGITS and run.method != "ccp"]
    yield "## Digits\n"
    yield (
        "LGMLVQ, 10 classes with 3 prototypes each, standardised, 10 principal components, trained "
        f"on the first of four folds; {len(found[0].costs)} test rows, each with a random other "
        "class as target: 3 cells with 27 rivals each.\n"
    )
    heads = ("cost", "method", "proved", "median", "worst", "boxes, median", "boxes, most")
    yield row((*heads, "widest gap"))
    yield row(["---"] * 2 + ["---:"] * 6)
    for run in found:
        gap = max(1.0 - bound / cost for bound, cost in zip(run.bounds, run.costs, strict=True))
        yield row(
            (
                run.cost,
                f"`{run.method}`",
                f"{sum(run.proved)} of {len(run.proved)}",
                duration(median(run.seconds)),
                duration(max(run.seconds)),
                f"{median(run.boxes):.0f}",
                max(run.boxes),
                f"{max(gap, 0.0):.1e}",
            )
        )
    yield ""


def _loops(results: LocalResults) -> Iterator[str]:
    yield "## `ccp` beside a plain convex-concave loop\n"
    yield (
        "The digits again. The loop (`benchmarks/baselines/concave.py`) goes through all target "
        "prototypes and starts at each; every round assembles one cone program anew (one "
        "second-order cone, one row with slack per rival, a growing penalty) and hands it to "
        "Clarabel, until a round gains less than 1e-6. Time per row, the fastest of "
        f"{results.sizes.repeats}. Better and worse: rows on which `ccp` ends more than {CLOSE:g} "
        "lower or higher; either stops in the first valley it meets. Unsteady: rows on which the "
        f"answer is another one when the input moves by {NUDGE:g} of itself, for the loop and for "
        "`ccp`; where there are many, mean costs say little.\n"
    )
    heads = ("cost", "rows", "loop", *(f"`ccp` by {way}" for way in (BATCH, EXPLAIN)))
    yield row(
        (*heads, "times", "mean cost, loop", "mean cost, `ccp`", "better", "worse", "valid")
        + ("unsteady",)
    )
    yield row(["---"] + ["---:"] * 11)
    for loop in results.loops:
        yield row(
            (
                loop.cost,
                loop.rows,
                *(duration(loop.seconds[way]) for way in (PLAIN, BATCH, EXPLAIN)),
                f"{loop.ratio:.1f}, {loop.single_ratio:.1f}",
                f"{loop.mean_costs[PLAIN]:.6g}",
                f"{loop.mean_costs[BATCH]:.6g}",
                loop.better,
                loop.worse,
                f"{loop.valid[PLAIN]:.0%}, {loop.valid[BATCH]:.0%}",
                f"{loop.unsteady[PLAIN]}, {loop.unsteady[BATCH]}",
            )
        )
    yield ""


def _growth(results: LocalResults) -> Iterator[str]:
    yield "## Growth\n"
    yield (
        "`auto` on random models: prototypes from a standard normal distribution, each with an "
        f"omega of its own (identity plus noise of the same size); {results.sizes.growth} rows per "
        "point. Exponents of the power laws through the medians, by least squares on logarithms. "
        "The budget of `auto` shrinks with the third power of d, from 250 boxes at d = 10 to "
        "20 boxes.\n"
    )
    yield row(("quantity", "fixed", "cost", "size", "median", "worst", "boxes", "proved"))
    yield row(["---"] * 3 + ["---:"] * 5)
    for curve in results.growth:
        first = (f"{curve.letter}, {curve.meaning}", curve.fixed, curve.cost)
        points = zip(
            curve.sizes, curve.seconds, curve.worst, curve.boxes, curve.proved, strict=True
        )
        for size, seconds, worst, boxes, proved in points:
            times = (duration(seconds), duration(worst))
            yield row((*first, size, *times, f"{boxes:.1f}", f"{proved:.0%}"))
            first = ("", "", "")
    yield ""
    yield row(("quantity", "cost", "exponent", "through the last three"))
    yield row(["---"] * 2 + ["---:"] * 2)
    for curve in results.growth:
        exponents = (f"{curve.exponent:.2f}", f"{curve.last_exponent:.2f}")
        yield row((f"{curve.letter}, {curve.meaning}", curve.cost, *exponents))
    yield ""


def _profile(results: LocalResults) -> Iterator[str]:
    profiles = results.profiles
    yield "## Where the time of one box goes\n"
    yield (
        "`auto` with clocks around its parts; none counts the time of another one inside it. "
        "Time per box is all time over all boxes.\n"
    )
    yield row(("part", *(f"{p.problem}, {p.cost}" for p in profiles), "what it is"))
    yield row(["---"] + ["---:"] * len(profiles) + ["---"])
    for part in PARTS:
        yield row((part, *(f"{p.share(part):.1%}" for p in profiles), MEANINGS[part]))
    yield row(("boxes per row", *(f"{p.boxes / p.rows:.1f}" for p in profiles), ""))
    yield row(("time per box", *(duration(p.seconds / max(p.boxes, 1)) for p in profiles), ""))
    yield ""


def _once(run: Run, last: Run | None) -> Sequence[str]:
    """The names of a problem, unless the line before has them."""
    same = last is not None and (last.problem, last.cost) == (run.problem, run.cost)
    return ("", "") if same else (run.problem, run.cost)


def _share(flags: Sequence[bool]) -> str:
    share = fmean(flags)
    return f"{share:.0%}" if share in (0, 1) else f"{share:.1%}"

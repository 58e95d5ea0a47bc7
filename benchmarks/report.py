"""One run as Markdown and as files. Files appear whole or not at all."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.compare import (
    CMA_ES,
    ENGINE,
    NELDER_MEAD,
    PAPER,
    SINGLE,
    TWO_JOBS,
    WARM_DAQP,
    WARM_HIGHS,
    Measured,
)
from benchmarks.figures import Results, as_dict, complaints, goals
from benchmarks.sizes import FULL

LETTERS = {
    ENGINE: "a",
    TWO_JOBS: "a",
    SINGLE: "a",
    WARM_HIGHS: "b",
    WARM_DAQP: "b",
    PAPER: "c",
    NELDER_MEAD: "d",
    CMA_ES: "d",
}


def write_all(results: Results, folder: Path) -> None:
    """Write bench.json, bench.md and bench.png."""
    from benchmarks.picture import draw

    folder.mkdir(parents=True, exist_ok=True)
    content = json.dumps(plain(as_dict(results)), indent=1, allow_nan=False) + "\n"
    write_atomically(folder / "bench.json", lambda path: path.write_text(content, "utf-8"))
    text = markdown(results)
    write_atomically(folder / "bench.md", lambda path: path.write_text(text, "utf-8"))
    write_atomically(folder / "bench.png", lambda path: draw(results, path))


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Write to a temporary file beside `path`, then put it in its place."""
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        write(temporary)
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def markdown(results: Results) -> str:
    """The whole report."""
    return "\n".join(
        [
            *_head(results),
            *_comparison(results.comparison),
            *_goals(results),
            *_neighbours(results),
            *_growth(results),
            *_machine(results),
        ]
    )


def duration(seconds: float) -> str:
    """A time with two or three digits and the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= 0.9995 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def _head(results: Results) -> Iterator[str]:
    where, sizes = results.environment, results.sizes
    packages = ", ".join(f"{name} {number}" for name, number in where["packages"].items() if number)
    yield "# Benchmarks\n"
    command = "make bench" if sizes == FULL else "python -m benchmarks --quick"
    yield f"`{command}`, {where['date']}, {results.seconds:.0f} s in all."
    yield f"Python {where['python']} on {where['platform']}, {where['cores']} cores. {packages}.\n"
    yield (
        "Prototypes: three per class by k-means within the class (GLVQ-type), with one shared "
        "omega from the covariance within the classes (GMLVQ-type); no LVQ training is involved. "
        "Digits ask for a random other class per row, the others for the other class; Ames has "
        "five of nine features frozen. Times are per counterfactual; the fastest of "
        f"{sizes.repeats} runs for (a), (b) and (c), one run for (d). Ratios are to (a) with one "
        "job in this run.\n"
    )


def _comparison(comparison: Sequence[Measured]) -> Iterator[str]:
    yield "## One counterfactual, by every method\n"
    yield (
        "Cost is the mean over the rows that every method solved, as a multiple of the optimum. "
        "Difference is the largest relative one from the engine, for exact methods. Warm solvers "
        "keep one model per target prototype and change right-hand sides only (HiGHS for L1, "
        "DAQP for L2).\n"
    )
    header = ("data", "cost", "method", "rows", "time", "ratio", "mean cost", "x optimum", "valid")
    yield row((*header, "difference"))
    yield row(["---"] * 3 + ["---:"] * 7)
    last = None
    for m in comparison:
        name = (f"{m.data} {m.model}", m.cost)
        yield row(
            (
                *(name if name != last else ("", "")),
                f"({LETTERS[m.method]}) {m.method}",
                f"{m.rows:,}",
                duration(m.seconds),
                f"{m.ratio:,.2f}" if m.ratio < 10 else f"{m.ratio:,.0f}",
                _number(m.mean_cost, ".4g"),
                _number(m.excess, ".2f"),
                f"{m.valid:.0%}" if m.valid in (0, 1) else f"{m.valid:.1%}",
                "" if m.difference is None else f"{m.difference:.0e}",
            )
        )
        last = name
    yield ""


def _goals(results: Results) -> Iterator[str]:
    yield "## Figures to reach\n"
    yield row(("figure", "wanted", "this run", ""))
    yield row(["---"] * 4)
    for goal in goals(results):
        verdict = "reached" if goal.reached else "**not reached**"
        yield row((goal.what, goal.wanted, goal.found, verdict))
    yield ""
    for complaint in complaints(results):
        yield f"**Wrong: {complaint}.**\n"


def _neighbours(results: Results) -> Iterator[str]:
    first = results.neighbours[0]
    yield "## Nearest neighbour on the digits\n"
    yield (
        f"{first.prototypes:,} training images as prototypes, {first.features} pixels, "
        f"{first.rows} test rows, one thread.\n"
    )
    yield row(
        ("cost", "`explain`, median", "`explain_batch` of one, median", "one batch, mean")
        + ("optimal", "second engine", "difference from oracle")
    )
    yield row(["---"] + ["---:"] * 6)
    for n in results.neighbours:
        times = (duration(t) for t in (n.explain_median, n.batch_median, n.batch_mean))
        yield row((n.cost, *times, f"{n.optimal:.0%}", n.fallbacks, f"{n.check.difference:.0e}"))
    yield (
        "\nThe oracle solves the full program of every target prototype (all rivals, HiGHS for L1 "
        "and Clarabel for L2), except where overtaking one rival alone costs more than the answer "
        "already.\n"
    )


def _growth(results: Results) -> Iterator[str]:
    yield "## Growth\n"
    yield (
        "Time of a batch against n, time per row against the others; exponents of the power laws "
        "through all points and through the last three, by least squares on logarithms.\n"
    )
    yield row(("quantity", "fixed", "cost", "sizes", "times", "exponent", "at the end"))
    yield row(["---"] * 5 + ["---:"] * 2)
    for curve in results.growth:
        yield row(
            (
                f"{curve.letter}, {curve.meaning}",
                curve.fixed,
                curve.cost,
                ", ".join(f"{size:,}" for size in curve.sizes),
                ", ".join(duration(seconds) for seconds in curve.seconds),
                f"{curve.exponent:.2f}",
                f"{curve.last_exponent:.2f}",
            )
        )
    yield ""


def _machine(results: Results) -> Iterator[str]:
    memory, cold = results.memory, results.cold_start
    yield "## Memory and cold start\n"
    yield (
        f"`explain_batch` on {memory.rows:,} x {memory.features}, {memory.jobs} jobs: input "
        f"{memory.input / 1e6:.0f} MB, output {memory.output / 1e6:.0f} MB, peak "
        f"{memory.extra / 1e6:.0f} MB on top of both.\n"
    )
    heavy = ", ".join(cold.heavy_imports) or "none of Numba, pandas and Matplotlib"
    compiled = ""
    if cold.first_compiled is not None:
        compiled = f"{duration(cold.first_compiled)} with nothing compiled yet, "
    yield (
        f"Fresh process: `import counterlvq` takes {duration(cold.package)} (NumPy before it "
        f"{duration(cold.numpy)}) and brings in {heavy}; the first answer takes {compiled}"
        f"{duration(cold.first_cached)} with compiled code on disk.\n"
    )


def row(cells: Sequence[object]) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _number(value: float, form: str) -> str:
    return format(value, form) if math.isfinite(value) else ""


def plain(value: Any) -> Any:
    """NaN, infinity and the numbers of NumPy have no place in JSON."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value

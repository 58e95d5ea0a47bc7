"""How `auto` grows with the columns of a table, and with how much of them the metrics see.

`python -m benchmarks.local --growth`. Random models: each metric sees the same few directions of
all columns, in its own way.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

import numpy as np

import counterlvq as clvq
from benchmarks.problems import COSTS
from benchmarks.timing import fit_power_law

SEED, TARGETS, RIVALS = 29, 3, 9
SEEN, WIDTH = 5, 40  # what stays put while the other grows
WIDTHS, RANKS = (10, 20, 40, 80, 160), (2, 4, 8, 16, 24)
ROWS = 5


@dataclass(frozen=True)
class ColumnCurve:
    """Seconds of the processor for one row, proofs and boxes, against one quantity."""

    letter: str
    meaning: str
    fixed: str
    cost: str
    sizes: list[int]
    seconds: list[float]  # median
    worst: list[float]
    boxes: list[float]  # mean
    proved: list[float]  # share
    exponent: float


def drawn(width: int, seen: int) -> tuple[clvq.PrototypeModel, np.ndarray]:
    """A model, and rows that are not of the target's class."""
    rng = np.random.default_rng([SEED, width, seen])
    turn = np.linalg.qr(rng.standard_normal((width, seen)))[0].T
    p = TARGETS + RIVALS
    inner = np.eye(seen) + rng.standard_normal((p, seen, seen)) / np.sqrt(seen)
    labels = ["target"] * TARGETS + ["rival"] * RIVALS
    prototypes = rng.standard_normal((p, width))
    model = clvq.PrototypeModel(prototypes, labels, list(inner @ turn))
    rows = rng.standard_normal((40 * ROWS, width))
    return model, rows[model.predict(rows) == "rival"][:ROWS]


def curve(letter: str, cost: str) -> ColumnCurve:
    """Measure one quantity under one cost."""
    sizes = WIDTHS if letter == "d" else RANKS
    cells = [(size, SEEN) if letter == "d" else (WIDTH, size) for size in sizes]
    found = [_point(*cell, cost) for cell in cells]
    seconds = [median(each[0]) for each in found]
    meaning = "columns" if letter == "d" else "directions that the metrics see"
    fixed = f"{SEEN} directions seen" if letter == "d" else f"{WIDTH} columns"
    return ColumnCurve(
        letter, meaning, f"{fixed}, {RIVALS} rivals, {TARGETS} target prototypes", cost,
        list(sizes), seconds, [max(each[0]) for each in found],
        [fmean(each[1]) for each in found], [fmean(each[2]) for each in found],
        fit_power_law(sizes, seconds).exponent,
    )  # fmt: skip


def _point(width: int, seen: int, cost: str) -> tuple[list[float], list[int], list[bool]]:
    model, rows = drawn(width, seen)
    explainer = clvq.Explainer(model, COSTS[cost])
    explainer.explain(rows[0], target="target")  # loads what is compiled
    seconds, boxes, proved = [], [], []
    for row in rows:
        begun = time.process_time()
        cf = explainer.explain(row, target="target")
        seconds.append(time.process_time() - begun)
        boxes.append(sum(len(tree.prices) for tree in cf.certificate.trees))
        proved.append(bool(cf.status == "optimal"))
    return seconds, boxes, proved


def measure() -> list[ColumnCurve]:
    """Both quantities, both costs."""
    return [curve(letter, cost) for letter in ("d", "r") for cost in COSTS]


def draw(curves: Sequence[ColumnCurve], path: Path) -> None:
    """Draw both quantities side by side into a PNG file."""
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    from benchmarks.picture import COST_COLOURS, GRID, STYLE
    from benchmarks.report import duration

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.6, 3.9), dpi=150, layout="constrained")
        panels = figure.subplots(1, 2, sharey=True)
        for axes, letter in zip(panels, ("d", "r"), strict=True):
            shown = [each for each in curves if each.letter == letter]
            for at, each in enumerate(shown):
                colour = COST_COLOURS[each.cost]
                x = [size * (0.98 + 0.04 * at) for size in each.sizes]
                axes.vlines(x, each.seconds, each.worst, color=colour, lw=1.4, alpha=0.35)
                axes.plot(x, each.seconds, "o-", color=colour, ms=4.5, lw=1.2)
                axes.text(
                    0.04, 0.96 - 0.09 * at,
                    f"{each.cost}  {letter}$^{{{each.exponent:.2f}}}$, "
                    f"{fmean(each.proved):.0%} proved",
                    transform=axes.transAxes, color=colour, size=9, va="top",
                )  # fmt: skip
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_ylim(top=12.0 * max(max(each.worst) for each in curves))
            axes.xaxis.set_major_locator(FixedLocator(shown[0].sizes))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.xaxis.set_minor_locator(NullLocator())
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: duration(value)))
            axes.grid(color=GRID, lw=0.7)
            axes.set_xlabel(f"{letter}, {shown[0].meaning}\n({shown[0].fixed})")
        panels[0].set_title("auto: median time per row, thin lines up to the slowest")
        figure.savefig(path, format="png", facecolor="white")

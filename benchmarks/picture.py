"""The run as one picture: speed and cost beside the peers above, growth below."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from benchmarks.compare import (
    CMA_ES,
    ENGINE,
    NELDER_MEAD,
    PAPER,
    TWO_JOBS,
    WARM_DAQP,
    WARM_HIGHS,
    Measured,
)
from benchmarks.figures import Results
from benchmarks.growth import Curve
from benchmarks.report import duration

INK, FAINT, GRID = "#1f2430", "#6b7280", "#e5e7eb"
COLOURS = {
    ENGINE: "#d1495b",
    TWO_JOBS: "#f2a3ad",
    WARM_HIGHS: "#2f6690",
    WARM_DAQP: "#2f6690",
    PAPER: "#3a9188",
    NELDER_MEAD: "#e09f3e",
    CMA_ES: "#7d5ba6",
}
MARKERS = {NELDER_MEAD: "^", CMA_ES: "D"}
NAMES = {
    ENGINE: "this engine, 1 job",
    TWO_JOBS: "2 jobs",
    WARM_HIGHS: "warm HiGHS (L1), warm DAQP (L2)",
    PAPER: "cvxpy per prototype",
    NELDER_MEAD: "Nelder-Mead",
    CMA_ES: "CMA-ES",
}
COST_COLOURS = {"L1": "#d1495b", "L2": "#2f6690"}
STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.edgecolor": "#9aa1ad",
    "axes.labelcolor": INK,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
}


def draw(results: Results, path: Path) -> None:
    """Draw everything into a PNG file."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(13.2, 8.6), dpi=150)
        top = figure.add_gridspec(
            1, 3, left=0.075, right=0.985, top=0.835, bottom=0.465, wspace=0.07,
            width_ratios=(1.0, 1.0, 0.62),
        )  # fmt: skip
        left, middle, right = (figure.add_subplot(cell) for cell in top)
        _times(left, [m for m in results.comparison if m.cost == "L1"], "L1")
        _times(middle, [m for m in results.comparison if m.cost == "L2"], "L2")
        _excess(right, results.comparison)
        for axes in (middle, right):
            axes.set_yticklabels([])
        _method_key(figure, left)
        _growth_row(figure, results.growth)
        _words(figure, results)
        figure.savefig(path, format="png", facecolor="white")


def _words(figure: Figure, results: Results) -> None:
    where, packages = results.environment, results.environment["packages"]
    mine = [m.seconds for m in results.comparison if m.method == ENGINE]
    near = " and ".join(f"{duration(n.batch_median)} ({n.cost})" for n in results.neighbours)
    figure.text(0.02, 0.962, "Closest counterfactuals, each with a proof", size=16, weight="bold")
    figure.text(
        0.02,
        0.932,
        f"{duration(min(mine))} to {duration(max(mine))} each on one core for three data sets and "
        f"two models, 3 prototypes per class. Nearest neighbour on digits "
        f"({results.neighbours[0].prototypes:,} prototypes, {results.neighbours[0].features} "
        f"pixels): {near}.",
        size=9.5,
        color=FAINT,
    )
    shown = ", ".join(f"{name} {packages[name]}" for name in ("numba", "highspy", "cvxpy"))
    figure.text(
        0.02,
        0.012,
        f"{where['date'][:10]}, Python {where['python']}, {shown}, {where['cores']} "
        f"cores; {results.sizes.rows:,} rows for the engine, the first of them for the others.",
        size=8,
        color=FAINT,
    )


def _problem_names(measured: Sequence[Measured]) -> list[str]:
    return list(dict.fromkeys(f"{m.data}\n{m.model}" for m in measured))


def _times(axes: Axes, measured: Sequence[Measured], cost: str) -> None:
    names = _problem_names(measured)
    for y, name in enumerate(names):
        mine = {m.method: m for m in measured if f"{m.data}\n{m.model}" == name}
        seconds = [m.seconds for method, m in mine.items() if method in COLOURS]
        axes.plot([min(seconds), max(seconds)], [y, y], color=GRID, lw=2, zorder=1)
        for method, m in mine.items():
            if method in COLOURS:
                _dot(axes, m.seconds, y, method)
            if method in (WARM_HIGHS, WARM_DAQP, PAPER):
                _note(axes, m.seconds, y, f"{m.ratio:,.0f}×", COLOURS[method])
        _note(axes, mine[ENGINE].seconds, y, duration(mine[ENGINE].seconds), COLOURS[ENGINE])
    axes.set_title(f"Time per counterfactual, {cost} cost")
    axes.set_xscale("log")
    axes.set_xlim(0.7e-6, 4.0)
    _decades(axes, range(-6, 1))
    _problem_axis(axes, names)


def _excess(axes: Axes, comparison: Sequence[Measured]) -> None:
    """Mean cost over the optimum; an open mark for L2."""
    names = _problem_names(comparison)
    for m in comparison:
        if m.method not in COLOURS or m.method == TWO_JOBS or not math.isfinite(m.excess):
            continue
        y = names.index(f"{m.data}\n{m.model}") + (-0.19 if m.cost == "L1" else 0.19)
        y += {NELDER_MEAD: -0.06, CMA_ES: 0.06}.get(m.method, 0.0)
        _dot(axes, m.excess, y, m.method, hollow=m.cost == "L2")
    missed = [m for m in comparison if m.method in (NELDER_MEAD, CMA_ES) and m.valid < 1]
    for name, cost in dict.fromkeys((f"{m.data}\n{m.model}", m.cost) for m in missed):
        some = [m for m in missed if (f"{m.data}\n{m.model}", m.cost) == (name, cost)]
        y = names.index(name) + (-0.19 if cost == "L1" else 0.19)
        words = "/".join(f"{m.valid:.0%}" for m in some)
        axes.text(
            0.995, y, f"{words} valid", transform=axes.get_yaxis_transform(), size=7,
            color=FAINT, ha="right", va="center",
        )  # fmt: skip
    axes.axvline(1.0, color=COLOURS[ENGINE], lw=1, alpha=0.5, zorder=0)
    axes.set_title("Mean cost, times the optimum")
    axes.set_xlabel("filled: L1, open: L2; exact methods lie on 1×", size=8, color=FAINT)
    axes.set_xscale("log")
    largest = max(m.excess for m in comparison if math.isfinite(m.excess))
    axes.set_xlim(0.85, 2.6 * largest)
    ticks = [tick for tick in (1, 2, 3, 5, 10, 20, 50) if tick <= 1.3 * largest]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
    _problem_axis(axes, names)


def _dot(axes: Axes, x: float, y: float, method: str, *, hollow: bool = False) -> None:
    colour = COLOURS[method]
    axes.plot(
        [x], [y], MARKERS.get(method, "o"), ms=5.5 if method in MARKERS else 7,
        mfc="white" if hollow else colour, mec=colour if hollow else "white",
        mew=1.3 if hollow else 0.8, zorder=4 if method == ENGINE else 3,
    )  # fmt: skip


def _note(axes: Axes, x: float, y: float, words: str, colour: str) -> None:
    axes.annotate(
        words, (x, y), (0, 7), textcoords="offset points", ha="center", size=7.5, color=colour,
        zorder=5,
    )  # fmt: skip


def _problem_axis(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.6)
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x", color=GRID, lw=0.7, zorder=0)
    axes.set_axisbelow(True)


def _decades(axes: Axes, powers: range) -> None:
    axes.xaxis.set_major_locator(FixedLocator([10.0**k for k in powers]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: duration(value)))
    axes.xaxis.set_minor_locator(NullLocator())


def _method_key(figure: Figure, axes: Axes) -> None:
    """Names in the colours of their marks, in one line."""
    handles = [
        axes.plot([], [], MARKERS.get(method, "o"), color=COLOURS[method], ms=6, ls="", label=name)[
            0
        ]
        for method, name in NAMES.items()
    ]
    figure.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(0.013, 0.918), ncols=len(handles),
        frameon=False, fontsize=9, handletextpad=0.1, columnspacing=1.6, borderpad=0,
        labelcolor="linecolor",
    )  # fmt: skip


def _growth_row(figure: Figure, curves: Sequence[Curve]) -> None:
    letters = list(dict.fromkeys(curve.letter for curve in curves))
    grid = figure.add_gridspec(
        1, len(letters), left=0.055, right=0.985, top=0.36, bottom=0.1, wspace=0.3
    )
    for at, letter in enumerate(letters):
        axes = figure.add_subplot(grid[at])
        _growth(axes, [curve for curve in curves if curve.letter == letter])
        if at == 0:
            axes.set_title("Time of a whole batch")
        elif at == 1:
            axes.set_title("Time per row, one job; dashed: fitted power laws")


def _growth(axes: Axes, curves: Sequence[Curve]) -> None:
    for at, curve in enumerate(curves):
        colour = COST_COLOURS[curve.cost]
        axes.plot(
            curve.sizes, curve.seconds, "o-", color=colour, ms=4.5, mec="white", mew=0.6, lw=1.2
        )
        ends = [curve.sizes[0], curve.sizes[-1]]
        fitted = [curve.factor * size**curve.exponent for size in ends]
        axes.plot(ends, fitted, color=colour, lw=1, ls=(0, (5, 3)), alpha=0.8)
        words = _power(curve.letter, curve.exponent)
        words = f"{curve.cost}  {words}, at the end {_power(curve.letter, curve.last_exponent)}"
        axes.text(
            0.04, 0.96 - 0.1 * at, words, transform=axes.transAxes, color=colour, size=9, va="top"
        )
    first = curves[0]
    axes.set_xscale("log")
    axes.set_yscale("log")
    seconds = [value for curve in curves for value in curve.seconds]
    low, high = min(seconds) / 1.8, 4.5 * max(seconds)
    axes.set_ylim(low, high)
    steps = (1, 2, 5) if high < 80 * low else (1,)
    ticks = [step * 10.0**k for k in range(-7, 3) for step in steps]
    axes.yaxis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= high]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: duration(value)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_locator(FixedLocator(first.sizes))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _count(value)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(f"{first.letter}, {first.meaning}\n({first.fixed})")
    axes.tick_params(labelsize=8)
    axes.grid(color=GRID, lw=0.7)
    axes.set_axisbelow(True)


def _power(letter: str, exponent: float) -> str:
    return f"{letter}$^{{{exponent:.2f}}}$"


def _count(value: float) -> str:
    for size, letter in ((10**6, "M"), (10**3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"

"""The run about local metrics as one picture: times and costs above, growth and parts below."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from benchmarks.local_figures import LocalResults, beside_global
from benchmarks.local_growth import LocalCurve
from benchmarks.local_methods import METHODS, Run
from benchmarks.local_profile import (
    ASSEMBLY,
    BOUND,
    CHECK,
    PARTS,
    REST,
    SEARCH,
    SOLVER,
    STARTS,
    Profile,
)
from benchmarks.picture import COST_COLOURS, FAINT, GRID, INK, STYLE
from benchmarks.report import duration

COLOURS = {"ccp": "#e09f3e", "auto": "#3a9188", "global": "#d1495b"}
NAMES = {
    "ccp": "ccp: the paper's search, no proof",
    "auto": "auto: branch and bound, small budget",
    "global": "global: until proved",
}
OFFSETS = {"ccp": -0.26, "auto": 0.0, "global": 0.26}
PART_COLOURS = {
    SOLVER: "#2f6690",
    ASSEMBLY: "#81a4c4",
    BOUND: "#3a9188",
    SEARCH: "#e09f3e",
    STARTS: "#f0cf9a",
    CHECK: "#9fd0c8",
    REST: "#c9ced6",
}
MOST_EXCESS = 5.0  # costs beyond this multiple are drawn there


def draw(results: LocalResults, path: Path) -> None:
    """Draw everything into a PNG file."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(13.2, 10.2), dpi=150)
        top = figure.add_gridspec(
            1, 2, left=0.085, right=0.985, top=0.855, bottom=0.43, wspace=0.05,
            width_ratios=(1.25, 1.0),
        )  # fmt: skip
        left, right = (figure.add_subplot(cell) for cell in top)
        names = list(dict.fromkeys(_name(run) for run in results.runs))
        _times(left, results, names)
        _excess(right, results, names)
        right.set_yticklabels([])
        _key(figure, left)
        bottom = figure.add_gridspec(
            1, 3, left=0.055, right=0.975, top=0.335, bottom=0.105, wspace=0.3,
            width_ratios=(1.0, 1.0, 1.15),
        )  # fmt: skip
        for cell, letter in zip(bottom, ("d", "m"), strict=False):
            axes = figure.add_subplot(cell)
            _growth(axes, [curve for curve in results.growth if curve.letter == letter])
            if letter == "d":
                axes.set_title(
                    "auto: median time per row, thin lines up to the slowest; dashed: fits"
                )
        _parts(figure.add_subplot(bottom[2]), results.profiles)
        _words(figure, results)
        figure.savefig(path, format="png", facecolor="white")


def _words(figure: Figure, results: LocalResults) -> None:
    where, packages = results.environment, results.environment["packages"]
    proved = [flag for run in results.of("global") for flag in run.proved]
    seconds = [value for run in results.of("global") for value in run.seconds]
    missed = [beside_global(results, run).optimal for run in results.of("ccp")]
    figure.text(
        0.02, 0.966, "Local metrics: closest counterfactuals, proved", size=16, weight="bold"
    )
    figure.text(
        0.02,
        0.94,
        f"global proves {sum(proved)} of {len(proved)} answers to a gap of 1e-4, in "
        f"{duration(median(seconds))} each (median; the longest takes {duration(max(seconds))}). "
        f"The paper's search alone finds {min(missed):.0%} to {max(missed):.0%} of the optima, "
        "and cannot know which.",
        size=9.5,
        color=FAINT,
    )
    shown = ", ".join(f"{name} {packages[name]}" for name in ("numba", "clarabel"))
    figure.text(
        0.02,
        0.012,
        f"{where['date'][:10]}, Python {where['python']}, {shown}, one of {where['cores']} cores. "
        "Iris and cancer: LGMLVQ models with optima proved by SCIP. Digits: LGMLVQ, 30 prototypes, "
        "10 principal components. Growth: random models.",
        size=8,
        color=FAINT,
    )


def _name(run: Run) -> str:
    return f"{run.problem.replace(', ', chr(10))}\n{run.cost}"


def _times(axes: Axes, results: LocalResults, names: Sequence[str]) -> None:
    for run in results.runs:
        y = names.index(_name(run)) + OFFSETS[run.method]
        colour, middle = COLOURS[run.method], median(run.seconds)
        spread = np.sort(run.seconds)
        axes.plot([spread[0], spread[-1]], [y, y], color=colour, lw=1, alpha=0.35, zorder=1)
        axes.plot(spread, [y] * len(spread), "o", color=colour, ms=3, mew=0, alpha=0.4, zorder=2)
        axes.plot([middle], [y], "|", color=colour, ms=10, mew=2.2, zorder=4)
        words = duration(float(f"{middle:.2g}"))
        axes.annotate(
            words, (spread[-1], y), (6, 0), textcoords="offset points", va="center", size=7.5,
            color=colour,
        )  # fmt: skip
    everything = [value for run in results.runs for value in run.seconds]
    axes.set_title("Time per answer: every row, its median marked and written")
    axes.set_xscale("log")
    axes.set_xlim(min(everything) / 1.5, 4.0 * max(everything))
    axes.xaxis.set_major_locator(FixedLocator([10.0**k for k in range(-3, 2)]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: duration(value)))
    axes.xaxis.set_minor_locator(NullLocator())
    _problem_axis(axes, names)


def _excess(axes: Axes, results: LocalResults, names: Sequence[str]) -> None:
    """Costs of each row over those of `global`, and shares in words."""
    best = {_name(run): np.array(run.costs) for run in results.of("global")}
    for run in results.runs:
        if run.method == "global":
            continue
        y = names.index(_name(run)) + OFFSETS[run.method]
        over = np.minimum(np.array(run.costs) / best[_name(run)], MOST_EXCESS)
        colour = COLOURS[run.method]
        axes.plot(over, [y] * over.size, "o", color=colour, ms=4, mew=0, alpha=0.55, zorder=3)
        shares = beside_global(results, run)
        proved = f", {shares.proved:.0%} proved" if run.method == "auto" else ""
        axes.text(
            0.995, y, f"{shares.optimal:.0%} optimal{proved}", size=7.5, color=colour, ha="right",
            va="center", transform=axes.get_yaxis_transform(),
        )  # fmt: skip
    axes.axvline(1.0, color=COLOURS["global"], lw=1.2, alpha=0.6, zorder=0)
    axes.set_title("Cost of every answer, times that of global")
    axes.set_xscale("log")
    axes.set_xlim(0.95, 2.1 * MOST_EXCESS)
    axes.xaxis.set_major_locator(FixedLocator([1, 1.2, 1.5, 2, 3, MOST_EXCESS]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value:g}×" + ("+" if value == MOST_EXCESS else ""))
    )
    _problem_axis(axes, names)


def _problem_axis(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), names, size=8)
    axes.set_ylim(len(names) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x", color=GRID, lw=0.7, zorder=0)
    for y in range(1, len(names)):
        axes.axhline(y - 0.5, color=GRID, lw=0.7, zorder=0)
    axes.set_axisbelow(True)


def _key(figure: Figure, axes: Axes) -> None:
    """Names in the colours of their marks, in one line."""
    handles = [
        axes.plot([], [], "o", color=COLOURS[method], ms=6, ls="", label=NAMES[method])[0]
        for method in METHODS
    ]
    figure.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(0.013, 0.926), ncols=len(handles),
        frameon=False, fontsize=9, handletextpad=0.1, columnspacing=1.6, borderpad=0,
        labelcolor="linecolor",
    )  # fmt: skip


def _growth(axes: Axes, curves: Sequence[LocalCurve]) -> None:
    for at, curve in enumerate(curves):
        colour, shift = COST_COLOURS[curve.cost], 1.0 + 0.03 * (2 * at - 1)
        x = [shift * size for size in curve.sizes]
        axes.vlines(x, curve.seconds, curve.worst, color=colour, lw=1.4, alpha=0.35)
        axes.plot(x, curve.seconds, "o-", color=colour, ms=4.5, mec="white", mew=0.6, lw=1.2)
        ends = [curve.sizes[0], curve.sizes[-1]]
        fitted = [curve.factor * size**curve.exponent for size in ends]
        axes.plot(ends, fitted, color=colour, lw=1, ls=(0, (5, 3)), alpha=0.8)
        words = f"{curve.cost}  {_power(curve.letter, curve.exponent)}, at the end "
        words += f"{_power(curve.letter, curve.last_exponent)}; "
        least = min(curve.proved)
        words += "all proved" if least == 1 else f"at least {least:.0%} proved"
        axes.text(
            0.04, 0.97 - 0.1 * at, words, transform=axes.transAxes, color=colour, size=8.5, va="top"
        )
    first = curves[0]
    axes.set_xscale("log")
    axes.set_yscale("log")
    low = min(value for curve in curves for value in curve.seconds) / 1.6
    high = 9.0 * max(value for curve in curves for value in curve.worst)
    axes.set_ylim(low, high)
    steps = (1,) if high > 1e3 * low else (1, 3)
    ticks = [step * 10.0**k for k in range(-4, 3) for step in steps]
    axes.yaxis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= high]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: duration(value)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_locator(FixedLocator(first.sizes))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(f"{first.letter}, {first.meaning}\n({first.fixed})")
    axes.tick_params(labelsize=8)
    axes.grid(color=GRID, lw=0.7)
    axes.set_axisbelow(True)


def _parts(axes: Axes, profiles: Sequence[Profile]) -> None:
    """One bar per problem, cut into the parts of its time."""
    for y, profile in enumerate(profiles):
        start = 0.0
        for part in PARTS:
            share = profile.share(part)
            axes.barh(y, share, left=start, height=0.62, color=PART_COLOURS[part])
            if share > 0.06:
                axes.text(
                    start + share / 2, y, f"{share:.0%}", ha="center", va="center", size=7.5,
                    color="white" if part in (SOLVER, BOUND) else INK,
                )  # fmt: skip
            start += share
    names = [
        f"{p.problem.split(',')[0]} {p.cost}\nd = {p.features}\n"
        f"{duration(float(f'{p.seconds / max(p.boxes, 1):.2g}'))} per box"
        for p in profiles
    ]
    axes.set_yticks(range(len(names)), names, size=8)
    axes.set_ylim(len(names) - 0.55, -0.5)
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.spines["left"].set_visible(False)
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
    axes.set_title("auto: where the time goes")
    handles = [axes.barh(0, 0, color=PART_COLOURS[part], label=part) for part in PARTS]
    axes.legend(
        handles=handles, loc="upper center", bbox_to_anchor=(0.45, -0.1), ncols=4,
        frameon=False, fontsize=8, handlelength=0.8, handletextpad=0.4, columnspacing=1.4,
        borderpad=0.1,
    )  # fmt: skip


def _power(letter: str, exponent: float) -> str:
    return f"{letter}$^{{{exponent:.2f}}}$"

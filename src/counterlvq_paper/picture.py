"""The run as one picture: how far each method goes, and how long it takes to get there."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from counterlvq_paper.methods import METHODS
from counterlvq_paper.protocol import DATA_SETS, MODELS
from counterlvq_paper.results import Results, duration
from counterlvq_paper.tables import Line

__all__ = ["draw"]

INK, FAINT, GRID = "#1f2430", "#6b7280", "#e5e7eb"
COLOURS: Final = {
    "Nelder-Mead": "#e09f3e",
    "CMA-ES": "#7d5ba6",
    "ccp": "#3a9188",
    "auto": "#d1495b",
    "global": "#2f6690",
}
MARKERS: Final = {"Nelder-Mead": "^", "CMA-ES": "D", "ccp": "s", "auto": "o", "global": "o"}
NAMES: Final = {"ccp": "ccp, the paper's method"}
STYLE: Final[dict[Any, Any]] = {
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
_OFFSETS: Final = {"Nelder-Mead": -0.3, "CMA-ES": -0.15, "ccp": 0.0, "auto": 0.15, "global": 0.3}


def draw(results: Results, path: Path) -> None:
    """Draw everything into a PNG file."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(12.6, 8.2), dpi=150)
        grid = figure.add_gridspec(
            1, 2, left=0.105, right=0.985, top=0.815, bottom=0.095, wspace=0.06
        )
        left, right = figure.add_subplot(grid[0]), figure.add_subplot(grid[1])
        _distances(left, results)
        _times(right, results)
        right.set_yticklabels([])
        _words(figure, results)
        figure.savefig(path, format="png", facecolor="white")


def _place(data: str, model: str) -> int:
    return DATA_SETS.index(data) * len(MODELS) + MODELS.index(model)


def _distances(axes: Axes, results: Results) -> None:
    """Mean distances; an open mark is what the paper prints."""
    for line in results.lines:
        if line.mean_common is not None:
            y = _place(line.data, line.model) + _OFFSETS[line.method]
            _mark(axes, line.mean_common, y, line)
            if line.paper is not None:
                _mark(axes, line.paper, y, line, hollow=True)
        if line.method == "auto" and line.mean_common is not None:
            y = _place(line.data, line.model) + _OFFSETS[line.method]
            axes.annotate(
                f"{line.mean_common:.2f}", (line.mean_common, y), (-7, 0),
                textcoords="offset points", ha="right", va="center", size=7.5,
                color=COLOURS["auto"],
            )  # fmt: skip
    axes.set_title("Mean Manhattan distance, on rows that every method solved")
    axes.set_xlabel("filled: this run; open: as printed in the paper (other folds)", size=8.5)
    axes.set_xscale("log")
    shown = [v for line in results.lines for v in (line.mean_common, line.paper) if v is not None]
    axes.set_xlim(0.62 * min(shown), 1.25 * max(shown))
    ticks = [t for t in (0.25, 0.5, 1, 2, 5, 10, 20) if 0.62 * min(shown) < t < 1.25 * max(shown)]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    _problem_axis(axes)


def _times(axes: Axes, results: Results) -> None:
    """Time per row; a bar to the left where a batch is faster still."""
    for line in results.lines:
        y = _place(line.data, line.model) + _OFFSETS[line.method]
        if line.seconds_batch < 0.9 * line.seconds and line.model != "LGMLVQ":
            axes.plot(
                [line.seconds_batch, line.seconds], [y, y], color=COLOURS[line.method], lw=1.2,
                alpha=0.55, zorder=2,
            )  # fmt: skip
            axes.plot([line.seconds_batch], [y], "|", color=COLOURS[line.method], ms=6, zorder=2)
        _mark(axes, line.seconds, y, line)
        if line.method in ("Nelder-Mead", "CMA-ES"):
            words = _speed_up(line)
            axes.annotate(
                words, (line.seconds, y), (7, 0), textcoords="offset points", va="center",
                size=7, color=FAINT,
            )  # fmt: skip
    axes.set_title("Processor time per row, one thread")
    axes.set_xlabel(
        "mark: asked one at a time; line to the left: in a batch; figures: times slower than auto",
        size=8.5,
    )
    axes.set_xscale("log")
    seconds = [v for line in results.lines for v in (line.seconds, line.seconds_batch)]
    axes.set_xlim(0.6 * min(seconds), 9 * max(seconds))
    low, high = 0.6 * min(seconds), 2 * max(seconds)
    axes.xaxis.set_major_locator(
        FixedLocator([10.0**k for k in range(-7, 3) if low < 10.0**k < high])
    )
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: duration(value)))
    axes.xaxis.set_minor_locator(NullLocator())
    _problem_axis(axes)


def _speed_up(line: Line) -> str:
    ratio = line.faster_auto
    words = f"{ratio:,.0f}×" if ratio >= 10 else f"{ratio:.2g}×"
    return words if line.solved_compared == 1 else f"{words}, {line.solved_compared:.0%} valid"


def _mark(axes: Axes, x: float, y: float, line: Line, *, hollow: bool = False) -> None:
    colour = COLOURS[line.method]
    axes.plot(
        [x], [y], MARKERS[line.method], ms=5.2, mfc="white" if hollow else colour,
        mec=colour, mew=1.2 if hollow else 0.6, zorder=3 if hollow else 4,
    )  # fmt: skip


def _problem_axis(axes: Axes) -> None:
    names = [f"{data}\n{model}" for data in DATA_SETS for model in MODELS]
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x", color=GRID, lw=0.7, zorder=0)
    for y in range(len(names) - 1):
        edge = (y + 1) % len(MODELS) == 0
        axes.axhline(y + 0.5, color="#c6cad2" if edge else GRID, lw=0.8 if edge else 0.6, zorder=0)
    axes.set_axisbelow(True)


def _words(figure: Figure, results: Results) -> None:
    machine, stamp = results.machine, results.versions
    holds = sum(verdict.holds for verdict in results.verdicts)
    figure.text(0.02, 0.955, "The paper's experiments, run again", size=16, weight="bold")
    compared = results.lines[0].compared
    figure.text(
        0.02,
        0.924,
        f"Three data sets, three models with 3 prototypes per class, {len(results.settings.folds)} "
        f"of 4 folds, {compared} rows compared for each; {holds} of {len(results.verdicts)} claims "
        f"hold on every row.",
        size=9.5,
        color=FAINT,
    )
    handles = [
        Line2D([], [], ls="", marker=MARKERS[m], color=COLOURS[m], ms=6, label=NAMES.get(m, m))
        for m in METHODS
    ]
    figure.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(0.012, 0.907), ncols=len(handles),
        frameon=False, handletextpad=0.2, columnspacing=1.6,
    )  # fmt: skip
    shown = ", ".join(f"{name} {stamp[name]}" for name in ("counterlvq", "scipy", "cma"))
    figure.text(
        0.02,
        0.014,
        f"{machine['date'][:10]}, Python {stamp['python']}, {shown}, {machine['cores']} cores, "
        f"seed {results.seed}.",
        size=8,
        color=FAINT,
    )

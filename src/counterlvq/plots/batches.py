"""Which features change in many answers, how often and by how much."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from counterlvq.batch.result import CounterfactualBatch
from counterlvq.numeric.arrays import Floats
from counterlvq.plots import style
from counterlvq.presentation.numbers import rough_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_batch"]


def plot_batch(batch: CounterfactualBatch, ax: Axes | None = None, most: int = 30) -> Axes:
    """Show how often each feature is raised and lowered, and by how much in the middle.

    Bars to the right are the share of answers that raise a feature, bars to the left the share
    that lower it. The number at the end of a bar is the median of those changes, in the units
    of the feature.

    Parameters
    ----------
    batch : CounterfactualBatch
    ax : matplotlib Axes, optional
        Where to draw; a new figure of fitting height by default.
    most : int, default 30
        How many features to show, most often changed first; the rest is counted.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import counterlvq as clvq
    >>> from counterlvq.plots import plot_batch
    >>> model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 0.0]], ["no", "yes"])
    >>> ax = plot_batch(clvq.Explainer(model).explain_batch([[1.0, 0.0], [3.0, 1.0]]))
    >>> [float(bar.get_width()) for bar in ax.patches]
    [0.5, -0.5]
    """
    answered = np.isfinite(batch.cost)
    delta = batch.delta[answered]
    if not delta.any():
        return _say_nothing_changes(batch, ax, int(answered.sum()))
    # A new level is neither up nor down; it is shown to the right, in another colour.
    switched = np.isnan(delta).mean(axis=0)
    up, down = (delta > 0).mean(axis=0) + switched, (delta < 0).mean(axis=0)
    used = [int(j) for j in np.argsort(-(up + down), kind="stable") if up[j] + down[j] > 0]
    shown = used[:most]
    rows = np.arange(len(shown))
    colours = [style.OTHER if switched[j] else style.UP for j in shown]
    nothing = len(batch) - len(delta)
    with style.axes_for(ax, 7.2, 1.35 + 0.36 * len(shown)) as axes:
        axes.barh(rows, up[shown], color=colours, height=0.62, zorder=2, label="raised")
        axes.barh(rows, -down[shown], color=style.DOWN, height=0.62, zorder=2, label="lowered")
        axes.set_yticks(rows, [style.shortened(batch.feature_names[j]) for j in shown])
        axes.set_ylim(len(shown) - 0.4, -0.6)
        _write_medians(axes, delta[:, shown], up[shown], down[shown])
        _dress(axes, len(used) - len(shown))
        each = np.count_nonzero(delta, axis=1).mean()
        style.title(
            axes,
            f"{len(delta):,} answers change {each:.2f} features each"
            + (f"; {nothing:,} rows have no answer" if nothing else ""),
        )
        return axes


def _say_nothing_changes(batch: CounterfactualBatch, ax: Axes | None, answers: int) -> Axes:
    words = f"{len(batch):,} rows, {answers:,} answers: nothing changes in any of them."
    with style.axes_for(ax, 7.2, 2.0) as axes:
        style.clear_frame(axes)
        axes.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(0, 1))
        axes.text(0.5, 0.5, words, ha="center", va="center", color=style.INK)
        return axes


def _write_medians(ax: Axes, delta: Floats, up: Floats, down: Floats) -> None:
    bars = []
    for k, column in enumerate(delta.T):
        if np.isnan(column).any():
            bars.append((k, float(up[k]), "new level"))
            continue
        for sign, share in ((1, up[k]), (-1, down[k])):
            moved = column[sign * column > 0]
            if moved.size:
                by = rough_text(abs(float(np.median(moved))))
                bars.append((k, sign * float(share), ("+" if sign > 0 else "−") + by))
    style.write_beside_bars(ax, bars)


def _dress(ax: Axes, left_out: int) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{abs(share):.0%}"))
    ax.axvline(0.0, color=style.INK, linewidth=0.9, zorder=3)
    ax.grid(axis="x", color="#e3e6ea", linewidth=0.8, zorder=0)
    ax.set_axisbelow(True)
    style.clear_frame(ax)
    lines = ["share of answers that lower (left) or raise (right) it, and the median change"]
    if left_out:
        lines.append(f"{left_out} features that change less often are not shown")
    style.caption(ax, *lines)

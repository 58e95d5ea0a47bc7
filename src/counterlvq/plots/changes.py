"""What changes, as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from counterlvq.explainer import Explainer
from counterlvq.numeric.arrays import Floats
from counterlvq.plots import style
from counterlvq.plots.plane_geometry import change_weights
from counterlvq.presentation.changes import Change
from counterlvq.presentation.numbers import cost_text
from counterlvq.results import Counterfactual
from counterlvq.safe_text import shown_repr

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_changes"]


def plot_changes(
    cf: Counterfactual, explainer: Explainer | None = None, ax: Axes | None = None, most: int = 30
) -> Axes:
    """Show what changes, largest first, each with its value before and after.

    Parameters
    ----------
    cf : Counterfactual
    explainer : Explainer, optional
        Without it the bars are as long as the changes, in the units of the features. With it
        they are as long as the changes weigh in the cost, so that euros and years can be
        compared.
    ax : matplotlib Axes, optional
        Where to draw; a new figure of fitting height by default.
    most : int, default 30
        How many changes to show; the rest is counted.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import counterlvq as clvq
    >>> from counterlvq.plots import plot_changes
    >>> model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 2.0]], ["no", "yes"])
    >>> cf = clvq.Explainer(model).explain([1.0, 0.0], target="yes")
    >>> ax = plot_changes(cf)
    >>> [round(float(bar.get_width()), 6) for bar in ax.patches]
    [1.51]
    """
    changes = cf.shown_changes
    shown = min(len(changes), most)
    lengths_of = _lengths(cf) if explainer is None else change_weights(explainer, cf)
    ordered = sorted(changes, key=lambda change: -abs(lengths_of[change.feature]))[:shown]
    with style.axes_for(ax, 7.2, 1.25 + 0.36 * max(shown, 1)) as axes:
        if not changes:
            return style.say(axes, cf)
        lengths = np.array([lengths_of[change.feature] for change in ordered])
        _draw(axes, ordered, lengths)
        style.caption(axes, _axis_words(explainer, ordered, len(changes) - shown))
        # Words rather than an arrow, on whose sides labels change where they are read from right
        # to left.
        before, after = (shown_repr(one, 28) for one in (cf.original_prediction, cf.prediction))
        style.title(axes, f"from {before} to {after} at cost {cost_text(cf.shown.cost)}")
        return axes


def _draw(ax: Axes, changes: list[Change], lengths: Floats) -> None:
    rows = np.arange(len(changes))
    ax.barh(rows, lengths, color=[_colour(change) for change in changes], height=0.62, zorder=2)
    ax.set_yticks(rows, [style.shortened(change.feature) for change in changes])
    ax.set_ylim(len(changes) - 0.4, -0.6)
    _write_values(ax, changes, lengths)
    ax.axvline(0.0, color=style.INK, linewidth=0.9, zorder=3)
    ax.grid(axis="x", color="#e3e6ea", linewidth=0.8, zorder=0)
    style.clear_frame(ax)
    ax.set_axisbelow(True)


def _lengths(cf: Counterfactual) -> dict[str, float]:
    """Take the changes themselves; a new level, which has no length, is as long as the longest."""
    changes = cf.shown_changes
    numbers = {c.feature: float(c.difference) for c in changes if c.difference is not None}
    longest = max(map(abs, numbers.values()), default=1.0)
    levels = {c.feature: longest for c in changes if c.difference is None}
    return levels | numbers


def _colour(change: Change) -> str:
    if change.difference is None:
        return style.OTHER
    return style.UP if change.difference > 0 else style.DOWN


def _write_values(ax: Axes, changes: list[Change], lengths: Floats) -> None:
    """Write each change beyond the end of its bar."""
    texts = [_words(change) for change in changes]
    style.write_beside_bars(ax, list(zip(range(len(texts)), lengths.tolist(), texts, strict=True)))


def _words(change: Change) -> str:
    behind = f" {style.shortened(change.unit, 12)}" if change.unit else ""
    if change.difference is None:
        return style.shortened(f"{change.before} → {change.after}", 40)
    if change.is_date:
        _, before, after, by = change.cells()
        return f"{by.replace('-', '−', 1)}  ({before} → {after})"
    shown = change.shown
    sign = "+" if shown.rises else "−"
    return f"{sign}{shown.by}{behind}  ({shown.before} → {shown.after})"


def _axis_words(explainer: Explainer | None, changes: list[Change], left_out: int) -> str:
    words = "change, in the units of each feature"
    if explainer is not None:
        words = "change, as it weighs in the cost"
    elif len({change.difference is None for change in changes}) == 2:
        words += "; new levels have none, and are drawn as long as the longest"
    return words + (f"; {left_out} smaller ones are not shown" if left_out else "")

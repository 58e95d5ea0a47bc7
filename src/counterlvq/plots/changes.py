"""What changes, as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from counterlvq.arrays import Floats
from counterlvq.explainer import Explainer
from counterlvq.planes import feature_scale
from counterlvq.plots import style
from counterlvq.presentation import cost_text
from counterlvq.results import Change, Counterfactual

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
    [1.5]
    """
    changes = cf.shown_changes
    shown = min(len(changes), most)
    if ax is None:
        _, ax = style.new_figure(7.2, 1.25 + 0.36 * max(shown, 1))
    if not changes:
        return style.say(ax, cf)
    weights = _weights(cf, explainer)
    ordered = sorted(changes, key=lambda change: -_length(change, weights))[:shown]
    lengths = np.array([_signed_length(change, weights) for change in ordered])
    colours = [_colour(change) for change in ordered]
    ax.barh(np.arange(shown), lengths, color=colours, height=0.62, zorder=2)
    _write_values(ax, ordered, lengths)
    ax.set_yticks(np.arange(shown), [style.shortened(change.feature) for change in ordered])
    ax.set_ylim(shown - 0.4, -0.6)
    ax.axvline(0.0, color=style.INK, linewidth=0.9, zorder=3)
    ax.grid(axis="x", color="#e3e6ea", linewidth=0.8, zorder=0)
    style.clear_frame(ax)
    ax.set_axisbelow(True)
    ax.set_xlabel(_axis_words(explainer, len(changes) - shown), color=style.MUTED)
    style.title(
        ax, f"{cf.original_prediction!r} → {cf.prediction!r} at cost {cost_text(cf.shown.cost)}"
    )
    return ax


def _weights(cf: Counterfactual, explainer: Explainer | None) -> dict[str, float]:
    if explainer is None:
        return dict.fromkeys(cf.feature_names, 1.0)
    return feature_scale(explainer)


def _signed_length(change: Change, weights: dict[str, float]) -> float:
    return float(change.difference * weights[change.feature]) if change.is_number else 0.0


def _length(change: Change, weights: dict[str, float]) -> float:
    """By what changes are ordered: a new level, which has no length, comes first."""
    return abs(_signed_length(change, weights)) if change.is_number else np.inf


def _colour(change: Change) -> str:
    if not change.is_number:
        return style.OTHER
    return style.UP if change.difference > 0 else style.DOWN


def _write_values(ax: Axes, changes: list[Change], lengths: Floats) -> None:
    """Write each change beyond the end of its bar."""
    texts = [_words(change) for change in changes]
    style.write_beside_bars(ax, list(zip(range(len(texts)), lengths.tolist(), texts, strict=True)))


def _words(change: Change) -> str:
    behind = f" {style.shortened(change.unit, 12)}" if change.unit else ""
    if not change.is_number:
        return style.shortened(f"{change.before} → {change.after}", 40)
    shown = change.shown
    sign = "+" if shown.rises else "−"
    return f"{sign}{shown.by}{behind}  ({shown.before} → {shown.after})"


def _axis_words(explainer: Explainer | None, left_out: int) -> str:
    words = "change, in the units of each feature"
    if explainer is not None:
        words = "change, as it weighs in the cost"
    return words + (f"; {left_out} smaller ones are not shown" if left_out else "")

"""Shares of rows that stay right within a radius, as curves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from counterlvq.plots import style
from counterlvq.questions.robustness import Robustness

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_robustness"]


def plot_robustness(robustness: Robustness, ax: Axes | None = None, norm: str = "l2") -> Axes:
    """Show the share of rows that are right and stay so within a radius, by radius.

    Parameters
    ----------
    robustness : Robustness
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    norm : {"l1", "l2", "linf"}

    Returns
    -------
    Axes

    Examples
    --------
    >>> import counterlvq as clvq
    >>> from counterlvq.plots import plot_robustness
    >>> model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 0.0]], ["no", "yes"])
    >>> ax = plot_robustness(clvq.robustness(clvq.Explainer(model), [[1.0, 0.0], [3.5, 2.0]]))
    >>> [line.get_label() for line in ax.lines]
    ['proved', 'quick certificate']
    """
    far = robustness.distance[norm]
    there = far[np.isfinite(far)]
    radii = np.linspace(0.0, 1.05 * float(there.max(initial=0.0)) or 1.0, 400)
    with style.axes_for(ax, 7.2, 3.6) as axes:
        axes.plot(radii, robustness.curve(radii, norm), color=style.UP, label="proved")
        if not np.isnan(robustness.hypothesis_margin[norm]).any():
            quick = robustness.curve(radii, norm, by="hypothesis_margin")
            axes.plot(radii, quick, color=style.DOWN, linestyle="--", label="quick certificate")
        axes.set(xlabel=f"radius in {norm}", ylim=(0.0, 1.02), xlim=(0.0, radii[-1]))
        axes.set_ylabel("share right and farther" if robustness.is_labelled else "share farther")
        axes.legend(frameon=False)
        style.clear_frame(axes, keep=("left", "bottom"))
        style.title(axes, robustness.headline)
        return axes

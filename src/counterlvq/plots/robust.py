"""Shares of rows that stay right within a radius, as curves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import Floats, told
from counterlvq.plots import style
from counterlvq.questions.robustness import Robustness

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_robustness"]

# Rows beyond this share of them are left out of a picture that they would stretch by so much.
_SHOWN_SHARE, _STRETCH = 0.99, 1.5


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
    if not isinstance(robustness, Robustness):
        raise InvalidInputError(
            f"robustness is {told(robustness)}; expected what clvq.robustness(explainer, X) found."
        )
    robustness.curve([0.0], norm)  # says what is wrong with the norm
    end, farther = _end(robustness.distance[norm])
    radii = np.linspace(0.0, 1.05 * end or 1.0, 400)
    with style.axes_for(ax, 7.2, 3.6) as axes:
        axes.plot(radii, robustness.curve(radii, norm), color=style.UP, label="proved")
        if not np.isnan(robustness.hypothesis_margin[norm]).any():
            quick = robustness.curve(radii, norm, by="hypothesis_margin")
            axes.plot(radii, quick, color=style.DOWN, linestyle="--", label="quick certificate")
        axes.set(xlabel=f"radius in {norm}{farther}", ylim=(0.0, 1.02), xlim=(0.0, radii[-1]))
        axes.set_ylabel("share right and farther" if robustness.is_labelled else "share farther")
        axes.legend(frameon=False)
        style.clear_frame(axes, keep=("left", "bottom"))
        style.title(axes, robustness.headline)
        return axes


def _end(distances: Floats) -> tuple[float, str]:
    """Largest distance that is drawn, and a note on the rows that are farther."""
    there = np.sort(distances[np.isfinite(distances)])
    if not there.size:
        return 0.0, ""
    most, usual = float(there[-1]), float(np.quantile(there, _SHOWN_SHARE, method="lower"))
    if most <= _STRETCH * usual or usual == 0:
        return most, ""
    count = int((there > usual).sum())
    return usual, f"; {count} row{' is' if count == 1 else 's are'} farther"

"""An image before and after."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from counterlvq.errors import InvalidInputError
from counterlvq.plots import style
from counterlvq.presentation.numbers import cost_text
from counterlvq.results import Counterfactual

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_image"]


def plot_image(
    cf: Counterfactual, shape: Sequence[int], axes: Sequence[Axes] | None = None
) -> NDArray[Any]:
    """Show an input whose features are pixels: before, the change, after.

    Before and after share one grey scale. In the change, white is none, blue is more and
    orange less, equally strong for equal amounts.

    Parameters
    ----------
    cf : Counterfactual
    shape : (rows, columns)
        Of the image; features run along its rows.
    axes : sequence of three matplotlib Axes, optional

    Returns
    -------
    ndarray of three Axes

    Examples
    --------
    >>> import counterlvq as clvq
    >>> from counterlvq.plots import plot_image
    >>> model = clvq.PrototypeModel([[0, 0, 0, 0], [0, 9, 9, 0]], ["blank", "bar"])
    >>> cf = clvq.Explainer(model).explain([0, 1, 0, 0], target="bar")
    >>> before, change, after = plot_image(cf, (2, 2))
    >>> after.get_title()
    "after: 'bar'"
    """
    if len(shape) != 2 or prod(shape) != len(cf.features):
        raise InvalidInputError(
            f"shape is {tuple(shape)}; expected (rows, columns) with {len(cf.features)} pixels in "
            f"all, one per feature."
        )
    if axes is not None:
        return _draw(_checked(axes), cf, shape)
    with style.new_figure(7.2, 3.1) as figure:
        return _draw(np.asarray(figure.subplots(1, 3)), cf, shape)


def _draw(panels: NDArray[Any], cf: Counterfactual, shape: Sequence[int]) -> NDArray[Any]:
    before = cf.original_values.reshape(shape)
    after = cf.values.reshape(shape) if cf.status.has_answer else before
    low, high = min(before.min(), after.min()), max(before.max(), after.max())
    _show(panels[0], before, "gray_r", (low, high), f"before: {cf.original_prediction!r}")
    if not cf.status.has_answer:
        panels[2].set_axis_off()
        panels[1] = style.say(panels[1], cf)
        return panels
    change = after - before
    most = float(np.abs(change).max()) or 1.0
    image = _show(
        panels[1], change, _diverging(), (-most, most), f"change (cost {cost_text(cf.cost)})"
    )
    _show(panels[2], after, "gray_r", (low, high), f"after: {cf.prediction!r}")
    # Within the panel's own place, so that the three stay in line.
    below = panels[1].inset_axes([0.1, -0.1, 0.8, 0.045])
    bar = panels[1].figure.colorbar(image, cax=below, orientation="horizontal")
    bar.set_ticks([-most, 0, most], labels=[f"{-most:.3g}", "0", f"{most:+.3g}"])
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize=8, labelcolor=style.MUTED)
    return panels


def _checked(axes: Sequence[Axes]) -> NDArray[Any]:
    if len(axes) != 3:
        raise InvalidInputError(
            f"axes holds {len(axes)}; expected three, for before, change and after."
        )
    panels = np.empty(3, dtype=object)
    panels[:] = list(axes)
    return panels


def _diverging() -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("change", [style.DOWN, "white", style.UP])


def _show(ax: Axes, pixels: Any, colours: Any, ends: tuple[float, float], words: str) -> Any:
    image = ax.imshow(pixels, cmap=colours, vmin=ends[0], vmax=ends[1], interpolation="nearest")
    ax.set(xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set_color("#c9ced6")
    ax.set_title(style.shortened(words, 30), color=style.INK, fontsize=10)
    return image

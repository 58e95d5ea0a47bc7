"""What all pictures share: the colours, the way to get axes, and what is said instead of a picture.

Colours are told apart with every common kind of colour blindness (the sets of Okabe and Ito and
of Paul Tol), and none of them is the only sign of anything: bars have a side, cells a label.
"""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width

from counterlvq.errors import NotSupportedError
from counterlvq.results import Counterfactual
from counterlvq.safe_text import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "DOWN",
    "INK",
    "MUTED",
    "OTHER",
    "UP",
    "axes_for",
    "caption",
    "class_colours",
    "clear_frame",
    "measuring",
    "new_figure",
    "require_matplotlib",
    "say",
    "shade",
    "shortened",
    "title",
    "write_beside_bars",
]

# Points of the text beside bars, and the width of its letters in such points.
_SMALL, _LETTER = 8.5, 0.6
# Points of what stands above and below.
_TITLE, _CAPTION = 10.5, 10.0

INK, MUTED = "#1f2328", "#5b6470"
UP, DOWN, OTHER = "#0072b2", "#d55e00", "#7b6a96"
_FEW = ("#56a0d3", "#e69f00", "#3a9e7d", "#cc79a7")
_MANY = (
    "#332288", "#88ccee", "#44aa99", "#117733", "#999933",
    "#ddcc77", "#cc6677", "#882255", "#aa4499", "#9a9a9a",
)  # fmt: skip


def require_matplotlib(otherwise: str = "") -> None:
    """Say what to install if matplotlib is not there, and what else can be done."""
    _pyplot(otherwise)


@contextmanager
def new_figure(width: float, height: float) -> Iterator[Figure]:
    """Make a figure of so many inches, of which nothing is left behind if drawing fails."""
    plt = _pyplot()
    figure = plt.figure(figsize=(width, height), layout="constrained")
    try:
        yield figure
    except BaseException:
        plt.close(figure)
        raise


@contextmanager
def axes_for(ax: Axes | None, width: float, height: float) -> Iterator[Axes]:
    """Draw into the axes that are given, or into those of a new figure."""
    if ax is not None:
        yield ax
        return
    with new_figure(width, height) as figure:
        yield figure.subplots()


def _pyplot(otherwise: str = "") -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise NotSupportedError(
            "pictures need matplotlib, which is not installed; install it with "
            f"pip install matplotlib{otherwise}."
        ) from None
    return plt


def class_colours(count: int) -> list[str]:
    """One colour per class; beyond ten they come round again, and labels tell them apart."""
    palette = _FEW if count <= len(_FEW) else _MANY
    return [palette[c % len(palette)] for c in range(count)]


def shade(colour: str, share: float) -> tuple[float, float, float]:
    """Mix a colour with white; `share` of it is left."""
    from matplotlib.colors import to_rgb

    red, green, blue = (1.0 - share * (1.0 - part) for part in to_rgb(colour))
    return red, green, blue


def clear_frame(ax: Axes, *, keep: tuple[str, ...] = ()) -> None:
    """Take away the lines around the axes, but those to keep."""
    for side, spine in ax.spines.items():
        spine.set_visible(side in keep)
        spine.set_color(MUTED)
    ax.tick_params(length=0, colors=MUTED, labelcolor=INK)


def title(ax: Axes, text: str, more: str = "") -> None:
    """Put a title above the left edge, in as many lines as it needs, and a quieter one below."""
    place = ax.get_position()
    words = _wrapped(text, min(74, _letters(ax, 1.0 - place.x0, _TITLE)), 2)
    ax.set_title(words, loc="left", color=INK, fontsize=_TITLE, pad=24 if more else 10)
    if more:
        ax.annotate(
            _literal(visible(more)), (0, 1), (0, 8), xycoords="axes fraction",
            textcoords="offset points", color=MUTED, fontsize=8.5, annotation_clip=False,
        )  # fmt: skip


def caption(ax: Axes, *lines: str) -> None:
    """Say below the axes what they measure, in lines that are as wide as the axes."""
    width = max(30, _letters(ax, ax.get_position().width, _CAPTION))
    words = "\n".join(_balanced(line, width) for line in lines)
    ax.set_xlabel(words, color=MUTED, fontsize=_CAPTION)


def _balanced(line: str, width: int) -> str:
    """Wrap into as few lines as the width allows, and these alike in length."""
    count = len(textwrap.wrap(line, width))
    while width > 1 and len(textwrap.wrap(line, width - 1)) == count:
        width -= 1
    return _wrapped(line, width, count)


def _letters(ax: Axes, share: float, size: float) -> int:
    """How many letters of a size fit into a share of the width of the figure."""
    return max(20, int(share * ax.figure.bbox.width / ax.figure.dpi * 72.0 / (0.52 * size)))


def write_beside_bars(ax: Axes, bars: list[tuple[int, float, str]]) -> None:
    """Write beyond the ends of horizontal bars (row, length, text), and make room for it."""
    _lay_out(ax)
    left, right = (abs(end(0.0, *(length for _, length, _ in bars))) for end in (min, max))
    if not left:
        right = right or 1.0
    width = ax.get_window_extent().width / ax.figure.dpi * 72.0
    needed = [0.0, 0.0]
    for _, length, text in bars:
        side = int(length >= 0)
        needed[side] = max(needed[side], (len(text) + 2) * _LETTER * _SMALL / width)
    span = (left + right) / max(1.0 - sum(needed), 0.25)
    for row, length, text in bars:
        sign = -1 if length < 0 else 1
        ax.text(
            length + sign * 0.012 * span, row, text, zorder=4, fontsize=_SMALL, color=INK,
            va="center", ha="left" if sign > 0 else "right",
        )  # fmt: skip
    ax.set_xlim(-left - needed[0] * span, right + needed[1] * span)


def _lay_out(ax: Axes) -> None:
    """Let names beside the axes take their room, before anything is measured by the axes."""
    if hasattr(ax.figure, "draw_without_rendering"):  # a part of a figure has its place
        with measuring():
            ax.figure.draw_without_rendering()


@contextmanager
def measuring() -> Iterator[None]:
    """Measure words without a word: what letters a font lacks is said when they are drawn."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        yield


def say(ax: Axes, cf: Counterfactual) -> Axes:
    """Write in words why there is nothing to draw."""
    clear_frame(ax)
    ax.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(0, 1))
    ax.text(
        0.5, 0.5, _wrapped(cf.text(), 52, 8), ha="center", va="center", color=INK, fontsize=10.5,
        linespacing=1.5,
    )  # fmt: skip
    return ax


def shortened(text: str, most: int = 28) -> str:
    """Cut a long name in the middle, where names differ least, and keep it from being read."""
    seen = visible(text, most)
    wide = sum(map(_width, seen))
    if wide > 1.2 * most:
        seen = visible(text, int(1.2 * most * len(seen) / wide))
    return _literal(seen)


def _width(letter: str) -> float:
    """Measure a letter in usual ones, roughly."""
    if east_asian_width(letter) in ("W", "F"):
        return 1.7
    return 1.4 if letter.isupper() or letter in "mw@%" else 1.0


def _wrapped(text: str, width: int, most: int) -> str:
    lines = textwrap.wrap(visible(text), width, max_lines=most, placeholder=" …")
    return "\n".join(map(_literal, lines))


def _literal(text: str) -> str:
    """Keep matplotlib from reading a dollar sign as the start of a formula."""
    return text.replace("$", r"\$")

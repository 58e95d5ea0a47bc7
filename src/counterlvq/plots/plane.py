"""The proof that one can see: a slice through the input and its counterfactual."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt

from counterlvq.explainer import Explainer
from counterlvq.numeric.arrays import Floats
from counterlvq.plots import style
from counterlvq.plots.plane_geometry import PlaneAxes, undrawn
from counterlvq.plots.slices import Slice, slice_of
from counterlvq.presentation.numbers import bound_text, cost_text
from counterlvq.presentation.question import words_of
from counterlvq.results import Counterfactual
from counterlvq.safe_text import shown_repr
from counterlvq.types import Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PLANE_SIZE", "draw_plane", "plot_plane"]

# Inches.
PLANE_SIZE = (7.2, 6.6)

_CLASS_MARKS = "osD^vPXhp8"
# Half the width of a letter as a share of the picture's, and by how much lines are higher.
_LETTER, _TALL = 0.0065, 3.0
# Prototypes off the plane are shown up to so many; more would hide what they are to explain.
_MOST_OFF_PLANE = 40
# Entries of a key that stand below each other; more of them take two columns.
_IN_ONE_COLUMN = 4
# Of the letters that fit a line of the key, by their mean width; some lines have wider ones.
_LETTERS_LEFT = 0.85


def plot_plane(
    explainer: Explainer,
    cf: Counterfactual,
    features: PlaneAxes = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw cells, input and counterfactual in a plane, with the ball that proves it closest.

    The picture is a slice, not a projection: every point of it is an input, coloured by what the
    model says there. The bright shape is all that costs less than the lower bound. It touches the
    cells that are wished for and does not enter them, except where the constraints, which are
    hatched, forbid to go: no counterfactual is cheaper. The key names constraints that cannot be
    drawn, such as how many features change at most. Equal lengths cost about the same in both
    directions, as far as the cost tells.

    Parameters
    ----------
    explainer : Explainer
        The one that gave the answer.
    cf : Counterfactual
        Without an answer the plane goes through the input and the nearest wished-for prototype.
    features : pair of features, "metric", or None
        Two features to be the axes, all others as in the counterfactual; or the two directions
        that the metric sees best, through the counterfactual. By default a plane that holds the
        input and the counterfactual both: of the features that change if these are one or two,
        else along the change and across it in the leading direction of the metric.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import counterlvq as clvq
    >>> from counterlvq.plots import plot_plane
    >>> model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 2.0]], ["no", "yes"])
    >>> explainer = clvq.Explainer(model)
    >>> ax = plot_plane(explainer, explainer.explain([1.0, 0.0], target="yes"))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('x0', 'x1')
    """
    with style.axes_for(ax, *PLANE_SIZE) as axes:
        return draw_plane(axes, explainer, cf, features, fill_figure=ax is None)


def draw_plane(
    ax: Axes, explainer: Explainer, cf: Counterfactual, features: PlaneAxes, *, fill_figure: bool
) -> Axes:
    """Draw as `plot_plane` does; in a figure of its own the layout makes room for the key."""
    seen = slice_of(explainer, cf, features)
    colours = style.class_colours(len(explainer.model.classes))
    marked = _marked(explainer, cf, seen)
    keys = _draw_cells(ax, explainer, seen, colours, marked)
    unseen = "; ".join(words_of(item, cf.features) for item in undrawn(explainer))
    keys += _draw_limits(ax, seen)
    keys = _draw_balls(ax, cf, seen, is_limited=bool(unseen)) + keys
    keys += _draw_prototypes(ax, explainer, seen, colours)
    keys = _draw_points(ax, cf, seen) + keys
    if unseen:
        keys += ax.plot([], [], " ", label=style.shortened(f"also asked, not drawn: {unseen}", 100))
    _frame(ax, cf, seen)
    _draw_key(ax, keys, fill_figure=fill_figure)
    return ax


def _draw_key(ax: Axes, keys: list[Any], *, fill_figure: bool) -> None:
    """Draw the key in two columns, in one where the figure is too narrow, and in several lines."""
    figure = ax.figure
    looks: dict[str, Any] = {
        "handles": keys, "frameon": False, "fontsize": 8.5, "labelcolor": style.INK,
        "handlelength": 1.6, "columnspacing": 1.6,
    }  # fmt: skip
    place: dict[str, Any] = {"loc": "outside lower center"}
    if not fill_figure:
        place = {"loc": "upper left", "bbox_to_anchor": (-0.02, -0.115), "borderaxespad": 0.0}
    for columns in (2, 1) if len(keys) > _IN_ONE_COLUMN else (1,):
        legend = (figure if fill_figure else ax).legend(ncols=columns, **place, **looks)
        with style.measuring():
            room = figure.bbox.width / legend.get_window_extent().width
        if room >= 1.0:
            return
        if columns > 1:
            legend.remove()
    longest = max(len(text.get_text()) for text in legend.get_texts())
    for text in legend.get_texts():
        text.set_text(fill(text.get_text(), max(int(_LETTERS_LEFT * room * longest), 1)))


def _marked(explainer: Explainer, cf: Counterfactual, seen: Slice) -> NDArray[np.bool_]:
    """Mark what the ball and the points cover, and labels have to leave free."""
    from matplotlib.path import Path

    places, plane = seen.places(), seen.plane
    covered = np.zeros(len(places), dtype=bool)
    for outline in (seen.ball, seen.reached):
        if len(outline):
            covered |= Path(outline).contains_points(places)
    shown = _shown_prototypes(explainer, seen)
    points = np.concatenate([explainer.model.prototypes[shown], cf.original_values[None, :]])
    if cf.status.has_answer:
        points = np.concatenate([points, cf.values[None, :]])
    size = np.array([np.ptp(seen.u), np.ptp(seen.v)])
    for place in plane.places(points):
        covered |= (((places - place) / size) ** 2).sum(axis=1) < 0.025**2
    return covered.reshape(seen.excess.shape)


def _draw_cells(
    ax: Axes, explainer: Explainer, seen: Slice, colours: list[str], marked: NDArray[np.bool_]
) -> list[Any]:
    """Colour each class, write its name into it, and return keys for those too small for that."""
    from matplotlib.patches import Patch

    keys, winners = [], seen.winners
    for c, label in enumerate(explainer.model.classes.tolist()):
        mine = winners == c
        if not mine.any():
            continue
        others = np.delete(seen.scores, c, axis=0).min(axis=0)
        behind = seen.scores[c] - others
        fill = style.shade(colours[c], 0.42 if seen.wished[c] else 0.26)
        ax.contourf(seen.u, seen.v, behind, levels=[-np.inf, 0.0], colors=[fill], zorder=1)
        if not mine.all():
            ax.contour(
                seen.u, seen.v, behind, levels=[0.0], colors=["white"], linewidths=1.0, zorder=2
            )
        if not _write_label(ax, seen, mine & ~marked, repr(label)):
            keys.append(Patch(color=fill, label=style.shortened(repr(label))))
    lead = seen.lead
    if (lead <= 0).any() and (lead > 0).any():
        ax.contour(seen.u, seen.v, lead, levels=[0.0], colors=[style.INK], linewidths=1.8, zorder=3)
    return keys


def _write_label(ax: Axes, seen: Slice, free: NDArray[np.bool_], label: str) -> bool:
    """Write a label where a cell is widest; False if it does not fit anywhere."""
    text = style.shortened(label, 22)
    rows, columns = free.shape
    room = distance_transform_edt(np.pad(free, 1), sampling=(_TALL / rows, 1.0 / columns))
    row, column = np.unravel_index(int(room.argmax()), room.shape)
    if room[row, column] < _LETTER * (len(text) + 1):
        return False
    ax.text(
        seen.u[column - 1], seen.v[row - 1], text, zorder=4, ha="center", va="center",
        fontsize=10.5, color=style.INK, style="italic",
    )  # fmt: skip
    return True


def _draw_limits(ax: Axes, seen: Slice) -> list[Any]:
    """Hatch what the constraints forbid."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    keys: list[Any] = []
    if (seen.excess > 0).any():
        import matplotlib as mpl

        if (seen.excess < 0).any():
            ax.contour(
                seen.u, seen.v, seen.excess, levels=[0.0], colors=["#6b7280"], linewidths=0.9,
                zorder=2.6,
            )  # fmt: skip
        with mpl.rc_context({"hatch.color": "#6b7280", "hatch.linewidth": 0.5}):
            hatched = ax.contourf(
                seen.u, seen.v, seen.excess, levels=[0.0, np.inf], colors=[(1, 1, 1, 0.45)],
                hatches=["////"], zorder=2.5,
            )  # fmt: skip
            hatched.set_edgecolor("#6b7280")
            hatched.set_linewidth(0.0)
            words = "forbidden by the constraints"
            keys.append(Patch(facecolor="white", edgecolor="#6b7280", hatch="/////", label=words))
    crossing = [line for line in seen.lines if line.min() < 0 < line.max()]
    if len(crossing) == 1:  # of several lines only the places where they meet are allowed
        ax.contour(
            seen.u, seen.v, crossing[0], levels=[0.0], colors=[style.MUTED], linewidths=1.4,
            zorder=3,
        )  # fmt: skip
        words = "only this line is allowed"
        keys.append(Line2D([], [], color=style.MUTED, linewidth=1.4, label=words))
    return keys


def _draw_balls(ax: Axes, cf: Counterfactual, seen: Slice, *, is_limited: bool) -> list[Any]:
    """Outline what is proved to hold no counterfactual, and what is not, if any.

    `is_limited` says that constraints which the picture does not show forbid a part of it.
    """
    # Between whole numbers the shape may enter the cells wished for: nothing there is allowed.
    stepped = any(feature.grid is not None for feature in cf.features)
    from matplotlib.patches import Polygon

    keys: list[Any] = []
    if len(seen.reached):
        open_gap = Polygon(
            seen.reached, closed=True, facecolor="none", edgecolor=style.INK, linewidth=1.1,
            linestyle=(0, (4, 3)), zorder=3.4,
            label=f"cheaper than the answer, {cost_text(cf.cost)}",
        )  # fmt: skip
        ax.add_patch(open_gap)
        keys.append(open_gap)
    if len(seen.ball):
        wish = "counterfactual"
        if len(cf.target) < 3:
            wish = " or ".join(shown_repr(label, 32 // len(cf.target)) for label in cf.target)
        allowed = "allowed " if stepped or is_limited or (seen.excess > 0).any() else ""
        words = f"cheaper than {bound_text(cf.lower_bound)}: proved to hold no {allowed}{wish}"
        words += cf.kept_words
        ball = Polygon(
            seen.ball, closed=True, facecolor=(1, 1, 1, 0.62), edgecolor=style.INK, linewidth=1.5,
            zorder=3.5, joinstyle="miter", label=style.shortened(words, 100),
        )  # fmt: skip
        ax.add_patch(ball)
        keys.insert(0, ball)
    return keys


def _draw_prototypes(ax: Axes, explainer: Explainer, seen: Slice, colours: list[str]) -> list[Any]:
    from matplotlib.lines import Line2D

    model, plane = explainer.model, seen.plane
    part = {"cluster": "centre", "component": "mean"}.get(model.meaning.part, model.meaning.part)
    if part == "class":  # where the prototypes of linear scores lie means nothing
        return []
    places = plane.places(model.prototypes)
    inside = plane.contains(model.prototypes)
    shown = _shown_prototypes(explainer, seen)
    for kind in (True, False):
        for k in np.flatnonzero(shown & (inside == kind)):
            colour = colours[model.class_index[k]]
            mark = _CLASS_MARKS[model.class_index[k] % len(_CLASS_MARKS)]
            ax.plot(
                *places[k], marker=mark, markersize=6.5 if kind else 5, linestyle="none", zorder=5,
                markerfacecolor=colour if kind else "none",
                markeredgecolor=style.INK if kind else colour,
                markeredgewidth=0.8 if kind else 1.1,
            )  # fmt: skip
    keys = []
    for kind, words in ((True, part), (False, f"{part}, off the plane")):
        if (shown & (inside == kind)).any():
            face, edge = ("#c4c9d1", style.INK) if kind else ("none", style.MUTED)
            key = Line2D([], [], marker="s", linestyle="none", markersize=6, label=words)
            key.set(markerfacecolor=face, markeredgecolor=edge)
            keys.append(key)
    return keys


def _shown_prototypes(explainer: Explainer, seen: Slice) -> NDArray[np.bool_]:
    prototypes = explainer.model.prototypes
    shown = _in_view(seen, seen.plane.places(prototypes))
    inside = seen.plane.contains(prototypes)
    return shown & inside if (shown & ~inside).sum() > _MOST_OFF_PLANE else shown


def _in_view(seen: Slice, places: Floats) -> NDArray[np.bool_]:
    low = np.array([seen.u[0], seen.v[0]])
    high = np.array([seen.u[-1], seen.v[-1]])
    return np.asarray(((places >= low) & (places <= high)).all(axis=1))


def _draw_points(ax: Axes, cf: Counterfactual, seen: Slice) -> list[Any]:
    plane = seen.plane
    x = plane.places(cf.original_values[None, :])[0]
    aside = "" if plane.contains(cf.original_values[None, :])[0] else ", off the plane"
    keys: list[Any] = ax.plot(
        *x, marker="o", markersize=9, linestyle="none", zorder=7, markerfacecolor="white",
        markeredgecolor=style.INK, markeredgewidth=1.8,
        label=style.shortened(f"input{aside}: {shown_repr(cf.original_prediction, 28)}", 44),
    )  # fmt: skip
    if not cf.changes:
        return keys
    answer = plane.places(cf.values[None, :])[0]
    ax.annotate(
        "", answer, x, zorder=6,
        arrowprops={"arrowstyle": "-", "color": style.INK, "linewidth": 1.2, "shrinkA": 5},
    )  # fmt: skip
    keys += ax.plot(
        *answer, marker="o", markersize=9, linestyle="none", zorder=7,
        markerfacecolor=style.INK, markeredgecolor="white", markeredgewidth=1.2,
        label=style.shortened(
            f"counterfactual: {shown_repr(cf.prediction, 20)}, cost {cost_text(cf.cost)}", 50
        ),
    )  # fmt: skip
    return keys


def _frame(ax: Axes, cf: Counterfactual, seen: Slice) -> None:
    plane = seen.plane
    ax.set_xlim(seen.u[0], seen.u[-1])
    ax.set_ylim(seen.v[0], seen.v[-1])
    ax.locator_params(nbins=6)
    lengths = plane.lengths
    ax.set_aspect(lengths[1] / lengths[0])
    style.clear_frame(ax)
    ax.set_xlabel(style.shortened(plane.labels[0], 70), color=style.INK)
    ax.set_ylabel(style.shortened(plane.labels[1], 52), color=style.INK)
    notes = [f"Slice: {plane.words}"] if plane.words else []
    if any(feature.grid is not None for feature in cf.features):
        notes.append("allowed are whole steps only")
    style.title(ax, _headline(cf), "; ".join(notes))


def _headline(cf: Counterfactual) -> str:
    if not cf.status.has_answer or not cf.changes:
        return cf.text()
    bound = f"No counterfactual{cf.kept_words} costs less than {bound_text(cf.lower_bound)}"
    if cf.status is Status.OPTIMAL:
        return bound
    if cf.lower_bound > 0:
        return f"{bound}; this one costs {cost_text(cf.cost)}"
    return f"A counterfactual of cost {cost_text(cf.cost)}; nothing is proved about closer ones"

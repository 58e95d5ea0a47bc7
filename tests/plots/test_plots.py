"""Pictures: what is drawn is what was answered, and a ball holds what it is said to hold."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.path import Path as Outline

import counterlvq as clvq
from counterlvq.plots import plot_batch, plot_changes, plot_image, plot_plane
from counterlvq.plots.slices import costs_of, excess, slice_of
from tests.support.catalogue import PROBLEMS, Problem
from tests.support.quick import seeds


@pytest.fixture(autouse=True)
def _closed_figures():
    with mpl.rc_context({"backend": "Agg"}):
        yield
        plt.close("all")


def spread_model(classes: int, width: int, seed: int = 0, local: bool = False, labels=None):
    rng = np.random.default_rng(seed)
    count = 2 * classes
    names = labels or [f"class {c}" for c in range(classes)]
    omegas = rng.normal(size=(count, width, width)) if local else rng.normal(size=(width, width))
    return clvq.PrototypeModel(
        rng.normal(size=(count, width)) * 2, [names[k % classes] for k in range(count)], omegas
    )


COSTS = {
    "manhattan": lambda d: clvq.Manhattan(),
    "weighted": lambda d: clvq.Manhattan(np.linspace(0.1, 9.0, d)),
    "euclidean": lambda d: clvq.Euclidean(),
    "mahalanobis": lambda d: clvq.Mahalanobis(np.eye(d) + 0.4),
}


def asked(cost: str, width: int, constraints=(), classes: int = 3, seed: int = 0):
    model = spread_model(classes, width, seed)
    explainer = clvq.Explainer(model, cost=COSTS[cost](width), constraints=constraints)
    x = model.prototypes[0] + 0.1
    return explainer, explainer.explain(x, target=model.labels[1])


# --- the plane ----------------------------------------------------------------------------------


def inside_the_ball(seen, share: float = 1.0):
    """Places of the grid within the drawn outline, shrunk a little towards its middle."""
    middle = seen.ball.mean(axis=0)
    outline = Outline(middle + share * (seen.ball - middle))
    places = seen.places()
    return places[outline.contains_points(places)]


@pytest.mark.covering
@pytest.mark.parametrize("seed", seeds(3, quick=1))
@pytest.mark.parametrize("width", [2, 3, 7])
@pytest.mark.parametrize("cost", COSTS)
def test_ball_costs_the_bound_and_holds_no_counterfactual(cost, width, seed) -> None:
    limits = ["x1 <= original(x1) + 0.3", clvq.Freeze(0)] if width > 2 else [clvq.Increase(0)]
    explainer, cf = asked(cost, width, limits, seed=seed)
    assert cf.status == "optimal"
    seen = slice_of(explainer, cf)
    plane = seen.plane

    outline = plane.points(seen.ball) - cf.original
    values = [explainer.cost.value(delta) for delta in outline]
    assert np.allclose(values, cf.lower_bound, rtol=1e-9)

    points = plane.points(inside_the_ball(seen, 0.999))
    assert len(points) > 100
    assert (costs_of(explainer.cost, points - cf.original) <= cf.lower_bound).all()
    allowed = excess(explainer, cf.original, points)[0] <= 0
    wished = np.isin(explainer.model.predict(points), cf.target)
    assert not (allowed & wished).any()

    both = np.stack([cf.original, cf.x])
    assert plane.contains(both).all()
    assert np.allclose(plane.points(plane.places(both)), both)


def test_ball_of_a_flat_cost_has_no_end_and_the_picture_has() -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 0.0]], ["no", "yes"])
    explainer = clvq.Explainer(model, cost=clvq.Mahalanobis(np.diag([1.0, 0.0])))
    cf = explainer.explain([1.0, 0.0])
    seen = slice_of(explainer, cf)
    points = seen.plane.points(inside_the_ball(seen))
    assert np.ptp(seen.v) < 20
    assert np.isclose(points[:, 1].min(), seen.v[0])
    assert (points[:, 0] < 2.0 + 1e-6).all()
    plot_plane(explainer, cf).figure.canvas.draw()


@pytest.mark.parametrize("cost", ["manhattan", "euclidean"])
def test_ball_touches_the_counterfactual(cost) -> None:
    explainer, cf = asked(cost, 5)
    for features in (None, [1, 3], "metric"):
        seen = slice_of(explainer, cf, features)
        answer = seen.plane.places(cf.x[None, :])[0]
        assert seen.plane.contains(cf.x[None, :])[0]
        if len(seen.ball):
            away = np.linalg.norm((seen.ball - answer) * seen.plane.lengths, axis=1).min()
            size = np.linalg.norm((cf.x - cf.original) * seen.plane.scale)
            assert away <= 1e-6 * size


def one_of_each_kind() -> list[Problem]:
    kinds = {problem.name.split("-")[0]: problem for problem in PROBLEMS if problem.x.size > 1}
    return list(kinds.values())


@pytest.mark.covering
@pytest.mark.parametrize("problem", one_of_each_kind(), ids=lambda problem: problem.name)
@pytest.mark.parametrize("features", [None, "metric", [1, 0]])
def test_no_point_of_a_slice_refutes_the_bound(problem: Problem, features) -> None:
    explainer = problem.explainer()
    cf = explainer.explain(problem.x, target=problem.target)
    seen = slice_of(explainer, cf, features)
    points = seen.plane.points(seen.places())
    cheaper = costs_of(explainer.cost, points - cf.original) < cf.lower_bound * (1 - 1e-6)
    allowed = excess(explainer, cf.original, points)[0] <= 0
    wished = (seen.lead <= 0).ravel()
    assert not (cheaper & allowed & wished).any()
    plot_plane(explainer, cf, features).figure.canvas.draw()
    plot_changes(cf, explainer).figure.canvas.draw()


def test_grid_says_what_predict_says() -> None:
    explainer, cf = asked("manhattan", 4, classes=5)
    seen = slice_of(explainer, cf)
    points = seen.plane.points(seen.places())
    labels = explainer.model.classes[seen.winners.ravel()]
    assert np.array_equal(labels, explainer.model.predict(points))
    assert np.array_equal((seen.lead <= 0).ravel(), np.isin(labels, cf.target))
    assert np.allclose(
        costs_of(explainer.cost, points[:50]), [explainer.cost.value(p) for p in points[:50]]
    )


def test_forbidden_is_what_the_constraints_forbid() -> None:
    rule = clvq.Quadratic(np.eye(2), value=9.0)
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 2.0]], ["no", "yes"])
    explainer = clvq.Explainer(model, constraints=["x1 <= 1.5", clvq.Increase("x0"), rule])
    cf = explainer.explain([0.5, 0.5], target="yes")
    seen = slice_of(explainer, cf)
    x0, x1 = seen.plane.points(seen.places()).T
    kept = (x1 <= 1.5) & (x0 >= 0.5) & (x0**2 + x1**2 <= 9.0)
    assert np.array_equal((seen.excess <= 0).ravel(), kept)
    assert kept.any()
    assert not kept.all()


def test_plane_of_features_is_in_their_own_values() -> None:
    explainer, cf = asked("manhattan", 5)
    seen = slice_of(explainer, cf, ["x3", 1])
    points = seen.plane.points(np.array([[7.0, -2.0]]))
    assert points[0, 3] == 7.0
    assert points[0, 1] == -2.0
    assert np.array_equal(points[0, [0, 2, 4]], cf.x[[0, 2, 4]])
    ax = plot_plane(explainer, cf, ["x3", 1])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x3", "x1")


def test_units_are_on_the_axes() -> None:
    features = [clvq.Feature("income", unit="EUR"), clvq.Feature("age", unit="years")]
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 2.0]], ["no", "yes"], feature_names=features)
    explainer = clvq.Explainer(model)
    ax = plot_plane(explainer, explainer.explain([0.0, 0.0]))
    assert ax.get_xlabel() == "income [EUR]"
    texts = [text.get_text() for text in plot_changes(explainer.explain([0, 0]), explainer).texts]
    assert any("EUR" in text for text in texts)


def legend_texts(ax) -> list[str]:
    legends = [ax.get_legend()] if ax.get_legend() else ax.figure.legends
    return [text.get_text() for legend in legends for text in legend.get_texts()]


@pytest.mark.parametrize("classes", [2, 3, 5, 10])
def test_every_class_in_the_picture_is_named(classes) -> None:
    explainer, cf = asked("euclidean", 2, classes=classes)
    seen = slice_of(explainer, cf)
    ax = plot_plane(explainer, cf)
    words = [text.get_text() for text in ax.texts] + legend_texts(ax)
    for c in np.unique(seen.winners):
        assert any(repr(str(explainer.model.classes[c])) in word for word in words)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (clvq.AtMost(1), "at most"),
        (clvq.OneOf("x0", [0.0, 3.0]), "x0 as 0 or 3"),
        (clvq.MinChange("x0", 0.5), "0.5"),
        (clvq.If("x0 >= 1", "x1 >= 1"), "with x0 at 1 or more"),
        (clvq.Bounds("x0", upper=3.0), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_key_names_what_cannot_be_drawn(rule: clvq.Constraint, words: str | None) -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 2.0]], ["no", "yes"])
    explainer = clvq.Explainer(model, clvq.Euclidean(), [rule])
    figure = plot_plane(explainer, explainer.explain([1.0, 0.0], target="yes")).figure
    (legend,) = figure.legends
    told = [text.get_text() for text in legend.get_texts()]
    unseen = [text for text in told if text.startswith("also asked, not drawn: ")]
    assert len(unseen) == (words is not None)
    if words is not None:
        assert words in " ".join(unseen[0].split())
        assert any("proved to hold no allowed" in " ".join(text.split()) for text in told)


def boxes_overlap(boxes) -> bool:
    return any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[k + 1 :])


@pytest.mark.parametrize("label", ["yes", "yes, but only with somebody who vouches for it " * 3])
def test_long_keys_stay_in_the_figure(label: str) -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 2.0]], ["no", label.strip()])
    rows = np.random.default_rng(0).normal(size=(40, 2)) + [4.0, 2.0]
    likely = clvq.Plausible.fit(rows, [label.strip()] * 40, components=1)
    explainer = clvq.Explainer(model, constraints=[likely], confidence=clvq.RelativeSimilarity(0.3))
    figure = plot_plane(explainer, explainer.explain([0.0, 0.0], target=label.strip())).figure
    figure.canvas.draw()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert figure.bbox.x0 <= box.x0
    assert box.x1 <= figure.bbox.x1
    words = " ".join(text.get_text() for text in legend.get_texts())
    assert "with a relative similarity of at least 0.3" in " ".join(words.split())


@pytest.mark.parametrize("classes", [2, 10])
def test_labels_neither_overlap_nor_leave_the_figure(classes) -> None:
    explainer, cf = asked("manhattan", 6, ["x0 <= x1 + 4"], classes=classes)
    ax = plot_plane(explainer, cf)
    figure = ax.figure
    figure.canvas.draw()
    texts = [text for text in ax.texts if text.get_text()]
    texts += [text for legend in figure.legends for text in legend.get_texts()]
    texts += [ax.xaxis.label, ax.yaxis.label, ax.title, ax._left_title]
    for axis in (ax.xaxis, ax.yaxis):
        low, high = axis.get_view_interval()
        texts += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    boxes = [text.get_window_extent() for text in texts if text.get_text()]
    assert not boxes_overlap(boxes)
    width, height = figure.canvas.get_width_height()
    for box in boxes:
        assert box.x0 >= -1
        assert box.y0 >= -1
        assert box.x1 <= width + 1
        assert box.y1 <= height + 1


def test_infeasible_unknown_and_unchanged_are_said_in_words() -> None:
    model = spread_model(2, 4)
    x = model.prototypes[0]
    stuck = clvq.Explainer(model, constraints=[clvq.Freeze(*range(4))])
    late = clvq.Explainer(model, time_limit=0)
    same = clvq.Explainer(model)
    said = {
        "There is no counterfactual": (stuck, stuck.explain(x)),
        "is not proved": (late, late.explain(x)),
        "nothing needs to change": (same, same.explain(x, target=model.predict(x[None, :])[0])),
    }
    for words, (explainer, cf) in said.items():
        for features in (None, [0, 2], "metric"):
            ax = plot_plane(explainer, cf, features)
            assert words in ax.get_title(loc="left").replace("\n", " ")
        ax = plot_changes(cf)
        assert words in " ".join(text.get_text() for text in ax.texts).replace("\n", " ")
        assert len(plot_image(cf, (2, 2))) == 3


def test_open_gap_is_drawn_as_open() -> None:
    model = spread_model(2, 2, seed=4, local=True)
    explainer = clvq.Explainer(model, method="ccp")
    cf = explainer.explain(model.prototypes[0])
    assert cf.status == "feasible"
    ax = plot_plane(explainer, cf)
    assert "nothing is proved" in ax.get_title(loc="left")
    assert any("cheaper than the answer" in text for text in legend_texts(ax))
    assert not any("proved to hold" in text for text in legend_texts(ax))


def test_local_metrics_have_a_ball_too() -> None:
    model = spread_model(2, 2, seed=4, local=True)
    explainer = clvq.Explainer(model, cost=clvq.Euclidean(), method="global")
    cf = explainer.explain(model.prototypes[0])
    seen = slice_of(explainer, cf)
    points = seen.plane.points(inside_the_ball(seen, 0.999))
    assert len(points) > 100
    assert not np.isin(model.predict(points), cf.target).any()


def test_draws_where_it_is_told_to() -> None:
    explainer, cf = asked("manhattan", 2)
    _, axes = plt.subplots(1, 3)
    assert plot_plane(explainer, cf, ax=axes[0]) is axes[0]
    assert axes[0].get_legend() is not None
    assert plot_changes(cf, ax=axes[1]) is axes[1]
    assert plot_batch(explainer.explain_batch(explainer.model.prototypes), ax=axes[2]) is axes[2]
    count = len(plt.get_fignums())
    panels = plot_image(cf, (1, 2), axes=axes)
    assert list(panels) == list(axes)
    assert len(plt.get_fignums()) == count


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ([0], "expected two different features"),
        ([1, 1], "expected two different features"),
        ("x1", "Write features=\\['x1', ...\\]"),
        (["x1", "no such"], "does not exist"),
    ],
)
def test_unusable_axes_are_refused(features, words) -> None:
    explainer, cf = asked("manhattan", 3)
    with pytest.raises(clvq.InvalidInputError, match=words):
        plot_plane(explainer, cf, features)


def test_one_feature_and_foreign_answers_are_refused() -> None:
    model = clvq.PrototypeModel([[0.0], [1.0]], [0, 1])
    line = clvq.Explainer(model)
    cf = line.explain([0.2])
    with pytest.raises(clvq.InvalidInputError, match="at least two for a plane"):
        plot_plane(line, cf)
    explainer, _ = asked("manhattan", 3)
    with pytest.raises(clvq.InvalidInputError, match="expected an answer of this explainer"):
        plot_plane(explainer, cf)


def test_dollars_and_long_names_are_shown_as_they_are() -> None:
    names = ["price in $ per $", "a" * 80]
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 3.0]], ["$a", "b$" * 30], feature_names=names)
    explainer = clvq.Explainer(model, cost=clvq.Euclidean())
    cf = explainer.explain([0.5, 0.0])
    for ax in (plot_plane(explainer, cf), plot_changes(cf, explainer)):
        ax.figure.canvas.draw()
    assert r"price in \$ per \$" in plot_changes(cf).get_yticklabels()[0].get_text()


# --- changes ------------------------------------------------------------------------------------


def test_bars_are_as_long_as_the_changes_largest_first() -> None:
    _, cf = asked("euclidean", 30)
    ax = plot_changes(cf)
    lengths = np.array([bar.get_width() for bar in ax.patches])
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert len(lengths) == len(cf.changes)
    assert (np.diff(np.abs(lengths)) <= 0).all()
    by_name = {change.feature: change.difference for change in cf.shown_changes}
    assert np.allclose(lengths, [by_name[name] for name in names])


def test_bars_in_the_cost_add_up_to_it() -> None:
    explainer, cf = asked("weighted", 6)
    ax = plot_changes(cf, explainer)
    assert np.isclose(sum(abs(bar.get_width()) for bar in ax.patches), cf.shown.cost)


def test_thirty_bars_do_not_overlap_and_more_are_counted() -> None:
    _, cf = asked("euclidean", 40)
    ax = plot_changes(cf)
    assert len(ax.patches) == 30
    assert "10 smaller ones are not shown" in ax.get_xlabel().replace("\n", " ")
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in [*ax.texts, *ax.get_yticklabels()]]
    assert not boxes_overlap(boxes)
    width = ax.figure.canvas.get_width_height()[0]
    assert all(box.x0 >= 0 and box.x1 <= width for box in boxes)


def test_new_levels_are_shown_as_text() -> None:
    features = [
        clvq.Feature("home", levels=["rent", "own"]),
        clvq.Feature("member", "boolean"),
        clvq.Feature("x1", "whole"),
    ]
    cf = clvq.Counterfactual(
        values=np.array([1.0, 1.0, 3.0]),
        original_values=np.array([0.0, 0.0, 1.0]),
        status=clvq.Status.OPTIMAL,
        cost=2.5,
        lower_bound=2.5,
        gap=0.0,
        prediction="yes",
        original_prediction="no",
        target=("yes",),
        prototype=0,
        features=clvq.Features(features),
        reason="",
        bound_with_margin=2.5,
    )
    ax = plot_changes(cf)
    words = [text.get_text() for text in ax.texts]
    assert words[:2] == ["rent → own", "False → True"]
    assert [float(bar.get_width()) for bar in ax.patches] == [2.0, 2.0, 2.0]
    assert "new levels have none" in ax.get_xlabel().replace("\n", " ")


def test_levels_and_whole_numbers_are_drawn_and_reported() -> None:
    pd = pytest.importorskip("pandas")
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    from counterlvq.report import report_html

    rng = np.random.default_rng(0)
    home = np.array(["rent", "own"])[rng.integers(2, size=60)]
    table = pd.DataFrame({"home": home, "cards": rng.integers(0, 9, size=60)})
    y = np.where((home == "own") & (table["cards"] < 5), "yes", "no")
    encode = make_column_transformer((OneHotEncoder(), ["home"]), (StandardScaler(), ["cards"]))
    pipeline = make_pipeline(encode, clvq.GLVQ(random_state=0)).fit(table, y)
    explainer = clvq.Explainer(pipeline, features=table)
    rows = table[pipeline.predict(table) == "no"]
    batch = explainer.explain_batch(rows.iloc[:8], target="yes")
    changed = [cf for cf in batch if any(not change.is_number for change in cf.changes)]
    assert changed
    words = [text.get_text() for text in plot_changes(changed[0], explainer).texts]
    assert "rent → own" in words
    assert any(text.get_text() == "new level" for text in plot_batch(batch).texts)
    page = report_html(explainer, batch)
    assert "→ new level" in page
    assert "<img" not in page
    with pytest.raises(clvq.NotSupportedError, match="'home' has levels"):
        plot_plane(explainer, changed[0])


def test_tiny_change_is_seen_beside_a_large_value() -> None:
    _, cf = asked("manhattan", 2)
    close = replace(cf, original_values=np.array([1e6, 0.0]), values=np.array([1e6 + 1e-3, 0.0]))
    assert "+0.001" in plot_changes(close).texts[0].get_text()


# --- batches and images -------------------------------------------------------------------------


def test_batch_bars_are_shares_and_medians() -> None:
    model = spread_model(3, 5)
    rows = np.random.default_rng(1).normal(size=(60, 5))
    batch = clvq.Explainer(model).explain_batch(rows)
    ax = plot_batch(batch)
    used = [j for j in range(5) if (batch.delta[:, j] != 0).any()]
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert sorted(names) == sorted(f"x{j}" for j in used)
    widths = {}
    for container, sign in zip(ax.containers, (1, -1), strict=True):
        for name, bar in zip(names, container, strict=True):
            widths[name, sign] = bar.get_width()
    for j in used:
        assert np.isclose(widths[f"x{j}", 1], (batch.delta[:, j] > 0).mean())
        assert np.isclose(widths[f"x{j}", -1], -(batch.delta[:, j] < 0).mean())


def test_batch_without_answers_or_changes_says_so() -> None:
    model = spread_model(2, 3)
    stuck = clvq.Explainer(model, constraints=[clvq.Freeze(0, 1, 2)])
    ax = plot_batch(stuck.explain_batch(model.prototypes))
    assert "nothing changes" in ax.texts[0].get_text()
    mixed = clvq.Explainer(model, constraints=["x0 <= 0.2"])
    batch = mixed.explain_batch(model.prototypes, target="class 1")
    plot_batch(batch)


def test_image_panels_share_one_scale_and_the_change_is_centred() -> None:
    _, cf = asked("manhattan", 12)
    before, change, after = plot_image(cf, (3, 4))
    assert np.array_equal(before.images[0].get_array(), cf.original.reshape(3, 4))
    assert np.array_equal(after.images[0].get_array(), cf.x.reshape(3, 4))
    assert np.array_equal(change.images[0].get_array(), cf.delta.reshape(3, 4))
    assert before.images[0].get_clim() == after.images[0].get_clim()
    low, high = change.images[0].get_clim()
    assert low == -high
    with pytest.raises(clvq.InvalidInputError, match="expected \\(rows, columns\\) with 12 pixels"):
        plot_image(cf, (5, 5))
    with pytest.raises(clvq.InvalidInputError, match="expected three"):
        plot_image(cf, (3, 4), axes=[before])


# --- without matplotlib -------------------------------------------------------------------------


def test_missing_matplotlib_is_named_with_what_to_install() -> None:
    code = """
import sys
sys.modules["matplotlib"] = None
import counterlvq as clvq
from counterlvq.plots import plot_changes
cf = clvq.Explainer(clvq.PrototypeModel([[0.0], [2.0]], [0, 1])).explain([0.5])
try:
    plot_changes(cf)
except clvq.NotSupportedError as error:
    sys.exit(str(error))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == (
        "pictures need matplotlib, which is not installed; install it with pip install matplotlib."
    )


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        (
            {"confidence": clvq.RelativeSimilarity(0.5)},
            "with a relative similarity of at least 0.5",
        ),
        ({"margin": 2.0}, "that keeps the margin of 2"),
        ({}, ""),
    ],
)
def test_pictures_say_what_the_bound_is_about(settings: dict[str, object], kept: str) -> None:
    """Within the shape may lie inputs of the label, if more than the label is asked for."""
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 1.0]], ["a", "b"])
    explainer = clvq.Explainer(model, **settings)
    ax = plot_plane(explainer, explainer.explain([1.0, 1.0], target="b"))
    shape = next(text for text in _keys(ax) if text.startswith("cheaper than"))
    assert shape.endswith(f"proved to hold no 'b' {kept}".rstrip())
    assert f"No counterfactual {kept}".rstrip() in ax.get_title(loc="left")


def _keys(ax: plt.Axes) -> list[str]:
    legends = [ax.get_legend(), *ax.figure.legends]
    return [text.get_text() for legend in legends if legend for text in legend.get_texts()]

"""Distances to another label: by projection on planes, by programs, and by sampling."""

from __future__ import annotations

import pickle
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.optimize import linprog
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import counterlvq as clvq
from counterlvq.plots import plot_robustness
from counterlvq.types import Meaning, Scores

LABELS = ["a", "b", "c", "a", "b"]


def drawn(seed: int, kind: str) -> tuple[clvq.PrototypeModel, np.ndarray]:
    rng = np.random.default_rng(seed)
    omegas = {"plain": None, "diagonal": [1.0, 0.2, 3.0], "full": rng.normal(size=(2, 3))}
    local = rng.normal(size=(5, 3, 3))
    model = clvq.PrototypeModel(rng.normal(size=(5, 3)), LABELS, omegas.get(kind, local))
    return model, rng.normal(size=(6 if kind != "local" else 2, 3))


@pytest.mark.parametrize("kind", ["plain", "diagonal", "full"])
@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_distances_are_those_of_plain_programs(kind: str, norm: str) -> None:
    model, rows = drawn(3, kind)
    asked = clvq.Explainer(model, margin=1.0, constraints=["x0 <= 0"])
    found = clvq.robustness(asked, rows, norms=[norm])
    F = np.eye(3) if model.omegas is None else np.asarray(model.omegas)
    F = np.diag(F) if F.ndim == 1 else F
    Z = model.prototypes @ F.T
    for n, row in enumerate(rows):
        now, best = model.predict([row])[0], np.inf
        for i in np.flatnonzero(model.labels != now):
            rivals = np.flatnonzero(model.labels == now)
            A = 2 * (Z[rivals] - Z[i]) @ F
            b = (Z[rivals] ** 2).sum(1) - (Z[i] ** 2).sum() - A @ row
            if norm == "l1":
                told = linprog(np.ones(6), np.c_[A, -A], b)
            else:
                below = np.r_[np.c_[np.eye(3), -np.ones(3)], np.c_[-np.eye(3), -np.ones(3)]]
                above = np.c_[A, np.zeros(len(A))]
                told = linprog(
                    [0, 0, 0, 1], np.r_[above, below], np.r_[b, np.zeros(6)], bounds=(None, None)
                )
            best = min(best, told.fun if told.status == 0 else np.inf)
        assert found.distance[norm][n] == pytest.approx(best, rel=1e-6)
        assert found.certified[norm][n] == pytest.approx(best, rel=1e-6)
        assert found.certified[norm][n] <= best * (1 + 1e-9)


def test_l2_distance_of_two_prototypes_is_that_to_their_plane() -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [3.0, 4.0]], [0, 1])
    rows = np.array([[0.0, 0.0], [5.0, -2.0], [3.0, 4.0], [1.0, 7.0]])
    found = clvq.robustness(clvq.Explainer(model), rows, [0, 0, 1, 0])
    exact = np.abs(rows @ [3, 4] / 5 - 2.5)
    np.testing.assert_allclose(found.distance["l2"], exact, rtol=1e-6)
    assert found.right.tolist() == [True, True, True, False]
    assert found.share(0.0) == 0.75
    assert found.curve([0.0, 2.4, 9.0]).tolist() == [0.75, 0.5, 0.0]


@pytest.mark.parametrize("kind", ["plain", "diagonal", "full", "local"])
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_nothing_within_a_certified_radius_has_another_label(kind: str, norm: str) -> None:
    model, rows = drawn(8, kind)
    found = clvq.robustness(clvq.Explainer(model), rows, norms=[norm])
    rng = np.random.default_rng(0)
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    corners = np.array(list(product([-1.0, 1.0], repeat=3)))
    moves = np.r_[rng.normal(size=(3000, 3)), np.eye(3), -np.eye(3), corners]
    moves /= np.linalg.norm(moves, ord=order, axis=1, keepdims=True)
    quick, proved = found.hypothesis_margin[norm], found.certified[norm]
    assert (quick <= proved * (1 + 1e-9) + 1e-9).all() or kind == "local"
    assert (proved <= found.distance[norm]).all()
    for row, radius, fast in zip(rows, proved, quick, strict=True):
        for far in (radius, fast):
            assert (model.predict(row + far * (1 - 1e-9) * moves) == model.predict([row])).all()


def test_what_cannot_be_had_is_said() -> None:
    model, rows = drawn(1, "plain")
    whole = clvq.Features([clvq.Feature("x0", "whole"), "x1", "x2"])
    with pytest.raises(
        clvq.NotSupportedError, match=r"robustness is for .* others: 'x0' \(steps\)"
    ):
        clvq.robustness(clvq.Explainer(model, features=whole), rows)
    none = [*model.predict(rows[1:]), "crimson"]
    with pytest.raises(clvq.InvalidInputError, match=r"has the label 'crimson', .* one of: "):
        clvq.robustness(clvq.Explainer(model), rows, none)
    with pytest.raises(clvq.InvalidInputError, match=r"y has shape \(1,\); expected \(6,\)"):
        clvq.robustness(clvq.Explainer(model), rows, ["a"])
    found = clvq.robustness(clvq.Explainer(model), rows)
    with pytest.raises(clvq.InvalidInputError, match="norm is 'l3'; expected one of: 'l1', 'l2'"):
        found.share(0.1, "l3")
    with pytest.raises(clvq.InvalidInputError, match="norms has 'l3'; expected some of: 'l1'"):
        clvq.robustness(clvq.Explainer(model), rows, norms=["l1", "l3"])
    with pytest.raises(clvq.InvalidInputError, match="norms is 'l1'; expected a list"):
        clvq.robustness(clvq.Explainer(model), rows, norms="l1")
    with pytest.raises(clvq.InvalidInputError, match="by is 'guess'"):
        found.curve([0.1], by="guess")
    with pytest.raises(clvq.InvalidInputError, match="radii has -1; expected numbers of at least"):
        found.share(-1)
    with pytest.raises(clvq.InvalidInputError, match="expected what clvq"):
        plot_robustness(model)  # type: ignore[arg-type]
    with pytest.raises(clvq.InvalidInputError, match="norm is 'l3'; expected one of"):
        plot_robustness(found, norm="l3")


def test_scores_that_are_no_distances_have_no_hypothesis_margin() -> None:
    meaning = Meaning("class", Scores.SHIFTED)
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 0.0]], ["no", "yes"], meaning=meaning)
    found = clvq.robustness(clvq.Explainer(model), [[1.0, 0.0], [3.5, 2.0]])
    assert found.share(0.5) == 1.0
    told = "proved 1.25, no quick certificate: the scores of this model are no distances"
    assert told in str(found)
    assert "nan" not in str(found)
    with pytest.raises(clvq.NotSupportedError, match="hypothesis margins need squared distances"):
        found.curve([0.1], by="hypothesis_margin")
    assert len(plot_robustness(found).lines) == 1


@pytest.mark.parametrize("kind", ["scaler", "both", "local"])
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_quick_certificate_behind_steps_is_that_of_the_scaled_space(kind: str, norm: str) -> None:
    scales = np.array([1e-4, 1.0, 3e5])
    X, y = load_iris(return_X_y=True)
    X = (X[:, :3] + 2.0) * scales
    estimator = (clvq.LGMLVQ if kind == "local" else clvq.GMLVQ)(2, random_state=0, tol=1e-2)
    steps = make_union(StandardScaler(), MinMaxScaler()) if kind == "both" else StandardScaler()
    model = make_pipeline(steps, estimator).fit(X, y)
    rows = X[::50] if kind == "local" else X[::10]
    found = clvq.robustness(clvq.Explainer(model), rows, norms=[norm])
    quick = found.hypothesis_margin[norm]
    # In the space behind the steps, where x becomes S x + c.
    there = model[:-1].transform(rows)
    S = (model[:-1].transform(rows[:1] + np.diag(scales)) - there[:1]).T / scales
    points, own = estimator.prototypes_, estimator.prototype_labels_ == model.predict(rows)[:, None]
    local = kind == "local"
    factors = [estimator.omegas_[k] if local else estimator.omegas_ for k in range(len(points))]
    pairs = list(zip(factors, points, strict=True))
    far = np.stack([np.linalg.norm((there - w) @ F.T, axis=1) for F, w in pairs], axis=1)
    corners = np.array(list(product([-1.0, 1.0], repeat=3)))
    ends = {"l1": np.eye(3), "linf": corners}.get(norm)
    fast = np.array(
        [
            np.linalg.norm(F @ S, 2)
            if ends is None
            else np.linalg.norm(ends @ (F @ S).T, axis=1).max()
            for F in factors
        ]
    )
    nearest = np.where(own, far, np.inf).argmin(axis=1)
    lead = far - far[np.arange(len(rows)), nearest][:, None]
    expected = np.where(own, np.inf, lead / (fast + fast[nearest][:, None])).min(axis=1)
    assert (quick > 0).all()
    assert (quick <= expected * (1 + 1e-12)).all()
    if norm != "linf":  # where a bound takes the place of the largest over all corners
        np.testing.assert_allclose(quick, expected, rtol=1e-5)
    assert local or (quick <= found.certified[norm] * (1 + 1e-12)).all()
    assert "quick certificate" in str(found)


def test_curves_are_drawn() -> None:
    model, rows = drawn(1, "full")
    found = clvq.robustness(clvq.Explainer(model), rows)
    ax = plot_robustness(found, norm="l1")
    proved, quick = ax.lines
    assert (np.diff(proved.get_ydata()) <= 0).all()
    assert (quick.get_ydata() <= proved.get_ydata()).all()
    assert "median radius" in str(found)


def test_without_labels_no_row_is_called_right() -> None:
    model, rows = drawn(1, "plain")
    asked = clvq.Explainer(model)
    bare = clvq.robustness(asked, rows, norms=["l2"])
    told = clvq.robustness(asked, rows, model.predict(rows), norms=["l2"])
    assert str(bare).splitlines()[0] == "6 rows, labels as the model says"
    assert str(told).splitlines()[0] == "6 rows, 100.0% right"
    assert plot_robustness(bare).get_title(loc="left") == "6 rows, labels as the model says"
    assert plot_robustness(told).get_title(loc="left") == "6 rows, 100.0% right"
    assert bare.share(0.1) == told.share(0.1)


def test_frame_holds_a_row_for_each_input() -> None:
    model, rows = drawn(1, "plain")
    found = clvq.robustness(clvq.Explainer(model), rows, norms=["l1", "l2"])
    frame = found.to_frame()
    assert list(frame.columns) == ["right"] + [
        f"{name}_{norm}"
        for norm in ("l1", "l2")
        for name in ("distance", "certified", "hypothesis_margin")
    ]
    assert frame["certified_l2"].tolist() == found.certified["l2"].tolist()
    assert frame["hypothesis_margin_l1"].tolist() == found.hypothesis_margin["l1"].tolist()


def test_frame_is_like_the_table_that_was_given() -> None:
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], None, ["income"])
    table = pd.DataFrame({"income": [0.5, 1.0, 3.5], "id": [7, 8, 9]}, index=["k", "m", "a"])
    found = clvq.robustness(clvq.Explainer(model), table, norms=["l1"])
    assert found.to_frame().index.tolist() == ["k", "m", "a"]
    assert table.join(found.to_frame())["distance_l1"].round(5).tolist() == [1.5, 1.0, 1.5]
    again = pickle.loads(pickle.dumps(found))
    assert again.to_frame().equals(found.to_frame())
    with pytest.raises(TypeError):
        again.distance["l1"] = 0
    other = clvq.robustness(clvq.Explainer(model), pl.DataFrame({"income": [0.5]}), norms=["l1"])
    assert isinstance(other.to_frame(), pl.DataFrame)
    bare = clvq.robustness(clvq.Explainer(model), [[0.5], [1.0]], norms=["l1"]).to_frame()
    assert bare.index.tolist() == [0, 1]


def test_one_far_row_does_not_stretch_the_picture() -> None:
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"])
    rows = [[at] for at in np.linspace(0.0, 1.0, 20)]
    near = clvq.robustness(clvq.Explainer(model), rows, norms=["l2"])
    far = clvq.robustness(clvq.Explainer(model), [*rows, [-1000.0]], norms=["l2"])
    ax = plot_robustness(far)
    assert ax.get_xlim()[1] == pytest.approx(1.05 * 2.0)
    assert ax.get_xlabel() == "radius in l2; 1 row is farther"
    assert plot_robustness(near).get_xlabel() == "radius in l2"

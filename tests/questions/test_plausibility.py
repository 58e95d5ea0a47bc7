"""Plausible answers, against grids and plain cone programs written from the definition."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pandas as pd
import polars as pl
import pytest

import counterlvq as clvq
from counterlvq.certificates.unions import JoinedCertificate
from counterlvq.plots import plot_plane
from counterlvq.plots.slices import excess
from tests.support.shell import called


def drawn(seed: int, scale: np.ndarray) -> tuple[clvq.PrototypeModel, np.ndarray, np.ndarray]:
    """Three heaps of two labels, one of them leaning; a model; labels of rows."""
    rng = np.random.default_rng(seed)
    d = scale.size
    lean = np.eye(d) + 0.8 * np.eye(d, k=1)
    heaps = [rng.normal(size=(50, d)) @ lean, rng.normal(size=(50, d)) * 0.5 + 4.0]
    heaps.append(rng.normal(size=(50, d)) * 0.4 + np.where(np.arange(d) % 2, -3.0, 4.0))
    X = np.concatenate(heaps) * scale
    centers = np.array([heap.mean(axis=0) for heap in heaps]) * scale
    model = clvq.PrototypeModel(centers, ["no", "yes", "yes"], 1.0 / scale)
    return model, X, np.repeat(["no", "yes"], [50, 100])


def least_cost(
    model: clvq.PrototypeModel, likely: clvq.Plausible, x: np.ndarray, target: str, w: np.ndarray
) -> float:
    """One plain cone program for each cell and component, in units of the weights."""
    best, P, M = np.inf, model.prototypes, np.diag(np.asarray(model.omegas) ** 2)
    for i in np.flatnonzero(model.labels == target):
        for item in likely.ellipsoids:
            if item.label != target:
                continue
            u = cp.Variable(x.size)
            y = x + u / w
            rules = [cp.sum_squares(item.factor @ (y - item.center)) <= item.value]
            for k in np.flatnonzero(model.labels != target):
                normal = 2.0 * M @ (P[k] - P[i])
                rules.append(normal @ y <= P[k] @ M @ P[k] - P[i] @ M @ P[i])
            problem = cp.Problem(cp.Minimize(cp.norm1(u)), rules)
            problem.solve(solver=cp.CLARABEL)
            if problem.status == "optimal":
                best = min(best, float(problem.value))
    return best


@pytest.mark.parametrize("scale", [np.ones(3), np.array([1e-3, 1.0, 1e4])])
def test_answers_are_those_of_plain_cone_programs(scale: np.ndarray) -> None:
    model, X, y = drawn(1, scale)
    likely = clvq.Plausible.fit(X, y, share=0.8)
    explainer = clvq.Explainer(model, clvq.Manhattan(1.0 / scale), [likely])
    rows = X[[0, 60, 110]]
    for target in ("no", "yes"):
        batch = explainer.explain_batch(rows, target=target)
        for n, x in enumerate(rows):
            cf = explainer.explain(x, target=target)
            assert (cf.cost, cf.status) == (batch.cost[n], batch.status[n])
            assert cf.status == "optimal"
            assert model.predict([cf.x])[0] == target
            mine = [item for item in likely.ellipsoids if item.label == target]
            far = [((item.factor @ (cf.x - item.center)) ** 2).sum() / item.value for item in mine]
            assert min(far) <= 1 + 1e-12
            least = least_cost(model, likely, x, target, 1.0 / scale)
            assert cf.cost == pytest.approx(least, rel=1e-5, abs=1e-6)
            assert cf.lower_bound <= least * (1 + 1e-5) + 1e-6
            assert explainer.verify(cf) == cf.lower_bound or cf.cost == 0.0


def test_ellipsoids_hold_the_share_and_directions_that_do_not_vary_are_held() -> None:
    rng = np.random.default_rng(3)
    free = rng.normal(size=(80, 2)) * [5.0, 0.1]
    X = np.c_[free, np.full(80, 7.25), free.sum(axis=1)]
    y = np.repeat([0, 1], 40)
    likely = clvq.Plausible.fit(X, y, share=0.75, components=1)
    for item in likely.ellipsoids:
        mine = X[y == item.label]
        far = (((mine - item.center) @ item.factor.T) ** 2).sum(axis=1)
        assert (far <= item.value * (1 + 1e-9)).sum() == 30
        assert item.factor.shape == (2, 4)
        np.testing.assert_allclose(mine @ item.flat.T - item.level, 0.0, atol=1e-6)
    model = clvq.PrototypeModel([X[:40].mean(axis=0) - 1, X[40:].mean(axis=0) + 1], [0, 1])
    cf = clvq.Explainer(model, constraints=[likely]).explain(X[0], target=1)
    assert cf.status.has_answer
    assert cf.x[2] == 7.25
    assert cf.x[3] == pytest.approx(cf.x[0] + cf.x[1], abs=1e-6)


def test_local_metrics_whole_numbers_and_confidence_by_a_grid() -> None:
    model, X, _y = drawn(2, np.ones(2))
    likely = clvq.Plausible.fit(X, model=model)
    local = clvq.PrototypeModel(
        model.prototypes, model.labels, [[[1.0, 0.2], [0.0, 1.0]], np.eye(2), [[0.5, 0.0], [0, 2]]]
    )
    steps = np.linspace(-8.0, 8.0, 801)
    places = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
    inside = np.zeros(len(places), dtype=bool)
    for item in likely.ellipsoids:
        if item.label == "yes":
            far = (((places - item.center) @ item.factor.T) ** 2).sum(axis=1)
            inside |= far <= item.value
    whole = clvq.Features([clvq.Feature("x0", "whole"), "x1"])
    x = np.array([0.0, 0.5])
    for asked, allowed in (
        (clvq.Explainer(local, constraints=[likely]), local.predict(places) == "yes"),
        (
            clvq.Explainer(model, constraints=[likely], features=whole),
            (model.predict(places) == "yes") & (np.abs(places[:, 0] % 1.0) < 1e-9),
        ),
    ):
        cf = asked.explain(x, target="yes")
        least = np.abs(places[inside & allowed] - x).sum(axis=1).min()
        assert cf.status == "optimal"
        assert least - 0.05 <= cf.cost <= least + 1e-9
        assert asked.verify(cf) == cf.lower_bound


def test_what_cannot_be_is_said(tmp_path: Path) -> None:
    model, X, y = drawn(0, np.ones(2))
    with pytest.raises(clvq.InvalidInputError, match=r"label 'no' has 3 rows; expected at least 4"):
        clvq.Plausible.fit(X[[0, 1, 2, *range(50, 90)]], y[[0, 1, 2, *range(50, 90)]])
    with pytest.raises(clvq.InvalidInputError, match=r"label 'no' has 1 row; expected at least 4"):
        clvq.Plausible.fit(X[[0, *range(50, 90)]], y[[0, *range(50, 90)]])
    with pytest.raises(clvq.InvalidInputError, match="neither labels nor a model"):
        clvq.Plausible.fit(X)
    model = clvq.PrototypeModel(X[:2], ["no", "yes"])
    with pytest.raises(clvq.InvalidInputError, match=r"has both y and model, .* expected y for"):
        clvq.Plausible.fit(X, y, model=model)
    with pytest.raises(clvq.InvalidInputError, match=r"share is 1\.5; expected a number above 0"):
        clvq.Plausible.fit(X, y, share=1.5)
    with pytest.raises(clvq.InvalidInputError, match=r"y has shape \(2,\); expected \(150,\)"):
        clvq.Plausible.fit(X, ["no", "yes"])
    likely = clvq.Plausible.fit(X, y)
    with pytest.raises(clvq.InvalidInputError, match="has 2 Plausible; expected one"):
        clvq.Explainer(model, constraints=[likely, likely]).explain(X[0])
    explainer = clvq.Explainer(model, constraints=[likely])
    cf = explainer.explain(X[0], target="yes")
    clvq.save_certificate(cf, tmp_path / "proof.jsonl", explainer)
    assert [v.verified for v in clvq.verify_certificates(tmp_path / "proof.jsonl")] == [True]
    with pytest.raises(clvq.NotSupportedError, match="Plausible"):
        explainer.ranges(cf)
    other = clvq.Plausible.fit(X[y == "no"], y[y == "no"])
    none = clvq.Explainer(model, constraints=[other]).explain(X[0], target="yes")
    assert (none.status, none.conflict) == ("infeasible", (other,))
    far = clvq.Explainer(model, constraints=[likely, "x0 <= -50"]).explain(X[0], target="yes")
    assert far.status == "infeasible"
    assert likely in far.conflict


def test_pictures_hatch_what_is_implausible() -> None:
    model, X, y = drawn(0, np.ones(2))
    likely = clvq.Plausible.fit(X, y)
    explainer = clvq.Explainer(model, constraints=[likely])
    cf = explainer.explain(X[0], target="yes")
    over, _ = excess(
        explainer, X[0], np.array([item.center for item in likely.ellipsoids]), ["yes"]
    )
    assert (over > 0).tolist() == [item.label != "yes" for item in likely.ellipsoids]
    ax = plot_plane(explainer, cf)
    texts = [text.get_text() for text in ax.figure.legends[0].get_texts()]
    assert "forbidden by the constraints" in texts


def test_the_shell_fits_to_a_table(tmp_path: Path) -> None:
    model, X, _y = drawn(0, np.ones(2))
    clvq.save(model, tmp_path / "model.clvq")
    pd.DataFrame(X, columns=["x0", "x1"]).to_csv(tmp_path / "train.csv", index=False)
    pd.DataFrame(X[:1], columns=["x0", "x1"]).to_csv(tmp_path / "rows.csv", index=False)
    done = called(
        "explain", "model.clvq", "rows.csv", "--target", "yes", "--plausible", "train.csv",
        "-o", "out.csv", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = pd.read_csv(tmp_path / "out.csv")
    likely = clvq.Plausible.fit(X, model=model)
    wished = clvq.Explainer(model, constraints=[likely]).explain(X[0], target="yes")
    assert found["cost"][0] == pytest.approx(wished.cost, rel=1e-9)


@pytest.mark.parametrize("kind", ["numbers", "whole numbers", "local metrics"])
@pytest.mark.parametrize("turned", [1, -1])
def test_what_is_found_bounds_the_search_in_other_components(
    kind: str, turned: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(4)
    middles = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 30.0], [-60.0, 5.0]])
    X = np.concatenate([rng.normal(size=(40, 2)) + middle for middle in middles])
    y = np.repeat(["no", "yes"], [40, 120])
    metrics = [[2.0, 1.0], [1.0, 1.5], [1.0, 1.0], [1.0, 1.0]] if "local" in kind else None
    model = clvq.PrototypeModel(middles, ["no", "yes", "yes", "yes"], metrics)
    fitted = clvq.Plausible.fit(X, y)
    likely = clvq.Plausible(fitted.ellipsoids[::turned], fitted.features, fitted.share)
    features = ["whole", "whole"] if kind == "whole numbers" else ["real", "real"]
    explainer = clvq.Explainer(
        model,
        constraints=[likely],
        features=clvq.Features([clvq.Feature(f"x{j}", one) for j, one in enumerate(features)]),
    )
    asked: list[tuple[float, float]] = []
    plainly = clvq.Explainer.answered

    def noted(self: clvq.Explainer, *told: object, **more: object) -> clvq.Counterfactual:
        found = plainly(self, *told, **more)
        asked.append((more["terms"].below, found.cost))
        return found

    monkeypatch.setattr(clvq.Explainer, "answered", noted)
    cf = explainer.explain([0.0, 1.0], target="yes")
    below, costs = zip(*asked, strict=True)
    # The nearest component comes first, whatever the order, and nothing in the others is looked at.
    assert below == (np.inf, cf.cost, cf.cost)
    assert costs == (cf.cost, np.inf, np.inf)
    assert cf.status == "optimal"
    assert explainer.verify(cf) == cf.lower_bound > 0.9999 * cf.cost
    # Without the proof of any one component nothing is proved.
    for left_out in range(3):
        parts = list(cf.certificate.parts)
        parts[left_out] = parts[left_out - 1]
        assert explainer.verify(replace(cf, certificate=JoinedCertificate(tuple(parts)))) < cf.cost


def test_cells_that_are_no_numbers_are_named_by_column_and_row() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(20, 2)), columns=["pay", "age"])
    table.index = [f"p{i}" for i in range(20)]
    labels = np.repeat(["no", "yes"], 10)
    for cell, said in ((np.nan, "missing"), (None, "missing"), (-np.inf, "-inf")):
        table.loc[["p3", "p7"], "age"] = cell
        words = (
            rf"column 'age', row 3 \(index 'p3'\) is {said} \(2 such values in that column\); "
            r"expected a finite number in each row\. Fill it in"
        )
        with pytest.raises(clvq.InvalidInputError, match=words):
            clvq.Plausible.fit(table, labels)
        with pytest.raises(clvq.InvalidInputError, match=f"column 'age', row 3 is {said}"):
            clvq.Plausible.fit(pl.from_pandas(table.reset_index(drop=True)), labels)


def test_columns_are_named_where_there_are_others() -> None:
    rng = np.random.default_rng(1)
    names = [f"c{i}" for i in range(10)]
    table = pd.DataFrame(rng.normal(size=(60, 10)), columns=names)
    labels = np.repeat(["no", "yes"], 30)
    few = clvq.Plausible.fit(table[["c1", "c4"]], labels, components=1)
    assert repr(few) == ("Plausible(2 ellipsoids of 2 labels, features=['c1', 'c4'], share=0.9)")
    model = clvq.PrototypeModel(np.eye(2, 10), ["no", "yes"], None, names)
    said = clvq.Explainer(model, constraints=[few]).spoken_constraints
    assert said == ("a row like 90 % of those of its label in c1 and c4",)
    every = clvq.Plausible.fit(table, labels, components=1)
    assert "'c7', 2 more], share=0.9)" in repr(every)
    said = clvq.Explainer(model, constraints=[every]).spoken_constraints
    assert said == ("a row like 90 % of those of its label",)
    unnamed = clvq.Plausible.fit(table.to_numpy(), labels, components=1)
    assert repr(unnamed) == "Plausible(2 ellipsoids of 2 labels, share=0.9)"


def test_a_fit_to_another_table_is_refused() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.repeat(["no", "yes"], 20)
    likely = clvq.Plausible.fit(X, y)
    three = clvq.PrototypeModel([[0.0, 0.0, 0.0], [4.0, 0.0, 0.0]], ["no", "yes"])
    with pytest.raises(clvq.InvalidInputError, match=r"fitted to 2 columns .* the model has 3"):
        clvq.Explainer(three, constraints=[likely])
    points = [[0.0, 0.0], [4.0, 0.0]]
    other = clvq.PrototypeModel(points, ["rejected", "accepted"])
    with pytest.raises(clvq.InvalidInputError, match="labels 'no', 'yes', and the model says 'acc"):
        clvq.Explainer(other, constraints=[likely])
    half = clvq.PrototypeModel(points, ["no", "accepted"])
    cf = clvq.Explainer(half, constraints=[likely]).explain([0.0, 0.0], target="accepted")
    assert cf.status == "infeasible"
    assert "'accepted' wished for, 'no', 'yes' there" in cf.reason
    same = clvq.PrototypeModel(points, ["no", "yes"])
    largest = clvq.Explainer(same, clvq.Chebyshev(), [likely]).explain([0.0, 0.0], target="yes")
    assert largest.status in ("optimal", "infeasible")


@pytest.mark.parametrize("state", [-1, 2**32, 0.5, None, "1"])
def test_a_state_that_seeds_nothing_is_refused(state: Any) -> None:
    X, y = np.arange(24.0).reshape(12, 2), ["a", "b"] * 6
    with pytest.raises(
        clvq.InvalidInputError, match=r"random_state is .*; expected a whole number"
    ):
        clvq.Plausible.fit(X, y, random_state=state)
    assert clvq.Plausible.fit(X**2, y, random_state=2**32 - 1).ellipsoids

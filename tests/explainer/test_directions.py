"""Prices upwards and downwards, against oracles that know nothing of the package."""

from __future__ import annotations

import json
from pathlib import Path

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import counterlvq as clvq
from counterlvq.certificates import check_certificate
from counterlvq.problem.cost_terms import Prices

LABELS = np.array(["granted", "refused", "unsure"])


def drawn_model(
    rng: np.random.Generator, d: int, metric: str, scale: np.ndarray
) -> clvq.PrototypeModel:
    """Prototypes of three labels, each at least once."""
    labels = LABELS[np.concatenate([np.arange(3), rng.integers(0, 3, size=3)])]
    prototypes = rng.normal(size=(6, d)) * scale
    omegas = None
    if metric == "shared":
        omegas = rng.normal(size=(d, d)) / scale
    elif metric == "local":
        omegas = [rng.normal(size=(d, d)) / scale for _ in labels]
    return clvq.PrototypeModel(prototypes, labels, omegas)


def least_by_linprog(
    model: clvq.PrototypeModel, x: np.ndarray, target: str, up: np.ndarray, down: np.ndarray
) -> float:
    """Split the change into what goes up and what goes down; one program for each cell."""
    P, best = model.prototypes, np.inf
    M = np.eye(x.size) if model.omegas is None else model.omegas.T @ model.omegas
    unit = 1.0 / up
    for i in np.flatnonzero(model.labels == target):
        rivals = np.flatnonzero(model.labels != target)
        normals = 2.0 * (P[rivals] - P[i]) @ M
        rights = np.einsum("ij,jk,ik->i", P[rivals], M, P[rivals]) - P[i] @ M @ P[i] - normals @ x
        rows = np.hstack([normals * unit, -normals * unit])
        sizes = np.abs(rows).max(axis=1)
        found = linprog(
            np.concatenate([up * unit, down * unit]),
            A_ub=rows / sizes[:, None],
            b_ub=rights / sizes,
            method="highs",
        )
        if found.status == 0:
            best = min(best, float(found.fun))
    return best


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("metric", ["plain", "shared"])
def test_costs_are_least_for_every_label_and_scale(metric: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 6))
    scale = 10.0 ** rng.uniform(-4, 4, size=d) if seed % 2 else np.ones(d)
    model = drawn_model(rng, d, metric, scale)
    up, down = np.exp(1.5 * rng.normal(size=(2, d))) / scale
    explainer = clvq.Explainer(model, clvq.Manhattan(increase=up, decrease=down))
    X = rng.normal(size=(4, d)) * scale
    for target in LABELS:
        batch = explainer.explain_batch(X, target=target)
        assert not batch.second_engine.any()
        for n, x in enumerate(X):
            cf = explainer.explain(x, target=target)
            assert cf.status == "optimal"
            assert cf.cost == batch.cost[n]
            assert cf.cost == pytest.approx(explainer.cost.value(cf.delta), rel=1e-12)
            assert explainer.verify(cf) == cf.lower_bound
            if cf.original_prediction != target:
                least = least_by_linprog(model, x, target, up, down)
                assert cf.cost == pytest.approx(least, rel=1e-6)


def test_a_quadratic_constraint_takes_the_same_prices() -> None:
    rng = np.random.default_rng(3)
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 2.0]], ["no", "yes"])
    up, down, x = np.array([3.0, 0.5]), np.array([0.25, 2.0]), rng.normal(size=2)
    ball = clvq.Quadratic(np.eye(2), value=9.0, center=x)
    explainer = clvq.Explainer(model, clvq.Manhattan(increase=up, decrease=down), [ball])
    cf = explainer.explain(x, target="yes")
    delta = cp.Variable(2)
    normal = np.array([8.0, 4.0])
    problem = cp.Problem(
        cp.Minimize(up @ cp.pos(delta) + down @ cp.neg(delta)),
        [normal @ (x + delta) >= 20.0, cp.sum_squares(delta) <= 9.0],
    )
    problem.solve(solver=cp.CLARABEL)
    assert cf.status == "optimal"
    assert cf.cost == pytest.approx(float(problem.value), rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_local_metrics_against_a_grid_of_points(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = drawn_model(rng, 2, "local", np.ones(2))
    up, down = np.exp(rng.normal(size=(2, 2)))
    explainer = clvq.Explainer(model, clvq.Manhattan(increase=up, decrease=down), method="global")
    x = rng.normal(size=2)
    ticks = np.linspace(-6.0, 6.0, 601)
    deltas = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    costs = np.maximum(deltas, 0.0) @ up + np.maximum(-deltas, 0.0) @ down
    said = model.predict(x + deltas)
    for target in LABELS:
        cf = explainer.explain(x, target=target)
        assert cf.status == "optimal"
        reached = costs[said == target].min()
        assert cf.lower_bound <= reached
        # No point of the grid is farther than a step from the answer's own cell corner.
        assert cf.cost <= reached * (1.0 + 1e-4)
        assert cf.cost >= reached - 0.02 * (up.max() + down.max()) - 0.05


def test_whole_numbers_and_levels_by_trying_all_rows() -> None:
    rng = np.random.default_rng(11)
    columns = clvq.Features(
        [
            clvq.Feature("cards", kind="whole", lower=0, upper=6),
            clvq.Feature("rank", levels=["low", "middle", "high"], ordered=True),
            clvq.Feature("months", levels=[6, 12, 36]),
        ]
    )
    levels = [["low", "middle", "high"], [6, 12, 36]]
    rows = [
        (cards, rank, months) for cards in range(7) for rank in levels[0] for months in levels[1]
    ]
    table = pd.DataFrame(rows, columns=["cards", "rank", "months"])
    encoder = make_column_transformer(
        ("passthrough", ["cards"]),
        (OneHotEncoder(categories=levels, sparse_output=False), ["rank", "months"]),
    )
    y = rng.integers(0, 3, size=len(table))
    fitted = make_pipeline(encoder, clvq.GLVQ(prototypes_per_class=2, random_state=0)).fit(table, y)
    cost = clvq.Manhattan(
        {"months": 0.1}, increase={"cards": 2.0, "rank": 3.0, "months": 0.3}, decrease={"rank": 0.5}
    )
    explainer = clvq.Explainer(fitted, cost, features=columns)

    def price(before: tuple, after: tuple) -> float:
        cards = after[0] - before[0]
        ranks = levels[0].index(after[1]) - levels[0].index(before[1])
        months = after[2] - before[2]
        return (
            (2.0 if cards > 0 else 1.0) * abs(cards)
            + (3.0 if ranks > 0 else 0.5) * abs(ranks)
            + (0.3 if months > 0 else 0.1) * abs(months)
        )

    said = fitted.predict(table)
    for n in rng.choice(len(rows), size=6, replace=False):
        for target in set(said.tolist()):
            cf = explainer.explain(table.iloc[[n]], target=target)
            least = min(price(rows[n], rows[k]) for k in np.flatnonzero(said == target))
            assert cf.status == "optimal"
            assert cf.cost == pytest.approx(least, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("metric", ["shared", "local"])
def test_certificate_files_state_both_prices(metric: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    model = drawn_model(rng, 3, metric, np.ones(3))
    up, down = np.exp(rng.normal(size=(2, 3)))
    explainer = clvq.Explainer(model, clvq.Manhattan(increase=up, decrease=down))
    path = tmp_path / "proofs.jsonl"
    batch = explainer.explain_batch(rng.normal(size=(3, 3)), target="granted")
    batch.save_certificates(path)
    assert all(verdict.verified for verdict in clvq.verify_certificates(path))
    assert check_certificate.main([str(path)]) == 0
    # With the prices swapped the answers are not worth what is claimed.
    header, *lines = path.read_text().splitlines()
    told = json.loads(header)
    stated = told["question"]["cost"]
    stated["weights"], stated["decrease"] = stated["decrease"], stated["weights"]
    path.write_text("\n".join([json.dumps(told), *lines]))
    assert check_certificate.main([str(path)]) != 0


def test_equal_prices_are_the_weights() -> None:
    rng = np.random.default_rng(2)
    model = drawn_model(rng, 3, "shared", np.ones(3))
    weights = np.exp(rng.normal(size=3))
    one = clvq.Explainer(model, clvq.Manhattan(weights))
    other = clvq.Explainer(model, clvq.Manhattan(increase=weights, decrease=weights))
    X = rng.normal(size=(5, 3))
    for a, b in zip(one.explain_batch(X), other.explain_batch(X), strict=True):
        assert (a.cost, a.lower_bound) == (b.cost, b.lower_bound)


def test_names_stand_for_columns_and_fall_back_on_the_weights() -> None:
    cost = clvq.Manhattan({"a": 2.0}, increase={"b": 5.0}).for_columns(["b", "a"])
    up, down = cost.l1_ways(2)
    assert up.tolist() == [5.0, 2.0]
    assert down.tolist() == [1.0, 2.0]
    assert cost.l1_weights(2).tolist() == [1.0, 2.0]


def test_a_frozen_feature_leaves_no_way() -> None:
    model = clvq.PrototypeModel([[0.0], [2.0]], ["no", "yes"])
    explainer = clvq.Explainer(model, clvq.Manhattan(increase=[3.0]), [clvq.Decrease(0)])
    cf = explainer.explain([0.0], target="yes")
    assert cf.status == "infeasible"
    assert len(cf.conflict) == 1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"increase": [1.0, 0.0]}, "increase[1] is 0"),
        ({"decrease": {"a": -2.0}}, "decrease['a'] is -2.0"),
        ({"increase": {3: 1.0}}, "increase has the key 3"),
        ({"decrease": [1.0, np.nan]}, "decrease"),
    ],
)
def test_what_is_no_price_is_refused(given: dict, words: str) -> None:
    with pytest.raises(clvq.InvalidInputError) as refusal:
        clvq.Manhattan(**given)
    assert words in str(refusal.value)


def test_levels_without_an_order_have_no_up_and_down() -> None:
    features = clvq.Features(["age", clvq.Feature("job", levels=["clerk", "smith"])])
    cost = clvq.Manhattan(increase={"job": 2.0}).for_columns(["age", "job"])
    with pytest.raises(clvq.InvalidInputError, match="without an order"):
        Prices.of(cost, features, ["age", "job"])


def test_arrays_say_nothing_of_levels_without_an_order() -> None:
    features = clvq.Features(
        [
            "age",
            clvq.Feature("job", "boolean"),
            clvq.Feature("grade", levels=[0, 1]),
        ]
    )
    model = clvq.PrototypeModel(
        [[0, 0, 0], [4, 1, 1]], ["no", "yes"], None, ["age", "job", "grade"]
    )

    def prices(cost: clvq.Manhattan) -> tuple[list, list, list]:
        found = clvq.Explainer(model, cost, features=features).prices
        switches = (found.switches[j].tolist() for j in (1, 2))
        return found.weights[:, 0].tolist(), *switches

    up = [2.0, 5.0, 3.0]
    assert prices(clvq.Manhattan(increase=up)) == (
        [2.0, 1.0], [[1.0, 1.0], [1.0, 1.0]], [[0.0, 3.0], [1.0, 0.0]]
    )  # fmt: skip
    both = clvq.Manhattan([1.0, 7.0, 1.0], increase=up, decrease={"age": 9.0})
    assert prices(both)[:2] == ([2.0, 9.0], [[7.0, 7.0], [7.0, 7.0]])
    with pytest.raises(clvq.InvalidInputError, match="without an order"):
        prices(clvq.Manhattan(increase={"job": 5.0}))
    with pytest.raises(clvq.InvalidInputError, match="has 2 weights; expected 3"):
        prices(clvq.Manhattan(increase=[1.0, 2.0]))


def test_a_series_with_names_is_read_by_them() -> None:
    weights = pd.Series({"b": 3.0, "a": 2})
    for cost in (clvq.Manhattan(weights), clvq.Chebyshev(weights)):
        assert cost.for_columns(["a", "b", "c"]).weights.tolist() == [2.0, 3.0, 1.0]
    up = clvq.Manhattan(increase=pd.Series([4.0], ["b"])).for_columns(["a", "b"])
    assert up.l1_ways(2)[0].tolist() == [1.0, 4.0]
    model = clvq.PrototypeModel([[0.0, 0.0], [2.0, 2.0]], ["no", "yes"], None, ["a", "b"])
    noise = clvq.Noise(0.1, weights=pd.Series({"b": 2.0}))
    assert clvq.Explainer(model, confidence=noise).confidence.weights.tolist() == [1.0, 2.0]
    assert clvq.Manhattan(pd.Series([1.0, 2.0])).l1_weights(2).tolist() == [1.0, 2.0]
    for given, words in (
        (pd.Series([1.0, 2.0], ["a", "a"]), "weights names 'a' twice"),
        (pd.Series({"a": 0.0}), r"weights\['a'\] is 0.0; expected a positive weight"),
        (pd.Series({("a", 1): 1.0}), "expected names of features"),
    ):
        with pytest.raises(clvq.InvalidInputError, match=words):
            clvq.Manhattan(given)
    with pytest.raises(clvq.UnknownFeatureError, match="'z' does not exist"):
        clvq.Explainer(model, clvq.Manhattan(pd.Series({"z": 1.0})))

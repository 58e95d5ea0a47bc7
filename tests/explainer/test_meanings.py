"""What columns and constraints mean, against enumeration: kept values, least changes, levels."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import counterlvq as clvq
from counterlvq import Feature, Features, PrototypeModel
from tests.support.quick import seeds

Rule = Callable[[Any, Any], bool]
SENSES: dict[str, Rule] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}
NAMES = ("u", "v", "w")


def drawn_model(rng: np.random.Generator, *, local: bool) -> PrototypeModel:
    count = int(rng.integers(2, 5))
    prototypes = rng.integers(0, 37, (count, 3)) / 4.0
    labels = ["a", "b", *rng.choice(["a", "b", "c"], count - 2).tolist()]
    omegas: Any = None
    if local:
        omegas = [rng.integers(-2, 3, (3, 3)) + 2.0 * np.eye(3) for _ in range(count)]
    elif rng.random() < 0.5:
        omegas = rng.integers(-2, 3, (2, 3)) + np.eye(2, 3)
    return PrototypeModel(prototypes, labels, omegas, NAMES)


def drawn_constraints(rng: np.random.Generator) -> tuple[list[Any], list[Rule]]:
    """Constraints, and the same as functions of a point and the input."""
    stated: list[Any] = []
    rules: list[Rule] = []
    j, k = (int(i) for i in rng.choice(3, 2, replace=False))
    if rng.random() < 0.5:
        by = int(rng.integers(1, 5))
        text = f"if {NAMES[j]} changes then by at least {by}"
        stated.append(text if rng.random() < 0.5 else clvq.MinChange(NAMES[j], by))
        rules.append(lambda y, x: y[j] == x[j] or abs(y[j] - x[j]) >= by)
    if rng.random() < 0.4:
        values = rng.integers(0, 10, int(rng.integers(1, 5))).tolist()
        stated.append(clvq.OneOf(NAMES[k], values))
        rules.append(lambda y, x: y[k] in values)
    if rng.random() < 0.5:
        sense, then = str(rng.choice(list(SENSES))), str(rng.choice([">=", "<="]))
        at, end = (int(i) for i in rng.integers(0, 10, 2))
        when, what = f"{NAMES[j]} {sense} {at}", f"{NAMES[k]} {then} {end}"
        as_text = rng.random() < 0.5
        stated.append(f"if {when} then {what}" if as_text else clvq.If(when, what))
        rules.append(lambda y, x: not SENSES[sense](y[j], at) or SENSES[then](y[k], end))
    if rng.random() < 0.2:
        stated.append(clvq.Freeze(NAMES[k]))
        rules.append(lambda y, x: y[k] == x[k])
    return stated, rules


def drawn_steps(rng: np.random.Generator) -> list[tuple[int, str]]:
    ways = ("of value", "of change")
    return [(int(rng.integers(1, 4)), str(rng.choice(ways))) for _ in NAMES]


def described(steps: list[tuple[int, str]]) -> Features:
    return Features(
        Feature(name, step=step, steps=way, lower=0, upper=9)
        for name, (step, way) in zip(NAMES, steps, strict=True)
    )


def every_point(
    x: NDArray[np.float64], steps: list[tuple[int, str]], rules: list[Rule]
) -> NDArray[np.float64]:
    """All allowed points: what stays may stay, what changes is a multiple of its step."""
    values = [
        [v for v in range(10) if v == here or (v - (here if way == "of change" else 0)) % step == 0]
        for here, (step, way) in zip(x, steps, strict=True)
    ]
    found = [y for y in itertools.product(*values) if all(rule(y, x) for rule in rules)]
    return np.array(found, dtype=float).reshape(-1, 3)


def least_cost(
    model: PrototypeModel, cost: clvq.Cost, x: NDArray[np.float64], target: str, points: Any
) -> float:
    wins = model.predict(points) == target if len(points) else np.zeros(0, dtype=bool)
    return min((cost.value(y - x) for y in points[wins]), default=np.inf)


COSTS = (clvq.Manhattan(), clvq.Manhattan([1, 2, 0.5]), clvq.Euclidean())


@pytest.mark.parametrize("local", [False, True], ids=["shared", "local"])
@pytest.mark.parametrize("seed", seeds(25, quick=5))
def test_meanings_on_a_grid_against_enumeration(seed: int, local: bool) -> None:
    """Every class a target; infeasible ones name constraints that alone leave nothing."""
    rng = np.random.default_rng([seed, local])
    model, steps = drawn_model(rng, local=local), drawn_steps(rng)
    stated, rules = drawn_constraints(rng)
    cost, x = COSTS[seed % 3], rng.integers(0, 10, 3).astype(float)
    explainer = clvq.Explainer(
        model, cost, stated, features=described(steps), method="global", gap=1e-6
    )
    for target in model.classes.tolist():
        expected = least_cost(model, cost, x, target, every_point(x, steps, rules))
        cf = explainer.explain(x, target=target)
        if np.isinf(expected):
            assert cf.status == "infeasible"
            kept = [rule for item, rule in zip(stated, rules, strict=True) if item in cf.conflict]
            assert len(kept) == len(cf.conflict)
            left = every_point(x, steps, kept)
            assert np.isinf(least_cost(model, cost, x, target, left))
            continue
        assert cf.status == "optimal"
        assert cf.cost == pytest.approx(expected, rel=2e-6)
        assert cf.lower_bound <= expected * (1 + 1e-12)
        assert explainer.verify(cf) == cf.lower_bound
        assert any((cf.x == y).all() for y in every_point(x, steps, rules))


def test_a_batch_gives_what_single_questions_give() -> None:
    rng = np.random.default_rng(7)
    model, steps = (
        drawn_model(rng, local=False),
        [(3, "of value"), (2, "of change"), (4, "of value")],
    )
    stated = [clvq.MinChange("u", 2), "if v >= 5 then w <= 6"]
    rules: list[Rule] = [
        lambda y, x: y[0] == x[0] or abs(y[0] - x[0]) >= 2,
        lambda y, x: y[1] < 5 or y[2] <= 6,
    ]
    X = rng.integers(0, 10, (12, 3)).astype(float)
    batch = clvq.Explainer(model, constraints=stated, features=described(steps)).explain_batch(
        X, target="b"
    )
    for i, x in enumerate(X):
        expected = least_cost(model, clvq.Manhattan(), x, "b", every_point(x, steps, rules))
        assert batch.cost[i] == pytest.approx(expected, rel=2e-6)


# --- real numbers: by pieces, each a question of its own ------------------------------------------


def pieces_of(
    rng: np.random.Generator, x: NDArray[np.float64]
) -> tuple[list[Any], list[list[Any]]]:
    """Constraints, and for each the convex ones of which one has to hold."""
    stated: list[Any] = []
    pieces: list[list[Any]] = []
    if rng.random() < 0.7:
        by = float(rng.uniform(0.1, 4))
        stated.append(clvq.MinChange("u", by))
        above, below = (clvq.Linear({"u": 1}, s, x[0] + d) for s, d in ((">=", by), ("<=", -by)))
        pieces.append([[clvq.Freeze("u")], [above], [below]])
    if rng.random() < 0.4:
        values = rng.uniform(0, 9, 3).round(2).tolist()
        stated.append(clvq.OneOf("v", values))
        pieces.append([[f"v == {value}"] for value in values])
    else:
        end, other, up = round(float(rng.uniform(0, 9)), 2), 4.5, rng.random() < 0.5
        sense, against = (">=", "<=") if up else ("<=", ">=")
        stated.append(
            clvq.If(clvq.Bounds("v", **{"lower" if up else "upper": end}), f"w >= {other}")
        )
        pieces.append([[f"v {against} {end}"], [f"v {sense} {end}", f"w >= {other}"]])
    return stated, pieces


@pytest.mark.parametrize("local", [False, True], ids=["shared", "local"])
@pytest.mark.parametrize("seed", seeds(6, quick={0, 2, 4}))  # each cost once
def test_meanings_of_real_numbers_against_their_pieces(seed: int, local: bool) -> None:
    rng = np.random.default_rng([seed, local, 1])
    model, x = drawn_model(rng, local=False), rng.uniform(0, 9, 3).round(3)
    if local:  # mild enough for every piece to be proved in seconds
        scales = [np.diag(rng.integers(2, 5, 3) / 3.0) for _ in model.labels]
        model = PrototypeModel(model.prototypes, model.labels, scales, NAMES)
    stated, pieces = pieces_of(rng, x)
    features = Features(Feature(name, lower=-20, upper=20) for name in NAMES)
    cost, gap = COSTS[seed % 3], 1e-3 if local else 1e-6

    def asked(constraints: list[Any]) -> clvq.Counterfactual:
        explainer = clvq.Explainer(model, cost, constraints, features=features, gap=gap)
        cf = explainer.explain(x, target="b")
        if cf.status.has_answer:
            assert explainer.verify(cf) == cf.lower_bound
        return cf

    parts = [asked(list(itertools.chain(*choice))) for choice in itertools.product(*pieces)]
    expected = min(part.cost for part in parts)
    cf = asked(stated)
    if np.isinf(expected):
        assert cf.status == "infeasible"
        return
    assert cf.status == "optimal"
    assert cf.cost == pytest.approx(expected, rel=1.1 * gap)
    assert cf.lower_bound <= expected * (1 + 1e-12)
    for item in stated:
        if isinstance(item, clvq.MinChange):
            assert cf.x[0] == x[0] or abs(cf.x[0] - x[0]) >= item.by
        if isinstance(item, clvq.OneOf):
            assert cf.x[1] in item.levels


def test_what_stays_may_stay_and_what_is_frozen_too() -> None:
    """Savings of 9,683 in steps of 50: neither has to move, nor is there no room."""
    model = PrototypeModel([[9000, 0], [9000, 8]], ["no", "yes"], feature_names=["savings", "jobs"])
    features = Features([Feature("savings", step=50), "jobs"])
    for constraints in ([], [clvq.Freeze("savings")]):
        cf = clvq.Explainer(model, constraints=constraints, features=features).explain([9683, 1])
        assert cf.status == "optimal"
        assert [change.feature for change in cf.changes] == ["jobs"]
    moved = clvq.Explainer(model, constraints=["savings >= 9690"], features=features)
    assert moved.explain([9683, 1]).x[0] == 9700
    steps = Features([Feature("savings", step=50, steps="of change"), "jobs"])
    moved = clvq.Explainer(model, constraints=["savings >= 9690"], features=steps)
    assert moved.explain([9683, 1]).x[0] == 9733


def test_a_least_change_that_clashes_is_named() -> None:
    model = PrototypeModel([[0.0], [4.0]], ["no", "yes"], feature_names=["income"])
    clash = [clvq.MinChange("income", 3), clvq.MaxChange("income", 2.5), "income <= 100"]
    cf = clvq.Explainer(model, constraints=clash).explain([1.0], target="yes")
    assert cf.status == "infeasible"
    assert cf.conflict == tuple(clash[:2])
    assert "a change of income by at least 3, or none" in cf.text()


# --- levels, behind a pipeline --------------------------------------------------------------------

TABLE = pd.DataFrame(
    {
        "amount": [1000, 4000, 7000, 9000, 2500, 6000, 8500, 3000],
        "months": [12, 24, 36, 60, 12, 24, 60, 36],
        "rating": ["low", "mid", "high", "top", "low", "mid", "high", "top"],
        "guarantor": ["no", "yes", "no", "yes", "yes", "no", "no", "yes"],
    }
)
LABELS = np.array(["bad", "bad", "good", "good", "bad", "good", "bad", "good"])
LEVELS = {"rating": ["low", "mid", "high", "top"]}
OPTIONS = {
    "amount": [*range(1000, 9001, 500)],
    "months": [12, 24, 36, 60],
    "rating": LEVELS["rating"],
    "guarantor": ["no", "yes"],
}


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    encoder = OneHotEncoder(sparse_output=False)
    columns = ColumnTransformer(
        [
            ("numbers", StandardScaler(), ["amount"]),
            ("levels", encoder, ["months", "rating", "guarantor"]),
        ]
    )
    model = clvq.GMLVQ(2, random_state=0)
    return Pipeline([("columns", columns), ("model", model)]).fit(TABLE, LABELS)


def price(weights: dict[str, float], before: Any, after: Any) -> float:
    """Price a change by the meaning of its columns."""
    places = {level: k for k, level in enumerate(LEVELS["rating"])}
    by = {
        "amount": abs(after["amount"] - before["amount"]),
        "months": abs(after["months"] - before["months"]),
        "rating": abs(places[after["rating"]] - places[before["rating"]]),
        "guarantor": float(after["guarantor"] != before["guarantor"]),
    }
    return sum(weights[name] * by[name] for name in by)


PROMISES: list[tuple[list[Any], Rule]] = [
    ([], lambda y, x: True),
    (
        ["if amount >= 5000 then guarantor == 'yes'"],
        lambda y, x: y["amount"] < 5000 or y["guarantor"] == "yes",
    ),
    (
        [clvq.If("amount > original(amount)", clvq.OneOf("months", [36, 60]))],
        lambda y, x: y["amount"] <= x["amount"] or y["months"] in (36, 60),
    ),
    (
        [clvq.MinChange("amount", 1500), "if guarantor == 'yes' then amount <= 6000"],
        lambda y, x: (
            (y["amount"] == x["amount"] or abs(y["amount"] - x["amount"]) >= 1500)
            and (y["guarantor"] == "no" or y["amount"] <= 6000)
        ),
    ),
    (
        ["amount in [2000, 4500, 8000]", "months != 24"],
        lambda y, x: y["amount"] in (2000, 4500, 8000) and y["months"] != 24,
    ),
]


@pytest.mark.covering
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("target", ["bad", "good"])
@pytest.mark.parametrize("number", range(len(PROMISES)))
def test_levels_and_conditions_behind_a_pipeline_against_enumeration(
    pipeline: Pipeline, number: int, target: str, first: int
) -> None:
    """Steps along a list, differences of numbers, and one price for the rest."""
    constraints, rule = PROMISES[number]
    weights = {"amount": 0.001, "months": 0.05, "rating": 0.75, "guarantor": 1.25}
    features = Features(
        [
            Feature("amount", step=500, lower=1000, upper=9000),
            Feature("rating", levels=LEVELS["rating"], ordered=True),
        ]
    )
    explainer = clvq.Explainer(
        pipeline, clvq.Manhattan(list(weights.values())), constraints, features=features
    )
    every = pd.DataFrame(itertools.product(*OPTIONS.values()), columns=list(OPTIONS))
    said = pipeline.predict(every)
    rows = every.to_dict("records")
    asked = TABLE.iloc[first::2]
    batch = explainer.explain_batch(asked, target=target)
    for i, x in enumerate(asked.to_dict("records")):
        kept = [y for y, label in zip(rows, said, strict=True) if label == target and rule(y, x)]
        expected = min((price(weights, x, y) for y in kept), default=np.inf)
        assert batch.cost[i] == pytest.approx(expected, rel=2e-6, abs=1e-12)
        assert (batch.status[i] == "infeasible") == np.isinf(expected)
        single = explainer.explain(x, target=target)
        assert single.cost == pytest.approx(expected, rel=2e-6, abs=1e-12)


def test_pairs_without_a_price_are_listed_or_get_one_in_words(pipeline: Pipeline) -> None:
    prices = {"rating": {("low", "mid"): 1.0, ("mid", "high"): 2.0}}
    with pytest.raises(clvq.InvalidInputError) as raised:
        clvq.Explainer(pipeline, clvq.Manhattan(switches=prices))
    assert "('low', 'high'), ('low', 'top')" in str(raised.value)
    assert "default=" in str(raised.value)
    for weights, default in ((None, 3.0), (None, {"rating": 3.0}), ({"rating": 1.0}, 3.0)):
        cost = clvq.Manhattan(weights, switches=prices, default=default)
        table = clvq.Explainer(pipeline, cost).prices.switches[2]
        levels = clvq.Explainer(pipeline, cost).features["rating"].levels
        at = {level: k for k, level in enumerate(levels)}
        assert table[at["low"], at["top"]] == 3.0
        assert table[at["mid"], at["low"]] == 1.0


def test_pairs_that_cannot_come_up_need_no_price(pipeline: Pipeline) -> None:
    prices = {"rating": {("low", "mid"): 1.0, ("top", "mid"): 2.0, ("high", "mid"): 2.0}}
    kept = clvq.OneOf("rating", ["mid"])
    explainer = clvq.Explainer(pipeline, clvq.Manhattan(switches=prices), [kept])
    assert explainer.explain(TABLE.iloc[0], target="good").cost >= 1.0
    with pytest.raises(clvq.InvalidInputError, match="no price for"):
        explainer.without(0)
    clvq.Explainer(pipeline, clvq.Manhattan(switches=prices), [clvq.Freeze("rating")])


def test_advice_about_prices_leads_to_answers() -> None:
    model = clvq.PrototypeModel([[0.0], [40.0]], ["no", "yes"], feature_names=["months"])
    months = clvq.Features([clvq.Feature("months", levels=[12, 24, 60])])

    def refused(*said: Any, **more: Any) -> str:
        with pytest.raises(clvq.InvalidInputError) as caught:
            clvq.Explainer(model, *said, **more)
        return str(caught.value)

    def cost_of(*said: Any, **more: Any) -> float:
        return clvq.Explainer(model, *said, **more).explain({"months": 12}, target="yes").cost

    prices = {"months": {(12, 24): 1.0, (60, 24): 3.0}}
    pairs = clvq.Manhattan(switches=prices)
    told = refused(pairs, features=months)
    assert told.endswith("default=..., or keep to levels with OneOf('months', [24]).")
    kept = clvq.OneOf("months", [24])
    assert cost_of(pairs, constraints=[kept], features=months) == 1.0
    assert cost_of(clvq.Manhattan(switches=prices, default=9.0), features=months) == 1.0
    # Somebody may be at 60 months, from where no way has a price: to leave levels out is no help.
    told = refused(clvq.Manhattan(switches={"months": {(12, 24): 1.0}}), features=months)
    assert told.endswith("or give the others one price with default=...")
    # A number that is kept to some values has weights; with levels it has prices.
    few = clvq.OneOf("months", [12, 24, 60])
    every = clvq.Manhattan(switches={"months": 2.0})
    assert "list them as levels: Feature('months', levels=[...])" in refused(every, [few])
    assert cost_of(every, [few], features=months) == 2.0


def test_one_price_for_a_feature_is_per_switch_or_per_step() -> None:
    features = Features(
        [
            Feature("months", levels=[12, 24, 60]),
            Feature("rating", levels=["a", "b", "c"], ordered=True),
            Feature("flat", levels=[1, 2, 9]),
        ]
    )
    from counterlvq.problem.cost_terms import Prices

    cost = clvq.Manhattan([0.5, 2.0, 1.0], switches={"flat": 4.0})
    switches = Prices.of(cost, features, features.names).switches
    assert switches[0].tolist() == [[0, 6, 24], [6, 0, 18], [24, 18, 0]]
    assert switches[1].tolist() == [[0, 2, 4], [2, 0, 2], [4, 2, 0]]
    assert switches[2][0, 2] == switches[2][0, 1] == 4.0
    per_step = clvq.Manhattan(switches={"rating": 3.0})
    assert Prices.of(per_step, features, features.names).switches[1][0, 2] == 6.0


def test_levels_that_are_numbers_under_metrics_of_different_ranks() -> None:
    metrics = [np.eye(2), np.array([[1.0, 1.0]])]
    model = PrototypeModel([[0.0, 0.0], [4.0, 2.0]], ["no", "yes"], metrics, ["a", "b"])
    features = Features([Feature("a", levels=[0, 2, 5]), "b"])
    cf = clvq.Explainer(model, features=features).explain({"a": 0, "b": 0.5}, target="yes")
    # At a = 0: b^2 = (b - 6)^2 where b = 3.
    assert cf.status == "optimal"
    assert cf.cost == pytest.approx(2.5)

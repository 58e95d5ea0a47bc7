"""Levels in an order that may only go up, or only down, against enumeration by `predict`."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import counterlvq as clvq
from tests.support.certificate_corpus import told

RATINGS = ["poor", "fair", "good", "best"]  # not in the order of the alphabet
MONTHS = [36, 12, 60]  # not in the order of numbers
CARDS = range(5)
WEIGHTS = {"cards": 0.7, "rating": 1.1, "months": 0.02}
LABELS = ["no", "perhaps", "yes"]


@pytest.fixture(scope="module")
def model() -> Pipeline:
    rng = np.random.default_rng(4)
    n = 90
    table = pd.DataFrame(
        {
            "cards": rng.integers(0, 5, n),
            "rating": rng.choice(RATINGS, n),
            "months": rng.choice(MONTHS, n),
        }
    )
    score = table.cards + table.rating.map(RATINGS.index) - table.months / 24 + rng.normal(size=n)
    labels = np.array(LABELS)[np.digitize(score, [1.0, 3.0])]
    steps = make_column_transformer(
        (StandardScaler(), ["cards"]), (OneHotEncoder(), ["rating", "months"])
    )
    return make_pipeline(steps, NearestCentroid()).fit(table, labels)


def allowed(way: str, before: float, after: float) -> bool:
    return {"increase": after >= before, "decrease": after <= before, "any": True}[way]


def least_cost(model: Pipeline, row: pd.Series, wish: str, ways: tuple[str, str]) -> float:
    """Try all rows there are."""
    every = pd.DataFrame(list(product(CARDS, RATINGS, MONTHS)), columns=list(WEIGHTS))
    rank = RATINGS.index
    kept = [
        allowed(ways[0], rank(row.rating), rank(after.rating))
        and allowed(ways[1], row.months, after.months)
        for after in every.itertuples()
    ]
    good = every[np.array(kept) & (model.predict(every) == wish)]
    costs = (
        WEIGHTS["cards"] * abs(after.cards - row.cards)
        + WEIGHTS["rating"] * abs(rank(after.rating) - rank(row.rating))
        + WEIGHTS["months"] * abs(after.months - row.months)
        for after in good.itertuples()
    )
    return min(costs, default=np.inf)


@pytest.mark.parametrize("as_constraints", [False, True])
@pytest.mark.parametrize(
    "ways", [("increase", "any"), ("decrease", "increase"), ("any", "decrease")], ids=str
)
def test_levels_go_one_way(model: Pipeline, ways: tuple[str, str], as_constraints: bool) -> None:
    said = ("any", "any") if as_constraints else ways
    features = clvq.Features(
        [
            clvq.Feature("cards", "whole", lower=0, upper=4),
            clvq.Feature("rating", levels=RATINGS, ordered=True, change=said[0]),
            clvq.Feature("months", levels=MONTHS, change=said[1]),
        ]
    )
    kinds = {"increase": clvq.Increase, "decrease": clvq.Decrease}
    pairs = zip(("rating", "months"), ways, strict=True)
    rules = [kinds[way](name) for name, way in pairs if way in kinds] if as_constraints else []
    explainer = clvq.Explainer(model, clvq.Manhattan(WEIGHTS), rules, features=features)
    rows = pd.DataFrame(
        [(1, "fair", 12), (4, "best", 36), (0, "good", 60), (2, "poor", 12), (3, "best", 60)],
        columns=list(WEIGHTS),
    )
    found = set()
    for wish in LABELS:
        batch = explainer.explain_batch(rows, target=wish)
        for i, row in rows.iterrows():
            best = least_cost(model, row, wish, ways)
            alone = explainer.explain(row, target=wish)
            for cf in (alone, batch[i]):
                assert cf.status == ("infeasible" if np.isinf(best) else "optimal")
                assert cf.cost == pytest.approx(best)
            if alone.status == "optimal":
                assert explainer.verify(alone) == alone.lower_bound
            found.add(str(alone.status))
    assert "optimal" in found


def test_a_way_is_named_where_it_clashes() -> None:
    model = clvq.PrototypeModel([[0.0], [2.0]], ["no", "yes"], feature_names=["rating"])
    rating = clvq.Feature("rating", levels=[0, 1, 2], label="your rating", change="increase")
    prices = {(0, 1): 1.0, (0, 2): 3.0, (1, 2): 2.5}
    explainer = clvq.Explainer(
        model, clvq.Manhattan(switches={"rating": prices}), features=clvq.Features([rating])
    )
    assert explainer.explain([0], target="yes").cost == 3.0
    stuck = explainer.explain([2], target="no")
    assert stuck.conflict == (clvq.Increase("rating"),)
    assert '"no decrease of your rating" leaves no room' in stuck.text()


def test_levels_without_an_order_go_no_way() -> None:
    with pytest.raises(clvq.InvalidInputError, match="if they are ordered=True"):
        clvq.Feature("home", levels=["own", "rent"], change="increase")
    model = clvq.PrototypeModel([[0.0], [2.0]], ["no", "yes"], feature_names=["paid"])
    features = clvq.Features([clvq.Feature("paid", "boolean")])
    with pytest.raises(clvq.InvalidInputError, match="expected a number"):
        clvq.Explainer(model, constraints=[clvq.Decrease("paid")], features=features)


@pytest.mark.parametrize("way", ["increase", "decrease"])
def test_files_say_where_each_level_may_go(way: str, tmp_path: Path) -> None:
    """Numbers as levels, from each of them to each label, to the exact checker's satisfaction."""
    lists = {"increase": [[0, 1, 2], [1, 2], [2]], "decrease": [[0], [0, 1], [0, 1, 2]]}
    model = clvq.PrototypeModel(
        [[5.0, 1.0], [24.0, 3.0], [60.0, 2.0]], ["a", "b", "c"], feature_names=["months", "cards"]
    )
    months = clvq.Feature("months", levels=[5, 24, 60], change=way)
    cards = clvq.Feature("cards", lower=1, upper=2.6)
    explainer = clvq.Explainer(model, features=clvq.Features([months, cards]))
    path, statuses = tmp_path / "proof.jsonl", set()
    for x, target in product(([5, 1.0], [24, 3.0], [60, 2.5]), "abc"):
        cf = explainer.explain(x, target)
        statuses.add(str(cf.status))
        clvq.save_certificate(cf, path, explainer)
        assert all(verdict.verified for verdict in clvq.verify_certificates(path))
        assert [line.split()[0] for line in told(path)] == ["VERIFIED"]
        stated = json.loads(path.read_text().splitlines()[0])["question"]["constraints"]
        (rule,) = [each for each in stated if each["kind"] == "ways"]
        assert rule["allowed"] == lists[way]
    assert {"optimal", "infeasible"} <= statuses

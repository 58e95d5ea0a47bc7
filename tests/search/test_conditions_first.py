"""Conditions beside fine grids: decided first, or a search cuts hundredths for ever."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from sklearn.compose import make_column_transformer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import counterlvq as clvq
from counterlvq import Feature, Features
from counterlvq.certificates.boxes import BoxCertificate
from counterlvq.search import strategies

Array = NDArray[np.float64]

SCALES = np.array([1000.0, 1700.0, 1500.0, 1.0])
PLACES = np.array([[3000.0, 5000.0, 1500.0, 0.0], [5000.0, 2000.0, 4000.0, 1.0]])
PRICES = np.array([1 / 954.0, 1 / 1694.7, 1 / 1300.0])
SWITCH, LEAST = 4.0, 2500.0
UNIT = np.array([1.0, 0.01, 1.0])  # whole numbers, hundredths, real numbers
# Boxes of these trees: a few cuts for the condition, and a few for each grid.
FEW = 60


def least_of_half(x: Array, own: float) -> float:
    """Least cost where the last column is given, so that the condition holds or does not."""
    slopes = 2.0 * (PLACES[1] - PLACES[0]) / SCALES**2
    least = float(np.sum((PLACES[1] / SCALES) ** 2 - (PLACES[0] / SCALES) ** 2)) - slopes[3] * own
    rows, sides = [np.append(slopes[:3] * UNIT, np.zeros(3))], [least]
    for j in range(3):
        for sign in (1.0, -1.0):
            row = np.zeros(6)
            row[3 + j], row[j] = 1.0, -sign * UNIT[j]
            rows.append(row)
            sides.append(-sign * x[j])
    lower = [-np.inf, -np.inf, LEAST if own else -np.inf, 0.0, 0.0, 0.0]
    found = milp(
        np.append(np.zeros(3), PRICES),
        constraints=LinearConstraint(np.array(rows), np.array(sides), np.inf),
        integrality=[1, 1, 0, 0, 0, 0],
        bounds=Bounds(lower, np.inf),
        options={"mip_rel_gap": 1e-9},
    )
    return float(found.fun) + SWITCH * (own != x[3])


def boxes_of(cf: clvq.Counterfactual) -> int:
    assert isinstance(cf.certificate, BoxCertificate)
    return sum(len(tree.prices) for tree in cf.certificate.trees)


def test_a_condition_on_levels_beside_hundredths_against_two_milps() -> None:
    explainer = clvq.Explainer(
        clvq.PrototypeModel(
            PLACES,
            ["no", "yes"],
            np.diag(1 / SCALES),
            feature_names=["income", "debt", "savings", "own"],
        ),
        clvq.Manhattan([*PRICES, 1.0], switches={"own": SWITCH}),
        [f"if own == 1 then savings >= {LEAST}"],
        features=Features(
            [
                Feature("income", "whole"),
                Feature("debt", decimals=2),
                Feature("savings"),
                Feature("own", levels=[0, 1]),
            ]
        ),
    )
    rng = np.random.default_rng(0)
    for k in range(12):
        debt, savings = np.round(rng.gamma(2, 2000), 2), np.round(rng.gamma(1, 600), 2)
        x = np.array([rng.integers(2500, 4500), debt, savings, k % 3 != 0])
        cf = explainer.explain(x, "yes")
        assert cf.status == "optimal"
        assert cf.reason.startswith("compiled")
        assert cf.cost == pytest.approx(min(least_of_half(x, 0.0), least_of_half(x, 1.0)), rel=1e-6)
        assert boxes_of(cf) <= FEW


def test_the_budget_on_grids_is_kept_in_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Conditions that no whole numbers meet are left after so many boxes."""
    monkeypatch.setattr(strategies, "compiled_boxes_find", lambda *_: None)
    model = clvq.PrototypeModel([[0, 0, 0], [9, 9, 0.5]], ["no", "yes"], feature_names=[*"abc"])
    rules = ["6 * a + 10 * b + c == 15", "c >= 0", "c <= 0.5"]
    features = Features([Feature("a", "whole"), Feature("b", "whole"), Feature("c")])
    counts = []
    for work in (15.0, 45.0):
        monkeypatch.setattr(strategies, "_GRID_WORK", work)
        cf = clvq.Explainer(model, constraints=rules, features=features).explain([0, 0, 0], "yes")
        assert cf.status == "unknown"
        counts.append(boxes_of(cf))
    assert 1 < counts[0] < counts[1] <= 2 * 45


def credit(rows: int) -> tuple[pd.DataFrame, NDArray[np.str_]]:
    """Draw a table of clients, of whom half are accepted."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "income": np.round(np.exp(rng.normal(8, 0.5, rows))).astype(int),
            "debt": np.round(rng.gamma(2, 2000, rows), 2),
            "cards": rng.integers(0, 8, rows),
            "amount": rng.gamma(2, 2500, rows) // 50 * 50 + 500,
            "savings": np.round(rng.gamma(1, 3000, rows), 2),
            "housing": rng.choice(["rent", "own", "free"], rows, p=[0.5, 0.4, 0.1]),
            "job": rng.choice(["clerk", "nurse", "none"], rows),
        }
    )
    score = (np.log(table.income) - 8) * 1.5 - table.debt / 6000 + table.savings / 5000
    score = score + 0.6 * (table.housing == "own") - table.amount / 8000
    return table, np.where(score > score.median(), "accepted", "rejected")


@pytest.fixture(scope="module")
def clients() -> tuple[Pipeline, pd.DataFrame]:
    X, y = credit(600)
    kinds = [name for name in X if name not in ("housing", "job")]
    steps = make_column_transformer(
        (StandardScaler(), kinds), (OneHotEncoder(), ["housing", "job"])
    )
    model = make_pipeline(steps, clvq.GMLVQ(prototypes_per_class=2, random_state=0))
    return model.fit(X, y), X


@pytest.mark.parametrize("is_compiled", [True, False])
def test_a_condition_on_categories_against_its_two_halves(
    monkeypatch: pytest.MonkeyPatch, clients: tuple[Pipeline, pd.DataFrame], is_compiled: bool
) -> None:
    """Without the condition each half is small, and the better one is the answer."""
    if not is_compiled:
        monkeypatch.setattr(strategies, "compiled_boxes_find", lambda *_: None)
    model, X = clients
    prices = {("rent", "own"): 3.0, ("rent", "free"): 2.0, ("own", "free"): 2.0}
    price = clvq.Manhattan(clvq.mad_weights(X), switches={"housing": prices, "job": 2.0})
    features = Features.from_frame(X, decimals={"debt": 2})

    def least(row: pd.Series, *rules: str) -> clvq.Counterfactual:
        explainer = clvq.Explainer(model, price, rules, features=features)
        return explainer.explain(row, "accepted")

    poor = X[(model.predict(X) == "rejected") & (X.housing == "own") & (X.savings < 500)]
    for number in range(4):
        row = poor.iloc[number]
        whole = least(row, "if housing == 'own' then savings >= 500")
        halves = least(row, "housing == 'own'", "savings >= 500"), least(row, "housing != 'own'")
        assert whole.status == halves[0].status == halves[1].status == "optimal"
        assert whole.cost == pytest.approx(min(half.cost for half in halves), rel=1e-6)
        assert boxes_of(whole) <= FEW

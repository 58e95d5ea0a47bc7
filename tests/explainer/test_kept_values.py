"""Values off the grid, filled gaps, dates and levels that are numbers, against enumeration."""

from __future__ import annotations

import itertools
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import counterlvq as clvq
from counterlvq import Feature, Features, PrototypeModel
from tests.support.quick import seeds

NAMES = ("u", "v", "w")
FIRST = date(1970, 1, 1)


def points(x: Any, features: Features) -> np.ndarray[Any, Any]:
    """All values from 0 to 9 that each feature may have, its own included."""
    listed = []
    for here, feature in zip(x, features, strict=True):
        step = feature.grid
        start = here if feature.steps == "of change" else 0.0
        grid = start + step * np.arange(-200, 201)
        listed.append(sorted({here, *np.round(grid[(grid >= 0) & (grid <= 9)], 9)}))
    return np.array(list(itertools.product(*listed)))


@pytest.mark.parametrize("seed", seeds(10, quick={0, 1, 3}))
def test_values_between_the_steps_may_stay_and_break_nothing(seed: int) -> None:
    """Whole numbers between the steps, and more decimals than were declared."""
    rng = np.random.default_rng([seed, 3])
    model = PrototypeModel(rng.uniform(0, 9, (4, 3)), ["a", "b", "c", "b"], feature_names=NAMES)
    way = str(rng.choice(["of value", "of change"]))
    features = Features(
        [
            Feature("u", step=3, lower=0, upper=9),
            Feature("v", decimals=0, lower=0, upper=9, steps=way),
            Feature("w", step=2, lower=0, upper=9, steps=way),
        ]
    )
    X = rng.integers(0, 10, (4, 3)).astype(float)
    X[:, 1] = rng.integers(0, 36, 4) / 4.0
    by, cost = float(rng.choice([0.0, 1.5, 3.0])), clvq.Manhattan([1.0, 0.7, 1.3])
    explainer = clvq.Explainer(model, cost, [clvq.MinChange("u", by)], features=features)
    for target in ("a", "b", "c"):
        batch = explainer.explain_batch(X, target=target)
        assert not batch.breaks_rules.any()
        for i, x in enumerate(X):
            every = points(x, features)
            kept = every[(every[:, 0] == x[0]) | (np.abs(every[:, 0] - x[0]) >= by)]
            wins = kept[model.predict(kept) == target]
            expected = min((cost.value(y - x) for y in wins), default=np.inf)
            single = explainer.explain(x, target=target)
            assert single.broken == ()
            for found in (single, batch[i]):
                assert found.status == ("infeasible" if np.isinf(expected) else "optimal")
                assert found.cost == pytest.approx(expected, rel=2e-6, abs=1e-12)


# --- behind imputers ------------------------------------------------------------------------------

TABLE = pd.DataFrame(
    {
        "cards": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, np.nan, 2.0],
        "since": pd.to_datetime(["1970-01-02", "1970-01-05", "1970-01-09", "1970-01-12"] * 2),
        "months": [12, 24, 36, 60, 12, 24, 60, 36],
    }
)
LABELS = np.array(["bad", "bad", "good", "good", "bad", "good", "good", "bad"])
CARDS, DAYS, MONTHS = range(6), range(1, 12), (12, 24, 36, 60)


def in_days(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(since=(table["since"] - pd.Timestamp(FIRST)).dt.days)


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    fill = make_pipeline(SimpleImputer(strategy="mean"), StandardScaler())
    encoder = OneHotEncoder(categories=[list(MONTHS)], sparse_output=False)
    columns = ColumnTransformer(
        [("numbers", fill, ["cards", "since"]), ("levels", encoder, ["months"])]
    )
    model = clvq.GMLVQ(2, random_state=0)
    return Pipeline([("columns", columns), ("model", model)]).fit(in_days(TABLE), LABELS)


RULES: list[tuple[list[Any], Any]] = [
    ([], lambda y, x: True),
    (["months >= 24"], lambda y, x: y[2] >= 24),
    ([clvq.If("months > 24", then="cards <= 3")], lambda y, x: y[2] <= 24 or y[0] <= 3),
    (["if 2 * months < 100 then cards >= 1"], lambda y, x: y[2] >= 50 or y[0] >= 1),
    (
        ["if since > '1970-01-08' then months == 60", clvq.MinChange("since", 3)],
        lambda y, x: (y[1] <= 7 or y[2] == 60) and (y[1] == x[1] or abs(y[1] - x[1]) >= 3),
    ),
    ([clvq.Bounds("since", upper=date(1970, 1, 4)), "months < 24"], None),
]


@pytest.mark.covering
@pytest.mark.parametrize("target", ["bad", "good"])
@pytest.mark.parametrize("number", range(len(RULES)))
def test_filled_gaps_dates_and_levels_that_are_numbers(
    pipeline: Pipeline, number: int, target: str
) -> None:
    """The mean of whole numbers is none: what stands in for a gap may stay, as it is."""
    constraints, rule = RULES[number]
    features = Features(
        [
            Feature("cards", "whole", lower=0, upper=5),
            Feature("since", "date", lower=date(1970, 1, 2), upper=date(1970, 1, 12)),
            Feature("months", levels=MONTHS),
        ]
    )
    weights = [1.0, 0.4, 0.05]
    if rule is None:  # a strict comparison may stand behind "if" alone
        with pytest.raises(clvq.ConstraintSyntaxError):
            clvq.Explainer(pipeline, clvq.Manhattan(weights), constraints, features=features)
        return
    explainer = clvq.Explainer(pipeline, clvq.Manhattan(weights), constraints, features=features)
    fill = TABLE["cards"].mean()
    assert not float(fill).is_integer()
    batch = explainer.explain_batch(TABLE, target=target)
    for i, x in enumerate(in_days(TABLE).fillna({"cards": fill}).to_numpy()):
        every = [*itertools.product(sorted({x[0], *map(float, CARDS)}), DAYS, MONTHS)]
        rows = pd.DataFrame(every, columns=list(TABLE))
        wins = rows[pipeline.predict(rows) == target].to_numpy()
        kept = [y for y in wins if rule(y, x)]
        expected = min((np.abs(y - x) @ weights for y in kept), default=np.inf)
        assert batch.cost[i] == pytest.approx(expected, rel=2e-6, abs=1e-12)
        assert bool(batch.breaks_rules[i]) == (not rule(x, x))
        single = explainer.explain(TABLE.iloc[i], target=target)
        assert single.cost == pytest.approx(expected, rel=2e-6, abs=1e-12)
        assert bool(single.broken) == (not rule(x, x))
        if not single.status.has_answer:
            assert set(single.conflict) <= set(constraints)


def test_levels_that_are_numbers_and_leave_nothing_are_named(pipeline: Pipeline) -> None:
    constraints = ["months >= 36", "months <= 24"]
    explainer = clvq.Explainer(pipeline, constraints=constraints)
    cf = explainer.explain(in_days(TABLE).iloc[0], target="good")
    assert cf.status == "infeasible"
    assert cf.conflict == tuple(constraints)
    nothing = clvq.Explainer(pipeline, constraints=["months >= 100"])
    assert nothing.explain(in_days(TABLE).iloc[0], target="good").conflict == ("months >= 100",)


# --- what a function of a column does not go with ------------------------------------------------


@pytest.mark.parametrize(
    ("constraint", "words"),
    [
        (clvq.MinChange("pay", 2.0), "a least change of 'pay'"),
        (clvq.OneOf("pay", [1.0, 4.0]), "of 'pay'"),
        ("pay in [1, 4]", "of 'pay'"),
        (clvq.If("pay >= 3", then="age >= 2"), "of 'pay'"),
        (clvq.If("age >= 3", then="pay + age >= 2"), "of 'pay'"),
    ],
)
def test_columns_seen_through_a_function_refuse_the_new_meanings_in_words(
    constraint: Any, words: str
) -> None:
    table = pd.DataFrame({"pay": [1.0, 3.0, 9.0, 20.0], "age": [1.0, 2.0, 3.0, 4.0]})
    logarithm = FunctionTransformer(np.log1p, inverse_func=np.expm1, feature_names_out="one-to-one")
    columns = ColumnTransformer([("pay", logarithm, ["pay"]), ("age", "passthrough", ["age"])])
    model = make_pipeline(columns, clvq.GLVQ(random_state=0)).fit(table, ["a", "a", "b", "b"])
    with pytest.raises(clvq.InvalidInputError) as raised:
        clvq.Explainer(model, constraints=[constraint])
    assert words in str(raised.value)
    assert "the pipeline sees log1p(pay)" in str(raised.value)
    for feature in (Feature("pay", step=5), Feature("pay", decimals=1), Feature("pay", "date")):
        with pytest.raises(clvq.InvalidInputError, match="sees log1p"):
            clvq.Explainer(model, features=Features([feature, "age"]))

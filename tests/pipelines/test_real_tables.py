"""Real tables, from their columns to their columns: answers flip the pipeline's own `predict`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import counterlvq as clvq
from counterlvq.datasets import load_ames, load_ames_mixed

SHARED = clvq.GMLVQ(prototypes_per_class=2, random_state=0)
LOCAL = clvq.LGMLVQ(prototypes_per_class=1, random_state=0)
DEARER, CHEAPER = "160k or more", "below 160k"


def others(label: object, labels: np.ndarray) -> Iterator[object]:
    return (other for other in np.unique(labels).tolist() if other != label)


def assert_flips(pipeline: Pipeline, table: pd.DataFrame, batch: clvq.CounterfactualBatch) -> None:
    """Each answer has the label it claims, by the pipeline, and types and index of its input."""
    assert set(batch.status) <= {"optimal", "feasible"}
    assert_array_equal(pipeline.predict(batch.X), batch.prediction)
    assert (batch.X.dtypes == table.dtypes).all()
    assert batch.X.index.equals(table.index)
    assert (batch.lower_bound <= batch.cost * (1 + 1e-12)).all()


# --- Ames ---------------------------------------------------------------------------------------


def test_ames_in_whole_square_feet() -> None:
    houses = load_ames()
    table = pd.DataFrame(houses.X.astype(int), columns=houses.feature_names)
    pipeline = make_pipeline(StandardScaler(), SHARED).fit(table, houses.target)
    frozen = list(houses.feature_names[-5:])
    explainer = clvq.Explainer(
        pipeline,
        clvq.Manhattan(clvq.mad_weights(table)),
        [clvq.Freeze(*frozen), "second_floor <= first_floor", "living_area >= 0"],
        features=table,
    )
    cheap = table[pipeline.predict(table) == CHEAPER].iloc[:25:5]
    batch = explainer.explain_batch(cheap, DEARER)
    assert_flips(pipeline, cheap, batch)
    assert (batch.status == "optimal").all()
    assert (batch.X["second_floor"] <= batch.X["first_floor"]).all()
    pd.testing.assert_frame_equal(batch.X[frozen], cheap[frozen])
    # Whole numbers cannot be cheaper than any numbers.
    loose = clvq.Explainer(pipeline, explainer.cost, explainer.constraints)
    assert (loose.explain_batch(cheap, DEARER).cost <= batch.cost * (1 + 1e-9)).all()


def mixed_pipeline(table: pd.DataFrame, target: np.ndarray, last: BaseEstimator) -> Pipeline:
    numbers = [name for name in table if table[name].dtype.kind == "i"]
    steps = make_column_transformer(
        (StandardScaler(), numbers),
        (OneHotEncoder(drop="first"), ["drive", "central_air"]),
        (
            OrdinalEncoder(
                categories=[list(table[name].cat.categories) for name in ("kitchen", "exterior")]
            ),
            ["kitchen", "exterior"],
        ),
    )
    return make_pipeline(steps, last).fit(table, target)


RULES = [
    "year_built == original(year_built)",
    clvq.Freeze("lot_area"),
    clvq.MaxChange("living_area", by=600),
    "kitchen != 'poor'",
    "if central_air == False then fireplaces <= 2",
    clvq.Bounds("garage_cars", 0, 4),
]


@pytest.mark.covering
@pytest.mark.parametrize("last", [SHARED, LOCAL], ids=["shared", "local"])
@pytest.mark.parametrize("cost", ["l1", "l2"])
def test_ames_with_mixed_columns(last: BaseEstimator, cost: str) -> None:
    table, target = load_ames_mixed()
    pipeline = mixed_pipeline(table, target, last)
    numbers = [name for name in table if table[name].dtype.kind == "i"]
    price: clvq.Cost = clvq.Manhattan(clvq.mad_weights(table), switches={"kitchen": 2.0})
    if cost == "l2":
        price = clvq.Mahalanobis(np.diag(clvq.mad_weights(table[numbers]) ** 2))
    explainer = clvq.Explainer(pipeline, price, RULES, features=table)
    cheap = table[pipeline.predict(table) == CHEAPER].iloc[[0, 7, 19]]
    batch = explainer.explain_batch(cheap, DEARER)
    assert_flips(pipeline, cheap, batch)
    if not explainer.model.is_local:
        assert (batch.status == "optimal").all()
    kept = ["year_built", "lot_area"]
    pd.testing.assert_frame_equal(batch.X[kept], cheap[kept])
    assert ((batch.X["living_area"] - cheap["living_area"]).abs() <= 600).all()
    assert (batch.X["kitchen"] != "poor").all()
    assert (batch.X["central_air"] | (batch.X["fireplaces"] <= 2)).all()
    assert batch.X["garage_cars"].between(0, 4).all()
    for i in range(len(batch)):
        assert explainer.verify(batch[i]) == batch[i].lower_bound


def test_text_names_units_and_levels() -> None:
    table, target = load_ames_mixed()
    pipeline = mixed_pipeline(table, target, SHARED)
    features = clvq.Features.from_frame(table, units={"living_area": "square feet"})
    explainer = clvq.Explainer(
        pipeline, clvq.Manhattan(clvq.mad_weights(table)), RULES[:2], features=features
    )
    cheap = table[pipeline.predict(table) == CHEAPER].iloc[0]
    answer = explainer.explain(cheap, DEARER)
    text = answer.text()
    assert text.startswith(f"The answer would have been {DEARER} if ")
    for change in answer.changes:
        assert change.text() in text
        old, new = cheap[change.feature], answer.row[change.feature]
        assert (change.before, change.after) == (old, new)


# --- scikit-learn's tables ----------------------------------------------------------------------


def test_wine_with_decimals_for_every_other_class() -> None:
    data = load_wine(as_frame=True)
    table, target = data.data, data.target.map(dict(enumerate(data.target_names)))
    pipeline = make_pipeline(StandardScaler(), SHARED).fit(table, target)
    decimals = {"alcohol": 1, "proline": 0, "hue": 2}
    features = clvq.Features(table.columns).refined(decimals=decimals)
    explainer = clvq.Explainer(pipeline, clvq.Manhattan(clvq.mad_weights(table)), features=features)
    for i in (3, 80, 170):
        for wish in others(pipeline.predict(table.iloc[[i]])[0], target):
            answer = explainer.explain(table.iloc[i], wish)
            assert answer.status == "optimal"
            changed = answer.row.to_frame().T
            assert pipeline.predict(changed)[0] == wish
            for name, digits in decimals.items():
                kept = answer.row[name] == table.iloc[i][name]
                assert kept or answer.row[name] == round(answer.row[name], digits)


def test_diabetes_in_polars_with_sex_as_a_level() -> None:
    data = load_diabetes(as_frame=True, scaled=False)
    target = np.where(data.target > data.target.median(), "high", "low")
    sexes = data.data["sex"].map({1.0: "female", 2.0: "male"})
    pandas_table = data.data.assign(sex=sexes, age=data.data["age"].astype(int))
    numbers = [name for name in pandas_table if name != "sex"]
    steps = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(), ["sex"]))
    pipeline = make_pipeline(steps, SHARED).fit(pandas_table, target)
    table = pl.from_pandas(pandas_table)
    explainer = clvq.Explainer(
        pipeline, clvq.Manhattan(clvq.mad_weights(table)), [clvq.Freeze("sex", "age")],
        features=table,
    )  # fmt: skip
    some = table[:4]
    batch = explainer.explain_batch(some)
    assert isinstance(batch.X, pl.DataFrame)
    assert batch.X.schema == some.schema
    assert batch.X[["sex", "age"]].equals(some[["sex", "age"]])
    assert_array_equal(pipeline.predict(batch.X.to_pandas()), batch.prediction)
    assert (batch.prediction != pipeline.predict(pandas_table.iloc[:4])).all()


def test_answers_behind_pca_cost_no_more_than_lifted_ones() -> None:
    data = load_breast_cancer(as_frame=True)
    X, y = data.data, data.target
    steps = make_pipeline(StandardScaler(), PCA(5, random_state=0))
    last = clvq.GMLVQ(random_state=0).fit(steps.fit_transform(X), y)
    pipeline = Pipeline([*steps.steps, ("last", last)])
    unit = 1.0 / X.std().to_numpy()
    rows = X.iloc[::15]
    exact = clvq.Explainer(
        pipeline, clvq.Manhattan(unit), [f"`{name}` >= 0" for name in X]
    ).explain_batch(rows)
    assert_flips(pipeline, rows, exact)
    assert (exact.X >= 0).all(axis=None)
    free = clvq.Explainer(pipeline, clvq.Manhattan(unit)).explain_batch(rows)
    inner = clvq.Explainer(last).explain_batch(steps.transform(rows)).X
    lifted = steps.inverse_transform(inner) - steps.inverse_transform(steps.transform(rows))
    costs = (unit * np.abs(lifted)).sum(axis=1)
    assert (free.cost <= costs * (1 + 1e-9)).all()
    assert free.cost.mean() < 0.8 * costs.mean()

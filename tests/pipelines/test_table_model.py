"""Pipelines as numbers: the same predictions as the pipeline, without it."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from sklearn.compose import ColumnTransformer
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import counterlvq as clvq

LOANS = pd.DataFrame(
    {
        "id": np.arange(8),
        "pay": [1.0, 2.0, 1.5, 3.0, 1.0, 2.5, 0.5, 4.0],
        "job": ["clerk", "nurse"] * 4,
    }
)
GRANTED = np.array(["no", "yes", "yes", "yes", "no", "no", "no", "yes"])


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    steps = ColumnTransformer(
        [("pay", StandardScaler(), ["pay"]), ("job", OneHotEncoder(), ["job"])]
    )
    return make_pipeline(steps, NearestCentroid()).fit(LOANS, GRANTED)


def test_predictions_are_those_of_the_pipeline(pipeline: Pipeline) -> None:
    model = clvq.TableModel.from_pipeline(pipeline)
    told = pipeline.predict(LOANS)
    for table in (LOANS, LOANS[["job", "pay"]], pl.from_pandas(LOANS), LOANS.to_numpy()):
        assert_array_equal(model.predict(table), told)
    assert model.predict({"job": "nurse", "pay": 4.0}).tolist() == ["yes"]
    assert model.classes.tolist() == ["no", "yes"]
    assert model.features.names == ("pay", "job")
    assert repr(model) == (
        "TableModel(3 columns, 2 of them seen, 2 prototypes, 2 classes, shared metric)"
    )


def test_unknown_levels_and_gaps_are_named(pipeline: Pipeline) -> None:
    model = clvq.TableModel.from_pipeline(pipeline)
    with pytest.raises(clvq.InvalidInputError, match="'cleark', which is none of its levels"):
        model.predict({"job": "cleark", "pay": 4.0})
    with pytest.raises(clvq.InvalidInputError, match="lacks the column"):
        model.predict(LOANS[["pay"]])


def test_model_has_to_fit_behind_the_map(pipeline: Pipeline) -> None:
    read = clvq.TableModel.from_pipeline(pipeline)
    with pytest.raises(
        clvq.InvalidInputError, match="has 1 columns and the steps before it yield 3"
    ):
        clvq.TableModel(read.table_map, clvq.PrototypeModel([[0.0], [1.0]], [0, 1]))


def test_other_processes_can_have_it(pipeline: Pipeline) -> None:
    """Rows are shared among processes together with the explainer, and the model in it."""
    model = clvq.TableModel.from_pipeline(pipeline)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(LOANS), model.predict(LOANS))


def test_explainer_takes_it() -> None:
    X = LOANS[["pay"]].to_numpy()
    pipeline = make_pipeline(StandardScaler(), NearestCentroid()).fit(X, GRANTED)
    model = clvq.TableModel.from_pipeline(pipeline)
    told, found = (clvq.Explainer(source).explain([1.0], "yes") for source in (pipeline, model))
    assert found.cost == told.cost
    # Half way between the means of those who got it and those who did not.
    means = [X[label == GRANTED].mean() for label in ("no", "yes")]
    assert found.cost == pytest.approx(sum(means) / 2 - 1.0, rel=1e-6)

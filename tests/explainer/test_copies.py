"""Explainers, batches and answers can be pickled and copied, whatever model they are about."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import counterlvq as clvq
from tests.support import fakes

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
Y = np.where(X[:, 0] + 0.3 * X[:, 1] > 0, "yes", "no")
TABLE = pd.DataFrame(
    {
        "age": RNG.integers(18, 80, 30).astype(float),
        "income": RNG.normal(30.0, 9.0, 30),
        "job": np.resize(["clerk", "nurse", "cook"], 30),
    }
)
NUMBERED = pd.DataFrame(
    {
        "age": TABLE.age,
        "rank": np.resize([1, 2, 40], 30),
        "member": np.resize([True, False, False, True], 30),
    }
)
SAYS = np.where(TABLE.age + 20 * (TABLE.job == "cook") > 50, "yes", "no")


def _encoded() -> Pipeline:
    columns = ColumnTransformer(
        [("n", StandardScaler(), ["age", "income"]), ("c", OneHotEncoder(), ["job"])],
        sparse_threshold=0.0,
    )
    return Pipeline([("c", columns), ("m", clvq.GMLVQ(random_state=0))]).fit(TABLE, SAYS)


def _numbered() -> Pipeline:
    """As `_encoded`, with levels that are numbers and truth values."""
    columns = ColumnTransformer(
        [("n", StandardScaler(), ["age"]), ("c", OneHotEncoder(), ["rank", "member"])],
        sparse_threshold=0.0,
    )
    return Pipeline([("c", columns), ("m", clvq.GMLVQ(random_state=0))]).fit(NUMBERED, SAYS)


def _own_class() -> Any:
    class Mine(NearestCentroid):  # type: ignore[misc, no-any-unimported]
        pass

    Mine.__qualname__ = "Mine"
    globals()["Mine"] = Mine
    return Mine().fit(X, Y)


def _stored(model: Any, folder: Path) -> Any:
    clvq.save(model, folder / "model.clvq")
    return clvq.load(folder / "model.clvq")


PLAIN = clvq.PrototypeModel(X[:4], [0, 0, 1, 1])
LOCAL = clvq.PrototypeModel(X[:4], [0, 0, 1, 1], omegas=RNG.normal(size=(4, 3, 3)))
MODELS: dict[str, tuple[Callable[[Path], Any], Any]] = {
    "prototypes": (lambda _: PLAIN, X),
    "local prototypes": (lambda _: LOCAL, X),
    "GLVQ": (lambda _: clvq.GLVQ(random_state=0).fit(X, Y), X),
    "GMLVQ": (lambda _: clvq.GMLVQ(random_state=0).fit(X, Y), X),
    "LGMLVQ": (lambda _: clvq.LGMLVQ(random_state=0).fit(X, Y), X),
    "RSLVQ": (lambda _: clvq.RSLVQ(random_state=0).fit(X, Y), X),
    "NearestCentroid": (lambda _: NearestCentroid().fit(X, Y), X),
    "KNeighborsClassifier": (lambda _: KNeighborsClassifier(1).fit(X, Y), X),
    "a class of the user's": (lambda _: _own_class(), X),
    "scaler and PCA": (
        lambda _: make_pipeline(StandardScaler(), PCA(2), clvq.GMLVQ(random_state=0)).fit(X, Y), X,
    ),
    "pipeline around a foreign one": (
        lambda _: make_pipeline(StandardScaler(), NearestCentroid()).fit(X, Y), X,
    ),
    "levels": (lambda _: _encoded(), TABLE),
    "levels that are numbers": (lambda _: _numbered(), NUMBERED),
    "loaded": (lambda folder: _stored(LOCAL, folder), X),
    "loaded pipeline": (lambda folder: _stored(_encoded(), folder), TABLE),
    "loaded numbers": (lambda folder: _stored(_numbered(), folder), NUMBERED),
}  # fmt: skip
WAYS: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "deepcopy": copy.deepcopy,
}
each_way = pytest.mark.parametrize("way", WAYS)


def _told(cf: clvq.Counterfactual) -> tuple[Any, ...]:
    return cf.values.tobytes(), cf.cost, cf.lower_bound, str(cf.status), cf.prediction, cf.text()


@pytest.mark.covering
@each_way
@pytest.mark.parametrize("kind", MODELS)
def test_copy_answers_like_the_original(kind: str, way: str, tmp_path: Path) -> None:
    make, rows = MODELS[kind]
    explainer = clvq.Explainer(make(tmp_path), method="ccp", constraints=[clvq.Freeze(1)])
    row = rows.iloc[0] if hasattr(rows, "iloc") else rows[0]
    fresh = WAYS[way](explainer)  # before anything was prepared
    answer = explainer.explain(row)
    used = WAYS[way](explainer)
    batch = explainer.explain_batch(rows[:2])
    again = WAYS[way](batch)
    for other in (fresh, used):
        assert _told(other.explain(row)) == _told(answer)
        assert other.verify(answer) == answer.lower_bound
    assert _told(WAYS[way](answer)) == _told(answer)
    assert again.cost.tolist() == batch.cost.tolist()
    assert _told(again[1]) == _told(batch[1])
    assert [_told(cf) for cf in again[:1]] == [_told(cf) for cf in batch[:1]]
    assert str(again.summary()) == str(batch.summary())


TABLES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "polars": pl.from_pandas,
    "Arrow": lambda table: pa.Table.from_pandas(table, preserve_index=False),
    "records": lambda table: table.to_dict("records"),
    "columns": lambda table: {name: table[name].tolist() for name in table},
}


@pytest.mark.covering
@each_way
@pytest.mark.parametrize("kind", TABLES)
def test_batch_of_any_table_can_be_copied(kind: str, way: str) -> None:
    batch = clvq.Explainer(_encoded()).explain_batch(TABLES[kind](TABLE.head(2)))
    again = WAYS[way](batch)
    assert type(again.X) is type(batch.X)
    assert again.values.tobytes() == batch.values.tobytes()
    assert _told(again[0]) == _told(batch[0])


CONSTRAINTS = [
    clvq.Bounds(0, lower=-9.0), clvq.Increase(1), clvq.Decrease(2), clvq.MaxChange(0, 5.0),
    clvq.Linear([1.0, 0.0, 1.0], "<=", 9.0), clvq.Quadratic(np.eye(3), value=90.0),
    "x0 <= original(x1) + 9",
]  # fmt: skip
COSTS = [
    clvq.Manhattan([1.0, 2.0, 3.0]), clvq.Euclidean(), clvq.Mahalanobis(np.eye(3) + 0.5),
    clvq.Mahalanobis.from_factor(np.eye(3)),
]  # fmt: skip


@each_way
@pytest.mark.parametrize("cost", COSTS, ids=lambda cost: type(cost).__name__)
def test_every_cost_and_constraint_can_be_copied(cost: clvq.Cost, way: str) -> None:
    explainer = clvq.Explainer(PLAIN, cost, CONSTRAINTS)
    answer = explainer.explain(X[5])
    again = WAYS[way](explainer)
    assert repr(again) == repr(explainer)
    assert _told(again.explain(X[5])) == _told(answer)


@pytest.mark.parametrize("name", fakes.files())
def test_explainer_of_a_foreign_model_can_be_copied(name: str) -> None:
    """Their classes are made up, so that they are sent by value, as to a worker process."""
    model = fakes.fitted(name)
    read = clvq.as_prototype_model(model)
    model.predict = read.predict
    explainer = clvq.Explainer(model, method="ccp")
    row = read.prototypes[0]
    sent = pickle.loads(cloudpickle.dumps(explainer))
    for other in (sent, copy.deepcopy(explainer)):
        assert _told(other.explain(row)) == _told(explainer.explain(row))

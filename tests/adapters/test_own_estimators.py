"""The estimators of this package, by the attributes that they promise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

import counterlvq as clvq
from counterlvq import lvq
from counterlvq.adapters import as_prototype_model
from tests.support.fakes import fake

NAMES = ["GLVQ", "GMLVQ", "LGMLVQ", "RSLVQ", "MRSLVQ", "LMRSLVQ"]
PROTOTYPES = np.array([[0.0, 0.0], [2.0, 1.0], [-1.0, 3.0]])
LABELS = np.array(["b", "a", "b"])
LOCAL = [np.array([[1.0, 0.0]]), np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])]


def model(name: str, omegas: Any) -> Any:
    return fake(
        "counterlvq.lvq.some_file",
        name,
        prototypes_=PROTOTYPES,
        prototype_labels_=LABELS,
        omegas_=omegas,
        feature_names_in_=np.array(["age", "income"], dtype=object),
    )


@pytest.mark.parametrize("omegas", [None, LOCAL[2], LOCAL], ids=["none", "shared", "local"])
@pytest.mark.parametrize("name", NAMES)
def test_attributes_are_taken_over(name: str, omegas: Any) -> None:
    read = as_prototype_model(model(name, omegas))
    same = clvq.PrototypeModel(PROTOTYPES, LABELS, omegas)
    rows = np.random.default_rng(0).normal(size=(50, 2))
    assert np.array_equal(read.distances(rows), same.distances(rows))
    assert np.array_equal(read.predict(rows), same.predict(rows))
    assert read.features.names == ("age", "income")


@pytest.mark.parametrize("name", NAMES)
def test_unfitted_estimators_are_to_be_fitted_first(name: str) -> None:
    with pytest.raises(clvq.InvalidInputError, match=f"this {name} has no `prototypes_`, so it is"):
        as_prototype_model(fake("counterlvq.lvq", name))


@pytest.mark.parametrize("name", NAMES)
def test_fitted_estimators_predict_as_the_model_read_from_them(name: str) -> None:
    X, numbers = load_iris(return_X_y=True)
    y = np.array(["setosa", "versicolor", "virginica"])[numbers]
    estimator = getattr(lvq, name)(random_state=0).fit(X, y)
    rows = np.random.default_rng(0).uniform(X.min(axis=0), X.max(axis=0), size=(500, 4))
    read = as_prototype_model(estimator, probe=rows)
    assert np.array_equal(read.predict(rows), estimator.predict(rows))
    assert read.is_local == name.startswith("L")


@pytest.mark.parametrize("name", NAMES)
def test_they_predict_alike_on_every_kind_of_input(name: str) -> None:
    X, y = load_iris(return_X_y=True)
    estimator = getattr(lvq, name)(2, random_state=0).fit(X, y)
    read = as_prototype_model(estimator)
    rng = np.random.default_rng(1)
    points = estimator.prototypes_
    inputs = {
        "single precision": X.astype(np.float32),
        "whole numbers": rng.integers(-10, 10, size=(200, 4)),
        "lists": X.tolist(),
        "column by column": np.asfortranarray(X),
        "prototypes": points,
        "halfway": (points[:, None] + points).reshape(-1, 4) / 2,
        "huge": 1e150 * rng.normal(size=(100, 4)),
        "tiny": 1e-300 * rng.normal(size=(100, 4)),
        "one row": X[:1],
    }
    for kind, rows in inputs.items():
        ours, theirs = read.predict(rows), estimator.predict(rows)
        assert ours.dtype == theirs.dtype, kind
        assert np.array_equal(ours, theirs), kind

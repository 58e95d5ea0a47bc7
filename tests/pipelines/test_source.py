"""Pipelines and frames: everything in the columns and units of the user's table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import counterlvq as clvq


@pytest.fixture(scope="module")
def cancer() -> tuple[pd.DataFrame, np.ndarray]:
    data = load_breast_cancer(as_frame=True)
    return data.data.iloc[:, :8], np.array(["malignant", "benign"])[data.target]


def fitted(cancer: tuple[pd.DataFrame, np.ndarray], model: object) -> Pipeline:
    return make_pipeline(StandardScaler(), PCA(4), model).fit(*cancer)


def closest_by_hand(pipeline: Pipeline, x: pd.Series, label: str, weights: np.ndarray) -> float:
    """Least weighted change that brings x next to the centroid of a label, straight from the
    scaler, the components and the centroids, by linear programs."""
    scaler, pca, centroids = (step for _, step in pipeline.steps)
    B = pca.components_ / scaler.scale_
    z = pipeline[:-1].transform(x.to_frame().T)[0]
    target = centroids.centroids_[list(centroids.classes_).index(label)]
    rows, rights = [], []
    for name, other in zip(centroids.classes_, centroids.centroids_, strict=True):
        if name != label:
            # |z + B delta - target|^2 <= |z + B delta - other|^2
            rows.append(2.0 * (other - target) @ B)
            rights.append(((z - other) ** 2).sum() - ((z - target) ** 2).sum())
    A = np.array(rows)
    found = linprog(np.r_[weights, weights], np.hstack([A, -A]), rights, bounds=(0, None))
    return float(found.fun)


def test_cost_is_paid_in_the_users_columns(cancer) -> None:
    X, _ = cancer
    pipeline, weights = fitted(cancer, NearestCentroid()), clvq.mad_weights(X)
    explainer = clvq.Explainer(pipeline, clvq.Manhattan(weights))
    for i in range(0, 60, 4):
        row = X.iloc[i]
        now = pipeline.predict(row.to_frame().T)[0]
        wish = "benign" if now == "malignant" else "malignant"
        answer = explainer.explain(row, wish)
        assert answer.status == "optimal"
        assert_allclose(answer.cost, closest_by_hand(pipeline, row, wish, weights), rtol=1e-6)
        changed = pd.DataFrame([answer.x], columns=X.columns)
        assert pipeline.predict(changed)[0] == wish == answer.prediction


@pytest.mark.parametrize("model", [clvq.GMLVQ(random_state=0), clvq.LGMLVQ(random_state=0)])
def test_pipelines_with_learned_metrics(cancer, model) -> None:
    X, _ = cancer
    pipeline = fitted(cancer, model)
    explainer = clvq.Explainer(
        pipeline, clvq.Manhattan(clvq.mad_weights(X)), [clvq.Freeze("mean radius")]
    )
    batch = explainer.explain_batch(X.iloc[:6])
    assert (batch.status == "optimal").all()
    assert_array_equal(batch.X["mean radius"], X.iloc[:6, 0])
    assert_array_equal(pipeline.predict(batch.X), batch.prediction)
    assert (batch.prediction != pipeline.predict(X.iloc[:6])).all()


def test_columns_are_found_by_name(cancer) -> None:
    X, _ = cancer
    explainer = clvq.Explainer(fitted(cancer, NearestCentroid()))
    told = explainer.explain_batch(X.iloc[:4])
    for table in (
        X.iloc[:4, ::-1],
        X.iloc[:4].assign(note="of no interest"),
        pl.from_pandas(X.iloc[:4, ::-1]),
        X.iloc[:4].to_numpy(),
    ):
        batch = explainer.explain_batch(table)
        assert_array_equal(batch.values, told.values)
        assert type(batch.X) is type(table)
        assert list(getattr(batch.X, "columns", X.columns)) == list(
            getattr(table, "columns", X.columns)
        )
    row = X.iloc[2]
    for one in (row, row[::-1], row.to_dict(), row.to_numpy(), X.iloc[[2], ::-1]):
        assert_array_equal(explainer.explain(one).x, told.values[2])


def test_frames_for_models_without_a_pipeline() -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 0.0]], ["no", "yes"], feature_names=["a", "b"])
    frame = pd.DataFrame({"b": [5.0], "a": [1.0]})
    batch = clvq.Explainer(model).explain_batch(frame)
    assert_array_equal(batch.original_values, [[1.0, 5.0]])
    pd.testing.assert_frame_equal(batch.original, frame)


def test_columns_that_the_model_never_sees_cannot_matter(cancer) -> None:
    X, y = cancer
    kept = ["mean texture", "mean area"]
    pipeline = make_pipeline(
        ColumnTransformer([("kept", StandardScaler(), kept)]), NearestCentroid()
    ).fit(X, y)
    explainer = clvq.Explainer(pipeline, clvq.Manhattan(clvq.mad_weights(X[kept])))
    answer = explainer.explain(X.iloc[0])
    assert answer.feature_names == tuple(kept)
    assert_array_equal(explainer.explain(X.iloc[0].to_numpy()).x, answer.x)
    changed = X.iloc[[0]].copy()
    changed[kept] = answer.x
    assert pipeline.predict(changed)[0] == answer.prediction != answer.original_prediction


def test_several_rows_are_no_single_input(cancer) -> None:
    X, _ = cancer
    with pytest.raises(clvq.InvalidInputError, match="x has 3 rows; expected one"):
        clvq.Explainer(fitted(cancer, NearestCentroid())).explain(X.iloc[:3])


def test_missing_values_are_named(cancer) -> None:
    X, _ = cancer
    holes = X.iloc[:3].copy()
    holes.iloc[1, 2] = np.nan
    with pytest.raises(clvq.InvalidInputError, match="mean perimeter"):
        clvq.Explainer(fitted(cancer, NearestCentroid())).explain_batch(holes)


def test_categories_are_explained() -> None:
    table = pd.DataFrame({"job": ["clerk", "nurse"] * 3, "pay": [1.0, 2.0, 1.5, 3.0, 1.0, 2.5]})
    steps = ColumnTransformer([("job", OneHotEncoder(), ["job"])], remainder=StandardScaler())
    pipeline = make_pipeline(steps, NearestCentroid()).fit(table, [0, 1, 1, 1, 0, 0])
    batch = clvq.Explainer(pipeline).explain_batch(table)
    assert (batch.status == "optimal").all()
    assert (pipeline.predict(batch.X) != pipeline.predict(table)).all()
    assert set(batch.X["job"]) <= {"clerk", "nurse"}


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("levels", [[6, 12, 24], [1.5, 2.0, 72.5], [False, True]])
def test_levels_that_are_numbers_may_be_objects(levels: list[object], named: bool) -> None:
    """Encoders that were fitted on a column of objects take no column of floats."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, len(levels), 60)
    table = pd.DataFrame({"age": rng.normal(size=60)})
    table["months"] = pd.Series([levels[k] for k in codes], dtype=object)
    paid = np.where(table["age"] + codes + rng.normal(size=60) > 1, "yes", "no")
    steps = [("age", StandardScaler(), [0]), ("months", OneHotEncoder(), [1])]
    shown = table if named else table.to_numpy(dtype=object)
    model = make_pipeline(ColumnTransformer(steps), NearestCentroid()).fit(shown, paid)
    for wish in ("yes", "no"):
        batch = clvq.Explainer(model).explain_batch(shown[:20], target=wish)
        assert set(batch.status.tolist()) == {"optimal"}
        assert set(model.predict(batch.X)) == {wish}

"""Clusterings: what would put this row into another cluster?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.cluster import (
    AffinityPropagation,
    Birch,
    BisectingKMeans,
    KMeans,
    MeanShift,
    MiniBatchKMeans,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import counterlvq as clvq
from counterlvq.adapters import as_prototype_model
from tests.support.score_models import (
    confirm,
    least_manhattan,
    random_rows,
    saved_and_loaded,
    table,
    wide_table,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

CLUSTERINGS = {
    "k-means": KMeans(4, n_init=1, random_state=0),
    "mini-batch": MiniBatchKMeans(4, n_init=1, random_state=0),
    "birch": Birch(n_clusters=3),
    "mean shift": MeanShift(bandwidth=2.0),
    "affinity": AffinityPropagation(random_state=0, damping=0.9),
}


@pytest.mark.parametrize("kind", CLUSTERINGS)
def test_clusters_are_explained(kind: str) -> None:
    X, _ = table("wine")
    Z = StandardScaler().fit_transform(X[:, :5])
    fitted = CLUSTERINGS[kind].fit(Z)
    probe = np.vstack([Z, random_rows(Z, 500)])
    read = as_prototype_model(fitted, probe=probe)
    assert np.array_equal(read.predict(probe), fitted.predict(probe))
    assert read.meaning.part == "cluster"
    assert read.meaning.scores == "distance"
    batch = confirm(fitted, Z[::60])
    assert set(batch.status.tolist()) == {"optimal"}


def test_costs_are_those_of_a_plain_program() -> None:
    X, _ = table("wine")
    Z = StandardScaler().fit_transform(X)
    fitted = KMeans(4, n_init=1, random_state=0).fit(Z)
    C = fitted.cluster_centers_
    W, b = 2 * C, -(C * C).sum(axis=1)
    for row in Z[::50]:
        now = int(fitted.predict(row[None])[0])
        best = min(least_manhattan(W, b, row, t) for t in range(4) if t != now)
        assert clvq.Explainer(fitted).explain(row).cost == pytest.approx(best, rel=1e-6)


def test_raw_columns_behind_a_scaler_saved_and_loaded() -> None:
    X, _ = wide_table("wine")
    fitted = make_pipeline(StandardScaler(), KMeans(3, n_init=1, random_state=0)).fit(X)
    confirm(fitted, X[::60])
    loaded = saved_and_loaded(fitted)
    assert loaded.model.meaning.part == "cluster"
    assert np.array_equal(loaded.predict(X), fitted.predict(X))


def test_raw_columns_without_a_scaler() -> None:
    X, _ = wide_table("wine")
    fitted = KMeans(3, n_init=1, random_state=0).fit(X)
    as_prototype_model(fitted, probe=X)
    confirm(fitted, X[::60])


def test_single_precision() -> None:
    X, _ = table("wine")
    Z = StandardScaler().fit_transform(X).astype(np.float32)
    fitted = KMeans(3, n_init=1, random_state=0).fit(Z)
    explainer = clvq.Explainer(fitted)
    batch = explainer.explain_batch(Z[::20].astype(np.float64))
    assert (fitted.predict(batch.X.astype(np.float32)) == batch.prediction).all()


def test_a_step_across_one_bisector_is_no_answer() -> None:
    """Projecting onto the bisector with the target's centre can end in a third cluster."""
    centres = np.array([[0.0, 0.0], [4.0, 0.0], [2.0, 0.5]])
    fitted = KMeans(3, init=centres, n_init=1, max_iter=1).fit(np.repeat(centres, 3, axis=0))
    x, target = np.array([0.0, 0.1]), int(fitted.predict([[4.0, 0.0]])[0])
    here, there = (fitted.cluster_centers_[fitted.predict([p])[0]] for p in (x, [4.0, 0.0]))
    normal, middle = there - here, (there + here) / 2
    step = normal * ((middle - x) @ normal) / (normal @ normal)
    projected = x + step * (1 + 1e-9)
    assert fitted.predict(projected[None])[0] not in (target, fitted.predict(x[None])[0])
    cf = clvq.Explainer(fitted, cost=clvq.Euclidean()).explain(x, target=target)
    assert fitted.predict(cf.x[None])[0] == target
    assert cf.status == "optimal"
    assert cf.cost > 1.5 * float(step @ step)


@pytest.mark.parametrize("estimator", [BisectingKMeans(3, random_state=0)])
def test_clusters_of_another_rule_are_refused(estimator: Any) -> None:
    X, _ = table("wine")
    with pytest.raises(clvq.NotSupportedError, match="BisectingKMeans"):
        as_prototype_model(estimator.fit(X))


def test_classes_that_extend_a_clustering() -> None:
    class Own(Birch):
        pass

    X, _ = table("wine")
    Z = StandardScaler().fit_transform(X[:, :3])
    fitted = Own(n_clusters=3).fit(Z)
    as_prototype_model(fitted, probe=Z)
    confirm(fitted, Z[::60])


def test_no_cluster_is_refused() -> None:
    X, _ = table("wine")
    fitted = AffinityPropagation(max_iter=2, random_state=0).fit(X)
    fitted.cluster_centers_ = np.empty((0, X.shape[1]))  # as `fit` leaves it where none are found
    with pytest.raises(clvq.NotSupportedError, match="found no clusters"):
        as_prototype_model(fitted)


def test_one_cluster_is_refused() -> None:
    with pytest.raises(clvq.InvalidInputError, match="at least two classes"):
        as_prototype_model(KMeans(1).fit([[0.0], [1.0]]))

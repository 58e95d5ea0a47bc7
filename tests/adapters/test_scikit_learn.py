"""scikit-learn's own nearest prototypes, fitted for real."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid

import counterlvq as clvq
from counterlvq.adapters import as_prototype_model

X, NUMBERS = load_iris(return_X_y=True)
Y = np.array(["setosa", "versicolor", "virginica"])[NUMBERS]
RNG = np.random.default_rng(0)
ROWS = RNG.uniform(X.min(axis=0) - 1, X.max(axis=0) + 1, size=(2000, 4))


def agrees(fitted: Any, rows: np.ndarray = ROWS) -> clvq.PrototypeModel:
    read = as_prototype_model(fitted, probe=rows)
    assert np.array_equal(read.predict(rows), fitted.predict(rows))
    return read


# --- NearestCentroid ----------------------------------------------------------------------------


def test_centroids_are_prototypes() -> None:
    fitted = NearestCentroid().fit(X, Y)
    read = agrees(fitted)
    assert np.array_equal(read.prototypes, fitted.centroids_)
    assert read.omegas is None


@pytest.mark.parametrize("threshold", [0.1, 2.0, 10.0])
def test_shrunken_centroids_are_where_predict_looks(threshold: float) -> None:
    agrees(NearestCentroid(shrink_threshold=threshold).fit(X, Y))


def test_equal_priors_change_nothing() -> None:
    read = agrees(NearestCentroid(priors=[1 / 3, 1 / 3, 1 / 3]).fit(X, Y))
    assert read.omegas is None


PRIORS = [[0.2, 0.3, 0.5], [0.9, 0.05, 0.05], [1e-6, 0.5, 0.499999], [0.34, 0.33, 0.33]]


@pytest.mark.parametrize("threshold", [None, 0.5])
@pytest.mark.parametrize("priors", PRIORS)
def test_priors_move_all_prototypes_by_one_step(priors: list[float], threshold: Any) -> None:
    fitted = NearestCentroid(priors=priors, shrink_threshold=threshold).fit(X, Y)
    read = agrees(fitted)
    steps = read.prototypes - fitted.centroids_
    assert np.allclose(steps, steps[0], rtol=1e-9, atol=1e-9)
    assert np.abs(steps).max() > 1e-6
    # Not only the winner: the lead of every class over every other is that of scikit-learn.
    ours = read.distances(ROWS[:100])
    theirs = -fitted.decision_function(ROWS[:100])
    assert np.allclose(ours - ours[:, :1], theirs - theirs[:, :1], rtol=1e-9, atol=1e-9)


def test_empirical_priors_of_two_classes() -> None:
    data, target = load_breast_cancer(return_X_y=True)
    rows = data[RNG.integers(len(data), size=(1000, 1)), np.arange(data.shape[1])]
    agrees(NearestCentroid(priors="empirical").fit(data, target), rows)


def test_a_feature_without_spread_keeps_its_unit() -> None:
    data = np.column_stack([X, np.where(NUMBERS == 0, 1.0, 3.0)])
    with pytest.warns(UserWarning, match="zero standard deviation"):
        fitted = NearestCentroid(priors=[0.2, 0.3, 0.5]).fit(data, Y)
    agrees(fitted, np.column_stack([ROWS, RNG.normal(size=len(ROWS))]))


def test_a_class_that_is_never_predicted_is_left_out() -> None:
    fitted = NearestCentroid(priors=[0.0, 0.4, 0.6]).fit(X, Y)
    read = as_prototype_model(fitted)
    assert read.labels.tolist() == ["versicolor", "virginica"]
    with np.errstate(divide="ignore"):
        assert np.array_equal(read.predict(ROWS), fitted.predict(ROWS))


def test_one_possible_class_is_refused() -> None:
    with pytest.raises(clvq.NotSupportedError, match="so that it predicts one class only"):
        as_prototype_model(NearestCentroid(priors=[1.0, 0.0, 0.0]).fit(X, Y))


def test_priors_that_no_step_can_replace_are_refused() -> None:
    line = np.array([[0.0], [1.0], [4.0], [5.0], [10.0], [11.0]])
    fitted = NearestCentroid(priors=[0.2, 0.6, 0.2]).fit(line, [0, 0, 1, 1, 2, 2])
    with pytest.raises(clvq.NotSupportedError) as raised:
        as_prototype_model(fitted)
    assert str(raised.value) == (
        "NearestCentroid has unequal priors, and its 3 centroids in 1 dimension(s) cannot be moved "
        "so that nearest-centroid alone says the same; fit it with priors='uniform'."
    )


def test_priors_of_nearly_equal_centroids_are_refused() -> None:
    data = np.array([[0.0, 0.0], [1.0, 1.0], [1e-9, 0.0], [1.0, 1.0]])
    fitted = NearestCentroid(priors=[0.3, 0.7]).fit(data, [0, 0, 1, 1])
    with pytest.raises(clvq.NotSupportedError, match="cannot be moved"):
        as_prototype_model(fitted)


def test_sums_of_absolute_differences_are_refused() -> None:
    with pytest.raises(clvq.NotSupportedError) as raised:
        as_prototype_model(NearestCentroid(metric="manhattan").fit(X, Y))
    assert str(raised.value) == (
        "NearestCentroid has the metric 'manhattan'; expected 'euclidean'. Only a distance that is "
        "quadratic in the input can be read."
    )


# --- one nearest neighbour ----------------------------------------------------------------------

V = np.cov(X.T)
NEIGHBOURS = {
    "default": {},
    "distance weights": {"weights": "distance"},
    "euclidean": {"metric": "euclidean", "algorithm": "brute"},
    "l2": {"metric": "l2"},
    "sqeuclidean": {"metric": "sqeuclidean", "algorithm": "brute"},
    "kd_tree": {"algorithm": "kd_tree"},
    "minkowski with weights": {"metric_params": {"w": np.array([1.0, 0.5, 4.0, 2.0])}},
    "seuclidean": {"metric": "seuclidean", "metric_params": {"V": X.var(axis=0)}},
    "mahalanobis VI": {"metric": "mahalanobis", "metric_params": {"VI": np.linalg.inv(V)}},
    "mahalanobis V": {"metric": "mahalanobis", "metric_params": {"V": V}},
}


@pytest.mark.parametrize("kind", NEIGHBOURS)
def test_training_rows_are_prototypes(kind: str) -> None:
    fitted = KNeighborsClassifier(n_neighbors=1, **NEIGHBOURS[kind]).fit(X, Y)
    read = agrees(fitted)
    assert np.array_equal(read.prototypes, X)
    assert np.array_equal(read.labels, Y)


def test_sparse_training_rows_are_read_too() -> None:
    agrees(KNeighborsClassifier(n_neighbors=1).fit(csr_array(X), Y))


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ({"p": 1}, "'manhattan'"),
        ({"p": 3}, "'minkowski' with p=3"),
        ({"metric": "chebyshev"}, "'chebyshev'"),
        ({"metric": "correlation"}, "'correlation'"),
    ],
)
def test_other_metrics_are_refused(settings: dict[str, Any], shown: str) -> None:
    with pytest.raises(clvq.NotSupportedError) as raised:
        as_prototype_model(KNeighborsClassifier(n_neighbors=1, **settings).fit(X, Y))
    assert str(raised.value) == (
        f"KNeighborsClassifier has the metric {shown}; expected 'euclidean', 'cosine', 'minkowski' "
        f"with p=2, 'seuclidean' with V or 'mahalanobis' with VI. Only a distance that is "
        f"quadratic in the input, or orders points like one, can be read."
    )


def test_several_neighbours_are_refused() -> None:
    with pytest.raises(clvq.NotSupportedError) as raised:
        as_prototype_model(KNeighborsClassifier(n_neighbors=3).fit(X, Y))
    assert str(raised.value) == (
        "KNeighborsClassifier has n_neighbors=3; expected 1. With more, neighbours vote, and the "
        "nearest one does not decide."
    )


def test_several_outputs_are_refused() -> None:
    fitted = KNeighborsClassifier(n_neighbors=1).fit(X, np.column_stack([Y, Y]))
    with pytest.raises(clvq.NotSupportedError, match="several outputs at once; expected one label"):
        as_prototype_model(fitted)


def test_equal_rows_with_different_labels_are_refused() -> None:
    data, labels = np.vstack([X, X[7]]), np.append(Y, "virginica")
    fitted = KNeighborsClassifier(n_neighbors=1).fit(data, labels)
    with pytest.raises(clvq.NotSupportedError) as raised:
        as_prototype_model(fitted)
    assert "training rows 7 and 150 of this KNeighborsClassifier are equally far from" in str(
        raised.value
    )
    assert "carry the labels 'setosa' and 'virginica' (1 such row(s) in all)" in str(raised.value)


# --- both ---------------------------------------------------------------------------------------

BOTH = [NearestCentroid(), KNeighborsClassifier(n_neighbors=1)]


@pytest.mark.parametrize("estimator", BOTH, ids=lambda estimator: type(estimator).__name__)
def test_names_of_columns_are_taken_over(estimator: Any) -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    read = as_prototype_model(clone(estimator).fit(frame, Y), probe=frame)
    assert read.features.names == ("a", "b", "c", "d")


@pytest.mark.parametrize("estimator", BOTH, ids=lambda estimator: type(estimator).__name__)
def test_unfitted_classifiers_are_to_be_fitted_first(estimator: Any) -> None:
    with pytest.raises(clvq.InvalidInputError, match="is not fitted yet; call its `fit` first"):
        as_prototype_model(clone(estimator))


@pytest.mark.parametrize("estimator", BOTH, ids=lambda estimator: type(estimator).__name__)
def test_counterfactuals_are_confirmed_by_the_classifier(estimator: Any) -> None:
    fitted = clone(estimator).fit(X, Y)
    explainer = clvq.Explainer(as_prototype_model(fitted))
    for target in ["setosa", "versicolor", "virginica"]:
        batch = explainer.explain_batch(X[::3], target=target)
        assert (batch.status == "optimal").all()
        assert (fitted.predict(batch.X) == target).all()

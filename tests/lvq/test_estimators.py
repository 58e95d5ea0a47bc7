"""The estimators: scikit-learn's contract, known optima, and what a fitted model holds."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import counterlvq as clvq
from counterlvq import InvalidInputError, PrototypeModel
from counterlvq.lvq import GLVQ, GMLVQ, LGMLVQ, LMRSLVQ, MRSLVQ, RSLVQ
from counterlvq.lvq import __all__ as names
from counterlvq.lvq.starts import merged
from tests.support.quick import some

ALL = [GLVQ, GMLVQ, LGMLVQ, RSLVQ, MRSLVQ, LMRSLVQ]
RELATIVE, SOFT = ALL[:3], ALL[3:]
MATRIX, LOCAL = [GMLVQ, LGMLVQ, MRSLVQ, LMRSLVQ], [LGMLVQ, LMRSLVQ]

each = pytest.mark.parametrize("kind", ALL)


def blobs(seed: int = 0, width: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Three overlapping classes."""
    rng = np.random.default_rng(seed)
    centers = 2.5 * rng.normal(size=(3, width))
    y = np.repeat(np.arange(3), 20)
    return centers[y] + rng.normal(size=(60, width)), y


def as_model(estimator: Any) -> PrototypeModel:
    return PrototypeModel(estimator.prototypes_, estimator.prototype_labels_, estimator.omegas_)


# --- scikit-learn's contract --------------------------------------------------------------------


def test_all_six_are_offered() -> None:
    assert sorted(kind.__name__ for kind in ALL) == sorted(names)


def outcomes(estimator: Any, allowed: dict[str, str] | None = None) -> list[dict[str, Any]]:
    """What scikit-learn's own checks say; one is left out here, without its optional package."""
    found = check_estimator(estimator, expected_failed_checks=allowed, on_skip=None, on_fail=None)
    assert len(found) > 50
    return [check for check in found if check["check_name"] != "check_array_api_input"]


# By default one estimator of each family passes the checks: metrics none, shared and local, soft
# and hard. What differs between the others is their objective.
@pytest.mark.parametrize("kind", some(ALL, quick={GMLVQ, RSLVQ}))
def test_scikit_learn_accepts_it_without_exception(kind: Any) -> None:
    refused = [check for check in outcomes(kind()) if check["status"] != "passed"]
    assert not refused


@pytest.mark.parametrize("kind", some(ALL, quick={LMRSLVQ}))
def test_scikit_learn_accepts_several_prototypes_without_exception(kind: Any) -> None:
    found = outcomes(kind(prototypes_per_class=2))

    assert not [check for check in found if check["status"] != "passed"]


@each
def test_pipeline_and_grid_search(kind: Any) -> None:
    X, y = blobs()
    name = kind.__name__.lower()
    tuned = {"beta": [2.0, None]} if kind in RELATIVE else {"sigma": ["auto", 1.0]}
    tuned |= {"regularization": [0.0, 0.01]} if kind in MATRIX else {}
    grid = {f"{name}__{key}": values for key, values in tuned.items()}

    search = GridSearchCV(make_pipeline(StandardScaler(), kind(random_state=0)), grid, cv=3)

    assert search.fit(X, y).best_score_ > 0.6
    assert set(search.best_params_) == set(grid)


@each
def test_clone_pickle_and_determinism(kind: Any) -> None:
    X, y = blobs()
    first = kind(prototypes_per_class=2, random_state=3).fit(X, y)

    again = clone(first).fit(X, y)
    copy = pickle.loads(pickle.dumps(first))

    for other in (again, copy):
        assert np.array_equal(first.prototypes_, other.prototypes_)
        assert np.array_equal(first.predict(X), other.predict(X))
        assert first.objective_ == other.objective_
        if kind in MATRIX:
            assert np.array_equal(first.omegas_, other.omegas_)


@each
def test_names_of_columns_are_kept(kind: Any) -> None:
    frames = pytest.importorskip("pandas")
    X, y = blobs()
    table = frames.DataFrame(X, columns=list("abcd"))

    model = kind(random_state=0).fit(table, y)

    assert model.feature_names_in_.tolist() == list("abcd")
    assert model.n_features_in_ == 4
    assert np.array_equal(model.predict(table), kind(random_state=0).fit(X, y).predict(X))
    if kind in MATRIX:
        name = kind.__name__.lower()
        assert model.get_feature_names_out().tolist() == [f"{name}0", f"{name}1"]
        pictures = model.set_output(transform="pandas").transform(table)
        assert pictures.shape == (60, 2)


# --- prediction ---------------------------------------------------------------------------------

LABELS = {
    "integers": np.array([7, -1, 30]),
    "strings": np.array(["low", "middle", "high"]),
    "objects": np.array(["low", "middle", "high"], dtype=object),
    "floats": np.array([0.5, 1.5, -2.5]).astype(int) + 0.0,
}


@each
@pytest.mark.parametrize("labels", LABELS)
def test_predict_is_that_of_the_prototype_model(kind: Any, labels: str) -> None:
    X, y = blobs()
    rng = np.random.default_rng(1)
    probes = np.vstack([X, 30 * rng.normal(size=(500, 4)), rng.normal(size=(500, 4))])

    model = kind(prototypes_per_class=2, random_state=0).fit(X, LABELS[labels][y])

    predicted = model.predict(probes)
    assert np.array_equal(predicted, as_model(model).predict(probes))
    assert predicted.dtype == LABELS[labels].dtype
    assert set(predicted) <= set(LABELS[labels])
    assert model.classes_.tolist() == sorted(LABELS[labels].tolist())


@pytest.mark.parametrize("kind", LOCAL)
def test_matrices_of_a_class_are_repeated(kind: Any) -> None:
    X, y = blobs()

    model = kind(2, localization="class", n_components=3, random_state=0).fit(X, y)

    assert model.omegas_.shape == (6, 3, 4)
    pairs = model.omegas_.reshape(3, 2, 3, 4)
    assert np.array_equal(pairs[:, 0], pairs[:, 1])
    assert not np.allclose(pairs[0, 0], pairs[1, 0])
    assert np.array_equal(model.predict(X), as_model(model).predict(X))
    own = kind(2, n_components=3, random_state=0).fit(X, y)
    assert not np.allclose(own.omegas_[0], own.omegas_[1])


@pytest.mark.parametrize("kind", RELATIVE)
@pytest.mark.parametrize("classes", [2, 3])
def test_decision_function_agrees_with_predict(kind: Any, classes: int) -> None:
    X, y = blobs()
    X, y = X[y < classes], y[y < classes]
    model = kind(prototypes_per_class=2, random_state=0).fit(X, y)

    scores = model.decision_function(X)

    distances = model.predict(X), as_model(model).distances(X)
    assert np.abs(scores).max() <= 1.0
    if classes == 2:
        assert scores.shape == (len(X),)
        assert np.array_equal((scores > 0).astype(int), distances[0])
    else:
        assert scores.shape == (len(X), 3)
        assert np.array_equal(scores.argmax(axis=1), distances[0])
        assert np.array_equal((scores > 0).sum(axis=1), np.ones(len(X)))
        own, rest = distances[1][:, 2:4].min(axis=1), distances[1][:, [0, 1, 4, 5]].min(axis=1)
        np.testing.assert_allclose(scores[:, 1], (rest - own) / (rest + own))


@pytest.mark.parametrize("kind", SOFT)
def test_probabilities_are_those_of_the_nearest_prototypes(kind: Any) -> None:
    X, y = blobs()
    model = kind(prototypes_per_class=2, sigma=1.5, random_state=0).fit(X, y)

    found = model.predict_proba(X)

    weights = np.exp(-as_model(model).distances(X) / (2 * 1.5**2))
    by_class = weights.reshape(len(X), 3, 2).max(axis=2)
    np.testing.assert_allclose(found, by_class / by_class.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(found))


@pytest.mark.parametrize("kind", SOFT)
@pytest.mark.parametrize("offset", [0.0, 1e6, 1e12])
def test_most_likely_is_what_is_predicted(kind: Any, offset: float) -> None:
    """Also on the boundary and next to it, where distances tie by rounding."""
    X, y = blobs()
    model = kind(prototypes_per_class=2, random_state=0).fit(X, y)
    model.prototypes_ = model.prototypes_ + offset
    pairs = list(itertools.combinations(model.prototypes_, 2))
    middle = [0.5 * (a + b) for a, b in pairs]
    beside = [np.nextafter(row, end) for row in middle for end in (-np.inf, np.inf)]
    rows = np.array([*(X + offset), *middle, *beside])

    told = np.searchsorted(model.classes_, model.predict(rows))

    assert np.array_equal(model.predict_proba(rows).argmax(axis=1), told)
    assert np.array_equal(model.predict_log_proba(rows).argmax(axis=1), told)
    np.testing.assert_allclose(model.predict_proba(rows).sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("kind", SOFT)
def test_counterfactual_of_two_classes_has_at_least_one_half(kind: Any) -> None:
    X, y = blobs()
    X, y = X[y < 2], y[y < 2]
    model = kind(prototypes_per_class=3, random_state=0).fit(X, y)
    X = X[::5] if kind in LOCAL else X  # proofs under local metrics take their time
    said = model.predict(X)

    batch = clvq.Explainer(model).explain_batch(X, target=(1 - said).tolist())

    kept = np.isfinite(batch.cost)
    assert kept.any()
    shares = model.predict_proba(batch.X[kept])
    assert (shares[np.arange(kept.sum()), 1 - said[kept]] >= 0.5).all()


@pytest.mark.parametrize("kind", SOFT)
def test_crowd_of_prototypes_does_not_outvote_the_nearest(kind: Any) -> None:
    """One prototype at distance 1 against two at distance 1.5."""
    X, y = [[-1.0], [-2.0], [1.4], [1.6]], ["one", "one", "two", "two"]
    model = kind({"one": 1, "two": 2}, sigma=2.0, random_state=0).fit(X, y)
    model.prototypes_ = np.array([[-1.0], [1.5], [1.5]])

    terms = np.exp([-1.0 / 8, -(1.5**2) / 8])
    assert model.predict([[0.0]]).tolist() == ["one"]
    np.testing.assert_allclose(model.predict_proba([[0.0]])[0], terms / terms.sum())


@pytest.mark.parametrize("kind", MATRIX)
def test_picture_keeps_what_it_can_of_the_metric(kind: Any) -> None:
    X, y = blobs()
    flat = kind(n_components=2, localization="class", random_state=0) if kind in LOCAL else (
        kind(n_components=2, random_state=0)
    )  # fmt: skip
    model = flat.fit(X, y)

    picture = model.transform(X)

    assert picture.shape == (60, 2)
    metric = np.mean([omega.T @ omega for omega in model.omegas_.reshape(-1, 2, 4)], axis=0)
    difference = X[0] - X[1]
    distance = ((picture[0] - picture[1]) ** 2).sum()
    if kind in LOCAL:
        values = np.linalg.eigvalsh(metric)[::-1]
        gram = np.linalg.lstsq(X, picture, rcond=None)[0]
        np.testing.assert_allclose((gram**2).sum(axis=0), values[:2])
    else:
        assert distance == pytest.approx(difference @ metric @ difference)


def test_picture_of_a_single_feature_has_one_column() -> None:
    X, y = np.arange(10.0)[:, None], np.arange(10) // 5

    model = GMLVQ(random_state=0).fit(X, y)

    assert model.transform(X).shape == (10, 1)
    assert model.get_feature_names_out().tolist() == ["gmlvq0"]


# --- what training finds ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2, 7))
@each
def test_boundary_of_mirrored_blobs_is_the_mirror(kind: Any, seed: int) -> None:
    """Only where classes overlap: what separates them has no best likelihood ratio."""
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(50, 2)) + [1.0, 0.0]
    assert half[:, 0].min() < -0.1
    X, y = np.vstack([half, half * [-1.0, 1.0]]), np.repeat([1, 0], 50)

    model = kind(random_state=0, tol=1e-9).fit(X, y)

    low, high = model.prototypes_
    np.testing.assert_allclose(low * [-1.0, 1.0], high, atol=1e-3)
    heights = rng.uniform(-1, 1, size=50)
    assert (model.predict(np.column_stack([np.full(50, 0.05), heights])) == 1).all()
    assert (model.predict(np.column_stack([np.full(50, -0.05), heights])) == 0).all()


@pytest.mark.parametrize("kind", RELATIVE)
def test_known_optimum_of_relative_distances(kind: Any) -> None:
    """Two samples: the cost is least, -1, exactly when each prototype sits on its own."""
    model = kind(beta=None, init=[[-0.3], [4.0]], tol=1e-14).fit([[-1.0], [2.0]], [0, 1])

    np.testing.assert_allclose(model.prototypes_, [[-1.0], [2.0]], atol=1e-5)
    assert model.objective_ == pytest.approx(-1.0, abs=1e-9)


@pytest.mark.parametrize("kind", SOFT)
def test_known_optimum_of_the_likelihood_ratio(kind: Any) -> None:
    """Labels by chance, 4 to 1: nothing beats saying so, and the least cost is their entropy."""
    X, y = [[-1.0]] * 5 + [[2.0]] * 5, [0, 0, 0, 0, 1, 1, 1, 1, 1, 0]

    model = kind(sigma=1.0, tol=1e-14, random_state=0).fit(X, y)

    expected = [[0.8, 0.2], [0.2, 0.8]]
    np.testing.assert_allclose(model.predict_proba([[-1.0], [2.0]]), expected, atol=1e-5)
    entropy = -(0.8 * np.log(0.8) + 0.2 * np.log(0.2))
    assert model.objective_ == pytest.approx(entropy, abs=1e-9)


@pytest.mark.parametrize("kind", [GMLVQ, LGMLVQ])
def test_known_optimum_of_a_metric(kind: Any) -> None:
    """Only the first feature tells the classes apart: on it alone every sample costs -1."""
    X = np.array([[side, height] for side in (-1.0, 1.0) for height in (-4.0, -1.0, 1.0, 4.0)])
    y = np.repeat(["left", "right"], 4)

    model = kind(beta=None, tol=1e-14, random_state=0).fit(X, y)

    assert model.objective_ == pytest.approx(-1.0, abs=1e-6)
    np.testing.assert_allclose(
        model.relevances_, np.broadcast_to([1.0, 0.0], model.relevances_.shape), atol=1e-5
    )
    np.testing.assert_allclose(model.prototypes_[:, 0], [-1.0, 1.0], atol=1e-3)


@pytest.mark.parametrize("kind", MATRIX)
def test_irrelevant_features_lose_their_relevance(kind: Any) -> None:
    rng = np.random.default_rng(3)
    X = rng.uniform(-2.0, 2.0, size=(300, 3))
    y = np.where(np.abs(X[:, 0]) < 1.0, "inner", "outer")

    model = kind({"inner": 1, "outer": 2}, random_state=0, tol=1e-6).fit(X, y)

    relevances = np.atleast_2d(model.relevances_)
    np.testing.assert_allclose(relevances.sum(axis=1), 1.0)
    assert (relevances[:, 0] > 0.8).all()
    assert (relevances[:, 1:] < 0.15).all()
    assert model.score(X, y) > 0.95


@pytest.mark.parametrize("kind", MATRIX)
def test_trace_is_one_and_relevances_are_the_diagonal(kind: Any) -> None:
    X, y = blobs()
    model = kind(2, n_components=2, random_state=0).fit(X, y)

    omegas = model.omegas_.reshape(-1, 2, 4)
    metrics = np.array([omega.T @ omega for omega in omegas])

    np.testing.assert_allclose(np.trace(metrics, axis1=1, axis2=2), 1.0)
    diagonals = np.diagonal(metrics, axis1=1, axis2=2)
    np.testing.assert_allclose(np.atleast_2d(model.relevances_), diagonals)
    assert (np.linalg.matrix_rank(metrics) <= 2).all()


@pytest.mark.parametrize("kind", MATRIX)
def test_regularization_spreads_the_metric(kind: Any) -> None:
    X, y = blobs()

    def flatness(strength: float) -> float:
        model = kind(regularization=strength, random_state=0, tol=1e-7).fit(X, y)
        sizes = np.linalg.svd(model.omegas_.reshape(-1, 4, 4), compute_uv=False)
        return float(np.log(sizes).sum(axis=1).mean())

    assert flatness(0.01) < flatness(0.1) < flatness(10.0)
    assert flatness(10.0) == pytest.approx(4 * np.log(0.5), abs=1e-2)


@each
def test_training_lowers_the_cost(kind: Any) -> None:
    X, y = blobs()
    with pytest.warns(ConvergenceWarning):
        short = kind(2, max_iter=1, tol=0.0, random_state=0).fit(X, y)

    longer = kind(2, tol=1e-6, random_state=0).fit(X, y)

    assert longer.objective_ < short.objective_
    assert longer.n_iter_ > short.n_iter_ == 1


@each
def test_objective_of_the_definition(kind: Any) -> None:
    X, y = blobs()
    model = kind(2, random_state=0).fit(X, y)
    if kind in SOFT:
        terms = np.exp(-as_model(model).distances(X) / (2 * model.sigma_**2))
        own = np.where(model.prototype_labels_ == y[:, None], terms, 0.0)
        expected = -np.log(own.sum(axis=1) / terms.sum(axis=1)).mean()
    else:
        mu = -model.decision_function(X)[np.arange(len(X)), y]
        expected = (1 / (1 + np.exp(-model.beta * mu))).mean()
    assert model.objective_ == pytest.approx(expected, rel=1e-9)


FLOORS = {
    "iris": {GLVQ: 0.964, GMLVQ: 0.911, LGMLVQ: 0.937, RSLVQ: 0.964, MRSLVQ: 0.911, LMRSLVQ: 0.964},
    "cancer": {
        GLVQ: 0.927, GMLVQ: 0.948, LGMLVQ: 0.941, RSLVQ: 0.927, MRSLVQ: 0.920, LMRSLVQ: 0.899,
    },
}  # fmt: skip


@pytest.mark.covering
@each
@pytest.mark.parametrize("name", FLOORS)
def test_accuracy_is_that_of_the_field(kind: Any, name: str) -> None:
    """Mean of four folds against the older libraries' figures, less one percentage point."""
    load = {"iris": load_iris, "cancer": load_breast_cancer}[name]
    X, y = load(return_X_y=True)
    steps = [StandardScaler(), *([PCA(5, random_state=0)] if name == "cancer" else [])]
    pipeline = make_pipeline(*steps, kind(prototypes_per_class=3, random_state=0))

    scores = cross_val_score(pipeline, X, y, cv=KFold(4, shuffle=True, random_state=0))

    assert scores.mean() >= FLOORS[name][kind]


# --- weights, order, units ----------------------------------------------------------------------


@each
def test_weights_are_repetitions_to_the_last_digit(kind: Any) -> None:
    X, y = blobs()
    rng = np.random.default_rng(5)
    weight = rng.integers(0, 4, size=len(X))
    order = rng.permutation(int(weight.sum()))

    weighted = kind(2, random_state=0).fit(X, y, sample_weight=weight)
    repeated = kind(2, random_state=0).fit(X.repeat(weight, axis=0)[order], y.repeat(weight)[order])

    assert np.array_equal(weighted.prototypes_, repeated.prototypes_)
    assert weighted.objective_ == repeated.objective_


@each
def test_weights_count_by_their_ratio_only(kind: Any) -> None:
    X, y = blobs()
    weight = np.random.default_rng(6).uniform(0.5, 2.0, size=len(X))

    some = kind(random_state=0).fit(X, y, sample_weight=weight)
    more = kind(random_state=0).fit(X, y, sample_weight=8.0 * weight)

    np.testing.assert_allclose(some.prototypes_, more.prototypes_)
    plain = kind(random_state=0).fit(X, y)
    assert not np.allclose(some.prototypes_, plain.prototypes_)


@each
def test_class_without_weight_is_absent(kind: Any) -> None:
    X, y = blobs()

    model = kind(random_state=0).fit(X, y, sample_weight=(y != 1).astype(float))

    assert model.classes_.tolist() == [0, 2]
    assert set(model.predict(X)) <= {0, 2}


@each
@pytest.mark.parametrize(("factor", "shift"), [(1.0, 17.0), (64.0, 0.0), (0.125, -30.0)])
def test_units_and_origin_do_not_matter(kind: Any, factor: float, shift: float) -> None:
    X, y = blobs()
    X = np.round(X * 1024) / 1024  # these shifts and factors are then exact

    with pytest.warns(ConvergenceWarning):
        here = kind(2, random_state=0, max_iter=5, tol=0.0).fit(X, y)
    with pytest.warns(ConvergenceWarning):
        there = kind(2, random_state=0, max_iter=5, tol=0.0).fit(factor * X + shift, y)

    assert there.objective_ == pytest.approx(here.objective_)
    np.testing.assert_allclose(there.prototypes_, factor * here.prototypes_ + shift, rtol=1e-6)
    if kind in MATRIX:
        np.testing.assert_allclose(there.relevances_, here.relevances_, rtol=1e-5)


@each
def test_order_of_rows_does_not_change_a_digit(kind: Any) -> None:
    X, y = blobs()
    order = np.random.default_rng(8).permutation(len(X))

    here = kind(2, random_state=0).fit(X, y)
    there = kind(2, random_state=0).fit(X[order], y[order])

    assert np.array_equal(here.prototypes_, there.prototypes_)


def test_samples_are_sorted_and_merged() -> None:
    rng = np.random.default_rng(9)
    X = np.round(rng.normal(size=(300, 2)), 1)
    X[X == 0] *= -1  # some zeros become -0.0
    y = rng.integers(0, 3, size=300)

    found = merged(X, y, np.full(300, 0.5))

    rows, counts = np.unique(np.column_stack([y, X + 0.0]), axis=0, return_counts=True)
    assert np.array_equal(np.column_stack([found.y, found.X]), rows)
    assert np.array_equal(found.weight, 0.5 * counts)


@each
def test_start_can_be_given(kind: Any) -> None:
    X, y = blobs()
    start = np.vstack([X[y == c][:2] for c in range(3)])

    with pytest.warns(ConvergenceWarning):
        near = kind(2, init=start, max_iter=1, tol=0.0).fit(X, y)
    settled = kind(2, init=start, tol=1e-6).fit(X, y)
    again = kind(2, init=settled.prototypes_.tolist(), tol=1e-6).fit(X, y)

    assert settled.objective_ < near.objective_
    assert again.prototypes_.shape == (6, 4)


@each
def test_classes_can_differ_in_their_prototypes(kind: Any) -> None:
    X, y = blobs()
    named = np.array(["a", "b", "c"])[y]

    model = kind({"b": 3, "a": 1, "c": 2}, random_state=0).fit(X, named)

    assert model.prototype_labels_.tolist() == ["a", "b", "b", "b", "c", "c"]
    assert model.prototypes_.shape == (6, 4)


# --- hard data ----------------------------------------------------------------------------------


@each
def test_constant_features_keep_their_value_and_have_no_relevance(kind: Any) -> None:
    X, y = blobs()
    wide = np.insert(X, [0, 2], [5.0, -3.0], axis=1)

    model, slim = kind(2, random_state=0).fit(wide, y), kind(2, random_state=0).fit(X, y)

    assert (model.prototypes_[:, 0] == 5.0).all()
    assert (model.prototypes_[:, 3] == -3.0).all()
    np.testing.assert_allclose(model.prototypes_[:, [1, 2, 4, 5]], slim.prototypes_)
    assert np.array_equal(model.predict(wide), slim.predict(X))
    if kind in MATRIX:
        assert model.omegas_.shape[-2:] == (6, 6)
        relevances = np.atleast_2d(model.relevances_)
        assert (relevances[:, [0, 3]] == 0.0).all()
        np.testing.assert_allclose(relevances.sum(axis=1), 1.0)
        penalised = kind(regularization=0.1, random_state=0).fit(wide, y)
        assert np.isfinite(penalised.objective_)


@each
def test_duplicates_and_contradictions_are_taken(kind: Any) -> None:
    X = np.array([[0.0, 0.0]] * 4 + [[1.0, 1.0]] * 4)
    y = np.array([0, 0, 0, 1, 1, 1, 1, 0])

    model = kind(2, random_state=0).fit(X, y)

    assert np.isfinite(model.prototypes_).all()
    assert model.score(X, y) >= 0.5
    same = kind(random_state=0).fit(np.ones((6, 3)), [0, 1] * 3)
    assert np.isfinite(same.prototypes_).all()
    np.testing.assert_allclose(same.prototypes_, 1.0)


@each
@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_huge_and_tiny_units(kind: Any, scale: float) -> None:
    X, y = blobs()

    model = kind(2, random_state=0).fit(scale * X, y)

    assert model.score(scale * X, y) > 0.8


# --- bad input ----------------------------------------------------------------------------------

X_GOOD, Y_GOOD = blobs()

BAD_PARAMETERS = [
    (GLVQ, {"prototypes_per_class": 0},
     "prototypes_per_class is 0; expected a whole number, at least 1."),
    (GLVQ, {"prototypes_per_class": 1.5}, "prototypes_per_class is 1.5; expected a whole number"),
    (GLVQ, {"prototypes_per_class": True}, "prototypes_per_class is True; expected a whole"),
    (RSLVQ, {"prototypes_per_class": {0: 1, 1: 2}},
     "prototypes_per_class has no entry for the class 2; expected one number for each of the "
     "classes [0, 1, 2]."),
    (RSLVQ, {"prototypes_per_class": {0: 1, 1: 2, 2: 1, 9: 1}},
     "prototypes_per_class has an entry for 9, which is not a class in y"),
    (GLVQ, {"prototypes_per_class": {0: 1, 1: 2, 2: "x"}},
     "prototypes_per_class[2] is 'x'; expected a whole number"),
    (GLVQ, {"prototypes_per_class": 21},
     "class 0 has 20 samples; expected at least 21, one per prototype. Lower "
     "prototypes_per_class, or pass a mapping from label to number."),
    (GMLVQ, {"n_components": 5},
     "n_components is 5; expected at most 4, the number of features. Leave it None for a metric "
     "of full rank."),
    (GMLVQ, {"n_components": 0}, "n_components is 0; expected a whole number, at least 1."),
    (LGMLVQ, {"localization": "cell"},
     "localization is 'cell'; expected 'prototype' or 'class'."),
    (LMRSLVQ, {"localization": None}, "localization is None; expected 'prototype' or 'class'."),
    (MRSLVQ, {"regularization": -1.0}, "regularization is -1.0; expected a number, 0 or above."),
    (GLVQ, {"beta": 0.0}, "beta is 0.0; expected a number above 0, or None for the identity."),
    (GLVQ, {"beta": float("nan")}, "beta is nan; expected a number above 0"),
    (RSLVQ, {"sigma": "wide"}, "sigma is 'wide'; expected 'auto'."),
    (RSLVQ, {"sigma": -2.0}, "sigma is -2.0; expected a number above 0, or 'auto'."),
    (GLVQ, {"max_iter": 0}, "max_iter is 0; expected a whole number, at least 1."),
    (GLVQ, {"tol": -1.0}, "tol is -1.0; expected a number, 0 or above."),
    (GLVQ, {"init": "random"}, "init is 'random'; expected 'k-means'."),
    (GLVQ, {"init": np.zeros((2, 4))},
     "init has 2 rows; expected 3, one per prototype, class by class in the order of classes_."),
    (GLVQ, {"init": np.zeros((3, 2))}, "init has 2 columns; expected 4, one per feature."),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "asked", "text"), BAD_PARAMETERS)
def test_bad_parameters_are_named(kind: Any, asked: dict[str, Any], text: str) -> None:
    estimator = kind(**asked)

    with pytest.raises(InvalidInputError) as raised:
        estimator.fit(X_GOOD, Y_GOOD)

    assert text in str(raised.value)


@each
def test_bad_data_is_refused_in_words_people_know(kind: Any) -> None:
    with_nan = X_GOOD.copy()
    with_nan[3, 1] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        kind().fit(with_nan, Y_GOOD)
    with pytest.raises(ValueError, match="Input X contains infinity"):
        kind().fit(np.where(np.isnan(with_nan), np.inf, with_nan), Y_GOOD)
    with pytest.raises(TypeError, match="Sparse data was passed for X, but dense data"):
        kind().fit(csr_array(X_GOOD), Y_GOOD)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        kind().fit(X_GOOD, Y_GOOD[:-1])
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        kind().fit(X_GOOD, Y_GOOD + 0.5)
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        kind().predict(X_GOOD)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4 features"):
        kind().fit(X_GOOD, Y_GOOD).predict(X_GOOD[:, :3])


@each
def test_a_single_class_is_refused_in_the_words_of_scikit_learn(kind: Any) -> None:
    with pytest.raises(ValueError, match="number of classes") as told:
        NearestCentroid().fit(X_GOOD, ["a"] * 60)
    with pytest.raises(InvalidInputError) as raised:
        kind().fit(X_GOOD, ["a"] * 60)
    assert str(raised.value) == (
        f"{told.value}. All samples of positive weight carry the label 'a'."
    )


BAD_WEIGHTS = [
    (np.zeros(60), "Sample weights must contain at least one non-zero number"),
    (np.ones(59), r"sample_weight.shape == \(59,\), expected \(60,\)!"),
    (np.ones((60, 2)), "Sample weights must be 1D array or scalar, got 2D array"),
    (-np.ones(60), "Negative values in data passed to `sample_weight`"),
    (np.full(60, np.nan), "Input sample_weight contains NaN"),
]


@pytest.mark.parametrize(("weight", "text"), BAD_WEIGHTS)
def test_bad_weights_are_refused_as_in_scikit_learn(weight: np.ndarray, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        GLVQ().fit(X_GOOD, Y_GOOD, sample_weight=weight)


@pytest.mark.parametrize("kind", SOFT)
def test_only_the_soft_models_have_probabilities(kind: Any) -> None:
    assert hasattr(kind(), "predict_proba")
    assert not hasattr(kind(), "decision_function")
    assert not hasattr(RELATIVE[0](), "predict_proba")


@each
def test_stopping_early_warns(kind: Any) -> None:
    text = rf"{kind.__name__} stopped after max_iter=2 iterations.*Raise max_iter"

    with pytest.warns(ConvergenceWarning, match=text) as caught:
        kind(3, max_iter=2, tol=0.0, random_state=0).fit(X_GOOD, Y_GOOD)

    assert caught[0].filename == __file__

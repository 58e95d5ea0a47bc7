"""The user's own `predict` confirms every answer: alone, in the batch, and in any part of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import counterlvq as clvq
from tests.support.fakes import Array, Tensor, torch_model
from tests.support.quick import seeds, slow

OFFSETS = [0.0, 100.0, 1e4, 1e7]
ROWS = 24


def table(seed: int, offset: float, d: int = 4, n: int = 120) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, d)) + offset
    return X, (X[:, 0] + 0.5 * X[:, 1] > 1.5 * offset + 0.2).astype(int)


def rejected(predict: Callable[[Array], Array], Y: Array, target: Array, seed: int = 0) -> int:
    """How often a row does not get its label: alone, among all, in parts, in other orders."""
    rng = np.random.default_rng(seed)
    count = int((predict(Y) != target).sum())
    count += sum(int(predict(Y[i : i + 1])[0] != target[i]) for i in range(len(Y)))
    for _ in range(20):
        part = rng.permutation(len(Y))[: rng.integers(1, len(Y) + 1)]
        count += int((predict(Y[part]) != target[part]).sum())
    return count


def assert_honest(batch: clvq.CounterfactualBatch) -> None:
    """A status says what its bound shows, and nothing that the model rejects is an answer."""
    for status, cost, bound in zip(batch.status, batch.cost, batch.lower_bound, strict=True):
        if status == "optimal":
            assert cost - bound <= 1e-6 * max(cost, 1e-7) + 1e-12
        assert status in ("optimal", "feasible", "unknown")


def check(
    model: Any,
    predict: Callable[[Array], Array],
    X: Array,
    **asked: Any,
) -> Any:
    """Ask for the other label of every row, one label each; returns the batch."""
    now = np.array([predict(X[i : i + 1])[0] for i in range(len(X))])
    explainer = clvq.Explainer(model, **asked)
    batch = explainer.explain_batch(X, target=[int(1 - label) for label in now])
    found = batch.prototype >= 0
    assert found.mean() > 0.9
    assert rejected(predict, np.asarray(batch.X)[found], (1 - now)[found]) == 0
    assert np.array_equal(batch.prediction[found], (1 - now)[found])
    assert np.array_equal(batch.original_prediction, now)
    assert_honest(batch)
    for i in range(0, len(X), 9):
        for target in (int(1 - now[i]), None):
            cf = explainer.explain(X[i], target=target)
            assert cf.original_prediction == now[i]
            if cf.status.has_answer:
                assert cf.prediction == 1 - now[i]
                assert (
                    rejected(predict, np.repeat(cf.x[None], 5, axis=0), np.full(5, 1 - now[i])) == 0
                )
            if target is not None:
                assert cf.status == batch.status[i]
                assert np.array_equal(cf.x, np.asarray(batch.X)[i], equal_nan=True)
    return batch


@pytest.mark.covering
@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("priors", ["uniform", "empirical"])
@pytest.mark.parametrize("shrink", [None, 0.1])
@pytest.mark.parametrize("cost", [clvq.Manhattan(), clvq.Euclidean()])
def test_nearest_centroid(offset: float, priors: str, shrink: float | None, cost: Any) -> None:
    X, y = table(1, offset)
    fitted = NearestCentroid(priors=priors, shrink_threshold=shrink).fit(X, y)
    batch = check(fitted, fitted.predict, X[:ROWS], cost=cost)
    if offset <= 100:
        assert (batch.status == "optimal").mean() > 0.9


@pytest.mark.covering
@pytest.mark.parametrize("offset", OFFSETS[:-1])
@pytest.mark.parametrize("algorithm", ["brute", "kd_tree", "ball_tree"])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_one_neighbour(offset: float, algorithm: str, kind: Any) -> None:
    X, y = table(2, offset)
    X, first = np.unique(X.astype(kind), axis=0, return_index=True)
    fitted = KNeighborsClassifier(1, algorithm=algorithm).fit(X, y[first])
    rng = np.random.default_rng(3)
    asked = rng.uniform(-1, 1, size=(ROWS, X.shape[1])) + offset
    batch = check(fitted, fitted.predict, asked)
    if offset <= 100:
        assert (batch.status == "optimal").mean() > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["brute", "kd_tree", "ball_tree"])
def test_one_neighbour_where_few_digits_are_left(algorithm: str) -> None:
    X, y = table(2, 1e7, d=3, n=60)
    fitted = KNeighborsClassifier(1, algorithm=algorithm).fit(X, y)
    asked = np.random.default_rng(3).uniform(-1, 1, size=(8, 3)) + 1e7
    check(fitted, fitted.predict, asked)


class Torch:
    """As much of a model of prototorch-models as `predict` needs; single precision throughout."""

    def __init__(self, w: Array, labels: Array, omega: Array | None, by_products: bool) -> None:
        self.w, self.labels = w.astype(np.float32), labels
        self.omega = None if omega is None else omega.astype(np.float32)
        self.by_products = by_products

    def model(self) -> Any:
        name, more = "GLVQ", {"distance": "squared_euclidean_distance"}
        if self.omega is not None:
            name, more = "GMLVQ", {"distance": "omega_distance", "_omega": Tensor(self.omega)}
        made = torch_model(name, self.w, self.labels, **more)
        made.proto_layer = SimpleNamespace(components=Tensor(self.w))
        made.predict = lambda tensor: Tensor(self.predict(tensor.values), False, True)
        return made

    def predict(self, rows: Array) -> Array:
        x, w = rows.astype(np.float32), self.w
        if self.omega is not None:
            x, w = x @ self.omega, w @ self.omega
        if self.by_products:
            scores = (x * x).sum(axis=1)[:, None] - 2 * (x @ w.T) + (w * w).sum(axis=1)
        else:
            scores = ((x[:, None] - w[None]) ** 2).sum(axis=2)
        return np.asarray(self.labels[scores.argmin(axis=1)])


@pytest.mark.parametrize("offset", [0.0, 1.0, 100.0])
@pytest.mark.parametrize("by_products", [False, True])
@pytest.mark.parametrize("with_omega", [False, True])
def test_single_precision(offset: float, by_products: bool, with_omega: bool) -> None:
    X, _ = table(4, offset)
    rng = np.random.default_rng(5)
    w = rng.uniform(-1, 1, size=(6, X.shape[1])) + offset
    omega = rng.normal(size=(X.shape[1], 3)) if with_omega else None
    own = Torch(w, np.arange(6) % 2, omega, by_products)
    check(own.model(), own.predict, X[:ROWS])


class Jax(NearestCentroid):
    """A class of the user's own, whose `predict` casts to single precision."""

    def predict(self, X: Any) -> Any:
        x, w = np.asarray(X, dtype=np.float32), self.centroids_.astype(np.float32)
        scores = ((x[:, None] - w[None]) ** 2).sum(axis=2)
        return self.classes_[scores.argmin(axis=1)]


@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_class_of_the_users_own(offset: float) -> None:
    X, y = table(6, offset)
    fitted = Jax().fit(X, y)
    check(fitted, fitted.predict, X[:ROWS])


@pytest.mark.covering
@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("steps", ["scaler", "range", "principal"])
@pytest.mark.parametrize("last", ["centroid", "priors", "neighbour"])
def test_pipelines(offset: float, steps: str, last: str) -> None:
    X, y = table(7, offset)
    before = {
        "scaler": [StandardScaler()],
        "range": [MinMaxScaler((-1, 1))],
        "principal": [StandardScaler(), PCA(3)],
    }[steps]
    model: Any = {
        "centroid": NearestCentroid(),
        "priors": NearestCentroid(priors="empirical"),
        "neighbour": KNeighborsClassifier(1, algorithm="brute"),
    }[last]
    pipeline = make_pipeline(*before, model).fit(X, y)
    rng = np.random.default_rng(8)
    check(pipeline, pipeline.predict, rng.uniform(-1, 1, size=(ROWS, X.shape[1])) + offset)


def test_predict_is_asked_once_about_an_answer_and_once_about_a_batch() -> None:
    X, y = table(9, 0.0)
    fitted = NearestCentroid().fit(X, y)
    sizes: list[int] = []

    class Counting(NearestCentroid):
        def predict(self, X: Any) -> Any:
            sizes.append(len(X))
            return NearestCentroid.predict(fitted, X)

    counting = Counting().fit(X, y)
    explainer = clvq.Explainer(counting)
    explainer.explain(X[0], target=int(1 - fitted.predict(X[:1])[0]))
    assert len(sizes) <= 3  # the input, the answer, and no more than one in doubt
    sizes.clear()
    explainer.explain_batch(X, target=1)
    assert sizes == [len(X), len(X)]  # all inputs, then all answers


def test_what_stays_rejected_is_no_answer() -> None:
    X, y = table(10, 0.0)

    class Stubborn(NearestCentroid):
        def predict(self, X: Any) -> Any:
            return np.zeros(len(X), dtype=int)

    fitted = Stubborn().fit(X, y)
    explainer = clvq.Explainer(fitted)
    cf = explainer.explain(X[0], target=1)
    assert cf.status == "unknown"
    assert cf.prediction is None
    assert cf.original_prediction == 0
    batch = explainer.explain_batch(X[:5], target=1)
    assert set(batch.status) == {"unknown"}
    assert np.isnan(batch.X).all()
    unchanged = explainer.explain_batch(X[:5], target=0)
    assert (unchanged.cost == 0).all()


def test_a_row_rejected_among_others_is_pushed_further_in() -> None:
    """A model that wants a wider lead in company than alone, beyond any rounding."""
    X, y = table(11, 0.0)

    class Shy(NearestCentroid):
        def predict(self, X: Any) -> Any:
            rows = np.asarray(X)
            scores = ((rows[:, None] - self.centroids_[None]) ** 2).sum(axis=2)
            lead = scores[:, 0] - scores[:, 1]
            return (lead > (1e-4 if len(rows) > 1 else 0.0)).astype(int)

    fitted = Shy().fit(X, y)
    asked = X[fitted.predict(X) == 0][:10]
    batch = clvq.Explainer(fitted).explain_batch(asked, target=1)
    assert (batch.prototype >= 0).all()
    assert (fitted.predict(batch.X) == 1).all()
    for i in range(len(asked)):
        assert np.array_equal(batch[i].x, batch.X[i])


def test_target_none_is_any_label_but_the_models_own() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) + 1e7
    fitted = NearestCentroid().fit(X, (X[:, 0] > 1e7).astype(int))
    asked = rng.normal(size=(2000, 3)) + 1e7
    explainer = clvq.Explainer(fitted)
    differ = asked[fitted.predict(asked) != explainer.model.predict(asked)][:15]
    assert len(differ) > 3
    for x in differ:
        own = fitted.predict(x[None])[0]
        cf = explainer.explain(x)
        assert cf.original_prediction == own
        assert cf.target == (1 - own,)
        assert not cf.status.has_answer or fitted.predict(cf.x[None])[0] != own


# --- bounds hold for points far from the input, where `predict` rounds more -----------------------


def nearest_neighbour(algorithm: str) -> Any:
    return KNeighborsClassifier(n_neighbors=1, algorithm=algorithm)


def spread_around(X: Array) -> Array:
    """Two rows on either side of each: the same means, and some variance."""
    return np.repeat(X, 2, axis=0) + np.array([[0.25], [-0.25]] * len(X))


@pytest.mark.covering
@pytest.mark.parametrize(
    "make",
    [
        NearestCentroid,
        slow(lambda: nearest_neighbour("brute")),
        lambda: nearest_neighbour("kd_tree"),
        slow(lambda: nearest_neighbour("ball_tree")),
        lambda: make_pipeline(StandardScaler(), NearestCentroid()),
    ],
    ids=["centroid", "brute", "kd_tree", "ball_tree", "pipeline"],
)
@pytest.mark.parametrize("cost", [clvq.Manhattan(), clvq.Euclidean()], ids=["l1", "l2"])
def test_no_point_far_from_the_input_wins_below_the_bound(make: Any, cost: clvq.Cost) -> None:
    """Prototypes that are close in the feature that may change meet far away from the input."""
    answers = 0
    for k, apart in enumerate([1e-2, 3e-4, 1e-5, 1e-6, 1e-7]):
        rng = np.random.default_rng(k)
        X = np.array([[apart, 1.0], [0.0, 0.0]]) + rng.normal(size=2)
        model = make().fit(spread_around(X), ["a", "a", "b", "b"])
        x = X[1]
        explainer = clvq.Explainer(model, cost=cost, constraints=[clvq.Freeze(1)])
        cf = explainer.explain(x, target="a")
        answers += cf.status.has_answer
        assert cf.status in ("optimal", "feasible", "unknown")
        assert explainer.verify(cf) == cf.lower_bound
        batch = explainer.explain_batch([x, x], target="a")
        assert batch.status[0] == cf.status
        assert batch.lower_bound[0] == cf.lower_bound
        where = (1 + apart**2) / (2 * apart)
        Y = np.array([[x[0] + where * (1 - share), x[1]] for share in np.logspace(-16, -1, 400)])
        for y in Y[model.predict(Y) == "a"][-3:]:  # the cheapest ones
            if model.predict([y])[0] == "a":
                assert cost.value(y - x) >= cf.lower_bound
    assert answers >= 3


def test_where_a_cost_limits_nothing_no_bound_is_claimed() -> None:
    """At no cost a row can go to where `predict` rounds as it likes."""
    X = spread_around(np.array([[0.0, 0.0], [0.0, 2.0]]))
    model = NearestCentroid().fit(X, ["a", "a", "b", "b"])
    flat = clvq.Mahalanobis([[0.0, 0.0], [0.0, 1.0]])
    cf = clvq.Explainer(model, cost=flat).explain([0.0, 0.0], target="b")
    assert cf.status == "feasible"
    assert cf.lower_bound == 0
    limited = clvq.Explainer(model, cost=flat, constraints=[clvq.Bounds(0, -9, 9)])
    assert limited.explain([0.0, 0.0], target="b").status == "optimal"
    batch = limited.explain_batch([[0.0, 0.0], [1.0, -1.0]], target="b")
    assert batch.status.tolist() == ["optimal", "optimal"]


@pytest.mark.parametrize("seed", range(10))
def test_steps_in_single_precision_are_read_as_they_compute(seed: int) -> None:
    """PCA takes the image of its mean off, which it computes in the precision of its parameters."""
    rng = np.random.default_rng(seed)
    y, d = np.arange(30) % 2, 3
    X = rng.normal(size=(30, d)) + 3 * y[:, None] + 1000.0 * rng.choice([-1, 1], size=d)
    X = X.astype(np.float32)
    X[:, 1], X[:, 2] = 1e6, X[:, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about components without any variance
        pipeline = make_pipeline(PCA(), NearestCentroid()).fit(X, y)
    explainer, x = clvq.Explainer(pipeline, clvq.Euclidean()), X[0].astype(float)
    for target in (0, 1):
        cf = explainer.explain(x, target=target)
        assert cf.status.has_answer
        assert pipeline.predict(cf.x[None, :])[0] == target
        for share in (1e-4, 1e-5, 1e-6, 1e-7):
            nearer = x + (cf.x - x) * (1.0 - share)
            if pipeline.predict(nearer[None, :])[0] == target:
                assert clvq.Euclidean().value(nearer - x) >= cf.lower_bound


@pytest.mark.parametrize("seed", [*range(12), 118])
def test_shown_rows_are_confirmed_by_the_users_own_predict(seed: int) -> None:
    """Rows of whole numbers and a scaler: ties of neighbours are decided by rounding."""
    rng = np.random.default_rng(seed)
    X = np.unique(rng.integers(-2, 3, size=(8, 2)), axis=0).astype(float)
    y = rng.permutation(np.arange(len(X)) % 2)
    model = make_pipeline(StandardScaler(), KNeighborsClassifier(1, algorithm="brute")).fit(X, y)
    explainer = clvq.Explainer(model)
    for x in X:
        cf = explainer.explain(x)
        if cf.status.has_answer:
            assert model.predict(cf.shown.values[None, :])[0] in cf.target


@pytest.mark.parametrize("seed", seeds(10, quick=3))
@pytest.mark.parametrize("make", [NearestCentroid, lambda: KNeighborsClassifier(1)])
def test_bounds_of_a_row_do_not_depend_on_its_company(make: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = 1e6 + np.round(rng.normal(size=(12, 7)), 3)
    explainer = clvq.Explainer(make().fit(X, np.arange(12) % 3))
    for size in (1, 2, 3, 7, 12):
        batch = explainer.explain_batch(X[:size])
        for i in range(size):
            alone = explainer.explain(X[i])
            assert batch.lower_bound[i] == alone.lower_bound
            assert batch.cost[i] == alone.cost

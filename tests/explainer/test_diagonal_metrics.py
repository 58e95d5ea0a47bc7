"""Diagonal metrics as vectors: the same as matrices, in memory that grows with the features."""

from __future__ import annotations

import io
import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load as load_tensors
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

import counterlvq as clvq
from counterlvq.adapters import as_prototype_model
from counterlvq.pipelines import TableModel, read_transformer
from tests.support.oracles import Absolute, Question, Squared, exact_distance, optimal_cost
from tests.support.quick import some

Draw = np.random.Generator


def drawn(seed: int) -> tuple[Draw, np.ndarray, np.ndarray, np.ndarray]:
    """Prototypes of three classes, the diagonal of a metric with a zero now and then, and rows."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 6))
    W = rng.normal(size=(6, d))
    f = rng.uniform(0.2, 3.0, d) * rng.choice([-1.0, 1.0], d)
    if seed % 4 == 1:
        f[0] = 0.0
    if seed % 4 == 2:
        W = np.round(2 * W)  # ties
    return rng, W, f, rng.normal(size=(8, d))


LABELS = [0, 1, 2, 0, 1, 2]
OFFSETS = [None, [0.0, 0.5, 0.1, 0.0, 2.0, 1 / 3]]
COSTS = {"absolute": clvq.Manhattan(), "squared": clvq.Euclidean()}


# --- the model ----------------------------------------------------------------------------------


@pytest.mark.parametrize("offsets", OFFSETS, ids=["", "offsets"])
def test_distances_are_those_of_the_matrix(offsets: Any) -> None:
    for seed in range(40):
        _, W, f, X = drawn(seed)
        vector = clvq.PrototypeModel(W, LABELS, f, offsets=offsets)
        matrix = clvq.PrototypeModel(W, LABELS, np.diag(f), offsets=offsets)
        assert np.array_equal(vector.omegas, f)
        assert not vector.is_local
        assert np.array_equal(vector.shared_factor, matrix.shared_factor)
        assert np.allclose(vector.distances(X), matrix.distances(X), rtol=1e-13, atol=1e-14)
        assert np.array_equal(vector.predict(X), matrix.predict(X))
        scores = vector.distances(X)
        errors = vector.distance_errors(X, scores)
        for i, x in enumerate(X):
            for k in range(len(W)):
                exact = exact_distance(W[k], np.diag(f), x)
                exact += Fraction(0 if offsets is None else float(offsets[k]))
                assert vector.exact_distance(x, k) == exact
                assert abs(Fraction(float(scores[i, k])) - exact) <= Fraction(float(errors[i, k]))


@pytest.mark.parametrize("seeds", some([range(15), range(15, 60)], quick=1), ids=str)
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_close_calls_are_decided_exactly(offset: float, seeds: range) -> None:
    """Rows half-way between prototypes, as floats have them: fractions say who is nearer."""
    for seed in seeds:
        rng, W, f, _ = drawn(seed)
        W = W + offset
        X = (W[rng.integers(6, size=30)] + W[rng.integers(6, size=30)]) / 2
        X[::2] = np.nextafter(X[::2], np.inf)
        model = clvq.PrototypeModel(W, LABELS, f)
        exact = [[exact_distance(w, np.diag(f), x) for w in W] for x in X]
        assert model.nearest(X).tolist() == [row.index(min(row)) for row in exact]


def test_the_same_list_is_a_vector_or_rows() -> None:
    points = [[0.0, 0.0], [4.0, 0.0]]
    assert clvq.PrototypeModel(points, [0, 1], [2.0, 1.0]).omegas.shape == (2,)
    assert clvq.PrototypeModel(points, [0, 1], [[2.0, 1.0]]).omegas.shape == (1, 2)
    assert clvq.PrototypeModel([[0.0], [1.0]], [0, 1], [3]).distances([[0.5]])[0, 0] == 2.25
    with pytest.raises(clvq.InvalidInputError, match="omegas has 3 values; expected 2"):
        clvq.PrototypeModel(points, [0, 1], [1.0, 2.0, 3.0])
    with pytest.raises(clvq.InvalidInputError, match=r"omegas\[1\] is nan"):
        clvq.PrototypeModel(points, [0, 1], [1.0, np.nan])


# --- answers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", COSTS)
def test_answers_are_those_of_independent_oracles(kind: str) -> None:
    """Every class as target; the bound never exceeds what an oracle finds."""
    for seed in range(12):
        _, W, f, X = drawn(seed)
        d = W.shape[1]
        cost = Absolute(np.ones(d)) if kind == "absolute" else Squared(np.eye(d))
        vector = clvq.Explainer(clvq.PrototypeModel(W, LABELS, f), COSTS[kind])
        matrix = clvq.Explainer(clvq.PrototypeModel(W, LABELS, np.diag(f)), COSTS[kind])
        for target in range(3):
            cf = vector.explain(X[0], target=target)
            other = matrix.explain(X[0], target=target)
            expected = optimal_cost(Question(W, LABELS, np.diag(f), X[0], [target], cost))
            assert cf.status == other.status
            if not np.isfinite(expected):
                assert not cf.status.has_answer
                continue
            assert cf.status == "optimal"
            assert cf.cost == pytest.approx(expected, rel=1e-6, abs=1e-9)
            assert cf.lower_bound <= expected * (1 + 1e-9) + 1e-12
            assert cf.cost == pytest.approx(other.cost, rel=1e-7, abs=1e-10)
            assert vector.verify(cf) == cf.lower_bound
            assert vector.model.predict(cf.values[None, :])[0] == target


@pytest.mark.parametrize("kind", COSTS)
def test_constraints_offsets_and_batches_agree_with_the_matrix(kind: str) -> None:
    for seed in range(8):
        rng, W, f, X = drawn(seed)
        rules = [clvq.Freeze(1), clvq.Linear(rng.normal(size=W.shape[1]), "<=", 3.0)]
        found = []
        for omegas in (f, np.diag(f)):
            model = clvq.PrototypeModel(W, LABELS, omegas, offsets=OFFSETS[1])
            found.append(clvq.Explainer(model, COSTS[kind], rules).explain_batch(X))
        vector, matrix = found
        assert vector.status.tolist() == matrix.status.tolist()
        assert np.allclose(vector.cost, matrix.cost, rtol=1e-6, atol=1e-9, equal_nan=True)
        assert np.allclose(vector.lower_bound, matrix.lower_bound, rtol=1e-6, atol=1e-9)


def test_whole_numbers_and_levels_agree_with_the_matrix() -> None:
    """Cells as forms: columns on a grid, and a column of levels."""
    features = clvq.Features(["x0", clvq.Feature("x1", "whole"), clvq.Feature("x2", levels=[0, 1])])
    for seed in range(6):
        rng = np.random.default_rng(seed)
        W, f = rng.normal(size=(4, 3)) * 2, rng.uniform(0.5, 2.0, 3)
        x = np.array([rng.normal(), 1.0, 0.0])
        answers = [
            clvq.Explainer(clvq.PrototypeModel(W, [0, 1, 0, 1], omegas), features=features).explain(
                x
            )
            for omegas in (f, np.diag(f))
        ]
        assert answers[0].status == answers[1].status
        assert answers[0].cost == pytest.approx(answers[1].cost, rel=1e-6, abs=1e-9)


# --- files and readers --------------------------------------------------------------------------


def through_a_file(model: Any) -> tuple[Any, bytes]:
    file = io.BytesIO()
    clvq.save(model, file)
    return clvq.load(io.BytesIO(file.getvalue())), file.getvalue()


@pytest.mark.parametrize("offsets", [None, [0.0, 1.0]], ids=["", "offsets"])
def test_a_file_keeps_the_vector_and_older_readers_are_told(offsets: Any) -> None:
    model = clvq.PrototypeModel(np.eye(2), ["a", "b"], [1 / 3, 2.0], offsets=offsets)
    again, whole = through_a_file(model)
    assert np.array_equal(again.omegas, model.omegas)
    assert load_tensors(whole)["omega.0"].shape == (2,)
    assert b'\\"version\\": 2' in whole or b'\\"version\\":2' in whole
    old = whole.replace(b'\\"version\\":2', b'\\"version\\":1')
    old = old.replace(b'\\"version\\": 2', b'\\"version\\": 1')
    with pytest.raises(clvq.ModelFileError, match=r"omega\.0 has 1 dimension"):
        clvq.load(io.BytesIO(old))
    matrix = clvq.PrototypeModel(np.eye(2), ["a", "b"], np.diag([1 / 3, 2.0]))
    assert b'\\"version\\":1' in (raw := through_a_file(matrix)[1]) or b'\\"version\\": 1' in raw


def test_wide_scalers_are_stored_as_vectors() -> None:
    rng = np.random.default_rng(0)
    for d in (5, 2000):
        X = rng.normal(size=(6, d)) * 3 + 1
        pipeline = make_pipeline(StandardScaler(), NearestCentroid()).fit(X, [0, 1] * 3)
        model, whole = through_a_file(TableModel.from_pipeline(pipeline))
        assert load_tensors(whole)["table.numbers"].shape == ((d, d) if d == 5 else (d,))
        assert np.array_equal(model.predict(X), pipeline.predict(X))
        assert np.allclose(
            model.table_map.transform(X), StandardScaler().fit_transform(X), atol=1e-12
        )
        assert through_a_file(model)[1] == whole


def test_weights_of_neighbours_are_read_as_vectors() -> None:
    rng = np.random.default_rng(0)
    X, V = rng.normal(size=(9, 4)), rng.uniform(0.5, 2.0, 4)
    for name, given, factor in (
        ("seuclidean", {"V": V}, 1 / np.sqrt(V)),
        ("minkowski", {"w": V}, np.sqrt(V)),
    ):
        for algorithm in ("brute", "ball_tree"):
            model = KNeighborsClassifier(
                1, metric=name, metric_params={**given}, algorithm=algorithm
            )
            read = as_prototype_model(model.fit(X, np.arange(9) % 3))
            assert np.array_equal(read.omegas, factor)
            cf = clvq.Explainer(model).explain(X[0], target=1)
            question = Question(
                X, (np.arange(9) % 3).tolist(), np.diag(factor), X[0], [1], Absolute(np.ones(4))
            )
            assert cf.status == "optimal"
            assert cf.cost == pytest.approx(optimal_cost(question), rel=1e-6)


# --- pipelines ----------------------------------------------------------------------------------

SCALERS = [StandardScaler(), MinMaxScaler(), MaxAbsScaler(), RobustScaler()]


@pytest.mark.parametrize("scaler", SCALERS, ids=repr)
def test_scalers_keep_vectors_and_say_what_matrices_say(scaler: Any) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 4)) * [1.0, 1e3, 1e-3, 1.0] + [0.0, 5.0, 1e3, -2.0]
    fitted = scaler.fit(X)
    table_map = read_transformer(fitted)
    Z = fitted.transform(X)
    assert table_map.diagonal is not None
    assert np.allclose(table_map.image(X), Z, rtol=1e-8, atol=1e-8)  # their own rounding
    for omegas in (None, rng.uniform(0.5, 2.0, 4)):
        behind = clvq.PrototypeModel(Z[:4], [0, 1, 0, 1], omegas)
        stated = table_map.pulled_back(behind)
        assert stated.diagonal is not None
        dense = clvq.PrototypeModel(Z[:4], [0, 1, 0, 1], np.diag(behind.column_lengths))
        other = table_map.pulled_back(dense)
        assert other.diagonal is None
        assert np.allclose(stated.shared_factor, other.shared_factor, rtol=1e-12, atol=0)
        assert np.allclose(stated.prototypes, other.prototypes, rtol=1e-12, atol=1e-12)
        assert np.allclose(stated.distances(X), behind.distances(Z), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", COSTS)
def test_answers_behind_scalers_are_those_of_independent_oracles(kind: str) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 3)) * [1.0, 30.0, 0.1] + [0.0, 5.0, 10.0]
    y = np.arange(40) % 3
    for scaler in SCALERS:
        pipeline = make_pipeline(scaler, NearestCentroid()).fit(X, y)
        explainer = clvq.Explainer(pipeline, COSTS[kind])
        assert explainer.model.diagonal is not None
        W = scaler.inverse_transform(pipeline[-1].centroids_)
        omega = np.diag(1 / scaler.scale_)
        if isinstance(scaler, MinMaxScaler):
            omega = np.diag(scaler.scale_)
        cost = Absolute(np.ones(3)) if kind == "absolute" else Squared(np.eye(3))
        for target in range(3):
            cf = explainer.explain(X[0], target=target)
            expected = optimal_cost(Question(W, [0, 1, 2], omega, X[0], [target], cost))
            assert cf.status == "optimal"
            assert cf.cost == pytest.approx(expected, rel=1e-6, abs=1e-9)
            assert cf.lower_bound <= expected * (1 + 1e-9) + 1e-12
            assert pipeline.predict(cf.values[None, :])[0] == target


def test_vectors_become_matrices_where_columns_are_mixed_or_chosen() -> None:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(20, 4)), np.arange(20) % 2
    chosen = ColumnTransformer([("some", StandardScaler(), [2, 0])])
    for step in (make_pipeline(StandardScaler(), PCA(2)), chosen):
        table_map = read_transformer(step.fit(X, y))
        assert table_map.diagonal is None
        assert np.allclose(table_map.transform(X), step.transform(X), atol=1e-12)
    every = ColumnTransformer([("all", StandardScaler(), [0, 1, 2, 3])]).fit(X)
    assert read_transformer(every).diagonal is not None
    weighted = KNeighborsClassifier(1, metric="seuclidean", metric_params={"V": [1.0, 4.0]})
    pipeline = make_pipeline(StandardScaler(), PCA(2), weighted).fit(X, y)
    assert clvq.Explainer(pipeline).explain(X[0]).status == "optimal"


# --- many features ------------------------------------------------------------------------------

WIDE = """
import resource, sys
import numpy as np
import counterlvq as clvq
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

d, gap = int(sys.argv[1]), float(sys.argv[2])
rng = np.random.default_rng(0)
X = rng.normal(size=(6, d)) * rng.uniform(0.5, 2.0, d)
V, y = rng.uniform(0.5, 2.0, d), [0, 1] * 3
weighted = KNeighborsClassifier(1, algorithm="brute", metric="seuclidean", metric_params={"V": V})
scaled = make_pipeline(StandardScaler(), NearestCentroid())
own = clvq.PrototypeModel(X[:2], [0, 1], 1 / np.sqrt(V), offsets=[0.0, 1.0])
cases = (
    (weighted.fit(X[:2], [0, 1]), X[:2], 1 / V, 0.0),
    (scaled.fit(X, y), None, 1 / scaled[0].var_, 0.0),
    (own, X[:2], 1 / V, 1.0),
)
for model, W, weights, offset in cases:
    if W is None:
        W = scaled[0].inverse_transform(scaled[-1].centroids_)
    x = W[0] + 0.1 * rng.normal(size=d)
    normal = 2.0 * weights * (W[1] - W[0])  # nearer to the second: normal @ (y - x) >= behind
    behind = (weights * (W[1] - W[0])) @ (W[0] + W[1] - 2.0 * x) + offset
    for cost in (clvq.Manhattan(), clvq.Euclidean()):
        by_hand = behind / np.abs(normal).max()
        if isinstance(cost, clvq.Euclidean):
            by_hand = behind**2 / (normal @ normal)
        cf = clvq.Explainer(model, cost).explain(x)
        assert cf.status.has_answer, cf.reason
        assert abs(cf.cost / by_hand - 1) < gap, (cost, cf.cost, by_hand)
        assert by_hand * (1 - gap) < cf.lower_bound <= by_hand * (1 + 1e-9), (cf, by_hand)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.machine
@pytest.mark.parametrize(
    ("d", "gap", "megabytes"),
    some([(20_000, 1e-3, 2000), (100_000, 3e-2, 2000)], quick=1),
)
def test_many_features_are_answered_in_little_memory(d: int, gap: float, megabytes: int) -> None:
    """By hand: the way to the bisector of two prototypes, straight or along one feature."""
    done = subprocess.run(
        [sys.executable, "-c", WIDE, str(d), str(gap)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) < megabytes  # a matrix would take 3,200 or 80,000

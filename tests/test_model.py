"""The model: distances by the definition, the first of two equals, and errors that help."""

from __future__ import annotations

import dataclasses
import pickle
import tracemalloc
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import counterlvq as clvq

DIAGONAL = np.diag([1.0, 2.0, 3.0])
NAN, INF = float("nan"), float("inf")


def by_loops(prototypes: Any, omegas: list[Any], X: Any) -> np.ndarray:
    """|omega_k (x - w_k)|^2, one number at a time."""
    out = np.zeros((len(X), len(prototypes)))
    for i, x in enumerate(X):
        for k, prototype in enumerate(prototypes):
            for row in omegas[k]:
                projected = 0.0
                for j in range(len(x)):
                    projected += row[j] * (x[j] - prototype[j])
                out[i, k] += projected**2
    return out


def matrices() -> dict[str, Any]:
    """Every way to state a metric, for five prototypes in four dimensions."""
    rng = np.random.default_rng(0)
    ranks = [1, 4, 2, 7, 3]
    return {
        "none": None,
        "square": rng.normal(size=(4, 4)),
        "one row": rng.normal(size=(1, 4)),
        "rank deficient": np.outer([1.0, 2.0, -1.0], rng.normal(size=4)),
        "more rows than features": rng.normal(size=(9, 4)),
        "zero": np.zeros((2, 4)),
        "local, equal shapes": rng.normal(size=(5, 2, 4)),
        "local, different ranks": [rng.normal(size=(r, 4)) for r in ranks],
        "local, lists": [rng.normal(size=(r, 4)).tolist() for r in ranks],
    }


# --- distances ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", matrices())
def test_distances_follow_the_definition(kind: str) -> None:
    rng = np.random.default_rng(1)
    prototypes, X = rng.normal(size=(5, 4)), rng.normal(size=(6, 4))
    omegas = matrices()[kind]

    model = clvq.PrototypeModel(prototypes, [0, 1, 2, 1, 0], omegas=omegas)

    each = [np.eye(4)] * 5 if omegas is None else omegas
    if not model.is_local and omegas is not None:
        each = [omegas] * 5
    expected = by_loops(prototypes, each, X)
    np.testing.assert_allclose(model.distances(X), expected, rtol=1e-12, atol=1e-14)
    assert np.array_equal(model.nearest(X), expected.argmin(axis=1))
    assert model.is_local == kind.startswith("local")


def test_distances_of_one_row_and_of_many_agree() -> None:
    rng = np.random.default_rng(2)
    model = clvq.PrototypeModel(rng.normal(size=(7, 3)), [0, 1] * 3 + [2], rng.normal(size=(2, 3)))
    X = rng.normal(size=(40, 3))

    together = model.distances(X)

    for i, row in enumerate(X):
        np.testing.assert_allclose(model.distances(row[None, :])[0], together[i], rtol=1e-13)


@pytest.mark.parametrize("offset", [1e6, 1e9, -1e12])
@pytest.mark.parametrize("omega", [None, [[0.7, 0.3], [0.1, 1.9]]])
def test_distances_keep_their_digits_far_from_the_origin(offset: float, omega: Any) -> None:
    near = np.array([[0.0, 0.25], [1.5, -0.5], [2.0, 3.75]])
    rows = np.array([[0.5, 0.5], [1.75, 2.0]])
    model = clvq.PrototypeModel(near + offset, [0, 1, 2], omegas=omega)

    exact = _exact_distances(near + offset, omega, rows + offset)

    np.testing.assert_allclose(model.distances(rows + offset), exact, rtol=1e-12)


def _exact_distances(prototypes: np.ndarray, omega: Any, X: np.ndarray) -> np.ndarray:
    """The definition in rational arithmetic, on the floats as they are."""
    rows = np.eye(prototypes.shape[1]) if omega is None else np.asarray(omega)
    out = np.zeros((len(X), len(prototypes)))
    for i, x in enumerate(X):
        for k, prototype in enumerate(prototypes):
            apart = [
                Fraction(float(a)) - Fraction(float(b)) for a, b in zip(x, prototype, strict=True)
            ]
            lifted = [
                sum((Fraction(float(o)) * a for o, a in zip(row, apart, strict=True)), Fraction(0))
                for row in rows
            ]
            out[i, k] = float(sum(v * v for v in lifted))
    return out


def test_memory_of_many_prototypes_grows_with_their_number_and_not_with_their_width() -> None:
    rows, prototypes, width = 100, 20_000, 8
    rng = np.random.default_rng(3)
    model = clvq.PrototypeModel(rng.normal(size=(prototypes, width)), np.arange(prototypes) % 10)
    X = rng.normal(size=(rows, width))
    model.predict(X[:1])  # what the model keeps for later is not counted
    answer = 8 * rows * prototypes

    assert _peak(lambda: model.distances(X)) < 2 * answer
    assert _peak(lambda: model.predict(X)) < 2 * answer
    assert np.array_equal(model.predict(X), np.argmin(model.distances(X), axis=1) % 10)


def test_memory_of_predict_does_not_grow_with_the_rows() -> None:
    rng = np.random.default_rng(4)
    model = clvq.PrototypeModel(rng.normal(size=(20_000, 8)), np.arange(20_000) % 3)
    X = rng.normal(size=(1_000, 8))
    model.predict(X[:1])

    everything = 8 * len(X) * 20_000

    assert _peak(lambda: model.predict(X)) < everything / 2


def test_memory_of_local_metrics_grows_like_that_of_a_shared_one() -> None:
    rng = np.random.default_rng(5)
    count, width = 500, 20
    omegas = rng.normal(size=(count, width, width))
    model = clvq.PrototypeModel(rng.normal(size=(count, width)), np.arange(count) % 2, omegas)
    X = rng.normal(size=(1_000, width))

    assert _peak(lambda: model.distances(X)) < 2 * 8 * len(X) * count


def _peak(work: Any) -> int:
    """Bytes held at the worst moment of `work`."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# --- labels and ties ----------------------------------------------------------------------------

ALPHABETS: dict[str, list[Any]] = {
    "int": [0, 1],
    "negative": [-3, -1],
    "gaps": [1000, 7],
    "float": [0.5, -2.0],
    "str": ["no", "a much longer yes"],
    "bool": [True, False],
}


@pytest.mark.parametrize("kind", ALPHABETS)
def test_labels_come_back_as_they_went_in(kind: str) -> None:
    first, second = ALPHABETS[kind]
    model = clvq.PrototypeModel([[0.0], [4.0], [9.0]], [first, second, first])

    said = model.predict([[1.0], [3.0], [10.0]])

    assert said.tolist() == [first, second, first]
    assert [type(label) for label in said.tolist()] == [type(first), type(second), type(first)]
    assert model.classes.tolist() == sorted([first, second])


def test_labels_may_be_objects_without_an_order() -> None:
    labels = np.array(["b", 2, None, 2], dtype=object)
    model = clvq.PrototypeModel([[0.0], [4.0], [9.0], [20.0]], labels)

    assert model.classes.tolist() == ["b", 2, None]
    assert model.predict([[5.0], [8.0], [-1.0]]).tolist() == [2, None, "b"]


def test_first_of_two_equals_wins() -> None:
    on_one_spot = clvq.PrototypeModel([[5.0], [1.0], [1.0]], ["far", "first", "second"])
    assert on_one_spot.predict([[1.0], [0.0]]).tolist() == ["first", "first"]

    midway = clvq.PrototypeModel([[4.0], [0.0]], ["right", "left"])
    assert midway.predict([[2.0]]).tolist() == ["right"]
    turned = clvq.PrototypeModel([[0.0], [4.0]], ["left", "right"])
    assert turned.predict([[2.0]]).tolist() == ["left"]


def test_first_wins_where_the_metric_sees_no_difference() -> None:
    model = clvq.PrototypeModel([[0.0, 5.0], [0.0, -5.0]], ["up", "down"], omegas=[[1.0, 0.0]])
    assert model.predict([[3.0, -5.0]]).tolist() == ["up"]


# --- what is kept -------------------------------------------------------------------------------


def test_equal_local_metrics_are_one_shared_metric() -> None:
    same = clvq.PrototypeModel(np.eye(3), [0, 1, 1], omegas=[DIAGONAL] * 3)
    assert not same.is_local
    assert np.array_equal(same.shared_factor, DIAGONAL)

    stacked = clvq.PrototypeModel(np.eye(3), [0, 1, 1], omegas=np.stack([DIAGONAL] * 3))
    assert not stacked.is_local

    one_differs = [DIAGONAL, DIAGONAL, DIAGONAL + 1e-12]
    assert clvq.PrototypeModel(np.eye(3), [0, 1, 1], omegas=one_differs).is_local


def test_local_model_has_no_shared_factor() -> None:
    model = clvq.PrototypeModel([[0.0], [1.0]], [0, 1], omegas=[[[1.0]], [[2.0]]])
    with pytest.raises(clvq.InvalidInputError, match="local metrics; there is no shared factor"):
        _ = model.shared_factor


def test_model_is_frozen_and_shares_no_memory_with_the_caller() -> None:
    prototypes, labels, omega = np.eye(2), np.array([0, 1]), np.eye(2)
    model = clvq.PrototypeModel(prototypes, labels, omegas=omega)
    before = model.distances([[0.3, 0.4]])
    prototypes[:], labels[:], omega[:] = 7.0, 7, 7.0

    assert np.array_equal(model.distances([[0.3, 0.4]]), before)
    assert model.labels.tolist() == [0, 1]
    for name in ("prototypes", "labels", "omegas", "classes", "center", "anchors"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(model, name)[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.labels = labels  # type: ignore[misc]


def test_local_omegas_are_read_only() -> None:
    model = clvq.PrototypeModel([[0.0], [1.0]], [0, 1], omegas=[[[1.0]], [[2.0]]])
    for omega in model.omegas:
        with pytest.raises(ValueError, match="read-only"):
            omega[0, 0] = 3.0


def test_pickled_model_predicts_the_same() -> None:
    model = clvq.PrototypeModel(np.eye(3), ["a", "b", "c"], omegas=DIAGONAL)
    X = np.random.default_rng(6).normal(size=(20, 3))

    again = pickle.loads(pickle.dumps(model))

    assert np.array_equal(again.distances(X), model.distances(X))
    assert again.predict(X).tolist() == model.predict(X).tolist()
    assert again.features == model.features


def test_repr_counts_what_there_is() -> None:
    shared = clvq.PrototypeModel(np.eye(3), [0, 1, 1])
    assert repr(shared) == "PrototypeModel(3 prototypes, 3 features, 2 classes, shared metric)"
    local = clvq.PrototypeModel(np.eye(2), [0, 1], omegas=[np.eye(2), 2 * np.eye(2)])
    assert repr(local) == "PrototypeModel(2 prototypes, 2 features, 2 classes, local metric)"


def test_features_are_numbered_unless_they_are_named() -> None:
    assert clvq.PrototypeModel(np.eye(2), [0, 1]).features.names == ("x0", "x1")
    named = clvq.PrototypeModel(np.eye(2), [0, 1], feature_names=["age", "income"])
    assert named.features.names == ("age", "income")


# --- errors -------------------------------------------------------------------------------------


def with_value(value: float, at: tuple[int, ...], shape: tuple[int, ...]) -> np.ndarray:
    array = np.ones(shape)
    array[at] = value
    return array


def objects(*values: Any) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


PROTOTYPES = np.arange(12.0).reshape(4, 3)
LABELS = [0, 1, 1, 0]
BAD_MODELS: dict[str, tuple[dict[str, Any], str]] = {
    "NaN in prototypes": (
        {"prototypes": with_value(NAN, (2, 1), (4, 3))},
        "prototypes[2, 1] is nan (1 such value(s) in all); expected finite numbers. "
        "Fill in or remove missing values first.",
    ),
    "infinite prototypes": (
        {"prototypes": with_value(-INF, (0, 2), (4, 3))},
        "prototypes[0, 2] is -inf (1 such value(s) in all)",
    ),
    "several NaN": (
        {"prototypes": [[1.0, NAN, NAN], [NAN, 1, 1], [1, 1, 1], [1, 1, 1]]},
        "prototypes[0, 1] is nan (3 such value(s) in all)",
    ),
    "one-dimensional prototypes": (
        {"prototypes": [1.0, 2.0, 3.0]},
        "prototypes has 1 dimension(s) and shape (3,); expected a two-dimensional array",
    ),
    "no prototypes": (
        {"prototypes": np.zeros((0, 3))},
        "prototypes is empty (shape (0, 3)); expected at least one row and one column.",
    ),
    "words in prototypes": (
        {"prototypes": [["red", 1, 2]] * 4},
        "prototypes cannot be read as an array of numbers",
    ),
    "ragged prototypes": (
        {"prototypes": [[1.0, 2.0], [3.0], [4.0], [5.0]]},
        "prototypes cannot be read as an array of numbers",
    ),
    "too few labels": (
        {"labels": [0, 1]},
        "labels has shape (2,); expected (4,), one label per prototype.",
    ),
    "labels in a table": (
        {"labels": [[0], [1], [1], [0]]},
        "labels has shape (4, 1); expected (4,), one label per prototype.",
    ),
    "one class": (
        {"labels": ["yes"] * 4},
        "every prototype carries the label 'yes'; expected at least two classes. "
        "With one class no decision can change.",
    ),
    "one class of objects": (
        {"labels": np.array([None] * 4, dtype=object)},
        "every prototype carries the label None; expected at least two classes.",
    ),
    "NaN label": (
        {"labels": [0.0, NAN, 1.0, 0.0]},
        "labels[1] is NaN; expected a label for each prototype.",
    ),
    "NaN in objects": (
        {"labels": np.array(["a", "b", NAN, "b"], dtype=object)},
        "labels[2] is NaN; expected a label for each prototype.",
    ),
    "labels without a hash": (
        {"labels": objects([1], [2], [1], [2])},
        "labels[0] is [1] of type list; expected labels that hash, such as numbers or strings.",
    ),
    "narrow omega": (
        {"omegas": np.ones((2, 2))},
        "omegas has 2 columns; expected 3, one per feature.",
    ),
    "NaN in omega": (
        {"omegas": with_value(NAN, (1, 0), (2, 3))},
        "omegas[1, 0] is nan (1 such value(s) in all)",
    ),
    "empty omega": (
        {"omegas": np.zeros((0, 3))},
        "omegas is empty (shape (0, 3)); expected at least one row and one column.",
    ),
    "flat omega": (
        {"omegas": [1.0, 2.0]},
        "omegas has 2 values; expected 3, one per feature.",
    ),
    "too few omegas": (
        {"omegas": [np.eye(3)] * 3},
        "omegas holds 3 matrices; expected 4, one per prototype, or a single matrix shared by "
        "all. Repeat a matrix per class for each prototype of it.",
    ),
    "infinity in one omega": (
        {"omegas": [np.eye(3), np.eye(3), with_value(INF, (0, 2), (1, 3)), np.eye(3)]},
        "omegas[2][0, 2] is inf (1 such value(s) in all)",
    ),
    "ragged omega": (
        {"omegas": [[[1.0, 2.0, 3.0], [4.0]], np.eye(3), np.eye(3), np.eye(3)]},
        "omegas[0] cannot be read as an array of numbers",
    ),
    "too few names": (
        {"feature_names": ["a", "b"]},
        "feature_names has 2 names; expected 3, one per column of prototypes.",
    ),
    "repeated names": (
        {"feature_names": ["a", "b", "a"]},
        "feature_names repeats 'a'; expected one distinct name per feature.",
    ),
    "numbers for names": (
        {"feature_names": ["a", 1, "c"]},
        "feature_names holds 1 of type int; expected strings only. "
        "Convert column labels with str() first.",
    ),
    "one string for names": (
        {"feature_names": "abc"},
        "feature_names is the string 'abc'; expected a list of names, one per feature.",
    ),
}


@pytest.mark.parametrize("kind", BAD_MODELS)
def test_bad_model_is_refused_in_words(kind: str) -> None:
    changed, message = BAD_MODELS[kind]
    with pytest.raises(clvq.InvalidInputError) as raised:
        clvq.PrototypeModel(**{"prototypes": PROTOTYPES, "labels": LABELS, **changed})
    assert message in str(raised.value)


def test_omega_of_the_wrong_width_is_named_by_its_place() -> None:
    omegas = [np.eye(9)] * 3 + [np.ones((2, 7))]
    with pytest.raises(clvq.InvalidInputError) as raised:
        clvq.PrototypeModel(np.eye(4, 9), LABELS, omegas=omegas)
    assert str(raised.value) == "omegas[3] has 7 columns; expected 9, one per feature."


BAD_ROWS: dict[str, tuple[Any, str]] = {
    "narrow": ([[1.0, 2.0]], "X has 2 columns; expected 3, one per feature."),
    "wide": (np.ones((5, 4)), "X has 4 columns; expected 3, one per feature."),
    "flat": ([1.0, 2.0, 3.0], "X has 1 dimension(s) and shape (3,); expected a two-dimensional"),
    "empty": (np.zeros((0, 3)), "X is empty (shape (0, 3)); expected at least one row"),
    "NaN": ([[1, 2, 3], [1, NAN, 3]], "X[1, 1] is nan (1 such value(s) in all)"),
    "infinite": ([[1, 2, INF], [1, NAN, 3]], "X[0, 2] is inf (2 such value(s) in all)"),
    "words": ([["a", "b", "c"]], "X cannot be read as an array of numbers"),
    "None": ([[1.0, None, 2.0]], "X[0, 1] is nan (1 such value(s) in all)"),
}


@pytest.mark.parametrize("kind", BAD_ROWS)
@pytest.mark.parametrize("ask", ["distances", "predict", "nearest"])
def test_bad_rows_are_refused_in_words(ask: str, kind: str) -> None:
    rows, message = BAD_ROWS[kind]
    model = clvq.PrototypeModel(PROTOTYPES, LABELS)
    with pytest.raises(clvq.InvalidInputError) as raised:
        getattr(model, ask)(rows)
    assert message in str(raised.value)


# --- names --------------------------------------------------------------------------------------


def test_features_are_found_by_name_and_by_position() -> None:
    features = clvq.Features(["age", "income", "debt"])
    assert [features.position(key) for key in ("debt", 0, np.int64(1), -1)] == [2, 0, 1, 2]
    assert len(features) == 3


BAD_KEYS: dict[str, tuple[Any, str]] = {
    "misspelt": (
        "incme",
        "feature 'incme' does not exist; expected one of: age, income, debt. "
        "Did you mean 'income'?",
    ),
    "unlike any": ("zzz", "feature 'zzz' does not exist; expected one of: age, income, debt."),
    "too far": (3, "feature 3 does not exist; expected a position from 0 to 2, for 3 features."),
    "too far back": (-4, "feature -4 does not exist; expected a position from 0 to 2"),
    "fraction": (1.0, "feature 1.0 has type float; expected a feature name or a position"),
    "nothing": (None, "feature None has type NoneType; expected a feature name or a position"),
}


@pytest.mark.parametrize("kind", BAD_KEYS)
def test_unknown_feature_is_refused_in_words(kind: str) -> None:
    key, message = BAD_KEYS[kind]
    with pytest.raises(clvq.UnknownFeatureError) as raised:
        clvq.Features(["age", "income", "debt"]).position(key)
    assert message in str(raised.value)


def test_long_list_of_features_is_cut_in_the_error() -> None:
    with pytest.raises(clvq.UnknownFeatureError) as raised:
        clvq.Features.numbered(30).position("nothing like it")
    assert str(raised.value).endswith("expected one of: x0, x1, x2, x3, x4, x5, x6, x7, ....")


# --- offsets ------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["none", "shared", "local"])
def test_offsets_are_added_to_squared_distances(metric: str) -> None:
    rng = np.random.default_rng(4)
    points, X, offsets = rng.normal(size=(3, 2)), rng.normal(size=(9, 2)), [0.5, 0.0, 2.0]
    omegas = {"none": None, "shared": [[1.0, 2.0]], "local": list(rng.normal(size=(3, 2, 2)))}
    plain = clvq.PrototypeModel(points, ["a", "b", "c"], omegas[metric])
    model = clvq.PrototypeModel(points, ["a", "b", "c"], omegas[metric], offsets=offsets)
    assert np.allclose(model.distances(X), plain.distances(X) + offsets)
    assert model.predict(X).tolist() == ["abc"[k] for k in (plain.distances(X) + offsets).argmin(1)]


def test_offsets_decide_what_a_counterfactual_costs() -> None:
    # Equal scores where y^2 + 5 = (4 - y)^2, that is at y = 11/8.
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], offsets=[5.0, 0.0])
    for cost, expected in ((clvq.Manhattan(), 11 / 8), (clvq.Euclidean(), (11 / 8) ** 2)):
        cf = clvq.Explainer(model, cost=cost).explain([0.0], target="yes")
        assert cf.status == "optimal"
        assert cf.cost == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ([1.0], "offsets has 1 values; expected 2, one per prototype."),
        ([0.0, -1.0], "offsets[1] is -1; expected numbers of at least 0."),
        ([0.0, np.nan], "offsets[1] is nan"),
    ],
)
def test_bad_offsets_are_refused_in_words(offsets: list[float], message: str) -> None:
    with pytest.raises(clvq.InvalidInputError) as raised:
        clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], offsets=offsets)
    assert message in str(raised.value)

"""sklvq: labels by position, ties by class, distances by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq.adapters import as_prototype_model
from tests.support.fakes import fake, files, fitted, stored

PROTOTYPES = np.array([[4.0, 0.0], [0.0, 0.0], [2.0, 3.0]])


def model(name: str = "GLVQ", **attributes: Any) -> Any:
    given = {
        "prototypes_": PROTOTYPES,
        "prototypes_labels_": np.array([1, 0, 1]),
        "classes_": np.array(["no", "yes"]),
    }
    return fake("sklvq.models._glvq", name, **(given | attributes))


@pytest.mark.parametrize("name", [name for name in files() if name.startswith("sklvq")])
def test_every_stored_model_predicts_as_it_did(name: str) -> None:
    arrays = stored(name)
    read = as_prototype_model(fitted(name))
    assert np.array_equal(read.predict(arrays["X_test"]), arrays["predict_test"])
    assert read.is_local == name.startswith("sklvq_iris_lgmlvq")


def test_labels_are_positions_in_classes() -> None:
    read = as_prototype_model(model())
    assert read.predict(PROTOTYPES).tolist() == ["yes", "no", "yes"]


def test_a_tie_goes_to_the_class_that_comes_first() -> None:
    read = as_prototype_model(model())
    assert read.predict([[2.0, 0.0]]).tolist() == ["no"]  # halfway between 0 and 4
    assert read.labels.tolist() == ["no", "yes", "yes"]
    assert read.prototypes.tolist() == PROTOTYPES[[1, 0, 2]].tolist()


def test_local_matrices_keep_to_their_prototypes_when_these_are_ordered() -> None:
    omega = np.stack([np.eye(2) * k for k in (1.0, 2.0, 3.0)])
    read = as_prototype_model(model("LGMLVQ", omega_=omega, relevance_localization="prototypes"))
    assert [matrix[0, 0] for matrix in read.omegas] == [2.0, 1.0, 3.0]


def test_matrices_per_class_follow_the_label() -> None:
    omega = np.stack([np.eye(2), 5 * np.eye(2)])
    read = as_prototype_model(model("LGMLVQ", omega_=omega, relevance_localization="class"))
    assert [matrix[0, 0] for matrix in read.omegas] == [1.0, 5.0, 5.0]


def test_the_root_of_the_distance_keeps_the_order() -> None:
    rows = np.random.default_rng(0).normal(size=(100, 2))
    plain = as_prototype_model(model(distance_type="euclidean"))
    assert np.array_equal(plain.predict(rows), as_prototype_model(model()).predict(rows))


def test_distances_may_be_given_as_the_classes_of_the_library() -> None:
    own = type("SquaredEuclidean", (), {"__module__": "sklvq.distances._squared_euclidean"})
    assert as_prototype_model(model(distance_type=own)).omegas is None


@pytest.mark.parametrize("root", [False, True])
def test_the_distance_for_gaps_squares_the_sum_of_differences(root: bool) -> None:
    kind = "euclidean" if root else "squared-euclidean"
    read = as_prototype_model(model(force_all_finite="allow-nan", distance_type=kind))
    rows = np.random.default_rng(1).normal(scale=4, size=(300, 2))
    expected = np.stack([np.nansum(rows - w, axis=1) ** 2 for w in PROTOTYPES], axis=1)
    assert np.allclose(read.distances(rows)[:, [1, 0, 2]], expected, rtol=1e-9)


def test_with_matrices_the_distance_for_gaps_is_the_usual_one() -> None:
    omega = np.array([[1.0, 2.0]])
    read = as_prototype_model(model("GMLVQ", omega_=omega, force_all_finite="allow-nan"))
    assert np.array_equal(read.omegas, omega)


@pytest.mark.parametrize(
    ("distance", "shown"),
    [
        ("cosine", "'cosine'"),
        (type("Manhattan", (), {}), "'Manhattan'"),
        (type("SquaredEuclidean", (), {"__module__": "mine"}), "'SquaredEuclidean'"),
    ],
)
def test_other_distances_are_refused(distance: Any, shown: str) -> None:
    with pytest.raises(clvq.NotSupportedError) as raised:
        as_prototype_model(model(distance_type=distance))
    assert str(raised.value) == (
        f"GLVQ of sklvq has the distance_type {shown}; expected 'squared-euclidean' or "
        f"'euclidean'. Only a distance that is quadratic in the input, or orders prototypes like "
        f"one, can be read."
    )


@pytest.mark.parametrize(
    ("name", "attribute"),
    [("GLVQ", "prototypes_"), ("GMLVQ", "omega_"), ("LGMLVQ", "omega_"), ("GLVQ", "classes_")],
)
def test_unfitted_models_are_to_be_fitted_first(name: str, attribute: str) -> None:
    with pytest.raises(clvq.InvalidInputError, match=f"this {name} has no `{attribute}`, so it is"):
        as_prototype_model(model(name, **{attribute: None}))


@pytest.mark.parametrize("positions", [[0, 1, 2], [-1, 0, 1], [0.0, 1.0, 0.0]])
def test_labels_that_are_no_positions_are_refused(positions: list[Any]) -> None:
    with pytest.raises(clvq.InvalidInputError) as raised:
        as_prototype_model(model(prototypes_labels_=np.array(positions)))
    assert str(raised.value) == (
        "`prototypes_labels_` of this GLVQ does not hold positions in its `classes_`, 0 to 1; fit "
        "it again."
    )


def test_a_number_of_matrices_that_does_not_fit_is_refused() -> None:
    with pytest.raises(clvq.InvalidInputError) as raised:
        as_prototype_model(model("LGMLVQ", omega_=np.ones((2, 2, 2))))
    assert str(raised.value) == (
        "`omega_` of this LGMLVQ has shape (2, 2, 2); expected 3 matrices, one per prototype. Fit "
        "it again."
    )

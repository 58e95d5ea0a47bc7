"""sklearn-lvq: eight models, each read as its `predict` computes."""

from __future__ import annotations

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq.adapters import as_prototype_model
from tests.support.fakes import fake, files, fitted, stored

W = np.array([[0.0, 0.0], [2.0, 1.0], [-1.0, 3.0]])
C = np.array(["b", "a", "b"])


def model(name: str, **attributes: object) -> object:
    given = {"w_": W, "c_w_": C, "classes_": np.array(["a", "b"])} | attributes
    return fake("sklearn_lvq.some_file", name, **given)


def rows(n: int = 200) -> np.ndarray:
    return np.random.default_rng(0).normal(scale=3, size=(n, 2))


@pytest.mark.parametrize("name", [name for name in files() if not name.startswith("sklvq")])
def test_every_stored_model_predicts_as_it_did(name: str) -> None:
    arrays = stored(name)
    read = as_prototype_model(fitted(name))
    assert np.array_equal(read.predict(arrays["X_test"]), arrays["predict_test"])
    assert np.array_equal(read.prototypes, arrays["w_"])
    assert np.array_equal(read.labels, arrays["c_w_"])
    assert read.is_local == ("omegas_" in arrays)


@pytest.mark.parametrize("name", ["GlvqModel", "RslvqModel"])
def test_plain_models_have_the_plain_distance(name: str) -> None:
    assert as_prototype_model(model(name)).omegas is None


@pytest.mark.parametrize("name", ["GmlvqModel", "MrslvqModel"])
def test_matrix_models_have_one_factor_of_any_rank(name: str) -> None:
    omega = np.array([[1.0, -2.0]])
    read = as_prototype_model(model(name, omega_=omega))
    assert np.array_equal(read.omegas, omega)


def test_relevances_are_weights_of_squared_differences() -> None:
    relevances = np.array([0.9, 0.1])
    read = as_prototype_model(model("GrlvqModel", lambda_=relevances))
    expected = ((rows()[:, None, :] - W) ** 2 * relevances).sum(axis=2)
    assert np.allclose(read.distances(rows()), expected, rtol=1e-12)


def test_relevances_and_matrix_scale_the_input_first() -> None:
    relevances, omega = np.array([0.5, 3.0]), np.array([[1.0, 2.0], [0.0, -1.0], [4.0, 1.0]])
    read = as_prototype_model(model("GrmlvqModel", lambda_=relevances, omega_=omega))
    scaled = rows() * relevances
    expected = np.stack(
        [(((scaled - w * relevances) @ omega.T) ** 2).sum(axis=1) for w in W], axis=1
    )
    assert np.allclose(read.distances(rows()), expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["LgmlvqModel", "LmrslvqModel"])
def test_matrices_per_class_follow_the_order_of_classes(name: str) -> None:
    of_a, of_b = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0], [1.0, 1.0]])
    read = as_prototype_model(model(name, omegas_=[of_a, of_b]))
    assert [omega.tolist() for omega in read.omegas] == [
        of_b.tolist(),
        of_a.tolist(),
        of_b.tolist(),
    ]


def test_as_many_classes_as_prototypes_is_read_per_prototype() -> None:
    omegas = [np.eye(2) * k for k in (1.0, 2.0, 3.0)]
    labels = np.array(["c", "a", "b"])
    read = as_prototype_model(
        model("LgmlvqModel", c_w_=labels, classes_=np.array(["a", "b", "c"]), omegas_=omegas)
    )
    assert [omega[0, 0] for omega in read.omegas] == [1.0, 2.0, 3.0]


def test_a_shared_coordinate_misleads_lmrslvq_and_the_adapter_with_it() -> None:
    prototypes = np.array(
        [[0.0, 5.0], [2.0, 1.0], [7.0, 5.0]]
    )  # the third shares a 5 with the first
    omegas = [np.eye(2) * k for k in (1.0, 2.0, 3.0)]
    read = as_prototype_model(model("LmrslvqModel", w_=prototypes, omegas_=omegas))
    assert [omega[0, 0] for omega in read.omegas] == [1.0, 2.0, 1.0]
    other = as_prototype_model(model("LgmlvqModel", w_=prototypes, omegas_=omegas))
    assert [omega[0, 0] for omega in other.omegas] == [1.0, 2.0, 3.0]


def test_float_labels_stay_as_they_are() -> None:
    # With `initial_prototypes` sklearn-lvq stores the labels as floats.
    read = as_prototype_model(model("GlvqModel", c_w_=np.array([0.0, 1.0, 1.0])))
    assert read.predict([[0.0, 0.0]]).tolist() == [0.0]


@pytest.mark.parametrize(
    ("name", "attribute"),
    [
        ("GlvqModel", "w_"),
        ("GrlvqModel", "lambda_"),
        ("GmlvqModel", "omega_"),
        ("GrmlvqModel", "lambda_"),
        ("LgmlvqModel", "omegas_"),
        ("RslvqModel", "c_w_"),
        ("MrslvqModel", "omega_"),
        ("LmrslvqModel", "omegas_"),
    ],
)
def test_unfitted_models_are_to_be_fitted_first(name: str, attribute: str) -> None:
    unfitted = model(name, lambda_=np.ones(2), omega_=np.eye(2), omegas_=[np.eye(2)] * 3)
    delattr(unfitted, attribute)
    with pytest.raises(clvq.InvalidInputError) as raised:
        as_prototype_model(unfitted)
    assert str(raised.value) == (
        f"this {name} has no `{attribute}`, so it is not fitted yet; call its `fit` first."
    )


def test_a_number_of_matrices_that_fits_nothing_is_refused() -> None:
    with pytest.raises(clvq.InvalidInputError) as raised:
        as_prototype_model(model("LgmlvqModel", omegas_=[np.eye(2)]))
    assert str(raised.value) == (
        "`omegas_` of this LgmlvqModel holds 1 matrices; expected 3, one per prototype, or 2, one "
        "per class. Fit it again."
    )


def test_negative_relevances_are_refused() -> None:
    with pytest.raises(clvq.InvalidInputError, match=r"holds -0\.5; expected relevances of at"):
        as_prototype_model(model("GrlvqModel", lambda_=np.array([1.5, -0.5])))

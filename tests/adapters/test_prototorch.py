"""prototorch-models: tensors, transposed matrices, and rules that are something else."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq.adapters import as_prototype_model
from tests.support.fakes import Tensor, torch_model

PROTOTYPES = np.array([[0.0, 0.0, 1.0], [2.0, 1.0, 0.0], [-1.0, 3.0, 0.5]])
LABELS = np.array([1, 0, 1])
RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(50, 3))
OMEGA = RNG.normal(size=(3, 2)).astype(np.float32)  # (d, r) there
OMEGAS = RNG.normal(size=(3, 3, 2)).astype(np.float32)  # (p, d, r)
PLAIN = ["GLVQ", "GLVQ1", "GLVQ21", "ImageGLVQ", "LVQ1", "LVQ21", "MedianLVQ", "CELVQ", "KNN"]
SOFT = "predicts the class with the largest summed posterior and not that of the nearest prototype"


def squared(projected: list[np.ndarray]) -> np.ndarray:
    return np.stack([(part.astype(float) ** 2).sum(axis=1) for part in projected], axis=1)


def agree(read: clvq.PrototypeModel, expected: np.ndarray) -> None:
    assert np.allclose(read.distances(ROWS), expected, rtol=1e-5)
    assert read.labels.tolist() == LABELS.tolist()


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("distance", ["euclidean_distance", "squared_euclidean_distance"])
def test_plain_models(name: str, distance: str) -> None:
    read = as_prototype_model(torch_model(name, PROTOTYPES, LABELS, distance))
    agree(read, squared([ROWS - w for w in PROTOTYPES]))
    assert read.omegas is None
    assert "torch" not in sys.modules


def test_images_are_rows_of_pixels() -> None:
    images = RNG.normal(size=(3, 1, 2, 2))
    read = as_prototype_model(torch_model("ImageGLVQ", images, LABELS))
    assert read.prototypes.shape == (3, 4)


def test_relevances_multiply_the_input_and_so_count_squared() -> None:
    relevances = np.array([2.0, 0.5, -1.0])
    read = as_prototype_model(
        torch_model("GRLVQ", PROTOTYPES, LABELS, _relevances=Tensor(relevances))
    )
    agree(read, squared([(ROWS - w) * relevances for w in PROTOTYPES]))


@pytest.mark.parametrize("name", ["GMLVQ", "ImageGMLVQ"])
def test_the_matrix_is_stored_transposed(name: str) -> None:
    model = torch_model(name, PROTOTYPES, LABELS, "omega_distance", _omega=Tensor(OMEGA))
    agree(as_prototype_model(model), squared([(ROWS - w) @ OMEGA for w in PROTOTYPES]))


@pytest.mark.parametrize("name", ["SiameseGMLVQ", "SiameseGLVQ", "SiameseGTLVQ"])
def test_linear_backbones_are_matrices(name: str) -> None:
    transform = type("LinearTransform", (), {"weights": Tensor(OMEGA)})()
    linear = type("Linear", (), {"weight": Tensor(OMEGA.T)})()
    expected = squared([(ROWS - w) @ OMEGA for w in PROTOTYPES])
    for backbone in (transform, linear):
        agree(
            as_prototype_model(torch_model(name, PROTOTYPES, LABELS, backbone=backbone)), expected
        )
    identity = type("Identity", (), {})()
    read = as_prototype_model(torch_model(name, PROTOTYPES, LABELS, backbone=identity))
    assert read.omegas is None


def test_local_matrices_are_stored_transposed_as_well() -> None:
    model = torch_model("LGMLVQ", PROTOTYPES, LABELS, "lomega_distance", _omega=Tensor(OMEGAS))
    expected = squared([(ROWS - w) @ o for w, o in zip(PROTOTYPES, OMEGAS, strict=True)])
    agree(as_prototype_model(model), expected)


@pytest.mark.parametrize("name", ["GTLVQ", "ImageGTLVQ"])
def test_tangent_distances_are_quadratic_too(name: str) -> None:
    model = torch_model(name, PROTOTYPES, LABELS, "ltangent_distance", _omega=Tensor(OMEGAS))
    expected = squared(
        [
            (ROWS - w) @ (np.eye(3) - o @ o.T)
            for w, o in zip(PROTOTYPES, OMEGAS.astype(float), strict=True)
        ]
    )
    agree(as_prototype_model(model), expected)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("RSLVQ", SOFT),
        ("SLVQ", SOFT),
        ("PLVQ", SOFT),
        ("CBC", "reasons over components and not over nearest prototypes"),
        ("NeuralGas", "has prototypes without labels"),
        (
            "LVQMLN",
            "maps inputs, but not prototypes, through a network, so that its prototypes do not "
            "live among the inputs",
        ),
    ],
)
def test_other_rules_are_refused_with_the_reason(name: str, reason: str) -> None:
    with pytest.raises(clvq.NotSupportedError) as raised:
        as_prototype_model(torch_model(name, PROTOTYPES, LABELS))
    assert str(raised.value) == (
        f"{name} of prototorch-models {reason}; only winner-takes-all models with a quadratic "
        f"distance can be read."
    )


@pytest.mark.parametrize(
    ("name", "distance", "expected"),
    [
        ("GLVQ", "lpnorm_distance", "'euclidean_distance' or 'squared_euclidean_distance' or"),
        ("GMLVQ", "<lambda>", "'omega_distance'"),
        ("LGMLVQ", "omega_distance", "'lomega_distance'"),
    ],
)
def test_other_distances_are_refused(name: str, distance: str, expected: str) -> None:
    with pytest.raises(clvq.NotSupportedError) as raised:
        as_prototype_model(torch_model(name, PROTOTYPES, LABELS, distance))
    assert f"{name} of prototorch-models has the distance '{distance}'; expected {expected}" in str(
        raised.value
    )


def test_a_distance_without_a_name_is_refused() -> None:
    model = torch_model("GLVQ", PROTOTYPES, LABELS, distance_layer=SimpleNamespace())
    with pytest.raises(clvq.NotSupportedError, match="has the distance 'unknown'"):
        as_prototype_model(model)


def test_voting_neighbours_are_refused() -> None:
    model = torch_model("KNN", PROTOTYPES, LABELS, competition_layer=SimpleNamespace(k=3))
    with pytest.raises(clvq.NotSupportedError, match="lets 3 neighbours vote; expected k=1"):
        as_prototype_model(model)


def test_networks_are_refused() -> None:
    network = type("Sequential", (), {})()
    with pytest.raises(clvq.NotSupportedError, match="has a backbone of type Sequential; expected"):
        as_prototype_model(torch_model("SiameseGLVQ", PROTOTYPES, LABELS, backbone=network))


def test_a_local_matrix_of_the_wrong_shape_is_refused() -> None:
    model = torch_model("LGMLVQ", PROTOTYPES, LABELS, "lomega_distance", _omega=Tensor(OMEGA))
    with pytest.raises(clvq.InvalidInputError, match=r"has shape \(3, 2\); expected \(prototypes,"):
        as_prototype_model(model)


def test_an_extension_of_a_refused_class_is_refused_too() -> None:
    soft = type(torch_model("RSLVQ", PROTOTYPES, LABELS))
    with pytest.raises(clvq.NotSupportedError, match="RSLVQ of prototorch-models predicts"):
        as_prototype_model(type("Mine", (soft,), {"__module__": "mine"})())


def test_probes_are_handed_over_as_tensors() -> None:
    model: Any = torch_model("GLVQ", PROTOTYPES, LABELS)
    seen = []

    def predict(rows: Tensor) -> Tensor:
        seen.append(rows)
        distances = ((rows.values[:, None, :] - model.prototypes.values) ** 2).sum(axis=2)
        return Tensor(LABELS[distances.argmin(axis=1)].squeeze())

    model.predict = predict
    as_prototype_model(model, probe=ROWS)
    as_prototype_model(model, probe=ROWS[:1])  # a single label comes without a dimension
    assert [type(rows) for rows in seen] == [Tensor, Tensor]

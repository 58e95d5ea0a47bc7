"""Objects that look like fitted models of libraries that are not installed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

Array = np.ndarray

MODELS = Path(__file__).resolve().parents[1] / "data" / "models"

# Name of the file without the data set -> class of sklearn-lvq that it was taken from.
SKLEARN_LVQ = {
    "glvq": "GlvqModel",
    "grlvq": "GrlvqModel",
    "gmlvq": "GmlvqModel",
    "lgmlvq": "LgmlvqModel",
    "lgmlvq_classwise": "LgmlvqModel",
    "rslvq": "RslvqModel",
    "mrslvq": "MrslvqModel",
    "lmrslvq": "LmrslvqModel",
}
SKLVQ = {
    "glvq": ("GLVQ", {"distance_type": "squared-euclidean"}),
    "gmlvq": ("GMLVQ", {"distance_type": "adaptive-squared-euclidean"}),
    "lgmlvq": (
        "LGMLVQ",
        {
            "distance_type": "local-adaptive-squared-euclidean",
            "relevance_localization": "prototypes",
        },
    ),
    "lgmlvq_class": (
        "LGMLVQ",
        {"distance_type": "local-adaptive-squared-euclidean", "relevance_localization": "class"},
    ),
}
_ROWS = ("X_train", "y_train", "X_test", "y_test", "predict_test")


def fake(module: str, name: str, /, **attributes: Any) -> Any:
    """Return an object whose class has that name and module."""
    made = type(name, (), {"__module__": module})()
    vars(made).update(attributes)
    return made


def stored(name: str) -> dict[str, Array]:
    with np.load(MODELS / f"{name}.npz", allow_pickle=False) as arrays:
        return {key: arrays[key] for key in arrays.files}


def attributes(arrays: dict[str, Array]) -> dict[str, Any]:
    """Return what `fit` left behind, without the rows that were stored next to it."""
    kept = {key: value for key, value in arrays.items() if key not in _ROWS}
    if "omegas_" in kept:
        kept["omegas_"] = list(kept["omegas_"])  # a list there
    return kept


def files() -> list[str]:
    return sorted(path.stem for path in MODELS.glob("*.npz"))


def fitted(name: str) -> Any:
    """Return the model of one stored file, as an object of its library."""
    arrays = attributes(stored(name))
    family, _, kind = name.partition("_")
    if family == "sklvq":
        cls, settings = SKLVQ[kind.removeprefix("iris_")]
        return fake("sklvq.models", cls, force_all_finite=True, **settings, **arrays)
    return fake("sklearn_lvq.glvq", SKLEARN_LVQ[kind], **arrays)


class Tensor:
    """As much of a tensor as an adapter may use; it has to be detached before it is read."""

    def __init__(self, values: Any, attached: bool = True, on_host: bool = False) -> None:
        self.values = np.asarray(values)
        if self.values.dtype.kind == "f":
            self.values = self.values.astype(np.float32)
        self.attached, self.on_host = attached, on_host

    def detach(self) -> Tensor:
        return Tensor(self.values, False, self.on_host)

    def cpu(self) -> Tensor:
        return Tensor(self.values, self.attached, True)

    def numpy(self) -> Array:
        assert self.on_host
        assert not self.attached
        return self.values

    def new_tensor(self, values: list[Any]) -> Tensor:
        return Tensor(np.array(values, dtype=np.float32))


def torch_model(
    name: str, prototypes: Any, labels: Any, distance: str = "euclidean_distance", **more: Any
) -> Any:
    """Return an object like a model of prototorch-models."""
    function = type("function", (), {})()
    function.__name__ = distance
    model = fake(
        "prototorch.models.glvq",
        name,
        prototypes=Tensor(prototypes),
        prototype_labels=Tensor(labels),
        proto_layer=SimpleNamespace(components=Tensor(prototypes)),
        distance_layer=SimpleNamespace(fn=function),
        competition_layer=SimpleNamespace(),
    )
    vars(model).update(more)
    return model

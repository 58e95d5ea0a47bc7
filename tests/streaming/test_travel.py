"""Models of every adapter, and pipelines around them, on their way to another process."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import counterlvq as clvq
from counterlvq.adapters import as_prototype_model
from counterlvq.adapters.linear import REGRESSORS
from counterlvq.adapters.listing import adapter_lines
from tests.adapters import test_prosemble as prosemble
from tests.adapters.test_all_estimators import NUMBERS, READ, TWO, X, fitted, made, rows_for
from tests.support.fakes import Tensor, fake, torch_model

OWN = ("GLVQ", "GMLVQ", "LGMLVQ", "RSLVQ", "MRSLVQ", "LMRSLVQ")
RNG = np.random.default_rng(2)
PROTOTYPES, LABELS = RNG.normal(size=(4, 3)), np.array([0, 1, 0, 1])
OMEGA, OMEGAS = RNG.normal(size=(3, 3)), RNG.normal(size=(4, 3, 3))
TANGENTS = np.stack([np.linalg.qr(part)[0][:, :2] for part in OMEGAS])
ROWS = RNG.normal(size=(5, 3))

# What fitted models of other libraries hold, of which each class takes its own.
SKLEARN_LVQ = {
    "w_": PROTOTYPES, "c_w_": LABELS, "classes_": np.array([0, 1]), "lambda_": np.ones(3) / 3,
    "omega_": OMEGA, "omegas_": [*OMEGAS],
}  # fmt: skip
SKLVQ = {
    "prototypes_": PROTOTYPES, "prototypes_labels_": LABELS, "classes_": np.array(["a", "b"]),
    "relevance_localization": "prototypes", "force_all_finite": True,
}  # fmt: skip
SKLVQ_OMEGAS = {"GMLVQ": {"omega_": OMEGA}, "LGMLVQ": {"omega_": OMEGAS}}
TORCH: list[tuple[str, dict[str, Any]]] = [
    ("euclidean_distance", {}),
    ("euclidean_distance", {"_relevances": Tensor([1.0, 2.0, 0.5])}),
    ("euclidean_distance", {"backbone": type("Linear", (), {"weight": Tensor(OMEGA.T)})()}),
    ("omega_distance", {"_omega": Tensor(OMEGA)}),
    ("lomega_distance", {"_omega": Tensor(OMEGAS)}),
    ("ltangent_distance", {"_omega": Tensor(TANGENTS)}),
]


def predicting(model: Any) -> Any:
    """Let an object that looks like a fitted model say what it is read as."""
    read = as_prototype_model(model)

    def predict(self: Any, rows: Any) -> Any:
        if isinstance(rows, Tensor):
            return Tensor(read.predict(rows.values), attached=False)
        return read.predict(rows)

    type(model).predict = predict
    return model


def read_first(candidates: Iterator[Any]) -> Any:
    """The first of some models that its adapter reads."""
    refused = []
    for model in candidates:
        try:
            as_prototype_model(model)
        except clvq.CounterlvqError as error:
            refused.append(error)
        else:
            return model
    raise AssertionError(refused)


def of_library(library: str, kind: str) -> tuple[Any, Any]:
    """A fitted model of a class, and rows for it."""
    if library == "sklearn-lvq":
        return predicting(fake("sklearn_lvq.there", kind, **SKLEARN_LVQ)), ROWS
    if library == "sklvq":
        held = {**SKLVQ, **SKLVQ_OMEGAS.get(kind, {})}
        return predicting(fake("sklvq.models", kind, **held)), ROWS
    if library == "prototorch-models":
        models = (torch_model(kind, PROTOTYPES, LABELS, name, **held) for name, held in TORCH)
        return predicting(read_first(models)), ROWS
    if library == "prosemble":
        known = prosemble.KINDS
        sets = [known[kind]] if kind in known else [*known.values()]
        models = (prosemble.fake(kind, scores, **held) for scores, held in sets)
        return read_first(models), RNG.normal(size=(5, 4))
    if kind in OWN:
        return getattr(clvq, kind)(random_state=0, tol=0.1).fit(X, NUMBERS), X[::20]
    if kind == "Thresholded":
        return clvq.Thresholded(fitted(made("LogisticRegression"), "SVC"), threshold=0.3), X[::20]
    if kind in REGRESSORS:
        model = made(kind).fit(X, X[:, 0] + 0.1 * X[:, 1])
        middle = float(np.median(model.predict(X)))
        return clvq.Thresholded(model, threshold=middle), X[::20]
    return fitted(made(kind), kind), rows_for(kind)[::20]


def travellers() -> dict[tuple[str, str], tuple[clvq.Explainer, Any]]:
    """An explainer and rows for each class that the documentation lists, and pipelines."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of models that learn little from few rows
        for line in adapter_lines():
            for kind in line.kinds:
                model, rows = of_library(line.library, kind)
                found[line.library, kind] = clvq.Explainer(model, method="ccp"), rows
        for kind in ("NearestCentroid", "LogisticRegression", "GaussianNB"):
            steps = make_pipeline(StandardScaler(), PCA(2), made(kind)).fit(X, TWO)
            found["pipeline", kind] = clvq.Explainer(steps, method="ccp"), X[::20]
    return found


def answered(explainer: clvq.Explainer, rows: Any) -> tuple[Any, ...]:
    batch = explainer.explain_batch(rows)
    numbers = (batch.values, batch.cost, batch.lower_bound, batch.gap, batch.prototype)
    return (*(part.tobytes() for part in numbers), batch.status.tolist())


@pytest.mark.timeout(600)
def test_models_of_every_adapter_answer_elsewhere_as_they_do_here(tmp_path: Path) -> None:
    made_here = travellers()
    assert {kind for library, kind in made_here if library == "scikit-learn"} >= {*READ}
    expected = {name: answered(*job) for name, job in made_here.items()}
    assert {s for *_, statuses in expected.values() for s in statuses} <= {"optimal", "feasible"}
    # The process there has the package, and none of the tests.
    ours = [sys.modules[name] for name in (__name__, prosemble.__name__, Tensor.__module__)]
    for module in ours:
        cloudpickle.register_pickle_by_value(module)
    try:
        (tmp_path / "job").write_bytes(cloudpickle.dumps((made_here, answered)))
    finally:
        for module in ours:
            cloudpickle.unregister_pickle_by_value(module)
    code = (
        "import sys, pickle; "
        "made, answered = pickle.load(open(sys.argv[1], 'rb')); "
        "out = {name: answered(*job) for name, job in made.items()}; "
        "pickle.dump(out, open(sys.argv[2], 'wb'))"
    )
    there = [sys.executable, "-c", code, str(tmp_path / "job"), str(tmp_path / "told")]
    subprocess.run(there, check=True)
    told = pickle.loads((tmp_path / "told").read_bytes())
    assert [name for name in expected if told[name] != expected[name]] == []

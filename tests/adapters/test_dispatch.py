"""Finding the adapter: by name, without an import, and with help when there is none."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import counterlvq as clvq
from counterlvq.adapters import as_prototype_model
from tests.support.fakes import fake, files, fitted, stored

X = np.array([[0.0, 0.0], [1.0, 2.0], [4.0, 0.0], [5.0, 3.0]])
Y = ["no", "no", "yes", "yes"]


def test_a_prototype_model_is_returned_as_it_is() -> None:
    model = clvq.PrototypeModel(X, Y)
    assert as_prototype_model(model) is model
    assert as_prototype_model(model, probe=X) is model


def test_an_extension_of_a_known_class_is_read_like_it() -> None:
    class Mine(NearestCentroid):
        pass

    model = as_prototype_model(Mine().fit(X, Y), probe=X)
    assert model.n_prototypes == 2


def test_the_same_name_elsewhere_is_not_taken_for_known() -> None:
    for module in ("mine", "sklvqx.models", "sklearn_lvq_next.glvq", "sklearn.neighborsx"):
        with pytest.raises(clvq.NotSupportedError, match=f"from {module}"):
            as_prototype_model(fake(module, "GLVQ", prototypes_=X))


def test_an_unknown_object_is_told_what_is_known() -> None:
    with pytest.raises(clvq.NotSupportedError) as raised:
        as_prototype_model(RandomForestClassifier())
    assert str(raised.value) == (
        "a RandomForestClassifier (from sklearn.ensemble._forest) cannot be read as a prototype "
        "model; expected a PrototypeModel or a model that compares distances, linear scores or "
        "Gaussians, of counterlvq, scikit-learn, sklearn-lvq, prosemble, sklvq or "
        "prototorch-models; docs/adapters.md lists them. For any other rule in which the nearest "
        "prototype decides, build a PrototypeModel yourself."
    )


@pytest.mark.parametrize("thing", [None, 3, "model.npz", np.eye(2), StandardScaler()])
def test_things_that_are_no_model_are_refused(thing: Any) -> None:
    with pytest.raises(clvq.NotSupportedError, match="cannot be read as a prototype model"):
        as_prototype_model(thing)


def test_a_class_is_not_an_instance() -> None:
    with pytest.raises(clvq.NotSupportedError) as raised:
        as_prototype_model(NearestCentroid)
    assert str(raised.value) == "NearestCentroid is a class; expected a fitted instance of it."


def test_a_pipeline_is_told_where_to_go() -> None:
    pipeline = make_pipeline(StandardScaler(), NearestCentroid()).fit(X, Y)
    with pytest.raises(clvq.NotSupportedError, match=r"TableModel.from_pipeline take the whole"):
        as_prototype_model(pipeline)
    assert clvq.Explainer(pipeline).explain(X[0]).status == "optimal"


def test_a_search_is_asked_for_what_it_found() -> None:
    grid = {"algorithm": ["brute", "kd_tree"]}
    search = GridSearchCV(KNeighborsClassifier(n_neighbors=1), grid, cv=2).fit(X, Y)
    with pytest.raises(clvq.NotSupportedError) as raised:
        as_prototype_model(search)
    assert str(raised.value) == (
        "a GridSearchCV searches for an estimator and is none that can be read; pass its "
        "best_estimator_."
    )
    assert as_prototype_model(search.best_estimator_, probe=X).n_prototypes == 4


def test_no_foreign_library_is_imported() -> None:
    code = (
        "import sys; import counterlvq.adapters; "
        "print([m for m in ('sklearn', 'torch', 'sklvq', 'sklearn_lvq') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_source_is_left_alone() -> None:
    for name in files():
        foreign = fitted(name)
        before = {key: np.array(value).copy() for key, value in vars(foreign).items()}
        model = as_prototype_model(foreign)
        with pytest.raises(ValueError, match="read-only"):
            model.prototypes[0, 0] = 1.0
        for key, value in vars(foreign).items():
            assert np.array_equal(np.array(value), before[key])


@pytest.mark.parametrize("name", [n for n in files() if "lgm" not in n and "lmr" not in n])
def test_what_is_read_can_be_explained(name: str) -> None:
    arrays = stored(name)
    model = as_prototype_model(fitted(name))
    explainer = clvq.Explainer(model)
    for target in model.classes.tolist():
        batch = explainer.explain_batch(arrays["X_test"], target=target)
        assert (batch.status == "optimal").all()
        assert (batch.prediction == target).all()

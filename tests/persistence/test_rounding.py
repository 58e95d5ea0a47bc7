"""Answers of a saved model are confirmed by the `predict` that it was saved from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC

import counterlvq as clvq
from counterlvq.adapters import as_prototype_model, load_exported
from counterlvq.numeric.tolerances import EPSILON, SINGLE_EPSILON
from tests.adapters.test_exported import written
from tests.support.score_models import saved_and_loaded, table, wide_table


def unconfirmed(says: Any, given: Any, rows: np.ndarray) -> int:
    """Explain rows for every class as the target, and count what `says` rejects."""
    explainer = clvq.Explainer(given)
    out = 0
    for label in np.unique(explainer.model.labels).tolist():
        batch = explainer.explain_batch(rows, target=label)
        assert set(batch.status.tolist()) <= {"optimal", "feasible"}, label
        out += int((says(batch.X) != label).sum())
    return out


def stamped() -> tuple[np.ndarray, np.ndarray]:
    """Four columns of wine beside stamps that differ by far less than they are."""
    X, y = wide_table("wine")
    return X[:, [0, 1, 5, 6, 13]], y


def narrow() -> tuple[np.ndarray, np.ndarray]:
    X, y = table("wine")
    return X[:, [0, 1, 5, 6]], y


COARSE = {
    "kernel": lambda: (SVC(kernel="linear"), *two(*narrow(), 300.0)),
    "products": lambda: (NearestCentroid(), *stamped()),
    "neighbours": lambda: (
        KNeighborsClassifier(1, algorithm="brute"),
        *(part[::6] for part in stamped()),
    ),
    "clusters": lambda: (KMeans(4, n_init=1, random_state=0), *stamped()),
    "steps": lambda: (make_pipeline(FunctionTransformer(), NearestCentroid()), *stamped()),
}


def two(X: np.ndarray, y: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """The last two classes, in units that make kernels large beside their differences."""
    kept = y != y[0]
    return scale * X[kept] + 1e4, y[kept]


def some(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return X[::6], y[::6]


@pytest.mark.parametrize("kind", COARSE)
def test_a_file_remembers_how_predict_rounds(kind: str) -> None:
    fitted, X, y = COARSE[kind]()
    fitted.fit(X, y)
    loaded = saved_and_loaded(fitted)
    inner = getattr(loaded, "model", loaded)
    assert inner.meaning.unit >= EPSILON
    rows = X[:: len(X) // 6]
    assert unconfirmed(fitted.predict, loaded, rows) == 0
    again = saved_and_loaded(loaded)
    assert getattr(again, "model", again).meaning == inner.meaning


def test_single_precision_is_remembered() -> None:
    X, _ = narrow()
    fitted = KMeans(3, n_init=1, random_state=0).fit(X.astype(np.float32))
    loaded = saved_and_loaded(fitted)
    assert SINGLE_EPSILON / 2 < loaded.meaning.unit < 16 * SINGLE_EPSILON

    def says(rows: np.ndarray) -> np.ndarray:
        return np.asarray(fitted.predict(rows.astype(np.float32)))

    assert unconfirmed(says, loaded, X[::5]) == 0
    # Without the memory, answers end within what single precision cannot see.
    assert unconfirmed(says, as_prototype_model(fitted), X[::5]) > 0


def test_files_of_models_that_round_like_ours_say_nothing() -> None:
    X, y = narrow()
    assert saved_and_loaded(NearestCentroid().fit(X, y)).meaning.unit is None
    assert saved_and_loaded(clvq.PrototypeModel(X[::50], y[::50])).meaning.unit is None


def test_exports_of_tensors_are_of_single_precision() -> None:
    assert load_exported(written()).meaning.unit is None
    unit = load_exported(written(library="prototorch-models", kind="GLVQ")).meaning.unit
    assert unit is not None
    assert SINGLE_EPSILON / 2 < unit < 16 * SINGLE_EPSILON


def test_k_means_of_single_precision_behind_steps_is_refused() -> None:
    X, _ = narrow()
    fitted = make_pipeline(FunctionTransformer(), KMeans(3, n_init=1, random_state=0))
    fitted.fit(X.astype(np.float32))
    with pytest.raises(clvq.NotSupportedError, match="fitted in single precision"):
        clvq.Explainer(fitted)

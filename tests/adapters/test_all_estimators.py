"""Every estimator that scikit-learn lists: explained and confirmed, or refused in our words."""

from __future__ import annotations

import warnings
from inspect import signature
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler
from sklearn.utils import all_estimators

import counterlvq as clvq
from counterlvq.adapters.dispatch import LIBRARIES
from counterlvq.adapters.linear import REGRESSORS

ESTIMATORS = dict(all_estimators())
X, NUMBERS = make_blobs(60, 3, centers=3, cluster_std=2.0, random_state=4)
X = X - X.min(axis=0) + 0.5  # some take no negative numbers
Y = np.array(["ham", "spam", "tofu"])[NUMBERS]
TWO = NUMBERS > 0
# Settings with which a class can be explained, where its own are others.
SETTINGS: dict[str, dict[str, Any]] = {
    "KNeighborsClassifier": {"n_neighbors": 1},
    "SVC": {"kernel": "linear"},
    "NuSVC": {"kernel": "linear"},
    "BernoulliNB": {"binarize": None},
    "GaussianMixture": {"n_components": 3, "random_state": 0},
    "BayesianGaussianMixture": {"n_components": 3, "random_state": 0},
    "KMeans": {"n_clusters": 3, "n_init": 1},
    "MiniBatchKMeans": {"n_clusters": 3, "n_init": 1},
    "MeanShift": {"bandwidth": 4.0},
    "AffinityPropagation": {"preference": -200.0, "random_state": 0},
}
ONLY_TWO = {"SVC", "NuSVC", "FixedThresholdClassifier", "TunedThresholdClassifierCV"}
READ = sorted(
    {kind for library in LIBRARIES if library.name == "scikit-learn" for kind in library.kinds}
    & set(ESTIMATORS)
)


# What has to be given to those that are made of others.
GIVEN: dict[str, Any] = {
    "estimator": LogisticRegression(),
    "estimators": [("a", LogisticRegression()), ("b", GaussianNB())],
    "transformers": [("a", StandardScaler(), [0, 1, 2])],
    "transformer_list": [("a", StandardScaler())],
    "steps": [("a", StandardScaler()), ("b", PCA(2))],
    "param_grid": {"C": [1.0]},
    "param_distributions": {"C": [1.0]},
    "dictionary": np.eye(3),
}
INNER = {"RegressorChain": Ridge(), "MultiOutputRegressor": Ridge(), "RANSACRegressor": Ridge()}


def made(name: str) -> Any:
    """An instance with its own settings, or with those above."""
    cls = ESTIMATORS[name]
    asked = signature(cls).parameters.values()
    needed = {p.name: GIVEN[p.name] for p in asked if p.default is p.empty and p.name in GIVEN}
    if name in INNER:
        needed["estimator"] = INNER[name]
    return cls(**{**needed, **SETTINGS.get(name, {})})


def rows_for(name: str) -> Any:
    return (np.median(X, axis=0) < X).astype(float) if name == "BernoulliNB" else X


def fitted(estimator: Any, name: str) -> Any:
    """Fit on the first of some tables that it takes; None if there is none."""
    labels = TWO if name in ONLY_TWO else Y
    numbers = X[:, 0] + 0.1 * X[:, 1]
    several = np.column_stack([TWO, ~TWO]).astype(int)
    order = [labels, NUMBERS, TWO, numbers, several]
    for y in order:
        try:
            return estimator.fit(rows_for(name), y)
        except (ValueError, TypeError, AttributeError, LookupError, np.linalg.LinAlgError):
            continue
    return None


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.filterwarnings("ignore")
def test_explained_and_confirmed_or_refused_in_our_words() -> None:
    explained, refused, unfit = [], [], []
    for name in ESTIMATORS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = fitted(made(name), name)
            if model is None:
                unfit.append(name)
                continue
            try:
                explainer = clvq.Explainer(model, method="ccp")
            except clvq.CounterlvqError:
                refused.append(name)
                continue
            rows = rows_for(name)[::20]
            batch = explainer.explain_batch(rows)
            assert set(batch.status.tolist()) <= {"optimal", "feasible"}, name
            assert (np.asarray(model.predict(batch.X)) == batch.prediction).all(), name
            assert (np.asarray(model.predict(rows)) != batch.prediction).all(), name
            explained.append(name)
    assert sorted(explained) == READ
    assert len(refused) > 100
    # Those that want text, several targets or a distance matrix.
    assert len(unfit) < 0.1 * len(ESTIMATORS), unfit


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors_behind_a_threshold(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = made(name).fit(X, X[:, 0] + 0.1 * X[:, 1])
        told = model.predict(X)
        if np.ptp(told) == 0:
            pytest.skip(f"{name} has not learned anything from so few rows")
        cut = clvq.Thresholded(model, threshold=float(np.median(told)))
        batch = clvq.Explainer(cut).explain_batch(X[::20])
        assert (cut.predict(batch.X) == batch.prediction).all()
        assert (cut.predict(X[::20]) != batch.prediction).all()


def test_what_is_not_fitted_is_refused_in_our_words() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in READ:
            with pytest.raises(clvq.CounterlvqError):
                clvq.Explainer(made(name))

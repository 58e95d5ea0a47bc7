"""Gaussians, against duality written from `means_` and `precisions_`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import counterlvq as clvq
from counterlvq.adapters import as_prototype_model
from tests.support.quick import some
from tests.support.score_models import (
    Array,
    confirm,
    least_squared,
    random_rows,
    saved_and_loaded,
    table,
    wide_table,
)

# How far a fit got does not matter here.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

TYPES = ("full", "tied", "diag", "spherical")
Gaussian = tuple[Array, Array, float]


def classes(fitted: Any) -> list[Gaussian]:
    """Means, precisions and constants of a classifier, from what its documentation says."""
    if isinstance(fitted, GaussianNB):
        logs = -0.5 * np.log(fitted.var_).sum(axis=1) + np.log(fitted.class_prior_)
        return [
            (mean, np.diag(1 / var), float(log))
            for mean, var, log in zip(fitted.theta_, fitted.var_, logs, strict=True)
        ]
    return [
        (mean, np.linalg.inv(C), float(-0.5 * np.linalg.slogdet(C)[1] + np.log(prior)))
        for mean, C, prior in zip(fitted.means_, fitted.covariance_, fitted.priors_, strict=True)
    ]


def components(fitted: Any) -> list[Gaussian]:
    width, P = fitted.means_.shape[1], np.asarray(fitted.precisions_)
    whole = {
        "full": lambda k: P[k],
        "tied": lambda k: P,
        "diag": lambda k: np.diag(P[k]),
        "spherical": lambda k: P[k] * np.eye(width),
    }[fitted.covariance_type]
    out = []
    for k, mean in enumerate(fitted.means_):
        log = 0.5 * np.linalg.slogdet(whole(k))[1] + np.log(fitted.weights_[k])
        out.append((mean, whole(k), float(log)))
    return out


def small(name: str) -> tuple[Array, Array]:
    X, y = table(name)
    return StandardScaler().fit_transform(X[:, :4]), y


@pytest.mark.parametrize(
    "estimator", [QuadraticDiscriminantAnalysis(store_covariance=True), GaussianNB()]
)
def test_two_classes_cost_what_duality_says(estimator: Any) -> None:
    X, y = small("cancer")
    fitted = estimator.fit(X, y)
    explainer = clvq.Explainer(fitted, cost=clvq.Euclidean())
    for row in X[:: len(X) // 4]:
        now = int(fitted.predict(row[None])[0] == fitted.classes_[1])
        cf = explainer.explain(row)
        best = least_squared(classes(fitted), row, 1 - now)
        assert cf.cost == pytest.approx(best, rel=2e-4)
        assert cf.lower_bound <= best * (1 + 1e-7)
        assert cf.status == "optimal"


@pytest.mark.parametrize("kind", TYPES)
def test_two_components_cost_what_duality_says(kind: str) -> None:
    X, _ = small("wine")
    fitted = GaussianMixture(2, covariance_type=kind, random_state=0).fit(X)
    explainer = clvq.Explainer(fitted, cost=clvq.Euclidean())
    for row in X[:: len(X) // 4]:
        cf = explainer.explain(row)
        best = least_squared(components(fitted), row, 1 - int(fitted.predict(row[None])[0]))
        assert cf.cost == pytest.approx(best, rel=2e-4)
        assert cf.lower_bound <= best * (1 + 1e-7)


CLASSIFIERS = {"qda": QuadraticDiscriminantAnalysis(reg_param=0.01), "naive": GaussianNB()}
MIXTURES = {
    f"{name} {kind}": build(n_components=3, covariance_type=kind, random_state=0)
    for name, build in (("mixture", GaussianMixture), ("bayesian", BayesianGaussianMixture))
    for kind in TYPES
}
MIXTURES["bayesian dirichlet"] = BayesianGaussianMixture(
    n_components=3, random_state=0, weight_concentration_prior_type="dirichlet_distribution"
)


@pytest.mark.parametrize("kind", [*CLASSIFIERS, *MIXTURES])
def test_predict_agrees_and_confirms(kind: str) -> None:
    X, y = small("wine")
    fitted = {**CLASSIFIERS, **MIXTURES}[kind].fit(X, y)
    probe = np.vstack([X, random_rows(X, 500)])
    read = as_prototype_model(fitted, probe=probe)
    assert np.array_equal(read.predict(probe), fitted.predict(probe))
    assert read.meaning.scores == "shifted"
    assert read.meaning.part == ("component" if kind in MIXTURES else "class")
    assert read.is_local == ("tied" not in kind)
    confirm(fitted, X[::60], gap=1e-2)


@pytest.mark.parametrize(
    "kind", some([*CLASSIFIERS, *MIXTURES], quick={"qda", "naive", "mixture full", "bayesian tied"})
)
def test_raw_columns_with_time_stamps(kind: str) -> None:
    X, y = wide_table("wine")
    fitted = {**CLASSIFIERS, **MIXTURES}[kind].fit(X, y)
    rng = np.random.default_rng(0)
    mixed = X[rng.integers(len(X), size=(400, 1)), np.arange(X.shape[1])]
    probe = np.vstack([X, mixed, random_rows(X, 100)])
    read = as_prototype_model(fitted, probe=probe)
    assert (read.predict(X) == fitted.predict(X)).all()
    batch = clvq.Explainer(fitted, method="ccp").explain_batch(X[:2])
    assert (fitted.predict(batch.X) == batch.prediction).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wine", "cancer", "digits"])
@pytest.mark.parametrize("kind", [*CLASSIFIERS, *MIXTURES])
def test_whole_tables(kind: str, name: str) -> None:
    X, y = table(name)
    Z = StandardScaler().fit_transform(X)
    fitted = {**CLASSIFIERS, **MIXTURES}[kind].fit(Z, y)
    as_prototype_model(fitted, probe=np.vstack([Z, random_rows(Z, 500)]))
    explainer = clvq.Explainer(fitted, time_limit=5)
    for row in Z[:2]:
        cf = explainer.explain(row)
        assert cf.status in ("optimal", "feasible")
        assert fitted.predict(cf.x[None])[0] == cf.prediction != fitted.predict(row[None])[0]


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_behind_a_scaler_saved_and_loaded(kind: str) -> None:
    X, y = wide_table("wine")
    frame = pd.DataFrame(X[:, [0, 6, 9, 13]], columns=["alcohol", "phenols", "hue", "at"])
    fitted = make_pipeline(StandardScaler(), CLASSIFIERS[kind]).fit(frame, y)
    confirm(fitted, frame.iloc[[0, 100]], constraints=[clvq.Freeze("at")], gap=1e-2)
    loaded = saved_and_loaded(fitted)
    assert np.array_equal(loaded.predict(frame), fitted.predict(frame))
    told, found = (clvq.Explainer(model).explain(frame.iloc[0]) for model in (fitted, loaded))
    assert told.cost == pytest.approx(found.cost, rel=1e-3)


def test_three_classes_under_one_metric_are_a_linear_program() -> None:
    """With a tied covariance the L1 optimum is that of a program written from the attributes."""
    from tests.support.score_models import least_manhattan

    X, _ = small("wine")
    fitted = GaussianMixture(3, covariance_type="tied", random_state=0).fit(X)
    P = fitted.precisions_
    W = fitted.means_ @ P
    b = np.log(fitted.weights_) - 0.5 * np.einsum("ij,ij->i", W, fitted.means_)
    for row in X[::60]:
        now = int(fitted.predict(row[None])[0])
        best = min(least_manhattan(W, b, row, t) for t in range(3) if t != now)
        assert clvq.Explainer(fitted).explain(row).cost == pytest.approx(best, rel=1e-6)


def test_components_without_weight_are_left_out() -> None:
    X, _ = small("wine")
    fitted = GaussianMixture(3, random_state=0).fit(X)
    fitted.weights_ = np.array([0.5, 0.0, 0.5])
    assert as_prototype_model(fitted).labels.tolist() == [0, 2]
    fitted.weights_ = np.array([1.0, 0.0, 0.0])
    with pytest.raises(clvq.NotSupportedError, match="one component only"):
        as_prototype_model(fitted)


def test_a_class_without_variance_is_refused() -> None:
    X, y = small("wine")
    fitted = GaussianNB().fit(X, y)
    fitted.var_[0, 0] = 0.0
    with pytest.raises(clvq.NotSupportedError, match="variance of 0"):
        as_prototype_model(fitted)
    other = QuadraticDiscriminantAnalysis().fit(X, y)
    other.scalings_[0][0] = 0.0
    with pytest.raises(clvq.NotSupportedError, match="does not vary"):
        as_prototype_model(other)

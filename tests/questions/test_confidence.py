"""Answers that the model is sure of: grids, plain programs from the definition, Monte Carlo."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import counterlvq as clvq
from counterlvq.cli.advice import at_shell
from counterlvq.questions import confidence as confident
from counterlvq.report import report_html
from tests.support.quick import seeds
from tests.support.shell import called

SCALES = np.array([1e-5, 1.0, 1e4])
ORDERS = {"l1": 1, "l2": 2, "linf": np.inf}
DUALS = {"l1": np.inf, "l2": 2, "linf": 1}


def table(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3)) * SCALES + [0.0, 2.0, 5e4]
    y = np.where((X / SCALES) @ [1.0, -1.0, 0.5] + rng.normal(size=60) > 1.0, "yes", "no")
    return X, y


def classifier(kind: str, X: np.ndarray, y: np.ndarray):
    models = {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
        "lda": LinearDiscriminantAnalysis(),
        "rslvq": make_pipeline(StandardScaler(), clvq.RSLVQ(2, random_state=0, max_iter=20)),
        "mrslvq": make_pipeline(StandardScaler(), clvq.MRSLVQ(random_state=0, max_iter=20)),
        "bayes": make_pipeline(StandardScaler(), GaussianNB()),
    }
    return models[kind].fit(X, y)


@pytest.mark.parametrize("kind", ["logistic", "lda", "rslvq", "mrslvq", "bayes"])
@pytest.mark.parametrize("p", [0.7, 0.95])
def test_probability_is_that_of_predict_proba(kind: str, p: float) -> None:
    X, y = table(0)
    model = classifier(kind, X, y)
    cost = clvq.Manhattan(1 / SCALES)
    sure = clvq.Explainer(model, cost, confidence=clvq.Probability(p))
    bare = clvq.Explainer(model, cost)
    for row, target in product(X[: 2 if kind == "bayes" else 5], ["yes", "no"]):
        at = list(model.classes_).index(target)
        cf = sure.explain(row, target=target)
        assert cf.status in ("optimal", "feasible"), cf
        chance = model.predict_proba([cf.x])[0, at]
        assert chance >= p
        assert model.predict([cf.x])[0] == target
        assert cf.cost >= bare.explain(row, target=target).lower_bound
        assert sure.verify(cf) == cf.lower_bound
        if cf.cost > 0:
            assert chance == pytest.approx(p, abs=1e-3)
        else:
            assert model.predict_proba([row])[0, at] >= p


@pytest.mark.parametrize("p", [0.6, 0.999])
def test_probability_costs_what_the_definition_says(p: float) -> None:
    X, y = table(1)
    model = LogisticRegression(C=1.0).fit(X / SCALES, y)
    explainer = clvq.Explainer(model, clvq.Manhattan([1.0, 2.0, 1.0]), ["x1 <= 4"],
                               confidence=clvq.Probability(p))  # fmt: skip
    a, b = model.coef_[0], model.intercept_[0]
    for row, target in product(X[:4] / SCALES, ["yes", "no"]):
        sign, odds = (1 if target == "yes" else -1), np.log(p / (1 - p))
        A, right = -sign * a, sign * (a @ row + b) - odds
        best = linprog(
            [1.0, 2.0, 1.0] * 2, [np.r_[A, -A]], [right],
            bounds=[(0, None), (0, max(0.0, 4 - row[1])), (0, None), (0, None),
                    (max(0.0, row[1] - 4), None), (0, None)],
        )  # fmt: skip
        cf = explainer.explain(row, target=target)
        assert (cf.status, cf.cost) == ("optimal", pytest.approx(best.fun, rel=1e-6, abs=1e-7))


def drawn(seed: int, *, full: bool) -> tuple[clvq.PrototypeModel, np.ndarray]:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(7, 3)) * 2 * SCALES
    omegas = rng.normal(size=(3, 3)) / SCALES if full else 1 / SCALES
    labels = ["red", "green", "blue", "blue", "red", "green", "red"]
    return clvq.PrototypeModel(points, labels, omegas), rng.normal(size=(3, 3)) * SCALES


@pytest.mark.covering
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("seed", range(3))
def test_noise_changes_no_label_and_costs_what_the_definition_says(seed: int, norm: str) -> None:
    model, rows = drawn(seed, full=seed > 0)
    noise = clvq.Noise(0.15, norm, weights=1 / SCALES)
    explainer = clvq.Explainer(model, clvq.Manhattan(1 / SCALES), confidence=noise)
    rng = np.random.default_rng(9)
    F = np.diag(model.omegas) if model.omegas.ndim == 1 else model.omegas
    Z = model.prototypes @ F.T
    for row, target in product(rows, ["red", "green", "blue", None]):
        cf = explainer.explain(row, target=target)
        wished = cf.target
        costs = []
        for i in np.flatnonzero(np.isin(model.labels, wished)):
            rivals = np.flatnonzero(model.labels != model.labels[i])
            A = 2 * (Z[rivals] - Z[i]) @ F * SCALES
            b = (Z[rivals] ** 2).sum(1) - (Z[i] ** 2).sum() - A @ (row / SCALES)
            b -= 0.15 * np.linalg.norm(A, ord=DUALS[norm], axis=1)
            found = linprog(np.ones(6), np.c_[A, -A], b)
            costs.append(found.fun if found.status == 0 else np.inf)
        if np.isinf(min(costs)):
            assert cf.status == "infeasible"
            assert explainer.verify(cf) == np.inf
            continue
        assert (cf.status, cf.cost) == ("optimal", pytest.approx(min(costs), rel=1e-6, abs=1e-7))
        assert explainer.verify(cf) == cf.lower_bound <= cf.cost
        moves = np.r_[rng.normal(size=(2000, 3)), np.eye(3), -np.eye(3),
                      list(product([-1.0, 1.0], repeat=3))]  # fmt: skip
        moves *= 0.15 / np.linalg.norm(moves, ord=ORDERS[norm], axis=1, keepdims=True)
        for point in (cf.x, cf.shown.values):
            around = point + moves * SCALES * (1 - 1e-12)
            assert (model.predict(around) == cf.prediction).all()


def test_noise_by_a_grid_of_points() -> None:
    model = clvq.PrototypeModel([[0, 0], [3, 1], [1, 4]], ["a", "b", "c"])
    explainer = clvq.Explainer(model, confidence=clvq.Noise(0.4, "linf"))
    steps = np.linspace(-1, 5, 121)
    grid = np.array(list(product(steps, steps)))
    corners = 0.4 * np.array(list(product([-1, 1], repeat=2)))
    sure = np.array([model.predict(grid + corner) for corner in corners])
    for row, target in product([[0.5, 0.5], [2.0, 2.0]], ["a", "b", "c"]):
        good = (sure == target).all(axis=0)
        best = np.abs(grid[good] - row).sum(axis=1).min()
        cf = explainer.explain(row, target=target)
        assert cf.cost <= best + 1e-9
        assert best - cf.cost <= 0.15  # three steps of the grid


@pytest.mark.parametrize("confidence", [clvq.Noise(0.3), clvq.Noise(0.2, "l1")])
def test_whole_numbers_by_enumeration(confidence: clvq.Noise) -> None:
    model = clvq.PrototypeModel([[0, 0], [5, 2], [2, 6]], ["a", "b", "c"], None, ["u", "v"])
    features = clvq.Features([clvq.Feature("u", "whole"), clvq.Feature("v", "whole")])
    explainer = clvq.Explainer(
        model, clvq.Manhattan([1.0, 1.5]), confidence=confidence, features=features
    )
    points = np.array(list(product(range(-2, 9), repeat=2)), dtype=float)
    for target in ("a", "b", "c"):
        i = ["a", "b", "c"].index(target)
        good = np.ones(len(points), dtype=bool)
        for k in {0, 1, 2} - {i}:
            normal = 2 * (model.prototypes[k] - model.prototypes[i])
            lead = (model.prototypes[k] ** 2).sum() - (model.prototypes[i] ** 2).sum()
            worst = confidence.radius * np.linalg.norm(normal, ord=DUALS[confidence.norm])
            good &= points @ normal + worst < lead
        best = (np.abs(points[good] - [1, 1]) @ [1.0, 1.5]).min()
        cf = explainer.explain([1, 1], target=target)
        assert (cf.status, cf.cost) == ("optimal", pytest.approx(best))


def test_reject_option_and_inputs_that_are_not_sure() -> None:
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], feature_names=["a"])
    explainer = clvq.Explainer(model, confidence=clvq.Noise(0.5))
    both = ["no", "yes"]
    assert explainer.explain([1.0], target=both).cost == 0.0
    for at, cost in ((1.9, 0.4), (2.3, 0.2), (2.0, 0.5)):
        assert explainer.explain([at], target=both).cost == pytest.approx(cost)
    told = explainer.explain([2.3], target="yes").text()
    assert told.startswith("The answer is yes already; it would meet the wish for room for all")
    batch = explainer.explain_batch([[1.0], [2.3], [4.0]], target="yes")
    assert batch.cost.tolist() == pytest.approx([1.5, 0.2, 0.0])
    assert [batch[i].cost for i in range(3)] == batch.cost.tolist()


def test_summaries_count_rows_that_have_the_label_but_not_the_confidence(
    tmp_path: Path,
) -> None:
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], feature_names=["a"])
    explainer = clvq.Explainer(model, confidence=clvq.Noise(0.5))
    batch = explainer.explain_batch([[1.9], [2.3], [4.0]], target={"no", "yes"})
    summary = batch.summary()
    assert (summary.already, summary.demanded, summary.mean_changes) == (3, 2, 1.0)
    assert summary.mean_cost == pytest.approx((0.4 + 0.2) / 2)
    assert [use.mean_change for use in summary.features] == [pytest.approx(0.3)]
    assert "have the target already: 3, of which 2 change to meet what else" in str(summary)
    assert "mean cost" in batch._repr_html_()
    page = report_html(explainer, list(batch))
    assert "change though they have it" in page
    assert "mean cost" in page
    assert "change though" not in report_html(explainer, [batch[2]])
    clvq.save(model, tmp_path / "m.clvq")
    pd.DataFrame({"a": [1.9, 2.3, 4.0]}).to_csv(tmp_path / "rows.csv", index=False)
    words = ["explain", "m.clvq", "rows.csv", "--target", "yes", "--confidence", "noise=0.5"]
    assert called(*words, cwd=tmp_path).stdout.decode().splitlines()[-1] == (
        "3 rows: 3 optimal; 2 have the target already, of which 1 changes all the same"
    )


def test_what_is_said_names_the_confidence() -> None:
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], feature_names=["a"])
    asked = clvq.Explainer(model, confidence=clvq.RelativeSimilarity(0.3))
    words, cf = "with a relative similarity of at least 0.3", asked.explain([1.0], target="yes")
    assert cf.text().startswith(f"The answer would have been yes, {words}, if a were ")
    assert f"is yes already, {words}; nothing" in asked.explain([4.0], target="yes").text()
    assert words.removeprefix("with ") in report_html(asked, [cf]).partition("What was asked")[2]
    assert words.removeprefix("with ") in asked._repr_html_()
    bare = clvq.Explainer(model).explain([1.0], target="yes")
    assert bare.text().startswith("The answer would have been yes if a were ")


@pytest.mark.parametrize(
    ("noise", "words"),
    [
        (clvq.Noise(0.1, "linf"), "room for each number to be off by 0.1"),
        (clvq.Noise(0.1, "l1"), "room for all numbers together to be off by 0.1"),
        (clvq.Noise(0.1), "room for all numbers to be off by 0.1 in Euclidean length"),
        (clvq.Noise(3, "linf", unit="EUR"), "room for each number to be off by 3 EUR"),
        (clvq.Noise(3, "linf", [1, 2]), "room for each number to be off by 3 (weighted)"),
    ],
)
def test_noise_says_what_it_is_in_words(noise: clvq.Noise, words: str) -> None:
    assert noise.words == words


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_noise_has_weights_by_name_too(norm: str) -> None:
    features = clvq.Features(["income", clvq.Feature("job", levels=["a", "b"]), "age"])
    X = np.array([[0.0, 0.0, 1.0], [4.0, 1.0, 2.0]])
    steps = make_column_transformer(
        ("passthrough", ["income", "age"]), (OneHotEncoder(categories=[["a", "b"]]), ["job"])
    )
    rows = pd.DataFrame({"income": X[:, 0], "job": ["a", "b"], "age": X[:, 2]})
    model = make_pipeline(steps, KNeighborsClassifier(1)).fit(rows, ["no", "yes"])
    found = [
        clvq.Explainer(model, features=features, confidence=clvq.Noise(0.5, norm, weights))
        .explain(rows.iloc[0])
        .cost
        for weights in ({"income": 0.5}, {"income": 0.5, "age": 1.0}, [0.5, 3.0, 1.0])
    ]
    assert found[0] == found[1] == found[2]
    of_levels = clvq.Noise(0.5, norm, {"income": 0.5, "job": 7.0})
    with pytest.raises(clvq.InvalidInputError, match="weights has 'job', which has levels"):
        clvq.Explainer(model, features=features, confidence=of_levels)
    plain = clvq.Explainer(model, features=features, confidence=clvq.Noise(0.5, norm))
    assert found[0] > plain.explain(rows.iloc[0]).cost


def test_noise_at_the_shell_is_measured_like_the_cost(tmp_path: Path) -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4000.0, 0.0]], ["no", "yes"], None, ["pay", "age"])
    clvq.save(model, tmp_path / "m.clvq")
    train = pd.DataFrame({"pay": [0.0, 500.0, 1000.0, 1500.0, 2000.0], "age": [1.0, 2, 3, 4, 5]})
    train.to_csv(tmp_path / "train.csv", index=False)
    train.iloc[[0]].to_csv(tmp_path / "rows.csv", index=False)
    asked = ("explain", "m.clvq", "rows.csv", "--confidence", "noise=0.5:linf", "--format")
    by_deviation = ("--reference", "train.csv", "--cost", "mad")
    for cost, pay in ((("--cost", "manhattan"), 2000.5), (by_deviation, 2250.0)):
        (told,) = json.loads(called(*asked, "json", *cost, cwd=tmp_path).stdout)
        assert told["x"]["pay"] == pytest.approx(pay)
    said = called(*asked, "text", *by_deviation, cwd=tmp_path).stdout.decode()
    assert "with room for each number to be off by 0.5 typical deviations" in said


@pytest.mark.parametrize(
    ("p", "words"), [(0.8, "80 %"), (0.95, "95 %"), (0.501, "50.1 %"), (0.99999, "99.999 %")]
)
def test_probabilities_are_told_in_percent(p: float, words: str) -> None:
    X, y = table(0)
    model = classifier("logistic", X, y)
    asked = clvq.Explainer(model, clvq.Manhattan(1 / SCALES), confidence=clvq.Probability(p))
    cf = asked.explain(X[y == "no"][0], target="yes")
    assert f"with a probability of at least {words}" in cf.text()
    (told,) = re.findall(r"The probability of yes would be ([0-9.]+) % instead of", cf.text())
    assert Decimal(told) < 100
    (shown,) = re.findall(r"-> ([0-9.]+)\n", str(cf).partition("probability of yes")[2])
    assert p - 0.5 * 10.0 ** -len(shown.partition(".")[2]) <= float(shown) < 1
    if p == 0.99999:
        assert Decimal(told) >= Decimal("99.999")
        assert float(shown) >= p


def test_similarity_is_told_before_and_after() -> None:
    model = clvq.PrototypeModel([[0.0], [4.0], [9.0]], ["no", "yes", "no"], feature_names=["a"])
    asked = clvq.Explainer(model, confidence=clvq.RelativeSimilarity(0.6))

    def similarity(at: float) -> float:
        own, other = (at - 4.0) ** 2, min(at**2, (at - 9.0) ** 2)
        return (other - own) / (other + own)

    for cf in (asked.explain([1.0], target="yes"), asked.explain_batch([[1.0]], target="yes")[0]):
        assert cf.reply is not None
        assert cf.reply.name == "relative similarity"
        assert cf.reply.before == pytest.approx(similarity(1.0))
        assert cf.reply.after == pytest.approx(similarity(float(cf.shown.values[0])))
        assert cf.to_dict()["response"]["after"] == pytest.approx(similarity(float(cf.x[0])))
        (said,) = re.findall(
            r"The relative similarity would be ([0-9.]+) instead of -0\.8\.", cf.text()
        )
        assert float(said) >= 0.6
        assert f"  relative similarity -0.8 -> {said}" in str(cf)
        again = pickle.loads(pickle.dumps(cf))
        assert again.reply == cf.reply
    sure = asked.explain([4.0], target="yes")
    assert sure.reply is not None
    assert sure.reply.before == sure.reply.after == 1.0


def test_there_may_be_no_answer() -> None:
    model = clvq.PrototypeModel([[0.0], [1.0], [2.0]], ["a", "b", "a"], feature_names=["x"])
    narrow = clvq.Explainer(model, confidence=clvq.Noise(0.6))
    cf = narrow.explain([0.0], target="b")
    assert (cf.status, cf.conflict, cf.lower_bound) == ("infeasible", (), np.inf)
    room = "room for all numbers to be off by 0.6 in Euclidean length"
    assert f"for b: the model never says so with {room}" in cf.text()
    assert narrow.verify(cf) == np.inf
    bound = clvq.Explainer(model, constraints=["x <= 0.9"], confidence=clvq.Noise(0.45))
    clash = bound.explain([0.0], target="b")
    assert clash.conflict == ("x <= 0.9",)
    room = "room for all numbers to be off by 0.45 in Euclidean length"
    assert f'no counterfactual for b with {room}: "x <= 0.9" leaves' in clash.text()
    said = clash.text(subject="Your loan")
    assert said.startswith(f"Your loan would not have been b with {room} by any change: ")


def test_what_cannot_be_had_is_said() -> None:
    three = clvq.PrototypeModel([[0.0], [1.0], [2.0]], ["a", "b", "c"])
    local = clvq.PrototypeModel([[0.0], [1.0]], [0, 1], omegas=[[[1.0]], [[2.0]]])
    two = clvq.PrototypeModel([[0.0], [1.0]], [0, 1])
    levels = clvq.Features([clvq.Feature("x0", levels=[0.0, 1.0])])
    for model, confidence, words in (
        (three, clvq.Probability(0.9), "Probability is for two classes, and this model has 3"),
        (two, clvq.Probability(0.9), "needs a model whose probabilities follow"),
        (local, clvq.Noise(0.1), "Noise is for shared metrics"),
    ):
        with pytest.raises(clvq.NotSupportedError, match=words):
            clvq.Explainer(model, confidence=confidence)
    for numeric, name in ((clvq.Noise(0.1), "Noise"), (clvq.Drift(0.1), "Drift")):
        words = rf"{name} is for columns of numbers .* others: 'x0' \(levels\)\. Ask for"
        with pytest.raises(clvq.NotSupportedError, match=words):
            clvq.Explainer(two, features=levels, confidence=numeric)
    for bad, words in (
        (lambda: clvq.Probability(0.5), "expected a number above 0.5"),
        (lambda: clvq.Probability(1.0), r"below 1\. Write 0\.8 for 80 %"),
        (lambda: clvq.Probability(95), r"below 1\. Write 0\.95 for 95 %"),
        (lambda: clvq.Noise(0.0), "expected a positive number"),
        (lambda: clvq.Noise(0.1, "l3"), "expected one of: 'l1', 'l2', 'linf'"),
        (lambda: clvq.Noise(0.1, weights=[0.0]), "expected positive ones"),
        (lambda: clvq.Noise(0.1, weights={"x0": -1}), "has 'x0': -1; expected names of features"),
        (lambda: clvq.Explainer(two, confidence=clvq.Noise(1, weights={"a": 2})), "'a'"),
        (lambda: clvq.Explainer(two, confidence=clvq.Noise(1, weights=[1, 2])), "weights has 2"),
        (lambda: clvq.Explainer(two, confidence=0.9), "expected one such as Probability"),
        (lambda: clvq.Explainer(two, margin=1.0, confidence=clvq.Noise(1)), "both given"),
    ):
        with pytest.raises(clvq.InvalidInputError, match=words):
            bad()


def test_a_threshold_that_keeps_a_probability_from_being_asked_for_is_named() -> None:
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    fitted = LogisticRegression().fit(X, ["no", "no", "yes", "yes"])
    for threshold in (0.3, 0.5):
        model = FixedThresholdClassifier(fitted, threshold=threshold, pos_label="yes")
        model.fit(X, ["no", "no", "yes", "yes"])
        if threshold == 0.5:
            assert clvq.Explainer(model, confidence=clvq.Probability(0.9)).explain([0.0]).status
            continue
        words = "it says 'yes' from a probability of 0.3 on. Take the model behind the threshold"
        with pytest.raises(clvq.NotSupportedError, match=words) as raised:
            clvq.Explainer(model, confidence=clvq.Probability(0.9))
        assert "--confidence margin=0.5 instead if the threshold" in at_shell(str(raised.value))


def test_a_lying_certificate_is_seen_through() -> None:
    model, rows = drawn(1, full=True)
    explainer = clvq.Explainer(model, confidence=clvq.Noise(1e-6))
    cf, other = (explainer.explain(rows[0], target=target) for target in ("red", "blue"))
    from dataclasses import replace

    assert explainer.verify(replace(cf, certificate=other.certificate)) <= cf.cost
    plain = clvq.Explainer(model).explain(rows[0])
    assert explainer.verify(replace(cf, certificate=plain.certificate)) == 0.0


def test_shell_asks_for_confidence(tmp_path: Path) -> None:
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], feature_names=["a"])
    clvq.save(model, tmp_path / "m.clvq")
    pd.DataFrame({"a": [1.0]}).to_csv(tmp_path / "rows.csv", index=False)
    asked = ("explain", "m.clvq", "rows.csv", "--format", "json", "--confidence")
    told = json.loads(called(*asked, "noise=0.5:l1", cwd=tmp_path).stdout)
    assert told[0]["cost"] == pytest.approx(1.5)
    assert called(*asked, "noise=-1", cwd=tmp_path).returncode == 2
    assert called(*asked, "certainty=1", cwd=tmp_path).returncode == 2
    done = called(*asked, "probability=0.9", cwd=tmp_path)
    assert b"needs a model whose probabilities" in done.stderr


# --- noise on grids, decided by fractions ---------------------------------------------------------


def has_room(model: clvq.PrototypeModel, y: Sequence[Fraction], i: int, noise: clvq.Noise) -> bool:
    """Whether all of the noise leaves a point in the cell of prototype i, from the definition."""
    metric = [
        Fraction(v) ** 2
        for v in np.broadcast_to(1.0 if model.omegas is None else model.omegas, len(y)).tolist()
    ]
    points = [[Fraction(v) for v in row] for row in model.prototypes.tolist()]

    def score(k: int) -> Fraction:
        return sum((m * (a - b) ** 2 for m, a, b in zip(metric, y, points[k], strict=True)), 0)

    for k in np.flatnonzero(model.labels != model.labels[i]):
        slopes = [2 * m * (a - b) for m, a, b in zip(metric, points[k], points[i], strict=True)]
        lead, radius = score(k) - score(i), Fraction(noise.radius)
        if noise.norm == "l2":
            is_enough = lead >= 0 and lead**2 >= radius**2 * sum(slope**2 for slope in slopes)
        else:
            sizes = list(map(abs, slopes))
            is_enough = lead >= radius * (max(sizes) if noise.norm == "l1" else sum(sizes))
        if not is_enough:
            return False
    return True


@pytest.mark.parametrize("seed", seeds(60, quick=12))
def test_room_for_noise_on_a_grid_is_found_and_exact(seed: int) -> None:
    rng = np.random.default_rng([31, seed])
    points = rng.permutation([[a, b] for a in range(-4, 5) for b in range(-4, 5)])[:4]
    model = clvq.PrototypeModel(points.astype(float), [0, 1, 0, 1], feature_names=["a", "b"])
    noise = clvq.Noise(float(rng.choice([0.5, 1.0, 1.5])), str(rng.choice(["l1", "l2", "linf"])))
    whole = clvq.Features([clvq.Feature(name, "whole", lower=-7, upper=7) for name in "ab"])
    explainer = clvq.Explainer(model, confidence=noise, features=whole)
    x = points[0].astype(float)
    cf = explainer.explain(x, target=1)
    able = [
        abs(a - x[0]) + abs(b - x[1])
        for a, b in product(range(-7, 8), repeat=2)
        if any(has_room(model, [Fraction(a), Fraction(b)], i, noise) for i in (1, 3))
    ]
    assert cf.status == ("optimal" if able else "infeasible")
    assert cf.cost == min(able, default=np.inf)
    assert explainer.verify(cf) == cf.lower_bound <= cf.cost


def test_bound_without_an_answer_is_that_of_all_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    model = clvq.PrototypeModel([[0.0], [4.0], [-7.0]], ["no", "yes", "yes"])
    explainer = clvq.Explainer(model, confidence=clvq.Noise(0.5, "linf"))
    least = explainer.explain([0.0], target="yes").cost
    answered = type(explainer).answered

    def out_of_time(asked: clvq.Explainer, *given, **more) -> clvq.Counterfactual:
        """One part is answered; the other runs into a limit."""
        found = answered(asked, *given, **more)
        if not (asked.model.prototypes == 4.0).any():
            return found
        return replace(
            found, status=clvq.Status.UNKNOWN, values=found.values * np.nan, cost=np.inf,
            lower_bound=0.0, certificate=replace(found.certificate, proofs=()),
        )  # fmt: skip

    monkeypatch.setattr(type(explainer), "answered", out_of_time)
    monkeypatch.setattr(confident, "_is_kept", lambda *given: False)
    cf = explainer.explain([0.0], target="yes")
    assert cf.status == "unknown"
    assert cf.lower_bound <= least
    assert explainer.verify(cf) == cf.lower_bound


@pytest.mark.parametrize("nearly", [1e-15, 1e-12, 1e-9])
@pytest.mark.parametrize("target", ["b", "c", ["b", "c"]])
def test_bound_without_an_answer_is_what_verify_recomputes(nearly: float, target: Any) -> None:
    """Cells so small that floats hardly reach into them."""
    model = clvq.PrototypeModel([[4.0, 0.0], [4.0, nearly], [0.0, 0.0]], ["b", "c", "a"])
    for rule in (clvq.RelativeSimilarity(0.5), clvq.Drift(0.49 * nearly)):
        explainer = clvq.Explainer(model, confidence=rule)
        cf = explainer.explain([0.0, 1.0], target=target)
        assert explainer.verify(cf) == cf.lower_bound
        assert 2.0 - 1e-6 <= cf.lower_bound <= 5.0  # half way to b, and b itself


def far_border(seed: int, kind: str) -> tuple[Any, np.ndarray]:
    """Models whose border of the confidence lies far from where their scores are near to 0."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 80)
    if kind == "rslvq":
        X = rng.normal(size=(80, 1))
        return make_pipeline(StandardScaler(), clvq.RSLVQ(random_state=0)).fit(X, y), X
    X = 1e8 * rng.normal(size=(80, 4))
    return LogisticRegression(class_weight="balanced", C=10.0).fit(X, y), X


@pytest.mark.parametrize("kind", ["rslvq", "logistic"])
@pytest.mark.parametrize("cost", ["absolute", "squared"])
@pytest.mark.parametrize("seed", seeds(20, quick=3))
def test_confidence_far_out_is_found_and_proved(seed: int, cost: str, kind: str) -> None:
    """The log odds are linear in the row; along one column their border is one division away."""
    model, X = far_border(seed, kind)
    row, unit = X[0], float(np.abs(X).max())
    origin, steps = np.zeros((1, X.shape[1])), unit * np.eye(X.shape[1])

    def log_odds(rows: np.ndarray) -> np.ndarray:
        p = model.predict_proba(rows)
        return np.log(p[:, 1]) - np.log(p[:, 0])

    slopes = (log_odds(steps) - log_odds(origin)) / unit
    price = 1.0 / unit
    measured = clvq.Manhattan([price] * X.shape[1])
    if cost == "squared":
        measured = clvq.Mahalanobis(price**2 * np.eye(X.shape[1]))
    for target in model.classes_.tolist():
        sign = 1.0 if target == model.classes_[1] else -1.0
        wanted = np.log(0.9 / 0.1) - sign * log_odds(row[None])[0]
        least = price * max(wanted, 0.0) / np.abs(slopes)
        best = least.min() if cost == "absolute" else 1.0 / (1.0 / least**2).sum()
        explainer = clvq.Explainer(model, measured, confidence=clvq.Probability(0.9))
        cf = explainer.explain(row, target=target)
        assert cf.status == "optimal"
        assert cf.cost == pytest.approx(best, rel=1e-5)
        assert explainer.verify(cf) == cf.lower_bound
        at = model.classes_.tolist().index(target)
        assert model.predict_proba([cf.x])[0, at] >= 0.9 * (1.0 - 1e-14)


def test_label_whose_prototypes_are_copies_of_others_is_never_said() -> None:
    model = clvq.PrototypeModel([[0.0], [4.0], [0.0]], ["a", "b", "c"])
    for confidence in (clvq.Noise(0.5), clvq.RelativeSimilarity(0.2), clvq.Drift(0.1)):
        explainer = clvq.Explainer(model, confidence=confidence)
        cf = explainer.explain([1.0], target="c")
        assert (cf.status, cf.conflict) == ("infeasible", ())
        assert explainer.verify(cf) == np.inf


def test_noise_beyond_floats_is_refused() -> None:
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"])
    with pytest.raises(clvq.InvalidInputError, match=r"radius is 1e\+308, .* expected a smaller"):
        clvq.Explainer(model, confidence=clvq.Noise(1e308)).explain([0.0])


@pytest.mark.parametrize("kind", ["rslvq", "mrslvq"])
def test_probability_outlives_the_estimator(kind: str, tmp_path: Path) -> None:
    X, y = table(0)
    model = classifier(kind, X, y)
    clvq.save(model, tmp_path / "loans.clvq")
    loaded = clvq.load(tmp_path / "loans.clvq")
    cost = clvq.Manhattan(1 / SCALES)
    sure = clvq.Explainer(loaded, cost, confidence=clvq.Probability(0.9))
    for row, target in product(X[:5], ["yes", "no"]):
        cf = sure.explain(row, target=target)
        chance = model.predict_proba([cf.x])[0, list(model.classes_).index(target)]
        assert cf.status == "optimal"
        assert chance >= 0.9 - 1e-12
        assert cf.cost == 0 or chance == pytest.approx(0.9, abs=1e-3)


def test_files_without_probabilities_say_what_to_do() -> None:
    bare = clvq.PrototypeModel([[0.0], [1.0]], [0, 1])
    with pytest.raises(clvq.NotSupportedError, match=r"older model files .* save them again"):
        clvq.Explainer(bare, confidence=clvq.Probability(0.9))


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (clvq.Drift(np.float32(0.3)), clvq.Drift(float(np.float32(0.3)))),
        (clvq.Drift(np.int64(1)), clvq.Drift(1.0)),
        (clvq.Drift(1), clvq.Drift(1.0)),
        (
            clvq.RelativeSimilarity(np.float32(0.3)),
            clvq.RelativeSimilarity(float(np.float32(0.3))),
        ),
    ],
)
def test_numbers_of_numpy_are_numbers(given: Any, meant: Any) -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 1.0]], ["a", "b"])
    found, expected = (
        clvq.Explainer(model, confidence=item).explain([0.0, 0.0], target="b")
        for item in (given, meant)
    )
    assert found.status == "optimal"
    assert found.x.tolist() == expected.x.tolist()


def test_probability_of_a_numpy_number_is_that_number() -> None:
    assert type(clvq.Probability(np.float32(0.75)).p) is float


@pytest.mark.parametrize(
    ("confidence", "least"),
    [
        (None, 2.0),
        (clvq.Noise(0.5), 2.5),
        (clvq.Drift(0.5), 2.5),
        (clvq.RelativeSimilarity(0.6), 8 / 3),
    ],
    ids=["none", "noise", "drift", "similarity"],
)
def test_a_clash_says_whether_the_confidence_is_part_of_it(confidence, least) -> None:
    """On a line from 0 to 4 the answers begin at 2, and with a confidence at `least`, by hand."""
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], None, ["pay"])

    def ask(limit: float, **more: Any) -> clvq.Counterfactual:
        rules = [f"pay <= {limit}"]
        return clvq.Explainer(model, constraints=rules, confidence=confidence, **more).explain([0])

    assert ask(least + 0.01).status == "optimal"
    never = ask(1.9)
    assert (never.status, never.conflict) == ("infeasible", ("pay <= 1.9",))
    assert not never.conflict_has_confidence
    assert "without this confidence" not in never.text()
    if confidence is None:
        return
    near = ask(least - 0.01)
    assert (near.status, near.conflict) == ("infeasible", (f"pay <= {least - 0.01}",))
    assert near.conflict_has_confidence
    assert near.to_dict()["conflict_has_confidence"]
    assert near.text().endswith(
        "leaves no room for it; without this confidence there would be some."
    )
    batch = clvq.Explainer(model, constraints=near.conflict, confidence=confidence)
    assert batch.explain_batch([[0.0]])[0].conflict_has_confidence
    ranged = clvq.Features([clvq.Feature("pay", lower=0, upper=least - 0.01)])
    found = clvq.Explainer(model, features=ranged, confidence=confidence).explain([0])
    assert found.conflict_ranges == (clvq.Bounds("pay", 0, least - 0.01),)
    assert found.conflict_has_confidence


def test_numbers_of_confidences_are_said_in_few_digits_and_true() -> None:
    assert clvq.Probability(2 / 3).words == "a probability of at least 2/3"
    assert clvq.Probability(0.1 + 0.2 + 0.4).words == "a probability of at least 70 %"
    assert clvq.Probability(0.99999).words == "a probability of at least 99.999 %"
    assert clvq.RelativeSimilarity(1 / 3).words == "a relative similarity of at least 1/3"
    assert clvq.Drift(123456.789012).words == "room for a drift of 123456.789012"
    for value in np.random.default_rng(3).random(200) * 10.0 ** np.arange(-100, 100):
        typed = clvq.Noise(value).words.split("off by ")[1].split(" in ")[0]
        assert abs(float(Fraction(typed)) - value) <= np.spacing(value)

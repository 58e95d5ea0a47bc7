"""Columns that a pipeline sees through a monotone function: log, powers and the like."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    PowerTransformer,
    StandardScaler,
)

import counterlvq as clvq
from counterlvq import plots, report
from counterlvq.tables.missing import Fills
from counterlvq.tables.monotone import NAMES, Link
from tests.support.quick import some
from tests.support.score_models import saved_and_loaded

RNG = np.random.default_rng(0)
N = 400
FRAME = pd.DataFrame(
    {
        "income": np.exp(RNG.normal(10.0, 0.8, N)),
        "debts": np.exp(RNG.normal(7.0, 1.2, N)),
        "age": RNG.uniform(20, 70, N),
        "job": RNG.choice(["clerk", "nurse", "smith"], N),
    }
)
SCORE = np.log1p(FRAME["income"]) - 0.5 * np.log1p(FRAME["debts"]) + 0.02 * FRAME["age"]
Y = np.where(SCORE + RNG.normal(0, 0.5, N) > SCORE.median(), "yes", "no")
LOGGED = FunctionTransformer(np.log1p, feature_names_out="one-to-one")


def pipeline(last: Any, step: Any = LOGGED, job: bool = False) -> Any:
    parts = [
        (make_pipeline(step, StandardScaler()), ["income", "debts"]),
        (StandardScaler(), ["age"]),
    ]
    if job:
        parts.append((OneHotEncoder(), ["job"]))
    return make_pipeline(make_column_transformer(*parts), last).fit(FRAME, Y)


POWERS = {
    "log1p": LOGGED,
    "log": FunctionTransformer(np.log),
    "sqrt": FunctionTransformer(np.sqrt),
    "box-cox": PowerTransformer(method="box-cox"),
    "yeo-johnson": PowerTransformer(),
    "plain power": PowerTransformer(standardize=False),
}


@pytest.mark.covering
@pytest.mark.parametrize("name", POWERS)
@pytest.mark.parametrize("last", [LogisticRegression(), NearestCentroid(), GaussianNB()])
def test_predict_of_the_pipeline_confirms(name: str, last: Any) -> None:
    fitted = pipeline(last, POWERS[name])
    explainer = clvq.Explainer(fitted, constraints=[clvq.Freeze("age")], gap=1e-2)
    rows = FRAME.iloc[:3]
    for target in ("yes", "no"):
        batch = explainer.explain_batch(rows, target=target)
        assert set(batch.status.tolist()) <= {"optimal", "feasible"}
        assert (fitted.predict(batch.X) == target).all()
        assert (batch.X["age"].to_numpy() == rows["age"].to_numpy()).all()
        assert np.isfinite(batch.X["income"].to_numpy()).all()


def test_costs_are_those_of_a_program_in_logarithms() -> None:
    fitted = pipeline(LogisticRegression())
    explainer = clvq.Explainer(fitted)
    scaler = fitted[0].transformers_[0][1][1]
    coef, intercept = fitted[-1].coef_[0], float(fitted[-1].intercept_[0])
    slopes = coef.copy()
    slopes[:2] /= scaler.scale_
    slopes[2] /= fitted[0].transformers_[1][1].scale_[0]
    for i in range(4):
        row = FRAME.iloc[[i]]
        f = float(fitted[:-1].transform(row)[0] @ coef + intercept)
        sign = 1.0 if f < 0 else -1.0
        A = -sign * slopes[None, :]
        best = linprog(np.ones(6), np.hstack([A, -A]), [sign * f], bounds=(0, None)).fun
        cf = explainer.explain(row.iloc[0])
        assert cf.cost == pytest.approx(best, rel=1e-6)
        assert cf.lower_bound <= best * (1 + 1e-9)
        assert cf.status == "optimal"
        before, after = cf.original[:2].astype(float), cf.x[:2].astype(float)
        moved = np.abs(np.log1p(after) - np.log1p(before)).sum()
        moved += abs(float(cf.x[2]) - float(cf.original[2]))
        assert cf.cost == pytest.approx(moved, rel=1e-9)


def test_the_result_says_on_which_scale_the_cost_is() -> None:
    cf = clvq.Explainer(pipeline(LogisticRegression())).explain(FRAME.iloc[0])
    words = "on the transformed scale (changes in log1p(income), log1p(debts), before scaling)"
    assert words in str(cf)
    assert cf.to_dict()["cost_scales"] == ["log1p(income)", "log1p(debts)"]


def test_costs_of_a_standardised_power_are_those_before_its_scaling() -> None:
    fitted = pipeline(LogisticRegression(), POWERS["yeo-johnson"])
    cf = clvq.Explainer(fitted).explain(FRAME.iloc[0])
    step = fitted[0].transformers_[0][1][0]
    plain = PowerTransformer(standardize=False).fit(FRAME[["income", "debts"]])
    assert np.array_equal(plain.lambdas_, step.lambdas_)
    before, after = (plain.transform(pd.DataFrame([row[:2]], columns=["income", "debts"]))
                     for row in (cf.original, cf.x))  # fmt: skip
    moved = np.abs(after - before).sum() + abs(float(cf.x[2]) - float(cf.original[2]))
    assert cf.cost == pytest.approx(moved, rel=1e-9)
    assert f"yeo-johnson(income, power {step.lambdas_[0]:.4g})" in str(cf)


OUTSIDE = [
    ("log1p", clvq.Bounds("income", upper=-2.0), "income' is kept at most -2.0, and log1p(income)"),
    ("log1p", clvq.Bounds("income", upper=-1.0), "from -0.9999999999999998 to 1e+300"),
    ("sqrt", "income <= -1", "sqrt(income) is worked with from 0.0"),
    ("log", "income == 0", "log(income) is worked with from 2.2250738585072014e-308"),
    ("box-cox", clvq.Bounds("income", upper=-1.0), "box-cox(income, power"),
    ("yeo-johnson", "income >= 1e200", "is kept at least 1e+200"),
]


@pytest.mark.parametrize(("name", "rule", "words"), OUTSIDE)
def test_rules_that_leave_no_value_of_the_function_are_refused(
    name: str, rule: Any, words: str
) -> None:
    fitted = pipeline(LogisticRegression(), POWERS[name])
    with pytest.raises(clvq.InvalidInputError, match=re.escape(words)):
        clvq.Explainer(fitted, constraints=[rule])


def test_bounds_beyond_the_domain_are_its_ends() -> None:
    fitted = pipeline(LogisticRegression(), POWERS["sqrt"])
    row = FRAME[fitted.predict(FRAME) == "no"].iloc[0]
    frozen = clvq.Freeze("income", "age")
    wide = [clvq.Bounds("debts", -5.0, None), frozen]
    told, found = (
        clvq.Explainer(fitted, constraints=rules).explain(row, target="yes")
        for rules in ([frozen], wide)
    )
    assert (found.status, found.cost) == (told.status, told.cost)
    assert np.array_equal(found.values, told.values, equal_nan=True)
    described = clvq.Features([clvq.Feature("debts", lower=-9.0, upper=-1.0)])
    with pytest.raises(clvq.InvalidInputError, match="'debts' is kept at most -1"):
        clvq.Explainer(fitted, features=described)


def test_bounds_are_in_the_units_of_the_user() -> None:
    fitted = pipeline(LogisticRegression())
    row = FRAME[fitted.predict(FRAME) == "no"].iloc[0]
    free = clvq.Explainer(fitted).explain(row, target="yes")
    limit = float(row["income"] + 0.5 * (free.x[0] - row["income"]))
    bounded = [clvq.Bounds("income", upper=limit), "debts >= 100", clvq.Freeze("age")]
    cf = clvq.Explainer(fitted, constraints=bounded).explain(row, target="yes")
    assert cf.status == "optimal"
    assert cf.x[0] <= limit
    assert cf.x[1] >= 100
    assert cf.x[2] == row["age"]
    assert cf.cost > free.cost
    again = fitted.predict(cf.row.to_frame().T.infer_objects())
    assert again[0] == "yes"
    frozen = clvq.Explainer(fitted, constraints=[clvq.Freeze("income")]).explain(row, target="yes")
    assert frozen.x[0] == row["income"]
    up = clvq.Explainer(fitted, constraints=[clvq.Increase("income"), clvq.Increase("debts")])
    raised = up.explain(row, target="yes")
    assert raised.x[0] >= row["income"]
    assert raised.x[1] >= row["debts"]
    fixed = clvq.Explainer(fitted, constraints=[f"income == {limit!r}"]).explain(row, target="yes")
    assert fixed.x[0] == limit


@pytest.mark.covering
@pytest.mark.parametrize("name", POWERS)
@pytest.mark.parametrize("job", [False, True])
def test_saved_and_loaded(name: str, job: bool) -> None:
    fitted = pipeline(LogisticRegression(), POWERS[name], job=job)
    loaded = saved_and_loaded(fitted)
    assert np.array_equal(loaded.predict(FRAME), fitted.predict(FRAME))
    assert loaded.table_map.links == clvq.TableModel.from_pipeline(fitted).table_map.links
    row = FRAME.iloc[0]
    told, found = (clvq.Explainer(model).explain(row) for model in (fitted, loaded))
    assert found.cost == pytest.approx(told.cost, rel=1e-6)
    assert found.scales == told.scales != ()


def test_links_of_strangers_are_refused() -> None:
    file = io.BytesIO()
    clvq.save(pipeline(LogisticRegression()), file)
    whole = file.getvalue()
    for good, bad, words in (
        (b'\\"name\\": \\"log1p\\"', b'\\"name\\": \\"sin1p\\"', "expected one of"),
        (b'\\"power\\": 0.0', b'\\"power\\": 1e9', "expected at most"),
    ):
        assert good in whole
        with pytest.raises(clvq.ModelFileError, match=words):
            clvq.load(io.BytesIO(whole.replace(good, bad)))


def test_pages_and_pictures(tmp_path: Path) -> None:
    explainer = clvq.Explainer(pipeline(LogisticRegression()))
    cf = explainer.explain(FRAME.iloc[0])
    assert "cell of class" in report.report_html(explainer, [cf])
    with pytest.raises(clvq.NotSupportedError, match="its cells are curved"):
        plots.plot_plane(explainer, cf)
    assert explainer.verify(cf) == cf.lower_bound
    assert explainer.scales == ("log1p(income)", "log1p(debts)")


def test_levels_beside_logarithms() -> None:
    fitted = pipeline(LogisticRegression(), job=True)
    batch = clvq.Explainer(fitted).explain_batch(FRAME.iloc[:4])
    assert (fitted.predict(batch.X) == batch.prediction).all()


@pytest.mark.parametrize(
    "rule",
    [
        "debts <= 0.5 * income",
        "income + debts <= 1e6",
        clvq.MaxChange("income", 100.0),
        clvq.Quadratic(np.eye(3), value=1e12, center=[0.0, 0.0, 0.0]),
    ],
)
def test_rules_that_mix_columns_are_refused(rule: Any) -> None:
    with pytest.raises(clvq.InvalidInputError, match="the pipeline sees log1p"):
        clvq.Explainer(pipeline(LogisticRegression()), constraints=[rule])


def test_whole_numbers_are_refused() -> None:
    features = clvq.Features([clvq.Feature("income", "whole")])
    with pytest.raises(clvq.InvalidInputError, match="Describe the column as real"):
        clvq.Explainer(pipeline(LogisticRegression()), features=features)


def test_one_column_seen_twice_is_refused() -> None:
    both = FeatureUnion([("raw", StandardScaler()), ("log", FunctionTransformer(np.log1p))])
    fitted = make_pipeline(both, LogisticRegression(max_iter=5000)).fit(FRAME[["income"]], Y)
    with pytest.raises(clvq.NotSupportedError, match="both as it is and through a function"):
        clvq.Explainer(fitted)
    late = make_pipeline(StandardScaler(), PowerTransformer(), LogisticRegression())
    with pytest.raises(clvq.NotSupportedError, match="an earlier step has changed"):
        clvq.Explainer(late.fit(FRAME[["income"]], Y))


@pytest.mark.parametrize("function", [np.abs, np.sin, lambda X: X])
def test_other_functions_are_refused(function: Any) -> None:
    fitted = make_pipeline(FunctionTransformer(function), NearestCentroid()).fit(FRAME[["age"]], Y)
    with pytest.raises(clvq.NotSupportedError, match="what a function does cannot be read"):
        clvq.Explainer(fitted)


# --- the functions themselves -------------------------------------------------------------------

LINKS = [Link(name) for name in NAMES]
LINKS += [Link("box-cox", power) for power in (-0.7, 0.0, 0.3, 2.0)]
LINKS += [Link("yeo-johnson", power) for power in (-0.5, 0.0, 0.4, 1.0, 2.0, 2.5)]


@pytest.mark.parametrize("link", LINKS, ids=lambda link: f"{link.name} {link.power}")
def test_functions_rise_and_are_undone(link: Link) -> None:
    low, high = max(link.domain[0], -30.0), min(link.domain[1], 30.0)
    x = np.linspace(low + 1e-3, high, 999)
    u = link.of(x)
    assert (np.diff(u) > 0).all()
    # Where the function is flat many x have one u: it is u that has to come back.
    assert (np.abs(link.of(link.back(u)) - u) <= 2.0**-50 * link.pull(u)).all()
    steep = np.diff(u, append=2 * u[-1] - u[-2]) > 1e-6
    assert np.allclose(link.back(u)[steep], x[steep], rtol=1e-8, atol=1e-8)
    moved = link.of(x * (1 + 2.0**-40)) - u
    assert (np.abs(moved) <= 2.0**-40 * link.pull(u)).all()


@pytest.mark.parametrize("method", ["box-cox", "yeo-johnson"])
def test_powers_are_those_of_scikit_learn(method: str) -> None:
    X = FRAME[["income", "debts", "age"]].to_numpy()
    if method == "yeo-johnson":
        X = X - X.mean(axis=0)
    step = PowerTransformer(method=method, standardize=False).fit(X)
    told = step.transform(X)
    for j, power in enumerate(step.lambdas_):
        assert np.allclose(Link(method, power).of(X[:, j]), told[:, j], rtol=1e-10)


@pytest.mark.parametrize(
    ("link", "good", "bad"),
    [
        (Link("exp"), [-1e4, 689.0], [691.0, 1e4]),
        (Link("log"), [1e-300, 1e299], [1e-310, 0.0, -1.0, 1e305]),
        (Link("yeo-johnson", 4.0), [-1e90, 1e70], [1e90, 1e120, np.inf, np.nan]),
        (Link("box-cox", -2.0), [1e-140, 1e90], [1e-200, 0.0]),
    ],
)
def test_only_values_with_a_finite_image_are_taken(
    link: Link, good: list[float], bad: list[float]
) -> None:
    assert link.takes(np.array(good)).all()
    assert not link.takes(np.array(bad)).any()
    assert np.isfinite(link.of(np.array([*good, *link.domain]))).all()
    assert link.takes(np.array(link.domain)).all()


def test_an_unknown_function_is_refused() -> None:
    with pytest.raises(clvq.InvalidInputError, match="expected one of"):
        Link("sin")


HOLED = pd.DataFrame({"income": [np.nan, 9000.0, np.nan], "debts": [900.0, np.nan, np.nan]})


@pytest.mark.parametrize("name", some(POWERS, quick={"log1p", "box-cox", "yeo-johnson"}))
def test_missing_values_before_a_function(name: str) -> None:
    """An imputed value is one of the user's units, and the cost counts from its image."""
    table = FRAME[["income", "debts"]].mask(np.arange(N)[:, None] % 7 == [0, 1])
    imputer = SimpleImputer(strategy="median")
    steps = imputer, POWERS[name], StandardScaler(), NearestCentroid()
    fitted = make_pipeline(*steps).fit(table, Y)
    filled = pd.DataFrame(fitted[0].transform(HOLED), columns=HOLED.columns)
    for explainer in (clvq.Explainer(fitted), clvq.Explainer(saved_and_loaded(fitted))):
        batch = explainer.explain_batch(HOLED, target="yes")
        expected = explainer.explain_batch(filled, target="yes")
        assert np.array_equal(batch.values, expected.values)
        assert np.array_equal(batch.cost, expected.cost)
        assert np.array_equal(batch.missing, HOLED.isna())
        assert (fitted.predict(batch.X) == "yes").all()
        stays = batch.X.isna().to_numpy()
        assert np.array_equal(stays, HOLED.isna().to_numpy() & (batch.values == filled.to_numpy()))
        assert stays.any()
        assert [explainer.explain(HOLED.iloc[[i]], "yes").cost for i in range(3)] == [*batch.cost]


def test_values_at_which_a_function_has_none() -> None:
    fitted = pipeline(NearestCentroid(), FunctionTransformer(np.log))
    explainer = clvq.Explainer(fitted)
    rows = FRAME.iloc[:4].copy()
    rows.loc[1, "income"], rows.loc[2, ["income", "debts"]] = 0.0, [-3.0, -4.0]
    with pytest.raises(clvq.InvalidInputError, match=r"row 1 of X has 0 in column 'income', where"):
        explainer.explain_batch(rows, target="yes")
    with pytest.raises(clvq.InvalidInputError, match=r"x has 0 .* log\(income\) is no number"):
        explainer.explain(rows.iloc[[1]], target="yes")
    batch = explainer.explain_batch(rows, target="yes", on_bad_rows="report")
    assert (batch.status == "invalid").tolist() == [False, True, True, False]
    assert "-3 in column 'income'" in batch[2].reason
    assert "-4 in column 'debts'" in batch[2].reason
    expected = explainer.explain_batch(rows.iloc[[0, 3]], target="yes")
    assert np.array_equal(batch.cost[[0, 3]], expected.cost)


@pytest.mark.parametrize("fill", [0.0, -1.0])
def test_imputed_values_at_which_a_function_has_none(fill: float) -> None:
    imputer = SimpleImputer(strategy="median")
    steps = imputer, FunctionTransformer(np.log), StandardScaler(), NearestCentroid()
    table = FRAME[["income", "debts"]]
    fitted = make_pipeline(*steps).fit(table, Y)
    read = clvq.TableModel.from_pipeline(fitted)
    fitted[0].statistics_[0] = fill
    batch = clvq.Explainer(fitted).explain_batch(HOLED, target="yes", on_bad_rows="report")
    assert (batch.status == "invalid").tolist() == [True, False, True]
    assert f"puts {fill!r} in its place, where log(income) is no number" in batch[0].reason

    wrong = replace(read.table_map, fills=Fills({"income": fill}))
    file = io.BytesIO()
    clvq.save(clvq.TableModel(wrong, read.model, read.features), file)
    with pytest.raises(clvq.ModelFileError, match="a value that its column does not take"):
        clvq.load(io.BytesIO(file.getvalue()))

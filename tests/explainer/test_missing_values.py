"""Missing values as the pipeline imputes them, and rows that cannot be read."""

from __future__ import annotations

import itertools
import json
import pickle
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 - for the import below
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import counterlvq as clvq
from counterlvq.certificates import check_certificate as checker
from counterlvq.pipelines import read_pipeline
from tests.support.quick import some

JOBS = ("clerk", "nurse", "smith")
NAMES = ["income", "age", "job"]


def whole_table(count: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "income": rng.normal(2500.0, 600.0, count).round(2),
            "age": rng.integers(18, 70, count).astype(float),
            "job": rng.choice(JOBS, count),
        }
    )


def labels_of(table: pd.DataFrame) -> np.ndarray:
    score = table["income"] + 20 * table["age"] + 500 * (table["job"] == "nurse")
    return np.where(score > score.median(), "good", "bad")


def with_gaps(table: pd.DataFrame) -> pd.DataFrame:
    rng = np.random.default_rng(4)
    return table.mask(rng.random(table.shape) < 0.3, np.nan)


@cache
def pipeline() -> Any:
    table = whole_table()
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    levels = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())
    steps = ColumnTransformer([("n", numbers, ["income", "age"]), ("l", levels, ["job"])])
    model = clvq.GMLVQ(prototypes_per_class=2, random_state=0)
    return make_pipeline(steps, model).fit(with_gaps(table), labels_of(table))


@cache
def explainer() -> clvq.Explainer:
    weights = clvq.mad_weights(whole_table())
    return clvq.Explainer(pipeline(), cost=clvq.Manhattan(weights), constraints=["income >= 0"])


def by_hand(table: pd.DataFrame) -> pd.DataFrame:
    """Type the imputed values in, as scikit-learn has them."""
    steps = pipeline()[0].named_transformers_
    out = table.copy()
    out[["income", "age"]] = steps["n"][0].transform(table[["income", "age"]])
    out["job"] = steps["l"][0].transform(table[["job"]])[:, 0]
    return out


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    cells = table.astype(object).where(table.notna(), None)
    return cells.to_dict("records")


def objects(table: pd.DataFrame) -> np.ndarray:
    return np.array([list(record.values()) for record in records(table)], dtype=object)


KINDS: dict[str, tuple[Callable[[pd.DataFrame], Any], Callable[[Any], Any]]] = {
    "pandas": (lambda table: table, lambda out: out),
    "pandas, types with gaps": (
        lambda table: table.astype({"income": "Float64", "age": "Int64"}),
        lambda out: out.astype({"income": float, "age": float}),
    ),
    "pandas, objects": (
        lambda table: table.astype({"job": object}).astype(object),
        lambda out: out.astype({"income": float, "age": float}),
    ),
    "polars": (pl.from_pandas, lambda out: out.to_pandas()),
    "arrow": (
        lambda table: pa.Table.from_pandas(table, preserve_index=False),
        lambda out: out.to_pandas(),
    ),
    "columns": (
        lambda table: {name: list(table[name]) for name in NAMES},
        pd.DataFrame,
    ),
    "records": (records, pd.DataFrame),
    "objects with None": (objects, lambda out: pd.DataFrame(out, columns=NAMES)),
}


def asked_for() -> pd.DataFrame:
    return with_gaps(whole_table()).iloc[:30]


@cache
def filled_by_hand() -> clvq.CounterfactualBatch:
    return explainer().explain_batch(by_hand(asked_for()), target="good")


@cache
def answered(kind: str) -> clvq.CounterfactualBatch:
    write, _ = KINDS[kind]
    return explainer().explain_batch(write(asked_for()), target="good")


@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_those_of_the_table_filled_by_hand(kind: str) -> None:
    """To the last digit; and the row comes back with its gaps, but for what has to change."""
    _, read = KINDS[kind]
    gaps = asked_for().isna().to_numpy()
    expected, batch = filled_by_hand(), answered(kind)
    assert batch.status.tolist() == expected.status.tolist()
    for part in ("values", "original_values", "cost", "lower_bound"):
        np.testing.assert_array_equal(getattr(batch, part), getattr(expected, part))
    np.testing.assert_array_equal(batch.missing, gaps)
    found = read(batch.X)
    stays = gaps & (batch.values == batch.original_values)
    assert stays.any()
    assert (gaps & ~stays).any()
    np.testing.assert_array_equal(found.isna().to_numpy(), stays)
    np.testing.assert_array_equal(read(batch.original).isna().to_numpy(), gaps)
    as_pandas = found.astype({"income": float, "age": float})[NAMES]
    as_pandas["job"] = as_pandas["job"].astype(object).where(as_pandas["job"].notna(), np.nan)
    assert set(pipeline().predict(as_pandas)) == {"good"}


@pytest.mark.parametrize("rows", some([range(2), range(2, 12)], quick=1), ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_one_row_is_answered_as_in_a_batch(kind: str, rows: range) -> None:
    write, _ = KINDS[kind]
    table, batch = asked_for(), answered(kind)
    for i in rows:
        one = write(table.iloc[[i]].reset_index(drop=True))
        given = one[0] if kind in ("records", "objects with None") else one
        alone, among = explainer().explain(given, target="good"), batch[i]
        assert alone.status is among.status
        np.testing.assert_array_equal(alone.values, among.values)
        np.testing.assert_array_equal(alone.missing, among.missing)
        np.testing.assert_array_equal(pd.isna(alone.x), pd.isna(among.x))
        assert alone.text() == among.text()
        assert explainer().verify(alone) == alone.lower_bound


def test_arrays_of_numbers_may_hold_nan_and_none() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    holed = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    steps = make_pipeline(SimpleImputer(), StandardScaler(), NearestCentroid())
    fitted = steps.fit(holed, (X[:, 0] > 0).astype(int))
    asked = clvq.Explainer(fitted)
    filled = fitted[0].transform(holed)
    expected = asked.explain_batch(filled)
    nones = holed.astype(object)
    nones[np.isnan(holed)] = None
    for given in (holed, nones, holed.tolist()):
        batch = asked.explain_batch(given)
        np.testing.assert_array_equal(batch.values, expected.values)
        stays = np.isnan(holed) & (batch.values == filled)
        np.testing.assert_array_equal(np.isnan(batch.X), stays)
        np.testing.assert_array_equal(fitted.predict(batch.X), batch.prediction)
    one = asked.explain(holed[0])
    np.testing.assert_array_equal(one.row, batch.X[0])
    named = asked.explain({f"x{j}": value for j, value in enumerate(holed[0])})
    np.testing.assert_array_equal(named.values, one.values)


def test_answers_are_the_cheapest_of_all_rows_of_a_grid() -> None:
    """Enumerated: whole numbers and levels, each row with each pattern of gaps."""
    grid = [*itertools.product(range(5), range(4), JOBS)]
    table = pd.DataFrame(grid, columns=["cards", "rooms", "job"]).astype(
        {"cards": float, "rooms": float}
    )
    score = table["cards"] + 2 * table["rooms"] + 3 * (table["job"] == "nurse")
    numbers = make_pipeline(SimpleImputer(strategy="most_frequent"), StandardScaler())
    levels = make_pipeline(SimpleImputer(strategy="constant", fill_value="smith"), OneHotEncoder())
    steps = ColumnTransformer([("n", numbers, ["cards", "rooms"]), ("l", levels, ["job"])])
    model = make_pipeline(steps, clvq.GMLVQ(random_state=1)).fit(table, score > 5)
    features = clvq.Features.from_frame(table, kinds={"cards": "whole", "rooms": "whole"})
    asked = clvq.Explainer(model, cost=clvq.Manhattan([1.0, 1.5, 2.0]), features=features)
    said = model.predict(table)
    fills = dict(
        zip(table, [*model[0].named_transformers_["n"][0].statistics_, "smith"], strict=True)
    )
    rng = np.random.default_rng(5)
    rows = table.iloc[rng.choice(len(table), 30)].reset_index(drop=True)
    holed = rows.mask(rng.random(rows.shape) < 0.4, np.nan)
    batch = asked.explain_batch(holed, target=[not label for label in model.predict(holed)])
    for i in range(len(rows)):
        start = {name: fills[name] if pd.isna(v) else v for name, v in holed.iloc[i].items()}
        price = (
            abs(table["cards"] - start["cards"])
            + 1.5 * abs(table["rooms"] - start["rooms"])
            + 2.0 * (table["job"] != start["job"])
        )
        wished = said == (not model.predict(holed.iloc[[i]])[0])
        assert batch.cost[i] == pytest.approx(price[wished].min(), abs=1e-9)


# --- what an answer says ----------------------------------------------------------------------


def one_feature(**more: Any) -> clvq.Counterfactual:
    table = pd.DataFrame({"income": [1000.0, 1500.0, 2500.0, 3000.0], "age": [1.0, 2.0, 1.0, 2.0]})
    steps = make_pipeline(SimpleImputer(strategy="constant", fill_value=1500.0), StandardScaler())
    fitted = make_pipeline(
        ColumnTransformer([("n", steps, ["income"]), ("a", SimpleImputer(), ["age"])]),
        NearestCentroid(),
    ).fit(table, ["bad", "bad", "good", "good"])
    features = clvq.Features(
        [clvq.Feature("income", unit="EUR", decimals=0, label="net income"), clvq.Feature("age")]
    )
    asked = clvq.Explainer(fitted, features=features, constraints=[clvq.Freeze("age")])
    return asked.explain({"income": None, "age": 1.0, **more}, target="good")


def test_words_say_what_stands_in_and_what_stays_missing() -> None:
    cf = one_feature()
    assert cf.text() == (
        "The answer would have been good if net income were 501 higher (2,001 instead of 1,500 "
        "EUR, which stands in for a missing value)."
    )
    assert "missing, as 1,500" in str(cf)
    both = one_feature(age=None)
    assert both.text().endswith("a missing value). The entry for age may stay missing.")
    assert "1 feature unchanged, 1 of them missing" in str(both)
    assert both.text(template="{changes}|{missing}").endswith(
        "|The entry for age may stay missing."
    )
    assert cf.text(template="{missing}") == ""
    already = one_feature(income=2900.0, age=None)
    assert already.text() == (
        "The answer is good already; nothing needs to change. The entry for age may stay missing."
    )


def test_data_say_what_stands_in_and_what_stays_missing() -> None:
    cf = one_feature(age=None)
    assert cf.missing.tolist() == [True, True]
    assert np.isnan(cf.original).tolist() == [True, True]
    assert np.isnan(cf.x).tolist() == [False, True]
    assert cf.row["age"] is None
    assert cf.original_values.tolist() == [1500.0, 1.5]
    (change,) = cf.changes
    assert change.was_missing
    assert change.difference == cf.cost == 501.0
    told = cf.to_dict()
    assert told["missing"] == ["income", "age"]
    assert told["original"] == {"income": None, "age": None}
    assert told["x"] == {"income": 2001.0, "age": None}
    assert told["changes"][0]["was_missing"]
    again = pickle.loads(pickle.dumps(cf))
    assert again.text() == cf.text()
    assert again.missing.tolist() == [True, True]


def test_phrases_of_booleans_say_what_stands_in() -> None:
    guarantor = clvq.Feature("guarantor", "boolean", true="with a guarantor", false="without one")
    change = clvq.Change(
        "guarantor", False, True, is_level=True, described=guarantor, was_missing=True
    )
    assert change.text() == (
        "it were with a guarantor instead of without one (which stands in for a missing value)"
    )


# --- what is refused -----------------------------------------------------------------------------


def numbers_through(*steps: Any) -> Any:
    X = np.array([[1.0, 5.0], [2.0, np.nan], [np.nan, 7.0], [4.0, 9.0]])
    return make_pipeline(*steps, NearestCentroid()).fit(X, ["a", "a", "b", "b"])


REFUSED = {
    "indicator": (
        lambda: numbers_through(SimpleImputer(add_indicator=True)),
        "marks a missing value in a column of its own",
        "fit the imputer with add_indicator=False.",
        lambda: numbers_through(SimpleImputer(add_indicator=False)),
    ),
    "two values": (
        lambda: numbers_through(
            FeatureUnion(
                [("a", SimpleImputer()), ("b", SimpleImputer(strategy="constant", fill_value=0.0))]
            ),
        ),
        "puts different values in its place",
        "fit the pipeline with one imputer for the column.",
        lambda: numbers_through(SimpleImputer(strategy="constant", fill_value=0.0)),
    ),
    "after a scaler": (
        lambda: numbers_through(StandardScaler(), SimpleImputer()),
        "X\\[0, 1\\] is nan",
        "by an imputer that comes first in the pipeline",
        lambda: numbers_through(SimpleImputer(), StandardScaler()),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_no_value_stands_for_is_refused_with_advice_that_helps(case: str) -> None:
    make, words, advice, mended = REFUSED[case]
    asked = clvq.Explainer(make())
    whole = asked.explain([2.0, 6.0])  # complete rows are answered
    assert whole.status is clvq.Status.OPTIMAL
    with pytest.raises(clvq.InvalidInputError, match=words):
        asked.explain_batch([[2.0, np.nan], [2.0, 6.0]])
    told = asked.explain_batch([[2.0, np.nan], [2.0, 6.0]], on_bad_rows="report")
    assert told.status.tolist() == ["invalid", "optimal"]
    assert advice in told[0].reason
    told = clvq.Explainer(mended()).explain_batch([[2.0, np.nan], [2.0, 6.0]])
    assert told.status.tolist() == ["optimal", "optimal"]


@pytest.mark.parametrize("imputer", [KNNImputer(n_neighbors=1), IterativeImputer()])
def test_imputers_that_look_at_other_columns_are_refused(imputer: Any) -> None:
    with pytest.raises(clvq.NotSupportedError, match="use SimpleImputer, or impute before"):
        clvq.Explainer(numbers_through(imputer))


def test_the_same_value_on_two_branches_stands_in() -> None:
    union = FeatureUnion([("a", SimpleImputer()), ("b", SimpleImputer())])
    table_map, _ = read_pipeline(numbers_through(union))
    assert table_map.fills.values == {"x0": 7 / 3, "x1": 7.0}


def test_the_first_of_two_imputers_fills() -> None:
    second = SimpleImputer(strategy="constant", fill_value=-1.0)
    table_map, _ = read_pipeline(numbers_through(SimpleImputer(), second))
    assert table_map.fills.values == {"x0": 7 / 3, "x1": 7.0}


def test_a_gap_that_the_imputer_does_not_know_makes_the_row_invalid() -> None:
    """An imputer that looks for NaN leaves None as it is, so that `predict` fails."""
    table = whole_table(6)
    table["job"] = table["job"].astype(object)
    table.loc[2, "job"] = None
    with pytest.raises(clvq.InvalidInputError, match=r"row 2.*own predict does not take what is"):
        explainer().explain_batch(table, target="good")
    batch = explainer().explain_batch(table, target="good", on_bad_rows="report")
    assert (batch.status == "invalid").tolist() == [False, False, True, False, False, False]
    assert "missing in 'job'" in batch[2].reason
    step = "Write missing values as the imputer looks for them (NaN in 'job'), or fill them in."
    assert batch[2].reason.endswith(step)


def test_an_answer_that_a_gap_of_the_input_takes_back_says_what_to_write() -> None:
    """`predict` takes None for no level at all: the input gets its label so, the answer none."""
    jobs, ages = np.array(["clerk", "nurse", "nurse", "smith"] * 6, dtype=object), np.arange(24.0)
    table = pd.DataFrame({"job": jobs, "age": ages})
    says = np.where(ages + 4 * (jobs == "nurse") > 12, "good", "bad")
    levels = make_pipeline(
        SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")
    )
    model = make_pipeline(
        make_column_transformer((levels, ["job"]), remainder="passthrough"), LogisticRegression()
    ).fit(table, says)
    asked = clvq.Explainer(model, features=clvq.Features.from_frame(table))
    row = pd.DataFrame({"job": [None], "age": [0.0]})
    cf, batch = asked.explain(row, target="good"), asked.explain_batch(row, target="good")
    for found in (cf, batch[0]):
        assert found.status == "unknown"
        assert "(it says 'bad' and not 'good'). Write missing values as" in found.reason
    assert asked.explain(row.fillna(np.nan), target="good").status == "optimal"


# --- rows that cannot be read --------------------------------------------------------------------


def bad_table() -> tuple[pd.DataFrame, dict[int, str]]:
    table = whole_table(9).astype(object)
    table.loc[1, "income"] = "a lot"
    table.loc[3, "income"] = np.inf
    table.loc[4, "job"] = "judge"
    return table, {
        1: "column 'income' is 'a lot'; expected a finite number",
        3: "column 'income' is inf; expected a finite number",
        4: "column 'job' is 'judge', which is none of its levels",
    }


@pytest.mark.parametrize("write", [lambda t: t, records, objects], ids=["pandas", "dicts", "array"])
def test_bad_rows_are_told_and_others_answered_as_without_them(
    write: Callable[[pd.DataFrame], Any],
) -> None:
    table, reasons = bad_table()
    with pytest.raises(clvq.InvalidInputError, match="column 'income', row 1"):
        explainer().explain_batch(write(table), target="good")
    batch = explainer().explain_batch(write(table), target="good", on_bad_rows="report")
    good = [i for i in range(len(table)) if i not in reasons]
    assert batch.status[[*reasons]].tolist() == ["invalid"] * 3
    alone = explainer().explain_batch(write(table.iloc[good]), target="good")
    for part in ("values", "cost", "lower_bound", "gap", "status", "prototype"):
        np.testing.assert_array_equal(getattr(batch, part)[good], getattr(alone, part))
    np.testing.assert_array_equal(batch.original_prediction[good], alone.original_prediction)
    for k, i in enumerate(good):
        assert batch[i].text() == alone[k].text()
    for i, words in reasons.items():
        cf = batch[i]
        assert cf.status is clvq.Status.INVALID
        assert not cf.status.has_answer
        assert words in cf.reason
        assert cf.text().startswith("No counterfactual was looked for: column ")
        assert str(cf).startswith("Counterfactual (invalid)")
        assert cf.original_prediction is None
        assert cf.target == ("good",)
        assert explainer().verify(cf) == 0.0
        assert cf.to_dict()["status"] == "invalid"
    assert batch.summary().shares[clvq.Status.INVALID] == pytest.approx(3 / 9)
    assert "33.3% invalid" in str(batch)
    part = batch[[0, 1]]
    assert part.status.tolist() == [batch.status[0], "invalid"]
    assert part[1].reason == batch[1].reason


def test_batches_with_bad_rows_become_frames() -> None:
    table, reasons = bad_table()
    batch = explainer().explain_batch(table, target="good", on_bad_rows="report")
    frame = batch.to_frame()
    assert frame["status"].tolist() == batch.status.tolist()
    assert frame.loc[[*reasons], "income_after"].isna().all()
    assert batch.X.loc[[*reasons], NAMES].isna().all(axis=None)
    assert batch.original.equals(table)


def test_a_wish_for_each_row_skips_bad_rows() -> None:
    table, reasons = bad_table()
    wishes = ["good", "bad", None] * 3
    batch = explainer().explain_batch(table, target=wishes, on_bad_rows="report")
    good = [i for i in range(9) if i not in reasons]
    alone = explainer().explain_batch(table.iloc[good], target=[wishes[i] for i in good])
    np.testing.assert_array_equal(batch.values[good], alone.values)
    assert batch[1].target == ("bad",)


def test_a_batch_of_bad_rows_alone_is_told() -> None:
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"])
    batch = clvq.Explainer(model).explain_batch([[np.nan], [np.inf]], on_bad_rows="report")
    assert batch.status.tolist() == ["invalid", "invalid"]
    assert batch.prediction.tolist() == batch.original_prediction.tolist() == [None, None]
    assert "x0' is missing" in batch[0].reason
    assert batch[1].target == ()


def test_local_metrics_skip_bad_rows() -> None:
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], [[[1.0]], [[2.0]]])
    asked = clvq.Explainer(model)
    batch = asked.explain_batch([[1.0], [np.nan], [0.5]], on_bad_rows="report")
    assert batch.status[1] == "invalid"
    np.testing.assert_array_equal(batch.values[[0, 2]], asked.explain_batch([[1.0], [0.5]]).values)


@pytest.mark.parametrize("given", ["drop", None, 3])
def test_what_to_do_about_bad_rows_is_checked(given: Any) -> None:
    with pytest.raises(clvq.InvalidInputError, match=r"on_bad_rows is .*'raise', 'report'"):
        explainer().explain_batch(whole_table(2), on_bad_rows=given)


# --- files -------------------------------------------------------------------------------------


def test_model_files_know_what_stands_in(tmp_path: Any) -> None:
    path = tmp_path / "model.clvq"
    clvq.save(pipeline(), path)
    loaded = clvq.load(path)
    table = asked_for()
    assert loaded.table_map.fills.values == explainer()._source.fills.values
    np.testing.assert_array_equal(loaded.predict(table), pipeline().predict(table))
    asked = clvq.Explainer(loaded, cost=explainer().cost, constraints=["income >= 0"])
    batch = asked.explain_batch(table, target="good")
    np.testing.assert_array_equal(batch.missing, table.isna().to_numpy())
    np.testing.assert_allclose(batch.cost, answered("pandas").cost, rtol=1e-6)


# --- looking past missing values ---------------------------------------------------------------


def test_ranges_are_those_of_the_values_that_are_there() -> None:
    table = pd.DataFrame({"a": [1.0, np.nan, 5.0], "b": [2, 3, 4]})
    with pytest.warns(UserWarning, match="1 of column 'a', of 3 rows"):
        assert clvq.Features.from_frame(table)["a"].seen == (1.0, 5.0)


def test_summaries_count_missing_values() -> None:
    holed = np.array([[1.0, np.nan], [np.nan, np.nan], [3.0, 4.0]])
    for given in (holed, holed.tolist(), pd.DataFrame(holed, columns=["x0", "x1"])):
        summary = clvq.Reference.of(given)
        assert [column.missing for column in summary.columns] == [1, 2]
        assert summary["x0"].median == 2.0


EPOCH = pd.Timestamp("1970-01-01")


@cache
def steps_of_change(kind: str, step: int, strategy: str) -> tuple[Any, clvq.Explainer]:
    """A column whose imputed value lies between two whole numbers, in steps of change."""
    k = np.arange(40.0)
    side = np.random.default_rng(5).normal(0, 1, 40).round(3)
    # The median lies at noon, the mean at another time of day.
    table = pd.DataFrame({"paid": 20454 + k + 13 * (k == 39), "side": side})
    labels = np.where(k + 6 * side > 20, "good", "bad")
    steps = make_pipeline(SimpleImputer(strategy=strategy), StandardScaler())
    pipe = make_pipeline(steps, clvq.GMLVQ(random_state=0)).fit(table, labels)
    features = clvq.Features([clvq.Feature("paid", kind, step=step, steps="of change"), "side"])
    asked = [clvq.Freeze("side")]
    return pipe, clvq.Explainer(pipe, clvq.Manhattan([0.1, 1.0]), asked, features=features)


@pytest.mark.parametrize(
    ("kind", "step", "strategy"),
    some([(k, s, how) for s in (7, 1) for k in ("date", "whole") for how in ("median", "mean")], 3),
)
def test_what_is_written_for_a_missing_whole_number_is_what_was_checked(
    tmp_path: Any, kind: str, step: int, strategy: str
) -> None:
    """Whatever stands in for it: the cheapest whole value, which the model itself labels so."""
    pipe, explainer = steps_of_change(kind, step, strategy)
    paid = pd.to_datetime([None] * 12) if kind == "date" else np.full(12, np.nan)
    rows = pd.DataFrame({"paid": paid, "side": np.linspace(-2.0, 2.0, 12)})
    rows.loc[12] = [EPOCH + pd.Timedelta(days=20460) if kind == "date" else 20460, -1.0]
    batch = explainer.explain_batch(rows, target="good")
    days = batch.X.paid if kind == "whole" else (pd.to_datetime(batch.X.paid) - EPOCH).dt.days
    written = pd.DataFrame({"paid": days.astype(float), "side": rows.side})
    assert batch.missing[:12, 0].all()
    assert (batch.status == "optimal").all()
    assert set(pipe.predict(written)) == {"good"}
    fill = float(pipe[0][0].statistics_[0])
    moved = batch.values[:, 0] != batch.original_values[:, 0]
    assert moved[:12].any()
    np.testing.assert_array_equal(written.paid[moved], batch.values[moved, 0])
    for i, cf in enumerate(batch):
        start, base = (20460.0, 20460.0) if i == 12 else (fill, 0.0)
        near = base + step * (np.rint((start - base) / step) + np.arange(-60, 61))
        grid = np.array([start, *near])
        shown = pd.DataFrame({"paid": grid, "side": rows.side[i]})
        least = np.abs(grid - start)[pipe.predict(shown) == "good"].min()
        assert cf.cost == pytest.approx(0.1 * least)
        assert explainer.verify(cf) == pytest.approx(cf.cost)
        alone = explainer.explain(records(rows.iloc[[i]])[0], target="good")
        assert alone.values.tolist() == cf.values.tolist()
        if moved[i] and i < 12:
            (change,) = cf.changes
            assert change.difference == pytest.approx(cf.values[0] - fill, abs=1e-9)
            assert "days later" not in cf.text()
    path = tmp_path / "answers.jsonl"
    batch.save_certificates(path)
    assert all(verdict.verified for verdict in clvq.verify_certificates(path))
    told: list[str] = []
    checker.main([str(path)], say=told.append)
    assert [line.split()[0] for line in told] == ["VERIFIED"] * 13
    # A row that nobody can write down is no answer, however good the model calls it.
    header, *lines = path.read_text().splitlines()
    line = json.loads(lines[int(np.flatnonzero(moved)[0])])
    line["answer"] |= {"row": [fill + 70.0, line["input"][1]], "cost": 7.0, "status": "feasible"}
    path.write_text(f"{header}\n{json.dumps(line)}\n")
    assert "the value of coordinate 0 is not allowed" in clvq.verify_certificates(path)[0].reason


def test_a_warning_about_gaps_stands_at_the_line_of_the_caller() -> None:
    table = pd.DataFrame({"a": [1.0, 2.0, np.nan, 4.0], "b": [0.0, 1.0, 2.0, 3.0]})
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 3.0]], ["no", "yes"], None, ["a", "b"])
    with pytest.warns(UserWarning, match="passes over missing values") as caught:
        clvq.Explainer(model, features=table)
    assert {warning.filename for warning in caught} == {__file__}

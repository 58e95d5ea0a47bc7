"""Mixed columns in and out: the same kind of table, the same types; and what is refused."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import counterlvq as clvq
from counterlvq import Feature, Features
from counterlvq.lvq import GLVQ

TABLE = pd.DataFrame(
    {
        "age": [20, 30, 40, 50, 60, 35],
        "note": list("abcdef"),
        "income": [1.0, 2.0, 3.0, 4.0, 5.0, 2.5],
        "job": ["clerk", "nurse", "clerk", "cook", "nurse", "cook"],
        "owner": [True, False, True, False, True, True],
    },
    index=[10, 11, 12, 13, 14, 15],
)
STUCK = ["age == original(age)", "income == original(income)", clvq.Freeze("owner", "job")]


def pipeline() -> Pipeline:
    """It says "yes" of high ages and incomes, and never looks at the note."""
    parts = [
        ("numbers", StandardScaler(), ["age", "income"]),
        ("levels", OneHotEncoder(drop="first", sparse_output=False), ["job", "owner"]),
    ]
    columns = ColumnTransformer(parts)
    Z = columns.fit_transform(TABLE)
    lvq = GLVQ()
    lvq.prototypes_, lvq.prototype_labels_ = Z[[0, 3]], np.array(["no", "yes"])
    lvq.classes_, lvq.n_features_in_, lvq.omegas_ = lvq.prototype_labels_, Z.shape[1], None
    return Pipeline([("columns", columns), ("lvq", lvq)])


PIPELINE = pipeline()
COST = clvq.Manhattan([0.05, 1, 5, 0.02, 1])  # ages and jobs are the first to change


@cache
def plain() -> clvq.Explainer:
    return clvq.Explainer(PIPELINE, cost=COST, features=TABLE)


def explainer(**settings: Any) -> clvq.Explainer:
    if not settings:
        return plain()
    return clvq.Explainer(PIPELINE, **{"cost": COST, "features": TABLE, **settings})


def test_the_answers_change_more_than_one_kind_of_column() -> None:
    """Otherwise the tests below would show little."""
    changed = explainer().explain_batch(TABLE, "yes").X != TABLE
    assert changed["age"].any()
    assert changed["job"].any()


# --- frames -------------------------------------------------------------------------------------

DTYPES: dict[str, dict[str, Any]] = {
    "plain": {},
    "categories": {"job": pd.CategoricalDtype(["cook", "nurse", "clerk"], ordered=True)},
    "nullable": {"age": "Int64", "owner": "boolean", "note": "string", "job": "string"},
    "objects": {"job": object, "owner": object},
    "narrow": {"age": "int8"},
    "float": {"age": "float64"},
}


@pytest.mark.parametrize("dtypes", DTYPES.values(), ids=DTYPES)
def test_pandas_in_pandas_out(dtypes: dict[str, Any]) -> None:
    table = TABLE.astype(dtypes)
    batch = explainer().explain_batch(table, "yes")
    pd.testing.assert_series_equal(batch.X.dtypes, table.dtypes)
    pd.testing.assert_index_equal(batch.X.index, table.index)
    pd.testing.assert_frame_equal(batch.original, table)
    assert batch.X["note"].tolist() == table["note"].tolist()
    assert (PIPELINE.predict(batch.X.astype(TABLE.dtypes)) == "yes").all()
    if "job" in dtypes and isinstance(dtypes["job"], pd.CategoricalDtype):
        assert batch.X["job"].cat.categories.tolist() == ["cook", "nurse", "clerk"]


POLARS: dict[str, dict[str, Any]] = {
    "plain": {},
    "enum": {"job": pl.Enum(["nurse", "cook", "clerk"])},
    "categorical": {"job": pl.Categorical, "note": pl.Categorical},
    "narrow": {"age": pl.Int8},
}


@pytest.mark.parametrize("dtypes", POLARS.values(), ids=POLARS)
def test_polars_in_polars_out(dtypes: dict[str, Any]) -> None:
    table = pl.DataFrame(TABLE.to_dict("list")).cast(dtypes)
    batch = explainer().explain_batch(table, "yes")
    assert batch.X.schema == table.schema
    assert batch.original.equals(table)
    same = explainer().explain_batch(TABLE, "yes").X
    for name in table.columns:
        assert batch.X[name].to_list() == pytest.approx(same[name].tolist())


def test_a_narrow_dtype_widens_rather_than_wraps() -> None:
    model = clvq.PrototypeModel([[0.0], [800.0]], ["no", "yes"], feature_names=["n"])
    ask = clvq.Explainer(model, features=Features([Feature("n", "whole")]))
    narrow = np.array([[3], [4]], dtype=np.uint8)
    for table in (
        narrow,
        pd.DataFrame(narrow, columns=["n"]),
        pd.DataFrame(narrow, columns=["n"]).astype("UInt8"),
        pl.DataFrame({"n": [3, 4]}, schema={"n": pl.UInt8}),
    ):
        X = ask.explain_batch(table, "yes").X
        assert np.asarray(X).ravel().tolist() == [401, 401]


def test_rows_without_an_answer_leave_gaps() -> None:
    ask = explainer(constraints=STUCK)
    batch = ask.explain_batch(TABLE, "yes")
    assert (batch.status == "optimal").tolist() == (PIPELINE.predict(TABLE) == "yes").tolist()
    answered = batch.status == "optimal"
    assert not answered.all()
    seen = batch.X[["age", "income", "job", "owner"]]
    assert seen.notna().all(axis=1).tolist() == answered.tolist()
    assert seen.isna().all(axis=1).tolist() == (~answered).tolist()
    assert batch.X["age"].dtype == "Int64"
    assert batch.X["owner"].dtype == "boolean"
    assert batch.X["note"].notna().all()
    frame = pl.DataFrame(TABLE.to_dict("list"))
    found = ask.explain_batch(frame, "yes").X
    assert found.schema == frame.schema
    assert found["age"].is_null().to_list() == (~answered).tolist()
    arrays = ask.explain_batch(TABLE.to_numpy(), "yes").X
    assert [value is None for value in arrays[:, 3]] == (~answered).tolist()


def test_parts_of_a_batch_are_parts_of_the_table() -> None:
    batch = explainer().explain_batch(TABLE, "yes")
    chosen = batch[batch.cost > 0]
    pd.testing.assert_frame_equal(chosen.X, batch.X[batch.cost > 0])
    pd.testing.assert_frame_equal(chosen.original, TABLE[batch.cost > 0])
    pd.testing.assert_frame_equal(batch[[4, 0]].X, batch.X.iloc[[4, 0]])
    assert batch[0].x.tolist() == batch.X.iloc[0][[*batch.feature_names]].tolist()
    assert batch[0].cost == batch.cost[0]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_everything_in_one_frame(library: str) -> None:
    table = TABLE if library == "pandas" else pl.DataFrame(TABLE.to_dict("list"))
    batch = explainer().explain_batch(table, "yes")
    frame = batch.to_frame()
    assert type(frame) is type(table)
    for name in ("age", "income", "job", "owner"):
        assert list(frame[f"{name}_before"]) == TABLE[name].tolist()
        assert list(frame[f"{name}_after"]) == list(batch.X[name])
    assert "age_change" in frame.columns
    assert "job_change" not in frame.columns
    assert list(frame["cost"]) == batch.cost.tolist()
    if library == "pandas":
        pd.testing.assert_index_equal(frame.index, TABLE.index)
        assert frame["owner_before"].dtype == bool


def test_one_row_comes_back_as_it_was_given() -> None:
    ask, values = explainer(), TABLE.iloc[0].to_dict()
    after = ask.explain_batch(TABLE, "yes").X.iloc[0].to_dict()
    assert after != values
    row = ask.explain(TABLE.iloc[0], "yes").row
    assert isinstance(row, pd.Series)
    assert row.to_dict() == after
    assert row.name == 10
    one = ask.explain(TABLE.iloc[[0]], "yes").row
    pd.testing.assert_frame_equal(one, ask.explain_batch(TABLE, "yes").X.iloc[[0]])
    assert ask.explain(values, "yes").row == after
    assert type(ask.explain(values, "yes").row["age"]) is int
    polars = pl.DataFrame(TABLE.to_dict("list"))
    assert ask.explain(polars[0], "yes").row.row(0, named=True) == after
    assert ask.explain(polars.row(0, named=True), "yes").row == after
    for given in (list(values.values()), TABLE.to_numpy()[0]):
        assert ask.explain(given, "yes").row.tolist() == list(after.values())


def test_arrays_of_objects_and_lists_of_mixed_rows() -> None:
    batch = explainer().explain_batch(TABLE, "yes")
    for given in (TABLE.to_numpy(), TABLE.to_numpy().tolist()):
        again = explainer().explain_batch(given, "yes")
        assert again.X.tolist() == batch.X.to_numpy().tolist()
        assert again.original.tolist() == TABLE.to_numpy().tolist()
        assert again[1:3].X.tolist() == batch.X.to_numpy()[1:3].tolist()


def test_levels_that_are_numbers_come_back_as_such() -> None:
    model = clvq.PrototypeModel([[1.0], [4.0]], ["no", "yes"], feature_names=["cards"])
    ask = clvq.Explainer(model, features=Features([Feature("cards", levels=[4, 2, 1])]))
    assert ask.explain_batch(np.array([[1.0], [4.0]]), "yes").X.tolist() == [[4.0], [4.0]]
    assert ask.explain_batch(np.array([[1], [2]]), "yes").X.tolist() == [[4], [4]]
    assert ask.explain([2], "yes").x.tolist() == [4]


def test_levels_alone_that_cannot_change_are_refused() -> None:
    model = clvq.PrototypeModel([[1.0], [4.0]], ["no", "yes"], feature_names=["cards"])
    with pytest.raises(clvq.InvalidInputError, match="one level only"):
        clvq.Explainer(model, features=Features([Feature("cards", levels=[4])]))


def test_columns_are_found_by_name_and_others_are_kept() -> None:
    shuffled = TABLE.assign(extra=7)[["owner", "extra", "income", "note", "job", "age"]]
    X = explainer().explain_batch(shuffled, "yes").X
    assert X.columns.tolist() == shuffled.columns.tolist()
    assert (X["extra"] == 7).all()
    pd.testing.assert_frame_equal(X[TABLE.columns], explainer().explain_batch(TABLE, "yes").X)


def test_two_jobs_say_what_one_says() -> None:
    one = explainer().explain_batch(TABLE, "yes")
    two = explainer().explain_batch(TABLE, "yes", n_jobs=2)
    pd.testing.assert_frame_equal(one.X, two.X)
    assert (one.cost == two.cost).all()
    assert (one.lower_bound == two.lower_bound).all()


def test_changes_are_said_in_the_words_of_the_table() -> None:
    features = Features.from_frame(TABLE, units={"income": "EUR"})
    cf = explainer(features=features).explain(TABLE.iloc[0], "yes")
    said = {change.feature: change for change in cf.changes}
    assert set(said) == {name for name in cf.feature_names if cf.row[name] != TABLE.iloc[0][name]}
    for change in said.values():
        assert change.after == cf.row[change.feature]
        assert type(change.after) is type(change.before)
    for change in cf.shown_changes:
        assert change.feature in said
        assert change.text() in cf.text()


# --- what is refused ----------------------------------------------------------------------------

BAD_TABLES: dict[str, tuple[pd.DataFrame, tuple[str, ...]]] = {
    "unseen level": (
        TABLE.assign(job=["clerk", "clrk", *TABLE["job"][2:]]),
        ("'job'", "row 1 (index 11)", "'clrk'", "none of its levels", "'nurse'", "'clerk'?"),
    ),
    "missing column": (TABLE.drop(columns="job"), ("lacks", "'job'", "4 features")),
    "misspelt column": (TABLE.rename(columns={"job": "jobs"}), ("'job'", "'jobs'")),
    "fraction": (
        TABLE.assign(age=[20, 30, 40.5, 50, 60, 35]),
        ("'age'", "row 2 (index 12)", "40.5", "whole number", "Feature('age', 'real')"),
    ),
    "missing number": (
        TABLE.assign(income=[1.0, np.nan, 3.0, np.nan, 5.0, 2.5]),
        ("'income'", "row 1 (index 11)", "missing", "2 missing", "Fill it in"),
    ),
    "missing level": (
        TABLE.assign(job=["clerk", None, "clerk", "cook", "nurse", "cook"]),
        ("'job'", "row 1 (index 11)", "missing"),
    ),
    "missing whole": (
        TABLE.assign(age=pd.array([20, 30, None, 50, 60, 35], dtype="Int64")),
        ("'age'", "row 2 (index 12)", "missing"),
    ),
    "infinite": (
        TABLE.assign(income=[1.0, np.inf, 3.0, 1.0, 5.0, 2.5]),
        ("'income'", "row 1 (index 11)", "inf", "finite"),
    ),
    "text among numbers": (
        TABLE.assign(income=["1", "2", "3", "4", "5", "6"]),
        ("'income'", "row 0 (index 10)", "'1'", "finite number"),
    ),
    "no rows": (TABLE.iloc[:0], ("empty", "at least one row")),
}


@pytest.mark.parametrize(("table", "words"), BAD_TABLES.values(), ids=BAD_TABLES)
def test_bad_tables_are_refused_by_name(table: pd.DataFrame, words: tuple[str, ...]) -> None:
    with pytest.raises(clvq.InvalidInputError) as caught:
        explainer().explain_batch(table, "yes")
    for word in words:
        assert word in str(caught.value)


def test_whole_numbers_may_be_given_as_floats() -> None:
    floats = TABLE.astype({"age": float})
    assert explainer().explain_batch(floats, "yes").X["age"].dtype == float


BAD_SETTINGS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "features of another type": ({"features": 3}, ("features is a int", "Features([...])")),
    "features as a list": ({"features": ["age"]}, ("features is a list", "Features([...])")),
    "an unknown feature": (
        {"features": Features([Feature("agee", "whole")])}, ("'agee'", "'age'")),
    "an unknown level": (
        {"features": Features([Feature("job", levels=["clerk", "pilot"])])},
        ("'job'", "'pilot'", "does not know", "'nurse'")),
    "an encoded column as a number": (
        {"features": Features([Feature("job", "whole")])}, ("'job'", "whole", "encodes")),
    "text levels of a number": (
        {"features": Features([Feature("age", levels=["a", "b"])])},
        ("'age'", "'a'", "takes it as a number")),
    "switches of a number": (
        {"cost": clvq.Manhattan(switches={"age": 2})}, ("'age'", "a number", "weights")),
    "switches of no column": (
        {"cost": clvq.Manhattan(switches={"jbo": 2})}, ("'jbo'", "'job'")),
    "switches of no level": (
        {"cost": clvq.Euclidean(switches={"job": {("clerk", "pilot"): 2}})},
        ("'job'", "'pilot'", "no level", "'cook'")),
    "weights of another length": (
        {"cost": clvq.Manhattan([1, 2])}, ("2 weights", "expected 4")),
    "a matrix over levels": (
        {"cost": clvq.Mahalanobis(np.eye(4))}, ("(4, 4)", "(2, 2)")),
    "bounds of a category": (
        {"constraints": [clvq.Bounds("job", lower=1)]}, ("'job'", "Bounds")),
    "increase of a boolean": (
        {"constraints": [clvq.Increase("owner")]}, ("'owner'", "Increase")),
    "a category in a sum": ({"constraints": ["job + age <= 3"]}, ("'job'", "job + age <= 3")),
    "an unknown level in text": (
        {"constraints": ["job == 'pilot'"]}, ("'pilot'", "'job'", "'clerk'")),
    "a text test of a number": (
        {"constraints": ["age in [1, 'two']"]}, ("'age'", "'two'", "a finite number")),
    "levels of a number": (
        {"constraints": [clvq.OneOf("age", ["young"])]}, ("'age'", "'young'", "a finite number")),
    "two numbers behind if": (
        {"constraints": ["if age <= 2 * income then job == 'clerk'"]},
        ("behind 'if'", "several features")),
    "a list behind then": (
        {"constraints": ["if job == 'clerk' then age in [30, 40]"]}, ("behind 'then'", "lists")),
    "a date for a number": (
        {"constraints": ["age <= '2024-01-01'"]}, ("'age'", "a date", "kind 'date'")),
}  # fmt: skip


@pytest.mark.parametrize(("settings", "words"), BAD_SETTINGS.values(), ids=BAD_SETTINGS)
def test_bad_settings_are_refused_by_name(settings: dict[str, Any], words: tuple[str, ...]) -> None:
    with pytest.raises(clvq.InvalidInputError) as caught:
        explainer(**settings)
    for word in words:
        assert word in str(caught.value)


def test_one_of_takes_levels_from_anywhere() -> None:
    assert clvq.OneOf("job", (level for level in ("a", "b"))).levels == ("a", "b")
    assert clvq.OneOf("rank", np.array([1, 2])).levels == (1, 2)


@pytest.mark.parametrize("levels", ["clerk", [], 3])
def test_one_of_wants_a_list(levels: Any) -> None:
    with pytest.raises(clvq.InvalidInputError, match="list of at least one level"):
        clvq.OneOf("job", levels)

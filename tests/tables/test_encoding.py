"""Tables as numbers and back: nothing is lost on the way, and what is wrong is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from pandas.testing import assert_frame_equal, assert_series_equal

import counterlvq as clvq
from counterlvq.tables.encoding import like, rows_of
from counterlvq.tables.frames import new_frame

FEATURES = clvq.Features(
    [
        "income",
        clvq.Feature("cards", "whole"),
        clvq.Feature("job", levels=["clerk", "nurse", "pilot"]),
        clvq.Feature("member", "boolean"),
    ]
)
INSIDE = np.array([[2400.5, 2.0, 1.0, 1.0], [100.0, 0.0, 0.0, 0.0], [7.25, 5.0, 2.0, 1.0]])
CHANGED = np.array([[2900.125, 3.0, 0.0, 0.0], [101.0, 1.0, 2.0, 1.0], [7.25, 4.0, 1.0, 1.0]])
COLUMNS: dict[str, list[Any]] = {
    "id": ["p0", "p1", "p2"],
    "cards": [2, 0, 5],
    "income": [2400.5, 100.0, 7.25],
    "job": ["nurse", "clerk", "pilot"],
    "member": [True, False, True],
}
AFTER = {
    **COLUMNS,
    "cards": [3, 1, 4],
    "income": [2900.125, 101.0, 7.25],
    "job": ["clerk", "pilot", "nurse"],
    "member": [False, True, True],
}


def pandas_tables(columns: dict[str, list[Any]]) -> dict[str, pd.DataFrame]:
    index = pd.Index(["u", "v", "w"], name="who")
    usual = pd.DataFrame(columns, index=index)
    jobs = pd.CategoricalDtype(["pilot", "nurse", "clerk", "judge"], ordered=True)
    return {
        "usual": usual,
        "categories": usual.astype({"job": jobs}),
        "nullable": usual.convert_dtypes(),
        "narrow integers": usual.astype({"cards": "uint8"}),
        "objects": usual.astype(object),
        "whole numbers as floats": usual.astype({"cards": float}),
        "booleans as integers": usual.astype({"member": int}),
    }


def polars_tables(columns: dict[str, list[Any]]) -> dict[str, pl.DataFrame]:
    usual = pl.DataFrame(columns)
    return {
        "usual": usual,
        "category": usual.cast({"job": pl.Categorical}),
        "enumeration": usual.cast({"job": pl.Enum(["pilot", "nurse", "clerk", "judge"])}),
        "narrow integers": usual.cast({"cards": pl.UInt8}),
        "whole numbers as floats": usual.cast({"cards": pl.Float64}),
        "booleans as integers": usual.cast({"member": pl.Int32}),
    }


@pytest.mark.parametrize("name", pandas_tables(COLUMNS))
def test_pandas_there_and_back(name: str) -> None:
    table, after = pandas_tables(COLUMNS)[name], pandas_tables(AFTER)[name]
    assert np.array_equal(rows_of(table, FEATURES), INSIDE)
    assert_frame_equal(like(table, INSIDE, FEATURES), table)
    assert_frame_equal(like(table, CHANGED, FEATURES), after)


@pytest.mark.parametrize("name", polars_tables(COLUMNS))
def test_polars_there_and_back(name: str) -> None:
    table, after = polars_tables(COLUMNS)[name], polars_tables(AFTER)[name]
    assert np.array_equal(rows_of(table, FEATURES), INSIDE)
    assert like(table, INSIDE, FEATURES).equals(table)
    back = like(table, CHANGED, FEATURES)
    assert back.schema == table.schema
    assert back.equals(after)


def test_the_table_itself_is_left_alone() -> None:
    table = pandas_tables(COLUMNS)["usual"]
    before = table.copy()
    like(table, CHANGED, FEATURES)
    assert_frame_equal(table, before)
    with pytest.raises(ValueError, match="read-only"):
        rows_of(table, FEATURES)[0, 0] = 1.0


def test_real_numbers_stay_real_in_a_column_of_integers() -> None:
    features = clvq.Features(["a"])
    for table in (pd.DataFrame({"a": [1, 2]}), pl.DataFrame({"a": [1, 2]})):
        back = like(table, [[1.5], [2.0]], features)
        assert back["a"].to_list() == [1.5, 2.0]
        assert str(back["a"].dtype).lower() == "float64"


def test_no_digits_are_lost_in_narrow_floats() -> None:
    features = clvq.Features(["a"])
    narrow = pd.DataFrame({"a": np.array([0.5], dtype=np.float32)})
    for table in (narrow, pl.DataFrame({"a": [0.5]}, schema={"a": pl.Float32})):
        assert like(table, [[0.1]], features)["a"].to_list() == [0.1]


def test_gaps_where_there_is_no_answer() -> None:
    inside = INSIDE.copy()
    inside[1] = np.nan
    back = like(pandas_tables(COLUMNS)["usual"], inside, FEATURES)
    assert back.isna().to_numpy().sum(axis=1).tolist() == [0, 4, 0]
    assert back["id"].tolist() == COLUMNS["id"]
    assert str(back["cards"].dtype) == "Int64"
    assert back["cards"].tolist()[0] == 2
    assert str(back["member"].dtype) == "boolean"
    table = pl.DataFrame(COLUMNS)
    polars = like(table, inside, FEATURES)
    assert polars.schema == table.schema
    assert [sum(v is None for v in row) for row in polars.rows()] == [0, 4, 0]


def test_levels_that_a_dtype_lacks_are_added_to_it() -> None:
    table = pd.DataFrame({"job": pd.Categorical(["clerk"])})
    features = clvq.Features([FEATURES["job"]])
    back = like(table, [[2.0]], features)
    assert back["job"].tolist() == ["pilot"]
    assert back["job"].cat.categories.tolist() == ["clerk", "pilot"]
    polars = pl.DataFrame({"job": ["clerk"]}, schema={"job": pl.Enum(["clerk"])})
    assert like(polars, [[2.0]], features)["job"].to_list() == ["pilot"]


# --- without a frame ----------------------------------------------------------------------------


def test_one_row_as_a_mapping() -> None:
    row = {name: values[0] for name, values in COLUMNS.items()}
    assert np.array_equal(rows_of(row, FEATURES), INSIDE[:1])
    back = like(row, CHANGED[:1], FEATURES)
    assert back == {name: values[0] for name, values in AFTER.items()}
    assert list(back) == list(row)
    assert [type(value) for value in back.values()] == [type(value) for value in row.values()]
    assert type(like({**row, "cards": 2.0}, CHANGED[:1], FEATURES)["cards"]) is float


def test_one_row_of_a_frame() -> None:
    table, after = pandas_tables(COLUMNS)["usual"], pandas_tables(AFTER)["usual"]
    assert np.array_equal(rows_of(table.iloc[0], FEATURES), INSIDE[:1])
    assert_series_equal(like(table.iloc[0], CHANGED[:1], FEATURES), after.iloc[0])


@pytest.mark.parametrize("dtype", [float, np.float32, int])
def test_arrays_of_numbers(dtype: Any) -> None:
    features = clvq.Features([clvq.Feature("a", "whole"), clvq.Feature("c", levels=[10, 20])])
    array = np.array([[1, 7, 20], [2, 8, 10]], dtype=dtype)
    assert rows_of(array, features, ["a", "b", "c"]).tolist() == [[1.0, 1.0], [2.0, 0.0]]
    back = like(array, [[3.0, 0.0], [4.0, 1.0]], features, ["a", "b", "c"])
    assert back.tolist() == [[3, 7, 10], [4, 8, 20]]
    assert back.dtype == (np.int64 if dtype is int else np.float64)
    gaps = like(array, [[3.0, 0.0], [np.nan, np.nan]], features, ["a", "b", "c"])
    assert np.isnan(gaps[1]).tolist() == [True, False, True]


def test_arrays_of_objects_and_lists() -> None:
    cells = [[2400.5, 2, "nurse", True], [100.0, 0.0, "clerk", False]]
    array = np.array(cells, dtype=object)
    for table in (array, cells):
        assert np.array_equal(rows_of(table, FEATURES), INSIDE[:2])
    back = like(array, CHANGED[:2], FEATURES)
    assert back.tolist() == [[2900.125, 3, "clerk", False], [101.0, 1.0, "pilot", True]]
    assert [type(value) for value in back[:, 1]] == [int, float]
    single = like(array[0], CHANGED[:1], FEATURES)
    assert single.tolist() == back[0].tolist()


def test_arrays_of_text_are_not_cut_off() -> None:
    features = clvq.Features([clvq.Feature("a", levels=["no", "certainly"])])
    back = like(np.array([["no"]]), [[1.0]], features)
    assert back.tolist() == [["certainly"]]
    assert back.dtype.kind == "U"


# --- what is wrong is named ---------------------------------------------------------------------


def broken(column: str, row: int, value: Any) -> pd.DataFrame:
    table = pd.DataFrame(COLUMNS).astype(object)
    table.loc[row, column] = value
    return table


BAD: dict[str, tuple[Any, str]] = {
    "missing number": (
        broken("income", 1, None),
        "column 'income', row 1 is missing (1 missing value(s) in that column); expected a value "
        "in each row. Fill it in, or leave the row out, or have the model take gaps",
    ),
    "missing level": (broken("job", 2, np.nan), "column 'job', row 2 is missing (1 missing"),
    "missing in polars": (
        pl.DataFrame({**COLUMNS, "cards": [1, None, None]}),
        "column 'cards', row 1 is missing (2 missing value(s) in that column)",
    ),
    "NaN in polars": (
        pl.DataFrame({**COLUMNS, "income": [1.0, 2.0, np.nan]}),
        "column 'income', row 2 is missing (1 missing value(s) in that column)",
    ),
    "row by its index": (
        pd.DataFrame({**COLUMNS, "income": [1.0, np.nan, 2.0]}, index=["u", "v", "w"]),
        "column 'income', row 1 (index 'v') is missing",
    ),
    "infinite": (broken("income", 1, np.inf), "column 'income', row 1 is inf; expected a finite"),
    "text among numbers": (
        broken("income", 1, "100"),
        "column 'income', row 1 is '100'; expected a finite number, because the feature is real.",
    ),
    "unknown level": (
        broken("job", 2, "pilots"),
        "column 'job', row 2 is 'pilots', which is none of its levels; expected one of: 'clerk', "
        "'nurse', 'pilot'. Did you mean 'pilot'?",
    ),
    "level like none": (
        broken("job", 2, "xyz"),
        "'clerk', 'nurse', 'pilot'. Put one of these in its place, or leave the row out.",
    ),
    "no boolean": (broken("member", 0, "yes"), "column 'member', row 0 is 'yes', which is none"),
    "list as level": (broken("job", 0, ("a",)), "column 'job', row 0 is ('a',), which is none"),
    "too large": (broken("cards", 0, 2**60), "column 'cards', row 0 is 1152921504606846976; expe"),
    "missing column": (
        pd.DataFrame(COLUMNS).rename(columns={"cards": "card"}),
        "the table lacks the column(s) 'cards'; expected one for each of the 4 features. Did you "
        "mean 'card' by 'cards'?",
    ),
    "missing in a mapping": ({"income": 3}, "the table lacks the column(s) 'cards', 'job', 'memb"),
    "narrow array": (np.eye(2), "the table has shape (2, 2); expected 4 columns: income, cards, "),
    "one number": (3.0, "the table has shape (); expected 4 columns"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_table_is_refused_by_column_and_row(name: str) -> None:
    table, message = BAD[name]
    with pytest.raises(clvq.InvalidInputError) as raised:
        rows_of(table, FEATURES)
    assert message in str(raised.value)


def test_rows_of_another_shape_are_refused() -> None:
    with pytest.raises(clvq.InvalidInputError, match=r"rows has shape \(1, 4\); expected \(3, 4\)"):
        like(pd.DataFrame(COLUMNS), INSIDE[:1], FEATURES)


def test_frame_without_pandas_is_one_of_polars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    assert isinstance(new_frame({"a": [1]}), pl.DataFrame)
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    with pytest.raises(clvq.NotSupportedError, match="need pandas or polars"):
        new_frame({"a": [1]})


def test_no_name_is_suggested_that_is_in_use() -> None:
    features = clvq.Features(["Income", "Time"])
    model = clvq.PrototypeModel([[0.0, 0.0], [1.0, 1.0]], ["no", "yes"], None, features.names)
    asked = clvq.Explainer(model, features=features)
    with pytest.raises(clvq.InvalidInputError) as refusal:
        asked.explain_batch(pd.DataFrame({"Time": [1.0]}))
    assert str(refusal.value).endswith("expected one for each of the 2 features.")
    with pytest.raises(clvq.InvalidInputError, match="Did you mean 'Incme' by 'Income'"):
        asked.explain_batch(pd.DataFrame({"Time": [1.0], "Incme": [1.0]}))

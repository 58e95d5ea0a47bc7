"""Dates: days inside, dates outside, in the table that they came in."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.impute import SimpleImputer
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline

import counterlvq as clvq
from counterlvq import Feature, Features, plots
from counterlvq.report import report_html
from counterlvq.tables.dates import days_of
from counterlvq.tables.encoding import as_table, like, rows_of
from counterlvq.tables.frames import as_frame, numbers_or_days
from counterlvq.tables.missing import Fills
from counterlvq.tables.values import is_missing
from counterlvq.types import Kind

BEFORE, TARGET = date(2024, 2, 20), date(2024, 3, 31)
FIRST = date(1970, 1, 1)
MODEL = clvq.PrototypeModel(
    [[(BEFORE - FIRST).days, 1.0], [(TARGET - FIRST).days, 1.0]],
    ["no", "yes"],
    feature_names=["opened", "cards"],
)
NEEDED = date(2024, 3, 12)  # the first day that is nearer to the target
TABLES: dict[str, Any] = {
    "pandas": pd.DataFrame({"opened": pd.to_datetime([BEFORE]), "cards": [1.0]}),
    "pandas objects": pd.DataFrame({"opened": [BEFORE], "cards": [1.0]}),
    "polars": pl.DataFrame({"opened": [BEFORE], "cards": [1.0]}),
    "polars times": pl.DataFrame({"opened": [datetime(2024, 2, 20)], "cards": [1.0]}),
    "arrow": pa.table({"opened": [BEFORE], "cards": [1.0]}),
    "records": [{"opened": BEFORE, "cards": 1.0}],
    "text": [{"opened": "2024-02-20", "cards": 1.0}],
    "days": pd.DataFrame({"opened": [(BEFORE - FIRST).days], "cards": [1.0]}),
    "columns": {"opened": np.array(["2024-02-20"], dtype="datetime64[ns]"), "cards": np.ones(1)},
}


def asked(**settings: Any) -> clvq.Explainer:
    features = Features([Feature("opened", "date"), "cards"])
    return clvq.Explainer(MODEL, features=features, constraints=[clvq.Freeze("cards")], **settings)


def day_of(value: Any) -> date:
    if isinstance(value, int | np.integer):
        return date.fromordinal(FIRST.toordinal() + int(value))
    if isinstance(value, str):
        return date.fromisoformat(value)
    if isinstance(value, np.datetime64):
        return pd.Timestamp(value).date()
    return value.date() if isinstance(value, datetime) else value


@pytest.mark.parametrize("name", TABLES)
def test_dates_come_back_as_they_were_given(name: str) -> None:
    table = TABLES[name]
    batch = asked().explain_batch(table, target="yes")
    assert batch.status.tolist() == ["optimal"]
    out = batch.X
    if isinstance(out, pa.Table):
        assert out.schema == table.schema
        out = out.to_pandas()
    elif isinstance(out, pd.DataFrame):
        assert (out.dtypes == table.dtypes).all()
    elif isinstance(out, pl.DataFrame):
        assert out.schema == table.schema
    cell = out[0]["opened"] if isinstance(out, list) else out["opened"][0]
    assert day_of(cell) == NEEDED
    given = table[0]["opened"] if isinstance(table, list) else None
    assert given is None or type(cell) is type(given)


def test_dates_are_shown_as_dates() -> None:
    cf = asked().explain(TABLES["pandas"].iloc[0], target="yes")
    assert cf.text() == (
        "The answer would have been yes if opened were 21 days later (2024-03-12 instead of "
        "2024-02-20)."
    )
    assert "opened were 21 days later (12 March 2024 instead of 20 February 2024)" in cf.text(
        dates="31 May 2024"
    )
    assert "  opened   2024-02-20  2024-03-12  +21 days" in str(cf)
    (change,) = cf.changes
    assert (change.difference, change.is_number, change.is_date) == (21, False, True)
    assert cf.cost == (NEEDED - BEFORE).days == cf.delta[0]
    assert cf.x.tolist() == [NEEDED, 1.0]
    assert cf.to_dict()["changes"][0]["after"] == "2024-03-12"


def test_frames_say_which_columns_are_dates() -> None:
    for name in ("pandas", "pandas objects", "polars", "polars times", "arrow"):
        assert Features.from_frame(TABLES[name])["opened"] == Feature("opened", "date")


def test_text_that_is_called_a_date_has_a_range_and_no_gaps() -> None:
    frame = pd.DataFrame({"opened": ["2024-02-20", "2024-03-31"]})
    opened = Features.from_frame(frame, kinds={"opened": "date"})["opened"]
    assert opened == Feature("opened", "date", seen=("2024-02-20", "2024-03-31"))
    assert repr(opened) == "Feature('opened', 'date', seen=('2024-02-20', '2024-03-31'))"


def test_constraints_speak_of_dates() -> None:
    for constraint in (
        "opened >= '2024-03-20'",
        clvq.Bounds("opened", lower=date(2024, 3, 20)),
        "opened in ['2024-02-28', '2024-03-20']",
        clvq.OneOf("opened", [date(2024, 3, 20)]),
        "if opened > '2024-03-01' then opened >= '2024-03-20'",
        clvq.MinChange("opened", 29),
    ):
        features = Features([Feature("opened", "date"), "cards"])
        explainer = clvq.Explainer(
            MODEL, features=features, constraints=[constraint, clvq.Freeze("cards")]
        )
        cf = explainer.explain([(BEFORE - FIRST).days, 1.0], target="yes")
        assert cf.x[0] == date(2024, 3, 20)
    weeks = Features([Feature("opened", "date", step=7, steps="of change"), "cards"])
    cf = clvq.Explainer(MODEL, features=weeks).explain(TABLES["records"][0], target="yes")
    assert cf.x[0] == date(2024, 3, 12)  # three weeks later, a Tuesday again


@pytest.mark.parametrize("cell", [datetime(2024, 2, 20, 12), "soon", "2024-02-30", 1.5, None])
def test_other_things_than_dates_are_refused_with_their_place(cell: Any) -> None:
    with pytest.raises(clvq.InvalidInputError, match="column 'opened', row 0 is"):
        asked().explain_batch([{"opened": cell, "cards": 1.0}], target="yes")


def test_open_ends_are_none() -> None:
    features = Features.from_frame(
        TABLES["pandas"], ranges={"opened": ("2024-01-01", None), "cards": (0, None)}
    )
    assert features["cards"] == Feature("cards", lower=0)
    assert features["opened"] == Feature("opened", "date", lower=date(2024, 1, 1))
    assert clvq.Bounds("cards", lower=0, upper=None) == clvq.Bounds("cards", lower=0)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([BEFORE, None, date(1969, 12, 31)], pa.date32()),
        pa.array([BEFORE, None, date(1969, 12, 31)], pa.date64()),
        pa.array([datetime(2024, 2, 20), None, datetime(2024, 2, 20, 0, 0, 1)], pa.timestamp("ms")),
        pl.Series([BEFORE, None, date(1969, 12, 31)]),
        pl.Series([datetime(2024, 2, 20), None, datetime(1969, 12, 31, 23, 59)]),
        pd.Series(pd.to_datetime([BEFORE, None, datetime(1969, 12, 31, 12)])),
        pd.Series([BEFORE, None, "2024-02-20", "2024-02-20", "soon", 7, np.datetime64("NaT")]),
    ],
    ids=lambda column: (
        f"{type(column).__module__.partition('.')[0]} {column.dtype}"
        if hasattr(column, "dtype")
        else f"pyarrow {column.type}"
    ),
)
def test_days_of_a_column_are_those_of_its_cells(column: Any) -> None:
    """Columns of times are read at once, and a text or a date that comes again is read once."""
    library = {"pandas": pd.DataFrame, "polars": pl.DataFrame}
    make = library.get(type(column).__module__.partition(".")[0], pa.table)
    table = as_frame(make({"opened": column}))
    assert table is not None
    cells = table.values("opened")
    expected = [float(v) if type(v) is int else days_of(v) for v in cells]
    assert np.isnan(expected).any()
    assert np.isfinite(expected).any()
    np.testing.assert_array_equal(numbers_or_days(table, "opened", Kind.DATE), expected)


@pytest.mark.docs
@pytest.mark.parametrize("pictures", [False, True])
def test_pages_and_plots_show_dates_that_change_and_that_stay(pictures: bool) -> None:
    born = date(1990, 5, 17)
    model = clvq.PrototypeModel(
        [[(BEFORE - FIRST).days, 0.0, 1.0], [(TARGET - FIRST).days, 0.0, 1.0]],
        ["no", "yes"],
        omegas=[[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]],
        feature_names=["opened", "born", "cards"],
    )
    features = Features([Feature("opened", "date"), Feature("born", "date"), "cards"])
    explainer = clvq.Explainer(model, features=features)
    row = {"opened": BEFORE, "born": born, "cards": 1.0}
    cf = explainer.explain(row, target="yes")
    page = report_html(explainer, cf, pictures=pictures)
    for shown in (BEFORE, NEEDED, born):
        assert shown.isoformat() in page
    german = report_html(explainer, cf, pictures=False, text={"dates": "31.05.2024"})
    assert "17.05.1990" in german
    batch = explainer.explain_batch([row, row], target="yes")
    ranges = explainer.ranges(cf)
    assert ranges["opened"][0] == NEEDED
    assert "with opened from 12.03.2024 to " in cf.text(dates="31.05.2024", ranges=ranges)
    if pictures:
        plots.plot_changes(cf, explainer)
        plots.plot_changes(cf)
        plots.plot_batch(batch)


EMPTY: dict[str, Any] = {
    "pandas floats": pd.DataFrame({"opened": [np.nan, np.nan], "job": [np.nan, np.nan]}),
    "pandas objects": pd.DataFrame({"opened": [None, None], "job": [None, None]}, dtype=object),
    "pandas text": pd.DataFrame({"opened": [None, None], "job": [None, None]}, dtype="string"),
    "pandas integers": pd.DataFrame({"opened": [None, None], "job": [None, None]}, dtype="Int64"),
    "polars": pl.DataFrame({"opened": [None, None], "job": [None, None]}),
    "polars text": pl.DataFrame(
        {"opened": [None, None], "job": [None, None]}, schema={"opened": pl.String, "job": pl.Int8}
    ),
    "arrow": pa.table({"opened": pa.nulls(2), "job": pa.nulls(2)}),
    "arrow floats": pa.table({name: pa.nulls(2, pa.float64()) for name in ("opened", "job")}),
    "arrow text": pa.table({name: pa.nulls(2, pa.string()) for name in ("opened", "job")}),
    "records": [{"opened": pd.NaT, "job": None}, {"opened": float("nan"), "job": np.nan}],
    "columns": {"opened": [None, None], "job": [None, None]},
    "array": np.array([[pd.NaT, None], [None, None]], dtype=object),
}


@pytest.mark.parametrize("name", EMPTY)
def test_columns_without_any_value_take_dates_and_levels(name: str) -> None:
    """Whatever type somebody gave to a column in which nothing stands."""
    features = Features([Feature("opened", "date"), Feature("job", levels=["clerk", "nurse"])])
    table = EMPTY[name]
    read = rows_of(table, features, fills=Fills({"opened": 31.5, "job": "clerk"}))
    assert read.tolist() == [[31.5, 0.0]] * 2
    out = like(table, [[31.0, 1.0], [np.nan, np.nan]], features)
    found = as_table(out, features.names)
    assert [str(found.values(column)[0])[:10] for column in found.names] == ["1970-02-01", "nurse"]
    assert all(is_missing(found.values(column)[1]) for column in found.names)


def test_dates_are_written_as_those_of_the_other_rows() -> None:
    """Where a value was missing: as text among text, as days among days."""
    features = Features([Feature("opened", "date")])
    days = like(pd.DataFrame({"opened": [np.nan, 40.0]}), [[31.0], [32.0]], features)
    assert days.opened.tolist() == [31.0, 32.0]
    cells = {"opened": [None, "1970-02-10"]}
    for text in (pl.DataFrame(cells), cells):
        out = like(text, [[31.0], [32.0]], features)
        assert list(out["opened"]) == ["1970-02-01", "1970-02-02"]
    times = pd.DataFrame({"opened": pd.to_datetime([None, "1970-02-10"])})
    assert like(times, [[31.0], [np.nan]], features).opened.isna().tolist() == [False, True]


@pytest.mark.parametrize("gap", [pd.NaT, np.datetime64("NaT"), None, float("nan")], ids=repr)
def test_one_row_with_a_missing_date(gap: Any) -> None:
    """As a mapping, as a row of pandas and in a list, with an imputer and without one."""
    record = {"opened": gap, "cards": 1.0}
    series = pd.DataFrame({"opened": pd.to_datetime([gap]), "cards": [1.0]}).iloc[0]
    days = pd.DataFrame({"opened": [19771.0, 19775, 19811, 19815], "cards": [1.0, 2, 1, 2]})
    pipe = make_pipeline(SimpleImputer(strategy="median"), NearestCentroid())
    pipe.fit(days, ["no", "no", "yes", "yes"])
    described = Features([Feature("opened", "date"), "cards"])
    explainer = clvq.Explainer(pipe, features=described, constraints=["cards == 1"])
    for row in (record, series):
        cf = explainer.explain(row, target="yes")
        assert cf.status.has_answer
        assert cf.missing.tolist() == [True, False]
        with pytest.raises(clvq.InvalidInputError, match=r"opened.*, row 0 is missing"):
            clvq.Explainer(MODEL, features=described).explain(row)
    told = clvq.Explainer(MODEL, features=described).explain_batch(
        [record, {"opened": BEFORE, "cards": 1.0}], on_bad_rows="report"
    )
    assert told.status.tolist() == ["invalid", "optimal"]

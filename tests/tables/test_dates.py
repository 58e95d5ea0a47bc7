"""Dates: days inside, dates outside, in the table that they came in."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import counterlvq as clvq
from counterlvq import Feature, Features, plots
from counterlvq.report import report_html
from counterlvq.tables.dates import days_of
from counterlvq.tables.frames import as_frame, numbers_or_days
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

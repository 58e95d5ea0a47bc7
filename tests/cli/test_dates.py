"""Dates and gaps at the shell: found in text, written unquoted, refused where they are none."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from counterlvq.cli.app import run


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with a date, as CSV, JSON and Parquet, and a model of it."""
    folder = tmp_path_factory.mktemp("dates")
    rng = np.random.default_rng(2)
    since = pd.Timestamp("2026-01-01") - pd.to_timedelta(rng.integers(0, 6000, 90), unit="D")
    table = pd.DataFrame({"income": rng.normal(2000, 500, 90).round(2), "since": since})
    years = (pd.Timestamp("2026-01-01") - table.since).dt.days / 365
    table["decision"] = np.where(table.income + 100 * years > 2700, "yes", "no")
    table.to_csv(folder / "table.csv", index=False)
    table.to_parquet(folder / "table.parquet")
    table.assign(since=since + pd.Timedelta(hours=9)).to_parquet(folder / "times.parquet")
    rows = table[table.decision == "no"].head(3)
    rows.to_csv(folder / "rows.csv", index=False)
    millis = (rows.since - pd.Timestamp("1970-01-01")) // pd.Timedelta("1ms")
    rows.assign(since=millis).to_json(folder / "epoch.json", orient="records")
    rows.to_json(folder / "iso.json", orient="records", date_format="iso")
    rows.assign(income=[1e3, np.nan, 1e3]).to_csv(folder / "gaps.csv", index=False)
    assert called(folder, "train table.csv --label decision -o model.clvq") == 0
    return folder


def called(folder: Path, words: str) -> int:
    """Run a command with the paths of the folder in the place of names of files."""
    there = {path.name for path in folder.iterdir()} | {"model.clvq", "page.html", "all.clvq"}
    return run([str(folder / word) if word in there else word for word in words.split(" ")])


Captured = pytest.CaptureFixture[str]


def test_text_of_dates_is_found(desk: Path, capsys: Captured) -> None:
    assert called(desk, "train table.csv --label decision") == 0
    assert "dates     since" in capsys.readouterr().out
    assert called(desk, "columns table.csv") == 0
    assert '[since]\nkind = "date"' in capsys.readouterr().out
    assert called(desk, "inspect model.clvq") == 0
    assert "date: seen 20" in capsys.readouterr().out


def test_dates_need_no_quotes(desk: Path, capsys: Captured) -> None:
    told = []
    for rule in (
        "--bounds since=:2013-02-03",
        "--constraint since<=2013-02-03",
        "--constraint since<='2013-02-03'",
    ):
        assert called(desk, f"explain model.clvq rows.csv --target yes --format json {rule}") == 0
        told.append([row["x"] for row in json.loads(capsys.readouterr().out)])
    assert told[0] == told[1] == told[2]
    assert all(row["since"] <= "2013-02-03" for row in told[0])
    assert called(desk, "explain model.clvq rows.csv --constraint income<=2013-02-03") == 1
    assert "put spaces around the signs" in capsys.readouterr().err
    assert called(desk, "explain model.clvq rows.csv --constraint since<=2013-02-30") == 1
    assert "expected a date that exists" in capsys.readouterr().err


def test_what_is_no_date_is_refused_and_midnights_pass(desk: Path, capsys: Captured) -> None:
    assert called(desk, "explain model.clvq epoch.json --target yes") == 3
    assert "milliseconds are none" in capsys.readouterr().out
    assert called(desk, "train times.parquet --label decision") == 1
    assert "09:00:00; expected a date without a time of day" in capsys.readouterr().err
    for table in ("iso.json", "rows.csv"):
        assert called(desk, f"explain model.clvq {table} --target yes --format text") == 0
    first, second = capsys.readouterr().out.splitlines()[:3], None
    assert called(desk, "explain model.clvq rows.csv --target yes --format text") == 0
    second = capsys.readouterr().out.splitlines()
    assert first == second


@pytest.mark.docs
def test_pages_hold_dates(desk: Path, capsys: Captured) -> None:
    for more in ("", " --freeze since"):
        assert called(desk, f"report model.clvq rows.csv --target yes{more} -o page.html") == 0
        page = (desk / "page.html").read_text(encoding="utf-8")
        assert pd.read_csv(desk / "rows.csv").since[0] in page


def test_gaps_are_filled_later_if_that_was_asked_for(desk: Path, capsys: Captured) -> None:
    assert called(desk, "explain model.clvq gaps.csv --target yes --format csv") == 3
    told = capsys.readouterr()
    assert "--impute-all" in told.err
    assert "1 of 3 rows has no answer: 1 invalid." in told.err
    assert called(desk, "train table.csv --label decision --impute-all -o all.clvq") == 0
    assert called(desk, "explain all.clvq gaps.csv --target yes --format json") == 0
    out = capsys.readouterr().out
    rows = json.loads(out[out.index("[") :])
    assert rows[1]["missing"] == ["income"]


def test_a_table_in_the_place_of_the_model_is_named(desk: Path, capsys: Captured) -> None:
    for table in ("rows.csv", "table.parquet", "iso.json"):
        assert called(desk, f"explain {table} model.clvq") == 1
        assert "looks like a table" in capsys.readouterr().err
    assert called(desk, "verify rows.csv") == 1
    assert "this is no certificate file" in capsys.readouterr().out
    assert called(desk, "train table.csv --label decision --test-share abc") == 2
    assert "'abc' is not a number." in capsys.readouterr().err
    assert called(desk, "train table.csv --label decision --prototypes 80") == 1
    assert "Lower --prototypes." in capsys.readouterr().err

"""Gaps and rows that cannot be read, at the shell."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import counterlvq as clvq
from counterlvq.cli.app import run


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table that has gaps, and rows of which some cannot be read."""
    rng = np.random.default_rng(0)
    count = 120
    table = pd.DataFrame(
        {
            "income": rng.normal(2500, 600, count).round(1),
            "age": rng.integers(18, 70, count).astype(float),
            "job": rng.choice(["clerk", "nurse"], count),
            "owner": rng.random(count) < 0.5,
        }
    ).astype({"owner": object})
    score = table["income"] + 20 * table["age"] + 400 * (table["job"] == "nurse")
    table["granted"] = np.where(score > score.median(), "yes", "no")
    table.loc[:3, "granted"] = None
    for name in ("income", "job", "owner"):
        table.loc[rng.random(count) < 0.1, name] = np.nan
    table.to_csv(tmp_path / "loans.csv", index=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "asked.csv").write_text(
        "income,age,job,owner\n1500,30,clerk,True\n,31,clerk,False\n1600,old,clerk,True\n"
        "1700,32,judge,False\n1800,33,,\n1900,,clerk,True\n"
    )
    return tmp_path


def trained(capfd: pytest.CaptureFixture[str]) -> str:
    assert run(("train", "loans.csv", "--label", "granted", "-o", "loans.clvq")) == 0
    return capfd.readouterr().out


def test_training_says_what_is_missing_and_imputes_it(
    desk: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    told = trained(capfd)
    table = pd.read_csv(desk / "loans.csv")
    kept = table[table["granted"].notna()]
    assert "missing   4 of 120 rows left out, which have no granted" in told
    gaps = {name: int(kept[name].isna().sum()) for name in ("income", "job", "owner")}
    listed = ", ".join(f"{gap} of {name}" for name, gap in gaps.items())
    assert f"missing   {listed}; median or most frequent level instead" in told
    model = clvq.load(desk / "loans.clvq")
    fills = model.table_map.fills.values
    assert set(fills) == {"income", "job", "owner"}
    assert kept["income"].min() < fills["income"] < kept["income"].max()
    assert fills["job"] in ("clerk", "nurse")
    assert len(model.predict(kept.drop(columns="granted"))) == len(kept)
    assert model.reference["income"].missing == gaps["income"]


def test_rows_that_cannot_be_read_are_told_apart(
    desk: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Of a CSV column with one word in it, all other cells are numbers still."""
    trained(capfd)
    words = ("explain", "loans.clvq", "asked.csv", "--target", "yes")
    assert run((*words, "--format", "json")) == 3
    told = json.loads(capfd.readouterr().out)
    assert [row["status"] == "invalid" for row in told] == [False, False, True, True, False, True]
    assert "column 'age' is 'old'" in told[2]["reason"]
    assert "'judge', which is none of its levels" in told[3]["reason"]
    assert "column 'age' is missing" in told[5]["reason"]
    assert told[1]["missing"] == ["income"]
    assert told[4]["missing"] == ["job", "owner"]
    assert run((*words, "--format", "csv")) == 3
    out, err = capfd.readouterr()
    frame = pd.read_csv(io.StringIO(out))
    assert frame["status"].tolist() == [row["status"] for row in told]
    assert "row 2 is invalid: column 'age' is 'old'" in err
    assert run(words) == 3
    assert "3 invalid" in capfd.readouterr().out
    assert run((*words, "--format", "text")) == 3
    lines = capfd.readouterr().out.splitlines()
    assert lines[3].startswith("No counterfactual was looked for: column 'job' is 'judge'")
    assert run((*words, "--bad-rows", "raise")) == 1
    assert "column 'age', row 2 is 'old'" in capfd.readouterr().err


def test_reasons_go_on_behind_a_row_that_has_none(
    desk: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    trained(capfd)
    words = ("reasons", "loans.clvq", "few.csv")
    (desk / "few.csv").write_text("income,age,job,owner\n1500,30,clerk,True\n,31,clerk,False\n")
    assert run((*words, "--format", "json")) == 3
    first, second = json.loads(capfd.readouterr().out)
    assert (first["status"], first["reason"]) == ("optimal", "")
    assert second["status"] == "invalid"
    assert "no value in column 'income'" in second["reason"]
    assert first.keys() == second.keys()
    assert run(words) == 3
    said = capfd.readouterr()
    assert said.err.endswith("counterlvq: 1 of 2 rows has no answer: 1 invalid.\n")
    lines = said.out.splitlines()
    assert lines[0].startswith(f"{first['text']} Ranges: ")
    assert lines[1] == second["text"]
    assert lines[1].startswith("No reason was looked for: ")
    assert run((*words, "--first", "incme")) == 1
    assert "Did you mean 'income'?" in capfd.readouterr().err


def test_reasons_and_ways_go_on_behind_any_row_that_cannot_be_asked_about(
    desk: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """As `explain` does: texts among numbers, strange levels, and rows out of range."""
    trained(capfd)
    assert run(("reasons", "loans.clvq", "asked.csv", "--format", "json")) == 3
    told = json.loads(capfd.readouterr().out)
    assert [row["status"] == "invalid" for row in told] == [False, True, True, True, True, True]
    assert "column 'age'" in told[2]["reason"]
    assert "is 'old'; expected a finite number" in told[2]["reason"]
    assert "'judge', which is none of its levels" in told[3]["reason"]
    assert "there is no value in column 'income'" in told[1]["reason"]
    assert run(("reasons", "loans.clvq", "asked.csv", "--bounds", "age=31:60")) == 3
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) == 6
    assert 'the input breaks "age from 31 to 60" as it is' in lines[0]
    # What is wrong with the question is wrong with every row.
    assert run(("reasons", "loans.clvq", "asked.csv", "--anywhere")) == 1
    assert "has no range" in capfd.readouterr().err
    ways = ("explain", "loans.clvq", "asked.csv", "--target", "yes", "--alternatives", "2")
    assert run((*ways, "--format", "json")) == 3
    told = json.loads(capfd.readouterr().out)
    assert [bool(row["ways"]) for row in told] == [True, True, False, False, True, False]
    assert "is 'old'; expected a finite number" in told[2]["reason"]
    assert {row["cost_unit"] for row in told} == {"typical deviations"}
    assert run((*ways, "--format", "text", "--subject", "Your loan")) == 3
    written = capfd.readouterr()
    assert written.err.endswith("counterlvq: 3 of 6 rows have no answer: 3 invalid.\n")
    said = written.out.split("\n\n")
    assert said[2].startswith("Your loan could not be looked into: column 'age' is 'old'")
    assert run((*ways, "--format", "text", "--bad-rows", "raise")) == 1
    assert "is 'old'; expected a finite number" in capfd.readouterr().err


def test_people_at_the_shell_are_told_what_they_can_do(
    desk: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """And doing it helps."""
    (desk / "whole.toml").write_text('[age]\nkind = "whole"\n')
    training = ("train", "loans.csv", "--label", "granted", "--columns", "whole.toml")
    assert run((*training, "-o", "loans.clvq")) == 0
    capfd.readouterr()
    (desk / "odd.csv").write_text("income,age,job,owner\n1500,,clerk,yes\n1500,30.5,clerk,no\n")
    words = ("--target", "yes", "--format", "json")
    assert run(("explain", "loans.clvq", "odd.csv", *words)) == 3
    missing, parts = (row["reason"] for row in json.loads(capfd.readouterr().out))
    assert "`counterlvq train --impute-all`" in missing
    assert 'kind = "real" in a file for --columns' in parts
    (desk / "columns.toml").write_text('[age]\nkind = "real"\n')
    assert run((*training, "--impute-all", "-o", "all.clvq")) == 0
    capfd.readouterr()
    assert run(("explain", "all.clvq", "odd.csv", *words, "--columns", "columns.toml")) == 0
    told = json.loads(capfd.readouterr().out)
    assert [row["original"]["owner"] for row in told] == [True, False]
    assert [row["original"]["age"] for row in told] == [None, 30.5]


def test_a_page_tells_rows_apart(desk: Path, capfd: pytest.CaptureFixture[str]) -> None:
    trained(capfd)
    words = ("report", "loans.clvq", "asked.csv", "--target", "yes", "-o", "page.html")
    assert run(words) == 3
    page = (desk / "page.html").read_text(encoding="utf-8")
    assert page.count("badge invalid") >= 3
    assert "column 'age' is 'old'" in page
    assert "<dt>cannot be read</dt><dd>3</dd>" in page


def test_columns_without_any_value_are_refused(
    desk: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (desk / "empty.csv").write_text("a,b,y\n1,,u\n2,,v\n")
    assert run(("train", "empty.csv", "--label", "y")) == 1
    assert "column 'b' has no value in any row" in capfd.readouterr().err
    (desk / "nothing.csv").write_text("a,y\n1,\n2,\n")
    assert run(("train", "nothing.csv", "--label", "y")) == 1
    assert "'y' has no value in any row" in capfd.readouterr().err

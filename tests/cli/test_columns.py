"""Files about columns: written, edited, read, and kept in the model file."""

from __future__ import annotations

import json
import tomllib
from math import inf
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import counterlvq as clvq
from tests.support.shell import called

RNG = np.random.default_rng(0)
N = 80
TABLE = pd.DataFrame(
    {
        "months": RNG.integers(1, 60, N).astype(float),  # saved as 5.0
        "pay": RNG.lognormal(7.5, 0.4, N).round(2),
        "home": RNG.choice(["own", "rent", 'a "b"\n#c'], N),
        "code": RNG.choice([7, 9], N),
        "guarantor": RNG.random(N) < 0.3,
        "odd name.x": RNG.random(N),
    }
)
GOOD = np.where(TABLE["pay"] + 20 * TABLE["months"] > 2300, "good", "bad")
EDITED = """
[months]
kind = "whole"
label = "months in the job"
change = "increase"
[pay]
label = "net pay"
unit = "EUR"
decimals = 2
range = [0, inf]
[home]
levels = ["rent", "own", 'a "b"\n#c']
labels = { own = "a home of your own" }
price = 4
prices = [["rent", "own", 3]]
[code]
kind = "categorical"
price = 5
[guarantor]
true = "with a guarantor"
false = "without a guarantor"
change = "freeze"
""".replace("'a \"b\"\n#c'", '"a \\"b\\"\\n#c"')


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("desk")
    TABLE.assign(credit=GOOD).to_csv(folder / "loans.csv", index=False)
    TABLE[GOOD == "bad"].head(4).to_csv(folder / "some.csv", index=False)
    (folder / "columns.toml").write_text(EDITED)
    words = ["train", "loans.csv", "--label", "credit", "--columns", "columns.toml"]
    done = called(*words, "-o", "loans.clvq", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_what_is_written_is_read_and_says_what_the_table_says(desk: Path) -> None:
    done = called("columns", "loans.csv", "--drop", "credit", "-o", "new.toml", cwd=desk)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    text = (desk / "new.toml").read_text(encoding="utf-8")
    told = tomllib.loads(text)
    assert list(told) == list(TABLE)
    assert told["home"]["levels"] == sorted(TABLE["home"].unique())
    assert "all values are whole numbers" in text
    pay = TABLE["pay"].sort_values().tolist()
    assert f"#range = [{pay[9]}, {pay[-10]}]" in text
    assert "decimals = 2  # as in the table\nzeros = false  # " in text
    words = ["train", "loans.csv", "--label", "credit", "-o"]
    assert called(*words, "with.clvq", "--columns", "new.toml", cwd=desk).returncode == 0
    assert called(*words, "without.clvq", cwd=desk).returncode == 0
    assert (desk / "with.clvq").read_bytes() == (desk / "without.clvq").read_bytes()
    # What is offered to be said is what holds without it.
    assert text.count("\n#price = 2\n") == 2
    # Each line that says nothing yet can be said.
    lines = [line[1:] if line.startswith("#") and " = " in line else line
             for line in text.partition("[months]")[2].splitlines()]  # fmt: skip
    said = "[months]" + "\n".join(lines).replace("#prices", "prices")
    keys = tomllib.loads("\n".join(line for line in said.splitlines() if "prices" not in line))
    assert keys["pay"]["range"] == [pay[9], pay[-10]]


def test_the_model_file_knows_what_was_said(desk: Path) -> None:
    features = clvq.load(desk / "loans.clvq").features
    assert features["months"] == clvq.Feature(
        "months", "whole", label="months in the job", change="increase"
    )
    pay = clvq.Feature("pay", unit="EUR", decimals=2, lower=0, label="net pay", seen=(-inf, inf))
    assert features["pay"] == pay
    assert features["home"].levels[:2] == ("rent", "own")
    odd = features["home"].levels[2]
    prices = {("rent", "own"): 3.0, ("rent", odd): 4.0, ("own", odd): 4.0}
    assert features["home"].switches == prices
    assert (features["code"].levels, features["code"].price) == ((7, 9), 5.0)
    assert features["guarantor"].words(True) == "with a guarantor"


def test_inspect_shows_what_was_said(desk: Path) -> None:
    """Also what `train` keeps of order, steps of change, words and prices."""
    more = EDITED.replace('change = "increase"', 'step = 6\nsteps = "of change"')
    (desk / "ordered.toml").write_text(more.replace("price = 4\nprices = [", "ordered = true\n#["))
    words = ["train", "loans.csv", "--label", "credit", "--columns", "ordered.toml"]
    assert called(*words, "-o", "ordered.clvq", cwd=desk).returncode == 0
    told = {
        line.split()[0]: line
        for line in called("inspect", "ordered.clvq", cwd=desk).stdout.decode().splitlines()
    }
    assert 'whole: "months in the job"; step 6; steps of change; seen ' in told["months"]
    assert told["home"].endswith(' in order; called "a home of your own"')
    assert told["code"].endswith("7, 9; price 5")
    assert 'called "without a guarantor", "with a guarantor"' in told["guarantor"]
    assert "home" in told
    shown = called("inspect", "loans.clvq", cwd=desk).stdout.decode()
    assert 'called "a home of your own"; prices of pairs' in shown


def test_answers_keep_to_it_and_are_worded_by_it(desk: Path) -> None:
    words = ["explain", "loans.clvq", "some.csv", "--target", "GOOD"]
    done = called(*words, "-o", "told.csv", cwd=desk)
    assert done.returncode == 0, done.stderr
    told, given = pd.read_csv(desk / "told.csv"), pd.read_csv(desk / "some.csv")
    assert (told["months"] % 1 == 0).all()
    assert (told["months"] >= given["months"]).all()
    assert (told["guarantor"] == given["guarantor"]).all()
    assert (clvq.load(desk / "loans.clvq").predict(told) == "good").all()
    text = ["--format", "text", "--subject", "Your loan", "--outcome", "good=granted"]
    done = called(*words, *text, "--numbers", "1.234,5", cwd=desk)
    lines = done.stdout.decode().splitlines()
    assert len(lines) == len(given)
    assert all(line.startswith("Your loan would have been granted if ") for line in lines)
    assert any("months in the job were" in line or "net pay were" in line for line in lines)


def test_an_open_end_is_not_the_one_that_was_seen(desk: Path) -> None:
    """Whether the file was there at training or is at the question."""
    model = clvq.load(desk / "loans.clvq")
    reference = model.reference
    assert reference is not None
    assert reference.described(model.features)["pay"].seen is None
    more = f"pay >= {TABLE['pay'].max() + 100}"
    words = ["explain", "loans.clvq", "some.csv", "--target", "good", "--constraint", more]
    (desk / "open.toml").write_text("[pay]\nrange = [-inf, inf]\n")
    (desk / "shut.toml").write_text("[pay]\nrange = [0, 2000]\n")
    for columns, found in ((None, True), ("open.toml", True), ("shut.toml", False)):
        with_file = [] if columns is None else ["--columns", columns]
        done = called(*words, *with_file, "--format", "csv", cwd=desk)
        assert (b"infeasible" not in done.stdout) == found, done.stderr


def test_a_file_at_explain_says_more(desk: Path) -> None:
    (desk / "more.toml").write_text('[pay]\nchange = "freeze"\n[months]\nlabel = "tenure"\n')
    words = ["explain", "loans.clvq", "some.csv", "--target", "good", "--columns", "more.toml"]
    done = called(*words, "-o", "more.csv", cwd=desk)
    assert done.returncode in (0, 3), done.stderr
    told, given = pd.read_csv(desk / "more.csv"), pd.read_csv(desk / "some.csv")
    kept = told["status"] == "optimal"
    assert (told["pay"][kept] == given["pay"][kept]).all()
    done = called(*words, "--format", "text", cwd=desk)
    assert b"Freeze(" not in done.stdout
    assert b"no change of net pay" in done.stdout or b"tenure" in done.stdout


def test_templates_come_from_files(desk: Path) -> None:
    (desk / "letter.txt").write_text("Dear customer,\nit would be {outcome} if {changes}.\n")
    words = ["explain", "loans.clvq", "some.csv", "--target", "good", "--format", "text"]
    done = called(*words, "--template", "@letter.txt", cwd=desk)
    letters = done.stdout.decode().rstrip("\n").split("\n\n")
    assert len(letters) == 4
    assert all(letter.startswith("Dear customer,\nit would be good if ") for letter in letters)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[pay", "is no TOML"),
        ("pay = 3", "pay stands outside of any column"),
        ("[pai]\nunit = 'EUR'", "columns.toml: feature 'pai' does not exist"),
        ("[pay]\nunits = 'EUR'", "[pay] has units; expected one of: kind, label"),
        ("[pay]\nunit = 3", "[pay] unit is 3; expected text"),
        ("[pay]\ndecimals = true", "decimals is True; expected a whole number"),
        ("[pay]\nrange = [1]", "expected two numbers"),
        ("[pay]\nrange = [2, 1]", "the range [2, 1] holds no finite number"),
        ("[pay]\nkind = 'money'", "the kind 'money'"),
        ("[home]\nprices = [['rent', 'own']]", "expected a list such as"),
        ("[pay]\nprice = 1", "is a number and has a price of switches"),
        ("[home]\nlevels = ['rent']", "which is no level of it; expected one of: 'rent'. Add it"),
        ("[pay]\nstep = true", "[pay] step is True; expected a number such as 50 or 0.5"),
        ("[months]\nkind = 'whole'\nstep = 0.5", "is whole and has the step 0.5"),
        ("[home]\nkind = 'boolean'", 'Say kind = "categorical", with labels'),
        ("[pay]\nkind = 'whole'", "'pay' is to be whole and holds "),
        ("[home]\nkind = 'whole'", "'home' is to be whole and holds "),
        ("[größe]\nunit = 'm'", 'Names with such signs stand between quotes: ["größe"].'),
        ("[home]\nlabels = { flat = 'x' }", "label for 'flat', which is no level"),
        ("[home]\nchange = 'increase'", "expected one of: 'any', 'freeze'"),
        ("[home]\ndefault = 2", "[home] has a default and no prices; expected both"),
        ("[home]\nprices = [['rent', 'own', 1]]", "Add them, or give the others one with default"),
        ("[home]\nordered = 1", "[home] ordered is 1; expected true or false"),
        ("[pay]\nsteps = 50", '[pay] steps is 50; expected "of value" or "of change"'),
        ("[pay]\nrange = [true, 3]", "expected two numbers or dates"),
    ],
)
def test_mistakes_are_named(desk: Path, tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "columns.toml"
    path.write_text(text)
    words = ["train", "loans.csv", "--label", "credit", "--columns", str(path)]
    done = called(*words, cwd=desk)
    assert done.returncode == 1
    line = done.stderr.decode()
    assert line.count("\n") == 1
    assert told in line


def test_steps_orders_defaults_and_dates_are_said_in_the_file(tmp_path: Path) -> None:
    days = pd.date_range("2024-01-01", periods=40)
    rows = TABLE.head(40).assign(
        credit=GOOD[:40], paid=days, grade=["low", "mid", "high", "top"] * 10
    )
    rows[["pay", "grade", "paid", "credit"]].to_parquet(tmp_path / "loans.parquet")
    done = called("columns", "loans.parquet", "--drop", "credit", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode()
    assert "#range = [2024-01-10, 2024-01-31]  # as usual in the table" in text
    said = text.replace('#steps = "of change"', 'steps = "of change"').replace("#step =", "step =")
    said = said.replace("#range = [2024-01-10, 2024-01-31]", "range = [2024-01-01, inf]")
    levels = 'levels = ["low", "mid", "high", "top"]\nordered = true'
    said = said.replace('levels = ["high", "low", "mid", "top"]', levels)
    (tmp_path / "columns.toml").write_text(said)
    words = ["train", "loans.parquet", "--label", "credit", "--columns", "columns.toml"]
    done = called(*words, "-o", "loans.clvq", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    features = clvq.load(tmp_path / "loans.clvq").features
    assert features["paid"] == clvq.Feature(
        "paid", "date", step=7, steps="of change", lower="2024-01-01", seen=(-inf, inf)
    )
    assert features["grade"] == clvq.Feature(
        "grade", levels=["low", "mid", "high", "top"], ordered=True
    )
    (tmp_path / "columns.toml").write_text(
        '[grade]\nprices = [["low", "mid", 3]]\ndefault = 5\n[pay]\nthousands = false\n'
    )
    assert called(*words, "-o", "loans.clvq", cwd=tmp_path).returncode == 0
    features = clvq.load(tmp_path / "loans.clvq").features
    assert features["pay"].thousands is False
    prices = features["grade"].switches
    assert isinstance(prices, dict)
    assert sorted(set(prices.values())) == [3.0, 5.0]
    assert len(prices) == 6


def test_halves_are_noticed_said_kept_and_answered_in(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {"weight": rng.integers(100, 220, 60) / 2, "smokes": rng.choice(["ja", "nein"], 60)}
    )
    risk = np.where(table.weight + 8 * (table.smokes == "ja") > 82, "high", "low")
    table.assign(risk=risk).to_csv(tmp_path / "all.csv", index=False)
    table[risk == "high"].head(3).to_csv(tmp_path / "some.csv", index=False)
    done = called("columns", "all.csv", "--drop", "risk", cwd=tmp_path)
    text = done.stdout.decode()
    assert "#step = 0.5  # all values are multiples of 0.5, instead of decimals" in text
    assert '#prices = [["ja", "nein", 1]]  # in both directions' in text
    (tmp_path / "columns.toml").write_text(
        '[weight]\nstep = 0.5\n[smokes]\nlabels = { ja = "of a smoker", nein = "of no smoker" }\n'
        "phrases = true\n"
    )
    words = ["train", "all.csv", "--label", "risk", "--columns", "columns.toml", "-o", "m.clvq"]
    done = called(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    features = clvq.load(tmp_path / "m.clvq").features
    assert features["weight"] == clvq.Feature("weight", step=0.5)
    assert features["smokes"].has_phrases
    words = ["explain", "m.clvq", "some.csv", "--target", "low"]
    found = json.loads(called(*words, "--format", "json", cwd=tmp_path).stdout)
    weights = [row["x"]["weight"] for row in found]
    assert all(weight * 2 == int(weight * 2) for weight in weights)
    done = called(
        *words, "--bounds", "weight=80:", "--freeze", "weight", "--format", "text",
        "--otherwise", "Dear patient: {text}", cwd=tmp_path,
    )  # fmt: skip
    assert all(line.startswith(("Dear patient: ", "The answer would")) or " it were of no smoker"
               in line for line in done.stdout.decode().splitlines())  # fmt: skip


def test_what_is_printed_of_levels_is_taken_when_it_is_typed_in(desk: Path) -> None:
    """In tables of all kinds, in constraints, and in conditions of these."""
    (desk / "free.toml").write_text('[guarantor]\nchange = "any"\n')
    words = ("explain", "loans.clvq", "-", "--target", "good", "--format", "json")
    words = (*words, "--columns", "free.toml")
    row = TABLE[GOOD == "bad"].head(1)
    asked: list[bytes] = []
    for cell in (False, "without a guarantor", "no", "FALSE"):
        changed = row.assign(guarantor=[cell], home="a home of your own")
        listed = json.dumps(changed.to_dict("records"), default=bool)
        asked += [changed.to_csv(index=False).encode(), listed.encode()]
    answers = [called(*words, cwd=desk, stdin=text) for text in asked]
    assert [done.returncode for done in answers] == [0] * len(asked), answers[0].stderr
    assert len({done.stdout for done in answers}) == 1
    original = json.loads(answers[0].stdout)[0]["original"]
    assert (original["guarantor"], original["home"]) == (False, "own")
    demands = ("guarantor == 'with a guarantor'", "guarantor != 'no'", "guarantor in ['yes']")
    rules = (*demands, "if pay >= 0 then guarantor == 'with a guarantor'")
    told = [
        json.loads(called(*words, "--constraint", rule, cwd=desk, stdin=asked[0]).stdout)[0]
        for rule in rules
    ]
    assert [answer["x"]["guarantor"] for answer in told] == [True] * len(rules)
    assert len({answer["cost"] for answer in told}) == 1
    sentence = ("explain", "loans.clvq", "-", "--target", "good", "--format", "text")
    rule = ("--constraint", "home == 'a home of your own'", "--constraint", demands[2])
    done = called(*sentence, *rule, cwd=desk, stdin=asked[0])
    assert done.returncode == 3
    assert 'breaks "with a guarantor" as it is' in done.stdout.decode()
    done = called(*words, "--constraint", "guarantor == 'perhaps'", cwd=desk, stdin=asked[0])
    assert done.returncode == 1
    assert b"'perhaps' is no level of 'guarantor'" in done.stderr

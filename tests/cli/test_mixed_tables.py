"""Whole numbers, levels and truth values at the shell, from the first command to the last."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import counterlvq as clvq
from counterlvq.datasets import load_ames_mixed
from tests.cli.test_reporting import assert_alone
from tests.support.shell import called, one_line

WISH = ("--target", "160k or more", "--cost", "mad", "--reference", "houses.csv")
RULES = (
    "--freeze", "year_built", "--freeze", "fireplaces", "--bounds", "living_area=0:1100",
    "--constraint", "kitchen != 'poor'", "--switch", "kitchen=2",
)  # fmt: skip
WHOLE = ["living_area", "lot_area", "year_built", "bathrooms", "fireplaces", "garage_cars"]
LEVELS = ["kitchen", "exterior", "drive"]


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The houses of Ames with a model of them, and eight cheap ones to ask about."""
    folder = tmp_path_factory.mktemp("street")
    table, price = load_ames_mixed()
    table = table.assign(price=price)
    table.to_csv(folder / "houses.csv", index=False)
    cheap = table[price == "below 160k"].head(8)
    cheap.insert(0, "plot", [f"p{i}" for i in range(8)])  # which the model does not know
    cheap.to_csv(folder / "cheap.csv", index=False)
    cheap.to_parquet(folder / "cheap.parquet", index=False)
    words = ["train", "houses.csv", "--label", "price", "--prototypes", "2", "-o", "houses.clvq"]
    done = called(*words, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_file_knows_what_the_columns_are(street: Path) -> None:
    done = called("inspect", "houses.clvq", "--json", cwd=street)
    told = {feature["name"]: feature for feature in json.loads(done.stdout)["features"]}
    kinds = {name: feature["kind"] for name, feature in told.items()}
    assert kinds == {
        **dict.fromkeys(WHOLE, "whole"),
        **dict.fromkeys(LEVELS, "categorical"),
        "central_air": "boolean",
    }
    assert sorted(told["kitchen"]["levels"]) == ["excellent", "fair", "good", "poor", "typical"]


def explained(street: Path, *words: str, code: int = 0) -> pd.DataFrame:
    words = ("explain", "houses.clvq", "cheap.csv", *WISH, "--format", "csv", *words)
    done = called(*words, cwd=street)
    assert done.returncode == code
    assert (b"have no answer" in done.stderr) == bool(code)
    return pd.read_csv(io.BytesIO(done.stdout), dtype=str, keep_default_na=False)


def cost_by_hand(given: pd.DataFrame, told: pd.DataFrame, houses: pd.DataFrame) -> np.ndarray:
    """Weigh the changes as the options say, from the two tables and nothing else."""
    total = np.zeros(len(given))
    for name in WHOLE:
        spread = (houses[name] - houses[name].median()).abs()
        unit = spread.median() or houses[name].std(ddof=0)
        total += (told[name].astype(int) - given[name]).abs() / unit
    for name, price in {"kitchen": 2, "exterior": 2, "drive": 2, "central_air": 2}.items():
        total += price * (told[name] != given[name].astype(str)).to_numpy()
    return total


def test_answers_have_the_columns_and_types_of_the_table(street: Path) -> None:
    given, told = pd.read_csv(street / "cheap.csv"), explained(street, *RULES)
    assert list(told.columns[: given.shape[1]]) == list(given.columns)
    assert (told["status"] == "optimal").all()
    for name in ("plot", "price", "year_built", "fireplaces"):
        assert_array_equal(told[name], given[name].astype(str))
    for name in WHOLE:
        assert told[name].str.fullmatch(r"-?\d+").all(), name
    houses = pd.read_csv(street / "houses.csv")
    for name in LEVELS:
        assert told[name].isin(houses[name].unique()).all()
    assert told["central_air"].isin(["True", "False"]).all()
    assert (told["living_area"].astype(int) <= 1100).all()
    assert (told["kitchen"] != "poor").all()
    assert (told[LEVELS] != given[LEVELS]).to_numpy().any()
    assert_allclose(told["cost"].astype(float), cost_by_hand(given, told, houses), rtol=1e-9)
    # What was written is read back, and the model still says so.
    again = pd.read_csv(io.StringIO(told.to_csv(index=False)))
    assert (clvq.load(street / "houses.clvq").predict(again) == "160k or more").all()


def test_a_dearer_switch_is_never_cheaper(street: Path) -> None:
    cheap = explained(street, *RULES[:-2], "--switch", "kitchen=0.01")
    dear = explained(street, *RULES[:-2], "--switch", "kitchen=100")
    given = pd.read_csv(street / "cheap.csv")
    assert (cheap["cost"].astype(float) <= dear["cost"].astype(float)).all()
    assert (cheap["kitchen"] != given["kitchen"]).sum() > (
        dear["kitchen"] != given["kitchen"]
    ).sum()


SEVERE = [
    word for name in ("bathrooms", "garage_cars", "exterior", "drive", "central_air")
    for word in ("--freeze", name)
] + ["--bounds", "lot_area=:20000"]  # fmt: skip


def test_whole_numbers_stay_so_beside_rows_without_an_answer(street: Path) -> None:
    told = explained(street, *RULES, *SEVERE, code=3)
    answered = told["status"] == "optimal"
    assert 0 < answered.sum() < len(told)
    for name in (*WHOLE, *LEVELS, "central_air"):
        assert (told.loc[~answered, name] == "").all()
    for name in WHOLE:
        assert told.loc[answered, name].str.fullmatch(r"\d+").all(), name
    assert (told.loc[~answered, "plot"] != "").all()


def test_parquet_keeps_dtypes(street: Path) -> None:
    words = ["explain", "houses.clvq", "cheap.parquet", *WISH, *RULES, "--format", "parquet"]
    done = called(*words, cwd=street)
    assert done.returncode == 0, done.stderr
    told, given = (
        pd.read_parquet(io.BytesIO(done.stdout)),
        pd.read_parquet(street / "cheap.parquet"),
    )
    assert told.dtypes[: given.shape[1]].to_dict() == given.dtypes.to_dict()
    text = explained(street, *RULES)
    for name in (*WHOLE, *LEVELS, "central_air"):
        assert_array_equal(told[name].astype(str), text[name])


@pytest.mark.docs
def test_page_about_mixed_rows(street: Path) -> None:
    words = ["report", "houses.clvq", "cheap.csv", *WISH, *RULES, *SEVERE, "--rows", "0,2,3"]
    words += ["--anywhere", "--no-certificates"]
    done = called(*words, "-o", "page.html", cwd=street)
    assert (done.returncode, done.stderr) == (3, b"")
    page = assert_alone((street / "page.html").read_bytes())
    table = pd.read_csv(street / "cheap.csv").iloc[[0, 2, 3]]
    loaded = clvq.load(street / "houses.clvq")
    explainer = clvq.Explainer(
        loaded,
        clvq.Manhattan(
            clvq.Reference.of(pd.read_csv(street / "houses.csv")).weights(loaded.features),
            switches={"kitchen": 2.0},
        ),
        [
            *map(clvq.Freeze, ["year_built", "fireplaces", *SEVERE[1:10:2]]),
            clvq.Bounds("living_area", 0, 1100),
            clvq.Bounds("lot_area", upper=20000),
            "kitchen != 'poor'",
        ],
    )
    batch = explainer.explain_batch(table, "160k or more")
    assert {str(cf.status) for cf in batch} == {"optimal", "infeasible"}
    for cf in batch:
        assert f"{cf.cost:.6g}" in page.text or not cf.status.has_answer
        assert all(change.text() in page.text for change in cf.changes)
    assert "kitchen != 'poor'" in page.text
    assert "another kitchen costs 2" in page.text
    assert "lifting it would save" in page.text
    assert "the same" in page.text


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--constraint", "kitchen != 'por'"), "'por'"),
        (("--bounds", "kitchen=0:1"), "'kitchen' is categorical; expected a number"),
        (("--switch", "living_area=2"), "'living_area', which is a number"),
        (("--switch", "kitchn=2"), "Did you mean 'kitchen'?"),
    ],
)
def test_errors_name_levels_and_kinds(street: Path, words: tuple[str, ...], told: str) -> None:
    done = called("explain", "houses.clvq", "cheap.csv", *words, cwd=street)
    assert (done.returncode, done.stdout) == (1, b"")
    assert told in one_line(done.stderr)


def test_too_few_rows_to_measure_by(street: Path) -> None:
    words = ["--cost", "mad", "--reference", "cheap.csv"]
    done = called("explain", "houses.clvq", "cheap.csv", *words, cwd=street)
    assert done.returncode == 1
    assert "never varies" in one_line(done.stderr)
    assert "--reference" in one_line(done.stderr)


def test_dates_are_learned_from_and_come_back_as_dates(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    opened = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1500, 80), unit="D")
    table = pd.DataFrame({"opened": opened, "income": rng.normal(3000, 500, 80).round()})
    label = np.where(table["opened"] > "2022-01-01", "good", "bad")
    table.assign(answer=label).to_parquet(tmp_path / "loans.parquet")
    refused = table[label == "bad"].iloc[:2]
    refused.to_parquet(tmp_path / "refused.parquet")
    words = ("train", "loans.parquet", "--label", "answer", "--output", "loans.clvq")
    assert called(*words, cwd=tmp_path).returncode == 0
    words = ("explain", "loans.clvq", "refused.parquet", "--target", "good")
    assert called(*words, "--output", "answers.parquet", cwd=tmp_path).returncode == 0
    found = pd.read_parquet(tmp_path / "answers.parquet")
    assert found["opened"].dtype.kind == "M"
    assert (found["opened"].to_numpy() > refused["opened"].to_numpy()).any()

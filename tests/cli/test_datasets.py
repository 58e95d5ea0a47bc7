"""`counterlvq explain` into a folder."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import counterlvq as clvq
from tests.support.shell import called
from tests.support.streams import plain_explainer, plain_table


@pytest.fixture
def place(tmp_path: Path) -> Path:
    clvq.save(plain_explainer().model, tmp_path / "m.clvq")
    (tmp_path / "rows").mkdir()
    pq.write_table(plain_table(40), tmp_path / "rows" / "a.parquet")
    return tmp_path


def told_by(*words: str, cwd: Path) -> tuple[int, str]:
    done = called(*words, cwd=cwd)
    return done.returncode, done.stderr.decode()


def test_folder_of_parquet_goes_into_a_folder(place: Path) -> None:
    done = told_by(
        "explain", "m.clvq", "rows", "--target", "c", "--cost", "manhattan", "-o", "out", cwd=place
    )
    assert done[0] == 0, done[1]
    assert "out: 40 rows in 1 part: 40 optimal" in done[1]
    told = pq.read_table(place / "out" / "part-00000-00000.parquet")
    whole = plain_explainer().explain_batch(plain_table(40).drop_columns("id"), "c")
    assert told["cost"].to_pylist() == whole.cost.tolist()
    again = told_by(
        "explain", "m.clvq", "rows", "--target", "c", "--cost", "manhattan", "-o", "out", cwd=place
    )
    assert "1 of them from before" in again[1]
    other = told_by("explain", "m.clvq", "rows", "--target", "a", "-o", "out", cwd=place)
    assert other[0] not in (0, 3)
    assert "begun with another question" in other[1]


def test_csv_goes_into_a_folder_with_a_wish_for_each_row(place: Path) -> None:
    rows = plain_table(3).to_pandas().assign(wish=["a", "x", ""], cost=1)
    rows.to_csv(place / "t.csv", sep=";", decimal=",", index=False)
    done = told_by(
        "explain", "m.clvq", "t.csv", "--target", "column:wish", "-o", "out/", "--delimiter", ";",
        "--decimal", ",", "--prefix", "cf_", cwd=place,
    )  # fmt: skip
    assert done[0] == 3, done[1]
    told = pq.read_table(place / "out")
    assert told["cf_status"].to_pylist() == ["optimal", "invalid", "optimal"]
    manifest = json.loads((place / "out" / "_manifest.json").read_text())
    assert manifest["statuses"] == {"invalid": 1, "optimal": 2}


def test_what_was_taken_from_training_is_said_of_a_folder_too(workshop: Path) -> None:
    words = ("explain", "iris.clvq", "rows.csv", "--target", "setosa")
    folder = told_by(*words, "-o", "told/", cwd=workshop)
    assert folder[0] == 0, folder[1]
    lines = folder[1].splitlines()
    assert lines[0].startswith("counterlvq: costs are in typical deviations of each number")
    assert told_by(*words, "--format", "csv", cwd=workshop)[1].splitlines() == lines[:-1]
    assert lines[-1].startswith("told/: 3 rows")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["rows", "-o", "out", "--format", "csv"], "--format is for tables"),
        (["rows", "-o", "out", "--cost", "mad"], "--cost mad has nothing to measure by"),
        (["rows", "-o", "out", "--target", "column:w", "--target", "a"], "names the column 'w'"),
        (["rows/a.parquet", "--prefix", "cf_"], "--prefix is for datasets"),
    ],
)
def test_what_does_not_go_with_a_folder_is_refused(
    place: Path, more: list[str], words: str
) -> None:
    done = told_by("explain", "m.clvq", *more, cwd=place)
    assert done[0] == 2, done[1]
    assert words in done[1]

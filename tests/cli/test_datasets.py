"""`counterlvq explain` into a folder."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import counterlvq as clvq
from counterlvq.cli.app import run
from counterlvq.cli.explain import FOR_TABLES, explain
from counterlvq.streaming.dataset import DatasetRun
from tests.support.shell import called, one_line
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
    assert "begun with another question: target was 'c', and now is 'a'" in other[1]


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


def test_columns_that_are_kept_are_those_that_are_named(place: Path) -> None:
    words = ("explain", "m.clvq", "rows", "--target", "c", "--cost", "manhattan", "-o", "out/")
    done = told_by(*words, "--keep", "w", "--keep", "id", cwd=place)
    assert done[0] == 0, done[1]
    assert pq.read_schema(place / "out" / "part-00000-00000.parquet").names[:3] == [
        "w", "id", "u_after",
    ]  # fmt: skip
    explainer = clvq.Explainer(plain_explainer().model)
    again = clvq.explain_dataset(explainer, place / "rows", place / "out", "c", columns=["w", "id"])
    assert again.resumed == 1
    done = told_by(*words, "--keep", "wish", cwd=place)
    assert done[0] == 1
    assert (
        "columns (--keep) lists 'wish', which the table has not; expected some of: 'id'" in done[1]
    )


def test_lines_about_progress_go_to_a_log_when_asked_for(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    pq.write_table(plain_table(45), place / "t.parquet", row_group_size=10)
    words = ["explain", "m.clvq", "t.parquet", "--target", "c", "--part-rows", "10"]
    assert run([*words, "-o", "one/", "--progress"]) == 0
    assert "rows a second" not in capsys.readouterr().err  # within a minute
    monkeypatch.setattr("counterlvq.presentation.progress._LOGGED", 0.0)
    assert run([*words, "-o", "two/"]) == 0
    assert "rows a second" not in capsys.readouterr().err  # unasked
    assert run([*words, "-o", "three/", "--progress"]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if " parts, " in line]
    assert len(lines) == 6
    assert lines[0] == "0 of 5 parts, 0 of 45 rows"
    assert re.fullmatch(
        r"2 of 5 parts, 20 of 45 rows, [\d,]+ rows a second, about \d+:\d\d left", lines[2]
    )
    (place / "three" / "part-00000-00001.parquet").unlink()
    assert run([*words, "-o", "three/", "--progress"]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if " parts, " in line]
    assert lines[0] == "4 of 5 parts, 35 of 45 rows"  # those of an earlier run count for no speed


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
        (["rows/a.parquet", "--target", "column:u"], "goes with a folder as output only"),
        (["rows", "-o", "out.parquet"], "rows is a folder, and the answers go into one"),
        (["rows"], "rows is a folder of tables, and the answers go into a folder"),
        (["rows", "--format", "csv"], "expected --output FOLDER/"),
        (["-", "-o", "out/"], "a dataset cannot be read from standard input, because it is read"),
        (["-", "-o", "rows"], "--output rows is a folder, and TABLE is -"),
        (["rows", "-o", "out", "--ranges"], "--ranges is for tables"),
        (["rows", "-o", "out", "--alternatives", "3"], "--alternatives is for tables"),
        (["rows", "-o", "out", "--certificates", "c.jsonl"], "--certificates is for tables"),
        (["rows", "-o", "out", "--model-apart", "m.json"], "--model-apart is for tables"),
        (["rows", "-o", "out", "--vipr", "proofs"], "--vipr is for tables"),
        (["rows", "-o", "out", "--subject", "You"], "--subject is for tables"),
        (["rows", "-o", "out", "--outcome", "c=good"], "--outcome is for tables"),
        (["rows", "-o", "out", "--numbers", "1,234.5"], "--numbers is for tables"),
        (["rows", "-o", "out", "--dates", "31.05.2024"], "--dates is for tables"),
        (["rows", "-o", "out", "--most", "2"], "--most is for tables"),
        (["rows", "-o", "out", "--template", "{list}"], "--template is for tables"),
        (["rows", "-o", "out", "--otherwise", "{text}"], "--otherwise is for tables"),
        (["rows", "-o", "out", "--rule", "u <= 2", "low"], "--rule is for tables"),
        (["rows", "-o", "out", "--response"], "--response/--no-response is for tables"),
        (["rows", "-o", "out", "--no-response"], "--response/--no-response is for tables"),
        (["rows", "-o", "out", "--escape"], "--escape/--no-escape is for tables"),
        (["rows", "-o", "out", "--no-escape"], "--escape/--no-escape is for tables"),
        (["rows/a.parquet", "--prefix", "cf_"], "--prefix is for datasets"),
        (["rows/a.parquet", "--part-rows", "9"], "--part-rows is for datasets"),
        (["rows/a.parquet", "--keep", "id"], "--keep is for datasets"),
        (["rows/a.parquet", "--progress"], "--progress is for datasets"),
    ],
)
def test_what_does_not_go_with_a_folder_is_refused(
    place: Path, more: list[str], words: str
) -> None:
    before = sorted(place.rglob("*"))
    done = told_by("explain", "m.clvq", *more, cwd=place)
    assert done[0] == 2, done[1]
    assert words in done[1]
    assert sorted(place.rglob("*")) == before


def test_cost_that_nothing_measures_is_told_in_one_line(place: Path) -> None:
    """And not behind a note that it is measured by the rows that are explained."""
    done = told_by("explain", "m.clvq", "rows", "-o", "out", "--cost", "mad", cwd=place)
    assert "--cost mad has nothing to measure by" in one_line(done[1])
    done = told_by("explain", "m.clvq", "rows/a.parquet", "--cost", "mad", cwd=place)
    assert "typical deviations are those of the rows that are explained" in done[1]


def test_every_option_is_for_datasets_or_refused_with_them() -> None:
    """An option that is new must not be passed over in silence."""
    obeyed = {
        "target", "confidence", "cost", "reference", "anywhere", "columns", "switch", "least",
        "freeze", "at_most", "plausible", "bounds", "within", "constraint", "method", "time_limit",
        "delimiter", "decimal", "encoding", "memory", "jobs", "bad_rows", "output", "prefix",
        "part_rows", "keep", "progress", "debug",
    }  # fmt: skip
    options = [known for known in explain.params if isinstance(known, click.Option)]
    assert {known.opts[0] for known in options if known.name not in obeyed} == set(FOR_TABLES)


def test_column_of_wishes_has_to_be_there(place: Path) -> None:
    """A label of that name is another thing, which nobody has asked for."""
    for name in ("c", "wish"):
        done = told_by(
            "explain", "m.clvq", "rows", "--target", f"column:{name}", "-o", "out/", cwd=place
        )
        assert done[0] == 1, done[1]
        words = f"names the column '{name}', which the table has not; expected one of: 'id', 'u'"
        assert words in done[1]
    rows = plain_table(3).append_column("c", pa.array(["a", "b", "c"]))
    pq.write_table(rows, place / "wishes.parquet")
    done = told_by(
        "explain", "m.clvq", "wishes.parquet", "--target", "column:c", "-o", "out/", cwd=place
    )
    assert done[0] == 0, done[1]
    assert pq.read_table(place / "out")["prediction"].to_pylist() == ["a", "b", "c"]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_column_that_is_no_class_is_told_how_to_be_named(place: Path, ending: str) -> None:
    rows = plain_table(3).append_column("my wish", pa.array(["a", "b", "c"]))
    (place / "few").mkdir()
    if ending == "csv":
        rows.to_pandas().to_csv(place / "few" / "t.csv", sep=";", index=False)
    else:
        (place / "few" / "year=2024").mkdir()
        pq.write_table(rows, place / "few" / "year=2024" / "t.parquet")
    words = ("explain", "m.clvq", "few", "-o", "out/", "--delimiter", ";", "--target")
    done = told_by(*words, "my wish", cwd=place)
    assert done[0] == 1, done[1]
    assert "no class is called 'my wish'; expected one of: a, b, c. It is a column" in done[1]
    assert "--target 'column:my wish' takes the label of each row" in done[1]
    assert told_by(*words, "column:my wish", cwd=place)[0] == 0
    for more in (["wish"], ["my wish", "--target", "a"]):
        done = told_by(*words, *more, cwd=place)
        assert done[0] == 1, done[1]
        assert "no class is called" in done[1]
        assert "column" not in done[1]
    done = told_by("explain", "m.clvq", "none", "-o", "out2/", "--target", "x", cwd=place)
    assert "no class is called 'x'" in done[1]  # of two mistakes, the first that is found
    if ending == "parquet":
        assert "--target column:year takes" in told_by(*words, "year", cwd=place)[1]


def test_class_of_a_table_may_be_called_like_a_column_of_labels(tmp_path: Path) -> None:
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "column:u"], feature_names=["u"])
    clvq.save(model, tmp_path / "m.clvq")
    (tmp_path / "t.csv").write_text("u\n1\n")
    done = told_by("explain", "m.clvq", "t.csv", "--target", "column:u", cwd=tmp_path)
    assert done[0] == 0, done[1]


def test_notes_are_told_before_the_work(workshop: Path) -> None:
    """Also of work that comes to no end."""
    (workshop / "bad.csv").write_text(
        (workshop / "rows.csv").read_text().splitlines()[0] + "\nx,x,x,x\n"
    )
    words = ("explain", "iris.clvq", "bad.csv", "--target", "setosa", "-o", "ended/")
    done = told_by(*words, "--bad-rows", "raise", cwd=workshop)
    assert done[0] == 1, done[1]
    assert done[1].startswith("counterlvq: costs are in typical deviations of each number")


def test_run_that_is_ended_says_how_far_it_is(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(plain_table(45), place / "t.parquet", row_group_size=10)
    monkeypatch.chdir(place)
    real, seen = DatasetRun.answer, list[str]()

    def answer(self: DatasetRun, part: Any, *how: Any) -> dict[str, int]:
        seen.append(part.name)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return real(self, part, *how)

    monkeypatch.setattr(DatasetRun, "answer", answer)
    words = ["explain", "m.clvq", "t.parquet", "--target", "c", "--output", "out/"]
    assert run([*words, "--part-rows", "10"]) == 130
    assert (
        "interrupted; 2 of 5 parts (20 of 45 rows) are finished; the same command goes on"
        in capsys.readouterr().err
    )
    assert run(words) == 0  # with parts of the size that it was begun with
    assert "45 rows in 5 parts, 2 of them from before" in capsys.readouterr().err


def test_many_rows_for_one_file_are_told_of_before_the_work(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setattr("counterlvq.cli.explain._MANY", 39)
    words = ["explain", "m.clvq", "rows/a.parquet", "--target", "c", "--cost", "manhattan"]
    held = "counterlvq: rows/a.parquet has 40 rows, whose answers are all held in memory; --output"
    for output, folder in {"table": "table/", "t.csv": "FOLDER/"}.items():
        assert run([*words, "--output", output]) == 0
        assert f"{held} {folder} writes them as they come." in capsys.readouterr().err
    assert run([*words, "--time-limit", "x"]) == 2
    assert held not in capsys.readouterr().err
    monkeypatch.setattr("counterlvq.cli.explain._MANY", 40)
    assert run([*words, "--output", "few.csv"]) == 0
    assert held not in capsys.readouterr().err


def test_sentences_about_files_and_folders(place: Path) -> None:
    pq.write_table(plain_table(3).rename_columns(["id", "u", "v", "w", "xx"]), place / "x.parquet")
    (place / "more").mkdir()
    for name in "ab":
        (place / "more" / f"{name}.parquet").write_bytes((place / "x.parquet").read_bytes())
    clash = plain_table(3).append_column("cost", pa.array([1, 2, 3]))
    pq.write_table(clash, place / "clash.parquet")
    (place / "file").write_text("dear diary")
    for words, expected in {
        ("m.clvq", "rows", "-o", "file/"): "file/: is a file; expected a folder",
        ("m.clvq", "more", "-o", "out/"): "'a.parquet' lacks the column 'x' of the model",
        ("m.clvq", "clash.parquet", "-o", "out/"): "(--prefix cf_)",
        ("m.clvq", "m.clvq", "-o", "out/"): "'m.clvq' is a model file; the model comes first",
        ("none.clvq", "rows", "-o", "out/"): "none.clvq: there is no such file; expected a model",
    }.items():
        done = told_by("explain", *words, "--target", "c", cwd=place)
        assert done[0] == 1, done[1]
        assert expected in done[1]
        assert "Did you mean" not in done[1]
    assert not (place / "out").exists()
    done = told_by("explain", "m.clvq", "rows/a.parquet", "-o", "fresh", cwd=place)
    assert done[0] == 0
    assert "fresh is a file of text; --output fresh/ is a folder" in done[1]
    assert (place / "fresh").is_file()

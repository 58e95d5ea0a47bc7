"""Datasets: every row exactly once, whatever happens to the run, the source or the folder."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.compose import make_column_transformer
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import counterlvq as clvq
from counterlvq.streaming.dataset import DatasetRun
from counterlvq.streaming.folder import AnswerFolder
from counterlvq.streaming.identity import digest
from tests.support.quick import some
from tests.support.streams import (
    SIZE,
    mixed_batch,
    mixed_explainer,
    plain_explainer,
    plain_table,
)

ROOT = Path(__file__).resolve().parents[2]
KILLING = ROOT / "tests" / "support" / "stream_killing.py"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def manifest(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "_manifest.json").read_text(encoding="utf-8"))


def answers(folder: Path) -> pa.Table:
    names = sorted(path for path in folder.iterdir() if path.suffix == ".parquet")
    return pa.concat_tables(pq.read_table(name) for name in names)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Two files: row groups of 50, and a single row."""
    folder = tmp_path / "source"
    folder.mkdir()
    table = plain_table(301)
    pq.write_table(table.slice(0, 300), folder / "a.parquet", row_group_size=50)
    pq.write_table(table.slice(300), folder / "b.parquet")
    return folder


def explained(source: Path, folder: Path, **more: Any) -> clvq.DatasetSummary:
    more = {"target": "c", "part_rows": 100, **more}
    return clvq.explain_dataset(plain_explainer(), source, folder, **more)


# --- answers --------------------------------------------------------------------------------------


def test_answers_are_those_of_a_batch(source: Path, tmp_path: Path) -> None:
    told = explained(source, tmp_path / "out")
    found = answers(tmp_path / "out")
    whole = plain_explainer().map_batches(plain_table(301).to_batches(), "c").read_all()
    assert found.equals(whole)
    assert told.rows == 301
    assert told.statuses == {"optimal": 301}
    assert [part["name"] for part in manifest(tmp_path / "out")["parts"]] == [
        f"part-{name}.parquet"
        for name in ("00000-00000", "00000-00002", "00000-00004", "00001-00000")
    ]
    assert {part["state"] for part in manifest(tmp_path / "out")["parts"]} == {"finished"}
    rows = plain_table(301).drop_columns("id").to_pandas().to_numpy()
    right = int((plain_explainer().model.predict(rows) == "c").sum())
    assert str(told) == f"301 rows in 4 parts: 301 optimal; {right} have the target already"
    again = explained(source, tmp_path / "out")
    stated = [manifest(tmp_path / "out")["has_target"]]
    stated += [sum(part["has_target"] for part in manifest(tmp_path / "out")["parts"])]
    assert [told.has_target, again.has_target, *stated] == [right] * 4


def test_folder_is_read_by_others(source: Path, tmp_path: Path) -> None:
    explained(source, tmp_path / "out")
    assert pq.read_table(tmp_path / "out").num_rows == 301


def test_mixed_columns_and_bad_rows(tmp_path: Path) -> None:
    batch = mixed_batch(15)
    pq.write_table(pa.Table.from_batches([batch]), tmp_path / "t.parquet", row_group_size=7)
    told = clvq.explain_dataset(
        mixed_explainer(), tmp_path / "t.parquet", tmp_path / "out", "yes", part_rows=7
    )
    whole = mixed_explainer().map_batches([batch], "yes").read_all()
    found = answers(tmp_path / "out")
    assert found.schema.equals(whole.schema)
    assert found.to_pylist() == whole.to_pylist()
    counted = whole["status"].value_counts().to_pylist()
    assert told.statuses == {pair["values"]: pair["counts"] for pair in counted}
    assert manifest(tmp_path / "out")["statuses"] == told.statuses


def test_first_row_that_cannot_be_read_is_told_with_its_place(tmp_path: Path) -> None:
    """Also by a run that goes on behind it."""
    numbers = [None if i in (57, 58) else 1.0 for i in range(60)]
    table = plain_table(60).set_column(1, "u", pa.array(numbers))
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=25)
    for resumed in (0, 3):
        told = explained(tmp_path / "t.parquet", tmp_path / "out", part_rows=25)
        assert told.resumed == resumed
        assert told.first_invalid.startswith(
            "row 7 of part-00000-00002.parquet, counted from 0: column 'u' is missing; expected"
        )
        assert f"; the first that is invalid: {told.first_invalid[:-1]}" in str(told)
    part = pq.read_table(tmp_path / "out" / "part-00000-00002.parquet")
    assert part["reason"][7].as_py() == told.first_invalid.partition("from 0: ")[2]
    assert part["id"][7].as_py() == 57
    stated = manifest(tmp_path / "out")["parts"][2]["first_invalid"]
    assert stated == [7, part["reason"][7].as_py()]


def test_who_has_the_target_already_is_counted_by_the_wish_of_each_row(tmp_path: Path) -> None:
    table = plain_table(50)
    says = plain_explainer().model.predict(table.drop_columns("id").to_pandas().to_numpy())
    wish = [None if i % 5 == 0 else ["a", "b", "c"][i % 3] for i in range(50)]
    pq.write_table(table.append_column("wish", pa.array(wish)), tmp_path / "t.parquet")
    told = explained(tmp_path / "t.parquet", tmp_path / "out", target="wish")
    assert told.has_target == sum(a == b for a, b in zip(says.tolist(), wish, strict=True)) > 0


def test_values_in_paths_are_columns(tmp_path: Path) -> None:
    table = plain_table(40)
    for k, name in enumerate(["u=-1/día=1", "u=0/día=2", "u=2/día=__HIVE_DEFAULT_PARTITION__"]):
        folder = tmp_path / "source" / name
        folder.mkdir(parents=True)
        rows = table.slice(10 * k, 10).drop_columns("u")
        pq.write_table(rows, folder / "x.parquet")
    empty = tmp_path / "source" / "u=3" / "día=4"
    empty.mkdir(parents=True)
    pq.write_table(table.slice(0, 0).drop_columns("u"), empty / "x.parquet")
    told = clvq.explain_dataset(plain_explainer(), tmp_path / "source", tmp_path / "out", "c")
    found = answers(tmp_path / "out").sort_by("id")
    assert (told.rows, told.parts) == (30, 4)
    assert found["u"].to_pylist() == [-1] * 10 + [0] * 10 + [2] * 10
    assert found["día"].to_pylist() == [1] * 10 + [2] * 10 + [None] * 10
    rows = table.slice(0, 30).set_column(1, "u", pa.array(found["u"].to_pylist(), pa.float64()))
    whole = plain_explainer().explain_batch(rows.drop_columns("id"), "c")
    assert found["cost"].to_pylist() == whole.cost.tolist()


def test_dataset_without_rows_has_a_schema(tmp_path: Path) -> None:
    pq.write_table(plain_table(0), tmp_path / "t.parquet")
    told = clvq.explain_dataset(plain_explainer(), tmp_path / "t.parquet", tmp_path / "out", "c")
    assert told.rows == 0
    assert "cost" in answers(tmp_path / "out").schema.names


def test_wish_may_be_a_column(source: Path, tmp_path: Path) -> None:
    table = plain_table(9).append_column("wish", pa.array(["a", "b", None] * 3))
    pq.write_table(table, tmp_path / "t.parquet")
    clvq.explain_dataset(plain_explainer(), tmp_path / "t.parquet", tmp_path / "out", "wish")
    whole = plain_explainer().explain_batch(
        table.drop_columns(["id", "wish"]), ["a", "b", None] * 3
    )
    assert answers(tmp_path / "out")["cost"].to_pylist() == whole.cost.tolist()


# --- CSV ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part_rows", [1, 3, 1000])
def test_csv_is_read_cell_by_cell(tmp_path: Path, part_rows: int) -> None:
    text = (
        "\ufeffid,größe in cm,cards,rate,job,owner,note\r\n"
        "1,171.5,3,2.50,nurse,True,plain\r\n"
        '2, 160 ,2,1,pilot,false,"two\r\nlines, and a ""quote"""\r\n'
        "3,tall,3,2.5,nurse,1,007\r\n"
        "4,NA,3,2.5,nurse,0,\r\n"
        "5,171.5,3.5,2.5,nurse,TRUE,x\r\n"
        "\r\n"
        "6,171.5,3,2.5,astronaut,True,y\r\n"
        "7,+1.7e2,3,2.5,clerk,maybe,z"
    )
    (tmp_path / "t.csv").write_bytes(text.encode())
    told = clvq.explain_dataset(
        mixed_explainer(), tmp_path / "t.csv", tmp_path / "out", "yes", part_rows=part_rows
    )
    found = answers(tmp_path / "out")
    assert found["id"].to_pylist() == list("1234567")
    assert found["note"].to_pylist()[1] == 'two\r\nlines, and a "quote"'
    assert found["note"].to_pylist()[2:4] == ["007", ""]
    good = {SIZE: [171.5, 160.0], "cards": [3, 2], "rate": [2.5, 1.0]}
    good |= {"job": ["nurse", "pilot"], "owner": [True, False]}
    whole = mixed_explainer().explain_batch(pa.table(good), "yes")
    assert found["cost"].to_pylist()[:2] == whole.cost.tolist()
    assert found["status"].to_pylist()[2:] == ["invalid"] * 5
    words = found["reason"].to_pylist()
    assert words[2].startswith("column 'größe in cm' is 'tall'; expected a finite number")
    assert words[3].startswith("column 'größe in cm' is missing; expected a value")
    assert words[4].startswith("column 'cards' is '3.5'; expected a whole number")
    assert words[5].startswith("column 'job' is 'astronaut', which is none of its levels")
    assert words[6].startswith("column 'owner' is 'maybe'; expected one of: False, True")
    assert told.rows == 7


def test_csv_with_other_signs_and_letters(tmp_path: Path) -> None:
    text = "id;größe in cm;cards;rate;job;owner\nä;171,5;3;2,5;nurse;True\n"
    (tmp_path / "t.csv").write_bytes(text.encode("latin-1"))
    clvq.explain_dataset(
        mixed_explainer(),
        tmp_path / "t.csv",
        tmp_path / "out",
        "yes",
        delimiter=";",
        decimal=",",
        encoding="latin-1",
    )
    found = answers(tmp_path / "out")
    assert found["id"].to_pylist() == ["ä"]
    assert found[SIZE].to_pylist() == [171.5]


def test_numbers_of_csv_are_those_of_its_digits(tmp_path: Path) -> None:
    table = plain_table(50)
    table.to_pandas().to_csv(tmp_path / "t.csv", index=False)
    clvq.explain_dataset(plain_explainer(), tmp_path / "t.csv", tmp_path / "out", "c", part_rows=7)
    found = answers(tmp_path / "out")
    for name in "uvwx":
        np.testing.assert_array_equal(found[name].to_numpy(), table[name].to_numpy())


def test_labels_that_are_numbers_are_read_from_csv(tmp_path: Path) -> None:
    model = clvq.PrototypeModel([[0.0], [4.0]], [0, 1], feature_names=["x"])
    (tmp_path / "t.csv").write_text("x,wish\n1,1\n1,0\n1,\n1,2\n")
    clvq.explain_dataset(clvq.Explainer(model), tmp_path / "t.csv", tmp_path / "out", "wish")
    found = answers(tmp_path / "out")
    assert found["prediction"].to_pylist() == [1, 0, 1, None]
    assert (
        found["reason"].to_pylist()[3] == "column 'wish' is '2'; expected one of the labels 0, 1."
    )


@pytest.mark.parametrize("part_rows", [1, 2, 100])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_odd_lines_spoil_their_own_rows(tmp_path: Path, part_rows: int, end: str) -> None:
    """And no line of blanks is one."""
    lines = ["x,y,note", "1,2,a", "3,4", " ", '5,6,"b\nc",7', "", "1,2,d", '"8"', "\t ", "9,1,e"]
    (tmp_path / "t.csv").write_bytes(end.join(lines).encode())
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 1.0]], [0, 1], feature_names=["x", "y"])
    explainer = clvq.Explainer(model)
    told = clvq.explain_dataset(
        explainer, tmp_path / "t.csv", tmp_path / "out", {1}, part_rows=part_rows
    )
    assert told.statuses == {"invalid": 3, "optimal": 3}
    found = answers(tmp_path / "out")
    assert found["note"].to_pylist() == ["a", None, None, "d", None, "e"]
    assert found["x"].to_pylist() == [1, None, None, 1, None, 9]
    words = found["reason"].to_pylist()
    assert words[1] == "the line '3,4' has 2 cells; expected 3, one for each column."
    assert words[2].endswith("has 4 cells; expected 3, one for each column.")
    assert words[4] == "the line '\"8\"' has 1 cells; expected 3, one for each column."
    with pytest.raises(
        clvq.InvalidInputError,
        match=r"'t.csv', .*row 1 of the file, counted from 0: the line '3,4' has 2",
    ):
        clvq.explain_dataset(
            explainer, tmp_path / "t.csv", tmp_path / "no", {1}, on_bad_rows="raise"
        )


def test_levels_of_csv_are_read_by_name_by_label_or_as_numbers(tmp_path: Path) -> None:
    """A level may be called as gaps are elsewhere."""
    walls = ["None", "NA", "brick"]
    levels = {"walls": walls, "floors": [1.0, 2.0, 2.5], "lift": [False, True]}
    rows = {name: (values * 3)[:6] for name, values in levels.items()}
    steps = make_column_transformer((OneHotEncoder(categories=[*levels.values()]), [*levels]))
    pipeline = make_pipeline(steps, NearestCentroid()).fit(pd.DataFrame(rows), list("aababb"))
    features = clvq.Features(
        [
            clvq.Feature("walls", levels=walls, level_labels={"brick": "of brick"}),
            clvq.Feature("floors", levels=levels["floors"]),
            clvq.Feature("lift", "boolean"),
        ]
    )
    lines = ["walls;floors;lift", "None;1;yes", "NA;2,50;1", "of brick; 2 ;FALSE", "brick;1.0;0"]
    lines += [";1;no", "brick;3;true", "brick;1;maybe"]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    explainer = clvq.Explainer(pipeline, features=features)
    clvq.explain_dataset(
        explainer, tmp_path / "t.csv", tmp_path / "out", "a", delimiter=";", decimal=","
    )
    found = answers(tmp_path / "out")
    assert found["walls"].to_pylist() == ["None", "NA", "brick", "brick", None, "brick", "brick"]
    assert found["floors"].to_pylist() == [1, 2.5, 2, 1, 1, None, 1]
    assert found["lift"].to_pylist() == [True, True, False, False, False, True, None]
    assert found["status"].to_pylist() == ["optimal"] * 4 + ["invalid"] * 3


def test_numbers_with_two_kinds_of_points_are_none(tmp_path: Path) -> None:
    model = clvq.PrototypeModel([[0.0], [4.0]], [0, 1], feature_names=["x"])
    (tmp_path / "t.csv").write_text("x\n1,5\n1.234\n1.234,5\n1,2,3\n2\n")
    clvq.explain_dataset(
        clvq.Explainer(model), tmp_path / "t.csv", tmp_path / "out", {1}, delimiter=";", decimal=","
    )
    assert answers(tmp_path / "out")["x"].to_pylist() == [1.5, None, None, None, 2.0]


@pytest.mark.parametrize("labels", [[0, 1], [0.0, 1.0], [False, True]])
def test_wishes_for_labels_that_are_no_text_may_be_written_in_any_way(
    tmp_path: Path, labels: list[Any]
) -> None:
    """Also in a column that is called as a label is written."""
    model = clvq.PrototypeModel([[0.0], [4.0]], labels, feature_names=["x"])
    name = str(labels[1])
    texts = ["1", "0.0", " 1.0", "", "2", name]
    texts += ["TRUE", "false"] if labels[0] is False else []
    rows = "".join(f"1,{text}\n" for text in texts)
    (tmp_path / "t.csv").write_text(f"x,{name}\n{rows}")
    clvq.explain_dataset(clvq.Explainer(model), tmp_path / "t.csv", tmp_path / "out", name)
    expected = [labels[1], labels[0], labels[1], None, None, labels[1], labels[1], labels[0]]
    assert answers(tmp_path / "out")[name].to_pylist() == expected[: len(texts)]


@pytest.mark.parametrize(
    ("text", "more", "words"),
    [
        ("", {}, r"has no first line"),
        ("x,x\n1,2\n", {}, r"two columns named 'x'"),
        ("y\n1\n", {}, r"lacks the column\(s\) 'x'"),
        ("x,y\n1,2,\n", {}, r"has 2 names of columns and 3 values in its first row"),
        ("x;y\n1;2\n", {}, r"one column if ',' .* and 2 if ';' does; .* delimiter=';'"),
        ("x,y\n1,2\n", {"delimiter": "|"}, r"one column if '\|' .* and 2 if ',' does"),
        ("x\n1\n", {"encoding": "utf-16"}, r"encoding is 'utf-16'; expected one in which"),
        ("x\n1\n", {"delimiter": "."}, r"delimiter and decimal are both '.'"),
        ("x\n1\n", {"delimiter": "::"}, r"delimiter is '::'; expected one sign"),
        ("x\n1\n", {"part_rows": 0}, r"part_rows is 0; expected a positive whole number"),
    ],
)
def test_csv_that_cannot_be_read_is_refused(
    tmp_path: Path, text: str, more: dict[str, Any], words: str
) -> None:
    model = clvq.PrototypeModel([[0.0], [4.0]], [0, 1], feature_names=["x"])
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(clvq.InvalidInputError, match=words):
        clvq.explain_dataset(clvq.Explainer(model), tmp_path / "t.csv", tmp_path / "out", **more)


# --- parts, and how far a run is ------------------------------------------------------------------


def local_explainer() -> clvq.Explainer:
    model = plain_explainer().model
    omegas = np.random.default_rng(2).normal(size=(9, 2, 4))
    return clvq.Explainer(
        clvq.PrototypeModel(
            model.prototypes, model.labels, omegas=omegas, feature_names=list("uvwx")
        )
    )


def asking(**more: Any) -> clvq.Explainer:
    return clvq.Explainer(plain_explainer().model, **more)


WHOLE_NUMBERS = clvq.Features([clvq.Feature(name, "whole") for name in "uvwx"])


@pytest.mark.parametrize(
    ("explainer", "rows"),
    [
        (plain_explainer(), 1 << 18),
        (asking(constraints=["u <= 9"], cost=clvq.Euclidean()), 1 << 18),
        (asking(features=WHOLE_NUMBERS), 1 << 14),
        (mixed_explainer(), 1 << 14),
        (asking(features=WHOLE_NUMBERS, time_limit=9.0), 1 << 10),
        (local_explainer(), 1 << 10),
        (asking(constraints=[clvq.AtMost(1)]), 1 << 10),
        (asking(confidence=clvq.RelativeSimilarity(0.1)), 1 << 10),
    ],
    ids=["plain", "rule", "whole", "mixed", "time limit", "local", "at most", "confidence"],
)
def test_parts_are_smaller_where_rows_are_slow(
    tmp_path: Path, explainer: clvq.Explainer, rows: int
) -> None:
    table = pa.Table.from_batches([mixed_batch(0)]) if "cards" in explainer.features.names else None
    pq.write_table(plain_table(0) if table is None else table, tmp_path / "t.parquet")
    clvq.explain_dataset(explainer, tmp_path / "t.parquet", tmp_path / "out")
    assert manifest(tmp_path / "out")["part_rows"] == rows


def test_run_that_goes_on_takes_the_parts_it_has_begun_with(source: Path, tmp_path: Path) -> None:
    explained(source, tmp_path / "out")
    told = clvq.explain_dataset(plain_explainer(), source, tmp_path / "out", "c")
    assert (told.resumed, told.parts) == (4, 4)


def counted(explainer: clvq.Explainer, table: pa.Table) -> list[int]:
    seen: list[int] = []
    explainer.explain_batch(table, progress=seen.append, on_bad_rows="report")
    return seen


def test_rows_are_counted_while_a_batch_is_answered() -> None:
    assert sum(counted(plain_explainer(), plain_table(9000))) == 9000
    assert counted(local_explainer(), plain_table(3)) == [1, 1, 1]
    # The compiled search takes a thousand rows at a time, and leaves some to another one.
    rows = pa.table({name: np.rint(4 * plain_table(3000)[name].to_numpy()) for name in "uvwx"})
    seen = counted(asking(features=WHOLE_NUMBERS), rows)
    assert sum(seen) == 3000
    assert max(seen) <= 1024


def test_bar_begins_at_what_is_there_and_moves_inside_of_parts(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    explained(source, tmp_path / "unseen")
    bars: list[tuple[int, int, list[int]]] = []

    @contextmanager
    def bar(total: int, progress: bool, before: int = 0) -> Iterator[Any]:
        assert progress
        bars.append((total, before, []))
        yield bars[-1][2].append

    monkeypatch.setattr("counterlvq.streaming.dataset.progress_bar", bar)
    explained(source, tmp_path / "shown", progress=True)
    (tmp_path / "shown" / "part-00000-00002.parquet").unlink()
    explained(source, tmp_path / "shown", progress=True)
    assert [(total, before, sum(seen)) for total, before, seen in bars] == [
        (301, 0, 301),
        (301, 201, 100),
    ]
    assert contents(tmp_path / "shown") == contents(tmp_path / "unseen")
    one = pa.Table.from_batches([mixed_batch(2100)])
    pq.write_table(one, tmp_path / "t.parquet")
    clvq.explain_dataset(
        mixed_explainer(), tmp_path / "t.parquet", tmp_path / "out", "yes", progress=True
    )
    assert sum(bars[-1][2]) == 2100  # bad rows are among them
    assert len(bars[-1][2]) >= 3


# --- going on -------------------------------------------------------------------------------------


def failing_at(monkeypatch: pytest.MonkeyPatch, name: str, at: int, error: Exception) -> list[int]:
    """Let the call number `at` of a function of `os` fail."""
    real, calls = getattr(os, name), []

    def fails(*given: Any) -> Any:
        calls.append(1)
        if len(calls) == at:
            raise error
        return real(*given)

    monkeypatch.setattr(os, name, fails)
    return calls


@pytest.fixture
def whole(source: Path, tmp_path: Path) -> dict[str, bytes]:
    explained(source, tmp_path / "whole")
    return contents(tmp_path / "whole")


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("at", range(1, 6, 2))
def test_full_disk_loses_nothing(
    source: Path,
    tmp_path: Path,
    whole: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    at: int,
) -> None:
    folder = tmp_path / "out"
    error = OSError(errno.ENOSPC, "No space left on device")
    with monkeypatch.context() as patch:
        calls = failing_at(patch, call, at, error)
        with pytest.raises(OSError, match="No space left"):
            explained(source, folder)
        assert len(calls) >= at
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]
    explained(source, folder)
    assert contents(folder) == whole


def test_what_all_parts_share_is_hashed_once(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A source may have as many files as there are parts, and all of them are in each seal."""
    hashed: list[str] = []

    def counted(value: Any) -> str:
        hashed.append(type(value).__name__)
        return digest(value)

    monkeypatch.setattr("counterlvq.streaming.dataset.digest", counted)
    assert explained(source, tmp_path / "answers").parts == 4
    assert hashed.count("dict") == 1
    files = (tmp_path / "answers").glob("part-*.parquet")
    assert len({pq.read_metadata(path).metadata[b"counterlvq.part"] for path in files}) == 4


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_finished_parts_are_not_computed_again(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    if kind == "csv":
        plain_table(301).to_pandas().to_csv(tmp_path / "t.csv", index=False)
        source = tmp_path / "t.csv"
    explained(source, tmp_path / "whole")
    real, seen = DatasetRun.answer, []

    def answer(self: DatasetRun, part: Any, *more: Any) -> dict[str, int]:
        if len(seen) == 2:
            raise KeyboardInterrupt
        seen.append(part.name)
        return real(self, part, *more)

    monkeypatch.setattr(DatasetRun, "answer", answer)
    with pytest.raises(KeyboardInterrupt):
        explained(source, tmp_path / "out")
    states = [part["state"] for part in manifest(tmp_path / "out")["parts"]]
    assert states == ["finished"] * 2 + ["to do"] * 2
    first = list(seen)
    seen.clear()
    assert explained(source, tmp_path / "out").resumed == 2
    assert len({*first, *seen}) == 4
    seen.clear()
    told = explained(source, tmp_path / "out")
    assert (seen, told.resumed, told.rows) == ([], 4, 301)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def kill(kills: int, seed: int, rows: int) -> dict[str, int]:
    done = subprocess.run(
        [sys.executable, str(KILLING), str(kills), str(seed), str(rows)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.machine
@pytest.mark.skipif(os.name != "posix", reason="processes are forked")
@pytest.mark.parametrize(("kills", "rows"), some([(4, 1200), (6, 1200), (6, 4500)], quick=1))
def test_killed_runs_are_gone_on_with(kills: int, rows: int) -> None:
    assert kill(kills, seed=0, rows=rows)["kills"] >= kills


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="processes are forked")
def test_a_hundred_kills_leave_no_trace() -> None:
    told = kill(120, seed=1, rows=4500)
    assert told["kills"] >= 100
    assert told["pending"] > 0, "no kill came while a part was written"


# --- what is refused ------------------------------------------------------------------------------


def changed_bytes(path: Path) -> None:
    pq.write_table(plain_table(50, seed=9), path)


def test_another_question_model_or_source_is_refused(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    explained(source, folder)
    before = contents(folder)
    words = r"begun with another question: target was 'c', and now is 'b'; expected"
    with pytest.raises(clvq.InvalidInputError, match=words):
        explained(source, folder, target="b")
    words = r"another question: columns given back was 'id', 'u', 'v', 'w', 'x', and now is 'id';"
    with pytest.raises(clvq.InvalidInputError, match=words):
        explained(source, folder, columns=["id"])
    with pytest.raises(clvq.InvalidInputError, match=r"another size: 100 rows, and now 99; exp"):
        explained(source, folder, part_rows=99)
    strict = clvq.Explainer(plain_explainer().model, constraints=["u <= 9"])
    words = r"another question: constraints was none, and now is u <= 9; expected"
    with pytest.raises(clvq.InvalidInputError, match=words):
        clvq.explain_dataset(strict, source, folder, "c", part_rows=100)
    for sure in (clvq.Noise(0.1), clvq.Drift(0.1), clvq.RelativeSimilarity(0.1)):
        careful = clvq.Explainer(plain_explainer().model, confidence=sure)
        with pytest.raises(clvq.InvalidInputError, match=r"begun with another question"):
            clvq.explain_dataset(careful, source, folder, "c", part_rows=100)
    model = plain_explainer().model
    other = clvq.PrototypeModel(
        np.nextafter(model.prototypes, 9.0),
        model.labels,
        omegas=model.omegas,
        feature_names=list("uvwx"),
    )
    with pytest.raises(clvq.InvalidInputError, match=r"begun with another model"):
        clvq.explain_dataset(clvq.Explainer(other), source, folder, "c", part_rows=100)
    changed_bytes(source / "b.parquet")
    with pytest.raises(clvq.InvalidInputError, match=r"another source: 'b.parquet' has changed"):
        explained(source, folder)
    (source / "b.parquet").unlink()
    with pytest.raises(clvq.InvalidInputError, match=r"'b.parquet' is not there any more"):
        explained(source, folder)
    pq.write_table(plain_table(3), tmp_path / "other.parquet")
    words = r"another source: 'a.parquet' and 1 more; now it is 'other.parquet'; expected"
    with pytest.raises(clvq.InvalidInputError, match=words):
        explained(tmp_path / "other.parquet", folder)
    assert contents(folder) == before


def test_source_that_changes_while_it_is_read_is_refused(source: Path, tmp_path: Path) -> None:
    real = AnswerFolder.write_part

    def write_part(
        self: AnswerFolder, name: str, seal: str, schema: Any, batches: Iterator[Any]
    ) -> Any:
        def late() -> Iterator[Any]:
            yield next(batches)
            os.utime(source / "a.parquet")
            yield from batches

        return real(self, name, seal, schema, late())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AnswerFolder, "write_part", write_part)
        with pytest.raises(clvq.InvalidInputError, match=r"has changed while it was read"):
            explained(source, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["_manifest.json"]


def test_two_runs_at_once_are_one_too_many(source: Path, tmp_path: Path) -> None:
    folder = AnswerFolder(tmp_path / "out")
    with folder.locked(), pytest.raises(clvq.InvalidInputError, match=r"another run is writing"):
        explained(source, folder.path)
    explained(source, folder.path)
    assert not (folder.path / ".lock").exists()


def test_folder_of_something_else_is_refused(source: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "diary.txt").write_text("dear diary")
    with pytest.raises(clvq.InvalidInputError, match=r"holds 'diary.txt' and no manifest"):
        explained(source, tmp_path / "out")
    (tmp_path / "out" / "_manifest.json").write_text("dear diary")
    with pytest.raises(clvq.InvalidInputError, match=r"cannot be read .*the manifest of a run"):
        explained(source, tmp_path / "out")


def test_hidden_files_of_the_user_stay(source: Path, tmp_path: Path) -> None:
    folder, seal = tmp_path / "out", "0123456789abcdef"
    ours = [f".part-00000-00001.parquet.{seal}.pending", f"._manifest.json.{seal}.part"]
    theirs = [".download.part", ".mine.pending", f".notes.{seal}.part", ".part-1.parquet.pending"]
    for begin in (True, False):
        folder.mkdir(exist_ok=True)
        (folder / ".x.pending").mkdir(exist_ok=True)
        for name in ours + theirs:
            (folder / name).write_text("mine")
        explained(source, folder)
        hidden = {path.name for path in folder.iterdir() if path.name[0] == "."}
        assert hidden == {".x.pending", *theirs}, begin


def test_what_is_in_the_place_of_a_folder_or_lock_is_told(source: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(clvq.InvalidInputError, match=r"file' is a file; expected a new folder"):
        explained(source, tmp_path / "file")
    lock = tmp_path / "out" / ".lock"
    lock.mkdir(parents=True)
    with pytest.raises(clvq.InvalidInputError, match=r"in the place of the lock of a run"):
        explained(source, tmp_path / "out")
    lock.rmdir()
    lock.write_text("mine")
    with pytest.raises(clvq.InvalidInputError, match=r"in the place of the lock of a run"):
        explained(source, tmp_path / "out")
    assert lock.read_text() == "mine"


def test_folder_that_cannot_be_written_to_is_told(source: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"file"):
        explained(source, tmp_path / "file" / "out")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    if not os.access(closed, os.W_OK):
        with pytest.raises(PermissionError):
            explained(source, closed)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"part_rows": 1.0}, r"part_rows is 1.0; expected a positive whole number"),
        ({"part_rows": 0}, r"part_rows is 0; expected a positive whole number"),
        ({"part_rows": "9"}, r"part_rows is '9'; expected a positive whole number"),
        ({"delimiter": None}, r"delimiter is None; expected one sign of ASCII"),
        ({"decimal": None}, r"decimal is None; expected one sign of ASCII"),
        ({"encoding": None}, r"encoding is None; expected one in which"),
        ({"source": None}, r"source is None; expected a path"),
        ({"source": 5}, r"source is 5; expected a path"),
        ({"destination": 5}, r"destination is 5; expected a path"),
        ({"destination": None}, r"destination is None; expected a path"),
    ],
)
def test_wrong_argument_is_refused_at_once(
    tmp_path: Path, arguments: dict[str, Any], words: str
) -> None:
    (tmp_path / "t.csv").write_text("u,v,w,x\n1,2,3,4\n")
    asked = {"source": tmp_path / "t.csv", "destination": tmp_path / "out", "target": "c"}
    with pytest.raises(clvq.InvalidInputError, match=words):
        clvq.explain_dataset(plain_explainer(), **{**asked, **arguments})
    assert not (tmp_path / "out").exists()


def test_sources_that_are_none_are_refused(source: Path, tmp_path: Path) -> None:
    with pytest.raises(clvq.InvalidInputError, match=r"there is no such file or folder"):
        explained(tmp_path / "nowhere", tmp_path / "out")
    (tmp_path / "empty").mkdir()
    with pytest.raises(clvq.InvalidInputError, match=r"holds no file of Parquet or CSV"):
        explained(tmp_path / "empty", tmp_path / "out")
    with pytest.raises(clvq.InvalidInputError, match=r"lies in the source"):
        explained(source, source / "out")
    (source / "c.csv").write_text("x\n1\n")
    with pytest.raises(clvq.InvalidInputError, match=r"files of both Parquet and CSV"):
        explained(source, tmp_path / "out")
    (source / "c.csv").unlink()
    (source / "c.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(clvq.InvalidInputError, match=r"cannot be read as Parquet"):
        explained(source, tmp_path / "out")


def test_files_of_other_columns_are_refused(source: Path, tmp_path: Path) -> None:
    pq.write_table(plain_table(3).drop_columns("x"), source / "c.parquet")
    with pytest.raises(clvq.InvalidInputError, match=r"'c.parquet' lacks the column 'x'"):
        explained(source, tmp_path / "out")
    texts = plain_table(3).set_column(4, "x", pa.array(["1", "two", "3"]))
    pq.write_table(texts, source / "c.parquet")
    with pytest.raises(clvq.InvalidInputError, match=r"'x' of 'c.parquet' is of type string"):
        explained(source, tmp_path / "out2")


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("part_rows", [2, 100])
def test_bad_row_is_told_with_its_place_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, part_rows: int
) -> None:
    monkeypatch.setattr("counterlvq.streaming.parquet_source.BATCH_ROWS", 2)
    monkeypatch.setattr("counterlvq.streaming.csv_source.BATCH_ROWS", 2)
    numbers = [None if i in (7, 8) else float(i) for i in range(10)]
    table, path = plain_table(10).set_column(1, "u", pa.array(numbers)), tmp_path / f"t.{kind}"
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=3)
    else:
        lines = table.to_pandas().to_csv(index=False).splitlines(keepends=True)
        path.write_text("".join([*lines[:3], "\n  \n", *lines[3:]]))  # blank ones are no rows
    words = r"'t\.\w+', .*: row 7 of the file, counted from 0: column 'u' is missing; expected"
    with pytest.raises(clvq.InvalidInputError, match=words) as error:
        explained(path, tmp_path / "out", on_bad_rows="raise", part_rows=part_rows)
    # Nothing stays of a run that has no finished part, and its folder is free.
    assert ("For 'report' instead of 'raise'" in str(error.value)) == (part_rows == 2)

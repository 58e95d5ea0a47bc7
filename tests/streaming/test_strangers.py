"""Datasets from strangers, and folders that were changed: all rows of the source, or words."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import os
import re
import shutil
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import counterlvq as clvq
from counterlvq.streaming import csv_cuts
from counterlvq.streaming.csv_cuts import cuts_of, header_of
from counterlvq.streaming.listing import listed_files

PART = "part-00000-00001.parquet"
MODEL = clvq.PrototypeModel([[0.0, 0.0], [4.0, 1.0]], ["no", "yes"], feature_names=["x", "y"])
WHOLE = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], feature_names=["x"])


def explained(source: Path, folder: Path, model: Any = MODEL, **more: Any) -> clvq.DatasetSummary:
    features = None if model is MODEL else clvq.Features([clvq.Feature("x", "whole")])
    explainer = clvq.Explainer(model, features=features)
    return clvq.explain_dataset(explainer, source, folder, "yes", **{"part_rows": 3, **more})


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


# --- where records end ----------------------------------------------------------------------------

ROWS = [["1", "a"], ["2", 'say "no"'], ["3", "two\r\nlines"], ["4", "x,y"], ["5", ""], ["6", "é"]]


def written(end: str) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator=end).writerows([["x", "note"], *ROWS])
    return out.getvalue().encode()


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 1 << 20])
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_records_end_where_a_csv_reader_ends_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, chunk: int
) -> None:
    whole = written(end)
    begin = len(f"x,note{end}")
    path = tmp_path / "t.csv"
    path.write_bytes(whole)
    monkeypatch.setattr(csv_cuts, "header_of", lambda *_: (b"", b"", begin))
    monkeypatch.setattr(csv_cuts, "_CHUNK", chunk)
    for rows in (1, 2, 100):
        cuts, _ = cuts_of(path, ",", rows)
        assert (cuts[0].begin, cuts[-1].end) == (begin, len(whole))
        assert [a.end for a in cuts[:-1]] == [b.begin for b in cuts[1:]]
        found = [whole[cut.begin : cut.end].decode() for cut in cuts]
        read = [list(csv.reader(io.StringIO(text, newline=""))) for text in found]
        assert [row for part in read for row in part] == ROWS
        assert [len(part) for part in read] == [cut.rows for cut in cuts]


@pytest.mark.parametrize("chunk", [1, 4, 1 << 20])
def test_quotes_within_cells_are_letters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    """Such as inches; they open nothing, and a cell that does begin with one may hold lines."""
    text = 'x,note\n1,5" pipe\n2,a""b\n3,"l\nm"\n4,"q""\nr"\n5,"s"t"\n6,z\n'
    (tmp_path / "t.csv").write_text(text)
    assert header_of(tmp_path / "t.csv", ",")[2] == 7
    monkeypatch.setattr(csv_cuts, "header_of", lambda *_: (b"", b"", 7))
    monkeypatch.setattr(csv_cuts, "_CHUNK", chunk)
    cuts, _ = cuts_of(tmp_path / "t.csv", ",", 1)
    assert [text[cut.begin] for cut in cuts] == list("123456")


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
def test_all_line_ends_give_all_rows(tmp_path: Path, end: str) -> None:
    (tmp_path / "t.csv").write_bytes(end.join(["x,y", "1,2", "3,4", "5,6", "7,8", ""]).encode())
    told = explained(tmp_path / "t.csv", tmp_path / "out")
    assert (told.rows, told.parts) == (4, 2)
    assert pq.read_table(tmp_path / "out")["x"].to_pylist() == [1, 3, 5, 7]


def test_records_without_an_end_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_cuts, "_CHUNK", 64)
    monkeypatch.setattr(csv_cuts, "_MOST_BYTES", 100)
    (tmp_path / "t.csv").write_text("x,y\n1,2\n3," + "4" * 300)
    with pytest.raises(clvq.InvalidInputError, match=r"no end of a line in the .* from byte 8 on"):
        explained(tmp_path / "t.csv", tmp_path / "out")
    with open(tmp_path / "t.csv", "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(clvq.InvalidInputError, match=r"no first line within its first 64 bytes"):
        explained(tmp_path / "t.csv", tmp_path / "out")


@pytest.mark.parametrize("sign", ["\t", " ", ","])
@pytest.mark.parametrize("rows", [1, 2, 100])
def test_rows_of_gaps_are_rows(tmp_path: Path, sign: str, rows: int) -> None:
    """Also where a part has no others, and the sign between cells is a blank."""
    lines = ["x,y", "1,2", "3,4", ",", ",", "5,6", ",", ","]
    (tmp_path / "t.csv").write_text("\n".join(lines).replace(",", sign) + "\n\n")
    told = explained(tmp_path / "t.csv", tmp_path / "out", delimiter=sign, part_rows=rows)
    assert told.statuses == {"invalid": 4, "optimal": 3}
    (tmp_path / "t.csv").write_text("\n,\n1,2\n".replace(",", sign))
    with pytest.raises(clvq.InvalidInputError, match=r"^'t.csv': "):
        explained(tmp_path / "t.csv", tmp_path / "blank", delimiter=sign)


@pytest.mark.parametrize(
    ("text", "begin"),
    [
        ('x,y\n1,"2\n3,4\n5,6\n', 4),
        ('x,y\n1,2\n3,"', 8),
        ('x,y\n1,2\n3,"4""\n5,6\n', 8),
        ('x,"y\n1,2\n3,4\n', 0),
    ],
)
def test_quotes_that_nothing_closes_swallow_no_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, begin: int
) -> None:
    words = rf"ends between quotes.* at byte {begin},"
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(clvq.InvalidInputError, match=words):
        explained(tmp_path / "t.csv", tmp_path / "out")
    if begin:
        monkeypatch.setattr(csv_cuts, "header_of", lambda *_: (b"", b"", 4))
        monkeypatch.setattr(csv_cuts, "_CHUNK", 1)
        with pytest.raises(clvq.InvalidInputError, match=words):
            cuts_of(tmp_path / "t.csv", ",", 2)


# --- cells and files ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "more", "words"),
    [
        (b"x,y\n1,2\n3,\x81\n", {"encoding": "cp1252"}, r"no text in cp1252 \(byte 10 is 0x81\)"),
        (b"x,y\n1,2\n3,\xe9\n", {"encoding": "ascii"}, r"no text in ascii \(byte 10 is 0xe9\)"),
        (b"x,y\n1,2\n3,\xe9\n", {}, r"no text in utf-8 \(byte 10 is 0xe9\)"),
        (b"x,\xe9\n1,2\n", {}, r"no text in utf-8 \(byte 2 is 0xe9\)"),
        (b"x,y\n1,2\n", {"encoding": "iso2022_jp"}, r"encoding is 'iso2022_jp'; expected one in"),
        (b"x,y\n1,2\n", {"encoding": "utf-7"}, r"encoding is 'utf-7'; expected one in which"),
        (b"x,y\n1,2\n", {"encoding": "\0"}, r"expected one in which line ends"),
        (b"x,y\n1,2\n", {"prefix": "\udcff"}, r"prefix is '\\udcff', which no name"),
        (b"PK\x03\x04" + bytes(50), {}, r"'t.csv' is an Excel workbook"),
        (b'[{"x": 1, "y": 2}]', {}, r"'t.csv' is JSON; write it as Parquet or CSV"),
        (b",".join(b"%d" % k for k in range(100_000)) + b"\n", {}, r"announces 100,000 columns"),
    ],
)
def test_foreign_files_are_refused_in_words(
    tmp_path: Path, content: bytes, more: dict[str, Any], words: str
) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(clvq.InvalidInputError, match=words):
        explained(tmp_path / "t.csv", tmp_path / "out", **more)


@pytest.mark.parametrize("chunk", [5, 6, 7, 1 << 20])
@pytest.mark.parametrize(
    ("content", "encoding", "byte"),
    [
        (b"x,y\n1,2\n3,\xe9\n4,5\n", "utf-8", 10),
        (b"x,y\n1,2\n3,\xe4\xb8\xad\n4,\xe4\xb8\n", "utf-8", 16),
        (b"x,y\n1,2\n3,\xe4\xb8", "utf-8", 10),
        (b"x,y\n1,2\n3,4\x81\n", "cp1252", 11),
        (b"x,y\n1,2\n3,\xa4\xa2\n4,\xa4", "euc_jp", 15),
    ],
)
def test_bytes_that_are_no_text_are_told_before_a_row_is_answered(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    chunk: int,
    content: bytes,
    encoding: str,
    byte: int,
) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    monkeypatch.setattr(csv_cuts, "_CHUNK", chunk)
    with pytest.raises(clvq.InvalidInputError, match=rf"'t.csv' is no text in .*\(byte {byte} is"):
        explained(tmp_path / "t.csv", tmp_path / "out", part_rows=1, encoding=encoding)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("chunk", [1, 2, 5, 1 << 20])
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_blocks_are_cut_where_records_end(
    monkeypatch: pytest.MonkeyPatch, end: str, chunk: int
) -> None:
    monkeypatch.setattr(csv_cuts, "_CHUNK", chunk)
    for whole in (written(end), written(end).rstrip(), b"", b"1"):
        for rows in (1, 2, 3, 100):
            blocks = list(csv_cuts.blocks_of(io.BytesIO(whole), 0, len(whole), ",", rows))
            assert b"".join(block for _, block in blocks) == whole
            assert all(whole[begin:].startswith(block) for begin, block in blocks)
            texts = [block.decode() for _, block in blocks]
            counts = [len(list(csv.reader(io.StringIO(text, newline="")))) for text in texts]
            assert all(count == rows for count in counts[:-1])
            assert all(0 < count <= rows for count in counts[-1:])


def test_numbers_without_end_spoil_their_own_rows(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"x\n1\n1e999\n{'9' * 400}\n-1e999\n2\n")
    explained(tmp_path / "t.csv", tmp_path / "out", WHOLE, part_rows=100)
    told = pq.read_table(tmp_path / "out")
    assert told["status"].to_pylist() == ["optimal"] + ["invalid"] * 3 + ["optimal"]
    assert "expected a whole number" in told["reason"].to_pylist()[1]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_whole_numbers_that_no_float_holds_spoil_their_own_rows(tmp_path: Path, kind: str) -> None:
    most = 1 << 53
    numbers = [most - 1, most, most + 1, most + 2, -most, -most - 1, 3]
    path = tmp_path / f"t.{kind}"
    if kind == "csv":
        path.write_text("\n".join(["x", *map(str, numbers), f"+{most}.0", f"{most}.1", ""]))
    else:
        pq.write_table(pa.table({"x": numbers}), path)
    explained(path, tmp_path / "out", WHOLE, part_rows=100)
    found = pq.read_table(tmp_path / "out")
    expected = [abs(number) > most for number in numbers] + [False, True] * (kind == "csv")
    assert [status == "invalid" for status in found["status"].to_pylist()] == expected
    features = clvq.Features([clvq.Feature("x", "whole")])
    explainer = clvq.Explainer(WHOLE, features=features)
    for frame in (pd.DataFrame({"x": numbers}), pd.DataFrame({"x": numbers}, dtype=object)):
        told = explainer.explain_batch(frame, "yes", on_bad_rows="report")
        assert (told.status == "invalid").tolist() == expected[: len(numbers)]
    with pytest.raises(clvq.InvalidInputError, match=r"9007199254740993; expected whole numbers"):
        explainer.explain({"x": most + 1}, "yes")


def test_long_names_of_columns_are_kept(tmp_path: Path) -> None:
    name = "n" * 200_000
    (tmp_path / "t.csv").write_text(f'x,y,{name},"a\nb"\n1,2,3,4\n')
    explained(tmp_path / "t.csv", tmp_path / "out")
    assert pq.read_table(tmp_path / "out").column_names[:4] == ["x", "y", name, "a\nb"]


def parquet(path: Path, **columns: Any) -> bytes:
    rows = len(next(iter(columns.values()), range(8)))
    pq.write_table(pa.table({"x": [1.0] * rows, "y": [2.0] * rows, **columns}), path)
    return path.read_bytes()


def test_parquet_that_unpacks_to_too_much_is_refused_first(tmp_path: Path) -> None:
    nested = pa.array([["x" * 1_000_000]] * 100)
    for name, cells in {"text": pa.array(["x" * 1_000_000] * 100), "lists": nested}.items():
        parquet(tmp_path / "t.parquet", note=cells)
        with pytest.raises(clvq.InvalidInputError, match=r"2\d\d,\d+,\d+ bytes .*max_bytes"):
            explained(tmp_path / "t.parquet", tmp_path / name)
    parquet(tmp_path / "t.parquet", note=pa.array(["x" * 3000] * 8))
    with pytest.raises(clvq.InvalidInputError, match=r"expected at most 1,000"):
        explained(tmp_path / "t.parquet", tmp_path / "out", max_bytes=1000)
    assert explained(tmp_path / "t.parquet", tmp_path / "out").rows == 8


def test_damaged_parquet_is_refused_or_gives_all_rows(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    parquet(source / "a.parquet")
    whole = parquet(source / "b.parquet", note=pa.array([str(k) * 50 for k in range(8)]))
    for at in range(4, len(whole), 31):
        damaged = whole[:at] + b"\xff\xff\xff" + whole[at + 3 :]
        (source / "b.parquet").write_bytes(damaged)
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        with suppress(clvq.CounterlvqError):
            assert explained(source, tmp_path / "out").rows == 16


DAY, NOON = dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, 12, 5)
BERLIN = pa.timestamp("us", "Europe/Berlin")
OTHER_TYPES: list[tuple[str, Any, Any]] = [
    ("x", pa.array([1.0], pa.float32()), pa.array([5.00000001])),
    ("x", pa.array([1.0], pa.float16()), pa.array([1.1], pa.float32())),
    ("x", pa.array([1.0]), pa.array([2**53 + 1])),
    ("x", pa.array([1.0]), pa.array(["5.5"])),
    ("x", pa.array([1.0]), pa.array([Decimal("0.1234567890123456789")])),
    ("id", pa.array([1]), pa.array(["007"])),
    ("id", pa.array(["a"]), pa.array([1e22])),
    ("id", pa.array([1], pa.int8()), pa.array([1], pa.int16())),
    ("id", pa.array([1], pa.uint64()), pa.array([1], pa.int8())),
    ("id", pa.array([1], pa.int64()), pa.array([1], pa.uint64())),
    ("id", pa.array([Decimal("1.5")]), pa.array([Decimal("1.25")])),
    ("id", pa.array([DAY]), pa.array([NOON])),
    ("id", pa.array([NOON], BERLIN), pa.array([NOON], pa.timestamp("us", "UTC"))),
    ("id", pa.array([NOON]), pa.array([NOON], BERLIN)),
    ("id", pa.array([True]), pa.array([7])),
    ("id", pa.array([{"a": 1}]), pa.array([{"a": 1, "b": 2}])),
    ("id", pa.array([[1.0]], pa.list_(pa.float32())), pa.array([[0.1]])),
    ("id", pa.array([None], pa.null()), pa.array([7])),
    ("id", pa.array([["a"]]), pa.array(["a"]).dictionary_encode()),
    ("id", pa.array([7]).dictionary_encode(), pa.array(["7"]).dictionary_encode()),
]


@pytest.mark.parametrize(("name", "first", "second"), OTHER_TYPES)
def test_types_that_would_change_a_value_are_refused_before_a_row_is_read(
    tmp_path: Path, name: str, first: Any, second: Any
) -> None:
    (tmp_path / "s").mkdir()
    for k, column in enumerate([first, second], start=1):
        columns = {"x": [1.0], "y": [1.0], name: column}
        parquet(tmp_path / "s" / f"{k}.parquet", **columns)
    # As Parquet gives them back, which has no scale of decimals or index of its own.
    types = [pq.read_schema(tmp_path / "s" / f"{k}.parquet").field(name).type for k in (1, 2)]
    words = (
        f"column '{name}' of '2.parquet' is of type {types[1]}, but of type {types[0]} in the "
        f"first file, '1.parquet'; expected one type in all files"
    )
    with pytest.raises(clvq.InvalidInputError, match=re.escape(words)):
        explained(tmp_path / "s", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("x", pa.array([1.0]), pa.array([1.1], pa.float32())),
        ("x", pa.array([1.0]), pa.array([7], pa.int32())),
        ("id", pa.array([1], pa.int16()), pa.array([-7], pa.int8())),
        ("id", pa.array([1], pa.int16()), pa.array([255], pa.uint8())),
        ("id", pa.array(["a"], pa.large_string()), pa.array(["ß"])),
        ("id", pa.array(["a"]), pa.array(["ß"], pa.large_string())),
        ("id", pa.array(["a"], pa.string_view()), pa.array(["ß"]).dictionary_encode()),
        ("id", pa.array(["a"]).dictionary_encode(), pa.array(["ß"])),
        ("id", pa.array([b"a"]), pa.array([b"\xff"], pa.large_binary())),
        ("id", pa.array([Decimal("1.25")]), pa.array([Decimal("1.5")])),
        ("id", pa.array([{"a": 1}]), pa.array([None], pa.null())),
    ],
)
def test_types_that_keep_every_value_may_differ(
    tmp_path: Path, name: str, first: Any, second: Any
) -> None:
    (tmp_path / "s").mkdir()
    for k, column in enumerate([first, second], start=1):
        columns = {"x": [1.0], "y": [1.0], name: column}
        parquet(tmp_path / "s" / f"{k}.parquet", **columns)
    assert explained(tmp_path / "s", tmp_path / "out").statuses == {"optimal": 2}
    found = pq.read_table(tmp_path / "out")[name]
    assert found.to_pylist() == first.to_pylist() + second.to_pylist()


def test_columns_that_the_first_file_lacks_are_refused(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    parquet(tmp_path / "s" / "1.parquet", x=[1.0], y=[1.0])
    parquet(tmp_path / "s" / "2.parquet", x=[1.0], y=[1.0], note=["keep me"])
    words = r"'2.parquet' has the column 'note', which the first file, '1.parquet', has not"
    with pytest.raises(clvq.InvalidInputError, match=words):
        explained(tmp_path / "s", tmp_path / "out")


@pytest.mark.skipif(os.name != "posix", reason="names are bytes there")
def test_names_that_arrow_cannot_open_are_told(tmp_path: Path) -> None:
    whole = parquet(tmp_path / "t.parquet")
    strange = tmp_path / os.fsdecode(b"\xff.parquet")
    strange.write_bytes(whole)
    with pytest.raises(clvq.InvalidInputError, match=r"a name that is no UTF-8.* make a link"):
        explained(strange, tmp_path / "out")


def test_damaged_pages_are_told_with_their_place(tmp_path: Path) -> None:
    table = pa.table({"x": [float(k) for k in range(99)], "y": [2.0] * 99})
    pq.write_table(table, tmp_path / "t.parquet", compression="snappy", use_dictionary=False)
    whole = (tmp_path / "t.parquet").read_bytes()
    (tmp_path / "t.parquet").write_bytes(whole[:200] + bytes(99) + whole[299:])
    with pytest.raises(clvq.InvalidInputError, match=r"^'t.parquet', row groups 0 to 0, cannot be"):
        explained(tmp_path / "t.parquet", tmp_path / "out")


# --- folders of tables ----------------------------------------------------------------------------


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """A folder of tables with one file of two rows, and another one beside it."""
    for name in ("in", "beside"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.csv").write_text("x,y\n1,2\n3,4\n")
    return tmp_path / "in"


def test_links_are_followed_and_repeat_no_row(tables: Path) -> None:
    """Whether they lead elsewhere, to each other, back, or to what is read anyhow."""
    (tables / "sub").mkdir()
    (tables / "sub" / "s.csv").write_text("x,y\n5,6\n")
    beside = tables.parent / "beside"
    links = {
        "away": beside, "again": beside, "latest": tables / "sub", "same.csv": tables / "in.csv",
        "loop": tables, "sub/up": tables.parent, "b.csv": beside / "other.csv",
    }  # fmt: skip
    (beside / "other.csv").write_text("x,y\n7,8\n")
    (beside / "back").symlink_to(tables / "sub")
    for name, target in links.items():
        (tables / name).symlink_to(target)
    listing = listed_files(tables)
    assert listing.paths == ("again/beside.csv", "again/other.csv", "in.csv", "sub/s.csv")
    assert dict(listing.left_out) == {
        "again/back": "it leads to 'sub', which is read",
        "away": "it leads to 'again', which is read",
        "b.csv": "it leads to 'again/other.csv', which is read",
        "latest": "it leads to 'sub', which is read",
        "loop": "it leads back to a folder that it lies in",
        "same.csv": "it leads to 'in.csv', which is read",
        "sub/up": "it leads back to a folder that it lies in",
    }
    with pytest.raises(clvq.InvalidInputError, match="lies in the source"):
        explained(tables, tables / "again" / "out")


def test_what_is_left_out_is_told_with_the_reason(tables: Path, tmp_path: Path) -> None:
    for name in ("a.csv.gz", "b.tsv", "c.txt", "_d.csv", "_SUCCESS", ".e"):
        (tables / name).write_text("x\ty\n1\t1\n")
    (tables / "_f").mkdir()
    (tables / "dangling.txt").symlink_to("nowhere")
    told = explained(tables, tmp_path / "out")
    names = [path for path, _ in told.left_out]
    assert names == ["_d.csv", "_f", "a.csv.gz", "b.tsv", "c.txt", "dangling.txt"]
    assert str(told) == (
        "2 rows in 1 part: 2 optimal; 1 has the target already; left out: '_d.csv', '_f' (its name "
        "begins with a dot or an underscore), 'a.csv.gz', 'b.tsv', 'c.txt', 'dangling.txt' (it "
        "ends in neither .parquet nor .csv)"
    )
    manifest = json.loads((tmp_path / "out" / "_manifest.json").read_text())
    assert [place["path"] for place in manifest["left_out"]] == names
    (tables / "in.csv").unlink()
    with pytest.raises(clvq.InvalidInputError, match=r"no file of Parquet or CSV; left out: '_d"):
        explained(tables, tmp_path / "none")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has pipes without names only")
def test_what_cannot_be_read_is_refused(tables: Path) -> None:
    for name, make, words in [
        ("a.csv", lambda path: path.symlink_to("nowhere.csv"), "leads nowhere"),
        ("folder", lambda path: path.symlink_to("nowhere"), "leads nowhere"),
        ("b.parquet", os.mkfifo, "is no file"),
    ]:
        make(tables / name)
        with pytest.raises(clvq.InvalidInputError, match=rf"'{name}' in .*{words}"):
            listed_files(tables)
        (tables / name).unlink()
    os.mkfifo(tables / "pipe")
    with pytest.raises(clvq.InvalidInputError, match=r"source is .*, which is neither"):
        listed_files(tables / "pipe")
    (tables / "c=1").mkdir()
    (tables / "c=2").symlink_to("c=1")
    with pytest.raises(clvq.InvalidInputError, match=r"leads to 'c=1', under other values"):
        listed_files(tables)


# --- folders of answers ---------------------------------------------------------------------------


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{k},{k % 3}\n" for k in range(8)))
    return tmp_path / "t.csv"


def changed(folder: Path, **values: Any) -> None:
    place = folder / "_manifest.json"
    place.write_text(json.dumps({**json.loads(place.read_text()), **values}))


PARTS: list[Any] = [
    [], None, ["x"], [{}], 7,
    [{"name": PART, "file": 0, "begin": 5, "end": 9, "rows": 1}],
    [{"name": "../p.parquet", "file": 9, "begin": -5, "end": 10**30, "rows": "x"}],
]  # fmt: skip


@pytest.mark.parametrize("parts", PARTS)
def test_what_a_manifest_says_of_parts_is_not_believed(
    source: Path, tmp_path: Path, parts: Any
) -> None:
    explained(source, tmp_path / "out")
    whole = contents(tmp_path / "out")
    changed(tmp_path / "out", parts=parts, rows=3, statuses=None)
    (tmp_path / "out" / PART).unlink()
    assert explained(source, tmp_path / "out").rows == 8
    assert contents(tmp_path / "out") == whole


@pytest.mark.parametrize(
    "text",
    ["[]", "1", "null", "", "[" * 100_000, "\udcff", '{"source": null}', '{"source": []}', "{}"]
    + [json.dumps({"source": {"files": files}}) for files in (None, [1], [{}], [{"path": []}])],
)
def test_a_manifest_that_is_none_is_refused(source: Path, tmp_path: Path, text: str) -> None:
    explained(source, tmp_path / "out")
    place = tmp_path / "out" / "_manifest.json"
    place.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(clvq.InvalidInputError, match=r"expected the (manifest|same)"):
        explained(source, tmp_path / "out")


def test_a_source_that_was_changed_under_its_old_time_is_refused(
    source: Path, tmp_path: Path
) -> None:
    explained(source, tmp_path / "out")
    times = os.stat(source)
    source.write_text(source.read_text().replace("7,1", "7,2"))
    os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(clvq.InvalidInputError, match=r"another source: 't.csv' has changed since"):
        explained(source, tmp_path / "out")


def test_damaged_parts_are_refused(source: Path, tmp_path: Path) -> None:
    """Cut, emptied, or with any byte changed."""
    explained(source, tmp_path / "out")
    good = (tmp_path / "out" / PART).read_bytes()
    damaged = [b"", good[:500], good[:-1], bytes(len(good)), good + b"x", b"x" + good]
    damaged += [
        good[:at] + bytes([good[at] ^ 255]) + good[at + 1 :]
        for at in [*range(4, len(good), 151), *range(len(good) - 12, len(good))]
    ]
    damaged.append(good.replace(b'{"optimal": 3}', b'{"optimal": 2}'))
    for content in damaged:
        (tmp_path / "out" / PART).write_bytes(content)
        with pytest.raises(clvq.InvalidInputError, match=r"Delete it, and it is written again"):
            explained(source, tmp_path / "out")
    (tmp_path / "out" / PART).write_bytes(good)
    assert explained(source, tmp_path / "out").resumed == 3


GOOD_TALLY = {"statuses": {"optimal": 3}, "has_target": 1, "first_invalid": None}


@pytest.mark.parametrize(
    "counts",
    [
        '["optimal"]',
        '{"optimal": 3}',
        "{",
        "7",
        json.dumps(GOOD_TALLY | {"statuses": {"optimal": 2}}),
        json.dumps(GOOD_TALLY | {"statuses": {"optimax": 3}}),
        json.dumps(GOOD_TALLY | {"statuses": [3]}),
        json.dumps(GOOD_TALLY | {"has_target": -1}),
        json.dumps(GOOD_TALLY | {"has_target": True}),
        json.dumps(GOOD_TALLY | {"first_invalid": [0]}),
        json.dumps(GOOD_TALLY | {"first_invalid": ["", ""]}),
        json.dumps(GOOD_TALLY | {"more": 1}),
    ],
)
def test_parts_whose_counts_are_none_are_refused(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counts: str
) -> None:
    """Even where the hash is right, as a forger would have it."""
    explained(source, tmp_path / "out")
    (tmp_path / "out" / PART).unlink()
    with monkeypatch.context() as patch:
        patch.setattr("counterlvq.streaming.folder.json.dumps", lambda *_, **__: counts)
        patch.setattr("counterlvq.streaming.folder.AnswerFolder.write_manifest", lambda *_: None)
        explained(source, tmp_path / "out")
    with pytest.raises(clvq.InvalidInputError, match=r"Delete it, and it is written again"):
        explained(source, tmp_path / "out")


def test_parts_of_others_are_refused(source: Path, tmp_path: Path) -> None:
    explained(source, tmp_path / "out")
    part = tmp_path / "out" / PART
    good = part.read_bytes()
    part.write_bytes((tmp_path / "out" / "part-00000-00000.parquet").read_bytes())
    with pytest.raises(clvq.InvalidInputError, match=r"answers other rows than the run"):
        explained(source, tmp_path / "out")
    part.write_bytes(good)
    (tmp_path / "out" / "part-00009-00000.parquet").write_bytes(good)
    with pytest.raises(clvq.InvalidInputError, match=r"which is none of the 3 parts of this run"):
        explained(source, tmp_path / "out")

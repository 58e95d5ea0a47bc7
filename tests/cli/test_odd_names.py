"""Odd names at the shell: nothing of them acts on a terminal or in a spreadsheet, nothing fails."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import subprocess
import sys
import unicodedata
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import counterlvq as clvq
from counterlvq.cli.app import run
from counterlvq.cli.inputs import read_table
from counterlvq.cli.outputs import bytes_of_table
from counterlvq.cli.spreadsheet_formulas import as_it_was, as_text, harmless, restored
from tests.support.odd_names import ODD, harm, several
from tests.support.quick import seeds, some
from tests.support.shell import COMMAND, ENVIRONMENT, one_line
from tests.support.shell import called as in_this_process

FORMULAS = (
    "=1+1", "+1+1", "-2+3", "@SUM(A1)", "=cmd|'/c calc'!A1", "\t=1", "\r=1", "\n=1", " =1",
    "\t\r @x", "\ufeff=1", "\u200b=1", "\xa0=1", "＝1", "-", "+", "'=1", "''=1", "'\t=1", "'",
    "'plain'", "-5", "\u061c=1", "\U000e0020-1", "a=b", "x-y", "1-2", "",
)  # fmt: skip
cells = st.sampled_from(FORMULAS) | st.text(
    st.sampled_from("=+-@'\t\r\n ab,;\"\x1b\xa0\ufeff") | st.characters(exclude_categories=["Cs"]),
    max_size=8,
)


def runs(cell: str) -> bool:
    """Whether a spreadsheet might take a text for a formula: judged by its first seen letter."""
    for letter in cell:
        if letter.isspace() or unicodedata.category(letter)[0] in "CZ":
            continue
        return letter in "=+-@＝＋－＠"
    return False


# --- cells --------------------------------------------------------------------------------------


@given(cells)
def test_cells_do_not_run_and_are_read_back(cell: str) -> None:
    written = as_text(cell)
    assert not runs(written)
    assert not written.startswith(("\t", "\r", "\n"))
    assert as_it_was(written) == cell
    assert written in (cell, f"'{cell}")


@given(st.lists(cells, min_size=1, max_size=5), cells, st.floats(allow_nan=False))
def test_tables_do_not_run_and_are_read_back(texts, name, number) -> None:
    # What pandas reads as a number, a truth value or a gap has never been text in a file.
    texts = [f"{text}x" for text in texts]
    table = pd.DataFrame({f"{name}x": texts, "number": number, "-n": -1})
    whole = bytes_of_table(table, "csv")
    head, *rows = list(csv.reader(io.StringIO(whole.decode(), newline="")))
    assert not any(map(runs, head))
    assert not any(runs(row[0]) for row in rows)
    assert all(float(row[1]) == number for row in rows)  # numbers stay numbers
    assert [row[2] for row in rows] == ["-1"] * len(texts)
    again = restored(pd.read_csv(io.BytesIO(whole), encoding="utf-8"))
    if "\x00" not in whole.decode():
        assert again[again.columns[0]].tolist() == texts
        assert list(again.columns) == list(table.columns)


def test_all_kinds_of_text_columns_are_escaped_and_others_are_not() -> None:
    import pyarrow as pa

    kinds = {
        "str": pd.Series(["=1", "a"]),
        "object": pd.Series(["=1", -5], dtype=object),
        "gap": pd.Series(["=1", None], dtype=object),
        "category": pd.Series(["=1", "-1"], dtype="category"),
        "arrow": pd.Series(["=1", "a"], dtype=pd.ArrowDtype(pa.string())),
        "dictionary": pd.Series(["=1", "a"]).astype(
            pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
        ),
    }
    table = pd.DataFrame(kinds).assign(n=[-1, 2], f=[-0.5, np.nan], b=[True, False])
    safe = harmless(table)
    assert [safe[name].iloc[0] for name in kinds] == ["'=1"] * len(kinds)
    assert safe["object"].iloc[1] == -5
    assert safe["category"].iloc[1] == "'-1"
    assert safe["gap"].isna().tolist() == [False, True]
    pd.testing.assert_frame_equal(safe[["n", "f", "b"]], table[["n", "f", "b"]])
    assert table["str"].iloc[0] == "=1"  # the table that came in is left alone
    plain = pd.DataFrame({"a": ["x"], "n": [-1]})
    assert harmless(plain) is plain


halves = st.text(st.sampled_from("a=é\ud800\udbff\udc00\udfff\\"), max_size=4)


@given(halves, halves)
def test_halves_of_surrogate_pairs_are_written_out(name: str, cell: str) -> None:
    """In names and cells; whoever reads the file finds what the letters are."""
    table = pd.DataFrame({0: [1.0, 2.0], 1: pd.Series([cell, "b"], dtype=object)})
    table.columns = pd.Index(["n", f"c{name}"], dtype=object)
    expected = [text.encode("utf-8", "backslashreplace").decode() for text in (f"c{name}", cell)]
    parquet = pd.read_parquet(io.BytesIO(bytes_of_table(table, "parquet")))
    told = csv.reader(io.StringIO(bytes_of_table(table, "csv", escape=False).decode(), newline=""))
    head, row, *_ = told
    for found in ([parquet.columns[1], parquet.iloc[0, 1]], [head[1], row[1]]):
        assert found == expected
    safe = csv.reader(io.StringIO(bytes_of_table(table, "csv").decode(), newline=""))
    assert [as_it_was(text[1]) for text in list(safe)[:2]] == expected


def test_names_that_become_one_are_refused() -> None:
    table = pd.DataFrame([[1, 2]])
    table.columns = pd.Index(["\ud800", "\\ud800"], dtype=object)
    with pytest.raises(clvq.InvalidInputError, match="two columns are named"):
        bytes_of_table(table, "parquet")


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
@pytest.mark.parametrize("where", ["feature", "label", "another column", "cell"])
def test_halves_of_surrogate_pairs_end_in_files(tmp_path: Path, where: str, ending: str) -> None:
    name = "a\ud800" if where == "feature" else "a"
    label = "n\ud800" if where == "label" else "n"
    other = "x\ud800" if where == "another column" else "x"
    model = clvq.PrototypeModel([[0.0, 1], [2, 3]], [label, "y"], feature_names=[name, "b"])
    clvq.save(model, tmp_path / "m.clvq")
    row = {name: 0.0, "b": 1.0, other: "t\ud800" if where == "cell" else "t"}
    (tmp_path / "t.json").write_text(json.dumps([row]), encoding="utf-8")
    done = in_this_process("explain", "m.clvq", "t.json", "-o", f"o.{ending}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    if ending != "json":
        table = read_table(str(tmp_path / f"o.{ending}"))
        texts = [*table.columns, *map(str, table.iloc[0])]
        assert any(text.endswith("\\ud800") for text in texts)


# --- commands -----------------------------------------------------------------------------------


def odd_table(seed: int, rows: int = 40) -> pd.DataFrame:
    """Two columns of numbers, one of levels, and labels, all with odd names that UTF-8 can hold."""
    rng = np.random.default_rng(seed)
    held = [text for text in several(rng, 60) if not any(0xD800 <= ord(c) < 0xE000 for c in text)]
    # Parsers of CSV trim, split and number what is blank or has line breaks and null bytes.
    names = list(dict.fromkeys("".join(t.split()).replace("\x00", "")[:400] for t in held))
    first, second, third, label, *levels = [f"{name}x" for name in names]
    x = rng.normal(size=(rows, 2))
    which = rng.integers(2, size=rows)
    says = x[:, 0] + which > 0.5
    return pd.DataFrame(
        {
            first: x[:, 0].round(3),
            second: x[:, 1].round(3),
            third: [levels[k] for k in which],
            label: [levels[2 + int(k)] for k in says],
        }
    )


def called(capfd: pytest.CaptureFixture[str], *words: str, expect: tuple[int, ...] = (0,)) -> str:
    assert run(list(words)) in expect
    told = capfd.readouterr()
    return told.out + told.err


@pytest.mark.parametrize("seed", seeds(6, quick=1))
def test_commands_show_odd_names_harmlessly(seed, tmp_path, capfd, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = odd_table(seed)
    table.to_csv("t.csv", index=False)
    label = table.columns[-1]
    told = called(capfd, "train", "t.csv", "--label", label, "-o", "m.clvq")
    told += called(capfd, "inspect", "m.clvq")
    told += called(capfd, "explain", "m.clvq", "t.csv")
    target = table[label].iloc[0]
    told += called(capfd, "explain", "m.clvq", "t.csv", "--target", target)
    told += called(capfd, "explain", "m.clvq", "t.csv", "--target", f"{target}\x1b", expect=(1,))
    told += called(capfd, "explain", "m.clvq", "t.csv", "--freeze", f"{label}\x1b", expect=(1,))
    told += called(capfd, "train", "t.csv", "--label", f"{label}\u202e", expect=(1,))
    told += called(capfd, "train", "t.csv", "--model", f"{label}\x1b", expect=(2,))
    told += called(capfd, "inspect", "\x1b[31mnowhere", expect=(1,))
    told += called(capfd, "inspect", "\x1b[31mnowhere", "--debug", expect=(1,))
    assert not harm(told, allowed="\n")
    called(
        capfd,
        "report",
        "m.clvq",
        "t.csv",
        "--limit",
        "2",
        "-o",
        "p.html",
        "--title",
        f"\udcff{label}",
    )
    assert not harm(Path("p.html").read_bytes().decode(), allowed="\n")
    called(capfd, "explain", "m.clvq", "t.csv", "-o", "out.csv")
    answered = read_table("out.csv")
    assert answered.columns[: table.shape[1]].tolist() == table.columns.tolist()
    assert set(answered["prediction"]) <= set(table[label])
    called(capfd, "explain", "m.clvq", "t.csv", "-o", "out.parquet")
    same = read_table("out.parquet")
    assert answered["prediction"].tolist() == same["prediction"].tolist()
    with open("out.csv", encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    text = [0, *range(2, 4), len(head) - 1, len(head) - 2]
    assert not any(map(runs, head))
    assert not any(runs(row[k]) for row in rows for k in text[1:])


def test_formulas_are_written_as_they_are_when_asked(tmp_path, capfd, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.normal(size=40)
    table = pd.DataFrame({"=a": x, "note": "@home", "y": np.where(x > 0, "+", "-")})
    table.to_csv("t.csv", index=False)
    called(capfd, "train", "t.csv", "--label", "y", "--drop", "note", "-o", "m.clvq")
    called(capfd, "explain", "m.clvq", "t.csv", "-o", "safe.csv")
    called(capfd, "explain", "m.clvq", "t.csv", "-o", "raw.csv", "--no-escape")
    safe, raw = pd.read_csv("safe.csv"), pd.read_csv("raw.csv")
    assert set(raw["prediction"]) == {"+", "-"}
    assert set(safe["prediction"]) == {"'+", "'-"}
    assert safe.columns[0] == "'=a"
    assert set(safe["note"]) == {"'@home"}
    assert safe["'=a"].tolist() == raw["=a"].tolist()
    assert raw["=a"].min() < 0
    pd.testing.assert_frame_equal(read_table("safe.csv"), read_table("raw.csv"))
    # What explain has written can be learnt from, and explained again.
    drop = [f"--drop={name}" for name in ("note", "status", "cost", "lower_bound", "gap")]
    called(capfd, "train", "safe.csv", "--label", "prediction", *drop, "--drop=y", "-o", "n.clvq",
           "--drop=original_prediction")  # fmt: skip
    assert sorted(clvq.load("n.clvq").classes.tolist()) == ["+", "-"]


@pytest.mark.parametrize("label", ["half \ud800", "\udcff", "\x1b[31m", "a\rb", "=1+1"])
@pytest.mark.parametrize("kind", ["csv", "parquet", "json", "table"])
def test_labels_that_no_file_can_hold_are_written_out(
    label, kind, tmp_path, capfd, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 1.0]], [label, "yes"], feature_names=["a", "b"])
    clvq.save(model, "m.clvq")
    pd.DataFrame({"a": [0.5, 3.5], "b": [0.0, 1.0]}).to_csv("t.csv", index=False)
    called(capfd, "explain", "m.clvq", "t.csv", "--format", kind, "-o", "out")
    whole = Path("out").read_bytes()
    held = label.encode("utf-8", "backslashreplace").decode()
    if kind in ("csv", "parquet"):
        found = read_table("out")
        assert found["prediction"].tolist() == ["yes", held]
        assert found["original_prediction"].tolist() == [held, "yes"]
    elif kind == "json":
        assert [one["prediction"] for one in json.loads(whole)] == ["yes", label]
    else:
        assert not harm(whole.decode(), allowed="\n")


def seen_on_a_terminal(words: list[str], cwd: Path) -> str:
    """What a command sends to a terminal."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *words], cwd=cwd, stdin=follower, stdout=follower, stderr=follower,
        env={**ENVIRONMENT, "NO_COLOR": "1", "TERM": "xterm"},
    )  # fmt: skip
    os.close(follower)
    parts = []
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        parts.append(part)
    process.wait(timeout=60)
    os.close(leader)
    return b"".join(parts).decode()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("kind", some(["table", "csv", "json"], quick=1))
def test_terminals_are_not_coloured_by_names(kind, tmp_path) -> None:
    name, label = "\x1b[31mred\x1b[0m", "\x1b]0;title\x07\u202e"
    model = clvq.PrototypeModel(
        [[0.0, 0.0], [4.0, 1.0]], [label, "\x1b[2J"], feature_names=[name, "b\x9b1m"]
    )
    clvq.save(model, tmp_path / "m.clvq")
    rows = pd.DataFrame({name: [0.5, 3.5], "b\x9b1m": [0.0, 1.0]})
    rows.to_csv(tmp_path / "t.csv", index=False)
    told = seen_on_a_terminal(["explain", "m.clvq", "t.csv", "--format", kind], tmp_path)
    # The bar that shows progress ends in a line of its own.
    told = told.replace("\x1b[A", "")
    assert "[31mred" in told
    assert not harm(told, allowed="\r\n"), told


# --- names of files -----------------------------------------------------------------------------


NAMES = [b"o\xff\n\x1b[31m", b"\xfe\xfe\x80", b"\x1b[31mred", b"new\nline", "é".encode("latin-1")]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have names in Unicode only")
@pytest.mark.parametrize(
    ("name", "encoding", "in_a_process"),
    some(
        [
            (NAMES[0], "utf-8", False),
            (NAMES[0], "ascii", False),
            *product(NAMES, ("utf-8", "ascii"), [True]),
        ],
        quick=2,
    ),
)
def test_names_that_are_not_utf8_are_printed_escaped(
    name, encoding, in_a_process, tmp_path
) -> None:
    table = pd.DataFrame({"a": range(20), "é→": [k % 3 for k in range(20)]})
    table.assign(y=np.where(table["a"] > 9, "yes", "no")).to_csv(tmp_path / "t.csv", index=False)
    folder = os.fsencode(tmp_path)
    settings = {"PYTHONIOENCODING": f"{encoding}:strict"}

    def shell(*words: bytes) -> subprocess.CompletedProcess[bytes]:
        if not in_a_process:
            return in_this_process(*map(os.fsdecode, words), cwd=tmp_path, encoding=encoding)
        return subprocess.run(
            [*map(os.fsencode, COMMAND), *words], cwd=folder, capture_output=True, check=False,
            env={**ENVIRONMENT, **settings}, timeout=120,
        )  # fmt: skip

    model, page, out = (name + ending for ending in (b".clvq", b".html", b".csv"))
    done = [
        shell(b"train", b"t.csv", b"--label", b"y", b"-o", model),
        shell(b"explain", model, b"t.csv", b"--target", b"yes"),
        shell(b"explain", model, b"t.csv", b"-o", out),
        shell(b"report", model, out, b"--no-pictures", b"--limit", b"1", b"-o", page),
        shell(b"inspect", model),
    ]
    assert [one.returncode for one in done] == [0] * 5, done
    assert all(os.path.exists(os.path.join(folder, path)) for path in (model, page, out))
    for one in done:
        assert not harm((one.stdout + one.stderr).decode(), allowed="\n")
    lost = shell(b"inspect", b"no" + name)
    assert lost.returncode == 1
    assert not harm(one_line(lost.stderr))


def test_odd_arguments_are_refused_in_one_line(workshop: Path, capfd, monkeypatch) -> None:
    monkeypatch.chdir(workshop)
    for text in ODD:
        for option in ("--constraint", "--freeze", "--target", "--bounds", "--cost"):
            words = ["explain", "iris.clvq", "rows.csv", option, text]
            told = called(capfd, *words, expect=(1, 2))
            assert not harm(one_line(told))
            assert len(told) < 3000


def test_rows_are_called_by_a_column(workshop: Path, capfd, monkeypatch) -> None:
    monkeypatch.chdir(workshop)
    words = ["report", "iris.clvq", "rows.csv", "--target", "virginica", "--no-pictures"]
    page = called(capfd, *words)
    for name in "abc":
        assert f">{name} <span" in page
    assert ">sepal_length 5.1 <span" in called(capfd, *words, "--names", "sepal_length")
    told = called(capfd, *words, "--names", "idd", expect=(1,))
    assert "Did you mean 'id'?" in one_line(told)

"""Files that are too large, no text or no table, and streams that are closed: words and code 1."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import counterlvq as clvq
from counterlvq.certificate_files.reading import view_of
from counterlvq.certificates.check_certificate import PIECE, short_lines
from counterlvq.cli.columns_file import read_columns
from counterlvq.cli.streams import replace_closed
from counterlvq.files import parquet_sizes
from counterlvq.files.parquet_sizes import sizes_of
from fuzz.table_files import overlapping
from tests.support.quick import slow
from tests.support.shell import called, one_line, started


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("desk")
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], feature_names=["x"])
    clvq.save(model, folder / "m.clvq")
    (folder / "t.csv").write_text("x\n1\n")
    answer = clvq.Explainer(model).explain([1.0])
    clvq.save_certificate(answer, folder / "c.jsonl", clvq.Explainer(model))
    with open(folder / "sparse", "wb") as file:
        file.truncate(1 << 40)
    return folder


# A cost of one's own, so that nothing is said about a summary that the model file does not have.
EXPLAIN = ("explain", "m.clvq", "t.csv", "--target", "yes", "--cost", "manhattan")


@pytest.mark.parametrize(
    "words",
    [
        ("explain", "m.clvq", "sparse", "--target", "yes"),
        ("columns", "sparse"),
        (*EXPLAIN, "--columns", "sparse"),
        (*EXPLAIN, "--format", "text", "--template", "@sparse"),
        ("import", "t.csv", "--label", "x", "--omega", "sparse", "-o", "new.clvq"),
        ("explain", "m.clvq", "sparse", "--cost", "manhattan", "-o", "out/"),
        ("inspect", "sparse"),
    ],
)
def test_files_that_no_memory_holds_are_refused_unread(desk: Path, words: tuple[str, ...]) -> None:
    done = called(*words, cwd=desk)
    assert done.returncode in (1, 2)
    assert "sparse" in one_line(done.stderr)


def test_template_that_is_no_text_is_refused(desk: Path, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_bytes(b"caf\xe9")
    words = (*EXPLAIN, "--format", "text", "--template", f"@{tmp_path / 't.txt'}")
    done = called(*words, cwd=desk)
    assert done.returncode in (1, 2)
    assert "byte 3 is 0xe9" in one_line(done.stderr)


def test_pages_are_walked_over_once_however_often_they_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = list[int]()

    class Counting(parquet_sizes._Thrift):
        def __init__(self, *given: Any) -> None:
            read.append(1)
            super().__init__(*given)

    monkeypatch.setattr(parquet_sizes, "_Thrift", Counting)
    assert sizes_of(overlapping(50, 1)).columns == 1
    read.clear()
    whole = overlapping(500, 500)
    with pytest.raises(ValueError, match=r"byte \d+ has a page that belongs to several columns"):
        sizes_of(whole)
    assert len(read) < len(whole)


# --- files of columns -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "[x]\nlabel" + ".a" * 40_000 + " = 1\n",
        "[" + ".".join(["a"] * 40_000) + "]\n",
        "[x]\nlabels = { a" + ' . "b"' * 40_000 + ' = "c" }\n',
        "[x]\nunit = \"\"\"m\"\"\"\"\nlabels = { y = '''z'''', a"
        + ".a" * 40_000
        + " = 1, c = 'd'}",
    ],
)
def test_keys_of_many_parts_are_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    (tmp_path / "c.toml").write_text(text)
    monkeypatch.setattr("tomllib.loads", lambda _: pytest.fail("it was read"))
    with pytest.raises(clvq.InvalidInputError, match=r"a key of more than 8 parts, at line \d"):
        read_columns(str(tmp_path / "c.toml"))


def test_dots_in_texts_and_remarks_are_no_keys(tmp_path: Path) -> None:
    dots = ".a" * 100
    text = f"# a{dots}\n[x]\nlabel = \"a{dots}\"\nunit = '''a\na{dots}'''\nrange = [0.5, 1.5]\n"
    (tmp_path / "c.toml").write_text(text)
    said = read_columns(str(tmp_path / "c.toml"))
    assert said.arguments["labels"] == {"x": f"a{dots}"}


def test_prices_of_pairs_of_many_levels_are_refused_first(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('[job]\nprices = [["l0", "l1", 3]]\ndefault = 5\n')
    levels = [f"l{k}" for k in range(20_000)]  # two hundred million pairs
    features = clvq.Features([clvq.Feature("job", levels=levels)])
    with pytest.raises(clvq.InvalidInputError, match=r"pairs of 20,000 levels; expected at most"):
        read_columns(str(tmp_path / "c.toml")).of(features)


# --- certificates ---------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [(), ("--exact",)])
def test_certificates_that_are_no_text_are_refuted(
    desk: Path, tmp_path: Path, more: tuple[str, ...]
) -> None:
    good = (desk / "c.jsonl").read_bytes()
    (tmp_path / "c.jsonl").write_bytes(good + b"\xff\xfe\n" + good.splitlines(True)[1])
    done = called("verify", *more, "c.jsonl", cwd=tmp_path)
    assert done.returncode == 1
    lines = done.stdout.decode().splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["VERIFIED", "2"], ["REFUTED", "3"], ["VERIFIED", "4"]
    ]  # fmt: skip
    (tmp_path / "m.json").write_bytes(b"\xff" * 50)
    done = called("verify", *more, "c.jsonl", "--model", "m.json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, b"")
    assert b"REFUTED 1 " in done.stdout


def test_of_a_line_that_is_no_object_little_is_read(desk: Path) -> None:
    with open(desk / "sparse", "rb") as file:
        lines = list(short_lines(file))
        assert [len(line) for line in lines] == [PIECE]
        assert file.tell() <= 2 * PIECE
    verdicts = clvq.verify_certificates(desk / "sparse", desk / "sparse")
    assert [verdict.verified for verdict in verdicts] == [False]


def test_a_question_that_is_wide_in_arrays_is_left_to_rational_numbers(desk: Path) -> None:
    """Zeros that a file leaves out may not be asked for."""
    stated = json.loads((desk / "c.jsonl").read_text().splitlines()[0])
    model, question = stated["model"], stated["question"]
    assert view_of(model, question).model.n_features == 1
    linear = {"kind": "linear", "new": [[0, 1.0]], "old": [], "sense": "<=", "value": 9.0}
    wide = {**question, "columns": question["columns"] * 3000, "constraints": [linear] * 20_000}
    with pytest.raises(clvq.NotSupportedError, match=r"needs 960,000,000 bytes as arrays"):
        view_of(model, wide)


# --- streams --------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name != "posix", reason="shells close streams so on POSIX")
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("explain m.clvq - --target yes <&-", "standard input is closed"),
        ("inspect - <&-", "standard input is closed"),
        ("inspect m.clvq >&-", "standard output: is closed"),
        slow(("inspect m.clvq --json >&-", "standard output: is closed")),
        ("verify --print-checker >&-", "standard output: is closed"),
        slow(("columns t.csv >&-", "standard output: is closed")),
    ],
)
def test_closed_streams_are_told(desk: Path, line: str, words: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -m counterlvq {line}'],
        cwd=desk, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert words in one_line(done.stderr)


@pytest.mark.skipif(os.name != "posix", reason="shells close streams so on POSIX")
def test_files_are_written_whatever_is_closed(desk: Path, tmp_path: Path) -> None:
    out = tmp_path / "columns.toml"
    line = f'"{sys.executable}" -m counterlvq columns t.csv -o "{out}" <&- >&- 2>&-'
    assert subprocess.run(["sh", "-c", line], cwd=desk, check=False).returncode == 0
    assert "[x]" in out.read_text()


def test_nobody_needs_to_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    replace_closed()
    sys.stderr.write("nothing")
    sys.stderr.close()
    with pytest.raises(OSError, match="closed"):
        sys.stdout.write("nothing")


@pytest.mark.skipif(os.name != "posix", reason="groups of processes are of POSIX")
def test_ctrl_c_at_a_terminal_ends_the_exact_checker_without_its_words(
    desk: Path, tmp_path: Path
) -> None:
    head, line = (desk / "c.jsonl").read_text().splitlines()
    (tmp_path / "long.jsonl").write_text("\n".join([head, *[line] * 30_000]) + "\n")
    process = started("verify", "--exact", "long.jsonl", cwd=tmp_path, start_new_session=True)
    assert process.stdout is not None
    process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted; what was written to standard output may not be all" in one_line(told)
    for _ in range(100):  # until the checker has ended, too
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail("the checker goes on")

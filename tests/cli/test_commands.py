"""`counterlvq` as a shell sees it: files and pipes in, files and exit codes out."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import counterlvq as clvq
from counterlvq.cli.app import run
from tests.support import shell
from tests.support.shell import COMMAND, ENVIRONMENT, one_line, started

ROOT = Path(__file__).resolve().parents[2]


# --- train ----------------------------------------------------------------------------------------


def test_train_measures_the_model_that_it_saves(workshop: Path, iris: pd.DataFrame) -> None:
    text = (workshop / "trained.txt").read_text()
    found = re.findall(r"(training|held out) +([\d.]+)% of ([\d,]+) rows right", text)
    assert [name for name, _, _ in found] == ["training", "held out"]
    assert sum(int(count) for _, _, count in found) == len(iris)
    right = sum(round(float(share) / 100 * int(count)) for _, share, count in found)
    loaded = clvq.load(workshop / "iris.clvq")
    assert (loaded.predict(iris) == iris["species"]).sum() == right
    assert "saved     iris.clvq: gmlvq, 3 classes, 3 prototypes, 4 columns" in text
    assert sorted(path.name for path in workshop.glob("*.clvq*")) == ["iris.clvq"]


def test_train_from_stdin_to_stdout_in_another_format(workshop: Path) -> None:
    whole = (workshop / "iris.parquet").read_bytes()
    done = shell.called("train", "-", "--label", "species", "-o", "-", cwd=workshop, stdin=whole)
    assert done.returncode == 0
    assert done.stdout == (workshop / "iris.clvq").read_bytes()
    assert b"held out" in done.stderr


LOANS = """age,income,job,owner,name,granted
31,2400.5,clerk,True,a,no
44,3900.0,nurse,False,b,yes
25,1500.0,clerk,False,c,no
61,4200.0,judge,True,d,yes
38,2100.0,nurse,False,e,no
52,5100.0,clerk,True,f,yes
29,1900.0,nurse,True,g,no
47,4700.0,clerk,False,h,yes
"""


def called(capfd: pytest.CaptureFixture[str], *words: str, expect: int = 0) -> tuple[str, str]:
    """Run one command line in this process."""
    code = run(words)
    out, err = capfd.readouterr()
    assert code == expect, err
    return out, err


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "loans.csv").write_text(LOANS)
    return tmp_path


TRAIN = ("train", "loans.csv", "--label", "granted", "--test-share", "0")


def test_columns_of_text_become_categories(desk: Path, capfd: pytest.CaptureFixture[str]) -> None:
    called(capfd, *TRAIN, "--drop", "name", "-o", "loans.clvq")
    loaded = clvq.load("loans.clvq")
    assert isinstance(loaded, clvq.TableModel)
    kinds = {feature.name: str(feature.kind) for feature in loaded.features}
    assert kinds == {"age": "whole", "income": "real", "job": "categorical", "owner": "boolean"}
    assert loaded.features["job"].levels == ("clerk", "judge", "nurse")
    assert loaded.table_map.unseen == ()
    table = pd.read_csv("loans.csv")
    assert_array_equal(loaded.predict(table), table["granted"])  # incomes tell them apart
    told = json.loads(called(capfd, "inspect", "loans.clvq", "--json")[0])
    assert told["classes"] == [{"label": "no", "prototypes": 1}, {"label": "yes", "prototypes": 1}]
    shares = table["job"].value_counts(normalize=True)
    assert told["features"][2] == {
        "name": "job",
        "kind": "categorical",
        "levels": ["clerk", "judge", "nurse"],
        "summary": {
            "count": len(table),
            "missing": 0,
            "shares": [shares[level] for level in ("clerk", "judge", "nurse")],
        },
    }
    text = called(capfd, "inspect", "loans.clvq")[0]
    assert "prototypes  2 in 6 dimensions, shared metric\n" in text
    assert "  job     categorical: clerk, judge, nurse\n" in text


def test_answers_are_whole_numbers_and_levels(
    desk: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    called(capfd, *TRAIN, "--drop", "name", "-o", "loans.clvq")
    words = ["explain", "loans.clvq", "loans.csv", "--target", "yes", "--cost", "mad"]
    called(capfd, *words, "--freeze", "income", "--bounds", "age=18:90", "-o", "told.csv")
    told, given = pd.read_csv("told.csv"), pd.read_csv("loans.csv")
    assert (told["status"] == "optimal").all()
    assert_array_equal(told["income"], given["income"])
    assert told["age"].between(18, 90).all()
    assert told["age"].dtype.kind == "i"
    assert told["job"].isin(["clerk", "judge", "nurse"]).all()
    assert told["owner"].dtype.kind == "b"
    assert told["name"].tolist() == given["name"].tolist()
    assert (clvq.load("loans.clvq").predict(told) == "yes").all()


@pytest.mark.parametrize("model", ["glvq", "gmlvq", "lgmlvq", "rslvq", "mrslvq", "lmrslvq"])
def test_every_model_can_be_trained(
    desk: Path, capfd: pytest.CaptureFixture[str], model: str
) -> None:
    words = [*TRAIN, "--drop", "name", "--drop", "job", "--drop", "owner", "--model", model]
    called(capfd, *words, "--prototypes", "2", "--pca", "2", "--no-scale", "-o", "model.clvq")
    loaded = clvq.load("model.clvq")
    assert isinstance(loaded, clvq.TableModel)
    assert loaded.model.prototypes.shape == (4, 2)
    if not model.startswith("l"):
        assert not loaded.model.is_local


# --- explain --------------------------------------------------------------------------------------


def by_hand(workshop: Path, **options: object) -> clvq.CounterfactualBatch:
    explainer = clvq.Explainer(clvq.load(workshop / "iris.clvq"), **options)  # type: ignore[arg-type]
    return explainer.explain_batch(pd.read_csv(workshop / "rows.csv"), "virginica")


def assert_same_answers(table: pd.DataFrame, batch: clvq.CounterfactualBatch) -> None:
    told = batch.to_frame()
    assert table["id"].tolist() == ["a", "b", "c"]
    for name in batch.feature_names:
        assert_array_equal(table[name], told[f"{name}_after"])
    for name in ("status", "cost", "lower_bound", "gap", "prediction", "original_prediction"):
        assert_array_equal(table[name], told[name])


def test_explain_writes_csv(workshop: Path) -> None:
    rows = (workshop / "rows.csv").read_bytes()
    words = ["explain", "iris.clvq", "-", "--target", "virginica", "--format", "csv"]
    rules = ["--freeze", "petal_width", "--bounds", "sepal_width=2:", "--cost", "euclidean"]
    rules += ["--anywhere"]
    done = shell.called(*words, *rules, "--jobs", "2", cwd=workshop, stdin=rows)
    assert (done.returncode, done.stderr) == (0, b"")
    batch = by_hand(
        workshop,
        cost=clvq.Euclidean(),
        constraints=[clvq.Freeze("petal_width"), clvq.Bounds("sepal_width", lower=2)],
    )
    numbers = dict.fromkeys((*batch.feature_names, "cost", "lower_bound", "gap"), float)
    # Python reads floats to the last digit, and not every pandas does.
    assert_same_answers(pd.read_csv(io.BytesIO(done.stdout), converters=numbers), batch)


def test_explain_in_every_other_format(
    workshop: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], iris: pd.DataFrame
) -> None:
    model, rows = str(workshop / "iris.clvq"), str(workshop / "rows.csv")
    words = ["explain", model, rows, "--target", "Virginica", "--cost", "mad", "--anywhere"]
    words += ["--reference", str(workshop / "iris.csv"), "--constraint", "petal_width <= 1.7"]
    batch = by_hand(
        workshop,
        cost=clvq.Manhattan(clvq.mad_weights(iris.iloc[:, :4].to_numpy())),
        constraints=["petal_width <= 1.7"],
    )
    called(capfd, *words, "-o", str(tmp_path / "told.parquet"))
    assert_same_answers(pd.read_parquet(tmp_path / "told.parquet"), batch)
    told = json.loads(called(capfd, *words, "--format", "json")[0])
    unit = {"cost_unit": "typical deviations"}
    assert told == [{"row": i, **batch.sketch(i).to_dict(), **unit} for i in range(3)]
    for cost, counted in (("manhattan", "plain changes"), ("euclidean", "squared plain changes")):
        plain = ["explain", model, rows, "--cost", cost, "--format", "json"]
        assert {row["cost_unit"] for row in json.loads(called(capfd, *plain)[0])} == {counted}
    out, err = called(capfd, *words)
    assert "\x1b" not in out
    assert err == ""
    text = out.splitlines()
    assert text[0].split() == ["row", "status", "class", "cost", "bound", "gap", "changes"]
    assert text[1].split()[:4] == ["0", "optimal", "setosa", "->"]
    right = "1 has the target already, of which 1 changes all the same"
    counts = f"{right}; 1 breaks the constraints as it is"
    assert text[-1] == f"3 rows: 3 optimal; {counts}"
    called(capfd, *words, "-o", str(tmp_path / "told.txt"))
    assert (tmp_path / "told.txt").read_text().splitlines() == text


def test_rows_without_an_answer_have_an_exit_code(
    workshop: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workshop)
    words = ["explain", "iris.clvq", "rows.csv", "--target", "virginica"]
    for name in ("sepal_length", "sepal_width", "petal_length", "petal_width"):
        words += ["--freeze", name]
    out, _ = called(capfd, *words, expect=3)
    assert "1 optimal, 2 infeasible" in out
    assert '"no change of sepal_length, sepal_width, petal_length and petal_width"' in out
    out, _ = called(capfd, *words, "--format", "csv", expect=3)
    table = pd.read_csv(io.StringIO(out))
    assert table["status"].tolist() == ["infeasible", "infeasible", "optimal"]
    assert table["petal_width"].isna().tolist() == [True, True, False]
    out, _ = called(capfd, *words, "--format", "json", expect=3)
    assert json.loads(out)[0]["x"] is None


def test_several_targets_and_local_metrics(
    desk: Path, workshop: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    table = str(workshop / "iris.csv")
    called(capfd, "train", table, "--label", "species", "--model", "lgmlvq", "-o", "local.clvq")
    words = ["explain", "local.clvq", str(workshop / "rows.csv"), "--format", "csv"]
    words += ["--target", "setosa", "--target", "virginica"]
    for method in ("ccp", "global"):
        out, _ = called(capfd, *words, "--method", method, "--time-limit", "20")
        told = pd.read_csv(io.StringIO(out))
        assert told["prediction"].isin(["setosa", "virginica"]).all()
        assert told["status"].isin(["optimal", "feasible"]).all()


# --- errors ---------------------------------------------------------------------------------------

EXPLAIN = ("explain", "iris.clvq", "rows.csv")


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("nonsense",), 2, "No such command 'nonsense'. See counterlvq --help."),
        (("explain", "iris.clvq"), 2, "Missing argument 'TABLE'. See counterlvq explain --help."),
        (("train", "iris.csv"), 2, "Missing option '--label'"),
        ((*EXPLAIN, "--bounds", "income"), 2, "'income' is no range; expected FEATURE=LOW:HIGH"),
        ((*EXPLAIN, "--bounds", "income=5000"), 2, "such as income=0:5000, income=0: or"),
        ((*EXPLAIN, "--bounds", "income=:"), 2, "'income=:' is no range"),
        ((*EXPLAIN, "--bounds", "=0:1"), 2, "'=0:1' is no range"),
        ((*EXPLAIN, "--bounds", "income=0:much"), 2, "'income=0:much': 'much' is no number"),
        ((*EXPLAIN, "--bounds", "income=5:4"), 2, "'income=5:4': "),
        ((*EXPLAIN, "--bounds", "income=nan:4"), 2, "NaN"),
        ((*EXPLAIN, "--bounds", "income=0:5000"), 1, "feature 'income' does not exist"),
        ((*EXPLAIN, "--freeze", "petal_widht"), 1, "Did you mean 'petal_width'?"),
        ((*EXPLAIN, "--constraint", "petal_width <="), 1, "petal_width <="),
        ((*EXPLAIN, "--target", "rose"), 1, "no class is called 'rose'; expected one of: setosa"),
        ((*EXPLAIN, "--cost", "euclidean", "--reference", "iris.csv"), 2, "expected both"),
        ((*EXPLAIN, "--target", "VIRGINIC"), 1, "Did you mean 'virginica'?"),
        ((*EXPLAIN, "--freeze", "PETAL_WIDTH"), 1, "Did you mean 'petal_width'?"),
        ((*EXPLAIN, "--outcome", "virginica"), 2, "expected LABEL=WORDS"),
        ((*EXPLAIN, "--template", "{cost:f}"), 1, "expected one of: {subject}"),
        ((*EXPLAIN, "--columns", "rows.csv"), 1, "is no TOML"),
        ((*EXPLAIN, "--jobs", "0"), 1, "n_jobs"),
        ((*EXPLAIN, "--cost", "taxi"), 2, "'taxi' is not one of"),
        (("explain", "-", "-"), 2, "only one can come from stdin"),
        (
            ("explain", "none.clvq", "rows.csv"),
            1,
            "none.clvq: there is no such file; expected a model of",
        ),
        (("explain", "iris.clvq", "none.csv"), 1, "none.csv: No such file or directory"),
        (("explain", "rows.csv", "rows.csv"), 1, "rows.csv cannot be loaded: this is no safet"),
        (
            ("explain", "iris.clvq", "iris.clvq"),
            1,
            "iris.clvq is a model file; the model comes first",
        ),
        (("explain", "iris.clvq", "empty.csv"), 1, "empty.csv cannot be read as CSV"),
        (("explain", "iris.clvq", "head.csv"), 1, "head.csv has 0 rows and 2 columns"),
        (("explain", "iris.clvq", "cut.parquet"), 1, "cut.parquet cannot be read as Parquet"),
        (("explain", "iris.clvq", "head2.csv"), 1, "lacks the column(s) 'sepal_length'"),
        (("explain", "iris.clvq", "taken.csv", "--format", "csv"), 1, "a column 'cost'"),
        (
            ("explain", "iris.clvq", "gap.csv", "--bad-rows", "raise"),
            1,
            "column 'petal_width', row 0 is missing",
        ),
        ((*EXPLAIN, "-o", "nowhere/out.csv"), 1, "there is no such folder"),
        ((*EXPLAIN, "-o", "."), 1, "and no manifest; expected an empty folder"),
        (("inspect", "cut.clvq"), 1, "cut.clvq cannot be loaded: the header announces"),
        (("train", "iris.csv", "--label", "kind"), 1, "feature 'kind' does not exist"),
        (
            ("train", "iris.csv", "--label", "petal_width"),
            1,
            "holds real numbers; expected classes",
        ),
        (("train", "iris.csv", "--label", "species", "--drop", "x"), 1, "feature 'x' does not"),
        (("train", "iris.csv", "--label", "species", "--pca", "9"), 1, "cannot be trained"),
        (("train", "names.csv", "--label", "y"), 1, "--drop 'name'"),
        (("train", "few.csv", "--label", "y"), 1, "no rows can be held out"),
        (("train", "few.csv", "--label", "y", "--drop", "a"), 1, "no column is left"),
    ],
)
def test_errors_take_one_line(
    workshop: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    code: int,
    told: str,
) -> None:
    monkeypatch.chdir(workshop)
    files = {
        "empty.csv": b"",
        "head.csv": b"a,b\n",
        "head2.csv": b"a,b\n1,2\n",
        "taken.csv": b"cost,sepal_length,sepal_width,petal_length,petal_width\n1,5,3,1,1\n",
        "gap.csv": b"id,sepal_length,sepal_width,petal_length,petal_width\n1,5,3,1,\n2,5,3,1,2\n",
        "names.csv": b"name,y\n" + b"".join(b"n%d,%d\n" % (i, i % 2) for i in range(80)),
        "few.csv": b"a,y\n1,no\n2,yes\n3,yes\n",
        "cut.parquet": (workshop / "iris.parquet").read_bytes()[:-50],
        "cut.clvq": (workshop / "iris.clvq").read_bytes()[:-50],
    }
    for name in set(words) & set(files):
        (workshop / name).write_bytes(files[name])
    out, err = called(capfd, *words, expect=code)
    assert out == ""
    assert told in one_line(err)


def test_debug_shows_the_traceback(
    workshop: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workshop)
    for words in (("--debug", "inspect", "rows.csv"), ("inspect", "rows.csv", "--debug")):
        _, err = called(capfd, *words, expect=1)
        assert "Traceback (most recent call last)" in err
        assert "\ncounterlvq: error: rows.csv cannot be loaded" in err


def test_a_bug_is_told_as_one(
    workshop: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(path: object) -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(clvq, "load", broken)
    _, err = called(capfd, "inspect", "iris.clvq", expect=70)
    assert "unexpected RuntimeError: two lines. Run it again with --debug" in one_line(err)


def test_without_click_it_says_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['click'] = None; from counterlvq.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 1
    assert "pip install click pandas pyarrow tqdm" in one_line(done.stderr)


def test_without_pandas_it_says_what_to_install(
    workshop: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workshop)
    monkeypatch.setitem(sys.modules, "pandas", None)
    _, err = called(capfd, *EXPLAIN, expect=1)
    assert "need pandas" in one_line(err)


# --- pipes, signals and half files ----------------------------------------------------------------


def test_reader_that_has_had_enough_is_no_error(workshop: Path) -> None:
    with started("inspect", "iris.clvq", cwd=workshop) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(timeout=60) == 141


@pytest.mark.parametrize(("sign", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupt_leaves_nothing_behind(
    workshop: Path, tmp_path: Path, sign: signal.Signals, code: int
) -> None:
    table, output = tmp_path / "table.csv", tmp_path / "told.csv"
    os.mkfifo(table)
    words = ["explain", "iris.clvq", str(table), "-o", str(output)]
    with started(*words, cwd=workshop) as running:
        with open(table, "wb"):  # opens as soon as the other side waits for rows
            running.send_signal(sign)
            _, err = running.communicate(timeout=60)
        assert running.returncode == code
    if sign is signal.SIGINT:
        assert one_line(err) == "counterlvq: interrupted; nothing was written"
    assert os.listdir(tmp_path) == ["table.csv"]


FULL_DISK = """
import resource, signal, sys
from counterlvq.cli import main

signal.signal(signal.SIGXFSZ, getattr(signal, sys.argv.pop(1)))
resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))
main()
"""


@pytest.mark.machine
@pytest.mark.parametrize(("on_limit", "code"), [("SIG_IGN", 1), ("SIG_DFL", -signal.SIGXFSZ)])
def test_writing_that_ends_in_the_middle_leaves_the_old_file(
    workshop: Path, tmp_path: Path, on_limit: str, code: int
) -> None:
    """The system stops the process after 600 bytes: by an error, or by killing it on the spot."""
    path = tmp_path / "model.clvq"
    path.write_bytes(b"the old one")
    words = ["train", "iris.csv", "--label", "species", "-o", str(path)]
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, on_limit, *words],
        cwd=workshop,
        capture_output=True,
        check=False,
    )
    assert (workshop / "iris.clvq").stat().st_size > 600
    assert done.returncode == code, done.stderr
    assert path.read_bytes() == b"the old one"
    left = [name for name in os.listdir(tmp_path) if name != "model.clvq"]
    if code == 1:
        assert "File too large" in one_line(done.stderr)
        assert left == []
    else:
        assert [re.sub("[0-9a-f]{16}", "*", name) for name in left] == [".model.clvq.*.part"]


# --- terminals ------------------------------------------------------------------------------------


def on_a_terminal(*words: str, cwd: Path, expect: int = 0, **environment: str) -> str:
    """What somebody in front of a terminal sees, both streams."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    running = subprocess.Popen(
        [*COMMAND, *words],
        cwd=cwd,
        stdout=theirs,
        stderr=theirs,
        stdin=subprocess.DEVNULL,
        env={**ENVIRONMENT, "TERM": "xterm", **environment},
    )
    os.close(theirs)
    seen = b""
    while True:
        ready, _, _ = select.select([ours], [], [], 60)
        try:
            part = os.read(ours, 4096) if ready else b""
        except OSError:  # how Linux says that the other side has closed
            break
        if not part:
            break
        seen += part
    os.close(ours)
    assert running.wait(timeout=60) == expect, seen
    return seen.decode()


@pytest.mark.machine
def test_colours_and_progress_are_for_terminals(workshop: Path) -> None:
    seen = on_a_terminal(*EXPLAIN, cwd=workshop)
    assert "\x1b[32moptimal\x1b[0m" in seen
    assert "100%" in seen
    plain = on_a_terminal(*EXPLAIN, cwd=workshop, NO_COLOR="1")
    assert "\x1b[32m" not in plain
    assert "optimal" in plain


# --- demo -----------------------------------------------------------------------------------------


def test_demo_tells_the_story_of_the_example(capfd: pytest.CaptureFixture[str]) -> None:
    out, err = called(capfd, "demo")
    assert err == ""
    for words in ("2,930 houses in Ames", "second_floor <= first_floor", "infeasible", "proved"):
        assert words in out


@pytest.mark.docs
def test_example_tells_the_story_of_the_demo(capfd: pytest.CaptureFixture[str]) -> None:
    out, _ = called(capfd, "demo")
    code = (
        "import runpy, sys; sys.modules['click'] = sys.modules['pandas'] = None;"
        f"runpy.run_path({str(ROOT / 'examples' / 'demo.py')!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == out  # and needs none of the extras


def test_counts_are_shown_with_the_right_number(
    workshop: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    one = tmp_path / "one.csv"
    pd.read_csv(workshop / "rows.csv").iloc[:1].to_csv(one, index=False)
    out, _ = called(capfd, "explain", str(workshop / "iris.clvq"), str(one))
    assert out.endswith("\n1 row: 1 optimal\n")
    assert np.isfinite(float(out.splitlines()[1].split()[5]))

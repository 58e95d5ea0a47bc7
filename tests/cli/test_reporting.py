"""`counterlvq report` as a shell sees it: one page, whole, that loads nothing."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import counterlvq as clvq
from counterlvq.cli.app import run
from tests.cli.test_commands import on_a_terminal
from tests.support.shell import called, counterlvq, one_line

pytestmark = pytest.mark.docs

REPORT = ("report", "iris.clvq", "rows.csv", "--target", "virginica", "--no-certificates")


class Page(HTMLParser):
    """What a reader sees, and whatever the page refers to."""

    def __init__(self, whole: bytes) -> None:
        super().__init__()
        self.words: list[str] = []
        self.references: list[str] = []
        self.sections: list[str] = []
        self.names: set[str] = set()
        self.feed(whole.decode())
        self.close()
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, name: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {key: value or "" for key, value in attrs}
        self.names.add(name)
        self.references += [told[key] for key in ("src", "href", "srcset") if key in told]
        if name == "section" and told.get("class") == "row":
            self.sections.append(told["aria-labelledby"])

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def assert_alone(whole: bytes) -> Page:
    """The page is complete, and there is nothing that a browser would fetch."""
    assert whole.startswith(b"<!DOCTYPE html>")
    assert whole.endswith(b"</html>\n")
    page = Page(whole)
    outside = [ref for ref in page.references if not ref.startswith(("#", "data:"))]
    assert outside == []
    assert not page.names & {"link", "iframe", "object"}
    assert not re.search(rb"@import|url\((?!.?data:)", whole)
    return page


def test_page_tells_what_explain_tells(workshop: Path, tmp_path: Path) -> None:
    output = tmp_path / "page.html"
    output.write_text("the old one")
    plain = ["--cost", "manhattan", "--anywhere"]
    rules = [*plain, "--freeze", "petal_width", "--bounds", "sepal_width=2:"]
    rules += ["--title", "Lilies & <more>"]
    done = called(*REPORT, *rules, "--rows", "0,1", "-o", str(output), cwd=workshop)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    page = assert_alone(output.read_bytes())
    explainer = clvq.Explainer(
        clvq.load(workshop / "iris.clvq"),
        constraints=[clvq.Freeze("petal_width"), clvq.Bounds("sepal_width", lower=2)],
    )
    batch = explainer.explain_batch(pd.read_csv(workshop / "rows.csv").iloc[:2], "virginica")
    for cf in batch:
        assert cf.text() in page.text
        assert f"{cf.cost:.6g}" in page.text
    assert "Lilies & <more>" in page.text
    assert len(page.sections) == 2
    pictures = [ref for ref in page.references if ref.startswith("data:image/svg")]
    assert len(pictures) == 2
    words = [*plain, "--freeze", "petal_width", "--bounds", "sepal_width=2:", "--rows", "0,1"]
    again = counterlvq(*REPORT, *words, "--title", "Lilies & <more>", cwd=workshop)
    assert again.stdout == output.read_bytes()  # standard output by default, the same every time


def test_rows_are_chosen_and_keep_their_numbers(workshop: Path) -> None:
    table = (workshop / "iris.csv").read_bytes()
    words = ["report", "iris.clvq", "-", "--target", "setosa", "--no-pictures", "-o", "-"]
    words.append("--no-certificates")
    done = called(*words, "--rows", "149,3,60", cwd=workshop, stdin=table)
    assert (done.returncode, done.stderr) == (0, b"")
    page = assert_alone(done.stdout)
    assert len(page.sections) == 3
    assert re.findall(r"Row (\d+) \S+ → ", page.text) == ["149", "3", "60"]
    assert "img" not in page.names
    done = called(*words, "--limit", "2", cwd=workshop, stdin=table)
    assert (done.returncode, done.stderr) == (0, b"")
    assert re.findall(r"Row (\d+) \S+ → ", assert_alone(done.stdout).text) == ["0", "1"]
    done = called(*words, cwd=workshop, stdin=table)
    assert done.returncode == 0
    assert len(assert_alone(done.stdout).sections) == 20
    told = "the first 20 of 150 rows; choose others with --rows or --limit"
    assert told in one_line(done.stderr)  # nobody asked for fewer than all


def test_page_with_proofs_to_check_says_that_it_holds_the_model(workshop: Path) -> None:
    words = [word for word in REPORT if word != "--no-certificates"]
    done = called(*words, "--rows", "0", "--no-pictures", cwd=workshop)
    assert "the page holds the model" in one_line(done.stderr)
    assert b"counterlvq certificate" in done.stdout
    assert_alone(done.stdout)


def test_page_without_a_kind_for_its_proofs_says_so(workshop: Path, tmp_path: Path) -> None:
    table = pd.read_csv(workshop / "rows.csv").select_dtypes("number")
    labels = ["virginica" if k % 2 else "setosa" for k in range(len(table))]
    logs = FunctionTransformer(np.log1p, feature_names_out="one-to-one")
    model = make_pipeline(logs, NearestCentroid()).fit(table, labels)
    clvq.save(model, tmp_path / "logs.clvq", reference=table)
    words = [word for word in REPORT if word != "--no-certificates"]
    words[1] = str(tmp_path / "logs.clvq")
    done = called(*words, "--rows", "0", cwd=workshop)
    assert done.returncode == 0
    assert "the page holds no proofs to check" in one_line(done.stderr)
    assert b"counterlvq certificate" not in done.stdout
    assert "Why no smaller change would do" in assert_alone(done.stdout).text


def test_rows_without_an_answer_are_on_the_page(workshop: Path) -> None:
    words = [*REPORT, "--freeze", "sepal_length", "--freeze", "sepal_width"]
    words += ["--bounds", "petal_length=:1.5", "--bounds", "petal_width=:0.5"]
    done = called(*words, cwd=workshop)
    assert (done.returncode, done.stderr) == (3, b"")
    page = assert_alone(done.stdout)
    assert len(page.sections) == 3
    assert "There is no counterfactual for virginica" in page.text
    assert "What stands in the way" in page.text


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--rows", "0,3,7"), 1, "--rows names row 7; expected positions from 0 to 2"),
        (("--rows", "0,x"), 2, "'0,x' is no list of rows; expected positions from 0 on"),
        (("--rows", "-1"), 2, "'-1' is no list of rows"),
        (("--rows", "1,1"), 2, "'1,1' is no list of rows"),
        (("--rows", ""), 2, "'' is no list of rows"),
        (("--rows", "0", "--limit", "2"), 2, "both choose rows; expected one of them"),
        (("--limit", "0"), 2, "0 is not in the range"),
        (("--freeze", "petal_widht"), 1, "Did you mean 'petal_width'?"),
        (("--switch", "petal_width=2"), 1, "is a number; expected features with levels"),
        (("--switch", "petal_width"), 2, "is no price of a switch; expected FEATURE=PRICE"),
        (("--switch", "a=-1"), 2, "'a=-1' is no price of a switch"),
        (("--switch", "a=1", "--switch", "a=2"), 2, "a feature twice"),
        (("-o", "nowhere/page.html"), 1, "there is no such folder"),
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
    assert run([*REPORT, *words]) == code
    out, err = capfd.readouterr()
    assert out == ""
    assert told in one_line(err)


def test_html_is_not_poured_on_a_terminal(workshop: Path) -> None:
    seen = on_a_terminal(*REPORT, cwd=workshop, expect=2)
    assert "name a file with --output" in seen
    assert "<!DOCTYPE" not in seen


def test_without_matplotlib_it_says_what_to_install(workshop: Path, tmp_path: Path) -> None:
    (tmp_path / "matplotlib.py").write_text("raise ImportError('not here')\n")
    hidden = {"PYTHONPATH": f"{tmp_path}:{_path()}"}
    done = counterlvq(*REPORT, "-o", str(tmp_path / "a.html"), cwd=workshop, **hidden)
    assert done.returncode == 1
    assert "pip install matplotlib, or leave the pictures out" in one_line(done.stderr)
    assert not (tmp_path / "a.html").exists()
    done = counterlvq(*REPORT, "--no-pictures", cwd=workshop, **hidden)
    assert (done.returncode, done.stderr) == (0, b"")
    assert_alone(done.stdout)


def _path() -> str:
    return str(Path(clvq.__file__).resolve().parents[1])

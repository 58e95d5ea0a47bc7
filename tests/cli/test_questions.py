"""Confidence, ways, reasons and ranges at the shell: words for what is wrong, and closing lines."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import counterlvq as clvq
from tests.support.shell import called


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of two numbers, and rows of both classes."""
    folder = tmp_path_factory.mktemp("desk")
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 3.0]], ["no", "yes"], None, ["pay", "age"])
    clvq.save(model, folder / "m.clvq")
    omegas = [np.eye(2), [[2.0, 1.0], [0.0, 1.0]]]
    clvq.save(
        clvq.PrototypeModel(model.prototypes, model.labels, omegas, ["pay", "age"]),
        folder / "local.clvq",
    )
    rng = np.random.default_rng(0)
    near = rng.normal(size=(40, 2)) + np.repeat(model.prototypes, 20, axis=0)
    many = pd.DataFrame(near, columns=["pay", "age"])
    many.to_csv(folder / "many.csv", index=False)
    seen = FunctionTransformer(np.log1p, feature_names_out="one-to-one")
    curved = make_pipeline(seen, LogisticRegression()).fit(many.abs(), model.predict(near))
    clvq.save(curved, folder / "logs.clvq", features=clvq.Features.from_frame(many))
    pd.DataFrame({"pay": [1.0, 4.0], "age": [1.0, 3.0]}).to_csv(folder / "rows.csv", index=False)
    return folder


RANGES = ("--bounds", "pay=0:9", "--bounds", "age=0:9")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["similarity="], ["'similarity=' has no number", "expected", "similarity=0.3"]),
        (["drift"], ["'drift' has no number", "drift=0.1"]),
        (["probability=90%"], ["'90%' where a number belongs", "Write 0.9 for 90%."]),
        (["noise=far:l1"], ["'far' where a number belongs", "noise=0.1:linf"]),
        (["noise=1:l7"], ["norm is 'l7'", "'linf'"]),
        (["chance=0.9"], ["is no confidence", "probability=0.9"]),
        (["probability=0.9", "drift=0.1"], ["it came 2 times", "expected one", "Leave out"]),
    ],
)
def test_shell_says_what_is_no_confidence(
    tmp_path: Path, given: list[str], said: list[str]
) -> None:
    words = [word for text in given for word in ("--confidence", text)]
    done = called("explain", "m.clvq", "rows.csv", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert all(part in done.stderr.decode() for part in said), done.stderr
    assert b"could not convert" not in done.stderr


def test_ranges_that_cannot_be_had_are_refused_before_any_row_is_answered(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(*_: object, **__: object) -> None:
        raise AssertionError("rows were answered")

    monkeypatch.setattr(clvq.Explainer, "explain_batch", ask)
    for words in (["local.clvq"], ["logs.clvq"], ["m.clvq", "--confidence", "similarity=0.3"]):
        model, *rest = words
        told = ("--ranges", "--format", "text", "--cost", "manhattan", *rest)
        done = called("explain", model, "rows.csv", *told, cwd=desk)
        assert done.returncode == 1
        assert b"--ranges" in done.stderr


def test_reasons_are_written_as_the_file_is_called(desk: Path) -> None:
    words = ("reasons", "m.clvq", "rows.csv", *RANGES, "--cost", "manhattan", "-o")
    assert called(*words, "why.json", cwd=desk).returncode == 0
    assert [row["row"] for row in json.loads((desk / "why.json").read_text())] == [0, 1]
    assert called(*words, "why.json", "--format", "text", cwd=desk).returncode == 0
    assert (desk / "why.json").read_text().startswith("The answer is no because")
    assert called(*words, "why.txt", cwd=desk).returncode == 0
    assert (desk / "why.txt").read_text().startswith("The answer is no because")
    for name in ("why.csv", "why.xlsx"):
        done = called(*words, name, cwd=desk)
        assert done.returncode == 2
        assert b"which is not written; expected .json, or say" in done.stderr
        assert not (desk / name).exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("reasons", "m.clvq"), "one with --bounds 'pay=LOW:HIGH', or take all ranges "
         "from a table with --within TABLE."),
        (
            ("explain", "m.clvq", "--cost", "euclidean", "--alternatives", "3"),
            "expected a limit, such as --at-most 2, or --cost manhattan or mad.",
        ),
        (
            ("explain", "m.clvq", "--ranges", "--confidence", "similarity=0.3"),
            "Leave out --confidence, or --ranges: an answer with a confidence leaves it room.",
        ),
        (
            ("explain", "m.clvq", "--ranges", "--plausible", "many.csv"),
            "Leave out --plausible, or --ranges.",
        ),
        (
            ("explain", "local.clvq", "--ranges"),
            "Leave out --ranges; --confidence margin=0.5 asks for answers with some room.",
        ),
        (
            ("explain", "local.clvq", "--confidence", "drift=0.1"),
            "Ask for --confidence margin=0.5 instead.",
        ),
        (
            ("explain", "local.clvq", "--confidence", "noise=0.1"),
            "Ask for --confidence margin=0.5 instead.",
        ),
        (
            ("explain", "logs.clvq", "--confidence", "noise=0.1"),
            "Ask for --confidence similarity=0.3 or margin=0.5 instead.",
        ),
        (("reasons", "m.clvq", "--first", "incom", "--bounds", "pay=0:9", "--bounds", "age=0:9"),
         "--first: feature 'incom' does not exist; expected one of: pay, age."),
        (("reasons", "m.clvq", "--first", "age", "--first", "age", "--bounds", "pay=0:9"),
         "error: --first names 'age' twice; expected each feature once."),
        (("explain", "logs.clvq", "--ranges"), "it sees log1p(pay). Leave out --ranges."),
    ],
)  # fmt: skip
def test_errors_advise_options_and_no_python(desk: Path, words: tuple[str, ...], said: str) -> None:
    model, *rest = words[1:]
    told = () if rest[:1] == ["--cost"] else ("--cost", "manhattan")
    form = () if words[0] == "reasons" else ("--format", "text")
    done = called(words[0], model, "rows.csv", *rest, *told, *form, cwd=desk)
    assert done.returncode == 1
    assert done.stderr.decode().endswith(f"{said}\n"), done.stderr
    assert b"explainer" not in done.stderr
    assert b"AtMost" not in done.stderr

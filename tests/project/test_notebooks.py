"""The notebooks: they run, and hold the outputs of such a run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from scripts.run_notebooks import EXAMPLES, executed
from tests.project.test_docs import agree, tidy
from tests.support.markup import Elements

pytestmark = pytest.mark.docs

NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


def test_there_are_two() -> None:
    assert len(NOTEBOOKS) == 2


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_those_of_a_run(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    stored = json.loads(path.read_text(encoding="utf-8"))
    for before, after in zip(stored["cells"], executed(stored)["cells"], strict=True):
        if before["cell_type"] != "code":
            continue
        assert before["execution_count"] == after["execution_count"]
        kinds = [output["output_type"] for output in after["outputs"]]
        assert [output["output_type"] for output in before["outputs"]] == kinds
        for old, new in zip(before["outputs"], after["outputs"], strict=True):
            assert agree(*(tidy(plain(output)) for output in (new, old)))
            pages = [html(output) for output in (new, old)]
            assert agree(*([page] for page in pages))


def plain(output: dict) -> str:
    return "".join(output.get("text") or output["data"]["text/plain"])


def html(output: dict) -> str:
    """The words of a page; how long its bars are is for others to check."""
    page = "".join(output.get("data", {}).get("text/html", ""))
    assert "http" not in re.sub(r"http://www\.w3\.org/\S+", "", page)
    return Elements(page).text

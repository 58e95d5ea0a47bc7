"""The pictures of the documentation: drawn by one command, all of them shown, none missing."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.docs

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_pictures_are_those_that_the_command_draws_and_the_page_shows(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(DOCS / "make_pictures.py"), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    drawn = {path.name for path in tmp_path.glob("*.png")}
    assert drawn == {path.name for path in (DOCS / "pictures").glob("*.png")}
    pages = [DOCS / "pictures.md", *(DOCS / "howto").glob("*.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    shown = re.findall(r"\]\((?:\.\./)?pictures/([\w.]+)\)", text)
    assert drawn == {name for name in shown if name.endswith(".png")}
    for path in tmp_path.glob("*.png"):
        header = path.read_bytes()[:24]
        assert int.from_bytes(header[16:20]) == 800

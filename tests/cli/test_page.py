"""The page on the command line: each command on it runs, and prints what the page says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.project.test_docs import Block, agree, blocks, run, tidy
from tests.support.shell import ENVIRONMENT

pytestmark = pytest.mark.docs

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "command_line.md"


def test_commands_of_the_page_print_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    run(text, PAGE.name)  # makes the tables
    commands = [(a, b) for a, b in pairwise(blocks(text)) if a.language == "sh"]
    assert len(commands) >= 4
    print_the_same(commands, tmp_path)


def test_commands_of_the_readme_print_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = pairwise(blocks((ROOT / "README.md").read_text(encoding="utf-8")))
    commands = [(a, b) for a, b in found if a.language == "sh" and "counterlvq train" in a.body]
    assert len(commands) == 1
    print_the_same(commands, tmp_path)
    assert (tmp_path / "page.html").is_file()


def print_the_same(commands: list[tuple[Block, Block]], tmp_path: Path) -> None:
    """Run commands by a shell, and compare what they print with what stands below them."""
    if shutil.which("sh") is None:
        pytest.skip("there is no sh here")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, module in (("counterlvq", " -m counterlvq"), ("python", "")):
        shim = programs / name
        shim.write_text(f'#!/bin/sh\nexec {sys.executable}{module} "$@"\n')
        shim.chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    for command, output in commands:
        assert output.language == "text", f"line {command.line} is not followed by its output"
        done = subprocess.run(
            ["sh", "-c", command.body],
            env={**ENVIRONMENT, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        notes, results = _apart(done.stderr + done.stdout)
        expected_notes, expected = _apart(output.body)
        assert notes == expected_notes, f"line {output.line}: other notes\n{done.stderr}"
        assert agree(tidy(results), tidy(expected)), f"line {output.line}: other\n{done.stdout}"


def _apart(shown: str) -> tuple[list[str], str]:
    """Take notes apart from results: a terminal shows both streams, in no promised order."""
    lines = shown.splitlines()
    notes = [line for line in lines if line.startswith("counterlvq: ")]
    return notes, "\n".join(line for line in lines if line not in notes)

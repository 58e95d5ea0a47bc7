"""Help and completion: the texts are kept in `golden`, and every option is on the page.

After a change that is meant, write the texts anew: GOLDEN=write pytest tests/cli/test_help.py
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

from counterlvq.cli.app import COMMANDS, app, run
from counterlvq.cli.conventions import BROKEN_PIPE, BUG, DONE, ERROR, NO_ANSWER, USAGE
from tests.support.shell import ENVIRONMENT, counterlvq

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).parent / "golden"
PAGE = ROOT / "docs" / "command_line.md"
NAMES = [command.name or "" for command in COMMANDS]


def as_now(text: str) -> str:
    """Write help of click 8.1 as newer versions do, which show that a command may be left out."""
    return text.replace("[OPTIONS] COMMAND [ARGS]", "[OPTIONS] [COMMAND] [ARGS]")


def compare(name: str, text: str) -> None:
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    assert as_now(text) == path.read_text(encoding="utf-8"), (
        "see the docstring if this change is meant"
    )


def test_help_fits_a_screen(tmp_path: Path) -> None:
    done = counterlvq("--help", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode()
    compare("counterlvq", text)
    lines = text.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80


def test_no_command_shows_the_help(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run([]) == 2
    told = capfd.readouterr()
    assert (told.out, as_now(told.err)) == (
        "",
        (GOLDEN / "counterlvq.txt").read_text(encoding="utf-8"),
    )


@pytest.mark.parametrize("name", NAMES)
def test_help_of_each_command(
    name: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run([name, "--help"]) == 0
    text = capfd.readouterr().out
    compare(name, text)
    assert max(map(len, text.splitlines())) <= 80


def test_no_golden_text_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == {"counterlvq", *NAMES}


def test_every_exit_code_is_on_the_page() -> None:
    codes = {DONE, ERROR, USAGE, NO_ANSWER, BUG, BROKEN_PIPE}
    codes |= {128 + number for number in (signal.SIGINT, signal.SIGTERM)}
    table = PAGE.read_text(encoding="utf-8").partition("| exit code |")[2]
    told = re.findall(r"^\| (\d+) \|", table, re.MULTILINE)
    assert sorted(map(int, told)) == sorted(codes)


@pytest.mark.parametrize("command", COMMANDS, ids=NAMES)
def test_every_option_is_on_the_page(command: click.Command) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert f"\n## `counterlvq {command.name}" in page
    section = page.partition(f"\n## `counterlvq {command.name}")[2].partition("\n## ")[0]
    for option in command.params:
        if isinstance(option, click.Option) and option.name != "debug":
            assert f"`{max(option.opts, key=len)}" in section, option.opts


def test_version(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capfd.readouterr().out.startswith("counterlvq 0.")


def test_console_script_is_declared() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert '\n[project.scripts]\ncounterlvq = "counterlvq.cli:main"\n' in project


# --- completion -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    script = capfd.readouterr().out
    assert "_COUNTERLVQ_COMPLETE" in script
    assert f"{shell}_complete" in script
    program = shutil.which(shell)
    if program is not None:
        subprocess.run([program, "-n"], input=script, text=True, check=True, capture_output=True)


def test_bash_completes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash here")
    shim = tmp_path / "counterlvq"
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m counterlvq "$@"\n')
    shim.chmod(0o755)
    assert run(["completion", "bash"]) == 0
    script = capfd.readouterr().out + (
        "\nfor words in 'ex' 'train --model l'; do\n"
        "  COMP_WORDS=(counterlvq $words); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=()\n"
        "  _counterlvq_completion counterlvq; echo ${COMPREPLY[@]}\n"
        "done\n"
    )
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [bash, "--norc", "-c", script],
        env={**ENVIRONMENT, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == ["explain", "lgmlvq lmrslvq"], done.stderr


def test_the_group_holds_each_command_once() -> None:
    assert sorted(app.commands) == sorted(NAMES)

"""`counterlvq reproduce`: its options, and what is said before anything is run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import counterlvq as clvq
import counterlvq_paper as paper
from counterlvq.cli.app import run
from tests.support.shell import called, counterlvq, one_line

pytestmark = pytest.mark.docs


def test_help_comes_without_running_anything(tmp_path: Path) -> None:
    done = counterlvq("reproduce", "--help", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    for option in ("--quick", "--peers", "--fresh", "--output", "--cache", "--jobs"):
        assert option.encode() in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [("--quik",), ("--jobs", "0"), ("--jobs", "two"), ("now",)])
def test_refused_options_take_one_line(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = called("reproduce", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert "See counterlvq reproduce --help." in one_line(done.stderr)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("missing", ["cma", "matplotlib"])
def test_missing_extra_is_named_in_one_line(tmp_path: Path, missing: str) -> None:
    """As in an environment that has only what the command line itself needs."""
    (tmp_path / "hidden.py").write_text(
        "import importlib.metadata as metadata, sys\n"
        f"sys.modules[{missing!r}] = None\n"
        "version = metadata.version\n"
        "def absent(name):\n"
        f"    if name == {missing!r}:\n"
        "        raise metadata.PackageNotFoundError(name)\n"
        "    return version(name)\n"
        "metadata.version = absent\n"
        "from counterlvq.cli import main\n"
        "main()\n"
    )
    done = _run_script(tmp_path / "hidden.py", "reproduce", "--quick")
    assert done.returncode == 1, done.stderr
    line = one_line(done.stderr)
    assert missing in line
    assert f"pip install {missing}" in line
    assert not (tmp_path / "reproduction-quick").exists()


def _run_script(path: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "XDG_CACHE_HOME": str(path.parent / "cache")}
    return subprocess.run(
        [sys.executable, str(path), *words],
        cwd=path.parent, env=environment, capture_output=True, check=False, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize("holds", [True, False])
def test_options_reach_the_experiments(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, holds: bool
) -> None:
    asked: list[tuple[Path, dict[str, object]]] = []

    def remember(folder: Path, **options: object) -> SimpleNamespace:
        asked.append((folder, options))
        return SimpleNamespace(holds=holds)

    monkeypatch.setattr(paper, "reproduce", remember)
    monkeypatch.setattr(paper, "verdict_lines", lambda _: ["claim 1"])
    code = 0 if holds else 1
    assert run(["reproduce", "--quick", "--peers", "--fresh", "--jobs", "2"]) == code
    assert run(["reproduce", "-o", "there", "--cache", "here"]) == code
    usual = {"cache": None, "quick": False, "peers": False, "fresh": False, "jobs": None}
    assert asked == [
        (Path("reproduction-quick"), usual | dict.fromkeys(("quick", "peers", "fresh"), True)
         | {"jobs": 2}),
        (Path("there"), usual | {"cache": Path("here")}),
    ]  # fmt: skip
    assert capfd.readouterr().out.splitlines()[-2:] == ["claim 1", "Tables and picture: there"]


def test_interrupt_says_that_it_can_go_on(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(paper, "reproduce", stopped)
    assert run(["reproduce"]) == 130
    assert "goes on from the last finished block" in one_line(capfd.readouterr().err)


def test_errors_of_the_experiments_are_errors_of_the_command(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise clvq.NotSupportedError("no python3.11")

    monkeypatch.setattr(paper, "reproduce", refused)
    assert run(["reproduce", "--peers"]) == 1
    assert one_line(capfd.readouterr().err) == "counterlvq: error: no python3.11"

"""What keeps the project in shape: hooks, floors, lock file, picture of the rooms, decisions."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections import Counter
from datetime import date
from itertools import product
from pathlib import Path

import pytest

from scripts import draw_rooms, oldest
from tests.support import quick

ROOT = Path(__file__).resolve().parents[2]
RECORDS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


# --- hooks --------------------------------------------------------------------------------------


def test_hooks_are_valid() -> None:
    command = [sys.executable, "-m", "pre_commit", "validate-config", ".pre-commit-config.yaml"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_hooks_are_the_linters_of_the_environment_and_download_nothing() -> None:
    yaml = pytest.importorskip("yaml")
    repositories = yaml.safe_load(text(".pre-commit-config.yaml"))["repos"]
    assert [repository["repo"] for repository in repositories] == ["local"]
    hooks = repositories[0]["hooks"]
    assert {hook["language"] for hook in hooks} == {"system"}
    tools = [hook["entry"].split(" --")[0].removeprefix(".venv/bin/") for hook in hooks]
    (lint,) = re.findall(r"^lint:.*\n((?:\t.*\n)+)", text("Makefile"), re.MULTILINE)
    lines = [re.sub(r" --check| \.$", "", line) for line in lint.splitlines()]
    assert tools == [line.removeprefix("\t$(BIN)/") for line in lines]


# --- floors and lock ----------------------------------------------------------------------------


def project() -> dict:
    return tomllib.loads(text("pyproject.toml"))["project"]


def test_every_requirement_has_one_floor() -> None:
    pins = oldest.pins(project())
    assert "numpy==2.1" in pins
    assert len(pins) == len(oldest.requirements(project()))


@pytest.mark.parametrize("line", ["numpy", "numpy<3", "numpy>=2,<3"])
def test_requirement_without_a_plain_floor_is_refused(line: str) -> None:
    asked = {"name": "counterlvq", "dependencies": [line], "optional-dependencies": {}}
    with pytest.raises(SystemExit, match="expected name>=version"):
        oldest.pins(asked)


def test_two_floors_of_one_package_are_refused() -> None:
    asked = {
        "name": "counterlvq",
        "dependencies": ["numpy>=2.1"],
        "optional-dependencies": {"own": ["counterlvq[x]"], "x": ["numpy>=2.2"]},
    }
    with pytest.raises(SystemExit, match="expected one floor"):
        oldest.pins(asked)


def test_lock_pins_every_requirement_at_or_above_its_floor() -> None:
    locked = dict(
        line.lower().replace("_", "-").split("==")
        for line in text("requirements.lock").splitlines()
        if not line.startswith("#")
    )
    for pin in oldest.pins(project()):
        name, floor = pin.split("==")
        numbers = [tuple(map(int, re.findall(r"\d+", v))) for v in (locked[name], floor)]
        assert numbers[0] >= numbers[1], f"{name} is locked at {locked[name]}, below {floor}"


# --- the picture of the rooms -------------------------------------------------------------------


@pytest.mark.docs
def test_picture_of_the_rooms_is_that_of_the_imports() -> None:
    stored = draw_rooms.PICTURE.read_text(encoding="utf-8")
    assert stored == draw_rooms.picture(), "imports have changed; draw them anew: make pictures"
    assert "](pictures/rooms.svg)" in text("docs/design.md")


def test_rooms_are_modules_and_packages_and_stand_above_what_they_import(tmp_path: Path) -> None:
    files = {
        "counterlvq/__init__.py": "from counterlvq.top import ask",
        "counterlvq/base.py": "",
        "counterlvq/middle/__init__.py": "",
        "counterlvq/middle/inner.py": "def late():\n    from counterlvq import base",
        "counterlvq/top.py": "import numpy\nfrom counterlvq.middle.inner import late\n"
        "import counterlvq.base",
        "counterlvq_paper/__init__.py": "from counterlvq import top",
    }
    for name, body in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(body, encoding="utf-8")
    graph = draw_rooms.imports(tmp_path)
    assert graph == {
        "base": set(),
        "middle": {"base"},
        "top": {"base", "middle"},
        "counterlvq_paper": {"top"},
    }
    assert draw_rooms.rows(graph) == [["base"], ["middle"], ["top"], ["counterlvq_paper"]]
    assert draw_rooms.reduced(graph)["top"] == {"middle"}  # base follows
    assert ">middle/</text>" in draw_rooms.picture(tmp_path)


def test_imports_in_a_circle_are_not_drawn() -> None:
    with pytest.raises(SystemExit, match="a -> b -> a"):
        draw_rooms.levels({"a": {"b"}, "b": {"a"}})


# --- decisions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_decision_is_numbered_dated_and_says_why(record: Path) -> None:
    body = record.read_text(encoding="utf-8")
    number = RECORDS.index(record) + 1
    assert record.name.startswith(f"{number:04d}-")
    assert body.startswith(f"# {number}. ")
    (day,) = re.findall(r"^Date: (\S+)\.", body, re.MULTILINE)
    assert date.fromisoformat(day)
    parts = re.findall(r"^## (.+)$", body, re.MULTILINE)
    assert parts == ["Question", "Decision", "Consequences"]


def test_decisions_are_listed_in_order() -> None:
    listed = re.findall(r"\]\(decisions/(\d{4}-[\w-]+\.md)\)", text("docs/decisions.md"))
    assert listed == [record.name for record in RECORDS]


# --- which cases are quick ----------------------------------------------------------------------


def test_quick_combinations_show_every_value_and_are_few() -> None:
    combinations = [set(pair) for pair in product("abcde", range(3), [None, "x"])]
    kept = quick.covering(combinations)
    assert set.union(*(combinations[k] for k in kept)) == set.union(*combinations)
    assert len(kept) == 5
    times = Counter(value for k in kept for value in combinations[k])
    assert max(times[number] - times[other] for number in range(3) for other in range(3)) <= 1


def test_cases_beyond_the_quick_ones_are_kept_and_slow() -> None:
    for given in (2, {0, 1}):
        params = [quick.slow(k) if k > 1 else k for k in range(4)]
        assert quick.seeds(4, quick=given) == params
    assert quick.slow(("a", 1)).values == ("a", 1)
    assert [mark.name for mark in quick.slow(0).marks] == ["slow"]

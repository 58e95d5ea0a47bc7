"""The real ceml 0.7 beside the quick run of the paper's experiments; built on request."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from counterlvq_paper import main
from tests.peers.environments import BASE


@pytest.mark.timeout(3600)
def test_ceml_is_asked_and_its_failures_are_counted(tmp_path: Path) -> None:
    BASE.mkdir(exist_ok=True)
    (BASE / ".gitignore").write_text("*\n")
    cache = ["--cache", str(BASE / "reproduce")]
    assert main(["--quick", "--peers", "--output", str(tmp_path), *cache]) == 0
    with (tmp_path / "ceml.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 3 * 3 * 2
    for line in lines:
        parts = [int(line[name]) for name in ("raised", "wrong", "solved")]
        assert sum(parts) == int(line["rows"]) > 0
    assert "## ceml 0.7 itself" in (tmp_path / "reproduction.md").read_text("utf-8")

"""Every class of prosemble: fitted, read, explained and confirmed by its own `predict`."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from counterlvq.adapters import prosemble
from tests.peers.environments import PEERS, ROOT, ready

THERE = Path(__file__).with_name("prosemble_there.py")
KINDS = [kind for kind in prosemble.KINDS if kind not in prosemble.REFUSED]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    output = tmp_path_factory.mktemp("prosemble") / "lines.jsonl"
    alone = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        [str(ready(PEERS["prosemble"])), str(THERE), str(output)],
        env={**alone, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return {line["class"]: line for line in map(json.loads, output.read_text().splitlines())}


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
def test_every_class_is_confirmed_there(kind: str, lines: dict[str, dict[str, object]]) -> None:
    line = lines[kind]
    assert "error" not in line, line
    assert float(str(line["agree"])) >= 0.999  # ties within single precision
    assert line["confirmed"] == line["alone"] == line["asked"], line
    assert float(str(line["ratio"])) < 1.001, line
    print(f"prosemble {kind}: {line}")

"""Classes of libraries that run beside this package: read, explained and confirmed there."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from counterlvq.adapters import prosemble
from tests.peers.environments import PEERS, ROOT, ready

THERE = Path(__file__).with_name("alive_there.py")
KINDS = {
    "prosemble": [kind for kind in prosemble.KINDS if kind not in prosemble.REFUSED],
    "prototorch": ["GLVQ", "GRLVQ", "GMLVQ", "SiameseGMLVQ", "LGMLVQ", "GTLVQ", "CELVQ", "LVQ21"],
}
PAIRS = [(library, kind) for library, kinds in KINDS.items() for kind in kinds]
# What single precision may add to the cost of an answer.
MOST = 1.0001
# The same on top of any cost, however small, for standardised columns: it does not shrink with the
# change, because rounding of the input does not.
EXTRA = 5e-5

Lines = dict[tuple[str, str], dict[str, object]]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Lines:
    alone = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    found: Lines = {}
    for library in KINDS:
        output = tmp_path_factory.mktemp(library) / "lines.jsonl"
        done = subprocess.run(
            [str(ready(PEERS[library])), str(THERE), library, str(output)],
            env={**alone, "PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        told = map(json.loads, output.read_text().splitlines())
        found |= {(library, line["class"]): line for line in told}
    return found


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("library", "kind"), PAIRS)
def test_every_class_is_confirmed_there(library: str, kind: str, lines: Lines) -> None:
    line = lines[library, kind]
    assert "error" not in line, line
    assert float(str(line["agree"])) >= 0.999  # ties within single precision
    assert line["confirmed"] == line["alone"] == line["asked"], line
    assert float(str(line["ratio"])) <= MOST, line
    assert line["near_confirmed"] == line["near_alone"] == line["near"], line
    assert float(str(line["extra"])) <= EXTRA, line
    print(f"{library} {kind}: {line}")

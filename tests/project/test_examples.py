"""The examples: each runs without arguments, as a user would run it, and says what it found."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.docs

FOLDER = Path(__file__).resolve().parents[2] / "examples"
# What each is about, in words that it has to print.
SAYS = {
    "demo.py": [
        "second_floor <= first_floor",
        "living_area == first_floor + second_floor",
        "leave no room for it together",
        "Counterfactual (optimal)",
    ],
    "explain_pipeline.py": ["100.0% optimal", "calls every one of these answers benign"],
    "lender.py": ["GMLVQ: ", "MRSLVQ: ", "--- 30", "It would have been accepted if"],
    "million_rows.py": ["1,000,000 answers in", "1,000,000 rows: 100.0% optimal"],
    "prove_optimality.py": ['method="ccp"', "Counterfactual (optimal)", "The picture of it"],
    "someone_elses_model.py": ["1,797 prototypes", "10 prototypes", "no less will do"],
}


def test_every_example_is_run() -> None:
    assert {path.name for path in FOLDER.glob("*.py")} == set(SAYS)


@pytest.mark.parametrize("name", SAYS)
def test_example_runs(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(FOLDER / name)],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    for words in SAYS[name]:
        assert words in done.stdout
    if name == "prove_optimality.py":
        assert (tmp_path / "counterlvq_proof.png").read_bytes().startswith(b"\x89PNG")

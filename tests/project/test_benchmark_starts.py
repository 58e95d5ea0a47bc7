"""The benches of first answers and of many prototypes: quick runs, and what they wrote."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from benchmarks import first_answer, images
from benchmarks.first_answer import RESULTS, Start

pytestmark = pytest.mark.docs
WHERE = {"date": "", "python": "", "platform": "", "cores": 2, "load_before": [0.0]}


def test_verdicts_on_starts() -> None:
    now = Start("now", "L1", 1, 0.1, 5.0, 0.9)
    results = {"environment": WHERE, "processes": 1, "numba": 0.5, "starts": [asdict(now)]}
    assert first_answer.markdown(results).count(": reached.") == 2
    before = replace(now, name="before", cold=14.0)
    batch = replace(now, rows=10_000, cold=99.0, warm=99.0)  # shown, and not judged
    results["starts"] = [asdict(start) for start in (before, replace(now, warm=1.1), batch)]
    text = first_answer.markdown(results)
    assert "above Numba: not reached." in text
    assert "before: not reached, with a share of 0.36." in text


def test_a_small_run_on_images() -> None:
    found = images.runs_of("now", images.Asked(None, 200, 2))
    assert [item.cost for item in found] == ["L1", "L2"]
    assert all(item.proved == 2 and item.verified for item in found)
    slow = [replace(item, name="before", explain=8.0 * item.explain) for item in found]
    told = [asdict(item) for item in slow + found]
    text = images.markdown(
        {"environment": WHERE, "images": "digits", "training": 200, "runs": told}
    )
    assert text.count("8.0 times as fast as before, costs the same to the last bit") == 2
    assert text.count("is the goal: not reached") == 2


def test_report_holds_the_figures() -> None:
    stored = json.loads((RESULTS / "images.json").read_text(encoding="utf-8"))
    assert (RESULTS / "images.md").read_text(encoding="utf-8") == images.markdown(stored)
    assert all(run["proved"] == run["rows"] and run["verified"] for run in stored["runs"])

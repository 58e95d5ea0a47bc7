"""The bench of single rows: what it takes for the same program is the same program."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from benchmarks import single
from benchmarks.single import RESULTS, Figures, markdown, measured, models

pytestmark = pytest.mark.docs
WHERE = {"date": "", "python": "", "platform": "", "cores": 2, "load_before": [0.0]}


def test_warm_solvers_find_the_same_costs() -> None:
    pytest.importorskip("daqp")
    for asked in models(4):
        for cost in single.COSTS:
            found = measured(asked, cost, has_rules=True, repeats=1)
            assert (found.rows, found.optimal, found.constraints) == (4, 4, 2)
            assert found.difference < 1e-6
            assert 0 < found.solver < found.warm
            assert found.explain > 0 < found.batch
            # Input and answer are shown to the pipeline in one call; other models need none.
            assert found.calls == (1.0 if asked.name == "pipeline" else 0.0)


def test_verdict_names_what_was_not_reached() -> None:
    good = Figures("estimator", "L1", 0, 40.0, 50.0, 0.0, 0.0, 10.0, 5.0, 3, 3, 1e-9)
    assert "reached throughout" in markdown(WHERE, 3, 1, [good])
    slow = replace(good, model="pipeline", cost="L2", batch=61.0)
    text = markdown(WHERE, 3, 1, [good, slow])
    assert "reached in 1 of 2 settings; not by pipeline L2 (4.0, a batch of one 6.1)." in text


def test_report_holds_the_figures() -> None:
    stored = json.loads((RESULTS / "single.json").read_text(encoding="utf-8"))
    found = [Figures(**item) for item in stored["measured"]]
    text = markdown(stored["environment"], found[0].rows, stored["repeats"], found)
    assert (RESULTS / "single.md").read_text(encoding="utf-8") == text
    assert len(found) == 12
    assert all(f.optimal == f.rows and f.difference < 1e-6 for f in found)
    assert asdict(found[0]) == stored["measured"][0]

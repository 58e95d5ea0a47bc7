"""The benchmark of mixed columns: its baseline is right, and its report says what was measured."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from benchmarks import mixed_batches, plain_batches
from benchmarks.baselines.milp import cheapest_by_milp
from benchmarks.mixed import FULL, Sizes, frame_overhead, markdown, run
from benchmarks.mixed_problems import drawn_problem, lifted_from_pca, many_levels_problem

pytestmark = pytest.mark.docs

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


@pytest.mark.parametrize("discrete", [0, 2, 4])
def test_plain_milps_find_the_same_optima(discrete: int) -> None:
    found = run(drawn_problem(5, discrete, "L1", "shared", 3))
    assert found.proved == 3
    assert len(found.milp_seconds) == 3
    assert found.worse_than_milp < 1e-6


def test_batches_are_measured_beside_milps() -> None:
    found = mixed_batches.run(drawn_problem(5, 2, "L1", "shared", 8))
    assert (found.rows, found.proved, found.left_over) == (8, 8, 0)
    assert found.worse_than_milp < 1e-6
    where = {"date": "", "python": "", "platform": "", "cores": 2, "load_before": [0.0]}
    text = mixed_batches.markdown({"environment": where, "runs": [asdict(found)]})
    assert text.count("| drawn | L1 |") == 2  # the time of a row, and where it goes
    assert found.parts["search"] + found.parts["proof"] < found.parts["all"]


def test_plain_milps_keep_a_rule_about_a_level() -> None:
    """Of those who rent, and have more savings than the rule lets them."""
    problem = many_levels_problem("L1", 200, is_ruled=True)
    assert problem.rule is not None
    table = problem.table
    renting = (table.housing == "rent") & (table.savings > problem.rule.limit)
    asked = table[renting].iloc[:3]
    batch = problem.explainer().explain_batch(asked, "granted")
    assert batch.status.tolist() == ["optimal"] * 3
    for (_, x), cost in zip(asked.iterrows(), batch.cost, strict=True):
        assert cost == pytest.approx(cheapest_by_milp(problem, x, "granted"), rel=1e-6)
    assert ((batch.X.housing != "rent") | (batch.X.savings <= problem.rule.limit)).all()


def test_plain_batches_beside_another_state() -> None:
    """The state beside is this one: it gives the same answers, and times of its own."""
    source = Path(plain_batches.__file__).parents[1] / "src"
    with plain_batches.asking(source, 20) as ask:
        problem = next(plain_batches.problems(20))
        seconds, costs = ask(0, "L1")
    assert seconds > 0
    assert costs == plain_batches.answer(problem, "L1")[1]
    assert len(costs) == 20
    where = {"date": "", "python": "", "platform": "", "cores": 2, "load_before": [0.0]}
    same = plain_batches.Plain("a", "GLVQ", "L1", 20, [2.0, 1.0, 3.0], [3.0, 4.0, 1.5], 0.0)
    worse = plain_batches.Plain("b", "GLVQ", "L2", 20, [2.0, 1.0, 3.0], [3.1, 4.0, 2.5], 0.0)
    assert (same.ratio, worse.ratio) == (1.5, 1.55)
    assert "reached." in plain_batches.markdown(where, [same])
    assert "not reached by b GLVQ L2." in plain_batches.markdown(where, [same, worse])


def test_milp_by_hand() -> None:
    """One whole number between two prototypes: the first one past the middle."""
    import counterlvq as clvq

    problem = drawn_problem(1, 0, "L1", "shared", 1)
    model = clvq.PrototypeModel([[0.0], [5.0]], ["low", "high"], [[1.0]])
    features = clvq.Features([clvq.Feature("x0", "whole", lower=-9, upper=9)])
    by_hand = type(problem)(
        "drawn", "L1", "shared", 1, 1, model, features, problem.price, (), [[0.0]], ["high"]
    )
    assert cheapest_by_milp(by_hand, np.array([0.0]), "high") == pytest.approx(3.0)
    assert by_hand.explainer().explain([0.0], "high").cost == 3.0


def test_report_holds_the_figures() -> None:
    stored = json.loads((RESULTS / "mixed.json").read_text(encoding="utf-8"))
    assert (RESULTS / "mixed.md").read_text(encoding="utf-8") == markdown(stored)
    assert not stored["quick"]
    discrete = {run["discrete"] for run in stored["runs"]}
    assert discrete >= set(FULL.discrete)
    assert all(run["worse_than_milp"] < 1e-6 for run in stored["runs"])


def test_answers_in_the_users_space_cost_less() -> None:
    saved = lifted_from_pca(5)
    assert saved["dearer"] == 0.0
    assert saved["exact"] < saved["lifted"]


def test_frames_are_measured_beside_arrays() -> None:
    found = frame_overhead(Sizes(1, (), (), 1, 50).frame_rows)
    assert found["rows"] == 50
    assert min(found["array"], found["frame"]) > 0

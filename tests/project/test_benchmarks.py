"""The benchmarks measure what they say: peers that agree with the engine, honest arithmetic.

Nothing here looks at a clock.
"""

from __future__ import annotations

import json
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import counterlvq as clvq
from benchmarks import coldstart, compare, datasets, figures, growth, memory, neighbours, workers
from benchmarks.baselines import blackbox, paper
from benchmarks.baselines.cells import cells_of
from benchmarks.baselines.warm import WarmDaqp, WarmHighs, WarmSolvers
from benchmarks.problems import COSTS, Problem, other_labels
from benchmarks.report import duration, markdown, write_all
from benchmarks.sizes import QUICK
from benchmarks.timing import fit_power_law

pytestmark = pytest.mark.docs

ROWS = 8
NAMES = ("a", "b", "c", "d")


def tiny(kind: str = "GMLVQ", frozen: tuple[str, ...] = ()) -> Problem:
    """Three classes with two prototypes each, in four features."""
    rng = np.random.default_rng(3)
    labels = np.repeat(["x", "y", "z"], 2)
    omega = None if kind == "GLVQ" else rng.standard_normal((4, 4))
    model = clvq.PrototypeModel(rng.standard_normal((6, 4)), labels, omega, NAMES)
    rows = rng.standard_normal((ROWS, 4))
    targets = other_labels(model.predict(rows), model.classes)
    return Problem("tiny", kind, model, rows, targets, frozen, accuracy=1.0)


PROBLEMS = [tiny("GLVQ"), tiny("GMLVQ"), tiny("GMLVQ", frozen=("b",))]
each_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=["plain", "omega", "frozen"])
each_cost = pytest.mark.parametrize("cost", COSTS)


def agrees(problem: Problem, cost: str, answers: np.ndarray) -> bool:
    """Whether answers are valid and cost what the engine's cost, row by row."""
    engine = problem.explainer(cost).explain_batch(problem.rows, problem.wish)
    found = engine.status == "optimal"
    assert found.any()
    assert np.array_equal(problem.valid(answers), found)
    mine = problem.costs(answers, cost)
    reference = np.where(found, engine.cost, np.nan)
    return compare.largest_difference(mine, reference) <= compare.AGREEMENT


@each_problem
def test_warm_highs_agrees_with_the_engine(problem):
    solvers = WarmSolvers(problem.model, problem.free, WarmHighs)
    first = solvers.answers(problem.rows, problem.targets)
    assert agrees(problem, "L1", first)
    # A second pass starts from other bases and must end at the same costs.
    assert agrees(problem, "L1", solvers.answers(problem.rows[::-1], problem.targets[::-1])[::-1])


@pytest.mark.skipif(find_spec("daqp") is None, reason="daqp is not installed")
@each_problem
def test_warm_daqp_agrees_with_the_engine(problem):
    solvers = WarmSolvers(problem.model, problem.free, WarmDaqp)
    assert agrees(problem, "L2", solvers.answers(problem.rows, problem.targets))


@each_cost
@each_problem
def test_a_program_per_prototype_agrees_with_the_engine(problem, cost):
    answers = np.array(
        [
            paper.closest(problem.model, x, target, problem.free, cost)
            for x, target in zip(problem.rows, problem.targets, strict=True)
        ]
    )
    assert agrees(problem, cost, answers)


@each_cost
@pytest.mark.parametrize("optimise", [blackbox.nelder_mead, blackbox.cma_es])
def test_searches_never_beat_the_engine_and_leave_frozen_features_alone(cost, optimise):
    problem = PROBLEMS[2].head(2)
    engine = problem.explainer(cost).explain_batch(problem.rows, problem.wish)
    for i, (x, target) in enumerate(zip(problem.rows, problem.targets, strict=True)):
        y = blackbox.search(problem.model, x, target, problem.free, cost, optimise)
        if np.isfinite(y).all():
            assert np.array_equal(y[~problem.free], x[~problem.free])
            assert COSTS[cost].value(y - x) >= engine.lower_bound[i]


def test_cells_are_where_a_prototype_wins():
    problem, rng = PROBLEMS[1], np.random.default_rng(0)
    points = rng.standard_normal((200, 4))
    for target in problem.model.classes:
        inside = np.zeros(len(points), dtype=bool)
        for cell in cells_of(problem.model, target):
            inside |= (cell.leads(points) > 0).all(axis=1)
        assert np.array_equal(inside, problem.model.predict(points) == target)


def test_other_labels_are_other_labels():
    classes = np.array(["p", "q", "r"])
    now = np.repeat(classes, 50)
    drawn = other_labels(now, classes)
    assert (drawn != now).all()
    assert set(drawn) == set(classes)


@pytest.mark.parametrize("exponent", [0.0, 1.0, 1.7, -0.5])
def test_a_known_exponent_is_recovered(exponent):
    x = np.array([1.0, 3.0, 10.0, 50.0])
    law = fit_power_law(x, 2.5e-6 * x**exponent)
    assert law.exponent == pytest.approx(exponent, abs=1e-12)
    assert law.factor == pytest.approx(2.5e-6)


def test_a_missing_answer_counts_as_the_largest_difference():
    assert compare.largest_difference(np.array([1.0, np.nan]), np.array([1.0, 2.0])) == math.inf
    assert compare.largest_difference(np.array([1.0, np.nan]), np.array([1.0, np.nan])) == 0.0
    assert compare.largest_difference(np.array([2.5]), np.array([2.0, 9.0])) == 0.25


@each_cost
def test_the_neighbour_oracle_confirms_the_engine_and_notices_a_wrong_answer(cost):
    rng = np.random.default_rng(1)
    model = clvq.PrototypeModel(rng.standard_normal((40, 3)), np.arange(40) % 3)
    rows, targets = rng.standard_normal((3, 3)), np.array([0, 1, 2])
    answers = clvq.Explainer(model, COSTS[cost]).explain_batch(rows, targets).cost
    keep = answers > 0
    check = neighbours.check_rows(model, rows[keep], targets[keep], answers[keep], cost)
    assert check.difference <= compare.AGREEMENT
    assert check.solved >= keep.sum()
    wrong = neighbours.check_rows(model, rows[keep], targets[keep], 1.01 * answers[keep], cost)
    assert wrong.difference > compare.AGREEMENT


def small_results() -> figures.Results:
    """A run with made-up times, on the tiny problem under the names of the real ones."""
    sizes = replace(QUICK, rows=ROWS, repeats=1, single=2, warm=ROWS, paper=2, blackbox=1)
    measured = []
    for cost in COSTS:
        runs = compare.runs_of(tiny(), cost, sizes)
        for name in ("cancer", "digits"):
            problem = replace(tiny(), name=name)
            measured += compare.measured(problem, cost, runs)
    check = neighbours.OracleCheck(rows=1, solved=2, skipped=3, difference=1e-9)
    near = neighbours.NeighbourFigures("L1", 40, 3, 5, 0.002, 0.001, 0.001, 1.0, 0, check)
    curve = growth.Curve("n", "rows", "d = 2", "L1", (10, 100), (1e-4, 1e-3), 1.0, 1e-5, 1.0)
    return figures.Results(
        environment=figures.environment(),
        sizes=sizes,
        ceiling=1.9,
        comparison=measured,
        neighbours=[near],
        growth=[curve],
        memory=memory.MemoryFigures(10, 2, 2, 160, 500, 1000),
        cold_start=coldstart.ColdStart(1, 0.1, 0.2, 20.0, 0.5, ()),
        seconds=1.0,
    )


def test_a_run_is_written_as_json_tables_and_a_picture(tmp_path):
    found = small_results()
    write_all(found, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "bench.json",
        "bench.md",
        "bench.png",
    ]
    content = json.loads((tmp_path / "bench.json").read_text("utf-8"))
    assert content["environment"]["packages"]["numpy"] == np.__version__
    assert len(content["comparison"]) == len(found.comparison)
    assert {goal["reached"] for goal in content["goals"]} <= {True, False}
    assert (tmp_path / "bench.md").read_text("utf-8") == markdown(found)
    assert figures.complaints(found) == []


def test_disagreement_and_invalid_answers_are_complained_about():
    found = small_results()
    engine = replace(found.comparison[0], valid=0.5)
    off = next(m for m in found.comparison if m.difference is not None)
    broken = replace(found, comparison=[engine, replace(off, difference=1e-3)])
    assert len(figures.complaints(broken)) == 2


@pytest.mark.parametrize(
    ("seconds", "words"), [(2.5, "2.5 s"), (0.0213, "21.3 ms"), (3.1e-6, "3.1 µs"), (1e-3, "1 ms")]
)
def test_durations_read_well(seconds, words):
    assert duration(seconds) == words


def test_datasets_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert datasets.main(["--quick"]) == 0
    text = capsys.readouterr().out
    assert "\n| 2,000 | " in text
    assert "By the rates of 2,000 rows, a billion rows take" in text


def test_files_are_shared_among_workers_and_gains_are_told(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    for k in range(3):
        datasets.write_source(tmp_path / "source" / f"{k}.parquet", 50)
    with ThreadPoolExecutor(2) as pool:
        workers.share_files(pool, tmp_path / "source", tmp_path / "answers")
    assert pq.read_table(tmp_path / "answers").num_rows == 150
    for two, verdict in ((2.0, "reached, with 1.50"), (2.5, "not reached, with 1.20")):
        gains = [workers.Gain("Dask", 3.0, two), workers.Gain("plain processes", 3.0, 2.0)]
        text = workers.markdown(figures.environment(), 150, 1, gains)
        assert f": {verdict}, beside 1.50 of plain processes" in text

"""The benchmark of local metrics: known optima, a fair loop, honest verdicts, one report.

Nothing here looks at a clock.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import counterlvq as clvq
from benchmarks import local, local_figures, local_growth, local_profile
from benchmarks.baselines import concave
from benchmarks.figures import environment
from benchmarks.local_figures import LocalResults, complaints, goals
from benchmarks.local_methods import BATCH, METHODS, PLAIN, Run, beside_plain_loop, run
from benchmarks.local_problems import LocalProblem, known_sets, random_problem
from benchmarks.local_report import markdown, write_all
from benchmarks.problems import COSTS

pytestmark = pytest.mark.docs

each_cost = pytest.mark.parametrize("cost", COSTS)
RESULTS = Path(local.__file__).parent / "results"


def tiny(cost: str, rows: int = 3) -> LocalProblem:
    return random_problem(d=2, rivals=2, cost=cost, n=rows, targets=2)


# --- questions ----------------------------------------------------------------------------------


def test_known_sets_are_questions_about_the_stored_models() -> None:
    found = list(known_sets())
    sizes = {(p.name, p.cost): len(p.rows) for p in found}
    assert sizes == {
        ("iris", "L1"): 38,
        ("iris", "L2"): 20,
        ("cancer", "L1"): 30,
        ("cancer", "L2"): 15,
        ("cancer, per class", "L1"): 12,
    }
    for problem in found:
        assert problem.model.is_local
        assert (problem.model.predict(problem.rows) != problem.targets).all()
        assert problem.best is not None
        assert problem.bound is not None
        # As good as the given numbers are.
        assert (problem.bound <= (1 + local_figures.GIVEN) * problem.best).all()


def test_a_metric_per_class_is_that_of_the_class() -> None:
    model = next(p.model for p in known_sets() if p.name == "cancer, per class")
    for label in model.classes:
        mine = [model.factors[k] for k in np.flatnonzero(model.labels == label)]
        assert all(np.array_equal(mine[0], other) for other in mine)


def test_random_models_have_metrics_of_their_own() -> None:
    problem = random_problem(d=3, rivals=4, cost="L1", n=5)
    assert problem.model.is_local
    assert problem.model.n_prototypes == 7
    traces = [np.trace(omega.T @ omega) for omega in problem.model.factors]
    np.testing.assert_allclose(traces, 1.0)
    assert (problem.model.predict(problem.rows) == "rival").all()
    assert len(problem.head(2).rows) == 2


# --- the plain loop -----------------------------------------------------------------------------


@each_cost
def test_a_round_of_the_loop_keeps_to_the_cell(cost: str) -> None:
    """Tangents of the rivals' distances lie below them: what meets the tangents is in the cell."""
    problem = random_problem(d=4, rivals=5, cost=cost, n=1)
    model, x = problem.model, problem.rows[0]
    rivals = concave.Rivals.of(model, x, "target")
    start = model.prototypes[0] - x
    solved = concave.solve_round(model.factors[0], start, rivals, start, 1e4, cost)
    assert solved is not None
    delta, slack = solved
    distances = model.distances((x + delta)[None, :])[0]
    assert slack < concave.NO_SLACK
    assert distances[0] <= distances[model.labels == "rival"].min()
    assert concave.value(delta, cost) < concave.value(start, cost)


def test_the_tangents_touch_the_distances() -> None:
    problem = random_problem(d=3, rivals=4, cost="L1", n=1)
    x, rng = problem.rows[0], np.random.default_rng(0)
    rivals = concave.Rivals.of(problem.model, x, "target")
    at = rng.standard_normal(3)
    slopes, constants = rivals.tangents(at)
    true = problem.model.distances((x + at)[None, :])[0][problem.model.labels == "rival"]
    np.testing.assert_allclose(slopes @ at + constants, true)
    for other in rng.standard_normal((20, 3)):
        true = problem.model.distances((x + other)[None, :])[0][problem.model.labels == "rival"]
        assert (slopes @ other + constants <= true + 1e-12).all()


@each_cost
def test_the_loop_is_valid_and_never_beats_a_proof(cost: str) -> None:
    problem = tiny(cost)
    best = run(problem, "global")
    for x, lower, cost_there in zip(problem.rows, best.bounds, best.costs, strict=True):
        y = concave.closest(problem.model, x, "target", cost)
        assert problem.model.predict(y[None, :])[0] == "target"
        assert lower <= COSTS[cost].value(y - x) <= 10 * cost_there


@each_cost
def test_the_comparison_counts_rows_by_their_costs(cost: str) -> None:
    problem = tiny(cost)
    loop = beside_plain_loop(problem, repeats=1)
    assert loop.rows == len(problem.rows)
    assert set(loop.valid.values()) == {1.0}
    plain = [concave.closest(problem.model, x, "target", cost) for x in problem.rows]
    prices = [COSTS[cost].value(y - x) for x, y in zip(problem.rows, plain, strict=True)]
    assert loop.mean_costs[PLAIN] == pytest.approx(np.mean(prices))
    assert loop.mean_costs[BATCH] == pytest.approx(np.mean(run(problem, "ccp").costs))
    assert all(0 <= count <= loop.rows for count in loop.unsteady.values())


# --- measuring ----------------------------------------------------------------------------------


@each_cost
def test_runs_hold_what_the_explainer_answers(cost: str) -> None:
    problem = tiny(cost)
    found = {method: run(problem, method) for method in METHODS}
    explainer = clvq.Explainer(problem.model, COSTS[cost], method="global")
    expected = explainer.explain_batch(problem.rows, "target")
    assert found["global"].costs == expected.cost.tolist()
    assert all(found["global"].proved)
    assert min(found["global"].boxes) >= 1
    assert found["ccp"].boxes == [0, 0, 0]
    assert not any(found["ccp"].proved)
    for method in METHODS:
        assert all(found[method].valid)
        assert np.greater_equal(found[method].costs, found["global"].bounds).all()


def test_clocks_do_not_count_time_twice() -> None:
    kept = local_profile.Clocks()
    inner = kept.around("inner", lambda: sum(range(10_000)))
    outer = kept.around("outer", lambda: [inner(), inner()])
    assert outer() == [sum(range(10_000))] * 2
    assert set(kept.seconds) == {"inner", "outer"}
    assert min(kept.seconds.values()) > 0


def test_the_parts_of_a_profile_add_up_and_the_clocks_are_taken_away() -> None:
    before = [getattr(owner, name) for _, owner, name in local_profile.CLOCKS]
    profile = local_profile.measure(tiny("L1", rows=1))
    assert [getattr(owner, name) for _, owner, name in local_profile.CLOCKS] == before
    assert set(profile.parts) == set(local_profile.PARTS)
    assert sum(profile.parts.values()) == pytest.approx(profile.seconds)
    for part in (local_profile.SOLVER, local_profile.ASSEMBLY, local_profile.BOUND):
        assert profile.parts[part] > 0
    assert profile.boxes >= 1


def test_growth_measures_both_quantities_for_both_costs() -> None:
    curves = local_growth.measure((2, 3), (1, 2), rows=1)
    assert [(curve.letter, curve.cost) for curve in curves] == [
        ("d", "L1"), ("m", "L1"), ("d", "L2"), ("m", "L2"),
    ]  # fmt: skip
    for curve in curves:
        assert curve.proved == (1.0, 1.0)
        assert all(a <= b for a, b in zip(curve.seconds, curve.worst, strict=True))


# --- verdicts and the report --------------------------------------------------------------------


@pytest.fixture(scope="module")
def small() -> LocalResults:
    """A run on tiny problems under the names of the real ones."""
    runs, loops = [], []
    for cost in COSTS:
        known = list(local.measured(tiny(cost), local_figures.QUICK))
        runs += [replace(r, problem="iris", best=r.costs, known_bound=r.bounds) for r in known]
        runs += [replace(r, problem="digits") for r in known]
        loops.append(beside_plain_loop(tiny(cost), repeats=1))
    # What `ccp` misses must not make the best that is given.
    best = {r.cost: r for r in runs if r.method == "global"}
    runs = [
        r if r.best is None
        else replace(r, best=best[r.cost].costs, known_bound=best[r.cost].bounds)
        for r in runs
    ]  # fmt: skip
    return LocalResults(
        environment=environment(),
        sizes=local_figures.QUICK,
        runs=runs,
        loops=loops,
        growth=local_growth.measure((2, 3), (1, 2), rows=1),
        profiles=[local_profile.measure(tiny("L1", rows=1))],
        seconds=1.0,
    )


def verdicts(results: LocalResults) -> dict[str, bool]:
    return {goal.what: goal.reached for goal in goals(results)}


def changed(results: LocalResults, method: str, problem: str, **changes: Any) -> LocalResults:
    """The same results with something else in the L1 run of one method."""
    wanted = (method, problem, "L1")
    runs = [
        replace(r, **changes) if (r.method, r.problem, r.cost) == wanted else r
        for r in results.runs
    ]
    return replace(results, runs=runs)


def run_of(results: LocalResults, method: str, problem: str) -> Run:
    return next(r for r in results.of(method) if (r.problem, r.cost) == (problem, "L1"))


def test_a_run_is_written_as_json_tables_and_a_picture(small: LocalResults, tmp_path: Path) -> None:
    write_all(small, tmp_path)
    names = ["local.json", "local.md", "local.png"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    content = json.loads((tmp_path / "local.json").read_text("utf-8"))
    assert len(content["runs"]) == len(small.runs)
    assert len(content["goals"]) == len(goals(small))
    assert content["complaints"] == []
    text = (tmp_path / "local.md").read_text("utf-8")
    assert text == markdown(small)
    for heading in ("Figures to reach", "Known optima", "Three methods", "Growth", "Where the"):
        assert f"## {heading}" in text
    assert (tmp_path / "local.png").read_bytes().startswith(b"\x89PNG")


def test_goals_are_reached_by_what_reaches_them(small: LocalResults) -> None:
    quick = small
    for method in METHODS:
        for problem in ("iris", "digits"):
            quick = changed(quick, method, problem, seconds=[0.01] * 3)
    found = {what: reached for what, reached in verdicts(quick).items() if "plain loop" not in what}
    assert len(found) == 11
    assert all(found.values())


@pytest.mark.parametrize(
    ("method", "problem", "changes", "what"),
    [
        ("auto", "iris", {"valid": [True, False, True]}, "known optima, `auto`: valid"),
        ("auto", "iris", {"proved": [True, False, True]}, "known optima, `auto`: OPTIMAL"),
        ("global", "iris", {"proved": [True, True, False]}, "known optima, `global`: OPTIMAL"),
        ("global", "iris", {"seconds": [0.01, 0.2, 0.3]}, "known optima, `global`: median"),
        ("global", "digits", {"proved": [True, False, True]}, "digits, `global`, L1: gap"),
        ("global", "digits", {"seconds": [0.01, 1.2, 1.3]}, "digits, `global`, L1: median"),
        ("global", "digits", {"seconds": [0.01, 0.1, 22.3]}, "digits, `global`, L1: limit"),
    ],
)
def test_goals_are_missed_by_what_misses_them(
    small: LocalResults, method: str, problem: str, changes: dict[str, Any], what: str
) -> None:
    missed = changed(small, method, problem, **changes)
    found = [reached for name, reached in verdicts(missed).items() if name.startswith(what)]
    assert found == [False]
    assert "**not reached**" in markdown(missed)


def test_the_loop_is_judged_by_time_and_by_cost(small: LocalResults) -> None:
    loop = small.loops[0]
    for factor, excess in ((9.9, 1.0), (10.1, 1.01)):
        judged = replace(
            loop,
            seconds=loop.seconds | {PLAIN: factor, BATCH: 1.0},
            mean_costs=loop.mean_costs | {PLAIN: 1.0, BATCH: excess},
        )
        time, cost = goals(replace(small, loops=[judged]))[-2:]
        assert time.reached == (factor >= 10)
        assert cost.reached == (excess <= 1)


def test_costs_below_a_given_bound_are_counted_and_complained_about(small: LocalResults) -> None:
    bounds = [1.1 * cost for cost in run_of(small, "global", "iris").costs]
    broken = changed(small, "global", "iris", known_bound=bounds, best=bounds)
    assert local_figures.below_the_bound(run_of(broken, "global", "iris")) == 3
    assert any("below the given bound" in words for words in complaints(broken))
    assert not next(goal.reached for goal in goals(broken) if "given bound" in goal.what)


def test_bounds_above_an_answer_are_complained_about(small: LocalResults) -> None:
    bounds = [1.01 * cost for cost in run_of(small, "global", "iris").costs]
    words = "\n".join(complaints(changed(small, "auto", "iris", bounds=bounds)))
    assert "lie above an answer of `global`" in words
    assert "above the best cost that is given" in words


def test_costs_are_compared_with_those_of_global_row_by_row(small: LocalResults) -> None:
    costs = np.array(run_of(small, "global", "digits").costs)
    worse = changed(small, "ccp", "digits", costs=(costs * [1.0, 1.00005, 1.5]).tolist())
    found = local_figures.beside_global(worse, run_of(worse, "ccp", "digits"))
    assert found.optimal == pytest.approx(2 / 3)
    assert found.excess == pytest.approx((costs * [1.0, 1.00005, 1.5]).mean() / costs.mean())
    assert found.proved == 0


def test_stored_results_are_those_of_a_full_run() -> None:
    """What the repository shows was measured with the sizes that the code has now."""
    content = json.loads((RESULTS / "local.json").read_text("utf-8"))
    sizes = json.loads(json.dumps(vars(local_figures.FULL)))
    assert content["sizes"] == sizes
    assert content["complaints"] == []

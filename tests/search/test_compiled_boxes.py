"""The compiled branch and bound: against enumeration and MILPs, forced failures, lies, batches."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import counterlvq as clvq
from benchmarks.baselines.milp import cheapest_by_milp
from benchmarks.mixed_problems import drawn_problem
from counterlvq import Feature, Features
from counterlvq.certificates import check_certificate
from counterlvq.certificates.boxes import BoxCertificate
from counterlvq.programs.box_trees import PackedTrees
from counterlvq.search import strategies
from counterlvq.solvers import branching
from tests.search.test_mixed_integer import assert_honest, drawn
from tests.support.mixed_questions import assert_exact
from tests.support.quick import slow, some

KERNEL = "compiled branch and bound"


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> dict[bool, int]:
    """How many answers were looked for, by whether that of the kernel stood up."""
    found = {True: 0, False: 0}
    ask = strategies.BranchAndBound.find

    def spy(*given: Any) -> Any:
        out = ask(*given)
        found[out.engines[0].startswith(KERNEL)] += 1
        return out

    monkeypatch.setattr(strategies.BranchAndBound, "find", spy)
    return found


DRAWS = [(0, range(100, 103)), (1, range(100, 106)), (2, range(100, 106))]
DRAWS += [(0, range(103, 140)), (1, range(106, 140)), (2, range(106, 140))]


@pytest.mark.parametrize(("real", "seeds"), some(DRAWS, quick=3), ids=str)
def test_random_questions_against_enumeration(
    counted: dict[bool, int], real: int, seeds: range
) -> None:
    """Whole numbers, steps, decimals, levels, prices of switches; every class a target."""
    for seed in seeds:
        question, prices, x = drawn(seed, real)
        explainer = question.explainer(prices)
        for target in sorted(set(question.labels.tolist())):
            cf, optimum = explainer.explain(x, target), question.optimum(prices, x, {target})
            if cf.status == "unknown":  # no end to the boxes, and nothing in them
                assert optimum == np.inf
                continue
            assert_exact(question, cf, prices, x, optimum, 1e-6)
            assert explainer.verify(cf) == cf.lower_bound or cf.status == "infeasible"
    # What it leaves are ties, which only the model's own order decides: whole numbers have many.
    assert counted[True] > (0 if real == 0 else 2 * counted[False])


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 2010, 101))
def test_three_thousand_questions_and_their_files(first: int, tmp_path: Path) -> None:
    """Ten parts of 303 questions: against enumeration, and files against the exact checker."""
    asked = 0
    for seed in range(first, first + 101):
        question, prices, x = drawn(seed, seed % 3)
        explainer, path = question.explainer(prices), tmp_path / f"{seed}.jsonl"
        for target in sorted(set(question.labels.tolist())):
            cf, optimum = explainer.explain(x, target), question.optimum(prices, x, {target})
            asked += 1
            if cf.status == "unknown":  # no end to the boxes, and nothing in them
                assert optimum == np.inf
                continue
            assert_exact(question, cf, prices, x, optimum, 1e-6)
            clvq.save_certificate(cf, path, explainer)
            said = list[str]()
            assert check_certificate.main([str(path)], say=said.append) == 0, (seed, said)
    assert asked == 303


@pytest.mark.parametrize(
    ("scale", "rows"), [(1e-6, 4), (1.0, 4), (1e6, 4), slow((1e-6, 40)), slow((1e6, 40))]
)
def test_wider_questions_against_milps(scale: float, rows: int) -> None:
    for width, discrete in ((6, 2), (6, 6), (12, 6)):
        problem = drawn_problem(width, discrete, "L1", "shared", rows)
        price = clvq.Manhattan(np.full(width, scale))
        explainer = clvq.Explainer(problem.model, price, features=problem.features)
        for x, target in zip(problem.inputs, problem.targets, strict=True):
            cf = explainer.explain(x, target)
            assert cf.status == "optimal"
            assert cf.reason.startswith(KERNEL)
            assert cf.cost == pytest.approx(scale * cheapest_by_milp(problem, x, target), rel=1e-6)


def test_values_between_two_steps_may_stay() -> None:
    """An input off the lattice stays where it is, or ends on the lattice."""
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 4.0]], ["no", "yes"], feature_names=["a", "b"])
    features = Features([Feature("a", decimals=1), Feature("b", "whole")])
    price = clvq.Manhattan([5.0, 1.0])
    cf = clvq.Explainer(model, price, features=features).explain([1.33, 0], "yes")
    assert cf.status == "optimal"
    assert list(cf.x) == [1.33, 3]
    assert cf.reason.startswith(KERNEL)
    held = clvq.Explainer(model, price, ["b == original(b)"], features=features)
    cf = held.explain([1.33, 0], "yes")
    assert list(cf.x) == [4.1, 0]  # at 4.0 the two prototypes tie


def test_changes_by_steps_count_from_the_input() -> None:
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], feature_names=["a"])
    features = Features([Feature("a", decimals=1, steps="of change")])
    cf = clvq.Explainer(model, features=features).explain([0.55], "yes")
    assert cf.status == "optimal"
    assert list(cf.x) == [2.05]
    assert cf.reason.startswith(KERNEL)


def test_a_row_without_any_answer_is_proved_to_have_none() -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [9.0, 9.0]], ["no", "yes"], feature_names=["a", "b"])
    features = Features([Feature("a", "whole", lower=0, upper=4), Feature("b", lower=0, upper=3)])
    explainer = clvq.Explainer(model, features=features)
    batch = explainer.explain_batch([[0, 0.0], [4, 3.0]], "yes")
    assert batch.status.tolist() == ["infeasible", "infeasible"]
    assert not batch.second_engine.any()
    assert explainer.explain([0, 0.0], "yes").status == "infeasible"


def test_conditions_that_are_used_up_hold_exactly() -> None:
    """``a + b <= 4`` at whole numbers, where a tightened condition would leave out the best."""
    model = clvq.PrototypeModel([[0.0, 0.0], [3.1, 3.2]], ["no", "yes"], feature_names=["a", "b"])
    features = Features([Feature("a", "whole"), Feature("b", "whole")])
    explainer = clvq.Explainer(model, constraints=["a + b <= 4"], features=features)
    cf = explainer.explain([0, 0], "yes")
    assert cf.cost == 4.0
    assert cf.status == "optimal"
    assert cf.reason.startswith(KERNEL)


# --- failures and lies --------------------------------------------------------------------------


def failing(*given: Any) -> int:
    codes = given[-1]
    codes[:] = 2
    return len(codes)


def test_a_kernel_that_fails_falls_back_and_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = drawn_problem(6, 4, "L1", "shared", 1)
    explainer, (x,), (target,) = problem.explainer(), problem.inputs, problem.targets
    before = explainer.explain(x, target)
    assert before.reason.startswith(KERNEL)
    rows = np.array([x, x])
    assert not explainer.explain_batch(rows, target).second_engine.any()
    for name in ("branch_absolute", "branch_quadratic"):
        monkeypatch.setattr(f"counterlvq.solvers.kernels.branching.{name}", failing)
    after = explainer.explain(x, target)
    assert not after.reason.startswith(KERNEL)
    assert after.cost == pytest.approx(before.cost, rel=1e-6)
    batch = explainer.explain_batch(rows, target)
    assert batch.second_engine.all()
    assert batch.cost.tolist() == [after.cost, after.cost]


@pytest.mark.parametrize("lie", ["multipliers", "cuts", "targets charged", "one tree", "points"])
def test_a_kernel_that_lies_is_not_believed(monkeypatch: pytest.MonkeyPatch, lie: str) -> None:
    rng = np.random.default_rng(0)
    true = branching.branched

    def forged(room: Any, *given: Any) -> Any:
        for part in true(room, *given):
            trees: PackedTrees = part.trees
            if lie == "multipliers":
                trees.value[:] *= rng.choice([-1.0, 2.0, 1e6, np.nan])
            elif lie == "cuts":
                trees.at[:] += rng.normal() * 3
            elif lie == "targets charged":
                trees.indices[:] = np.where(trees.indices >= 0, trees.prototype[0], trees.indices)
            elif lie == "one tree":
                trees.row_count[:] = np.minimum(trees.row_count, 1)
            else:
                part.Y[:] += rng.choice([0.0, 1.0], size=part.Y.shape)
            yield part

    monkeypatch.setattr(branching, "branched", forged)
    for seed, real in ((100, 1), (101, 0), (103, 1)):
        question, prices, x = drawn(seed, real)
        explainer = question.explainer(prices)
        for target in sorted(set(question.labels.tolist())):
            assert_honest(question, explainer.explain(x, target), prices, x, target)


# --- batches ------------------------------------------------------------------------------------


@cache
def shop() -> tuple[Any, pd.DataFrame]:
    rng = np.random.default_rng(3)
    n = 160
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "income": rng.normal(3.0, 1.0, n).round(2),
            "job": rng.choice(["clerk", "nurse", "smith"], n),
            "home": rng.choice(["rent", "own"], n),
        }
    )
    label = np.where(table.income + 0.02 * table.age + (table.home == "own") > 4.5, "yes", "no")
    steps = make_column_transformer(
        (StandardScaler(), ["age", "income"]), (OneHotEncoder(), ["job", "home"])
    )
    model = make_pipeline(steps, clvq.GMLVQ(prototypes_per_class=2, random_state=0))
    return model.fit(table, label), table


@pytest.mark.parametrize("cost", ["absolute", "squared"])
def test_batch_equals_single_on_any_number_of_threads(cost: str) -> None:
    model, table = shop()
    price = clvq.Manhattan(clvq.mad_weights(table))
    if cost == "squared":
        price = clvq.Mahalanobis(np.diag([0.01, 1.0]))
    explainer = clvq.Explainer(model, price, ["age >= original(age)"], features=table)
    rows = table.iloc[:24]
    one, two = (explainer.explain_batch(rows, n_jobs=jobs) for jobs in (1, 2))
    assert one.second_engine.mean() < 0.2
    for name in ("cost", "lower_bound", "gap", "prototype", "status", "values", "second_engine"):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name
    for i in range(len(rows)):
        cf = explainer.explain(rows.iloc[i])
        assert cf.values.tolist() == one.values[i].tolist()
        assert (cf.cost, cf.lower_bound, cf.gap) == (one.cost[i], one.lower_bound[i], one.gap[i])
        assert (str(cf.status), cf.prototype) == (one.status[i], one.prototype[i])
        if isinstance(cf.certificate, BoxCertificate):
            assert explainer.verify(cf) == cf.lower_bound


def test_more_combinations_of_levels_than_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("counterlvq.explainer.asked._MOST_VIEWS", 2)
    model, table = shop()
    explainer = clvq.Explainer(model, features=table)
    batch = explainer.explain_batch(table.iloc[:30])
    assert len(explainer._views._known) <= 2
    assert (batch.status == "optimal").all()


@pytest.mark.parametrize("cost", ["absolute", "squared"])
def test_the_exact_checker_agrees(cost: str, tmp_path: Path) -> None:
    """In rational numbers, with conditions on levels, and without any of our proofs."""
    model, table = shop()
    price = clvq.Manhattan(clvq.mad_weights(table))
    if cost == "squared":
        price = clvq.Mahalanobis(np.diag([0.01, 1.0]))
    rules = ["age >= original(age)", "if job == 'nurse' then income >= 2"]
    batch = clvq.Explainer(model, price, rules, features=table).explain_batch(table.iloc[:8])
    assert not batch.second_engine.any()
    path, said = tmp_path / "answers.jsonl", list[str]()
    batch.save_certificates(path)
    assert all(line.verified for line in clvq.verify_certificates(path))
    assert check_certificate.main([str(path)], say=said.append) == 0
    assert len([line for line in said if line.startswith("VERIFIED")]) == 8

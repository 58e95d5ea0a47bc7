"""Local metrics: optima from SCIP, from dense grids, and recorded ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import counterlvq as clvq
from tests.support import catalogue, local_questions
from tests.support.local_questions import (
    COSTS,
    METRICS,
    NAMES,
    ROUNDING,
    LocalQuestion,
    draw,
    wishes,
)
from tests.support.quick import some

GAP = 1e-4  # the default
DATA = Path(__file__).parents[1] / "data"

each_metric = pytest.mark.parametrize("metric", METRICS)
each_cost = pytest.mark.parametrize("cost", COSTS)


@cache
def optimum(question: LocalQuestion) -> local_questions.Optimum:
    return local_questions.optimum(question)


@cache
def answer(question: LocalQuestion) -> clvq.Counterfactual:
    return question.explain()


def assert_valid(question: LocalQuestion, cf: clvq.Counterfactual) -> None:
    assert question.admissible(cf.x).all(), question.name
    assert cf.prediction in question.targets
    assert question.model().predict(cf.x[None])[0] == cf.prediction
    assert cf.cost == pytest.approx(float(question.cost(cf.x)), rel=1e-9, abs=1e-3 * question.floor)


def assert_honest(question: LocalQuestion, cf: clvq.Counterfactual) -> None:
    """Whatever the status, it is true."""
    best = optimum(question)
    room = ROUNDING * best.reached + question.floor if best.reached < np.inf else 0.0
    assert cf.lower_bound <= best.reached + room, question.name
    if cf.status.has_answer:
        assert_valid(question, cf)
        assert cf.cost >= best.undercut_by_none - room
        assert cf.lower_bound <= cf.cost
        # A gap is the share that is not proved, up to what rounding leaves of a cost near zero.
        assert (1 - cf.gap) * cf.cost <= cf.lower_bound + question.floor
    else:
        assert np.isnan(cf.x).all()
        assert cf.cost == np.inf
        assert cf.prototype == -1
    if cf.status == "optimal":
        assert cf.cost <= best.reached * (1 + 1.01 * GAP) + room, question.name
    if cf.status == "infeasible":
        assert best.reached == np.inf, question.name


def assert_solved(question: LocalQuestion, cf: clvq.Counterfactual) -> None:
    assert_honest(question, cf)
    assert cf.status == ("infeasible" if optimum(question).reached == np.inf else "optimal")


def ladder(question: LocalQuestion) -> None:
    """ccp >= auto >= global >= bound, each as good as it says."""
    found = {}
    # That there is no answer anywhere can take long to show, or not be shown at all.
    limit = None if optimum(question).reached < np.inf else 0.5
    for method in ("ccp", "auto", "global"):
        explainer = question.explainer(method, time_limit=limit)
        cf = found[method] = explainer.explain(question.x, question.target)
        assert_honest(question, cf)
        assert explainer.verify(cf) == cf.lower_bound
        # Another explainer of the same question confirms the proof.
        assert question.explainer("auto").verify(cf) == cf.lower_bound
    if limit is None:
        assert_solved(question, found["global"])
    ccp, auto, best = (found[method].cost for method in ("ccp", "auto", "global"))
    if best < np.inf:
        assert found["auto"].status.has_answer
        assert ccp >= best * (1 - 1.01 * GAP) - question.floor
        assert ccp >= auto * (1 - 1e-9)
        assert auto >= best * (1 - 1e-9) or auto >= found["global"].lower_bound


# --- against SCIP -------------------------------------------------------------------------------


@pytest.mark.covering
@each_cost
@each_metric
def test_every_wish_costs_what_scip_says(metric: str, cost: str) -> None:
    for question in wishes(draw(metric, cost, 0)):
        ladder(question)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 9))
@each_cost
@each_metric
def test_more_wishes_cost_what_scip_says(metric: str, cost: str, seed: int) -> None:
    for question in wishes(draw(metric, cost, seed)):
        ladder(question)


@pytest.mark.covering
@pytest.mark.parametrize("seed", some([100, 101], quick=1))
@each_cost
@each_metric
def test_rules_cost_what_scip_says(metric: str, cost: str, seed: int) -> None:
    bare = draw(metric, cost, seed)
    question = local_questions.ruled(bare, seed + 7 * list(METRICS).index(metric))
    ladder(question)
    # A rule never makes an answer cheaper.
    free, held = bare.explain(), question.explain(time_limit=5.0)
    assert held.cost >= free.lower_bound
    assert held.cost >= free.cost * (1 - 1.01 * GAP) - bare.floor


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 220))
@each_cost
@each_metric
def test_more_rules_cost_what_scip_says(metric: str, cost: str, seed: int) -> None:
    bare = draw(metric, cost, seed)
    question = local_questions.ruled(bare, seed)
    ladder(question)
    assert question.explain(time_limit=5.0).cost >= bare.explain().lower_bound


@pytest.mark.covering
@each_cost
@pytest.mark.parametrize(
    "powers",
    [(-6, 6, 0), (6, 5, -6), pytest.param((-6, -6, -6), marks=pytest.mark.slow), (6, 6, 6)],
    ids=str,
)
def test_units_do_not_matter(cost: str, powers: Sequence[int]) -> None:
    question = draw("per prototype", cost, 3, d=3)
    units = 10.0 ** np.array(powers)
    for plain in wishes(question):
        scaled = plain.scaled(units)
        here, there = answer(plain), scaled.explain()
        assert here.status == there.status == "optimal"
        assert_valid(scaled, there)
        assert there.cost == pytest.approx(here.cost, rel=1.01 * GAP)
        assert_honest(plain, replace(there, values=there.x / units, original_values=plain.x))
        assert scaled.explainer().verify(there) == there.lower_bound


def with_offsets(cost: str) -> list[LocalQuestion]:
    rng, drawn = np.random.default_rng(5), [draw("per prototype", cost, seed) for seed in range(2)]
    return [replace(bare, offsets=rng.exponential(1.0, len(bare.labels))) for bare in drawn]


@pytest.mark.covering
@pytest.mark.parametrize("seed", [0, 1])
@each_cost
def test_offsets_are_counted(cost: str, seed: int) -> None:
    for question in wishes(with_offsets(cost)[seed]):
        if optimum(question).reached < np.inf:
            ladder(question)
        else:  # a prototype so far off that it never wins; to show that can take long
            assert_honest(question, question.explain(time_limit=0.5))


def test_copy_of_a_prototype_with_a_smaller_offset_counts() -> None:
    """The earlier of two equals wins, but these two are not equal."""
    W, omega = np.array([[0.0], [3.0], [3.0]]), np.eye(1)
    omegas = [omega, 2 * omega, 2 * omega]
    x, price = np.zeros(1), catalogue.manhattan(1)
    offsets = np.array([0.0, 9.0, 0.0])
    # At 2 the scores are 4 and 4 (2 - 3)^2; with 9 on top of it the second never wins at 2.
    for labels in (["a", "a", "b"], ["a", "b", "b"]):
        question = LocalQuestion("copy", W, labels, omegas, x, "b", price, offsets=offsets)
        cf = question.explain()
        assert cf.status == "optimal"
        assert cf.cost == pytest.approx(2.0, rel=1e-4)
        assert cf.lower_bound <= 2.0


# --- against grids ------------------------------------------------------------------------------


def grid_bound(question: LocalQuestion) -> float:
    """Least cost on a dense grid around x, finer where the first one was best."""
    d, n = question.x.size, {1: 20001, 2: 501}[question.x.size]
    center, half = question.x, 4.0 * np.ptp(np.vstack([question.prototypes, question.x]), axis=0)
    model, best = question.model(), np.inf
    for _ in range(4):
        axes = [np.linspace(c - h, c + h, n) for c, h in zip(center, half, strict=True)]
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, d)
        for constraint in question.constraints:
            points = points[constraint.holds(points, 0.0)]
        costs = question.cost(points)
        found = first_wished(question, model, points[np.argsort(costs)])
        if found is None:
            break
        cost = float(question.cost(found))
        if cost < best:
            best, center = cost, found
        half = half / 20
    return best


def first_wished(
    question: LocalQuestion, model: clvq.PrototypeModel, points: np.ndarray, at_once: int = 4096
) -> np.ndarray | None:
    """The first of some points that the model calls as wished; the model is not asked for more."""
    for start in range(0, len(points), at_once):
        some = points[start : start + at_once]
        wished = np.isin(model.predict(some), question.targets)
        if wished.any():
            return some[np.argmax(wished)]
    return None


@pytest.mark.covering
@pytest.mark.parametrize("d", [1, 2])
@each_cost
@each_metric
def test_no_point_of_a_grid_is_cheaper(metric: str, cost: str, d: int) -> None:
    question = draw(metric, cost, 40, d=d)
    cf = question.explain()
    seen = grid_bound(question)
    assert cf.status == "optimal"
    assert_valid(question, cf)
    assert cf.lower_bound <= seen * (1 + 1e-9)
    # The grid comes near the answer, or it would show nothing.
    assert seen <= cf.cost * 1.05 + question.floor


@each_cost
def test_no_point_of_a_grid_is_cheaper_under_rules(cost: str) -> None:
    bare = draw("per class", cost, 41, d=2)
    x = bare.x
    rules = (catalogue.bounds(0, x[0] - 0.4, x[0] + 0.6), catalogue.increase(x, 1))
    question = replace(bare, rules=rules)
    cf, seen = question.explain(), grid_bound(question)
    assert cf.status == ("infeasible" if seen == np.inf else "optimal")
    assert cf.lower_bound <= seen * (1 + 1e-9)
    if seen < np.inf:
        assert_valid(question, cf)
        assert seen <= cf.cost * 1.05 + question.floor


# --- one metric for all -------------------------------------------------------------------------


@each_cost
def test_equal_metrics_give_the_answer_of_the_shared_one(cost: str) -> None:
    question = draw("per prototype", cost, 8, d=3)
    omega = question.omegas[0]
    same = replace(question, omegas=[omega.copy() for _ in question.omegas])
    shared = clvq.PrototypeModel(question.prototypes, question.labels, omegas=omega)
    for method in ("ccp", "auto", "global"):
        local = same.explain(method)
        core = clvq.Explainer(shared, question.price.public, method=method).explain(question.x)
        assert np.array_equal(local.x, core.x)
        assert (local.cost, local.lower_bound) == (core.cost, core.lower_bound)
        assert local.status == core.status == "optimal"


@each_cost
def test_metrics_equal_but_for_their_sign_come_to_the_shared_answer(cost: str) -> None:
    """Equal distances from unequal factors: the search for local metrics solves a shared case."""
    question = draw("per prototype", cost, 9, d=3)
    omega = question.omegas[0]
    mirrored = [omega if k % 2 else -omega for k in range(len(question.omegas))]
    shared = clvq.PrototypeModel(question.prototypes, question.labels, omegas=omega)
    core = clvq.Explainer(shared, question.price.public).explain(question.x)
    local = replace(question, omegas=mirrored).explain()
    assert local.status == "optimal"
    assert local.cost == pytest.approx(core.cost, rel=1.01 * GAP)
    assert local.lower_bound <= core.cost


# --- recorded -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recorded:
    test_row: int
    target: int
    ccp_from_prototype: float
    best: float
    proved_lower_bound: float


with open(DATA / "local_optima.json", encoding="utf-8") as stored:
    RECORDED = {key: [Recorded(**one) for one in rows] for key, rows in json.load(stored).items()}
DIGITS, BOUND = 1e-6, 2e-5  # six decimals; what a bound is good to


@pytest.mark.parametrize("start", some([0, 2, 4, 6], quick=1))
@pytest.mark.parametrize("key", RECORDED)
def test_recorded_optima_are_met(key: str, start: int) -> None:
    """Every other row by each method."""
    assert_met(key, "auto", RECORDED[key][start::8])
    assert_met(key, "global", RECORDED[key][start + 1 :: 8])


@pytest.mark.slow
@pytest.mark.parametrize("key", RECORDED)
def test_recorded_optima_are_met_by_the_other_method(key: str) -> None:
    assert_met(key, "global", RECORDED[key][::2])
    assert_met(key, "auto", RECORDED[key][1::2])


def assert_met(key: str, method: str, rows: Sequence[Recorded]) -> None:
    name, cost = key.rsplit("_", 1)
    with np.load(DATA / "models" / f"{name}.npz") as arrays:
        W, labels, X = arrays["w_"], arrays["c_w_"], arrays["X_test"]
        omegas = list(arrays["omegas_"])
    if len(omegas) < len(labels):  # one metric per class
        omegas = [omegas[label] for label in labels]
    model = clvq.PrototypeModel(W, labels, omegas=omegas)
    price = clvq.Manhattan() if cost == "l1" else clvq.Euclidean()
    explainer = clvq.Explainer(model, price, method=method)
    for one in rows:
        cf = explainer.explain(X[one.test_row], one.target)
        assert cf.status == "optimal", one
        assert model.predict(cf.x[None])[0] == one.target
        assert cf.lower_bound <= one.best * (1 + BOUND) + DIGITS
        # The margin there is 1e-6: without it the optimum may be a trifle lower.
        assert cf.cost >= one.proved_lower_bound * (1 - BOUND) - DIGITS, one
        assert cf.cost <= one.best * (1 + GAP) + DIGITS, one


def test_wishes_are_for_every_class() -> None:
    """Else a class would be left out of all of the above."""
    asked = {q.target for cost in COSTS for q in wishes(draw("per class", cost, 0))}
    assert asked <= {*NAMES.tolist(), None}
    assert len(asked) >= 3


@pytest.mark.parametrize("method", ["auto", "global"])
@pytest.mark.parametrize("cost", [clvq.Manhattan(), clvq.Euclidean()], ids=repr)
def test_ties_that_the_earlier_prototype_wins_are_found(cost: clvq.Cost, method: str) -> None:
    """The first is as near as the second where ``x0 = 1`` alone, and the third is farther there."""
    omegas = [np.diag([2.0, 1.0]), np.eye(2), np.eye(2)]
    model = clvq.PrototypeModel(
        [[1.0, 1.0], [1.0, 1.0], [-3.0, 0.0]], ["a", "b", "b"], omegas=omegas
    )
    cf = clvq.Explainer(model, cost, method=method).explain([0.0, 0.0], target="a")
    assert cf.status is clvq.Status.OPTIMAL
    assert cf.values.tolist() == [1.0, 0.0]
    assert cf.cost == 1.0


def test_prototype_that_wins_at_itself_alone_is_found() -> None:
    omegas = [2.0 * np.eye(2), np.eye(2)]
    model = clvq.PrototypeModel([[1.0, 1.0], [1.0, 1.0]], ["a", "b"], omegas=omegas)
    cf = clvq.Explainer(model).explain([0.0, 0.0], target="a")
    assert cf.status is clvq.Status.OPTIMAL
    assert cf.values.tolist() == [1.0, 1.0]

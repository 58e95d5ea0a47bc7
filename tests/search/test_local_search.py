"""Local metrics through the public surface: limits, contradictions, batches, progress."""

from __future__ import annotations

import pickle
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq.search import branch_and_bound as branching
from counterlvq.search.progress import Progress
from tests.search.test_local_optima import assert_honest, assert_solved, assert_valid
from tests.support import catalogue
from tests.support.local_questions import COSTS, LocalQuestion, draw, wishes

each_cost = pytest.mark.parametrize("cost", COSTS)
each_method = pytest.mark.parametrize("method", ["ccp", "auto", "global"])


def hard(seed: int = 0) -> LocalQuestion:
    """Ten features and as many classes of three prototypes: a proof takes a while."""
    rng = np.random.default_rng(seed)
    d, labels = 10, np.repeat(np.arange(10), 3)
    W = rng.normal(size=(labels.size, d)) + rng.normal(size=(10, d))[labels]
    omegas = [0.5 * rng.normal(size=(d, d)) for _ in labels]
    x = W[0] + 0.3 * rng.normal(size=d)
    own = clvq.PrototypeModel(W, labels, omegas=omegas).predict(x[None])[0]
    target = int((own + 4) % 10)
    return LocalQuestion("hard", W, labels.tolist(), omegas, x, target, catalogue.manhattan(d))


# --- limits -------------------------------------------------------------------------------------


@each_method
@each_cost
def test_no_time_at_all_is_said_so(cost: str, method: str) -> None:
    for question in wishes(draw("per prototype", cost, 20)):
        cf = question.explain(method, time_limit=0)
        assert cf.status == "unknown"
        assert cf.lower_bound == 0.0
        assert cf.conflict == ()
        assert_honest(question, cf)


@each_method
def test_no_time_at_all_is_no_reason_to_deny_what_is_there(method: str) -> None:
    question = draw("per prototype", "l1", 20)
    here = replace(question, target=question.predict(question.x)[0])
    cf = here.explain(method, time_limit=0)
    assert cf.status == "optimal"
    assert (cf.cost, cf.lower_bound, cf.gap) == (0.0, 0.0, 0.0)
    assert np.array_equal(cf.x, question.x)


@each_method
@pytest.mark.parametrize("limit", [0.0, 1e-6, 0.02, 0.3])
def test_time_limit_is_kept(method: str, limit: float) -> None:
    """Three times what is promised, because other work may be going on."""
    question = hard()
    question.explain("auto", gap=0.9)  # whatever has to be compiled is compiled here
    explainer = question.explainer(method, time_limit=limit, gap=0.0)
    start = time.perf_counter()
    cf = explainer.explain(question.x, question.target)
    assert time.perf_counter() - start <= 3 * (1.1 * limit + 0.2)
    if cf.status.has_answer:
        assert_valid(question, cf)
    assert cf.lower_bound <= cf.cost
    assert explainer.verify(cf) == cf.lower_bound


def test_more_time_does_no_harm() -> None:
    question = hard(1)
    short, long = (question.explain(time_limit=limit) for limit in (0.1, 1.5))
    assert long.cost <= short.cost * (1 + 1e-9)
    assert long.lower_bound >= short.lower_bound * (1 - 1e-4)
    assert short.lower_bound <= long.cost


@each_cost
def test_gap_of_nothing_is_never_claimed(cost: str) -> None:
    question = draw("per prototype", cost, 21)
    cf = question.explain(gap=0.0, time_limit=1.0)
    assert_honest(question, cf)
    assert cf.status == ("optimal" if cf.gap == 0.0 else "feasible")
    assert cf.gap <= 1e-6


@each_method
def test_wide_gap_is_enough(method: str) -> None:
    question = draw("per prototype", "l1", 22)
    cf = question.explain(method, gap=0.5)
    assert_valid(question, cf)
    assert cf.gap >= 0
    assert cf.status == ("optimal" if cf.gap <= 0.5 else "feasible")
    tight = question.explain("global")
    assert cf.lower_bound <= tight.cost
    assert tight.cost <= cf.cost * (1 + 1e-4)
    if method != "ccp":
        assert cf.status == "optimal"


@each_cost
def test_ccp_alone_is_not_called_optimal(cost: str) -> None:
    for seed in range(5):
        cf = draw("per class", cost, seed).explain("ccp")
        assert cf.status == "feasible"
        assert cf.lower_bound == 0.0


# --- rules that leave no room -------------------------------------------------------------------


@pytest.mark.covering
@each_method
@each_cost
def test_contradiction_is_named(cost: str, method: str) -> None:
    question = draw("per prototype", cost, 23)
    rules = ["x0 >= 1", clvq.Increase(1), clvq.Bounds(0, upper=0.5)]
    explainer = clvq.Explainer(question.model(), question.price.public, rules, method=method)
    cf = explainer.explain(question.x)
    assert cf.status == "infeasible"
    assert set(cf.conflict) == {rules[0], rules[2]}
    assert cf.lower_bound == np.inf
    assert np.isnan(cf.x).all()


@each_cost
def test_cell_out_of_reach_is_named(cost: str) -> None:
    question = draw("per prototype", cost, 24, d=2)
    x = question.x
    fence = (catalogue.max_change(x, 0, 1e-3), catalogue.max_change(x, 1, 1e-3))
    useless = catalogue.bounds(0, upper=x[0] + 100.0)
    held = replace(question, rules=(useless, *fence))
    cf = held.explain()
    assert_solved(held, cf)
    assert cf.status == "infeasible"
    assert set(cf.conflict) == {rule.public for rule in fence}
    # Irreducible: without either there is room.
    for rule in fence:
        assert replace(question, rules=(useless, rule)).explain().status.has_answer


def test_everything_frozen_is_infeasible() -> None:
    question = draw("per class", "l2", 25, d=3)
    held = replace(question, rules=(catalogue.freeze(question.x, 0, 1, 2),))
    cf = held.explain("auto")
    assert cf.status == "infeasible"
    assert cf.conflict == (held.rules[0].public,)


def test_prototype_under_a_rival_is_never_claimed() -> None:
    """A rival on the same spot with a smaller metric wins everywhere."""
    W, labels = np.array([[0.0, 0.0], [0.0, 0.0], [3.0, 0.0]]), ["a", "b", "c"]
    omegas = [np.eye(2), 2 * np.eye(2), np.eye(2)]
    model = clvq.PrototypeModel(W, labels, omegas=omegas)
    for method in ("ccp", "auto", "global"):
        cf = clvq.Explainer(model, method=method, time_limit=0.3).explain([1.0, 0.0], "b")
        assert cf.status in ("infeasible", "unknown")
        assert np.isnan(cf.x).all()


def test_input_with_the_wished_label_that_breaks_a_rule_moves() -> None:
    question = draw("per prototype", "l1", 26, d=2)
    own = question.predict(question.x)[0]
    rule = catalogue.bounds(0, lower=question.x[0] + 0.25)
    held = replace(question, target=own, rules=(rule,))
    cf = held.explain()
    assert_solved(held, cf)
    assert cf.cost > 0


@each_method
def test_margin_is_kept(method: str) -> None:
    question = draw("per prototype", "l2", 27)
    margin = 0.05
    cf = question.explain(method, margin=margin)
    assert_valid(question, cf)
    scores = question.scores(cf.x)[0]
    wished = np.isin(question.labels, question.targets)
    assert scores[~wished].min() - scores[wished].min() >= margin * (1 - 1e-9)
    # The bound is that of the points that keep the margin.
    if method != "ccp":  # which proves nothing
        assert question.explain().lower_bound <= cf.lower_bound <= cf.cost
    assert cf.bound_with_margin == cf.lower_bound


# --- rows ---------------------------------------------------------------------------------------


def rows(question: LocalQuestion, n: int) -> np.ndarray:
    return question.x + np.random.default_rng(1).normal(size=(n, question.x.size))


def assert_same(one: clvq.Counterfactual, other: clvq.Counterfactual) -> None:
    assert np.array_equal(one.x, other.x, equal_nan=True)
    assert (one.cost, one.lower_bound, one.gap) == (other.cost, other.lower_bound, other.gap)
    assert (one.status, one.prototype, one.target) == (other.status, other.prototype, other.target)


@pytest.mark.covering
@each_method
@each_cost
def test_batch_is_row_by_row(cost: str, method: str) -> None:
    question = draw("different ranks", cost, 28)
    X, explainer = rows(question, 3), question.explainer(method)
    labels = list(dict.fromkeys(question.labels))
    each: list[Any] = [labels[i % len(labels)] for i in range(len(X))]
    for target, wish in ((None, [None] * len(X)), (labels[0], [labels[0]] * len(X)), (each, each)):
        batch = explainer.explain_batch(X, target)
        for i, x in enumerate(X):
            alone = explainer.explain(x, wish[i])
            assert_same(batch[i], alone)
            assert np.array_equal(batch.X[i], alone.x, equal_nan=True)
            assert (batch.cost[i], batch.lower_bound[i]) == (alone.cost, alone.lower_bound)
            assert batch.status[i] == alone.status
            assert batch.prototype[i] == alone.prototype


@pytest.mark.machine
def test_jobs_do_not_matter(capfd: pytest.CaptureFixture[str]) -> None:
    question = draw("per prototype", "l1", 29)
    X, explainer = rows(question, 8), question.explainer()
    one = explainer.explain_batch(X, n_jobs=1)
    two = explainer.explain_batch(X, n_jobs=2, progress=True)
    assert "100%" in capfd.readouterr().err
    for i in range(len(X)):
        assert_same(one[i], two[i])
        assert explainer.verify(two[i]) == one.lower_bound[i]


def test_batch_keeps_its_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    question = draw("per class", "l2", 30)
    explainer = question.explainer()
    batch = explainer.explain_batch(rows(question, 3))

    def refuse(*_: Any) -> None:
        raise AssertionError("solved again")

    monkeypatch.setattr(branching, "relax", refuse)
    monkeypatch.setattr(branching.Branching, "run", refuse)
    for i in range(3):
        assert explainer.verify(batch[i]) == batch.lower_bound[i]
        assert batch[i].certificate is batch[i].certificate


def test_batch_without_time() -> None:
    question = draw("per class", "l2", 31)
    late = question.explainer(time_limit=0).explain_batch(rows(question, 3))
    assert set(late.status.tolist()) <= {"unknown", "optimal"}
    assert (late.lower_bound == 0.0).all()


def test_explainer_can_be_sent_to_another_process() -> None:
    question = draw("per class", "l1", 32)
    explainer = question.explainer()
    first = explainer.explain(question.x)
    assert_same(pickle.loads(pickle.dumps(explainer)).explain(question.x), first)


def test_interrupted_batch_harms_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    question = draw("per prototype", "l1", 33)
    explainer, X = question.explainer(), rows(question, 4)
    truth, calls = explainer.explain_batch(X), 0
    honest = branching.relax

    def interrupted(*told: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise KeyboardInterrupt
        return honest(*told)

    with monkeypatch.context() as patched:
        patched.setattr(branching, "relax", interrupted)
        with pytest.raises(KeyboardInterrupt):
            explainer.explain_batch(X)
    again = explainer.explain_batch(X)
    for i in range(len(X)):
        assert_same(again[i], truth[i])


# --- progress -----------------------------------------------------------------------------------


def test_progress_closes() -> None:
    question, told = hard(0), list[Progress]()
    explainer = question.explainer(time_limit=1.0)
    cf = explainer.explain(question.x, question.target, progress=told.append)
    assert len(told) > 1
    costs, bounds, gaps, nodes = (np.array(column) for column in zip(*told, strict=True))
    assert (np.diff(costs) <= 0).all()
    assert (np.diff(bounds) >= -1e-9 * np.abs(bounds[1:])).all()
    assert (np.diff(nodes) >= 0).all()
    assert (bounds <= costs).all()
    assert ((gaps >= 0) & (gaps <= 1)).all()
    assert costs[-1] == pytest.approx(cf.cost)
    assert bounds[-1] == pytest.approx(cf.lower_bound, rel=1e-3)
    assert bounds[-1] <= cf.cost


def test_progress_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    question = draw("per prototype", "l1", 0)
    question.explainer().explain(question.x, progress=True)
    shown = capsys.readouterr().err
    assert "bound" in shown
    assert shown.endswith("\n")


def test_progress_that_raises_is_the_callers_own() -> None:
    question = draw("per prototype", "l1", 0)
    explainer = question.explainer()

    def stop(_: Progress) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        explainer.explain(question.x, progress=stop)
    assert explainer.explain(question.x).status == "optimal"


def test_same_question_same_answer() -> None:
    for cost in COSTS:
        question = draw("partly shared", cost, 34)
        assert_same(question.explain(), question.explain())


def test_order_of_prototypes_does_not_matter() -> None:
    for cost in COSTS:
        question = draw("different ranks", cost, 35)
        order = np.random.default_rng(0).permutation(len(question.labels))
        other = replace(
            question,
            prototypes=question.prototypes[order],
            labels=[question.labels[k] for k in order],
            omegas=[question.omegas[k] for k in order],
        )
        one, two = question.explain(), other.explain()
        assert one.cost == pytest.approx(two.cost, rel=1.01e-4)


@pytest.mark.parametrize("cost", ["l1", "l2"])
def test_last_digits_of_the_input_do_not_choose_the_valley(cost: str) -> None:
    for seed in range(6):
        question = draw("per prototype", cost, seed, d=6)
        nudge = 1e-12 * np.random.default_rng(seed).standard_normal(question.x.size)
        moved = replace(question, x=question.x * (1.0 + nudge))
        assert moved.explain("ccp").cost == pytest.approx(question.explain("ccp").cost, rel=1e-6)


@pytest.mark.parametrize("margin", [0.9, 1.1, 1.3])
@pytest.mark.parametrize("method", ["ccp", "auto", "global"])
def test_margin_that_the_prototype_itself_does_not_keep(method: str, margin: float) -> None:
    """At the prototype the lead is 1; it grows to 4/3 behind it, and the way there is found."""
    model = clvq.PrototypeModel([[0, 0], [1, 0]], ["a", "b"], [np.eye(2), 2 * np.eye(2)])
    explainer = clvq.Explainer(model, margin=margin, method=method, time_limit=5)
    answer = explainer.explain([0, 0], target="b")
    # Along the first feature: 4 (y - 1)^2 + margin = y^2.
    expected = (8 - np.sqrt(64 - 12 * (4 + margin))) / 6
    assert answer.status == "feasible"
    assert answer.cost == pytest.approx(expected, rel=1e-5)

"""Relaxations and searches that lie: under local metrics, too, the user never sees it as a fact."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq.certificates.boxes import BoxCertificate
from counterlvq.programs.nonconvex import Box, LiftedMultipliers, NonconvexProgram
from counterlvq.programs.program import Multipliers
from counterlvq.search import branch_and_bound
from counterlvq.solvers import ccp, semidefinite
from counterlvq.solvers import ccp_round as convexified
from counterlvq.solvers.ccp_round import Round
from counterlvq.solvers.clarabel_guard import Raw
from counterlvq.solvers.semidefinite import Relaxed
from counterlvq.solvers.solution import Outcome
from tests.search.test_local_optima import assert_honest, assert_solved, optimum
from tests.support import catalogue, local_questions
from tests.support.local_questions import LocalQuestion, draw

honest_relax = branch_and_bound.relax

# A liar may keep a search busy for as long as it may take.
PATIENCE = 0.03


def requests() -> list[LocalQuestion]:
    first, second, third = (
        draw("per prototype", "l1", 0),
        draw("rank deficient", "l2", 1, d=2),
        draw("per class", "mahalanobis", 2),
    )
    held = catalogue.bounds(0, first.x[0] - 0.3, first.x[0] + 0.3)
    tied = catalogue.linear(2, {0: 1.0, 1: 1.0}, "==", float(second.x.sum()) + 0.1)
    ball = catalogue.ellipsoid(third.x.size, np.eye(third.x.size), 4.0, third.x)
    near = draw("per prototype", "l1", 0, d=2)
    still = catalogue.max_change(near.x, 0, 1e-3), catalogue.max_change(near.x, 1, 1e-3)
    return [
        first,
        second,
        third,
        replace(first, name="held", rules=(held,)),
        replace(second, name="tied", rules=(tied,)),
        replace(third, name="ball", rules=(ball,)),
        replace(near, name="nothing in reach", rules=still),
    ]


REQUESTS = requests()
each_request = pytest.mark.parametrize("question", REQUESTS, ids=lambda question: question.name)


def ask(question: LocalQuestion, method: str = "global") -> clvq.Counterfactual:
    return question.explain(method, time_limit=PATIENCE)


@each_request
def test_honest_solvers_are_believed(question: LocalQuestion) -> None:
    """Else catching lies would be easy."""
    assert_solved(question, question.explain())


# --- lies of the relaxation ---------------------------------------------------------------------

Change = Callable[[np.ndarray], np.ndarray]


def with_prices(change: Change) -> Callable[..., Relaxed]:
    """Everything that is charged, and the point, put through `change`."""

    def relax(*told: Any) -> Relaxed:
        true = honest_relax(*told)
        prices = true.prices
        values = {
            field.name: change(getattr(prices, field.name))
            for field in fields(LiftedMultipliers)
            if field.name not in ("linear", "point")
        }
        y, z, nu = (change(getattr(prices.linear, name)) for name in ("y", "z", "nu"))
        return replace(true, prices=replace(prices, linear=Multipliers(y, z, nu), **values))

    return relax


def with_point(change: Change) -> Callable[..., Relaxed]:
    def relax(*told: Any) -> Relaxed:
        true = honest_relax(*told)
        return replace(true, prices=replace(true.prices, point=change(true.prices.point)))

    return relax


def with_miss(change: Change) -> Callable[..., Relaxed]:
    def relax(*told: Any) -> Relaxed:
        true = honest_relax(*told)
        return replace(true, miss=change(true.miss))

    return relax


def with_outcome(outcome: Outcome, size: float | None = None) -> Callable[..., Relaxed]:
    """Claim an outcome, on honest prices or on the same price for everything."""

    def relax(*told: Any) -> Relaxed:
        true = replace(honest_relax(*told), outcome=outcome)
        if size is None:
            return true
        return replace(with_prices(lambda value: np.full_like(value, size))(*told), outcome=outcome)

    return relax


def random_claims(seed: int) -> Callable[..., Relaxed]:
    rng = np.random.default_rng(seed)

    def relax(problem: NonconvexProgram, box: Box, *rest: Any) -> Relaxed:
        liar = with_prices(lambda value: rng.exponential(3.0, value.shape) * rng.choice([1, 1e3]))
        told = liar(problem, box, *rest)
        point = 3 * rng.normal(size=box.lower.size)
        outcome = list(Outcome)[rng.integers(3)]
        return replace(told, outcome=outcome, prices=replace(told.prices, point=point))

    return relax


LIES: dict[str, Callable[..., Relaxed]] = {
    "charges nothing": with_prices(np.zeros_like),
    "charges half": with_prices(lambda value: 0.5 * value),
    "charges double": with_prices(lambda value: 2 * value),
    "charges a little more": with_prices(lambda value: (1 + 1e-5) * value),
    "charges far too much": with_prices(lambda value: 1e12 * (1 + np.abs(value))),
    "charges the largest number": with_prices(lambda value: np.full_like(value, 1e308)),
    "pays instead": with_prices(lambda value: -value),
    "charges NaN": with_prices(lambda value: np.full_like(value, np.nan)),
    "charges infinity": with_prices(lambda value: np.full_like(value, np.inf)),
    "charges minus infinity": with_prices(lambda value: np.full_like(value, -np.inf)),
    "charges all alike": with_prices(np.ones_like),
    "charges for others": with_prices(lambda value: np.roll(value, 1, axis=-1)),
    "charges the wrong way round": with_prices(lambda value: value[::-1]),
    "points far away": with_point(lambda value: 1e6 * (1 + value)),
    "points at x": with_point(np.zeros_like),
    "points at NaN": with_point(lambda value: np.full_like(value, np.nan)),
    "points at infinity": with_point(lambda value: np.full_like(value, np.inf)),
    "misses nothing": with_miss(np.zeros_like),
    "misses NaN": with_miss(lambda value: np.full_like(value, np.nan)),
    "always infeasible": with_outcome(Outcome.INFEASIBLE),
    "always infeasible, at a small price": with_outcome(Outcome.INFEASIBLE, 1e-6),
    "always infeasible, at a price": with_outcome(Outcome.INFEASIBLE, 1.0),
    "always infeasible, at a high price": with_outcome(Outcome.INFEASIBLE, 1e9),
    "always solved": with_outcome(Outcome.SOLVED),
    "always failed": with_outcome(Outcome.FAILED),
    **{f"random {seed}": random_claims(seed) for seed in range(3)},
}


@pytest.mark.covering
@each_request
@pytest.mark.parametrize("lie", LIES)
def test_lie_of_the_relaxation_is_caught(
    lie: str, question: LocalQuestion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(branch_and_bound, "relax", LIES[lie])
    explainer = question.explainer("global", time_limit=PATIENCE)
    cf = explainer.explain(question.x, question.target)
    assert_honest(question, cf)
    if cf.status.has_answer:
        assert explainer.verify(cf) == cf.lower_bound


# --- lies of the cone solver under both ---------------------------------------------------------


class PanicException(BaseException):
    """Named as what Clarabel raises when it panics."""


def raw(change: Callable[[Raw], Raw | None]) -> Callable[..., Raw | None]:
    honest = semidefinite.run_guarded

    def run(*told: Any, **settings: Any) -> Raw | None:
        true = honest(*told, **settings)
        return None if true is None else change(true)

    return run


def _huge(values: np.ndarray) -> np.ndarray:
    return 1e300 * np.sign(values)


RAW_LIES: dict[str, Callable[[Raw], Raw | None]] = {
    "nothing": lambda true: None,
    "NaN": lambda true: Raw(Outcome.SOLVED, true.x * np.nan, true.duals * np.nan),
    "NaN duals": lambda true: true._replace(duals=true.duals * np.nan),
    "other signs": lambda true: true._replace(x=-true.x, duals=-true.duals),
    "huge": lambda true: true._replace(x=_huge(true.x), duals=_huge(true.duals)),
    "zero": lambda true: true._replace(x=0 * true.x, duals=0 * true.duals),
    "infeasible": lambda true: true._replace(outcome=Outcome.INFEASIBLE),
    "failed": lambda true: true._replace(outcome=Outcome.FAILED),
    "solved": lambda true: true._replace(outcome=Outcome.SOLVED),
}


@pytest.mark.covering
@each_request
@pytest.mark.parametrize("method", ["ccp", "global"])
@pytest.mark.parametrize("lie", RAW_LIES)
def test_lie_of_the_cone_solver_is_caught(
    lie: str, method: str, question: LocalQuestion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(semidefinite, "run_guarded", raw(RAW_LIES[lie]))
    monkeypatch.setattr(convexified, "run_guarded", raw(RAW_LIES[lie]))
    assert_honest(question, ask(question, method))


@contextmanager
def raising(monkeypatch: pytest.MonkeyPatch, error: type[BaseException]) -> Iterator[None]:
    """Let Clarabel itself raise."""

    class Solver:
        def __init__(self, *told: Any) -> None:
            raise error("called from inside")

    with monkeypatch.context() as patched:
        patched.setattr("clarabel.DefaultSolver", Solver)
        yield


@each_request
@pytest.mark.parametrize("method", ["ccp", "auto", "global"])
def test_panic_does_not_reach_the_user(
    method: str,
    question: LocalQuestion,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with raising(monkeypatch, PanicException):
        assert_honest(question, ask(question, method))
    assert capfd.readouterr().err == ""


@each_request
def test_interrupt_reaches_the_user_and_harms_nothing(
    question: LocalQuestion, monkeypatch: pytest.MonkeyPatch
) -> None:
    explainer = question.explainer("global")
    with raising(monkeypatch, KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        explainer.explain(question.x, question.target)
    assert_solved(question, explainer.explain(question.x, question.target))


# --- lies of the convex-concave search ----------------------------------------------------------


def moved(change: Change) -> Callable[..., np.ndarray]:
    honest = ccp.Descent.downhill

    def downhill(self: ccp.Descent, *told: Any) -> np.ndarray:
        return change(honest(self, *told))

    return downhill


WAYS: dict[str, Change] = {
    "stays": np.zeros_like,
    "goes half the way": lambda delta: 0.5 * delta,
    "stops just short": lambda delta: (1 - 1e-6) * delta,
    "goes the other way": lambda delta: -delta,
    "goes too far": lambda delta: 1.5 * delta,
    "goes far too far": lambda delta: 1e9 * delta,
    "goes to NaN": lambda delta: np.full_like(delta, np.nan),
    "goes to infinity": lambda delta: np.full_like(delta, np.inf),
    "goes elsewhere": lambda delta: delta + 0.7,
}


@pytest.mark.covering
@each_request
@pytest.mark.parametrize("method", ["ccp", "global"])
@pytest.mark.parametrize("way", WAYS)
def test_lie_of_the_descent_is_caught(
    way: str, method: str, question: LocalQuestion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ccp.Descent, "downhill", moved(WAYS[way]))
    assert_honest(question, ask(question, method))


# That a round's numbers are finite is seen to where they are read, under the lies of Clarabel.
@pytest.mark.covering
@each_request
@pytest.mark.parametrize("way", [way for way in WAYS if way != "goes to infinity"])
def test_lie_of_a_round_is_caught(
    way: str, question: LocalQuestion, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = convexified.Convexified.round

    def lying(self: convexified.Convexified, *told: Any) -> Round | None:
        true = honest(self, *told)
        return None if true is None else Round(WAYS[way](true.delta), 0.0)

    monkeypatch.setattr(convexified.Convexified, "round", lying)
    for method in ("ccp", "global"):
        assert_honest(question, ask(question, method))


# --- proofs that were tampered with -------------------------------------------------------------


def proved(question: LocalQuestion) -> tuple[clvq.Explainer, clvq.Counterfactual, BoxCertificate]:
    explainer = question.explainer()
    cf = explainer.explain(question.x, question.target)
    assert isinstance(cf.certificate, BoxCertificate)
    return explainer, cf, cf.certificate


def most(question: LocalQuestion) -> float:
    best = optimum(question).reached
    return best * (1 + local_questions.ROUNDING) + question.floor


@each_request
def test_tampered_tree_proves_nothing_wrong(question: LocalQuestion) -> None:
    explainer, cf, forest = proved(question)
    rng = np.random.default_rng(3)
    changes: list[Callable[[Any], Any]] = [
        lambda tree: replace(tree, feature=np.full_like(tree.feature, -1)),
        lambda tree: replace(tree, at=tree.at + rng.normal(size=tree.at.size)),
        lambda tree: replace(tree, at=np.full_like(tree.at, np.inf)),
        lambda tree: replace(tree, at=np.full_like(tree.at, np.nan)),
        lambda tree: replace(tree, low=tree.high),
        lambda tree: replace(tree, prices=tree.prices[::-1]),
        lambda tree: replace(tree, caps=np.zeros_like(tree.caps)),
        lambda tree: replace(tree, caps=0.1 * tree.caps),
        lambda tree: replace(tree, caps=np.full_like(tree.caps, np.nan)),
        lambda tree: replace(tree, caps=np.full_like(tree.caps, np.inf)),
        lambda tree: replace(tree, margin=1e6),
        lambda tree: replace(
            tree, prices=tuple(replace(p, forms=10 * p.forms) for p in tree.prices)
        ),
        lambda tree: replace(
            tree, prices=tuple(replace(p, point=p.point + 1) for p in tree.prices)
        ),
        lambda tree: replace(
            tree, prices=tuple(replace(p, share=p.share + 1) for p in tree.prices)
        ),
        lambda tree: replace(
            tree, prices=tuple(replace(p, signs=1e3 * (1 + p.signs)) for p in tree.prices)
        ),
        lambda tree: replace(
            tree, prices=tuple(replace(p, from_low=p.from_low + 1) for p in tree.prices)
        ),
    ]
    for change in changes:
        false = BoxCertificate(tuple(change(tree) for tree in forest.trees))
        assert explainer.verify(replace(cf, certificate=false)) <= most(question)


@each_request
def test_forest_without_a_tree_proves_nothing(question: LocalQuestion) -> None:
    explainer, cf, forest = proved(question)
    for k in range(len(forest.trees)):
        false = BoxCertificate(forest.trees[:k] + forest.trees[k + 1 :])
        assert explainer.verify(replace(cf, certificate=false)) == 0.0


def test_proof_of_another_input_proves_nothing_wrong() -> None:
    for question in REQUESTS[:3]:
        _, cf, _ = proved(question)
        rng = np.random.default_rng(11)
        for _ in range(3):
            other = replace(question, x=question.x + 0.5 * rng.normal(size=question.x.size))
            label = question.labels[cf.prototype]
            other = replace(other, target=label, name="other")
            if other.predict(other.x)[0] == label:
                continue
            false = replace(cf, original_values=other.x, target=(label,))
            assert other.explainer().verify(false) <= most(other)


def test_proof_of_another_model_proves_nothing_wrong() -> None:
    rng = np.random.default_rng(12)
    for question in REQUESTS[:3]:
        _, cf, _ = proved(question)
        omegas = [omega + 0.3 * rng.normal(size=omega.shape) for omega in question.omegas]
        target = question.labels[cf.prototype]
        other = replace(question, omegas=omegas, target=target, name="other")
        if other.predict(other.x)[0] != target:
            false = replace(cf, target=(target,))
            assert other.explainer().verify(false) <= most(other)


def test_certificate_that_is_no_tree_proves_nothing() -> None:
    model = clvq.PrototypeModel(
        [[1, 0], [7, 3], [3, 5], [5, 8]],
        ["no", "no", "no", "yes"],
        omegas=[[[2, 0], [0, 3]], [[2, 0], [0, 1]], [[1, 0], [0, 3]], [[2, 0], [0, 1]]],
    )
    explainer = clvq.Explainer(model)
    answer = explainer.explain([1, 0], target="yes")
    (tree,) = answer.certificate.trees
    assert tree.feature[0] >= 0
    for broken in (
        replace(tree, prices=tree.prices[:1]),
        replace(tree, caps=tree.caps[:-1]),
        replace(tree, low=np.zeros_like(tree.low)),
        replace(tree, high=tree.high + 10**6),
        replace(tree, feature=np.full_like(tree.feature, 9)),
    ):
        assert (
            explainer.verify(
                replace(answer, certificate=replace(answer.certificate, trees=(broken,)))
            )
            == 0
        )

"""What must hold for every model, input and wish, on small whole-numbered cases."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from hypothesis import assume, given, note, settings
from hypothesis import strategies as st

import counterlvq as clvq
from tests.support import catalogue, oracles
from tests.support.catalogue import Price, Problem, Rule
from tests.support.oracles import Question
from tests.support.quick import examples

bounded = settings(max_examples=examples(120))
RELATIVE = 1e-6

# Each feature has its own fraction, so that a limit never just touches a boundary between
# whole-numbered prototypes: there, closed and open regions would disagree about feasibility.
FRACTIONS = (0.3, 0.37, 0.41)

Vector = tuple[int, ...]


@dataclass(frozen=True)
class Wish:
    """A constraint told relative to x, so that it moves along when the case is moved."""

    kind: str
    feature: int
    reach: float
    total: Vector  # coefficients of a linear wish

    def rule(self, x: np.ndarray) -> Rule:
        j = self.feature
        if self.kind in ("<=", ">="):
            coefficients = dict(enumerate(map(float, self.total)))
            level = float(np.dot(self.total, x)) + self.reach
            return catalogue.linear(len(x), coefficients, self.kind, level)
        if self.kind == "max change":
            return catalogue.max_change(x, j, abs(self.reach))
        if self.kind == "at most":
            return catalogue.bounds(j, upper=x[j] + self.reach)
        return getattr(catalogue, self.kind)(x, j)  # freeze, increase, decrease

    def reordered(self, order: list[int]) -> Wish:
        return replace(self, feature=order.index(self.feature), total=reordered(self.total, order))


def reordered(vector: Vector, order: list[int]) -> Vector:
    return tuple(vector[j] for j in order)


@dataclass(frozen=True)
class Case:
    """A problem in whole numbers; `cost` is "manhattan" or "mahalanobis"."""

    prototypes: tuple[Vector, ...]
    labels: tuple[str, ...]
    omega: tuple[Vector, ...] | None
    x: Vector
    cost: str
    weights: Vector
    wishes: tuple[Wish, ...]

    @cached_property
    def own(self) -> str:
        problem = self.problem(target="")  # the default target needs the label asked for here
        return str(oracles.predict(problem.prototypes, problem.labels, problem.omega, problem.x)[0])

    @property
    def target(self) -> str:
        return next(label for label in self.labels if label != self.own)

    def price(self, factor: float = 1.0) -> Price:
        weights = factor * np.array(self.weights, dtype=float)
        if self.cost == "manhattan":
            return catalogue.manhattan(len(weights), weights)
        return catalogue.mahalanobis(np.diag(weights) + factor * np.ones((len(weights),) * 2))

    def problem(self, target: str | None = None) -> Problem:
        x = np.array(self.x, dtype=float)
        return Problem(
            "drawn",
            np.array(self.prototypes, dtype=float),
            list(self.labels),
            x,
            self.target if target is None else target,
            self.price(),
            tuple(wish.rule(x) for wish in self.wishes),
            omega=None if self.omega is None else np.array(self.omega, dtype=float),
        )

    def without_wishes(self) -> Case:
        return replace(self, wishes=())


KINDS = ["freeze", "increase", "decrease", "max change", "at most", "<=", ">="]


@st.composite
def wishes(draw: st.DrawFn, d: int) -> Wish:
    feature = draw(st.integers(0, d - 1))
    return Wish(
        kind=draw(st.sampled_from(KINDS)),
        feature=feature,
        reach=draw(st.integers(-3, 3)) + FRACTIONS[feature],
        total=draw(st.tuples(*[st.integers(1, 3)] * d)),
    )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    d = draw(st.integers(1, 3), label="features")
    vectors = st.tuples(*[st.integers(-6, 6)] * d)
    prototypes = draw(st.lists(vectors, min_size=2, max_size=6, unique=True))
    others = st.lists(st.sampled_from("abc"), min_size=len(prototypes), max_size=len(prototypes))
    labels = draw(others.filter(lambda names: len(set(names)) > 1))
    rows = st.lists(st.tuples(*[st.integers(-2, 2)] * d), min_size=1, max_size=3).map(tuple)
    case = Case(
        prototypes=tuple(prototypes),
        labels=tuple(labels),
        omega=draw(st.none() | rows),
        x=draw(vectors),
        cost=draw(st.sampled_from(["manhattan", "mahalanobis"])),
        weights=draw(st.tuples(*[st.integers(1, 4)] * d)),
        wishes=tuple(draw(st.lists(wishes(d), max_size=2))),
    )
    assume(_rivals_differ(case) and _decided(case))
    return case


def _rivals_differ(case: Case) -> bool:
    """No target coincides with a rival in the eyes of the metric: such cells have no inside."""
    W = np.array(case.prototypes, dtype=float)
    seen = W if case.omega is None else W @ np.array(case.omega, dtype=float).T
    apart = np.linalg.norm(seen[:, None] - seen[None], axis=-1) > 1e-9
    rival = np.array([[a != b for b in case.labels] for a in case.labels])
    return bool(apart[rival].all())


def _decided(case: Case) -> bool:
    """The input's label is no tie, which rounding and order would be free to break."""
    problem = case.problem()
    to_each = oracles.squared_distances(problem.prototypes, problem.omega, problem.x)[0]
    own = np.array([label == case.own for label in case.labels])
    return bool(to_each[~own].min() > to_each[own].min() + 1e-9)


def explain(problem: Problem) -> clvq.Counterfactual:
    # Without rules a cell always has an inside; with them it may be met in ties only.
    assume(not problem.rules or oracles.has_inside(problem.question()))
    cf = problem.explainer().explain(problem.x, target=problem.target)
    assert cf.status in ("optimal", "infeasible")
    return cf


def price_of(problem: Problem) -> float:
    cf = explain(problem)
    return float(cf.cost) if cf.status == "optimal" else np.inf


def same(a: float, b: float, floor: float) -> bool:
    return a == b or abs(a - b) <= RELATIVE * max(abs(a), abs(b)) + floor


def only_answer(question: Question) -> bool:
    """One cell is clearly the best: no tie that another order could break differently."""
    costs = sorted(oracles.cell_costs(question).values())
    return len(costs) == 1 or costs[1] > 1.01 * costs[0] + 1e3 * question.floor


# --- closest ------------------------------------------------------------------------------------


@bounded
@given(cases(), st.integers(0, 2**16))
def test_no_sampled_point_beats_a_certified_answer(case: Case, seed: int) -> None:
    problem = case.problem()
    question = problem.question()
    cf = explain(problem)
    if cf.status == "infeasible":
        assert oracles.optimal_cost(question) == np.inf
        return
    found = oracles.sampled_bound(question, seed, around=cf.x)
    note(f"answer {cf.x} at {cf.cost}, sampled {found}")
    assert found >= cf.lower_bound * (1 - 1e-9) - question.floor
    assert found >= cf.cost * (1 - RELATIVE) - question.floor


@bounded
@given(cases())
def test_answer_is_valid(case: Case) -> None:
    problem = case.problem()
    question = problem.question()
    cf = explain(problem)
    if cf.status == "optimal":
        assert oracles.reaches_target(question, cf.x)[0]
        assert oracles.violated(question.constraints, cf.x) == []
        assert cf.cost - cf.lower_bound <= RELATIVE * cf.cost + question.floor


@bounded
@given(cases())
def test_each_further_constraint_costs_no_less(case: Case) -> None:
    floor = case.problem().question().floor
    costs = [
        price_of(replace(case, wishes=case.wishes[:count]).problem())
        for count in range(len(case.wishes) + 1)
    ]
    note(f"costs as constraints are added: {costs}")
    for less, more in pairwise(costs):
        assert more >= less * (1 - RELATIVE) - floor


@bounded
@given(cases())
def test_more_targets_cost_no_more(case: Case) -> None:
    problem = case.problem()
    floor = problem.question().floor
    any_other = replace(problem, target=None)
    each = [
        price_of(replace(problem, target=label)) for label in sorted(set(case.labels) - {case.own})
    ]
    assert same(price_of(any_other), min(each), floor)


# --- unchanged where nothing is to be changed ---------------------------------------------------


@bounded
@given(cases())
def test_an_input_with_the_target_comes_back_unchanged(case: Case) -> None:
    problem = case.without_wishes().problem(target=case.own)
    cf = explain(problem)
    assert cf.status == "optimal"
    assert np.array_equal(cf.x, problem.x)
    assert cf.cost == 0.0
    assert cf.lower_bound == 0.0
    assert not np.any(cf.delta)


# --- the same answer in other clothes -----------------------------------------------------------


@bounded
@given(cases(), st.data())
def test_order_of_prototypes_does_not_matter(case: Case, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(case.labels))), label="order")
    shuffled = replace(
        case,
        prototypes=tuple(case.prototypes[k] for k in order),
        labels=tuple(case.labels[k] for k in order),
    )
    assert_same_answer(case.problem(), shuffled.problem(target=case.target))


@bounded
@given(cases(), st.data())
def test_order_of_features_does_not_matter(case: Case, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(case.x))), label="order")
    shuffled = replace(
        case,
        prototypes=tuple(reordered(prototype, order) for prototype in case.prototypes),
        omega=None if case.omega is None else tuple(reordered(row, order) for row in case.omega),
        x=reordered(case.x, order),
        weights=reordered(case.weights, order),
        wishes=tuple(wish.reordered(order) for wish in case.wishes),
    )
    assert_same_answer(case.problem(), shuffled.problem(), order=order)


@bounded
@given(cases(), st.permutations(["a", "b", "c"]))
def test_names_of_classes_do_not_matter(case: Case, names: list[str]) -> None:
    rename = dict(zip("abc", names, strict=True))
    renamed = replace(case, labels=tuple(rename[label] for label in case.labels))
    assert renamed.own == rename[case.own]
    assert_same_answer(case.problem(), renamed.problem(target=rename[case.target]))


@bounded
@given(cases(), st.integers(-1000, 1000))
def test_translating_the_data_translates_the_answer(case: Case, shift: int) -> None:
    moved = replace(
        case,
        prototypes=tuple(tuple(v + shift for v in prototype) for prototype in case.prototypes),
        x=tuple(v + shift for v in case.x),
    )
    assert_same_answer(case.problem(), moved.problem(), shift=shift)


@bounded
@given(cases(), st.sampled_from([1e-3, 0.5, 3.0, 1e4]))
def test_scaling_the_metric_changes_nothing(case: Case, factor: float) -> None:
    problem = case.problem()
    omega = np.eye(len(case.x)) if problem.omega is None else problem.omega
    assert_same_answer(problem, replace(problem, omega=factor * omega))


@bounded
@given(cases(), st.sampled_from([1e-6, 0.25, 7.0, 1e6]))
def test_scaling_the_cost_scales_the_value(case: Case, factor: float) -> None:
    problem = case.problem()
    floor = problem.question().floor
    scaled = price_of(replace(problem, price=case.price(factor)))
    assert same(scaled / factor, price_of(problem), floor)


@bounded
@given(cases(), st.sampled_from([1e-6, 1e-3, 1e3, 1e6]))
def test_other_units_for_everything_change_only_the_units(case: Case, unit: float) -> None:
    case = case.without_wishes()
    problem = case.problem()
    resized = replace(problem, prototypes=unit * problem.prototypes, x=unit * problem.x)
    power = 1 if case.cost == "manhattan" else 2
    expected, floor = price_of(problem), problem.question().floor
    assert same(price_of(resized) / unit**power, expected, floor)


def assert_same_answer(
    problem: Problem, other: Problem, order: list[int] | None = None, shift: float = 0.0
) -> None:
    """Equal status and cost, and equal points where the optimum is a single point."""
    question = problem.question()
    first, second = explain(problem), explain(other)
    note(f"{first.status} {first.x} at {first.cost}; {second.status} {second.x} at {second.cost}")
    assert first.status == second.status
    if first.status == "infeasible":
        return
    assert same(first.cost, second.cost, question.floor)
    if isinstance(question.cost, oracles.Squared) and only_answer(question):
        expected = first.x if order is None else first.x[order]
        # By strong convexity equal costs to 1e-6 mean equal points to the square root of it.
        weight = np.linalg.eigvalsh(question.cost.matrix)[0]
        room = np.sqrt((2 * RELATIVE * first.cost + question.floor) / weight)
        assert np.linalg.norm(expected + shift - second.x) <= room

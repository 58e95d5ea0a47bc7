"""What is said when the time is over: less, never more, and nothing that was not checked."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq.problem.targets import wished_prototypes
from counterlvq.programs.conditions import QuadraticCondition
from counterlvq.programs.kernel_data import KernelData
from counterlvq.programs.program import Program
from counterlvq.search import exact, strategies
from counterlvq.search.conflicts import conflict_of
from counterlvq.solvers import Choice, Outcome, Solution
from counterlvq.solvers.ccp import Descent, Frames
from counterlvq.solvers.ccp_round import Convexified, Round, Scores
from counterlvq.solvers.compiled import Scratch


@dataclass
class Clock:
    """Goes on by one second, or another step, whenever it is looked at."""

    time: float = 0.0
    step: float = 1.0
    started: list[float] = field(default_factory=list)  # when programs were begun

    def __call__(self) -> float:
        self.time += self.step
        return self.time


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    found = Clock()
    monkeypatch.setattr(time, "monotonic", found)
    honest = exact.solvers.select

    def select(program: Program) -> Choice:
        choice = honest(program)

        def solver(asked: Program) -> Solution:
            found.started.append(found.time)
            return choice.solver(asked)

        return Choice(solver, choice.reason)

    monkeypatch.setattr(exact.solvers, "select", select)
    return found


def stop_after(looks: int) -> Callable[[], bool]:
    """Make a clock that has run out after so many looks at it."""
    left = iter(range(looks))
    return lambda: next(left, None) is None


def drawn(seed: int) -> tuple[clvq.PrototypeModel, np.ndarray]:
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(9, 3)) * 2
    return clvq.PrototypeModel(W, np.arange(9) % 3), rng.normal(size=3)


@pytest.mark.parametrize("cost", [clvq.Manhattan(), clvq.Euclidean()], ids=repr)
def test_bound_that_is_cut_short_is_a_bound(cost: clvq.Cost) -> None:
    """The more of a certificate is looked at the better its bound, and the last is that of all."""
    for seed in range(20):
        model, x = drawn(seed)
        explainer = clvq.Explainer(model, cost)
        cf = explainer.explain(x, target=1)
        wished = wished_prototypes(model, 1, -1)
        question = explainer.prepared_for().answers.question(x, wished)
        bounds = [
            cf.certificate.lower_bound(question, cf.cost, stop=stop_after(looks))
            for looks in range(12)
        ]
        assert bounds == sorted(bounds)
        assert bounds[0] >= 0.0
        assert bounds[-1] == cf.lower_bound <= cf.cost


def test_cells_that_are_not_looked_at_are_not_excluded() -> None:
    seen = 0
    for seed in range(20):
        model, x = drawn(seed)
        explainer = clvq.Explainer(model, constraints=[clvq.MaxChange(j, 1e-3) for j in range(3)])
        cf = explainer.explain(x, target=1)
        if cf.status != "infeasible":
            continue
        seen += 1
        wished = wished_prototypes(model, 1, -1)
        question = explainer.prepared_for().answers.question(x, wished)
        shown = [cf.certificate.excludes_all(question, stop=stop_after(n)) for n in range(4)]
        assert shown == [False, False, False, True]
    assert seen >= 5


def test_conflict_without_time_is_a_set_that_clashes() -> None:
    """Nothing is asked once the time is over, and nothing is said to be needed."""

    def unasked(kept: object) -> bool:
        raise AssertionError(f"asked about {kept}")

    why = conflict_of(4, unasked, unasked, lambda: True)
    assert why.clashing == (0, 1, 2, 3)
    assert not why.is_irreducible
    assert "a set that clashes" in why.words


@pytest.mark.parametrize("looks", range(0, 40, 3))
def test_conflict_that_is_cut_short_still_clashes(looks: int) -> None:
    """Whatever the clock leaves time for, the set that is named is one that clashes."""
    guilty = {1, 4, 6}

    def room(kept: object) -> bool:
        return not guilty <= set(kept)  # type: ignore[call-overload]

    why = conflict_of(9, lambda kept: False, room, stop_after(looks))
    assert guilty <= set(why.clashing)
    if why.is_irreducible:
        assert set(why.clashing) == guilty


@pytest.mark.parametrize("looks", [*range(0, 60, 4), 10_000])
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_time_that_is_left_shortens_a_conflict(depth: int, looks: int) -> None:
    """What stays open is asked again by those who go further, and what was settled is not."""
    guilty, settled = {1, 4, 6}, set[tuple[int, ...]]()

    def room_of(rank: int) -> Callable[[Sequence[int]], bool | None]:
        def room(kept: Sequence[int]) -> bool | None:
            assert tuple(kept) not in settled
            # Those that keep a member more or less take longer to settle.
            if guilty ^ set(kept) and sum(kept) % 3 > rank:
                return None
            settled.add(tuple(kept))
            return not guilty <= set(kept)

        return room

    deeper = [room_of(rank) for rank in range(1, depth + 1)]
    why = conflict_of(9, lambda kept: False, room_of(0), stop_after(looks), deeper)
    assert guilty <= set(why.clashing)
    assert set(why.clashing) == guilty or not why.is_irreducible
    if depth == 2 and looks == 10_000:
        assert why.is_irreducible
    if depth == 0:
        assert not why.is_irreducible


@pytest.mark.parametrize(("limit", "is_settled"), [(None, False), (600.0, True)])
def test_boxes_are_no_limit_to_a_conflict_where_time_is(
    monkeypatch: pytest.MonkeyPatch, limit: float | None, is_settled: bool
) -> None:
    """Of searches that end with less than a hundred boxes: without a limit of time that is all."""
    true, asked_for = strategies.room_under, set[int]()

    def stopped(*given: Any) -> Any:
        room, budget = true(*given), given[3]
        asked_for.add(budget)
        return room if budget > 100 else lambda kept: None

    monkeypatch.setattr(strategies, "room_under", stopped)
    rng = np.random.default_rng(2)
    W = np.vstack([[0, 0], [4, 4], 4 * rng.normal(size=(3, 2))])
    omegas = [np.eye(2) + 0.3 * rng.normal(size=(2, 2)) for _ in W]
    model = clvq.PrototypeModel(W, ["no", "yes", "no", "no", "no"], omegas, ["a", "b"])
    rules: list[Any] = [clvq.MaxChange("a", 1.5), clvq.MaxChange("b", 1.5)]
    cf = clvq.Explainer(model, constraints=rules, time_limit=limit).explain([0.0, 0.0], "yes")
    assert cf.status == "infeasible"
    assert cf.conflict_is_irreducible == is_settled
    assert list(cf.conflict) == rules
    assert (max(asked_for) > 100) == is_settled
    for rule in rules:
        found = clvq.Explainer(model, constraints=[rule]).explain([0.0, 0.0], "yes")
        assert found.status.has_answer


def test_text_says_when_a_conflict_may_be_smaller() -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 2.0]], ["no", "yes"])
    asked = clvq.Explainer(model, constraints=["x0 <= 1", "x1 <= 1"])
    cf = asked.explain([0.0, 0.0], target="yes")
    assert cf.conflict_is_irreducible
    assert "a set that clashes" not in cf.text()


@pytest.mark.parametrize("cost", [clvq.Manhattan(), clvq.Euclidean()], ids=repr)
@pytest.mark.parametrize("limit", [0.0, 3.0, 6.0, 10.0, 20.0, 60.0])
def test_no_program_is_begun_after_the_limit_and_nothing_false_is_said(
    clock: Clock, cost: clvq.Cost, limit: float
) -> None:
    rng = np.random.default_rng(3)
    W = rng.normal(size=(120, 4))
    model, x = clvq.PrototypeModel(W, (W[:, 0] > 0).astype(int)), W[W[:, 0] <= 0][0] + 0.01
    rules = [clvq.Quadratic(np.eye(4), 4.0 * float(x @ x) + 1.0)]
    free = clvq.Explainer(model, cost, rules).explain(x, target=1)
    assert free.status == "optimal"
    clock.started.clear()
    begun = clock.time
    limited = clvq.Explainer(model, cost, rules, time_limit=limit)
    cf = limited.explain(x, target=1)
    # One look at the clock sets the limit; one more may pass between the last look and a program.
    assert all(when <= begun + limit + 2.0 for when in clock.started)
    assert cf.lower_bound <= free.cost * (1 + 1e-9)
    assert cf.cost >= free.lower_bound * (1 - 1e-9)
    if cf.status == "optimal":
        assert cf.cost == pytest.approx(free.cost, rel=1e-5)
    assert limited.verify(cf) <= free.cost * (1 + 1e-9)


def test_cells_of_a_grid_are_planted_under_the_clock(clock: Clock) -> None:
    """With thousands of prototypes the first bounds alone take longer than a limit."""
    rng = np.random.default_rng(0)
    W = rng.integers(0, 50, size=(400, 3)).astype(float)
    model = clvq.PrototypeModel(W, np.arange(400) % 2)
    features = clvq.Features([clvq.Feature(f"x{j}", "whole") for j in range(3)])
    explainer = clvq.Explainer(model, features=features, method="global", time_limit=30.0)
    cf = explainer.explain([25.0, 25.0, 25.0], target=1 - int(model.predict([[25.0] * 3])[0]))
    assert clock.time < 150  # two hundred cells have not been looked at
    assert cf.lower_bound <= cf.cost
    assert cf.status in ("feasible", "unknown", "optimal")


@pytest.mark.parametrize("cost", [clvq.Manhattan(), clvq.Euclidean()], ids=repr)
def test_solvers_stop_at_the_deadline(cost: clvq.Cost) -> None:
    """A solver whose time is over has failed: that it found nothing is no claim."""
    rng = np.random.default_rng(0)
    model = clvq.PrototypeModel(rng.normal(size=(30, 200)), np.arange(30) % 2)
    explainer = clvq.Explainer(model, cost)
    question = explainer.prepared_for().answers.question(rng.normal(size=200), model.labels == 1)
    program = question.program(1)
    solver = exact.solvers.select(program).solver

    assert solver(program).outcome is Outcome.SOLVED
    assert solver(replace(program, deadline=time.monotonic())).outcome is Outcome.FAILED


@pytest.mark.parametrize("cost", [clvq.Manhattan(), clvq.Euclidean()], ids=repr)
def test_kernel_that_is_stopped_proves_nothing_false(
    cost: clvq.Cost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told to stop before its first cell, or after some, it gives what it has."""
    honest = exact.compiled.scratch_for
    for seed in range(10):
        model, x = drawn(seed)
        target = (model.predict(x[None])[0] + 1) % 3
        known = clvq.Explainer(model, cost).explain(x, target=target)

        def stopped(family: KernelData) -> Scratch:
            scratch = honest(family)
            scratch.stop[0] = 1
            return scratch

        with monkeypatch.context() as patched:
            patched.setattr(exact.compiled, "scratch_for", stopped)
            cf = clvq.Explainer(model, cost).explain(x, target=target)
        assert cf.status is clvq.Status.OPTIMAL  # the second engine has all the time there is
        assert cf.cost == pytest.approx(known.cost, rel=1e-6)
        assert cf.lower_bound <= known.cost


def test_time_that_is_over_leaves_no_claim() -> None:
    rng = np.random.default_rng(1)
    model = clvq.PrototypeModel(rng.normal(size=(40, 4)), np.arange(40) % 2)
    tight = [clvq.MaxChange(j, by=0.05) for j in range(4)]
    free = clvq.Explainer(model, constraints=tight)
    hurried = clvq.Explainer(model, constraints=tight, time_limit=0.0)
    for x in rng.normal(size=(20, 4)):
        known, cf = free.explain(x), hurried.explain(x)
        assert cf.status is not clvq.Status.INFEASIBLE
        assert cf.lower_bound <= known.cost


def test_limits_beyond_what_clocks_hold_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = list[object]()
    monkeypatch.setattr(threading, "excepthook", failed.append)
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 1.0]], ["no", "yes"])
    told = clvq.Explainer(model, time_limit=1e308).explain([1.0, 0.0], "yes")
    assert told.status == clvq.Status.OPTIMAL
    assert not failed


def test_rounds_of_a_search_share_one_limit(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each gets what the others have left, and none is begun when nothing is left."""
    W = np.array([[0.0, 0.0], [4.0, 0.0]])
    own = np.stack([np.eye(2), np.diag([1.5, 0.5])])
    F, rivals = own[1], own[:1]
    M = np.einsum("kri,krj->kij", rivals, rivals)
    scores = Scores(F, -F @ W[1], M, np.zeros((1, 2)), np.zeros(1))
    free = np.full(2, np.inf)
    ball = QuadraticCondition(np.eye(2), np.zeros(2), np.zeros(2), 100.0)
    none = np.zeros((0, 2))
    program = Program(
        w=np.array([1.0, 0.7]), L=none, A=none, b=np.zeros(0), E=none, e=np.zeros(0),
        lower=-free, upper=free, quadrics=(ball,), reach=np.full(2, 9.0), blur=np.zeros(0),
    )  # fmt: skip
    left: list[float] = []
    honest = Convexified.round

    def round_(self: Convexified, *asked: float) -> Round | None:
        left.append(asked[-1])
        return honest(self, *asked)  # type: ignore[arg-type]

    monkeypatch.setattr(Convexified, "round", round_)
    descent = Descent.of(program, scores, np.full(2, 4.0), Frames(M))
    for search in (descent.downhill, descent.into_cell):
        left.clear()
        search(W[1], 0.0, 0.0, 3.5)
        assert 1 <= len(left) <= 3
        assert left == sorted(left, reverse=True)
        assert min(left) > 0.0
        assert max(left) < 3.5


def curved(seed: int, d: int = 24) -> tuple[clvq.PrototypeModel, np.ndarray]:
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(6, d))
    omegas = [0.7 * np.eye(d) + rng.normal(size=(d, d)) / np.sqrt(d) for _ in W]
    return clvq.PrototypeModel(W, np.arange(6) % 3, omegas=omegas), W[0] + 0.1


COSTS = [
    pytest.param(clvq.Manhattan(), lambda D: np.abs(D).sum(axis=1), id="absolute"),
    pytest.param(clvq.Euclidean(), lambda D: (D**2).sum(axis=1), id="squared"),
]


@pytest.mark.parametrize(("cost", "value"), COSTS)
@pytest.mark.parametrize("looks", [20, 40, 80, 160])
def test_short_limit_leaves_an_answer_and_a_bound(
    cost: clvq.Cost, value: Callable[[np.ndarray], np.ndarray], looks: int, clock: Clock
) -> None:
    """However few of the cells were relaxed; no point of the target that costs less is found."""
    model, x = curved(0)
    clock.step = 1e-3
    cf = clvq.Explainer(model, cost, time_limit=1e-3 * looks).explain(x, target=(1, 2))
    assert cf.status.has_answer
    assert 0.0 < cf.lower_bound <= cf.cost
    rng = np.random.default_rng(looks)
    ends = model.prototypes[model.labels != 0]
    ways = ends[rng.integers(len(ends), size=4000)] - x
    ways = ways * (rng.random(ways.shape) < 0.7) + 0.2 * rng.normal(size=ways.shape)
    D = ways * rng.random((len(ways), 1)) * 1.5
    far = [((x + D - w) @ omega.T) ** 2 for w, omega in zip(
        model.prototypes, model.factors, strict=True)]  # fmt: skip
    wins = np.asarray(model.labels)[np.sum(far, axis=2).argmin(axis=0)] != 0
    assert wins.sum() > 50
    assert value(D[wins]).min() >= cf.lower_bound


def test_reason_says_which_cells_there_was_no_time_for(clock: Clock) -> None:
    model, x = curved(0)
    clock.step = 1e-3
    short = clvq.Explainer(model, time_limit=0.02).explain(x, target=(1, 2))
    assert "time for a coarse bound at most on 3 of 4 prototypes" in short.reason
    whole = clvq.Explainer(model, time_limit=10.0).explain(x, target=(1, 2))
    assert whole.status is clvq.Status.OPTIMAL
    assert "coarse" not in whole.reason


def test_limit_too_short_for_any_search_leaves_a_prototype() -> None:
    """Nothing has to be searched to find that."""
    model, x = curved(1)
    cf = clvq.Explainer(model, time_limit=1e-9).explain(x, target=1)
    assert cf.status is clvq.Status.FEASIBLE
    own = np.abs(model.prototypes[model.labels == 1] - x).sum(axis=1)
    assert cf.cost == pytest.approx(own.min())


def height_of_samples(model: clvq.PrototypeModel, x: np.ndarray, label: int) -> float:
    """Least largest change of many points of a label on the way to its prototypes."""
    rng, W = np.random.default_rng(0), np.array(model.prototypes)
    ends = W[np.asarray(model.labels) == label]
    D = (ends[rng.integers(len(ends), size=4000)] - x) * rng.random((4000, 1))
    far = np.array([(((x + D - w) @ F.T) ** 2).sum(axis=1) for w, F in zip(
        W, model.factors, strict=True)])  # fmt: skip
    wins = np.asarray(model.labels)[far.argmin(axis=0)] == label
    return float(np.abs(D[wins]).max(axis=1).min())


@pytest.mark.parametrize("rank", [4, 40])
def test_largest_change_has_an_answer_in_little_time(rank: int, clock: Clock) -> None:
    """It is never dearer than the points between the input and the target prototypes."""
    rng = np.random.default_rng(rank)
    W, seen = rng.normal(size=(6, 40)), np.linalg.qr(rng.normal(size=(40, rank)))[0].T
    omegas = [rng.normal(size=(rank, rank)) @ seen for _ in W]
    model, x = clvq.PrototypeModel(W, np.arange(6) % 3, omegas=omegas), W[0] + 0.1
    clock.step = 1e-3
    cf = clvq.Explainer(model, clvq.Chebyshev(), time_limit=0.1).explain(x, target=1)
    assert cf.status.has_answer
    assert cf.lower_bound <= cf.cost
    assert cf.cost == pytest.approx(np.abs(cf.values - x).max())
    assert cf.cost <= height_of_samples(model, x, 1) * (1.0 + 1e-9)


def test_tree_of_boxes_that_is_cut_short_keeps_what_holds_for_its_parts() -> None:
    """The more is looked at the better the bound, and the first box alone proves something."""
    rng = np.random.default_rng(0)
    W, omegas = rng.normal(size=(8, 3)), list(rng.normal(size=(8, 3, 3)))
    model = clvq.PrototypeModel(W, [0, 1] * 4, omegas=omegas)
    cut = 0
    for x in rng.normal(size=(12, 3)):
        explainer = clvq.Explainer(model)
        target = 1 - int(model.predict(x[None])[0])
        cf = explainer.explain(x, target=target)
        question = explainer.prepared_for().answers.question(x, model.labels == target)
        for tree in cf.certificate.trees:
            if tree.feature[0] < 0:
                continue
            whole = tree.lower_bound(question, cf.cost, 0.0)
            bounds = [
                tree.lower_bound(question, cf.cost, 0.0, stop_after(looks))
                for looks in range(len(tree.feature) + 2)
            ]
            assert bounds[0] == 0.0
            assert bounds == sorted(bounds)
            assert bounds[-1] == whole
            cut += 0.0 < bounds[1] < whole
    assert cut

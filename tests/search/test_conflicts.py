"""Why there is no answer: the smallest set of the user's own constraints, and no other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import counterlvq as clvq
from counterlvq.search.conflicts import smallest_conflict
from tests.support.quick import examples, some

bounded = settings(max_examples=examples(200))


# --- the search for a set, on families given outright -------------------------------------------


class Family:
    """A monotone clash: a set clashes if it contains one of the cores."""

    def __init__(self, cores: list[frozenset[int]]) -> None:
        self.cores = cores
        self.asked: list[tuple[int, ...]] = []

    def __call__(self, kept: Sequence[int]) -> bool:
        self.asked.append(tuple(kept))
        return any(core <= set(kept) for core in self.cores)


@st.composite
def families(draw: st.DrawFn) -> tuple[int, Family]:
    count = draw(st.integers(1, 9))
    members = st.frozensets(st.integers(0, count - 1), min_size=1)
    return count, Family(draw(st.lists(members, min_size=1, max_size=4)))


def irreducible_sets(count: int, family: Family) -> set[tuple[int, ...]]:
    """All of them, by trying every subset."""
    subsets = [kept for size in range(count + 1) for kept in combinations(range(count), size)]
    return {
        kept
        for kept in subsets
        if family(kept) and not any(family([k for k in kept if k != out]) for out in kept)
    }


@bounded
@given(families())
def test_found_set_is_irreducible(case: tuple[int, Family]) -> None:
    count, family = case
    found = smallest_conflict(range(count), family)
    assert found in irreducible_sets(count, family)


@bounded
@given(families())
def test_sets_are_asked_about_in_order_and_without_repeats(case: tuple[int, Family]) -> None:
    count, family = case
    smallest_conflict(range(count), family)
    for kept in family.asked:
        assert list(kept) == sorted(set(kept))
        assert set(kept) <= set(range(count))


@bounded
@given(families())
def test_no_more_questions_than_the_bound_of_the_method(case: tuple[int, Family]) -> None:
    """2 k (log2(n / k) + 1) questions for a conflict of k among n, and one for the empty set."""
    count, family = case
    found = smallest_conflict(range(count), family)
    k = len(found)
    assert len(family.asked) <= 2 * k * (np.log2(count / k) + 1) + 2


def test_everything_is_needed() -> None:
    assert smallest_conflict(range(6), lambda kept: len(kept) == 6) == (0, 1, 2, 3, 4, 5)


@pytest.mark.parametrize("guilty", range(7))
def test_one_is_enough(guilty: int) -> None:
    assert smallest_conflict(range(7), lambda kept: guilty in kept) == (guilty,)


def test_nothing_is_needed() -> None:
    assert smallest_conflict(range(4), lambda kept: True) == ()
    assert smallest_conflict(range(0), lambda kept: True) == ()


# --- conflicts of explainers --------------------------------------------------------------------

# 'b' begins where 4u + 2v >= 10 for a change (u, v) of the input (0, 0).
MODEL = clvq.PrototypeModel([[0.0, 0.0], [4.0, 2.0]], ["a", "b"], feature_names=["u", "v"])
X = [0.0, 0.0]
IDLE = [clvq.MaxChange("u", by=50.0), clvq.Bounds("v", upper=90.0), "u <= v + 1000"]
CLASHES: dict[str, list[clvq.Constraint | str]] = {
    "all frozen": [clvq.Freeze("u", "v")],
    "one by one frozen": [clvq.Freeze("u"), clvq.Freeze("v")],
    "only down": [clvq.Decrease("u"), clvq.Decrease("v")],
    "small steps": [clvq.MaxChange("u", by=1), clvq.MaxChange("v", by=1)],
    "a box": [clvq.Bounds("u", lower=-1, upper=1), clvq.Bounds("v", upper=2.5)],
    "a sum": [clvq.Increase("v"), "u + v <= 1"],
    "an equality": ["u + v == 2", clvq.Bounds("v", lower=0.5)],
    "a small ball": [clvq.Quadratic(np.eye(2), 1.0)],
    "a ball and a wall": [clvq.Quadratic(np.eye(2), 9.0), clvq.Freeze("u")],
    "words against words": ["u >= original(u) + 5", "v >= u + 1", "v <= 4"],
    "a box that is empty": [clvq.Bounds("u", upper=1), "u >= 5"],
    "an empty ball": [clvq.Quadratic(np.eye(2), -1.0)],
    "what never holds": [clvq.Linear({"u": 0.0}, ">=", 1)],
}


# What is said in the same words of several features is said once.
JOINED = {
    "one by one frozen": ["no change of u and v"],
    "only down": ["no increase of u and v"],
}


def explain(constraints: list[clvq.Constraint | str], cost: clvq.Cost) -> clvq.Counterfactual:
    return clvq.Explainer(MODEL, cost=cost, constraints=constraints).explain(X, target="b")


@pytest.mark.covering
@pytest.mark.parametrize("cost", [clvq.Manhattan(), clvq.Euclidean()], ids=repr)
@pytest.mark.parametrize("kind", CLASHES)
def test_conflict_is_exactly_the_guilty_and_no_idle_constraint(kind: str, cost: clvq.Cost) -> None:
    guilty = CLASHES[kind]
    mixed = [IDLE[0], *guilty[:1], IDLE[1], *guilty[1:], IDLE[2]]

    cf = explain(mixed, cost)

    assert cf.status == "infeasible"
    assert [id(item) for item in cf.conflict] == [id(item) for item in guilty]


@pytest.mark.parametrize("cost", [clvq.Manhattan(), clvq.Euclidean()], ids=repr)
@pytest.mark.parametrize("kind", CLASHES)
def test_without_any_one_of_them_there_is_an_answer(kind: str, cost: clvq.Cost) -> None:
    guilty = CLASHES[kind]
    for out in range(len(guilty)):
        rest = [*IDLE, *guilty[:out], *guilty[out + 1 :]]
        assert explain(rest, cost).status == "optimal"


@pytest.mark.parametrize("kind", CLASHES)
def test_conflict_is_told_in_the_words_of_the_user(kind: str) -> None:
    guilty = CLASHES[kind]
    cf = explain([*IDLE, *guilty], clvq.Manhattan())

    said = cf.text()
    assert "There is no counterfactual for b: " in said
    spoken = JOINED.get(kind) or clvq.Explainer(MODEL, constraints=guilty).spoken_constraints
    assert [word for word in spoken if f'"{word}"' not in said] == []
    assert not any(
        word in said for word in clvq.Explainer(MODEL, constraints=IDLE).spoken_constraints
    )
    assert not any(repr(item) in said for item in guilty if not isinstance(item, clvq.Quadratic))
    assert said in str(cf)
    assert cf.to_dict()["conflict"] == list(map(str, guilty))


def test_several_reasons_give_one_of_them() -> None:
    both = [*CLASHES["small steps"], *CLASHES["only down"]]
    cf = explain(both, clvq.Manhattan())
    assert {id(item) for item in cf.conflict} <= {id(item) for item in both}
    assert len(cf.conflict) == 2
    assert explain(list(cf.conflict), clvq.Manhattan()).status == "infeasible"


def test_constraints_that_contradict_each_other_are_told_apart_from_an_unreachable_target() -> None:
    alone = explain(["u >= 5", "u <= 1", clvq.Freeze("v")], clvq.Manhattan())
    assert alone.reason == (
        "the constraints contradict each other at this input, whatever the class"
    )
    assert alone.conflict == ("u >= 5", "u <= 1")
    target = explain([clvq.Freeze("u", "v")], clvq.Manhattan())
    assert target.reason == "each cell of the target is shown to be out of reach"


def test_target_that_never_wins_is_out_of_reach_without_any_constraint() -> None:
    """A prototype that lies on an earlier one of another class has no cell."""
    model = clvq.PrototypeModel([[0.0], [3.0], [3.0]], ["a", "a", "b"])
    cf = clvq.Explainer(model, constraints=[clvq.Increase(0)]).explain([0.0], target="b")
    assert cf.status == "infeasible"
    assert cf.conflict == ()
    assert cf.text() == (
        "There is no counterfactual for b: the model never says so, with or without constraints."
    )


def test_same_constraint_given_twice_is_blamed_once() -> None:
    twice = [clvq.Freeze("u", "v"), clvq.Freeze("u", "v")]
    cf = explain(twice, clvq.Manhattan())
    assert len(cf.conflict) == 1
    assert cf.conflict[0] in twice


def test_conflict_depends_on_the_input() -> None:
    explainer = clvq.Explainer(MODEL, constraints=["u <= 1.2 * original(u)", clvq.Freeze("v")])
    assert explainer.explain([2.4, 0.0], target="b").status == "optimal"
    near_zero = explainer.explain([0.1, 0.0], target="b")
    assert near_zero.status == "infeasible"
    assert set(near_zero.conflict) == set(explainer.constraints)


# --- against an oracle: linear programs by SciPy --------------------------------------------------


def room_by_linprog(
    model: clvq.PrototypeModel, x: np.ndarray, rows: list[tuple[np.ndarray, float]]
) -> float:
    """By how much the target can lead at most under rows ``a y <= b``; -inf without any point."""
    most = -np.inf
    W, labels = model.prototypes, model.labels
    for own in W[labels == 1]:
        A, b = [], []
        for rival in W[labels != 1]:
            normal = 2.0 * (rival - own)
            length = float(np.linalg.norm(normal))
            A.append(np.append(normal / length, 1.0))
            b.append((rival @ rival - own @ own) / length)
        for row, right in rows:
            A.append(np.append(row, 0.0))
            b.append(right)
        cost = np.append(np.zeros(x.size), -1.0)
        free = [(None, None)] * x.size + [(None, 1.0)]
        found = linprog(cost, A_ub=np.array(A), b_ub=np.array(b), bounds=free)
        if found.status == 0:
            most = max(most, -found.fun)
    return most


def drawn_constraints(
    rng: np.random.Generator, x: np.ndarray
) -> list[tuple[clvq.Constraint | str, list[tuple[np.ndarray, float]]]]:
    """Constraints, each with the rows that it stands for, written down by hand."""
    out: list[tuple[clvq.Constraint | str, list[tuple[np.ndarray, float]]]] = []
    for _ in range(int(rng.integers(3, 8))):
        j, kind = int(rng.integers(x.size)), int(rng.integers(5))
        one = np.eye(x.size)[j]
        if kind == 0:
            by = float(rng.uniform(0.05, 1.0))
            out.append((clvq.MaxChange(j, by), [(one, x[j] + by), (-one, by - x[j])]))
        elif kind == 1:
            low = float(x[j] + rng.normal())
            out.append((clvq.Bounds(j, lower=low), [(-one, -low)]))
        elif kind == 2:
            high = float(x[j] + rng.normal())
            out.append((clvq.Bounds(j, upper=high), [(one, high)]))
        elif kind == 3:
            a = rng.normal(size=x.size)
            right = float(a @ x + rng.normal())
            out.append((clvq.Linear(a, "<=", right), [(a, right)]))
        else:
            out.append((clvq.Decrease(j), [(one, float(x[j]))]))
    return out


@pytest.mark.parametrize("cost", [clvq.Manhattan(), clvq.Euclidean()], ids=repr)
@pytest.mark.parametrize("seeds", some([range(16), range(16, 50), range(50, 160)], quick=1))
def test_conflicts_are_irreducible_by_linear_programs(cost: clvq.Cost, seeds: range) -> None:
    """Removing any member makes room, and the set itself leaves none, by SciPy's word."""
    seen = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        x = rng.normal(size=3)
        model = clvq.PrototypeModel(rng.normal(size=(4, 3)) * 2, [0, 0, 1, 1])
        drawn = drawn_constraints(rng, x)
        cf = clvq.Explainer(model, cost, [item for item, _ in drawn]).explain(x, target=1)
        if cf.status != "infeasible":
            continue
        members = [rows for item, rows in drawn if any(item is other for other in cf.conflict)]
        everything = [row for rows in members for row in rows]
        leads = [room_by_linprog(model, x, everything)]
        for out in range(len(members)):
            rest = [row for k, rows in enumerate(members) if k != out for row in rows]
            leads.append(room_by_linprog(model, x, rest))
        if min(abs(lead) for lead in leads) < 1e-6:
            continue  # too close to a tie for either side to say
        seen += 1
        assert leads[0] < 0
        assert cf.conflict_is_irreducible
        assert all(lead > 0 for lead in leads[1:])
    assert seen >= len(seeds) // 4


def test_part_of_a_contradiction_that_keeps_the_target_out_is_enough() -> None:
    """'u <= 1' and 'u >= 5' contradict each other, but frozen v and 'u <= 1' alone would do."""
    cf = explain(["u <= -1000", "u >= 5", clvq.Bounds("v", upper=0.0)], clvq.Manhattan())
    assert len(cf.conflict) == 2
    only = explain(["4 * u + 2 * v <= 1", "4 * u + 2 * v >= 2"], clvq.Manhattan())
    assert only.conflict == ("4 * u + 2 * v <= 1",)
    assert only.reason == "each cell of the target is shown to be out of reach"


def test_smaller_conflict_elsewhere_is_preferred_to_a_contradiction() -> None:
    cf = explain(["u >= 5", "u <= 4", clvq.Freeze("u", "v")], clvq.Manhattan())
    assert cf.conflict == (clvq.Freeze("u", "v"),)


def test_constraints_that_have_nothing_to_do_with_it_are_left_out_on_a_grid() -> None:
    """No whole numbers meet the equation within bounds; what is said of r does not matter."""
    model = clvq.PrototypeModel(
        [[0] * 3, [1, 0, 0]], ["no", "yes"], omegas=np.eye(3)[:1], feature_names=list("rab")
    )
    features = clvq.Features(["r"] + [clvq.Feature(name, "whole") for name in "ab"])
    bounds = [clvq.Bounds(name, 0, 4) for name in "ab"]
    constraints = ["6*a + 10*b == 31", *bounds, "r <= 5", "r >= -7"]
    explainer = clvq.Explainer(model, constraints=constraints, features=features)
    cf = explainer.explain([0] * 3, target="yes")
    assert cf.status == "infeasible"
    assert not {"r <= 5", "r >= -7"} & {item for item in cf.conflict if isinstance(item, str)}
    assert "6*a + 10*b == 31" in cf.conflict

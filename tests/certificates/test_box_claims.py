"""What proofs by boxes claim, against exact arithmetic, enumeration and tampering.

A claim is false if an input that costs less than a bound, or any input where there should be
none, is one that the model's own `predict` gives the target and that obeys the constraints. All
of that is decided in fractions here, without the code that is tested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq.certificates.boxes import BoxCertificate, BoxTree
from counterlvq.programs.nonconvex import LiftedMultipliers
from counterlvq.programs.program import Multipliers
from tests.support.quick import seeds, some

Model = clvq.PrototypeModel


# --- exact oracles ------------------------------------------------------------------------------


def exact_scores(model: Model, y: np.ndarray) -> list[Fraction]:
    """Squared distance to each prototype, as the mathematics has it."""
    point = [Fraction(float(value)) for value in y]
    scores = []
    for k, omega in enumerate(model.factors):
        away = [a - Fraction(float(b)) for a, b in zip(point, model.prototypes[k], strict=True)]
        rows = ([Fraction(float(value)) for value in row] for row in omega)
        lifted = (sum((a * b for a, b in zip(row, away, strict=True)), Fraction(0)) for row in rows)
        score = sum((value * value for value in lifted), Fraction(0))
        scores.append(score + (0 if model.offsets is None else Fraction(float(model.offsets[k]))))
    return scores


def exact_label(model: Model, y: np.ndarray) -> Any:
    """Of two equally near prototypes the first wins."""
    scores = exact_scores(model, y)
    return model.labels[scores.index(min(scores))]


def exact_cost(cost: clvq.Cost, delta: list[Fraction]) -> Fraction:
    if isinstance(cost, clvq.Manhattan):
        return sum((abs(value) for value in delta), Fraction(0))
    if isinstance(cost, clvq.Mahalanobis):
        matrix = np.asarray(cost.matrix)
        pairs = product(range(len(delta)), repeat=2)
        return sum(
            (Fraction(float(matrix[i, j])) * delta[i] * delta[j] for i, j in pairs), Fraction(0)
        )
    return sum((value * value for value in delta), Fraction(0))


def change(x: np.ndarray, y: np.ndarray) -> list[Fraction]:
    return [Fraction(float(b)) - Fraction(float(a)) for a, b in zip(x, y, strict=True)]


def cheapest(
    model: Model, cost: clvq.Cost, x: np.ndarray, target: Any, points: Iterator[np.ndarray]
) -> Fraction | None:
    """Least cost among points that have the target's label."""
    found = (exact_cost(cost, change(x, y)) for y in points if exact_label(model, y) == target)
    return min(found, default=None)


def near_points(
    rng: np.random.Generator, x: np.ndarray, answer: clvq.Counterfactual, count: int
) -> Iterator[np.ndarray]:
    """Points on the way to the answer and around it: the cheapest that are not."""
    if answer.status.has_answer:
        yield answer.x
        for shrink in 1.0 - 10.0 ** rng.uniform(-16, -1, size=count):
            yield x + shrink * (answer.x - x)
        for size in 10.0 ** rng.uniform(-16, 0, size=count):
            yield x + (answer.x - x) * (1.0 + size * rng.normal(size=x.size))


# --- ugly models --------------------------------------------------------------------------------


def ugly_model(rng: np.random.Generator, d: int) -> tuple[Model, np.ndarray]:
    """Local metrics that hardly differ, copies that hardly do, far prototypes, far origins."""
    p = int(rng.integers(2, 5))
    kind = rng.choice(["plain", "nearly equal", "near copies", "far", "rank deficient"])
    W = rng.normal(size=(p, d)) * 2.0
    omegas = [rng.normal(size=(d, d)) for _ in range(p)]
    if kind == "nearly equal":
        omegas = [omegas[0] * (1.0 + 10.0 ** rng.uniform(-15, -2) * k) for k in range(p)]
    if kind == "near copies":
        W[1] = W[0] + 10.0 ** rng.uniform(-12, -3) * rng.normal(size=d)
    if kind == "far":
        W[-1] = 10.0 ** rng.uniform(4, 14) * rng.normal(size=d)
    if kind == "rank deficient":
        omegas = [omega[: max(1, d - 1)] for omega in omegas]
    offset = rng.choice([0.0, 0.0, 1e3, 1e6]) * rng.normal(size=d)
    labels = ["no", "yes", *rng.choice(["no", "yes"], size=p - 2)]
    x = W[0] + 0.1 * rng.normal(size=d)
    if len({omega.shape for omega in omegas}) == 1 and kind == "nearly equal" and p == 2:
        omegas[1] = omegas[1] * (1.0 - 2.0**-40)
    return Model(W + offset, labels, omegas=omegas), x + offset


COSTS: dict[str, Callable[[np.random.Generator, int], clvq.Cost]] = {
    "l1": lambda rng, d: clvq.Manhattan(),
    "l2": lambda rng, d: clvq.Euclidean(),
    "flat": lambda rng, d: clvq.Mahalanobis(np.diag([1.0] + [0.0] * (d - 1))),
}


def assert_true(
    cf: clvq.Counterfactual, seen: Fraction | None, what: str, margin: bool = False
) -> None:
    """No confirmed point is cheaper than the bound, and there is none where none should be."""
    if seen is None:
        return
    assert Fraction(cf.lower_bound) <= seen if np.isfinite(cf.lower_bound) else False, what
    assert cf.status != "infeasible", what


@pytest.mark.covering
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("seed", range(12))
def test_no_confirmed_point_is_cheaper_than_a_bound(cost: str, seed: int) -> None:
    rng = np.random.default_rng(7000 + seed)
    d = int(rng.integers(1, 4))
    model, x = ugly_model(rng, d)
    price = COSTS[cost](rng, d)
    explainer = clvq.Explainer(model, price, time_limit=0.5)
    if exact_label(model, x) == "yes":
        return
    cf = explainer.explain(x, target="yes")
    far = (x + 10.0 ** rng.uniform(-3, 7) * rng.normal(size=d) for _ in range(60))
    own = (w.copy() for w in model.prototypes)
    points = [*near_points(rng, x, cf, 30), *far, *own]
    seen = cheapest(model, price, x, "yes", iter(points))
    assert_true(cf, seen, f"{cost} {seed}")
    if not cf.status.has_answer or not isinstance(cf.certificate, BoxCertificate):
        return
    # The proof of a dearer answer is one as well: now no cap is in the way.
    for cost_of in (10.0 * cf.cost, cf.cost + 1.0):
        told = explainer.verify(replace(cf, cost=cost_of))
        assert seen is None or Fraction(told) <= seen


# --- no end -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", seeds(20, quick=6))
def test_what_lies_beyond_any_reach_is_not_denied(seed: int) -> None:
    """A point a million spreads away has the label: INFEASIBLE would be false."""
    rng = np.random.default_rng(seed)
    bend = 10.0 ** rng.uniform(-14, -2)
    d = int(rng.integers(2, 4))
    free, held = 0, d - 1
    W = np.zeros((2, d))
    W[1, held] = 1.0 + rng.random()
    omegas = [np.eye(d), np.diag([1.0 - bend] + [1.0] * (d - 1))]
    model = Model(W, ["no", "yes"], omegas=omegas)
    frozen = [clvq.Freeze(j) for j in range(d) if j != free]
    y = np.zeros(d)
    y[free] = 2.0 * W[1, held] / np.sqrt(bend)
    assert exact_label(model, y) == "yes"
    for cost in (
        clvq.Manhattan(),
        clvq.Euclidean(),
        clvq.Mahalanobis(np.diag([0.0] + [1.0] * (d - 1))),
    ):
        cf = clvq.Explainer(model, cost, constraints=frozen, time_limit=0.5).explain(
            np.zeros(d), "yes"
        )
        assert cf.status != "infeasible"
        assert Fraction(cf.lower_bound) <= exact_cost(cost, change(np.zeros(d), y))
        if cf.status == "unknown":
            assert "within" in cf.reason


@pytest.mark.parametrize("seed", seeds(12, quick=3))
def test_a_cost_that_is_flat_proves_nothing_far_away(seed: int) -> None:
    rng = np.random.default_rng(seed)
    step = 10.0 ** rng.uniform(-6, -1)
    flat = clvq.Mahalanobis(np.diag([1.0, 0.0]))
    W = np.array([[0.0, 0.0], [2.0, step]])
    y = np.array([0.0, 4.0 * (4.0 + step) / step])
    bent = Model(W, ["no", "yes"], omegas=[np.eye(2), np.diag([1.001, 1.0])])
    plain = Model(W, ["no", "yes"])
    whole = clvq.Features(["x0", clvq.Feature("x1", "whole")])
    for model, features in ((bent, None), (plain, whole)):
        y[1] = np.ceil(y[1])
        assert exact_label(model, y) == "yes"
        cf = clvq.Explainer(model, flat, features=features, time_limit=1.0).explain([0, 0], "yes")
        assert cf.lower_bound == 0.0
        assert cf.status != "infeasible"


def test_whole_numbers_beyond_any_reach_are_not_denied() -> None:
    names = ["km", "m", "mm"]
    features = clvq.Features(["km", clvq.Feature("m", "whole"), clvq.Feature("mm", "whole")])
    model = Model([[0, 0, 0], [1, 0, 0]], ["no", "yes"], omegas=[[1, 0, 0]], feature_names=names)
    for share in (1e-3, 1e-4):
        rules = [f"km <= 0.4 + {share} * m", f"m <= {share} * mm"]
        cf = clvq.Explainer(model, constraints=rules, features=features, time_limit=1.0).explain(
            [0, 0, 0], target="yes"
        )
        assert cf.status != "infeasible"


# --- enumeration --------------------------------------------------------------------------------


def grid_question(
    rng: np.random.Generator,
) -> tuple[Model, clvq.Features, list[clvq.Constraint], np.ndarray, np.ndarray]:
    """Whole numbers in a small box, where ties are common; local metrics or a shared one."""
    d = int(rng.integers(1, 4))
    size = int(rng.integers(2, 6))
    offset = float(rng.choice([0, 0, 10**6]))
    p = int(rng.integers(2, 6))
    W = rng.integers(0, size + 1, size=(p, d)) + offset
    omegas: Any = None
    kind = rng.choice(["plain", "shared", "local", "nearly equal"])
    if kind == "shared":
        omegas = rng.integers(-2, 3, size=(d, d)).astype(float)
    if kind == "local":
        omegas = [rng.integers(-2, 3, size=(d, d)) + np.eye(d) for _ in range(p)]
    if kind == "nearly equal":
        omegas = [np.eye(d) * (1.0 + k * 2.0**-50) for k in range(p)]
    labels = rng.permutation(["no", "yes", *rng.choice(["no", "yes"], size=p - 2)])
    model = Model(W, labels, omegas=omegas)
    low, high = offset, offset + size
    features = clvq.Features(
        [clvq.Feature(f"x{j}", "whole", lower=low, upper=high) for j in range(d)]
    )
    grid = np.array(list(product(np.arange(low, high + 1), repeat=d)))
    rules: list[clvq.Constraint] = []
    if rng.random() < 0.5:
        j = int(rng.integers(d))
        rules.append(clvq.MaxChange(f"x{j}", float(rng.integers(1, 3))))
    return model, features, rules, grid, grid[rng.integers(len(grid))]


def allowed(rules: list[clvq.Constraint], grid: np.ndarray, x: np.ndarray) -> np.ndarray:
    keep = np.ones(len(grid), dtype=bool)
    for rule in rules:
        assert isinstance(rule, clvq.MaxChange)
        j = int(str(rule.feature)[1:])
        keep &= np.abs(grid[:, j] - x[j]) <= rule.by
    return grid[keep]


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("seed", seeds(25, quick=10))
def test_whole_numbers_against_enumeration(seed: int, squared: bool) -> None:
    rng = np.random.default_rng(500 + seed)
    model, features, rules, grid, x = grid_question(rng)
    if model.is_local and [type(part) for part in model.labels] and len(set(model.labels)) < 2:
        return
    cost = clvq.Euclidean() if squared else clvq.Manhattan()
    cf = clvq.Explainer(model, cost, rules, features=features).explain(x, target="yes")
    best = cheapest(model, cost, x, "yes", iter(allowed(rules, grid, x)))
    if best is None:
        assert cf.status == "infeasible"
        return
    assert cf.status == "optimal"
    assert exact_label(model, cf.x) == "yes"
    assert Fraction(cf.cost) == best
    assert cf.lower_bound <= cf.cost


# --- tampering ----------------------------------------------------------------------------------


def numbers() -> list[Any]:
    return [0.0, -1.0, 1.0, 1e-30, 1e12, 1e30, 1e99, 1e101, 1e308, -1e30, np.inf, -np.inf, np.nan]


def mutated(rng: np.random.Generator, given: Any) -> Any:
    """Some entries, or all, or something that is no such array."""
    array, how = np.asarray(given), rng.integers(7)
    if how == 0:
        return array.astype(object)
    if how == 1:
        return array.tolist()
    if how == 2:
        return np.concatenate([array, array])[: len(array) + 1]
    out = array.copy()
    if not out.size or out.dtype == object:
        return out
    choices = numbers() if out.dtype.kind == "f" else [-(2**40), -2, -1, 0, 1, 2, 2**40]
    value = choices[rng.integers(len(choices))]
    if how in (3, 4):
        out.flat[rng.integers(out.size)] = value
    elif how == 5:
        out[...] = value
    elif out.dtype.kind == "f":
        with np.errstate(all="ignore"):
            out = out * value
    return out


def mutated_prices(rng: np.random.Generator, prices: LiftedMultipliers) -> Any:
    names = [part.name for part in fields(LiftedMultipliers)]
    name = names[rng.integers(len(names))]
    if name == "linear":
        which = [part.name for part in fields(Multipliers)][rng.integers(3)]
        return replace(
            prices,
            linear=replace(prices.linear, **{which: mutated(rng, getattr(prices.linear, which))}),
        )
    return replace(prices, **{name: mutated(rng, getattr(prices, name))})


class Lookalike:
    """Has what a tree has, and says what it likes."""

    def __init__(self, tree: BoxTree) -> None:
        self.__dict__.update({part.name: getattr(tree, part.name) for part in fields(BoxTree)})

    def fits(self, question: object) -> bool:
        return True

    def lower_bound(self, *told: object) -> float:
        return 1e9

    def is_empty(self, *told: object) -> bool:
        return True


def mutated_tree(rng: np.random.Generator, tree: BoxTree) -> Any:
    how = rng.integers(8)
    if how < 4 and tree.prices:
        at = int(rng.integers(len(tree.prices)))
        prices = list(tree.prices)
        prices[at] = mutated_prices(rng, prices[at])
        return replace(tree, prices=tuple(prices))
    if how == 4:
        return Lookalike(tree)
    if how == 5:
        other: list[Any] = [-1, 0, 1, 10**6, 0.0, True, None, np.int64(1)]
        return replace(tree, prototype=other[rng.integers(len(other))])
    name = ["feature", "at", "low", "high", "caps"][rng.integers(5)]
    return replace(tree, **{name: mutated(rng, getattr(tree, name))})


def tamper_questions(part: int) -> Iterator[tuple[clvq.Explainer, np.ndarray, Fraction]]:
    """Explainers, inputs and what the cheapest counterfactual costs at the most."""
    held = clvq.Features(["x0", clvq.Feature("x1", "whole")])
    model = Model([[0.0, 0.0], [4.0, 4.0]], ["no", "yes"])
    asked = clvq.Explainer(model, constraints=["x1 == 1"], features=held)
    yield asked, np.zeros(2), Fraction(4)
    for seed in range(part, 60, PARTS):
        rng = np.random.default_rng(seed)
        model, features, rules, grid, x = grid_question(rng)
        best = cheapest(model, clvq.Manhattan(), x, "yes", iter(allowed(rules, grid, x)))
        if best:
            yield clvq.Explainer(model, constraints=rules, features=features), x, best
    for seed in range(part, 6, PARTS):
        rng = np.random.default_rng(seed)
        model = Model(
            rng.normal(size=(3, 2)), ["no", "yes", "no"], omegas=rng.normal(size=(3, 2, 2))
        )
        x = model.prototypes[0]
        asked = clvq.Explainer(model, time_limit=1.0)
        cf = asked.explain(x, "yes")
        seen = cheapest(model, clvq.Manhattan(), x, "yes", near_points(rng, x, cf, 20))
        if seen:
            yield asked, x, seen


PARTS = 4


@pytest.mark.parametrize("part", some(range(PARTS), quick=1))
def test_certificates_that_were_tampered_with_prove_nothing_false(part: int) -> None:
    rng = np.random.default_rng([99, part])
    asked, says_something = 0, 0
    for explainer, x, best in tamper_questions(part):
        cf = explainer.explain(x, target="yes")
        if not isinstance(cf.certificate, BoxCertificate):
            continue
        forest = cf.certificate
        for _ in range(60):
            trees: list[Any] = list(forest.trees)
            for _ in range(int(rng.integers(1, 3))):
                at = int(rng.integers(len(trees)))
                if isinstance(trees[at], BoxTree):
                    trees[at] = mutated_tree(rng, trees[at])
            cost = [cf.cost, 10.0 * cf.cost + 1.0, np.inf, np.nan, -1.0][rng.integers(5)]
            told = explainer.verify(
                replace(cf, cost=cost, certificate=BoxCertificate(tuple(trees)))
            )
            assert not np.isnan(told)
            assert told <= 0 or (np.isfinite(told) and Fraction(told) <= best)
            asked += 1
            says_something += told > 0
    assert asked >= 1000 / PARTS
    assert says_something >= 100 / PARTS  # some changes do no harm


def test_certificates_that_only_look_alike_prove_nothing() -> None:
    model = Model([[0.0], [4.0]], ["no", "yes"], omegas=[[[1.0]], [[2.0]]])
    explainer = clvq.Explainer(model)
    cf = explainer.explain([0.0], target="yes")
    assert isinstance(cf.certificate, BoxCertificate)
    assert explainer.verify(cf) > 0
    trees: Any = [Lookalike(cf.certificate.trees[0])]
    for false in (tuple(trees), trees, None, cf.certificate.trees[0], iter(cf.certificate.trees)):
        assert explainer.verify(replace(cf, certificate=BoxCertificate(false))) == 0.0


@pytest.mark.parametrize("features", [None, clvq.Features([clvq.Feature("x0", "whole")])])
@pytest.mark.parametrize("omegas", [None, [[[1.0]], [[1.0]], [[2.0]]]], ids=["shared", "local"])
def test_copies_of_earlier_rivals_never_win(features: Any, omegas: Any) -> None:
    """Their cells are empty without any tree, and `verify` says so too."""
    model = clvq.PrototypeModel([[1.0], [1.0], [4.0]], ["a", "b", "c"], omegas, ["x0"])
    explainer = clvq.Explainer(model, features=features)
    cf = explainer.explain([0.0], target="b")
    assert cf.status is clvq.Status.INFEASIBLE
    assert explainer.verify(cf) == cf.lower_bound == np.inf


@pytest.mark.parametrize("features", [None, clvq.Features([clvq.Feature("x0", "whole"), "x1"])])
def test_inputs_that_are_no_rows_prove_nothing(features: Any) -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 1.0]], ["a", "b"], feature_names=["x0", "x1"])
    inside = clvq.Quadratic(np.eye(2), 100.0)
    explainer = clvq.Explainer(model, constraints=[inside], features=features)
    cf = explainer.explain([0.0, 0.0])
    for given in (np.array([np.nan, 0.0]), np.zeros(1), np.zeros(3), np.zeros((2, 2)), [0.0, 0.0],
                  np.array(["0", "0"]), None, np.zeros(2, dtype=np.float32)):  # fmt: skip
        assert explainer.verify(replace(cf, original_values=given)) == 0.0

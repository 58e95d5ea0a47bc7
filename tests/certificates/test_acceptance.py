"""Finished points: what is accepted, what it costs and what is proved, by sums written out anew."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq.certificates.acceptance import Acceptance
from counterlvq.certificates.acceptance_kernel import judge_rows, relative_gap
from counterlvq.numeric.interpreting import compile_from_now_on
from counterlvq.programs.template import ProgramTemplate

INF, NAN = np.inf, np.nan
MODEL = clvq.PrototypeModel([[0.0, 0.0, 1.0], [4.0, 2.0, 1.0]], ["a", "b"])


def rules(*constraints: clvq.Constraint | str, cost: clvq.Cost | None = None) -> Acceptance:
    return clvq.Explainer(MODEL, cost, constraints).prepared_for().rules


def meets(judge: Acceptance, y: object, x: object = (0, 0, 0), *, strict: bool = True) -> bool:
    Y, X = (np.array([values], dtype=float) for values in (y, x))
    return bool(judge.judged(Y, X, strict=strict).good[0])


# --- constraints --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("constraint", "held", "broken"),
    [
        (clvq.Bounds(0, lower=-1, upper=2), [2, 9, 9], [np.nextafter(2, 3), 9, 9]),
        (clvq.Freeze(1), [5, 0, 5], [5, 1e-9, 5]),
        (clvq.MaxChange(2, 1.5), [0, 0, -1.5], [0, 0, np.nextafter(-1.5, -2)]),
        ("x0 + 2 * x1 <= x2", [1, 1, 3], [1, 1, np.nextafter(3, 2)]),
        ("x0 + x1 == original(x2) + 3", [1, 2, 7], [1, 2.0001, 7]),
        ("x0 >= original(x0)", [0, 0, 0], [-1e-300, 0, 0]),
    ],
    ids=str,
)
def test_constraint_holds_to_the_last_digit(
    constraint: clvq.Constraint | str, held: list[float], broken: list[float]
) -> None:
    judge = rules(constraint)
    assert meets(judge, held)
    assert not meets(judge, broken)


def test_without_strictness_an_inequality_gives_way_by_rounding_alone() -> None:
    judge = rules("x0 + 2 * x1 <= x2")
    for off, given in [(2.0**-49, True), (2.0**-46, False)]:
        y = [1, 1, 3 - off]
        assert not meets(judge, y)
        assert meets(judge, y, strict=False) is given


def test_what_gives_way_does_not_grow_with_values_beyond_the_data() -> None:
    """On a grid proofs spare what is off by the rounding of numbers as large as the data.

    2^80 and a value next to it differ by 2^29, which is nothing beside them and a lot beside x2.
    """
    features = clvq.Features(
        [clvq.Feature("x0"), clvq.Feature("x1"), clvq.Feature("x2", kind="whole")]
    )
    rule, far = "x0 - x1 + x2 <= 0", 2.0**80
    open_ended = clvq.Explainer(MODEL, constraints=[rule], features=features).prepared_for().rules
    ends = [clvq.Bounds(name, lower=-(2.0**81), upper=2.0**81) for name in ("x0", "x1")]
    bounded = clvq.Explainer(MODEL, constraints=[rule, *ends], features=features)
    near, off = [1, 3 - 2.0**-49, 2], [far + 2.0**29, far, 0]
    for judge, given in [(open_ended, False), (bounded.prepared_for().rules, True)]:
        assert meets(judge, near, strict=False)
        assert meets(judge, off, strict=False) is given
        assert not meets(judge, off)
        assert not meets(judge, near)


def test_equality_gives_way_by_rounding_alone() -> None:
    judge = rules("x0 + x1 == x2")
    assert meets(judge, [1, 2, 3 + 2.0**-39])
    assert not meets(judge, [1, 2, 3 + 2.0**-36])


def test_every_kind_of_constraint_is_looked_at() -> None:
    kinds = [
        clvq.Bounds(0, upper=2),
        clvq.Freeze(1),
        "x0 + x2 <= 3",
        "x0 - x2 == 1",
        clvq.Quadratic(np.eye(3), 4.0, center=[1, 0, 0]),
    ]
    judge = rules(*kinds)
    assert meets(judge, [1.5, 0, 0.5])
    breaking = [[2.25, 0, 1.25], [1.5, 0.25, 0.5], [2, 0, 1.25], [1.5, 0, 0.75], [-0.75, 0, -1.75]]
    for y in breaking:
        assert not meets(judge, y), y
    assert meets(rules(*kinds[:4]), breaking[-1]), "another constraint hid the ball"


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
@pytest.mark.parametrize("constraints", [(), ("x0 == x1",), (clvq.Freeze(2),)], ids=str)
def test_what_is_no_number_is_not_accepted(
    bad: float, constraints: tuple[clvq.Constraint | str, ...]
) -> None:
    judge = rules(*constraints)
    found = judge.judged(np.array([[bad, 0.0, 0.0], [0.0, 0.0, 0.0]]), np.zeros((2, 3)))
    assert found.good.tolist() == [False, True]
    assert found.gap.tolist() == [INF, 0.0]


def test_numbers_too_large_to_compare_are_not_believed() -> None:
    """The sum overflows, and so does what rounding would allow it."""
    assert not meets(rules("x0 + x1 == 0"), [1.5e308, 1.5e308, 0.0])
    assert not meets(rules("x0 + x1 <= 0"), [1.5e308, 1.5e308, 0.0], strict=False)


# --- cost and gap -------------------------------------------------------------------------------

COSTS = {
    "absolute": clvq.Manhattan(weights=[1.0, 0.25, 3.0]),
    "square": clvq.Euclidean(),
    "mixed square": clvq.Mahalanobis([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 4.0]]),
    "flat square": clvq.Mahalanobis([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]),
}
each_cost = pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS)


def exact_cost(template: ProgramTemplate, delta: np.ndarray) -> Fraction:
    change = [Fraction(value) for value in delta]
    flat = sum(Fraction(w) * abs(v) for w, v in zip(template.w, change, strict=True))
    lifted = [sum(Fraction(a) * v for a, v in zip(row, change, strict=True)) for row in template.L]
    return flat + sum(value**2 for value in lifted)


@each_cost
def test_cost_is_what_rational_arithmetic_says(cost: clvq.Cost) -> None:
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(2, 20, 3))
    judge = rules(cost=cost)
    found = judge.judged(Y, X)
    exact = [float(exact_cost(judge.template, y - x)) for y, x in zip(Y, X, strict=True)]
    assert found.cost == pytest.approx(exact, rel=1e-14)
    assert found.cost == pytest.approx([cost.value(y - x) for y, x in zip(Y, X, strict=True)])


@each_cost
def test_resolution_is_what_the_last_digits_of_changed_features_are_worth(cost: clvq.Cost) -> None:
    """Moving each changed feature by eight units of rounding of its own size costs as much."""
    x, y = np.array([1.0, 5e6, 1.0]), np.array([1.0, 5e6, 1.0 + 1e-3])
    judge = rules(cost=cost)
    found = judge.judged(y[None, :], x[None, :])
    blurred = y + np.array([0.0, 0.0, 8 * 2.0**-53 * (x[2] + y[2])])
    exact = exact_cost(judge.template, blurred - x) - exact_cost(judge.template, y - x)
    assert found.resolution[0] == pytest.approx(float(exact), rel=0.2, abs=1e-300)
    # Prototypes, and features that stay, have no part in it.
    far = replace(judge, model=clvq.PrototypeModel([[0, 0, 0], [1e20, 1e20, 1e20]], ["a", "b"]))
    assert far.judged(y[None, :], x[None, :]).resolution[0] == found.resolution[0]


def test_values_of_a_grid_have_no_digits_to_spare() -> None:
    features = clvq.Features([clvq.Feature("x0", "whole"), clvq.Feature("x1"), clvq.Feature("x2")])
    judge = clvq.Explainer(MODEL, features=features).prepared_for().rules
    x, y = np.array([[4e15, 1.0, 1.0]]), np.array([[4e15 + 12, 1.0, 1.0]])
    assert judge.judged(y, x).resolution[0] == 0.0
    assert judge.judged(y + [[0.0, 1.0, 0.0]], x).resolution[0] == pytest.approx(3 * 2.0**-51)


@pytest.mark.parametrize(
    ("cost", "bound", "gap"),
    [(4.0, 3.0, 0.25), (4.0, 4.0, 0.0), (0.0, 0.0, 0.0), (1e-12, 0.0, 1.0), (1e-300, 0.0, 1.0)],
)
def test_gap_is_the_share_that_is_not_proved(cost: float, bound: float, gap: float) -> None:
    assert relative_gap(cost, bound) == pytest.approx(gap)


@pytest.mark.parametrize(("cost", "bound"), [(NAN, 1.0), (1.0, NAN), (NAN, NAN), (INF, 1.0)])
def test_gap_of_what_is_no_number_is_not_closed(cost: float, bound: float) -> None:
    assert not relative_gap(cost, bound) <= 1e-6


# --- alone and among others ---------------------------------------------------------------------


@each_cost
def test_row_is_judged_the_same_alone_and_among_others(cost: clvq.Cost) -> None:
    rng = np.random.default_rng(2)
    X, Y = rng.normal(size=(2, 50, 3))
    Y[::7, 1] = NAN
    bound = rng.random(50)
    judge = rules("x0 + x1 <= x2 + 1", clvq.Bounds(0, upper=0.5), cost=cost)
    together = judge.judged(Y, X, bound)
    assert 0 < together.good.sum() < 43
    for i in range(50):
        alone = judge.judged(Y[i : i + 1], X[i : i + 1], float(bound[i]))
        for mine, theirs in zip(alone, together, strict=True):
            assert mine[0] == theirs[i]


def test_any_layout_is_judged_by_the_same_compiled_code() -> None:
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(2, 6, 3))
    judge = rules("x0 <= x1")
    compile_from_now_on()
    expected = judge.judged(Y, X)
    compiled = list(judge_rows.dispatcher.signatures)
    locked = Y.copy()
    locked.setflags(write=False)
    for other in (locked, np.asfortranarray(Y), np.repeat(Y, 2, axis=0)[::2]):
        for mine, theirs in zip(judge.judged(other, X), expected, strict=True):
            assert np.array_equal(mine, theirs)
    assert judge_rows.dispatcher.signatures == compiled != []

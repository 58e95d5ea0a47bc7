"""From features to coordinates: where levels stand, what conditions and prices become there."""

from __future__ import annotations

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq import Feature, Features
from counterlvq.problem.coordinates import Coordinates
from counterlvq.problem.cost_terms import Prices
from counterlvq.problem.expressions import Expression, as_constraint
from counterlvq.programs.conditions import Conditional, Implication, LevelRule, LinearConditions

FEATURES = Features(
    [
        Feature("age", "whole", lower=0, upper=99),
        Feature("job", levels=["clerk", "nurse", "cook"]),
        "income",
        Feature("owner", "boolean"),
        Feature("rate", decimals=2),
    ]
)
ROWS = np.array([[31.0, 2.0, 5.5, 1.0, 0.25], [40.0, 0.0, -1.0, 0.0, 1.0]])
SPREAD = Coordinates(FEATURES).seen_from(ROWS[1])


def test_other_levels_have_a_coordinate_each() -> None:
    assert SPREAD.width == 6
    assert SPREAD.numbers.tolist() == [0, 3, 5]
    assert SPREAD.inner(ROWS).tolist() == [
        [31.0, 0.0, 1.0, 5.5, 1.0, 0.25],
        [40.0, 0.0, 0.0, -1.0, 0.0, 1.0],
    ]
    assert SPREAD.names[1:3] == ("job == 'nurse'", "job == 'cook'")
    other = SPREAD.seen_from(ROWS[0])
    assert other.names[1:3] == ("job == 'clerk'", "job == 'nurse'")
    assert other.names[4] == "owner == False"


def test_there_and_back() -> None:
    every = np.array([[n, j, 0.5, b, 0.0] for n in (0, 7) for j in range(3) for b in range(2)])
    for row in every:
        seen = SPREAD.seen_from(row)
        assert (seen.outer(seen.inner(every)) == every).all()


def test_numbers_alone_are_their_own_coordinates() -> None:
    plain = Coordinates(Features(["a", "b"]))
    assert plain.is_plain
    assert not plain.has_levels
    rows = np.array([[1.5, 2.5]])
    assert (plain.inner(rows) == rows).all()
    assert not Coordinates(Features([Feature("a", "whole")])).is_plain
    assert not Coordinates(Features([Feature("a", decimals=1)])).is_plain


def test_a_feature_of_one_level_is_a_feature_of_levels() -> None:
    single = Coordinates(Features([Feature("a", levels=[7]), "b"]))
    assert single.has_levels
    assert single.width == 1
    assert single.outer(single.inner(np.array([[0.0, 2.0]]))).tolist() == [[0.0, 2.0]]


def test_the_grid_knows_steps_and_decimals() -> None:
    grid = Coordinates(Features(["u", Feature("n", step=5), Feature("r", decimals=2)])).grid
    assert grid.step.tolist() == [0.0, 5.0, 1.0]
    assert grid.parts.tolist() == [1.0, 1.0, 100.0]


def holds(rows: LinearConditions, y: np.ndarray, x: np.ndarray) -> bool:
    value = rows.A @ y + rows.R @ x
    return bool((value == rows.v).all() if rows.equality else (value <= rows.v).all())


def test_what_holds_of_every_row() -> None:
    good, other = SPREAD.inner(ROWS)
    assert all(holds(rows, good, other) for rows in SPREAD.own_conditions)
    for at, value in ((1, 1.0), (2, -1.0), (4, 2.0), (0, 100.0), (0, -1.0)):
        bad = good.copy()
        bad[at] = value
        assert not all(holds(rows, bad, other) for rows in SPREAD.own_conditions)


@pytest.mark.parametrize(
    ("rule", "first", "second"),
    [
        (clvq.Freeze("job"), False, True),
        (clvq.OneOf("job", ["cook", "nurse"]), True, False),
        ("job != 'cook'", False, True),
        ("job not in ['clerk', 'nurse']", True, False),
        ("owner == True", True, False),
        ("owner != True", False, True),
        ("age >= 35", False, True),
        ("if job == 'cook' then age <= 30", False, True),
        ("if job == 'cook' then age <= 31", True, True),
        ("if job != 'cook' then age == 40", True, True),
        ("if job != 'cook' then age == 41", True, False),
        ("if owner == True then job in ['clerk']", False, True),
        ("if job in ['cook', 'clerk'] then age >= 35", False, True),
        ("if job not in ['cook', 'clerk'] then age >= 1000", True, True),
        ("if job == 'cook' then income <= 0.5 * original(income)", False, True),
    ],
)
def test_conditions_on_features_hold_of_the_same_rows(
    rule: clvq.Constraint | str, first: bool, second: bool
) -> None:
    """Each row is tried as a counterfactual of the second."""
    stated = as_constraint(rule).conditions(FEATURES)
    parts = [part for condition in stated for part in SPREAD.spread(condition)]
    x = SPREAD.inner(ROWS)[1]
    for y, expected in zip(SPREAD.inner(ROWS), (first, second), strict=True):
        said = []
        for part in parts:
            if isinstance(part, Conditional):
                said.append(not part.applies(y, y) or holds(part.rows, y, x))
            else:
                assert isinstance(part, LinearConditions)
                said.append(holds(part, y, x))
        assert all(said) is expected


def test_conditions_of_an_implication_are_inequalities() -> None:
    """Where they do not apply they say nothing; an equality would not do for that."""
    rows = LinearConditions.on_features([0], 5, new=1, old=0, value=3, equality=True)
    parts = SPREAD.spread(Implication(LevelRule(1, frozenset({0})), rows))
    assert len(parts) == 2
    assert all(isinstance(part, Conditional) and not part.rows.equality for part in parts)


# --- prices -------------------------------------------------------------------------------------


def paid(cost: clvq.Cost, x: np.ndarray, y: np.ndarray) -> float:
    seen = SPREAD.seen_from(x)
    priced = Prices.of(cost, FEATURES, FEATURES.names).over(seen)
    before, after = seen.inner(np.array([x, y]))
    lifted = priced.L @ (after - before)
    return float(priced.w @ np.abs(after - before) + lifted @ lifted)


@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        (clvq.Manhattan(), 9 + 1 + 6.5 + 1 + 0.75),
        (clvq.Manhattan([1, 3, 2, 5, 4]), 9 + 3 + 13 + 5 + 3),
        (clvq.Manhattan([1, 3, 2, 5, 4], switches={"job": 0.25}), 9 + 0.25 + 13 + 5 + 3),
        (clvq.Manhattan(switches={"job": {("cook", "clerk"): 7.0}}), 9 + 7 + 6.5 + 1 + 0.75),
        (clvq.Manhattan(switches={"job": {("clerk", "cook"): 7.0}}), 9 + 7 + 6.5 + 1 + 0.75),
        (
            clvq.Manhattan(switches={"job": {("clerk", "cook"): 7.0, ("cook", "clerk"): 0.5}}),
            9 + 0.5 + 6.5 + 1 + 0.75,
        ),
        (
            clvq.Manhattan([1, 3, 1, 1, 1], {"job": {("clerk", "nurse"): 9.0}}, default=4.0),
            9 + 4 + 6.5 + 1 + 0.75,
        ),
        (clvq.Euclidean(), 81 + 1 + 6.5**2 + 1 + 0.75**2),
        (clvq.Mahalanobis(np.diag([1, 2, 3]), switches={"owner": 8}), 81 + 1 + 2 * 6.5**2 + 8
         + 3 * 0.75**2),
    ],
)  # fmt: skip
def test_a_switch_costs_its_price(cost: clvq.Cost, expected: float) -> None:
    assert paid(cost, ROWS[0], ROWS[1]) == pytest.approx(expected, rel=1e-12)


def test_a_box_applies_a_condition_only_where_all_of_it_does() -> None:
    (part,) = SPREAD.spread(Expression("if job == 'cook' then age <= 30").conditions(FEATURES)[0])
    assert isinstance(part, Conditional)
    nowhere, cook = np.zeros(6), np.eye(6)[2]
    assert not part.applies(nowhere, cook)
    assert not part.applies(nowhere, nowhere)
    assert part.applies(cook, cook)
    (part,) = SPREAD.spread(Expression("if job == 'clerk' then age <= 30").conditions(FEATURES)[0])
    assert isinstance(part, Conditional)
    assert part.applies(nowhere, nowhere)
    assert not part.applies(nowhere, cook)


def test_weights_may_be_for_columns_that_the_model_never_sees() -> None:
    cost = clvq.Manhattan([9, 1, 2, 3, 4, 5])
    w = Prices.of(cost, FEATURES, ("note", *FEATURES.names)).over(SPREAD).w
    assert w.tolist() == [1.0, 2.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        (clvq.Manhattan([1, 2]), ("2 weights", "expected 5")),
        (clvq.Manhattan(switches={"age": 2}), ("'age'", "a number", "weights")),
        (clvq.Manhattan(switches={"jobs": 2}), ("'jobs'", "'job'")),
        (clvq.Manhattan(switches={"job": {("clerk", "pilot"): 2}}), ("'job'", "'pilot'", "'cook'")),
        (clvq.Mahalanobis(np.eye(5)), ("(5, 5)", "(3, 3)")),
    ],
)
def test_prices_that_do_not_fit_are_refused(cost: clvq.Cost, words: tuple[str, ...]) -> None:
    with pytest.raises(clvq.CounterlvqError) as caught:
        Prices.of(cost, FEATURES, FEATURES.names)
    for word in words:
        assert word in str(caught.value)

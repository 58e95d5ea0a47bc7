"""From features to coordinates: where levels stand, what conditions and prices become there."""

from __future__ import annotations

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq import Feature, Features
from counterlvq.coordinates import Coordinates, Prices
from counterlvq.rows import Conditional, Implication, LevelRule, Rows

FEATURES = Features(
    [
        Feature("age", "whole", lower=0, upper=99),
        Feature("job", levels=["clerk", "nurse", "cook"]),
        "income",
        Feature("owner", "boolean"),
        Feature("rate", decimals=2),
    ]
)
SPREAD = Coordinates(FEATURES)
ROWS = np.array([[31.0, 2.0, 5.5, 1.0, 0.25], [40.0, 0.0, -1.0, 0.0, 1.0]])


def test_levels_have_a_coordinate_each() -> None:
    assert SPREAD.width == 8
    assert SPREAD.numbers.tolist() == [0, 4, 7]
    assert SPREAD.inner(ROWS).tolist() == [
        [31.0, 0.0, 0.0, 1.0, 5.5, 0.0, 1.0, 0.25],
        [40.0, 1.0, 0.0, 0.0, -1.0, 1.0, 0.0, 1.0],
    ]
    assert SPREAD.names[1:4] == ("job == 'clerk'", "job == 'nurse'", "job == 'cook'")


def test_there_and_back() -> None:
    assert (SPREAD.outer(SPREAD.inner(ROWS)) == ROWS).all()
    gaps = np.full((1, SPREAD.width), np.nan)
    assert np.isnan(SPREAD.outer(gaps)).all()


def test_numbers_alone_are_their_own_coordinates() -> None:
    plain = Coordinates(Features(["a", "b"]))
    assert plain.is_plain
    assert not plain.has_levels
    rows = np.array([[1.5, 2.5]])
    assert (plain.inner(rows) == rows).all()
    assert not Coordinates(Features([Feature("a", "whole")])).is_plain
    assert not Coordinates(Features([Feature("a", decimals=1)])).is_plain


def test_a_feature_of_one_level_is_a_feature_of_levels() -> None:
    single = Coordinates(Features([Feature("a", levels=[7])]))
    assert single.has_levels
    assert single.outer(single.inner(np.zeros((1, 1)))).tolist() == [[0.0]]


def test_the_grid_knows_steps_and_decimals() -> None:
    grid = Coordinates(Features(["u", Feature("n", step=5), Feature("r", decimals=2)])).grid
    assert grid.step.tolist() == [0.0, 5.0, 1.0]
    assert grid.parts.tolist() == [1.0, 1.0, 100.0]


def holds(rows: Rows, y: np.ndarray, x: np.ndarray) -> bool:
    value = rows.A @ y + rows.R @ x
    return bool((value == rows.v).all() if rows.equality else (value <= rows.v).all())


def test_what_holds_of_every_row() -> None:
    good, other = SPREAD.inner(ROWS)
    assert all(holds(rows, good, other) for rows in SPREAD.own_conditions)
    for at, value in ((1, 1.0), (3, 0.0), (0, 100.0), (0, -1.0), (5, -1.0)):
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
    stated = clvq.constraints.as_constraint(rule).conditions(FEATURES)
    parts = [part for condition in stated for part in SPREAD.spread(condition)]
    x = SPREAD.inner(ROWS)[1]
    for y, expected in zip(SPREAD.inner(ROWS), (first, second), strict=True):
        said = []
        for part in parts:
            if isinstance(part, Conditional):
                said.append(not part.applies(y) or holds(part.rows, y, x))
            else:
                assert isinstance(part, Rows)
                said.append(holds(part, y, x))
        assert all(said) is expected


def test_conditions_of_an_implication_are_inequalities() -> None:
    """Where they do not apply they are multiplied by 0, which an equality would survive."""
    rows = Rows.on_features([0], 5, new=1, old=0, value=3, equality=True)
    parts = SPREAD.spread(Implication(LevelRule(1, frozenset({0})), rows))
    assert len(parts) == 2
    assert all(isinstance(part, Conditional) and not part.rows.equality for part in parts)


# --- prices -------------------------------------------------------------------------------------


def paid(cost: clvq.Cost, x: np.ndarray, y: np.ndarray) -> float:
    prices = Prices.of(cost, SPREAD, FEATURES.names)
    before, after = SPREAD.inner(np.array([x, y]))
    lifted = prices.factor @ (after - before)
    return float(prices.seen_from(before) @ np.abs(after - before) + lifted @ lifted)


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
            clvq.Manhattan([1, 3, 1, 1, 1], switches={"job": {("clerk", "nurse"): 9.0}}),
            9 + 3 + 6.5 + 1 + 0.75,
        ),
        (clvq.Euclidean(), 81 + 1 + 6.5**2 + 1 + 0.75**2),
        (clvq.Mahalanobis(np.diag([1, 2, 3]), switches={"owner": 8}), 81 + 1 + 2 * 6.5**2 + 8
         + 3 * 0.75**2),
    ],
)  # fmt: skip
def test_a_switch_costs_its_price(cost: clvq.Cost, expected: float) -> None:
    assert paid(cost, ROWS[0], ROWS[1]) == pytest.approx(expected, rel=1e-12)


def test_every_coordinate_has_a_price() -> None:
    """Only so does a bound on the cost bound all of them."""
    cost = clvq.Euclidean(switches={"job": {("clerk", "nurse"): 1e-3}})
    prices = Prices.of(cost, SPREAD, FEATURES.names)
    weights = prices.seen_from(SPREAD.inner(ROWS)[1])
    assert (weights[[1, 2, 3, 5, 6]] > 0).all()


def test_weights_may_be_for_columns_that_the_model_never_sees() -> None:
    cost = clvq.Manhattan([9, 1, 2, 3, 4, 5])
    prices = Prices.of(cost, SPREAD, ("note", *FEATURES.names))
    assert prices.weights[SPREAD.numbers].tolist() == [1.0, 3.0, 5.0]


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
        Prices.of(cost, SPREAD, FEATURES.names)
    for word in words:
        assert word in str(caught.value)

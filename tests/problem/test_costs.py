"""Costs: their values, their two parts, and what they refuse."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import counterlvq as clvq
from tests.support.quick import examples

NAN, INF = float("nan"), float("inf")
bounded = settings(max_examples=examples(100))
MODEL = clvq.PrototypeModel(np.eye(3), ["a", "b", "c"])


# Thousandths: neither overflow nor numbers so small that their squares lose digits.
thousandths = st.integers(-(10**6), 10**6).map(lambda n: n / 1000)
positive = st.integers(1, 10**5).map(lambda n: n / 1000)


def vectors(width: int, elements: st.SearchStrategy[float] = thousandths):
    return arrays(float, width, elements=elements)


# --- values -------------------------------------------------------------------------------------


@bounded
@given(vectors(4), vectors(4, positive))
def test_manhattan_sums_weighted_absolute_changes(delta: np.ndarray, weights: np.ndarray) -> None:
    expected = sum(w * abs(v) for w, v in zip(weights, delta, strict=True))
    assert clvq.Manhattan(weights).value(delta) == pytest.approx(expected, rel=1e-12)
    plain = sum(abs(v) for v in delta)
    assert clvq.Manhattan().value(delta) == pytest.approx(plain, rel=1e-12)


@bounded
@given(vectors(4))
def test_euclidean_is_the_squared_length(delta: np.ndarray) -> None:
    assert clvq.Euclidean().value(delta) == pytest.approx(sum(v * v for v in delta), rel=1e-12)


@bounded
@given(vectors(3), arrays(float, (2, 3), elements=st.integers(-5, 5)))
def test_mahalanobis_is_the_quadratic_form(delta: np.ndarray, factor: np.ndarray) -> None:
    matrix = factor.T @ factor  # of rank 2 at most

    value = clvq.Mahalanobis(matrix).value(delta)

    expected = sum(matrix[i, j] * delta[i] * delta[j] for i in range(3) for j in range(3))
    size = np.abs(matrix).sum() * np.abs(delta).max() ** 2
    assert value == pytest.approx(expected, rel=1e-9, abs=1e-13 * size)
    assert value >= 0


@pytest.mark.parametrize(
    "cost",
    [clvq.Manhattan(), clvq.Manhattan([1, 2, 3]), clvq.Euclidean(), clvq.Mahalanobis(np.eye(3))],
    ids=repr,
)
def test_value_is_made_of_the_two_parts(cost: clvq.Cost) -> None:
    for delta in np.random.default_rng(0).normal(size=(20, 3)):
        lifted = cost.l2_factor(3) @ delta
        parts = cost.l1_weights(3) @ np.abs(delta) + lifted @ lifted
        assert cost.value(delta) == pytest.approx(parts, rel=1e-13)
    assert cost.value(np.zeros(3)) == 0.0
    assert isinstance(cost.value([1, 1, 1]), float)


@pytest.mark.parametrize("cost", [clvq.Manhattan(), clvq.Euclidean(), clvq.Mahalanobis(np.eye(2))])
def test_value_refuses_what_is_not_a_change(cost: clvq.Cost) -> None:
    with pytest.raises(clvq.InvalidInputError, match=r"delta\[1\] is nan"):
        cost.value([0.0, NAN])
    with pytest.raises(clvq.InvalidInputError, match="delta has 2 dimension"):
        cost.value([[0.0, 1.0]])


def test_reprs_can_be_read_back() -> None:
    names = {name: getattr(clvq, name) for name in ("Manhattan", "Euclidean", "Mahalanobis")}
    delta = [1.0, -2.0]
    for cost in (
        clvq.Manhattan(),
        clvq.Manhattan([0.1, 7]),
        clvq.Euclidean(),
        clvq.Mahalanobis([[2, 0.5], [0.5, 1]]),
    ):
        again = eval(repr(cost), names)
        assert again.value(delta) == cost.value(delta)


def test_costs_are_frozen_and_share_no_memory_with_the_caller() -> None:
    weights, matrix = np.ones(2), np.eye(2)
    manhattan, mahalanobis = clvq.Manhattan(weights), clvq.Mahalanobis(matrix)
    weights[:], matrix[:] = 7.0, 7.0

    assert manhattan.value([1, 1]) == 2.0
    assert mahalanobis.value([1, 1]) == 2.0
    for array in (manhattan.weights, mahalanobis.matrix, mahalanobis.root):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        manhattan.weights = weights  # type: ignore[misc]


# --- weights ------------------------------------------------------------------------------------

BAD_WEIGHTS: dict[str, tuple[Any, str]] = {
    "zero": (
        [1.0, 0.0, 2.0],
        "weights[1] is 0; expected a positive weight for each feature. Use Freeze to keep a "
        "feature as it is; a free feature would make any change of it cost nothing.",
    ),
    "negative": ([1.0, 2.0, -3.0], "weights[2] is -3; expected a positive weight"),
    "NaN": ([1.0, NAN, 2.0], "weights[1] is nan (1 such value(s) in all)"),
    "infinite": ([INF, 1.0, 2.0], "weights[0] is inf (1 such value(s) in all)"),
    "a table": ([[1.0, 2.0]], "weights has 2 dimension(s) and shape (1, 2)"),
    "one number": (2.0, "weights is 2.0; expected a price for each feature"),
    "words": (["a", "b", "c"], "weights cannot be read as an array of numbers"),
}


@pytest.mark.parametrize("kind", BAD_WEIGHTS)
def test_bad_weights_are_refused_in_words(kind: str) -> None:
    weights, message = BAD_WEIGHTS[kind]
    with pytest.raises(clvq.InvalidInputError) as raised:
        clvq.Manhattan(weights=weights)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (clvq.Manhattan([1.0, 2.0]), "Manhattan has 2 weights; expected 3, one per feature."),
        (
            clvq.Mahalanobis(np.eye(4)),
            "Mahalanobis has a matrix of shape (4, 4); expected (3, 3), for 3 features.",
        ),
    ],
    ids=["weights", "matrix"],
)
def test_cost_of_another_width_is_refused_when_the_explainer_is_made(
    cost: clvq.Cost, message: str
) -> None:
    with pytest.raises(clvq.InvalidInputError) as raised:
        clvq.Explainer(MODEL, cost=cost)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("cost", "step"),
    [
        ("manhattan", "A cost of your own is a subclass of Cost."),
        (clvq.Manhattan, "Write Manhattan(...)."),
        (3.0, "A cost of your own is a subclass of Cost."),
    ],
)
def test_what_is_no_cost_is_refused_when_the_explainer_is_made(cost: Any, step: str) -> None:
    with pytest.raises(clvq.InvalidInputError) as raised:
        clvq.Explainer(MODEL, cost=cost)
    assert f"cost is {cost!r}; expected a cost such as Manhattan()" in str(raised.value)
    assert str(raised.value).endswith(f"Mahalanobis(matrix). {step}")


# --- weights from data --------------------------------------------------------------------------


def test_mad_weights_are_one_over_the_median_absolute_deviation() -> None:
    # Medians 3 and 20; absolute deviations 2, 1, 0, 1, 97 and 20, 10, 0, 10, 20.
    X = [[1, 0], [2, 10], [3, 20], [4, 30], [100, 40]]
    np.testing.assert_allclose(clvq.mad_weights(X), [1 / 1, 1 / 10], rtol=1e-15)


def test_mad_weights_follow_the_units_and_ignore_the_origin() -> None:
    X = np.random.default_rng(1).normal(size=(101, 3))
    unit = np.array([1e-3, 1.0, 1e6])
    plain = clvq.mad_weights(X)
    np.testing.assert_allclose(clvq.mad_weights(X * unit), plain / unit, rtol=1e-12)
    np.testing.assert_allclose(clvq.mad_weights(X + 4.0), plain, rtol=1e-9)


def test_mad_of_zero_falls_back_on_the_standard_deviation() -> None:
    # Mostly 0: the median deviation is 0, the mean 2 and the mean square (16 + 64) / 6.
    X = np.column_stack([[0.0, 0.0, 0.0, 0.0, 4.0, 8.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]])
    weights = clvq.mad_weights(X)
    assert weights[0] == pytest.approx((80 / 6 - 4) ** -0.5)
    assert weights[1] == pytest.approx(1 / 1.5)


def test_where_squares_are_too_large_the_range_is_the_unit() -> None:
    X = np.array([[0.0], [0.0], [0.0], [4e200]])
    assert clvq.mad_weights(X).tolist() == [1 / 4e200]


def test_weights_in_python_are_those_of_the_shell() -> None:
    """One meaning of a typical deviation, whether the table is there or its summary."""
    rng = np.random.default_rng(5)
    numbers = rng.normal(size=(60, 2)).round(2)
    table = pd.DataFrame({"a": numbers[:, 0], "b": rng.poisson(0.3, 60), "c": ["x", "y"] * 30})
    summary = clvq.Reference.of(table)
    features = clvq.Features.from_frame(table, ranges=None)
    assert (table["b"] == table["b"].median()).mean() > 0.5
    assert clvq.mad_weights(table).tolist() == summary.weights(features).tolist()


def test_weights_by_name_keep_the_default_price() -> None:
    cost = clvq.Manhattan({"a": 2.0}, {"c": {("x", "y"): 1.0}}, default=4.0, unit="EUR")
    ordered = cost.for_columns(["c", "a"])
    assert (ordered.default, ordered.unit, ordered.weights.tolist()) == (4.0, "EUR", [1.0, 2.0])


def test_feature_that_never_varies_needs_a_weight_of_its_own() -> None:
    X = [[1.0, 5.0, 7.0], [2.0, 5.0, 7.0], [4.0, 5.0, 7.0]]
    with pytest.raises(clvq.InvalidInputError) as raised:
        clvq.mad_weights(X)
    assert str(raised.value) == (
        "column 1 of X is 5 in every row (2 such column(s) in all), so it has no deviation to "
        "weigh by; expected features that vary. Freeze or drop it, or pass constant=1.0 to give "
        "it a weight of its own."
    )
    np.testing.assert_array_equal(clvq.mad_weights(X, constant=3.0), [1.0, 3.0, 3.0])


def test_constant_does_not_touch_features_that_vary() -> None:
    X = np.random.default_rng(3).normal(size=(50, 2))
    np.testing.assert_array_equal(clvq.mad_weights(X, constant=9.0), clvq.mad_weights(X))


@pytest.mark.parametrize("constant", [0, -1.0, NAN, INF, "much"])
def test_constant_must_be_a_positive_weight(constant: Any) -> None:
    with pytest.raises(clvq.InvalidInputError) as raised:
        clvq.mad_weights([[1.0], [2.0]], constant=constant)
    assert str(raised.value) == f"constant is {constant!r}; expected a positive weight or None."


def test_mad_weights_refuse_what_is_no_table() -> None:
    with pytest.raises(clvq.InvalidInputError, match=r"X\[1, 0\] is inf"):
        clvq.mad_weights([[1.0, 2.0], [np.inf, 3.0]])
    with pytest.raises(clvq.InvalidInputError, match="X has 1 dimension"):
        clvq.mad_weights([1.0, 2.0])
    with pytest.raises(clvq.InvalidInputError, match="X is empty"):
        clvq.mad_weights(np.zeros((0, 2)))


def test_mad_weights_are_ready_for_manhattan() -> None:
    weights = clvq.mad_weights(np.random.default_rng(4).normal(size=(30, 3)))
    assert not weights.flags.writeable
    cf = clvq.Explainer(MODEL, cost=clvq.Manhattan(weights)).explain([1.0, 0.0, 0.0])
    assert cf.cost == pytest.approx(weights @ np.abs(cf.delta))


# --- matrices -----------------------------------------------------------------------------------


def random_matrices() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    tall = rng.normal(size=(6, 4))
    # Whole numbers and powers of two: the products are exact, and so is their rank.
    flat = rng.integers(-9, 10, size=(2, 4)).astype(float)
    units = np.array([2.0**20, 2.0**-20, 1.0, 2.0**10])
    definite = tall.T @ tall
    return {
        "identity": np.eye(4),
        "definite": definite,
        "rank two": flat.T @ flat,
        "rank one": np.ones((4, 4)),
        "zero": np.zeros((4, 4)),
        "badly scaled": units[:, None] * definite * units,
        "badly scaled, rank two": units[:, None] * (flat.T @ flat) * units,
        "badly scaled diagonal": np.diag([1e12, 1e-12, 1.0, 0.0]),
        "tiny": 1e-200 * definite,
        "huge": 1e200 * definite,
    }


@pytest.mark.parametrize("kind", random_matrices())
def test_factor_reproduces_the_matrix(kind: str) -> None:
    matrix = random_matrices()[kind]

    cost = clvq.Mahalanobis(matrix)
    L = cost.l2_factor(4)

    # In units in which the diagonal is one, as a feature's own unit must not matter.
    unit = np.sqrt(np.where(np.diag(matrix) > 0, np.diag(matrix), 1.0))
    again = (L / unit).T @ (L / unit)
    np.testing.assert_allclose(again, matrix / unit / unit[:, None], rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("kind", "rank"),
    [
        ("definite", 4),
        ("badly scaled", 4),
        ("rank two", 2),
        ("badly scaled, rank two", 2),
        ("rank one", 1),
        ("badly scaled diagonal", 3),
        ("zero", 0),
        ("tiny", 4),
        ("huge", 4),
    ],
)
def test_factor_has_as_many_rows_as_the_rank(kind: str, rank: int) -> None:
    assert clvq.Mahalanobis(random_matrices()[kind]).l2_factor(4).shape == (rank, 4)


def test_badly_scaled_diagonal_keeps_its_small_end() -> None:
    cost = clvq.Mahalanobis(np.diag([1e12, 1e-12]))
    assert cost.value([0.0, 1.0]) == pytest.approx(1e-12, rel=1e-12)
    assert cost.value([1.0, 0.0]) == pytest.approx(1e12, rel=1e-12)


def test_changes_are_free_along_directions_the_matrix_does_not_see() -> None:
    cost = clvq.Mahalanobis([[1.0, -1.0], [-1.0, 1.0]])
    assert cost.value([3.0, 3.0]) == pytest.approx(0.0, abs=1e-12)
    assert cost.value([3.0, 1.0]) == pytest.approx(4.0)


@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e9])
def test_rounding_on_one_side_of_the_diagonal_is_not_asymmetry(unit: float) -> None:
    """A computed inverse has last digits where the exact one has zeros, and not on both sides."""
    distance = np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    matrix = np.linalg.inv(0.5**distance)
    matrix[0, 5], matrix[5, 0] = 1e-17, 0.0
    units = np.array([1.0, 1.0, 1.0, 1.0, 1.0, unit])
    matrix = units[:, None] * matrix * units

    cost = clvq.Mahalanobis(matrix)

    delta = np.arange(1.0, 7.0) / units
    assert cost.value(delta) == pytest.approx(delta @ matrix @ delta, rel=1e-12)


BAD_MATRICES: dict[str, tuple[Any, str]] = {
    "asymmetric": (
        [[1.0, 2.0], [3.0, 10.0]],
        "matrix is not symmetric: entry (0, 1) is 2 but (1, 0) is 3; expected a symmetric "
        "matrix. Use (M + M.T) / 2 if the difference is rounding.",
    ),
    "asymmetric by a thousandth": (
        [[1.0, 0.5], [0.5005, 1.0]],
        "matrix is not symmetric: entry (0, 1) is 0.5 but (1, 0) is 0.5005",
    ),
    "asymmetric where it is small": (
        [[1e-12, 5e-7], [0.0, 1.0]],
        "matrix is not symmetric: entry (0, 1) is 5e-07 but (1, 0) is 0",
    ),
    "indefinite": (
        [[1.0, 2.0], [2.0, 1.0]],
        "matrix is indefinite: with its diagonal scaled to 1 its smallest eigenvalue is -1; "
        "expected a positive semidefinite matrix, with no eigenvalue below zero.",
    ),
    "negative": (-np.eye(2), "matrix is indefinite"),
    "negative where it is small": (np.diag([1e12, -1e-12]), "matrix is indefinite"),
    "negative off a zero diagonal": ([[0.0, 1.0], [1.0, 0.0]], "matrix is indefinite"),
    "not square": (np.ones((2, 3)), "matrix has shape (2, 3); expected a square matrix."),
    "flat": ([1.0, 2.0], "matrix has 1 dimension(s) and shape (2,)"),
    "NaN": ([[1.0, NAN], [NAN, 1.0]], "matrix[0, 1] is nan (2 such value(s) in all)"),
    "infinite": ([[INF, 0.0], [0.0, 1.0]], "matrix[0, 0] is inf (1 such value(s) in all)"),
    "empty": (np.zeros((0, 0)), "matrix is empty (shape (0, 0))"),
}


@pytest.mark.parametrize("kind", BAD_MATRICES)
def test_bad_matrix_is_refused_in_words(kind: str) -> None:
    matrix, message = BAD_MATRICES[kind]
    with pytest.raises(clvq.InvalidInputError) as raised:
        clvq.Mahalanobis(matrix)
    assert message in str(raised.value)


# --- costs of the user's own -------------------------------------------------------------------


class Ranked(clvq.Cost):
    """What a user writes: two methods."""

    def __init__(self, weights: Any = (1.0, 2.0, 4.0), factor: Any = ((1.0, -1.0, 0.0),)) -> None:
        self.weights, self.factor = weights, factor

    def l1_weights(self, width: int) -> Any:
        return self.weights

    def l2_factor(self, width: int) -> Any:
        return self.factor


def test_own_cost_needs_its_two_parts_and_nothing_else() -> None:
    cost = Ranked()
    rng = np.random.default_rng(0)
    for delta in rng.normal(size=(20, 3)):
        expected = abs(delta) @ [1, 2, 4] + (delta[0] - delta[1]) ** 2
        assert cost.value(delta) == pytest.approx(expected, rel=1e-14)
    for x in rng.normal(size=(5, 3)):
        cf = clvq.Explainer(MODEL, cost).explain(x)
        assert cf.status == "optimal"
        assert cf.cost == pytest.approx(cost.value(cf.delta), rel=1e-14)
    assert cost.switches == {}


class NoWeights(clvq.Cost):
    def l2_factor(self, width: int) -> np.ndarray:
        return np.eye(width)


class NoFactor(clvq.Cost):
    def l1_weights(self, width: int) -> np.ndarray:
        return np.ones(width)


class Free(NoWeights):
    """It says that everything is free, but its parts do not."""

    def l1_weights(self, width: int) -> np.ndarray:
        return np.ones(width)

    def value(self, delta: Any) -> float:  # type: ignore[override, misc]
        return 0.0


class Dear(Free):
    """It is free on every single feature, and only there."""

    def value(self, delta: Any) -> float:  # type: ignore[override, misc]
        change = np.asarray(delta)
        return float(abs(change).sum() + change @ change + change.prod())


class Nan(Free):
    def value(self, delta: Any) -> float:  # type: ignore[override, misc]
        return NAN


class Same(Free):
    """Its own value is that of its parts, but for the order of summation."""

    def value(self, delta: Any) -> float:  # type: ignore[override, misc]
        change = np.asarray(delta)
        return float(change @ change + abs(change).sum())


BAD_COSTS: dict[str, tuple[clvq.Cost, str]] = {
    "no weights": (
        NoWeights(),
        "NoWeights does not state l1_weights(width); expected a method that returns it. Return "
        "np.zeros(width) if the cost has no such part.",
    ),
    "no factor": (
        NoFactor(),
        "NoFactor does not state l2_factor(width); expected a method that returns it. Return "
        "np.zeros((0, width)) if the cost has no such part.",
    ),
    "neither": (clvq.Cost(), "Cost does not state l1_weights(width)"),
    "free": (
        Free(),
        "Free.value([1.0, 0.0, 0.0]) is 0, but its parts say 2: l1_weights @ |delta| + "
        "|l2_factor @ delta|^2; expected the same. Leave `value` to Cost, which derives it from "
        "the parts.",
    ),
    "dear": (Dear(), "Dear.value([1.0, 1.0, 1.0]) is 7, but its parts say 6"),
    "value is none": (Nan(), "Nan.value([0.0, 0.0, 0.0]) is NaN; expected a number."),
    "weights too few": (
        Ranked(weights=[1.0, 2.0]),
        "Ranked.l1_weights(3) has 2 values; expected 3, one per feature.",
    ),
    "weights missing": (Ranked(weights=None), "Ranked.l1_weights(3) has 0 dimension(s)"),
    "weights negative": (
        Ranked(weights=[1.0, -2.0, 1.0]),
        "Ranked.l1_weights(3)[1] is -2; expected weights of at least 0.",
    ),
    "weights NaN": (Ranked(weights=[1.0, NAN, 1.0]), "Ranked.l1_weights(3)[1] is nan"),
    "factor flat": (Ranked(factor=[1.0, 2.0, 3.0]), "Ranked.l2_factor(3) has 1 dimension(s)"),
    "factor too narrow": (
        Ranked(factor=np.eye(2)),
        "Ranked.l2_factor(3) has 2 columns; expected 3, one per feature.",
    ),
    "factor missing": (Ranked(factor=None), "Ranked.l2_factor(3) has 0 dimension(s)"),
    "factor infinite": (Ranked(factor=[[1.0, INF, 0.0]]), "Ranked.l2_factor(3)[0, 1] is inf"),
}


@pytest.mark.parametrize("kind", BAD_COSTS)
def test_own_cost_that_says_too_little_or_two_things_is_refused(kind: str) -> None:
    cost, message = BAD_COSTS[kind]
    with pytest.raises(clvq.InvalidInputError) as raised:
        clvq.Explainer(MODEL, cost)
    assert message in str(raised.value)


def test_own_cost_that_repeats_its_parts_is_let_through() -> None:
    cf = clvq.Explainer(MODEL, Same()).explain([1.0, 0.0, 0.0])
    assert cf.cost == pytest.approx(Same().value(cf.delta), rel=1e-14)


# --- switches -----------------------------------------------------------------------------------

BAD_SWITCHES = {
    "no mapping": (3.0, ("switches is 3.0", "mapping from feature to price")),
    "zero": ({"job": 0.0}, ("switches['job'] is 0.0", "positive price")),
    "negative": ({"job": {("a", "b"): -1}}, ("switches['job'][('a', 'b')] is -1", "positive")),
    "not a number": ({"job": NAN}, ("switches['job'] is nan", "positive")),
    "infinite": ({"job": INF}, ("switches['job'] is inf", "positive")),
    "text": ({"job": "2"}, ("switches['job'] is '2'", "positive")),
    "no pair": ({"job": {"a": 1.0}}, ("switches['job']['a']", "pair of levels")),
    "three levels": ({"job": {("a", "b", "c"): 1.0}}, ("('a', 'b', 'c')", "pair of levels")),
}


@pytest.mark.parametrize(("switches", "words"), BAD_SWITCHES.values(), ids=BAD_SWITCHES)
@pytest.mark.parametrize(
    "cost",
    [clvq.Manhattan, clvq.Euclidean, lambda switches: clvq.Mahalanobis(np.eye(2), switches)],
    ids=["Manhattan", "Euclidean", "Mahalanobis"],
)
def test_bad_switches_are_refused_in_words(cost: Any, switches: Any, words: tuple[str]) -> None:
    with pytest.raises(clvq.InvalidInputError) as caught:
        cost(switches=switches)
    for word in words:
        assert word in str(caught.value)


def test_weights_in_the_place_of_switches_are_told_where_to_go() -> None:
    with pytest.raises(clvq.InvalidInputError, match=r"Weights of numbers are for Manhattan"):
        clvq.Euclidean(np.ones(3))  # type: ignore[arg-type]


def test_switches_are_shown_and_share_no_memory_with_the_caller() -> None:
    given = {"job": 2.0, "home": {("rent", "own"): 3.0}}
    for cost in (clvq.Manhattan([1.0], given), clvq.Euclidean(given)):
        again = eval(repr(cost), {"Manhattan": clvq.Manhattan, "Euclidean": clvq.Euclidean})
        assert again.switches == cost.switches == given
        assert cost.switches is not given


def mixed_frame(library: Any) -> Any:
    return library.DataFrame(
        {
            "age": [20, 30, 40, 90],
            "job": ["clerk", "nurse", "clerk", "cook"],
            "income": [1.0, 2.0, 4.0, 8.0],
            "owner": [True, False, True, True],
        }
    )


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_mad_weights_of_a_frame_leave_levels_at_the_price_of_a_switch(library: Any) -> None:
    frame = mixed_frame(library)
    numbers = clvq.mad_weights(np.array([[20, 1.0], [30, 2.0], [40, 4.0], [90, 8.0]]))
    assert clvq.mad_weights(frame).tolist() == [numbers[0], 2.0, numbers[1], 2.0]


def test_mad_weights_of_a_frame_name_the_column_that_is_at_fault() -> None:
    frame = mixed_frame(pd)
    with pytest.raises(clvq.InvalidInputError, match=r"'age' is .* in every row.*constant=1\.0"):
        clvq.mad_weights(frame.assign(age=3))
    assert clvq.mad_weights(frame.assign(age=3), constant=7.0)[0] == 7.0
    with pytest.raises(clvq.InvalidInputError, match="column 'income', row 1 is inf"):
        clvq.mad_weights(frame.assign(income=[1.0, np.inf, 2.0, 3.0]))


def test_mad_weights_pass_over_missing_values_and_say_how_many() -> None:
    """Each weight is that of the values that are there, whatever the other columns lack."""
    whole = np.random.default_rng(1).normal(size=(40, 3))
    holed = whole.copy()
    holed[:7, 0], holed[30:, 2] = np.nan, np.nan
    there = [whole[7:, 0], whole[:, 1], whole[:30, 2]]
    expected = [clvq.mad_weights(column[:, None])[0] for column in there]
    objects = holed.astype(object)
    objects[np.isnan(holed)] = None
    frame = pd.DataFrame(holed, columns=["a", "b", "c"])
    for X in (holed, objects, frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        with pytest.warns(UserWarning, match=r"7 of column .*, 10 of column .*, of 40 rows"):
            assert clvq.mad_weights(X).tolist() == expected
    with (
        pytest.warns(UserWarning, match="2 of column 0"),
        pytest.raises(clvq.InvalidInputError, match="column 0 of X has no value"),
    ):
        clvq.mad_weights([[NAN, 1.0], [NAN, 2.0]])


def test_mad_weights_of_levels_alone_are_twos() -> None:
    frame = mixed_frame(pd)
    assert clvq.mad_weights(frame[["job", "owner"]]).tolist() == [2.0, 2.0]


# --- subclasses of the costs of this package -----------------------------------------------------


class OwnFactor(clvq.Euclidean):  # type: ignore[misc]
    def l2_factor(self, width: int) -> np.ndarray:
        return np.diag(np.arange(1.0, width + 1.0))


class OwnMahalanobis(clvq.Mahalanobis):  # type: ignore[misc]
    l2_factor = OwnFactor.l2_factor


class OwnForm(clvq.Cost):
    def l1_weights(self, width: int) -> np.ndarray:
        return np.ones(width)

    def l2_factor(self, width: int) -> np.ndarray:
        return np.zeros((0, width))

    def quadratic_form(self, width: int) -> Any:
        return clvq.Euclidean().quadratic_form(width)


@pytest.mark.parametrize("cost", [OwnFactor(), OwnMahalanobis(np.eye(2))])
def test_what_a_subclass_overrides_is_what_counts(cost: clvq.Cost) -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 1.0]], ["no", "yes"])
    cf = clvq.Explainer(model, cost).explain([0.0, 0.0], target="yes")
    # min |L delta|^2 with 4 a + b >= 8.5: 8.5^2 / (16 / 1 + 1 / 4)
    assert cf.cost == pytest.approx(8.5**2 / (16 + 1 / 4), rel=1e-6)
    assert cost.value(cf.delta) == cf.cost


def test_a_form_that_contradicts_its_factor_is_refused() -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 1.0]], ["no", "yes"])
    with pytest.raises(clvq.InvalidInputError, match=r"OwnForm\.quadratic_form\(2\) .* disagree"):
        clvq.Explainer(model, OwnForm())


@pytest.mark.parametrize("price", [1e100, 1e-100])
def test_prices_without_digits_beside_others_are_refused_with_the_next_step(price: float) -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 2.0]], ["no", "yes"])
    costs = [clvq.Manhattan([1.0, price]), clvq.Manhattan([1.0, 1.0], increase={"x1": price})]
    costs += [clvq.Chebyshev([1.0, price]), clvq.Mahalanobis(price * np.eye(2))]
    for cost in costs:
        with pytest.raises(
            clvq.InvalidInputError, match=r"price of .* from 1e-60 to 1e\+60.*Freeze"
        ):
            clvq.Explainer(model, cost)
    # What is left of a direction by rounding is no price.
    nearly_flat = clvq.Mahalanobis.from_factor([[1.0, 0.0], [0.0, 1e-40]])
    assert clvq.Explainer(model, nearly_flat).explain([0.0, 0.0], target="yes").cost >= 0.0

"""Constraints: their rows say what their words say, and their errors help."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import counterlvq as clvq
from counterlvq.problem.expressions import Expression, as_constraint
from counterlvq.programs.conditions import LinearConditions
from counterlvq.tables.features import Features
from tests.support.quick import examples

NAN, INF = float("nan"), float("inf")
FEATURES = Features(["age", "income", "1st floor"])
PROTOTYPES = [[1.1, 0.2, -0.1], [0.13, 1.7, 0.41], [-0.37, 0.29, 2.3]]
MODEL = clvq.PrototypeModel(PROTOTYPES, ["a", "b", "c"], feature_names=FEATURES.names)
MATRIX = [[2.0, 0.5], [0.5, 1.0]]

Meaning = Callable[[np.ndarray, np.ndarray], bool]


def ellipse(u: float, v: float) -> float:
    return 2 * u * u + 2 * 0.5 * u * v + v * v


# A constraint, and the same in plain Python over counterfactual y and input x.
MEANINGS: list[tuple[clvq.Constraint | str, Meaning]] = [
    (clvq.Freeze("age"), lambda y, x: y[0] == x[0]),
    (clvq.Freeze("1st floor", 0), lambda y, x: y[0] == x[0] and y[2] == x[2]),
    (clvq.Freeze(-1), lambda y, x: y[2] == x[2]),
    (clvq.Increase("income"), lambda y, x: y[1] >= x[1]),
    (clvq.Increase(0, 1, 2), lambda y, x: all(y >= x)),
    (clvq.Decrease("age", "income"), lambda y, x: y[0] <= x[0] and y[1] <= x[1]),
    (clvq.Bounds("age", lower=-1), lambda y, x: y[0] >= -1),
    (clvq.Bounds("age", upper=2), lambda y, x: y[0] <= 2),
    (clvq.Bounds(1, lower=-1, upper=1), lambda y, x: -1 <= y[1] <= 1),
    (clvq.Bounds(1, lower=2, upper=2), lambda y, x: y[1] == 2),
    (clvq.Bounds("age"), lambda y, x: True),
    (clvq.MaxChange("1st floor", by=1.0), lambda y, x: abs(y[2] - x[2]) <= 1),
    (clvq.MaxChange(0, by=0), lambda y, x: y[0] == x[0]),
    (clvq.Linear({"age": 2, "income": -1}, "<=", 1), lambda y, x: 2 * y[0] - y[1] <= 1),
    (clvq.Linear({0: 1.0}, ">=", -1.0), lambda y, x: y[0] >= -1),
    (clvq.Linear([1, 2, 3], "==", 2), lambda y, x: y[0] + 2 * y[1] + 3 * y[2] == 2),
    (clvq.Linear({"age": 1, 0: 1}, "<=", 2), lambda y, x: 2 * y[0] <= 2),
    (clvq.Linear(np.array([0.0, 0.0, 0.0]), ">=", 1), lambda y, x: False),
    (clvq.Quadratic(np.eye(3), 4.0), lambda y, x: float(y @ y) <= 4),
    (
        clvq.Quadratic(MATRIX, 3, center=[1, -1], features=["1st floor", "age"]),
        lambda y, x: ellipse(y[2] - 1, y[0] + 1) <= 3,
    ),
    (
        clvq.Quadratic(MATRIX, 1.5, linear=[1, -2], features=[0, 1]),
        lambda y, x: ellipse(y[0], y[1]) + y[0] - 2 * y[1] <= 1.5,
    ),
    (
        clvq.Quadratic(np.zeros((3, 3)), 1, linear=[1, 1, 0]),
        lambda y, x: y[0] + y[1] <= 1,
    ),
    ("income <= age", lambda y, x: y[1] <= y[0]),
    ("income <= 2 * original(income) + 1", lambda y, x: y[1] <= 2 * x[1] + 1),
    (
        "`1st floor` - original(`1st floor`) >= income - original(age)",
        lambda y, x: y[2] - x[2] >= y[1] - x[0],
    ),
    ("age + income == `1st floor` * 3", lambda y, x: y[0] + y[1] == 3 * y[2]),
]


each_meaning = pytest.mark.parametrize(
    ("constraint", "meaning"), MEANINGS, ids=[repr(constraint) for constraint, _ in MEANINGS]
)


def holds(constraint: clvq.Constraint | str, y: np.ndarray, x: np.ndarray) -> bool:
    """What the rows say, with room for the last digits of roots."""
    for part in as_constraint(constraint).conditions(FEATURES):
        if isinstance(part, LinearConditions):
            surplus = part.A @ y + part.R @ x - part.v
            excess = np.abs(surplus) if part.equality else surplus
        else:
            excess = part.excess(y)
        if np.any(excess > 1e-12):
            return False
    return True


# --- meaning ------------------------------------------------------------------------------------


@each_meaning
def test_rows_say_what_the_words_say(constraint: clvq.Constraint | str, meaning: Meaning) -> None:
    # Quarters are exact in floating point, so that equalities and edges are met exactly.
    rng = np.random.default_rng(0)
    points = rng.integers(-10, 11, size=(600, 2, 3)) / 4
    points[:200, 0] = np.where(rng.random((200, 3)) < 0.7, points[:200, 1], points[:200, 0])

    said = [holds(constraint, y, x) for y, x in points]
    meant = [bool(meaning(y, x)) for y, x in points]

    assert said == meant


def test_every_kind_of_constraint_is_met_and_broken_by_some_point() -> None:
    """Else the comparison above would be about nothing."""
    rng = np.random.default_rng(1)
    points = rng.integers(-10, 11, size=(3000, 2, 3)) / 4
    always_or_never = [
        repr(constraint)
        for constraint, meaning in MEANINGS
        if len({bool(meaning(y, x)) for y, x in points}) == 1
    ]
    assert always_or_never == ["Bounds('age')", "Linear([0.0, 0.0, 0.0], '>=', 1)"]


@each_meaning
def test_answers_obey_the_words(constraint: clvq.Constraint | str, meaning: Meaning) -> None:
    explainer = clvq.Explainer(MODEL, constraints=[constraint])
    x = np.array([0.75, 0.5, -0.25])
    cf = explainer.explain(x, target=["b", "c"])
    if cf.status == "infeasible":
        assert cf.conflict == (constraint,)
        return
    assert cf.status == "optimal"
    assert holds(constraint, cf.x, x)


@settings(max_examples=examples(100))
@given(
    st.lists(st.integers(-4, 4), min_size=3, max_size=3),
    st.sampled_from(["<=", ">=", "=="]),
    st.integers(-4, 4),
    st.lists(st.integers(-3, 3), min_size=3, max_size=3),
)
def test_linear_in_its_three_spellings(a: list[int], sense: str, value: int, y: list[int]) -> None:
    point, zero = np.array(y, dtype=float), np.zeros(3)
    plain = {"<=": np.dot(a, y) <= value, ">=": np.dot(a, y) >= value, "==": np.dot(a, y) == value}
    by_name = dict(zip(FEATURES.names, a, strict=True))
    spellings = [clvq.Linear(a, sense, value), clvq.Linear(by_name, sense, value)]
    if any(a):
        terms = " + ".join(f"{c} * `{name}`" for name, c in by_name.items())
        spellings.append(Expression(f"{terms} {sense} {value}"))
    for constraint in spellings:
        assert holds(constraint, point, zero) == plain[sense]


# --- reading and showing ------------------------------------------------------------------------


@pytest.mark.parametrize("constraint", [item for item, _ in MEANINGS], ids=repr)
def test_repr_can_be_read_back(constraint: clvq.Constraint | str) -> None:
    again = eval(repr(constraint), vars(clvq))

    assert repr(again) == repr(constraint)
    rng = np.random.default_rng(2)
    for y, x in rng.integers(-8, 9, size=(200, 2, 3)) / 4:
        assert holds(again, y, x) == holds(constraint, y, x)


@pytest.mark.parametrize(
    ("constraint", "shown"),
    [
        (clvq.Freeze("age", 1), "Freeze('age', 1)"),
        (clvq.Increase(np.int64(2)), "Increase(2)"),
        (clvq.Decrease("income"), "Decrease('income')"),
        (clvq.Bounds("income", lower=0, upper=9.5), "Bounds('income', lower=0, upper=9.5)"),
        (clvq.Bounds("income", lower=np.float64(0.5)), "Bounds('income', lower=0.5)"),
        (clvq.MaxChange("age", np.int64(5)), "MaxChange('age', by=5)"),
        (
            clvq.Linear({np.str_("age"): np.float64(2), "income": 1}, "<=", np.float64(3)),
            "Linear({'age': 2.0, 'income': 1}, '<=', 3.0)",
        ),
        (clvq.Linear(np.array([1, 2, 3]), "==", 4), "Linear([1.0, 2.0, 3.0], '==', 4)"),
        (
            clvq.Quadratic(np.eye(1), np.float64(2), center=[1], features=[np.int64(0)]),
            "Quadratic([[1.0]], 2.0, center=[1.0], features=[0])",
        ),
        (Expression("age <= income"), "'age <= income'"),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_constraints_read_in_plain_words(constraint: clvq.Constraint, shown: str) -> None:
    assert repr(constraint) == shown


def test_strings_and_objects_are_taken_alike() -> None:
    frozen = clvq.Freeze("age")
    assert as_constraint(frozen) is frozen
    assert as_constraint("age <= 3") == Expression("age <= 3")


def test_equal_constraints_compare_equal() -> None:
    assert clvq.Freeze("age", 1) == clvq.Freeze("age", 1)
    assert clvq.Freeze("age") != clvq.Increase("age")
    assert clvq.Bounds("age", lower=1) == clvq.Bounds("age", lower=1)
    assert clvq.MaxChange("age", 1) != clvq.MaxChange("age", 2)


@pytest.mark.parametrize(
    ("constraint", "field"),
    [
        (clvq.Freeze("age"), "features"),
        (clvq.Bounds("age", lower=1), "lower"),
        (clvq.MaxChange("age", by=1), "by"),
        (clvq.Linear({"age": 1}, "<=", 1), "value"),
        (clvq.Quadratic(np.eye(3), 1), "matrix"),
        (Expression("age <= 1"), "text"),
    ],
    ids=repr,
)
def test_constraints_are_frozen(constraint: clvq.Constraint, field: str) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(constraint, field, None)


def test_constraints_share_no_memory_with_the_caller() -> None:
    by_name, row, matrix = {"age": 1.0}, np.array([1.0, 0.0, 0.0]), np.eye(3)
    constraints = [
        clvq.Linear(by_name, "<=", 1),
        clvq.Linear(row, "<=", 1),
        clvq.Quadratic(matrix, 1, center=row, linear=row),
    ]
    before = [repr(constraint) for constraint in constraints]
    by_name["age"], row[:], matrix[:] = 9.0, 9.0, 9.0
    assert [repr(constraint) for constraint in constraints] == before


# --- errors when a constraint is made -----------------------------------------------------------

Make = Callable[[], Any]
BAD: dict[str, tuple[Make, str]] = {
    "no feature": (
        clvq.Freeze,
        "Freeze() names no feature; expected at least one, by name or position.",
    ),
    "a list of features": (
        lambda: clvq.Increase(["age", "income"]),
        "Increase got a list; expected features one by one. Write Increase(*features).",
    ),
    "a tuple of features": (lambda: clvq.Decrease(("age",)), "Decrease got a tuple; expected"),
    "bounds the wrong way round": (
        lambda: clvq.Bounds("age", lower=3, upper=2),
        "Bounds of 'age': the lower bound 3 is above the upper bound 2; expected lower <= upper "
        "with room for a finite value.",
    ),
    "bounds at infinity": (
        lambda: clvq.Bounds("age", lower=INF),
        "Bounds of 'age': [inf, inf] holds no finite value.",
    ),
    "bounds at minus infinity": (
        lambda: clvq.Bounds("age", upper=-INF),
        "Bounds of 'age': [-inf, -inf] holds no finite value.",
    ),
    "NaN as lower bound": (
        lambda: clvq.Bounds("age", lower=NAN),
        "the lower bound of 'age' is NaN; expected a number.",
    ),
    "NaN as upper bound": (
        lambda: clvq.Bounds(1, upper=NAN),
        "the upper bound of 1 is NaN; expected a number.",
    ),
    "a word as bound": (
        lambda: clvq.Bounds("age", lower="low"),
        "the lower bound of 'age' is 'low'; expected a number.",
    ),
    "a quoted number as bound": (
        lambda: clvq.Bounds("age", lower="1"),
        "the lower bound of 'age' is '1'; expected a number.",
    ),
    "a least change below 0": (
        lambda: clvq.MinChange("age", by=-1),
        "MinChange of 'age': by is -1; expected a number of at least 0.",
    ),
    "a condition on two features": (
        lambda: clvq.If(clvq.Freeze("age"), "age <= 3"),
        "If: when is Freeze('age'); expected levels or values of one feature",
    ),
    "a negative change": (
        lambda: clvq.MaxChange("age", by=-1),
        "MaxChange of 'age': by is -1; expected a number of at least 0.",
    ),
    "an infinite change": (
        lambda: clvq.MaxChange("age", by=INF),
        "MaxChange of 'age': by is inf; expected a finite number.",
    ),
    "a change of NaN": (
        lambda: clvq.MaxChange("age", by=NAN),
        "MaxChange of 'age': by is NaN; expected a number.",
    ),
    "a quoted number as change": (
        lambda: clvq.MaxChange("age", by="5"),
        "MaxChange of 'age': by is '5'; expected a number.",
    ),
    "an unknown sense": (
        lambda: clvq.Linear({"age": 1}, "<", 1),
        "Linear: sense is '<'; expected '<=', '>=' or '=='.",
    ),
    "a NaN coefficient": (
        lambda: clvq.Linear({"age": NAN}, "<=", 1),
        "Linear: the coefficient of 'age' is NaN; expected a number.",
    ),
    "an infinite coefficient": (
        lambda: clvq.Linear({"age": INF}, "<=", 1),
        "Linear: the coefficient of 'age' is inf; expected a finite number.",
    ),
    "a NaN in a row": (
        lambda: clvq.Linear([1, NAN, 2], "<=", 1),
        "Linear: coefficients[1] is nan (1 such value(s) in all)",
    ),
    "a quoted coefficient": (
        lambda: clvq.Linear({"age": "2"}, "<=", 1),
        "Linear: the coefficient of 'age' is '2'; expected a number.",
    ),
    "an infinite value": (
        lambda: clvq.Linear({"age": 1}, "<=", INF),
        "Linear: value is inf; expected a finite number.",
    ),
    "a NaN value": (
        lambda: clvq.Linear({"age": 1}, "<=", NAN),
        "Linear: value is NaN; expected a number.",
    ),
    "an asymmetric matrix": (
        lambda: clvq.Quadratic([[1.0, 2.0], [0.0, 1.0]], 1),
        "Quadratic: matrix is not symmetric: entry (0, 1) is 2 but (1, 0) is 0",
    ),
    "an indefinite matrix": (
        lambda: clvq.Quadratic([[1.0, 0.0], [0.0, -1.0]], 1),
        "Quadratic: matrix is indefinite",
    ),
    "a matrix that is not square": (
        lambda: clvq.Quadratic(np.ones((2, 3)), 1),
        "Quadratic: matrix has shape (2, 3); expected a square matrix.",
    ),
    "a center of the wrong length": (
        lambda: clvq.Quadratic(np.eye(2), 1, center=[1, 2, 3]),
        "Quadratic: center has 3 values; expected 2, one per feature.",
    ),
    "a NaN center": (
        lambda: clvq.Quadratic(np.eye(2), 1, center=[1, NAN]),
        "Quadratic: center[1] is nan",
    ),
    "a linear part of the wrong length": (
        lambda: clvq.Quadratic(np.eye(2), 1, linear=[1]),
        "Quadratic: linear has 1 values; expected 2, one per feature.",
    ),
    "a NaN right-hand side": (
        lambda: clvq.Quadratic(np.eye(2), NAN),
        "Quadratic: value is NaN; expected a number.",
    ),
    "too few features for the matrix": (
        lambda: clvq.Quadratic(np.eye(2), 1, features=["age"]),
        "Quadratic: features has 1 entries; expected 2, one per column of matrix.",
    ),
    "a number for a constraint": (
        lambda: as_constraint(3),
        "constraint 3 has type int; expected a constraint such as Freeze('age') or a string "
        "such as 'a <= b'.",
    ),
    "a class for a constraint": (
        lambda: as_constraint(clvq.Freeze),
        "constraint Freeze is a class; expected an object of it. Write Freeze(...).",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_constraint_is_refused_in_words(kind: str) -> None:
    make, message = BAD[kind]
    with pytest.raises(clvq.InvalidInputError) as raised:
        make()
    assert message in str(raised.value)


# --- errors when a constraint meets a model -----------------------------------------------------

UNFIT: dict[str, tuple[Any, type[Exception], str]] = {
    "unknown name": (
        clvq.Freeze("incme"),
        clvq.UnknownFeatureError,
        "feature 'incme' does not exist; expected one of: age, income, 1st floor. "
        "Did you mean 'income'?",
    ),
    "unknown position": (
        clvq.Bounds(3, lower=0),
        clvq.UnknownFeatureError,
        "feature 3 does not exist; expected a position from 0 to 2, for 3 features.",
    ),
    "no key at all": (
        clvq.MaxChange(1.5, by=1),
        clvq.UnknownFeatureError,
        "feature 1.5 has type float; expected a feature name or a position (an integer).",
    ),
    "array of positions": (
        clvq.Freeze(np.array([0, 1])),
        clvq.UnknownFeatureError,
        "has type ndarray; expected a feature name or a position (an integer).",
    ),
    "unknown in a mapping": (
        clvq.Linear({"age": 1, "debt": 1}, "<=", 1),
        clvq.UnknownFeatureError,
        "feature 'debt' does not exist",
    ),
    "row of another width": (
        clvq.Linear([1, 2], "<=", 1),
        clvq.InvalidInputError,
        "Linear: coefficients has 2 values; expected 3, one per feature.",
    ),
    "matrix of another width": (
        clvq.Quadratic(np.eye(2), 1),
        clvq.InvalidInputError,
        "Quadratic: matrix has 2 columns; expected 3, one per feature. Name the features it is "
        "about with features=[...].",
    ),
    "unknown in a matrix": (
        clvq.Quadratic(np.eye(2), 1, features=["age", "debt"]),
        clvq.UnknownFeatureError,
        "feature 'debt' does not exist",
    ),
    "a feature twice in a matrix": (
        clvq.Quadratic(np.eye(2), 1, features=["age", 0]),
        clvq.InvalidInputError,
        "Quadratic: features names 'age' twice; expected each feature once.",
    ),
    "unknown in words": (
        "incme <= 3",
        clvq.UnknownFeatureError,
        "constraint 'incme <= 3': feature 'incme' does not exist; expected one of: age, income, "
        "1st floor. Did you mean 'income'?",
    ),
    "unknown original": (
        "age <= original(debt)",
        clvq.UnknownFeatureError,
        "constraint 'age <= original(debt)': feature 'debt' does not exist",
    ),
    "only numbers": (
        "1 <= 2",
        clvq.ConstraintSyntaxError,
        "constraint '1 <= 2' names no feature of the counterfactual; expected at least one "
        "feature outside original(...).",
    ),
    "only originals": (
        "original(age) <= 3",
        clvq.ConstraintSyntaxError,
        "names no feature of the counterfactual",
    ),
    "a feature that cancels": (
        "age - age <= 3",
        clvq.ConstraintSyntaxError,
        "names no feature of the counterfactual",
    ),
    "not linear": (
        "age * income <= 3",
        clvq.ConstraintSyntaxError,
        "a product of two features",
    ),
    "no constraint": (
        7,
        clvq.InvalidInputError,
        "constraint 7 has type int; expected a constraint such as Freeze('age')",
    ),
}


@pytest.mark.parametrize("kind", UNFIT)
def test_unfit_constraint_is_refused_when_the_explainer_is_made(kind: str) -> None:
    constraint, error, message = UNFIT[kind]
    with pytest.raises(error) as raised:
        clvq.Explainer(MODEL, constraints=[clvq.Increase("age"), constraint])
    assert message in str(raised.value)


# --- constraints of one's own -------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, eq=False)
class Own(clvq.Constraint):
    """Whatever it is told to state."""

    stated: Any

    def conditions(self, features: Features) -> Any:
        return self.stated(features)


def rows(A: Any, R: Any, v: Any) -> Own:
    return Own(lambda _: (LinearConditions(np.array(A), np.array(R), np.array(v)),))


NOUGHT = [[0.0, 0.0, 0.0]]
MISSTATED: dict[str, tuple[Own, str]] = {
    # Each of the first two was passed over once, and answers that break it were called optimal.
    "a constraint": (
        Own(lambda _: (clvq.Freeze("age"),)),
        "Own.conditions(features)[0] is Freeze('age'); expected a condition in numbers.",
    ),
    "a sentence": (
        Own(lambda f: [*clvq.Freeze("income").conditions(f), "age <= 3"]),
        "Own.conditions(features)[1] is 'age <= 3'; expected a condition in numbers.",
    ),
    "a sentence alone": (
        Own(lambda _: "age <= 3"),
        "Own.conditions(features) is 'age <= 3'; expected a tuple of conditions, such as",
    ),
    "one condition": (
        Own(lambda f: clvq.Freeze("age").conditions(f)[0]),
        "Own.conditions(features) is LinearConditions(",
    ),
    "nothing": (
        Own(lambda _: None),
        "Own.conditions(features) is None; expected a tuple of conditions",
    ),
    "too few columns": (
        rows([[1.0, 0.0]], [[0.0, 0.0]], [1.0]),
        "Own.conditions(features)[0]: A has shape (1, 2); expected (1, 3), a row for each",
    ),
    "a vector": (rows([1.0, 0.0, 0.0], NOUGHT, [1.0]), "A has shape (3,); expected (1, 3)"),
    "no row for the values before": (rows(NOUGHT, [], [1.0]), "R has shape (0,); expected (1, 3)"),
    "one value for two rows": (rows(NOUGHT * 2, NOUGHT * 2, [1.0]), "A has shape (2, 3); expected"),
    "a value that is no vector": (rows(NOUGHT, NOUGHT, 1.0), "v has shape (); expected (1,)"),
    "an infinite entry": (rows([[INF, 0.0, 0.0]], NOUGHT, [1.0]), "A has entries that are not"),
    "no number before": (rows(NOUGHT, [[NAN, 0.0, 0.0]], [1.0]), "R has entries that are not"),
    "no number": (rows([[1.0, 0.0, 0.0]], NOUGHT, [NAN]), "v has entries that are nan"),
}


@pytest.mark.parametrize("kind", MISSTATED)
def test_what_is_no_condition_is_refused_when_the_explainer_is_made(kind: str) -> None:
    constraint, message = MISSTATED[kind]
    with pytest.raises(clvq.InvalidInputError) as raised:
        clvq.Explainer(MODEL, constraints=[clvq.Increase("age"), constraint])
    assert message in str(raised.value)


def test_own_constraint_speaks_of_the_row_before() -> None:
    """All changes together are at most so much: the cheapest way there under Manhattan tells."""
    free = clvq.Explainer(MODEL).explain(PROTOTYPES[0], target="b")
    signs = np.stack(np.meshgrid(*[[1.0, -1.0]] * 3), axis=-1).reshape(-1, 3)
    for most, status in ((1.001 * free.cost, "optimal"), (0.999 * free.cost, "infeasible")):
        rule = rows(signs, -signs, np.full(8, most))
        cf = clvq.Explainer(MODEL, constraints=[rule]).explain(PROTOTYPES[0], target="b")
        assert cf.status == status

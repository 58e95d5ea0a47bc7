"""The explainer: targets, inputs, settings, margins and certificates that can be checked."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq.certificates.cellwise import CellCertificate
from counterlvq.certificates.duality import Proof
from counterlvq.programs.program import Multipliers
from tests.support import oracles
from tests.support.oracles import Absolute, Question, Squared

NAN, INF = float("nan"), float("inf")
rng = np.random.default_rng(11)
PROTOTYPES = rng.normal(size=(9, 3)) * 2
LABELS = ["low", "middle", "high"] * 3
NAMES = ["age", "income", "debt"]
MODEL = clvq.PrototypeModel(PROTOTYPES, LABELS, feature_names=NAMES)
X = PROTOTYPES[0] + 0.1  # 'low'
COSTS = {
    "l1": (clvq.Manhattan(), Absolute(np.ones(3))),
    "l2": (clvq.Euclidean(), Squared(np.eye(3))),
}
each_cost = pytest.mark.parametrize("cost", COSTS)


def optimum(targets: list[Any], cost: str = "l1", x: np.ndarray = X) -> float:
    question = Question(PROTOTYPES, LABELS, None, x, targets, COSTS[cost][1])
    return oracles.optimal_cost(question)


# --- targets ------------------------------------------------------------------------------------

WISHES: dict[str, tuple[Any, list[str]]] = {
    "a label": ("high", ["high"]),
    "a NumPy string": (np.str_("high"), ["high"]),
    "a list": (["middle", "high"], ["middle", "high"]),
    "a tuple": (("high",), ["high"]),
    "a set": ({"high", "middle"}, ["middle", "high"]),
    "a frozen set": (frozenset(["middle"]), ["middle"]),
    "an array": (np.array(["high", "middle"]), ["middle", "high"]),
    "an array of one": (np.array("high"), ["high"]),
    "repeats": (["high", "high"], ["high"]),
    "keys": ({"high": 1}.keys(), ["high"]),
    "anything else": (None, ["middle", "high"]),
}


@each_cost
@pytest.mark.parametrize("kind", WISHES)
def test_target_in_any_form(kind: str, cost: str) -> None:
    target, labels = WISHES[kind]
    cf = clvq.Explainer(MODEL, COSTS[cost][0]).explain(X, target=target)
    assert cf.status == "optimal"
    assert cf.prediction in labels
    assert sorted(cf.target) == sorted(labels)
    assert all(type(label) is str for label in (*cf.target, cf.prediction, cf.original_prediction))
    assert cf.original_prediction == "low"
    assert MODEL.predict(cf.x[None, :])[0] == cf.prediction
    assert LABELS[cf.prototype] == cf.prediction
    assert cf.cost == pytest.approx(optimum(labels, cost), rel=1e-6)


def test_all_labels_are_no_wish() -> None:
    cf = clvq.Explainer(MODEL).explain(X, target=["low", "middle", "high"])
    assert (cf.status, cf.cost, cf.lower_bound, cf.gap) == ("optimal", 0.0, 0.0, 0.0)
    assert np.array_equal(cf.x, X)
    assert cf.reason == "the input has a wished-for label already"


def test_all_labels_under_a_constraint_that_the_input_breaks() -> None:
    """Without rivals only the constraint is to be met."""
    explainer = clvq.Explainer(MODEL, constraints=[clvq.Bounds("age", lower=X[0] + 2.5)])
    cf = explainer.explain(X, target=["low", "middle", "high"])
    assert cf.status == "optimal"
    assert cf.cost == pytest.approx(2.5)
    np.testing.assert_allclose(cf.delta, [2.5, 0, 0], atol=1e-9)


def test_own_label_comes_back_unchanged_unless_a_constraint_is_broken() -> None:
    assert clvq.Explainer(MODEL).explain(X, target="low").cost == 0.0
    explainer = clvq.Explainer(MODEL, constraints=["debt >= original(debt) + 0.01"])
    cf = explainer.explain(X, target="low")
    assert cf.cost == pytest.approx(0.01)
    assert cf.prediction == "low"


@pytest.mark.parametrize(
    ("labels", "target", "types"),
    [
        ([3, -1, 3], -1, int),
        ([True, False, True], False, bool),
        ([0.5, 2.0, 0.5], 2, float),
        (["a", "b", "a"], "b", str),
    ],
    ids=["int", "bool", "float", "str"],
)
def test_labels_come_back_in_the_type_of_the_model(labels: Any, target: Any, types: type) -> None:
    model = clvq.PrototypeModel([[0.0], [4.0], [9.0]], labels)
    cf = clvq.Explainer(model).explain([0.0], target=target)
    assert cf.prediction == target
    assert type(cf.prediction) is types
    assert type(cf.original_prediction) is types
    assert [type(label) for label in cf.target] == [types]


def test_objects_as_labels() -> None:
    labels = np.array([1, "one", None], dtype=object)
    explainer = clvq.Explainer(clvq.PrototypeModel([[0.0], [4.0], [9.0]], labels))
    assert explainer.explain([0.0], target="one").cost == pytest.approx(2.0)
    assert explainer.explain([0.0], target=[None]).cost == pytest.approx(6.5)
    assert explainer.explain([9.0], target=[1, "one"]).prediction == "one"


BAD_TARGETS: dict[str, tuple[Any, str]] = {
    "unknown": (
        "hihg",
        "target 'hihg' is no label of the model; expected one of: 'high', 'low', 'middle'.",
    ),
    "of another type": (1, "target 1 is no label of the model; expected one of: 'high',"),
    "one unknown of several": (["high", "none"], "target 'none' is no label of the model"),
    "NaN": (NAN, "target nan is no label of the model"),
    "empty list": (
        [],
        "target is empty; expected a label, several labels, or None for any other class.",
    ),
    "empty set": (set(), "target is empty; expected a label"),
    "empty array": (np.array([]), "target is empty; expected a label"),
    "empty string": ("", "target '' is no label of the model"),
}


@pytest.mark.parametrize("kind", BAD_TARGETS)
def test_bad_target_is_refused_in_words(kind: str) -> None:
    target, message = BAD_TARGETS[kind]
    with pytest.raises(clvq.UnknownLabelError) as raised:
        clvq.Explainer(MODEL).explain(X, target=target)
    assert message in str(raised.value)


# --- inputs -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        X.tolist(),
        tuple(X),
        X[None, :],
        [X.tolist()],
        dict(zip(NAMES, X.tolist(), strict=True)),
        dict(zip(reversed(NAMES), X[::-1], strict=True)),
        X.astype(object),
    ],
    ids=["list", "tuple", "one row", "nested list", "mapping", "another order", "objects"],
)
def test_input_in_any_form(given: Any) -> None:
    explainer = clvq.Explainer(MODEL)
    expected = explainer.explain(X)
    cf = explainer.explain(given)
    assert np.array_equal(cf.original, X)
    assert np.array_equal(cf.x, expected.x)


def test_whole_numbers_are_numbers() -> None:
    cf = clvq.Explainer(clvq.PrototypeModel([[0], [5]], [0, 1])).explain(
        np.array([1], dtype=np.int8)
    )
    assert cf.cost == pytest.approx(1.5)


BAD_INPUTS: dict[str, tuple[Any, type[Exception], str]] = {
    "too short": (
        [1.0, 2.0],
        clvq.InvalidInputError,
        "x has 2 values; expected 3, one per feature.",
    ),
    "too long": (np.ones(4), clvq.InvalidInputError, "x has 4 values; expected 3"),
    "several rows": (
        np.ones((2, 3)),
        clvq.InvalidInputError,
        "x has 2 dimension(s) and shape (2, 3); expected a one-dimensional array.",
    ),
    "a number": (3.0, clvq.InvalidInputError, "x has 0 dimension(s) and shape ()"),
    "empty": ([], clvq.InvalidInputError, "x has 0 values; expected 3"),
    "NaN": (
        [1.0, NAN, 2.0],
        clvq.InvalidInputError,
        "x[1] is nan (1 such value(s) in all); expected finite numbers. Fill in or remove missing "
        "values first.",
    ),
    "infinite": ([1.0, 2.0, -INF], clvq.InvalidInputError, "x[2] is -inf"),
    "words": (["a", "b", "c"], clvq.InvalidInputError, "x cannot be read as an array of numbers"),
    "a missing name": (
        {"age": 1.0, "income": 2.0},
        clvq.InvalidInputError,
        "x lacks the feature(s) 'debt'; expected a value for each of the 3 features.",
    ),
    "an unknown name": (
        {"age": 1.0, "income": 2.0, "det": 3.0},
        clvq.UnknownFeatureError,
        "feature 'det' does not exist; expected one of: age, income, debt. Did you mean 'debt'?",
    ),
    "NaN by name": (
        {"age": 1.0, "income": NAN, "debt": 3.0},
        clvq.InvalidInputError,
        "x[1] is nan",
    ),
}


@pytest.mark.parametrize("kind", BAD_INPUTS)
def test_bad_input_is_refused_in_words(kind: str) -> None:
    given, error, message = BAD_INPUTS[kind]
    with pytest.raises(error) as raised:
        clvq.Explainer(MODEL).explain(given)
    assert message in str(raised.value)


# --- settings -----------------------------------------------------------------------------------

LOCAL = clvq.PrototypeModel([[0.0], [1.0]], [0, 1], omegas=[[[1.0]], [[2.0]]])
BAD_SETTINGS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "method": (
        lambda: clvq.Explainer(MODEL, method="magic"),
        clvq.InvalidInputError,
        "method is 'magic'; expected one of: 'auto', 'ccp', 'global'.",
    ),
    "no method": (
        lambda: clvq.Explainer(MODEL, method=None),
        clvq.InvalidInputError,
        "method is None; expected one of: 'auto', 'ccp', 'global'.",
    ),
    "negative gap": (
        lambda: clvq.Explainer(MODEL, gap=-0.1),
        clvq.InvalidInputError,
        "gap is -0.1; expected a number of at least 0.",
    ),
    "NaN gap": (
        lambda: clvq.Explainer(MODEL, gap=NAN),
        clvq.InvalidInputError,
        "gap is NaN; expected a number.",
    ),
    "negative time": (
        lambda: clvq.Explainer(MODEL, time_limit=-1),
        clvq.InvalidInputError,
        "time_limit is -1; expected a number of at least 0.",
    ),
    "time in words": (
        lambda: clvq.Explainer(MODEL, time_limit="soon"),
        clvq.InvalidInputError,
        "time_limit is 'soon'; expected a number.",
    ),
    "endless time": (
        lambda: clvq.Explainer(MODEL, time_limit=INF),
        clvq.InvalidInputError,
        "time_limit is inf; expected a finite number.",
    ),
    "negative margin": (
        lambda: clvq.Explainer(MODEL, margin=-1e-9),
        clvq.InvalidInputError,
        "margin is -1e-09; expected a number of at least 0.",
    ),
    "infinite margin": (
        lambda: clvq.Explainer(MODEL, margin=INF),
        clvq.InvalidInputError,
        "margin is inf; expected a finite number.",
    ),
    "no model": (
        lambda: clvq.Explainer(PROTOTYPES),
        clvq.NotSupportedError,
        "a ndarray (from numpy) cannot be read as a prototype model; expected a PrototypeModel or ",
    ),
    "a single constraint": (
        lambda: clvq.Explainer(MODEL, constraints=clvq.Freeze("age")),
        clvq.InvalidInputError,
        "constraints is a single Freeze; expected a list. Write constraints=[Freeze('age')].",
    ),
    "a single string": (
        lambda: clvq.Explainer(MODEL, constraints="age <= 3"),
        clvq.InvalidInputError,
        "constraints is a single str; expected a list. Write constraints=['age <= 3'].",
    ),
    "no list of constraints": (
        lambda: clvq.Explainer(MODEL, constraints=None),
        clvq.InvalidInputError,
        "constraints is None; expected a list",
    ),
    "a number for constraints": (
        lambda: clvq.Explainer(MODEL, constraints=3),
        clvq.InvalidInputError,
        "constraints is 3; expected a list",
    ),
}


@pytest.mark.parametrize("kind", BAD_SETTINGS)
def test_bad_setting_is_refused_in_words(kind: str) -> None:
    make, error, message = BAD_SETTINGS[kind]
    with pytest.raises(error) as raised:
        make()
    assert message in str(raised.value)


@each_cost
@pytest.mark.parametrize("method", ["auto", "ccp", "global"])
def test_every_method_is_exact_for_shared_metrics(method: str, cost: str) -> None:
    cf = clvq.Explainer(MODEL, COSTS[cost][0], method=method, gap=0.5).explain(X, target="high")
    assert cf.status == "optimal"
    assert cf.cost == pytest.approx(optimum(["high"], cost), rel=1e-6)


def test_repr_shows_what_was_asked() -> None:
    explainer = clvq.Explainer(MODEL, clvq.Euclidean(), [clvq.Freeze("age"), "debt <= 3"])
    assert repr(explainer) == (
        "Explainer(PrototypeModel(9 prototypes, 3 features, 3 classes, shared metric), "
        "cost=Euclidean(), constraints=[Freeze('age'), 'debt <= 3'])"
    )
    assert repr(clvq.Explainer(MODEL, margin=0.5)).endswith("constraints=[], margin=0.5)")
    surer = clvq.Explainer(MODEL, confidence=clvq.Noise(0.5))
    assert repr(surer).endswith(f"constraints=[], confidence={clvq.Noise(0.5)!r})")


# --- time ---------------------------------------------------------------------------------------


@each_cost
def test_no_time_leaves_the_question_open_with_a_true_bound(cost: str) -> None:
    cf = clvq.Explainer(MODEL, COSTS[cost][0], time_limit=0).explain(X, target="high")
    assert cf.status == "unknown"
    assert np.isnan(cf.x).all()
    assert cf.prediction is None
    assert cf.prototype == -1
    assert cf.cost == INF
    assert 0 < cf.lower_bound <= optimum(["high"], cost) * (1 + 1e-9)


def test_no_time_does_not_turn_into_a_proof() -> None:
    explainer = clvq.Explainer(MODEL, constraints=[clvq.Freeze(0, 1, 2)], time_limit=0)
    cf = explainer.explain(X, target="high")
    assert cf.status == "unknown"
    assert cf.conflict == ()


def test_no_time_is_needed_where_nothing_is_to_be_done() -> None:
    assert clvq.Explainer(MODEL, time_limit=0).explain(X, target="low").status == "optimal"


def test_ample_time_changes_nothing() -> None:
    plain = clvq.Explainer(MODEL).explain(X)
    timed = clvq.Explainer(MODEL, time_limit=1000).explain(X)
    assert np.array_equal(plain.x, timed.x)


# --- margin -------------------------------------------------------------------------------------


def lead(x: np.ndarray, labels: list[str]) -> float:
    """By how much the nearest wished-for prototype is nearer than any rival."""
    scores = oracles.squared_distances(PROTOTYPES, None, x)[0]
    wished = np.isin(LABELS, labels)
    return float(scores[~wished].min() - scores[wished].min())


@each_cost
@pytest.mark.parametrize("margin", [1e-6, 0.01, 0.5, 2.0])
def test_answer_keeps_the_margin(margin: float, cost: str) -> None:
    plain = clvq.Explainer(MODEL, COSTS[cost][0]).explain(X, target="high")
    cf = clvq.Explainer(MODEL, COSTS[cost][0], margin=margin).explain(X, target="high")
    assert cf.status.has_answer
    assert cf.prediction == "high"
    rounding = 1e-12 * oracles.squared_distances(PROTOTYPES, None, cf.x).max()
    assert lead(cf.x, ["high"]) >= margin - rounding
    assert cf.cost > plain.cost
    assert plain.lower_bound < cf.lower_bound <= cf.cost
    assert cf.gap <= 1e-6


@each_cost
def test_bound_is_about_the_points_that_keep_the_margin(cost: str) -> None:
    model = clvq.PrototypeModel([[0.0], [4.0]], ["a", "b"])
    for margin in (None, 0.0, 1.0, 3.0):
        cf = clvq.Explainer(model, COSTS[cost][0], margin=margin).explain([0.0])
        # score_a - score_b = 8 x - 16 >= margin.
        at = 2 + (margin or 0.0) / 8
        exact = at if cost == "l1" else at**2
        assert cf.x[0] == pytest.approx(at, rel=1e-9)
        assert cf.cost == pytest.approx(exact, rel=1e-9)
        assert cf.lower_bound <= exact
        assert cf.lower_bound == pytest.approx(exact, rel=1e-6)
        assert cf.bound_with_margin == cf.lower_bound


def test_cost_grows_with_the_margin() -> None:
    costs = [
        clvq.Explainer(MODEL, margin=margin).explain(X, target="high").cost
        for margin in (0.0, 0.1, 0.2, 0.5, 1.0, 2.0)
    ]
    assert costs == sorted(set(costs))


def test_answer_with_a_margin_is_told_apart_from_an_open_gap() -> None:
    cf = clvq.Explainer(MODEL, margin=0.5).explain(X, target="high")
    assert cf.status == "feasible"
    assert "no counterfactual that keeps the margin of 0.5 costs less than" in str(cf)
    assert cf.gap <= 1e-6


def test_margin_that_no_point_keeps_is_infeasible() -> None:
    model = clvq.PrototypeModel([[0.0], [4.0], [8.0]], ["a", "b", "a"])
    # Between two rivals at distance 4 the lead is 16 at most.
    assert clvq.Explainer(model, margin=15.9).explain([0.0], target="b").status.has_answer
    cf = clvq.Explainer(model, margin=16.1).explain([0.0], target="b")
    assert cf.status == "infeasible"
    assert cf.conflict == ()
    # The model says so all the same, from 2 on.
    assert cf.lower_bound == pytest.approx(2.0)
    assert "none keeps the margin of 16.1; without it one costs 2" in cf.text()


def test_own_label_without_the_margin_stays_as_it_is() -> None:
    """The margin is about changes; an input that has the label is not moved for it."""
    model = clvq.PrototypeModel([[0.0], [4.0]], ["a", "b"])
    cf = clvq.Explainer(model, margin=3.0).explain([1.9], target="a")
    assert (cf.status, cf.cost) == ("optimal", 0.0)


# --- certificates -------------------------------------------------------------------------------

CONSTRAINED = [clvq.MaxChange("debt", by=1.0), "income + age <= original(income) + 4"]


@each_cost
@pytest.mark.parametrize("constraints", [(), CONSTRAINED], ids=["free", "constrained"])
@pytest.mark.parametrize("target", ["high", "middle", None])
def test_certificate_can_be_checked_again(
    target: str | None, constraints: list[Any], cost: str
) -> None:
    explainer = clvq.Explainer(MODEL, COSTS[cost][0], constraints)
    cf = explainer.explain(X, target=target)
    assert cf.status == "optimal"
    assert explainer.verify(cf) == cf.lower_bound
    another = clvq.Explainer(MODEL, COSTS[cost][0], constraints)
    assert another.verify(cf) == cf.lower_bound


def test_certificate_of_every_status_can_be_checked_again() -> None:
    frozen = clvq.Explainer(MODEL, constraints=[clvq.Freeze(0, 1, 2)])
    late = clvq.Explainer(MODEL, time_limit=0)
    wide = clvq.Explainer(MODEL, margin=0.5)
    for explainer, target, status in [
        (frozen, "high", "infeasible"),
        (late, "high", "unknown"),
        (wide, "high", "feasible"),
        (frozen, "low", "optimal"),
    ]:
        cf = explainer.explain(X, target=target)
        assert cf.status == status
        assert explainer.verify(cf) == cf.lower_bound


def tampered(cf: clvq.Counterfactual, change: Callable[[Proof], Proof]) -> clvq.Counterfactual:
    certificate = CellCertificate(tuple(change(proof) for proof in cf.certificate.proofs))
    return replace(cf, certificate=certificate)


def more_expensive(proof: Proof) -> Proof:
    prices = proof.constraint_prices
    return replace(
        proof,
        rival_prices=3 * proof.rival_prices,
        constraint_prices=Multipliers(3 * prices.y, 3 * prices.z, 3 * prices.nu),
    )


def for_nothing(proof: Proof) -> Proof:
    return replace(proof, rival_prices=0 * proof.rival_prices)


def of_other_rivals(proof: Proof) -> Proof:
    others = np.setdiff1d(np.flatnonzero(np.array(LABELS) != "high"), proof.rivals)
    return replace(proof, rivals=others[: proof.rivals.size])


@each_cost
@pytest.mark.parametrize("change", [more_expensive, for_nothing, of_other_rivals])
def test_tampered_certificate_is_noticed(change: Callable[[Proof], Proof], cost: str) -> None:
    explainer = clvq.Explainer(MODEL, COSTS[cost][0])
    cf = explainer.explain(X, target="high")
    assert explainer.verify(tampered(cf, change)) < 0.999 * cf.lower_bound


@each_cost
def test_certificate_that_leaves_a_cell_out_is_worth_nothing(cost: str) -> None:
    explainer = clvq.Explainer(MODEL, COSTS[cost][0])
    cf = explainer.explain(X, target="high")
    for out in range(len(cf.certificate.proofs)):
        kept = [proof for k, proof in enumerate(cf.certificate.proofs) if k != out]
        less = replace(cf, certificate=replace(cf.certificate, proofs=tuple(kept)))
        assert explainer.verify(less) == 0.0
    assert explainer.verify(replace(cf, certificate=CellCertificate(()))) == 0.0


def test_certificate_that_leaves_out_a_class_is_noticed_for_any_type_of_label() -> None:
    labels = np.array([1, "one", None], dtype=object)
    explainer = clvq.Explainer(clvq.PrototypeModel([[0.0], [4.0], [9.0]], labels))
    cf = explainer.explain([9.0], target=[1, "one"])
    assert explainer.verify(cf) == cf.lower_bound > 0
    kept = tuple(proof for proof in cf.certificate.proofs if proof.prototype == 1)
    assert explainer.verify(replace(cf, certificate=CellCertificate(kept))) == 0.0


@each_cost
def test_certificate_of_another_question_claims_no_more_than_is_true(cost: str) -> None:
    explainer = clvq.Explainer(MODEL, COSTS[cost][0])
    cf = explainer.explain(X, target="high")
    for shift in (-0.3, 0.05, 0.4):
        moved = replace(cf, original_values=X + shift, cost=INF)
        assert explainer.verify(moved) <= optimum(["high"], cost, X + shift) * (1 + 1e-9)


@each_cost
def test_lowered_cost_is_noticed(cost: str) -> None:
    """A bound above the cost would say that the answer does not exist."""
    explainer = clvq.Explainer(MODEL, COSTS[cost][0])
    cf = explainer.explain(X, target="high")
    cheaper = replace(cf, cost=0.5 * cf.cost)
    assert explainer.verify(cheaper) <= 0.5 * cf.cost < cf.lower_bound


def test_bound_holds_for_the_explainers_own_constraints_only() -> None:
    """An answer under fewer constraints is verified against the constraints at hand."""
    free = clvq.Explainer(MODEL)
    bound = free.explain(X, target="high")
    tight = clvq.Explainer(MODEL, constraints=[clvq.Freeze("age")]).explain(X, target="high")
    assert bound.lower_bound <= tight.cost


# --- again and again ----------------------------------------------------------------------------


@each_cost
def test_same_question_same_answer(cost: str) -> None:
    explainer = clvq.Explainer(MODEL, COSTS[cost][0], CONSTRAINED)
    first = explainer.explain(X)
    explainer.explain(PROTOTYPES[1], target="low")
    again = explainer.explain(X)
    fresh = clvq.Explainer(MODEL, COSTS[cost][0], CONSTRAINED).explain(X)
    for other in (again, fresh):
        assert np.array_equal(first.x, other.x)
        assert (first.cost, first.lower_bound) == (other.cost, other.lower_bound)
        assert str(first) == str(other)


def test_pickled_explainer_answers_the_same() -> None:
    explainer = clvq.Explainer(MODEL, constraints=CONSTRAINED)
    expected = explainer.explain(X)
    again = pickle.loads(pickle.dumps(explainer))
    assert np.array_equal(again.explain(X).x, expected.x)


def test_list_of_constraints_is_copied() -> None:
    constraints: list[Any] = [clvq.Freeze("age")]
    explainer = clvq.Explainer(MODEL, constraints=constraints)
    constraints.clear()
    assert explainer.constraints == (clvq.Freeze("age"),)
    assert explainer.explain(X).delta[0] == 0.0


def test_answer_is_in_the_units_of_the_user() -> None:
    cf = clvq.Explainer(MODEL).explain(dict(zip(NAMES, X, strict=True)))
    assert cf.feature_names == tuple(NAMES)
    assert {change.feature for change in cf.changes} <= set(NAMES)
    np.testing.assert_array_equal(cf.delta, cf.x - X)


# --- ties ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["a", "b"])
def test_a_cell_that_is_only_touched_belongs_to_whoever_stands_first(first: str) -> None:
    """With x <= 1, the prototypes 0 (a) and 2 (b) tie at best, and the first one wins."""
    places = {"a": [0.0], "b": [2.0]}
    order = [first, *sorted(set(places) - {first})]
    model = clvq.PrototypeModel([places[label] for label in order], order)
    cf = clvq.Explainer(model, constraints=[clvq.Bounds(0, upper=1)]).explain([0.0], target="b")
    if first == "b":
        assert (cf.status, cf.x.tolist(), cf.cost) == ("optimal", [1.0], 1.0)
    else:
        assert cf.status == "infeasible"


def test_a_cell_lost_to_ties_leaves_no_gap() -> None:
    """Under "income <= age" cell b is touched only where a, which stands first, wins."""
    model = clvq.PrototypeModel(np.eye(3), ["a", "b", "c"], feature_names=["age", "income", "f"])
    explainer = clvq.Explainer(model, constraints=["income <= age"])
    cf = explainer.explain([0.75, 0.5, -0.25], target=["b", "c"])
    assert (cf.status, cf.prediction) == ("optimal", "c")
    assert cf.cost == pytest.approx(1.0, rel=1e-9)
    assert explainer.verify(cf) == cf.lower_bound


def test_without_asks_the_same_but_for_one_constraint() -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 2.0]], ["no", "yes"])
    rules = [clvq.Freeze("x0"), "x1 <= 9"]
    asked = clvq.Explainer(model, clvq.Euclidean(), rules, margin=0.1, time_limit=7.0)
    freed = asked.without(0)
    assert freed.constraints == ("x1 <= 9",)
    assert asked.constraints == tuple(rules)
    plain = clvq.Explainer(model, clvq.Euclidean(), rules[1:], margin=0.1)
    row = [1.0, 0.0]
    before = asked.explain(row, "yes").cost
    assert freed.explain(row, "yes").cost == plain.explain(row, "yes").cost < before
    assert asked.explain(row, "yes").cost == before
    assert (freed.time_limit, asked.without(1, time_limit=2).time_limit) == (7.0, 2.0)
    for bad in (-1, 2):
        with pytest.raises(clvq.InvalidInputError, match=f"constraint is {bad}; expected"):
            asked.without(bad)


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("name", ["lower_bound", "_sound", "_covering", "fits"])
def test_methods_that_are_planted_on_a_certificate_are_not_asked(local: bool, name: str) -> None:
    omegas = [np.eye(2), [[1.0, 0.2], [0.0, 0.8]]] if local else None
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 0.0]], ["no", "yes"], omegas=omegas)
    explainer = clvq.Explainer(model)
    cf = explainer.explain([1.0, 0.0], target="yes")
    certificate = pickle.loads(pickle.dumps(cf.certificate))
    parts = [certificate, *getattr(certificate, "trees", getattr(certificate, "proofs", ()))]
    for part in parts:
        object.__setattr__(part, name, lambda *_, **__: 99.0)
    assert explainer.verify(replace(cf, certificate=certificate)) == cf.lower_bound
    assert explainer.verify(replace(cf, certificate=certificate, cost=99.0)) <= cf.cost

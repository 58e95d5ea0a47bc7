"""Results: how they read, what they hold, and that nobody can change them."""

from __future__ import annotations

import dataclasses
import json
import pickle
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import counterlvq as clvq
from counterlvq.presentation.changes import Change

NAN, INF = float("nan"), float("inf")
NAMES = ("income", "savings", "age")
LOAN = clvq.PrototypeModel(
    [[2000.0, 100.0, 30.0], [3000.0, 300.0, 40.0]],
    ["rejected", "accepted"],
    feature_names=["income", "savings", "age"],
)


def result(**changed: Any) -> clvq.Counterfactual:
    """A made-up answer, apart from what the test is about."""
    values: dict[str, Any] = {
        "values": np.array([2900.0, 250.0, 30.0]),
        "original_values": np.array([2400.0, 100.0, 30.0]),
        "status": clvq.Status.OPTIMAL,
        "cost": 650.0,
        "lower_bound": 649.9999,
        "gap": 1e-7,
        "prediction": "accepted",
        "original_prediction": "rejected",
        "target": ("accepted",),
        "prototype": 1,
        "features": clvq.Features(NAMES),
        "reason": "an engine",
        "bound_with_margin": 649.9999,
    }
    return clvq.Counterfactual(**{**values, **changed})


def nothing(status: clvq.Status, **changed: Any) -> clvq.Counterfactual:
    empty = {
        "values": np.full(3, NAN),
        "cost": INF,
        "prediction": None,
        "prototype": -1,
        "gap": INF,
    }
    return result(status=status, **{**empty, **changed})


def infeasible(*conflict: clvq.Constraint | str, **changed: Any) -> clvq.Counterfactual:
    proved = {"lower_bound": INF, "bound_with_margin": INF, "gap": 0.0, "reason": "a proof"}
    return nothing(clvq.Status.INFEASIBLE, conflict=conflict, **{**proved, **changed})


# --- reading ------------------------------------------------------------------------------------


def test_answer_reads_as_a_table() -> None:
    assert str(result()).splitlines() == [
        "Counterfactual (optimal)",
        "  class   'rejected' -> 'accepted'",
        "  feature  before  after  change",
        "  income    2,400  2,900    +500",
        "  savings     100    250    +150",
        "  1 feature unchanged",
        "  cost    650",
        "  proof   no counterfactual costs less than 649.9999 (gap <1e-06)",
    ]
    assert repr(result()) == str(result())


def test_open_gap_is_told() -> None:
    open_gap = {"lower_bound": 325.0, "bound_with_margin": 400.0, "gap": 0.5}
    shown = str(result(status=clvq.Status.FEASIBLE, **open_gap))
    assert shown.startswith("Counterfactual (feasible)")
    assert shown.endswith(
        "no counterfactual costs less than 325 (gap 50.00%): a closer one is not ruled out"
    )


def test_gap_that_only_the_margin_explains_is_told_so() -> None:
    kept = {"lower_bound": 649.9999, "gap": 1e-7, "margin": 0.5}
    shown = str(result(status=clvq.Status.FEASIBLE, **kept))
    assert shown.endswith("no counterfactual that keeps the margin of 0.5 costs less than 649.9999")
    kept = {"lower_bound": 325.0, "gap": 0.5, "margin": 0.5}
    shown = str(result(status=clvq.Status.FEASIBLE, **kept))
    assert "that keeps the margin of 0.5 costs less than 325 (gap 50.00%)" in shown


def test_unchanged_input_reads_as_such() -> None:
    same = result(values=np.array([2400.0, 100.0, 30.0]), cost=0.0, lower_bound=0.0, gap=0.0)
    assert same.changes == ()
    assert not same.delta.any()
    assert "  nothing needs to change" in str(same).splitlines()
    assert same.text() == "The answer is accepted already; nothing needs to change."


def test_many_changes_are_cut_short() -> None:
    names = tuple(f"f{j}" for j in range(30))
    long = result(
        values=np.arange(30.0), original_values=np.zeros(30), features=clvq.Features(names)
    )
    lines = str(long).splitlines()
    assert "  and 9 more changed features, which text() names" in lines
    assert "  1 feature unchanged" in lines
    assert sum(line.strip().startswith("f") for line in lines) == 21  # and the header
    assert len(long.changes) == 29


def test_several_unchanged_features_are_counted() -> None:
    one = result(values=np.array([2400.0, 100.0, 31.0]))
    assert "  2 features unchanged" in str(one).splitlines()


def test_sentence_names_class_and_changes() -> None:
    assert result().text() == (
        "The answer would have been accepted if income were 500 higher "
        "(2,900 instead of 2,400) and savings were 150 higher (250 instead of 100)."
    )
    one = result(values=np.array([2400.0, 100.0, 28.5]))
    assert one.text() == (
        "The answer would have been accepted if age were 1.5 lower (28.5 instead of 30)."
    )
    three = result(values=np.array([2500.0, 200.0, 31.0])).text()
    assert "(2,500 instead of 2,400), savings were 100 higher (200 instead of 100) and age" in three


def test_missing_answer_reads_as_a_reason() -> None:
    one = infeasible(clvq.Freeze("age"))
    assert str(one).splitlines() == [
        "Counterfactual (infeasible)",
        '  There is no counterfactual for accepted: "no change of age" leaves no room for it.',
        "  proved: a proof",
    ]
    two = infeasible(clvq.Freeze("age"), "income <= 3").text()
    assert two == (
        'There is no counterfactual for accepted: "no change of age" and "income <= 3" leave no '
        "room for it together."
    )
    three = infeasible("income <= 1", "savings <= 1", "age <= 1").text()
    assert '"income <= 1", "savings <= 1" and "age <= 1" leave no room' in three
    none = infeasible(target=("accepted", "perhaps")).text()
    assert none == (
        "There is no counterfactual for accepted or perhaps: the model never says so, with "
        "or without constraints."
    )


def test_open_question_reads_as_such() -> None:
    open_question = nothing(clvq.Status.UNKNOWN, lower_bound=12.5)
    assert str(open_question).splitlines() == [
        "Counterfactual (unknown)",
        "  No counterfactual for accepted was found; that there is none is not proved.",
        "  a counterfactual, if any, costs at least 12.5 (an engine)",
    ]
    assert open_question.changes == ()


def test_question_stopped_before_any_engine_says_so() -> None:
    cf = clvq.Explainer(LOAN, time_limit=0).explain([2400, 100, 30], target="accepted")
    assert cf.status == "unknown"
    assert "()" not in str(cf)


# --- numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        (1.0, 2.25, ("1", "2.25", "+1.25")),
        (0.0, -3.0, ("0", "-3", "-3")),
        (2400.0, 2900.0, ("2,400", "2,900", "+500")),
        (1234567.0, 2345678.9, ("1,234,567", "2,345,678.9", "+1,111,111.9")),
        (0.123456, 0.5, ("0.123456", "0.5", "+0.376544")),
        (1e-7, 3e-7, ("1e-7", "3e-7", "+2e-7")),
        (1e12, 3e12, ("1e+12", "3e+12", "+2e+12")),
        # Nobody checked other values of an answer made by hand: these are shown in full.
        (1.0, 1.00001, ("1", "1.00001", "+1e-5")),
        (123456.7, 123456.8, ("123,456.7", "123,456.8", "+0.1")),
        (1000.4, 1000.6, ("1,000.4", "1,000.6", "+0.2")),
        (1.23449, 1.23451, ("1.23449", "1.23451", "+2e-5")),
    ],
)
def test_numbers_show_the_change_they_are_about(
    before: float, after: float, shown: tuple[str, str, str]
) -> None:
    cf = result(
        values=np.array([after]), original_values=np.array([before]), features=clvq.Features(["f"])
    )
    row = next(line for line in str(cf).splitlines() if line.startswith("  f "))
    assert tuple(row.split()[1:]) == shown
    assert f"({shown[1]} instead of {shown[0]})" in cf.text()


def test_shown_values_differ_by_the_shown_change() -> None:
    rng = np.random.default_rng(0)
    for _ in range(2000):
        before = float(rng.normal() * 10.0 ** rng.integers(-6, 8))
        after = before + float(rng.normal() * 10.0 ** rng.integers(-6, 8))
        if abs(after - before) < 1e-9 * abs(before):
            continue
        cf = result(
            values=np.array([after]),
            original_values=np.array([before]),
            features=clvq.Features(["f"]),
        )
        row = next(line for line in str(cf).splitlines() if line.startswith("  f "))
        old, new, by = (Fraction(cell.replace(",", "")) for cell in row.split()[1:])
        assert (float(old), float(new)) == (before, after)
        assert abs(new - old - by) <= abs(by) / 10**17, row


def test_smallest_change_is_still_seen() -> None:
    nearby = np.nextafter(0.1, 1.0)
    cf = result(
        values=np.array([nearby]), original_values=np.array([0.1]), features=clvq.Features(["f"])
    )
    assert "(0.10000000000000002 instead of 0.1" in cf.text()


# --- plain values -------------------------------------------------------------------------------


def test_dictionary_holds_what_the_answer_holds() -> None:
    assert result().to_dict() == {
        "status": "optimal",
        "prediction": "accepted",
        "original_prediction": "rejected",
        "target": ["accepted"],
        "cost": 650.0,
        "cost_scales": [],
        "lower_bound": 649.9999,
        "gap": 1e-7,
        "resolution": 0.0,
        "confidence": "",
        "prototype": 1,
        "original": {"income": 2400.0, "savings": 100.0, "age": 30.0},
        "x": {"income": 2900.0, "savings": 250.0, "age": 30.0},
        "missing": [],
        "changes": [
            {
                "feature": "income",
                "before": 2400.0,
                "after": 2900.0,
                "difference": 500.0,
                "unit": "",
                "was_missing": False,
            },
            {
                "feature": "savings",
                "before": 100.0,
                "after": 250.0,
                "difference": 150.0,
                "unit": "",
                "was_missing": False,
            },
        ],
        "conflict": [],
        "conflict_is_irreducible": True,
        "conflict_has_confidence": False,
        "conflict_ranges": [],
        "conflict_steps": [],
        "has_target": False,
        "broken": [],
        "within_rules": None,
        "reason": "",
        "found_by": "an engine",
        "response": None,
        "predict_proba_favours": None,
        "shown": None,
    }


@pytest.mark.parametrize(
    "cf",
    [
        result(),
        result(status=clvq.Status.FEASIBLE),
        nothing(clvq.Status.UNKNOWN, lower_bound=1.0),
        infeasible(clvq.Freeze("age"), "age <= 3"),
        infeasible(),
        result(prediction=np.int64(1), original_prediction=np.bool_(True), target=(np.str_("a"),)),
        result(prediction=date(2020, 1, 1), target=(date(2020, 1, 1),)),
        result(prediction=b"yes", original_prediction=("a", 1), target=(b"yes", None, 1.5)),
    ],
    ids=["optimal", "feasible", "unknown", "infeasible", "out of reach", "numpy", "dates", "odd"],
)
def test_dictionary_survives_json(cf: clvq.Counterfactual) -> None:
    plain = cf.to_dict()
    # Infinity and NaN are not JSON.
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


def test_dictionary_has_no_numbers_where_there_are_none() -> None:
    plain = infeasible(clvq.Freeze("age"), "age <= 3").to_dict()
    assert plain["x"] is None
    assert plain["cost"] is None
    assert plain["lower_bound"] is None
    assert plain["changes"] == []
    assert plain["conflict"] == ["Freeze('age')", "age <= 3"]
    assert nothing(clvq.Status.UNKNOWN, lower_bound=2.0).to_dict()["lower_bound"] == 2.0


@pytest.mark.parametrize(
    "explainer",
    [
        clvq.Explainer(LOAN),
        clvq.Explainer(LOAN, constraints=[clvq.Freeze("income", "savings", "age")]),
        clvq.Explainer(LOAN, time_limit=0),
    ],
    ids=["optimal", "infeasible", "unknown"],
)
def test_real_answers_survive_json(explainer: clvq.Explainer) -> None:
    plain = explainer.explain([2400, 100, 30], target="accepted").to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


def test_every_answer_has_the_same_keys() -> None:
    rows = [[2400, 100, 30], [2900, 900, 30]]
    batch = clvq.Explainer(LOAN).explain_batch(rows, "accepted")
    scored = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    broken = clvq.Explainer(LOAN, constraints=["age >= 40"]).explain(rows[0], "accepted")
    answers = [
        result(),
        infeasible(clvq.Freeze("age")),
        nothing(clvq.Status.UNKNOWN),
        *batch,
        batch.sketch(0),
        broken,
        clvq.Explainer(scored).explain([0.0]),
        clvq.Explainer(scored, confidence=clvq.Probability(0.8)).explain([0.0]),
    ]
    assert broken.within_rules is not None
    keys = [list(cf.to_dict(shown=shown)) for cf in answers for shown in (False, True)]
    assert all(one == keys[0] for one in keys)
    inner = [list(cf.to_dict(shown=True)["shown"]) for cf in answers]
    assert all(one == ["x", "cost", "response"] for one in inner)


def test_what_is_shown_is_an_answer_as_it_is_written() -> None:
    table = np.random.default_rng(5).normal(3000.0, 777.7, (60, 2)).round()
    labels = table.sum(axis=1) > 6000.0
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(table, labels)
    row = table[int(np.argmin(model.predict_proba(table)[:, 1]))]
    cf = clvq.Explainer(model, confidence=clvq.Probability(0.8)).explain(row)
    told = json.loads(json.dumps(cf.to_dict(shown=True)))
    shown = told["shown"]
    typed = np.array([list(shown["x"].values())])
    after = model.predict_proba(typed)[0, 1]
    assert shown["response"]["after"] == pytest.approx(after, rel=1e-12)
    assert after >= 0.8
    assert shown["cost"] == pytest.approx(np.abs(typed[0] - row).sum(), rel=1e-12)
    exact = model.predict_proba([list(told["x"].values())])[0, 1]
    assert told["response"]["after"] == pytest.approx(exact, rel=1e-12)
    assert max(len(text) for text in map(repr, shown["x"].values())) < max(
        len(text) for text in map(repr, told["x"].values())
    )
    assert cf.to_dict()["shown"] is None


# --- parts --------------------------------------------------------------------------------------


def test_changes_list_what_differs_in_the_order_of_the_columns() -> None:
    assert result().changes == (
        Change("income", 2400.0, 2900.0),
        Change("savings", 100.0, 250.0),
    )
    assert [change.difference for change in result().changes] == [500.0, 150.0]
    np.testing.assert_array_equal(result().delta, [500.0, 150.0, 0.0])
    assert np.isnan(infeasible().delta).all()


def test_change_says_its_direction() -> None:
    assert Change("age", 30.0, 29.0).text() == "age were 1 lower (29 instead of 30)"
    assert Change("age", 30.0, 31.0).text() == "age were 1 higher (31 instead of 30)"


def test_status_equals_its_lower_case_name() -> None:
    for status in clvq.Status:
        assert status == status.name.lower()
        assert str(status) == status.name.lower()
    with_answer = {status for status in clvq.Status if status.has_answer}
    assert with_answer == {"optimal", "feasible"}


# --- nobody can change them ---------------------------------------------------------------------


def test_results_are_frozen() -> None:
    cf = clvq.Explainer(LOAN).explain([2400, 100, 30])
    for name in ("x", "cost", "status", "certificate", "conflict"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(cf, name, None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        cf.changes[0].after = 1.0  # type: ignore[misc]


@pytest.mark.parametrize("cost", [clvq.Manhattan(), clvq.Euclidean()], ids=repr)
@pytest.mark.parametrize(
    ("x", "constraints"),
    [
        ([2400, 100, 30], ()),
        ([2400, 100, 30], ["age == original(age)", clvq.Quadratic(np.eye(3), 1e9)]),
        ([3000, 300, 40], ()),
        ([2400, 100, 30], [clvq.Freeze("income", "savings", "age")]),
    ],
    ids=["changed", "by another engine", "unchanged", "infeasible"],
)
def test_arrays_of_results_are_read_only(
    x: list[float], constraints: list[Any], cost: clvq.Cost
) -> None:
    given = np.array(x, dtype=float)
    cf = clvq.Explainer(LOAN, cost, constraints).explain(given, target="accepted")
    for array in (cf.x, cf.original):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    given[0] = 7.0
    assert cf.original[0] != 7.0


def test_pickled_result_reads_the_same() -> None:
    explainer = clvq.Explainer(LOAN, constraints=["age <= original(age) + 5"])
    cf = explainer.explain([2400, 100, 30])
    again = pickle.loads(pickle.dumps(cf))
    assert str(again) == str(cf)
    assert np.array_equal(again.x, cf.x)
    assert explainer.verify(again) == cf.lower_bound


def test_levels_that_look_like_numbers_have_no_distance() -> None:
    features = [clvq.Feature("pay"), clvq.Feature("grade", levels=[0, 2, 4])]
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 4.0]], [0, 1], feature_names=["pay", "grade"])
    one_price = clvq.Manhattan(switches={"grade": 1.0})
    explainer = clvq.Explainer(model, one_price, features=clvq.Features(features))
    (change,) = explainer.explain({"pay": 1.5, "grade": 0}, 1).changes
    assert (change.before, change.after, change.difference) == (0, 4, None)
    assert change.text() == "grade were 4 instead of 0"
    assert change.cells() == ("grade", "0", "4", "")


def test_nothing_proved_is_told_as_such_and_names_a_time_limit() -> None:
    nothing = {"lower_bound": 0.0, "bound_with_margin": 0.0, "gap": 1.0}
    assert "none: a closer one is not ruled out" in str(
        result(status=clvq.Status.FEASIBLE, **nothing)
    )
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 2.0]], ["no", "yes"])
    cf = clvq.Explainer(model, time_limit=0.0).explain([1.0, 0.0], target="yes")
    assert "the time limit was reached" in cf.reason

"""Rows that break the user's own rules, or are right already: told as such, and counted apart."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from sklearn.compose import make_column_transformer
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import counterlvq as clvq
from counterlvq.certificates import check_certificate as exactly
from tests.support.quick import seeds

MODEL = clvq.PrototypeModel(
    [[1000.0, 100.0], [1500.0, 900.0], [5000.0, 0.0]],
    ["bad", "bad", "good"],
    feature_names=["income", "debt"],
)
RULES = ["income <= 3500", "debt <= 500", clvq.Increase("income")]


def broken_by_hand(row: np.ndarray) -> list[object]:
    income, debt = row
    return [RULES[k] for k, broken in enumerate([income > 3500, debt > 500]) if broken]


@pytest.mark.parametrize("seed", range(8))
def test_broken_rules_are_those_that_fail_by_hand(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.uniform(500, 6000, 12), rng.uniform(0, 1000, 12)])
    explainer = clvq.Explainer(MODEL, constraints=RULES)
    batch = explainer.explain_batch(rows, target="good")
    said = MODEL.predict(rows)
    assert batch.has_target.tolist() == (said == "good").tolist()
    assert batch.breaks_rules.tolist() == [bool(broken_by_hand(row)) for row in rows]
    for row, one in zip(rows, batch, strict=True):
        assert list(one.broken) == broken_by_hand(row)
        assert one.has_target == (MODEL.predict(row[None])[0] == "good")


@pytest.mark.parametrize("seed", range(8))
def test_what_the_rules_demand_is_the_closest_row_that_meets_them(seed: int) -> None:
    """Against a linear program written from the rules alone."""
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.1, 5.0, 2)
    row = np.array([rng.uniform(500, 3000), rng.uniform(600, 2000)])
    rules = ["debt <= 500", "income + debt <= 3000"]
    explainer = clvq.Explainer(MODEL, clvq.Manhattan(weights), rules)
    demanded = explainer.explain(row, target="good").within_rules
    assert demanded is not None
    # y = row + up - down, both at least 0
    A = np.array([[0, 1, 0, -1], [1, 1, -1, -1]])
    b = np.array([500 - row[1], 3000 - row.sum()])
    oracle = linprog(np.r_[weights, weights], A_ub=A, b_ub=b)
    assert demanded.cost == pytest.approx(oracle.fun, rel=1e-9)
    assert demanded.lower_bound <= oracle.fun * (1 + 1e-12)


@pytest.mark.parametrize("target", ["bad", "good"])
def test_what_the_rules_demand_is_proved_behind_a_pipeline(target: str) -> None:
    """Whole numbers, so that a value one step too far shows; rows of both labels."""
    rng = np.random.default_rng(3)
    table = pd.DataFrame(
        {"loan": rng.integers(4, 60, 120) * 500, "months": rng.integers(6, 60, 120)}
    )
    table["pay"] = rng.normal(2000.0, 300.0, 120).round(2)
    labels = np.where(table.loan < 12_000 + 3 * (table.pay - 2000), "good", "bad")
    pipeline = make_pipeline(StandardScaler(), clvq.GMLVQ(random_state=0)).fit(table, labels)
    features = clvq.Features.from_frame(table, ranges=None)
    explainer = clvq.Explainer(pipeline, None, ["loan >= 20000"], features=features)
    rows = table[table.loan < 20_000].iloc[:12]
    batch = explainer.explain_batch(rows, target=target)
    for loan, cf in zip(rows.loan, batch, strict=True):
        assert cf.status is clvq.Status.OPTIMAL
        if cf.has_target:
            continue
        demanded = cf.within_rules
        assert demanded is not None
        assert demanded.status is clvq.Status.OPTIMAL
        assert demanded.cost == 20_000 - loan
        told = f"if loan were 20,000 instead of {loan:,}"
        if demanded.prediction == target:
            assert cf.text() == (
                f'This row breaks "loan >= 20000" as it is. It would not, and the answer would '
                f"have been {target}, {told}."
            )
        else:
            assert f" as it is; it would not {told}. " in cf.text()


def test_what_is_not_proved_to_be_demanded_is_told_as_such() -> None:
    cf = clvq.Explainer(MODEL, constraints=RULES[:2]).explain([2000.0, 800.0], target="good")
    assert cf.within_rules is not None
    open_one = replace(cf.within_rules, status=clvq.Status.FEASIBLE)
    text = replace(cf, within_rules=open_one).text()
    assert "; it would not if debt were 300 lower (500 instead of 800), and less may do. " in text


def test_text_separates_rules_from_the_decision() -> None:
    explainer = clvq.Explainer(MODEL, constraints=RULES[:2])
    good = explainer.explain([4000.0, 100.0], target="good").text()
    assert good == (
        'This row breaks "income <= 3500" as it is. The answer is good already; it would meet the '
        "constraints and stay good if income were 500 lower (3,500 instead of 4,000)."
    )
    both = explainer.explain([2000.0, 800.0], target="good").text(subject="Your application")
    assert both.startswith(
        'Your application breaks "debt <= 500" as it is; it would not if debt were 300 lower (500 '
        "instead of 800). It would have been good if "
    )


def test_a_mend_that_is_also_the_answer_is_told_once() -> None:
    model = clvq.PrototypeModel([[0.0], [1000.0]], ["good", "bad"], feature_names=["debt"])
    words = {"subject": "Your application", "outcome": {"good": "accepted"}}
    cf = clvq.Explainer(model, constraints=["debt <= 400"]).explain([900.0], target="good")
    change = "debt were 500 lower (400 instead of 900)"
    assert cf.text(**words) == (
        'Your application breaks "debt <= 400" as it is. It would not, and would have been '
        f"accepted, if {change}."
    )
    assert cf.text(template="{broken} It would be {outcome} if {changes}.", **words) == (
        f'Your application breaks "debt <= 400" as it is. It would be accepted if {change}.'
    )


def test_rows_that_are_right_already_are_not_in_the_means() -> None:
    rows = np.array([[4000.0, 100.0], [2000.0, 100.0], [3400.0, 0.0], [2500.0, 100.0]])
    batch = clvq.Explainer(MODEL).explain_batch(rows, target="good")
    summary = batch.summary()
    assert (summary.already, summary.breaking) == (2, 0)
    assert summary.mean_cost == pytest.approx(batch.cost[[1, 3]].mean())
    assert "have the target already: 2" in str(summary)
    right = batch[batch.has_target].summary()
    assert "mean cost" not in str(right)


def test_ranges_of_features_count_as_rules() -> None:
    features = clvq.Features([clvq.Feature("income", upper=2500), clvq.Feature("debt", lower=0)])
    cf = clvq.Explainer(MODEL, features=features).explain([2600.0, 300.0], target="good")
    assert cf.status is clvq.Status.INFEASIBLE
    assert cf.broken == (clvq.Bounds("income", upper=2500),)
    assert cf.conflict == ()
    assert cf.conflict_ranges == (clvq.Bounds("income", upper=2500), clvq.Bounds("debt", lower=0))
    assert "income of at most 2,500" in cf.text()
    assert cf.to_dict()["conflict_ranges"] == [str(item) for item in cf.conflict_ranges]


@pytest.mark.parametrize("cost", [clvq.Manhattan(), clvq.Euclidean(), clvq.Chebyshev()])
@pytest.mark.parametrize("kind", ["real", "whole", "date"])
def test_ranges_of_features_are_named_where_they_clash(cost: clvq.Cost, kind: str) -> None:
    """A range that was declared is as much a reason as a constraint, and no other one is named."""
    model = clvq.PrototypeModel([[0.0, 0.0], [10.0, 10.0]], ["no", "yes"], None, ["a", "b"])

    def ask(
        lower: float | None, upper: float | None, *constraints: str, most: float = 4
    ) -> clvq.Counterfactual:
        features = [
            clvq.Feature("a", lower=0, upper=most),
            clvq.Feature("b", kind, lower=lower, upper=upper),
        ]
        explainer = clvq.Explainer(model, cost, constraints, features=clvq.Features(features))
        cf = explainer.explain([1, 1], target="yes")
        assert cf.status is clvq.Status.INFEASIBLE
        assert cf.conflict_is_irreducible
        return cf

    first = clvq.Bounds("a", 0, 4)
    assert [item.feature for item in ask(0, 4).conflict_ranges] == ["a", "b"]
    # The range of b has room enough, and is no reason.
    apart = ask(0, 40, "a >= 5")
    assert (apart.conflict, apart.conflict_ranges) == (("a >= 5",), (first,))
    held = ask(None, None, "b <= original(b)")
    assert (held.conflict, held.conflict_ranges) == (("b <= original(b)",), (first,))
    # Constraints that clash by themselves leave ranges out.
    alone = ask(0, 40, "b >= 5", "b <= 3", most=40)
    assert (alone.conflict, alone.conflict_ranges) == (("b >= 5", "b <= 3"), ())


def test_levels_and_whole_numbers_are_told_too() -> None:
    features = clvq.Features(
        [clvq.Feature("income", "whole"), clvq.Feature("debt", levels=[0.0, 100.0, 900.0])]
    )
    explainer = clvq.Explainer(MODEL, constraints=["income <= 3500"], features=features)
    rows = [[4000, 100.0], [2000, 900.0]]
    batch = explainer.explain_batch(rows, target="good")
    assert batch.has_target.tolist() == [True, False]
    assert batch.breaks_rules.tolist() == [True, False]
    assert batch[0].broken == ("income <= 3500",)
    assert batch[0].to_dict()["broken"] == ["income <= 3500"]


def test_value_between_two_steps_breaks_no_rule() -> None:
    features = clvq.Features([clvq.Feature("income", decimals=0), clvq.Feature("debt", step=50)])
    explainer = clvq.Explainer(MODEL, constraints=RULES[:2], features=features)
    rows = [[2000.5, 100.0], [2000.0, 120.0], [2000.5, 620.0]]
    batch = explainer.explain_batch(rows, target="good")
    assert batch.breaks_rules.tolist() == [False, False, True]
    assert [one.broken for one in batch] == [(), (), ("debt <= 500",)]


def test_rule_that_applies_to_some_levels_is_broken_by_those_alone() -> None:
    features = clvq.Features(
        [clvq.Feature("income"), clvq.Feature("debt", levels=[0.0, 100.0, 900.0])]
    )
    rule = "if debt == 900 then income >= 3000"
    explainer = clvq.Explainer(MODEL, constraints=[rule], features=features)
    rows = [[2000.0, 900.0], [2000.0, 100.0], [3200.0, 900.0]]
    batch = explainer.explain_batch(rows, target="good")
    assert batch.breaks_rules.tolist() == [True, False, False]
    assert [one.broken for one in batch] == [(rule,), (), ()]


@pytest.mark.parametrize("cost", [clvq.Manhattan(), clvq.Chebyshev()])
@pytest.mark.parametrize("kind", ["real", "whole", "date"])
@pytest.mark.parametrize(("start", "wish", "ends"), [(1, "yes", (0, 8)), (9, "no", (2, 20))])
def test_ranges_are_named_beside_a_limit_on_how_many_change(
    cost: clvq.Cost, kind: str, start: int, wish: str, ends: tuple[int, int]
) -> None:
    """One feature alone would have to leave its range; that of the third has nothing to do."""
    ends_of_model = [[0.0, 0.0, 0.0], [10.0, 10.0, 0.0]]
    model = clvq.PrototypeModel(ends_of_model, ["no", "yes"], None, ["a", "b", "c"])
    features = [clvq.Feature(name, kind, lower=ends[0], upper=ends[1]) for name in "ab"]
    asked = clvq.Features([*features, clvq.Feature("c", lower=0)])
    constraints = ["c <= 5", clvq.AtMost(1)]
    explainer = clvq.Explainer(model, cost, constraints, features=asked)
    cf = explainer.explain([start, start, 1], target=wish)
    assert cf.status is clvq.Status.INFEASIBLE
    assert cf.conflict == (clvq.AtMost(1),)
    assert [item.feature for item in cf.conflict_ranges] == ["a", "b"]
    assert cf.conflict_is_irreducible


def test_ranges_beside_such_a_limit_are_named_behind_a_pipeline() -> None:
    ends = [-1.0, 0.0, 1.0, 9.0, 10.0, 11.0]
    table = pd.DataFrame({"a": ends, "b": ends, "home": ["rent", "own"] * 3})
    steps = make_column_transformer((StandardScaler(), ["a", "b"]), (OneHotEncoder(), ["home"]))
    pipeline = make_pipeline(steps, NearestCentroid()).fit(table, ["no"] * 3 + ["yes"] * 3)
    features = clvq.Features.from_frame(table, ranges=(0, 8))
    explainer = clvq.Explainer(pipeline, constraints=[clvq.AtMost(1)], features=features)
    cf = explainer.explain(pd.Series({"a": 1.0, "b": 1.0, "home": "rent"}), target="yes")
    assert (cf.status, cf.conflict) == ("infeasible", (clvq.AtMost(1),))
    assert cf.conflict_ranges == (clvq.Bounds("a", 0, 8), clvq.Bounds("b", 0, 8))
    assert '"at most 1 change", "a from 0 to 8" and "b from 0 to 8" leave no room' in cf.text()


@pytest.mark.parametrize("count", [5, 6])
@pytest.mark.parametrize("is_seen", [True, False])
def test_many_ranges_beside_such_a_limit_are_counted(count: int, is_seen: bool) -> None:
    table = pd.DataFrame(np.tile([[0.0], [8.0]], count), columns=list("abcdef"[:count]))
    model = clvq.PrototypeModel(
        [[0.0] * count, [10.0] * count], ["no", "yes"], None, list(table.columns)
    )
    seen = clvq.within_data(table) if is_seen else []
    features = None if is_seen else clvq.Features.from_frame(table, ranges=(0, 8))
    explainer = clvq.Explainer(model, constraints=[clvq.AtMost(1), *seen], features=features)
    cf = explainer.explain([1.0] * count, target="yes")
    assert cf.status == "infeasible"
    assert len(cf.conflict) + len(cf.conflict_ranges) == count + 1  # all are listed
    where = " as in the table" if is_seen else ""
    counted = f'"at most 1 change" and the ranges of {count} features{where} leave no room for it'
    assert (counted in cf.text()) == (count > 5)
    assert ('"a from 0 to 8' in cf.text()) == (count <= 5)


GRIDS = {
    "real": None,
    "whole": clvq.Features(["x0", clvq.Feature("x1", "whole"), "x2"]),
    "decimals": clvq.Features(
        [clvq.Feature("x0", decimals=2), clvq.Feature("x1", decimals=1), "x2"]
    ),
}


def limit_that_is_met_but_for_rounding(seed: int) -> tuple[np.ndarray, str]:
    """A row, and a limit that two of its columns meet in decimals, but not in doubles."""
    rng = np.random.default_rng(seed)
    while True:
        row = np.array([round(rng.normal(0, 3), 2), float(rng.integers(-9, 9)), rng.normal()])
        factors = rng.uniform(0.1, 3.0, 2).round(1)
        limit = float(
            sum(Decimal(str(f)) * Decimal(str(v)) for f, v in zip(factors, row[:2], strict=True))
        )
        terms = [Fraction(f) * Fraction(v) for f, v in zip(factors, row[:2], strict=True)]
        if sum(terms) > Fraction(limit):
            return row, f"{factors[0]} * x0 + {factors[1]} * x1 <= {limit!r}"


@pytest.mark.parametrize("kind", GRIDS)
@pytest.mark.parametrize("seed", seeds(40, quick=6))
def test_limit_that_a_row_meets_but_for_rounding_is_kept(
    kind: str, seed: int, tmp_path: Path
) -> None:
    """Where both columns stay, the rule says nothing: the answers are those without it."""
    row, rule = limit_that_is_met_but_for_rounding(seed)
    rng = np.random.default_rng(seed)
    model = clvq.PrototypeModel(rng.normal(0, 4, (4, 3)).round(1), ["a", "b", "a", "b"])
    for target in ("a", "b"):
        stay = clvq.Freeze("x0", "x1")
        asked = clvq.Explainer(model, constraints=[rule, stay], features=GRIDS[kind])
        without = clvq.Explainer(model, constraints=[stay], features=GRIDS[kind])
        cf, expected = asked.explain(row, target=target), without.explain(row, target=target)
        batch = asked.explain_batch([row], target=target)
        assert (cf.status, cf.broken) == (expected.status, ())
        assert (batch.status[0], batch.breaks_rules[0]) == (expected.status, False)
        if cf.status.has_answer:
            assert cf.cost == pytest.approx(expected.cost, rel=1e-6)
            assert cf.shown.cost <= 1.01 * cf.cost
            asked.ranges(cf)
        clvq.save_certificate(cf, tmp_path / "proof.jsonl", asked)
        told: list[str] = []
        exactly.main([str(tmp_path / "proof.jsonl")], told.append)
        assert told[0].startswith("VERIFIED"), told


@pytest.mark.parametrize("kind", GRIDS)
def test_what_exceeds_a_limit_by_more_than_rounding_breaks_it(kind: str) -> None:
    model = clvq.PrototypeModel([[0.0, 0.0, 0.0], [4.0, 0.0, 0.0]], ["a", "b"])
    rule, row = "0.6 * x1 + x0 <= 2.2", [1.0, 2.0, 0.0]
    for limit, is_broken in ((2.2, False), (2.2 * (1 - 2.0**-48), True)):
        asked = clvq.Explainer(
            model, constraints=[rule.replace("2.2", repr(limit))], features=GRIDS[kind]
        )
        assert bool(asked.explain(row, target="b").broken) is is_broken
        assert asked.explain_batch([row], target="b").breaks_rules.tolist() == [is_broken]


def test_range_that_a_value_exceeds_by_rounding_is_not_named() -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 0.0]], ["a", "b"])
    features = clvq.Features([clvq.Feature("x0", upper=0.3), clvq.Feature("x1", upper=1.0)])
    asked = clvq.Explainer(model, constraints=["x0 <= 9"], features=features)
    row = [0.1 + 0.2, 1.5]
    assert asked.explain(row, target="a").broken == (clvq.Bounds("x1", upper=1.0),)
    assert asked.explain([0.1 + 0.2, 1.0], target="a").broken == ()

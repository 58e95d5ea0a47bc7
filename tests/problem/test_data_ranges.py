"""Ranges as usual in the data, and ways to change: what they forbid, and what they let stay."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

import counterlvq as clvq

MODEL = clvq.PrototypeModel(
    [[0.0, 0.0], [1.0, 4.0], [5.0, 1.0], [6.0, 5.0]],
    ["no", "mid", "yes", "yes"],
    feature_names=["a", "b"],
)
SEEN = {"a": (-1.0, 3.0), "b": (0.0, 2.0)}
ROWS = [[0.0, 0.0], [1.0, 3.0], [-4.0, 1.0], [2.0, 5.0], [0.0, 4.0], [7.0, 7.0]]


def enumerated(row: list[float], target: str, pay: tuple[float, float]) -> float:
    """Cost of the closest whole counterfactual in the widened box, by looking at all of it."""
    ends = [
        (min(low, own), max(high, own)) for (low, high), own in zip(SEEN.values(), row, strict=True)
    ]
    grid = [np.arange(np.ceil(low), np.floor(high) + 1) for low, high in ends]
    costs = [
        sum(w * abs(new - old) for w, new, old in zip(pay, point, row, strict=True))
        for point in product(*grid)
        if MODEL.predict([point])[0] == target
    ]
    return min(costs, default=np.inf)


@pytest.mark.parametrize("target", ["no", "mid", "yes"])
@pytest.mark.parametrize("row", ROWS)
def test_whole_answers_are_those_of_enumeration(row, target) -> None:
    kinds = dict.fromkeys("ab", "whole")
    features = clvq.Features(["a", "b"]).refined(kinds=kinds, seen=SEEN)
    explainer = clvq.Explainer(MODEL, clvq.Manhattan([1.0, 1.5]), features=features)
    cf = explainer.explain(row, target=target)
    best = enumerated(row, target, (1.0, 1.5))
    if np.isinf(best):
        assert cf.status == "infeasible"
        assert cf.conflict
    else:
        assert (cf.status, cf.cost) == ("optimal", pytest.approx(best))


@pytest.mark.parametrize("target", ["no", "mid", "yes"])
def test_rows_of_a_batch_are_those_asked_alone(target) -> None:
    explainer = clvq.Explainer(MODEL, features=clvq.Features(["a", "b"]).refined(seen=SEEN))
    batch = explainer.explain_batch(ROWS, target=target)
    assert {str(status) for status in batch.status} >= {"optimal"}
    for i, row in enumerate(ROWS):
        alone = explainer.explain(row, target=target)
        assert batch[i].status == batch.status[i] == alone.status
        if alone.status.has_answer:
            np.testing.assert_allclose(batch.X[i], alone.x, atol=1e-9)
            assert explainer.verify(alone) == alone.lower_bound
            for value, own, (low, high) in zip(alone.x, row, SEEN.values(), strict=True):
                assert value == own or min(low, own) <= value <= max(high, own)


def test_conflicts_name_what_was_seen_and_which_way_to_go() -> None:
    features = clvq.Features(
        [
            clvq.Feature("a", seen=(-1, 1), label="age"),
            clvq.Feature("b", change="decrease", seen=(0, 900)),
        ]
    )
    cf = clvq.Explainer(MODEL, features=features).explain([0.0, 0.0], target="yes")
    assert cf.status == "infeasible"
    assert "age from -1 to 1 as usual in the data" in cf.text()
    assert cf.to_dict()["conflict"][0] in ("age from -1 to 1 as usual in the data", "Decrease('b')")


def test_ends_that_are_stated_take_the_place_of_those_seen() -> None:
    stated = clvq.Features([clvq.Feature("a", seen=(-1, 1), upper=9), "b"])
    found = clvq.Explainer(MODEL, features=stated)
    assert [str(item) for item in found.constraints] == ["a of at least -1 as usual in the data"]
    assert found.explain([0.0, 0.0], target="yes").status == "optimal"


def test_a_frame_says_which_ranges_were_seen() -> None:
    table = pd.DataFrame({"a": [-1.0, 3.0, 0.0], "b": [0.0, 2.0, None]})
    with pytest.warns(UserWarning, match="missing values: 1 of column 'b', of 3 rows"):
        explainer = clvq.Explainer(MODEL, features=table)
    assert {f.name: f.seen for f in explainer.features} == SEEN
    free = clvq.Explainer(MODEL, features=clvq.Features.from_frame(table, ranges=None))
    assert free.constraints == ()
    one_row = clvq.Explainer(MODEL, features=table.head(1))
    assert one_row.constraints == ()  # of which nobody could say in which range it lies


def test_stated_constraints_are_not_said_twice() -> None:
    features = clvq.Features([clvq.Feature("a", change="freeze"), "b"])
    explainer = clvq.Explainer(MODEL, constraints=[clvq.Freeze("a")], features=features)
    assert explainer.constraints == (clvq.Freeze("a"),)


def test_prices_of_a_feature_count_unless_the_cost_has_its_own() -> None:
    model = clvq.PrototypeModel([[0.0], [2.0]], ["no", "yes"], feature_names=["grade"])
    grade = clvq.Feature("grade", levels=[0, 2], price={(0, 2): 7.0})
    for cost, expected in ((None, 7.0), (clvq.Manhattan(switches={"grade": 3.0}), 3.0)):
        explainer = clvq.Explainer(model, cost, features=clvq.Features([grade]))
        assert explainer.explain([0], target="yes").cost == expected


def test_weights_by_name() -> None:
    by_name = clvq.Explainer(MODEL, clvq.Manhattan({"b": 2.5}))
    by_place = clvq.Explainer(MODEL, clvq.Manhattan([1.0, 2.5]))
    for row in ROWS:
        assert by_name.explain(row).cost == by_place.explain(row).cost
    assert by_name.cost.weights.tolist() == [1.0, 2.5]
    with pytest.raises(clvq.UnknownFeatureError, match=r"'B' does not exist.*mean 'b'"):
        clvq.Explainer(MODEL, clvq.Manhattan({"B": 1.0}))
    with pytest.raises(clvq.InvalidInputError, match=r"weights\['b'\] is 0; expected a positive"):
        clvq.Manhattan({"b": 0})
    with pytest.raises(clvq.InvalidInputError, match="changes came without names"):
        clvq.Manhattan({"b": 1}).value([1.0, 2.0])
    with pytest.raises(clvq.InvalidInputError, match="expected names of features"):
        clvq.Manhattan({0: 1.0})


# --- ranges from a table ------------------------------------------------------------------------

TABLE = np.array([[-1.0, 0.0], [3.0, 2.0], [0.5, 1.0], [1.0, 0.5], [2.0, 1.5]])


@pytest.mark.parametrize("target", ["no", "mid", "yes"])
@pytest.mark.parametrize("row", ROWS)
def test_within_data_is_what_ranges_as_seen_are(row, target) -> None:
    by_features = clvq.Features(["a", "b"]).refined(seen=SEEN)
    told = clvq.Explainer(MODEL, features=by_features).explain(row, target=target)
    for table in (TABLE, pd.DataFrame(TABLE, columns=["a", "b"])):
        asked = clvq.Explainer(MODEL, constraints=clvq.within_data(table))
        cf = asked.explain(row, target=target)
        assert (cf.status, cf.cost) == (told.status, pytest.approx(told.cost))


def test_quantiles_are_values_of_the_table_rounded_outwards() -> None:
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(201, 3)) * [1e-9, 1.0, 1e9]
    for low, high in ((0, 1), (0.1, 0.9), (0.013, 0.5), (0.5, 0.5), (0, 0)):
        for j, item in enumerate(clvq.within_data(rows, quantiles=(low, high))):
            inside = (item.lower <= rows[:, j]) & (rows[:, j] <= item.upper)
            assert {item.lower, item.upper} <= set(rows[:, j].tolist())
            # At most the asked share lies beyond each end, and one row less would be too few.
            assert (rows[:, j] < item.lower).sum() <= low * 200 < (rows[:, j] <= item.lower).sum()
            above = (rows[:, j] > item.upper).sum()
            assert above <= (1 - high) * 200 + 1e-9 < (rows[:, j] >= item.upper).sum()
            assert inside.any()


def test_within_data_passes_over_levels_and_columns_that_the_model_does_not_see() -> None:
    days = pd.to_datetime(["2020-01-01", "2020-03-01", "2020-02-01"])
    table = pd.DataFrame(
        {"a": [0, 3, 1], "job": ["x", "y", "x"], "opened": days, "b": [0.0, 2.0, None]}
    )
    with pytest.warns(UserWarning, match="within_data passes over missing values: 1 of column 'b'"):
        found = clvq.within_data(table)
    assert [str(item) for item in found] == [
        "a from 0 to 3 as in the table",
        "opened from 2020-01-01 to 2020-03-01 as in the table",
        "b from 0 to 2 as in the table",
    ]
    features = clvq.Features(["a", clvq.Feature("b", levels=[0.0, 2.0, 5.0])])
    levels = clvq.Explainer(MODEL, constraints=[found[0], found[2]], features=features)
    assert levels.explain([0.0, 0.0], target="mid").values[1] == 1  # the level 2.0


@pytest.mark.parametrize(
    ("table", "quantiles", "words"),
    [
        (TABLE, (0.9, 0.1), "quantiles is (0.9, 0.1); expected a pair such as (0.01, 0.99), both"),
        (TABLE, (0, 2), "both from 0 to 1"),
        (TABLE, 0.5, "expected a pair"),
        (TABLE, (float("nan"), 1), "quantiles"),
        (pd.DataFrame({"a": ["x", "y"]}), (0, 1), "no column of numbers"),
        (pd.DataFrame({"a": [1.0, np.inf]}), (0, 1), "infinite value in column 'a'"),
        ([[np.nan, 1.0], [np.nan, 2.0]], (0, 1), "no number in column 0"),
        (pd.DataFrame({"a": np.zeros(0)}), (0, 1), "no number in column 'a'"),
    ],
)
def test_within_data_says_what_is_wrong(table, quantiles, words) -> None:
    with pytest.raises(clvq.InvalidInputError) as caught:
        clvq.within_data(table, quantiles)
    assert words in str(caught.value)


def test_a_range_of_an_unknown_column_is_an_error() -> None:
    stranger = clvq.within_data(pd.DataFrame({"c": [1.0, 2.0]}))
    with pytest.raises(clvq.UnknownFeatureError, match="'c' does not exist"):
        clvq.Explainer(MODEL, constraints=stranger)


def test_ranges_that_are_handed_over_win_over_those_of_the_columns() -> None:
    table = pd.DataFrame({"income": np.arange(200.0), "age": np.arange(200.0)})
    points = [[0.0, 0.0], [390.0, 390.0]]
    model = clvq.PrototypeModel(points, ["no", "yes"], feature_names=list(table))
    features = clvq.Features.from_frame(table, ranges="seen")
    wide = clvq.Explainer(model, constraints=clvq.within_data(table), features=features)
    cf = wide.explain([190.0, 0.0], target="yes")
    assert cf.x.max() == 199.0
    assert sorted(item.upper for item in wide.constraints) == [199.0, 199.0]
    by_place = clvq.within_data(table.to_numpy()[:, :1])
    mixed = clvq.Explainer(model, constraints=by_place, features=features)
    assert [item.feature for item in mixed.constraints] == [0, "age"]


def test_ends_of_ranges_are_said_in_few_digits_inside_of_them() -> None:
    drawn = np.random.default_rng(0).normal(size=(50, 4))
    table = drawn * [1e3, 1.0, 1e-6, 1e-3] + [3e3, 0.0, 0.0, 100.0]
    for j, item in enumerate(clvq.within_data(table)):
        words = str(item).removesuffix(" as in the table").split(" from ")[1].split(" to ")
        low, high = (float(word.replace(",", "")) for word in words)
        column = table[:, j]
        assert column.min() <= low < high <= column.max()
        assert low - column.min() + column.max() - high <= 0.001 * np.ptp(column)
        assert all(len(word) <= 14 for word in words)
        assert (item.lower, item.upper) == (column.min(), column.max())
    (typed,) = clvq.within_data([[0.125], [1234567.5]])
    assert str(typed) == "feature 0 from 0.125 to 1,234,567.5 as in the table"


def test_range_of_a_table_is_called_usual_where_rows_lie_beyond_it() -> None:
    """Nine rows lie below it and nine above: it is not all that was seen."""
    table = pd.DataFrame({"age": np.arange(100.0)})
    features = clvq.Features.from_frame(table, decimals=None)
    model = clvq.PrototypeModel([[0.0], [50.0]], ["no", "yes"], feature_names=["age"])
    (said,) = map(str, clvq.Explainer(model, features=features).constraints)
    assert said == "age from 9 to 90 as usual in the data"
    (said,) = map(str, clvq.within_data(table))
    assert said == "age from 0 to 99 as in the table"

"""The summary of a training table: its figures, what it keeps to itself, what follows from it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose

import counterlvq as clvq
from counterlvq.tables.reference import PROBABILITIES

RNG = np.random.default_rng(0)
N = 137
TABLE = {
    "income": RNG.lognormal(7, 1, N),
    "cards": RNG.integers(0, 5, N),
    "pool": np.where(np.arange(N) % 4 == 0, RNG.uniform(1, 9, N), 0.0),
    "still": np.full(N, 3.0),
    "job": ["clerk", "nurse", "judge"] * (N // 3) + ["clerk"] * (N % 3),
    "owner": [True, False, False] * (N // 3) + [True] * (N % 3),
}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_figures_are_those_of_numpy(make) -> None:
    found = clvq.Reference.of(make(TABLE))
    for name in ("income", "cards", "pool"):
        values = np.asarray(TABLE[name], dtype=float)
        column = found[name]
        spread = np.abs(values - np.median(values))
        assert (column.count, column.missing) == (N, 0)
        assert_allclose(
            [column.median, column.mad, column.deviation],
            [np.median(values), np.median(spread), values.std()],
        )
        inner = np.quantile(values, PROBABILITIES[3:-3])
        gap = np.diff(np.sort(values)).max()
        assert_allclose(column.quantiles[3:-3], inner, atol=gap)
    assert dict(found["owner"].shares) == {False: 90 / N, True: 47 / N}
    assert [str(column.kind) for column in found.columns] == [
        "real", "whole", "real", "real", "categorical", "boolean",
    ]  # fmt: skip


@pytest.mark.parametrize("n", [20, 21, 40, 1500])
def test_at_least_ten_rows_lie_at_or_beyond_every_quantile(n: int) -> None:
    values = np.random.default_rng(n).permutation(n) * 1.0
    (column,) = clvq.Reference.of(values[:, None]).columns
    for quantile in column.quantiles:
        assert min((values <= quantile).sum(), (values >= quantile).sum()) >= 10
    assert column.seen == (9.0, n - 10.0)
    assert list(column.quantiles) == sorted(column.quantiles)


def test_few_rows_have_no_range() -> None:
    (column,) = clvq.Reference.of(np.arange(19.0)[:, None]).columns
    assert (column.quantiles, column.seen) == ((), None)
    features = clvq.Features(["x0"])
    assert clvq.Reference((column,)).described(features) == features


def test_weights_fall_back_from_mad_to_deviation_to_one() -> None:
    found = clvq.Reference.of(pd.DataFrame(TABLE))
    features = clvq.Features.from_frame(pd.DataFrame(TABLE), ranges=None)
    pool = np.asarray(TABLE["pool"])
    mads = [np.median(np.abs(TABLE[k] - np.median(TABLE[k]))) for k in ("income", "cards")]
    expected = [1 / mads[0], 1 / mads[1], 1 / pool.std(), 1.0, 2.0, 2.0]
    assert_allclose(found.weights(features), expected)


def test_missing_values_are_passed_over_and_counted() -> None:
    table = pd.DataFrame({"age": [1.0, None, 3.0, 5.0], "job": ["a", None, "b", "b"]})
    found = clvq.Reference.of(table)
    assert (found["age"].median, found["age"].missing) == (3.0, 1)
    assert (found["job"].shares, found["job"].missing) == ((("a", 1 / 3), ("b", 2 / 3)), 1)


def test_a_table_that_does_not_fit_is_refused() -> None:
    features = clvq.Features([clvq.Feature("job", levels=["a"])])
    with pytest.raises(clvq.InvalidInputError, match="'b', which is no level of it"):
        clvq.Reference.of(pd.DataFrame({"job": ["a", "b"]}), features)
    with pytest.raises(clvq.InvalidInputError, match="lacks the column 'job'"):
        clvq.Reference.of(pd.DataFrame({"jobs": ["a"]}), features)
    with pytest.raises(clvq.InvalidInputError, match="reference has 2 columns; expected 1"):
        clvq.Reference.of([[1.0, 2.0]], clvq.Features(["a"]))


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"label": 3}, "has the label 3; expected a string"),
        ({"true": "with"}, "is real and has words for true or false"),
        ({"kind": "boolean", "level_labels": {"no": "x"}}, "label for 'no', which is no level"),
        ({"change": "up"}, "change='up'; expected one of: 'any', 'increase'"),
        ({"kind": "boolean", "change": "increase"}, "expected one of: 'any', 'freeze'"),
        ({"price": 2.0}, "is a number and has a price of switches"),
        ({"kind": "boolean", "price": -1}, "price is -1; expected a positive number"),
        ({"levels": ["a"], "price": {("a", "b"): 1}}, "names 'b', which is no level"),
        ({"levels": ["a"], "price": {"a": 1}}, "expected a pair of levels"),
        ({"seen": (2, 1)}, "expected the lower end first"),
        ({"seen": 3}, "expected a pair"),
        ({"kind": "boolean", "seen": (0, 1)}, "for a feature that is a number"),
    ],
)
def test_what_cannot_be_said_of_a_feature_is_refused(said, words) -> None:
    with pytest.raises(clvq.InvalidInputError, match=words):
        clvq.Feature("f", **said)


def test_what_is_said_of_a_feature_stays_when_more_is_said() -> None:
    features = clvq.Features(
        [
            clvq.Feature("pay", label="net pay", change="increase", seen=(1, 9)),
            clvq.Feature("home", levels=["a", "b"], level_labels={"a": "one"}, price=2),
        ]
    )
    more = features.refined(units={"pay": "EUR", "home": "-"}, labels={"home": "housing"})
    assert more["pay"] == clvq.Feature(
        "pay", unit="EUR", label="net pay", change="increase", seen=(1, 9)
    )
    assert repr(more["home"]) == (
        "Feature('home', levels=['a', 'b'], unit='-', label='housing', "
        "level_labels={'a': 'one'}, price=2.0)"
    )
    assert features.refined(levels={"home": ["b"]})["home"] == clvq.Feature("home", levels=["b"])

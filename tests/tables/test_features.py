"""What can be said about columns, and what is read off a DataFrame."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import counterlvq as clvq
from counterlvq.types import Kind


def test_a_name_alone_is_a_real_number() -> None:
    (feature,) = clvq.Features(["age"])
    assert feature == clvq.Feature("age", "real")
    assert (feature.lower, feature.upper, feature.unit, feature.decimals) == (-inf, inf, "", None)
    assert feature.levels == ()
    assert feature.grid is None


@pytest.mark.parametrize(
    ("feature", "kind", "grid"),
    [
        (clvq.Feature("f", step=5), "whole", 5.0),
        (clvq.Feature("f", step=0.5), "real", 0.5),
        (clvq.Feature("f", "real", step=2.50), "real", 2.5),
        (clvq.Feature("f", "whole", lower=3), "whole", 1.0),
        (clvq.Feature("f", levels=["a"]), "categorical", None),
        (clvq.Feature("f", Kind.BOOLEAN), "boolean", None),
        (clvq.Feature("f", decimals=2), "real", 0.01),
        (clvq.Feature("f", decimals=0), "real", 1.0),
    ],
)
def test_kind_and_grid(feature: clvq.Feature, kind: str, grid: float | None) -> None:
    assert feature.kind == kind
    assert feature.grid == grid
    assert feature.is_number == (kind in ("real", "whole"))


def test_codes_are_positions_among_levels() -> None:
    feature = clvq.Feature("rank", levels=np.array([10, 20, 40]))
    assert [feature.code(value) for value in (40, 10.0, "10", [10], None)] == [2, 0, -1, -1, -1]
    assert all(type(level) is int for level in feature.levels)
    assert clvq.Feature("member", "boolean").code(True) == 1


@pytest.mark.parametrize(
    "text",
    [
        "Feature('age', 'whole')",
        "Feature('income', unit='EUR', lower=0, upper=1000000.0, decimals=2)",
        "Feature('rooms', step=5, upper=100)",
        "Feature('job', levels=['clerk', 'nurse'])",
        "Feature('member', 'boolean')",
        "Features(['age', Feature('rank', levels=[1, 2])])",
    ],
)
def test_printed_features_can_be_read_again(text: str) -> None:
    names: dict[str, Any] = {"Feature": clvq.Feature, "Features": clvq.Features}
    made = eval(text, names)
    assert repr(made) == text
    assert eval(repr(made), names) == made
    assert pickle.loads(pickle.dumps(made)) == made
    assert hash(made) == hash(eval(text, names))


@pytest.mark.parametrize(
    "way", [lambda made: pickle.loads(pickle.dumps(made)), copy.copy, copy.deepcopy]
)
@given(
    levels=st.lists(
        st.one_of(
            st.integers(-(2**70), 2**70), st.booleans(), st.text(max_size=3),
            st.floats(allow_nan=False, allow_infinity=False),
        ),
        min_size=1, max_size=6, unique=True,
    )
)  # fmt: skip
def test_a_copy_of_a_feature_in_use_knows_its_levels(
    way: Callable[[clvq.Feature], clvq.Feature], levels: list[Any]
) -> None:
    """Which are unique in a set of Python's, that is, however their types differ."""
    used = clvq.Feature("f", "categorical", levels=levels)
    assert [used.code(level) for level in levels] == list(range(len(levels)))
    again = way(used)
    assert [again.code(level) for level in levels] == list(range(len(levels)))
    assert again.code("no such level") == -1
    assert again == used


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "name": ({"name": 3}, "a feature is named 3 of type int; expected a string."),
    "kind": ({"kind": "number"}, "feature 'f' has the kind 'number'; expected one of: 'real', "),
    "no levels": ({"kind": "categorical"}, "feature 'f' is categorical and its levels are None"),
    "text as levels": ({"levels": "abc"}, "its levels are 'abc'; expected a list of them"),
    "empty levels": ({"levels": []}, "feature 'f' has no levels; expected at least one."),
    "level twice": ({"levels": [1, True]}, "feature 'f' has the level 1 twice"),
    "missing level": ({"levels": ["a", None]}, "feature 'f' has the level None; expected"),
    "list as level": ({"levels": [["a"]]}, "feature 'f' has the level ['a']; expected"),
    "levels of a number": (
        {"kind": "real", "levels": ["a"]},
        "feature 'f' is real and has levels; expected them for the kind 'categorical' only.",
    ),
    "step of a boolean": (
        {"kind": "boolean", "step": 2},
        "feature 'f' is boolean and has a step; expected one for numbers and dates only.",
    ),
    "step and decimals": (
        {"kind": "real", "step": 2, "decimals": 1},
        "feature 'f' has the step 2 and decimals=1; expected one of them.",
    ),
    "half a whole step": (
        {"kind": "whole", "step": 0.5},
        "feature 'f' is whole and has the step 0.5; expected a whole number of at least 1. Steps "
        "that are parts of 1 are for the kind 'real'.",
    ),
    "a third": (
        {"step": 1 / 3},
        "feature 'f' has the step 0.3333333333333333; expected a positive number of at most 12 "
        "decimals, such as 0.5.",
    ),
    "no step": ({"step": 0}, "feature 'f' is whole and has the step 0; expected a whole number"),
    "phrases without words": (
        {"levels": ["no", "yes"], "level_labels": {"yes": "with one"}, "phrases": True},
        "feature 'f' is to speak in phrases and lacks some; expected level_labels with one ",
    ),
    "unit": ({"unit": 3}, "feature 'f' has the unit 3; expected a string."),
    "decimals of a whole": (
        {"kind": "whole", "decimals": 2},
        "feature 'f' is whole and has decimals; expected them for the kind 'real' only.",
    ),
    "decimals": ({"decimals": -1}, "feature 'f' has decimals=-1; expected a whole number from 0"),
    "range": ({"lower": 3, "upper": 2}, "feature 'f': the range [3, 2] holds no finite number"),
    "text in range": ({"lower": "low"}, "feature 'f': lower is 'low'; expected a number."),
    "NaN in range": ({"upper": np.nan}, "feature 'f': upper is NaN; expected a number."),
    "range of levels": (
        {"levels": [1, 2], "lower": 0},
        "feature 'f' is categorical and has a range; expected one for numbers only.",
    ),
    "no grid point": (
        {"step": 10, "lower": 11, "upper": 19},
        "feature 'f': the range [11, 19] holds no multiple of 10; expected room for one.",
    ),
    "no decimal": (
        {"decimals": 1, "lower": 0.31, "upper": 0.39},
        "feature 'f': the range [0.31, 0.39] holds no multiple of 0.1; expected room for one.",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_contradiction_is_refused_in_words(name: str) -> None:
    said, message = BAD[name]
    with pytest.raises(clvq.InvalidInputError) as raised:
        clvq.Feature(**{"name": "f", **said})
    assert message in str(raised.value)


def test_range_of_a_single_decimal_is_room_enough() -> None:
    assert clvq.Feature("f", decimals=1, lower=0.3, upper=0.3).grid == 0.1


# --- more said later ----------------------------------------------------------------------------


def test_refined_says_more() -> None:
    features = clvq.Features(["age", "income", "job"]).refined(
        kinds={"age": "whole"},
        levels={"job": ["a", "b"]},
        units={"income": "EUR"},
        ranges={"age": (0, 120), "income": (0, inf)},
        decimals={"income": 2},
    )
    assert features["age"] == clvq.Feature("age", "whole", lower=0, upper=120)
    assert features["income"] == clvq.Feature("income", unit="EUR", lower=0, decimals=2)
    assert features[2] == clvq.Feature("job", levels=["a", "b"])


def test_refined_keeps_what_still_makes_sense() -> None:
    features = clvq.Features(
        [clvq.Feature("a", lower=0, decimals=2, unit="m"), clvq.Feature("b", step=5, lower=0)]
    )
    changed = features.refined(kinds={"a": "whole"}, ranges={"b": (-5, 5)})
    assert changed["a"] == clvq.Feature("a", "whole", lower=0, unit="m")
    assert changed["b"] == clvq.Feature("b", step=5, lower=-5, upper=5)
    assert changed.refined(steps={"a": 3})["a"] == clvq.Feature("a", step=3, lower=0, unit="m")
    assert features.refined() == features


def test_refined_names_what_it_does_not_know() -> None:
    features = clvq.Features(["age"])
    with pytest.raises(clvq.UnknownFeatureError, match="feature 'agee' does not exist"):
        features.refined(units={"agee": "years"})
    with pytest.raises(clvq.InvalidInputError, match=r"the range of 'age' is 3; expected a pair"):
        features.refined(ranges={"age": 3})


# --- from a frame -------------------------------------------------------------------------------

COLUMNS: dict[str, list[Any]] = {
    "real": [1.5, 2.5, 3.5],
    "whole": [1, 2, 3],
    "flag": [True, False, True],
    "text": ["b", "a", "b"],
}
EXPECTED = clvq.Features(
    [
        "real",
        clvq.Feature("whole", "whole"),
        clvq.Feature("flag", "boolean"),
        clvq.Feature("text", levels=["a", "b"]),
    ]
)


def test_a_copy_in_another_process_knows_its_levels() -> None:
    feature = clvq.Feature("term", levels=[24, 36.5, True, "other"])
    codes = [feature.code(level) for level in feature.levels]
    copied = pickle.loads(pickle.dumps(feature))
    assert [copied.code(level) for level in feature.levels] == codes == [0, 1, 2, 3]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_kinds_are_read_off_dtypes(make: Any) -> None:
    assert clvq.Features.from_frame(make(COLUMNS), ranges=None) == EXPECTED


def test_declared_levels_keep_their_order() -> None:
    levels = ["poor", "fair", "good"]
    pandas = pd.DataFrame({"q": pd.Categorical(["good"], levels, ordered=True)})
    polars = pl.DataFrame({"q": ["good"]}, schema={"q": pl.Enum(levels)})
    for frame in (pandas, polars):
        assert clvq.Features.from_frame(frame)["q"].levels == ("poor", "fair", "good")
    loose = pl.DataFrame({"q": ["good", "fair", None]}, schema={"q": pl.Categorical})
    assert clvq.Features.from_frame(loose, ranges=None)["q"].levels == ("fair", "good")


PANDAS_DTYPES: list[tuple[Any, str]] = [
    ("float32", "real"),
    ("Float64", "real"),
    ("int8", "whole"),
    ("uint16", "whole"),
    ("Int64", "whole"),
    ("object", "whole"),
]


@pytest.mark.parametrize(("dtype", "kind"), PANDAS_DTYPES)
def test_pandas_dtypes(dtype: Any, kind: str) -> None:
    frame = pd.DataFrame({"f": pd.Series([1, 2], dtype=dtype)})
    assert clvq.Features.from_frame(frame)["f"].kind == kind


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([True, None], "boolean"),
        ([1, None], "whole"),
        ([1, 2.5], "real"),
        (["a", 3, None], "categorical"),
    ],
)
def test_columns_of_objects_are_judged_by_their_values(values: list[Any], kind: str) -> None:
    frame = pd.DataFrame({"f": pd.Series(values, dtype=object)})
    assert clvq.Features.from_frame(frame, ranges=None)["f"].kind == kind


def test_nullable_booleans_and_text() -> None:
    frame = pd.DataFrame(
        {"b": pd.array([True, None], dtype="boolean"), "s": pd.array(["x", None], dtype="string")}
    )
    assert [feature.kind for feature in clvq.Features.from_frame(frame, ranges=None)] == [
        "boolean",
        "categorical",
    ]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_more_is_said_about_a_frame(make: Any) -> None:
    features = clvq.Features.from_frame(
        make(COLUMNS),
        only=["text", "whole", "real"],
        kinds={"whole": "categorical"},
        levels={"text": ["z", "b", "a"]},
        units={"real": "m"},
        decimals={"real": 1},
    )
    assert features == clvq.Features(
        [
            clvq.Feature("text", levels=["z", "b", "a"]),
            clvq.Feature("whole", levels=[1, 2, 3]),
            clvq.Feature("real", unit="m", decimals=1, seen=(1.5, 3.5)),
        ]
    )


def test_times_are_refused_unless_left_out() -> None:
    frame = pd.DataFrame({"when": pd.to_timedelta(["1 day"]), "age": [3]})
    with pytest.raises(clvq.NotSupportedError, match=r"column 'when' has the dtype timedelta64"):
        clvq.Features.from_frame(frame)
    assert clvq.Features.from_frame(frame, only=["age"]).names == ("age",)
    with pytest.raises(clvq.NotSupportedError, match="column 'when' has the dtype Time"):
        clvq.Features.from_frame(pl.DataFrame({"when": [None]}, schema={"when": pl.Time}))


BAD_FRAMES: dict[str, tuple[Any, dict[str, Any], type[Exception], str]] = {
    "array": (np.eye(2), {}, clvq.NotSupportedError, "the table is a ndarray; expected a DataF"),
    "lazy": (
        pl.DataFrame({"a": [1]}).lazy(),
        {},
        clvq.NotSupportedError,
        "the table is a polars LazyFrame; expected a DataFrame. Call its `collect()` first.",
    ),
    "numbers as names": (
        pd.DataFrame([[1.0]]),
        {},
        clvq.InvalidInputError,
        "the table has a column named 0 of type int; expected names that are strings.",
    ),
    "name twice": (
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        {},
        clvq.InvalidInputError,
        "the table has two columns named 'a'; expected one of each name.",
    ),
    "unknown column": (
        pd.DataFrame({"age": [1]}),
        {"only": ["agee"]},
        clvq.UnknownFeatureError,
        "feature 'agee' does not exist; expected one of: age. Did you mean 'age'?",
    ),
    "unknown kind": (
        pd.DataFrame({"age": [1]}),
        {"kinds": {"agee": "real"}},
        clvq.UnknownFeatureError,
        "feature 'agee' does not exist",
    ),
    "nothing in it": (
        pd.DataFrame({"a": pd.Series([None, None], dtype=object)}),
        {},
        clvq.NotSupportedError,
        "column 'a' has the dtype object and cannot be read as numbers, booleans, dates or levels",
    ),
}


@pytest.mark.parametrize("name", BAD_FRAMES)
def test_unusable_frame_is_refused_in_words(name: str) -> None:
    frame, said, kind, message = BAD_FRAMES[name]
    with pytest.raises(kind) as raised:
        clvq.Features.from_frame(frame, **said)
    assert message in str(raised.value)


def test_one_pair_is_the_range_of_every_column_of_numbers() -> None:
    table = pd.DataFrame({"pay": [1.5, 2.5], "cards": [1, 2], "job": ["a", "b"]})
    for features in (
        clvq.Features.from_frame(table, ranges=(0, None)),
        clvq.Features.from_frame(table, ranges=None).refined(ranges=(0, None)),
    ):
        assert [(f.lower, f.upper) for f in features if f.is_number] == [(0, inf), (0, inf)]
        assert all(feature.seen is None for feature in features)


@pytest.mark.parametrize(
    "said",
    [
        {"ranges": [(0, None), (0, 9)]},
        {"ranges": (0, 1, 2)},
        {"units": "EUR"},
        {"decimals": 2},
        {"kinds": ["real", "whole"]},
        {"levels": ["a", "b"]},
        {"steps": 5},
        {"labels": "Pay"},
    ],
)
def test_what_is_said_of_columns_goes_by_name(said: dict[str, Any]) -> None:
    table = pd.DataFrame({"pay": [1.5, 2.5], "cards": [1, 2]})
    (argument,) = said
    words = rf"{argument} is .*; expected a mapping from the name .* Write {argument}="
    for ask in (
        lambda: clvq.Features.from_frame(table, **said),
        lambda: clvq.Features(["pay", "cards"]).refined(**said),
    ):
        with pytest.raises(clvq.InvalidInputError, match=words):
            ask()


def test_missing_values_of_every_kind_are_counted_where_the_caller_is() -> None:
    table = pd.DataFrame(
        {"n": [1.0, np.nan, 3.0], "job": ["a", None, "b"], "own": [True, None, None]}
    )
    listed = "1 of column 'n', 1 of column 'job', 2 of column 'own', of 3 rows"
    for ask in (clvq.Features.from_frame, clvq.mad_weights):
        with pytest.warns(UserWarning, match=listed) as told:
            ask(table)
        assert [one.filename for one in told] == [__file__]
    with pytest.warns(UserWarning, match="1 of column 0 of X") as told:
        clvq.mad_weights([[1.0], [np.nan], [3.0]])
    assert [one.filename for one in told] == [__file__]


def test_ends_of_a_range_may_be_whole_numbers_of_any_length() -> None:
    feature = clvq.Feature("b", lower=-(2**70), upper=2**64)
    model = clvq.PrototypeModel([[2.0, 3.0], [4.0, 2.0]], ["no", "yes"], feature_names=["a", "b"])
    explainer = clvq.Explainer(model, features=clvq.Features(["a", feature]))
    assert explainer.explain([2.0, 3.0], "yes").status == "optimal"
    assert feature.upper == 2.0**64

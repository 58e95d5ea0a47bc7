"""What has names is read by name, whatever the order of its columns; or it is refused in words."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import counterlvq as clvq
from counterlvq.numeric.arrays import has_names
from counterlvq.tables.encoding import like, rows_of

NAMES = ("a", "b", "c")
ROWS = [[0.5, 1.25, -3.0], [2.0, 0.125, 7.5], [-1.0, 4.0, 0.25]]
ORDERS = [("a", "b", "c"), ("c", "a", "b"), ("b", "id", "c", "a")]
MODEL = clvq.PrototypeModel(
    [[0.0, 0.0, 0.0], [1.0, -2.0, 4.0], [3.0, 5.0, -1.0]], ["x", "y", "z"], feature_names=NAMES
)


def columns(order: tuple[str, ...]) -> dict[str, list[Any]]:
    """The rows above by column, in an order of the user's own; `id` is of no interest."""
    by_name = dict(zip(NAMES, map(list, zip(*ROWS, strict=True)), strict=True))
    by_name["id"] = ["p", "q", "r"]
    return {name: by_name[name] for name in order}


def records(order: tuple[str, ...]) -> list[dict[str, Any]]:
    by_name = columns(order)
    return [{name: by_name[name][i] for name in order} for i in range(len(ROWS))]


class Spoken:
    """A table of some other library, which speaks one protocol and nothing else."""

    def __init__(self, table: pa.Table, protocol: str) -> None:
        self.table = table
        self.__class__ = type("Spoken", (Spoken,), {protocol: getattr(table, protocol)})

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        return np.asarray(self.table)  # by position: the trap


def sqlite_rows(order: tuple[str, ...]) -> list[sqlite3.Row]:
    with sqlite3.connect(":memory:") as connection:
        connection.row_factory = sqlite3.Row
        connection.execute(f"create table t ({', '.join(order)})")
        marks = ", ".join("?" * len(order))
        values = [tuple(record.values()) for record in records(order)]
        connection.executemany(f"insert into t values ({marks})", values)
        return connection.execute("select * from t").fetchall()


def structured(order: tuple[str, ...]) -> np.ndarray:
    types = [(name, "U1" if name == "id" else float) for name in order]
    return np.array([tuple(record.values()) for record in records(order)], dtype=types)


def named_tuples(order: tuple[str, ...]) -> list[Any]:
    kind = namedtuple("House", order)  # type: ignore[misc]
    return [kind(**record) for record in records(order)]


TABLES: dict[str, Callable[[tuple[str, ...]], Any]] = {
    "pandas": lambda order: pd.DataFrame(columns(order)),
    "polars": lambda order: pl.DataFrame(columns(order)),
    "polars structs": lambda order: pl.DataFrame(columns(order)).to_struct("house"),
    "arrow table": lambda order: pa.table(columns(order)),
    "arrow batch": lambda order: pa.record_batch(columns(order)),
    "arrow chunks": lambda order: pa.concat_tables(
        [pa.table(columns(order)).slice(0, 2), pa.table(columns(order)).slice(2)]
    ),
    "arrow structs": lambda order: pa.table(columns(order)).to_struct_array(),
    "arrow stream": lambda order: Spoken(pa.table(columns(order)), "__arrow_c_stream__"),
    "interchange": lambda order: Spoken(pa.table(columns(order)), "__dataframe__"),
    "structured array": structured,
    "record array": lambda order: structured(order).view(np.recarray),
    "dict of lists": columns,
    "dict of arrays": lambda order: {k: np.array(v) for k, v in columns(order).items()},
    "list of dicts": records,
    "tuple of dicts": lambda order: tuple(records(order)),
    "list of mappings": lambda order: [OrderedDict(record) for record in records(order)],
    "list of named tuples": named_tuples,
    "list of series": lambda order: [pd.Series(record) for record in records(order)],
    "rows of sqlite": sqlite_rows,
    "rows of frame tuples": lambda order: [*pd.DataFrame(columns(order)).itertuples()],
    "arrow scalars": lambda order: [*pa.table(columns(order)).to_struct_array().combine_chunks()],
}
each_table = pytest.mark.parametrize("kind", TABLES)
each_order = pytest.mark.parametrize("order", ORDERS, ids="".join)


@each_order
@each_table
def test_columns_are_found_by_name(kind: str, order: tuple[str, ...]) -> None:
    table = TABLES[kind](order)
    assert has_names(table)
    assert np.array_equal(rows_of(table, clvq.Features(NAMES)), ROWS)
    assert MODEL.predict(table).tolist() == MODEL.predict(ROWS).tolist()


@each_order
@each_table
def test_answers_do_not_depend_on_the_order_of_columns(kind: str, order: tuple[str, ...]) -> None:
    explainer = clvq.Explainer(MODEL)
    expected = explainer.explain_batch(ROWS)
    batch = explainer.explain_batch(TABLES[kind](order))
    assert np.array_equal(batch.original_values, ROWS)
    assert np.array_equal(batch.cost, expected.cost)
    assert np.array_equal(rows_of(batch.X, clvq.Features(NAMES)), expected.X)
    assert np.array_equal(rows_of(batch.original, clvq.Features(NAMES)), ROWS)
    some = batch[[2, 0]]
    assert np.array_equal(rows_of(some.X, clvq.Features(NAMES)), expected.X[[2, 0]])
    assert np.array_equal(rows_of(batch[1].row, clvq.Features(NAMES)), expected.X[[1]])


# What comes back, where that is not the very same type.
BACK = {
    "polars structs": pl.DataFrame,
    "arrow structs": pa.Table,
    "arrow chunks": pa.Table,
    "arrow stream": pa.Table,
    "interchange": pa.Table,
    "tuple of dicts": list,
}


@each_table
def test_answers_come_back_in_a_table_of_the_same_kind(kind: str) -> None:
    table = TABLES[kind](ORDERS[2])
    batch = clvq.Explainer(MODEL).explain_batch(table)
    assert type(batch.X) is BACK.get(kind, type(table))
    if isinstance(batch.X, list):
        mappings = ("rows of sqlite", "list of mappings", "arrow scalars")
        expected = dict if kind in mappings else type(table[0])
        assert {type(record) for record in batch.X} == {expected}


def one_row(kind: str, order: tuple[str, ...]) -> Any:
    return {
        "mapping": lambda: records(order)[1],
        "named tuple": lambda: named_tuples(order)[1],
        "series": lambda: pd.Series(records(order)[1]),
        "row of sqlite": lambda: sqlite_rows(order)[1],
        "row of a structured array": lambda: structured(order)[1],
        "frame of one row": lambda: pd.DataFrame(columns(order)).iloc[[1]],
        "arrow table of one row": lambda: pa.table(columns(order)).slice(1, 1),
        "arrow scalar": lambda: pa.table(columns(order)).to_struct_array()[1],
    }[kind]()


@pytest.mark.parametrize("order", ORDERS[:2], ids="".join)
@pytest.mark.parametrize(
    "kind",
    [
        "mapping", "named tuple", "series", "row of sqlite", "row of a structured array",
        "frame of one row", "arrow table of one row", "arrow scalar",
    ],
)  # fmt: skip
def test_one_row_is_read_by_name(kind: str, order: tuple[str, ...]) -> None:
    explainer = clvq.Explainer(MODEL)
    expected, answer = explainer.explain(ROWS[1]), explainer.explain(one_row(kind, order))
    assert answer.cost == expected.cost
    assert np.array_equal(answer.x, expected.x)
    assert np.array_equal(rows_of(answer.row, clvq.Features(NAMES)), [expected.x])


# --- Arrow there and back -----------------------------------------------------------------------

MIXED = clvq.Features(
    [
        "income",
        clvq.Feature("cards", "whole"),
        clvq.Feature("job", levels=["clerk", "nurse", "pilot"]),
        clvq.Feature("member", "boolean"),
    ]
)
INSIDE = np.array([[2400.5, 2.0, 1.0, 1.0], [100.0, 0.0, 0.0, 0.0]])
CHANGED = np.array([[2900.125, 3.0, 2.0, 0.0], [101.0, 1.0, 1.0, 1.0]])


def arrow(**types: pa.DataType) -> pa.Table:
    job, cards = types.get("job", pa.string()), types.get("cards", pa.int64())
    income, member = types.get("income", pa.float64()), types.get("member", pa.bool_())
    fields = [("id", pa.string()), ("job", job), ("member", member), ("cards", cards),
              ("income", income)]  # fmt: skip
    data = {
        "id": ["p0", "p1"],
        "job": ["nurse", "clerk"],
        "member": [1, 0] if pa.types.is_integer(member) else [True, False],
        "cards": [2, 0],
        "income": [2400.5, 100.0],
    }
    return pa.table(data, schema=pa.schema(fields, metadata={"from": "somewhere"}))


@pytest.mark.parametrize(
    "table",
    [
        arrow(),
        arrow(job=pa.large_string()),
        arrow(job=pa.dictionary(pa.int8(), pa.string())),
        arrow(cards=pa.uint8()),
        arrow(cards=pa.float32()),
        arrow(member=pa.int16()),
        arrow(income=pa.float32()),
    ],
    ids=lambda table: str([str(kind) for kind in table.schema.types]),
)
@pytest.mark.parametrize("as_batch", [False, True], ids=["table", "batch"])
def test_arrow_there_and_back(table: pa.Table, as_batch: bool) -> None:
    given = table.combine_chunks().to_batches()[0] if as_batch else table
    assert np.array_equal(rows_of(given, MIXED), INSIDE)
    back = like(given, CHANGED, MIXED)
    assert type(back) is type(given)
    assert np.array_equal(rows_of(back, MIXED), CHANGED)
    assert back.schema.names == table.schema.names
    assert back.schema.metadata == table.schema.metadata
    assert back["id"].to_pylist() == ["p0", "p1"]
    for name in ("id", "job", "member", "cards"):
        assert back.schema.field(name).type == table.schema.field(name).type, name
    assert back.schema.field("income").type == pa.float64()


def test_arrow_types_describe_features() -> None:
    table = arrow(job=pa.dictionary(pa.int8(), pa.string()))
    found = clvq.Features.from_frame(table, only=MIXED.names)
    assert [feature.kind for feature in found] == [feature.kind for feature in MIXED]
    assert found["job"].levels == ("nurse", "clerk")
    assert np.array_equal(
        clvq.mad_weights(table.select(["income"])), clvq.mad_weights([[2400.5], [100.0]])
    )


def test_arrow_leaves_gaps_and_makes_room() -> None:
    table = arrow(cards=pa.uint8(), job=pa.dictionary(pa.int8(), pa.string()))
    back = like(table, [[np.nan] * 4, [101.0, 300.0, 2.0, 1.0]], MIXED)
    assert back.select(MIXED.names).to_pylist() == [
        dict.fromkeys(MIXED.names),
        {"income": 101.0, "cards": 300, "job": "pilot", "member": True},
    ]


# --- refused in words ---------------------------------------------------------------------------


class Labelled:
    """As xarray has them: an array that knows what its columns are called."""

    coords = NAMES

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        return np.array(ROWS)


def unread() -> Iterator[Any]:
    table = pa.table(columns(NAMES))
    yield pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    yield ds.dataset(table)
    yield ds.dataset(table).scanner()
    yield pl.DataFrame(columns(NAMES)).lazy()
    yield Labelled()


@pytest.mark.parametrize("table", [*unread()], ids=lambda table: type(table).__name__)
def test_what_cannot_be_read_by_name_is_refused(table: Any) -> None:
    for ask in (clvq.Explainer(MODEL).explain_batch, MODEL.predict):
        with pytest.raises(clvq.NotSupportedError, match=r"the table is a .* expected a"):
            ask(table)


@each_table
def test_numbers_in_order_are_not_taken_from_names(kind: str) -> None:
    table = TABLES[kind](("b", "a", "c"))
    with pytest.raises(clvq.InvalidInputError, match=r"prototypes is a .* names, but is read by"):
        clvq.PrototypeModel(table, ["x", "y", "z"])


def test_weights_with_names_are_read_by_them() -> None:
    weights = {"b": 1.0, "a": 2.0, "c": 3.0}
    by_series, by_dict = (clvq.Manhattan(told) for told in (pd.Series(weights), weights))
    assert repr(by_series) == repr(by_dict)
    model = clvq.PrototypeModel(np.eye(3), ["x", "y", "z"], None, ["a", "b", "c"])
    found = clvq.Explainer(model, by_series).explain([1.0, 0.0, 0.0], target="y")
    assert found.cost == pytest.approx(1.0)  # b is the cheapest


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([{"a": 1.0, "b": 2.0, "c": 3.0}, {"a": 1.0, "b": 2.0}], "row 1 of the table is"),
        ([{"a": 1.0, "b": 2.0, "c": 3.0}, [1.0, 2.0, 3.0]], "row 1 of the table is [1.0, 2.0,"),
        ([[1.0, 2.0, 3.0], {"a": 1.0, "b": 2.0, "c": 3.0}], "3.0], which has no names, but"),
        ({"a": [1.0], "b": [2.0, 3.0], "c": [1.0]}, "column 'b' has the shape"),
        ({"a": [1.0], "b": 2.0, "c": [1.0]}, "'b' is 2.0, but other columns are lists"),
        ({"a": [1.0], "b": [2.0]}, "lacks the column(s) 'c'"),
        (pa.table({"a": [1.0], "b": [None], "c": [2.0]}), "column 'b', row 0 is missing"),
        (pa.table([[1.0], [2.0], [3.0], [4.0]], names=["a", "b", "c", "a"]), "two columns named"),
        (pd.DataFrame([[1.0, 2.0, 3.0]]), "a column named 0 of type int"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(table: Any, message: str) -> None:
    with pytest.raises(clvq.InvalidInputError) as raised:
        clvq.Explainer(MODEL).explain_batch(table)
    assert message in str(raised.value)


def test_estimators_notice_another_order_of_an_arrow_table() -> None:
    table = pa.table(columns(NAMES))
    model = clvq.GLVQ(random_state=0).fit(table, ["x", "y", "x"])
    assert model.feature_names_in_.tolist() == list(NAMES)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table.select(["b", "a", "c"]))


@pytest.mark.parametrize("dtype", ["Int64", "Float32", "Float64", "Int16", "float32"])
def test_answers_in_arrow_survive_the_way_back_to_pandas(dtype: str) -> None:
    """What pandas notes in an Arrow table about its own types would narrow the new ones."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 2)) * [10, 300] + [50, 9000], columns=["a", "b"])
    model = clvq.PrototypeModel(X.iloc[:6].to_numpy(), list("ababab"), feature_names=["a", "b"])
    table = pa.Table.from_pandas(X.round().astype(dtype), preserve_index=False)
    batch = clvq.Explainer(model).explain_batch(table)
    back = batch.X.to_pandas().astype(float)
    assert np.array_equal(back.to_numpy(), batch.values)
    assert (model.predict(back.to_numpy()) == batch.prediction).all()

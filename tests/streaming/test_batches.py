"""Record batches in, record batches out: types, statuses, wishes, and the answers themselves."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import counterlvq as clvq
from counterlvq.tables.decimals import nearest_floats
from tests.support.streams import LEVELS, mixed_batch, mixed_explainer, plain_explainer, plain_table


def answered(explainer: clvq.Explainer, batches: Any, target: Any = None, **more: Any) -> pa.Table:
    return explainer.map_batches(batches, target, **more).read_all()


def one_column(values: Any, kind: pa.DataType, feature: clvq.Feature) -> pa.Table:
    """Answers for a model that says "yes" of what lies nearer to 4 than to 0."""
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], feature_names=["x"])
    explainer = clvq.Explainer(model, features=clvq.Features([feature]))
    batch = pa.record_batch({"x": pa.array(values, kind)})
    return answered(explainer, [batch], "yes")


# --- the answers are those of explain_batch -------------------------------------------------------


@pytest.mark.parametrize("cuts", [[257], [1, 100, 156], [64] * 4 + [1]])
def test_answers_equal_those_of_a_batch_however_rows_are_cut(cuts: list[int]) -> None:
    table, explainer = plain_table(257), plain_explainer()
    whole = explainer.explain_batch(table.drop_columns("id"), target="c")
    starts = np.cumsum([0, *cuts[:-1]]).tolist()
    batches = [
        table.slice(start, count).combine_chunks().to_batches()[0]
        for start, count in zip(starts, cuts, strict=True)
    ]
    told = answered(explainer, batches, "c")
    for j, name in enumerate(explainer.features.names):
        np.testing.assert_array_equal(told[f"{name}_after"].to_numpy(), whole.values[:, j])
    for name in ("cost", "lower_bound", "gap"):
        np.testing.assert_array_equal(told[name].to_numpy(), getattr(whole, name))
    assert told["status"].to_pylist() == whole.status.tolist()
    assert told["prediction"].to_pylist() == whole.prediction.tolist()
    assert told["original_prediction"].to_pylist() == whole.original_prediction.tolist()
    assert told["prototype"].to_pylist() == whole.prototype.tolist()
    assert told["id"].to_pylist() == list(range(257))
    changed = [[change.feature for change in answer.changes] for answer in whole]
    assert told["changed"].to_pylist() == changed


def test_mixed_columns_equal_those_of_a_batch() -> None:
    explainer, batch = mixed_explainer(), mixed_batch(15)
    whole = explainer.explain_batch(pa.Table.from_batches([batch]), "yes", on_bad_rows="report")
    told = answered(explainer, [batch.slice(0, 7), batch.slice(7)], "yes")
    assert told["status"].to_pylist() == whole.status.tolist()
    assert set(whole.status.tolist()) >= {"optimal", "invalid"}
    for name in explainer.features.names:
        after = [
            float(v) if isinstance(v, Decimal) else v for v in told[f"{name}_after"].to_pylist()
        ]
        assert after == whole.X[name].to_pylist(), name
    bad = np.flatnonzero(whole.status == "invalid").tolist()
    reasons = told["reason"].to_pylist()
    assert [reasons[i] for i in bad] == [whole[i].reason for i in bad]
    assert [i for i, words in enumerate(reasons) if words] == bad


def test_reasons_do_not_depend_on_how_rows_are_cut() -> None:
    explainer, batch = mixed_explainer(), mixed_batch(15)
    whole = answered(explainer, [batch], "yes")
    parts = answered(explainer, [batch.slice(i, 1) for i in range(15)], "yes")
    assert whole.equals(parts)
    assert "is missing; expected" in " ".join(filter(None, whole["reason"].to_pylist()))


def test_every_status_comes_out() -> None:
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], feature_names=["x"])
    batch = pa.record_batch({"x": [1.0, 9.0, None]})
    strict = clvq.Explainer(model, constraints=["x <= 1"])
    assert answered(strict, [batch], "yes")["status"].to_pylist() == [
        "optimal" if strict.explain([x], "yes").status.has_answer else "infeasible"
        for x in (1.0, 9.0)
    ] + ["invalid"]
    led = clvq.Explainer(model, margin=1.0)
    assert answered(led, [batch], "yes")["status"].to_pylist()[0] == "feasible"
    local = clvq.PrototypeModel(
        [[0.0], [4.0]], ["no", "yes"], [[[1.0]], [[2.0]]], feature_names=["x"]
    )
    hurried = clvq.Explainer(local, time_limit=0.0)
    told = answered(hurried, [batch], "yes")
    whole = hurried.explain_batch([[1.0], [9.0]], "yes")
    assert told["status"].to_pylist() == [*whole.status.tolist(), "invalid"]
    assert "unknown" in told["status"].to_pylist()


# --- types ----------------------------------------------------------------------------------------

WHOLE = clvq.Feature("x", "whole")
NARROW = clvq.Feature("x", "whole", lower=-100, upper=100)


@pytest.mark.parametrize(
    ("feature", "given", "expected"),
    [
        (clvq.Feature("x"), pa.float64(), pa.float64()),
        (clvq.Feature("x"), pa.float32(), pa.float64()),
        (clvq.Feature("x"), pa.float16(), pa.float64()),
        (clvq.Feature("x"), pa.int8(), pa.float64()),
        (WHOLE, pa.int8(), pa.int64()),
        (NARROW, pa.int8(), pa.int8()),
        (NARROW, pa.uint8(), pa.int64()),
        (clvq.Feature("x", "whole", seen=(0.0, 200.0)), pa.uint8(), pa.uint8()),
        (clvq.Feature("x", "whole", seen=(0.0, 300.0)), pa.uint8(), pa.int64()),
        (WHOLE, pa.int64(), pa.int64()),
        (WHOLE, pa.float32(), pa.float64()),
        (clvq.Feature("x", decimals=2), pa.float32(), pa.float64()),
        (clvq.Feature("x", decimals=2), pa.decimal128(9, 2), pa.decimal128(38, 2)),
        (clvq.Feature("x", decimals=2, lower=-9, upper=9), pa.decimal128(9, 2), None),
        (clvq.Feature("x", decimals=1, lower=-9, upper=9), pa.decimal256(50, 4), None),
        (clvq.Feature("x", decimals=3), pa.decimal128(9, 2), pa.float64()),
        (clvq.Feature("x"), pa.decimal128(9, 2), pa.float64()),
        (clvq.Feature("x", step=0.25, lower=-9, upper=9), pa.decimal128(9, 2), None),
        (clvq.Feature("x", step=0.25), pa.decimal128(9, 1), pa.float64()),
        (clvq.Feature("x", step=0.2), pa.decimal128(9, 1), pa.decimal128(38, 1)),
        (WHOLE, pa.decimal128(9, 0), pa.decimal128(38, 0)),
        (NARROW, pa.decimal128(9, 2), None),
        (clvq.Feature("x"), pa.null(), pa.float64()),
    ],
)
def test_numbers_keep_their_type_where_it_holds_what_was_proved(
    feature: clvq.Feature, given: pa.DataType, expected: pa.DataType | None
) -> None:
    cells = [Decimal(1), None] if pa.types.is_decimal(given) else [1, None]
    values = [None, None] if pa.types.is_null(given) else cells
    if pa.types.is_floating(given):
        values = np.array([1.0, np.nan], dtype=given.to_pandas_dtype())
    told = one_column(values, given, feature)
    assert told.schema.field("x_after").type == (given if expected is None else expected)
    after = told["x_after"].to_pylist()
    assert after[1] is None
    if not pa.types.is_null(given):
        model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"])
        assert model.predict([[float(after[0])]]).tolist() == ["yes"]


def test_single_precision_is_widened_and_never_cast_after_the_proof() -> None:
    rng = np.random.default_rng(0)
    model = clvq.PrototypeModel(
        rng.normal(size=(6, 3)), [0, 1, 2, 0, 1, 2], feature_names=["a", "b", "c"]
    )
    X = rng.normal(size=(300, 3)).astype(np.float32)
    batch = pa.record_batch(dict(zip("abc", X.T, strict=True)))
    told = answered(clvq.Explainer(model), [batch], 1)
    found = np.column_stack([told[f"{name}_after"].to_numpy() for name in "abc"])
    assert found.dtype == np.float64
    assert (model.predict(found) == 1).all()
    assert (model.predict(found.astype(np.float32)) != 1).any(), "casting would do no harm here"


def test_decimals_come_back_as_the_numbers_that_were_proved() -> None:
    feature = clvq.Feature("x", decimals=2, lower=-90000, upper=90000)
    cells = [Decimal(k) / 100 + Decimal("0.07") for k in range(-500, 500, 61)]
    told = one_column([*cells, None], pa.decimal128(9, 2), feature)
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], feature_names=["x"])
    whole = clvq.Explainer(model, features=clvq.Features([feature])).explain_batch(
        [[float(cell)] for cell in cells], "yes"
    )
    after = told["x_after"].to_pylist()
    assert [float(cell) for cell in after[:-1]] == whole.values[:, 0].tolist()
    assert after[-1] is None
    assert told["status"].to_pylist()[-1] == "invalid"


@pytest.mark.parametrize("step", [0.25, 0.05, 2.5])
def test_decimals_on_a_grid_of_steps_come_back_on_it(step: float) -> None:
    feature = clvq.Feature("x", step=step)
    told = one_column([Decimal("0.13"), Decimal("-7.01")], pa.decimal128(9, 2), feature)
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"])
    for after in told["x_after"].to_pylist():
        assert after % Decimal(str(step)) == 0
        assert model.predict([[float(after)]]).tolist() == ["yes"]


@pytest.mark.parametrize("sign", [1, -1])
def test_decimals_may_be_longer_than_a_word_of_the_machine(sign: int) -> None:
    model = clvq.PrototypeModel([[0.0], [sign * 1e14]], ["no", "yes"], feature_names=["x"])
    feature = clvq.Feature("x", decimals=6)
    explainer = clvq.Explainer(model, features=clvq.Features([feature]))
    batch = pa.record_batch({"x": pa.array([Decimal(10), None], pa.decimal128(38, 6))})
    told = answered(explainer, [batch], "yes")
    after = told["x_after"].to_pylist()
    assert after[1] is None
    assert abs(after[0]) * 10**6 > 2**63
    assert float(after[0]) == explainer.explain([10.0], "yes").x[0]


def test_digits_that_no_float_holds_stay_where_nothing_changes() -> None:
    feature = clvq.Feature("x", decimals=1, lower=-9, upper=9)
    cells = [Decimal("8.12345678901234567890"), Decimal("1.0")]
    told = one_column(cells, pa.decimal128(38, 20), feature)
    assert told["x_after"].to_pylist()[0] == cells[0]


@pytest.mark.parametrize("kind", [pa.decimal128(38, 4), pa.decimal128(20, 4), pa.decimal256(60, 4)])
def test_decimals_are_read_as_the_nearest_floats(kind: pa.DataType) -> None:
    rng = np.random.default_rng(1)
    cells = [Decimal(int(k)) / 10000 for k in rng.integers(-(2**60), 2**60, size=200) >> 3]
    cells += [Decimal("0.1"), Decimal("-0.3"), None, Decimal("900719925474.0993")]
    column = pa.chunked_array([pa.array(cells, kind), pa.array(cells, kind).slice(3, 50)])
    expected = [np.nan if cell is None else float(cell) for cell in cells]
    np.testing.assert_array_equal(nearest_floats(column), expected + expected[3:53])


def test_features_of_an_arrow_table_know_its_decimals() -> None:
    table = pa.table({"x": pa.array([Decimal("1.25"), Decimal("2.50")], pa.decimal128(9, 2))})
    assert clvq.Features.from_frame(table)["x"] == clvq.Feature("x", decimals=2, seen=(1.25, 2.5))


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.int32(), pa.large_string(), ordered=True),
    ],
)
def test_levels_keep_their_type_and_may_be_new_to_a_batch(kind: pa.DataType) -> None:
    explainer = mixed_explainer()
    batch = mixed_batch(4)
    at = batch.schema.get_field_index("job")
    some = pa.array([LEVELS[0]] * 4).cast(kind.value_type if hasattr(kind, "value_type") else kind)
    some = some.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else some
    batch = batch.set_column(at, pa.field("job", kind), some)
    told = answered(explainer, [batch.slice(0, 1), batch.slice(1)], "yes")
    assert told.schema.field("job_after").type == kind
    assert set(told["job_after"].to_pylist()) <= {*LEVELS, None}


def test_dictionary_whose_index_has_no_room_gets_a_wider_one() -> None:
    levels = [f"level {k}" for k in range(200)]
    features = clvq.Features([clvq.Feature("x", levels=levels)])
    pipeline = make_pipeline(OneHotEncoder(categories=[levels]), NearestCentroid())
    pipeline.fit(np.array(levels, dtype=object)[:, None], [k % 2 for k in range(200)])
    explainer = clvq.Explainer(
        pipeline, features=clvq.Features([clvq.Feature("x0", levels=levels)])
    )
    given = pa.dictionary(pa.int8(), pa.string())
    schema = pa.schema([("x0", given)])
    assert explainer.output_schema(schema).field("x0_after").type == pa.dictionary(
        pa.int32(), pa.string()
    )
    assert len(features) == 1


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64(), pa.timestamp("ns"), pa.string()])
def test_dates_come_back_as_dates(kind: pa.DataType) -> None:
    model = clvq.PrototypeModel([[0.0], [40.0]], ["old", "new"], feature_names=["x"])
    explainer = clvq.Explainer(model, features=clvq.Features([clvq.Feature("x", "date")]))
    days = pa.array([dt.date(1970, 1, 3), dt.date(1970, 3, 1), None]).cast(kind)
    told = answered(explainer, [pa.record_batch({"x": days})], "new")
    assert told.schema.field("x_after").type == kind
    after = told["x_after"].cast(pa.date32()).to_pylist()
    assert after == [dt.date(1970, 1, 22), dt.date(1970, 3, 1), None]


def test_other_columns_pass_through_as_they_are() -> None:
    batch = mixed_batch(9)
    told = answered(mixed_explainer(), [batch], "yes")
    for name in batch.schema.names:
        assert told.schema.field(name) == batch.schema.field(name)
        assert (
            told[name]
            .combine_chunks()
            .equals(pa.Table.from_batches([batch])[name].combine_chunks())
        )
    assert {"when", "deep", "größe in cm"} <= set(batch.schema.names)


@pytest.mark.parametrize("kind", [pa.string(), pa.list_(pa.float64()), pa.timestamp("us", "UTC")])
def test_column_that_can_hold_no_number_is_refused_before_any_row(kind: pa.DataType) -> None:
    with pytest.raises(clvq.NotSupportedError, match=r"column 'x' is of type .*expected numbers"):
        one_column([None], kind, clvq.Feature("x"))


def test_column_that_cannot_hold_its_levels_is_refused() -> None:
    explainer = mixed_explainer()
    schema = mixed_batch(1).schema
    at = schema.get_field_index("job")
    with pytest.raises(clvq.NotSupportedError, match=r"column 'job' is of type int64.*'clerk'"):
        explainer.output_schema(schema.set(at, pa.field("job", pa.int64())))


# --- the schema, and how batches come -------------------------------------------------------------


def test_schema_is_known_before_a_batch_is_read() -> None:
    def batches() -> Any:
        raise AssertionError("a batch was asked for")
        yield

    batch, explainer = mixed_batch(3), mixed_explainer()
    reader = explainer.map_batches(batches(), "yes", schema=batch.schema)
    assert reader.schema == explainer.output_schema(batch.schema, "yes")
    assert reader.schema == explainer.map_batches([batch], "yes").schema


def test_only_one_batch_is_held_at_a_time() -> None:
    asked = []

    def batches() -> Any:
        for k in range(5):
            asked.append(k)
            yield plain_table(3).combine_chunks().to_batches()[0]

    reader = plain_explainer().map_batches(batches(), "c")
    assert asked == [0]
    for k in range(5):
        assert reader.read_next_batch().num_rows == 3
        assert asked == list(range(k + 1))


@pytest.mark.parametrize("batches", [[], [mixed_batch(0)], [mixed_batch(0), mixed_batch(2)]])
def test_nothing_in_gives_nothing_out(batches: list[Any]) -> None:
    told = answered(mixed_explainer(), batches, "yes")
    assert told.num_rows == sum(batch.num_rows for batch in batches)
    assert "cost" in told.schema.names


def test_partition_without_batches_may_be_asked_for_columns() -> None:
    """Nobody says of it which columns it would have."""
    told = answered(plain_explainer(), [], "wish", columns=["id", "u"])
    assert told.num_rows == 0
    assert told.schema.names[:3] == ["id", "u", "u_after"]
    with pytest.raises(clvq.InvalidInputError, match=r"columns is 'id'; expected a list"):
        answered(plain_explainer(), [], "c", columns="id")


def test_columns_to_give_back_can_be_chosen() -> None:
    told = answered(mixed_explainer(), [mixed_batch(2)], "yes", columns=["id"], prefix="cf_")
    names = told.schema.names
    assert names[0] == "id"
    assert all(name.startswith("cf_") for name in names[1:])
    assert {"cf_job_after", "cf_größe in cm_after", "cf_cost", "cf_reason"} <= set(names)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"columns": "id"}, r"columns is 'id'; expected a list"),
        ({"columns": ["id", "idd"]}, r"columns \(--keep\) lists 'idd', which the table has not"),
        ({"prefix": 3}, r"prefix is 3; expected text"),
        ({"on_bad_rows": "skip"}, r"on_bad_rows is 'skip'"),
        ({"n_jobs": 0}, r"n_jobs is 0"),
        ({"target": "maybe"}, r"target 'maybe' is no label"),
        ({"target": []}, r"target is empty"),
        ({"target": [["yes"]]}, r"holds something that can be no label; expected a label"),
        ({"columns": 5}, r"columns is 5; expected a list of names"),
        ({"schema": "x"}, r"schema is 'x'; expected a schema of pyarrow"),
        ({"batches": None}, r"batches is None; expected an iterable of record batches"),
        ({"batches": [], "columns": 5}, r"columns is 5; expected a list of names"),
    ],
)
def test_wrong_argument_is_refused_at_once(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(clvq.InvalidInputError, match=words):
        mixed_explainer().map_batches(**{"batches": [mixed_batch(1)], **arguments})


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables_are_refused_without_their_cells(library: str, tmp_path: Path) -> None:
    secret = pa.table({"u": [31337.5] * 3})
    table = secret.to_pandas() if library == "pandas" else pl.from_arrow(secret)
    shown = rf"a DataFrame of {library} with 3 rows; expected"
    for given, words in (
        (table, f"batches is {shown} an iterable .* Use explain_batch"),
        ([table], f"batches holds {shown} record batches"),
        ([{"u": 31337.5}], r"batches holds a dict of 1; expected record batches"),
    ):
        with pytest.raises(clvq.InvalidInputError, match=words) as error:
            plain_explainer().map_batches(given, "c").read_all()
        assert "31337" not in str(error.value)
    for source, words in (
        (table, f"source is {shown} a path. Hand its record batches to map_batches"),
        (ds.dataset(secret), r"source is a InMemoryDataset of pyarrow; expected a path. Hand its"),
        (["a.parquet"], r"source is a list of 1; expected a path. Name the folder of"),
        ([[31337.5]] * 2, r"source is a list of 2; expected a path"),
    ):
        with pytest.raises(clvq.InvalidInputError, match=words) as error:
            clvq.explain_dataset(plain_explainer(), source, tmp_path / "out", "c")  # type: ignore[arg-type]
        assert "31337" not in str(error.value)
    with pytest.raises(clvq.InvalidInputError, match=r"InMemoryDataset .*such as dataset.to_batch"):
        plain_explainer().map_batches(ds.dataset(secret), "c")


def test_column_of_wishes_may_be_called_like_a_label() -> None:
    table = plain_table(3).append_column("c", pa.array(["a", "b", None]))
    explainer = plain_explainer()
    told = explainer.map_batches(table.to_batches(), target_column="c").read_all()
    wished = explainer.explain_batch(table.drop_columns(["id", "c"]), ["a", "b", None])
    assert told["cost"].to_pylist() == wished.cost.tolist()
    assert explainer.output_schema(table.schema, target_column="c").equals(told.schema)
    assert explainer.map_batches([], target_column="c").read_all().num_rows == 0
    with pytest.raises(clvq.InvalidInputError, match=r"target is 'a' and target_column is 'c'"):
        explainer.map_batches(table.to_batches(), "a", target_column="c")


def test_names_that_the_answers_have_too_are_refused() -> None:
    batch = plain_table(2).append_column("cost", [[1, 2]]).to_batches()[0]
    with pytest.raises(clvq.InvalidInputError, match=r"a column 'cost', and so have the answers"):
        plain_explainer().map_batches([batch], "c")
    told = answered(plain_explainer(), [batch], "c", prefix="cf_")
    assert told["cost"].to_pylist() == [1, 2]


def test_things_that_are_no_batches_are_refused() -> None:
    explainer, table = plain_explainer(), plain_table(2)
    with pytest.raises(clvq.InvalidInputError, match=r"a single Table; expected an iterable"):
        explainer.map_batches(table, "c")
    with pytest.raises(clvq.InvalidInputError, match=r"a DataFrame .*; expected record batches"):
        explainer.map_batches([table.to_pandas()], "c")
    other = table.set_column(3, "w", pa.array(["1", "2"])).to_batches()[0]
    with pytest.raises(clvq.InvalidInputError, match=r"column 'w' of a batch is of type string"):
        explainer.map_batches([table.to_batches()[0], other], "c").read_all()


def test_columns_may_come_in_another_order_later_on() -> None:
    batch = plain_table(6).combine_chunks().to_batches()[0]
    turned = batch.select(batch.schema.names[::-1])
    explainer = plain_explainer()
    assert answered(explainer, [batch, turned], "c").equals(
        answered(explainer, [batch, batch], "c")
    )


# --- wishes ---------------------------------------------------------------------------------------


def test_target_may_be_a_column() -> None:
    table, explainer = plain_table(30), plain_explainer()
    wishes = ["a", "b", "c", None, "x"] * 6
    for kind in (pa.string(), pa.dictionary(pa.int8(), pa.string())):
        column = pa.array(wishes)
        column = column.dictionary_encode().cast(kind) if kind != pa.string() else column
        batch = table.append_column("wish", column).combine_chunks().to_batches()[0]
        told = answered(explainer, [batch], "wish")
        known = [i for i, wish in enumerate(wishes) if wish != "x"]
        rows = table.drop_columns("id").take(known)
        whole = explainer.explain_batch(rows, [wishes[i] for i in known])
        assert told.take(known)["cost"].to_pylist() == whole.cost.tolist()
        bad = told.take([i for i, wish in enumerate(wishes) if wish == "x"])
        assert set(bad["status"].to_pylist()) == {"invalid"}
        assert "column 'wish' wishes for 'x', which is no label" in bad["reason"][0].as_py()
        with pytest.raises(
            clvq.InvalidInputError, match=r"row 4 .*0: column 'wish' wishes for 'x'"
        ):
            answered(explainer, [batch], "wish", on_bad_rows="raise")


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.string()),
        pa.struct([("a", pa.string())]),
        pa.map_(pa.string(), pa.int64()),
        pa.dictionary(pa.int8(), pa.list_(pa.string())),
    ],
)
def test_wishes_in_a_nested_column_are_refused_before_any_row(kind: pa.DataType) -> None:
    fields = [(name, pa.float64()) for name in "uvwx"]
    with pytest.raises(clvq.InvalidInputError, match=r"target is the column 'wish' of type .*<"):
        plain_explainer().map_batches(iter([]), "wish", schema=pa.schema([*fields, ("wish", kind)]))


def test_several_labels_are_any_of_them() -> None:
    table, explainer = plain_table(20), plain_explainer()
    batches = table.to_batches()
    whole = explainer.explain_batch(table.drop_columns("id"), {"a", "b"})
    for target in (["a", "b"], ("a", "b"), {"a", "b"}, np.array(["a", "b"])):
        assert answered(explainer, batches, target)["cost"].to_pylist() == whole.cost.tolist()


def test_label_that_is_a_column_too_has_to_be_said_clearly() -> None:
    batch = plain_table(2).append_column("c", [[1, 2]]).to_batches()[0]
    explainer = plain_explainer()
    with pytest.raises(clvq.InvalidInputError, match=r"a label of the model and a column"):
        explainer.map_batches([batch], "c")
    assert answered(explainer, [batch], {"c"}).num_rows == 2


@pytest.mark.parametrize("labels", [[0, 1], [False, True], [0.5, 1.5], ["no", "yes"], ["no", 1]])
def test_labels_of_any_type_are_told(labels: list[Any]) -> None:
    held = np.empty(2, dtype=object)
    held[:] = labels
    model = clvq.PrototypeModel([[0.0], [4.0]], held, feature_names=["x"])
    told = answered(clvq.Explainer(model), [pa.record_batch({"x": [1.0, None]})], labels[1])
    expected = str(labels[1]) if labels == ["no", 1] else labels[1]
    assert told["prediction"].to_pylist() == [expected, None]


# --- rows that cannot be read ---------------------------------------------------------------------


def test_bad_row_may_end_the_run() -> None:
    words = r"^row 3 of all batches, counted from 0: column 'größe in cm' is missing; expected"
    for size in (1, 2, 9):
        batches = pa.Table.from_batches([mixed_batch(9)]).to_batches(size)
        with pytest.raises(clvq.InvalidInputError, match=words):
            answered(mixed_explainer(), batches, "yes", on_bad_rows="raise")


def test_imputed_gap_stays_one_unless_it_changes() -> None:
    table = {"a": [1.0, 2.0, 8.0, 9.0, None], "b": [0.0, 1.0, 5.0, 6.0, 3.0]}
    pipeline = make_pipeline(SimpleImputer(), StandardScaler(), NearestCentroid())
    rows = np.array(list(zip(*table.values(), strict=True)), dtype=float)
    pipeline.fit(rows, [0, 0, 1, 1, 0])
    explainer = clvq.Explainer(pipeline)
    batch = pa.record_batch(dict(zip(explainer.columns, table.values(), strict=True)))
    told = answered(explainer, [batch], 1)
    whole = explainer.explain_batch(rows, 1)
    after = np.column_stack(
        [told[f"{n}_after"].to_numpy(zero_copy_only=False) for n in explainer.columns]
    )
    np.testing.assert_array_equal(after, whole.values_with_gaps)


def test_columns_that_a_pipeline_takes_and_drops_may_stay_away() -> None:
    frame = plain_table(30).to_pandas()
    steps = make_column_transformer((StandardScaler(), ["u", "v"]))
    pipeline = make_pipeline(steps, NearestCentroid()).fit(frame, frame["id"] % 2)
    explainer = clvq.Explainer(pipeline)
    assert set(explainer.features.names) == {"u", "v"}
    batch = pa.RecordBatch.from_pandas(frame, preserve_index=False)
    whole = answered(explainer, [batch], 1)
    assert whole["cost"].to_pylist() == explainer.explain_batch(frame, 1).cost.tolist()


def in_runs(values: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(
        pa.array(range(1, len(values) + 1), pa.int32()), pa.array(values, kind)
    )


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
@pytest.mark.parametrize("is_run", [False, True])
@pytest.mark.parametrize("strange", [None, "astronaut"])
def test_bad_rows_of_newer_types_are_told(
    kind: pa.DataType, is_run: bool, strange: str | None
) -> None:
    batch = mixed_batch(3)
    jobs = ["pilot", strange, "nurse"]
    usual = batch.set_column(4, "job", pa.array(jobs, pa.string()))
    column = in_runs(jobs, kind) if is_run else pa.array(jobs, kind)
    newer = batch.set_column(4, "job", column)
    expected = answered(mixed_explainer(), [usual], "yes")
    assert expected["status"].to_pylist()[1] == "invalid"
    found = answered(mixed_explainer(), [newer], "yes")
    told = [name for name in expected.schema.names if name != "job"]
    assert found.select(told).to_pylist() == expected.select(told).to_pylist()
    assert found["job"].to_pylist() == jobs
    table = pa.Table.from_batches([newer.select(mixed_explainer().columns)])
    batch_told = mixed_explainer().explain_batch(table, "yes", on_bad_rows="report")
    assert batch_told.status.tolist() == expected["status"].to_pylist()


def test_numbers_and_wishes_may_come_in_runs() -> None:
    numbers = {name: in_runs([1.0, None, 2.0], pa.float64()) for name in "uvwx"}
    wishes = in_runs(["a", "b", "z"], pa.string_view())
    newer = pa.record_batch({**numbers, "wish": wishes})
    usual = pa.record_batch(
        {**dict.fromkeys("uvwx", pa.array([1.0, None, 2.0])), "wish": pa.array(["a", "b", "z"])}
    )
    found, expected = (
        answered(plain_explainer(), [batch], "wish", columns=["wish"]) for batch in (newer, usual)
    )
    assert found.to_pylist() == expected.to_pylist()
    assert [cost for cost in found["cost"].to_pylist() if cost < np.inf] != []

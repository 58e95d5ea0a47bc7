"""Tables from strangers: read as they are meant, or refused in words before room is made."""

from __future__ import annotations

import io
import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

import counterlvq as clvq
from counterlvq.cli.tables import Reading, needed, table_from
from counterlvq.files.csv_lines import first_lines
from tests.support.quick import slow, some
from tests.support.shell import counterlvq, one_line, started


def read(content: bytes, **how: Any) -> pd.DataFrame:
    return table_from(content, "the table", Reading(**how))


def refusal(content: bytes, **how: Any) -> str:
    with pytest.raises(clvq.InvalidInputError) as caught:
        read(content, **how)
    return str(caught.value)


# --- CSV ------------------------------------------------------------------------------------------

NAMES = ",".join(f"c{j}" for j in range(3000)).encode()


@pytest.mark.parametrize(
    "begin",
    [
        b"",
        b"\n",
        b"\r\n\r",
        b"   \n",
        b" \t\n\n",
        b"\xef\xbb\xbf\n",
        b'"a\n",',
        b'"a\r""b",',
        b"a,b\n",
    ],
)
def test_no_line_hides_how_many_columns_there_are(begin: bytes) -> None:
    words = refusal(begin + NAMES + b"\n" + b"1\n" * 40_000)
    assert "announces 3,00" in words
    assert "--max-memory" in words


def test_floats_are_read_to_the_last_digit() -> None:
    values = np.random.default_rng(0).standard_normal(2_000) * 10.0 ** np.arange(-20, 20).repeat(50)
    text = "\n".join(["a", *map(repr, values.tolist())])
    assert read(text.encode())["a"].tolist() == values.tolist()


def test_values_beyond_the_names_are_refused() -> None:
    words = refusal(b"a,b\n1,2,3\n")
    assert "2 names of columns and 3 values in its first row; expected a name for each" in words
    assert "Expected 2 fields in line 3, saw 3" in refusal(b"a,b\n1,2\n1,2,3\n")


@pytest.mark.parametrize("begin", [b"", b"\n", b"  \n", b"\xef\xbb\xbf\n"])
@pytest.mark.parametrize("name", [b"a", b'"a"', b"a\x00%d"])
def test_no_line_hides_names_that_repeat(begin: bytes, name: bytes) -> None:
    names = [name % j if b"%" in name else name for j in range(3)]
    assert "has 3 columns named 'a'" in refusal(begin + b",".join(names) + b"\n1,2,3\n")


@pytest.mark.parametrize("draws", some([400, 1500], quick=1))
@pytest.mark.parametrize("delimiter", [",", ";", "\t", " "])
def test_first_lines_are_those_of_pandas(delimiter: str, draws: int) -> None:
    rng, compared = random.Random(1), 0
    for _ in range(draws):
        letters = [delimiter, delimiter, "\n", "\n", "\r\n", '"', '"', " ", "\t", "x", "y"]
        text = "".join(rng.choice(letters) for _ in range(rng.randint(1, 14)))
        try:
            frame = pd.read_csv(
                io.StringIO(text), sep=delimiter, header=None, nrows=1, dtype=str, na_filter=False
            )
        except (pd.errors.ParserError, pd.errors.EmptyDataError):
            continue
        compared += 1
        assert len(first_lines(text, delimiter)[0]) == frame.shape[1], repr(text)
    assert compared > draws / 3


@pytest.mark.machine
@pytest.mark.parametrize("cell", some(["x", "'=x", "'x"], quick=2))
def test_time_grows_with_the_number_of_columns(cell: str) -> None:
    """Ten times the columns take about ten times as long, and far from a hundred times."""

    def seconds(columns: int) -> float:
        names = ",".join(f"c{j}" for j in range(columns))
        start = time.process_time()
        table = read(f"{names}\n{','.join([cell] * columns)}\n".encode())
        assert table.iloc[0].tolist() == [cell.removeprefix("'") if "=" in cell else cell] * columns
        return time.process_time() - start

    few = min(seconds(1_000) for _ in range(3))
    assert seconds(10_000) < 40 * few


# --- Parquet --------------------------------------------------------------------------------------


def parquet(value: Any, kind: Any, rows: int = 3_000_000) -> bytes:
    file = io.BytesIO()
    column = pa.array([value], kind).take(pa.array(np.zeros(rows, np.int32)))
    pq.write_table(pa.table({"a": column}), file, compression="zstd")
    return file.getvalue()


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({"x": 1}, pa.struct({"x": pa.int64()})),
        ([], pa.list_(pa.int64())),
        ([1, 2], pa.list_(pa.int64(), 2)),
        ([], pa.map_(pa.string(), pa.int64())),
        ([[]], pa.list_(pa.list_(pa.string()))),
    ],
)
@pytest.mark.parametrize("rows", [1, 100_000])
def test_cells_that_hold_cells_are_refused(value: Any, kind: Any, rows: int) -> None:
    words = refusal(parquet(value, kind, rows))
    assert "lists or other columns in the cells of column" in words
    assert "expected text, numbers, dates or truth values" in words


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (7, pa.decimal128(20, 0)), slow((7, pa.decimal128(5, 0))), slow((7, pa.decimal256(50, 0))),
        (1, pa.date32()), slow((1, pa.time32("ms"))), slow((1, pa.time64("us"))),
        (b"abc", pa.binary()), slow((b"abc", pa.binary(3))),
    ],
)  # fmt: skip
def test_cells_that_become_objects_are_counted_as_such(value: Any, kind: Any) -> None:
    assert "which need" in refusal(parquet(value, kind))
    assert read(parquet(value, kind, 100)).shape == (100, 1)


def written(table: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return file.getvalue()


def about(numpy_type: str, index: list[Any], names: str = "object") -> dict[bytes, bytes]:
    """What pandas writes of a table with a column of numbers and one of text."""

    def one(name: str | None, numpy_type: str) -> dict[str, Any]:
        return {"name": name, "field_name": name, "pandas_type": "unicode", "metadata": None,
                "numpy_type": numpy_type}  # fmt: skip

    told = {"index_columns": index, "column_indexes": [one(None, names)], "pandas_version": "2.2",
            "columns": [one("a", numpy_type), one("b", numpy_type)]}  # fmt: skip
    return {b"pandas": json.dumps(told).encode()}


SMALL = pa.table({"a": [1.5, 2.5], "b": ["x", "y"]})


@pytest.mark.parametrize(
    "numpy_type",
    [
        "string[python]", "U99999999", "S99999999", "V10000000", "period[D]", "timedelta64[ns]",
        "category", "object", "complex128", "(999999,)f8", "nonsense",
    ],
)  # fmt: skip
def test_types_that_pandas_has_written_are_not_obeyed(numpy_type: str) -> None:
    for told in (about(numpy_type, []), about("object", [], names=numpy_type)):
        frame = read(written(SMALL.replace_schema_metadata(told)))
        pd.testing.assert_frame_equal(frame, pd.DataFrame({"a": [1.5, 2.5], "b": ["x", "y"]}))


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": [1, 2], "b": ["x", None]}),
        pd.DataFrame({"a": [1, 2], "b": ["x", None]}, index=[7, 3]),
        pd.DataFrame({"a": [1, 2], "b": ["x", None]}, index=pd.RangeIndex(10, 16, 3)),
        pd.DataFrame({"a": [1.5, 2.0], "b": pd.Categorical(["x", "y"])}).set_index("b"),
        pd.DataFrame({"a": [True, False], "b": [0.5, None], "c": [1, 2]}).set_index(["c", "a"]),
        pd.DataFrame({"a": pd.to_datetime(["2020-01-01", None]).tz_localize("UTC"), "b": [1, 2]}),
    ],
)
def test_what_pandas_writes_is_read_again(frame: pd.DataFrame) -> None:
    file = io.BytesIO()
    frame.to_parquet(file)
    pd.testing.assert_frame_equal(read(file.getvalue()), frame, check_names=False)


@pytest.mark.parametrize(
    "index",
    [
        [{"kind": "range", "name": None, "start": 0, "stop": 10**12, "step": 0}],
        [{"kind": "range", "name": None, "start": 2**63, "stop": 10**12, "step": 1}],
        [{"kind": "range", "start": "0", "step": None}], ["zzz"], [5, None, {}], {}, 7,
    ],
)  # fmt: skip
def test_an_index_that_is_none_is_left_out(index: Any) -> None:
    frame = read(written(SMALL.replace_schema_metadata(about("object", index))))
    assert list(frame.index) == [0, 1]
    assert list(frame.columns) == ["a", "b"]


def test_types_that_mean_something_else_than_they_hold_are_refused() -> None:
    days = pd.DataFrame({"day": pd.period_range("2020", periods=3, freq="D")})
    words = refusal(written(pa.Table.from_pandas(days)))
    assert "column 'day' has the type 'pandas.period'; expected text, numbers, dates" in words


@pytest.mark.parametrize("way", ["PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
@pytest.mark.parametrize("rows", [3, 200_000])
def test_every_way_of_writing_text_is_read(way: str, rows: int) -> None:
    texts = [f"{'https://example.org/' * 5}{j % 1000}" for j in range(rows)]
    whole = written(pa.table({"a": texts}), use_dictionary=False, column_encoding={"a": way})
    assert read(whole)["a"].tolist() == texts


def can_write(kind: pa.DataType) -> bool:
    """Whether this version of Arrow writes columns of a type to Parquet."""
    try:
        written(pa.table({"a": pa.array(["x"]).cast(kind)}))
    except pa.ArrowNotImplementedError:
        return False
    return True


TEXTS = [kind for kind in (pa.string(), pa.large_string(), pa.string_view()) if can_write(kind)]


@pytest.mark.covering
@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("way", [None, "PLAIN", "DELTA_BYTE_ARRAY"])
def test_text_counts_together_with_the_cells(kind: Any, way: str | None) -> None:
    """Each by itself has room, all together do not."""
    column = pa.array(["x" * 800]).take(pa.array(np.zeros(30_000, np.int32))).cast(kind)
    options = {"use_dictionary": way is None, "compression": "zstd"}
    options |= {} if way is None else {"column_encoding": dict.fromkeys("abcd", way)}
    assert read(written(pa.table({"a": column}), **options)).shape == (30_000, 1)
    assert "bytes of memory" in refusal(written(pa.table(dict.fromkeys("abcd", column)), **options))


@pytest.mark.machine
def test_columns_are_counted_by_what_they_take() -> None:
    table = pa.table({f"c{j}": [1.0] for j in range(12_000)})
    words = refusal(written(table, compression="none", write_statistics=False), memory=64 << 20)
    assert "announces 12,000 columns and 1 rows, which need" in words


# --- JSON -----------------------------------------------------------------------------------------


def test_halves_of_surrogate_pairs_are_kept() -> None:
    table = read(b'[{"a": 1, "\\ud800": "x\\udc00"}, {"a": 2, "\\ud800": null}]')
    assert list(table.columns) == ["a", "\ud800"]
    assert table["\ud800"].iloc[0] == "x\udc00"
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 0.0]], [0, 1], feature_names=["a", "\ud800"])
    rows = read(b'[{"\\ud800": 0, "a": 1, "b\\udfff": "u"}]')
    assert model.predict(rows).tolist() == [0]
    assert clvq.Explainer(model).explain_batch(rows).status.tolist() == ["optimal"]


# --- at the shell ---------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_hints_name_what_can_be_installed(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(clvq.NotSupportedError, match=f"install it with pip install {library}.$"):
        needed(library)


def test_libraries_that_cannot_be_loaded_are_not_called_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: str) -> None:
        raise ImportError("failed to map segment from shared object")

    monkeypatch.setattr("counterlvq.cli.tables.import_module", refuse)
    with pytest.raises(clvq.NotSupportedError, match=r"cannot be imported here \(failed to map"):
        needed("pandas")


@pytest.mark.skipif(os.name != "posix", reason="sets a limit of the system")
def test_too_few_open_files_are_told_in_words(tmp_path: Path) -> None:
    import resource

    with started(
        "inspect", "m.clvq", cwd=tmp_path,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (6, 6)),
    ) as command:  # fmt: skip
        _, told = command.communicate()
    assert command.returncode == 1
    assert "Too many open files" in one_line(told)


def test_missing_columns_speak_of_the_delimiter(tmp_path: Path) -> None:
    (tmp_path / "semi.csv").write_bytes(b"a;b, net;c\n1,5;2;x\n2,5;3;y\n")
    done = counterlvq("train", "semi.csv", "--label", "c", cwd=tmp_path)
    assert done.returncode == 1
    assert "--delimiter" in one_line(done.stderr)

"""Tables from strangers: read as they are meant, or refused in words before room is made."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

import counterlvq as clvq
from counterlvq.cli.csv_lines import first_lines
from counterlvq.cli.tables import Reading, table_from
from tests.support.shell import counterlvq, one_line


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


def test_values_beyond_the_names_are_refused() -> None:
    words = refusal(b"a,b\n1,2,3\n")
    assert "2 names of columns and 3 values in its first row; expected a name for each" in words
    assert "Expected 2 fields in line 3, saw 3" in refusal(b"a,b\n1,2\n1,2,3\n")


@pytest.mark.parametrize("begin", [b"", b"\n", b"  \n", b"\xef\xbb\xbf\n"])
@pytest.mark.parametrize("name", [b"a", b'"a"', b"a\x00%d"])
def test_no_line_hides_names_that_repeat(begin: bytes, name: bytes) -> None:
    names = [name % j if b"%" in name else name for j in range(3)]
    assert "has 3 columns named 'a'" in refusal(begin + b",".join(names) + b"\n1,2,3\n")


@pytest.mark.parametrize("delimiter", [",", ";", "\t", " "])
def test_first_lines_are_those_of_pandas(delimiter: str) -> None:
    rng, compared = random.Random(1), 0
    for _ in range(1500):
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
    assert compared > 500


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
        (7, pa.decimal128(20, 0)), (7, pa.decimal128(5, 0)), (7, pa.decimal256(50, 0)),
        (1, pa.date32()), (1, pa.time32("ms")), (1, pa.time64("us")),
        (b"abc", pa.binary()), (b"abc", pa.binary(3)),
    ],
)  # fmt: skip
def test_cells_that_become_objects_are_counted_as_such(value: Any, kind: Any) -> None:
    assert "which need" in refusal(parquet(value, kind))
    assert read(parquet(value, kind, 100)).shape == (100, 1)


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


def test_missing_columns_speak_of_the_delimiter(tmp_path: Path) -> None:
    (tmp_path / "semi.csv").write_bytes(b"a;b, net;c\n1,5;2;x\n2,5;3;y\n")
    done = counterlvq("train", "semi.csv", "--label", "c", cwd=tmp_path)
    assert done.returncode == 1
    assert "--delimiter" in one_line(done.stderr)

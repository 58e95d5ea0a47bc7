"""Tables in CSV, JSON, Parquet and Excel as strangers might make them."""

from __future__ import annotations

import io
import json
import random
import zipfile
from functools import cache
from typing import Any

import numpy as np

from fuzz.mutations import FLOATS, NUMBERS, TEXTS, any_value, mutated_bytes, mutated_value
from fuzz.sandbox import File

READER, WITH_OPTIONS = "table", "table with options"
_CSV = b'a,b,c,d\n1,2.5,"x, y",True\n-3,1e3,,False\n0,0,"say ""no""",True\n'
_ROWS = [{"a": 1, "b": 2.5, "c": "x"}, {"a": -3, "b": 1000.0, "c": None}, {"a": 0, "b": 0.5}]


@cache
def parquet() -> tuple[bytes, ...]:
    import pandas as pd
    import pyarrow as pa
    from pyarrow import parquet as pq

    frame = pd.DataFrame({"a": [1, 2, 3], "b": [0.5, 1.0, 2.0], "c": ["x", "y", None]})
    frame["d"] = pd.Categorical(["u", "v", "u"])
    frame["e"] = pd.array([1, None, 3], dtype="Int64")
    frame["f"] = pd.to_datetime(["2020", "2021", None])
    table = pa.Table.from_pandas(frame.set_index("c"))
    out = []
    for way in ("none", "snappy", "zstd", "gzip"):
        file = io.BytesIO()
        pq.write_table(table, file, compression=way, use_dictionary=way != "gzip")
        out.append(file.getvalue())
    return tuple(out)


def good() -> list[bytes]:
    return [_CSV, json.dumps(_ROWS).encode(), *parquet()]


def draw(rng: random.Random) -> File:
    """Draw a table of one format, damaged or announcing much."""
    format_, maker = rng.choice(list(_FORMATS.items()))
    reader = WITH_OPTIONS if format_ == "csv" and rng.random() < 0.2 else READER
    return File(reader, format_, maker(rng))


def _csv(rng: random.Random) -> bytes:  # noqa: PLR0911 - one way each
    way = rng.randrange(8)
    if way < 3:
        return mutated_bytes(rng, _CSV)
    if way == 3:
        sign = rng.choice((b";", b"\t", b"|", b"\x00", b"\r"))
        return mutated_bytes(rng, _CSV.replace(b",", sign), 1)
    if way == 4:
        return (
            _CSV.decode()
            .replace("x", rng.choice(("é", "\u20ac", "\U0001f600")))
            .encode(rng.choice(("latin-1", "cp1252", "utf-16", "utf-8-sig", "utf-32")), "replace")
        )
    if way == 5:  # many columns, few values
        names = b",".join(rng.choice((b"a", b"c%d" % j, b"")) for j in range(rng.choice((5, 3000))))
        return names + b"\n" + rng.choice((b"1\n", b"\n", b",\n")) * rng.choice((1, 100, 20_000))
    if way == 6 and rng.random() < 0.5:
        return _hidden_width(rng)
    if way == 6:
        cell = rng.choice((b"9" * 5000, b"1e999", b'"', b'""', b"nan", b"-inf", b"\xff", b"0x1p3"))
        return b"a,b\n" + b",".join([cell] * rng.choice((1, 2, 3))) + b"\n" + cell * 10
    return rng.choice((b"", b"\n" * 10**5, b"a", b"a,b", b'"', b"," * 5000, bytes(10**5),
                       b"\xef\xbb\xbf", rng.randbytes(300), b'"' + b"x" * 10**5))  # fmt: skip


def _hidden_width(rng: random.Random) -> bytes:
    """Many columns that the first bytes up to a line end do not show."""
    names = b",".join(rng.choice((b"c%d" % j, b"a")) if rng.random() < 0.01 else b"c%d" % j
                      for j in range(rng.choice((3, 300, 3000))))  # fmt: skip
    begin = rng.choice((b"\n", b"\r\n\r", b"   \n", b" \t\n", b"\xef\xbb\xbf\n", b'"a\n",',
                        b'"a\r""",', b"", b"\x00,", b"x,y\n"))  # fmt: skip
    return begin + names + b"\n" + rng.choice((b"1\n", b",\n", b"\n")) * rng.choice((1, 40_000))


def _json(rng: random.Random) -> bytes:  # noqa: PLR0911 - one way each
    way = rng.randrange(7)
    if way == 6:  # names of any kind
        return json.dumps([{"a": 1, "b": 2, rng.choice(TEXTS): any_value(rng, 0)}]).encode()
    if way == 0:
        return mutated_bytes(rng, json.dumps(_ROWS).encode())
    if way == 1:
        return json.dumps([{f"k{k}": k} for k in range(rng.choice((10, 300, 5000)))]).encode()
    if way == 2:
        return b"[{" + rng.choice((b'"a":[', b'"a":{', b"[")) * rng.choice((10, 10**5))
    if way == 3:
        values = (*NUMBERS, *FLOATS, *TEXTS, None, True)
        rows = [
            {"a": rng.choice(values), "b": rng.choice(values)} for _ in range(rng.randint(1, 9))
        ]
        return json.dumps(rows).encode()
    if way == 4:
        return json.dumps([{"a": any_value(rng), "b": any_value(rng)}, *_ROWS]).encode()
    value = mutated_value(rng, _ROWS)
    return json.dumps(value if isinstance(value, list) else [value]).encode()


def _parquet(rng: random.Random) -> bytes:
    whole = rng.choice(parquet())
    way = rng.randrange(6)
    if way < 3:  # the end of the file says what is where, and damage there goes deepest
        begin = rng.choice((4, len(whole) // 2, max(4, len(whole) - 1500)))
        return whole[:begin] + mutated_bytes(rng, whole[begin:-8], 1) + whole[-8:]
    if way == 3:
        return mutated_bytes(rng, whole)
    return _other_parquet(rng)


def overlapping(pages: int, groups: int) -> bytes:
    """Make a Parquet file whose row groups all name the same empty pages."""

    def plain(value: int) -> bytes:
        out = bytearray()
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        return bytes([*out, value])

    def number(value: int) -> bytes:
        return plain(2 * value)  # the last bit is the sign

    def field(step: int, kind: int, content: bytes) -> bytes:
        return bytes([step << 4 | kind]) + content

    def listed(kind: int, parts: list[bytes]) -> bytes:
        return bytes([0xF0 | kind]) + plain(len(parts)) + b"".join(parts)

    whole, long, text, list_, struct = 5, 6, 8, 9, 12
    zero = number(0)
    page = field(1, whole, zero) * 3 + field(2, struct, field(1, whole, zero) + b"\0") + b"\0"
    name = b"\x01a"
    chunk = (
        field(1, whole, number(1)) + field(1, list_, listed(whole, []))
        + field(1, list_, listed(text, [name])) + field(1, whole, zero)
        + field(1, long, number(1)) + field(1, long, zero)
        + field(1, long, number(len(page) * pages)) + field(2, long, number(4)) + b"\0"
    )  # fmt: skip
    group = field(1, list_, listed(struct, [field(3, struct, chunk) + b"\0"]))
    group += field(1, long, zero) * 2 + b"\0"
    root = field(4, text, name) + field(1, whole, number(1)) + b"\0"
    leaf = field(1, whole, number(1)) + field(2, whole, zero) + field(1, text, name) + b"\0"
    footer = field(1, whole, number(1)) + field(1, list_, listed(struct, [root, leaf]))
    footer += field(1, long, zero) + field(1, list_, listed(struct, [group] * groups)) + b"\0"
    return b"PAR1" + page * pages + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def _other_parquet(rng: random.Random) -> bytes:
    """Tables whose own metadata lie, whose values repeat, or whose types are no numbers."""
    import pyarrow as pa
    from pyarrow import parquet as pq

    way = rng.randrange(7)
    file = io.BytesIO()
    if way == 6:
        return overlapping(rng.choice((1, 50, 2000)), rng.choice((1, 50, 2000)))
    if way >= 4:
        return _wide_parquet(rng) if way == 4 else _dense_parquet(rng)
    if way < 2:
        table = pq.read_table(io.BytesIO(rng.choice(parquet())))
        told = dict(table.schema.metadata)
        if way == 0:
            told[b"pandas"] = mutated_bytes(rng, told[b"pandas"])
        else:
            value = mutated_value(rng, json.loads(told[b"pandas"]))
            told[b"pandas"] = json.dumps(value).encode()
        table = table.replace_schema_metadata(told)
    elif way == 2:
        # One long text, and thousands of rows that have it.
        rows, text = pa.array([0] * rng.choice((2, 3000)), pa.int32()), "x" * rng.choice((9, 10**6))
        table = pa.table({"a": pa.DictionaryArray.from_arrays(rows, pa.array([text]))})
    else:
        count = rng.choice((2, 1000, 20_000, 2_000_000))
        value, kind = rng.choice((
            ([], pa.list_(pa.int64())), (b"abc", pa.binary(3)), (7, pa.decimal128(20, 0)),
            (1, pa.date32()), (1, pa.time64("us")), ([], pa.map_(pa.string(), pa.int64())),
            (0.0, pa.float64()), ([1], pa.list_(pa.int64())), ({"x": "y"}, None), (b"z", None),
            (1, pa.decimal128(38, 2)), (1, pa.duration("ns")), (None, pa.null()), (1, pa.float16()),
        ))  # fmt: skip
        column: Any = pa.array([value], kind).take(pa.array(np.zeros(count, np.int32)))
        table = pa.table({"a": column, "b": column})
    # Without Arrow's own schema, repeated text comes back written out.
    pq.write_table(table, file, compression=rng.choice(("none", "zstd")), store_schema=way < 2)
    return file.getvalue()


# Types that pandas might be told to make of a column, or of the names of columns.
_TOLD_TYPES = (
    "string[python]", "string[pyarrow]", "object", "category", "period[D]", "timedelta64[ns]",
    "U99999999", "S99999999", "V10000000", "Int64", "boolean", "Sparse[float64]", "complex128",
    "datetime64[ns, Mars/Phobos]", "i4,i4", "(999999,)f8", "interval[int64]", "nonsense", "",
)  # fmt: skip


def _about(rng: random.Random, names: list[str]) -> bytes:
    """Metadata of pandas about some columns, with types of all kinds."""

    def told(name: str | None) -> dict[str, Any]:
        kinds = ("unicode", "categorical", "datetimetz", "int64", "bytes", "mixed")
        return {"name": name, "field_name": name, "pandas_type": rng.choice(kinds),
                "numpy_type": rng.choice(_TOLD_TYPES), "metadata": None}  # fmt: skip

    index: list[Any] = [{"kind": "range", "name": None, "start": 0, "stop": 10**12, "step": 1}]
    about = {"index_columns": rng.choice((index, names[:1], names * 2, [])),
             "column_indexes": [told(None)] * rng.choice((0, 1, 2)),
             "columns": [told(name) for name in names], "pandas_version": "2.2"}  # fmt: skip
    return json.dumps(about).encode()


def _wide_parquet(rng: random.Random) -> bytes:
    """Thousands of columns, which take memory each, whatever they hold."""
    import pyarrow as pa
    from pyarrow import parquet as pq

    file, value = io.BytesIO(), rng.choice((1.0, "x", True, None))
    names = [f"c{j}" for j in range(rng.choice((10, 1000, 5000)))]
    table = pa.table({name: [value] for name in names})
    if rng.random() < 0.5:
        table = table.replace_schema_metadata({b"pandas": _about(rng, names)})
    pq.write_table(table, file, compression="none", write_statistics=False)
    return file.getvalue()


def _dense_parquet(rng: random.Random) -> bytes:
    """One value so many times that it is close to what may be read, on either side."""
    import pyarrow as pa
    from pyarrow import parquet as pq

    value, kind, size = rng.choice((
        ("ab", pa.string(), 28), ("x" * 300, pa.string(), 640), ("x" * 300, pa.large_string(), 640),
        ("x" * 300, pa.string_view(), 640), ("ab", pa.string_view(), 28), (None, pa.string(), 24),
        (1, pa.int64(), 16), (1, pa.int8(), 16), (True, pa.bool_(), 16), (b"ab", pa.binary(), 68),
        (1, pa.timestamp("ns", "UTC"), 16), (1, pa.duration("s"), 16), (1, pa.date32(), 64),
    ))  # fmt: skip
    rows = int((128 << 20) / size * rng.uniform(0.7, 1.1))
    plain = pa.string() if pa.types.is_string_view(kind) else kind  # views are not taken
    numbers = np.zeros(rows, np.int32)
    missing = np.arange(rows) < rng.choice((0, 1, rows // 2))
    column: Any = pa.array([value], plain).take(pa.array(numbers, mask=missing)).cast(kind)
    table = pa.table({"a": column})
    if rng.random() < 0.7:
        table = table.replace_schema_metadata({b"pandas": _about(rng, ["a"])})
    file, ways = io.BytesIO(), [None, "PLAIN"]
    if pa.types.is_string(column.type):
        ways += ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"]
    way = rng.choice(ways)
    pq.write_table(
        table, file, compression="zstd", use_dictionary=way is None,
        column_encoding=None if way is None else {"a": way},
        row_group_size=rng.choice((10**5, rows)),
    )  # fmt: skip
    return file.getvalue()


def _excel(rng: random.Random) -> bytes:
    if rng.random() < 0.3:
        return b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + rng.randbytes(500)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", b"<workbook/>")
        archive.writestr("xl/worksheets/sheet1.xml", b"<a>" * rng.choice((1, 10**5)))
    whole = file.getvalue()
    return whole[:4] + mutated_bytes(rng, whole[4:])


_FORMATS = {"csv": _csv, "json": _json, "parquet": _parquet, "excel": _excel}

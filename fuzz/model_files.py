"""Model files (.clvq) as strangers might make them."""

from __future__ import annotations

import io
import json
import random
from functools import cache
from typing import Any

import numpy as np

import counterlvq as clvq
from fuzz.mutations import (
    FLOATS,
    NUMBERS,
    TEXTS,
    chained,
    colliding,
    mutated_bytes,
    mutated_value,
)  # fmt: skip
from fuzz.sandbox import File

READER = "model file"
Parts = tuple[dict[str, Any], dict[str, Any], bytes]


@cache
def good() -> tuple[bytes, ...]:
    """Models of all kinds, each as a file."""
    import pandas as pd
    from sklearn.compose import ColumnTransformer
    from sklearn.neighbors import NearestCentroid
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    points = [[0.0, 0.5], [4.0, -1.0], [1.0, 2.0], [2.0, 9.0]]
    described = clvq.Features([clvq.Feature("a", step=2), clvq.Feature("b", decimals=2, lower=0)])
    table = pd.DataFrame(
        {"pay": np.arange(8.0), "job": ["clerk", "nurse"] * 4, "owner": [True, False] * 4, "id": 1}
    )
    steps = ColumnTransformer(
        [("n", StandardScaler(), ["pay"]), ("l", OneHotEncoder(), ["job", "owner"])]
    )
    pipeline = make_pipeline(steps, NearestCentroid()).fit(table, [0, 1, 1, 1, 0, 0, 1, 0])
    eye = np.eye(2)
    models = [
        (clvq.PrototypeModel(points, ["no", "yes", "no", "maybe"]), None),
        (clvq.PrototypeModel(points, [0, 1, 0, 1], eye), described),
        (clvq.PrototypeModel(points, [0.5, 1, 0.5, 1], [eye, 2 * eye] * 2, offsets=range(4)), None),
        (clvq.PrototypeModel(points, np.array([1, "1", None, True], dtype=object)), None),
        (pipeline, None),
    ]
    words = clvq.Features(
        [
            clvq.Feature("pay", label="net pay", change="increase"),
            clvq.Feature("job", levels=["nurse", "clerk"], price={("clerk", "nurse"): 2.0}),
            clvq.Feature("owner", "boolean", true="with a house"),
        ]
    )
    many = pd.concat([table] * 3)
    out = []
    for model, features, reference in [
        *((*pair, None) for pair in models),
        (pipeline, words, many),
    ]:
        file = io.BytesIO()
        clvq.save(model, file, features, reference)
        out.append(file.getvalue())
    return tuple(out)


def parts(whole: bytes) -> Parts:
    size = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + size])
    document = json.loads(header.pop("__metadata__")["counterlvq"])
    return header, document, whole[8 + size :]


def built(header: Any, document: Any, numbers: bytes) -> bytes:
    if isinstance(header, dict):
        text = document if isinstance(document, str) else json.dumps(document)
        header = {"__metadata__": {"counterlvq": text}, **header}
    return framed(json.dumps(header).encode(), numbers)


def framed(header: bytes, numbers: bytes = b"") -> bytes:
    return len(header).to_bytes(8, "little") + header + numbers


def draw(rng: random.Random) -> File:
    """Draw a file: damaged bytes, another header, or one that announces much."""
    whole = rng.choice(good())
    way = rng.randrange(10)
    if way < 3:
        return File(READER, "bytes", mutated_bytes(rng, whole))
    header, document, numbers = parts(whole)
    if way < 5:
        return File(READER, "document", built(header, mutated_value(rng, document), numbers))
    if way < 6:
        return File(READER, "header", built(mutated_value(rng, header), document, numbers))
    if way < 7:
        return File(READER, "text", _text(rng, header, document, numbers))
    kind, craft = rng.choice(list(_CRAFTED.items()))
    return File(READER, f"crafted-{kind}", craft(rng))


def _text(rng: random.Random, header: Any, document: Any, numbers: bytes) -> bytes:
    """JSON that is damaged as text, or nested, or full of nothing."""
    count = rng.choice((10, 1000, 30_000))
    pieces = ("[", '{"a":', "[[],", '{"":{}},', "1e5,", "9" * 4000 + ",", '"\\ud800",', "0.1,")
    way = rng.randrange(3)
    if way == 0:
        return built(header, mutated_bytes(rng, json.dumps(document).encode()).decode("latin-1"),
                     numbers)  # fmt: skip
    if way == 1:
        return framed(rng.choice(pieces).encode() * count)
    return built(header, '{"version": ' + rng.choice(pieces) * count, numbers)


# --- files that announce much ---------------------------------------------------------------------


def _document(labels: Any, columns: int = 1, **more: Any) -> dict[str, Any]:
    features = [{"name": f"x{j}", "kind": "real"} for j in range(columns)]
    model = {"labels": labels, "omegas": None, "features": features, **more}
    return {"version": 1, "made_by": "somebody", "model": model, "table": None}


def _file(arrays: dict[str, np.ndarray], document: Any) -> bytes:
    header, numbers = {}, b""
    for name, array in arrays.items():
        data = array.tobytes()
        kind = "I64" if array.dtype.kind == "i" else "F64"
        ends = [len(numbers), len(numbers) + len(data)]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": ends}
        numbers += data
    return built(header, document, numbers)


def _shapes(rng: random.Random) -> bytes:
    header, document, numbers = parts(rng.choice(good()))
    name = rng.choice(list(header))
    entry = header[name]
    start, end = entry["data_offsets"]
    for _ in range(rng.randint(1, 2)):
        way = rng.randrange(5)
        if way == 0:
            entry["shape"] = [rng.choice(NUMBERS) for _ in range(rng.choice((0, 1, 2, 3, 70)))]
        elif way == 1:
            entry["shape"] = [1] * rng.choice((1, 30, 64, 65, 200)) + entry["shape"]
        elif way == 2:
            entry["shape"] = [0, rng.choice(NUMBERS), rng.choice(NUMBERS)]
            entry["data_offsets"] = [start, start]
        elif way == 3:
            entry["data_offsets"] = [rng.choice((start, *NUMBERS)), rng.choice((end, *NUMBERS))]
        else:
            header[rng.choice(TEXTS) or "z"] = dict(entry)
    return built(header, document, numbers)


def _labels(rng: random.Random) -> bytes:
    count = rng.choice((2, 50, 5000))
    kind = rng.choice(("<U", ">U", "|O", "<i8", "|i1", "<f2", "<f8", "|b1", "<M8[s]", "|V9"))
    if kind.endswith("U"):
        kind += str(rng.choice((0, 1, 3, 1000, 10**5, 10**7, 99_999_999, 10**8)))
    values: list[Any] = [f"l{k}" for k in range(count)]
    if rng.random() < 0.6:
        values = rng.choice((
            colliding(rng, count), list(range(count)), [k / 2 for k in range(count)],
            [2.0 ** (k % 1000) for k in range(count)], ["x" * 500 + str(k) for k in range(count)],
            [rng.choice((*NUMBERS, *FLOATS, *TEXTS, True, None)) for _ in range(count)],
        ))  # fmt: skip
    if rng.random() < 0.1:
        kind, values = rng.choice(("|O", "<i8")), _in_the_way(rng)
        count = len(values)
    document = _document({"type": kind, "values": values})
    arrays = {"prototypes": np.arange(float(count))[:, None], "labels": np.arange(count)}
    return _file(arrays, document)


def _in_the_way(rng: random.Random) -> list[Any]:
    """Numbers that are slow to tell apart for a dict, whole or not, one of them twice or not."""
    values: list[Any] = list(chained(rng.choice((13, 16))))
    if rng.random() < 0.5:
        values[-1] = values[0]
    return [float(value) for value in values] if rng.random() < 0.3 else values


def _omegas(rng: random.Random) -> bytes:
    count, rank = rng.choice((2, 300, 3000)), rng.choice((1, 40, 3000))
    places = [rng.choice((0, 1)) for _ in range(count)]
    if rng.random() < 0.5:
        places = [rng.choice(NUMBERS) for _ in range(rng.choice((1, count)))]
    if rng.random() < 0.2:
        places = colliding(rng, count)
    document = _document({"type": "<i8", "values": [0, 1]}, omegas=places)
    arrays = {"prototypes": np.arange(float(count))[:, None], "labels": np.arange(count) % 2}
    arrays |= {f"omega.{k}": np.full((rank, 1), 1.0 + k) for k in range(rng.randrange(4))}
    return _file(arrays, document)


def _features(rng: random.Random) -> bytes:
    count = rng.choice((1, 3, 3000))
    document = _document({"type": "<i8", "values": [0, 1]}, count)
    for feature in document["model"]["features"][:3]:
        feature.update(rng.choice((
            {"kind": "whole", "step": rng.choice(NUMBERS)},
            {"decimals": rng.choice(NUMBERS)},
            {"decimals": 12, "lower": rng.choice(FLOATS), "upper": rng.choice(FLOATS)},
            {"kind": "whole", "step": 3, "lower": rng.choice(FLOATS), "upper": rng.choice(FLOATS)},
            {"kind": "categorical", "levels": colliding(rng, 3000)},
            {"kind": "categorical", "levels": _in_the_way(rng)},
            {"name": "n" * rng.choice((0, 1, 10**5))}, {"unit": "u" * 10**5},
        )))  # fmt: skip
    arrays = {"prototypes": np.arange(2.0 * count).reshape(2, count), "labels": np.arange(2)}
    return _file(arrays, document)


def _tables(rng: random.Random) -> bytes:
    columns, levels = rng.choice(((1, 5000), (1500, 1), (60, 40)))
    values: list[Any] = list(range(levels))
    if rng.random() < 0.6:
        values = rng.choice((
            colliding(rng, levels), [f"{k}" * 20 for k in range(levels)],
            [rng.choice(NUMBERS)] * levels, [k / 7 for k in range(levels)],
        ))  # fmt: skip
    if columns == 1 and rng.random() < 0.3:
        values = _in_the_way(rng)
        levels = len(values)
    names = [f"c{j}" for j in range(columns)]
    said = [{"name": name, "kind": "categorical", "levels": values} for name in names]
    if rng.random() < 0.3:
        said = [{"name": name, "kind": "real"} for name in names]
    document = _document({"type": "<i8", "values": [0, 1]})
    document["table"] = {
        "columns": names, "named": True, "features": said,
        "parts": [{"column": name, "levels": values} for name in names],
    }  # fmt: skip
    arrays = {"prototypes": np.array([[0.0], [1.0]]), "labels": np.arange(2)}
    arrays["table.constant"] = np.zeros(1)
    arrays |= {f"table.levels.{j}": np.zeros((levels, 1)) for j in range(columns)}
    return _file(arrays, document)


_CRAFTED = {
    "shapes": _shapes, "labels": _labels, "omegas": _omegas, "features": _features,
    "tables": _tables,
}  # fmt: skip

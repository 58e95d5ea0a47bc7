"""Datasets, and folders of answers that were changed between two runs.

A case is an archive: the source, and possibly what stands in the folder when the run goes on. What
comes out has to be what a run gives that nothing disturbed, or an error of ours.
"""

from __future__ import annotations

import io
import json
import os
import random
import tempfile
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import counterlvq as clvq
from fuzz import table_files
from fuzz.mutations import any_value, mutated_bytes, mutated_value
from fuzz.sandbox import File

READER = "folder"
_FOLDER, _MANIFEST = "out/", "_manifest.json"
_PART_ROWS = 3
_TIME = 1_700_000_000 * 10**9
_CSV = b'id,a,b\n1,0.5,2\n2,3,"4"\n3,-1,0\n4,x,1\n"5\n5",2,2\n6,1,\n7,4,4\n'


def use(content: bytes) -> None:
    """Go on with a run, and compare the folder with one that nothing disturbed."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    with tempfile.TemporaryDirectory() as place:
        source = _put(Path(place), files)
        _explain(source, Path(place) / "out")
        _explain(source, Path(place) / "fresh")
        found, fresh = (_parts(Path(place) / name) for name in ("out", "fresh"))
        if found != fresh:
            raise AssertionError(f"rows are lost or changed: {sorted(found)}, {sorted(fresh)}")


def _put(place: Path, files: dict[str, bytes]) -> Path:
    (place / "out").mkdir()
    for name, content in files.items():
        (place / name).write_bytes(content)
    source = next(place / name for name in files if not name.startswith(_FOLDER))
    os.utime(source, ns=(_TIME, _TIME))
    return source


def _explain(source: Path, folder: Path) -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 1.0]], ["no", "yes"], feature_names=["a", "b"])
    clvq.explain_dataset(clvq.Explainer(model), source, folder, "yes", part_rows=_PART_ROWS)


def _parts(folder: Path) -> dict[str, Any]:
    from pyarrow import parquet

    return {
        path.name: parquet.ParquetFile(path).read()
        for path in folder.iterdir()
        if path.suffix == ".parquet"
    }


@cache
def _good(name: str) -> dict[str, bytes]:
    """Return a source and the folder that a whole run has made of it."""
    with tempfile.TemporaryDirectory() as place:
        source = _put(Path(place), {name: _CSV if name == "t.csv" else _parquet()})
        _explain(source, Path(place) / "out")
        made = {f"{_FOLDER}{p.name}": p.read_bytes() for p in (Path(place) / "out").iterdir()}
        return {name: source.read_bytes(), **dict(sorted(made.items()))}


def _parquet() -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({
        "id": ["u", "v", "u", None, "w", "v", "u"], "a": [0.5, 3.0, -1.0, None, 2.0, 1.0, 4.0],
        "b": [2, 4, 0, 1, 2, None, 4], "c": [[1], [], None, [2, 3], [4], [], [5]],
    })  # fmt: skip
    file = io.BytesIO()
    parquet.write_table(table, file, row_group_size=3)
    return file.getvalue()


def good() -> bytes:
    return _packed(_good("t.csv"))


def _packed(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return out.getvalue()


def draw(rng: random.Random) -> File:
    """Draw a source that is damaged, or a folder that is."""
    name = rng.choice(("t.csv", "t.parquet"))
    files = dict(_good(name))
    way = rng.choice(("source", "source", "manifest", "manifest", "parts"))
    if way == "source":
        return File(READER, f"source-{name}", _packed({name: _source(rng, name)}))
    parts = [file for file in files if file.endswith(".parquet") and file.startswith(_FOLDER)]
    if way == "manifest":
        files[_FOLDER + _MANIFEST] = _manifest(rng, files[_FOLDER + _MANIFEST])
        for part in parts:
            if rng.random() < 0.6:
                del files[part]
    else:
        _change_parts(rng, files, parts)
    return File(READER, f"{way}-{name}", _packed(files))


def _source(rng: random.Random, name: str) -> bytes:
    if rng.random() < 0.2:  # what is no dataset, or announces much
        return table_files.draw(rng).content
    if name == "t.parquet":
        return mutated_bytes(rng, _parquet())
    end, sign = rng.choice((b"\n", b"\r", b"\r\n")), rng.choice((b",", b",", b";"))
    return mutated_bytes(rng, _CSV.replace(b"\n", end).replace(b",", sign))


def _manifest(rng: random.Random, whole: bytes) -> bytes:
    way = rng.randrange(4)
    if way == 0:
        return mutated_bytes(rng, whole)
    if way == 1:
        return rng.choice((b"[" * 50_000, b'{"a":' * 50_000, b"\xff", b"", b"null", b"[]"))
    document = json.loads(whole)
    if way == 2:
        document["parts"] = mutated_value(rng, document["parts"])
    else:
        document = mutated_value(rng, document) if rng.random() < 0.8 else any_value(rng)
    return json.dumps(document).encode()


def _change_parts(rng: random.Random, files: dict[str, bytes], parts: list[str]) -> None:
    part, other = rng.choice(parts), rng.choice(parts)
    way = rng.randrange(4)
    if way == 0:
        files[part] = files[other]
    elif way == 1:
        files[f"{_FOLDER}part-{rng.randrange(9):05d}-00009.parquet"] = files[part]
    else:
        files[part] = mutated_bytes(rng, files[part])

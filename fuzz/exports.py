"""Exported models (.npz) as strangers might make them."""

from __future__ import annotations

import io
import random
import struct
import warnings
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from fuzz.mutations import NUMBERS, TEXTS, mutated_bytes
from fuzz.sandbox import File

READER = "exported model"
_WAYS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
_TYPES = ("<f8", ">f4", "<f2", "<f16", "<i8", "|u1", "|b1", "<U0", "<U1", ">U3", "<U9999999", "|S3",
          "|O", "|V8", "<c16", "<M8[ns]", "", "f8", "<f99")  # fmt: skip


def saved(value: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, np.asarray(value), allow_pickle=False)
    return file.getvalue()


def entries(**changes: Any) -> dict[str, bytes]:
    """The entries of a good file, some of them changed."""
    arrays: dict[str, Any] = {
        "format": "counterlvq-prototypes", "version": 1, "library": "sklearn-lvq",
        "kind": "GlvqModel", "prototypes": [[0.0, 0.0], [4.0, 0.0]], "labels": ["no", "yes"],
    }  # fmt: skip
    return {
        name: value if isinstance(value, bytes) else saved(value)
        for name, value in (arrays | changes).items()
    }


def packed(found: Mapping[str, bytes], way: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", way) as archive:
        warnings.simplefilter("ignore")
        for name, content in found.items():
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


def array(
    kind: str, shape: str, data: bytes = b"", *, version: int = 1, by: str = "False"
) -> bytes:
    """An array that says anything of itself."""
    line = f"{{'descr': {kind!r}, 'fortran_order': {by}, 'shape': {shape}, }}".encode()
    line += b" " * ((-len(line) - 11) % 64) + b"\n"
    size = struct.pack("<H" if version == 1 else "<I", len(line))
    return b"\x93NUMPY" + bytes([version, 0]) + size + line + data


def good() -> bytes:
    return packed(entries(probe=[[1.0, 0.0], [3.0, 1.0]], told=["no", "yes"], omegas=np.eye(2)))


def draw(rng: random.Random) -> File:
    """Draw a file: damaged bytes, damaged arrays in a whole archive, or one that announces much."""
    more = {"omegas": np.eye(2)} if rng.random() < 0.5 else {}
    more |= {"names": ["a", "b"]} if rng.random() < 0.5 else {}
    if rng.random() < 0.4:
        more |= {"probe": [[1.0, 0.0], [3.0, 1.0]], "told": ["no", "yes"]}
    found, way = entries(**more), rng.choice(_WAYS)
    which = rng.randrange(10)
    if which < 4:
        return File(READER, "bytes", mutated_bytes(rng, packed(found, way)))
    name = rng.choice(list(found))
    if which < 6:
        found[name] = mutated_bytes(rng, found[name])
        return File(READER, "arrays", packed(found, rng.choice(_WAYS[:2])))
    if which < 8:
        found[name] = _announced(rng)
        return File(READER, "described", packed(found, rng.choice(_WAYS[:2])))
    kind, craft = rng.choice(list(_CRAFTED.items()))
    return File(READER, f"crafted-{kind}", craft(rng))


def _announced(rng: random.Random) -> bytes:
    count = rng.choice((0, 1, 2, 2, 2, 3, 5, 40))
    lengths = [rng.choice((0, 1, 2, 2, 2, 3, *NUMBERS)) for _ in range(count)]
    shape = f"({', '.join(map(str, lengths))},)" if lengths else "()"
    if rng.random() < 0.1:
        shape = rng.choice(("3", "(-1, -4)", "(2.0, 2)", "(" * 300, "[2, 2]", "(True, 2)", "(2L,)"))
    data = rng.randbytes(rng.choice((0, 8, 16, 32, 64)))
    return array(rng.choice(_TYPES), shape, data, version=rng.choice((1, 1, 1, 2, 3)),
                 by=rng.choice(("False", "False", "True", "0")))  # fmt: skip


# --- files that announce or unpack to much --------------------------------------------------------


def _bomb(rng: random.Random) -> bytes:
    count = rng.choice((10**4, 10**6, 3 * 10**6))
    name = rng.choice(("prototypes", "labels", "omegas", "names", "probe", "told", "other"))
    shape = rng.choice((f"({count},)", f"(2, {count // 2})", f"({count // 2}, 2)"))
    content = array(rng.choice(("<f8", "|u1", "<U2")), shape, bytes(8 * count))
    return packed(entries(**{name: content}), rng.choice(_WAYS))


def _nothing(rng: random.Random) -> bytes:
    """Millions of values that take no byte."""
    count = rng.choice((10**7, 10**10, 2**62))
    kind = rng.choice(("<U0", "|S0", "|V0", "<f8"))
    shape = rng.choice((f"({count},)", f"({count}, 0)", f"(0, {count})"))
    name = rng.choice(("names", "labels", "prototypes", "kind", "format"))
    return packed(entries(**{name: array(kind, shape)}))


def _many(rng: random.Random) -> bytes:
    """Many prototypes, metrics or columns of zeros, which pack well."""
    count = rng.choice((1000, 100_000, 400_000))
    labels = np.arange(count) % 2 == 0
    way = rng.randrange(4)
    if way == 0:
        return packed(entries(prototypes=np.zeros((count, 1)), labels=labels))
    if way == 1:
        omegas = np.zeros((count, 1, 1))
        omegas[0] = 1.0
        return packed(entries(prototypes=np.zeros((count, 1)), labels=labels, omegas=omegas))
    if way == 2:
        return packed(entries(prototypes=np.zeros((2, count))))
    names = array("<U1", f"({count},)", bytes(4 * count))
    return packed(entries(names=names))


def _probes(rng: random.Random) -> bytes:
    """Probe rows in ties with many prototypes, or with numbers that cannot be squared."""
    count, rows = rng.choice((5, 500, 3000)), rng.choice((3, 300, 20_000))
    size = rng.choice((1.0, 1e-160, 1e160, 1.7e308))
    circle = np.array([(3, 4), (4, 3), (5, 0), (0, 5), (-3, 4)], dtype=float) / 5 * size
    points = circle[np.arange(count) % 5]
    more: dict[str, Any] = {"omegas": np.full((rng.choice((2, 400)), 2), size)}
    return packed(entries(
        prototypes=points, labels=np.arange(count) % 2, probe=np.zeros((rows, 2)),
        told=np.arange(rows) % 2, **(more if rng.random() < 0.4 else {}),
    ))  # fmt: skip


def _letters(rng: random.Random) -> bytes:
    data = rng.choice((b"\xff\xff\xff\x7f", b"\x00\xd8\x00\x00", rng.randbytes(4))) * 2
    name = rng.choice(("labels", "names", "kind", "library", "format", "told"))
    shape = rng.choice(("(2,)", "(1,)", "()", "(2, 1)"))
    return packed(entries(**{name: array(rng.choice(("<U1", ">U1", "|b1", "<f8")), shape, data)}))


def _archive(rng: random.Random) -> bytes:
    """Entries under other names, twice, many of them, or with sizes that lie."""
    found = entries()
    way = rng.randrange(4)
    if way == 0:
        texts = [text for text in TEXTS if text.isprintable()]  # others are no names in a zip file
        found |= {rng.choice(texts)[:200] + str(k): b"" for k in range(rng.choice((1, 2000)))}
        return packed(found)
    if way == 1:
        file = io.BytesIO(packed(found))
        with warnings.catch_warnings(), zipfile.ZipFile(file, "a") as archive:
            warnings.simplefilter("ignore")
            archive.writestr(f"{rng.choice(list(found))}.npy", saved(rng.choice((1, "x"))))
        return file.getvalue()
    whole = bytearray(packed(found, rng.choice(_WAYS)))
    at = whole.find(b"PK\x01\x02", rng.randrange(len(whole)))
    if at >= 0:
        place = at + rng.choice((8, 10, 16, 20, 24, 28, 42))
        whole[place : place + 4] = struct.pack("<I", rng.choice(NUMBERS) % 2**32)
    return bytes(whole)


_CRAFTED = {
    "bomb": _bomb, "nothing": _nothing, "many": _many, "probes": _probes, "letters": _letters,
    "archive": _archive,
}  # fmt: skip

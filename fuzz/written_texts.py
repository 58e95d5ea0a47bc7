"""Texts that people and programs hand over: files of columns, and certificates."""

from __future__ import annotations

import json
import random
import tempfile
from functools import cache
from pathlib import Path

import counterlvq as clvq
from fuzz.mutations import mutated_bytes, mutated_value
from fuzz.sandbox import File

COLUMNS, CERTIFICATES = "columns file", "certificate"
_TOML = b"""\
# remark
[age]
kind = "whole"
label = "years"
range = [0, 120]
change = "increase"
[job]
levels = ["clerk", "nurse", "pilot"]
labels = { clerk = "a clerk", "nurse" = 'a nurse' }
prices = [["clerk", "nurse", 3]]
default = 5
ordered = false
"""
_TOKENS = (b"a", b".", b'"b"', b"'c'", b"[", b"]", b"{", b"}", b"=", b",", b'"""', b"'''", b"#",
           b"\n", b"1e999", b"inf", b"2024-01-01", b"\\", b"\x00", b"\xff", b"[job]\n")  # fmt: skip
_FEATURES = clvq.Features(
    [clvq.Feature("age", "whole"), clvq.Feature("job", levels=["clerk", "nurse", "pilot"])]
)


def use_columns(content: bytes) -> None:
    """Read a file of columns, and say it of features."""
    from counterlvq.cli.columns_file import read_columns

    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "c.toml"
        path.write_bytes(content)
        read_columns(str(path)).checked(_FEATURES.names).of(_FEATURES)


def use_certificate(content: bytes) -> None:
    """Check a certificate file; whatever stands in it, a verdict comes out for each line."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "c.jsonl"
        path.write_bytes(content)
        for verdict in clvq.verify_certificates(path):
            str(verdict)


@cache
def certificate() -> bytes:
    features = clvq.Features([clvq.Feature("x", "whole", lower=0, upper=9), "y"])
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 1.0]], ["no", "yes"], feature_names=["x", "y"])
    explainer = clvq.Explainer(model, constraints=["x + y <= 7"], features=features)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "c.jsonl"
        explainer.explain_batch([[1.0, 0.0], [0.0, 2.0]], "yes").save_certificates(path)
        return path.read_bytes()


def good() -> list[tuple[str, bytes]]:
    return [(COLUMNS, _TOML), (CERTIFICATES, certificate())]


def draw(rng: random.Random) -> File:
    """Draw a file of columns or of certificates, damaged or going on and on."""
    if rng.random() < 0.5:
        return File(COLUMNS, "columns", _columns(rng))
    return File(CERTIFICATES, "certificate", _certificate(rng))


def _columns(rng: random.Random) -> bytes:
    way = rng.randrange(4)
    if way == 0:
        return b"".join(rng.choices(_TOKENS, k=rng.choice((5, 50, 2000))))
    if way == 1:
        begin, again, end = rng.choice((
            (b"[age]\nlabel", b".a", b" = 1"), (b"[", b"a.", b"b]"),
            (b"[age]\nlevels = ", b"[", b"]"), (b"[job]\nlabels = ", b"{a=", b"1"),
            (b"[job]\nlevels = [", b"'a',", b"]"),
            (b"", b"[age]\n", b""), (b"", b"[[a]]\n", b""), (b'[age]\nunit = """', b'""', b'"""'),
        ))  # fmt: skip
        return begin + again * rng.choice((10, 1000, 100_000)) + end
    return mutated_bytes(rng, _TOML)


def _certificate(rng: random.Random) -> bytes:
    lines = certificate().splitlines(keepends=True)
    way, at = rng.randrange(4), rng.randrange(len(lines))
    if way == 0:
        return mutated_bytes(rng, certificate())
    if way == 1:
        lines[at] = rng.choice(
            (b"{" * 10**5, b'{"a":' * 10**5, b"\0" * 10**7, b"\xff\n", b"[1" * 9)
        )
    else:
        text = json.dumps(mutated_value(rng, json.loads(lines[at])))
        lines[at] = text.encode() + b"\n"
    return b"".join(lines)

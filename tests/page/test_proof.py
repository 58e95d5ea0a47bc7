"""The checker of the page against the standalone one: sound certificates, and others."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq.certificate_files.lines import Writer, text_of
from counterlvq.certificates import check_certificate as exactly
from tests.support.certificate_mutations import mutated

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="there is no node here")

_PROGRAM = """
import { readFileSync } from "node:fs";
import { checkCertificate } from "./proof.js";
const texts = JSON.parse(readFileSync(process.argv[2], "utf8"));
console.log(JSON.stringify(texts.map(checkCertificate)));
"""


def asked(case: int):
    """A question that the page can check: one metric, real numbers, linear constraints."""
    rng = np.random.default_rng(case)
    d, p = int(rng.integers(2, 7)), int(rng.integers(2, 7))
    size = float(rng.choice([1e-3, 1.0, 1e3]))
    omegas = [None, rng.normal(size=(d, d)), rng.uniform(0.5, 2, size=d)][case % 3]
    model = clvq.PrototypeModel(size * rng.normal(size=(p, d)), [k % 2 for k in range(p)], omegas)
    cost = clvq.Euclidean() if case % 4 == 3 else clvq.Manhattan(rng.uniform(0.5, 2, d))
    rules = {
        1: ["x0 + x1 <= 3 * original(x0) + 50"],
        2: [clvq.Freeze("x0"), clvq.Bounds("x1", -500 * size, 500 * size)],
        4: [clvq.Freeze(*(f"x{j}" for j in range(d)))],
    }.get(case % 5, [])
    return clvq.Explainer(model, cost, rules), size * rng.normal(size=d)


def of_largest_changes(case: int):
    """The same with the largest change as the cost, at scales that are far apart."""
    rng = np.random.default_rng(case)
    d, p = int(rng.integers(2, 5)), int(rng.integers(2, 5))
    scales = 10.0 ** rng.integers(-6, 7, size=d)
    model = clvq.PrototypeModel(scales * rng.normal(size=(p, d)), [k % 2 for k in range(p)])
    rules = [clvq.Freeze("x0")] if case % 3 == 2 else []
    cost = clvq.Chebyshev(rng.uniform(0.5, 2, d))
    return clvq.Explainer(model, cost, rules), scales * rng.normal(size=d)


def certificate(explainer: clvq.Explainer, row: np.ndarray) -> str:
    writer = Writer(explainer.for_files(), "a test")
    line = writer.line(explainer.as_filed(explainer.explain(row)))
    return "".join(f"{text_of(part)}\n" for part in (writer.header(apart=False), line))


def leaves(item, way=()):
    if isinstance(item, dict | list):
        for key, value in item.items() if isinstance(item, dict) else enumerate(item):
            yield from leaves(value, (*way, key))
    elif isinstance(item, int | float) and not isinstance(item, bool):
        yield way


def flawed(text: str, rng: np.random.Generator) -> str:
    """Change one number, of the line or, now and then, of the header."""
    parts = [json.loads(line) for line in text.splitlines()]
    part = parts[int(rng.random() < 0.8)]
    ways = [*leaves(part)]
    way = ways[rng.integers(len(ways))]
    place = part
    for key in way[:-1]:
        place = place[key]
    value = place[way[-1]]
    others = [value + 1, -value, value * 1.01 + 1e-3, 0 * value]
    place[way[-1]] = others[rng.integers(len(others))]
    return "".join(f"{json.dumps(part)}\n" for part in parts)


def forged(text: str, rng: np.random.Generator) -> str:
    """Change one thing of any kind, and put the hashes right where the header is another."""
    header, line, _ = mutated(*map(json.loads, text.splitlines()), rng)
    return f"{json.dumps(header)}\n{json.dumps(line)}\n"


def is_verified(text: str) -> bool:
    header, line = text.splitlines()
    try:
        exactly.Certificate(exactly.parsed(header)).check(exactly.parsed(line))
    except (exactly.Refused, *exactly.TROUBLE):
        return False
    return True


def verdicts(texts: list[str], folder: Path) -> list[dict]:
    assert NODE is not None
    for name in ("proof.js", "rational.js", "digest.js"):
        text = files("counterlvq.page").joinpath(name).read_text(encoding="utf-8")
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "check.js").write_text(_PROGRAM)
    (folder / "texts.json").write_text(json.dumps(texts))
    done = subprocess.run(
        [NODE, str(folder / "check.js"), str(folder / "texts.json")],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def agreement(cases: range, mutations: int, folder: Path, drawn=asked) -> None:
    rng = np.random.default_rng(cases.start)
    sound = [certificate(*drawn(case)) for case in cases]
    kinds = (flawed, forged)
    texts = sound + [kinds[k % 2](text, rng) for text in sound for k in range(mutations)]
    found = verdicts(texts, folder)
    assert [told["verdict"] for told in found[: len(sound)]] == ["verified"] * len(sound)
    for text, told in zip(texts, found, strict=True):
        if told["verdict"] != "beyond":
            assert (told["verdict"] == "verified") == is_verified(text), (told, text)
    assert sum(told["verdict"] == "refuted" for told in found) > len(texts) // 3


def test_page_and_standalone_checker_agree(tmp_path) -> None:
    agreement(range(15), 6, tmp_path)


def test_page_and_standalone_checker_agree_on_largest_changes(tmp_path) -> None:
    agreement(range(8), 6, tmp_path, of_largest_changes)


@pytest.mark.slow
def test_page_and_standalone_checker_agree_on_many(tmp_path) -> None:
    agreement(range(100, 250), 30, tmp_path)


def test_what_the_page_cannot_check_it_says(tmp_path) -> None:
    model = clvq.PrototypeModel(
        [[0.0, 0.0], [4.0, 2.0]], ["no", "yes"], np.eye(2)[None] * [[[1]], [[2]]]
    )
    grid = clvq.Features([clvq.Feature("x0", "whole"), "x1"])
    shared = clvq.PrototypeModel([[0.0, 0.0], [4.0, 2.0]], ["no", "yes"])
    texts = []
    for explainer in (
        clvq.Explainer(model),
        clvq.Explainer(shared, features=grid),
        clvq.Explainer(shared, clvq.Manhattan(decrease=[2.0, 2.0])),
        clvq.Explainer(shared, constraints=[clvq.AtMost(1)]),
    ):
        writer = Writer(explainer, "a test")
        parts = (writer.header(apart=False), writer.line(explainer.explain([0.0, 1.0])))
        texts.append("".join(f"{text_of(part)}\n" for part in parts))
    assert [told["verdict"] for told in verdicts(texts, tmp_path)] == ["beyond"] * 4


@pytest.mark.parametrize(
    ("part", "way", "value"),
    [
        ("header", ("model", "offsets"), 0.0),
        ("header", ("model", "classes"), {}),
        ("header", ("question", "tolerance"), -1e-6),
        ("header", ("question", "cost", "switches"), {}),
        ("line", ("proof", "cells", 0, "point"), [[0.0]]),
        ("line", ("target",), [1, 1.5]),
        ("line", ("answer", "status"), "feasible or so"),
        ("line", ("made_by",), 3),
    ],
)
def test_what_has_another_shape_is_refused(tmp_path, part, way, value) -> None:
    told = map(json.loads, certificate(*asked(6)).splitlines())
    parts = dict(zip(("header", "line"), told, strict=True))
    place = parts[part]
    for key in way[:-1]:
        place = place[key]
    place[way[-1]] = value
    for key in ("model", "question"):
        whole = exactly.parsed(json.dumps(parts["header"][key]))
        parts["line"]["hashes"][key] = exactly.fingerprint(whole)
    text = "".join(f"{json.dumps(one)}\n" for one in parts.values())
    assert not is_verified(text)
    assert verdicts([text], tmp_path)[0]["verdict"] == "refuted"

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
    for name in ("proof.js", "rational.js", "json.js", "digest.js"):
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


def test_one_rival_is_overtaken_at_the_price_of_either_part(tmp_path: Path) -> None:
    """Squares that do not see a column that gains say nothing; absolute changes still do."""
    explainer = clvq.Explainer(clvq.PrototypeModel([[0.0, 0.0], [4.0, 2.0]], ["no", "yes"]))
    header, line = map(json.loads, certificate(explainer, np.zeros(2)).splitlines())
    header["question"]["cost"]["quadratic"] = {"kind": "diagonal", "values": [1.0, 0.0]}
    line["proof"] = {"cells": [{"prototype": 1, "kind": "single", "rival": 0}]}
    line["hashes"]["question"] = exactly.fingerprint(header["question"])
    texts = []
    for bound in (2.5, 2.5000001):  # 20 behind, and 8 gained by a unit
        line["answer"] = {
            "row": [2.0, 2.0], "cost": 8.0, "lower_bound": bound, "status": "feasible"
        }  # fmt: skip
        texts.append(f"{json.dumps(header)}\n{json.dumps(line)}\n")
    assert [is_verified(text) for text in texts] == [True, False]
    told = verdicts(texts, tmp_path)
    assert [each["verdict"] for each in told] == ["verified", "refuted"]


def test_cell_of_a_prototype_that_the_metric_takes_for_an_earlier_one_may_be_left_out(
    tmp_path: Path,
) -> None:
    texts = []
    for metric in ([1.0, 0.0], [[1.0, 0.0]], [1.0, 1.0]):
        W = [[0.0, 0.0], [4.0, 0.0], [4.0, 7.0], [9.0, 0.0]]
        model = clvq.PrototypeModel(W, ["no", "no", "yes", "yes"], metric)
        explainer = clvq.Explainer(model)
        header, line = map(json.loads, certificate(explainer, np.array([1.0, 0.0])).splitlines())
        cells = line["proof"]["cells"]
        line["proof"]["cells"] = [cell for cell in cells if cell["prototype"] != 2]
        texts.append(f"{json.dumps(header)}\n{json.dumps(line)}\n")
    assert [is_verified(text) for text in texts] == [True, True, False]
    told = verdicts(texts, tmp_path)
    assert [each["verdict"] for each in told] == ["verified", "verified", "refuted"]


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


def from_one_to(y: float, most: float = 2.0) -> str:
    """The way from 1 to y, where 2 is the boundary, and `most` the largest value."""
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"])
    explainer = clvq.Explainer(model, constraints=["x0 <= 3"])
    writer = Writer(explainer, "a test")
    header, line = writer.header(apart=False), writer.line(explainer.explain([1.0]))
    header["question"]["constraints"][0]["value"] = most
    line["answer"] = {"row": [y], "cost": y - 1, "lower_bound": 0.999, "status": "feasible"}
    return rehashed(header, line)


def rehashed(header: dict, line: dict) -> str:
    exact = exactly.parsed(json.dumps(header))
    line["hashes"] = {key: exactly.fingerprint(exact[key]) for key in ("model", "question")}
    return f"{json.dumps(header)}\n{json.dumps(line)}\n"


def with_classes(*names: object) -> str:
    header, line = map(json.loads, from_one_to(2 + 2**-51).splitlines())
    header["model"]["classes"] = names
    return rehashed(header, line)


def readings() -> list[tuple[str, str]]:
    """Texts of all sorts, and what is to be said of them."""
    sound = from_one_to(2 + 2**-51)
    far = from_one_to(2 + 2**-51, most=2.0**53)
    return [
        (sound, "verified"),
        (from_one_to(2 + 2**-45), "refuted"),
        (sound.replace('"version": 1', '"version": 1.0'), "verified"),
        (sound.replace('"version": 1', '"version": "1"'), "refuted"),
        (sound.replace("{", "{ ", 1).replace(", ", " ,\t"), "verified"),
        (f"\n \t\r\n{sound}\n\x0b\x0c\n", "verified"),
        (f"\N{NO-BREAK SPACE}\n{sound}", "refuted"),
        (f"\N{ZERO WIDTH NO-BREAK SPACE}{sound}", "refuted"),
        (sound.replace('"status"', '"status": "infeasible", "status"'), "refuted"),
        (sound.replace('"status"', '"stat\\u0075s": "infeasible", "status"'), "refuted"),
        (sound.replace('"target": [1]', '"target": [1.0]'), "refuted"),
        (sound.replace('"target": [1]', '"target": [1e0]'), "refuted"),
        (sound.replace('"target": [1]', '"target": [01]'), "refuted"),
        (sound.replace('"target": [1]', '"target": [1,]'), "refuted"),
        (sound.replace('"labels": [0, 1]', '"labels": [0, 1.0]'), "refuted"),
        (sound.replace('"prototype": 1', '"prototype": 1.0'), "refuted"),
        (far.replace("9007199254740992.0", "9007199254740992"), "verified"),
        (far.replace("9007199254740992.0", "9007199254740993"), "refuted"),
        (far.replace("9007199254740992.0", "9007199254740993.0"), "verified"),
        (sound.replace('"input": [1.0]', '"input": [1]'), "verified"),
        (sound.replace('"input": [1.0]', '"input": [NaN]'), "refuted"),
        (sound.replace('"input": [1.0]', '"input": [1e999]'), "refuted"),
        (sound.replace('"hashes": {', '"hashes": {"more": 1, '), "refuted"),
        (sound.replace('"made_by"', '"missing": null, "made_by"'), "refuted"),
        (sound.replace('"made_by": "', '"made_by": "\x01'), "refuted"),
        (sound.replace('"made_by": "', '"made_by": "\\u00e9\\ud83d\\ude00\\" '), "verified"),
        (sound.replace('"made_by": "', '"made_by": "\\x'), "refuted"),
        (sound + "[]\n", "refuted"),
        (with_classes("\ud800", "\ud801"), "verified"),
        (with_classes("\U0001f600", "\ufffd"), "verified"),
        (with_classes("\ud800", "\ud800"), "refuted"),
        (with_classes(1, 1.0), "verified"),
        (with_classes(True, 1), "verified"),
        (with_classes(1.0, 1.0), "refuted"),
        (with_classes(None, "yes"), "refuted"),
        (with_classes([], "yes"), "refuted"),
        (sound.replace('"made_by": "', '"made_by": "' + 10**6 * "\\n-"), "verified"),
    ]


def test_page_reads_as_strictly_as_the_standalone_checker(tmp_path) -> None:
    cases = readings()
    found = verdicts([text for text, _ in cases], tmp_path)
    for (text, verdict), told in zip(cases, found, strict=True):
        exact = [each for _, each in exactly.verdicts(iter(text.encode("utf-8").split(b"\n")))]
        is_sound = all(isinstance(each, exactly.Verdict) for each in exact)
        assert is_sound == (verdict == "verified"), (text[:2000], exact)
        assert told["verdict"] == verdict, (text[:2000], told)


def test_proofs_are_read_to_their_end(tmp_path) -> None:
    """Without rivals one cell is enough; the others are read all the same."""
    header, line = map(json.loads, from_one_to(2.0).splitlines())
    line["target"] = [0, 1]
    line["answer"] = {"row": [1.0], "cost": 0.0, "lower_bound": 0.0, "status": "feasible"}
    sound = {"kind": "bound", "prototype": 0}
    texts = []
    for other in ({}, {"rows": [[9, 1.0]]}, {"rows": [[0, 1.0], [0, 1.0]]}, {"point": ["1"]}):
        line["proof"] = {"cells": [sound, {"kind": "bound", "prototype": 1, **other}]}
        texts.append(rehashed(header, line))
    found = [told["verdict"] == "verified" for told in verdicts(texts, tmp_path)]
    assert found == [is_verified(text) for text in texts] == [True, False, False, False]

"""Certificate files: what is written, and what the standalone checker makes of it."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import counterlvq as clvq
from counterlvq.certificate_files import lines as written
from counterlvq.certificates import check_certificate as checker
from counterlvq.types import Status
from tests.support.certificate_corpus import judge_mutations, parts, saved, told
from tests.support.certificate_questions import draw

CHECKER = Path(checker.__file__)
# Kinds that are quick to explain and to check: the default suite has these.
QUICK = ("shared absolute", "shared squared", "shared mahalanobis", "shared infeasible",
         "shared flat cost", "shared margin", "grid absolute", "levels", "pipeline numbers",
         "local absolute", "steps of change", "least changes", "listed values",
         "conditions on numbers", "ranges as seen", "local least changes", "priced levels",
         "missing values")  # fmt: skip


def one_answer(folder: Path) -> Path:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 2.0]], ["no", "yes"])
    explainer = clvq.Explainer(model, constraints=["x0 + x1 <= 5", clvq.Bounds("x1", upper=1)])
    path = folder / "answer.jsonl"
    clvq.save_certificate(explainer.explain([0.5, 0.0]), path, explainer)
    return path


def checked(header: Any, line: Any) -> str:
    text = [json.dumps(header), json.dumps(line)]
    ((_, found),) = checker.verdicts(iter(text))
    return str(found)


# --- what is written ----------------------------------------------------------------------------


def test_file_has_the_keys_that_are_promised(tmp_path: Path) -> None:
    header, line = parts(one_answer(tmp_path))
    assert set(header) == {"format", "version", "model", "question"}
    assert {"input", "target", "answer", "proof", "hashes", "made_by"} == set(line)
    assert set(line["answer"]) == {"row", "cost", "lower_bound", "status"}
    assert line["made_by"] == f"counterlvq {clvq.__version__}"
    assert set(line["hashes"]) == {"model", "question"}


def test_numbers_are_the_doubles_of_the_answer(tmp_path: Path) -> None:
    path, batch = saved("shared mahalanobis", 0, tmp_path)
    for n, line in enumerate(parts(path)[1:]):
        assert np.array_equal(np.array(line["input"]), batch.original_values[n])
        assert np.array_equal(np.array(line["answer"]["row"]), batch.values[n])
        assert line["answer"]["cost"] == batch.cost[n]
        assert line["answer"]["lower_bound"] == batch.lower_bound[n]


def test_known_optimum_by_hand(tmp_path: Path) -> None:
    """Between 0 and 4 the boundary is at 2, so that 0.5 has to move by 1.5 and no less."""
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"])
    explainer = clvq.Explainer(model)
    path = tmp_path / "answer.jsonl"
    clvq.save_certificate(explainer.explain([0.5]), path, explainer)
    header, line = parts(path)
    certificate = checker.Certificate(checker.parsed(json.dumps(header)))
    verdict = certificate.check(checker.parsed(json.dumps(line)))
    assert isinstance(verdict.bound, Fraction)
    assert Fraction(3, 2) - Fraction(1, 10**9) <= verdict.bound <= Fraction(3, 2)
    for cost in (1.4, 1.6):
        line["answer"]["cost"] = cost
        assert "not what is claimed" in checked(header, line)
    line["answer"] = {"row": [1.99], "cost": 1.49, "lower_bound": 0.0, "status": "feasible"}
    assert "wished-for label" in checked(header, line)


class PartlySquared(clvq.Cost):
    """Absolute changes, and squares along one direction alone."""

    def l1_weights(self, width: int) -> np.ndarray:
        return np.ones(width)

    def l2_factor(self, width: int) -> np.ndarray:
        return np.full((1, width), 0.5)


def test_far_cells_are_ruled_out_by_either_part_of_a_cost(tmp_path: Path) -> None:
    """Squares that leave some direction free limit no gain; absolute changes do."""
    model = clvq.PrototypeModel([[0, 0], [4, 2], [0, 30], [30, 0]], ["no", "yes", "yes", "yes"])
    explainer = clvq.Explainer(model, PartlySquared())
    path = tmp_path / "both.jsonl"
    clvq.save_certificate(explainer.explain([1.0, 0.0]), path, explainer)
    assert path.read_text().count("single") == 2
    (line,) = told(path)
    assert line.startswith("VERIFIED 2 ")
    assert float(line.split()[7]) < 1e-6
    assert clvq.verify_certificates(path)[0].verified


def test_ties_go_to_the_first_prototype(tmp_path: Path) -> None:
    for labels, is_answer in ((["yes", "no"], True), (["no", "yes"], False)):
        explainer = clvq.Explainer(clvq.PrototypeModel([[0.0], [4.0]], labels))
        path = tmp_path / "tie.jsonl"
        start = 3.0 if labels[0] == "yes" else 1.0
        clvq.save_certificate(explainer.explain([start], "yes"), path, explainer)
        header, line = parts(path)
        line["answer"] = {"row": [2.0], "cost": 1.0, "lower_bound": 0.0, "status": "feasible"}
        assert ("wished-for label" not in checked(header, line)) == is_answer


@pytest.mark.parametrize("order", [(0, 2, 1), (1, 0, 2), (2, 1, 0), (2, 0, 1)])
def test_arguments_in_another_order_are_named(order: tuple[int, ...], tmp_path: Path) -> None:
    explainer = clvq.Explainer(clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"]))
    given = (explainer.explain([1.0]), tmp_path / "answer.jsonl", explainer)
    with pytest.raises(clvq.InvalidInputError, match=r"save_certificate\(counterfactual, path"):
        clvq.save_certificate(*(given[k] for k in order))
    assert not list(tmp_path.iterdir())


def test_conditions_that_can_be_read_in_two_ways_are_refused(tmp_path: Path) -> None:
    header, line = parts(one_answer(tmp_path))
    row = header["question"]["constraints"][0]
    row["new"].append(row["new"][0])
    assert "names a position twice" in checked(header, line)


@pytest.mark.parametrize("kind", QUICK)
def test_answers_are_verified_exactly_and_by_the_package(kind: str, tmp_path: Path) -> None:
    path, batch = saved(kind, 0, tmp_path)
    exact, quick = told(path), clvq.verify_certificates(path)
    lines = parts(path)
    assert len(exact) == len(quick) == len(batch)
    for n, (one, other) in enumerate(zip(exact, quick, strict=True)):
        assert one.startswith(f"VERIFIED {n + 2} cost "), one
        assert other.verified, other
        assert lines[n + 1]["answer"]["status"] == batch.status[n]
        if batch.status[n] == "optimal":
            assert float(one.split()[7]) <= lines[0]["question"]["tolerance"]


@pytest.mark.parametrize("local", [False, True], ids=["shared", "local"])
def test_values_off_their_grid_that_stay_are_verified(local: bool, tmp_path: Path) -> None:
    """What stays may stay, for the checker as for the package; so are whole days."""
    omegas = [np.diag([0.1, 1.0, 0.5]), np.diag([0.2, 0.8, 0.5])] if local else None
    names = ["savings", "jobs", "opened"]
    model = clvq.PrototypeModel([[90.0, 0.0, 0.0], [95.0, 8.0, 9.0]], ["no", "yes"], omegas, names)
    features = clvq.Features(
        [clvq.Feature("savings", step=50), clvq.Feature("jobs", decimals=1),
         clvq.Feature("opened", "date")]
    )  # fmt: skip
    explainer = clvq.Explainer(model, features=features, constraints=["savings <= 130"])
    batch = explainer.explain_batch([[83, 1.27, 3], [149, 0.5, 1], [100, 1.0, 2]], "yes")
    assert batch.status.tolist() == ["optimal"] * 3
    assert batch.values[0, 0] == 83
    path = tmp_path / "kept.jsonl"
    batch.save_certificates(path)
    assert [line.split()[0] for line in told(path)] == ["VERIFIED"] * 3
    assert all(verdict.verified for verdict in clvq.verify_certificates(path))


@pytest.mark.parametrize(
    ("feature", "constraint", "cost"),
    [
        ("n", clvq.MinChange("n", 4), 4.0),
        ("n", "n in [1, 8]", 6.0),
        ("n", "if n >= 3 then u >= 3", 4.5),
        (clvq.Feature("n", step=3, steps="of change"), "n <= 50", 3.0),
        (clvq.Feature("n", seen=(5.0, 9.0)), "u <= 50", 2.5),
    ],
)
def test_meanings_are_verified_by_hand(
    feature: Any, constraint: Any, cost: float, tmp_path: Path
) -> None:
    """From (2, 1) the other cell begins at n = 4.5, which alone costs 2.5.

    To change n by 4 at least costs 4; the next listed value is 8; to have u = 3 costs 2 more; by a
    step of 3 one gets to 5; and from below what was seen one may go up to any value.
    """
    model = clvq.PrototypeModel([[0, 0], [9, 0]], ["no", "yes"], feature_names=["n", "u"])
    features = clvq.Features([feature, "u"])
    explainer = clvq.Explainer(model, constraints=[constraint], features=features)
    path = tmp_path / "meaning.jsonl"
    clvq.save_certificate(explainer.explain([2.0, 1.0], "yes"), path, explainer)
    (found,), (quick,) = told(path), clvq.verify_certificates(path)
    assert found.startswith("VERIFIED 2 cost"), found
    assert quick.verified
    header, line = parts(path)
    answer = line["answer"]
    assert answer["status"] == "optimal"
    assert answer["cost"] == pytest.approx(cost, rel=1e-6)
    # A cheaper row that breaks the meaning is none, and a bound above the least cost is false.
    cheaper = {"row": [4.6, 1.0], "cost": 2.6, "lower_bound": 0.0, "status": "feasible"}
    said = checked(header, {**line, "answer": cheaper})
    assert said.startswith("the answer is none" if cost > 2.6 else "cost 2.6"), said
    line["answer"] = {**answer, "lower_bound": 1.01 * cost}
    assert "does not follow" in checked(header, line)


def test_unknown_bounds_are_written_as_far_as_they_are_proved(tmp_path: Path) -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 0.0]], ["no", "yes"])
    explainer = clvq.Explainer(model, time_limit=0)
    path = tmp_path / "unknown.jsonl"
    cf = explainer.explain([0.0, 0.0])
    assert cf.status == "unknown"
    clvq.save_certificate(cf, path, explainer)
    assert told(path)[0].startswith("VERIFIED 2 cost inf bound ")


@pytest.mark.parametrize("is_there", [False, True], ids=["infeasible", "feasible"])
def test_what_a_search_had_no_time_to_add_up_is_in_the_file(is_there: bool, tmp_path: Path) -> None:
    """A tree is worth what it shows, whatever its search had time to say of it."""
    model = clvq.PrototypeModel(
        [[0.0, 0.0], [10.0, 10.0]], ["no", "yes"], [np.eye(2), 1.1 * np.eye(2)]
    )
    near = [] if is_there else [clvq.MaxChange("x0", by=3), clvq.MaxChange("x1", by=3)]
    explainer = clvq.Explainer(model, constraints=near)
    cf = explainer.explain([0.0, 0.0], "yes")
    late = replace(cf, status=Status.UNKNOWN, cost=np.inf, lower_bound=0.0)
    path = tmp_path / "late.jsonl"
    clvq.save_certificate(late, path, explainer)
    (found,), (quick,) = told(path), clvq.verify_certificates(path)
    assert found.startswith("VERIFIED 2 cost inf bound "), found
    assert quick.verified
    answer = parts(path)[1]["answer"]
    assert answer["status"] == ("unknown" if is_there else "infeasible")
    if is_there:
        assert 1.0 < answer["lower_bound"] <= cf.cost


def test_an_answer_that_is_none_in_exact_arithmetic_is_not_claimed(tmp_path: Path) -> None:
    model = clvq.PrototypeModel([[0.0], [10.0]], ["no", "yes"], [[[1.0]], [[1.1]]])
    explainer = clvq.Explainer(model)
    cf = explainer.explain([0.0], "yes")
    path = tmp_path / "less.jsonl"
    with pytest.warns(UserWarning, match="claims what it shows"):
        clvq.save_certificate(replace(cf, values=cf.original_values), path, explainer)
    assert parts(path)[1]["answer"] == {
        "row": None, "cost": None, "lower_bound": 0.0, "status": "unknown",
    }  # fmt: skip
    assert told(path)[0].startswith("VERIFIED 2 cost inf bound 0 ")


def test_close_calls_of_a_foreign_model_are_marked(tmp_path: Path) -> None:
    """Where the rounding of its `predict` decides a tie, the numbers alone do not show the line."""
    marked = 0
    for seed in (2, 11):
        path, batch = saved("pipeline ties", seed, tmp_path, rows=6)
        out, (header, *lines) = told(path), parts(path)
        assert all(line.startswith("VERIFIED") for line in out)
        assert [line["answer"]["status"] for line in lines] == batch.status.tolist()
        for line, said in zip(lines, out, strict=True):
            if line.get("told"):
                marked += 1
                assert said.endswith(" as told")
                assert str(clvq.verify_certificates(path)[int(said.split()[1]) - 2]).endswith(
                    " as told"
                )
                del line["told"]
                assert not checked(header, line).startswith("cost")
    assert marked


# --- the model apart ----------------------------------------------------------------------------


def test_model_apart_holds_what_the_certificate_does_not(tmp_path: Path) -> None:
    drawn = draw("shared absolute", 1, 2)
    path, aside = tmp_path / "c.jsonl", tmp_path / "m.json"
    drawn.explainer.explain_batch(drawn.rows).save_certificates(path, model_apart=aside)
    number = repr(float(drawn.explainer.model.prototypes[0, 0]))
    assert number not in path.read_text()
    assert number in aside.read_text()
    assert all(line.startswith("VERIFIED") for line in told(path, "--model", str(aside)))
    assert told(path) == ["REFUTED 1 the model is kept apart; name its file with --model"]
    other = json.loads(aside.read_text())
    other["model"]["prototypes"][0][0] += 1.0
    aside.write_text(json.dumps(other))
    assert "its hash is another" in told(path, "--model", str(aside))[0]
    assert "its hash is another" in clvq.verify_certificates(path, aside)[0].reason


def test_model_apart_by_default_lies_beside(tmp_path: Path) -> None:
    explainer = clvq.Explainer(clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"]))
    cf, path = explainer.explain([1.0]), tmp_path / "c"
    clvq.save_certificate(cf, path, explainer, model_apart=True)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["c", "c.model"]
    with pytest.raises(clvq.InvalidInputError, match="the certificate itself"):
        clvq.save_certificate(cf, path, explainer, model_apart=path)


def test_nothing_is_left_of_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    explainer = clvq.Explainer(clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"]))
    with pytest.raises(clvq.InvalidInputError, match="expected a Counterfactual"):
        clvq.save_certificate("no answer", tmp_path / "c", explainer)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


# --- a program that stands alone ----------------------------------------------------------------


def test_checker_imports_the_standard_library_only() -> None:
    names = set()
    for node in ast.walk(ast.parse(CHECKER.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").split(".")[0])
    assert names <= sys.stdlib_module_names


def test_checker_runs_by_itself(tmp_path: Path) -> None:
    path = one_answer(tmp_path)
    alone = tmp_path / "alone.py"
    alone.write_bytes(CHECKER.read_bytes())
    run = [sys.executable, "-I", "-S", str(alone)]
    done = subprocess.run([*run, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("VERIFIED 2 cost ")
    path.write_text(path.read_text().replace('"optimal"', '"infeasible"'))
    done = subprocess.run([*run, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.startswith("REFUTED 2 ")
    assert not done.stderr


# --- what is refused ----------------------------------------------------------------------------


def hostile() -> Iterator[tuple[str, str]]:
    """Files that ask for trouble."""
    yield "empty", ""
    yield "no JSON", "certificate"
    yield "deep", "[" * 100_000
    yield "deep objects", '{"a":' * 50_000
    yield "another format", '{"format": "x"}'
    yield (
        "a later version",
        json.dumps({"format": checker.FORMAT, "version": 2, "model": {}, "question": {}}),
    )
    yield "not a number", '{"format": NaN}'
    yield "long number", '{"format": ' + "9" * 5000 + "}"
    yield "twice", '{"format": 1, "format": 2}'


@pytest.mark.parametrize(("name", "text"), list(hostile()), ids=[name for name, _ in hostile()])
def test_hostile_files_end_in_one_line(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "hostile"
    path.write_text(text)
    out = told(path)
    assert len(out) == 1
    assert out[0].startswith("REFUTED 1 ")
    assert not clvq.verify_certificates(path)[0].verified


def test_a_reader_that_goes_away_is_no_mishap(tmp_path: Path) -> None:
    path = one_answer(tmp_path)
    reads, writes = os.pipe()
    os.close(reads)
    command = [sys.executable, str(CHECKER), str(path)]
    done = subprocess.run(command, stdout=writes, stderr=subprocess.PIPE, check=False)
    os.close(writes)
    assert (done.returncode, done.stderr) == (1, b"")


def test_what_is_wrong_with_the_file_of_the_model_is_said_of_it(tmp_path: Path) -> None:
    path = one_answer(tmp_path)
    (said,) = told(path, "--model", str(path))
    assert said.startswith("REFUTED 1 the model's file cannot be read: it is no JSON")
    (tmp_path / "model.clvq").write_bytes(b"\xa0model")
    (said,) = told(path, "--model", str(tmp_path / "model.clvq"))
    assert said == "REFUTED 1 the model's file cannot be read: it is no text in UTF-8"


def test_bytes_that_are_no_text_end_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "hostile"
    path.write_bytes(bytes(range(256)))
    assert told(path)[0].startswith("REFUTED 1 ")
    assert told(tmp_path / "missing")[0].startswith("REFUTED 1 ")


def change(item: Any, path: list[Any], value: Any) -> None:
    for key in path[:-1]:
        item = item[key]
    item[path[-1]] = value


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        (["proof", "cells", 0, "kind"], "miracle", "is not known"),
        (["proof", "cells", 0, "further"], 1, "does not know"),
        (["proof", "cells"], [], "does not follow"),
        (["answer", "status"], "certain", "is not known"),
        (["answer", "lower_bound"], 1e3, "does not follow"),
        (["answer", "row"], [1e300, 1e300], "the answer is none"),
        (["answer", "row"], [0.5], "no list of 2 items"),
        (["proof", "cells", 0, "rivals"], [[1, 1.0]], "is no rival"),
        (["proof", "cells", 0, "rivals"], [[0, 1.0], [0, 2.0]], "twice"),
        (["proof", "cells", 0, "rows"], [[9, 1.0]], "is no linear condition"),
        (["hashes", "model"], "0" * 64, "a hash is another"),
        (["target"], [], "no prototype"),
    ],
)
def test_lines_are_refuted_in_words(path: list, value: Any, why: str, tmp_path: Path) -> None:
    header, line = parts(one_answer(tmp_path))
    change(line, path, value)
    assert why in checked(header, line)


def test_trees_that_are_none_are_refused(tmp_path: Path) -> None:
    header, line = parts(one_answer(tmp_path))

    def tree(*nodes: dict[str, Any]) -> str:
        line["proof"] = {"cells": [{"prototype": 1, "kind": "tree", "nodes": list(nodes)}]}
        return checked(header, line)

    cut = {"kind": "cut", "coordinate": 0, "at": 0.0}
    leaf = {"kind": "open"}
    assert "no tree" in tree({**cut, "low": 0, "high": 1}, leaf)
    assert "no tree" in tree({**cut, "low": 1, "high": 1}, leaf)
    assert "no tree" in tree(leaf, leaf)
    assert "no tree" in tree()
    assert "not known" in tree({"kind": "cut on a form"})
    assert "is no coordinate" in tree({**cut, "coordinate": 7, "low": 1, "high": 2}, leaf, leaf)
    # A long chain of cuts is no matter, and shows nothing.
    deep = [{**cut, "low": 2 * n + 1, "high": 2 * n + 2} for n in range(2000)]
    nodes = [leaf] * 4001
    for n, node in enumerate(deep):
        nodes[2 * n] = {**node, "low": 2 * n + 1, "high": 2 * n + 2}
    assert "does not follow" in tree(*nodes)


@pytest.mark.machine
def test_thousands_of_rows_end_in_time(tmp_path: Path) -> None:
    header, line = parts(one_answer(tmp_path))
    row = {"kind": "linear", "new": [[0, 1.0]], "old": [], "sense": "<=", "value": 9.0}
    header["question"]["constraints"] = [row] * 5_000
    exact = checker.parsed(json.dumps(header))
    line["hashes"] = {key: checker.fingerprint(exact[key]) for key in ("model", "question")}
    text = [json.dumps(header), json.dumps(line)]
    start = time.monotonic()
    ((_, found),) = checker.verdicts(iter(text), seconds=2.0)
    assert time.monotonic() - start < 60.0
    assert isinstance(found, str | checker.Verdict)


@pytest.mark.machine
def test_many_intervals_of_one_column_end_in_words(tmp_path: Path) -> None:
    header, line = parts(one_answer(tmp_path))
    points = [{"lower": float(n), "upper": float(n)} for n in range(8_000)]
    rule = {"kind": "values", "column": 0, "parts": points, "old": []}
    header["question"]["constraints"] = [rule, rule]
    exact = checker.parsed(json.dumps(header))
    line["hashes"] = {key: checker.fingerprint(exact[key]) for key in ("model", "question")}
    assert "is not allowed" in checked(header, line)


def test_matrices_that_are_not_semidefinite_are_refused(tmp_path: Path) -> None:
    path, _ = saved("shared mahalanobis", 0, tmp_path)
    header = parts(path)[0]
    matrix = header["question"]["cost"]["quadratic"]["values"]
    matrix[0][0] = -1.0
    assert "not positive semidefinite" in checked(header, {})


def test_ldl_without_fractions_decides_as_eigenvalues_do() -> None:
    rng = np.random.default_rng(0)
    clock = checker.Clock(60.0)
    seen = Counter()
    for _ in range(200):
        n = int(rng.integers(1, 7))
        A = rng.integers(-3, 4, size=(int(rng.integers(1, n + 2)), n))
        K = A.T @ A - (np.eye(n, dtype=int) if rng.random() < 0.4 else 0)
        least = float(np.linalg.eigvalsh(K.astype(float))[0])
        found = checker.is_semidefinite(K.tolist(), clock)
        seen[found] += 1
        assert found == (least > -1e-9), (K, least)
    assert min(seen.values()) > 20


def test_least_value_along_one_feature_is_the_least() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        a, b, w = (Fraction(int(v)) for v in rng.integers(-4, 5, size=3))
        low, high = sorted(Fraction(int(v), 2) for v in rng.integers(-6, 7, size=2))
        found = checker.least_along(a, b, w, low, high)
        grid = [low + (high - low) * Fraction(n, 64) for n in range(65)]
        grid += [Fraction(0)] * (low <= 0 <= high)
        values = [a * t * t + b * t + w * abs(t) for t in grid]
        assert found is not None
        assert found <= min(values)
        assert min(values) - found <= Fraction(1, 4)


def test_one_slope_rules_out_no_cell_of_a_local_metric(tmp_path: Path) -> None:
    """The distance of such a prototype is not linear: a slope at the input says nothing far off."""
    header, line = parts(saved("local absolute", 0, tmp_path)[0])[:2]
    labels = header["model"]["labels"]
    rival = next(k for k, label in enumerate(labels) if label not in line["target"])
    line["proof"]["cells"] = [
        {"prototype": k, "kind": "single", "rival": rival}
        for k, label in enumerate(labels)
        if label in line["target"]
    ]
    assert "local metric" in checked(header, line)


def test_curvature_that_is_kept_where_a_box_has_no_end_is_not_too_much() -> None:
    """The largest share of curvature that can be kept showed less than a smaller one."""
    total, end = checker.Sum(2), Fraction(1.371)
    a, b, c, h, g, constant = (-334071, -2364712, 1405552, 2974705, -10462859, 8719453)
    total.H = {(0, 0): Fraction(a), (0, 1): Fraction(b), (1, 1): Fraction(c)}
    total.h, total.constant, total.is_convex = [Fraction(h), Fraction(g)], Fraction(constant), False
    box: checker.Box = ([-end, -checker.INF], [end, Fraction(0)])
    least = total.least(box, [-end, Fraction(0)], checker.Clock(60.0))
    # Where the first is s, the sum is least along the second at the root of its slope, or at 0.
    s = np.linspace(-1.371, 1.371, 2001)
    t = np.minimum(0.0, -(b * s + g) / (2 * c))
    values = a * s**2 + b * s * t + c * t**2 + h * s + g * t + constant
    assert 0.9 * values.min() <= least <= values.min() * (1 + 1e-12)


# --- mutations ------------------------------------------------------------------------------------


def test_mutated_files_are_refuted_or_still_true(tmp_path: Path) -> None:
    kinds = ("shared absolute", "shared infeasible", "grid absolute")
    files = [parts(saved(kind, 100, tmp_path)[0]) for kind in kinds]
    seen = judge_mutations(files, 60, seed=0, folder=tmp_path)
    assert seen["refuted"] > 15
    assert seen["verified"] > 6


def test_rows_outside_what_was_seen_may_stay_or_come_nearer(tmp_path: Path) -> None:
    """A range ends at the input where that lies outside: 9 may go down to 3, and not up."""
    model = clvq.PrototypeModel([[0.0], [4.0], [20.0]], ["no", "yes", "no"], feature_names=["pay"])
    features = clvq.Features([clvq.Feature("pay", seen=(3.0, 5.0))])
    explainer = clvq.Explainer(model, features=features)
    path = tmp_path / "outside.jsonl"
    explainer.explain_batch([[4.5], [1.0], [13.0]], "yes").save_certificates(path)
    found, (header, *lines) = told(path), parts(path)
    assert all(line.startswith("VERIFIED") for line in found), found
    assert all(verdict.verified for verdict in clvq.verify_certificates(path))
    assert [line["answer"]["cost"] for line in lines] == pytest.approx([0, 1, 1], abs=1e-6)
    beyond = {"row": [11.9], "cost": 11.9 - 4.5, "lower_bound": 0.0, "status": "feasible"}
    assert "the answer is none" in checked(header, {**lines[0], "answer": beyond})


def test_rows_with_gaps_state_what_stands_in_for_them(tmp_path: Path) -> None:
    """The line names the gaps; what is proved is about the row with the imputer's constants."""
    X = pd.DataFrame({"pay": [1.0, np.nan, 5.0, 6.0], "age": [30.0, 40.0, 35.0, 45.0]})
    fitted = make_pipeline(SimpleImputer(), LogisticRegression()).fit(X, ["no", "no", "yes", "yes"])
    explainer = clvq.Explainer(fitted)
    asked = pd.DataFrame({"pay": [1.0, np.nan, np.inf], "age": [30.0, 31.0, 32.0]})
    batch = explainer.explain_batch(asked, "yes", on_bad_rows="report")
    assert batch.status[2] == "invalid"
    path = tmp_path / "whole.jsonl"
    batch[:2].save_certificates(path)
    assert all(line.startswith("VERIFIED") for line in told(path))
    assert all(line.verified for line in clvq.verify_certificates(path))
    header, whole, gapped = parts(path)
    assert "missing" not in whole
    assert gapped["missing"] == [0]
    assert gapped["input"][0] == X["pay"].mean()
    assert "is no column" in checked(header, {**gapped, "missing": [2]})
    for save in (batch[2:].save_certificates, batch[2:].save_vipr):
        with pytest.raises(clvq.NotSupportedError, match=r"cannot be read .column 'pay' is inf"):
            save(tmp_path / "no")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["whole.jsonl"]


def test_scores_and_scales_are_told_apart(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) + 4.0
    y = np.where(X @ [1.0, -2.0, 0.5] + rng.normal(size=60) > -2.0, "yes", "no")
    explainer = clvq.Explainer(LogisticRegression().fit(X, y))
    file = tmp_path / "scores.jsonl"
    explainer.explain_batch(X[:5]).save_certificates(file)
    header = json.loads(file.read_text().splitlines()[0])
    assert header["model"]["offsets"]["kind"] == "score up to a common shift"
    assert all(line.verified for line in clvq.verify_certificates(file))
    assert all(line.startswith("VERIFIED") for line in told(file))
    curved = make_pipeline(FunctionTransformer(np.log1p), LogisticRegression()).fit(abs(X), y)
    explainer = clvq.Explainer(curved)
    with pytest.raises(clvq.NotSupportedError, match="sees columns through log1p"):
        clvq.save_certificate(explainer.explain(abs(X[0])), tmp_path / "no.jsonl", explainer)


def test_values_that_are_excluded_on_a_grid_bound_alike_exactly_and_quickly(tmp_path: Path) -> None:
    """Of the listed values only 9 is a step of 3, and from 2 it costs 49 whatever else changes."""
    drawn = draw("local listed values", 4, 6)
    batch = drawn.explainer.explain_batch(drawn.rows[5:], drawn.target)
    path = tmp_path / "excluded.jsonl"
    batch.save_certificates(path)
    (exact,), (quick,) = told(path), clvq.verify_certificates(path)
    assert batch.status.tolist() == ["optimal"]
    assert exact.startswith("VERIFIED 2 cost 49 bound"), exact
    assert 48.9999 <= float(exact.split()[5]) <= 49.0
    assert float(exact.split()[5]) == pytest.approx(quick.bound, rel=1e-6)


@pytest.mark.parametrize("kind", ["local absolute", "grid absolute"])
def test_quick_checks_take_a_proof_by_its_words(kind: str, tmp_path: Path) -> None:
    """A bound that is called a contradiction, or charges beyond floats, show nothing to either."""
    header, *lines = parts(saved(kind, 0, tmp_path)[0])
    line = next(each for each in lines if each["answer"]["status"] == "optimal")
    changes = (
        lambda node: node.update(kind="empty"),
        lambda node: node.update(kind="open"),
        lambda node: node["charges"]["rivals"][0].__setitem__(1, 1e308),
        lambda node: node["charges"].update(point=[1e6 for _ in line["input"]]),
    )
    seen = set()
    for change in changes:
        other = json.loads(json.dumps(line))
        for cell in other["proof"]["cells"]:
            for node in cell["nodes"]:
                if node["kind"] == "bound" and node.get("charges", {}).get("rivals"):
                    change(node)
        path = tmp_path / "changed.jsonl"
        path.write_text(f"{json.dumps(header)}\n{json.dumps(other)}\n")
        (exact,), (quick,) = told(path), clvq.verify_certificates(path)
        assert quick.verified == exact.startswith("VERIFIED"), (exact, str(quick))
        seen.add(quick.verified)
    assert False in seen


@pytest.mark.parametrize("rows", [[], ["x0 <= 0.9 * x1 + 26.65", "x1 <= 0.9 * x0 - 24"]])
def test_boxes_of_local_metrics_are_those_of_the_checker(rows: list[str]) -> None:
    """The points of tangency in a file serve the boxes that the checker derives."""
    model = clvq.PrototypeModel([[0, 1], [15, 0.5]], ["no", "yes"], [[[1, 0.2]], [[0.3, 1]]])
    near = clvq.Quadratic(np.diag([0.01, 1.0]), 2.79, center=[10, 0])
    explainer = clvq.Explainer(model, clvq.Euclidean(), [near, *rows])
    row = np.array([29.5, -0.64])
    header = checker.Certificate(
        written.exact(written.Writer(explainer, "a test").header(apart=False))
    )
    x, clock = [Fraction(value) for value in row], checker.Clock(60.0)
    seen = checker.Asked(header.question, x, {1}, False, clock).root_box(Fraction(8.6))
    box = explainer.question_for(row, ("yes",)).root(8.6)
    assert seen is not None
    for ends, sides in zip(seen, (box.lower, box.upper), strict=True):
        np.testing.assert_allclose([float(end) for end in ends], sides, rtol=1e-9)


def test_vectors_that_a_singular_cost_limits() -> None:
    """``(a'delta)^2 <= stretch delta'M delta``, and `a` is the vector that was told."""
    rng, clock = np.random.default_rng(0), checker.Clock(60.0)
    for n, rank in ((2, 1), (4, 2), (4, 3), (3, 3)):
        factor = rng.integers(-3, 4, size=(rank, n))
        M, told_vector = factor.T @ factor, rng.integers(-9, 10, size=rank) @ factor
        terms = {(i, j): Fraction(int(M[i, j])) * (1 if i == j else 2)
                 for i in range(n) for j in range(i, n) if M[i, j]}  # fmt: skip
        inverse = checker.Inverse(terms, n)
        a, stretch = inverse.drawn([Fraction(int(t)) for t in told_vector], clock)
        np.testing.assert_allclose([float(t) for t in a], told_vector, atol=1e-12)
        for delta in rng.integers(-9, 10, size=(50, n)):
            along = sum(t * int(d) for t, d in zip(a, delta, strict=True))
            assert along**2 <= stretch * int(delta @ M @ delta)


@pytest.mark.slow
def test_costs_that_limit_no_column_alone_are_proved_in_files(tmp_path: Path) -> None:
    """Only the difference of two columns without an end costs something."""
    omegas = [[[0.001, 0], [1, 0.5]], [[0.001, 0], [0, 0.5]], [[0.5, 1], [-1, 1]]]
    W = [[0.8, 1000002.0], [1.3, 1000000.0], [0.2, 1000003.0]]
    features = clvq.Features([clvq.Feature("a", upper=3.0, decimals=1), clvq.Feature("b", "whole")])
    explainer = clvq.Explainer(
        clvq.PrototypeModel(W, list("nny"), omegas, ["a", "b"]),
        clvq.Mahalanobis([[1.0, -1.0], [-1.0, 1.0]]), ["a != 0.1"], features=features,
    )  # fmt: skip
    cf = explainer.explain([0.0, 1000000.0], target="y")
    path = tmp_path / "flat.jsonl"
    clvq.save_certificate(cf, path, explainer)
    assert cf.status is Status.OPTIMAL
    assert parts(path)[1]["answer"]["status"] == "optimal"
    assert told(path)[0].startswith("VERIFIED 2 cost 4.41")


def test_a_multiplier_that_is_corrected_to_nothing_wins_no_tie(tmp_path: Path) -> None:
    """One open column, and a proof that says nothing: from 0 to beyond 2 there is a way."""
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"])
    path = tmp_path / "open.jsonl"
    explainer = clvq.Explainer(model)
    clvq.save_certificate(explainer.explain([0.0]), path, explainer)
    header, line = parts(path)
    nothing = {"row": None, "cost": None, "lower_bound": None, "status": "infeasible"}
    proof = {"cells": [{"kind": "empty", "prototype": 1, "rivals": [[0, 1.0]]}]}
    assert "does not show" in checked(header, {**line, "answer": nothing, "proof": proof})


@pytest.mark.parametrize("names", [["no", "no"], ["no", None], ["no", {}]], ids=str)
def test_names_that_cannot_be_told_apart_are_refused(names: list[Any], tmp_path: Path) -> None:
    header, line = parts(one_answer(tmp_path))
    header["model"]["classes"] = names
    assert "told apart" in checked(header, line)


def test_a_file_without_answers_verifies_nothing(tmp_path: Path) -> None:
    path = one_answer(tmp_path)
    path.write_text(path.read_text().splitlines()[0] + "\n")
    assert told(path) == ["REFUTED 1 there is no answer in it"]
    assert [verdict.reason for verdict in clvq.verify_certificates(path)] == [
        "there is no answer in it"
    ]


def hashed(header: Any, line: Any) -> Any:
    """Return the line with the hashes of this header."""
    exact = checker.parsed(json.dumps(header))
    hashes = {key: checker.fingerprint(exact[key]) for key in ("model", "question")}
    return {**line, "hashes": hashes}


def test_a_grid_finer_than_doubles_makes_no_wide_box_one_row(tmp_path: Path) -> None:
    """At 3 2^59 doubles are 256 apart, and 512 to the right there is an answer."""
    header, line = parts(one_answer(tmp_path))
    x = 3 * 2.0**59
    column = {"kind": "grid", "name": "a", "lower": None, "upper": None, "step": 1, "parts": 1}
    cost = {"weights": [1], "switches": [], "quadratic": None}
    header["model"] |= {"labels": [1, 0, 0], "prototypes": [[x + 1024], [x], [x + 1792]]}
    header["model"] |= {"metric": {"kind": "plain"}, "offsets": None, "map": None}
    header["question"] |= {"columns": [column], "cost": cost, "constraints": [], "margin": 0}
    line = hashed(header, {**line, "input": [x], "target": [1]})
    nearer = {"row": [x + 512], "cost": 512.0, "lower_bound": 0.0, "status": "feasible"}
    tree = {"prototype": 0, "kind": "tree", "nodes": [{"kind": "lost", "cap": 1500}]}
    best = {"row": [x + 1280], "cost": 1280.0, "lower_bound": 1280.0, "status": "optimal"}
    assert checked(header, {**line, "answer": nearer, "proof": {"cells": []}}).startswith("cost")
    assert "does not follow" in checked(
        header, {**line, "answer": best, "proof": {"cells": [tree]}}
    )


@pytest.mark.parametrize("is_blank", [True, False])
def test_nothing_hides_behind_a_line_that_is_too_long(
    is_blank: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spaces without an end, by themselves or behind an answer: what follows is not read."""
    path = one_answer(tmp_path)
    header, line = path.read_text().splitlines()
    monkeypatch.setattr(checker, "PIECE", 1 << 12)
    monkeypatch.setattr(checker, "LONGEST_LINE", 1 << 14)
    before = f"{line}\n" if is_blank else line
    path.write_text(f"{header}\n{before}{' ' * (1 << 15)}{line.replace('optimal', 'infeasible')}\n")
    *_, last = told(path)
    assert last.endswith("it is longer than 16384 bytes")
    assert checker.main([str(path)], say=lambda _: None) == 1
    assert str(clvq.verify_certificates(path)[-1]) == last


def test_many_rules_about_one_column_look_at_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header, line = parts(one_answer(tmp_path))
    anything = [{"lower": None, "upper": None}]
    rule = {"kind": "values", "column": 0, "parts": anything, "old": []}
    header["question"]["constraints"] = [rule] * 400
    certificate = checker.Certificate(checker.parsed(json.dumps(header)))
    certificate.seconds = 0.5  # for the line alone: a busy machine may take that for the header
    met: list[Any] = []

    def slowly(_: Any, pieces: Any) -> None:
        met.append(pieces)
        time.sleep(0.01)

    monkeypatch.setattr(checker.Allowed, "meet", slowly)
    with pytest.raises(checker.Refused, match="see --seconds"):
        certificate.check(checker.parsed(json.dumps(hashed(header, line))))
    assert len(met) < 100


def crowded(kind: str, count: int) -> tuple[Any, Any, int]:
    """A question, and a proof that charges `count` times; and how much there is of the other."""
    d = 40
    plain = {"kind": "plain"}
    cell: dict[str, Any] = {"kind": "bound", "prototype": 1}
    cost: dict[str, Any] = {"weights": [1.0] * d, "switches": [], "quadratic": None}
    rules, metric, others, size = list[Any](), plain, 0, d
    if kind == "pairs":
        cell["pairs"] = [[0, 1, 1.0]] * count
    elif kind == "neighbours":
        size = 2_000
        points = [{"lower": float(k), "upper": float(k)} for k in range(size)]
        rules = [{"kind": "values", "column": 0, "parts": points, "old": []}]
        cell["neighbours"] = [["first", 0, 1.0]] * count
    elif kind == "pulls":
        cost |= {"weights": [0.0] * d, "quadratic": {"kind": "diagonal", "values": [2.0] * d}}
        cell["from_low"] = [[0, [1.0] * d]] * count
    else:
        metric = {"kind": "shared", "factor": np.eye(d).tolist()}
        others = count - 1
        cell["rivals"] = [[k, 1e-9] for k in range(count + 1) if k != 1]
    row = [0.0] * (d - 1)
    model = {"classes": ["a", "b"], "labels": [0, 1] + [0] * others, "metric": metric}
    model |= {"prototypes": [[0.0, *row], [4.0, *row]] + [[-k - 1.0, *row] for k in range(others)]}
    columns = [{"name": f"c{j}", "kind": "real", "lower": None, "upper": None} for j in range(d)]
    question = {"columns": columns, "cost": cost, "constraints": rules}
    header = {"format": "counterlvq certificate", "version": 1}
    header |= {"model": model | {"offsets": None, "map": None}}
    header |= {"question": question | {"margin": 0, "tolerance": 1e-6}}
    price = 18.0 if kind == "pulls" else 3.0
    answer = {"row": [3.0, *row], "cost": price, "lower_bound": 0.0, "status": "feasible"}
    line = {"input": [0.0, *row], "target": [1], "answer": answer, "proof": {"cells": [cell]}}
    return header, hashed(header, line | {"made_by": "a test"}), size


@pytest.mark.parametrize("kind", ["pairs", "neighbours", "pulls", "rivals"])
def test_work_that_is_a_product_of_two_counts_looks_at_the_clock(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = list[int]()
    monkeypatch.setattr(checker.Clock, "look", lambda _: looks.append(1))

    def taken(count: int) -> int:
        header, line, _ = crowded(kind, count)
        certificate = checker.Certificate(checker.parsed(json.dumps(header)))
        asked = certificate.read(checker.parsed(json.dumps(line)))[1]
        cap = Fraction(line["answer"]["cost"])
        box = asked.root_box(cap)
        assert box is not None
        told = asked.proof(checker.parsed(json.dumps(line["proof"])))["cells"][0]
        looks.clear()
        asked.summed(1, told, box, cap, with_cost=False)
        return len(looks)

    size, (few, many) = crowded(kind, 1)[2], (taken(50), taken(150))
    # Each is looked at, and none takes a walk through all there is of the other; pulls are long.
    assert 100 <= many - few <= 100 * (2 * size + 2 if kind == "pulls" else 8)


@pytest.mark.parametrize("step", [0, 1, 3])
def test_first_allowed_changes_are_those_of_all_pieces(step: int) -> None:
    """Each piece by itself, and the first of what they have: without their order."""
    rng, clock = np.random.default_rng(step), checker.Clock(60.0)
    for _ in range(150):
        start = Fraction(int(rng.integers(-4, 5)), int(rng.integers(1, 3)))
        column = checker.Column(-checker.INF, checker.INF, step=Fraction(step))
        allowed = checker.Allowed(start, column, clock)
        for _ in range(int(rng.integers(0, 3))):
            ends = np.sort(rng.integers(-20, 20, size=(int(rng.integers(1, 6)), 2)), axis=1)
            nothing = Fraction(0)
            allowed.meet([(Fraction(int(a), 2), Fraction(int(b), 2), nothing, nothing)
                          for a, b in ends])  # fmt: skip
        alone = []
        for piece in allowed.pieces:
            alone.append(checker.Allowed(start, column, clock))
            alone[-1].pieces = alone[-1].wide = [piece]
        for delta in [Fraction(n, 4) for n in range(-50, 51, 3)] + [-checker.INF, checker.INF]:
            for way, first in ((1, min), (-1, max)):
                found = [one.snap(delta, way) for one in alone] + [way * checker.INF]
                assert allowed.snap(delta, way) == first(found)
                if isinstance(delta, Fraction) and not step:
                    inside = [a for a, b in allowed.pieces
                              if a <= delta <= b and delta != (b if way > 0 else a)]  # fmt: skip
                    beyond = allowed.snap(delta + way * checker.TINY, way)
                    assert allowed.beyond(delta, way) == (delta if inside else beyond)


def test_numbers_are_read_by_the_clock() -> None:
    text = json.dumps([0.5] * 10)
    assert len(checker.parsed(text, checker.Clock(60.0))) == 10
    clock = checker.Clock(60.0)
    clock.end = -checker.INF
    with pytest.raises(checker.Refused, match="see --seconds"):
        checker.parsed(text, clock)


def test_implications_of_nothing_are_refused_alike(tmp_path: Path) -> None:
    path = one_answer(tmp_path)
    header, line = parts(path)
    when = {"kind": "values", "column": 0, "parts": [{"lower": 0.0, "upper": 9.0}], "old": []}
    header["question"]["constraints"] = [{"kind": "implies", "when": when, "then": []}]
    path.write_text(f"{json.dumps(header)}\n{json.dumps(hashed(header, line))}\n")
    assert told(path) == ["REFUTED 1 an implication has nothing in its 'then'"]
    assert [*map(str, clvq.verify_certificates(path))] == told(path)


def test_equalities_of_an_if_give_way_alike_in_answers_and_bounds(tmp_path: Path) -> None:
    """Where a metric weighs the frozen column, missing it by 2^-40 would be much cheaper."""
    at, weight = 1e3, 1e4
    model = clvq.PrototypeModel(
        [[0.0, at], [4.0, at + 4.0 / weight]],
        ["no", "yes"],
        omegas=np.diag([1.0, weight]),
        feature_names=["a", "b"],
    )
    rule = clvq.If(clvq.Bounds("a", upper=1e6), clvq.Freeze("b"))
    explainer = clvq.Explainer(model, clvq.Manhattan(), [rule])
    cf = explainer.explain([0.1, at], target="yes")
    path = tmp_path / "if.jsonl"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clvq.save_certificate(cf, path, explainer)
    header, line = parts(path)
    assert cf.status is Status.OPTIMAL
    assert line["answer"]["status"] == "optimal"
    assert told(path)[0].startswith("VERIFIED 2")
    # Cheaper than the bound, nearer to "yes", and off by three quarters of 2^-40 of the numbers.
    b = at + 1.5 * at * 2.0**-40
    a = 4.0 - (b - at) * weight + 1e-9
    cost = (a - 0.1) + (b - at)
    assert cost < cf.lower_bound
    assert model.predict([[a, b]])[0] == "yes"
    cheaper = {"row": [a, b], "cost": cost, "lower_bound": 0.0, "status": "feasible"}
    line = {**line, "answer": cheaper, "proof": {"cells": []}}
    assert "linear condition 0 does not hold" in checked(header, line)
    path.write_text(f"{json.dumps(header)}\n{json.dumps(line)}\n")
    assert "linear condition 0 does not hold" in str(clvq.verify_certificates(path)[0])


def test_a_held_column_beyond_its_end_by_rounding_is_held_and_not_gone(tmp_path: Path) -> None:
    """The input may stay a last digit above an end: holding it there leaves all that it may do."""
    header, line = parts(one_answer(tmp_path))
    header["model"]["prototypes"] = [[0.0, 0.0], [4.0, 0.0]]
    header["question"]["columns"][1]["upper"] = 1.0
    anything = [{"lower": None, "upper": None}]
    header["question"]["constraints"] = [
        {"kind": "at most", "count": 1, "columns": [0, 1]},
        {"kind": "values", "column": 0, "parts": anything, "old": []},
    ]
    line = hashed(header, {**line, "input": [0.5, 1.0 + 2.0**-52]})
    cost = {"row": [3.0, 1.0 + 2.0**-52], "cost": 2.5, "lower_bound": 0.0, "status": "feasible"}
    assert checked(header, {**line, "answer": cost, "proof": {"cells": []}}).startswith("cost 2.5")
    none = {"row": None, "cost": None, "lower_bound": None, "status": "infeasible"}
    nodes = [
        {"kind": "count", "column": 1, "held": 1, "changed": 2},
        {"kind": "cells", "cells": [{"kind": "empty", "prototype": 1}]},
        {"kind": "cells", "cells": [{"kind": "single", "prototype": 1, "rival": 0}]},
    ]
    found = checked(header, {**line, "answer": none, "proof": {"counted": nodes}})
    assert "does not show that there is no answer" in found


def test_ways_of_alternatives_are_filed_by_who_was_asked(tmp_path: Path) -> None:
    """Ways of `alternatives` are proved in questions of their own, which `asked` states."""
    rng = np.random.default_rng(7)
    model = clvq.PrototypeModel(rng.normal(size=(6, 4)), ["a", "b", "c"] * 2)
    explainer, path = clvq.Explainer(model), tmp_path / "way.jsonl"
    found = explainer.alternatives(rng.normal(size=4), count=3)
    assert len(found.ways) == 3
    for n, (way, asked) in enumerate(zip(found.ways, found.asked, strict=False)):
        if n:
            with pytest.raises(clvq.InvalidInputError, match="expected the Explainer that gave it"):
                clvq.save_certificate(way, path, explainer)
            assert not path.exists()
        clvq.save_certificate(way, path, asked)
        assert [str(verdict)[:8] for verdict in clvq.verify_certificates(path)] == ["VERIFIED"]
        path.unlink()

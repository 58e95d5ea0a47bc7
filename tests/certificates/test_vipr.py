"""Proofs in the format of VIPR, by a reader that shares no code with the writer."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq import Feature, Features
from tests.support.vipr_reader import Proved, RefusedError, proved


def written(tmp_path: Path, explainer: clvq.Explainer, rows: list[list[float]]) -> list[dict]:
    """The index of a folder, each cell with what its file proves."""
    batch = explainer.explain_batch(rows)
    batch.save_vipr(tmp_path / "proofs")
    lines = (tmp_path / "proofs" / "index.jsonl").read_text().splitlines()
    index = [json.loads(line) for line in lines]
    for line, status in zip(index, batch.status, strict=True):
        line["status"] = str(status)
        for cell in line["cells"]:
            cell["text"] = (tmp_path / "proofs" / cell["file"]).read_text()
            cell["proved"] = proved(cell["text"])
    return index


def real_question() -> tuple[clvq.Explainer, list[list[float]]]:
    rng = np.random.default_rng(3)
    model = clvq.PrototypeModel(rng.normal(size=(6, 4)), [0, 1, 2] * 2, rng.normal(size=(4, 4)))
    explainer = clvq.Explainer(
        model, clvq.Manhattan([1.0, 0.3, 2.0, 0.7]),
        [clvq.Freeze("x3"), "x0 + x1 <= 1.5", "x2 <= original(x2) + 0.5"],
    )  # fmt: skip
    return explainer, rng.normal(size=(4, 4)).tolist()


def whole_question() -> tuple[clvq.Explainer, list[list[float]]]:
    rng = np.random.default_rng(5)
    features = Features([Feature("a", "whole", lower=0, upper=9), Feature("b", step=2), "c"])
    model = clvq.PrototypeModel(
        rng.integers(0, 9, size=(6, 3)).astype(float), [0, 1] * 3, rng.normal(size=(3, 3)),
        feature_names=["a", "b", "c"],
    )  # fmt: skip
    rows = np.column_stack([rng.integers(0, 9, 4), 2 * rng.integers(0, 4, 4), rng.normal(size=4)])
    explainer = clvq.Explainer(model, constraints=["a + b <= 11"], features=features)
    return explainer, rows.tolist()


def test_bounds_of_cells_are_proved_and_close_to_the_cost(tmp_path: Path) -> None:
    for at, (explainer, rows) in enumerate((real_question(), whole_question())):
        folder = tmp_path / str(at)
        folder.mkdir()
        for line in written(folder, explainer, rows):
            assert line["status"] == "optimal"
            bounds = [cell["proved"].lower for cell in line["cells"]]
            stated = [cell["bound"] for cell in line["cells"]]
            assert [None if b is None else float(b) for b in bounds] == [
                None if b == "infeasible" else b for b in stated
            ]
            least = min(float(b) for b in bounds if b is not None)
            assert line["minimum"] == least
            assert line["cost"] * (1 - 1e-6) <= least <= line["cost"] * (1 + 1e-12)


def test_every_prototype_of_the_target_has_its_cell(tmp_path: Path) -> None:
    explainer, rows = real_question()
    labels = explainer.model.labels
    for line in written(tmp_path, explainer, rows):
        expected = [k for k, label in enumerate(labels) if label in line["target"]]
        assert [cell["prototype"] for cell in line["cells"]] == expected


def test_problem_is_that_of_the_cell(tmp_path: Path) -> None:
    """Its rows hold just where the prototype is at least as near and the constraints hold."""
    explainer, rows = real_question()
    index = written(tmp_path, explainer, rows)
    rng = np.random.default_rng(0)
    x = np.array(rows[0])
    for cell in index[0]["cells"]:
        found: Proved = cell["proved"]
        for _ in range(50):
            y = x + rng.normal(size=4) * rng.choice([0.1, 1.0])
            y[3] = x[3] if rng.random() < 0.8 else y[3]
            scores = explainer.model.distances(y[None, :])[0]
            labels = explainer.model.labels
            rivals = [k for k, label in enumerate(labels) if label not in index[0]["target"]]
            inside = all(scores[cell["prototype"]] <= scores[k] for k in rivals)
            inside &= y[0] + y[1] <= 1.5 and y[2] <= x[2] + 0.5 and y[3] == x[3]
            moved = [abs(Fraction(a) - Fraction(b)) for a, b in zip(y, x, strict=True)]
            point = [*map(Fraction, y), *moved]
            assert _holds(found, point) == inside
            assert np.isclose(
                float(sum(a * point[at] for at, a in found.objective.items())),
                explainer.cost.value(y - x),
            )


def _holds(found: Proved, point: list[Fraction]) -> bool:
    for row in found.constraints:
        left = sum(a * point[at] for at, a in row.terms.items())
        if (row.sense != "L" and left < row.right) or (row.sense != "G" and left > row.right):
            return False
    return True


def test_infeasible_cells_end_in_an_absurdity(tmp_path: Path) -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 0.0], [9.0, 1.0]], ["no", "yes", "yes"])
    explainer = clvq.Explainer(model, constraints=["x0 <= 1", "x0 + x1 <= 2"])
    (line,) = written(tmp_path, explainer, [[0.0, 0.0]])
    assert line["status"] == "infeasible"
    assert line["minimum"] == "infeasible"
    assert [cell["proved"].lower for cell in line["cells"]] == [None, None]


@pytest.mark.parametrize("question", [real_question, whole_question])
def test_mutated_derivations_are_refused_or_still_true(tmp_path: Path, question) -> None:
    explainer, rows = question()
    index = written(tmp_path, explainer, rows[:2])
    rng = np.random.default_rng(1)
    refused = 0
    cells = [cell for line in index for cell in line["cells"]]
    for _ in range(300):
        cell = cells[int(rng.integers(len(cells)))]
        head, mark, steps = cell["text"].partition("RTP")
        tokens = re.split(r"(\s+)", steps)
        places = [n for n, token in enumerate(tokens) if re.fullmatch(r"-?\d+(/\d+)?", token)]
        at = places[int(rng.integers(len(places)))]
        value = Fraction(tokens[at])
        tokens[at] = str([value + 1, -value, value * 2, value + Fraction(1, 7)][rng.integers(4)])
        try:
            found = proved(head + mark + "".join(tokens))
        except RefusedError:
            refused += 1
            continue
        # What is still accepted claims no more than the cheapest point of the cell costs.
        if found.lower is not None and cell["proved"].lower is not None:
            assert found.lower <= cell["proved"].lower * Fraction(1 + 1e-6) + Fraction(1, 10**9)
    assert refused > 150


def test_what_the_format_cannot_say_is_refused(tmp_path: Path) -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 0.0]], ["no", "yes"])
    batch = clvq.Explainer(model, clvq.Euclidean()).explain_batch([[0.0, 0.0]])
    with pytest.raises(clvq.NotSupportedError, match="the cost has squares"):
        batch.save_vipr(tmp_path / "proofs")
    steps = Features([Feature("x0", step=5), "x1"])
    batch = clvq.Explainer(model, features=steps).explain_batch([[1.0, 0.0]])
    with pytest.raises(clvq.NotSupportedError, match="off its grid"):
        batch.save_vipr(tmp_path / "proofs")
    # What counts as a value of the grid may stay off it: an answer of 2 beside a minimum of 3.
    steps, x = Features([Feature("n", step=1000), Feature("r", "whole")]), 1000.0 * 2**35
    near = clvq.PrototypeModel([[x, 0.0], [x, 4.0]], ["no", "yes"], feature_names=["n", "r"])
    for at in (x + 1, x - 1):
        batch = clvq.Explainer(near, features=steps).explain_batch([[at, 0.0]])
        with pytest.raises(clvq.NotSupportedError, match="the column 'n' of the input is off"):
            batch.save_vipr(tmp_path / "proofs")
    # Beyond 2^53 doubles are 2 apart: every other multiple of 3 is none.
    x = 3.0 * (2**53 // 3)
    thirds = clvq.PrototypeModel([[x], [x + 8]], ["no", "yes"], feature_names=["n"])
    batch = clvq.Explainer(thirds, features=Features([Feature("n", step=3)])).explain_batch([[x]])
    with pytest.raises(clvq.NotSupportedError, match="beyond 2\\^53"):
        batch.save_vipr(tmp_path / "proofs")
    assert list(tmp_path.iterdir()) == []
    folder = tmp_path / "there"
    folder.mkdir()
    with pytest.raises(clvq.InvalidInputError, match="is there already"):
        clvq.Explainer(model).explain_batch([[0.0, 0.0]]).save_vipr(folder)

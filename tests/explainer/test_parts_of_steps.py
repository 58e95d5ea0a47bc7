"""Steps that are parts of 1, such as 0.5, against enumeration, in files and with their proofs."""

from __future__ import annotations

import io
import itertools
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq import Feature, Features, PrototypeModel
from tests.support.quick import seeds


def allowed(step: Fraction, way: str, x: Fraction) -> set[Fraction]:
    """The value itself, and those on the steps from 0 to 4."""
    start = x if way == "of change" else Fraction(0)
    values = {start + k * step for k in range(-40, 41)}
    return {value for value in values if 0 <= value <= 4} | {x}


@pytest.mark.parametrize("seed", seeds(60, quick=6))
def test_answers_are_the_cheapest_of_all_values(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    # Floats hold all of these exactly, so that a tie is the same one for the oracle.
    steps = [Fraction(str(rng.choice(["0.5", "0.25", "1.5", "2.5"]))) for _ in "uv"]
    ways = [str(way) for way in rng.choice(["of value", "of change"], 2)]
    features = Features(
        Feature(name, step=float(step), steps=way, lower=0, upper=4)
        for name, step, way in zip("uv", steps, ways, strict=True)
    )
    omegas: Any = rng.integers(-2, 3, (2, 2)) + 2.0 * np.eye(2)
    prototypes = rng.integers(0, 17, (3, 2)) / 4.0
    model = PrototypeModel(prototypes, ["a", "b", "c"], omegas, ["u", "v"])
    weights = rng.integers(1, 4, 2).tolist()
    explainer = clvq.Explainer(model, clvq.Manhattan(weights), features=features)
    rows = rng.integers(0, 33, (4, 2)) / 8.0
    for target in "abc":
        batch = explainer.explain_batch(rows, target=target)
        for row, cf in zip(rows, batch, strict=True):
            x = [Fraction(repr(float(value))) for value in row]
            points = list(itertools.product(*map(allowed, steps, ways, x)))
            said = model.predict([[float(value) for value in point] for point in points])
            costs = [
                sum(w * abs(y - b) for w, y, b in zip(weights, point, x, strict=True))
                for point, label in zip(points, said, strict=True)
                if label == target
            ]
            assert cf.status is (clvq.Status.OPTIMAL if costs else clvq.Status.INFEASIBLE)
            if costs:
                assert cf.cost == pytest.approx(float(min(costs)), rel=1e-9, abs=1e-12)
                assert model.predict(cf.x[None])[0] == target
        path = tmp_path / f"{target}.jsonl"
        batch.save_certificates(path)
        assert all(verdict.verified for verdict in clvq.verify_certificates(path))


def test_a_model_file_keeps_them() -> None:
    model = PrototypeModel([[0.0], [4.0]], ["a", "b"], feature_names=["u"])
    features = Features([Feature("u", step=0.5, steps="of change")])
    file = io.BytesIO()
    clvq.save(model, file, features=features)
    file.seek(0)
    assert clvq.load(file).features == features


def test_numbers_beyond_what_floats_tell_apart_are_refused() -> None:
    model = PrototypeModel([[0.0], [4.0]], ["a", "b"], feature_names=["u"])
    explainer = clvq.Explainer(model, features=Features([Feature("u", step=0.5)]))
    with pytest.raises(clvq.InvalidInputError, match="Declare longer steps"):
        explainer.explain([1e16], target="a")


def test_they_are_shown_as_they_are_written() -> None:
    model = PrototypeModel([[0.0], [39.5]], ["a", "b"], feature_names=["u"])
    features = Features([Feature("u", step=0.5, unit="kg", label="your weight")])
    explainer = clvq.Explainer(model, features=features)
    text = explainer.explain([22.3], target="a").text()
    assert (
        text
        == "The answer would have been a if your weight were 2.8 lower (19.5 instead of 22.3 kg)."
    )
    frozen = clvq.Explainer(model, constraints=["u >= 19.1", "u <= 19.4"], features=features)
    said = frozen.explain([30.0], target="a").text()
    assert "changes in steps of 0.5" in said

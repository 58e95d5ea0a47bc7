"""Eq. 1 as it is minimised, against ceml's definition written out anew."""

from __future__ import annotations

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq_paper.equation import OPTIMISERS, STRENGTHS, objective_of, search


def model_of(kind: str, rng: np.random.Generator) -> clvq.PrototypeModel:
    prototypes = rng.normal(size=(6, 4))
    labels = ["c", "a", "b", "a", "c", "b"]
    omegas = {
        "plain": None,
        "shared": rng.normal(size=(3, 4)),
        "local": list(rng.normal(size=(6, 4, 4))),
        "ranks": [rng.normal(size=(1 + k % 3, 4)) for k in range(6)],
    }[kind]
    return clvq.PrototypeModel(prototypes, labels, omegas)


def by_definition(model, x, y, target, strength) -> float:
    """min over target prototypes of (y - w)' M (y - w), plus C times the sum of |y - x|."""
    distances = []
    for k, label in enumerate(model.labels):
        if label == target:
            if model.omegas is None:
                omega = np.eye(len(x))
            else:
                omega = model.omegas[k] if model.is_local else model.omegas
            d = y - model.prototypes[k]
            distances.append(d @ (omega.T @ omega) @ d)
    return min(distances) + strength * sum(abs(a - b) for a, b in zip(y, x, strict=True))


@pytest.mark.parametrize("kind", ["plain", "shared", "local", "ranks"])
@pytest.mark.parametrize("target", ["a", "b", "c"])
def test_objective_is_the_one_that_ceml_states(kind: str, target: str) -> None:
    rng = np.random.default_rng(3)
    model, x = model_of(kind, rng), rng.normal(size=4)
    for free in (np.ones(4, bool), np.array([True, False, True, False])):
        for strength in STRENGTHS:
            objective = objective_of(model, x, target, free, strength)
            for _ in range(5):
                y = np.where(free, rng.normal(size=4) * 3, x)
                expected = by_definition(model, x, y, target, strength)
                assert objective(y[free]) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", list(OPTIMISERS))
def test_search_gives_a_point_of_the_target_and_leaves_the_rest_alone(name: str) -> None:
    rng = np.random.default_rng(5)
    model, free = model_of("local", rng), np.array([True, True, True, False])
    for target in model.classes:
        x = rng.normal(size=4)
        y = search(model, x, target, free, OPTIMISERS[name], 7)
        again = search(model, x, target, free, OPTIMISERS[name], 7)
        np.testing.assert_array_equal(y, again)
        if np.isfinite(y).all():
            assert model.predict(y[None, :])[0] == target
            assert y[3] == x[3]


def test_first_strength_that_works_ends_the_search() -> None:
    """A strong C keeps the search at x, a weaker one lets it go; the weakest is never tried."""
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"])
    tried = []

    def optimiser(objective, start, seed):
        # The slope at x tells the strength: d/dy of (y - 4)^2 at 1 is -6.
        tried.append(objective(start + 1e-6) - objective(start) + 6e-6)
        return np.array([3.0]) if len(tried) == 3 else start

    found = search(model, np.array([1.0]), "yes", np.array([True]), optimiser, 0)
    assert found.tolist() == [3.0]
    np.testing.assert_allclose(np.array(tried) * 1e6, STRENGTHS[:3], atol=1e-3)


def test_nothing_found_is_said() -> None:
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"])
    stay = search(model, np.array([1.0]), "yes", np.array([True]), lambda f, x, seed: x, 0)
    assert np.isnan(stay).all()

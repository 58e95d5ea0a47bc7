"""Nearest prototypes of many rows, against distances in rational numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq.batch.nearest import nearest_of_many
from counterlvq.numeric.nearest_kernel import nearest_rows
from tests.support.quick import seeds


def exactly(model: clvq.PrototypeModel, x: np.ndarray) -> int:
    """The first of the nearest prototypes, by fractions from the numbers that the user gave."""
    metric = np.eye(x.size) if model.omegas is None else np.atleast_2d(model.omegas)
    if model.diagonal is not None:
        metric = np.diag(model.diagonal)
    rows = [[Fraction(float(entry)) for entry in row] for row in metric]
    best, at = None, -1
    for k, w in enumerate(model.prototypes):
        gap = [Fraction(float(a)) - Fraction(float(b)) for a, b in zip(x, w, strict=True)]
        far = sum(
            (sum(f * g for f, g in zip(row, gap, strict=True)) ** 2 for row in rows), Fraction()
        )
        if model.offsets is not None:
            far += Fraction(float(model.offsets[k]))
        if best is None or far < best:
            best, at = far, k
    return at


def drawn(seed: int) -> tuple[clvq.PrototypeModel, np.ndarray]:
    """A model of any kind of shared metric, and rows of which many are ties or nearly so."""
    rng = np.random.default_rng(seed)
    d, p = int(rng.integers(1, 6)), int(rng.integers(2, 40))
    scale = 10.0 ** rng.integers(-6, 7)
    whole = seed % 3 == 0  # a lattice, where ties abound
    W = rng.integers(-3, 4, size=(p, d)).astype(float) if whole else rng.normal(size=(p, d))
    omegas = [None, rng.normal(size=d), rng.normal(size=(int(rng.integers(1, 4)), d))][seed % 4 % 3]
    offsets = rng.random(p) if seed % 5 == 1 else None
    W = W * scale
    labels = np.arange(p) % 2
    model = clvq.PrototypeModel(W, labels, omegas, offsets=offsets)
    middles = (W[rng.integers(p, size=60)] + W[rng.integers(p, size=60)]) / 2
    near = middles * (1 + rng.choice([0.0, 1e-16, 1e-15, -1e-14], size=middles.shape))
    return model, np.concatenate([middles, near, rng.normal(size=(30, d)) * scale, W])


@pytest.mark.parametrize("seed", seeds(60, quick=15))
def test_it_is_the_nearest_in_rational_numbers(seed: int) -> None:
    model, rows = drawn(seed)
    rows.flags.writeable = False
    found = nearest_of_many(model, rows)
    assert found.tolist() == [exactly(model, x) for x in rows]


def test_what_rounding_could_decide_is_never_called_clear() -> None:
    """Halfway between two prototypes nothing is clear, whatever the scale; far from it all is."""
    for scale in (1e-100, 1e-6, 1.0, 1e6, 1e150):
        ends = np.array([[0.1], [0.3]]) * scale
        X = np.linspace(0.0, 0.4, 65)[:, None] * scale
        nearest, clear = np.empty(65, dtype=np.intp), np.empty(65, dtype=bool)
        none, blank = np.zeros(0), np.zeros((0, 0))
        nearest_rows(X, none, blank, none, none, ends, 1e-15, 0.0, nearest, clear)
        assert not clear[32]
        assert clear[:32].all()
        assert clear[33:].all()
        assert nearest[:32].tolist() == [0] * 32
        assert nearest[33:].tolist() == [1] * 32


@pytest.mark.filterwarnings("ignore:overflow")
def test_distances_that_are_no_numbers_are_left_to_the_model() -> None:
    rows = np.array([[1e200], [-1e308], [1e308], [0.0]] * 20)
    model = clvq.PrototypeModel([[-1e308], [1e308], [1.0]], [0, 1, 0], omegas=[[1e10]])
    assert nearest_of_many(model, rows).tolist() == [exactly(model, x) for x in rows]

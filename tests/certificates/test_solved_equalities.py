"""Equalities that are solved together: what they leave of a box holds all that meets them."""

from __future__ import annotations

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq.certificates.solved_equalities import solved_equalities, within_solved
from counterlvq.programs.nonconvex import Box


def asked(A: np.ndarray, right: np.ndarray, width: int) -> clvq.Explainer:
    rng = np.random.default_rng(7)
    names = [f"f{j}" for j in range(width)]
    model = clvq.PrototypeModel(
        rng.normal(size=(2, width)), [0, 1], rng.normal(size=(2, width, width)),
        feature_names=names,
    )  # fmt: skip
    rows = [
        " + ".join(f"{a!r} * {name}" for a, name in zip(row, names, strict=True)) + f" == {b!r}"
        for row, b in zip(A.tolist(), right.tolist(), strict=True)
    ]
    return clvq.Explainer(model, constraints=[*rows, clvq.Bounds("f0", -2.0, 2.0)])


@pytest.mark.parametrize(("count", "width"), [(2, 2), (2, 3), (3, 3), (3, 4), (4, 6)])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_what_meets_all_equalities_stays_in_the_box(count: int, width: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, point = rng.normal(size=(count, width)).round(2), rng.uniform(-2.0, 2.0, size=width)
    explainer = asked(A, A @ point, width)
    question = explainer.question_for(rng.normal(size=width), (1,))
    rows = solved_equalities(question.convex)
    box = within_solved(rows, Box(question.convex.lower, question.convex.upper))
    unseen = np.linalg.svd(A)[2][count:]
    for _ in range(50):
        y = point + (rng.normal(size=len(unseen)) @ unseen if len(unseen) else 0.0)
        if abs(y[0]) <= 2.0:
            delta = y - question.x
            assert (box.lower <= delta).all()
            assert (delta <= box.upper).all()
    # What has one end fewer than there are columns beside f0 is limited throughout.
    assert np.isfinite(box.lower).all() == (count >= width - 1)
    if count == width:
        assert (box.upper - box.lower < 1e-6).all()


def test_equalities_that_say_the_same_are_solved_once() -> None:
    A = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [1.0, 0.0, 3.0]])
    explainer = asked(A, np.array([1.0, 2.0, 4.0]), 3)
    question = explainer.question_for(np.zeros(3), (1,))
    assert len(solved_equalities(question.convex)) == 2

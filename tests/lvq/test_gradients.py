"""Gradients against finite differences, and costs against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from counterlvq.lvq import objective as objective_module
from counterlvq.lvq.losses import LikelihoodRatio, Loss, RelativeDistance
from counterlvq.lvq.objective import Objective

LOSSES: dict[str, Loss] = {
    "identity": RelativeDistance(None),
    "sigmoid": RelativeDistance(5.0),
    "likelihood": LikelihoodRatio(0.8),
}
WHICH = {
    "euclidean": None,
    "shared": np.zeros(5, dtype=np.intp),
    "per class": np.array([0, 0, 1, 2, 2]),
    "per prototype": np.arange(5),
}


def problem(
    loss: Loss, which: np.ndarray | None, rank: int = 3, regularization: float = 0.0
) -> tuple[Objective, np.ndarray]:
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 3, size=40)
    weight = rng.uniform(0.1, 3.0, size=40)
    prototype_class = np.array([0, 0, 1, 2, 2])
    objective = Objective(X, y, weight / weight.sum(), prototype_class, which, loss, regularization)
    count = 0 if which is None else which.max() + 1
    omegas = None if which is None else rng.normal(size=(count, rank, 3))
    return objective, objective.pack(rng.normal(size=(5, 3)), omegas)


def central_differences(objective: Objective, theta: np.ndarray, step: float = 1e-6) -> np.ndarray:
    out = np.empty_like(theta)
    for j in range(len(theta)):
        ahead, behind = theta.copy(), theta.copy()
        ahead[j] += step
        behind[j] -= step
        out[j] = (objective(ahead)[0] - objective(behind)[0]) / (2 * step)
    return out


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("which", WHICH)
@pytest.mark.parametrize(("rank", "regularization"), [(3, 0.0), (2, 0.0), (3, 0.3), (2, 0.3)])
def test_gradient_is_that_of_finite_differences(
    loss: str, which: str, rank: int, regularization: float
) -> None:
    objective, theta = problem(LOSSES[loss], WHICH[which], rank, regularization)

    _, gradient = objective(theta)

    expected = central_differences(objective, theta)
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-8)
    assert np.abs(expected).max() > 1e-3


@pytest.mark.parametrize("which", ["shared", "per class", "per prototype"])
def test_length_of_a_factor_does_not_matter(which: str) -> None:
    objective, theta = problem(LOSSES["likelihood"], WHICH[which], regularization=0.2)
    prototypes, omegas = objective.unpack(theta)
    assert omegas is not None
    lengths = np.arange(2.0, 2.0 + len(omegas))[:, None, None]

    stretched = objective.pack(prototypes, omegas * lengths)

    assert objective(stretched)[0] == pytest.approx(objective(theta)[0], rel=1e-12)
    along = objective.unpack(objective(theta)[1])[1]
    assert along is not None
    np.testing.assert_allclose((along * omegas).sum(axis=(1, 2)), 0.0, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("which", WHICH)
def test_blocks_change_nothing(loss: str, which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    objective, theta = problem(LOSSES[loss], WHICH[which])
    value, gradient = objective(theta)

    monkeypatch.setattr(objective_module, "_BLOCK_ENTRIES", 200)

    in_blocks = objective(theta)
    assert in_blocks[0] == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(in_blocks[1], gradient, rtol=1e-9, atol=1e-12)


def test_relative_distance_is_that_of_the_definition() -> None:
    distances = np.array([[4.0, 1.0, 3.0], [2.0, 5.0, 6.0]])
    own = np.array([[True, False, True], [False, True, False]])

    values, slopes = RelativeDistance(None).values_and_slopes(distances, own)

    np.testing.assert_allclose(values, [(3 - 1) / 4, (5 - 2) / 7])
    np.testing.assert_allclose(slopes, [[0, -2 * 3 / 16, 2 * 1 / 16], [-2 * 5 / 49, 4 / 49, 0]])
    sigmoid, _ = RelativeDistance(3.0).values_and_slopes(distances, own)
    np.testing.assert_allclose(sigmoid, 1 / (1 + np.exp(-3.0 * values)))


def test_likelihood_ratio_is_that_of_the_definition() -> None:
    rng = np.random.default_rng(0)
    distances = rng.uniform(0, 9, size=(6, 4))
    own = np.arange(4) % 2 == rng.integers(0, 2, size=6)[:, None]
    sigma = 1.3

    values, _ = LikelihoodRatio(sigma).values_and_slopes(distances, own)

    scores = -distances / (2 * sigma**2)
    ratio = logsumexp(np.where(own, scores, -np.inf), axis=1) - logsumexp(scores, axis=1)
    np.testing.assert_allclose(values, -ratio)


def test_likelihood_ratio_survives_far_samples() -> None:
    distances = np.array([[1e8, 2e8], [2e8, 1e8]])
    own = np.array([[True, False], [True, False]])

    values, slopes = LikelihoodRatio(0.1).values_and_slopes(distances, own)

    assert values[0] == 0.0
    assert values[1] == pytest.approx(1e8 / (2 * 0.1**2))
    assert np.isfinite(slopes).all()


def test_sample_on_top_of_all_prototypes_is_undecided() -> None:
    values, slopes = RelativeDistance(None).values_and_slopes(
        np.zeros((1, 2)), np.array([[True, False]])
    )

    assert values[0] == 0.0
    assert np.isfinite(slopes).all()


def test_log_determinant_is_that_of_the_definition() -> None:
    plain, theta = problem(LOSSES["sigmoid"], WHICH["per class"], rank=2)
    penalised, _ = problem(LOSSES["sigmoid"], WHICH["per class"], rank=2, regularization=0.7)
    _, omegas = plain.unpack(theta)
    assert omegas is not None

    unit = [omega / np.linalg.norm(omega) for omega in omegas]
    mean = np.mean([np.log(np.linalg.det(omega @ omega.T)) for omega in unit])
    assert penalised(theta)[0] - plain(theta)[0] == pytest.approx(-0.35 * mean)

"""Lower bounds of quadratic functions over boxes, against exact arithmetic at many points."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from counterlvq.certificates.quadratic_bounds import Sum, least_over_box
from counterlvq.programs.nonconvex import Box
from tests.support.quick import seeds


def sum_of(H: np.ndarray, h: np.ndarray, constant: float, w: np.ndarray) -> Sum:
    """A sum whose numbers are exact."""
    d = h.size
    sizes = (np.zeros((d, d)), np.zeros(d), 0.0, np.zeros(d))
    return Sum(H, h, constant, w, sizes, (np.zeros((d, d)), np.zeros(d), 0.0), 8)


def exact_value(total: Sum, delta: list[Fraction]) -> Fraction:
    d = len(delta)
    value = Fraction(total.constant)
    for i, j in product(range(d), range(d)):
        value += Fraction(float(total.H[i, j])) * delta[i] * delta[j]
    for j in range(d):
        value += Fraction(float(total.h[j])) * delta[j]
        value += Fraction(float(total.w[j])) * abs(delta[j])
    return value


def points_of(box: Box, rng: np.random.Generator, count: int) -> list[np.ndarray]:
    """Corners and points within, far out where there is no end."""
    d = box.lower.size
    far = 10.0 ** rng.uniform(-2, 9, size=d)
    low = np.where(np.isfinite(box.lower), box.lower, np.minimum(box.upper, 0.0) - far)
    high = np.where(np.isfinite(box.upper), box.upper, np.maximum(box.lower, 0.0) + far)
    low, high = np.where(np.isfinite(low), low, -far), np.where(np.isfinite(high), high, far)
    corners = [np.where(choice, high, low) for choice in product((False, True), repeat=d)]
    inside = [low + rng.random(d) * (high - low) for _ in range(count)]
    return [np.clip(point, box.lower, box.upper) for point in [*corners, *inside, np.zeros(d)]]


def lowest_of(total: Sum, box: Box, rng: np.random.Generator) -> Fraction:
    """Least exact value seen: at drawn points, and downhill from the best of them."""
    best = min(points_of(box, rng, 20), key=lambda point: float(exact_at(total, point)))
    for shrink in (1.0, 0.1, 1e-2, 1e-4, 1e-6):
        spread = np.where(
            np.isfinite(box.upper - box.lower), box.upper - box.lower, 1.0 + np.abs(best)
        )
        for _ in range(10):
            trial = best + shrink * spread * rng.uniform(-0.5, 0.5, size=best.size)
            trial = np.clip(trial, box.lower, box.upper)
            if exact_at(total, trial) < exact_at(total, best):
                best = trial
    return exact_at(total, best)


def exact_at(total: Sum, point: np.ndarray) -> Fraction:
    return exact_value(total, [Fraction(float(value)) for value in point])


def drawn(seed: int) -> tuple[Sum, Box, np.random.Generator]:
    """Ugly functions over ugly boxes: thin, far from zero, pointing nowhere, without end."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 4))
    root = rng.normal(size=(int(rng.integers(1, d + 2)), d)) * 10.0 ** rng.uniform(-4, 4)
    H = root.T @ root
    kind = rng.choice(["definite", "indefinite", "flat", "nearly flat"])
    if kind == "indefinite":
        H = H - np.diag(rng.random(d) * np.abs(np.diag(H)))
    if kind == "flat":
        H = np.zeros((d, d))
    if kind == "nearly flat":
        H = H * 1e-13
    offset = rng.choice([0.0, 1.0, 1e6])
    center = offset * rng.normal(size=d)
    half = 10.0 ** rng.uniform(-9, 3, size=d) * (rng.random(d) > 0.15)
    lower, upper = center - half, center + half
    lower = np.where(rng.random(d) < 0.15, -np.inf, lower)
    upper = np.where(rng.random(d) < 0.15, np.inf, upper)
    h = rng.normal(size=d) * 10.0 ** rng.uniform(-3, 3) - 2.0 * H @ center * (rng.random() < 0.5)
    h = np.where(rng.random(d) < 0.2, 0.0, h)
    w = np.where(rng.random(d) < 0.3, 0.0, rng.normal(size=d) * 10.0 ** rng.uniform(-3, 3))
    return sum_of(0.5 * (H + H.T), h, float(rng.normal()), w), Box(lower, upper), rng


@pytest.mark.parametrize("seed", seeds(40, quick=10))
def test_no_point_of_a_box_lies_below_the_bound(seed: int) -> None:
    finite = 0
    for number in range(10):
        total, box, rng = drawn(1000 * seed + number)
        bound = least_over_box(total, rng.normal(size=box.lower.size), box, lambda j: None)
        if not np.isfinite(bound):
            continue
        finite += 1
        assert lowest_of(total, box, rng) >= Fraction(bound)
    assert finite >= 3  # the bound says something


def test_convex_functions_are_bounded_closely() -> None:
    rng = np.random.default_rng(4)
    for _ in range(50):
        d = int(rng.integers(1, 5))
        root = rng.normal(size=(d + 1, d))
        H, lowest = root.T @ root, rng.normal(size=d)
        total = sum_of(H, -2.0 * H @ lowest, float(lowest @ H @ lowest), np.zeros(d))
        for box in (Box(lowest - 1.0, lowest + 2.0), Box.whole(d)):
            bound = least_over_box(total, np.zeros(d), box, lambda j: None)
            assert -1e-6 * (1 + lowest @ H @ lowest) <= bound <= 1e-12


def test_features_that_are_held_in_place_are_reckoned_with() -> None:
    """The others are lowest elsewhere then: by the Schur complement, where the box has room."""
    rng = np.random.default_rng(5)
    for _ in range(50):
        d = int(rng.integers(2, 6))
        root = rng.normal(size=(d + 1, d))
        H, at = root.T @ root, float(rng.choice([-4.0, 3.0]))
        rest = np.linalg.solve(H[1:, 1:], -H[1:, 0] * at)
        lowest = np.concatenate([[at], rest])
        wide = np.concatenate([[0.0], np.abs(rest) + 1.0])
        total, box = sum_of(H, np.zeros(d), 0.0, np.zeros(d)), Box(lowest - wide, lowest + wide)
        bound = least_over_box(total, rng.normal(size=d), box, lambda j: None)
        assert bound == pytest.approx(float(lowest @ H @ lowest), rel=1e-6)


def test_without_an_end_a_slope_of_rounding_proves_nothing() -> None:
    flat, kink = np.zeros((1, 1)), np.zeros(1)
    leaning = sum_of(flat, np.array([1e-17]), 1.0, kink)
    assert not least_over_box(leaning, kink, Box.whole(1), lambda j: None) > 0
    level = sum_of(flat, np.zeros(1), 1.0, kink)
    assert least_over_box(level, kink, Box.whole(1), lambda j: None) == pytest.approx(1.0)
    # What is left open of a slope counts as a slope, unless exact arithmetic knows better.
    level.open = (flat, np.array([1e-17]), 0.0)
    assert not least_over_box(level, kink, Box.whole(1), lambda j: None) > 0
    assert least_over_box(level, kink, Box.whole(1), lambda j: Fraction(0)) == pytest.approx(1.0)


@pytest.mark.parametrize("size", [1e60, 1e150, 1e308, np.inf, np.nan])
def test_numbers_that_overflow_prove_nothing(size: float) -> None:
    rng = np.random.default_rng(6)
    for _ in range(30):
        d = int(rng.integers(1, 4))
        H, h = rng.normal(size=(d, d)), rng.normal(size=d)
        where = rng.integers(4)
        total = sum_of(
            H + H.T + (size if where == 0 else 0.0),
            h * (size if where == 1 else 1.0),
            -size if where == 2 else 1.0,
            np.abs(h) * (size if where == 3 else 1.0) * -1.0,
        )
        bound = least_over_box(total, h, Box(-np.ones(d), np.ones(d)), lambda j: None)
        if np.isfinite(bound) and np.isfinite(size):
            box = Box(-np.ones(d), np.ones(d))
            assert lowest_of(total, box, rng) >= Fraction(bound)

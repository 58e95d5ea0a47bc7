"""How the time of the engine grows, one quantity at a time, with fitted exponents.

Prototypes and rows are drawn from a standard normal distribution; half of the prototypes carry
each of two labels unless the number of rivals is what grows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

import counterlvq as clvq
from benchmarks.problems import COSTS, SEED, Array
from benchmarks.sizes import Sizes
from benchmarks.timing import best_of, fit_power_law

# What stays put while something else grows.
FEATURES, PROTOTYPES, TARGETS, ROWS = 10, 20, 3, 10_000
ROOM = 0.5  # by which every prototype obeys the added constraints
TRIAL_ROWS = 20
MOST_ROWS = 20_000
REPEATS = 2


@dataclass(frozen=True)
class Curve:
    """Time against one quantity. For n it is the time of the batch, else of one row."""

    letter: str
    meaning: str
    fixed: str
    cost: str
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]
    exponent: float  # of the power law through all points
    factor: float
    last_exponent: float  # through the last three: where fixed costs no longer show


Case = Callable[[int], tuple[clvq.PrototypeModel, Sequence[clvq.Constraint]]]


def measure(sizes: Sizes) -> list[Curve]:
    return [curve for cost in COSTS for curve in _curves(cost, sizes)]


def _curves(cost: str, sizes: Sizes) -> list[Curve]:
    def per_row(case: Case, at: Sequence[int]) -> list[float]:
        return [_seconds_per_row(*case(size), cost, sizes.seconds) for size in at]

    counts = [10**k for k in range(3, 7) if 10**k <= sizes.largest]
    d, p, m, c = (
        (2, 4, 8, 16, 32, 64),
        (6, 20, 60, 200, 600, 3000),
        (3, 30, 300, 3000),
        (1, 4, 16, 64),
    )
    base = f"p = {PROTOTYPES}"
    return [
        _curve("n", "rows", f"d = {FEATURES}, {base}", cost, counts, _batches(cost, counts)),
        _curve("d", "features", base, cost, d, per_row(_features, d)),
        _curve("p", "prototypes", f"d = {FEATURES}", cost, p, per_row(_prototypes, p)),
        _curve("m", "rivals", f"d = {FEATURES}, {TARGETS} targets", cost, m, per_row(_rivals, m)),
        _curve("c", "linear constraints", f"d = {FEATURES}, {base}", cost, c, per_row(_bounded, c)),
    ]


def _curve(
    letter: str, meaning: str, fixed: str, cost: str, sizes: Sequence[int], seconds: list[float]
) -> Curve:
    law, last = fit_power_law(sizes, seconds), fit_power_law(sizes[-3:], seconds[-3:])
    return Curve(
        letter,
        meaning,
        fixed,
        cost,
        tuple(sizes),
        tuple(seconds),
        law.exponent,
        law.factor,
        last.exponent,
    )


def _features(d: int) -> tuple[clvq.PrototypeModel, Sequence[clvq.Constraint]]:
    return _model(d, PROTOTYPES, PROTOTYPES // 2), ()


def _prototypes(p: int) -> tuple[clvq.PrototypeModel, Sequence[clvq.Constraint]]:
    return _model(FEATURES, p, p // 2), ()


def _rivals(m: int) -> tuple[clvq.PrototypeModel, Sequence[clvq.Constraint]]:
    return _model(FEATURES, TARGETS + m, TARGETS), ()


def _bounded(c: int) -> tuple[clvq.PrototypeModel, Sequence[clvq.Constraint]]:
    """Random half-spaces that hold all prototypes, so that every question has an answer."""
    model, _ = _features(FEATURES)
    normals = np.random.default_rng(SEED).standard_normal((c, FEATURES))
    limits = (model.prototypes @ normals.T).max(axis=0) + ROOM
    return model, [
        clvq.Linear(normal, "<=", limit) for normal, limit in zip(normals, limits, strict=True)
    ]


def _model(d: int, p: int, targets: int) -> clvq.PrototypeModel:
    prototypes = np.random.default_rng(SEED).standard_normal((p, d))
    return clvq.PrototypeModel(prototypes, ["target"] * targets + ["rival"] * (p - targets))


def _rows_for(model: clvq.PrototypeModel, n: int) -> Array:
    """Draw rows that the model does not give the target already."""
    rng = np.random.default_rng(SEED + 1)
    rows = np.empty((0, model.n_features))
    while len(rows) < n:
        drawn = rng.standard_normal((2 * n, model.n_features))
        rows = np.concatenate([rows, drawn[model.predict(drawn) == "rival"]])
    return rows[:n]


def _batches(cost: str, counts: Sequence[int]) -> list[float]:
    model, _ = _features(FEATURES)
    explainer = clvq.Explainer(model, COSTS[cost])
    rows = _rows_for(model, max(counts))
    return [
        best_of(REPEATS, lambda n=n: explainer.explain_batch(rows[:n], "target"))[0] for n in counts
    ]


def _seconds_per_row(
    model: clvq.PrototypeModel, constraints: Sequence[clvq.Constraint], cost: str, seconds: float
) -> float:
    """Time per row, over as many rows as fit into about so many seconds."""
    explainer = clvq.Explainer(model, COSTS[cost], constraints=constraints)
    rows = _rows_for(model, MOST_ROWS)
    trial = rows[:TRIAL_ROWS]
    explainer.explain_batch(trial, "target")
    guess = best_of(2, lambda: explainer.explain_batch(trial, "target"))[0] / TRIAL_ROWS
    n = int(np.clip(seconds / guess, TRIAL_ROWS, MOST_ROWS))
    return best_of(REPEATS, lambda: explainer.explain_batch(rows[:n], "target"))[0] / n

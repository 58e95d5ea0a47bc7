"""Nearest neighbour on the digits: every training image is a prototype, 64 pixels each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import counterlvq as clvq
from benchmarks.baselines.cells import Array, Cell, cells_of
from benchmarks.baselines.paper import solve_cell
from benchmarks.problems import COSTS, digit_images, other_labels
from benchmarks.sizes import Sizes
from benchmarks.timing import in_the_long_run, timed


@dataclass(frozen=True)
class OracleCheck:
    """What full programs, rivals and all, say about a few rows."""

    rows: int
    solved: int  # target prototypes whose full program was solved by HiGHS or Clarabel
    skipped: int  # whose price of overtaking one rival alone is above the answer already
    difference: float  # largest relative difference of the least cost from the engine's


@dataclass(frozen=True)
class NeighbourFigures:
    """One cost."""

    cost: str
    prototypes: int
    features: int
    rows: int
    explain_median: float  # seconds per row, certificate objects included
    batch_median: float  # seconds per row, a batch of one row at a time
    batch_mean: float  # seconds per row, all rows in one batch, one job
    optimal: float  # share of rows
    fallbacks: int
    check: OracleCheck


def measure(sizes: Sizes) -> list[NeighbourFigures]:
    split = digit_images()
    model = clvq.PrototypeModel(split.train, split.train_labels)
    rows = split.test[: sizes.neighbours]
    targets = other_labels(model.predict(rows), model.classes)
    return [_figures(model, rows, targets, cost, sizes.oracle) for cost in reversed(COSTS)]


def _figures(
    model: clvq.PrototypeModel, rows: Array, targets: Array, cost: str, checked: int
) -> NeighbourFigures:
    explainer = clvq.Explainer(model, COSTS[cost])
    in_the_long_run()
    batch = explainer.explain_batch(rows, targets)  # compiles; prepares each target once
    pairs = list(zip(rows, targets, strict=True))
    single = [timed(lambda x=x, t=t: explainer.explain(x, t))[0] for x, t in pairs]
    alone = [timed(lambda x=x, t=t: explainer.explain_batch([x], [t]))[0] for x, t in pairs]
    together = timed(lambda: explainer.explain_batch(rows, targets))[0]
    return NeighbourFigures(
        cost=cost,
        prototypes=model.n_prototypes,
        features=model.n_features,
        rows=len(rows),
        explain_median=float(np.median(single)),
        batch_median=float(np.median(alone)),
        batch_mean=together / len(rows),
        optimal=float((batch.status == "optimal").mean()),
        fallbacks=batch.fallbacks,
        check=check_rows(model, rows[:checked], targets[:checked], batch.cost[:checked], cost),
    )


def check_rows(
    model: clvq.PrototypeModel, rows: Array, targets: Array, answers: Array, cost: str
) -> OracleCheck:
    """Solve the full program of each target prototype that could hold something cheaper."""
    results = [
        _check_row(model, x, t, answer, cost)
        for x, t, answer in zip(rows, targets, answers, strict=True)
    ]
    solved, skipped, differences = zip(*results, strict=True)
    return OracleCheck(len(rows), sum(solved), sum(skipped), max(differences))


def _check_row(
    model: clvq.PrototypeModel, x: Array, target: Any, answer: float, cost: str
) -> tuple[int, int, float]:
    least, solved, skipped = np.inf, 0, 0
    free = np.ones(x.size, dtype=bool)
    for cell in cells_of(model, target):
        if single_rival_bound(cell, x, cost) > answer * (1.0 + 1e-9):
            skipped += 1
            continue
        least = min(least, solve_cell(cell, x, free, cost)[1])
        solved += 1
    return solved, skipped, float(abs(least - answer) / answer)


def single_rival_bound(cell: Cell, x: Array, cost: str) -> float:
    """Price of overtaking the one rival that is dearest to overtake."""
    behind = np.maximum(-cell.leads(x[None, :])[0], 0.0)
    if cost == "L1":
        return float((behind / np.abs(cell.left).max(axis=1)).max())
    return float((behind**2 / (cell.left**2).sum(axis=1)).max())

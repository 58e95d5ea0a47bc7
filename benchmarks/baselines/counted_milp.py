"""Few changes as a plain MILP, one for each target prototype: switches with the ranges of data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

import counterlvq as clvq

if TYPE_CHECKING:
    from benchmarks.questions_tasks import CreditTask


def cheapest_of_few(
    model: clvq.PrototypeModel, x: Any, target: Any, weights: Any, low: Any, high: Any, most: int
) -> float:
    """Least Manhattan cost of an input of the label in which at most so many features change.

    Variables are what goes up, what goes down, and whether a feature changes at all.
    """
    d, F, P = x.size, model.shared_factor, model.prototypes
    price = np.concatenate([weights, weights, np.zeros(d)])
    up, down = high - x, x - low
    eye, none = np.eye(d), np.zeros((d, d))
    switches = np.block([[eye, none, -np.diag(up)], [none, eye, -np.diag(down)]])
    few = np.concatenate([np.zeros(2 * d), np.ones(d)])[None, :]
    best = np.inf
    for i in np.flatnonzero(model.labels == target):
        rivals = np.flatnonzero(model.labels != target)
        normals = 2.0 * ((P[rivals] - P[i]) @ F.T) @ F
        middle = 0.5 * (P[rivals] + P[i])
        room = np.einsum("kj,kj->k", normals, middle - x)
        A = np.hstack([normals, -normals, np.zeros((len(rivals), d))])
        found = milp(
            price,
            constraints=[
                LinearConstraint(A, -np.inf, room),
                LinearConstraint(switches, -np.inf, 0.0),
                LinearConstraint(few, 0.0, most),
            ],
            integrality=np.concatenate([np.zeros(2 * d), np.ones(d)]),
            bounds=Bounds(np.zeros(3 * d), np.concatenate([up, down, np.ones(d)])),
            options={"mip_rel_gap": 1e-9},
        )
        if found.success:
            best = min(best, float(found.fun))
    return best


def cheapest_of_few_in_table(problem: CreditTask, x: Any, most: int) -> float:
    """Least cost of a row of the wished-for label with few changes, in whole numbers and levels.

    Variables of a number are what goes up, what goes down, and whether it changes at all; of a
    column with levels an indicator for each, of which the present one says that nothing changes.
    """
    before = dict(zip(problem.table.columns, x, strict=True))
    prices, tops, image, start, changes = [], [], [], [], []
    switched: list[tuple[int, float]] = []  # first variable of a number, and its largest change
    chosen: list[list[int]] = []  # variables of a column with levels
    for name, step in problem.affine.items():
        at = len(prices)
        if "levels" in step:
            prices += [problem.change_cost(name, before[name], level) for level in step["levels"]]
            tops += [1.0] * len(step["levels"])
            changes += [-1.0 if level == before[name] else 0.0 for level in step["levels"]]
            chosen.append(list(range(at, len(prices))))
            image += [(at + k, None, 1.0) for k in range(len(step["levels"]))]
            start += [0.0] * len(step["levels"])
            continue
        (low, high), unit = problem.numbers[name], problem.change_cost(name, 0, 1)
        prices += [unit, unit, 0.0]
        tops += [high - before[name], before[name] - low, 1.0]
        changes += [0.0, 0.0, 1.0]
        switched.append((at, float(high - low)))
        image.append((at, at + 1, 1.0 / step["scale"]))
        start.append((before[name] - step["mean"]) / step["scale"])
    n = len(prices)
    T = np.zeros((len(image), n))
    for row, (up, down, size) in zip(T, image, strict=True):
        row[up] = size
        if down is not None:
            row[down] = -size
    switches = np.zeros((2 * len(switched), n))
    for k, (at, width) in enumerate(switched):
        switches[2 * k, [at, at + 2]] = 1.0, -width
        switches[2 * k + 1, [at + 1, at + 2]] = 1.0, -width
    one = np.zeros((len(chosen), n))
    for row, places in zip(one, chosen, strict=True):
        row[places] = 1.0
    rules = [LinearConstraint(np.array([changes]), -np.inf, most - len(chosen))]
    if switched:
        rules.append(LinearConstraint(switches, -np.inf, 0.0))
    if chosen:
        rules.append(LinearConstraint(one, 1.0, 1.0))
    best = np.inf
    for A, b in problem.cells:
        found = milp(
            np.array(prices),
            constraints=[*rules, LinearConstraint(A @ T, -np.inf, b - A @ np.array(start))],
            integrality=np.ones(n),
            bounds=Bounds(np.zeros(n), np.array(tops, dtype=float)),
            options={"mip_rel_gap": 1e-9},
        )
        if found.success:
            best = min(best, float(found.fun))
    return best

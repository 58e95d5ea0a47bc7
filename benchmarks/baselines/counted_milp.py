"""Few changes as a plain MILP, one for each target prototype: switches with the ranges of data."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

import counterlvq as clvq


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

"""Search without structure, as ceml does it: minimise the paper's Eq. 1 by trying points.

    distance of y to the nearest target prototype + C * cost(y - x)

The strengths C are tried from large to small, each from x, and the first point that `predict`
gives the target is the answer. Frozen features are left out of the search.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cma
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

import counterlvq as clvq
from benchmarks.baselines.cells import Array

STRENGTHS = (10.0, 1.0, 0.1, 0.01, 0.001, 0.0001)
FIRST_STEP = 0.5  # of CMA-ES, in standard deviations of a feature
SEED = 1  # CMA-ES takes 0 for the clock

Objective = Callable[[Array], float]
Optimiser = Callable[[Objective, Array], Array]


def nelder_mead(objective: Objective, start: Array) -> Array:
    """SciPy's Nelder-Mead with its default limits, as in ceml."""
    return minimize(objective, start, method="Nelder-Mead").x


def cma_es(objective: Objective, start: Array) -> Array:
    options = {"seed": SEED, "verbose": -9}
    return cma.CMAEvolutionStrategy(start, FIRST_STEP, options).optimize(objective).result.xbest


def search(
    model: clvq.PrototypeModel,
    x: Array,
    target: Any,
    free: NDArray[np.bool_],
    cost: str,
    optimise: Optimiser,
) -> Array:
    """The first valid point over all strengths, (d,); NaN if none is valid."""
    for strength in STRENGTHS:
        y = x.copy()
        y[free] = optimise(_objective(model, x, target, free, cost, strength), x[free])
        if model.predict(y[None, :])[0] == target:
            return y
    return np.full(x.shape, np.nan)


def _objective(
    model: clvq.PrototypeModel,
    x: Array,
    target: Any,
    free: NDArray[np.bool_],
    cost: str,
    strength: float,
) -> Objective:
    """Eq. 1 as a function of the free features, with all that is fixed worked out before."""
    factor = model.shared_factor
    offsets = (x - model.prototypes[model.labels == target]) @ factor.T  # (targets, r)
    moves, start = np.ascontiguousarray(factor[:, free]), x[free]

    def objective(free_values: Array) -> float:
        delta = free_values - start
        gaps = offsets + moves @ delta
        nearest = np.einsum("ij,ij->i", gaps, gaps).min()
        price = np.abs(delta).sum() if cost == "L1" else delta @ delta
        return float(nearest + strength * price)

    return objective

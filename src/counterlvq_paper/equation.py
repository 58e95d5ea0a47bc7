"""The paper's Eq. 1, minimised by trying points, as ceml does it.

    distance of y to the nearest target prototype + C * cost(y - x)

The distance is the squared one that the model itself compares. The strengths C are tried from
large to small, each from x, and the first point that `predict` gives the target is the answer.
Frozen features are left out of the search.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import counterlvq as clvq

__all__ = ["OPTIMISERS", "STRENGTHS", "Objective", "objective_of", "search"]

Array = NDArray[np.float64]
Objective = Callable[[Array], float]
Optimiser = Callable[[Objective, Array, int], Array]

STRENGTHS: Final = (10.0, 1.0, 0.1, 0.01, 0.001, 0.0001)
FIRST_STEP: Final = 0.5  # of CMA-ES, in standard deviations of a feature


def objective_of(
    model: clvq.PrototypeModel, x: Array, target: Any, free: NDArray[np.bool_], strength: float
) -> Objective:
    """State Eq. 1 with Manhattan cost as a function of the free features.

    All that does not depend on them is worked out before: a call is one product of a matrix with
    a vector and a few sums.
    """
    wished = np.flatnonzero(model.labels == target)
    factors = [model.factors[k] for k in wished]
    offsets = np.concatenate(
        [F @ (x - model.prototypes[k]) for F, k in zip(factors, wished, strict=True)]
    )
    moves = np.ascontiguousarray(np.concatenate(factors)[:, free])
    starts = np.cumsum([0, *(len(F) for F in factors[:-1])])  # where each prototype begins
    origin = x[free]

    def objective(values: Array) -> float:
        delta = values - origin
        gaps = offsets + moves @ delta
        nearest = np.add.reduceat(gaps * gaps, starts).min()
        return float(nearest + strength * np.abs(delta).sum())

    return objective


def search(
    model: clvq.PrototypeModel,
    x: Array,
    target: Any,
    free: NDArray[np.bool_],
    optimiser: Optimiser,
    seed: int,
) -> Array:
    """Find the first valid point over all strengths, (d,); NaN if none is valid."""
    for strength in STRENGTHS:
        y = x.copy()
        y[free] = optimiser(objective_of(model, x, target, free, strength), x[free], seed)
        if model.predict(y[None, :])[0] == target:
            return y
    return np.full(x.shape, np.nan)


def _nelder_mead(objective: Objective, start: Array, seed: int) -> Array:
    """SciPy's Nelder-Mead with its default limits, as in ceml; it draws nothing."""
    from scipy.optimize import minimize

    found: Array = minimize(objective, start, method="Nelder-Mead").x
    return found


def _cma_es(objective: Objective, start: Array, seed: int) -> Array:
    """CMA-ES with the default settings of `cma`."""
    import cma

    options = {"seed": seed + 1, "verbose": -9}  # `cma` takes 0 for the clock
    strategy = cma.CMAEvolutionStrategy(start, FIRST_STEP, options)
    return np.asarray(strategy.optimize(objective).result.xbest, dtype=np.float64)


OPTIMISERS: Final[dict[str, Optimiser]] = {"Nelder-Mead": _nelder_mead, "CMA-ES": _cma_es}

"""The paper's way to local metrics: a penalty convex-concave loop for every target prototype.

In each round the rivals' distances are replaced by their tangents, and the whole cone program is
assembled anew and handed to Clarabel:

    minimise    cost(delta) + penalty * sum_k s_k
    subject to  |omega_i (x + delta - w_i)|^2 <= t
                t + margin <= tangent of rival k at the last point + s_k,   s_k >= 0

All rivals share the target's own distance, so one second-order cone is enough, which is cheaper
than one cone per rival. The loop starts at the prototype, where no slack is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import clarabel
import numpy as np
from scipy import sparse

import counterlvq as clvq
from benchmarks.baselines.cells import Array

MARGIN = 1e-6  # in squared distance, as for the optima that are given
FIRST_PENALTY, PENALTY_GROWTH, LAST_PENALTY = 1.0, 10.0, 1e6
PROGRESS = 1e-6  # relative decrease at which the loop stops
NO_SLACK = 1e-7
ROUNDS = 200


@dataclass(frozen=True, eq=False)
class Rivals:
    """Squared distances ``delta' M_k delta + pull_k'delta + base_k`` as functions of the change."""

    M: Array  # (m, d, d)
    pull: Array  # (m, d)
    base: Array  # (m,)

    @classmethod
    def of(cls, model: clvq.PrototypeModel, x: Array, target: Any) -> Rivals:
        chosen = np.flatnonzero(model.labels != target)
        away = x - model.prototypes[chosen]
        M = np.array([model.factors[k].T @ model.factors[k] for k in chosen])
        half = np.einsum("kij,kj->ki", M, away)
        return cls(M, 2.0 * half, np.einsum("ki,ki->k", half, away))

    def tangents(self, delta: Array) -> tuple[Array, Array]:
        """Slopes (m, d) and constants (m,) at `delta`."""
        curve = self.M @ delta
        return 2.0 * curve + self.pull, self.base - curve @ delta


def closest(model: clvq.PrototypeModel, x: Array, target: Any, cost: str) -> Array:
    """The cheapest end of all loops that has the target, (d,); NaN if none has."""
    rivals = Rivals.of(model, x, target)
    best, least = np.full(x.shape, np.nan), np.inf
    for i in np.flatnonzero(model.labels == target):
        delta = descend(model.factors[i], model.prototypes[i] - x, rivals, cost)
        price = value(delta, cost)
        if price < least and model.predict((x + delta)[None, :])[0] == target:
            best, least = x + delta, price
    return best


def descend(omega: Array, start: Array, rivals: Rivals, cost: str) -> Array:
    """Rounds from the prototype until they gain nothing; the last point without slack."""
    delta, found, penalty, last = start, start, FIRST_PENALTY, np.inf
    for _ in range(ROUNDS):
        solved = solve_round(omega, start, rivals, delta, penalty, cost)
        if solved is None:
            break
        delta, slack = solved
        if slack > NO_SLACK:
            if penalty >= LAST_PENALTY:
                break
            penalty *= PENALTY_GROWTH
            continue
        found, now = delta, value(delta, cost)
        if last - now <= PROGRESS * now:
            break
        last = now
    return found


def solve_round(
    omega: Array, centre: Array, rivals: Rivals, around: Array, penalty: float, cost: str
) -> tuple[Array, float] | None:
    """One program in the change, t, one slack per rival and, for L1, the absolute changes."""
    slopes, constants = rivals.tangents(around)
    (m, d), r = slopes.shape, omega.shape[0]
    tops = d if cost == "L1" else 0
    t, slack, top = d, d + 1 + np.arange(m), d + 1 + m + np.arange(tops)
    width, rows = d + 1 + m + tops, 2 * m + 2 * tops
    left, right = np.zeros((rows + 2 + r, width)), np.zeros(rows + 2 + r)
    at = np.arange(m)
    left[:m, :d], left[:m, t], left[at, slack], left[m + at, slack] = -slopes, 1.0, -1.0, -1.0
    right[:m] = constants - MARGIN
    at, low = 2 * m + np.arange(tops), 2 * m + tops + np.arange(tops)
    left[at, np.arange(tops)], left[low, np.arange(tops)] = 1.0, -1.0
    left[at, top] = left[low, top] = -1.0
    # |omega (delta - centre)|^2 <= t as |(1 - t, 2 omega (delta - centre))| <= 1 + t
    left[rows, t], left[rows + 1, t], left[rows + 2 :, :d] = -1.0, 1.0, -2.0 * omega
    right[rows : rows + 2], right[rows + 2 :] = 1.0, -2.0 * omega @ centre
    q = np.concatenate([np.zeros(d + 1), np.full(m, penalty), np.ones(tops)])
    square = np.where(np.arange(width) < d, 0.0 if tops else 2.0, 0.0)
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads = False, 1
    cones = [clarabel.NonnegativeConeT(rows), clarabel.SecondOrderConeT(2 + r)]
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix(np.diag(square)), q, sparse.csc_matrix(left), right, cones, settings
    ).solve()
    if str(solution.status) not in ("Solved", "AlmostSolved"):
        return None
    found = np.array(solution.x)
    return found[:d], float(found[slack].sum())


def value(delta: Array, cost: str) -> float:
    """What a change costs."""
    return float(np.abs(delta).sum() if cost == "L1" else delta @ delta)

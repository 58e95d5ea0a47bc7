"""Relaxations of absolute costs over a few features, with proofs for all of them.

A relaxed point changes few features. With the others held the dual is small; its multipliers are
those of the whole box once there are shares and products for the features that were held. They
are looked for one feature at a time (`_alone`), and features for which there are none are taken in.

What comes out is feasible for the dual of the whole box, or nothing does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import PAST_GOAL
from counterlvq.solvers.absolute_dual import AbsoluteDual, Found, Shares
from counterlvq.solvers.interior_point import Iterate, solved

__all__ = ["over_few"]

# No claim rests on the numbers below: what is returned is evaluated by others.
# Features that a relaxation begins with beside those that are known to matter, and those that it
# takes in at once, at the least and as a share of those that it has.
_FIRST, _MORE, _SHARE = 3, 3, 0.5
# The share of all features beyond which they are all taken, and the rounds before that.
_MOST, _ROUNDS = 0.6, 6
# Weights of what is looked for against its borders, one after the other, with steps for each.
_WEIGHTS, _STEPS = (3.0, 30.0, 300.0, 3000.0), 5
# How near to a border a step may go, its longest length, and the decrement after which no other
# step is worth taking.
_NEARLY, _LONGEST, _SMALL_STEP = 0.9, 1e3, 1e-2
# The share of a border that products of two features that are held may use.
_WITHIN = 0.999
# An entry of the direction that breaks a matrix from which a feature is taken in.
_ENTRY = 0.25


class _Rest(NamedTuple):
    """Multipliers for the features that were held, or the features that stand in the way."""

    shares: Floats  # (r,)
    border: Floats  # (r, f + 1) of the matrix, towards 1 and the few features
    inner: Floats  # (r, r)
    missing: NDArray[np.intp]  # of the r, worst first; none if all is well


class _Few(NamedTuple):
    """The program over a few features, and where it ended."""

    few: NDArray[np.intp]
    held: NDArray[np.intp]
    kept: NDArray[np.intp]  # linear conditions that count
    program: AbsoluteDual
    found: Iterate
    x: Floats
    value: float


def over_few(
    whole: AbsoluteDual, hint: NDArray[np.bool_], goal: float, tolerance: float, loose: float,
    deadline: float,
) -> Found | None:  # fmt: skip
    """Solve over the features of the hint and those that turn out to matter.

    None if these become too many, or nothing is found.
    """
    n, work = hint.size, 0.0
    few = _first(whole.shares, hint)
    for _ in range(_ROUNDS):
        if few.size > _MOST * n:
            return None
        part = _solved(whole.shares, few, goal, tolerance, loose, deadline)
        rest = None if part is None else _rest(whole.shares, part)
        if part is None or rest is None:
            return None
        work += part.found.steps * part.program.work
        work += float(len(_WEIGHTS) * _STEPS * part.held.size * (few.size + 2) ** 3)
        if not rest.missing.size:
            return _joined(whole, part, rest, work)
        more = max(_MORE, int(_SHARE * few.size))
        few = np.sort(np.concatenate([few, part.held[rest.missing[:more]]]))
    return None


def _first(shares: Shares, hint: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Features that cannot be held or are known to matter, and a few that the rivals lean on."""
    must = hint | (shares.least != 0)
    must |= shares.slopes[:, shares.b.size - shares.equalities :].any(axis=1)
    leans = np.abs(shares.F[:, 0, 1:]).sum(axis=0)
    leans[must] = np.inf
    return np.sort(np.argsort(-leans, kind="stable")[: int(must.sum()) + _FIRST])


def _solved(
    shares: Shares, few: NDArray[np.intp], goal: float, tolerance: float, loose: float,
    deadline: float,
) -> _Few | None:  # fmt: skip
    """Solve with all features held but a few."""
    kept = _rows_that_count(shares, few)
    program = AbsoluteDual(shares.only(few, kept))
    start = program.start()
    found = solved(program, start, goal, tolerance, loose, deadline)
    if found is None:
        return None
    held = np.setdiff1d(np.arange(shares.sign.size), few)
    return _Few(few, held, kept, program, found, *_no_further(program, start, found, goal))


def _rows_that_count(shares: Shares, few: NDArray[np.intp]) -> NDArray[np.intp]:
    """Linear conditions that a few features can meet or miss; equalities all."""
    counts = (shares.slopes[few] != 0).any(axis=0)
    counts[counts.size - shares.equalities :] = True
    return np.flatnonzero(counts)


def _no_further(
    program: AbsoluteDual, start: Floats, found: Iterate, goal: float
) -> tuple[Floats, float]:
    """Go back towards the start where the goal was passed: there is more room for the others."""
    first = program.value(start)
    if found.value <= goal or first >= goal:
        return found.x, found.value
    share = min(1.0, (goal - first) / (found.value - first) * PAST_GOAL)
    x = start + share * (found.x - start)
    return x, program.value(x)


def _rest(shares: Shares, part: _Few) -> _Rest | None:
    """Find multipliers for the features that were held; None if numbers fail."""
    few, held = part.few, part.held
    _, charges, tau, rows = part.program.parts(part.x)
    charged = np.tensordot(charges, shares.F, axes=1)
    at = np.concatenate([[0], 1 + few])
    G, own = charged[np.ix_(1 + held, at)], charged[np.ix_(1 + held, 1 + held)]
    price = 1.0 - float(shares.least[few] @ tau)
    slope = shares.slopes[np.ix_(held, part.kept)] @ rows
    room = price - np.abs(slope)
    if not (room > 0).all():
        worst = np.argsort(room, kind="stable")
        blank = np.zeros(held.size)
        return _Rest(blank, G, own, worst[room[worst] <= 0])
    try:
        W = np.asarray(np.linalg.inv(part.program.matrix(part.x)), dtype=np.float64)
        t, Z = _alone(W, G, tau, price, slope)
    except np.linalg.LinAlgError:
        return None
    if not (np.isfinite(t).all() and np.isfinite(Z).all()):
        return None
    B = G + Z
    M = B @ W @ B.T
    limit = _WITHIN * 0.5 * (t[:, None] + t[None, :])
    open_part = own - M
    D = np.sign(open_part) * np.maximum(np.abs(open_part) - limit, 0.0)
    np.fill_diagonal(D, np.diag(own) + _WITHIN * t - np.diag(M))
    return _Rest(t, Z, D + M - own, _missing(D))


def _missing(D: Floats) -> NDArray[np.intp]:
    """Features without which a matrix would be definite, worst first."""
    own = np.diag(D)
    bad = np.flatnonzero(own <= 0)
    if bad.size:
        return bad[np.argsort(own[bad], kind="stable")]
    sizes, axes = np.linalg.eigh(D)
    if sizes[0] > 0:
        return np.zeros(0, dtype=np.intp)
    broken = np.abs(axes[:, 0])
    order = np.argsort(-broken, kind="stable")
    return np.asarray(order[broken[order] >= _ENTRY * broken.max()])


def _alone(W: Floats, G: Floats, tau: Floats, price: float, slope: Floats) -> tuple[Floats, Floats]:
    """Share of each feature by itself and its products with few others, (r,) and (r, f + 1).

    The larger ``t - (G + Z) W (G + Z)'`` is, the more room is left for products with the rest.
    Newton's method with a barrier, for all features at once.
    """
    r, p = G.shape
    # Variables: share, half the slope at 1, products with the few.
    v = np.zeros((r, p + 1))
    v[:, 0] = 0.5 * (price - np.abs(slope))
    v[:, 1] = 0.5 * slope
    # Slacks J v + j: price up and down, products up and down, share.
    J = np.zeros((2 * p + 1, p + 1))
    J[0, :2], J[1, :2] = (-1.0, 2.0), (-1.0, -2.0)
    at = np.arange(p - 1)
    J[2 : p + 1, 0] = J[p + 1 : 2 * p, 0] = 0.5
    J[2 + at, 2 + at], J[p + 1 + at, 2 + at] = -1.0, 1.0
    J[2 * p, 0] = 1.0
    j = np.concatenate([
        (price - slope)[:, None], (price + slope)[:, None],
        np.broadcast_to(0.5 * np.concatenate([tau, tau]), (r, 2 * p - 2)), np.zeros((r, 1)),
    ], axis=1)  # fmt: skip
    for weight in _WEIGHTS:
        for _ in range(_STEPS):
            s = v @ J.T + j
            gradient = -(1.0 / s) @ J
            gradient[:, 0] -= weight
            gradient[:, 1:] += 2.0 * weight * (G + v[:, 1:]) @ W
            H = (J.T[None] * (1.0 / s**2)[:, None, :]) @ J
            H[:, 1:, 1:] += 2.0 * weight * W
            step = -np.linalg.solve(H, gradient[:, :, None])[:, :, 0]
            decrement = np.sqrt(np.maximum(-(gradient * step).sum(axis=1), 0.0))
            steepest = np.maximum((-(step @ J.T) / s).max(axis=1), 1.0 / _LONGEST)
            v = v + np.minimum(1.0, _NEARLY / steepest)[:, None] * step
            if decrement.max(initial=0.0) < _SMALL_STEP:
                break
    return v[:, 0], v[:, 1:]


def _joined(whole: AbsoluteDual, part: _Few, rest: _Rest, work: float) -> Found | None:
    """Gather multipliers of all features, if they are feasible."""
    n, few, held = whole.shares.sign.size, part.few, part.held
    matrix, charges, tau, y = part.program.parts(part.x)
    full, at = np.zeros((n + 1, n + 1)), np.concatenate([[0], 1 + few])
    full[np.ix_(at, at)] = matrix
    full[np.ix_(1 + held, at)] = rest.border
    full[np.ix_(at, 1 + held)] = rest.border.T
    full[np.ix_(1 + held, 1 + held)] = rest.inner
    shares, rows = np.zeros(n), np.zeros(whole.shares.b.size)
    shares[few], shares[held], rows[part.kept] = tau, rest.shares, y
    joined = whole.together(full, charges, shares, rows)
    if (whole.rows(joined) < 0).any():
        return None
    above, below = part.program.ways(part.found.multipliers)
    X, s, first = np.zeros((n + 1, n + 1)), np.zeros(n), part.found.X[0, 0]
    X[np.ix_(at, at)] = part.found.X / first
    s[few] = (below - above) / first
    return Found(part.value, charges, shares, whole.pairs(joined), rows, X, s, work)

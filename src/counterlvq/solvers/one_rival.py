"""Multipliers for a whole cell in closed form: one rival is charged for.

Relaxations say far more. These take no longer than reading the metrics once, for when time is
short: with absolute costs of at most U the products with the cost make up for what is not convex,

    sum_j w_j |delta_j| + charge (delta' Q delta + q'delta - r)  >=  -charge r

for charge = 1 / (U a + b), with a and b the largest entries of Q and q in units of the cost; a
quadratic cost makes up for it by itself.

Where one rival is nearer throughout a box, charging for it alone shows that the cell has nothing
there, however wide the box is: a relaxation over all rivals, in units of such a box, may miss it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.finite_algebra import least_squares
from counterlvq.numeric.tolerances import NEARLY_FLAT, NO_SIZE
from counterlvq.programs.nonconvex import Box, LiftedMultipliers, NonconvexProgram

__all__ = ["charged_for_one", "nearer_throughout"]

# Rivals that are tried where each may be nearer throughout.
_MOST_TRIED = 3
# How often each change is put where the others have it, where sides hold some.
_SWEEPS = 10
# Shares of a quadratic cost that are tried.
_SHARES = np.array([0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])


def charged_for_one(problem: NonconvexProgram, box: Box, cap: float) -> LiftedMultipliers | None:
    """Charge for the rival that bounds most; None where a cost of `cap` leaves changes free."""
    if not problem.rivals or not 0.0 < cap < np.inf or box.is_empty:
        return None
    w, L = problem.convex.prices_for(box.sign), np.asarray(problem.convex.L)
    if L.shape[0]:
        return _by_squares(problem, L)
    return _by_absolute_changes(problem, w, cap) if (w > 0).all() else None


def _by_absolute_changes(
    problem: NonconvexProgram, w: Floats, cap: float
) -> LiftedMultipliers | None:
    forms, m = problem.forms, problem.rivals
    curved = np.abs(forms.Q[:m] / (w[:, None] * w)).max(axis=(1, 2)) * cap
    charges = 1.0 / (curved + np.abs(forms.q[:m] / w).max(axis=1))
    k = _best(-charges * forms.r[:m])
    if k is None:
        return None
    none, charged = LiftedMultipliers.none(problem), np.zeros(forms.r.size)
    charged[k] = charges[k]
    signs = np.triu(-2.0 * charges[k] * forms.Q[k], 1)
    return replace(none, forms=charged, share=w * (charges[k] * curved[k]) / cap, signs=signs)


def _by_squares(problem: NonconvexProgram, L: Floats) -> LiftedMultipliers | None:
    """Charge what uses up some share of the cost for the curve, and the rest for the slope."""
    forms, m = problem.forms, problem.rivals
    try:
        back = np.linalg.inv(np.linalg.qr(L, mode="r"))
    except np.linalg.LinAlgError:
        return None
    Q, q = back.T @ forms.Q[:m] @ back, forms.q[:m] @ back
    curved = np.maximum(np.sqrt(np.einsum("kij,kij->k", Q, Q)), NO_SIZE)[:, None]
    steep = np.maximum(np.einsum("ki,ki->k", q, q), NO_SIZE)[:, None]
    leads, rest = np.maximum(-forms.r[:m], 0.0)[:, None], 1.0 - _SHARES
    charges = np.minimum(_SHARES / curved, 2.0 * rest * leads / steep)
    bounds = charges * (leads - charges * steep / (4.0 * rest))
    k = _best(bounds.max(axis=1))
    if k is None:
        return None
    charge, charged = charges[k, bounds[k].argmax()], np.zeros(forms.r.size)
    charged[k] = charge
    point = -0.5 * charge * back @ np.linalg.solve(np.eye(len(q[k])) + charge * Q[k], q[k])
    return replace(LiftedMultipliers.none(problem), forms=charged, point=point)


def nearer_throughout(problem: NonconvexProgram, box: Box) -> Iterator[LiftedMultipliers]:
    """Charge for one rival that seems to be nearer throughout a box, most clearly first.

    In small boxes by what a score can change from their middle on, in all others where the
    difference of scores is convex and above 0 at its least.
    """
    if not problem.rivals or box.is_empty:
        return
    forms, found = problem.forms, list[tuple[float, int, Floats]]()
    has_middle = np.isfinite(box.lower) & np.isfinite(box.upper)
    middle = np.where(has_middle, box.center, np.clip(0.0, box.lower, box.upper))
    half, moves = np.where(has_middle, box.half, np.inf), box.lower < box.upper
    for k, (Q, q, r) in enumerate(
        zip(*(part[: problem.rivals] for part in forms[:3]), strict=True)
    ):
        is_seen = moves & ((q != 0) | Q.any(axis=0))
        size = max(float(forms.size[k]), NO_SIZE)
        far, S = half[is_seen], Q[np.ix_(is_seen, is_seen)]
        at, slope = float(middle @ Q @ middle + q @ middle - r), (2.0 * Q @ middle + q)[is_seen]
        if np.isfinite(far).all():
            least = at - np.abs(slope) @ far - far @ np.abs(S) @ far
            found.append((float(least) / size, k, middle))
        if S.size and np.diag(S).min() >= -NEARLY_FLAT * np.abs(S).max() and _is_convex(S):
            ends = Box(box.lower[is_seen] - middle[is_seen], box.upper[is_seen] - middle[is_seen])
            step = _lowest(S, slope, ends)
            if step is not None:
                point = middle.copy()
                point[is_seen] += step
                found.append((float(at + slope @ step + step @ S @ step) / size, k, point))
    for worth, k, point in sorted(found, key=lambda each: -each[0])[:_MOST_TRIED]:
        if worth > 0.0:
            charged = np.zeros(forms.r.size)
            charged[k] = 1.0
            yield replace(LiftedMultipliers.none(problem), forms=charged, point=point)


def _lowest(Q: Floats, q: Floats, box: Box) -> Floats | None:
    """Find about where ``v'Qv + q'v`` is least in a box, by sweeps from its least value at all."""
    found = least_squares(Q, -0.5 * q, NEARLY_FLAT)
    if found is None:
        return None
    v = np.clip(found, *box)
    for _ in range(_SWEEPS if (v != found).any() else 0):
        for j in np.flatnonzero(np.diag(Q) > 0):
            best = v[j] - (Q[j] @ v + 0.5 * q[j]) / Q[j, j]
            v[j] = min(max(best, box.lower[j]), box.upper[j])
    return v


def _is_convex(Q: Floats) -> bool:
    """Whether floats say so, about."""
    return float(np.linalg.eigvalsh(Q)[0]) >= -NEARLY_FLAT * float(np.abs(Q).max())


def _best(bounds: Floats) -> int | None:
    k = int(np.nan_to_num(bounds, nan=0.0, posinf=0.0).argmax())
    return k if 0.0 < bounds[k] < np.inf else None

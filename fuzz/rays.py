"""Cheap points under local metrics: along a ray, every score is a parabola.

From x in many directions, the first point at which a wished-for prototype beats every rival and
all conditions hold is among the roots of differences of parabolas. The best directions are tried
again with smaller and smaller disturbances. All in doubles: what is found is confirmed elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fuzz.plain import Floats, Plain, times
from fuzz.rational import Matrix, Vector, exact

_DIRECTIONS = 160
_ROUNDS = 7
_KEPT = 6
_YIELDED = 40
# Around a root and well past it, in shares of the way: rounding blurs the root itself.
_STEPS = (1 - 1e-9, 1 - 1e-13, 1.0, 1 + 1e-13, 1 + 1e-10, 1 + 1e-7, 1 + 1e-4, 1.2, 10.0)


def cheapest(plain: Plain, x: Floats, wished: np.ndarray) -> Iterator[Floats]:
    """Points that look like counterfactuals, cheapest first."""
    rng = np.random.default_rng(0)
    units = _units(plain, x)
    free = _free(plain)
    base = _first_directions(plain, x, units, rng) * free
    first, first_costs = _shoot(plain, x, wished, base)
    found, costs = first, first_costs
    spread = 0.3
    for _ in range(_ROUNDS):
        if not len(found):
            break
        best = np.argsort(costs)[:_KEPT]
        found, costs = found[best], costs[best]
        towards = np.repeat(found - x, 20, axis=0)
        # Disturbed in each column by its own size and by the typical one.
        size = np.abs(towards) + 0.1 * np.abs(towards / units).max(axis=1, keepdims=True) * units
        tried = (towards + spread * size * rng.normal(size=towards.shape)) * free
        more, more_costs = _shoot(plain, x, wished, tried)
        found, costs = np.concatenate([found, more]), np.concatenate([costs, more_costs])
        spread /= 6
    found, costs = np.concatenate([found, first]), np.concatenate([costs, first_costs])
    order = np.argsort(costs, kind="stable")
    # The cheapest, and a sample of the others: the cheapest may owe their label to rounding.
    sample = order[:: max(1, len(order) // _YIELDED)]
    yield from found[np.unique(np.concatenate([order[:_YIELDED], sample]))]


def _units(plain: Plain, x: Floats) -> Floats:
    W = np.array([[float(v) for v in _center(F, f)] for F, f in _parts(plain)])
    spans = np.abs(W - x).max(axis=0)
    return np.where(spans > 0, spans, 1.0)


def _parts(plain: Plain) -> Iterator[tuple[Matrix, Vector]]:
    return zip(plain.scores.factors, plain.scores.anchors, strict=True)


def _center(F: Matrix, f: Vector) -> Floats:
    matrix = np.array([[float(v) for v in row] for row in F])
    return np.linalg.lstsq(matrix, np.array([float(v) for v in f]), rcond=None)[0]


def _free(plain: Plain) -> Floats:
    """Zero where an equality on one column keeps it."""
    out = np.ones(len(plain.columns))
    for row in plain.rows:
        used = [j for j, a in enumerate(row.new) if a]
        if row.equality and len(used) == 1:
            out[used[0]] = 0.0
    return out


def _first_directions(plain: Plain, x: Floats, units: Floats, rng: np.random.Generator) -> Floats:
    d = x.size
    signs = np.vstack([np.eye(d), -np.eye(d)]) * units
    to = np.array([_center(F, f) for F, f in _parts(plain)]) - x
    steps = rng.normal(size=(_DIRECTIONS, d)) * units
    steps *= rng.random((_DIRECTIONS, d)) < 0.8
    if d == 2:
        angle = np.linspace(0, 2 * np.pi, 120, endpoint=False)
        steps = np.vstack([steps, np.c_[np.cos(angle), np.sin(angle)] * units])
    return np.vstack([signs, to, steps])


def _shoot(plain: Plain, x: Floats, wished: np.ndarray, U: Floats) -> tuple[Floats, Floats]:
    U = U[np.abs(U).max(axis=1) > 0]
    if not len(U):
        return np.zeros((0, x.size)), np.zeros(0)
    C = _parabolas(plain, x, U)  # (n, p, 3)
    margin = plain.margin or 0.0
    differences = C[:, wished][:, :, None, :] - C[:, ~wished][:, None, :, :]
    differences[..., 2] += margin  # (n, t, r, 3): a t^2 + b t + c <= 0 wins
    limits = _limits(plain, x, U)  # (n, q, 3)
    flat = np.concatenate([differences.reshape(len(U), -1, 3), limits], axis=1)
    T = np.concatenate([_roots(flat), np.zeros((len(U), 1))], axis=1)
    T = np.concatenate([T * step for step in _STEPS], axis=1)
    T = np.where(np.isfinite(T) & (T >= 0), T, np.nan)
    T.sort(axis=1)
    held = _values(limits, T).max(axis=1, initial=-np.inf) <= 0  # (n, m)
    n, t, r, _ = differences.shape
    lead = _values(differences.reshape(n, t * r, 3), T).reshape(n, t, r, -1)
    won = (lead.max(axis=2) <= 0).any(axis=1)
    good = held & won & np.isfinite(T)
    # The first good one of each ray, and the next: rounding may yet decide against it.
    rank = np.cumsum(good, axis=1)
    take = good & ((rank <= 2) | (rank % 7 == 0))
    ray, at = np.nonzero(take)
    Y = x + T[ray, at][:, None] * U[ray]
    return Y, plain.price.of_rows(Y, x)


def _parabolas(plain: Plain, x: Floats, U: Floats) -> Floats:
    out = np.empty((len(U), len(plain.scores.labels), 3))
    for k, (F, f) in enumerate(_parts(plain)):
        matrix = np.array([[float(v) for v in row] for row in F])
        # In rational numbers first: anchors may be large and the difference small.
        here = np.array([float(u - v) for u, v in zip(times(F, exact(x)), f, strict=True)])
        step = U @ matrix.T
        out[:, k, 0] = (step**2).sum(axis=1)
        out[:, k, 1] = 2 * step @ here
        out[:, k, 2] = here @ here + float(plain.scores.offsets[k])
    return out


def _limits(plain: Plain, x: Floats, U: Floats) -> Floats:
    point = exact(x)
    rows = [row for row in plain.rows if not row.equality]
    out = np.zeros((len(U), len(rows), 3))
    for k, row in enumerate(rows):
        out[:, k, 1] = U @ np.array([float(v) for v in row.new])
        out[:, k, 2] = float(row.excess(point, point))
    return out


def _roots(C: Floats) -> Floats:
    a, b, c = C[..., 0], C[..., 1], C[..., 2]
    with np.errstate(all="ignore"):
        root = np.sqrt(b * b - 4 * a * c)
        q = -0.5 * (b + np.where(b < 0, -1.0, 1.0) * root)
        return np.concatenate([q / a, c / q, -c / b], axis=1)


def _values(C: Floats, T: Floats) -> Floats:
    """Parabolas (n, k, 3) at times (n, m), as (n, k, m)."""
    t = T[:, None, :]
    with np.errstate(all="ignore"):
        found = (C[..., 0, None] * t + C[..., 1, None]) * t + C[..., 2, None]
    return np.where(np.isnan(found), np.inf, found)

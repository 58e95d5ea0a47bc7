"""Two-dimensional slices through the space of inputs: what a picture of a proof shows.

A slice is exact where a projection would not be: every point of it is an input, its label is what
`predict` says there, its cost is what the change to it would cost, and the constraints hold there
or they do not. So the set of points that are cheaper than a lower bound, cut by the plane, holds
no wished-for point that obeys the constraints. Nothing here draws.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from counterlvq.errors import NotSupportedError
from counterlvq.explainer import Explainer
from counterlvq.numeric.arrays import Floats, plain
from counterlvq.numeric.tolerances import DRAWN_ROUNDING
from counterlvq.plots.plane_geometry import (
    Plane,
    PlaneAxes,
    conditions_of,
    nearest_wished,
    plane_of,
)
from counterlvq.problem.costs import Cost
from counterlvq.problem.plausibility import Plausible
from counterlvq.programs.conditions import QuadraticCondition
from counterlvq.results import Counterfactual

__all__ = ["Slice", "costs_of", "excess", "slice_of"]

# Distances from the grid to all prototypes, in multiplications: what a picture may take.
_EFFORT = 4e8
_FINEST, _COARSEST = 241, 41
# Points of the outline of a ball.
_RAYS = 720


@final
@dataclass(frozen=True, eq=False)
class Slice:
    """What the plane looks like: grids over places (v down the rows, u along the columns)."""

    plane: Plane
    u: Floats  # (nu,)
    v: Floats  # (nv,)
    scores: Floats  # (classes, nv, nu) squared distance to the nearest prototype of each class
    wished: NDArray[np.bool_]  # (classes,)
    excess: Floats  # (nv, nu) above 0 where a constraint is broken
    lines: tuple[Floats, ...]  # (nv, nu) each: equalities of the user, which hold where it is 0
    ball: Floats  # (k, 2) outline of what costs less than the lower bound; k may be 0
    reached: Floats  # (k, 2) the same for the cost, where the bound is clearly below it

    @property
    def lead(self) -> Floats:
        """At most 0 where the model says what is wished for, (nv, nu)."""
        return _lead(self.scores, self.wished)

    @property
    def winners(self) -> NDArray[np.intp]:
        """Which class wins, (nv, nu)."""
        return np.asarray(self.scores.argmin(axis=0))

    def places(self) -> Floats:
        """All places of the grid, row by row, (nv * nu, 2)."""
        across, up = np.meshgrid(self.u, self.v)
        return np.stack([across.ravel(), up.ravel()], axis=1)


def slice_of(explainer: Explainer, cf: Counterfactual, features: PlaneAxes = None) -> Slice:
    """Compute what `plot_plane` draws."""
    if explainer.scales:
        raise NotSupportedError(
            f"the model sees {', '.join(explainer.scales[:3])}, so that its cells are curved in "
            f"the columns of the table; expected columns that it sees as they are. Use "
            f"plot_changes, or transform the table before the pipeline."
        )
    plane = plane_of(explainer, cf, features)
    answer = plane.places((cf.values if cf.status.has_answer else cf.original_values)[None, :])[0]
    ball = _outline(plane, explainer.cost, cf.original_values, cf.lower_bound, answer)
    open_gap = cf.status.has_answer and cf.cost - cf.lower_bound > 1e-3 * cf.cost
    limit = cf.cost if open_gap else 0.0
    reached = _outline(plane, explainer.cost, cf.original_values, limit, answer)
    u, v = _window(plane, explainer, cf, np.concatenate([ball, reached]))
    across, up = np.meshgrid(u, v)
    points = plane.points(np.stack([across.ravel(), up.ravel()], axis=1))
    shape = across.shape
    target = set(cf.target)
    over, lines = excess(explainer, cf.original_values, points, cf.target)
    return Slice(
        plane=plane,
        u=u,
        v=v,
        scores=_scores(explainer, points).reshape(-1, *shape),
        wished=np.array([label in target for label in explainer.model.classes.tolist()]),
        excess=over.reshape(shape),
        lines=tuple(line.reshape(shape) for line in lines),
        ball=ball,
        reached=reached,
    )


def costs_of(cost: Cost, deltas: Floats) -> Floats:
    """Cost of each change (n, d), as `Cost.value` has it, (n,)."""
    width = deltas.shape[1]
    lifted = deltas @ cost.l2_factor(width).T
    up, down = cost.l1_ways(width)
    if cost.takes_largest:
        return np.asarray((np.abs(deltas) * up).max(axis=1))
    flat = np.maximum(deltas, 0.0) @ up + np.maximum(-deltas, 0.0) @ down
    return np.asarray(flat + np.einsum("ij,ij->i", lifted, lifted))


def excess(
    explainer: Explainer, x: Floats, points: Floats, target: Collection[Any] = ()
) -> tuple[Floats, list[Floats]]:
    """By how much each point (n, d) breaks the worst constraint, if it does, (n,).

    With it the misses of equalities that hold somewhere among the points and not elsewhere.
    """
    worst, lines = np.full(points.shape[0], -1.0), []
    for condition in conditions_of(explainer):
        if isinstance(condition, QuadraticCondition):
            lifted = points @ condition.G.T - condition.g
            over = np.einsum("ij,ij->i", lifted, lifted) + points @ condition.h - condition.c
            size = 1.0 + abs(condition.c) + float(np.abs(over).max())
            worst = np.maximum(worst, over / size - DRAWN_ROUNDING)
            continue
        over = points @ condition.A.T + condition.R @ x - condition.v
        sizes = condition.magnitude(np.abs(points).max(axis=0), x)
        signed = over / np.where(sizes > 0, sizes, 1.0)
        share = np.abs(signed) if condition.equality else signed
        # What holds all over says nothing, and being held by a hair would blur other edges.
        crossed = share.max(axis=0, initial=-1.0) > DRAWN_ROUNDING
        if condition.equality:
            lines += list(signed[:, crossed].T)
        worst = np.maximum(worst, (share - DRAWN_ROUNDING)[:, crossed].max(axis=1, initial=-1.0))
    for item in explainer.constraints:
        if isinstance(item, Plausible):
            worst = np.maximum(worst, _implausible(item, explainer, target, points))
    return worst, lines


def _implausible(
    plausible: Plausible, explainer: Explainer, target: Collection[Any], points: Floats
) -> Floats:
    """By how much points (n, d) lie outside of all ellipsoids of the wished-for labels, (n,)."""
    at = [explainer.features.number(key, "Plausible") for key in plausible.features]
    out = np.full(len(points), 1.0)
    for item in plausible.ellipsoids:
        if plain(item.label) in target and len(item.factor):
            lifted = (points[:, at] - item.center) @ item.factor.T
            far = np.einsum("ij,ij->i", lifted, lifted) / item.value - 1.0
            out = np.minimum(out, np.clip(far, -1.0, 1.0) - DRAWN_ROUNDING)
    return out


def _outline(plane: Plane, cost: Cost, x: Floats, limit: float, place: Floats) -> Floats:
    """Outline what costs less than `limit` in the plane, (k, 2); convex, as the cost is.

    One of its corners lies in the direction of `place`.
    """
    if not 0 < limit < np.inf:
        return np.zeros((0, 2))

    def spent(places: Floats) -> Floats:
        return costs_of(cost, plane.points(places) - x)

    center = plane.places(x[None, :])[0]
    if spent(center[None, :])[0] >= limit:
        center = _cheapest(spent, center)
        if spent(center[None, :])[0] >= limit:
            return np.zeros((0, 2))
    rays = _rays(plane, place - center)
    near, far = np.zeros(len(rays)), np.full(len(rays), 1e-12)
    for _ in range(200):
        inside = spent(center + far[:, None] * rays) < limit
        if not inside.any() or far.max() > 1e30:
            break
        far = np.where(inside, 2.0 * far, far)
    for _ in range(64):
        middle = 0.5 * (near + far)
        inside = spent(center + middle[:, None] * rays) < limit
        near, far = np.where(inside, middle, near), np.where(inside, far, middle)
    return np.asarray(center + near[:, None] * rays)


def _cheapest(spent: Callable[[Floats], Floats], place: Floats) -> Floats:
    """Find the place of the plane that costs least, near enough to start rays from."""

    def value(at: Floats) -> float:
        return float(spent(at[None, :])[0])

    return np.asarray(minimize(value, place.tolist(), method="Nelder-Mead").x, dtype=np.float64)


def _rays(plane: Plane, toward: Floats) -> Floats:
    """Directions in the plane, by angle; those in which a feature stays as it is are corners."""
    lengths = plane.lengths
    there = np.arctan2(toward[1] * lengths[1], toward[0] * lengths[0])
    a, b = plane.first / lengths[0], plane.second / lengths[1]
    used = (a != 0) | (b != 0)
    corners = np.arctan2(-a[used], b[used])
    even = np.linspace(-np.pi, np.pi, _RAYS, endpoint=False)
    angles = np.concatenate([even, corners, [there]])
    angles = np.unique(np.mod(np.concatenate([angles, corners + np.pi]), 2 * np.pi))
    return np.stack([np.cos(angles), np.sin(angles)], axis=1) / lengths


def _window(
    plane: Plane, explainer: Explainer, cf: Counterfactual, outline: Floats
) -> tuple[Floats, Floats]:
    """Grid that shows input, answer, balls, and the two prototypes if they are not too far."""
    model = explainer.model
    lengths = plane.lengths
    x = plane.places(cf.original_values[None, :]) * lengths
    seen = [x]
    if cf.status.has_answer:
        seen.append(plane.places(cf.values[None, :]) * lengths)
    else:
        seen.append(plane.places(nearest_wished(explainer, cf)[None, :]) * lengths)
    size = float(np.linalg.norm(seen[1] - x))
    nearest = [int(model.nearest(cf.original_values[None, :])[0]), max(cf.prototype, 0)]
    homes = plane.places(model.prototypes[nearest]) * lengths
    if not size:  # nothing changes, or the answer lies right behind the input
        size = float(np.linalg.norm(homes - x, axis=1).max()) or 1.0
        seen.append(x + size * np.array([[1.0, 1.0], [-1.0, -1.0]]))
    seen += [home[None, :] for home in homes if np.linalg.norm(home - x) <= 3.0 * size]
    seen.append(np.clip(outline * lengths, x - 3.0 * size, x + 3.0 * size))
    low, high = (end(np.concatenate(seen), axis=0) for end in (np.min, np.max))
    half = np.maximum(0.62 * (high - low), 0.45 * (high - low).max())
    center = 0.5 * (low + high)
    count = int(np.clip(np.sqrt(_EFFORT / model.prototypes.size), _COARSEST, _FINEST))
    ends = np.stack([center - half, center + half]) / lengths
    u, v = np.linspace(ends[0], ends[1], count).T
    return u, v


def _scores(explainer: Explainer, points: Floats) -> Floats:
    """Squared distance of each point of a slice to the nearest prototypes, (classes, n)."""
    model = explainer.model
    out = np.empty((len(model.classes), points.shape[0]))
    block = max(1, (1 << 22) // model.n_prototypes)
    for start in range(0, points.shape[0], block):
        distances = model.distances(points[start : start + block])
        for c in range(len(model.classes)):
            out[c, start : start + block] = distances[:, model.class_index == c].min(axis=1)
    return out


def _lead(scores: Floats, wished: NDArray[np.bool_]) -> Floats:
    return np.asarray(scores[wished].min(axis=0) - scores[~wished].min(axis=0, initial=np.inf))

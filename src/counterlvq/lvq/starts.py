"""Where training begins: samples in a fixed order, and prototypes by class-wise k-means."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from counterlvq.numeric.arrays import Floats

__all__ = ["Samples", "Units", "kmeans_prototypes", "merged", "start_factor"]

_SIGN_BIT = np.uint64(1 << 63)
_KMEANS_ROUNDS = 100
# Enough for starts of small classes to agree whatever the seed; large classes need fewer.
_KMEANS_TRIES = 20
_KMEANS_ROWS = 10_000


class Samples(NamedTuple):
    """Distinct weighted samples."""

    X: Floats  # (n, d)
    y: NDArray[np.intp]  # (n,), positions in the sorted classes
    weight: Floats  # (n,), positive


class Units(NamedTuple):
    """The coordinates in which training works: varying features, centred, of unit spread.

    A feature without variation can teach nothing and is left out; it comes back with the value
    it has and with no weight in any metric.
    """

    varying: NDArray[np.bool_]  # (d,)
    center: Floats  # (d,)
    scale: float

    @classmethod
    def of(cls, samples: Samples) -> Units:
        """Measure the coordinates on samples."""
        X, weight = samples.X, samples.weight / samples.weight.sum()
        varying = X.min(axis=0) < X.max(axis=0)
        if not varying.any():
            varying = np.ones_like(varying)
        center = np.where(varying, weight @ X, X[0])
        spread = np.sqrt((weight @ (X - center) ** 2)[varying].mean())
        return cls(varying, center, float(spread) or 1.0)

    def enter(self, X: Floats) -> Floats:
        """Take rows to training coordinates."""
        return np.ascontiguousarray((X - self.center)[:, self.varying] / self.scale)

    def leave_points(self, points: Floats) -> Floats:
        """Take rows back to the features of the user."""
        out = np.repeat(self.center[None, :], len(points), axis=0)
        out[:, self.varying] += self.scale * points
        return out

    def leave_factors(self, omegas: Floats, rank: int) -> Floats:
        """Widen factors (m, r, d) to `rank` rows and all features, with zeros."""
        out = np.zeros((omegas.shape[0], rank, len(self.varying)))
        rows = np.zeros((rank, len(self.varying)), dtype=bool)
        rows[: omegas.shape[1]] = self.varying
        out[:, rows] = omegas.reshape(len(omegas), -1)
        return out


def merged(X: Floats, y: NDArray[np.intp], weight: Floats) -> Samples:
    """Merge equal rows of equal label, adding up their weights, and sort.

    What follows then depends on the weighted set of samples alone: neither the order of rows
    nor writing a row twice instead of giving it weight 2 changes a digit of the result.
    """
    table = np.column_stack([y, X]) + 0.0  # which turns -0.0 into 0.0
    # Whole rows are sorted as bytes, much faster than column by column. Bits of floats order
    # like their values once negative ones are inverted and the others have their sign bit set.
    bits = table.view(np.uint64)
    ordered = np.where(table < 0, ~bits, bits | _SIGN_BIT).astype(">u8")
    as_bytes: NDArray[Any] = ordered.view(np.dtype((np.void, 8 * table.shape[1])))
    _, first, place = np.unique(as_bytes[:, 0], return_index=True, return_inverse=True)
    rows = table[first]
    total: Floats = np.bincount(place, weights=weight).astype(np.float64)
    return Samples(np.ascontiguousarray(rows[:, 1:]), rows[:, 0].astype(np.intp), total)


def kmeans_prototypes(
    samples: Samples, counts: NDArray[np.intp], random_state: np.random.RandomState
) -> Floats:
    """Centres of k-means within each class, `counts[c]` of them for class c, class by class."""
    parts = []
    for label, count in enumerate(counts):
        members = samples.y == label
        X, weight = samples.X[members], samples.weight[members]
        if count == 1:
            parts.append(np.average(X, axis=0, weights=weight)[None, :])
            continue
        if count >= len(X):
            # Fewer distinct samples than prototypes: some of these coincide, and stay so.
            parts.append(X[np.arange(count) % len(X)])
            continue
        tries = max(1, min(_KMEANS_TRIES, _KMEANS_ROWS // len(X)))
        found = [_kmeans(X, weight, int(count), random_state) for _ in range(tries)]
        parts.append(min(found, key=lambda run: run[0])[1])
    return np.concatenate(parts)


def _kmeans(
    X: Floats, weight: Floats, count: int, random_state: np.random.RandomState
) -> tuple[float, Floats]:
    """One run from k-means++ seeds: weighted squared distances that remain, and the centres."""
    # Written out, because scikit-learn's k-means sums in threads in no fixed order, so that the
    # last digit of a start, amplified by training, would differ from run to run; and because
    # on a few hundred rows its checks take ten times as long as all of training.
    centers = _seeds(X, weight, count, random_state)
    distances = cdist(X, centers, "sqeuclidean")
    nearest = distances.argmin(axis=1)
    for _ in range(_KMEANS_ROUNDS):
        member = (nearest[:, None] == np.arange(count)) * weight[:, None]
        mass = member.sum(axis=0)[:, None]
        centers = np.where(mass > 0, (member.T @ X) / np.where(mass > 0, mass, 1.0), centers)
        distances = cdist(X, centers, "sqeuclidean")
        before, nearest = nearest, distances.argmin(axis=1)
        if np.array_equal(before, nearest):
            break
    return float(weight @ distances.min(axis=1)), centers


def _seeds(X: Floats, weight: Floats, count: int, random_state: np.random.RandomState) -> Floats:
    """Draw rows, each with a chance that grows with its squared distance to those before.

    Of a few rows drawn at each step the one that leaves the least is kept.
    """
    chances, chosen = weight, []
    nearest = np.full((len(X), 1), np.inf)
    draws = 2 + int(np.log(count))
    for _ in range(count):
        sums = np.cumsum(chances)
        picks = np.searchsorted(sums, random_state.uniform(size=draws) * sums[-1], side="right")
        picks = np.minimum(picks, len(X) - 1)
        left = np.minimum(nearest, cdist(X, X[picks], "sqeuclidean"))
        best = int((weight @ left).argmin())
        chosen.append(picks[best])
        nearest = left[:, best : best + 1]
        chances = weight * nearest[:, 0]
    seeds: Floats = X[chosen]
    return seeds


def start_factor(samples: Samples, rank: int) -> Floats:
    """First metric factor, (rank, d): the identity, or the leading principal directions."""
    width = samples.X.shape[1]
    if rank == width:
        return np.eye(width)
    covariance = samples.X.T @ (samples.weight[:, None] * samples.X)
    _, directions = np.linalg.eigh(covariance)
    leading: Floats = directions[:, ::-1][:, :rank].T
    return np.ascontiguousarray(leading)

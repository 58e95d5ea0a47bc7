"""How far inputs are from prototypes, and how far rounding lets these numbers be off."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.alike import Alike, alike
from counterlvq.numeric.arrays import Floats, read_only
from counterlvq.numeric.distances import squared_distances
from counterlvq.numeric.exact import squared_distance
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.memory import FLOAT, refuse_too_large
from counterlvq.numeric.tolerances import TINY_ROOT, TINY_SQUARE, UNIT

__all__ = ["FEW_ROWS", "PrototypeMetric"]

# Up to so many rows, local distances are taken of all prototypes at once.
FEW_ROWS = 4


class PrototypeMetric:
    """Squared distances to prototypes, under one metric or one for each, with offsets.

    What a model computes before it compares: the distances, the space of a shared metric in
    which they are taken, bounds on their rounding, and the same without any.
    """

    prototypes: Floats  # (p, d)
    omegas: Floats | tuple[Floats, ...] | None  # None, (d,), (r, d), or p of (r_k, d)
    offsets: Floats | None  # (p,)

    @property
    def n_prototypes(self) -> int:
        """How many prototypes there are."""
        return int(self.prototypes.shape[0])

    @property
    def n_features(self) -> int:
        """How many columns an input has."""
        return int(self.prototypes.shape[1])

    @property
    def is_local(self) -> bool:
        """Whether prototypes differ in their metric."""
        return isinstance(self.omegas, tuple)

    @property
    def diagonal(self) -> Floats | None:
        """The factor of a diagonal metric that is kept as a vector, (d,); None for any other."""
        omegas = self.omegas
        return omegas if isinstance(omegas, np.ndarray) and omegas.ndim == 1 else None

    @cached_property
    def center(self) -> Floats:
        """The median prototype, (d,); taken off first so that a far origin costs no digits.

        One prototype far away moves a mean, and with it the digits of all others, but no median.
        """
        return read_only(np.median(self.prototypes, axis=0))

    @cached_property
    def shared_factor(self) -> Floats:
        """The factor F (r, d) of a shared metric; the identity for plain distances."""
        if isinstance(self.omegas, tuple):
            raise InvalidInputError("this model has local metrics; there is no shared factor.")
        if self.omegas is not None and self.diagonal is None:
            return self.omegas
        d = self.n_features
        refuse_too_large(
            f"a metric for {d:,} features, written as a matrix,", FLOAT * d * d,
            "leave out features, or ask with a cost and constraints that treat them one by one",
        )  # fmt: skip
        F = np.zeros((d if self.offsets is None else d + 1, d))
        F[np.arange(d), np.arange(d)] = 1.0 if self.diagonal is None else self.diagonal
        return read_only(F)

    @cached_property
    def factors(self) -> tuple[Floats, ...]:
        """The factor of every prototype's metric, p of (r_k, d)."""
        if isinstance(self.omegas, tuple):
            return self.omegas
        return (self.shared_factor,) * self.n_prototypes

    @cached_property
    def anchors(self) -> Floats:
        """Where the prototypes lie under the shared factor, f = F (w - center), (p, r).

        With offsets the last coordinate is their root: the factor is zero there, so that inputs
        stay at 0.
        """
        anchors = self.project(self.prototypes)
        if self.offsets is not None:
            anchors[:, -1] = np.sqrt(self.offsets)
        return read_only(anchors)

    def project(self, X: Floats) -> Floats:
        """Take rows to the space of the shared metric, F (x - center), (n, r)."""
        centred = X - self.center
        if self.omegas is None:
            return centred
        if self.diagonal is None:
            return centred @ self.shared_factor.T
        if self.offsets is None:
            return np.asarray(centred * self.diagonal)
        out = np.zeros((len(centred), self.n_features + 1))
        np.multiply(centred, self.diagonal, out=out[:, :-1])
        return out

    def distances_of_checked(self, rows: Floats) -> Floats:
        """As `distances`, for rows that are known to be finite and of the right width."""
        with np.errstate(over="ignore", invalid="ignore"):  # then a distance is infinite, or NaN
            return self._distances(rows)

    def _distances(self, rows: Floats) -> Floats:
        # Squared differences are summed one pair at a time: no (n, p, d) array, and none of the
        # cancellation of |x|^2 - 2 x'w + |w|^2.
        if self.omegas is None:
            return squared_distances(rows, self.prototypes)
        if not isinstance(self.omegas, tuple):
            return squared_distances(self.project(rows), self.anchors)
        if rows.shape[0] <= FEW_ROWS:
            return self._distances_of_few(rows)
        out = np.empty((rows.shape[0], self.n_prototypes))
        for k, (prototype, omega) in enumerate(zip(self.prototypes, self.omegas, strict=True)):
            projected = (rows - prototype) @ omega.T
            out[:, k] = np.einsum("ij,ij->i", projected, projected)
        return out if self.offsets is None else out + self.offsets

    def _distances_of_few(self, rows: Floats) -> Floats:
        """Local distances of a few rows, without a step per prototype in Python."""
        away = (rows[:, None, :] - self.prototypes)[..., None]
        projected = np.matmul(self._stacked, away)[..., 0]
        out = np.einsum("nkr,nkr->nk", projected, projected)
        return np.asarray(out if self.offsets is None else out + self.offsets)

    @cached_property
    def _stacked(self) -> Floats:
        """The factors one upon the other, (p, r, d), short ones filled up with zeros."""
        stack = np.zeros(
            (self.n_prototypes, max(len(part) for part in self.factors), self.n_features)
        )
        for k, factor in enumerate(self.factors):
            stack[k, : len(factor)] = factor
        return read_only(stack)

    def exact_distance(self, x: Floats, k: int) -> Fraction:
        """Squared distance of one row to prototype k, without rounding."""
        factor = self.omegas[k] if isinstance(self.omegas, tuple) else self.omegas
        distance = squared_distance(x, self.prototypes[k], factor)
        return distance if self.offsets is None else distance + Fraction(float(self.offsets[k]))

    @cached_property
    def first_copies(self) -> NDArray[np.intp]:
        """For each prototype the first that is the same, metric and offset too, (p,)."""
        first: dict[tuple[bytes, ...], int] = {}
        offsets = np.zeros(self.n_prototypes) if self.offsets is None else self.offsets
        found = []
        for k, point in enumerate(self.prototypes + 0.0):  # + 0.0: one zero, not two
            factor = self.omegas[k].tobytes() if isinstance(self.omegas, tuple) else b""
            key = point.tobytes(), factor, offsets[k].tobytes()
            found.append(first.setdefault(key, k))
        return read_only(np.array(found, dtype=np.intp))

    @cached_property
    def first_alike(self) -> NDArray[np.intp]:
        """For each prototype the first that is exactly as far from everything, (p,).

        Copies, and under metrics that do not see all directions others too.
        """
        return self._alike.first

    @property
    def nearly_alike(self) -> tuple[tuple[int, int], ...]:
        """Pairs of prototypes that a metric tells apart by the rounding of their numbers alone."""
        return self._alike.nearly

    @cached_property
    def _alike(self) -> Alike:
        first, nearly = self.first_copies.copy(), list[tuple[int, int]]()
        alone = np.flatnonzero(first == np.arange(self.n_prototypes))
        for at in self._of_one_metric(alone):
            factor = self.omegas[at[0]] if isinstance(self.omegas, tuple) else self.omegas
            if factor is None or at.size < 2:
                continue
            same = alike(self.prototypes[at], factor, *self._images(at, factor))
            first[at] = at[same.first]
            nearly += [(int(at[i]), int(at[k])) for i, k in same.nearly]
        return Alike(read_only(first[first]), tuple(nearly))

    def _of_one_metric(self, among: NDArray[np.intp]) -> list[NDArray[np.intp]]:
        """Divide prototypes by metric and offset."""
        groups: dict[tuple[bytes, float], list[int]] = {}
        for k in among.tolist():
            factor = self.omegas[k].tobytes() if isinstance(self.omegas, tuple) else b""
            offset = 0.0 if self.offsets is None else float(self.offsets[k])
            groups.setdefault((factor, offset), []).append(k)
        return [np.array(group, dtype=np.intp) for group in groups.values()]

    def _images(self, at: NDArray[np.intp], factor: Floats) -> tuple[Floats, Floats]:
        """Where a metric takes some prototypes, and a bound on the rounding of that."""
        if not isinstance(self.omegas, tuple):
            return self.anchors[at], self.anchor_errors[at]
        centred = self.prototypes[at] - self.center
        error = (self.n_features + 4) * UNIT * (np.abs(centred) @ _column_lengths(factor))
        return centred @ factor.T, error

    def distance_errors(self, rows: Floats, scores: Floats) -> Floats:
        """Bound the rounding of `distances`, (n, p).

        A sum of squares of rounded differences is right to a share of itself. A product with
        the factor is off by at most d + 2 roundings of ``sum_j |F_j| |x_j|``, with ``|F_j|`` the
        length of a column; an error e before squaring is worth ``2 sqrt(score) e + e^2``.
        With a diagonal factor each coordinate is off by two roundings of itself.
        """
        d = self.n_features
        if self.omegas is None:
            return (d + 8) * UNIT * scores + TINY_SQUARE
        if isinstance(self.omegas, tuple):
            blur = np.empty_like(scores)
            for k, (prototype, omega) in enumerate(zip(self.prototypes, self.omegas, strict=True)):
                blur[:, k] = np.abs(rows - prototype) @ _column_lengths(omega)
            blur *= (d + 4) * UNIT
            r = max(len(omega) for omega in self.omegas)
        else:
            r = self.anchors.shape[1]
            blur = self.projection_errors(rows)[:, None] + self.anchor_errors
        # 2 sqrt(scores) blur + blur^2 + rest, in place: this is asked of every row of a batch.
        with np.errstate(over="ignore", invalid="ignore"):  # then all of them are looked at
            out = np.sqrt(scores)
            out *= 2.0
            out *= blur
            blur *= blur
            out += blur
            rest = np.multiply(scores, (r + 8) * UNIT, out=blur)
            rest += TINY_SQUARE
            out += rest
            return out

    def projection_errors(self, rows: Floats) -> Floats:
        """Bound the length of the rounding of `project`, (n,)."""
        if self.diagonal is None:
            away = np.abs(rows - self.center) @ self.column_lengths
            return np.asarray((self.n_features + 4) * UNIT * away)
        images = (rows - self.center) * self.diagonal
        lengths = np.sqrt(np.einsum("ij,ij->i", images, images))
        share = 2.0 * (1.0 + (self.n_features + 8) * UNIT) * UNIT
        return np.asarray(share * lengths + TINY_ROOT)

    @cached_property
    def anchor_errors(self) -> Floats:
        """Bound the length of the rounding of each of the `anchors`, (p,)."""
        errors = self.projection_errors(self.prototypes)
        if self.offsets is not None:
            errors = errors + UNIT * np.sqrt(self.offsets)
        return read_only(errors)

    @cached_property
    def column_lengths(self) -> Floats:
        """Length of each column of the shared factor, rounded up, (d,)."""
        if self.omegas is None:
            return read_only(np.repeat(_column_lengths(np.ones((1, 1))), self.n_features))
        if self.diagonal is not None:
            return read_only(np.abs(self.diagonal))
        return read_only(_column_lengths(self.shared_factor))

    def worked_out_each(self, points: Floats, omegas: Floats) -> dict[str, Floats]:
        """Work out at once what metrics with these prototypes and factors need: arrays by name.

        Of prototypes (n, p, d) and shared factors (n, r, d), without offsets.
        """
        center = np.median(points, axis=1)
        centred = points - center[:, None, :]
        lengths = _column_lengths(omegas)
        away = np.matmul(np.abs(centred), lengths[..., None])[..., 0]
        return {
            "center": center,
            "anchors": np.matmul(centred, omegas.swapaxes(-1, -2)),
            "column_lengths": lengths,
            "anchor_errors": (points.shape[-1] + 4) * UNIT * away,
        }

    @cached_property
    def factor_sizes(self) -> Floats:
        """Absolute values of the shared factor, (r, d)."""
        return read_only(np.abs(self.shared_factor))


def _column_lengths(factor: Floats) -> Floats:
    """Length of each column, rounded up, (d,); of many factors (n, r, d) at once, (n, d)."""
    lengths = np.sqrt(np.einsum("...ij,...ij->...j", factor, factor))
    return np.asarray(lengths * (1.0 + (factor.shape[-2] + 8) * UNIT))

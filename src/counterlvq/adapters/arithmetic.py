"""How far rounding in a foreign `predict` can move the scores that it compares.

A model of another library computes the distances of its prototypes in its own way: in single or
double precision, from differences or from products, by routines whose sums depend on the rows
that are asked together. A row is labelled for certain, alone and in any company, only where the
lead of the winner exceeds what all this can blur.

Notation: u is the unit of rounding, ``gamma_n = n u / (1 - n u)``. A sum of n products, in any
order and with or without fused operations, is off by at most gamma_n times the sum of their
absolute values [Higham, Accuracy and Stability of Numerical Algorithms, sections 2.2 and 3.1],
so that nothing below depends on how a routine blocks or splits its sums. With omega of shape
(r, d) and ``s`` a bound on how far the input that the routine sees is from the exact one,
two forms are told apart:

* From differences. ``t = |omega| |x - w|``. The differences are off by u of themselves, their
  images by gamma_d t, squares and sums by gamma_(r+1), whether omega or omega' omega is
  multiplied: below ``gamma_N sum t^2`` in all.
* From products, or of projections taken one by one. ``t = |omega| (|x| + |w|)``. Each of
  ``|omega x|^2 - 2 (omega x)'(omega w) + |omega w|^2`` is a sum of products whose absolute values
  sum up to at most ``sum t^2``: below ``gamma_N sum t^2`` again, with the larger t.

In both forms N = 2 d + r + 16 exceeds the number of roundings on the way to any term, and so
does d + 16 where there is no omega: d for a sum of products, twice that where projections are
multiplied, and fewer than 16 for three terms added up, a division of both sides by scales, a
root that is taken and squared again, a weight of a class that is added, and a root that is
compared instead of its square, which blurs by 4 u of the score. Where a library is known not to do
some of this, its adapter says how many of the 16 are left. An input that is off by s moves a
score by at most ``sum (2 t + |omega| s) (|omega| s)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.distance_bounds import competing, lengths_within
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.distances import distances
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.tolerances import COARSEST_UNIT, EPSILON, SAFE, SINGLE_EPSILON

__all__ = ["Arithmetic", "projected_arithmetic", "radii_of", "tangent_arithmetic", "unit_of"]

# Roundings that no sum of d or r terms explains, see above.
_OTHER_ROUNDINGS = 16
# Entries of rows x prototypes that are looked at together; bounds memory, not the result.
_BLOCK_ENTRIES = 1 << 20
# Prototypes at which arithmetics are compared, and from how many times the rounding of differences
# in doubles on one is remembered: below, the margin of a model of our own is enough.
_PROTOTYPES_ASKED = 64
_COARSE = 4096.0
# A prototype competes if its score is within so many times the errors of the least one.
_COMPETING = 4.0


def unit_of(*arrays: Any) -> float:
    """Return the unit of rounding of arithmetic with these arrays: that of the coarsest."""
    coarse = [array.dtype.kind == "f" and array.dtype.itemsize < 8 for array in arrays]
    return SINGLE_EPSILON if any(coarse) else EPSILON


@dataclass(frozen=True, eq=False)
class Arithmetic:
    """The arithmetic of a foreign `predict`, and the prototypes that were read from its model."""

    model: PrototypeModel
    unit: float = EPSILON
    by_products: bool = True
    casts: bool = False  # whether rows are rounded to `unit` before anything else
    # Where they are not those of the model: sizes of what is multiplied with rows, (d,), (r, d)
    # or p of them, and of prototypes, (p, d).
    factor_sizes: Floats | tuple[Floats, ...] | None = None
    prototype_sizes: Floats | None = None
    # Errors of the model read: per prototype, and quadratic in the distance.
    offsets: Floats | float = 0.0  # (p,)
    form: Floats | None = None  # (d, d), or (d,) of a diagonal
    # Balls around groups of prototypes by which a search tree leaves out groups: the radius of
    # the largest one that a prototype is in, (p,), and how many times its own rounding a
    # distance may be off.
    radii: Floats | None = None
    condition: float = 1.0
    # Roundings on the way to any term besides the sums of d and r terms, where they are known.
    other_roundings: int = _OTHER_ROUNDINGS

    @property
    def is_coarse(self) -> bool:
        """Whether `predict` rounds so much more than doubles do that these count as exact."""
        return self.unit > EPSILON

    def unit_of_products(self) -> float | None:
        """Return the unit with which sums of products would be blurred as much, if that is coarse.

        At some prototypes and halfway between them; None where differences in doubles are not much
        better. This is all that a file keeps of the arithmetic of a model.
        """
        some = self.model.prototypes[:: -(-self.model.n_prototypes // _PROTOTYPES_ASKED)]
        rows = np.concatenate([some, 0.5 * (some + np.roll(some, 1, axis=0))])
        fine, plain = Arithmetic(self.model, by_products=False), Arithmetic(self.model)
        own, least, most = (of.errors(rows).max(axis=1) for of in (self, fine, plain))
        seen = np.isfinite(own) & np.isfinite(most) & (least > self._least_normal)
        if not (own[seen] > _COARSE * least[seen]).any():
            return None
        unit = EPSILON * float((own[seen] / most[seen]).max())
        return min(max(unit, EPSILON), COARSEST_UNIT / 2)

    def certain_lead(
        self, rows: Floats, slip: Floats | float = 0.0, scores: Floats | None = None
    ) -> Floats:
        """Lead, computed in doubles, with which `predict` gives a label for certain, (n,)."""
        return (SAFE if self.is_coarse else 2.0) * self.blur(rows, slip, scores)

    def blur(
        self, rows: Floats, slip: Floats | float = 0.0, scores: Floats | None = None
    ) -> Floats:
        """Bound the rounding of the difference of any two competing scores at each row, (n,).

        Scores compete if rounding could exchange them. If the nearest prototype leads every
        prototype of another label by more than this, in exact scores, `predict` gives its
        label, whatever other rows it is asked about. `slip` (n, d) is how far the rows that
        the model sees may be from these, and `scores` what `scores` says of them, if it is known.
        """
        slips = _spread(slip, rows)
        if 0 < len(rows) <= self._rows_at_once:
            return self._blur(rows, slips, scores)
        found = [
            self._blur(rows[part], slips[part], None if scores is None else scores[part])
            for part in self._parts(len(rows))
        ]
        return np.concatenate(found) if found else np.zeros(0)

    def blur_within(self, rows: Floats, reach: Floats, slip: Floats) -> Floats:
        """Bound the same at every row that differs by at most `reach` (n, d) from these, (n,).

        `slip` is that of the rows that are farthest off. Infinite where nothing is known.
        """
        if 0 < len(rows) <= self._rows_at_once:
            return self._blur_within(rows, reach, slip)
        parts = self._parts(len(rows))
        found = [self._blur_within(rows[at], reach[at], slip[at]) for at in parts]
        return np.concatenate(found) if found else np.zeros(0)

    def _blur_within(self, rows: Floats, reach: Floats, slip: Floats) -> Floats:
        limited = np.asarray(np.isfinite(reach).all(axis=1))
        reach = np.where(limited[:, None], reach, 0.0)
        errors = self.errors(rows, np.where(limited[:, None], slip, 0.0), reach)
        found = 2.0 * SAFE * competing(self.model, rows, reach, errors)
        return np.asarray(np.where(limited, found, np.inf))

    def scores(self, rows: Floats) -> Floats:
        """Scores of each row up to what they share, (n, p), with a rounding within `errors`."""
        return self.model.distances_of_checked(rows)

    def errors(
        self, rows: Floats, slip: Floats | float = 0.0, reach: Floats | None = None
    ) -> Floats:
        """Bound the rounding of each score, up to what all scores of a row share, (n, p).

        With `reach` (n, d), at every row that differs by at most that much.
        """
        # A slip below the least normal number is a rounding of its own kind.
        tiny = self._least_normal
        slips = _spread(slip, rows) + tiny
        farther = np.zeros(rows.shape) if reach is None else reach
        if self.casts:
            slips = slips + self.unit * (np.abs(rows) + farther)
        squares, moved = self._terms(rows, slips, farther)
        out = self._gamma * squares + moved + self.offsets + 2 * self._terms_count * tiny
        if self.form is not None:
            out += self._off_by_form(rows, farther)
        if self.radii is not None:
            # A group is left out by its distance less its radius. The distance of a row to
            # the centre is at most that to any prototype in it plus the radius; both are off
            # by gamma_N of themselves.
            scores = self.model.distances_of_checked(rows)
            away = np.sqrt(scores) + lengths_within(self.model, farther)
            miss = self.condition * self._gamma * (away + 2.0 * self.radii)
            out += (2.0 * away + miss) * miss
        return np.asarray(np.where(self._overflows(squares), np.inf, out))

    def _overflows(self, squares: Floats) -> NDArray[np.bool_]:
        """Whether a score may be infinity less infinity, of which nothing is known, (n, p).

        A square that overflows alone makes a score infinite, and such a prototype never wins.
        The least of the sizes that meet is at least the size of the row itself.
        """
        sizes = np.sqrt(squares)
        return np.asarray(~(sizes * sizes.min(axis=1, keepdims=True) < self._largest / 64))

    @cached_property
    def _least_normal(self) -> float:
        return float(np.finfo(np.float32 if self.unit == SINGLE_EPSILON else np.float64).tiny)

    @cached_property
    def _largest(self) -> float:
        return float(np.finfo(np.float32 if self.unit == SINGLE_EPSILON else np.float64).max)

    def _blur(self, rows: Floats, slip: Floats, scores: Floats | None = None) -> Floats:
        scores = self.scores(rows) if scores is None else scores
        errors = self.errors(rows, slip)
        at = np.arange(len(rows))
        nearest = scores.argmin(axis=1)
        own = errors[at, nearest][:, None]
        other = self.model.class_index[None, :] != self.model.class_index[nearest][:, None]
        runner_up = np.where(other, scores, np.inf).argmin(axis=1)
        behind = scores - scores[at, nearest][:, None]
        # The scores are themselves computed, and rather better than by the errors.
        competes = other & (behind <= _COMPETING * (own + errors))
        competes[at, runner_up] = True
        return np.asarray(own[:, 0] + np.where(competes, errors, 0.0).max(axis=1))

    def _parts(self, n: int) -> Iterator[slice]:
        size = self._rows_at_once
        return (slice(at, at + size) for at in range(0, n, size))

    @cached_property
    def _rows_at_once(self) -> int:
        return max(1, _BLOCK_ENTRIES // max(self.model.n_prototypes, self.model.n_features))

    @cached_property
    def _terms_count(self) -> int:
        d = self.model.n_features
        if self._is_plain:
            return d + self.other_roundings
        most = max(len(factor) for factor in self._sizes_of_factors)
        return 2 * d + most + self.other_roundings

    @cached_property
    def _gamma(self) -> float:
        roundings = self._terms_count * self.unit
        return roundings / (1.0 - roundings) if roundings < 0.5 else np.inf

    @cached_property
    def _sizes_of_prototypes(self) -> Floats:
        given = self.prototype_sizes
        return np.abs(self.model.prototypes) if given is None else given

    @cached_property
    def _sizes_of_factors(self) -> tuple[Floats, ...]:
        given = self.factor_sizes
        if given is None:
            return tuple(np.abs(factor) for factor in self._distinct_factors)
        return given if isinstance(given, tuple) else (given,)

    @property
    def _distinct_factors(self) -> tuple[Floats, ...]:
        model = self.model
        if model.diagonal is not None:
            return (model.diagonal,)
        return model.factors if model.is_local else (model.shared_factor,)

    @property
    def _is_plain(self) -> bool:
        return self.model.omegas is None and self.factor_sizes is None

    def _terms(self, rows: Floats, slip: Floats, reach: Floats) -> tuple[Floats, Floats]:
        """``sum t^2`` and ``sum (2 t + |omega| s) (|omega| s)`` of each pair, (n, p)."""
        if self._is_plain:
            return self._plain_terms(rows, slip, reach)
        n, p = len(rows), self.model.n_prototypes
        squares, moved = np.empty((n, p)), np.empty((n, p))
        sizes = self._sizes_of_factors
        if len(sizes) == 1 and n < p:
            for i in range(n):
                t = _times(self._meeting(rows[i], slice(None)) + reach[i], sizes[0])
                a = _times(slip[i : i + 1], sizes[0])[0]
                squares[i], moved[i] = (t * t).sum(axis=1), ((2 * t + a) * a).sum(axis=1)
            return squares, moved
        for k in range(p):
            factor = sizes[k if len(sizes) > 1 else 0]
            t, a = _times(self._meeting(rows, k) + reach, factor), _times(slip, factor)
            squares[:, k], moved[:, k] = (t * t).sum(axis=1), ((2 * t + a) * a).sum(axis=1)
        return squares, moved

    def _meeting(self, rows: Floats, k: int | slice) -> Floats:
        """Sizes of what rows and prototypes are when they meet: apart, or their difference."""
        if self.by_products:
            return np.abs(rows) + self._sizes_of_prototypes[k]
        return np.abs(rows - self.model.prototypes[k])

    def _plain_terms(self, rows: Floats, slip: Floats, reach: Floats) -> tuple[Floats, Floats]:
        """As `_terms` for plain distances, without a step per pair."""
        square_slip = np.einsum("ij,ij->i", slip, slip)[:, None]
        if not self.by_products:
            away = np.sqrt(np.einsum("ij,ij->i", reach, reach))[:, None]
            squares = (distances(rows, self.model.prototypes) + away) ** 2
            return squares, 2.0 * np.sqrt(squares * square_slip) + square_slip
        x, w = np.abs(rows) + reach, self._sizes_of_prototypes
        squares = 2.0 * _times(x, w)
        squares += np.einsum("ij,ij->i", x, x)[:, None] + np.einsum("ij,ij->i", w, w)
        along = np.einsum("ij,ij->i", x, slip)[:, None] + _times(slip, w)
        return squares, 2.0 * along + square_slip

    def _off_by_form(self, rows: Floats, reach: Floats) -> Floats:
        """``|x - w|' form |x - w|`` of each pair, (n, p)."""
        assert self.form is not None
        out = np.empty((len(rows), self.model.n_prototypes))
        for i, row in enumerate(rows):
            away = np.abs(row - self.model.prototypes) + reach[i]
            if self.form.ndim == 1:
                out[i] = (away * away) @ self.form
                continue
            out[i] = np.einsum("ki,ij,kj->k", away, self.form, away, optimize=True)
        return out


@final
@dataclass(frozen=True, eq=False)
class _ProjectedArithmetic(Arithmetic):
    """Distances as sums of squares of projections, which are computed first.

    Much may cancel in a projection, so that it is small beside the sizes t of what meets in it:
    each of its entries y_j is off by ``e_j = gamma_m t_j``, m = d + s + 4 where it was summed up
    in two steps of d and s terms, and by what the input is off. The sum of squares is then off by
    ``sum (2 |y| + v) v`` and ``gamma_n sum (|y| + v)^2``, with v the sum of both and n = d + 8
    roundings of squares, sums and a root.
    """

    columns: int = 0  # s

    def _terms(self, rows: Floats, slip: Floats, reach: Floats) -> tuple[Floats, Floats]:
        """``sum (|y| + v)^2`` and ``sum (2 |y| + v) v`` of each pair, (n, p)."""
        squares, moved = (np.empty((len(rows), self.model.n_prototypes)) for _ in range(2))
        roundings = (self.model.n_features + self.columns + 4) * self.unit
        off = roundings / (1.0 - roundings) if roundings < 0.5 else np.inf
        factors, sizes = self._distinct_factors, self._sizes_of_factors
        for k, prototype in enumerate(self.model.prototypes):
            factor, size = factors[k % len(factors)], sizes[k % len(sizes)]
            t = _times(self._meeting(rows, k) + reach, size)
            v = off * t + _times(slip, size)
            # An image that is computed here has a rounding as well, which v is more than.
            y = np.abs(_times(rows - prototype, factor)) + _times(reach, size) + v
            squares[:, k], moved[:, k] = ((y + v) ** 2).sum(axis=1), ((2 * y + v) * v).sum(axis=1)
        return squares, moved

    @cached_property
    def _terms_count(self) -> int:
        return self.model.n_features + 8


def projected_arithmetic(
    model: PrototypeModel, unit: float, by_products: bool, offsets: Floats
) -> Arithmetic:
    """Describe distances from projections of rows and prototypes, or of their differences."""
    return _ProjectedArithmetic(model, unit, by_products, offsets=offsets)


def tangent_arithmetic(
    model: PrototypeModel, unit: float, bases: Floats, by_products: bool = True
) -> Arithmetic:
    """Describe distances outside the spans of bases (p, d, s)."""
    each = [np.abs(basis) for basis in np.asarray(bases, dtype=np.float64)]
    return _ProjectedArithmetic(
        model,
        unit,
        by_products,
        casts=unit > EPSILON,
        factor_sizes=tuple(np.eye(len(basis)) + basis @ basis.T for basis in each),
        columns=each[0].shape[1],
    )


def _spread(slip: Floats | float, rows: Floats) -> Floats:
    """State a slip for each entry of rows."""
    if isinstance(slip, np.ndarray) and slip.shape == rows.shape:
        return slip
    return np.broadcast_to(slip, rows.shape)


def _times(rows: Floats, factor: Floats) -> Floats:
    """Take rows through a factor, (r, d) or the diagonal (d,) of one, each as if it were alone.

    Libraries of matrix products sum up in an order that depends on how many rows there are.
    """
    if factor.ndim == 1:
        return rows * factor
    return np.asarray(np.einsum("ij,kj->ik", rows, factor))


def radii_of(tree: Any, count: int) -> NDArray[np.float64]:
    """Radius of the largest ball of a search tree that each of its points is in, (count,).

    The outermost ball holds all points and is never left out.
    """
    _, order, nodes, _ = (np.asarray(part) for part in tree.get_arrays())
    radii = np.zeros(count)
    for node in nodes[1:]:
        inside = order[node["idx_start"] : node["idx_end"]]
        radii[inside] = np.maximum(radii[inside], node["radius"])
    return radii

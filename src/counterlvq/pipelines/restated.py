"""A model behind an affine map, stated in the coordinates in front of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterlvq.errors import InvalidInputError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.lazy import imported_later
from counterlvq.numeric.memory import FLOAT, refuse_too_large
from counterlvq.numeric.restatement_error import Blur
from counterlvq.numeric.tolerances import EPSILON, RANK_TOLERANCE, SAFE, SUM_UNDERFLOW
from counterlvq.pipelines.rounding import (
    Doubled,
    difference,
    product_blur,
    scaled_blur,
    summed,
    summed_along,
)
from counterlvq.tables.feature import Feature
from counterlvq.tables.features import Features

linalg = imported_later("scipy.linalg")

__all__ = ["Affine", "restated", "restated_alike"]

# A residual of so many roundings for each column and a few more is what solving leaves. It chooses
# among prototypes that are nearly equally right; the blur bounds what is wrong with any of them.
_ROUNDINGS = 2.0


class Affine(NamedTuple):
    """``z = B (y - base) + offset``, and how far B and the offset may be from what is meant.

    Where each coordinate is scaled by itself, B and its blur are vectors.
    """

    B: Floats  # (k, d), or (d,) of a diagonal
    base: Floats  # (d,)
    units: Floats  # (d,) of changes in each coordinate that count alike
    offset: Floats  # (k,)
    B_blur: Floats  # (k, d), or (d,)
    offset_blur: Floats  # (k,)

    def whole(self) -> Affine:
        """Write B as a matrix."""
        if self.B.ndim > 1:
            return self
        refuse_too_large(
            f"a map of {len(self.B):,} columns, written as a matrix,", 2 * FLOAT * len(self.B) ** 2,
            "leave out features, or take a model with a plain or diagonal metric",
        )  # fmt: skip
        return self._replace(B=np.diag(self.B), B_blur=np.diag(self.B_blur))


def restated(
    model: PrototypeModel,
    affine: Affine,
    start: Floats,
    names: Sequence[str | Feature],
    known: Floats | None = None,
) -> PrototypeModel:
    """State a model in the coordinates in front of a map, with the blur of doing so.

    Products of numbers that are legal by themselves may be no floats; that is refused in words.
    `known` are prototypes in these coordinates that are right but for rounding, if there are any.
    """
    with np.errstate(all="ignore"):
        return _restated(model, affine, start, names, known)


def _restated(
    model: PrototypeModel,
    affine: Affine,
    start: Floats,
    names: Sequence[str | Feature],
    known: Floats | None,
) -> PrototypeModel:
    if affine.B.ndim == 1 and (model.omegas is None or model.diagonal is not None):
        return _restated_along(model, affine, start, names)
    affine = affine.whole()
    points = known
    if points is None:
        gaps = model.prototypes - (affine.B @ (start - affine.base) + affine.offset)
        points = start + _moves(model, affine, gaps)
    q, q_blur = _images(model, affine, points)
    factors: Floats | list[Floats]
    if isinstance(model.omegas, tuple):
        one = [slice(k, k + 1) for k in range(len(points))]
        each = [
            _Part.of(omega, affine, Doubled(q.high[k], q.low[k]), q_blur[k], points[k])
            for k, omega in zip(one, model.omegas, strict=True)
        ]
        factors = [part.F for part in each]
    else:
        each = [_Part.of(_own_factor(model), affine, q, q_blur, points)]
        factors = each[0].F
    return _put_together(model, points, factors, each, names)


def restated_alike(
    model: PrototypeModel, affine: Affine, names: Sequence[Features], points: Floats
) -> list[PrototypeModel]:
    """State a model with a shared metric behind maps of one shape, all at once.

    Of `affine` each part has one axis more in front, for the maps; `points` (maps, p, d) are
    prototypes in the coordinates that are right but for rounding. The same as `restated` says of
    each, to the last bit.
    """
    with np.errstate(all="ignore"):
        q, q_blur = _images(model, affine, points)
        found = _Bounded.of(_own_factor(model), affine, q, q_blur, points)
        if model.offsets is None and found.is_reached.all():
            return _made_alike(model, points, found, names)
        parts = zip(points, found.parts(), names, strict=True)
        return [_put_together(model, at, part.F, [part], [*called]) for at, part, called in parts]


def _made_alike(
    model: PrototypeModel,
    points: Floats,
    found: _Bounded,
    names: Sequence[Features],
) -> list[PrototypeModel]:
    """Make models without offsets of their parts, as `_put_together` makes each."""
    constant = SAFE * (found.squares + found.squares_blur)
    _refuse_beyond_floats(points, constant, found.F)
    made = model.elsewhere_each(points, found.F, names)
    stretch, pull = found.stretch_and_pull()
    return [
        out.blurred(
            Blur(
                out.prototypes, (out.shared_factor,), found.lengths[k : k + 1],
                found.wobble[k : k + 1], stretch[k : k + 1], found.residual[k], pull[k],
                constant[k],
            )
        )
        for k, out in enumerate(made)
    ]  # fmt: skip


def _restated_along(
    model: PrototypeModel, affine: Affine, start: Floats, names: Sequence[str | Feature]
) -> PrototypeModel:
    """As `restated` where the map and the metric treat features one by one: vectors only."""
    B = affine.B
    gaps = model.prototypes - (B * (start - affine.base) + affine.offset)
    # A slope of 0 leads nowhere: what it leaves open becomes an offset.
    points = start + np.divide(gaps, B, out=np.zeros_like(gaps), where=B != 0)
    away = difference(points, affine.base)
    q, error = summed_along(B, away, difference(affine.offset, model.prototypes))
    q_blur = SAFE * (error + np.abs(away.high) * affine.B_blur + affine.offset_blur)
    part = _Part.along(model.diagonal, affine, q, q_blur, points)
    return _put_together(model, points, part.F, [part], names)


def _put_together(
    model: PrototypeModel,
    points: Floats,
    factors: Floats | list[Floats],
    each: list[_Part],
    names: Sequence[str | Feature],
) -> PrototypeModel:
    """Make a model of its parts."""
    offsets, constant = _offsets(model, each)
    known = [] if offsets is None else [offsets]
    _refuse_beyond_floats(points, constant, *(part.F for part in each), *known)
    out = PrototypeModel(
        points, model.labels, factors, names, offsets=offsets, meaning=model.meaning
    )
    return out.blurred(
        Blur(
            out.prototypes,
            tuple(part.F for part in each),
            np.array([part.lengths for part in each]),
            np.array([part.wobble for part in each]),
            np.array([part.stretch for part in each]),
            _joined([part.residual for part in each]),
            _joined([part.pull for part in each]),
            constant,
        )
    )


def _refuse_beyond_floats(*arrays: NDArray[np.floating[Any]]) -> None:
    if not all(np.isfinite(array).all() for array in arrays):
        raise InvalidInputError(
            "the steps before the model, multiplied with its prototypes and metric, give numbers "
            "above 1.8e308, or too small to be told from 0, which no float can hold; expected "
            "others. Rescale the columns and fit the pipeline again."
        )


class _Part(NamedTuple):
    """One factor of the metric, and the prototypes that have it, in the coordinates in front."""

    F: Floats  # (r, d), or (d,) of a diagonal
    lengths: Floats  # (d,) and below as in `Blur`
    wobble: Floats  # (d,)
    stretch: float
    residual: Floats  # (n,)
    pull: Floats  # (n,)
    squares: Floats  # (n,) squared lengths of what no prototype can reach
    squares_blur: Floats  # (n,)
    is_reached: bool  # whether what is left is no more than rounding of the prototypes

    @classmethod
    def of(
        cls, omega: Floats | None, affine: Affine, q: Doubled, q_blur: Floats, points: Floats
    ) -> _Part:
        """Bound what is wrong with ``|omega B (x - v)|^2`` for the prototypes v."""
        found = _Bounded.of(omega, affine, q, q_blur, points)
        return _Bounded._make(part[None] for part in found).parts()[0]

    @classmethod
    def along(
        cls, omega: Floats | None, affine: Affine, q: Doubled, q_blur: Floats, points: Floats
    ) -> _Part:
        """As `of` where omega and B are diagonals, (d,) each."""
        if omega is None:
            F, F_blur = affine.B, affine.B_blur
            e, e_blur = q.high, SAFE * (q_blur + np.abs(q.low))
        else:
            F, F_blur = omega * affine.B, scaled_blur(affine.B, affine.B_blur, omega)
            zeros = np.zeros_like(q.high)
            found, error = summed_along(omega, q, Doubled(zeros, zeros))
            e = found.high
            e_blur = SAFE * (error + np.abs(found.low) + q_blur * np.abs(omega))
        lengths = SAFE * np.abs(F)
        seen = lengths > 0
        pulls = np.abs(e * F) + scaled_blur(e, e_blur, F)
        squares = (e * e).sum(axis=1)
        rounding = 2.0 * e.shape[1] * EPSILON * squares + SUM_UNDERFLOW
        from_blur = ((2.0 * np.abs(e) + e_blur) * e_blur).sum(axis=1)
        solving = _ROUNDINGS * (len(lengths) + 4) * EPSILON * (np.abs(points) * np.abs(F))
        return cls(
            F,
            lengths,
            SAFE * F_blur,
            SAFE,  # each column has an entry of at most 1, in a row of its own
            SAFE * np.linalg.norm(np.abs(e) + e_blur, axis=1),
            SAFE * np.linalg.norm(pulls[:, seen] / lengths[seen], axis=1),
            squares,
            SAFE * (rounding + from_blur),
            bool((np.abs(e) <= solving + e_blur).all()),
        )


class _Bounded(NamedTuple):
    """What `_Part` is made of; of many maps at once, with one axis in front for them."""

    F: Floats  # (r, d)
    lengths: Floats  # (d,)
    wobble: Floats  # (d,)
    pulls: Floats  # (n, d)
    residual: Floats  # (n,)
    squares: Floats  # (n,)
    squares_blur: Floats  # (n,)
    is_reached: NDArray[np.bool_]

    @classmethod
    def of(
        cls, omega: Floats | None, affine: Affine, q: Doubled, q_blur: Floats, points: Floats
    ) -> _Bounded:
        if omega is None:
            F, F_blur = affine.B, affine.B_blur
            e, e_blur = q.high, SAFE * (q_blur + np.abs(q.low))
        else:
            F, F_blur = omega @ affine.B, product_blur(omega, None, affine.B, affine.B_blur)
            zeros = np.zeros((*q.high.shape[:-1], len(omega)))
            found, error = summed(omega, q, Doubled(zeros, zeros))
            e = found.high
            e_blur = SAFE * (error + np.abs(found.low) + q_blur @ np.abs(omega).T)
        squares = (e * e).sum(axis=-1)
        rounding = 2.0 * e.shape[-1] * EPSILON * squares + SUM_UNDERFLOW
        from_blur = ((2.0 * np.abs(e) + e_blur) * e_blur).sum(axis=-1)
        sizes = np.abs(points) @ np.abs(F).swapaxes(-1, -2)
        solving = _ROUNDINGS * (F.shape[-1] + 4) * EPSILON * sizes
        return cls(
            F,
            SAFE * np.linalg.norm(F, axis=-2),
            SAFE * np.linalg.norm(F_blur, axis=-2),
            np.abs(e @ F) + product_blur(e, e_blur, F, None),
            SAFE * np.linalg.norm(np.abs(e) + e_blur, axis=-1),
            squares,
            SAFE * (rounding + from_blur),
            np.asarray((np.abs(e) <= solving + e_blur).all(axis=(-1, -2))),
        )

    def parts(self) -> list[_Part]:
        """Put the parts of many maps together: the same as of each alone, to the last bit."""
        stretch, pull = self.stretch_and_pull()
        listed = zip(
            self.F, self.lengths, self.wobble, stretch.tolist(), self.residual, pull, self.squares,
            self.squares_blur, self.is_reached.tolist(), strict=True,
        )  # fmt: skip
        return [_Part(np.array(F), *rest) for F, *rest in listed]

    def stretch_and_pull(self) -> tuple[Floats, Floats]:
        """Return `stretch` (maps,) and `pull` (maps, n) as `_Part` has them."""
        seen = self.lengths > 0
        if len(self.lengths) > 1 and not seen.all():
            alone = (_Bounded._make(part[k : k + 1] for part in self) for k in range(len(seen)))
            pairs = [found.stretch_and_pull() for found in alone]
            return np.concatenate([a for a, _ in pairs]), np.concatenate([b for _, b in pairs])
        # Columns that are not seen have no length.
        at = slice(None) if seen.all() else np.flatnonzero(seen[0])
        lengths = self.lengths[:, None, at]
        pull = SAFE * np.linalg.norm(self.pulls[..., at] / lengths, axis=-1)
        return _stretches(self.F[..., at] / lengths), pull


def _stretches(U: Floats) -> Floats:
    """Bound the largest singular value of matrices with columns no longer than 1, (n,).

    The largest absolute row sum of ``U U'`` bounds its eigenvalues, and the number of columns
    bounds their sum.
    """
    rows, columns = U.shape[1:]
    turned = U.swapaxes(-1, -2)
    gram = U @ turned if rows <= columns else turned @ U
    rounding = 2.0 * EPSILON * max(rows, columns) * columns * gram.shape[-1]
    largest = np.abs(gram).sum(axis=-1).max(axis=-1, initial=0.0) + rounding
    return np.asarray(SAFE * np.sqrt(np.minimum(largest, columns)))


def _offsets(model: PrototypeModel, parts: list[_Part]) -> tuple[Floats | None, Floats]:
    """Offsets of the restated model, and bounds on how far they are from what is meant, (p,)."""
    squares = _joined([part.squares for part in parts])
    blur = _joined([part.squares_blur for part in parts])
    if all(part.is_reached for part in parts):
        return model.offsets, SAFE * (squares + blur)
    offsets = squares if model.offsets is None else squares + model.offsets
    return offsets, SAFE * (blur + EPSILON * offsets)


def _joined(parts: list[Floats]) -> Floats:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _own_factor(model: PrototypeModel) -> Floats | None:
    """Return the shared factor without the row that a model with offsets adds to it."""
    if model.omegas is None:
        return None
    return model.shared_factor if model.offsets is None else model.shared_factor[:-1]


def _images(model: PrototypeModel, affine: Affine, points: Floats) -> tuple[Doubled, Floats]:
    """``B (v - base) + offset - w`` of every prototype in twice the precision, and its blur."""
    away = difference(points, affine.base[..., None, :])
    offset = affine.offset[..., None, :]
    q, error = summed(affine.B, away, difference(offset, model.prototypes))
    blurred = np.abs(away.high) @ affine.B_blur.swapaxes(-1, -2)
    blur = error + blurred + affine.offset_blur[..., None, :]
    return q, SAFE * blur


# --- prototypes in front of the map ---------------------------------------------------------------


def _moves(model: PrototypeModel, affine: Affine, gaps: Floats) -> Floats:
    """Find short moves v that bring ``omega B v`` next to ``omega gap``, (p, d)."""
    # Prototypes that are equal stay so to the last bit.
    distinct, at = np.unique(gaps, axis=0, return_inverse=True)
    B, units = affine.B, affine.units
    found = _least(B, distinct.T, units, anyway=model.omegas is None)
    if found is not None:
        return np.asarray(found.T[at.reshape(-1)])
    if isinstance(model.omegas, tuple):
        each = zip(model.omegas, gaps, strict=True)
        one = [_least(omega @ B, omega @ gap[:, None], units) for omega, gap in each]
        return np.concatenate([moves for moves in one if moves is not None], axis=1).T
    omega = model.shared_factor
    found = _least(omega @ B, omega @ distinct.T, units)
    assert found is not None  # which is asked for whatever F reaches
    return np.asarray(found.T[at.reshape(-1)])


def _least(F: Floats, f: Floats, units: Floats, *, anyway: bool = True) -> Floats | None:
    """Find the shortest v with the least ``|F v - f|``, (d, n).

    What is short is measured in `units`. None unless F reaches everything, or that is asked for
    `anyway`.
    """
    used = F != 0
    if (used.sum(axis=1) == 1).all() and (used.sum(axis=0) <= 1).all():
        moves, at = np.zeros((F.shape[1], f.shape[1])), used.argmax(axis=1)
        moves[at] = f / F[np.arange(len(F)), at, None]
        return moves
    solver = _Solver.of(F, units)
    return solver.solve(F, f) if anyway or solver.rank == len(F) else None


class _Solver(NamedTuple):
    """A factorised least-squares problem in which neither rows nor columns have units.

    With rows and columns of one size, rank is a matter of angles: whitened components of no
    variance are scaled up by 1e15, and next to them all others would look like nothing.
    """

    units: Floats  # (d,)
    sizes: Floats  # (r,)
    U: Floats  # (r, rank)
    spread: Floats  # (rank,)
    V: Floats  # (rank, d)

    @classmethod
    def of(cls, F: Floats, units: Floats) -> _Solver:
        scaled = F * units
        _refuse_beyond_floats(scaled, sizes := np.linalg.norm(scaled, axis=1))
        sizes = np.where(sizes > 0, sizes, 1.0)
        U, spread, V = np.linalg.svd(scaled / sizes[:, None], full_matrices=False)
        kept = spread > RANK_TOLERANCE * spread[0]
        return cls(units, sizes, U[:, kept], spread[kept], V[kept])

    @property
    def rank(self) -> int:
        return len(self.spread)

    def solve(self, F: Floats, f: Floats) -> Floats:
        """Solve, and solve once more for what rounding has left."""
        if not self.rank:  # a map that leads nowhere
            return np.zeros((len(self.units), f.shape[1]))
        triangle = None if self.rank == len(self.sizes) else self._triangle()
        moves = self._once(triangle, f)
        return np.asarray(moves + self._once(triangle, f - F @ moves))

    def _triangle(self) -> _Triangle:
        """Factorise: large rows first and columns pivoted, so each has its own precision."""
        weighted = self.sizes[:, None] * self.U
        _refuse_beyond_floats(weighted)
        order = np.argsort(-np.abs(weighted).max(axis=1))
        Q, R, columns = linalg.qr(
            weighted[order], mode="economic", pivoting=True, check_finite=False
        )
        _refuse_beyond_floats(R, 1.0 / R.diagonal())
        return _Triangle(order, np.asarray(Q, float), np.asarray(R, float), columns.astype(np.intp))

    def _once(self, triangle: _Triangle | None, f: Floats) -> Floats:
        if triangle is None:
            found = self.U.T @ (f / self.sizes[:, None])
        else:
            found = np.empty((self.rank, f.shape[1]))
            right = triangle.Q.T @ f[triangle.order]
            _refuse_beyond_floats(right)
            found[triangle.columns] = linalg.solve_triangular(triangle.R, right, check_finite=False)
        return np.asarray(self.units[:, None] * (self.V.T @ (found / self.spread[:, None])))


class _Triangle(NamedTuple):
    """A matrix with its rows in some order as ``Q R``, its columns in another."""

    order: NDArray[np.intp]
    Q: Floats
    R: Floats
    columns: NDArray[np.intp]

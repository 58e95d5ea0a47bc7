"""The numbers that proofs under a shared metric rest on, for any input and any target.

A `ProofData` holds what the user gave, cost, constraints and model, as plain arrays for
`duality_kernel`, with a bound on the rounding of the few numbers that are derived.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.quadratic_forms import Factor
from counterlvq.numeric.records import Record
from counterlvq.numeric.tolerances import UNIT
from counterlvq.programs.template import ProgramTemplate

__all__ = [
    "CostReach",
    "ProofData",
    "coarse",
    "constraints_alone",
    "cost_limits",
    "diagonal_of",
    "entries_of",
    "form_limits",
    "limits_at",
    "limits_within",
    "proof_data_of",
    "proof_data_of_each",
    "reach_of",
    "sides_at",
    "starts_of",
]

# An approximate inverse that misses the identity by more than this says nothing: then the cost
# limits no change, and bounds are weaker.
_FAR_FROM_INVERSE = 0.5


Entries = tuple[NDArray[np.int64], NDArray[np.int64]]


class CostReach(NamedTuple):
    """How far a change can go that costs at most c by ``|L delta|^2``.

    ``|delta_j| <= stretch_j sqrt(c)``, with inf where the cost is flat.
    """

    stretch: Floats  # (d,)
    inverse: Floats  # (d, s) C with C L = I but for rounding; no rows where there is none
    blur: float  # share of sum |n_j| stretch_j that n'(I - C L) delta / sqrt(c) can be


@final
@dataclass(frozen=True, eq=False)
class ProofData(Record):
    """Plain arrays, as `duality_kernel` takes them."""

    is_plain: bool
    center: Floats  # (d,)
    F_diagonal: Floats  # (d,) of a plain metric, or where the factor is diagonal
    F: Floats  # (r, d); no rows where it is
    column_lengths: Floats  # (d,) of F, rounded up
    anchors: Floats  # (p, r) the prototypes themselves for a plain metric
    anchor_errors: Floats  # (p,) bounds the length of the rounding of each
    w: Floats  # (d,) no unit of change costs less
    ways: Floats  # (2, d) price of one unit up and down
    least_ways: Floats  # (2, d) what one unit up and down makes the whole cost at the least
    L_diagonal: Floats  # (d,) where the factor of the cost is diagonal, else (0,)
    L: Floats  # (s, d) where it is not, else (0, d)
    cost_start: NDArray[np.int64]  # (s + 1,) where the entries of each row of the factor start
    cost_feature: NDArray[np.int64]  # (entries,)
    cost_factor: Floats  # (entries,)
    stretch: Floats  # (d,)
    inverse: Floats  # (d, s)
    inverse_blur: float
    movable: NDArray[np.bool_]  # (d,) features that no constraint ties to their factual value
    A: Floats  # (c, d) A y + R x <= v, or ==: several features each
    R: Floats
    v: Floats
    equality: NDArray[np.bool_]
    single_new: Floats  # (b, d) the same: one feature each
    single_old: Floats
    single_value: Floats
    single_equality: NDArray[np.bool_]
    single_column: NDArray[np.int64]

    @cached_property
    def limited(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
        """Features that prices limit, that the square limits, and that are tied, (d,) each."""
        return self.least_way > 0, np.isfinite(self.stretch), ~self.movable

    @cached_property
    def least_way(self) -> Floats:
        """What one unit of change makes the whole cost at the least, (d,)."""
        return np.asarray(self.least_ways.min(axis=0))

    def holding(self, columns: Iterable[int]) -> ProofData:
        """Add that some columns stay as they are: ``y_j - x_j == 0`` for each."""
        at = np.array(sorted(columns), dtype=np.int64)
        stays = np.zeros((at.size, self.movable.size))
        stays[np.arange(at.size), at] = 1.0
        movable = self.movable.copy()
        movable[at] = False
        return replace(
            self,
            movable=movable,
            single_new=np.concatenate([self.single_new, stays]),
            single_old=np.concatenate([self.single_old, -stays]),
            single_value=np.concatenate([self.single_value, np.zeros(at.size)]),
            single_equality=np.concatenate([self.single_equality, np.ones(at.size, dtype=bool)]),
            single_column=np.concatenate([self.single_column, at]),
        )

    @property
    def has_gains(self) -> bool:
        """Whether the cost limits what a change can gain: by each that may, or as a whole."""
        if self.L_diagonal.size:
            return bool(self.L_diagonal[self.movable].all())
        return bool(self.inverse.shape[0] or self.w[self.movable].all())


def constraints_alone(template: ProgramTemplate) -> ProofData:
    """Gather what shows that constraints contradict each other, whatever the model."""
    d = template.w.size
    return _stated(template, True, np.zeros(d), np.ones(d), np.ones(d), None,
                   np.zeros((1, d)), np.zeros(1))  # fmt: skip


def proof_data_of(template: ProgramTemplate, model: PrototypeModel) -> ProofData:
    """Gather what bounds are computed from."""
    d = template.w.size
    if model.omegas is None:
        return _stated(template, True, np.zeros(d), np.ones(d), np.ones(d), None,
                       model.prototypes, np.zeros(model.n_prototypes))  # fmt: skip
    diagonal, F = model.diagonal, None
    if diagonal is None:
        diagonal, F = _leading_diagonal(model.shared_factor), model.shared_factor
    return _stated(template, False, model.center, model.column_lengths, diagonal, F,
                   model.anchors, model.anchor_errors)  # fmt: skip


def proof_data_of_each(
    template: ProgramTemplate, models: Sequence[PrototypeModel]
) -> list[ProofData]:
    """As `proof_data_of` for models that differ in prototypes and factor, of one shape."""
    factors = [model.omegas for model in models]
    if not all(isinstance(F, np.ndarray) and F.ndim == 2 for F in factors):
        return [proof_data_of(template, model) for model in models]
    d, F = template.w.size, np.stack([model.shared_factor for model in models])
    at = np.arange(min(F.shape[1:]))
    off = F != 0
    off[:, at, at] = False
    if F.shape[1] >= d and not off.any(axis=(1, 2)).all():  # some factor may be diagonal
        return [proof_data_of(template, model) for model in models]
    stated = template.derived(_without_model).replaced(is_plain=False, F_diagonal=np.zeros(d))
    return stated.replaced_each(
        F=F,
        center=np.stack([model.center for model in models]),
        column_lengths=np.stack([model.column_lengths for model in models]),
        anchors=np.stack([model.anchors for model in models]),
        anchor_errors=np.stack([model.anchor_errors for model in models]),
    )


def _stated(
    template: ProgramTemplate,
    is_plain: bool,
    center: Floats,
    lengths: Floats,
    F_diagonal: Floats | None,
    F: Floats | None,
    anchors: Floats,
    anchor_errors: Floats,
) -> ProofData:
    d = template.w.size
    return template.derived(_without_model).replaced(
        is_plain=is_plain,
        # Copies: compiled code tells read-only arrays apart and would be compiled twice.
        center=np.array(center, order="C"),
        F_diagonal=np.zeros(d) if F_diagonal is None else np.array(F_diagonal, order="C"),
        F=np.zeros((0, d)) if F is None or F_diagonal is not None else np.array(F, order="C"),
        column_lengths=np.array(lengths, order="C"),
        anchors=np.array(anchors, order="C"),
        anchor_errors=np.array(anchor_errors, order="C"),
    )


def _without_model(template: ProgramTemplate) -> ProofData:
    """Gather what cost and constraints say, whatever the model."""
    d = template.w.size
    L = template.proof_factor
    at, feature = template.cost_entries
    diagonal = diagonal_of(L, template.cost_entries)
    reach = reach_of(L) if diagonal is None else _reach_along(diagonal, L.shape[0])
    A, R, v, equality = _stacked(template, "inequalities", "equalities")
    bA, bR, bv, b_equality = _stacked(template, "bounds", "fixed")
    column = np.abs(bA).argmax(axis=1) if bA.shape[0] else np.zeros(0)
    nothing = np.zeros(0)
    return ProofData(
        is_plain=True,
        center=nothing,
        F_diagonal=nothing,
        F=np.zeros((0, 0)),
        column_lengths=nothing,
        anchors=np.zeros((0, 0)),
        anchor_errors=nothing,
        w=np.array(template.w, order="C"),
        ways=np.array(template.both_ways, order="C"),
        least_ways=np.array(template.limiting_ways, order="C"),
        L_diagonal=np.zeros(0) if diagonal is None else diagonal,
        L=np.array(L, order="C") if diagonal is None else np.zeros((0, d)),
        cost_start=starts_of(at, L.shape[0]),
        cost_feature=feature,
        cost_factor=template.cost_values,
        stretch=reach.stretch,
        inverse=reach.inverse,
        inverse_blur=reach.blur,
        movable=~template.frozen,
        A=A,
        R=R,
        v=v,
        equality=equality,
        single_new=bA,
        single_old=bR,
        single_value=bv,
        single_equality=b_equality,
        single_column=column.astype(np.int64),
    )


def cost_limits(w: Floats, L: Floats, cap: float, reach: CostReach | None = None) -> Floats:
    """How far a change of cost at most `cap` can go along each feature; inf where unlimited.

    Rounded outwards, and the cost to 16 digits of two. `reach` is `reach_of(L)`, if it is known.
    With prices up and down, (2, d), there are two limits for each feature, up and down.
    """
    return limits_within(w, L, float(coarse(cap)) if 0.0 <= cap < np.inf else np.inf, reach)


def limits_within(w: Floats, L: Floats, cap: float, reach: CostReach | None = None) -> Floats:
    """As `cost_limits`, for a number that is no cost of an answer: to its last digit."""
    limits = np.full(w.shape, np.inf)
    if not 0.0 <= cap < np.inf:
        return limits
    np.divide(cap, w, out=limits, where=w > 0)
    stretch = (reach_of(L) if reach is None else reach).stretch
    along = np.full(stretch.size, np.inf)
    np.multiply(np.sqrt(cap), stretch, out=along, where=np.isfinite(stretch))
    return np.asarray(np.minimum(limits, along) * (1.0 + 8.0 * UNIT))


def form_limits(
    V: Floats, ways: Floats, L: Floats, cap: float, reach: CostReach
) -> tuple[Floats, Floats]:
    """Least and largest value of linear forms ``V delta`` at a cost of at most `cap`, (k,) each.

    By the prices up and down, (2, d), and by ``|L delta|^2``, whose `reach` is known. Rounded
    outwards, and the cost to 16 digits of two; infinite where the cost sets no limit.
    """
    if not 0.0 <= cap < np.inf:
        far = np.full(V.shape[0], np.inf)
        return -far, far
    most = float(coarse(cap))
    sides = []
    for forms in (-V, V):
        prices = np.where(forms > 0, ways[0], ways[1])
        with np.errstate(divide="ignore"):
            gains = np.divide(np.abs(forms), prices, out=np.zeros_like(forms), where=forms != 0)
        sides.append(most * gains.max(axis=1, initial=0.0))
    far = np.sqrt(most) * _form_stretch(V, L, reach)
    low, high = (np.minimum(side, far) * (1.0 + 8.0 * UNIT) for side in sides)
    return -low, high


def _form_stretch(V: Floats, L: Floats, reach: CostReach) -> Floats:
    """How far each form can go at a quadratic cost of one, (k,); infinite where it is flat."""
    (s, d), size = L.shape, np.abs(V)
    with np.errstate(invalid="ignore"):
        parts = np.where(size > 0, size * reach.stretch, 0.0)
    if reach.inverse.shape[0]:
        drawn = V @ reach.inverse
        rounding = (d + 4) * UNIT * size @ np.abs(reach.inverse)
        length = np.sqrt((np.square(np.abs(drawn) + rounding)).sum(axis=1))
        return np.asarray((length + reach.blur * parts.sum(axis=1)) * (1.0 + (s + d + 8) * UNIT))
    if diagonal_of(L, entries_of(L != 0)[:2]) is None:
        return np.full(V.shape[0], np.inf)
    return np.asarray(np.sqrt(np.square(parts).sum(axis=1)) * (1.0 + (d + 8) * UNIT))


def limits_at(stated: ProofData, caps: Floats) -> Floats:
    """How far changes of cost at most `caps` (n,) can go along each feature, (n, d)."""
    w, stretch = stated.least_way, stated.stretch
    is_priced, is_stretched, is_tied = stated.limited
    shape, cap = (caps.size, w.size), float(caps[0]) if caps.size == 1 else -1.0
    known: NDArray[np.bool_] | bool = True
    most: Floats | float = 0.0
    if 0.0 <= cap < np.inf:
        most = _coarse(cap)
    else:
        known = ((caps >= 0.0) & (caps < np.inf))[:, None]
        most = coarse(np.where(known, caps[:, None], 0.0))
    out, along = np.full(shape, np.inf), np.full(shape, np.inf)
    np.divide(most, w, out=out, where=known & is_priced)
    np.multiply(np.sqrt(most), stretch, out=along, where=known & is_stretched)
    np.minimum(out, along, out=out)
    out *= 1.0 + 8.0 * UNIT
    out[:, is_tied] = 0.0
    return out


def sides_at(stated: ProofData, X: Floats) -> Floats:
    """How far rows (n, d) may change by the conditions on single features, (n, d); or inf."""
    n, d = X.shape
    low, high = np.full((d, n), -np.inf), np.full((d, n), np.inf)
    columns, value = stated.single_column, stated.single_value
    slope = stated.single_new[np.arange(columns.size), columns]
    now = X[:, columns]
    end, size = value - slope * now, np.broadcast_to(np.abs(value), now.shape).copy()
    for k in np.flatnonzero(stated.single_old.any(axis=1)).tolist():
        old = stated.single_old[k]
        end[:, k] = value[k] - X @ old - slope[k] * now[:, k]
        size[:, k] += np.abs(X) @ np.abs(old)
    end, size = end / slope, size / np.abs(slope) + np.abs(now)
    size *= (d + 4) * UNIT
    up, down = (slope > 0) | stated.single_equality, (slope < 0) | stated.single_equality
    np.minimum.at(high, columns[up], (end + size).T[up])
    np.maximum.at(low, columns[down], (end - size).T[down])
    return np.ascontiguousarray(np.maximum(np.abs(low), np.abs(high)).T)


def coarse(caps: Floats | float) -> Floats:
    """Round costs up to 16 digits of two: a box for them is no narrower.

    Costs that differ by rounding alone then have the same box, and bounds the same last bit.
    """
    mantissa, exponent = np.frexp(caps)
    return np.asarray(np.ldexp(np.ceil(mantissa * 65536.0) / 65536.0, exponent))


def _coarse(cap: float) -> float:
    """As `coarse` for one number."""
    mantissa, exponent = math.frexp(cap)
    return math.ldexp(math.ceil(mantissa * 65536.0) / 65536.0, exponent)


def reach_of(L: Floats) -> CostReach:
    """Say how far a change of a given quadratic cost can go.

    ``delta = C (L delta) + E delta`` with ``E = I - C L``. Where ``|E| t <= q t`` for the row
    lengths t of C, ``|delta| <= t |L delta| / (1 - q)`` follows: any C will do, as long as E is
    bounded with its own rounding.
    """
    s, d = L.shape
    flat = CostReach(np.full(d, np.inf), np.zeros((0, s)), 0.0)
    diagonal = diagonal_of(L, entries_of(L != 0)[:2])
    if diagonal is not None:
        return _reach_along(diagonal, s)
    seen = np.flatnonzero(L.any(axis=0))  # the rest the quadratic part says nothing about
    if not seen.size or s < seen.size:
        return flat
    part = L[:, seen]
    # With columns of unit length, the inverse does not depend on the units of the features.
    units = np.sqrt(np.einsum("ij,ij->j", part, part))
    Q, T = np.linalg.qr(part / units)
    if not np.diag(T).all():
        return flat
    inverse = np.linalg.solve(T, Q.T) / units[:, None]
    lengths = np.sqrt(np.einsum("ij,ij->i", inverse, inverse)) * (1.0 + (s + 4) * UNIT)
    size = np.abs(inverse) @ np.abs(part)
    miss = np.abs(np.eye(seen.size) - inverse @ part) + (s + 4) * UNIT * (size + np.eye(seen.size))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = float(((miss @ lengths) / lengths).max()) * (1.0 + (s + 4) * UNIT)
    if not share < _FAR_FROM_INVERSE:
        return flat
    stretch = flat.stretch.copy()
    stretch[seen] = lengths / (1.0 - share) * (1.0 + 4.0 * UNIT)
    whole = np.zeros((d, s))
    whole[seen] = inverse
    if seen.size < d:
        return CostReach(stretch, flat.inverse, 0.0)
    return CostReach(stretch, whole, 2.0 * share + (s + d + 8) * UNIT)


def _reach_along(diagonal: Floats, s: int) -> CostReach:
    """Say how far a change can go where the cost treats features one by one."""
    stretch = np.full(diagonal.size, np.inf)
    used = diagonal > 0
    stretch[used] = (1.0 + 4.0 * UNIT) / diagonal[used]
    return CostReach(stretch, np.zeros((0, s)), 0.0)


def entries_of(
    used: NDArray[np.bool_],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns of the used entries of a matrix, row by row, and where each row starts."""
    rows, columns = (at.astype(np.int64) for at in np.nonzero(used))
    return rows, columns, starts_of(rows, used.shape[0])


def starts_of(rows: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Where each of `count` rows starts among entries that are listed row by row."""
    return np.searchsorted(rows, np.arange(count + 1)).astype(np.int64)


def diagonal_of(L: Factor, entries: Entries) -> Floats | None:
    """Sizes of the entries of a factor with at most one in each row and column, (d,).

    `entries` are rows and columns of all that are not zero.
    """
    rows, columns = entries
    if not L.shape[0] or np.bincount(rows).max(initial=0) > 1:
        return None
    if np.bincount(columns).max(initial=0) > 1:
        return None
    out = np.zeros(L.shape[1])
    out[columns] = np.abs(L[rows, columns] if isinstance(L, np.ndarray) else L.data)
    return out


def _leading_diagonal(F: Floats) -> Floats | None:
    """Diagonal of a factor that has no other entries; rows below it are blank, (d,)."""
    d = F.shape[1]
    if len(F) < d:
        return None
    off = F.copy()
    diagonal: Floats = np.array(np.diagonal(F))
    off[np.arange(d), np.arange(d)] = 0.0
    return None if off.any() else diagonal


def _stacked(
    template: ProgramTemplate, *names: str
) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
    parts = [getattr(template, name) for name in names]
    A, R, v = (
        np.ascontiguousarray(np.concatenate([getattr(rows, name) for rows in parts]))
        for name in "ARv"
    )
    return A, R, v, np.repeat([rows.equality for rows in parts], [rows.v.size for rows in parts])

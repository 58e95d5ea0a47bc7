"""All programs of one target at once: rows that are fixed, for any input.

A `KernelData` is what the compiled kernels see, in units ``u`` in which the cost is plain:
``u_j = w_j delta_j`` for absolute costs, with the lesser of the prices up and down, and
``u = R delta`` with ``R'R = L'L`` for quadratic ones. Features that no counterfactual may change
are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.cells import SharedCells
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.distances import distances
from counterlvq.numeric.records import Record
from counterlvq.numeric.tolerances import DEFINITE_PIVOT
from counterlvq.programs.proof_data import diagonal_of
from counterlvq.programs.template import ProgramTemplate

__all__ = ["KernelData", "families_of", "family_of", "root_of"]

# Pairs of target and rival up to which row lengths are kept; beyond that, looking them all up
# for every row costs more than the better order saves.
_MOST_SCALES = 1 << 12
# Pairs up to which what a target can gain on a rival is kept, 16 MB of it: with that known, one
# rival leaves out nearly all cells of a row. Beyond that, each row looks at the coordinates of
# every target again.
_MOST_GAINS = 1 << 21
# The kernels work in matrices with a row and a column for each feature, three in each thread. With
# more features than this the engines that know blank entries need less memory, and less time.
_MOST_COLUMNS = 1 << 12


@final
@dataclass(frozen=True, eq=False)
class KernelData(Record):
    """Plain arrays, as compiled code takes them. d counts the features that may change."""

    is_quadratic: bool
    plain: bool  # the projection is x - center
    F_diagonal: Floats  # (all features,) of a diagonal metric; (0,) for any other
    center: Floats  # (all features,)
    F: Floats  # (r, all features); no rows if it is plain or diagonal
    targets: NDArray[np.int64]  # (targets,) indices of prototypes
    rivals: NDArray[np.int64]  # (m,)
    TA: Floats  # (targets, r) anchors
    RA: Floats  # (m, r)
    TN: Floats  # (targets, d): a cell is (RN_k - TN_i) u <= lead_k
    RN: Floats  # (m, d)
    RNT: Floats  # (d, m)
    scale: Floats  # (targets, m) one over the length of each row; (1, 0) if too many
    # (targets, m) what a target gains on a rival per cost at most, NaN until a row asks; (1, 0) if
    # too many
    gains: Floats
    columns: NDArray[np.int64]  # (d,) features that may change
    prices: Floats  # (d,) of absolute changes, the lesser way; 1 for quadratic costs
    slopes: Floats  # (2, d) price up and down in units of it, at least 1; ones for quadratic costs
    B_diagonal: Floats  # (d,) where delta = B u treats features one by one; (0,) for other B
    B: Floats  # (d, d); (0, 0) where it is diagonal
    B_lengths: Floats  # (d,)
    least: Floats  # (d,) smallest and largest prototype value
    most: Floats  # (d,)
    C: Floats  # (c, d) linear constraints in u
    lengths: Floats  # (c,)
    equality: NDArray[np.bool_]  # (c,)
    A: Floats  # (c, all features), A y + R x <= v
    R: Floats
    v: Floats
    bound_column: NDArray[np.int64]  # (b,) position in `columns`
    bound_slope: Floats  # (b,) slope * y_j + old @ x <= value
    bound_old: Floats  # (b, all features)
    bound_value: Floats  # (b,)
    bound_fixes: NDArray[np.bool_]  # (b,) an equality


def family_of(
    template: ProgramTemplate, cells: SharedCells, *, with_gains: bool = True
) -> KernelData | None:
    """Gather the programs of all cells, or None if the kernels cannot take them.

    They take absolute costs and definite quadratic ones, under linear constraints. Branch and bound
    has no use for `gains`.
    """
    known = template.derived(_without_model)
    if known is None:
        return None
    data, units = known
    model, columns, is_quadratic = cells.model, data.columns, data.is_quadratic
    TA, RA = model.anchors[cells.targets], model.anchors[cells.rivals]
    TN, RN = _moves(model, TA, columns, units), _moves(model, RA, columns, units)
    prototypes = model.prototypes[:, columns]
    return _of_metric(data, cells, with_gains=with_gains).replaced(
        # Copies: compiled code tells read-only arrays apart and would be compiled twice.
        center=np.array(model.center),
        F=_factor(model),
        TA=TA,
        RA=RA,
        TN=TN,
        RN=RN,
        RNT=np.ascontiguousarray(RN.T),
        scale=_scales(TN, RN, is_quadratic),
        least=prototypes.min(axis=0),
        most=prototypes.max(axis=0),
    )


def families_of(template: ProgramTemplate, each: Sequence[SharedCells]) -> list[KernelData | None]:
    """As `family_of`, without gains, for models that differ in prototypes and factor.

    They have one shape, and the same targets and rivals.
    """
    known, models = template.derived(_without_model), [cells.model for cells in each]
    factors = [model.omegas for model in models]
    are_alike = all(isinstance(F, np.ndarray) and F.ndim == 2 for F in factors)
    if known is None or not are_alike:
        return [family_of(template, cells, with_gains=False) for cells in each]
    (data, units), first = known, each[0]
    columns, F = data.columns, np.stack([model.shared_factor for model in models])
    anchors = np.stack([model.anchors for model in models])
    prototypes = np.stack([model.prototypes for model in models])[..., columns]
    # As `_moves` takes each.
    turned = units.applied(2.0 * F[..., columns])
    TA, RA = (np.ascontiguousarray(anchors[:, at]) for at in (first.targets, first.rivals))
    TN, RN = np.matmul(TA, turned), np.matmul(RA, turned)
    scales = [_scales(t, r, data.is_quadratic) for t, r in zip(TN, RN, strict=True)]
    return [
        *_of_metric(data, first, with_gains=False).replaced_each(
            center=np.stack([model.center for model in models]),
            F=F,
            TA=TA,
            RA=RA,
            TN=TN,
            RN=RN,
            RNT=RN.swapaxes(-1, -2),
            scale=np.stack(scales),
            least=prototypes.min(axis=1),
            most=prototypes.max(axis=1),
        )
    ]


def _of_metric(data: KernelData, cells: SharedCells, *, with_gains: bool) -> KernelData:
    """Say which prototypes meet, and what kind of metric theirs is."""
    model = cells.model
    return data.replaced(
        plain=model.omegas is None,
        F_diagonal=np.zeros(0) if model.diagonal is None else np.array(model.diagonal),
        targets=cells.targets.astype(np.int64),
        rivals=cells.rivals.astype(np.int64),
        gains=_blank_gains(cells) if with_gains else np.zeros((1, 0)),
    )


def _without_model(template: ProgramTemplate) -> tuple[KernelData, _Units] | None:
    """Gather what cost and constraints say, whatever the model; None if that is too much."""
    is_quadratic = not template.w.any()
    mixed = not is_quadratic and (template.L.shape[0] > 0 or not template.w.all())
    columns = np.flatnonzero(~template.frozen)
    if template.quadrics or mixed or not columns.size or columns.size > _MOST_COLUMNS:
        return None
    units = _units(template, columns)
    if units is None:
        return None
    A, R, v, equality = _stacked(template)
    C = units.applied(A[:, columns])
    bounds = _bounds(template, columns)
    nothing, blank, none = np.zeros(0), np.zeros((0, 0)), np.zeros(0, dtype=np.int64)
    data = KernelData(
        is_quadratic=is_quadratic,
        plain=True,
        F_diagonal=nothing,
        center=nothing,
        F=blank,
        targets=none,
        rivals=none,
        TA=blank,
        RA=blank,
        TN=blank,
        RN=blank,
        RNT=blank,
        scale=blank,
        gains=blank,
        columns=columns.astype(np.int64),
        prices=np.ones(columns.size) if is_quadratic else template.w[columns],
        slopes=np.ones((2, columns.size))
        if is_quadratic
        else np.ascontiguousarray(template.both_ways[:, columns] / template.w[columns]),
        B_diagonal=nothing if units.diagonal is None else units.diagonal,
        B=blank if units.matrix is None else units.matrix,
        B_lengths=units.lengths,
        least=nothing,
        most=nothing,
        C=np.ascontiguousarray(C),
        lengths=np.maximum(np.sqrt(np.einsum("ij,ij->i", C, C)), np.finfo(float).tiny),
        equality=equality,
        A=A,
        R=R,
        v=v,
        bound_column=bounds.column,
        bound_slope=bounds.slope,
        bound_old=bounds.old,
        bound_value=bounds.value,
        bound_fixes=bounds.fixes,
    )
    return data, units


class _Units(NamedTuple):
    """How a change follows from units of cost: ``delta = B u``, with one of the two."""

    diagonal: Floats | None  # (d,) of B, where it has no other entries
    matrix: Floats | None  # (d, d)

    def applied(self, rows: Floats) -> Floats:
        """Multiply rows by B, from the right; of many (n, r, d), each to the same last bit."""
        if self.diagonal is not None:
            return np.ascontiguousarray(rows * self.diagonal)
        assert self.matrix is not None  # one of them always is there
        # The order of entries decides how a product is rounded.
        return np.ascontiguousarray(np.ascontiguousarray(rows) @ self.matrix)

    @property
    def lengths(self) -> Floats:
        """Length of each row of B, (d,)."""
        if self.diagonal is not None:
            return np.asarray(np.sqrt(self.diagonal * self.diagonal))
        assert self.matrix is not None  # one of them always is there
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", self.matrix, self.matrix)))


def _units(template: ProgramTemplate, columns: NDArray[np.intp]) -> _Units | None:
    """State B, or None where the cost is flat in some direction.

    Costs that treat features one by one take no factorisation, which wide models would wait for.
    """
    sizes = template.w[columns]
    if not template.w.any():
        diagonal = diagonal_of(template.L, template.cost_entries)
        if diagonal is None:
            root = root_of(template.L[:, columns])
            return None if root is None else _Units(None, np.ascontiguousarray(np.linalg.inv(root)))
        sizes = diagonal[columns]
    if not sizes.all():
        return None
    return _Units(np.ascontiguousarray(1.0 / sizes), None)


def _factor(model: PrototypeModel) -> Floats:
    """Factor of a metric that mixes features, (r, d)."""
    if model.omegas is None or model.diagonal is not None:
        return np.zeros((0, model.n_features))
    return np.array(model.shared_factor)


def _moves(
    model: PrototypeModel, anchors: Floats, columns: NDArray[np.intp], units: _Units
) -> Floats:
    """Take anchors to rows on changes in units of cost, (n, d)."""
    # A row that overflows makes the kernel fail, and another engine is asked.
    with np.errstate(over="ignore", invalid="ignore"):
        if model.omegas is None:
            return units.applied(2.0 * anchors[:, columns])
        if model.diagonal is not None:
            return units.applied(2.0 * anchors[:, columns] * model.diagonal[columns])
        return np.ascontiguousarray(anchors @ units.applied(2.0 * model.shared_factor[:, columns]))


def _scales(TN: Floats, RN: Floats, is_quadratic: bool) -> Floats:
    """One over the length of each row, by the norm that is dual to the cost."""
    if TN.shape[0] * RN.shape[0] > _MOST_SCALES:
        return np.zeros((1, 0))
    lengths = distances(TN, RN, largest=not is_quadratic)
    return np.divide(1.0, lengths, out=np.ones_like(lengths), where=lengths > 0)


def _blank_gains(cells: SharedCells) -> Floats:
    """Set room aside for what each target can gain on each rival, which rows fill in."""
    count = cells.targets.size * cells.rivals.size
    if not count or count > _MOST_GAINS:
        return np.zeros((1, 0))
    return np.full((cells.targets.size, cells.rivals.size), np.nan)


def root_of(L: Floats) -> Floats | None:
    """Triangular R with ``R'R = L'L``, or None where the cost is flat in some direction."""
    if L.shape[0] < L.shape[1]:
        return None
    R = np.linalg.qr(L, mode="r")
    diagonal = np.abs(np.diag(R))
    lengths = np.sqrt(np.einsum("ij,ij->j", L, L))
    if not (diagonal > DEFINITE_PIVOT * lengths).all():
        return None
    signed: Floats = R * np.sign(np.diag(R))[:, None]
    return signed


def _stacked(template: ProgramTemplate) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
    parts = (template.inequalities, template.equalities)
    sizes = [rows.v.size for rows in parts]
    equality = np.repeat([False, True], sizes)
    A, R, v = (np.concatenate([getattr(rows, name) for rows in parts]) for name in "ARv")
    return np.ascontiguousarray(A), np.ascontiguousarray(R), np.ascontiguousarray(v), equality


class _Bounds(NamedTuple):
    column: NDArray[np.int64]
    slope: Floats
    old: Floats
    value: Floats
    fixes: NDArray[np.bool_]


def _bounds(template: ProgramTemplate, columns: NDArray[np.intp]) -> _Bounds:
    """Bounds of single features that may change, one per row."""
    A, R, v = (
        np.concatenate([getattr(rows, name) for rows in (template.bounds, template.fixed)])
        for name in "ARv"
    )
    fixes = np.repeat([False, True], [template.bounds.v.size, template.fixed.v.size])
    feature = np.abs(A).argmax(axis=1) if A.shape[0] else np.zeros(0, dtype=np.intp)
    position = np.full(template.w.size, -1, dtype=np.int64)
    position[columns] = np.arange(columns.size)
    kept = np.flatnonzero(position[feature] >= 0)
    return _Bounds(
        position[feature[kept]],
        A[kept, feature[kept]],
        np.ascontiguousarray(R[kept]),
        v[kept],
        fixes[kept],
    )

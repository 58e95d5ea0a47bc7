"""The map from the user's table to the space of the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from counterlvq.arrays import Floats, finite_vector, read_only
from counterlvq.coordinates import Coordinates
from counterlvq.errors import InvalidInputError
from counterlvq.features import Feature, Features
from counterlvq.frames import rows_of
from counterlvq.model import PrototypeModel

__all__ = ["LevelsPart", "NumericPart", "TableMap"]


@final
@dataclass(frozen=True, eq=False)
class NumericPart:
    """A column of numbers: `weights` is its column of B in ``z = B x + c``."""

    column: str
    weights: Floats  # (k,)


@final
@dataclass(frozen=True, eq=False)
class LevelsPart:
    """A column of levels, each of which contributes a vector to z."""

    column: str
    levels: tuple[Any, ...]
    weights: Floats  # (levels, k)


@final
@dataclass(frozen=True, eq=False, repr=False)
class TableMap:
    """``z = c + sum of what each column contributes``, in the k dimensions of the model.

    Attributes
    ----------
    columns : tuple of str
        All columns of the user's table, in the order of `fit`.
    parts : tuple of NumericPart and LevelsPart
        What the columns that matter contribute, in the order of `columns`.
    offset : ndarray of shape (k,)
        The constant c.
    named : bool
        Whether the columns had names in `fit`; otherwise they are called x0, x1, ...
    fillers : mapping from str to value
        For columns that contribute nothing but have to be valid: a value that is.
    described_as : Features, optional
        The columns that matter, where more is known of them than the pipeline says.

    Examples
    --------
    >>> from sklearn.preprocessing import MinMaxScaler
    >>> from counterlvq.pipelines import read_transformer
    >>> table_map = read_transformer(MinMaxScaler().fit([[0.0, 5.0], [4.0, 6.0]]))
    >>> table_map
    TableMap(2 columns, 0 of them unseen, to 2 dimensions)
    >>> table_map.transform([[2.0, 5.0]])
    array([[0.5, 0. ]])
    """

    columns: tuple[str, ...]
    parts: tuple[NumericPart | LevelsPart, ...]
    offset: Floats  # (k,)
    named: bool
    fillers: Mapping[str, Any] = field(default_factory=dict)
    described_as: Features | None = None

    @classmethod
    def identity(cls, columns: tuple[str, ...]) -> TableMap:
        """Take a table of numbers to itself."""
        each = zip(columns, np.eye(len(columns)), strict=True)
        parts = tuple(NumericPart(name, row.copy()) for name, row in each)
        return cls(columns, parts, np.zeros(len(columns)), named=True)

    def __post_init__(self) -> None:
        for array in (self.offset, *(part.weights for part in self.parts)):
            read_only(array)

    def __repr__(self) -> str:
        return (
            f"TableMap({len(self.columns)} columns, {len(self.unseen)} of them unseen, to "
            f"{len(self.offset)} dimensions)"
        )

    @cached_property
    def unseen(self) -> tuple[str, ...]:
        """The columns that contribute nothing, whatever they hold."""
        seen = {part.column for part in self.parts}
        return tuple(name for name in self.columns if name not in seen)

    @cached_property
    def features(self) -> Features:
        """The columns that matter, as far as anybody has said what they are."""
        if self.described_as is not None:
            return self.described_as
        return Features(_feature(part) for part in self.parts)

    def described(self, features: Features) -> TableMap:
        """Say more about the columns: what is whole, what has which levels, in which units.

        Parameters
        ----------
        features : Features
            Of all columns or some, in any order.

        Examples
        --------
        >>> from counterlvq.features import Feature, Features
        >>> from sklearn.preprocessing import OneHotEncoder
        >>> from counterlvq.pipelines import read_transformer
        >>> table_map = read_transformer(OneHotEncoder().fit([["no"], ["yes"], ["none"]]))
        >>> table_map.described(Features([Feature("x0", levels=["yes", "no"])])).parts[0].levels
        ('yes', 'no')
        """
        strangers = [name for name in features.names if name not in self.columns]
        if strangers:
            Features(self.columns).position(strangers[0])  # says which names there are
        parts, known = [], []
        for part in self.parts:
            said = features[part.column] if part.column in features.names else _feature(part)
            parts.append(_matched(part, said))
            known.append(said)
        return replace(self, parts=tuple(parts), described_as=Features(known))

    @property
    def has_levels(self) -> bool:
        """Whether some column has levels."""
        return any(isinstance(part, LevelsPart) for part in self.parts)

    def transform(self, table: Any) -> Floats:
        """Take rows of the user's table to the space of the model.

        Parameters
        ----------
        table : DataFrame, mapping or array-like with all `columns`
            As for `counterlvq.frames.rows_of`.

        Returns
        -------
        ndarray of shape (n, k)
        """
        return self.image(rows_of(table, self.features, self.columns))

    def image(self, rows: Floats) -> Floats:
        """As `transform`, for rows of numbers and codes that `rows_of` has read, (n, k)."""
        z = np.tile(self.offset, (len(rows), 1))
        for j, part in enumerate(self.parts):
            if isinstance(part, NumericPart):
                z += rows[:, j, None] * part.weights
            else:
                z += part.weights[rows[:, j].astype(np.intp)]
        return z

    def pulled_back(
        self,
        model: PrototypeModel,
        near: ArrayLike | None = None,
        seen: Coordinates | None = None,
    ) -> PrototypeModel:
        """State a model behind the map in the columns of the table that matter.

        A column of levels is stated as one column for each level but one, which is 1 where a
        row has it and 0 otherwise; see `counterlvq.coordinates`.

        The result has the distances of `model` exactly: ``omega (B x + c - w)`` is
        ``omega B (x - v)`` plus what no v can reach, which is at right angles to the rest and
        adds a constant to the squared distance.

        Parameters
        ----------
        model : PrototypeModel
            In the k dimensions of the map.
        near : array-like of shape (d,), optional
            Of the prototypes in the table's space that are equivalent, those next to this
            point are taken; next to the origin by default.
        seen : Coordinates, optional
            Of rows with certain levels; of rows with the first level of each by default.

        Returns
        -------
        PrototypeModel
            With the coordinates of `features` as its columns.

        Examples
        --------
        >>> from sklearn.preprocessing import StandardScaler
        >>> from counterlvq import PrototypeModel
        >>> from counterlvq.pipelines import read_transformer
        >>> table_map = read_transformer(StandardScaler().fit([[10.0], [30.0]]))
        >>> model = PrototypeModel([[-1.0], [1.0]], ["no", "yes"])
        >>> table_map.pulled_back(model).prototypes
        array([[10.],
               [30.]])
        """
        coordinates = Coordinates(self.features) if seen is None else seen
        B, offset = self._affine(model, coordinates)
        start = np.zeros(B.shape[1]) if near is None else finite_vector("near", near, B.shape[1])
        gaps = model.prototypes - (B @ start + offset)
        factors: Floats | list[Floats]
        if isinstance(model.omegas, tuple):
            each = zip(model.omegas, gaps, strict=True)
            found = [_preimages(omega, B, gap[None, :]) for omega, gap in each]
            moves = np.concatenate([move for move, _ in found])
            offsets = np.concatenate([rest for _, rest in found])
            factors = [omega @ B for omega in model.omegas]
        else:
            omega = np.eye(B.shape[0]) if model.omegas is None else model.shared_factor
            moves, offsets = _preimages(omega, B, gaps)
            factors = omega @ B
        if model.offsets is not None:
            offsets = offsets + model.offsets
        return PrototypeModel(
            start + moves,
            model.labels,
            factors,
            coordinates.names,
            offsets=offsets if offsets.any() else None,
        )

    def _affine(self, model: PrototypeModel, seen: Coordinates) -> tuple[Floats, Floats]:
        """B (k, width) and c (k,) of ``z = B y + c`` for coordinates y."""
        if not self.parts:
            raise InvalidInputError(
                "the pipeline drops every column, so that the model sees none; expected at least "
                "one that matters."
            )
        if model.n_features != len(self.offset):
            raise InvalidInputError(
                f"the model has {model.n_features} columns and the steps before it yield "
                f"{len(self.offset)}; expected as many."
            )
        columns, offset = [np.zeros((0, len(self.offset)))], self.offset.copy()
        for j, part in enumerate(self.parts):
            if isinstance(part, NumericPart):
                columns.append(part.weights[None, :])
            else:
                own = part.weights[int(seen.levels[j])]
                columns.append(part.weights[seen.others(j)] - own)
                offset += own
        return np.concatenate(columns).T, offset


# Of what has to be reached, the share that may be left as rounding.
_ROUNDING = 2.0**-40


def _preimages(omega: Floats, B: Floats, gaps: Floats) -> tuple[Floats, Floats]:
    """Find the shortest v that bring ``omega B v`` next to ``omega gap``, and what is left.

    Returns the v (n, d) and the squared distances (n,) that they do not close.
    """
    F, f = omega @ B, omega @ gaps.T
    # With columns of unit length, neither the rank nor what is short depends on units.
    lengths = np.linalg.norm(F, axis=0)
    units = np.where(lengths > 0, lengths, 1.0)
    V = np.linalg.lstsq(F / units, f, rcond=None)[0] / units[:, None]
    left = f - F @ V
    sizes = np.abs(omega) @ np.abs(gaps.T) + np.abs(F) @ np.abs(V)
    is_reached = (np.abs(left) <= _ROUNDING * sizes.max(axis=0)).all(axis=0)
    return V.T, np.where(is_reached, 0.0, (left * left).sum(axis=0))


def _feature(part: NumericPart | LevelsPart) -> Feature:
    if isinstance(part, NumericPart):
        return Feature(part.column)
    if part.levels == (False, True) and all(isinstance(level, bool) for level in part.levels):
        return Feature(part.column, "boolean")
    return Feature(part.column, levels=part.levels)


def _matched(part: NumericPart | LevelsPart, said: Feature) -> NumericPart | LevelsPart:
    """Give a part the levels that are said of its column, if any."""
    if said.is_number:
        if isinstance(part, LevelsPart):
            raise InvalidInputError(
                f"column {part.column!r} is said to be {said.kind} and the pipeline encodes its "
                f"levels; expected a categorical feature with levels among: "
                f"{', '.join(map(repr, part.levels[:8]))}."
            )
        return part
    if isinstance(part, NumericPart):
        wrong = [level for level in said.levels if not isinstance(level, int | float)]
        if wrong:
            raise InvalidInputError(
                f"column {part.column!r} is said to have the level {wrong[0]!r} and the model "
                f"takes it as a number; expected levels that are numbers, or an encoder."
            )
        numbers = np.array(said.levels, dtype=np.float64)
        return LevelsPart(part.column, said.levels, np.outer(numbers, part.weights))
    known = _feature(part)
    at = [known.code(level) for level in said.levels]
    if min(at) < 0:
        raise InvalidInputError(
            f"column {part.column!r} is said to have the level {said.levels[at.index(-1)]!r}, "
            f"which the pipeline does not know; expected levels among: "
            f"{', '.join(map(repr, part.levels[:8]))}."
        )
    return LevelsPart(part.column, said.levels, part.weights[at])

"""The map from the user's table to the space of the model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike

from counterlvq.errors import InvalidInputError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats, finite_vector, read_only
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.memory import FLOAT, refuse_too_large
from counterlvq.numeric.tolerances import EPSILON, FAINT_SLOPE, SAFE, SUM_UNDERFLOW
from counterlvq.pipelines.restated import Affine, restated, restated_alike
from counterlvq.problem.coordinates import Coordinates
from counterlvq.tables.encoding import rows_of
from counterlvq.tables.feature import Feature
from counterlvq.tables.features import Features
from counterlvq.tables.missing import Fills
from counterlvq.tables.monotone import Link

__all__ = ["LevelsPart", "NumericPart", "TableMap", "levels_of_numbers"]


@final
@dataclass(frozen=True, eq=False)
class NumericPart:
    """A column of numbers: `weights` is its column of B in ``z = B (x - base) + c``.

    Where it bears on one coordinate of z alone, `at` may say which, and `weights` is that slope.
    """

    column: str
    weights: Floats  # (k,), or (1,) with `at`
    base: float = 0.0
    unit: float = 0.0  # of changes that count alike among columns; 0 if that is not known
    blur: Floats | None = None  # like weights: how far they may be from what the steps say
    at: int | None = None
    link: Link | None = None  # the column is seen through this function

    def whole(self, k: int) -> NumericPart:
        """Write the column of B out."""
        if self.at is None:
            return self
        weights, blur = np.zeros(k), None if self.blur is None else np.zeros(k)
        weights[self.at] = self.weights[0]
        if blur is not None and self.blur is not None:
            blur[self.at] = self.blur[0]
        return replace(self, weights=weights, blur=blur, at=None)


@final
@dataclass(frozen=True, eq=False)
class LevelsPart:
    """A column of levels, each of which contributes a vector to z."""

    column: str
    levels: tuple[Any, ...]
    weights: Floats  # (levels, k)
    blur: Floats | None = None  # (levels, k)


class _NumericColumns(NamedTuple):
    """What columns of numbers contribute, one row for each coordinate; as in `Affine`."""

    columns: Floats  # (width, k)
    blurs: Floats  # (width, k)
    base: Floats  # (width,)
    units: Floats  # (width,)


class _LevelColumns(NamedTuple):
    """What the other levels of a column contribute beyond one of them, (levels - 1, k)."""

    columns: Floats
    blurs: Floats
    own_blur: Floats  # (k,)


def _level_columns(part: LevelsPart, own: int, others: list[int]) -> _LevelColumns:
    blur = _or_zeros(part.blur, part.weights)
    columns = part.weights[others] - part.weights[own]
    blurs = SAFE * (blur[others] + blur[own] + EPSILON * np.abs(columns))
    return _LevelColumns(columns, blurs, blur[own])


class _Slopes(NamedTuple):
    """What each column contributes to its own coordinate of z, (k,) each."""

    slopes: Floats
    base: Floats
    blur: Floats


@final
@dataclass(frozen=True, eq=False, repr=False)
class TableMap:
    """``z = c + sum of what each column contributes``, in the k dimensions of the model.

    The numbers of a map that was read from a pipeline are rounded. Its blurs bound how far they
    are from what the steps say in exact arithmetic; `pulled_back` takes them into account.

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
    offset_blur : ndarray of shape (k,), optional
        How far the constant may be from what the steps say; exact by default.
    fills : Fills
        What stands in for missing values, by column.
    objects : frozenset of str
        Columns of levels that are numbers, and that hold objects in the tables of the pipeline.

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
    described_as: Features | None = field(default=None, metadata={"asked": True})
    offset_blur: Floats | None = None  # (k,)
    fills: Fills = field(default_factory=Fills)
    objects: frozenset[str] = frozenset()

    @classmethod
    def identity(cls, columns: tuple[str, ...]) -> TableMap:
        """Take a table of numbers to itself."""
        parts = tuple(NumericPart(name, np.ones(1), at=j) for j, name in enumerate(columns))
        return cls(columns, parts, np.zeros(len(columns)), named=True)

    def __post_init__(self) -> None:
        if self.diagonal is None and any(_is_single(part) for part in self.parts):
            object.__setattr__(self, "parts", self._whole_parts())
        blurs = (self.offset_blur, *(part.blur for part in self.parts))
        for array in (self.offset, *(part.weights for part in self.parts), *blurs):
            if array is not None:
                read_only(array)

    def __repr__(self) -> str:
        return (
            f"TableMap({len(self.columns)} columns, {len(self.unseen)} of them unseen, to "
            f"{len(self.offset)} dimensions)"
        )

    @cached_property
    def diagonal(self) -> _Slopes | None:
        """The map as vectors where each column has one coordinate of z for itself, in order."""
        numbers = [part for part in self.parts if isinstance(part, NumericPart)]
        at = [part.at for part in numbers]
        is_whole = 0 < len(numbers) == len(self.parts)
        if not is_whole or at != list(range(len(self.offset))):
            return None
        return _Slopes(
            np.array([part.weights[0] for part in numbers]),
            np.array([part.base for part in numbers]),
            np.array([0.0 if part.blur is None else part.blur[0] for part in numbers]),
        )

    def _whole_parts(self) -> tuple[NumericPart | LevelsPart, ...]:
        """Write all columns of B out."""
        k, singles = len(self.offset), sum(map(_is_single, self.parts))
        refuse_too_large(
            f"a map of {singles:,} columns, written as a matrix,", 2 * FLOAT * k * singles,
            "describe all of them as plain numbers, or leave out features",
        )  # fmt: skip
        return tuple(p.whole(k) if isinstance(p, NumericPart) else p for p in self.parts)

    @cached_property
    def unseen(self) -> tuple[str, ...]:
        """The columns that contribute nothing, whatever they hold."""
        seen = {part.column for part in self.parts}
        return tuple(name for name in self.columns if name not in seen)

    @cached_property
    def features(self) -> Features:
        """The columns that matter, as far as anybody has said what they are."""
        if self.described_as is not None:
            return self.described_as.within(self.columns)
        return Features(_feature(part) for part in self.parts).within(self.columns)

    def described(self, features: Features) -> TableMap:
        """Say more about the columns: what is whole, what has which levels, in which units.

        Parameters
        ----------
        features : Features
            Of all columns or some, in any order.

        Examples
        --------
        >>> from counterlvq.tables.feature import Feature
        >>> from counterlvq.tables.features import Features
        >>> from sklearn.preprocessing import OneHotEncoder
        >>> from counterlvq.pipelines import read_transformer
        >>> table_map = read_transformer(OneHotEncoder().fit([["no"], ["yes"], ["none"]]))
        >>> table_map.described(Features([Feature("x0", levels=["yes", "no"])])).parts[0].levels
        ('yes', 'no')
        """
        there = set(self.columns)
        strangers = [name for name in features.names if name not in there]
        if strangers:
            Features(self.columns).position(strangers[0])  # says which names there are
        parts, known = [], []
        for part in self.parts:
            said = features[part.column] if part.column in features else _feature(part)
            if isinstance(part, NumericPart) and not said.is_number:
                part = part.whole(len(self.offset))  # noqa: PLW2901
            parts.append(_matched(part, said))
            known.append(said)
        return replace(self, parts=tuple(parts), described_as=Features(known))

    def showing(self, names: Collection[str]) -> TableMap:
        """Take up unseen columns as numbers that contribute nothing.

        They can then be priced and changed, as a cost that ties columns together may ask for.

        Examples
        --------
        >>> from sklearn.feature_selection import VarianceThreshold
        >>> from counterlvq.pipelines import read_transformer
        >>> table_map = read_transformer(VarianceThreshold().fit([[0.0, 5.0], [4.0, 5.0]]))
        >>> table_map.showing(["x1"]).features.names
        ('x0', 'x1')
        """
        added = [name for name in self.unseen if name in names]
        if not added or not self.parts:
            return self
        place = {name: at for at, name in enumerate(self.columns)}
        nothing = [NumericPart(name, np.zeros(len(self.offset))) for name in added]
        parts = sorted((*self.parts, *nothing), key=lambda part: place[part.column])
        out = replace(self, parts=tuple(parts))
        if self.described_as is None:
            return out
        said: list[Feature] = [*self.described_as, *map(Feature, added)]
        said.sort(key=lambda feature: place[feature.name])
        return replace(out, described_as=Features(said))

    def widened(self, feature: Feature) -> TableMap:
        """Put a column of numbers behind all others that contributes nothing."""
        said = Features([*self.features, feature])
        wider = replace(self, columns=(*self.columns, feature.name))
        return replace(wider.showing([feature.name]), described_as=said)

    @property
    def takes_numbers_only(self) -> bool:
        """Whether its tables are arrays of numbers: no names, and no column that holds text."""
        parts = (part for part in self.parts if isinstance(part, LevelsPart))
        texts = any(isinstance(level, str) for part in parts for level in part.levels)
        return not (self.named or texts)

    def taken_exactly(self) -> TableMap:
        """Take the floats of this map for what is meant, and not the steps behind them."""
        parts = tuple(replace(part, blur=None) for part in self.parts)
        return replace(self, parts=parts, offset_blur=None)

    @property
    def has_levels(self) -> bool:
        """Whether some column has levels."""
        return any(isinstance(part, LevelsPart) for part in self.parts)

    @cached_property
    def links(self) -> tuple[Link | None, ...]:
        """The function that each part is seen through, None for most."""
        return tuple(getattr(part, "link", None) for part in self.parts)

    @cached_property
    def has_links(self) -> bool:
        """Whether some part is seen through a function."""
        return any(link is not None for link in self.links)

    def seen(self, rows: Floats) -> Floats:
        """Take each column through its function, (n, d)."""
        if not self.has_links:
            return rows
        out = np.array(rows)
        for j, link in enumerate(self.links):
            if link is not None:
                out[:, j] = link.of(out[:, j])
        return out

    def given(self, rows: Floats) -> Floats:
        """Undo `seen`, up to rounding, (n, d)."""
        if not self.has_links:
            return rows
        out = np.array(rows)
        for j, link in enumerate(self.links):
            if link is not None:
                out[:, j] = link.back(out[:, j])
        return out

    def transform(self, table: Any) -> Floats:
        """Take rows of the user's table to the space of the model.

        Parameters
        ----------
        table : DataFrame, mapping or array-like with all `columns`
            As for `counterlvq.tables.encoding.rows_of`; missing values as `fills` has them.

        Returns
        -------
        ndarray of shape (n, k)
        """
        return self.image(rows_of(table, self.features, self.columns, self.fills))

    def image(self, rows: Floats) -> Floats:
        """As `transform`, for rows of numbers and codes that `rows_of` has read, (n, k)."""
        rows = self.seen(rows)
        if self.diagonal is not None:
            return np.asarray(self.offset + (rows - self.diagonal.base) * self.diagonal.slopes)
        z = np.tile(self.offset, (len(rows), 1))
        for j, part in enumerate(self.parts):
            if isinstance(part, NumericPart):
                z += (rows[:, j, None] - part.base) * part.weights
            else:
                z += part.weights[rows[:, j].astype(np.intp)]
        return z

    def image_reach(self, reach: Floats) -> Floats:
        """Bound how far images move where columns change by at most `reach` (n, d), (n, k).

        A column of levels may change to any level where its reach is above 0.
        """
        out = np.zeros((len(reach), len(self.offset)))
        if self.diagonal is not None:
            sizes = np.abs(self.diagonal.slopes)
            return SAFE * np.multiply(reach, sizes, out=out, where=sizes > 0)
        for j, part in enumerate(self.parts):
            if isinstance(part, LevelsPart):
                widest = np.ptp(part.weights, axis=0)
                out += np.where(reach[:, j, None] > 0, widest, 0.0)
            else:
                seen = np.flatnonzero(part.weights)  # what is not seen may have no limit
                out[:, seen] += reach[:, j, None] * np.abs(part.weights[seen])
        return SAFE * out

    def pulled_back(
        self,
        model: PrototypeModel,
        near: ArrayLike | None = None,
        seen: Coordinates | None = None,
        like: tuple[Coordinates, Floats] | None = None,
    ) -> PrototypeModel:
        """State a model behind the map in the columns of the table that matter.

        A column of levels is stated as one column for each level but one, which is 1 where a
        row has it and 0 otherwise; see `counterlvq.problem.coordinates`.

        ``omega (B x + c - w)`` is ``omega B (x - v)`` plus what no v can reach, which is at right
        angles to the rest and adds a constant to the squared distance. The result has the
        distances of `model` but for rounding, which its `blur` bounds.

        Parameters
        ----------
        model : PrototypeModel
            In the k dimensions of the map.
        near : array-like of shape (d,), optional
            Of the prototypes in the table's space that are equivalent, those next to this
            point are taken; next to the middle of what the steps were fitted on by default, or
            to the origin where that is not known.
        seen : Coordinates, optional
            Of rows with certain levels; of rows with the first level of each by default.
        like : tuple of Coordinates and ndarray of shape (p, d), optional
            Other coordinates, and the prototypes of the result in them: they are carried over.

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
        coordinates = Coordinates(self.features, links=self.links) if seen is None else seen
        affine = self._affine(model, coordinates)
        width = coordinates.width
        start = affine.base if near is None else finite_vector("near", near, width)
        known = None if like is None else coordinates.carried(*like)
        return restated(model, affine, start, coordinates.columns, known)

    def pulled_back_alike(
        self,
        model: PrototypeModel,
        seen: Sequence[Coordinates],
        like: tuple[Coordinates, Floats],
    ) -> list[PrototypeModel]:
        """As `pulled_back` for several coordinates of one shape, for a shared metric: at once."""
        points = seen[0].carried_each(seen, *like)
        names = [coordinates.seen_features for coordinates in seen]
        return restated_alike(model, self._affine_of_each(model, seen), names, points)

    def _affine_of_each(self, model: PrototypeModel, seen: Sequence[Coordinates]) -> Affine:
        """As `_affine` for several coordinates, with one axis more in front of each part."""
        self._refuse_other_model(model)
        whatever, count = self._whatever_levels, len(seen)
        levels = np.array([coordinates.levels for coordinates in seen]).astype(np.intp)
        columns, blurs = (
            np.tile(part, (count, 1, 1)) for part in (whatever.columns, whatever.blurs)
        )
        offset = np.tile(self.offset, (count, 1))
        offset_blur = np.tile(_or_zeros(self.offset_blur, self.offset), (count, 1))
        for j, part in enumerate(self.parts):
            if isinstance(part, NumericPart):
                continue
            own_blur, span = np.empty_like(offset), seen[0].spans[j]
            for own in np.unique(levels[:, j]).tolist():
                at = np.flatnonzero(levels[:, j] == own)
                known = self._seen_from_level(j, own, seen[at[0]])
                columns[at, span], blurs[at, span] = known.columns, known.blurs
                own_blur[at] = known.own_blur
            offset += part.weights[levels[:, j]]
            offset_blur = SAFE * (offset_blur + own_blur + EPSILON * np.abs(offset))
        base, units = (np.tile(part, (count, 1)) for part in (whatever.base, whatever.units))
        # Slices have the order of entries that each map has alone: so products round alike.
        B, B_blur = (part.swapaxes(-1, -2) for part in (columns, blurs))
        return Affine(B, base, units, offset, B_blur, offset_blur)

    def _refuse_other_model(self, model: PrototypeModel) -> None:
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

    def _seen_from_level(self, j: int, own: int, seen: Coordinates) -> _LevelColumns:
        """Return what a part with levels contributes seen from one of them; known once asked."""
        known = self._levels_seen.get((j, own))
        if known is None:
            part = self.parts[j]
            assert isinstance(part, LevelsPart)
            known = self._levels_seen[j, own] = _level_columns(part, own, seen.others(j))
        return known

    def _affine(self, model: PrototypeModel, seen: Coordinates) -> Affine:
        """State the map for coordinates."""
        self._refuse_other_model(model)
        along = self.diagonal
        offset, offset_blur = self.offset.copy(), _or_zeros(self.offset_blur, self.offset).copy()
        if along is not None:
            return Affine(along.slopes, along.base, self._units, offset, along.blur, offset_blur)
        whatever = self._whatever_levels
        columns, blurs = whatever.columns.copy(), whatever.blurs.copy()
        for j, part in enumerate(self.parts):
            if isinstance(part, NumericPart):
                continue
            own, span = int(seen.levels[j]), seen.spans[j]
            known = self._seen_from_level(j, own, seen)
            columns[span], blurs[span] = known.columns, known.blurs
            offset += part.weights[own]
            offset_blur = SAFE * (offset_blur + known.own_blur + EPSILON * np.abs(offset))
        return Affine(columns.T, whatever.base, whatever.units, offset, blurs.T, offset_blur)

    @cached_property
    def _whatever_levels(self) -> _NumericColumns:
        """What parts that are numbers contribute, whatever the levels: other columns are blank."""
        spans = Coordinates(self.features).spans
        width = spans[-1].stop if spans else 0
        columns, blurs = (np.zeros((width, len(self.offset))) for _ in range(2))
        base, units = np.zeros(width), np.ones(width)
        for part, span, unit in zip(self.parts, spans, self._units, strict=True):
            if isinstance(part, NumericPart):
                at = span.start
                columns[at], blurs[at] = part.weights, _or_zeros(part.blur, part.weights)
                base[at], units[at] = part.base, unit
        return _NumericColumns(*map(read_only, (columns, blurs, base, units)))

    @cached_property
    def _levels_seen(self) -> dict[tuple[int, int], _LevelColumns]:
        """What parts with levels contribute seen from each of them, as far as it was asked for."""
        return {}

    @cached_property
    def _units(self) -> Floats:
        """Units in which changes of the columns count alike; 1 for columns of levels."""
        known = np.array([getattr(part, "unit", 1.0) for part in self.parts])
        lengths = np.array([_length(part.weights) for part in self.parts])
        # Of a map that does not say, a slope that is fainter than this beside the others is taken
        # for rounding, so that no prototype is carried out along it.
        longest = lengths.max()
        faint = lengths <= FAINT_SLOPE * longest
        # Of a map that leads nowhere, all changes count alike.
        guessed = 1.0 / np.where(faint, longest if longest > 0 else 1.0, lengths)
        return np.where(known > 0, known, guessed)


def _length(weights: Floats) -> float:
    """Length of a vector, also where the squares of its entries are no floats."""
    with np.errstate(over="ignore", under="ignore"):
        length = float(np.linalg.norm(weights))
    if 0 < length < np.inf:
        return length
    most = float(np.abs(weights).max(initial=0.0))
    return most * float(np.linalg.norm(weights / most)) if most > 0 else 0.0


def _is_single(part: NumericPart | LevelsPart) -> bool:
    return isinstance(part, NumericPart) and part.at is not None


def _or_zeros(blur: Floats | None, like: Floats) -> Floats:
    return np.zeros_like(like) if blur is None else blur


def levels_of_numbers(part: NumericPart, levels: tuple[Any, ...]) -> LevelsPart:
    """Take a column of numbers that has a few values only as one of levels."""
    numbers = finite_vector(f"the levels of column {part.column!r}", levels)
    pulled = np.zeros_like(numbers)
    if part.link is not None:
        numbers = part.link.of(numbers)
        pulled = 8.0 * EPSILON * part.link.pull(numbers)
    away, blur = numbers - part.base, _or_zeros(part.blur, part.weights)
    weights = np.outer(away, part.weights)
    # The difference and the product are rounded once each.
    is_exact = (weights == 0) | ((part.base == 0) & (np.abs(part.weights) == 1))
    rounding = np.where(is_exact, 0.0, 2.0 * EPSILON * np.abs(weights) + SUM_UNDERFLOW)
    rounding = rounding + np.outer(pulled, np.abs(part.weights))
    return LevelsPart(
        part.column, levels, weights, SAFE * (np.outer(np.abs(away), blur) + rounding)
    )


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
        return levels_of_numbers(part, said.levels)
    known = _feature(part)
    at = [known.code(level) for level in said.levels]
    if min(at) < 0:
        raise InvalidInputError(
            f"column {part.column!r} is said to have the level {said.levels[at.index(-1)]!r}, "
            f"which the pipeline does not know; expected levels among: "
            f"{', '.join(map(repr, part.levels[:8]))}."
        )
    blur = None if part.blur is None else part.blur[at]
    return LevelsPart(part.column, said.levels, part.weights[at], blur)

"""What the user hands in as a model: a model, an estimator, or a pipeline that ends in one.

Whatever it is, it becomes a prototype model in the columns of the user's own table, together
with the user's own `predict` and the way to read rows of that table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.adapters import (
    Arithmetic,
    Thresholded,
    arithmetic_of,
    as_prototype_model,
    predictor_of,
)
from counterlvq.adapters.attributes import named_rows, thawed
from counterlvq.adapters.clusterings import refuse_behind_steps
from counterlvq.errors import InvalidInputError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats, finite_matrix, has_names, told
from counterlvq.numeric.lazy import cached_property
from counterlvq.pipelines import NumericPart, TableMap, TableModel, read_pipeline
from counterlvq.pipelines.doubt import Doubt
from counterlvq.pipelines.probe_rows import PipelineRows, PredictWithGaps
from counterlvq.pipelines.reading import is_pipeline
from counterlvq.pipelines.responses import Responses
from counterlvq.pipelines.step_rounding import slip_of, slip_of_map
from counterlvq.problem.coordinates import Coordinates
from counterlvq.problem.cost_terms import tied_columns
from counterlvq.problem.costs import Cost
from counterlvq.tables.encoding import as_table, like
from counterlvq.tables.feature import Feature
from counterlvq.tables.features import Features
from counterlvq.tables.frames import as_frame, settled
from counterlvq.tables.missing import Fills
from counterlvq.tables.reading import Reading, read_rows
from counterlvq.tables.values import is_missing
from counterlvq.tables.views import TableView
from counterlvq.types import Scores

__all__ = ["Doubt", "ExplainedModel", "RowsModel", "source_of"]

Predictor = Callable[[Floats], NDArray[Any]]


class _Behind(NamedTuple):
    table_map: TableMap
    model: PrototypeModel  # in the space that the map leads to
    images: Callable[[Floats], Floats]  # of rows in that space, as the user's model has them
    part: Callable[[PrototypeModel], PrototypeModel] | None = None  # what is asked about of it

    def stated(
        self, coordinates: Coordinates, like: tuple[Coordinates, Floats] | None = None
    ) -> PrototypeModel:
        """State the model in coordinates; on a grid it keeps the last word on close calls.

        `like` are other coordinates, and the prototypes in them.
        """
        out = self.table_map.pulled_back(self.model, seen=coordinates, like=like)
        return self._asked(out, coordinates)

    def stated_alike(
        self, coordinates: Sequence[Coordinates], like: tuple[Coordinates, Floats]
    ) -> list[PrototypeModel]:
        """As `stated`, in several coordinates at once; of a shared metric."""
        found = self.table_map.pulled_back_alike(self.model, coordinates, like)
        return [self._asked(out, seen) for out, seen in zip(found, coordinates, strict=True)]

    def _asked(self, out: PrototypeModel, coordinates: Coordinates) -> PrototypeModel:
        if self.part is not None:
            return self.part(out)
        if coordinates.is_plain:
            return out
        return out.refereed(_After(self.model.nearest, _After(self.images, coordinates.outer)))

    def widened(self, feature: Feature, known: _First) -> _Behind:
        """Put a column behind all others that contributes nothing."""
        wider = self.table_map.widened(feature)
        return _Behind(wider, self.model, _After(self.images, known), self.part)


@final
@dataclass(frozen=True, eq=False)
class RowsModel:
    """A model asked about rows of the user's columns, whatever coordinates it is stated in."""

    model: PrototypeModel
    images: Callable[[Floats], Floats]  # of rows in its space

    @property
    def labels(self) -> NDArray[Any]:
        """Label of each prototype."""
        return self.model.labels

    def nearest_of_checked(self, rows: Floats) -> NDArray[np.intp]:
        """Index of the nearest prototype of each row, (n,): on a grid, the last word."""
        return self.model.nearest_of_checked(self.images(rows))

    def distances_of_checked(self, rows: Floats) -> Floats:
        """Squared distance of each row to each prototype, (n, p)."""
        return self.model.distances_of_checked(self.images(rows))


@final
@dataclass(frozen=True, eq=False)
class ExplainedModel:
    """A model in the coordinates of the user's columns, and how to read and to ask in them."""

    model: PrototypeModel
    says: Predictor | None  # the user's own `predict`, if it is another than the model's
    columns: tuple[str, ...]  # of the user's table, whether the model sees them or not
    coordinates: Coordinates  # of those that it sees
    behind: _Behind | None = None  # what the model was stated from, if that is another
    rounding: Doubt | None = None  # of `says`, for rows of the user's columns
    responds: Responses | None = None  # the number behind a decision, at such a row
    fills: Fills = field(default_factory=Fills)  # what stands in for missing values
    with_gaps: PredictWithGaps | None = None  # the user's own `predict`, of rows that have some

    @property
    def features(self) -> Features:
        """The columns that the model sees."""
        return self.coordinates.features

    @cached_property
    def scales(self) -> tuple[str, ...]:
        """The scales on which changes of some columns are measured, other than their own."""
        pairs = zip(self.features, self.coordinates.links, strict=bool(self.coordinates.links))
        return tuple(link.words(feature.name) for feature, link in pairs if link is not None)

    def seen(self, given: Any, *, is_row: bool = False) -> Any:
        """See rows as a table, once; numbers in column order stay as they are."""
        by_position = not has_names(given) or (is_row and isinstance(given, Mapping))
        return given if self._is_plain and by_position else as_table(given, self.columns)

    def read_one(self, x: Any) -> Reading:
        """Read one input: an array in column order, or by name whatever has names."""
        x = self.seen(x, is_row=True)
        if not isinstance(x, TableView):
            if not self._has_gaps(x):
                return self._taken(Reading(self.features.vector("x", x)[None, :]))
            x = self._cells(x)
        reading = read_rows(x, self.features, self.fills)
        if len(reading.values) != 1:
            raise InvalidInputError(
                f"x has {len(reading.values)} rows; expected one. Use explain_batch for many."
            )
        return self._confirmed(x, self._taken(reading), report=False)

    def read(self, X: Any, *, report: bool = False) -> Reading:
        """Read many inputs; columns that have names are found by name, in any order.

        With `report`, rows that cannot be read are told of instead of raised.
        """
        X = self.seen(X)
        if not isinstance(X, TableView):
            try:
                whole = Reading(finite_matrix("X", X, len(self.features)))
            except InvalidInputError:
                # What else may be wrong is wrong with the cells of an array of that width.
                if np.ndim(X) != 2 or not (report or self._has_gaps(X)):
                    raise
            else:
                return self._taken(whole, report=report)
            X = self._cells(X)
        reading = read_rows(X, self.features, self.fills, report=report)
        if not reading.values.size:
            raise InvalidInputError("X is empty (0 rows); expected at least one row.")
        return self._confirmed(X, self._taken(reading, report=report), report=report)

    def _cells(self, given: Any) -> TableView:
        """See numbers in column order as a table, in which some may be missing."""
        if isinstance(given, Mapping):
            given = [given[name] for name in self.features.names]
        return as_table(given, self.columns)

    def _has_gaps(self, given: Any) -> bool:
        """Whether values are missing that something may stand in for."""
        if not self.fills.values and not self.fills.reasons:
            return False
        if isinstance(given, Mapping):
            if given.keys() != set(self.features.names):
                return False  # which is refused in words
            given = [given[name] for name in self.features.names]
        cells = np.asarray(given)
        if cells.dtype.kind == "f":
            return bool(np.isnan(cells).any())
        return cells.dtype == object and any(map(is_missing, cells.ravel().tolist()))

    def _confirmed(self, table: TableView, reading: Reading, *, report: bool) -> Reading:
        """Have the user's own `predict` confirm that it sees rows with gaps as they were read."""
        if reading.missing is None or self.with_gaps is None or self.says is None:
            return reading
        good = reading.good
        at = good[reading.missing[good].any(axis=1)]
        if not at.size:
            return reading
        rows, gaps = reading.values[at], reading.missing[at]
        expected = self.says(rows)
        wrong = self.with_gaps.disagrees(table.taking(at), rows, gaps, expected)
        if wrong and not report:
            i, words = next(iter(wrong.items()))
            raise InvalidInputError(f"{table.row(int(at[i]))}: {words}")
        return reading.with_problems({int(at[i]): words for i, words in wrong.items()})

    def rejected(
        self, given: TableView | None, values: Floats, gaps: NDArray[np.bool_], labels: NDArray[Any]
    ) -> dict[int, str]:
        """Rows that the user's own `predict` does not label so where values are missing, and why.

        In words that say what may be done about it.
        """
        at = np.flatnonzero(gaps.any(axis=1))
        if not at.size or self.with_gaps is None:
            return {}
        table = None if given is None else given.taking(at)
        found = self.with_gaps.disagrees(table, values[at], gaps[at], labels[at])
        return {int(at[k]): words for k, words in found.items()}

    def _taken(self, reading: Reading, *, report: bool = False) -> Reading:
        """Refuse rows that the model makes nothing of, though each value is one of its column."""
        if not self.coordinates.links and self.model.meaning.scores is not Scores.ANGLE:
            return reading
        for find in (self._without_images, self._without_angles):
            problems = find(reading)
            if problems and not report:
                i, words = next(iter(problems.items()))
                which = "x" if len(reading.values) == 1 else f"row {i} of X"
                raise InvalidInputError(f"{which} {words}")
            reading = reading.with_problems({i: f"the row {problems[i]}" for i in problems})
        return reading

    def _without_images(self, reading: Reading) -> dict[int, str]:
        """Rows with values at which the function that a column is seen through has none."""
        out: dict[int, str] = {}
        pairs = zip(self.features, self.coordinates.links, strict=bool(self.coordinates.links))
        for j, (feature, link) in enumerate(pairs):
            values = reading.values[:, j]
            if link is None:
                continue
            for i in reading.good[~link.takes(values[reading.good])].tolist():
                words = (
                    f"has {values[i]:.17g} in column {told(feature.name)}, where "
                    f"{link.words(feature.name)} is no number that can be worked with; expected "
                    f"a value at which it is: {link.domain_words(feature.name)}."
                )
                out[i] = f"{out[i]} It {words}" if i in out else words
        return dict(sorted(out.items()))

    def _without_angles(self, reading: Reading) -> dict[int, str]:
        """Rows of zeros where angles decide: they have none."""
        good = reading.good
        if self.model.meaning.scores is not Scores.ANGLE or not good.size:
            return {}
        rows = reading.values[good]
        seen = rows if self.rounding is None else self.rounding.images(rows)
        model = self.model if self.rounding is None else self.rounding.arithmetic.model
        factor = np.ones(seen.shape[1]) if model.omegas is None else model.omegas
        assert not isinstance(factor, tuple)
        images = seen * factor if factor.ndim == 1 else seen @ factor.T
        words = (
            "is 0 to the model, which compares angles, and 0 has no angle to anything; "
            "expected a row with a direction. Leave it out."
        )
        return dict.fromkeys(good[~images.any(axis=1)].tolist(), words)

    def like(self, given: Any, rows: Floats) -> Any:
        """Write rows as `rows` returns them into a table like the one that was given."""
        given = self.seen(given)
        if not isinstance(given, TableView):
            return rows if np.ndim(given) > 1 else rows[0]
        return like(given, rows, self.features, self.columns)

    def like_one(self, given: Any, row: Floats) -> Any:
        """Write one row (d,) like the one that was given."""
        return self.like(given, row[None, :])

    def seen_from(self, row: Floats) -> ExplainedModel:
        """State the model in the coordinates of rows that have the levels of this one."""
        return self._seen_in(self.coordinates.seen_from(row))

    def _seen_in(self, coordinates: Coordinates) -> ExplainedModel:
        if coordinates is self.coordinates:
            return self
        if self.behind is None or not self.coordinates.has_levels:
            return replace(self, coordinates=coordinates)
        # A part has prototypes of its own, which say nothing about those of the whole.
        like = None if self.behind.part else (self.coordinates, self.model.prototypes)
        return replace(self, model=self.behind.stated(coordinates, like), coordinates=coordinates)

    def seen_in_each(self, seen: Sequence[Coordinates]) -> list[ExplainedModel]:
        """As `seen_from` for rows that have certain coordinates, at once where possible."""
        behind, here = self.behind, self.coordinates
        if behind is None or behind.part is not None or behind.model.is_local:
            return [self._seen_in(coordinates) for coordinates in seen]
        if not here.has_levels or len(seen) < 2:
            return [self._seen_in(coordinates) for coordinates in seen]
        found = behind.stated_alike(seen, (here, self.model.prototypes))
        pairs = zip(found, seen, strict=True)
        return [replace(self, model=model, coordinates=own) for model, own in pairs]

    @property
    def rows_model(self) -> RowsModel:
        """The model as it decides about rows of the user's columns."""
        if self.behind is None:
            return RowsModel(self.model, _same)
        part, model = self.behind.part, self.behind.model
        return RowsModel(model if part is None else part(model), self.behind.images)

    def taking(
        self,
        part: Callable[[PrototypeModel], PrototypeModel],
        says: Predictor | None = None,
    ) -> ExplainedModel:
        """Return a model made of this one, in whatever coordinates that is stated."""
        behind = None if self.behind is None else self.behind._replace(part=part)
        return replace(
            self, model=part(self.model), says=says, behind=behind, rounding=None, responds=None,
            with_gaps=None,
        )  # fmt: skip

    def widened(self, feature: Feature) -> ExplainedModel:
        """Put a column of numbers behind all others that the model knows nothing of."""
        here = self.coordinates
        links = (*here.links, None) if here.links else ()
        features = Features([*here.features, feature])
        coordinates = Coordinates(features, (*here.levels, 0.0), links)
        known = _First(len(here.features))
        behind = None if self.behind is None else self.behind.widened(feature, known)
        model = behind.stated(coordinates) if behind else self.model.widened(feature.name)
        doubt = self.rounding
        return ExplainedModel(
            model,
            None if self.says is None else _After(self.says, known),
            (*self.columns, feature.name),
            coordinates,
            behind,
            None if doubt is None else replace(doubt, columns=known.count),
        )

    def without_ranges(self, columns: Iterable[int]) -> ExplainedModel:
        """Lift the allowed ranges of some columns of numbers."""
        here = self.coordinates
        lifted = {here.features.names[j]: (None, None) for j in columns}
        features = here.features.refined(ranges=lifted)
        return replace(self, coordinates=replace(here, features=features))

    def predictor(self) -> Predictor | None:
        """Return the user's own `predict`, for points in coordinates."""
        says, outer = self.says, self.coordinates.outer
        is_same = not self.coordinates.has_levels and not self.coordinates.links
        return says if says is None or is_same else _After(says, outer)

    def doubt(self) -> Doubt | None:
        """Return what rounding in that `predict` leaves open, for points in coordinates."""
        is_same = not self.coordinates.has_levels and not self.coordinates.links
        if self.rounding is None or is_same:
            return self.rounding
        return replace(self.rounding, inner=self.coordinates)

    @cached_property
    def _is_plain(self) -> bool:
        """Whether an array of the user has the columns of the model and no others."""
        return self.columns == self.features.names and all(f.is_real for f in self.features)


def source_of(
    model: Any, features: Any = None, cost: Cost | None = None, threshold: float | None = None
) -> ExplainedModel:
    """Read a model, an estimator, or a pipeline that ends in one.

    `features` describes the columns: `Features`, a DataFrame or an Arrow table whose dtypes do,
    or None. Columns that the model ignores are among the features where `cost` ties them to
    others, and in arrays of numbers, whose rows come back as wide as they were. `threshold` is put
    on the number that the model decides by.
    """
    model = thawed(model)
    if threshold is not None:
        model = Thresholded(model, threshold)
    if is_pipeline(model):
        table_map, last = read_pipeline(model)
        refuse_behind_steps(last)
        table_map = _described(table_map, features, cost)
        rows, read = PipelineRows(model, table_map), as_prototype_model(last)
        own = arithmetic_of(last, read) or Arithmetic(read, by_products=False)
        rounding = Doubt(own, table_map, slip_of(model, table_map))
        found = _behind(table_map, read, rows.labels, rows.images, rounding)
        gaps = PredictWithGaps(rows) if table_map.fills.values else None
        responds = Responses(read, table_map.image, model, rows.table)
        return replace(found, responds=responds, with_gaps=gaps)
    if isinstance(model, TableModel):
        known = model.table_map.described(model.features)
        table_map = _described(known, features, cost).taken_exactly()
        remembered = arithmetic_of(model.model, model.model)
        own = remembered or Arithmetic(model.model, by_products=False)
        rounding = Doubt(own, table_map, slip_of_map(table_map))
        says = _After(model.model.predict, table_map.image)
        found = _behind(table_map, model.model, says, rounding=rounding)
        return replace(found, responds=Responses(model.model, table_map.image))
    read, own_predict = as_prototype_model(model), predictor_of(model)
    arithmetic = arithmetic_of(model, read)
    bare = None if arithmetic is None else Doubt(arithmetic)
    found = _described_model(read, own_predict, bare, features)
    responds = Responses(read, _same, model, partial(named_rows, model))
    return found if found.behind is not None else replace(found, responds=responds)


def _same(rows: Floats) -> Floats:
    return rows


def _described_model(
    read: PrototypeModel,
    own_predict: Predictor | None,
    bare: Doubt | None,
    features: Any,
) -> ExplainedModel:
    """State a model without a pipeline, its columns as they are described."""
    if features is None:
        coordinates = Coordinates(read.features)
        return ExplainedModel(read, own_predict, read.features.names, coordinates, rounding=bare)
    table_map = _described(TableMap.identity(read.features.names), features).taken_exactly()
    if table_map.has_levels:
        if own_predict is None or bare is None:
            return _behind(table_map, read, None)
        bare = replace(bare, table_map=table_map)
        return _behind(table_map, read, _After(own_predict, table_map.image), rounding=bare)
    coordinates = Coordinates(table_map.features)
    return ExplainedModel(read, own_predict, table_map.columns, coordinates, rounding=bare)


def _behind(
    table_map: TableMap,
    model: PrototypeModel,
    says: Predictor | None,
    images: Callable[[Floats], Floats] | None = None,
    rounding: Doubt | None = None,
) -> ExplainedModel:
    """State a model that sits behind a map."""
    coordinates = Coordinates(table_map.features, links=table_map.links)
    if table_map.parts and not coordinates.width:
        raise InvalidInputError(
            "every feature has one level only, so that nothing can change; expected one that can."
        )
    behind = _Behind(table_map, model, table_map.image if images is None else images)
    return ExplainedModel(
        behind.stated(coordinates),
        says,
        table_map.columns,
        coordinates,
        behind,
        rounding,
        fills=table_map.fills,
    )


def _described(table_map: TableMap, features: Any, cost: Cost | None = None) -> TableMap:
    """Say of a map what its columns are; those that the model ignores stay out if they can."""
    if table_map.takes_numbers_only:
        table_map = table_map.showing(set(table_map.unseen) - set(table_map.fillers))
    table_map = _told(table_map, features)
    if cost is None:
        return table_map
    return table_map.showing(tied_columns(cost, table_map.features, table_map.columns))


def _told(table_map: TableMap, features: Any) -> TableMap:
    if features is None:
        return table_map
    if isinstance(features, Features):
        return table_map.described(features)
    # What an encoder has seen it knows better than the dtype of a column.
    names = [part.column for part in table_map.parts if isinstance(part, NumericPart)]
    table = as_frame(settled(features))
    if table is None:
        raise InvalidInputError(
            f"features is a {type(features).__name__}; expected Features([...]), or a DataFrame "
            f"of pandas or polars or an Arrow table, whose dtypes say what the columns are."
        )
    return table_map.described(Features.from_frame(table, names))


@final
@dataclass(frozen=True, eq=False)
class _First:
    """The first so many columns of rows."""

    count: int

    def __call__(self, rows: Floats) -> Floats:
        return np.ascontiguousarray(rows[:, : self.count])


@final
@dataclass(frozen=True, eq=False)
class _After:
    """One function after another, as a value that processes can hand to each other."""

    last: Callable[[Floats], NDArray[Any]]
    first: Callable[[Floats], Floats]

    def __call__(self, rows: Floats) -> NDArray[Any]:
        return self.last(self.first(rows))

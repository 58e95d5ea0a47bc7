"""Rows shown to the pipeline itself: complete ones, and such with missing values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.adapters.exclusive_calls import in_turn
from counterlvq.numeric.arrays import Floats, plain
from counterlvq.numeric.lazy import cached_property
from counterlvq.pipelines.reading import split
from counterlvq.pipelines.table_map import TableMap
from counterlvq.tables.encoding import like
from counterlvq.tables.feature import Feature
from counterlvq.tables.features import Features
from counterlvq.tables.frames import new_frame
from counterlvq.tables.views import TableView
from counterlvq.types import Kind

__all__ = ["PipelineRows", "PredictWithGaps"]


@final
@dataclass(frozen=True, eq=False)
class PipelineRows:
    """Show rows to the pipeline itself; columns that it never looks at are filled."""

    pipeline: Any
    table_map: TableMap

    def labels(self, rows: Floats) -> NDArray[Any]:
        """Say what the pipeline predicts, (n,)."""
        table = self.table(rows)
        with in_turn():
            return np.asarray(self.pipeline.predict(table)).reshape(-1)

    def images(self, rows: Floats) -> Floats:
        """Take rows to the space of the model, by the pipeline's own `transform`, (n, k)."""
        steps, _ = split(self.pipeline)
        if not steps:
            return self.table_map.image(rows)
        found = self.table(rows)
        with in_turn():
            for step in steps:
                found = found if step is None or isinstance(step, str) else step.transform(found)
        dense = found.toarray() if hasattr(found, "toarray") else found
        return np.asarray(dense, dtype=np.float64)

    @cached_property
    def _takes_rows(self) -> bool:
        """Whether the pipeline takes arrays of numbers, with the columns of rows."""
        features, table_map = self.table_map.features, self.table_map
        is_whole = features.names == table_map.columns and not table_map.named
        return is_whole and all(feature.is_number for feature in features)

    def table(self, rows: Floats, gaps: NDArray[np.bool_] | None = None) -> Any:
        """Write rows as the pipeline takes them, with missing values where there are gaps."""
        if gaps is None and self._takes_rows:
            return np.array(rows, order="C")
        table_map, n = self.table_map, rows.shape[0]
        columns: dict[str, NDArray[Any]] = {
            name: np.full(n, table_map.fillers.get(name, 0.0)) for name in table_map.columns
        }
        for j, feature in enumerate(table_map.features):
            as_objects = feature.name in table_map.objects
            column = rows[:, j] if feature.is_number else _named(rows[:, j], feature, as_objects)
            if gaps is not None and gaps[:, j].any():
                sign = table_map.fills.signs.get(feature.name, np.nan)
                column = column.astype(np.float64 if feature.is_number else object)
                column[gaps[:, j]] = sign
            columns[feature.name] = column
        if table_map.named:
            return new_frame(columns, table_map.objects)
        return _side_by_side([*columns.values()])


@final
@dataclass(frozen=True, eq=False)
class PredictWithGaps:
    """The pipeline's own `predict` of rows with missing values, as the user has them.

    A frame of pandas or an array is shown to it as it came; tables of other kinds are written
    as one of these, with what the imputer takes for a missing value.
    """

    rows: PipelineRows

    def disagrees(
        self,
        table: TableView | None,
        values: Floats,
        gaps: NDArray[np.bool_],
        expected: NDArray[Any],
    ) -> dict[int, str]:
        """Rows that `predict` does not label as expected with their gaps, and what it does.

        `table` has the rows as they were given; None for arrays of numbers.
        """
        shown = self._shown(table, values, gaps)
        try:
            said = self._labels(shown)
        except (ValueError, TypeError, KeyError) as error:
            if len(values) == 1:
                reason = " ".join(str(error).split())[:200]
                return {0: self._words(gaps[0], f"{type(error).__name__}: {reason}")}
            out = {}
            for i in range(len(values)):
                at = np.array([i])
                row = None if table is None else table.taking(at)
                wrong = self.disagrees(row, values[at], gaps[at], expected[at])
                if wrong:
                    out[i] = wrong[0]
            return out
        return {
            int(i): self._words(
                gaps[i], f"it says {plain(said[i])!r} and not {plain(expected[i])!r}"
            )
            for i in np.flatnonzero(said != expected)
        }

    def _words(self, gaps: NDArray[np.bool_], instead: str) -> str:
        """Say that `predict` does something else with the gaps of a row, and what would do."""
        names = [name for name, gap in zip(self._features.names, gaps, strict=True) if gap]
        signs = self.rows.table_map.fills.signs
        found = (repr(signs.get(name, np.nan)).replace("nan", "NaN") for name in names)
        looked = [f"{sign} in {name!r}" for sign, name in zip(found, names, strict=True)]
        return (
            f"the model's own predict does not take what is missing in "
            f"{', '.join(map(repr, names))} for what the pipeline puts there ({instead}). "
            f"Write missing values as the imputer looks for them ({', '.join(looked)}), or fill "
            f"them in."
        )

    @property
    def _features(self) -> Features:
        return self.rows.table_map.features

    def _shown(self, table: TableView | None, values: Floats, gaps: NDArray[np.bool_]) -> Any:
        table_map = self.rows.table_map
        written = np.where(gaps, np.nan, values)
        if table is None:
            return self.rows.table(values, gaps) if table_map.named else written
        shown = like(table, written, self._features, table_map.columns)
        kind = type(shown).__module__.partition(".")[0]
        if table_map.named and kind == "pandas" and set(table_map.columns) <= set(table.names):
            return _in_days(shown[list(table_map.columns)], written, self._features)
        has_dates = any(feature.kind is Kind.DATE for feature in self._features)
        is_array = isinstance(shown, np.ndarray) and shown.ndim == 2
        if not table_map.named and is_array and not has_dates:
            return shown
        return self.rows.table(values, gaps)

    def _labels(self, shown: Any) -> NDArray[Any]:
        with in_turn():
            return np.asarray(self.rows.pipeline.predict(shown)).reshape(-1)


def _in_days(frame: Any, rows: Floats, features: Features) -> Any:
    """Put days in the place of dates, as models take them."""
    dates = {f.name: rows[:, j] for j, f in enumerate(features) if f.kind is Kind.DATE}
    return frame.assign(**dates) if dates else frame


def _named(codes: Floats, feature: Feature, as_objects: bool) -> NDArray[Any]:
    """Write the levels that positions stand for."""
    levels = np.empty(len(feature.levels), dtype=object)
    levels[:] = feature.levels
    found = levels[codes.astype(np.intp)]
    is_text = any(isinstance(level, str) for level in feature.levels)
    return found if is_text or as_objects else np.array(found.tolist())


def _side_by_side(columns: list[NDArray[Any]]) -> NDArray[Any]:
    is_mixed = any(column.dtype == object for column in columns)
    return np.stack([column.astype(object) if is_mixed else column for column in columns], axis=1)

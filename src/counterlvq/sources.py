"""What the user hands in as a model: a model, an estimator, or a pipeline that ends in one.

Whatever it is, it becomes a prototype model in the columns of the user's own table, together
with the user's own `predict` and the way to read rows of that table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.adapters import as_prototype_model, predictor_of
from counterlvq.arrays import Floats, finite_matrix
from counterlvq.errors import InvalidInputError
from counterlvq.frames import rows_of
from counterlvq.model import PrototypeModel
from counterlvq.pipelines import TableMap, read_pipeline
from counterlvq.pipelines.steps import is_kind
from counterlvq.tables import new_frame

__all__ = ["Source", "source_of"]

Predictor = Callable[[Floats], NDArray[Any]]


@final
@dataclass(frozen=True, eq=False)
class Source:
    """A model in the user's columns, and how to read and to ask in them."""

    model: PrototypeModel
    says: Predictor | None  # the user's own `predict`, if it is another than the model's
    columns: tuple[str, ...]  # of the user's table, whether the model sees them or not

    def row(self, x: Any) -> Floats:
        """Read one input: an array in column order, a mapping, or a row of a frame."""
        features = self.model.features
        if self._is_plain and not _has_names(x):
            return features.vector("x", x)
        rows = rows_of(x, features, self.columns)
        if rows.shape[0] != 1:
            raise InvalidInputError(
                f"x has {rows.shape[0]} rows; expected one. Use explain_batch for many."
            )
        return np.asarray(rows[0])

    def rows(self, X: Any) -> Floats:
        """Read many inputs; columns of a frame are found by name, in any order."""
        if self._is_plain and not _has_names(X):
            return finite_matrix("X", X, self.model.n_features)
        return rows_of(X, self.model.features, self.columns)

    @property
    def _is_plain(self) -> bool:
        """Whether an array of the user has the columns of the model and no others."""
        return self.columns == self.model.features.names


def source_of(model: Any) -> Source:
    """Read a model, an estimator, or a pipeline of affine steps that ends in one."""
    if is_kind(model, "Pipeline"):
        table_map, last = read_pipeline(model)
        pulled_back = table_map.pulled_back(as_prototype_model(last))
        return Source(pulled_back, _pipeline_predictor(model, table_map), table_map.columns)
    read = as_prototype_model(model)
    return Source(read, predictor_of(model), read.features.names)


def _pipeline_predictor(pipeline: Any, table_map: TableMap) -> Predictor:
    """Ask the whole pipeline; columns that it never looks at are filled with zeros."""
    seen = {name: j for j, name in enumerate(table_map.features.names)}

    def says(rows: Floats) -> NDArray[Any]:
        unseen = np.zeros(rows.shape[0])
        columns = {
            name: rows[:, seen[name]] if name in seen else unseen for name in table_map.columns
        }
        table = new_frame(columns) if table_map.named else np.stack([*columns.values()], axis=1)
        return np.asarray(pipeline.predict(table)).reshape(-1)

    return says


def _has_names(table: Any) -> bool:
    """Whether columns can be found by name: a frame, or a row of one."""
    return not isinstance(table, Mapping) and (
        hasattr(table, "columns") or hasattr(table, "to_frame")
    )

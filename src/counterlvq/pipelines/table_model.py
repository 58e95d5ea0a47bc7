"""A whole pipeline as numbers: the map of its steps and the prototypes behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from numpy.typing import NDArray

from counterlvq.adapters import as_prototype_model
from counterlvq.errors import InvalidInputError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats
from counterlvq.pipelines.reading import read_pipeline
from counterlvq.pipelines.table_map import TableMap
from counterlvq.tables.encoding import rows_of
from counterlvq.tables.feature import Feature
from counterlvq.tables.features import Features
from counterlvq.tables.reference import Reference
from counterlvq.types import Kind

__all__ = ["TableModel"]


@final
@dataclass(frozen=True, init=False, eq=False, repr=False)
class TableModel:
    """A prototype model that takes rows of the user's table, without scikit-learn.

    It is what a fitted pipeline comes to, and what a model file of a pipeline holds.

    Parameters
    ----------
    table_map : TableMap
        From the table to the space of the model.
    model : PrototypeModel
        In that space.
    features : Features, optional
        What is known of columns beyond what the map says: units, ranges, whole numbers. Of all
        columns or some, in any order; levels have to be among those that the map knows.
    reference : Reference, optional
        A summary of the training table.

    Attributes
    ----------
    features : Features
        The columns that matter, in the order of the map.

    Examples
    --------
    >>> from sklearn.neighbors import NearestCentroid
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = [[10.0], [12.0], [28.0], [30.0]], ["no", "no", "yes", "yes"]
    >>> pipeline = make_pipeline(StandardScaler(), NearestCentroid()).fit(X, y)
    >>> model = TableModel.from_pipeline(pipeline)
    >>> model
    TableModel(1 columns, 1 of them seen, 2 prototypes, 2 classes, shared metric)
    >>> model.predict([[11.0], [29.0]]).tolist()
    ['no', 'yes']
    """

    table_map: TableMap
    model: PrototypeModel
    features: Features
    reference: Reference | None

    def __init__(
        self,
        table_map: TableMap,
        model: PrototypeModel,
        features: Features | None = None,
        reference: Reference | None = None,
    ) -> None:
        if model.n_features != len(table_map.offset):
            raise InvalidInputError(
                f"the model has {model.n_features} columns and the steps before it yield "
                f"{len(table_map.offset)}; expected as many."
            )
        object.__setattr__(self, "table_map", table_map)
        object.__setattr__(self, "model", model)
        object.__setattr__(self, "features", _described(table_map, features))
        object.__setattr__(self, "reference", reference)

    def with_reference(self, reference: Reference | None) -> TableModel:
        """Return the same model with a summary of its training table."""
        return TableModel(self.table_map, self.model, self.features, reference)

    @classmethod
    def from_pipeline(cls, pipeline: Any, features: Features | None = None) -> TableModel:
        """Read a fitted pipeline; every step is confirmed by its own `transform`.

        Parameters
        ----------
        pipeline : Pipeline of scikit-learn
            As for `counterlvq.pipelines.read_pipeline`.
        features : Features, optional
            As above.
        """
        table_map, last = read_pipeline(pipeline)
        return cls(table_map, as_prototype_model(last), features)

    def __repr__(self) -> str:
        columns = len(self.table_map.columns)
        kind = "local" if self.model.is_local else "shared"
        return (
            f"TableModel({columns} columns, {len(self.features)} of them seen, "
            f"{self.model.n_prototypes} prototypes, {len(self.classes)} classes, {kind} metric)"
        )

    @property
    def classes(self) -> NDArray[Any]:
        """The distinct labels."""
        return self.model.classes

    def predict(self, table: Any) -> NDArray[Any]:
        """Label of each row of the table.

        Parameters
        ----------
        table : DataFrame, mapping or array-like with all columns of the table
            Columns of a frame are found by name; a missing value counts as what the pipeline puts
            in its place.

        Returns
        -------
        ndarray of shape (n,)
        """
        there = self.table_map
        # Levels are read as the map has them; that a number is written as a date it does not know.
        dates = {feature.name: Kind.DATE for feature in self.features if feature.kind is Kind.DATE}
        known = there.features.refined(kinds=dates) if dates else there.features
        return self.predict_rows(rows_of(table, known, there.columns, there.fills))

    def predict_rows(self, rows: Floats) -> NDArray[Any]:
        """As `predict`, for rows of numbers and codes that `rows_of` has read."""
        return self.model.predict(self.table_map.image(rows))


def _described(table_map: TableMap, features: Features | None) -> Features:
    """Take what is said of the columns that matter, where it fits what the map does with them."""
    known = table_map.features
    if features is None:
        return known
    there = set(table_map.columns)
    for name in features.names:
        if name not in there:
            Features(table_map.columns).position(name)  # says which names there are
    described = {feature.name: feature for feature in features}
    said = [described.get(told.name, told) for told in known]
    for feature, told in zip(said, known, strict=True):
        if not _fits(feature, told):
            raise InvalidInputError(
                f"{feature!r} does not fit {told!r}, as the pipeline has it; expected levels that "
                f"the pipeline knows, or a number where it takes one."
            )
    return Features(said)


def _fits(feature: Feature, told: Feature) -> bool:
    if told.is_number:
        return feature.is_number or feature.levels == (False, True)
    return not feature.is_number and all(told.code(level) >= 0 for level in feature.levels)

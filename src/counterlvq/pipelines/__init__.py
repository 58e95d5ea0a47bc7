"""Fitted scikit-learn pipelines, read as a map from the user's table to the model's space.

Only fitted attributes are read, and nothing is believed that `transform` does not confirm. One
file per family of transformers; adding one is a function that says what it does to a `Flow`,
and a line in the table of its file.
"""

from counterlvq.pipelines.reading import read_pipeline, read_transformer
from counterlvq.pipelines.step_rounding import Slip, slip_of, slip_of_map
from counterlvq.pipelines.table_map import LevelsPart, NumericPart, TableMap
from counterlvq.pipelines.table_model import TableModel

__all__ = [
    "LevelsPart",
    "NumericPart",
    "Slip",
    "TableMap",
    "TableModel",
    "read_pipeline",
    "read_transformer",
    "slip_of",
    "slip_of_map",
]

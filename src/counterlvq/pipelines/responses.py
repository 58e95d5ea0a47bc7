"""The number behind a decision: what a threshold is put on, or a probability."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from counterlvq.adapters import Thresholded
from counterlvq.adapters.turns import in_turn
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats, key_of
from counterlvq.types import Scores

__all__ = ["Responses"]


class _Value(NamedTuple):
    name: str
    value: float
    threshold: float | None


@final
@dataclass(frozen=True, eq=False)
class Responses:
    """Asks the user's own model where it can, and computes from scores where there is none."""

    model: PrototypeModel
    images: Callable[[Floats], Floats]  # of rows of the table, in the space of the model
    fitted: Any = None  # the user's own
    table: Callable[[Floats], Any] | None = None  # rows as it wants to see them

    def __call__(self, row: Floats, label: Any) -> _Value | None:
        """Name and value at a row, and the threshold where there is one; None if none is known.

        A probability is that of `label`.
        """
        asked = self._asked(row, label)
        return self._computed(row, label) if asked is None else asked

    def _asked(self, row: Floats, label: Any) -> _Value | None:
        fitted = self.fitted
        if fitted is None or self.table is None:
            return None
        if isinstance(fitted, Thresholded):
            with in_turn():
                found = float(fitted.values(self.table(row[None, :]))[0])
            return _Value(fitted.response, found, fitted.threshold)
        if self.model.meaning.scores is not Scores.SHIFTED or not hasattr(fitted, "predict_proba"):
            return None
        if type(fitted).__name__ == "Pipeline" and not hasattr(fitted, "classes_"):
            labels = list(range(self.model.n_prototypes))  # of a mixture
        else:
            labels = [*np.asarray(getattr(fitted, "classes_", self.model.labels)).tolist()]
        keys = [key_of(known) for known in labels]
        if key_of(label) not in keys:
            return None
        with in_turn():
            chances = np.asarray(fitted.predict_proba(self.table(row[None, :])))[0]
        if len(chances) != len(keys):
            return None
        return _Value("probability", float(chances[keys.index(key_of(label))]), None)

    def _computed(self, row: Floats, label: Any) -> _Value | None:
        response = self.model.meaning.response
        if response is None:
            return None
        scores = self.model.distances(self.images(row[None, :]))[0]
        own = self.model.class_index == response.label
        value = response.at(float(scores[~own].min() - scores[own].min()))
        other = key_of(self.model.classes[response.label]) != key_of(label)
        if response.is_probability and response.threshold == 0.5 and other:
            return _Value("probability", 1.0 - value, None)
        return _Value(response.name, value, response.threshold)

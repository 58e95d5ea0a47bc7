"""The number behind a decision: what a threshold is put on, or a probability."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from counterlvq.adapters import Thresholded
from counterlvq.adapters.exclusive_calls import in_turn
from counterlvq.adapters.thresholds import threshold_on
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats, key_of
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.tolerances import CHANCE_TIE
from counterlvq.pipelines.steps import is_kind
from counterlvq.types import Scores

__all__ = ["Favoured", "Responses"]


class _Value(NamedTuple):
    name: str
    value: float
    threshold: float | None


class Favoured(NamedTuple):
    """The label that `predict_proba` favours, its probability, and that of what `predict` says."""

    label: Any
    probability: float
    own: float


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
        if self.fitted is None or self.table is None:
            return None
        if self._cut is not None:
            with in_turn():
                found = float(self._cut.values(self.table(row[None, :]))[0])
            return _Value(self._cut.name, found, self._cut.threshold)
        if self.model.meaning.scores is not Scores.SHIFTED:
            return None
        chances = self._chances(row)
        if key_of(label) not in chances:
            return None
        return _Value("probability", chances[key_of(label)][1], None)

    @cached_property
    def _cut(self) -> Thresholded | None:
        return threshold_on(self.fitted)

    @cached_property
    def _is_cut(self) -> bool:
        """Whether a threshold decides, be it the last step of a pipeline."""
        return threshold_on(_last_step(self.fitted)) is not None

    def favoured(self, row: Floats, label: Any) -> Favoured | None:
        """Say which label `predict_proba` favours at a row that `predict` gives another one.

        None where both agree, and where the model has one of them alone.
        """
        chances = self._chances(row)
        if key_of(label) not in chances:
            return None
        own = chances[key_of(label)][1]
        best, most = max(chances.values(), key=lambda pair: pair[1])
        return Favoured(best, most, own) if most > own + CHANCE_TIE else None

    def _chances(self, row: Floats) -> dict[Hashable, tuple[Any, float]]:
        """Labels and what `predict_proba` gives each of them, by key; empty without it.

        Where a threshold decides, `predict_proba` favours something else by intent.
        """
        fitted = self.fitted
        if self._is_cut or self.table is None or not hasattr(fitted, "predict_proba"):
            return {}
        if type(fitted).__name__ == "Pipeline" and not hasattr(fitted, "classes_"):
            labels = list(range(self.model.n_prototypes))  # of a mixture
        else:
            labels = [*np.asarray(getattr(fitted, "classes_", self.model.labels)).tolist()]
        with in_turn():
            chances = np.asarray(fitted.predict_proba(self.table(row[None, :])))[0]
        if len(chances) != len(labels):
            return {}
        pairs = zip(labels, map(float, chances), strict=True)
        return {key_of(known): (known, chance) for known, chance in pairs}

    def _computed(self, row: Floats, label: Any) -> _Value | None:
        response, odds = self.model.meaning.response, self.model.meaning.odds
        if response is None and odds is None:
            return None
        scores = self.model.distances(self.images(row[None, :]))[0]
        if response is None:
            assert odds is not None
            return _Value("probability", self._share(-odds * scores, label), None)
        own = self.model.class_index == response.label
        value = response.at(float(scores[~own].min() - scores[own].min()))
        other = key_of(self.model.classes[response.label]) != key_of(label)
        if response.is_probability and response.threshold == 0.5:
            return _Value("probability", 1.0 - value if other else value, None)
        return _Value(response.name, value, response.threshold)

    def _share(self, logs: Floats, label: Any) -> float:
        """Softmax of numbers, one per prototype, summed up over those of a label."""
        shares = np.exp(logs - logs.max())
        own = [key_of(known) == key_of(label) for known in self.model.labels.tolist()]
        return float(shares[own].sum() / shares.sum())


def _last_step(fitted: Any) -> Any:
    """Return the model at the end of a pipeline, or anything else as it is."""
    while is_kind(fitted, "Pipeline"):
        fitted = fitted.steps[-1][1]
    return fitted

"""Answers with room for noise: for each prototype an ordinary question about shifted scores.

Noise changes no level, and under a shared metric what it takes of a lead does not depend on the
levels. So the scores of rivals are shifted by constants, whatever the levels of an answer are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats, key_of, plain
from counterlvq.numeric.lazy import cached_property
from counterlvq.pipelines.exact_scores import ExactScores
from counterlvq.problem.confidence import Noise, shifted
from counterlvq.questions.implied_rivals import wished_firsts
from counterlvq.questions.protocol import Asks
from counterlvq.questions.unions import Part

__all__ = ["has_room", "noise_parts", "noise_prototypes"]


def noise_prototypes(asked: Asks, labels: Sequence[Any]) -> list[int]:
    """Prototypes of some labels that have a part each; a copy of another one adds nothing."""
    return list(wished_firsts(asked.model, labels))


def noise_parts(asked: Asks, noise: Noise, labels: Sequence[Any], *, is_strict: bool) -> list[Part]:
    """Ask about each prototype against its rivals, nearer by what noise takes away.

    Leads are rounded down, so that bounds hold; or up (`is_strict`), so that answers have them.
    """
    model, source = asked.model, asked._source
    weights = noise.weights_over(source.coordinates)
    out = []
    for i in noise_prototypes(asked, labels):
        label = plain(model.labels[i])
        rivals = np.flatnonzero(model.class_index != model.class_index[i])
        least, most = noise.leads(model, i, rivals, weights)
        part = _Shifted(i, rivals, most if is_strict else least)
        if source.coordinates.has_levels:
            own = source.taking(part, _HasRoom(asked, noise, int(model.class_index[i])))
        else:
            own = replace(
                source, model=part(model), says=None, rounding=None, responds=None, with_gaps=None,
                behind=None,
            )  # fmt: skip
        out.append(Part(asked.asking_for(confidence=None, model=own.model, _source=own), label))
    return out


@final
@dataclass(frozen=True, eq=False)
class _Shifted:
    """A prototype and its rivals, of a model in whatever coordinates."""

    prototype: int
    rivals: NDArray[np.intp]
    leads: Floats

    def __call__(self, model: PrototypeModel) -> PrototypeModel:
        return shifted(model, self.prototype, self.rivals, self.leads)


@final
@dataclass(frozen=True, eq=False)
class _HasRoom:
    """Says a label of rows that have it with room for noise, and another one of all others."""

    asked: Asks
    noise: Noise
    label: int

    def __call__(self, rows: Floats) -> NDArray[Any]:
        source, classes = self.asked._source, self.asked.model.classes
        if source.says is None:
            model = source.rows_model
            said = model.labels[model.nearest_of_checked(rows)]
        else:
            said = np.asarray(source.says(rows))
        wished = key_of(plain(classes[self.label]))
        other = 1 if self.label == 0 and len(classes) > 1 else 0
        at = [
            self.label if key_of(plain(label)) == wished and self.keeps(row) else other
            for label, row in zip(said, rows, strict=True)
        ]
        return np.asarray(classes[at])

    def keeps(self, row: Floats) -> bool:
        """Whether some prototype of the label keeps a row under all of the noise."""
        same = np.flatnonzero(self.asked.model.class_index == self.label).tolist()
        return any(self._withstands(row, i) for i in same)

    def _withstands(self, row: Floats, i: int) -> bool:
        """Whether one prototype does, decided in rational numbers where rounding could decide."""
        view = self.asked.prepared_for(row)
        weights = self.noise.weights_over(view.source.coordinates)
        unsure = self.noise.undecided(view.model, i, view.inner(row), weights)
        if unsure is None:
            return False
        scores, own = self._scores, weights[view.source.coordinates.numbers]
        return all(
            self.noise.is_withstood(scores.lead(row, i, k), scores.slopes(i, k), own)
            for k in unsure.tolist()
        )

    @cached_property
    def _scores(self) -> ExactScores:
        behind = self.asked._source.behind
        assert behind is not None  # levels are numbers behind a map
        return ExactScores(behind.table_map, behind.model)


def has_room(asked: Asks, noise: Noise, label: Any, row: Floats) -> bool:
    """Whether some prototype of a label keeps a row under all of the noise."""
    view = asked.prepared_for(row)
    model = view.model
    same = np.flatnonzero(model.labels == label).tolist()
    if not view.source.coordinates.has_levels:
        y = view.inner(row)
        return any(noise.leaves(model, i, y) for i in same)
    return _HasRoom(asked, noise, int(model.class_index[same[0]])).keeps(row)

"""What makes another question: every option of an explainer."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestCentroid

import counterlvq as clvq
from counterlvq.streaming.answers import BatchQuestion
from counterlvq.streaming.identity import model_digest, question_digest

ROWS = np.random.default_rng(7).normal(size=(60, 4))
TWO = np.array(["a", "c"])[np.arange(60) % 2]
SCHEMA = pa.schema([(f"x{j}", pa.float64()) for j in range(4)])
TWO_LABELS = LogisticRegression().fit(ROWS, TWO)
CENTROIDS = NearestCentroid().fit(ROWS, TWO)
# For each option of an explainer, values of which each makes another question.
OTHERS: dict[str, list[Any]] = {
    "model": [NearestCentroid().fit(ROWS + 1.0, TWO), TWO_LABELS],
    "cost": [clvq.Manhattan([1.0, 2.0, 3.0, 4.0]), clvq.Euclidean(), clvq.Chebyshev()],
    "constraints": [
        ["x0 <= 9"],
        [clvq.Freeze("x0")],
        [clvq.Plausible.fit(ROWS, TWO, components=1)],
        [clvq.Plausible.fit(ROWS, TWO, components=1, share=0.5)],
        [clvq.Plausible.fit(ROWS + 1.0, TWO, components=1)],
    ],
    "margin": [0.1, 0.2],
    "method": ["global", "ccp"],
    "time_limit": [1.0, 2.0],
    "gap": [0.1, 0.2],
    "features": [
        clvq.Features([clvq.Feature(f"x{j}", "whole") for j in range(4)]),
        clvq.Features([clvq.Feature(f"x{j}", upper=9) for j in range(4)]),
    ],
    "threshold": [0.4, 0.6],
    "confidence": [
        clvq.Noise(0.1),
        clvq.Noise(0.2),
        clvq.Noise(0.1, "linf"),
        clvq.Noise(0.1, weights=[1.0, 2.0, 3.0, 4.0]),
        clvq.Drift(0.1),
        clvq.Drift(0.2),
        clvq.RelativeSimilarity(0.1),
        clvq.RelativeSimilarity(0.2),
    ],
}


def test_no_option_of_an_explainer_is_forgotten() -> None:
    assert list(inspect.signature(clvq.Explainer).parameters) == list(OTHERS)


@pytest.mark.parametrize("option", OTHERS)
def test_every_option_is_part_of_what_is_asked(option: str) -> None:
    def known(**options: Any) -> tuple[str, str]:
        model = TWO_LABELS if option == "threshold" else CENTROIDS
        explainer = clvq.Explainer(**{"model": model, **options})
        question = BatchQuestion.of(explainer, SCHEMA, "a")
        return model_digest(explainer), question_digest(question)

    found = [known(), *(known(**{option: value}) for value in OTHERS[option])]
    assert len(set(found)) == len(found)
    assert found[-1] == known(**{option: OTHERS[option][-1]})

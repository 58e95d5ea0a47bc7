"""Batches of questions that are made of several: row by row what `explain` says."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import counterlvq as clvq

MODEL = clvq.PrototypeModel([[0, 0], [4, 1], [1, 5]], ["a", "b", "c"])
ROWS = np.array([[1.0, 1.0], [3.0, 0.5], [0.5, 3.5], [2.2, 2.0]])


def likely() -> clvq.Plausible:
    rng = np.random.default_rng(0)
    heaps = [rng.normal(size=(20, 2)) * 0.5 + center for center in MODEL.prototypes]
    return clvq.Plausible.fit(np.concatenate(heaps), np.repeat(MODEL.labels, 20))


@cache
def explainer(kind: str) -> clvq.Explainer:
    return {
        "AtMost": lambda: clvq.Explainer(MODEL, clvq.Euclidean(), [clvq.AtMost(1)]),
        "Noise": lambda: clvq.Explainer(MODEL, confidence=clvq.Noise(0.3)),
        "RelativeSimilarity": lambda: clvq.Explainer(
            MODEL, confidence=clvq.RelativeSimilarity(0.4)
        ),
        "Plausible": lambda: clvq.Explainer(MODEL, constraints=[likely()]),
    }[kind]()


@pytest.mark.parametrize("kind", ["AtMost", "Noise", "RelativeSimilarity", "Plausible"])
@pytest.mark.parametrize("target", ["b", None])
def test_a_batch_says_what_each_row_is_told(kind: str, target: object) -> None:
    asked = explainer(kind)
    batch = asked.explain_batch(ROWS, target=target)
    for i, x in enumerate(ROWS):
        cf = asked.explain(x, target=target)
        assert batch.status[i] == cf.status == "optimal"
        assert (batch.cost[i], batch.lower_bound[i]) == (cf.cost, cf.lower_bound)
        assert batch.X[i].tolist() == cf.x.tolist()
        assert batch[i].confidence == cf.confidence
        assert asked.verify(batch[i]) == cf.lower_bound


@pytest.mark.machine
def test_processes_take_rows_of_local_metrics_with_a_confidence() -> None:
    omegas = [np.eye(2), [[1.0, 0.3], [0.0, 0.8]], [[0.7, 0.0], [0.2, 1.1]]]
    model = clvq.PrototypeModel(MODEL.prototypes, MODEL.labels, omegas)
    explainer = clvq.Explainer(model, confidence=clvq.RelativeSimilarity(0.3))
    one = explainer.explain_batch(ROWS[:2], target="c")
    two = explainer.explain_batch(ROWS[:2], target="c", n_jobs=2)
    assert (one.status == "optimal").all()
    assert one.X.tolist() == two.X.tolist()
    assert one.lower_bound.tolist() == two.lower_bound.tolist()

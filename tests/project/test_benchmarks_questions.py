"""The benchmark of questions: its baseline and its counts are right."""

from __future__ import annotations

import numpy as np
import pytest

import counterlvq as clvq
from benchmarks.baselines.counted_milp import cheapest_of_few
from benchmarks.questions import really_different, similarity

pytestmark = pytest.mark.docs


def test_plain_milps_find_the_same_optima() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    omega = rng.normal(size=(4, 4))
    model = clvq.PrototypeModel(X[:4], [0, 0, 1, 1], omega)
    low, high, ones = X.min(axis=0), X.max(axis=0), np.ones(4)
    for most in (1, 2):
        rules = [*clvq.within_data(X), clvq.AtMost(most)]
        explainer = clvq.Explainer(model, constraints=rules)
        for x in X[5:10]:
            cf = explainer.explain(x, target=1)
            assert cf.cost == pytest.approx(
                cheapest_of_few(model, x, 1, ones, low, high, most), rel=1e-6, abs=1e-6
            )


def test_ways_differ_if_something_stays_that_changed_before() -> None:
    x = np.zeros(3)
    assert really_different(x, [[1, 0, 0], [1, 1, 0], [0, 2, 0], [0, 0, 0]]) == 2
    assert really_different(x, [[1, 1, 0], [1, 0, 0]]) == 2


def test_similarity_by_hand() -> None:
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"])
    assert similarity(model, [[3.0], [2.0]]).tolist() == [0.8, 0.0]

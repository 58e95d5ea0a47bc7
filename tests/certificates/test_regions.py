"""What holds for a region holds at each of its rows, and a row gets the same in any company."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import counterlvq as clvq
from counterlvq.certificates.leads import blur_within
from counterlvq.certificates.regions import Regions
from counterlvq.lvq import GMLVQ
from counterlvq.numeric.tolerances import NEGLIGIBLE_LEAD
from counterlvq.programs.proof_data import limits_at

X, Y = load_iris(return_X_y=True)
SIZES = np.array([1.0, 100.0, 1e-3, 1e4])
COSTS = {"L1": clvq.Manhattan([1.0, 2.0, 0.5, 1.0]), "L2": clvq.Euclidean()}


def explainer_with(cost: str) -> clvq.Explainer:
    steps = make_pipeline(StandardScaler(), GMLVQ(2, random_state=0, max_iter=30))
    return clvq.Explainer(steps.fit(X * SIZES, Y), COSTS[cost])


def regions_of(explainer: clvq.Explainer) -> Regions:
    found = explainer.prepared_for().rules.regions
    assert found is not None
    return found


def drawn_rows(count: int) -> Any:
    """Rows among the data, at its edge, and up to a million times as far out."""
    rng = np.random.default_rng(7)
    rows = X[rng.integers(len(X), size=count)] * SIZES
    return rows * rng.choice([1.0, -1.0, 3.0, 1e3, 1e6], size=(count, 1))


@pytest.mark.parametrize("cost", COSTS)
def test_a_region_is_no_less_careful_than_its_rows(cost: str) -> None:
    explainer = explainer_with(cost)
    rules: Any = explainer.prepared_for().rules
    regions, rows = regions_of(explainer), drawn_rows(60)
    certain, blur = regions.at(rows)
    assert (certain >= rules.doubt.least_margin(rows)).all()
    reach = np.random.default_rng(8).random(rows.shape) * SIZES
    for share in (0.0, 1e-6, 1.0, 1e3):
        overlooked = rules.doubt.overlooked(rows, share * reach)
        own = blur_within(rules.model, rows, share * reach, np.zeros(len(rows)), overlooked)
        within = regions.at(rows, share * reach)[1]
        assert (within >= own).all()
        assert (within >= blur).all()
    assert np.isinf(regions.at(rows, np.full(rows.shape, np.inf))[1]).all()
    assert np.isinf(regions.at(np.full((1, 4), 1e300))[0]).all()


@pytest.mark.parametrize("cost", COSTS)
def test_a_row_gets_the_same_alone_and_among_others(cost: str) -> None:
    regions, rows = regions_of(explainer_with(cost)), drawn_rows(40)
    reach = np.random.default_rng(9).random(rows.shape)
    for limits in (None, reach):
        among = np.stack(regions.at(rows, limits), axis=1)
        for i, row in enumerate(rows):
            alone = regions.at(row[None], None if limits is None else limits[i : i + 1])
            assert [float(part[0]) for part in alone] == among[i].tolist()


@pytest.mark.parametrize("cost", COSTS)
def test_changes_of_a_covered_cost_stay_in_the_region(cost: str) -> None:
    explainer = explainer_with(cost)
    rules, regions = explainer.prepared_for().rules, regions_of(explainer)
    answers: Any = explainer.prepared_for().answers
    stated = answers.stated
    covered = []
    for row in drawn_rows(20):
        region = regions.of_row(row[None])
        most = regions.covered(region, stated)
        covered.append(most)
        for share in (0.01, 1.0):
            reach = limits_at(stated, np.array([share * most]))
            assert regions.of_row(row[None], reach) == region
            assert rules.blur_within(row[None], reach)[0] >= rules.blur(row[None])[0]
    assert min(covered) > 0.0


def bits(found: Any, i: int) -> tuple[Any, ...]:
    return found.values[i].tobytes(), *(float(part[i]) for part in (found.cost, found.lower_bound))


@pytest.mark.parametrize("cost", COSTS)
def test_single_rows_and_batches_agree_where_leads_are_small_too(cost: str) -> None:
    explainer = explainer_with(cost)
    rules: Any = explainer.prepared_for().rules
    rows = X[::15] * SIZES
    answers = np.stack([cf.values for cf in explainer.explain_batch(rows, target=None)])
    # Answers lead by next to nothing, so that regions say too much about them.
    leads = rules.doubt.at(answers).leads_of_nearest
    assert (regions_of(explainer).at(answers)[0] > NEGLIGIBLE_LEAD * leads).all()
    asked = np.vstack([rows, answers, 1e5 * rows])
    batch = explainer.explain_batch(asked, target=2)
    for i, row in enumerate(asked):
        cf = explainer.explain(row, target=2)
        assert (cf.values.tobytes(), cf.cost, cf.lower_bound) == bits(batch, i)
        assert cf.prototype == batch.prototype[i]
        assert explainer.verify(cf) == pytest.approx(cf.lower_bound, rel=1e-9)
    assert set(batch.prediction) == {2}


def test_models_that_round_coarsely_are_looked_at_row_by_row() -> None:
    model = clvq.PrototypeModel(X[::25], Y[::25])
    assert clvq.Explainer(model).prepared_for().rules.regions is None

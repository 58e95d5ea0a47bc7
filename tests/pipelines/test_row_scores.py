"""Scores of a single row are those of rows in general, and leads among them too, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

import counterlvq as clvq
from counterlvq.lvq import GLVQ, GMLVQ
from counterlvq.numeric.row_leads import RowLeads
from counterlvq.pipelines.doubt import Doubt

X, Y = load_iris(return_X_y=True)
SIZES = np.array([1.0, 100.0, 1e-3, 1e4])


def doubt_of(*steps: Any) -> Doubt:
    pipeline = make_pipeline(*steps).fit(X * SIZES, Y)
    found = clvq.Explainer(pipeline).prepared_for().rules.doubt
    assert isinstance(found, Doubt)
    return found


def drawn_rows(count: int) -> Any:
    """Rows among the data, far out, and so far out that scores overflow."""
    rng = np.random.default_rng(3)
    rows = X[rng.integers(len(X), size=count)] * SIZES * rng.normal(1.0, 0.1, (count, 4))
    return rows * rng.choice([1.0, -3.0, 1e6, 1e300], size=(count, 1), p=[0.7, 0.1, 0.1, 0.1])


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler()], ids=str)
def test_scores_of_a_row_are_those_of_rows(scaler: Any) -> None:
    doubt = doubt_of(scaler, GMLVQ(2, random_state=0))
    quick = doubt.row_scores
    assert quick is not None
    for row in drawn_rows(300):
        with np.errstate(all="ignore"):
            expected = doubt.at(row[None, :]).scores[0]
            assert np.array(quick.of(row[None, :])).tobytes() == expected.tobytes()


def test_rows_that_scaling_alone_does_not_take_there_go_the_long_way() -> None:
    plain = GLVQ(1, random_state=0)
    full = GMLVQ(1, random_state=0)
    logs = FunctionTransformer(np.log1p, feature_names_out="one-to-one")
    assert doubt_of(StandardScaler(), plain).row_scores is None
    assert doubt_of(logs, full).row_scores is None


def test_leads_of_a_row_are_those_of_rows() -> None:
    rng = np.random.default_rng(5)
    for _ in range(500):
        count = int(rng.integers(1, 7))
        scores = rng.integers(0, 5, count).astype(float)  # with ties
        classes = rng.integers(0, 3, count)
        found = RowLeads.of(scores.tolist(), classes.tolist())
        assert found.nearest == scores.argmin()
        others = np.delete(scores, found.nearest)
        assert found.over_any == others.min(initial=np.inf) - scores.min()
        rivals = scores[classes != classes[found.nearest]]
        assert found.over_labels == rivals.min(initial=np.inf) - scores.min()
        mask = rng.random(count) < 0.5
        if mask.any():
            least = scores[~mask].min(initial=np.inf) - scores[mask].min()
            assert found.over_rivals(mask) == least

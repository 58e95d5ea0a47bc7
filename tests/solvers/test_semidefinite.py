"""The relaxation of a cell: what a solver that runs away may not do to its caller."""

from __future__ import annotations

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq.solvers import semidefinite
from counterlvq.solvers.clarabel_guard import Raw
from counterlvq.solvers.solution import Outcome


@pytest.mark.covering
@pytest.mark.parametrize("outcome", Outcome)
@pytest.mark.parametrize("size", [1e306, np.inf, np.nan])
def test_numbers_that_ran_away_prove_nothing_and_raise_no_warning(
    outcome: Outcome, size: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clarabel can end with multipliers of 1e306; warnings are errors here."""

    def runaway(
        P: object, q: np.ndarray, left: object, right: np.ndarray, *_: object, **__: object
    ):
        return Raw(outcome, np.full(q.size, size), np.full(right.size, size))

    monkeypatch.setattr(semidefinite, "run_guarded", runaway)
    rng = np.random.default_rng(0)
    model = clvq.PrototypeModel(
        rng.standard_normal((4, 3)), [0, 0, 1, 1], list(rng.standard_normal((4, 3, 3)))
    )
    x = rng.standard_normal(3)
    cf = clvq.Explainer(model).explain(x, target=1 - model.predict(x[None, :])[0])
    assert cf.status == "feasible"
    assert 0.0 <= cf.lower_bound < cf.cost

"""Cells without products of two features: naive Bayes on wide tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler

import counterlvq as clvq
from counterlvq.search import branch_and_bound
from tests.support.score_models import Array, least_squared, table

COSTS = {"absolute": clvq.Manhattan(), "squared": clvq.Euclidean()}


def digits() -> tuple[Any, Array]:
    X, y = table("digits")
    return GaussianNB(var_smoothing=1e-3).fit(X, y), X


@pytest.mark.parametrize("cost", COSTS)
def test_digits_are_proved(cost: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """64 features have 2,080 pairs: nothing may be stated with one number for each."""
    monkeypatch.setattr(branch_and_bound, "relax", None)
    fitted, X = digits()
    explainer = clvq.Explainer(fitted, cost=COSTS[cost])
    for i, target in ((0, "class 1"), (0, "class 5"), (7, "class 1")):
        cf = explainer.explain(X[i], target=target)
        assert cf.status == "optimal"
        assert fitted.predict(np.asarray(cf.x)[None, :])[0] == target
        assert explainer.verify(cf) == cf.lower_bound


def gaussians(fitted: Any) -> list[tuple[Array, Array, float]]:
    logs = np.log(fitted.class_prior_) - 0.5 * np.log(fitted.var_).sum(axis=1)
    parts = zip(fitted.theta_, fitted.var_, logs, strict=True)
    return [(mean, np.diag(1.0 / spread), float(log)) for mean, spread, log in parts]


def test_two_classes_cost_what_duality_says() -> None:
    X, y = table("digits")
    kept = np.isin(y, ["class 3", "class 8"])
    fitted = GaussianNB(var_smoothing=1e-2).fit(X[kept], y[kept])
    explainer = clvq.Explainer(fitted, cost=clvq.Euclidean(), gap=1e-6)
    for x in X[kept][:3]:
        cf = explainer.explain(x)
        best = least_squared(gaussians(fitted), x, int(cf.prediction == fitted.classes_[1]))
        assert cf.status == "optimal"
        assert cf.cost == pytest.approx(best, rel=1e-5)
        assert cf.lower_bound <= best * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("cost", COSTS)
def test_both_relaxations_agree(cost: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = table("cancer")
    Z = StandardScaler().fit_transform(X)[:, :24]
    explainer = clvq.Explainer(GaussianNB().fit(Z, y), cost=COSTS[cost])
    rows = Z[[0, 100, 300]]
    found = [explainer.explain(x) for x in rows]
    monkeypatch.setattr(branch_and_bound, "is_separable", lambda problem: False)
    for cf, other in zip(found, (explainer.explain(x) for x in rows), strict=True):
        assert (cf.status, other.status) == ("optimal", "optimal")
        assert cf.lower_bound <= other.cost * (1 + 1e-9)
        assert other.lower_bound <= cf.cost * (1 + 1e-9)

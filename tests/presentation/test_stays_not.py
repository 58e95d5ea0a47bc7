"""Rows that have the label already and cannot keep it within what is asked."""

from __future__ import annotations

import pytest

import counterlvq as clvq

MODEL = clvq.PrototypeModel([[1000], [4000]], ["bad", "good"], feature_names=["income"])


def test_a_row_that_is_right_already_is_not_told_that_it_never_can_be() -> None:
    cf = clvq.Explainer(MODEL, constraints=["income <= 2000"]).explain([4000], target="good")
    assert cf.has_target
    assert cf.status is clvq.Status.INFEASIBLE
    told = cf.text(subject="Your application", outcome={"good": "accepted"})
    assert "would not have been" not in told
    assert told.startswith('Your application breaks "income <= 2000" as it is; it would not ')
    assert "if income were 2,000 lower (2,000 instead of 4,000). " in told
    assert "It is accepted already, but cannot meet what is asked and stay so: " in told
    assert "There is no counterfactual" not in cf.text()


@pytest.mark.parametrize(("own", "before"), [(11.2, "11.2"), (11.23, "11.23")])
def test_declared_decimals_are_shown_beside_a_value_off_its_grid(own: float, before: str) -> None:
    features = clvq.Features([clvq.Feature("hb", decimals=1)])
    model = clvq.PrototypeModel([[10.0], [22.0]], ["ill", "well"], feature_names=["hb"])
    found = clvq.Explainer(model, constraints=["hb >= 17"], features=features).explain([own])
    assert f"17.0 instead of {before}" in found.text()


def test_a_response_that_the_model_does_not_give_is_refused() -> None:
    cf = clvq.Explainer(MODEL).explain([1000])
    with pytest.raises(clvq.InvalidInputError, match="neither a score nor a probability"):
        cf.text(response=True)

"""Conditions on numbers in boxes: a bound rests on none that an answer need not keep."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import counterlvq as clvq
from counterlvq.certificates.box_tests import BoxTest
from counterlvq.programs.grids import Grid
from counterlvq.programs.intervals import Interval, ValueRule, complement, near, points
from counterlvq.programs.nonconvex import Box
from tests.support.quick import examples

VALUES = st.sampled_from([0.0, 0.1, 0.3, -7.0, 7.0, 1e-9, 12345.678, 1e12]) | st.floats(-1e6, 1e6)
INTERVALS = {
    ">": lambda end: Interval(end, np.inf, is_above=True),
    ">=": lambda end: Interval(end, np.inf),
    "<": lambda end: Interval(-np.inf, end, is_below=True),
    "<=": lambda end: Interval(-np.inf, end),
}


@settings(max_examples=examples(300), deadline=None)
@given(
    end=VALUES,
    x=VALUES,
    sense=st.sampled_from(sorted(INTERVALS)),
    share=st.floats(-2.0, 2.0),
    bars_end=st.booleans(),
)
def test_boxes_assume_only_what_answers_keep(
    end: float, x: float, sense: str, share: float, bars_end: bool
) -> None:
    """Whatever lies next to a threshold: in one of the two parts, nothing more is assumed of it."""
    here, rule = np.array([x]), ValueRule(0, (INTERVALS[sense](end),))
    barred = [ValueRule(0, complement(points([end])))] if bars_end else []
    ticks = Grid.none(1).ruled([], barred).seen_from(here)
    test = BoxTest.of(rule, ticks, here)
    y = np.array([end + share * near(end, x)])
    if not ticks.grid.holds(y, here):
        return
    (cut,) = test.cuts
    lower, upper = Box.whole(1).split(0, cut.at)
    part = lower if y[0] - x <= cut.at else upper
    assert rule.applies(y, here) or not test.covers(part)
    # One of the two parts lies on the side of the test, or nothing would follow from it.
    assert test.covers(lower) != test.covers(upper)


@pytest.mark.parametrize("sense", sorted(INTERVALS))
@pytest.mark.parametrize("share", [-0.9, -0.6, -0.4, 0.4, 0.6, 0.9])
def test_next_to_a_threshold_both_sides_are_asked_for(sense: str, share: float) -> None:
    """Between a quarter and the whole of what is near, a value has to do as either side asks."""
    rule = ValueRule(0, (INTERVALS[sense](7.0),))
    y, x = np.array([7.0 + share * near(7.0, 3.0)]), np.array([3.0])
    is_inside = (share > 0) == (sense[0] == ">")
    assert rule.applies(y, x) == (is_inside or sense.endswith("="))
    assert rule.holds(y, x) == sense.endswith("=")


@pytest.mark.parametrize("local", [False, True], ids=["shared", "local"])
def test_two_conditions_that_share_a_threshold_are_proved(local: bool) -> None:
    """With u up to 7 one pays for v, beyond it for w: the cheaper of the two is proved."""
    omegas = [np.eye(3), 1.1 * np.eye(3)] if local else None
    model = clvq.PrototypeModel(
        [[0.0, 0.0, 0.0], [12.0, 0.0, 0.0]], ["no", "yes"], omegas, ["u", "v", "w"]
    )
    rules = ["if u > 7 then w >= 1", "if u <= 7 then v >= 3"]
    for others in ([], ["u != 7"]):
        cf = clvq.Explainer(model, constraints=rules + others).explain([0.0, 0.0, 0.0], "yes")
        assert cf.status == "optimal"
        assert cf.cost == pytest.approx(8.0, rel=1e-4)

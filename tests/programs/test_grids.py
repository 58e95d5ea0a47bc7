"""Values on a grid, and changes that end on it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterlvq.programs.grids import Grid

bounded = settings(max_examples=200)

WHOLE = Grid(np.array([1.0]), np.array([1.0]))
FIVES = Grid(np.array([5.0]), np.array([1.0]))
CENTS = Grid(np.array([1.0]), np.array([100.0]))


def test_no_grid_is_trivial_and_holds_everything() -> None:
    grid = Grid.none(2)
    assert grid.is_trivial
    assert grid.holds(np.array([0.123, -7.5]))


@pytest.mark.parametrize(
    ("grid", "value", "holds"),
    [
        (WHOLE, 3.0, True),
        (WHOLE, 2.5, False),
        (WHOLE, 2.0 + 1e-9, False),
        (WHOLE, -7.0, True),
        (FIVES, 15.0, True),
        (FIVES, 7.0, False),
        (CENTS, 0.1 + 0.2, True),
        (CENTS, 0.29, True),
        (CENTS, 0.295, False),
        (CENTS, 1e7 + 0.01, True),
    ],
)
def test_what_lies_on_a_grid(grid: Grid, value: float, holds: bool) -> None:
    assert grid.holds(np.array([value])) is holds


def test_columns_without_a_grid_are_left_alone() -> None:
    grid = Grid(np.array([0.0, 1.0]), np.array([1.0, 1.0]))
    ticks = grid.seen_from(np.array([0.5, 2.0]))
    change = np.array([0.123, 1.4])
    for rounded, value in ((ticks.below, 1.0), (ticks.above, 2.0), (ticks.nearest, 1.0)):
        assert rounded(change).tolist() == [0.123, value]
    assert grid.columns.tolist() == [1]


@bounded
@given(
    x=st.floats(-1e6, 1e6),
    delta=st.floats(-1e6, 1e6),
    step=st.sampled_from([1.0, 5.0, 12.0]),
    parts=st.sampled_from([1.0, 10.0, 100.0, 1e4]),
)
def test_rounding_ends_next_to_the_change_and_on_the_grid(
    x: float, delta: float, step: float, parts: float
) -> None:
    """Also from inputs that are off the grid themselves."""
    ticks = Grid(np.array([step]), np.array([parts])).seen_from(np.array([x]))
    change, unit = np.array([delta]), step / parts
    room = 2.0**-40 * max(abs(x), abs(delta), unit)
    below, above, nearest = (float(f(change)[0]) for f in (ticks.below, ticks.above, ticks.nearest))
    assert below <= delta + room
    assert above >= delta - room
    assert above - below <= unit + room
    assert abs(nearest - delta) <= 0.5 * unit + room
    for end in (below, above, nearest):
        assert ticks.grid.holds(ticks.values(np.array([end])))
    assert abs(ticks.next_above(np.array([below]))[0] - (below + unit)) <= room
    assert abs(ticks.next_below(np.array([below]))[0] - (below - unit)) <= room


@bounded
@given(k=st.integers(-(10**9), 10**9), parts=st.sampled_from([1.0, 10.0, 100.0, 1e6]))
def test_end_points_are_the_nearest_doubles(k: int, parts: float) -> None:
    """The 0.29 of an answer is the one that a user would type."""
    ticks = Grid(np.array([1.0]), np.array([parts])).seen_from(np.array([0.123456]))
    end = ticks.values(ticks.nearest(np.array([k / parts - 0.123456])))
    assert end[0] == k / int(parts)


def test_an_input_off_by_its_last_digit_stays_as_it_is() -> None:
    x = np.array([0.1 + 0.2])
    ticks = CENTS.seen_from(x)
    assert ticks.nearest(np.zeros(1))[0] == 0.0
    assert ticks.below(np.zeros(1))[0] == 0.0
    assert ticks.above(np.zeros(1))[0] == 0.0
    assert ticks.values(np.zeros(1))[0] == x[0]


def test_open_ends_stay_open() -> None:
    ticks = WHOLE.seen_from(np.array([0.5]))
    assert ticks.below(np.array([np.inf]))[0] == np.inf
    assert ticks.above(np.array([-np.inf]))[0] == -np.inf


@pytest.mark.parametrize(
    ("shares", "chosen"),
    [
        ([0.3, 0.4, 0.2, 0.2], [0.0, 1.0, 0.0, 0.0]),  # what is left for staying is 0.3 and 0.6
        ([0.3, 0.2, 0.1, 0.6], [0.0, 0.0, 0.0, 1.0]),
        ([0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]),
        ([0.6, 0.6, 0.9, 0.1], [1.0, 0.0, 1.0, 0.0]),  # never two at once
    ],
)
def test_at_most_one_other_level_is_chosen_for_each_feature(
    shares: list[float], chosen: list[float]
) -> None:
    grid = Grid(np.ones(4), np.ones(4), (slice(0, 2), slice(2, 4)))
    ticks = grid.seen_from(np.zeros(4))
    assert ticks.choice(np.array(shares)).y.tolist() == chosen


def test_how_far_changes_miss_the_grid_is_said_in_steps() -> None:
    miss = FIVES.seen_from(np.array([2.0])).miss(np.array([4.0]))
    assert miss.tolist() == pytest.approx([0.2])

"""Values on a grid, and changes that end on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterlvq.programs.grids import Grid, Ticks
from counterlvq.programs.intervals import LeastChange, ValueRule, complement, points
from tests.support.quick import examples

bounded = settings(max_examples=examples(200))

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
    """Also from inputs that are off the grid themselves, where no change is one of them."""
    ticks = Grid(np.array([step]), np.array([parts])).seen_from(np.array([x]))
    change, unit = np.array([delta]), step / parts
    room = 2.0**-40 * max(abs(x), abs(delta), unit)
    below, above, nearest = (float(f(change)[0]) for f in (ticks.below, ticks.above, ticks.nearest))
    assert below <= delta + room
    assert above >= delta - room
    assert above - below <= unit + room
    assert abs(nearest - delta) <= 0.5 * unit + room
    for end in (below, above, nearest):
        assert ticks.grid.holds(ticks.values(np.array([end])), ticks.x)
        assert end == 0.0 or ticks.grid.holds(ticks.values(np.array([end])))
    after, before = ticks.next_above(np.array([below])), ticks.next_below(np.array([below]))
    assert before[0] < below < after[0]
    assert after[0] - below <= unit + room
    assert below - before[0] <= unit + room
    assert ticks.next_below(after)[0] == below == ticks.next_above(before)[0]


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


# --- least changes, listed values, steps of change ------------------------------------------------

SOME = st.sampled_from([0.0, 0.5, 1.0, 2.0, 2.75, 3.0, 4.0, 6.0, 7.0, 7.25])


def allowed_values(
    x: float,
    step: float,
    from_input: bool,
    least: float,
    listed: list[float] | None,
    barred: list[float],
) -> list[float]:
    """List what a column may be between -20 and 20, by the meaning of each word."""
    origin = x if from_input else 0.0
    steps = [origin + k * step for k in range(-60, 61)]
    found = {x, *steps} if listed is None else {v for v in (x, *steps) if v in listed}
    found -= {*barred}
    return sorted(v for v in found if abs(v) <= 20 and (v == x or abs(v - x) >= least))


@bounded
@given(
    x=SOME,
    delta=st.integers(-64, 64).map(lambda eighths: eighths / 8),
    step=st.sampled_from([0.5, 1.0, 3.0]),
    from_input=st.booleans(),
    least=st.sampled_from([0.0, 1.0, 2.25]),
    listed=st.none() | st.lists(SOME, min_size=1, max_size=4),
    barred=st.lists(SOME, max_size=3),
)
def test_allowed_changes_are_those_of_their_meaning(
    x: float,
    delta: float,
    step: float,
    from_input: bool,
    least: float,
    listed: list[float] | None,
    barred: list[float],
) -> None:
    rules = [] if listed is None else [ValueRule(0, points(listed))]
    rules += [ValueRule(0, complement(points([value]))) for value in barred]
    bare = Grid(np.array([step * 2]), np.array([2.0]), from_input=np.array([from_input]))
    ticks = bare.ruled([LeastChange(0, least)], rules).seen_from(np.array([x]))
    values = allowed_values(x, step, from_input, least, listed, barred)
    lower, upper = (
        [v - x for v in values if v - x <= delta],
        [v - x for v in values if v > x + delta],
    )
    below, above = (float(f(np.array([delta]))[0]) for f in (ticks.below, ticks.above))
    assert below == max(lower, default=-np.inf)
    if below != delta:
        assert above == min(upper, default=np.inf)
    for k, value in enumerate(values[:-1]):
        if abs(value) < 10:
            here, after = np.array([value - x]), values[k + 1] - x
            assert ticks.next_above(here)[0] == after
            assert ticks.next_below(np.array([after]))[0] == value - x
    for value in np.arange(-20, 20.25, 0.25):
        holds = ticks.grid.holds(np.array([value]), np.array([x]))
        assert holds == (float(value) in values)


@bounded
@given(x=st.floats(-1e6, 1e6), by=st.floats(1e-3, 1e5), delta=st.floats(-2e5, 2e5))
def test_a_real_number_changes_by_so_much_or_stays(x: float, by: float, delta: float) -> None:
    ticks = Grid.none(1).ruled([LeastChange(0, by)], []).seen_from(np.array([x]))
    below, above = (float(f(np.array([delta]))[0]) for f in (ticks.below, ticks.above))
    room = 2.0**-42 * max(abs(x), by, 1e-300)
    for end in (below, above):
        assert end == 0.0 or abs(end) >= by - room
    if abs(delta) >= by:
        assert below == above == delta
    elif room < delta < by - room:
        assert (below, above) == (0.0, by)
    chosen = ticks.choice(np.array([delta]))
    assert chosen.lower[0] <= chosen.y[0] <= chosen.upper[0]
    assert chosen.y[0] == x or abs(chosen.y[0] - x) >= by
    assert ticks.grid.holds(chosen.y, ticks.x)


def test_listed_values_leave_no_room_where_they_contradict_each_other() -> None:
    rules = [ValueRule(0, points([1.0])), ValueRule(0, points([2.0]))]
    ticks = Grid.none(1).ruled([], rules).seen_from(np.array([1.0]))
    assert ticks.above(np.array([-np.inf]))[0] == np.inf
    assert ticks.below(np.array([np.inf]))[0] == -np.inf


@pytest.mark.parametrize("value", [6.0, 0.3, 1e9])
def test_a_listed_value_that_is_excluded_leaves_no_room(value: float) -> None:
    rules = [ValueRule(0, points([value])), ValueRule(0, complement(points([value])))]
    for bare in (Grid.none(1), Grid(np.array([1.0]), np.array([10.0]))):
        ticks = bare.ruled([], rules).seen_from(np.array([1.0]))
        assert ticks.above(np.array([-np.inf]))[0] == np.inf
        assert ticks.below(np.array([np.inf]))[0] == -np.inf


def test_changes_with_a_least_size_are_rounded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Boxes share most of their sides; what is remembered has the bits of what is worked out."""
    grid = Grid(np.array([1.0, 0.0]), np.array([100.0, 1.0]), least={0: 0.05, 1: 0.3})
    worked_out, among = [], Ticks._among

    def counted(ticks: Ticks, j: int, spans: Any, delta: float, way: float) -> float:
        worked_out.append(j)
        return among(ticks, j, spans, delta, way)

    monkeypatch.setattr(Ticks, "_among", counted)
    ticks, x = grid.seen_from(np.array([0.125, 2.0])), np.array([0.125, 2.0])
    sides = [np.array([a, b]) for a in (-0.07, -0.0, 0.0, 0.02) for b in (-0.2, -0.0, 0.31)]
    first = [(ticks.below(side), ticks.above(side)) for side in sides]
    so_far = len(worked_out)
    assert so_far == 2 * (3 + 3)  # values of each column, both zeros being one, both ways
    for side, (below, above) in zip(sides, first, strict=True):
        anew = grid.seen_from(x)
        assert ticks.below(side).tobytes() == below.tobytes() == anew.below(side).tobytes()
        assert ticks.above(side).tobytes() == above.tobytes() == anew.above(side).tobytes()
    assert len(worked_out) == so_far + 4 * len(sides)

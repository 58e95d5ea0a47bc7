"""Values of a lattice seen from an input, by position: 0 is no change, 1 the next value above.

Compiled, for searches and for proofs. An input between two values of the lattice may stay there:
position 0 is then a value of its own. Positions pass over values that are too near to the input
where a change has to be of some size.
"""

from __future__ import annotations

import numpy as np

from counterlvq.numeric.jit import part
from counterlvq.numeric.tolerances import GRID_ROUNDING, LEAST_THRESHOLD, SHARE_OF_STEP, UNIT

__all__ = ["own_ticks", "tick_below", "tick_span", "tick_value"]

_INF = np.inf


@part
def own_ticks(x, step, parts, is_from_input, least):
    """Numbers of the lattice that positions below and above 0 count from.

    `least` is how much a value changes if it does; what only rounding keeps from that is taken in.
    """
    down, up, start = 0.0, 0.0, 0.0
    if not is_from_input:
        number = x * parts / step
        down = up = np.rint(number)
        if not _is_near(x, down * step / parts, step / parts):
            up = np.floor(number)
            down = up + 1.0
        start = x
    if least > 0.0:
        room = 4.0 * max(GRID_ROUNDING * (abs(x) + least), LEAST_THRESHOLD)
        by = max(least - room, 0.0)
        up = max(up, np.ceil((start + by) * parts / step) - 1.0)
        down = min(down, np.floor((start - by) * parts / step) + 1.0)
    return down, up


@part
def _is_near(x, value, size):
    """Whether an input is a value of the lattice, but for rounding."""
    return abs(x - value) <= min(GRID_ROUNDING * max(abs(x), size), SHARE_OF_STEP * size)


@part
def tick_value(x, position, step, parts, is_from_input, down, up):
    """Value at a position, to the last digit; infinite at an infinite one."""
    if position == 0.0:
        return x
    if abs(position) == _INF:
        return position
    number = (up if position > 0.0 else down) + position
    return x + number * step / parts if is_from_input else number * step / parts


@part
def tick_below(x, change, step, parts, is_from_input, down, up):
    """Largest position whose change is at most `change`, up to the rounding of values."""
    if abs(change) == _INF:
        return change
    number = np.floor((change if is_from_input else x + change) * parts / step)
    return max(0.0, number - up) if change >= 0.0 else min(-1.0, number - down)


@part
def tick_span(x, position, step, parts, is_from_input, down, up):
    """Find the changes that a position stands for, rounded outwards: least and largest.

    No change stands for the value next to the input as well, where the input is off by rounding.
    """
    if abs(position) == _INF:
        return position, position
    if position == 0.0:
        value = np.rint(x * parts / step) * step / parts
        off = value - x
        if is_from_input or off == 0.0 or not _is_near(x, value, step / parts):
            return 0.0, 0.0
        low, high = min(off, 0.0), max(off, 0.0)
        return np.nextafter(low, -_INF), np.nextafter(high, _INF)
    change = tick_value(x, position, step, parts, is_from_input, down, up) - x
    room = UNIT * abs(change)
    if is_from_input:  # where the value is rounded once more
        room += 2.0 * UNIT * (abs(x) + abs(change))
    return np.nextafter(change - room, -_INF), np.nextafter(change + room, _INF)

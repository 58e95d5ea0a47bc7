"""Values of a lattice seen from an input, by position: 0 is no change, 1 the next value above.

Compiled, for searches and for proofs. An input between two values of the lattice may stay there:
position 0 is then a value of its own. Importing this module imports Numba.
"""

from __future__ import annotations

import numpy as np

from counterlvq.numeric.jit import jit
from counterlvq.numeric.tolerances import GRID_ROUNDING, SHARE_OF_STEP, UNIT

__all__ = ["own_ticks", "tick_below", "tick_span", "tick_value"]

_INF = np.inf


@jit
def own_ticks(x, step, parts, is_from_input):
    """Numbers of the lattice that positions below and above 0 count from."""
    if is_from_input:
        return 0.0, 0.0
    number = x * parts / step
    own = np.rint(number)
    apart = step / parts
    slack = min(GRID_ROUNDING * max(abs(x), apart), SHARE_OF_STEP * apart)
    if abs(x - own * step / parts) <= slack:
        return own, own
    low = np.floor(number)
    return low + 1.0, low


@jit
def tick_value(x, position, step, parts, is_from_input, down, up):
    """Value at a position, to the last digit; infinite at an infinite one."""
    if position == 0.0:
        return x
    if abs(position) == _INF:
        return position
    if is_from_input:
        return x + position * step / parts
    number = (up if position > 0.0 else down) + position
    return number * step / parts


@jit
def tick_below(x, change, step, parts, is_from_input, down, up):
    """Largest position whose change is at most `change`, up to the rounding of values."""
    if abs(change) == _INF:
        return change
    if is_from_input:
        return np.floor(change * parts / step)
    number = np.floor((x + change) * parts / step)
    return max(0.0, number - up) if change >= 0.0 else min(-1.0, number - down)


@jit
def tick_span(x, position, step, parts, is_from_input, down, up):
    """Find the changes that a position stands for, rounded outwards: least and largest.

    No change stands for the value next to the input as well, where the input is off by rounding.
    """
    if abs(position) == _INF:
        return position, position
    if position == 0.0:
        if is_from_input or down != up:
            return 0.0, 0.0
        off = down * step / parts - x
        if off == 0.0:
            return 0.0, 0.0
        low, high = min(off, 0.0), max(off, 0.0)
        return np.nextafter(low, -_INF), np.nextafter(high, _INF)
    change = tick_value(x, position, step, parts, is_from_input, down, up) - x
    room = UNIT * abs(change)
    if is_from_input:  # where the value is rounded once more
        room += 2.0 * UNIT * (abs(x) + abs(change))
    return np.nextafter(change - room, -_INF), np.nextafter(change + room, _INF)

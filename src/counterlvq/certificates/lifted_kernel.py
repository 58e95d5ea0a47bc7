"""Where a convex function over a box is least, in compiled code.

Used to choose the point whose tangents bound a function from below: any point gives a true
bound, the lowest point the best one.
"""

from __future__ import annotations

import numpy as np

from counterlvq.numeric.jit import jit_unless_small
from counterlvq.numeric.tolerances import STILL

__all__ = ["lowest_point", "warm_up"]

# How long the point of tangency is looked for: ending early gives a weak bound, never a wrong one.
_SWEEPS = 200


def _steps(K, *others):
    # A few sweeps are enough as a rule.
    return 10 * K.size


def _state(K, slope, w, zero, units):
    return (units,)


@jit_unless_small(_steps, _state)
def lowest_point(K, slope, w, zero, units):
    """Minimise ``v'Kv + slope'v + sum_j w_j |v_j - zero_j|`` over ``|v_j| <= 1``, in place.

    One coordinate at a time, from `units`, until nothing moves any more. K is positive
    semidefinite and w not negative; otherwise the result is some point of the box.
    """
    n = units.size
    for _ in range(_SWEEPS):
        moved = 0.0
        for j in range(n):
            pull = slope[j]
            for k in range(n):
                pull += 2.0 * K[j, k] * units[k]
            curve = 2.0 * K[j, j]
            rest = pull - curve * units[j]  # the slope at v_j = 0, without the kink
            if curve > 0.0:
                left, right = -(rest - w[j]) / curve, -(rest + w[j]) / curve
                best = zero[j]
                if left < zero[j]:
                    best = left
                elif right > zero[j]:
                    best = right
            elif rest - w[j] > 0.0:
                best = -1.0
            elif rest + w[j] < 0.0:
                best = 1.0
            else:
                best = zero[j]
            best = min(max(best, -1.0), 1.0)
            moved = max(moved, abs(best - units[j]))
            units[j] = best
        if moved < STILL:
            break


def warm_up() -> None:
    """Load the compiled code: the first time after an installation it is compiled."""
    nothing = np.zeros(1)
    lowest_point.dispatcher(np.zeros((1, 1)), nothing, nothing, nothing, np.zeros(1))

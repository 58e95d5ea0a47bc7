"""Programs for the widest box: linear ones, and with whole steps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import HIGHS_TOLERANCE

__all__ = ["widest_widths"]

# Nodes after which a search for whole steps takes the best that it has found.
_NODES = 1000


def widest_widths(
    gain: Floats, A: Floats, room: Floats, most: Floats, whole: NDArray[np.bool_]
) -> Floats | None:
    """Find widths of up to `most` with the largest gain that rows ``A widths <= room`` leave.

    Widths that are `whole` are so but for rounding. None where no engine has an answer; whoever
    uses the widths checks them.
    """
    scale = np.abs(A).max(axis=1, initial=0.0)
    scale = np.where(scale > 0, scale, 1.0)
    gain, A, room = gain / gain.max(initial=0.0), A / scale[:, None], np.maximum(room, 0.0) / scale
    found = _in_steps(gain, A, room, most, whole) if whole.any() else None
    return _linear(gain, A, room, most) if found is None else found


def _linear(gain: Floats, A: Floats, room: Floats, most: Floats) -> Floats | None:
    # SciPy's optimisers take long to import, and few ask for ranges.
    from scipy.optimize import linprog

    found = linprog(
        -gain,
        A,
        room,
        bounds=[(0.0, end) for end in most.tolist()],
        method="highs",
        options={
            "primal_feasibility_tolerance": HIGHS_TOLERANCE,
            "dual_feasibility_tolerance": HIGHS_TOLERANCE,
        },
    )
    return _point(found) if found.status == 0 else None


def _in_steps(
    gain: Floats, A: Floats, room: Floats, most: Floats, whole: NDArray[np.bool_]
) -> Floats | None:
    from scipy.optimize import Bounds, LinearConstraint, milp

    return _point(
        milp(
            -gain,
            integrality=1 * whole,
            bounds=Bounds(np.zeros(most.size), most),
            constraints=LinearConstraint(A, ub=room),
            options={"node_limit": _NODES, "mip_rel_gap": 0.0},
        )
    )


def _point(found: Any) -> Floats | None:
    is_found = found.x is not None and bool(np.isfinite(found.x).all())
    return np.maximum(np.asarray(found.x, dtype=np.float64), 0.0) if is_found else None

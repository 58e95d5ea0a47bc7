"""Bounds for a nonconvex cell over a box, from multipliers alone.

The cell of a prototype with a metric of its own is not convex. What holds in it is a list of
quadratic conditions in the change ``delta``, and over a box ``lower <= delta <= upper`` some
more hold by themselves: products of distances to the sides of the box are not negative, nor
are those of what is left of the cost, ``cap - sum_l w_l |delta_l|``, with how far
``|delta_j|`` is above the least that it can be (where up and down have prices of their own, w is
the one that the box leaves open, or the lesser); and for quadratic costs no vector g makes
``(|g| sqrt(cap) + g'L delta)`` times the distance to a side negative. Linear forms of the change
that have been cut have sides too, and products of distances to these.

Charge non-negative multipliers for any of these and add them to the cost: the sum lies below the
cost of every change of the cell. It is one quadratic function; if its matrix is positive
semidefinite, its tangent at any point lies below it, and the least of that over the box can
be written down. A matrix that floating point leaves slightly indefinite is shifted, and the
shift is paid for, because the box bounds what it can be worth. Wrong multipliers give a weak
bound, never a wrong one. No solver is imported here.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np

from counterlvq.certificates.quadratic_bounds import Sum, least_over_box, point_of_tangency
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import HUGE, NO_ROOM, UNIT
from counterlvq.programs.nonconvex import Box, FormSides, LiftedMultipliers, NonconvexProgram
from counterlvq.programs.program import Multipliers, Program

__all__ = ["lifted_bound", "lifted_contradiction", "lifted_tangency"]


def lifted_bound(
    problem: NonconvexProgram, prices: LiftedMultipliers, box: Box, cap: float,
    *, as_told: bool = False, sides: FormSides | None = None,
) -> float:  # fmt: skip
    """Cost that no change of the cell undercuts within the box, at most `cap`.

    `cap` is the cost of a known answer (or inf): only cheaper changes are of interest. `as_told`:
    with tangents at the point of the multipliers, where whoever checks a file puts them. `sides`
    are those of linear forms that have been cut.
    """
    if box.is_empty or (sides is not None and sides.is_empty):
        return cap
    program = problem.convex
    with np.errstate(all="ignore"):
        is_point = not (box.upper - box.lower > NO_ROOM * box.most).any()
        if not (prices.charges_anything or is_point or program.L.shape[0]):
            # Nothing but the cost: what the least absolute changes amount to. Of a single point,
            # up to rounding, and of squares the sum below tells the whole cost.
            least = float(_prices_in(program, box) @ box.least)
            least *= 1.0 - (program.width + 4) * UNIT
            return min(cap, least) if np.isfinite(least) else 0.0
        total = _charged(problem, prices, box, cap, sides)
        _add_cost(total, program)
        value = _value(total, problem, prices, box, with_cost=True, as_told=as_told)
    # Costs are never negative, so 0 is the bound of last resort.
    return float(min(cap, max(0.0, value))) if np.isfinite(value) else 0.0


def lifted_contradiction(
    problem: NonconvexProgram, prices: LiftedMultipliers, box: Box, cap: float,
    *, as_told: bool = False, sides: FormSides | None = None,
) -> bool:  # fmt: skip
    """Whether multipliers show that no change in the box of cost at most `cap` is in the cell."""
    if box.is_empty or (sides is not None and sides.is_empty):
        return True
    with np.errstate(all="ignore"):
        total = _charged(problem, prices, box, cap, sides)
        value = _value(total, problem, prices, box, with_cost=False, as_told=as_told)
    return bool(np.isfinite(value) and value > 0)


def lifted_tangency(
    problem: NonconvexProgram, prices: LiftedMultipliers, box: Box, cap: float,
    *, with_cost: bool, sides: FormSides | None = None,
) -> Floats | None:  # fmt: skip
    """Where the tangents of a bound, or of a contradiction, are; None if there are none."""
    program = problem.convex
    with np.errstate(all="ignore"):
        total = _charged(problem, prices, box, cap, sides)
        if with_cost:
            _add_cost(total, program)
    return point_of_tangency(total, _usable(prices.point), box)


def _value(
    total: Sum, problem: NonconvexProgram, prices: LiftedMultipliers, box: Box,
    *, with_cost: bool, as_told: bool,
) -> float:  # fmt: skip
    exact_slope = partial(_exact_slope, problem, prices, with_cost)
    return least_over_box(total, _usable(prices.point), box, exact_slope, as_told=as_told)


def _charged(
    problem: NonconvexProgram, prices: LiftedMultipliers, box: Box, cap: float,
    sides: FormSides | None,
) -> Sum:  # fmt: skip
    """Sum everything that is charged for, without the cost."""
    program, forms = problem.convex, problem.forms
    charge = _prices(prices.forms)
    d = program.width
    rows = program.b.size + program.e.size + sum(quadric.g.size for quadric in program.quadrics)
    flat = forms.Q.strides[0] == 0 and not forms.Q[:1].any()  # of a shared metric
    no_H = np.zeros((d, d))
    total = Sum(
        H=no_H if flat else _mixed(charge, forms.Q),
        h=charge @ forms.q,
        constant=-float(charge @ forms.r),
        w=np.zeros(d),
        sizes=(
            no_H if flat else _mixed(charge, np.abs(forms.Q)),
            charge @ np.abs(forms.q),
            float(charge @ np.abs(forms.r)),
            np.zeros(d),
        ),
        open=(
            no_H if flat else _mixed(charge, forms.Q_blur),
            charge @ forms.q_blur,
            float(charge @ forms.r_blur),
        ),
        # The longest sums run over features, rows, forms and the rows of L; a few more roundings
        # are those of the products in them and of adding the sums up.
        steps=2 * (d + program.L.shape[0]) + rows + charge.size + 4 * len(prices.form_low) + 24,
    )
    _add_conditions(total, program, prices.linear)
    _add_products(total, prices, box)
    if sides is not None:
        _add_form_products(total, prices, sides)
    _add_cost_products(total, prices, _prices_in(program, box), cap, box)
    _add_ball_products(total, prices, program, cap, box)
    return total


def _add_cost(total: Sum, program: Program) -> None:
    """Add the cost itself; prices that differ up and down are a kink and a slope."""
    L, (weights, tilt) = np.abs(program.L), program.tilted
    size = None if program.ways is None else program.ways.sum(axis=0)
    total.add(
        H=(program.L.T @ program.L, L.T @ L),
        h=None if size is None else (tilt, size),
        w=(weights, np.abs(weights) if size is None else size),
    )


def _prices_in(program: Program, box: Box) -> Floats:
    """Price that no unit of change undercuts within a box, (d,)."""
    return program.prices_for(box.sign)


def _mixed(charge: Floats, Q: Floats) -> Floats:
    return np.asarray(np.tensordot(charge, Q, axes=1))


def _add_conditions(total: Sum, program: Program, prices: Multipliers) -> None:
    y, z, nu = _prices(prices.y), _usable(prices.z), _prices(prices.nu)
    size = np.abs(z)
    total.add(
        h=(program.A.T @ y + program.E.T @ z, np.abs(program.A).T @ y + np.abs(program.E).T @ size),
        constant=(
            -float(y @ program.b) - float(z @ program.e),
            float(y @ np.abs(program.b)) + float(size @ np.abs(program.e)),
        ),
    )
    # Right-hand sides are rounded themselves; each gives way by that much.
    H_open, h_open, constant_open = total.open
    constant_open += float(np.concatenate([y, size]) @ program.blur)
    for price, quadric in zip(nu, program.quadrics, strict=True):
        G, g, blur = np.abs(quadric.G), np.abs(quadric.g), quadric.g_open
        total.add(
            H=(price * quadric.G.T @ quadric.G, price * G.T @ G),
            h=(
                price * (quadric.h - 2.0 * quadric.G.T @ quadric.g),
                price * (np.abs(quadric.h) + 2.0 * G.T @ g),
            ),
            constant=(
                price * (float(quadric.g @ quadric.g) - quadric.c),
                price * (float(g @ g) + abs(quadric.c)),
            ),
        )
        # |G delta - g|^2 with g off by at most blur.
        h_open = h_open + 2.0 * price * G.T @ blur
        constant_open += price * (float((2.0 * g + blur) @ blur) + quadric.c_blur)
    total.open = H_open, h_open, constant_open


def _add_products(total: Sum, prices: LiftedMultipliers, box: Box) -> None:
    """Take off the products of distances to the sides of the box; an infinite side has none."""
    found = _products(prices.low, prices.high, prices.cross, box.lower, box.upper)
    if found is not None:
        total.add(*found)


def _add_form_products(total: Sum, prices: LiftedMultipliers, sides: FormSides) -> None:
    """Take off the same products of the sides of linear forms: ``V delta`` stands for a change."""
    told = prices.form_low, prices.form_high, prices.form_cross
    found = _products(*told, sides.lower, sides.upper)
    if found is None:
        return
    H, h, constant = found
    V, size = sides.V, np.abs(sides.V)
    total.add((V.T @ H[0] @ V, size.T @ H[1] @ size), (h[0] @ V, h[1] @ size), constant)


_Products = tuple[tuple[Floats, Floats], tuple[Floats, Floats], tuple[float, float]]


def _products(
    low: Floats, high: Floats, cross: Floats, lower: Floats, upper: Floats
) -> _Products | None:
    """Add up products of distances to sides as H, h and constant, each with its size."""
    has_low, has_high = np.isfinite(lower), np.isfinite(upper)
    low = _prices(low) * np.outer(has_low, has_low)
    high = _prices(high) * np.outer(has_high, has_high)
    cross = _prices(cross) * np.outer(has_low, has_high)
    if not (low.any() or high.any() or cross.any()):
        return None
    lower, upper = np.where(has_low, lower, 0.0), np.where(has_high, upper, 0.0)
    H, size = cross - low - high, cross + low + high
    far_low, far_high = np.abs(lower), np.abs(upper)
    both_low, both_high = low + low.T, high + high.T
    return (
        (0.5 * (H + H.T), 0.5 * (size + size.T)),
        (
            both_low @ lower + both_high @ upper - cross @ upper - cross.T @ lower,
            both_low @ far_low + both_high @ far_high + cross @ far_high + cross.T @ far_low,
        ),
        (
            float(lower @ cross @ upper - lower @ low @ lower - upper @ high @ upper),
            float(
                far_low @ cross @ far_high + far_low @ low @ far_low + far_high @ high @ far_high
            ),
        ),
    )


def _add_cost_products(
    total: Sum, prices: LiftedMultipliers, w: Floats, cap: float, box: Box
) -> None:
    """Take off the products of what is left of the cost with absolute changes."""
    share = _prices(prices.share)
    if not np.isfinite(cap) or not share.any():
        return
    sign, least = box.sign, box.least
    spread = np.outer(share, w)
    size = np.triu(spread + spread.T, 1) + np.diag(np.diag(spread))  # of |delta_j delta_l|
    known = np.outer(sign, sign)
    np.fill_diagonal(known, 1.0)
    signs = np.where(known != 0, known * size, np.clip(_usable(prices.signs), -size, size))
    spent = float(least @ share)
    taken = cap * share + w * spent
    total.add(
        H=(0.5 * (signs + signs.T), 0.5 * (size + size.T)),
        w=(-taken, taken),
        constant=(cap * spent, cap * spent),
    )


def _add_ball_products(
    total: Sum, prices: LiftedMultipliers, program: Program, cap: float, box: Box
) -> None:
    """Take off ``(|g| sqrt(left) + g'L delta)`` times the distance to a side, for each side.

    `left` is what absolute changes leave of the cost of a known answer, at the most.
    """
    L, spent = program.L, float(_prices_in(program, box) @ box.least)
    n = (program.width + L.shape[0] + 8) * UNIT
    left = cap - spent + n * (cap + spent)
    if not 0.0 < left < np.inf:
        return
    # Rounded up: a larger ball only says less.
    ball = np.sqrt(left) * (1.0 + n)
    for vectors, side, sign in (
        (prices.from_low, box.lower, 1.0),
        (prices.from_high, box.upper, -1.0),
    ):
        has_side = np.isfinite(side)
        g = _usable(vectors) * has_side[:, None]
        if not g.any():
            continue
        end = np.where(has_side, side, 0.0)
        length = ball * np.sqrt(np.einsum("ij,ij->i", g, g)) * (1.0 + n)
        pull, size = g @ L, np.abs(g) @ np.abs(L)
        total.add(
            H=(-sign * 0.5 * (pull + pull.T), 0.5 * (size + size.T)),
            h=(sign * (end @ pull - length), np.abs(end) @ size + length),
            constant=(sign * float(length @ end), float(length @ np.abs(end))),
        )


def _exact_slope(
    problem: NonconvexProgram, prices: LiftedMultipliers, with_cost: bool, j: int
) -> Fraction | None:
    """Slope of what is charged along one feature, without rounding; None if it is not linear.

    With the cost, that of the cost beside its kink as well.

    Where a box has no end, only a slope of exactly nothing is none.
    """
    program, forms = problem.convex, problem.forms
    charge = _prices(prices.forms)
    if forms.q_blur[charge > 0, j].any():
        return None
    linear = prices.linear
    parts = [
        (charge, forms.q[:, j]),
        (_prices(linear.y), program.A[:, j]),
        (_usable(linear.z), program.E[:, j]),
        (_prices(linear.nu), np.array([quadric.h[j] for quadric in program.quadrics])),
    ]
    total = Fraction(0)
    if with_cost and program.ways is not None:
        up, down = program.ways[:, j].tolist()
        total += (Fraction(up) - Fraction(down)) / 2
    for prices_of, slopes in parts:
        for k in np.flatnonzero((prices_of != 0) & (slopes != 0)):
            total += Fraction(float(prices_of[k])) * Fraction(float(slopes[k]))
    return total


def _usable(values: Floats) -> Floats:
    """Numbers that can be squared; anything else charges for nothing and lies nowhere."""
    return np.where(np.abs(values) < HUGE, values, 0.0)


def _prices(values: Floats) -> Floats:
    return np.maximum(_usable(values), 0.0)

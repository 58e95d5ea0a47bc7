"""Nonconvex cells: bounds from prices alone, over a box.

The cell of a prototype with a metric of its own is not convex. What holds in it is a list of
quadratic conditions in the change ``delta``, and over a box ``lower <= delta <= upper`` some
more hold by themselves: products of distances to the sides of the box are not negative, nor
are those of what is left of the cost, ``cap - sum_l w_l |delta_l|``, with how far
``|delta_j|`` is above the least that it can be; and for quadratic costs no vector g makes
``(|g| sqrt(cap) + g'L delta)`` times the distance to a side negative.

Charge non-negative prices for any of these and add them to the cost: the sum lies below the
cost of every change of the cell. It is one quadratic function; if its matrix is positive
semidefinite, its tangent at any point lies below it, and the least of that over the box can
be written down. A matrix that floating point leaves slightly indefinite is shifted, and the
shift is paid for, because the box bounds what it can be worth. Wrong prices give a weak
bound, never a wrong one. No solver is imported here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.arrays import Floats
from counterlvq.cells import Forms
from counterlvq.programs import Multipliers, Program

__all__ = [
    "Box",
    "LiftedPrices",
    "Nonconvex",
    "lifted_bound",
    "lifted_contradiction",
    "lifted_tie",
]

# Rounding of the sums below, as a share of the largest terms; taken off every bound.
_ROUNDING = 2.0**-48
# The share of the terms within which nothing counts as nothing.
_TIE = 2.0**-40
# Larger numbers, and those that are none, are not worked with.
_HUGE = 1e100


class Box(NamedTuple):
    """Smallest and largest change of each feature; finite."""

    lower: Floats  # (d,)
    upper: Floats  # (d,)

    @property
    def center(self) -> Floats:
        """The middle, (d,)."""
        return np.asarray(0.5 * (self.lower + self.upper))

    @property
    def half(self) -> Floats:
        """Half of each side, (d,)."""
        return np.asarray(0.5 * (self.upper - self.lower))

    @property
    def is_empty(self) -> bool:
        """Whether two sides have crossed."""
        return bool((self.lower > self.upper).any())

    @property
    def sign(self) -> Floats:
        """Sign of each change where the box tells it, else 0, (d,)."""
        return np.where(self.lower >= 0, 1.0, np.where(self.upper <= 0, -1.0, 0.0))

    @property
    def least(self) -> Floats:
        """Least absolute change, (d,)."""
        return np.asarray(np.maximum(np.maximum(self.lower, -self.upper), 0.0))

    @property
    def most(self) -> Floats:
        """Largest absolute change, (d,)."""
        return np.asarray(np.maximum(np.abs(self.lower), np.abs(self.upper)))

    def within(self, other: Box) -> Box:
        """Keep what two boxes have in common."""
        return Box(np.maximum(self.lower, other.lower), np.minimum(self.upper, other.upper))

    def equals(self, other: Box) -> bool:
        """Whether two boxes have the same sides."""
        same = (self.lower == other.lower) & (self.upper == other.upper)
        return bool(same.all())

    def split(self, feature: int, at: float) -> tuple[Box, Box]:
        """Cut across one feature."""
        low, high = self.upper.copy(), self.lower.copy()
        low[feature] = min(at, self.upper[feature])
        high[feature] = max(at, self.lower[feature])
        return Box(self.lower, low), Box(high, self.upper)


@final
@dataclass(frozen=True, eq=False)
class Nonconvex:
    """A convex program in the change, and quadratic forms on top: of one cell, and of a grid."""

    convex: Program
    forms: Forms

    rivals: int  # how many of the forms are about rivals: they come first

    def tightened(self, margin: float) -> Nonconvex:
        """Ask for `margin` more over every rival."""
        r = self.forms.r.copy()
        r[: self.rivals] -= margin
        return replace(self, forms=self.forms._replace(r=r))

    def only(self, rivals: NDArray[np.bool_]) -> Nonconvex:
        """Leave out some of the forms, (m,)."""
        kept = Forms(*(part[rivals] for part in self.forms))
        return Nonconvex(self.convex, kept, int(rivals[: self.rivals].sum()))

    def excess(self, delta: Floats) -> Floats:
        """By how much the prototype trails each rival after the change, (m,)."""
        Q, q, r = self.forms[:3]
        value: Floats = np.einsum("kij,i,j->k", Q, delta, delta) + q @ delta - r
        return value


@final
@dataclass(frozen=True, eq=False)
class LiftedPrices:
    """What is charged for in one box, and the point whose tangents count.

    `low`, `high` and `cross` are charged for products of distances to the sides of the box:
    both lower, both upper, lower of the row's and upper of the column's feature. `share` is
    charged for the products of what is left of the cost with how far each absolute change is
    above its least, and `signs` says how that charge is spread over products of changes whose
    sign the box leaves open. `from_low` and `from_high` hold the vectors for the sides.
    """

    forms: Floats  # (m,)
    linear: Multipliers
    low: Floats  # (d, d)
    high: Floats  # (d, d)
    cross: Floats  # (d, d)
    share: Floats  # (d,)
    signs: Floats  # (d, d), upper triangle
    from_low: Floats  # (d, s)
    from_high: Floats  # (d, s)
    point: Floats  # (d,)

    @classmethod
    def none(cls, problem: Nonconvex) -> LiftedPrices:
        """Nothing is charged for."""
        d, m = problem.convex.width, problem.forms.r.size
        nothing, flat = np.zeros((d, d)), np.zeros((d, problem.convex.L.shape[0]))
        return cls(
            np.zeros(m), Multipliers.none(problem.convex), nothing, nothing, nothing, np.zeros(d),
            nothing, flat, flat, np.zeros(d),
        )  # fmt: skip


@dataclass
class _Sum:
    """``delta' H delta + h'delta + constant + sum_j w_j |delta_j|`` and its rounding."""

    H: Floats
    h: Floats
    constant: float
    w: Floats
    size: float


def lifted_bound(problem: Nonconvex, prices: LiftedPrices, box: Box, cap: float) -> float:
    """Cost that no change of the cell undercuts within the box, at most `cap`.

    `cap` is the cost of a known answer (or inf): only cheaper changes are of interest.
    """
    if box.is_empty:
        return cap
    program = problem.convex
    total = _charged(problem, prices, box, cap)
    total.H += program.L.T @ program.L
    total.w += program.w
    value = _least(total, prices.point, box)
    # Costs are never negative, so 0 is the bound of last resort.
    return float(min(cap, max(0.0, value))) if np.isfinite(value) else 0.0


def lifted_contradiction(problem: Nonconvex, prices: LiftedPrices, box: Box, cap: float) -> bool:
    """Whether the prices show that no change of cost at most `cap` in the box is in the cell."""
    if box.is_empty:
        return True
    value = _least(_charged(problem, prices, box, cap), prices.point, box)
    return bool(np.isfinite(value) and value > 0)


def lifted_tie(problem: Nonconvex, prices: LiftedPrices, box: Box, cap: float) -> bool:
    """Whether changes of the cell within the box can at most tie with the rivals charged for.

    Then any margin over them is a contradiction: what the prices amount to is nothing at the
    least, to rounding, and would be that margin times the prices.
    """
    if box.is_empty:
        return True
    total = _charged(problem, prices, box, cap)
    size = total.size + float(np.abs(total.h) @ box.most) + abs(total.constant)
    value = _least(total, prices.point, box)
    return bool(np.isfinite(value) and _prices(prices.forms).any() and value >= -_TIE * size)


def _charged(problem: Nonconvex, prices: LiftedPrices, box: Box, cap: float) -> _Sum:
    """Sum everything that is charged for, without the cost."""
    program, forms = problem.convex, problem.forms
    charge = _prices(prices.forms)
    far = box.most
    total = _Sum(
        H=np.einsum("k,kij->ij", charge, forms.Q),
        h=charge @ forms.q,
        constant=-float(charge @ forms.r),
        w=np.zeros(program.width),
        size=float(charge @ (forms.r_size + forms.q_size @ far))
        + float(far @ np.einsum("k,kij->ij", charge, forms.Q_size) @ far),
    )
    _add_conditions(total, program, prices.linear, far)
    _add_products(total, prices, box)
    _add_cost_products(total, prices, program.w, cap, box)
    _add_ball_products(total, prices, program.L, cap - float(program.w @ box.least), box)
    return total


def _add_conditions(total: _Sum, program: Program, prices: Multipliers, far: Floats) -> None:
    y, z, nu = _prices(prices.y), _usable(prices.z), _prices(prices.nu)
    total.h += program.A.T @ y + program.E.T @ z
    total.constant -= float(y @ program.b) + float(z @ program.e)
    # Right-hand sides are rounded themselves; each gives way by that much.
    total.constant -= float(np.concatenate([y, np.abs(z)]) @ program.blur)
    total.size += float(y @ np.abs(program.b)) + float(np.abs(z) @ np.abs(program.e))
    for price, quadric in zip(nu, program.quadrics, strict=True):
        total.H += price * quadric.G.T @ quadric.G
        total.h += price * (quadric.h - 2.0 * quadric.G.T @ quadric.g)
        total.constant += price * (float(quadric.g @ quadric.g) - quadric.c)
        total.size += price * quadric.magnitude(far)


def _add_products(total: _Sum, prices: LiftedPrices, box: Box) -> None:
    """Take off the products of distances to the sides of the box."""
    low, high, cross = _prices(prices.low), _prices(prices.high), _prices(prices.cross)
    lower, upper = box.lower, box.upper
    H = cross - low - high
    total.H += 0.5 * (H + H.T)
    total.h += (low + low.T) @ lower + (high + high.T) @ upper - cross @ upper - cross.T @ lower
    total.constant += float(lower @ cross @ upper - lower @ low @ lower - upper @ high @ upper)
    far = box.most
    total.size += 4.0 * float(far @ (low + high + cross) @ far)


def _add_cost_products(total: _Sum, prices: LiftedPrices, w: Floats, cap: float, box: Box) -> None:
    """Take off the products of what is left of the cost with absolute changes."""
    share = _prices(prices.share)
    if not np.isfinite(cap) or not share.any():
        return
    sign, least, most = box.sign, box.least, box.most
    spread = np.outer(share, w)
    size = np.triu(spread + spread.T, 1) + np.diag(np.diag(spread))  # of |delta_j delta_l|
    known = np.outer(sign, sign)
    np.fill_diagonal(known, 1.0)
    signs = np.where(known != 0, known * size, np.clip(_usable(prices.signs), -size, size))
    total.H += 0.5 * (signs + signs.T)
    total.w -= cap * share + w * float(least @ share)
    total.constant += cap * float(least @ share)
    total.size += float(share @ most) * (2.0 * cap + float(w @ most))


def _add_ball_products(total: _Sum, prices: LiftedPrices, L: Floats, left: float, box: Box) -> None:
    """Take off ``(|g| sqrt(left) + g'L delta)`` times the distance to a side, for each side.

    `left` is what absolute changes leave of the cost of a known answer, at the most.
    """
    if not 0.0 < left < np.inf:
        return
    ball = np.sqrt(left) * (1.0 + _ROUNDING)
    for vectors, side, sign in (
        (prices.from_low, box.lower, 1.0),
        (prices.from_high, box.upper, -1.0),
    ):
        g = _usable(vectors)
        if not g.any():
            continue
        length = ball * np.sqrt(np.einsum("ij,ij->i", g, g))
        pull = g @ L
        total.H -= sign * 0.5 * (pull + pull.T)
        total.h += sign * (side @ pull - length)
        total.constant += sign * float(length @ side)
        total.size += float(box.most @ (2.0 * length + 2.0 * np.abs(pull) @ box.most))


def _least(total: _Sum, point: Floats, box: Box) -> float:
    """Compute a lower bound of the sum over the box, less what rounding can be worth."""
    # Numba takes a second to import and is not needed before this point.
    from counterlvq.bottoms import lowest_point

    center, half = box.center, box.half
    anchor = np.clip(_usable(point), box.lower, box.upper)
    units = np.divide(anchor - center, half, out=np.zeros_like(half), where=half > 0)
    # delta = center + half v with |v_j| <= 1: the curvature then has no units.
    curve = total.H * np.outer(half, half)
    size = float(np.abs(curve).sum())
    if not np.isfinite(size):
        return -np.inf
    shift = _shift(curve, size)
    curve = curve + shift * np.eye(half.size)
    slope = half * (total.h + 2.0 * total.H @ center)
    with np.errstate(divide="ignore", invalid="ignore"):
        zero = np.where(half > 0, np.clip(-center / half, -1.0, 1.0), 0.0)
    # A kink that bends downwards is a line between its ends for the choice of the point.
    bent = np.where(box.sign == 0, np.maximum(total.w, 0.0), 0.0)
    straight = np.where(box.sign == 0, _chord(np.minimum(total.w, 0.0), box), box.sign * total.w)
    lowest_point(curve, slope + half * straight, half * bent, zero, units)
    steep = curve @ units
    slope = slope + 2.0 * steep
    height = float(total.h @ center + center @ total.H @ center - units @ steep)
    height += total.constant - shift * int((half > 0).sum())
    ends = [slope * v + total.w * np.abs(center + half * v) for v in (-1.0, 1.0, zero)]
    least = np.minimum(np.minimum(ends[0], ends[1]), ends[2])
    far = np.abs(center) + half
    terms = float(np.abs(least).sum() + np.abs(total.h) @ far + far @ np.abs(total.H) @ far)
    return height + float(least.sum()) - _ROUNDING * (total.size + terms + size)


def _chord(w: Floats, box: Box) -> Floats:
    """Slope of the line between the ends of ``w_j |delta_j|``, (d,)."""
    rise = w * (np.abs(box.upper) - np.abs(box.lower))
    width = box.upper - box.lower
    return np.asarray(np.divide(rise, width, out=np.zeros_like(rise), where=width > 0))


def _shift(curve: Floats, size: float) -> float:
    """Say what has to be added to the diagonal to make the matrix positive semidefinite."""
    try:
        least = float(np.linalg.eigvalsh(curve)[0])
    except np.linalg.LinAlgError:
        return size
    return float(max(0.0, -least) + curve.shape[0] * _ROUNDING * size)


def _usable(values: Floats) -> Floats:
    """Numbers that can be squared; anything else charges for nothing and lies nowhere."""
    return np.where(np.abs(values) < _HUGE, values, 0.0)


def _prices(values: Floats) -> Floats:
    return np.maximum(_usable(values), 0.0)

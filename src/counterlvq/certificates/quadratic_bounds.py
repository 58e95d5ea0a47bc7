"""What a quadratic function with kinks is at least over a box, rounding accounted for.

With ``e = delta - p`` for any point p of the box, the function is its value at p, a slope times
e, the kinks ``w_j |delta_j|``, and ``e'He``. Along features that the box limits, H is shifted
until it is positive semidefinite, and the shift is paid for: the box bounds what it can be
worth. Along features without a limit there is nothing to pay with: there the curvature has to
carry the slope, with all that rounding leaves open of both, or the slope has to be exactly
nothing. What remains is a sum of functions of one feature each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterlvq.certificates.lifted_kernel import lowest_point
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import MORE_SHIFT, SAFE, TINY_MINIMUM, UNIT
from counterlvq.programs.nonconvex import Box

__all__ = ["Sum", "least_over_box", "point_of_tangency"]

# How often a shift is enlarged before every row is shifted by its own length.
_TRIES = 5
# How far the point is looked for where a box has no end, in units of the curvature there.
_FAR = 2.0**20

ExactSlope = Callable[[int], Fraction | None]


@dataclass
class Sum:
    """``delta' H delta + h'delta + constant + sum_j w_j |delta_j|`` and its rounding.

    `sizes` are the sums of the absolute values of all that is added up in each number, none of
    which goes through more than `steps` roundings; `open` is what is left open besides.
    """

    H: Floats
    h: Floats
    constant: float
    w: Floats
    sizes: tuple[Floats, Floats, float, Floats]
    open: tuple[Floats, Floats, float]
    steps: int

    def add(
        self,
        H: tuple[Floats, Floats] | None = None,
        h: tuple[Floats, Floats] | None = None,
        constant: tuple[float, float] = (0.0, 0.0),
        w: tuple[Floats, Floats] | None = None,
    ) -> None:
        """Add terms, each with the size of what it is itself the sum of."""
        H_size, h_size, constant_size, w_size = self.sizes
        if H is not None:
            self.H, H_size = self.H + H[0], H_size + H[1]
        if h is not None:
            self.h, h_size = self.h + h[0], h_size + h[1]
        if w is not None:
            self.w, w_size = self.w + w[0], w_size + w[1]
        self.constant += constant[0]
        self.sizes = H_size, h_size, constant_size + constant[1], w_size

    def blur(self) -> _Blur:
        """Bound how far each number is off."""
        share = self.steps * UNIT
        H, h, constant, w = self.sizes
        open_H, open_h, open_constant = self.open
        H_off = share * H + open_H
        return _Blur(
            np.maximum(H_off, H_off.T), share * h + open_h, share * constant + open_constant,
            share * w,
        )  # fmt: skip


class _Blur(NamedTuple):
    """How far the numbers of a sum are off, at the most."""

    H: Floats
    h: Floats
    constant: float
    w: Floats


class _Convex(NamedTuple):
    """What makes ``delta'H delta`` convex.

    It is, once ``shift ((delta_j - center_j) / half_j)^2`` is added for each limited feature,
    and still is with ``rest ((delta_j - p_j) / half_j)^2`` taken off for each unlimited one.
    """

    center: Floats  # (d,)
    half: Floats  # (d,) for limited features at least the distance from the centre to a side
    limited: NDArray[np.bool_]  # (d,) and not held in place
    shift: float
    rest: float


def least_over_box(
    total: Sum, point: Floats, box: Box, exact_slope: ExactSlope, *, as_told: bool = False
) -> float:
    """Lower bound of a sum over a box that is not empty; -inf, or NaN, where none can be shown.

    `point` is where to begin looking for a point whose tangents bound the sum well; or `as_told`
    the very point, and no more is shown than by whoever makes the sum convex with integers. Numbers
    that overflow come out as none.
    """
    with np.errstate(all="ignore"):
        return _least_over_box(total, point, box, exact_slope, as_told)


def point_of_tangency(total: Sum, point: Floats, box: Box) -> Floats | None:
    """Where `least_over_box` puts its tangents; None if they are needed for single features alone.

    Any point gives a true bound, and this one the bound that is claimed.
    """
    H, blur = 0.5 * (total.H + total.H.T), total.blur()
    if not (H - np.diag(np.diag(H))).any():
        return None
    with np.errstate(all="ignore"):
        unlimited = ~(np.isfinite(box.lower) & np.isfinite(box.upper))
        straight = unlimited & ~H.any(axis=1) & ~blur.H.any(axis=1)
        convex = _made_convex(H, blur, box, unlimited & ~straight)
        p = point if convex is None else _tangent_point(total, H, convex, box, point)
    return np.where(np.isfinite(p), p, 0.0)


def _least_over_box(
    total: Sum, point: Floats, box: Box, exact_slope: ExactSlope, as_told: bool
) -> float:
    H, blur = 0.5 * (total.H + total.H.T), total.blur()
    unlimited = ~(np.isfinite(box.lower) & np.isfinite(box.upper))
    straight = unlimited & ~H.any(axis=1) & ~blur.H.any(axis=1)
    convex = _made_convex(H, blur, box, unlimited & ~straight)
    if convex is None:
        return -np.inf
    if as_told:
        convex = convex._replace(shift=MORE_SHIFT * convex.shift)
    p = _tangent_point(total, H, convex, box, point)
    if as_told:
        p = np.where(_tied(H, box), np.clip(point, box.lower, box.upper), p)
    units = np.zeros_like(p)
    at = convex.limited
    units[at] = (p[at] - convex.center[at]) / convex.half[at]
    pull = np.zeros_like(p)
    pull[at] = 2.0 * convex.shift * units[at] / convex.half[at]
    away, steep = np.abs(p), H @ p
    size = np.abs(H) @ away
    slope = total.h + 2.0 * steep + pull
    n = (2 * p.size + 16) * UNIT
    # The slope is off by its own sum, by h, and by what H is off by at p.
    slack = n * (np.abs(total.h) + 2.0 * size + np.abs(pull)) + blur.h + 2.0 * blur.H @ away
    far = np.where(unlimited, 0.0, np.maximum(box.upper - p, p - box.lower)) * (1.0 + 2.0 * UNIT)
    slack += np.where(unlimited, 2.0 * blur.H @ far, 0.0)
    squares, paid = float(units @ units), float(np.count_nonzero(at))
    value = float(p @ steep + total.h @ p) + total.constant + convex.shift * (squares - paid)
    lost = n * (float(away @ size + np.abs(total.h) @ away) + abs(total.constant))
    lost += n * convex.shift * (squares + paid)
    lost += float(away @ blur.H @ away + blur.h @ away) + blur.constant + float(far @ blur.H @ far)
    reach = 1.0 + float(away.sum() + far.sum())
    lost += TINY_MINIMUM * reach * reach  # which may be infinite; a power would raise an error
    line = _Line(box, p, slope, slack, total.w, blur.w)
    least, terms = line.least_within(~unlimited)
    for j in np.flatnonzero(unlimited).tolist():
        if straight[j]:
            least += line.least_along(j, exact_slope)
        else:
            least += line.least_against(j, convex.rest / convex.half[j] / convex.half[j])
    return value + least - SAFE * (lost + n * terms)


def _tied(H: Floats, box: Box) -> NDArray[np.bool_]:
    """Which features with room H ties to others that have some: their tangents are at a point."""
    moves = box.lower < box.upper
    ties = (H != 0.0) & np.outer(moves, moves)
    return np.asarray((ties & ~np.eye(len(H), dtype=bool)).any(axis=1))


class _Line(NamedTuple):
    """``slope_j (delta_j - p_j) + w_j |delta_j|`` per feature, with what is left open of both."""

    box: Box
    p: Floats
    slope: Floats
    slack: Floats
    w: Floats
    w_slack: Floats

    def least_within(self, limited: NDArray[np.bool_]) -> tuple[float, float]:
        """Least sum over the limited features, and the size of its terms."""
        low, high, p = self.box.lower[limited], self.box.upper[limited], self.p[limited]
        slope, w = self.slope[limited], self.w[limited]
        ends = [slope * (end - p) + w * np.abs(end) for end in (low, high, np.clip(0.0, low, high))]
        least = np.minimum(np.minimum(ends[0], ends[1]), ends[2])
        far, most = np.maximum(high - p, p - low), np.maximum(np.abs(low), np.abs(high))
        lost = float(self.slack[limited] @ far + self.w_slack[limited] @ most)
        terms = float((np.abs(slope) * far + np.abs(w) * most).sum())
        return float(least.sum()) - SAFE * lost, terms

    def least_along(self, j: int, exact_slope: ExactSlope) -> float:
        """Least value along a feature without end and without curvature."""
        low, high = float(self.box.lower[j]), float(self.box.upper[j])
        kink, slope, slack = float(self.w[j] - self.w_slack[j]), float(self.slope[j]), 0.0
        if float(self.slack[j]) > 0.0:
            exact = exact_slope(j)
            if exact == 0:
                slope = 0.0
            else:
                slack = float(self.slack[j]) * SAFE
        # Each way that has no end must not lead down.
        if not (high < np.inf or kink + slope >= slack) or not (
            low > -np.inf or kink - slope >= slack
        ):
            return -np.inf
        p = float(self.p[j])
        ends = [end for end in (low, high, min(max(0.0, low), high)) if np.isfinite(end)]
        sizes = [(abs(slope * (end - p)), abs(kink * end), slack * abs(end - p)) for end in ends]
        values = [slope * (end - p) + kink * abs(end) for end in ends]
        return min(
            value - slack - 8.0 * UNIT * (first + second)
            for value, (first, second, slack) in zip(values, sizes, strict=True)
        )

    def least_against(self, j: int, curve: float) -> float:
        """Least value along a feature without end, with ``curve (delta_j - p_j)^2`` on top."""
        p, slope = float(self.p[j]), float(self.slope[j])
        slack, kink = float(self.slack[j]), float(self.w[j])
        # |delta| lies above its tangents, and below |p| + |delta - p|.
        base = kink * abs(p)
        if kink > 0:
            slope += kink * np.sign(p) if p else float(np.clip(-slope, -kink, kink))
        else:
            slack += abs(kink)
        slack += float(self.w_slack[j]) + 4.0 * UNIT * (abs(slope) + abs(kink))
        base -= abs(p) * float(self.w_slack[j])
        base -= 4.0 * UNIT * abs(base)
        is_low, is_high = p <= self.box.lower[j], p >= self.box.upper[j]
        if (is_low and slope >= slack) or (is_high and -slope >= slack):
            return base
        if not curve > 0:
            return -np.inf
        steepest = (abs(slope) + slack) * SAFE
        return base - steepest * steepest / (4.0 * curve) * SAFE


def _made_convex(H: Floats, blur: _Blur, box: Box, curved: NDArray[np.bool_]) -> _Convex | None:
    """Find how much has to be added along limited features; None where that cannot help."""
    limited = np.isfinite(box.lower) & np.isfinite(box.upper) & (box.lower < box.upper)
    center = np.where(limited, 0.5 * (box.lower + box.upper), 0.0)
    half = np.where(limited, np.maximum(box.upper - center, center - box.lower), 0.0)
    half = np.where(limited, np.nextafter(half, np.inf), 0.0)
    own = np.diag(H)
    if not np.isfinite(H).all() or not (own[curved] > 0).all():
        return None
    half[curved] = 1.0 / np.sqrt(own[curved])
    used = np.flatnonzero(limited | curved)
    K = H[np.ix_(used, used)] * np.outer(half[used], half[used])
    if not np.isfinite(K).all():
        return None
    is_curved = curved[used]
    if not is_curved.any():
        return _Convex(center, half, limited, _shift(K), 0.0)
    # What H is off by, between two unlimited features, is taken off their curvature.
    off = blur.H[np.ix_(used, used)] * np.outer(half[used], half[used])
    off = off[is_curved][:, is_curved]
    found = _shift_and_rest(K, is_curved, float(off.sum(axis=1).max()) * SAFE)
    return None if found is None else _Convex(center, half, limited, *found)


def _shift(K: Floats) -> float:
    """Say what has to be added to the diagonal to make ``K`` positive semidefinite.

    An eigenvalue is only where to begin. That the shift is enough is shown by a Cholesky
    factorisation that comes to an end: then ``K + shift`` and R'R differ by at most
    gamma_{n+1} |R|'|R|, whose norm is no more than the trace. In any order of summation.
    """
    if not K.size:
        return 0.0
    rounding = _factorisation_rounding(K, 0.0)
    shift = max(0.0, -_least_eigenvalue(K))
    for attempt in range(_TRIES):
        tried = shift + 4.0**attempt * rounding
        if _has_root(K + tried * np.eye(len(K))):
            return tried + _factorisation_rounding(K, tried)
    # No eigenvalue is further below zero than the longest row.
    return float(np.abs(K).sum(axis=1).max()) * (1.0 + (len(K) + 4) * UNIT)


def _shift_and_rest(
    K: Floats, is_curved: NDArray[np.bool_], off: float
) -> tuple[float, float] | None:
    """Find a shift along the limited features that leaves some curvature along the others."""
    limited = np.where(is_curved, 0.0, 1.0)
    shift = 0.0
    for _ in range(_TRIES):
        least = _least_eigenvalue(K + np.diag(shift * limited))
        if least > 0:
            rest = 0.5 * least
            tried = K + np.diag(np.where(is_curved, -rest, shift))
            if _has_root(tried):
                slack = _factorisation_rounding(K, shift + rest)
                rest -= slack + off
                return (shift + slack, rest) if rest > 0 else None
        if is_curved.all():
            return None
        shift = 4.0 * max(shift, abs(least)) + _factorisation_rounding(K, shift)
    return None


def _factorisation_rounding(K: Floats, shift: float) -> float:
    """Bound what rounding in K, in its shifted diagonal and in its factorisation amounts to."""
    n, diagonal = len(K), np.abs(np.diag(K)) + shift
    size = (n + 4) * float(diagonal.sum()) + 4.0 * float(np.sqrt((K * K).sum()))
    return UNIT * size * SAFE + TINY_MINIMUM


def _least_eigenvalue(K: Floats) -> float:
    try:
        return float(np.linalg.eigvalsh(K)[0])
    except np.linalg.LinAlgError:
        return -float(np.abs(K).sum())


def _has_root(K: Floats) -> bool:
    try:
        return bool(np.isfinite(np.linalg.cholesky(K)).all())
    except np.linalg.LinAlgError:
        return False


def _tangent_point(total: Sum, H: Floats, convex: _Convex, box: Box, point: Floats) -> Floats:
    """Look for the lowest point: any point of the box gives a true bound, that one the best."""
    lowest = np.clip(point, box.lower, box.upper)
    curved = ~convex.limited & (convex.half > 0)
    half = np.where(curved, _FAR * convex.half, convex.half)
    # What is held in place, or has no end and no curvature, stays where it is meanwhile.
    center = np.where(convex.limited, convex.center, lowest)
    # A feature may be limited on one side only.
    around = Box(np.maximum(box.lower, center - half), np.minimum(box.upper, center + half))
    lowest = _lowest(total, H, convex, around, lowest)
    lowest = _polished(total, H, convex, box, lowest)
    # A feature without end or curvature has its tangent where it changes least.
    still = ~convex.limited & ~curved
    return np.where(still, np.clip(0.0, box.lower, box.upper), lowest)


def _polished(total: Sum, H: Floats, convex: _Convex, box: Box, lowest: Floats) -> Floats:
    """Go on to where the slope is nothing, as far as the box and the kinks allow.

    Steps of one feature at a time end early along narrow valleys, and where a box has no end a
    slope that is left is dear.
    """
    inside = (convex.half > 0) & (lowest > box.lower) & (lowest < box.upper)
    free = np.flatnonzero(inside & ((lowest != 0) | (total.w == 0)))
    if not free.size:
        return lowest
    paid = np.zeros_like(lowest)
    paid[convex.limited] = convex.shift / convex.half[convex.limited] ** 2
    slope = total.h + 2.0 * (H @ lowest + paid * (lowest - convex.center))
    slope += np.sign(lowest) * total.w
    try:
        step = np.linalg.solve((H + np.diag(paid))[np.ix_(free, free)], -0.5 * slope[free])
    except np.linalg.LinAlgError:
        return lowest
    here, low, high = lowest[free], box.lower[free], box.upper[free]
    kinked = total.w[free] != 0
    low = np.where(kinked & (here > 0), np.maximum(low, 0.0), low)
    high = np.where(kinked & (here < 0), np.minimum(high, 0.0), high)
    room = np.where(step > 0, high - here, here - low) / np.abs(step)
    share = min(1.0, float(room[step != 0].min(initial=np.inf)))
    if not share > 0 or not np.isfinite(step).all():
        return lowest
    out = lowest.copy()
    out[free] = np.clip(here + share * step, low, high)
    return out


def _lowest(total: Sum, H: Floats, convex: _Convex, box: Box, start: Floats) -> Floats:
    """Lowest point of the shifted sum, about, in a box; features without room stay."""
    center = np.where(convex.half > 0, box.center, start)
    half = np.where(convex.half > 0, box.half, 0.0)
    units = np.divide(start - center, half, out=np.zeros_like(half), where=half > 0)
    paid = np.divide(half, convex.half, out=np.zeros_like(half), where=convex.limited)
    curve = H * np.outer(half, half) + np.diag(convex.shift * paid * paid)
    zero = np.divide(-center, half, out=np.zeros_like(half), where=half > 0)
    # A kink that bends downwards is a line between its ends for the choice of the point.
    is_kinked = (box.lower < 0) & (box.upper > 0)
    bent = np.where(is_kinked, np.maximum(total.w, 0.0), 0.0)
    side = np.where(box.lower >= 0, 1.0, -1.0)
    chord = _chord(np.minimum(total.w, 0.0), box)
    straight = np.where(is_kinked, chord, side * total.w)
    slope = half * (total.h + 2.0 * H @ center + straight)
    lowest_point(curve, slope, half * bent, np.clip(zero, -1.0, 1.0), units)
    return np.asarray(np.clip(center + half * units, box.lower, box.upper))


def _chord(w: Floats, box: Box) -> Floats:
    """Slope of the line between the ends of ``w_j |delta_j|``, (d,)."""
    rise = w * (np.abs(box.upper) - np.abs(box.lower))
    width = box.upper - box.lower
    return np.asarray(np.divide(rise, width, out=np.zeros_like(rise), where=width > 0))

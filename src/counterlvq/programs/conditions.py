"""Conditions on a counterfactual in numbers, as cells and constraints both state them.

`x` is the factual input and `y` the counterfactual. Nothing here depends on `x`: matrices
are fixed, and only right-hand sides will, once a factual input is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from counterlvq.numeric.arrays import Floats, read_only
from counterlvq.numeric.error_free import rounded_dot, split_sum
from counterlvq.numeric.memory import FLOAT, refuse_too_large
from counterlvq.numeric.quadratic_forms import QuadraticForm
from counterlvq.numeric.tolerances import EPSILON, FACTOR_TRADE
from counterlvq.programs.intervals import ValueRule

__all__ = [
    "Conditional",
    "Implication",
    "LargestChange",
    "LevelRule",
    "LevelWay",
    "LinearConditions",
    "QuadraticCondition",
    "StatedQuadratic",
]


@final
@dataclass(frozen=True)
class LinearConditions:
    """Linear conditions ``A y + R x <= v``, or ``== v``."""

    A: Floats  # (k, d)
    R: Floats  # (k, d)
    v: Floats  # (k,)
    equality: bool = False

    @classmethod
    def on_features(
        cls,
        positions: list[int],
        width: int,
        *,
        new: float,
        old: float,
        value: float,
        equality: bool = False,
    ) -> LinearConditions:
        """Build ``new * y_j + old * x_j <= value`` for each listed column j."""
        count = len(positions)
        refuse_too_large(
            f"a condition on each of {count:,} out of {width:,} features",
            3 * FLOAT * count * width,
            "leave out features, or put conditions on fewer",
        )
        pick = np.zeros((len(positions), width))
        pick[np.arange(len(positions)), positions] = 1.0
        values = np.full(len(positions), value)
        return cls(read_only(new * pick), read_only(old * pick), read_only(values), equality)

    def times(self, factor: float) -> LinearConditions:
        """Multiply by a factor of at least 0; by 0 nothing is said any more."""
        return LinearConditions(factor * self.A, factor * self.R, factor * self.v, self.equality)

    def holding(self, columns: NDArray[np.intp], y: Floats) -> LinearConditions:
        """Put in the values that some columns have in `y`."""
        A = self.A.copy()
        A[:, columns] = 0.0
        return LinearConditions(A, self.R, self.v - self.A[:, columns] @ y[columns], self.equality)

    def among(self, chosen: NDArray[np.bool_]) -> LinearConditions:
        """Keep some of the conditions."""
        return LinearConditions(self.A[chosen], self.R[chosen], self.v[chosen], self.equality)

    def magnitude(self, y: Floats, x: Floats) -> Floats:
        """Size of the numbers that meet in each condition, the measure of its rounding."""
        size: Floats = np.abs(y) @ np.abs(self.A).T + np.abs(x) @ np.abs(self.R).T + np.abs(self.v)
        return size

    def excesses(self, Y: Floats, X: Floats, counted: Floats) -> tuple[Floats, Floats]:
        """How far rows exceed each condition, and the size of what meets there, (n, k) each.

        Sizes are those of `counted` in place of `Y`. Terms are added up one column after another,
        so that a row comes out the same alone and among others.
        """
        excess = np.tile(-self.v.astype(np.float64), (len(Y), 1))
        size = np.abs(excess)
        for factors, rows, sizes in ((self.A, Y, counted), (self.R, X, X)):
            for j in np.flatnonzero(factors.any(axis=0)).tolist():
                excess += rows[:, j, None] * factors[:, j]
                size += np.abs(sizes[:, j, None]) * np.abs(factors[:, j])
        return excess, size


@final
@dataclass(frozen=True, eq=False)
class StatedQuadratic:
    """A quadratic condition as it was stated, on some columns of a row ``z = origin + y``.

    It reads ``(z - center)' form (z - center) + linear'z <= value``.
    """

    form: QuadraticForm  # of k columns
    columns: NDArray[np.intp]  # (k,)
    center: Floats  # (k,)
    linear: Floats  # (k,)
    value: float
    origin: Floats | None = None  # (d,), zero by default

    def excess(self, y: Floats) -> tuple[float, float]:
        """How far the condition is exceeded, and a bound on what rounding does to that."""
        z = (y if self.origin is None else self.origin + y)[self.columns]
        away, lost = split_sum(z, -self.center)
        square = self.form.value(away)
        slope = rounded_dot(self.linear, z)
        # The distance is rounded itself: what its last digits could move the value by.
        shift = self.form.most(np.abs(away) + np.abs(lost), np.abs(lost))
        error = 4.0 * EPSILON * (square + abs(slope) + abs(self.value)) + 2.0 * shift
        return square + slope - self.value, error

    def holds(self, y: Floats) -> bool:
        """Whether the condition is met; exact where that is close."""
        excess, error = self.excess(y)
        if not np.isfinite(excess + error):
            return False  # numbers too large to be told apart prove nothing
        if abs(excess) > error:
            return excess < 0
        z = (y if self.origin is None else self.origin + y)[self.columns]
        away = [Fraction(a) - Fraction(b) for a, b in zip(z, self.center, strict=True)]
        terms = zip(self.linear, z, strict=True)
        slope = sum((Fraction(a) * Fraction(b) for a, b in terms), Fraction(0))
        return self.form.exact_value(away) + slope <= Fraction(self.value)


@final
@dataclass(frozen=True)
class QuadraticCondition:
    """One convex quadratic condition ``|G y - g|^2 + h'y <= c``, for solvers and proofs.

    Where it stands for a condition that was stated by a matrix, that is `stated`. All points that
    meet what was stated meet this condition: it is wider by rounding, never narrower. Whether
    a finished point is accepted is decided by what was stated.
    """

    G: Floats  # (r, d)
    g: Floats  # (r,)
    h: Floats  # (d,)
    c: float
    stated: StatedQuadratic | None = None
    g_blur: Floats | None = None  # (r,) bound on the rounding of g; None for none
    c_blur: float = 0.0  # and of c

    @classmethod
    def of(cls, stated: StatedQuadratic, width: int) -> QuadraticCondition:
        """State the condition for the columns of a row by a factor."""
        G, h = np.zeros((stated.form.root.shape[0], width)), np.zeros(width)
        G[:, stated.columns] = stated.form.root
        h[stated.columns] = stated.linear
        g = np.array([rounded_dot(row, stated.center) for row in stated.form.root])
        off = EPSILON * np.abs(g) if stated.center.any() else np.zeros_like(g)
        widened = _widened(h, float(stated.value), stated.form.share, off)
        return cls(G, g, *widened, stated)

    def over(self, columns: NDArray[np.intp], width: int) -> QuadraticCondition:
        """State the same of the listed columns of a wider row, one for each column here."""
        G, h = np.zeros((self.G.shape[0], width)), np.zeros(width)
        G[:, columns], h[columns] = self.G, self.h
        stated = self.stated
        if stated is not None:
            stated = replace(stated, columns=columns[stated.columns])
        return QuadraticCondition(G, self.g, h, self.c, stated)

    def holds(self, y: Floats) -> bool:
        """Whether what was stated is met: unlike linear conditions, without any slack.

        Rounding of the terms could be worth far more than the value, around a distant center.
        """
        return self.excess(y) <= 0 if self.stated is None else self.stated.holds(y)

    def true_excess(self, y: Floats) -> float:
        """How far what was stated is exceeded."""
        return self.excess(y) if self.stated is None else self.stated.excess(y)[0]

    @property
    def g_open(self) -> Floats:
        """What rounding leaves open of `g`, (r,)."""
        return np.zeros(self.g.size) if self.g_blur is None else self.g_blur

    def excess(self, y: Floats) -> float:
        """How far the condition is exceeded; positive means broken."""
        lifted = self.G @ y - self.g
        return float(lifted @ lifted + self.h @ y - self.c)

    def magnitude(self, y: Floats) -> float:
        """Size of the numbers that meet in the condition: the measure of its rounding."""
        lifted = np.abs(self.G) @ np.abs(y) + np.abs(self.g)
        return float(lifted @ lifted + np.abs(self.h) @ np.abs(y) + abs(self.c))

    def gradient(self, y: Floats) -> Floats:
        """Slope of the left-hand side at `y`, (d,)."""
        slope: Floats = 2.0 * self.G.T @ (self.G @ y - self.g) + self.h
        return slope

    def moved(self, x: Floats) -> QuadraticCondition:
        """Write the same condition for the change ``y - x``."""
        g = self.g - self.G @ x
        c = float(self.c - self.h @ x)
        if self.stated is None:
            return QuadraticCondition(self.G, g, self.h, c)
        rounding = (x.size + 2.0) * EPSILON
        off = rounding * (np.abs(self.g) + np.abs(self.G) @ np.abs(x))
        c += 2.0 * rounding * float(abs(self.c) + np.abs(self.h) @ np.abs(x))
        h, c = _widened(self.h, c, 1.0, off if x.any() else np.zeros_like(off))
        return QuadraticCondition(self.G, g, h, c, replace(self.stated, origin=x))


def _widened(h: Floats, c: float, share: float, off: Floats) -> tuple[Floats, float]:
    """Right-hand sides h and c for a factor G and a point g that are off.

    From ``share |a|^2 + h'y <= c`` follows ``|a + e|^2 + h'y / s <= c / s + |e|^2 / t`` with
    ``s = share / (1 + t)``, for every e of at most `off` and any t above 0.
    """
    lost = float(off @ off)
    if lost == 0.0 and share == 1.0:
        return h, c
    own = FACTOR_TRADE if lost > 0.0 else 0.0
    scale = (1.0 + own) / share
    # Rounded upwards; the last digits of h are within what is taken off every bound.
    c = c * scale + (1.01 * lost / own if own else 0.0) + 4.0 * EPSILON * abs(c * scale)
    return h * scale, float(c)


@final
@dataclass(frozen=True)
class LevelRule:
    """A column of levels has one of the listed ones, by their positions."""

    column: int
    codes: frozenset[int]


@final
@dataclass(frozen=True)
class LevelWay:
    """A column of levels goes from each of them to some only, by their positions."""

    column: int
    codes: tuple[frozenset[int], ...]  # by the level of the input

    def seen_from(self, code: int) -> LevelRule:
        """State it of inputs that have one level."""
        return LevelRule(self.column, self.codes[code])


@final
@dataclass(frozen=True, eq=False)
class LargestChange:
    """No weighted change of the columns before it is above the value of a column."""

    column: int
    weights: Floats  # (2, d) upwards and downwards, of the columns before it
    switches: Mapping[int, Floats]  # by column: prices from level to level

    def as_rows(self, width: int, columns: Iterable[int]) -> LinearConditions:
        """State it of columns that are numbers, two rows for each."""
        at = list(columns)
        A, R = np.zeros((2, 2 * len(at), width))
        for n, j in enumerate(at):
            up, down = self.weights[:, j]
            A[2 * n, j], A[2 * n + 1, j] = up, -down
        R[:] = -A
        A[:, self.column] = -1.0
        return LinearConditions(read_only(A), read_only(R), read_only(np.zeros(len(A))))


@final
@dataclass(frozen=True)
class Implication:
    """Where a column has one of some levels, or a value in some interval, a condition holds."""

    when: LevelRule | ValueRule
    then: LinearConditions | LevelRule


@final
@dataclass(frozen=True)
class Conditional:
    """Inequalities that hold where a feature has one of some levels, or some value.

    It has a level, where all of the coordinates in `absent` are 0 or one of those in `present`
    is 1, and a value, where `test` holds; a feature with a test has no levels.
    """

    rows: LinearConditions
    absent: NDArray[np.intp] | None
    present: NDArray[np.intp]
    test: ValueRule | None = None

    def applies(self, low: Floats, high: Floats) -> bool:
        """Whether a level is there at all points between two corners of a box."""
        if (low[self.present] > 0.5).any():
            return True
        return self.absent is not None and bool((high[self.absent] < 0.5).all())

    def applies_at(self, y: Floats, x: Floats) -> bool:
        """Whether the inequalities have to hold at a point."""
        return self.applies(y, y) if self.test is None else self.test.applies(y, x)

    def applies_to(self, Y: Floats, X: Floats) -> NDArray[np.bool_]:
        """As `applies_at` for many points, (n,)."""
        if self.test is not None:
            return np.array(
                [self.test.applies(y, x) for y, x in zip(Y, X, strict=True)], dtype=bool
            )
        found = (Y[:, self.present] > 0.5).any(axis=1)
        if self.absent is not None:
            found |= (Y[:, self.absent] < 0.5).all(axis=1)
        return np.asarray(found)

"""Nonconvex cells over boxes, in numbers: what is asked, and the multipliers that answer it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.cells import Forms
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import SLIVER, UNIT
from counterlvq.programs.program import Multipliers, Program

__all__ = ["Box", "FormSides", "LiftedMultipliers", "NonconvexProgram"]


class Box(NamedTuple):
    """Smallest and largest change of each feature; infinite where nothing limits it."""

    lower: Floats  # (d,)
    upper: Floats  # (d,)

    @classmethod
    def whole(cls, width: int) -> Box:
        """All changes."""
        return cls(np.full(width, -np.inf), np.full(width, np.inf))

    @property
    def center(self) -> Floats:
        """The middle of a finite box, (d,)."""
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
    def is_finite(self) -> bool:
        """Whether all sides are."""
        return bool(np.isfinite(self.lower).all() and np.isfinite(self.upper).all())

    def without_slivers(self) -> Box:
        """Hold changes whose sides differ by rounding alone: in between, nothing can be chosen."""
        with np.errstate(invalid="ignore"):  # infinite sides
            thin = (self.lower < self.upper) & (self.upper - self.lower <= SLIVER * self.most)
        if not thin.any():
            return self
        return Box(np.where(thin, self.center, self.lower), np.where(thin, self.center, self.upper))

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

    def widened(self, columns: NDArray[np.bool_]) -> Box:
        """Move both sides outwards by the last digit, in some columns."""
        return Box(
            np.where(columns, np.nextafter(self.lower, -np.inf), self.lower),
            np.where(columns, np.nextafter(self.upper, np.inf), self.upper),
        )

    def split(self, feature: int, at: float) -> tuple[Box, Box]:
        """Cut across one feature."""
        low, high = self.upper.copy(), self.lower.copy()
        low[feature] = min(at, self.upper[feature])
        high[feature] = max(at, self.lower[feature])
        return Box(self.lower, low), Box(high, self.upper)


class FormSides(NamedTuple):
    """Linear forms of the change, ``V delta``, between the least and the largest value of each."""

    V: Floats  # (k, d)
    lower: Floats  # (k,) infinite where nothing limits a form
    upper: Floats  # (k,)

    @property
    def is_empty(self) -> bool:
        """Whether two sides have crossed."""
        return bool((self.lower > self.upper).any())


def _no_products() -> Floats:
    return np.zeros((0, 0))


@final
@dataclass(frozen=True, eq=False)
class NonconvexProgram:
    """A convex program in the change, and quadratic forms on top: of one cell, and of a grid."""

    convex: Program
    forms: Forms

    rivals: int  # how many of the forms are about rivals: they come first

    def tightened(self, margin: float) -> NonconvexProgram:
        """Ask for `margin` more over every rival."""
        if not margin:
            return self
        r, blur = self.forms.r.copy(), self.forms.r_blur.copy()
        r[: self.rivals] -= margin
        blur[: self.rivals] += UNIT * np.abs(r[: self.rivals])
        return replace(self, forms=self.forms._replace(r=r, r_blur=blur))

    def only(self, rivals: NDArray[np.bool_]) -> NonconvexProgram:
        """Leave out some of the forms, (m,)."""
        kept = Forms(*(part[rivals] for part in self.forms))
        return NonconvexProgram(self.convex, kept, int(rivals[: self.rivals].sum()))

    def excess(self, delta: Floats) -> Floats:
        """By how much the prototype trails each rival after the change, (m,)."""
        Q, q, r = self.forms[:3]
        value: Floats = np.einsum("kij,i,j->k", Q, delta, delta) + q @ delta - r
        return value


@final
@dataclass(frozen=True, eq=False)
class LiftedMultipliers:
    """What is charged for in one box, and the point whose tangents count.

    `low`, `high` and `cross` are charged for products of distances to the sides of the box:
    both lower, both upper, lower of the row's and upper of the column's feature. `share` is
    charged for the products of what is left of the cost with how far each absolute change is
    above its least, and `signs` says how that charge is spread over products of changes whose
    sign the box leaves open. `from_low` and `from_high` hold the vectors for the sides.
    `form_low`, `form_high` and `form_cross` are as `low`, `high` and `cross`, for the sides of the
    linear forms that a tree cuts; without any they have no entries.
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
    form_low: Floats = field(default_factory=_no_products)  # (k, k)
    form_high: Floats = field(default_factory=_no_products)
    form_cross: Floats = field(default_factory=_no_products)

    @classmethod
    def none(cls, problem: NonconvexProgram, forms: int = 0) -> LiftedMultipliers:
        """Nothing is charged for, with so many linear forms."""
        d, m = problem.convex.width, problem.forms.r.size
        nothing, flat = np.zeros((d, d)), np.zeros((d, problem.convex.L.shape[0]))
        none = np.zeros((forms, forms))
        return cls(
            np.zeros(m), Multipliers.none(problem.convex), nothing, nothing, nothing, np.zeros(d),
            nothing, flat, flat, np.zeros(d), none, none, none,
        )  # fmt: skip

    @property
    def charges_anything(self) -> bool:
        """Whether any multiplier is more than nothing."""
        linear = self.linear
        parts = (
            self.forms, linear.y, linear.z, linear.nu, self.low, self.high, self.cross,
            self.share, self.from_low, self.from_high, self.form_low, self.form_high,
            self.form_cross,
        )  # fmt: skip
        return any(bool(part.any()) for part in parts)

    @property
    def charges_conditions_alone(self) -> bool:
        """Whether it is rivals and linear conditions that are charged for, and nothing else."""
        parts = (
            self.linear.nu, self.low, self.high, self.cross, self.share, self.from_low,
            self.from_high, self.form_low, self.form_high, self.form_cross,
        )  # fmt: skip
        return not any(bool(part.any()) for part in parts)

    def charging(self, change: Callable[[Floats], Floats]) -> LiftedMultipliers:
        """Change what is charged for conditions, and charge for nothing else."""
        parts = [self.forms, self.linear.y, self.linear.z, self.linear.nu]
        charged = change(np.concatenate(parts))
        forms, y, z, nu = np.split(charged, np.cumsum([part.size for part in parts])[:-1])
        nothing = np.zeros_like
        return LiftedMultipliers(
            forms, Multipliers(y, z, nu), nothing(self.low), nothing(self.high),
            nothing(self.cross), nothing(self.share), nothing(self.signs),
            nothing(self.from_low), nothing(self.from_high), self.point,
            nothing(self.form_low), nothing(self.form_high), nothing(self.form_cross),
        )  # fmt: skip

    def times(self, factor: float) -> LiftedMultipliers:
        """Charge so many times as much, at the same point."""
        linear, parts = self.linear, {}
        for part in fields(self):
            if part.name not in ("linear", "point"):
                parts[part.name] = factor * getattr(self, part.name)
        y, z, nu = factor * linear.y, factor * linear.z, factor * linear.nu
        return replace(self, linear=Multipliers(y, z, nu), **parts)

    def with_forms(self, count: int) -> LiftedMultipliers:
        """Charge nothing for linear forms beside those that were known, up to so many."""
        more = count - len(self.form_low)
        if more <= 0:
            return self
        parts = (self.form_low, self.form_high, self.form_cross)
        low, high, cross = (np.pad(part, ((0, more), (0, more))) for part in parts)
        return replace(self, form_low=low, form_high=high, form_cross=cross)

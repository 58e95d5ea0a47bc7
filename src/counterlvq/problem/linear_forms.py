"""Linear forms of constraint strings: sums of features with factors, as they are read."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import frexp, inf, isfinite, ldexp
from typing import final

__all__ = ["Factor", "LinearForm", "Sum"]


@final
@dataclass(frozen=True)
class LinearForm:
    """``sum new[f] * y_f + sum old[f] * x_f + constant``, features by name."""

    new: dict[str, float] = field(default_factory=dict)
    old: dict[str, float] = field(default_factory=dict)
    constant: float = 0.0
    has_date: bool = False

    @property
    def is_number(self) -> bool:
        """Whether no feature occurs."""
        return not self.new and not self.old

    @property
    def is_finite(self) -> bool:
        """Whether no number has left the range of floating point."""
        return all(map(isfinite, (self.constant, *self.new.values(), *self.old.values())))

    def negated(self) -> LinearForm:
        """Change the sign."""
        return LinearForm(
            {name: -value for name, value in self.new.items()},
            {name: -value for name, value in self.old.items()},
            -self.constant,
            self.has_date,
        )

    def times(self, factor: Factor) -> LinearForm:
        """Multiply by a number, or divide by one."""
        return LinearForm(
            {name: factor.times(value) for name, value in self.new.items()},
            {name: factor.times(value) for name, value in self.old.items()},
            factor.times(self.constant),
            self.has_date,
        )


@final
@dataclass
class Sum:
    """A linear form in the making; a term costs what it holds, however much is there already."""

    new: dict[str, float] = field(default_factory=dict)
    old: dict[str, float] = field(default_factory=dict)
    constant: float = 0.0
    has_date: bool = False

    def add(self, term: LinearForm, sign: float = 1.0) -> None:
        """Add ``sign * term``."""
        for mine, its in ((self.new, term.new), (self.old, term.old)):
            for name, value in its.items():
                mine[name] = mine.get(name, 0.0) + sign * value
        self.constant += sign * term.constant
        self.has_date |= term.has_date

    def form(self) -> LinearForm:
        """Return the sum as it is now."""
        return LinearForm(self.new, self.old, self.constant, self.has_date)


@final
@dataclass
class Factor:
    """What a product multiplies a form by: many numbers, gathered and then applied once.

    Numerators and denominators are apart, so that ``49 * a / 49`` is a, and powers of two are
    apart from both, so that ``a * 1e200 * 1e200 / 1e300`` does not leave the floats on its way.
    """

    above: float = 1.0
    below: float = 1.0
    exponent: int = 0

    def multiply(self, number: float) -> None:
        """Take in a number above the line."""
        self.above, power = frexp(self.above * frexp(number)[0])
        self.exponent += power + frexp(number)[1]

    def divide(self, number: float) -> None:
        """Take in a number below the line."""
        self.below, power = frexp(self.below * frexp(number)[0])
        self.exponent -= power + frexp(number)[1]

    def times(self, value: float) -> float:
        """Multiply a number by all that was taken in; infinite beyond the floats."""
        try:
            return ldexp(value * self.above / self.below, self.exponent)
        except OverflowError:
            return inf

"""Columns that a model sees through a monotone function, such as a logarithm.

The user's column holds x and the model sees u = g(x), with g increasing. Programs work in u, where
the model is quadratic; x is what the user reads and bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.lazy import cached_property, imported_later
from counterlvq.numeric.tolerances import UNIT

special = imported_later("scipy.special")

__all__ = ["NAMES", "Link"]

_TINY, _FAR, _HUGE = float(np.finfo(np.float64).tiny), 1e100, 1e300
# What each function is undone by, and where it is defined.
_FUNCTIONS: Mapping[str, tuple[Callable[..., Any], Callable[..., Any], float, float]] = {
    "log": (np.log, np.exp, _TINY, _HUGE),
    "log2": (np.log2, np.exp2, _TINY, _HUGE),
    "log10": (np.log10, lambda u: np.power(10.0, u), _TINY, _HUGE),
    "log1p": (np.log1p, np.expm1, -1.0 + UNIT, _HUGE),
    "sqrt": (np.sqrt, np.square, 0.0, _HUGE),
    "cbrt": (np.cbrt, lambda u: u * u * u, -_HUGE, _HUGE),
    "exp": (np.exp, np.log, -690.0, 690.0),
    "expm1": (np.expm1, np.log1p, -36.0, 690.0),
    "arcsinh": (np.arcsinh, np.sinh, -_HUGE, _HUGE),
}
# Over which part of x slopes are taken.
_PARTS = 1024.0
_POWERS = ("box-cox", "yeo-johnson")
_FLAT_BELOW = ("exp", "expm1")
NAMES = tuple(_FUNCTIONS)


@final
@dataclass(frozen=True)
class Link:
    """An increasing function of a column.

    Attributes
    ----------
    name : str
        That of a function of NumPy, or "box-cox" or "yeo-johnson".
    power : float
        Of the last two.

    Examples
    --------
    >>> import numpy as np
    >>> link = Link("log1p")
    >>> bool(np.isclose(link.back(link.of(np.array([3.0])))[0], 3.0))
    True
    """

    name: str
    power: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in _FUNCTIONS and self.name not in _POWERS:
            raise InvalidInputError(
                f"link is {self.name!r}; expected one of: {', '.join((*_FUNCTIONS, *_POWERS))}."
            )

    @cached_property
    def domain(self) -> tuple[float, float]:
        """Smallest and largest x that are worked with."""
        if self.name == "box-cox":
            return 1.0 / _farthest(-self.power, 1.0 / _TINY), _farthest(self.power)
        if self.name == "yeo-johnson":
            return -_farthest(2.0 - self.power), _farthest(self.power)
        return _FUNCTIONS[self.name][2:]

    def takes(self, x: Floats) -> NDArray[np.bool_]:
        """Whether each x is worked with: in the domain, where the pipeline has a finite number.

        Below their domains `exp` and `expm1` are flat to the last digit, so that its end stands
        for what is there.

        Examples
        --------
        >>> import numpy as np
        >>> Link("log").takes(np.array([0.0, 1.0]))
        array([False,  True])
        """
        low, high = self.domain
        if self.name in _FLAT_BELOW:
            low = -np.inf
        with np.errstate(all="ignore"):
            inside = (x >= low) & (x <= high) & np.isfinite(x)
            return np.asarray(inside & (np.abs(self.of(x)) <= _HUGE))

    @cached_property
    def image(self) -> tuple[float, float]:
        """Smallest and largest u."""
        with np.errstate(over="ignore"):
            low, high = (float(end) for end in self.of(np.array(self.domain)))
        return max(low, -_HUGE), min(high, _HUGE)

    def of(self, x: Floats) -> Floats:
        """Compute u of x, as the pipeline does; values beyond the domain are taken to its end."""
        inside = np.clip(x, *self.domain)
        if self.name in _FUNCTIONS:
            return np.asarray(_FUNCTIONS[self.name][0](inside), dtype=np.float64)
        if self.name == "box-cox":
            return _powered(np.log(inside), self.power)
        up, down = np.maximum(inside, 0.0), np.maximum(-inside, 0.0)
        return _powered(np.log1p(up), self.power) - _powered(np.log1p(down), 2.0 - self.power)

    def back(self, u: Floats) -> Floats:
        """Compute the x that has this u, up to rounding."""
        inside = np.clip(u, *self.image)
        if self.name in _FUNCTIONS:
            found = _FUNCTIONS[self.name][1](inside)
        elif self.name == "box-cox":
            found = special.inv_boxcox1p(inside, self.power) + 1.0
            if self.power == 0:
                found = np.exp(inside)
        else:
            up = special.inv_boxcox1p(np.maximum(inside, 0.0), self.power)
            down = special.inv_boxcox1p(np.maximum(-inside, 0.0), 2.0 - self.power)
            found = np.where(inside >= 0, up, -down)
        return np.asarray(np.clip(found, *self.domain), dtype=np.float64)

    def pull(self, u: Floats) -> Floats:
        """Bound how far rounding of x, in units of itself, moves u: ``|x g'(x)|``, and ``|u|``.

        By a difference quotient over a thousandth of x, times two: these functions bend slowly.
        """
        x = self.back(u)
        step = np.abs(x) / _PARTS + _TINY
        moved = np.abs(self.of(x + step) - self.of(x - step))
        return np.asarray(_PARTS * moved + np.abs(u))

    def words(self, column: str) -> str:
        """Name the scale."""
        if self.name in _FUNCTIONS:
            return f"{self.name}({column})"
        return f"{self.name}({column}, power {self.power:.4g})"

    def domain_words(self, column: str) -> str:
        """Say where the function is worked with."""
        low, high = self.domain
        return f"{self.words(column)} is worked with from {low!r} to {high!r}"


def _farthest(power: float, most: float = _FAR) -> float:
    """Return how far a power is worked with: to `most`, or to where it is nearly `_HUGE`."""
    if power < UNIT:
        return most
    end = np.log(power * _HUGE / 16.0) / power
    return float(np.exp(end)) if end < np.log(most) else most


def _powered(logs: Floats, power: float) -> Floats:
    """``(exp(power logs) - 1) / power``, which is `logs` itself for the power 0."""
    if abs(power) < UNIT:
        return logs
    with np.errstate(over="ignore"):
        return np.asarray(np.expm1(power * logs) / power)

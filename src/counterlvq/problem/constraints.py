"""What a counterfactual must respect.

Adding a constraint is one small class that states its rows, and one line in the catalogue
of the tests. Constraints are given as objects or as strings (see `expressions`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from math import inf
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import (
    Floats,
    finite_scalar,
    finite_vector,
    plain,
    read_only,
    real_number,
    told,
)
from counterlvq.problem.number_conditions import value_rule
from counterlvq.programs.conditions import (
    Implication,
    LargestChange,
    LevelRule,
    LevelWay,
    LinearConditions,
    QuadraticCondition,
)
from counterlvq.programs.intervals import LeastChange, ValueRule
from counterlvq.tables.dates import days_of, is_date
from counterlvq.tables.feature import Feature
from counterlvq.tables.features import FeatureKey, Features
from counterlvq.types import Kind

__all__ = [
    "Bounds",
    "Constraint",
    "Decrease",
    "Freeze",
    "Increase",
    "Linear",
    "MaxChange",
    "MinChange",
    "OneOf",
    "level_rule",
    "stated_conditions",
]

Condition = (
    LinearConditions
    | QuadraticCondition
    | LevelRule
    | LevelWay
    | Implication
    | LeastChange
    | LargestChange
    | ValueRule
)


class Constraint(ABC):
    """A condition on the counterfactual, possibly relative to the factual input."""

    @property
    def is_stated(self) -> bool:
        """Whether `conditions` says all that it asks for."""
        return True

    @abstractmethod
    def conditions(self, features: Features) -> tuple[Condition, ...]:
        """State the condition in numbers for the given columns."""


def stated_conditions(constraint: Constraint, features: Features) -> tuple[Condition, ...]:
    """Conditions that a constraint states, or say what is wrong with them.

    Whatever is no condition would be passed over, and answers that break it called optimal.
    """
    name, stated = type(constraint).__name__, constraint.conditions(features)
    if not isinstance(stated, tuple | list):
        raise InvalidInputError(
            f"{name}.conditions(features) is {told(stated)}; expected a tuple of conditions, such "
            f"as Linear({{'a': 1}}, '<=', 3).conditions(features)."
        )
    for k, part in enumerate(stated):
        if not isinstance(part, Condition):
            raise InvalidInputError(
                f"{name}.conditions(features)[{k}] is {told(part)}; expected a condition in "
                f"numbers. A constraint hands on those of another by its conditions(features)."
            )
        if isinstance(part, LinearConditions):
            _check_rows(f"{name}.conditions(features)[{k}]", part, len(features))
    return tuple(stated)


def _check_rows(name: str, rows: LinearConditions, width: int) -> None:
    shapes = {part: np.shape(getattr(rows, part)) for part in ("A", "R", "v")}
    count = len(rows.v) if np.ndim(rows.v) == 1 else 1
    expected = {"A": (count, width), "R": (count, width), "v": (count,)}
    for part, shape in shapes.items():
        if shape != expected[part]:
            raise InvalidInputError(
                f"{name}: {part} has shape {shape}; expected {expected[part]}, a row for each "
                f"condition A y + R x <= v and a column for each feature."
            )
    for part in ("A", "R"):
        if not np.isfinite(getattr(rows, part)).all():
            raise InvalidInputError(
                f"{name}: {part} has entries that are not finite; expected numbers."
            )
    if np.isnan(rows.v).any():
        raise InvalidInputError(f"{name}: v has entries that are nan; expected numbers.")


@dataclass(frozen=True, init=False)
class _PerFeature(Constraint):
    """One row on each of the listed features."""

    features: tuple[FeatureKey, ...]

    def __init__(self, *features: FeatureKey) -> None:
        kind = type(self).__name__
        if not features:
            raise InvalidInputError(
                f"{kind}() names no feature; expected at least one, by name or position."
            )
        for key in features:
            if isinstance(key, Sequence) and not isinstance(key, str):
                raise InvalidInputError(
                    f"{kind} got a {type(key).__name__}; expected features one by one. "
                    f"Write {kind}(*features)."
                )
        object.__setattr__(self, "features", features)

    def __repr__(self) -> str:
        return shown_call(type(self).__name__, *self.features)

    @abstractmethod
    def _rows(self, at: list[int], width: int) -> LinearConditions:
        """State the condition for columns `at` of `width`."""

    def _position(self, key: FeatureKey, features: Features) -> int:
        return features.number(key, type(self).__name__)

    def _seen(self, features: Features) -> list[FeatureKey]:
        """List those that the model sees: the others stay as they are in every answer."""
        return [key for key in self.features if features.sees(key)]

    def conditions(self, features: Features) -> tuple[LinearConditions | LevelWay, ...]:
        """State the condition in numbers for the given columns."""
        at = [self._position(key, features) for key in self._seen(features)]
        return (self._rows(at, len(features)),) if at else ()


@dataclass(frozen=True, init=False, repr=False)
class _OneWay(_PerFeature):
    """Numbers, and levels in an order, go one way only."""

    _up: ClassVar[bool]

    def _rows(self, at: list[int], width: int) -> LinearConditions:
        sign = -1 if self._up else 1
        return LinearConditions.on_features(at, width, new=sign, old=-sign, value=0)

    def conditions(self, features: Features) -> tuple[LinearConditions | LevelWay, ...]:
        """State the condition in numbers for the given columns."""
        seen = self._seen(features)
        leveled = [key for key in seen if features[key].ranks is not None]
        at = [self._position(key, features) for key in seen if key not in leveled]
        ways = [self._way(features.position(key), features[key]) for key in leveled]
        return (*([self._rows(at, len(features))] if at else []), *ways)

    def _way(self, column: int, feature: Feature) -> LevelWay:
        ranks = np.array(feature.ranks)
        sign = 1.0 if self._up else -1.0
        after = (np.flatnonzero(sign * (ranks - own) >= 0).tolist() for own in ranks)
        return LevelWay(column, tuple(map(frozenset, after)))


@final
@dataclass(frozen=True, init=False, repr=False)
class Freeze(_PerFeature):
    """Keep features as they are, numbers or levels.

    Parameters
    ----------
    *features : str or int
        Names or positions.

    Examples
    --------
    >>> Freeze("age", "sex")
    Freeze('age', 'sex')
    """

    def _position(self, key: FeatureKey, features: Features) -> int:
        return features.position(key)

    def _rows(self, at: list[int], width: int) -> LinearConditions:
        return LinearConditions.on_features(at, width, new=1, old=-1, value=0, equality=True)


@final
@dataclass(frozen=True, init=False, repr=False)
class Increase(_OneWay):
    """Features may only go up from their factual value: numbers, and levels in an order.

    Parameters
    ----------
    *features : str or int
        Names or positions.

    Examples
    --------
    >>> Increase("age")
    Increase('age')
    """

    _up = True


@final
@dataclass(frozen=True, init=False, repr=False)
class Decrease(_OneWay):
    """Features may only go down from their factual value: numbers, and levels in an order.

    Parameters
    ----------
    *features : str or int
        Names or positions.

    Examples
    --------
    >>> Decrease("debt")
    Decrease('debt')
    """

    _up = False


@final
@dataclass(frozen=True)
class Bounds(Constraint):
    """Keep one feature within ``[lower, upper]``.

    Parameters
    ----------
    feature : str or int
        Name or position.
    lower, upper : float or date, optional
        Either may be left out, or None. Dates are for features that are dates.

    Examples
    --------
    >>> Bounds("income", lower=0)
    Bounds('income', lower=0)
    """

    feature: FeatureKey
    lower: float | date | None = -inf
    upper: float | date | None = inf

    def __post_init__(self) -> None:
        for name, value, open_end in (("lower", self.lower, -inf), ("upper", self.upper, inf)):
            object.__setattr__(self, name, open_end if value is None else value)
        lower, upper = self.ends
        if lower > upper or lower == inf or upper == -inf:
            raise InvalidInputError(
                f"Bounds of {self.feature!r}: the lower bound {lower:g} is above the upper "
                f"bound {upper:g}; expected lower <= upper with room for a finite value."
                if lower > upper
                else f"Bounds of {self.feature!r}: [{lower:g}, {upper:g}] holds no finite value."
            )

    def __repr__(self) -> str:
        given = zip(("lower", "upper"), (self.lower, self.upper), self.ends, strict=True)
        shown = {name: value for name, value, end in given if abs(end) != inf}
        return shown_call("Bounds", self.feature, **shown)

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends as numbers, infinite where they are open."""
        given: tuple[Any, Any] = (self.lower, self.upper)
        low, high = (days_of(end) if is_date(end) else end for end in given)
        return (
            real_number(f"the lower bound of {self.feature!r}", low),
            real_number(f"the upper bound of {self.feature!r}", high),
        )

    def conditions(self, features: Features) -> tuple[LinearConditions, ...]:
        """``y_j <= upper`` and ``-y_j <= -lower``."""
        at, width = [features.number(self.feature, "Bounds")], len(features)
        feature = features.columns[at[0]]
        if feature.kind is not Kind.DATE and (is_date(self.lower) or is_date(self.upper)):
            raise InvalidInputError(
                f"{self!r} has a date, and {feature.name!r} is {feature.kind}; expected numbers, "
                f"or a feature of the kind 'date'."
            )
        lower, upper = self.ends
        above = LinearConditions.on_features(at, width, new=-1, old=0, value=-lower)
        below = LinearConditions.on_features(at, width, new=1, old=0, value=upper)
        return tuple(rows for rows in (above, below) if np.isfinite(rows.v).all())


@final
@dataclass(frozen=True)
class MaxChange(Constraint):
    """Change one feature by at most `by`, up or down.

    Parameters
    ----------
    feature : str or int
        Name or position.
    by : float
        At least 0.

    Examples
    --------
    >>> MaxChange("income", by=500)
    MaxChange('income', by=500)
    """

    feature: FeatureKey
    by: float

    def __post_init__(self) -> None:
        if finite_scalar(f"MaxChange of {self.feature!r}: by", self.by) < 0:
            raise InvalidInputError(
                f"MaxChange of {self.feature!r}: by is {self.by:g}; expected a number of at "
                f"least 0."
            )

    def __repr__(self) -> str:
        return shown_call("MaxChange", self.feature, by=self.by)

    def conditions(self, features: Features) -> tuple[LinearConditions, ...]:
        """``|y_j - x_j| <= by``."""
        if not features.sees(self.feature):
            return ()
        at, width = [features.number(self.feature, "MaxChange")], len(features)
        return (
            LinearConditions.on_features(at, width, new=1, old=-1, value=self.by),
            LinearConditions.on_features(at, width, new=-1, old=1, value=self.by),
        )


@final
@dataclass(frozen=True)
class MinChange(Constraint):
    """Change one feature by at least `by`, up or down, or not at all.

    As text it reads ``"if income changes then by at least 500"``.

    Parameters
    ----------
    feature : str or int
        Name or position of a number.
    by : float
        At least 0; in days for a date.
    is_default : bool, default False
        Whether it was taken from the summary of a table, and nobody has said so; for texts.

    Examples
    --------
    >>> import counterlvq as clvq
    >>> model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], feature_names=["income"])
    >>> explainer = clvq.Explainer(model, constraints=[clvq.MinChange("income", by=1)])
    >>> print(explainer.explain([1.75], target="yes").text())
    The answer would have been yes if income were 1 higher (2.75 instead of 1.75).
    """

    feature: FeatureKey
    by: float
    is_default: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        if finite_scalar(f"MinChange of {self.feature!r}: by", self.by) < 0:
            raise InvalidInputError(
                f"MinChange of {self.feature!r}: by is {self.by:g}; expected a number of at "
                f"least 0."
            )

    def __repr__(self) -> str:
        return shown_call("MinChange", self.feature, by=self.by)

    def conditions(self, features: Features) -> tuple[LeastChange, ...]:
        """``y_j == x_j`` or ``|y_j - x_j| >= by``."""
        if not features.sees(self.feature):
            return ()
        return (LeastChange(features.number(self.feature, "MinChange"), float(self.by)),)


@final
@dataclass(frozen=True, init=False, eq=False)
class Linear(Constraint):
    """A linear condition on the counterfactual, ``sum coefficients_f * y_f  sense  value``.

    Parameters
    ----------
    coefficients : mapping from str or int to float, or array-like of shape (d,)
        Features that are not named have coefficient 0.
    sense : {"<=", ">=", "=="}
    value : float

    Examples
    --------
    >>> Linear({"first_floor": 1, "second_floor": 1}, "<=", 3000)
    Linear({'first_floor': 1, 'second_floor': 1}, '<=', 3000)
    """

    coefficients: Mapping[FeatureKey, float] | Floats
    sense: str
    value: float

    def __init__(
        self, coefficients: Mapping[FeatureKey, float] | ArrayLike, sense: str, value: float
    ) -> None:
        if isinstance(coefficients, Mapping):
            for key, coefficient in coefficients.items():
                finite_scalar(f"Linear: the coefficient of {key!r}", coefficient)
            kept = {plain(key): plain(value) for key, value in coefficients.items()}
            object.__setattr__(self, "coefficients", kept)
        else:
            object.__setattr__(
                self, "coefficients", finite_vector("Linear: coefficients", coefficients)
            )
        if sense not in ("<=", ">=", "=="):
            raise InvalidInputError(f"Linear: sense is {sense!r}; expected '<=', '>=' or '=='.")
        finite_scalar("Linear: value", value)
        object.__setattr__(self, "sense", sense)
        object.__setattr__(self, "value", value)

    def __repr__(self) -> str:
        shown = self.coefficients
        return shown_call("Linear", shown if isinstance(shown, Mapping) else shown.tolist(),
                     self.sense, self.value)  # fmt: skip

    def conditions(self, features: Features) -> tuple[LinearConditions, ...]:
        """``sum coefficients_f * y_f <= value``, with signs turned for ">="."""
        if isinstance(self.coefficients, Mapping):
            row = np.zeros(len(features))
            for key, coefficient in self.coefficients.items():
                row[features.number(key, "Linear")] += coefficient
        else:
            row = finite_vector("Linear: coefficients", self.coefficients, len(features))
            for j in np.flatnonzero(row):
                features.number(int(j), "Linear")
        return (comparison(row, np.zeros(len(features)), self.value, self.sense),)


def comparison(new: Floats, old: Floats, value: float, sense: str) -> LinearConditions:
    sign = -1.0 if sense == ">=" else 1.0
    return LinearConditions(
        read_only(sign * new[None, :]),
        read_only(sign * old[None, :]),
        read_only(np.array([sign * value])),
        equality=sense == "==",
    )


def shown_call(name: str, *positional: object, **named: object) -> str:
    shown = [repr(plain(value)) for value in positional]
    shown += [f"{key}={plain(value)!r}" for key, value in named.items()]
    return f"{name}({', '.join(shown)})"


@final
@dataclass(frozen=True, init=False, repr=False)
class OneOf(Constraint):
    """Keep a feature to some of its levels, or a number to listed values.

    Parameters
    ----------
    feature : str or int
        Name or position.
    levels : sequence
        The levels, numbers or dates that a counterfactual may have. An input that has none of
        them has to change.

    Examples
    --------
    >>> OneOf("job", ["clerk", "nurse"])
    OneOf('job', ['clerk', 'nurse'])
    >>> OneOf("months", [12, 24, 36])
    OneOf('months', [12, 24, 36])
    """

    feature: FeatureKey
    levels: tuple[Any, ...]

    def __init__(self, feature: FeatureKey, levels: Iterable[Any]) -> None:
        given: Any = levels
        listed = [*given] if np.iterable(given) and not isinstance(given, str) else []
        if not listed:
            raise InvalidInputError(
                f"OneOf of {feature!r} got {levels!r}; expected a list of at least one level."
            )
        object.__setattr__(self, "feature", feature)
        object.__setattr__(self, "levels", tuple(plain(level) for level in listed))

    def __repr__(self) -> str:
        return shown_call("OneOf", self.feature, list(self.levels))

    def conditions(self, features: Features) -> tuple[LevelRule | ValueRule, ...]:
        """Name the positions of the levels, or the values."""
        at = features.position(self.feature)
        feature = features.columns[at]
        if feature.is_number:
            return (value_rule(feature, at, self.levels, negated=False, asked=repr(self)),)
        return (level_rule(features.columns[at], at, self.levels, negated=False, asked=repr(self)),)


def level_rule(
    feature: Feature, at: int, levels: Sequence[Any], *, negated: bool, asked: str
) -> LevelRule:
    """Turn levels of a feature, or their labels, into positions; refuse those that it has not."""
    codes = set()
    for level in levels:
        code = feature.meant(level)
        if code < 0:
            shown = ", ".join(map(repr, feature.levels[:8]))
            raise InvalidInputError(
                f"{asked}: {told(level)} is no level of {feature.name!r}; expected one of: {shown}."
            )
        codes.add(code)
    every = set(range(len(feature.levels)))
    return LevelRule(at, frozenset(every - codes if negated else codes))

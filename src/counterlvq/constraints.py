"""What a counterfactual must respect.

Adding a constraint is one small class that states its rows, and one line in the catalogue
of the tests. Constraints are given as objects or as strings (see `expressions`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from counterlvq import expressions
from counterlvq.arrays import (
    Floats,
    finite_scalar,
    finite_vector,
    plain,
    psd_factor,
    read_only,
    real_number,
)
from counterlvq.errors import ConstraintSyntaxError, InvalidInputError, UnknownFeatureError
from counterlvq.features import Feature, FeatureKey, Features
from counterlvq.rows import Implication, LevelRule, Quadric, Rows

__all__ = [
    "Bounds",
    "Constraint",
    "Decrease",
    "Expression",
    "Freeze",
    "Increase",
    "Linear",
    "MaxChange",
    "OneOf",
    "Quadratic",
    "as_constraint",
]

Condition = Rows | Quadric | LevelRule | Implication


class Constraint(ABC):
    """A condition on the counterfactual, possibly relative to the factual input."""

    @abstractmethod
    def conditions(self, features: Features) -> tuple[Condition, ...]:
        """State the condition in numbers for the given columns."""


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
        return _call(type(self).__name__, *self.features)

    @abstractmethod
    def _rows(self, at: list[int], width: int) -> Rows:
        """State the condition for columns `at` of `width`."""

    def _position(self, key: FeatureKey, features: Features) -> int:
        return features.number(key, type(self).__name__)

    def conditions(self, features: Features) -> tuple[Rows, ...]:
        """State the condition in numbers for the given columns."""
        at = [self._position(key, features) for key in self.features]
        return (self._rows(at, len(features)),)


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

    def _rows(self, at: list[int], width: int) -> Rows:
        return Rows.on_features(at, width, new=1, old=-1, value=0, equality=True)


@final
@dataclass(frozen=True, init=False, repr=False)
class Increase(_PerFeature):
    """Features may only go up from their factual value.

    Parameters
    ----------
    *features : str or int
        Names or positions.

    Examples
    --------
    >>> Increase("age")
    Increase('age')
    """

    def _rows(self, at: list[int], width: int) -> Rows:
        return Rows.on_features(at, width, new=-1, old=1, value=0)


@final
@dataclass(frozen=True, init=False, repr=False)
class Decrease(_PerFeature):
    """Features may only go down from their factual value.

    Parameters
    ----------
    *features : str or int
        Names or positions.

    Examples
    --------
    >>> Decrease("debt")
    Decrease('debt')
    """

    def _rows(self, at: list[int], width: int) -> Rows:
        return Rows.on_features(at, width, new=1, old=-1, value=0)


@final
@dataclass(frozen=True)
class Bounds(Constraint):
    """Keep one feature within ``[lower, upper]``.

    Parameters
    ----------
    feature : str or int
        Name or position.
    lower, upper : float
        Either may be left out.

    Examples
    --------
    >>> Bounds("income", lower=0)
    Bounds('income', lower=0)
    """

    feature: FeatureKey
    lower: float = -inf
    upper: float = inf

    def __post_init__(self) -> None:
        lower = real_number(f"the lower bound of {self.feature!r}", self.lower)
        upper = real_number(f"the upper bound of {self.feature!r}", self.upper)
        if lower > upper or lower == inf or upper == -inf:
            raise InvalidInputError(
                f"Bounds of {self.feature!r}: the lower bound {lower:g} is above the upper "
                f"bound {upper:g}; expected lower <= upper with room for a finite value."
                if lower > upper
                else f"Bounds of {self.feature!r}: [{lower:g}, {upper:g}] holds no finite value."
            )

    def __repr__(self) -> str:
        ends = {"lower": self.lower, "upper": self.upper}
        return _call("Bounds", self.feature, **{k: v for k, v in ends.items() if abs(v) != inf})

    def conditions(self, features: Features) -> tuple[Rows, ...]:
        """``y_j <= upper`` and ``-y_j <= -lower``."""
        at, width = [features.number(self.feature, "Bounds")], len(features)
        above = Rows.on_features(at, width, new=-1, old=0, value=-self.lower)
        below = Rows.on_features(at, width, new=1, old=0, value=self.upper)
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
        return _call("MaxChange", self.feature, by=self.by)

    def conditions(self, features: Features) -> tuple[Rows, ...]:
        """``|y_j - x_j| <= by``."""
        at, width = [features.number(self.feature, "MaxChange")], len(features)
        return (
            Rows.on_features(at, width, new=1, old=-1, value=self.by),
            Rows.on_features(at, width, new=-1, old=1, value=self.by),
        )


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
        return _call("Linear", shown if isinstance(shown, Mapping) else shown.tolist(),
                     self.sense, self.value)  # fmt: skip

    def conditions(self, features: Features) -> tuple[Rows, ...]:
        """``sum coefficients_f * y_f <= value``, with signs turned for ">="."""
        if isinstance(self.coefficients, Mapping):
            row = np.zeros(len(features))
            for key, coefficient in self.coefficients.items():
                row[features.number(key, "Linear")] += coefficient
        else:
            row = finite_vector("Linear: coefficients", self.coefficients, len(features))
            for j in np.flatnonzero(row):
                features.number(int(j), "Linear")
        return (_comparison(row, np.zeros(len(features)), self.value, self.sense),)


@final
@dataclass(frozen=True, init=False, eq=False)
class Quadratic(Constraint):
    """A convex quadratic condition, ``(y - center)' matrix (y - center) + linear'y <= value``.

    An ellipsoid around `center`, for example; or a ball of radius r with the identity as
    matrix and ``value=r**2``.

    Parameters
    ----------
    matrix : array-like of shape (k, k)
        Symmetric positive semidefinite.
    value : float
    center : array-like of shape (k,), optional
        The origin by default.
    linear : array-like of shape (k,), optional
        Zero by default.
    features : sequence of str or int, optional
        The k features that the condition is about; all of them by default.

    Examples
    --------
    >>> ball = Quadratic([[1, 0], [0, 1]], value=4, center=[1, 1], features=["a", "b"])
    >>> ball
    Quadratic([[1.0, 0.0], [0.0, 1.0]], 4, center=[1.0, 1.0], features=['a', 'b'])
    """

    matrix: Floats
    value: float
    center: Floats
    linear: Floats
    features: tuple[FeatureKey, ...] | None
    root: Floats

    def __init__(
        self,
        matrix: ArrayLike,
        value: float,
        center: ArrayLike | None = None,
        linear: ArrayLike | None = None,
        features: Sequence[FeatureKey] | None = None,
    ) -> None:
        root = psd_factor("Quadratic: matrix", matrix)
        width = root.shape[1]
        middle = np.zeros(width) if center is None else center
        slope = np.zeros(width) if linear is None else linear
        if features is not None and len(features) != width:
            raise InvalidInputError(
                f"Quadratic: features has {len(features)} entries; expected {width}, one per "
                f"column of matrix."
            )
        finite_scalar("Quadratic: value", value)
        object.__setattr__(self, "matrix", read_only(np.array(matrix, dtype=float)))
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "center", finite_vector("Quadratic: center", middle, width))
        object.__setattr__(self, "linear", finite_vector("Quadratic: linear", slope, width))
        object.__setattr__(self, "features", None if features is None else tuple(features))
        object.__setattr__(self, "root", root)

    def __repr__(self) -> str:
        extras: dict[str, object] = {}
        if self.center.any():
            extras["center"] = self.center.tolist()
        if self.linear.any():
            extras["linear"] = self.linear.tolist()
        if self.features is not None:
            extras["features"] = [plain(key) for key in self.features]
        return _call("Quadratic", self.matrix.tolist(), self.value, **extras)

    def conditions(self, features: Features) -> tuple[Quadric, ...]:
        """``|G y - g|^2 + h'y <= c`` with ``G'G = matrix``."""
        width = self.root.shape[1]
        if self.features is None and width != len(features):
            raise InvalidInputError(
                f"Quadratic: matrix has {width} columns; expected {len(features)}, one per "
                f"feature. Name the features it is about with features=[...]."
            )
        keys = range(width) if self.features is None else self.features
        at = [features.number(key, "Quadratic") for key in keys]
        for j in at:
            if at.count(j) > 1:
                raise InvalidInputError(
                    f"Quadratic: features names {features.names[j]!r} twice; expected each "
                    f"feature once."
                )
        G = np.zeros((self.root.shape[0], len(features)))
        G[:, at] = self.root
        h = np.zeros(len(features))
        h[at] = self.linear
        return (Quadric(G, self.root @ self.center, h, float(self.value)),)


@final
@dataclass(frozen=True, init=False, repr=False)
class OneOf(Constraint):
    """Keep a feature of levels to some of them.

    Parameters
    ----------
    feature : str or int
        Name or position.
    levels : sequence
        The levels that a counterfactual may have.

    Examples
    --------
    >>> OneOf("job", ["clerk", "nurse"])
    OneOf('job', ['clerk', 'nurse'])
    """

    feature: FeatureKey
    levels: tuple[Any, ...]

    def __init__(self, feature: FeatureKey, levels: Iterable[Any]) -> None:
        listed: Any = levels
        if isinstance(levels, str) or not np.iterable(listed) or not list(listed):
            raise InvalidInputError(
                f"OneOf of {feature!r} got {levels!r}; expected a list of at least one level."
            )
        object.__setattr__(self, "feature", feature)
        object.__setattr__(self, "levels", tuple(plain(level) for level in levels))

    def __repr__(self) -> str:
        return _call("OneOf", self.feature, list(self.levels))

    def conditions(self, features: Features) -> tuple[LevelRule, ...]:
        """Name the positions of the levels."""
        at = features.position(self.feature)
        return (_level_rule(features[at], at, self.levels, negated=False, asked=repr(self)),)


@final
@dataclass(frozen=True)
class Expression(Constraint):
    """A condition written as text.

    Parameters
    ----------
    text : str
        Linear, such as ``"second_floor <= first_floor"`` or ``"income <= 1.2 *
        original(income)"``, where ``original(f)`` is the factual value; about levels, such as
        ``"housing != 'rent'"`` or ``"job in ['clerk', 'nurse']"``; or one where the other
        holds, ``"if student == 'yes' then age <= 30"``. Names with spaces go in `backticks`.

    Examples
    --------
    >>> Expression("second_floor <= first_floor")
    'second_floor <= first_floor'
    """

    text: str

    def __repr__(self) -> str:
        return repr(self.text)

    def conditions(self, features: Features) -> tuple[Condition, ...]:
        """Read the text and look its features up."""
        parsed = expressions.parse(self.text)
        if not isinstance(parsed, expressions.Promise):
            return (self._condition(parsed, features),)
        when = self._condition(parsed.when, features)
        if not isinstance(when, LevelRule):
            raise ConstraintSyntaxError(
                f"constraint {self.text!r}: what stands behind 'if' is about a number; expected a "
                f"test of levels, such as \"if student == 'yes' then age <= 30\"."
            )
        return (Implication(when, self._condition(parsed.then, features)),)

    def _condition(
        self, parsed: expressions.Comparison | expressions.LevelTest, features: Features
    ) -> Rows | LevelRule:
        if isinstance(parsed, expressions.LevelTest):
            return self._test(parsed.feature, parsed.levels, parsed.negated, features)
        form, sense = parsed
        if sense == "==" and len(form.new) == 1 and not form.old:
            ((name, factor),) = form.new.items()
            if not features.columns[self._position(name, features)].is_number:
                return self._test(name, (-form.constant / factor,), False, features)
        new = self._row(form.new, features)
        old = self._row(form.old, features)
        if not new.any():
            raise ConstraintSyntaxError(
                f"constraint {self.text!r} names no feature of the counterfactual; expected "
                f"at least one feature outside original(...)."
            )
        return _comparison(new, old, -form.constant, sense)

    def _test(
        self, name: str, levels: tuple[Any, ...], negated: bool, features: Features
    ) -> LevelRule:
        at = self._position(name, features)
        asked = f"constraint {self.text!r}"
        return _level_rule(features.columns[at], at, levels, negated=negated, asked=asked)

    def _row(self, named: Mapping[str, float], features: Features) -> Floats:
        row = np.zeros(len(features))
        for name, coefficient in named.items():
            self._position(name, features)
            row[features.number(name, f"constraint {self.text!r}")] += coefficient
        return row

    def _position(self, name: str, features: Features) -> int:
        try:
            return features.position(name)
        except UnknownFeatureError as error:
            raise UnknownFeatureError(f"constraint {self.text!r}: {error}") from None


def _level_rule(
    feature: Feature, at: int, levels: Sequence[Any], *, negated: bool, asked: str
) -> LevelRule:
    if feature.is_number:
        raise InvalidInputError(
            f"{asked}: feature {feature.name!r} is a number; expected one with levels. Compare "
            f"numbers with <=, >= or ==."
        )
    codes = set()
    for level in levels:
        code = feature.code(level)
        if code < 0:
            shown = ", ".join(map(repr, feature.levels[:8]))
            raise InvalidInputError(
                f"{asked}: {level!r} is no level of {feature.name!r}; expected one of: {shown}."
            )
        codes.add(code)
    every = set(range(len(feature.levels)))
    return LevelRule(at, frozenset(every - codes if negated else codes))


def as_constraint(item: Constraint | str) -> Constraint:
    """Take a constraint as it is and a string as an `Expression`."""
    if isinstance(item, str):
        return Expression(item)
    if isinstance(item, Constraint):
        return item
    raise InvalidInputError(
        f"constraint {item!r} has type {type(item).__name__}; expected a constraint such as "
        f"Freeze('age') or a string such as 'a <= b'."
    )


def _comparison(new: Floats, old: Floats, value: float, sense: str) -> Rows:
    sign = -1.0 if sense == ">=" else 1.0
    return Rows(
        read_only(sign * new[None, :]),
        read_only(sign * old[None, :]),
        read_only(np.array([sign * value])),
        equality=sense == "==",
    )


def _call(name: str, *positional: object, **named: object) -> str:
    shown = [repr(plain(value)) for value in positional]
    shown += [f"{key}={plain(value)!r}" for key, value in named.items()]
    return f"{name}({', '.join(shown)})"

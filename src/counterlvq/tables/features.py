"""What the columns are: their names, kinds, units and allowed values."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import date
from math import ceil, floor, inf, isnan
from typing import Any, SupportsIndex, final

import numpy as np
from numpy.typing import ArrayLike

from counterlvq.errors import InvalidInputError, NotSupportedError, UnknownFeatureError
from counterlvq.numeric.arrays import Floats, finite_vector, key_of, plain, real_number, told
from counterlvq.numeric.lazy import cached_property
from counterlvq.safe_text import shown_repr, shown_text
from counterlvq.tables.dates import FIRST_DAY, LAST_DAY, date_of, days_of, is_date
from counterlvq.tables.decimals import found_decimals
from counterlvq.tables.declarations import (
    Pairs,
    checked_change,
    checked_label,
    checked_level_labels,
    checked_price,
    checked_seen,
    checked_thousands,
    checked_zeros,
    speaks_of_year,
)
from counterlvq.tables.feature_checks import (
    MOST_DECIMALS,
    STEPS,
    checked_decimals,
    checked_end,
    checked_kind,
    checked_levels,
    checked_list,
    checked_mapping,
    checked_order,
    checked_pair,
    checked_step,
    checked_steps,
    checked_unit,
)
from counterlvq.tables.frames import as_frame, numbers_or_days, settled
from counterlvq.tables.quantiles import seen_range
from counterlvq.tables.values import closest, is_missing, warn_of_gaps
from counterlvq.tables.views import FrameView
from counterlvq.types import Kind

__all__ = ["Feature", "FeatureKey", "Features"]

FeatureKey = str | SupportsIndex

# What the arguments of `Features.refined` say of a column, and what a column takes it as.
_SAID: Mapping[str, tuple[str, str]] = {
    "kinds": ("kind", "a kind such as 'whole'"),
    "levels": ("levels", "a list of levels"),
    "steps": ("step", "a step"),
    "units": ("unit", "a unit such as 'EUR'"),
    "decimals": ("decimals", "a number of decimals"),
    "labels": ("label", "a text"),
    "level_labels": ("level_labels", "a mapping from level to text"),
    "changes": ("change", "a way to change such as 'increase'"),
    "prices": ("price", "a price"),
    "seen": ("seen", "a pair (lowest, highest)"),
    "thousands": ("thousands", "True or False"),
    "zeros": ("zeros", "True or False"),
}
# What is said of truth values without labels, by the position of what it means.
_STATES = {"no": 0, "false": 0, "yes": 1, "true": 1}
# From here on all floats are whole numbers.
_WHOLE = 2.0**52


@final
@dataclass(frozen=True, init=False, repr=False)
class Feature:
    """One column of the user's table.

    Parameters
    ----------
    name : str
    kind : {"real", "whole", "categorical", "boolean", "date"}, optional
        Real by default; categorical where `levels` are given and whole where `step` is. A date is
        a whole number of days since the first of January 1970 for models, costs and constraints.
    levels : sequence, optional
        What a categorical feature may be: distinct strings, numbers or other values that hash.
        Another level costs the difference of the two times the weight where all are numbers.
    step : int, optional
        A number that changes becomes a multiple of this, a whole number of at least 1. What stays
        as it is may lie anywhere; where that has decimals, say ``kind="real"`` too.
    unit : str, optional
        As it is to be read behind a number, such as "EUR".
    lower, upper : float or date, optional
        The allowed range of a number or a date; None for an open end.
    decimals : int, optional
        A real number that changes gets at most so many decimals.
    steps : {"of value", "of change"}, default "of value"
        Whether values are multiples of `step` (or have so many `decimals`), or changes are: from
        9,683 by steps of 50 to 9,733. Whole numbers and dates stay whole: where what stands in
        for a missing one is not, values are multiples.
    ordered : bool, default False
        Whether the levels stand in order: another one then costs the weight for each step along
        the list.
    label : str, optional
        What people read instead of the name, such as "net monthly income".
    true, false : str, optional
        What people read of a boolean feature, such as "with a guarantor".
    level_labels : mapping from level to str, optional
        What people read instead of a level.
    change : {"any", "increase", "decrease", "freeze"}
        Which way it may change. An `Explainer` keeps it like `Increase`, `Decrease` and `Freeze`.
    price : float, or mapping from pair of levels to float, optional
        What another level costs, as in the `switches` of a cost, which go first.
    seen : pair of float or date, optional
        The range that was seen in data. A number changes to a value in it only; one that lies
        outside may stay. Where `lower` or `upper` is given, that end is not used.
    thousands : bool, optional
        Whether thousands are set off where people read a number. By default they are, but for
        years: numbers of four digits, without a unit, of which the name or the label speaks of a
        year.
    zeros : bool, default True
        Whether people read the `decimals` that are zeros too: 20.50 rather than 20.5. Of decimals
        that `Features.from_frame` has seen and nobody has declared, they do not.

    Attributes
    ----------
    kind : Kind
        Equal to the strings above.

    Examples
    --------
    >>> Feature("income", unit="EUR", lower=0, decimals=2)
    Feature('income', unit='EUR', lower=0, decimals=2)
    >>> Feature("job", levels=["clerk", "nurse"]).kind == "categorical"
    True
    """

    name: str
    kind: Kind
    levels: tuple[Any, ...]  # of a category; (False, True) of a boolean; () of a number
    step: int
    unit: str
    lower: float
    upper: float
    decimals: int | None
    steps: str
    ordered: bool
    label: str
    level_labels: tuple[str, ...]  # one for each level, "" for those without; () if none has one
    change: str
    price: float | Pairs | None
    seen: tuple[float, float] | None
    thousands: bool | None
    zeros: bool

    def __init__(
        self,
        name: str,
        kind: Kind | str | None = None,
        *,
        levels: Iterable[Any] | None = None,
        step: int | None = None,
        unit: str = "",
        lower: float | date | str | None = None,
        upper: float | date | str | None = None,
        decimals: int | None = None,
        steps: str = STEPS[0],
        ordered: bool = False,
        label: str = "",
        true: str = "",
        false: str = "",
        level_labels: Mapping[Any, str] | None = None,
        change: str = "any",
        price: float | Mapping[tuple[Any, Any], float] | Pairs | None = None,
        seen: tuple[Any, Any] | None = None,
        thousands: bool | None = None,
        zeros: bool = True,
    ) -> None:
        if not isinstance(name, str):
            raise InvalidInputError(
                f"a feature is named {name!r} of type {type(name).__name__}; expected a string."
            )
        if kind is None:
            kind = Kind.CATEGORICAL if levels is not None else Kind.REAL
            kind = Kind.WHOLE if step is not None else kind
        known = checked_kind(name, kind)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "kind", known)
        object.__setattr__(self, "levels", checked_levels(name, known, levels))
        object.__setattr__(self, "step", checked_step(name, known, step))
        object.__setattr__(self, "unit", checked_unit(name, unit))
        object.__setattr__(self, "lower", checked_end(name, known, "lower", lower, -inf))
        object.__setattr__(self, "upper", checked_end(name, known, "upper", upper, inf))
        object.__setattr__(self, "decimals", checked_decimals(name, known, decimals, step))
        object.__setattr__(self, "steps", checked_steps(name, known, self.grid, steps))
        object.__setattr__(self, "ordered", checked_order(name, known, ordered))
        self._check_range()
        words = checked_level_labels(
            name, known, self.levels, self.code, level_labels, (false, true)
        )
        object.__setattr__(self, "label", checked_label(name, "the label", label))
        object.__setattr__(self, "level_labels", words)
        object.__setattr__(self, "change", checked_change(name, self.is_number, change))
        object.__setattr__(self, "price", checked_price(name, self.is_number, self.code, price))
        object.__setattr__(self, "seen", checked_seen(name, self.is_number, seen))
        object.__setattr__(self, "thousands", checked_thousands(name, thousands))
        object.__setattr__(self, "zeros", checked_zeros(name, zeros))

    @property
    def spoken(self) -> str:
        """What people read: the label, or else the name."""
        return self.label or self.name

    def words(self, level: Any) -> str:
        """Return what people read of a level: its label, or else the level itself.

        Examples
        --------
        >>> Feature("home", levels=["own", "rent"], level_labels={"rent": "a rented flat"}).words(
        ...     "rent"
        ... )
        'a rented flat'
        """
        at = self.code(level) if self.level_labels else -1
        return (self.level_labels[at] if at >= 0 else "") or str(level)

    def groups(self, value: float) -> bool:
        """Whether thousands of a value are set off where people read it; of years they are not.

        Examples
        --------
        >>> Feature("year_built").groups(1973), Feature("income").groups(1973)
        (False, True)
        """
        if self.thousands is not None:
            return self.thousands
        is_year = not self.unit and 1000 <= value < 3000
        return not (is_year and (speaks_of_year(self.name) or speaks_of_year(self.label)))

    @property
    def ends(self) -> tuple[float | date, float | date]:
        """The allowed range as people write it: of a date, dates where it has an end.

        Examples
        --------
        >>> Feature("paid", "date", lower="2024-05-31").ends[0]
        datetime.date(2024, 5, 31)
        """
        low, high = (
            date_of(end) if self.kind is Kind.DATE and abs(end) < inf else end
            for end in (self.lower, self.upper)
        )
        return low, high

    @property
    def is_number(self) -> bool:
        """Whether values are numbers that a change is measured in: real, whole or days."""
        return self.kind in (Kind.REAL, Kind.WHOLE, Kind.DATE)

    @property
    def has_numbers(self) -> bool:
        """Whether these are levels that are finite numbers, such as 12, 24 and 60 months."""
        return self.kind is Kind.CATEGORICAL and all(
            isinstance(level, int | float) and not isinstance(level, bool) and abs(level) < inf
            for level in self.levels
        )

    @property
    def is_real(self) -> bool:
        """Whether any number will do."""
        return self.kind is Kind.REAL and self.lattice is None

    @property
    def lattice(self) -> tuple[int, int] | None:
        """Whole numbers s and p of a number whose values are multiples of s / p; None for any."""
        if not self.is_number or (self.kind is Kind.REAL and self.step == 1):
            return None if self.decimals is None else (1, 10**self.decimals)
        return self.step, 1

    @property
    def grid(self) -> float | None:
        """Distance of neighbouring values, all of them multiples of it; None without a grid."""
        return None if self.lattice is None else self.lattice[0] / self.lattice[1]

    @property
    def may_stray(self) -> bool:
        """Whether a value of a table may lie off the grid that changed values are on."""
        is_whole = self.kind in (Kind.WHOLE, Kind.DATE) and self.step == 1
        return self.grid is not None and self.steps == STEPS[0] and not is_whole

    @property
    def range(self) -> tuple[float, float]:
        """The allowed range; that of all tables where nothing limits a date."""
        if self.kind is not Kind.DATE:
            return self.lower, self.upper
        return max(self.lower, FIRST_DAY), min(self.upper, LAST_DAY)

    def number(self, value: Any) -> float | None:
        """Read a value of a number or a date; None for one that is neither.

        Examples
        --------
        >>> Feature("opened", "date").number("1970-01-11"), Feature("age").number("10")
        (10.0, None)
        """
        if self.kind is Kind.DATE and (is_date(value) or isinstance(value, str)):
            days = days_of(value)
            return None if isnan(days) else days
        if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
            return None
        number = float(value)
        return number if abs(number) < inf else None

    def code(self, value: Any) -> int:
        """Position of a value among the levels; -1 for a value that is none of them."""
        try:
            return self._codes.get(key_of(value), -1)
        except TypeError:  # it does not hash, or holds something that does not
            return -1

    def meant(self, value: Any) -> int:
        """Position of a level, or of the one that people read as this text; -1 for neither.

        Examples
        --------
        >>> home = Feature("home", levels=["own", "rent"], level_labels={"rent": "a rented flat"})
        >>> home.meant("rent"), home.meant("a rented flat"), home.meant("a castle")
        (1, 1, -1)
        >>> Feature("insured", "boolean").meant("yes")
        1
        """
        at = self.code(value)
        if at >= 0 or not isinstance(value, str):
            return at
        text = value.strip()
        if text in self.level_labels:  # "" is the label of levels without one
            is_clear = bool(text) and self.level_labels.count(text) == 1
            return self.level_labels.index(text) if is_clear else -1
        return _STATES.get(text.casefold(), -1) if self.kind is Kind.BOOLEAN else -1

    @cached_property
    def _codes(self) -> Mapping[Hashable, int]:
        return {key_of(level): k for k, level in enumerate(self.levels)}

    def __repr__(self) -> str:
        shown = [repr(self.name)]
        # A step alone stands for whole numbers.
        is_bare = self.kind in (Kind.WHOLE, Kind.REAL) and (self.kind is Kind.REAL) == (
            self.step != 1
        )
        if self.kind in (Kind.BOOLEAN, Kind.DATE) or is_bare:
            shown.append(repr(str(self.kind)))
        if self.kind is Kind.CATEGORICAL:
            shown.append(f"levels={list(self.levels)!r}")
        if self.step != 1:
            shown.append(f"step={self.step}")
        if self.unit:
            shown.append(f"unit={self.unit!r}")
        ends = {"lower": self.lower, "upper": self.upper}
        shown += [
            f"{end}={self._shown_end(value)!r}" for end, value in ends.items() if abs(value) != inf
        ]
        if self.decimals is not None:
            shown.append(f"decimals={self.decimals}")
        if self.steps != STEPS[0]:
            shown.append(f"steps={self.steps!r}")
        if self.ordered:
            shown.append("ordered=True")
        shown += self._shown_words()
        if self.change != "any":
            shown.append(f"change={self.change!r}")
        if self.price is not None:
            shown.append(f"price={self.switches!r}")
        if self.seen is not None:
            ends_seen = (int(end) if float(end).is_integer() else end for end in self.seen)
            seen = tuple(map(self._shown_end, ends_seen))
            shown.append(f"seen={seen!r}")
        if self.thousands is not None:
            shown.append(f"thousands={self.thousands}")
        if not self.zeros:
            shown.append("zeros=False")
        return f"Feature({', '.join(shown)})"

    def _shown_end(self, value: float) -> Any:
        if self.kind is Kind.DATE and abs(value) != inf:
            return date_of(value).isoformat()
        return plain(value)

    def _shown_words(self) -> list[str]:
        shown = [f"label={self.label!r}"] if self.label else []
        if self.kind is Kind.BOOLEAN:
            pairs = zip(("false", "true"), self.level_labels, strict=False)
            return shown + [f"{name}={text!r}" for name, text in pairs if text]
        named = {level: t for level, t in zip(self.levels, self.level_labels, strict=False) if t}
        return shown + ([f"level_labels={named!r}"] if named else [])

    @property
    def switches(self) -> float | dict[tuple[Any, Any], float] | None:
        """The price, as the `switches` of a cost take it; None without one."""
        if isinstance(self.price, tuple):
            return {(before, after): price for before, after, price in self.price}
        return self.price

    def _check_range(self) -> None:
        lower = real_number(f"feature {self.name!r}: lower", self.lower)
        upper = real_number(f"feature {self.name!r}: upper", self.upper)
        if (lower, upper) == (-inf, inf):
            return
        if not self.is_number:
            raise InvalidInputError(
                f"feature {self.name!r} is {self.kind} and has a range; expected one for numbers "
                f"only. List the levels that it may have instead."
            )
        if lower > upper or lower == inf or upper == -inf:
            raise InvalidInputError(
                f"feature {self.name!r}: the range [{lower:g}, {upper:g}] holds no finite number; "
                f"expected lower <= upper."
            )
        if self.grid is not None and self.steps == STEPS[0] and lower > -inf and upper < inf:
            # In units of the grid, where decimals such as 0.1 are whole numbers again; so far out
            # that floats are whole numbers themselves, every end is one.
            ends = [end / self.grid for end in (lower, upper)]
            is_near = max(map(abs, ends)) < _WHOLE
            if is_near and ceil(round(ends[0], 9)) > floor(round(ends[1], 9)):
                raise InvalidInputError(
                    f"feature {self.name!r}: the range [{lower:g}, {upper:g}] holds no multiple "
                    f"of {self.grid:g}; expected room for one."
                )


@final
@dataclass(frozen=True, init=False, repr=False)
class Features:
    """The columns of the user's table, in order.

    Parameters
    ----------
    columns : iterable of str or Feature
        One per column, with distinct names. A name alone stands for a real number.

    Attributes
    ----------
    columns : tuple of Feature
    names : tuple of str

    Examples
    --------
    >>> features = Features(["age", Feature("job", levels=["clerk", "nurse"])])
    >>> features.position("job"), features.position(0)
    (1, 0)
    >>> features["job"].levels
    ('clerk', 'nurse')
    """

    columns: tuple[Feature, ...]
    names: tuple[str, ...]
    _table: tuple[str, ...] = field(compare=False)  # in which positions count

    def __init__(self, columns: Iterable[str | Feature]) -> None:
        listed = tuple(columns)
        for column in listed:
            if not isinstance(column, str | Feature):
                raise InvalidInputError(
                    f"feature_names holds {column!r} of type {type(column).__name__}; expected "
                    f"strings only. Convert column labels with str() first."
                )
        described = tuple(Feature(part) if isinstance(part, str) else part for part in listed)
        names = tuple(feature.name for feature in described)
        repeated = sorted(name for name, count in Counter(names).items() if count > 1)
        if repeated:
            raise InvalidInputError(
                f"feature_names repeats {repeated[0]!r}; expected one distinct name per feature."
            )
        object.__setattr__(self, "columns", described)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "_table", names)

    @classmethod
    def numbered(cls, count: int) -> Features:
        """Name `count` columns x0, x1, ... as scikit-learn does."""
        return cls(f"x{j}" for j in range(count))

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        only: Sequence[str] | None = None,
        *,
        kinds: Mapping[str, Kind | str] | None = None,
        levels: Mapping[str, Iterable[Any]] | None = None,
        steps: Mapping[str, int] | None = None,
        units: Mapping[str, str] | None = None,
        ranges: Mapping[str, tuple[Any, Any]] | tuple[Any, Any] | str | None = "seen",
        decimals: Mapping[str, int] | str | None = None,
        labels: Mapping[str, str] | None = None,
        of_change: Iterable[str] = (),
        ordered: Iterable[str] = (),
    ) -> Features:
        """Describe the columns of a DataFrame by their dtypes and the values that are there.

        Floats are real numbers, integers whole ones, booleans boolean; categories and text are
        categorical, with the levels of the dtype where it has its own and the distinct values
        of the column otherwise. The range of a column of numbers is the one that is seen in it,
        if it holds different values: from the lowest to the highest value that ten rows reach, or
        the least to the largest in a table of fewer than twenty. Missing values are passed over;
        a warning says how many. Whatever a table does not say can be added.

        Parameters
        ----------
        frame : DataFrame of pandas or polars, or Arrow table
        only : sequence of str, optional
            The columns to describe; all of them by default.
        kinds, levels, steps, units, labels : mapping from name to value, optional
            As the arguments of `Feature`.
        decimals : None, "seen", or mapping from name to number
            None (the default), those that are seen in the table, or those that are listed. Seen
            they are in columns of which neither the kind nor the step is given, where twenty rows
            or more have a float and none has more than six decimals; whole ones among gaps are
            whole numbers. They go well with `least_changes`: what a grid leaves over is made up
            for by small changes of other columns.
        ranges : "seen", None, pair (lower, upper), or mapping from name to such a pair
            The ranges that are seen in the table (the default), none, one for all columns of
            numbers (dates are none), or those that are listed and no others; None in a pair is an
            open end.
        of_change, ordered : iterable of names, optional
            The columns whose steps are steps of change, and those whose levels are in order.

        Returns
        -------
        Features

        Examples
        --------
        >>> import pandas as pd
        >>> table = pd.DataFrame({"income": [2400.0], "cards": [2], "job": ["nurse"]})
        >>> features = Features.from_frame(
        ...     table, units={"income": "EUR"}, levels={"job": ["clerk", "nurse"]}, ranges=None
        ... )
        >>> for feature in features:
        ...     print(feature)
        Feature('income', unit='EUR')
        Feature('cards', 'whole')
        Feature('job', levels=['clerk', 'nurse'])
        >>> Features.from_frame(pd.DataFrame({"age": [19, 64, 33]}))["age"]
        Feature('age', 'whole', seen=(19, 64))
        """
        table = as_frame(settled(frame))
        if table is None:
            raise NotSupportedError(
                f"the table is a {type(frame).__name__}; expected a DataFrame of pandas or "
                f"polars, or an Arrow table. Write Features([...]) out for other tables."
            )
        names = Features(table.names if only is None else only)
        wished = dict(checked_mapping("kinds", kinds, _SAID["kinds"][1]))
        listed = checked_mapping("levels", levels, _SAID["levels"][1])
        wished.update(dict.fromkeys(listed, Kind.CATEGORICAL))
        for name in wished:
            names.position(name)
        if isinstance(ranges, str) and ranges != "seen":
            raise InvalidInputError(
                f"ranges is {ranges!r}; expected 'seen', None, or a mapping from name to pair."
            )
        if isinstance(decimals, str) and decimals != "seen":
            raise InvalidInputError(
                f"decimals is {decimals!r}; expected 'seen', None, or a mapping from name to "
                f"number."
            )
        stated = None if isinstance(ranges, str) else ranges
        found = cls(_read_column(table, name, wished.get(name)) for name in names.names)
        if isinstance(decimals, str):
            said = {*wished, *checked_mapping("steps", steps, _SAID["steps"][1])}
            found = cls(f if f.name in said else _with_decimals(table, f) for f in found)
            decimals = None
        refined = found.refined(
            levels=levels,
            steps=steps,
            units=units,
            ranges=stated,
            decimals=decimals,
            labels=labels,
            of_change=of_change,
            ordered=ordered,
        )
        if not isinstance(ranges, str):
            return refined
        gaps, pairs = {}, []
        for feature in refined:
            called = f"column {feature.name!r}"
            if not feature.is_number:
                gaps[called] = sum(map(is_missing, table.values(feature.name)))
                continue
            values = numbers_or_days(table, feature.name, feature.kind)
            gaps[called] = int(np.isnan(values).sum())
            pairs.append((feature.name, seen_range(values)))
        warn_of_gaps("Features.from_frame", gaps, len(table))
        return refined.refined(seen={name: pair for name, pair in pairs if pair is not None})

    def refined(
        self,
        *,
        kinds: Mapping[str, Kind | str] | None = None,
        levels: Mapping[str, Iterable[Any]] | None = None,
        steps: Mapping[str, int] | None = None,
        units: Mapping[str, str] | None = None,
        ranges: Mapping[str, tuple[Any, Any]] | tuple[Any, Any] | None = None,
        decimals: Mapping[str, int] | None = None,
        labels: Mapping[str, str] | None = None,
        level_labels: Mapping[str, Mapping[Any, str]] | None = None,
        changes: Mapping[str, str] | None = None,
        prices: Mapping[str, float | Mapping[tuple[Any, Any], float] | Pairs] | None = None,
        seen: Mapping[str, tuple[float, float] | None] | None = None,
        thousands: Mapping[str, bool] | None = None,
        zeros: Mapping[str, bool] | None = None,
        of_change: Iterable[str] = (),
        ordered: Iterable[str] = (),
    ) -> Features:
        """Return the same columns with more said about some of them.

        A real number that is given steps stays one, off its steps too.

        Parameters
        ----------
        kinds, levels, steps, units, ranges, decimals : mapping from name to value, optional
        labels, level_labels, changes, prices, seen, thousands, zeros : mapping, optional
            As the arguments of `Feature`; a range is a pair (lower, upper), with None for an open
            end. One pair alone as `ranges` is the range of all columns of numbers but dates.
        of_change, ordered : iterable of names, optional
            The columns whose steps are steps of change, and those whose levels are in order.

        Examples
        --------
        >>> Features(["age", "income"]).refined(kinds={"age": "whole"}, units={"income": "EUR"})
        Features([Feature('age', 'whole'), Feature('income', unit='EUR')])
        """
        said: dict[str, Any] = {
            "kinds": kinds,
            "levels": levels,
            "steps": steps,
            "units": units,
            "decimals": decimals,
            "labels": labels,
            "level_labels": level_labels,
            "changes": changes,
            "prices": prices,
            "seen": seen,
            "thousands": thousands,
            "zeros": zeros,
        }
        more: list[dict[str, Any]] = [{} for _ in self.columns]
        for argument, given in said.items():
            own, what = _SAID[argument]
            for name, value in checked_mapping(argument, given, what).items():
                more[self.position(name)][own] = value
        for name in checked_list("of_change", of_change):
            more[self.position(name)]["steps"] = STEPS[1]
        for name in checked_list("ordered", ordered):
            more[self.position(name)]["ordered"] = True
        for name, pair in self._ranges(ranges).items():
            lower, upper = checked_pair(name, pair)
            more[self.position(name)].update(lower=lower, upper=upper)
        return Features(
            _changed(feature, change) for feature, change in zip(self.columns, more, strict=True)
        )

    def _ranges(
        self, given: Mapping[str, tuple[Any, Any]] | tuple[Any, Any] | None
    ) -> Mapping[str, tuple[Any, Any]]:
        """Read ranges by name, or the one pair that is the range of all columns of numbers."""
        if isinstance(given, tuple) and len(given) == 2:
            counted = (feature for feature in self.columns if feature.is_number)
            return {f.name: given for f in counted if f.kind is not Kind.DATE}
        what = "a pair (lower, upper), or one such pair for all columns of numbers"
        return checked_mapping("ranges", given, what)

    def within(self, table: tuple[str, ...]) -> Features:
        """Return the same columns as some of those of a wider table.

        A position is then one in that table, as whoever has its rows counts them.

        Examples
        --------
        >>> features = Features(["age", "income"]).within(("id", "age", "income"))
        >>> features.position(1), features[2].name
        (0, 'income')
        """
        out = copy(self)
        object.__setattr__(out, "_table", table)
        return out

    def sees(self, key: FeatureKey) -> bool:
        """Whether a column of the table is one of these; others do not exist or never change."""
        name = key if isinstance(key, str) else self._table[self._place(key)]
        return name in self._places or name not in self._table

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {name: j for j, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        """Whether a feature has this name, or is this one."""
        return name in self._places if isinstance(name, str) else name in self.columns

    def __iter__(self) -> Iterator[Feature]:
        return iter(self.columns)

    def __getitem__(self, key: FeatureKey) -> Feature:
        return self.columns[self.position(key)]

    def __repr__(self) -> str:
        shown = ", ".join(
            repr(part.name if part == Feature(part.name) else part) for part in self.columns
        )
        return f"Features([{shown}])"

    def position(self, key: FeatureKey) -> int:
        """Turn a name or a position into a column number."""
        if isinstance(key, str):
            return self._position_of_name(key)
        return self._position_of_name(self._table[self._place(key)])

    def _place(self, key: SupportsIndex) -> int:
        """Check a position in the table."""
        try:
            position = operator.index(key)
        except TypeError:
            raise UnknownFeatureError(
                f"feature {key!r} has type {type(key).__name__}; expected a feature name or a "
                f"position (an integer)."
            ) from None
        count = len(self._table)
        if not -count <= position < count:
            raise UnknownFeatureError(
                f"feature {told(position)} does not exist; expected a position from 0 to "
                f"{count - 1}, for {count} features."
            )
        return position

    def number(self, key: FeatureKey, asked: str) -> int:
        """As `position`, for a feature that has to be a number; `asked` says by whom."""
        position = self.position(key)
        feature = self.columns[position]
        if not feature.is_number:
            level = feature.levels[0]
            raise InvalidInputError(
                f"{asked}: feature {feature.name!r} is {feature.kind}; expected a number. Levels "
                f'are compared as in "{feature.name} != {level!r}", and kept with Freeze.'
            )
        return position

    def _position_of_name(self, name: str) -> int:
        if name in self._places:
            return self._places[name]
        if name in self._table:
            raise UnknownFeatureError(
                f"feature {name!r} is a column that the model does not see: no answer changes "
                f"it, and its value is not looked at; expected one that it sees. Check it before."
            ) from None
        close = closest(name, self.names)
        shown = ", ".join(map(shown_text, self.names[:8])) + (", ..." if len(self) > 8 else "")
        hint = f" Did you mean {close!r}?" if close is not None else ""
        raise UnknownFeatureError(
            f"feature {shown_repr(name)} does not exist; expected one of: {shown}.{hint}"
        ) from None

    def vector(self, name: str, value: ArrayLike | Mapping[str, float]) -> Floats:
        """Read one row: an array in column order, or a mapping from name to value."""
        if isinstance(value, Mapping):
            for key in value:
                self.position(key)
            missing = [feature for feature in self.names if feature not in value]
            if missing:
                raise InvalidInputError(
                    f"{name} lacks the feature(s) {', '.join(map(repr, missing))}; expected a "
                    f"value for each of the {len(self)} features."
                )
            value = [plain(value[feature]) for feature in self.names]
        array = value if isinstance(value, np.ndarray) else np.asarray(value)
        if array.ndim == 2 and array.shape[0] == 1:
            array = array[0]
        return finite_vector(name, array, len(self))


def _read_column(table: FrameView, name: str, wished: Kind | str | None) -> Feature:
    if name not in table.names:
        Features(table.names).position(name)  # says which names there are
    kind = table.kind(name) if wished is None else checked_kind(name, wished)
    if kind is None:
        raise NotSupportedError(
            f"column {told(name)} has the dtype {table.dtype(name)} and cannot be read as numbers, "
            f"booleans, dates or levels. Convert it, to seconds for example, or leave it out "
            f"with only=[...] if the model does not see it."
        )
    if kind is not Kind.CATEGORICAL:
        decimals = table.declared_decimals(name) if kind is Kind.REAL else None
        has_grid = decimals is not None and 0 <= decimals <= MOST_DECIMALS
        return Feature(name, kind, decimals=decimals if has_grid else None)
    return Feature(name, kind, levels=table.levels(name))


def _with_decimals(table: FrameView, feature: Feature) -> Feature:
    """Add the decimals that the floats of a column have."""
    if not feature.is_real:
        return feature
    values = table.numbers(feature.name)
    found = found_decimals(values)
    if found is None:
        return feature
    # Of whole numbers among which some are missing, tables make floats.
    is_whole = found == 0 and bool(np.isnan(values).any())
    if is_whole:
        return Feature(feature.name, Kind.WHOLE)
    return Feature(feature.name, decimals=found, zeros=found == 0)  # without decimals, none show


def _changed(feature: Feature, change: dict[str, Any]) -> Feature:
    if not change:
        return feature
    # What belongs to another kind goes when the kind does.
    kind = change.get("kind", feature.kind)
    if "kind" not in change and "levels" in change:
        kind = Kind.CATEGORICAL
    if "kind" not in change and "step" in change and not feature.is_number:
        kind = Kind.WHOLE
    known = checked_kind(feature.name, kind)
    kept: dict[str, Any] = {"kind": known, "unit": feature.unit, "label": feature.label}
    kept["thousands"] = feature.thousands
    if known is feature.kind or (known in (Kind.REAL, Kind.WHOLE) and feature.is_number):
        kept |= {"lower": feature.lower, "upper": feature.upper, "seen": feature.seen}
        kept["change"] = feature.change
    if known is feature.kind:
        kept |= {"steps": feature.steps, "ordered": feature.ordered}
        # Of a real number either is said, and what is said last counts.
        kept |= {"decimals": feature.decimals} if "step" not in change else {}
        # Decimals that are declared are shown, whatever those were that had been seen.
        kept |= {"zeros": feature.zeros} if not {"step", "decimals"} & change.keys() else {}
        has_step = feature.step != 1 and "decimals" not in change
        kept |= {"step": feature.step} if has_step else {}
        kept |= {"levels": feature.levels} if known is Kind.CATEGORICAL else {}
    if known is feature.kind and not feature.is_number and "levels" not in change:
        named = zip(feature.levels, feature.level_labels, strict=False)
        kept |= {"price": feature.price, "level_labels": dict(named) or None}
    return Feature(feature.name, **(kept | change))

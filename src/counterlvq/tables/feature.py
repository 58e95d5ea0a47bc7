"""What one column is: its name, kind, unit and allowed values."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from math import ceil, floor, inf, isnan
from typing import Any, final

import numpy as np

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import key_of, plain, real_number
from counterlvq.numeric.lazy import cached_property
from counterlvq.tables.dates import FIRST_DAY, LAST_DAY, date_of, days_of, is_date
from counterlvq.tables.declarations import (
    Pairs,
    checked_change,
    checked_label,
    checked_level_labels,
    checked_phrases,
    checked_price,
    checked_seen,
    checked_thousands,
    checked_zeros,
    speaks_of_year,
)
from counterlvq.tables.feature_checks import (
    STEPS,
    checked_decimals,
    checked_end,
    checked_kind,
    checked_levels,
    checked_order,
    checked_step,
    checked_steps,
    checked_unit,
    is_part,
    parts_of,
)
from counterlvq.types import Kind

__all__ = ["Feature"]

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
        Real by default; categorical where `levels` are given and whole where a whole `step` is. A
        date is a whole number of days since the first of January 1970 for models, costs and
        constraints.
    levels : sequence, optional
        What a categorical feature may be: distinct strings, numbers or other values that hash.
        Another level costs the difference of the two times the weight where all are numbers.
    step : int or float, optional
        A number that changes becomes a multiple of this: a whole number of at least 1, or of real
        numbers a part such as 0.5. What stays as it is may lie anywhere; where that has decimals
        and the step has none, say ``kind="real"`` too.
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
        Levels go up and down if they are `ordered` or numbers.
    price : float, or mapping from pair of levels to float, optional
        What another level costs, as in the `switches` of a cost, which go first.
    seen : pair of float or date, optional
        The range that was seen in data. A number changes to a value in it only; one that lies
        outside may stay, or come nearer to it. Where `lower` or `upper` is given, that end is not
        used.
    thousands : bool, optional
        Whether thousands are set off where people read a number. By default they are, but for
        years: numbers of four digits, without a unit, of which the name or the label speaks of a
        year.
    zeros : bool, default True
        Whether people read the `decimals` that are zeros too: 20.50 rather than 20.5. Of decimals
        that `Features.from_frame` has seen and nobody has declared, they do not.

    phrases : bool, default False
        Whether `level_labels`, of which there is one for each level, are whole phrases such as
        "with a guarantor": texts then say "it were with a guarantor". Those of booleans always are.

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
    step: int | float
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
    phrases: bool

    def __init__(
        self,
        name: str,
        kind: Kind | str | None = None,
        *,
        levels: Iterable[Any] | None = None,
        step: float | None = None,
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
        phrases: bool = False,
    ) -> None:
        if not isinstance(name, str):
            raise InvalidInputError(
                f"a feature is named {name!r} of type {type(name).__name__}; expected a string."
            )
        if kind is None:
            kind = Kind.CATEGORICAL if levels is not None else Kind.REAL
            kind = Kind.WHOLE if step is not None and not is_part(step) else kind
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
        has_order = self.is_number or self.ranks is not None
        object.__setattr__(self, "change", checked_change(name, has_order, change))
        object.__setattr__(self, "price", checked_price(name, self.is_number, self.code, price))
        object.__setattr__(self, "seen", checked_seen(name, self.is_number, seen))
        object.__setattr__(self, "thousands", checked_thousands(name, thousands))
        object.__setattr__(self, "zeros", checked_zeros(name, zeros))
        object.__setattr__(self, "phrases", checked_phrases(name, known, words, phrases))

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

    @property
    def has_phrases(self) -> bool:
        """Whether each level has a whole phrase, such as "with a guarantor".

        Examples
        --------
        >>> Feature("guarantor", "boolean", true="with one", false="without").has_phrases
        True
        """
        is_meant = self.phrases or self.kind is Kind.BOOLEAN
        return is_meant and bool(self.level_labels) and all(self.level_labels)

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
    def ranks(self) -> tuple[float, ...] | None:
        """Where levels stand in their order: the list, or their numbers; None without one."""
        if self.ordered:
            return tuple(map(float, range(len(self.levels))))
        return tuple(map(float, self.levels)) if self.has_numbers else None

    @property
    def is_real(self) -> bool:
        """Whether any number will do."""
        return self.kind is Kind.REAL and self.lattice is None

    @property
    def lattice(self) -> tuple[int, int] | None:
        """Whole numbers s and p of a number whose values are multiples of s / p; None for any."""
        if not self.is_number or (self.kind is Kind.REAL and self.step == 1):
            return None if self.decimals is None else (1, 10**self.decimals)
        return parts_of(self.step)

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
        first, last = self.widest_range
        return max(self.lower, first), min(self.upper, last)

    @property
    def widest_range(self) -> tuple[float, float]:
        """The range without what is allowed: that of all tables, of a date."""
        return (FIRST_DAY, LAST_DAY) if self.kind is Kind.DATE else (-inf, inf)

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
        plain_one = {"thousands": None, "zeros": True, "phrases": False}
        said = {name: getattr(self, name) for name in plain_one}
        shown += [f"{name}={value}" for name, value in said.items() if value is not plain_one[name]]
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

"""What the columns of a table are, by name and by position, and how a frame tells it."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, SupportsIndex, final

import numpy as np
from numpy.typing import ArrayLike

from counterlvq.errors import InvalidInputError, NotSupportedError, UnknownFeatureError
from counterlvq.numeric.arrays import Floats, finite_vector, plain, told
from counterlvq.numeric.lazy import cached_property
from counterlvq.safe_text import shown_repr, shown_text
from counterlvq.tables.decimals import found_decimals
from counterlvq.tables.declarations import (
    Pairs,
)
from counterlvq.tables.feature import Feature
from counterlvq.tables.feature_checks import (
    MOST_DECIMALS,
    STEPS,
    checked_kind,
    checked_list,
    checked_mapping,
    checked_pair,
)
from counterlvq.tables.frames import as_frame, numbers_or_days, settled
from counterlvq.tables.quantiles import seen_range
from counterlvq.tables.values import closest, is_missing, warn_of_gaps
from counterlvq.tables.views import FrameView
from counterlvq.types import Kind

__all__ = ["FeatureKey", "Features"]

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
    "phrases": ("phrases", "True or False"),
}


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
        if len(set(names)) < len(names):
            repeated = sorted(name for name, count in Counter(names).items() if count > 1)
            raise InvalidInputError(
                f"feature_names repeats {repeated[0]!r}; expected one distinct name per feature."
            )
        object.__setattr__(self, "columns", described)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "_table", names)

    @classmethod
    def numbered(cls, count: int) -> Features:
        """Name `count` columns x0, x1, ... as scikit-learn does."""
        return _numbered(count)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        only: Sequence[str] | None = None,
        *,
        kinds: Mapping[str, Kind | str] | None = None,
        levels: Mapping[str, Iterable[Any]] | None = None,
        steps: Mapping[str, float] | None = None,
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
        steps: Mapping[str, float] | None = None,
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
        phrases: Mapping[str, bool] | None = None,
        of_change: Iterable[str] = (),
        ordered: Iterable[str] = (),
    ) -> Features:
        """Return the same columns with more said about some of them.

        A real number that is given steps stays one, off its steps too.

        Parameters
        ----------
        kinds, levels, steps, units, ranges, decimals : mapping from name to value, optional
        labels, level_labels, changes, prices, seen, thousands, zeros, phrases : mapping, optional
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
            "phrases": phrases,
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
        kept["phrases"] = feature.phrases
    return Feature(feature.name, **(kept | change))


@lru_cache(maxsize=16)
def _numbered(count: int) -> Features:
    """Estimators name their columns in each `predict`; making them took half of its time."""
    return Features(f"x{j}" for j in range(count))

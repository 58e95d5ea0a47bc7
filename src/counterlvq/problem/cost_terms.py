"""A cost in numbers: what features cost up and down, what levels cost, and the quadratic part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.errors import InvalidInputError
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.quadratic_forms import Factor, QuadraticForm
from counterlvq.problem.coordinates import Coordinates
from counterlvq.problem.costs import Cost, stated_form, stated_weights
from counterlvq.problem.level_prices import level_prices
from counterlvq.tables.features import Features

__all__ = ["Priced", "Prices", "tied_columns"]

# Prices beyond leave no digits beside others, and multipliers that overflow or come to nothing.
_LEAST_PRICE, _MOST_PRICE = 1e-60, 1e60


class Priced(NamedTuple):
    """A cost in numbers, as `ProgramTemplate` takes it."""

    w: Floats  # (width,)
    L: Factor  # (s, width)
    form: QuadraticForm
    ways: Floats | None  # (2, width) where up and down have prices of their own
    # (2, width) what a unit makes the whole cost at the least, where conditions say more than w
    least_ways: Floats | None = None


@final
@dataclass(frozen=True, eq=False)
class Prices:
    """A cost, for coordinates seen from anywhere."""

    weights: Floats  # (2, d) upwards and downwards, per feature: those of levels are not used
    form: QuadraticForm  # of the features that are numbers
    switches: Mapping[int, Floats]  # by column: prices from level to level, (levels, levels)
    missing: Mapping[int, NDArray[np.bool_]]  # by column: pairs without a price, if there are any
    takes_largest: bool = False  # whether the largest of these prices counts, and not their sum
    # Prices of which each is below the whole cost, where conditions say more than these.
    floor: Prices | None = None

    @classmethod
    def of(cls, cost: Cost, features: Features, columns: Sequence[str]) -> Prices:
        """State a cost, whose parts are for all columns of the table or for those that are seen.

        Columns that are not seen never change, so that what is left of a cost is what it says of
        the others: their weights, and those rows and columns of a matrix. That loses nothing
        where no cost of one depends on another; see `tied_columns`.
        """
        weights = _per_feature(cost, features, columns)
        form = _form(cost, features, columns)
        _refuse_strangers(cost, features, columns)
        usual = {
            j: level_prices(cost, feature, _of_levels(weights[:, j]))
            for j, feature in enumerate(features)
            if not feature.is_number
        }
        _refuse_extremes(weights, form, usual, features)
        missing = {j: np.isnan(table) for j, table in usual.items() if np.isnan(table).any()}
        # Of pairs that cannot come up nobody asks the price.
        switches = {j: np.where(np.isnan(table), 1.0, table) for j, table in usual.items()}
        return cls(weights, form, switches, missing, cost.takes_largest)

    def of_height(self) -> Prices:
        """Price one more column with 1, and all others with nothing; see `Height`."""
        numbers = self.form.width + 1
        form = QuadraticForm.of_factor("the cost", np.zeros((0, numbers)), numbers)
        one = np.ones((2, 1))
        blank = {j: np.zeros_like(table) for j, table in self.switches.items()}
        floor = Prices(np.hstack([self.weights, one]), form, self.switches, {})
        nothing = np.hstack([np.zeros_like(self.weights), one])
        return Prices(nothing, form, blank, {}, floor=floor)

    def over(self, coordinates: Coordinates) -> Priced:
        """State the cost for the changes of coordinates."""
        ways, form = self._ways_over(coordinates), self.form_over(coordinates)
        w = ways.min(axis=0)
        same = bool((ways[0] == ways[1]).all())
        least = None if self.floor is None else self.floor._ways_over(coordinates)
        return Priced(w, form.working_root.copy(), form, None if same else ways, least)

    def told_apart(self, coordinates: Coordinates) -> tuple[int, ...]:
        """Numbers that are the same wherever `over` says the same, of one set of features."""
        levels = coordinates.levels
        return tuple(kinds[int(levels[j])] for j, kinds in self._kinds_of_levels)

    @cached_property
    def _kinds_of_levels(self) -> list[tuple[int, list[int]]]:
        """By column of levels: which of its levels have the same prices to the others, in order."""
        found = []
        tables = [self.switches] if self.floor is None else [self.switches, self.floor.switches]
        for j in self.switches:
            rows = [
                b"".join(np.delete(table[j][own], own).tobytes() for table in tables)
                for own in range(len(self.switches[j]))
            ]
            found.append((j, [rows.index(row) for row in rows]))
        return found

    def _ways_over(self, coordinates: Coordinates) -> Floats:
        """Prices upwards and downwards of the changes of coordinates, (2, width)."""
        ways = np.zeros((2, coordinates.width))
        ways[:, coordinates.numbers] = self.weights[:, coordinates.is_number]
        for j, table in self.switches.items():
            ways[:, coordinates.spans[j]] = table[int(coordinates.levels[j])][coordinates.others(j)]
        return ways

    def form_over(self, coordinates: Coordinates) -> QuadraticForm:
        """Quadratic part for the changes of coordinates: the truth that (w, L) stand for."""
        if not coordinates.has_levels:
            return self.form
        return self.form.over(coordinates.numbers, coordinates.width)


def _per_feature(cost: Cost, features: Features, columns: Sequence[str]) -> Floats:
    if len(columns) > len(features):
        try:
            every = stated_weights(cost, len(columns))
        except InvalidInputError:
            return stated_weights(cost, len(features))
        at = {name: k for k, name in enumerate(columns)}
        return np.asarray(every[:, [at[name] for name in features.names]])
    return stated_weights(cost, len(features))


def _of_levels(ways: Floats) -> tuple[float, float]:
    """Weights of steps along levels; 1 where the cost has none."""
    up, down = ways.tolist()
    return up or 1.0, down or 1.0


def _refuse_extremes(
    weights: Floats, form: QuadraticForm, switches: Mapping[int, Floats], features: Features
) -> None:
    """Refuse prices so large or small that no answer could be proved."""
    numbers = [j for j, feature in enumerate(features) if feature.is_number]
    named = [(features.names[j], weights[:, j]) for j in numbers]
    squares = form.of_single_columns()
    if squares.max(initial=0.0) >= _LEAST_PRICE:  # then smaller ones are rounding
        squares = np.where(squares < _LEAST_PRICE, 0.0, squares)
    named += [(features.names[j], squares[[n]]) for n, j in enumerate(numbers)]
    named += [(features.names[j], table) for j, table in switches.items()]
    for name, prices in named:
        sizes = np.abs(prices)
        far = sizes[(sizes > _MOST_PRICE) | ((sizes > 0) & (sizes < _LEAST_PRICE))]
        if far.size:
            raise InvalidInputError(
                f"the cost has a price of {far[0]:g} for {name!r}; expected prices from "
                f"{_LEAST_PRICE:g} to {_MOST_PRICE:g}. Only their ratios decide which answer is "
                f"the closest: divide all of them by the same number, and use Freeze to keep a "
                f"feature as it is."
            )


def tied_columns(cost: Cost, features: Features, columns: Sequence[str]) -> tuple[str, ...]:
    """Name the columns that are not seen, but whose change can make that of others cheaper."""
    numbers, seen = _numbers(features, columns)
    if len(numbers) == len(seen):
        return ()
    try:
        form = stated_form(cost, len(numbers))
    except InvalidInputError:
        return ()
    strangers = set(numbers) - set(seen)
    return tuple(
        name for name, tied in zip(numbers, form.ties, strict=True) if tied and name in strangers
    )


def _numbers(features: Features, columns: Sequence[str]) -> tuple[list[str], list[str]]:
    """List the columns that can be numbers, and those of them that are seen."""
    seen = [feature.name for feature in features if feature.is_number]
    # Of columns that the model does not see nobody says whether they are numbers.
    known, numbers = set(features.names), set(seen)
    return [name for name in columns if name in numbers or name not in known], seen


def _form(cost: Cost, features: Features, columns: Sequence[str]) -> QuadraticForm:
    """Quadratic part of a cost that is stated for all numbers of the table or for those seen."""
    numbers, seen = _numbers(features, columns)
    if len(numbers) == len(seen):
        return stated_form(cost, len(seen))
    try:
        every = stated_form(cost, len(numbers))
    except InvalidInputError:
        try:
            return stated_form(cost, len(seen))
        except InvalidInputError as refusal:
            raise InvalidInputError(
                f"{refusal} These are the numbers that the model sees; all {len(numbers)} columns "
                f"of the table that can be numbers will do as well."
            ) from None
    at = {name: k for k, name in enumerate(numbers)}
    return every.among(np.array([at[name] for name in seen], dtype=np.intp))


def _refuse_strangers(cost: Cost, features: Features, columns: Sequence[str]) -> None:
    defaults = cost.default if isinstance(cost.default, Mapping) else {}
    for name in (*cost.switches, *defaults):
        if name in columns and name not in features.names:
            continue
        if features[name].is_number:
            raise InvalidInputError(
                f"switches names {name!r}, which is a number; expected features with levels. "
                f"Numbers have weights; to price changes between a few values, list them as "
                f"levels: Feature({name!r}, levels=[...])."
            )

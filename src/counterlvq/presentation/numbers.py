"""How numbers are shown: rounded to values that were checked.

A number that is printed will be typed back in. So the numbers of an answer are rounded away from
the input (towards it where they may go no further, at a bound say, and others make up for it), and
only as far as the rounded row is an answer too: the user's model says the target,
the constraints hold, and the cost is at most 1 % higher. Whatever shows an answer to people goes
through here; data for programs keep full precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from itertools import product
from typing import Any, NamedTuple, final

import numpy as np

from counterlvq.numeric.arrays import Floats, read_only
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.tolerances import DUST, SHOWN_GAP
from counterlvq.presentation.decimals import (
    EXACT,
    decimal_of,
    nearest,
    padding_of,
    rounded,
    text_of,
)
from counterlvq.tables.feature import Feature
from counterlvq.tables.feature_checks import STEPS
from counterlvq.tables.features import Features

__all__ = [
    "DIGITS",
    "Check",
    "ShownChange",
    "ShownRow",
    "bound_text",
    "cost_text",
    "exact_text",
    "gap_text",
    "rough_text",
    "shown_change",
    "shown_row",
]

# Whether a row is an answer that costs at most the second number, and what it costs.
Check = Callable[[Floats, float], tuple[bool, float]]

# Significant digits of costs and bounds.
DIGITS = 6
# How much more than the answer the shown row may cost.
_MOST_COST = 1.01
# Inputs of at most so many digits are shown as they are. More digits than a single-precision
# number has are the result of a calculation, and nobody's own.
_OWN_DIGITS = 9
# Sums of a double and some steps are rounded, by so many units in the last place at the most.
_SAME = 2
# A double is told from all others by so many digits.
_ALL_DIGITS = 17
# Where rounded values do not hold, a corner between two rivals say, values a little further on
# with as many digits may: up to so many steps each, in all combinations of up to so many changes,
# and so much longer changes where there are more.
_STEPS, _FEW = 3, 3
# Digits of a change that is rounded back, towards the input, at the least.
_BACK = 3
# Changes up to which each is rounded by itself where rounding all alike takes many digits.
_MOST_ALONE = 20
_LONGER = tuple(Decimal(share) for share in ("0", "0.001", "0.002", "0.004", "0.006", "0.008"))


@final
@dataclass(frozen=True)
class ShownChange:
    """One number before and after, in digits; the change is the difference of the two."""

    before: str
    after: str
    by: str  # the size of the change, without a sign
    rises: bool


@final
@dataclass(frozen=True, eq=False)
class ShownRow:
    """The row that is shown for an answer.

    Attributes
    ----------
    values : ndarray of shape (d,)
        What the texts say, positions for levels; unchanged features as they were given.
    cost : float
        The cost of that row.
    changes : mapping from position to ShownChange
        The numbers that change: all but those that make no difference to the cost or the label.
    row : array, mapping, row of a frame or frame of one row
        The same values as the input was given, levels by name; None where nobody knows its kind.
    """

    values: Floats
    cost: float
    changes: Mapping[int, ShownChange]
    find_row: Callable[[], Any] | None = field(default=None, repr=False)

    @cached_property
    def row(self) -> Any:
        """The row as the input was given, made when it is first asked for."""
        return None if self.find_row is None else self.find_row()

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what makes the row, and keep the row."""
        return {**self.__dict__, "row": self.row, "find_row": None}


def shown_row(
    features: Features, original: Floats, values: Floats, cost: float, check: Check | None = None
) -> ShownRow:
    """Round an answer for people, as far as what is shown is an answer too.

    Parameters
    ----------
    features : Features
    original, values : ndarray of shape (d,)
        The input and its counterfactual.
    cost : float
        What the counterfactual costs.
    check : callable, optional
        Says of a row whether it is an answer that costs at most so much, and what it costs;
        without it the answer is shown in full precision.

    Returns
    -------
    ShownRow

    Examples
    --------
    >>> features = Features(["income"])
    >>> row = shown_row(features, np.array([2400.0]), np.array([2931.4159]), 531.4159)
    >>> row.changes[0].after
    '2,931.4159'
    >>> def check(row, most):
    ...     change = float(row[0]) - 2400.0
    ...     return 531.4 < change <= most, change
    >>> row = shown_row(features, np.array([2400.0]), np.array([2931.4159]), 531.4159, check)
    >>> row.changes[0].after, row.cost
    ('2,932', 532.0)
    """
    if np.isnan(values).any():
        return ShownRow(values, cost, {})  # there is no answer
    moved = [
        _Move.of(int(j), features.columns[j], float(original[j]), float(values[j]))
        for j in np.flatnonzero(values != original)
        if features.columns[j].is_number
    ]
    if check is None or not moved:
        return _shown(values, moved, [move.to(None) for move in moved], cost)
    counted = [move.counted(features.columns[move.at]) for move in moved]
    if counted != moved:
        exact = _typed(values, counted, [move.to(None) for move in counted])
        if check(exact, _MOST_COST * cost)[0]:
            moved, values = counted, exact
    kept, row = _without_dust(original, values, moved, cost, check)
    for some, base in [(kept, row), (moved, values)]:
        found = _Rounding(base, some, _MOST_COST * cost, check).found()
        if found is not None:
            return _shown(base, some, *found)
    return _shown(values, moved, [move.to(None) for move in moved], cost)


def _shown(values: Floats, moved: Sequence[_Move], pairs: list[_Pair], cost: float) -> ShownRow:
    changes = {move.at: pair.shown() for move, pair in zip(moved, pairs, strict=True)}
    return ShownRow(read_only(_typed(values, moved, pairs)), cost, changes)


def _without_dust(
    original: Floats, values: Floats, moved: list[_Move], cost: float, check: Check
) -> tuple[list[_Move], Floats]:
    """Take back the changes that are too small to be seen in the cost, as solvers leave them."""
    row, kept = values.copy(), []
    for move in moved:
        alone = values.copy()
        alone[move.at] = original[move.at]
        if move.is_real and check(alone, np.inf)[1] >= (1.0 - DUST) * cost:
            row[move.at] = original[move.at]
        else:
            kept.append(move)
    return (kept, row) if kept else (moved, values)


def shown_change(before: float, after: float) -> ShownChange:
    """Show two numbers in full.

    Examples
    --------
    >>> shown_change(2400.0, 2931.4159)
    ShownChange(before='2,400', after='2,931.4159', by='531.4159', rises=True)
    """
    return _Pair(decimal_of(before), decimal_of(after)).shown()


def exact_text(value: float, feature: Feature | None = None) -> str:
    """Show one number in full; with the decimals that its feature declares.

    Examples
    --------
    >>> exact_text(1234.5), exact_text(1e-9), exact_text(3e12)
    ('1,234.5', '1e-9', '3e+12')
    """
    number = decimal_of(value)
    return text_of(number, padding_of(feature, number))


def cost_text(cost: float, digits: int = DIGITS) -> str:
    """Show a cost to six digits; beside its bound see `proved`."""
    return f"{cost:.{digits}g}"


def rough_text(value: float) -> str:
    """Show a number about which nothing is claimed to four digits, or to the last whole one.

    Examples
    --------
    >>> rough_text(12345.6), rough_text(-0.123456)
    ('12,346', '−0.1235')
    """
    text = f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.4g}"
    return text.replace("-", "−", 1) if text.startswith("-") else text


def bound_text(bound: float, digits: int = DIGITS) -> str:
    """Show a lower bound to six digits, rounded down: what is printed is proved too.

    Examples
    --------
    >>> bound_text(371.6268)
    '371.626'
    """
    return _cut(bound, digits, ROUND_FLOOR)


def gap_text(gap: float) -> str:
    """Show the share of a cost that is not proved, rounded up.

    Examples
    --------
    >>> gap_text(6.2e-11), gap_text(6.2e-5), gap_text(0.01234)
    ('<1e-06', '7e-05', '1.24%')
    """
    if not np.isfinite(gap):
        return f"{gap:g}"
    if gap < SHOWN_GAP:
        return f"<{SHOWN_GAP:g}"
    if gap < 1e-4:
        return f"{float(_cut(gap, 1, ROUND_CEILING)):.0e}"
    return f"{decimal_of(gap).quantize(Decimal('1e-4'), ROUND_CEILING):.2%}"


def _cut(value: float, digits: int, way: str) -> str:
    if not np.isfinite(value) or value == 0:
        return f"{value:g}"
    exact = decimal_of(value)
    last = Decimal((0, (1,), exact.adjusted() - digits + 1))
    return f"{float(exact.quantize(last, way, EXACT)):.{digits}g}"


class _Pair(NamedTuple):
    """One number before and after, as it may be shown."""

    before: Decimal
    after: Decimal
    padding: int | None = None  # decimals that are written out even where they are zeros

    @property
    def change(self) -> Decimal:
        """The difference of what is shown, to the last digit."""
        return EXACT.subtract(self.after, self.before).normalize(EXACT)

    def shown(self) -> ShownChange:
        before, after, by = (
            text_of(number, self.padding) for number in (self.before, self.after, abs(self.change))
        )
        return ShownChange(before, after, by, self.change > 0)


@final
@dataclass(frozen=True)
class _Move:
    """A number that changes, and the ways to round it."""

    at: int
    before: Decimal
    after: Decimal
    size: int  # the power of ten of the first digit of the change
    is_real: bool
    padding: int | None

    @classmethod
    def of(cls, at: int, feature: Feature, before: float, after: float) -> _Move:
        old, new = decimal_of(before), decimal_of(after)
        padding = padding_of(feature, new)
        size = EXACT.subtract(new, old).adjusted()
        return cls(at, old, new, size, feature.is_real, padding)

    def counted(self, feature: Feature) -> _Move:
        """Add steps to the input in decimals: by 2 from 19.9 to 15.9, not 15.899999999999999."""
        if feature.steps == STEPS[0] or feature.lattice is None:
            return self
        step = EXACT.divide(*map(Decimal, feature.lattice))
        by = EXACT.subtract(self.after, self.before)
        count = EXACT.divide(by, step).to_integral_value()
        after = EXACT.fma(count, step, self.before).normalize(EXACT)
        is_same = abs(float(after) - float(self.after)) <= _SAME * np.spacing(float(self.after))
        return replace(self, after=after) if is_same else self

    def to(self, last: int | None, steps: int = 0, longer: Decimal = _LONGER[0]) -> _Pair:
        """Round to multiples of ``10**last``, away from the input; None for full precision.

        Then go so many multiples further, or make the change longer by a share first.
        """
        if last is None or not self.is_real:
            return _Pair(self.before, self.after, self.padding)
        rises = self.after > self.before
        before, after = self.before, self.after
        if longer:
            after = EXACT.fma(EXACT.subtract(after, before), longer, after)
        after = rounded(after, last, up=rises)
        if steps:
            after = EXACT.add(after, Decimal((0 if rises else 1, (steps,), last)))
        if not self.is_own:
            before = self._input_to(last, after)
        return _Pair(before, after)

    def back(self, last: int) -> _Pair:
        """Round to multiples of ``10**last`` towards the input; in full if nothing is left."""
        after = rounded(self.after, last, up=self.after < self.before)
        if not self.is_real or (after > self.before) != (self.after > self.before):
            return self.to(None)
        return _Pair(self.before if self.is_own else self._input_to(last, after), after)

    def _input_to(self, last: int, after: Decimal) -> Decimal:
        """Round the input to the nearest, and away from the answer where nothing is left else."""
        near = nearest(self.before, last)
        rises = self.after > self.before
        is_apart = near < after if rises else near > after
        return near if is_apart else rounded(self.before, last, up=not rises)

    @property
    def is_own(self) -> bool:
        """Whether the input is shown to the last digit."""
        return not self.is_real or len(self.before.as_tuple().digits) <= _OWN_DIGITS


_Found = tuple[list[_Pair], float]
_Lasts = tuple[int | None, ...]


@final
@dataclass(frozen=True, eq=False)
class _Rounding:
    """Looks for the fewest digits that hold."""

    values: Floats
    moved: Sequence[_Move]
    most: float  # cost
    check: Check

    def found(self) -> _Found | None:
        """Return the shortest texts that hold, and the cost of their row; None if none do."""
        tried = (self._near(lasts) for lasts in self._ways())
        found = next((pairs for pairs in tried if pairs is not None), None)
        is_short = found is not None and max(map(_digits, found[0])) <= _OWN_DIGITS
        if is_short or len(self.moved) > _MOST_ALONE:
            return found
        # One number without any room, at a bound of many digits say, need not cost the others
        # their rounding.
        other = self._one_by_one()
        both = [pairs for pairs in (found, other, self._held_back(other)) if pairs is not None]
        return min(both, key=lambda pairs: sum(map(_digits, pairs[0])), default=None)

    def _ways(self) -> list[_Lasts]:
        """List how far the numbers may be rounded, fewest digits first.

        Either all to as many digits of their changes, or all to the same decimals: sums of
        columns keep adding up then.
        """
        sizes = [move.size for move in self.moved if move.is_real]
        if not sizes:
            return []
        ways = {
            tuple(move.size + 1 - digits for move in self.moved)
            for digits in range(1, _ALL_DIGITS + 1)
        }
        finest = max(min(sizes) - 2, max(sizes) - _ALL_DIGITS)
        ways |= {(last,) * len(self.moved) for last in range(max(sizes), finest - 1, -1)}
        return sorted(ways, key=lambda lasts: (self._length(lasts), lasts))

    def _length(self, lasts: _Lasts) -> int:
        return sum(_digits(move.to(last)) for move, last in zip(self.moved, lasts, strict=True))

    def _near(self, lasts: _Lasts) -> _Found | None:
        """Try the nearest values with these digits, and others a little further on."""
        pairs = [move.to(last) for move, last in zip(self.moved, lasts, strict=True)]
        holds, cost = self._checked(pairs)
        if holds:
            return pairs, cost
        if not cost <= self.most:
            return None  # what lies further on costs more
        for pairs in self._further(lasts):
            holds, cost = self._checked(pairs)
            if holds:
                return pairs, cost
        return None

    def _further(self, lasts: _Lasts) -> Iterator[list[_Pair]]:
        each = list(zip(self.moved, lasts, strict=True))
        counts = [_STEPS + 1 if move.is_real else 1 for move in self.moved]
        if sum(count > 1 for count in counts) > _FEW:
            for longer in _LONGER[1:]:
                yield [move.to(last, longer=longer) for move, last in each]
            return
        for steps in sorted(product(*map(range, counts)), key=sum)[1:]:
            yield [move.to(last, step) for (move, last), step in zip(each, steps, strict=True)]

    def _one_by_one(self) -> _Found | None:
        """Round one number after the other while the others keep their digits."""
        found = None
        pairs = [move.to(None) for move in self.moved]
        for k, move in enumerate(self.moved):
            for digits in range(1, _ALL_DIGITS + 1):
                tried = [*pairs[:k], move.to(move.size + 1 - digits), *pairs[k + 1 :]]
                holds, cost = self._checked(tried)
                if holds:
                    pairs, found = tried, (tried, cost)
                    break
        return found

    def _held_back(self, found: _Found | None) -> _Found | None:
        """Round those that may go no further, at a bound say, back while others make up for it."""
        pairs = [move.to(None) for move in self.moved] if found is None else found[0]
        tight = [
            move.is_real and _digits(pair) > _OWN_DIGITS
            for move, pair in zip(self.moved, pairs, strict=True)
        ]
        if all(tight) or not any(tight):
            return None
        for digits, longer in product(range(_BACK, _OWN_DIGITS + 1), _LONGER):
            tried = [
                move.back(move.size + 1 - digits)
                if is_tight
                else move.to(move.size + 1 - digits, longer=longer)
                for move, is_tight in zip(self.moved, tight, strict=True)
            ]
            holds, cost = self._checked(tried)
            if holds:
                return tried, cost
        return None

    def _checked(self, pairs: Sequence[_Pair]) -> tuple[bool, float]:
        """Whether the row that is typed in is an answer, and its cost."""
        row = _typed(self.values, self.moved, pairs)
        holds, cost = self.check(row, self.most)
        if holds and not all(move.is_own for move in self.moved):
            # Somebody may add the changes to the input itself, of which fewer digits are shown.
            for move, pair in zip(self.moved, pairs, strict=True):
                row[move.at] = float(EXACT.add(move.before, pair.change))
            holds = self.check(row, self.most)[0]
        return holds, cost


def _digits(pair: _Pair) -> int:
    """Count the digits that have to be typed."""
    return len(pair.after.as_tuple().digits)


def _typed(values: Floats, moved: Sequence[_Move], pairs: Sequence[_Pair]) -> Floats:
    """Return the row that somebody gets who types the new values in."""
    row = values.copy()
    for move, pair in zip(moved, pairs, strict=True):
        row[move.at] = float(pair.after)
    return row

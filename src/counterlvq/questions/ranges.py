"""Ranges instead of a point: a box around an answer in which every combination is one, too.

Under a shared metric an answer lies in a polyhedron: the cell of its prototype, and what linear
constraints leave of it. A row ``a'y <= b`` holds in all of a box if it holds in the corner that is
worst for it, which is linear in the ends of the box. The box is found by a linear program in
floats, and then each row is proved in rational numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from math import ceil, floor, inf
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from counterlvq.errors import InvalidInputError, NotSupportedError
from counterlvq.numeric.arrays import Floats, finite_scalar, told
from counterlvq.numeric.tolerances import HELD_WITH_EQUALITY, HIGHS_TOLERANCE, NO_ROOM
from counterlvq.presentation.wording import Wording, listed
from counterlvq.problem.targets import wished_prototypes
from counterlvq.questions.asking import Asks
from counterlvq.questions.exact_rows import ExactRows, rows_around
from counterlvq.results import Counterfactual
from counterlvq.tables.dates import date_of
from counterlvq.tables.features import Feature, Features
from counterlvq.types import Kind
from counterlvq.visible import shown_text

__all__ = ["Ranges", "ranges_of"]

Ends = tuple[Any, Any]

SIDES = ("both", "away")
# Whole numbers that are listed one by one; wider ranges are told by their ends.
_MOST_LISTED = 10_000
# How far an open side is followed where a foreign `predict` decides, whose rounding grows: so many
# times the numbers that are about.
_FAR = 1024.0
# How much more a box is pulled in by each time that it is not proved, and how often.
_PULL_GROWTH, _PULLS = 8.0, 12
# Significant digits that are tried for an end that is shown.
_DIGITS = range(4, 18)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Ranges(Mapping[str, Any]):
    """For each feature that changes, the values that it may have: a mapping.

    The value of a feature is a pair ``(lower, upper)``, infinite where a side is open, or a set: of
    levels, and of whole numbers. Every combination of values in these ranges, with all other
    features as they are in the answer, has a label that was wished for and meets the constraints.

    Attributes
    ----------
    prediction : label
        What the model says throughout.
    features : Features

    Examples
    --------
    >>> import counterlvq as clvq
    >>> model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], feature_names=["income"])
    >>> explainer = clvq.Explainer(model, constraints=["income <= 10"])
    >>> ranges = explainer.ranges(explainer.explain([0.5], target="yes"))
    >>> round(ranges["income"][0], 6), ranges["income"][1]
    (2.0, 10.0)
    >>> print(ranges)
    It stays yes with income from 2.001 to 10.
    """

    ranges: Mapping[str, Any]
    prediction: Any
    features: Features

    def __getitem__(self, name: str) -> Any:
        return self.ranges[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.ranges)

    def __len__(self) -> int:
        return len(self.ranges)

    def text(self, *, outcome: Mapping[Any, str] | None = None, numbers: str = "1,234.5") -> str:
        """Say the ranges in a sentence; ends are rounded inwards, so that what is said holds."""
        return self.sentence(Wording(outcome=outcome or {}, numbers=numbers))

    def sentence(self, wording: Wording) -> str:
        """Say the ranges, worded like an answer."""
        if not self.ranges:
            return f"It stays {wording.called(self.prediction)} as it is."
        parts = [_words(self.features[name], self.ranges[name], wording) for name in self.ranges]
        return f"It stays {wording.called(self.prediction)} with {listed(parts)}."

    def to_dict(self) -> dict[str, Any]:
        """Return lists of two ends (None for an open one), or of levels, that JSON can hold."""
        out: dict[str, Any] = {}
        for name, found in self.ranges.items():
            if isinstance(found, tuple):
                out[name] = {"lower": _plain(found[0]), "upper": _plain(found[1])}
            else:
                out[name] = {"values": [_plain(value) for value in sorted(found, key=str)]}
        return out

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__


def _plain(value: Any) -> Any:
    if isinstance(value, float) and abs(value) == inf:
        return None
    return value if isinstance(value, str | int | float) else str(value)


def _words(feature: Feature, found: Any, wording: Wording) -> str:
    name = shown_text(feature.spoken)
    if not isinstance(found, tuple):
        values = sorted(found) if feature.is_number else sorted(found, key=feature.code)
        if feature.is_number and len(values) > 2 and values[-1] - values[0] == len(values) - 1:
            found = values[0], values[-1]
        else:
            shown = [shown_text(v if feature.is_number else feature.words(v)) for v in values]
            return f"{name} {' or '.join(shown)}"
    low, high = (_shown_end(feature, found, side, wording) for side in (0, 1))
    unit = f" {shown_text(feature.unit)}" if feature.unit else ""
    if found[0] == found[1]:
        return f"{name} at {low}{unit}"
    if low is None:
        return f"{name} anywhere" if high is None else f"{name} up to {high}{unit}"
    return (
        f"{name} of at least {low}{unit}" if high is None else f"{name} from {low} to {high}{unit}"
    )


def _shown_end(feature: Feature, ends: Ends, side: int, wording: Wording) -> str | None:
    end = ends[side]
    if feature.kind is Kind.DATE:
        return None if isinstance(end, float) else str(end)
    if abs(end) == inf:
        return None
    number, (low, high) = Decimal(end), ends
    if low != high:
        for digits in _DIGITS:
            place = Decimal(1).scaleb(number.adjusted() - digits + 1) if number else Decimal(1)
            rounded = number.quantize(place, ROUND_FLOOR if side else ROUND_CEILING)
            apart = abs(rounded - number)
            if float(rounded) == end or apart * 50 <= Decimal(min(high - low, 1e300)):
                end = float(rounded)
                break
    return wording.number(f"{end:,}".removesuffix(".0"))


def ranges_of(asked: Asks, given: Any, side: str = "both", units: Any = None) -> Ranges:
    """Find a box around an answer; see `Explainer.ranges`."""
    cf = given if isinstance(given, Counterfactual) else None
    if cf is None or not cf.status.has_answer:
        raise InvalidInputError(
            f"counterfactual is {told(given)}; expected an answer of this explainer, with the "
            f"status optimal or feasible."
        )
    if side not in SIDES:
        raise InvalidInputError(f"side is {side!r}; expected one of: 'both', 'away'.")
    view = asked.prepared_for(cf.original_values)
    coordinates = view.source.coordinates
    _refuse_what_is_not_linear(asked, cf)
    with np.errstate(all="ignore"):
        box = _Box.around(asked, cf, side, _checked_units(asked.features, units))
        low, high = box.widest()
        codes = box.levels(low, high)
    found: dict[str, Any] = {}
    for j in np.flatnonzero(cf.values != cf.original_values):
        feature, span = asked.features.columns[j], coordinates.spans[j]
        if feature.is_number:
            ends = float(low[span.start]), float(high[span.start])
            found[feature.name] = _values(feature, *ends)
        else:
            found[feature.name] = frozenset(feature.levels[code] for code in codes[int(j)])
    return Ranges(found, cf.prediction, asked.features)


def _refuse_what_is_not_linear(asked: Asks, cf: Counterfactual) -> None:
    view = asked.prepared_for(cf.original_values)
    if asked.is_sure:
        raise NotSupportedError(
            "ranges keep labels and constraints, and know no confidence. Ask an explainer without "
            "one for the ranges: an answer with a confidence leaves it room."
        )
    if asked.model.is_local:
        raise NotSupportedError(
            "ranges are for shared metrics, where an answer lies among planes, and the metrics of "
            "this model differ from prototype to prototype. Ask for a margin instead, or about "
            "single values with explain."
        )
    if view.source.coordinates.links:
        raise NotSupportedError(
            f"ranges are for columns that the model sees as they are, and it sees "
            f"{view.source.scales[0]}; give the explainer columns that are transformed already."
        )


def _checked_units(features: Features, units: Any) -> dict[int, float]:
    if units is None:
        return {}
    if not isinstance(units, Mapping):
        raise InvalidInputError(
            f"units is {told(units)}; expected a mapping from feature to number, such as "
            f"{{'income': 100}}."
        )
    found = {}
    for key, value in units.items():
        number = finite_scalar(f"units[{key!r}]", value)
        if number <= 0:
            raise InvalidInputError(f"units[{key!r}] is {value!r}; expected a positive number.")
        found[features.number(key, "units")] = number
    return found


def _values(feature: Feature, low: float, high: float) -> Any:
    """State a range in the values of its feature: listed ones, or two ends."""
    grid = feature.grid
    if feature.kind in (Kind.WHOLE, Kind.DATE) and grid is not None:
        if feature.steps == "of value" and low < high:
            low = low if low == -inf else float(ceil(Fraction(low) / int(grid)) * int(grid))
            high = high if high == inf else float(floor(Fraction(high) / int(grid)) * int(grid))
        if feature.kind is Kind.DATE:
            ends = (end if abs(end) == inf else date_of(end) for end in (low, high))
            return tuple(ends)
        if high - low <= _MOST_LISTED * grid:
            count = int((high - low) / grid)
            return frozenset(int(low) + k * int(grid) for k in range(count + 1))
    return low, high


@final
@dataclass(frozen=True, eq=False)
class _Box:
    """Which ends of a box around an answer may move, and what they have to respect."""

    y: Floats  # (d,) the answer, in coordinates
    rows: ExactRows
    up: NDArray[np.bool_]  # (d,) whether the upper end may move, and the lower one
    down: NDArray[np.bool_]
    unit: Floats  # (d,) what widths are counted in
    size: Floats  # (d,) of the numbers that are about
    spans: Mapping[int, slice]  # coordinates of the levels that change, by feature
    others: Mapping[int, Sequence[int]]  # and the levels they stand for
    own: Mapping[int, int]  # levels of the input
    lead: float  # that the label needs to be certain
    reach: Floats  # (d,) how far a box may go from the answer

    @classmethod
    def around(cls, asked: Asks, cf: Counterfactual, side: str, units: Mapping[int, float]) -> _Box:
        row = cf.original_values
        view = asked.prepared_for(row)
        coordinates, rules = view.source.coordinates, view.rules
        x, y = view.inner(row), view.inner(cf.values)
        moving = np.zeros(y.size, dtype=bool)
        unit, spans = _typical_units(view.template.w, view.template.L, y.size), {}
        for j in np.flatnonzero(cf.values != row):
            span = coordinates.spans[j]
            if asked.features.columns[j].is_number:
                moving[span] = True
                unit[span] = units.get(int(j), unit[span.start])
            else:
                spans[int(j)] = span
        target_mask = wished_prototypes(view.model, cf.target, -1)
        question = view.answers.question(x, target_mask)
        rows = rows_around(view.model, view.template, question.cells.rivals, cf.prototype, x)
        moving &= ~(rows.held | rows.barred)
        is_open = rules.says is None
        near = np.abs(x) + np.abs(y) + question.spread
        reach = np.where(moving, _FAR * near, 0.0)
        blur = 0.0 if is_open else 2.0 * float(rules.blur_within(y[None, :], reach[None, :])[0])
        if not np.isfinite(blur):
            raise NotSupportedError(
                "the rounding of the model's own predict has no limit around this answer; ranges "
                "need one. Leave out columns of very different sizes, or scale them."
            )
        away = np.ones(y.size, dtype=bool) if side == "both" else None
        return cls(
            y,
            rows,
            moving & (y > x if away is None else away),
            moving & (y < x if away is None else away),
            unit,
            np.where(near > 0, near, 1.0),
            spans,
            {j: coordinates.others(j) for j in spans},
            {j: int(coordinates.levels[j]) for j in spans},
            (asked.margin or 0.0) + blur,
            np.full(y.size, inf) if is_open else reach,
        )

    def widest(self) -> tuple[Floats, Floats]:
        """Find the ends of a box in which every row is proved to hold, (d,) each."""
        rows, at = self.rows, self._places()
        scale = max(float(np.abs(rows.leads).max(initial=0.0)), self.lead)
        pull = 0.0
        for _ in range(_PULLS):
            box = self._solved(at, pull)
            if box is not None:
                for ends in (self._snapped(*box), box):
                    if rows.hold(*ends, (), self.lead):
                        return ends
            pull = max(_PULL_GROWTH * pull, NO_ROOM * scale)
        return self.y.copy(), self.y.copy()  # the answer itself, which was judged already

    def _places(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.up | self.down)

    def _open(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Sides that no row limits, (d,) each."""
        A = self.rows.A
        return self.up & ~(A > 0).any(axis=0), self.down & ~(A < 0).any(axis=0)

    def _solved(self, at: NDArray[np.intp], pull: float) -> tuple[Floats, Floats] | None:
        """Solve for the widest box, with the rows of the cell pulled in by `pull`."""
        y, rows, size = self.y, self.rows, self.size[at]
        low, high = y.copy(), y.copy()
        if not at.size:
            return low, high
        A = rows.A[:, at] * size
        scale = np.abs(A).max(axis=1)
        scale = np.where(scale > 0, scale, 1.0)
        A = A / scale[:, None]
        room = (rows.b - rows.A @ y - np.where(rows.is_cell, self.lead + pull, 0.0)) / scale
        shift = _least_shift(A, room)
        if shift is None:
            return None
        room = np.maximum(room - A @ shift, 0.0)
        open_up, open_down = (side[at] for side in self._open())
        farthest = self.reach[at] / size
        limits = [
            (0.0, most if may else 0.0)
            for most, may in (
                *zip(np.where(open_up, 0.0, farthest), self.up[at], strict=True),
                *zip(np.where(open_down, 0.0, farthest), self.down[at], strict=True),
            )
        ]
        worth = size / self.unit[at]
        gain = np.tile(worth / worth.max(), 2)
        planes = np.hstack([np.maximum(A, 0.0), np.maximum(-A, 0.0)])
        widths = _solution(-gain, planes, room, limits)
        if widths is None:
            return None
        above, below = widths.reshape(2, at.size) * size
        middle = y[at] + shift * size
        high[at], low[at] = middle + above, middle - below
        high[at[open_up]] = (y + self.reach)[at[open_up]]
        low[at[open_down]] = (y - self.reach)[at[open_down]]
        return np.maximum(low, y - self.reach), np.minimum(high, y + self.reach)

    def _snapped(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Take ends for the answer, or for bounds, where they nearly are: solvers are not exact."""
        near, rows = HELD_WITH_EQUALITY * self.size, self.rows
        ends = [np.minimum(low, self.y), np.maximum(high, self.y)]
        for k, bound in enumerate((rows.lower, rows.upper)):
            for goal in (bound, self.y):
                ends[k] = np.where(np.abs(ends[k] - goal) <= near, goal, ends[k])
        return np.maximum(ends[0], rows.lower), np.minimum(ends[1], rows.upper)

    def levels(self, low: Floats, high: Floats) -> dict[int, list[int]]:
        """Levels that each feature that changes its level may have, beside the chosen one."""
        chosen: dict[int, list[int]] = {}
        points: dict[int, list[int | None]] = {}
        for j, span in self.spans.items():
            on = np.flatnonzero(self.y[span] > 0.5)
            point = int(on[0]) + span.start if on.size else None
            points[j] = [point]
            chosen[j] = [self._code(j, point)]
        for j, span in self.spans.items():
            others = [p for p in range(span.start, span.stop) if not self.rows.barred[p]]
            for point in [] if self.rows.held[span].any() else [None, *others]:
                if point in points[j]:
                    continue
                points[j].append(point)
                listing = [(self.spans[k], points[k]) for k in self.spans]
                if self.rows.hold(low, high, listing, self.lead):
                    chosen[j].append(self._code(j, point))
                else:
                    points[j].pop()
        return chosen

    def _code(self, feature: int, point: int | None) -> int:
        span = self.spans[feature]
        return self.own[feature] if point is None else self.others[feature][point - span.start]


def _least_shift(A: Floats, room: Floats) -> Floats | None:
    """Find how far the answer has to move for rows that it misses by rounding, or by a lead."""
    count = A.shape[1]
    if (room >= 0).all():
        return np.zeros(count)
    found = _solution(np.ones(2 * count), np.hstack([A, -A]), room, [(0.0, np.inf)] * (2 * count))
    if found is None:
        return None
    plus, minus = found.reshape(2, count)
    return np.asarray(plus - minus)


def _solution(
    cost: Floats, A: Floats, b: Floats, limits: Sequence[tuple[float, float]]
) -> Floats | None:
    """Solve a linear program; whoever uses the point checks it."""
    found = linprog(
        cost,
        A,
        b,
        bounds=limits,
        method="highs",
        options={
            "primal_feasibility_tolerance": HIGHS_TOLERANCE,
            "dual_feasibility_tolerance": HIGHS_TOLERANCE,
        },
    )
    return None if found.x is None or found.status != 0 else np.asarray(found.x)


def _typical_units(w: Floats, L: Any, width: int) -> Floats:
    """Say what a cost of 1 buys in each coordinate; 1 where changes are free."""
    square = np.asarray((L.T @ L).diagonal() if L.shape[0] else np.zeros(width)).ravel()
    price = w + np.sqrt(np.maximum(square, 0.0))
    unit = np.ones(width)
    np.divide(1.0, price, out=unit, where=price > 0)
    return unit

"""The widest box around an answer: a linear program in floats, proved in rational numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.errors import NotSupportedError
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import HELD_WITH_EQUALITY, SAFE
from counterlvq.problem.targets import wished_prototypes
from counterlvq.questions.exact_rows import ExactRows, Levels, required_levels, rows_around
from counterlvq.questions.ladders import Ladder, ladders_of
from counterlvq.questions.protocol import Asks
from counterlvq.questions.range_rounding import Doubted
from counterlvq.questions.widest import widest_widths
from counterlvq.results import Counterfactual

__all__ = ["RangeBox", "Spot"]

# How far an open side is followed where a foreign `predict` decides, whose rounding grows: so many
# times the numbers that are about.
_FAR = 1024.0
# By how much a box is made smaller each time that rounding may hide something in it, and how often.
_SHRINK, _SHRINKS = 0.25, 20


class Spot(NamedTuple):
    """A row around which a box is to lie, and the nearest prototype there."""

    values: Floats  # (features,)
    prototype: int


@final
@dataclass(frozen=True, eq=False)
class RangeBox:
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
    required: frozenset[int]  # features of levels that may not keep that of the input
    ladders: Mapping[int, Ladder]  # by coordinate: values where not every number will do
    doubt: Doubted  # what a foreign `predict` may hide
    reach: Floats  # (d,) how far a box may go from the answer
    lead: float = 0.0  # that makes the label certain as far as that

    @classmethod
    def around(
        cls, asked: Asks, cf: Counterfactual, at: Spot, side: str, units: Mapping[int, float]
    ) -> RangeBox:
        """State what is known of the answer, or of the row shown for it, before anything is solved.

        Features that the answer changes have ranges, whatever the row that is shown changes; of
        what it leaves as it is, both sides lead away from the input.
        """
        row = cf.original_values
        view = asked.prepared_for(row)
        coordinates, rules, template = view.source.coordinates, view.rules, view.template
        x, y = view.inner(row), view.inner(at.values)
        moving, is_level = np.zeros((2, y.size), dtype=bool)
        unit, spans = _typical_units(template.w, template.L, y.size), {}
        for j in np.flatnonzero(cf.values != row):
            span = coordinates.spans[j]
            if asked.features.columns[j].is_number:
                moving[span] = True
                unit[span] = units.get(int(j), unit[span.start])
            else:
                spans[int(j)] = span
                is_level[span] = True
        question = view.answers.question(x, wished_prototypes(view.model, cf.target, -1))
        is_exact = rules.says is None and not view.model.is_refereed
        rivals = question.cells.rivals
        counts = np.full(y.size, inf) if template.is_continuous else rules.reach(x[None, :])[0]
        rows = rows_around(
            view.model, template, rivals, at.prototype, x, y, counts, is_exact=is_exact
        )
        moving &= ~(rows.held | rows.barred)
        near = np.abs(x) + np.abs(y) + question.spread
        doubt, is_away = Doubted(rules, asked.margin or 0.0), side == "away"
        far = np.where(moving, _FAR * near, 1.0 * is_level)
        box = cls(
            y,
            rows,
            moving & ((y >= x) | (not is_away)),
            moving & ((y <= x) | (not is_away)),
            unit,
            np.where(near > 0, near, 1.0),
            spans,
            {j: coordinates.others(j) for j in spans},
            {j: int(coordinates.levels[j]) for j in spans},
            required_levels(template, spans),
            ladders_of(template, np.flatnonzero(moving), x, y),
            doubt,
            np.full(y.size, inf) if doubt.is_exact else far,
        )
        if not np.isfinite(doubt.lead(y, box.reach)):
            raise NotSupportedError(
                "the rounding of the model's own predict has no limit around this answer; ranges "
                "need one. Leave out columns of very different sizes, or scale them."
            )
        return box

    def closely(self) -> tuple[RangeBox, Floats, Floats]:
        """Find the widest box, and again with what rounding may hide within that one only.

        Where rounding may decide next to the answer, smaller boxes are tried until one is proved.
        Of the answer alone the model itself was asked.
        """
        box, alone = self.asking(self.reach), self.asking(np.zeros(self.y.size))
        low, high = box.widest()
        if self.doubt.is_exact:
            return box, low, high
        for _ in range(_SHRINKS if alone.is_proved(self.y, self.y) else 0):
            box = self.asking(box.reach_of(low, high))
            low, high = box.widest()
            if box.is_proved(low, high):
                return box, low, high
            low, high = (self.y + _SHRINK * (end - self.y) for end in (low, high))
        return alone, self.y.copy(), self.y.copy()

    def asking(self, reach: Floats) -> RangeBox:
        """Return the same with the lead that makes the label certain within `reach`."""
        lead = self.doubt.lead(self.y, reach)
        return replace(self, reach=reach, lead=lead, rows=self.rows.asking(lead, self.y))

    def reach_of(self, low: Floats, high: Floats) -> Floats:
        """How far a box goes from the answer, (d,); levels may change wherever they might."""
        reach = np.maximum(high - self.y, self.y - low)
        for span in self.spans.values():
            reach[span] = self.reach[span]
        return reach

    def is_proved(self, low: Floats, high: Floats, levels: Levels = ()) -> bool:
        """Whether label and constraints are proved in all of a box that holds the answer.

        A row that has less of a lead at the answer than makes the label certain in all of the box
        is nowhere worse than there. It may do nevertheless, as its lead grows.
        """
        if not self.rows.hold(low, high, levels):
            return False
        if self.doubt.is_exact:
            return True
        reach = self.reach_of(low, high)
        for span in self.spans.values():
            reach[span] = 0.0
        pairs = zip(self.rows.needs, self.rows.is_strict, strict=True)
        near = [
            k
            for k, (need, is_strict) in enumerate(pairs)
            if need < Fraction(self.lead) or (need <= 0 and not is_strict)
        ]
        return all(self._is_certain(k, reach, levels) for k in near)

    def _is_certain(self, k: int, reach: Floats, levels: Levels) -> bool:
        """Whether one row of the cell does, with the level of the answer and with other ones."""
        row, slopes = self.rows.exact[k][0], np.abs(self.rows.A[k])
        slopes[[j for span in self.spans.values() for j in range(span.start, span.stop)]] = 0.0
        lead = self.rows.room(k, self.y, self.y)
        if not self.doubt.is_certain(self.y, slopes, float(lead) / SAFE, reach):
            return False
        gains, others = [], reach.copy()
        for span, points in levels:
            worth = [Fraction(0) if p is None else row[p] for p in points]
            gains += [worth[0] - value for value in worth[1:]]  # the answer's own comes first
            others[span] = 1.0 * (len(points) > 1)
        if not gains:
            return True
        lead += min(gains)
        return self.doubt.is_certain(self.y, slopes, float(lead) / SAFE, others)

    def widest(self) -> tuple[Floats, Floats]:
        """Find the ends of a box in which every row is proved to hold, (d,) each."""
        low, high = self._in_steps()
        return self._lengthened(*self._widened(low, high))

    def _open(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Sides that may move and that no row limits, (d,) each."""
        signs = self.rows.signs
        return self.up & ~(signs > 0).any(axis=0), self.down & ~(signs < 0).any(axis=0)

    def _solved(
        self, at: NDArray[np.intp], low: Floats, high: Floats, step: Floats
    ) -> tuple[Floats, Floats]:
        """Widen a box along some columns, in floats; those with a `step` in whole ones."""
        if not at.size:
            return low, high
        scale = np.where(step > 0, step, self.size)[at]
        (open_up, open_down), whole = self._open(), step[at] > 0
        may = np.concatenate([(self.up & ~open_up)[at], (self.down & ~open_down)[at]])
        farthest = np.stack([self.reach, self.reach])
        for j, ladder in self.ladders.items():
            farthest[:, j] = np.minimum(farthest[:, j], ladder.farthest)
        most = np.where(may, np.concatenate(farthest[:, at] / scale), 0.0)
        A = self.rows.A[:, at] * scale
        widths = widest_widths(
            np.tile(scale / self.unit[at], 2),
            np.hstack([np.maximum(A, 0.0), np.maximum(-A, 0.0)]),
            self.rows.rooms(low, high),
            most,
            np.tile(whole, 2),
        )
        above, below = (np.zeros(2 * at.size) if widths is None else widths).reshape(2, -1) * scale
        low, high = low.copy(), high.copy()
        high[at], low[at] = high[at] + above, low[at] - below
        high[open_up & _among(at, low.size)] = inf
        low[open_down & _among(at, low.size)] = -inf
        return np.maximum(low, self.y - self.reach), np.minimum(high, self.y + self.reach)

    def _in_steps(self) -> tuple[Floats, Floats]:
        """Find ends for columns in which not every number will do, with all others as they are."""
        y, step = self.y, np.zeros(self.y.size)
        if not self.ladders:
            return y.copy(), y.copy()
        for j, ladder in self.ladders.items():
            step[j] = ladder.apart
        found = self._solved(np.flatnonzero(self.up | self.down), y, y, step)
        counts = {
            (j, side): ladder.steps_to(found[side][j])
            for j, ladder in self.ladders.items()
            for side in (0, 1)
            if np.isfinite(found[side][j])
        }
        ends = y.copy(), y.copy()
        for j in self.ladders:
            for side in (0, 1):
                ends[side][j] = found[side][j]
        return self._shortened(counts, *ends)

    def _shortened(
        self, counts: dict[tuple[int, int], int], low: Floats, high: Floats
    ) -> tuple[Floats, Floats]:
        """Take steps back until every row is proved to hold: solvers are not exact."""
        ends = low, high
        for (j, side), count in counts.items():
            ends[side][j] = self.ladders[j].end(count)
        for k, signs in enumerate(self.rows.signs):
            taken = 1
            while not self.rows.holds(k, low, high):
                # Where the answer itself lies, every row holds.
                j, side = min(
                    (
                        (j, side)
                        for (j, side), count in counts.items()
                        if count and signs[j] == 2 * side - 1
                    ),
                    key=lambda place: (self._worth(place[0]), place),
                )
                count = counts[j, side]
                counts[j, side] = (1 if side else -1) * max(abs(count) - taken, 0)
                ends[side][j] = self.ladders[j].end(counts[j, side])
                taken *= 2
        return low, high

    def _worth(self, j: int) -> float:
        """Say what a step of a column counts for; of a list, its average step."""
        ladder = self.ladders[j]
        span = ladder.listed[-1] - ladder.listed[0] if ladder.listed else 0.0
        return (ladder.apart or span / len(ladder.listed)) / float(self.unit[j])

    def _widened(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Find ends for the columns in which any number will do."""
        moving = self.up | self.down
        at = np.array([j for j in np.flatnonzero(moving) if j not in self.ladders], dtype=np.intp)
        if not at.size:
            return low, high
        bottom, top = self._snapped(*self._solved(at, low, high, np.zeros(low.size)))
        bottom, top = np.maximum(bottom, self.y - self.reach), np.minimum(top, self.y + self.reach)
        return self.rows.tightened(bottom, top, (low, high))

    def _snapped(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Take ends for the answer, or for bounds, where they nearly are: solvers are not exact."""
        near, rows, y = HELD_WITH_EQUALITY * self.size, self.rows, self.y
        ends = [low, high]
        for k, bound in enumerate((rows.lower, rows.upper)):
            for goal in (bound, y):
                ends[k] = np.where(np.abs(ends[k] - goal) <= near, goal, ends[k])
        return (
            np.minimum(np.maximum(ends[0], rows.lower), y),
            np.maximum(np.minimum(ends[1], rows.upper), y),
        )

    def _lengthened(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Add steps as long as every row is proved to hold, so that no step more would do."""
        ends = low, high
        for j in sorted(self.ladders, key=lambda j: (-self._worth(j), j)):
            for side, may in ((1, self.up[j]), (0, self.down[j])):
                if may and np.isfinite(ends[side][j]):
                    self._lengthen(ends, j, side)
        return low, high

    def _lengthen(self, ends: tuple[Floats, Floats], j: int, side: int) -> None:
        ladder, way = self.ladders[j], 2 * side - 1
        rows = np.flatnonzero(self.rows.signs[:, j] == way)
        last = ladder.steps_to(float(ends[side][j]))

        def fits(count: int) -> bool:
            value = ladder.value(count)
            if value is None or abs(value - self.y[j]) > self.reach[j]:
                return False
            ends[side][j] = value
            return all(self.rows.holds(int(k), *ends) for k in rows)

        more = way
        while fits(last + more):
            last, more = last + more, 2 * more
        while more != way:
            more //= 2
            last += more if fits(last + more) else 0
        ends[side][j] = ladder.end(last)

    def levels(self, low: Floats, high: Floats) -> dict[int, list[int]]:
        """Levels that each feature that changes its level may have, beside the chosen one."""
        chosen: dict[int, list[int]] = {}
        points: dict[int, list[int | None]] = {}
        for j, span in self.spans.items():
            on = np.flatnonzero(self.y[span] > 0.5)
            point = int(on[0]) + span.start if on.size else None
            points[j] = [point]
            chosen[j] = [self._code(j, point)]
        for j in self.spans:
            for point in self._other_points(j, points[j][0]):
                points[j].append(point)
                listing = [(self.spans[k], points[k]) for k in self.spans]
                if self.is_proved(low, high, listing):
                    chosen[j].append(self._code(j, point))
                else:
                    points[j].pop()
        return chosen

    def _other_points(self, feature: int, own: int | None) -> Iterator[int | None]:
        """Levels that a feature might have beside that of the answer, as coordinates."""
        span, rows = self.spans[feature], self.rows
        if rows.held[span].any():
            return
        if own is not None and feature not in self.required:
            yield None
        yield from (p for p in range(span.start, span.stop) if p != own and not rows.barred[p])

    def _code(self, feature: int, point: int | None) -> int:
        span = self.spans[feature]
        return self.own[feature] if point is None else self.others[feature][point - span.start]


def _among(at: NDArray[np.intp], size: int) -> NDArray[np.bool_]:
    out = np.zeros(size, dtype=bool)
    out[at] = True
    return out


def _typical_units(w: Floats, L: Any, width: int) -> Floats:
    """Say what a cost of 1 buys in each coordinate; 1 where changes are free."""
    square = np.asarray((L.T @ L).diagonal() if L.shape[0] else np.zeros(width)).ravel()
    price = w + np.sqrt(np.maximum(square, 0.0))
    unit = np.ones(width)
    np.divide(1.0, price, out=unit, where=price > 0)
    return unit

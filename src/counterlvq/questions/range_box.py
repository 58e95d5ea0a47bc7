"""The widest box around an answer: a linear program in floats, proved in rational numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.certificates.acceptance import Acceptance
from counterlvq.errors import NotSupportedError
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import (
    HELD_WITH_EQUALITY,
    HIGHS_TOLERANCE,
    MARGIN_ROUNDING,
    NO_ROOM,
)
from counterlvq.problem.targets import wished_prototypes
from counterlvq.questions.exact_rows import ExactRows, rows_around
from counterlvq.questions.protocol import Asks
from counterlvq.results import Counterfactual

__all__ = ["RangeBox", "certain_lead", "kept_margin"]

# How far an open side is followed where a foreign `predict` decides, whose rounding grows: so many
# times the numbers that are about.
_FAR = 1024.0
# How much farther in a point is looked for each time that it is not proved, and how often.
_PULL_GROWTH, _PULLS = 8.0, 12


def kept_margin(asked: Asks, cf: Counterfactual) -> float:
    """Margin that a box has to keep: the one asked for, or what the answer has of it.

    An answer keeps a margin but for rounding, and the box lies around the answer.
    """
    margin, view = asked.margin or 0.0, asked.prepared_for(cf.original_values)
    if not margin:
        return 0.0
    model, y = view.model, view.inner(cf.values)
    rivals = np.flatnonzero(~wished_prototypes(model, cf.target, -1))
    scores = model.distances(y[None, :])[0]
    slack = 2.0 * MARGIN_ROUNDING * (float(scores[cf.prototype]) + margin)
    near = rivals[scores[rivals] - scores[cf.prototype] <= margin + slack]
    own = model.exact_distance(y, cf.prototype) if near.size else Fraction(0)
    found = min((model.exact_distance(y, int(k)) - own for k in near), default=Fraction(margin))
    if not margin - slack <= found < margin:
        return margin
    least = float(found)
    return least if Fraction(least) <= found else float(np.nextafter(least, -inf))


def certain_lead(rules: Acceptance, margin: float, y: Floats, reach: Floats) -> float:
    """Lead over every rival that makes the label certain within `reach` of a point."""
    blur = 0.0 if rules.says is None else float(rules.blur_within(y[None, :], reach[None, :])[0])
    return margin + 2.0 * blur


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
    lead: float  # that the label needs to be certain
    reach: Floats  # (d,) how far a box may go from the answer

    @classmethod
    def around(
        cls, asked: Asks, cf: Counterfactual, side: str, units: Mapping[int, float]
    ) -> RangeBox:
        """State what is known of the answer before anything is solved."""
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
        rows = rows_around(view.model, view.template, question.cells.rivals, cf.prototype, x, y)
        moving &= ~(rows.held | rows.barred)
        is_open = rules.says is None
        near = np.abs(x) + np.abs(y) + question.spread
        reach = np.where(moving, _FAR * near, 0.0)
        lead = certain_lead(rules, kept_margin(asked, cf), y, reach)
        if not np.isfinite(lead):
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
            lead,
            np.full(y.size, inf) if is_open else reach,
        )

    def closely(self, lead: Callable[[Floats, Floats], float]) -> tuple[RangeBox, Floats, Floats]:
        """Find the widest box, and again with what rounding may hide within that one only."""
        low, high = self.widest()
        if np.isinf(self.reach).all():  # rounding hides nothing
            return self, low, high
        near = self.reach_of(low, high)
        box = replace(self, reach=near, lead=lead(self.y, near))
        return box, *box.widest()

    def reach_of(self, low: Floats, high: Floats) -> Floats:
        """How far the ends of a box lie from the answer, (d,)."""
        return np.maximum(high - self.y, self.y - low)

    def widest(self) -> tuple[Floats, Floats]:
        """Find the ends of a box in which every row is proved to hold, (d,) each."""
        middle = self._middle()
        found = None if middle is None else self._solved(middle)
        if middle is None or found is None:
            return self.y.copy(), self.y.copy()  # the answer itself, which was judged already
        return self.rows.tightened(*self._snapped(*found, middle), middle, self.lead)

    def _middle(self) -> Floats | None:
        """Find a point at which every row is proved to hold: the answer, or one next to it."""
        rows, y, at = self.rows, self.y, self._places()
        if rows.hold(y, y, (), self.lead):
            return y
        A, scale = self._scaled(at)
        sizes = np.abs(rows.A) @ np.abs(y) + np.abs(rows.b)
        sizes[rows.is_cell] = max(float(np.abs(rows.leads).max(initial=0.0)), self.lead)
        room = rows.b - rows.A @ y - np.where(rows.is_cell, self.lead, 0.0)
        pull = 0.0
        for _ in range(_PULLS if at.size else 0):
            pulled = np.where(A.any(axis=1), pull * sizes, 0.0)
            shift = _least_shift(A, (room - pulled) / scale)
            if shift is not None:
                middle = y.copy()
                middle[at] += shift * self.size[at]
                is_near = bool((np.abs(middle - y) <= self.reach).all())
                if is_near and rows.hold(middle, middle, (), self.lead):
                    return middle
            pull = max(_PULL_GROWTH * pull, NO_ROOM)
        return None

    def _places(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.up | self.down)

    def _open(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Sides that no row limits, (d,) each."""
        A = self.rows.A
        return self.up & ~(A > 0).any(axis=0), self.down & ~(A < 0).any(axis=0)

    def _scaled(self, at: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """Rows over the columns that may move, of order 1, and what they were divided by."""
        A = self.rows.A[:, at] * self.size[at]
        scale = np.abs(A).max(axis=1, initial=0.0)
        scale = np.where(scale > 0, scale, 1.0)
        return A / scale[:, None], scale

    def _solved(self, middle: Floats) -> tuple[Floats, Floats] | None:
        """Solve for the widest box around a point, in floats."""
        y, rows, at = self.y, self.rows, self._places()
        low, high = middle.copy(), middle.copy()
        if not at.size:
            return low, high
        size, (A, scale) = self.size[at], self._scaled(at)
        room = rows.b - rows.A @ middle - np.where(rows.is_cell, self.lead, 0.0)
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
        widths = _solution(-gain, planes, np.maximum(room, 0.0) / scale, limits)
        if widths is None:
            return None
        above, below = np.maximum(widths, 0.0).reshape(2, at.size) * size
        high[at], low[at] = middle[at] + above, middle[at] - below
        high[at[open_up]] = (y + self.reach)[at[open_up]]
        low[at[open_down]] = (y - self.reach)[at[open_down]]
        return np.maximum(low, y - self.reach), np.minimum(high, y + self.reach)

    def _snapped(self, low: Floats, high: Floats, middle: Floats) -> tuple[Floats, Floats]:
        """Take ends for the point, or for bounds, where they nearly are: solvers are not exact."""
        near, rows = HELD_WITH_EQUALITY * self.size, self.rows
        ends = [low, high]
        for k, bound in enumerate((rows.lower, rows.upper)):
            for goal in (bound, middle):
                ends[k] = np.where(np.abs(ends[k] - goal) <= near, goal, ends[k])
        return (
            np.minimum(np.maximum(ends[0], rows.lower), middle),
            np.maximum(np.minimum(ends[1], rows.upper), middle),
        )

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
    # SciPy's optimisers take long to import, and few ask for ranges.
    from scipy.optimize import linprog

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

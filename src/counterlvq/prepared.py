"""A question prepared once, seen from rows with certain levels: model, program and strategy."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.certificates.acceptance import Acceptance
from counterlvq.certificates.box_questions import BoxQuestion
from counterlvq.certificates.boxes import BoxCertificate
from counterlvq.certificates.cellwise import CellCertificate
from counterlvq.certificates.questions import Question
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.lazy import cached_property
from counterlvq.numeric.memory import Kept
from counterlvq.numeric.single_thread import one_blas_thread
from counterlvq.numeric.tolerances import INEQUALITY_ROUNDING
from counterlvq.pipelines.source import ExplainedModel
from counterlvq.problem.constraints import Bounds, Condition, Constraint, stated_conditions
from counterlvq.problem.cost_terms import Prices
from counterlvq.problem.data_ranges import stated
from counterlvq.problem.expressions import as_constraint
from counterlvq.programs.conditions import (
    Implication,
    LargestChange,
    LevelRule,
    LevelWay,
    LinearConditions,
)
from counterlvq.programs.template import ProgramTemplate, Stated
from counterlvq.search.result import SearchContext, SearchResult
from counterlvq.search.strategies import BranchAndBound, Exact, Reporter, Strategy
from counterlvq.tables.feature import Feature
from counterlvq.tables.features import Features
from counterlvq.types import Method, Status

__all__ = ["Prepared", "Shared", "allowed_range"]

# By the id of a constraint, and on which side of it rows lie: the constraint, what it says.
Read = dict[tuple[int, bool | None], tuple[Constraint | str, tuple[Condition, ...]]]


class Asked(Protocol):
    """What an explainer was asked for."""

    @property
    def constraints(self) -> tuple[Constraint | str, ...]:
        """As the user stated them."""

    @property
    def features(self) -> Features:
        """The columns of the user's table."""

    @property
    def prices(self) -> Prices:
        """What changes of features cost."""

    @property
    def margin(self) -> float | None:
        """The user's margin."""

    @property
    def is_sure(self) -> bool:
        """Whether the margin is a confidence, which inputs have to have too."""

    @property
    def method(self) -> Method:
        """How to search."""

    @property
    def gap(self) -> float:
        """What counts as closed."""


def allowed_range(feature: Feature) -> Bounds:
    """Word the allowed range of a feature as a constraint."""
    return Bounds(feature.name, *feature.ends)


# Templates that are kept: as many as there are combinations of levels of which prices or conditions
# say something of their own.
_MOST_TEMPLATES = 256


@final
@dataclass(frozen=True, eq=False)
class Shared:
    """What views of one question have in common, whatever the levels."""

    # Conditions of constraints on features, which do not depend on levels: read once for all.
    read: Read = field(default_factory=dict)
    # Columns whose levels they are about, by the ranges that rows lie outside of.
    about_levels: dict[Hashable, tuple[int, ...]] = field(default_factory=dict)
    templates: Kept[Hashable, ProgramTemplate] = field(
        default_factory=lambda: Kept(_MOST_TEMPLATES)
    )


def _columns_read_by_level(part: Condition) -> tuple[int, ...]:
    """List columns of which a condition reads otherwise where rows have other levels."""
    if isinstance(part, LevelRule | LevelWay):
        return (part.column,)
    if isinstance(part, LargestChange):
        return tuple(part.switches)
    if isinstance(part, Implication):
        sides = part.when, part.then
        return tuple(side.column for side in sides if isinstance(side, LevelRule))
    return ()


@final
@dataclass(frozen=True, eq=False)
class Prepared:
    """All that does not depend on a row beyond its levels."""

    asked: Asked
    source: ExplainedModel
    # Ranges that rows lie outside of, by position of the constraint, and whether above.
    outside: Mapping[int, bool] = field(default_factory=dict)
    shared: Shared = field(default_factory=Shared)

    @property
    def model(self) -> PrototypeModel:
        """The model in these coordinates."""
        return self.source.model

    def inner(self, row: Floats) -> Floats:
        """Coordinates of a row."""
        found: Floats = self.source.coordinates.inner(row[None, :])[0]
        return found

    def inner_rows(self, rows: Floats) -> Floats:
        """Coordinates of rows, each seen from its own levels, (n, width)."""
        return self.source.coordinates.of_own(rows)

    def outer_rows(self, points: Floats, rows: Floats) -> Floats:
        """Features of points, as `outer` has them, each seen from the levels of its row, (n, d)."""
        coordinates = self.source.coordinates
        found = coordinates.outer_of_own(points, rows)
        if not coordinates.links:
            return found
        same = coordinates.of_own(rows) == points
        for i, row in enumerate(rows):
            self._settle(found[i], row, same[i])
        return found

    def outer_reach(self, reach: Floats) -> Floats:
        """Limits on the changes of features, by those on changes of coordinates, (n, d)."""
        return self.source.coordinates.outer_reach(reach)

    def outer(self, y: Floats, row: Floats) -> Floats:
        """Features of a point; what has not changed, or has reached a bound, to the last digit."""
        coordinates = self.source.coordinates
        found: Floats = coordinates.outer(y[None, :])[0]
        if not coordinates.links:
            return found
        self._settle(found, row, coordinates.inner(row[None, :])[0] == y)
        return found

    def _settle(self, found: Floats, row: Floats, same: NDArray[np.bool_]) -> None:
        """Put numbers right, in place, that went through functions and back."""
        low, high = self.limits
        coordinates = self.source.coordinates
        for j, (link, span) in enumerate(zip(coordinates.links, coordinates.spans, strict=True)):
            if link is not None:
                moved = min(max(float(found[j]), low[j]), high[j])
                found[j] = row[j] if same[span.start] else moved

    @cached_property
    def limits(self) -> tuple[Floats, Floats]:
        """Bounds of single features, in the units of the user, (d,) each."""
        features = self.asked.features
        low = np.array([feature.lower for feature in features])
        high = np.array([feature.upper for feature in features])
        for k, item in enumerate(self.asked.constraints):
            for part in stated(as_constraint(item), self.outside.get(k)).conditions(features):
                if not isinstance(part, LinearConditions):
                    continue
                for a, r, v in zip(part.A, part.R, part.v, strict=True):
                    at = np.flatnonzero(a)
                    if len(at) != 1 or r.any():
                        continue
                    j, limit = int(at[0]), v / a[at[0]]
                    if a[j] > 0 or part.equality:
                        high[j] = min(high[j], limit)
                    if a[j] < 0 or part.equality:
                        low[j] = max(low[j], limit)
        return low, high

    def template_with(
        self,
        kept: Sequence[int],
        unstepped: frozenset[int] = frozenset(),
        unranged: frozenset[int] = frozenset(),
    ) -> ProgramTemplate:
        """State the cost and the listed constraints in numbers.

        Some features go without their steps, and some without their allowed ranges.
        """
        asked, coordinates = self.asked, self.source.coordinates
        own = (
            coordinates.own_conditions_without(unranged) if unranged else coordinates.own_conditions
        )
        conditions = [*self._conditions_of(kept), *own]
        w, L, form, ways, least = asked.prices.over(coordinates)
        grid = coordinates.grid_without(unstepped)
        return ProgramTemplate.of(w, L, conditions, grid, form, ways, least)

    def _conditions_of(self, kept: Sequence[int]) -> list[Stated]:
        parts = [part for k in kept for part in self.read(k)]
        return [part for item in parts for part in self.source.coordinates.spread(item)]

    def read(self, k: int) -> tuple[Condition, ...]:
        """State one of the constraints in numbers."""
        item, outside = self.asked.constraints[k], self.outside.get(k)
        read = self.shared.read
        known = read.get((id(item), outside))
        # An object of long ago may have had the same id.
        if known is None or known[0] is not item:
            chosen = stated(as_constraint(item), outside)
            known = item, stated_conditions(chosen, self.asked.features)
            read[id(item), outside] = known
        return known[1]

    @cached_property
    def template(self) -> ProgramTemplate:
        """Cost and constraints in numbers; one for all levels for which these are the same."""
        kept, coordinates = range(len(self.asked.constraints)), self.source.coordinates
        outside = tuple(sorted(self.outside.items()))
        about = self.shared.about_levels.get(outside)
        if about is None:
            parts = (part for k in kept for part in self.read(k))
            about = tuple(sorted({j for part in parts for j in _columns_read_by_level(part)}))
            self.shared.about_levels[outside] = about
        key = (
            coordinates.between,
            outside,
            self.asked.prices.told_apart(coordinates),
            tuple(coordinates.levels[j] for j in about),
        )
        return self.shared.templates.get(key, lambda: (self.template_with(kept), 1))

    @cached_property
    def rules(self) -> Acceptance:
        """What an answer has to meet."""
        says, doubt = self.source.predictor(), self.source.doubt()
        return Acceptance(
            self.model, self.template, self.asked.margin, says, doubt, self.asked.is_sure
        )

    @property
    def outer_rules(self) -> Acceptance:
        """Rules about rows of the table, as far as they do not depend on coordinates."""
        model: Any = self.source.rows_model  # as much of a model as is asked about rows
        return Acceptance(
            model, self.template, self.asked.margin, self.source.says, self.source.rounding
        )

    def holds(self, factual: Floats) -> bool:
        """Whether an input meets the constraints as it is."""
        return bool(self.rules.keeps(factual[None, :])[0])

    def broken_by(
        self, factual: Floats, answer: Floats | None = None
    ) -> tuple[Constraint | str, ...]:
        """List the constraints, and the ranges of features, that an input breaks as it is.

        Or those that an answer to it breaks.
        """
        asked, coordinates, x = self.asked, self.source.coordinates, factual[None, :]
        y = x if answer is None else answer[None, :]
        is_free = not (asked.constraints or coordinates.own_conditions)
        if is_free or bool(self.rules.judged(y, x, strict=False).good[0]):
            return ()
        outside = self._out_of_range(coordinates.outer(y))[0].tolist()
        ranges = [
            allowed_range(feature)
            for feature, is_out in zip(asked.features, outside, strict=True)
            if is_out
        ]
        pairs = zip(asked.constraints, self._each_alone, strict=True)
        broken = (item for item, rules in pairs if not rules.judged(y, x, strict=False).good[0])
        return (*broken, *ranges)

    def breaks(self, factuals: Floats) -> NDArray[np.bool_]:
        """Say which inputs break constraints, or ranges of features, as they are, (n,)."""
        out = np.zeros(len(factuals), dtype=bool)
        for rules in self._each_alone:
            out |= ~rules.keeps(factuals)
        outside = self._out_of_range(self.source.coordinates.outer(factuals))
        return np.asarray(out | outside.any(axis=1))

    def _out_of_range(self, rows: Floats) -> NDArray[np.bool_]:
        """Say which numbers lie outside of their ranges by more than rounding, (n, d)."""
        numbers = [(j, f) for j, f in enumerate(self.asked.features) if f.is_number]
        at = [j for j, _ in numbers]
        spans, values = self.source.coordinates.spans, rows[:, at]
        slacks = self.source.coordinates.grid.slacks_alone([spans[j].start for j in at])
        out = np.zeros(rows.shape, dtype=bool)
        for sign, limits in (
            (-1, [f.lower for _, f in numbers]),
            (1, [f.upper for _, f in numbers]),
        ):
            limit = np.array(limits)
            size = np.abs(values) + np.where(np.isfinite(limit), np.abs(limit), 0.0)
            within = slacks.within(INEQUALITY_ROUNDING, size)
            out[:, at] |= ~(sign * (values - limit) <= within)
        return out

    @cached_property
    def _each_alone(self) -> tuple[Acceptance, ...]:
        """Rules with one constraint each, as if it were the only one.

        Values that stay lie where they lie: no step and no grid is broken by an input.
        """
        coordinates = self.source.coordinates
        w, L, *_ = self.asked.prices.over(coordinates)
        return tuple(
            replace(
                self.rules,
                template=ProgramTemplate.of(w, L, self._conditions_of([k]), coordinates.grid),
            )
            for k in range(len(self.asked.constraints))
        )

    @cached_property
    def answers(self) -> Strategy:
        """The way to an answer that suits model and constraints."""
        if self.model.is_local or not self.template.is_continuous:
            return BranchAndBound(self.rules, self.asked.method, self.asked.gap)
        return Exact(self.rules)

    def find(
        self, question: Question | BoxQuestion, context: SearchContext, report: Reporter | None
    ) -> SearchResult:
        """Look for the answer; a search that ends at numbers which are no floats claims nothing."""
        try:
            return self.answers.find(question, context, report)
        except (np.linalg.LinAlgError, OverflowError) as error:
            words = f"the search ended at numbers too large or too small for floats ({error})"
            nothing = (
                BoxCertificate(()) if isinstance(question, BoxQuestion) else CellCertificate(())
            )
            return SearchResult(None, nothing, (words,))

    def verdict(
        self, question: Question | BoxQuestion, find: SearchResult, context: SearchContext
    ) -> _Verdict:
        """Say what a find amounts to: status, bound, gap and what its digits can tell.

        With a margin of the user's the bound is that of the points that keep it. OPTIMAL means
        that there is no closer counterfactual at all, so that an answer which has to keep a
        margin is FEASIBLE, however small its gap. What is not checked in time is not claimed.
        """
        if find.answer is None and context.below < np.inf:
            # What was proved is that nothing is cheaper than an answer that others know.
            return _Verdict(Status.UNKNOWN, 0.0, np.inf, 0.0)
        margin, find = context.margin or 0.0, self._checked(question, find, context)
        if find.is_excluded:
            return _Verdict(Status.INFEASIBLE, np.inf, 0.0, 0.0)
        if find.answer is None or find.bound is None:
            stop = context.too_late
            bound = find.certificate.lower_bound(question, np.inf, margin, stop=stop)
            return _Verdict(Status.UNKNOWN, bound if np.isfinite(bound) else 0.0, np.inf, 0.0)
        answer, bound = find.answer, find.bound
        is_closest = not margin or self.asked.is_sure
        closed = answer.is_closed(bound, self.answers.closing_gap) and is_closest
        status = Status.OPTIMAL if closed else Status.FEASIBLE
        return _Verdict(status, bound, answer.gap(bound), answer.resolution)

    def _checked(
        self, question: Question | BoxQuestion, find: SearchResult, context: SearchContext
    ) -> SearchResult:
        """Check a proof as fast as the search reckons with: eigenvalues by one thread."""
        if not self.model.is_local:
            return find.checked(question, context)
        with one_blas_thread():
            return find.checked(question, context)


class _Verdict(NamedTuple):
    """What is claimed of an answer."""

    status: Status
    bound: float
    gap: float
    resolution: float

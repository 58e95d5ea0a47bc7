"""A question prepared once, seen from rows with certain levels: model, program and strategy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, final

import numpy as np

from counterlvq.certificates.acceptance import Acceptance
from counterlvq.certificates.box_questions import BoxQuestion
from counterlvq.certificates.certificate import Stop
from counterlvq.certificates.questions import Question
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats
from counterlvq.pipelines.source import ExplainedModel
from counterlvq.problem.constraints import Constraint
from counterlvq.problem.coordinates import Prices
from counterlvq.problem.expressions import as_constraint
from counterlvq.programs.conditions import LinearConditions
from counterlvq.programs.template import ProgramTemplate
from counterlvq.search.result import SearchResult
from counterlvq.search.strategies import (
    BranchAndBound,
    Exact,
    MixedInteger,
    Strategy,
)
from counterlvq.tables.features import Features
from counterlvq.types import Method, Status

__all__ = ["Prepared"]


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
    def method(self) -> Method:
        """How to search."""

    @property
    def gap(self) -> float:
        """What counts as closed."""


@final
@dataclass(frozen=True, eq=False)
class Prepared:
    """All that does not depend on a row beyond its levels."""

    asked: Asked
    source: ExplainedModel

    @property
    def model(self) -> PrototypeModel:
        """The model in these coordinates."""
        return self.source.model

    def inner(self, row: Floats) -> Floats:
        """Coordinates of a row."""
        found: Floats = self.source.coordinates.inner(row[None, :])[0]
        return found

    def outer(self, y: Floats, row: Floats) -> Floats:
        """Features of a point; what has not changed, or has reached a bound, to the last digit."""
        coordinates = self.source.coordinates
        found: Floats = coordinates.outer(y[None, :])[0]
        if not coordinates.links:
            return found
        same = coordinates.inner(row[None, :])[0] == y
        low, high = self._limits
        for j, (link, span) in enumerate(zip(coordinates.links, coordinates.spans, strict=True)):
            if link is not None:
                moved = min(max(float(found[j]), low[j]), high[j])
                found[j] = row[j] if same[span.start] else moved
        return found

    @cached_property
    def _limits(self) -> tuple[Floats, Floats]:
        """Bounds of single features, in the units of the user, (d,) each."""
        features = self.asked.features
        low = np.array([feature.lower for feature in features])
        high = np.array([feature.upper for feature in features])
        for item in self.asked.constraints:
            for part in as_constraint(item).conditions(features):
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

    def template_with(self, kept: Sequence[int]) -> ProgramTemplate:
        """State the cost and the listed constraints in numbers."""
        asked, coordinates = self.asked, self.source.coordinates
        chosen = [as_constraint(asked.constraints[k]) for k in kept]
        stated = [part for item in chosen for part in item.conditions(asked.features)]
        conditions = [part for item in stated for part in coordinates.spread(item)]
        conditions += coordinates.own_conditions
        form = asked.prices.form_over(coordinates)
        priced = asked.prices.over(coordinates)
        return ProgramTemplate.of(*priced, conditions, coordinates.grid, form)

    @cached_property
    def template(self) -> ProgramTemplate:
        """Cost and constraints in numbers."""
        return self.template_with(range(len(self.asked.constraints)))

    @cached_property
    def rules(self) -> Acceptance:
        """What an answer has to meet."""
        says, doubt = self.source.predictor(), self.source.doubt()
        return Acceptance(self.model, self.template, self.asked.margin, says, doubt)

    def holds(self, factual: Floats) -> bool:
        """Whether an input meets the constraints as it is."""
        return bool(self.rules.judged(factual[None, :], factual[None, :]).good[0])

    @cached_property
    def answers(self) -> Strategy:
        """The way to an answer that suits model and constraints."""
        asked, model, template = self.asked, self.model, self.template
        kinds = (asked.margin, asked.method, asked.gap, self.rules)
        if not template.is_continuous:
            return MixedInteger(model, template, *kinds)
        if model.is_local:
            return BranchAndBound(model, template, *kinds)
        return Exact(model, template, asked.margin, self.rules)

    def verdict(self, question: Question | BoxQuestion, find: SearchResult, stop: Stop) -> _Verdict:
        """Say what a find amounts to: status, bound, gap and what its digits can tell.

        With a margin of the user's the bound is that of the points that keep it. OPTIMAL means
        that there is no closer counterfactual at all, so that an answer which has to keep a
        margin is FEASIBLE, however small its gap. What is not checked before `stop` says so is
        not claimed.
        """
        margin = self.asked.margin or 0.0
        if find.y is None:
            if find.is_excluded or find.certificate.excludes_all(question, margin, stop=stop):
                return _Verdict(Status.INFEASIBLE, np.inf, 0.0, 0.0)
            bound = find.certificate.lower_bound(question, np.inf, margin, stop=stop)
            return _Verdict(Status.UNKNOWN, bound if np.isfinite(bound) else 0.0, np.inf, 0.0)
        bound = find.certificate.lower_bound(question, find.cost, margin, stop=stop)
        bound = min(bound, find.cost)
        judged = self.rules.judged(find.y[None, :], question.x[None, :], bound)
        closed = bool(judged.closed(bound, self.answers.closing_gap)[0]) and not margin
        status = Status.OPTIMAL if closed else Status.FEASIBLE
        return _Verdict(status, bound, float(judged.gap[0]), float(judged.resolution[0]))


class _Verdict(NamedTuple):
    """What is claimed of an answer."""

    status: Status
    bound: float
    gap: float
    resolution: float

"""What is asked of which model: prepared once, and the same with something else asked."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from counterlvq.batch.ways import BatchWay
from counterlvq.certificates.at_most import CountedQuestion
from counterlvq.certificates.box_questions import BoxQuestion
from counterlvq.certificates.questions import Question
from counterlvq.certificates.unions import StatedPart
from counterlvq.explainer.at_once import AtOnce
from counterlvq.explainer.settings import (
    at_least_zero,
    checked_confidence,
    checked_constraints,
    checked_cost,
    checked_method,
    with_those_of,
)
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats, plain
from counterlvq.numeric.memory import Kept
from counterlvq.pipelines.source import ExplainedModel, source_of
from counterlvq.prepared import Prepared, Shared
from counterlvq.problem.at_most import AtMost, limits_of
from counterlvq.problem.chebyshev import Chebyshev
from counterlvq.problem.confidence import Confidence, Noise
from counterlvq.problem.constraints import Constraint, Freeze
from counterlvq.problem.cost_terms import Prices
from counterlvq.problem.costs import Cost, Manhattan
from counterlvq.problem.data_ranges import Outside, outside_of, rows_outside
from counterlvq.problem.expressions import as_constraint
from counterlvq.problem.level_prices import refuse_unpriced
from counterlvq.problem.plausibility import Plausible
from counterlvq.problem.targets import wished_prototypes
from counterlvq.programs.at_most import CountLimit
from counterlvq.questions.at_most import counted_question
from counterlvq.questions.chebyshev import (
    heightened,
)
from counterlvq.questions.confidence import is_cut, margin_of, parts_of
from counterlvq.questions.filed_parts import filed_parts
from counterlvq.questions.plausibility import (
    components_of,
    plausible_in,
    refuse_other_table,
)
from counterlvq.questions.unions import Part, wish_of
from counterlvq.results import Counterfactual
from counterlvq.search.strategies import Exact
from counterlvq.tables.features import Features
from counterlvq.types import Method

__all__ = ["Asked"]

# Combinations of levels for which everything is kept prepared.
_MOST_VIEWS = 256


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Asked:
    """A question about any one row: model, cost, constraints and limits, prepared once."""

    model: PrototypeModel
    cost: Cost
    constraints: tuple[Constraint | str, ...]
    margin: float | None
    method: Method
    time_limit: float | None
    gap: float
    features: Features
    confidence: Confidence | None
    is_sure: bool  # whether the margin is that of a confidence
    _source: ExplainedModel
    prices: Prices  # the cost, column by column of `features`
    _views: Kept[Hashable, Prepared]
    _shared: Shared
    _parts: Kept[tuple[Any, ...], list[Part]]  # of a confidence, by wished-for labels
    _held: Kept[tuple[str, ...], Any]  # explainers in which some features are held, by names
    _wide: Kept[str, Any]  # the explainer with one more column, for the largest change
    _quick: Kept[str, AtOnce | None]  # how single rows are answered at once, where they are

    def _make_sure(self, confidence: Confidence | None, margin: float | None) -> None:
        """Keep how sure the model has to be of an answer."""
        object.__setattr__(self, "confidence", checked_confidence(confidence, margin))
        object.__setattr__(self, "is_sure", confidence is not None)

    def _prepare(
        self,
        model: Any,
        cost: Cost | None,
        constraints: Sequence[Constraint | str],
        margin: float | None,
        method: str,
        time_limit: float | None,
        gap: float,
        features: Any,
        threshold: float | None,
    ) -> None:
        put = partial(object.__setattr__, self)
        put("cost", checked_cost(cost))
        put("_source", source_of(model, features, self.cost, threshold))
        if isinstance(self.cost, Manhattan):
            put("cost", self.cost.for_columns(self._source.columns, self._source.features))
        if isinstance(self.cost, Chebyshev):
            put("cost", self.cost.for_columns(self._source.columns))
        put("model", self._source.model)
        put("features", self._source.features)
        put("constraints", with_those_of(self.features, checked_constraints(constraints)))
        refuse_other_table(self.constraints, self.features, self.model)
        if self.confidence is not None:
            if isinstance(self.confidence, Noise):
                columns = self._source.columns
                put("confidence", self.confidence.for_columns(columns, self.features))
            margin = margin_of(self.confidence, self._source)
        put("margin", None if margin is None else at_least_zero("margin", margin))
        put("method", checked_method(method))
        put("time_limit", None if time_limit is None else at_least_zero("time_limit", time_limit))
        put("gap", at_least_zero("gap", gap))
        put("prices", Prices.of(self.cost, self.features, self._source.columns))
        put("_views", Kept(_MOST_VIEWS))
        put("_parts", Kept(_MOST_VIEWS))
        put("_held", Kept(_MOST_VIEWS))
        put("_wide", Kept(1))
        put("_shared", Shared())
        put("_quick", Kept(1))
        _ = self.prepared_for().template  # build eagerly, so that invalid constraints raise here
        self._refuse_unpriced()

    def _refuse_unpriced(self) -> None:
        """Refuse changes of level that could come up and have no price."""
        stated = (as_constraint(item).conditions(self.features) for item in self.constraints)
        parts = [part for conditions in stated for part in conditions]
        refuse_unpriced(self.prices.missing, self.features, parts)

    @property
    def limits(self) -> tuple[CountLimit, ...]:
        """How many features may change, by the constraints."""
        return limits_of(self.constraints, self.features)

    @property
    def is_ordinary(self) -> bool:
        """Whether one search answers, and no union or tree of them."""
        return not (self.is_union or self.limits or self.prices.takes_largest)

    @property
    def batch_way(self) -> BatchWay:
        """How the rows of a batch are answered: by kernels, or one by one."""
        if not self.is_ordinary:
            return BatchWay.ONE_BY_ONE
        answers = self.prepared_for().answers
        if isinstance(answers, Exact):
            has_links = bool(self._source.coordinates.links)
            return BatchWay.ONE_BY_ONE if has_links else BatchWay.KERNEL
        # The compiled branch and bound looks at no clock in a batch.
        is_compiled = answers.flat is not None and self.time_limit is None
        return BatchWay.LATTICE if is_compiled else BatchWay.ONE_BY_ONE

    def for_files(self) -> Self:
        """Return the explainer whose question a file can state."""
        wide: Self = self.with_height if self.prices.takes_largest else self
        return wide

    @property
    def is_union(self) -> bool:
        """Whether answers may lie in any of several parts: of a confidence, or plausible ones."""
        return self.confidence is not None or plausible_in(self.constraints) is not None

    @property
    def closing_gap(self) -> float:
        """Gap at which an answer counts as the closest: that of the parts of a confidence."""
        whole: Any = self
        gap = self.prepared_for().answers.closing_gap
        if self.confidence is None or is_cut(whole, self.confidence):
            return gap
        parts = self.parts_for((plain(self.model.classes[0]),))
        return max(part.asked.prepared_for().answers.closing_gap for part in parts)

    def filed_parts(self, cf: Counterfactual) -> Iterable[StatedPart]:
        """State the parts of a union that an answer has certificates of."""
        whole: Any = self
        return filed_parts(whole, self.confidence, cf)

    @property
    def with_height(self) -> Any:
        """The explainer that asks for the least of largest changes, with one more column."""
        whole: Any = self
        return self._wide.get("", lambda: (heightened(whole), 1))

    def holding(self, held: frozenset[int]) -> Self:
        """Return an explainer without limits on how many features change, but with some held."""
        names = [self.features.names[j] for j in sorted(held)]

        def made() -> Any:
            kept = tuple(item for item in self.constraints if not isinstance(item, AtMost))
            frozen = (Freeze(*names),) if names else ()
            return self._asking(constraints=(*kept, *frozen))

        asked: Self = self._held.get(tuple(names), lambda: (made(), 1))
        return asked

    def question_for(
        self, row: Floats, target: tuple[Any, ...]
    ) -> Question | BoxQuestion | CountedQuestion:
        """State what is asked about a row, for whoever checks its answer."""
        if self.prices.takes_largest:
            asked: Question | BoxQuestion | CountedQuestion
            asked = self.with_height.question_for(np.append(row, 0.0), target)
            return asked
        if self.limits:
            whole: Any = self
            return counted_question(whole, row, target)
        view = self.prepared_for(row)
        mask = wished_prototypes(view.model, target, -1)
        return view.answers.question(view.inner(row), mask)

    def parts_for(self, labels: Sequence[Any]) -> list[Part]:
        """Divide a question with a confidence into ordinary ones, once for each wish."""
        confidence, key = self.confidence, tuple(labels)
        assert confidence is not None
        whole: Any = self  # an Explainer, of which this class is a part
        return self._parts.get(key, lambda: (parts_of(whole, confidence, key), 1))

    def components_for(self, plausible: Plausible, row: Floats, target: Any) -> list[Part]:
        """Divide a question about plausible answers into ordinary ones, once for each wish."""
        whole: Any = self
        key = wish_of(whole, row, target).labels
        return self._parts.get(key, lambda: (components_of(whole, plausible, key), 1))

    def asking_for(self, **changes: Any) -> Self:
        """Return an explainer with other constraints, margin or time limit, of the same model."""
        other = self._asking(**changes)
        other._refuse_unpriced()
        return other

    def _asking(self, **changes: Any) -> Self:
        """Return an explainer that asks something else."""
        other = copy(self)
        fresh: dict[str, Any] = {"_views": Kept(_MOST_VIEWS), "_parts": Kept(_MOST_VIEWS)}
        # What constraints say of the same features stays the same.
        shared = Shared() if "features" in changes else Shared(dict(self._shared.read))
        fresh |= {"_shared": shared, "_held": Kept(_MOST_VIEWS), "_wide": Kept(1)}
        fresh |= {"_quick": Kept(1)}
        for name, value in {**changes, **fresh}.items():
            object.__setattr__(other, name, value)
        return other

    def prepared_for(self, row: Floats | None = None) -> Prepared:
        """Return what does not depend on a row beyond its levels, prepared once."""
        source, coordinates = self._source, self._source.coordinates
        if row is None:
            here = coordinates.key, ()
            return self._views.get(here, lambda: (Prepared(self, source, shared=self._shared), 1))
        outside = outside_of(self.constraints, self.features, row)
        return self._views.get(
            (coordinates.seen_from(row).key, outside),
            lambda: (Prepared(self, source.seen_from(row), dict(outside), self._shared), 1),
        )

    def prepared_for_each(self, rows: Floats) -> list[Prepared]:
        """As `prepared_for` for each of some rows: what is not there yet is made at once."""
        outside: list[Outside] = [()] * len(rows)
        for i in rows_outside(self.constraints, self.features, rows).tolist():
            outside[i] = outside_of(self.constraints, self.features, rows[i])
        seen = [self._source.coordinates.seen_from(row) for row in rows]
        keys = [(own.key, out) for own, out in zip(seen, outside, strict=True)]
        # What is there is taken out first: what is made below may take its place.
        views = {key: self._views.known(key) for key in keys}
        fresh = [i for i, key in enumerate(keys) if views[key] is None]
        made = self._source.seen_in_each([seen[i] for i in fresh])
        for i, source in zip(fresh, made, strict=True):
            view = Prepared(self, source, dict(outside[i]), self._shared)
            views[keys[i]] = self._views.get(keys[i], partial(_of_size_one, view))
        found = [views[key] for key in keys]
        return [view for view in found if view is not None]


def _of_size_one(view: Prepared) -> tuple[Prepared, int]:
    return view, 1

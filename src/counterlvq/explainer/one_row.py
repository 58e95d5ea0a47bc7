"""What is asked of which model, and how one row that has been read is answered."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from counterlvq.batch.confirmation import confirmed
from counterlvq.batch.ways import BatchWay
from counterlvq.certificates.at_most import CountedQuestion
from counterlvq.certificates.box_questions import BoxQuestion
from counterlvq.certificates.questions import Question
from counterlvq.certificates.unions import StatedPart
from counterlvq.explainer.at_once import AnswerAtOnce, AtOnce, at_once
from counterlvq.explainer.few_at_once import few_at_once
from counterlvq.explainer.settings import (
    at_least_zero,
    checked_confidence,
    checked_constraints,
    checked_cost,
    checked_method,
    with_those_of,
)
from counterlvq.explainer.stating import stated, unchanged
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats, plain
from counterlvq.numeric.interpreting import Compilations
from counterlvq.numeric.memory import Kept
from counterlvq.pipelines.source import ExplainedModel, source_of
from counterlvq.prepared import Prepared, Shared
from counterlvq.presentation.progress import reporter
from counterlvq.problem.at_most import AtMost, limits_of
from counterlvq.problem.chebyshev import Chebyshev
from counterlvq.problem.confidence import Confidence
from counterlvq.problem.constraints import Constraint, Freeze
from counterlvq.problem.cost_terms import Prices
from counterlvq.problem.costs import Cost, Manhattan
from counterlvq.problem.data_ranges import outside_of
from counterlvq.problem.expressions import as_constraint
from counterlvq.problem.level_prices import refuse_unpriced
from counterlvq.problem.plausibility import Plausible
from counterlvq.problem.similarity import KeptApart
from counterlvq.problem.targets import wished_prototypes
from counterlvq.programs.at_most import CountLimit, within_limits
from counterlvq.questions.at_most import counted_answer, counted_question
from counterlvq.questions.chebyshev import (
    exact_height,
    heightened,
    largest_change,
    narrowed,
    widened,
)
from counterlvq.questions.confidence import confident_answer, is_cut, margin_of, parts_of
from counterlvq.questions.filed_parts import filed_parts
from counterlvq.questions.implied_rivals import is_apart
from counterlvq.questions.plausibility import (
    components_of,
    plausible_answer,
    plausible_in,
    refuse_other_table,
)
from counterlvq.questions.protocol import WHOLE, Terms
from counterlvq.questions.unions import Part, confirmed_by, wish_of
from counterlvq.results import Counterfactual, replaced
from counterlvq.search.branch_and_bound import Progress
from counterlvq.search.result import SearchContext
from counterlvq.search.strategies import Exact
from counterlvq.tables.features import Features
from counterlvq.types import Method, Status

__all__ = ["OneRow"]

# Combinations of levels for which everything is kept prepared.
_MOST_VIEWS = 256
# How an answer ends that a limit of time has cut short.
_OPEN = (Status.FEASIBLE, Status.UNKNOWN)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class OneRow:
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
        if isinstance(self.cost, Manhattan | Chebyshev):
            put("cost", self.cost.for_columns(self._source.columns))
        put("model", self._source.model)
        put("features", self._source.features)
        put("constraints", with_those_of(self.features, checked_constraints(constraints)))
        refuse_other_table(self.constraints, self.features, self.model)
        if self.confidence is not None:
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

    def _answer(
        self,
        row: Floats,
        target: Any,
        push: float = 1.0,
        progress: bool | Callable[[Progress], None] = False,
        *,
        terms: Terms = WHOLE,
    ) -> Counterfactual:
        """Answer for one input that has been read.

        `push` multiplies the lead that the user's own `predict` is taken to need, where it
        has rejected an answer among others.
        """
        with np.errstate(all="ignore"):  # what overflows proves nothing, and is not accepted
            found = self._found(row, target, push, progress, terms)
        # Parts of an answer come from questions with constraints of their own.
        return replaced(found, constraints=self.constraints)

    def _found(
        self,
        row: Floats,
        target: Any,
        push: float,
        progress: bool | Callable[[Progress], None],
        terms: Terms,
    ) -> Counterfactual:
        """Answer by the kind of question: one search, or several whose answers are put together."""
        whole: Any = self  # an Explainer, of which this class is a part
        if self.confidence is not None:
            return confident_answer(whole, self.confidence, row, target)
        plausible = plausible_in(self.constraints)
        if plausible is not None:
            parts = self.components_for(plausible, row, target)
            return plausible_answer(whole, plausible, parts, row, target)
        if self.prices.takes_largest:
            wide = self.with_height
            wider = np.append(row, 0.0)
            found = wide._answer(wider, target, push, progress, terms=terms)
            return narrowed(whole, wide, found)
        if self.limits:
            few = self._few_at_once(row, target, terms.find_clash) if push == 1.0 else None
            if few is not None:
                return few
            return counted_answer(whole, row, target, find_clash=terms.find_clash)
        return self._searched(row, target, push, progress, terms)

    def _searched(
        self,
        row: Floats,
        target: Any,
        push: float,
        progress: bool | Callable[[Progress], None],
        terms: Terms,
    ) -> Counterfactual:
        compiled = Compilations.count
        answer = self._searched_once(row, target, push, progress, terms)
        # A limit of time does not count what is compiled once, in the middle of a search.
        is_short = bool(self.time_limit) and answer.status in _OPEN
        if is_short and Compilations.count > compiled:
            answer = self._searched_once(row, target, push, progress, terms)
        return answer

    def _searched_once(
        self,
        row: Floats,
        target: Any,
        push: float,
        progress: bool | Callable[[Progress], None],
        terms: Terms,
    ) -> Counterfactual:
        view = self.prepared_for(row)
        factual = view.inner(row)
        now = terms.now or view.rules.verdict(factual[None, :])
        nearest = int(now.prototype[0])
        target_mask = wished_prototypes(view.model, target, nearest)
        view.answers.get_ready()
        context = SearchContext.begun(
            view.rules, factual, target_mask, self.time_limit, terms.below
        )
        if (
            target_mask[nearest]
            and now.steady[0]
            and push == 1.0
            and view.holds(factual)
            and self._is_sure_of(view, factual, nearest, target_mask)
        ):
            return unchanged(self, row, nearest, target_mask)
        question = view.answers.question(factual, target_mask)
        with reporter(progress) as report:
            find, prototype = confirmed(
                question, context, lambda asked: view.find(question, asked, report), push
            )
        return stated(self, row, view, question, context, find, prototype, nearest, terms)

    def answered_at_once(self, row: Floats, target: Any, given: Any = None) -> AnswerAtOnce | None:
        """Answer a row that has been read, if one run of the kernel settles it."""
        quick = self._at_once
        if quick is None:
            return None
        with np.errstate(all="ignore"):  # what overflows proves nothing, and is not accepted
            return quick.answer(row, target, given)

    @property
    def _at_once(self) -> AtOnce | None:
        return self._quick.get("", lambda: (at_once(self), 1))

    def _few_at_once(self, row: Floats, target: Any, find_clash: bool) -> Counterfactual | None:
        """Answer a row in which few features may change, if runs of the kernel settle it."""
        if self.time_limit is not None:
            return None
        quick = self.holding(frozenset(), None)._at_once
        if quick is None:
            return None
        return few_at_once(self, quick, row, target, find_clash=find_clash)

    def answered(
        self, row: Floats, target: Any, *, find_clash: bool = True, terms: Terms = WHOLE
    ) -> Counterfactual:
        """Answer for a row that has been read; for questions that are made of several.

        Without `find_clash`, where there is no answer all constraints are said to clash.
        """
        answer = self._answer(row, target, terms=terms._replace(find_clash=find_clash))
        return replaced(answer, check=self._check, respond=self._source.responds)

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

    def for_files(self) -> OneRow:
        """Return the explainer whose question a file can state."""
        wide: OneRow = self.with_height if self.prices.takes_largest else self
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

    def as_filed(self, cf: Counterfactual) -> Counterfactual:
        """Return an answer as an answer to that question."""
        if not self.prices.takes_largest or cf.status is Status.INVALID:
            return cf
        height = exact_height(self.prices, cf) if cf.status.has_answer else np.nan
        filed = widened(cf, cf.original_values, height)
        return (
            replace(filed, cost=height, features=self.with_height.features)
            if cf.status.has_answer
            else filed
        )

    @property
    def with_height(self) -> Any:
        """The explainer that asks for the least of largest changes, with one more column."""
        whole: Any = self
        return self._wide.get("", lambda: (heightened(whole), 1))

    def holding(self, held: frozenset[int], time_limit: float | None) -> Self:
        """Return an explainer without limits on how many features change, but with some held."""
        names = [self.features.names[j] for j in sorted(held)]

        def made() -> Any:
            kept = tuple(item for item in self.constraints if not isinstance(item, AtMost))
            frozen = (Freeze(*names),) if names else ()
            return self._asking(constraints=(*kept, *frozen), time_limit=time_limit)

        asked: Self = (
            made() if time_limit is not None else self._held.get(tuple(names), lambda: (made(), 1))
        )
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

    def _check(
        self, row: Floats, target: tuple[Any, ...], shown: Floats, most: float
    ) -> tuple[bool, float]:
        """Whether `shown` is an answer for `row` that costs at most `most`, and what it costs.

        The constraints have to hold to the last digit, and the user's own model is asked.
        """
        if isinstance(self.confidence, KeptApart):
            return self._check_apart(self.confidence, row, target, shown, most)
        if self.confidence is not None:
            return confirmed_by(self.parts_for(target), row, shown, most)
        plausible = plausible_in(self.constraints)
        if plausible is not None:
            return confirmed_by(self.components_for(plausible, row, target), row, shown, most)
        changed = frozenset(np.flatnonzero(shown != row).tolist())
        if not within_limits(changed, self.limits):
            return False, np.inf
        with np.errstate(all="ignore"):
            view = self.prepared_for(row)
            x, y = view.inner(row), view.inner(shown)
            judged = view.rules.judged(y[None, :], x[None, :])
            cost = float(judged.cost[0])
            if self.prices.takes_largest:
                cost = largest_change(view, row, shown)[0]
            if not cost <= most:
                return False, cost
            target_mask = wished_prototypes(view.model, target, -1)
            answer = view.rules.accepts(y, x, target_mask, judged=judged)
            confirms = view.rules.confirms
            return answer is not None and confirms(answer, target_mask) is not None, cost

    def _check_apart(
        self, rule: KeptApart, row: Floats, target: tuple[Any, ...], shown: Floats, most: float
    ) -> tuple[bool, float]:
        """As `_check`, with a rule that is judged in rational numbers."""
        bare = self._asking(confidence=None, is_sure=False, margin=None)
        good, cost = bare._check(row, target, shown, most)
        view = self.prepared_for(row)
        y = view.inner(shown)
        wished = np.flatnonzero(wished_prototypes(self.model, target, -1)).tolist()
        return good and any(is_apart(rule, view.model, i, y) for i in wished), cost

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
        outside = [outside_of(self.constraints, self.features, row) for row in rows]
        coordinates = (self._source.coordinates.seen_from(row) for row in rows)
        keys = [(seen.key, out) for seen, out in zip(coordinates, outside, strict=True)]
        fresh = [i for i, key in enumerate(keys) if key not in self._views]
        made = dict(zip(fresh, self._source.seen_from_each(rows[fresh]), strict=True))

        def view(i: int) -> tuple[Prepared, int]:
            source = made[i] if i in made else self._source.seen_from(rows[i])
            return Prepared(self, source, dict(outside[i]), self._shared), 1

        return [self._views.get(key, partial(view, i)) for i, key in enumerate(keys)]

    def _is_sure_of(
        self, view: Prepared, factual: Floats, nearest: int, target_mask: NDArray[np.bool_]
    ) -> bool:
        """Whether an input has the lead that a confidence asks for."""
        if not self.is_sure or not self.margin:
            return True
        X = factual[None, :]
        return bool(view.rules.wins(X, X, np.array([nearest]), target_mask)[0])

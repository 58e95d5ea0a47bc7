"""How one row that has been read is answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterlvq.batch.confirmation import confirmed
from counterlvq.certificates.box_questions import BoxQuestion
from counterlvq.certificates.judged import Verdict
from counterlvq.certificates.questions import Question
from counterlvq.explainer.asked import Asked
from counterlvq.explainer.asked_together import foreseen
from counterlvq.explainer.at_once import AnswerAtOnce, AtOnce, at_once
from counterlvq.explainer.few_at_once import few_at_once
from counterlvq.explainer.no_answer import WhyNot, everything, why_not
from counterlvq.numeric.arrays import Floats, plain, read_only
from counterlvq.numeric.interpreting import Compilations
from counterlvq.prepared import Prepared, allowed_range
from counterlvq.presentation.numbers import cost_text
from counterlvq.presentation.progress import reporter
from counterlvq.presentation.responses import Respond
from counterlvq.problem.similarity import KeptApart
from counterlvq.problem.targets import labels_of, wished_prototypes
from counterlvq.programs.at_most import within_limits
from counterlvq.questions.at_most import counted_answer
from counterlvq.questions.chebyshev import (
    exact_height,
    largest_change,
    narrowed,
    widened,
)
from counterlvq.questions.confidence import confident_answer, responds_of
from counterlvq.questions.implied_rivals import is_apart
from counterlvq.questions.plausibility import (
    plausible_answer,
    plausible_in,
)
from counterlvq.questions.protocol import WHOLE, Terms
from counterlvq.questions.unions import confirmed_by
from counterlvq.results import Counterfactual, replaced
from counterlvq.search.progress import Progress
from counterlvq.search.result import SearchContext, SearchResult
from counterlvq.types import Status

__all__ = ["OneRow"]

# How an answer ends that a limit of time has cut short.
_OPEN = (Status.FEASIBLE, Status.UNKNOWN)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class OneRow(Asked):
    """Answers a question about any one row."""

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
            return confident_answer(whole, self.confidence, row, target, terms)
        plausible = plausible_in(self.constraints)
        if plausible is not None:
            parts = self.components_for(plausible, row, target)
            return plausible_answer(whole, plausible, parts, row, target, terms)
        if self.prices.takes_largest:
            wide = self.with_height
            wider = np.append(row, 0.0)
            found = wide._answer(wider, target, push, progress, terms=terms)
            return narrowed(whole, wide, found)
        if self.limits:
            few = self._few_at_once(row, target, terms.find_clash) if push == 1.0 else None
            if few is not None:
                return few
            return counted_answer(whole, row, target, terms)
        return self._searched(row, target, push, progress, terms)

    def _searched(
        self,
        row: Floats,
        target: Any,
        push: float,
        progress: bool | Callable[[Progress], None],
        terms: Terms,
    ) -> Counterfactual:
        whole: Any = self
        self.prepared_for(row).answers.get_ready()
        terms = terms._replace(deadline=terms.until(whole))
        compiled = Compilations.count
        answer = self._searched_once(row, target, push, progress, terms)
        # A limit of time does not count what is compiled once, in the middle of a search.
        is_short = self.time_limit is not None and answer.status in _OPEN
        if is_short and Compilations.count > compiled and not terms.until(whole).is_over():
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
        whole: Any = self
        view = self.prepared_for(row)
        factual = view.inner(row)
        together = None if terms.now else foreseen(view.rules, factual)
        now = together.verdict if together else terms.now or view.rules.verdict(factual[None, :])
        nearest = int(now.prototype[0])
        target_mask = wished_prototypes(view.model, target, nearest)
        if together and target_mask[nearest]:  # there may be nothing to search for
            together, now = None, view.rules.verdict(factual[None, :])
            nearest = int(now.prototype[0])
            target_mask = wished_prototypes(view.model, target, nearest)
        rules = together.rules if together else view.rules
        deadline = terms.until(whole)
        context = SearchContext(rules, factual, target_mask, deadline, below=terms.below)
        if (
            target_mask[nearest]
            and now.steady[0]
            and push == 1.0
            and view.holds(factual)
            and self._is_sure_of(view, factual, nearest, target_mask)
        ):
            return self._unchanged(row, nearest, target_mask)
        question = view.answers.question(factual, target_mask)
        with reporter(progress) as report:
            find, prototype = confirmed(
                question, context, lambda asked: view.find(question, asked, report), push
            )
        if together and not together.came_true:
            told = terms._replace(now=view.rules.verdict(factual[None, :]))
            return self._searched_once(row, target, push, progress, told)
        return self._result(row, view, question, context, find, prototype, now, terms)

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
        quick = self.holding(frozenset())._at_once
        if quick is None:
            return None
        return few_at_once(self, quick, row, target, find_clash=find_clash)

    def answered(self, row: Floats, target: Any, *, terms: Terms = WHOLE) -> Counterfactual:
        """Answer for a row that has been read; for questions that are made of several."""
        answer = self._answer(row, target, terms=terms)
        return replaced(answer, check=self._check, respond=self.responds)

    @property
    def responds(self) -> Respond | None:
        """The number behind a decision, where there is one."""
        whole: Any = self
        return responds_of(whole)

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

    def _check(
        self, row: Floats, target: tuple[Any, ...], shown: Floats, most: float
    ) -> tuple[bool, float]:
        """Whether `shown` is an answer for `row` that costs at most `most`, and what it costs.

        Constraints have to hold as of any answer, and the user's own model is asked. A number
        passes no limit by rounding either: the limit itself can be typed.
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
            judged = view.rules.judged(y[None, :], x[None, :], strict=False)
            cost = float(judged.cost[0])
            if self.prices.takes_largest:
                cost = largest_change(view, row, shown)[0]
            if not cost <= most or view.template.passes_limits(y, x):
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
        wished = np.flatnonzero(wished_prototypes(self.model, target, -1))
        # The nearest first: of that alone the rule can hold, but for rounding.
        nearest = wished[view.model.distances(y[None, :])[0, wished].argsort(kind="stable")]
        return good and any(is_apart(rule, view.model, i, y) for i in nearest.tolist()), cost

    def _without_margin(
        self, row: Floats, reason: str, context: SearchContext
    ) -> tuple[float, str]:
        """Say what there is without the margin that cannot be had: a bound, and words.

        In the time that is left.
        """
        labels = list(labels_of(self.model, context.target_mask))
        terms = Terms(deadline=context.deadline)
        found = self._asking(margin=None)._answer(row, labels, terms=terms)
        if found.status is Status.INFEASIBLE:
            return np.inf, reason
        cost = f"; without it one costs {cost_text(found.cost)}" if found.status.has_answer else ""
        return found.lower_bound, f"none keeps the margin of {self.margin:g}{cost}"

    def _within_rules(
        self, row: Floats, context: SearchContext, now: Verdict
    ) -> Counterfactual | None:
        """Find the closest row that meets the constraints, whatever the model says of it."""
        if context.target_mask.all():
            return None
        other = self._asking(margin=None, confidence=None, is_sure=False)
        terms = Terms(now=now, deadline=context.deadline)
        found = other._answer(row, self.model.classes.tolist(), terms=terms)
        return replace(found, check=other._check)

    def _unchanged(
        self, row: Floats, nearest: int, target_mask: NDArray[np.bool_]
    ) -> Counterfactual:
        label = plain(self.model.labels[nearest])
        return Counterfactual(
            values=row,
            original_values=row,
            status=Status.OPTIMAL,
            cost=0.0,
            lower_bound=0.0,
            gap=0.0,
            resolution=0.0,
            prediction=label,
            original_prediction=label,
            target=labels_of(self.model, target_mask),
            prototype=nearest,
            features=self.features,
            reason="the input has a wished-for label already",
            bound_with_margin=0.0,
            part=self.model.meaning.part,
            labels=tuple(self.model.classes.tolist()),
        )

    def _is_sure_of(
        self, view: Prepared, factual: Floats, nearest: int, target_mask: NDArray[np.bool_]
    ) -> bool:
        """Whether an input has the lead that a confidence asks for."""
        if not self.is_sure or not self.margin:
            return True
        X = factual[None, :]
        return bool(view.rules.wins(X, X, np.array([nearest]), target_mask)[0])

    def _result(
        self,
        row: Floats,
        view: Prepared,
        question: Question | BoxQuestion,
        context: SearchContext,
        find: SearchResult,
        prototype: int,
        now: Verdict,
        terms: Terms,
    ) -> Counterfactual:
        verdict = view.verdict(question, find, context)
        status = verdict.status
        values = np.full(row.shape, np.nan)
        if find.answer is not None:
            values = view.outer(find.answer.y, row)
        read_only(values)
        steps = list(find.engines)
        if status in (Status.FEASIBLE, Status.UNKNOWN) and context.out_of_time():
            steps.append("the time limit was reached")
        # Where it is not known whether there is an answer, nothing is known of a conflict.
        why = WhyNot("; ".join(steps), is_irreducible=status is not Status.UNKNOWN)
        if status is Status.INFEASIBLE and terms.find_clash:
            why = why_not(view, question, context, find)
        elif status is Status.INFEASIBLE:
            why = everything(view, why.words)
        bound, reason = verdict.bound, why.words
        if status is Status.INFEASIBLE and terms.find_clash and self.margin and not self.is_sure:
            bound, reason = self._without_margin(row, reason, context)
        broken = view.broken_by(question.x)
        within = self._within_rules(row, context, now) if broken and terms.meets_rules else None
        return Counterfactual(
            values=values,
            original_values=row,
            status=status,
            cost=find.cost,
            lower_bound=bound,
            gap=verdict.gap,
            resolution=verdict.resolution,
            margin=self.margin or 0.0,
            broken=broken,
            within_rules=within,
            prediction=None if prototype < 0 else plain(self.model.labels[prototype]),
            original_prediction=plain(self.model.labels[now.prototype[0]]),
            target=labels_of(self.model, context.target_mask),
            prototype=prototype,
            features=self.features,
            reason=reason,
            bound_with_margin=bound,
            conflict=tuple(self.constraints[k] for k in why.constraints),
            conflict_is_irreducible=why.is_irreducible,
            conflict_ranges=tuple(allowed_range(self.features.columns[j]) for j in why.ranges),
            conflict_steps=tuple(self.features.names[j] for j in why.steps),
            certificate=find.certificate,
            part=self.model.meaning.part,
            scales=self._source.scales,
            labels=tuple(self.model.classes.tolist()),
        )

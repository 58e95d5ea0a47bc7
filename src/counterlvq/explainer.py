"""The one thing most people use: ask a model what would change its mind."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterlvq.arrays import Floats, finite_scalar, plain
from counterlvq.cells import Halfspaces, SharedCells
from counterlvq.certificates import relative_gap
from counterlvq.conflicts import smallest_conflict
from counterlvq.constraints import Constraint, as_constraint
from counterlvq.costs import Cost, Manhattan
from counterlvq.errors import InvalidInputError, NotSupportedError, UnknownLabelError
from counterlvq.families import Family, family_of
from counterlvq.model import PrototypeModel
from counterlvq.programs import Blueprint
from counterlvq.proofs import Question
from counterlvq.results import Counterfactual
from counterlvq.search import Find, Judge, Search, compiled_find, refutation
from counterlvq.types import Method, Status

__all__ = ["Explainer"]

# What OPTIMAL means for shared metrics.
_EXACT_GAP = 1e-6
# Costs below this share of the cost of crossing the whole model cannot be told from zero to
# six digits: half of float64's digits go to where the boundary lies.
_RESOLUTION = 2.0**-25
# How far an inequality of the user may be off, relative to the numbers that meet in it, when
# it leaves no room at all; and an equality, which rarely holds to the last digit.
_INEQUALITY_ROUNDING = 2.0**-46
_EQUALITY_ROUNDING = 2.0**-40


@final
class Explainer:
    """Closest counterfactuals of a prototype model, each with a proof.

    Parameters
    ----------
    model : PrototypeModel
        With a metric shared by all prototypes.
    cost : Cost, default Manhattan()
        What a change costs.
    constraints : sequence of Constraint or str
        What every counterfactual must respect. A string is a linear comparison such as
        ``"second_floor <= first_floor"``; ``original(f)`` in it is the factual value.
    margin : float, optional
        By how much the nearest wished-for prototype has to be nearer than any rival, in
        squared distance. By default as little as rounding in `predict` allows.
    method : {"auto", "ccp", "global"}
        For shared metrics all three are the one exact method.
    time_limit : float, optional
        Seconds per answer, looked at between programs.
    gap : float, default 1e-4
        Relative gap at which an answer counts as OPTIMAL under local metrics. Shared
        metrics reach 1e-6 in any case.

    Examples
    --------
    >>> import counterlvq as clvq
    >>> model = clvq.PrototypeModel(
    ...     [[1.0, 1.0], [3.0, 2.0]], ["rejected", "accepted"], feature_names=["income", "savings"]
    ... )
    >>> explainer = clvq.Explainer(model, constraints=["savings <= original(savings)"])
    >>> cf = explainer.explain([1.0, 1.0], target="accepted")
    >>> print(cf)
    Counterfactual (optimal)
      class   'rejected' -> 'accepted'
      feature  before  after  change
      income        1   2.25   +1.25
      1 feature unchanged
      cost    1.25
      proof   no counterfactual costs less than 1.25 (gap 5e-13)
    """

    def __init__(
        self,
        model: PrototypeModel,
        cost: Cost | None = None,
        constraints: Sequence[Constraint | str] = (),
        margin: float | None = None,
        method: str = "auto",
        time_limit: float | None = None,
        gap: float = 1e-4,
    ) -> None:
        self.model = _supported(model)
        self.cost = _checked_cost(cost)
        self.constraints = _checked_constraints(constraints)
        self.margin = None if margin is None else _at_least_zero("margin", margin)
        self.method = _checked_method(method)
        self.time_limit = None if time_limit is None else _at_least_zero("time_limit", time_limit)
        self.gap = _at_least_zero("gap", gap)
        self._blueprint = self._prepared(range(len(self.constraints)))
        self._targets: dict[bytes, tuple[SharedCells, Family | None]] = {}

    def __repr__(self) -> str:
        return (
            f"Explainer({self.model!r}, cost={self.cost!r}, constraints={list(self.constraints)!r})"
        )

    def explain(self, x: ArrayLike | Mapping[str, float], target: Any = None) -> Counterfactual:
        """Find the closest counterfactual of one input.

        Parameters
        ----------
        x : array-like of shape (d,), or mapping from feature name to value
            The factual input.
        target : label, collection of labels, or None
            What the model should say instead; None for anything but what it says now. An
            input that has a wished-for label already, and meets the constraints, comes
            back unchanged at cost 0.

        Returns
        -------
        Counterfactual
        """
        factual = self.model.features.vector("x", x)
        label = self.model.predict(factual[None, :])[0]
        wished = self._wished(target, label)
        judge = self._judge(factual, wished)
        if label in _labels(self.model, wished) and judge.is_valid(factual, True):
            return self._unchanged(factual, label, wished)
        cells, family = self._target(wished)
        question = Question(self._blueprint, cells, factual)
        return self._answer(question, family, judge, label, wished)

    def verify(self, counterfactual: Counterfactual) -> float:
        """Recompute the lower bound of an answer from its certificate, without any solver.

        Parameters
        ----------
        counterfactual : Counterfactual
            An answer of this explainer, or of one with the same model, cost and constraints.

        Returns
        -------
        float
            The cost that no counterfactual undercuts, as `counterfactual.lower_bound`.
        """
        wished = self._wished(counterfactual.target, None)
        cells, _ = self._target(wished)
        question = Question(self._blueprint, cells, counterfactual.original)
        return counterfactual.certificate.lower_bound(question, counterfactual.cost)

    def _prepared(self, kept: Sequence[int]) -> Blueprint:
        """Cost and the listed constraints in numbers."""
        features = self.model.features
        chosen = [as_constraint(self.constraints[k]) for k in kept]
        conditions = [part for item in chosen for part in item.conditions(features)]
        return Blueprint.of(self.cost, conditions, len(features))

    def _target(self, wished: NDArray[np.bool_]) -> tuple[SharedCells, Family | None]:
        """Prepare once what depends on model and target alone."""
        key = np.packbits(wished).tobytes()
        if key not in self._targets:
            cells = SharedCells.of(self.model, wished, ties_count=bool(self.margin))
            self._targets[key] = cells, family_of(self._blueprint, cells)
        return self._targets[key]

    def _answer(
        self,
        question: Question,
        family: Family | None,
        judge: Judge,
        label: Any,
        wished: NDArray[np.bool_],
    ) -> Counterfactual:
        """Ask the compiled kernel; where its answer does not stand up, the other engines."""
        if family is not None and not judge.out_of_time():
            find = compiled_find(question, family, self.margin, judge)
            if find is not None:
                answer = self._result(question, find, label, wished)
                if answer.status in (Status.OPTIMAL, Status.INFEASIBLE) or self.margin:
                    return answer
        find = Search(question, self.margin, judge).run()
        return self._result(question, find, label, wished)

    def _wished(self, target: Any, label: Any) -> NDArray[np.bool_]:
        """Which prototypes carry a wished-for label, (p,)."""
        labels = self.model.labels
        if target is None:
            return np.asarray(labels != label)
        wished = np.zeros(labels.shape, dtype=bool)
        for wish in _listed(target):
            carried = np.array([bool(wish == plain(known)) for known in labels])
            if not carried.any():
                known = ", ".join(repr(plain(item)) for item in self.model.classes)
                raise UnknownLabelError(
                    f"target {plain(wish)!r} is no label of the model; expected one of: {known}."
                )
            wished |= carried
        return wished

    def _judge(self, x: Floats, wished: NDArray[np.bool_]) -> Judge:
        deadline = np.inf if self.time_limit is None else time.monotonic() + self.time_limit
        return Judge(
            is_valid=lambda y, strict: self._is_valid(y, x, wished, strict=strict),
            price=lambda y: self.cost.value(y - x),
            out_of_time=lambda: time.monotonic() > deadline,
        )

    def _is_valid(self, y: Floats, x: Floats, wished: NDArray[np.bool_], *, strict: bool) -> bool:
        """Whether a finished point has a wished-for label and meets every constraint."""
        if not np.isfinite(y).all():
            return False
        blueprint = self._blueprint
        for rows in (blueprint.inequalities, blueprint.bounds):
            allowed = 0.0 if strict else _INEQUALITY_ROUNDING * rows.magnitude(y, x)
            if (rows.excess(y, x) > allowed).any():
                return False
        for rows in (blueprint.equalities, blueprint.fixed):
            if (rows.excess(y, x) > _EQUALITY_ROUNDING * rows.magnitude(y, x)).any():
                return False
        for quadric in blueprint.quadrics:
            slack = 0.0 if strict else _INEQUALITY_ROUNDING * quadric.magnitude(y)
            if quadric.excess(y) > slack:
                return False
        return self._wins(y, x, wished)

    def _wins(self, y: Floats, x: Floats, wished: NDArray[np.bool_]) -> bool:
        if not wished[self.model.nearest(y[None, :])[0]]:
            return False
        if not self.margin or np.array_equal(y, x):
            return True
        scores = self.model.distances(y[None, :])[0]
        lead = scores[~wished].min(initial=np.inf) - scores[wished].min()
        return bool(lead >= self.margin - _EQUALITY_ROUNDING * scores.max())

    def _unchanged(self, x: Floats, label: Any, wished: NDArray[np.bool_]) -> Counterfactual:
        return Counterfactual(
            x=x,
            original=x,
            status=Status.OPTIMAL,
            cost=0.0,
            lower_bound=0.0,
            gap=0.0,
            prediction=plain(label),
            original_prediction=plain(label),
            target=_labels(self.model, wished),
            prototype=int(self.model.nearest(x[None, :])[0]),
            feature_names=self.model.features.names,
            reason="the input has a wished-for label already",
            bound_with_margin=0.0,
        )

    def _result(
        self, question: Question, find: Find, label: Any, wished: NDArray[np.bool_]
    ) -> Counterfactual:
        bound = find.certificate.lower_bound(question, find.cost)
        status, gap = self._status(question, find, bound)
        x_cf = np.full(question.x.shape, np.nan) if find.y is None else find.y
        nearest = -1 if find.y is None else int(self.model.nearest(x_cf[None, :])[0])
        conflict: tuple[Constraint | str, ...] = ()
        reason = "; ".join(find.engines)
        if status is Status.INFEASIBLE:
            conflict, reason = self._conflict(question)
            bound = np.inf
        with_margin = bound
        if self.margin and status.has_answer:
            with_margin = find.certificate.lower_bound(question, find.cost, self.margin)
        x_cf.setflags(write=False)
        return Counterfactual(
            x=x_cf,
            original=question.x,
            status=status,
            cost=find.cost,
            lower_bound=bound,
            gap=gap,
            prediction=None if nearest < 0 else plain(self.model.labels[nearest]),
            original_prediction=plain(label),
            target=_labels(self.model, wished),
            prototype=nearest,
            feature_names=self.model.features.names,
            reason=reason,
            bound_with_margin=with_margin,
            conflict=conflict,
            certificate=find.certificate,
        )

    def _status(self, question: Question, find: Find, bound: float) -> tuple[Status, float]:
        if find.y is None:
            if find.certificate.excludes_all(question):
                return Status.INFEASIBLE, 0.0
            return Status.UNKNOWN, np.inf
        lifted = self._blueprint.L @ question.spread
        floor = _RESOLUTION * float(self._blueprint.w @ question.spread)
        floor += _RESOLUTION**2 * float(lifted @ lifted)
        gap = relative_gap(find.cost, bound, floor)
        return (Status.OPTIMAL if gap <= _EXACT_GAP else Status.FEASIBLE), gap

    def _conflict(self, question: Question) -> tuple[tuple[Constraint | str, ...], str]:
        """Find an irreducible set of constraints that leaves no room, and in what sense."""
        width = self.model.n_features
        margin = self.margin or 0.0

        def alone(kept: Sequence[int]) -> bool:
            empty = Halfspaces.none(width)
            return _is_refuted(self._prepared(kept).at(question.x, empty, question.spread), 0.0, 0)

        def with_target(kept: Sequence[int]) -> bool:
            asked = Question(self._prepared(kept), question.cells, question.x)
            tiny = 2.0**-48 * question.cells.scale(question.x)
            return all(
                _is_refuted(asked.program(int(i)), margin or tiny, question.cells.rivals.size)
                for i in question.cells.targets
            )

        everything = range(len(self.constraints))
        if self.constraints and alone(everything):
            found = smallest_conflict(len(everything), alone)
            why = "the constraints contradict each other at this input, whatever the class"
        else:
            found = smallest_conflict(len(everything), with_target)
            why = "each cell of the target is shown to be out of reach"
        return tuple(self.constraints[k] for k in found), why


def _is_refuted(program: Any, margin: float, rows: int) -> bool:
    return refutation(program.tightened(margin, rows)) is not None


def _supported(model: PrototypeModel) -> PrototypeModel:
    if not isinstance(model, PrototypeModel):
        raise NotSupportedError(
            f"model has type {type(model).__name__}; expected a PrototypeModel. Build one from "
            f"the prototypes, labels and omegas of the fitted model."
        )
    if model.is_local:
        raise NotSupportedError(
            "model has one metric per prototype (local metrics); expected one metric shared by "
            "all prototypes. Pass a single omega, or none."
        )
    return model


def _checked_cost(cost: Cost | None) -> Cost:
    if cost is None:
        return Manhattan()
    if not isinstance(cost, Cost):
        raise InvalidInputError(
            f"cost is {cost!r}; expected a cost such as Manhattan(), Euclidean() or "
            f"Mahalanobis(matrix)."
        )
    return cost


def _checked_constraints(
    constraints: Sequence[Constraint | str],
) -> tuple[Constraint | str, ...]:
    if isinstance(constraints, str | Constraint):
        raise InvalidInputError(
            f"constraints is a single {type(constraints).__name__}; expected a list. "
            f"Write constraints=[{constraints!r}]."
        )
    return tuple(constraints)


def _checked_method(method: str) -> Method:
    try:
        return Method(method)
    except ValueError:
        known = ", ".join(repr(str(item)) for item in Method)
        raise InvalidInputError(f"method is {method!r}; expected one of: {known}.") from None


def _at_least_zero(name: str, value: float) -> float:
    number = finite_scalar(name, value)
    if number < 0:
        raise InvalidInputError(f"{name} is {number:g}; expected a number of at least 0.")
    return number


def _listed(target: Any) -> list[Any]:
    if isinstance(target, np.ndarray):
        target = target.tolist()
    if isinstance(target, Collection) and not isinstance(target, str | bytes):
        wishes = list(target)
        if not wishes:
            raise UnknownLabelError(
                "target is empty; expected a label, several labels, or None for any other class."
            )
        return [plain(wish) for wish in wishes]
    return [plain(target)]


def _labels(model: PrototypeModel, wished: NDArray[np.bool_]) -> tuple[Any, ...]:
    carried = set(model.labels[wished].tolist())
    return tuple(plain(label) for label in model.classes if plain(label) in carried)
